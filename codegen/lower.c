/* lower.c: a group's graph to loop IR.
 *
 * Outputs of the same sizes share a nest, whose loops are their dimensions. The body is found by
 * walking from the outputs back, with a memo. */
#include "codegen/lower.h"

#include <string.h>

#include "base/checked.h"
#include "codegen/loop/schedule.h"

/* The LOWER and LOWER_EACH columns of the tables. */
#include "ir/ops_columns.h"
#undef LOWER
#undef LOWER_EACH
#undef LOWER_NEW
#undef LOWER_ROWS
#define LOWER(name) KILN__LOWER_TYPE(name);
#define LOWER_NEW(name) KILN__LOWER_TYPE(name);
#define LOWER_EACH(name) KILN__LOWER_EACH_TYPE(name);
#define LOWER_ROWS(name, dims) KILN__ROWS_TYPES(name);
#define KILN_OP(id, schema, ...) __VA_ARGS__
#include "ir/ops.def"
#undef KILN_OP

#include "ir/ops_columns.h"
#undef LOWER
#undef LOWER_EACH
#undef LOWER_NEW
#undef LOWER_ROWS
#undef LACKS
#undef APART
#define LOWER(name) .fn = kiln__lower_##name,
#define LOWER_NEW(name) .fn = kiln__lower_##name, .is_new = true,
#define LOWER_EACH(name) .each = kiln__lower_##name,
#define LOWER_ROWS(name, which) \
  .begin = kiln__rows_begin_##name, .rows = kiln__rows_##name, .dims = KILN__ROWS_##which,
#define LACKS(form) .lacks = KILN_REASON_##form,
#define APART(name) .lacks = KILN_REASON_in_parts,
typedef struct lowering_entry {
  kiln__lower_fn fn;
  kiln__lower_each_fn each;
  kiln__rows_begin_fn begin;
  kiln__rows_fn rows;
  kiln__rows_dims dims;
  bool is_new;
  kiln_reason lacks; /* of one that has no lowering */
  char unused;
} lowering_entry;
static const lowering_entry *entry_of(const kiln_op *op) {
  static const lowering_entry table[] = {
#define KILN_OP(id, schema, ...) [KILN_OP_##id] = {__VA_ARGS__.unused = 0},
#include "ir/ops.def"
#undef KILN_OP
  };
  if (!op || op->id < 0 || op->id >= KILN_OP__BUILTIN_COUNT) return NULL;
  return &table[op->id];
}
static const lowering_entry *lowering_of(const kiln_op *op) {
  const lowering_entry *e = entry_of(op);
  return e && (e->fn || e->each || e->rows) ? e : NULL;
}

static int lower_rows(kiln__lowering *l, const lowering_entry *e, const kiln_node *node, int output,
                      const kiln__lower_map *map);

static int lower_node(kiln__lowering *l, const kiln_node *node, int output,
                      const kiln__lower_map *map) {
  const lowering_entry *e = lowering_of(node->op);
  if (!e) return kiln__lower_refuse(l, KILN_REASON_no_lowering);
  uint64_t mask;
  const bool reduces = e->rows && (!e->fn || kiln_codegen_reduces(node, &mask));
  if (reduces) return lower_rows(l, e, node, output, map);
  return e->fn ? e->fn(l, node, map) : e->each(l, node, output, map);
}

bool kiln_codegen_has_lowering(const kiln_op *op) {
  bool pure = op && kiln_op_is_functional(op);
  return pure && lowering_of(op) != NULL;
}

kiln_reason kiln_codegen_lacks(const kiln_op *op) {
  const lowering_entry *e = entry_of(op);
  return e && !lowering_of(op) ? e->lacks : KILN_REASON_none;
}

bool kiln_codegen_contracts(const kiln_op *op) {
  return op && op->cost == KILN_COST_heavy && kiln_codegen_has_lowering(op);
}

bool kiln_codegen_convolves(const kiln_op *op) {
  const lowering_entry *e = lowering_of(op);
  return e && (e->fn == kiln__lower_conv || e->fn == kiln__lower_convolution ||
               e->fn == kiln__lower_conv_transpose || e->fn == kiln__lower_conv_depthwise);
}

bool kiln_codegen_is_new(const kiln_op *op) {
  const lowering_entry *e = lowering_of(op);
  return e && e->is_new;
}

/* -- Values -- */

static int lower_number_value(kiln__lowering *l, const kiln_ir_value *value) {
  const kiln_ivalue *constant = kiln_ir_value_constant(value);
  if (constant) {
    switch (constant->tag) {
      case KILN_TAG_INT: return kiln_loop_const_i(l->fn, l->nest, KILN_DTYPE_I64, constant->u.i);
      case KILN_TAG_FLOAT: return kiln_loop_const_f(l->fn, l->nest, KILN_DTYPE_F64, constant->u.f);
      case KILN_TAG_BOOL: return kiln_loop_const_i(l->fn, l->nest, KILN_DTYPE_BOOL, constant->u.b);
      default: return kiln__lower_refuse(l, KILN_REASON_number_unknown);
    }
  }
  void *number = kiln_map_find_ptr(&l->scalars, value);
  if (!number) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  return kiln_loop_scalar(l->fn, l->nest, (int)(intptr_t)number - 1);
}

/* Where a map lies in a buffer, in elements. */
static kiln__lower_dim place_of(kiln__lowering *l, int buffer, const kiln__lower_map *map) {
  const kiln_loop_buffer *b = &l->fn->buffers.data[buffer];
  kiln__lower_dim place = {0};
  for (int d = 0; d < map->rank; d++) {
    kiln__lower_dim way = map->dims[d];
    if (b->copy) way = kiln__lower_moved(l, &way, b->copy->before[d], 0);
    way = kiln__lower_times(l, &way, b->strides[d]);
    place = kiln__lower_plus(l, &place, &way);
  }
  return place;
}

static int load(kiln__lowering *l, int buffer, const kiln__lower_dim *at) {
  if (!at->check) return kiln_loop_load(l->fn, l->nest, buffer, at->offset, at->steps);
  const int check = (int)at->check - 1;
  return kiln_loop_gather(l->fn, l->nest, buffer, at->offset, at->steps, check, at->times);
}

int kiln__lower_load_copy(kiln__lowering *l, int buffer, const kiln__lower_map *map) {
  const kiln_loop_buffer *b = &l->fn->buffers.data[buffer];
  kiln__lower_dim place = {0};
  for (int d = 0; d < map->rank; d++) {
    const kiln__lower_dim way = kiln__lower_times(l, &map->dims[d], b->strides[d]);
    place = kiln__lower_plus(l, &place, &way);
  }
  return load(l, buffer, &place);
}

static int lower_input_tensor(kiln__lowering *l, const kiln_ir_value *value,
                              const kiln__lower_map *map) {
  int buffer = (int)(intptr_t)kiln_map_find_ptr(&l->buffers, value) - 1;
  if (buffer < 0) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  const kiln_loop_buffer *b = &l->fn->buffers.data[buffer];
  if (b->copy && b->rank != map->rank) return kiln__lower_refuse(l, KILN_REASON_read_again);
  for (int d = 0; b->copy && d < map->rank; d++)
    if (b->copy->flipped[d]) return kiln__lower_refuse(l, KILN_REASON_no_backward_map);
  const kiln__lower_dim at = place_of(l, buffer, map);
  return load(l, buffer, &at);
}

/* Scopes of one nest: 0 is its body, loops have their own numbers. */
static int innermost(const kiln__lowering *l) {
  return l->nest->open ? l->scopes[l->nest->open - 1] : 0;
}
static bool is_open(const kiln__lowering *l, int scope) {
  bool open = scope == 0;
  for (int i = 0; i < l->nest->open; i++) open |= l->scopes[i] == scope;
  return open;
}

int kiln__lower_open(kiln__lowering *l, kiln_loop_opcode kind, kiln_dim extent) {
  const int loop = l->nest->rank + l->nest->open;
  if (loop == KILN_LOOP_MAX_RANK) return kiln__lower_refuse(l, KILN_REASON_rank);
  if (l->scanning) return kiln__lower_refuse(l, KILN_REASON_rows_differ);
  l->extents[loop] = extent;
  l->scopes[l->nest->open] = ++l->scope_count;
  kiln_loop_open(l->fn, l->nest, kind, extent);
  return loop;
}

typedef struct memo_entry {
  kiln__lower_map map;
  int inst;
  int scope; /* that it is seen in */
  struct memo_entry *next;
} memo_entry;

static bool same_map(const kiln__lower_map *a, const kiln__lower_map *b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, sizeof *a->dims * (size_t)a->rank) == 0;
}

int kiln__lower_value(kiln__lowering *l, const kiln_ir_value *value, const kiln__lower_map *map) {
  memo_entry *first = kiln_map_find_ptr(&l->memo, value);
  for (memo_entry *m = first; m; m = m->next)
    if (is_open(l, m->scope) && same_map(&m->map, map)) return m->inst;
  bool is_row;
  int inst = kiln__lower_row(l, value, map, &is_row);
  if (is_row) {
    if (inst < 0) return -1;
  } else if (kiln_map_find_ptr(&l->buffers, value)) {
    inst = lower_input_tensor(l, value, map);
  } else {
    inst = lower_node(l, value->node, value->index, map);
    if (inst >= 0 &&
        l->nest->body.data[inst].dtype != kiln__lower_result_dtype(value->node, value->index))
      inst = kiln__lower_cast(l, inst, kiln__lower_result_dtype(value->node, value->index));
  }
  if (inst < 0) return -1;
  kiln_map_set_ptr(&l->met, value->node, value->node);
  memo_entry *m = KILN_NEW(l->arena, memo_entry);
  m->map = *map;
  m->inst = inst;
  m->scope = innermost(l);
  m->next = first;
  kiln_map_set_ptr(&l->memo, value, m);
  return inst;
}

int kiln__lower_input(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *map,
                      kiln_dtype dtype) {
  const kiln_ir_value *value = kiln_node_input(node, i);
  if (value->type->kind != KILN_TYPE_TENSOR)
    return kiln__lower_cast(l, lower_number_value(l, value), dtype);
  const kiln_tensor_detail *detail = value->type->detail, *result = node->outputs[0]->type->detail;
  if (!detail || detail->rank < 0 || detail->rank > map->rank || result->rank != map->rank)
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  const int missing = map->rank - detail->rank;
  kiln__lower_map *own = kiln__lower_new_map(l, detail->rank);
  for (int d = 0; d < detail->rank; d++) {
    own->dims[d] = map->dims[missing + d];
    if (detail->sizes[d] == 1) {
      own->dims[d] = (kiln__lower_dim){0};
    } else if (detail->sizes[d] != result->sizes[missing + d]) {
      /* [s0] and [2] may be added now; what s0 is next the operator itself must see. */
      return kiln__lower_refuse(l, KILN_REASON_types_unknown);
    }
  }
  return kiln__lower_cast(l, kiln__lower_value(l, value, own), dtype);
}

int kiln__lower_item(kiln__lowering *l, const kiln_ir_value *list, int i,
                     const kiln__lower_map *map) {
  const lowering_entry *e = lowering_of(list->node->op);
  return e && e->each ? e->each(l, list->node, i, map)
                      : kiln__lower_refuse(l, KILN_REASON_no_lowering);
}

/* -- Rows -- */

bool kiln_codegen_reduces(const kiln_node *node, uint64_t *out_mask) {
  const lowering_entry *e = lowering_of(node->op);
  return e && e->rows && kiln__rows_mask(node, e->dims, out_mask);
}

const kiln__rows *kiln__rows_find(const kiln__lowering *l, const kiln_node *node,
                                  kiln__rows_begin_fn begin, const kiln__lower_map *kept) {
  for (int i = 0; i < l->rows.count; i++) {
    const kiln__rows *rows = l->rows.data[i];
    if (rows->node == node && rows->begin == begin && same_map(&rows->kept, kept)) return rows;
  }
  return NULL;
}

static kiln__rows *begin_rows(kiln__lowering *l, kiln__rows_begin_fn begin, const kiln_node *node,
                              uint64_t mask, const kiln__lower_map *kept) {
  kiln__rows *rows = KILN_NEW(l->arena, kiln__rows);
  rows->node = node;
  rows->begin = begin;
  rows->mask = mask;
  rows->part = kiln__rows_part(mask);
  rows->kept = *kept;
  rows->values[0] = rows->values[1] = -1;
  const bool storing = l->storing;
  l->storing = false;
  begin(l, node, rows);
  l->storing = storing;
  if (l->reason != KILN_REASON_none) return NULL;
  kiln_vec_push(l->arena, &l->rows, rows);
  return rows;
}

/* In a nest that was planned the rows are there; else they are reduced where they are wanted. */
const kiln__rows *kiln__rows_at(kiln__lowering *l, const kiln_node *node, kiln__rows_begin_fn begin,
                                uint64_t mask, const kiln__lower_map *kept) {
  for (int d = 0; d < kept->rank; d++) { /* rows at places that are found in a loop of theirs */
    if (!kept->dims[d].check) continue;
    kiln__lower_refuse(l, KILN_REASON_no_affine_map);
    return NULL;
  }
  const kiln__rows *rows = kiln__rows_find(l, node, begin, kept);
  return rows ? rows : begin_rows(l, begin, node, mask, kept);
}

static int lower_rows(kiln__lowering *l, const lowering_entry *e, const kiln_node *node, int output,
                      const kiln__lower_map *map) {
  uint64_t mask;
  if (!kiln_codegen_reduces(node, &mask)) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  const kiln__lower_map *kept = kiln__rows_kept(l, node, mask, map);
  const kiln__rows *rows = kept ? kiln__rows_at(l, node, e->begin, mask, kept) : NULL;
  return rows ? e->rows(l, node, output, map, rows) : -1;
}

/* -- The graph -- */

static kiln_reason check_tensor_type(const kiln_type *type) {
  if (!kiln_type_has_dims(type)) return KILN_REASON_types_unknown;
  const kiln_tensor_detail *detail = type->detail;
  if (detail->device > KILN_DEVICE_CPU) return KILN_REASON_device;
  if (detail->rank > KILN_LOOP_MAX_RANK) return KILN_REASON_rank;
  if (!kiln_loop_class((kiln_dtype)detail->dtype)) return KILN_REASON_dtype;
  return KILN_REASON_none;
}

/* A tensor becomes a buffer, a number a scalar. */
static void add_input(kiln__lowering *l, const kiln_ir_value *value) {
  if (l->reason != KILN_REASON_none) return;
  if (value->type->kind == KILN_TYPE_TENSOR) {
    kiln_reason reason = check_tensor_type(value->type);
    if (reason != KILN_REASON_none) {
      kiln__lower_refuse(l, reason);
      return;
    }
    const kiln_tensor_detail *d = value->type->detail;
    const kiln__lower_sizes s = kiln__lower_sizes_of(l, value);
    int number = kiln_loop_add_input(l->fn, (kiln_dtype)d->dtype, d->rank, s.sizes, s.strides);
    kiln_map_set_ptr(&l->buffers, value, (void *)(intptr_t)(number + 1));
  } else {
    kiln_dtype kind = kiln__lower_number_kind(value);
    if (kind == KILN_DTYPE_NONE) {
      kiln__lower_refuse(l, KILN_REASON_number_unknown);
      return;
    }
    int number = kiln_loop_add_scalar(l->fn, kind);
    kiln_map_set_ptr(&l->scalars, value, (void *)(intptr_t)(number + 1));
  }
}

static void add_outputs(kiln__lowering *l) {
  for (int i = 0; i < l->output_count; i++) {
    const kiln_ir_value *value = l->outputs[i];
    kiln_reason reason = value->type->kind == KILN_TYPE_TENSOR ? check_tensor_type(value->type)
                                                               : KILN_REASON_types_unknown;
    if (reason != KILN_REASON_none) {
      kiln__lower_refuse(l, reason);
      return;
    }
    const kiln_tensor_detail *d = l->stored[i]->type->detail;
    const kiln__lower_sizes s = kiln__lower_sizes_of(l, value);
    const kiln__lower_sizes in = kiln__lower_sizes_of(l, l->stored[i]);
    l->channels_last |= kiln_physical_is_channels_last(d->physical);
    kiln_loop_add_output(l->fn, (kiln_dtype)d->dtype, d->rank, s.sizes, in.strides);
  }
}

static bool same_sizes(const kiln_loop_buffer *a, const kiln_loop_buffer *b) {
  return a->rank == b->rank && memcmp(a->sizes, b->sizes, sizeof(int64_t) * (size_t)a->rank) == 0;
}

/* The outputs of output o's sizes, from that number on, at a map of theirs. */
static void store_alike(kiln__lowering *l, int o, const kiln__lower_map *map) {
  const int first = l->fn->input_count, count = l->output_count;
  const kiln_loop_buffer *like = &l->fn->buffers.data[first + o];
  for (; o < count; o++) {
    const kiln_loop_buffer *buffer = &l->fn->buffers.data[first + o];
    if (!same_sizes(buffer, like)) continue;
    const int value = kiln__lower_value(l, l->outputs[o], map);
    if (value < 0) return;
    const kiln__lower_dim at = place_of(l, first + o, map);
    kiln_loop_store(l->fn, l->nest, first + o, at.offset, at.steps, value);
  }
}

typedef KILN_VEC(kiln__lower_domain) domain_stack;

enum { MAX_PARTS = 64, MAX_TRIES = 256 }; /* of one output */

static void begin_nest(kiln__lowering *l, int rank, const kiln_dim *extents) {
  l->nest = kiln_loop_add_nest(l->fn, rank, extents);
  for (int k = 0; k < rank; k++) l->extents[k] = extents[k];
  l->memo = kiln_map_in(l->arena);
  l->rows.count = l->scope_count = 0;
  l->want = (kiln__lower_want){0};
  l->scans = l->scanning = l->storing = false;
}
/* As if it and its local buffers had not been. */
static void drop_nests(kiln__lowering *l, int nests, int buffers) {
  l->fn->nests.count = nests;
  l->fn->buffers.count = buffers;
}
static void drop_nest(kiln__lowering *l, int buffers) {
  drop_nests(l, l->fn->nests.count - 1, buffers);
}

/* Which loops of the domain all rows of the nest go along, a bit each; false, with a reason: they
 * differ, or are found inside others. */
static bool axes_of_rows(kiln__lowering *l, int rank, uint32_t *out_axes) {
  *out_axes = (1u << rank) - 1;
  for (int i = 0; i < l->rows.count; i++) {
    const kiln__rows *rows = l->rows.data[i];
    uint32_t axes = 0;
    for (int d = 0; d < rows->kept.rank; d++) {
      for (int k = 0; k < KILN_LOOP_MAX_RANK; k++)
        if (rows->kept.dims[d].steps[k] != 0) axes |= 1u << k;
    }
    if (axes >> rank || (i > 0 && axes != *out_axes))
      return kiln__lower_refuse(l, KILN_REASON_rows_differ) == 0;
    *out_axes = axes;
  }
  return true;
}

/* A nest over the axes that rows go along: reductions, each before those that need it, then loops
 * over the other axes; where there is one, perhaps of scans. */
static void lower_in_order(kiln__lowering *l, int o, const kiln__lower_domain *part, uint32_t axes,
                           kiln__rows *const *planned, int row_count, bool scans) {
  kiln_dim extents[KILN_LOOP_MAX_RANK];
  int rank = 0, opened = 0, to[KILN_LOOP_MAX_RANK] = {0};
  for (int k = 0; k < part->rank; k++) {
    if (!(axes >> k & 1)) continue;
    extents[rank] = part->extents[k];
    to[k] = rank++;
  }
  begin_nest(l, rank, extents);
  l->scans = scans;
  for (int i = 0; i < row_count; i++) {
    const kiln__lower_map kept = kiln__lower_renumbered(&planned[i]->kept, to, part->rank);
    if (!begin_rows(l, planned[i]->begin, planned[i]->node, planned[i]->mask, &kept)) return;
  }
  for (int k = 0; k < part->rank; k++) {
    if (axes >> k & 1) continue;
    to[k] = kiln__lower_open(l, scans ? KILN_LOOP_scan : KILN_LOOP_for, part->extents[k]);
    if (to[k] < 0) return;
    opened++;
  }
  l->scanning = scans;
  const kiln__lower_map map = kiln__lower_renumbered(&part->map, to, part->rank);
  l->storing = true;
  store_alike(l, o, &map);
  while (opened-- > 0) kiln__lower_close(l);
}
/* Scans keep their results for other loops, where these cannot be made in the scan's loop. */
static void lower_planned(kiln__lowering *l, int o, const kiln__lower_domain *part, uint32_t axes) {
  const int row_count = l->rows.count, buffers = l->fn->buffers.count;
  kiln__rows **planned = KILN_NEW_ARRAY(l->arena, kiln__rows *, row_count + 1);
  memcpy(planned, l->rows.data, sizeof *planned * (size_t)row_count);
  const uint32_t others = ((1u << part->rank) - 1) & ~axes;
  bool scans = false;
  for (int i = 0; i < row_count; i++)
    scans |= lowering_of(planned[i]->node->op)->dims == KILN__ROWS_scan;
  if (scans && others != 0 && (others & (others - 1)) == 0) {
    lower_in_order(l, o, part, axes, planned, row_count, true);
    if (l->reason == KILN_REASON_none) return;
    l->reason = KILN_REASON_none;
    drop_nest(l, buffers);
  }
  lower_in_order(l, o, part, axes, planned, row_count, false);
}

/* What was wanted of the part's loops is done, and they are tried again; false, with a reason: it
 * cannot be. */
static bool answer_want(kiln__lowering *l, kiln__lower_domain part, domain_stack *parts) {
  const kiln__lower_want want = l->want;
  const bool is_split = want.kind == KILN__WANT_SPLIT;
  if (want.kind == KILN__WANT_NOTHING || want.loop >= part.rank) return false;
  l->reason = is_split && part.rank == KILN_LOOP_MAX_RANK ? KILN_REASON_rank
              : parts->count >= MAX_PARTS                 ? KILN_REASON_too_long
                                                          : KILN_REASON_none;
  if (l->reason != KILN_REASON_none) return false;
  if (is_split) {
    kiln__domain_split(l->fn->dims, &part, want.loop, want.at, want.rest);
    kiln_vec_push(l->arena, parts, part);
  } else {
    const kiln__lower_domain front = kiln__domain_cut(l->fn->dims, &part, want.loop, want.at);
    kiln_vec_push(l->arena, parts, part);
    kiln_vec_push(l->arena, parts, front);
  }
  return true;
}

/* Lowers the outputs from `o` on that have its sizes: each part of their elements into a new nest,
 * with loops for all its axes, or where rows are found that way, again. Rows would stand in all
 * parts' nests: nothing is cut then. */
static void lower_alike(kiln__lowering *l, int o) {
  const kiln_loop_buffer *like = &l->fn->buffers.data[l->fn->input_count + o];
  kiln__lower_domain part = kiln__domain_of(l->fn->dims, like);
  domain_stack parts = {0};
  uint32_t axes;
  bool is_cut = false;
  kiln_vec_push(l->arena, &parts, part);
  for (int tries = 0; parts.count > 0; tries++) {
    const int buffers = l->fn->buffers.count;
    part = kiln_vec_pop(&parts);
    begin_nest(l, part.rank, part.extents);
    store_alike(l, o, &part.map);
    if (l->reason != KILN_REASON_none) {
      is_cut |= l->want.kind == KILN__WANT_CUT;
      if (tries == MAX_TRIES || !answer_want(l, part, &parts)) return;
      drop_nest(l, buffers);
    } else if (l->rows.count > 0) {
      if (is_cut) (void)kiln__lower_refuse(l, KILN_REASON_rows_cut);
      if (is_cut) return;
      drop_nest(l, buffers);
      if (axes_of_rows(l, part.rank, &axes)) lower_planned(l, o, &part, axes);
      if (l->reason != KILN_REASON_none) return;
    }
  }
}

static void lower_outputs(kiln__lowering *l) {
  const int first = l->fn->input_count;
  for (int o = 0; o < l->output_count; o++) {
    const kiln_loop_buffer *buffer = &l->fn->buffers.data[first + o];
    bool done = false;
    for (int p = 0; p < o; p++) done |= same_sizes(&l->fn->buffers.data[first + p], buffer);
    for (int d = 0; d < buffer->rank; d++) done |= buffer->sizes[d] == 0;
    if (!done) lower_alike(l, o);
    if (l->reason != KILN_REASON_none) return;
  }
}

static void begin(kiln__lowering *l, kiln_arena *arena, kiln_factor_type factors) {
  *l = (kiln__lowering){.arena = arena, .fn = kiln_loop_create(arena), .factors = factors};
  l->buffers = kiln_map_in(arena);
  l->scalars = kiln_map_in(arena);
  l->joins = kiln_map_in(arena);
  l->products = kiln_map_in(arena);
  l->gathered = kiln_map_in(arena);
  l->met = kiln_map_in(arena);
}

/* Whole nests for what is computed between the values. */
static void lower_values(kiln__lowering *l, kiln_ir_value *const *inputs, int input_count,
                         const kiln_ir_value *const *outputs, const kiln_ir_value *const *stored,
                         int output_count) {
  l->outputs = outputs;
  l->stored = stored;
  l->output_count = output_count;
  kiln_dim_wishes wishes = {0};
  kiln_dims_listen(l->fn->dims, &wishes, NULL);
  kiln__lower_assume(l, inputs, input_count);
  for (int i = 0; i < input_count; i++) add_input(l, inputs[i]);
  if (l->reason == KILN_REASON_none) add_outputs(l);
  const int shared = l->fn->buffers.count;
  l->copied = true;
  while (l->copied && l->reason == KILN_REASON_none) {
    l->copied = false;
    drop_nests(l, 0, shared);
    lower_outputs(l);
  }
  if (l->reason == KILN_REASON_none) kiln__lower_look_at_unread(l);
  kiln_dims_listen(l->fn->dims, NULL, NULL);
  kiln__lower_ask(l, inputs, input_count, &wishes);
}

/* Whether all its contractions get tiles; without one a product is slow. */
static bool has_tiles(kiln_loop_fn *fn, kiln_arena *scratch) {
  bool contracts = false;
  for (int n = 0; n < fn->nests.count; n++) contracts |= kiln_loop_contracts(fn->nests.data[n]);
  if (!contracts) return true;
  kiln_status *status = kiln_loop_optimize(fn, scratch);
  const bool optimized = !status;
  kiln_status_destroy(status);
  return optimized && kiln_schedule_has_tiles(fn, scratch);
}

kiln_reason kiln_codegen_can_lower_values(kiln_ir_value *const *inputs, int input_count,
                                          kiln_ir_value *const *outputs, int output_count,
                                          kiln_factor_type factors, kiln_mem *mem) {
  kiln_arena *arena = kiln_arena_scoped(mem);
  kiln__lowering l;
  const kiln_ir_value *const *values = (const kiln_ir_value *const *)outputs;
  begin(&l, arena, factors);
  lower_values(&l, inputs, input_count, values, values, output_count);
  kiln_status *status = l.reason == KILN_REASON_none ? kiln_loop_verify(l.fn) : NULL;
  if (status) l.reason = KILN_REASON_no_affine_map; /* more than the verifier can prove */
  kiln_status_destroy(status);
  if (l.reason == KILN_REASON_none && !has_tiles(l.fn, arena))
    l.reason = KILN_REASON_product_by_kernel;
  kiln_arena_destroy(arena);
  return l.reason;
}

kiln_reason kiln_codegen_can_lower_group(const kiln_graph *body, kiln_factor_type factors,
                                         kiln_mem *mem) {
  const int inputs = kiln_graph_input_count(body), outputs = kiln_graph_output_count(body);
  kiln_arena *arena = kiln_arena_scoped(mem);
  kiln_ir_value **values = KILN_NEW_ARRAY(arena, kiln_ir_value *, inputs + outputs);
  for (int i = 0; i < inputs; i++) values[i] = kiln_graph_input(body, i);
  for (int i = 0; i < outputs; i++) values[inputs + i] = kiln_graph_output(body, i);
  const kiln_reason reason =
      kiln_codegen_can_lower_values(values, inputs, values + inputs, outputs, factors, mem);
  kiln_arena_destroy(arena);
  return reason;
}

/* Equal kernels are one, whatever their guards say: what proves nothing in it goes. */
static kiln_status *drop_orders(kiln_loop_fn *fn) {
  kiln_dim_order orders[KILN_DIMS_ASSUMED];
  const int count = kiln_dims_assumed(fn->dims);
  for (int i = 0; i < count; i++) orders[i] = kiln_dims_assumed_at(fn->dims, i);
  kiln_dims_forget(fn->dims, 0);
  kiln_status *status = kiln_loop_verify(fn);
  if (!status || count == 0) return status;
  kiln_status_destroy(status);
  for (int i = 0; i < count; i++) (void)kiln_dims_assume(fn->dims, orders[i]);
  return kiln_loop_verify(fn);
}

kiln_status *kiln_codegen_lower(const kiln_graph *graph, kiln_factor_type factors,
                                kiln_arena *arena, kiln_reason *out_reason, kiln_loop_fn **out_fn) {
  kiln__lowering lowering, *l = &lowering;
  const int input_count = kiln_graph_input_count(graph);
  const int output_count = kiln_graph_output_count(graph);
  kiln_ir_value **inputs = KILN_NEW_ARRAY(arena, kiln_ir_value *, input_count + 1);
  const kiln_ir_value **outputs = KILN_NEW_ARRAY(arena, const kiln_ir_value *, output_count + 1);
  const kiln_ir_value **stored = KILN_NEW_ARRAY(arena, const kiln_ir_value *, output_count + 1);
  for (int i = 0; i < input_count; i++) inputs[i] = kiln_graph_input(graph, i);
  for (int i = 0; i < output_count; i++) {
    kiln_place place;
    stored[i] = kiln_graph_output(graph, i);
    outputs[i] = kiln_codegen_place(graph, i, &place) ? place.part : stored[i];
  }
  begin(l, arena, factors);
  lower_values(l, inputs, input_count, outputs, stored, output_count);
  *out_reason = l->reason;
  if (l->reason != KILN_REASON_none)
    return KILN_ERROR(KILN_UNSUPPORTED, "%s", kiln_reason_sentence(l->reason));
  kiln_status *status = kiln_loop_verify(l->fn);
  if (!status) status = kiln_loop_optimize(l->fn, arena);
  if (!status) status = drop_orders(l->fn);
  if (status) {
    *out_reason = KILN_REASON_check_failed;
    return status;
  }
  *out_fn = l->fn;
  return NULL;
}

/* -- One node -- */

/* Inputs that a group would have: no constants, and what lists are made of. */
static void add_trial_inputs(kiln__lowering *l, const kiln_node *node) {
  for (int i = 0; i < node->input_count; i++) {
    const kiln_ir_value *value = kiln_node_input(node, i);
    const bool is_list = value->type->kind == KILN_TYPE_LIST && !kiln_ir_value_constant(value);
    if (is_list && lowering_of(value->node->op)) add_trial_inputs(l, value->node);
    if (value->type->kind == KILN_TYPE_TENSOR ||
        (!kiln_ir_value_constant(value) && kiln__lower_number_kind(value) != KILN_DTYPE_NONE)) {
      add_input(l, value);
    }
  }
}

/* Tries the node on a throw-away nest, with every input a graph input of its type. */
static kiln_reason try_node(const kiln_node *node, kiln_arena *arena) {
  kiln__lowering lowering, *l = &lowering;
  begin(l, arena, KILN_FACTORS_F32);
  add_trial_inputs(l, node);
  for (int o = 0; o < node->output_count && l->reason == KILN_REASON_none; o++) {
    if (node->outputs[o]->type->kind == KILN_TYPE_LIST) continue;
    kiln_reason reason = check_tensor_type(node->outputs[o]->type);
    if (reason != KILN_REASON_none) {
      kiln__lower_refuse(l, reason);
      break;
    }
    kiln__lower_map map = {.rank = node->outputs[o]->type->detail->rank};
    int64_t extents[KILN_LOOP_MAX_RANK];
    for (int d = 0; d < map.rank; d++) {
      map.dims[d] = kiln__lower_along(d);
      extents[d] = 1; /* the first point */
    }
    begin_nest(l, map.rank, extents);
    (void)lower_node(l, node, o, &map);
  }
  return l->reason;
}

kiln_reason kiln_codegen_can_lower(const kiln_node *node) {
  const kiln_reason lacks = kiln_codegen_lacks(node->op);
  if (lacks != KILN_REASON_none) return lacks;
  if (!kiln_codegen_has_lowering(node->op)) return KILN_REASON_no_lowering;
  kiln_arena *arena = kiln_arena_scoped(kiln_arena_mem(node->graph->arena));
  const kiln_reason reason = try_node(node, arena);
  kiln_arena_destroy(arena);
  return reason;
}
