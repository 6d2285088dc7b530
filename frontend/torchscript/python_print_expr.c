/* python_print_expr.c: nodes as expressions: calls of operators, functions and methods, displays,
 * attributes.
 *
 * Overload names are not written, and arguments at their defaults are left out, as PyTorch does.
 * So each call of an operator is matched as a reader will match it; where leaving arguments out
 * leads to another overload they are all written, and where that does not help the graph has no
 * source. */
#include "frontend/torchscript/python_print.h"
#include "ir/match.h"

static kiln_status *no_source(const kiln_node *node, const char *why) {
  return KILN_ERROR(KILN_UNSUPPORTED, KILN_STR_FMT " has no form in source%s%s",
                    KILN_STR_ARG(node->op ? node->op->full_name : node->name), why ? ": " : "",
                    why ? why : "");
}

/* -- Operands -- */

/* A reader takes a literal tensor of no dimensions for a number; behind an operator it is one no
 * more. */
static kiln_status *print_constant(kiln_body *b, kiln_text *text, const kiln_ir_value *value,
                                   kiln_ivalue constant) {
  const bool hide = constant.tag == KILN_TAG_TENSOR && kiln_tensor_rank(constant.u.tensor) == 0 &&
                    !kiln_ir_value_is_wrapped_number(value);
  if (hide) kiln_text_puts(text, "torch.detach(");
  KILN_TRY(kiln__print_literal(b->p, text, constant, value->type));
  if (hide) kiln_text_puts(text, ")");
  return NULL;
}

kiln_status *kiln__print_operand(kiln_body *b, kiln_text *text, const kiln_ir_value *value) {
  const char *name = kiln_map_find_ptr(&b->names, value);
  if (name) {
    kiln_text_puts(text, name);
    return NULL;
  }
  const kiln_ivalue *constant = kiln_ir_value_constant(value);
  if (constant) return print_constant(b, text, value, *constant);
  return no_source(value->node, "its result is used where it has no name");
}

kiln_status *kiln__print_operand_between(kiln_body *b, kiln_text *text, const char *open,
                                         const kiln_ir_value *value, const char *close) {
  kiln_text_puts(text, open);
  KILN_TRY(kiln__print_operand(b, text, value));
  kiln_text_puts(text, close);
  return NULL;
}

static kiln_status *print_operands(kiln_body *b, kiln_text *text, const kiln_node *node, int from,
                                   int end) {
  for (int i = from; i < end; i++) {
    if (i > from) kiln_text_puts(text, ", ");
    KILN_TRY(kiln__print_operand(b, text, kiln_node_input(node, i)));
  }
  return NULL;
}

/* What stands before a dot or bracket: names bare, all else in parentheses. */
static kiln_status *print_base(kiln_body *b, kiln_text *text, const kiln_ir_value *value,
                               bool always) {
  kiln_text base = kiln_text_in(b->p->arena);
  KILN_TRY(kiln__print_operand(b, &base, value));
  bool bare = !always;
  for (size_t i = 0; i < base.len && bare; i++) {
    bare = kiln_is_word(base.data[i]) || base.data[i] == '.';
  }
  if (!bare) kiln_text_putc(text, '(');
  kiln_text_put(text, kiln_text_str(&base));
  if (!bare) kiln_text_putc(text, ')');
  return NULL;
}

/* -- Operators -- */

static bool is_default(const kiln_schema_arg *arg, const kiln_ir_value *value) {
  const kiln_ivalue *constant = kiln_ir_value_constant(value);
  return arg->has_default && constant && constant->tag == arg->default_value.tag &&
         kiln_ivalue_equal(*constant, arg->default_value);
}

/* Which arguments are written. */
typedef struct written {
  const kiln_schema *schema;
  const kiln_node *node;
  int *inputs, count; /* of the node, keywords last */
} written;

static bool is_keyword(const written *w, int input) {
  return input < w->schema->arg_count && w->schema->args[input].kwarg_only;
}

static written choose_written(kiln_body *b, const kiln_node *node, bool all) {
  const kiln_schema *schema = node->op->schema;
  written w = {.schema = schema, .node = node};
  w.inputs = KILN_NEW_ARRAY(b->p->arena, int, node->input_count + 1);
  int positional = 0;
  while (positional < schema->arg_count && !schema->args[positional].kwarg_only) positional++;
  bool varargs = node->input_count > schema->arg_count;
  while (!all && !varargs && positional > 0 &&
         is_default(&schema->args[positional - 1], kiln_node_input(node, positional - 1))) {
    positional--;
  }
  for (int i = 0; i < node->input_count; i++) {
    if (i < positional || i >= schema->arg_count) w.inputs[w.count++] = i;
  }
  for (int i = 0; i < schema->arg_count; i++) {
    if (!is_keyword(&w, i)) continue;
    if (all || !is_default(&schema->args[i], kiln_node_input(node, i))) w.inputs[w.count++] = i;
  }
  return w;
}

/* A reader would choose this operator. */
static bool means_it(kiln_body *b, const written *w) {
  const kiln_registry *registry = b->graph->registry;
  const kiln_op *op = w->node->op;
  const kiln_op_set *set = kiln_registry_find(registry, op->name);
  if (!set) return false;
  kiln_arena *arena = b->p->arena;
  kiln_actual *actuals = KILN_NEW_ARRAY(arena, kiln_actual, w->count + 1);
  for (int k = 0; k < w->count; k++) {
    const int i = w->inputs[k];
    if (is_keyword(w, i)) actuals[k].keyword = w->schema->args[i].name;
    actuals[k].type = kiln_type_unshaped(b->graph->types, kiln_node_input(w->node, i)->type);
  }
  kiln_type_env env = {.types = b->graph->types};
  kiln_match_slot *slots = KILN_NEW_ARRAY(arena, kiln_match_slot, kiln_op_set_max_args(set) + 1);
  int varargs = w->count;
  return kiln_match_overloads(&env, set, actuals, w->count, slots, &varargs, NULL) == op;
}

/* "torch.add", "ops.prim.dtype". */
static void print_op_name(kiln_text *text, kiln_str name) {
  size_t colon = 0;
  while (colon < name.len && name.data[colon] != ':') colon++;
  const kiln_str space = kiln_str_make(name.data, colon);
  const size_t skip = colon + 2 <= name.len ? colon + 2 : name.len;
  const kiln_str last = kiln_str_make(name.data + skip, name.len - skip);
  if (kiln_str_is(space, "aten"))
    kiln_text_printf(text, "torch." KILN_STR_FMT, KILN_STR_ARG(last));
  else
    kiln_text_printf(text, "ops." KILN_STR_FMT "." KILN_STR_FMT, KILN_STR_ARG(space),
                     KILN_STR_ARG(last));
}

static void note_version(kiln_body *b, kiln_str op) {
  const int64_t version = kiln__upgrade_first_version(op);
  if (version > b->p->out->version) b->p->out->version = version;
}

static kiln_status *print_call(kiln_body *b, kiln_text *text, const written *w) {
  kiln_text_putc(text, '(');
  for (int k = 0; k < w->count; k++) {
    const int i = w->inputs[k];
    if (k > 0) kiln_text_puts(text, ", ");
    if (is_keyword(w, i)) {
      kiln_text_printf(text, KILN_STR_FMT "=", KILN_STR_ARG(w->schema->args[i].name));
    }
    KILN_TRY(kiln__print_operand(b, text, kiln_node_input(w->node, i)));
  }
  kiln_text_putc(text, ')');
  return NULL;
}

/* int(x), annotate(int, x), l[i]: operators that have a form of their own. False: none. */
static kiln_status *print_special_op(kiln_body *b, kiln_text *text, const kiln_node *node,
                                     bool *out_done) {
  static const struct {
    const char *op, *open;
    kiln_type_kind kind;
  } rows[] = {{"aten::Int", "int(", KILN_TYPE_INT},
              {"aten::Float", "float(", KILN_TYPE_FLOAT},
              {"aten::Bool", "bool(", KILN_TYPE_BOOL},
              {"aten::str", "str(", KILN_TYPE_STR},
              {"aten::IntImplicit", "annotate(int, ", KILN_TYPE_INT},
              {"aten::FloatImplicit", "annotate(float, ", KILN_TYPE_FLOAT},
              {"aten::ComplexImplicit", "annotate(complex, ", KILN_TYPE_COMPLEX},
              {"aten::ScalarImplicit", "annotate(number, ", KILN_TYPE_NUMBER}};
  const kiln_type *first = node->input_count > 0 ? kiln_node_input(node, 0)->type : NULL;
  *out_done = false;
  if (node->input_count == 2 && kiln_str_is(node->op->name, "aten::__getitem__") &&
      (first->kind == KILN_TYPE_LIST || first->kind == KILN_TYPE_DICT ||
       first->kind == KILN_TYPE_STR)) {
    *out_done = true;
    KILN_TRY(print_base(b, text, kiln_node_input(node, 0), false));
    return kiln__print_operand_between(b, text, "[", kiln_node_input(node, 1), "]");
  }
  if (node->input_count != 1) return NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (!kiln_str_is(node->op->name, rows[i].op) || first->kind == rows[i].kind) continue;
    bool simple = first->kind == KILN_TYPE_TENSOR || first->kind == KILN_TYPE_INT ||
                  first->kind == KILN_TYPE_FLOAT || first->kind == KILN_TYPE_BOOL ||
                  first->kind == KILN_TYPE_NUMBER || first->kind == KILN_TYPE_STR;
    if (!simple) return NULL;
    *out_done = true;
    return kiln__print_operand_between(b, text, rows[i].open, kiln_node_input(node, 0), ")");
  }
  return NULL;
}

static kiln_status *print_op(kiln_body *b, kiln_text *text, const kiln_node *node) {
  const kiln_schema *schema = node->op->schema;
  if (kiln_str_starts(node->op->name, "kiln::") || node->block_count > 0) {
    return no_source(node, "the optimiser made it");
  }
  if (node->input_count < schema->arg_count) return no_source(node, "it lacks arguments");
  bool done;
  note_version(b, node->op->name);
  written w = choose_written(b, node, false);
  if (!means_it(b, &w)) {
    w = choose_written(b, node, true);
    if (!means_it(b, &w)) {
      return no_source(node, "a call of that name with such arguments means another overload");
    }
  } else {
    KILN_TRY(print_special_op(b, text, node, &done));
    if (done) return NULL;
  }
  print_op_name(text, node->op->name);
  return print_call(b, text, &w);
}

/* Arguments as they were given: keywords are kept beside the node. */
static kiln_status *print_unknown(kiln_body *b, kiln_text *text, const kiln_node *node) {
  const kiln_attr *attr = kiln_node_attr(node, "keywords");
  const kiln_list *keywords =
      attr && attr->kind == KILN_ATTR_VALUE && attr->u.value.tag == KILN_TAG_LIST
          ? attr->u.value.u.list
          : NULL;
  const int named = keywords ? (int)keywords->count : 0;
  print_op_name(text, node->name);
  kiln_text_putc(text, '(');
  for (int i = 0; i < node->input_count; i++) {
    const int at = i - (node->input_count - named);
    if (i > 0) kiln_text_puts(text, ", ");
    if (at >= 0 && at < named && keywords->items[at].tag == KILN_TAG_STRING) {
      kiln_text_printf(text, "%s=", keywords->items[at].u.string->data);
    }
    KILN_TRY(kiln__print_operand(b, text, kiln_node_input(node, i)));
  }
  kiln_text_putc(text, ')');
  return NULL;
}

/* -- Displays -- */

/* The type that a reader gives a bare list of these items, or a dict's keys or values. */
static const kiln_type *join_types(kiln_body *b, const kiln_node *node, int from, int stride) {
  kiln_type_table *types = b->graph->types;
  const kiln_type *joined = NULL;
  for (int i = from; i < node->input_count; i += stride) {
    const kiln_type *type = kiln_type_unshaped(types, kiln_node_input(node, i)->type);
    joined = joined ? kiln_type_unify(types, joined, type, true) : type;
    if (!joined) return NULL;
  }
  return joined ? kiln_type_unshaped(types, joined) : NULL;
}

static kiln_status *print_list(kiln_body *b, kiln_text *text, const kiln_node *node) {
  const kiln_type *type = kiln_type_unshaped(b->graph->types, kiln_node_output(node, 0)->type);
  if (type->kind != KILN_TYPE_LIST) return no_source(node, "its result is no list");
  bool bare = join_types(b, node, 0, 1) == type->elems[0];
  if (!bare) KILN_TRY(kiln__print_type_between(b->p, text, "annotate(", type, ", "));
  kiln_text_putc(text, '[');
  KILN_TRY(print_operands(b, text, node, 0, node->input_count));
  kiln_text_puts(text, bare ? "]" : "])");
  return NULL;
}

static kiln_status *print_dict(kiln_body *b, kiln_text *text, const kiln_node *node) {
  const kiln_type *type = kiln_type_unshaped(b->graph->types, kiln_node_output(node, 0)->type);
  if (type->kind != KILN_TYPE_DICT) return no_source(node, "its result is no dict");
  bool bare =
      join_types(b, node, 0, 2) == type->elems[0] && join_types(b, node, 1, 2) == type->elems[1];
  if (!bare) KILN_TRY(kiln__print_type_between(b->p, text, "annotate(", type, ", "));
  kiln_text_putc(text, '{');
  for (int i = 0; i + 1 < node->input_count; i += 2) {
    if (i > 0) kiln_text_puts(text, ", ");
    KILN_TRY(print_operands(b, text, node, i, i + 1));
    kiln_text_puts(text, ": ");
    KILN_TRY(print_operands(b, text, node, i + 1, i + 2));
  }
  kiln_text_puts(text, bare ? "}" : "})");
  return NULL;
}

static kiln_status *print_tuple(kiln_body *b, kiln_text *text, const kiln_node *node) {
  const kiln_type *type = kiln_node_output(node, 0)->type;
  bool named = type->kind == KILN_TYPE_TUPLE && type->name.len > 0;
  if (named) KILN_TRY(kiln__print_type(b->p, text, type));
  kiln_text_putc(text, '(');
  KILN_TRY(print_operands(b, text, node, 0, node->input_count));
  kiln_text_puts(text, !named && node->input_count == 1 ? ",)" : ")");
  return NULL;
}

/* -- Objects, functions -- */

static kiln_status *print_attribute(kiln_body *b, kiln_text *text, const kiln_node *node) {
  const kiln_str name = kiln_node_str(node, "name");
  if (kiln__is_identifier(name)) {
    KILN_TRY(print_base(b, text, kiln_node_input(node, 0), false));
    kiln_text_printf(text, "." KILN_STR_FMT, KILN_STR_ARG(name));
    return NULL;
  }
  KILN_TRY(kiln__print_operand_between(b, text, "getattr(", kiln_node_input(node, 0), ", "));
  kiln_text_quote(text, name);
  kiln_text_putc(text, ')');
  return NULL;
}

/* Hooks are no methods to PyTorch: they are called by their qualified names. */
static bool is_hook(const kiln_function *method) {
  const kiln_class *cls = method && method->owner ? kiln_class_of(method->owner) : NULL;
  for (int i = 0; cls && i < cls->forward_pre_hooks.count; i++) {
    if (cls->forward_pre_hooks.data[i] == method) return true;
  }
  for (int i = 0; cls && i < cls->forward_hooks.count; i++) {
    if (cls->forward_hooks.data[i] == method) return true;
  }
  return false;
}

static kiln_status *print_method_call(kiln_body *b, kiln_text *text, const kiln_node *node) {
  const kiln_str name = kiln_node_str(node, "name");
  const kiln_type *type = kiln_node_input(node, 0)->type;
  const kiln_function *method = kiln_class_find_method(type, name);
  if (type->cls) kiln__need_type(b->p, type);
  if (is_hook(method)) {
    kiln_text_printf(text, "%s(", method->qualname);
    KILN_TRY(kiln__print_operand_between(b, text, "", kiln_node_input(node, 0), ", "));
  } else {
    KILN_TRY(print_base(b, text, kiln_node_input(node, 0), true));
    kiln_text_printf(text, "." KILN_STR_FMT "(", KILN_STR_ARG(name));
  }
  for (int i = 1; i < node->input_count; i++) {
    const kiln_schema *schema = method ? method->schema : NULL;
    if (schema && i < schema->arg_count && schema->args[i].kwarg_only) {
      kiln_text_printf(text, KILN_STR_FMT "=", KILN_STR_ARG(schema->args[i].name));
    }
    KILN_TRY(kiln__print_operand_between(b, text, "", kiln_node_input(node, i), ", "));
  }
  kiln_text_putc(text, ')');
  return NULL;
}

static kiln_status *print_function_call(kiln_body *b, kiln_text *text, const kiln_node *node) {
  kiln_function *function = kiln_call_callee(node);
  if (!function) return no_source(node, "only the run knows the function");
  if (kiln_str_ends(kiln_str_from(function->qualname),
                    ".__kiln_sort__")) { /* how objects are sorted here */
    kiln_text_puts(text, "torch.sort(");
  } else {
    kiln_text_printf(text, KILN_STR_FMT "(", KILN_STR_ARG(kiln__need_function(b->p, function)));
  }
  for (int i = 1; i < node->input_count; i++) {
    const kiln_schema_arg *arg = &function->schema->args[i - 1];
    if (i > 1) kiln_text_puts(text, ", ");
    if (arg->kwarg_only) kiln_text_printf(text, KILN_STR_FMT "=", KILN_STR_ARG(arg->name));
    KILN_TRY(kiln__print_operand(b, text, kiln_node_input(node, i)));
  }
  kiln_text_putc(text, ')');
  return NULL;
}

/* -- Types at run time -- */

static kiln_status *print_isinstance(kiln_body *b, kiln_text *text, const kiln_node *node) {
  const kiln_attr *attr = kiln_node_attr(node, "types");
  if (!attr || attr->kind != KILN_ATTR_TYPES) return no_source(node, "it names no types");
  const int count = attr->u.types.count;
  KILN_TRY(kiln__print_operand_between(b, text, "isinstance(", kiln_node_input(node, 0),
                                       count == 1 ? ", " : ", ("));
  for (int i = 0; i < count; i++) {
    if (i > 0) kiln_text_puts(text, ", ");
    KILN_TRY(kiln__print_type(b->p, text, attr->u.types.data[i]));
  }
  kiln_text_puts(text, count == 1 ? ")" : "))");
  return NULL;
}

/* unchecked_cast(T, x), uninitialized(T), annotate(T, (x).tolist()). */
static kiln_status *print_typed(kiln_body *b, kiln_text *text, const kiln_node *node,
                                const char *open, const char *close) {
  const kiln_type *type = kiln_node_output(node, 0)->type;
  if (kiln_node_is(node, KILN_OP_prim_Uninitialized)) {
    return kiln__print_type_between(b->p, text, open, type, close);
  }
  const char *comma = kiln_node_is(node, KILN_OP_prim_tolist) ? ", (" : ", ";
  KILN_TRY(kiln__print_type_between(b->p, text, open, type, comma));
  return kiln__print_operand_between(b, text, "", kiln_node_input(node, 0), close);
}

/* -- Dispatch -- */

static kiln_status *print_pick(kiln_body *b, kiln_text *text, const kiln_node *node) {
  KILN_TRY(print_base(b, text, kiln_node_input(node, 0), true));
  if (!kiln_node_is(node, KILN_OP_prim_TupleSlice)) {
    return kiln__print_operand_between(b, text, "[", kiln_node_input(node, 1), "]");
  }
  kiln_text_printf(text, "[%lld:%lld]", (long long)kiln_node_int(node, "beg", 0),
                   (long long)kiln_node_int(node, "end", 0));
  return NULL;
}

static kiln_status *print_with_ends(kiln_body *b, kiln_text *text, const kiln_node *node,
                                    const char *open, const char *close) {
  kiln_text_puts(text, open);
  KILN_TRY(print_operands(b, text, node, 0, node->input_count));
  kiln_text_puts(text, close);
  return NULL;
}

static kiln_status *print_raise(kiln_body *b, kiln_text *text, const kiln_node *node) {
  int count = node->input_count;
  if (count == 2 && kiln_ir_value_is_none(kiln_node_input(node, 1))) count = 1;
  kiln_text_puts(text, "ops.prim.RaiseException(");
  KILN_TRY(print_operands(b, text, node, 0, count));
  kiln_text_putc(text, ')');
  return NULL;
}

static kiln_status *print_structural(kiln_body *b, kiln_text *text, const kiln_node *node) {
  switch (node->op->id) {
    case KILN_OP_prim_ListConstruct: return print_list(b, text, node);
    case KILN_OP_prim_DictConstruct: return print_dict(b, text, node);
    case KILN_OP_prim_TupleConstruct: return print_tuple(b, text, node);
    case KILN_OP_prim_TupleIndex:
    case KILN_OP_prim_TupleSlice:
    case KILN_OP_prim_ModuleContainerIndex: return print_pick(b, text, node);
    case KILN_OP_prim_ListUnpack:
    case KILN_OP_prim_TupleUnpack: return kiln__print_operand(b, text, kiln_node_input(node, 0));
    case KILN_OP_prim_GetAttr: return print_attribute(b, text, node);
    case KILN_OP_prim_CallMethod: return print_method_call(b, text, node);
    case KILN_OP_prim_CallFunction: return print_function_call(b, text, node);
    case KILN_OP_prim_CreateObject: {
      const kiln_type *type = kiln_node_output(node, 0)->type;
      KILN_TRY(kiln__print_type_between(b->p, text, "", type, ".__new__("));
      return kiln__print_type_between(b->p, text, "", type, ")");
    }
    case KILN_OP_prim_Print: return print_with_ends(b, text, node, "print(", ")");
    case KILN_OP_prim_RaiseException: return print_raise(b, text, node);
    case KILN_OP_prim_isinstance: return print_isinstance(b, text, node);
    case KILN_OP_prim_unchecked_cast: return print_typed(b, text, node, "unchecked_cast(", ")");
    case KILN_OP_prim_unchecked_unwrap_optional:
      return print_with_ends(b, text, node, "ops.prim.unchecked_unwrap_optional(", ")");
    case KILN_OP_prim_Uninitialized: return print_typed(b, text, node, "uninitialized(", ")");
    case KILN_OP_prim_tolist: return print_typed(b, text, node, "annotate(", ").tolist())");
    case KILN_OP_wait: return print_unknown(b, text, node);
    case KILN_OP_prim_EnumName: return print_with_ends(b, text, node, "(", ").name");
    case KILN_OP_prim_EnumValue: return print_with_ends(b, text, node, "(", ").value");
    default: return no_source(node, NULL);
  }
}

kiln_status *kiln__print_expression(kiln_body *b, kiln_text *text, const kiln_node *node) {
  if (!node->op) return print_unknown(b, text, node);
  if (node->op->schema) return print_op(b, text, node);
  return print_structural(b, text, node);
}
