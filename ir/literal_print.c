/* literal_print.c: constants as the attributes of a printed graph show them.
 *
 * As PyTorch prints them, with one exception. A tensor of one element is {3.14}; of up to ten,
 * where PyTorch shows a rounded dump, it is {[[1., 2.], [3., 4.]]} with digits that read back the
 * same; larger ones are <Tensor>. Type and shape come from the type of the value. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/internal.h"

enum { MAX_SHOWN = 10 };

/* -- Numbers -- */

/* printf's digits with a point whatever the locale, and a point where there is neither that nor an
 * exponent. */
static void put_digits(kiln_text *text, char *digits) {
  bool plain = true;
  for (char *p = digits; *p; p++) {
    bool digit = (*p >= '0' && *p <= '9') || *p == '-' || *p == '+';
    if (digit) continue;
    plain = false;
    if (*p != 'e') *p = '.';
  }
  kiln_text_puts(text, digits);
  if (plain) kiln_text_putc(text, '.');
}

static bool put_special(kiln_text *text, double value) {
  if (isnan(value)) {
    kiln_text_puts(text, "nan");
  } else if (isinf(value)) {
    kiln_text_puts(text, value < 0 ? "-inf" : "inf");
  } else {
    return false;
  }
  return true;
}

void kiln__print_double(kiln_text *text, double value) {
  char digits[40];
  if (put_special(text, value)) return;
  snprintf(digits, sizeof digits, "%.17g", value);
  put_digits(text, digits);
}

/* The fewest digits that give the same float. */
static void print_float(kiln_text *text, double value) {
  char digits[40];
  if (put_special(text, value)) return;
  for (int precision = 6; precision <= 9; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, value);
    if (strtof(digits, NULL) == (float)value) break;
  }
  put_digits(text, digits);
}

static void print_complex(kiln_text *text, double re, double im) {
  kiln__print_double(text, re);
  if (!signbit(im) || isnan(im)) kiln_text_putc(text, '+');
  kiln__print_double(text, im);
  kiln_text_putc(text, 'j');
}

/* -- Tensors -- */

/* Elements as doubles (real, imaginary) or integers, in the arena. */
typedef struct elements {
  const kiln_tensor *tensor;
  double *doubles;
  int64_t *ints;
  int64_t at;
} elements;

/* The elements in order, converted; memory is taken from the arena first, so nothing can leak. */
static bool read_elements(kiln_arena *arena, const kiln_tensor *tensor, elements *out) {
  kiln_dtype dtype = kiln_tensor_dtype(tensor);
  bool is_complex = kiln_dtype_is_complex(dtype), is_int = kiln_dtype_is_int(dtype, true);
  kiln_dtype wide = is_complex ? KILN_DTYPE_C128 : is_int ? KILN_DTYPE_I64 : KILN_DTYPE_F64;
  size_t size = (size_t)tensor->numel * (is_complex ? 16 : 8);
  void *data = kiln_arena_alloc(arena, size);
  *out = (elements){.tensor = tensor};
  if (is_int)
    out->ints = data;
  else
    out->doubles = data;
  kiln_tensor *copy;
  kiln_status *status =
      kiln_tensor_create(kiln_arena_mem(arena), NULL, wide, kiln_tensor_rank(tensor),
                         kiln_tensor_sizes(tensor), &copy);
  if (!status) {
    status = kiln_tensor_copy(copy, tensor);
    if (!status && size) memcpy(data, kiln_tensor_data(copy), size);
    kiln_tensor_release(copy);
  }
  if (!status) return true;
  if (kiln_status_code(status) == KILN_OUT_OF_MEMORY) { /* false would change the text */
    kiln_scope_fail(status);
  }
  kiln_status_destroy(status);
  return false;
}

static void print_element(kiln_text *text, elements *e) {
  kiln_dtype dtype = kiln_tensor_dtype(e->tensor);
  int64_t i = e->at++;
  if (e->ints) {
    kiln_text_printf(text, "%lld", (long long)e->ints[i]);
  } else if (kiln_dtype_is_complex(dtype)) {
    print_complex(text, e->doubles[2 * i], e->doubles[2 * i + 1]);
  } else if (dtype == KILN_DTYPE_F64) {
    kiln__print_double(text, e->doubles[i]);
  } else {
    print_float(text, e->doubles[i]);
  }
}

static void print_nested(kiln_text *text, elements *e, int dim) {
  if (dim == kiln_tensor_rank(e->tensor)) {
    print_element(text, e);
    return;
  }
  kiln_text_putc(text, '[');
  int64_t size = e->tensor->numel ? kiln_tensor_sizes(e->tensor)[dim] : 0;
  for (int64_t i = 0; i < size; i++) {
    if (i) kiln_text_puts(text, ", ");
    print_nested(text, e, dim + 1);
  }
  kiln_text_putc(text, ']');
}

/* Where no type stands by it, a list of numbers tells neither such a dtype nor such sizes. */
static bool needs_dump(const kiln_tensor *tensor) {
  if (tensor->key.f.undefined || tensor->numel > MAX_SHOWN) return false;
  kiln_dtype dtype = kiln_tensor_dtype(tensor);
  return (dtype != KILN_DTYPE_F32 && dtype != KILN_DTYPE_I64 && dtype != KILN_DTYPE_C64) ||
         (tensor->numel == 0 && kiln_tensor_rank(tensor) > 1) ||
         (tensor->numel == 1 && kiln_tensor_rank(tensor) > 0);
}

/* " 1 2 [ CPUDoubleType{2} ]", on one line. */
static void print_dump(kiln_text *text, const kiln_tensor *tensor) {
  elements e;
  if (!read_elements(text->arena, tensor, &e)) {
    kiln_text_puts(text, "<Tensor>");
    return;
  }
  for (int64_t i = 0; i < tensor->numel; i++) {
    kiln_text_putc(text, ' ');
    print_element(text, &e);
  }
  kiln_text_printf(text, "%s[ CPU%sType{", tensor->numel ? " " : "",
                   kiln_dtype_ir_name(kiln_tensor_dtype(tensor)));
  for (int i = 0; i < kiln_tensor_rank(tensor); i++) {
    kiln_text_printf(text, "%s%lld", i ? "," : "", (long long)kiln_tensor_sizes(tensor)[i]);
  }
  kiln_text_puts(text, "} ]");
}

static void print_tensor(kiln_text *text, const kiln_tensor *tensor) {
  elements e;
  if (tensor->key.f.undefined) {
    kiln_text_puts(text, "<Undefined>");
  } else if (tensor->numel > MAX_SHOWN || !read_elements(text->arena, tensor, &e)) {
    kiln_text_puts(text, "<Tensor>");
  } else {
    kiln_text_putc(text, '{');
    print_nested(text, &e, tensor->numel == 1 ? kiln_tensor_rank(tensor) : 0);
    kiln_text_putc(text, '}');
  }
}

/* -- Values -- */

static void print_inner(kiln_text *text, kiln_ivalue v) {
  if (v.tag == KILN_TAG_BOOL) {
    kiln_text_puts(text, v.u.b ? "True" : "False");
  } else {
    kiln__literal_print_untyped(text, v);
  }
}

void kiln__literal_print_untyped(kiln_text *text, kiln_ivalue v) {
  if (v.tag == KILN_TAG_TENSOR && needs_dump(v.u.tensor)) {
    print_dump(text, v.u.tensor);
  } else {
    kiln__literal_print(text, v);
  }
}

static void print_items(kiln_text *text, const kiln_ivalue *items, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (i) kiln_text_puts(text, ", ");
    print_inner(text, items[i]);
  }
}

static void print_list(kiln_text *text, const kiln_list *list) {
  bool annotate = list->count == 0 && list->elem_type;
  if (annotate) {
    kiln_text_puts(text, "annotate(List[");
    kiln_type_print_annotation(text, list->elem_type);
    kiln_text_puts(text, "], ");
  }
  kiln_text_putc(text, '[');
  print_items(text, list->items, list->count);
  kiln_text_puts(text, annotate ? "])" : "]");
}

static void print_dict(kiln_text *text, const kiln_dict *dict) {
  bool annotate = dict->live == 0 && dict->key_type && dict->value_type;
  if (annotate) {
    kiln_text_puts(text, "annotate(Dict[");
    kiln_type_print_annotation(text, dict->key_type);
    kiln_text_puts(text, ", ");
    kiln_type_print_annotation(text, dict->value_type);
    kiln_text_puts(text, "], ");
  }
  kiln_text_putc(text, '{');
  kiln_ivalue *key, *value;
  bool first = true;
  for (int64_t i = 0; kiln_dict_next(dict, &i, &key, &value); first = false) {
    if (!first) kiln_text_puts(text, ", ");
    print_inner(text, *key);
    kiln_text_puts(text, ": ");
    print_inner(text, *value);
  }
  kiln_text_puts(text, annotate ? "})" : "}");
}

static void print_device(kiln_text *text, kiln_device_id device) {
  kiln_text_putc(text, '"');
  kiln_device_print(text, device);
  kiln_text_putc(text, '"');
}

void kiln__literal_print(kiln_text *text, kiln_ivalue v) {
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_NONE: kiln_text_puts(text, "None"); break;
    case KILN_TAG_INT: kiln_text_printf(text, "%lld", (long long)v.u.i); break;
    case KILN_TAG_FLOAT: kiln__print_double(text, v.u.f); break;
    case KILN_TAG_BOOL: kiln_text_putc(text, v.u.b ? '1' : '0'); break;
    case KILN_TAG_DEVICE: print_device(text, v.u.device); break;
    case KILN_TAG_FUNCTION: kiln_text_puts(text, "<Function>"); break;
    case KILN_TAG_TENSOR: print_tensor(text, v.u.tensor); break;
    case KILN_TAG_STRING: kiln_text_quote(text, kiln_string_view(v.u.string)); break;
    case KILN_TAG_COMPLEX: print_complex(text, v.u.complex->re, v.u.complex->im); break;
    case KILN_TAG_LIST: print_list(text, v.u.list); break;
    case KILN_TAG_TUPLE:
      kiln_text_putc(text, '(');
      print_items(text, v.u.tuple->items, v.u.tuple->count);
      kiln_text_puts(text, v.u.tuple->count == 1 ? ",)" : ")");
      break;
    case KILN_TAG_DICT: print_dict(text, v.u.dict); break;
    case KILN_TAG_ENUM: {
      const kiln_type *type = v.u.enumerator->type;
      kiln_text_put(text, type->name);
      kiln_text_putc(text, '.');
      kiln_text_put(text, type->cls->member_names[v.u.enumerator->member]);
      break;
    }
    case KILN_TAG_OBJECT: kiln_text_puts(text, "<Object>"); break;
    case KILN_TAG_FUTURE:
    case KILN_TAG_OTHER: kiln_text_puts(text, "<Other>"); break;
  }
}
