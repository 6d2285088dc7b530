/* dlpack.c: tensors in and out by DLPack 0.8. */
#include "kiln/dlpack.h"

#include "api/internal.h"

/* X(dtype, DLPack's code, bits) */
#define DLPACK_DTYPES(X)   \
  X(U8, kDLUInt, 8)        \
  X(I8, kDLInt, 8)         \
  X(I16, kDLInt, 16)       \
  X(I32, kDLInt, 32)       \
  X(I64, kDLInt, 64)       \
  X(U16, kDLUInt, 16)      \
  X(U32, kDLUInt, 32)      \
  X(U64, kDLUInt, 64)      \
  X(F16, kDLFloat, 16)     \
  X(F32, kDLFloat, 32)     \
  X(F64, kDLFloat, 64)     \
  X(BF16, kDLBfloat, 16)   \
  X(C32, kDLComplex, 32)   \
  X(C64, kDLComplex, 64)   \
  X(C128, kDLComplex, 128) \
  X(BOOL, kDLBool, 8)

static bool to_dlpack_type(kiln_dtype dtype, DLDataType *out) {
  switch (dtype) {
#define DLPACK_CASE(name, code, bits) \
  case KILN_DTYPE_##name: *out = (DLDataType){code, bits, 1}; return true;
    DLPACK_DTYPES(DLPACK_CASE)
#undef DLPACK_CASE
    default: return false;
  }
}

static kiln_dtype from_dlpack_type(DLDataType type) {
  if (type.lanes != 1) return KILN_DTYPE_NONE;
#define DLPACK_FIND(name, dl_code, dl_bits) \
  if (type.code == dl_code && type.bits == dl_bits) return KILN_DTYPE_##name;
  DLPACK_DTYPES(DLPACK_FIND)
#undef DLPACK_FIND
  return KILN_DTYPE_NONE;
}

/* -- Out -- */

typedef struct exported {
  DLManagedTensor managed;
  kiln_value *value; /* owned: keeps memory, model and context alive */
  size_t size;
  int64_t dims[]; /* shape, strides */
} exported;

static void delete_exported(DLManagedTensor *self) {
  exported *e = self->manager_ctx;
  kiln_value *value = e->value;
  kiln_mem_free(value->context->env->mem, e, e->size);
  kiln_value_destroy(value);
}

/* Memory of a mapped archive, or shared with another value until it is written, is copied first:
 * a consumer of DLPack 0.8 may write. */
static kiln_status *own_memory(const kiln_value *value) {
  kiln_tensor *tensor = value->v.u.tensor;
  void *data;
  if (!(tensor->storage->flags & KILN_STORAGE_READ_ONLY)) return NULL;
  return kiln_tensor_writable_data(tensor, &data);
}

kiln_status *kiln_value_to_dlpack(const kiln_value *value, struct DLManagedTensor **out_tensor) {
  KILN_NEEDS(out_tensor);
  *out_tensor = NULL;
  if (kiln_value_kind(value) != KILN_KIND_TENSOR || kiln_value_dtype(value) == KILN_DTYPE_NONE) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "only a defined tensor has a DLPack form");
  }
  DLDataType type;
  kiln_tensor *tensor = value->v.u.tensor;
  if (kiln_tensor_device(tensor).kind != KILN_DEVICE_CPU ||
      !to_dlpack_type(kiln_tensor_dtype(tensor), &type)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a tensor of dtype %s has no DLPack form",
                      kiln_dtype_name(kiln_tensor_dtype(tensor)));
  }
  KILN_TRY(kiln__value_readable(value));
  KILN_TRY(own_memory(value));
  size_t rank = (size_t)kiln_tensor_rank(tensor);
  size_t size = sizeof(exported) + 2 * rank * sizeof(int64_t);
  exported *e = kiln_mem_alloc_zero(value->context->env->mem, size);
  if (!e) return kiln_status_oom();
  kiln_status *status = kiln_value_share(value, &e->value);
  if (status) {
    kiln_mem_free(value->context->env->mem, e, size);
    return status;
  }
  e->size = size;
  memcpy(e->dims, tensor->dims, 2 * rank * sizeof(int64_t));
  e->managed = (DLManagedTensor){
      .dl_tensor = {.data = tensor->numel > 0 ? (void *)(uintptr_t)kiln_tensor_data(tensor) : NULL,
                    .device = {kDLCPU, 0},
                    .ndim = (int32_t)rank,
                    .dtype = type,
                    .shape = e->dims,
                    .strides = e->dims + rank},
      .manager_ctx = e,
      .deleter = delete_exported};
  *out_tensor = &e->managed;
  return NULL;
}

/* -- In -- */

static void delete_imported(void *user) {
  DLManagedTensor *tensor = user;
  if (tensor->deleter) tensor->deleter(tensor);
}

/* Bytes from the first element to behind the last; false on overflow or a negative stride. */
static bool span_of(const DLTensor *t, const int64_t *strides, size_t item, size_t *out_span) {
  int64_t last = 0, step;
  for (int32_t i = 0; i < t->ndim; i++) {
    if (t->shape[i] == 0) {
      *out_span = 0;
      return true;
    }
    if (strides[i] < 0 || !kiln_checked_mul_i64(t->shape[i] - 1, strides[i], &step) ||
        !kiln_checked_add_i64(last, step, &last)) {
      return false;
    }
  }
  return kiln_checked_add_i64(last, 1, &last) &&
         kiln_checked_mul_size((size_t)last, item, out_span);
}

kiln_status *kiln_value_from_dlpack(kiln_context *context, struct DLManagedTensor *tensor,
                                    kiln_value **out_value) {
  KILN_NEEDS(tensor && out_value);
  *out_value = NULL;
  const DLTensor *t = &tensor->dl_tensor;
  kiln_dtype dtype = from_dlpack_type(t->dtype);
  if (t->device.device_type != kDLCPU) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the DLPack tensor is not on the CPU");
  }
  if (dtype == KILN_DTYPE_NONE || t->ndim < 0 || t->ndim > KILN_MAX_RANK ||
      (t->ndim > 0 && !t->shape)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT,
                      "a DLPack tensor of type %d with %d bits, %d lanes and %d dimensions is not "
                      "taken",
                      t->dtype.code, t->dtype.bits, t->dtype.lanes, t->ndim);
  }
  int64_t packed[KILN_MAX_RANK];
  const int64_t *strides = t->strides;
  for (int32_t i = 0; i < t->ndim; i++) {
    if (t->shape[i] < 0) return KILN_ERROR(KILN_INVALID_ARGUMENT, "negative size in DLPack");
  }
  if (!strides) {
    kiln_strides_contiguous(t->ndim, t->shape, packed);
    strides = packed;
  }
  size_t span = 0;
  if (!span_of(t, strides, kiln_dtype_size(dtype), &span)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the DLPack tensor's strides are not taken");
  }
  return kiln_value_tensor_over(context, dtype, t->ndim, t->shape, strides,
                                t->data ? (char *)t->data + t->byte_offset : NULL, span,
                                delete_imported, tensor, out_value);
}
