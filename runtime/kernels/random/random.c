/* random.c: tensors of random numbers, and the continuous distributions that fill them.
 *
 * The sequence is PyTorch's, to the word: which word of the generator makes which element follows
 * from dtype, number of elements and layout, as docs/numerics.md tells. */
#include "runtime/kernels/random/random.h"

#include <math.h>
#include <string.h>

#include "runtime/half.h"
#include "runtime/kernels/factory/factory.h"
#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/composite.h"

kiln_status *kiln__generator(kiln_call *call, kiln_ivalue v, kiln_random **out) {
  if (v.tag == KILN_TAG_NONE) return kiln_call_random(call, out);
  *out = kiln_random_of(v);
  return *out ? NULL : KILN_OP_FAIL("Expected a 'cpu' generator");
}

/* -- Filling -- */

/* Dimensions of a tensor from the innermost in memory, in elements; those that lie behind each
 * other are one. */
typedef struct layout {
  int rank;
  int64_t sizes[KILN_MAX_RANK + 1], strides[KILN_MAX_RANK + 1];
} layout;

static void add_dim(layout *l, int64_t size, int64_t stride) {
  int at = l->rank++;
  for (; at > 0 && l->strides[at - 1] > stride; at--) { /* stable: later dimensions are inner */
    l->sizes[at] = l->sizes[at - 1];
    l->strides[at] = l->strides[at - 1];
  }
  l->sizes[at] = size;
  l->strides[at] = stride;
}
static layout layout_of(const kiln_tensor *t, bool is_complex) {
  layout l = {0}, merged = {.rank = 1, .sizes = {1}, .strides = {1}};
  if (is_complex) add_dim(&l, 2, 1);
  for (int d = kiln_tensor_rank(t) - 1; d >= 0; d--) {
    const int64_t size = kiln_tensor_sizes(t)[d], stride = kiln_tensor_strides(t)[d];
    if (size != 1) add_dim(&l, size, is_complex ? 2 * stride : stride);
  }
  for (int d = 0; d < l.rank; d++) {
    const int last = merged.rank - 1;
    if (d == 0) {
      merged.sizes[0] = l.sizes[0];
      merged.strides[0] = l.strides[0];
    } else if (l.strides[d] == merged.sizes[last] * merged.strides[last]) {
      merged.sizes[last] *= l.sizes[d];
    } else {
      merged.sizes[merged.rank] = l.sizes[d];
      merged.strides[merged.rank++] = l.strides[d];
    }
  }
  return merged;
}
static kiln_dtype real_dtype(kiln_dtype dtype) {
  return dtype == KILN_DTYPE_C64    ? KILN_DTYPE_F32
         : dtype == KILN_DTYPE_C128 ? KILN_DTYPE_F64
                                    : dtype;
}

/* Elements drawn at a time where they are converted or scattered, and between two looks at the
 * limits. */
enum { CHUNK = 512, GRAIN = 1 << 16 };

/* n elements, `step` apart. */
static void fill_part(kiln_random *g, kiln__draw draw, const void *params, size_t size,
                      kiln_cast_loop store, char *to, int64_t item, int64_t step, int64_t n) {
  _Alignas(16) char drawn[CHUNK * sizeof(double)];
  if (!store && step == 1) {
    draw(g, params, to, n);
    return;
  }
  for (int64_t i = 0; i < n; i += CHUNK) {
    const int64_t part = n - i < CHUNK ? n - i : CHUNK;
    draw(g, params, drawn, part);
    if (store) {
      store(to + i * step * item, step * item, drawn, (int64_t)size, part);
    } else {
      for (int64_t k = 0; k < part; k++) {
        memcpy(to + (i + k) * step * item, drawn + (size_t)k * size, size);
      }
    }
  }
}
kiln_status *kiln__random_fill(kiln_call *call, kiln_random *g, kiln_tensor *t, kiln__draw draw,
                               kiln_ctype ctype, const void *params) {
  const kiln_dtype dtype = kiln_tensor_dtype(t), real = real_dtype(dtype);
  void *data;
  KILN_TRY(kiln__check_dtype(call, dtype));
  KILN_TRY(kiln__check_overlap(t, t));
  if (t->numel == 0) return NULL;
  KILN_TRY(kiln_tensor_writable_data(t, &data));
  const layout l = layout_of(t, real != dtype);
  const int64_t item = (int64_t)kiln_dtype_bytes(real);
  const kiln_cast_loop store =
      kiln_ctype_dtype(ctype) == real ? NULL : call->dispatch->store[ctype][real];
  int64_t index[KILN_MAX_RANK + 1] = {0};
  char *to = data;
  kiln_status *status = NULL;
  pthread_mutex_lock(&g->lock);
  for (int d = 0; !status && d < l.rank;) {
    for (int64_t i = 0; !status && i < l.sizes[0]; i += GRAIN) {
      const int64_t part = l.sizes[0] - i < GRAIN ? l.sizes[0] - i : GRAIN;
      fill_part(g, draw, params, kiln_ctype_size(ctype), store, to + i * l.strides[0] * item, item,
                l.strides[0], part);
      status = kiln_call_check(call, 0);
    }
    for (d = 1; d < l.rank; d++) {
      to += l.strides[d] * item;
      if (++index[d] < l.sizes[d]) break;
      to -= l.strides[d] * l.sizes[d] * item;
      index[d] = 0;
    }
  }
  pthread_mutex_unlock(&g->lock);
  return status;
}

/* -- Uniform -- */

void kiln__draw_f64s(kiln_random *g, double *to, int64_t n) {
  while (n > 0) {
    const int64_t left = (KILN_RANDOM_WORDS - g->at) / 2, pairs = n < left ? n : left;
    const uint32_t *w = g->words + g->at;
    for (int64_t i = 0; i < pairs; i++) {
      const uint64_t word = (uint64_t)w[2 * i] << 32 | w[2 * i + 1];
      to[i] = (double)(int64_t)(word & 0x1fffffffffffff) * 0x1p-53;
    }
    g->at += 2 * (int)pairs;
    to += pairs;
    n -= pairs;
    if (n > 0) { /* of two blocks, or the first of one */
      *to++ = kiln_random_f64(g);
      n--;
    }
  }
}

typedef struct range {
  double from, to;
  kiln_cast_loop store, load; /* of a small float */
} range;
static void draw_uniform_f64(kiln_random *g, const void *params, void *to, int64_t n) {
  const range *r = params;
  double *x = to;
  kiln__draw_f64s(g, x, n);
  for (int64_t i = 0; i < n; i++) x[i] = x[i] * (r->to - r->from) + r->from;
}
static void draw_uniform_f32(kiln_random *g, const void *params, void *to, int64_t n) {
  const range *r = params;
  const float from = (float)r->from, width = (float)r->to - from;
  float *x = to;
  while (n > 0) {
    if (g->at == KILN_RANDOM_WORDS) kiln__random_refill(g);
    const int64_t left = KILN_RANDOM_WORDS - g->at, part = n < left ? n : left;
    const uint32_t *words = g->words + g->at;
    for (int64_t i = 0; i < part; i++) {
      x[i] = (float)(int32_t)(words[i] & 0xffffff) * 0x1p-24f * width + from;
    }
    g->at += (int)part;
    x += part;
    n -= part;
  }
}
/* Of the small floats: what is rounded up to the end becomes the beginning. At most CHUNK. */
static void draw_uniform_f16(kiln_random *g, const void *params, void *to, int64_t n) {
  const range *r = params;
  uint16_t stored[CHUNK];
  float *x = to, back[CHUNK], end = (float)r->to;
  draw_uniform_f32(g, params, to, n);
  r->store((char *)stored, 2, (const char *)&end, 4, 1);
  r->load((char *)&end, 4, (const char *)stored, 2, 1);
  r->store((char *)stored, 2, to, 4, n);
  r->load((char *)back, 4, (const char *)stored, 2, n);
  for (int64_t i = 0; i < n; i++) x[i] = back[i] >= end ? (float)r->from : x[i];
}
static kiln_status *fill_uniform(kiln_call *call, kiln_random *g, kiln_tensor *t, range r) {
  const kiln_dtype dtype = real_dtype(kiln_tensor_dtype(t));
  if (!kiln_dtype_is_float(dtype)) return kiln__not_implemented(call, kiln_tensor_dtype(t));
  if (dtype == KILN_DTYPE_F64) {
    return kiln__random_fill(call, g, t, draw_uniform_f64, KILN_CTYPE_F64, &r);
  }
  r.store = call->dispatch->store[KILN_CTYPE_F32][dtype];
  r.load = call->dispatch->load[dtype][KILN_CTYPE_F32];
  return kiln__random_fill(call, g, t,
                           dtype == KILN_DTYPE_F32 ? draw_uniform_f32 : draw_uniform_f16,
                           KILN_CTYPE_F32, &r);
}

/* -- Normal -- */

typedef struct bell {
  double mean, std;
} bell;
static void draw_normal(kiln_random *g, const void *params, void *to, int64_t n) {
  const bell *b = params;
  double *x = to;
  for (int64_t i = 0; i < n; i++) x[i] = kiln_random_normal(g) * b->std + b->mean;
}
static void draw_log_normal(kiln_random *g, const void *params, void *to, int64_t n) {
  double *x = to;
  draw_normal(g, params, to, n);
  for (int64_t i = 0; i < n; i++) x[i] = exp(x[i]);
}

/* Uniform numbers to normal ones: in each block of 16 the first half gives the radii, the second
 * the angles (Box and Muller). n is a multiple of 16, at most CHUNK. */
static void loop1(const kiln_call *call, kiln_ctype ctype, kiln_pw_functor functor, void *to,
                  const void *from, int64_t n) {
  char *data[] = {to, (char *)(uintptr_t)from};
  const int64_t item = (int64_t)kiln_ctype_size(ctype), strides[] = {item, item};
  kiln_pw_params params = {0};
  call->dispatch->loops[ctype][functor](data, strides, n, &params);
}
#define BLOCKS(name, type, ctype, draw)                                                        \
  static void name(const kiln_call *call, kiln_random *g, const bell *b, type *x, int64_t n) { \
    type radius[CHUNK / 2], angle[CHUNK / 2], sine[CHUNK / 2];                                 \
    const type mean = (type)b->mean, std = (type)b->std;                                       \
    const range unit = {.to = 1};                                                              \
    draw(g, &unit, x, n);                                                                      \
    for (int64_t i = 0; i < n / 2; i++) {                                                      \
      const int64_t at = i / 8 * 16 + i % 8;                                                   \
      radius[i] = 1 - x[at];                                                                   \
      angle[i] = (type)(2 * M_PI) * x[at + 8];                                                 \
    }                                                                                          \
    loop1(call, ctype, KILN_PW_log, radius, radius, n / 2);                                    \
    loop1(call, ctype, KILN_PW_sin, sine, angle, n / 2);                                       \
    loop1(call, ctype, KILN_PW_cos, angle, angle, n / 2);                                      \
    for (int64_t i = 0; i < n / 2; i++) radius[i] *= -2;                                       \
    loop1(call, ctype, KILN_PW_sqrt, radius, radius, n / 2);                                   \
    for (int64_t i = 0; i < n / 2; i++) {                                                      \
      const int64_t at = i / 8 * 16 + i % 8;                                                   \
      x[at] = radius[i] * angle[i] * std + mean;                                               \
      x[at + 8] = radius[i] * sine[i] * std + mean;                                            \
    }                                                                                          \
  }
BLOCKS(normal_blocks_f32, float, KILN_CTYPE_F32, draw_uniform_f32)
BLOCKS(normal_blocks_f64, double, KILN_CTYPE_F64, draw_uniform_f64)
#undef BLOCKS

typedef struct normal_job {
  kiln_call *call;
  kiln_random *g;
  const bell *b;
  kiln_ctype ctype;
  kiln_cast_loop store; /* NULL: the elements are of ctype */
  char *data;
  int64_t item;
} normal_job;
/* Blocks of 16 from element `at` on. */
static void normal_chunk(const normal_job *j, int64_t at, int64_t n) {
  double drawn[CHUNK];
  char *to = j->data + at * j->item;
  void *x = j->store ? (void *)drawn : to;
  if (j->ctype == KILN_CTYPE_F64) {
    normal_blocks_f64(j->call, j->g, j->b, x, n);
  } else {
    normal_blocks_f32(j->call, j->g, j->b, x, n);
  }
  if (j->store) j->store(to, j->item, x, (int64_t)kiln_ctype_size(j->ctype), n);
}
/* Where the last block is not whole, the last 16 are drawn once more, after what is left (of small
 * floats: in its place). */
static kiln_status *normal_blocks(const normal_job *j, int64_t n) {
  const int64_t whole = n / 16 * 16;
  for (int64_t i = 0; i < whole; i += CHUNK) {
    normal_chunk(j, i, whole - i < CHUNK ? whole - i : CHUNK);
    if (i % GRAIN == 0) KILN_TRY(kiln_call_check(j->call, 0));
  }
  if (n == whole) return NULL;
  for (int64_t i = whole; i < n && !j->store; i++) {
    (void)kiln_random_u32(j->g);
    if (j->ctype == KILN_CTYPE_F64) (void)kiln_random_u32(j->g);
  }
  normal_chunk(j, n - 16, 16);
  return NULL;
}
kiln_status *kiln__random_normal(kiln_call *call, kiln_random *g, kiln_tensor *t, double mean,
                                 double std) {
  const kiln_dtype dtype = kiln_tensor_dtype(t), real = real_dtype(dtype);
  const bell b = {mean, real == dtype ? std : std / sqrt(2)};
  const int64_t n = real == dtype ? t->numel : 2 * t->numel;
  if (!(std >= 0)) return KILN_OP_FAIL("normal expects std >= 0.0, but found std %g", std);
  if (t->numel > 0 && !kiln_dtype_is_float(real)) return kiln__not_implemented(call, dtype);
  if (n < 16 || !kiln_tensor_is_contiguous(t)) {
    return kiln__random_fill(call, g, t, draw_normal, KILN_CTYPE_F64, &b);
  }
  normal_job j = {.call = call, .g = g, .b = &b, .item = (int64_t)kiln_dtype_bytes(real)};
  void *data;
  KILN_TRY(kiln_tensor_writable_data(t, &data));
  j.data = data;
  j.ctype = real == KILN_DTYPE_F64 ? KILN_CTYPE_F64 : KILN_CTYPE_F32;
  if (kiln_ctype_dtype(j.ctype) != real) j.store = call->dispatch->store[j.ctype][real];
  pthread_mutex_lock(&g->lock);
  kiln_status *status = normal_blocks(&j, n);
  pthread_mutex_unlock(&g->lock);
  return status;
}

/* -- Further continuous distributions, and the geometric one: two words an element -- */

static void draw_exponential(kiln_random *g, const void *params, void *to, int64_t n) {
  const double *lambda = params;
  double *x = to;
  kiln__draw_f64s(g, x, n);
  for (int64_t i = 0; i < n; i++) x[i] = -1 / *lambda * log1p(-x[i]);
}
static void draw_cauchy(kiln_random *g, const void *params, void *to, int64_t n) {
  const bell *b = params;
  double *x = to;
  kiln__draw_f64s(g, x, n);
  for (int64_t i = 0; i < n; i++) x[i] = b->mean + b->std * tan(M_PI * (x[i] - 0.5));
}
static void draw_geometric(kiln_random *g, const void *params, void *to, int64_t n) {
  const double *p = params, scale = log1p(-*p);
  double *x = to;
  kiln__draw_f64s(g, x, n);
  for (int64_t i = 0; i < n; i++) x[i] = ceil(log(x[i]) / scale);
}
kiln_status *kiln__random_exponential(kiln_call *call, kiln_random *g, kiln_tensor *t,
                                      double lambda) {
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  if (!kiln_dtype_is_float(dtype)) {
    return KILN_OP_FAIL(
        "Exponential distribution is a continuous probability distribution. dtype must be a "
        "floating point but you specified %s",
        kiln_dtype_ir_name(dtype));
  }
  if (!(lambda > 0)) {
    return KILN_OP_FAIL("exponential_ expects lambda > 0.0, but found lambda=%g", lambda);
  }
  return kiln__random_fill(call, g, t, draw_exponential, KILN_CTYPE_F64, &lambda);
}

/* -- Operators in place: self, parameters, generator -- */

kiln_status *kiln__random_begin(kiln_call *call, const kiln_ivalue *args, int at, kiln_random **g,
                                kiln_ivalue *outs) {
  KILN_TRY(kiln__generator(call, args[at], g));
  if (!kiln__dest(outs)) kiln__give(outs, kiln_tensor_retain(SELF));
  return NULL;
}
KILN_KERNEL(uniform_) {
  const kiln_dtype dtype = real_dtype(kiln_tensor_dtype(SELF));
  const range r = {.from = kiln_arg_float(args, 1), .to = kiln_arg_float(args, 2)};
  const double most = kiln_float_greatest(dtype);
  kiln_random *g;
  KILN_TRY(kiln__random_begin(call, args, 3, &g, outs));
  for (int i = 0; i < 2; i++) {
    if (!(fabs(i ? r.to : r.from) <= most)) {
      return KILN_OP_FAIL("%s is out of bounds for %s", i ? "to" : "from",
                          kiln__dtype_c_name(dtype));
    }
  }
  if (r.from > r.to) {
    return KILN_OP_FAIL("uniform_ expects to return a [from, to) range, but found from=%g > to=%g",
                        r.from, r.to);
  }
  if (r.to - r.from > most) {
    return KILN_OP_FAIL(
        "uniform_ expects to-from <= std::numeric_limits<%s>::max(), but found to=%g and from=%g "
        "which result in to-from to exceed the limit",
        kiln_dtype_ir_name(dtype), r.to, r.from);
  }
  return fill_uniform(call, g, SELF, r);
}
KILN_KERNEL(normal_) {
  kiln_random *g;
  KILN_TRY(kiln__random_begin(call, args, 3, &g, outs));
  return kiln__random_normal(call, g, SELF, kiln_arg_float(args, 1), kiln_arg_float(args, 2));
}
KILN_KERNEL(exponential_) {
  kiln_random *g;
  KILN_TRY(kiln__random_begin(call, args, 2, &g, outs));
  return kiln__random_exponential(call, g, SELF, kiln_arg_float(args, 1));
}
KILN_KERNEL(cauchy_) {
  const bell b = {kiln_arg_float(args, 1), kiln_arg_float(args, 2)};
  const kiln_dtype dtype = kiln_tensor_dtype(SELF);
  kiln_random *g;
  KILN_TRY(kiln__random_begin(call, args, 3, &g, outs));
  if (!(b.std > 0)) return KILN_OP_FAIL("cauchy_ expects sigma > 0.0, but found sigma=%g", b.std);
  if (!kiln_dtype_is_float(dtype)) {
    return KILN_OP_FAIL(
        "Cauchy distribution is a continuous probability distribution. dtype must be a floating "
        "point but you specified %s",
        kiln__dtype_c_name(dtype));
  }
  return kiln__random_fill(call, g, SELF, draw_cauchy, KILN_CTYPE_F64, &b);
}
KILN_KERNEL(log_normal_) {
  const bell b = {kiln_arg_float(args, 1), kiln_arg_float(args, 2)};
  const kiln_dtype dtype = kiln_tensor_dtype(SELF);
  kiln_random *g;
  KILN_TRY(kiln__random_begin(call, args, 3, &g, outs));
  if (!(b.std > 0)) return KILN_OP_FAIL("log_normal_ expects std > 0.0, but found std=%g", b.std);
  if (!kiln_dtype_is_float(dtype)) return kiln__not_implemented(call, dtype);
  return kiln__random_fill(call, g, SELF, draw_log_normal, KILN_CTYPE_F64, &b);
}
KILN_KERNEL(geometric_) {
  const double p = kiln_arg_float(args, 1);
  const kiln_dtype dtype = kiln_tensor_dtype(SELF);
  kiln_random *g;
  KILN_TRY(kiln__random_begin(call, args, 2, &g, outs));
  if (!(p > 0 && p < 1)) {
    return KILN_OP_FAIL("geometric_ expects p to be in (0, 1), but got p=%g", p);
  }
  if (dtype == KILN_DTYPE_BOOL || kiln_dtype_is_complex(dtype)) {
    return kiln__not_implemented(call, dtype);
  }
  return kiln__random_fill(call, g, SELF, draw_geometric, KILN_CTYPE_F64, &p);
}

/* -- New tensors: size [, generator], dtype, layout, device, pin_memory -- */

static kiln_status *fill_unit(kiln_call *call, kiln_random *g, kiln_tensor *t, bool normal) {
  return normal ? kiln__random_normal(call, g, t, 0, 1)
                : fill_uniform(call, g, t, (range){.to = 1});
}
kiln_status *kiln__random_new(kiln_call *call, const kiln_ivalue *args, int at, bool has_generator,
                              kiln_dtype fallback, kiln_random **g, kiln_ivalue *out) {
  const int options = at + 1 + has_generator;
  int64_t sizes[KILN_MAX_RANK];
  int rank;
  kiln_tensor *t;
  KILN_TRY(kiln__generator(call, has_generator ? args[at + 1] : kiln_none(), g));
  KILN_TRY(kiln__arg_int_list(args, at, sizes, &rank));
  KILN_TRY(kiln__check_device(args[options + 2]));
  KILN_TRY(kiln_call_tensor(call, kiln__arg_dtype_or(args, options, fallback), rank, sizes, &t));
  return kiln__give(out, t);
}
kiln_status *kiln__random_new_like(kiln_call *call, const kiln_ivalue *args, int at,
                                   bool has_generator, kiln_random **g, kiln_ivalue *out) {
  kiln_ivalue own[6] = {args[0]};
  KILN_TRY(kiln__generator(call, has_generator ? args[at] : kiln_none(), g));
  memcpy(own + 1, args + at + has_generator, sizeof *own * 5);
  return kiln_kernel_step(call, KILN_BODY_OF(empty_like), own, 6, out);
}
#define UNIT(name, has_generator, normal)                                               \
  KILN_KERNEL(name) {                                                                   \
    kiln_random *g;                                                                     \
    KILN_TRY(kiln__random_new(call, args, 0, has_generator, KILN_DTYPE_F32, &g, outs)); \
    return fill_unit(call, g, outs->u.tensor, normal);                                  \
  }
#define UNIT_LIKE(name, has_generator, normal)                               \
  KILN_KERNEL(name) {                                                        \
    kiln_random *g;                                                          \
    KILN_TRY(kiln__random_new_like(call, args, 1, has_generator, &g, outs)); \
    return fill_unit(call, g, outs->u.tensor, normal);                       \
  }
UNIT(rand, false, false)
UNIT(randn, false, true)
UNIT(rand_generator, true, false)
UNIT(randn_generator, true, true)
UNIT_LIKE(rand_like, false, false)
UNIT_LIKE(randn_like, false, true)
UNIT_LIKE(rand_like_generator, true, false)
UNIT_LIKE(randn_like_generator, true, true)

/* mean, std, size, generator, dtype, layout, device, pin_memory */
KILN_KERNEL(normal_float_float) {
  kiln_random *g;
  KILN_TRY(kiln__random_new(call, args, 2, true, KILN_DTYPE_F32, &g, outs));
  return kiln__random_normal(call, g, outs->u.tensor, kiln_arg_float(args, 0),
                             kiln_arg_float(args, 1));
}

/* -- Generators -- */

KILN_KERNEL(manual_seed) {
  kiln_random *g;
  KILN_TRY(kiln_call_random(call, &g));
  pthread_mutex_lock(&g->lock);
  kiln_random_seed(g, (uint64_t)kiln_arg_int(args, 0));
  pthread_mutex_unlock(&g->lock);
  return NULL;
}
/* device, seed */
KILN_KERNEL(Generator) {
  const bool seeded = !kiln_arg_is_none(args, 1);
  kiln_random *g;
  KILN_TRY(kiln__check_device(args[0]));
  KILN_TRY(kiln_random_create(call->env->mem,
                              seeded ? (uint64_t)kiln_arg_int(args, 1) : KILN_RANDOM_SEED, &g));
  return kiln__give_value(outs, kiln_of_box(g));
}
KILN_KERNEL(manual_seed_generator) {
  kiln_random *g;
  KILN_TRY(kiln__generator(call, args[0], &g));
  pthread_mutex_lock(&g->lock);
  kiln_random_seed(g, (uint64_t)kiln_arg_int(args, 1));
  pthread_mutex_unlock(&g->lock);
  return kiln__give_value(outs, kiln_ivalue_retain(args[0]));
}
KILN_KERNEL(seed) {
  const uint64_t seed = kiln_random_entropy();
  kiln_random *g;
  KILN_TRY(kiln__generator(call, args[0], &g));
  pthread_mutex_lock(&g->lock);
  kiln_random_seed(g, seed);
  pthread_mutex_unlock(&g->lock);
  return kiln__give_int(outs, (int64_t)seed);
}
KILN_KERNEL(initial_seed) {
  kiln_random *g;
  KILN_TRY(kiln__generator(call, args[0], &g));
  pthread_mutex_lock(&g->lock);
  kiln__give_int(outs, (int64_t)g->seed);
  pthread_mutex_unlock(&g->lock);
  return NULL;
}
