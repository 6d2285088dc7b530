/* kernel_test.c: random kernels on every back end and instruction set.
 *
 * The evaluator and LLVM, under the schedule that rules choose and a random one, must agree to the
 * bit. Both are checked against plain C written here,
 * which computes one element at a time: exactly where the arithmetic is exact, within 4 ulp of the
 * C library where a function of runtime/math is used. Seeds are fixed. */
#include <math.h>

#include "schedule_support.h"
#include "test/unit/codegen/plain.h"

enum { MAX_ELEMENTS = 4096, INPUTS = 3, MAX_BODY = 24 };

typedef plain_element element;

/* -- Random kernels: one operation after a few loads, so that plain C can follow -- */

static const kiln_dtype dtypes[] = {KILN_DTYPE_F32, KILN_DTYPE_F64, KILN_DTYPE_U8,
                                    KILN_DTYPE_I8,  KILN_DTYPE_I16, KILN_DTYPE_I32,
                                    KILN_DTYPE_I64, KILN_DTYPE_BOOL};
static const kiln_loop_opcode float_ops[] = {
    KILN_LOOP_add,  KILN_LOOP_sub,     KILN_LOOP_mul,   KILN_LOOP_div,      KILN_LOOP_neg,
    KILN_LOOP_abs,  KILN_LOOP_min,     KILN_LOOP_max,   KILN_LOOP_sqrt,     KILN_LOOP_floor,
    KILN_LOOP_ceil, KILN_LOOP_round,   KILN_LOOP_trunc, KILN_LOOP_copysign, KILN_LOOP_exp,
    KILN_LOOP_tanh, KILN_LOOP_sigmoid, KILN_LOOP_log1p, KILN_LOOP_sin,      KILN_LOOP_erf,
    KILN_LOOP_pow};
static const kiln_loop_opcode int_ops[] = {
    KILN_LOOP_add, KILN_LOOP_sub, KILN_LOOP_mul, KILN_LOOP_neg, KILN_LOOP_abs, KILN_LOOP_min,
    KILN_LOOP_max, KILN_LOOP_and, KILN_LOOP_or,  KILN_LOOP_xor, KILN_LOOP_not, KILN_LOOP_quot};
static const kiln_loop_opcode bool_ops[] = {KILN_LOOP_and, KILN_LOOP_or, KILN_LOOP_xor,
                                            KILN_LOOP_not};
static const kiln_loop_opcode compare_ops[] = {KILN_LOOP_eq, KILN_LOOP_ne, KILN_LOOP_lt,
                                               KILN_LOOP_le, KILN_LOOP_gt, KILN_LOOP_ge};
#define PICK(seed, array) (array)[random_below(seed, (int)(sizeof(array) / sizeof *(array)))]

typedef struct kernel {
  fixture *f;
  uint64_t seed;
  kiln_loop_fn *fn;
  int64_t spans[8];           /* elements of each buffer */
  char *data[8], *results[8]; /* inputs; outputs of the run at work */
} kernel;

/* Sizes that make whole and partial vectors, rows and columns; strides with gaps, broadcasts,
 * transposition. */
static void random_shape(uint64_t *seed, int *rank, int64_t *sizes) {
  static const int64_t choices[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100};
  *rank = random_below(seed, 5);
  int64_t total = 1;
  for (int d = 0; d < *rank; d++) {
    sizes[d] = PICK(seed, choices);
    if (total * sizes[d] > MAX_ELEMENTS / 4) sizes[d] = 1;
    total *= sizes[d];
  }
}
static int64_t random_strides(uint64_t *seed, int rank, const int64_t *sizes, bool is_output,
                              int64_t *strides) {
  int64_t next = is_output ? 1 : 1 + random_below(seed, 2), span = 1;
  bool swap = rank >= 2 && random_below(seed, 4) == 0;
  for (int k = 0; k < rank; k++) {
    int d = swap ? k : rank - 1 - k;
    bool broadcast = !is_output && random_below(seed, 4) == 0;
    strides[d] = broadcast ? 0 : next;
    if (!broadcast) {
      span += (sizes[d] - 1) * next;
      next *= sizes[d] + (is_output ? 0 : random_below(seed, 2));
    }
  }
  return span;
}

static int random_value(kernel *k, kiln_loop_nest *nest, kiln_dtype dtype) {
  int candidates[MAX_BODY], count = 0;
  for (int i = 0; i < nest->body.count; i++)
    if (nest->body.data[i].dtype == dtype) candidates[count++] = i;
  return count && random_below(&k->seed, 8)
             ? candidates[random_below(&k->seed, count)]
             : kiln_loop_const(k->fn, nest, dtype, random_below(&k->seed, 7) - 3);
}

/* A value, but for NaN, whose sign is not promised (docs/numerics.md): 1. */
static int with_sign(kernel *k, kiln_loop_nest *nest, kiln_dtype dtype, int value) {
  const int is_number = kiln_loop_op(k->fn, nest, KILN_LOOP_eq, value, value, -1);
  const int one = kiln_loop_const(k->fn, nest, dtype, 1);
  return kiln_loop_op(k->fn, nest, KILN_LOOP_select, is_number, value, one);
}

static kiln_status *make_kernel(kernel *k) {
  uint64_t *seed = &k->seed;
  int rank, value = -1;
  int64_t sizes[4], strides[INPUTS][4], out_strides[4];
  k->fn = kiln_loop_create(k->f->arena);
  random_shape(seed, &rank, sizes);
  for (int i = 0; i < INPUTS; i++) {
    k->spans[i] = random_strides(seed, rank, sizes, false, strides[i]);
    kiln_loop_add_input(k->fn, PICK(seed, dtypes), rank, sizes, strides[i]);
  }
  k->spans[INPUTS] = random_strides(seed, rank, sizes, true, out_strides);
  kiln_dtype out_dtype = PICK(seed, dtypes);
  kiln_loop_add_output(k->fn, out_dtype, rank, sizes, out_strides);
  kiln_loop_add_scalar(k->fn, KILN_DTYPE_F64);
  kiln_loop_add_scalar(k->fn, KILN_DTYPE_I64);
  kiln_loop_nest *nest = kiln_loop_add_nest(k->fn, rank, sizes);
  for (int i = 0; i < INPUTS; i++) kiln_loop_load(k->fn, nest, i, 0, strides[i]);
  kiln_loop_scalar(k->fn, nest, random_below(seed, 2));
  while (nest->body.count < MAX_BODY / 2) {
    kiln_dtype dtype = nest->body.data[random_below(seed, nest->body.count)].dtype;
    int class = kiln_loop_class(dtype), kind = random_below(seed, 8);
    int a = random_value(k, nest, dtype), b = random_value(k, nest, dtype);
    if (kind == 0) {
      value = kiln_loop_op(k->fn, nest, PICK(seed, compare_ops), a, b, -1);
    } else if (kind == 1) {
      int mask = random_value(k, nest, KILN_DTYPE_BOOL);
      value = kiln_loop_op(k->fn, nest, KILN_LOOP_select, mask, a, b);
    } else if (kind == 2) {
      kiln_dtype to = PICK(seed, dtypes);
      bool narrows = class == KILN_LOOP_CLASS_F && kiln_loop_class(to) == KILN_LOOP_CLASS_I;
      if (!narrows) value = kiln_loop_cast(k->fn, nest, a, to);
    } else {
      kiln_loop_opcode op = class == KILN_LOOP_CLASS_F   ? PICK(seed, float_ops)
                            : class == KILN_LOOP_CLASS_I ? PICK(seed, int_ops)
                                                         : PICK(seed, bool_ops);
      if (op == KILN_LOOP_copysign) b = with_sign(k, nest, dtype, b);
      value = kiln_loop_op(k->fn, nest, op, a, b, -1);
    }
  }
  if (kiln_loop_class(nest->body.data[value].dtype) == KILN_LOOP_CLASS_F &&
      kiln_loop_class(out_dtype) == KILN_LOOP_CLASS_I)
    value = kiln_loop_op(k->fn, nest, KILN_LOOP_lt, value,
                         kiln_loop_const(k->fn, nest, nest->body.data[value].dtype, 1), -1);
  value = kiln_loop_cast(k->fn, nest, value, out_dtype);
  kiln_loop_store(k->fn, nest, INPUTS, 0, out_strides, value);
  KILN_TRY(kiln_loop_verify(k->fn));
  KILN_TRY(kiln_loop_optimize(k->fn, k->f->arena));
  return kiln_loop_verify(k->fn);
}

static void fill_input(kernel *k, int i) {
  kiln_dtype dtype = k->fn->buffers.data[i].dtype;
  for (int64_t n = 0; n < k->spans[i]; n++) {
    int r = random_below(&k->seed, 4000) - 2000;
    static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e30, -1e-30, 0x1p-140};
    double d = random_below(&k->seed, 20) == 0 ? PICK(&k->seed, special) : r / 250.0;
    switch (dtype) {
      case KILN_DTYPE_F32: ((float *)k->data[i])[n] = (float)d; break;
      case KILN_DTYPE_F64: ((double *)k->data[i])[n] = d; break;
      case KILN_DTYPE_I16: ((int16_t *)k->data[i])[n] = (int16_t)(r * 17); break;
      case KILN_DTYPE_I32: ((int32_t *)k->data[i])[n] = r * 1000003; break;
      case KILN_DTYPE_I64: ((int64_t *)k->data[i])[n] = (int64_t)random_next(&k->seed) >> 20; break;
      case KILN_DTYPE_BOOL: k->data[i][n] = r & 1; break;
      default: k->data[i][n] = (char)r; break;
    }
  }
}

/* -- Plain C over a whole kernel -- */

static element load_element(kiln_dtype dtype, const char *data, int64_t at) {
  element e = {.i = 0};
  switch (dtype) {
    case KILN_DTYPE_F32: e.f = (double)((const float *)data)[at]; break;
    case KILN_DTYPE_F64: e.f = ((const double *)data)[at]; break;
    case KILN_DTYPE_U8:
    case KILN_DTYPE_BOOL: e.i = ((const uint8_t *)data)[at]; break;
    case KILN_DTYPE_I8: e.i = ((const int8_t *)data)[at]; break;
    case KILN_DTYPE_I16: e.i = ((const int16_t *)data)[at]; break;
    case KILN_DTYPE_I32: e.i = ((const int32_t *)data)[at]; break;
    default: e.i = ((const int64_t *)data)[at]; break;
  }
  return e;
}

/* Values of one point; *exact is cleared when a function is used whose last bits are free. */
static element plain_c(const kernel *k, const kiln_loop_nest *nest, const int64_t *counters,
                       const kiln_kernel_scalar *scalars, bool *exact) {
  element values[MAX_BODY * 2];
  for (int i = 0; i < nest->body.count; i++) {
    const kiln_loop_inst *inst = &nest->body.data[i];
    const int arity = kiln_loop_ops[inst->op].arity;
    element args[3] = {{.i = 0}, {.i = 0}, {.i = 0}}, *r = &values[i];
    for (int n = 0; n < arity; n++) args[n] = values[inst->args[n]];
    int64_t at = inst->offset;
    for (int d = 0; d < nest->rank; d++) at += counters[d] * inst->strides[d];
    if (inst->op == KILN_LOOP_load) {
      *r = load_element(inst->dtype, k->data[inst->index], at);
    } else if (inst->op == KILN_LOOP_scalar) {
      r->i = scalars[inst->index].i;
    } else if (inst->op == KILN_LOOP_store) {
      return args[0];
    } else {
      const kiln_dtype from = arity ? nest->body.data[inst->args[0]].dtype : KILN_DTYPE_NONE;
      if (inst->op >= KILN_LOOP_exp) *exact = false;
      *r = plain_inst(inst, from, args[0], args[1], args[2]);
    }
  }
  fail();
  return values[0];
}

static bool has_math(const kiln_loop_fn *fn) {
  for (int i = 0; i < fn->nests.data[0]->body.count; i++)
    if (fn->nests.data[0]->body.data[i].op >= KILN_LOOP_exp) return true;
  return false;
}

/* Only kernels without functions: their error would go through what follows. */
static void check_plain_c(const kernel *k, const char *got, const kiln_kernel_scalar *scalars) {
  const kiln_loop_nest *nest = k->fn->nests.data[0];
  const kiln_loop_inst *store = &nest->body.data[nest->body.count - 1];
  int64_t counters[KILN_LOOP_MAX_RANK] = {0};
  for (;;) {
    bool exact = true;
    element want = plain_c(k, nest, counters, scalars, &exact);
    int64_t at = store->offset;
    for (int d = 0; d < nest->rank; d++) at += counters[d] * store->strides[d];
    element have = load_element(store->dtype, got, at);
    bool same = plain_is_float(store->dtype)
                    ? (isnan(want.f) ? isnan(have.f) : memcmp(&want, &have, 8) == 0)
                    : want.i == have.i;
    if (exact && !same) {
      kiln_str text = kiln_loop_print(k->fn, k->f->arena);
      fail_msg("element %lld: %g %lld, not %g %lld\n" KILN_STR_FMT, (long long)at, have.f,
               (long long)have.i, want.f, (long long)want.i, KILN_STR_ARG(text));
    }
    int d = nest->rank - 1;
    while (d >= 0 && ++counters[d] == nest->extents[d]) counters[d--] = 0;
    if (d < 0) return;
  }
}

/* -- Running -- */

/* Runs in two ranges cut at random, into a buffer with a guard pattern around what is written. */
/* The box, cut in two along each axis from `axis` on. */
static void run_boxes(kernel *k, const kiln_compiled *code, const kiln_kernel_args *args,
                      kiln_kernel_box box, int axis) {
  /* One of extent 1 may be none of the kernel's, which then does not look at it. */
  while (axis < KILN_KERNEL_AXES && box.end[axis] == 1) axis++;
  if (axis == KILN_KERNEL_AXES) {
    code->fn(args, &box);
    return;
  }
  kiln_kernel_box below = box, above = box;
  const int64_t cut = (int64_t)(random_next(&k->seed) % (uint64_t)(box.end[axis] + 1));
  below.end[axis] = above.begin[axis] = cut;
  run_boxes(k, code, args, below, axis + 1);
  run_boxes(k, code, args, above, axis + 1);
}
static void run_kernel(kernel *k, const kiln_compiled *code, const kiln_kernel_scalar *scalars,
                       char *out) {
  void *data[INPUTS + 1] = {k->data[0], k->data[1], k->data[2], out};
  void *scratch = NULL;
  if (code->info.work.scratch_bytes) {
    scratch = aligned_alloc(64, (code->info.work.scratch_bytes + 63) / 64 * 64);
    assert_non_null(scratch);
  }
  kiln_kernel_args args = {
      .data = data, .scalars = scalars, .scratch = scratch, .closure = code->closure};
  run_boxes(k, code, &args, code->info.work.grid, 0);
  free(scratch);
}

static bool same_bits(kiln_dtype dtype, const char *a, const char *b, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    element x = load_element(dtype, a, i), y = load_element(dtype, b, i);
    if (plain_is_float(dtype) && isnan(x.f) && isnan(y.f)) continue;
    if (memcmp(&x, &y, sizeof x) != 0) return false;
  }
  return true;
}

static void random_kernels(kiln_isa isa, uint64_t seed, int count) {
  fixture f;
  fixture_open(&f);
  f.env->isa = isa;
  kiln_codegen *codegen;
  assert_ok(kiln_codegen_create(f.env, &codegen));
  for (int n = 0; n < count; n++) {
    kernel k = {.f = &f, .seed = random_seed(seed) + (uint64_t)n * 7919};
    kiln_reason reason;
    kiln_compiled *eval, *llvm;
    random_next(&k.seed);
    assert_ok(make_kernel(&k));
    /* Exactly as much memory as may be touched: a sanitizer sees the first byte beyond. */
    for (int i = 0; i <= INPUTS; i++) {
      size_t bytes = (size_t)k.spans[i] * 8;
      if (i < INPUTS)
        bytes = (size_t)k.spans[i] * (size_t)kiln_loop_size(k.fn->buffers.data[i].dtype);
      k.data[i] = malloc(bytes);
      memset(k.data[i], 0x5a, bytes);
      if (i < INPUTS) fill_input(&k, i);
    }
    kiln_kernel_scalar scalars[2] = {{.f = 1.75}, {.i = -3}};
    kiln_dtype out_dtype = k.fn->buffers.data[INPUTS].dtype;
    size_t out_bytes = (size_t)k.spans[INPUTS] * (size_t)kiln_loop_size(out_dtype);
    char *a = malloc(out_bytes), *b = malloc(out_bytes);
    assert_ok(kiln_codegen_compile(codegen, k.fn, KILN_BACKEND_EVAL, &reason, &eval, NULL));
    run_kernel(&k, eval, scalars, a);
    if (llvm_compiles(n)) {
      assert_ok(kiln_codegen_compile(codegen, k.fn, KILN_BACKEND_LLVM, &reason, &llvm, NULL));
      assert_int_equal(reason, KILN_REASON_none);
      run_kernel(&k, llvm, scalars, b);
      kiln_compiled_release(llvm);
      if (!same_bits(out_dtype, a, b, k.spans[INPUTS])) {
        kiln_str text = kiln_loop_print(k.fn, f.arena);
        fail_msg("isa %d, kernel %d: back ends differ\n" KILN_STR_FMT, isa, n, KILN_STR_ARG(text));
      }
      drawn_job d = {.codegen = codegen, .fn = k.fn, .seed = &k.seed, .arena = f.arena};
      assert_ok(compile_drawn(&d));
      run_kernel(&k, d.code, scalars, b);
      kiln_compiled_release(d.code);
      if (!same_bits(out_dtype, a, b, k.spans[INPUTS])) {
        kiln_str text = kiln_loop_print(k.fn, f.arena);
        fail_msg("isa %d, kernel %d differs under a schedule\n" KILN_STR_FMT KILN_STR_FMT, isa, n,
                 KILN_STR_ARG(text), KILN_STR_ARG(d.text));
      }
    }
    if (!has_math(k.fn)) check_plain_c(&k, a, scalars);
    char *const data[] = {k.data[0], k.data[1], k.data[2], a};
    if (isa == KILN_ISA_AVX2)
      write_gpu_case(&(gpu_case){codegen, k.fn, data, k.spans, scalars, NULL, NULL}, f.arena);
    kiln_compiled_release(eval);
    for (int i = 0; i <= INPUTS; i++) free(k.data[i]);
    free(a);
    free(b);
    kiln_arena_reset(f.arena);
  }
  kiln_codegen_destroy(codegen);
  fixture_close(&f);
}

static void test_v2(void **unused) {
  (void)unused;
  random_kernels(KILN_ISA_V2, 1, random_rounds(120));
}
static void test_avx2(void **unused) {
  (void)unused;
  if (isa_count() <= KILN_ISA_AVX2) skip();
  random_kernels(KILN_ISA_AVX2, 1000003, gpu_case_count(120));
}
static void test_avx512(void **unused) {
  (void)unused;
  if (isa_count() <= KILN_ISA_AVX512) skip();
  random_kernels(KILN_ISA_AVX512, 2000003, random_rounds(120));
}

/* -- One thing at a time -- */

/* Every function of runtime/math, f32 and f64, and the halves, on both back ends; schedule: NULL:
 * the rules'. */
static void check_text(fixture *f, kiln_codegen *codegen, const char *text, const char *schedule,
                       const void *in, void *a, void *b, size_t bytes) {
  kiln_reason reason;
  kiln_compiled *code;
  kiln_loop_fn *fn = parse_loop(f, text, true, NULL);
  for (int backend = 0; backend < 2; backend++) {
    if (backend && schedule) {
      kiln_schedule s;
      assert_ok(kiln_schedule_parse(kiln_str_from(schedule), fn, f->arena, &s));
      assert_ok(kiln_codegen_compile_as(codegen, fn, &s, &reason, &code));
    } else {
      assert_ok(kiln_codegen_compile(codegen, fn, backend ? KILN_BACKEND_LLVM : KILN_BACKEND_EVAL,
                                     &reason, &code, NULL));
    }
    void *out = backend ? b : a, *data[2];
    memset(out, 0, bytes);
    memcpy(&data[0], &in, sizeof in);
    data[1] = out;
    void *scratch = aligned_alloc(64, code->info.work.scratch_bytes / 64 * 64 + 64);
    kiln_kernel_args args = {.data = data, .scratch = scratch, .closure = code->closure};
    code->fn(&args, &code->info.work.grid);
    free(scratch);
    kiln_compiled_release(code);
  }
}

/* Nests of four loops and of two, and two nests that store into every second element, in memory
 * that is input and output: boxes that do not overlap add 1 once to each element that has a nest,
 * whichever axes are cut. The second of the two takes the same boxes as the first. */
static void test_boxes(void **unused) {
  (void)unused;
  enum { ELEMENTS = 1300 };
#define ADD(sizes, map)                                                                    \
  "nest " sizes " { %0 = load f32 b0 + " map "\n %1 = const f32 1\n %2 = add f32 %0, %1\n" \
  "store f32 b1 + " map ", %2 }\n"
#define KERNEL(nests) "kernel { in b0: f32[1300] [1] out b1: f32[1300] [1]\n" nests "}"
  static const struct {
    const char *text;
    int64_t extents[3];
    int count;
  } cases[] = {
      {KERNEL(ADD("[4, 5, 6, 8]", "0 [310, 60, 9, 1]") ADD("[2, 9]", "1225 [20, 2]")),
       .extents = {6, 5, 6}, .count = 4 * 5 * 6 * 8 + 2 * 9},
      {KERNEL(ADD("[40, 16]", "0 [32, 2]") ADD("[40, 16]", "1 [32, 2]")
                  ADD("[3, 5]", "1281 [5, 1]")),
       .extents = {40 * 16 + 3 * 5, 1, 1}, .count = 2 * 40 * 16 + 3 * 5},
  };
  for (int i = 0; i < 4; i++) {
    fixture f;
    fixture_open(&f);
    kiln_codegen *codegen;
    kiln_reason reason;
    kiln_compiled *code;
    assert_ok(kiln_codegen_create(f.env, &codegen));
    kiln_loop_fn *fn = parse_loop(&f, cases[i / 2].text, true, NULL);
    assert_ok(kiln_codegen_compile(codegen, fn, i % 2 ? KILN_BACKEND_LLVM : KILN_BACKEND_EVAL,
                                   &reason, &code, NULL));
    assert_memory_equal(code->info.work.grid.end, cases[i / 2].extents,
                        sizeof cases[i / 2].extents);
    float memory[ELEMENTS] = {0}, sum = 0;
    void *scratch = aligned_alloc(64, code->info.work.scratch_bytes / 64 * 64 + 64);
    const kiln_kernel_args args = {
        .data = (void *[]){memory, memory}, .scratch = scratch, .closure = code->closure};
    kernel k = {.seed = 7};
    for (int run = 0; run < 20; run++) run_boxes(&k, code, &args, code->info.work.grid, 0);
    for (int e = 0; e < ELEMENTS; sum += memory[e++])
      assert_true(memory[e] == 0 || memory[e] == 20);
    assert_true(sum == 20 * (float)cases[i / 2].count);
    free(scratch);
    kiln_compiled_release(code);
    kiln_codegen_destroy(codegen);
    fixture_close(&f);
  }
}

/* As few axes as give enough pieces are cut: 2 images of 64 planes, not 2; a row alone where it is.
 */
static void test_cut(void **unused) {
  (void)unused;
  static const struct {
    const char *text;
    int axes;
  } cases[] = {
      {"kernel { in b0: f32[2, 64, 9000] [1152000, 9000, 1] out b1: f32[2, 64, 9000] [576000, "
       "9000, 1]\n"
       "nest [2, 64, 9000] { %0 = load f32 b0 + 0 [1152000, 9000, 1]\n %1 = tanh f32 %0\n"
       "store f32 b1 + 0 [576000, 9000, 1], %1 } }",
       2},
      {"kernel { in b0: f32[90000] [1] out b1: f32[90000] [1] nest [90000] {\n"
       "%0 = load f32 b0 + 0 [1]\n store f32 b1 + 0 [1], %0 } }",
       1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fixture f;
    fixture_open(&f);
    const kiln_kernel_info info = info_of(&f, parse_loop(&f, cases[i].text, false, NULL));
    assert_int_equal(info.work.axes, cases[i].axes);
    assert_in_range(info.work.grain, 1, (uintmax_t)kiln_kernel_range(&info.work) / 8);
    fixture_close(&f);
  }
}

/* Pieces of a range, whatever their lengths, are boxes that hold each point of the grid once, in
 * the order in which one box of all of it would be gone through; few boxes a piece. */
static void test_range(void **unused) {
  (void)unused;
  uint64_t seed = 11;
  for (int round = 0; round < 2000; round++) {
    kiln_kernel_work work = {.axes = 1 + random_below(&seed, 3)};
    for (int axis = 0; axis < KILN_KERNEL_AXES; axis++)
      work.grid.end[axis] = 1 + random_below(&seed, 9);
    const int64_t *extents = work.grid.end, all = kiln_kernel_range(&work);
    int64_t next = 0;
    for (int64_t begin = 0, end; begin < all; begin = end) {
      end = begin + 1 + random_below(&seed, (int)(all - begin));
      int boxes = 0;
      for (int64_t at = begin, count; at < end; at += count, boxes++) {
        kiln_kernel_box b;
        count = kiln_kernel_next_box(&work, at, end, &b);
        assert_true(count > 0);
        for (int64_t i = b.begin[0]; i < b.end[0]; i++)
          for (int64_t j = b.begin[1]; j < b.end[1]; j++)
            for (int64_t l = b.begin[2]; l < b.end[2]; l++)
              assert_true(next++ == (i * extents[1] + j) * extents[2] + l);
      }
      assert_true(boxes <= 2 * work.axes - 1);
    }
    assert_true(next == extents[0] * extents[1] * extents[2]);
  }
}

/* Calls side by side become instructions in turns, but not one that takes the other's result. */
static void test_functions(void **unused) {
  (void)unused;
  static const char *const schedules[] = {NULL, "schedule { nest 0: vector i0 16, unroll i0 1 }"};
  static const struct {
    const char *name, *second;
  } fns[] = {
#define KILN_MATH_FN(name, arity, ulp_f32, ulp_f64) {#name, (arity) == 2 ? ", %1" : ""},
#include "runtime/math/functions.def"
#undef KILN_MATH_FN
  };
  enum { N = 333 };
  static double in[N], a[N], b[N];
  for (int isa = 0; isa < isa_count(); isa++) {
    for (int is_f64 = 0; is_f64 < 2; is_f64++) {
      for (size_t n = 0; n < sizeof fns / sizeof *fns; n++) {
        fixture f;
        fixture_open(&f);
        f.env->isa = (kiln_isa)isa;
        kiln_codegen *codegen;
        assert_ok(kiln_codegen_create(f.env, &codegen));
        char text[512], *t = is_f64 ? "f64" : "f32";
        snprintf(text, sizeof text,
                 "kernel { in b0: %s[333] [1] out b1: %s[333] [1] nest [333] {\n"
                 "%%0 = load %s b0 + 0 [1]\n %%1 = const %s 2.25\n %%2 = %s %s %%0%s\n"
                 "%%3 = %s %s %%2%s\n %%4 = max %s %%2, %%3\n store %s b1 + 0 [1], %%4 } }",
                 t, t, t, t, fns[n].name, t, fns[n].second, fns[n].name, t, fns[n].second, t, t);
        for (int i = 0; i < N; i++) {
          double x = (i - 160) * 0.37 * (i % 7 == 0 ? 1e6 : 1) * (i % 11 == 0 ? 1e-9 : 1);
          if (is_f64)
            in[i] = x;
          else
            ((float *)in)[i] = (float)x;
        }
        for (int k = 0; k < 2; k++) {
          check_text(&f, codegen, text, schedules[k], in, a, b, sizeof a);
          if (!same_bits(is_f64 ? KILN_DTYPE_F64 : KILN_DTYPE_F32, (char *)a, (char *)b, N))
            fail_msg("%s %s, isa %d, schedule %d", fns[n].name, t, isa, k);
        }
        kiln_codegen_destroy(codegen);
        fixture_close(&f);
      }
    }
  }
}

/* Panels of every width, whose elements lie across: they go through the body as vectors of any
 * number of lanes, and a function takes as many calls as hold those (13 of f64 under AVX2: 8, 4 and
 * 1). */
static void test_widths(void **unused) {
  (void)unused;
  enum { ROWS = 3, MOST = 64, N = ROWS * (MOST + 1) };
  static const struct {
    const char *dtype, *body;
    kiln_dtype id;
  } kinds[] = {
      {"f32", "%1 = tanh f32 %0\n %2 = pow f32 %1, %0\n %3 = add f32 %2, %0\n", KILN_DTYPE_F32},
      {"f64", "%1 = tanh f64 %0\n %2 = pow f64 %1, %0\n %3 = add f64 %2, %0\n", KILN_DTYPE_F64},
      {"f16", "%1 = cast f32 %0\n %2 = exp f32 %1\n %3 = cast f16 %2\n", KILN_DTYPE_F16},
      {"bf16", "%1 = cast f32 %0\n %2 = exp f32 %1\n %3 = cast bf16 %2\n", KILN_DTYPE_BF16},
  };
  static double in[N], a[N], b[N];
  for (int isa = 0; isa < isa_count(); isa++) {
    fixture f;
    fixture_open(&f);
    f.env->isa = (kiln_isa)isa;
    kiln_codegen *codegen;
    assert_ok(kiln_codegen_create(f.env, &codegen));
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++) {
      for (int i = 0; i < N; i++) {
        const float x = 0.25f + (float)(i % 23) * 0.125f;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        if (n == 0) ((float *)in)[i] = x;
        if (n == 1) in[i] = (double)x;
        if (n == 2) ((uint16_t *)in)[i] = (uint16_t)(0x3400 + 13 * (i % 100));
        if (n == 3) ((uint16_t *)in)[i] = (uint16_t)(bits >> 16);
      }
      for (int width = 2 + (int)n % llvm_step(); width <= MOST; width += llvm_step()) {
        char text[512], schedule[96];
        snprintf(text, sizeof text,
                 "kernel { in b0: %s[3, 64] [65, 1] out b1: %s[3, 64] [1, 3]\n nest [3, 64] {\n"
                 "%%0 = load %s b0 + 0 [65, 1]\n %s store %s b1 + 0 [1, 3], %%3 } }",
                 kinds[n].dtype, kinds[n].dtype, kinds[n].dtype, kinds[n].body, kinds[n].dtype);
        snprintf(schedule, sizeof schedule,
                 "schedule { nest 0: panel i1 %d nest 0: order i0 i1, vector i1 2 }", width);
        check_text(&f, codegen, text, schedule, in, a, b, sizeof a);
        if (!same_bits(kinds[n].id, (char *)a, (char *)b, N))
          fail_msg("rows of %d %s, isa %d", width, kinds[n].dtype, isa);
      }
    }
    kiln_codegen_destroy(codegen);
    fixture_close(&f);
  }
}

/* A function of x below a bound, x itself above it: the select must not be merged wrongly with what
 * the function ends in, a sign taken from x. x is rounded to bf16 first: bits that are integers. */
static void test_selected(void **unused) {
  (void)unused;
  static const char *const names[] = {
#define KILN_MATH_FN(name, arity, ulp_f32, ulp_f64) #name,
#include "runtime/math/functions.def"
#undef KILN_MATH_FN
      "copysign"};
  static const int arities[] = {
#define KILN_MATH_FN(name, arity, ulp_f32, ulp_f64) arity,
#include "runtime/math/functions.def"
#undef KILN_MATH_FN
      2};
  enum { N = 64 };
  float in[N], a[N], b[N];
  for (int i = 0; i < N; i++) in[i] = (float)(i - 30) * 0.3125f;
  for (int isa = 0; isa < isa_count(); isa++) {
    fixture f;
    fixture_open(&f);
    f.env->isa = (kiln_isa)isa;
    kiln_codegen *codegen;
    assert_ok(kiln_codegen_create(f.env, &codegen));
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
      char text[512];
      snprintf(text, sizeof text,
               "kernel { in b0: f32[64] [1] out b1: f32[64] [1] nest [64] {\n"
               "%%0 = load f32 b0 + 0 [1]\n %%1 = cast bf16 %%0\n %%2 = cast f32 %%1\n"
               "%%3 = const f32 2.25\n %%4 = %s f32 %s%%2\n %%5 = le bool %%2, %%3\n"
               "%%6 = select f32 %%5, %%4, %%2\n store f32 b1 + 0 [1], %%6 } }",
               names[n], arities[n] == 2 ? "%3, " : "");
      check_text(&f, codegen, text, NULL, in, a, b, sizeof a);
      if (!same_bits(KILN_DTYPE_F32, (char *)a, (char *)b, N))
        fail_msg("%s, isa %d", names[n], isa);
    }
    kiln_codegen_destroy(codegen);
    fixture_close(&f);
  }
}

/* f16 and bf16: x + x through f32, exact for numbers far from overflow. */
static void test_half(void **unused) {
  (void)unused;
  for (int isa = 0; isa < isa_count(); isa++) {
    for (int bf = 0; bf < 2; bf++) {
      fixture f;
      fixture_open(&f);
      f.env->isa = (kiln_isa)isa;
      kiln_codegen *codegen;
      assert_ok(kiln_codegen_create(f.env, &codegen));
      uint16_t in[37], a[37], b[37];
      for (int i = 0; i < 37; i++) in[i] = (uint16_t)(bf ? 0x3f80 + i : 0x3c00 + 13 * i);
      const char *t = bf ? "bf16" : "f16";
      char text[512];
      snprintf(text, sizeof text,
               "kernel { in b0: %s[37] [1] out b1: %s[37] [1] nest [37] {\n"
               "%%0 = load %s b0 + 0 [1]\n %%1 = cast f32 %%0\n %%2 = add f32 %%1, %%1\n"
               "%%3 = cast %s %%2\n store %s b1 + 0 [1], %%3 } }",
               t, t, t, t, t);
      check_text(&f, codegen, text, NULL, in, a, b, sizeof a);
      for (int i = 0; i < 37; i++) {
        assert_int_equal(a[i], in[i] + (bf ? 0x80 : 0x400)); /* the exponent goes up by one */
        assert_int_equal(b[i], a[i]);
      }
      kiln_codegen_destroy(codegen);
      fixture_close(&f);
    }
  }
}

/* LLVM is opened by the first kernel that it compiles, not by the evaluator. */
static void test_lazy(void **unused) {
  (void)unused;
  fixture f;
  fixture_open(&f);
  kiln_codegen *codegen;
  kiln_reason reason;
  kiln_compiled *code;
  kiln_str asm_text, ir_text;
  assert_ok(kiln_codegen_create(f.env, &codegen));
  kiln_loop_fn *fn = parse_loop(&f,
                                "kernel { in b0: f32[64] [1] out b1: f32[64] [1] nest [64] {\n"
                                "%0 = load f32 b0 + 0 [1]\n %1 = add f32 %0, %0\n"
                                "%2 = add f32 %1, %0\n store f32 b1 + 0 [1], %2 } }",
                                true, NULL);
  assert_ok(kiln_codegen_compile(codegen, fn, KILN_BACKEND_EVAL, &reason, &code, NULL));
  assert_false(kiln_codegen_llvm_is_open(codegen));
  kiln_compiled_release(code);
  assert_ok(kiln_codegen_compile(codegen, fn, KILN_BACKEND_LLVM, &reason, &code, NULL));
  assert_true(kiln_codegen_llvm_is_open(codegen));
  assert_true(code->compile_ns > 0 && code->code_bytes > 0 && code->object_bytes > 0);
  assert_int_equal(code->info.work.grid.end[0], 64);
  /* x + x + x is two vector additions; in whole steps and in the partial one. */
  assert_ok(kiln_codegen_dump(codegen, fn, KILN_STAGE_ASM, f.arena, &asm_text));
  int adds = 0;
  for (const char *p = asm_text.data; (p = strstr(p, "addps")); p++) adds++;
  assert_int_equal(adds, 4);
  assert_ok(kiln_codegen_dump(codegen, fn, KILN_STAGE_LLVM, f.arena, &ir_text));
  assert_non_null(strstr(ir_text.data, "fadd <"));
  float in[64], out[64];
  for (int i = 0; i < 64; i++) in[i] = (float)i;
  void *data[2] = {in, out};
  kiln_kernel_args args = {.data = data};
  code->fn(&args, &code->info.work.grid);
  for (int i = 0; i < 64; i++) assert_true(out[i] == 3 * in[i]);
  kiln_compiled_release(kiln_compiled_retain(code));
  kiln_compiled_release(code);
  kiln_codegen_destroy(codegen);
  fixture_close(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_v2),       cmocka_unit_test(test_avx2),
      cmocka_unit_test(test_avx512),   cmocka_unit_test(test_functions),
      cmocka_unit_test(test_widths),   cmocka_unit_test(test_boxes),
      cmocka_unit_test(test_cut),      cmocka_unit_test(test_range),
      cmocka_unit_test(test_selected), cmocka_unit_test(test_half),
      cmocka_unit_test(test_lazy),
  };
  filter_gpu_cases();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
