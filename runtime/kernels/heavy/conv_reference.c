/* conv_reference.c: convolutions in plain loops: the twin that tests compare the fast kernels with,
 * and what integers (which wrap around) and complex numbers take. */
#include "runtime/kernels/heavy/conv.h"

#include <complex.h>

/* The input position of a tap; false: outside. */
static inline bool reach(const kiln_conv_axis *a, int64_t out, int64_t tap, int64_t *position) {
  *position = a->first + out * a->step + tap * a->tap_step;
  return *position >= 0 && *position < a->in;
}

#define PLAIN_CONV(name, type, sum_type)                                                          \
  static sum_type sum_##name(const kiln_conv *c, const type *in, const type *w, const int64_t *o, \
                             sum_type sum) {                                                      \
    const kiln_conv_axis *z = &c->axis[0], *y = &c->axis[1], *x = &c->axis[2];                    \
    for (int64_t i = 0; i < c->channels; i++, in += c->in_channel, w += c->w_channel) {           \
      for (int64_t tz = 0; tz < z->taps; tz++) {                                                  \
        for (int64_t ty = 0; ty < y->taps; ty++) {                                                \
          for (int64_t tx = 0; tx < x->taps; tx++) {                                              \
            int64_t iz, iy, ix;                                                                   \
            if (!reach(z, o[0], tz, &iz) || !reach(y, o[1], ty, &iy) || !reach(x, o[2], tx, &ix)) \
              continue;                                                                           \
            sum += (sum_type)in[iz * z->in_stride + iy * y->in_stride + ix * x->in_stride] *      \
                   (sum_type)w[tz * z->w_tap + ty * y->w_tap + tx * x->w_tap];                    \
          }                                                                                       \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
    return sum;                                                                                   \
  }                                                                                               \
  static void plain_##name(const kiln_conv *c) {                                                  \
    const int64_t all = c->batch * c->groups * c->outputs;                                        \
    for (int64_t i = 0; i < all; i++) {                                                           \
      const int64_t oc = i % (c->groups * c->outputs), image = i / (c->groups * c->outputs);      \
      const int64_t group = oc / c->outputs;                                                      \
      const type *in =                                                                            \
          (const type *)c->in + image * c->in_batch + group * c->channels * c->in_channel;        \
      const type *w =                                                                             \
          (const type *)c->weight + group * c->w_group + oc % c->outputs * c->w_output;           \
      type *out = (type *)c->out + image * c->out_batch + oc * c->out_channel;                    \
      const sum_type bias = c->bias ? (sum_type)((const type *)c->bias)[oc] : (sum_type)0;        \
      int64_t o[3];                                                                               \
      for (o[0] = 0; o[0] < c->axis[0].out; o[0]++) {                                             \
        for (o[1] = 0; o[1] < c->axis[1].out; o[1]++) {                                           \
          for (o[2] = 0; o[2] < c->axis[2].out; o[2]++) {                                         \
            out[o[0] * c->axis[0].out_stride + o[1] * c->axis[1].out_stride +                     \
                o[2] * c->axis[2].out_stride] = (type)sum_##name(c, in, w, o, bias);              \
          }                                                                                       \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
  }
PLAIN_CONV(f32, float, double)
PLAIN_CONV(f64, double, double)
PLAIN_CONV(i64, int64_t, uint64_t)
PLAIN_CONV(c128, double complex, double complex)

void kiln__conv_reference(kiln_dtype dtype, const kiln_conv *c) {
  switch (dtype) {
    case KILN_DTYPE_F32: plain_f32(c); break;
    case KILN_DTYPE_F64: plain_f64(c); break;
    case KILN_DTYPE_I64: plain_i64(c); break;
    default: plain_c128(c); break;
  }
}
