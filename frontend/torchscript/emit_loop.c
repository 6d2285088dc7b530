/* emit_loop.c: for, while, comprehensions: prim::Loop.
 *
 * A name is carried by the loop when the body assigns it and it is defined before. break and
 * continue set flags: the body's rest is under an If, the loop's condition asks the stop flag. */
#include <limits.h>

#include "frontend/torchscript/emit.h"

/* -- What a body assigns -- */

static void add_target(kiln__script_emitter *e, const kiln_ast *target, kiln_map *out) {
  if (target->kind == KILN_AST_NAME) {
    kiln_map_set(out, target->text, e);
  } else if (target->kind == KILN_AST_TUPLE || target->kind == KILN_AST_LIST) {
    for (int i = 0; i < target->count; i++) add_target(e, target->kids[i], out);
  }
}

static void collect(kiln__script_emitter *e, const kiln_ast *ast, kiln_map *out) {
  if (!ast) return;
  switch ((kiln_ast_kind)ast->kind) {
    case KILN_AST_BLOCK:
      for (int i = 0; i < ast->count; i++) collect(e, ast->kids[i], out);
      break;
    case KILN_AST_ASSIGN:
      for (int i = 2; i < ast->count; i++) add_target(e, ast->kids[i], out);
      break;
    case KILN_AST_AUGMENTED: add_target(e, ast->kids[0], out); break;
    case KILN_AST_IF:
      collect(e, ast->kids[1], out);
      collect(e, ast->kids[2], out);
      break;
    case KILN_AST_FOR:
      add_target(e, ast->kids[0], out);
      collect(e, ast->kids[2], out);
      break;
    case KILN_AST_WHILE: collect(e, ast->kids[1], out); break;
    case KILN_AST_WITH:
      for (int i = 2; i < ast->count; i += 2) {
        if (ast->kids[i]) add_target(e, ast->kids[i], out);
      }
      collect(e, ast->kids[0], out);
      break;
    case KILN_AST_RETURN:
      kiln_map_set(out, KILN_STR("$return"), e);
      kiln_map_set(out, KILN_STR("$value"), e);
      break;
    default: break;
  }
}

/* -- The loop's frame -- */

typedef struct loop {
  kiln_node *node;
  kiln_var_scope scope;
  kiln_exit_level level;
  bool exits, returns; /* the body may leave */
  KILN_VEC(kiln_str) carried;
  KILN_VEC(kiln_str) kept;
  KILN_VEC(const kiln_type *) types;
} loop;

/* A carried name may need a wider type than it comes with: what its annotation says. */
static const kiln_type *carried_type(kiln__script_emitter *e, const kiln_var *var) {
  const kiln_type *type = var->value->type;
  bool widen =
      var->declared && type->kind == KILN_TYPE_NONE && kiln_type_is_subtype(type, var->declared);
  return widen ? var->declared : kiln_type_unshaped(e->l->types, type);
}

/* An exit leaves with the values at its place, whatever the rest of the body would make of them:
 * they are kept under names of their own, which begin as what the body was given. */
static void keep_inputs(kiln__script_emitter *e, loop *lp, int depth) {
  for (int i = 0; i < lp->carried.count; i++) {
    kiln_ir_value *input = kiln_block_input(lp->scope.block, i + 1);
    kiln_str name = kiln_str_from(kiln_arena_printf(e->l->ast_arena, "$" KILN_STR_FMT "@%d",
                                                    KILN_STR_ARG(lp->carried.data[i]), depth));
    kiln_vec_push(e->l->ast_arena, &lp->kept, name);
    kiln_vec_push(e->l->ast_arena, &lp->types, input->type);
    kiln__set_var(e, name, input);
  }
  lp->level.carried_count = lp->carried.count;
  lp->level.carried = lp->carried.data;
  lp->level.kept = lp->kept.data;
  lp->level.types = lp->types.data;
}

/* The node with its carried inputs, and the scope of its body. */
static void begin_loop(kiln__script_emitter *e, const kiln_ast *ast, const kiln_ast *body,
                       kiln_ir_value *trips, kiln_ir_value *condition, loop *lp) {
  memset(lp, 0, sizeof *lp);
  kiln_map names = kiln_map_in(e->l->ast_arena);
  collect(e, body, &names);
  lp->exits = kiln__may_exit(body);
  lp->returns = kiln__may_return(body);
  lp->node = kiln__ts_node(e, ast, KILN_OP_prim_Loop, KILN_VALUES(trips, condition));
  kiln_block *block = kiln_node_add_block(lp->node);
  kiln_block_add_input(block, "", kiln_type_basic(KILN_TYPE_INT));
  KILN_VEC(kiln_var *) outer = {0};
  for (int i = 0; i < names.count; i++) {
    kiln_var *var = kiln__find_var(e, names.entries[i].key);
    if (!var || !var->value) continue;
    kiln_vec_push(e->l->ast_arena, &lp->carried, names.entries[i].key);
    kiln_vec_push(e->l->ast_arena, &outer, var);
    kiln_node_add_input(lp->node, var->value);
    kiln_ir_value *input = kiln_block_add_input(block, "", carried_type(e, var));
    if (kiln__is_loose(e, var->value)) kiln__make_loose(e, input);
  }
  kiln__push_scope(e, &lp->scope, block);
  KILN_ASSERT(outer.count == lp->carried.count && (outer.data || outer.count == 0));
  for (int i = 0; i < lp->carried.count; i++) {
    kiln__set_var(e, lp->carried.data[i], kiln_block_input(block, i + 1))->declared =
        outer.data[i]->declared;
  }
  lp->level.outer = e->level;
  int depth = ++e->depth;
  lp->level.skip = kiln_str_from(kiln_arena_printf(e->l->ast_arena, "$skip%d", depth));
  lp->level.stop = kiln_str_from(kiln_arena_printf(e->l->ast_arena, "$stop%d", depth));
  e->level = &lp->level;
  if (lp->exits) {
    kiln__set_var(e, lp->level.skip, kiln__ts_bool(e, ast, false));
    kiln__set_var(e, lp->level.stop, kiln__ts_bool(e, ast, false));
    keep_inputs(e, lp, depth);
  }
}

/* `going` unless `flag` is set. */
static kiln_status *unless(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *flag,
                           const kiln_ast *condition, kiln_ir_value **going) {
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_If, &flag, 1);
  kiln_var_scope yes, no;
  kiln__push_scope(e, &yes, kiln_node_add_block(node));
  kiln_block_add_output(yes.block, kiln__ts_bool(e, ast, false));
  kiln__pop_scope(e);
  kiln__push_scope(e, &no, kiln_node_add_block(node));
  kiln_ir_value *value = *going;
  if (condition) {
    KILN_TRY(kiln__ts_condition(e, condition, &value));
  } else if (!value) {
    value = kiln__ts_bool(e, ast, true);
  }
  kiln_block_add_output(no.block, value);
  kiln__pop_scope(e);
  *going = kiln_node_add_output(node, kiln_type_basic(KILN_TYPE_BOOL));
  return NULL;
}

/* What the loop carries on: the kept values after an exit, else those at the body's end. */
static void select_kept(kiln__script_emitter *e, const kiln_ast *ast, loop *lp,
                        kiln_ir_value **values) {
  const kiln_var *skip = lp->exits ? kiln__find_var(e, lp->level.skip) : NULL;
  if (!skip || !skip->value || lp->carried.count == 0) return;
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_If, &skip->value, 1);
  kiln_block *left = kiln_node_add_block(node), *ended = kiln_node_add_block(node);
  for (int i = 0; i < lp->carried.count; i++) {
    const kiln_var *kept = kiln__find_var(e, lp->kept.data[i]);
    if (!kept || !kept->value || kept->value == values[i]) continue;
    kiln_block_add_output(left, kept->value);
    kiln_block_add_output(ended, values[i]);
    values[i] = kiln_node_add_output(node, values[i]->type);
  }
}

/* The body's next condition and carried values; then the loop's results become the names' values.
 * `condition`: of a while; NULL: always. */
static kiln_status *end_loop(kiln__script_emitter *e, const kiln_ast *ast,
                             const kiln_ast *condition, loop *lp) {
  kiln_ir_value *going = NULL;
  lp->scope.dead = false;
  const kiln_var *stop = lp->exits ? kiln__find_var(e, lp->level.stop) : NULL;
  if (stop && stop->value) KILN_TRY(unless(e, ast, stop->value, condition, &going));
  if (lp->returns) {
    const kiln_var *returned = kiln__find_var(e, KILN_STR("$return"));
    if (!returned || !returned->value) return kiln__ts_error(e, ast, "a return is not allowed");
    KILN_TRY(unless(e, ast, returned->value, going ? NULL : condition, &going));
  }
  if (!going && condition) KILN_TRY(kiln__ts_condition(e, condition, &going));
  if (!going) going = kiln__ts_bool(e, ast, true);
  kiln_block_add_output(lp->scope.block, going);
  kiln_ir_value **values = KILN_NEW_ARRAY(e->l->ast_arena, kiln_ir_value *, lp->carried.count + 1);
  for (int i = 0; i < lp->carried.count; i++) {
    kiln_str name = lp->carried.data[i];
    kiln_ir_value *input = kiln_block_input(lp->scope.block, i + 1);
    const kiln_var *var = kiln__find_var(e, name);
    if (!var || !var->value) {
      return kiln__ts_error(e, ast, "'" KILN_STR_FMT "' is not defined at the end of the loop%s%s",
                            KILN_STR_ARG(name), var && var->why ? ": " : "",
                            var && var->why ? var->why : "");
    }
    kiln_ir_value *value = var->value;
    if (kiln__is_loose(e, input) && !kiln_type_is_subtype(value->type, input->type)) {
      value = kiln__ts_cast(e, ast, value, input->type);
    }
    const char *what = kiln_arena_printf(
        e->l->ast_arena, "'" KILN_STR_FMT "', which the loop carries,", KILN_STR_ARG(name));
    KILN_TRY(kiln__ts_convert(e, ast, value, input->type, what, &values[i]));
  }
  select_kept(e, ast, lp, values);
  for (int i = 0; i < lp->carried.count; i++) kiln_block_add_output(lp->scope.block, values[i]);
  kiln__pop_scope(e);
  e->level = lp->level.outer;
  for (int i = 0; i < lp->carried.count; i++) {
    kiln_ir_value *input = kiln_block_input(lp->scope.block, i + 1);
    kiln_ir_value *out = kiln_node_add_output(lp->node, input->type);
    if (kiln__is_loose(e, input)) kiln__make_loose(e, out);
    kiln__set_var(e, lp->carried.data[i], out);
  }
  if (lp->returns && e->level) {
    kiln__set_var(e, e->level->skip, kiln__find_var(e, KILN_STR("$return"))->value);
  }
  return NULL;
}

/* -- Iterables -- */

/* How to get the i-th element: trips, and what the elements come from. */
typedef enum iterable_kind {
  ITER_COUNT, /* the round's number; of enumerate: from `start` on */
  ITER_RANGE,
  ITER_ITEMS,
  ITER_ZIP /* enumerate is one with a count */
} iterable_kind;
typedef struct iterable {
  iterable_kind kind;
  kiln_ir_value *trips;
  kiln_ir_value *start, *step; /* RANGE; COUNT: start, or NULL */
  kiln_ir_value *items;        /* ITEMS */
  struct iterable *parts;      /* ZIP */
  int part_count;
} iterable;

static kiln_status *open_iterable(kiln__script_emitter *e, const kiln_ast *ast, iterable *out);

static kiln_status *open_range(kiln__script_emitter *e, const kiln_ast *ast, iterable *out) {
  kiln_ir_value *args[3];
  int count = ast->count - 1;
  if (count < 1 || count > 3) return kiln__ts_error(e, ast, "range takes 1 to 3 arguments");
  for (int i = 0; i < count; i++) {
    KILN_TRY(kiln__ts_value(e, ast->kids[i + 1], NULL, &args[i]));
    if (args[i]->type->kind != KILN_TYPE_INT && !kiln__is_loose(e, args[i])) {
      KILN_TRY(kiln__ts_op_values(e, ast, "aten::IntImplicit", &args[i], 1, &args[i]));
    }
    KILN_TRY(kiln__ts_convert(e, ast, args[i], kiln_type_basic(KILN_TYPE_INT), "a range's bound",
                              &args[i]));
  }
  if (count == 1) {
    out->kind = ITER_COUNT;
    out->trips = args[0];
    return NULL;
  }
  if (count == 2) args[2] = kiln__ts_int(e, ast, 1);
  out->kind = ITER_RANGE;
  out->start = args[0];
  out->step = args[2];
  KILN_TRY(kiln__ts_op_values(e, ast, "aten::__range_length", args, 3, &out->trips));
  return kiln__ts_convert(e, ast, out->trips, kiln_type_basic(KILN_TYPE_INT), "a range's length",
                          &out->trips);
}

static kiln_status *open_enumerate(kiln__script_emitter *e, const kiln_ast *ast, iterable *out) {
  if (ast->count < 2) return kiln__ts_error(e, ast, "nothing to iterate over");
  iterable *parts = KILN_NEW_ARRAY(e->l->ast_arena, iterable, 2);
  *out = (iterable){.kind = ITER_ZIP, .parts = parts, .part_count = 2};
  KILN_TRY(open_iterable(e, ast->kids[1], &parts[1]));
  out->trips = parts[1].trips;
  if (ast->count == 2) return NULL;
  const kiln_ast *start = ast->kids[2];
  if (start->kind == KILN_AST_KEYWORD) start = start->kids[0];
  return kiln__ts_value(e, start, NULL, &parts[0].start);
}

static kiln_status *open_zip(kiln__script_emitter *e, const kiln_ast *ast, iterable *out) {
  int count = ast->count - 1;
  if (count < 1) return kiln__ts_error(e, ast, "nothing to iterate over");
  out->kind = ITER_ZIP;
  out->parts = KILN_NEW_ARRAY(e->l->ast_arena, iterable, count);
  out->part_count = count;
  kiln_ir_value **lengths = KILN_NEW_ARRAY(e->l->ast_arena, kiln_ir_value *, count);
  for (int i = 0; i < count; i++) {
    KILN_TRY(open_iterable(e, ast->kids[i + 1], &out->parts[i]));
    lengths[i] = out->parts[i].trips;
  }
  out->trips = lengths[0];
  if (count > 1) {
    kiln_ir_value *list = kiln__ts_list(e, ast, kiln_type_basic(KILN_TYPE_INT), lengths, count);
    KILN_TRY(kiln__ts_op_values(e, ast, "prim::min", &list, 1, &out->trips));
  }
  return NULL;
}

static kiln_status *open_iterable(kiln__script_emitter *e, const kiln_ast *ast, iterable *out) {
  if (ast->kind == KILN_AST_CALL && ast->kids[0]->kind == KILN_AST_NAME &&
      !kiln__find_var(e, ast->kids[0]->text)) {
    kiln_str name = ast->kids[0]->text;
    if (kiln_str_is(name, "range")) return open_range(e, ast, out);
    if (kiln_str_is(name, "enumerate")) return open_enumerate(e, ast, out);
    if (kiln_str_is(name, "zip")) return open_zip(e, ast, out);
  }
  out->kind = ITER_ITEMS;
  KILN_TRY(kiln__ts_value(e, ast, NULL, &out->items));
  if (out->items->type->kind == KILN_TYPE_DICT) {
    KILN_TRY(kiln__ts_op_values(e, ast, "aten::keys", &out->items, 1, &out->items));
  }
  switch (out->items->type->kind) {
    case KILN_TYPE_LIST:
    case KILN_TYPE_STR:
    case KILN_TYPE_TENSOR: break;
    default:
      return kiln__ts_error(e, ast, "a value of type %s cannot be iterated over",
                            kiln__ts_type_name(e, out->items->type));
  }
  KILN_TRY(kiln__ts_op_values(e, ast, "aten::len", &out->items, 1, &out->trips));
  return kiln__ts_convert(e, ast, out->trips, kiln_type_basic(KILN_TYPE_INT), "the length",
                          &out->trips);
}

/* The element of round `i`, inside the body. */
static kiln_status *element(kiln__script_emitter *e, const kiln_ast *ast, const iterable *it,
                            kiln_ir_value *i, kiln_ir_value **out) {
  switch (it->kind) {
    case ITER_COUNT:
      *out = i;
      if (!it->start) return NULL;
      return kiln__ts_op_values(e, ast, "aten::add", KILN_VALUES(i, it->start), out);
    case ITER_RANGE:
      KILN_TRY(kiln__ts_op_values(e, ast, "aten::__derive_index",
                                  KILN_VALUES(i, it->start, it->step), out));
      return kiln__ts_convert(e, ast, *out, kiln_type_basic(KILN_TYPE_INT), "the index", out);
    case ITER_ITEMS:
      if (it->items->type->kind == KILN_TYPE_TENSOR && !kiln__is_loose(e, it->items)) {
        return kiln__ts_op_values(e, ast, "aten::select",
                                  KILN_VALUES(it->items, kiln__ts_int(e, ast, 0), i), out);
      }
      return kiln__ts_op_values(e, ast, "aten::__getitem__", KILN_VALUES(it->items, i), out);
    case ITER_ZIP: break;
  }
  kiln_ir_value **items = KILN_NEW_ARRAY(e->l->ast_arena, kiln_ir_value *, it->part_count);
  for (int k = 0; k < it->part_count; k++) {
    KILN_TRY(element(e, ast, &it->parts[k], i, &items[k]));
  }
  *out = kiln__ts_tuple(e, ast, NULL, items, it->part_count);
  return NULL;
}

/* A loop over the elements: each round assigns its own to `target`, by nodes at `place`. */
static kiln_status *begin_for(kiln__script_emitter *e, const kiln_ast *ast, const kiln_ast *target,
                              const kiln_ast *over, const kiln_ast *body, const kiln_ast *place,
                              loop *lp) {
  iterable it = {0};
  kiln_ir_value *item;
  KILN_TRY(open_iterable(e, over, &it));
  begin_loop(e, ast, body, it.trips, kiln__ts_bool(e, ast, true), lp);
  KILN_TRY(element(e, place, &it, kiln_block_input(lp->scope.block, 0), &item));
  return kiln__ts_assign_value(e, target, item);
}

/* -- Statements -- */

/* for x in (a, b): the body once for each element of the tuple. */
static kiln_status *emit_unrolled(kiln__script_emitter *e, const kiln_ast *ast,
                                  kiln_ir_value *tuple) {
  if (kiln__may_exit(ast->kids[2])) {
    return kiln__ts_error(e, ast, "break, continue or return in a loop over a tuple");
  }
  kiln_node *node = kiln_node_create_unpack(tuple);
  kiln__ts_append(e, ast, node);
  for (int i = 0; i < node->output_count; i++) {
    KILN_TRY(kiln__ts_assign_value(e, ast->kids[0], kiln_node_output(node, i)));
    KILN_TRY(kiln__ts_statements(e, ast->kids[2]->kids, ast->kids[2]->count));
  }
  return NULL;
}

kiln_status *kiln__ts_for(kiln__script_emitter *e, const kiln_ast *ast) {
  const kiln_ast *over = ast->kids[1], *body = ast->kids[2];
  if (over->kind == KILN_AST_TUPLE || over->kind == KILN_AST_NAME) {
    kiln_ir_value *value;
    KILN_TRY(kiln__ts_value(e, over, NULL, &value));
    if (value->type->kind == KILN_TYPE_TUPLE) return emit_unrolled(e, ast, value);
  }
  loop lp;
  KILN_TRY(begin_for(e, ast, ast->kids[0], over, body, over, &lp));
  KILN_TRY(kiln__ts_statements(e, body->kids, body->count));
  return end_loop(e, ast, NULL, &lp);
}

kiln_status *kiln__ts_while(kiln__script_emitter *e, const kiln_ast *ast) {
  kiln_ir_value *condition;
  KILN_TRY(kiln__ts_condition(e, ast->kids[0], &condition));
  kiln_ir_value *trips = kiln__ts_int(e, ast, INT64_MAX);
  const kiln_ast *body = ast->kids[1];
  loop lp;
  begin_loop(e, ast, body, trips, condition, &lp);
  KILN_TRY(kiln__ts_statements(e, body->kids, body->count));
  return end_loop(e, ast, ast->kids[0], &lp);
}

/* -- Comprehensions -- */

static kiln_status *comprehension_body(kiln__script_emitter *e, const kiln_ast *ast,
                                       const kiln_type *hint, bool dict, kiln_ir_value *out) {
  const kiln_type *want = hint && hint->kind == out->type->kind ? hint : NULL;
  kiln_ir_value *item, *value, *ignored;
  KILN_TRY(kiln__ts_value(e, ast->kids[0], want ? want->elems[0] : NULL, &item));
  if (dict) {
    KILN_TRY(kiln__ts_value(e, ast->kids[1], want ? want->elems[1] : NULL, &value));
    if (!want) out->type = kiln_type_dict(e->l->types, item->type, value->type);
    return kiln__ts_op_values(e, ast, "aten::_set_item", KILN_VALUES(out, item, value), &ignored);
  }
  if (!want) out->type = kiln_type_list(e->l->types, item->type);
  return kiln__ts_op_values(e, ast, "aten::append", KILN_VALUES(out, item), &ignored);
}

kiln_status *kiln__ts_comprehension(kiln__script_emitter *e, const kiln_ast *ast,
                                    const kiln_type *hint, kiln_ir_value **out) {
  bool dict = ast->kind == KILN_AST_DICT_COMP;
  int at = dict ? 2 : 1;
  const kiln_ast *condition = ast->kids[at + 2];
  if (hint && hint->kind == KILN_TYPE_OPTIONAL) hint = hint->elems[0];
  if (hint && hint->kind != (dict ? KILN_TYPE_DICT : KILN_TYPE_LIST)) hint = NULL;
  const kiln_type *tensor = kiln_type_basic(KILN_TYPE_TENSOR);
  kiln_node *node = kiln__ts_node(
      e, ast, dict ? KILN_OP_prim_DictConstruct : KILN_OP_prim_ListConstruct, NULL, 0);
  *out = kiln_node_add_output(node, hint   ? hint
                                    : dict ? kiln_type_dict(e->l->types, tensor, tensor)
                                           : kiln_type_list(e->l->types, tensor));
  loop lp;
  /* The target is a name of the comprehension alone: it hides an outer one, declared or not. */
  KILN_TRY(begin_for(e, ast, ast->kids[at], ast->kids[at + 1], NULL, ast, &lp));
  if (condition) {
    kiln_ir_value *wanted;
    KILN_TRY(kiln__ts_condition(e, condition, &wanted));
    kiln_node *choice = kiln__ts_node(e, ast, KILN_OP_prim_If, &wanted, 1);
    kiln_var_scope yes;
    kiln__push_scope(e, &yes, kiln_node_add_block(choice));
    KILN_TRY(kiln__ts_refinements(e, condition, true));
    KILN_TRY(comprehension_body(e, ast, hint, dict, *out));
    kiln__pop_scope(e);
    kiln_node_add_block(choice);
  } else {
    KILN_TRY(comprehension_body(e, ast, hint, dict, *out));
  }
  return end_loop(e, ast, NULL, &lp);
}
