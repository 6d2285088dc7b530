/* composite.c: the book-keeping of operators made of other kernels (composite.h). */
#include "runtime/kernels/composite.h"

#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/shape/view.h"

bool kiln__composite_ok(kiln__composite *r, kiln_status *status) {
  if (!status) return !r->status;
  if (r->status)
    kiln_status_destroy(status);
  else
    r->status = status;
  return false;
}
bool kiln__composite_goes_on(kiln__composite *r) {
  kiln_budget *budget = &r->call->budget;
  if (!__atomic_load_n(&budget->over, __ATOMIC_RELAXED)) return !r->status;
  return kiln__composite_ok(r, kiln_budget_check(budget, 0));
}

/* Takes `v`, also on failure. */
static bool keep(kiln__composite *r, kiln_ivalue v) {
  if (r->count == r->capacity) {
    const size_t old = (size_t)r->capacity * sizeof v;
    kiln_ivalue *more = kiln_cache_alloc(&r->call->cache, 2 * old);
    if (!more) {
      kiln_ivalue_release_to(&r->call->cache, v);
      return kiln__composite_ok(r, kiln_status_oom());
    }
    memcpy(more, r->temps, old);
    if (r->temps != r->few) kiln_cache_free(&r->call->cache, r->temps, old);
    r->temps = more;
    r->capacity *= 2;
  }
  r->temps[r->count++] = v;
  (void)kiln__composite_goes_on(r);
  return true;
}
kiln_tensor *kiln__composite_keep(kiln__composite *r, kiln_tensor *t) {
  return t && keep(r, kiln_of_tensor(t)) ? t : NULL;
}

void kiln__composite_drop(kiln__composite *r, int mark) {
  while (r->count > mark) kiln_ivalue_release_to(&r->call->cache, r->temps[--r->count]);
}

kiln_status *kiln__composite_run(kiln_call *call, kiln__composite_body *composite,
                                 const kiln_ivalue *args, kiln_ivalue *outs) {
  kiln__composite r;
  r.call = call;
  r.status = NULL;
  r.count = 0;
  r.capacity = (int)(sizeof r.few / sizeof *r.few);
  r.temps = r.few;
  kiln_tensor *result = composite(&r, args, outs);
  if (result && !r.status && r.count && r.temps[r.count - 1].u.tensor == result) {
    r.count--; /* the last one kept passes on as it is */
    r.status = kiln__finish(call, outs, result);
  } else if (result || outs->tag == KILN_TAG_NONE) {
    kiln__composite_give(&r, outs, result);
  }
  kiln__composite_drop(&r, 0);
  if (r.temps != r.few) {
    kiln_cache_free(&call->cache, r.temps, (size_t)r.capacity * sizeof *r.temps);
  }
  return r.status;
}

/* -- Calls -- */

/* Results are kept by the composite; false after a failure. */
static bool step(kiln__composite *r, kiln_kernel_body body, int count, const kiln_ivalue *args,
                 kiln_ivalue results[KILN_MAX_OUTS]) {
  (void)kiln_budget_is_over(&r->call->budget);
  if (!kiln__composite_goes_on(r)) return false;
  for (int i = 0; i < KILN_MAX_OUTS; i++) results[i] = kiln_none();
  bool fine = kiln__composite_ok(r, kiln_kernel_step(r->call, body, args, count, results));
  for (int i = 0; i < KILN_MAX_OUTS; i++) {
    if (results[i].tag >= KILN_TAG__COUNTED && !keep(r, results[i])) fine = false;
  }
  return fine && !r->status;
}
/* A step that succeeds without a tensor must not go on as one that has none. */
static kiln_tensor *tensor_of(kiln__composite *r, kiln_ivalue result) {
  if (result.tag == KILN_TAG_TENSOR) return result.u.tensor;
  (void)kiln__composite_ok(r, KILN_OP_FAIL("a step of the operator gave no tensor"));
  return NULL;
}
kiln_tensor *kiln__composite_step(kiln__composite *r, kiln_kernel_body body, int count,
                                  const kiln_ivalue *args) {
  kiln_ivalue results[KILN_MAX_OUTS];
  return step(r, body, count, args, results) ? tensor_of(r, results[0]) : NULL;
}
void kiln__composite_step_many(kiln__composite *r, kiln_kernel_body body, int count,
                               const kiln_ivalue *args, int result_count, kiln_tensor **out) {
  kiln_ivalue results[KILN_MAX_OUTS];
  const bool fine = step(r, body, count, args, results);
  for (int i = 0; i < result_count; i++) {
    out[i] = fine ? tensor_of(r, results[i]) : NULL;
  }
}
kiln_list *kiln__composite_step_list(kiln__composite *r, kiln_kernel_body body, int count,
                                     const kiln_ivalue *args) {
  kiln_ivalue results[KILN_MAX_OUTS];
  if (!step(r, body, count, args, results)) return NULL;
  if (results[0].tag == KILN_TAG_LIST) return results[0].u.list;
  (void)kiln__composite_ok(r, KILN_OP_FAIL("a step of the operator gave no list"));
  return NULL;
}
void kiln__composite_give(kiln__composite *r, kiln_ivalue *out, kiln_tensor *t) {
  if (r->status) return;
  if (!t) {
    (void)kiln__composite_ok(r, KILN_OP_FAIL("a step of the operator gave no tensor"));
    return;
  }
  (void)kiln__composite_ok(r, kiln__finish(r->call, out, kiln_tensor_retain(t)));
}

kiln_tensor *kiln__composite_give_list(kiln__composite *r, kiln_ivalue *out, kiln_list *list) {
  if (list && !r->status) *out = kiln_ivalue_retain(kiln_of_box(list));
  return NULL;
}

kiln_tensor *kiln__composite_map(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype,
                                 double (*f)(double)) {
  kiln_tensor *in, *made;
  const double *x = kiln__composite_read(r, t, KILN_DTYPE_F64, &in);
  double *to =
      kiln__composite_new(r, KILN_DTYPE_F64, kiln_tensor_rank(t), kiln_tensor_sizes(t), &made);
  if (r->status) return NULL;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < t->numel && !kiln_budget_spent(&left, 16); i++) to[i] = f(x[i]);
  return kiln__composite_lay_pointwise(r, made, dtype, 1, &t);
}

kiln_tensor *kiln__composite_map2(kiln__composite *r, kiln_tensor *a, kiln_tensor *b,
                                  kiln_dtype dtype, double (*f)(double, double), int64_t work) {
  if (r->status || !a || !b) return NULL;
  const kiln_ivalue wide = kiln__composite_broadcast(r, a, b);
  kiln_tensor *const operands[] = {a, b};
  kiln_tensor *in[2], *made;
  a = KILN_STEP(r, expand, T(a), wide, B(false));
  b = KILN_STEP(r, expand, T(b), wide, B(false));
  const double *x = kiln__composite_read(r, a, KILN_DTYPE_F64, &in[0]);
  const double *y = kiln__composite_read(r, b, KILN_DTYPE_F64, &in[1]);
  if (r->status) return NULL;
  double *to =
      kiln__composite_new(r, KILN_DTYPE_F64, kiln_tensor_rank(a), kiln_tensor_sizes(a), &made);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; to && i < made->numel && !kiln_budget_spent(&left, work); i++) {
    to[i] = f(x[i], y[i]);
  }
  return kiln__composite_lay_pointwise(r, made, dtype, 2, operands);
}
kiln_tensor *kiln__composite_operand(kiln__composite *r, kiln_ivalue v, kiln_dtype dtype) {
  if (v.tag == KILN_TAG_TENSOR) return v.u.tensor;
  return KILN_STEP(r, full, kiln__composite_no_list(r), v, I(dtype), NONE, NONE, NONE);
}

/* -- Arguments -- */

kiln_ivalue kiln__composite_ints(kiln__composite *r, int count, const int64_t *ints) {
  kiln_ivalue list = kiln_none();
  if (r->status) return list;
  (void)kiln__composite_ok(r, kiln__give_ints(r->call, count, ints, &list));
  return list.tag != KILN_TAG_NONE && keep(r, list) ? list : kiln_none();
}
kiln_ivalue kiln__composite_broadcast(kiln__composite *r, const kiln_tensor *a,
                                      const kiln_tensor *b) {
  int64_t sizes[KILN_MAX_RANK];
  int rank;
  if (r->status || !kiln__composite_ok(r, kiln_tensor_broadcast(a, b, &rank, sizes))) return NONE;
  return kiln__composite_ints(r, rank, sizes);
}
kiln_ivalue kiln__composite_tensors(kiln__composite *r, int64_t count,
                                    kiln_tensor *const *tensors) {
  kiln_list *list;
  if (r->status ||
      !kiln__composite_ok(r, kiln__new_list(r->call, KILN_TYPE_TENSOR, count ? count : 1, &list))) {
    return kiln_none();
  }
  if (!keep(r, kiln_of_box(list))) return kiln_none();
  for (int64_t i = 0; i < count && !r->status; i++) {
    kiln_ivalue item = kiln_of_tensor(kiln_tensor_retain(tensors[i]));
    if (!kiln__composite_ok(r, kiln_list_push(list, item))) break;
  }
  return kiln_of_box(list);
}
kiln_ivalue kiln__composite_text(kiln__composite *r, const char *text) {
  kiln_string *string;
  if (r->status ||
      !kiln__composite_ok(r, kiln_string_create(r->call->env->mem, kiln_str_from(text), &string))) {
    return kiln_none();
  }
  return keep(r, kiln_of_box(string)) ? kiln_of_box(string) : kiln_none();
}

/* -- Questions and shorthand -- */

int kiln__composite_dim(kiln__composite *r, int64_t dim, int rank) {
  int wrapped = 0;
  (void)kiln__composite_ok(r, kiln_wrap_dim(dim, rank, &wrapped));
  return r->status ? 0 : wrapped;
}
bool kiln__composite_check_real(kiln__composite *r, const kiln_tensor *t) {
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  return kiln__composite_ok(r, kiln_dtype_is_complex(dtype) ? kiln__not_implemented(r->call, dtype)
                                                            : kiln__check_dtype(r->call, dtype));
}
const void *kiln__composite_read(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype,
                                 kiln_tensor **out) {
  *out = NULL;
  if (t && kiln_tensor_is_undefined(t)) {
    FAIL(r, "an undefined tensor has no elements");
    return NULL;
  }
  *out = kiln__composite_to(r, t, dtype);
  return *out ? kiln_tensor_data(*out) : NULL;
}
void *kiln__composite_new(kiln__composite *r, kiln_dtype dtype, int rank, const int64_t *sizes,
                          kiln_tensor **out) {
  void *data = NULL;
  *out = NULL;
  if (r->status || !kiln__composite_ok(r, kiln_call_tensor(r->call, dtype, rank, sizes, out))) {
    *out = NULL;
    return NULL;
  }
  *out = kiln__composite_keep(r, *out);
  if (!*out || !kiln__composite_ok(r, kiln_tensor_writable_data(*out, &data))) return NULL;
  return data;
}
kiln_tensor *kiln__composite_empty(kiln__composite *r, kiln_dtype dtype) {
  kiln_tensor *t;
  (void)kiln__composite_new(r, dtype, 1, (const int64_t[]){0}, &t);
  return t;
}
kiln_tensor *kiln__composite_to(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype) {
  if (!t || r->status) return NULL;
  if (kiln_tensor_dtype(t) == dtype && kiln_tensor_is_contiguous(t)) return t;
  return KILN_OWN(r, kiln__as_dtype(r->call, t, dtype, &own_tensor));
}
kiln_tensor *kiln__composite_reshape(kiln__composite *r, kiln_tensor *t, int rank,
                                     const int64_t *sizes) {
  return t ? KILN_OWN(r, kiln__reshape(r->call, t, rank, sizes, &own_tensor)) : NULL;
}
kiln_tensor *kiln__composite_flat(kiln__composite *r, kiln_tensor *t) {
  return t ? kiln__composite_reshape(r, t, 1, &t->numel) : NULL;
}
kiln_tensor *kiln__composite_narrow(kiln__composite *r, kiln_tensor *t, int dim, int64_t start,
                                    int64_t length) {
  return t ? KILN_OWN(r, kiln__narrow(r->call, t, dim, start, length, &own_tensor)) : NULL;
}
bool kiln__composite_put(kiln__composite *r, kiln_tensor *to, kiln_tensor *from) {
  return !r->status && to && from && kiln__composite_ok(r, kiln_pw_copy(r->call, to, from));
}
kiln_tensor *kiln__composite_copy(kiln__composite *r, kiln_tensor *t) {
  kiln_tensor *out;
  if (r->status || !t) return NULL;
  if (!kiln__composite_new(r, kiln_tensor_dtype(t), kiln_tensor_rank(t), kiln_tensor_sizes(t),
                           &out)) {
    return NULL;
  }
  return kiln__composite_ok(r, kiln_tensor_copy(out, t)) ? out : NULL;
}
kiln_tensor *kiln__composite_lay_like(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype,
                                      const kiln_tensor *of) {
  if (r->status || !t) return NULL;
  return KILN_OWN(r, kiln__lay_like(r->call, t, dtype, of, &own_tensor));
}
kiln_tensor *kiln__composite_lay_pointwise(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype,
                                           int count, kiln_tensor *const *operands) {
  if (r->status || !t) return NULL;
  return KILN_OWN(r, kiln__lay_pointwise(r->call, t, dtype, count, operands, &own_tensor));
}
kiln_tensor *kiln__composite_as_float(kiln__composite *r, kiln_tensor *t) {
  const kiln_dtype dtype = kiln__composite_dtype(t);
  return kiln_dtype_is_int(dtype, true) ? kiln__composite_to(r, t, KILN_DTYPE_F32) : t;
}
kiln_tensor *kiln__composite_reduced(kiln__composite *r, kiln_tensor *t, int64_t how) {
  return how == 1 ? KILN_STEP(r, mean, T(t), NONE) : how == 2 ? KILN_STEP(r, sum, T(t), NONE) : t;
}
