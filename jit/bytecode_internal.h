/* bytecode_internal.h: between the files of the emitter, bytecode*.c. */
#pragma once

#include "jit/bytecode.h"

typedef KILN_VEC(kiln_ir_value *) kiln_value_vec;

/* The instruction that was looked at last among those that read a register, and its last operand
 * that does. */
typedef struct kiln_last_read {
  int instr, operand;
} kiln_last_read;

typedef struct kiln__bytecode_emitter {
  kiln_arena *arena;   /* of the plan */
  kiln_arena *scratch; /* of this emission */
  const kiln_bytecode_env *env;
  kiln_plan *plan;
  KILN_VEC(kiln_instr) code;
  const kiln_graph *graph;
  KILN_VEC(const kiln_source_range *) ranges;
  kiln_map own_ranges; /* of the graph -> of the plan */
  KILN_VEC(kiln_operand) operands;
  KILN_VEC(kiln_ivalue) constants;
  KILN_VEC(const kiln_kernel *) kernels;
  KILN_VEC(const kiln_callable *) callables;
  KILN_VEC(kiln_guard_desc) guards;
  KILN_VEC(kiln_group) groups;
  KILN_VEC(kiln_kept_op) kept;
  KILN_VEC(const kiln_type *) types;
  KILN_VEC(kiln_type_span) type_lists;
  KILN_VEC(kiln_str) strings;
  kiln_map kernel_index, constant_index; /* pointer -> index + 1 */
  kiln_map wrapped_kernels;              /* kernel -> what stands for it */
  kiln_ir_value **roots;                 /* of a value, by id: whose other name it is */
  uint8_t *held;                         /* of a value, by id */
  kiln_map blocks;                       /* -> their numbers */
  kiln_map last_uses;                    /* block's number and root's id -> node */
  int32_t *regs;                         /* of a value, by id; -1: none */
  int32_t *owners;                       /* of a kept value, by id: KEPT's second half; -1 */
  int32_t *hints;                        /* register that a value would best get, by id; -1 */
  KILN_VEC(uint8_t) live, reserved;      /* of a register */
  KILN_VEC(kiln_last_read) last_reads;   /* of a register */
  int last_reads_of;                     /* the instruction that they were looked for in; -1 */
  uint32_t *wanted, asked;               /* of a value, by id: the question whose answer is yes */
  int free_from;                         /* all registers before it are taken */
  kiln_map deaths;                       /* node -> kiln_value_vec*: values whose last use it is */
  uint8_t *unset;                        /* of a value, by id: it may be uninitialised */
  int record_count, enter_count;
  int too_wide; /* number of an instruction, from 1, with more operands than there may be; or 0 */
  const kiln_source_range *range; /* of the node being emitted */
  const kiln_node *node;
  KILN_VEC(kiln_instr_time) times; /* of each instruction, where the plan is timed */
} kiln__bytecode_emitter;

/* -- Names and last uses (bytecode_lives.c) -- */

/* Before all else that is asked about the graph. */
void kiln__bytecode_find_lives(kiln__bytecode_emitter *e, const kiln_graph *graph);
/* The value that `v` is another name of: refined by a check, profiled, cast. */
static inline kiln_ir_value *kiln__bytecode_root(const kiln__bytecode_emitter *e,
                                                 const kiln_ir_value *v) {
  return e->roots[v->id];
}
/* An attribute, a constant, or (maybe) a view of one: somebody holds it for as long as the plan is
 * run. */
static inline bool kiln__bytecode_is_held(const kiln__bytecode_emitter *e, const kiln_ir_value *v) {
  return e->held[v->id];
}
/* The last node of `block` that uses a root, itself or inside, under any name; NULL: none does. */
kiln_node *kiln__bytecode_last_use(const kiln__bytecode_emitter *e, const kiln_ir_value *root,
                                   const kiln_block *block);

/* Values of these types hold no reference: no MOVE, no DROP. */
bool kiln__bytecode_is_counted(const kiln_ir_value *v);

/* bytecode_costs.c: what the node's instruction `op` computes and moves. */
kiln_instr_time kiln__bytecode_cost(const kiln__bytecode_emitter *e, kiln_instr_op op);

/* The lowest that is free, taken. */
int kiln__bytecode_register(kiln__bytecode_emitter *e);
/* Instruction with room for operands; fill them by index. */
int kiln__bytecode_instr(kiln__bytecode_emitter *e, kiln_instr_op op, int in_count, int out_count,
                         uint32_t x);
static inline kiln_operand *kiln__bytecode_operands(kiln__bytecode_emitter *e, int at) {
  return e->operands.data + e->code.data[at].operands;
}
/* The operand that reads a value, without MOVE. */
kiln_operand kiln__bytecode_read(kiln__bytecode_emitter *e, kiln_ir_value *v);
uint32_t kiln__bytecode_constant(kiln__bytecode_emitter *e, const kiln_ivalue *value);

/* For a node that takes two instructions: `at` has its inputs, and what it makes is taken apart by
 * `unpack` into the node's outputs. */
void kiln__bytecode_unpack_of(kiln__bytecode_emitter *e, kiln_node *node, int at,
                              kiln_instr_op unpack);
/* The plan's own copy of a range of the graph. */
const kiln_source_range *kiln__bytecode_range(kiln__bytecode_emitter *e,
                                              const kiln_source_range *range);

/* -- What is read without being counted (bytecode_borrow.c, runtime/plan.h) -- */

/* Gives registers to attributes that are borrowed, and to what the plan keeps; the arguments have
 * theirs, and nobody else. */
void kiln__bytecode_borrow(kiln__bytecode_emitter *e, const kiln_graph *graph);
static inline bool kiln__bytecode_borrows(const kiln__bytecode_emitter *e, const kiln_ir_value *v) {
  return e->regs[v->id] >= 0 && kiln_plan_borrows(e->plan, (uint32_t)e->regs[v->id]);
}

/* -- Values whose static type is only claimed (bytecode_check.c) -- */

/* A CHECK that `v` is of `type`. */
void kiln__bytecode_check(kiln__bytecode_emitter *e, kiln_ir_value *v, const kiln_type *type);
/* Whether the cast needs none. */
bool kiln__bytecode_is_proved(kiln__bytecode_emitter *e, const kiln_node *cast);
/* Fills e->unset. */
void kiln__bytecode_find_unset(kiln__bytecode_emitter *e, const kiln_graph *graph);
/* Before the instructions of `node`: checks of those of its inputs that may be uninitialised. */
void kiln__bytecode_check_unset(kiln__bytecode_emitter *e, const kiln_node *node);

/* A whole node as one instruction: inputs from `first_input` on, all outputs, moves and drops. */
kiln_status *kiln__bytecode_direct(kiln__bytecode_emitter *e, kiln_node *node, kiln_instr_op op,
                                   uint32_t x, int first_input, int input_count,
                                   int output_count) KILN_MUST_USE;
/* Every node but If and Loop. */
kiln_status *kiln__bytecode_node(kiln__bytecode_emitter *e, kiln_node *node) KILN_MUST_USE;
/* Marks operands of instruction `at`, whose inputs are the node's, that donate their memory. After
 * MOVE was marked. */
void kiln__bytecode_donations(kiln__bytecode_emitter *e, kiln_node *node, int at);
/* Drops what dies at the node and was not moved by it. */
void kiln__bytecode_finish(kiln__bytecode_emitter *e, kiln_node *node);
