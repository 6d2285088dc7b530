/* verify.c: what every kernel in loop IR must satisfy, so that back ends need no checks.
 *
 * Overlap of stores is checked between whole nests, by what is proved of their offsets and loops,
 * numbers or symbols: cat's splitting lays its parts behind each other; within a nest a store must
 * move with every loop. */
#include <string.h>

#include "codegen/loop/loop.h"

#define REFUSE(...) return KILN_ERROR(KILN_INTERNAL, "loop IR: " __VA_ARGS__)

/* A nest that is looked at, with what is known of all its loops at an instruction. */
typedef struct nest_check {
  const kiln_loop_fn *fn;
  const kiln_loop_nest *nest;
  kiln_loop_scopes scopes;
  int depth; /* loops around the instruction that is looked at */
  kiln_dim extents[KILN_LOOP_MAX_RANK];
} nest_check;

/* What (size - 1) x stride adds up to over the dimensions: the distance from the first element to
 * the last. */
static kiln_status *distance(kiln_dims *dims, int rank, const kiln_dim *sizes,
                             const kiln_dim *strides, kiln_sum *out_last, bool *out_empty) {
  *out_last = kiln_sum_number(0);
  *out_empty = false;
  for (int d = 0; d < rank; d++) {
    if (!kiln_dim_is_known(sizes[d]) || !kiln_dim_is_known(strides[d])) {
      REFUSE("a negative size or stride");
    }
    *out_empty |= sizes[d] == 0;
    const kiln_sum steps = kiln_sum_minus(kiln_sum_of(dims, sizes[d]), kiln_sum_number(1));
    const kiln_sum way = kiln_sum_product(dims, steps, kiln_sum_of(dims, strides[d]));
    *out_last = kiln_sum_plus(*out_last, way);
    if (!out_last->known) REFUSE("a buffer of more than 2^63 elements, or of too many terms");
  }
  return NULL;
}

/* A map begins in its buffer, and goes forward. */
static bool is_forward(const nest_check *n, const kiln_loop_inst *inst) {
  const kiln_dims *dims = n->fn->dims;
  bool natural = kiln_sum_is_natural(dims, kiln_sum_of(dims, inst->offset));
  for (int d = 0; d < n->depth && natural; d++)
    natural = kiln_sum_is_natural(dims, kiln_sum_of(dims, inst->strides[d]));
  return natural;
}

/* The last element of the input is in the copy, which lies without gaps, dimensions in any order.
 */
static kiln_status *verify_copy(const kiln_loop_fn *fn, const kiln_loop_buffer *b) {
  const kiln_loop_copy *c = b->copy;
  bool symbols = false;
  if (b->rank == 0) REFUSE("a copy of a number");
  if (!kiln_dim_is_number(c->from) || c->from > KILN_DIM_MOST) REFUSE("a copy of no number");
  for (int d = 0; d < b->rank; d++)
    symbols |= !kiln_dim_is_number(c->sizes[d]) || !kiln_dim_is_number(c->strides[d]);
  for (int d = 0; d < b->rank; d++) {
    const kiln_dim dims[] = {b->sizes[d], c->sizes[d], c->strides[d], c->before[d], c->flipped[d]};
    for (size_t k = 0; k < sizeof dims / sizeof *dims; k++) {
      const bool known = k < 3 ? kiln_dim_is_known(dims[k]) : kiln_dim_is_number(dims[k]);
      if (!known || dims[k] > KILN_DIM_MOST) REFUSE("a copy of no number");
    }
    if (c->sizes[d] == 0 || c->flipped[d] > !symbols || (c->from && symbols))
      REFUSE("a copy of nothing");
    const kiln_sum size = kiln_sum_of(fn->dims, c->sizes[d]),
                   all = kiln_sum_of(fn->dims, b->sizes[d]);
    const kiln_sum end = kiln_sum_plus(size, kiln_sum_number(c->before[d]));
    if (!kiln_sum_is_natural(fn->dims, kiln_sum_minus(all, end)))
      REFUSE("a copy that is smaller than what it is of");
  }
  if (!kiln_loop_is_dense_copy(fn->dims, b)) REFUSE("a copy that is not contiguous");
  return NULL;
}

static kiln_status *verify_buffer(const kiln_loop_fn *fn, const kiln_loop_buffer *b) {
  kiln_sum last;
  bool empty;
  if (b->copy) KILN_TRY(verify_copy(fn, b));
  KILN_TRY(distance(fn->dims, b->rank, b->sizes, b->strides, &last, &empty));
  if (!empty && last.count == 0 && last.constant > INT64_MAX / 16) {
    REFUSE("a buffer of more than 2^59 elements");
  }
  return NULL;
}

static kiln_status *verify_access(const nest_check *n, int number) {
  const kiln_loop_fn *fn = n->fn;
  const kiln_loop_inst *inst = &n->nest->body.data[number];
  const bool is_store = inst->op == KILN_LOOP_store;
  if (inst->index < 0 || inst->index >= fn->buffers.count) REFUSE("%%%d: no such buffer", number);
  const kiln_loop_buffer *buffer = &fn->buffers.data[inst->index];
  const bool is_local = inst->index >= fn->input_count + fn->output_count;
  if (inst->op == KILN_LOOP_gather && inst->index >= fn->input_count)
    REFUSE("%%%d: b%d is no input", number, inst->index);
  if (!is_local && is_store == (inst->index < fn->input_count))
    REFUSE("%%%d: inputs are loaded, outputs stored", number);
  if (inst->dtype != buffer->dtype) REFUSE("%%%d: not the type of its buffer", number);
  kiln_sum last, reach;
  bool empty, none;
  KILN_TRY(distance(fn->dims, buffer->rank, buffer->sizes, buffer->strides, &last, &empty));
  KILN_TRY(distance(fn->dims, n->depth, n->extents, inst->strides, &reach, &none));
  kiln_sum from = kiln_sum_plus(reach, kiln_sum_of(fn->dims, inst->offset));
  if (inst->op == KILN_LOOP_gather) {
    const kiln_loop_inst *check = &n->nest->body.data[inst->args[0]];
    if (check->op != KILN_LOOP_check) REFUSE("%%%d: its index is not checked", number);
    KILN_TRY(distance(fn->dims, 1, &check->offset, &inst->imm.step, &reach, &none));
    from = kiln_sum_plus(from, reach);
  }
  if (empty || !is_forward(n, inst) || !kiln_sum_is_natural(fn->dims, kiln_sum_minus(last, from)))
    REFUSE("%%%d reaches outside of b%d", number, inst->index);
  for (int d = is_local ? n->nest->rank : 0; is_store && d < n->depth; d++)
    if (n->extents[d] != 1 && inst->strides[d] == 0)
      REFUSE("%%%d stores to one place repeatedly", number);
  for (int d = 0; is_local && d < n->nest->rank; d++)
    if (inst->strides[d] != 0)
      REFUSE("%%%d: b%d is local, and moves with a loop of the nest", number, inst->index);
  return NULL;
}

static kiln_status *verify_index(const nest_check *n, int number) {
  const kiln_loop_inst *inst = &n->nest->body.data[number];
  bool known = kiln_dim_is_known(inst->offset);
  for (int d = 0; d < n->depth; d++) known &= kiln_dim_is_known(inst->strides[d]);
  if (!known || inst->dtype != KILN_DTYPE_I64) REFUSE("%%%d: an index is i64", number);
  return NULL;
}

static kiln_status *verify_check(const nest_check *n, int number) {
  const kiln_loop_inst *inst = &n->nest->body.data[number];
  const kiln_dtype from = n->nest->body.data[inst->args[0]].dtype;
  if (inst->dtype != KILN_DTYPE_I64 || from != KILN_DTYPE_I64)
    REFUSE("%%%d: an index is i64", number);
  if (inst->offset == 0 || !kiln_dim_is_known(inst->offset))
    REFUSE("%%%d: no index is below that", number);
  return NULL;
}

/* -- Local buffers -- */

/* Whether the store's loops count through all elements of its buffer. */
static bool fills(const nest_check *n, int store) {
  const kiln_loop_inst *inst = &n->nest->body.data[store];
  const kiln_loop_buffer *b = &n->fn->buffers.data[inst->index];
  kiln_loop_move moves[KILN_LOOP_MAX_RANK];
  const int count = kiln_loop_moves(n->fn, n->nest, &n->scopes, store, moves);
  kiln_dim stored = 1, all = 1;
  for (int i = 0; i < count; i++) { /* innermost first, in any order */
    int next = 0;
    while (next < count && moves[next].stride != stored) next++;
    if (next == count) return false;
    stored = kiln_dim_product(n->fn->dims, stored, moves[next].extent);
  }
  for (int d = b->rank - 1; d >= 0; d--) {
    if (b->sizes[d] != 1 && b->strides[d] != all) return false;
    all = kiln_dim_product(n->fn->dims, all, b->sizes[d]);
  }
  return inst->offset == 0 && kiln_dim_is_known(all) && stored == all;
}

/* A load of a local buffer reads, behind the loops of its one store, what this stored: its loops
 * are the store's, in the same order, or all of the buffer is stored. `stores`: of each local
 * buffer, -1 where there is none yet. */
static kiln_status *verify_local(const nest_check *n, int number, int *stores) {
  const kiln_loop_inst *inst = &n->nest->body.data[number];
  const int local = inst->index - n->fn->input_count - n->fn->output_count;
  if (!kiln_loop_is_access(inst) || local < 0) return NULL;
  const int store = stores[local];
  if (inst->op == KILN_LOOP_store) {
    if (store >= 0) REFUSE("%%%d: b%d is stored already", number, inst->index);
    stores[local] = number;
    return NULL;
  }
  if (store < 0) REFUSE("%%%d: b%d is not stored yet", number, inst->index);
  int outer = -1;
  for (int at = n->scopes.parent[store]; at >= 0; at = n->scopes.parent[at]) outer = at;
  if (outer >= 0 && number < n->scopes.end[outer])
    REFUSE("%%%d: the loop that stores b%d is still open", number, inst->index);
  if (!kiln_loop_same_moves(n->fn, n->nest, &n->scopes, number, store) && !fills(n, store))
    REFUSE("%%%d does not walk b%d as its store does", number, inst->index);
  return NULL;
}

static kiln_status *verify_reduction(const nest_check *n, int number) {
  const kiln_loop_inst *inst = &n->nest->body.data[number];
  int at = n->scopes.parent[number];
  if (inst->index < 1) REFUSE("%%%d: over no loop", number);
  for (int i = 0; i < inst->index; i++, at = n->scopes.parent[at]) {
    if (at < 0) REFUSE("%%%d: over %d loops, but it stands in %d", number, inst->index, i);
    if (n->nest->body.data[at].op != KILN_LOOP_reduce)
      REFUSE("%%%d: loop %d around it is no reduce loop", number, i + 1);
  }
  return NULL;
}

static bool stands_in_scan(const nest_check *n, int number) {
  const int parent = n->scopes.parent[number];
  return parent >= 0 && n->nest->body.data[parent].op == KILN_LOOP_scan;
}

static kiln_status *verify_types(const nest_check *n, int number) {
  const kiln_loop_nest *nest = n->nest;
  const kiln_loop_inst *inst = &nest->body.data[number];
  const kiln_loop_op_info *info = &kiln_loop_ops[inst->op];
  kiln_dtype types[3] = {KILN_DTYPE_NONE, KILN_DTYPE_NONE, KILN_DTYPE_NONE};
  for (int a = 0; a < info->arity; a++) {
    int arg = inst->args[a];
    if (arg < 0 || arg >= number || !kiln_loop_has_result(nest->body.data[arg].op))
      REFUSE("%%%d: operand %d is not an earlier value", number, a);
    if (!kiln_loop_sees(nest, &n->scopes, number, arg))
      REFUSE("%%%d: operand %d is of a loop that it does not stand in", number, a);
    types[a] = nest->body.data[arg].dtype;
  }
  const bool differs = info->rule == KILN_LOOP_RULE_COMPARE || info->rule == KILN_LOOP_RULE_FIND;
  kiln_dtype operand = differs ? types[0] : inst->dtype;
  int class = kiln_loop_class(operand);
  if (class == 0 || kiln_loop_class(inst->dtype) == 0) REFUSE("%%%d: unknown type", number);
  if (!(class & info->classes)) REFUSE("%%%d: %s does not take this type", number, info->name);
  switch (info->rule) {
    case KILN_LOOP_RULE_LEAF: break;
    case KILN_LOOP_RULE_STORE:
      if (types[0] != inst->dtype) REFUSE("%%%d stores a value of another type", number);
      break;
    case KILN_LOOP_RULE_CAST:
      if (((kiln_loop_class(types[0]) | class) & KILN_LOOP_CLASS_H) && types[0] != KILN_DTYPE_F32 &&
          inst->dtype != KILN_DTYPE_F32)
        REFUSE("%%%d: f16 and bf16 are cast from and to f32 only", number);
      break;
    case KILN_LOOP_RULE_SAME:
    case KILN_LOOP_RULE_SCAN:
    case KILN_LOOP_RULE_COMPARE:
    case KILN_LOOP_RULE_REDUCE:
    case KILN_LOOP_RULE_FIND:
      for (int a = 0; a < info->arity; a++)
        if (types[a] != operand) REFUSE("%%%d: operands of different types", number);
      if (info->rule == KILN_LOOP_RULE_COMPARE && inst->dtype != KILN_DTYPE_BOOL)
        REFUSE("%%%d: a comparison gives bool", number);
      if (info->rule == KILN_LOOP_RULE_FIND && inst->dtype != KILN_DTYPE_I64)
        REFUSE("%%%d: the place of a value is an i64", number);
      break;
    case KILN_LOOP_RULE_SELECT:
      if (types[0] != KILN_DTYPE_BOOL || types[1] != inst->dtype || types[2] != inst->dtype)
        REFUSE("%%%d: select of wrong types", number);
      break;
    default: break;
  }
  return NULL;
}

/* -- Stores -- */

/* A store, and the loops that move it. */
typedef struct store_site {
  const kiln_loop_inst *inst;
  int nest, depth;
  kiln_dim extents[KILN_LOOP_MAX_RANK];
} store_site;
typedef KILN_VEC(store_site) store_sites;

/* Term i of a sum that is no number. */
static kiln_sum term_of(const kiln_dims *dims, const kiln_sum *s, int i) {
  return kiln_sum_times(kiln_sum_of(dims, s->terms[i].atom), s->terms[i].coefficient);
}

/* What a sum leaves of whole steps: of s1 + 3 in steps of s1 + 2 it is 1. Terms of the step are in
 * order, and the first one says how often it is taken out, or once less: 2*s1 - 1 in steps of s1
 * leaves s1 - 1. */
static kiln_sum remainder_of(kiln_dims *dims, kiln_sum a, kiln_sum step) {
  const kiln_sum first = step.count ? term_of(dims, &step, 0) : step;
  for (int turns = 0, i = 0; i < a.count && turns < KILN_SUM_TERMS; i++) {
    const kiln_sum times = kiln_sum_quotient(dims, term_of(dims, &a, i), first);
    kiln_sum rest = kiln_sum_minus(a, kiln_sum_product(dims, times, step));
    if (!kiln_sum_is_natural(dims, rest)) {
      const bool once = times.count == 0 && times.constant == 1; /* it would be as it was */
      rest = kiln_sum_plus(rest, step);
      if (once || !kiln_sum_is_natural(dims, rest)) continue;
    }
    a = rest;
    i = -1;
    turns++;
  }
  if (step.count == 0) a.constant %= step.constant;
  return a;
}

/* Where a store may be within each `step` of its buffer: from `first` to `last`, below it. */
typedef struct interval {
  bool known;
  kiln_sum first, last;
} interval;

static interval interval_of(kiln_dims *dims, const store_site *s, kiln_dim step) {
  const kiln_sum whole = kiln_sum_of(dims, step);
  interval in = {.first = kiln_sum_of(dims, s->inst->offset)};
  if (step != 0) in.first = remainder_of(dims, in.first, whole);
  in.last = in.first;
  for (int d = 0; d < s->depth; d++) {
    const kiln_sum stride = kiln_sum_of(dims, s->inst->strides[d]);
    if (step != 0 && kiln_sum_quotient(dims, stride, whole).known) continue;
    const kiln_sum turns = kiln_sum_minus(kiln_sum_of(dims, s->extents[d]), kiln_sum_number(1));
    in.last = kiln_sum_plus(in.last, kiln_sum_product(dims, turns, stride));
  }
  const kiln_sum over = kiln_sum_minus(kiln_sum_minus(whole, kiln_sum_number(1)), in.last);
  in.known = kiln_sum_is_natural(dims, in.first) && in.last.known &&
             (step == 0 || kiln_sum_is_natural(dims, over));
  return in;
}

/* The stores of one output, and where each is within each of some steps: of all of it (0), of its
 * strides, and of those of the loops around the stores: two that are interleaved, at [2 i] and at
 * [2 i + 1], lie apart in each 2. */
enum { MOST_STEPS = 2 * KILN_LOOP_MAX_RANK + 1 };
typedef struct stored {
  kiln_dims *dims;
  int count, step_count;
  kiln_dim steps[MOST_STEPS];
  interval *in; /* [step][store] */
} stored;

static void add_step(stored *s, kiln_dim step) {
  if (step == 0 || step == 1 || s->step_count == MOST_STEPS) return;
  for (int k = 0; k < s->step_count; k++)
    if (s->steps[k] == step) return;
  s->steps[s->step_count++] = step;
}

static stored find_intervals(const kiln_loop_fn *fn, const kiln_loop_buffer *b,
                             const store_sites *sites, kiln_arena *scratch) {
  stored s = {.dims = fn->dims, .count = sites->count, .step_count = 1};
  for (int d = 0; d < b->rank; d++)
    if (b->sizes[d] != 1) add_step(&s, b->strides[d]);
  for (int i = 0; i < s.count && s.step_count < MOST_STEPS; i++)
    for (int d = 0; d < sites->data[i].depth; d++) add_step(&s, sites->data[i].inst->strides[d]);
  s.in = KILN_NEW_ARRAY(scratch, interval, s.step_count * s.count);
  for (int k = 0; k < s.step_count; k++) {
    for (int i = 0; i < s.count; i++)
      s.in[k * s.count + i] = interval_of(s.dims, &sites->data[i], s.steps[k]);
  }
  return s;
}

/* Whether store i lies behind store j in each of the steps. */
static bool is_behind(const stored *s, int step, int i, int j) {
  const interval *x = &s->in[step * s->count + i], *y = &s->in[step * s->count + j];
  const kiln_sum gap = kiln_sum_minus(x->first, y->last);
  return x->known && y->known &&
         kiln_sum_is_natural(s->dims, kiln_sum_minus(gap, kiln_sum_number(1)));
}

/* Each store lies behind the one before, as cat's and stack's do. */
static bool are_in_order(const stored *s) {
  for (int k = 0; k < s->step_count; k++) {
    int i = 1;
    while (i < s->count && is_behind(s, k, i, i - 1)) i++;
    if (i >= s->count) return true;
  }
  return false;
}

static bool may_meet(const stored *s, int i, int j) {
  for (int k = 0; k < s->step_count; k++)
    if (is_behind(s, k, i, j) || is_behind(s, k, j, i)) return false;
  return true;
}

/* Stores to one output never meet: they lie apart in all of it, or in each step of one of its
 * strides. cat(x [s0, s1], y [s0, s2], 1) stores x at 0 up to s1 - 1 of each row of s1 + s2. Errs
 * on the side of refusing. */
static kiln_status *verify_stores(const kiln_loop_fn *fn, const store_sites *sites,
                                  kiln_arena *scratch) {
  store_sites *of = KILN_NEW_ARRAY(scratch, store_sites, fn->buffers.count + 1);
  for (int i = 0; i < sites->count; i++)
    kiln_vec_push(scratch, &of[sites->data[i].inst->index], sites->data[i]);
  for (int b = 0; b < fn->buffers.count; b++) {
    if (of[b].count < 2) continue;
    const stored s = find_intervals(fn, &fn->buffers.data[b], &of[b], scratch);
    if (are_in_order(&s)) continue;
    for (int i = 0; i < s.count; i++) {
      for (int j = i + 1; j < s.count; j++) {
        if (may_meet(&s, i, j))
          REFUSE("nests %d and %d may store to the same places of b%d", of[b].data[i].nest,
                 of[b].data[j].nest, b);
      }
    }
  }
  return NULL;
}

/* -- All -- */

static kiln_status *verify_inst(const nest_check *n, int number) {
  const kiln_loop_inst *inst = &n->nest->body.data[number];
  const kiln_loop_rule rule = kiln_loop_ops[inst->op].rule;
  if (rule == KILN_LOOP_RULE_END) return NULL;
  if (rule == KILN_LOOP_RULE_OPEN) {
    if (inst->offset == 0 || !kiln_dim_is_known(inst->offset))
      REFUSE("%%%d: an empty loop", number);
    if (stands_in_scan(n, number)) REFUSE("%%%d: a loop in a scan loop", number);
    return NULL;
  }
  KILN_TRY(verify_types(n, number));
  if (kiln_loop_is_access(inst)) KILN_TRY(verify_access(n, number));
  if (kiln_loop_reduces(inst->op)) KILN_TRY(verify_reduction(n, number));
  if (kiln_loop_carries(inst->op) && !stands_in_scan(n, number))
    REFUSE("%%%d stands in no scan loop", number);
  if (inst->op == KILN_LOOP_scalar && (inst->index < 0 || inst->index >= n->fn->scalars.count ||
                                       inst->dtype != n->fn->scalars.data[inst->index]))
    REFUSE("%%%d: no such scalar of that type", number);
  if (inst->op == KILN_LOOP_index) KILN_TRY(verify_index(n, number));
  if (inst->op == KILN_LOOP_check) KILN_TRY(verify_check(n, number));
  if (inst->op == KILN_LOOP_dim &&
      (inst->dtype != KILN_DTYPE_I64 || !kiln_dim_is_known(inst->offset)))
    REFUSE("%%%d: a dimension is i64", number);
  if (inst->op == KILN_LOOP_const && kiln_loop_class(inst->dtype) == KILN_LOOP_CLASS_H)
    REFUSE("%%%d: no constants of f16 and bf16", number);
  return NULL;
}

/* Loops of a body that close, in a rank that has room. */
static kiln_status *verify_loops(const kiln_loop_nest *nest) {
  int depth = nest->rank;
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_rule rule = kiln_loop_ops[nest->body.data[i].op].rule;
    depth += (rule == KILN_LOOP_RULE_OPEN) - (rule == KILN_LOOP_RULE_END);
    if (depth < nest->rank) REFUSE("%%%d ends no loop", i);
    if (depth > KILN_LOOP_MAX_RANK) REFUSE("%%%d: more than %d loops", i, KILN_LOOP_MAX_RANK);
  }
  if (depth > nest->rank) REFUSE("a loop has no end");
  return NULL;
}

static kiln_status *verify_nest(const kiln_loop_fn *fn, int number, kiln_arena *scratch,
                                store_sites *sites) {
  const kiln_loop_nest *nest = fn->nests.data[number];
  const int locals = fn->buffers.count - fn->input_count - fn->output_count;
  nest_check n = {.fn = fn, .nest = nest};
  for (int d = 0; d < nest->rank; d++) {
    n.extents[d] = nest->extents[d];
    if (nest->extents[d] == 0 || !kiln_dim_is_known(nest->extents[d]))
      REFUSE("nest %d has an empty loop", number);
  }
  KILN_TRY(verify_loops(nest));
  n.scopes = kiln_loop_scopes_of(nest, scratch);
  int *stores = KILN_NEW_ARRAY(scratch, int, locals + 1);
  for (int i = 0; i < locals; i++) stores[i] = -1;
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    n.depth = n.scopes.depth[i];
    KILN_TRY(verify_inst(&n, i));
    KILN_TRY(verify_local(&n, i, stores));
    if (kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_OPEN) n.extents[n.depth] = inst->offset;
    if (inst->op != KILN_LOOP_store || inst->index >= fn->input_count + fn->output_count) continue;
    store_site site = {.inst = inst, .nest = number, .depth = n.depth};
    memcpy(site.extents, n.extents, sizeof site.extents);
    kiln_vec_push(scratch, sites, site);
  }
  return NULL;
}

static kiln_status *verify(const kiln_loop_fn *fn, kiln_arena *scratch) {
  store_sites sites = {0};
  for (int i = 0; i < fn->scalars.count; i++) {
    kiln_dtype t = fn->scalars.data[i];
    if (t != KILN_DTYPE_I64 && t != KILN_DTYPE_F64 && t != KILN_DTYPE_BOOL)
      REFUSE("scalar x%d is not i64, f64 or bool", i);
  }
  for (int i = 0; i < fn->buffers.count; i++) {
    const kiln_loop_buffer *b = &fn->buffers.data[i];
    if (!kiln_loop_class(b->dtype)) REFUSE("b%d: unknown type", i);
    KILN_TRY(verify_buffer(fn, b));
  }
  for (int n = 0; n < fn->nests.count; n++) KILN_TRY(verify_nest(fn, n, scratch, &sites));
  return verify_stores(fn, &sites, scratch);
}

kiln_status *kiln_loop_verify(const kiln_loop_fn *fn) {
  kiln_arena *scratch = kiln_arena_scoped(kiln_arena_mem(fn->arena));
  kiln_status *status = verify(fn, scratch);
  kiln_arena_destroy(scratch);
  return status;
}
