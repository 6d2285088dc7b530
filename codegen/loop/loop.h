/* loop.h: loop IR: what a fused group becomes before a back end sees it.
 *
 * A kernel is a list of independent nests over buffers. A nest is a rectangular domain of parallel
 * iterations and a body in SSA form, run once for each: loads at affine maps of the loop counters
 * (an offset and one stride for each loop; stride 0 is broadcasting), constants, scalar inputs,
 * arithmetic with explicit types, stores, and loops that stand in the body, down to their `end`:
 *
 *   for N     independent iterations, in any order
 *   reduce N  the same, whose values instructions of rule REDUCE bring to one: `sum f32 %3 over 2`
 *             stands in two reduce loops and is a value behind the outer one
 *   scan N    iterations in turn, and no loop within: an instruction of rule SCAN carries its value
 *             from one to the next, `cumsum f64 %3` the sum of all %3 so far
 *
 * A value is seen where it stands and in the loops further in, behind it. Nothing that a nest
 * stores is loaded by another; within one, a local buffer is stored in one loop and loaded behind
 * it: at the same places, or, where all of it is stored, at any. cat is a split of the domain,
 * chunk an offset, promotion a cast.
 *
 * A load may also move with data: an index that is checked adds to the map's place. An embedding's
 * rows of 64 are
 *
 *   %0 = load i64 b0 + 0 [1, 0]
 *   %1 = check i64 %0 below 1000
 *   %2 = gather f32 b1 + 0 [0, 1] at %1 * 64
 *
 * What is out of bounds becomes 0, and the kernel reports a fault: none of its results is of use.
 *
 * A convolution reads zeros around its image. An input may be a copy that has them: with
 * a border of 1 the rows of 56 become rows of 58 in
 *
 *   in b0: f32[64, 58, 58] [3364, 58, 1] copy of [64, 56, 56] [3136, 56, 1] before [0, 1, 1]
 *
 * softmax over rows of 64 is one nest over the rows and three loops: the greatest; exp(x -
 * greatest) into a local buffer and its sum; the quotient.
 *
 * The text is canonical: printing a parsed kernel gives the same text, and its digest is the
 * kernel's name. Sizes, strides, offsets and extents are dimensions (runtime/dim.h): numbers, or
 * expressions of symbols, of which the verifier proves the same. Back ends take numbers alone.
 *
 * Everything lives in the arena of the function; one thread at a time. */
#pragma once

#include "base/base.h"
#include "runtime/dim_program.h"
#include "runtime/kernel_abi.h"
#include "runtime/kernels/reduce/reduce.h"

enum { KILN_LOOP_MAX_RANK = 14, KILN_LOOP_MAX_INSTS = 1 << 16 };

typedef enum kiln_loop_opcode {
#define KILN_LOOP_OP(name, arity, rule, classes, eval, emit) KILN_LOOP_##name,
#include "codegen/loop/opcodes.def"
#undef KILN_LOOP_OP
  KILN_LOOP__COUNT
} kiln_loop_opcode;

typedef enum kiln_loop_rule {
  KILN_LOOP_RULE_LEAF,
  KILN_LOOP_RULE_STORE,
  KILN_LOOP_RULE_CAST,
  KILN_LOOP_RULE_SAME,
  KILN_LOOP_RULE_COMPARE,
  KILN_LOOP_RULE_SELECT,
  KILN_LOOP_RULE_CHECK,
  KILN_LOOP_RULE_GATHER,
  KILN_LOOP_RULE_REDUCE, /* operands alike, the result too */
  KILN_LOOP_RULE_FIND,   /* the same, but for a result of i64 */
  KILN_LOOP_RULE_SCAN,   /* the operand and the result alike */
  KILN_LOOP_RULE_OPEN,   /* of a loop in the body */
  KILN_LOOP_RULE_END,    /* of the loop that is open */
} kiln_loop_rule;

enum {
  KILN_LOOP_CLASS_F = 1,
  KILN_LOOP_CLASS_I = 2,
  KILN_LOOP_CLASS_B = 4,
  KILN_LOOP_CLASS_H = 8, /* f16, bf16: storage only, cast from and to f32 */
  KILN_LOOP_CLASS_ANY = 15,
};

typedef struct kiln_loop_op_info {
  const char *name;
  int arity;
  kiln_loop_rule rule;
  int classes;
} kiln_loop_op_info;

extern const kiln_loop_op_info kiln_loop_ops[KILN_LOOP__COUNT];

/* The class of a type, 0 for types that loop IR does not know. */
int kiln_loop_class(kiln_dtype dtype);
/* Bytes of an element of a type that it knows. */
int kiln_loop_size(kiln_dtype dtype);

typedef struct kiln_loop_inst {
  kiln_loop_opcode op;
  kiln_dtype dtype; /* of the result; of what is stored */
  int args[3];      /* instructions of the same body, before this one */
  int index;        /* load, gather, store: buffer; scalar: its number; REDUCE, FIND: how many
                     * loops; OPEN, set by a schedule alone: the loop whose counter says which part
                     * of `imm.step` iterations it goes through; else -1 */
  kiln_dim offset;  /* of a map: load, gather, store: elements from the buffer's first, and index;
                     * OPEN: iterations; dim: it; check: what the index is below */
  kiln_dim strides[KILN_LOOP_MAX_RANK]; /* of the nest's loops, then of those open in the body */
  union {
    int64_t i;     /* const of I and B */
    double f;      /* const of F */
    kiln_dim step; /* gather: elements of the buffer for one of the index; OPEN: see index */
  } imm;
} kiln_loop_inst;

/* How a back end runs the loops of a nest (schedule.h): `rows` iterations of one of them at once,
 * and all of the innermost one, `width` of them in a vector. */
typedef struct kiln_loop_tile {
  int rows; /* 0: there is no tile */
  int row_loop;
  int packed;     /* the input whose vectors are whole, however far the inner loop goes; -1: none */
  bool prefetch;  /* of that, the next panel, */
  int ahead;      /* or what is read so many iterations later; 0: the panel */
  bool claim;     /* its results' lines come before they are written */
  bool pairs;     /* the innermost loop of the body has two iterations, of factors in bf16 */
  int panel_loop; /* of the nest; and where the last panel is no whole one: */
  int64_t columns; /* that there are in all panels; 0: as many as the loops have iterations */
} kiln_loop_tile;

/* The same of two loops of the body: the one that instruction `open` opens holds the other alone.
 */
typedef struct kiln_loop_body_tile {
  int open, rows;
} kiln_loop_body_tile;

/* The loop of the body that instruction `open` opens has `count` steps of vectors in one. */
typedef struct kiln_loop_unroll {
  int open, count;
} kiln_loop_unroll;

/* What vectors go along, and which loops boxes cut. */
typedef struct kiln_loop_run {
  int lanes;    /* elements of a vector; 1: there are numbers; 0: there is no schedule */
  bool in_body; /* vectors go along the innermost loops of the body, else along the nest's last */
  int unroll;   /* of the nest's last loop; 0: each of its steps may be a partial one */
  bool partial; /* it is one step, of fewer elements than a vector has */
  int axis_count, axes[KILN_KERNEL_AXES]; /* loops of the nest, outermost first */
  int64_t grain; /* iterations of the nest that are worth a thread; 0: as its instructions cost */
} kiln_loop_run;

typedef struct kiln_loop_nest {
  int rank;                             /* with the loops of the body at most KILN_LOOP_MAX_RANK */
  int open;                             /* loops of the body that are not closed yet */
  kiln_dim extents[KILN_LOOP_MAX_RANK]; /* outermost first, each at least 1 */
  KILN_VEC(kiln_loop_inst) body;
  /* Set by a schedule alone; no part of the text. */
  kiln_loop_run run;
  kiln_loop_tile tile;
  KILN_VEC(kiln_loop_body_tile) body_tiles; /* in the order of the text */
  KILN_VEC(kiln_loop_unroll) unrolls;
} kiln_loop_nest;

/* What a kernel reads instead of one of its inputs: a copy with zeros around its elements, which
 * whoever calls it makes. The elements of a flipped dimension come last first. A dimension of the
 * tensor may be several of the copy: rows of 6 are 3 pairs, the last first, in
 *
 *   in b0: f32[3, 2] [2, 1] copy of [3, 2] [2, 1] flipped [1, 0]
 *
 * A copy `from 5` is of what begins at the tensor's element 5. Zeros are numbers, and the copy is
 * dense: its dimensions lie in some order. Where sizes are symbols it is of all, and none is
 * flipped. */
typedef struct kiln_loop_copy {
  kiln_dim sizes[KILN_LOOP_MAX_RANK], strides[KILN_LOOP_MAX_RANK]; /* of the input */
  kiln_dim before[KILN_LOOP_MAX_RANK];                             /* zeros */
  kiln_dim flipped[KILN_LOOP_MAX_RANK];                            /* 1: it is */
  kiln_dim from;                                                   /* the first of its elements */
} kiln_loop_copy;

typedef struct kiln_loop_buffer {
  kiln_dtype dtype;
  int rank;
  kiln_dim sizes[KILN_LOOP_MAX_RANK], strides[KILN_LOOP_MAX_RANK];
  const kiln_loop_copy *copy; /* of an input, of which it is one; NULL: it is the tensor itself */
  bool rounded;               /* set by a schedule alone: callers round its elements to bf16 */
} kiln_loop_buffer;

typedef struct kiln_loop_fn {
  kiln_arena *arena; /* borrowed */
  kiln_dims *dims;   /* of all its expressions */
  int input_count;   /* buffers [0, input_count) are read */
  int output_count;  /* the next are written; those behind them are local */
  KILN_VEC(kiln_loop_buffer) buffers;
  KILN_VEC(kiln_dtype) scalars; /* I64, F64 or BOOL */
  KILN_VEC(kiln_loop_nest *) nests;
} kiln_loop_fn;

/* -- Building (arena rules: no failure to report) -- */

kiln_loop_fn *kiln_loop_create(kiln_arena *arena);
/* Inputs first, then outputs, then local ones. Return the number. */
int kiln_loop_add_input(kiln_loop_fn *fn, kiln_dtype dtype, int rank, const int64_t *sizes,
                        const int64_t *strides);
int kiln_loop_add_output(kiln_loop_fn *fn, kiln_dtype dtype, int rank, const int64_t *sizes,
                         const int64_t *strides);
/* That the kernel reads a copy of the input: its rank and sizes, and its dimensions from the
 * outermost in memory to the innermost; `copy` lives as long. */
void kiln_loop_set_copy(kiln_loop_fn *fn, int input, int rank, const int64_t *sizes,
                        const int *order, const kiln_loop_copy *copy);
/* Its dimensions from the one whose elements lie furthest apart to the one whose lie nearest, as
 * they come where steps are alike; strides are numbers. */
void kiln_loop_memory_order(const kiln_loop_buffer *buffer, int *out_order);
/* The same of a buffer without gaps, of symbols too; false: it has gaps. */
bool kiln_loop_dense_order(kiln_dims *dims, const kiln_loop_buffer *buffer, int *out_order);
/* Whether a copy has no gaps, and zeros of a known number behind its elements. */
bool kiln_loop_is_dense_copy(kiln_dims *dims, const kiln_loop_buffer *buffer);
/* The input's copy as those who call the kernel make it. */
kiln_kernel_pack kiln_loop_describe_copy(const kiln_loop_fn *fn, int input);
/* Memory of one iteration of a nest: what it stores in one loop of its body and loads in another.
 */
int kiln_loop_add_local(kiln_loop_fn *fn, kiln_dtype dtype, int rank, const int64_t *sizes,
                        const int64_t *strides);
int kiln_loop_add_scalar(kiln_loop_fn *fn, kiln_dtype dtype);
kiln_loop_nest *kiln_loop_add_nest(kiln_loop_fn *fn, int rank, const int64_t *extents);

/* A loop in the body, to the next kiln_loop_end that is not of a loop within. */
void kiln_loop_open(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_loop_opcode kind, int64_t extent);
void kiln_loop_end(kiln_loop_fn *fn, kiln_loop_nest *nest);

/* Each adds an instruction to the nest and returns its number. Strides: of the nest's loops, then
 * of those that are open. */
int kiln_loop_load(kiln_loop_fn *fn, kiln_loop_nest *nest, int buffer, int64_t offset,
                   const int64_t *strides);
int kiln_loop_const_f(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_dtype dtype, double value);
int kiln_loop_const_i(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_dtype dtype, int64_t value);
/* A constant of any type, from a number. */
int kiln_loop_const(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_dtype dtype, double value);
int kiln_loop_scalar(kiln_loop_fn *fn, kiln_loop_nest *nest, int scalar);
int kiln_loop_dim(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_dim dim);
int kiln_loop_index(kiln_loop_fn *fn, kiln_loop_nest *nest, int64_t offset, const int64_t *strides);
/* An i64 that is below `extent`, which is at least 1. */
int kiln_loop_check(kiln_loop_fn *fn, kiln_loop_nest *nest, int value, kiln_dim extent);
/* A load that moves by `step` for each of `index`, a check. */
int kiln_loop_gather(kiln_loop_fn *fn, kiln_loop_nest *nest, int buffer, int64_t offset,
                     const int64_t *strides, int index, kiln_dim step);
/* No instruction when it has that type already; goes through f32 to and from f16 and bf16. */
int kiln_loop_cast(kiln_loop_fn *fn, kiln_loop_nest *nest, int value, kiln_dtype dtype);
/* An opcode of rule SAME, COMPARE or SELECT; unused operands are ignored. */
int kiln_loop_op(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_loop_opcode op, int a, int b, int c);
/* An opcode of rule REDUCE or FIND over that many of the open loops; its result is for behind them.
 */
int kiln_loop_reduce(kiln_loop_fn *fn, kiln_loop_nest *nest, kiln_loop_opcode op, int a, int b,
                     int loops);
void kiln_loop_store(kiln_loop_fn *fn, kiln_loop_nest *nest, int buffer, int64_t offset,
                     const int64_t *strides, int value);

/* -- Facts -- */

/* What is reduced is so by the rule of runtime/kernels/reduce/reduce.h, to the bit, whatever is a
 * vector: iteration i of all the loops of a reduction, in their order, goes to lane i %
 * KILN_REDUCE_LANES. */

/* The functions of runtime/math are the last opcodes. */
enum { KILN_LOOP_FIRST_MATH = KILN_LOOP_exp };
static inline bool kiln_loop_is_math(kiln_loop_opcode op) {
  return (int)op >= (int)KILN_LOOP_FIRST_MATH;
}

/* Where the instructions of a body stand. */
typedef struct kiln_loop_scopes {
  int *parent; /* the OPEN of the loop around each, for an END of its own loop; -1: the body */
  int *depth;  /* loops around each: the nest's and those of the body */
  int *end;    /* of each OPEN */
} kiln_loop_scopes;
/* Of a body whose loops are all closed. Arena rules; or in arrays of the caller's, which have room
 * for all instructions. */
kiln_loop_scopes kiln_loop_scopes_of(const kiln_loop_nest *nest, kiln_arena *arena);
void kiln_loop_find_scopes(const kiln_loop_nest *nest, kiln_loop_scopes *scopes);
/* Whether instruction `user` may read what instruction `value`, before it, gives. */
bool kiln_loop_sees(const kiln_loop_nest *nest, const kiln_loop_scopes *scopes, int user,
                    int value);
/* The scope of an instruction's result: an OPEN, or -1. */
int kiln_loop_home(const kiln_loop_nest *nest, const kiln_loop_scopes *scopes, int value);
static inline bool kiln_loop_has_result(kiln_loop_opcode op) {
  return kiln_loop_ops[op].rule != KILN_LOOP_RULE_STORE &&
         kiln_loop_ops[op].rule < KILN_LOOP_RULE_OPEN;
}
static inline bool kiln_loop_is_access(const kiln_loop_inst *inst) {
  return inst->op == KILN_LOOP_load || inst->op == KILN_LOOP_store || inst->op == KILN_LOOP_gather;
}
/* Whether it has an offset and strides, and so moves with loops. */
static inline bool kiln_loop_has_map(const kiln_loop_inst *inst) {
  return kiln_loop_is_access(inst) || inst->op == KILN_LOOP_index;
}
static inline bool kiln_loop_reduces(kiln_loop_opcode op) {
  return kiln_loop_ops[op].rule == KILN_LOOP_RULE_REDUCE ||
         kiln_loop_ops[op].rule == KILN_LOOP_RULE_FIND;
}
/* Whether its value hangs on the iterations before. */
static inline bool kiln_loop_carries(kiln_loop_opcode op) {
  return kiln_loop_ops[op].rule == KILN_LOOP_RULE_SCAN;
}

/* Whether it opens a loop over the iterations of one part: of `offset`, or what is left of them. */
static inline bool kiln_loop_is_part(const kiln_loop_inst *inst) {
  return kiln_loop_ops[inst->op].rule == KILN_LOOP_RULE_OPEN && inst->index >= 0;
}

/* Whether what is reduced are products of two. */
static inline bool kiln_loop_multiplies(kiln_loop_opcode op) {
  return op == KILN_LOOP_dot || op == KILN_LOOP_contract;
}

/* Whether there is a contraction in it. */
static inline bool kiln_loop_contracts(const kiln_loop_nest *nest) {
  for (int i = 0; i < nest->body.count; i++)
    if (nest->body.data[i].op == KILN_LOOP_contract) return true;
  return false;
}

/* The loops of the body that move an access, innermost first, without those of one iteration and
 * with those as one that it walks as one. Gives their number. */
typedef struct kiln_loop_move {
  kiln_dim extent, stride;
} kiln_loop_move;
int kiln_loop_moves(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                    const kiln_loop_scopes *scopes, int number, kiln_loop_move *out_moves);
/* Whether two accesses walk the same places in their loops of the body, in the same order. */
bool kiln_loop_same_moves(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                          const kiln_loop_scopes *scopes, int a, int b);
/* The reduction that gives a scan's last value. */
kiln_loop_opcode kiln_loop_carried(kiln_loop_opcode op);
/* What a reduction or a scan begins with. */
double kiln_loop_first_f(kiln_loop_opcode op);
int64_t kiln_loop_first_i(kiln_loop_opcode op, kiln_dtype dtype);
/* Rough nanoseconds of one instruction on one element, with wide vectors. */
double kiln_loop_inst_cost(const kiln_loop_inst *inst);
/* The same on a vector, no wider than a register. */
double kiln_loop_vector_cost(const kiln_loop_inst *inst);
/* Of one iteration of a nest, with the loops of its body, where vectors of nest->run.lanes go along
 * that loop of the nest, or those of the body (-1). -1: the loops are no numbers. */
double kiln_loop_iteration_cost(const kiln_loop_nest *nest, int vector_loop);
/* Which loop back ends turn into vectors: the innermost ones of the body, or else the nest's
 * innermost one. Where no schedule says it, those with which accesses move by one element decide:
 * of sums over the rows of a matrix it is the loop of the sum, of those over its columns the loop
 * over the columns. */
bool kiln_loop_strips_body(const kiln_loop_nest *nest);
/* Takes out the instructions that are not kept, which nothing that is kept uses. Gives whether
 * there were any. */
bool kiln_loop_keep(kiln_loop_nest *nest, const bool *keep, kiln_arena *scratch);

/* How many outer loops each instruction must stand in: 0 is outside all loops (constants, scalars),
 * rank is innermost. Back ends compute an instruction at its level: this hoists what is invariant.
 */
void kiln_loop_levels(const kiln_loop_nest *nest, int *out_levels);
/* Counts, donors, grid, cost, how to cut it; of a symbolic kernel its shape, in `arena`. A call's
 * scratch is own_bytes and the local buffers of `lanes` (see kiln_loop_flat). KILN_UNSUPPORTED: its
 * sizes are too much to work out. The first axis of the grid is all nests' first axes behind each
 * other, but for nests that join the one before them: a nest covers as many iterations as its loop
 * has, one without axes one. Where no schedule
 * says which loops are axes, they are the outermost ones, but for one that is the vectors'. Of
 * nests [4, 50, 100] and [2, 9] the grid is then [6, 50, 1]: the second runs in the boxes that
 * begin with iteration 0 of the second axis. */
kiln_status *kiln_loop_info(const kiln_loop_fn *fn, int lanes, int64_t own_bytes, kiln_arena *arena,
                            kiln_kernel_info *out_info) KILN_MUST_USE;
/* How many axes a nest has, the loop of one, and its extent; 1 of one that it has not. */
int kiln_loop_nest_axes(const kiln_loop_nest *nest);
int kiln_loop_nest_axis(const kiln_loop_nest *nest, int axis);
kiln_dim kiln_loop_nest_extent(const kiln_loop_nest *nest, int axis);
/* How many of its iterations are one of the grid's: the rows of a tile, which no box cuts; else 1.
 * The last has what is left: 30 rows in tiles of 4 are 8 iterations. */
int kiln_loop_nest_step(const kiln_loop_nest *nest, int axis);
/* Whether the nest takes the same iterations of the grid's first axis as the one before it, not
 * those behind them: both have as many, and store into one buffer. Where the two write its even and
 * its odd elements, each thread then has lines of its own. */
bool kiln_loop_nest_joins(const kiln_loop_fn *fn, int n);
/* Whether a box may cut the loop whose iterations a tile takes. */
bool kiln_loop_cuts_tile(const kiln_loop_nest *nest);
/* Whether it checks an index. */
bool kiln_loop_can_fault(const kiln_loop_fn *fn);
/* Its symbols are s0 up to that number. */
int kiln_loop_symbol_count(const kiln_loop_fn *fn);

enum { KILN_LOOP_LANES = KILN_REDUCE_LANES }; /* at most, in generated code */

/* What a back end makes code of: a kernel whose dimensions in nests are numbers, or symbols that
 * are the results of a program. [s0*s1 + 1] is [s0], and the program makes s0*s1 + 1 of the call's
 * symbols. */
typedef struct kiln_loop_flat {
  const kiln_loop_fn *fn;
  const kiln_dim_program *values; /* NULL: there are numbers alone */
  /* First bytes of the local buffers, which have whole lines of 64, and where they end: where a
   * nest's own loop is the vectors', each lane has one, of as many as the schedule says, or
   * `lanes`. */
  const kiln_dim *places;
} kiln_loop_flat;
/* In the arena; of a kernel without symbols it is the kernel. */
kiln_loop_flat kiln_loop_flatten(const kiln_loop_fn *fn, int lanes, kiln_arena *arena);

/* -- Text -- */

/* "f32"; "?": none. */
const char *kiln_loop_dtype_name(kiln_dtype dtype);
/* The canonical text, whose digest is the kernel's name. */
kiln_str kiln_loop_print(const kiln_loop_fn *fn, kiln_arena *arena);
/* Parses and verifies. KILN_INVALID_ARGUMENT with the line. */
kiln_status *kiln_loop_parse(kiln_str text, kiln_arena *arena, kiln_loop_fn **out_fn) KILN_MUST_USE;

/* Types, operands, index maps within their buffers, every output element stored by one nest at
 * most. KILN_INTERNAL says what is wrong and where. */
kiln_status *kiln_loop_verify(const kiln_loop_fn *fn) KILN_MUST_USE;

/* -- Passes -- */

/* All have this form; *out_changed tells whether anything was. Temporary memory comes from
 * `scratch`. The order that compiling uses is kiln_loop_optimize's. */
typedef kiln_status *(*kiln_loop_pass)(kiln_loop_fn *fn, kiln_arena *scratch, bool *out_changed);

/* Equal pure instructions become one; what no store needs goes; constants are folded through casts.
 */
kiln_status *kiln_loop_pass_cse(kiln_loop_fn *fn, kiln_arena *scratch,
                                bool *out_changed) KILN_MUST_USE;
/* Loops are put in the order of the strides of the stores, greatest first. */
kiln_status *kiln_loop_pass_order(kiln_loop_fn *fn, kiln_arena *scratch,
                                  bool *out_changed) KILN_MUST_USE;
/* Neighbouring loops that every access walks as one become one; loops of one iteration go. In the
 * body those do which hold nothing but the next. */
kiln_status *kiln_loop_pass_collapse(kiln_loop_fn *fn, kiln_arena *scratch,
                                     bool *out_changed) KILN_MUST_USE;
/* What does not move with a loop of the body stands before it. */
kiln_status *kiln_loop_pass_hoist(kiln_loop_fn *fn, kiln_arena *scratch,
                                  bool *out_changed) KILN_MUST_USE;
/* What a loop of the body computes, and one behind it again, goes through a local buffer. */
kiln_status *kiln_loop_pass_keep(kiln_loop_fn *fn, kiln_arena *scratch,
                                 bool *out_changed) KILN_MUST_USE;
/* All of them, in the order that compiling wants. */
kiln_status *kiln_loop_optimize(kiln_loop_fn *fn, kiln_arena *scratch) KILN_MUST_USE;
