/* fusion.h: between fusion.c (which nodes go together) and fusion_build.c (making the groups). */
#ifndef KILN_JIT_FUSION_H
#define KILN_JIT_FUSION_H

#include "ir/pass.h"

enum { KILN_GROUP_MAX_VALUES = 128 }; /* inputs and outputs of one group */

/* The nodes of one block in order; a cluster is one node, or the members of a group. */
typedef struct kiln_fusion_node {
  kiln_node *node;
  int cluster;
  bool fusible, is_view;    /* a view, or a list: joins only what uses all of it */
  KILN_VEC(int) next, prev; /* must stay after, before: data and memory */
} kiln_fusion_node;

typedef struct kiln_fusion_cluster {
  KILN_VEC(int) members; /* in order; empty: merged into another */
  bool is_group, emitted;
  uint32_t stamp; /* of the search that saw it */
} kiln_fusion_cluster;

typedef struct kiln_fusion {
  kiln_pass *pass;
  kiln_arena *arena; /* scratch */
  kiln_block *block;
  int count;
  kiln_fusion_node *nodes;
  kiln_fusion_cluster *clusters; /* [count] */
  uint32_t stamp;
} kiln_fusion;

/* Index of the node of the block that `user` is or stands in; -1: the block's results. */
int kiln__fusion_index(const kiln_fusion *f, const kiln_node *user);
/* A constant that a group holds itself. Tensors are never: generated code has no tensor constants,
 * so they come in as inputs. */
bool kiln__fusion_is_inline(const kiln_ir_value *v);
/* A group's values: those it reads (inline constants left out), and those read outside it. */
typedef struct kiln_fusion_values {
  KILN_VEC(kiln_ir_value *) inputs, outputs;
} kiln_fusion_values;
void kiln__fusion_values(const kiln_fusion *f, const int *members, int count,
                         kiln_fusion_values *out_values);
/* Orders the block so that every cluster is contiguous, and replaces groups by their nodes. */
void kiln__fusion_build(kiln_fusion *f);

kiln_status *kiln_pass_decompose_ops(kiln_pass *pass);
kiln_status *kiln_pass_fuse_groups(kiln_pass *pass);

#endif
