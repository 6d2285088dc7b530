/* lower_upsample.c: pictures of other sizes, as the interpreter's kernels compute them
 * (runtime/kernels/vision/upsample.c): which elements are near is found in float, for all types but
 * double, and read by their number in the picture, a checked index. */
#include "codegen/lower.h"

#include <math.h>

#define OP1(name, a) kiln__lower_op(l, KILN_LOOP_##name, a, -1, -1)
#define OP2(name, a, b) kiln__lower_op(l, KILN_LOOP_##name, a, b, -1)
#define I64(value) kiln_loop_const_i(l->fn, l->nest, KILN_DTYPE_I64, value)

enum { MOST = 1 << 22, AXES = 3 }; /* a float holds halves of numbers below MOST */

typedef enum resample_kind { NEAREST, NEAREST_EXACT, LINEAR } resample_kind;

/* Elements of one dimension, and by what each is multiplied. */
typedef struct taps {
  int count, places[2], weights[2]; /* places: i64 */
} taps;

typedef struct resample {
  resample_kind kind;
  int spatial, first;      /* how many dimensions, and which is the first */
  kiln_dtype place, value; /* what places and elements are computed in */
  bool align;
  int factors;     /* the input that has them, -1: none */
  bool one_factor; /* for all dimensions, where it is a number */
  kiln__lower_sizes in, out;
  const kiln__lower_map *map;
  taps taps[AXES];
} resample;

static bool refuse(kiln__lowering *l, kiln_reason reason) {
  return kiln__lower_refuse(l, reason) == 0;
}

/* -- Arguments -- */

/* The factor of a dimension: of a list, or one of several numbers, or one number; 0: none. */
static bool read_factor(kiln__lowering *l, const kiln_node *node, const resample *r, int d,
                        double *out) {
  *out = 0;
  if (r->factors < 0) return true;
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, r->factors));
  const bool is_list = v && v->tag == KILN_TAG_LIST;
  if (!is_list && !r->one_factor && node->input_count > r->factors + d)
    v = kiln_ir_value_constant(kiln_node_input(node, r->factors + d));
  if (is_list && v->u.list->count <= d) return refuse(l, KILN_REASON_raises);
  if (is_list) v = &v->u.list->items[d];
  if (!v) return refuse(l, KILN_REASON_not_constant);
  if (v->tag == KILN_TAG_FLOAT) *out = v->u.f;
  return isfinite(*out) || refuse(l, KILN_REASON_nan);
}

/* A size, less 1 where corners are aligned, as a float of the places' dtype. */
static int size_of(kiln__lowering *l, const resample *r, kiln_dim size) {
  if (kiln_dim_is_number(size)) return kiln__lower_const(l, r->place, (double)(size - r->align));
  const int i = kiln__lower_size(l, KILN_DTYPE_I64, size);
  return kiln__lower_cast(l, r->align ? OP2(sub, i, I64(1)) : i, r->place);
}
/* Elements of the argument for one of the result; a constant where sizes are numbers. */
static bool read_ratio(kiln__lowering *l, const kiln_node *node, const resample *r, int d,
                       int *out) {
  const kiln_dim in = r->in.sizes[r->first + d], size = r->out.sizes[r->first + d];
  double factor;
  if (!read_factor(l, node, r, d, &factor)) return false;
  if (kiln_dim_is_number(size) && size >= MOST) return refuse(l, KILN_REASON_number_too_large);
  const bool wide = r->place == KILN_DTYPE_F64;
  if (r->align && kiln_dim_is_number(size) && size <= 1) {
    *out = kiln__lower_const(l, r->place, 0);
  } else if (!r->align && factor > 0) {
    *out = kiln__lower_const(l, r->place, wide ? 1 / factor : (double)(float)(1 / factor));
  } else if (kiln_dim_is_number(in) && kiln_dim_is_number(size)) {
    const double a = (double)(in - r->align), b = (double)(size - r->align);
    *out = kiln__lower_const(l, r->place, wide ? a / b : (double)((float)a / (float)b));
  } else {
    const int one = kiln__lower_const(l, r->place, 1), by = size_of(l, r, size);
    const int ratio = OP2(div, size_of(l, r, in), r->align ? OP2(max, by, one) : by);
    const int zero = kiln__lower_const(l, r->place, 0);
    *out = r->align ? kiln__lower_op(l, KILN_LOOP_select, OP2(lt, by, one), zero, ratio) : ratio;
  }
  return true;
}

/* An element is asked for by its number in the picture, so that pictures lie in one piece, in an
 * argument of the kernel. */
static bool begin(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                  resample *r) {
  const kiln_ir_value *input = kiln_node_input(node, 0);
  const kiln_dtype dtype = kiln__lower_input_dtype(node, 0);
  const int classes =
      r->kind < LINEAR ? KILN_LOOP_CLASS_ANY : KILN_LOOP_CLASS_F + KILN_LOOP_CLASS_H;
  if (!(kiln_loop_class(dtype) & classes)) return refuse(l, KILN_REASON_dtype);
  r->spatial = kiln__lower_spatial(node, map->rank);
  r->first = map->rank - r->spatial;
  r->map = map;
  r->value = r->kind < LINEAR ? dtype : kiln__lower_compute(dtype);
  r->place = dtype == KILN_DTYPE_F64 ? KILN_DTYPE_F64 : KILN_DTYPE_F32;
  if (input->type->detail->rank != map->rank || r->first != 2 || r->spatial > AXES)
    return refuse(l, KILN_REASON_raises);
  r->in = kiln__lower_sizes_of(l, input);
  r->out = kiln__lower_sizes_of(l, kiln_node_output(node, 0));
  if (!kiln_map_find_ptr(&l->buffers, input)) return refuse(l, KILN_REASON_no_indirect_load);
  for (int d = map->rank - 1; d > r->first; d--) {
    const kiln_dim size = r->in.sizes[d];
    if (r->in.strides[d - 1] != kiln_dim_product(l->fn->dims, r->in.strides[d], size) &&
        r->in.sizes[d - 1] != 1)
      return refuse(l, KILN_REASON_no_indirect_load);
  }
  return true;
}

/* -- Which elements -- */

static int limit(kiln__lowering *l, int value, int low, int high) {
  return OP2(min, OP2(max, value, low), high);
}
static int whole(kiln__lowering *l, int value) {
  return kiln__lower_cast(l, kiln__lower_cast(l, value, KILN_DTYPE_I32), KILN_DTYPE_I64);
}
/* The result's place in dimension d, and `more`. */
static int place_of(kiln__lowering *l, const resample *r, int d, double more) {
  const kiln__lower_dim *at = &r->map->dims[r->first + d];
  if (at->check) return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  const int index = kiln_loop_index(l->fn, l->nest, at->offset, at->steps);
  const int place = kiln__lower_cast(l, index, r->place);
  return more == 0 ? place : OP2(add, place, kiln__lower_const(l, r->place, more));
}
static int nearest(kiln__lowering *l, const resample *r, int d, int ratio, int last) {
  const int place = place_of(l, r, d, r->kind == NEAREST_EXACT ? 0.5 : 0);
  const int x = OP2(mul, place, ratio);
  const int most = kiln__lower_cast(l, last, r->place);
  return whole(l, OP2(min, x, most));
}

/* The two around a place. */
static void around(kiln__lowering *l, const resample *r, int d, int ratio, int last, taps *t) {
  const int zero = kiln__lower_const(l, r->place, 0), one = kiln__lower_const(l, r->place, 1);
  const int end = kiln__lower_cast(l, OP2(add, last, I64(1)), r->place);
  int x = OP2(mul, ratio, place_of(l, r, d, r->align ? 0 : 0.5));
  if (!r->align) x = OP2(sub, x, kiln__lower_const(l, r->place, 0.5));
  x = limit(l, x, zero, end);
  const int most = kiln__lower_cast(l, last, r->place);
  const int first = OP2(min, OP1(floor, x), most);
  const int rest = limit(l, OP2(sub, x, first), zero, one);
  t->count = 2;
  t->weights[0] = kiln__lower_cast(l, OP2(sub, one, rest), r->value);
  t->weights[1] = kiln__lower_cast(l, rest, r->value);
  t->places[0] = whole(l, first);
  t->places[1] = OP2(min, OP2(add, t->places[0], I64(1)), last);
}
static bool find_taps(kiln__lowering *l, const kiln_node *node, resample *r) {
  for (int d = 0; d < r->spatial; d++) {
    const int size = kiln__lower_size(l, KILN_DTYPE_I64, r->in.sizes[r->first + d]);
    const int last = OP2(sub, size, I64(1));
    int ratio;
    if (!read_ratio(l, node, r, d, &ratio)) return false;
    r->taps[d] = (taps){.count = 1};
    if (r->kind < LINEAR)
      r->taps[d].places[0] = nearest(l, r, d, ratio, last);
    else
      around(l, r, d, ratio, last, &r->taps[d]);
  }
  return l->reason == KILN_REASON_none;
}

/* -- Their sum -- */

static int element(kiln__lowering *l, const kiln_node *node, const resample *r, const int *taken) {
  kiln_dim picture = 1;
  int number = -1;
  for (int d = 0; d < r->spatial; d++) {
    const kiln_dim size = r->in.sizes[r->first + d];
    const int place = r->taps[d].places[taken[d]];
    picture = kiln_dim_product(l->fn->dims, picture, size);
    number = d == 0 ? place
                    : OP2(add, OP2(mul, number, kiln__lower_size(l, KILN_DTYPE_I64, size)), place);
  }
  if (number < 0) return -1;
  if (!kiln_dim_is_known(picture)) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  kiln__lower_map *own = kiln__lower_new_map(l, r->map->rank);
  for (int d = 0; d < r->first; d++) own->dims[d] = r->map->dims[d];
  const int check = kiln_loop_check(l->fn, l->nest, number, picture);
  own->dims[own->rank - 1] = (kiln__lower_dim){.check = check + 1, .times = 1};
  return kiln__lower_cast(l, kiln__lower_value(l, kiln_node_input(node, 0), own), r->value);
}
/* Of dimensions from d on, the elements of others are taken: sums over one dimension after the
 * other, the last innermost. */
static int sum_of(kiln__lowering *l, const kiln_node *node, const resample *r, int d, int *taken) {
  if (d == r->spatial) return element(l, node, r, taken);
  const taps *t = &r->taps[d];
  int sum = -1;
  for (int k = 0; k < t->count; k++) {
    taken[d] = k;
    int value = sum_of(l, node, r, d + 1, taken);
    if (r->kind >= LINEAR) value = OP2(mul, value, t->weights[k]);
    sum = k == 0 ? value : OP2(add, sum, value);
  }
  return sum;
}
static int resampled(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                     resample *r) {
  int taken[AXES] = {0};
  if (!begin(l, node, map, r) || !find_taps(l, node, r)) return -1;
  return kiln__lower_cast(l, sum_of(l, node, r, 0, taken), kiln__lower_result_dtype(node, 0));
}
static int upsample(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                    resample_kind kind) {
  resample *r = KILN_NEW(l->arena, resample);
  r->kind = kind;
  r->factors = kind < LINEAR ? 2 : 3;
  if (kind >= LINEAR) {
    const kiln_ivalue *align = kiln_ir_value_constant(kiln_node_input(node, 2));
    if (!align || align->tag != KILN_TAG_BOOL)
      return kiln__lower_refuse(l, KILN_REASON_not_constant);
    r->align = align->u.b;
  }
  return resampled(l, node, map, r);
}
#define UPSAMPLE(name, kind) \
  KILN__LOWER(name) { return upsample(l, node, map, kind); }
UPSAMPLE(upsample_nearest, NEAREST)
UPSAMPLE(upsample_nearest_exact, NEAREST_EXACT)
UPSAMPLE(upsample_linear, LINEAR)

/* -- By their name in scripts: input, size, scale_factor, mode, align_corners, recompute -- */

static int interpolate(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                       kiln_str mode, bool align, bool keeps_factors) {
  static const char *const linear[] = {"linear", "bilinear", "trilinear"};
  resample *r = KILN_NEW(l->arena, resample);
  const int spatial = map->rank - 2;
  if (spatial < 1 || spatial > AXES) return kiln__lower_refuse(l, KILN_REASON_raises);
  if (kiln_str_is(mode, "area")) return kiln__lower_adaptive_avg_pool(l, node, map);
  if (kiln_str_is(mode, "bicubic")) return kiln__lower_refuse(l, KILN_REASON_no_local_gather);
  const bool nearest = kiln_str_is(mode, "nearest");
  if (!nearest && !kiln_str_is(mode, linear[spatial - 1]))
    return kiln__lower_refuse(l, KILN_REASON_raises);
  r->kind = nearest ? NEAREST : LINEAR;
  r->align = align;
  r->factors = keeps_factors && !kiln__lower_is_none(node, 2) ? 2 : -1;
  r->one_factor = true;
  return resampled(l, node, map, r);
}
static int interpolate_in_mode(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                               bool keeps_factors) {
  const kiln_ivalue *mode = kiln_ir_value_constant(kiln_node_input(node, 3));
  const kiln_ivalue *align = kiln_ir_value_constant(kiln_node_input(node, 4));
  if (!mode || mode->tag != KILN_TAG_STRING || !align)
    return kiln__lower_refuse(l, KILN_REASON_not_constant);
  return interpolate(l, node, map, kiln_string_view(mode->u.string),
                     align->tag == KILN_TAG_BOOL && align->u.b, keeps_factors);
}
KILN__LOWER(interpolate) {
  const kiln_ivalue *again = kiln_ir_value_constant(kiln_node_input(node, 5));
  if (!again) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  return interpolate_in_mode(l, node, map, again->tag == KILN_TAG_BOOL && !again->u.b);
}
KILN__LOWER(upsample_mode) { return interpolate_in_mode(l, node, map, false); }
KILN__LOWER(interpolate_nearest) {
  return interpolate(l, node, map, KILN_STR("nearest"), false, false);
}
KILN__LOWER(interpolate_bilinear) {
  return interpolate(l, node, map, KILN_STR("bilinear"), true, false);
}
