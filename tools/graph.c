/* graph.c: `kiln graph`: shows what became of a method after some calls. */
#include <stdlib.h>
#include <string.h>

#include "kiln/debug.h"
#include "tools/commands.h"
#include "tools/memory.h"
#include "tools/session.h"

typedef struct graph_options {
  const char *method, *stage, *site;
  tool_list inputs, input;
  int64_t after_call, seed;
  bool all, dot, memory;
  tool_limits limits;
  tool_settings settings;
} graph_options;

#define FIELD(name) offsetof(graph_options, name)
static const tool_option options_table[] = {
    {"--method", TOOL_TEXT, FIELD(method), "NAME", 0, "the method (forward)"},
    {"--inputs", TOOL_LIST, FIELD(inputs), "FILE.pt", 0,
     "arguments; given several times, each file has its N calls in turn"},
    {"--input", TOOL_LIST, FIELD(input), "SPEC", 0, "one argument, as `kiln run` takes it"},
    {"--seed", TOOL_INT, FIELD(seed), "N", 0, "seed of random inputs (0)"},
    {"--after-call", TOOL_INT, FIELD(after_call), "N", 0,
     "calls before the graph is shown (frontend 0, profiled 1, else or with --site 3)"},
    {"--stage", TOOL_WORD, FIELD(stage),
     "frontend|profiled|optimized|bytecode|loop|schedule|llvm|asm|ptx", 0,
     "what is shown (optimized)"},
    {"--site", TOOL_TEXT, FIELD(site), "ID", 0,
     "one group or region: its name (forward/TensorExprGroup_0, or what stands behind the /), or "
     "the start of its hash"},
    {"--all", TOOL_SWITCH, FIELD(all), NULL, 0, "the method and everything made below it"},
    {"--dot", TOOL_SWITCH, FIELD(dot), NULL, 0,
     "print Graphviz: of frontend, profiled or optimized"},
    {"--memory", TOOL_SWITCH, FIELD(memory), NULL, 0,
     "print SVG instead: where a call's tensors lie, over time"},
    TOOL_LIMIT_OPTIONS(graph_options, limits),
    TOOL_SETTINGS_OPTIONS(graph_options, settings),
};

static void set_defaults(void *options) {
  graph_options *o = options;
  o->method = "forward";
  o->stage = "optimized";
  o->after_call = -1;
  o->settings.compile = "sync";
}

static int64_t calls_for(const graph_options *o) {
  if (o->after_call >= 0) return o->after_call;
  if (o->memory) return 10; /* specialised by the third, planned four later */
  if (strcmp(o->stage, "frontend") == 0) return 0;
  if (o->site) return 3; /* groups and regions are made by the second */
  return strcmp(o->stage, "profiled") == 0 ? 1 : 3;
}

static int show(const graph_options *o, kiln_model *model) {
  char *text = NULL;
  const char *site = o->all ? "*" : o->site;
  kiln_status *status = kiln_debug_graph(model, o->method, o->stage, site, o->dot, &text);
  if (status) return tool_report(status);
  size_t len = strlen(text);
  printf("%s%s", text, len && text[len - 1] == '\n' ? "" : "\n");
  kiln_text_free(text);
  return TOOL_GOOD;
}

static int run(const void *options, char *const *operands) {
  const graph_options *o = options;
  if (o->all && o->site) return tool_usage_error("graph: give --site or --all, not both");
  if (o->memory && (o->all || o->site || o->dot))
    return tool_usage_error("graph: --memory draws a whole call, without --site, --all and --dot");
  if (o->dot && strcmp(o->stage, "frontend") != 0 && strcmp(o->stage, "profiled") != 0 &&
      strcmp(o->stage, "optimized") != 0) {
    return tool_usage_error("graph: --dot draws frontend, profiled and optimized; %s is text",
                            o->stage);
  }
  if (o->inputs.count && o->input.count) {
    return tool_usage_error("graph: give --inputs or --input, not both");
  }
  const kiln_limits limits = tool_limits_of(&o->limits);
  const int64_t calls = calls_for(o);
  tool_session s = {0};
  int exit_status = tool_session_open(&s, &o->settings, operands[0], &limits, tool_print_to_stderr);
  if (exit_status < 0 && !kiln_model_method_schema(s.model, o->method)) {
    exit_status = tool_no_method(s.model, o->method);
  }
  if (exit_status < 0 && o->memory) {
    kiln_status *status = kiln_debug_model_time(s.model, 1); /* so that makers are known */
    if (status) exit_status = tool_report(status);
  }
  if (exit_status < 0 && calls > 0) {
    exit_status =
        tool_session_call_all(&s, o->method, &o->inputs, &o->input, o->seed, calls, &limits);
  }
  if (exit_status < 0 && o->memory) {
    kiln_status *status = tool_memory_draw(s.instance, stdout);
    exit_status = status ? tool_report(status) : TOOL_GOOD;
  }
  if (exit_status < 0) exit_status = show(o, s.model);
  tool_session_close(&s);
  return exit_status;
}

const tool_command tool_command_graph = {
    .name = "graph",
    .usage = "kiln graph MODEL --inputs FILE.pt [--stage STAGE] [--after-call N] [options]",
    .summary = "show a method's graph, plan, loop IR or machine code",
    TOOL_OPTIONS(options_table, graph_options),
    .defaults = set_defaults,
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
