/* draw.h: arguments for any operator, drawn by its schema.
 *
 * All is a function of seeds, so that a case can be made again in another context: a tensor depends
 * on its own key and on the case's alone, and not on what was drawn before it. Tensors of one case
 * have mostly one shape and dtype, or shapes that broadcast; some have none in common, no
 * dimensions, no elements, odd strides, or values at the edges of their type. In every third case
 * some dimension is longer, and sums of the floats are rounded, so that their order shows.
 *
 * Cases of seeds with DRAW_WILD have what no model has, now and then: every dtype, dimensions up to
 * 64, sizes of 0 and of thousands of millions (over little memory), strides that overlap, any bits
 * in a bool, sizes and dimensions at the limits of int64, long and empty lists, any text. */
#pragma once

#include <stdbool.h>

#include "ir/op.h"
#include "kiln/kiln.h"

/* -- Numbers -- */

#define DRAW_WILD (UINT64_C(1) << 63)

/* Choices of draw_value (numbers, lengths of lists, texts, None) become edges of their types. */
typedef struct draw_edge {
  int at;    /* the choice, from 1; 0: none; -1: each by chance */
  int which; /* of the edges, 0 to DRAW_EDGES - 1; by chance: a seed */
  int seen;  /* choices so far */
} draw_edge;
enum { DRAW_EDGES = 14 };

typedef struct draw {
  uint64_t state;
  bool wild;
  draw_edge *edge; /* or NULL */
} draw;
draw draw_from(uint64_t seed, uint64_t key);
int draw_below(draw *d, int n); /* [0, n) */

/* -- Schemas -- */

typedef struct draw_arg {
  char type[128]; /* without alias annotations: "Tensor", "int[2]", "Scalar?" */
  char name[64];
  bool keyword, has_default, written;
} draw_arg;
/* The arguments of "aten::add.Tensor(Tensor self, …) -> Tensor"; -1 when they are more than max. */
int draw_schema(const char *schema, draw_arg *args, int max);

/* -- Values. NULL: this type cannot be drawn; a failure ends the process. -- */

bool draw_is_tensor(const draw_arg *arg);      /* Tensor, Tensor? */
bool draw_is_tensor_list(const draw_arg *arg); /* Tensor[], Tensor?[] */
/* Of the case's family of shapes. `edge`, from 0 to DRAW_TENSOR_EDGES - 1, gives it another dtype,
 * other sizes, or an edge of its type as all its elements; -1: none. */
enum { DRAW_TENSOR_EDGES = 51 };
kiln_value *draw_tensor(kiln_context *context, const draw_arg *arg, uint64_t seed, uint64_t key,
                        int edge);
kiln_value *draw_value(kiln_context *context, const draw_arg *arg, draw *d);

void draw_must(kiln_status *status);

/* -- Operators -- */

typedef struct draw_op {
  char *name, *schema;
  const kiln_op *op; /* the context's */
} draw_op;
typedef struct draw_ops {
  int count;
  draw_op *all;
} draw_ops;
/* Those of a context that have kernels and schemas and that `wanted` takes, but for what differs
 * from call to call by purpose, reads files or clocks, writes to the terminal, or shows the sign of
 * a NaN. */
draw_ops draw_ops_of(const kiln_context *context,
                     bool (*wanted)(const kiln_registry *registry, const kiln_op *op));
void draw_ops_free(draw_ops *ops);
