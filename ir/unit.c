/* unit.c: units: what an archive's code defines. The frontend fills them; bodies are compiled when
 * they are first needed (kiln_unit_ensure), and a body that fails to compile fails only its
 * callers. */
#include "ir/unit.h"

kiln_unit *kiln_unit_create(kiln_env *env, const kiln_registry *registry) {
  kiln_arena *arena = kiln_arena_scoped(env->mem);
  kiln_unit *unit = KILN_NEW(arena, kiln_unit);
  unit->arena = arena;
  unit->env = env;
  unit->registry = registry;
  unit->functions = kiln_map_in(arena);
  unit->classes = kiln_map_in(arena);
  kiln_status *status =
      kiln_type_table_create(env->mem, kiln_registry_types(registry), &unit->types);
  if (status) kiln_scope_fail(status);
  kiln_arena_keep(arena);
  return unit;
}

void kiln_unit_destroy(kiln_unit *unit) {
  if (!unit) return;
  if (unit->release_frontend) unit->release_frontend(unit);
  for (int i = 0; i < unit->all.count; i++) {
    kiln_function *function = unit->all.data[i];
    kiln_graph_release(function->graph);
    kiln_schema_deinit(function->schema);
    kiln_status_destroy(function->error);
  }
  for (int i = 0; i < unit->classes.count; i++) {
    kiln_class *cls = unit->classes.entries[i].value;
    if (cls) kiln_graph_release(cls->call_graph);
  }
  for (int i = 0; i < unit->owned.count; i++) kiln_ivalue_release(unit->owned.data[i]);
  kiln_type_table_destroy(unit->types);
  kiln_arena_destroy(unit->arena);
}

/* Another owner for a status that stays with the function: code and sentence, place and class. */
static kiln_status *copy_error(const kiln_function *function) {
  const kiln_status *error = function->error;
  if (kiln_status_code(error) == KILN_OUT_OF_MEMORY) return kiln_status_oom();
  kiln_status *copy = KILN_ERROR(kiln_status_code(error), "%s", kiln_status_message(error));
  if (kiln_status_exception(error)) {
    copy = kiln_status_set_exception(copy, kiln_status_exception(error));
  }
  if (kiln_status_location(error)) {
    copy = kiln_status_note(copy, "at %s", kiln_status_location(error));
  }
  return copy;
}

kiln_status *kiln_unit_ensure(kiln_function *function) {
  kiln_unit *unit = function->unit;
  if (function->error) return copy_error(function);
  if (function->graph && function->state == 2) return NULL;
  if (unit->ensure) {
    KILN_TRY(unit->ensure(unit, function));
    if (function->error) return copy_error(function);
  }
  if (function->graph) return NULL;
  return KILN_ERROR(KILN_INTERNAL, "function %s has no body", function->qualname);
}

/* -- Definitions -- */

kiln_function *kiln_unit_add_function(kiln_unit *unit, kiln_str qualname, const kiln_type *owner) {
  kiln_function *function = KILN_NEW(unit->arena, kiln_function);
  kiln_str name = kiln_arena_str(unit->arena, qualname);
  function->qualname = name.data;
  function->name = kiln_str_last_part(name);
  function->owner = owner;
  function->unit = unit;
  kiln_vec_push(unit->arena, &unit->all, function);
  kiln_map_set(&unit->functions, name, function);
  if (owner) kiln_map_set(&kiln_class_of(owner)->methods, function->name, function);
  return function;
}

kiln_class *kiln_unit_add_class(kiln_unit *unit, kiln_type_kind kind, kiln_str qualname) {
  kiln_class *cls = KILN_NEW(unit->arena, kiln_class);
  cls->methods = kiln_map_in(unit->arena);
  cls->constants = kiln_map_in(unit->arena);
  kiln_type *type = kiln_type_nominal(unit->types, kind, qualname);
  cls->type = type;
  cls->unit = unit;
  type->cls->ir = cls;
  kiln_map_set(&unit->classes, type->name, cls);
  return cls;
}

kiln_function *kiln_unit_find_function(const kiln_unit *unit, kiln_str qualname) {
  return kiln_map_find(&unit->functions, qualname);
}

kiln_function *kiln_class_find_method(const kiln_type *type, kiln_str name) {
  if (!type->cls || !type->cls->ir) return NULL;
  return kiln_map_find(&kiln_class_of(type)->methods, name);
}
