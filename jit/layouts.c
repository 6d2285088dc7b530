/* layouts.c: pass `assign_layouts`: which values between groups have their channels last in memory.
 *
 * A kernel of a convolution is a matrix product of pixels and outputs where channels are
 * neighbours, whatever the image's size: its vectors are outputs, its rows pixels, and steps
 * between windows cost nothing. Behind a guard all that is between groups is nobody else's, so such
 * a value may lie in memory as its groups like it. Values that a group reads and writes lie alike:
 * they are found together (union-find), and get channels last where what convolutions gain is more
 * than what it costs to turn those round which others see.
 *
 * What lies in another order than its dimensions, as the images of permute(0, 2, 3, 1) do, and what
 * is computed beside them, lies row by row where groups alone read it and go along its rows:
 * layer_norm over channels of which PyTorch has each in another page.
 *
 * Some values with channels last have zeros around them in memory (borders.c). Strides of types
 * stay PyTorch's. What leaves goes through aten::contiguous, which is also how a value comes in,
 * but for the image of a convolution, of which its kernel reads a copy anyway, if it is not one of
 * Winograd's. The verifier refuses a layout anywhere else. */
#include <string.h>

#include "codegen/codegen.h"
#include "guards/guards.h"
#include "jit/convolution.h"
#include "jit/fusion.h"
#include "jit/heavy.h"
#include "jit/layouts.h"

/* Nanoseconds that channels last save of a multiplication, of windows, of those that Winograd's
 * kernels take then, of single pixels and of windows over one channel (in registers of 16 floats,
 * which shuffle channels by masked stores, the last one), of transposed ones, which store element
 * by element else, and of all where pixels are a symbol, whose rows have no tile of vectors; and
 * that an element costs which is turned round. */
static const double WINDOW_GAIN = 0.002, WINOGRAD_GAIN = 0.004, PIXEL_GAIN = 0.0005,
                    CHANNEL_GAIN = 0.01, WIDE_GAIN = 0.03, TRANSPOSED_GAIN = 0.01;
static const double SYMBOL_GAIN = 0.005, TURN_COST = 0.3;
/* Nanoseconds of a picture of another size: the interpreter gathers elements along rows, of which
 * it adds up those above each other; a kernel goes over pixels, and in each over the channels. */
static const double GATHER_COST = 1, ROWS_COST = 0.05, PIXEL_COST = 10, CHANNEL_COST = 0.08;

typedef struct laid {
  kiln_ir_value *value;
  int parent;  /* of the values that lie alike; itself: the first of them */
  double gain; /* of them all, at the first */
} laid;

typedef struct planner {
  kiln_pass *pass;
  const kiln_block *block;
  kiln_map numbers; /* value -> its place in `all` and 1 */
  kiln_map turned;  /* value of outside -> the same with channels last */
  kiln_map images;  /* value -> may_turn, as a number */
  KILN_VEC(laid) all;
} planner;

bool kiln__is_row_major(kiln_dims *dims, const kiln_tensor_detail *t) {
  kiln_dim expected = 1;
  for (int d = t->rank - 1; d >= 0; d--) {
    if (t->strides[d] != expected) return false;
    expected = kiln_dim_product(dims, expected, t->sizes[d]);
  }
  return !t->physical;
}

/* PyTorch has it channels last: as it may lie between groups, so that nothing turns it round. */
bool kiln__is_channels_last(kiln_dims *dims, const kiln_tensor_detail *t) {
  kiln_dim strides[KILN_MAX_RANK];
  if (!kiln_has_channels_last(t->rank) || !t->has_strides) return false;
  kiln_physical_dims(dims, KILN_PHYSICAL_CHANNELS_LAST, t->rank, t->sizes, strides);
  return memcmp(strides, t->strides, sizeof *strides * (size_t)t->rank) == 0;
}

static kiln_dim elements_of(const kiln_ir_value *v) {
  kiln_dims *dims = kiln_type_table_dims(v->node->graph->types);
  kiln_dim count = 1;
  for (int d = 0; d < v->type->detail->rank; d++)
    count = kiln_dim_product(dims, count, v->type->detail->sizes[d]);
  return count;
}

bool kiln__has_all_of(const kiln_ir_value *view, const kiln_ir_value *v) {
  return kiln_type_has_dims(view->type) && kiln_type_has_dims(v->type) &&
         kiln_dim_is_known(elements_of(v)) && elements_of(view) == elements_of(v);
}

static bool lies_alike(const kiln_ir_value *v, const kiln_tensor_detail *t) {
  if (!kiln_type_is_tensor(v->type) || !kiln_type_has_dims(v->type)) return false;
  const kiln_tensor_detail *d = v->type->detail;
  const size_t bytes = sizeof *t->sizes * (size_t)t->rank;
  return d->has_strides && d->rank == t->rank && memcmp(d->sizes, t->sizes, bytes) == 0 &&
         memcmp(d->strides, t->strides, bytes) == 0;
}

/* What a node goes along the rows of: reduces them, or multiplies them; NULL: it does not. */
static const kiln_ir_value *rows_of(const kiln_node *n) {
  uint64_t mask;
  if (!n->op || n->input_count == 0 || kiln_codegen_convolves(n->op)) return NULL;
  const kiln_ir_value *v = kiln_node_input(n, 0);
  if (!kiln_type_is_tensor(v->type) || !kiln_type_has_dims(v->type) || v->type->detail->rank == 0)
    return NULL;
  const bool last = kiln_codegen_reduces(n, &mask) && mask == UINT64_C(1)
                                                                  << (v->type->detail->rank - 1);
  return last || kiln_codegen_contracts(n->op) ? v : NULL;
}

static bool is_convolved(const kiln_ir_value *v) {
  for (const kiln_use *use = v->uses; use; use = use->next)
    if (use->index == 0 && use->user->op && kiln_codegen_convolves(use->user->op)) return true;
  return false;
}

/* A view of which the rows are the channels of pixels: permute(x, [0, 3, 1, 2]). That of a signal,
 * transpose(1, 2), makes as well rows of channels: it is one where a convolution reads it. */
static bool makes_channels(const kiln_node *n, const kiln_tensor_detail *rows) {
  if (!n->op || n->op->cost != KILN_COST_view || n->output_count != 1 ||
      !lies_alike(kiln_node_input(n, 0), rows) || !kiln_type_has_dims(n->outputs[0]->type))
    return false;
  const kiln_tensor_detail *d = n->outputs[0]->type->detail;
  return kiln_may_lie_channels_last(d->rank) && d->has_strides && d->strides[1] == 1 &&
         d->sizes[1] == rows->sizes[rows->rank - 1] && (d->rank > 3 || is_convolved(n->outputs[0]));
}

static bool keeps_sizes(const kiln_node *n, const kiln_ir_value *from) {
  return kiln_tensor_detail_same_sizes(from->type->detail, n->outputs[0]->type->detail);
}

/* Whether what lies so in a group are rows: linear(x, w) of pixels whose channels are last
 * already, (1, 56, 56, 24), has them, layer_norm reads them, and a convolution behind a view; the
 * mean of a signal's elements does not. */
static bool has_rows(const kiln_graph *body, const kiln_tensor_detail *t) {
  for (const kiln_node *n = body->top->first; n; n = n->next) {
    const kiln_ir_value *rows = rows_of(n);
    if (makes_channels(n, t)) return true;
    if (!rows || (!kiln_codegen_contracts(n->op) && !keeps_sizes(n, rows))) continue;
    if (lies_alike(rows, t) || lies_alike(n->outputs[0], t)) return true;
  }
  return false;
}

/* Whether the groups that give and read the value have it as rows. */
static bool is_rows(const kiln_ir_value *v) {
  if (kiln_node_is_group(v->node) &&
      has_rows(kiln_node_graph(v->node, "Subgraph"), v->type->detail))
    return true;
  for (const kiln_use *use = v->uses; use; use = use->next)
    if (kiln_node_is_group(use->user) &&
        has_rows(kiln_node_graph(use->user, "Subgraph"), v->type->detail))
      return true;
  return false;
}

/* Channels and pixels, row-major or with channels last. */
static bool can_turn(const kiln_ir_value *v) {
  if (!kiln_type_is_tensor(v->type) || !kiln_type_has_dims(v->type)) return false;
  const kiln_tensor_detail *d = v->type->detail;
  if (!kiln_may_lie_channels_last(d->rank) || d->physical || !kiln_dim_is_number(d->sizes[1]))
    return false;
  bool is_pixel = true; /* then both layouts are one */
  for (int i = 2; i < d->rank; i++) is_pixel &= d->sizes[i] == 1;
  kiln_dims *dims = kiln_type_table_dims(v->node->graph->types);
  return d->sizes[1] > 1 && !is_pixel &&
         (kiln__is_row_major(dims, d) || kiln__is_channels_last(dims, d));
}

/* The same, if it is not what a group has as rows; found once for all that read it. */
static bool may_turn(planner *p, const kiln_ir_value *v) {
  enum { NO = 1, YES };
  intptr_t known = (intptr_t)kiln_map_find_ptr(&p->images, v);
  if (!known) {
    known = can_turn(v) && !is_rows(v) ? YES : NO;
    kiln_map_set_ptr(&p->images, v, (void *)known);
  }
  return known == YES;
}

enum { SYMBOL = 32 /* what one stands for */ };

static double numel_of(const kiln_ir_value *v) {
  double count = 1;
  for (int i = 0; i < v->type->detail->rank; i++) {
    count *= (double)kiln_dim_or(v->type->detail->sizes[i], SYMBOL);
  }
  return count;
}

/* Nanoseconds of turning it round. */
static double turn_cost(const kiln_ir_value *v) {
  kiln_dims *dims = kiln_type_table_dims(v->node->graph->types);
  return kiln__is_channels_last(dims, v->type->detail) ? 0 : TURN_COST * numel_of(v);
}

/* -- What lies alike -- */

static int number_of(const planner *p, const kiln_ir_value *v) {
  return (int)(intptr_t)kiln_map_find_ptr(&p->numbers, v) - 1;
}

static int first_of(planner *p, int i) {
  while (p->all.data[i].parent != i) {
    p->all.data[i].parent = p->all.data[p->all.data[i].parent].parent;
    i = p->all.data[i].parent;
  }
  return i;
}

static int join(planner *p, int a, int b) {
  if (a < 0) return first_of(p, b);
  const int to = first_of(p, a), from = first_of(p, b);
  if (to == from) return to;
  p->all.data[from].parent = to;
  p->all.data[to].gain += p->all.data[from].gain;
  return to;
}

/* Whether PyTorch has its channels last, which a kernel of rows of pixels turns round. */
static bool lies_last(const kiln_ir_value *v) {
  const kiln_tensor_detail *d = kiln_type_has_dims(v->type) ? v->type->detail : NULL;
  return d && kiln_may_lie_channels_last(d->rank) && d->has_strides && d->sizes[1] > 1 &&
         d->strides[1] == 1;
}

static double gain_of_convolution(const planner *p, const kiln_node *n, bool by_winograd) {
  const kiln_ir_value *w = kiln_node_input(n, 1);
  if (!kiln_type_has_dims(n->outputs[0]->type) || !kiln_type_has_dims(w->type) ||
      !kiln__convolution_has_batch(n))
    return 0;
  const kiln_tensor_detail *d = w->type->detail;
  double taps = 1;
  for (int i = 2; i < d->rank; i++) taps *= (double)d->sizes[i];
  const bool wide = p->pass->env->isa >= KILN_ISA_AVX512;
  const bool transposed = kiln__convolution_is_transposed(n);
  double gain = transposed         ? TRANSPOSED_GAIN
                : d->sizes[1] == 1 ? (wide ? WIDE_GAIN : CHANNEL_GAIN)
                : by_winograd      ? WINOGRAD_GAIN
                : taps > 1         ? WINDOW_GAIN
                                   : PIXEL_GAIN;
  if (!kiln_type_is_complete_tensor(n->outputs[0]->type)) gain += SYMBOL_GAIN;
  const kiln_ir_value *x = kiln_node_input(n, 0);
  return numel_of(transposed ? x : n->outputs[0]) * taps * (double)d->sizes[1] * gain +
         (lies_last(x) ? TURN_COST * numel_of(x) : 0);
}

/* A picture of another size. */
static bool is_resized(const kiln_node *n) {
  return n->op && n->op->flags & KILN_OP_WINDOWS && n->op->cost == KILN_COST_data &&
         kiln_type_has_dims(n->outputs[0]->type) && kiln_type_has_dims(kiln_node_input(n, 0)->type);
}

static double gain_of_resized(const kiln_node *n) {
  const kiln_tensor_detail *from = kiln_node_input(n, 0)->type->detail;
  const kiln_tensor_detail *to = n->outputs[0]->type->detail;
  if (!kiln_may_lie_channels_last(to->rank) || from->rank != to->rank) return 0;
  const double all = numel_of(n->outputs[0]), channels = (double)kiln_dim_or(to->sizes[1], SYMBOL);
  double gathered = all;
  for (int d = 2; d < to->rank - 1; d++)
    gathered *=
        (double)kiln_dim_or(from->sizes[d], SYMBOL) / (double)kiln_dim_or(to->sizes[d], SYMBOL);
  const double by_rows = gathered * GATHER_COST + all * ROWS_COST;
  return by_rows - all * (PIXEL_COST / channels + CHANNEL_COST);
}

static double gain_of(const planner *p, const kiln_graph *body) {
  const bool by_winograd = kiln__heavy_wants_channels_last(p->pass->env, body);
  double gain = 0;
  for (const kiln_node *n = body->top->first; n; n = n->next) {
    if (kiln_codegen_convolves(n->op)) gain += gain_of_convolution(p, n, by_winograd);
    if (is_resized(n)) gain += gain_of_resized(n);
  }
  return gain;
}

/* Whether the group reads its input as images of convolutions alone. */
static bool is_image(const planner *p, const kiln_graph *body, int input) {
  const kiln_ir_value *v = kiln_graph_input(body, input);
  for (const kiln_use *use = v->uses; use; use = use->next)
    if (!kiln__convolution_of_image(use, p->pass->scratch)) return false;
  return true;
}

/* Whether the group would want the value, which is not one of `all`, turned round. */
static bool wants_turned(planner *p, const kiln_node *group, int input) {
  const kiln_ir_value *v = kiln_node_input(group, input);
  const kiln_graph *body = kiln_node_graph(group, "Subgraph");
  return number_of(p, v) < 0 && !kiln_ir_value_is_weight(v) && may_turn(p, v) &&
         (!is_image(p, body, input) || turn_cost(v) == 0 ||
          kiln__heavy_wants_channels_last(p->pass->env, body));
}

/* Groups, and what asks no layout of it. */
static bool may_see(const planner *p, const kiln_use *use) {
  const kiln_op *op = use->user->op;
  return use->user->block == p->block &&
         (kiln_node_is_group(use->user) ||
          (op && (op->flags & KILN_OP_ANY_LAYOUT) && use->index == 0));
}
static bool is_seen_by_others(const planner *p, const kiln_ir_value *v) {
  for (const kiln_use *use = v->uses; use; use = use->next)
    if (!may_see(p, use)) return true;
  return false;
}

/* Rows of pixels, (1, 2100, 85) of images (1, 85, 40, 40) and smaller ones: what is a signal by its
 * dimensions has the images' channels behind its own. */
static bool has_pixel_rows(const kiln_ir_value *v, const kiln_node *group) {
  const kiln_tensor_detail *d = v->type->detail;
  bool images = false;
  for (int i = 0; d->rank == 3 && i < group->input_count; i++) {
    const kiln_type *type = kiln_node_input(group, i)->type;
    if (!kiln_type_is_tensor(type) || !kiln_type_has_dims(type) || type->detail->rank < 4) continue;
    if (type->detail->sizes[1] == d->sizes[1]) return false;
    images |= type->detail->sizes[1] == d->sizes[2];
  }
  return images;
}

static void find_values(planner *p) {
  for (kiln_node *n = p->block->first; n; n = n->next) {
    for (int i = 0; kiln_node_is_group(n) && i < n->output_count; i++) {
      kiln_ir_value *v = n->outputs[i];
      if (!may_turn(p, v) || has_pixel_rows(v, n)) continue;
      const laid found = {v, p->all.count, is_seen_by_others(p, v) ? -turn_cost(v) : 0};
      kiln_vec_push(p->pass->scratch, &p->all, found);
      kiln_map_set_ptr(&p->numbers, v, (void *)(intptr_t)p->all.count);
    }
  }
}

static void find_gains(planner *p) {
  kiln_map counted = kiln_map_in(p->pass->scratch);
  for (const kiln_node *n = p->block->first; n; n = n->next) {
    if (!kiln_node_is_group(n)) continue;
    int first = -1;
    for (int i = 0; i < n->output_count; i++) {
      const int number = number_of(p, n->outputs[i]);
      if (number >= 0) first = join(p, first, number);
    }
    for (int i = 0; i < n->input_count; i++) {
      const int number = number_of(p, kiln_node_input(n, i));
      if (number >= 0) first = join(p, first, number);
    }
    if (first < 0) continue;
    p->all.data[first].gain += gain_of(p, kiln_node_graph(n, "Subgraph"));
    for (int i = 0; i < n->input_count; i++) {
      const kiln_ir_value *v = kiln_node_input(n, i);
      if (!wants_turned(p, n, i) || kiln_map_find_ptr(&counted, v)) continue;
      kiln_map_set_ptr(&counted, v, p); /* it is turned once for all */
      p->all.data[first].gain -= turn_cost(v);
    }
  }
}

/* -- Layouts -- */

static bool is_turned(planner *p, const kiln_ir_value *v) {
  const int number = number_of(p, v);
  return number >= 0 && p->all.data[first_of(p, number)].gain > 0;
}

static const kiln_type *laid_type(const planner *p, const kiln_type *type) {
  kiln_tensor_detail d = *type->detail;
  d.physical = KILN_PHYSICAL_CHANNELS_LAST;
  return kiln_type_tensor(p->pass->graph->types, &d);
}

/* PyTorch's name of the layout; of signals ours. */
static kiln_format format_last(const kiln_type *type) {
  return type->detail->rank == 5   ? KILN_FORMAT_CHANNELS_LAST_3D
         : type->detail->rank == 4 ? KILN_FORMAT_CHANNELS_LAST
                                   : KILN_FORMAT_CHANNELS_LAST_1D;
}

/* The one that PyTorch gives it. */
static kiln_format format_seen(kiln_type_table *types, const kiln_type *type) {
  return kiln__is_channels_last(kiln_type_table_dims(types), type->detail) ? format_last(type)
                                                                           : KILN_FORMAT_CONTIGUOUS;
}

static kiln_format format_of(const kiln_ir_value *v) {
  return v->type->detail->physical == KILN_PHYSICAL_ROWS ? KILN_FORMAT_CONTIGUOUS
                                                         : format_last(v->type);
}

/* contiguous(v, format) beside a group. */
static kiln_ir_value *turn(kiln_ir_value *v, kiln_format format, const kiln_type *type,
                           kiln_node *group, bool behind) {
  kiln_node *n = kiln_node_create_id(group->graph, KILN_OP_contiguous);
  n->range = group->range;
  (behind ? kiln_node_insert_after : kiln_node_insert_before)(n, group);
  kiln_node_add_input(n, v);
  kiln_node_add_input(n, kiln_insert_int_before(n, format));
  return kiln_node_add_output(n, type);
}

static void lay_input(const planner *p, const kiln_node *group, int i) {
  kiln_ir_value *own = kiln_graph_input(kiln_node_graph(group, "Subgraph"), i);
  own->type = laid_type(p, own->type);
}

/* -- Rows -- */

/* Whether some node goes along rows as long as the value's. */
static bool goes_along_rows(const kiln_graph *body, const kiln_tensor_detail *t) {
  for (const kiln_node *n = body->top->first; n; n = n->next) {
    const kiln_ir_value *rows = rows_of(n);
    const kiln_tensor_detail *d = rows ? rows->type->detail : NULL;
    if (d && d->sizes[d->rank - 1] == t->sizes[t->rank - 1]) return true;
  }
  return false;
}

/* Whether its last dimension is not its innermost, and groups alone read it. */
static bool may_lie_by_rows(const planner *p, const kiln_ir_value *v) {
  const kiln_tensor_detail *d = v->type->detail;
  if (!kiln_type_is_tensor(v->type) || !kiln_type_has_dims(v->type) || d->rank < 2 || d->physical ||
      !d->has_strides || d->sizes[d->rank - 1] == 1 || d->strides[d->rank - 1] == 1 ||
      !kiln_dim_is_known(d->strides[d->rank - 1]))
    return false;
  for (const kiln_use *use = v->uses; use; use = use->next)
    if (use->user->block != p->block || !kiln_node_is_group(use->user)) return false;
  return true;
}

static bool gains_by_rows(const planner *p, const kiln_ir_value *v) {
  bool any = goes_along_rows(kiln_node_graph(v->node, "Subgraph"), v->type->detail);
  for (const kiln_use *use = v->uses; use; use = use->next) {
    const kiln_graph *body = kiln_node_graph(use->user, "Subgraph");
    if (is_image(p, body, use->index)) return false; /* its channels may be neighbours now */
    any |= goes_along_rows(body, v->type->detail);
  }
  return any;
}

static void lay_by_rows(const planner *p, kiln_ir_value *v) {
  kiln_tensor_detail d = *v->type->detail;
  d.physical = KILN_PHYSICAL_ROWS;
  const kiln_type *type = kiln_type_tensor(p->pass->graph->types, &d);
  kiln_graph_output(kiln_node_graph(v->node, "Subgraph"), v->index)->type = type;
  for (const kiln_use *use = v->uses; use; use = use->next)
    kiln_graph_input(kiln_node_graph(use->user, "Subgraph"), use->index)->type = type;
  v->type = type;
}

static void find_rows(planner *p) {
  for (kiln_node *n = p->block->first; n; n = n->next) {
    for (int i = 0; kiln_node_is_group(n) && i < n->output_count; i++) {
      if (!may_lie_by_rows(p, n->outputs[i]) || !gains_by_rows(p, n->outputs[i])) continue;
      lay_by_rows(p, n->outputs[i]);
      p->pass->changed = true;
    }
  }
}

/* -- Without layouts -- */

static bool has_layout(const kiln_ir_value *v) {
  return v->type->detail && v->type->detail->physical;
}

static bool has_layouts(const kiln_graph *body) {
  for (int i = 0; i < kiln_graph_input_count(body); i++)
    if (has_layout(kiln_graph_input(body, i))) return true;
  for (int i = 0; i < kiln_graph_output_count(body); i++)
    if (has_layout(kiln_graph_output(body, i))) return true;
  return false;
}

static const kiln_type *plain_type(const kiln_graph *graph, const kiln_type *type) {
  kiln_tensor_detail d = *type->detail;
  d.physical = KILN_PHYSICAL_STRIDED;
  return kiln_type_tensor(graph->types, &d);
}

/* The value in another format, behind all that the graph has. */
static kiln_ir_value *append_turned(kiln_graph *graph, kiln_ir_value *v, kiln_format format,
                                    const kiln_type *type) {
  kiln_ir_value *how =
      kiln_append_constant(graph->top, kiln_int(format), kiln_type_basic(KILN_TYPE_INT));
  kiln_node *n = kiln_node_create_id(graph, KILN_OP_contiguous);
  kiln_node_add_input(n, v);
  kiln_node_add_input(n, how);
  kiln_node_append(graph->top, n);
  return kiln_node_add_output(n, type);
}

/* Rows are strides that operators may as well see. */
static const kiln_type *rows_type(const kiln_graph *graph, const kiln_type *type) {
  kiln_tensor_detail d = *type->detail;
  kiln_dim strides[KILN_MAX_RANK];
  kiln_physical_dims(kiln_type_table_dims(graph->types), KILN_PHYSICAL_ROWS, d.rank, d.sizes,
                     strides);
  d.physical = KILN_PHYSICAL_STRIDED;
  d.strides = strides;
  return kiln_type_tensor(graph->types, &d);
}

static bool is_by_rows(const kiln_ir_value *v) {
  return v->type->detail && v->type->detail->physical == KILN_PHYSICAL_ROWS;
}

static void copy_input(kiln_graph *to, kiln_map *copies, kiln_ir_value *v) {
  const kiln_type *type = is_by_rows(v) ? rows_type(to, v->type) : v->type;
  kiln_ir_value *own = kiln_graph_add_input(to, NULL, type);
  own->weight = kiln_ir_value_is_weight(v);
  if (has_layout(v) && !is_by_rows(v))
    own = append_turned(to, own, format_seen(to->types, v->type), plain_type(to, v->type));
  kiln_map_set_ptr(copies, v, own);
}

kiln_graph *kiln__layouts_undone(kiln_graph *body, kiln_arena *scratch) {
  const int inputs = kiln_graph_input_count(body), outputs = kiln_graph_output_count(body);
  if (!has_layouts(body)) return body;
  kiln_graph *to = kiln_graph_create_sub(body->root);
  kiln_map copies = kiln_map_in(scratch);
  for (int i = 0; i < inputs; i++) copy_input(to, &copies, kiln_graph_input(body, i));
  for (const kiln_node *n = body->top->first; n; n = n->next) {
    kiln_node *copy = kiln_node_copy(to, n, &copies);
    kiln_node_append(to->top, copy);
    for (int i = 0; i < n->output_count; i++) {
      if (has_layout(n->outputs[i])) copy->outputs[i]->type = plain_type(to, n->outputs[i]->type);
      kiln_map_set_ptr(&copies, n->outputs[i], copy->outputs[i]);
    }
  }
  for (int i = 0; i < outputs; i++) {
    const kiln_ir_value *v = kiln_graph_output(body, i);
    kiln_ir_value *own = kiln_map_find_ptr(&copies, v);
    kiln_graph_add_output(to, has_layout(v) ? append_turned(to, own, format_of(v), v->type) : own);
  }
  return to;
}

/* -- The pass -- */

/* The value lies so from here on; who may not see that reads what it was. */
static void lay_value(planner *p, kiln_ir_value *v) {
  kiln_node *group = v->node;
  kiln_ir_value *own = kiln_graph_output(kiln_node_graph(group, "Subgraph"), v->index);
  kiln_ir_value *seen = NULL;
  const kiln_type *type = v->type;
  v->type = laid_type(p, type);
  own->type = laid_type(p, own->type);
  for (kiln_use *use = v->uses, *next; use; use = next) {
    next = use->next;
    if (may_see(p, use)) {
      if (kiln_node_is_group(use->user)) lay_input(p, use->user, use->index);
      continue;
    }
    if (!seen) seen = turn(v, format_seen(p->pass->graph->types, type), type, group, true);
    if (use->user != seen->node) kiln_node_set_input(use->user, use->index, seen);
  }
}

static void turn_input(planner *p, kiln_node *group, int i) {
  kiln_ir_value *v = kiln_node_input(group, i), *last = kiln_map_find_ptr(&p->turned, v);
  if (!last) {
    last = turn(v, format_last(v->type), laid_type(p, v->type), group, false);
    kiln_map_set_ptr(&p->turned, v, last);
  }
  kiln_node_set_input(group, i, last);
  lay_input(p, group, i);
}

static void lay_block(kiln_pass *pass, kiln_block *block) {
  planner p = {.pass = pass, .block = block};
  p.numbers = kiln_map_in(pass->scratch);
  p.turned = kiln_map_in(pass->scratch);
  p.images = kiln_map_in(pass->scratch);
  find_values(&p);
  find_gains(&p);
  for (kiln_node *n = block->first; n; n = n->next) {
    bool lies = false;
    for (int i = 0; kiln_node_is_group(n) && i < n->output_count; i++)
      lies |= is_turned(&p, n->outputs[i]);
    for (int i = 0; lies && i < n->input_count; i++)
      if (wants_turned(&p, n, i)) turn_input(&p, n, i);
  }
  for (int i = 0; i < p.all.count; i++) {
    if (!is_turned(&p, p.all.data[i].value)) continue;
    lay_value(&p, p.all.data[i].value);
    pass->changed = true;
  }
  find_rows(&p);
  kiln__lay_borders(pass, block);
}

/* -- What has no channels last -- */

/* A convolution's loops may have a tile with channels last alone: windows over single channels of a
 * signal. */
static bool lacks_tiles(kiln_pass *pass, const kiln_graph *body) {
  return kiln__has_convolution(body->top) &&
         kiln_codegen_can_lower_group(body, (kiln_factor_type)pass->env->flags.matmul,
                                      kiln_arena_mem(pass->scratch)) ==
             KILN_REASON_product_by_kernel;
}

/* Resized pictures whose channels are not last are gathered along their rows: the interpreter's
 * kernel, which has tables of a row's places, takes a third of that. */
static const kiln_node *find_resized(const kiln_graph *body) {
  for (const kiln_node *n = body->top->first; n; n = n->next)
    if (is_resized(n)) return n;
  return NULL;
}

/* A group of few operators, one of which is such a one, gives way to the interpreter. */
static void give_way(kiln_pass *pass, kiln_block *block) {
  enum { FEW = 4 };
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    const kiln_graph *body = kiln_node_is_group(n) ? kiln_node_graph(n, "Subgraph") : NULL;
    if (!body || has_layouts(body)) continue; /* which nobody else may see */
    if (lacks_tiles(pass, body)) {
      kiln_pass_refuse(pass, n, KILN_REASON_product_by_kernel, "");
      (void)kiln_guards_dissolve(pass, n);
      pass->changed = true;
      continue;
    }
    const kiln_node *resized = find_resized(body);
    int count = 0;
    if (!resized) continue;
    for (const kiln_node *m = body->top->first; m; m = m->next)
      count +=
          m->op && m->op->cost != KILN_COST_metadata && !kiln_node_is(m, KILN_OP_prim_Constant);
    if (count > FEW) continue;
    kiln_pass_refuse(pass, n, KILN_REASON_no_local_gather,
                     kiln_arena_str(pass->scratch, resized->name).data);
    (void)kiln_guards_dissolve(pass, n);
    pass->changed = true;
  }
}

static void visit(kiln_pass *pass, kiln_block *block) {
  const kiln_flags *flags = &pass->env->flags;
  for (kiln_node *n = block->first; n; n = n->next)
    for (int b = 0; b < n->block_count; b++) visit(pass, n->blocks[b]);
  if (!kiln_guards_is_hit(block)) return;
  if (flags->layouts) lay_block(pass, block);
  give_way(pass, block);
}

kiln_status *kiln_pass_assign_layouts(kiln_pass *pass) {
  if (pass->env->flags.compat != KILN_COMPAT_TORCH) visit(pass, pass->graph->top);
  return NULL;
}
