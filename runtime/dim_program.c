/* dim_program.c: expressions to steps, and steps to numbers. */
#include "runtime/dim_program.h"

#include <string.h>

#include "base/checked.h"
#include "runtime/dim_node.h"

typedef struct builder {
  kiln_arena *arena;
  const kiln_dims *dims;
  kiln_map values; /* an atom or a number's handle -> the number of its value, and 1 */
  int symbol_count;
  KILN_VEC(kiln_dim_step) steps;
  KILN_VEC(kiln_dim_use) uses;
} builder;

/* -- Building -- */

static int most(int a, int b) { return a > b ? a : b; }

int kiln_dim_symbol_count(const kiln_dims *dims, kiln_dim d) {
  int count = 0;
  if (kiln_dim_is_number(d) || !kiln_dim_is_known(d)) return 0;
  if (!kiln_dim_is_expression(d)) return kiln_dim_symbol_number(d) + 1;
  const kiln__dim_node *n = kiln__dim_node_of(dims, d);
  for (int i = 0; i < n->factor_count; i++)
    count = most(count, kiln_dim_symbol_count(dims, n->factors[i]));
  for (int i = 0; i < n->sum.count; i++)
    count = most(count, kiln_dim_symbol_count(dims, n->sum.terms[i].atom));
  return count;
}

static int64_t add_step(builder *b, kiln_dim d, int64_t constant, int64_t by, int count,
                        const kiln_dim_use *uses) {
  const kiln_dim_step step = {
      .constant = constant, .by = by, .first = b->uses.count, .count = count};
  for (int i = 0; i < count; i++) kiln_vec_push(b->arena, &b->uses, uses[i]);
  const int64_t value = b->symbol_count + b->steps.count;
  kiln_vec_push(b->arena, &b->steps, step);
  kiln_map_set_id(&b->values, (uint64_t)d, (void *)(uintptr_t)(value + 1));
  return value;
}

/* The value of a dimension. An expression has at most 64 nodes, so this goes no deeper. */
static int64_t value_of(builder *b, kiln_dim d) {
  kiln_dim_use uses[KILN_SUM_TERMS > KILN_SUM_FACTORS ? KILN_SUM_TERMS : KILN_SUM_FACTORS];
  if (kiln_dim_is_symbol(d)) return kiln_dim_symbol_number(d);
  const uintptr_t found = (uintptr_t)kiln_map_find_id(&b->values, (uint64_t)d);
  if (found) return (int64_t)found - 1;
  if (kiln_dim_is_number(d)) return add_step(b, d, d, 0, 0, NULL);
  const kiln__dim_node *n = kiln__dim_node_of(b->dims, d);
  for (int i = 0; i < n->factor_count; i++) uses[i] = (kiln_dim_use){1, value_of(b, n->factors[i])};
  if (n->factor_count > 0) return add_step(b, d, 0, -1, n->factor_count, uses);
  for (int i = 0; i < n->sum.count; i++)
    uses[i] = (kiln_dim_use){n->sum.terms[i].coefficient, value_of(b, n->sum.terms[i].atom)};
  return add_step(b, d, n->sum.constant, n->by, n->sum.count, uses);
}

kiln_dim_program *kiln_dim_program_create(kiln_arena *arena, const kiln_dims *dims,
                                          const kiln_dim *results, int count) {
  builder b = {.arena = arena, .dims = dims, .values = kiln_map_in(arena)};
  int64_t *numbers = KILN_NEW_ARRAY(arena, int64_t, count + 1);
  for (int i = 0; i < count; i++) {
    KILN_ASSERT(kiln_dim_is_known(results[i]));
    b.symbol_count = most(b.symbol_count, kiln_dim_symbol_count(dims, results[i]));
  }
  for (int i = 0; i < count; i++) numbers[i] = value_of(&b, results[i]);
  const size_t steps = sizeof(kiln_dim_step) * (size_t)b.steps.count;
  const size_t uses = sizeof(kiln_dim_use) * (size_t)b.uses.count;
  const size_t bytes = sizeof(kiln_dim_program) + steps + uses + sizeof(int64_t) * (size_t)count;
  kiln_dim_program *p = kiln_arena_alloc(arena, bytes);
  *p = (kiln_dim_program){.bytes = bytes,
                          .symbol_count = b.symbol_count,
                          .step_count = b.steps.count,
                          .use_count = b.uses.count,
                          .result_count = count};
  if (steps) memcpy((void *)(uintptr_t)kiln_dim_steps(p), b.steps.data, steps);
  if (uses) memcpy((void *)(uintptr_t)kiln_dim_uses(p), b.uses.data, uses);
  if (count)
    memcpy((void *)(uintptr_t)kiln_dim_results(p), numbers, sizeof *numbers * (size_t)count);
  return p;
}

/* -- Running -- */

static bool run_step(const kiln_dim_step *step, const kiln_dim_use *uses, const int64_t *values,
                     int64_t *out) {
  int64_t sum = step->by < 0 ? 1 : step->constant, part;
  for (int i = 0; i < step->count; i++) {
    const kiln_dim_use *use = &uses[step->first + i];
    const int64_t value = values[use->value];
    if (step->by < 0) {
      if (!kiln_checked_mul_i64(sum, value, &sum)) return false;
    } else if (!kiln_checked_mul_i64(use->coefficient, value, &part) ||
               !kiln_checked_add_i64(sum, part, &sum)) {
      return false;
    }
  }
  *out = step->by > 0 ? sum / step->by - (sum % step->by < 0) : sum;
  return true;
}

bool kiln_dim_program_run(const kiln_dim_program *p, const int64_t *symbols, int64_t *room,
                          int64_t *out_results) {
  const kiln_dim_step *steps = kiln_dim_steps(p);
  const kiln_dim_use *uses = kiln_dim_uses(p);
  const int64_t *results = kiln_dim_results(p);
  for (int i = 0; i < p->symbol_count; i++) room[i] = symbols[i];
  for (int i = 0; i < p->step_count; i++) {
    if (!run_step(&steps[i], uses, room, &room[p->symbol_count + i])) return false;
  }
  for (int i = 0; i < p->result_count; i++) out_results[i] = room[results[i]];
  return true;
}
