/* quant.c: parameters of quantised tensors, and what may be done with such tensors. */
#include "runtime/quant.h"

#include <math.h>

/* -- Parameters -- */

static size_t quant_bytes(int64_t count) {
  return sizeof(kiln_quant) + (size_t)count * (sizeof(double) + sizeof(int64_t));
}

static void destroy_quant(kiln_side *side) {
  kiln_quant *quant = (kiln_quant *)(void *)side;
  kiln_mem *mem = quant->mem;
  kiln_mem_free(mem, quant, quant_bytes(quant->count));
  kiln_mem_release(mem);
}

static kiln_status *check_parameters(kiln_dtype dtype, double scale, int64_t zero_point,
                                     const char *what) {
  const int64_t low = dtype == KILN_DTYPE_QU8 ? 0 : dtype == KILN_DTYPE_QI8 ? INT8_MIN : INT32_MIN;
  const int64_t high = dtype == KILN_DTYPE_QU8   ? UINT8_MAX
                       : dtype == KILN_DTYPE_QI8 ? INT8_MAX
                                                 : INT32_MAX;
  if (!kiln_dtype_is_quant(dtype)) {
    return KILN_OP_FAIL("quantize: %s is no quantized dtype",
                        kiln_dtype_is_valid(dtype) ? kiln_dtype_name(dtype) : "this");
  }
  if (zero_point > high || zero_point < low) {
    return KILN_OP_FAIL("quantize_tensor_%s zero_point %lld is %s bound.", what,
                        (long long)zero_point, zero_point > high ? "above upper" : "below lower");
  }
  if (!isfinite(scale)) return KILN_OP_FAIL("quantize: the scale is not finite");
  return NULL;
}

static kiln_status *allocate(kiln_mem *mem, int64_t count, kiln_quant **out) {
  kiln_quant *quant = kiln_mem_alloc_zero(mem, quant_bytes(count));
  if (!quant) return kiln_status_oom();
  quant->side = (kiln_side){.refs = 1, .kind = KILN_SIDE_QUANT, .destroy = destroy_quant};
  quant->mem = mem;
  quant->count = count;
  quant->scales = (double *)(void *)(quant + 1);
  quant->zero_points = (int64_t *)(void *)(quant->scales + count);
  kiln_mem_retain(mem);
  *out = quant;
  return NULL;
}

kiln_status *kiln_quant_create(kiln_mem *mem, kiln_dtype dtype, double scale, int64_t zero_point,
                               kiln_quant **out_quant) {
  KILN_TRY(check_parameters(dtype, scale, zero_point, "per_tensor_affine"));
  KILN_TRY(allocate(mem, 0, out_quant));
  (*out_quant)->scale = scale;
  (*out_quant)->zero_point = zero_point;
  return NULL;
}

kiln_status *kiln_quant_create_channels(kiln_mem *mem, kiln_dtype dtype, int axis, int64_t count,
                                        const double *scales, const int64_t *zero_points,
                                        kiln_quant **out_quant) {
  for (int64_t i = 0; i < count; i++) {
    KILN_TRY(check_parameters(dtype, scales[i], zero_points[i], "per_channel_affine"));
  }
  KILN_TRY(allocate(mem, count, out_quant));
  (*out_quant)->scheme = KILN_QSCHEME_PER_CHANNEL;
  (*out_quant)->axis = axis;
  for (int64_t i = 0; i < count; i++) {
    (*out_quant)->scales[i] = scales[i];
    (*out_quant)->zero_points[i] = zero_points[i];
  }
  return NULL;
}

kiln_status *kiln_quant_column(const kiln_quant *quant, bool zero_points,
                               kiln_tensor **out_tensor) {
  void *data;
  KILN_TRY(kiln_tensor_create(quant->mem, NULL, zero_points ? KILN_DTYPE_I64 : KILN_DTYPE_F64, 1,
                              &quant->count, out_tensor));
  kiln_status *status = kiln_tensor_writable_data(*out_tensor, &data);
  if (status) {
    kiln_tensor_release(*out_tensor);
    return status;
  }
  memcpy(data, zero_points ? (const void *)quant->zero_points : (const void *)quant->scales,
         (size_t)quant->count * 8);
  return NULL;
}

bool kiln_quant_equal(const kiln_quant *a, const kiln_quant *b) {
  if (a == b) return true;
  if (!a || !b || a->scheme != b->scheme || a->count != b->count) return false;
  if (a->scheme == KILN_QSCHEME_PER_TENSOR) {
    return a->scale == b->scale && a->zero_point == b->zero_point;
  }
  for (int64_t i = 0; i < a->count; i++) {
    if (a->scales[i] != b->scales[i] || a->zero_points[i] != b->zero_points[i]) return false;
  }
  return a->axis == b->axis;
}

kiln_dtype kiln_quant_integers(kiln_dtype dtype) {
  return dtype == KILN_DTYPE_QU8   ? KILN_DTYPE_U8
         : dtype == KILN_DTYPE_QI8 ? KILN_DTYPE_I8
                                   : KILN_DTYPE_I32;
}

/* -- Values -- */

static float load_integer(kiln_dtype dtype, const void *data) {
  switch (dtype) {
    case KILN_DTYPE_QU8: return (float)*(const uint8_t *)data;
    case KILN_DTYPE_QI8: return (float)*(const int8_t *)data;
    default: return (float)*(const int32_t *)data;
  }
}

/* Element by element, in row-major order. */
static void dequantize_all(const kiln_tensor *t, const kiln_quant *quant, float *to) {
  const int rank = kiln_tensor_rank(t);
  const int64_t *sizes = kiln_tensor_sizes(t), *strides = kiln_tensor_strides(t);
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  const char *data = kiln_tensor_data(t);
  int64_t index[KILN_MAX_RANK] = {0}, at = 0;
  for (int64_t i = 0; i < t->numel; i++) {
    const float q = load_integer(dtype, data + at * (int64_t)kiln_dtype_bytes(dtype));
    if (quant->scheme == KILN_QSCHEME_PER_TENSOR) {
      to[i] = (q - (float)quant->zero_point) * (float)quant->scale;
    } else {
      const int64_t channel = index[quant->axis];
      to[i] = (q - (float)quant->zero_points[channel]) * (float)quant->scales[channel];
    }
    for (int d = rank - 1; d >= 0; d--) {
      at += strides[d];
      if (++index[d] < sizes[d]) break;
      at -= strides[d] * sizes[d];
      index[d] = 0;
    }
  }
}

kiln_status *kiln_tensor_dequantize(kiln_mem *mem, kiln_cache *cache, const kiln_tensor *t,
                                    kiln_tensor **out_tensor) {
  const kiln_quant *quant = kiln_tensor_quant(t);
  if (!quant) return KILN_OP_FAIL("the tensor has no quantization parameters");
  if (quant->scheme == KILN_QSCHEME_PER_CHANNEL &&
      (quant->axis >= kiln_tensor_rank(t) || kiln_tensor_sizes(t)[quant->axis] > quant->count)) {
    return KILN_OP_FAIL("the tensor has more channels than quantization parameters");
  }
  KILN_TRY(kiln_tensor_create(mem, cache, KILN_DTYPE_F32, kiln_tensor_rank(t), kiln_tensor_sizes(t),
                              out_tensor));
  if (t->numel == 0) return NULL;
  void *data;
  kiln_status *status = kiln_tensor_writable_data(*out_tensor, &data);
  if (status) {
    kiln_tensor_release_to(cache, *out_tensor);
    return status;
  }
  dequantize_all(t, quant, data);
  return NULL;
}

void kiln_quant_print(kiln_text *text, const kiln_quant *quant) {
  const bool channels = quant->scheme == KILN_QSCHEME_PER_CHANNEL;
  kiln_text_printf(text, "quantization_scheme=torch.%s",
                   channels ? "per_channel_affine, scale=[" : "per_tensor_affine, scale=");
  for (int64_t i = 0; channels && i < quant->count; i++) {
    if (i > 0) kiln_text_puts(text, ", ");
    kiln_text_double(text, quant->scales[i]);
  }
  if (!channels) kiln_text_double(text, quant->scale);
  kiln_text_puts(text, channels ? "], zero_point=[" : ", zero_point=");
  for (int64_t i = 0; channels && i < quant->count; i++) {
    kiln_text_printf(text, i > 0 ? ", %lld" : "%lld", (long long)quant->zero_points[i]);
  }
  if (channels) {
    kiln_text_printf(text, "], axis=%d", quant->axis);
  } else {
    kiln_text_printf(text, "%lld", (long long)quant->zero_point);
  }
}

enum { MAX_DEPTH = 200 };

static bool holds_quant(kiln_ivalue v, int depth) {
  if (v.tag == KILN_TAG_TENSOR) return v.u.tensor && kiln_tensor_is_quant(v.u.tensor);
  if (depth > MAX_DEPTH) return false;
  int64_t count = v.tag == KILN_TAG_LIST ? v.u.list->count : 0;
  for (int64_t i = 0; i < count; i++) {
    if (holds_quant(v.u.list->items[i], depth + 1)) return true;
  }
  count = v.tag == KILN_TAG_TUPLE ? v.u.tuple->count : 0;
  for (int64_t i = 0; i < count; i++) {
    if (holds_quant(v.u.tuple->items[i], depth + 1)) return true;
  }
  kiln_ivalue *key, *value;
  int64_t at = 0;
  while (v.tag == KILN_TAG_DICT && kiln_dict_next(v.u.dict, &at, &key, &value)) {
    if (holds_quant(*value, depth + 1)) return true;
  }
  return false;
}

bool kiln_ivalue_holds_quant(kiln_ivalue v) { return holds_quant(v, 0); }

/* -- What operators may do -- */

/* Both are quantised, alike, and of the same elements. */
static kiln_status *run_equal(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  kiln_tensor *t[2] = {NULL, NULL};
  kiln_tensor *a = args[0].u.tensor, *b = args[1].u.tensor;
  if (!kiln_tensor_is_quant(a) || !kiln_tensor_is_quant(b)) {
    return KILN_OP_FAIL("equal: only one of the tensors is quantized");
  }
  bool same = kiln_tensor_dtype(a) == kiln_tensor_dtype(b) && kiln_tensor_same_sizes(a, b) &&
              kiln_quant_equal(kiln_tensor_quant(a), kiln_tensor_quant(b));
  kiln_status *status = NULL;
  if (same && a->numel > 0) {
    status = kiln_tensor_contiguous(&call->cache, a, &t[0]);
    if (!status) status = kiln_tensor_contiguous(&call->cache, b, &t[1]);
    same = !status && memcmp(kiln_tensor_data(t[0]), kiln_tensor_data(t[1]),
                             (size_t)a->numel * kiln_tensor_item_size(a)) == 0;
  }
  for (int i = 0; i < 2; i++) kiln_tensor_release_to(&call->cache, t[i]);
  if (!status) *outs = kiln_bool(same);
  return status;
}

typedef struct wrapped {
  kiln_kernel kernel; /* first: what the interpreter sees */
  const kiln_kernel *inner;
} wrapped;

static const kiln_tensor *find_quant(kiln_ivalue v) {
  if (v.tag == KILN_TAG_TENSOR) {
    return v.u.tensor && kiln_tensor_is_quant(v.u.tensor) ? v.u.tensor : NULL;
  }
  if (v.tag != KILN_TAG_LIST) return NULL;
  for (int64_t i = 0; i < v.u.list->count; i++) {
    const kiln_tensor *t = find_quant(v.u.list->items[i]);
    if (t) return t;
  }
  return NULL;
}

/* Results on the integers become quantised ones; `integers` itself is `t`. */
static kiln_ivalue requantize(kiln_ivalue v, kiln_tensor *integers, kiln_tensor *t) {
  if (v.tag == KILN_TAG_TENSOR && v.u.tensor == integers) {
    kiln_tensor_release(integers);
    return kiln_of_tensor(kiln_tensor_retain(t));
  }
  if (v.tag == KILN_TAG_TENSOR && kiln_tensor_dtype(v.u.tensor) == kiln_tensor_dtype(integers)) {
    v.u.tensor->key.f.dtype = t->key.f.dtype;
    kiln_tensor_share_sides(v.u.tensor, t);
  }
  for (int64_t i = 0; v.tag == KILN_TAG_LIST && i < v.u.list->count; i++) {
    v.u.list->items[i] = requantize(v.u.list->items[i], integers, t);
  }
  return v;
}

enum { MAX_ARGS = 16 };

/* Moves the integers about, as what they are for every kernel. */
static kiln_status *run_on_integers(kiln_call *call, const kiln_kernel *kernel,
                                    const kiln_ivalue *args, kiln_ivalue *outs) {
  kiln_tensor *t = args[0].u.tensor, *integers;
  kiln_ivalue own[MAX_ARGS];
  const int count = call->arg_count;
  if (count > MAX_ARGS) return KILN_OP_FAIL("%s has too many arguments", kernel->name);
  memcpy(own, args, sizeof *own * (size_t)count);
  KILN_TRY(kiln_tensor_create_on(
      call->env->mem, &call->cache, t->storage, kiln_quant_integers(kiln_tensor_dtype(t)),
      kiln_tensor_rank(t), kiln_tensor_sizes(t), kiln_tensor_strides(t), t->offset, &integers));
  own[0] = kiln_of_tensor(integers);
  kiln_status *status = kiln_kernel_run(call, kernel, own, count, outs);
  for (int i = 0; i < kernel->out_count && !status; i++) {
    outs[i] = requantize(outs[i], integers, t);
  }
  kiln_tensor_release_to(&call->cache, integers);
  return status;
}

static kiln_status *run_wrapped(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  const wrapped *g = (const wrapped *)(const void *)call->kernel;
  const kiln_quant_way way = g->inner->quant;
  const kiln_tensor *found = NULL;
  for (int i = 0; i < call->arg_count && !found; i++) found = find_quant(args[i]);
  if (!found) return kiln_kernel_run(call, g->inner, args, call->arg_count, outs);
  if (way == KILN_QUANT_compares) return run_equal(call, args, outs);
  const kiln_quant *quant = kiln_tensor_quant(found);
  const bool into = g->inner->dest_arg >= 0; /* in place */
  const bool channels = quant && quant->scheme == KILN_QSCHEME_PER_CHANNEL;
  const bool first = args[0].tag == KILN_TAG_TENSOR && args[0].u.tensor == found;
  if (way == KILN_QUANT_refuses || !quant || !first || into ||
      (way == KILN_QUANT_moves && channels)) {
    return KILN_OP_FAIL("%s is not implemented for %s tensors%s: dequantize them first",
                        g->inner->name, kiln_dtype_name(kiln_tensor_dtype(found)),
                        channels ? ", quantized by channels" : "");
  }
  return run_on_integers(call, g->inner, args, outs);
}

const kiln_kernel *kiln_quant_wrap(kiln_arena *arena, const kiln_kernel *kernel) {
  if (!kernel->body || kernel->quant == KILN_QUANT_knows) return kernel;
  wrapped *g = KILN_NEW(arena, wrapped);
  g->kernel = *kernel;
  g->kernel.body = run_wrapped;
  g->kernel.refuses &= ~(1u << KILN_DTYPE_QI8 | 1u << KILN_DTYPE_QU8 | 1u << KILN_DTYPE_QI32);
  g->inner = kernel;
  /* Such a result is never written into an argument's memory. */
  if (g->kernel.reuse == KILN_REUSE_SELF) g->kernel.reuse = KILN_REUSE_NONE;
  return &g->kernel;
}
