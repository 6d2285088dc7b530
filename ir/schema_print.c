/* schema_print.c: schemas as text; kiln_schema_parse reads it back. */
#include "ir/op.h"

static void print_sets(kiln_text *text, uint32_t sets) {
  bool first = true;
  for (int bit = 0; bit < 26; bit++) {
    if (!(sets & (1u << bit))) continue;
    if (!first) kiln_text_putc(text, '|');
    kiln_text_putc(text, (char)('a' + bit));
    first = false;
  }
  if (!(sets & KILN_ALIAS_WILDCARD)) return;
  if (!first) kiln_text_putc(text, '|');
  kiln_text_putc(text, '*');
}

static void print_alias(kiln_text *text, const kiln_alias_info *alias) {
  if (!alias->present) return;
  kiln_text_putc(text, '(');
  print_sets(text, alias->sets);
  if (alias->is_write) kiln_text_putc(text, '!');
  if (alias->after != alias->sets) {
    kiln_text_puts(text, " -> ");
    print_sets(text, alias->after);
  }
  kiln_text_putc(text, ')');
}

/* The alias mark stands at the outermost part that is not an Optional; that of elements inside. */
static void print_typed(kiln_text *text, const kiln_type *type, int fixed_count,
                        const kiln_alias_info *alias, const kiln_alias_info *elem_alias) {
  static const kiln_alias_info none;
  if (type->kind == KILN_TYPE_OPTIONAL) {
    print_typed(text, type->elems[0], fixed_count, alias, elem_alias);
    kiln_text_putc(text, '?');
    return;
  }
  if (type->kind != KILN_TYPE_LIST) {
    kiln_type_print(text, type, 3);
  } else {
    print_typed(text, type->elems[0], 0, elem_alias, &none);
    kiln_text_putc(text, '[');
    if (fixed_count) kiln_text_printf(text, "%d", fixed_count);
    kiln_text_putc(text, ']');
  }
  print_alias(text, alias);
}

static void print_value(kiln_text *text, kiln_ivalue v) {
  switch (v.tag) {
    case KILN_TAG_INT: kiln_text_printf(text, "%lld", (long long)v.u.i); break;
    case KILN_TAG_FLOAT: kiln_text_double(text, v.u.f); break;
    case KILN_TAG_BOOL: kiln_text_puts(text, v.u.b ? "True" : "False"); break;
    case KILN_TAG_STRING: kiln_text_quote(text, kiln_string_view(v.u.string)); break;
    case KILN_TAG_LIST:
      kiln_text_putc(text, '[');
      for (int64_t i = 0; i < v.u.list->count; i++) {
        if (i) kiln_text_puts(text, ", ");
        print_value(text, v.u.list->items[i]);
      }
      kiln_text_putc(text, ']');
      break;
    case KILN_TAG_NONE: kiln_text_puts(text, "None"); break;
    default: kiln_ivalue_print(text, v); break;
  }
}

static void print_arg(kiln_text *text, const kiln_schema_arg *arg) {
  print_typed(text, arg->type, arg->fixed_count, &arg->alias, &arg->elem_alias);
  if (arg->name.len) {
    kiln_text_putc(text, ' ');
    kiln_text_put(text, arg->name);
  }
  if (arg->has_default) {
    kiln_text_putc(text, '=');
    print_value(text, arg->default_value);
  }
}

static void print_results(kiln_text *text, const kiln_schema *schema) {
  if (schema->is_varret && schema->result_count == 0) {
    kiln_text_puts(text, "...");
    return;
  }
  bool bare = schema->result_count == 1 && !schema->results[0].name.len && !schema->is_varret;
  if (!bare) kiln_text_putc(text, '(');
  for (int i = 0; i < schema->result_count; i++) {
    if (i) kiln_text_puts(text, ", ");
    print_arg(text, &schema->results[i]);
  }
  if (schema->is_varret) kiln_text_puts(text, ", ...");
  if (!bare) kiln_text_putc(text, ')');
}

void kiln_schema_print(kiln_text *text, const kiln_schema *schema) {
  kiln_text_put(text, schema->name);
  if (schema->overload.len) {
    kiln_text_putc(text, '.');
    kiln_text_put(text, schema->overload);
  }
  kiln_text_putc(text, '(');
  bool kwarg_only = false;
  for (int i = 0; i < schema->arg_count; i++) {
    if (i) kiln_text_puts(text, ", ");
    if (schema->args[i].kwarg_only && !kwarg_only) kiln_text_puts(text, "*, ");
    kwarg_only = schema->args[i].kwarg_only;
    print_arg(text, &schema->args[i]);
  }
  if (schema->is_vararg) kiln_text_puts(text, schema->arg_count ? ", ..." : "...");
  kiln_text_puts(text, ") -> ");
  print_results(text, schema);
}
