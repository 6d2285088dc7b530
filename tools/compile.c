/* compile.c: `kiln compile`: a model as code of a C program. */
#include <stdlib.h>
#include <string.h>

#include "tools/commands.h"
#include "tools/session.h"

typedef struct compile_options {
  const char *method, *folder, *name;
  tool_list inputs, input;
  bool symbolic, general;
  int64_t seed;
  tool_limits limits;
  tool_settings settings;
} compile_options;

#define FIELD(name) offsetof(compile_options, name)
static const tool_option options_table[] = {
    {"-o", TOOL_TEXT, FIELD(folder), "DIR", 0, "where the files go; it is made"},
    {"--inputs", TOOL_LIST, FIELD(inputs), "FILE.pt", 0,
     "arguments that code is made for; several files: for all of them"},
    {"--input", TOOL_LIST, FIELD(input), "SPEC", 0, "one argument; may be given several times"},
    {"--symbolic", TOOL_SWITCH, FIELD(symbolic), NULL, 0,
     "one code for all sizes (fusion_strategy=DYNAMIC,1)"},
    {"--general", TOOL_SWITCH, FIELD(general), NULL, 0,
     "code for all other arguments too: operator by operator"},
    {"--method", TOOL_TEXT, FIELD(method), "NAME", 0, "what to compile (forward)"},
    {"--name", TOOL_TEXT, FIELD(name), "NAME", 0, "of the files and in them (the archive's)"},
    {"--seed", TOOL_INT, FIELD(seed), "N", 0, "seed of random inputs (0)"},
    TOOL_LIMIT_OPTIONS(compile_options, limits),
    TOOL_SETTINGS_OPTIONS(compile_options, settings),
};

static void set_defaults(void *options) {
  compile_options *o = options;
  o->method = "forward";
  o->settings.compile = "sync";
  o->settings.compile_time = "0"; /* the same program, however busy the machine is */
}

/* Instructions for bf16, which few processors have, are of use to matmul=bf16 alone. */
static bool wants_bf16(const compile_options *o) {
  bool wants = getenv("KILN_ISA") || getenv("KILN_MATMUL");
  for (int i = 0; i < o->settings.set.count; i++) {
    const char *set = o->settings.set.items[i];
    wants |= strncmp(set, "isa=", 4) == 0 || strncmp(set, "matmul=", 7) == 0;
  }
  return wants;
}

/* The arguments of all files but the last make plans; those of the last say what the program takes.
 */
static int compile(const compile_options *o, tool_session *s) {
  const kiln_compile_options options = {.name = o->name,
                                        .general = o->general,
                                        .limits = tool_limits_of(&o->limits),
                                        .struct_size = sizeof options};
  const int files = o->inputs.count > 0 ? o->inputs.count : 1;
  kiln_status *status = NULL;
  for (int i = 0; !status && i < files; i++) {
    const int exit_status = tool_session_prepare(
        s, o->method, o->inputs.count > 0 ? o->inputs.items[i] : NULL, &o->input, o->seed);
    if (exit_status >= 0) return exit_status;
    status = kiln_model_compile(s->model, o->method, s->inputs.values, s->inputs.count,
                                i + 1 < files ? NULL : o->folder, &options);
    tool_inputs_free(&s->inputs);
    kiln_instance_release(s->instance);
    s->instance = NULL;
  }
  return status ? tool_report(status) : TOOL_GOOD;
}

static int run(const void *options, char *const *operands) {
  compile_options o = *(const compile_options *)options;
  const kiln_limits limits = tool_limits_of(&o.limits);
  tool_session s = {0};
  if (!o.folder) return tool_usage_error("kiln compile needs -o DIR");
  if (!wants_bf16(&o)) o.settings.isa = "avx512";
  if (o.symbolic) o.settings.fusion_strategy = "DYNAMIC,1";
  int exit_status = tool_session_open(&s, &o.settings, operands[0], &limits, tool_print_to_stderr);
  if (exit_status < 0) exit_status = compile(&o, &s);
  tool_session_close(&s);
  return exit_status;
}

const tool_command tool_command_compile = {
    .name = "compile",
    .usage = "kiln compile MODEL -o DIR [--inputs FILE.pt]... [--input SPEC]... [--symbolic] "
             "[--general]",
    .summary = "make a C header, an object file and weights of a model",
    .details =
        "DIR gets NAME.h, NAME.o and NAME.weights, which a C program links with libkiln-aot\n"
        "and nothing else of Kiln: no archive, no compiler, 1.5 MB. The object has the code\n"
        "that `kiln run` would compile for these arguments, and gives the same bits.\n",
    TOOL_OPTIONS(options_table, compile_options),
    .min_operands = 1,
    .max_operands = 1,
    .defaults = set_defaults,
    .run = run,
};
