/* bf16_test.c: products under the flag matmul=bf16, from graphs to numbers, on the evaluator and on
 * LLVM for every instruction set. The reference rounds the factors in its own way and sums in
 * double.
 *
 * The bound: a product of two factors of 8 bits is exact in f32, so that only sums round. Of K
 * products and a bias b, in any order, a sum is off by g * (sum of the products' sizes + |b|) at
 * most, where g = n u / (1 - n u), u = 2^-24 and n = K + 1; the chains and the bias are of these n.
 */
#include "lower_support.h"
#include "codegen/loop/schedule.h"
#include "runtime/pack.h"

enum { INPUTS = 3, PACKS = 8 };

/* conv(x (c, h, w), w (o, c, k, k), b (o)); of a linear and a matmul h, w and k are 1, and rows are
 * batches. */
typedef struct problem {
  const char *name, *graph;
  int64_t batch, channels, outputs, size, taps;
  bool transposed, bias; /* w is (c, o) */
} problem;

#define CONV(n, c, h, o, k, steps_x, sizes_w, steps_w, sizes_y, steps_y, pad)                      \
  "graph(%x : " F32(n ", " c ", " h ", " h, steps_x) ", %w : " F32(                                \
      sizes_w,                                                                                     \
      steps_w) ", %b : " F32(o, "1") "):\n  %s : int[] = prim::Constant[value=[1, 1]]()\n"         \
                                     "  %p : int[] = prim::Constant[value=[" pad ", " pad "]]()\n" \
                                     "  %g : int = prim::Constant[value=1]()\n  %y : " F32(        \
                                         sizes_y, steps_y) " = aten::conv2d(%x, %w, %b, %s, %p, "  \
                                                           "%s, %g)\n  return (%y)\n"

static const problem problems[] = {
    {"matmul",
     "graph(%x : " F32("7, 70", "70, 1") ", %w : " F32("70, 45", "45, 1") "):\n  %y : " F32(
         "7, 45", "45, 1") " = aten::matmul(%x, %w)\n  return (%y)\n",
     7, 70, 45, 1, 1, true, false},
    {"linear",
     "graph(%x : " F32("13, 96", "96, 1") ", %w : " F32("50, 96", "96, 1") ", %b : " F32(
         "50", "1") "):\n  %y : " F32("13, 50", "50, 1") " = aten::linear(%x, %w, %b)\n"
                                                         "  return (%y)\n",
     13, 96, 50, 1, 1, false, true},
    {"linear of a row and an odd sum",
     "graph(%x : " F32("1, 77", "77, 1") ", %w : " F32("50, 77", "77, 1") ", %b : " F32(
         "50", "1") "):\n  %y : " F32("1, 50", "50, 1") " = aten::linear(%x, %w, %b)\n"
                                                        "  return (%y)\n",
     1, 77, 50, 1, 1, false, true},
    {"convolution 3 x 3",
     CONV("2", "6", "9", "10", "3", "486, 81, 9, 1", "10, 6, 3, 3", "54, 9, 3, 1", "2, 10, 9, 9",
          "810, 81, 9, 1", "1"),
     2, 6, 10, 9, 3, false, true},
    {"convolution 1 x 1",
     CONV("2", "12", "7", "20", "1", "588, 49, 7, 1", "20, 12, 1, 1", "12, 1, 1, 1", "2, 20, 7, 7",
          "980, 49, 7, 1", "0"),
     2, 12, 20, 7, 1, false, true},
};
enum { PROBLEMS = (int)(sizeof problems / sizeof *problems) };

static int64_t numel_of(const problem *p, int buffer) {
  const int64_t plane = p->size * p->size;
  const int64_t counts[] = {p->batch * p->channels * plane,
                            p->outputs * p->channels * p->taps * p->taps, p->outputs,
                            p->batch * p->outputs * plane};
  return counts[buffer == 2 && !p->bias ? 3 : buffer];
}

/* -- The reference -- */

/* To 8 bits, ties to even, without a look at its bits. */
static double rounded(float x) {
  int exponent;
  const double part = frexp((double)x, &exponent);
  return ldexp(nearbyint(ldexp(part, 8)), exponent - 8);
}

typedef struct wanted {
  double value, size; /* of all that is summed */
} wanted;

static wanted wanted_at(const problem *p, const float *x, const float *w, const float *b,
                        int64_t at, bool rounds) {
  const int64_t n = p->size, k = p->taps, plane = n * n, pad = k / 2;
  const int64_t image = at / plane / p->outputs, o = at / plane % p->outputs;
  wanted sum = {p->bias ? (double)b[o] : 0, 0};
  sum.size = fabs(sum.value);
  for (int64_t i = 0; i < p->channels * k * k; i++) {
    const int64_t c = i / k / k;
    const int64_t row = at / n % n + i / k % k - pad, column = at % n + i % k - pad;
    if (row < 0 || column < 0 || row >= n || column >= n) continue;
    const float xv = x[(image * p->channels + c) * plane + row * n + column];
    const float wv = w[p->transposed ? c * p->outputs + o : o * p->channels * k * k + i];
    const double product = rounds ? rounded(xv) * rounded(wv) : (double)xv * (double)wv;
    sum.value += product;
    sum.size += fabs(product);
  }
  return sum;
}

static double bound_of(const problem *p) {
  const double nu = (double)(p->channels * p->taps * p->taps + 1) * 0x1p-24;
  return nu / (1 - nu);
}

/* -- Running -- */

typedef struct trial {
  lowered t;
  const problem *p;
  kiln_compiled *code;
  void *data[INPUTS + 1];
} trial;

static void fill(trial *t) {
  uint64_t seed = 77;
  for (int i = 0; i < INPUTS + t->p->bias; i++) {
    const int64_t count = numel_of(t->p, i);
    float *to = aligned_alloc(64, ((size_t)count * sizeof *to + 63) / 64 * 64);
    for (int64_t k = 0; k < count; k++)
      to[k] = (float)(random_below(&seed, 1 << 24) - (1 << 23)) * 0x1p-23f;
    t->data[i] = to;
  }
}

/* How factors are multiplied: f32, bf16, or pairs of bf16, by emulation where the CPU has no
 * instruction for them. */
enum { F32_FACTORS, BF16_FACTORS, BF16_PAIRS, WAYS };

static void open_trial(trial *t, const problem *p, int isa, int way) {
  kiln_flags *flags;
  *t = (trial){.p = p};
  assert_ok(open_graph(&t->t, p->graph));
  kiln_codegen_destroy(t->t.codegen);
  t->t.f.env->isa = (kiln_isa)isa;
  flags = &t->t.f.env->flags;
  assert_ok(kiln_flags_set(flags, "matmul", way == F32_FACTORS ? "f32" : "bf16"));
  assert_ok(kiln_flags_set(flags, "machine", way == BF16_PAIRS ? "pairs=1" : "pairs=0"));
  assert_ok(kiln_codegen_create(t->t.f.env, &t->t.codegen));
  assert_ok(lower(&t->t));
  fill(t);
}

static void close_trial(trial *t) {
  close_graph(&t->t);
  for (int i = 0; i <= INPUTS; i++) free(t->data[i]);
}

static void compile(trial *t, kiln_backend backend) {
  assert_ok(kiln_codegen_compile(t->t.codegen, t->t.fn, backend, &t->t.reason, &t->code, NULL));
}

static const float *run_code(trial *t) {
  const kiln_kernel_info *info = &t->code->info;
  void *data[INPUTS + 1], *copies[PACKS];
  memcpy(data, t->data, sizeof data);
  assert_true(info->pack_count <= PACKS);
  for (int i = 0; i < info->pack_count; i++) {
    const int input = info->packs[i].input;
    const kiln_kernel_pack pack = kiln_pack_of(&info->packs[i], numel_of(t->p, input), NULL, NULL);
    size_t bytes;
    assert_true(kiln_pack_bytes(&pack, &bytes));
    copies[i] = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(copies[i], 0xff, bytes); /* NaN */
    kiln_pack_copy(&pack, data[input], copies[i]);
    data[input] = copies[i];
  }
  void *scratch = aligned_alloc(64, info->work.scratch_bytes / 64 * 64 + 64);
  const kiln_kernel_args args = {.data = data, .scratch = scratch, .closure = t->code->closure};
  t->code->fn(&args, &info->work.grid);
  free(scratch);
  for (int i = 0; i < info->pack_count; i++) free(copies[i]);
  return t->data[INPUTS - 1 + t->p->bias];
}

static void compare(trial *t, bool rounds, const char *backend) {
  const problem *p = t->p;
  const float *y = run_code(t);
  const double bound = bound_of(p);
  for (int64_t i = 0; i < numel_of(p, INPUTS); i++) {
    const wanted w = wanted_at(p, t->data[0], t->data[1], t->data[2], i, rounds);
    if (fabs((double)y[i] - w.value) <= bound * w.size) continue;
    fail_msg("%s, %s, %s: element %lld is %.9g, not %.9g within %.3g", p->name, backend,
             kiln_isa_name(t->t.f.env->isa), (long long)i, (double)y[i], w.value, bound * w.size);
  }
}

static void test_products(void **unused) {
  (void)unused;
  for (int i = 0; i < WAYS * PROBLEMS; i++) {
    for (int isa = 0; isa < isa_count(); isa++) {
      const int way = i % WAYS;
      trial t;
      open_trial(&t, &problems[i / WAYS], isa, way);
      for (int backend = KILN_BACKEND_LLVM; backend <= KILN_BACKEND_EVAL; backend++) {
        compile(&t, (kiln_backend)backend);
        compare(&t, way != F32_FACTORS, backend == KILN_BACKEND_LLVM ? "LLVM" : "evaluator");
        kiln_compiled_release(t.code);
      }
      close_trial(&t);
    }
  }
}

/* -- What is in memory -- */

static size_t packed_bytes(const problem *p, int way) {
  size_t bytes = 0;
  trial t;
  open_trial(&t, p, KILN_ISA_AVX2, way);
  kiln_machine machine;
  assert_ok(kiln_machine_describe(
      KILN_ISA_AVX2, way == BF16_PAIRS ? KILN_STR("pairs=1") : KILN_STR(""), &machine));
  const kiln_schedule s = kiln_schedule_choose(t.t.fn, &machine, t.t.f.arena);
  const kiln_scheduled made = kiln_schedule_apply(t.t.fn, &s, t.t.f.arena);
  for (int i = 0; i < made.pack_count; i++) {
    if (made.packs[i].input != 1) continue;
    assert_int_equal(made.packs[i].rounds, way != F32_FACTORS);
    assert_int_equal(made.packs[i].pairs, way == BF16_PAIRS);
    assert_true(kiln_pack_bytes(&made.packs[i], &bytes));
    bytes -= KILN_KERNEL_PACK_BEHIND;
  }
  close_trial(&t);
  return bytes;
}

static void test_half_the_bytes(void **unused) {
  (void)unused;
  const size_t f32 = packed_bytes(&problems[1], F32_FACTORS);
  assert_true(f32 >= 50 * 96 * sizeof(float));
  assert_int_equal(2 * packed_bytes(&problems[1], BF16_FACTORS), f32);
  assert_int_equal(2 * packed_bytes(&problems[1], BF16_PAIRS), f32);
}

/* -- The instruction -- */

typedef struct dump_job {
  trial *t;
  kiln_codegen_stage stage;
  kiln_str text;
} dump_job;
static kiln_status *dump_body(dump_job *job) {
  return kiln_codegen_dump(job->t->t.codegen, job->t->t.fn, job->stage, job->t->t.f.arena,
                           &job->text);
}

static void expect_word(trial *t, kiln_codegen_stage stage, const char *word, bool there) {
  dump_job job = {.t = t, .stage = stage};
  assert_ok(dump_body(&job));
  assert_true(there == (memmem(job.text.data, job.text.len, word, strlen(word)) != NULL));
}

/* Code for processors with AVX512_BF16 multiplies pairs of whole vectors; nothing else has the
 * instruction, and an odd sum has no pairs. */
static void test_instruction(void **unused) {
  (void)unused;
  for (int isa = 0; isa < KILN_ISA__COUNT; isa++) {
    for (int way = F32_FACTORS; way <= BF16_PAIRS; way++) {
      for (int i = 1; i <= 2; i++) {
        trial t;
        open_trial(&t, &problems[i], isa, way);
        const bool pairs = way == BF16_PAIRS && i == 1;
        const bool there = pairs && isa == KILN_ISA_AVX512BF16;
        expect_word(&t, KILN_STAGE_SCHEDULE, ", pairs", pairs);
        expect_word(&t, KILN_STAGE_LLVM, "@llvm.x86.avx512bf16.dpbf16ps.512", there);
        expect_word(&t, KILN_STAGE_ASM, "vdpbf16ps", there);
        close_trial(&t);
      }
    }
  }
}

/* A row has a tile where its weight has half the bytes. */
static void test_one_row(void **unused) {
  (void)unused;
  for (int way = F32_FACTORS; way <= BF16_FACTORS; way++) {
    trial t;
    open_trial(&t, &problems[2], KILN_ISA_AVX2, way);
    expect_word(&t, KILN_STAGE_SCHEDULE, "pack b1, round b0, tile 1", way == BF16_FACTORS);
    close_trial(&t);
  }
}

/* That target's own rules choose them. */
static void test_own_rules(void **unused) {
  (void)unused;
  for (kiln_isa isa = KILN_ISA_V2; isa < KILN_ISA__COUNT; isa++) {
    kiln_machine machine;
    assert_ok(kiln_machine_describe(isa, KILN_STR(""), &machine));
    assert_int_equal(machine.pairs, isa == KILN_ISA_AVX512BF16);
  }
}

/* -- What is rounded -- */

static void expect_casts(const char *graph, bool any) {
  lowered t;
  assert_ok(open_graph(&t, graph));
  assert_null(strstr(t.text.data, "bf16"));
  t.f.env->flags.matmul = KILN_FACTORS_BF16;
  assert_ok(lower(&t));
  assert_true((strstr(t.text.data, "cast bf16") != NULL) == any);
  close_graph(&t);
}

/* Products without a weight that stand in loops over rows are attention's, and no product of f64
 * is rounded. */
static void test_what_is_rounded(void **unused) {
  (void)unused;
  expect_casts(problems[0].graph, true);
#define F64(sizes, strides) "Double(" sizes ", strides=[" strides "], requires_grad=0, device=cpu)"
  expect_casts(
      "graph(%x : " F64("7, 70", "70, 1") ", %w : " F64("70, 45", "45, 1") "):\n  %y : " F64(
          "7, 45", "45, 1") " = aten::matmul(%x, %w)\n  return (%y)\n",
      false);
  expect_casts(
      "graph(%q : " F32("16, 8", "8, 1") ", %k : " F32("8, 16", "16, 1") ", %v : " F32(
          "16, 8",
          "8, 1") "):\n"
                  "  %d : int = prim::Constant[value=-1]()\n  %n : NoneType = prim::Constant()\n"
                  "  %s : " F32(
                      "16, 16",
                      "16, 1") " = aten::matmul(%q, %k)\n"
                               "  %p : " F32(
                                   "16, 16",
                                   "16, 1") " = aten::softmax(%s, %d, %n)\n"
                                            "  %y : " F32(
                                                "16, 8",
                                                "8, 1") " = aten::matmul(%p, %v)\n  return (%y)\n",
      false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_products),    cmocka_unit_test(test_half_the_bytes),
      cmocka_unit_test(test_instruction), cmocka_unit_test(test_own_rules),
      cmocka_unit_test(test_one_row),     cmocka_unit_test(test_what_is_rounded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
