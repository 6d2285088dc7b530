/* aot.h: a program that is open, for the files of aot/. */
#pragma once

#include <pthread.h>

#include "aot/image.h"

/* A callable with the model that it is of. */
typedef struct kiln__aot_callable {
  kiln_callable callable; /* first */
  kiln_aot_model *model;
  const kiln_aot_callable *image;
} kiln__aot_callable;

enum { KILN__AOT_IDLE = 8 }; /* calls that are kept for the next ones */

struct kiln_aot_model {
  const kiln_aot_program *program;
  kiln_env *env;
  kiln_arena *arena; /* of plans, callables and types' parts */
  kiln_type_table *table;
  kiln_epoch epoch;
  kiln_pack_store *packs;
  kiln_random *random;
  kiln_owner owner;  /* of the weights: as long as the model is open */
  kiln_owner lender; /* of inputs: the caller */
  const char *weights;
  void *mapped, *absent;
  size_t mapped_bytes, absent_bytes;
  const kiln_type **types;
  kiln_storage **storages; /* owned */
  kiln_ivalue *values;     /* owned, but for those that are of a call */
  bool *of_call;           /* of each value: an input is in it */
  kiln_plan *plans;        /* [plan_count]; their constants are owned */
  int plans_made;
  kiln__aot_callable *callables;
  const kiln_callable **addresses; /* of each */
  kiln_method_lookup methods;
  kiln_map methods_of;  /* by class: a kiln_map of kiln_callable by name */
  pthread_mutex_t lock; /* of idle; with `writes`, of the call */
  kiln_call *idle[KILN__AOT_IDLE];
  int idle_count;
};

/* -- values.c: in a scope -- */
kiln_status *kiln__aot_make_types(kiln_aot_model *m) KILN_MUST_USE;
kiln_status *kiln__aot_make_values(kiln_aot_model *m) KILN_MUST_USE;
void kiln__aot_drop_values(kiln_aot_model *m);
/* Value `index`, owned, in which inputs are those; of values without inputs a reference more. */
kiln_status *kiln__aot_value(const kiln_aot_model *m, int32_t index, const kiln_ivalue *inputs,
                             kiln_ivalue *out_value) KILN_MUST_USE;

/* -- plans.c: in a scope -- */
kiln_status *kiln__aot_make_plans(kiln_aot_model *m) KILN_MUST_USE;
void kiln__aot_drop_plans(kiln_aot_model *m);
