/* python_print_body.c: graphs as statements.
 *
 * Nodes become statements in their order. A result that is used once and has no name of its own is
 * put into its user's expression, as long as the order of evaluation stays: pending expressions are
 * a stack, and a node may take those on top, if its operands come in that order; everything else
 * on the stack is assigned to temporaries first (a stack machine's code turned back, as in
 * PyTorch's printer). Every name is assigned in one place but for what branches and loops hand
 * over, so names of branches never clash. */
#include <limits.h>

#include "frontend/torchscript/python_print.h"

enum { LONG_EXPRESSION = 60 };

static kiln_status *print_block(kiln_body *b, const kiln_block *block);

static kiln_status *no_source(const kiln_node *node, const char *why) {
  return KILN_ERROR(KILN_UNSUPPORTED, KILN_STR_FMT " has no form in source: %s",
                    KILN_STR_ARG(node->name), why);
}

/* -- Names of values -- */

static void set_name(kiln_body *b, const kiln_ir_value *value, const char *name) {
  kiln_map_set_ptr(&b->names, value, (void *)(uintptr_t)name);
}

static char *new_name(kiln_body *b, const kiln_ir_value *value) {
  char *name = value->name.len > 0 ? kiln__body_name(b, value->name) : kiln__body_temporary(b);
  set_name(b, value, name);
  return name;
}

static const char *name_of(const kiln_body *b, const kiln_ir_value *value) {
  return kiln_map_find_ptr(&b->names, value);
}

/* -- Lines -- */

static void begin_line(kiln_body *b) { kiln_text_indent(b->text, 2 * b->indent); }
static void end_line(kiln_body *b) { kiln_text_putc(b->text, '\n'); }

/* What ends a block whose text began there: it is not empty. */
static void end_block(kiln_body *b, size_t begin) {
  if (b->text->len == begin) {
    begin_line(b);
    kiln_text_puts(b->text, "pass\n");
  }
  b->indent--;
}

/* Writes what is pending, but for the last `keep`, into temporaries. */
static void flush(kiln_body *b, int keep) {
  const int count = b->pending.count - keep;
  for (int i = 0; i < count; i++) {
    const kiln_ir_value *value = b->pending.data[i];
    const char *expression = name_of(b, value);
    begin_line(b);
    kiln_text_printf(b->text, "%s = %s\n", new_name(b, value), expression);
  }
  for (int i = 0; i < keep; i++) b->pending.data[i] = b->pending.data[count + i];
  b->pending.count = keep;
}

static bool is_pending(const kiln_body *b, const kiln_ir_value *value) {
  for (int i = b->pending.count; i > 0; i--) {
    if (b->pending.data[i - 1] == value) return true;
  }
  return false;
}

/* How many operands of `node` from input `from` on are pending, when they are the top of the stack
 * in their order; -1 when they are not. */
static int operands_on_top(const kiln_body *b, const kiln_node *node, int from) {
  int count = 0;
  for (int i = from; i < node->input_count; i++) count += is_pending(b, kiln_node_input(node, i));
  int at = b->pending.count - count;
  for (int i = from; i < node->input_count; i++) {
    const kiln_ir_value *value = kiln_node_input(node, i);
    if (is_pending(b, value) && b->pending.data[at++] != value) return -1;
  }
  return count;
}

/* Operands are evaluated where the node stands: it takes them off the stack, or they get names. */
static void take_operands(kiln_body *b, const kiln_node *node, int from) {
  for (int i = 0; i < from && i < node->input_count; i++) {
    if (is_pending(b, kiln_node_input(node, i))) {
      flush(b, 0);
      return;
    }
  }
  const int count = operands_on_top(b, node, from);
  if (count < 0)
    flush(b, 0);
  else
    b->pending.count -= count;
}

/* Only an expression, and may be put into another. */
static bool can_wait(const kiln_node *node) {
  if (node->output_count != 1 || node->block_count > 0 || !node->op) return false;
  const kiln_ir_value *out = kiln_node_output(node, 0);
  if (out->use_count != 1 || out->name.len > 0) return false;
  const kiln_node *user = out->uses->user;
  if (user->block != node->block && user != node->block->ret) return false;
  switch (node->op->id) {
    case KILN_OP_prim_isinstance: /* in an if it would refine its operand */
    case KILN_OP_prim_ListUnpack: /* of one */
    case KILN_OP_prim_TupleUnpack:
    case KILN_OP_prim_ModuleContainerIndex:
    case KILN_OP_prim_CreateObject:
    case KILN_OP_wait:
    case KILN_OP_prim_Uninitialized: return false;
    default: break;
  }
  if (!user->op || user->op->schema) return true;
  switch (user->op->id) {
    case KILN_OP_prim_Loop:
    case KILN_OP_prim_fork:
    case KILN_OP_prim_Enter:
    case KILN_OP_prim_Exit: return false;
    default: return true;
  }
}

/* -- Simple statements -- */

/* "a, b = ", "a, = " for what is unpacked. */
static void print_targets(kiln_body *b, const kiln_node *node) {
  const bool unpacks =
      kiln_node_is(node, KILN_OP_prim_ListUnpack) || kiln_node_is(node, KILN_OP_prim_TupleUnpack);
  for (int i = 0; i < node->output_count; i++) {
    kiln_text_printf(b->text, "%s%s", i > 0 ? ", " : "", new_name(b, kiln_node_output(node, i)));
  }
  if (unpacks) kiln_text_putc(b->text, ',');
  if (node->output_count > 0) kiln_text_puts(b->text, " = ");
}

/* "m : Interface = modules[i]": the index, whose type is Any, and the cast that says what it is. */
static const kiln_node *cast_of_index(const kiln_node *node) {
  const kiln_ir_value *out = kiln_node_output(node, 0);
  const kiln_node *user = out->use_count == 1 ? out->uses->user : NULL;
  return user && user->block == node->block && kiln_node_is(user, KILN_OP_prim_unchecked_cast)
             ? user
             : NULL;
}

static bool is_cast_of_index(const kiln_node *node) {
  return kiln_node_is(node, KILN_OP_prim_unchecked_cast) &&
         kiln_node_is(kiln_node_input(node, 0)->node, KILN_OP_prim_ModuleContainerIndex);
}

static kiln_status *print_index(kiln_body *b, const kiln_node *node) {
  if (!cast_of_index(node)) return no_source(node, "its result has no type");
  flush(b, 0);
  kiln_text text = kiln_text_in(b->p->arena);
  KILN_TRY(kiln__print_expression(b, &text, node));
  set_name(b, kiln_node_output(node, 0), text.data);
  return NULL;
}

static kiln_status *print_simple(kiln_body *b, const kiln_node *node) {
  if (kiln_node_is(node, KILN_OP_prim_ModuleContainerIndex)) return print_index(b, node);
  if (kiln_node_is(node, KILN_OP_prim_TupleUnpack) && node->output_count == 0) return NULL;
  if (kiln_node_is(node, KILN_OP_prim_ListUnpack) && node->output_count == 0) {
    return no_source(node, "nothing is taken out");
  }
  const bool declares = is_cast_of_index(node);
  kiln_text text = kiln_text_in(b->p->arena);
  take_operands(b, node, 0);
  if (declares) {
    KILN_TRY(kiln__print_operand(b, &text, kiln_node_input(node, 0)));
  } else {
    KILN_TRY(kiln__print_expression(b, &text, node));
    if (can_wait(node) && text.len <= LONG_EXPRESSION) {
      set_name(b, kiln_node_output(node, 0), text.data);
      kiln_vec_push(b->p->arena, &b->pending, kiln_node_output(node, 0));
      return NULL;
    }
  }
  flush(b, 0);
  begin_line(b);
  if (declares) {
    kiln_text_puts(b->text, new_name(b, kiln_node_output(node, 0)));
    KILN_TRY(
        kiln__print_type_between(b->p, b->text, " : ", kiln_node_output(node, 0)->type, " = "));
  } else {
    print_targets(b, node);
  }
  kiln_text_put(b->text, kiln_text_str(&text));
  end_line(b);
  return NULL;
}

static kiln_status *print_set_attribute(kiln_body *b, const kiln_node *node) {
  const kiln_str name = kiln_node_str(node, "name");
  if (!kiln__is_identifier(name)) {
    return no_source(node, "the attribute's name is no name of the language");
  }
  take_operands(b, node, 1); /* a reader evaluates the object last */
  flush(b, 0);
  begin_line(b);
  const char *object = name_of(b, kiln_node_input(node, 0));
  if (!object) return no_source(node, "its object has no name");
  kiln_text_printf(b->text, strcmp(object, "self") == 0 ? "%s.%.*s = " : "(%s).%.*s = ", object,
                   KILN_STR_ARG(name));
  return kiln__print_operand_between(b, b->text, "", kiln_node_input(node, 1), "\n");
}

/* -- Handing over -- */

/* `name = value`, so that a reader gives the name this type. */
static kiln_status *print_typed_assignment(kiln_body *b, const char *name,
                                           const kiln_ir_value *value, const kiln_type *type) {
  const kiln_type *have = kiln_type_unshaped(b->graph->types, value->type);
  const kiln_type *want = kiln_type_unshaped(b->graph->types, type);
  begin_line(b);
  kiln_text_puts(b->text, name);
  if (have == want) return kiln__print_operand_between(b, b->text, " = ", value, "\n");
  if (have->kind == KILN_TYPE_NONE) {
    KILN_TRY(kiln__print_type_between(b->p, b->text, " : ", want, " = "));
    return kiln__print_operand_between(b, b->text, "", value, "\n");
  }
  KILN_TRY(kiln__print_type_between(b->p, b->text, " = unchecked_cast(", want, ", "));
  return kiln__print_operand_between(b, b->text, "", value, ")\n");
}

/* "a, b = x, y" of the block's results from `from` on, after what `first` writes. */
static kiln_status *print_handover(kiln_body *b, const kiln_block *block, int from,
                                   const char *const *names, int count) {
  if (count == 0) return NULL;
  begin_line(b);
  for (int i = 0; i < count; i++) {
    kiln_text_printf(b->text, "%s%s", i > 0 ? ", " : "", names[i]);
  }
  kiln_text_puts(b->text, " = ");
  for (int i = 0; i < count; i++) {
    if (i > 0) kiln_text_puts(b->text, ", ");
    KILN_TRY(kiln__print_operand(b, b->text, kiln_block_output(block, from + i)));
  }
  end_line(b);
  return NULL;
}

/* -- If -- */

/* A reader joins the types of both sides; where that is not the type that is wanted, each side is
 * made that type. */
static bool joins_to(const kiln_body *b, const kiln_node *node, int i) {
  kiln_type_table *types = b->graph->types;
  const kiln_type *sides[2];
  for (int s = 0; s < 2; s++) {
    sides[s] = kiln_type_unshaped(types, kiln_block_output(node->blocks[s], i)->type);
  }
  return kiln_type_unify(types, sides[0], sides[1], false) ==
         kiln_type_unshaped(types, kiln_node_output(node, i)->type);
}

static kiln_status *print_side(kiln_body *b, const kiln_node *node, int side,
                               const char *const *names) {
  const kiln_block *block = node->blocks[side];
  bool plain = true;
  for (int i = 0; i < node->output_count; i++) plain = plain && joins_to(b, node, i);
  b->indent++;
  const size_t begin = b->text->len;
  KILN_TRY(print_block(b, block));
  take_operands(b, block->ret, 0);
  flush(b, 0);
  if (plain) {
    KILN_TRY(print_handover(b, block, 0, names, node->output_count));
  } else {
    for (int i = 0; i < node->output_count; i++) {
      const kiln_ir_value *value = kiln_block_output(block, i);
      const kiln_type *type = joins_to(b, node, i) ? value->type : kiln_node_output(node, i)->type;
      KILN_TRY(print_typed_assignment(b, names[i], value, type));
    }
  }
  end_block(b, begin);
  return NULL;
}

static kiln_status *print_if(kiln_body *b, const kiln_node *node) {
  take_operands(b, node, 0);
  flush(b, 0);
  begin_line(b);
  KILN_TRY(kiln__print_operand_between(b, b->text, "if ", kiln_node_input(node, 0), ":\n"));
  const char **names = KILN_NEW_ARRAY(b->p->arena, const char *, node->output_count + 1);
  for (int i = 0; i < node->output_count; i++) names[i] = new_name(b, kiln_node_output(node, i));
  KILN_TRY(print_side(b, node, 0, names));
  begin_line(b);
  kiln_text_puts(b->text, "else:\n");
  return print_side(b, node, 1, names);
}

/* -- Loops -- */

static bool same_value(const kiln_ir_value *x, const kiln_ir_value *y) {
  return x == y || (kiln_ir_value_is_bool(x, true) && kiln_ir_value_is_bool(y, true)) ||
         (kiln_ir_value_is_bool(x, false) && kiln_ir_value_is_bool(y, false));
}

typedef struct loop {
  const kiln_node *node;
  const kiln_block *body;
  const char **names; /* of what is carried; after them room for two more */
  int count;
  bool is_for, counts, limited; /* a while may have to count its rounds, up to a limit */
  const char *condition;        /* of a while */
  int condition_at;             /* the carried value that is the condition, or -1 */
} loop;

static void classify(kiln_body *b, const kiln_node *node, loop *lp) {
  int64_t trips = 0;
  *lp = (loop){.node = node, .body = node->blocks[0], .count = node->output_count};
  lp->condition_at = -1;
  bool endless = kiln_ir_value_const_int(kiln_node_input(node, 0), &trips) && trips == INT64_MAX;
  bool always = kiln_ir_value_is_bool(kiln_node_input(node, 1), true);
  bool used = kiln_block_input(lp->body, 0)->use_count > 0;
  lp->is_for = always && kiln_ir_value_is_bool(kiln_block_output(lp->body, 0), true);
  lp->limited = !lp->is_for && !endless;
  lp->counts = !lp->is_for && (lp->limited || used);
  lp->names = KILN_NEW_ARRAY(b->p->arena, const char *, lp->count + 3);
  for (int i = 0; i < lp->count && !lp->is_for && !lp->counts && lp->condition_at < 0; i++) {
    if (kiln_block_input(lp->body, i + 1)->type->kind == KILN_TYPE_BOOL &&
        same_value(kiln_node_input(node, 1), kiln_node_input(node, i + 2)) &&
        same_value(kiln_block_output(lp->body, 0), kiln_block_output(lp->body, i + 1))) {
      lp->condition_at = i;
    }
  }
}

static kiln_status *print_carried(kiln_body *b, loop *lp) {
  for (int i = 0; i < lp->count; i++) {
    const kiln_ir_value *inside = kiln_block_input(lp->body, i + 1);
    const kiln_ir_value *out = kiln_node_output(lp->node, i);
    const kiln_str base = inside->name.len > 0 ? inside->name : out->name;
    lp->names[i] = base.len > 0 ? kiln__body_name(b, base) : kiln__body_temporary(b);
    KILN_TRY(
        print_typed_assignment(b, lp->names[i], kiln_node_input(lp->node, i + 2), inside->type));
    set_name(b, inside, lp->names[i]);
    set_name(b, out, lp->names[i]);
  }
  return NULL;
}

/* The condition of a round, given the round's number and what the loop says. */
static kiln_status *print_condition(kiln_body *b, const loop *lp, const char *round,
                                    const kiln_ir_value *says) {
  bool asks = !kiln_ir_value_is_bool(says, true);
  if (lp->limited) {
    kiln_text_printf(b->text, asks ? "torch.__and__(torch.lt(%s, " : "torch.lt(%s, ", round);
    KILN_TRY(kiln__print_operand_between(b, b->text, "", kiln_node_input(lp->node, 0),
                                         asks ? "), " : ")"));
    if (!asks) return NULL;
  }
  return kiln__print_operand_between(b, b->text, "", says, lp->limited ? ")" : "");
}

static kiln_status *print_for(kiln_body *b, loop *lp) {
  begin_line(b);
  kiln_text_printf(b->text, "for %s in range", new_name(b, kiln_block_input(lp->body, 0)));
  KILN_TRY(kiln__print_operand_between(b, b->text, "(", kiln_node_input(lp->node, 0), "):\n"));
  b->indent++;
  const size_t begin = b->text->len;
  KILN_TRY(print_block(b, lp->body));
  take_operands(b, lp->body->ret, 0);
  flush(b, 0);
  KILN_TRY(print_handover(b, lp->body, 1, lp->names, lp->count));
  end_block(b, begin);
  return NULL;
}

static kiln_status *print_while_end(kiln_body *b, loop *lp, const char *round) {
  const char *next = NULL;
  if (lp->condition_at >= 0) {
    take_operands(b, lp->body->ret, 1);
    flush(b, 0);
    return print_handover(b, lp->body, 1, lp->names, lp->count);
  }
  flush(b, 0);
  if (round) {
    begin_line(b);
    next = kiln__body_temporary(b);
    kiln_text_printf(b->text, "%s = torch.add(%s, 1)\n", next, round);
  }
  begin_line(b);
  kiln_text_puts(b->text, lp->condition);
  for (int i = 0; i < lp->count; i++) kiln_text_printf(b->text, ", %s", lp->names[i]);
  if (round) kiln_text_printf(b->text, ", %s", round);
  kiln_text_puts(b->text, " = ");
  KILN_TRY(print_condition(b, lp, next, kiln_block_output(lp->body, 0)));
  for (int i = 0; i < lp->count; i++) {
    kiln_text_puts(b->text, ", ");
    KILN_TRY(kiln__print_operand(b, b->text, kiln_block_output(lp->body, i + 1)));
  }
  if (round) kiln_text_printf(b->text, ", %s", next);
  end_line(b);
  return NULL;
}

static kiln_status *print_while(kiln_body *b, loop *lp) {
  const char *round = NULL;
  if (lp->counts) {
    round = new_name(b, kiln_block_input(lp->body, 0));
    begin_line(b);
    kiln_text_printf(b->text, "%s = 0\n", round);
  }
  if (lp->condition_at >= 0) {
    lp->condition = lp->names[lp->condition_at];
  } else {
    lp->condition = kiln__body_temporary(b);
    begin_line(b);
    kiln_text_printf(b->text, "%s = ", lp->condition);
    KILN_TRY(print_condition(b, lp, round, kiln_node_input(lp->node, 1)));
    end_line(b);
  }
  begin_line(b);
  kiln_text_printf(b->text, "while %s:\n", lp->condition);
  b->indent++;
  KILN_TRY(print_block(b, lp->body));
  KILN_TRY(print_while_end(b, lp, round));
  b->indent--;
  return NULL;
}

static kiln_status *print_loop(kiln_body *b, const kiln_node *node) {
  loop lp;
  flush(b, 0);
  classify(b, node, &lp);
  KILN_TRY(print_carried(b, &lp));
  return lp.is_for ? print_for(b, &lp) : print_while(b, &lp);
}

/* -- With -- */

static kiln_status *print_enter(kiln_body *b, const kiln_node *node) {
  const kiln_ir_value *context = kiln_node_input(node, 0), *out = kiln_node_output(node, 0);
  flush(b, 0);
  begin_line(b);
  kiln_text_puts(b->text, "with ");
  KILN_TRY(kiln__print_operand(b, b->text, context));
  if (out->use_count > 0) kiln_text_printf(b->text, " as %s", new_name(b, out));
  kiln_text_puts(b->text, ":\n");
  b->indent++;
  kiln_vec_push(b->p->arena, &b->contexts, context);
  kiln_vec_push(b->p->arena, &b->bodies, b->text->len);
  return NULL;
}

static kiln_status *print_exit(kiln_body *b, const kiln_node *node, int outer) {
  if (b->contexts.count <= outer || kiln_vec_last(&b->contexts) != kiln_node_input(node, 0)) {
    return no_source(node, "it ends no block of its own");
  }
  flush(b, 0);
  end_block(b, kiln_vec_pop(&b->bodies));
  (void)kiln_vec_pop(&b->contexts);
  for (int i = 0; i < node->output_count; i++) set_name(b, kiln_node_output(node, i), "None");
  return NULL;
}

/* The graph's nodes, and its one result. */
static kiln_status *print_to_return(kiln_body *b, const kiln_graph *graph) {
  KILN_TRY(print_block(b, graph->top));
  take_operands(b, graph->top->ret, 0);
  flush(b, 0);
  begin_line(b);
  return kiln__print_operand_between(b, b->text, "return ", kiln_graph_output(graph, 0), "\n");
}

/* -- Fork -- */

static kiln_status *print_fork(kiln_body *b, const kiln_node *node) {
  kiln_graph *graph = kiln_node_graph(node, "Subgraph");
  if (!graph || kiln_graph_output_count(graph) != 1 ||
      kiln_graph_input_count(graph) != node->input_count) {
    return no_source(node, "its body is of another form");
  }
  flush(b, 0);
  const char *closure = kiln__body_name(b, KILN_STR("__fork"));
  begin_line(b);
  kiln_text_printf(b->text, "def %s():\n", closure);
  const kiln_graph *outer = b->graph;
  b->graph = graph;
  b->indent++;
  for (int i = 0; i < node->input_count; i++) {
    kiln_text text = kiln_text_in(b->p->arena);
    KILN_TRY(kiln__print_operand(b, &text, kiln_node_input(node, i)));
    set_name(b, kiln_graph_input(graph, i), text.data);
  }
  KILN_TRY(print_to_return(b, graph));
  b->indent--;
  b->graph = outer;
  begin_line(b);
  kiln_text_printf(b->text, "%s = fork(%s)\n", new_name(b, kiln_node_output(node, 0)), closure);
  return NULL;
}

/* -- Blocks, functions -- */

static kiln_status *print_node(kiln_body *b, const kiln_node *node, int outer) {
  if (!node->op || node->op->schema) return print_simple(b, node);
  switch (node->op->id) {
    case KILN_OP_prim_Constant: return NULL; /* where it is used */
    case KILN_OP_prim_If: return print_if(b, node);
    case KILN_OP_prim_Loop: return print_loop(b, node);
    case KILN_OP_prim_SetAttr: return print_set_attribute(b, node);
    case KILN_OP_prim_Enter: return print_enter(b, node);
    case KILN_OP_prim_Exit: return print_exit(b, node, outer);
    case KILN_OP_prim_fork: return print_fork(b, node);
    default: return print_simple(b, node);
  }
}

static kiln_status *print_block(kiln_body *b, const kiln_block *block) {
  const int outer = b->contexts.count;
  for (const kiln_node *n = block->first; n; n = n->next) {
    KILN_TRY(print_node(b, n, outer));
  }
  if (b->contexts.count == outer) return NULL;
  return KILN_ERROR(KILN_UNSUPPORTED, "a prim::Enter without its prim::Exit has no form in source");
}

void kiln__body_begin(kiln_body *b, kiln_printer *p, kiln_text *text, const kiln_function *function,
                      int indent) {
  *b = (kiln_body){
      .p = p, .text = text, .graph = function->graph, .function = function, .indent = indent};
  b->names = kiln_map_in(p->arena);
  b->used = kiln_map_in(p->arena);
  b->suffixes = kiln_map_in(p->arena);
}

kiln_status *kiln__print_body(kiln_body *b) {
  const kiln_graph *graph = b->graph;
  const kiln_schema *schema = b->function->schema;
  if (kiln_graph_output_count(graph) != 1 || kiln_graph_input_count(graph) != schema->arg_count) {
    return KILN_ERROR(KILN_UNSUPPORTED, "a graph of other arguments or results than its function");
  }
  return print_to_return(b, graph);
}
