/* dtype.c: element types and promotion.
 *
 * The tables are the list of kiln.h plus one matrix. The matrix is PyTorch's promoteTypes; a test
 * compares it, and result_type over mixed operands, with tables dumped from PyTorch. */
#include "runtime/dtype.h"

typedef struct dtype_info {
  const char *ir_name, *python_name, *short_name;
  uint8_t size, category;
} dtype_info;

#define CATEGORY_U8 KILN_CATEGORY_INT
#define CATEGORY_I8 KILN_CATEGORY_INT
#define CATEGORY_I16 KILN_CATEGORY_INT
#define CATEGORY_I32 KILN_CATEGORY_INT
#define CATEGORY_I64 KILN_CATEGORY_INT
#define CATEGORY_U16 KILN_CATEGORY_INT
#define CATEGORY_U32 KILN_CATEGORY_INT
#define CATEGORY_U64 KILN_CATEGORY_INT
#define CATEGORY_F16 KILN_CATEGORY_FLOAT
#define CATEGORY_BF16 KILN_CATEGORY_FLOAT
#define CATEGORY_F32 KILN_CATEGORY_FLOAT
#define CATEGORY_F64 KILN_CATEGORY_FLOAT
#define CATEGORY_C32 KILN_CATEGORY_COMPLEX
#define CATEGORY_C64 KILN_CATEGORY_COMPLEX
#define CATEGORY_C128 KILN_CATEGORY_COMPLEX
#define CATEGORY_BOOL KILN_CATEGORY_BOOL
#define CATEGORY_QI8 KILN_CATEGORY_OTHER
#define CATEGORY_QU8 KILN_CATEGORY_OTHER
#define CATEGORY_QI32 KILN_CATEGORY_OTHER
#define CATEGORY_F8E5M2 KILN_CATEGORY_OTHER
#define CATEGORY_F8E4M3 KILN_CATEGORY_OTHER

/* What PyTorch calls them in lower case where it differs from the Python name. */
#define SHORT_U8 "byte"
#define SHORT_I8 "char"
#define SHORT_I16 "short"
#define SHORT_I32 "int"
#define SHORT_I64 "long"
#define SHORT_F16 "half"
#define SHORT_F32 "float"
#define SHORT_F64 "double"
#define SHORT_C32 "complex32"
#define SHORT_C64 "complex64"
#define SHORT_C128 "complex128"
#define SHORT_BOOL "bool"
#define SHORT_QI8 "qint8"
#define SHORT_QU8 "quint8"
#define SHORT_QI32 "qint32"
#define SHORT_BF16 "bfloat16"
#define SHORT_F8E5M2 "float8_e5m2"
#define SHORT_F8E4M3 "float8_e4m3fn"
#define SHORT_U16 "uint16"
#define SHORT_U32 "uint32"
#define SHORT_U64 "uint64"

#define INFO(name, number, bytes, ir, python, field) \
  [number] = {ir, python, SHORT_##name, bytes, CATEGORY_##name},
static const dtype_info info_table[32] = {KILN_DTYPE_LIST(INFO)};
#undef INFO

#define SIZE(name, number, bytes, ir, python, field) [number] = bytes,
const uint8_t kiln__dtype_sizes[32] = {KILN_DTYPE_LIST(SIZE)};
#undef SIZE

static const dtype_info *info_of(int64_t number) {
  if (number < 0 || number >= 32 || info_table[number].size == 0) return NULL;
  return &info_table[number];
}

bool kiln_dtype_is_valid(int64_t number) { return info_of(number) != NULL; }

size_t kiln_dtype_size(kiln_dtype dtype) {
  const dtype_info *info = info_of(dtype);
  return info ? info->size : 0;
}

const char *kiln_dtype_name(kiln_dtype dtype) {
  const dtype_info *info = info_of(dtype);
  return info ? info->python_name : NULL;
}

kiln_dtype_category kiln_dtype_category_of(kiln_dtype dtype) {
  const dtype_info *info = info_of(dtype);
  return info ? (kiln_dtype_category)info->category : KILN_CATEGORY_OTHER;
}

const char *kiln_dtype_ir_name(kiln_dtype dtype) {
  const dtype_info *info = info_of(dtype);
  return info ? info->ir_name : "Undefined";
}

const char *kiln_dtype_short_name(kiln_dtype dtype) {
  const dtype_info *info = info_of(dtype);
  return info ? info->short_name : "undefined";
}

kiln_dtype kiln_dtype_from_ir_name(kiln_str name) {
  for (int i = 0; i < KILN_DTYPE__COUNT; i++) {
    if (info_table[i].size > 0 && kiln_str_is(name, info_table[i].ir_name)) return (kiln_dtype)i;
  }
  return KILN_DTYPE_NONE;
}

kiln_dtype kiln_dtype_from_name(kiln_str name) {
  for (int i = 0; i < KILN_DTYPE__COUNT; i++) {
    if (info_table[i].size > 0 && kiln_str_is(name, info_table[i].python_name)) {
      return (kiln_dtype)i;
    }
  }
  return KILN_DTYPE_NONE;
}

/* -- Promotion -- */

/* The twelve classic types in the matrix's order; the others promote by rule. */
enum { M_U8, M_I8, M_I16, M_I32, M_I64, M_F16, M_F32, M_F64, M_C32, M_C64, M_C128, M_BOOL, M_BF16 };
enum { MATRIX = M_BF16 + 1 };
static const int8_t matrix_dtype[MATRIX] = {
    KILN_DTYPE_U8,   KILN_DTYPE_I8,   KILN_DTYPE_I16, KILN_DTYPE_I32, KILN_DTYPE_I64,
    KILN_DTYPE_F16,  KILN_DTYPE_F32,  KILN_DTYPE_F64, KILN_DTYPE_C32, KILN_DTYPE_C64,
    KILN_DTYPE_C128, KILN_DTYPE_BOOL, KILN_DTYPE_BF16};

/* Rows and columns: u8 i8 i16 i32 i64 f16 f32 f64 c32 c64 c128 bool bf16. */
#define R(a, b, c, d, e, f, g, h, i, j, k, l, m) \
  {M_##a, M_##b, M_##c, M_##d, M_##e, M_##f, M_##g, M_##h, M_##i, M_##j, M_##k, M_##l, M_##m}
static const int8_t promote_matrix[MATRIX][MATRIX] = {
    [M_U8] = R(U8, I16, I16, I32, I64, F16, F32, F64, C32, C64, C128, U8, BF16),
    [M_I8] = R(I16, I8, I16, I32, I64, F16, F32, F64, C32, C64, C128, I8, BF16),
    [M_I16] = R(I16, I16, I16, I32, I64, F16, F32, F64, C32, C64, C128, I16, BF16),
    [M_I32] = R(I32, I32, I32, I32, I64, F16, F32, F64, C32, C64, C128, I32, BF16),
    [M_I64] = R(I64, I64, I64, I64, I64, F16, F32, F64, C32, C64, C128, I64, BF16),
    [M_F16] = R(F16, F16, F16, F16, F16, F16, F32, F64, C32, C64, C128, F16, F32),
    [M_F32] = R(F32, F32, F32, F32, F32, F32, F32, F64, C64, C64, C128, F32, F32),
    [M_F64] = R(F64, F64, F64, F64, F64, F64, F64, F64, C128, C128, C128, F64, F64),
    [M_C32] = R(C32, C32, C32, C32, C32, C32, C64, C128, C32, C64, C128, C32, C64),
    [M_C64] = R(C64, C64, C64, C64, C64, C64, C64, C128, C64, C64, C128, C64, C64),
    [M_C128] = R(C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128),
    [M_BOOL] = R(U8, I8, I16, I32, I64, F16, F32, F64, C32, C64, C128, BOOL, BF16),
    [M_BF16] = R(BF16, BF16, BF16, BF16, BF16, F32, F32, F64, C64, C64, C128, BF16, BF16),
};
#undef R

static int matrix_index(kiln_dtype d) {
  if (d >= KILN_DTYPE_U8 && d <= KILN_DTYPE_BOOL) return (int)d;
  return d == KILN_DTYPE_BF16 ? M_BF16 : -1;
}

static bool is_wide_unsigned(kiln_dtype d) {
  return d == KILN_DTYPE_U16 || d == KILN_DTYPE_U32 || d == KILN_DTYPE_U64;
}

kiln_dtype kiln_dtype_promote(kiln_dtype a, kiln_dtype b) {
  if (a == b) return a;
  int i = matrix_index(a), j = matrix_index(b);
  if (i >= 0 && j >= 0) return (kiln_dtype)matrix_dtype[promote_matrix[i][j]];
  /* Wider unsigned types meet only floating ones (PyTorch 2.3 and later). */
  if (is_wide_unsigned(a) && kiln_dtype_is_float(b)) return b;
  if (is_wide_unsigned(b) && kiln_dtype_is_float(a)) return a;
  return KILN_DTYPE_NONE;
}

bool kiln_dtype_can_cast(kiln_dtype from, kiln_dtype to) {
  kiln_dtype_category f = kiln_dtype_category_of(from), t = kiln_dtype_category_of(to);
  if (f == KILN_CATEGORY_OTHER || t == KILN_CATEGORY_OTHER) return from == to;
  if (f == KILN_CATEGORY_COMPLEX) return t == KILN_CATEGORY_COMPLEX;
  if (f == KILN_CATEGORY_FLOAT) return t != KILN_CATEGORY_INT && t != KILN_CATEGORY_BOOL;
  return f == KILN_CATEGORY_BOOL || t != KILN_CATEGORY_BOOL;
}

/* Two dtypes that do not promote poison the result, as PyTorch raises: NONE with `failed`. The
 * struct has no room for a flag, so the poison is a number that is no dtype. */
enum { POISON = -2 };

static kiln_dtype join(kiln_dtype a, kiln_dtype b) {
  if (a == KILN_DTYPE_NONE) return b;
  if (b == KILN_DTYPE_NONE) return a;
  if ((int)a == POISON || (int)b == POISON) return (kiln_dtype)POISON;
  kiln_dtype r = kiln_dtype_promote(a, b);
  return r == KILN_DTYPE_NONE ? (kiln_dtype)POISON : r;
}

void kiln_promotion_add_tensor(kiln_promotion *promotion, kiln_dtype dtype, int rank) {
  kiln_dtype *slot = rank > 0 ? &promotion->dim : &promotion->zero_dim;
  *slot = join(*slot, dtype);
}

void kiln_promotion_add_number(kiln_promotion *promotion, kiln_dtype kind) {
  kiln_dtype d = kind;
  if (kiln_dtype_is_complex(kind)) d = KILN_DTYPE_C64;
  if (kiln_dtype_is_float(kind)) d = KILN_DTYPE_F32;
  promotion->number = join(promotion->number, d);
}

static kiln_dtype to_complex(kiln_dtype d) {
  switch (d) {
    case KILN_DTYPE_F16: return KILN_DTYPE_C32;
    case KILN_DTYPE_F64: return KILN_DTYPE_C128;
    default: return KILN_DTYPE_C64;
  }
}

/* What `lower` (a class that ranks behind) may still change: only its category counts. */
static kiln_dtype combine(kiln_dtype higher, kiln_dtype lower) {
  if ((int)higher == POISON || (int)lower == POISON) return (kiln_dtype)POISON;
  if (kiln_dtype_is_complex(higher)) return higher;
  if (kiln_dtype_is_float(higher)) {
    return kiln_dtype_is_complex(lower) ? to_complex(higher) : higher;
  }
  if (higher == KILN_DTYPE_BOOL || kiln_dtype_is_float(lower) || kiln_dtype_is_complex(lower)) {
    return join(higher, lower);
  }
  return higher != KILN_DTYPE_NONE ? higher : lower;
}

kiln_dtype kiln_promotion_result(const kiln_promotion *promotion) {
  kiln_dtype r = combine(promotion->dim, combine(promotion->zero_dim, promotion->number));
  return (int)r == POISON ? KILN_DTYPE_NONE : r;
}

kiln_dtype kiln_dtype_to_float(kiln_dtype dtype) {
  return kiln_dtype_is_int(dtype, true) ? KILN_DTYPE_F32 : dtype;
}

kiln_dtype kiln_dtype_real(kiln_dtype dtype) {
  switch (dtype) {
    case KILN_DTYPE_C32: return KILN_DTYPE_F16;
    case KILN_DTYPE_C64: return KILN_DTYPE_F32;
    case KILN_DTYPE_C128: return KILN_DTYPE_F64;
    default: return dtype;
  }
}
