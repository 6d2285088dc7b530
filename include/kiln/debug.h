/* debug.h: what `kiln opt`, `graph`, `list`, `inspect` and `explain` stand on. UNSTABLE: it may
 * change with every release; the stable API is kiln.h. Ownership, errors and threads as there. */
#ifndef KILN_DEBUG_H
#define KILN_DEBUG_H

#include "kiln/kiln.h"

#ifdef __cplusplus
extern "C" {
#endif

/* -- Tables -- */

/* One row: `count` texts, borrowed for the call. The first row holds the titles. It calls nothing
 * of the model: a lock of it may be held. */
typedef void (*kiln_debug_row_fn)(void *user, const char *const *columns, int count);

/* Rows of "passes", "ops", "flags" (as they are in the context), "channels" of the log, or
 * "reasons"; KILN_NOT_FOUND for another name. */
KILN_API kiln_status *kiln_debug_list(kiln_context *context, const char *table,
                                      kiln_debug_row_fn row, void *user);

/* -- Graphs -- */

/* Parses textual IR, runs `passes` ("dce,cse", in order, "" for none), verifies, and prints the
 * graph. `verbosity` as for kiln_builder_print: 3 is PyTorch's. `out_text` is freed with
 * kiln_text_free. */
KILN_API kiln_status *kiln_debug_opt(kiln_context *context, const char *source, size_t size,
                                     const char *passes, int verbosity, char **out_text);

/* One stage of a method: "frontend", "profiled", "optimized", "bytecode", "loop", "schedule",
 * "llvm", "asm", "ptx". `site`: NULL or "" the method itself, "*" everything made below it, or a
 * group's or region's name or a prefix of its hash. `dot`: Graphviz, for the stages that are
 * graphs. */
KILN_API kiln_status *kiln_debug_graph(kiln_model *model, const char *method, const char *stage,
                                       const char *site, int dot, char **out_text);
/* Name and meaning of stage `index`, static; NULL beyond the last. */
KILN_API const char *kiln_debug_stage(int index, const char **out_meaning);

/* -- What was refused -- */

typedef struct kiln_debug_refusal_info {
  const char *site;     /* where: method and hash of its graph */
  const char *reason;   /* identifier of `kiln list reasons` */
  const char *sentence; /* its sentence */
  const char *detail;   /* "aten::mm", or "" */
  const char *file;     /* of the model's source; NULL: unknown */
  int line;
  uint64_t count;
} kiln_debug_refusal_info;
/* KILN_NOT_FOUND beyond the last. Texts are borrowed until the model is released. */
KILN_API kiln_status *kiln_debug_refusal(kiln_model *model, int index,
                                         kiln_debug_refusal_info *out_refusal);

/* Guards that failed: rows of site, the value that was not as recorded, the type that was expected
 * and the one that was seen, file and line of what was guarded ("": unknown), the number of the
 * call that it happened in first, and how often. Of a guard that fails often only the first are
 * told. */
KILN_API kiln_status *kiln_debug_model_misses(kiln_model *model, kiln_debug_row_fn row, void *user);

/* -- Where time goes -- */

/* Groups, in the order of kiln_model_group: rows of name, operators in words, shapes of the
 * results, file and line, and what is known of its kernel's schedule from measuring (the flag
 * autotune), or "". */
KILN_API kiln_status *kiln_debug_model_groups(kiln_model *model, kiln_debug_row_fn row, void *user);
/* What levels took to be made, and what they save: rows of the function's name, the site, the
 * level, nanoseconds of making it, the shortest run of the interpreter and how many runs that is
 * of, both of the level's plan (of arguments of the same types; 0: none was measured), and "yes"
 * where the plan was retired for being slower. */
KILN_API kiln_status *kiln_debug_model_ledger(kiln_model *model, kiln_debug_row_fn row, void *user);
/* From now on one of `every` calls that a thread of an instance makes is timed, instruction by
 * instruction, which costs some 50 ns each; the others cost nothing. 0: none is. Plans have room
 * for times if they are compiled behind the first of these: ask before the first call. */
KILN_API kiln_status *kiln_debug_model_time(kiln_model *model, uint32_t every);
/* What the plans that serve now have taken: rows of kind ("group", "operator", "interpreter"),
 * name, function, level, file, line, nanoseconds, count, FLOPs and bytes of one run with the sizes
 * that the plan was compiled for (0: none, or not known; of operators outside of groups whose
 * types do not tell the bytes of the tensors that went in), one for each instruction. */
KILN_API kiln_status *kiln_debug_model_times(kiln_model *model, kiln_debug_row_fn row, void *user);

/* -- Where tensors lie -- */

/* The memory plan of an instance's last call that went by one (the flag memory_plan). */
typedef struct kiln_debug_memory {
  uint64_t tensors; /* that have a place in it */
  uint64_t bytes;   /* of the one block that they lie in */
  uint64_t least;   /* the most of their bytes that lived at once: no plan takes less */
  uint64_t runs;    /* that went by this plan */
} kiln_debug_memory;
/* And those tensors: rows of what made it (""; known where kiln_debug_model_time asked
 * for each call), file, line, offset in the block, bytes, and times of a clock that counts tensors
 * made and let go: from and to. `row` may be NULL. KILN_NOT_FOUND: no call had a plan yet, which
 * takes four of equal sizes, or they make no tensor of 4 KB that they do not return. Not while the
 * instance is called. */
KILN_API kiln_status *kiln_debug_instance_memory(kiln_instance *instance,
                                                 kiln_debug_memory *out_memory,
                                                 kiln_debug_row_fn row, void *user);

/* -- Kernels in files (the option cache_dir) -- */

/* The files: rows of name, bytes, seconds since 1970 when it was used last, instruction set, name
 * of the kernel, hash of its group ("" where the file does not say), why this process does not use
 * it, or "", and "yes" where no process of this Kiln does. Each file is read.
 * KILN_INVALID_ARGUMENT: there is no folder; KILN_INVALID_FILE: others may write to it. */
KILN_API kiln_status *kiln_debug_cache(kiln_context *context, kiln_debug_row_fn row, void *user);
/* Removes what no process of this Kiln can use, and with `bytes` not 0 the longest unused until the
 * rest have at most so many. */
KILN_API kiln_status *kiln_debug_cache_prune(kiln_context *context, uint64_t bytes,
                                             int *out_removed);
/* Before the first load: kernels that are asked for are noted, and none is written. */
KILN_API kiln_status *kiln_debug_cache_watch(kiln_context *context);
/* Those: rows of the group's hash, the kernel's name, "yes" where it was found, and else why it was
 * not. */
KILN_API kiln_status *kiln_debug_cache_lookups(kiln_context *context, kiln_debug_row_fn row,
                                               void *user);

/* -- Models at rest: none of these runs code of the model -- */

/* kiln_model_load without what it may run (__setstate__ of the archive), and without stopping at
 * bodies that do not compile. The model answers questions; instances of it are refused. */
KILN_API kiln_status *kiln_debug_model_open(kiln_context *context, const char *path,
                                            const kiln_limits *limits, kiln_model **out_model);
/* Rows of a fact's name and its value: version, files, root, functions, … */
KILN_API kiln_status *kiln_debug_model_facts(kiln_model *model, kiln_debug_row_fn row, void *user);
/* Files of source: rows of name and text. Only of models that kiln_debug_model_open gave. */
KILN_API kiln_status *kiln_debug_model_sources(kiln_model *model, kiln_debug_row_fn row,
                                               void *user);
/* Functions whose body does not compile: rows of name and why. */
KILN_API kiln_status *kiln_debug_model_errors(kiln_model *model, kiln_debug_row_fn row, void *user);
/* Every function and method of the archive: rows of its qualified name and its graph. */
KILN_API kiln_status *kiln_debug_model_functions(kiln_model *model, kiln_debug_row_fn row,
                                                 void *user);
/* Operators of all graphs: rows of full name, count, "yes" or "no" for whether Kiln has it, and
 * where it first stands. */
KILN_API kiln_status *kiln_debug_model_ops(kiln_model *model, kiln_debug_row_fn row, void *user);
/* Tensors of the root module: rows of path, "parameter", "buffer", "attribute" or
 * "constant" (of a frozen module), dtype, shape and
 * bytes. */
KILN_API kiln_status *kiln_debug_model_weights(kiln_model *model, kiln_debug_row_fn row,
                                               void *user);

/* What one call of a method would cost, by propagation of shapes from these inputs: the method is
 * not called, no element of an input is read, and no state changes. Arithmetic on constants (sizes)
 * is evaluated, and an operator without a shape function is run alone, once, on zeros. */
typedef struct kiln_debug_cost {
  uint64_t flops;       /* 2 for a multiply-add, 1 for an element of another operator's result */
  uint64_t made_bytes;  /* of all tensors that operators make */
  uint64_t peak_bytes;  /* of those that live at the same time; without inputs and weights */
  uint64_t input_bytes; /* of the arguments' tensors */
  uint64_t unknown;     /* operators whose cost is not known: it is missing in the sums */
  uint64_t branches;    /* that are not decided: the costlier side is counted */
  uint64_t loops;       /* of unknown length: one round is counted */
} kiln_debug_cost;
/* Rows of operator, count, flops, bytes made, and how many of unknown cost; operators that cost
 * nothing are left out. Missing arguments take their defaults. */
KILN_API kiln_status *kiln_debug_model_cost(kiln_model *model, const char *method,
                                            kiln_value *const *inputs, int input_count,
                                            kiln_debug_cost *out_cost, kiln_debug_row_fn row,
                                            void *user);

#ifdef __cplusplus
}
#endif

#endif
