/* decompose_attention.c: attention by its inner names, as a network of products, softmax and norms
 * (runtime/kernels/heavy/attention.c and attention_named.c have the steps). */
#include "ir/pass/network.h"

/* -- Layers -- */

static kiln_ir_value *attention(kiln__maker *m, kiln_ir_value *x, kiln_ir_value *heads,
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

/* size(t)[start:end] == [n] */
static kiln_ir_value *has_size(kiln__maker *m, kiln_ir_value *t, kiln_ir_value *start,
                               kiln_ir_value *end, int64_t n) {
  const kiln_type *ints = kiln__maker_list(m, KILN_TYPE_INT);
  kiln_ir_value *sizes = MAKE(size, ints, t), *one = INT(1);
  return ASK(eq_int_list, BOOL, MAKE(slice_t, ints, sizes, start, end, one), LIST(INT(n)));
}

/* Of a dense x (B, T, dim) without a mask, with weights (3 dim, ..) from input `weights` on: what
 * the operator asks for. */
static void where_it_fits(kiln__maker *m, kiln_node *n, int dim, int weights, int mask) {
  const kiln__maker outside = *m;
  int64_t size = 0;
  (void)kiln_ir_value_const_int(IN(dim), &size);
  kiln_ir_value *dense = ASK(__not__, BOOL, ASK(prim_is_nested, BOOL, IN(0)));
  if (IN(mask)->type->kind != KILN_TYPE_NONE)
    dense = BOTH(dense, ASK(__is__, BOOL, IN(mask), NONE));
  kiln__ask_where(m, dense);
  kiln_ir_value *x = has_size(m, IN(0), INT(2), NONE, size);
  kiln_ir_value *w = has_size(m, IN(weights), INT(0), INT(-1), 3 * size);
  kiln__apart_where(m, n, 1, kiln__asked(m, &outside, BOTH(x, w)));
}

/* So many that each head has as many channels. */
static bool has_heads(const kiln_node *n, int at) {
  int64_t dim, heads;
  return kiln_ir_value_const_int(IN(at), &dim) && kiln_ir_value_const_int(IN(at + 1), &heads) &&
         heads > 0 && dim > 0 && dim <= INT32_MAX && dim % heads == 0;
}

/* Of one tensor, without its second result. */
KILN__APART(_native_multi_head_attention) {
  enum { DIM = 3, HEADS, WEIGHTS, MASK = 9, WITH_WEIGHTS };
  if (!has_heads(n, DIM) || IN(0) != IN(1) || IN(0) != IN(2) ||
      !kiln_ir_value_is_bool(IN(WITH_WEIGHTS), false) || !kiln__only_first_read(n))
    return false;
  where_it_fits(m, n, DIM, WEIGHTS, MASK);
  GIVE(attention(
      m, IN(0), IN(HEADS),
      (kiln_ir_value *[]){IN(WEIGHTS), IN(WEIGHTS + 1), IN(WEIGHTS + 2), IN(WEIGHTS + 3)}));
  return true;
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
static kiln_ir_value *norm(kiln__maker *m, kiln_ir_value *x, const kiln_node *n, int weight) {
  return STEP(layer_norm, x, LIST(IN(LAYER_DIM)), IN(weight), IN(weight + 1), IN(LAYER_EPS),
              BOOL(true));
}
/* "none": what is taken for its errors. */
static kiln_ir_value *exact_gelu(const kiln__maker *m) {
  const kiln_op *op = kiln_registry_op(m->graph->registry, KILN_OP_gelu);
  return kiln__maker_constant(m, kiln_ivalue_retain(op->schema->args[1].default_value),
                              KILN_TYPE_STR);
}
KILN__APART(_transformer_encoder_layer_fwd) {
  const bool gelu = kiln_ir_value_is_bool(IN(LAYER_GELU), true);
  const bool norm_first = kiln_ir_value_is_bool(IN(LAYER_NORM_FIRST), true);
  if (!has_heads(n, LAYER_DIM) || !(gelu || kiln_ir_value_is_bool(IN(LAYER_GELU), false)) ||
      !(norm_first || kiln_ir_value_is_bool(IN(LAYER_NORM_FIRST), false)))
    return false;
  where_it_fits(m, n, LAYER_DIM, LAYER_WEIGHTS, LAYER_MASK);
  kiln_ir_value *weights[4];
  for (int i = 0; i < 4; i++) weights[i] = IN(LAYER_WEIGHTS + i);
  kiln_ir_value *x = norm_first ? norm(m, IN(0), n, LAYER_NORM_1) : IN(0);
  x = SUM(attention(m, x, IN(LAYER_HEADS), weights), IN(0));
  if (!norm_first) x = norm(m, x, n, LAYER_NORM_1);
  kiln_ir_value *before = x;
  if (norm_first) x = norm(m, x, n, LAYER_NORM_2);
  x = STEP(linear, x, IN(LAYER_FFN_1), IN(LAYER_FFN_1 + 1));
  x = gelu ? STEP(gelu, x, exact_gelu(m)) : STEP(relu, x);
  x = STEP(linear, x, IN(LAYER_FFN_2), IN(LAYER_FFN_2 + 1));
  x = SUM(x, before);
  GIVE(norm_first ? x : norm(m, x, n, LAYER_NORM_2));
  return true;
}

/* -- One product after the other -- */

/* query, key, value, attn_mask, dropout_p, need_attn_weights, is_causal */
KILN__APART(_scaled_dot_product_attention) {
  if (!kiln__only_first_read(n) || !kiln_ir_value_is_number(IN(4), 0)) return false;
  GIVE(STEP(scaled_dot_product_attention, IN(0), IN(1), IN(2), IN(3), IN(4), IN(6), NONE,
            BOOL(false)));
  return true;
}
/* query, key, value, dropout_p, is_causal, attn_mask, scale: of four dimensions each */
KILN__APART(_scaled_dot_product_flash_attention_for_cpu) {
  kiln_ir_value *fit = NULL;
  if (!kiln__only_first_read(n) || !kiln_ir_value_is_number(IN(3), 0) ||
      !(kiln_ir_value_is_none(IN(5)) || kiln_ir_value_is_bool(IN(4), false)))
    return false;
  for (int i = 0; i < 3; i++) fit = BOTH(fit, EQUAL(RANK(IN(i)), INT(4)));
  kiln__apart_where(m, n, 1, fit);
  GIVE(STEP(scaled_dot_product_attention, IN(0), IN(1), IN(2), IN(5), IN(3), IN(4), IN(6),
            BOOL(false)));
  return true;
}
