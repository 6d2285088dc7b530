/* ptx_test.c: PTX of every opcode with every type, and of every kind of kernel: what its text says,
 * and, with write_gpu_case, cases for test/ptx.py, which assembles and runs it. */
#include "codegen_support.h"

enum { COUNT = 37, ROWS = 3, MOST_TENSORS = 64, MOST_BYTES = 1 << 16 };

typedef struct kernel {
  fixture f;
  kiln_codegen *codegen;
  kiln_loop_fn *fn;
  int64_t spans[MOST_TENSORS];
  char *data[MOST_TENSORS];
  const kiln_kernel_scalar *scalars;
  const int64_t *symbols;
} kernel;

static void open_kernel(kernel *k, const char *gpu) {
  *k = (kernel){0};
  fixture_open(&k->f);
  assert_ok(kiln_flags_set(&k->f.env->flags, "ptx", gpu));
  assert_ok(kiln_codegen_create(k->f.env, &k->codegen));
}
static void close_kernel(kernel *k) {
  for (int i = 0; i < MOST_TENSORS; i++) free(k->data[i]);
  kiln_codegen_destroy(k->codegen);
  fixture_close(&k->f);
}

/* -- Text -- */

static int count_of(kiln_str text, const char *word) {
  int count = 0;
  for (const char *p = text.data; (p = strstr(p, word)); p += strlen(word)) count++;
  return count;
}

/* What is called is defined in the same text. */
static void check_calls(kiln_str ptx) {
  for (const char *p = ptx.data; (p = strstr(p, "\tcall")); p++) {
    char name[128], function[160];
    const char *at = p + strcspn(p, ";"), *begin = p;
    for (const char *q = p; q < at; q++)
      if (strncmp(q, "kiln", 4) == 0) begin = q;
    assert_true(begin > p);
    snprintf(name, sizeof name, "%.*s", (int)strspn(begin, "abcdefghijklmnopqrstuvwxyz_0123456789"),
             begin);
    snprintf(function, sizeof function, " %s(\n", name);
    assert_int_equal(count_of(ptx, function), 1);
  }
  assert_int_equal(count_of(ptx, ".extern"), 0);
}

/* Its entry's name, target and parameters: tensors, scalars, symbols, scratch. */
static void check_text(kernel *k, const char *gpu, int scratch) {
  char hex[33], line[256];
  kiln_str ptx;
  assert_ok(kiln_codegen_dump(k->codegen, k->fn, KILN_STAGE_PTX, k->f.arena, &ptx));
  const kiln_str text = kiln_loop_print(k->fn, k->f.arena);
  ptx = kiln_arena_str(k->f.arena, ptx);
  kiln_digest_format(kiln_digest_bytes(text.data, text.len), hex);
  snprintf(line, sizeof line, ".visible .entry " KILN_GPU_SYMBOL "%s(", hex);
  if (count_of(ptx, line) != 1 || count_of(ptx, ".entry") != 1)
    fail_msg("no %s in\n" KILN_STR_FMT, line, KILN_STR_ARG(ptx));
  snprintf(line, sizeof line, ".target %s\n", gpu);
  assert_int_equal(count_of(ptx, line), 1);
  int doubles = 0;
  for (int i = 0; i < k->fn->scalars.count; i++)
    doubles += k->fn->scalars.data[i] == KILN_DTYPE_F64;
  const int all = k->fn->input_count + k->fn->output_count + k->fn->scalars.count +
                  kiln_loop_symbol_count(k->fn) + scratch;
  snprintf(line, sizeof line, ".param .u64 " KILN_GPU_SYMBOL "%s_param_", hex);
  assert_int_equal(count_of(ptx, line), all - doubles);
  snprintf(line, sizeof line, ".param .f64 " KILN_GPU_SYMBOL "%s_param_", hex);
  assert_int_equal(count_of(ptx, line), doubles);
  assert_true(count_of(ptx, "ld.global") > 0 || k->fn->input_count == 0);
  assert_true(count_of(ptx, "st.global") > 0);
  check_calls(ptx);
}

/* -- Cases -- */

static void fill_input(kernel *k, int i, uint64_t *seed) {
  static const double special[] = {0.0,    -0.0,    INFINITY, -INFINITY, NAN,      1e30,
                                   -1e-30, 2.5,     -2.5,     0x1p31,    -0x1p31,  1e10,
                                   0x1p63, -0x1p63, 0x1.8p52, 3e5,       0x1p-140, -2147483648.5};
  enum { SPECIAL = sizeof special / sizeof *special };
  const kiln_dtype dtype = k->fn->buffers.data[i].dtype;
  for (int64_t n = 0; n < k->spans[i]; n++) {
    const double x = n < SPECIAL ? special[(n + i) % SPECIAL] : random_below(seed, 8000) / 1e3 - 4;
    const uint64_t bits = random_next(seed) >> random_below(seed, 60);
    switch (dtype) {
      case KILN_DTYPE_F32: ((float *)(void *)k->data[i])[n] = (float)x; break;
      case KILN_DTYPE_F64: ((double *)(void *)k->data[i])[n] = x; break;
      case KILN_DTYPE_BOOL: k->data[i][n] = (char)(bits & 1); break;
      default: memcpy(k->data[i] + n * kiln_loop_size(dtype), &bits, (size_t)kiln_loop_size(dtype));
    }
  }
}

static int64_t worth(const kernel *k, kiln_dim d) {
  if (kiln_dim_is_number(d)) return d;
  kiln_dim_program *p = kiln_dim_program_create(k->f.arena, k->fn->dims, &d, 1);
  int64_t room[16], value;
  assert_true(kiln_dim_program_room(p) <= 16);
  assert_true(kiln_dim_program_run(p, k->symbols, room, &value));
  return value;
}

/* What the evaluator makes of it, for test/ptx.py. */
static void write_case(kernel *k) {
  uint64_t seed = 88172645463325252u;
  kiln_reason reason;
  kiln_compiled *eval;
  const int tensors = k->fn->input_count + k->fn->output_count;
  if (isa_count() <= KILN_ISA_AVX2) return; /* a GPU has its bits */
  k->f.env->isa = KILN_ISA_AVX2;
  for (int i = 0; i < tensors; i++) {
    const kiln_loop_buffer *b = &k->fn->buffers.data[i];
    k->spans[i] = 1;
    for (int d = 0; d < b->rank; d++)
      k->spans[i] += (worth(k, b->sizes[d]) - 1) * worth(k, b->strides[d]);
    free(k->data[i]);
    const size_t bytes = (size_t)k->spans[i] * (size_t)kiln_loop_size(b->dtype);
    k->data[i] = memset(malloc(bytes), 0xa5, bytes); /* as there: not all may be written */
    if (i < k->fn->input_count) fill_input(k, i, &seed);
  }
  assert_ok(kiln_codegen_compile(k->codegen, k->fn, KILN_BACKEND_EVAL, &reason, &eval, NULL));
  kiln_kernel_work work = eval->info.work;
  if (eval->info.shape) assert_true(kiln_kernel_shape_work(eval->info.shape, k->symbols, &work));
  void *scratch = aligned_alloc(64, work.scratch_bytes / 64 * 64 + 64);
  const kiln_kernel_args args = {.data = (void *const *)k->data,
                                 .scalars = k->scalars,
                                 .symbols = k->symbols,
                                 .scratch = scratch,
                                 .closure = eval->closure};
  eval->fn(&args, &work.grid);
  free(scratch);
  kiln_compiled_release(eval);
  write_gpu_case(&(gpu_case){k->codegen, k->fn, k->data, k->spans, k->scalars, k->symbols, NULL},
                 k->f.arena);
}

/* -- Every opcode -- */

static const kiln_dtype dtypes[] = {KILN_DTYPE_F32, KILN_DTYPE_F64, KILN_DTYPE_U8,  KILN_DTYPE_I8,
                                    KILN_DTYPE_I16, KILN_DTYPE_I32, KILN_DTYPE_I64, KILN_DTYPE_BOOL,
                                    KILN_DTYPE_F16, KILN_DTYPE_BF16};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* The values of one opcode in a nest of rows, whose body walks a row: an output for each, in the
 * order of `kinds`. Outputs are added behind all inputs, hence in two turns. */
static int value_of(kernel *k, kiln_loop_nest *nest, kiln_loop_opcode op, const int *inputs,
                    kiln_dtype to) {
  static const int64_t along[] = {COUNT, 1};
  int args[3] = {-1, -1, -1}, mask;
  for (int a = 0; a < 2; a++) args[a] = kiln_loop_load(k->fn, nest, inputs[a], 0, along);
  switch (kiln_loop_ops[op].rule) {
    case KILN_LOOP_RULE_CAST: return kiln_loop_cast(k->fn, nest, args[0], to);
    case KILN_LOOP_RULE_SELECT:
      mask = kiln_loop_load(k->fn, nest, inputs[2], 0, along);
      return kiln_loop_op(k->fn, nest, op, mask, args[0], args[1]);
    case KILN_LOOP_RULE_REDUCE:
    case KILN_LOOP_RULE_FIND: return kiln_loop_reduce(k->fn, nest, op, args[0], args[1], 1);
    default: return kiln_loop_op(k->fn, nest, op, args[0], args[1], -1);
  }
}

static kiln_dtype result_of(kiln_loop_opcode op, kiln_dtype dtype, kiln_dtype to) {
  switch (kiln_loop_ops[op].rule) {
    case KILN_LOOP_RULE_CAST: return to;
    case KILN_LOOP_RULE_COMPARE: return KILN_DTYPE_BOOL;
    case KILN_LOOP_RULE_FIND: return KILN_DTYPE_I64;
    default: return dtype;
  }
}

/* Of casts those to `to`. Gives how many types it has. */
static int add_op(kernel *k, kiln_loop_opcode op, kiln_dtype to) {
  static const int64_t sizes[] = {ROWS, COUNT}, strides[] = {COUNT, 1}, one[] = {1, 0};
  const bool reduces = kiln_loop_reduces(op), casts = op == KILN_LOOP_cast;
  int inputs[DTYPES][3], count = 0;
  k->fn = kiln_loop_create(k->f.arena);
  for (int t = 0; t < DTYPES; t++) {
    const int class = kiln_loop_class(dtypes[t]);
    if (!(kiln_loop_ops[op].classes & class) || (casts && dtypes[t] == to)) continue;
    if (!casts && class == KILN_LOOP_CLASS_H) continue; /* storage only */
    for (int a = 0; a < 2; a++)
      inputs[t][a] = kiln_loop_add_input(k->fn, dtypes[t], 2, sizes, strides);
    inputs[t][2] = kiln_loop_add_input(k->fn, KILN_DTYPE_BOOL, 2, sizes, strides);
  }
  int inputs_end = k->fn->buffers.count, next = 0;
  for (int t = 0; t < DTYPES; t++) {
    const int class = kiln_loop_class(dtypes[t]);
    if (!(kiln_loop_ops[op].classes & class) || (casts && dtypes[t] == to)) continue;
    if (!casts && class == KILN_LOOP_CLASS_H) continue;
    const kiln_dtype result = result_of(op, dtypes[t], to);
    const int out =
        kiln_loop_add_output(k->fn, result, reduces ? 1 : 2, sizes, reduces ? one : strides);
    assert_int_equal(out, inputs_end + next++);
    kiln_loop_nest *nest = kiln_loop_add_nest(k->fn, 1, sizes);
    const kiln_loop_opcode plain = kiln_loop_carries(op) ? KILN_LOOP_scan : KILN_LOOP_for;
    kiln_loop_open(k->fn, nest, reduces ? KILN_LOOP_reduce : plain, COUNT);
    const int value = value_of(k, nest, op, inputs[t], to);
    if (reduces) kiln_loop_end(k->fn, nest);
    kiln_loop_store(k->fn, nest, out, 0, reduces ? one : strides, value);
    if (!reduces) kiln_loop_end(k->fn, nest);
    count++;
  }
  return count;
}

typedef struct op_job {
  kernel *k;
  kiln_loop_opcode op;
  kiln_dtype to;
  int count;
} op_job;
static kiln_status *add_body(op_job *job) {
  job->count = add_op(job->k, job->op, job->to);
  return job->count ? kiln_loop_verify(job->k->fn) : NULL;
}

static int check_op(const char *gpu, kiln_loop_opcode op, kiln_dtype to) {
  kernel k;
  open_kernel(&k, gpu);
  op_job job = {.k = &k, .op = op, .to = to};
  assert_ok(add_body(&job));
  if (job.count) check_text(&k, gpu, 0);
  if (job.count) write_case(&k);
  close_kernel(&k);
  return job.count;
}

static void test_opcodes(void **unused) {
  (void)unused;
  for (int op = KILN_LOOP_select; op < KILN_LOOP__COUNT; op++) {
    const kiln_loop_rule rule = kiln_loop_ops[op].rule;
    if (rule == KILN_LOOP_RULE_OPEN || rule == KILN_LOOP_RULE_END) continue;
    assert_true(check_op(op % 2 ? "sm_80" : "sm_90", (kiln_loop_opcode)op, KILN_DTYPE_F32) > 0);
  }
  for (int to = 0; to < DTYPES; to++)
    assert_int_equal(check_op("sm_80", KILN_LOOP_cast, dtypes[to]), DTYPES - 1);
}

/* -- Every kind of kernel -- */

static void check_kernel(const char *text, int scratch, const kiln_kernel_scalar *scalars,
                         const int64_t *symbols) {
  static const char *const gpus[] = {"sm_80", "sm_90"};
  for (int g = 0; g < 2; g++) {
    kernel k;
    open_kernel(&k, gpus[g]);
    k.scalars = scalars;
    k.symbols = symbols;
    k.fn = parse_loop(&k.f, text, false, NULL);
    check_text(&k, gpus[g], scratch);
    write_case(&k);
    close_kernel(&k);
  }
}

/* Nests of several ranks, one of which has one iteration; scalars and dimensions as values. */
static void test_nests(void **unused) {
  (void)unused;
  static const kiln_kernel_scalar scalars[] = {{.f = 1.75}, {.i = -3}, {.i = 1}};
  static const int64_t symbols[] = {5, 3};
  check_kernel("kernel { in b0: f32[4, 5, 7] [1, 28, 4] in b1: f64[3] [0]\n"
               "out b2: f32[4, 5, 7] [35, 7, 1] out b3: f64[] [] out b4: i64[6] [2]\n"
               "scalar x0: f64 scalar x1: i64 scalar x2: bool\n"
               "nest [4, 5, 7] { %0 = load f32 b0 + 0 [1, 28, 4] %1 = scalar f64 x0\n"
               "  %2 = cast f32 %1 %3 = mul f32 %0, %2 store f32 b2 + 0 [35, 7, 1], %3 }\n"
               "nest [] { %0 = load f64 b1 + 0 [] %1 = scalar bool x2 %2 = const f64 9\n"
               "  %3 = select f64 %1, %0, %2 store f64 b3 + 0 [], %3 }\n"
               "nest [6] { %0 = scalar i64 x1 store i64 b4 + 0 [2], %0 } }",
               0, scalars, NULL);
  check_kernel("kernel { in b0: f32[s0, s1 + 2] [s1 + 2, 1] out b1: f32[s0, s1 + 2] [1, s0]\n"
               "out b2: i64[2*s0] [1]\n"
               "nest [s0, s1 + 2] { %0 = load f32 b0 + 0 [s1 + 2, 1] %1 = sin f32 %0\n"
               "  store f32 b1 + 0 [1, s0], %1 }\n"
               "nest [2*s0] { %0 = dim i64 s0*s1 store i64 b2 + 0 [1], %0 } }",
               0, NULL, symbols);
}

/* Local buffers in the thread's own memory, and those that are too large for it or symbolic. */
static const char *const softmax =
    "kernel { in b0: f32[4, %s] [%s, 1] out b1: f32[4, %s] [%s, 1] local b2: f32[%s] [1]\n"
    "nest [4] { reduce %s { %%1 = load f32 b0 + 0 [%s, 1] %%2 = amax f32 %%1 over 1 }\n"
    "reduce %s { %%5 = load f32 b0 + 0 [%s, 1] %%6 = sub f32 %%5, %%2 %%7 = exp f32 %%6\n"
    "  store f32 b2 + 0 [0, 1], %%7 %%9 = sum f32 %%7 over 1 }\n"
    "for %s { %%12 = load f32 b2 + 0 [0, 1] %%13 = div f32 %%12, %%9\n"
    "  store f32 b1 + 0 [%s, 1], %%13 } } }";

static void check_softmax(const char *size, int scratch, const int64_t *symbols) {
  char text[2048];
  const char *s = size;
  snprintf(text, sizeof text, softmax, s, s, s, s, s, s, s, s, s, s, s);
  check_kernel(text, scratch, NULL, symbols);
}

static void test_local(void **unused) {
  (void)unused;
  static const int64_t symbols[] = {130};
  check_softmax("100", 0, NULL);
  check_softmax("1024", 0, NULL);
  check_softmax("1025", 1, NULL);
  check_softmax("s0", 1, symbols);
}

/* Loops in loops: rows and what comes of them, places, products. */
static void test_loops(void **unused) {
  (void)unused;
  static const int64_t symbols[] = {70, 9};
  check_kernel(
      "kernel { in b0: f32[2, s0, s1] [s0*s1, s1, 1] out b1: f32[2] [1] out b2: i64[2] [1]\n"
      "out b3: f32[2] [1]\n"
      "nest [2] { reduce s0 { reduce s1 { %2 = load f32 b0 + 0 [s0*s1, s1, 1]\n"
      "  %3 = amax f32 %2 over 1 %4 = argmin i64 %2 over 2 %5 = dot f32 %2, %2 over 2 }\n"
      "  %7 = sum f32 %3 over 1 }\n"
      "store f32 b1 + 0 [1], %7 store i64 b2 + 0 [1], %4 store f32 b3 + 0 [1], %5 } }",
      0, NULL, symbols);
}

/* -- What a GPU has not -- */

static void check_refused(const char *text, const char *word) {
  kernel k;
  kiln_str ptx;
  open_kernel(&k, "sm_80");
  k.fn = parse_loop(&k.f, text, false, NULL);
  assert_error(kiln_codegen_dump(k.codegen, k.fn, KILN_STAGE_PTX, k.f.arena, &ptx),
               KILN_UNSUPPORTED, word);
  close_kernel(&k);
}

static void test_refusals(void **unused) {
  (void)unused;
  static char text[MOST_BYTES];
  int len = snprintf(text, sizeof text, "kernel {");
  for (int i = 0; i < KILN_GPU_PARAMETERS; i++)
    len += snprintf(text + len, sizeof text - (size_t)len, " in b%d: f32[] []\n", i);
  snprintf(text + len, sizeof text - (size_t)len,
           "out b%d: f32[] [] nest [] { %%0 = load f32 b0 + 0 [] store f32 b%d + 0 [], %%0 } }",
           KILN_GPU_PARAMETERS, KILN_GPU_PARAMETERS);
  check_refused(text, "545 parameters");
  len = snprintf(text, sizeof text,
                 "kernel { in b0: f64[8] [1] out b1: f64[] [] nest [] { reduce 8 {\n"
                 "%%1 = load f64 b0 + 0 [1]\n");
  enum { REDUCTIONS = KILN_GPU_STACK_BYTES / (8 * KILN_REDUCE_LANES) + 1 };
  for (int i = 0; i < REDUCTIONS; i++)
    len += snprintf(text + len, sizeof text - (size_t)len, "%%%d = prod f64 %%1 over 1\n", i + 2);
  snprintf(text + len, sizeof text - (size_t)len,
           "%%%d = sum f64 %%1 over 1 } store f64 b1 + 0 [], %%%d } }", REDUCTIONS + 2,
           REDUCTIONS + 2);
  check_refused(text, "bytes of a thread");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_opcodes), cmocka_unit_test(test_nests),
                                     cmocka_unit_test(test_local), cmocka_unit_test(test_loops),
                                     cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
