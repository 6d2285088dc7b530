/* eval_program.h: what the evaluator runs: eval_program.c makes it, eval_run.c runs it. */
#pragma once

#include "codegen/loop/eval.h"
#include "codegen/loop/eval_table.h"

enum {
  EVAL_MOST_BLOCK = 2048, /* elements; a multiple of LEAST */
  EVAL_LEAST_BLOCK = 64,
  EVAL_BLOCK_BYTES = 1 << 15, /* of all values of a nest's block, where they fit */
  EVAL_COLUMNS = 64,          /* at most, where the nest's body has loops or reads transposed */
  EVAL_ROWS = 32,             /* at most, where vectors are along the body */
  EVAL_LINE = 64
};

typedef enum eval_kind {
  EVAL_CALL,
  EVAL_LOAD,
  EVAL_STORE,
  EVAL_LEAF, /* a number */
  EVAL_INDEX,
  EVAL_CHECK,
  EVAL_GATHER,
  EVAL_REDUCE,
  EVAL_SCAN,
  EVAL_OPEN,
  EVAL_END
} eval_kind;

/* Of which of the block's loops there are values. */
enum { EVAL_EACH_ROW = 1, EVAL_EACH_COLUMN = 2 };

typedef struct eval_inst {
  kiln_loop_inst inst;
  eval_kind kind;
  eval_fn fn;   /* of CALL; of a load or gather of bools */
  int size;     /* of an element */
  int depth;    /* loops around it */
  int row_loop; /* the block's, of what has values for each; -1 */
  int column_loop;
  int iterations;  /* EVAL_EACH_ROW, EVAL_EACH_COLUMN: for which it runs */
  int values;      /* for which its result has values: fewer where it reduces */
  int operands[3]; /* numbers of pointers: see eval_nest */
  bool spreads;    /* its result is read where a block has more values */
  bool in_place;   /* of a load: where elements lie as the block does */
  bool steady;     /* of a load: blocks of whole columns have the same values */
  int store;       /* of CALL: the store of its result, where that may be done at once; -1 */
  int end;         /* of OPEN */
  bool innermost;  /* OPEN: nothing in it opens */
  int first;       /* of OPEN: what reduces or scans from there on; of those: its own; -1 */
} eval_inst;

/* What is reduced or scanned. Scratch has its lanes; FIND has the best values, and their places,
 * SCAN what it carries. */
typedef struct eval_reduction {
  int inst;
  int next; /* of those that begin with the same loop; -1 */
  int type; /* of its operands, and their size */
  int size;
  eval_reducer fns;
  eval_finder find; /* of FIND */
  eval_scanner scan;
  eval_fn combine;   /* two lanes, of columns */
  bool may_be_whole; /* one loop, whose blocks are of rows */
  size_t lanes_at, places_at;
} eval_reduction;

/* Pointer 2 x i is the value of instruction i, 2 x i + 1 a row's value spread over its columns. */
typedef struct eval_nest {
  int rank, count;
  int axes;        /* of the grid: outermost loops that a box cuts */
  bool joins;      /* see kiln_loop_nest_joins */
  int outer;       /* loops around blocks */
  bool along_body; /* vectors are */
  bool has_loops;  /* in the body */
  bool many_rows;  /* along the body: a block may have more than one */
  int block;       /* elements of one at most */
  kiln_dim extents[KILN_LOOP_MAX_RANK], grid[KILN_KERNEL_AXES];
  int phases[KILN_LOOP_MAX_RANK + 2]; /* first instruction of each level, and the count */
  eval_inst *body;
  eval_reduction *reductions;
  size_t *slots;   /* in scratch, of the pointers */
  size_t tiles_at; /* of local buffers, where a block has many rows: a block of 8 bytes each */
} eval_nest;

struct kiln_eval_program {
  kiln_mem *mem; /* borrowed */
  const kiln_eval_table *table;
  size_t bytes;     /* of this block */
  int shared_count; /* buffers that are not local */
  int nest_count;
  eval_nest *nests;
  /* Scratch of a call: pointers, values of symbols, what a nest needs, then local buffers. */
  size_t values_at, own_bytes;
  kiln_dim *places;               /* of the local buffers, behind own_bytes */
  const kiln_dim_program *values; /* NULL: the dimensions are numbers */
};
