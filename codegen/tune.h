/* tune.h: schedules that are found by measuring (the flag autotune). For codegen/ only.
 *
 * A search compiles schedules beside the rules' (kiln_schedule_moves), runs each in turns with the
 * best so far on the kernel's own sizes, and takes one that wins by more than the noise. What it
 * ends with is kept in a file, by what the times hang on: the kernel, the instruction set, the
 * machine, the threads, the generator. A context keeps what it has read or found for as long as it
 * lives, so that all its models, and what is printed of them, have one schedule.
 *
 * Files: whatever they hold, what comes of them is a legal schedule of the kernel or none. They are
 * read where they and their folder are the user's and nobody else may write them; a file that is
 * not such a one, or holds something else, is told (channel warn) and left alone. They are written
 * under another name and renamed: who reads sees all of one or none, and of processes that write at
 * the same time the last one's stays. */
#pragma once

#include <pthread.h>

#include "base/job_lock.h"
#include "codegen/codegen.h"
#include "codegen/loop/schedule.h"
#include "runtime/kernel_shape.h"

/* As the words of the flag. */
enum { KILN__TUNE_OFF, KILN__TUNE_ON, KILN__TUNE_USE };
enum { KILN__PROBE_TENSORS = 256 };
enum { KILN__TUNE_SLOTS = 256, KILN__TUNE_PATH = 1024, KILN__TUNE_KEY = 512 };

/* What is known of one kernel. */
typedef struct kiln__tuned {
  struct kiln__tuned *same_slot;
  kiln_digest kernel;
  size_t size; /* of this block */
  kiln_tuned about;
  char text[]; /* of its schedule, where `about` says that there is one */
} kiln__tuned;

typedef struct kiln__tuner {
  kiln_env *env;               /* borrowed */
  const kiln_machine *machine; /* borrowed */
  int mode;                    /* the flag, as it was when the context was made */
  bool exact;                  /* that flag, too */
  pid_t maker;
  pthread_mutex_t lock; /* of the slots; for moments */
  kiln__tuned *slots[KILN__TUNE_SLOTS];
  kiln_job_lock searching;      /* one search at a time: two would measure each other; of: */
  uint64_t left_ns;             /* that searches may take */
  char folder[KILN__TUNE_PATH]; /* "": there is none */
} kiln__tuner;

void kiln__tuner_init(kiln__tuner *tuner, kiln_env *env, const kiln_machine *machine);
void kiln__tuner_deinit(kiln__tuner *tuner);
/* The schedule that is known of the kernel, in the arena; false: none is. */
bool kiln__tuner_find(kiln__tuner *tuner, const kiln_loop_fn *fn, kiln_digest kernel,
                      kiln_arena *arena, kiln_schedule *out_schedule, kiln_tuned *out_about);
/* It could not be compiled. */
void kiln__tuner_forget(kiln__tuner *tuner, kiln_digest kernel);

/* codegen.c: LLVM's kernel with that schedule, which no cache gets. */
kiln_status *kiln__codegen_make(kiln_codegen *codegen, const kiln_loop_fn *fn,
                                const kiln_schedule *schedule,
                                kiln_compiled **out_code) KILN_MUST_USE;
kiln__tuner *kiln__codegen_tuner(kiln_codegen *codegen);

/* -- tune_measure.c: a kernel's arguments, and what running takes -- */

/* Memory of the kernel's tensors but for those that are packed, filled with what its indices may
 * be. Zeroed: nothing. */
typedef struct kiln__probe {
  kiln_env *env;
  const kiln_loop_fn *fn;
  const kiln_machine *machine;
  const int64_t *symbols; /* NULL: it has none */
  int tensor_count;
  void *data[KILN__PROBE_TENSORS]; /* NULL: it is packed */
  size_t bytes[KILN__PROBE_TENSORS];
  kiln_kernel_scalar scalars[KILN__PROBE_TENSORS];
  uint64_t below; /* of integers: indices are checked against it and more */
} kiln__probe;
/* `code`: of the rules' schedule; all others pack the same inputs. */
kiln_status *kiln__probe_open(kiln__probe *probe, const kiln_compiled *code,
                              kiln_arena *scratch) KILN_MUST_USE;
void kiln__probe_close(kiln__probe *probe);

/* A kernel that runs on them, with packed inputs of its own. These are weights, most of the time,
 * and come from far where a network has other layers: there are several of each, in turns, which
 * are more than the second cache holds. Zeroed: nothing. */
enum { KILN__PROBE_SETS = 8 };
typedef struct kiln__runner {
  kiln__probe *probe;
  kiln_compiled *code; /* owned */
  kiln_kernel_work work;
  int sets, next;
  void *packs; /* of all sets */
  size_t pack_bytes, set_bytes, scratch_bytes, scratch_each;
  void *scratch;
  double call_ns; /* roughly */
} kiln__runner;
/* Takes the code. It has run once and found no fault, or KILN_UNSUPPORTED. */
kiln_status *kiln__runner_open(kiln__runner *runner, kiln__probe *probe,
                               kiln_compiled *code) KILN_MUST_USE;
void kiln__runner_close(kiln__runner *runner);
/* Both in turns, `rounds` times or until then: median nanoseconds of a call. Whether b is faster by
 * 3 % in half of the turns, and at all in three quarters of them: what slows down both, for a
 * while, decides nothing. KILN_LIMIT and KILN_CANCELLED of the thread's budget. */
typedef struct kiln__duel {
  double a_ns, b_ns;
  bool b_wins;
} kiln__duel;
kiln_status *kiln__runner_duel(kiln__runner *a, kiln__runner *b, int rounds, uint64_t until_ns,
                               kiln__duel *out) KILN_MUST_USE;

/* -- tune_store.c: files -- */

/* What the file of a kernel is kept under: all that its times hang on. */
void kiln__store_key(const kiln__tuner *tuner, kiln_digest kernel, char out_key[KILN__TUNE_KEY]);
/* The folder of the flags and the environment. */
void kiln__store_folder(kiln__tuner *tuner);
/* A file's schedule and its times; KILN_NOT_FOUND: there is no such file; else what is wrong. */
kiln_status *kiln__store_read(const kiln__tuner *tuner, kiln_digest kernel, const kiln_loop_fn *fn,
                              kiln_arena *arena, kiln_schedule *out_schedule,
                              kiln_tuned *out_about) KILN_MUST_USE;
kiln_status *kiln__store_write(const kiln__tuner *tuner, kiln_digest kernel, kiln_str schedule,
                               const kiln_tuned *about, kiln_arena *scratch) KILN_MUST_USE;
