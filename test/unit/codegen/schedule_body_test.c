/* schedule_body_test.c: blocks and tiles of a nest's body: the text, what is refused, and two
 * products one after the other, as in attention, under random schedules on every instruction set
 * against plain C. Elements are small integers, so that sums in any order are the same. Seeds are
 * fixed. */
#include "schedule_support.h"

static const char two[] =
    "kernel {\n  in b0: f32[6, 5] [5, 1]\n  in b1: f32[7, 5] [5, 1]\n  in b2: f32[7, 9] [9, 1]\n"
    "  out b3: f32[6, 9] [9, 1]\n  local b4: f32[7] [1]\n  nest [6] {\n"
    "    %0 = const f32 9\n    for 7 {\n      reduce 5 {\n"
    "        %3 = load f32 b0 + 0 [5, 0, 1]\n        %4 = load f32 b1 + 0 [0, 5, 1]\n"
    "        %5 = contract f32 %3, %4 over 1\n      }\n      %7 = add f32 %5, %0\n"
    "      store f32 b4 + 0 [0, 1], %7\n    }\n    for 9 {\n      reduce 7 {\n"
    "        %12 = load f32 b4 + 0 [0, 0, 1]\n        %13 = load f32 b2 + 0 [0, 1, 9]\n"
    "        %14 = contract f32 %12, %13 over 1\n      }\n      store f32 b3 + 0 [9, 1], %14\n"
    "    }\n  }\n}\n";

static void test_text(void **unused) {
  (void)unused;
  static const char *const texts[] = {
      "schedule {\n  nest 0: block i0 4\n  nest 0: panel l0 8, stage b1, tile i0 2\n"
      "  nest 0: panel l2 16, tile i0 3\n}\n",
      "schedule {\n  nest 0: block i0 4\n  nest 0: panel l2 16, stage b2, tile i0 3\n}\n"};
  fixture f;
  fixture_open(&f);
  kiln_loop_fn *fn = parse_loop(&f, two, false, NULL);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    schedule_job job = {.fn = fn, .text = texts[i], .arena = f.arena};
    assert_ok(parse_schedule(&job));
    assert_string_equal(kiln_schedule_print(&job.schedule, f.arena).data, texts[i]);
  }
  fixture_close(&f);
}

static void test_refused(void **unused) {
  (void)unused;
  static const char *const wrong[][2] = {
      {"nest 0: block i0 4", "blocks without a tile"},
      {"nest 0: block i0 0", "a block of nothing"},
      {"nest 0: block i0 4097", "4097 is too large"},
      {"nest 0: block i0 4\n nest 0: block i0 4", "blocks already"},
      {"nest 0: block i1 4\n nest 0: panel l0 8, tile i1 2", "no loop i1"},
      {"nest 0: panel l0 8, tile i0 2", "i0 has no blocks"},
      {"nest 0: block i0 4\n nest 0: panel l0 8", "without a tile"},
      {"nest 0: block i0 4\n nest 0: panel l9 8, tile i0 2", "no loop l9"},
      {"nest 0: block i0 4\n nest 0: panel l1 8, tile i0 2", "stands in another loop"},
      {"nest 0: panel l2 8, tile l0 2", "no loop for a tile that holds l2 alone"},
      {"nest 0: panel l1 8, tile l0 2", "no loop for a tile that holds l1 alone"},
      {"nest 0: block i0 4\n nest 0: panel l0 8, stage b2, tile i0 2", "not read by one load"},
      {"nest 0: block i0 4\n nest 0: panel l0 8, stage b0, tile i0 2", "does not move with l0"},
      {"nest 0: block i0 4\n nest 0: panel l2 8, tile i0 2\n nest 0: panel l0 8, tile i0 2",
       "another order"},
      {"nest 0: block i0 4\n nest 0: panel i0 8, tile i0 2\n nest 0: panel l0 8, tile i0 2",
       "has no other tiles"},
      {"nest 0: panel i0 8, tile l0 2", "a tile of the body"},
      {"nest 0: block i0 4\n nest 0: panel l0 8, pack b1, tile i0 2", "'stage' or 'tile'"},
  };
  fixture f;
  fixture_open(&f);
  kiln_loop_fn *fn = parse_loop(&f, two, false, NULL);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[256];
    snprintf(text, sizeof text, "schedule { %s }", wrong[i][0]);
    schedule_job job = {.fn = fn, .text = text, .arena = f.arena};
    assert_error(parse_schedule(&job), KILN_INVALID_ARGUMENT, wrong[i][1]);
  }
  fixture_close(&f);
}

/* A value that one part computes in a loop and another reads. */
static void test_crossing(void **unused) {
  (void)unused;
  static const char text[] =
      "kernel { in b0: f32[6, 5] [5, 1]\n in b1: f32[7, 5] [5, 1]\n out b2: f32[6, 7] [7, 1]\n"
      "nest [6] { reduce 5 { %1 = load f32 b0 + 0 [5, 1]\n %2 = sum f32 %1 over 1\n }\n"
      "for 7 { reduce 5 { %6 = load f32 b0 + 0 [5, 0, 1]\n %7 = load f32 b1 + 0 [0, 5, 1]\n"
      "%8 = contract f32 %6, %7 over 1\n }\n %10 = add f32 %8, %2\n"
      "store f32 b2 + 0 [7, 1], %10\n } } }";
  fixture f;
  fixture_open(&f);
  kiln_loop_fn *fn = parse_loop(&f, text, false, NULL);
  schedule_job job = {.fn = fn,
                      .arena = f.arena,
                      .text = "schedule { nest 0: block i0 4\n nest 0: panel l1 4, tile i0 2 }"};
  assert_error(parse_schedule(&job), KILN_INVALID_ARGUMENT, "%2 is read in another part");
  fixture_close(&f);
}

/* What a local buffer gives is stored: all of it, or what is read. */
static void test_locals(void **unused) {
  (void)unused;
  static const char *const maps[][2] = {
      {"f32[6] [1]", "[0, 1]"}, {"f32[7] [1]", "[0, 1]"}, {"f32[3, 2] [2, 1]", "[0, 1]"}};
  fixture f;
  fixture_open(&f);
  for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "kernel { in b0: f32[6] [1]\n out b1: f32[4] [1]\n local b2: %s\n nest [4] {\n"
             "for 6 { %%1 = load f32 b0 + 0 [0, 1]\n store f32 b2 + 0 %s, %%1\n }\n"
             "reduce 3 { %%5 = load f32 b2 + 1 [0, 2]\n %%6 = sum f32 %%5 over 1\n }\n"
             "store f32 b1 + 0 [1], %%6\n } }",
             maps[i][0], maps[i][1]);
    parse_job job = {.f = &f, .text = kiln_str_from(text)};
    if (i == 1)
      assert_error(parse_body(&job), KILN_INVALID_ARGUMENT, "does not walk b2 as its store does");
    else
      assert_ok(parse_body(&job));
  }
  fixture_close(&f);
}

/* What rules choose: 7 columns are one vector, and k, whose rows lie along what is summed, is
 * staged; where registers are few, so are the rows of a tile. A block has them all. */
static void test_rules(void **unused) {
  (void)unused;
  static const char *const machines[][2] = {
      {"registers=16,l2=262144",
       "schedule {\n  nest 0: block i0 8\n  nest 0: panel l0 8, stage b1, tile i0 8\n"
       "  nest 0: panel l2 16, tile i0 6\n"
       "  nest 0: vector l 8, unroll l1 5, unroll l3 7, parallel i0, grain 405\n}\n"},
      {"registers=6,l2=64",
       "schedule {\n  nest 0: block i0 4\n  nest 0: panel l0 8, stage b1, tile i0 4\n"
       "  nest 0: panel l2 8, tile i0 4\n"
       "  nest 0: vector l 8, unroll l1 5, unroll l3 7, parallel i0, grain 405\n}\n"}};
  fixture f;
  fixture_open(&f);
  kiln_loop_fn *fn = parse_loop(&f, two, false, NULL);
  kiln_machine machine;
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
    assert_ok(kiln_machine_describe(KILN_ISA_AVX2, kiln_str_from(machines[i][0]), &machine));
    const kiln_schedule s = kiln_schedule_choose(fn, &machine, f.arena);
    assert_string_equal(kiln_schedule_print(&s, f.arena).data, machines[i][1]);
  }
  fixture_close(&f);
}

/* -- Random bodies -- */

/* x[b][m][n] = sum over k of q[b][m][k] * k[b][n][k], and + mask[m][n] or not; y is x, or
 * max(x - greatest over n + 9, 0) * the sum over n of x; out[b][m][d] = sum over n of y[b][m][n] *
 * v[b][n][d]. Or x alone, in loops of the body over m and n. */
enum { B, M, N, K, D, LOOPS };
enum { Q, KEY, V, MASK, OUT, BUFFERS };
static const bool moves[BUFFERS][LOOPS] = {[Q] = {1, 1, 0, 1, 0},
                                           [KEY] = {1, 0, 1, 1, 0},
                                           [V] = {1, 0, 1, 0, 1},
                                           [MASK] = {0, 1, 1, 0, 0},
                                           [OUT] = {1, 1, 0, 0, 1}};

typedef struct body {
  uint64_t seed;
  kiln_dtype dtype;
  int64_t sizes[LOOPS], strides[BUFFERS][LOOPS], spans[BUFFERS];
  bool masked, rows, one; /* one product */
  int symbol;             /* that is s0; -1 */
  kiln_loop_fn *fn;
  void *data[BUFFERS];
  double *wanted;
} body;

static bool moves_with(const body *p, int buffer, int loop) {
  if (p->one && buffer == OUT) return loop <= N;
  return moves[buffer][loop];
}
static kiln_dim size_of(const body *p, int loop) {
  return loop == p->symbol ? kiln_dim_symbol(0) : p->sizes[loop];
}
static bool is_used(const body *p, int buffer) {
  return buffer == V ? !p->one : buffer == MASK ? p->masked : true;
}

/* Dimensions in any order in memory; the symbol stands outermost, so that steps are numbers. */
static void add_buffer(body *p, int buffer) {
  kiln_dim sizes[LOOPS], steps[LOOPS];
  int order[LOOPS], rank = 0;
  int64_t step = 1;
  for (int d = 0; d < LOOPS; d++) {
    const int other = random_below(&p->seed, d + 1);
    order[d] = order[other];
    order[other] = d;
  }
  for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < LOOPS; i++) {
      const int d = order[i];
      if (!moves_with(p, buffer, d) || (d == p->symbol) != (turn == 1)) continue;
      sizes[rank] = size_of(p, d);
      steps[rank++] = p->strides[buffer][d] = step;
      step *= p->sizes[d];
    }
  }
  p->spans[buffer] = step;
  (buffer == OUT ? kiln_loop_add_output : kiln_loop_add_input)(p->fn, p->dtype, rank, sizes, steps);
}

/* A load, or the store of a value: `loops` are those that stand there. */
static int access(body *p, kiln_loop_nest *nest, int buffer, const char *loops, int value) {
  kiln_dim strides[KILN_LOOP_MAX_RANK] = {0};
  int number = 0;
  for (int i = 0; i < buffer; i++) number += is_used(p, i);
  for (int at = 0; loops[at]; at++)
    strides[at] = p->strides[buffer][strchr("bmnkd", loops[at]) - "bmnkd"];
  if (value < 0) return kiln_loop_load(p->fn, nest, number, 0, strides);
  kiln_loop_store(p->fn, nest, number, 0, strides, value);
  return -1;
}
/* Of a local buffer with a place for each n, which the loop at that depth counts. */
static int local(body *p, kiln_loop_nest *nest, int buffer, int depth, int value) {
  kiln_dim strides[KILN_LOOP_MAX_RANK] = {0};
  strides[depth] = 1;
  if (value < 0) return kiln_loop_load(p->fn, nest, buffer, 0, strides);
  kiln_loop_store(p->fn, nest, buffer, 0, strides, value);
  return -1;
}
static int op(body *p, kiln_loop_nest *nest, kiln_loop_opcode code, int a, int b) {
  return kiln_loop_op(p->fn, nest, code, a, b, -1);
}

/* x at [b][m][n], in loops over them. */
static int make_product(body *p, kiln_loop_nest *nest) {
  kiln_loop_open(p->fn, nest, KILN_LOOP_reduce, size_of(p, K));
  const int q = access(p, nest, Q, "bmnk", -1), k = access(p, nest, KEY, "bmnk", -1);
  const bool swapped = random_below(&p->seed, 2);
  int x = kiln_loop_reduce(p->fn, nest, KILN_LOOP_contract, swapped ? k : q, swapped ? q : k, 1);
  kiln_loop_end(p->fn, nest);
  if (p->masked) x = op(p, nest, KILN_LOOP_add, x, access(p, nest, MASK, "bmn", -1));
  return x;
}

/* y, from one local buffer into another. */
static void make_rows(body *p, kiln_loop_nest *nest, int from, int to) {
  int found[2];
  for (int i = 0; i < 2; i++) {
    kiln_loop_open(p->fn, nest, KILN_LOOP_reduce, size_of(p, N));
    found[i] = kiln_loop_reduce(p->fn, nest, i ? KILN_LOOP_sum : KILN_LOOP_amax,
                                local(p, nest, from, 2, -1), -1, 1);
    kiln_loop_end(p->fn, nest);
  }
  kiln_loop_open(p->fn, nest, KILN_LOOP_for, size_of(p, N));
  int x = op(p, nest, KILN_LOOP_sub, local(p, nest, from, 2, -1), found[0]);
  x = op(p, nest, KILN_LOOP_add, x, kiln_loop_const(p->fn, nest, p->dtype, 9));
  x = op(p, nest, KILN_LOOP_max, x, kiln_loop_const(p->fn, nest, p->dtype, 0));
  local(p, nest, to, 2, op(p, nest, KILN_LOOP_mul, x, found[1]));
  kiln_loop_end(p->fn, nest);
}

static void make_nest(body *p) {
  const kiln_dim extents[2] = {size_of(p, B), size_of(p, M)}, columns = size_of(p, N), step = 1;
  if (p->one) {
    kiln_loop_nest *nest = kiln_loop_add_nest(p->fn, 1, extents);
    kiln_loop_open(p->fn, nest, KILN_LOOP_for, extents[1]);
    kiln_loop_open(p->fn, nest, KILN_LOOP_for, columns);
    access(p, nest, OUT, "bmn", make_product(p, nest));
    kiln_loop_end(p->fn, nest);
    kiln_loop_end(p->fn, nest);
    return;
  }
  const int x = kiln_loop_add_local(p->fn, p->dtype, 1, &columns, &step);
  const int y = p->rows ? kiln_loop_add_local(p->fn, p->dtype, 1, &columns, &step) : x;
  kiln_loop_nest *nest = kiln_loop_add_nest(p->fn, 2, extents);
  kiln_loop_open(p->fn, nest, KILN_LOOP_for, columns);
  local(p, nest, x, 2, make_product(p, nest));
  kiln_loop_end(p->fn, nest);
  if (p->rows) make_rows(p, nest, x, y);
  kiln_loop_open(p->fn, nest, KILN_LOOP_for, size_of(p, D));
  kiln_loop_open(p->fn, nest, KILN_LOOP_reduce, columns);
  const int left = local(p, nest, y, 3, -1), right = access(p, nest, V, "bmdn", -1);
  const int sum = kiln_loop_reduce(p->fn, nest, KILN_LOOP_contract, left, right, 1);
  kiln_loop_end(p->fn, nest);
  access(p, nest, OUT, "bmd", sum);
  kiln_loop_end(p->fn, nest);
}

static void make(body *p, kiln_arena *arena) {
  const int most[LOOPS] = {3, 40, 60, 30, 40};
  p->dtype = random_below(&p->seed, 4) ? KILN_DTYPE_F32 : KILN_DTYPE_F64;
  p->one = random_below(&p->seed, 3) == 0;
  p->masked = random_below(&p->seed, 2);
  p->rows = random_below(&p->seed, 2);
  p->symbol = random_below(&p->seed, 2) ? -1 : random_below(&p->seed, 2) ? M : N;
  for (int d = 0; d < LOOPS; d++) p->sizes[d] = 1 + random_below(&p->seed, most[d]);
  p->fn = kiln_loop_create(arena);
  for (int i = 0; i < BUFFERS; i++)
    if (is_used(p, i)) add_buffer(p, i);
  make_nest(p);
}

static double get(const body *p, int buffer, int64_t place) {
  return p->dtype == KILN_DTYPE_F64 ? ((const double *)p->data[buffer])[place]
                                    : (double)((const float *)p->data[buffer])[place];
}
static void set(const body *p, int buffer, int64_t place, double value) {
  if (p->dtype == KILN_DTYPE_F64)
    ((double *)p->data[buffer])[place] = value;
  else
    ((float *)p->data[buffer])[place] = (float)value;
}
static int64_t place_of(const body *p, int buffer, const int64_t *at) {
  int64_t place = 0;
  for (int d = 0; d < LOOPS; d++)
    place += moves_with(p, buffer, d) ? at[d] * p->strides[buffer][d] : 0;
  return place;
}

static void fill(body *p) {
  for (int i = 0; i < BUFFERS; i++) {
    if (!is_used(p, i)) continue;
    p->data[i] = aligned_alloc(64, ((size_t)p->spans[i] * 8 + 63) / 64 * 64);
    for (int64_t k = 0; k < p->spans[i]; k++) set(p, i, k, random_below(&p->seed, 5) - 2);
  }
  p->wanted = calloc((size_t)p->spans[OUT], sizeof *p->wanted);
}

/* One row of all x, then y. */
static void plain_row(const body *p, int64_t at[LOOPS], double *x) {
  double most = -INFINITY, sum = 0;
  for (at[N] = 0; at[N] < p->sizes[N]; at[N]++) {
    double *to = &x[at[N]];
    *to = p->masked ? get(p, MASK, place_of(p, MASK, at)) : 0;
    for (at[K] = 0; at[K] < p->sizes[K]; at[K]++)
      *to += get(p, Q, place_of(p, Q, at)) * get(p, KEY, place_of(p, KEY, at));
    most = fmax(most, *to);
    sum += *to;
  }
  for (int64_t n = 0; p->rows && !p->one && n < p->sizes[N]; n++)
    x[n] = fmax(x[n] - most + 9, 0) * sum;
}
static void run_plain(body *p) {
  int64_t at[LOOPS] = {0};
  double *x = malloc((size_t)p->sizes[N] * sizeof *x);
  for (at[B] = 0; at[B] < p->sizes[B]; at[B]++) {
    for (at[M] = 0; at[M] < p->sizes[M]; at[M]++) {
      plain_row(p, at, x);
      for (at[N] = 0; at[N] < p->sizes[N]; at[N]++) {
        if (p->one) p->wanted[place_of(p, OUT, at)] = x[at[N]];
        for (at[D] = 0; !p->one && at[D] < p->sizes[D]; at[D]++)
          p->wanted[place_of(p, OUT, at)] += x[at[N]] * get(p, V, place_of(p, V, at));
      }
    }
  }
  free(x);
}

/* In one box, or in several that are cut anywhere. */
static void run(body *p, const kiln_compiled *code, bool cut) {
  void *data[BUFFERS];
  int count = 0;
  for (int i = 0; i < BUFFERS; i++)
    if (is_used(p, i)) data[count++] = p->data[i];
  kiln_kernel_work work = code->info.work;
  const int64_t symbol = p->symbol < 0 ? 0 : p->sizes[p->symbol];
  if (code->info.shape) assert_true(kiln_kernel_shape_work(code->info.shape, &symbol, &work));
  void *scratch = aligned_alloc(64, work.scratch_bytes / 64 * 64 + 64);
  memset(scratch, 0x7f, work.scratch_bytes);
  const kiln_kernel_args args = {
      .data = data, .symbols = &symbol, .scratch = scratch, .closure = code->closure};
  for (int64_t i = 0; i < p->spans[OUT]; i++) set(p, OUT, i, -12345);
  kiln_kernel_box box = work.grid;
  const int axis = random_below(&p->seed, KILN_KERNEL_AXES);
  for (int64_t at = 0, end = work.grid.end[axis]; at < end;) {
    box.begin[axis] = at;
    at = box.end[axis] = cut ? at + 1 + random_below(&p->seed, (int)(end - at)) : end;
    code->fn(&args, &box);
  }
  free(scratch);
}

static void compare(const body *p, uint64_t seed, const char *what) {
  for (int64_t i = 0; i < p->spans[OUT]; i++) {
    if (get(p, OUT, i) != p->wanted[i])
      fail_msg("seed %llu, %s: element %lld is %g, not %g", (unsigned long long)seed, what,
               (long long)i, get(p, OUT, i), p->wanted[i]);
  }
}

/* A legal one, mostly: else none. */
static kiln_schedule draw_schedule(body *p, kiln_arena *arena) {
  kiln_schedule_nest *n = KILN_NEW(arena, kiln_schedule_nest);
  const kiln_schedule s = {1, n};
  const int last = p->rows ? 5 : 2; /* loop of the second product */
  *n = (kiln_schedule_nest){.pack = -1};
  n->body = KILN_NEW_ARRAY(arena, kiln_schedule_tile, 2);
  if (!p->one) {
    n->block_loop = random_below(&p->seed, 4) > 0;
    n->block = 1 + random_below(&p->seed, 30);
  }
  for (int i = 0; i < 2; i++) {
    if (i == 1 && p->one) break;
    if (random_below(&p->seed, 4) == 0) continue;
    n->body[n->body_count++] = (kiln_schedule_tile){.panel_loop = p->one ? 1
                                                                  : i    ? last
                                                                         : 0,
                                                    .panel = 1 + random_below(&p->seed, 40),
                                                    .stage = random_below(&p->seed, 3) ? -1
                                                             : i                       ? V
                                                                                       : KEY,
                                                    .tile_loop = p->one ? 0 : -1,
                                                    .tile = 1 + random_below(&p->seed, 9)};
  }
  kiln_status *status = kiln_schedule_verify(p->fn, &s, arena);
  if (status) *n = (kiln_schedule_nest){.pack = -1};
  kiln_status_destroy(status);
  return s;
}

typedef struct trial {
  kiln_codegen *codegen;
  kiln_arena *arena;
  body *p;
  bool drawn; /* else the evaluator's */
  kiln_compiled *code;
  bool tiled;
  kiln_str text;
} trial;
static kiln_status *compile_body(trial *t) {
  kiln_reason reason;
  if (!t->drawn)
    return kiln_codegen_compile(t->codegen, t->p->fn, KILN_BACKEND_EVAL, &reason, &t->code, NULL);
  const kiln_schedule s = draw_schedule(t->p, t->arena);
  t->tiled = s.nests[0].body_count > 0;
  drawn_job d = {
      .codegen = t->codegen, .fn = t->p->fn, .tiles = &s, .seed = &t->p->seed, .arena = t->arena};
  KILN_TRY(compile_drawn(&d));
  t->code = d.code;
  t->text = d.text;
  return NULL;
}

static void test_random(void **unused) {
  (void)unused;
  int tiled = 0, drawn = 0;
  const int count = random_rounds(60);
  for (uint64_t seed = 1; seed <= (uint64_t)count; seed++) {
    fixture f;
    fixture_open(&f);
    f.env->isa = (kiln_isa)(seed % (uint64_t)isa_count());
    body p = {.seed = random_seed(seed * UINT64_C(0x9e3779b97f4a7c15))};
    trial t = {.arena = f.arena, .p = &p};
    assert_ok(kiln_codegen_create(f.env, &t.codegen));
    make(&p, f.arena);
    assert_ok(kiln_loop_verify(p.fn));
    fill(&p);
    run_plain(&p);
    for (int turn = 0; turn < (llvm_compiles((int)seed) ? 3 : 1); turn++) {
      t.drawn = turn > 0;
      assert_ok(compile_body(&t));
      drawn += t.drawn;
      tiled += t.drawn && t.tiled;
      run(&p, t.code, true);
      compare(&p, seed, t.drawn ? t.text.data : "evaluator");
      kiln_compiled_release(t.code);
    }
    for (int i = 0; i < BUFFERS; i++) free(p.data[i]);
    free(p.wanted);
    kiln_codegen_destroy(t.codegen);
    fixture_close(&f);
  }
  assert_true(tiled >= drawn / 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text),     cmocka_unit_test(test_refused),
      cmocka_unit_test(test_crossing), cmocka_unit_test(test_locals),
      cmocka_unit_test(test_rules),    cmocka_unit_test(test_random),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
