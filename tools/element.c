/* element.c: elements of tensors as C numbers: half, bfloat16 and 8-bit floats included. */
#include "tools/element.h"

#include <errno.h>
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

/* What the two parts of a complex number are. */
static kiln_dtype part_of(kiln_dtype dtype) {
  return dtype == KILN_DTYPE_C32   ? KILN_DTYPE_F16
         : dtype == KILN_DTYPE_C64 ? KILN_DTYPE_F32
                                   : KILN_DTYPE_F64;
}

void tool_element_float(kiln_dtype dtype, const void *data, int64_t index, double *out_re,
                        double *out_im) {
  const kiln_dtype part = part_of(dtype);
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

/* Its numbers go on where IEEE's form would have infinities, and end with 448. */
static uint8_t to_float8_e4m3(double value) {
  const uint8_t sign = signbit(value) ? 0x80 : 0;
  const double size = fmin(fabs(value), 448);
  if (isnan(value)) return sign | 0x7f;
  if (size < 248) return (uint8_t)to_small_float(value, 4, 3);
  return sign | (uint8_t)(0x78 + (int)nearbyint((size - 256) / 32));
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
    case KILN_DTYPE_F8E5M2: ((uint8_t *)data)[index] = (uint8_t)to_small_float(value, 5, 2); break;
    case KILN_DTYPE_F8E4M3: ((uint8_t *)data)[index] = to_float8_e4m3(value); break;
    case KILN_DTYPE_C32:
    case KILN_DTYPE_C64:
    case KILN_DTYPE_C128:
      tool_element_store(part_of(dtype), data, 2 * index, value);
      tool_element_store(part_of(dtype), data, 2 * index + 1, 0);
      break;
    default: break;
  }
}

/* -- From text -- */

static const char *parse_bool(const char *text, uint8_t *out) {
  static const char *const words[] = {"0", "1", "false", "true", "False", "True"};
  const size_t len = strcspn(text, ",");
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strlen(words[i]) != len || memcmp(words[i], text, len) != 0) continue;
    *out = i % 2;
    return text + len;
  }
  return NULL;
}

/* Of `size` bytes; the low ones of a 64-bit number, on a little-endian machine. */
static const char *parse_int(const char *text, bool is_signed, size_t size, void *out) {
  const int bits = (int)size * 8;
  char *end = NULL;
  errno = 0;
  if (is_signed) {
    const long long value = strtoll(text, &end, 10);
    const long long most = INT64_MAX >> (64 - bits);
    if (errno || value > most || value < -most - 1) return NULL;
    memcpy(out, &value, size);
  } else {
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno || value > UINT64_MAX >> (64 - bits) || strchr(text, '-') == text) return NULL;
    memcpy(out, &value, size);
  }
  return end == text ? NULL : end;
}

/* "1.5", "2j" or "1.5-2j". */
static const char *parse_complex(const char *text, double *out_re, double *out_im) {
  char *end = NULL;
  *out_re = strtod(text, &end);
  *out_im = 0;
  if (end == text) return NULL;
  if (*end == '+' || *end == '-') {
    const char *imaginary = end;
    *out_im = strtod(imaginary, &end);
    return end != imaginary && *end == 'j' ? end + 1 : NULL;
  }
  if (*end != 'j') return end;
  *out_im = *out_re;
  *out_re = 0;
  return end + 1;
}

const char *tool_element_parse(kiln_dtype dtype, const char *text, void *out) {
  const size_t size = kiln_dtype_size(dtype);
  double re = 0, im = 0;
  if (dtype == KILN_DTYPE_BOOL) return parse_bool(text, out);
  if (tool_element_class_of(dtype) == TOOL_ELEMENT_INT) {
    const bool is_signed = dtype == KILN_DTYPE_I8 || dtype == KILN_DTYPE_I16 ||
                           dtype == KILN_DTYPE_I32 || dtype == KILN_DTYPE_I64;
    return parse_int(text, is_signed, size, out);
  }
  const char *end = parse_complex(text, &re, &im);
  if (tool_element_class_of(dtype) == TOOL_ELEMENT_COMPLEX) {
    const kiln_dtype part = part_of(dtype);
    tool_element_store(part, out, 0, re);
    tool_element_store(part, out, 1, im);
  } else {
    tool_element_store(dtype, out, 0, re);
    if (end && end > text && end[-1] == 'j') return NULL;
  }
  return end;
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
