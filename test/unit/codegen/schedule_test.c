/* schedule_test.c: schedules as text, what is refused, what rules choose, and contractions under
 * random schedules on every instruction set against plain C. Elements are small integers, so that
 * sums in any order are the same. Seeds are fixed. */
#include "runtime/pack.h"
#include "schedule_support.h"

/* -- Text, and what is refused -- */

static const char linear[] =
    "kernel {\n  in b0: f32[5, 64] [64, 1]\n  in b1: f32[100, 64] [64, 1]\n"
    "  in b2: f32[100] [1]\n  out b3: f32[5, 100] [100, 1]\n  nest [5, 100] {\n    reduce 64 {\n"
    "      %1 = load f32 b0 + 0 [64, 0, 1]\n      %2 = load f32 b1 + 0 [0, 64, 1]\n"
    "      %3 = contract f32 %1, %2 over 1\n    }\n    %5 = load f32 b2 + 0 [0, 1]\n"
    "    %6 = add f32 %3, %5\n    store f32 b3 + 0 [100, 1], %6\n  }\n}\n";

static void test_text(void **unused) {
  (void)unused;
  static const char *const texts[] = {
      "",
      "schedule {\n  nest 0: panel i1 48, pack b1, tile i0 4\n}\n",
      "schedule {\n  nest 0: panel i1 48, pack b1, prefetch, tile i0 4\n}\n",
      "schedule {\n  nest 0: panel i1 48, pack b1, prefetch 65536, tile i0 4\n}\n",
      "schedule {\n  nest 0: panel i1 256, tile i0 16\n"
      "  nest 0: vector i1 8\n}\n",
      "schedule {\n  nest 0: panel i1 8, tile i0 2, claim, strip 3\n"
      "  nest 0: order i1 i0, vector i1 16, unroll l0 4, parallel "
      "i0 i1, grain 7\n}\n"};
  fixture f;
  fixture_open(&f);
  kiln_loop_fn *fn = parse_loop(&f, linear, false, NULL);
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
      {"nest 0: panel i1 48", "without a tile"},
      {"nest 0: panel i1 48, prefetch, tile i0 4", "prefetched, but nothing is packed"},
      {"nest 0: panel i1 48, pack b1, prefetch 65537, tile i0 4", "65537 is too large"},
      {"nest 0: panel i1 48, pack b1, claim", "without a tile"},
      {"nest 1: panel i1 48, tile i0 4", "1 is too large"},
      {"nest 0: panel i2 48, tile i0 4", "no loop i2"},
      {"nest 0: panel i1 48, tile i1 4", "beside panels"},
      {"nest 0: panel i1 48, tile i7 4", "beside panels"},
      {"nest 0: panel i1 257, tile i0 4", "257 is too large"},
      {"nest 0: panel i1 0, tile i0 4", "panel of nothing"},
      {"nest 0: panel i1 48, tile i0 0", "tile of nothing"},
      {"nest 0: panel i1 48, tile i0 17", "17 is too large"},
      {"nest 0: panel i1 48, pack b0, tile i0 4", "b0 is packed, but does not move with i1"},
      {"nest 0: panel i0 4, pack b1, tile i1 4", "b1 is packed, but does not move with i0"},
      {"nest 0: panel i1 48, pack b2, tile i0 4", "not read by one load in the contraction"},
      {"nest 0: panel i1 48, pack b3, tile i0 4", "no input"},
      {"nest 0: panel i1 48, tile i0 4, tile i0 4", "once each"},
      {"nest 0: panel i1 48, tile i0 4\n nest 0: panel i1 48, tile i0 4", "already"},
      {"nest 0: panel i1 48, tile i0 4, strip 0", "strip of nothing"},
      {"nest 0: panel i1 48, tile i0 4, strip 2, strip 2", "once each"},
      {"nest 0: panel i1 48, pack b1, tile i0 4, strip 2",
       "all of its panels are a strip, or none"},
      {"nest 0: panel i1 48, pack b1, prefetch, tile i0 4, strip 3", "prefetched, but in strips"},
      {"nest 0: tile i0 4", "'panel', 'block', or 'order'"},
      {"nest 0: panel i1 256, tile i0 5", "a tile of 1280 vectors"},
      {"nest 0: panel i1 48, tile i0 4\n nest 0: vector i0 8", "vectors go along the panels, i1"},
      {"nest 0: panel i1 48, tile i0 4\n nest 0: vector i1 32", "have 16 at most"},
      {"nest 0: panel i1 48, tile i0 4\n nest 0: vector i1 8, unroll i1 2", "but has panels"},
      {"nest 0: panel i1 64, tile i0 9\n nest 0: vector i1 1, unroll l0 64", "too much code"},
      {"nest 0: panel i1 -4, tile i0 4", "no number"},
  };
  fixture f;
  fixture_open(&f);
  kiln_loop_fn *fn = parse_loop(&f, linear, false, NULL);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[256];
    snprintf(text, sizeof text, "schedule { %s }", wrong[i][0]);
    schedule_job job = {.fn = fn, .text = text, .arena = f.arena};
    assert_error(parse_schedule(&job), KILN_INVALID_ARGUMENT, wrong[i][1]);
  }
  fixture_close(&f);
}

/* Of rows of a weight the last first. `%s`: what the copy is of. */
static const char of_copy[] =
    "kernel {\n  in b0: f32[5, 6] [6, 1]\n  in b1: %s\n  out b2: f32[5, 16] [16, 1]\n"
    "  nest [5, 16] {\n    reduce 6 {\n"
    "      %%1 = load f32 b0 + 0 [6, 0, 1]\n      %%2 = load f32 b1 + 0 [0, 1, 16]\n"
    "      %%3 = contract f32 %%1, %%2 over 1\n    }\n    store f32 b2 + 0 [16, 1], %%3\n  }\n}\n";

static kiln_status *pack_copy(fixture *f, const char *copy, schedule_job *job) {
  char text[1024];
  snprintf(text, sizeof text, of_copy, copy);
  *job = (schedule_job){.fn = parse_loop(f, text, false, NULL),
                        .text = "schedule {\n  nest 0: panel i1 16, pack b1, tile i0 5\n}\n",
                        .arena = f->arena};
  return parse_schedule(job);
}

/* A pack goes over the tensor itself: of a copy in which each loop has a dimension of its own. */
static void test_copies(void **unused) {
  (void)unused;
  static const char zeros[] = "f32[6, 16] [16, 1] copy of [5, 16] [16, 1] before [1, 0]";
  static const char two[] = "f32[3, 2, 16] [32, 16, 1] copy of [3, 2, 16] [32, 16, 1]";
  fixture f;
  schedule_job job;
  fixture_open(&f);
  assert_error(pack_copy(&f, zeros, &job), KILN_INVALID_ARGUMENT, "b1 is packed, but a copy");
  assert_error(pack_copy(&f, two, &job), KILN_INVALID_ARGUMENT, "b1 is packed, but a copy");
  static const char turned[] = "f32[6, 16] [16, 1] copy of [6, 16] [1, 6] flipped [1, 0] from 4";
  assert_ok(pack_copy(&f, turned, &job));
  const kiln_scheduled made = kiln_schedule_apply(job.fn, &job.schedule, f.arena);
  float from[4 + 6 * 16], to[6 * 16 + KILN_KERNEL_PACK_BEHIND / sizeof(float)];
  for (int i = 0; i < 4 + 6 * 16; i++) from[i] = (float)i;
  kiln_pack_copy(&made.packs[0], from, to);
  for (int i = 0; i < 6 * 16; i++) assert_true(to[i] == (float)(4 + 5 - i / 16 + 6 * (i % 16)));
  fixture_close(&f);
}

/* Factors that are cast to bf16 and back. */
static const char rounded_linear[] =
    "kernel {\n  in b0: f32[5, 64] [64, 1]\n  in b1: f32[100, 64] [64, 1]\n"
    "  out b2: f32[5, 100] [100, 1]\n  nest [5, 100] {\n    reduce 64 {\n"
    "      %1 = load f32 b0 + 0 [64, 0, 1]\n      %2 = load f32 b1 + 0 [0, 64, 1]\n"
    "      %3 = cast bf16 %1\n      %4 = cast f32 %3\n      %5 = cast bf16 %2\n"
    "      %6 = cast f32 %5\n      %7 = contract f32 %4, %6 over 1\n    }\n"
    "    store f32 b2 + 0 [100, 1], %7\n  }\n}\n";

static void test_rounded(void **unused) {
  (void)unused;
  static const char *const texts[] = {
      "schedule {\n  nest 0: panel i1 48, round b0, round b1, tile i0 4\n}\n",
      "schedule {\n  nest 0: panel i1 48, tile 1\n}\n",
      "schedule {\n  nest 0: panel i1 48, pack b1, prefetch, round b0, pairs, tile i0 4\n}\n"};
  static const char *const wrong[][2] = {
      {"pack b1, round b1, tile i0 4", "b1 is packed and rounded"},
      {"round b2, tile i0 4", "b2 is rounded, but is no input"},
      {"pack b1, pairs, tile i0 4", "not of one input that is packed and one rounded"},
      {"round b0, pairs, tile i0 4", "not of one input that is packed and one rounded"},
  };
  fixture f;
  fixture_open(&f);
  kiln_loop_fn *fn = parse_loop(&f, rounded_linear, false, NULL);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    schedule_job job = {.fn = fn, .text = texts[i], .arena = f.arena};
    assert_ok(parse_schedule(&job));
    assert_string_equal(kiln_schedule_print(&job.schedule, f.arena).data, texts[i]);
  }
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[256];
    snprintf(text, sizeof text, "schedule { nest 0: panel i1 48, %s }", wrong[i][0]);
    schedule_job job = {.fn = fn, .text = text, .arena = f.arena};
    assert_error(parse_schedule(&job), KILN_INVALID_ARGUMENT, wrong[i][1]);
  }
  fn = parse_loop(&f, linear, false, NULL);
  schedule_job job = {.fn = fn,
                      .text = "schedule { nest 0: panel i1 48, pack b1, round b0, tile i0 4 }",
                      .arena = f.arena};
  assert_error(parse_schedule(&job), KILN_INVALID_ARGUMENT,
               "b0 is rounded, but is not read to be cast to bf16 and back alone");
  fixture_close(&f);
}

/* Nests that no tile can have. */
static void test_no_contraction(void **unused) {
  (void)unused;
  static const char *const bodies[][2] = {
      {"reduce 8 { %1 = load f32 b0 + 0 [8, 0, 1]\n %2 = sum f32 %1 over 1\n }\n"
       "store f32 b2 + 0 [4, 1], %2",
       "reduces otherwise"},
      {"reduce 8 { %1 = load f32 b0 + 0 [8, 0, 1]\n %2 = load f32 b1 + 0 [0, 8, 1]\n"
       "%3 = contract f32 %1, %2 over 1\n }\n"
       "reduce 8 { %6 = load f32 b0 + 0 [8, 0, 1]\n %7 = contract f32 %6, %6 over 1\n }\n"
       "%9 = add f32 %3, %7\n store f32 b2 + 0 [4, 1], %9",
       "not perfectly nested"},
      {"%0 = load f32 b0 + 0 [8, 1]\n store f32 b2 + 0 [4, 1], %0", "no contraction"},
  };
  fixture f;
  fixture_open(&f);
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "kernel { in b0: f32[4, 8] [8, 1]\n in b1: f32[4, 8] [8, 1]\n out b2: f32[4, 4] [4, "
             "1]\n nest [4, 4] { %s } }",
             bodies[i][0]);
    kiln_loop_fn *fn = parse_loop(&f, text, false, NULL);
    schedule_job job = {
        .fn = fn, .arena = f.arena, .text = "schedule { nest 0: panel i1 4, tile i0 2 }"};
    assert_error(parse_schedule(&job), KILN_INVALID_ARGUMENT, bodies[i][1]);
  }
  fixture_close(&f);
}

/* Of a convolution of windows of one, over 40 channels and 3136 pixels: vectors are pixels, as they
 * lie, in strips that stay in half of the L2 cache. One over a channel has a tile of its rows. */
static void test_windows(void **unused) {
  (void)unused;
  /* Channels last, whose weights are small beside the map: all panels stand inside of the rows'. */
  static const char last[] =
      "kernel {\n in b0: f32[3136, 40] [40, 1]\n in b1: f32[64, 40] [40, 1]\n"
      " out b2: f32[3136, 64] [64, 1]\n nest [3136, 64] {\n reduce 40 {\n"
      " %1 = load f32 b0 + 0 [40, 0, 1]\n %2 = load f32 b1 + 0 [0, 40, 1]\n"
      " %3 = contract f32 %1, %2 over 1\n }\n store f32 b2 + 0 [64, 1], %3\n }\n}\n";
  static const char one[] =
      "kernel {\n in b0: f32[40, 3136] [3136, 1]\n in b1: f32[64, 40] [40, 1]\n"
      " out b2: f32[64, 3136] [3136, 1]\n nest [64, 3136] {\n reduce 40 {\n"
      " %1 = load f32 b0 + 0 [0, 1, 3136]\n %2 = load f32 b1 + 0 [40, 0, 1]\n"
      " %3 = contract f32 %1, %2 over 1\n }\n store f32 b2 + 0 [3136, 1], %3\n }\n}\n";
  static const char channel[] =
      "kernel {\n in b0: f32[9, 30, 30] [900, 30, 1] copy of [9, 28, 28] [784, 28, 1]"
      " before [0, 1, 1]\n in b1: f32[9, 3, 3] [9, 3, 1]\n out b2: f32[9, 28, 28] [784, 28, 1]\n"
      " nest [9, 28, 28] {\n reduce 3 {\n reduce 3 {\n"
      " %2 = load f32 b0 + 0 [900, 30, 1, 30, 1]\n %3 = load f32 b1 + 0 [9, 0, 0, 3, 1]\n"
      " %4 = contract f32 %2, %3 over 2\n }\n }\n store f32 b2 + 0 [784, 28, 1], %4\n }\n}\n";
  /* Seven rows: in one tile where a panel comes from behind the second cache, in tiles of 4 and 3,
   * of panels that are all full, where it does not. */
#define ROWS(rows, columns, depth)                                                             \
  "kernel {\n in b0: f32[" rows ", " depth "] [" depth ", 1]\n in b1: f32[" columns ", " depth \
  "] [" depth ", 1]\n out b2: f32[" rows ", " columns "] [" columns ", 1]\n nest [" rows       \
  ", " columns "] {\n reduce " depth " {\n %1 = load f32 b0 + 0 [" depth ", 0, 1]\n"           \
  " %2 = load f32 b1 + 0 [0, " depth ", 1]\n %3 = contract f32 %1, %2 over 1\n }\n"            \
  " store f32 b2 + 0 [" columns ", 1], %3\n }\n}\n"
  static const struct {
    const char *kernel, *machine, *wanted;
  } cases[] = {
      {one, "l2=524288",
       "schedule {\n  nest 0: panel i1 24, tile i0 4, claim, strip 65\n"
       "  nest 0: vector i1 8, unroll l0 2, parallel i0 i1, grain 1212\n}\n"},
      {one, "l2=65536",
       "schedule {\n  nest 0: panel i1 24, tile i0 4, claim, strip 5\n"
       "  nest 0: vector i1 8, unroll l0 2, parallel i0 i1, grain 1212\n}\n"},
      {one, "registers=32,l2=64",
       "schedule {\n"
       "  nest 0: panel i1 32, tile i0 6, claim, strip 1\n"
       "  nest 0: vector i1 8, unroll l0 2, parallel i0 i1, grain 1212\n"
       "}\n"},
      {last, "l1=32768,l2=524288",
       "schedule {\n  nest 0: panel i1 16, pack b1, tile i0 6, claim, strip 4\n"
       "  nest 0: vector i1 8, unroll l0 2, parallel i0, grain 1212\n}\n"},
      {last, "l1=8192,l2=2097152", /* a panel is in the first cache, all of them are not */
       "schedule {\n  nest 0: panel i1 16, pack b1, tile i0 6\n"
       "  nest 0: vector i1 8, unroll l0 2, parallel i0 i1, grain 1212\n}\n"},
      {ROWS("7", "512", "4608"), "lanes=16,registers=32,l1=32768,l2=1048576",
       "schedule {\n  nest 0: panel i1 32, pack b1, prefetch 64, tile i0 7\n"
       "  nest 0: vector i1 16, unroll l0 2, parallel i1, grain 21\n}\n"},
      {ROWS("7", "512", "1024"), "lanes=16,registers=32,l1=32768,l2=1048576",
       "schedule {\n  nest 0: panel i1 32, pack b1, prefetch 64, tile i0 7\n"
       "  nest 0: vector i1 16, unroll l0 2, parallel i1, grain 97\n}\n"},
      /* Seven vectors are one panel of seven, not two of four; of few rows it would be read often.
       */
      {ROWS("196", "112", "480"), "lanes=16,registers=32,l2=1048576",
       "schedule {\n  nest 0: panel i1 112, pack b1, tile i0 3\n"
       "  nest 0: vector i1 16, unroll l0 2, parallel i0 i1, grain 207\n}\n"},
      {channel, "l2=524288",
       "schedule {\n  nest 0: panel i2 16, tile i1 6, strip 1\n"
       "  nest 0: vector i2 8, unroll l1 3, parallel i0 i2, grain 4878\n}\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    fixture_open(&f);
    kiln_machine machine;
    kiln_loop_fn *fn = parse_loop(&f, cases[i].kernel, false, NULL);
    assert_ok(kiln_machine_describe(KILN_ISA_AVX2, kiln_str_from(cases[i].machine), &machine));
    const kiln_schedule s = kiln_schedule_choose(fn, &machine, f.arena);
    assert_string_equal(kiln_schedule_print(&s, f.arena).data, cases[i].wanted);
    fixture_close(&f);
  }
}

static void test_rules(void **unused) {
  (void)unused;
  static const char *const machines[][2] = {
      /* 5 rows are one tile, and 2 vectors of 8 with them fit into 16 registers. 4 vectors would
       * fit into 32, but of 13 there would be 4 panels, as long as 16. A weight's rows lie along k:
       * it is packed. */
      {"registers=16", "schedule {\n"
                       "  nest 0: panel i1 16, pack b1, tile i0 5\n"
                       "  nest 0: vector i1 8, unroll l0 2, parallel i1, grain 743\n"
                       "}\n"},
      {"registers=32,l2=65535", "schedule {\n"
                                "  nest 0: panel i1 16, pack b1, tile i0 5\n"
                                "  nest 0: vector i1 8, unroll l0 2, parallel i1, grain 743\n"
                                "}\n"},
      /* What the first cache holds is not asked for. */
      {"lanes=16,registers=32,l2=1048576",
       "schedule {\n"
       "  nest 0: panel i1 64, pack b1, tile i0 5\n"
       "  nest 0: vector i1 16, unroll l0 2, parallel i1, grain 1486\n"
       "}\n"},
      {"registers=1", "schedule {\n"
                      "  nest 0: panel i1 8, pack b1, tile i0 1\n"
                      "  nest 0: vector i1 8, unroll l0 2, parallel i1, grain 743\n"
                      "}\n"},
      {"registers=4", "schedule {\n"
                      "  nest 0: panel i1 8, pack b1, tile i0 1\n"
                      "  nest 0: vector i1 8, unroll l0 2, parallel i1, grain 743\n"
                      "}\n"},
      {"registers=8,l1=1024 , l2=4096",
       "schedule {\n"
       "  nest 0: panel i1 16, pack b1, tile i0 2\n"
       "  nest 0: vector i1 8, unroll l0 2, parallel i1, grain 743\n"
       "}\n"},
  };
  static const char *const wrong[] = {
      "registers", "registers=", "registers=0", "registers=65",      "wings=2", "lanes=3",
      "lanes=32",  "ports=0",    "masks=9",     "registers=16 l1=8", "l1=x"};
  fixture f;
  fixture_open(&f);
  kiln_loop_fn *fn = parse_loop(&f, linear, false, NULL);
  kiln_machine machine;
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
    assert_ok(kiln_machine_describe(KILN_ISA_AVX2, kiln_str_from(machines[i][0]), &machine));
    const kiln_schedule s = kiln_schedule_choose(fn, &machine, f.arena);
    assert_string_equal(kiln_schedule_print(&s, f.arena).data, machines[i][1]);
  }
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_error(kiln_machine_describe(KILN_ISA_V2, kiln_str_from(wrong[i]), &machine),
                 KILN_INVALID_ARGUMENT, "machine");
  fixture_close(&f);
}

/* -- Random contractions -- */

/* out[b][m][n] = e(sum over k, l of x[b][m][k][l] * w[b][n][k][l]); e is + bias[n], + more[b][m][n]
 * and max 0, or not. */
enum { B, M, N, K, L, LOOPS, NEST = K };
enum { X, W, BIAS, MORE, OUT, BUFFERS };
static const bool moves[BUFFERS][LOOPS] = {[X] = {1, 1, 0, 1, 1},
                                           [W] = {1, 0, 1, 1, 1},
                                           [BIAS] = {0, 0, 1, 0, 0},
                                           [MORE] = {1, 1, 1, 0, 0},
                                           [OUT] = {1, 1, 1, 0, 0}};

typedef struct product {
  uint64_t seed;
  kiln_dtype dtype;
  int64_t sizes[LOOPS], strides[BUFFERS][LOOPS], spans[BUFFERS];
  bool used[BUFFERS], relu, symbolic, shared; /* m is s0; w has no batches */
  bool rounds[2];                             /* factors, to bf16 */
  int lies;                                   /* 1 and one that lies along the sum; 0: by chance */
  int order[NEST];
  kiln_loop_fn *fn;
  void *data[BUFFERS];
  double *wanted;
} product;

static bool moves_with(const product *p, int buffer, int loop) {
  return moves[buffer][loop] && !(buffer == W && loop == B && p->shared);
}
static kiln_dim size_of(const product *p, int loop) {
  return p->symbolic && loop == M ? kiln_dim_symbol(0) : p->sizes[loop];
}
static void shuffle(uint64_t *seed, int count, int *order) {
  for (int d = 0; d < count; d++) order[d] = d;
  for (int d = count - 1; d > 0; d--) {
    const int other = random_below(seed, d + 1), t = order[d];
    order[d] = order[other];
    order[other] = t;
  }
}

/* Dimensions in any order in memory; a symbol stands outermost, so that steps are numbers. */
static void add_buffer(product *p, int buffer) {
  kiln_dim sizes[LOOPS], steps[LOOPS];
  int order[LOOPS], rank = 0;
  int64_t step = 1;
  shuffle(&p->seed, LOOPS, order);
  for (int i = 0; i < LOOPS && buffer == p->lies - 1; i++) { /* along the innermost loop */
    if (order[i] == L) order[i] = order[0], order[0] = L;
  }
  for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < LOOPS; i++) {
      const int d = order[i];
      if (!moves_with(p, buffer, d) || (p->symbolic && d == M) != (turn == 1)) continue;
      sizes[rank] = size_of(p, d);
      steps[rank++] = p->strides[buffer][d] = step;
      step *= p->sizes[d];
    }
  }
  p->spans[buffer] = step;
  (buffer == OUT ? kiln_loop_add_output : kiln_loop_add_input)(p->fn, p->dtype, rank, sizes, steps);
}

/* A load, or the store of a value, in the loops that are open. */
static int access(product *p, kiln_loop_nest *nest, int buffer, int value) {
  kiln_dim strides[KILN_LOOP_MAX_RANK] = {0};
  int number = 0;
  for (int i = 0; i < buffer; i++) number += p->used[i];
  for (int at = 0; at < LOOPS; at++)
    strides[at] = p->strides[buffer][at < NEST ? p->order[at] : at];
  if (value < 0) return kiln_loop_load(p->fn, nest, number, 0, strides);
  kiln_loop_store(p->fn, nest, number, 0, strides, value);
  return -1;
}

static int rounded(product *p, kiln_loop_nest *nest, int value) {
  return kiln_loop_cast(p->fn, nest, kiln_loop_cast(p->fn, nest, value, KILN_DTYPE_BF16),
                        KILN_DTYPE_F32);
}

static void make(product *p, kiln_arena *arena) {
  const int most[LOOPS] = {3, 40, 90, 40, 4};
  kiln_dim extents[NEST];
  p->dtype = random_below(&p->seed, 4) ? KILN_DTYPE_F32 : KILN_DTYPE_F64;
  p->symbolic = random_below(&p->seed, 3) == 0;
  p->shared = random_below(&p->seed, 2);
  p->relu = random_below(&p->seed, 2);
  const bool both = p->dtype == KILN_DTYPE_F32 && random_below(&p->seed, 3) == 0;
  p->lies = both ? 1 + random_below(&p->seed, 2) : 0;
  for (int i = X; i <= W; i++)
    p->rounds[i] = p->dtype == KILN_DTYPE_F32 && (both || random_below(&p->seed, 2));
  for (int d = 0; d < LOOPS; d++) p->sizes[d] = 1 + random_below(&p->seed, most[d]);
  if (both) p->sizes[L] = 2 + p->sizes[L] / 3 * 2;
  for (int i = 0; i < BUFFERS; i++)
    p->used[i] = (i != BIAS && i != MORE) || random_below(&p->seed, 2);
  shuffle(&p->seed, NEST, p->order);
  p->fn = kiln_loop_create(arena);
  for (int i = 0; i < BUFFERS; i++)
    if (p->used[i]) add_buffer(p, i);
  for (int d = 0; d < NEST; d++) extents[d] = size_of(p, p->order[d]);
  kiln_loop_nest *nest = kiln_loop_add_nest(p->fn, NEST, extents);
  kiln_loop_open(p->fn, nest, KILN_LOOP_reduce, p->sizes[K]);
  kiln_loop_open(p->fn, nest, KILN_LOOP_reduce, p->sizes[L]);
  int x = access(p, nest, X, -1), w = access(p, nest, W, -1);
  if (p->rounds[X]) x = rounded(p, nest, x);
  if (p->rounds[W]) w = rounded(p, nest, w);
  const bool swapped = random_below(&p->seed, 2);
  int sum = kiln_loop_reduce(p->fn, nest, KILN_LOOP_contract, swapped ? w : x, swapped ? x : w, 2);
  kiln_loop_end(p->fn, nest);
  kiln_loop_end(p->fn, nest);
  for (int i = BIAS; i <= MORE; i++) {
    if (!p->used[i]) continue;
    sum = kiln_loop_op(p->fn, nest, KILN_LOOP_add, sum, access(p, nest, i, -1), -1);
  }
  if (p->relu) {
    const int zero = kiln_loop_const(p->fn, nest, p->dtype, 0);
    sum = kiln_loop_op(p->fn, nest, KILN_LOOP_max, sum, zero, -1);
  }
  access(p, nest, OUT, sum);
}

static double element(const product *p, int buffer, const int64_t *at) {
  int64_t place = 0;
  for (int d = 0; d < LOOPS; d++) place += at[d] * p->strides[buffer][d];
  return p->dtype == KILN_DTYPE_F64 ? ((const double *)p->data[buffer])[place]
                                    : (double)((const float *)p->data[buffer])[place];
}

static void fill(product *p) {
  const size_t item = (size_t)kiln_loop_size(p->dtype);
  for (int i = 0; i < BUFFERS; i++) {
    if (!p->used[i]) continue;
    p->data[i] = aligned_alloc(64, ((size_t)p->spans[i] * item + 63) / 64 * 64);
    for (int64_t k = 0; k < p->spans[i]; k++) {
      const int value = random_below(&p->seed, 9) - 4;
      if (item == 8) ((double *)p->data[i])[k] = value;
      if (item == 4) ((float *)p->data[i])[k] = (float)value;
    }
  }
  p->wanted = calloc((size_t)p->spans[OUT], sizeof *p->wanted);
}

static double plain_element(const product *p, int64_t at[LOOPS]) {
  double sum = 0;
  for (at[K] = 0; at[K] < p->sizes[K]; at[K]++)
    for (at[L] = 0; at[L] < p->sizes[L]; at[L]++) sum += element(p, X, at) * element(p, W, at);
  for (int i = BIAS; i <= MORE; i++)
    if (p->used[i]) sum += element(p, i, at);
  return p->relu && sum < 0 ? 0 : sum;
}
static void run_plain(product *p) {
  int64_t at[LOOPS] = {0};
  for (at[B] = 0; at[B] < p->sizes[B]; at[B]++) {
    for (at[M] = 0; at[M] < p->sizes[M]; at[M]++) {
      for (at[N] = 0; at[N] < p->sizes[N]; at[N]++) {
        int64_t place = 0;
        const double value = plain_element(p, at);
        for (int d = 0; d < NEST; d++) place += at[d] * p->strides[OUT][d];
        p->wanted[place] = value;
      }
    }
  }
}

/* In one box, or in several that are cut anywhere. */
static void run(product *p, const kiln_compiled *code, bool cut) {
  void *data[BUFFERS], *copies[2 * BUFFERS] = {0};
  int64_t numel[BUFFERS];
  int count = 0;
  for (int i = 0; i < BUFFERS; i++) {
    if (!p->used[i]) continue;
    numel[count] = p->spans[i];
    data[count++] = p->data[i];
  }
  assert_true(code->info.pack_count <= 2 * BUFFERS);
  for (int i = 0; i < code->info.pack_count; i++) {
    const int input = code->info.packs[i].input;
    const kiln_kernel_pack pack = kiln_pack_of(&code->info.packs[i], numel[input], NULL, NULL);
    size_t bytes;
    assert_true(kiln_pack_bytes(&pack, &bytes));
    copies[i] = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(copies[i], 0xff, bytes); /* NaN */
    kiln_pack_copy(&pack, data[input], copies[i]);
    data[input] = copies[i];
  }
  kiln_kernel_work work = code->info.work;
  if (code->info.shape) assert_true(kiln_kernel_shape_work(code->info.shape, &p->sizes[M], &work));
  void *scratch = aligned_alloc(64, work.scratch_bytes / 64 * 64 + 64);
  const kiln_kernel_args args = {
      .data = data, .symbols = &p->sizes[M], .scratch = scratch, .closure = code->closure};
  memset(p->data[OUT], 0x7f, (size_t)p->spans[OUT] * (size_t)kiln_loop_size(p->dtype));
  kiln_kernel_box box = work.grid;
  const int axis = random_below(&p->seed, KILN_KERNEL_AXES);
  for (int64_t at = 0, end = work.grid.end[axis]; at < end;) {
    box.begin[axis] = at;
    at = box.end[axis] = cut ? at + 1 + random_below(&p->seed, (int)(end - at)) : end;
    code->fn(&args, &box);
  }
  free(scratch);
  for (int i = 0; i < code->info.pack_count; i++) free(copies[i]);
}

static void compare(const product *p, uint64_t seed, const char *what) {
  for (int64_t i = 0; i < p->spans[OUT]; i++) {
    const double got = p->dtype == KILN_DTYPE_F64 ? ((const double *)p->data[OUT])[i]
                                                  : (double)((const float *)p->data[OUT])[i];
    if (got != p->wanted[i]) {
      fail_msg("seed %llu, %s: element %lld is %g, not %g", (unsigned long long)seed, what,
               (long long)i, got, p->wanted[i]);
    }
  }
}

/* With elements whose sums are rounded: boxes change no bit. */
static void compare_boxes(product *p, const kiln_compiled *code) {
  const size_t item = (size_t)kiln_loop_size(p->dtype), bytes = (size_t)p->spans[OUT] * item;
  for (int i = X; i <= W; i++) {
    for (int64_t k = 0; k < p->spans[i]; k++) {
      if (item == 8) ((double *)p->data[i])[k] = random_below(&p->seed, 1 << 20) / 7.0;
      if (item == 4) ((float *)p->data[i])[k] = (float)random_below(&p->seed, 1 << 20) / 7;
    }
  }
  void *whole = malloc(bytes);
  run(p, code, false);
  memcpy(whole, p->data[OUT], bytes);
  run(p, code, true);
  assert_memory_equal(p->data[OUT], whole, bytes);
  free(whole);
}

/* Where they are legal, mostly. */
static void draw_pairs(product *p, kiln_schedule_nest *n, kiln_arena *arena) {
  const kiln_loop_nest *nest = p->fn->nests.data[0];
  const kiln_loop_scopes scopes = kiln_loop_scopes_of(nest, arena);
  kiln__contraction c;
  assert_null(kiln__find_contraction(p->fn, nest, &scopes, -1, &c));
  n->pairs = random_below(&p->seed, 4) && !kiln__schedule_pairs_refuse(p->fn, 0, n, &c);
}

/* A legal one, mostly: else none. */
static kiln_schedule draw_schedule(product *p, kiln_arena *arena) {
  kiln_schedule_nest *n = KILN_NEW(arena, kiln_schedule_nest);
  const kiln_schedule s = {1, n};
  *n = (kiln_schedule_nest){.panel_loop = random_below(&p->seed, NEST),
                            .panel = 1 + random_below(&p->seed, 64),
                            .pack = p->lies ? 2 - p->lies : random_below(&p->seed, 3) - 1,
                            .tile_loop = random_below(&p->seed, NEST),
                            .tile = 1 + random_below(&p->seed, 9),
                            .strip = random_below(&p->seed, 4)};
  const int64_t columns = p->fn->nests.data[0]->extents[n->panel_loop];
  if (n->pack >= 0 && n->strip) n->strip = (int)((columns + n->panel - 1) / n->panel);
  n->prefetch = n->pack >= 0 && !n->strip && random_below(&p->seed, 2);
  if (n->prefetch && random_below(&p->seed, 2)) n->ahead = 1 + (int)random_below(&p->seed, 64);
  n->claim = random_below(&p->seed, 2);
  for (int i = X; i <= W; i++)
    if (i != n->pack && !kiln__schedule_round_refuses(p->fn, 0, i) && random_below(&p->seed, 3))
      n->rounds[n->round_count++] = i;
  draw_pairs(p, n, arena);
  kiln_status *status = kiln_schedule_verify(p->fn, &s, arena);
  if (status) *n = (kiln_schedule_nest){.pack = -1};
  kiln_status_destroy(status);
  return s;
}

typedef struct trial {
  kiln_codegen *codegen;
  kiln_arena *arena;
  product *p;
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
  t->tiled = s.nests[0].panel > 0;
  drawn_job d = {
      .codegen = t->codegen, .fn = t->p->fn, .tiles = &s, .seed = &t->p->seed, .arena = t->arena};
  KILN_TRY(compile_drawn(&d));
  t->code = d.code;
  t->text = d.text;
  return NULL;
}

static void test_random(void **unused) {
  (void)unused;
  int tiled = 0, drawn = 0, pairs = 0;
  const int count = random_rounds(60);
  for (uint64_t seed = 1; seed <= (uint64_t)count; seed++) {
    fixture f;
    fixture_open(&f);
    f.env->isa = (kiln_isa)(seed % (uint64_t)isa_count());
    product p = {.seed = random_seed(seed * UINT64_C(0x9e3779b97f4a7c15))};
    trial t = {.arena = f.arena, .p = &p};
    assert_ok(kiln_codegen_create(f.env, &t.codegen));
    make(&p, f.arena);
    assert_ok(kiln_loop_verify(p.fn));
    fill(&p);
    run_plain(&p);
    for (int turn = 0; turn < (llvm_compiles((int)seed) ? 3 : 1); turn++) {
      t.drawn = turn > 0;
      drawn += t.drawn;
      assert_ok(compile_body(&t));
      tiled += t.drawn && t.tiled;
      pairs += t.drawn && strstr(t.text.data, "pairs") != NULL;
      run(&p, t.code, true);
      compare(&p, seed, t.drawn ? t.text.data : "evaluator");
      if (turn == 2) compare_boxes(&p, t.code);
      kiln_compiled_release(t.code);
    }
    for (int i = 0; i < BUFFERS; i++) free(p.data[i]);
    free(p.wanted);
    kiln_codegen_destroy(t.codegen);
    fixture_close(&f);
  }
  assert_true(tiled >= drawn / 8);
  assert_true(pairs > 0 || drawn < 120);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text),    cmocka_unit_test(test_refused),
      cmocka_unit_test(test_copies),  cmocka_unit_test(test_rounded),
      cmocka_unit_test(test_rules),   cmocka_unit_test(test_no_contraction),
      cmocka_unit_test(test_windows), cmocka_unit_test(test_random),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
