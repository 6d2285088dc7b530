/* lower.h: lowering of graphs to loop IR: between lower.c (values), lower_map.c (index
 * maps) and lower_*.c (operators: kiln__lower_x, as LOWER(x) in the tables names it). For codegen/
 * only.
 *
 * A value is lowered on demand at an index map: for each of its dimensions an offset and a step for
 * each loop. Views change the map, broadcasting drops the steps; so nothing is ever materialised. A
 * lowering returns the number of an instruction whose type is the node's result type, or
 * kiln__lower_refuse.
 *
 * What an index reads has a map that moves with data beside loops: the element of a kernel's input
 * there is a gather.
 *
 * Where a map is affine only on finer loops, or on a part of a loop, the lowering asks for these
 * (kiln__lower_want) and the nest is begun again: flatten(x (4, 6)) is read at x[i][j] when the
 * loop over its 24 elements is one of 4 and one of 6, and cat([x, y]) has a nest for x and one for
 * y. */
#pragma once

#include "codegen/codegen.h"

/* offset + the sum of steps[loop] * the loop's counter + times * the value of a check. */
typedef struct kiln__lower_dim {
  kiln_dim offset;
  kiln_dim steps[KILN_LOOP_MAX_RANK];
  int64_t check; /* that instruction and 1; 0: data does not move it */
  kiln_dim times;
} kiln__lower_dim;

typedef struct kiln__lower_map {
  int rank;
  kiln__lower_dim dims[KILN_LOOP_MAX_RANK];
} kiln__lower_map;

/* That a dimension moves with this loop alone. */
static inline kiln__lower_dim kiln__lower_along(int loop) {
  kiln__lower_dim d = {0};
  d.steps[loop] = 1;
  return d;
}

/* Other loops that a map needs: loop `loop` as one of `at` iterations and one of `rest` in it, or
 * in two parts, the first of which has `at` iterations. */
typedef struct kiln__lower_want {
  enum { KILN__WANT_NOTHING, KILN__WANT_SPLIT, KILN__WANT_CUT } kind;
  int loop;
  kiln_dim at, rest;
} kiln__lower_want;

/* What a node that reduces knows of its rows: the numbers that its first input is reduced to, in
 * loops of the body, before an element of its result can be computed. */
typedef struct kiln__lowering kiln__lowering;
typedef struct kiln__rows kiln__rows;
/* LOWER_ROWS(x, dims): before the loops over the result; kiln__rows_fn is for elements in them. */
typedef void (*kiln__rows_begin_fn)(kiln__lowering *l, const kiln_node *node, kiln__rows *rows);

struct kiln__rows {
  const kiln_node *node;
  kiln__rows_begin_fn begin;
  uint64_t mask;        /* dimensions of the first input that are reduced */
  kiln__lower_map kept; /* of the first input; reduced dimensions have no loop */
  kiln_dim part;        /* of dimension 1, where groups of it are: its elements in one; else 0 */
  int loops;            /* that are open for it */
  bool has_elements;    /* they surely have iterations */
  int values[2];        /* instructions, or buffers: the lowering's own */
};
/* Which dimensions those are: all; the ones that argument 1 or argument 2 names (a number, a list;
 * all where it is None); as many last ones as argument 1 has numbers; those behind the channels;
 * the same with each of the channels' groups, of which argument 1 is the number; the last; all but
 * the one that argument 2 names, or, where it is -1, all; all of a loss whose argument `reduction`
 * asks for a sum or mean; of a scan the one that argument 1 names; those of an adaptive pool whose
 * argument 1 asks for one element; those of a pool of one window; those that have other sizes in
 * the list that is argument 1, or none; those that argument 1 names, but for pairs of floats, not
 * in the last dimension, which are summed where they are wanted. */
typedef enum kiln__rows_dims {
  KILN__ROWS_all,
  KILN__ROWS_named,
  KILN__ROWS_named_2,
  KILN__ROWS_named_but_pairs,
  KILN__ROWS_last,
  KILN__ROWS_inner,
  KILN__ROWS_groups,
  KILN__ROWS_row,
  KILN__ROWS_others,
  KILN__ROWS_others_or_all,
  KILN__ROWS_loss,
  KILN__ROWS_scan,
  KILN__ROWS_pool,
  KILN__ROWS_window,
  KILN__ROWS_to_size,
} kiln__rows_dims;

/* Which dimensions of its first input a node reduces, a bit each; false: that is not known. Above
 * them is the number of channels in a group, where groups of them are rows. */
bool kiln__rows_mask(const kiln_node *node, kiln__rows_dims dims, uint64_t *out_mask);
enum { KILN__ROWS_PART = 16 };
static inline kiln_dim kiln__rows_part(uint64_t mask) {
  return (kiln_dim)(mask >> KILN__ROWS_PART);
}
/* The map of the first input, reduced dimensions without loops, of the map of a result, which has
 * these dimensions or not. One element needs no loop: whoever wants a result broadcasts it or not,
 * and its rows are the same. Of groups the channels' index is that of the group's first. NULL:
 * there is none on these loops. */
const kiln__lower_map *kiln__rows_kept(kiln__lowering *l, const kiln_node *node, uint64_t mask,
                                       const kiln__lower_map *map);

/* The rows of the nest that were begun so for the node at that map; NULL: there are none. */
const kiln__rows *kiln__rows_find(const kiln__lowering *l, const kiln_node *node,
                                  kiln__rows_begin_fn begin, const kiln__lower_map *kept);
/* The same, begun here where there are none; NULL, with a reason. */
const kiln__rows *kiln__rows_at(kiln__lowering *l, const kiln_node *node, kiln__rows_begin_fn begin,
                                uint64_t mask, const kiln__lower_map *kept);

struct kiln__lowering {
  const kiln_ir_value *const *outputs; /* what is computed of them */
  const kiln_ir_value *const *stored;  /* where that lies: itself, or what it is a part of */
  int output_count;
  kiln_arena *arena;
  kiln_loop_fn *fn;
  kiln_loop_nest *nest;
  kiln_map memo;                  /* value -> instructions of this nest, by map */
  KILN_VEC(kiln__rows *) rows;    /* of this nest, inner ones first */
  int scopes[KILN_LOOP_MAX_RANK]; /* of the loops of the body that are open */
  int scope_count;                /* so far */
  bool scans;    /* the loop over the results is to be one of scans, whose rows keep nothing */
  bool scanning; /* it is open */
  bool storing;  /* the loop that is open stores what is lowered: a product's rows begin in none */
  kiln_dim extents[KILN_LOOP_MAX_RANK]; /* of the nest's loops and those that are open */
  kiln__lower_want want;
  kiln_map buffers, scalars; /* graph input -> number + 1 */
  kiln_map joins;            /* of nodes: where their arguments begin (lower_join.c) */
  kiln_map products;         /* value -> whether it is made of a product (lower_product.c) */
  kiln_map gathered;         /* nodes whose index is read (lower_gather.c) */
  kiln_map met;              /* nodes whose elements are read */
  bool channels_last;       /* some output has that layout: convolutions read copies that have it */
  kiln_factor_type factors; /* of contractions */
  bool copied;              /* an input has become a copy: what has read it is lowered again */
  kiln_reason reason;       /* why it failed */
};

/* LOWER(x): the one result; LOWER_EACH(x): result `output` of several, or element `output` of the
 * list that is the result. */
typedef int (*kiln__lower_fn)(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map);
typedef int (*kiln__lower_each_fn)(kiln__lowering *l, const kiln_node *node, int output,
                                   const kiln__lower_map *map);
/* LOWER_ROWS(x, dims), of elements of result `output`. With LOWER(y) as well: that one, where
 * nothing is reduced. */
typedef int (*kiln__rows_fn)(kiln__lowering *l, const kiln_node *node, int output,
                             const kiln__lower_map *map, const kiln__rows *rows);
#define KILN__ROWS_TYPES(name)                                                              \
  void kiln__rows_begin_##name(kiln__lowering *l, const kiln_node *node, kiln__rows *rows); \
  int kiln__rows_##name(kiln__lowering *l, const kiln_node *node, int output,               \
                        const kiln__lower_map *map, const kiln__rows *rows)
#define KILN__LOWER_TYPE(name) \
  int kiln__lower_##name(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map)
#define KILN__LOWER_EACH_TYPE(name)                                            \
  int kiln__lower_##name(kiln__lowering *l, const kiln_node *node, int output, \
                         const kiln__lower_map *map)
#define KILN__LOWER(name) \
  KILN__LOWER_TYPE(name); \
  KILN__LOWER_TYPE(name)
#define KILN__LOWER_EACH(name) \
  KILN__LOWER_EACH_TYPE(name); \
  KILN__LOWER_EACH_TYPE(name)

/* Records the reason; returns -1, which every caller passes on. */
int kiln__lower_refuse(kiln__lowering *l, kiln_reason reason);

/* A pool that interpolation is, too; its windows are told by the result's sizes (lower_pool.c). */
KILN__LOWER_TYPE(adaptive_avg_pool);

/* A tensor's sizes and strides among the kernel's dimensions. */
typedef struct kiln__lower_sizes {
  kiln_dim sizes[KILN_LOOP_MAX_RANK], strides[KILN_LOOP_MAX_RANK];
} kiln__lower_sizes;
kiln__lower_sizes kiln__lower_sizes_of(kiln__lowering *l, const kiln_ir_value *value);

/* Refuses where what is wanted, but not its elements, may complain: of an index, or of sizes. */
void kiln__lower_look_at_unread(kiln__lowering *l);

/* -- Index maps -- */

/* index = size * quotient + remainder, both as maps, for an index below outer * size. False: there
 * are none on these loops, and either other loops are wanted or a reason is recorded. */
bool kiln__lower_divide(kiln__lowering *l, const kiln__lower_dim *index, kiln_dim outer,
                        kiln_dim size, kiln__lower_dim *quotient, kiln__lower_dim *remainder);
/* Whether the index is `begin` or more, for certain. */
bool kiln__lower_is_behind(kiln__lowering *l, const kiln__lower_dim *index, kiln_dim begin);
/* Whether all of the index is below `end` (-1), or none (1). 0: there is both, as above. */
int kiln__lower_side(kiln__lowering *l, const kiln__lower_dim *index, kiln_dim end);
/* factor * index, a + b, and index - less, which is not negative. */
kiln__lower_dim kiln__lower_times(kiln__lowering *l, const kiln__lower_dim *index, kiln_dim factor);
kiln__lower_dim kiln__lower_plus(kiln__lowering *l, const kiln__lower_dim *a,
                                 const kiln__lower_dim *b);
kiln__lower_dim kiln__lower_moved(kiln__lowering *l, const kiln__lower_dim *index, kiln_dim more,
                                  kiln_dim less);
/* A place that may count from the end, which `size` is; UNKNOWN where it is before the start. */
kiln_dim kiln__lower_place(kiln__lowering *l, kiln_dim size, int64_t at);
/* last - index, which is below size: loops that go on go back there. */
bool kiln__lower_backward(kiln__lowering *l, const kiln__lower_dim *index, kiln_dim last,
                          kiln_dim size, kiln__lower_dim *out);

/* Maps of the lowering's arena, for lowerings that go on from them: groups are deep, and a map
 * takes more than a kilobyte. The first stays at the first element. */
kiln__lower_map *kiln__lower_new_map(kiln__lowering *l, int rank);
kiln__lower_map *kiln__lower_copied(kiln__lowering *l, const kiln__lower_map *map);
/* The same, where loop k is to[k] now. */
kiln__lower_map kiln__lower_renumbered(const kiln__lower_map *map, const int *to, int count);

/* A part of an output's elements, and the loops that go over it. */
typedef struct kiln__lower_domain {
  int rank;
  kiln_dim extents[KILN_LOOP_MAX_RANK];
  kiln__lower_map map; /* of the output */
} kiln__lower_domain;
/* A loop for each dimension of the buffer, from the one whose elements lie furthest apart to the
 * one whose elements are neighbours: vectors go along the last. */
kiln__lower_domain kiln__domain_of(kiln_dims *dims, const kiln_loop_buffer *b);
/* Loop k as an outer one and one of `inner` iterations. */
void kiln__domain_split(kiln_dims *dims, kiln__lower_domain *part, int k, kiln_dim outer,
                        kiln_dim inner);
/* Takes the first `at` iterations of loop k from the domain, which are given. */
kiln__lower_domain kiln__domain_cut(kiln_dims *dims, kiln__lower_domain *part, int k, kiln_dim at);

/* An index at a map, of which the loops pass by all elements, as an i64; -1, with a reason: some
 * would not be looked at, and one of those may be out of bounds. */
int kiln__lower_read_index(kiln__lowering *l, const kiln_ir_value *index,
                           const kiln__lower_map *map);
/* A dimension that moves with it, which is below `extent`. False, with a reason: it cannot. */
bool kiln__lower_at_index(kiln__lowering *l, const kiln_node *node, int index, kiln_dim extent,
                          kiln__lower_dim *out);

/* -- Loops of the body -- */

/* Opens a loop and gives its number for maps; closes the innermost one. */
int kiln__lower_open(kiln__lowering *l, kiln_loop_opcode kind, kiln_dim extent);
void kiln__lower_close(kiln__lowering *l);

/* -- Values -- */

/* A tensor at a map of its own rank. */
int kiln__lower_value(kiln__lowering *l, const kiln_ir_value *value, const kiln__lower_map *map);
/* The same, in loops of the body, of a product, or what is made of one element by element: from a
 * local buffer with its row. False in *out_is_row: of nothing else, nor where it is stored. */
int kiln__lower_row(kiln__lowering *l, const kiln_ir_value *value, const kiln__lower_map *map,
                    bool *out_is_row);
/* That the kernel reads a copy of a value, one of its inputs, with zeros around it (loop.h; strides
 * of the value are filled in, and sizes that are 0): its buffer. All is lowered again then, for
 * what has read the value before. */
int kiln__lower_copy(kiln__lowering *l, const kiln_ir_value *value, const int64_t *sizes,
                     kiln_physical physical, kiln_loop_copy copy);
/* The same of a value's elements alone, with other dimensions: `copy` has them. */
int kiln__lower_reordered(kiln__lowering *l, const kiln_ir_value *value, int rank,
                          const kiln_loop_copy *copy);
/* An element of a copy, at a map of it. */
int kiln__lower_load_copy(kiln__lowering *l, int buffer, const kiln__lower_map *map);
/* Input i at the map of the node's result: broadcast, its other sizes the result's; a number is a
 * constant or a scalar. Cast to `dtype` (NONE: as it is). */
int kiln__lower_input(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *map,
                      kiln_dtype dtype);
/* What is taken for granted of symbols that the inputs have is so of the kernel's. */
void kiln__lower_assume(kiln__lowering *l, kiln_ir_value *const *inputs, int count);
/* What is lacked of the kernel's symbols is lacked of the graph's: whoever listens there may have
 * it checked. */
void kiln__lower_ask(const kiln__lowering *l, kiln_ir_value *const *inputs, int count,
                     const kiln_dim_wishes *wishes);
bool kiln__lower_is_tensor(const kiln_node *node, int i);
bool kiln__lower_is_none(const kiln_node *node, int i);
/* Element i of a list of tensors that a node of the group makes. */
int kiln__lower_item(kiln__lowering *l, const kiln_ir_value *list, int i,
                     const kiln__lower_map *map);
/* I64, F64 or BOOL for a Python number, NONE where its kind is not known. */
kiln_dtype kiln__lower_number_kind(const kiln_ir_value *value);
/* A constant number of the node's input; false (and a reason) when it is not a constant. */
bool kiln__lower_number(kiln__lowering *l, const kiln_node *node, int i, double *out_value);
/* A constant int; `none` where it is None or left out. False, with a reason: it is no constant. */
bool kiln__lower_int(kiln__lowering *l, const kiln_node *node, int i, int64_t none, int64_t *out);
/* The same as a dimension of that rank, which may count from the end. */
bool kiln__lower_dimension(kiln__lowering *l, const kiln_node *node, int i, int rank, int *out);
/* Argument i, a list of ints of which some may not be known; NULL: it is no such list. */
const kiln_shape_list *kiln__lower_ints(kiln__lowering *l, const kiln_node *node, int i);
/* Whether tensor i has the sizes of the first input; false, with a reason. */
bool kiln__lower_has_sizes(kiln__lowering *l, const kiln_node *node, int i);
/* An integral dtype holds the number: what it does not hold, some operators refuse, and the
 * interpreter has the complaint. */
bool kiln__lower_holds(kiln_dtype dtype, double value);
/* Input i, one number for each channel of input 0, as a double that was rounded to `compute`
 * before. */
int kiln__lower_channel(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *map,
                        kiln_dtype compute);
/* Whether input i can be a weight or bias beside input 0: there is none, or it has input 0's type,
 * or f32 beside f16 and bf16; operators refuse others. */
bool kiln__lower_fits_input(const kiln_node *node, int i);
/* The node's inputs [first, first + count) promoted as at::result_type does. */
kiln_dtype kiln__lower_promote(const kiln_node *node, int first, int count);
kiln_dtype kiln__lower_input_dtype(const kiln_node *node, int i); /* of a tensor */
kiln_dtype kiln__lower_result_dtype(const kiln_node *node, int output);
static inline bool kiln__lower_is_float(kiln_dtype dtype) {
  return kiln_loop_class(dtype) & (KILN_LOOP_CLASS_F | KILN_LOOP_CLASS_H);
}
/* Over how many last dimensions an operator's windows or pictures go, of so many: all but batches
 * and channels where the table does not say. */
static inline int kiln__lower_spatial(const kiln_node *node, int rank) {
  return node->op->dims ? node->op->dims : rank - 2;
}
/* What arithmetic of a type is done in: f32 for f16 and bf16. */
static inline kiln_dtype kiln__lower_compute(kiln_dtype dtype) {
  return kiln_dtype_is_half(dtype) ? KILN_DTYPE_F32 : dtype;
}

/* -- Instructions, passing on -1 -- */

/* The sum of products over so many of the open loops. */
int kiln__lower_contraction(kiln__lowering *l, int a, int b, int loops);

int kiln__lower_op(kiln__lowering *l, kiln_loop_opcode op, int a, int b, int c);
int kiln__lower_cast(kiln__lowering *l, int value, kiln_dtype dtype);
int kiln__lower_const(kiln__lowering *l, kiln_dtype dtype, double value);
/* A dimension as a number of the type. */
int kiln__lower_size(kiln__lowering *l, kiln_dtype dtype, kiln_dim size);
kiln_dtype kiln__lower_dtype_of(const kiln__lowering *l, int value); /* of an instruction */
