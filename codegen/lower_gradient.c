/* lower_gradient.c: gradients of samples, which at the ends of a dimension are computed in another
 * way (runtime/kernels/pointwise/special_gamma.c has the steps). Of f32 and f64. */
#include "codegen/lower_pointwise.h"

/* self along one dimension of `size` samples, at the map of a result. */
typedef struct samples {
  const kiln_node *node;
  const kiln__lower_map *map;
  int dim;
  int64_t size, order;
  int spacing;                 /* of all, an instruction; -1: */
  const kiln_ir_value *places; /* theirs */
} samples;

/* Which dimension result i is along; false, with a reason. */
static bool read_dim(kiln__lowering *l, const kiln_ir_value *dims, int rank, int i, int *out) {
  const kiln_ivalue *v = kiln_ir_value_constant(dims);
  const bool is_list = v && v->tag == KILN_TAG_LIST;
  if (!v || (is_list && v->u.list->count <= i))
    return kiln__lower_refuse(l, KILN_REASON_not_constant) == 0;
  int64_t dim = v->tag == KILN_TAG_NONE ? i : is_list ? v->u.list->items[i].u.i : v->u.i;
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank) return kiln__lower_refuse(l, KILN_REASON_raises) == 0;
  *out = (int)dim;
  return true;
}
/* The distances along it: a number, one of several, or those of places, a vector. */
static bool read_spacing(kiln__lowering *l, const kiln_ir_value *spacing, int i, samples *s) {
  const kiln_dtype dtype = kiln__lower_input_dtype(s->node, 0);
  const kiln_ivalue *v = spacing ? kiln_ir_value_constant(spacing) : NULL;
  s->spacing = -1;
  s->places = NULL;
  if (spacing && !v && kiln_node_is(spacing->node, KILN_OP_prim_ListConstruct)) {
    if (spacing->node->input_count <= i) return kiln__lower_refuse(l, KILN_REASON_raises) == 0;
    const kiln_ir_value *own = kiln_node_input(spacing->node, i);
    v = kiln_ir_value_constant(own);
    if (!v && kiln_type_is_tensor(own->type)) {
      const kiln_tensor_detail *t = own->type->detail;
      if (!t || t->rank != 1 || t->dtype != (int)dtype || t->sizes[0] != s->size)
        return kiln__lower_refuse(l, KILN_REASON_types_unknown) == 0;
      s->places = own;
      return true;
    }
  } else if (v && v->tag == KILN_TAG_LIST) {
    v = v->u.list->count > i ? &v->u.list->items[i] : NULL;
  }
  double by = 1;
  if (v && v->tag == KILN_TAG_INT) by = (double)v->u.i;
  if (v && v->tag == KILN_TAG_FLOAT) by = v->u.f;
  if (spacing &&
      (!v || (v->tag != KILN_TAG_NONE && v->tag != KILN_TAG_INT && v->tag != KILN_TAG_FLOAT)))
    return kiln__lower_refuse(l, KILN_REASON_not_constant) == 0;
  s->spacing = kiln__lower_const(l, dtype, by);
  return true;
}

/* The sample `more` behind the place, or at place `at` where that is not -1. */
static kiln__lower_dim place(kiln__lowering *l, const samples *s, int64_t at, int64_t more) {
  if (at >= 0) return (kiln__lower_dim){.offset = at + more};
  return kiln__lower_moved(l, &s->map->dims[s->dim], more > 0 ? more : 0, more < 0 ? -more : 0);
}
static int sample(kiln__lowering *l, const samples *s, int64_t at, int64_t more) {
  kiln__lower_map *own = kiln__lower_copied(l, s->map);
  own->dims[s->dim] = place(l, s, at, more);
  return kiln__lower_value(l, kiln_node_input(s->node, 0), own);
}
/* The distance of that sample from the one before it. */
static int gap(kiln__lowering *l, const samples *s, int64_t at, int64_t more) {
  int x[2];
  if (s->spacing >= 0) return s->spacing;
  for (int i = 0; i < 2; i++) {
    kiln__lower_map *own = kiln__lower_new_map(l, 1);
    own->dims[0] = place(l, s, at, more - i);
    x[i] = kiln__lower_value(l, s->places, own);
  }
  return OP2(sub, x[0], x[1]);
}

static int weigh(kiln__lowering *l, const int f[3], const int weight[3]) {
  const int first = OP2(mul, f[0], weight[0]), second = OP2(mul, f[1], weight[1]);
  return OP2(add, OP2(add, first, second), OP2(mul, f[2], weight[2]));
}
/* At an end, of the two or three samples that are next to it. */
static int at_end(kiln__lowering *l, const samples *s, bool high) {
  const int64_t near = high ? s->size - 1 : 0, step = high ? -1 : 1;
  const int f[3] = {sample(l, s, near, 0), sample(l, s, near, step),
                    s->order > 1 ? sample(l, s, near, 2 * step) : -1};
  const int x = gap(l, s, near, high ? 0 : 1);
  if (s->order == 1) return OP2(div, OP2(sub, f[!high], f[high]), x);
  const int y = gap(l, s, near, high ? -1 : 2), both = OP2(add, x, y);
  const int weight[3] = {OP1(neg, OP2(div, OP2(add, both, x), OP2(mul, x, both))),
                         OP2(div, both, OP2(mul, x, y)), OP1(neg, OP2(div, x, OP2(mul, y, both)))};
  const int sum = weigh(l, f, weight);
  return high ? OP1(neg, sum) : sum;
}
static int in_between(kiln__lowering *l, const samples *s) {
  const int f[3] = {sample(l, s, -1, -1), sample(l, s, -1, 0), sample(l, s, -1, 1)};
  const int x = gap(l, s, -1, 0), y = gap(l, s, -1, 1), both = OP2(add, x, y);
  const int weight[3] = {OP1(neg, OP2(div, y, OP2(mul, x, both))),
                         OP2(div, OP2(sub, y, x), OP2(mul, x, y)), OP2(div, x, OP2(mul, y, both))};
  return weigh(l, f, weight);
}

/* self, spacing, dim, edge_order; or self, dim, edge_order */
KILN__LOWER_EACH(gradient) {
  const int more = node->input_count > 3;
  const kiln_dtype dtype = kiln__lower_input_dtype(node, 0);
  samples s = {.node = node, .map = map};
  if (!kiln__lower_int(l, node, 2 + more, 1, &s.order) ||
      !read_dim(l, kiln_node_input(node, 1 + more), map->rank, output, &s.dim))
    return -1;
  if (kiln_loop_class(dtype) != KILN_LOOP_CLASS_F) return kiln__lower_refuse(l, KILN_REASON_dtype);
  s.size = kiln__lower_sizes_of(l, kiln_node_input(node, 0)).sizes[s.dim];
  if (!kiln_dim_is_number(s.size)) return kiln__lower_refuse(l, KILN_REASON_dynamic_as_static);
  if (s.order < 1 || s.order > 2 || s.size < s.order + 1)
    return kiln__lower_refuse(l, KILN_REASON_raises);
  if (!read_spacing(l, more ? kiln_node_input(node, 1) : NULL, output, &s)) return -1;
  const kiln__lower_dim *at = &map->dims[s.dim];
  const int begun = kiln__lower_side(l, at, 1);
  if (begun == 0) return -1;
  if (begun < 0) return at_end(l, &s, false);
  const int ended = kiln__lower_side(l, at, s.size - 1);
  if (ended == 0) return -1;
  return ended > 0 ? at_end(l, &s, true) : in_between(l, &s);
}
