/* check_bad.c: malformed archives: loading, or else running, must fail cleanly ("error"), anything
 * but a crash is right ("no crash"), or all must go well ("ok", a control).
 *
 * Runs in a child process of its own whose memory is limited; a crash, a hang or the use of too
 * much memory is the parent's verdict (check_worker.c). Methods are called with made-up arguments
 * of their schema's types; that those do not suit is no refusal of the archive. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tools/check.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_SHADOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define HAVE_SHADOW 1
#endif
#endif

enum { BAD_LIMIT_MS = 10000 };
static const uint64_t bad_limit_bytes = 96ull << 20;

static void limit_memory(void) {
#ifndef HAVE_SHADOW /* a sanitizer's shadow memory takes the whole address space */
  /* LLVM and thread stacks use up more address space than memory. */
  const rlim_t space = (rlim_t)8 << 30;
  struct rlimit limit = {space, space};
  setrlimit(RLIMIT_AS, &limit);
#endif
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

/* -- Made-up arguments -- */

static kiln_status *make_argument(kiln_context *context, const char **type, kiln_value **out);

/* "(A, B)" after the parenthesis. */
static kiln_status *make_tuple(kiln_context *context, const char **type, kiln_value **out) {
  kiln_value *items[16] = {NULL};
  int count = 0;
  kiln_status *status = NULL;
  while (!status && count < 16 && **type && **type != ')') {
    status = make_argument(context, type, &items[count++]);
    while (**type == ',' || **type == ' ') ++*type;
  }
  if (**type == ')') ++*type;
  if (!status) status = kiln_value_tuple(context, items, count, out);
  for (int i = 0; i < count; i++) kiln_value_destroy(items[i]);
  return status;
}

static kiln_status *make_plain(kiln_context *context, const char *name, size_t len,
                               kiln_value **out) {
  static const int64_t sizes[] = {2, 3};
  if (len == 6 && memcmp(name, "Tensor", 6) == 0) {
    return kiln_value_tensor(context, KILN_DTYPE_F32, 2, sizes, NULL, out);
  }
  if (len == 3 && memcmp(name, "int", 3) == 0) return kiln_value_int(context, 1, out);
  if (len == 5 && memcmp(name, "float", 5) == 0) return kiln_value_float(context, 1, out);
  if (len == 4 && memcmp(name, "bool", 4) == 0) return kiln_value_bool(context, 0, out);
  if (len == 3 && memcmp(name, "str", 3) == 0) return kiln_value_string(context, "a", 1, out);
  if (len == 4 && memcmp(name, "Dict", 4) == 0) {
    return kiln_value_dict(context, NULL, NULL, 0, out);
  }
  return kiln_value_none(context, out);
}

/* Makes a value of the type at *type and moves behind it. */
static kiln_status *make_argument(kiln_context *context, const char **type, kiln_value **out) {
  kiln_status *status;
  if (**type == '(') {
    ++*type;
    status = make_tuple(context, type, out);
  } else {
    size_t len = strcspn(*type, "[?,() ");
    status = make_plain(context, *type, len, out);
    *type += len;
    if (**type == '(') { /* parameters of a Dict, Future, … */
      for (int depth = 0; **type; ++*type) {
        depth += (**type == '(') - (**type == ')');
        if (depth == 0) break;
      }
      if (**type) ++*type;
    }
  }
  while (!status && (strncmp(*type, "[]", 2) == 0 || **type == '?')) {
    kiln_value *inner = *out;
    *out = NULL;
    if (**type == '?') {
      *type += 1;
      status = kiln_value_none(context, out);
    } else {
      *type += 2;
      status = kiln_value_list(context, &inner, 1, out);
    }
    kiln_value_destroy(inner);
  }
  return status;
}

static kiln_status *make_arguments(kiln_context *context, const kiln_model *model,
                                   const char *method, tool_inputs *out_inputs) {
  kiln_argument argument;
  kiln_status *status;
  *out_inputs = (tool_inputs){tool_alloc(sizeof(kiln_value *) * 64), 0};
  while (out_inputs->count < 64 &&
         !(status = kiln_model_argument(model, method, out_inputs->count, &argument))) {
    const char *type = argument.type;
    status = make_argument(context, &type, &out_inputs->values[out_inputs->count]);
    if (status) return status;
    out_inputs->count++;
  }
  if (out_inputs->count < 64) kiln_status_destroy(status); /* beyond the last */
  return NULL;
}

/* -- The case -- */

typedef enum outcome { RAN, REFUSED, UNCLEAR } outcome;

/* REFUSED: with `*out_reason`. UNCLEAR: our arguments did not suit, or a fault of Kiln's own. */
static outcome judge(kiln_status *status, char **out_reason) {
  if (!status) return RAN;
  kiln_code code = kiln_status_code(status);
  char *message = tool_take_message(status);
  *out_reason = tool_format("%s: %s", kiln_code_name(code), message);
  free(message);
  bool clean = code != KILN_INTERNAL && code != KILN_INVALID_ARGUMENT && code != KILN_NOT_FOUND;
  return clean ? REFUSED : UNCLEAR;
}

static outcome run_method(kiln_context *context, kiln_model *model, const char *method,
                          char **out_reason) {
  kiln_call_options call = {.limits = {.bytes = bad_limit_bytes, .time_ms = BAD_LIMIT_MS}};
  kiln_instance *instance = NULL;
  kiln_value *result = NULL;
  tool_inputs inputs = {0};
  kiln_status *status = kiln_instance_create(model, &instance);
  if (!status) status = make_arguments(context, model, method, &inputs);
  if (!status) {
    status = kiln_instance_call(instance, method, inputs.values, inputs.count, &call, &result);
  }
  outcome got = judge(status, out_reason);
  kiln_value_destroy(result);
  tool_inputs_free(&inputs);
  kiln_instance_release(instance);
  return got;
}

/* Loads, and runs every method until one is refused. */
static outcome load_and_run(kiln_context *context, const char *path, char **out_reason) {
  kiln_limits limits = {.bytes = bad_limit_bytes, .time_ms = BAD_LIMIT_MS};
  kiln_model *model = NULL;
  outcome got = judge(kiln_model_load(context, path, &limits, &model), out_reason);
  if (got == UNCLEAR || !model) return got;
  for (int i = 0; i < kiln_model_method_count(model) && got == RAN; i++) {
    got = run_method(context, model, kiln_model_method_name(model, i), out_reason);
  }
  kiln_model_release(model);
  return got;
}

void check_run_bad(const check_options *options, const check_case *c, check_result *result) {
  const char *expect = check_text(c->json, "expect", "");
  char *path = tool_join(c->folder, "model.pt"), *reason = NULL;
  kiln_context *context = NULL;
  bool want_error = strcmp(expect, "error") == 0, want_good = strcmp(expect, "ok") == 0;
  result->passed = true;
  result->exempt_from_groups = true;
  if (!options->in_process) limit_memory();
  kiln_status *status = check_context(options, &context);
  if (status) {
    check_fail_status(result, "context", status);
  } else if (!want_error && !want_good && strcmp(expect, "no crash") != 0) {
    check_fail(result,
               tool_format("case.json expects '%s', which is none of error, no crash, ok", expect));
  } else {
    outcome got = load_and_run(context, path, &reason);
    if (got == UNCLEAR && (want_error || want_good || strncmp(reason, "INTERNAL", 8) == 0)) {
      check_fail(result, tool_format("not refused cleanly: %s", reason));
    } else if (want_error && got == RAN) {
      check_fail(result, tool_format("loads and runs, want an error"));
    } else if (want_good && got == REFUSED) {
      check_fail(result, tool_format("refused: %s", reason));
    }
  }
  kiln_context_release(context);
  free(reason);
  free(path);
}

bool check_is_bad(const check_case *c) { return strcmp(c->category, "bad") == 0; }
