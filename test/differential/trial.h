/* trial.h: one case of the differential test and of `./dev fuzz operators`: an operator and a seed.
 *
 * The case is a small graph around the operator, whose arguments draw.h draws: its tensors are
 * inputs, so that fusion acts, or constants, so that folding acts, or both; some come from a node
 * before it, some of its results go into a node behind it. The plain interpreter runs it in two
 * instances whose memory is filled with different bytes, and the JIT by the evaluator and by LLVM,
 * before and after they compile, with two sets of inputs, the second of other shapes and dtypes.
 * Dtypes, sizes, strides, aliases, bits and errors must be the same, calls must end in time, and
 * nothing may stay behind. Not compared are what an operator leaves as it was in memory
 * (KILN_OP_UNINITIALISED) and calls that reach a limit. */
#pragma once

#include "test/differential/draw.h"

typedef struct trial {
  const draw_op *op;
  uint64_t seed;             /* draw.h */
  bool print, list, no_llvm; /* list: its name, before it runs */
  /* With edges (draw_edge) a case is made in two modes alone, with all its arguments. */
  bool edges;
  int at, which;
  int tensor, other; /* that argument, from 1, and its edge; 0: none; -1: all of them */
} trial;

typedef struct trial_counts {
  int cases, succeeded, unbuilt, found;
  int choices, tensors; /* of the last case: those that an edge can replace */
  uint64_t compiled_runs;
} trial_counts;

/* `limits` of every call; those for cases that would take all memory and time. */
extern const kiln_limits trial_wild_limits;
void trial_open(const kiln_limits *limits);
void trial_close(void);
/* Operators that can be called with drawn arguments and give the same every time. */
int trial_op_count(void);
const draw_op *trial_op_at(int index);
const draw_op *trial_find(const char *name); /* or NULL */

/* Its edges from "2.0.0.0" (at, which, tensor, other); none where that is no such text. */
void trial_take_edges(trial *t, const char *text);
/* 1: the operator gave results; 0: errors; -1: there is no such graph. What is found is printed
 * with what makes it again. */
int trial_run(const trial *t);
extern trial_counts trial_counted;
