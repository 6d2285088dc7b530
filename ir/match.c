/* match.c: overload resolution by types; PyTorch's rules (reference: schema_matching). */
#include "ir/match.h"

/* -- Type variables -- */

static const kiln_type *bound(const kiln_type_env *env, kiln_str name) {
  for (int i = 0; i < env->count; i++) {
    if (kiln_str_equal(env->vars[i].name, name)) return env->vars[i].type;
  }
  return NULL;
}

/* What was bound first stays; whether the other is a subtype of it is for the caller to ask. */
static bool bind(kiln_type_env *env, kiln_str name, const kiln_type *actual) {
  for (int i = 0; i < env->count; i++) {
    if (!kiln_str_equal(env->vars[i].name, name)) continue;
    return kiln_type_unify(env->types, env->vars[i].type, actual, false) != NULL;
  }
  if (env->count == KILN_MAX_TYPE_VARS) return false;
  env->vars[env->count].name = name;
  env->vars[env->count++].type = actual;
  return true;
}

/* The join of a tuple's elements, NULL when there is none. */
static const kiln_type *join_elems(kiln_type_env *env, const kiln_type *tuple) {
  if (tuple->elem_count == 0) return NULL;
  const kiln_type *join = tuple->elems[0];
  for (int i = 1; join && i < tuple->elem_count; i++) {
    join = kiln_type_unify(env->types, join, tuple->elems[i], false);
  }
  return join;
}

bool kiln_type_env_match(kiln_type_env *env, const kiln_type *formal, const kiln_type *actual) {
  if (!kiln_type_has_var(formal)) return true;
  switch (formal->kind) {
    case KILN_TYPE_VAR: return bind(env, formal->name, actual);
    case KILN_TYPE_LIST:
      if (actual->kind == KILN_TYPE_TUPLE) {
        const kiln_type *elem = join_elems(env, actual);
        return elem && kiln_type_env_match(env, formal->elems[0], elem);
      }
      break;
    case KILN_TYPE_OPTIONAL:
      if (actual->kind == KILN_TYPE_NONE) return false; /* T cannot be told from None */
      if (actual->kind != KILN_TYPE_OPTIONAL) {
        return kiln_type_env_match(env, formal->elems[0], actual);
      }
      break;
    default: break;
  }
  if (actual->kind != formal->kind || actual->elem_count != formal->elem_count) return false;
  for (int i = 0; i < formal->elem_count; i++) {
    if (!kiln_type_env_match(env, formal->elems[i], actual->elems[i])) return false;
  }
  return true;
}

static const kiln_type *eval_tuple(kiln_type_env *env, const kiln_type *formal) {
  enum { MAX_ELEMS = 32 };
  const kiln_type *elems[MAX_ELEMS];
  if (formal->elem_count > MAX_ELEMS) return NULL;
  for (int i = 0; i < formal->elem_count; i++) {
    elems[i] = kiln_type_env_eval(env, formal->elems[i]);
    if (!elems[i]) return NULL;
  }
  return kiln_type_tuple(env->types, elems, formal->elem_count);
}

const kiln_type *kiln_type_env_eval(kiln_type_env *env, const kiln_type *formal) {
  if (!kiln_type_has_var(formal)) return formal;
  if (formal->kind == KILN_TYPE_VAR) return bound(env, formal->name);
  if (formal->kind == KILN_TYPE_TUPLE) return eval_tuple(env, formal);
  const kiln_type *first = formal->elem_count ? kiln_type_env_eval(env, formal->elems[0]) : NULL;
  if (!first) return NULL;
  switch (formal->kind) {
    case KILN_TYPE_LIST: return kiln_type_list(env->types, first);
    case KILN_TYPE_OPTIONAL: return kiln_type_optional(env->types, first);
    case KILN_TYPE_FUTURE:
    case KILN_TYPE_AWAIT:
    case KILN_TYPE_RREF: return kiln_type_wrap(env->types, formal->kind, first);
    case KILN_TYPE_DICT: {
      const kiln_type *value = kiln_type_env_eval(env, formal->elems[1]);
      return value ? kiln_type_dict(env->types, first, value) : NULL;
    }
    default: return NULL;
  }
}

/* -- One argument -- */

const char *kiln_fit_op_name(kiln_fit fit) {
  switch (fit) {
    case KILN_FIT_TENSOR_TO_INT: return "aten::IntImplicit";
    case KILN_FIT_TENSOR_TO_FLOAT: return "aten::FloatImplicit";
    case KILN_FIT_TENSOR_TO_COMPLEX: return "aten::ComplexImplicit";
    case KILN_FIT_TENSOR_TO_NUMBER: return "aten::ScalarImplicit";
    case KILN_FIT_NUMBER_TO_INT:
    case KILN_FIT_BOOL_TO_INT: return "aten::Int";
    case KILN_FIT_NUMBER_TO_FLOAT: return "aten::Float";
    case KILN_FIT_NUMBER_TO_COMPLEX: return "aten::Complex";
    case KILN_FIT_STR_TO_DEVICE: return "aten::device";
    default: return NULL;
  }
}

static const kiln_type *without_optional(const kiln_type *type) {
  return type->kind == KILN_TYPE_OPTIONAL ? type->elems[0] : type;
}

static bool repeats(const kiln_schema_arg *formal, const kiln_type *actual) {
  if (!formal->fixed_count) return false;
  if (actual->kind != KILN_TYPE_INT && actual->kind != KILN_TYPE_FLOAT) return false;
  const kiln_type *list = without_optional(formal->type);
  return list->kind == KILN_TYPE_LIST && list->elems[0] == actual;
}

static kiln_fit implicit_fit(const kiln_type *formal, const kiln_type *actual) {
  bool to_int = formal->kind == KILN_TYPE_INT, to_number = formal->kind == KILN_TYPE_NUMBER;
  bool to_float = formal->kind == KILN_TYPE_FLOAT, to_complex = formal->kind == KILN_TYPE_COMPLEX;
  switch (actual->kind) {
    case KILN_TYPE_TENSOR:
      if (to_int) return KILN_FIT_TENSOR_TO_INT;
      if (to_float) return KILN_FIT_TENSOR_TO_FLOAT;
      if (to_complex) return KILN_FIT_TENSOR_TO_COMPLEX;
      return to_number ? KILN_FIT_TENSOR_TO_NUMBER : KILN_FIT_NO;
    case KILN_TYPE_NUMBER:
      if (to_int) return KILN_FIT_NUMBER_TO_INT;
      if (to_float) return KILN_FIT_NUMBER_TO_FLOAT;
      return to_complex ? KILN_FIT_NUMBER_TO_COMPLEX : KILN_FIT_NO;
    case KILN_TYPE_BOOL: return to_int || to_number ? KILN_FIT_BOOL_TO_INT : KILN_FIT_NO;
    case KILN_TYPE_STR:
      return formal->kind == KILN_TYPE_DEVICE ? KILN_FIT_STR_TO_DEVICE : KILN_FIT_NO;
    default: return KILN_FIT_NO;
  }
}

static bool elems_fit(const kiln_type *tuple, const kiln_type *elem) {
  for (int i = 0; i < tuple->elem_count; i++) {
    if (!kiln_type_is_subtype(tuple->elems[i], elem)) return false;
  }
  return true;
}

/* Lists are invariant, but Tensor[] goes where Tensor?[] is asked for (aten::index). */
static bool is_optional_tensor_list(const kiln_type *formal, const kiln_type *actual) {
  return formal->kind == KILN_TYPE_LIST && actual->kind == KILN_TYPE_LIST &&
         formal->elems[0]->kind == KILN_TYPE_OPTIONAL &&
         kiln_type_is_tensor(formal->elems[0]->elems[0]) && kiln_type_is_tensor(actual->elems[0]);
}

kiln_fit kiln_match_arg(kiln_type_env *env, const kiln_schema_arg *formal, const kiln_type *actual,
                        bool empty_list, bool convert, const kiln_type **out_type) {
  *out_type = formal->type;
  if (repeats(formal, actual)) return KILN_FIT_REPEAT;
  const kiln_type *list = without_optional(formal->type);
  if (empty_list && list->kind == KILN_TYPE_LIST && !kiln_type_has_var(list)) {
    *out_type = list;
    return KILN_FIT_EMPTY_LIST;
  }
  if (!kiln_type_env_match(env, formal->type, actual)) return KILN_FIT_NO;
  const kiln_type *type = kiln_type_env_eval(env, formal->type);
  if (!type) return KILN_FIT_NO;
  *out_type = type;
  if (kiln_type_is_subtype(actual, type)) return KILN_FIT_SAME;
  const kiln_type *bare = without_optional(type);
  if (is_optional_tensor_list(bare, actual)) return KILN_FIT_SAME;
  if (actual->kind == KILN_TYPE_TUPLE && bare->kind == KILN_TYPE_LIST) {
    *out_type = bare;
    return elems_fit(actual, bare->elems[0]) ? KILN_FIT_TUPLE_TO_LIST : KILN_FIT_NO;
  }
  if (!convert || actual->kind == KILN_TYPE_OPTIONAL) return KILN_FIT_NO;
  return implicit_fit(bare, actual);
}

/* -- Schemas -- */

typedef struct matcher {
  kiln_type_env *env;
  const kiln_schema *schema;
  const kiln_actual *actuals;
  int count, positional; /* actuals in all, and those without keyword */
  int used;              /* positional ones */
  uint64_t keywords_used;
  bool convert;
  kiln_text *why;
} matcher;

static bool is_aten(const kiln_schema *schema) { return kiln_str_starts(schema->name, "aten::"); }

static int find_keyword(const matcher *m, const kiln_schema_arg *formal) {
  for (int i = m->positional; i < m->count; i++) {
    kiln_str keyword = m->actuals[i].keyword;
    if (kiln_str_equal(keyword, formal->name)) return i;
    if (is_aten(m->schema) && kiln_str_is(formal->name, "self") && kiln_str_is(keyword, "input")) {
      return i;
    }
  }
  return -1;
}

static void explain_arg(const matcher *m, const kiln_schema_arg *formal, const kiln_type *actual) {
  if (!m->why) return;
  kiln_text_printf(m->why, "argument '" KILN_STR_FMT "' expects ", KILN_STR_ARG(formal->name));
  kiln_type_print_annotation(m->why, formal->type);
  kiln_text_puts(m->why, " but got ");
  kiln_type_print_annotation(m->why, actual);
}

static void explain_name(const matcher *m, const char *before, kiln_str name, const char *after) {
  if (!m->why) return;
  kiln_text_puts(m->why, before);
  kiln_text_put(m->why, name);
  kiln_text_puts(m->why, after);
}

/* Trailing scalars may be written where the last positional formal is a list: zeros(2, 3). */
static bool try_collect(matcher *m, int index, kiln_match_slot *slot) {
  const kiln_schema *s = m->schema;
  const kiln_schema_arg *formal = &s->args[index];
  bool last = index + 1 == s->arg_count || s->args[index + 1].kwarg_only;
  if (!m->convert || !last || formal->fixed_count || formal->type->kind != KILN_TYPE_LIST) {
    return false;
  }
  const kiln_type *elem = formal->type->elems[0];
  const kiln_type *first = m->actuals[m->used].type;
  if (elem->kind == KILN_TYPE_VAR || first->kind == KILN_TYPE_LIST) return false;
  if (first->kind == KILN_TYPE_TUPLE && elems_fit(first, elem)) return false;
  for (int i = m->used; i < m->positional; i++) {
    if (!kiln_type_is_subtype(m->actuals[i].type, elem)) return false;
  }
  *slot = (kiln_match_slot){KILN_FIT_COLLECT, m->used, m->positional - m->used, formal->type};
  m->used = m->positional;
  return true;
}

static bool match_slot(matcher *m, int index, kiln_match_slot *slot) {
  const kiln_schema_arg *formal = &m->schema->args[index];
  int at = -1;
  if (!formal->kwarg_only && m->used < m->positional) {
    if (try_collect(m, index, slot)) return true;
    at = m->used++;
  } else {
    at = find_keyword(m, formal);
    if (at >= 0) m->keywords_used |= (uint64_t)1 << (at & 63);
  }
  if (at < 0) {
    *slot = (kiln_match_slot){KILN_FIT_DEFAULT, -1, 0, formal->type};
    if (formal->has_default) return true;
    explain_name(m, "argument '", formal->name, "' is missing");
    return false;
  }
  const kiln_actual *actual = &m->actuals[at];
  *slot = (kiln_match_slot){.actual = at};
  slot->fit =
      kiln_match_arg(m->env, formal, actual->type, actual->empty_list, m->convert, &slot->type);
  if (slot->fit == KILN_FIT_NO) explain_arg(m, formal, actual->type);
  return slot->fit != KILN_FIT_NO;
}

bool kiln_match_schema(kiln_type_env *env, const kiln_schema *schema, const kiln_actual *actuals,
                       int count, bool convert, kiln_match_slot *slots, int *out_varargs,
                       kiln_text *why) {
  matcher m = {.env = env,
               .schema = schema,
               .actuals = actuals,
               .count = count,
               .convert = convert,
               .why = why};
  while (m.positional < count && actuals[m.positional].keyword.len == 0) m.positional++;
  for (int i = 0; i < schema->arg_count; i++) {
    if (!match_slot(&m, i, &slots[i])) return false;
  }
  *out_varargs = schema->is_vararg ? m.used : count;
  if (m.used < m.positional && !schema->is_vararg) {
    if (why) {
      kiln_text_printf(why, "expected at most %d positional arguments but got %d", m.used,
                       m.positional);
    }
    return false;
  }
  for (int i = m.positional; i < count; i++) {
    if (i - m.positional < 64 && (m.keywords_used & ((uint64_t)1 << (i & 63)))) continue;
    explain_name(&m, "unknown keyword argument '", actuals[i].keyword, "'");
    return false;
  }
  return true;
}

int kiln_op_set_max_args(const kiln_op_set *set) {
  int max = 0;
  for (int i = 0; i < set->count; i++) {
    const kiln_schema *s = set->ops[i]->schema;
    if (s && s->arg_count > max) max = s->arg_count;
  }
  return max;
}

const kiln_op *kiln_match_overloads(kiln_type_env *env, const kiln_op_set *set,
                                    const kiln_actual *actuals, int count, kiln_match_slot *slots,
                                    int *out_varargs, kiln_text *why) {
  for (int pass = set->count == 1 ? 1 : 0; pass < 2; pass++) {
    for (int i = 0; i < set->count; i++) {
      env->count = 0;
      const kiln_schema *s = set->ops[i]->schema;
      if (s && kiln_match_schema(env, s, actuals, count, pass == 1, slots, out_varargs, NULL)) {
        return set->ops[i];
      }
    }
  }
  for (int i = 0; why && i < set->count; i++) { /* again, for the complaints */
    env->count = 0;
    const kiln_schema *s = set->ops[i]->schema;
    if (!s) continue;
    kiln_text_puts(why, "\n  ");
    kiln_schema_print(why, s);
    kiln_text_puts(why, ": ");
    (void)kiln_match_schema(env, s, actuals, count, true, slots, out_varargs, why);
  }
  return NULL;
}

/* -- Nodes -- */

static bool node_fits(kiln_type_table *types, const kiln_schema *s, const kiln_type *const *inputs,
                      int count) {
  if (count < s->arg_count || (count > s->arg_count && !s->is_vararg)) return false;
  kiln_type_env env = {.types = types};
  for (int i = 0; i < s->arg_count; i++) {
    const kiln_type *formal = s->args[i].type;
    if (kiln_type_has_var(formal)) {
      if (formal->kind == KILN_TYPE_OPTIONAL && inputs[i]->kind == KILN_TYPE_NONE) continue;
      if (!kiln_type_env_match(&env, formal, inputs[i])) return false;
      formal = kiln_type_env_eval(&env, formal);
      if (!formal) return false;
    }
    if (!kiln_type_is_subtype(inputs[i], formal) && !is_optional_tensor_list(formal, inputs[i])) {
      return false;
    }
  }
  return true;
}

const kiln_op *kiln_match_node(kiln_type_table *types, const kiln_op_set *set,
                               const kiln_type *const *inputs, int count) {
  for (int i = 0; i < set->count; i++) {
    const kiln_op *op = set->ops[i];
    if (!op->schema || node_fits(types, op->schema, inputs, count)) return op;
  }
  return NULL;
}
