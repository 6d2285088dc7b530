/* value_print.c: values as a TorchScript program prints them. */
#include <math.h>

#include "runtime/tensor_internal.h"
#include "runtime/value.h"

enum { PRINT_MAX_DEPTH = 1000 };

/* Numbers that an int64 holds as "3.", others with 17 significant digits. */
static void print_float(kiln_text *text, double f) {
  if (f >= -0x1p63 && f < 0x1p63 && (double)(int64_t)f == f) {
    kiln_text_printf(text, "%lld.", (long long)f);
  } else {
    kiln__text_number(text, "%*.*g", 0, 17, f);
  }
}

static void print_complex(kiln_text *text, const kiln_complex *c) {
  print_float(text, c->re);
  kiln_text_putc(text, c->im >= 0 ? '+' : '-');
  print_float(text, fabs(c->im));
  kiln_text_putc(text, 'j');
}

static void print_at(kiln_text *text, kiln_ivalue v, int depth);

static void print_items(kiln_text *text, const kiln_ivalue *items, int64_t count, int depth) {
  for (int64_t i = 0; i < count; i++) {
    if (i > 0) kiln_text_puts(text, ", ");
    print_at(text, items[i], depth + 1);
  }
}

static void print_dict(kiln_text *text, const kiln_dict *dict, int depth) {
  int64_t at = 0;
  kiln_ivalue *key, *value;
  kiln_text_putc(text, '{');
  for (bool first = true; kiln_dict_next(dict, &at, &key, &value); first = false) {
    if (!first) kiln_text_puts(text, ", ");
    print_at(text, *key, depth + 1);
    kiln_text_puts(text, ": ");
    print_at(text, *value, depth + 1);
  }
  kiln_text_putc(text, '}');
}

static void print_enum(kiln_text *text, const kiln_enum *e) {
  kiln_text_puts(text, "Enum<");
  kiln_text_put(text, kiln_str_last_part(e->type->name));
  const kiln_class_info *cls = e->type->cls;
  if (cls && e->member >= 0 && e->member < cls->member_count) {
    kiln_text_putc(text, '.');
    kiln_text_put(text, cls->member_names[e->member]);
  }
  kiln_text_putc(text, '>');
}

static void print_at(kiln_text *text, kiln_ivalue v, int depth) {
  if (depth > PRINT_MAX_DEPTH) {
    kiln_text_puts(text, "...");
    return;
  }
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_NONE: kiln_text_puts(text, "None"); break;
    case KILN_TAG_INT: kiln_text_printf(text, "%lld", (long long)v.u.i); break;
    case KILN_TAG_FLOAT: print_float(text, v.u.f); break;
    case KILN_TAG_BOOL: kiln_text_puts(text, v.u.b ? "True" : "False"); break;
    case KILN_TAG_DEVICE: kiln_device_print(text, v.u.device); break;
    case KILN_TAG_FUNCTION: kiln_text_puts(text, "Function"); break;
    case KILN_TAG_TENSOR: kiln_tensor_print(text, v.u.tensor); break;
    case KILN_TAG_STRING: kiln_text_put(text, kiln_string_view(v.u.string)); break;
    case KILN_TAG_COMPLEX: print_complex(text, v.u.complex); break;
    case KILN_TAG_LIST:
      kiln_text_putc(text, '[');
      print_items(text, v.u.list->items, v.u.list->count, depth);
      kiln_text_putc(text, ']');
      break;
    case KILN_TAG_TUPLE:
      kiln_text_putc(text, '(');
      print_items(text, v.u.tuple->items, v.u.tuple->count, depth);
      kiln_text_puts(text, v.u.tuple->count == 1 ? ",)" : ")");
      break;
    case KILN_TAG_DICT: print_dict(text, v.u.dict, depth); break;
    case KILN_TAG_OBJECT:
      kiln_text_putc(text, '<');
      kiln_text_put(text, v.u.object->type->name);
      kiln_text_printf(text, " object at %p>", (void *)v.u.object);
      break;
    case KILN_TAG_ENUM: print_enum(text, v.u.enumerator); break;
    case KILN_TAG_FUTURE: kiln_text_puts(text, "Future"); break;
    default: kiln_text_puts(text, "Capsule"); break;
  }
}

void kiln_ivalue_print(kiln_text *text, kiln_ivalue v) { print_at(text, v, 0); }
