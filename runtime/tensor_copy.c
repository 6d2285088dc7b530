/* tensor_copy.c: element-wise copies between any two dtypes and geometries, and single elements.
 *
 * Equal dtypes copy bytes over collapsed dimensions. Other pairs go through a wide type in chunks
 * that stay in the first-level cache: each dtype has one loader to its wide type, and each wide
 * type a storer to every dtype, so n types need about 7 n loops, not n * n. Wide types lose nothing
 * of what they load, and a store rounds as PyTorch's one-step conversion does (int64 to half goes
 * through float there too).
 * Floating to integral truncates; out of range gives what cvttss2si and cvttsd2si give. */
#include "runtime/block.h"
#include "runtime/half.h"
#include "runtime/tensor_internal.h"
#include "runtime/type.h"

/* -- Wide types -- */

typedef struct pair32 {
  float re, im;
} pair32;
typedef struct pair64 {
  double re, im;
} pair64;
typedef enum wide_kind {
  WIDE_I64,
  WIDE_U64,
  WIDE_F32,
  WIDE_F64,
  WIDE_C64,
  WIDE_C128,
  WIDE__COUNT
} wide_kind;
typedef struct half2 {
  uint16_t re, im;
} half2;
typedef union wide_value {
  int64_t i64;
  uint64_t u64;
  float f32;
  double f64;
  pair32 c64;
  pair64 c128;
} wide_value;

enum { CHUNK = 256 };

static inline int64_t to_i64(double x) {
  return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}
static inline int32_t to_i32(double x) {
  return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}
static inline uint64_t to_u64(double x) {
  return x >= 0x1p63 && x < 0x1p64 ? (uint64_t)x : (uint64_t)to_i64(x);
}

static inline pair32 half2_to_pair(half2 v) {
  return (pair32){kiln_half_to_float(v.re), kiln_half_to_float(v.im)};
}

/* X(dtype, C type in memory, wide type, C type of the wide one, load expression of `v`) */
#define LOADERS(X)                                             \
  X(U8, uint8_t, WIDE_I64, int64_t, v)                         \
  X(I8, int8_t, WIDE_I64, int64_t, v)                          \
  X(I16, int16_t, WIDE_I64, int64_t, v)                        \
  X(I32, int32_t, WIDE_I64, int64_t, v)                        \
  X(I64, int64_t, WIDE_I64, int64_t, v)                        \
  X(BOOL, uint8_t, WIDE_I64, int64_t, v != 0)                  \
  X(U16, uint16_t, WIDE_I64, int64_t, v)                       \
  X(U32, uint32_t, WIDE_I64, int64_t, v)                       \
  X(U64, uint64_t, WIDE_U64, uint64_t, v)                      \
  X(F16, uint16_t, WIDE_F32, float, kiln_half_to_float(v))     \
  X(BF16, uint16_t, WIDE_F32, float, kiln_bf16_to_float(v))    \
  X(F8E5M2, uint8_t, WIDE_F32, float, kiln_f8e5m2_to_float(v)) \
  X(F8E4M3, uint8_t, WIDE_F32, float, kiln_f8e4m3_to_float(v)) \
  X(F32, float, WIDE_F32, float, v)                            \
  X(F64, double, WIDE_F64, double, v)                          \
  X(C32, half2, WIDE_C64, pair32, half2_to_pair(v))            \
  X(C64, pair32, WIDE_C64, pair32, v)                          \
  X(C128, pair64, WIDE_C128, pair64, v)

typedef void (*load_fn)(const char *src, int64_t step, int n, void *wide);
typedef void (*store_fn)(char *dst, int64_t step, int n, const void *wide);

/* memcpy, because a mapped storage may lie at any address. */
#define LOADER(name, type, kind, wide_type, expression)                       \
  static void load_##name(const char *src, int64_t step, int n, void *wide) { \
    wide_type *out = (wide_type *)wide;                                       \
    type v;                                                                   \
    if (step == (int64_t)sizeof v) {                                          \
      for (int i = 0; i < n; i++) {                                           \
        memcpy(&v, src + (size_t)i * sizeof v, sizeof v);                     \
        out[i] = expression;                                                  \
      }                                                                       \
    } else {                                                                  \
      for (int i = 0; i < n; i++, src += step) {                              \
        memcpy(&v, src, sizeof v);                                            \
        out[i] = expression;                                                  \
      }                                                                       \
    }                                                                         \
  }
LOADERS(LOADER)
#undef LOADER

static const struct {
  load_fn load;
  wide_kind kind;
} loaders[32] = {
#define ENTRY(name, type, kind, wide_type, expression) [KILN_DTYPE_##name] = {load_##name, kind},
    LOADERS(ENTRY)
#undef ENTRY
};

/* -- Storing: each dtype from each wide type -- */

/* X(dtype, C type, from an integer x, from a float or double x) */
#define REAL_STORES(X)                                                               \
  X(U8, uint8_t, (uint8_t)x, (uint8_t)to_i64((double)x))                             \
  X(I8, int8_t, (int8_t)x, (int8_t)to_i32((double)x))                                \
  X(I16, int16_t, (int16_t)x, (int16_t)to_i32((double)x))                            \
  X(I32, int32_t, (int32_t)x, to_i32((double)x))                                     \
  X(I64, int64_t, (int64_t)x, to_i64((double)x))                                     \
  X(BOOL, uint8_t, x != 0, x != 0)                                                   \
  X(U16, uint16_t, (uint16_t)x, (uint16_t)to_i64((double)x))                         \
  X(U32, uint32_t, (uint32_t)x, (uint32_t)to_i64((double)x))                         \
  X(U64, uint64_t, (uint64_t)x, to_u64((double)x))                                   \
  X(F16, uint16_t, kiln_float_to_half((float)x), kiln_float_to_half((float)x))       \
  X(BF16, uint16_t, kiln_float_to_bf16((float)x), kiln_float_to_bf16((float)x))      \
  X(F8E5M2, uint8_t, kiln_float_to_f8e5m2((float)x), kiln_float_to_f8e5m2((float)x)) \
  X(F8E4M3, uint8_t, kiln_float_to_f8e4m3((float)x), kiln_float_to_f8e4m3((float)x)) \
  X(F32, float, (float)x, (float)x)                                                  \
  X(F64, double, (double)x, (double)x)
#define COMPLEX_STORES(X)                               \
  X(C32, half2, uint16_t, kiln_float_to_half((float)x)) \
  X(C64, pair32, float, (float)x)                       \
  X(C128, pair64, double, (double)x)

#define STORE_LOOP(type, out_expression)     \
  for (int i = 0; i < n; i++, dst += step) { \
    type out = out_expression;               \
    memcpy(dst, &out, sizeof out);           \
  }
/* From numbers that few have it is compiled for size. */
#define STORER_i64
#define STORER_f32
#define STORER_f64
#define STORER_u64 __attribute__((cold))
#define STORER_c64 __attribute__((cold))
#define STORER_c128 __attribute__((cold))
#define STORER(name, from, type, in_type, body)                                   \
  STORER_##from static void store_##name##_##from(char *dst, int64_t step, int n, \
                                                  const void *wide) {             \
    const in_type *in = (const in_type *)wide;                                    \
    if (step == (int64_t)sizeof(type)) {                                          \
      step = (int64_t)sizeof(type);                                               \
      STORE_LOOP(type, body)                                                      \
    } else {                                                                      \
      STORE_LOOP(type, body)                                                      \
    }                                                                             \
  }

/* One conversion function each, so that the expressions above can name their argument x. */
#define REAL_STORER(name, type, from_int, from_float)                                  \
  static inline type name##_of_i64(int64_t x) { return from_int; }                     \
  static inline type name##_of_u64(uint64_t x) { return from_int; }                    \
  static inline type name##_of_f32(float x) { return from_float; }                     \
  static inline type name##_of_f64(double x) { return from_float; }                    \
  STORER(name, i64, type, int64_t, name##_of_i64(in[i]))                               \
  STORER(name, u64, type, uint64_t, name##_of_u64(in[i]))                              \
  STORER(name, f32, type, float, name##_of_f32(in[i]))                                 \
  STORER(name, f64, type, double, name##_of_f64(in[i]))                                \
  STORER(name, c64, type, pair32,                                                      \
         KILN_DTYPE_##name == KILN_DTYPE_BOOL ? (type)(in[i].re != 0 || in[i].im != 0) \
                                              : name##_of_f32(in[i].re))               \
  STORER(name, c128, type, pair64,                                                     \
         KILN_DTYPE_##name == KILN_DTYPE_BOOL ? (type)(in[i].re != 0 || in[i].im != 0) \
                                              : name##_of_f64(in[i].re))
REAL_STORES(REAL_STORER)
#undef REAL_STORER

#define COMPLEX_STORER(name, type, part, expression)                                          \
  static inline part name##_of_i64(int64_t x) { return expression; }                          \
  static inline part name##_of_u64(uint64_t x) { return expression; }                         \
  static inline part name##_of_f32(float x) { return expression; }                            \
  static inline part name##_of_f64(double x) { return expression; }                           \
  STORER(name, i64, type, int64_t, ((type){name##_of_i64(in[i]), 0}))                         \
  STORER(name, u64, type, uint64_t, ((type){name##_of_u64(in[i]), 0}))                        \
  STORER(name, f32, type, float, ((type){name##_of_f32(in[i]), 0}))                           \
  STORER(name, f64, type, double, ((type){name##_of_f64(in[i]), 0}))                          \
  STORER(name, c64, type, pair32, ((type){name##_of_f32(in[i].re), name##_of_f32(in[i].im)})) \
  STORER(name, c128, type, pair64, ((type){name##_of_f64(in[i].re), name##_of_f64(in[i].im)}))
COMPLEX_STORES(COMPLEX_STORER)
#undef COMPLEX_STORER

static const store_fn storers[32][WIDE__COUNT] = {
#define ENTRY(name, ...)                                                             \
  [KILN_DTYPE_##name] = {store_##name##_i64, store_##name##_u64, store_##name##_f32, \
                         store_##name##_f64, store_##name##_c64, store_##name##_c128},
    REAL_STORES(ENTRY) COMPLEX_STORES(ENTRY)
#undef ENTRY
};

/* -- Loops over two geometries -- */

typedef struct walk {
  int rank;
  int64_t sizes[KILN_MAX_RANK], dst[KILN_MAX_RANK], src[KILN_MAX_RANK]; /* steps in bytes */
} walk;

/* Dimensions by falling destination step, then merged where both sides allow it. */
static void plan_walk(walk *w, const kiln_tensor *dst, const kiln_tensor *src) {
  int64_t dst_item = (int64_t)kiln_tensor_item_size(dst);
  int64_t src_item = (int64_t)kiln_tensor_item_size(src);
  w->rank = 0;
  for (int i = 0; i < kiln_tensor_rank(dst); i++) {
    int64_t size = kiln_tensor_sizes(dst)[i];
    if (size == 1) continue;
    int64_t d = kiln_tensor_strides(dst)[i] * dst_item;
    int64_t s = kiln_tensor_strides(src)[i] * src_item;
    int at = w->rank++;
    for (; at > 0 && w->dst[at - 1] < d; at--) {
      w->sizes[at] = w->sizes[at - 1], w->dst[at] = w->dst[at - 1], w->src[at] = w->src[at - 1];
    }
    w->sizes[at] = size, w->dst[at] = d, w->src[at] = s;
  }
  int kept = 0;
  for (int i = 1; i < w->rank; i++) {
    if (w->dst[kept] == w->dst[i] * w->sizes[i] && w->src[kept] == w->src[i] * w->sizes[i]) {
      w->sizes[kept] *= w->sizes[i];
    } else {
      w->sizes[++kept] = w->sizes[i];
    }
    w->dst[kept] = w->dst[i], w->src[kept] = w->src[i];
  }
  if (w->rank > 0) w->rank = kept + 1;
  if (w->rank == 0) {
    w->rank = 1, w->sizes[0] = 1, w->dst[0] = dst_item, w->src[0] = src_item;
  }
}

typedef struct row {
  size_t item; /* same dtype: bytes of an element; else 0 */
  load_fn load;
  store_fn store;
} row;

#define COPY_ITEMS(type)                                              \
  for (int64_t i = 0; i < n; i++, dst += dst_step, src += src_step) { \
    type v;                                                           \
    memcpy(&v, src, sizeof v);                                        \
    memcpy(dst, &v, sizeof v);                                        \
  }                                                                   \
  return

static void copy_row(const row *r, char *dst, int64_t dst_step, const char *src, int64_t src_step,
                     int64_t n) {
  if (r->item == 0) {
    _Alignas(64) char wide_values[CHUNK * sizeof(wide_value)];
    for (int64_t at = 0; at < n; at += CHUNK) {
      int count = n - at < CHUNK ? (int)(n - at) : CHUNK;
      r->load(src + at * src_step, src_step, count, wide_values);
      r->store(dst + at * dst_step, dst_step, count, wide_values);
    }
    return;
  }
  if (dst_step == (int64_t)r->item && src_step == dst_step) {
    memmove(dst, src, (size_t)n * r->item);
    return;
  }
  switch (r->item) {
    case 1: COPY_ITEMS(uint8_t);
    case 2: COPY_ITEMS(uint16_t);
    case 4: COPY_ITEMS(uint32_t);
    case 8: COPY_ITEMS(uint64_t);
    default: COPY_ITEMS(pair64);
  }
}

static void run_walk(const walk *w, const row *r, char *dst, const char *src) {
  int64_t index[KILN_MAX_RANK] = {0}, left = KILN_BUDGET_ITEMS;
  int last = w->rank - 1;
  for (;;) {
    for (int64_t i = 0, end; (end = kiln_budget_piece(i, w->sizes[last])) > i; i = end) {
      copy_row(r, dst + i * w->dst[last], w->dst[last], src + i * w->src[last], w->src[last],
               end - i);
    }
    int i = last - 1;
    for (; i >= 0; i--) {
      dst += w->dst[i], src += w->src[i];
      if (++index[i] < w->sizes[i]) break;
      dst -= w->dst[i] * w->sizes[i], src -= w->src[i] * w->sizes[i];
      index[i] = 0;
    }
    if (i < 0 || kiln_budget_spent(&left, w->sizes[last])) return;
  }
}

/* -- Copying -- */

/* Byte range [begin, end) that the tensor reaches in its storage. */
static void reach(const kiln_tensor *t, int64_t *begin, int64_t *end) {
  int64_t item = (int64_t)kiln_tensor_item_size(t), last = 0;
  for (int i = 0; i < kiln_tensor_rank(t); i++) {
    last += (kiln_tensor_sizes(t)[i] - 1) * kiln_tensor_strides(t)[i];
  }
  *begin = t->offset * item;
  *end = (t->offset + last + 1) * item;
}

static bool same_geometry(const kiln_tensor *a, const kiln_tensor *b) {
  return a->offset == b->offset &&
         memcmp(a->dims, b->dims, 2 * sizeof(int64_t) * a->key.f.rank) == 0;
}

static bool overlaps(const kiln_tensor *a, const kiln_tensor *b) {
  if (a->storage != b->storage) return false;
  int64_t a0, a1, b0, b1;
  reach(a, &a0, &a1);
  reach(b, &b0, &b1);
  return a0 < b1 && b0 < a1;
}

static kiln_status *check_copy(const kiln_tensor *dst, const kiln_tensor *src) {
  if (kiln_tensor_is_undefined(dst) || kiln_tensor_is_undefined(src)) {
    return KILN_ERROR(KILN_OP_ERROR, "an undefined tensor cannot be copied");
  }
  int rank = kiln_tensor_rank(dst);
  if (!kiln_tensor_same_sizes(dst, src)) {
    char a[256], b[256];
    kiln_sizes_print(rank, dst->dims, a, sizeof a);
    kiln_sizes_print(kiln_tensor_rank(src), src->dims, b, sizeof b);
    return KILN_ERROR(KILN_OP_ERROR, "a tensor of sizes %s cannot be copied to one of %s", b, a);
  }
  for (int i = 0; i < rank && dst->numel > 0; i++) {
    if (kiln_tensor_strides(dst)[i] == 0 && dst->dims[i] > 1) {
      return KILN_ERROR(KILN_OP_ERROR,
                        "unsupported operation: more than one element of the written-to tensor "
                        "refers to a single memory location. Please clone() the tensor before "
                        "performing the operation.");
    }
  }
  return NULL;
}

kiln_status *kiln_tensor_copy(kiln_tensor *dst, const kiln_tensor *src) {
  KILN_TRY(check_copy(dst, src));
  kiln_dtype to = kiln_tensor_dtype(dst), from = kiln_tensor_dtype(src);
  row r = {0};
  if (to == from) {
    r.item = kiln_dtype_bytes(to);
    KILN_ASSERT(r.item > 0);
  } else {
    r.load = loaders[from].load;
    r.store = storers[to][loaders[from].kind];
    if (!r.load || !r.store) {
      return KILN_ERROR(KILN_UNSUPPORTED, "no conversion from %s to %s", kiln_dtype_name(from),
                        kiln_dtype_name(to));
    }
  }
  if (dst->numel == 0) return NULL;
  if (overlaps(dst, src)) {
    if (to == from && same_geometry(dst, src)) return NULL;
    kiln_tensor *copy; /* as if all of src were read first */
    KILN_TRY(kiln_tensor_create(src->mem, NULL, from, kiln_tensor_rank(src), src->dims, &copy));
    kiln_status *status = kiln_tensor_copy(copy, src);
    if (!status) status = kiln_tensor_copy(dst, copy);
    kiln_tensor_release(copy);
    return status;
  }
  void *out;
  KILN_TRY(kiln_tensor_writable_data(dst, &out));
  walk w;
  plan_walk(&w, dst, src);
  run_walk(&w, &r, (char *)out, (const char *)kiln_tensor_data(src));
  return NULL;
}

kiln_status *kiln_tensor_contiguous(kiln_cache *cache, kiln_tensor *t, kiln_tensor **out_tensor) {
  if (kiln_tensor_is_contiguous(t)) {
    *out_tensor = kiln_tensor_retain(t);
    return NULL;
  }
  kiln_tensor *copy;
  KILN_TRY(
      kiln_tensor_create(t->mem, cache, kiln_tensor_dtype(t), kiln_tensor_rank(t), t->dims, &copy));
  kiln_status *status = kiln_tensor_copy(copy, t);
  if (status) {
    kiln_tensor_release_to(cache, copy);
    return status;
  }
  *out_tensor = copy;
  return NULL;
}

/* -- Single elements -- */

static kiln_status *load_item(const kiln_tensor *t, wide_kind *out_kind, wide_value *out_value) {
  if (kiln_tensor_is_undefined(t) || t->numel != 1) {
    return KILN_ERROR(KILN_OP_ERROR, "a Tensor with %lld elements cannot be converted to Scalar",
                      (long long)(kiln_tensor_is_undefined(t) ? 0 : t->numel));
  }
  kiln_dtype dtype = kiln_tensor_dtype(t);
  if (!loaders[dtype].load) {
    return KILN_ERROR(KILN_UNSUPPORTED, "no number from a tensor of %s", kiln_dtype_name(dtype));
  }
  loaders[dtype].load((const char *)kiln_tensor_data(t), 0, 1, out_value);
  *out_kind = loaders[dtype].kind;
  return NULL;
}

static pair64 wide_to_complex(wide_kind kind, const wide_value *v) {
  switch (kind) {
    case WIDE_I64: return (pair64){(double)v->i64, 0};
    case WIDE_U64: return (pair64){(double)v->u64, 0};
    case WIDE_F32: return (pair64){(double)v->f32, 0};
    case WIDE_C64: return (pair64){(double)v->c64.re, (double)v->c64.im};
    case WIDE_C128: return v->c128;
    default: return (pair64){v->f64, 0};
  }
}

kiln_status *kiln_tensor_item_c128(const kiln_tensor *t, double *out_re, double *out_im) {
  wide_kind kind = WIDE_F64;
  wide_value v = {0};
  KILN_TRY(load_item(t, &kind, &v));
  pair64 number = wide_to_complex(kind, &v);
  *out_re = number.re, *out_im = number.im;
  return NULL;
}

bool kiln_dtype_has_elements(kiln_dtype dtype) {
  return loaders[(unsigned)dtype & 31].load != NULL;
}

double kiln_element_f64(kiln_dtype dtype, const void *at, double *out_im) {
  wide_value v = {0};
  pair64 number = {0, 0};
  if (kiln_dtype_has_elements(dtype)) {
    loaders[dtype].load((const char *)at, 0, 1, &v);
    number = wide_to_complex(loaders[dtype].kind, &v);
  }
  if (out_im) *out_im = number.im;
  return number.re;
}
int64_t kiln_element_i64(kiln_dtype dtype, const void *at) {
  wide_value v = {0};
  if (!kiln_dtype_has_elements(dtype)) return 0;
  loaders[dtype].load((const char *)at, 0, 1, &v);
  const wide_kind kind = loaders[dtype].kind;
  return kind == WIDE_I64 || kind == WIDE_U64 ? v.i64 : to_i64(wide_to_complex(kind, &v).re);
}
void kiln_element_put_i64(kiln_dtype dtype, int64_t value, void *to) {
  const store_fn store = storers[(unsigned)dtype & 31][WIDE_I64];
  if (store) store(to, (int64_t)kiln_dtype_bytes(dtype), 1, &value);
}
void kiln_element_put_c128(kiln_dtype dtype, double re, double im, void *to) {
  const store_fn store = storers[(unsigned)dtype & 31][WIDE_C128];
  if (store) store(to, (int64_t)kiln_dtype_bytes(dtype), 1, &(pair64){re, im});
}

kiln_status *kiln_tensor_item_f64(const kiln_tensor *t, double *out_value) {
  double im;
  KILN_TRY(kiln_tensor_item_c128(t, out_value, &im));
  if (im != 0) {
    return KILN_ERROR(KILN_OP_ERROR, "value cannot be converted to type double without overflow");
  }
  return NULL;
}

kiln_status *kiln_tensor_item_i64(const kiln_tensor *t, int64_t *out_value) {
  wide_kind kind = WIDE_F64;
  wide_value v = {0};
  KILN_TRY(load_item(t, &kind, &v));
  if (kind == WIDE_I64 || (kind == WIDE_U64 && v.u64 <= INT64_MAX)) {
    *out_value = v.i64;
    return NULL;
  }
  double re, im;
  KILN_TRY(kiln_tensor_item_c128(t, &re, &im));
  if (kind == WIDE_U64 || im != 0 || !(re >= -0x1p63 && re < 0x1p63)) {
    return KILN_ERROR(KILN_OP_ERROR, "value cannot be converted to type int64_t without overflow");
  }
  *out_value = (int64_t)re;
  return NULL;
}

static kiln_status *make_scalar(kiln_mem *mem, kiln_dtype dtype, wide_kind kind,
                                const wide_value *v, kiln_tensor **out_tensor) {
  if (!kiln_dtype_is_valid(dtype) || !storers[dtype][kind]) {
    return KILN_ERROR(KILN_UNSUPPORTED, "no number to a tensor of %s", kiln_dtype_ir_name(dtype));
  }
  kiln_tensor *t;
  KILN_TRY(kiln_tensor_create(mem, NULL, dtype, 0, NULL, &t));
  storers[dtype][kind](t->storage->data, (int64_t)kiln_dtype_bytes(dtype), 1, v);
  *out_tensor = t;
  return NULL;
}

kiln_status *kiln_tensor_scalar_f64(kiln_mem *mem, kiln_dtype dtype, double value,
                                    kiln_tensor **out_tensor) {
  return make_scalar(mem, dtype, WIDE_F64, &(wide_value){.f64 = value}, out_tensor);
}

kiln_status *kiln_tensor_scalar_i64(kiln_mem *mem, kiln_dtype dtype, int64_t value,
                                    kiln_tensor **out_tensor) {
  return make_scalar(mem, dtype, WIDE_I64, &(wide_value){.i64 = value}, out_tensor);
}
