/* gemm.c: how a matrix product is made (gemm_isa.c makes it): which factor is read in vectors, what
 * is copied first. The choice depends on nothing but sizes and strides, so neither do the bits;
 * what is asked for ahead depends on the cache.
 *
 * Threads share a product by its columns, or by its rows where there are few panels of columns;
 * each element is summed by one thread, in the order that the plan of the whole gives. */
#include "runtime/kernels/heavy/gemm.h"

#include "base/pool.h"
#include "runtime/kernels/dispatch.h"

/* A piece of work that is worth another thread, in multiplications. */
enum { GRAIN_PRODUCTS = 1 << 18, BYTE_PRODUCTS = 1 };
/* What rows and columns are cut at: whole tiles of every instruction set. */
enum { CUT_ROWS = 24, CUT_DOTS = 16 };

static kiln_gemm_args swapped(const kiln_gemm_args *g) {
  kiln_gemm_args s = *g;
  s.m = g->n, s.n = g->m;
  s.a = g->b, s.b = g->a;
  s.a_row = g->b_col, s.a_col = g->b_row;
  s.b_row = g->a_col, s.b_col = g->a_row;
  s.c_row = g->c_col, s.c_col = g->c_row;
  s.init_row = g->init_col, s.init_col = g->init_row;
  return s;
}
kiln_gemm_args kiln__gemm_planned(const kiln_gemm_args *args, const kiln_gemm_plan *plan) {
  return plan->swap ? swapped(args) : *args;
}

/* The left factor is copied where its elements along k are apart, or where rows lie so that their
 * lines fall into the same sets of the cache, and the copy serves several panels. */
static bool packs_left(const kiln_gemm_args *g, size_t item) {
  const int64_t panel = (int64_t)(KILN_GEMM_PANEL_BYTES / item);
  if (g->a_col != 1) return g->n > panel;
  return g->n >= 4 * panel && g->a_row * (int64_t)item % 2048 == 0;
}

/* A and B are both read along k. As they are, B is copied by panels, for each block of rows;
 * swapped, A is, and the tiles are transposed on their way to C. */
static bool copies_less_swapped(const kiln_gemm_args *g) {
  const double m = (double)g->m, n = (double)g->n, k = (double)g->k;
  return m < n && m * (k + n) < n * k;
}

/* Both factors are read along k, and a vector for the last columns would be half empty. */
static bool has_dot_tail(const kiln_gemm_args *g, size_t item) {
  const int64_t group = (int64_t)(KILN_GEMM_GROUP_BYTES / item), tail = g->n % group;
  return g->a_col == 1 && g->b_row == 1 && g->b_col != 1 && tail > 0 && 2 * tail <= group;
}

enum { MANY_ROWS = 12, LAYERS = 8 };
/* Whether a weight of dot products is read from further than the second cache: of one row where it
 * does not fit there; of many, for which asking costs less than a tenth, where some such layers do
 * not. */
static bool is_asked_for(int64_t rows, int64_t bytes, int64_t l2_bytes) {
  return rows == 1 ? bytes > l2_bytes : rows >= MANY_ROWS && bytes > l2_bytes / LAYERS;
}

static kiln_gemm_plan choose(const kiln_gemm_args *g, size_t item, int64_t l2_bytes) {
  kiln_gemm_plan plan = {0};
  const bool few_rows = g->m <= KILN_GEMM_DOT_ROWS && g->b_row == 1 && (g->b_col != 1 || g->n == 1);
  const bool few_columns = g->n <= KILN_GEMM_DOT_ROWS && g->a_col == 1;
  if (few_rows || few_columns) {
    plan.dot = true;
    plan.swap = few_columns && (!few_rows || g->n < g->m);
    plan.ahead = is_asked_for(plan.swap ? g->n : g->m,
                              (plan.swap ? g->m : g->n) * g->k * (int64_t)item, l2_bytes);
    return plan;
  }
  if (g->b_col == 1) {
    plan.swap = g->c_row == 1 && g->c_col != 1 && g->a_row == 1;
  } else {
    plan.swap = g->a_row == 1 || copies_less_swapped(g);
  }
  const kiln_gemm_args s = kiln__gemm_planned(g, &plan);
  plan.axpy = s.b_col == 1 && s.m <= KILN_GEMM_AXPY_ROWS && s.n * (int64_t)item >= 64;
  if (plan.axpy) return plan;
  plan.pack_left = packs_left(&s, item);
  plan.pack_right = s.b_col != 1;
  plan.dot_tail = has_dot_tail(&s, item);
  return plan;
}

static size_t scratch_of(const kiln_gemm_plan *plan, const kiln_gemm_args *args, size_t item) {
  const kiln_gemm_args g = kiln__gemm_planned(args, plan);
  const size_t k = (size_t)(g.k < KILN_GEMM_KC ? g.k : KILN_GEMM_KC);
  if (plan->dot) return g.a_col == 1 ? 0 : (size_t)(g.m * g.k) * item;
  if (plan->axpy) return 0;
  size_t bytes = k * KILN_GEMM_PANEL_BYTES;
  if (plan->pack_left) bytes += k * (size_t)(g.m < KILN_GEMM_MC ? g.m : KILN_GEMM_MC) * item;
  return bytes;
}

kiln_gemm_plan kiln_gemm_make_plan(const kiln_gemm_args *args, size_t item, int64_t l2_bytes) {
  kiln_gemm_plan plan = choose(args, item, l2_bytes);
  plan.scratch = (scratch_of(&plan, args, item) + 63) / 64 * 64;
  return plan;
}

/* -- Threads -- */

typedef struct job {
  kiln_gemm_fn gemm;
  kiln_gemm_args g;
  kiln_gemm_plan plan;
  kiln_gemm_locate locate;
  const void *data;
  size_t item;
  char *scratch; /* plan.scratch bytes for each worker */
  bool by_rows;
  int64_t unit, units; /* rows or columns are cut at multiples of `unit`: into `units` */
} job;

/* `bytes` further; an empty operand has no address. */
static void *further(const void *p, int64_t bytes) {
  return p ? (char *)(uintptr_t)p + bytes : NULL;
}

/* Units [from, to) of one product. */
static void run_part(const job *j, int64_t product, int64_t from, int64_t to, int worker) {
  kiln_gemm_args g = j->g;
  if (j->locate) j->locate(j->data, product, &g);
  if (!g.init) g.init = g.c, g.init_row = g.c_row, g.init_col = g.c_col;
  g = kiln__gemm_planned(&g, &j->plan);
  const int64_t all = j->by_rows ? g.m : g.n, begin = from * j->unit;
  const int64_t end = to * j->unit < all ? to * j->unit : all;
  const int64_t item = (int64_t)j->item, row = j->by_rows ? begin : 0, col = begin - row;
  if (begin > 0) {
    g.a = further(g.a, row * g.a_row * item);
    g.b = further(g.b, col * g.b_col * item);
    g.c = further(g.c, (row * g.c_row + col * g.c_col) * item);
    g.init = further(g.init, (row * g.init_row + col * g.init_col) * item);
  }
  *(j->by_rows ? &g.m : &g.n) = end - begin;
  j->gemm(&g, &j->plan, further(j->scratch, (int64_t)((size_t)worker * j->plan.scratch)));
}
static void run_units(void *data, int64_t begin, int64_t end, int worker) {
  const job *j = data;
  while (begin < end) {
    const int64_t product = begin / j->units, from = begin % j->units;
    const int64_t to = end - begin < j->units - from ? from + end - begin : j->units;
    run_part(j, product, from, to, worker);
    begin += to - from;
  }
}

/* How the product is cut, and the least number of tiles for a thread. */
static int64_t cut(job *j, int64_t count, int threads) {
  const kiln_gemm_args g = kiln__gemm_planned(&j->g, &j->plan);
  const int64_t panel = (int64_t)(KILN_GEMM_PANEL_BYTES / j->item);
  j->unit = j->plan.dot ? CUT_DOTS : panel;
  j->units = (g.n + j->unit - 1) / j->unit;
  const bool chain = !j->plan.dot && !j->plan.axpy;
  if (chain && j->units * count < 4 * (int64_t)threads && g.m > g.n) {
    j->by_rows = true;
    j->unit = CUT_ROWS;
    j->units = (g.m + CUT_ROWS - 1) / CUT_ROWS;
  }
  const double once =
      (double)BYTE_PRODUCTS * (double)j->item; /* an element of the factor that is cut */
  const double products = (double)g.k * (double)j->unit * ((double)(j->by_rows ? g.n : g.m) + once);
  int64_t grain = products >= (double)GRAIN_PRODUCTS
                      ? 1
                      : (int64_t)((double)GRAIN_PRODUCTS / (products + 1)) + 1;
  /* Each piece copies what it needs of both factors: few and large ones. */
  const int64_t large = j->units * count / (4 * (int64_t)threads);
  return large > grain ? large : grain;
}

/* How the only product reads its right factor, by what the call has read lately: one of few rows
 * takes as long as that takes to come. Up to twice the second cache, some of it is still there. */
static void follow_caches(kiln_call *call, const kiln_gemm_args *args, kiln_gemm_plan *plan,
                          int64_t item) {
  const kiln_gemm_args g = kiln__gemm_planned(args, plan);
  const int64_t bytes = g.n * g.k * item, l2_bytes = call->env->caches.l2;
  if (plan->dot && g.m < MANY_ROWS && bytes > l2_bytes / LAYERS) {
    plan->ahead = !kiln_recent_read(&call->recent, g.b, (uint64_t)bytes, 2 * (uint64_t)l2_bytes,
                                    &plan->backwards);
  } else {
    call->recent.bytes += (uint64_t)bytes;
  }
}

kiln_status *kiln__gemm_run_many(kiln_call *call, kiln_dtype dtype, const kiln_gemm_args *args,
                                 int64_t count, kiln_gemm_locate locate, const void *data) {
  if (args->m == 0 || args->n == 0 || count == 0) return NULL;
  const bool wide = dtype == KILN_DTYPE_F64;
  job j = {.gemm = wide ? call->dispatch->gemm_f64 : call->dispatch->gemm_f32,
           .g = *args,
           .plan = kiln_gemm_make_plan(args, wide ? 8 : 4, call->env->caches.l2),
           .locate = locate,
           .data = data,
           .item = wide ? 8 : 4};
  if (count == 1) follow_caches(call, args, &j.plan, (int64_t)j.item);
  kiln_pool *pool = call->pool;
  int threads = pool ? kiln_pool_threads(pool) : 1;
  int64_t grain = cut(&j, count, threads);
  if (j.units * count < 2 * grain) pool = NULL;
  if (!pool) threads = 1;
  const size_t bytes = j.plan.scratch * (size_t)threads;
  if (bytes) {
    j.scratch = kiln_cache_alloc(&call->cache, bytes);
    if (!j.scratch) return kiln_status_oom();
  }
  kiln_pool_for(pool, j.units * count, grain, run_units, &j);
  if (bytes) kiln_cache_free(&call->cache, j.scratch, bytes);
  return NULL;
}
kiln_status *kiln__gemm_run(kiln_call *call, kiln_dtype dtype, const kiln_gemm_args *args) {
  return kiln__gemm_run_many(call, dtype, args, 1, NULL, NULL);
}
