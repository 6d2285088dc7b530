/* shape_view.c: shape functions of operators whose result shares the argument's storage, or copies
 * its elements in another shape. */
#include "ir/shape.h"
#include "runtime/strides.h"

/* Sizes and strides being worked out. */
typedef struct geometry {
  int rank;
  bool has_strides;
  kiln_dim sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
} geometry;

/* That of argument 0; false when its rank is not known. */
static bool self_geometry(const kiln_shape_query *q, geometry *g) {
  const kiln_tensor_detail *self = kiln__shape_tensor(q, 0);
  if (!self || self->rank < 0) return false;
  g->rank = self->rank;
  g->has_strides = self->has_strides;
  for (int i = 0; i < self->rank; i++) {
    g->sizes[i] = self->sizes[i];
    if (g->has_strides) g->strides[i] = self->strides[i];
  }
  return true;
}

/* A result with argument 0's dtype. */
static bool give(kiln_shape_query *q, const geometry *g) {
  kiln_tensor_detail *out = kiln__shape_result(q, 0);
  out->dtype = kiln__shape_tensor(q, 0)->dtype;
  kiln__shape_set(q, out, g->rank, g->sizes, g->has_strides ? g->strides : NULL);
  return true;
}

static bool is_static(const geometry *g) {
  return kiln__shape_static(g->rank, g->sizes) && g->has_strides &&
         kiln__shape_static(g->rank, g->strides);
}

static void make_contiguous(geometry *g) {
  g->has_strides = kiln__shape_static(g->rank, g->sizes);
  if (g->has_strides) kiln_strides_contiguous(g->rank, g->sizes, g->strides);
}

static void remove_dim(geometry *g, int dim) {
  g->rank--;
  for (int i = dim; i < g->rank; i++) {
    g->sizes[i] = g->sizes[i + 1];
    g->strides[i] = g->strides[i + 1];
  }
}

static void insert_dim(geometry *g, int dim, int64_t size, int64_t stride) {
  for (int i = g->rank; i > dim; i--) {
    g->sizes[i] = g->sizes[i - 1];
    g->strides[i] = g->strides[i - 1];
  }
  g->sizes[dim] = size;
  g->strides[dim] = stride;
  g->rank++;
}

/* -- view, reshape, flatten -- */

static kiln_strided strided(const geometry *g) {
  return (kiln_strided){g->rank, g->sizes, g->strides};
}

/* What -1 stands for beside sizes whose product is given. */
static kiln_dim open_size(kiln_dims *dims, const geometry *self, kiln_dim product) {
  kiln_dim numel = 1;
  for (int i = 0; i < self->rank; i++) numel = kiln_dim_product(dims, numel, self->sizes[i]);
  if (product == 0) return KILN_DIM_UNKNOWN;
  const kiln_sum all = kiln_sum_of(dims, numel), by = kiln_sum_of(dims, product);
  const bool by_number = kiln_dim_is_number(product);
  return kiln_sum_dim(
      dims, by_number ? kiln_sum_divided(dims, all, product) : kiln_sum_quotient(dims, all, by));
}

/* The sizes of a list argument, with -1 worked out where all is known. */
static bool wanted_sizes(const kiln_shape_query *q, int arg, const geometry *self, geometry *to) {
  kiln_shape_list list;
  if (!kiln__shape_ints(q, arg, &list)) return false;
  kiln_dim product = 1;
  int64_t numel;
  int open = -1;
  bool all = true;
  to->rank = list.count;
  for (int i = 0; i < list.count; i++) {
    const bool is_open = list.known[i] && list.ints[i] == -1;
    if ((list.known[i] && list.ints[i] < -1) || (is_open && open >= 0)) return false;
    to->sizes[i] = list.dims[i];
    if (is_open) {
      open = i;
      continue;
    }
    all &= kiln_dim_is_known(list.dims[i]);
    product = kiln_dim_product(q->dims, product, list.dims[i]);
  }
  if (!all) return true;
  if (!kiln_dim_is_known(product)) return false;
  if (!kiln__shape_static(self->rank, self->sizes) || !kiln_dim_is_number(product)) {
    if (open >= 0) to->sizes[open] = open_size(q->dims, self, product);
    return true;
  }
  if (!kiln_numel(self->rank, self->sizes, &numel)) return false;
  if (open < 0) return product == numel;
  if (product == 0 || numel % product != 0) return false;
  to->sizes[open] = numel / product;
  return true;
}

static bool is_less(const kiln_shape_query *q, kiln_dim a, kiln_dim b) {
  const kiln_sum apart = kiln_sum_minus(kiln_sum_of(q->dims, b), kiln_sum_of(q->dims, a));
  return kiln_sum_is_natural(q->dims, kiln_sum_minus(apart, kiln_sum_number(1)));
}
static bool are_different(const kiln_shape_query *q, kiln_dim a, kiln_dim b) {
  return is_less(q, a, b) || is_less(q, b, a);
}

/* Every dimension is known, and 1 for certain or 2 and up. */
static bool is_plain(const kiln_shape_query *q, const geometry *g, bool strides) {
  bool plain = !strides || g->has_strides;
  for (int i = 0; plain && i < g->rank; i++) {
    plain = kiln__shape_tells_one(q->dims, g->sizes[i]) && g->sizes[i] != 0;
    plain = plain && (!strides || kiln_dim_is_known(g->strides[i]));
  }
  return plain;
}

/* The strides are those of a row-major tensor, also of dimensions of one element; or one of more
 * elements has another for certain: then it is not contiguous. */
static bool is_row_major(const kiln_shape_query *q, const geometry *g) {
  bool any = true; /* element */
  for (int i = 0; i < g->rank; i++) any = any && g->sizes[i] != 0;
  return any && g->has_strides && kiln__shape_has_rows(q, g->rank, g->sizes, g->strides);
}
static bool is_not_contiguous(const kiln_shape_query *q, const geometry *g) {
  kiln_dim within = 1;
  if (!is_plain(q, g, true)) return false;
  for (int i = g->rank - 1; i >= 0; i--) {
    if (g->sizes[i] != 1 && are_different(q, g->strides[i], within)) return true;
    within = kiln_dim_product(q->dims, within, g->sizes[i]);
  }
  return false;
}

typedef enum layout { LAYOUT_OPEN, LAYOUT_VIEW, LAYOUT_COPY } layout;

/* kiln_strides_view of expressions. A run that ends where it need not gives the same strides; that
 * there is no view has to be certain. */
static layout find_view(const kiln_shape_query *q, const geometry *self, geometry *to) {
  if (self->rank == 0 || !is_plain(q, self, true) || !is_plain(q, to, false)) return LAYOUT_OPEN;
  kiln_dim base = self->strides[self->rank - 1], run = 1, used = 1;
  bool certain = true;
  int d = to->rank - 1;
  for (int i = self->rank - 1; i >= 0; i--) {
    run = kiln_dim_product(q->dims, run, self->sizes[i]);
    const kiln_dim next = kiln_dim_product(q->dims, run, base);
    if (!kiln_dim_is_known(next)) return LAYOUT_OPEN;
    if (i > 0 && (self->sizes[i - 1] == 1 || self->strides[i - 1] == next)) continue;
    certain &= i == 0 || are_different(q, self->strides[i - 1], next);
    for (; d >= 0 && (to->sizes[d] == 1 || is_less(q, used, run)); d--) {
      to->strides[d] = kiln_dim_product(q->dims, used, base);
      used = kiln_dim_product(q->dims, used, to->sizes[d]);
    }
    if (used != run) return certain && are_different(q, used, run) ? LAYOUT_COPY : LAYOUT_OPEN;
    if (i > 0) base = self->strides[i - 1], run = used = 1;
  }
  return d == -1 ? LAYOUT_VIEW : LAYOUT_OPEN;
}

static bool give_row_major(kiln_shape_query *q, const geometry *g) {
  kiln_tensor_detail *out = kiln__shape_result(q, 0);
  out->dtype = kiln__shape_tensor(q, 0)->dtype;
  kiln__shape_row_major(q, out, g->rank, g->sizes);
  return true;
}

static bool finish_view(kiln_shape_query *q, const geometry *self, geometry *to, bool may_copy) {
  if (!is_static(self) || !kiln__shape_static(to->rank, to->sizes)) {
    if (is_row_major(q, self)) return give_row_major(q, to);
    const layout found = find_view(q, self, to);
    if (found == LAYOUT_COPY) return may_copy && give_row_major(q, to);
    to->has_strides = found == LAYOUT_VIEW;
    return give(q, to);
  }
  const kiln_strided from = strided(self);
  int64_t numel;
  to->has_strides = true;
  if (!(kiln_numel(self->rank, self->sizes, &numel) &&
        kiln_strides_view(&from, to->rank, to->sizes, to->strides))) {
    if (!may_copy) return false;
    make_contiguous(to);
  }
  return give(q, to);
}

static bool resize(kiln_shape_query *q, bool may_copy) {
  geometry self, to;
  return self_geometry(q, &self) && wanted_sizes(q, 1, &self, &to) &&
         finish_view(q, &self, &to, may_copy);
}

bool kiln__shape_view(kiln_shape_query *q) { return resize(q, false); }
bool kiln__shape_reshape(kiln_shape_query *q) { return resize(q, true); }

/* view_as(self, other), reshape_as. */
static bool resize_as(kiln_shape_query *q, bool may_copy) {
  const kiln_tensor_detail *other = kiln__shape_ranked(q, 1);
  geometry self, to = {0};
  if (!other || !self_geometry(q, &self)) return false;
  to.rank = other->rank;
  for (int i = 0; i < other->rank; i++) to.sizes[i] = other->sizes[i];
  return finish_view(q, &self, &to, may_copy);
}
bool kiln__shape_view_as(kiln_shape_query *q) { return resize_as(q, false); }
bool kiln__shape_reshape_as(kiln_shape_query *q) { return resize_as(q, true); }

bool kiln__shape_flatten(kiln_shape_query *q) {
  geometry self, to = {0};
  int first, last;
  if (!self_geometry(q, &self) || !kiln__shape_dim(q, 1, self.rank, &first) ||
      !kiln__shape_dim(q, 2, self.rank, &last) || first > last) {
    return false;
  }
  if (self.rank > 0 && first == last) return give(q, &self);
  kiln_dim product = 1;
  for (int i = first; i <= last && i < self.rank; i++) {
    product = kiln_dim_product(q->dims, product, self.sizes[i]);
  }
  for (int i = 0; i < first; i++) to.sizes[to.rank++] = self.sizes[i];
  to.sizes[to.rank++] = product;
  for (int i = last + 1; i < self.rank; i++) to.sizes[to.rank++] = self.sizes[i];
  return finish_view(q, &self, &to, true);
}

bool kiln__shape_unflatten(kiln_shape_query *q) {
  geometry self, parts, to = {0};
  int dim;
  if (!self_geometry(q, &self) || !kiln__shape_sized_dim(q, 1, self.rank, &dim)) {
    return false;
  }
  const geometry one = {.rank = 1, .sizes = {self.sizes[dim]}};
  if (!wanted_sizes(q, 2, &one, &parts) || parts.rank < 1 ||
      self.rank - 1 + parts.rank > KILN_MAX_RANK) {
    return false;
  }
  for (int i = 0; i < dim; i++) to.sizes[to.rank++] = self.sizes[i];
  for (int i = 0; i < parts.rank; i++) to.sizes[to.rank++] = parts.sizes[i];
  for (int i = dim + 1; i < self.rank; i++) to.sizes[to.rank++] = self.sizes[i];
  return finish_view(q, &self, &to, true);
}

/* -- Order of dimensions -- */

static void swap_dims(geometry *g, int a, int b) {
  int64_t size = g->sizes[a], stride = g->strides[a];
  g->sizes[a] = g->sizes[b];
  g->strides[a] = g->strides[b];
  g->sizes[b] = size;
  g->strides[b] = stride;
}

bool kiln__shape_transpose(kiln_shape_query *q) {
  geometry g;
  int a, b;
  if (!self_geometry(q, &g) || !kiln__shape_dim(q, 1, g.rank, &a) ||
      !kiln__shape_dim(q, 2, g.rank, &b)) {
    return false;
  }
  if (g.rank > 0) swap_dims(&g, a, b);
  return give(q, &g);
}

bool kiln__shape_t(kiln_shape_query *q) {
  geometry g;
  if (!self_geometry(q, &g) || g.rank > 2) return false;
  if (g.rank == 2) swap_dims(&g, 0, 1);
  return give(q, &g);
}

/* mT: the last two; numpy_T: all in reverse. */
bool kiln__shape_matrix_T(kiln_shape_query *q) {
  geometry g;
  if (!self_geometry(q, &g) || g.rank < 2) return false;
  swap_dims(&g, g.rank - 2, g.rank - 1);
  return give(q, &g);
}
bool kiln__shape_numpy_T(kiln_shape_query *q) {
  geometry g;
  if (!self_geometry(q, &g)) return false;
  for (int i = 0; i < g.rank / 2; i++) swap_dims(&g, i, g.rank - 1 - i);
  return give(q, &g);
}

/* movedim(self, source, destination): the others keep their order. */
bool kiln__shape_movedim(kiln_shape_query *q) {
  geometry g, to;
  kiln_shape_list from, at;
  int order[KILN_MAX_RANK], next = 0;
  uint64_t taken = 0;
  if (!self_geometry(q, &g) || !kiln__shape_ints(q, 1, &from) || !kiln__shape_ints(q, 2, &at) ||
      from.count != at.count) {
    return false;
  }
  for (int d = 0; d < g.rank; d++) order[d] = -1;
  for (int i = 0; i < from.count; i++) {
    const int64_t a = from.ints[i] < 0 ? from.ints[i] + g.rank : from.ints[i];
    const int64_t b = at.ints[i] < 0 ? at.ints[i] + g.rank : at.ints[i];
    const bool known = from.known[i] && at.known[i];
    if (!known || a < 0 || a >= g.rank || b < 0 || b >= g.rank) return false;
    if (taken >> a & 1 || order[b] >= 0) return false;
    taken |= UINT64_C(1) << a;
    order[b] = (int)a;
  }
  to = g;
  for (int d = 0; d < g.rank; d++) {
    while (order[d] < 0 && taken >> next & 1) next++;
    const int own = order[d] < 0 ? next++ : order[d];
    to.sizes[d] = g.sizes[own];
    to.strides[d] = g.strides[own];
  }
  return give(q, &to);
}

bool kiln__shape_permute(kiln_shape_query *q) {
  geometry g, to = {0};
  kiln_shape_list dims;
  uint64_t seen = 0;
  if (!self_geometry(q, &g) || !kiln__shape_ints(q, 1, &dims) || dims.count != g.rank) return false;
  to.rank = g.rank;
  to.has_strides = g.has_strides;
  for (int i = 0; i < g.rank; i++) {
    int64_t dim = dims.ints[i] < 0 ? dims.ints[i] + g.rank : dims.ints[i];
    if (!dims.known[i] || dim < 0 || dim >= g.rank || (seen >> dim & 1)) return false;
    seen |= (uint64_t)1 << dim;
    to.sizes[i] = g.sizes[dim];
    to.strides[i] = g.strides[dim];
  }
  return give(q, &to);
}

/* -- Expanding -- */

/* `keep`: dimensions that stay as they are; NULL: none. */
static bool expand_to(kiln_shape_query *q, const geometry *self, int rank, const kiln_dim *sizes,
                      const bool *keep) {
  geometry to = {.rank = rank, .has_strides = self->has_strides};
  if (rank < self->rank) return false;
  int pad = rank - self->rank;
  for (int i = rank - 1; i >= 0; i--) {
    const kiln_dim size = sizes[i], own = i >= pad ? self->sizes[i - pad] : 1;
    const bool keeps = keep && keep[i], wide = kiln__shape_is_not_one(q->dims, own);
    if (keeps && i < pad) return false;
    const bool both = kiln_dim_is_number(own) && kiln_dim_is_number(size);
    if (!keeps && both && own != 1 && size != own) return false;
    to.sizes[i] = keeps || (wide && !kiln_dim_is_number(size)) ? own : size;
    if (!to.has_strides) continue;
    /* A new dimension gets the stride that it would have inside: only its size counts. */
    kiln_dim stride = i >= pad       ? self->strides[i - pad]
                      : i + 1 < rank ? kiln_dim_product(q->dims, to.sizes[i + 1], to.strides[i + 1])
                                     : 1;
    if (own == 1 && kiln__shape_is_not_one(q->dims, to.sizes[i])) stride = 0;
    const bool same = wide || own == to.sizes[i] || stride == 0;
    to.strides[i] = same ? stride : KILN_DIM_UNKNOWN;
  }
  return give(q, &to);
}

bool kiln__shape_expand(kiln_shape_query *q) {
  geometry self;
  kiln_shape_list list;
  if (!self_geometry(q, &self) || !kiln__shape_ints(q, 1, &list)) return false;
  bool keep[KILN_MAX_RANK];
  for (int i = 0; i < list.count; i++) {
    if (list.known[i] && list.ints[i] < -1) return false;
    keep[i] = list.known[i] && list.ints[i] == -1;
  }
  return expand_to(q, &self, list.count, list.dims, keep);
}

bool kiln__shape_expand_as(kiln_shape_query *q) {
  geometry self;
  const kiln_tensor_detail *other = kiln__shape_tensor(q, 1);
  if (!self_geometry(q, &self) || !other || other->rank < 0) return false;
  return expand_to(q, &self, other->rank, other->sizes, NULL);
}

bool kiln__shape_unsqueeze(kiln_shape_query *q) {
  geometry g;
  int dim;
  if (!self_geometry(q, &g) || g.rank >= KILN_MAX_RANK - 1) return false;
  if (!kiln__shape_dim(q, 1, g.rank + 1, &dim)) return false;
  int64_t stride = 1;
  if (dim < g.rank && g.has_strides) {
    stride = kiln_dim_product(q->dims, g.sizes[dim], g.strides[dim]);
  }
  insert_dim(&g, dim, 1, stride);
  return give(q, &g);
}

/* squeeze(self) and squeeze(self, dim). */
bool kiln__shape_squeeze(kiln_shape_query *q) {
  geometry g;
  int dim = -1;
  if (!self_geometry(q, &g)) return false;
  if (q->arg_count > 1 && !kiln__shape_dim(q, 1, g.rank, &dim)) return false;
  for (int i = g.rank - 1; i >= 0; i--) {
    if (dim >= 0 && i != dim) continue;
    if (!kiln_dim_is_number(g.sizes[i])) return false; /* even the rank is open */
    if (g.sizes[i] == 1) remove_dim(&g, i);
  }
  return give(q, &g);
}

/* squeeze(self, dims). */
bool kiln__shape_squeeze_dims(kiln_shape_query *q) {
  geometry g;
  kiln_shape_list dims;
  uint64_t out = 0;
  if (!self_geometry(q, &g) || !kiln__shape_ints(q, 1, &dims)) return false;
  for (int i = 0; i < dims.count; i++) {
    const int64_t dim = dims.ints[i] < 0 ? dims.ints[i] + g.rank : dims.ints[i];
    if (!dims.known[i] || dim < 0 || dim >= g.rank || !kiln_dim_is_number(g.sizes[dim]))
      return false;
    out |= UINT64_C(1) << dim;
  }
  for (int i = g.rank - 1; i >= 0; i--)
    if (out >> i & 1 && g.sizes[i] == 1) remove_dim(&g, i);
  return give(q, &g);
}

/* -- Diagonals -- */

/* What a diagonal leaves out of a dimension, and the rest of it: UNKNOWN where there may be none.
 */
static kiln_dim rest_of(const kiln_shape_query *q, kiln_dim size, int64_t less) {
  if (less <= 0) return size;
  if (kiln_dim_is_number(size)) return size > less ? size - less : 0;
  const kiln_sum all = kiln_sum_of(q->dims, size), left = kiln_sum_number(less);
  return kiln_dims_prove(q->dims, left, all) ? kiln_sum_dim(q->dims, kiln_sum_minus(all, left))
                                             : KILN_DIM_UNKNOWN;
}
/* The length of a diagonal: of symbols the guard is asked which is the least. */
static kiln_dim diagonal_length(const kiln_shape_query *q, kiln_dim rows, kiln_dim columns,
                                int64_t offset) {
  const kiln_dim a = offset < -INT64_MAX ? KILN_DIM_UNKNOWN : rest_of(q, rows, -offset);
  const kiln_dim b = rest_of(q, columns, offset);
  if (!kiln_dim_is_known(a) || !kiln_dim_is_known(b)) return KILN_DIM_UNKNOWN;
  if (kiln_dim_is_number(a) && kiln_dim_is_number(b)) return a < b ? a : b;
  const kiln_sum sum_a = kiln_sum_of(q->dims, a), sum_b = kiln_sum_of(q->dims, b);
  if (kiln_dims_prove(q->dims, sum_a, sum_b)) return a;
  return kiln_dims_prove(q->dims, sum_b, sum_a) ? b : KILN_DIM_UNKNOWN;
}

/* diagonal(self, offset, dim1, dim2): the last dimension goes along both. */
bool kiln__shape_diagonal(kiln_shape_query *q) {
  geometry g;
  int64_t offset;
  int a, b;
  if (!self_geometry(q, &g) || g.rank < 2 || !kiln__shape_int(q, 1, &offset) ||
      !kiln__shape_dim(q, 2, g.rank, &a) || !kiln__shape_dim(q, 3, g.rank, &b) || a == b) {
    return false;
  }
  const kiln_dim length = diagonal_length(q, g.sizes[a], g.sizes[b], offset);
  const kiln_dim stride =
      g.has_strides ? kiln_dim_plus(q->dims, g.strides[a], g.strides[b]) : KILN_DIM_UNKNOWN;
  remove_dim(&g, a > b ? a : b);
  remove_dim(&g, a > b ? b : a);
  insert_dim(&g, g.rank, length, stride);
  return give(q, &g);
}

/* A new row-major tensor with argument 0's dtype. */
static bool give_made(kiln_shape_query *q, const geometry *g) {
  for (int i = 0; i < g->rank; i++)
    if (!kiln_dim_is_known(g->sizes[i])) return false;
  return kiln__shape_give(q, 0, kiln__shape_tensor(q, 0)->dtype, g->rank, g->sizes, true);
}
/* The last dimension as the diagonal of a and b. */
static bool give_embedded(kiln_shape_query *q, geometry *g, int a, int b, int64_t offset) {
  if (g->rank < 1 || g->rank == KILN_MAX_RANK || a == b || offset < -INT64_MAX) return false;
  const kiln_sum more = kiln_sum_number(offset < 0 ? -offset : offset);
  const kiln_sum last = kiln_sum_of(q->dims, g->sizes[g->rank - 1]);
  const kiln_dim side = kiln_sum_dim(q->dims, kiln_sum_plus(last, more));
  remove_dim(g, g->rank - 1);
  insert_dim(g, a < b ? a : b, side, KILN_DIM_UNKNOWN);
  insert_dim(g, a < b ? b : a, side, KILN_DIM_UNKNOWN);
  return give_made(q, g);
}
/* diag_embed(self, offset, dim1, dim2) */
bool kiln__shape_diag_embed(kiln_shape_query *q) {
  geometry g;
  int64_t offset;
  int a, b;
  return self_geometry(q, &g) && kiln__shape_int(q, 1, &offset) &&
         kiln__shape_dim(q, 2, g.rank + 1, &a) && kiln__shape_dim(q, 3, g.rank + 1, &b) &&
         give_embedded(q, &g, a, b, offset);
}
/* diag(self, diagonal): of a vector a matrix, of a matrix its diagonal. */
bool kiln__shape_diag(kiln_shape_query *q) {
  geometry g;
  int64_t offset;
  if (!self_geometry(q, &g) || g.rank > 2 || !kiln__shape_int(q, 1, &offset)) return false;
  if (g.rank < 2) return give_embedded(q, &g, 0, 1, offset);
  g.sizes[0] = diagonal_length(q, g.sizes[0], g.sizes[1], offset);
  g.rank = 1;
  return give_made(q, &g);
}
/* diagflat(self, offset), of a vector. */
bool kiln__shape_diagflat(kiln_shape_query *q) {
  geometry g;
  int64_t offset;
  return self_geometry(q, &g) && g.rank == 1 && kiln__shape_int(q, 1, &offset) &&
         give_embedded(q, &g, 0, 1, offset);
}
/* trace(self): a number, whose loop goes as far as the less of the sizes. */
bool kiln__shape_trace(kiln_shape_query *q) {
  geometry g;
  if (self_geometry(q, &g) && g.rank == 2) (void)diagonal_length(q, g.sizes[0], g.sizes[1], 0);
  return kiln__shape_reduce_all(q);
}

/* unfold(self, dim, size, step): windows, of which the last dimension has the elements. */
bool kiln__shape_unfold(kiln_shape_query *q) {
  geometry g;
  int64_t size, step;
  int dim;
  if (!self_geometry(q, &g) || g.rank < 1 || g.rank == KILN_MAX_RANK ||
      !kiln__shape_dim(q, 1, g.rank, &dim) || !kiln__shape_int(q, 2, &size) ||
      !kiln__shape_int(q, 3, &step) || size < 0 || step < 1) {
    return false;
  }
  const kiln_sum all = kiln_sum_of(q->dims, g.sizes[dim]);
  if (!kiln_dims_prove(q->dims, kiln_sum_number(size), all)) return false;
  const kiln_sum rest = kiln_sum_minus(all, kiln_sum_number(size));
  const kiln_sum windows = kiln_sum_plus(kiln_sum_divided(q->dims, rest, step), kiln_sum_number(1));
  kiln_dims_like(q->dims, kiln_sum_number(2), windows); /* else nobody knows the order of strides */
  const kiln_dim stride = g.has_strides ? g.strides[dim] : KILN_DIM_UNKNOWN;
  insert_dim(&g, g.rank, size, stride);
  g.sizes[dim] = kiln_sum_dim(q->dims, windows);
  if (g.has_strides) g.strides[dim] = kiln_dim_product(q->dims, stride, step);
  return give(q, &g);
}

/* -- Parts -- */

bool kiln__shape_select_int(kiln_shape_query *q) {
  geometry g;
  int dim;
  if (!self_geometry(q, &g) || !kiln__shape_sized_dim(q, 1, g.rank, &dim)) return false;
  remove_dim(&g, dim);
  return give(q, &g);
}

/* A bound of a slice, clamped; None gives `fallback`. */
static bool slice_bound(const kiln_shape_query *q, int arg, int64_t size, int64_t fallback,
                        int64_t *out) {
  *out = fallback;
  if (!kiln__shape_is_none(q, arg) && !kiln__shape_int(q, arg, out)) return false;
  if (*out < 0) *out += size;
  if (*out < 0) *out = 0;
  if (*out > size) *out = size;
  return true;
}

/* A bound of a slice of what is no number: false where the clamping depends on the symbols. */
static bool symbolic_bound(const kiln_shape_query *q, int arg, kiln_sum size, kiln_sum fallback,
                           kiln_sum *out) {
  int64_t bound;
  *out = fallback;
  if (kiln__shape_is_none(q, arg)) return true;
  if (!kiln__shape_sum(q, arg, out)) return false;
  if (kiln__shape_int(q, arg, &bound) && bound < 0) *out = kiln_sum_plus(size, *out);
  if (kiln__shape_int(q, arg, &bound) && bound == INT64_MAX) *out = size;
  return kiln_dims_prove(q->dims, kiln_sum_number(0), *out) && kiln_dims_prove(q->dims, *out, size);
}

static kiln_dim slice_length(const kiln_shape_query *q, kiln_dim dim, int64_t step) {
  const kiln_sum size = kiln_sum_of(q->dims, dim);
  kiln_sum start, end;
  if (!symbolic_bound(q, 2, size, kiln_sum_number(0), &start) ||
      !symbolic_bound(q, 3, size, size, &end)) {
    return KILN_DIM_UNKNOWN;
  }
  const kiln_sum length = kiln_sum_minus(end, start);
  if (!kiln_dims_prove(q->dims, start, end)) return KILN_DIM_UNKNOWN;
  const kiln_sum up = kiln_sum_plus(length, kiln_sum_number(step - 1));
  return kiln_sum_dim(q->dims, kiln_sum_divided(q->dims, up, step));
}

bool kiln__shape_slice(kiln_shape_query *q) {
  geometry g;
  int dim;
  int64_t step = 1, start, end;
  if (!self_geometry(q, &g) || !kiln__shape_sized_dim(q, 1, g.rank, &dim)) return false;
  bool step_known = kiln__shape_int(q, 4, &step);
  if (step_known && step < 1) return false;
  int64_t size = g.sizes[dim];
  bool bounds = step_known && kiln_dim_is_number(size) && slice_bound(q, 2, size, 0, &start) &&
                slice_bound(q, 3, size, size, &end);
  g.sizes[dim] = KILN_DIM_UNKNOWN;
  if (bounds) {
    int64_t length = end > start ? end - start : 0;
    g.sizes[dim] = length / step + (length % step != 0);
  } else if (step_known && kiln_dim_is_known(size)) {
    g.sizes[dim] = slice_length(q, size, step);
  }
  const kiln_dim stride = step_known && g.has_strides ? g.strides[dim] : KILN_DIM_UNKNOWN;
  g.strides[dim] = kiln_dim_product(q->dims, stride, step);
  return give(q, &g);
}

/* narrow(self, dim, start, length): `length`, where there are as many for certain: else it raises.
 */
bool kiln__shape_narrow(kiln_shape_query *q) {
  geometry g;
  int dim;
  kiln_sum start, length;
  if (!self_geometry(q, &g) || !kiln__shape_sized_dim(q, 1, g.rank, &dim)) return false;
  const kiln_sum size = kiln_sum_of(q->dims, g.sizes[dim]);
  bool known = kiln__shape_sum(q, 3, &length) && kiln_sum_is_natural(q->dims, length);
  /* Where it begins by data, dce leaves it. */
  if (known && kiln__shape_sum(q, 2, &start)) {
    if (start.count == 0 && start.constant < 0) start = kiln_sum_plus(size, start);
    known = start.known && size.known &&
            kiln_dims_prove(q->dims, kiln_sum_plus(start, length), size) &&
            kiln_dims_prove(q->dims, kiln_sum_number(0), start);
  }
  g.sizes[dim] = known ? kiln_sum_dim(q->dims, length) : KILN_DIM_UNKNOWN;
  return give(q, &g);
}

/* -- The same elements -- */

bool kiln__shape_alias(kiln_shape_query *q) {
  geometry g;
  return self_geometry(q, &g) && give(q, &g);
}

/* dropout(self, p, train): self where it does nothing. */
bool kiln__shape_dropout(kiln_shape_query *q) {
  bool train;
  return kiln__shape_bool(q, 2, &train) && !train && kiln__shape_alias(q);
}

static bool is_contiguous(const geometry *g) {
  const kiln_strided t = strided(g);
  return kiln_strides_are_contiguous(&t);
}

/* contiguous(self, memory_format): itself, or a row-major copy. */
bool kiln__shape_contiguous(kiln_shape_query *q) {
  geometry g;
  int64_t format;
  if (!self_geometry(q, &g)) return false;
  const bool rows = kiln__shape_int(q, 1, &format) && format == 0;
  if (!rows) {
    g.has_strides = false;
    return give(q, &g);
  }
  if (is_static(&g) ? is_contiguous(&g) : is_row_major(q, &g)) return give(q, &g);
  if (is_static(&g) || is_not_contiguous(q, &g)) return give_row_major(q, &g);
  g.has_strides = false;
  return give(q, &g);
}

/* clone(self, memory_format): of other formats than the preserved one only the sizes are told. */
bool kiln__shape_clone(kiln_shape_query *q) {
  geometry g;
  if (!self_geometry(q, &g)) return false;
  g.has_strides = false;
  if (!give(q, &g)) return false;
  if (kiln__shape_is_none(q, 1)) kiln__shape_set_like(q, &q->outs[0], kiln__shape_tensor(q, 0));
  return true;
}

/* ravel(self): a new dimension of all elements, which are neighbours. */
bool kiln__shape_ravel(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  kiln_dim all = 1;
  for (int d = 0; self && d < self->rank; d++) all = kiln_dim_product(q->dims, all, self->sizes[d]);
  /* A vector is itself, whatever the stride of one element or none. */
  const bool plain = all != 0 && kiln__shape_is_not_one(q->dims, all);
  return self && kiln__shape_give(q, 0, self->dtype, 1, &all, plain);
}
/* atleast_1d, _2d, _3d: what has so many dimensions is itself. */
static bool at_least(kiln_shape_query *q, int rank) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  return self && self->rank >= rank && kiln__shape_alias(q);
}
bool kiln__shape_atleast_1d(kiln_shape_query *q) { return at_least(q, 1); }
bool kiln__shape_atleast_2d(kiln_shape_query *q) { return at_least(q, 2); }
bool kiln__shape_atleast_3d(kiln_shape_query *q) { return at_least(q, 3); }
