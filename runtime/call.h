/* call.h: the state of one call by the host: memory cache, limits, what kernels need.
 *
 * A kiln_call belongs to one thread and is pooled by its instance. Kernels get it as their first
 * argument and allocate through it. */
#pragma once

#include "runtime/counter.h"
#include "runtime/cycles.h"
#include "runtime/meter.h"
#include "runtime/random.h"
#include "runtime/recent.h"

typedef struct kiln_call {
  kiln_env *env; /* borrowed */
  kiln_cache cache;
  const struct kiln_dispatch
      *dispatch;   /* pointwise kernels of this CPU: runtime/kernels/dispatch.h */
  kiln_pool *pool; /* the context's, borrowed; NULL: one thread. For kiln_pool_for */
  kiln_limits limits;
  kiln_budget budget; /* of those limits; the thread's while the call runs */
  /* What compiling may still take in this call, beside its own limits. */
  uint64_t compile_ns, compile_bytes;
  uint32_t recursion;               /* nested calls that count: runtime/interp.c */
  const struct kiln_kernel *kernel; /* being run, and its arguments: kiln_kernel_run sets both */
  int arg_count;
  const uint32_t *facts;    /* of the memory: kiln_mem_facts */
  struct kiln_epoch *epoch; /* that its runs of plans are in: base/epoch.h; NULL: none */
  bool grad_mode;
  bool jit;                        /* profile and use specialised plans */
  bool plans_memory;               /* base/workspace.h: in runs that begin from here on */
  bool timed;                      /* instructions of plans that have `times` are timed */
  uint32_t untimed;                /* calls since one was */
  struct kiln_instr_time *ticking; /* of the instruction that runs, when timed; or NULL */
  uint64_t ticked_at;              /* nanoseconds: when it began */
  uint64_t waited_ns;              /* for what the JIT makes, in this call */
  uint64_t unserved_since;         /* nanoseconds: when the first region found no variant; 0 */
  struct kiln_packer *packer;      /* runtime/pack.h; NULL: the call packs what it needs */
  struct kiln_binding *binding;    /* runtime/binding.h; owned; NULL: none was made yet */
  kiln_meter *meter;               /* of the plan that was just chosen; NULL: nobody asks */
  kiln_print_fn print;
  void *print_user;
  /* What operators draw from: the instance's, borrowed, or its own, made when it is needed. */
  kiln_random *random, *own_random;
  void *frames;                                   /* of the interpreter: runtime/interp.c */
  void (*destroy_frames)(struct kiln_call *call); /* set with `frames` */
  void *host;             /* of api: the model; NULL where passes run kernels */
  kiln_type_table *types; /* of the model, for values that need a new container type */
  kiln_arena *scratch;    /* emptied after each kernel that used it; see kiln_call_text */
  int scratch_users;
  kiln_possible_roots roots; /* that may contain themselves */
  kiln_tally tally;          /* of what the model's plans do */
  kiln_recent recent;        /* what its kernels have read lately */
  uint64_t stressed;         /* guards that stress_bailout was asked of */
} kiln_call;

/* With the kernels of this processor. */
kiln_status *kiln_call_create(kiln_env *env, kiln_call **out_call) KILN_MUST_USE;
/* With those of `dispatch`. */
kiln_status *kiln_call_create_for(kiln_env *env, const struct kiln_dispatch *dispatch,
                                  kiln_call **out_call) KILN_MUST_USE;
void kiln_call_destroy(kiln_call *call);
/* Sets limits and counters for a new call. NULL: none. */
void kiln_call_begin(kiln_call *call, const kiln_limits *limits);

/* KILN_LIMIT when a limit is passed, KILN_CANCELLED. `work` is added to the operations. */
kiln_status *kiln_call_check(kiln_call *call, uint64_t work) KILN_MUST_USE;

/* What kernels use to make tensors: the byte limit is checked first. */
kiln_status *kiln_call_tensor(kiln_call *call, kiln_dtype dtype, int rank, const int64_t *sizes,
                              kiln_tensor **out_tensor) KILN_MUST_USE;

/* Memory that the call holds beyond what was held at its start; free blocks of its cache do not
 * count. */
size_t kiln_call_bytes(const kiln_call *call);

/* Runs body(call, text, arg) with an empty text in `scratch`, where allocation may fail, and
 * empties the scratch arena afterwards (of nested uses, the outermost does). */
kiln_status *kiln_call_text(kiln_call *call,
                            kiln_status *(*body)(kiln_call *call, kiln_text *text, void *arg),
                            void *arg) KILN_MUST_USE;

/* The generator of operators that are given none. */
kiln_status *kiln_call_random(kiln_call *call, kiln_random **out_random) KILN_MUST_USE;
