/* explain.c: `kiln explain`: which groups were made, what guards and fallbacks did, what was
 * refused and why. */
#include <stdlib.h>
#include <string.h>

#include "kiln/debug.h"
#include "tools/commands.h"
#include "tools/input.h"

typedef struct explain_options {
  const char *method;
  tool_list inputs;
  int64_t calls;
  tool_settings settings;
} explain_options;

#define FIELD(name) offsetof(explain_options, name)
static const tool_option options_table[] = {
    {"--method", TOOL_TEXT, FIELD(method), "NAME", 0, "what to call (forward)"},
    {"--inputs", TOOL_LIST, FIELD(inputs), "FILE.pt", 0,
     "arguments; given several times, each file has its calls in turn"},
    {"--calls", TOOL_INT, FIELD(calls), "N", 1, "calls with each file (3)"},
    TOOL_SETTINGS_OPTIONS(explain_options, settings),
};

static void set_defaults(void *options) {
  explain_options *o = options;
  o->method = "forward";
  o->calls = 3;
}

static kiln_status *make_calls(const explain_options *o, kiln_context *context,
                               kiln_instance *instance) {
  kiln_status *status = NULL;
  for (int f = 0; !status && f < o->inputs.count; f++) {
    for (int64_t i = 0; !status && i < o->calls; i++) {
      tool_inputs inputs = {0};
      kiln_value *result = NULL;
      status = tool_inputs_read(context, o->inputs.items[f], &inputs);
      if (!status) {
        status =
            kiln_instance_call(instance, o->method, inputs.values, inputs.count, NULL, &result);
      }
      kiln_value_destroy(result);
      tool_inputs_free(&inputs);
    }
  }
  return status;
}

static void print_groups(const kiln_model *model) {
  kiln_group_counters g;
  kiln_status *status = NULL;
  int index = 0;
  for (; !(status = kiln_model_group(model, index, &g)); index++) {
    printf("group %s, level %u: %u operators, %llu runs, guard %llu hits, %llu misses", g.name,
           g.depth, g.operators, (unsigned long long)g.runs, (unsigned long long)g.guard_hits,
           (unsigned long long)g.guard_misses);
    if (g.reason) {
      printf("; not compiled: %s\n", g.reason);
    } else {
      printf("; compiled in %.3f ms, %s\n", (double)g.compile_ns * 1e-6, g.hash);
    }
  }
  kiln_status_destroy(status);
  if (index == 0) puts("no group was formed");
}

static void print_refusals(kiln_model *model) {
  kiln_debug_refusal_info r;
  kiln_status *status = NULL;
  for (int i = 0; !(status = kiln_debug_refusal(model, i, &r)); i++) {
    printf("%s: %s%s%s", r.reason, r.detail, *r.detail ? ": " : "", r.sentence);
    if (r.count > 1) printf(" (%llu times)", (unsigned long long)r.count);
    if (r.file) printf(", %s:%d", r.file, r.line);
    printf(", in %s\n", r.site);
  }
  kiln_status_destroy(status);
}

static void print_totals(const kiln_model *model) {
  kiln_counters c;
  kiln_model_counters(model, &c);
  printf("%llu calls, %llu runs that recorded types, %llu groups, %llu kernels in %.3f ms, "
         "%llu failed\n",
         (unsigned long long)c.calls, (unsigned long long)c.profiled_runs,
         (unsigned long long)c.groups, (unsigned long long)c.compiles, (double)c.compile_ns * 1e-6,
         (unsigned long long)c.compile_failures);
  printf("guards held %llu times and failed %llu times; %llu fallback calls, deepest level %u, "
         "%llu executors used up\n",
         (unsigned long long)c.guard_hits, (unsigned long long)c.guard_misses,
         (unsigned long long)c.fallback_calls, c.max_depth, (unsigned long long)c.simple_plans);
}

static int run(const void *options, int count, char *const *operands) {
  const explain_options *o = options;
  tool_settings settings = o->settings;
  kiln_context *context = NULL;
  kiln_model *model = NULL;
  kiln_instance *instance = NULL;
  (void)count;
  if (o->inputs.count == 0) return tool_usage_error("explain: --inputs FILE.pt is needed");
  settings.sync = true;
  kiln_status *status = tool_context(&settings, &context);
  if (!status) status = tool_load(context, operands[0], NULL, &model);
  if (!status) status = kiln_instance_create(model, &instance);
  if (!status) status = make_calls(o, context, instance);
  if (!status) {
    print_totals(model);
    print_groups(model);
    print_refusals(model);
  }
  int exit_status = status ? tool_report(status) : TOOL_GOOD;
  kiln_instance_release(instance);
  kiln_model_release(model);
  kiln_context_release(context);
  return exit_status;
}

const tool_command tool_command_explain = {
    .name = "explain",
    .usage = "kiln explain MODEL --inputs FILE.pt [--calls N] [options]",
    .summary = "tell every group, guard, fallback and refusal with its reason",
    .options = options_table,
    .option_count = sizeof options_table / sizeof options_table[0],
    .options_size = sizeof(explain_options),
    .defaults = set_defaults,
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
