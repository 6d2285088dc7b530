/* convert.c: `kiln convert`: loads an archive, or reads a graph, and saves the module. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/commands.h"
#include "tools/session.h"

typedef struct convert_options {
  tool_list extra, preserve;
  bool drop_extra, reprint, freeze, eval;
  tool_limits limits;
  tool_settings settings;
} convert_options;

#define FIELD(name) offsetof(convert_options, name)
static const tool_option options_table[] = {
    {"--extra", TOOL_LIST, FIELD(extra), "NAME=FILE", 0, "save a file's bytes along (repeatable)"},
    {"--drop-extra", TOOL_SWITCH, FIELD(drop_extra), NULL, 0, "leave the archive's own files out"},
    {"--reprint", TOOL_SWITCH, FIELD(reprint), NULL, 0, "print the source anew from the graphs"},
    {"--freeze", TOOL_SWITCH, FIELD(freeze), NULL, 0,
     "make attributes constants, as torch.jit.freeze does"},
    {"--eval", TOOL_SWITCH, FIELD(eval), NULL, 0,
     "let --freeze take every module as one in eval mode"},
    {"--preserve", TOOL_LIST, FIELD(preserve), "NAME", 0,
     "a method or attribute that --freeze leaves alone (repeatable)"},
    TOOL_LIMIT_OPTIONS(convert_options, limits),
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
    if (!extras[i].data) return tool_complain(error);
  }
  return -1;
}

/* Puts the frozen model in the place of the model. */
static kiln_status *freeze(const convert_options *o, kiln_model **model) {
  const kiln_freeze_options options = {.preserve = (const char *const *)o->preserve.items,
                                       .preserve_count = o->preserve.count,
                                       .eval = o->eval,
                                       .limits = tool_limits_of(&o->limits)};
  kiln_model *frozen = NULL;
  kiln_status *status = kiln_model_freeze(*model, &options, &frozen);
  if (status) return status;
  kiln_model_release(*model);
  *model = frozen;
  return NULL;
}

static int run(const void *options, char *const *operands) {
  const convert_options *o = options;
  const kiln_limits limits = tool_limits_of(&o->limits);
  tool_session s = {0};
  if ((o->preserve.count > 0 || o->eval) && !o->freeze) {
    return tool_usage_error("--eval and --preserve are for --freeze");
  }
  const int exit_wrong = tool_check_output("OUT", operands[1], NULL);
  if (exit_wrong >= 0) return exit_wrong;
  kiln_extra *extras = tool_alloc(sizeof *extras * (size_t)(o->extra.count + 1));
  int exit_status = read_extras(&o->extra, extras);
  if (exit_status < 0) {
    const kiln_save_options save = {.extras = extras,
                                    .extra_count = o->extra.count,
                                    .drop_extras = o->drop_extra,
                                    .reprint = o->reprint};
    exit_status = tool_session_open(&s, &o->settings, operands[0], &limits, NULL);
    if (exit_status < 0) {
      kiln_status *status = o->freeze ? freeze(o, &s.model) : NULL;
      if (!status) status = kiln_model_save(s.model, operands[1], &save);
      exit_status = status ? tool_report(status) : TOOL_GOOD;
    }
  }
  tool_session_close(&s);
  free_extras(extras, o->extra.count);
  return exit_status;
}

const tool_command tool_command_convert = {
    .name = "convert",
    .usage = "kiln convert IN OUT [--extra NAME=FILE]... [--drop-extra] [--reprint] "
             "[--freeze [--eval] [--preserve NAME]...]",
    .summary = "load an archive and save its module again, for PyTorch or Kiln",
    .details =
        "Source, constants and version stay as they are, unless they are printed anew; what\n"
        "the optimiser does is never saved. IN may also be a graph as text, which becomes\n"
        "a module without attributes. OUT appears when it is complete, and may be IN.\n",
    TOOL_OPTIONS(options_table, convert_options),
    .min_operands = 2,
    .max_operands = 2,
    .run = run,
};
