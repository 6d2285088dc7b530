/* isa.h: what every *_isa.c shares: names with the instruction set in them, loop hints. */
#pragma once

#include "runtime/kernels/dispatch.h"

/* Compiled once, for the floor, where the build knows no instruction sets. */
#ifndef KILN_KERNEL_ISA
#define KILN_KERNEL_ISA v2
#define KILN_KERNEL_LEVEL 0
#endif

#define KILN_ISA_CAT2_(a, b) a##b
#define KILN_ISA_CAT3_(a, b, c) a##b##c
#define KILN_ISA_CAT4_(a, b, c, d) a##b##c##d
#define KILN_ISA_CAT2(a, b) KILN_ISA_CAT2_(a, b)
#define KILN_ISA_CAT3(a, b, c) KILN_ISA_CAT3_(a, b, c)
#define KILN_ISA_CAT4(a, b, c, d) KILN_ISA_CAT4_(a, b, c, d)

/* The iterations of the loop that follows do not depend on each other: the result is apart from the
 * operands, or the same element for element. */
#if defined(__clang__)
#define KILN_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define KILN_IVDEP _Pragma("GCC ivdep")
#endif

/* Eight steps of the loop that follows have no jump between them: what short ones carry stays in
 * registers. */
#if defined(__clang__)
#define KILN_UNROLLED _Pragma("clang loop unroll_count(8)")
#else
#define KILN_UNROLLED _Pragma("GCC unroll 8")
#endif

/* GCC's vectoriser makes vfmaddsub of complex products, although -ffp-contract=off forbids it: what
 * follows is left scalar, up to KILN_ISA_SCALAR_END. */
#if defined(__GNUC__) && !defined(__clang__)
#define KILN_ISA_SCALAR_BEGIN \
  _Pragma("GCC push_options") _Pragma("GCC optimize(\"no-tree-vectorize\")")
#define KILN_ISA_SCALAR_END _Pragma("GCC pop_options")
#else
#define KILN_ISA_SCALAR_BEGIN
#define KILN_ISA_SCALAR_END
#endif

/* Keeps a vector that several operations use in a register: GCC would load it for each of them. */
#ifdef __x86_64__
#define KILN_IN_REGISTER(v) __asm__("" : "+v"(v))
#else
#define KILN_IN_REGISTER(v) ((void)0)
#endif

/* What table_isa.c gathers: every array and function of an instruction set. */
#define KILN_ISA_DECLARE(isa)                                                               \
  extern const kiln_pw_loop kiln__pw_b8_##isa[KILN_PW__COUNT];                              \
  extern const kiln_pw_loop kiln__pw_i32_##isa[KILN_PW__COUNT];                             \
  extern const kiln_pw_loop kiln__pw_i64_##isa[KILN_PW__COUNT];                             \
  extern const kiln_pw_loop kiln__pw_f32_##isa[KILN_PW__COUNT];                             \
  extern const kiln_pw_loop kiln__pw_f64_##isa[KILN_PW__COUNT];                             \
  extern const kiln_pw_loop kiln__pw_c64_##isa[KILN_PW__COUNT];                             \
  extern const kiln_pw_loop kiln__pw_c128_##isa[KILN_PW__COUNT];                            \
  extern const kiln_cast_loop kiln__load_##isa[KILN_DTYPE__COUNT][KILN_CTYPE__COUNT];       \
  extern const kiln_cast_loop kiln__store_##isa[KILN_CTYPE__COUNT][KILN_DTYPE__COUNT];      \
  extern const kiln_reduce_loop kiln__reduce_##isa[KILN_REDUCE__COUNT][KILN_CTYPE__COUNT];  \
  extern const kiln_place_loop kiln__places_##isa[2][KILN_CTYPE__COUNT];                    \
  extern const kiln_row_kernels kiln__rows_f32_##isa, kiln__rows_f64_##isa;                 \
  void kiln__gemm_f32_##isa(const kiln_gemm_args *part, const kiln_gemm_plan *plan,         \
                            void *scratch);                                                 \
  void kiln__gemm_f64_##isa(const kiln_gemm_args *part, const kiln_gemm_plan *plan,         \
                            void *scratch);                                                 \
  void kiln__depthwise_f32_##isa(const struct kiln_conv *c, const struct kiln_conv_plan *p, \
                                 int64_t begin, int64_t end, void *scratch);                \
  void kiln__depthwise_f64_##isa(const struct kiln_conv *c, const struct kiln_conv_plan *p, \
                                 int64_t begin, int64_t end, void *scratch);                \
  void kiln__conv_f32_##isa(const struct kiln_conv *c, const struct kiln_conv_plan *p,      \
                            const struct kiln_conv_part *part, void *scratch);              \
  void kiln__conv_f64_##isa(const struct kiln_conv *c, const struct kiln_conv_plan *p,      \
                            const struct kiln_conv_part *part, void *scratch);              \
  extern const struct kiln_blocked_set kiln__blocked_##isa;                                 \
  extern const struct kiln_winograd_set kiln__winograd_##isa;                               \
  extern const struct kiln_grouped_kernels kiln__grouped_##isa;                             \
  void kiln__recurrent_##isa(const struct kiln_recurrent_step *s, int64_t begin, int64_t end)
KILN_ISA_DECLARE(v2);
KILN_ISA_DECLARE(avx2);
KILN_ISA_DECLARE(avx512);

/* Scalar helpers of kernels, kernels/scalar_math.c. */
double kiln__erfinv(double x);
double kiln__digamma(double x);
double kiln__lgamma(double x);
