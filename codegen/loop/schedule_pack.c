/* schedule_pack.c: what a schedule packs: the word's legality, and the copy that callers make.
 *
 * A pack goes over the tensor itself, in panels of columns and the contraction's loops. Where the
 * kernel reads a copy of the input that has its elements in another order, as windows that stand
 * the other way round, the pack has that order, and the copy is not made. */
#include "codegen/loop/schedule.h"

#define REFUSE(number, ...) \
  return kiln_status_note(KILN_ERROR(KILN_INVALID_ARGUMENT, __VA_ARGS__), "nest %d", number)

static bool is_number(kiln_dim d) { return kiln_dim_is_number(d); }

/* Elements along each dimension of a buffer that are `step` elements in its memory. */
static void steps_of(const kiln_loop_buffer *b, int64_t step, int64_t *out_steps) {
  int order[KILN_LOOP_MAX_RANK];
  kiln_loop_memory_order(b, order);
  for (int i = 0; i < b->rank; i++) {
    const int d = order[i];
    out_steps[d] = b->sizes[d] > 1 ? step / b->strides[d] : 0;
    step -= out_steps[d] * b->strides[d];
  }
}

/* Elements of the tensor that are `step` elements of a copy. */
static int64_t tensor_step(const kiln_loop_buffer *b, int64_t step) {
  int64_t steps[KILN_LOOP_MAX_RANK], there = 0;
  if (!b->copy) return step;
  steps_of(b, step, steps);
  for (int d = 0; d < b->rank; d++)
    there += b->copy->flipped[d] ? -steps[d] * b->copy->strides[d] : steps[d] * b->copy->strides[d];
  return there;
}
static int64_t tensor_offset(const kiln_loop_buffer *b, int64_t offset) {
  int64_t there = tensor_step(b, offset) + (b->copy ? b->copy->from : 0);
  for (int d = 0; b->copy && d < b->rank; d++)
    if (b->copy->flipped[d]) there += (b->sizes[d] - 1) * b->copy->strides[d];
  return there;
}

/* What a load reads of a copy lies at even steps in the tensor, too: it has no zeros, and each loop
 * moves along dimensions that it does not leave. */
bool kiln__schedule_may_pack_copy(const kiln_loop_buffer *b, const kiln_loop_nest *nest, int load,
                                  const kiln__contraction *c) {
  const kiln_loop_inst *inst = &nest->body.data[load];
  int64_t steps[KILN_LOOP_MAX_RANK], last[KILN_LOOP_MAX_RANK];
  for (int d = 0; d < b->rank; d++)
    if (!is_number(b->sizes[d]) || b->copy->sizes[d] != b->sizes[d] ||
        !is_number(b->copy->strides[d]))
      return false;
  if (!is_number(inst->offset)) return false;
  steps_of(b, inst->offset, last);
  for (int k = 0; k < nest->rank + c->loops; k++) {
    const kiln_dim count =
        k < nest->rank ? nest->extents[k] : nest->body.data[c->first_open + k - nest->rank].offset;
    if (inst->strides[k] == 0) continue;
    if (!is_number(count) || !is_number(inst->strides[k])) return false;
    steps_of(b, inst->strides[k], steps);
    for (int d = 0; d < b->rank; d++) last[d] += steps[d] * (count - 1);
  }
  for (int d = 0; d < b->rank; d++)
    if (last[d] >= b->sizes[d]) return false;
  return true;
}

kiln_status *kiln__schedule_verify_pack(const kiln_loop_fn *fn, int number,
                                        const kiln_schedule_nest *s, const kiln_loop_scopes *scopes,
                                        const kiln__contraction *c) {
  const kiln_loop_nest *nest = fn->nests.data[number];
  if (s->pack >= fn->input_count) REFUSE(number, "b%d is packed, but no input", s->pack);
  const int load = kiln__schedule_only_load(fn, number, s->pack);
  if (load < c->inner_open || load > c->end)
    REFUSE(number, "b%d is packed, but not read by one load in the contraction's loops", s->pack);
  const kiln_loop_inst *inst = &nest->body.data[load];
  const kiln_loop_buffer *b = &fn->buffers.data[s->pack];
  if (b->copy && !kiln__schedule_may_pack_copy(b, nest, load, c))
    REFUSE(number, "b%d is packed, but a copy, of which the tensor has no such loops", s->pack);
  if (inst->strides[s->panel_loop] == 0)
    REFUSE(number, "b%d is packed, but does not move with i%d", s->pack, s->panel_loop);
  if (s->tile_loop >= 0 && inst->strides[s->tile_loop] != 0)
    REFUSE(number, "b%d is packed, but moves with i%d", s->pack, s->tile_loop);
  bool numbers = is_number(inst->offset);
  for (int d = 0; d < scopes->depth[load]; d++) {
    if (inst->strides[d] == 0) continue;
    numbers &= is_number(inst->strides[d]);
    if (d < nest->rank) numbers &= is_number(nest->extents[d]);
  }
  for (int i = c->first_open; i <= c->inner_open; i++)
    numbers &= is_number(nest->body.data[i].offset);
  if (!numbers) REFUSE(number, "b%d is packed, but where it lies depends on symbols", s->pack);
  return NULL;
}

kiln_kernel_pack kiln__schedule_describe_pack(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                                              const kiln_schedule_nest *s,
                                              const kiln_loop_inst *load,
                                              const kiln__contraction *c) {
  const kiln_loop_buffer *b = &fn->buffers.data[s->pack];
  kiln_kernel_pack pack = {.input = s->pack,
                           .item_size = kiln_loop_size(load->dtype),
                           .rounds = load->dtype != b->dtype,
                           .pairs = s->pairs,
                           .offset = tensor_offset(b, load->offset),
                           .columns = nest->extents[s->panel_loop],
                           .column = tensor_step(b, load->strides[s->panel_loop]),
                           .panel = s->panel};
  for (int d = 0; d < nest->rank; d++) {
    if (d == s->panel_loop || load->strides[d] == 0) continue;
    pack.sizes[pack.rank] = nest->extents[d];
    pack.strides[pack.rank++] = tensor_step(b, load->strides[d]);
  }
  pack.outer = pack.rank;
  for (int i = 0; i < c->loops; i++) {
    pack.sizes[pack.rank] = nest->body.data[c->first_open + i].offset;
    pack.strides[pack.rank++] = tensor_step(b, load->strides[nest->rank + i]);
  }
  return pack;
}
