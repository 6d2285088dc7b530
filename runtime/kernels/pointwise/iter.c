/* iter.c: the pointwise iterator (iter.h).
 *
 * The common cases are taken first: operands of one dtype, contiguous, of one shape (or a number).
 * Otherwise dimensions are sorted by stride, neighbours that are contiguous in every operand are
 * merged, and the loop runs over the innermost; operands whose dtype is not the loop's are
 * converted through small buffers on the stack.
 *
 * Large work is a range of the call's pool: element by element, so cuts change no bit. */
#include "runtime/kernels/pointwise/iter.h"

#include <math.h>
#include <string.h>

#include "runtime/strides.h"

enum { CHUNK = 256, TURNED_BYTES = 32, MAX_OPERANDS = KILN_PW_MAX_IN + 1 };

kiln_dtype kiln_pw_promote(const kiln_pw *pw, int first) {
  kiln_promotion promotion = KILN_PROMOTION_INIT;
  for (int i = first; i < pw->in_count; i++) {
    const kiln_pw_arg *arg = &pw->in[i];
    if (arg->tensor) {
      kiln_promotion_add_tensor(&promotion, kiln_tensor_dtype(arg->tensor),
                                kiln_tensor_rank(arg->tensor));
    } else {
      kiln_promotion_add_number(&promotion, arg->number.kind);
    }
  }
  return kiln_promotion_result(&promotion);
}

kiln_status *kiln_pw_param(kiln_pw *pw, int index, kiln_number number) {
  /* What computes halves in single precision takes its numbers. */
  const bool selects = pw->functor == KILN_PW_clamp || pw->functor == KILN_PW_clamp_min ||
                       pw->functor == KILN_PW_clamp_max ||
                       (pw->functor == KILN_PW_threshold && index == 1) ||
                       pw->functor == KILN_PW_add_alpha || pw->functor == KILN_PW_sub_alpha;
  const bool half = kiln_dtype_is_half(pw->common);
  KILN_TRY(kiln__number_fits(number, half && !selects ? KILN_DTYPE_F32 : pw->common));
  if (kiln_dtype_is_complex(pw->common)) {
    pw->params.f[2 * index] = number.f;
    pw->params.f[2 * index + 1] = number.im;
  } else {
    pw->params.f[index] = number.f;
  }
  pw->params.i[index] = kiln__number_i64(number);
  if (pw->common == KILN_DTYPE_U8) pw->params.i[index] &= 255;
  if (pw->common == KILN_DTYPE_BOOL) pw->params.i[index] = pw->params.i[index] != 0;
  return NULL;
}

static kiln_dtype result_dtype(const kiln_pw *pw) {
  switch ((kiln_pw_result)kiln__pw_results[pw->functor]) {
    case KILN_PW_BOOL: return KILN_DTYPE_BOOL;
    case KILN_PW_REAL: return kiln_dtype_real(pw->common);
    case KILN_PW_SAME: break;
  }
  return pw->common;
}

/* -- Plain operands -- */

typedef struct plain_run {
  kiln_pw_loop loop;
  char *const *data;
  const int64_t *strides;
  int count; /* operands: the result first */
  const kiln_pw_params *params;
  bool fault; /* atomic */
} plain_run;

static void run_plain_piece(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  plain_run *run = data;
  char *at[MAX_OPERANDS];
  kiln_pw_params params = *run->params;
  for (int i = 0; i < run->count; i++) at[i] = run->data[i] + begin * run->strides[i];
  run->loop(at, run->strides, end - begin, &params);
  if (params.fault) __atomic_store_n(&run->fault, true, __ATOMIC_RELAXED);
}

/* On the pool's threads. */
static __attribute__((noinline)) void split_plain(kiln_call *call, kiln_pw *pw, kiln_pw_loop loop,
                                                  char *const *data, const int64_t *strides,
                                                  int64_t n) {
  plain_run run = {loop, data, strides, pw->in_count + 1, &pw->params, false};
  kiln_pool_for(call->pool, n, KILN_PW_GRAIN, run_plain_piece, &run);
  pw->params.fault = run.fault;
}

static inline bool same_shape(const kiln_tensor *a, const kiln_tensor *b) {
  int rank = kiln_tensor_rank(a);
  if (rank != kiln_tensor_rank(b)) return false;
  const int64_t *x = kiln_tensor_sizes(a), *y = kiln_tensor_sizes(b);
  for (int i = 0; i < rank; i++) {
    if (x[i] != y[i]) return false;
  }
  return true;
}

/* PyTorch makes tensors of no dimensions of numbers, so that the operands are not of one shape; but
 * an exponent and a weight are no operands there. */
static inline bool takes_numbers(const kiln_pw *pw) {
  return pw->functor != KILN_PW_pow && pw->functor != KILN_PW_lerp;
}
/* A number, which is an operand, leaves a row-major tensor's order; without elements the order
 * tells. */
static inline bool keeps_rows(const kiln_tensor *t) {
  return t->numel != 0 && kiln_tensor_has_rows(t);
}

/* One contiguous run over all elements; false: not such a case. */
static inline bool run_plain(kiln_call *call, kiln_pw *pw, kiln_ivalue *out, kiln_pw_loop loop,
                             kiln_ctype ctype, kiln_dtype result, kiln_status **status) {
  const size_t item = kiln_ctype_size(ctype);
  const kiln_tensor *model = NULL;
  int64_t strides[MAX_OPERANDS];
  char *data[MAX_OPERANDS];
  double slots[KILN_PW_MAX_IN][2];
  bool numbers = false;
  for (int i = 0; i < pw->in_count; i++) {
    kiln_tensor *t = pw->in[i].tensor;
    if (!t) {
      kiln__number_store(pw->in[i].number, pw->common, slots[i]);
      data[i + 1] = (char *)slots[i];
      strides[i + 1] = 0;
      numbers = true;
      continue;
    }
    if (kiln_tensor_dtype(t) != pw->common || !kiln_tensor_is_contiguous(t)) return false;
    if (!model)
      model = t;
    else if (!same_shape(model, t))
      return false;
    if (out->tag == KILN_TAG_TENSOR && out->u.tensor != t && out->u.tensor->storage == t->storage) {
      return false; /* views of one storage: whether they overlap is looked at there */
    }
    strides[i + 1] = (int64_t)item;
  }
  if (!model) return false;
  kiln_tensor *dest = kiln__dest(out);
  void *to;
  if (dest) {
    if (dest != model || kiln_tensor_dtype(dest) != result) return false;
    *status = kiln_tensor_writable_data(dest, &to);
    if (*status) return true;
  } else {
    if (numbers && !keeps_rows(model) && takes_numbers(pw)) return false;
    *status =
        kiln_call_tensor(call, result, kiln_tensor_rank(model), kiln_tensor_sizes(model), &dest);
    if (*status) return true;
    kiln__give(out, dest);
    to = (char *)dest->storage->data;
  }
  data[0] = to;
  strides[0] = (int64_t)kiln_dtype_bytes(result);
  for (int i = 0; i < pw->in_count; i++) {
    if (pw->in[i].tensor) data[i + 1] = (char *)(uintptr_t)kiln_tensor_data(pw->in[i].tensor);
  }
  if (__builtin_expect(
          model->numel >= 2 * KILN_PW_GRAIN && (call->pool || kiln_budget_may_end(&call->budget)),
          0)) {
    split_plain(call, pw, loop, data, strides, model->numel);
  } else {
    loop(data, strides, model->numel, &pw->params);
  }
  if (__builtin_expect(pw->params.fault, 0)) *status = KILN_OP_FAIL("ZeroDivisionError");
  return true;
}

/* -- The general case -- */

typedef struct operand {
  char *data;
  int64_t item;
  kiln_cast_loop load; /* to the loop's type; NULL: read in place */
  kiln_dtype narrow;   /* first wrap or round to this dtype, NONE: not needed */
  kiln_cast_loop narrow_load;
  double slot[2]; /* of a number, or of a single element that was converted */
} operand;

typedef struct state {
  kiln_call *call;
  kiln_pw *pw;
  kiln_pw_loop loop;
  kiln_ctype ctype, result_ctype;
  kiln_dtype result;
  int count; /* operands: the result first */
  operand ops[MAX_OPERANDS];
  kiln_cast_loop store, widen, restore; /* result: to its dtype; then, for another dtype, on */
  int rank;
  int64_t sizes[KILN_MAX_RANK];
  int64_t strides[MAX_OPERANDS][KILN_MAX_RANK]; /* in elements, then in bytes */
} state;

static kiln_status *merge_shapes(state *s, const kiln_tensor *dest) {
  bool first = true;
  for (int i = 0; i < s->pw->in_count; i++) {
    const kiln_tensor *t = s->pw->in[i].tensor;
    if (!t) continue;
    if (first) {
      s->rank = kiln_tensor_rank(t);
      memcpy(s->sizes, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)s->rank);
      first = false;
    } else {
      KILN_TRY(kiln_broadcast(s->rank, s->sizes, kiln_tensor_rank(t), kiln_tensor_sizes(t),
                              &s->rank, s->sizes));
    }
  }
  if (!dest || !(s->pw->fixed_shape || dest == s->pw->in[0].tensor)) return NULL;
  /* In place: the destination takes part and must have the result's shape. */
  if (first) {
    s->rank = kiln_tensor_rank(dest);
    memcpy(s->sizes, kiln_tensor_sizes(dest), sizeof(int64_t) * (size_t)s->rank);
    return NULL;
  }
  KILN_TRY(kiln_broadcast(kiln_tensor_rank(dest), kiln_tensor_sizes(dest), s->rank, s->sizes,
                          &s->rank, s->sizes));
  if (!kiln_tensor_has_sizes(dest, s->rank, s->sizes)) {
    return KILN_OP_FAIL("output with shape %s doesn't match the broadcast shape %s",
                        kiln__sizes_of(dest).text, kiln__sizes(s->rank, s->sizes).text);
  }
  return NULL;
}

static bool is_narrow_int(kiln_dtype d) {
  return kiln_dtype_is_int(d, false) && kiln_ctype_dtype(kiln_ctype_of(d)) != d;
}

/* Whether an operand of that dtype must be rounded to a half float before it is computed with in
 * single precision. PyTorch takes the second operand of sums, products and quotients as it is where
 * it has no dimensions. */
static bool is_rounded_first(const state *s, int i, kiln_dtype dtype, kiln_dtype want) {
  if ((want != KILN_DTYPE_F16 && want != KILN_DTYPE_BF16) || dtype == want) return false;
  if (s->pw->functor == KILN_PW_copy) return false; /* its result is rounded */
  if (i != 1 || kiln_tensor_rank(s->pw->in[i].tensor) > 0) return true;
  switch (s->pw->functor) {
    case KILN_PW_add:
    case KILN_PW_add_alpha:
    case KILN_PW_sub:
    case KILN_PW_sub_alpha:
    case KILN_PW_mul:
    case KILN_PW_div:
    case KILN_PW_div_floor:
    case KILN_PW_div_trunc: return false;
    default: return true;
  }
}

/* Prepares reading of operand i of the functor. */
static kiln_status *prepare_input(state *s, int i) {
  operand *op = &s->ops[i + 1];
  kiln_pw_arg *arg = &s->pw->in[i];
  kiln_dtype want = s->pw->select && i == 0 ? KILN_DTYPE_BOOL : s->pw->common;
  kiln_ctype ctype = kiln_ctype_of(want);
  *op = (operand){.narrow = KILN_DTYPE_NONE};
  if (!arg->tensor) {
    /* Small integers wrap to their width; small floats keep float's digits. */
    kiln_dtype as = is_narrow_int(want) ? want : kiln_ctype_dtype(ctype);
    double raw[2] = {0, 0};
    kiln__number_store(arg->number, as, raw);
    s->call->dispatch->load[as][ctype]((char *)op->slot, 0, (char *)raw, 0, 1);
    op->item = 0;
    return NULL;
  }
  kiln_dtype dtype = kiln_tensor_dtype(arg->tensor);
  if (kiln_ctype_of(dtype) == KILN_CTYPE_NONE) return kiln__not_implemented(s->call, dtype);
  op->item = (int64_t)kiln_dtype_bytes(dtype);
  if (dtype != kiln_ctype_dtype(ctype)) op->load = s->call->dispatch->load[dtype][ctype];
  if ((dtype != want && is_narrow_int(want)) || is_rounded_first(s, i, dtype, want)) {
    op->narrow = want;
    op->narrow_load = s->call->dispatch->load[want][ctype];
  }
  return NULL;
}

/* After the destination was made writable: addresses. */
static void bind_input(state *s, int i) {
  operand *op = &s->ops[i + 1];
  kiln_tensor *t = s->pw->in[i].tensor;
  if (!t) {
    op->data = (char *)op->slot;
    return;
  }
  op->data = (char *)(uintptr_t)kiln_tensor_data(t);
  if (op->load && t->numel == 1) { /* converted once */
    kiln_ctype ctype = s->pw->select && i == 0 ? KILN_CTYPE_BOOL : s->ctype;
    op->load((char *)op->slot, 0, op->data, 0, 1);
    if (op->narrow != KILN_DTYPE_NONE) {
      double raw[2];
      s->call->dispatch->store[ctype][op->narrow]((char *)raw, 0, (char *)op->slot, 0, 1);
      op->narrow_load((char *)op->slot, 0, (char *)raw, 0, 1);
    }
    op->load = NULL;
    op->data = (char *)op->slot;
    memset(s->strides[i + 1], 0, sizeof(int64_t) * (size_t)s->rank);
  }
}

static kiln_status *prepare_output(state *s, kiln_ivalue *out) {
  kiln_tensor *dest = kiln__dest(out);
  if (dest) {
    if (!kiln_dtype_can_cast(s->result, kiln_tensor_dtype(dest))) {
      return KILN_OP_FAIL("result type %s can't be cast to the desired output type %s",
                          kiln_dtype_ir_name(s->result),
                          kiln_dtype_ir_name(kiln_tensor_dtype(dest)));
    }
    KILN_TRY(kiln_tensor_resize(dest, s->rank, s->sizes));
    KILN_TRY(kiln__check_overlap(dest, dest));
    for (int i = 0; i < s->pw->in_count; i++) {
      if (s->pw->in[i].tensor && s->pw->in[i].tensor != dest) {
        KILN_TRY(kiln__check_overlap(dest, s->pw->in[i].tensor));
      }
    }
  } else {
    kiln_strided operands[KILN_PW_MAX_IN];
    int64_t strides[KILN_MAX_RANK];
    int count = 0;
    for (int i = 0; i < s->pw->in_count; i++) {
      if (s->pw->in[i].tensor)
        operands[count++] = kiln_tensor_strided(s->pw->in[i].tensor);
      else if (takes_numbers(s->pw))
        operands[count++] = (kiln_strided){0, NULL, NULL};
    }
    kiln_strides_pointwise(s->rank, s->sizes, operands, count, strides);
    if (kiln_strides_are_rows(s->rank, s->sizes, strides)) {
      KILN_TRY(kiln_call_tensor(s->call, s->result, s->rank, s->sizes, &dest));
    } else {
      KILN_TRY(kiln_call_check(s->call, 0));
      KILN_TRY(kiln_tensor_create_strided(s->call->env->mem, &s->call->cache, s->result, s->rank,
                                          s->sizes, strides, &dest));
    }
    kiln__give(out, dest);
  }
  operand *op = &s->ops[0];
  void *data;
  KILN_TRY(kiln_tensor_writable_data(dest, &data));
  *op = (operand){.data = data, .item = (int64_t)kiln_tensor_item_size(dest)};
  memcpy(s->strides[0], kiln_tensor_strides(dest), sizeof(int64_t) * (size_t)s->rank);
  kiln_dtype dtype = kiln_tensor_dtype(dest), native = kiln_ctype_dtype(s->result_ctype);
  const kiln_dispatch *d = s->call->dispatch;
  if (dtype == native && s->result == native) return NULL;
  s->store = d->store[s->result_ctype][s->result];
  if (dtype != s->result) { /* rounded or wrapped to the result's dtype first */
    kiln_ctype to = kiln_ctype_of(dtype);
    if (to == KILN_CTYPE_NONE) return kiln__not_implemented(s->call, dtype);
    s->widen = d->load[s->result][to];
    s->restore = d->store[to][dtype];
  }
  return NULL;
}

/* Sorts dimensions innermost first and merges neighbours; strides become bytes. */
static void coalesce(state *s) {
  int order[KILN_MAX_RANK];
  int64_t sizes[KILN_MAX_RANK], strides[MAX_OPERANDS][KILN_MAX_RANK];
  kiln_strides_order(s->rank, s->sizes, s->count, (const int64_t(*)[KILN_MAX_RANK])s->strides,
                     order);
  int rank = 0;
  for (int i = 0; i < s->rank; i++) {
    int d = order[i];
    if (s->sizes[d] == 1) continue;
    bool merge = rank > 0;
    for (int k = 0; merge && k < s->count; k++) {
      merge = s->strides[k][d] * s->ops[k].item == strides[k][rank - 1] * sizes[rank - 1];
    }
    if (merge) {
      sizes[rank - 1] *= s->sizes[d];
      continue;
    }
    sizes[rank] = s->sizes[d];
    for (int k = 0; k < s->count; k++) strides[k][rank] = s->strides[k][d] * s->ops[k].item;
    rank++;
  }
  if (rank == 0) {
    sizes[0] = 1;
    for (int k = 0; k < s->count; k++) strides[k][0] = s->ops[k].item;
    rank = 1;
  }
  s->rank = rank;
  memcpy(s->sizes, sizes, sizeof(int64_t) * (size_t)rank);
  for (int k = 0; k < s->count; k++) {
    memcpy(s->strides[k], strides[k], sizeof(int64_t) * (size_t)rank);
  }
}

static void convert_input(const state *s, int k, const char *data, int64_t stride, int64_t n,
                          char *buffer, char *narrow) {
  const operand *op = &s->ops[k];
  kiln_ctype ctype = s->pw->select && k == 1 ? KILN_CTYPE_BOOL : s->ctype;
  int64_t item = (int64_t)kiln_ctype_size(ctype);
  if (op->load)
    op->load(buffer, item, data, stride, n);
  else
    s->call->dispatch->load[kiln_ctype_dtype(ctype)][ctype](buffer, item, data, stride, n);
  if (op->narrow == KILN_DTYPE_NONE) return;
  int64_t small = (int64_t)kiln_dtype_bytes(op->narrow);
  s->call->dispatch->store[ctype][op->narrow](narrow, small, buffer, item, n);
  op->narrow_load(buffer, item, narrow, small, n);
}

/* The one conversion that a copy is; NULL: it is several, or none. */
static kiln_cast_loop only_conversion(const state *s) {
  const operand *from = &s->ops[1];
  if (s->pw->functor != KILN_PW_copy || from->narrow != KILN_DTYPE_NONE || s->widen) return NULL;
  return !s->store ? from->load : from->load ? NULL : s->store;
}

/* One inner run through buffers. */
static void run_converted(const state *s, char *const *data, const int64_t *strides, int64_t n,
                          kiln_pw_params *params) {
  _Alignas(64) char buffers[MAX_OPERANDS][CHUNK * 16];
  _Alignas(64) char narrow[CHUNK * 16];
  const kiln_cast_loop only = only_conversion(s);
  if (only) {
    only(data[0], strides[0], data[1], strides[1], n);
    return;
  }
  for (int64_t at = 0; at < n; at += CHUNK) {
    int64_t m = n - at < CHUNK ? n - at : CHUNK;
    char *chunk[MAX_OPERANDS];
    int64_t steps[MAX_OPERANDS];
    for (int k = 1; k < s->count; k++) {
      chunk[k] = data[k] + at * strides[k];
      steps[k] = strides[k];
      if (s->ops[k].load || s->ops[k].narrow != KILN_DTYPE_NONE) {
        if (strides[k] == 0) { /* one element for the whole run */
          convert_input(s, k, chunk[k], 0, 1, buffers[k], narrow);
        } else {
          convert_input(s, k, chunk[k], strides[k], m, buffers[k], narrow);
          kiln_ctype ctype = s->pw->select && k == 1 ? KILN_CTYPE_BOOL : s->ctype;
          steps[k] = (int64_t)kiln_ctype_size(ctype);
        }
        chunk[k] = buffers[k];
      }
    }
    char *to = data[0] + at * strides[0];
    if (!s->store) {
      chunk[0] = to;
      steps[0] = strides[0];
      s->loop(chunk, steps, m, params);
      continue;
    }
    chunk[0] = buffers[0];
    steps[0] = (int64_t)kiln_ctype_size(s->result_ctype);
    s->loop(chunk, steps, m, params);
    if (!s->widen) {
      s->store(to, strides[0], chunk[0], steps[0], m);
      continue;
    }
    int64_t item = (int64_t)kiln_dtype_bytes(s->result);
    s->store(narrow, item, chunk[0], steps[0], m);
    s->widen(buffers[0], 16, narrow, item, m);
    s->restore(to, strides[0], buffers[0], 16, m);
  }
}

typedef struct dims_run {
  const state *s;
  bool convert;
  int split;  /* the dimension that pieces are cut from */
  bool fault; /* atomic */
} dims_run;

/* The dimension in which the source of a plain copy goes on from element to element where the
 * result does so in the innermost; 0: there is none, or they are short. */
static int turned_dim(const state *s) {
  const int64_t item = s->ops[0].item;
  if (s->pw->functor != KILN_PW_copy || s->result == KILN_DTYPE_BOOL || s->strides[0][0] != item)
    return 0;
  for (int d = 1; d < s->rank && s->sizes[0] * item >= TURNED_BYTES; d++) {
    if (s->strides[1][d] == item) return s->sizes[d] * item >= TURNED_BYTES ? d : 0;
  }
  return 0;
}

/* All of the iteration, with [begin, end) of dimension `split`. */
static void run_dims_piece(void *arg, int64_t begin, int64_t end, int worker) {
  (void)worker;
  dims_run *run = arg;
  const state *s = run->s;
  const int rank = s->rank;
  char *data[MAX_OPERANDS];
  int64_t inner[MAX_OPERANDS], index[KILN_MAX_RANK], sizes[KILN_MAX_RANK];
  kiln_pw_params params = s->pw->params;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int d = 0; d < rank; d++) {
    index[d] = 0;
    sizes[d] = d == run->split ? end - begin : s->sizes[d];
  }
  for (int k = 0; k < s->count; k++) {
    data[k] = s->ops[k].data + begin * s->strides[k][run->split];
    inner[k] = s->strides[k][0];
  }
  const int turned = run->convert ? 0 : turned_dim(s);
  const int64_t columns = turned ? sizes[turned] : 1;
  if (turned) sizes[turned] = 1;
  for (;;) {
    if (turned)
      kiln__turn(data[0], s->strides[0][turned], data[1], inner[1], sizes[0], columns, inner[0]);
    else if (run->convert)
      run_converted(s, data, inner, sizes[0], &params);
    else
      s->loop(data, inner, sizes[0], &params);
    int d = 1;
    for (; d < rank; d++) {
      for (int k = 0; k < s->count; k++) data[k] += s->strides[k][d];
      if (++index[d] < sizes[d]) break;
      for (int k = 0; k < s->count; k++) data[k] -= s->strides[k][d] * sizes[d];
      index[d] = 0;
    }
    if (d >= rank || kiln_budget_spent(&left, sizes[0] * columns)) break;
  }
  if (params.fault) __atomic_store_n(&run->fault, true, __ATOMIC_RELAXED);
}

static void run_dims(state *s) {
  int64_t numel = 1;
  dims_run run = {.s = s, .convert = s->store != NULL, .split = 0};
  KILN_ASSERT(s->count > 0 && s->rank > 0); /* a result and what coalesce has left */
  for (int k = 1; k < s->count; k++) {
    run.convert = run.convert || s->ops[k].load ||
                  (s->ops[k].narrow != KILN_DTYPE_NONE && s->ops[k].data != (char *)s->ops[k].slot);
  }
  for (int d = 0; d < s->rank; d++) numel *= s->sizes[d];
  const bool cut = s->call->pool || kiln_budget_may_end(&s->call->budget);
  if (!cut || numel < 2 * KILN_PW_GRAIN) {
    run_dims_piece(&run, 0, s->sizes[0], 0);
  } else {
    /* The outermost dimension that has pieces for all threads, else the longest. A look at the
     * budget comes after each inner run: one that is too long for that is cut itself. */
    const int64_t enough = 4 * (int64_t)kiln_pool_threads(s->call->pool);
    const bool lasting = kiln_budget_may_end(&s->call->budget) && s->sizes[0] > 1 << 20;
    for (int d = 1; d < s->rank && !lasting; d++) {
      if (s->sizes[d] >= enough || s->sizes[d] > s->sizes[run.split]) run.split = d;
    }
    int64_t each = numel / s->sizes[run.split]; /* elements of one step */
    int64_t grain = (KILN_PW_GRAIN + each - 1) / each;
    kiln_pool_for(s->call->pool, s->sizes[run.split], grain, run_dims_piece, &run);
  }
  s->pw->params.fault = run.fault;
}

static __attribute__((noinline)) kiln_status *run_general(kiln_call *call, kiln_pw *pw,
                                                          kiln_ivalue *out, kiln_pw_loop loop,
                                                          kiln_ctype ctype, kiln_dtype result) {
  state s;
  s.call = call;
  s.pw = pw;
  s.loop = loop;
  s.ctype = ctype;
  s.result = result;
  s.result_ctype = kiln_ctype_of(result);
  s.count = pw->in_count + 1;
  s.store = s.widen = s.restore = NULL;
  s.rank = 0;
  KILN_TRY(merge_shapes(&s, kiln__dest(out)));
  for (int i = 0; i < pw->in_count; i++) KILN_TRY(prepare_input(&s, i));
  KILN_TRY(prepare_output(&s, out));
  int64_t numel = 1;
  for (int i = 0; i < s.rank; i++) numel *= s.sizes[i] != 0; /* only whether it is empty */
  if (numel == 0) return NULL;
  for (int i = 0; i < pw->in_count; i++) {
    memset(s.strides[i + 1], 0, sizeof(int64_t) * (size_t)s.rank);
    if (pw->in[i].tensor) {
      const kiln_strided dims = kiln_tensor_strided(pw->in[i].tensor);
      kiln_strides_spread(s.rank, s.sizes, &dims, s.strides[i + 1]);
    }
    bind_input(&s, i);
  }
  coalesce(&s);
  run_dims(&s);
  if (pw->params.fault) return KILN_OP_FAIL("ZeroDivisionError");
  return NULL;
}

kiln_status *kiln_pw_run(kiln_call *call, kiln_pw *pw, kiln_ivalue *out) {
  kiln_ctype ctype = kiln_ctype_of(pw->common);
  kiln_pw_loop loop = ctype == KILN_CTYPE_NONE ? NULL : call->dispatch->loops[ctype][pw->functor];
  if (__builtin_expect(!loop, 0)) return kiln__not_implemented(call, pw->common);
  kiln_dtype result = result_dtype(pw);
  if (__builtin_expect(kiln_ctype_dtype(ctype) == pw->common && !pw->select, 1)) {
    kiln_status *status = NULL;
    if (run_plain(call, pw, out, loop, ctype, result, &status)) return status;
  }
  return run_general(call, pw, out, loop, ctype, result);
}

kiln_status *kiln_pw_run_rows(kiln_call *call, kiln_pw *pw, kiln_ivalue *out) {
  const kiln_tensor *t = pw->in[pw->in[0].tensor ? 0 : 1].tensor;
  if (!kiln__dest(out) && kiln_ctype_of(pw->common) != KILN_CTYPE_NONE) {
    kiln_tensor *result;
    KILN_TRY(kiln_call_tensor(call, result_dtype(pw), kiln_tensor_rank(t), kiln_tensor_sizes(t),
                              &result));
    kiln__give(out, result);
  }
  return kiln_pw_run(call, pw, out);
}

/* -- Copies -- */

kiln_status *kiln_pw_copy(kiln_call *call, kiln_tensor *dst, kiln_tensor *src) {
  if (dst == src) return NULL;
  kiln_dtype to = kiln_tensor_dtype(dst);
  if (same_shape(dst, src) && kiln_tensor_is_contiguous(dst) && kiln_tensor_is_contiguous(src) &&
      to == kiln_tensor_dtype(src)) {
    void *data;
    KILN_TRY(kiln_tensor_writable_data(dst, &data));
    size_t bytes = (size_t)dst->numel * kiln_tensor_item_size(dst);
    if (bytes) kiln__move(data, kiln_tensor_data(src), bytes);
    return NULL;
  }
  kiln_ctype ctype = kiln_ctype_of(to);
  if (ctype == KILN_CTYPE_NONE || kiln_ctype_of(kiln_tensor_dtype(src)) == KILN_CTYPE_NONE) {
    return kiln_tensor_copy(dst, src);
  }
  kiln_pw pw = {.functor = KILN_PW_copy,
                .in_count = 1,
                .common = to,
                .fixed_shape = true,
                .in = {{.tensor = src}}};
  kiln_ivalue out = kiln_of_tensor(dst);
  return run_general(call, &pw, &out, call->dispatch->loops[ctype][KILN_PW_copy], ctype, to);
}

static kiln_status *fill_once(kiln_call *call, kiln_tensor *dst, kiln_number number) {
  kiln_dtype dtype = kiln_tensor_dtype(dst);
  kiln_ctype ctype = kiln_ctype_of(dtype);
  KILN_TRY(kiln__check_stored(call, dtype));
  if (ctype == KILN_CTYPE_NONE && !kiln_tensor_is_contiguous(dst)) {
    return kiln__not_implemented(call, dtype);
  }
  if (kiln_tensor_is_contiguous(dst)) {
    double raw[2] = {0, 0};
    void *data;
    kiln__number_store(number, dtype, raw);
    KILN_TRY(kiln_tensor_writable_data(dst, &data));
    size_t item = kiln_dtype_bytes(dtype), bytes = (size_t)dst->numel * item;
    if (raw[0] == 0 && raw[1] == 0 && !signbit(raw[0])) {
      kiln__zero(data, bytes);
      return NULL;
    }
    memcpy(data, raw, item);
    /* What is filled, up to a block, over and over. */
    size_t block = item, n;
    int64_t left = KILN_BUDGET_ITEMS;
    for (size_t done = item; done < bytes; done += n) {
      n = block < bytes - done ? block : bytes - done;
      if (kiln_budget_spent(&left, (int64_t)(n / 16))) break;
      memcpy((char *)data + done, data, n);
      if (block < 1 << 20) block *= 2;
    }
    return NULL;
  }
  kiln_pw pw = {.functor = KILN_PW_copy,
                .in_count = 1,
                .common = dtype,
                .fixed_shape = true,
                .in = {{NULL, number}}};
  kiln_ivalue out = kiln_of_tensor(dst);
  return run_general(call, &pw, &out, call->dispatch->loops[ctype][KILN_PW_copy], ctype, dtype);
}
kiln_status *kiln_pw_fill(kiln_call *call, kiln_tensor *dst, kiln_number number) {
  kiln_tensor *once;
  if (dst->numel == 0) return NULL;
  KILN_TRY(kiln__once(call, dst, &once));
  kiln_status *status = fill_once(call, once, number);
  kiln_tensor_release_to(&call->cache, once);
  return status;
}
kiln_status *kiln_pw_fill_fitting(kiln_call *call, kiln_tensor *dst, kiln_number number) {
  const kiln_dtype dtype = kiln_tensor_dtype(dst);
  if (!kiln_dtype_is_int(dtype, true)) KILN_TRY(kiln__number_fits(number, dtype));
  return kiln_pw_fill(call, dst, number);
}
