/* guard.c: symbols of guards. */
#include "runtime/guard.h"

/* One of the tensor's sizes, or of its strides behind them. */
static int64_t dim_at(const kiln_guard_desc *guard, kiln_guard_place place,
                      const kiln_ivalue *registers, const kiln_ivalue *constants) {
  return kiln_operand_read(guard->at[place.entry], registers, constants)->u.tensor->dims[place.dim];
}

void kiln_guard_bind(const kiln_guard_desc *guard, const kiln_ivalue *registers,
                     const kiln_ivalue *constants, int64_t *out_symbols) {
  const kiln_guard_symbols *s = guard->symbols;
  for (int i = 0; i < s->symbol_count; i++)
    out_symbols[i] = s->bind[i].entry < 0 ? 0 : dim_at(guard, s->bind[i], registers, constants);
}

kiln_guard_place kiln_guard_unbound(const kiln_guard_desc *guard, const kiln_ivalue *registers,
                                    const kiln_ivalue *constants, int *out_order) {
  const kiln_guard_place none = {.entry = -1};
  const kiln_guard_symbols *s = guard->symbols;
  int64_t symbols[KILN_GUARD_SYMBOLS], room[KILN_GUARD_ROOM], wanted[KILN_GUARD_ROOM];
  if (out_order) *out_order = -1;
  kiln_guard_bind(guard, registers, constants, symbols);
  for (int i = 0; i < s->symbol_count; i++) {
    const int64_t least = s->from_one >> i & 1 ? 1 : 2;
    const bool fits = symbols[i] >= least && symbols[i] <= KILN_DIM_MOST;
    if (s->bind[i].entry >= 0 && !fits) return s->bind[i];
  }
  if (s->relation_count + s->order_count == 0) return none;
  if (!kiln_dim_program_run(s->program, symbols, room, wanted))
    return s->relation_count > 0 ? s->relations[0] : s->orders[0].place;
  for (int i = 0; i < s->relation_count; i++) {
    if (dim_at(guard, s->relations[i], registers, constants) != wanted[i]) return s->relations[i];
  }
  for (int i = 0; i < s->order_count; i++) {
    const int64_t *both = &wanted[s->relation_count + 2 * i];
    if (both[0] <= both[1]) continue;
    if (out_order) *out_order = i;
    return s->orders[i].place;
  }
  return none;
}
