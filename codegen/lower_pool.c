/* lower_pool.c: pools of windows, as the interpreter's kernels compute them
 * (runtime/kernels/nn/pool.c).
 *
 * An element of a window is read at a map of its own, so that a pool of 3 x 3 is 9 loads and 8
 * maxima. Windows that reach over an edge have fewer: they are parts of the result with nests of
 * their own, as in lower_join.c. */
#include "codegen/lower.h"

#include <math.h>

#define OP2(name, a, b) kiln__lower_op(l, KILN_LOOP_##name, a, b, -1)
#define SELECT(mask, a, b) kiln__lower_op(l, KILN_LOOP_select, mask, a, b)

enum { MOST_TAPS = 32, AXES = 3 }; /* of one window; dimensions that are pooled */

/* Windows of the last dimensions. Where they are uneven, window i of n begins at i * in // n. */
typedef struct windows {
  int spatial, first; /* how many dimensions, and which is the first */
  bool uneven[AXES];
  int64_t size[AXES], step[AXES], pad[AXES], apart[AXES];
  kiln__lower_sizes in, out;
} windows;

/* A window's elements in one dimension, those that are there. */
typedef struct taps {
  int count, padded; /* padded: with those of the padding */
  kiln__lower_dim at[MOST_TAPS];
} taps;

static bool refuse(kiln__lowering *l, kiln_reason reason) {
  return kiln__lower_refuse(l, reason) == 0;
}

/* One number for all dimensions or one for each; none: `otherwise`, where there is that. */
static bool numbers(kiln__lowering *l, const kiln_node *node, int i, int count,
                    const int64_t *otherwise, int64_t *out) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, i));
  const bool is_list = v && v->tag == KILN_TAG_LIST;
  const int64_t given = is_list ? v->u.list->count : 1;
  if (!v || (!is_list && v->tag != KILN_TAG_INT)) return refuse(l, KILN_REASON_not_constant);
  if (given == 0 ? !otherwise : given != 1 && given != count) return refuse(l, KILN_REASON_raises);
  for (int d = 0; d < count; d++) {
    out[d] = given == 0 ? otherwise[d] : is_list ? v->u.list->items[given > 1 ? d : 0].u.i : v->u.i;
    if (out[d] < 0 || out[d] > INT32_MAX) return refuse(l, KILN_REASON_raises);
  }
  return true;
}

static bool begin(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                  windows *w) {
  const kiln_ir_value *input = kiln_node_input(node, 0);
  const kiln_dtype dtype = kiln__lower_input_dtype(node, 0);
  if (!kiln__lower_is_float(dtype)) return refuse(l, KILN_REASON_dtype);
  const int spatial = kiln__lower_spatial(node, map->rank);
  *w = (windows){.spatial = spatial, .first = map->rank - spatial};
  if (input->type->detail->rank != map->rank || w->first < 1) return refuse(l, KILN_REASON_raises);
  w->in = kiln__lower_sizes_of(l, input);
  w->out = kiln__lower_sizes_of(l, kiln_node_output(node, 0));
  for (int d = 0; d < w->spatial; d++) w->apart[d] = 1;
  return true;
}
/* self, kernel_size, stride, padding. */
static bool read_windows(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                         windows *w) {
  if (!begin(l, node, map, w) || !numbers(l, node, 1, w->spatial, NULL, w->size) ||
      !numbers(l, node, 2, w->spatial, w->size, w->step) ||
      !numbers(l, node, 3, w->spatial, NULL, w->pad))
    return false;
  for (int d = 0; d < w->spatial; d++) {
    if (w->size[d] < 1 || w->step[d] < 1 || w->pad[d] > w->size[d] / 2)
      return refuse(l, KILN_REASON_raises);
  }
  return true;
}
/* self, output_size. */
static bool read_adaptive(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                          windows *w) {
  if (!begin(l, node, map, w)) return false;
  for (int d = 0; d < w->spatial; d++) {
    const kiln_dim in = w->in.sizes[w->first + d], out = w->out.sizes[w->first + d];
    if (!kiln_dim_is_number(in) || !kiln_dim_is_number(out))
      return refuse(l, in == out ? KILN_REASON_raises : KILN_REASON_dynamic_as_static);
    w->uneven[d] = in % out != 0;
    w->size[d] = w->step[d] = in / out;
  }
  return true;
}

/* -- The elements of a window -- */

static bool add_tap(kiln__lowering *l, taps *t, kiln__lower_dim at) {
  if (t->count == MOST_TAPS) return refuse(l, KILN_REASON_too_long);
  t->at[t->count++] = at;
  return true;
}

/* Each place stands alone. */
static bool find_uneven(kiln__lowering *l, const windows *w, const kiln__lower_dim *place, int d,
                        taps *t) {
  const int64_t in = w->in.sizes[w->first + d], out = w->out.sizes[w->first + d];
  int64_t i = kiln_dim_is_number(place->offset) ? place->offset : 0;
  for (int side = 1; i + 1 < out; i++) {
    side = kiln__lower_side(l, place, i + 1);
    if (side == 0) return false;
    if (side < 0) break;
  }
  for (int64_t at = i * in / out; at * out < (i + 1) * in; at++)
    if (!add_tap(l, t, (kiln__lower_dim){.offset = at})) return false;
  t->padded = t->count;
  return true;
}

/* False: a reason is recorded, or a part is wanted where each is inside or not. */
static bool find_taps(kiln__lowering *l, const windows *w, const kiln__lower_map *map, int d,
                      taps *t) {
  const kiln__lower_dim *place = &map->dims[w->first + d];
  const kiln_dim in = w->in.sizes[w->first + d];
  const kiln__lower_dim begin = kiln__lower_times(l, place, w->step[d]);
  *t = (taps){0};
  if (w->uneven[d]) return find_uneven(l, w, place, d, t);
  if (w->size[d] > MOST_TAPS) return refuse(l, KILN_REASON_too_long);
  for (int64_t k = 0; k < w->size[d]; k++) {
    /* The padding is counted from the front of it. */
    kiln__lower_dim at = kiln__lower_moved(l, &begin, k * w->apart[d], 0);
    int side = kiln__lower_side(l, &at, kiln_dim_plus(l->fn->dims, in, 2 * w->pad[d]));
    if (side == 0) return false;
    if (side > 0) continue; /* ceil_mode */
    t->padded++;
    side = w->pad[d] > 0 ? kiln__lower_side(l, &at, w->pad[d]) : 1;
    if (side == 0) return false;
    if (side < 0) continue;
    at = kiln__lower_moved(l, &at, 0, w->pad[d]);
    side = kiln__lower_side(l, &at, in);
    if (side == 0) return false;
    if (side < 0 && !add_tap(l, t, at)) return false;
  }
  return true;
}
/* Of all dimensions; NULL as above. */
static const taps *find_all_taps(kiln__lowering *l, const windows *w, const kiln__lower_map *map,
                                 int *out_count) {
  taps *t = KILN_NEW_ARRAY(l->arena, taps, AXES);
  *out_count = 1;
  for (int d = 0; d < w->spatial; d++) {
    if (!find_taps(l, w, map, d, &t[d])) return NULL;
    *out_count *= t[d].count;
  }
  if (*out_count > MOST_TAPS) (void)refuse(l, KILN_REASON_too_long);
  return *out_count <= MOST_TAPS ? t : NULL;
}

/* Where element n of the window is; the last dimension counts fastest. */
static const kiln__lower_map *tap_map(kiln__lowering *l, const windows *w, const taps *t, int n,
                                      const kiln__lower_map *map) {
  kiln__lower_map *own = kiln__lower_copied(l, map);
  for (int d = w->spatial - 1; d >= 0; d--) {
    own->dims[w->first + d] = t[d].at[n % t[d].count];
    n /= t[d].count;
  }
  return own;
}
static int tap(kiln__lowering *l, const kiln_node *node, const windows *w, const taps *t, int n,
               const kiln__lower_map *map) {
  const kiln_dtype dtype = kiln__lower_compute(kiln__lower_input_dtype(node, 0));
  const kiln__lower_map *own = tap_map(l, w, t, n, map);
  return kiln__lower_cast(l, kiln__lower_value(l, kiln_node_input(node, 0), own), dtype);
}

/* -- Greatest -- */

static int nothing(kiln__lowering *l, const kiln_node *node) {
  const kiln_dtype dtype = kiln__lower_compute(kiln__lower_input_dtype(node, 0));
  return kiln__lower_const(l, dtype, -(double)INFINITY);
}
/* Of the columns' greatest ones; in three dimensions one after the other. */
static int greatest(kiln__lowering *l, const kiln_node *node, const windows *w, const taps *t,
                    int count, const kiln__lower_map *map) {
  const int columns = w->spatial == AXES ? 1 : t[w->spatial - 1].count;
  int most = -1;
  for (int x = 0; x < columns && count > 0; x++) {
    int column = -1;
    for (int n = x; n < count; n += columns) {
      const int value = tap(l, node, w, t, n, map);
      if (value < 0) return -1;
      column = column < 0 ? value : OP2(max, value, column);
    }
    most = most < 0 ? column : OP2(max, column, most);
  }
  return count > 0 ? most : nothing(l, node);
}
/* The number of an element in its plane. */
static int number_of(kiln__lowering *l, const windows *w, const kiln__lower_map *own) {
  kiln__lower_dim at = {0};
  for (int d = w->first; d < own->rank; d++) {
    at = kiln__lower_times(l, &at, w->in.sizes[d]);
    at = kiln__lower_plus(l, &at, &own->dims[d]);
  }
  if (at.check) return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  return kiln_loop_index(l->fn, l->nest, at.offset, at.steps);
}
/* The first of the greatest ones, or the last NaN, and its place. */
static int greatest_at(kiln__lowering *l, const kiln_node *node, const windows *w, const taps *t,
                       int count, const kiln__lower_map *map, int output) {
  int most = -1, place = -1;
  if (count == 0 && output == 0) return nothing(l, node);
  if (count == 0) return kiln__lower_const(l, KILN_DTYPE_I64, -1);
  for (int n = 0; n < count; n++) {
    const int value = tap(l, node, w, t, n, map);
    const int at = number_of(l, w, tap_map(l, w, t, n, map));
    if (value < 0 || at < 0) return -1;
    const int wins = n ? OP2(or, OP2(gt, value, most), OP2(ne, value, value)) : -1;
    most = n ? SELECT(wins, value, most) : value;
    place = n ? SELECT(wins, at, place) : at;
  }
  return output == 0 ? most : place;
}
static int max_pool(kiln__lowering *l, const kiln_node *node, windows *w, int output,
                    const kiln__lower_map *map) {
  int count;
  const taps *t = find_all_taps(l, w, map, &count);
  if (!t) return -1;
  const int value = node->output_count > 1 ? greatest_at(l, node, w, t, count, map, output)
                                           : greatest(l, node, w, t, count, map);
  return kiln__lower_cast(l, value, kiln__lower_result_dtype(node, output));
}
KILN__LOWER_EACH(max_pool) {
  windows w;
  if (!read_windows(l, node, map, &w) || !numbers(l, node, 4, w.spatial, NULL, w.apart)) return -1;
  for (int d = 0; d < w.spatial; d++)
    if (w.apart[d] < 1) return kiln__lower_refuse(l, KILN_REASON_raises);
  return max_pool(l, node, &w, output, map);
}
KILN__LOWER_EACH(adaptive_max_pool) {
  windows w;
  return read_adaptive(l, node, map, &w) ? max_pool(l, node, &w, output, map) : -1;
}

/* -- Means -- */

/* The sum is one of doubles; that of a whole plane is not (lower_norm.c). */
static int mean(kiln__lowering *l, const kiln_node *node, const windows *w,
                const kiln__lower_map *map, bool counts_padding, int64_t divisor) {
  int count, padded = 1;
  bool whole = true, known = true;
  const taps *t = find_all_taps(l, w, map, &count);
  if (!t) return -1;
  for (int d = 0; d < w->spatial; d++) {
    const kiln_dim in = w->in.sizes[w->first + d];
    padded *= t[d].padded;
    known &= kiln_dim_is_number(in);
    if (whole && !kiln_dim_is_number(in)) /* a guard may ask for it */
      whole = !kiln_dims_prove(l->fn->dims, kiln_sum_number(t[d].count + 1),
                               kiln_sum_of(l->fn->dims, in));
    else
      whole &= in == t[d].count;
  }
  if (whole)
    return kiln__lower_refuse(l, known ? KILN_REASON_rows_cut : KILN_REASON_dynamic_as_static);
  int sum = kiln__lower_const(l, KILN_DTYPE_F64, 0);
  for (int n = 0; n < count; n++)
    sum = OP2(add, sum, kiln__lower_cast(l, tap(l, node, w, t, n, map), KILN_DTYPE_F64));
  const double by = (double)(divisor ? divisor : counts_padding ? padded : count);
  if (count > 0) sum = OP2(div, sum, kiln__lower_const(l, KILN_DTYPE_F64, by));
  return kiln__lower_cast(l, sum, kiln__lower_result_dtype(node, 0));
}
/* .., ceil_mode, count_include_pad, divisor_override */
KILN__LOWER(avg_pool) {
  const kiln_ivalue *padding = kiln_ir_value_constant(kiln_node_input(node, 5));
  double divisor = 0;
  windows w;
  if (!padding || padding->tag != KILN_TAG_BOOL)
    return kiln__lower_refuse(l, KILN_REASON_not_constant);
  if (!kiln__lower_is_none(node, 6) && !kiln__lower_number(l, node, 6, &divisor)) return -1;
  if (!kiln__lower_is_none(node, 6) && divisor == 0)
    return kiln__lower_refuse(l, KILN_REASON_raises);
  if (!read_windows(l, node, map, &w)) return -1;
  return mean(l, node, &w, map, padding->u.b, (int64_t)divisor);
}
int kiln__lower_adaptive_avg_pool(kiln__lowering *l, const kiln_node *node,
                                  const kiln__lower_map *map) {
  windows w;
  return read_adaptive(l, node, map, &w) ? mean(l, node, &w, map, false, 0) : -1;
}

/* -- Windows as columns, and back -- */

/* Windows of the last two dimensions, which lie all within the picture. */
typedef struct patches {
  int64_t k[2], apart[2], step[2];
  kiln_dim size[2], count[2]; /* of the picture, and how many windows */
} patches;

static bool read_pair(kiln__lowering *l, const kiln_node *node, int i, int64_t out[2]) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, i));
  if (!v || v->tag != KILN_TAG_LIST) return kiln__lower_refuse(l, KILN_REASON_not_constant) == 0;
  const int64_t n = v->u.list->count;
  for (int d = 0; d < 2; d++) {
    if (n != 1 && n != 2) return kiln__lower_refuse(l, KILN_REASON_raises) == 0;
    out[d] = v->u.list->items[n == 1 ? 0 : d].u.i;
    if (out[d] < 0 || out[d] > INT32_MAX) return kiln__lower_refuse(l, KILN_REASON_raises) == 0;
  }
  return true;
}
/* kernel_size, dilation, padding, stride from input `i` on; `picture` has the sizes. */
static bool read_patches(kiln__lowering *l, const kiln_node *node, int i, const kiln_dim *picture,
                         patches *p) {
  kiln_dims *dims = l->fn->dims;
  int64_t pad[2];
  if (!read_pair(l, node, i, p->k) || !read_pair(l, node, i + 1, p->apart) ||
      !read_pair(l, node, i + 2, pad) || !read_pair(l, node, i + 3, p->step))
    return false;
  for (int d = 0; d < 2; d++) {
    if (pad[d] != 0) return kiln__lower_refuse(l, KILN_REASON_no_affine_map) == 0;
    p->size[d] = picture[d];
    const kiln_sum reach = kiln_sum_number(p->apart[d] * (p->k[d] - 1) + 1);
    const kiln_sum size = kiln_sum_of(dims, picture[d]);
    const bool fits = p->k[d] > 0 && p->step[d] > 0 && kiln_dims_prove(dims, reach, size);
    if (!fits) return kiln__lower_refuse(l, KILN_REASON_raises) == 0;
    const kiln_sum steps = kiln_sum_divided(dims, kiln_sum_minus(size, reach), p->step[d]);
    p->count[d] = kiln_sum_dim(dims, kiln_sum_plus(steps, kiln_sum_number(1)));
  }
  return true;
}

/* self (.., c, h, w), kernel_size, dilation, padding, stride: (.., c * kh * kw, windows) */
KILN__LOWER(im2col) {
  const kiln_ir_value *x = kiln_node_input(node, 0);
  const int rank = map->rank + 1;
  patches p;
  if (x->type->detail->rank != rank || rank < 3) return kiln__lower_refuse(l, KILN_REASON_raises);
  const kiln__lower_sizes s = kiln__lower_sizes_of(l, x);
  if (!read_patches(l, node, 1, &s.sizes[rank - 2], &p)) return -1;
  kiln__lower_dim channel, place, row[2], tap[2];
  if (!kiln__lower_divide(l, &map->dims[rank - 3], s.sizes[rank - 3], p.k[0] * p.k[1], &channel,
                          &place) ||
      !kiln__lower_divide(l, &place, p.k[0], p.k[1], &tap[0], &tap[1]) ||
      !kiln__lower_divide(l, &map->dims[rank - 2], p.count[0], p.count[1], &row[0], &row[1]))
    return -1;
  kiln__lower_map *own = kiln__lower_new_map(l, rank);
  if (rank == 4) own->dims[0] = map->dims[0];
  own->dims[rank - 3] = channel;
  for (int d = 0; d < 2; d++) {
    const kiln__lower_dim begin = kiln__lower_times(l, &row[d], p.step[d]);
    const kiln__lower_dim way = kiln__lower_times(l, &tap[d], p.apart[d]);
    own->dims[rank - 2 + d] = kiln__lower_plus(l, &begin, &way);
  }
  return kiln__lower_value(l, x, own);
}

/* The way back: self (.., c * kh * kw, windows), output_size, then the same. Of windows side by
 * side, which fill the picture, an element is of one; the interpreter adds it to 0. */
KILN__LOWER(col2im) {
  const kiln_ir_value *x = kiln_node_input(node, 0);
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0), compute = kiln__lower_compute(dtype);
  const int rank = map->rank;
  patches p;
  if (x->type->detail->rank != rank - 1 || rank < 3)
    return kiln__lower_refuse(l, KILN_REASON_raises);
  if (dtype == KILN_DTYPE_BOOL) return kiln__lower_refuse(l, KILN_REASON_dtype);
  const kiln__lower_sizes s = kiln__lower_sizes_of(l, kiln_node_output(node, 0));
  if (!read_patches(l, node, 2, &s.sizes[rank - 2], &p)) return -1;
  kiln__lower_dim row[2], tap[2];
  for (int d = 0; d < 2; d++) {
    if (p.step[d] != p.k[d] || (p.k[d] > 1 && p.apart[d] != 1) ||
        kiln_dim_product(l->fn->dims, p.count[d], p.k[d]) != p.size[d])
      return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
    if (!kiln__lower_divide(l, &map->dims[rank - 2 + d], p.count[d], p.k[d], &row[d], &tap[d]))
      return -1;
  }
  kiln__lower_map *own = kiln__lower_new_map(l, rank - 1);
  if (rank == 4) own->dims[0] = map->dims[0];
  kiln__lower_dim a = kiln__lower_times(l, &map->dims[rank - 3], p.k[0] * p.k[1]);
  kiln__lower_dim b = kiln__lower_times(l, &tap[0], p.k[1]);
  a = kiln__lower_plus(l, &a, &b);
  own->dims[rank - 3] = kiln__lower_plus(l, &a, &tap[1]);
  b = kiln__lower_times(l, &row[0], p.count[1]);
  own->dims[rank - 2] = kiln__lower_plus(l, &b, &row[1]);
  const int value = kiln__lower_cast(l, kiln__lower_value(l, x, own), compute);
  return OP2(add, kiln__lower_const(l, compute, 0), value);
}

/* -- Differences -- */

/* self, n, dim, prepend, append: of neighbours, once. */
KILN__LOWER(diff) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0), compute = kiln__lower_compute(dtype);
  int64_t n, dim;
  if (!kiln_ir_value_const_int(kiln_node_input(node, 1), &n) ||
      !kiln_ir_value_const_int(kiln_node_input(node, 2), &dim))
    return kiln__lower_refuse(l, KILN_REASON_not_constant);
  if (n != 1 || !kiln__lower_is_none(node, 3) || !kiln__lower_is_none(node, 4))
    return kiln__lower_refuse(l, KILN_REASON_rows_cut);
  if (dim < 0) dim += map->rank;
  if (dim < 0 || dim >= map->rank) return kiln__lower_refuse(l, KILN_REASON_raises);
  const kiln_ir_value *x = kiln_node_input(node, 0);
  kiln__lower_map *next = kiln__lower_copied(l, map);
  next->dims[dim] = kiln__lower_moved(l, &map->dims[dim], 1, 0);
  const int high = kiln__lower_cast(l, kiln__lower_value(l, x, next), compute);
  const int low = kiln__lower_cast(l, kiln__lower_value(l, x, map), compute);
  return kiln__lower_op(l, dtype == KILN_DTYPE_BOOL ? KILN_LOOP_ne : KILN_LOOP_sub, high, low, -1);
}
