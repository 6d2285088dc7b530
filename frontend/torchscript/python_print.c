/* python_print.c: the files of an archive: classes, functions, and which of them are needed.
 *
 * It begins with one class and goes on with what attributes, signatures and bodies name, each into
 * the file of its qualifier: "__torch__.m.C" into code/__torch__/m.py. Modules and classes keep all
 * their methods, whoever calls them. */
#include "frontend/torchscript/python_print.h"

/* -- Functions -- */

/* "(self: C, x: Tensor, n: int=1) -> Tensor:", one argument a line as in PyTorch's. */
static kiln_status *print_signature(kiln_printer *p, kiln_text *text, const kiln_schema *schema,
                                    char *const *names, int indent) {
  bool star = false;
  kiln_text_putc(text, '(');
  for (int i = 0; i < schema->arg_count; i++) {
    const kiln_schema_arg *arg = &schema->args[i];
    if (i > 0) {
      kiln_text_puts(text, ",\n");
      kiln_text_indent(text, 2 * indent);
    }
    if (arg->kwarg_only && !star) kiln_text_puts(text, "*, ");
    star = star || arg->kwarg_only;
    kiln_text_printf(text, "%s: ", names[i]);
    KILN_TRY(kiln__print_type(p, text, arg->type));
    if (!arg->has_default) continue;
    kiln_text_putc(text, '=');
    KILN_TRY(kiln__print_literal(p, text, arg->default_value, arg->type));
  }
  return kiln__print_type_between(p, text, ") -> ", schema->results[0].type, ":\n");
}

static kiln_status *print_function(kiln_printer *p, kiln_text *text, kiln_function *function,
                                   int indent) {
  kiln_body b;
  bool has_body = !function->owner || function->owner->kind != KILN_TYPE_INTERFACE;
  if (has_body) KILN_TRY(kiln_unit_ensure(function));
  const kiln_schema *schema = function->schema;
  if (!schema || schema->result_count != 1) {
    return KILN_ERROR(KILN_UNSUPPORTED, "%s has no signature", function->qualname);
  }
  kiln__body_begin(&b, p, text, function, indent + 1);
  char **names = KILN_NEW_ARRAY(p->arena, char *, schema->arg_count + 1);
  for (int i = 0; i < schema->arg_count; i++) {
    bool self = i == 0 && function->owner;
    names[i] =
        self ? kiln_arena_strdup(p->arena, "self") : kiln__body_name(&b, schema->args[i].name);
    if (has_body && i < kiln_graph_input_count(function->graph)) {
      kiln_map_set_ptr(&b.names, kiln_graph_input(function->graph, i), names[i]);
    }
  }
  kiln_text_indent(text, 2 * indent);
  kiln_text_printf(text, "def " KILN_STR_FMT, KILN_STR_ARG(function->name));
  if (!has_body && schema->arg_count > 0) { /* an interface's self has no type */
    kiln_text_puts(text, "(self");
    for (int i = 1; i < schema->arg_count; i++) {
      kiln_text_printf(text, ", %s: ", names[i]);
      KILN_TRY(kiln__print_type(p, text, schema->args[i].type));
    }
    KILN_TRY(kiln__print_type_between(p, text, ") -> ", schema->results[0].type, ":\n"));
    kiln_text_indent(text, 2 * indent + 2);
    kiln_text_puts(text, "pass\n");
    return NULL;
  }
  KILN_TRY(print_signature(p, text, schema, names, indent + 1));
  KILN_TRY_NOTE(kiln__print_body(&b), "printing %s", function->qualname);
  return NULL;
}

/* -- Classes -- */

static void print_named(kiln_text *text, const char *list, const kiln_class_info *info,
                        bool parameters) {
  kiln_text_printf(text, "  %s = [", list);
  for (int i = 0; i < info->attribute_count; i++) {
    const kiln_class_attribute *a = &info->attributes[i];
    if (!(parameters ? a->is_parameter : a->is_buffer)) continue;
    kiln_text_quote(text, a->name);
    kiln_text_puts(text, ", ");
  }
  kiln_text_puts(text, "]\n");
}

static kiln_status *print_attributes(kiln_printer *p, kiln_text *text,
                                     const kiln_class_info *info) {
  for (int i = 0; i < info->attribute_count; i++) {
    const kiln_class_attribute *a = &info->attributes[i];
    bool plain = kiln__is_identifier(a->name);
    if (!plain && i == 0) kiln_text_puts(text, "  __annotations__ = []\n");
    if (plain) {
      kiln_text_printf(text, "  " KILN_STR_FMT " : ", KILN_STR_ARG(a->name));
    } else {
      kiln_text_puts(text, "  __annotations__[");
      kiln_text_quote(text, a->name);
      kiln_text_puts(text, "] = ");
    }
    KILN_TRY(kiln__print_type_between(p, text, "", a->type, "\n"));
  }
  return NULL;
}

static kiln_status *print_finals(kiln_printer *p, kiln_text *text, const kiln_class *cls) {
  for (int i = 0; i < cls->constants.count; i++) {
    const kiln_map_entry *entry = &cls->constants.entries[i];
    const kiln_ivalue *value = entry->value;
    if (!value) continue;
    const kiln_type *type =
        kiln_type_unshaped(cls->unit->types, kiln_ivalue_type(cls->unit->types, *value));
    kiln_text_printf(text, "  " KILN_STR_FMT " : Final[", KILN_STR_ARG(entry->key));
    KILN_TRY(kiln__print_type_between(p, text, "", type, "] = "));
    KILN_TRY(kiln__print_literal(p, text, *value, type));
    kiln_text_putc(text, '\n');
  }
  return NULL;
}

static void print_hooks(kiln_text *text, const char *list, kiln_function *const *hooks, int count) {
  if (count == 0) return;
  kiln_text_printf(text, "  %s = [", list);
  for (int i = 0; i < count; i++) {
    kiln_text_quote(text, hooks[i]->name);
    kiln_text_puts(text, ", ");
  }
  kiln_text_puts(text, "]\n");
}

static kiln_status *print_plain_class(kiln_printer *p, kiln_text *text, const kiln_type *type) {
  const kiln_class_info *info = type->cls;
  const kiln_class *cls = kiln_class_of(type);
  if (info->is_module) {
    print_named(text, "__parameters__", info, true);
    print_named(text, "__buffers__", info, false);
    print_hooks(text, "__forward_pre_hooks__", cls->forward_pre_hooks.data,
                cls->forward_pre_hooks.count);
    print_hooks(text, "__forward_hooks__", cls->forward_hooks.data, cls->forward_hooks.count);
  }
  KILN_TRY(print_attributes(p, text, info));
  return print_finals(p, text, cls);
}

/* Members' strings stand in the source itself, whatever bytes they have. */
static void quote_member(kiln_text *text, kiln_str s) {
  kiln_text_putc(text, '"');
  for (size_t i = 0; i < s.len; i++) {
    const unsigned char c = (unsigned char)s.data[i];
    if (c == '"' || c == '\\')
      kiln_text_printf(text, "\\%c", c);
    else if (c < 0x20 || c == 0x7f)
      kiln_text_printf(text, "\\%03o", c);
    else
      kiln_text_putc(text, (char)c);
  }
  kiln_text_putc(text, '"');
}

static kiln_status *print_members(kiln_printer *p, kiln_text *text, const kiln_class_info *info) {
  for (int i = 0; i < info->member_count; i++) {
    kiln_text_printf(text, "  " KILN_STR_FMT " = ", KILN_STR_ARG(info->member_names[i]));
    const kiln_ivalue value = info->member_values[i];
    if (value.tag == KILN_TAG_STRING)
      quote_member(text, kiln_string_view(value.u.string));
    else
      KILN_TRY(kiln__print_literal(p, text, value, NULL));
    kiln_text_putc(text, '\n');
  }
  return NULL;
}

static kiln_status *print_fields(kiln_printer *p, kiln_text *text, const kiln_type *type) {
  for (int i = 0; i < type->elem_count; i++) {
    kiln_text_printf(text, "  " KILN_STR_FMT " : ", KILN_STR_ARG(type->names[i]));
    KILN_TRY(kiln__print_type_between(p, text, "", type->elems[i], "\n"));
  }
  return NULL;
}

static kiln_status *print_class_body(kiln_printer *p, kiln_text *text, const kiln_type *type) {
  switch (type->kind) {
    case KILN_TYPE_TUPLE: return print_fields(p, text, type);
    case KILN_TYPE_ENUM: return print_members(p, text, type->cls);
    case KILN_TYPE_CLASS: KILN_TRY(print_plain_class(p, text, type)); break;
    default: break;
  }
  const kiln_map *methods = &kiln_class_of(type)->methods;
  for (int i = 0; i < methods->count; i++) {
    if (methods->entries[i].value) {
      KILN_TRY(print_function(p, text, methods->entries[i].value, 1));
    }
  }
  return NULL;
}

static kiln_status *print_class(kiln_printer *p, kiln_text *text, const kiln_type *type,
                                kiln_str qualname) {
  const char *base = "";
  bool module = type->cls && type->cls->is_module;
  if (type->kind == KILN_TYPE_TUPLE) base = "(NamedTuple)";
  if (type->kind == KILN_TYPE_ENUM) base = "(Enum)";
  if (type->kind == KILN_TYPE_INTERFACE) base = module ? "(ModuleInterface)" : "(Interface)";
  if (type->kind == KILN_TYPE_CLASS && module) base = "(Module)";
  if (type->kind != KILN_TYPE_TUPLE && (!type->cls || !type->cls->ir)) {
    return KILN_ERROR(KILN_UNSUPPORTED, "there is no code for class " KILN_STR_FMT,
                      KILN_STR_ARG(qualname));
  }
  kiln_text_printf(text, "class " KILN_STR_FMT "%s:\n", KILN_STR_ARG(kiln_str_last_part(qualname)),
                   base);
  const size_t begin = text->len;
  KILN_TRY(print_class_body(p, text, type));
  if (text->len == begin) kiln_text_puts(text, "  pass\n");
  return NULL;
}

/* -- Files -- */

static kiln_text *file_of(kiln_printer *p, kiln_str qualname) {
  const kiln_str last = kiln_str_last_part(qualname);
  const size_t len = qualname.len - last.len - (last.len < qualname.len ? 1 : 0);
  char *path = kiln_arena_printf(p->arena, "code/%.*s.py", (int)len, qualname.data);
  for (char *c = path; c < path + 5 + len; c++) {
    if (*c == '.') *c = '/';
  }
  const kiln_str name = kiln_str_from(path);
  for (int i = 0; i < p->out->files.count; i++) {
    if (kiln_str_equal(p->out->files.data[i]->name, name)) return &p->out->files.data[i]->text;
  }
  kiln_printed_file *file = KILN_NEW(p->arena, kiln_printed_file);
  file->name = name;
  file->text = kiln_text_in(p->arena);
  kiln_vec_push(p->arena, &p->out->files, file);
  return &file->text;
}

/* -- What the state needs: classes behind interfaces, Any and Optional -- */

typedef struct state_walk {
  kiln_printer *p;
  kiln_map seen;                 /* boxes */
  KILN_VEC(kiln_ivalue) waiting; /* borrowed */
} state_walk;

static void visit(state_walk *w, kiln_ivalue v) {
  if (v.tag < KILN_TAG_LIST || kiln_map_find_ptr(&w->seen, v.u.box)) return;
  kiln_map_set_ptr(&w->seen, v.u.box, w);
  kiln_vec_push(w->p->arena, &w->waiting, v);
}

static void need_state(kiln_printer *p, kiln_ivalue root) {
  state_walk w = {.p = p};
  w.seen = kiln_map_in(p->arena);
  visit(&w, root);
  while (w.waiting.count > 0) {
    const kiln_ivalue v = kiln_vec_pop(&w.waiting);
    int64_t index = 0;
    kiln_ivalue *key, *value;
    switch ((kiln_tag)v.tag) {
      case KILN_TAG_LIST:
        if (v.u.list->elem_type) kiln__need_type(p, v.u.list->elem_type);
        for (int64_t i = 0; i < v.u.list->count; i++) visit(&w, v.u.list->items[i]);
        break;
      case KILN_TAG_TUPLE:
        if (v.u.tuple->type) kiln__need_type(p, v.u.tuple->type);
        for (int64_t i = 0; i < v.u.tuple->count; i++) visit(&w, v.u.tuple->items[i]);
        break;
      case KILN_TAG_DICT:
        if (v.u.dict->value_type) kiln__need_type(p, v.u.dict->value_type);
        while (kiln_dict_next(v.u.dict, &index, &key, &value)) visit(&w, *value);
        break;
      case KILN_TAG_OBJECT:
        kiln__need_type(p, v.u.object->type);
        for (int64_t i = 0; i < v.u.object->count; i++) visit(&w, v.u.object->slots[i]);
        break;
      case KILN_TAG_ENUM: kiln__need_type(p, v.u.enumerator->type); break;
      default: break;
    }
  }
}

kiln_status *kiln__python_print(kiln_arena *arena, kiln_ivalue root, kiln_printed *out) {
  kiln_printer p = {.arena = arena, .out = out};
  *out = (kiln_printed){.version = 3};
  p.known = kiln_map_in(arena);
  p.constants = kiln_map_in(arena);
  p.strings = kiln_map_in(arena);
  kiln__need_type(&p, root.u.object->type);
  need_state(&p, root);
  for (int i = 0; i < p.items.count; i++) {
    const kiln_printed_item item = p.items.data[i]; /* the array grows */
    kiln_text *text = file_of(&p, item.qualname);
    if (item.type)
      KILN_TRY(print_class(&p, text, item.type, item.qualname));
    else
      KILN_TRY(print_function(&p, text, item.function, 0));
  }
  return NULL;
}
