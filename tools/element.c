/* element.c: elements of tensors as C numbers: half, bfloat16 and 8-bit floats included. */
#include "tools/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  kiln_dtype dtype;
  const char *short_name;
} dtypes[] = {
#define TOOL_DTYPE(name, number, size, storage, python, short_name) \
  {KILN_DTYPE_##name, #short_name},
    KILN_DTYPE_LIST(TOOL_DTYPE)
#undef TOOL_DTYPE
};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

kiln_dtype tool_dtype_of_short_name(const char *name, size_t len) {
  for (int i = 0; i < DTYPE_COUNT; i++) {
    if (strlen(dtypes[i].short_name) == len && memcmp(dtypes[i].short_name, name, len) == 0) {
      return dtypes[i].dtype;
    }
  }
  return KILN_DTYPE_NONE;
}

const char *tool_dtype_short_name(kiln_dtype dtype) {
  for (int i = 0; i < DTYPE_COUNT; i++) {
    if (dtypes[i].dtype == dtype) return dtypes[i].short_name;
  }
  return "?";
}

tool_element_class tool_element_class_of(kiln_dtype dtype) {
  switch (dtype) {
    case KILN_DTYPE_BOOL:
    case KILN_DTYPE_U8:
    case KILN_DTYPE_I8:
    case KILN_DTYPE_I16:
    case KILN_DTYPE_I32:
    case KILN_DTYPE_I64:
    case KILN_DTYPE_U16:
    case KILN_DTYPE_U32:
    case KILN_DTYPE_U64: return TOOL_ELEMENT_INT;
    case KILN_DTYPE_F16:
    case KILN_DTYPE_BF16:
    case KILN_DTYPE_F32:
    case KILN_DTYPE_F64:
    case KILN_DTYPE_F8E4M3:
    case KILN_DTYPE_F8E5M2: return TOOL_ELEMENT_FLOAT;
    case KILN_DTYPE_C32:
    case KILN_DTYPE_C64:
    case KILN_DTYPE_C128: return TOOL_ELEMENT_COMPLEX;
    default: return TOOL_ELEMENT_BYTES;
  }
}

#define LOAD(type, index) (((const type *)data)[index])

int64_t tool_element_int(kiln_dtype dtype, const void *data, int64_t index) {
  switch (dtype) {
    case KILN_DTYPE_BOOL:
    case KILN_DTYPE_U8: return LOAD(uint8_t, index);
    case KILN_DTYPE_I8: return LOAD(int8_t, index);
    case KILN_DTYPE_I16: return LOAD(int16_t, index);
    case KILN_DTYPE_I32: return LOAD(int32_t, index);
    case KILN_DTYPE_U16: return LOAD(uint16_t, index);
    case KILN_DTYPE_U32: return LOAD(uint32_t, index);
    case KILN_DTYPE_I64: return LOAD(int64_t, index);
    case KILN_DTYPE_U64: return (int64_t)LOAD(uint64_t, index);
    default: return 0;
  }
}

/* A binary float of `exponent` and `mantissa` bits with IEEE's infinities. */
static double small_float(uint32_t bits, int exponent, int mantissa) {
  uint32_t e = (bits >> mantissa) & ((1u << exponent) - 1), m = bits & ((1u << mantissa) - 1);
  int bias = (1 << (exponent - 1)) - 1;
  double value;
  if (e == (1u << exponent) - 1) {
    value = m ? (double)NAN : (double)INFINITY;
  } else if (e == 0) {
    value = ldexp(m, 1 - bias - mantissa);
  } else {
    value = ldexp(m | (1u << mantissa), (int)e - bias - mantissa);
  }
  return (bits >> (exponent + mantissa)) & 1 ? -value : value;
}

/* float8_e4m3fn has no infinities: S.1111.111 is NaN. */
static double float8_e4m3(uint8_t bits) {
  if ((bits & 0x7f) == 0x7f) return (double)NAN;
  if ((bits & 0x78) == 0x78) {
    double value = ldexp(8 + (bits & 7), 15 - 7 - 3);
    return bits & 0x80 ? -value : value;
  }
  return small_float(bits, 4, 3);
}

static double real_element(kiln_dtype dtype, const void *data, int64_t index) {
  switch (dtype) {
    case KILN_DTYPE_F16: return small_float(LOAD(uint16_t, index), 5, 10);
    case KILN_DTYPE_BF16: return small_float(LOAD(uint16_t, index), 8, 7);
    case KILN_DTYPE_F8E5M2: return small_float(LOAD(uint8_t, index), 5, 2);
    case KILN_DTYPE_F8E4M3: return float8_e4m3(LOAD(uint8_t, index));
    case KILN_DTYPE_F32: return (double)LOAD(float, index);
    case KILN_DTYPE_F64: return LOAD(double, index);
    default: return (double)tool_element_int(dtype, data, index);
  }
}

void tool_element_float(kiln_dtype dtype, const void *data, int64_t index, double *out_re,
                        double *out_im) {
  kiln_dtype part = dtype == KILN_DTYPE_C32   ? KILN_DTYPE_F16
                    : dtype == KILN_DTYPE_C64 ? KILN_DTYPE_F32
                                              : KILN_DTYPE_F64;
  if (tool_element_class_of(dtype) == TOOL_ELEMENT_COMPLEX) {
    *out_re = real_element(part, data, 2 * index);
    *out_im = real_element(part, data, 2 * index + 1);
  } else {
    *out_re = real_element(dtype, data, index);
    *out_im = 0;
  }
}

/* Rounds to the nearest float of that form (ties to even); overflow gives infinity. */
static uint32_t to_small_float(double value, int exponent, int mantissa) {
  uint32_t sign = signbit(value) ? 1u << (exponent + mantissa) : 0;
  uint32_t top = (1u << exponent) - 1;
  int bias = (1 << (exponent - 1)) - 1, e = 0;
  if (isnan(value)) return sign | (top << mantissa) | (1u << (mantissa - 1));
  value = fabs(value);
  if (value == 0) return sign;
  frexp(value, &e);
  if (e - 1 < 1 - bias) e = 2 - bias; /* subnormal */
  if (isinf(value) || e - 1 > bias) return sign | (top << mantissa);
  double scaled = nearbyint(ldexp(value, mantissa - (e - 1)));
  uint32_t m = (uint32_t)scaled;
  /* A carry out of the mantissa raises the exponent by itself; so does a subnormal that is none. */
  uint32_t bits = ((uint32_t)(e - 1 + bias - 1) << mantissa) + m;
  return sign | (bits > (top << mantissa) ? top << mantissa : bits);
}

void tool_element_store(kiln_dtype dtype, void *data, int64_t index, double value) {
  switch (dtype) {
    case KILN_DTYPE_BOOL: ((uint8_t *)data)[index] = value != 0; break;
    case KILN_DTYPE_U8: ((uint8_t *)data)[index] = (uint8_t)(int64_t)value; break;
    case KILN_DTYPE_I8: ((int8_t *)data)[index] = (int8_t)(int64_t)value; break;
    case KILN_DTYPE_I16: ((int16_t *)data)[index] = (int16_t)(int64_t)value; break;
    case KILN_DTYPE_U16: ((uint16_t *)data)[index] = (uint16_t)(int64_t)value; break;
    case KILN_DTYPE_I32: ((int32_t *)data)[index] = (int32_t)(int64_t)value; break;
    case KILN_DTYPE_U32: ((uint32_t *)data)[index] = (uint32_t)(int64_t)value; break;
    case KILN_DTYPE_I64: ((int64_t *)data)[index] = (int64_t)value; break;
    case KILN_DTYPE_U64: ((uint64_t *)data)[index] = (uint64_t)value; break;
    case KILN_DTYPE_F32: ((float *)data)[index] = (float)value; break;
    case KILN_DTYPE_F64: ((double *)data)[index] = value; break;
    case KILN_DTYPE_F16: ((uint16_t *)data)[index] = (uint16_t)to_small_float(value, 5, 10); break;
    case KILN_DTYPE_BF16: ((uint16_t *)data)[index] = (uint16_t)to_small_float(value, 8, 7); break;
    case KILN_DTYPE_C64:
      ((float *)data)[2 * index] = (float)value;
      ((float *)data)[2 * index + 1] = 0;
      break;
    case KILN_DTYPE_C128:
      ((double *)data)[2 * index] = value;
      ((double *)data)[2 * index + 1] = 0;
      break;
    default: break;
  }
}

int64_t tool_numel(const kiln_value *tensor) {
  const int64_t *sizes = kiln_value_sizes(tensor);
  int64_t n = 1;
  for (int i = 0; i < kiln_value_rank(tensor); i++) n *= sizes[i];
  return n;
}

void *tool_elements(const kiln_value *tensor, kiln_status **out_status) {
  size_t size = (size_t)tool_numel(tensor) * kiln_dtype_size(kiln_value_dtype(tensor));
  void *data = tool_alloc(size);
  *out_status = kiln_value_copy_data(tensor, data, size);
  if (*out_status) {
    free(data);
    return NULL;
  }
  return data;
}
