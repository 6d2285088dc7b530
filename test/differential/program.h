/* program.h: the random programs of streams.c, and what they are called with.
 *
 * A program is a function of its seed. Its steps are nodes of a table, which broadcast and change
 * sizes in ways that are known; views by sizes; branches and loops; and calls of any operator that
 * becomes loop IR. Such a call is drawn by the operator's schema, and stays where it gives
 * something for the samples that go along with the program: what its variables are for the inputs
 * of the first call. */
#pragma once

#include "kiln/kiln_graph.h"
#include "test/differential/draw.h"

enum {
  MAX_NODES = 14,
  MAX_VARS = 48,
  INPUTS = 5,
  MAX_ARGS = 24,
  MAX_RESULTS = 8,
  MAX_SAMPLES = 4096,
  MAX_CHOICES = 1024
};

/* Sizes of a variable, as letters: "ab", "b", "a1". */
typedef struct variable {
  kiln_var var;
  char sizes[8];
  /* It may be a branch's or loop's result. Such are not written, nor are those of a block: where
   * the interpreter cannot tell that nobody reads it then, it computes, and complains of, what the
   * JIT leaves out. What is written is returned. */
  bool joined, written;
} variable;

/* Whether a drawn call stays, and what it gives. */
typedef struct choice {
  bool stay;
  variable out;
} choice;
typedef struct choices {
  choice all[MAX_CHOICES];
} choices;

typedef struct program {
  draw d;
  kiln_context *context;
  kiln_builder *b;
  variable vars[MAX_VARS];
  int count;
  int outside; /* of branches and loops: variables that were there before; 0: it is outside */
  kiln_model *model;
  kiln_instance *instance;
  kiln_value *samples[MAX_SAMPLES]; /* by variable; NULL: none */
  choices *choices;
  bool chosen; /* by another program of the same seed; else this one chooses */
  int choice;
} program;

/* Finds the operators that become loop IR. Where they are called for samples, little memory is
 * there. */
void program_open(void);
void program_close(void);
int program_op_count(void);
extern int program_faults; /* operators that do not do what they say, as samples showed */

/* Sizes of the inputs, as letters. */
extern const char *const program_inputs[INPUTS];
/* Input `i` of the call whose draw and sizes a, b, c are these. */
void program_draw_call(uint64_t seed, int call, draw *d, int64_t *abc);
kiln_value *program_input(kiln_context *context, draw *d, int i, const int64_t *abc);

/* Of p's context and choices. False: there is no such program. */
bool program_build(program *p, uint64_t seed, bool print);
void program_destroy(program *p);
