/* internal.h: the objects behind the public API, for api/ alone.
 *
 * A context owns what would be global: memory, flags, log, operator registry, code generator. A
 * model owns an archive's unit and its executors, an instance the attributes of one module, a value
 * one ivalue. Each holds a reference on what it stands on: value -> (model) -> context. Values hold
 * users' references, all others owners' (base/refs.h). Counts are atomic; the objects come from the
 * context's memory, except the context itself and options. */
#pragma once

#include <pthread.h>

#include "base/abi.h"
#include "base/refs.h"
#include "frontend/torchscript/torchscript.h"
#include "jit/effects.h"
#include "jit/jit.h"
#include "runtime/binding.h"

struct kiln_workers;

struct kiln_context {
  kiln_refs refs;
  kiln_env *env;
  kiln_registry *registry;
  kiln_file_table *files;       /* of archives that are open */
  struct kiln_codegen *codegen; /* NULL when there is none */
  struct kiln_workers *callers; /* of calls beside the host's threads: api/async.c */
  kiln_print_fn print;
  void *print_user;
  pthread_mutex_t lock;  /* of flags and the list of models */
  kiln_model *models;    /* that are loaded; not retained */
  uint64_t loads;        /* how many there were */
  uint64_t trace_serial; /* of the last trace; atomic */
  /* budget.c; under the lock, but for: */
  uint64_t looks;
  const kiln_model *made_last; /* for which something was made: it keeps what it has */
  bool trim_asked;             /* atomic: its job waits or runs: */
  kiln_job_owner trimmer;
  kiln_queued_job trim_job;
};

/* One method of a model's root; texts lie in the model's arena. */
typedef struct kiln__method {
  const char *name, *schema;
  kiln_function *function;
  int argument_count; /* self not counted */
  kiln_argument *arguments;
  kiln_effects *effects; /* what is known: jit/effects.h */
} kiln__method;

struct kiln_model {
  kiln_refs refs;
  kiln_context *context; /* retained */
  kiln_flags flags;      /* as they were at the load */
  kiln_arena *arena;     /* of the methods' texts */
  kiln_torchscript *script;
  kiln_jit *jit;
  bool at_rest; /* opened to be looked at: nothing of it runs */
  int method_count;
  kiln__method *methods;
  /* budget.c; under the context's lock: its calls at the last look, the last look that found
   * new ones, and what it had then. Atomic: what had been made when that was asked last. */
  uint64_t calls_then, called_at, made_bytes, made_then;
  uint32_t timed;  /* atomic: one of so many calls times its instructions; 0: none */
  char *name;      /* path of its archive, or what it is else */
  uint64_t number; /* of the context's loads */
  bool is_listed;  /* in the context's list of models, with: */
  struct kiln_model *next, **link;
};

enum { KILN__SEATS = 16, KILN__IDLE_CALLS = 4, KILN__MASK_METHODS = 64 };

/* Where one call at a time is under way that writes nothing, without the instance's lock. */
typedef struct kiln__seat {
  char before[KILN_STRIPE_BYTES / 2];
  pthread_t thread;   /* atomic: that is in it; 0: it is free */
  const char *method; /* atomic: of that call, or of the one before it */
  kiln_call *call;    /* of whoever is in it; NULL: none was made yet */
  char after[KILN_STRIPE_BYTES / 2 - sizeof(pthread_t) - 2 * sizeof(void *)];
} kiln__seat;

/* A call under way outside of the seats, or one that waits; on the caller's stack. */
typedef struct kiln__active {
  kiln__method *method;
  pthread_t thread;
  uint64_t waited_ns; /* of the call's time */
  uint64_t alone;     /* of its outputs: runtime/binding.h */
  struct kiln__active *next;
} kiln__active;

struct kiln_instance {
  /* What every call reads; written seldom. */
  int refs;
  kiln_model *model; /* retained */
  kiln_ivalue root;
  pid_t process;       /* that made it */
  kiln_random *random; /* of its calls */
  uint64_t readers;    /* atomic: the model's methods, by their place, that may use seats */
  bool is_awaited;     /* atomic: somebody waits; whoever leaves a seat says so */
  bool has_survivors;  /* atomic */
  kiln__seat seats[KILN__SEATS];
  pthread_mutex_t lock; /* of what follows */
  bool has_seats;       /* some may be taken: `readers` was not 0 since all were free */
  kiln__active *active;
  kiln__active *waiting;   /* in the order in which they came */
  pthread_cond_t changed;  /* who is there, while calls wait */
  const char *occupied_by; /* the function that has the instance for itself; NULL: none */
  kiln_call *idle[KILN__IDLE_CALLS];
  int idle_count;
  kiln_possible_roots
      survivors; /* that contain themselves, and that something held at the last call */
};

struct kiln_value {
  kiln_context *context; /* taken, on `stripe` */
  kiln_model *model;     /* likewise; NULL when the value needs none */
  kiln_ivalue v;
  uint8_t stripe;
  bool cyclic;     /* something in it may contain itself; atomic */
  char *type_text; /* of kiln_value_type, made once; atomic */
  uint64_t trace;  /* serial of the trace that knows this handle as `var`; 0: none */
  int var;
};

/* -- Counts -- */

/* For one more owner. */
kiln_context *kiln__context_retain(kiln_context *context);
/* Gives a user's reference back. */
void kiln__context_give(kiln_context *context, uint32_t stripe);
/* The context's environment as it is now: its flags change when the host sets options. */
kiln_env kiln__context_env(kiln_context *context);
kiln_model *kiln__model_retain(kiln_model *model);
void kiln__model_give(kiln_model *model, uint32_t stripe);

/* -- Values -- */

/* A handle on `v`, whose reference it takes, also on failure. `model` may be NULL; both have
 * owners. */
kiln_status *kiln__value_wrap(kiln_context *context, kiln_model *model, kiln_ivalue v,
                              kiln_value **out_value) KILN_MUST_USE;
/* The same for a part or a copy of what `value` holds, which is perhaps all that is left of its
 * context and its model. */
kiln_status *kiln__value_wrap_like(const kiln_value *value, kiln_ivalue v,
                                   kiln_value **out_value) KILN_MUST_USE;
/* Something in it may contain itself from now on. */
static inline void kiln__value_set_cyclic(kiln_value *value) {
  __atomic_store_n(&value->cyclic, true, __ATOMIC_RELAXED);
}
/* KILN_INVALID_FILE when memory of the value is a mapped file's that was changed. */
kiln_status *kiln__value_readable(const kiln_value *value) KILN_MUST_USE;
static inline kiln_type_table *kiln__value_types(const kiln_value *value) {
  return value->model ? value->model->script->unit->types
                      : kiln_registry_types(value->context->registry);
}
/* The type that a container of these elements has: their join, else Any; plain tensors. Never
 * NULL. */
const kiln_type *kiln__elements_type(kiln_type_table *table, const kiln_ivalue *items,
                                     int64_t count);

/* -- Text -- */

/* In a scope: an empty text that dies with it. */
kiln_text kiln__text_begin(const kiln_context *context);
/* A copy for the host, who frees it with kiln_text_free. */
kiln_status *kiln__text_give(const kiln_text *text, char **out_text) KILN_MUST_USE;
kiln_status *kiln__text_copy(kiln_mem *mem, kiln_str all, char **out_text) KILN_MUST_USE;
void kiln__print_value(kiln_text *text, kiln_ivalue v, int64_t max_elements);

/* One row for a kiln_debug_row_fn. */
#define KILN__ROW(row, user, ...)              \
  (row)((user), (const char *[]){__VA_ARGS__}, \
        (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)))

/* -- Models -- */

kiln__method *kiln__model_method(const kiln_model *model, const char *name);
/* KILN_NOT_FOUND, with the methods that there are. */
kiln_status *kiln__model_no_method(const kiln_model *model, const char *name) KILN_MUST_USE;
/* A model of the archive in `mapping` (taken, also on failure), with the context's settings,
 * under limits (NULL: none) and their deadline. */
kiln_status *kiln__model_load_mapping(kiln_context *context, kiln_mapping *mapping,
                                      const kiln_limits *limits, const kiln_budget *budget,
                                      kiln_model **out_model) KILN_MUST_USE;
/* A call object of the model, ready but for limits. */
kiln_status *kiln__model_make_call(kiln_model *model, kiln_call **out_call) KILN_MUST_USE;

/* -- Calls -- */

/* What a call asks for, before anything of it is begun. */
kiln_status *kiln__call_check(const kiln_model *model, const char *method,
                              kiln_value *const *arguments, int argument_count,
                              const kiln_call_options *given, kiln__method **out_method,
                              kiln_call_options *out_options) KILN_MUST_USE;
/* Something was made for the model: what all models have stays within the flag jit_memory, now, or
 * with compile=async by a job. */
void kiln__context_made(kiln_model *model);
/* The jobs that do it come and go with the context. */
void kiln__context_enter_jobs(kiln_context *context);
void kiln__context_leave_jobs(kiln_context *context);
/* Outputs that the host alone has: a bit each. */
uint64_t kiln__outputs_alone(const kiln_call_options *options);
/* `alone` of the outputs were the host's when it asked, and `waited_ns` of the call's time is over;
 * *out_result is NULL before. */
kiln_status *kiln__instance_run(kiln_instance *instance, kiln__method *method,
                                kiln_value *const *arguments, int argument_count,
                                const kiln_call_options *options, uint64_t alone,
                                uint64_t waited_ns, kiln_value **out_result) KILN_MUST_USE;
/* For one more owner. */
kiln_instance *kiln__instance_retain(kiln_instance *instance);

/* -- Instances -- */

/* Has the instance for `function` alone (static text), until it is vacated; KILN_BUSY when a call
 * is under way. */
kiln_status *kiln__instance_occupy(kiln_instance *instance, const char *function) KILN_MUST_USE;
void kiln__instance_vacate(kiln_instance *instance);

/* Who saves, and under which limits; NULL: none. */
typedef struct kiln__saver {
  kiln_instance *instance;
  const kiln_limits *limits;
  uint64_t deadline_ns; /* of them; 0: none */
} kiln__saver;

/* Runs __getstate__ of an object of the kiln__saver `user`: get_state of
 * frontend/torchscript/save.h. */
kiln_status *kiln__object_state(void *user, kiln_ivalue object,
                                kiln_ivalue *out_state) KILN_MUST_USE;

/* -- Arguments -- */

/* Fills `args[1 .. argument_count]` (owned, None before) from the host's values by the method's
 * schema. On failure what was filled in stays the caller's to release. */
kiln_status *kiln__arguments_match(kiln_model *model, const kiln__method *method,
                                   kiln_value *const *values, int count,
                                   kiln_ivalue *args) KILN_MUST_USE;
/* Makes `v` (taken, also on failure) fit `type`: *out_fits false when it does not, then *out is v
 * itself. */
kiln_status *kiln__convert(kiln_context *context, kiln_ivalue v, const kiln_type *type,
                           bool *out_fits, kiln_ivalue *out) KILN_MUST_USE;
/* The same for a host's handle, which keeps `model` if its containers got types of it. */
kiln_status *kiln__convert_value(kiln_model *model, kiln_value *value, const kiln_type *type,
                                 bool *out_fits, kiln_ivalue *out) KILN_MUST_USE;
