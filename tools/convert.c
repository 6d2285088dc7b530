/* convert.c: `kiln convert`: loads an archive and saves the module again. */
#include <stdlib.h>
#include <string.h>

#include "tools/commands.h"

typedef struct convert_options {
  tool_list extra;
  bool drop_extra;
  tool_settings settings;
} convert_options;

#define FIELD(name) offsetof(convert_options, name)
static const tool_option options_table[] = {
    {"--extra", TOOL_LIST, FIELD(extra), "NAME=FILE", 0, "save a file's bytes along (repeatable)"},
    {"--drop-extra", TOOL_SWITCH, FIELD(drop_extra), NULL, 0, "leave the archive's own files out"},
    TOOL_SETTINGS_OPTIONS(convert_options, settings),
};

static void free_extras(kiln_extra *extras, int count) {
  for (int i = 0; i < count; i++) {
    free((void *)(uintptr_t)extras[i].name);
    free((void *)(uintptr_t)extras[i].data);
  }
  free(extras);
}

/* Reads the files of --extra; an exit status, -1 when all is well. */
static int read_extras(const tool_list *list, kiln_extra *extras) {
  for (int i = 0; i < list->count; i++) {
    const char *spec = list->items[i], *equals = strchr(spec, '=');
    char *error = NULL;
    if (!equals || equals == spec || !equals[1]) {
      return tool_usage_error("--extra takes NAME=FILE, not '%s'", spec);
    }
    extras[i].name = tool_format("%.*s", (int)(equals - spec), spec);
    extras[i].data = tool_read_file(equals + 1, &extras[i].size, &error);
    if (extras[i].data) continue;
    const int exit_status = tool_usage_error("%s", error);
    free(error);
    return exit_status;
  }
  return -1;
}

static int run(const void *options, int count, char *const *operands) {
  const convert_options *o = options;
  tool_settings settings = o->settings;
  kiln_context *context = NULL;
  kiln_model *model = NULL;
  (void)count;
  kiln_extra *extras = tool_alloc(sizeof *extras * (size_t)(o->extra.count + 1));
  int exit_status = read_extras(&o->extra, extras);
  if (exit_status < 0) {
    const kiln_save_options save = {
        .extras = extras, .extra_count = o->extra.count, .drop_extras = o->drop_extra};
    kiln_status *status = tool_context(&settings, &context);
    if (!status) status = kiln_model_load(context, operands[0], NULL, &model);
    if (!status) status = kiln_model_save(model, operands[1], &save);
    exit_status = status ? tool_report(status) : TOOL_GOOD;
  }
  kiln_model_release(model);
  kiln_context_release(context);
  free_extras(extras, o->extra.count);
  return exit_status;
}

const tool_command tool_command_convert = {
    .name = "convert",
    .usage = "kiln convert IN OUT [--extra NAME=FILE]... [--drop-extra]",
    .summary = "load an archive and save its module again, for PyTorch or Kiln",
    .details = "Source, constants and version stay as they are; what the optimiser does is never\n"
               "saved. OUT appears when it is complete, and may be IN.\n",
    .options = options_table,
    .option_count = sizeof options_table / sizeof options_table[0],
    .options_size = sizeof(convert_options),
    .min_operands = 2,
    .max_operands = 2,
    .run = run,
};
