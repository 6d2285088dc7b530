/* quant.h: quantised tensors: dtypes quint8, qint8 and qint32, with scale and zero point, or an
 * array of both along one axis.
 *
 * The parameters are a side structure, so plain tensors pay nothing. No kernel knows of it but
 * those of kernels/quant/: in a unit where quantised tensors may be (kiln_unit.quantised) every
 * operator that takes tensors is wrapped: those that only move elements hand the parameters on, the
 * others refuse, so that nothing ever computes with the integers by accident. */
#pragma once

#include "runtime/kernel.h"

/* Numbers as PyTorch's QScheme has them. */
typedef enum kiln_qscheme {
  KILN_QSCHEME_PER_TENSOR = 0,
  KILN_QSCHEME_PER_CHANNEL = 1,
} kiln_qscheme;

/* Immutable, shared. */
typedef struct kiln_quant {
  kiln_side side;
  kiln_mem *mem;
  kiln_qscheme scheme;
  double scale; /* per tensor */
  int64_t zero_point;
  int axis; /* per channel */
  int64_t count;
  double *scales; /* [count], in this block */
  int64_t *zero_points;
} kiln_quant;

static inline bool kiln_dtype_is_quant(kiln_dtype dtype) {
  return dtype >= KILN_DTYPE_QI8 && dtype <= KILN_DTYPE_QI32;
}
static inline bool kiln_tensor_is_quant(const kiln_tensor *t) {
  return kiln_dtype_is_quant(kiln_tensor_dtype(t)) && !kiln_tensor_is_undefined(t);
}
/* Borrowed; NULL for tensors that are not quantised, or not told how. */
static inline const kiln_quant *kiln_tensor_quant(const kiln_tensor *t) {
  return (const kiln_quant *)(const void *)kiln_tensor_side(t, KILN_SIDE_QUANT);
}

/* Whether it is a quantised tensor, or a container with one. */
bool kiln_ivalue_holds_quant(kiln_ivalue v);

/* Checks scale and zero point against `dtype`: KILN_OP_ERROR. */
kiln_status *kiln_quant_create(kiln_mem *mem, kiln_dtype dtype, double scale, int64_t zero_point,
                               kiln_quant **out_quant) KILN_MUST_USE;
/* The arrays are copied. */
kiln_status *kiln_quant_create_channels(kiln_mem *mem, kiln_dtype dtype, int axis, int64_t count,
                                        const double *scales, const int64_t *zero_points,
                                        kiln_quant **out_quant) KILN_MUST_USE;
/* Scales (F64) or zero points (I64) by channels, as a tensor. */
kiln_status *kiln_quant_column(const kiln_quant *quant, bool zero_points,
                               kiln_tensor **out_tensor) KILN_MUST_USE;
bool kiln_quant_equal(const kiln_quant *a, const kiln_quant *b);

/* The integer dtype with the same elements: quint8 -> u8. */
kiln_dtype kiln_quant_integers(kiln_dtype dtype);
/* A contiguous F32 tensor of what `t` stands for. */
kiln_status *kiln_tensor_dequantize(kiln_mem *mem, kiln_cache *cache, const kiln_tensor *t,
                                    kiln_tensor **out_tensor) KILN_MUST_USE;
/* "scale=0.1, zero_point=3" and so on, as Python prints them. */
void kiln_quant_print(kiln_text *text, const kiln_quant *quant);

/* The kernel to run where quantised tensors may be; itself where it may see them, or never sees a
 * tensor. */
const kiln_kernel *kiln_quant_wrap(kiln_arena *arena, const kiln_kernel *kernel);
