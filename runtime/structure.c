/* structure.c: sparse and nested tensors, and what operators may do with them. */
#include "runtime/structure.h"

#include "runtime/quant.h"

/* -- Making -- */

static void destroy_sparse(kiln_side *side) {
  kiln_sparse *s = (kiln_sparse *)(void *)side;
  kiln_mem *mem = s->mem;
  kiln_tensor_release(s->indices);
  kiln_tensor_release(s->values);
  kiln_mem_free(mem, s, sizeof *s);
  kiln_mem_release(mem);
}
static size_t nested_bytes(int64_t count) {
  return sizeof(kiln_nested) + (size_t)count * sizeof(int64_t);
}
static void destroy_nested(kiln_side *side) {
  kiln_nested *n = (kiln_nested *)(void *)side;
  kiln_mem *mem = n->mem;
  kiln_mem_free(mem, n, nested_bytes(n->count));
  kiln_mem_release(mem);
}

static void attach(kiln_tensor *t, kiln_layout_class layout, kiln_side *side) {
  kiln_tensor_attach(t, side);
  t->key.f.layout = (uint8_t)layout;
}

/* One zero that stands for every element. */
static kiln_status *placeholder(kiln_mem *mem, kiln_cache *cache, kiln_dtype dtype, int rank,
                                const int64_t *sizes, kiln_tensor **out) {
  static const int64_t none[KILN_MAX_RANK];
  const int64_t one[1] = {1};
  int64_t numel;
  kiln_tensor *zero;
  void *data;
  if (!kiln_numel(rank, sizes, &numel)) {
    return KILN_OP_FAIL("the sizes of a sparse tensor are too large");
  }
  KILN_TRY(kiln_tensor_create(mem, cache, dtype, 1, one, &zero));
  kiln_status *status = kiln_tensor_writable_data(zero, &data);
  if (!status) {
    memset(data, 0, kiln_dtype_bytes(dtype));
    status = kiln_tensor_create_on(mem, cache, zero->storage, dtype, rank, sizes, none, 0, out);
  }
  kiln_tensor_release_to(cache, zero);
  return status;
}
kiln_status *kiln_sparse_tensor(kiln_mem *mem, kiln_cache *cache, int rank, const int64_t *sizes,
                                kiln_tensor *indices, kiln_tensor *values, bool coalesced,
                                kiln_tensor **out_tensor) {
  kiln_sparse *s = kiln_mem_alloc_zero(mem, sizeof *s);
  if (!s) return kiln_status_oom();
  kiln_status *status = placeholder(mem, cache, kiln_tensor_dtype(values), rank, sizes, out_tensor);
  if (status) {
    kiln_mem_free(mem, s, sizeof *s);
    return status;
  }
  s->side = (kiln_side){.refs = 1, .kind = KILN_SIDE_SPARSE, .destroy = destroy_sparse};
  s->mem = mem;
  kiln_mem_retain(mem);
  s->indices = kiln_tensor_retain(indices);
  s->values = kiln_tensor_retain(values);
  s->coalesced = coalesced;
  attach(*out_tensor, KILN_LAYOUT_SPARSE, &s->side);
  return NULL;
}
kiln_status *kiln_nested_tensor(kiln_mem *mem, kiln_cache *cache, const kiln_tensor *padded,
                                const int64_t *lengths, kiln_tensor **out_tensor) {
  const int64_t count = kiln_tensor_sizes(padded)[0];
  kiln_nested *n = kiln_mem_alloc_zero(mem, nested_bytes(count));
  if (!n) return kiln_status_oom();
  kiln_status *status = kiln_tensor_alias(cache, padded, out_tensor);
  if (status) {
    kiln_mem_free(mem, n, nested_bytes(count));
    return status;
  }
  n->side = (kiln_side){.refs = 1, .kind = KILN_SIDE_NESTED, .destroy = destroy_nested};
  n->mem = mem;
  kiln_mem_retain(mem);
  n->count = count;
  if (count > 0) memcpy(n->lengths, lengths, (size_t)count * sizeof *lengths);
  attach(*out_tensor, KILN_LAYOUT_NESTED, &n->side);
  return NULL;
}

/* -- Finding -- */

static const kiln_tensor *find(kiln_ivalue v, int depth) {
  if (v.tag == KILN_TAG_TENSOR) {
    return v.u.tensor && kiln_tensor_is_structured(v.u.tensor) ? v.u.tensor : NULL;
  }
  if (depth == 0) return NULL;
  const kiln_tensor *t = NULL;
  int64_t count = v.tag == KILN_TAG_LIST ? v.u.list->count : 0;
  for (int64_t i = 0; i < count && !t; i++) t = find(v.u.list->items[i], depth - 1);
  count = v.tag == KILN_TAG_TUPLE ? v.u.tuple->count : 0;
  for (int64_t i = 0; i < count && !t; i++) t = find(v.u.tuple->items[i], depth - 1);
  kiln_ivalue *key, *value;
  int64_t at = 0;
  while (v.tag == KILN_TAG_DICT && !t && kiln_dict_next(v.u.dict, &at, &key, &value)) {
    t = find(*value, depth - 1);
  }
  return t;
}
bool kiln_ivalue_holds_structured(kiln_ivalue v) { return find(v, 64) != NULL; }

/* -- Running -- */

typedef struct wrapped {
  kiln_kernel kernel; /* first: what the interpreter sees */
  const kiln_kernel *inner;
} wrapped;

enum { MAX_ARGS = 24 };

static bool same_lengths(const kiln_nested *a, const kiln_nested *b) {
  return a->count == b->count &&
         memcmp(a->lengths, b->lengths, (size_t)a->count * sizeof *a->lengths) == 0;
}
/* On the padded elements: whatever stands beyond a row's end is never looked at. */
static kiln_status *run_on_padded(kiln_call *call, const kiln_kernel *kernel,
                                  const kiln_tensor *found, const kiln_ivalue *args,
                                  kiln_ivalue *outs) {
  kiln_ivalue own[MAX_ARGS];
  bool made[MAX_ARGS] = {false};
  const kiln_nested *nested = kiln_tensor_nested(found);
  kiln_status *status = NULL;
  const int count = call->arg_count;
  if (count > MAX_ARGS) return KILN_OP_FAIL("%s has too many arguments", kernel->name);
  for (int i = 0; i < count && !status; i++) {
    own[i] = args[i];
    const kiln_tensor *t = find(args[i], 0);
    if (!t) continue;
    if (!kiln_tensor_nested(t) || !same_lengths(nested, kiln_tensor_nested(t))) {
      status = KILN_OP_FAIL("%s: nested tensors of different lengths", kernel->name);
      break;
    }
    status = kiln_tensor_alias(&call->cache, t, &own[i].u.tensor);
    made[i] = !status;
  }
  if (!status) status = kiln_kernel_run(call, kernel, own, count, outs);
  if (!status && outs[0].tag == KILN_TAG_TENSOR) {
    const int64_t *old = kiln_tensor_sizes(found), *now = kiln_tensor_sizes(outs[0].u.tensor);
    if (kiln_tensor_rank(outs[0].u.tensor) < 2 || old[0] != now[0] || old[1] != now[1]) {
      status = KILN_OP_FAIL("%s changes the rows of a nested tensor", kernel->name);
    } else {
      kiln_tensor *result;
      status = kiln_nested_tensor(call->env->mem, &call->cache, outs[0].u.tensor, nested->lengths,
                                  &result);
      if (!status) {
        kiln_tensor_release_to(&call->cache, outs[0].u.tensor);
        outs[0].u.tensor = result;
      }
    }
  }
  for (int i = 0; i < count; i++) {
    if (made[i]) kiln_tensor_release_to(&call->cache, own[i].u.tensor);
  }
  return status;
}
static kiln_status *run_wrapped(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  const kiln_kernel *kernel = ((const wrapped *)(const void *)call->kernel)->inner;
  const kiln_tensor *found = NULL;
  const int count = call->arg_count;
  for (int i = 0; i < count && !found; i++) found = find(args[i], 1);
  if (!found) return kiln_kernel_run(call, kernel, args, count, outs);
  const bool easy = kernel->quant == KILN_QUANT_knows;
  const bool sparse = kiln_tensor_sparse(found) != NULL, into = kernel->dest_arg >= 0;
  if (sparse && kernel->sparse && !into) {
    return kiln_kernel_run_body(call, kernel, kernel->sparse, args, count, outs);
  }
  if (!sparse && kernel->nested == KILN_NESTED_keeps && !into) {
    return run_on_padded(call, kernel, found, args, outs);
  }
  const bool knows = !sparse && kernel->nested == KILN_NESTED_knows && !into;
  if (knows || (easy && (sparse || kernel->nested == KILN_NESTED_unsaid))) {
    return kiln_kernel_run(call, kernel, args, count, outs);
  }
  return KILN_OP_FAIL("Could not run '%s' with arguments from the '%s' backend: it is not "
                      "implemented for %s tensors",
                      kernel->name, sparse ? "SparseCPU" : "NestedTensorCPU",
                      sparse ? "sparse" : "nested");
}

const kiln_kernel *kiln_structure_wrap(kiln_arena *arena, const kiln_kernel *kernel) {
  const bool says = kernel->sparse || kernel->nested != KILN_NESTED_unsaid;
  if (!kernel->body || (!says && kernel->quant == KILN_QUANT_knows)) return kernel;
  wrapped *g = KILN_NEW(arena, wrapped);
  g->kernel = *kernel;
  g->kernel.body = run_wrapped;
  g->inner = kernel;
  /* Such a result is never written into an argument's memory. */
  if (g->kernel.reuse == KILN_REUSE_SELF) g->kernel.reuse = KILN_REUSE_NONE;
  return &g->kernel;
}
