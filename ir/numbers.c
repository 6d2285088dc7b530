/* numbers.c: what is known of a graph's ints and bools: sizes of tensors whose types are known, and
 * what is computed of them: numbers, or under symbols expressions. Of x [s0, 64] the first size is
 * s0, and x.size(1) // 4 is 16. Floats between ints are known as numbers alone. */
#include <math.h>

#include "ir/pass.h"

enum { MAX_STEPS = 256, MAX_TRIPS = 64 }; /* nodes that one question leads to; steps of a loop */

void kiln_numbers_begin(kiln_numbers *n, kiln_graph *graph, kiln_arena *scratch) {
  *n = (kiln_numbers){.graph = graph, .scratch = scratch};
  n->facts = kiln_map_in(scratch);
  n->sizes = kiln_map_in(scratch);
  n->asked = kiln_map_in(scratch);
  graph->facts = &n->facts;
  graph->sizes = &n->sizes;
}

void kiln_numbers_end(kiln_numbers *n) { n->graph->facts = n->graph->sizes = NULL; }

void kiln_numbers_go_back(kiln_numbers *n, int count) {
  while (n->values.count > count) {
    const kiln_ir_value *v = kiln_vec_pop(&n->values);
    (void)kiln_map_remove_ptr(&n->facts, v);
    (void)kiln_map_remove_ptr(&n->sizes, v);
  }
}

/* -- Looking -- */

static kiln_dims *dims_of(const kiln_numbers *n) { return kiln_type_table_dims(n->graph->types); }

static kiln_sum sum_of(const kiln_numbers *n, const kiln_ir_value *v) {
  const kiln_ivalue *fact = kiln_map_find_ptr(&n->facts, v);
  void *size = kiln_map_find_ptr(&n->sizes, v);
  int64_t number;
  if (fact && fact->tag != KILN_TAG_FLOAT)
    return kiln_sum_number(fact->tag == KILN_TAG_BOOL ? fact->u.b : fact->u.i);
  if (size) return kiln_sum_of(dims_of(n), (kiln_dim)(intptr_t)size);
  return kiln_ir_value_const_int(v, &number) ? kiln_sum_number(number)
                                             : kiln_sum_of(NULL, KILN_DIM_UNKNOWN);
}

bool kiln_numbers_find(const kiln_numbers *n, const kiln_ir_value *v, int64_t *out) {
  const kiln_sum sum = sum_of(n, v);
  *out = sum.constant;
  return sum.known && sum.count == 0;
}

/* -- Floats -- */

static bool is_float(const kiln_type *type) { return type->kind == KILN_TYPE_FLOAT; }

static bool find_float(const kiln_numbers *n, const kiln_ir_value *v, double *out) {
  const kiln_ivalue *fact = kiln_map_find_ptr(&n->facts, v);
  if (!fact) fact = kiln_ir_value_constant(v);
  if (!fact || fact->tag != KILN_TAG_FLOAT) return false;
  *out = fact->u.f;
  return true;
}

/* What the operator makes of floats, or of an int, as its own kernel does. */
static bool float_of_node(const kiln_numbers *n, const kiln_node *node, double *out) {
  double a, b = 0;
  int64_t i;
  const bool is_one = node->input_count == 1;
  if (kiln_node_is(node, KILN_OP_Float_Scalar)) {
    if (!kiln_numbers_find(n, kiln_node_input(node, 0), &i)) return false;
    *out = (double)i;
    return true;
  }
  if ((!is_one && node->input_count != 2) || !find_float(n, kiln_node_input(node, 0), &a) ||
      (!is_one && !find_float(n, kiln_node_input(node, 1), &b)))
    return false;
  switch ((kiln_op_id)node->op->id) {
    case KILN_OP_to_float32: *out = (double)(float)a; return true;
    case KILN_OP_neg_float: *out = -a; return true;
    case KILN_OP_add_float: *out = a + b; return true;
    case KILN_OP_sub_float: *out = a - b; return true;
    case KILN_OP_mul_float: *out = a * b; return true;
    case KILN_OP_div_float: *out = a / b; return b != 0;
    case KILN_OP_floordiv_float: *out = floor(a / b); return b > 0;
    case KILN_OP_prim_max_float: *out = a >= b ? a : b; return true;
    case KILN_OP_prim_min_float: *out = a >= b ? b : a; return true;
    default: return false;
  }
}
/* An int that is made of a float. */
static kiln_sum of_float(const kiln_numbers *n, const kiln_node *node) {
  const kiln_sum unknown = kiln_sum_of(NULL, KILN_DIM_UNKNOWN);
  double x;
  if (!find_float(n, kiln_node_input(node, 0), &x) || !(fabs(x) < 0x1p53)) return unknown;
  switch ((kiln_op_id)node->op->id) {
    case KILN_OP_ceil_float: return kiln_sum_number((int64_t)ceil(x));
    case KILN_OP_floor_float: return kiln_sum_number((int64_t)floor(x));
    case KILN_OP_Int_float: return kiln_sum_number((int64_t)x);
    default: return unknown;
  }
}

/* -- What nodes give -- */

static kiln_sum of_size(const kiln_numbers *n, const kiln_tensor_detail *d, int64_t at) {
  if (at < 0) at += d->rank;
  return kiln_sum_of(dims_of(n), at >= 0 && at < d->rank ? d->sizes[at] : KILN_DIM_UNKNOWN);
}

static const kiln_tensor_detail *detail_of(const kiln_ir_value *v) {
  return kiln_type_is_tensor(v->type) ? v->type->detail : NULL;
}

/* What a tensor's type says. */
static kiln_sum of_property(kiln_op_id id, const kiln_tensor_detail *d) {
  const kiln_sum unknown = kiln_sum_of(NULL, KILN_DIM_UNKNOWN);
  const bool has_device = d->device >= 0;
  switch (id) {
    case KILN_OP_dim: return d->rank >= 0 ? kiln_sum_number(d->rank) : unknown;
    case KILN_OP_prim_dtype:
      return d->dtype != KILN_DTYPE_NONE ? kiln_sum_number(d->dtype) : unknown;
    case KILN_OP_prim_is_cpu:
      return has_device ? kiln_sum_number(d->device == KILN_DEVICE_CPU) : unknown;
    case KILN_OP_prim_is_cuda:
      return has_device ? kiln_sum_number(d->device == KILN_DEVICE_CUDA) : unknown;
    default: return unknown;
  }
}

/* 1 where `a` is at least `b` for certain, 0 where it is less. */
static kiln_sum is_at_least(const kiln_numbers *n, kiln_sum a, kiln_sum b) {
  const kiln_sum apart = kiln_sum_minus(a, b), other = kiln_sum_minus(b, a);
  if (kiln_sum_is_natural(dims_of(n), apart)) return kiln_sum_number(1);
  if (kiln_sum_is_natural(dims_of(n), kiln_sum_minus(other, kiln_sum_number(1))))
    return kiln_sum_number(0);
  return kiln_sum_of(NULL, KILN_DIM_UNKNOWN);
}
static kiln_sum is_not(kiln_sum truth) { return kiln_sum_minus(kiln_sum_number(1), truth); }
static kiln_sum are_equal(const kiln_numbers *n, kiln_sum a, kiln_sum b) {
  const kiln_sum ab = is_at_least(n, a, b), ba = is_at_least(n, b, a);
  const bool apart = (ab.known && !ab.constant) || (ba.known && !ba.constant);
  return apart ? kiln_sum_number(0) : ab.known ? ba : ab;
}

static kiln_sum of_arithmetic(const kiln_numbers *n, kiln_op_id id, kiln_sum a, kiln_sum b) {
  const bool by_number = b.known && b.count == 0 && b.constant > 0;
  kiln_sum quotient = kiln_sum_quotient(dims_of(n), a, b);
  switch (id) {
    case KILN_OP_add_int: return kiln_sum_plus(a, b);
    case KILN_OP_sub_int: return kiln_sum_minus(a, b);
    case KILN_OP_mul_int: return kiln_sum_product(dims_of(n), a, b);
    case KILN_OP_floordiv_int:
      return by_number ? kiln_sum_divided(dims_of(n), a, b.constant) : quotient;
    case KILN_OP_remainder_int:
      if (by_number) quotient = kiln_sum_divided(dims_of(n), a, b.constant);
      return kiln_sum_minus(a, kiln_sum_product(dims_of(n), quotient, b));
    case KILN_OP_prim_max_int:
    case KILN_OP_prim_min_int: {
      const kiln_sum order = is_at_least(n, a, b);
      return !order.known ? order : order.constant == (id == KILN_OP_prim_max_int) ? a : b;
    }
    case KILN_OP_eq_int: return are_equal(n, a, b);
    case KILN_OP_ne_int: return is_not(are_equal(n, a, b));
    case KILN_OP_ge_int: return is_at_least(n, a, b);
    case KILN_OP_lt_int: return is_not(is_at_least(n, a, b));
    case KILN_OP_le_int: return is_at_least(n, b, a);
    case KILN_OP_gt_int: return is_not(is_at_least(n, b, a));
    default: return kiln_sum_of(NULL, KILN_DIM_UNKNOWN);
  }
}

/* Element `at` of a list. */
static kiln_sum of_item(const kiln_numbers *n, const kiln_shape_list *list, int64_t at) {
  if (at < 0) at += list->count;
  if (at < 0 || at >= list->count) return kiln_sum_of(NULL, KILN_DIM_UNKNOWN);
  return list->known[at] ? kiln_sum_number(list->ints[at])
                         : kiln_sum_of(dims_of(n), list->dims[at]);
}
/* The ints of the list that the operator takes apart; NULL: nothing is known of it. */
static const kiln_shape_list *listed(const kiln_numbers *n, kiln_op_id id,
                                     const kiln_ir_value *list) {
  const bool looks = id == KILN_OP_prim_ListUnpack || id == KILN_OP_len_t ||
                     id == KILN_OP___getitem___t || id == KILN_OP___contains___int_list;
  const bool is_ints =
      list->type->kind == KILN_TYPE_LIST && list->type->elems[0]->kind == KILN_TYPE_INT;
  return looks && is_ints ? kiln_shape_ints_of(n->scratch, list) : NULL;
}

/* How often range(from, to, step) runs, and what it gives at a step; of steps of numbers. */
static kiln_sum of_range(const kiln_numbers *n, kiln_op_id id, const kiln_node *node) {
  const kiln_sum unknown = kiln_sum_of(NULL, KILN_DIM_UNKNOWN);
  const kiln_sum a = sum_of(n, kiln_node_input(node, 0)), b = sum_of(n, kiln_node_input(node, 1));
  int64_t from, to, step;
  if (id == KILN_OP___derive_index)
    return kiln_sum_plus(b, kiln_sum_product(dims_of(n), a, sum_of(n, kiln_node_input(node, 2))));
  if (id != KILN_OP___range_length || !kiln_numbers_find(n, kiln_node_input(node, 0), &from) ||
      !kiln_numbers_find(n, kiln_node_input(node, 1), &to) ||
      !kiln_numbers_find(n, kiln_node_input(node, 2), &step) || step != 1)
    return unknown;
  return kiln_sum_number(to > from ? to - from : 0);
}

/* Whether the list has that number. */
static kiln_sum of_search(const kiln_numbers *n, const kiln_shape_list *list, kiln_sum wanted) {
  bool is_there = false;
  for (int i = 0; i < list->count && wanted.known; i++) {
    const kiln_sum same = are_equal(n, of_item(n, list, i), wanted);
    if (!same.known) return same;
    is_there |= same.constant != 0;
  }
  return wanted.known ? kiln_sum_number(is_there) : wanted;
}

static kiln_sum of_node(const kiln_numbers *n, const kiln_node *node, int output) {
  const kiln_sum unknown = kiln_sum_of(NULL, KILN_DIM_UNKNOWN);
  const kiln_ir_value *first = node->op && node->input_count ? kiln_node_input(node, 0) : NULL;
  if (!first) return unknown;
  const kiln_tensor_detail *d = detail_of(first);
  const kiln_op_id id = (kiln_op_id)node->op->id;
  const kiln_shape_list *list = listed(n, id, first);
  if (id == KILN_OP_prim_ListUnpack)
    return list && list->count == node->output_count ? of_item(n, list, output) : unknown;
  if (list && id == KILN_OP_len_t) return kiln_sum_number(list->count);
  if (d && node->input_count == 1) return of_property(id, d);
  if (is_float(first->type) && node->input_count == 1) return of_float(n, node);
  if (id == KILN_OP___not__) return is_not(sum_of(n, first));
  if (id == KILN_OP_neg_int) return kiln_sum_minus(kiln_sum_number(0), sum_of(n, first));
  if (node->input_count == 3) return of_range(n, id, node);
  if (node->input_count != 2) return unknown;
  const kiln_sum second = sum_of(n, kiln_node_input(node, 1));
  const bool is_place = second.known && second.count == 0;
  if (id == KILN_OP_size_int)
    return d && d->rank >= 0 && is_place ? of_size(n, d, second.constant) : unknown;
  if (list && id == KILN_OP___contains___int_list) return of_search(n, list, second);
  if (id == KILN_OP___getitem___t)
    return list && is_place ? of_item(n, list, second.constant) : unknown;
  const kiln_sum a = sum_of(n, first);
  return a.known && second.known ? of_arithmetic(n, id, a, second) : unknown;
}

/* -- Learning -- */

static bool is_number(const kiln_type *type) {
  return type->kind == KILN_TYPE_INT || type->kind == KILN_TYPE_BOOL || is_float(type);
}

static void set_fact(kiln_numbers *n, kiln_ir_value *v, kiln_ivalue number) {
  kiln_ivalue *fact = KILN_NEW(n->scratch, kiln_ivalue);
  *fact = number;
  kiln_map_set_ptr(&n->facts, v, fact);
}

static void learn(kiln_numbers *n, kiln_ir_value *v, kiln_sum sum) {
  if (sum.known && sum.count == 0) {
    const bool is_bool = v->type->kind == KILN_TYPE_BOOL;
    set_fact(n, v, is_bool ? kiln_bool(sum.constant != 0) : kiln_int(sum.constant));
  } else {
    const kiln_dim size = kiln_sum_dim(dims_of(n), sum);
    if (!kiln_dim_is_known(size)) return;
    kiln_map_set_ptr(&n->sizes, v, (void *)(intptr_t)size);
  }
  kiln_vec_push(n->scratch, &n->values, v);
}

static bool tells_number(const kiln_node *node) {
  if (kiln_node_is(node, KILN_OP_prim_Constant)) return true;
  return node->op && node->op->schema && node->output_count == 1 &&
         is_number(node->outputs[0]->type) &&
         (node->op->cost == KILN_COST_metadata || node->op->cost == KILN_COST_free);
}
bool kiln_numbers_is_count(const kiln_node *node) {
  if (!kiln_node_is(node, KILN_OP_prim_Loop) || !kiln_loop_is_counted(node)) return false;
  for (int i = 0; i < node->output_count; i++)
    if (!is_number(node->outputs[i]->type)) return false;
  for (const kiln_node *m = node->blocks[0]->first; m; m = m->next)
    if (!tells_number(m)) return false;
  return true;
}

/* for i in range(len(sizes) - 2): p *= sizes[i + 2]. Step by step; what is known in one is
 * forgotten in the next. */
static void learn_count(kiln_numbers *n, const kiln_node *loop) {
  const kiln_block *body = loop->blocks[0];
  const int count = loop->output_count, before = n->values.count;
  kiln_sum *carried = KILN_NEW_ARRAY(n->scratch, kiln_sum, count + 1);
  int64_t trips;
  if (!kiln_numbers_find(n, kiln_node_input(loop, 0), &trips) || trips > MAX_TRIPS) return;
  for (int i = 0; i < count; i++) carried[i] = sum_of(n, kiln_node_input(loop, 2 + i));
  for (int64_t trip = 0; trip < trips; trip++) {
    learn(n, kiln_block_input(body, 0), kiln_sum_number(trip));
    for (int i = 0; i < count; i++) learn(n, kiln_block_input(body, 1 + i), carried[i]);
    for (const kiln_node *m = body->first; m; m = m->next) kiln_numbers_learn(n, m);
    for (int i = 0; i < count; i++) carried[i] = sum_of(n, kiln_block_output(body, 1 + i));
    kiln_numbers_go_back(n, before);
  }
  for (int i = 0; i < count; i++) learn(n, loop->outputs[i], carried[i]);
}

void kiln_numbers_learn(kiln_numbers *n, const kiln_node *node) {
  if (kiln_numbers_is_count(node)) {
    if (node->output_count > 0 && !sum_of(n, node->outputs[0]).known) learn_count(n, node);
    return;
  }
  for (int i = 0; i < node->output_count; i++) {
    kiln_ir_value *v = node->outputs[i];
    double number;
    if (is_float(v->type)) {
      if (!find_float(n, v, &number) && node->op && float_of_node(n, node, &number)) {
        set_fact(n, v, kiln_float(number));
        kiln_vec_push(n->scratch, &n->values, v);
      }
    } else if (is_number(v->type) && !sum_of(n, v).known) {
      learn(n, v, of_node(n, node, i));
    }
  }
}

void kiln_numbers_same(kiln_numbers *n, kiln_ir_value *v, const kiln_ir_value *other) {
  if (is_number(v->type) && !sum_of(n, v).known) learn(n, v, sum_of(n, other));
}

/* Whether what the node reads stays as it is from there to the region. */
static bool may_ask(const kiln_numbers *n, const kiln_node *node) {
  return node->op && node->block_count == 0 && node->block == n->block &&
         (!n->since || kiln_node_is_before(n->since, node));
}

typedef struct question {
  kiln_numbers *n;
  int steps;
  kiln_numbers_visit *visit;
  void *user;
} question;

static bool is_known(const kiln_numbers *n, const kiln_ir_value *v) {
  double number;
  return is_float(v->type) ? find_float(n, v, &number) : sum_of(n, v).known;
}

static void ask(question *q, const kiln_ir_value *v) {
  const kiln_node *node = v->node;
  const bool is_list = v->type->kind == KILN_TYPE_LIST && v->type->elems[0]->kind == KILN_TYPE_INT;
  if ((!is_number(v->type) && !is_list) || kiln_node_is(node, KILN_OP_prim_Constant)) return;
  if (!is_list && is_known(q->n, v) && kiln_map_find_ptr(&q->n->asked, node)) return;
  if (q->steps++ > MAX_STEPS || !may_ask(q->n, node)) return;
  for (int i = 0; i < node->input_count; i++) {
    kiln_ir_value *input = kiln_node_input(node, i);
    if (kiln_type_is_tensor(input->type) && q->visit) q->visit(q->user, input);
    ask(q, input);
  }
  if (!is_list) kiln_numbers_learn(q->n, node);
  if (is_list ? kiln_shape_list_stays(v) : is_known(q->n, v))
    kiln_map_set_ptr(&q->n->asked, node, q->n);
}

void kiln_numbers_ask(kiln_numbers *n, const kiln_node *node, kiln_numbers_visit *visit,
                      void *user) {
  question q = {.n = n, .visit = visit, .user = user};
  for (int i = 0; i < node->input_count; i++) ask(&q, kiln_node_input(node, i));
}
