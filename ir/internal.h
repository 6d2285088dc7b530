/* internal.h: what the files of ir/ share with each other. */
#ifndef KILN_IR_INTERNAL_H
#define KILN_IR_INTERNAL_H

#include "ir/ir.h"

/* -- graph.c -- */

/* A value that is not an output of anything yet, with the graph's next id. */
kiln_ir_value *kiln__value_create(kiln_graph *graph, const kiln_type *type);
/* An empty block; its pseudo nodes stand in it. */
kiln_block *kiln__block_create(kiln_graph *graph, kiln_node *owner);

/* -- value.c -- */

/* Forgets the value's name, so that the graph may use it again. */
void kiln__value_drop_name(kiln_ir_value *value);

/* -- node.c -- */

/* Puts `value` at the end of the node's outputs. */
void kiln__node_push_output(kiln_node *node, kiln_ir_value *value);

/* -- copy.c -- */

/* A copy in progress: `values` maps old to new. With `ranges`, source ranges are copied too (old to
 * new); `exact` keeps names and ids as they are. */
typedef struct kiln__copier {
  kiln_graph *to;
  const kiln_graph *from;
  kiln_map *values;
  kiln_map *ranges;
  bool exact;
} kiln__copier;

/* -- attr.c -- */

/* Sets an attribute to a value that the graph owns already. */
void kiln__node_set_owned(kiln_node *node, const char *name, kiln_ivalue value);

/* -- literal_print.c -- */

/* A constant as attributes show it; kiln__literal_parse reads it back. At the top level booleans
 * are 0 and 1. */
void kiln__literal_print(kiln_text *text, kiln_ivalue value);
/* The same where no type stands by it that tells a tensor's dtype and sizes. */
void kiln__literal_print_untyped(kiln_text *text, kiln_ivalue value);
/* A double with 17 digits and a point, as PyTorch prints it: "1.0000000000000001e-05", "3.". */
void kiln__print_double(kiln_text *text, double value);

/* -- print.c -- */

void kiln__value_print(kiln_text *text, const kiln_ir_value *value); /* "%x.1" */

/* -- shape*.c: every function that a SHAPE column may name -- */

#define KILN__SHAPE_LIST(X) \
  X(self)                   \
  X(same)                   \
  X(float)                  \
  X(real)                   \
  X(promote)                \
  X(promote3)               \
  X(lerp)                   \
  X(promote_float)          \
  X(bool_result)            \
  X(bool_test)              \
  X(same_if_float)          \
  X(div_mode)               \
  X(masked)                 \
  X(select)                 \
  X(view)                   \
  X(reshape)                \
  X(flatten)                \
  X(transpose)              \
  X(t)                      \
  X(permute)                \
  X(expand)                 \
  X(expand_as)              \
  X(unsqueeze)              \
  X(squeeze)                \
  X(select_int)             \
  X(slice)                  \
  X(narrow)                 \
  X(chunk)                  \
  X(split)                  \
  X(unbind)                 \
  X(contiguous)             \
  X(clone)                  \
  X(alias)                  \
  X(to_dtype)               \
  X(factory)                \
  X(factory_like)           \
  X(factory_new)            \
  X(arange)                 \
  X(mm)                     \
  X(bmm)                    \
  X(matmul)                 \
  X(addmm)                  \
  X(linear)                 \
  X(reduce_dims)            \
  X(reduce_all)             \
  X(reduce_dim)             \
  X(softmax)                \
  X(layer_norm)             \
  X(embedding)              \
  X(cat)                    \
  X(stack)                  \
  X(dropout)                \
  X(attention)              \
  X(upsample)               \
  X(conv)                   \
  X(pool)                   \
  X(gather)                 \
  X(topk)                   \
  X(sort)                   \
  X(glu)                    \
  X(repeat)                 \
  X(pad)                    \
  X(pixel_shuffle)          \
  X(baddbmm)                \
  X(mv)                     \
  X(dot)                    \
  X(loss)                   \
  X(class_loss)             \
  X(like)                   \
  X(promote_real)           \
  X(window)                 \
  X(window_steps)           \
  X(strided)                \
  X(multinomial)            \
  X(native_dropout)         \
  X(pool_to)                \
  X(affine_grid)            \
  X(regions)                \
  X(deform_conv)
#define KILN__SHAPE_PROTOTYPE(fn) bool kiln__shape_##fn(struct kiln_shape_query *query);
KILN__SHAPE_LIST(KILN__SHAPE_PROTOTYPE)
#undef KILN__SHAPE_PROTOTYPE

#endif
