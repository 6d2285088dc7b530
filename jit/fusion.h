/* fusion.h: between the files of fusion: fusion.c (what can be fused), fusion_order.c (what orders
 * nodes), fusion_cluster.c (which nodes go together), fusion_build.c (making the groups). */
#pragma once

#include "ir/pass.h"
#include "runtime/plan.h"

typedef KILN_VEC(kiln_ir_value *) kiln_fusion_reads;

/* The nodes of one block in order, from 0. A cluster is one node, or the members of a group, and
 * has the number of one of them. */
typedef struct kiln_fusion_node {
  kiln_node *node;
  int cluster, next_member; /* -1: the last of its cluster */
  bool fusible, is_view;    /* a view or a list joins only what uses all of it */
  uint64_t sizes;           /* inputs that its group makes of sizes, a bit each (fusion_sizes.c) */
  bool of_weights;          /* it is computed in front of its group (hoist_constants.c) */
  bool repeats;             /* in its group elements of its result are read again and again */
  bool apart; /* it changes where elements stand, and a product that read it was not lowered */
  /* Of two products, softmax(q k^T) v: the rows of the first one's result are what the other's
   * first factor is made of, and nobody else reads them. Either is worth a kernel with the other
   * alone (fusion_product.c). */
  enum { KILN_FUSION_ALONE, KILN_FUSION_FIRST, KILN_FUSION_SECOND } chain;
  bool lies_last;          /* a convolution whose result may have channels last (layouts.c) */
  kiln_vec_int next, prev; /* must stay after, before */
} kiln_fusion_node;

/* What a group reduces, and the sizes of its members' results. */
enum { KILN_FUSION_SHAPES = 8 };
typedef struct kiln_fusion_rows {
  const kiln_tensor_detail *space; /* of what is reduced; NULL: nothing is */
  uint64_t mask;                   /* its dimensions */
  int shape_count;
  bool many;    /* more than are kept */
  bool product; /* a contraction is one of the members */
  bool windows; /* and is a convolution, which does not gain alone */
  bool chain;   /* the second of two, whose first factor is the space */
  bool spreads; /* results at or behind what reduces have the space's sizes: softmax */
  bool unclear; /* a result might be of other dimensions than it seems: see fusion_rows.c */
  const kiln_tensor_detail *shapes[KILN_FUSION_SHAPES];
} kiln_fusion_rows;

typedef struct kiln_fusion_cluster {
  int first, last;  /* members; first also begins the chain of all, last ends it */
  int size, work;   /* of a group: operators; those that are no views, pools twice */
  bool has_maps;    /* some change where elements stand */
  bool repeats;     /* and some read what is before them again and again */
  bool has_windows; /* since their elements are of windows */
  bool places;      /* it is a join alone, into which others write (place_parts.c) */
  bool is_group, emitted;
  bool leads_back; /* to a group that begins before this cluster */
  int seen;        /* number of the last search that came by, and what it found: */
  bool reaches;
  kiln_fusion_rows rows;
} kiln_fusion_cluster;

typedef struct kiln_fusion {
  kiln_pass *pass;
  kiln_arena *arena; /* scratch */
  kiln_block *block;
  int count;
  int64_t edges;
  kiln_fusion_node *nodes;
  kiln_fusion_cluster *clusters; /* [count] */
} kiln_fusion;

/* Index of the node of the block that `user` is or stands in; -1: the block's results. */
int kiln__fusion_index(const kiln_fusion *f, const kiln_node *user);
/* Nodes whose refusal is worth telling: those that compute something. */
bool kiln__fusion_is_work(const kiln_node *n);
/* Whether it gives an argument's elements, in other places: a view, a list or a copy; or what it
 * makes of some that lie together. */
bool kiln__fusion_is_map(const kiln_node *n);
/* Whether it is a reshape that copies, and makes a convolution's image. */
bool kiln__fusion_moves_pixels(const kiln_node *n);
/* Whether a product is to find it done, and does not do it for each of its outputs: that, and to(x,
 * f32) of halves. */
bool kiln__fusion_is_for_once(const kiln_node *n);
void kiln__fusion_refuse(kiln_fusion *f, const kiln_node *n, kiln_reason reason);
/* A value that is reduced, and wanted outside too, is computed twice, but where results for each
 * element need the rows. */
bool kiln__fusion_rows_again(const kiln_fusion_rows *rows, const kiln_node *n);
/* It reduces, and its result does not keep the dimensions (fusion_rows.c). */
bool kiln__fusion_drops_dims(const kiln_node *n);
/* Whether a node may join a group with these rows (fusion_rows.c): none, or why not; it does. */
kiln_reason kiln__fusion_rows_fit(const kiln_fusion_rows *rows, const kiln_fusion_node *node);
void kiln__fusion_rows_take(kiln_fusion_rows *rows, const kiln_fusion_node *node);
/* Whether a tensor's type is one that groups take: none, or why not. */
kiln_reason kiln__fusion_check_tensor(const kiln_ir_value *v);
/* Inputs of a node, a bit each, that are made of sizes of tensors whose types are known; what the
 * node's group reads for it, inline constants left out; and copies of the nodes that make such an
 * input, whose tensors `map` has (fusion_sizes.c). */
static inline bool kiln__fusion_is_of_sizes(uint64_t inputs, int i) {
  return i < 64 && (inputs >> i & 1);
}
uint64_t kiln__fusion_find_sizes(const kiln_fusion *f, const kiln_node *n);
void kiln__fusion_add_reads(const kiln_fusion *f, const kiln_fusion_node *n,
                            kiln_fusion_reads *out);
void kiln__fusion_copy_sizes(kiln_graph *sub, kiln_ir_value *v, kiln_map *map);
/* Whether a contraction is worth a kernel: none, or why not (fusion_product.c). */
kiln_reason kiln__fusion_check_product(const kiln_fusion *f, const kiln_node *n);
/* A constant that a group holds itself. Tensors are never: generated code has no tensor constants,
 * so they come in as inputs. */
bool kiln__fusion_is_inline(const kiln_ir_value *v);
/* A group's values: those it reads (inline constants left out), and those read outside it. */
typedef struct kiln_fusion_values {
  kiln_fusion_reads inputs, outputs;
} kiln_fusion_values;
void kiln__fusion_values(const kiln_fusion *f, const kiln_fusion_cluster *c,
                         kiln_fusion_values *out_values);

void kiln__fusion_order(kiln_fusion *f);
/* False: there are no groups. */
bool kiln__fusion_partition(kiln_fusion *f);
/* Orders the block so that every cluster is contiguous, and replaces groups by their nodes. */
void kiln__fusion_build(kiln_fusion *f);
/* A group in front of the anchor that gives the value's elements, as the group that is to read it
 * says what sizes are. */
kiln_node *kiln__fusion_insert_copy(kiln_node *reader, kiln_ir_value *v, kiln_node *anchor);

kiln_status *kiln_pass_decompose_ops(kiln_pass *pass);
kiln_status *kiln_pass_fuse_groups(kiln_pass *pass);
kiln_status *kiln_pass_sink_views(kiln_pass *pass);
kiln_status *kiln_pass_hoist_constants(kiln_pass *pass);
kiln_status *kiln_pass_hoist_products(kiln_pass *pass);
kiln_status *kiln_pass_join_convolutions(kiln_pass *pass);
kiln_status *kiln_pass_compute_parts(kiln_pass *pass);
kiln_status *kiln_pass_open_splits(kiln_pass *pass);
kiln_status *kiln_pass_place_parts(kiln_pass *pass);
kiln_status *kiln_pass_pack_recurrent(kiln_pass *pass);
kiln_status *kiln_pass_keep_constants(kiln_pass *pass);
kiln_status *kiln_pass_assign_layouts(kiln_pass *pass);
/* A group's graph for the interpreter: what it reads and gives lies as its types say, and its
 * operators see PyTorch's strides. Itself, where nothing has a layout. */
kiln_graph *kiln__layouts_undone(kiln_graph *body, kiln_arena *scratch);
