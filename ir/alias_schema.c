/* alias_schema.c: what the alias marks of a schema say about a node.
 *
 * PyTorch makes wildcards of what goes into lists, (c -> *), and of what comes out, t(*). Here a
 * container that is known keeps what was put in, which is more exact. */
#include "ir/alias_build.h"

static bool is_container(const kiln_ir_value *value) {
  uint8_t containers = 1 << BUCKET_LIST | 1 << BUCKET_DICT | 1 << BUCKET_TUPLE |
                       1 << BUCKET_OBJECT | 1 << BUCKET_FUTURE;
  return kiln__alias_mask(value->type) & containers;
}

static bool writes_list(const kiln_schema_arg *arg) {
  const kiln_type *type = arg->type->kind == KILN_TYPE_OPTIONAL ? arg->type->elems[0] : arg->type;
  return arg->alias.is_write && (type->kind == KILN_TYPE_LIST || type->kind == KILN_TYPE_DICT);
}

/* -- Arguments -- */

/* Argument `into` is a list or dict that is written: the others may be in it afterwards. */
static void store_others(kiln_alias *a, const kiln_node *node, int into) {
  const kiln_ir_value *container = kiln_node_input(node, into);
  for (int i = 0; i < node->input_count; i++) {
    if (i == into) continue;
    const kiln_ir_value *other = kiln_node_input(node, i);
    kiln__alias_constrain(a, STORE, container, other);
    if (is_container(other)) kiln__alias_constrain(a, STORE_CONTENTS, container, other);
  }
}

/* The argument escapes into a result alone, as a split's tensor does into its views: whoever looks
 * at the result finds it there. */
static bool goes_to_result(const kiln_schema *s, const kiln_schema_arg *arg) {
  for (int i = 0; i < s->result_count; i++) {
    const kiln_schema_arg *result = &s->results[i];
    if ((result->alias.sets | result->elem_alias.sets) & arg->alias.sets) return true;
  }
  return false;
}

static void build_args(kiln_alias *a, const kiln_node *node) {
  const kiln_schema *s = node->op->schema;
  bool has_list = false;
  for (int i = 0; i < s->arg_count; i++) has_list |= writes_list(&s->args[i]);
  for (int i = 0; i < s->arg_count && i < node->input_count; i++) {
    const kiln_schema_arg *arg = &s->args[i];
    const kiln_ir_value *value = kiln_node_input(node, i);
    if (arg->alias.is_write) kiln__alias_write(a, node, value, false);
    if (arg->elem_alias.is_write) kiln__alias_write(a, node, value, true);
    if (writes_list(arg)) store_others(a, node, i);
    bool leaves = arg->alias.present && (arg->alias.after & KILN_ALIAS_WILDCARD) &&
                  !(arg->alias.sets & KILN_ALIAS_WILDCARD);
    if (leaves && !has_list && !goes_to_result(s, arg)) kiln__alias_escape(a, value);
  }
}

/* -- Results -- */

/* The new containers at and below `loc` may hold whatever is in `source`, at any depth: how a
 * result is put together (items of a dict, a dict of pairs) is not known. */
static void fill_from(kiln_alias *a, int loc, const kiln_ir_value *source) {
  if (loc < BUCKET__COUNT) return;
  kiln__alias_into(a, INTO_DEEP, loc, source);
  loc_set inner = a->locs.data[loc].contents;
  for (int i = 0; i < inner.count; i++) {
    if (a->locs.data[inner.items[i]].bucket != BUCKET_TENSOR) fill_from(a, inner.items[i], source);
  }
}

/* t(*): an element of a container argument, or, for a container, a new one with such elements. */
static void load_result(kiln_alias *a, const kiln_node *node, const kiln_ir_value *out) {
  bool any = false;
  int loc = -1;
  for (int i = 0; i < node->input_count; i++) {
    const kiln_ir_value *value = kiln_node_input(node, i);
    if (!is_container(value)) continue;
    if (!any && is_container(out)) loc = kiln__alias_fresh(a, out, true);
    any = true;
    kiln__alias_constrain(a, LOAD, out, value);
    fill_from(a, loc, value);
  }
  if (!any) kiln__alias_wildcard(a, out);
}

static void copy_marked(kiln_alias *a, const kiln_node *node, const kiln_ir_value *out,
                        uint32_t sets, int into) {
  const kiln_schema *s = node->op->schema;
  for (int i = 0; i < s->arg_count && i < node->input_count; i++) {
    const kiln_schema_arg *arg = &s->args[i];
    bool whole = arg->alias.present && ((arg->alias.sets | arg->alias.after) & sets);
    bool elements =
        arg->elem_alias.present && ((arg->elem_alias.sets | arg->elem_alias.after) & sets);
    const kiln_ir_value *value = kiln_node_input(node, i);
    if (whole && into < 0) kiln__alias_constrain(a, COPY, out, value);
    if (whole && into >= 0) kiln__alias_into(a, INTO, into, value);
    if (elements && into < 0) kiln__alias_constrain(a, LOAD, out, value);
    if (elements && into >= 0) kiln__alias_into(a, INTO_CONTENTS, into, value);
  }
}

/* No mark: new memory. But where the result's type has variables, elements of the arguments may be
 * in it: list + list. */
static void unmarked_result(kiln_alias *a, const kiln_node *node, const kiln_ir_value *out,
                            const kiln_type *formal) {
  const kiln_schema *s = node->op->schema;
  bool generic = kiln_type_has_var(formal);
  int loc = kiln__alias_fresh(a, out, true);
  for (int i = 0; generic && i < s->arg_count && i < node->input_count; i++) {
    const kiln_type *type = s->args[i].type;
    if (!kiln_type_has_var(type)) continue;
    const kiln_ir_value *value = kiln_node_input(node, i);
    bool variable = type->kind == KILN_TYPE_VAR ||
                    (type->kind == KILN_TYPE_OPTIONAL && type->elems[0]->kind == KILN_TYPE_VAR);
    kiln__alias_constrain(a, variable ? COPY : LOAD, out, value);
    if (variable)
      kiln__alias_into(a, INTO, loc, value);
    else
      fill_from(a, loc, value);
  }
}

static void build_result(kiln_alias *a, const kiln_node *node, int index) {
  const kiln_schema *s = node->op->schema;
  const kiln_ir_value *out = node->outputs[index];
  if (!kiln__alias_var(a, out)->mask) return;
  if (index >= s->result_count) {
    kiln__alias_wildcard(a, out);
    return;
  }
  const kiln_schema_arg *result = &s->results[index];
  if (result->alias.present) {
    if (result->alias.sets & KILN_ALIAS_WILDCARD) load_result(a, node, out);
    copy_marked(a, node, out, result->alias.sets & ~KILN_ALIAS_WILDCARD, -1);
  } else if (result->elem_alias.present) {
    int loc = kiln__alias_fresh(a, out, false);
    copy_marked(a, node, out, result->elem_alias.sets, loc);
  } else {
    unmarked_result(a, node, out, result->type);
  }
}

/* -- Operators whose schemas tell less than the truth -- */

static void build_exceptions(kiln_alias *a, const kiln_node *node) {
  if (kiln_node_writes_stats(node)) {
    kiln__alias_write(a, node, kiln_node_input(node, node->op->stats.mean), false);
    kiln__alias_write(a, node, kiln_node_input(node, node->op->stats.variance), false);
  }
  if (kiln_op_joins_memory(node->op)) {
    kiln__alias_constrain(a, COPY, kiln_node_input(node, 0), kiln_node_input(node, 1));
  }
  bool returns_it = node->op->flags & KILN_OP_MAY_RETURN_ARG;
  if (returns_it) kiln__alias_constrain(a, COPY, node->outputs[0], kiln_node_input(node, 0));
}

void kiln__alias_build_schema(kiln_alias *a, const kiln_node *node) {
  build_args(a, node);
  for (int i = 0; i < node->output_count; i++) build_result(a, node, i);
  build_exceptions(a, node);
}
