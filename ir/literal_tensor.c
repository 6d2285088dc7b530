/* literal_tensor.c: parses constant tensors: {3.14}, {[[1, 2], [3, 4]]}, PyTorch's dump of small
 * ones, and <Tensor>, whose contents the text does not have (zeros are made). Dtype, shape and
 * strides come from the value's type where it tells them, else from the text. */
#include "ir/reader.h"

#include <math.h>

enum { MAX_LITERAL_RANK = 16, MAX_MADE_BYTES = 1 << 28 };

/* The numbers of a literal, in order, and its shape. */
typedef struct numbers {
  KILN_VEC(double) re;
  KILN_VEC(double) im;
  KILN_VEC(int64_t) ints; /* the same, where all are integers */
  bool all_ints, any_complex;
  kiln_dtype dtype; /* that the text names; NONE: it names none */
  int rank;
  int64_t sizes[MAX_LITERAL_RANK];
} numbers;

static void add_number(kiln__reader *r, numbers *n, double re, double im, int64_t i) {
  kiln_vec_push(r->arena, &n->re, re);
  kiln_vec_push(r->arena, &n->im, im);
  kiln_vec_push(r->arena, &n->ints, i);
}

/* -- Making -- */

/* The dtype and geometry that the type and the text agree on. */
typedef struct wanted {
  kiln_dtype dtype;
  int rank;
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  bool has_strides, requires_grad;
} wanted;

static kiln_dtype dtype_of_numbers(const numbers *n) {
  if (n->dtype != KILN_DTYPE_NONE) return n->dtype;
  return n->any_complex ? KILN_DTYPE_C64 : n->all_ints ? KILN_DTYPE_I64 : KILN_DTYPE_F32;
}

static bool complete_sizes(const kiln_tensor_detail *d) {
  return d && kiln__shape_static(d->rank, d->sizes);
}

static void take_geometry(wanted *w, const kiln_tensor_detail *d) {
  w->rank = d->rank;
  w->has_strides = d->has_strides && kiln__shape_static(d->rank, d->strides);
  for (int i = 0; i < d->rank; i++) {
    w->sizes[i] = d->sizes[i];
    if (w->has_strides) w->strides[i] = d->strides[i];
  }
}

static kiln_status *create_wanted(kiln__reader *r, const wanted *w, kiln_ivalue *out) {
  kiln_mem *mem = kiln_arena_mem(r->arena);
  kiln_tensor *tensor;
  kiln_status *status =
      w->has_strides
          ? kiln_tensor_create_strided(mem, NULL, w->dtype, w->rank, w->sizes, w->strides, &tensor)
          : kiln_tensor_create(mem, NULL, w->dtype, w->rank, w->sizes, &tensor);
  KILN_TRY(status);
  tensor->key.f.requires_grad = w->requires_grad;
  *out = kiln_graph_own(r->root, kiln_of_tensor(tensor));
  return NULL;
}

/* Writes the numbers through a tensor of a wide dtype, which converts. */
static kiln_status *fill(kiln__reader *r, kiln_tensor *tensor, const numbers *n) {
  bool is_complex = kiln_dtype_is_complex(kiln_tensor_dtype(tensor));
  kiln_dtype wide = is_complex ? KILN_DTYPE_C128 : n->all_ints ? KILN_DTYPE_I64 : KILN_DTYPE_F64;
  kiln_tensor *temp;
  KILN_TRY(kiln_tensor_create(kiln_arena_mem(r->arena), NULL, wide, kiln_tensor_rank(tensor),
                              kiln_tensor_sizes(tensor), &temp));
  void *data;
  kiln_status *status = kiln_tensor_writable_data(temp, &data);
  for (int i = 0; !status && i < n->re.count; i++) {
    if (is_complex) {
      ((double *)data)[2 * i] = n->re.data[i];
      ((double *)data)[2 * i + 1] = n->im.data[i];
    } else if (n->all_ints) {
      ((int64_t *)data)[i] = n->ints.data[i];
    } else {
      ((double *)data)[i] = n->re.data[i];
    }
  }
  if (!status) status = kiln_tensor_copy(tensor, temp);
  kiln_tensor_release(temp);
  return status;
}

static kiln_status *make(kiln__reader *r, const kiln_type *hint, const numbers *n,
                         kiln_ivalue *out) {
  const kiln_tensor_detail *d = hint && hint->kind == KILN_TYPE_TENSOR ? hint->detail : NULL;
  wanted w = {.dtype = dtype_of_numbers(n), .rank = n->rank};
  memcpy(w.sizes, n->sizes, sizeof n->sizes[0] * (size_t)n->rank);
  if (d && kiln_dtype_is_valid(d->dtype)) w.dtype = (kiln_dtype)d->dtype;
  if (complete_sizes(d)) take_geometry(&w, d);
  w.requires_grad = d && d->requires_grad == 1;
  int64_t numel;
  if (!kiln_numel(w.rank, w.sizes, &numel) || numel != n->re.count) {
    return kiln__reader_fail(r, "the constant has %d elements, its type another number",
                             n->re.count);
  }
  KILN_TRY(create_wanted(r, &w, out));
  return fill(r, out->u.tensor, n);
}

/* -- Text -- */

static kiln_status *parse_element(kiln__reader *r, numbers *n) {
  kiln_ivalue v;
  KILN_TRY(kiln__literal_parse(r, NULL, &v));
  switch (v.tag) {
    case KILN_TAG_INT: add_number(r, n, (double)v.u.i, 0, v.u.i); return NULL;
    case KILN_TAG_BOOL: add_number(r, n, v.u.b, 0, v.u.b); return NULL;
    case KILN_TAG_FLOAT:
      n->all_ints = false;
      add_number(r, n, v.u.f, 0, 0);
      return NULL;
    case KILN_TAG_COMPLEX:
      n->all_ints = false;
      n->any_complex = true;
      add_number(r, n, v.u.complex->re, v.u.complex->im, 0);
      return NULL;
    default: return kiln__reader_fail(r, "expected a number");
  }
}

/* A nested list at depth `dim`; the first at each depth sets the size of that dimension. */
static kiln_status *parse_nested(kiln__reader *r, numbers *n, int dim) {
  if (!kiln_cursor_accept(&r->c, "[")) {
    if (dim != n->rank && n->re.count) return kiln__reader_fail(r, "lists of unequal depth");
    n->rank = dim;
    return parse_element(r, n);
  }
  if (dim == MAX_LITERAL_RANK) return kiln__reader_fail(r, "nested too deeply");
  int64_t size = 0;
  if (!kiln_cursor_accept(&r->c, "]")) {
    do {
      KILN_TRY(parse_nested(r, n, dim + 1));
      size++;
    } while (kiln_cursor_accept(&r->c, ","));
    KILN_TRY(kiln__reader_expect(r, "]"));
  } else if (n->rank <= dim) {
    n->rank = dim + 1;
  }
  if (n->sizes[dim] >= 0 && n->sizes[dim] != size) {
    return kiln__reader_fail(r, "lists of unequal length");
  }
  n->sizes[dim] = size;
  return NULL;
}

static void init_numbers(numbers *n) {
  *n = (numbers){.all_ints = true, .dtype = KILN_DTYPE_NONE};
  for (int i = 0; i < MAX_LITERAL_RANK; i++) n->sizes[i] = -1;
}

kiln_status *kiln__literal_parse_tensor(kiln__reader *r, const kiln_type *hint, kiln_ivalue *out) {
  numbers n;
  init_numbers(&n);
  KILN_TRY(parse_nested(r, &n, 0));
  KILN_TRY(kiln__reader_expect(r, "}"));
  return make(r, hint, &n, out);
}

static void scale(numbers *n, double factor) {
  n->all_ints = false;
  for (int i = 0; i < n->re.count; i++) n->re.data[i] *= factor;
}

/* "CPUFloatType", "CUDABFloat16Type": the storage's name in it. */
static kiln_dtype dtype_of_word(kiln_str word) {
  if (kiln_str_starts(word, "CPU")) word = kiln_str_make(word.data + 3, word.len - 3);
  if (kiln_str_starts(word, "CUDA")) word = kiln_str_make(word.data + 4, word.len - 4);
  if (word.len > 4) word.len -= 4; /* "Type" */
  return kiln_dtype_from_ir_name(word);
}

/* "(1,.,.) = ", which says where the next matrix belongs: they come in order. */
static bool skip_matrix_label(kiln__reader *r) {
  const char *begin = r->c.at;
  if (!kiln_cursor_accept(&r->c, "(")) return false;
  while (r->c.at < r->c.end && *r->c.at != ')' && *r->c.at != '\n') r->c.at++;
  if (kiln_cursor_accept(&r->c, ")") && kiln_cursor_accept(&r->c, "=")) return true;
  r->c.at = begin;
  return false;
}

/* "[ CPUFloatType{2,3} ]" after its '['. */
static kiln_status *parse_dump_tail(kiln__reader *r, numbers *n) {
  kiln_cursor_skip(&r->c);
  n->dtype = dtype_of_word(kiln__reader_word(r));
  KILN_TRY(kiln__reader_expect(r, "{"));
  while (!kiln_cursor_accept(&r->c, "}")) {
    kiln_ivalue size;
    if (n->rank == MAX_LITERAL_RANK) return kiln__reader_fail(r, "too many dimensions");
    KILN_TRY(kiln__literal_parse(r, NULL, &size));
    if (size.tag != KILN_TAG_INT) return kiln__reader_fail(r, "expected a size");
    n->sizes[n->rank++] = size.u.i;
    if (kiln_cursor_accept(&r->c, ",")) continue;
    KILN_TRY(kiln__reader_expect(r, "}"));
    break;
  }
  return kiln__reader_expect(r, "]");
}

kiln_status *kiln__literal_parse_dump(kiln__reader *r, const kiln_type *hint, kiln_ivalue *out) {
  numbers n;
  double factor = 1;
  init_numbers(&n);
  r->in_dump = true;
  while (!kiln_cursor_accept(&r->c, "[")) {
    if (skip_matrix_label(r)) continue;
    KILN_TRY(parse_element(r, &n));
    if (!kiln_cursor_accept(&r->c, "*")) continue;
    factor = n.re.data[0];
    init_numbers(&n);
  }
  KILN_TRY(parse_dump_tail(r, &n));
  r->in_dump = false;
  if (factor != 1) scale(&n, factor);
  return make(r, hint, &n, out);
}

kiln_status *kiln__literal_make_tensor(kiln__reader *r, const kiln_type *hint, kiln_ivalue *out) {
  const kiln_tensor_detail *d = hint && hint->kind == KILN_TYPE_TENSOR ? hint->detail : NULL;
  if (!complete_sizes(d) || !kiln_dtype_is_valid(d->dtype)) {
    return kiln__reader_fail(r, "<Tensor> needs a type with dtype and sizes");
  }
  wanted w = {.dtype = (kiln_dtype)d->dtype, .requires_grad = d->requires_grad == 1};
  take_geometry(&w, d);
  int64_t numel, span = 1;
  if (!kiln_numel(w.rank, w.sizes, &numel)) return kiln__reader_fail(r, "the size is too large");
  for (int i = 0; w.has_strides && numel && i < w.rank; i++) {
    int64_t reach;
    if (!kiln_checked_mul_i64(w.sizes[i] - 1, w.strides[i], &reach) ||
        !kiln_checked_add_i64(span, reach, &span)) {
      span = INT64_MAX;
      break;
    }
  }
  if (numel > MAX_MADE_BYTES || span > MAX_MADE_BYTES) {
    return kiln__reader_fail(r, "<Tensor> of this size is not made up");
  }
  KILN_TRY(create_wanted(r, &w, out));
  void *data;
  KILN_TRY(kiln_tensor_writable_data(out->u.tensor, &data));
  kiln_storage *storage = out->u.tensor->storage;
  if (storage->bytes) memset(storage->data, 0, storage->bytes);
  return NULL;
}
