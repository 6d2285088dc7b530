/* dim_node.h: how a table of dimensions keeps its expressions (of dim.c and dim_proof.c). */
#pragma once

#include "runtime/dim.h"

typedef struct kiln__dim_node {
  kiln_dim handle;
  int64_t by; /* of a division; 0: a sum or a product */
  int factor_count;
  kiln_dim factors[KILN_SUM_FACTORS]; /* of a product: symbols and divisions, in order */
  kiln_sum sum;                       /* divided, or the node itself; its terms in order */
  int nodes;                          /* that it would have as a tree */
  int64_t least, most;                /* INT64_MIN, INT64_MAX: no bound */
  struct kiln__dim_node *same_hash;
} kiln__dim_node;

struct kiln_dims {
  kiln_arena *arena;
  KILN_VEC(kiln__dim_node *) nodes;
  kiln_map index; /* hash -> node */
  KILN_VEC(kiln_dim_order) assumed;
  kiln_dim_wishes *needed, *liked; /* borrowed; NULL: nobody listens */
};

/* Of an expression of the table. */
const kiln__dim_node *kiln__dim_node_of(const kiln_dims *dims, kiln_dim d);
/* The factors of an atom: of a product, or the atom itself. Gives their number. */
int kiln__dim_factors(const kiln_dims *dims, kiln_dim atom, kiln_dim *out_factors);
/* INT64_MIN, INT64_MAX: no bound. */
void kiln__dim_range_of_atom(const kiln_dims *dims, kiln_dim atom, int64_t *least, int64_t *most);
