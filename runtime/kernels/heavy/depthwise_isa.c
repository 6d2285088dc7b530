/* depthwise_isa.c: convolutions whose groups have one input channel (conv.h), in float and double.
 *
 * There is nothing to share between planes, so each is done by itself: its rows are copied to a
 * padded tile with the padding around them, sorted for the step along x, and vectors of outputs
 * along x, four rows at once, are summed in registers: each vector of the padded tile is read once
 * for the rows that it serves. The padding of a padded tile is the same for all planes of a slab
 * and written once. */
#include <string.h>

#include "runtime/kernels/heavy/conv.h"
#include "runtime/kernels/heavy/evens.h"
#include "runtime/kernels/isa.h"
#include "runtime/math/math.h"

#define NAME(name) KILN_ISA_CAT4(name, _, TAG, KILN_KERNEL_ISA)

#if KILN_KERNEL_LEVEL > 0
#define FMA_f32(a, b, x) ((kiln_f32v)KILN_MATH_FMA_F32(b, x, a))
#define FMA_f64(a, b, x) ((kiln_f64v)KILN_MATH_FMA_F64(b, x, a))
#else
#define FMA_f32(a, b, x) ((a) + (b) * (x))
#define FMA_f64(a, b, x) ((a) + (b) * (x))
#endif

/* STORE_SOME: the first n < lanes elements. LOAD_PART: elements [low, high), 0 for the others,
 * which are not touched. */
#if KILN_KERNEL_LEVEL == 2
typedef float half_v __attribute__((vector_size(32)));
typedef half_v half_v_u __attribute__((aligned(4), may_alias));
#define FMA_f32h(a, b, x) ((half_v)_mm256_fmadd_ps(b, x, a))
#define BITS(low, high) (((1u << (high)) - 1) & ~0u << (low))
#define LOAD_PART_f32(p, low, high) \
  ((kiln_f32v)_mm512_maskz_loadu_ps((__mmask16)BITS(low, high), p))
#define LOAD_PART_f64(p, low, high) ((kiln_f64v)_mm512_maskz_loadu_pd((__mmask8)BITS(low, high), p))
#define STORE_SOME_f32(p, v, n) _mm512_mask_storeu_ps(p, (__mmask16)BITS(0, n), (__m512)(v))
#define STORE_SOME_f32h(p, v, n) _mm256_mask_storeu_ps(p, (__mmask8)BITS(0, n), (__m256)(v))
#define STORE_SOME_f64(p, v, n) _mm512_mask_storeu_pd(p, (__mmask8)BITS(0, n), (__m512d)(v))
#elif KILN_KERNEL_LEVEL == 1
static inline __m256i bits_f32(int64_t low, int64_t high) {
  const __m256i at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32((int)low), at),
                             _mm256_cmpgt_epi32(_mm256_set1_epi32((int)high), at));
}
static inline __m256i bits_f64(int64_t low, int64_t high) {
  const __m256i at = _mm256_setr_epi64x(0, 1, 2, 3);
  return _mm256_andnot_si256(_mm256_cmpgt_epi64(_mm256_set1_epi64x(low), at),
                             _mm256_cmpgt_epi64(_mm256_set1_epi64x(high), at));
}
#define LOAD_PART_f32(p, low, high) ((kiln_f32v)_mm256_maskload_ps(p, bits_f32(low, high)))
#define LOAD_PART_f64(p, low, high) ((kiln_f64v)_mm256_maskload_pd(p, bits_f64(low, high)))
#define STORE_SOME_f32(p, v, n) _mm256_maskstore_ps(p, bits_f32(0, n), (__m256)(v))
#define STORE_SOME_f64(p, v, n) _mm256_maskstore_pd(p, bits_f64(0, n), (__m256d)(v))
#else
static inline kiln_f32v load_part_f32(const float *from, int64_t low, int64_t high) {
  kiln_f32v v = {0};
  for (int64_t i = low; i < high; i++) v[i] = from[i];
  return v;
}
static inline kiln_f64v load_part_f64(const double *from, int64_t low, int64_t high) {
  kiln_f64v v = {0};
  for (int64_t i = low; i < high; i++) v[i] = from[i];
  return v;
}
#define LOAD_PART_f32 load_part_f32
#define LOAD_PART_f64 load_part_f64
#define STORE_SOME_f32(p, v, n) \
  for (int64_t at_ = 0; at_ < (n); at_++) (p)[at_] = (v)[at_]
#define STORE_SOME_f64 STORE_SOME_f32
#endif
#define FMA KILN_ISA_CAT2(FMA_, TAG)
#define EVENS KILN_ISA_CAT2(EVENS_, TAG)
#define ODDS KILN_ISA_CAT2(ODDS_, TAG)
#define LOAD_PART KILN_ISA_CAT2(LOAD_PART_, TAG)
#define STORE_SOME KILN_ISA_CAT2(STORE_SOME_, TAG)

typedef struct slab {
  const kiln_conv *c;
  const kiln_conv_plan *p;
  int64_t group, groups, row, rows; /* outputs [row, row + rows) of some groups */
  int64_t image;
  int64_t length, pitch, first_row, padded_rows; /* of the padded tile: of a phase, of a row; the
                                                input row of the first; how many */
  kiln_conv_phasing phasing;
  int64_t offsets[KILN_CONV_DEPTHWISE_TAPS]; /* of the taps along x, in a row of the padded tile */
} slab;

static void begin_slab(slab *u, const kiln_conv *c, const kiln_conv_plan *p, int64_t index) {
  const kiln_conv_axis *y = &p->axis[1], *x = &p->axis[2];
  const int64_t blocks = (y->out + p->slab_rows - 1) / p->slab_rows;
  const int64_t parts = (c->groups + p->slab_groups - 1) / p->slab_groups;
  u->c = c;
  u->p = p;
  u->row = index % blocks * p->slab_rows;
  u->rows = y->out - u->row < p->slab_rows ? y->out - u->row : p->slab_rows;
  u->group = index / blocks % parts * p->slab_groups;
  u->groups = c->groups - u->group < p->slab_groups ? c->groups - u->group : p->slab_groups;
  u->image = index / blocks / parts;
  kiln__conv_phase(x, x->out, &u->phasing);
  u->length = kiln__conv_plane_length(&u->phasing);
  u->pitch = u->phasing.phases * u->length;
  u->first_row = y->first + u->row * y->step;
  u->padded_rows = (u->rows - 1) * y->step + (y->taps - 1) * y->tap_step + 1;
  for (int64_t t = 0; t < x->taps; t++) {
    u->offsets[t] = t % u->phasing.period * u->length + t / u->phasing.period * u->phasing.advance;
  }
}
#define TAG f32
#define T float
#define V kiln_f32v
#define VU kiln_f32v_u
#include "runtime/kernels/heavy/depthwise_isa.h"
#undef TAG
#undef V
#undef VU
#undef FILL

#if KILN_KERNEL_LEVEL == 2
#define TAG f32h
#define FILL KILN_ISA_CAT2(fill_f32, KILN_KERNEL_ISA)
#define V half_v
#define VU half_v_u
#include "runtime/kernels/heavy/depthwise_isa.h"
#undef TAG
#undef V
#undef VU
#undef FILL
#endif
#undef T

#define TAG f64
#define T double
#define V kiln_f64v
#define VU kiln_f64v_u
#include "runtime/kernels/heavy/depthwise_isa.h"

void KILN_ISA_CAT2(kiln__depthwise_f32_, KILN_KERNEL_ISA)(const kiln_conv *c,
                                                          const kiln_conv_plan *p, int64_t begin,
                                                          int64_t end, void *scratch) {
#if KILN_KERNEL_LEVEL == 2
  if (p->axis[2].out <= 8) { /* half a vector is twice as fast */
    for (int64_t i = begin; i < end; i++)
      KILN_ISA_CAT2(run_f32h, KILN_KERNEL_ISA)(c, p, i, scratch);
    return;
  }
#endif
  for (int64_t i = begin; i < end; i++) KILN_ISA_CAT2(run_f32, KILN_KERNEL_ISA)(c, p, i, scratch);
}
void KILN_ISA_CAT2(kiln__depthwise_f64_, KILN_KERNEL_ISA)(const kiln_conv *c,
                                                          const kiln_conv_plan *p, int64_t begin,
                                                          int64_t end, void *scratch) {
  for (int64_t i = begin; i < end; i++) KILN_ISA_CAT2(run_f64, KILN_KERNEL_ISA)(c, p, i, scratch);
}
