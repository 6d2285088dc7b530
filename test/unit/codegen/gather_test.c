/* gather_test.c: loads at places that data tells, and what is reported of those out of bounds:
 * text, verifier, passes; random kernels on every back end against plain C. */
#include "schedule_support.h"

/* Rows of a table, twice in a sum. */
static const char *const rows = "kernel {\n"
                                "  in b0: i64[s0] [1]\n"
                                "  in b1: f32[50, s1] [s1, 1]\n"
                                "  out b2: f32[s0, s1] [s1, 1]\n"
                                "  nest [s0, s1] {\n"
                                "    %0 = load i64 b0 + 0 [1, 0]\n"
                                "    %1 = check i64 %0 below 50\n"
                                "    %2 = gather f32 b1 + 0 [0, 1] at %1 * s1\n"
                                "    %3 = add f32 %2, %2\n"
                                "    store f32 b2 + 0 [s1, 1], %3\n"
                                "  }\n"
                                "}\n";

static void test_text(void **unused) {
  (void)unused;
  fixture f;
  fixture_open(&f);
  kiln_str print;
  kiln_loop_fn *fn = parse_loop(&f, rows, false, &print);
  assert_string_equal(kiln_arena_str(f.arena, print).data, rows);
  assert_true(kiln_loop_can_fault(fn));
  assert_int_equal(kiln_loop_symbol_count(fn), 2);
  parse_loop(&f, rows, true, &print);
  assert_string_equal(kiln_arena_str(f.arena, print).data, rows);
  fixture_close(&f);
}

/* A line replaced by a wrong one is refused, with a sentence that has a word. */
static void test_refusals(void **unused) {
  (void)unused;
  static const char check[] = "%1 = check i64 %0 below 50";
  static const char gather[] = "%2 = gather f32 b1 + 0 [0, 1] at %1 * s1";
  static const struct {
    const char *line, *wrong, *word;
  } cases[] = {
      {check, "%1 = check i64 %0 below 51", "outside of b1"},
      {check, "%1 = check i64 %0 below s0", "outside of b1"},
      {check, "%1 = check i64 %0 below 0", "no index is below that"},
      {check, "%1 = check i64 %0 below -1", "no index is below that"},
      {check, "%1 = check i32 %0 below 50", "i64"},
      {check, "%1 = check f32 %0 below 50", "does not take"},
      {check, "%1 = check i64 %0", "'below' was expected"},
      {check, "%1 = add i64 %0, %0", "not checked"},
      {gather, "%2 = gather f32 b1 + 0 [0, 1] at %0 * s1", "not checked"},
      {gather, "%2 = gather f32 b1 + 0 [0, 1] at %1 * s0", "outside of b1"},
      {gather, "%2 = gather f32 b1 + 1 [0, 1] at %1 * s1", "outside of b1"},
      {gather, "%2 = gather f32 b1 + 0 [1, 1] at %1 * s1", "outside of b1"},
      {gather, "%2 = gather f32 b1 + 0 [0, 1] at %1 * -1", "negative"},
      {gather, "%2 = gather f32 b2 + 0 [0, 1] at %1 * s1", "no input"},
      {gather, "%2 = gather f64 b1 + 0 [0, 1] at %1 * s1", "type of its buffer"},
      {gather, "%2 = gather f32 b1 + 0 [0, 1] at %2 * s1", "does not exist"},
      {gather, "%2 = gather f32 b1 + 0 [0, 1] * s1", "'at' was expected"},
      {gather, "%2 = gather f32 b1 + 0 [0, 1] at %1", "'*' was expected"},
      {gather, "%2 = load f32 b1 + 0 [s1, 1]", "outside of b1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    fixture_open(&f);
    const char *at = strstr(rows, cases[i].line);
    char text[2048];
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - rows), rows, cases[i].wrong,
             at + strlen(cases[i].line));
    parse_job job = {.f = &f, .text = kiln_str_from(text)};
    kiln_status *status = parse_body(&job);
    if (!status || !strstr(kiln_status_report(status), cases[i].word))
      fail_msg("'%s' gave: %s", cases[i].wrong, status ? kiln_status_report(status) : "nothing");
    kiln_status_destroy(status);
    fixture_close(&f);
  }
}

/* What is gathered in two loops is kept; an index is checked once, before the loops that it does
 * not move with; one whose value nobody needs is checked all the same. */
static void test_passes(void **unused) {
  (void)unused;
  fixture f;
  fixture_open(&f);
  kiln_str print;
  kiln_loop_fn *fn = parse_loop(
      &f,
      "kernel { in b0: i64[4] [1] in b1: f32[9, 8] [8, 1] out b2: f32[4, 8] [8, 1]\n"
      "nest [4] { reduce 8 { %1 = load i64 b0 + 0 [1, 0] %2 = check i64 %1 below 9\n"
      "  %3 = gather f32 b1 + 0 [0, 1] at %2 * 8 %4 = exp f32 %3 %5 = sum f32 %4 over 1 }\n"
      "for 8 { %8 = load i64 b0 + 0 [1, 0] %9 = check i64 %8 below 9\n"
      "  %10 = check i64 %8 below 7 %11 = gather f32 b1 + 0 [0, 1] at %9 * 8\n"
      "  %12 = exp f32 %11 %13 = div f32 %12, %5 store f32 b2 + 0 [8, 1], %13 } } }",
      true, &print);
  assert_string_equal(kiln_arena_str(f.arena, print).data,
                      "kernel {\n"
                      "  in b0: i64[4] [1]\n"
                      "  in b1: f32[9, 8] [8, 1]\n"
                      "  out b2: f32[4, 8] [8, 1]\n"
                      "  local b3: f32[8] [1]\n"
                      "  nest [4] {\n"
                      "    %0 = load i64 b0 + 0 [1]\n"
                      "    %1 = check i64 %0 below 9\n"
                      "    reduce 8 {\n"
                      "      %3 = gather f32 b1 + 0 [0, 1] at %1 * 8\n"
                      "      %4 = exp f32 %3\n"
                      "      store f32 b3 + 0 [0, 1], %4\n"
                      "      %6 = sum f32 %4 over 1\n"
                      "    }\n"
                      "    %8 = check i64 %0 below 7\n"
                      "    for 8 {\n"
                      "      %10 = load f32 b3 + 0 [0, 1]\n"
                      "      %11 = div f32 %10, %6\n"
                      "      store f32 b2 + 0 [8, 1], %11\n"
                      "    }\n"
                      "  }\n"
                      "}\n");
  assert_true(kiln_loop_can_fault(fn));
  fixture_close(&f);
}

/* Who computes again what faulted reads the inputs: no output is written over one. */
static void test_donors(void **unused) {
  (void)unused;
  static const char *const lines[] = {"%2 = check i64 %0 below 8", "%2 = neg i64 %0"};
  for (int i = 0; i < 2; i++) {
    fixture f;
    fixture_open(&f);
    char text[512];
    snprintf(text, sizeof text,
             "kernel { in b0: i64[8] [1] out b1: i64[8] [1] nest [8] {\n"
             "%%0 = load i64 b0 + 0 [1] store i64 b1 + 0 [1], %%0 %s } }",
             lines[i]);
    const kiln_kernel_info info = info_of(&f, parse_loop(&f, text, false, NULL));
    assert_int_equal(info.can_fault, i == 0);
    assert_int_equal(info.donors[0], i);
    fixture_close(&f);
  }
}

/* -- Random kernels -- */

static const kiln_dtype dtypes[] = {KILN_DTYPE_F32, KILN_DTYPE_F64,  KILN_DTYPE_U8,
                                    KILN_DTYPE_I16, KILN_DTYPE_I32,  KILN_DTYPE_I64,
                                    KILN_DTYPE_F16, KILN_DTYPE_BOOL, KILN_DTYPE_BF16};
static const int64_t extents[] = {1, 2, 3, 5, 7, 8, 9, 16, 17, 31, 64, 70};
#define PICK(seed, array) (array)[random_below(seed, (int)(sizeof(array) / sizeof *(array)))]

typedef enum kernel_form { PLAIN, IN_LOOP, REDUCED, KERNEL_FORMS } kernel_form;

/* out[i, j, k] = data[offset + strides of i, j, k + step * index[i, j, k]], or the sum over k. */
typedef struct kernel {
  fixture *f;
  uint64_t seed;
  kernel_form form;
  kiln_dtype dtype;
  int rank;
  int64_t sizes[3], index_strides[3], data_strides[3], out_strides[3];
  int64_t offset, step, limit, spans[3]; /* elements of index, data and out */
  kiln_loop_fn *fn;
  int64_t *index;
  char *data, *want;
  uint32_t fault;
} kernel;

/* Some loops do not move it; the last element that is reached. */
static int64_t random_strides(kernel *k, int64_t *strides) {
  int64_t next = 1 + random_below(&k->seed, 2), last = 0;
  const bool turned = random_below(&k->seed, 3) == 0;
  for (int n = 0; n < k->rank; n++) {
    const int d = turned ? n : k->rank - 1 - n;
    strides[d] = random_below(&k->seed, 3) == 0 ? 0 : next;
    if (strides[d]) next *= k->sizes[d] + random_below(&k->seed, 2);
    last += (k->sizes[d] - 1) * strides[d];
  }
  return last;
}

static void random_sizes(kernel *k) {
  k->form = (kernel_form)random_below(&k->seed, KERNEL_FORMS);
  k->dtype = k->form == REDUCED ? dtypes[random_below(&k->seed, 2) * 4] : PICK(&k->seed, dtypes);
  k->rank = k->form == PLAIN ? random_below(&k->seed, 4) : 1 + random_below(&k->seed, 3);
  int64_t next = 1;
  for (int d = k->rank - 1; d >= 0; d--) {
    k->sizes[d] = PICK(&k->seed, extents);
    if (next * k->sizes[d] > 3000) k->sizes[d] = 1;
    k->out_strides[d] = next;
    if (k->form == REDUCED && d == k->rank - 1) k->out_strides[d] = 0;
    if (k->out_strides[d]) next *= k->sizes[d];
  }
  k->spans[2] = next;
  k->spans[0] = random_strides(k, k->index_strides) + 1;
  k->offset = random_below(&k->seed, 3);
  k->step = random_below(&k->seed, 4) ? 1 + random_below(&k->seed, 9) : 0;
  k->limit = 1 + random_below(&k->seed, 40);
  k->spans[1] = k->offset + random_strides(k, k->data_strides) + k->step * (k->limit - 1) + 1;
}

static void put_dims(kiln_text *text, int count, const int64_t *dims) {
  kiln_text_puts(text, " [");
  for (int i = 0; i < count; i++)
    kiln_text_printf(text, "%s%lld", i ? ", " : "", (long long)dims[i]);
  kiln_text_puts(text, "]");
}

static void make_kernel(kernel *k) {
  random_sizes(k);
  const char *t = kiln_loop_dtype_name(k->dtype);
  const int loops = k->form != PLAIN, n = loops;
  kiln_text text = kiln_text_in(k->f->arena);
  kiln_text_printf(&text, "kernel { in b0: i64[%lld] [1] in b1: %s[%lld] [1] out b2: %s[%lld] [1]",
                   (long long)k->spans[0], t, (long long)k->spans[1], t, (long long)k->spans[2]);
  kiln_text_puts(&text, " nest");
  put_dims(&text, k->rank - loops, k->sizes);
  kiln_text_puts(&text, " {");
  if (loops)
    kiln_text_printf(&text, " %s %lld {", k->form == REDUCED ? "reduce" : "for",
                     (long long)k->sizes[k->rank - 1]);
  kiln_text_printf(&text, " %%%d = load i64 b0 + 0", n);
  put_dims(&text, k->rank, k->index_strides);
  kiln_text_printf(&text, " %%%d = check i64 %%%d below %lld", n + 1, n, (long long)k->limit);
  kiln_text_printf(&text, " %%%d = gather %s b1 + %lld", n + 2, t, (long long)k->offset);
  put_dims(&text, k->rank, k->data_strides);
  kiln_text_printf(&text, " at %%%d * %lld", n + 1, (long long)k->step);
  if (k->form == REDUCED) kiln_text_printf(&text, " %%%d = sum %s %%%d over 1 }", n + 3, t, n + 2);
  kiln_text_printf(&text, " store %s b2 + 0", t);
  put_dims(&text, k->rank - (k->form == REDUCED), k->out_strides);
  kiln_text_printf(&text, ", %%%d }%s }", n + 2 + (k->form == REDUCED),
                   k->form == IN_LOOP ? " }" : "");
  k->fn = parse_loop(k->f, kiln_text_str(&text).data, random_below(&k->seed, 3) > 0, NULL);
}

/* Small numbers: their sums are exact. Of bools any byte but 0 is true. */
static void fill(kernel *k) {
  const bool spoilt = random_below(&k->seed, 2);
  const int64_t wrong[] = {-1, k->limit, INT64_MIN, INT64_MAX, k->limit + 1};
  const size_t size = (size_t)kiln_loop_size(k->dtype);
  k->index = malloc((size_t)k->spans[0] * sizeof *k->index);
  for (int64_t i = 0; i < k->spans[0]; i++) {
    const bool good = !spoilt || random_below(&k->seed, 50);
    k->index[i] = good ? random_below(&k->seed, (int)k->limit) : PICK(&k->seed, wrong);
  }
  k->data = malloc((size_t)k->spans[1] * size);
  for (int64_t i = 0; i < k->spans[1]; i++) {
    const int value = random_below(&k->seed, 200);
    const float f32 = (float)value;
    const double f64 = value;
    const int64_t i64 = k->dtype == KILN_DTYPE_BOOL && value < 100 ? 0 : value;
    const void *from = &i64;
    if (k->dtype == KILN_DTYPE_F32) from = &f32;
    if (k->dtype == KILN_DTYPE_F64) from = &f64;
    memcpy(k->data + (size_t)i * size, from, size);
  }
}

static void add_element(const kernel *k, char *to, const char *from) {
  if (k->form != REDUCED) {
    memcpy(to, from, (size_t)kiln_loop_size(k->dtype));
    if (k->dtype == KILN_DTYPE_BOOL) *to = *to != 0;
  } else if (k->dtype == KILN_DTYPE_F32) {
    *(float *)(void *)to += *(const float *)(const void *)from;
  } else {
    *(int32_t *)(void *)to += *(const int32_t *)(const void *)from;
  }
}

static void plain_c(kernel *k) {
  const int64_t size = kiln_loop_size(k->dtype);
  int64_t at[3] = {0};
  k->want = calloc((size_t)k->spans[2], (size_t)size);
  for (;;) {
    int64_t place = 0, from = k->offset, to = 0;
    for (int d = 0; d < k->rank; d++) {
      place += at[d] * k->index_strides[d];
      from += at[d] * k->data_strides[d];
      to += at[d] * k->out_strides[d];
    }
    const int64_t index = k->index[place];
    const bool good = index >= 0 && index < k->limit;
    if (!good) k->fault = 1;
    add_element(k, k->want + to * size, k->data + (from + (good ? index : 0) * k->step) * size);
    int d = k->rank - 1;
    while (d >= 0 && ++at[d] == k->sizes[d]) at[d--] = 0;
    if (d < 0) return;
  }
}

/* `schedule`: of LLVM under a random one. */
static void check(kernel *k, kiln_codegen *codegen, kiln_backend backend, bool schedule) {
  drawn_job d = {.codegen = codegen, .fn = k->fn, .seed = &k->seed, .arena = k->f->arena};
  kiln_reason reason;
  kiln_compiled *code;
  const size_t bytes = (size_t)(k->spans[2] * kiln_loop_size(k->dtype));
  if (schedule) {
    assert_ok(compile_drawn(&d));
    code = d.code;
  } else {
    assert_ok(kiln_codegen_compile(codegen, k->fn, backend, &reason, &code, NULL));
  }
  char *out = malloc(bytes);
  void *data[3] = {k->index, k->data, memset(out, 0x5a, bytes)};
  void *scratch = aligned_alloc(64, code->info.work.scratch_bytes / 64 * 64 + 64);
  uint32_t fault = 0;
  const kiln_kernel_args args = {
      .data = data, .scratch = scratch, .closure = code->closure, .fault = &fault};
  run_in_boxes(&k->seed, code, &args, code->info.work.grid, 0);
  if (fault != k->fault || memcmp(out, k->want, bytes) != 0) {
    kiln_str text = kiln_loop_print(k->fn, k->f->arena);
    const char *who = schedule ? d.text.data : backend == KILN_BACKEND_LLVM ? "llvm" : "eval";
    fail_msg("%s: fault %u, not %u, or other elements\n" KILN_STR_FMT, who, fault, k->fault,
             KILN_STR_ARG(text));
  }
  if (backend == KILN_BACKEND_EVAL) {
    char *const all[3] = {(char *)k->index, k->data, out};
    write_gpu_case(
        &(gpu_case){
            .codegen = codegen, .fn = k->fn, .data = all, .spans = k->spans, .fault = &fault},
        k->f->arena);
  }
  free(scratch);
  free(out);
  kiln_compiled_release(code);
}

static void random_kernels(kiln_isa isa, uint64_t seed, int count) {
  fixture f;
  fixture_open(&f);
  f.env->isa = isa;
  kiln_codegen *codegen;
  assert_ok(kiln_codegen_create(f.env, &codegen));
  for (int n = 0; n < count; n++) {
    kernel k = {.f = &f, .seed = random_seed(seed) + (uint64_t)n * 7919};
    random_next(&k.seed);
    make_kernel(&k);
    fill(&k);
    plain_c(&k);
    check(&k, codegen, KILN_BACKEND_EVAL, false);
    for (int drawn = 0; drawn < 2 && llvm_compiles(n); drawn++)
      check(&k, codegen, KILN_BACKEND_LLVM, drawn);
    free(k.index);
    free(k.data);
    free(k.want);
    kiln_arena_reset(f.arena);
  }
  kiln_codegen_destroy(codegen);
  fixture_close(&f);
}

static void test_isa(kiln_isa isa, uint64_t seed) {
  if ((int)isa >= isa_count()) skip();
  random_kernels(isa, seed, gpu_case_count(250));
}
static void test_v2(void **unused) {
  (void)unused;
  test_isa(KILN_ISA_V2, 0x9e3779b97f4a7c15u);
}
static void test_avx2(void **unused) {
  (void)unused;
  test_isa(KILN_ISA_AVX2, 0xbf58476d1ce4e5b9u);
}
static void test_avx512(void **unused) {
  (void)unused;
  test_isa(KILN_ISA_AVX512, 0x94d049bb133111ebu);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text),   cmocka_unit_test(test_refusals), cmocka_unit_test(test_passes),
      cmocka_unit_test(test_donors), cmocka_unit_test(test_v2),       cmocka_unit_test(test_avx2),
      cmocka_unit_test(test_avx512),
  };
  filter_gpu_cases();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
