/* recurrent.c: recurrent layers of floats, step by step and by threads. */
#include "runtime/kernels/heavy/recurrent.h"

#include "base/budget.h"
#include "runtime/kernels/support.h"

/* A piece of a step that is worth another thread, which is awake between the steps: so many
 * products take some 1 us, and one row's panels come from the cache as fast as two rows' are
 * multiplied. */
enum { WORTH_A_THREAD = 1 << 17 };

typedef struct run {
  const kiln_dispatch *dispatch;
  kiln_pool *pool; /* of steps */
  const kiln_recurrent *layers;
} run;

typedef struct part {
  const kiln_dispatch *dispatch;
  const kiln_recurrent_step *step;
} part;
static void run_blocks(void *data, int64_t begin, int64_t end, KILN_UNUSED int worker) {
  const part *p = data;
  p->dispatch->recurrent(p->step, begin, end);
}

static int64_t rows_of(const kiln_recurrent *l, int64_t step) {
  return l->batch ? l->batch[step] : l->rows;
}

static void run_steps(const run *r, const kiln_recurrent *l) {
  const int64_t width = kiln_cell_gates(l->kind) * l->hidden, hidden = l->hidden;
  int64_t row = 0, left = KILN_BUDGET_ITEMS;
  for (int64_t t = 0; l->reverse && t < l->steps; t++) row += rows_of(l, t);
  for (int64_t i = 0; i < l->steps; i++) {
    const int64_t rows = rows_of(l, l->reverse ? l->steps - 1 - i : i);
    const int64_t products = KILN_RECURRENT_BLOCK * width * (rows > 2 ? rows : 2); /* of a block */
    if (kiln_budget_spent(&left, rows * width * (hidden / 16 + 1))) return;
    if (l->reverse) row -= rows;
    const kiln_recurrent_step step = {l, rows, l->input + row * width, l->out + row * l->out_row};
    part p = {r->dispatch, &step};
    kiln_pool_for(r->pool, kiln_recurrent_blocks(hidden),
                  products < WORTH_A_THREAD ? WORTH_A_THREAD / products : 1, run_blocks, &p);
    for (int64_t b = 0; b < rows; b++) {
      memcpy(l->h + b * hidden, step.out + b * l->out_row, (size_t)hidden * sizeof(float));
    }
    if (!l->reverse) row += rows;
  }
}
static void run_layers(void *data, int64_t begin, int64_t end, KILN_UNUSED int worker) {
  const run *r = data;
  for (int64_t i = begin; i < end; i++) run_steps(r, &r->layers[i]);
}

void kiln_recurrent_run(const kiln_dispatch *dispatch, kiln_pool *pool,
                        const kiln_recurrent *layers, int count) {
  run r = {dispatch, count > 1 ? NULL : pool, layers};
  kiln_pool_for(count > 1 ? pool : NULL, count, 1, run_layers, &r);
}
