/* simplify.c: pass `simplify`: what is said twice about tensors is said once, and what changes
 * nothing goes: relu(relu(x)), transposes that cancel, parts that are joined again, pads of
 * nothing.
 *
 * Rules (rule.h) keep every bit, and every complaint: what would refuse a tensor of that rank or
 * dtype goes only where these are known. So x + 0 stays where x is a float, for which -0 + 0 is 0;
 * so do products of transposed matrices, which are read as they lie; and max(x, dim) whose places
 * nobody wants, for amax may give the other of two zeros. */
#include <string.h>

#include "ir/internal.h"
#include "ir/pass/network.h"
#include "ir/pass/rule.h"
#include "runtime/strides.h"

/* x, where it may stand for the result. */
static kiln_ir_value *or_stay(const kiln__trial *t, kiln_ir_value *x) {
  return kiln__rule_may_replace(t->pass, x, kiln_node_output(t->node, 0)) ? x : NULL;
}
/* The same of a view of x that shows all of it as it lies: one memory all the same. */
static kiln_ir_value *or_view(const kiln__trial *t, kiln_ir_value *x) {
  const kiln_alias *alias = kiln_pass_alias(t->pass);
  const bool written = kiln_alias_has_writers(alias, kiln_node_output(t->node, 0));
  return written || kiln_alias_has_writers(alias, x) ? NULL : x;
}
/* The node that made input 0, if it is of the same operator. */
static const kiln_node *same_before(const kiln__trial *t) {
  const kiln_node *inner = kiln__rule_input(t, 0)->node;
  return kiln_node_is(inner, (kiln_op_id)t->node->op->id) ? inner : NULL;
}

/* Whether the dimension is one of x, of which `more` are added; not where its rank is not known. */
static bool has_dim(const kiln_ir_value *x, int64_t dim, int more) {
  const kiln_tensor_detail *d = kiln__rule_detail(x);
  return d && d->rank >= 0 && dim >= -(d->rank + more) && dim < d->rank + more;
}

/* A list of constants, written down or built here; at most KILN_MAX_RANK of them. */
typedef struct ints {
  int count;
  int64_t at[KILN_MAX_RANK];
} ints;
static bool find_ints(const kiln__trial *t, const kiln_ir_value *value, ints *out) {
  const kiln_shape_list *list = kiln_shape_ints_of(t->pass->scratch, value);
  if (!list || list->count > KILN_MAX_RANK) return false;
  out->count = list->count;
  for (int i = 0; i < list->count; i++) {
    if (!list->known[i]) return false;
    out->at[i] = list->ints[i];
  }
  return true;
}

/* -- Said twice -- */

static kiln_ir_value *idempotent(const kiln__trial *t) {
  return same_before(t) ? or_stay(t, kiln__rule_input(t, 0)) : NULL;
}
/* Bools have no sign, and floats no bits that are asked for. */
static kiln_ir_value *involution(const kiln__trial *t) {
  const kiln_node *inner = same_before(t);
  const kiln_tensor_detail *d = inner ? kiln__rule_detail(kiln_node_input(inner, 0)) : NULL;
  if (!d || d->dtype == KILN_DTYPE_NONE || d->dtype == KILN_DTYPE_BOOL) return NULL;
  const bool is_int = kiln_dtype_is_int((kiln_dtype)d->dtype, false);
  return kiln_node_is(inner, KILN_OP_neg) || is_int ? or_stay(t, kiln_node_input(inner, 0)) : NULL;
}
/* Of other tensors the first one gives bools. */
static kiln_ir_value *not_twice(const kiln__trial *t) {
  const kiln_node *inner = same_before(t);
  const kiln_tensor_detail *d = inner ? kiln__rule_detail(kiln_node_input(inner, 0)) : NULL;
  return d && d->dtype == KILN_DTYPE_BOOL ? or_stay(t, kiln_node_input(inner, 0)) : NULL;
}

/* (x + a) + b is x + (a + b) for integers, which wrap; narrower ones may refuse the sum. */
static kiln_ir_value *add_twice(const kiln__trial *t) {
  const kiln_node *inner = same_before(t), *outer = t->node;
  int64_t a, b, sum;
  if (!kiln_ir_value_const_int(kiln_node_input(outer, 1), &b)) return NULL;
  kiln_ir_value *x = kiln_node_input(inner ? inner : outer, 0);
  const kiln_tensor_detail *d = kiln__rule_detail(x);
  if (!d || !kiln_dtype_is_int((kiln_dtype)d->dtype, false)) return NULL;
  if (!kiln_ir_value_is_number(kiln_node_input(outer, 2), 1)) return NULL;
  if (b == 0) return or_stay(t, kiln_node_input(outer, 0));
  if (!inner || d->dtype != KILN_DTYPE_I64 ||
      !kiln_ir_value_const_int(kiln_node_input(inner, 1), &a) ||
      !kiln_ir_value_is_number(kiln_node_input(inner, 2), 1) || __builtin_add_overflow(a, b, &sum))
    return NULL;
  if (kiln_alias_has_writers(kiln_pass_alias(t->pass), x)) return NULL;
  kiln_ir_value *one = kiln_node_input(outer, 2);
  kiln_node_set_input(t->node, 1, kiln_insert_int_before(one->node, sum));
  kiln_node_set_input(t->node, 0, x);
  return kiln_node_output(t->node, 0);
}

static kiln_ir_value *to_the_first(const kiln__trial *t) {
  kiln_ir_value *x = kiln__rule_input(t, 0);
  const kiln_ivalue *c = kiln_ir_value_constant(kiln__rule_input(t, 1));
  if (!kiln_ir_value_is_number(kiln__rule_input(t, 1), 1) || !kiln__rule_keeps_dtype(x, c))
    return NULL;
  return or_stay(t, x);
}

/* -- Places of elements -- */

static bool is_same_pair(const kiln_node *a, const kiln_node *b) {
  const kiln_ir_value *x = kiln_node_input(a, 0);
  int64_t p[2], q[2];
  for (int i = 0; i < 2; i++)
    if (!kiln_ir_value_const_int(kiln_node_input(a, i + 1), &p[i]) || !has_dim(x, p[i], 0) ||
        !kiln_ir_value_const_int(kiln_node_input(b, i + 1), &q[i]))
      return false;
  return (p[0] == q[0] && p[1] == q[1]) || (p[0] == q[1] && p[1] == q[0]);
}
static kiln_ir_value *transpose(const kiln__trial *t) {
  const kiln_node *inner = same_before(t);
  int64_t a, b;
  if (kiln_ir_value_const_int(kiln__rule_input(t, 1), &a) &&
      kiln_ir_value_const_int(kiln__rule_input(t, 2), &b) && a == b &&
      has_dim(kiln__rule_input(t, 0), a, 0))
    return or_view(t, kiln__rule_input(t, 0));
  return inner && is_same_pair(inner, t->node) ? or_view(t, kiln_node_input(inner, 0)) : NULL;
}

static bool find_order(const kiln__trial *t, const kiln_node *node, ints *out) {
  if (!find_ints(t, kiln_node_input(node, 1), out)) return false;
  uint64_t seen = 0;
  for (int i = 0; i < out->count; i++) {
    if (out->at[i] < 0) out->at[i] += out->count;
    if (out->at[i] < 0 || out->at[i] >= out->count) return false;
    seen |= UINT64_C(1) << out->at[i];
  }
  return seen == (UINT64_C(1) << out->count) - 1;
}
static kiln_ir_value *permute(const kiln__trial *t) {
  const kiln_node *inner = same_before(t);
  ints p, q = {0};
  bool nothing = true;
  if (!find_order(t, t->node, &p) || (inner && !find_order(t, inner, &q))) return NULL;
  if (inner && q.count != p.count) return NULL;
  for (int i = 0; i < p.count; i++) {
    if (inner) p.at[i] = q.at[p.at[i]];
    nothing &= p.at[i] == i;
  }
  kiln_ir_value *x = inner ? kiln_node_input(inner, 0) : kiln__rule_input(t, 0);
  const kiln_tensor_detail *d = kiln__rule_detail(x);
  if (nothing) return d && d->rank == p.count ? or_view(t, x) : NULL;
  if (!inner || !or_view(t, x)) return NULL;
  kiln__maker maker = {.graph = t->node->graph, .anchor = t->node, .from = t->node}, *m = &maker;
  kiln_ir_value *dims[KILN_MAX_RANK];
  for (int i = 0; i < p.count; i++) dims[i] = INT(p.at[i]);
  kiln_node_set_input(t->node, 1,
                      kiln__maker_step(m, KILN_OP_prim_ListConstruct,
                                       kiln__maker_list(m, KILN_TYPE_INT), p.count, dims));
  kiln_node_set_input(t->node, 0, x);
  return kiln_node_output(t->node, 0);
}

/* Whether the list asks for x's own sizes; one may be left open. */
static bool asks_for_own(const kiln_ir_value *x, const ints *sizes, int most_open) {
  const kiln_tensor_detail *d = kiln__rule_detail(x);
  int open = 0;
  if (!d || d->rank != sizes->count || !kiln__shape_static(d->rank, d->sizes)) return false;
  for (int i = 0; i < d->rank; i++) {
    open += sizes->at[i] == -1;
    if (sizes->at[i] != -1 && sizes->at[i] != d->sizes[i]) return false;
    if (d->sizes[i] == 0) return false; /* what is left open is not told then */
  }
  return open <= most_open;
}
/* Whether a view by x's own sizes has x's strides too: those of one element may be others. */
static bool keeps_strides(const kiln_ir_value *x) {
  const kiln_tensor_detail *d = kiln__rule_detail(x);
  int64_t strides[KILN_MAX_RANK];
  const bool known = d->has_strides && kiln__shape_static(d->rank, d->strides);
  for (int i = 0; i < d->rank && !known; i++)
    if (d->sizes[i] == 1) return false;
  if (!known) return true;
  return kiln_strides_view(&(kiln_strided){d->rank, d->sizes, d->strides}, d->rank, d->sizes,
                           strides) &&
         memcmp(strides, d->strides, sizeof *strides * (size_t)d->rank) == 0;
}
/* What is reshaped twice stays: that the first sizes fit is the model's to hear of. */
static kiln_ir_value *reshape(const kiln__trial *t) {
  kiln_ir_value *x = kiln__rule_input(t, 0);
  ints sizes;
  if (!find_ints(t, kiln__rule_input(t, 1), &sizes)) return NULL;
  return asks_for_own(x, &sizes, 1) && keeps_strides(x) ? or_view(t, x) : NULL;
}
static kiln_ir_value *expand(const kiln__trial *t) {
  ints sizes;
  kiln_ir_value *x = kiln__rule_input(t, 0);
  if (!find_ints(t, kiln__rule_input(t, 1), &sizes)) return NULL;
  return asks_for_own(x, &sizes, KILN_MAX_RANK) ? or_view(t, x) : NULL;
}
static kiln_ir_value *squeeze(const kiln__trial *t) {
  const kiln_node *inner = kiln__rule_input(t, 0)->node;
  int64_t a, b;
  if (!kiln_node_is(inner, KILN_OP_unsqueeze) ||
      !kiln_ir_value_const_int(kiln_node_input(inner, 1), &a) ||
      !kiln_ir_value_const_int(kiln__rule_input(t, 1), &b) || a != b ||
      !has_dim(kiln_node_input(inner, 0), a, 1))
    return NULL;
  return or_view(t, kiln_node_input(inner, 0));
}
/* The kernel gives its argument back. */
static kiln_ir_value *to_own_dtype(const kiln__trial *t) {
  kiln_ir_value *x = kiln__rule_input(t, 0);
  const kiln_tensor_detail *d = kiln__rule_detail(x);
  int64_t dtype;
  if (!d || d->dtype == KILN_DTYPE_NONE || !kiln_ir_value_const_int(kiln__rule_input(t, 1), &dtype))
    return NULL;
  return dtype == d->dtype && kiln_ir_value_is_bool(kiln__rule_input(t, 3), false) &&
                 kiln_ir_value_is_none(kiln__rule_input(t, 4))
             ? x
             : NULL;
}

/* -- Parts -- */

/* x[start:end] along a dimension; false: the bounds are not known, or not from the beginning on. */
static bool find_part(const kiln_node *slice, int64_t *dim, int64_t *start, int64_t *end) {
  *start = 0, *end = INT64_MAX;
  const kiln_ir_value *from = kiln_node_input(slice, 2), *to = kiln_node_input(slice, 3);
  return kiln_ir_value_const_int(kiln_node_input(slice, 1), dim) &&
         (kiln_ir_value_is_none(from) || kiln_ir_value_const_int(from, start)) &&
         (kiln_ir_value_is_none(to) || kiln_ir_value_const_int(to, end)) && *start >= 0 &&
         *end >= *start && kiln_ir_value_is_number(kiln_node_input(slice, 4), 1);
}
/* Whether a part that ends there ends with x. */
static bool is_whole(const kiln_ir_value *x, int64_t dim, int64_t end) {
  const kiln_tensor_detail *d = kiln__rule_detail(x);
  if (end == INT64_MAX) return true;
  if (!d || d->rank < 1) return false;
  if (dim < 0) dim += d->rank;
  return dim >= 0 && dim < d->rank && d->sizes[dim] >= 0 && d->sizes[dim] <= end;
}
static kiln_ir_value *slice(const kiln__trial *t) {
  int64_t dim, start, end;
  kiln_ir_value *x = kiln__rule_input(t, 0);
  if (!find_part(t->node, &dim, &start, &end) || start != 0 || !is_whole(x, dim, end)) return NULL;
  return has_dim(x, dim, 0) ? or_view(t, x) : NULL;
}

/* The tensor that slices are taken of, one behind the other, all of it; NULL: they are not. */
static kiln_ir_value *cut_by_slices(const kiln_node *list, int64_t along) {
  kiln_ir_value *x = NULL;
  int64_t at = 0, dim, start, end;
  for (int i = 0; i < list->input_count; i++) {
    const kiln_node *part = kiln_node_input(list, i)->node;
    if (!kiln_node_is(part, KILN_OP_slice_Tensor) || !find_part(part, &dim, &start, &end) ||
        dim != along || start != at || (x && kiln_node_input(part, 0) != x))
      return NULL;
    x = kiln_node_input(part, 0);
    at = end;
  }
  return x && is_whole(x, along, at) ? x : NULL;
}
/* Parts that a node makes of x: `chunks` of them, if there are so many, or of `size` each. */
static int64_t parts_of(const kiln_ir_value *x, int64_t dim, int64_t chunks, int64_t size) {
  const kiln_tensor_detail *d = kiln__rule_detail(x);
  if (!has_dim(x, dim, 0)) return -1;
  const int64_t all = d->sizes[dim < 0 ? dim + d->rank : dim];
  if (all < 1 || (chunks < 1 && size < 1)) return -1;
  if (chunks > 0) size = all / chunks + (all % chunks != 0);
  return all / size + (all % size != 0);
}
/* The same of what a node cuts it into, all parts in their order. */
static kiln_ir_value *cut_at_once(const kiln_node *list, int64_t along) {
  const kiln_node *cut = kiln_node_input(list, 0)->node;
  const bool is_constant = kiln_node_is(cut, KILN_OP_prim_ConstantChunk);
  if (!is_constant && !kiln_node_is(cut, KILN_OP_prim_ListUnpack)) return NULL;
  for (int i = 0; i < list->input_count; i++)
    if (i >= cut->output_count || kiln_node_input(list, i) != kiln_node_output(cut, i)) return NULL;
  const kiln_node *from = is_constant ? cut : kiln_node_input(cut, 0)->node;
  const bool chunks = kiln_node_is(from, KILN_OP_chunk);
  int64_t count = 0, dim = 0;
  if (is_constant) {
    count = kiln_node_int(cut, "chunks", 0);
    dim = kiln_node_int(cut, "dim", 0);
  } else if ((!chunks && !kiln_node_is(from, KILN_OP_split_Tensor)) ||
             !kiln_ir_value_const_int(kiln_node_input(from, 1), &count) ||
             !kiln_ir_value_const_int(kiln_node_input(from, 2), &dim)) {
    return NULL;
  }
  kiln_ir_value *x = kiln_node_input(from, 0);
  const bool by_count = is_constant || chunks;
  const int64_t parts = parts_of(x, dim, by_count ? count : 0, by_count ? 0 : count);
  return dim == along && parts == list->input_count && parts == cut->output_count ? x : NULL;
}
static kiln_ir_value *joined(const kiln__trial *t) {
  const kiln_node *list = kiln__rule_list(t->pass, kiln__rule_input(t, 0));
  int64_t along;
  if (!list || list->input_count < 1 || !kiln_ir_value_const_int(kiln__rule_input(t, 1), &along))
    return NULL;
  kiln_ir_value *x = list->input_count == 1 ? kiln_node_input(list, 0) : cut_at_once(list, along);
  if (!x) x = cut_by_slices(list, along);
  return x && has_dim(x, along, 0) ? or_stay(t, x) : NULL;
}

/* `pad` with a mode refuses what another one takes: a constant it is. */
static bool pads_a_constant(const kiln_node *n) {
  return !kiln_node_is(n, KILN_OP_pad) || kiln_ir_value_is_text(kiln_node_input(n, 2), "constant");
}
static kiln_ir_value *padded(const kiln__trial *t) {
  ints widths;
  if (!pads_a_constant(t->node)) return NULL;
  const kiln_tensor_detail *d = kiln__rule_detail(kiln__rule_input(t, 0));
  if (!d || !find_ints(t, kiln__rule_input(t, 1), &widths) || widths.count % 2) return NULL;
  if (widths.count > 2 * d->rank) return NULL;
  for (int i = 0; i < widths.count; i++)
    if (widths.at[i] != 0) return NULL;
  return or_stay(t, kiln__rule_input(t, 0));
}

/* -- Lists of parts -- */

/* The unbind that the list is of, which nobody changes; NULL: it is none. */
static const kiln_node *find_unbind(const kiln__trial *t, const kiln_ir_value *list) {
  const kiln_alias *alias = kiln_pass_alias(t->pass);
  const bool is_one = kiln_node_is(list->node, KILN_OP_unbind_int) &&
                      !kiln_alias_has_writers(alias, list) &&
                      !kiln_alias_has_writers(alias, kiln_node_input(list->node, 0));
  return is_one ? list->node : NULL;
}

/* len(unbind(x, 0)) is x.size(0). */
static kiln_ir_value *count_parts(const kiln__trial *t) {
  const kiln_node *unbind = find_unbind(t, kiln__rule_input(t, 0));
  if (!unbind) return NULL;
  kiln__maker maker = {.graph = t->node->graph, .anchor = t->node, .from = unbind};
  kiln_ir_value *inputs[2] = {kiln_node_input(unbind, 0), kiln_node_input(unbind, 1)};
  return kiln__maker_step(&maker, KILN_OP_size_int, kiln_node_output(t->node, 0)->type, 2, inputs);
}

/* Whether there is such a part: the index counts a loop over all, or both are known. */
static bool is_within(const kiln_node *unbind, const kiln_ir_value *index) {
  const kiln_block *body = index->node->block;
  const kiln_tensor_detail *d = kiln__rule_detail(kiln_node_input(unbind, 0));
  int64_t at, dim;
  if (kiln_ir_value_const_int(index, &at)) {
    if (!d || !kiln_ir_value_const_int(kiln_node_input(unbind, 1), &dim)) return false;
    if (dim < 0) dim += d->rank;
    return dim >= 0 && dim < d->rank && kiln_dim_is_number(d->sizes[dim]) && at >= -d->sizes[dim] &&
           at < d->sizes[dim];
  }
  if (!body || !body->owner || !kiln_node_is(body->owner, KILN_OP_prim_Loop) ||
      index != kiln_block_input(body, 0))
    return false;
  const kiln_node *count = kiln_node_input(body->owner, 0)->node;
  return kiln_node_is(count, KILN_OP_size_int) &&
         kiln_node_input(count, 0) == kiln_node_input(unbind, 0) &&
         kiln_node_input(count, 1) == kiln_node_input(unbind, 1);
}

/* unbind(x, 0)[i] is x[i]: no list is made, and what multiplies each part can be hoisted. */
static kiln_ir_value *part_of_unbound(const kiln__trial *t) {
  const kiln_ir_value *result = kiln_node_output(t->node, 0);
  const kiln_node *unbind = find_unbind(t, kiln__rule_input(t, 0));
  if (!unbind || !is_within(unbind, kiln__rule_input(t, 1)) ||
      kiln_alias_has_writers(kiln_pass_alias(t->pass), result))
    return NULL;
  kiln__maker maker = {.graph = t->node->graph, .anchor = t->node, .from = t->node};
  kiln_ir_value *inputs[3] = {kiln_node_input(unbind, 0), kiln_node_input(unbind, 1),
                              kiln__rule_input(t, 1)};
  return kiln__maker_step(&maker, KILN_OP_select_int, result->type, 3, inputs);
}

/* -- Like another tensor -- */

/* Its sizes are all that is wanted of x: `arg` makes one of them. With a value of its own it is
 * full_like, whose options stand one further. */
static kiln_ir_value *like(const kiln__trial *t) {
  const kiln_ir_value *x = kiln__rule_input(t, 0);
  const kiln_tensor_detail *d = kiln__rule_detail(x);
  const int options = t->arg == KILN_OP_full ? 2 : 1;
  if (!kiln_type_is_complete_tensor(x->type) || d->device != KILN_DEVICE_CPU ||
      !kiln_strides_are_contiguous(&(kiln_strided){d->rank, d->sizes, d->strides}))
    return NULL;
  for (int i = options; i < options + 5; i++)
    if (!kiln_ir_value_is_none(kiln__rule_input(t, i))) return NULL;
  kiln__maker maker = {.graph = t->node->graph, .anchor = t->node, .from = t->node}, *m = &maker;
  kiln_ir_value *sizes[KILN_MAX_RANK], *inputs[6];
  for (int i = 0; i < d->rank; i++) sizes[i] = INT(d->sizes[i]);
  int count = 0;
  inputs[count++] = kiln__maker_step(m, KILN_OP_prim_ListConstruct,
                                     kiln__maker_list(m, KILN_TYPE_INT), d->rank, sizes);
  if (options == 2) inputs[count++] = kiln__rule_input(t, 1);
  inputs[count++] = INT(d->dtype);
  for (int i = 0; i < 3; i++) inputs[count++] = NONE;
  return kiln__maker_step(m, (kiln_op_id)t->arg, kiln_node_output(t->node, 0)->type, count, inputs);
}

/* In the examples M is a matrix whose type is known: Float(2, 3, strides=[3, 1], ...). */
static kiln_ir_value *rules_of_elements(kiln_pass *pass, kiln_node *node) {
  switch (node->op->id) {
    RULE(relu, idempotent,
         "x: Tensor | Tensor aten::neg(Tensor aten::relu(Tensor aten::relu(x))) => "
         "Tensor aten::neg(Tensor aten::relu(x))");
    RULE(abs, idempotent,
         "x: Tensor | Tensor aten::neg(Tensor aten::abs(Tensor aten::abs(x))) => "
         "Tensor aten::neg(Tensor aten::abs(x))");
    RULE(floor, idempotent,
         "x: Tensor | Tensor aten::neg(Tensor aten::floor(Tensor aten::floor(x))) => "
         "Tensor aten::neg(Tensor aten::floor(x))");
    RULE(ceil, idempotent,
         "x: Tensor | Tensor aten::neg(Tensor aten::ceil(Tensor aten::ceil(x))) => "
         "Tensor aten::neg(Tensor aten::ceil(x))");
    RULE(trunc, idempotent,
         "x: Tensor | Tensor aten::neg(Tensor aten::trunc(Tensor aten::trunc(x))) => "
         "Tensor aten::neg(Tensor aten::trunc(x))");
    RULE(neg, involution,
         "x: M | Tensor aten::relu(Tensor aten::neg(Tensor aten::neg(x))) => Tensor aten::relu(x)");
    RULE(bitwise_not, involution,
         "x: Long(2) | Tensor aten::abs(Tensor aten::bitwise_not(Tensor aten::bitwise_not(x))) => "
         "Tensor aten::abs(x)");
    RULE(logical_not, not_twice,
         "x: Bool(2) | Tensor aten::bitwise_not(Tensor aten::logical_not("
         "Tensor aten::logical_not(x))) => Tensor aten::bitwise_not(x)");
    RULE(add_Scalar, add_twice,
         "x: Long(2) | Tensor aten::abs(Tensor aten::add(Tensor aten::add(x, 2, 1), 3, 1)) => "
         "Tensor aten::abs(Tensor aten::add(x, 5, 1)) / "
         "x: Long(2) | Tensor aten::abs(Tensor aten::add(x, 0, 1)) => Tensor aten::abs(x)");
    RULE(pow_Tensor_Scalar, to_the_first,
         "x: M | Tensor aten::abs(Tensor aten::pow(x, 1)) => Tensor aten::abs(x)");
    default: return NULL;
  }
}
static kiln_ir_value *rules(kiln_pass *pass, kiln_node *node) {
  switch (node->op->id) {
    RULE(transpose_int, transpose,
         "x: M | Tensor aten::abs(Tensor aten::transpose(x, 1, 1)) => Tensor aten::abs(x) / "
         "x: M | Tensor aten::abs(Tensor aten::transpose(Tensor aten::transpose(x, 0, 1), 1, "
         "0)) => Tensor aten::abs(x)");
    RULE(permute, permute,
         "x: M | Tensor aten::abs(Tensor aten::permute(x, int[] prim::ListConstruct(0, -1))) "
         "=> Tensor aten::abs(x) / "
         "x: Tensor | Tensor aten::abs(Tensor aten::permute(Tensor aten::permute(x, int[] "
         "prim::ListConstruct(1, 2, 0)), int[] prim::ListConstruct(0, 2, 1))) => Tensor aten::abs("
         "Tensor aten::permute(x, int[] prim::ListConstruct(1, 0, 2)))");
    RULE(reshape, reshape,
         "x: M | Tensor aten::abs(Tensor aten::reshape(x, int[] prim::ListConstruct(2, -1))) => "
         "Tensor aten::abs(x)");
    RULE(view, reshape,
         "x: M | Tensor aten::abs(Tensor aten::view(x, int[] prim::ListConstruct(2, 3))) => "
         "Tensor aten::abs(x)");
    RULE(expand, expand,
         "x: M | Tensor aten::abs(Tensor aten::expand(x, int[] prim::ListConstruct(-1, 3), False)) "
         "=> Tensor aten::abs(x)");
    RULE(squeeze_dim, squeeze,
         "x: M | Tensor aten::abs(Tensor aten::squeeze(Tensor aten::unsqueeze(x, -1), -1)) => "
         "Tensor aten::abs(x)");
    RULE(to_dtype, to_own_dtype, "x: M | Tensor aten::to(x, 6, False, False, None) => x");
    RULE(slice_Tensor, slice,
         "x: M | Tensor aten::abs(Tensor aten::slice(x, 0, None, None, 1)) => Tensor "
         "aten::abs(x) / "
         "x: M | Tensor aten::abs(Tensor aten::slice(x, -1, 0, 3, 1)) => Tensor aten::abs(x)");
    RULE(cat, joined,
         "x: M | Tensor aten::abs(Tensor aten::cat(Tensor[] prim::ListConstruct(x), 0)) => "
         "Tensor aten::abs(x) / "
         "x: M | Tensor aten::abs(Tensor aten::cat(Tensor[] prim::ListConstruct(Tensor "
         "aten::slice(x, 1, 0, 2, 1), Tensor aten::slice(x, 1, 2, None, 1)), 1)) => Tensor "
         "aten::abs(x)");
    RULE(constant_pad_nd, padded,
         "x: M | Tensor aten::abs(Tensor aten::constant_pad_nd(x, int[] "
         "prim::ListConstruct(0, 0), 1)) => Tensor aten::abs(x)");
    RULE(pad, padded,
         "x: M | Tensor aten::abs(Tensor aten::pad(x, int[] prim::ListConstruct(0, 0), constant, "
         "None)) => Tensor aten::abs(x)");
    RULE(len_t, count_parts,
         "x: Tensor | int aten::len(Tensor[] aten::unbind(x, 0)) => int aten::size(x, 0)");
    RULE(__getitem___t, part_of_unbound,
         "x: M | Tensor aten::abs(Tensor aten::__getitem__(Tensor[] aten::unbind(x, 0), -2)) => "
         "Tensor aten::abs(Tensor aten::select(x, 0, -2))");
    RULE_OF(zeros_like, like, KILN_OP_zeros,
            "x: M | Tensor aten::zeros_like(x, None, None, None, None, None) => Tensor "
            "aten::zeros(int[] prim::ListConstruct(2, 3), 6, None, None, None)");
    RULE_OF(ones_like, like, KILN_OP_ones,
            "x: M | Tensor aten::ones_like(x, None, None, None, None, None) => Tensor "
            "aten::ones(int[] prim::ListConstruct(2, 3), 6, None, None, None)");
    RULE_OF(full_like, like, KILN_OP_full,
            "x: M; v: int | Tensor aten::full_like(x, v, None, None, None, None, None) => Tensor "
            "aten::full(int[] prim::ListConstruct(2, 3), v, 6, None, None, None)");
    default: return rules_of_elements(pass, node);
  }
}

static void visit_block(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b]);
    next = n->next;
    kiln_ir_value *value = kiln__rule_try(rules, pass, n);
    if (value) kiln__rule_take(pass, n, value);
  }
}

kiln_status *kiln_pass_simplify(kiln_pass *pass) {
  if (pass->env->flags.compat != KILN_COMPAT_TORCH) visit_block(pass, pass->graph->top);
  return NULL;
}
