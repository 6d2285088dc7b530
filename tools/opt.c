/* opt.c: `kiln opt`: runs passes over textual IR. */
#include <stdlib.h>
#include <string.h>

#include "kiln/debug.h"
#include "tools/commands.h"

typedef struct opt_options {
  const char *passes;
  int64_t verbosity;
  tool_settings settings;
} opt_options;

#define FIELD(name) offsetof(opt_options, name)
static const tool_option options_table[] = {
    {"-p", TOOL_TEXT, FIELD(passes), "PASS,PASS...", 0, "passes in order (kiln list passes)"},
    {"--verbosity", TOOL_INT, FIELD(verbosity), "0...4", 0,
     "of tensor types: 0 names, 1 sizes, 2 strides, 3 as PyTorch (default), 4 symbols"},
    TOOL_SETTINGS_OPTIONS(opt_options, settings),
};

static void set_defaults(void *options) {
  opt_options *o = options;
  o->verbosity = 3;
  o->settings.compile = "sync";
}

static int run(const void *options, char *const *operands) {
  const opt_options *o = options;
  size_t size = 0;
  char *error = NULL, *source = tool_read_file(operands[0], &size, &error), *text = NULL;
  if (!source) return tool_complain(error);
  kiln_context *context = NULL;
  kiln_status *status = tool_context(&o->settings, &context);
  if (!status) {
    status = kiln_debug_opt(context, source, size, o->passes ? o->passes : "",
                            (int)(o->verbosity < 4 ? o->verbosity : 4), &text);
  }
  int exit_status = status ? tool_report(status) : TOOL_GOOD;
  if (text) {
    size_t len = strlen(text);
    printf("%s%s", text, len && text[len - 1] == '\n' ? "" : "\n");
  }
  kiln_text_free(text);
  kiln_context_release(context);
  free(source);
  return exit_status;
}

const tool_command tool_command_opt = {
    .name = "opt",
    .usage = "kiln opt FILE.ir [-p PASS,PASS...] [--verbosity N]",
    .summary = "run passes over textual IR and print it; - is standard input",
    TOOL_OPTIONS(options_table, opt_options),
    .defaults = set_defaults,
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
