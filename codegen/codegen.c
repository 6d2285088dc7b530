/* codegen.c: kernels: compiled, loaded, counted. */
#include "codegen/codegen.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/job_lock.h"
#include "codegen/cache.h"
#include "codegen/gdb.h"
#include "codegen/generator_version.h"
#include "codegen/llvm/backend.h"
#include "codegen/llvm/exit.h"
#include "codegen/loop/eval.h"
#include "codegen/loop/schedule.h"
#include "codegen/object_store.h"
#include "codegen/object.h"
#include "codegen/pairs.h"
#include "codegen/process.h"
#include "codegen/perf.h"
#include "codegen/tune.h"
#include "runtime/kernel_shape.h"
#include "runtime/pack.h"

/* Who calls LLVM: here, or in a process of its own. For one thread at a time. */
typedef struct worker {
  struct worker *next;
  kiln__llvm_backend *llvm;
  kiln__process process;
  pid_t holder; /* the process whose thread has it; 0: none */
} worker;

struct kiln_codegen {
  kiln_env *env; /* borrowed */
  kiln_machine machine;
  kiln_job_lock lock; /* of the workers but for those that are held, of LLVM's opening, and of: */
  worker *workers;    /* as many as threads have compiled at a time */
  bool told;          /* that there is no LLVM */
  bool apart;         /* the flag compile_process: LLVM is never called in this one */
  bool open;          /* atomic: libLLVM is, in this process */
  bool broken;        /* atomic: see kiln__llvm_backend_create */
  int jobs;           /* atomic: under way; while there are any, processes live */
  uint64_t memory;    /* atomic: that a process may take; 0: no limit */
  kiln__cache cache;
  kiln__object_store store;
  kiln__tuner tuner;
  kiln_pack_store *packs;
  kiln__perf *perf; /* NULL: nobody is told of kernels */
};

typedef struct code {
  kiln_compiled public;
  _Atomic int refs;
  kiln_mem *mem;
  kiln__pages pages;
  kiln_eval_program *program;
  kiln_kernel_shape *shape;
  kiln_kernel_pack *packs;
  void *object;
  kiln__gdb_entry *gdb; /* NULL: no debugger is told */
} code;

/* Of workers that nobody has; the library goes with the last, if it can. */
static void unload_llvm(kiln_codegen *codegen) {
  if (!kiln_job_lock_look(&codegen->lock)) return;
  bool any = false;
  for (worker *w = codegen->workers; w; w = w->next) {
    if (w->holder || !kiln__llvm_backend_unloads(w->llvm)) {
      any = any || w->llvm;
      continue;
    }
    kiln__llvm_backend_destroy(w->llvm);
    w->llvm = NULL;
    kiln_timeline_mark(codegen->env->timeline, KILN_EVENT_llvm, "unloaded", 0, NULL);
  }
  __atomic_store_n(&codegen->open, any, __ATOMIC_RELAXED);
  kiln_job_lock_give(&codegen->lock);
}

/* No job has come for a while: what jobs have left free, calls would not take. */
static void idle(void *user) {
  kiln_codegen *codegen = user;
  unload_llvm(codegen);
  kiln_mem_give_back(codegen->env->mem);
}

kiln_status *kiln_codegen_create(kiln_env *env, kiln_codegen **out_codegen) {
  kiln_machine machine;
  KILN_TRY(kiln_machine_describe(env->isa, kiln_str_from(env->flags.machine.text), &machine));
  if (machine.pairs && env->flags.matmul == KILN_FACTORS_BF16 && !env->flags.machine.text[0])
    machine.pairs = kiln__pairs_pay();
  kiln_codegen *codegen = kiln_mem_alloc_zero(env->mem, sizeof *codegen);
  if (!codegen) return kiln_status_oom();
  codegen->env = env;
  codegen->machine = machine;
  kiln_status *status = kiln__perf_open(env->mem, env->flags.perf, &codegen->perf);
  if (!status) status = kiln_pack_store_create(env->mem, &codegen->packs);
  if (status) {
    kiln__perf_close(codegen->perf);
    kiln_mem_free(env->mem, codegen, sizeof *codegen);
    return status;
  }
  codegen->apart = env->flags.compile_process;
  codegen->memory = (uint64_t)env->flags.compile_memory;
  kiln_job_lock_init(&codegen->lock);
  kiln__cache_init(&codegen->cache, env, (uint64_t)env->flags.code_cache);
  kiln__object_store_init(&codegen->store, env);
  kiln__tuner_init(&codegen->tuner, env, &codegen->machine);
  kiln_job_queue_set_idle(env->jobs, (int)env->flags.llvm_idle_s, idle, codegen);
  *out_codegen = codegen;
  return NULL;
}

void kiln_codegen_destroy(kiln_codegen *codegen) {
  if (!codegen) return;
  kiln_mem *mem = codegen->env->mem;
  kiln_job_queue_set_idle(codegen->env->jobs, 0, NULL, NULL);
  kiln__cache_deinit(&codegen->cache);
  kiln__tuner_deinit(&codegen->tuner);
  kiln__object_store_deinit(&codegen->store);
  kiln_pack_store_destroy(codegen->packs);
  kiln__perf_close(codegen->perf);
  for (worker *w = codegen->workers, *next; w; w = next) {
    next = w->next;
    kiln__llvm_backend_destroy(w->llvm);
    kiln__process_end(&w->process);
    kiln_mem_free(mem, w, sizeof *w);
  }
  kiln_job_lock_deinit(&codegen->lock);
  kiln_mem_free(mem, codegen, sizeof *codegen);
}

void kiln_codegen_watch_exit(void) { kiln__llvm_watch_main(); }

kiln_pack_store *kiln_codegen_packs(const kiln_codegen *codegen) { return codegen->packs; }

bool kiln_codegen_llvm_is_open(const kiln_codegen *codegen) {
  return __atomic_load_n(&codegen->open, __ATOMIC_RELAXED);
}

/* -- Workers; under the lock -- */

static void tell_missing(kiln_codegen *codegen, const kiln_status *status) {
  if (codegen->told) return;
  codegen->told = true;
  KILN_LOG(&codegen->env->log, warn, 1,
           "%s; fused groups run in the interpreter (the option llvm names the library, "
           "codegen=eval does without)",
           kiln_status_message(status));
}

/* One that nobody has, or a new one. */
static kiln_status *find_worker(kiln_codegen *codegen, worker **out_worker) {
  const pid_t self = getpid();
  worker **link = &codegen->workers, *idle = NULL;
  for (; *link; link = &(*link)->next) {
    if ((*link)->holder && (*link)->holder != self) {
      return KILN_ERROR(KILN_UNSUPPORTED,
                        "another thread was compiling when this process was forked: a child makes "
                        "a context of its own then");
    }
    if (!(*link)->holder && !idle) idle = *link;
  }
  if (!idle) idle = *link = kiln_mem_alloc_zero(codegen->env->mem, sizeof *idle);
  if (!idle) return kiln_status_oom();
  *out_worker = idle;
  return NULL;
}

static kiln_status *open_llvm(kiln_codegen *codegen, worker *w) {
  if (codegen->apart || w->llvm) return NULL;
  kiln_timeline *timeline = codegen->env->timeline;
  const uint64_t began = kiln_timeline_now(timeline);
  KILN_TRY(kiln__llvm_backend_create(codegen->env, codegen->env->isa, &codegen->broken, &w->llvm));
  kiln_timeline_span(timeline, KILN_EVENT_llvm, "opened", began, 0, NULL);
  __atomic_store_n(&codegen->open, true, __ATOMIC_RELAXED);
  return NULL;
}

static void end_idle_processes(kiln_codegen *codegen) {
  if (__atomic_load_n(&codegen->jobs, __ATOMIC_ACQUIRE) > 0) return;
  for (worker *w = codegen->workers; w; w = w->next) {
    if (!w->holder) kiln__process_end(&w->process);
  }
}

static kiln_status *take_locked(kiln_codegen *codegen, kiln_reason *out_reason,
                                worker **out_worker) {
  worker *w;
  *out_reason = KILN_REASON_out_of_memory;
  KILN_TRY(find_worker(codegen, &w));
  *out_reason = KILN_REASON_llvm_missing;
  kiln_status *status = open_llvm(codegen, w);
  if (status) {
    tell_missing(codegen, status);
    return status;
  }
  w->holder = getpid();
  *out_worker = w;
  return NULL;
}

/* -- LLVM; without the lock -- */

static kiln_status *take_worker(kiln_codegen *codegen, kiln_reason *out_reason,
                                worker **out_worker) {
  kiln_budget *budget = kiln_budget_current();
  *out_reason = KILN_REASON_compile_budget;
  if (budget && budget->is_quick) {
    budget->has_left = true;
    return KILN_ERROR(KILN_CANCELLED, "compiling is left to a job");
  }
  KILN_TRY(kiln_job_lock_take(&codegen->lock, kiln_budget_current()));
  kiln_status *status = take_locked(codegen, out_reason, out_worker);
  kiln_job_lock_give(&codegen->lock);
  return status;
}

/* Holding it keeps nobody: it is given back whatever the budget says. */
static void give_worker(kiln_codegen *codegen, worker *w, const kiln_status *missing) {
  if (!kiln_job_lock_look(&codegen->lock)) return;
  if (missing) tell_missing(codegen, missing);
  w->holder = 0;
  end_idle_processes(codegen);
  kiln_job_lock_give(&codegen->lock);
}

/* What is asked of LLVM. All that takes memory of an arena is done before: then nothing is held. */
typedef struct llvm_job {
  kiln_codegen *codegen;
  const kiln_loop_fn *fn;
  kiln_scheduled scheduled; /* of it, as LLVM is to run it */
  kiln_loop_flat flat;      /* of that */
  kiln_str text;            /* of both */
  kiln_digest digest;       /* of the kernel's text alone; the name has that of both */
  char name[KILN_KERNEL_SYMBOL_BYTES];
  kiln__llvm_product product;
  void *bytes;
  size_t size;
} llvm_job;

/* `schedule`: NULL: the kernel runs as it stands. */
static llvm_job make_job(kiln_codegen *codegen, const kiln_loop_fn *fn,
                         const kiln_schedule *schedule, kiln__llvm_product product,
                         kiln_arena *scratch) {
  llvm_job job = {.codegen = codegen, .fn = fn, .scheduled = {.fn = fn}, .product = product};
  const char *prefix = product == KILN__LLVM_PTX ? KILN_GPU_SYMBOL : KILN_KERNEL_SYMBOL;
  job.text = kiln_loop_print(fn, scratch);
  job.digest = kiln_digest_bytes(job.text.data, job.text.len);
  if (schedule) {
    const kiln_str text = kiln_schedule_print(schedule, scratch);
    job.scheduled = kiln_schedule_apply(fn, schedule, scratch);
    job.text = kiln_str_from(kiln_arena_printf(scratch, KILN_STR_FMT KILN_STR_FMT,
                                               KILN_STR_ARG(job.text), KILN_STR_ARG(text)));
  }
  job.flat = kiln_loop_flatten(job.scheduled.fn, kiln__llvm_width(product), scratch);
  memcpy(job.name, prefix, strlen(prefix));
  kiln_digest_format(kiln_digest_bytes(job.text.data, job.text.len), job.name + strlen(prefix));
  return job;
}

static kiln_status *run_here(worker *w, llvm_job *job, kiln_reason *out_reason) {
  *out_reason = KILN_REASON_llvm_failed;
  kiln_status *status = kiln__llvm_backend_compile(w->llvm, &job->flat, job->name, job->product,
                                                   &job->bytes, &job->size);
  give_worker(job->codegen, w, NULL);
  return status;
}

static kiln_status *run_apart(worker *w, llvm_job *job, kiln_reason *out_reason) {
  kiln_codegen *codegen = job->codegen;
  kiln_status *status = kiln__process_compile(
      &w->process, codegen->env, __atomic_load_n(&codegen->memory, __ATOMIC_RELAXED), job->text,
      job->name, job->product, out_reason, &job->bytes, &job->size);
  const bool missing = *out_reason == KILN_REASON_llvm_missing && !kiln_status_ends(status);
  give_worker(codegen, w, missing ? status : NULL);
  return status;
}

static kiln_status *run_llvm(llvm_job *job, kiln_reason *out_reason) {
  worker *w;
  KILN_TRY(take_worker(job->codegen, out_reason, &w));
  return job->codegen->apart ? run_apart(w, job, out_reason) : run_here(w, job, out_reason);
}

void kiln_codegen_begin(kiln_codegen *codegen, uint64_t memory) {
  if (!codegen) return;
  __atomic_add_fetch(&codegen->jobs, 1, __ATOMIC_ACQ_REL);
  __atomic_store_n(&codegen->memory, memory, __ATOMIC_RELAXED);
}

void kiln_codegen_end(kiln_codegen *codegen) {
  if (!codegen || __atomic_sub_fetch(&codegen->jobs, 1, __ATOMIC_ACQ_REL) > 0) return;
  if (!kiln_job_lock_look(&codegen->lock)) return;
  end_idle_processes(codegen);
  kiln_job_lock_give(&codegen->lock);
}

uint64_t kiln_codegen_kept_bytes(kiln_codegen *codegen) {
  return codegen ? __atomic_load_n(&codegen->cache.bytes, __ATOMIC_RELAXED) : 0;
}

kiln__object_store *kiln__codegen_store(kiln_codegen *codegen) { return &codegen->store; }

/* -- Schedules that were found -- */

kiln__tuner *kiln__codegen_tuner(kiln_codegen *codegen) { return &codegen->tuner; }

static kiln_digest digest_of(const kiln_loop_fn *fn, kiln_arena *scratch) {
  const kiln_str text = kiln_loop_print(fn, scratch);
  return kiln_digest_bytes(text.data, text.len);
}

/* -- Kernels -- */

kiln_compiled *kiln_compiled_retain(kiln_compiled *kernel) {
  atomic_fetch_add_explicit(&((code *)kernel)->refs, 1, memory_order_relaxed);
  return kernel;
}

kiln_code_image kiln_compiled_image(const kiln_compiled *kernel) {
  const kiln__pages *pages = &((const code *)kernel)->pages;
  return (kiln_code_image){.bytes = pages->base,
                           .size = pages->used,
                           .entry = (size_t)((uintptr_t)kernel->fn - (uintptr_t)pages->base)};
}

void kiln_compiled_release(kiln_compiled *kernel) {
  code *c = (code *)kernel;
  if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) return;
  kiln__gdb_leave(c->gdb);
  kiln__pages_release(&c->pages);
  kiln_eval_destroy(c->program);
  if (c->shape) kiln_mem_free(c->mem, c->shape, c->shape->bytes);
  if (c->packs)
    kiln_mem_free(c->mem, c->packs, sizeof *c->packs * (size_t)c->public.info.pack_count);
  kiln_mem_free(c->mem, c->object, c->public.object_bytes);
  kiln_mem_free(c->mem, c, sizeof *c);
}

static kiln_status *build_eval(kiln_isa isa, code *c, const kiln_loop_fn *fn, kiln_arena *scratch,
                               kiln_reason *out_reason) {
  static const kiln_eval_table *const tables[KILN_ISA__COUNT] = {
      [KILN_ISA_V2] = &kiln__eval_v2,
      [KILN_ISA_AVX2] = &kiln__eval_avx2,
#if KILN_KERNEL_ISAS > 2
      [KILN_ISA_AVX512] = &kiln__eval_avx512,
#endif
  };
  while (!tables[isa]) isa--;
  *out_reason = KILN_REASON_out_of_memory;
  KILN_TRY(kiln_eval_create(fn, tables[isa], c->mem, scratch, &c->program));
  c->public.code_bytes = kiln_eval_bytes(c->program);
  c->public.fn = kiln_eval_run;
  c->public.closure = c->program;
  return NULL;
}

static kiln_status *load_object(code *c, const llvm_job *job, kiln_reason *out_reason) {
  *out_reason = KILN_REASON_load_failed;
  return kiln__object_load(job->bytes, job->size, job->name, &c->pages, &c->public.fn);
}

static kiln__object_name object_name(const llvm_job *job) {
  kiln__object_name name = {.kernel = job->name};
  kiln_digest_format(job->digest, name.group);
  return name;
}

/* From a file, if there is one of it. */
static bool find_object(code *c, llvm_job *job, kiln_reason *out_reason) {
  kiln_codegen *codegen = job->codegen;
  const kiln__object_name name = object_name(job);
  if (!kiln__object_store_read(&codegen->store, &name, &job->bytes, &job->size)) return false;
  kiln_status *status = load_object(c, job, out_reason);
  if (!status) return true;
  KILN_LOG(&codegen->env->log, warn, 1, "cache_dir: kernel %s is compiled anew: %s", job->name,
           kiln_status_message(status));
  kiln_status_destroy(status);
  kiln_mem_free(c->mem, job->bytes, job->size);
  return false;
}

static kiln_status *build_llvm(code *c, llvm_job *job, kiln_reason *out_reason) {
  c->public.is_found = find_object(c, job, out_reason);
  if (!c->public.is_found) KILN_TRY(run_llvm(job, out_reason));
  c->object = job->bytes;
  c->public.object = job->bytes;
  c->public.object_bytes = job->size;
  if (!c->public.is_found) {
    const kiln__object_name name = object_name(job);
    KILN_TRY(load_object(c, job, out_reason));
    kiln__object_store_write(&job->codegen->store, &name, job->bytes, job->size);
  }
  c->public.code_bytes = c->pages.size;
  const void *begin;
  char name[] = "kiln_00000000000000000000000000000000"; /* the hash that the user knows */
  memcpy(&begin, &c->public.fn, sizeof begin);
  kiln_digest_format(job->digest, name + strlen("kiln_"));
  kiln__perf_tell(job->codegen->perf, name, begin, c->pages.code_bytes);
  return job->codegen->env->flags.gdb
             ? kiln__gdb_enter(c->mem, job->bytes, job->size, &c->pages, job->name, name, &c->gdb)
             : NULL;
}

/* What callers must know; a shape becomes the kernel's own. */
static kiln_status *describe(code *c, const kiln_scheduled *scheduled, kiln_arena *scratch,
                             kiln_reason *out_reason) {
  const int lanes = c->program ? kiln_eval_columns() : KILN_LOOP_LANES;
  const int64_t own = c->program ? kiln_eval_own_bytes(c->program) : 0;
  *out_reason = KILN_REASON_too_long;
  KILN_TRY(kiln_loop_info(scheduled->fn, lanes, own, scratch, &c->public.info));
  *out_reason = KILN_REASON_out_of_memory;
  const kiln_loop_fn *fn = scheduled->fn;
  int packs = scheduled->pack_count;
  for (int i = 0; i < fn->input_count; i++) packs += fn->buffers.data[i].copy != NULL;
  if (packs > 0) {
    c->packs = kiln_mem_alloc(c->mem, sizeof *c->packs * (size_t)packs);
    if (!c->packs) return kiln_status_oom();
    c->public.info.packs = c->packs;
    c->public.info.pack_count = packs;
    for (int i = 0; i < scheduled->pack_count; i++) c->packs[i] = scheduled->packs[i];
    for (int i = fn->input_count - 1; i >= 0; i--)
      if (fn->buffers.data[i].copy) c->packs[--packs] = kiln_loop_describe_copy(fn, i);
  }
  const kiln_kernel_shape *shape = c->public.info.shape;
  if (!shape) return NULL;
  c->public.info.shape = c->shape = kiln_mem_alloc(c->mem, shape->bytes);
  if (!c->shape) return kiln_status_oom();
  memcpy(c->shape, shape, shape->bytes);
  return NULL;
}

static kiln_status *build(code *c, llvm_job *job, kiln_arena *scratch, kiln_reason *out_reason) {
  if (c->public.backend == KILN_BACKEND_EVAL) {
    KILN_TRY(build_eval(job->codegen->env->isa, c, job->fn, scratch, out_reason));
  } else {
    KILN_TRY(build_llvm(c, job, out_reason));
  }
  return describe(c, &job->scheduled, scratch, out_reason);
}

static void release_code(void *arg) { kiln_compiled_release(arg); }

static kiln_status *make_code(llvm_job *job, kiln_backend backend, kiln_reason *out_reason,
                              kiln_compiled **out_code) {
  int64_t begin = (int64_t)kiln_now_ns();
  kiln_mem *mem = job->codegen->env->mem;
  *out_reason = KILN_REASON_out_of_memory;
  kiln_arena *scratch = kiln_arena_scoped(mem);
  code *c = kiln_mem_alloc_zero(mem, sizeof *c);
  if (!c) return kiln_status_oom();
  c->mem = mem;
  atomic_init(&c->refs, 1);
  c->public.backend = backend;
  c->public.digest = job->digest;
  kiln_cleanup freeing;
  kiln_scope_defer(&freeing, release_code, c);
  kiln_status *status = build(c, job, scratch, out_reason);
  kiln_scope_undefer(&freeing);
  kiln_arena_destroy(scratch);
  if (status) {
    kiln_compiled_release(&c->public);
    return status;
  }
  c->public.compile_ns = (int64_t)kiln_now_ns() - begin;
  *out_reason = KILN_REASON_none;
  *out_code = &c->public;
  return NULL;
}

/* Of an entry of the cache, which the caller holds. */
static kiln_status *compile(llvm_job *job, kiln_backend backend, kiln_reason *out_reason,
                            kiln_compiled **out_code) {
  KILN_PROTECT(make_code(job, backend, out_reason, out_code));
}

/* What a kernel in memory depends on. */
static kiln_digest key_of(const llvm_job *job, kiln_backend backend) {
  char text[160];
  const int len = snprintf(text, sizeof text, "%s, backend %d, %s, %s", kiln__generator_version,
                           (int)backend, kiln_isa_name(job->codegen->env->isa), job->name);
  return kiln_digest_bytes(text, (size_t)len);
}

static kiln_status *obtain(llvm_job *job, kiln_backend backend, kiln_reason *out_reason,
                           kiln_compiled **out_code, bool *out_made) {
  kiln__cache *cache = &job->codegen->cache;
  kiln__cache_entry *entry;
  kiln_status *status = NULL;
  *out_reason = KILN_REASON_compile_budget;
  KILN_TRY(kiln__cache_enter(cache, key_of(job, backend), &entry));
  *out_reason = KILN_REASON_none;
  const bool make = !entry->code;
  if (make) status = compile(job, backend, out_reason, &entry->code);
  switch (kiln_status_code(status)) { /* wherever it came from */
    case KILN_OUT_OF_MEMORY: *out_reason = KILN_REASON_out_of_memory; break;
    case KILN_LIMIT:
    case KILN_CANCELLED: *out_reason = KILN_REASON_compile_budget; break;
    default: break;
  }
  if (out_made) *out_made = make && !status && !entry->code->is_found;
  if (!status) *out_code = kiln_compiled_retain(entry->code);
  kiln__cache_leave(cache, entry);
  return status;
}

kiln_status *kiln_codegen_compile_ruled(kiln_codegen *codegen, const kiln_loop_fn *fn,
                                        kiln_backend backend, kiln_reason *out_reason,
                                        kiln_compiled **out_code, bool *out_made) {
  kiln_arena *scratch = kiln_arena_scoped(codegen->env->mem);
  const kiln_schedule schedule = kiln_schedule_choose(fn, &codegen->machine, scratch);
  llvm_job job = make_job(codegen, fn, backend == KILN_BACKEND_LLVM ? &schedule : NULL,
                          KILN__LLVM_OBJECT, scratch);
  kiln_status *status = obtain(&job, backend, out_reason, out_code, out_made);
  kiln_arena_destroy(scratch);
  return status;
}

/* With what was found by measuring; *out_found: whether anything was. Where it does not compile the
 * rules' does. */
static kiln_status *compile_found(kiln_codegen *codegen, const kiln_loop_fn *fn,
                                  kiln_reason *out_reason, kiln_compiled **out_code, bool *out_made,
                                  bool *out_found) {
  kiln_arena *scratch = kiln_arena_scoped(codegen->env->mem);
  kiln_schedule schedule;
  kiln_tuned about;
  const kiln_digest kernel = digest_of(fn, scratch);
  *out_found = kiln__tuner_find(&codegen->tuner, fn, kernel, scratch, &schedule, &about);
  kiln_status *status = NULL;
  if (*out_found) {
    llvm_job job = make_job(codegen, fn, &schedule, KILN__LLVM_OBJECT, scratch);
    status = obtain(&job, KILN_BACKEND_LLVM, out_reason, out_code, out_made);
  }
  if (status && !kiln_status_ends(status)) {
    KILN_LOG(&codegen->env->log, warn, 1, "autotune: a schedule is not used: %s",
             kiln_status_report(status));
    kiln_status_destroy(status);
    status = NULL;
    *out_found = false;
    kiln__tuner_forget(&codegen->tuner, kernel);
  }
  kiln_arena_destroy(scratch);
  return status;
}

kiln_status *kiln_codegen_compile(kiln_codegen *codegen, const kiln_loop_fn *fn,
                                  kiln_backend backend, kiln_reason *out_reason,
                                  kiln_compiled **out_code, bool *out_made) {
  bool found = false;
  if (backend == KILN_BACKEND_LLVM && codegen->tuner.mode != KILN__TUNE_OFF)
    KILN_TRY(compile_found(codegen, fn, out_reason, out_code, out_made, &found));
  if (found) return NULL;
  return kiln_codegen_compile_ruled(codegen, fn, backend, out_reason, out_code, out_made);
}

kiln_status *kiln__codegen_make(kiln_codegen *codegen, const kiln_loop_fn *fn,
                                const kiln_schedule *schedule, kiln_compiled **out_code) {
  kiln_reason reason;
  kiln_arena *scratch = kiln_arena_scoped(codegen->env->mem);
  llvm_job job = make_job(codegen, fn, schedule, KILN__LLVM_OBJECT, scratch);
  kiln_status *status = compile(&job, KILN_BACKEND_LLVM, &reason, out_code);
  kiln_arena_destroy(scratch);
  return status;
}

kiln_status *kiln_codegen_compile_as(kiln_codegen *codegen, const kiln_loop_fn *fn,
                                     const kiln_schedule *schedule, kiln_reason *out_reason,
                                     kiln_compiled **out_code) {
  kiln_arena *scratch = kiln_arena_scoped(codegen->env->mem);
  llvm_job job = make_job(codegen, fn, schedule, KILN__LLVM_OBJECT, scratch);
  kiln_status *status = obtain(&job, KILN_BACKEND_LLVM, out_reason, out_code, NULL);
  kiln_arena_destroy(scratch);
  return status;
}

/* -- Text -- */

static void free_bytes(void *arg) {
  const llvm_job *job = arg;
  kiln_mem_free(job->codegen->env->mem, job->bytes, job->size);
}

/* Where the schedule comes from, if autotune is on. */
static void tell_origin(const kiln_codegen *codegen, const kiln_tuned *about, kiln_text *text) {
  if (codegen->tuner.mode == KILN__TUNE_OFF) return;
  if (!about->is_known || about->best_ns == about->rule_ns) {
    kiln_text_puts(text, about->is_known ? "; the rules', " : "; the rules'\n");
    if (about->is_known)
      kiln_text_printf(text, "%.2f us: the best of %d that autotune tried\n",
                       (double)about->rule_ns * 1e-3, about->tried);
    return;
  }
  kiln_text_printf(text, "; autotune's, %.2f us; the rules' take %.2f us\n",
                   (double)about->best_ns * 1e-3, (double)about->rule_ns * 1e-3);
}

static kiln_status *dump_code(kiln_codegen *codegen, const kiln_loop_fn *fn,
                              const kiln_schedule *schedule, kiln_codegen_stage stage,
                              kiln_arena *arena, kiln_str *out_text) {
  static const kiln__llvm_product products[] = {[KILN_STAGE_LLVM] = KILN__LLVM_IR,
                                                [KILN_STAGE_ASM] = KILN__LLVM_ASM,
                                                [KILN_STAGE_PTX] = KILN__LLVM_PTX};
  kiln_reason reason;
  const bool of_cpu = stage != KILN_STAGE_PTX;
  llvm_job job = make_job(codegen, fn, of_cpu ? schedule : NULL, products[stage], arena);
  KILN_TRY(run_llvm(&job, &reason));
  kiln_cleanup freeing;
  kiln_scope_defer(&freeing, free_bytes, &job);
  *out_text = kiln_arena_str(arena, kiln_str_make(job.bytes, job.size));
  kiln_scope_undefer(&freeing);
  free_bytes(&job);
  return NULL;
}

static kiln_status *dump(kiln_codegen *codegen, const kiln_loop_fn *fn,
                         const kiln_schedule *schedule, const kiln_tuned *about,
                         kiln_codegen_stage stage, kiln_arena *arena, kiln_str *out_text) {
  if (stage != KILN_STAGE_SCHEDULE) return dump_code(codegen, fn, schedule, stage, arena, out_text);
  kiln_text text = kiln_text_in(arena);
  const kiln_str words = kiln_schedule_print(schedule, arena);
  tell_origin(codegen, about, &text);
  kiln_text_put(&text, words.len ? words : KILN_STR("; as it stands\n"));
  *out_text = kiln_text_str(&text);
  return NULL;
}

kiln_status *kiln_codegen_dump_ruled(kiln_codegen *codegen, const kiln_loop_fn *fn,
                                     kiln_codegen_stage stage, kiln_arena *arena,
                                     kiln_str *out_text) {
  const kiln_schedule schedule = kiln_schedule_choose(fn, &codegen->machine, arena);
  return dump(codegen, fn, &schedule, &(kiln_tuned){0}, stage, arena, out_text);
}

kiln_status *kiln_codegen_dump(kiln_codegen *codegen, const kiln_loop_fn *fn,
                               kiln_codegen_stage stage, kiln_arena *arena, kiln_str *out_text) {
  kiln_schedule schedule;
  kiln_tuned about;
  if (!kiln__tuner_find(&codegen->tuner, fn, digest_of(fn, arena), arena, &schedule, &about))
    return kiln_codegen_dump_ruled(codegen, fn, stage, arena, out_text);
  return dump(codegen, fn, &schedule, &about, stage, arena, out_text);
}
