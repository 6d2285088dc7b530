/* npy.c: .npy files: a magic, a Python dict literal of three keys, the elements. */
#include "frontend/npy.h"

#include <errno.h>
#include <stdio.h>

#include "base/cursor.h"
#include "runtime/type.h" /* KILN_MAX_RANK */

static const struct {
  kiln_dtype dtype;
  const char *descr; /* without byte order */
  size_t unit;       /* bytes that are swapped together */
} dtypes[] = {
    {KILN_DTYPE_BOOL, "b1", 1}, {KILN_DTYPE_U8, "u1", 1},    {KILN_DTYPE_I8, "i1", 1},
    {KILN_DTYPE_I16, "i2", 2},  {KILN_DTYPE_U16, "u2", 2},   {KILN_DTYPE_I32, "i4", 4},
    {KILN_DTYPE_U32, "u4", 4},  {KILN_DTYPE_I64, "i8", 8},   {KILN_DTYPE_U64, "u8", 8},
    {KILN_DTYPE_F16, "f2", 2},  {KILN_DTYPE_F32, "f4", 4},   {KILN_DTYPE_F64, "f8", 8},
    {KILN_DTYPE_C64, "c8", 4},  {KILN_DTYPE_C128, "c16", 8},
};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

#define BAD_FILE(...) KILN_ERROR(KILN_INVALID_FILE, ".npy: " __VA_ARGS__)

/* -- The header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } -- */

typedef struct header {
  int dtype;        /* in dtypes */
  kiln_str unknown; /* a dtype that is none of them */
  bool swapped, fortran;
  int rank;
  int64_t sizes[KILN_MAX_RANK];
  size_t data; /* where the elements begin */
} header;

static bool take_string(kiln_cursor *c, kiln_str *out) {
  kiln_cursor_skip(c);
  int first = kiln_cursor_peek(c);
  if (first != '\'' && first != '"') return false;
  char quote = *c->at++;
  const char *begin = c->at;
  while (c->at < c->end && *c->at != quote && *c->at != '\\') c->at++;
  if (c->at == c->end || *c->at != quote) return false;
  *out = kiln_str_make(begin, (size_t)(c->at++ - begin));
  return true;
}

static bool take_descr(kiln_cursor *c, header *h) {
  kiln_str descr;
  if (!take_string(c, &descr) || descr.len < 3) return false;
  char order = descr.data[0];
  if (order != '<' && order != '>' && order != '|' && order != '=') return false;
  for (int i = 0; i < DTYPE_COUNT; i++) {
    if (!kiln_str_is(kiln_str_make(descr.data + 1, descr.len - 1), dtypes[i].descr)) continue;
    h->dtype = i;
    h->swapped = order == '>' && dtypes[i].unit > 1;
    return true;
  }
  h->unknown = descr;
  return false;
}

static bool take_shape(kiln_cursor *c, header *h) {
  if (!kiln_cursor_accept(c, "(")) return false;
  while (!kiln_cursor_accept(c, ")")) {
    kiln_cursor_skip(c);
    kiln_str digits = kiln_cursor_take(c, kiln_is_digit);
    if (h->rank == KILN_MAX_RANK || !kiln_str_parse_i64(digits, &h->sizes[h->rank])) return false;
    h->rank++;
    kiln_cursor_accept(c, "L"); /* Python 2 wrote long integers so */
    if (!kiln_cursor_accept(c, ",") && kiln_cursor_peek(c) != ')') return false;
  }
  return true;
}

static bool parse_dict(kiln_cursor c, header *h) {
  unsigned seen = 0;
  if (!kiln_cursor_accept(&c, "{")) return false;
  while (!kiln_cursor_accept(&c, "}")) {
    kiln_str key;
    if (!take_string(&c, &key) || !kiln_cursor_accept(&c, ":")) return false;
    if (kiln_str_is(key, "descr")) {
      if ((seen & 1) || !take_descr(&c, h)) return false;
      seen |= 1;
    } else if (kiln_str_is(key, "fortran_order")) {
      h->fortran = kiln_cursor_accept(&c, "True");
      if ((seen & 2) || (!h->fortran && !kiln_cursor_accept(&c, "False"))) return false;
      seen |= 2;
    } else if (kiln_str_is(key, "shape")) {
      if ((seen & 4) || !take_shape(&c, h)) return false;
      seen |= 4;
    } else {
      return false;
    }
    if (!kiln_cursor_accept(&c, ",")) {
      if (!kiln_cursor_accept(&c, "}")) return false;
      break;
    }
  }
  return seen == 7;
}

bool kiln_npy_is(kiln_str bytes) {
  return bytes.len >= 6 && memcmp(bytes.data, "\x93NUMPY", 6) == 0;
}

/* numpy pickles arrays of objects, and names them so: '|O', or a list of fields. */
static bool holds_objects(kiln_str text) {
  return memmem(text.data, text.len, "'|O'", 4) || memmem(text.data, text.len, "'O'", 3);
}

static kiln_status *parse_header(kiln_str bytes, header *h) {
  const unsigned char *b = (const unsigned char *)bytes.data;
  *h = (header){0};
  if (bytes.len < 10 || !kiln_npy_is(bytes)) return BAD_FILE("no .npy file");
  if (b[6] < 1 || b[6] > 3) return BAD_FILE("version %d is not known", b[6]);
  size_t start = b[6] == 1 ? 10 : 12, len;
  if (bytes.len < start) return BAD_FILE("the header is cut");
  len = b[8] | (size_t)b[9] << 8;
  if (b[6] > 1) len |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
  if (len > bytes.len - start) return BAD_FILE("the header is cut");
  const char *text = bytes.data + start;
  if (!parse_dict(kiln_cursor_of(kiln_str_make(text, len)), h)) {
    if (holds_objects(kiln_str_make(text, len))) {
      return BAD_FILE("an array of Python objects, which are not read");
    }
    if (h->unknown.len) {
      return BAD_FILE("an array of dtype '" KILN_STR_FMT "', which no tensor has",
                      KILN_STR_ARG(h->unknown));
    }
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' ')) len--;
    return BAD_FILE("the header is damaged: %.*s", (int)(len < 200 ? len : 200), text);
  }
  h->data = start + len;
  return NULL;
}

/* -- Elements -- */

static void swap_bytes(char *data, size_t size, size_t unit) {
  for (size_t i = 0; i + unit <= size; i += unit) {
    for (size_t k = 0; k < unit / 2; k++) {
      char byte = data[i + k];
      data[i + k] = data[i + unit - 1 - k];
      data[i + unit - 1 - k] = byte;
    }
  }
}

/* A row-major tensor from elements in column-major order: by way of reversed sizes. */
static kiln_status *from_fortran(kiln_mem *mem, const header *h, kiln_tensor *reversed,
                                 kiln_tensor **out_tensor) {
  int64_t strides[KILN_MAX_RANK];
  kiln_tensor *view = NULL;
  for (int i = 0; i < h->rank; i++) strides[i] = kiln_tensor_strides(reversed)[h->rank - 1 - i];
  KILN_TRY(kiln_tensor_create_on(mem, NULL, reversed->storage, kiln_tensor_dtype(reversed), h->rank,
                                 h->sizes, strides, reversed->offset, &view));
  kiln_status *status = kiln_tensor_contiguous(NULL, view, out_tensor);
  kiln_tensor_release(view);
  return status;
}

kiln_status *kiln_npy_read(kiln_env *env, kiln_str bytes, kiln_tensor **out_tensor) {
  header h;
  int64_t sizes[KILN_MAX_RANK], numel = 0;
  size_t size = 0;
  kiln_tensor *tensor = NULL;
  void *data = NULL;
  *out_tensor = NULL;
  KILN_TRY(parse_header(bytes, &h));
  kiln_dtype dtype = dtypes[h.dtype].dtype;
  for (int i = 0; i < h.rank; i++) sizes[i] = h.fortran ? h.sizes[h.rank - 1 - i] : h.sizes[i];
  if (!kiln_numel(h.rank, sizes, &numel) ||
      !kiln_checked_mul_size((size_t)numel, kiln_dtype_bytes(dtype), &size) ||
      size > bytes.len - h.data) {
    return BAD_FILE("the file is shorter than its shape says");
  }
  KILN_TRY(kiln_tensor_create(env->mem, NULL, dtype, h.rank, sizes, &tensor));
  kiln_status *status = kiln_tensor_writable_data(tensor, &data);
  if (!status && size > 0) {
    memcpy(data, bytes.data + h.data, size);
    if (h.swapped) swap_bytes(data, size, dtypes[h.dtype].unit);
    for (size_t i = 0; dtype == KILN_DTYPE_BOOL && i < size; i++) {
      ((char *)data)[i] = ((char *)data)[i] != 0;
    }
  }
  if (!status && h.fortran && h.rank > 1) {
    status = from_fortran(env->mem, &h, tensor, out_tensor);
  } else if (!status) {
    *out_tensor = kiln_tensor_retain(tensor);
  }
  kiln_tensor_release(tensor);
  return status;
}

kiln_status *kiln_npy_read_file(kiln_env *env, const char *path, kiln_tensor **out_tensor) {
  kiln_mapping *mapping = NULL;
  *out_tensor = NULL;
  KILN_TRY(kiln_mapping_open(env->mem, path, NULL, &mapping));
  kiln_status *status = kiln_npy_read(env, kiln_str_make(mapping->data, mapping->size), out_tensor);
  kiln_owner_release(&mapping->owner);
  return status ? kiln_status_note(status, "reading %s", path) : NULL;
}

/* -- Writing -- */

/* The header fills whole blocks of 64 bytes, as numpy's does. */
static size_t print_header(const kiln_tensor *tensor, int dtype, char *buffer, size_t capacity) {
  static const char magic[] = "\x93NUMPY\x01\x00";
  char order = dtypes[dtype].unit > 1 ? '<' : '|';
  size_t len = 10;
  memcpy(buffer, magic, 8);
  len += (size_t)snprintf(buffer + len, capacity - len,
                          "{'descr': '%c%s', 'fortran_order': False, 'shape': (", order,
                          dtypes[dtype].descr);
  for (int i = 0; i < kiln_tensor_rank(tensor); i++) {
    len += (size_t)snprintf(buffer + len, capacity - len, "%s%lld", i ? ", " : "",
                            (long long)kiln_tensor_sizes(tensor)[i]);
  }
  len += (size_t)snprintf(buffer + len, capacity - len, "%s), }",
                          kiln_tensor_rank(tensor) == 1 ? "," : "");
  while ((len + 1) % 64 != 0) buffer[len++] = ' ';
  buffer[len++] = '\n';
  buffer[8] = (char)((len - 10) & 0xff);
  buffer[9] = (char)((len - 10) >> 8);
  return len;
}

static kiln_status *cannot_write(const char *path) {
  return KILN_ERROR(KILN_INVALID_FILE, "cannot write %s: %s", path, strerror(errno));
}

kiln_status *kiln_npy_write_file(kiln_tensor *tensor, const char *path) {
  char head[2048]; /* 64 sizes of at most 21 characters */
  int dtype = 0;
  while (dtype < DTYPE_COUNT && dtypes[dtype].dtype != kiln_tensor_dtype(tensor)) dtype++;
  if (tensor->key.f.undefined || dtype == DTYPE_COUNT) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a tensor of dtype %s has no .npy form",
                      kiln_dtype_name(kiln_tensor_dtype(tensor)));
  }
  kiln_tensor *packed = NULL;
  KILN_TRY(kiln_tensor_contiguous(NULL, tensor, &packed));
  size_t head_size = print_header(packed, dtype, head, sizeof head);
  size_t size = (size_t)packed->numel * kiln_tensor_item_size(packed);
  FILE *file = fopen(path, "wb");
  bool good = file && fwrite(head, 1, head_size, file) == head_size &&
              (size == 0 || fwrite(kiln_tensor_data(packed), 1, size, file) == size);
  kiln_status *status = good ? NULL : cannot_write(path);
  if (file && fclose(file) != 0 && !status) status = cannot_write(path);
  kiln_tensor_release(packed);
  return status;
}
