/* plan.h: bytecode plans, what the interpreter runs. A plan never mentions a graph.
 *
 * A plan is const once published: what it counts are numbers in its model's book (counter.h), and
 * times are kept beside it. It lives in one arena, and owns its constants. Registers are
 * ivalues of the frame; every value has one, and an operand that is a value's last use moves it
 * out, so a tensor's memory returns at once.
 *
 * Its instructions are a table, runtime/instr.def. What a frame has entered (ENTER) is also left
 * while unwinding, unless a limit or lack of memory stopped it. FORK runs its function in PyTorch's
 * inline order, or, where its callable allows that, as a task of the pool.
 *
 * Donation. The memory of an operand takes a result where the plan says so: the operand is marked
 * DONATE. It is that where its kernel can (kiln_group_output.donor, kiln_reuse), where the register
 * ends and no other operand of the instruction reads it, and where the tensor is no constant, no
 * attribute and no view of one. What a plan cannot know is asked when it runs: whether somebody
 * else holds the tensor or its memory, and whether that is writable and has the result's sizes.
 *   r1 = view(r0); r2 = relu(r1^)   relu writes over r1 where r0 ended before
 *   r0 = relu(r0^), an argument     it does where the caller's register ended with the call
 *
 * Borrowing. Threads that call one instance all read its modules and weights, and would write their
 * counts. A register holds no reference where the plan says so (kiln_plan_borrows): on the object
 * that the function is a method of, which the caller has, and on attributes of it, and of those,
 * that nothing in the plan sets.
 *   thread A: r1 = self.fc, borrowed; r2 = r1.weight, borrowed; r0 = linear(r0!, r2)
 *   thread B: the same at the same time; neither writes a line that the other reads
 *   thread C: self.fc = other: waits or is refused, since A and B read it (api/instance.c)
 * What takes a value out of such a register, RET or LIST, counts its own reference. Results that
 * the plan keeps (kept.h) are in such registers too.
 *
 * Rules for who makes a plan: a register is empty (or holds no reference) when it is written;
 * an operand without MOVE leaves its register as it is; of several operands of one instruction
 * that name one register, only one is marked MOVE. An output register may be that of a moved
 * input. */
#pragma once

#include "runtime/guard.h"
#include "runtime/kernel.h"
#include "runtime/kept.h"
#include "runtime/kernel_shape.h"
#include "runtime/kernels/heavy/blocked.h"
#include "runtime/kernels/heavy/grouped.h"
#include "runtime/kernels/heavy/winograd.h"
#include "runtime/pack.h"
#include "runtime/record.h"
#include "runtime/source.h"

typedef enum kiln_instr_op {
#define KILN_INSTR(name, x, ins, outs, meaning) KILN_INSTR_##name,
#include "runtime/instr.def"
#undef KILN_INSTR
  KILN_INSTR__COUNT
} kiln_instr_op;

/* The inputs whose MOVE the flags of an OP repeat, a bit each, so that it need not look for them.
 */
enum { KILN_INSTR_MOVE_BITS = 16 };

typedef struct kiln_instr {
  uint16_t op;
  uint16_t in_count, out_count;
  uint16_t flags;
  uint32_t x;
  uint32_t operands; /* index in plan->operands: inputs, then outputs */
} kiln_instr;
_Static_assert(sizeof(kiln_instr) == 16, "four instructions a cache line");

/* An OP that needs no thought but its kernel is an OP_FRESH: it has one result, in new memory. */
static inline bool kiln_op_is_fresh(const kiln_kernel *kernel, int in_count, int out_count) {
  return out_count == 1 && in_count <= KILN_INSTR_MOVE_BITS && kernel->body &&
         kernel->dest_arg < 0 && !kernel->reuse;
}
static inline bool kiln_instr_is_op(const kiln_instr *in) {
  return in->op == KILN_INSTR_OP || in->op == KILN_INSTR_OP_FRESH;
}

/* What an instruction took, in plans that are timed; atomic, relaxed. And what it computes and
 * moves, with the sizes that the plan was made for; 0: nothing, or nothing that is known. Of an
 * operator whose types do not tell, the tensors that went in the first time. */
typedef struct kiln_instr_time {
  uint64_t ns, count;
  uint64_t flops, bytes;
  bool unweighed; /* they are to be looked at */
} kiln_instr_time;

typedef struct kiln_plan kiln_plan;

/* -- Interfaces that are filled from above -- */

/* How a forked function may run. */
typedef enum kiln_fork_flag {
  KILN_FORK_INLINE,      /* before its frame goes on */
  KILN_FORK_BESIDE,      /* beside its frame */
  KILN_FORK_INDEPENDENT, /* the same, and it waits for no future that it did not make */
  KILN_FORK_UNKNOWN,     /* not known yet: inline */
} kiln_fork_flag;

/* Something with plans: a function, a method, a fallback. Filled by jit. */
typedef struct kiln_callable {
  const char *name; /* qualified */
  /* The plan to run for these arguments (borrowed). It stays valid until the host's call ends. */
  kiln_status *(*get_plan)(const struct kiln_callable *self, kiln_call *call,
                           const kiln_ivalue *args, int arg_count, const kiln_plan **out_plan);
  int arg_count;
  uint32_t call_counter; /* runtime/counter.h; 0: not counted */
  kiln_fork_flag fork;   /* of the function of a FORK */
  bool is_part; /* of the plan's own function: its ranges tell the whole way to what they stand for
                 */
} kiln_callable;

enum {
  KILN_GROUP_VALUES = 128, /* inputs and outputs of one group, at most */
  KILN_GROUP_DIMS = 2048,  /* sizes and strides of its outputs, and what they are worked out of */
};

typedef struct kiln_group_output {
  kiln_dtype dtype;
  int rank;
  const kiln_dim *sizes, *strides; /* numbers; of a group with symbols NULL */
  int first;                       /* there: of its sizes, then strides, in the group's `dims` */
  bool contiguous;
  int border;      /* around it in memory (runtime/border.h); 0: there is none */
  uint32_t donors; /* operands in whose memory the kernel could write it, bits 1 << i */
  int donor;       /* the one that the plan chose, which is marked DONATE; or -1 */
  /* Of a kernel that writes a part of it, of which channels 48 to 95 are one: the operand that has
   * the rest (-1: nothing is written yet), whose memory it takes, or is copied; and the part's
   * first element. With symbols that stands behind its strides in `dims`. */
  bool is_part;
  int whole;
  int64_t begin;
} kiln_group_output;
/* An input that a kernel wants packed. */
typedef struct kiln_group_pack {
  const kiln_kernel_pack *pack;
  int operand;          /* of the group's inputs */
  kiln_pack_slot *slot; /* NULL: it is no weight, and packed in each call */
  int border;           /* that the operand has, so that it is its own copy; 0: it has none */
} kiln_group_pack;
enum { KILN_GROUP_PACKS = 8 };

/* Of a group whose contraction runs in the core's kernels, by Winograd's convolutions, as those of
 * narrow groups or in blocks: what fn computes from its result, fn's last input, goes over complete
 * rows of that in place. */
typedef struct kiln_group_heavy {
  kiln_core_machine machine;
  kiln_winograd winograd; /* the problem, as the transform of `pack` says; batch 0: as x is, in the
                             form that is best for it */
  kiln_grouped grouped;   /* batch 0: as x is */
  kiln_blocked blocked;   /* rows 0: as many as x has */
  bool alone;             /* fn has nothing to do */
  int x, weight, bias;    /* operands; -1: there is no bias, or it is fn's */
  int given;              /* fn's input that is the contraction's result */
  int carrier;            /* the group's output in whose memory that lies */
  kiln_kernel_pack pack;  /* the weight's transform */
  kiln_pack_slot *slots;  /* keep it, one of each form */
} kiln_group_heavy;

/* A fused kernel and how to call it. Filled by jit from codegen's kernel. */
typedef struct kiln_group {
  const char *name; /* "TensorExprGroup_0" */
  const kiln_device *device;
  kiln_kernel_fn fn;   /* NULL while not compiled: never reached then */
  const void *closure; /* of the evaluator back end; else NULL */
  /* Its operators, of a kernel that can fault or wants packed inputs: they run where it did, or
   * where there is no memory for copies. Else NULL. */
  const kiln_callable *interpreted;
  int input_count; /* tensors and scalars, as kiln_kernel_args wants them */
  int output_count;
  const kiln_group_output *outputs;
  kiln_kernel_work work;
  /* Of a kernel for many sizes: NULL for others. */
  const kiln_kernel_shape *shape;
  const kiln_dim_program *dims; /* of all outputs; within KILN_GROUP_DIMS */
  int symbols_at;               /* in the frame's symbols */
  int pack_count;               /* at most KILN_GROUP_PACKS */
  const kiln_group_pack *packs;
  const kiln_group_heavy *heavy; /* NULL: fn computes all */
  uint32_t runs;                 /* a counter */
} kiln_group;

/* What a profiling plan does with its records when a run ended well. Called once a run, with the
 * frame's own records; a failed run never gets here and so leaves no trace. */
typedef struct kiln_profile_sink {
  void (*commit)(struct kiln_profile_sink *self, const kiln_type_record *records, int count);
  bool is_full; /* atomic: runs that begin from here on need not record */
} kiln_profile_sink;

typedef struct kiln_type_span {
  int count;
  const kiln_type *const *types;
} kiln_type_span;

/* Finds the method of an object for CALL_METHOD, ENTER and EXIT. Filled by jit. */
typedef struct kiln_method_lookup {
  kiln_status *(*find)(const struct kiln_method_lookup *self, const kiln_type *cls, kiln_str name,
                       const kiln_callable **out_callable);
} kiln_method_lookup;

/* export/plans.c names the fields that a program has, and export/structs.c those of groups. */
struct kiln_plan {
  const char *name;
  kiln_arena *arena;  /* owns everything below */
  int register_count; /* first the arguments, then what is borrowed */
  int arg_count, borrowed_count, result_count;
  bool borrows_self; /* argument 0 */
  int max_in;        /* largest in_count, for the frame's argument space */
  int max_entered;   /* objects that ENTER may hold at once */
  const kiln_instr *code;
  int code_count;
  const kiln_operand *operands;
  kiln_ivalue *constants; /* owned */
  int constant_count;
  const kiln_kernel *const *kernels;
  int kernel_count;
  const kiln_callable *const *callables;
  int callable_count;
  const kiln_guard_desc *guards; /* each of one TYPECHECK, whose operands it looks at */
  int guard_count;
  const kiln_group *groups;
  int group_count;
  const kiln_kept_op *kept; /* each of one KEPT; their slots are the plan's */
  int kept_count;
  int symbol_count;                   /* of all guards */
  const kiln_guard_desc *entry_guard; /* that holds before the plan starts, and has symbols; NULL */
  int record_count;                   /* records of a profiling plan */
  kiln_profile_sink *sink;            /* NULL in plans that do not profile */
  const kiln_type *const *types;
  int type_count;
  const kiln_type_span *type_lists;
  int type_list_count;
  const kiln_str *strings;
  int string_count;
  const kiln_method_lookup *methods;      /* NULL: none are looked up */
  const kiln_source_range *const *ranges; /* [code_count]; entries may be NULL */
  kiln_instr_time *times;                 /* [code_count]; NULL: not timed */
};

/* Whether the register holds no reference: nothing moves or drops it, and only BORROW_ATTR and KEPT
 * write it. */
static inline bool kiln_plan_borrows(const kiln_plan *plan, uint32_t index) {
  const uint32_t args = (uint32_t)plan->arg_count;
  return index == 0 ? plan->borrows_self
                    : index >= args && index - args < (uint32_t)plan->borrowed_count;
}

/* Releases constants and the arena. Kernels of groups are released by their owner in jit. */
void kiln_plan_destroy(kiln_plan *plan);
/* One instruction a line: `kiln graph --stage bytecode`. */
void kiln_plan_print(const kiln_plan *plan, kiln_text *text);
/* Checks that every index is in range and every jump lands on an instruction; KILN_INTERNAL. */
kiln_status *kiln_plan_verify(const kiln_plan *plan) KILN_MUST_USE;

/* The name of an operation: "CALL". */
const char *kiln_instr_name(kiln_instr_op op);
/* Ends the time of the instruction that runs and starts that of `in` (NULL: none). */
void kiln_plan_tick(kiln_call *call, const kiln_plan *plan, const kiln_instr *in);

/* -- The interpreter -- */

/* Runs a callable to its end: frames are on a stack of the call, not on C's, so script recursion
 * is bounded by the limit only. `args` are borrowed. One result: a function's tuple is one value.
 * Errors carry the model's traceback. */
kiln_status *kiln_interp_run(kiln_call *call, const kiln_callable *callable,
                             const kiln_ivalue *args, int arg_count,
                             kiln_ivalue *out_result) KILN_MUST_USE;
/* Gives back the stack that runs of this call have left in call->frames, for kiln_call_destroy. */
void kiln__interp_free_frames(kiln_call *call);
