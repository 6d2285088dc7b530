/* eval_test.c: the evaluator's blocks against plain C, one element at a time and to the bit: every
 * opcode on every type that it takes, at lengths around a block's, with elements that lie apart,
 * repeat, or stand in other orders. Functions of runtime/math: within 4 ulp of the C library. */
#include <float.h>

#include "codegen_support.h"
#include "test/unit/codegen/plain.h"

enum { LANES = KILN_REDUCE_LANES, MOST_OPERANDS = 3, MOST_ELEMENTS = 1 << 14 };

typedef struct number {
  double f; /* of f32 too */
  int64_t i;
} number;

static const kiln_dtype dtypes[] = {KILN_DTYPE_F32, KILN_DTYPE_F64, KILN_DTYPE_U8,
                                    KILN_DTYPE_I8,  KILN_DTYPE_I16, KILN_DTYPE_I32,
                                    KILN_DTYPE_I64, KILN_DTYPE_BOOL};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static bool is_float(kiln_dtype dtype) { return kiln_loop_class(dtype) == KILN_LOOP_CLASS_F; }

/* -- Elements -- */

static number load_number(kiln_dtype dtype, const void *data, int64_t at) {
  switch (dtype) {
    case KILN_DTYPE_F32: return (number){.f = (double)((const float *)data)[at]};
    case KILN_DTYPE_F64: return (number){.f = ((const double *)data)[at]};
    case KILN_DTYPE_I64: return (number){.i = ((const int64_t *)data)[at]};
    case KILN_DTYPE_I32: return (number){.i = ((const int32_t *)data)[at]};
    case KILN_DTYPE_I16: return (number){.i = ((const int16_t *)data)[at]};
    case KILN_DTYPE_I8: return (number){.i = ((const int8_t *)data)[at]};
    case KILN_DTYPE_BOOL: return (number){.i = ((const uint8_t *)data)[at] != 0};
    default: return (number){.i = ((const uint8_t *)data)[at]};
  }
}

/* Bytes of every kind, and of floats a few that are special. */
static void fill(kiln_dtype dtype, void *data, int64_t count, uint64_t *seed) {
  static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e30, -1e-30, 3e9, -200};
  const int odd = random_below(seed, 2) ? 13 : 1 << 20;
  for (int64_t i = 0; i < count; i++) {
    const int r = random_below(seed, 4000) - 2000, s = random_below(seed, 9);
    const double f = random_below(seed, odd) == 0 ? special[s] : r / 300.0;
    switch (dtype) {
      case KILN_DTYPE_F32: ((float *)data)[i] = (float)f; break;
      case KILN_DTYPE_F64: ((double *)data)[i] = f; break;
      case KILN_DTYPE_I64: ((int64_t *)data)[i] = (int64_t)random_next(seed) >> (s * 7); break;
      case KILN_DTYPE_I32: ((int32_t *)data)[i] = r * 1000003; break;
      case KILN_DTYPE_I16: ((int16_t *)data)[i] = (int16_t)(r * 17); break;
      default: ((uint8_t *)data)[i] = (uint8_t)r; break;
    }
  }
}

/* -- One instruction in plain C -- */

static double rounded(kiln_dtype dtype, double f) {
  return dtype == KILN_DTYPE_F32 ? (double)(float)f : f;
}

static uint64_t int_of(kiln_loop_opcode op, kiln_dtype dtype, int64_t a, int64_t b) {
  const uint64_t u = (uint64_t)a, v = (uint64_t)b;
  switch (op) {
    case KILN_LOOP_add: return u + v;
    case KILN_LOOP_sub: return u - v;
    case KILN_LOOP_mul: return u * v;
    case KILN_LOOP_quot: return b == 0 ? 0 : b == -1 ? 0 - u : (uint64_t)(a / b);
    case KILN_LOOP_neg: return 0 - u;
    case KILN_LOOP_abs: return a < 0 ? 0 - u : u;
    case KILN_LOOP_min: return a < b ? u : v;
    case KILN_LOOP_max: return a > b ? u : v;
    case KILN_LOOP_and: return u & v;
    case KILN_LOOP_or: return u | v;
    case KILN_LOOP_xor: return u ^ v;
    case KILN_LOOP_not: return dtype == KILN_DTYPE_BOOL ? a == 0 : ~u;
    default: fail_msg("no plain C for %s of integers", kiln_loop_ops[op].name); return 0;
  }
}
static bool compared(kiln_loop_opcode op, kiln_dtype dtype, number a, number b) {
  const bool f = is_float(dtype), less = f ? a.f < b.f : a.i < b.i;
  const bool equal = f ? a.f == b.f : a.i == b.i, more = f ? a.f > b.f : a.i > b.i;
  switch (op) {
    case KILN_LOOP_eq: return equal;
    case KILN_LOOP_ne: return !equal;
    case KILN_LOOP_lt: return less;
    case KILN_LOOP_le: return less || equal;
    case KILN_LOOP_gt: return more;
    case KILN_LOOP_ge: return more || equal;
    default: fail_msg("no plain C for %s", kiln_loop_ops[op].name); return false;
  }
}

/* As the machine converts: through i64, or through i32 to all that is smaller. */
static number converted(kiln_dtype from, kiln_dtype to, number a) {
  const bool f = is_float(from);
  if (to == KILN_DTYPE_BOOL) return (number){.i = f ? a.f != 0 : a.i != 0};
  if (is_float(to)) {
    if (to == KILN_DTYPE_F32 && !f) return (number){.f = (double)(float)a.i};
    return (number){.f = f ? rounded(to, a.f) : (double)a.i};
  }
  if (!f) return (number){.i = plain_wrap(to, (uint64_t)a.i)};
  const double bound = to == KILN_DTYPE_I64 ? 0x1p63 : 0x1p31;
  const bool fits = trunc(a.f) >= -bound && trunc(a.f) < bound;
  const int64_t whole = fits ? (int64_t)a.f : to == KILN_DTYPE_I64 ? INT64_MIN : INT32_MIN;
  return (number){.i = plain_wrap(to, (uint64_t)whole)};
}

/* -- Kernels of two loops -- */

/* An operand: its offset and strides over `rows` x `columns`. */
typedef struct layout {
  int64_t offset, row, column;
} layout;
enum { LAYOUTS = 7 };
static layout layout_of(int kind, int64_t rows, int64_t columns) {
  switch (kind) {
    case 0: return (layout){0, columns, 1};
    case 1: return (layout){0, 0, 1};
    case 2: return (layout){2, 1, 0};
    case 3: return (layout){1, 1, rows};
    case 4: return (layout){3, columns + 5, 1};
    case 5: return (layout){5, 3 * columns, 3};
    default: return (layout){7, 0, 0};
  }
}

typedef struct block {
  fixture *f;
  kiln_codegen *codegen;
  uint64_t seed;
  int64_t rows, columns;
  int kinds[MOST_OPERANDS + 1]; /* of layouts, the last one the result's */
  kiln_loop_opcode op;
  kiln_dtype from, to; /* operands; the result */
} block;

static layout part_layout(const block *b, int part) {
  return layout_of(b->kinds[part], b->rows, b->columns);
}
static int64_t span_of(const block *b, int part) {
  const layout l = part_layout(b, part);
  return l.offset + (b->rows - 1) * l.row + (b->columns - 1) * l.column + 1;
}
/* Of select the first is a bool. */
static kiln_dtype part_dtype(const block *b, int part) {
  const bool mask = b->op == KILN_LOOP_select && part == 0;
  return part == MOST_OPERANDS ? b->to : mask ? KILN_DTYPE_BOOL : b->from;
}

static kiln_status *make_block(const block *b, kiln_loop_fn **out_fn) {
  const int arity = kiln_loop_ops[b->op].arity;
  kiln_loop_fn *fn = kiln_loop_create(b->f->arena);
  const int64_t extents[2] = {b->rows, b->columns}, one = 1;
  int values[MOST_OPERANDS] = {-1, -1, -1};
  for (int part = 0; part < arity; part++) {
    const int64_t span = span_of(b, part);
    kiln_loop_add_input(fn, part_dtype(b, part), 1, &span, &one);
  }
  const int64_t span = span_of(b, MOST_OPERANDS);
  kiln_loop_add_output(fn, b->to, 1, &span, &one);
  kiln_loop_nest *nest = kiln_loop_add_nest(fn, 2, extents);
  for (int part = 0; part < arity; part++) {
    const layout l = part_layout(b, part);
    values[part] = kiln_loop_load(fn, nest, part, l.offset, &l.row);
  }
  const int value = b->op == KILN_LOOP_cast
                        ? kiln_loop_cast(fn, nest, values[0], b->to)
                        : kiln_loop_op(fn, nest, b->op, values[0], values[1], values[2]);
  const layout l = part_layout(b, MOST_OPERANDS);
  kiln_loop_store(fn, nest, arity, l.offset, &l.row, value);
  *out_fn = fn;
  return kiln_loop_verify(fn);
}

static number expected(const block *b, void *const *data, int64_t r, int64_t c) {
  number x[MOST_OPERANDS] = {0};
  for (int part = 0; part < kiln_loop_ops[b->op].arity; part++) {
    const layout l = part_layout(b, part);
    x[part] = load_number(part_dtype(b, part), data[part], l.offset + r * l.row + c * l.column);
  }
  if (b->op == KILN_LOOP_cast) return converted(b->from, b->to, x[0]);
  if (b->op == KILN_LOOP_select) return x[0].i ? x[1] : x[2];
  if (kiln_loop_ops[b->op].rule == KILN_LOOP_RULE_COMPARE)
    return (number){.i = compared(b->op, b->from, x[0], x[1])};
  if (!is_float(b->to))
    return (number){.i = plain_wrap(b->to, int_of(b->op, b->to, x[0].i, x[1].i))};
  return (number){.f = rounded(b->to, plain_float(b->op, x[0].f, x[1].f))};
}

static bool is_same(const block *b, number want, number have) {
  if (!is_float(b->to)) return want.i == have.i;
  if (isnan(want.f)) return isnan(have.f);
  if ((int)b->op < (int)KILN_LOOP_FIRST_MATH || isinf(want.f) || isinf(have.f))
    return memcmp(&want.f, &have.f, sizeof want.f) == 0;
  const bool narrow = b->to == KILN_DTYPE_F32;
  const bool differs = narrow && b->op == KILN_LOOP_gelu; /* as functions.def has it, below 0 */
  const double least = differs  ? (double)FLT_EPSILON
                       : narrow ? 4 * (double)FLT_TRUE_MIN
                                : 4 * DBL_TRUE_MIN;
  return fabs(want.f - have.f) <=
         4 * (narrow ? (double)FLT_EPSILON : DBL_EPSILON) * fabs(want.f) + least;
}

static void *allocate(int64_t count, kiln_dtype dtype) {
  return malloc((size_t)count * (size_t)kiln_loop_size(dtype));
}

static void run(const kiln_compiled *code, void *const *data) {
  void *scratch = aligned_alloc(64, code->info.work.scratch_bytes / 64 * 64 + 64);
  const kiln_kernel_args args = {.data = data, .scratch = scratch, .closure = code->closure};
  code->fn(&args, &code->info.work.grid);
  free(scratch);
}

static kiln_compiled *compile(kiln_codegen *codegen, const kiln_loop_fn *fn) {
  kiln_reason reason;
  kiln_compiled *code;
  assert_ok(kiln_codegen_compile(codegen, fn, KILN_BACKEND_EVAL, &reason, &code, NULL));
  return code;
}

/* Exactly as much memory as may be touched. What is written between results stays as it was. */
static void check_block(block *b) {
  const int arity = kiln_loop_ops[b->op].arity;
  const layout l = part_layout(b, MOST_OPERANDS);
  const int64_t span = span_of(b, MOST_OPERANDS);
  const size_t size = (size_t)kiln_loop_size(b->to);
  void *data[MOST_OPERANDS + 1];
  kiln_loop_fn *fn;
  assert_ok(make_block(b, &fn));
  for (int part = 0; part < arity; part++) {
    data[part] = allocate(span_of(b, part), part_dtype(b, part));
    fill(part_dtype(b, part), data[part], span_of(b, part), &b->seed);
  }
  data[arity] = allocate(span, b->to);
  memset(data[arity], 0x5a, (size_t)span * size);
  kiln_compiled *code = compile(b->codegen, fn);
  run(code, data);
  for (int64_t r = 0; r < b->rows; r++) {
    for (int64_t c = 0; c < b->columns; c++) {
      char *at = (char *)data[arity] + (l.offset + r * l.row + c * l.column) * (int64_t)size;
      const number want = expected(b, data, r, c), have = load_number(b->to, at, 0);
      if (!is_same(b, want, have)) {
        kiln_str kernel = kiln_loop_print(fn, b->f->arena);
        fail_msg("[%lld, %lld]: %.17g %lld, not %.17g %lld\n" KILN_STR_FMT, (long long)r,
                 (long long)c, have.f, (long long)have.i, want.f, (long long)want.i,
                 KILN_STR_ARG(kernel));
      }
      memset(at, 0x5a, size);
    }
  }
  for (size_t i = 0; i < (size_t)span * size; i++)
    assert_int_equal(((uint8_t *)data[arity])[i], 0x5a);
  kiln_compiled_release(code);
  for (int part = 0; part <= arity; part++) free(data[part]);
  kiln_arena_reset(b->f->arena);
}

/* Rows and columns around the sizes of blocks. Layouts take turns. */
static void check_forms(block *b) {
  static const int64_t sizes[][2] = {{1, 1},    {1, 2},    {1, 63},  {1, 1023}, {1, 1024},
                                     {1, 1025}, {1, 2049}, {2, 512}, {3, 341},  {3, 515},
                                     {41, 25},  {700, 3},  {64, 17}, {1025, 1}, {5, 1025}};
  static const int results[] = {0, 3, 4, 5};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    b->rows = sizes[s][0];
    b->columns = sizes[s][1];
    for (int part = 0; part < MOST_OPERANDS; part++)
      b->kinds[part] = random_below(&b->seed, LAYOUTS);
    b->kinds[MOST_OPERANDS] = results[random_below(&b->seed, 4)];
    check_block(b);
  }
}

typedef void (*isa_test)(fixture *f, kiln_codegen *codegen);
static void on_each_isa(isa_test test) {
  for (int isa = 0; isa < isa_count(); isa++) {
    fixture f;
    fixture_open(&f);
    f.env->isa = (kiln_isa)isa;
    kiln_codegen *codegen;
    assert_ok(kiln_codegen_create(f.env, &codegen));
    test(&f, codegen);
    kiln_codegen_destroy(codegen);
    fixture_close(&f);
  }
}

static void opcodes_on(fixture *f, kiln_codegen *codegen) {
  for (int op = 0; op < KILN_LOOP__COUNT; op++) {
    const kiln_loop_op_info *info = &kiln_loop_ops[op];
    const bool compares = info->rule == KILN_LOOP_RULE_COMPARE;
    if (!compares && info->rule != KILN_LOOP_RULE_SAME && info->rule != KILN_LOOP_RULE_SELECT)
      continue;
    for (int d = 0; d < DTYPES; d++) {
      if (!(info->classes & kiln_loop_class(dtypes[d]))) continue;
      check_forms(&(block){.f = f,
                           .codegen = codegen,
                           .seed = (uint64_t)(op * DTYPES + d + 1) * 7919,
                           .op = (kiln_loop_opcode)op,
                           .from = dtypes[d],
                           .to = compares ? KILN_DTYPE_BOOL : dtypes[d]});
    }
  }
}
static void test_opcodes(void **unused) {
  (void)unused;
  on_each_isa(opcodes_on);
}

static void casts_on(fixture *f, kiln_codegen *codegen) {
  for (int from = 0; from < DTYPES; from++) {
    for (int to = 0; to < DTYPES; to++) {
      if (from == to) continue;
      check_forms(&(block){.f = f,
                           .codegen = codegen,
                           .seed = (uint64_t)(from * DTYPES + to + 1) * 104729,
                           .op = KILN_LOOP_cast,
                           .from = dtypes[from],
                           .to = dtypes[to]});
    }
  }
}
static void test_casts(void **unused) {
  (void)unused;
  on_each_isa(casts_on);
}

/* -- f16 and bf16: storage that is cast from and to f32 -- */

/* To nearest, ties to even: of 16 bits of which `bits` are the fraction's, by trying both
 * neighbours in f64. `value` gives what 16 bits are worth. */
static double half_value(bool bf, uint16_t h) {
  const int fraction = bf ? 7 : 10, bias = bf ? 127 : 15, most = bf ? 255 : 31;
  const int exponent = (h & 0x7fff) >> fraction, rest = h & ((1 << fraction) - 1);
  const double sign = h & 0x8000 ? -1 : 1;
  if (exponent == most) return rest ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * ldexp(rest, 1 - bias - fraction);
  return sign * ldexp(rest + (1 << fraction), exponent - bias - fraction);
}
static uint16_t half_of(bool bf, double x) {
  const uint16_t sign = signbit(x) ? 0x8000 : 0, infinite = bf ? 0x7f80 : 0x7c00;
  uint16_t low = 0, high = infinite; /* of the values, that is their order too */
  while (high - low > 1) {
    const uint16_t middle = (uint16_t)((low + high) / 2);
    if (half_value(bf, middle) <= fabs(x))
      low = middle;
    else
      high = middle;
  }
  /* Infinity stands for the next power of two. */
  const double above = high == infinite ? ldexp(1, bf ? 128 : 16) : half_value(bf, high);
  const double under = fabs(x) - half_value(bf, low), over = above - fabs(x);
  const bool up = isinf(x) || over < under || (over == under && low & 1);
  return (uint16_t)(sign | (up ? high : low));
}

static void halves_on(fixture *f, kiln_codegen *codegen) {
  enum { N = 1027, STRIDE = 3 };
  static float wide[N], back[N * STRIDE];
  static uint16_t narrow[N];
  uint64_t seed = 99;
  for (int bf = 0; bf < 2; bf++) {
    char text[512];
    const char *t = bf ? "bf16" : "f16";
    snprintf(text, sizeof text,
             "kernel { in b0: f32[1027] [1] out b1: %s[1027] [1] out b2: f32[1027, 3] [3, 1]\n"
             "nest [1027] { %%0 = load f32 b0 + 0 [1]\n %%1 = cast %s %%0\n"
             "store %s b1 + 0 [1], %%1\n %%3 = cast f32 %%1\n store f32 b2 + 1 [3], %%3 } }",
             t, t, t);
    kiln_compiled *code = compile(codegen, parse_loop(f, text, false, NULL));
    for (int round = 0; round < 4; round++) {
      static const double scale[] = {1, 1e-6, 60, 1e-9};
      void *data[] = {wide, narrow, back};
      fill(KILN_DTYPE_F32, wide, N, &seed);
      for (int i = 0; i < N; i++) wide[i] *= (float)scale[round];
      run(code, data);
      for (int i = 0; i < N; i++) {
        if (isnan(wide[i])) {
          assert_true(isnan(half_value(bf, narrow[i])) && isnan(back[STRIDE * i + 1]));
          continue;
        }
        assert_int_equal(narrow[i], half_of(bf, (double)wide[i]));
        assert_true((double)back[STRIDE * i + 1] == half_value(bf, narrow[i]));
      }
    }
    kiln_compiled_release(code);
  }
}
static void test_halves(void **unused) {
  (void)unused;
  on_each_isa(halves_on);
}

/* -- Reductions -- */

/* Two lanes, or a lane and the next operand. */
static number joined(kiln_loop_opcode op, kiln_dtype dtype, number a, number b) {
  const bool f = is_float(dtype), more = f ? a.f > b.f : a.i > b.i,
             less = f ? a.f < b.f : a.i < b.i;
  switch (op) {
    case KILN_LOOP_sum:
    case KILN_LOOP_dot:
    case KILN_LOOP_contract: /* without a schedule */
      return (number){.f = rounded(dtype, a.f + b.f),
                      .i = plain_wrap(dtype, (uint64_t)a.i + (uint64_t)b.i)};
    case KILN_LOOP_prod:
      return (number){.f = rounded(dtype, a.f * b.f),
                      .i = plain_wrap(dtype, (uint64_t)a.i * (uint64_t)b.i)};
    case KILN_LOOP_amax: return (f && isnan(a.f)) || more ? a : b;
    case KILN_LOOP_amin: return (f && isnan(a.f)) || less ? a : b;
    case KILN_LOOP_any: return (number){.i = a.i | b.i};
    case KILN_LOOP_all: return (number){.i = a.i & b.i};
    default: fail_msg("no plain C for %s", kiln_loop_ops[op].name); return a;
  }
}

/* x, y[i * stride] for i < n by the rule of reduce.h. */
static number reduced(kiln_loop_opcode op, kiln_dtype dtype, const void *x, const void *y,
                      int64_t at, int64_t n, int64_t stride, bool fma_here) {
  number lanes[LANES];
  const kiln_loop_opcode most = KILN_LOOP_amax;
  const bool is_f32 = dtype == KILN_DTYPE_F32;
  for (int j = 0; j < LANES; j++) {
    const bool edge = op == KILN_LOOP_amax || op == KILN_LOOP_amin;
    lanes[j] =
        (number){.f = op == KILN_LOOP_prod, .i = op == KILN_LOOP_prod || op == KILN_LOOP_all};
    if (edge) lanes[j].f = op == most ? -INFINITY : INFINITY;
  }
  for (int64_t i = 0; i < n; i++) {
    const number a = load_number(dtype, x, at + i * stride),
                 b = load_number(dtype, y, at + i * stride);
    number *lane = &lanes[i % LANES];
    if (kiln_loop_multiplies(op))
      lane->f = !fma_here ? rounded(dtype, rounded(dtype, a.f * b.f) + lane->f)
                : is_f32  ? (double)fmaf((float)a.f, (float)b.f, (float)lane->f)
                          : fma(a.f, b.f, lane->f);
    else if (!is_float(dtype) && i < LANES && (op == most || op == KILN_LOOP_amin))
      *lane = a; /* what it begins with is no better */
    else
      *lane = joined(op, dtype, *lane, a);
  }
  const bool order_free = !is_float(dtype) && (op == most || op == KILN_LOOP_amin);
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int j = 0; j < half; j++)
      if (!order_free || j + half < n) lanes[j] = joined(op, dtype, lanes[j], lanes[j + half]);
  return lanes[0];
}

static int64_t found(kiln_loop_opcode op, kiln_dtype dtype, const void *x, int64_t at, int64_t n,
                     int64_t stride) {
  int64_t place = 0;
  for (int64_t i = 1; i < n; i++) {
    const number a = load_number(dtype, x, at + i * stride);
    const number best = load_number(dtype, x, at + place * stride);
    const bool most = op == KILN_LOOP_argmax;
    if (!is_float(dtype) && (most ? a.i > best.i : a.i < best.i)) place = i;
    if (!is_float(dtype) || isnan(best.f)) continue;
    if (isnan(a.f) || (most ? a.f > best.f : a.f < best.f)) place = i;
  }
  return place;
}

/* `outer` results of `n` elements: of rows, or else of columns. */
static void check_reduction(fixture *f, kiln_codegen *codegen, kiln_loop_opcode op,
                            kiln_dtype dtype, int64_t outer, int64_t n, bool rows) {
  const bool find = kiln_loop_ops[op].rule == KILN_LOOP_RULE_FIND;
  const bool two = kiln_loop_ops[op].arity == 2;
  const char *t = kiln_loop_dtype_name(dtype), *to = find ? "i64" : t;
  const long long across = rows ? n : 1, along = rows ? 1 : outer;
  char text[600];
  uint64_t seed = (uint64_t)((int64_t)op * 64 + (int64_t)dtype * 8 + n + outer + 1);
  snprintf(text, sizeof text,
           "kernel { in b0: %s[%lld] [1] in b1: %s[%lld] [1] out b2: %s[%lld] [1] nest [%lld] {\n"
           "reduce %lld { %%1 = load %s b0 + 0 [%lld, %lld]\n %%2 = load %s b1 + 0 [%lld, %lld]\n"
           "%%3 = %s %s %%1%s over 1 }\n store %s b2 + 0 [1], %%3 } }",
           t, (long long)(outer * n), t, (long long)(outer * n), to, (long long)outer,
           (long long)outer, (long long)n, t, across, along, t, across, along,
           kiln_loop_ops[op].name, to, two ? ", %2" : "", to);
  void *data[3] = {allocate(outer * n, dtype), allocate(outer * n, dtype),
                   allocate(outer, find ? KILN_DTYPE_I64 : dtype)};
  fill(dtype, data[0], outer * n, &seed);
  fill(dtype, data[1], outer * n, &seed);
  kiln_compiled *code = compile(codegen, parse_loop(f, text, false, NULL));
  run(code, data);
  for (int64_t o = 0; o < outer; o++) {
    number want = {.i = 0}, have = load_number(find ? KILN_DTYPE_I64 : dtype, data[2], o);
    if (find)
      want.i = found(op, dtype, data[0], o * across, n, along);
    else
      want = reduced(op, dtype, data[0], data[1], o * across, n, along, f->env->isa != KILN_ISA_V2);
    const bool same = find || !is_float(dtype) ? want.i == have.i
                      : isnan(want.f)          ? isnan(have.f)
                                               : memcmp(&want.f, &have.f, sizeof want.f) == 0;
    if (!same)
      fail_msg("%lld: %.17g %lld, not %.17g %lld of\n%s", (long long)o, have.f, (long long)have.i,
               want.f, (long long)want.i, text);
  }
  kiln_compiled_release(code);
  for (int i = 0; i < 3; i++) free(data[i]);
  kiln_arena_reset(f->arena);
}

/* Running values of `outer` rows of `n` elements, or of columns: the first is what comes first. */
static void check_scan(fixture *f, kiln_codegen *codegen, kiln_loop_opcode op, kiln_dtype dtype,
                       int64_t outer, int64_t n, bool rows) {
  const char *t = kiln_loop_dtype_name(dtype);
  const long long across = rows ? n : 1, along = rows ? 1 : outer;
  const kiln_loop_opcode join = kiln_loop_carried(op);
  char text[600];
  uint64_t seed = (uint64_t)((int64_t)op * 64 + (int64_t)dtype * 8 + n + outer + 1);
  snprintf(text, sizeof text,
           "kernel { in b0: %s[%lld] [1] out b1: %s[%lld] [1] nest [%lld] {\n"
           "scan %lld { %%1 = load %s b0 + 0 [%lld, %lld]\n %%2 = %s %s %%1\n"
           "store %s b1 + 0 [%lld, %lld], %%2 } } }",
           t, (long long)(outer * n), t, (long long)(outer * n), (long long)outer, (long long)n, t,
           across, along, kiln_loop_ops[op].name, t, t, across, along);
  void *data[2] = {allocate(outer * n, dtype), allocate(outer * n, dtype)};
  fill(dtype, data[0], outer * n, &seed);
  kiln_compiled *code = compile(codegen, parse_loop(f, text, false, NULL));
  run(code, data);
  for (int64_t o = 0; o < outer; o++) {
    number want = {.i = 0};
    for (int64_t i = 0; i < n; i++) {
      const number x = load_number(dtype, data[0], o * across + i * along),
                   have = load_number(dtype, data[1], o * across + i * along);
      want = i == 0 ? x : joined(join, dtype, want, x);
      const bool same = !is_float(dtype) ? want.i == have.i
                        : isnan(want.f)  ? isnan(have.f)
                                         : memcmp(&want.f, &have.f, sizeof want.f) == 0;
      if (!same)
        fail_msg("%lld, %lld: %.17g %lld, not %.17g %lld of\n%s", (long long)o, (long long)i,
                 have.f, (long long)have.i, want.f, (long long)want.i, text);
    }
  }
  kiln_compiled_release(code);
  for (int i = 0; i < 2; i++) free(data[i]);
  kiln_arena_reset(f->arena);
}

static void reductions_on(fixture *f, kiln_codegen *codegen) {
  static const int64_t sizes[][2] = {{1, 1},  {3, 2},    {2, 64},   {17, 63},  {65, 100},
                                     {40, 9}, {3, 1025}, {130, 70}, {1, 2100}, {5, 400}};
  for (int op = 0; op < KILN_LOOP__COUNT; op++) {
    const bool scans = kiln_loop_carries((kiln_loop_opcode)op);
    if (!scans && !kiln_loop_reduces((kiln_loop_opcode)op)) continue;
    for (int d = 0; d < DTYPES; d++) {
      if (!(kiln_loop_ops[op].classes & kiln_loop_class(dtypes[d]))) continue;
      for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int rows = 0; rows < 2; rows++)
          (scans ? check_scan : check_reduction)(f, codegen, (kiln_loop_opcode)op, dtypes[d],
                                                 sizes[s][0], sizes[s][1], rows);
    }
  }
}
static void test_reductions(void **unused) {
  (void)unused;
  on_each_isa(reductions_on);
}

/* -- Donation -- */

/* An output in an input's memory: what was loaded is what was there, before the store and behind
 * it; and a load that stands between a result and its store sees no store. */
static void donation_on(fixture *f, kiln_codegen *codegen) {
  enum { N = 3 * 700 };
  static float in[N], doubled[N], place[N];
  const char *text = "kernel { in b0: f32[3, 700] [700, 1] out b1: f32[3, 700] [700, 1]\n"
                     "out b2: f32[3, 700] [700, 1] nest [3, 700] {\n"
                     "%0 = load f32 b0 + 0 [700, 1]\n %1 = neg f32 %0\n"
                     "%2 = load f32 b0 + 0 [700, 1]\n store f32 b1 + 0 [700, 1], %1\n"
                     "%4 = add f32 %0, %2\n store f32 b2 + 0 [700, 1], %4 } }";
  uint64_t seed = 5;
  kiln_compiled *code = compile(codegen, parse_loop(f, text, false, NULL));
  assert_int_equal(code->info.donors[0], 1);
  fill(KILN_DTYPE_F32, in, N, &seed);
  memcpy(place, in, sizeof in);
  void *data[] = {place, place, doubled};
  run(code, data);
  for (int i = 0; i < N; i++) {
    if (isnan(in[i])) continue;
    assert_true(place[i] == -in[i] && doubled[i] == in[i] + in[i]);
  }
  kiln_compiled_release(code);
}
static void test_donation(void **unused) {
  (void)unused;
  on_each_isa(donation_on);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_opcodes),  cmocka_unit_test(test_casts),
      cmocka_unit_test(test_halves),   cmocka_unit_test(test_reductions),
      cmocka_unit_test(test_donation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
