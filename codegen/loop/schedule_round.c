/* schedule_round.c: inputs that a kernel rounds to bf16 and reads for nothing else: whoever calls
 * it does so once, and not each iteration anew. What is packed lies as bf16 then; what the word
 * `round` names is read as f32, of numbers that are rounded already. The kernel's own text says
 * what it computes, and has the casts. */
#include <string.h>

#include "codegen/loop/schedule.h"

#define REFUSE(number, ...) \
  return kiln_status_note(KILN_ERROR(KILN_INVALID_ARGUMENT, __VA_ARGS__), "nest %d", number)

/* Whether what reads the value are casts to the type, of which there is one. */
static bool is_cast_alone(const kiln_loop_nest *nest, int value, kiln_dtype dtype) {
  bool any = false;
  for (int i = value + 1; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++) {
      if (inst->args[a] != value) continue;
      if (inst->op != KILN_LOOP_cast || inst->dtype != dtype) return false;
      any = true;
    }
  }
  return any;
}

bool kiln__schedule_is_rounded(const kiln_loop_nest *nest, int load) {
  const kiln_loop_inst *inst = &nest->body.data[load];
  return inst->op == KILN_LOOP_load && inst->dtype == KILN_DTYPE_F32 &&
         is_cast_alone(nest, load, KILN_DTYPE_BF16);
}

/* Whether the casts go back to f32, all of them. */
static bool comes_back(const kiln_loop_nest *nest, int load) {
  bool back = kiln__schedule_is_rounded(nest, load);
  for (int i = load + 1; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    if (inst->op == KILN_LOOP_cast && inst->args[0] == load)
      back &= is_cast_alone(nest, i, KILN_DTYPE_F32);
  }
  return back;
}

/* Whether the elements in that order of dimensions, outermost first, have no gaps. */
static bool is_dense_so(kiln_dims *dims, const kiln_loop_buffer *b, const int *order) {
  kiln_dim step = 1;
  for (int i = b->rank - 1; i >= 0; i--) {
    const int d = order[i];
    if (b->sizes[d] == 1) continue;
    if (b->strides[d] != step) return false;
    step = kiln_dim_product(dims, step, b->sizes[d]);
    if (!kiln_dim_is_known(step)) return false;
  }
  return true;
}

static bool is_dense(kiln_dims *dims, const kiln_loop_buffer *b) {
  int order[KILN_LOOP_MAX_RANK];
  bool numbers = true;
  for (int d = 0; d < b->rank; d++) {
    order[d] = d;
    numbers &= kiln_dim_is_number(b->strides[d]);
  }
  if (is_dense_so(dims, b, order)) return true;
  if (numbers) kiln_loop_memory_order(b, order);
  return numbers && is_dense_so(dims, b, order);
}

const char *kiln__schedule_round_refuses(const kiln_loop_fn *fn, int number, int input) {
  const kiln_loop_nest *nest = fn->nests.data[number];
  if (input >= fn->input_count) return "is no input";
  const int load = kiln__schedule_only_load(fn, number, input);
  if (load < 0) return "is not read by one load";
  if (!comes_back(nest, load)) return "is not read to be cast to bf16 and back alone";
  if (!fn->buffers.data[input].copy && !is_dense(fn->dims, &fn->buffers.data[input]))
    return "has gaps";
  return NULL;
}

/* -- Pairs -- */

/* Whether the loop has two factors with their casts, and one contraction of them. */
static bool is_product(const kiln_loop_nest *nest, const kiln__contraction *c) {
  enum { EACH = 3 /* a load, and casts to bf16 and back */ };
  int counts[KILN_LOOP__COUNT] = {0}, count = 0;
  for (int i = c->inner_open + 1; nest->body.data[i].op != KILN_LOOP_end; i++, count++)
    counts[nest->body.data[i].op]++;
  return count == 2 * EACH + 1 && counts[KILN_LOOP_load] == 2 && counts[KILN_LOOP_cast] == 4 &&
         counts[KILN_LOOP_contract] == 1;
}

const char *kiln__schedule_pairs_refuse(const kiln_loop_fn *fn, int number,
                                        const kiln_schedule_nest *s, const kiln__contraction *c) {
  const kiln_loop_nest *nest = fn->nests.data[number];
  const kiln_dim extent = nest->body.data[c->inner_open].offset;
  if (s->pack < 0 || s->round_count != 1) return "not of one input that is packed and one rounded";
  const int load = kiln__schedule_only_load(fn, number, s->pack);
  const int other = kiln__schedule_only_load(fn, number, s->rounds[0]);
  if (load < 0 || other < c->inner_open || other > c->end || !comes_back(nest, load) ||
      !is_product(nest, c))
    return "not of two factors that are cast to bf16 and back";
  const kiln_loop_inst *row = &nest->body.data[other];
  if (!kiln_dim_is_number(extent) || extent % 2) return "the innermost loop has no even number";
  if (nest->body.data[load].strides[nest->rank + c->loops - 1] == 0 ||
      row->strides[nest->rank + c->loops - 1] != 1 || row->strides[s->panel_loop] != 0)
    return "what is rounded does not lie along the innermost loop";
  return NULL;
}

kiln_status *kiln__schedule_verify_round(const kiln_loop_fn *fn, int number,
                                         const kiln_schedule_nest *s, const kiln__contraction *c) {
  for (int i = 0; i < s->round_count; i++) {
    const char *why = kiln__schedule_round_refuses(fn, number, s->rounds[i]);
    if (why) REFUSE(number, "b%d is rounded, but %s", s->rounds[i], why);
    if (s->rounds[i] == s->pack) REFUSE(number, "b%d is packed and rounded", s->pack);
  }
  const char *why = s->pairs ? kiln__schedule_pairs_refuse(fn, number, s, c) : NULL;
  if (why) REFUSE(number, "pairs, but %s", why);
  return NULL;
}

/* -- What is made -- */

/* Whether the instruction is a cast that a caller has done, of a load or of such a cast. */
static bool is_done(const kiln_loop_nest *nest, int i, int packed, int rounded) {
  const kiln_loop_inst *inst = &nest->body.data[i];
  if (inst->op != KILN_LOOP_cast) return false;
  const int of = inst->args[0];
  if (of == packed || of == rounded) return true;
  return nest->body.data[of].op == KILN_LOOP_cast && nest->body.data[of].args[0] == rounded;
}

/* Without the casts of a load that stands for what they give: bf16 of what is packed. */
static void drop_casts(kiln_loop_nest *nest, int load, bool packed, kiln_arena *arena) {
  bool *keep = KILN_NEW_ARRAY(arena, bool, nest->body.count);
  for (int i = 0; i < nest->body.count; i++) {
    kiln_loop_inst *inst = &nest->body.data[i];
    keep[i] = !is_done(nest, i, packed ? load : -1, packed ? -1 : load);
    for (int a = 0; a < kiln_loop_ops[inst->op].arity && keep[i]; a++)
      if (!keep[inst->args[a]]) inst->args[a] = load;
  }
  if (packed) nest->body.data[load].dtype = KILN_DTYPE_BF16;
  (void)kiln_loop_keep(nest, keep, arena);
}

/* Whether the loop has ended before that instruction. */
static bool is_behind(const kiln_loop_nest *nest, int open, int i) {
  while (--i > open)
    if (nest->body.data[i].op == KILN_LOOP_end) return true;
  return false;
}

/* The innermost loop of the body as one of half its iterations, which holds one of two. */
static void split_pairs(kiln_loop_nest *nest, kiln_arena *arena) {
  kiln_loop_nest from = *nest;
  int inner = 0, depth = nest->rank - 1, *number = KILN_NEW_ARRAY(arena, int, from.body.count);
  memset(&nest->body, 0, sizeof nest->body);
  for (int i = 0; i < from.body.count; i++) {
    if (kiln_loop_ops[from.body.data[i].op].rule != KILN_LOOP_RULE_OPEN) continue;
    inner = i;
    depth++;
  }
  for (int i = 0; i < from.body.count; i++) {
    kiln_loop_inst inst = from.body.data[i];
    const bool ends = inst.op == KILN_LOOP_end && from.body.data[i - 1].op != KILN_LOOP_end;
    for (int a = 0; a < kiln_loop_ops[inst.op].arity; a++) inst.args[a] = number[inst.args[a]];
    if (inst.op == KILN_LOOP_contract) inst.index++;
    if (i > inner && inst.op == KILN_LOOP_load && !is_behind(&from, inner, i)) {
      inst.strides[depth + 1] = inst.strides[depth];
      inst.strides[depth] = 2 * inst.strides[depth];
    }
    if (i == inner) inst.offset /= 2;
    number[i] = nest->body.count;
    kiln_vec_push(arena, &nest->body, inst);
    if (i == inner) inst.offset = 2;
    if (i == inner || ends) kiln_vec_push(arena, &nest->body, inst);
  }
}

static kiln_kernel_pack describe_round(int input, bool pairs) {
  return (kiln_kernel_pack){.input = input,
                            .item_size = kiln_loop_size(pairs ? KILN_DTYPE_BF16 : KILN_DTYPE_F32),
                            .column = 1,
                            .whole = true,
                            .rounds = true};
}

int kiln__schedule_round(kiln_loop_fn *to, const kiln_loop_fn *fn, int number,
                         const kiln_schedule_nest *s, kiln_kernel_pack *packs) {
  kiln_loop_nest *nest = fn->nests.data[number];
  const int load = s->pack < 0 ? -1 : kiln__schedule_only_load(fn, number, s->pack);
  const bool narrows = load >= 0 && kiln__schedule_is_rounded(nest, load);
  int count = 0;
  if (!narrows && s->round_count == 0) return 0;
  kiln_loop_nest *made = KILN_NEW(to->arena, kiln_loop_nest);
  *made = *nest;
  memset(&made->body, 0, sizeof made->body);
  for (int i = 0; i < nest->body.count; i++)
    kiln_vec_push(to->arena, &made->body, nest->body.data[i]);
  fn->nests.data[number] = made;
  if (narrows) {
    drop_casts(made, load, true, to->arena);
    to->buffers.data[s->pack].dtype = KILN_DTYPE_BF16;
  }
  for (int i = 0; i < s->round_count; i++) {
    const int input = s->rounds[i];
    drop_casts(made, kiln__schedule_only_load(fn, number, input), s->pairs, to->arena);
    to->buffers.data[input].rounded = true;
    if (s->pairs) to->buffers.data[input].dtype = KILN_DTYPE_BF16;
    if (!to->buffers.data[input].copy) packs[count++] = describe_round(input, s->pairs);
  }
  if (s->pairs) split_pairs(made, to->arena);
  return count;
}
