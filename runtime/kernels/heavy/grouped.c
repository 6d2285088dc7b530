/* grouped.c: which convolutions grouped.h takes, their weights' order, and runs. */
#include "runtime/kernels/heavy/grouped.h"

#include "runtime/kernels/heavy/strips.h"

bool kiln_grouped_fits(const kiln_grouped *p, const kiln_dispatch *dispatch) {
  const int64_t lanes = dispatch->grouped ? dispatch->grouped->lanes : 0;
  return lanes > 0 && p->each > 1 && lanes % p->each == 0 && p->outputs % p->each == 0 &&
         p->outputs >= lanes && (p->step == 1 || p->step == 2);
}

/* -- Weights -- */

kiln_status *kiln_grouped_bytes(const kiln_dispatch *dispatch, int64_t outputs, int64_t each,
                                size_t *out_bytes) {
  const int64_t lanes = dispatch->grouped->lanes;
  int64_t bytes = kiln__grouped_floats(each, lanes) * (int64_t)sizeof(float);
  if (!kiln_checked_mul_i64(parts_of(outputs, lanes), bytes, &bytes)) return kiln_status_oom();
  *out_bytes = (size_t)bytes;
  return NULL;
}

void kiln_grouped_fill(const kiln_dispatch *dispatch, int64_t outputs, int64_t each,
                       const kiln_grouped_weight *w, float *u) {
  const int64_t lanes = dispatch->grouped->lanes;
  for (int64_t v = 0; v < parts_of(outputs, lanes); v++) {
    const float *first = w->data + kiln__grouped_vector(outputs, lanes, v) * w->output;
    for (int64_t i = 0; i < 9 * each; i++) {
      const float *from =
          first + i / 3 / each * w->tap[0] + i / 3 % each * w->channel + i % 3 * w->tap[1];
      for (int64_t lane = 0; lane < lanes; lane++) *u++ = from[lane * w->output];
    }
  }
}

/* -- Runs -- */

typedef struct work {
  const kiln_grouped *p;
  const kiln_grouped_kernels *kernels;
  const float *x, *u;
  float *y;
  kiln_grouped_done done;
  void *user;
} work;

static void run_rows(void *data, int64_t begin, int64_t end, int worker) {
  const work *w = data;
  const kiln_grouped *p = w->p;
  for (int64_t i = begin; i < end && !kiln_budget_leaves_out(); i++) {
    const int64_t image = i / p->out[0], row = i % p->out[0];
    w->kernels->row(p, row, w->x + image * p->in_batch, w->u,
                    w->y + image * p->out_batch + row * p->out_axis[0]);
    if (w->done) w->done(w->user, image, row, worker);
  }
}

void kiln_grouped_run(const kiln_grouped *p, const kiln_dispatch *dispatch, const float *x,
                      const float *u, float *y, kiln_grouped_done done, void *user,
                      kiln_pool *pool) {
  work w = {p, dispatch->grouped, x, u, y, done, user};
  const double each = 9 * (double)p->each * (double)p->outputs * (double)p->out[1];
  kiln_pool_for(pool, p->batch * p->out[0], grain_of(each), run_rows, &w);
}
