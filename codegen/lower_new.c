/* lower_new.c: new tensors, made of numbers and of where an element stands: constants, ranges. */
#include "codegen/lower.h"

#include <math.h>

#define OP2(name, a, b) kiln__lower_op(l, KILN_LOOP_##name, a, b, -1)
#define SELECT(mask, a, b) kiln__lower_op(l, KILN_LOOP_select, mask, a, b)

/* -- One number -- */

/* Whether all types that compute with it mean the same number. */
static bool is_plain(kiln_dtype dtype, double value) {
  const double most = dtype == KILN_DTYPE_BF16 ? 0x1p8 : dtype == KILN_DTYPE_F16 ? 0x1p11 : 0x1p53;
  const bool whole = value == floor(value) && fabs(value) <= most;
  const bool takes_all = dtype == KILN_DTYPE_F32 || dtype == KILN_DTYPE_F64;
  return dtype == KILN_DTYPE_BOOL || whole || takes_all ||
         (!isfinite(value) && !kiln_dtype_is_int(dtype, false));
}
static int number(kiln__lowering *l, const kiln_node *node, double value) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0), own = kiln__lower_compute(dtype);
  if (!is_plain(dtype, value)) return kiln__lower_refuse(l, KILN_REASON_number_too_large);
  if (dtype == KILN_DTYPE_BOOL) value = value != 0;
  return kiln__lower_cast(l, kiln__lower_const(l, own, value), dtype);
}
static int argument(kiln__lowering *l, const kiln_node *node, int i) {
  double value;
  return kiln__lower_number(l, node, i, &value) ? number(l, node, value) : -1;
}
#define NEW(name)                                                  \
  KILN__LOWER_TYPE(name);                                          \
  int kiln__lower_##name(kiln__lowering *l, const kiln_node *node, \
                         __attribute__((unused)) const kiln__lower_map *map)
NEW(zeros) { return number(l, node, 0); }
NEW(ones) { return number(l, node, 1); }
NEW(full) { return argument(l, node, 1); }
NEW(new_full) { return argument(l, node, 2); }
/* A number in another tensor's place; a tensor of one element, too. */
KILN__LOWER(fill) {
  if (!kiln__lower_is_tensor(node, 1)) return argument(l, node, 1);
  const kiln_tensor_detail *value = kiln_node_input(node, 1)->type->detail;
  if (!value || value->rank != 0) return kiln__lower_refuse(l, KILN_REASON_raises);
  return kiln__lower_input(l, node, 1, map, kiln__lower_result_dtype(node, 0));
}

/* -- Numbers of places -- */

static int place_of(kiln__lowering *l, const kiln__lower_map *map, int d) {
  return kiln_loop_index(l->fn, l->nest, map->dims[d].offset, map->dims[d].steps);
}
NEW(eye) {
  const kiln_dtype dtype = kiln__lower_compute(kiln__lower_result_dtype(node, 0));
  const int same = OP2(eq, place_of(l, map, 0), place_of(l, map, 1));
  return kiln__lower_cast(
      l, SELECT(same, kiln__lower_const(l, dtype, 1), kiln__lower_const(l, dtype, 0)),
      kiln__lower_result_dtype(node, 0));
}

/* A number of a range: as an integer, exactly, where all are. */
typedef struct bound {
  bool whole;
  int64_t i;
  double f;
} bound;
static bool read_bound(kiln__lowering *l, const kiln_node *node, int i, bound *out) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, i));
  if (!kiln__lower_number(l, node, i, &out->f)) return false;
  out->whole = v->tag != KILN_TAG_FLOAT;
  out->i = v->tag == KILN_TAG_INT ? v->u.i : (int64_t)out->f;
  return true;
}
/* start + i * step, in i64 or f64. */
static int range(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map, bound start,
                 bound step, bool whole) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  const int place = place_of(l, map, 0);
  if (kiln_loop_class(dtype) == KILN_LOOP_CLASS_H || dtype == KILN_DTYPE_BOOL)
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  if (whole || kiln_dtype_is_int(dtype, false)) {
    const int by = kiln_loop_const_i(l->fn, l->nest, KILN_DTYPE_I64, step.i);
    const int from = kiln_loop_const_i(l->fn, l->nest, KILN_DTYPE_I64, start.i);
    return kiln__lower_cast(l, OP2(add, from, OP2(mul, place, by)), dtype);
  }
  const int by = kiln__lower_const(l, KILN_DTYPE_F64, step.f);
  const int way = OP2(mul, kiln__lower_cast(l, place, KILN_DTYPE_F64), by);
  return kiln__lower_cast(l, OP2(add, kiln__lower_const(l, KILN_DTYPE_F64, start.f), way), dtype);
}
static int range_of(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map, int first,
                    int end, int by) {
  bound start = {.whole = true}, stop, step = {true, 1, 1};
  if (first >= 0 && !read_bound(l, node, first, &start)) return -1;
  if (by >= 0 && !read_bound(l, node, by, &step)) return -1;
  if (!read_bound(l, node, end, &stop)) return -1;
  if (fabs(start.f) >= 0x1p62 || fabs(step.f) >= 0x1p62 || isnan(start.f) || isnan(step.f))
    return kiln__lower_refuse(l, KILN_REASON_number_too_large);
  return range(l, node, map, start, step, start.whole && stop.whole && step.whole);
}
NEW(arange) { return range_of(l, node, map, -1, 0, -1); }
NEW(arange_start) { return range_of(l, node, map, 0, 1, -1); }
NEW(arange_step) { return range_of(l, node, map, 0, 1, 2); }

/* From both ends towards the middle, in the type of the result. */
NEW(linspace) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  double start, end, steps;
  if (kiln_loop_class(dtype) != KILN_LOOP_CLASS_F) return kiln__lower_refuse(l, KILN_REASON_dtype);
  if (!kiln__lower_number(l, node, 0, &start) || !kiln__lower_number(l, node, 1, &end) ||
      !kiln__lower_number(l, node, 2, &steps)) {
    return -1;
  }
  const int64_t count = (int64_t)steps;
  double step = count > 1 ? (end - start) / (double)(count - 1) : 0;
  if (dtype == KILN_DTYPE_F32)
    step = count > 1 ? (double)(((float)end - (float)start) / (float)(count - 1)) : 0;
  const int place = place_of(l, map, 0), by = kiln__lower_const(l, dtype, step);
  const int last = kiln_loop_const_i(l->fn, l->nest, KILN_DTYPE_I64, count - 1);
  const int middle = kiln_loop_const_i(l->fn, l->nest, KILN_DTYPE_I64, count == 1 ? 1 : count / 2);
  const int low = OP2(mul, by, kiln__lower_cast(l, place, dtype));
  const int high = OP2(mul, by, kiln__lower_cast(l, OP2(sub, last, place), dtype));
  return SELECT(OP2(lt, place, middle), OP2(add, kiln__lower_const(l, dtype, start), low),
                OP2(sub, kiln__lower_const(l, dtype, end), high));
}
