/* shape_pieces.c: shape functions of operators that give lists of parts of their argument, which
 * share its storage. */
#include "ir/shape.h"

enum { MAX_PIECES = 1024 };

/* Argument 0, which is cut along dimension `dim`, and what each piece is. */
typedef struct pieces {
  const kiln_tensor_detail *self;
  int dim;
  kiln_tensor_detail *each;
  int count;
} pieces;

static bool begin(kiln_shape_query *q, int dim_argument, pieces *p) {
  *p = (pieces){.self = kiln__shape_ranked(q, 0)};
  return p->self && kiln__shape_sized_dim(q, dim_argument, p->self->rank, &p->dim) &&
         kiln_dim_is_known(p->self->sizes[p->dim]);
}
static bool reserve(kiln_shape_query *q, pieces *p, int64_t count) {
  if (count < 0 || count > MAX_PIECES) return false;
  p->each = KILN_NEW_ARRAY(q->arena, kiln_tensor_detail, count + 1);
  p->count = (int)count;
  return true;
}
static void set(kiln_shape_query *q, const pieces *p, int i, int rank, const kiln_dim *sizes,
                const kiln_dim *strides) {
  kiln_tensor_detail *out = kiln__shape_result(q, 0);
  out->dtype = p->self->dtype;
  kiln__shape_set(q, out, rank, sizes, p->self->has_strides ? strides : NULL);
  p->each[i] = *out;
}
/* Piece i with so many elements along the dimension. */
static void set_piece(kiln_shape_query *q, const pieces *p, int i, kiln_dim size) {
  kiln_dim sizes[KILN_MAX_RANK];
  for (int d = 0; d < p->self->rank; d++) sizes[d] = d == p->dim ? size : p->self->sizes[d];
  set(q, p, i, p->self->rank, sizes, p->self->strides);
}
static bool give(kiln_shape_query *q, const pieces *p) {
  q->outs[0] = KILN_TENSOR_DETAIL_ANY; /* the result is a list */
  q->elems = p->each;
  q->elem_count = p->count;
  return true;
}

/* `count` pieces of size `step`, the last one of another. */
static bool give_steps(kiln_shape_query *q, pieces *p, kiln_dim step, kiln_dim last,
                       int64_t count) {
  if (!reserve(q, p, count)) return false;
  for (int i = 0; i < p->count; i++) set_piece(q, p, i, i + 1 < p->count ? step : last);
  return give(q, p);
}
/* Of numbers. */
static bool give_split(kiln_shape_query *q, pieces *p, int64_t step) {
  const int64_t size = p->self->sizes[p->dim], count = size / step + (size % step != 0);
  if (count == 0) return give_steps(q, p, step, 0, 1);
  return give_steps(q, p, step, size - (count - 1) * step, count);
}

/* chunk(self, chunks, dim). */
bool kiln__shape_chunk(kiln_shape_query *q) {
  pieces p;
  int64_t chunks;
  if (!begin(q, 2, &p) || !kiln__shape_int(q, 1, &chunks) || chunks < 1) return false;
  const kiln_dim size = p.self->sizes[p.dim];
  if (!kiln_dim_is_number(size)) {
    kiln_dim step, last;
    return kiln__shape_chunks(q->dims, size, chunks, &step, &last) &&
           give_steps(q, &p, step, last, chunks);
  }
  const int64_t step = size / chunks + (size % chunks != 0);
  return step == 0 ? give_steps(q, &p, 0, 0, chunks) : give_split(q, &p, step);
}

/* split(self, split_size, dim): of expressions where the pieces are equal. */
bool kiln__shape_split(kiln_shape_query *q) {
  pieces p;
  kiln_sum step;
  int64_t number;
  if (!begin(q, 2, &p) || !kiln__shape_sum(q, 1, &step)) return false;
  const kiln_dim size = p.self->sizes[p.dim];
  if (kiln_dim_is_number(size) && kiln__shape_int(q, 1, &number))
    return number > 0 && give_split(q, &p, number);
  const kiln_sum count = kiln_sum_quotient(q->dims, kiln_sum_of(q->dims, size), step);
  const kiln_dim piece = kiln_sum_dim(q->dims, step);
  return count.known && count.count == 0 && count.constant > 0 &&
         give_steps(q, &p, piece, piece, count.constant);
}

/* split_with_sizes(self, sizes, dim): it raises where they do not add up. */
bool kiln__shape_split_sizes(kiln_shape_query *q) {
  pieces p;
  kiln_shape_list list;
  if (!begin(q, 2, &p) || !kiln__shape_ints(q, 1, &list) || !reserve(q, &p, list.count))
    return false;
  for (int i = 0; i < list.count; i++) {
    if (list.known[i] && list.ints[i] < 0) return false;
    set_piece(q, &p, i, list.dims[i]);
  }
  return give(q, &p);
}

/* In so many parts, the first of which may have an element more; or in parts that begin at the
 * places of a list, which count from the end where they are below 0. */
static bool give_parts(kiln_shape_query *q, pieces *p) {
  kiln_shape_list list;
  int64_t sections, begin = 0;
  if (!kiln_dim_is_number(p->self->sizes[p->dim])) return false;
  const int64_t size = p->self->sizes[p->dim];
  if (kiln__shape_int(q, 1, &sections)) {
    if (sections < 1 || !reserve(q, p, sections)) return false;
    for (int i = 0; i < p->count; i++) set_piece(q, p, i, size / sections + (i < size % sections));
    return give(q, p);
  }
  if (!kiln__shape_ints(q, 1, &list) || !reserve(q, p, list.count + 1)) return false;
  for (int i = 0; i < p->count; i++) {
    const bool is_last = i == list.count;
    if (!is_last && !list.known[i]) return false;
    int64_t end = is_last ? size : list.ints[i];
    if (end < 0) end += size;
    end = end < 0 ? 0 : end > size ? size : end;
    set_piece(q, p, i, end > begin ? end - begin : 0);
    begin = end;
  }
  return give(q, p);
}
/* tensor_split(self, sections or indices, dim) */
bool kiln__shape_tensor_split(kiln_shape_query *q) {
  pieces p;
  return begin(q, 2, &p) && give_parts(q, &p);
}
/* hsplit, vsplit, dsplit: along the columns (of a vector its only dimension), rows, the third. */
static bool split_at(kiln_shape_query *q, int dim) {
  pieces p = {.self = kiln__shape_ranked(q, 0), .dim = dim};
  return p.self && p.self->rank > dim && give_parts(q, &p);
}
bool kiln__shape_hsplit(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  return self && split_at(q, self->rank > 1);
}
bool kiln__shape_vsplit(kiln_shape_query *q) { return split_at(q, 0); }
bool kiln__shape_dsplit(kiln_shape_query *q) { return split_at(q, 2); }

/* unbind(self, dim): without the dimension. */
bool kiln__shape_unbind(kiln_shape_query *q) {
  pieces p;
  kiln_dim sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  int rank = 0;
  if (!begin(q, 1, &p) || !kiln_dim_is_number(p.self->sizes[p.dim]) ||
      !reserve(q, &p, p.self->sizes[p.dim])) {
    return false;
  }
  for (int d = 0; d < p.self->rank; d++) {
    if (d == p.dim) continue;
    sizes[rank] = p.self->sizes[d];
    if (p.self->has_strides) strides[rank] = p.self->strides[d];
    rank++;
  }
  for (int i = 0; i < p.count; i++) set(q, &p, i, rank, sizes, strides);
  return give(q, &p);
}

/* broadcast_tensors(tensors): what has 1 where another has more does not move there. */
bool kiln__shape_broadcast_tensors(kiln_shape_query *q) {
  const kiln_shape_list *list = q->lists[0];
  kiln_dim sizes[KILN_MAX_RANK];
  int rank = 0;
  pieces p = {0};
  if (!list || !list->tensors || list->count == 0) return false;
  for (int i = 0; i < list->count; i++) {
    if (!list->tensors[i] || list->tensors[i]->rank < 0) return false;
    if (list->tensors[i]->rank > rank) rank = list->tensors[i]->rank;
  }
  for (int d = 0; d < rank; d++) sizes[d] = 1;
  for (int i = 0; i < list->count; i++) {
    const kiln_tensor_detail *t = list->tensors[i];
    for (int d = 0; d < t->rank; d++) {
      kiln_dim *size = &sizes[rank - t->rank + d];
      if (!kiln__shape_broadcast_dim(q->dims, *size, t->sizes[d], size) ||
          !kiln_dim_is_known(*size))
        return false;
    }
  }
  if (!reserve(q, &p, list->count)) return false;
  for (int i = 0; i < list->count; i++) {
    kiln_dim strides[KILN_MAX_RANK] = {0};
    p.self = list->tensors[i];
    const int more = rank - p.self->rank;
    for (int d = 0; d < p.self->rank; d++) {
      const bool moves = p.self->sizes[d] == sizes[more + d];
      const bool stays = p.self->sizes[d] == 1 && kiln__shape_is_not_one(q->dims, sizes[more + d]);
      if (!moves && !stays) return false; /* it may be either */
      strides[more + d] = moves && p.self->has_strides ? p.self->strides[d] : 0;
    }
    for (int d = more - 1; d >= 0; d--) { /* as expand has new dimensions */
      if (sizes[d] != 1 && !kiln__shape_is_not_one(q->dims, sizes[d])) return false;
      const kiln_dim step =
          d + 1 < rank ? kiln_dim_product(q->dims, sizes[d + 1], strides[d + 1]) : 1;
      strides[d] = sizes[d] == 1 ? step : 0;
    }
    set(q, &p, i, rank, sizes, strides);
  }
  return give(q, &p);
}
