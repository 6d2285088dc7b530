/* print.c: values as text, as Python would show them; and texts that the host frees. */
#include "api/internal.h"
#include "runtime/quant.h"

/* -- Texts: a block that knows its memory -- */

typedef struct text_block {
  kiln_mem *mem; /* retained */
  size_t size;
  char data[];
} text_block;

kiln_text kiln__text_begin(const kiln_context *context) {
  kiln_text text = kiln_text_in(kiln_arena_scoped(context->env->mem));
  return text;
}

kiln_status *kiln__text_copy(kiln_mem *mem, kiln_str all, char **out_text) {
  const size_t size = sizeof(text_block) + all.len + 1;
  text_block *block = kiln_mem_alloc(mem, size);
  if (!block) return kiln_status_oom();
  kiln_mem_retain(mem);
  block->mem = mem;
  block->size = size;
  memcpy(block->data, all.data, all.len);
  block->data[all.len] = 0;
  *out_text = block->data;
  return NULL;
}

kiln_status *kiln__text_give(const kiln_text *text, char **out_text) {
  return kiln__text_copy(kiln_arena_mem(text->arena), kiln_text_str(text), out_text);
}

void kiln_text_free(char *text) {
  if (!text) return;
  text_block *block = (text_block *)(void *)(text - offsetof(text_block, data));
  kiln_mem *mem = block->mem;
  kiln_mem_free(mem, block, block->size);
  kiln_mem_release(mem);
}

/* -- Tensors -- */

typedef struct tensor_printer {
  kiln_text *text;
  const kiln_tensor *tensor;
  int64_t left; /* elements that may still be printed */
} tensor_printer;

/* A number of element `offset` (of dtype `dtype`) as a 0-dim look at it, on the stack. */
static kiln_tensor look_at(const kiln_tensor *tensor, kiln_dtype dtype, int64_t offset) {
  /* Not its count, which other threads change. Without dimensions it reads no dims. */
  kiln_tensor one = {.refs = 1,
                     .key = tensor->key,
                     .numel = 1,
                     .offset = offset,
                     .storage = tensor->storage,
                     .mem = tensor->mem};
  one.key.f.rank = 0;
  one.key.f.dtype = (int8_t)dtype;
  return one;
}

static void print_real(kiln_text *text, const kiln_tensor *tensor, kiln_dtype dtype,
                       int64_t offset) {
  kiln_tensor one = look_at(tensor, dtype, offset);
  double value = 0;
  kiln_status_destroy(kiln_tensor_item_f64(&one, &value));
  if (dtype == KILN_DTYPE_F64) {
    kiln_text_double(text, value);
  } else {
    kiln_text_float(text, value);
  }
}

static void print_element(tensor_printer *p, int64_t offset) {
  kiln_dtype dtype = kiln_tensor_dtype(p->tensor);
  kiln_tensor one = look_at(p->tensor, dtype, offset);
  int64_t i = 0;
  uint64_t u = 0;
  switch (kiln_dtype_category_of(dtype)) {
    case KILN_CATEGORY_FLOAT: print_real(p->text, p->tensor, dtype, offset); break;
    case KILN_CATEGORY_COMPLEX:
      kiln_text_putc(p->text, '(');
      print_real(p->text, p->tensor, kiln_dtype_real(dtype), 2 * offset);
      kiln_text_puts(p->text, ", ");
      print_real(p->text, p->tensor, kiln_dtype_real(dtype), 2 * offset + 1);
      kiln_text_puts(p->text, "j)");
      break;
    case KILN_CATEGORY_BOOL:
      kiln_status_destroy(kiln_tensor_item_i64(&one, &i));
      kiln_text_puts(p->text, i ? "True" : "False");
      break;
    case KILN_CATEGORY_INT:
      if (dtype == KILN_DTYPE_U64) {
        memcpy(&u, kiln_tensor_data(&one), sizeof u); /* may be no int64 */
        kiln_text_printf(p->text, "%llu", (unsigned long long)u);
        break;
      }
      kiln_status_destroy(kiln_tensor_item_i64(&one, &i));
      kiln_text_printf(p->text, "%lld", (long long)i);
      break;
    case KILN_CATEGORY_OTHER:
      if (dtype == KILN_DTYPE_F8E5M2 || dtype == KILN_DTYPE_F8E4M3) {
        print_real(p->text, p->tensor, dtype, offset);
      } else {
        kiln_text_putc(p->text, '?'); /* quantised */
      }
      break;
  }
}

static void print_dim(tensor_printer *p, int dim, int64_t offset, int indent) {
  const kiln_tensor *t = p->tensor;
  if (dim == kiln_tensor_rank(t)) {
    p->left--;
    print_element(p, offset);
    return;
  }
  bool innermost = dim + 1 == kiln_tensor_rank(t);
  kiln_text_putc(p->text, '[');
  for (int64_t i = 0; i < kiln_tensor_sizes(t)[dim]; i++) {
    if (i > 0) {
      kiln_text_puts(p->text, innermost ? ", " : ",\n");
      if (!innermost) kiln_text_indent(p->text, indent + 1);
    }
    if (p->left <= 0) {
      kiln_text_puts(p->text, "...");
      break;
    }
    print_dim(p, dim + 1, offset + i * kiln_tensor_strides(t)[dim], indent + 1);
  }
  kiln_text_putc(p->text, ']');
}

/* "tensor([1, 2]" without what follows. */
static void print_elements(kiln_text *text, const kiln_tensor *tensor, int64_t max_elements) {
  tensor_printer p = {text, tensor, max_elements};
  kiln_text_puts(text, "tensor(");
  if (tensor->numel == 0) {
    kiln_text_puts(text, "[], size=(");
    for (int i = 0; i < kiln_tensor_rank(tensor); i++) {
      kiln_text_printf(text, "%s%lld", i ? ", " : "", (long long)kiln_tensor_sizes(tensor)[i]);
    }
    kiln_text_putc(text, ')');
  } else if (max_elements <= 0) {
    kiln_text_puts(text, "...");
  } else {
    print_dim(&p, 0, tensor->offset, 7);
  }
}

static void print_tensor(kiln_text *text, const kiln_tensor *tensor, int64_t max_elements) {
  const kiln_quant *quant = kiln_tensor_quant(tensor);
  kiln_tensor *values = NULL;
  if (tensor->key.f.undefined) {
    kiln_text_puts(text, "tensor(undefined)");
    return;
  }
  if (quant) kiln_status_destroy(kiln_tensor_dequantize(tensor->mem, NULL, tensor, &values));
  print_elements(text, values ? values : tensor, quant && !values ? 0 : max_elements);
  kiln_tensor_release(values);
  kiln_text_printf(text, ", dtype=%s", kiln_dtype_name(kiln_tensor_dtype(tensor)));
  if (quant) {
    kiln_text_puts(text, ", ");
    kiln_quant_print(text, quant);
  }
  kiln_text_putc(text, ')');
}

/* -- Values -- */

/* A value may hold the same one many times at every level. */
enum { MAX_DEPTH = 200, MAX_TEXT = 16 << 20 };

/* The containers that are being printed, the innermost first. */
typedef struct around {
  const void *box;
  int depth;
  const struct around *outer;
} around;

static void print_at(kiln_text *text, kiln_ivalue v, int64_t max_elements, const around *outer);

/* Whether there is room for one more item. */
static bool next_item(kiln_text *text, bool is_first) {
  if (!is_first) kiln_text_puts(text, ", ");
  if (text->len <= MAX_TEXT) return true;
  kiln_text_puts(text, "...");
  return false;
}

static void print_items(kiln_text *text, const kiln_ivalue *items, int64_t count,
                        int64_t max_elements, const around *outer) {
  for (int64_t i = 0; i < count && next_item(text, i == 0); i++) {
    print_at(text, items[i], max_elements, outer);
  }
}

static void print_dict(kiln_text *text, const kiln_dict *dict, int64_t max_elements,
                       const around *outer) {
  kiln_ivalue *key, *value;
  bool first = true;
  for (int64_t cursor = 0; kiln_dict_next(dict, &cursor, &key, &value); first = false) {
    if (!next_item(text, first)) break;
    print_at(text, *key, max_elements, outer);
    kiln_text_puts(text, ": ");
    print_at(text, *value, max_elements, outer);
  }
}

/* A list, tuple or dict between `begin` and `end`; in itself it is "[...]", as Python has it. */
static void print_container(kiln_text *text, kiln_ivalue v, int64_t max_elements,
                            const around *outer, const char *begin, const char *end) {
  const around here = {v.u.box, outer ? outer->depth + 1 : 0, outer};
  bool again = here.depth > MAX_DEPTH;
  for (const around *a = outer; a; a = a->outer) again = again || a->box == here.box;
  kiln_text_puts(text, begin);
  if (again) {
    kiln_text_puts(text, "...");
  } else if (v.tag == KILN_TAG_LIST) {
    print_items(text, v.u.list->items, v.u.list->count, max_elements, &here);
  } else if (v.tag == KILN_TAG_TUPLE) {
    print_items(text, v.u.tuple->items, v.u.tuple->count, max_elements, &here);
    if (v.u.tuple->count == 1) kiln_text_putc(text, ',');
  } else {
    print_dict(text, v.u.dict, max_elements, &here);
  }
  kiln_text_puts(text, end);
}

/* Python's repr: the fewest digits, and always a point or an exponent. */
static void print_float(kiln_text *text, double value) {
  size_t before = text->len;
  kiln_text_double(text, value);
  if (text->len > before && text->data[text->len - 1] == '.') kiln_text_putc(text, '0');
}

/* In single quotes, as Python's repr; bytes that are no UTF-8 as \\xNN. */
static void print_string(kiln_text *text, kiln_str s) {
  bool utf8 = kiln_str_is_utf8(s);
  kiln_text_putc(text, '\'');
  for (size_t i = 0; i < s.len; i++) {
    unsigned char c = (unsigned char)s.data[i];
    if (c == '\n') {
      kiln_text_puts(text, "\\n");
    } else if (c == '\t') {
      kiln_text_puts(text, "\\t");
    } else if (c == '\'' || c == '\\') {
      kiln_text_putc(text, '\\');
      kiln_text_putc(text, (char)c);
    } else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8)) {
      kiln_text_printf(text, "\\x%02x", c);
    } else {
      kiln_text_putc(text, (char)c);
    }
  }
  kiln_text_putc(text, '\'');
}

static void print_at(kiln_text *text, kiln_ivalue v, int64_t max_elements, const around *outer) {
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_TENSOR: print_tensor(text, v.u.tensor, max_elements); break;
    case KILN_TAG_STRING: print_string(text, kiln_string_view(v.u.string)); break;
    case KILN_TAG_FLOAT: print_float(text, v.u.f); break;
    case KILN_TAG_LIST: print_container(text, v, max_elements, outer, "[", "]"); break;
    case KILN_TAG_TUPLE: print_container(text, v, max_elements, outer, "(", ")"); break;
    case KILN_TAG_DICT: print_container(text, v, max_elements, outer, "{", "}"); break;
    case KILN_TAG_OBJECT:
      kiln_text_puts(text, "<");
      kiln_text_put(text, v.u.object->type->name);
      kiln_text_puts(text, ">");
      break;
    default: kiln_ivalue_print(text, v); break;
  }
}

/* Strings inside quotes, tensors with their elements, the rest as the interpreter prints it. */
void kiln__print_value(kiln_text *text, kiln_ivalue v, int64_t max_elements) {
  print_at(text, v, max_elements, NULL);
}

static kiln_status *print(const kiln_value *value, int max_elements, char **out_text) {
  kiln_text text = kiln__text_begin(value->context);
  kiln__print_value(&text, value->v, max_elements);
  return kiln__text_give(&text, out_text);
}

kiln_status *kiln_value_print(const kiln_value *value, int max_elements, char **out_text) {
  KILN_NEEDS(value && out_text);
  *out_text = NULL;
  KILN_TRY(kiln__value_readable(value));
  KILN_PROTECT(print(value, max_elements, out_text));
}
