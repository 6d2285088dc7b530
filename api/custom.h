/* custom.h: custom operators inside api/: the record behind each, and the question to its shape
 * function, which the compiler asks of a graph and every run asks of its arguments. */
#pragma once

#include "api/internal.h"
#include "ir/op.h"
#include "kiln/kiln_op.h"

typedef struct kiln__custom {
  kiln_context *context; /* borrowed: it owns the registry, which owns this */
  const kiln_op *op;     /* set before anybody can find it */
  kiln_op_kernel_fn kernel;
  kiln_op_shape_fn shape; /* may be NULL */
  void *user;
  void (*destroy_user)(void *user);
} kiln__custom;

/* What the shape function said of a result. */
typedef struct kiln__custom_answer {
  bool is_set;
  kiln_op_tensor_info info;
} kiln__custom_answer;

struct kiln_op_shape {
  int arg_count, out_count;
  const kiln_ivalue *args;       /* of a run; NULL: what `query` knows */
  const kiln_shape_query *query; /* of a graph */
  bool bad;                      /* an answer that makes no sense */
  kiln__custom_answer *answers;  /* [out_count] */
};

struct kiln_op_call {
  kiln_call *call;
  const kiln__custom *custom;
  const kiln_schema *schema;
  const kiln_ivalue *args; /* borrowed */
  kiln_ivalue *outs;       /* owned */
  uint32_t outs_set;       /* bit i: the kernel has set result i */
  kiln_value *values;      /* handles on the arguments; they count nothing */
};

/* Makes what the kernel left in outs[index] the result that the schema promises: its type, memory
 * of its own unless marked, the shape that was told (`answer` may be NULL). */
kiln_status *kiln__custom_finish(kiln_op_call *call, int index,
                                 const kiln__custom_answer *answer) KILN_MUST_USE;

/* The kernel and the shape function of every custom operator. */
kiln_status *kiln__custom_run(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs);
bool kiln__custom_infer(kiln_shape_query *query);
/* Asks the shape function about a run's arguments; false: it does not tell. */
bool kiln__custom_ask(const kiln__custom *custom, const kiln_ivalue *args, int arg_count,
                      int out_count, kiln__custom_answer *answers);
