/* convolution.h: what a pass asks of a convolution by whichever of its names: conv1d, conv2d,
 * conv3d, convolution, _convolution. */
#pragma once

#include "codegen/codegen.h"
#include "ir/ir.h"

/* Its groups; 0: it is transposed, or no convolution, or they are not known. */
static inline int64_t kiln__convolution_groups(const kiln_node *n) {
  const bool plain = kiln_node_is(n, KILN_OP_conv1d) || kiln_node_is(n, KILN_OP_conv2d) ||
                     kiln_node_is(n, KILN_OP_conv3d);
  int64_t groups = 0;
  if (!plain && !kiln_node_is(n, KILN_OP_convolution) && !kiln_node_is(n, KILN_OP__convolution))
    return 0;
  if (!plain && !kiln_ir_value_is_bool(kiln_node_input(n, 6), false)) return 0;
  return kiln_ir_value_const_int(kiln_node_input(n, plain ? 6 : 8), &groups) ? groups : 0;
}

static inline bool kiln__has_convolution(const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next)
    if (n->op && kiln_codegen_convolves(n->op)) return true;
  return false;
}

/* Whether it goes over a batch: an image alone has its channels first. Types have dimensions. */
static inline bool kiln__convolution_has_batch(const kiln_node *n) {
  return n->outputs[0]->type->detail->rank == kiln_node_input(n, 1)->type->detail->rank;
}

/* Whether it has one element along each dimension of the windows: weights of single pixels, an
 * image of one. */
static inline bool kiln__is_of_pixels(const kiln_tensor_detail *t) {
  for (int d = 2; d < t->rank; d++)
    if (t->sizes[d] != 1) return false;
  return true;
}

/* Whether it is transposed, or may be. */
static inline bool kiln__convolution_is_transposed(const kiln_node *n) {
  if (kiln_node_is(n, KILN_OP_convolution) || kiln_node_is(n, KILN_OP__convolution))
    return !kiln_ir_value_is_bool(kiln_node_input(n, 6), false);
  return kiln_node_is(n, KILN_OP_conv_transpose1d) ||
         kiln_node_is(n, KILN_OP_conv_transpose2d_input) ||
         kiln_node_is(n, KILN_OP_conv_transpose3d_input);
}

enum { KILN__CONVOLUTION_STRIDE = 3, KILN__CONVOLUTION_PADDING, KILN__CONVOLUTION_DILATION };
/* The number of axis `axis` of a constant int or list of ints, of which one may be for all; -1:
 * there is none. */
static inline int64_t kiln__convolution_number_at(const kiln_node *n, int input, int axis) {
  const kiln_ivalue *c = kiln_ir_value_constant(kiln_node_input(n, input));
  if (c && c->tag == KILN_TAG_INT) return c->u.i;
  if (!c || c->tag != KILN_TAG_LIST || c->u.list->count < 1) return -1;
  const int64_t at = c->u.list->count == 1 ? 0 : axis;
  if (at >= c->u.list->count || c->u.list->items[at].tag != KILN_TAG_INT) return -1;
  return c->u.list->items[at].u.i;
}

/* The one number of them all; -1: there are several, or none. */
static inline int64_t kiln__convolution_number(const kiln_node *n, int input) {
  const kiln_ivalue *c = kiln_ir_value_constant(kiln_node_input(n, input));
  const int64_t first = kiln__convolution_number_at(n, input, 0);
  for (int64_t i = 1; c && c->tag == KILN_TAG_LIST && i < c->u.list->count; i++)
    if (kiln__convolution_number_at(n, input, (int)i) != first) return -1;
  return first;
}

/* The convolution that goes over the value, which is read so: itself, or channels of it, or behind
 * a pad that is part of its padding; NULL: neither. */
static inline const kiln_node *kiln__convolution_of_image(const kiln_use *use,
                                                          kiln_arena *scratch) {
  const kiln_node *n = use->user;
  int64_t before[3] = {0}, after[3] = {0}, begin;
  if (use->index != 0 || !n->op) return NULL;
  if (kiln_codegen_cuts_channels(n, &begin)) {
    if (n->outputs[0]->use_count != 1 || n->outputs[0]->uses->index != 0) return NULL;
    n = n->outputs[0]->uses->user;
    if (!n->op) return NULL;
  }
  const kiln_ir_value *image = kiln_node_input(n, 0);
  const bool pads = kiln_node_is(n, KILN_OP_pad) || kiln_node_is(n, KILN_OP_constant_pad_nd);
  if (pads && n->outputs[0]->use_count == 1) n = n->outputs[0]->uses->user;
  const bool goes = n->op && kiln_codegen_convolves(n->op) &&
                    kiln_codegen_image(n, scratch, before, after) == image;
  return goes ? n : NULL;
}
