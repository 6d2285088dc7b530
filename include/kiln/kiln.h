/* kiln.h: runs TorchScript models without libtorch. What a host needs.
 *
 * Objects. A kiln_context holds settings, memory and the log. A kiln_model is loaded once and is
 * immutable: archive, graphs, constants, profiles, compiled plans. A kiln_instance holds a model's
 * attributes; calls go to an instance. A kiln_value is an argument or a result: tensor, number,
 * string, list, tuple, dict or None.
 *
 * Ownership. What a function returns through `out_…` belongs to the caller, who gives it back with
 * the matching _destroy or _release. `const char *` results are borrowed: each function says until
 * when. Arguments are borrowed for the call unless the function says "takes". Objects keep what
 * they need alive: a model may be released while its instances live, a context while its models do.
 *
 * Errors. Whatever can fail returns a kiln_status, NULL when fine; the caller must release it with
 * kiln_status_destroy. Nothing in here aborts, prints (but for models that print, through the
 * callback) or changes the process. Bad input never crashes: NULL for a pointer that is needed is
 * KILN_INVALID_ARGUMENT, and 0, NULL or nothing from what returns no status; _destroy and _release
 * of NULL do nothing.
 *
 * Threads. A context and a model may be used by several threads at once. Concurrent calls on one
 * instance are allowed when the method writes no attribute, as its flags (`training`) are; else
 * they get KILN_BUSY, or wait (option busy=wait). A value may be read by several threads; it is
 * changed by one at a time. A status belongs to one thread. Threads that use the library need 1 MiB
 * of stack, whatever they load and call.
 *
 * Strings are UTF-8 and terminated; where a length is given they may hold NUL. */
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API
#endif

typedef struct kiln_status kiln_status;
typedef struct kiln_context kiln_context;
typedef struct kiln_options kiln_options;
typedef struct kiln_pool kiln_pool;
typedef struct kiln_model kiln_model;
typedef struct kiln_instance kiln_instance;
typedef struct kiln_value kiln_value;
typedef struct kiln_cancel kiln_cancel;

/* -- Versions -- */

/* What a host was compiled against. Before 1.0 every minor version has a binary interface and a
 * soname of its own (libkiln.so.0.2); patch versions keep both. docs/install.md has the promise. */
#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 2
#define KILN_VERSION_PATCH 0
#define KILN_VERSION_STRING "0.2.0"
/* For comparing: 200 is 0.2.0, 10203 is 1.2.3. */
#define KILN_VERSION_NUMBER \
  (KILN_VERSION_MAJOR * 10000 + KILN_VERSION_MINOR * 100 + KILN_VERSION_PATCH)

/* What the host runs with: "0.2.0", static, and 200. */
KILN_API const char *kiln_version(void);
KILN_API int kiln_version_number(void);

/* Structs grow at their end from version to version, and the library is told how much of one the
 * host knows. Options have a field `struct_size`: sizeof of the struct, or 0 for its size in the
 * first release of this minor version; a field that the library does not know must be 0, else it is
 * KILN_UNSUPPORTED. Structs that the library fills are given with their size to a function named
 * …_sized; in C the name without it is a macro that takes the header's size, and as a symbol, for
 * hosts that look it up, a function that takes the size of this minor version's first release.
 * kiln_limits, kiln_remap and kiln_extra stay as they are. */

/* -- Errors -- */

/* X(name, exit status of the `kiln` command, meaning) */
#define KILN_CODE_LIST(X)                                                      \
  X(OK, 0, "no error")                                                         \
  X(INVALID_ARGUMENT, 2,                                                       \
    "an argument, option or flag is wrong, or inputs do not match the method") \
  X(INVALID_FILE, 2, "a file is missing, unreadable, damaged or refused")      \
  X(NOT_FOUND, 2, "no method, attribute, operator, pass or case of that name") \
  X(OP_ERROR, 1, "an operator refused its arguments: shape, dtype, index")     \
  X(RAISED, 1, "the model raised an exception")                                \
  X(MISSING_OP, 1, "an operator that Kiln does not have was reached")          \
  X(UNSUPPORTED, 1, "a feature that Kiln does not have was reached")           \
  X(LIMIT, 3, "a limit of kiln_limits was reached")                            \
  X(CANCELLED, 3, "the host cancelled the call or the load")                   \
  X(OUT_OF_MEMORY, 3, "memory is exhausted")                                   \
  X(BUSY, 1, "the instance is in another call that writes its attributes")     \
  X(INTERNAL, 4, "a fault of Kiln's own; please report it")

typedef enum kiln_code {
#define KILN_CODE_ENUM(name, exit_status, meaning) KILN_##name,
  KILN_CODE_LIST(KILN_CODE_ENUM)
#undef KILN_CODE_ENUM
      KILN_CODE__COUNT
} kiln_code;

/* NULL reads as KILN_OK everywhere below. Results are borrowed until the status is destroyed. */
KILN_API kiln_code kiln_status_code(const kiln_status *status);
/* "INVALID_FILE" and so on. Static. */
KILN_API const char *kiln_code_name(kiln_code code);
/* One clear sentence, without place or notes. */
KILN_API const char *kiln_status_message(const kiln_status *status);
/* The whole report: sentence, place in the model, traceback, notes; several lines. */
KILN_API const char *kiln_status_report(const kiln_status *status);
/* Where in the model's source: "model.py:12:4", or NULL. */
KILN_API const char *kiln_status_location(const kiln_status *status);
/* Python class of a raised exception ("builtins.ValueError"), or NULL. */
KILN_API const char *kiln_status_exception(const kiln_status *status);
KILN_API void kiln_status_destroy(kiln_status *status);

/* -- Options and contexts -- */

/* Options are the flags of `kiln list flags`, by their names in lower case without KILN_:
 * kiln_options_set(o, "fusion_strategy", "STATIC,2"). The environment (KILN_*) is read by
 * kiln_context_create, then the options are laid over it. KILN_INVALID_ARGUMENT: there is no such
 * option, or it does not take the value. */
KILN_API kiln_status *kiln_options_create(kiln_options **out_options);
KILN_API kiln_status *kiln_options_set(kiln_options *options, const char *name, const char *value);
/* Ignores the environment variables. */
KILN_API void kiln_options_ignore_environment(kiln_options *options);
KILN_API void kiln_options_destroy(kiln_options *options);

/* channel: "fusion", "guard", …; level: 1 tells the least, more the more; line: without a newline.
 * It may be called from several threads at once, some of which hold locks: it calls nothing of the
 * library. */
typedef void (*kiln_log_fn)(void *user, const char *channel, int level, const char *line);
/* Gets an event as a line of JSON (option events). It may be called from several threads at once,
 * some of which hold locks: it calls nothing of the library. */
typedef void (*kiln_event_fn)(void *user, const char *json);
/* Gets what a model prints, in pieces as Python's print gives them, newline included. */
typedef void (*kiln_print_fn)(void *user, const char *text, size_t size);

/* `options` may be NULL and is borrowed. */
KILN_API kiln_status *kiln_context_create(const kiln_options *options, kiln_context **out_context);
KILN_API void kiln_context_release(kiln_context *context);
/* Both before the first load; NULL: stderr for the log, standard output for prints. */
KILN_API void kiln_context_set_log(kiln_context *context, kiln_log_fn fn, void *user);
KILN_API void kiln_context_set_print(kiln_context *context, kiln_print_fn fn, void *user);
/* Before the first load: events go to `fn`, and to the file of the option `events` if there is one.
 * NULL: to nobody. */
KILN_API kiln_status *kiln_context_set_events(kiln_context *context, kiln_event_fn fn, void *user);
/* What the context and its models have counted, as text for Prometheus (its exposition format
 * 0.0.4): of each counter of kiln_counters a metric kiln_model_*, with the labels model (the path)
 * and number (of the load). The host frees it by kiln_text_free. Any thread; some 1 us and 50 ns
 * for each group. */
KILN_API kiln_status *kiln_context_metrics(kiln_context *context, char **out_text);
/* What was made for calls of the context's models (plans, kernels, packed weights) goes, of the
 * models that were called longest ago first, until at most `bytes` are left: what the option
 * jit_memory does whenever something is made. Calls are not disturbed: those under way end in what
 * they have, and later ones have it made anew, from the profile of those before. Any thread. */
KILN_API kiln_status *kiln_context_trim(kiln_context *context, uint64_t bytes);
/* Changes an option for models that are loaded later. The old value is the host's, which frees it
 * by kiln_text_free; out_old may be NULL. Any thread. KILN_INVALID_ARGUMENT: there is no such
 * option, or it does not take the value, or it is fixed when the context is made. */
KILN_API kiln_status *kiln_context_set(kiln_context *context, const char *name, const char *value,
                                       char **out_old);
/* Bytes that the context and everything made from it hold now, and the most so far. */
KILN_API size_t kiln_context_bytes(const kiln_context *context);
KILN_API size_t kiln_context_peak_bytes(const kiln_context *context);
/* Bytes of the files that its models map now, each counted once. */
KILN_API uint64_t kiln_context_mapped_bytes(const kiln_context *context);

/* -- Threads -- */

/* A pool of threads, for the parts of a call that can be done side by side. A context makes one of
 * its own by its option `threads` (1, the default: none, every call runs on its caller's thread;
 * 0: one thread for each core that the process may use). Contexts that are given the same pool
 * share it, which is better than a pool each on the same cores. Results do not depend on the number
 * of threads. Threads start at the first use; between uses they spin for some 100 us, then sleep. A
 * fork()ed child has no threads of the pool: work runs on its callers there. */

/* The host's own threads, instead of a pool's. `run` calls piece(data, i) once for each i in
 * [0, count), in any order, side by side or not, on any threads, and returns when all have
 * returned; it may be called by several threads at once, and a piece may call it again. */
typedef struct kiln_host_executor {
  void *user;
  int threads; /* at most so many pieces are worth making: `count` is never more */
  void (*run)(void *user, int count, void (*piece)(void *data, int index), void *data);
  size_t struct_size;
} kiln_host_executor;

/* `threads` counts the calling thread: n makes n - 1; 0: one for each core that the process may
 * use (its affinity; hardware threads of one core count once). At most 1024. */
KILN_API kiln_status *kiln_pool_create(int threads, kiln_pool **out_pool);
/* A pool without threads that hands its work to `executor`, which is copied; `user` must live until
 * the pool is gone. */
KILN_API kiln_status *kiln_pool_create_over(const kiln_host_executor *executor,
                                            kiln_pool **out_pool);
/* Threads that may work at the same time, the caller included; 1 for NULL. */
KILN_API int kiln_pool_threads(const kiln_pool *pool);
/* Contexts keep a pool that they were given alive. The last release ends the threads; it must not
 * come from one of them. */
KILN_API void kiln_pool_release(kiln_pool *pool);
/* Before the first load: calls of the context use `pool` (retained) instead of what its option
 * `threads` made; NULL: one thread. */
KILN_API void kiln_context_set_pool(kiln_context *context, kiln_pool *pool);
/* A host's own threads for what the JIT makes beside calls (option compile=async), instead of one
 * of the context. `submit` has run(data) called once on any thread, now or later, but not before it
 * returns: it is called within calls, which it is not to hold up. One run does one job, of some
 * milliseconds to a second; where several come, one after the other. A run after the context has
 * gone does nothing, and one that never comes leaves its kernel uncompiled, and some bytes. */
typedef struct kiln_host_jobs {
  void *user; /* lives as long as the context */
  void (*submit)(void *user, void (*run)(void *data), void *data);
  size_t struct_size;
} kiln_host_jobs;
/* Before the first load. `jobs` is copied. What waits for jobs (kiln_model_wait_idle) runs those
 * that nobody has begun. LLVM is not unloaded then. */
KILN_API kiln_status *kiln_context_set_jobs(kiln_context *context, const kiln_host_jobs *jobs);
/* Threads that one call of the context may use, its caller included. */
KILN_API int kiln_context_threads(const kiln_context *context);

/* -- Limits -- */

/* What one call, or one load, may use; 0 is no limit. A breach is KILN_LIMIT, which names the limit
 * and its number, and leaves the instance usable. Time and cancelling are looked at every few
 * operations and inside of long ones; by a load, every few thousand items. */
typedef struct kiln_limits {
  uint64_t bytes;      /* memory held by the call beyond what was held at its start */
  uint64_t operations; /* of the interpreter: operators, fused groups, jumps, calls */
  /* Nested calls of script functions. 0: only calls of what a run chooses (methods of interfaces,
   * __enter__, forks) count, 1000 of them; other functions cannot call themselves. */
  uint32_t recursion;
  uint32_t time_ms;          /* wall time */
  const kiln_cancel *cancel; /* borrowed; NULL: nobody cancels */
} kiln_limits;

/* A token by which another thread ends calls and loads that were given it in their limits: they
 * return KILN_CANCELLED, mostly within some ms. It may be given to any number of calls, also at the
 * same time, and must outlive them. Once cancelled it stays so, and ends calls that begin later,
 * until it is reset. kiln_call_cancel and kiln_cancel_is_asked may be called from any thread and
 * from signal handlers; NULL is fine everywhere. */
KILN_API kiln_status *kiln_cancel_create(kiln_cancel **out_cancel);
KILN_API void kiln_call_cancel(kiln_cancel *cancel);
KILN_API int kiln_cancel_is_asked(const kiln_cancel *cancel);
KILN_API void kiln_cancel_reset(kiln_cancel *cancel);
KILN_API void kiln_cancel_destroy(kiln_cancel *cancel);

/* -- Models -- */

/* Loads a TorchScript archive. The file is mapped, or read into memory where `limits` has a limit
 * (option `map`: auto, map, copy), and loads of one file share its weights. A mapped file must not
 * be written while a model of it lives (another file may be renamed to its name): calls, and what
 * copies or prints values, look first, and a change that they see is KILN_INVALID_FILE; where
 * nothing looks (kiln_value_data, the middle of a call) it is a SIGBUS. Options `crc` and
 * `map_device` say what becomes of wrong checksums and of devices that are not here. `limits` may
 * be NULL. */
KILN_API kiln_status *kiln_model_load(kiln_context *context, const char *path,
                                      const kiln_limits *limits, kiln_model **out_model);
/* The same from memory. `data` is borrowed until the model and every value made from it are gone;
 * weights are used where they lie. */
KILN_API kiln_status *kiln_model_load_memory(kiln_context *context, const void *data, size_t size,
                                             const kiln_limits *limits, kiln_model **out_model);
/* The same from an open file, from its begin whatever its position is. `fd` stays the caller's and
 * may be closed at once. What is no regular file (a pipe) is read to its end. */
KILN_API kiln_status *kiln_model_load_fd(kiln_context *context, int fd, const kiln_limits *limits,
                                         kiln_model **out_model);
KILN_API void kiln_model_release(kiln_model *model);

/* Methods of the root module. Borrowed until the model is released; NULL beyond the last. */
KILN_API int kiln_model_method_count(const kiln_model *model);
KILN_API const char *kiln_model_method_name(const kiln_model *model, int index);
/* "forward(Tensor x, (Tensor, Tensor) state) -> (Tensor, (Tensor, Tensor))", or NULL. */
KILN_API const char *kiln_model_method_schema(const kiln_model *model, const char *name);

/* One argument of a method; strings are borrowed until the model is released. */
typedef struct kiln_argument {
  const char *name; /* "x" */
  const char *type; /* "Tensor", "int[]", "(Tensor, Tensor)" */
  int has_default;
} kiln_argument;
/* Argument `index` from 0, self not counted; KILN_NOT_FOUND beyond the last, or for no method. */
KILN_API kiln_status *kiln_model_argument_sized(const kiln_model *model, const char *method,
                                                int index, kiln_argument *out_argument,
                                                size_t struct_size);
KILN_API kiln_status *kiln_model_argument(const kiln_model *model, const char *method, int index,
                                          kiln_argument *out_argument);
#define kiln_model_argument(model, method, index, out) \
  kiln_model_argument_sized(model, method, index, out, sizeof(kiln_argument))

/* What the option `map_device` moved when the model was loaded. Strings are borrowed until the
 * model is released; KILN_NOT_FOUND beyond the last. */
typedef struct kiln_remap {
  const char *from, *to; /* "cuda:0", "cpu" */
  const char *kind;      /* "storages" of tensors, "values" of the archive, "code" */
  int64_t count;
  const char *where; /* the first: "data/0", "code/__torch__.py:12" */
} kiln_remap;
KILN_API kiln_status *kiln_model_remap(const kiln_model *model, int index, kiln_remap *out_remap);

/* A file that was saved with the model (`_extra_files` in PyTorch). */
typedef struct kiln_extra {
  const char *name;
  const void *data; /* not terminated */
  size_t size;
} kiln_extra;
/* Borrowed until the model is released; KILN_NOT_FOUND beyond the last. */
KILN_API kiln_status *kiln_model_extra_file(const kiln_model *model, int index,
                                            kiln_extra *out_file);

/* Counters of a model, over all instances and threads. */
typedef struct kiln_counters {
  uint64_t calls;         /* of methods, by the host */
  uint64_t profiled_runs; /* graph runs that recorded types, fallbacks included */
  uint64_t groups;        /* fused groups formed */
  uint64_t compiles;      /* kernels compiled */
  uint64_t compile_failures;
  uint64_t compile_ns; /* time spent in code generation */
  uint64_t guard_hits;
  uint64_t guard_misses;
  uint64_t fallback_calls;   /* dispatches to a fallback function */
  uint64_t compiled_runs;    /* executions of a compiled group */
  uint64_t groups_never_run; /* reached under their variant, but never ran compiled */
  uint32_t max_depth;        /* deepest bailout level reached */
  uint64_t simple_plans;     /* executors that used up their depth */
  uint64_t jobs;             /* asked for by calls, which did not wait (option compile=async) */
  uint64_t stalls;           /* calls that waited for the JIT longer than the option max_stall_us,
                              * but for first calls of methods */
  uint64_t worst_stall_ns;   /* the longest such wait of a call, within the option or not */
  uint64_t retired;          /* specialised plans that were slower than the interpreter, which
                              * serves in their place (option compile=async) */
  uint64_t plan_bytes;       /* of plans, and of what is known of how they were made */
  uint64_t code_bytes;       /* of kernels: machine code, and the objects that it is from; models of
                              * a context share those of equal groups, and each counts them */
  uint64_t dropped;          /* times that all of it went (option jit_memory, kiln_context_trim) */
} kiln_counters;
KILN_API void kiln_model_counters_sized(const kiln_model *model, kiln_counters *out_counters,
                                        size_t struct_size);
KILN_API void kiln_model_counters(const kiln_model *model, kiln_counters *out_counters);
#define kiln_model_counters(model, out) kiln_model_counters_sized(model, out, sizeof(kiln_counters))

/* Counters of one group, in order of compilation; KILN_NOT_FOUND beyond the last. `name` and
 * `reason` are borrowed until the model is released. A group goes when its variant gives way to
 * another (docs/embedding.md); the next one may have its name, and then its place for `hash`. */
typedef struct kiln_group_counters {
  const char *name;   /* "forward/TensorExprGroup_0" */
  const char *hash;   /* of its loop IR: 32 hexadecimal digits, "" when there is none */
  const char *reason; /* why it was not compiled, or NULL */
  uint32_t depth;     /* bailout level of its variant: 0 for the first */
  uint32_t operators; /* fused nodes */
  uint64_t guard_hits, guard_misses, runs, compile_ns;
} kiln_group_counters;
KILN_API kiln_status *kiln_model_group_sized(const kiln_model *model, int index,
                                             kiln_group_counters *out_group, size_t struct_size);
KILN_API kiln_status *kiln_model_group(const kiln_model *model, int index,
                                       kiln_group_counters *out_group);
#define kiln_model_group(model, index, out) \
  kiln_model_group_sized(model, index, out, sizeof(kiln_group_counters))

/* -- Instances and calls -- */

KILN_API kiln_status *kiln_instance_create(kiln_model *model, kiln_instance **out_instance);
KILN_API void kiln_instance_release(kiln_instance *instance);

typedef struct kiln_call_options {
  kiln_limits limits;
  int grad; /* 0: run as under torch.no_grad(); else KILN_UNSUPPORTED */
  size_t struct_size;
  /* Where results are to be: dense, row-major tensors of the CPU (kiln_value_tensor_over, say),
   * borrowed; NULL: not bound. The result, or the items of a tuple or a list in their order, must
   * have the dtype and the sizes of theirs, and are these tensors then. From the second call of the
   * same shapes on nothing is copied, if they have 4 KB and more, begin at a multiple of 64 bytes,
   * and no other value has their memory. What the method keeps is never in it. After an error its
   * elements are undefined. At most 64. */
  kiln_value *const *outputs;
  int output_count;
} kiln_call_options;

/* Calls a method; "forward" among the root's forward hooks, as calling a module does in PyTorch.
 * `arguments` are borrowed; missing ones, and NULL, take their defaults. The method may change
 * tensors and lists that it is given, as in Python. Arguments must have the types of the method's
 * schema, with what Python allows: an int where a float is wanted, a tuple for a NamedTuple, and
 * containers whose elements fit (a container whose elements had to be converted is a copy).
 * KILN_INVALID_ARGUMENT names the argument and the types. `options` may be NULL. */
KILN_API kiln_status *kiln_instance_call(kiln_instance *instance, const char *method,
                                         kiln_value *const *arguments, int argument_count,
                                         const kiln_call_options *options, kiln_value **out_result);

/* -- Calls beside their caller -- */

/* A call that was asked for and may not have ended. */
typedef struct kiln_pending kiln_pending;
/* Called once, on a thread of the context, when a call has ended: takes `status` (NULL: it was
 * good) and `result` (NULL if not). It may call anything of this library, and release everything;
 * meanwhile other calls wait for its thread. */
typedef void (*kiln_done_fn)(void *user, kiln_status *status, kiln_value *result);
/* The same as kiln_instance_call, on a thread of the context: at most so many at a time as the
 * option async_calls says, in the order in which they were asked for; none waits for another
 * instance's. The call has references of its own on the instance, the arguments and what stands
 * behind them, so the host may release its own at once; nothing is copied. The memory of tensors
 * that a host has lent (kiln_value_tensor_over), and `options->limits.cancel`, stay until the call
 * has ended. Its time begins now. Two calls of an instance meet like those of two threads.
 *
 * `done` NULL: the result is for kiln_pending_wait. *out_pending is released by the host, before
 * the end or behind it; NULL (with `done`): nobody waits. Returned are errors of the method, the
 * array and the options; those of the arguments end the call. Where no thread can be started, the
 * call runs before this returns, and so does `done`; `done` does not wait for its own call. */
KILN_API kiln_status *kiln_instance_call_async(kiln_instance *instance, const char *method,
                                               kiln_value *const *arguments, int argument_count,
                                               const kiln_call_options *options, kiln_done_fn done,
                                               void *user, kiln_pending **out_pending);
/* Returns when the call has ended, `done` included: with its status, and its result for the first
 * who asks (KILN_INVALID_ARGUMENT for others); what `done` was given is not given again. KILN_LIMIT
 * when `time_ms` is over (0: looks; below 0: as long as it takes). KILN_UNSUPPORTED in a fork's
 * child. */
KILN_API kiln_status *kiln_pending_wait(kiln_pending *pending, int64_t time_ms,
                                        kiln_value **out_result);
/* The call goes on; what it returns is destroyed if nobody has had it. NULL is fine. */
KILN_API void kiln_pending_release(kiln_pending *pending);

/* With the option compile=async, kernels are made beside calls. Returns when all that calls have
 * asked for until now is made, or refused: what is asked for then depends on the calls to come.
 * KILN_LIMIT and KILN_CANCELLED of `limits` (NULL: as long as it takes), of which only time and
 * cancelling count. With compile=sync it returns at once. */
KILN_API kiln_status *kiln_model_wait_idle(kiln_model *model, const kiln_limits *limits);

/* Makes all plans and kernels for calls with such arguments before the first request: calls the
 * method on an instance and on copies of its own, until nothing more is to be made. What the
 * method prints is printed. Elements do not matter where the method does not branch on them, so
 * zeros of the right sizes do. `options` are those of each call, and may be NULL. */
KILN_API kiln_status *kiln_model_warm_up(kiln_model *model, const char *method,
                                         kiln_value *const *arguments, int argument_count,
                                         const kiln_call_options *options);

/* A profile is what calls have seen: the types and shapes that kernels are made for, as text of
 * some kilobytes, for any CPU. Loading one makes the plans of methods that it knows before they are
 * called: where cache_dir or the context has their kernels, at once, so that a process starts at
 * the speed that another one has reached; else, with compile=async, beside the host, which
 * kiln_model_wait_idle awaits. Profiles of several files add up. Saving
 * writes what was loaded and what this model's calls have seen. The option `profile` does both, at
 * load and at release. A file belongs to no model: what it does not know of is profiled as ever.
 * It decides what is compiled, so it must be the user's or the administrator's, and nobody else
 * may write it, nor its folder. KILN_NOT_FOUND: there is no such file; KILN_INVALID_FILE says what
 * is wrong. */
KILN_API kiln_status *kiln_model_load_profile(kiln_model *model, const char *path);
KILN_API kiln_status *kiln_model_save_profile(kiln_model *model, const char *path);

/* Attributes of the instance's module: "weight", "layer.0.bias". Getting shares the value; setting
 * retains `value` and must match the attribute's type. KILN_BUSY: getting beside a call that may
 * write attributes, setting beside any call. What a later call writes into a tensor or list is seen
 * in the value that was got: to read that beside such a call, clone it before. */
KILN_API kiln_status *kiln_instance_get(kiln_instance *instance, const char *name,
                                        kiln_value **out_value);
KILN_API kiln_status *kiln_instance_set(kiln_instance *instance, const char *name,
                                        const kiln_value *value);

/* -- Saving -- */

/* Writes a TorchScript archive, which PyTorch (torch.jit.load, 1.4 to 2.x) and Kiln load and run
 * with the same results. Its source, constants and version are those of the loaded archive, byte
 * for byte; of a model that the host built or traced they are printed from its graphs. Nothing that
 * the optimiser did is in it. KILN_UNSUPPORTED names what has no form in source. Its state is that
 * of the instance, attributes that calls or kiln_instance_set changed included (of a model: of a
 * new instance). Tensors that share memory share it in the file. Objects whose class has
 * __getstate__ and __setstate__ are asked for their state, which runs code of the model.
 *
 * A path is written by a temporary file beside it and a rename: it is what it was, or complete; it
 * may be the file that the model was loaded from, and the model goes on with the old bytes.
 * KILN_BUSY while calls on the instance are under way; calls that come meanwhile get it. */
typedef struct kiln_save_options {
  const kiln_extra *extras; /* files to save along, instead of the archive's of the same name */
  int extra_count;
  int drop_extras; /* 1: the archive's own are left out */
  int reprint;     /* 1: the source is printed anew from the graphs, without comments and places */
  size_t struct_size;
} kiln_save_options;
/* Takes the next bytes, of any number; 0 when it did. */
typedef int (*kiln_write_fn)(void *user, const void *data, size_t size);

/* `options` may be NULL. */
KILN_API kiln_status *kiln_model_save(kiln_model *model, const char *path,
                                      const kiln_save_options *options);
KILN_API kiln_status *kiln_model_save_to(kiln_model *model, kiln_write_fn write, void *user,
                                         const kiln_save_options *options);
KILN_API kiln_status *kiln_instance_save(kiln_instance *instance, const char *path,
                                         const kiln_save_options *options);
KILN_API kiln_status *kiln_instance_save_to(kiln_instance *instance, kiln_write_fn write,
                                            void *user, const kiln_save_options *options);

/* -- Freezing -- */

typedef struct kiln_freeze_options {
  /* Methods and attributes that stay as they are: "encode", "steps", "sub.weight", "sub". */
  const char *const *preserve;
  int preserve_count;
  int eval;           /* 1: `training` counts as false in all modules, as after eval() */
  kiln_limits limits; /* operations and recursion: those of __getstate__ and __setstate__ */
  size_t struct_size;
} kiln_freeze_options;

/* A new model, as torch.jit.freeze makes it: submodules are inlined into forward and the methods to
 * preserve, attributes that no method changes are constants without requires_grad, and what is
 * constant is evaluated. Attributes that are stored to, or whose memory is written, stay, as do
 * those that share memory with them. Results are those of the original: nothing is folded across
 * operators. The new model stands by itself, with the archive's extra files, and is saved as an
 * archive for PyTorch and Kiln by kiln_model_save.
 *
 * `options` may be NULL. KILN_INVALID_ARGUMENT for a module in training mode (`training` is true)
 * and for names that it does not have; KILN_UNSUPPORTED, with the place, for what cannot be frozen:
 * hooks of the module itself, modules that only a run chooses, what has no form in source. Of an
 * instance: with its attributes as they are now; KILN_BUSY while calls on it are under way. */
KILN_API kiln_status *kiln_model_freeze(kiln_model *model, const kiln_freeze_options *options,
                                        kiln_model **out_model);
KILN_API kiln_status *kiln_instance_freeze(kiln_instance *instance,
                                           const kiln_freeze_options *options,
                                           kiln_model **out_model);

/* -- Code ahead of time -- */

typedef struct kiln_compile_options {
  const char *name;   /* of the files, and of what is in them; NULL: the archive's */
  int general;        /* 1: with code for arguments of other shapes and types, uncompiled */
  kiln_limits limits; /* of each call */
  size_t struct_size;
} kiln_compile_options;

/* Writes the method as code of a C program into `folder`, which is made if it is not there: NAME.h,
 * NAME.o and NAME.weights, to be linked with libkiln-aot (kiln/aot.h, docs/aot.md). The method is
 * called until all is compiled that there is to compile for these arguments; what was compiled for
 * calls before is written too. Tensors and numbers in the arguments are the program's inputs, all
 * else in them is constant; tensors and numbers in the result are its outputs. Attributes are as
 * they were loaded. `folder` NULL: what there is to compile for these arguments is compiled, to be
 * written by a later call with others: a program for two shapes takes two calls.
 *
 * KILN_UNSUPPORTED, with what it is, where something has no place in such a program: a host's
 * operators, quantised, sparse and nested tensors, results that are no tensors or numbers; and
 * where there is no LLVM. */
KILN_API kiln_status *kiln_model_compile(kiln_model *model, const char *method,
                                         kiln_value *const *arguments, int argument_count,
                                         const char *folder, const kiln_compile_options *options);

/* -- Values -- */

typedef enum kiln_kind {
  KILN_KIND_NONE,
  KILN_KIND_TENSOR,
  KILN_KIND_INT,
  KILN_KIND_FLOAT,
  KILN_KIND_BOOL,
  KILN_KIND_COMPLEX,
  KILN_KIND_STRING,
  KILN_KIND_DEVICE,
  KILN_KIND_LIST,
  KILN_KIND_TUPLE,
  KILN_KIND_DICT,
  KILN_KIND_OBJECT,
  KILN_KIND_OTHER, /* enums, futures, generators */
} kiln_kind;

/* Element types; the numbers are PyTorch's ScalarType. */
#define KILN_DTYPE_LIST(X)                                   \
  X(U8, 0, 1, "Byte", "uint8", u8)                           \
  X(I8, 1, 1, "Char", "int8", i8)                            \
  X(I16, 2, 2, "Short", "int16", i16)                        \
  X(I32, 3, 4, "Int", "int32", i32)                          \
  X(I64, 4, 8, "Long", "int64", i64)                         \
  X(F16, 5, 2, "Half", "float16", f16)                       \
  X(F32, 6, 4, "Float", "float32", f32)                      \
  X(F64, 7, 8, "Double", "float64", f64)                     \
  X(C32, 8, 4, "ComplexHalf", "complex32", c32)              \
  X(C64, 9, 8, "ComplexFloat", "complex64", c64)             \
  X(C128, 10, 16, "ComplexDouble", "complex128", c128)       \
  X(BOOL, 11, 1, "Bool", "bool", bool)                       \
  X(QI8, 12, 1, "QInt8", "qint8", qi8)                       \
  X(QU8, 13, 1, "QUInt8", "quint8", qu8)                     \
  X(QI32, 14, 4, "QInt32", "qint32", qi32)                   \
  X(BF16, 15, 2, "BFloat16", "bfloat16", bf16)               \
  X(F8E5M2, 23, 1, "Float8_e5m2", "float8_e5m2", f8e5m2)     \
  X(F8E4M3, 24, 1, "Float8_e4m3fn", "float8_e4m3fn", f8e4m3) \
  X(U16, 27, 2, "UInt16", "uint16", u16)                     \
  X(U32, 28, 4, "UInt32", "uint32", u32)                     \
  X(U64, 29, 8, "UInt64", "uint64", u64)

typedef enum kiln_dtype {
  KILN_DTYPE_NONE = -1, /* unknown, or not a tensor */
#define KILN_DTYPE_ENUM(name, number, size, storage, python, short_name) KILN_DTYPE_##name = number,
  KILN_DTYPE_LIST(KILN_DTYPE_ENUM)
#undef KILN_DTYPE_ENUM
      KILN_DTYPE__COUNT = 30
} kiln_dtype;

/* Bytes of an element, and PyTorch's name ("float32"); 0 and NULL for an unknown number. */
KILN_API size_t kiln_dtype_size(kiln_dtype dtype);
KILN_API const char *kiln_dtype_name(kiln_dtype dtype);

/* Makers. Each returns a new value in *out_value. */
KILN_API kiln_status *kiln_value_none(kiln_context *context, kiln_value **out_value);
KILN_API kiln_status *kiln_value_int(kiln_context *context, int64_t i, kiln_value **out_value);
KILN_API kiln_status *kiln_value_float(kiln_context *context, double f, kiln_value **out_value);
KILN_API kiln_status *kiln_value_bool(kiln_context *context, int b, kiln_value **out_value);
KILN_API kiln_status *kiln_value_complex(kiln_context *context, double re, double im,
                                         kiln_value **out_value);
KILN_API kiln_status *kiln_value_string(kiln_context *context, const char *text, size_t size,
                                        kiln_value **out_value);
/* A CPU tensor, row-major, 64-byte aligned. `sizes` are elements. `data` is copied; NULL: zeros. */
KILN_API kiln_status *kiln_value_tensor(kiln_context *context, kiln_dtype dtype, int rank,
                                        const int64_t *sizes, const void *data,
                                        kiln_value **out_value);
/* A tensor over the caller's memory; `release(user)` is called when nothing uses it any more.
 * Strides are in elements; NULL: row-major. On failure release is not called. */
KILN_API kiln_status *kiln_value_tensor_over(kiln_context *context, kiln_dtype dtype, int rank,
                                             const int64_t *sizes, const int64_t *strides,
                                             void *data, size_t data_size,
                                             void (*release)(void *user), void *user,
                                             kiln_value **out_value);
/* Lists, tuples and dicts share their elements, which are borrowed. The
 * element type of a list is found from its elements (Any, where they have none in common), and from
 * the method's schema for an empty list. */
KILN_API kiln_status *kiln_value_list(kiln_context *context, kiln_value *const *items, int count,
                                      kiln_value **out_value);
KILN_API kiln_status *kiln_value_tuple(kiln_context *context, kiln_value *const *items, int count,
                                       kiln_value **out_value);
KILN_API kiln_status *kiln_value_dict(kiln_context *context, kiln_value *const *keys,
                                      kiln_value *const *values, int count, kiln_value **out_value);
/* Another handle on the same value. */
KILN_API kiln_status *kiln_value_share(const kiln_value *value, kiln_value **out_value);
/* A copy that shares nothing that can change; tensors share memory until either is written. */
KILN_API kiln_status *kiln_value_clone(const kiln_value *value, kiln_value **out_value);
KILN_API void kiln_value_destroy(kiln_value *value);

/* Readers. A reader of the wrong kind returns 0, NULL or KILN_INVALID_ARGUMENT. Pointers are
 * borrowed until the value is destroyed or changed; items and keys are the caller's. */
KILN_API kiln_kind kiln_value_kind(const kiln_value *value);
KILN_API int64_t kiln_value_as_int(const kiln_value *value);
KILN_API double kiln_value_as_float(const kiln_value *value);
KILN_API int kiln_value_as_bool(const kiln_value *value);
KILN_API void kiln_value_as_complex(const kiln_value *value, double *out_re, double *out_im);
KILN_API const char *kiln_value_as_string(const kiln_value *value, size_t *out_size);
/* Elements of a list or tuple, pairs of a dict (in order), attributes of an object. Keys are those
 * of a dict, and the names of an object's attributes and of a NamedTuple's fields.
 * KILN_INVALID_ARGUMENT: there is no such element; KILN_NOT_FOUND: an attribute that is not set. */
KILN_API int kiln_value_count(const kiln_value *value);
KILN_API kiln_status *kiln_value_item(const kiln_value *value, int index, kiln_value **out_item);
KILN_API kiln_status *kiln_value_key(const kiln_value *value, int index, kiln_value **out_key);
/* Tensors: dtype, rank, sizes and strides in elements, the first element's address (NULL where the
 * tensor is empty; writing through it is allowed only for tensors that the caller made; reading
 * an attribute through it relies on the model's file, as kiln_model_load says). */
KILN_API kiln_dtype kiln_value_dtype(const kiln_value *value);
KILN_API int kiln_value_rank(const kiln_value *value);
KILN_API const int64_t *kiln_value_sizes(const kiln_value *value);
KILN_API const int64_t *kiln_value_strides(const kiln_value *value);
KILN_API const void *kiln_value_data(const kiln_value *value);
KILN_API int kiln_value_requires_grad(const kiln_value *value);
/* Copies the elements, row-major, to `data`, which holds `size` bytes: numel times element size. */
KILN_API kiln_status *kiln_value_copy_data(const kiln_value *value, void *data, size_t size);
/* A type as the model's IR prints it: "Tensor", "int[]", "Dict(str, Tensor)". */
KILN_API const char *kiln_value_type(const kiln_value *value);
/* The value as text, as Python would print it, tensors cut after `max_elements`. Freed with
 * kiln_text_free. */
KILN_API kiln_status *kiln_value_print(const kiln_value *value, int max_elements, char **out_text);
KILN_API void kiln_text_free(char *text);

/* -- DLPack -- */

/* include/kiln/dlpack.h has the struct (DLPack 0.8's DLManagedTensor). Export shares the memory
 * and keeps it alive until the consumer calls the deleter. Import takes `tensor`: its deleter is
 * called when nothing uses it any more; on failure it stays the caller's. CPU tensors only. */
struct DLManagedTensor;
KILN_API kiln_status *kiln_value_to_dlpack(const kiln_value *value,
                                           struct DLManagedTensor **out_tensor);
KILN_API kiln_status *kiln_value_from_dlpack(kiln_context *context, struct DLManagedTensor *tensor,
                                             kiln_value **out_value);

/* -- Files of values -- */

/* Archives of torch.save (tensors, scalars, strings, None, lists, tuples, dicts), .npy, and .npz by
 * its ending: a dict of its tensors by their names, in the archive's order. Reading maps nothing:
 * the values are copies. Written is .npy by the ending (one tensor), else an archive. */
KILN_API kiln_status *kiln_value_read(kiln_context *context, const char *path,
                                      kiln_value **out_value);
KILN_API kiln_status *kiln_value_write(const kiln_value *value, const char *path);

#ifdef __cplusplus
}
#endif

#endif
