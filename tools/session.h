/* session.h: a model on a context of its own, with what is called in it. Starts as {0}. What
 * returns an int gives -1, or the exit status after a complaint. */
#pragma once

#include "tools/input.h"

typedef struct tool_session {
  kiln_context *context;
  kiln_model *model;
  kiln_instance *instance;
  tool_inputs inputs;
  double load_ms;
} tool_session;

/* Loads the model. `print` takes what it prints; NULL: standard output does. */
int tool_session_open(tool_session *s, const tool_settings *settings, const char *path,
                      const kiln_limits *limits, kiln_print_fn print);
/* Makes the instance, and the method's arguments: those of the file, or where it is NULL of SPECs
 * (tool_inputs_parse). */
int tool_session_prepare(tool_session *s, const char *method, const char *file,
                         const tool_list *specs, int64_t seed);
/* Calls the method with copies of the arguments, which it may change. */
kiln_status *tool_session_call(const tool_session *s, const char *method, const kiln_limits *limits,
                               kiln_value **out_result, double *out_ms);
/* Makes the instance, and `calls` calls with the arguments of each file, or of SPECs where there
 * are no files. */
int tool_session_call_all(tool_session *s, const char *method, const tool_list *files,
                          const tool_list *specs, int64_t seed, int64_t calls,
                          const kiln_limits *limits);
void tool_session_close(tool_session *s);
