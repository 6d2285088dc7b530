/* metrics.c: what a context and its models have counted, as text for Prometheus: the "text-based
 * exposition format" 0.0.4 of prometheus.io. */
#include <inttypes.h>
#include <stdio.h>

#include "api/internal.h"
#include "codegen/codegen.h"
#include "runtime/pack.h"

/* X(field of kiln_counters, name, type, COUNT or NS, which are told as seconds, help) */
enum { COUNT, NS };
#define MODEL_METRICS(X)                                                                         \
  X(calls, "calls_total", counter, COUNT, "Calls of methods by the host")                        \
  X(profiled_runs, "profiled_runs_total", counter, COUNT, "Runs that recorded types")            \
  X(groups, "groups", gauge, COUNT, "Fused groups formed")                                       \
  X(compiles, "compiles_total", counter, COUNT, "Kernels compiled")                              \
  X(compile_failures, "compile_failures_total", counter, COUNT,                                  \
    "Groups that could not be compiled")                                                         \
  X(compile_ns, "compile_seconds_total", counter, NS, "Time spent in code generation")           \
  X(guard_hits, "guard_hits_total", counter, COUNT, "Guards that held")                          \
  X(guard_misses, "guard_misses_total", counter, COUNT, "Guards that failed")                    \
  X(fallback_calls, "fallback_calls_total", counter, COUNT, "Calls of a fallback function")      \
  X(compiled_runs, "compiled_runs_total", counter, COUNT, "Runs of compiled groups")             \
  X(simple_plans, "simple_plans", gauge, COUNT, "Executors that used up their depth")            \
  X(jobs, "jobs_total", counter, COUNT, "Compile jobs beside calls")                             \
  X(stalls, "stalls_total", counter, COUNT, "Calls that waited for the JIT beyond max_stall_us") \
  X(worst_stall_ns, "worst_stall_seconds", gauge, NS, "The longest such wait")                   \
  X(retired, "retired_total", counter, COUNT, "Specialised plans slower than the interpreter")   \
  X(dropped, "dropped_total", counter, COUNT, "Times that all that was made for it went")        \
  X(plan_bytes, "plan_bytes", gauge, COUNT, "Plans, and what is known of how they were made")    \
  X(code_bytes, "code_bytes", gauge, COUNT, "Kernels: machine code, and the objects it is from")

/* X(expression of `context`, name, help) */
#define CONTEXT_METRICS(X)                                                                   \
  X(kiln_context_bytes(context), "memory_bytes", "Memory that the context holds")            \
  X(kiln_context_peak_bytes(context), "memory_peak_bytes", "The most that it has held")      \
  X(kiln_context_mapped_bytes(context), "mapped_bytes", "Mapped files of its models")        \
  X(kiln_codegen_kept_bytes(context->codegen), "kept_kernel_bytes", "Kernels that it keeps") \
  X(packed_bytes(context), "packed_bytes", "Weights in the order that kernels want")

static uint64_t packed_bytes(const kiln_context *context) {
  return context->codegen ? kiln_pack_store_bytes(kiln_codegen_packs(context->codegen)) : 0;
}

/* A label's value. */
static void put_label(kiln_text *text, const char *value) {
  for (; *value; value++) {
    if (*value == '\n')
      kiln_text_put(text, KILN_STR("\\n"));
    else
      kiln_text_printf(text, "%s%c", *value == '"' || *value == '\\' ? "\\" : "", *value);
  }
}

static void put_number(kiln_text *text, uint64_t number, int unit) {
  if (unit == COUNT)
    kiln_text_printf(text, "%" PRIu64 "\n", number);
  else /* nanoseconds as seconds, whatever the locale's decimal point is */
    kiln_text_printf(text, "%" PRIu64 ".%09" PRIu64 "\n", number / 1000000000, number % 1000000000);
}

typedef struct counted {
  const kiln_model *model;
  kiln_counters counters;
} counted;

static void put_models(kiln_text *text, const counted *models, int count) {
  static const struct {
    const char *name, *type, *help;
    size_t field;
    int unit;
  } metrics[] = {
#define METRIC(field, name, type, unit, help) \
  {name, #type, help, offsetof(kiln_counters, field), unit},
      MODEL_METRICS(METRIC)
#undef METRIC
  };
  for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
    kiln_text_printf(text, "# HELP kiln_model_%s %s.\n# TYPE kiln_model_%s %s\n", metrics[m].name,
                     metrics[m].help, metrics[m].name, metrics[m].type);
    for (int i = 0; i < count; i++) {
      uint64_t number;
      memcpy(&number, (const char *)&models[i].counters + metrics[m].field, sizeof number);
      kiln_text_printf(text, "kiln_model_%s{model=\"", metrics[m].name);
      put_label(text, models[i].model->name);
      kiln_text_printf(text, "\",number=\"%" PRIu64 "\"} ", models[i].model->number);
      put_number(text, number, metrics[m].unit);
    }
  }
}

/* Under the context's lock, so that no model goes. */
static kiln_status *put_all(kiln_context *context, char **out_text) {
  kiln_text text = kiln__text_begin(context);
  int count = 0;
  for (const kiln_model *m = context->models; m; m = m->next) count++;
  counted *models = KILN_NEW_ARRAY(text.arena, counted, count + 1);
  count = 0;
  for (kiln_model *m = context->models; m; m = m->next) {
    models[count].model = m;
    kiln_model_counters(m, &models[count].counters);
    count++;
  }
#define METRIC(value, name, help)                                                                  \
  kiln_text_printf(&text, "# HELP kiln_%s %s.\n# TYPE kiln_%s gauge\nkiln_%s %" PRIu64 "\n", name, \
                   help, name, name, (uint64_t)(value));
  CONTEXT_METRICS(METRIC)
#undef METRIC
  put_models(&text, models, count);
  return kiln__text_give(&text, out_text);
}
static kiln_status *try_put(kiln_context *context, char **out_text) {
  KILN_PROTECT(put_all(context, out_text));
}

kiln_status *kiln_context_metrics(kiln_context *context, char **out_text) {
  KILN_NEEDS(context && out_text);
  *out_text = NULL;
  pthread_mutex_lock(&context->lock);
  kiln_status *status = try_put(context, out_text);
  pthread_mutex_unlock(&context->lock);
  return status;
}
