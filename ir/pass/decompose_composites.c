/* decompose_composites.c: pass `decompose_composites`: operators that are a network of others
 * become that network, so that groups are made of it: nn.TransformerEncoderLayer calls one operator
 * for all that it does, nn.MultiheadAttention one for its products.
 *
 * An operator does more than its network, for nested tensors and under masks. So y = op(x, mask)
 * becomes
 *
 *   if mask is None and not x.is_nested and sizes fit: y = network(x)
 *   else:                                              y = op(x, mask)
 *
 * and what the operator complains of, it does. The network's steps are those of the operator's
 * own kernel (runtime/kernels/heavy/attention.c). einsum of three and more is another such one
 * (decompose_einsum.c). Not under KILN_COMPAT=torch. */
#include "ir/pass.h"
#include "ir/pass/network.h"

/* -- Networks: in a block, of the operator's inputs -- */

static kiln_ir_value *attention(const kiln__maker *m, kiln_ir_value *x, kiln_ir_value *heads,
                                kiln_ir_value *const weights[4]) {
  kiln_ir_value *all = STEP(linear, x, weights[0], weights[1]), *part[3];
  all = STEP(unflatten_int, all, INT(2), LIST(INT(3), heads, INT(-1)));
  for (int i = 0; i < 3; i++)
    part[i] = STEP(transpose_int, STEP(select_int, all, INT(2), INT(i)), INT(1), INT(2));
  x = STEP(scaled_dot_product_attention, part[0], part[1], part[2], NONE, FLOAT(0), BOOL(false),
           NONE, BOOL(false));
  x = STEP(flatten_using_ints, STEP(transpose_int, x, INT(1), INT(2)), INT(2), INT(3));
  return STEP(linear, x, weights[2], weights[3]);
}

enum { MHA_DIM = 3, MHA_HEADS, MHA_WEIGHTS, MHA_MASK = 9, MHA_WITH_WEIGHTS };
static kiln_ir_value *multi_head(const kiln__maker *m, kiln_ir_value *const *in) {
  return attention(m, in[0], in[MHA_HEADS], in + MHA_WEIGHTS);
}

enum {
  LAYER_DIM = 1,
  LAYER_HEADS,
  LAYER_WEIGHTS,
  LAYER_GELU = 7,
  LAYER_NORM_FIRST,
  LAYER_EPS,
  LAYER_NORM_1,
  LAYER_NORM_2 = 12,
  LAYER_FFN_1 = 14,
  LAYER_FFN_2 = 16,
  LAYER_MASK = 18
};
static kiln_ir_value *norm(const kiln__maker *m, kiln_ir_value *x, kiln_ir_value *const *in,
                           int weight) {
  return STEP(layer_norm, x, LIST(in[LAYER_DIM]), in[weight], in[weight + 1], in[LAYER_EPS],
              BOOL(true));
}
/* "none": what is taken for its errors. */
static kiln_ir_value *exact_gelu(const kiln__maker *m) {
  const kiln_op *op = kiln_registry_op(m->graph->registry, KILN_OP_gelu);
  return kiln__maker_constant(m, kiln_ivalue_retain(op->schema->args[1].default_value),
                              KILN_TYPE_STR);
}
static bool is_true(const kiln_ir_value *v) { return kiln_ir_value_constant(v)->u.b; }
static kiln_ir_value *encoder_layer(const kiln__maker *m, kiln_ir_value *const *in) {
  const bool norm_first = is_true(in[LAYER_NORM_FIRST]);
  kiln_ir_value *x = norm_first ? norm(m, in[0], in, LAYER_NORM_1) : in[0];
  x = STEP(add_Tensor, attention(m, x, in[LAYER_HEADS], in + LAYER_WEIGHTS), in[0], INT(1));
  if (!norm_first) x = norm(m, x, in, LAYER_NORM_1);
  kiln_ir_value *before = x;
  if (norm_first) x = norm(m, x, in, LAYER_NORM_2);
  x = STEP(linear, x, in[LAYER_FFN_1], in[LAYER_FFN_1 + 1]);
  x = is_true(in[LAYER_GELU]) ? STEP(gelu, x, exact_gelu(m)) : STEP(relu, x);
  x = STEP(linear, x, in[LAYER_FFN_2], in[LAYER_FFN_2 + 1]);
  x = STEP(add_Tensor, x, before, INT(1));
  return norm_first ? x : norm(m, x, in, LAYER_NORM_2);
}

/* -- Which -- */

static bool is_bool(const kiln_node *n, int input) {
  const kiln_ivalue *c = kiln_ir_value_constant(kiln_node_input(n, input));
  return c && c->tag == KILN_TAG_BOOL;
}
/* So many that each head has as many channels. */
static bool has_heads(const kiln_node *n, int at) {
  int64_t dim, heads;
  return kiln_ir_value_const_int(kiln_node_input(n, at), &dim) &&
         kiln_ir_value_const_int(kiln_node_input(n, at + 1), &heads) && heads > 0 && dim > 0 &&
         dim <= INT32_MAX && dim % heads == 0;
}
/* Of one tensor, without its second result. */
static bool is_self_attention(const kiln_node *n) {
  return has_heads(n, MHA_DIM) && kiln_node_input(n, 0) == kiln_node_input(n, 1) &&
         kiln_node_input(n, 0) == kiln_node_input(n, 2) && is_bool(n, MHA_WITH_WEIGHTS) &&
         !is_true(kiln_node_input(n, MHA_WITH_WEIGHTS)) && kiln_node_output(n, 1)->use_count == 0;
}
static bool has_known_order(const kiln_node *n) {
  return has_heads(n, LAYER_DIM) && is_bool(n, LAYER_GELU) && is_bool(n, LAYER_NORM_FIRST);
}

/* Whether it stands where a decomposition has left it: the condition asks whether x is nested. */
static bool asks_of(const kiln_ir_value *condition, const kiln_ir_value *x, int depth) {
  const kiln_node *n = condition->node;
  if (kiln_node_is(n, KILN_OP_prim_is_nested)) return kiln_node_input(n, 0) == x;
  if (depth == 0 || (!kiln_node_is(n, KILN_OP_prim_If) && !kiln_node_is(n, KILN_OP___not__) &&
                     !kiln_node_is(n, KILN_OP___and___bool)))
    return false;
  return asks_of(kiln_node_input(n, 0), x, depth - 1);
}
static bool is_left(const kiln_node *n) {
  const kiln_node *branch = n->block->owner;
  return branch && kiln_node_is(branch, KILN_OP_prim_If) && branch->blocks[1] == n->block &&
         asks_of(kiln_node_input(branch, 0), kiln_node_input(n, 0), 3);
}

typedef struct composite {
  kiln_op_id op;
  int dim, weights, mask; /* inputs */
  bool (*fits)(const kiln_node *n);
  kiln_ir_value *(*network)(const kiln__maker *m, kiln_ir_value *const *in);
} composite;
static const composite composites[] = {
    {KILN_OP__native_multi_head_attention, MHA_DIM, MHA_WEIGHTS, MHA_MASK, is_self_attention,
     multi_head},
    {KILN_OP__transformer_encoder_layer_fwd, LAYER_DIM, LAYER_WEIGHTS, LAYER_MASK, has_known_order,
     encoder_layer},
};

/* size(t)[start:end] == [n] */
static kiln_ir_value *has_size(const kiln__maker *m, kiln_ir_value *t, kiln_ir_value *start,
                               kiln_ir_value *end, int64_t n) {
  const kiln_type *ints = kiln_type_list(m->graph->types, kiln_type_basic(KILN_TYPE_INT));
  kiln_ir_value *sizes = kiln__maker_step(m, KILN_OP_size, ints, 1, &t), *one = INT(1);
  kiln_ir_value *part =
      kiln__maker_step(m, KILN_OP_slice_t, ints, 4, (kiln_ir_value *[]){sizes, start, end, one});
  return ASK(eq_int_list, BOOL, part, LIST(INT(n)));
}

/* What the operator asks for: x (B, T, dim), weights (3 dim, ..). */
static kiln_ir_value *sizes_fit(const kiln__maker *m, const kiln_node *n, const composite *c) {
  int64_t dim = 0;
  (void)kiln_ir_value_const_int(kiln_node_input(n, c->dim), &dim);
  kiln_ir_value *x = has_size(m, kiln_node_input(n, 0), INT(2), NONE, dim);
  kiln_ir_value *w = has_size(m, kiln_node_input(n, c->weights), INT(0), INT(-1), 3 * dim);
  return ASK(__and___bool, BOOL, x, w);
}

/* The condition of the network, before the operator: sizes are asked of what has them. */
static kiln_ir_value *condition(kiln_node *n, const composite *c) {
  const kiln__maker before = {n->graph, NULL, n, n}, *m = &before;
  kiln_ir_value *mask = kiln_node_input(n, c->mask);
  kiln_ir_value *dense = ASK(__not__, BOOL, ASK(prim_is_nested, BOOL, kiln_node_input(n, 0)));
  if (mask->type->kind != KILN_TYPE_NONE)
    dense = ASK(__and___bool, BOOL, dense, ASK(__is__, BOOL, mask, NONE));
  kiln_node *branch = kiln_node_create_id(n->graph, KILN_OP_prim_If);
  kiln_node_add_input(branch, dense);
  kiln_ir_value *fits = kiln__maker_put(m, branch, kiln_type_basic(KILN_TYPE_BOOL));
  kiln_block *yes = kiln_node_add_block(branch), *no = kiln_node_add_block(branch);
  const kiln__maker inside = {n->graph, yes, NULL, n};
  kiln_block_add_output(yes, sizes_fit(&inside, n, c));
  kiln_block_add_output(
      no, kiln_append_constant(no, kiln_bool(false), kiln_type_basic(KILN_TYPE_BOOL)));
  return fits;
}

kiln_block *kiln__branch_around(kiln_node *n, kiln_ir_value *condition) {
  kiln_node *branch = kiln_node_create_id(n->graph, KILN_OP_prim_If);
  kiln_node_add_input(branch, condition);
  kiln_node_insert_before(branch, n);
  branch->range = n->range;
  branch->scope = n->scope;
  kiln_block *network = kiln_node_add_block(branch), *whole = kiln_node_add_block(branch);
  kiln_ir_value *given = kiln_node_output(n, 0);
  kiln_ir_value *result = kiln_node_add_output(branch, given->type);
  kiln_ir_value_replace_uses(given, result);
  kiln_node_detach(n);
  kiln_node_append(whole, n);
  kiln_block_add_output(whole, given);
  return network;
}

static void decompose(kiln_node *n, const composite *c) {
  kiln_ir_value *in[LAYER_MASK + 2];
  KILN_ASSERT(n->input_count <= (int)(sizeof in / sizeof *in));
  for (int i = 0; i < n->input_count; i++) in[i] = kiln_node_input(n, i);
  kiln_block *network = kiln__branch_around(n, condition(n, c));
  const kiln__maker inside = {n->graph, network, NULL, n};
  kiln_block_add_output(network, c->network(&inside, in));
}

static void visit_block(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b]);
    if (kiln__decompose_einsum(n)) pass->changed = true;
    for (size_t i = 0; i < sizeof composites / sizeof *composites; i++) {
      if (!kiln_node_is(n, composites[i].op) || !composites[i].fits(n) || is_left(n)) continue;
      decompose(n, &composites[i]);
      pass->changed = true;
      break;
    }
  }
}

kiln_status *kiln_pass_decompose_composites(kiln_pass *pass) {
  if (pass->env->flags.compat != KILN_COMPAT_TORCH) visit_block(pass, pass->graph->top);
  return NULL;
}
