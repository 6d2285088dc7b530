/* pass_keep.c: what a loop of the body computes, and one behind it again, is kept in a local
 * buffer.
 *
 * Loops that stand in no other one of the body and hold one innermost loop are compared, if their
 * extents are the same: two instructions are equal if their opcodes and operands are, where equal
 * operands may themselves be of two loops. exp(x - greatest) of softmax is computed for the sum and
 * again for the quotients; kept, it is stored by the first loop and loaded by the second. */
#include <string.h>

#include "codegen/loop/loop.h"

enum { MOST_LOCALS = 8, MOST_BYTES = 1 << 18 };

/* A loop of the nest's body that holds one innermost loop and nothing else. */
typedef struct chain {
  int open, begin, end;                 /* its OPEN; the instructions of the innermost loop */
  int depth;                            /* of these */
  kiln_dim extents[KILN_LOOP_MAX_RANK]; /* of its loops, from the nest's rank on */
} chain;

typedef struct keeping {
  kiln_loop_fn *fn;
  kiln_loop_nest *nest;
  kiln_arena *scratch;
  kiln_loop_scopes scopes;
  KILN_VEC(chain) chains;
  int *chain_of; /* of each instruction: its chain, -1: none */
  int *equal;    /* the first one that is equal, itself if there is none before */
  int *local;    /* of what is kept: its buffer; else -1 */
  double *cost;  /* of an instruction with all that it needs in its loop, nanoseconds */
} keeping;

static bool is_opening(const kiln_loop_nest *nest, int i) {
  return kiln_loop_ops[nest->body.data[i].op].rule == KILN_LOOP_RULE_OPEN;
}

static void find_chains(keeping *k) {
  const int rank = k->nest->rank;
  for (int i = 0; i < k->nest->body.count; i++) {
    if (!is_opening(k->nest, i)) continue;
    chain c = {.open = i, .begin = i, .end = k->scopes.end[i], .depth = rank};
    const int behind = c.end;
    for (; is_opening(k->nest, c.begin) && k->scopes.end[c.begin] == c.end; c.begin++, c.end--)
      c.extents[c.depth++] = k->nest->body.data[c.begin].offset;
    c.end++;
    bool alone = true;
    for (int n = c.begin; n < c.end; n++) alone &= !is_opening(k->nest, n);
    for (int n = c.begin; alone && n < c.end; n++) k->chain_of[n] = k->chains.count;
    if (alone) kiln_vec_push(k->scratch, &k->chains, c);
    i = behind;
  }
}

static bool same_extents(const keeping *k, const chain *a, const chain *b) {
  const int rank = k->nest->rank;
  return a->depth == b->depth && memcmp(a->extents + rank, b->extents + rank,
                                        sizeof *a->extents * (size_t)(a->depth - rank)) == 0;
}

/* -- Equal instructions -- */

static uint64_t hash_of(const keeping *k, int i) {
  const kiln_loop_inst *inst = &k->nest->body.data[i];
  uint64_t h = kiln_hash_mix((uint64_t)inst->op, (uint64_t)inst->dtype);
  for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++)
    h = kiln_hash_mix(h, (uint64_t)k->equal[inst->args[a]]);
  h = kiln_hash_mix(h, (uint64_t)inst->index + 1);
  h = kiln_hash_mix(h, (uint64_t)inst->offset);
  for (int d = 0; d < KILN_LOOP_MAX_RANK; d++) h = kiln_hash_mix(h, (uint64_t)inst->strides[d]);
  return kiln_hash_mix(h, (uint64_t)inst->imm.i);
}

static bool is_equal(const keeping *k, int i, int n) {
  const kiln_loop_inst *a = &k->nest->body.data[i], *b = &k->nest->body.data[n];
  bool equal = a->op == b->op && a->dtype == b->dtype && a->index == b->index &&
               a->offset == b->offset && a->imm.i == b->imm.i &&
               memcmp(a->strides, b->strides, sizeof a->strides) == 0;
  for (int o = 0; equal && o < kiln_loop_ops[a->op].arity; o++)
    equal = k->equal[a->args[o]] == k->equal[b->args[o]];
  return equal && same_extents(k, &k->chains.data[k->chain_of[i]], &k->chains.data[k->chain_of[n]]);
}

static void find_equal(keeping *k) {
  const int count = k->nest->body.count;
  size_t mask = 15;
  while (mask < 2 * (size_t)count) mask = mask * 2 + 1;
  int *slots = KILN_NEW_ARRAY(k->scratch, int, (int)mask + 1);
  for (int i = 0; i < count; i++) {
    const kiln_loop_inst *inst = &k->nest->body.data[i];
    k->equal[i] = i;
    k->cost[i] = kiln_loop_inst_cost(inst);
    if (k->chain_of[i] < 0 || !kiln_loop_has_result(inst->op) || kiln_loop_reduces(inst->op) ||
        kiln_loop_carries(inst->op)) {
      continue;
    }
    for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++)
      if (k->chain_of[inst->args[a]] == k->chain_of[i]) k->cost[i] += k->cost[inst->args[a]];
    size_t slot = (size_t)hash_of(k, i) & mask;
    for (; slots[slot]; slot = (slot + 1) & mask) {
      if (!is_equal(k, slots[slot] - 1, i)) continue;
      k->equal[i] = slots[slot] - 1;
      break;
    }
    if (!slots[slot]) slots[slot] = i + 1;
  }
}

/* -- What is kept -- */

/* A local buffer that has the chain's sizes: then another one is no burden, whatever symbols are.
 */
static bool has_local(const keeping *k, const chain *c) {
  const int rank = c->depth - k->nest->rank;
  const kiln_dim *sizes = c->extents + k->nest->rank;
  for (int i = k->fn->input_count + k->fn->output_count; i < k->fn->buffers.count; i++) {
    const kiln_loop_buffer *b = &k->fn->buffers.data[i];
    if (b->rank == rank && memcmp(b->sizes, sizes, sizeof *sizes * (size_t)rank) == 0) return true;
  }
  return false;
}

static int add_local(keeping *k, const chain *c, kiln_dtype dtype) {
  const int rank = c->depth - k->nest->rank;
  int64_t strides[KILN_LOOP_MAX_RANK] = {1}, bytes = kiln_loop_size(dtype);
  if (rank == 1 && has_local(k, c))
    return kiln_loop_add_local(k->fn, dtype, 1, c->extents + k->nest->rank, strides);
  const int lanes = kiln_loop_strips_body(k->nest) ? 1 : KILN_REDUCE_LANES / 4;
  for (int d = rank - 1; d >= 0; d--) {
    const kiln_dim extent = c->extents[k->nest->rank + d];
    strides[d] = bytes / kiln_loop_size(dtype);
    if (!kiln_dim_is_number(extent) || extent > MOST_BYTES / lanes / bytes) return -1;
    bytes *= extent;
  }
  return kiln_loop_add_local(k->fn, dtype, rank, c->extents + k->nest->rank, strides);
}

/* Whether instruction i is computed again, for what is not: kept where that saves something. */
static bool find_kept(keeping *k) {
  const double worth = 0.3; /* a store and a load take 0.1 */
  int kept = 0;
  for (int i = 0; i < k->nest->body.count; i++) k->local[i] = -1;
  for (int i = 0; i < k->nest->body.count; i++) {
    const kiln_loop_inst *inst = &k->nest->body.data[i];
    const bool again = k->equal[i] != i && k->chain_of[k->equal[i]] != k->chain_of[i];
    if (again) continue;
    for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++) {
      const int value = inst->args[a], first = k->equal[value];
      if (k->chain_of[value] < 0 || k->chain_of[value] != k->chain_of[i]) continue;
      if (k->chain_of[first] == k->chain_of[value] || k->cost[value] < worth) continue;
      if (k->local[first] >= 0 || kept == MOST_LOCALS) continue;
      k->local[first] =
          add_local(k, &k->chains.data[k->chain_of[first]], k->nest->body.data[value].dtype);
      kept += k->local[first] >= 0;
    }
  }
  return kept > 0;
}

/* -- The body again -- */

static kiln_loop_inst access_to(const keeping *k, int local, kiln_loop_opcode op) {
  const kiln_loop_buffer *b = &k->fn->buffers.data[local];
  kiln_loop_inst inst = {.op = op, .dtype = b->dtype, .args = {-1, -1, -1}, .index = local};
  memcpy(inst.strides + k->nest->rank, b->strides, sizeof *b->strides * (size_t)b->rank);
  return inst;
}

static void build_again(keeping *k) {
  const int count = k->nest->body.count;
  int *number = KILN_NEW_ARRAY(k->scratch, int, count + 1);
  kiln_loop_inst *from = KILN_NEW_ARRAY(k->scratch, kiln_loop_inst, count + 1);
  memcpy(from, k->nest->body.data, sizeof *from * (size_t)count);
  k->nest->body.count = 0;
  for (int i = 0; i < count; i++) {
    kiln_loop_inst inst = from[i];
    const int first = k->equal[i], local = k->local[first];
    for (int a = 0; a < kiln_loop_ops[inst.op].arity; a++) inst.args[a] = number[inst.args[a]];
    if (local >= 0 && k->chain_of[first] != k->chain_of[i])
      inst = access_to(k, local, KILN_LOOP_load);
    number[i] = k->nest->body.count;
    kiln_vec_push(k->fn->arena, &k->nest->body, inst);
    if (local < 0 || first != i) continue;
    kiln_loop_inst store = access_to(k, local, KILN_LOOP_store);
    store.args[0] = number[i];
    kiln_vec_push(k->fn->arena, &k->nest->body, store);
  }
}

kiln_status *kiln_loop_pass_keep(kiln_loop_fn *fn, kiln_arena *scratch, bool *out_changed) {
  *out_changed = false;
  for (int n = 0; n < fn->nests.count; n++) {
    const int count = fn->nests.data[n]->body.count + 1;
    keeping k = {.fn = fn, .nest = fn->nests.data[n], .scratch = scratch};
    k.scopes = kiln_loop_scopes_of(k.nest, scratch);
    k.chain_of = KILN_NEW_ARRAY(scratch, int, count);
    k.equal = KILN_NEW_ARRAY(scratch, int, count);
    k.local = KILN_NEW_ARRAY(scratch, int, count);
    k.cost = KILN_NEW_ARRAY(scratch, double, count);
    for (int i = 0; i < count; i++) k.chain_of[i] = -1;
    find_chains(&k);
    if (k.chains.count < 2) continue;
    find_equal(&k);
    if (!find_kept(&k)) continue;
    build_again(&k);
    *out_changed = true;
  }
  return NULL;
}
