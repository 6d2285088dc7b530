/* classes.c: class statements to types: modules, script classes, NamedTuples, enums, interfaces. */
#include "frontend/torchscript/loader.h"

kiln_function *kiln__declare(kiln_loader *l, kiln_code_file *file, const kiln_ast *def,
                             kiln_str qualname, const kiln_type *owner) {
  kiln_function *function = kiln_unit_add_function(l->unit, qualname, owner);
  kiln_pending_body *body = KILN_NEW(l->ast_arena, kiln_pending_body);
  body->file = file;
  body->def = def;
  function->pending = body;
  return function;
}

static void declare_methods(kiln_loader *l, kiln_code_file *file, const kiln_ast *body,
                            kiln_str qualname, const kiln_type *type) {
  for (int i = 0; i < body->count; i++) {
    const kiln_ast *def = body->kids[i];
    if (def->kind != KILN_AST_DEF || kiln_class_find_method(type, def->text)) continue;
    const char *name = kiln_arena_printf(l->arena, KILN_STR_FMT "." KILN_STR_FMT,
                                         KILN_STR_ARG(qualname), KILN_STR_ARG(def->text));
    kiln__declare(l, file, def, kiln_str_from(name), type);
  }
}

/* -- NamedTuple -- */

static kiln_status *define_named_tuple(kiln_loader *l, kiln_code_file *file, const kiln_ast *body,
                                       kiln_str qualname, const kiln_type **out_type) {
  kiln_str *names = KILN_NEW_ARRAY(l->ast_arena, kiln_str, body->count + 1);
  const kiln_type **elems = KILN_NEW_ARRAY(l->ast_arena, const kiln_type *, body->count + 1);
  int count = 0;
  for (int i = 0; i < body->count; i++) {
    const kiln_ast *item = body->kids[i];
    if (item->kind == KILN_AST_PASS) continue;
    bool plain = item->kind == KILN_AST_DECLARE && item->kids[0]->kind == KILN_AST_NAME;
    if (!plain) {
      return kiln_source_error(&file->source, item->begin, "a NamedTuple has only fields");
    }
    names[count] = kiln_arena_str(l->arena, item->kids[0]->text);
    KILN_TRY(kiln__resolve_type(l, &file->source, item->kids[1], &elems[count]));
    count++;
  }
  *out_type = kiln_type_named_tuple(l->types, qualname, names, elems, count);
  if (kiln_type_weight(*out_type) > KILN_TS_MAX_TYPE_WEIGHT + 16 * (int64_t)count) {
    return kiln_source_error(&file->source, body->begin, "a NamedTuple of too many parts");
  }
  return NULL;
}

/* -- Enum -- */

static kiln_status *define_enum(kiln_loader *l, kiln_code_file *file, const kiln_ast *body,
                                kiln_str qualname, const kiln_type **out_type) {
  kiln_class *cls = kiln_unit_add_class(l->unit, KILN_TYPE_ENUM, qualname);
  kiln_class_info *info = cls->type->cls;
  info->member_names = KILN_NEW_ARRAY(l->arena, kiln_str, body->count + 1);
  info->member_values = KILN_NEW_ARRAY(l->arena, kiln_ivalue, body->count + 1);
  for (int i = 0; i < body->count; i++) {
    const kiln_ast *item = body->kids[i];
    bool plain =
        item->kind == KILN_AST_ASSIGN && item->count == 3 && item->kids[2]->kind == KILN_AST_NAME;
    if (!plain) {
      return kiln_source_error(&file->source, item->begin, "an Enum has only members");
    }
    kiln_ivalue value;
    KILN_TRY(kiln__eval_literal(l, file, item->kids[0], NULL, &value));
    const kiln_type *type = value.tag == KILN_TAG_INT      ? kiln_type_basic(KILN_TYPE_INT)
                            : value.tag == KILN_TAG_FLOAT  ? kiln_type_basic(KILN_TYPE_FLOAT)
                            : value.tag == KILN_TAG_STRING ? kiln_type_basic(KILN_TYPE_STR)
                                                           : NULL;
    if (!type || (info->value_type && info->value_type != type)) {
      return kiln_source_error(&file->source, item->begin,
                               "members of an Enum are all ints, all floats or all strings");
    }
    info->value_type = type;
    info->member_names[info->member_count] = kiln_arena_str(l->arena, item->kids[2]->text);
    info->member_values[info->member_count++] = value;
  }
  *out_type = cls->type;
  return NULL;
}

/* -- Modules and script classes -- */

typedef struct attributes {
  KILN_VEC(kiln_class_attribute) slots;
  kiln_map names;                       /* of slots: index + 1 */
  KILN_VEC(const kiln_ast *) constants; /* Final assignments */
  const kiln_ast *parameters, *buffers, *pre_hooks, *hooks;
} attributes;

static bool is_final(const kiln_ast *type) {
  return type && type->kind == KILN_AST_INDEX && type->kids[0]->kind == KILN_AST_NAME &&
         kiln_str_is(type->kids[0]->text, "Final");
}

static kiln_status *add_slot(kiln_loader *l, kiln_code_file *file, kiln_str name,
                             const kiln_ast *type, attributes *out) {
  kiln_class_attribute slot = {.name = kiln_arena_str(l->arena, name)};
  if (kiln_map_find(&out->names, name)) {
    return kiln_source_error(&file->source, type->begin,
                             "attribute '" KILN_STR_FMT "' is declared twice", KILN_STR_ARG(name));
  }
  KILN_TRY(kiln__resolve_type(l, &file->source, type, &slot.type));
  kiln_vec_push(l->arena, &out->slots, slot);
  kiln_map_set(&out->names, slot.name, (void *)(intptr_t)out->slots.count);
  return NULL;
}

/* __parameters__ = [...], __annotations__["0"] = T, name : Final[int] = 3. */
static kiln_status *read_assignment(kiln_loader *l, kiln_code_file *file, const kiln_ast *item,
                                    attributes *out) {
  const kiln_ast *value = item->kids[0], *type = item->kids[1], *target = item->kids[2];
  if (item->count != 3) {
    return kiln_source_error(&file->source, item->begin, "not a declaration of a class");
  }
  if (target->kind == KILN_AST_INDEX && target->count == 2 &&
      target->kids[0]->kind == KILN_AST_NAME &&
      kiln_str_is(target->kids[0]->text, "__annotations__") &&
      target->kids[1]->kind == KILN_AST_STRING) {
    return add_slot(l, file, target->kids[1]->text, value, out);
  }
  if (target->kind != KILN_AST_NAME) {
    return kiln_source_error(&file->source, item->begin, "not a declaration of a class");
  }
  kiln_str name = target->text;
  if (is_final(type)) {
    kiln_vec_push(l->ast_arena, &out->constants, item);
    return NULL;
  }
  if (type) return add_slot(l, file, name, type, out);
  if (kiln_str_is(name, "__parameters__"))
    out->parameters = value;
  else if (kiln_str_is(name, "__buffers__"))
    out->buffers = value;
  else if (kiln_str_is(name, "__forward_pre_hooks__"))
    out->pre_hooks = value;
  else if (kiln_str_is(name, "__forward_hooks__"))
    out->hooks = value;
  else if (!kiln_str_starts(name, "__")) {
    return kiln_source_error(&file->source, item->begin, "attribute '" KILN_STR_FMT "' has no type",
                             KILN_STR_ARG(name));
  }
  return NULL;
}

/* Those that __parameters__ or __buffers__ name. */
static void mark_named(attributes *a, const kiln_ast *list, bool buffers) {
  for (int i = 0; list && list->kind == KILN_AST_LIST && i < list->count; i++) {
    if (list->kids[i]->kind != KILN_AST_STRING) continue;
    intptr_t slot = (intptr_t)kiln_map_find(&a->names, list->kids[i]->text);
    if (!slot) continue;
    kiln_class_attribute *attribute = &a->slots.data[slot - 1];
    *(buffers ? &attribute->is_buffer : &attribute->is_parameter) = true;
  }
}

static void mark_target(attributes *a, const kiln_ast *target) {
  const bool is_many = target->kind == KILN_AST_TUPLE || target->kind == KILN_AST_LIST;
  for (int i = 0; is_many && i < target->count; i++) mark_target(a, target->kids[i]);
  if (target->kind != KILN_AST_ATTR) return;
  const intptr_t slot = (intptr_t)kiln_map_find(&a->names, target->text);
  if (slot) a->slots.data[slot - 1].is_set = true;
}

/* Those that the code assigns to. Of which object they are is not asked. */
static void mark_set(attributes *a, const kiln_ast *code) {
  const bool is_assignment = code->kind == KILN_AST_ASSIGN;
  for (int i = 2; is_assignment && i < code->count; i++) mark_target(a, code->kids[i]);
  if (code->kind == KILN_AST_AUGMENTED) mark_target(a, code->kids[0]);
  for (int i = 0; i < code->count; i++) {
    if (code->kids[i]) mark_set(a, code->kids[i]);
  }
}

static kiln_status *set_constants(kiln_loader *l, kiln_code_file *file, const attributes *a,
                                  kiln_class *cls) {
  for (int i = 0; i < a->constants.count; i++) {
    const kiln_ast *item = a->constants.data[i];
    const kiln_type *type;
    kiln_ivalue *value = KILN_NEW(l->arena, kiln_ivalue);
    KILN_TRY(kiln__resolve_type(l, &file->source, item->kids[1], &type));
    KILN_TRY(kiln__eval_literal(l, file, item->kids[0], type, value));
    if (!kiln_ivalue_matches(*value, type)) {
      return kiln_source_error(&file->source, item->begin,
                               "constant '" KILN_STR_FMT "' is not of its type",
                               KILN_STR_ARG(item->kids[2]->text));
    }
    kiln_map_set(&cls->constants, kiln_arena_str(l->arena, item->kids[2]->text), value);
  }
  return NULL;
}

static kiln_status *set_hooks(kiln_loader *l, kiln_code_file *file, kiln_class *cls,
                              const kiln_ast *list, bool before) {
  for (int i = 0; list && list->kind == KILN_AST_LIST && i < list->count; i++) {
    kiln_str name = list->kids[i]->kind == KILN_AST_STRING ? list->kids[i]->text : (kiln_str){0};
    kiln_function *hook = kiln_class_find_method(cls->type, name);
    if (!hook) return kiln_source_error(&file->source, list->begin, "a hook that is no method");
    if (before)
      kiln_vec_push(l->arena, &cls->forward_pre_hooks, hook);
    else
      kiln_vec_push(l->arena, &cls->forward_hooks, hook);
  }
  return NULL;
}

static kiln_status *define_plain(kiln_loader *l, kiln_code_file *file, const kiln_ast *body,
                                 kiln_str qualname, bool is_module, const kiln_type **out_type) {
  attributes a = {0};
  a.names = kiln_map_in(l->ast_arena);
  for (int i = 0; i < body->count; i++) {
    const kiln_ast *item = body->kids[i];
    switch (item->kind) {
      case KILN_AST_DEF:
      case KILN_AST_PASS: break;
      case KILN_AST_ASSIGN: KILN_TRY(read_assignment(l, file, item, &a)); break;
      case KILN_AST_DECLARE:
        if (item->kids[0]->kind == KILN_AST_NAME) {
          KILN_TRY(add_slot(l, file, item->kids[0]->text, item->kids[1], &a));
          break;
        }
        /* fall through */
      default: return kiln_source_error(&file->source, item->begin, "not a declaration of a class");
    }
  }
  kiln_class *cls = kiln_unit_add_class(l->unit, KILN_TYPE_CLASS, qualname);
  kiln_class_info *info = cls->type->cls;
  info->is_module = is_module;
  mark_named(&a, a.parameters, false);
  mark_named(&a, a.buffers, true);
  mark_set(&a, body);
  kiln_class_set_attributes(info, l->arena, a.slots.data, a.slots.count);
  *out_type = cls->type;
  KILN_TRY(set_constants(l, file, &a, cls));
  declare_methods(l, file, body, qualname, cls->type);
  KILN_TRY(set_hooks(l, file, cls, a.pre_hooks, true));
  return set_hooks(l, file, cls, a.hooks, false);
}

/* The function's schema, which may still have to be resolved while its file is being loaded. */
static const kiln_schema *schema_of(kiln_function *function) {
  if (!function->schema && function->unit->frontend) {
    kiln_status_destroy(kiln__loader_schema(function->unit->frontend, function));
  }
  return function->schema;
}

/* Same arguments, and a result that fits: kiln_class_info.implements. */
static bool implements(const kiln_type *sub, const kiln_type *interface, kiln_subtype_walk *walk) {
  const kiln_map *methods = &kiln_class_of(interface)->methods;
  for (int i = 0; i < methods->count; i++) {
    if (!methods->entries[i].value) continue;
    kiln_function *mine = kiln_class_find_method(sub, methods->entries[i].key);
    if (!mine) return false;
    const kiln_schema *want = schema_of(methods->entries[i].value), *have = schema_of(mine);
    if (!want || !have || want->arg_count > have->arg_count) return false;
    for (int k = 1; k < have->arg_count; k++) {
      if (k >= want->arg_count
              ? !have->args[k].has_default
              : !kiln_type_is_subtype_within(walk, want->args[k].type, have->args[k].type)) {
        return false;
      }
    }
    if (!kiln_type_is_subtype_within(walk, have->results[0].type, want->results[0].type)) {
      return false;
    }
  }
  return true;
}

static kiln_status *define_interface(kiln_loader *l, kiln_code_file *file, const kiln_ast *body,
                                     kiln_str qualname, bool is_module,
                                     const kiln_type **out_type) {
  kiln_class *cls = kiln_unit_add_class(l->unit, KILN_TYPE_INTERFACE, qualname);
  cls->type->cls->is_module = is_module;
  cls->type->cls->is_interface = true;
  cls->type->cls->implements = implements;
  declare_methods(l, file, body, qualname, cls->type);
  *out_type = cls->type;
  return NULL;
}

kiln_status *kiln__define_class(kiln_loader *l, kiln_code_file *file, const kiln_ast *ast,
                                kiln_str qualname, const kiln_type **out_type) {
  const kiln_ast *base = ast->kids[0], *body = ast->kids[1];
  kiln_str kind = base && base->kind == KILN_AST_NAME ? base->text : (kiln_str){0};
  if (!base) return define_plain(l, file, body, qualname, false, out_type);
  if (kiln_str_is(kind, "Module")) return define_plain(l, file, body, qualname, true, out_type);
  if (kiln_str_is(kind, "NamedTuple")) {
    return define_named_tuple(l, file, body, qualname, out_type);
  }
  if (kiln_str_is(kind, "Enum")) return define_enum(l, file, body, qualname, out_type);
  if (kiln_str_is(kind, "Interface") || kiln_str_is(kind, "ModuleInterface")) {
    return define_interface(l, file, body, qualname, kiln_str_is(kind, "ModuleInterface"),
                            out_type);
  }
  return kiln_source_error(&file->source, base->begin, "a class with an unknown base");
}
