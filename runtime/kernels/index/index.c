/* index.c: gathering and scattering along one dimension: index_select, gather, scatter,
 * nonzero, masked_select. */
#include "runtime/kernels/index/index.h"

#include "runtime/kernels/composite.h"
#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/shape/view.h"

/* to = to + from, or to * from, as the pointwise kernels compute them: small floats as floats. */
static void combine_element(char *to, const char *from, kiln_dtype dtype, bool product) {
  if (dtype == KILN_DTYPE_I64 || dtype == KILN_DTYPE_U64) {
    const uint64_t a = *(const uint64_t *)to, b = *(const uint64_t *)from;
    *(uint64_t *)to = product ? a * b : a + b;
  } else if (kiln_dtype_is_int(dtype, true)) {
    const int64_t a = kiln_element_i64(dtype, to), b = kiln_element_i64(dtype, from);
    const int64_t result = product ? a * b : a + b;
    kiln_element_put_i64(dtype, dtype == KILN_DTYPE_BOOL ? result != 0 : result, to);
  } else if (dtype == KILN_DTYPE_F64) {
    const double a = *(const double *)to, b = *(const double *)from;
    *(double *)to = product ? a * b : a + b;
  } else if (dtype == KILN_DTYPE_C128) {
    double *a = (double *)to;
    const double *b = (const double *)from, re = a[0], im = a[1];
    a[0] = product ? re * b[0] - im * b[1] : re + b[0];
    a[1] = product ? re * b[1] + im * b[0] : im + b[1];
  } else {
    double im[2] = {0};
    const float re_a = (float)kiln_element_f64(dtype, to, &im[0]), im_a = (float)im[0];
    const float re_b = (float)kiln_element_f64(dtype, from, &im[1]), im_b = (float)im[1];
    const float re = product ? re_a * re_b - im_a * im_b : re_a + re_b;
    kiln_element_put_c128(dtype, re, product ? re_a * im_b + im_a * re_b : im_a + im_b, to);
  }
}
void kiln__add_element(char *to, const char *from, kiln_dtype dtype) {
  switch (dtype) {
    case KILN_DTYPE_F32: *(float *)to += *(const float *)from; return;
    case KILN_DTYPE_F64: *(double *)to += *(const double *)from; return;
    case KILN_DTYPE_I64: *(uint64_t *)to += *(const uint64_t *)from; return;
    case KILN_DTYPE_I32: *(uint32_t *)to += *(const uint32_t *)from; return;
    case KILN_DTYPE_BOOL: *to = (char)(*to | *from); return;
    default: combine_element(to, from, dtype, false);
  }
}

kiln_status *kiln__as_index(kiln_call *call, kiln_tensor *t, kiln_tensor **out) {
  kiln_dtype dtype = kiln_tensor_dtype(t);
  if (!kiln_dtype_is_int(dtype, false)) {
    return KILN_OP_FAIL("tensors used as indices must be long, int, byte or bool tensors");
  }
  return kiln__as_dtype(call, t, KILN_DTYPE_I64, out);
}

int64_t kiln__count_set(const uint8_t *flags, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0, end; (end = kiln_budget_piece(i, n)) > i;) {
    for (; i < end; i++) count += flags[i] != 0;
  }
  return count;
}

/* The places of what is set, all `count` of it; a column for each dimension. */
static void put_places(const uint8_t *f, int rank, const int64_t *sizes, int64_t *to,
                       int64_t count) {
  const int last = rank - 1;
  int64_t rows = 1, at[KILN_MAX_RANK] = {0}, left = KILN_BUDGET_ITEMS;
  for (int d = 0; d < last; d++) rows *= sizes[d];
  for (; rows > 0 && !kiln_budget_spent(&left, sizes[last]); rows--, f += sizes[last]) {
    for (int64_t i = 0, end; (end = kiln_budget_piece(i, sizes[last])) > i;) {
      for (; i < end; i++) {
        if (!f[i]) continue;
        for (int d = 0; d < last; d++) to[d * count] = at[d];
        to[last * count] = i;
        to++;
      }
    }
    for (int d = last - 1; d >= 0 && ++at[d] == sizes[d]; d--) at[d] = 0;
  }
}
kiln_status *kiln__nonzero(kiln_call *call, kiln_tensor *t, kiln_tensor **out) {
  kiln_tensor *flags;
  const int rank = kiln_tensor_rank(t);
  KILN_TRY(kiln__as_dtype(call, t, KILN_DTYPE_BOOL, &flags));
  const uint8_t *f = kiln_tensor_data(flags);
  const int64_t sizes[2] = {kiln__count_set(f, flags->numel), rank};
  kiln_status *status = kiln_budget_check(&call->budget, 0); /* was all of it counted? */
  if (!status) {
    status = kiln_tensor_create_strided(call->env->mem, &call->cache, KILN_DTYPE_I64, 2, sizes,
                                        (int64_t[]){1, sizes[0]}, out);
  }
  if (!status && sizes[0] && rank) {
    put_places(f, rank, kiln_tensor_sizes(t), (int64_t *)(uintptr_t)kiln_tensor_data(*out),
               sizes[0]);
  }
  kiln_tensor_release_to(&call->cache, flags);
  return status;
}
KILN_KERNEL(nonzero) {
  kiln_tensor *result;
  KILN_TRY(kiln__nonzero(call, SELF, &result));
  return kiln__finish(call, outs, result);
}
/* One 1-D tensor for each dimension: where(condition), nonzero_numpy. */
KILN_COMPOSITE(nonzero_numpy) {
  kiln_tensor *t = SELF;
  if (kiln_tensor_rank(t) == 0) t = KILN_STEP(r, unsqueeze, T(t), I(0));
  kiln_tensor *places = KILN_STEP(r, nonzero, T(t));
  return kiln__composite_give_list(r, outs, KILN_STEP_LIST(r, unbind, T(places), I(1)));
}

/* -- Whole slices -- */

/* Blocks of a size that the compiler knows: elements, not calls of memcpy. */
#define TAKE_ITEMS(bytes)                                              \
  case bytes:                                                          \
    for (int64_t i = 0; i < count; i++)                                \
      memcpy(to + i * bytes, from + (size_t)places[i] * apart, bytes); \
    break;
/* Places that follow each other are one copy: of roll(x, 3) there are two. */
static void take_some(char *to, const char *from, const int64_t *places, int64_t count,
                      size_t apart, size_t block) {
  switch (block) {
    TAKE_ITEMS(1)
    TAKE_ITEMS(2)
    TAKE_ITEMS(4)
    TAKE_ITEMS(8)
    TAKE_ITEMS(16)
    default:
      for (int64_t i = 0, end; i < count; to += (size_t)(end - i) * block, i = end) {
        for (end = i + 1; end < count && apart == block && places[end] == places[end - 1] + 1;)
          end++;
        memcpy(to, from + (size_t)places[i] * apart, (size_t)(end - i) * block);
      }
  }
}
void kiln__take_blocks(char *to, const char *from, const int64_t *places, int64_t count,
                       size_t apart, size_t block) {
  const int64_t work = 1 + (int64_t)(block / 16), step = 1 + KILN_BUDGET_ITEMS / work;
  for (int64_t i = 0; i < count && (i == 0 || !kiln_budget_leaves_out()); i += step) {
    take_some(to + (size_t)i * block, from, places + i, count - i < step ? count - i : step, apart,
              block);
  }
}
/* Places that go up, stay or go down by one: a row of flip(x, -1) is one run, of a padded one three
 * at most. */
typedef struct run {
  int64_t place, count, step;
} run;
enum { MOST_RUNS = 8, MEAN_RUN = 8 /* elements, at least */ };
/* The number of runs; 0 where elements are as well taken one by one. */
static int find_runs(const int64_t *places, int64_t count, size_t block, run *runs) {
  int n = 0;
  if ((block & (block - 1)) || block > 8 || count > KILN_BUDGET_ITEMS) return 0;
  for (int64_t i = 0, end; i < count; i = end) {
    int64_t step = i + 1 < count ? places[i + 1] - places[i] : 1;
    if (step < -1 || step > 1) step = 1;
    for (end = i + 1; end < count && places[end] - places[end - 1] == step;) end++;
    if (n == MOST_RUNS) return 0;
    runs[n++] = (run){places[i], end - i, step};
  }
  return count >= n * MEAN_RUN ? n : 0;
}
#define PUT_RUN(bytes)                                                                          \
  case bytes:                                                                                   \
    for (int64_t i = 0; r->step < 0 && i < r->count; i++)                                       \
      memcpy(to + i * bytes, from - i * bytes, bytes);                                          \
    for (int64_t i = 0; r->step == 0 && i < r->count; i++) memcpy(to + i * bytes, from, bytes); \
    break;
static void take_run(char *restrict to, const char *restrict from, const run *r, size_t block) {
  from += (size_t)r->place * block;
  if (r->step > 0) {
    memcpy(to, from, (size_t)r->count * block);
    return;
  }
  switch (block) {
    PUT_RUN(1)
    PUT_RUN(2)
    PUT_RUN(4)
    PUT_RUN(8)
    default: break;
  }
}
void kiln__take_rows(char *to, const char *from, int64_t outer, int64_t n, const int64_t *places,
                     int64_t count, size_t block) {
  const int64_t work = count * (1 + (int64_t)(block / 16));
  int64_t left = KILN_BUDGET_ITEMS;
  run runs[MOST_RUNS];
  if (count == 0 || block == 0) return;
  const int run_count = outer > 1 ? find_runs(places, count, block, runs) : 0;
  for (int64_t o = 0; o < outer && !kiln_budget_spent(&left, work); o++) {
    char *at = to;
    for (int i = 0; i < run_count; i++) {
      take_run(at, from, &runs[i], block);
      at += (size_t)runs[i].count * block;
    }
    if (!run_count) kiln__take_blocks(to, from, places, count, block, block);
    to += (size_t)count * block;
    from += (size_t)n * block;
  }
}
static kiln_tensor *as_index(kiln__composite *r, kiln_tensor *t) {
  return KILN_OWN(r, kiln__as_index(r->call, t, &own_tensor));
}
/* Rows of a contiguous [outer, n, inner] at the places of the index. */
KILN_COMPOSITE(index_select) {
  kiln_tensor *t = SELF, *index = ARG(2), *result;
  const int rank = kiln_tensor_rank(t), dim = kiln__composite_dim(r, kiln_arg_int(args, 1), rank);
  if (r->status) return NULL;
  if (kiln_tensor_rank(index) > 1) {
    return FAIL(r, "index_select(): Index is supposed to be a vector");
  }
  if (rank == 0 && index->numel != 1) {
    return FAIL(r, "index_select(): Index to scalar can have only 1 value, got %lld value(s)",
                (long long)index->numel);
  }
  index = as_index(r, index);
  int64_t sizes[KILN_MAX_RANK], outer = 1, inner = 1, n = kiln__composite_size(t, dim);
  memcpy(sizes, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)rank);
  if (rank) sizes[dim] = kiln__composite_numel(index);
  char *to = kiln__composite_new(r, kiln_tensor_dtype(t), rank, sizes, &result);
  if (r->status) return NULL;
  const int64_t *at = kiln_tensor_data(index);
  for (int64_t i = 0, end; (end = kiln_budget_piece(i, index->numel)) > i;) {
    for (; i < end; i++) {
      if (at[i] >= 0 && at[i] < n) continue;
      return FAIL(r, "index_select(): index out of range in self");
    }
  }
  const kiln_tensor *source = kiln__composite_to(r, t, kiln_tensor_dtype(t));
  if (!kiln__composite_goes_on(r)) return NULL; /* were all of them seen? */
  for (int i = 0; i < dim; i++) outer *= kiln_tensor_sizes(t)[i];
  for (int i = dim + 1; i < rank; i++) inner *= kiln_tensor_sizes(t)[i];
  kiln__take_rows(to, kiln_tensor_data(source), outer, n, at, index->numel,
                  (size_t)inner * kiln_tensor_item_size(t));
  return result;
}

/* -- gather and scatter -- */

typedef enum meeting_kind { GATHER, SCATTER, SCATTER_ADD, SCATTER_MULTIPLY } meeting_kind;

/* Both walk all elements of `index`: element e of the other operand meets the element of `t` that
 * has index[e] in place of its own coordinate on `dim`. */
typedef struct meeting {
  kiln_tensor *t, *index; /* index: contiguous int64 */
  int dim;
  kiln_tensor *other; /* NULL: a number, at `number` */
  const char *number;
  meeting_kind what;
} meeting;

/* A tensor without dimensions is met as one of one element. */
static int met_rank(const kiln_tensor *t) { return kiln_tensor_rank(t) ? kiln_tensor_rank(t) : 1; }
static int64_t met_size(const kiln_tensor *t, int d) {
  return kiln_tensor_rank(t) ? kiln_tensor_sizes(t)[d] : 1;
}
static int64_t met_stride(const kiln_tensor *t, int d) {
  return kiln_tensor_rank(t) ? kiln_tensor_strides(t)[d] * (int64_t)kiln_tensor_item_size(t) : 0;
}

static kiln_status *check_meeting(const meeting *m) {
  const bool gathers = m->what == GATHER;
  const kiln_tensor *source = gathers ? NULL : m->other;
  const int rank = met_rank(m->t);
  if (rank != met_rank(m->index)) {
    return KILN_OP_FAIL("Index tensor must have the same number of dimensions as %s tensor",
                        gathers ? "input" : "self");
  }
  if (source && rank != met_rank(source)) {
    return KILN_OP_FAIL("Index tensor must have the same number of dimensions as src tensor");
  }
  for (int i = 0; i < rank; i++) {
    const int64_t n = met_size(m->index, i);
    if ((i == m->dim || n <= met_size(m->t, i)) && (!source || n <= met_size(source, i))) continue;
    const kiln__sizes_text index = kiln__sizes_of(m->index), self = kiln__sizes_of(m->t);
    if (gathers) {
      return KILN_OP_FAIL(
          "Size does not match at dimension %d expected index %s to be no larger than self %s "
          "apart from dimension %d",
          i, index.text, self.text, m->dim);
    }
    return KILN_OP_FAIL(
        "Expected index %s to be no larger than self %s apart from dimension %d%s%s", index.text,
        self.text, m->dim, source ? " and to be no larger size than src " : "",
        source ? kiln__sizes_of(source).text : "");
  }
  return NULL;
}
/* One row of the index: what lies where. Strides are in bytes. */
typedef struct meeting_row {
  char *mine, *theirs; /* where the row begins, at index 0 */
  int64_t by_index, my_step, their_step;
  const int64_t *index;
  int64_t count, limit;
  size_t item;
} meeting_row;

static bool is_within(const meeting_row *r, int64_t i) {
  return (uint64_t)r->index[i] < (uint64_t)r->limit;
}
/* Elements move to where they meet, or from there. Their size is a constant, and so are all steps
 * where a row meets a row. */
static inline __attribute__((always_inline)) int64_t move_items(const meeting_row *r, size_t item,
                                                                bool gathers, bool of_row) {
  const int64_t by_index = of_row ? (int64_t)item : r->by_index, my_step = of_row ? 0 : r->my_step;
  const int64_t their_step = of_row ? (int64_t)item : r->their_step;
  const int64_t count = r->count, *index = r->index;
  const uint64_t limit = (uint64_t)r->limit;
  char *mine = r->mine, *theirs = r->theirs;
  int64_t i = 0;
  _Pragma("GCC unroll 8") for (; i < count; i++, mine += my_step, theirs += their_step) {
    const int64_t at = index[i];
    if ((uint64_t)at >= limit) break;
    char *met = mine + at * by_index;
    memcpy(gathers ? theirs : met, gathers ? met : theirs, item);
  }
  return i;
}
#define MOVE_ITEMS(item, of_row) \
  return gathers ? move_items(r, item, true, of_row) : move_items(r, item, false, of_row)
static int64_t move_row(const meeting_row *r, bool gathers) {
  const int64_t item = (int64_t)r->item;
  const bool of_row = r->by_index == item && r->my_step == 0 && r->their_step == item;
  switch (of_row ? -item : item) {
    case -4: MOVE_ITEMS(4, true);
    case -8: MOVE_ITEMS(8, true);
    case 1:
    case -1: MOVE_ITEMS(1, false);
    case 2:
    case -2: MOVE_ITEMS(2, false);
    case 4: MOVE_ITEMS(4, false);
    case 8: MOVE_ITEMS(8, false);
    default: MOVE_ITEMS(16, false);
  }
}
/* Elements up to the first index that is out of bounds. */
static int64_t meet_row(const meeting_row *r, meeting_kind what, kiln_dtype dtype) {
  if (what == GATHER || what == SCATTER) return move_row(r, what == GATHER);
  char *mine = r->mine, *theirs = r->theirs;
  int64_t i = 0;
  for (; i < r->count && is_within(r, i); i++, mine += r->my_step, theirs += r->their_step) {
    char *a = mine + r->index[i] * r->by_index;
    if (what == SCATTER_ADD) {
      kiln__add_element(a, theirs, dtype);
    } else {
      combine_element(a, theirs, dtype, true);
    }
  }
  return i;
}

static kiln_status *meet(const meeting *m) {
  if (m->index->numel == 0) return NULL; /* whatever its shape */
  KILN_TRY(check_meeting(m));
  const int last = met_rank(m->index) - 1;
  kiln_tensor *written = m->what == GATHER ? m->other : m->t;
  void *data;
  KILN_TRY(kiln_tensor_writable_data(written, &data));
  char *base = m->what == GATHER ? (char *)(uintptr_t)kiln_tensor_data(m->t) : data;
  char *other = !m->other           ? (char *)(uintptr_t)m->number
                : m->what == GATHER ? data
                                    : (char *)(uintptr_t)kiln_tensor_data(m->other);
  int64_t mine[KILN_MAX_RANK], theirs[KILN_MAX_RANK], at[KILN_MAX_RANK] = {0};
  for (int d = 0; d <= last; d++) {
    mine[d] = d == m->dim ? 0 : met_stride(m->t, d);
    theirs[d] = m->other ? met_stride(m->other, d) : 0;
  }
  meeting_row r = {.by_index = met_stride(m->t, m->dim),
                   .my_step = mine[last],
                   .their_step = theirs[last],
                   .index = kiln_tensor_data(m->index),
                   .limit = met_size(m->t, m->dim),
                   .item = kiln_tensor_item_size(m->t)};
  const int64_t length = met_size(m->index, last);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t e = 0; e < m->index->numel && !kiln_budget_spent(&left, length); e += length) {
    r.mine = base;
    r.theirs = other;
    for (int d = 0; d < last; d++) r.mine += at[d] * mine[d], r.theirs += at[d] * theirs[d];
    for (int64_t i = 0, end; (end = kiln_budget_piece(i, length)) > i; i = end) {
      r.count = end - i;
      const int64_t done = meet_row(&r, m->what, kiln_tensor_dtype(m->t));
      if (done < r.count) {
        return KILN_OP_FAIL("index %lld is out of bounds for dimension %d with size %lld",
                            (long long)r.index[done], m->dim, (long long)r.limit);
      }
      r.mine += r.count * r.my_step;
      r.theirs += r.count * r.their_step;
      r.index += r.count;
    }
    for (int d = last - 1; d >= 0 && ++at[d] == met_size(m->index, d); d--) at[d] = 0;
  }
  return NULL;
}
static kiln_status *meeting_index(kiln_call *call, kiln_tensor *t, const char *name,
                                  kiln_tensor **out) {
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  if (t->numel > 0 && dtype != KILN_DTYPE_I64 && dtype != KILN_DTYPE_I32) {
    return KILN_OP_FAIL("%s(): Expected dtype int32/int64 for index", name);
  }
  return kiln__as_dtype(call, t, KILN_DTYPE_I64, out);
}
static kiln_tensor *gather(kiln__composite *r, kiln_tensor *t, int64_t dim, kiln_tensor *index) {
  meeting m = {.t = t, .what = GATHER, .dim = kiln__composite_dim(r, dim, kiln__composite_rank(t))};
  if (r->status) return NULL;
  (void)kiln__composite_new(r, kiln_tensor_dtype(t), kiln_tensor_rank(index),
                            kiln_tensor_sizes(index), &m.other);
  if (r->status || index->numel == 0) return m.other; /* of any dtype */
  m.index = KILN_OWN(r, meeting_index(r->call, index, "gather", &own_tensor));
  return m.index && kiln__composite_ok(r, meet(&m)) ? m.other : NULL;
}
KILN_COMPOSITE(gather) { return gather(r, SELF, kiln_arg_int(args, 1), ARG(2)); }
/* Into *out's destination (self where in place), or a copy of self. */
static kiln_status *scatter(kiln_call *call, const kiln_ivalue *args, meeting_kind what,
                            kiln_ivalue *out) {
  kiln_tensor *self = SELF, *to = kiln__dest(out);
  meeting m = {.what = what};
  double number[2] = {0, 0};
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), kiln_tensor_rank(self), &m.dim));
  if (!to) {
    KILN_TRY(kiln_call_tensor(call, kiln_tensor_dtype(self), kiln_tensor_rank(self),
                              kiln_tensor_sizes(self), &to));
    kiln__give(out, to);
  } else if (to != self) {
    KILN_TRY(kiln_tensor_resize(to, kiln_tensor_rank(self), kiln_tensor_sizes(self)));
  }
  KILN_TRY(kiln__check_overlap(to, to));
  KILN_TRY(kiln_pw_copy(call, to, self));
  if (args[3].tag == KILN_TAG_TENSOR) {
    m.other = args[3].u.tensor;
    if (kiln_tensor_dtype(m.other) != kiln_tensor_dtype(self)) {
      return KILN_OP_FAIL("scatter(): Expected self.dtype to be equal to src.dtype");
    }
  } else {
    kiln__number_store(kiln__number(args[3]), kiln_tensor_dtype(self), number);
    m.number = (const char *)number;
  }
  m.t = to;
  bool added;
  if (what == SCATTER_ADD && m.other) {
    KILN_TRY(kiln__add_expanded(call, to, m.dim, ARG(2), m.other, &added));
    if (added) return NULL;
  }
  KILN_TRY(meeting_index(call, ARG(2), "scatter", &m.index));
  kiln_status *status = meet(&m);
  kiln_tensor_release_to(&call->cache, m.index);
  return status;
}
KILN_KERNEL(scatter) { return scatter(call, args, SCATTER, outs); }
KILN_KERNEL(scatter_add) { return scatter(call, args, SCATTER_ADD, outs); }
KILN_KERNEL(scatter_reduce_str) {
  kiln_str how = kiln_arg_str(args, 4);
  if (kiln_str_is(how, "add")) return scatter(call, args, SCATTER_ADD, outs);
  if (kiln_str_is(how, "multiply")) return scatter(call, args, SCATTER_MULTIPLY, outs);
  return KILN_OP_FAIL("reduce argument must be either add or multiply.");
}
/* self, indices, dim: along a dimension any index counts, as its remainder. */
KILN_COMPOSITE(take_along_dim) {
  kiln_tensor *t = SELF, *index = ARG(1);
  if (kiln_arg_is_none(args, 2)) {
    t = kiln__composite_flat(r, t);
    index = kiln__composite_flat(r, index);
    return r->status ? NULL : gather(r, t, 0, index);
  }
  /* All dimensions but the one broadcast. */
  int rank = kiln_tensor_rank(t);
  const int dim = kiln__composite_dim(r, kiln_arg_int(args, 2), rank);
  int64_t a[KILN_MAX_RANK], b[KILN_MAX_RANK], wide[KILN_MAX_RANK];
  if (r->status) return NULL;
  if (rank != kiln_tensor_rank(index)) {
    return FAIL(r,
                "torch.take_along_dim(): input and indices should have the same number of "
                "dimensions, but got %d dimensions for input, and %d dimensions for indices",
                rank, kiln_tensor_rank(index));
  }
  memcpy(a, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)rank);
  memcpy(b, kiln_tensor_sizes(index), sizeof(int64_t) * (size_t)rank);
  int64_t own = rank ? a[dim] : 1, wanted = rank ? b[dim] : 1;
  if (rank) a[dim] = b[dim] = 1;
  if (!kiln__composite_ok(r, kiln_broadcast(rank, a, rank, b, &rank, wide))) return NULL;
  if (rank) wide[dim] = own;
  t = KILN_STEP(r, expand, T(t), kiln__composite_ints(r, rank, wide), B(false));
  if (rank) wide[dim] = wanted;
  if (kiln_tensor_dtype(index) == KILN_DTYPE_I64 && own) {
    index = KILN_STEP(r, remainder, T(index), I(own));
  }
  index = KILN_STEP(r, expand, T(index), kiln__composite_ints(r, rank, wide), B(false));
  return r->status ? NULL : gather(r, t, dim, index);
}

KILN_COMPOSITE(masked_select) {
  kiln_tensor *mask = ARG(1), *result;
  if (kiln_tensor_dtype(mask) != KILN_DTYPE_BOOL && kiln_tensor_dtype(mask) != KILN_DTYPE_U8) {
    return FAIL(r, "masked_select: expected BoolTensor for mask");
  }
  const kiln_ivalue wide = kiln__composite_broadcast(r, SELF, mask);
  kiln_tensor *flat = KILN_STEP(r, expand, T(SELF), wide, B(false));
  kiln_tensor *flags = KILN_STEP(r, expand, T(mask), wide, B(false));
  flat = kiln__composite_to(r, flat, kiln_tensor_dtype(SELF));
  flags = kiln__composite_to(r, flags, KILN_DTYPE_BOOL);
  if (r->status) return NULL;
  const uint8_t *f = kiln_tensor_data(flags);
  const int64_t count = kiln__count_set(f, flags->numel);
  if (!kiln__composite_goes_on(r)) return NULL; /* was all of it counted? */
  char *to = kiln__composite_new(r, kiln_tensor_dtype(SELF), 1, &count, &result);
  const char *from = kiln_tensor_data(flat);
  const size_t item = kiln_tensor_item_size(SELF);
  for (int64_t i = 0, end; !r->status && (end = kiln_budget_piece(i, flags->numel)) > i;) {
    for (; i < end; i++) {
      if (!f[i]) continue;
      kiln__move_element(to, from + (size_t)i * item, item);
      to += item;
    }
  }
  return result;
}
