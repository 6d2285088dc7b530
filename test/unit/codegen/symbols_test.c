/* symbols_test.c: random nests whose loops have symbols for iterations, some of them none (s0//8 of
 * 5), in any order of memory, under random schedules: each element is what plain C gives, and none
 * else is written. */
#include <string.h>

#include "schedule_support.h"

enum { NESTS = 2, OPERANDS = 2, BUFFERS = NESTS * (OPERANDS + 1), MOST_RANK = 5, GUARD = 64 };

typedef struct strided {
  kiln_dim strides[MOST_RANK];
  int64_t numbers[MOST_RANK]; /* what they are */
  int order[MOST_RANK];       /* from the outermost dimension of memory to the innermost */
} strided;

typedef struct drawn {
  fixture f;
  kiln_codegen *codegen;
  uint64_t seed;
  kiln_loop_fn *fn;
  kiln_dtype dtype;
  int rank[NESTS], symbol_count; /* of the operands */
  bool sums[NESTS];              /* over the last loop */
  int64_t symbols[NESTS * MOST_RANK];
  kiln_dim extents[NESTS][MOST_RANK];
  int64_t counts[NESTS][MOST_RANK], spans[BUFFERS];
  strided buffers[BUFFERS];
  char *data[BUFFERS];
} drawn;

/* Inputs come first; the last buffers are the nests' outputs. */
static int buffer_of(int nest, int operand) {
  return operand == OPERANDS ? NESTS * OPERANDS + nest : nest * OPERANDS + operand;
}

/* A number, a symbol, or a part of one, which may be none. */
static void draw_extent(drawn *d, int nest, int loop) {
  const int kind = random_below(&d->seed, 6), most = d->rank[nest] > 3 ? 9 : 70;
  int64_t *count = &d->counts[nest][loop];
  kiln_dim *extent = &d->extents[nest][loop];
  *count = 2 + random_below(&d->seed, most);
  *extent = *count;
  if (kind == 0) return;
  *extent = kiln_dim_symbol(d->symbol_count);
  d->symbols[d->symbol_count++] = *count;
  if (kind > 1) return;
  const int part = 2 + random_below(&d->seed, 8);
  *extent = kiln_sum_dim(d->fn->dims,
                         kiln_sum_divided(d->fn->dims, kiln_sum_of(d->fn->dims, *extent), part));
  *count /= part;
}

static void draw_buffer(drawn *d, int nest, int operand) {
  const int number = buffer_of(nest, operand), rank = d->rank[nest];
  strided *s = &d->buffers[number];
  kiln_dim step = 1;
  int64_t worth = 1;
  for (int i = 0; i < rank; i++) {
    const int other = random_below(&d->seed, i + 1);
    s->order[i] = s->order[other];
    s->order[other] = i;
  }
  for (int i = rank - 1; i >= 0; i--) {
    const int loop = s->order[i];
    if (operand == OPERANDS && d->sums[nest] && loop == rank - 1) continue;
    s->strides[loop] = step;
    s->numbers[loop] = worth;
    step = kiln_dim_product(d->fn->dims, step, d->extents[nest][loop]);
    worth *= d->counts[nest][loop];
  }
  d->spans[number] = worth;
}

static void draw_nest(drawn *d, int nest) {
  const int outer = d->rank[nest] - d->sums[nest], out = buffer_of(nest, OPERANDS);
  kiln_loop_nest *n = kiln_loop_add_nest(d->fn, outer, d->extents[nest]);
  int values[OPERANDS];
  if (d->sums[nest]) kiln_loop_open(d->fn, n, KILN_LOOP_reduce, d->extents[nest][outer]);
  for (int i = 0; i < OPERANDS; i++) {
    const int buffer = buffer_of(nest, i);
    values[i] = kiln_loop_load(d->fn, n, buffer, 0, d->buffers[buffer].strides);
  }
  int result = kiln_loop_op(d->fn, n, KILN_LOOP_add, values[0], values[1], -1);
  if (d->sums[nest]) {
    result = kiln_loop_reduce(d->fn, n, KILN_LOOP_sum, result, -1, 1);
    kiln_loop_end(d->fn, n);
  }
  kiln_loop_store(d->fn, n, out, 0, d->buffers[out].strides, result);
}

static kiln_status *draw_kernel(drawn *d) {
  static const kiln_dtype dtypes[] = {KILN_DTYPE_F32, KILN_DTYPE_F32, KILN_DTYPE_F64, KILN_DTYPE_U8,
                                      KILN_DTYPE_I16};
  d->fn = kiln_loop_create(d->f.arena);
  d->dtype = dtypes[random_below(&d->seed, 5)];
  for (int nest = 0; nest < NESTS; nest++) {
    d->rank[nest] = 1 + random_below(&d->seed, MOST_RANK);
    d->sums[nest] = d->rank[nest] > 1 && random_below(&d->seed, 3) == 0;
    for (int i = 0; i < d->rank[nest]; i++) draw_extent(d, nest, i);
    for (int i = 0; i <= OPERANDS; i++) draw_buffer(d, nest, i);
  }
  for (int out = 0; out < 2; out++) {
    for (int nest = 0; nest < NESTS; nest++) {
      for (int i = out ? OPERANDS : 0; i <= (out ? OPERANDS : OPERANDS - 1); i++) {
        const strided *s = &d->buffers[buffer_of(nest, i)];
        (out ? kiln_loop_add_output : kiln_loop_add_input)(d->fn, d->dtype, d->rank[nest],
                                                           d->extents[nest], s->strides);
      }
    }
  }
  for (int nest = 0; nest < NESTS; nest++) draw_nest(d, nest);
  return kiln_loop_verify(d->fn);
}

static double element(const drawn *d, const char *data, int64_t at) {
  switch (d->dtype) {
    case KILN_DTYPE_F32: return (double)((const float *)(const void *)data)[at];
    case KILN_DTYPE_F64: return ((const double *)(const void *)data)[at];
    case KILN_DTYPE_I16: return ((const int16_t *)(const void *)data)[at];
    default: return ((const uint8_t *)data)[at];
  }
}

/* Small integers, whose sums all types have. */
static void fill(drawn *d, int buffer) {
  for (int64_t i = 0; i < d->spans[buffer]; i++) {
    const int value = random_below(&d->seed, 100);
    char *at = d->data[buffer] + i * kiln_loop_size(d->dtype);
    switch (d->dtype) {
      case KILN_DTYPE_F32: *(float *)(void *)at = (float)value; break;
      case KILN_DTYPE_F64: *(double *)(void *)at = value; break;
      case KILN_DTYPE_I16: *(int16_t *)(void *)at = (int16_t)value; break;
      default: *(uint8_t *)at = (uint8_t)value; break;
    }
  }
}

/* The element at the counters, summed over the last loop where the nest does. Types of 8 and 16
 * bits wrap. */
static double wanted(const drawn *d, int nest, int64_t *counters) {
  const int last = d->rank[nest] - 1;
  const int64_t count = d->sums[nest] ? d->counts[nest][last] : 1;
  double sum = 0;
  for (int64_t n = 0; n < count; n++) {
    if (d->sums[nest]) counters[last] = n;
    for (int i = 0; i < OPERANDS; i++) {
      const int buffer = buffer_of(nest, i);
      int64_t at = 0;
      for (int k = 0; k <= last; k++) at += counters[k] * d->buffers[buffer].numbers[k];
      sum += element(d, d->data[buffer], at);
    }
  }
  if (d->sums[nest]) counters[last] = 0;
  if (d->dtype == KILN_DTYPE_U8) return (uint8_t)(int64_t)sum;
  return d->dtype == KILN_DTYPE_I16 ? (int16_t)(int64_t)sum : sum;
}

static void check_nest(const drawn *d, int nest, kiln_str schedule) {
  const int loops = d->rank[nest] - d->sums[nest], out = buffer_of(nest, OPERANDS);
  int64_t counters[MOST_RANK] = {0};
  const kiln_str text = kiln_loop_print(d->fn, d->f.arena);
  for (int64_t n = 0; n < d->spans[out]; n++) {
    int64_t at = 0;
    for (int k = 0; k < loops; k++) at += counters[k] * d->buffers[out].numbers[k];
    const double want = wanted(d, nest, counters), have = element(d, d->data[out], at);
    if (have != want)
      fail_msg("nest %d, element %lld: %g, not %g\n" KILN_STR_FMT KILN_STR_FMT, nest, (long long)at,
               have, want, KILN_STR_ARG(text), KILN_STR_ARG(schedule));
    for (int k = loops - 1; k >= 0 && ++counters[k] == d->counts[nest][k]; k--) counters[k] = 0;
  }
  const char *end = d->data[out] + d->spans[out] * kiln_loop_size(d->dtype);
  for (int i = 0; i < GUARD; i++) {
    if (end[i] != 0x5a)
      fail_msg("nest %d writes behind its end\n" KILN_STR_FMT KILN_STR_FMT, nest,
               KILN_STR_ARG(text), KILN_STR_ARG(schedule));
  }
}

static void run_code(drawn *d, const kiln_compiled *code, kiln_str schedule) {
  kiln_kernel_work work = code->info.work;
  if (code->info.shape) assert_true(kiln_kernel_shape_work(code->info.shape, d->symbols, &work));
  for (int nest = 0; nest < NESTS; nest++) {
    const int out = buffer_of(nest, OPERANDS);
    memset(d->data[out], 0x5a, (size_t)(d->spans[out] * kiln_loop_size(d->dtype)) + GUARD);
  }
  void *scratch = aligned_alloc(64, work.scratch_bytes / 64 * 64 + 64);
  assert_non_null(scratch);
  const kiln_kernel_args args = {.data = (void *const *)d->data,
                                 .symbols = d->symbols,
                                 .scratch = scratch,
                                 .closure = code->closure};
  const int64_t cut = random_below(&d->seed, (int)work.grid.end[0] + 1);
  kiln_kernel_box first = work.grid, second = work.grid;
  first.end[0] = second.begin[0] = cut;
  code->fn(&args, &first);
  code->fn(&args, &second);
  free(scratch);
  for (int nest = 0; nest < NESTS; nest++) check_nest(d, nest, schedule);
}

static void check_kernel(drawn *d, bool llvm) {
  kiln_reason reason;
  kiln_compiled *code;
  assert_ok(draw_kernel(d));
  for (int i = 0; i < BUFFERS; i++) {
    d->data[i] = malloc((size_t)(d->spans[i] * kiln_loop_size(d->dtype)) + GUARD);
    assert_non_null(d->data[i]);
    if (i < NESTS * OPERANDS) fill(d, i);
  }
  assert_ok(kiln_codegen_compile(d->codegen, d->fn, KILN_BACKEND_EVAL, &reason, &code, NULL));
  run_code(d, code, kiln_str_from("evaluator"));
  kiln_compiled_release(code);
  if (llvm) {
    drawn_job job = {.codegen = d->codegen, .fn = d->fn, .seed = &d->seed, .arena = d->f.arena};
    assert_ok(compile_drawn(&job));
    run_code(d, job.code, job.text);
    kiln_compiled_release(job.code);
    assert_ok(kiln_codegen_compile(d->codegen, d->fn, KILN_BACKEND_LLVM, &reason, &code, NULL));
    run_code(d, code, kiln_str_from("rules"));
    kiln_compiled_release(code);
  }
  for (int i = 0; i < BUFFERS; i++) free(d->data[i]);
}

static void random_kernels(kiln_isa isa, uint64_t seed) {
  const int count = random_rounds(60);
  for (int n = 0; n < count; n++) {
    drawn d = {.seed = random_seed(seed + (uint64_t)n)};
    fixture_open(&d.f);
    d.f.env->isa = isa;
    assert_ok(kiln_codegen_create(d.f.env, &d.codegen));
    check_kernel(&d, llvm_compiles(n));
    kiln_codegen_destroy(d.codegen);
    fixture_close(&d.f);
  }
}

static void test_v2(void **unused) {
  (void)unused;
  random_kernels(KILN_ISA_V2, 11);
}
static void test_avx2(void **unused) {
  (void)unused;
  if (isa_count() <= KILN_ISA_AVX2) skip();
  random_kernels(KILN_ISA_AVX2, 1201);
}
static void test_avx512(void **unused) {
  (void)unused;
  if (isa_count() <= KILN_ISA_AVX512) skip();
  random_kernels(KILN_ISA_AVX512, 2301);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_v2),
      cmocka_unit_test(test_avx2),
      cmocka_unit_test(test_avx512),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
