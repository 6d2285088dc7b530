/* inspect.c: `kiln inspect`: what an archive holds. Nothing of the model runs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/debug.h"
#include "tools/commands.h"
#include "tools/input.h"
#include "tools/rows.h"

typedef struct inspect_options {
  bool source, graph, functions, ops, missing, weights, cost, json;
  const char *method, *inputs;
  tool_list input;
  tool_limits limits;
  tool_settings settings;
} inspect_options;

#define FIELD(name) offsetof(inspect_options, name)
static const tool_option options_table[] = {
    {"--source", TOOL_SWITCH, FIELD(source), NULL, 0, "print the TorchScript source"},
    {"--graph", TOOL_SWITCH, FIELD(graph), NULL, 0, "print the graph of each method"},
    {"--functions", TOOL_SWITCH, FIELD(functions), NULL, 0,
     "print the graph of every function and method of the archive"},
    {"--ops", TOOL_SWITCH, FIELD(ops), NULL, 0, "list every operator with its uses"},
    {"--missing", TOOL_SWITCH, FIELD(missing), NULL, 0,
     "list only what Kiln lacks: custom classes, operators, functions that do not compile"},
    {"--weights", TOOL_SWITCH, FIELD(weights), NULL, 0, "list parameters, buffers and tensors"},
    {"--cost", TOOL_SWITCH, FIELD(cost), NULL, 0,
     "operations and memory of a call on the inputs, by their shapes; nothing is called"},
    {"--method", TOOL_TEXT, FIELD(method), "NAME", 0, "the method of --cost (forward)"},
    {"--inputs", TOOL_TEXT, FIELD(inputs), "FILE.pt", 0, "its arguments"},
    {"--input", TOOL_LIST, FIELD(input), "SPEC", 0, "one of them, as `kiln run` takes it"},
    {"--json", TOOL_SWITCH, FIELD(json), NULL, 0, "everything asked for as one object"},
    TOOL_LIMIT_OPTIONS(inspect_options, limits),
    TOOL_SETTINGS_OPTIONS(inspect_options, settings),
};

typedef struct inspection {
  kiln_model *model;
  tool_rows facts, methods, extras, moved;
  tool_rows ops, missing, weights, errors, sources, functions, costs;
  kiln_debug_cost cost;
} inspection;

#define ROW(rows, ...)                               \
  tool_rows_add(rows, (const char *[]){__VA_ARGS__}, \
                (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)))

static void look_at_methods(inspection *in) {
  ROW(&in->methods, "name", "schema");
  for (int i = 0; i < kiln_model_method_count(in->model); i++) {
    const char *name = kiln_model_method_name(in->model, i);
    ROW(&in->methods, name, kiln_model_method_schema(in->model, name));
  }
}

/* Files beside the model, and what --map-device did. */
static void look_at_load(inspection *in) {
  kiln_extra extra;
  kiln_remap moved;
  kiln_status *status = NULL;
  char number[32];
  ROW(&in->extras, "name", "bytes");
  for (int i = 0; !(status = kiln_model_extra_file(in->model, i, &extra)); i++) {
    snprintf(number, sizeof number, "%zu", extra.size);
    ROW(&in->extras, extra.name, number);
  }
  kiln_status_destroy(status);
  ROW(&in->moved, "from", "to", "kind", "count", "where");
  for (int i = 0; !(status = kiln_model_remap(in->model, i, &moved)); i++) {
    snprintf(number, sizeof number, "%" PRId64, moved.count);
    ROW(&in->moved, moved.from, moved.to, moved.kind, number, moved.where);
  }
  kiln_status_destroy(status);
}

static kiln_status *look(inspection *in, bool sources, bool functions) {
  look_at_methods(in);
  look_at_load(in);
  kiln_status *status = kiln_debug_model_facts(in->model, tool_rows_add, &in->facts);
  if (!status) status = kiln_debug_model_ops(in->model, tool_rows_add, &in->ops);
  if (!status) status = kiln_debug_model_weights(in->model, tool_rows_add, &in->weights);
  if (!status) status = kiln_debug_model_errors(in->model, tool_rows_add, &in->errors);
  if (!status && sources) {
    status = kiln_debug_model_sources(in->model, tool_rows_add, &in->sources);
  }
  if (!status && functions) {
    status = kiln_debug_model_functions(in->model, tool_rows_add, &in->functions);
  }
  for (int i = 0; !status && i < in->ops.count; i++) {
    if (i > 0 && strcmp(tool_rows_cell(&in->ops, i, 2), "no") != 0) continue;
    tool_rows_add(&in->missing, (const char *const *)in->ops.items[i], in->ops.columns);
  }
  return status;
}

static void free_inspection(inspection *in) {
  tool_rows *const all[] = {&in->facts,   &in->methods,   &in->extras,  &in->moved,
                            &in->ops,     &in->missing,   &in->weights, &in->errors,
                            &in->sources, &in->functions, &in->costs};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) tool_rows_free(all[i]);
}

/* -- Sums -- */

static uint64_t sum(const tool_rows *rows, int column) {
  uint64_t total = 0;
  for (int i = 1; i < rows->count; i++)
    total += strtoull(tool_rows_cell(rows, i, column), NULL, 10);
  return total;
}

static const char *fact(const inspection *in, const char *name) {
  for (int i = 1; i < in->facts.count; i++) {
    if (strcmp(tool_rows_cell(&in->facts, i, 0), name) == 0)
      return tool_rows_cell(&in->facts, i, 1);
  }
  return "";
}

static void print_bytes(uint64_t bytes) {
  static const char *const units[] = {"bytes", "KB", "MB", "GB"};
  double value = (double)bytes;
  int unit = 0;
  for (; value >= 1000 && unit < 3; unit++) value /= 1000;
  printf(unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

/* "tensors    12 parameters, 1.2 MB; 2 buffers, 8 bytes". */
static void print_weights_line(const tool_rows *weights) {
  static const char *const roles[] = {"parameter", "buffer", "attribute", "constant"};
  const char *before = "tensors    ";
  for (int r = 0; r < 4; r++) {
    uint64_t count = 0, bytes = 0;
    for (int i = 1; i < weights->count; i++) {
      if (strcmp(tool_rows_cell(weights, i, 1), roles[r]) != 0) continue;
      count++;
      bytes += strtoull(tool_rows_cell(weights, i, 4), NULL, 10);
    }
    if (count == 0) continue;
    printf("%s%" PRIu64 " %s%s, ", before, count, roles[r], tool_plural(count));
    print_bytes(bytes);
    before = "; ";
  }
  printf("%s\n", weights->count <= 1 ? "tensors    none" : "");
}

/* -- Costs -- */

/* An exit status after a complaint, else -1. */
static int look_at_cost(const inspect_options *o, kiln_context *context, inspection *in) {
  tool_inputs inputs = {0};
  kiln_status *status = NULL;
  const char *method = o->method ? o->method : "forward";
  if (!o->cost) return -1;
  if (o->inputs && o->input.count) {
    return tool_usage_error("--inputs and --input cannot both be given");
  }
  if (o->inputs) {
    status = tool_inputs_read(context, o->inputs, &inputs);
  } else {
    int exit_status = tool_inputs_parse(context, in->model, method, &o->input, 0, &inputs);
    if (exit_status >= 0) return exit_status;
  }
  if (!status) {
    status = kiln_debug_model_cost(in->model, method, inputs.values, inputs.count, &in->cost,
                                   tool_rows_add, &in->costs);
  }
  tool_inputs_free(&inputs);
  return status ? tool_report(status) : -1;
}

static void print_count(uint64_t count, const char *sentence) {
  if (count) printf("%" PRIu64 " %s\n", count, sentence);
}

static void print_cost(const inspection *in) {
  const kiln_debug_cost *c = &in->cost;
  tool_rows_print(&in->costs);
  printf("flops      %" PRIu64 " (%.3f G)\n", c->flops, (double)c->flops * 1e-9);
  printf("memory     ");
  print_bytes(sum(&in->weights, 4));
  printf(" weights, ");
  print_bytes(c->input_bytes);
  printf(" inputs, ");
  print_bytes(c->peak_bytes);
  printf(" results at once, of ");
  print_bytes(c->made_bytes);
  printf(" made\n");
  print_count(c->unknown, "operators of unknown cost: it is missing above");
  print_count(c->branches, "branches that are not decided: the costlier side counts");
  print_count(c->loops, "loops of unknown length: one round counts");
}

/* The rows, with the columns from `first` to `last` as numbers. */
static cJSON *json_rows(const tool_rows *rows, int first, int last) {
  cJSON *array = tool_rows_json(rows), *row = NULL;
  cJSON_ArrayForEach(row, array) {
    for (int i = first; i <= last; i++) {
      const char *title = tool_rows_cell(rows, 0, i);
      const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(row, title));
      cJSON_ReplaceItemInObject(row, title, tool_json_int(text ? strtoll(text, NULL, 10) : 0));
    }
  }
  return array;
}

static cJSON *json_cost(const inspection *in) {
  const kiln_debug_cost *c = &in->cost;
  const struct {
    const char *name;
    uint64_t value;
  } numbers[] = {{"flops", c->flops},
                 {"weight_bytes", sum(&in->weights, 4)},
                 {"input_bytes", c->input_bytes},
                 {"peak_bytes", c->peak_bytes},
                 {"made_bytes", c->made_bytes},
                 {"unknown", c->unknown},
                 {"branches", c->branches},
                 {"loops", c->loops}};
  cJSON *json = cJSON_CreateObject();
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    cJSON_AddItemToObject(json, numbers[i].name, tool_json_int((int64_t)numbers[i].value));
  }
  cJSON_AddItemToObject(json, "operators", json_rows(&in->costs, 1, 4));
  return json;
}

/* -- Printing -- */

static void print_custom_classes(const inspection *in) {
  const char *custom = fact(in, "custom_classes");
  if (*custom) printf("custom classes %s, which Kiln cannot run\n", custom);
}

static void print_missing(const inspection *in) {
  for (int i = 1; i < in->missing.count; i++) {
    const char *uses = tool_rows_cell(&in->missing, i, 1);
    printf("missing %s, %s use%s, first at %s\n", tool_rows_cell(&in->missing, i, 0), uses,
           strcmp(uses, "1") == 0 ? "" : "s", tool_rows_cell(&in->missing, i, 3));
  }
  for (int i = 1; i < in->errors.count; i++) {
    printf("no body %s: %s\n", tool_rows_cell(&in->errors, i, 0),
           tool_rows_cell(&in->errors, i, 1));
  }
}

static void print_overview(const inspection *in, const char *path) {
  printf("%s: TorchScript archive, version %s, ", path, fact(in, "version"));
  print_bytes(strtoull(fact(in, "bytes"), NULL, 10));
  printf(" in %s files, %s of them deflated\n", fact(in, "files"), fact(in, "deflated_files"));
  const char *functions = fact(in, "functions");
  printf("root %s, %s function%s\n", fact(in, "root"), functions,
         tool_plural(strtoull(functions, NULL, 10)));
  print_custom_classes(in);
  const uint64_t setstate = strtoull(fact(in, "setstate_calls"), NULL, 10);
  if (setstate) {
    printf("%" PRIu64 " call%s of __setstate__ when it is loaded\n", setstate,
           tool_plural(setstate));
  }
  for (int i = 1; i < in->methods.count; i++) {
    printf("method %s\n", tool_rows_cell(&in->methods, i, 1));
  }
  print_weights_line(&in->weights);
  for (int i = 1; i < in->extras.count; i++) {
    printf("extra file %s, ", tool_rows_cell(&in->extras, i, 0));
    print_bytes(strtoull(tool_rows_cell(&in->extras, i, 1), NULL, 10));
    printf("\n");
  }
  for (int i = 1; i < in->moved.count; i++) {
    const char *const *row = (const char *const *)in->moved.items[i];
    printf("moved      %s to %s: %s in %s, first at %s\n", row[0], row[1], row[3], row[2], row[4]);
  }
  const uint64_t uses = sum(&in->ops, 1);
  printf("operators  %d, %" PRIu64 " use%s; %d missing\n", in->ops.count - 1, uses,
         tool_plural(uses), in->missing.count - 1);
  print_missing(in);
}

/* Names and texts. */
static void print_sources(const tool_rows *sources) {
  for (int i = 1; i < sources->count; i++) {
    printf("# %s\n%s\n", tool_rows_cell(sources, i, 0), tool_rows_cell(sources, i, 1));
  }
}

static kiln_status *method_graph(const inspection *in, int index, char **out_text) {
  return kiln_debug_graph(in->model, kiln_model_method_name(in->model, index), "frontend", NULL, 0,
                          out_text);
}

static kiln_status *print_graphs(const inspection *in) {
  kiln_status *status = NULL;
  for (int i = 0; !status && i < kiln_model_method_count(in->model); i++) {
    char *text = NULL;
    status = method_graph(in, i, &text);
    if (!status) printf("# %s\n%s\n", kiln_model_method_name(in->model, i), text);
    kiln_text_free(text);
  }
  return status;
}

static kiln_status *print(const inspect_options *o, const inspection *in, const char *path) {
  if (!o->source && !o->graph && !o->functions && !o->ops && !o->missing && !o->weights &&
      !o->cost) {
    print_overview(in, path);
  }
  if (o->missing) {
    print_custom_classes(in);
    print_missing(in);
  }
  if (o->ops) tool_rows_print(&in->ops);
  if (o->weights) tool_rows_print(&in->weights);
  if (o->cost) print_cost(in);
  if (o->source) print_sources(&in->sources);
  if (o->functions) print_sources(&in->functions);
  return o->graph ? print_graphs(in) : NULL;
}

/* -- JSON -- */

static kiln_status *print_json(const inspect_options *o, const inspection *in) {
  cJSON *json = cJSON_CreateObject();
  for (int i = 1; i < in->facts.count; i++) {
    const char *value = tool_rows_cell(&in->facts, i, 1);
    const bool number = *value >= '0' && *value <= '9';
    cJSON_AddItemToObject(json, tool_rows_cell(&in->facts, i, 0),
                          number ? cJSON_CreateRaw(value) : cJSON_CreateString(value));
  }
  cJSON_AddItemToObject(json, "methods", tool_rows_json(&in->methods));
  cJSON_AddItemToObject(json, "extra_files", json_rows(&in->extras, 1, 1));
  cJSON_AddItemToObject(json, "moved", json_rows(&in->moved, 3, 3));
  cJSON_AddItemToObject(json, "operators", json_rows(&in->ops, 1, 1));
  cJSON_AddItemToObject(json, "missing", json_rows(&in->missing, 1, 1));
  cJSON_AddItemToObject(json, "errors", tool_rows_json(&in->errors));
  cJSON_AddItemToObject(json, "tensors", json_rows(&in->weights, 4, 4));
  if (o->cost) cJSON_AddItemToObject(json, "cost", json_cost(in));
  if (o->source) cJSON_AddItemToObject(json, "sources", tool_rows_json(&in->sources));
  if (o->functions) cJSON_AddItemToObject(json, "functions", tool_rows_json(&in->functions));
  kiln_status *status = NULL;
  if (o->graph) {
    cJSON *graphs = cJSON_AddObjectToObject(json, "graphs");
    for (int i = 0; !status && i < kiln_model_method_count(in->model); i++) {
      char *text = NULL;
      status = method_graph(in, i, &text);
      if (!status) cJSON_AddStringToObject(graphs, kiln_model_method_name(in->model, i), text);
      kiln_text_free(text);
    }
  }
  if (status) {
    cJSON_Delete(json);
    return status;
  }
  tool_json_print(json, stdout);
  return NULL;
}

static int run(const void *options, char *const *operands) {
  const inspect_options *o = options;
  const kiln_limits limits = tool_limits_of(&o->limits);
  kiln_context *context = NULL;
  inspection in = {0};
  kiln_status *status = tool_context(&o->settings, &context);
  char *path = NULL;
  if (!status) status = tool_path(operands[0], &limits, &path);
  if (!status) status = kiln_debug_model_open(context, path, &limits, &in.model);
  if (!status) status = look(&in, o->source, o->functions);
  int exit_status = status ? tool_report(status) : look_at_cost(o, context, &in);
  if (exit_status < 0) {
    status = o->json ? print_json(o, &in) : print(o, &in, operands[0]);
    exit_status = status ? tool_report(status) : TOOL_GOOD;
  }
  free_inspection(&in);
  free(path);
  kiln_model_release(in.model);
  kiln_context_release(context);
  return exit_status;
}

const tool_command tool_command_inspect = {
    .name = "inspect",
    .usage =
        "kiln inspect MODEL [--source] [--graph] [--functions] [--ops] [--missing] [--weights] "
        "[--cost [--inputs FILE.pt]] [--json]",
    .summary = "tell what an archive holds, without running any of it",
    TOOL_OPTIONS(options_table, inspect_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
