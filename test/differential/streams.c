/* streams.c: random programs over streams of shapes: the JIT, at every level of every strategy,
 * gives what the plain interpreter gives, to the bit, through views, in-place operators, branches
 * and loops.
 *
 *   streams [--rounds N] [--seed N] [--no-llvm]
 *   streams --case SEED [--print]
 *
 * A case is a program (program.h) and a stream of calls of it, with inputs [a, b], [b], [a, 1], [c,
 * a, b] and [a, a]; a call draws a, b and c, most of them small, so that sizes are equal, or 1, by
 * accident, and seldom a dtype or strides of another order. Errors must come of the same calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "kiln/debug.h"
#include "test/differential/answer.h"
#include "test/differential/program.h"

enum { CALLS = 14, MAX_REPORTS = 50 };

/* -- Modes -- */

static const struct {
  const char *name;
  bool llvm;
  const char *options[5][2];
} modes[] = {
    {"off", false, {{"jit", "off"}}},
    {"dynamic", false, {{"codegen", "eval"}, {"fusion_strategy", "DYNAMIC,4"}, {"verify", "on"}}},
    {"mixed", false, {{"codegen", "eval"}, {"fusion_strategy", "STATIC,2;DYNAMIC,10"}}},
    {"static", false, {{"codegen", "eval"}, {"fusion_strategy", "STATIC,2"}}},
    {"stressed",
     false,
     {{"codegen", "eval"}, {"fusion_strategy", "STATIC,1;DYNAMIC,6"}, {"stress_bailout", "0.3"}}},
    {"torch",
     false,
     {{"codegen", "eval"}, {"fusion_strategy", "STATIC,1;DYNAMIC,3"}, {"compat", "torch"}}},
    {"beside",
     false,
     {{"codegen", "eval"},
      {"fusion_strategy", "STATIC,2;DYNAMIC,10"},
      {"compile", "async"},
      {"compile_after", "0"}}},
    {"llvm", true, {{"codegen", "llvm"}, {"fusion_strategy", "STATIC,1;DYNAMIC,6"}}},
};
enum { MODES = sizeof modes / sizeof *modes };
static kiln_context *contexts[MODES];

static kiln_context *create_context(int mode) {
  kiln_options *options = NULL;
  kiln_context *out = NULL;
  draw_must(kiln_options_create(&options));
  kiln_options_ignore_environment(options);
  draw_must(kiln_options_set(options, "min_group_size", "1"));
  draw_must(kiln_options_set(options, "memory_limit", "268435456"));
  draw_must(kiln_options_set(options, "compile", "sync"));
  for (int i = 0; modes[mode].options[i][0]; i++) {
    draw_must(kiln_options_set(options, modes[mode].options[i][0], modes[mode].options[i][1]));
  }
  draw_must(kiln_context_create(options, &out));
  kiln_options_destroy(options);
  kiln_context_set_log(out, NULL, NULL);
  kiln_mem_set_fill(out->env->mem, mode % 2 ? 0xff : 0x41);
  return out;
}

/* -- Calls -- */

static void call(const program *p, uint64_t seed, int index, answer *a) {
  kiln_value *inputs[INPUTS], *result = NULL;
  draw d;
  int64_t abc[3];
  program_draw_call(seed, index, &d, abc);
  *a = (answer){0};
  for (int i = 0; i < INPUTS; i++) {
    inputs[i] = program_input(p->context, &d, i, abc);
    a->seen[a->seen_count++] = kiln_value_data(inputs[i]);
  }
  kiln_status *status = kiln_instance_call(p->instance, "forward", inputs, INPUTS, NULL, &result);
  a->code = kiln_status_code(status);
  if (status) {
    answer_tell(a, "%s: %s", kiln_code_name(a->code), kiln_status_message(status));
  } else {
    answer_value(a, result, 0);
    for (int i = 0; i < INPUTS; i++) {
      answer_tell(a, " | ");
      answer_value(a, inputs[i], 0);
    }
  }
  kiln_status_destroy(status);
  kiln_value_destroy(result);
  for (int i = 0; i < INPUTS; i++) kiln_value_destroy(inputs[i]);
}

/* -- Cases -- */

static struct {
  int cases, failed, calls, succeeded, found, late;
  uint64_t compiled_runs, variants;
} counted;

/* Of two nodes that both fail either may be told: fusion moves them. What takes too much memory in
 * one way may not in another. */
static bool is_same(const answer *want, const answer *got) {
  const kiln_code codes[] = {want->code, got->code};
  for (int i = 0; i < 2; i++)
    if (codes[i] == KILN_LIMIT || codes[i] == KILN_OUT_OF_MEMORY) return true;
  const bool fail[] = {codes[0] == KILN_OP_ERROR || codes[0] == KILN_UNSUPPORTED,
                       codes[1] == KILN_OP_ERROR || codes[1] == KILN_UNSUPPORTED};
  return strcmp(want->text, got->text) == 0 || (fail[0] && fail[1]);
}

/* Groups that were formed, and refused only when they were compiled: those whose operators run in
 * the interpreter, told by `late`; others are faults. */
static int count_faults(kiln_model *model, int *late) {
  kiln_debug_refusal_info r;
  kiln_status *status;
  int faults = 0;
  for (int i = 0; !(status = kiln_debug_refusal(model, i, &r)); i++) {
    const bool fault =
        strcmp(r.reason, "check_failed") == 0 || strcmp(r.reason, "out_of_memory") == 0;
    if (!strstr(r.detail, "Group")) continue;
    if (fault) printf("  %s: %s\n", r.detail, r.sentence);
    faults += fault;
    *late += !fault;
  }
  kiln_status_destroy(status);
  return faults;
}

static void run_mode(uint64_t seed, int mode, bool print, answer *wants) {
  static answer got;
  static choices drawn;
  program p = {.context = contexts[mode], .choices = &drawn, .chosen = mode > 0};
  if (!program_build(&p, seed, print && mode == 0)) {
    program_destroy(&p);
    return;
  }
  for (int i = 0; i < CALLS; i++) {
    answer *a = mode == 0 ? &wants[i] : &got;
    call(&p, seed, i, a);
    if (draw_from(seed, (uint64_t)i).state & 1) /* every other one, at random */
      draw_must(kiln_model_wait_idle(p.model, NULL));
    if (mode == 0) counted.calls++, counted.succeeded += a->code == KILN_OK;
    if (print && mode == 0) printf("call %d: %s\n", i + 1, a->text);
    if (mode == 0 || is_same(&wants[i], a)) continue;
    if (counted.found++ < MAX_REPORTS) {
      printf("DIFFERS --case %llu: %s, call %d\n  plain: %.1000s\n  here: %.1000s\n",
             (unsigned long long)seed, modes[mode].name, i + 1, wants[i].text, a->text);
    }
    break;
  }
  kiln_counters counters;
  kiln_model_counters(p.model, &counters);
  const int faults = counters.compile_failures ? count_faults(p.model, &counted.late) : 0;
  if (faults && counted.found++ < MAX_REPORTS)
    printf("FAILS --case %llu: %s\n", (unsigned long long)seed, modes[mode].name);
  counted.compiled_runs += counters.compiled_runs;
  counted.variants += counters.compiles;
  program_destroy(&p);
}

static void run_case(uint64_t seed, bool print, bool no_llvm) {
  static answer wants[CALLS];
  const int found = counted.found;
  counted.cases++;
  for (int mode = 0; mode < MODES; mode++) {
    if (!modes[mode].llvm || !no_llvm) run_mode(seed, mode, print, wants);
  }
  counted.failed += counted.found > found;
  fflush(stdout);
}

int main(int argc, char **argv) {
  int rounds = 60;
  uint64_t seed = 1;
  bool one = false, print = false, no_llvm = false;
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--print") == 0) {
      print = true;
    } else if (strcmp(argv[i], "--no-llvm") == 0) {
      no_llvm = true;
    } else {
      if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(value);
      if (strcmp(argv[i], "--seed") == 0) seed = strtoull(value, NULL, 10);
      if (strcmp(argv[i], "--case") == 0) one = true, seed = strtoull(value, NULL, 10);
      i++;
    }
  }
  for (int i = 0; i < MODES; i++) contexts[i] = create_context(i);
  program_open();
  for (int i = 0; i < rounds && !one; i++) run_case(draw_from(seed, (uint64_t)i).state, 0, no_llvm);
  if (one) run_case(seed, print, no_llvm);
  counted.failed += program_faults;
  const int op_count = program_op_count();
  program_close();
  for (int i = 0; i < MODES; i++) kiln_context_release(contexts[i]);
  printf("seed %llu: %d operators, %d streams, %d of %d calls with results, %llu groups compiled, "
         "%d refused late, %llu compiled runs\n",
         (unsigned long long)seed, op_count, counted.cases, counted.succeeded, counted.calls,
         (unsigned long long)counted.variants, counted.late,
         (unsigned long long)counted.compiled_runs);
  printf("%d passed, %d failed\n", counted.cases - counted.failed, counted.failed);
  /* Streams that mostly fail, or in which nothing is compiled, test nothing. */
  return counted.failed > 0 || (!one && (counted.succeeded < counted.calls / 2 ||
                                         counted.compiled_runs < (uint64_t)counted.calls));
}
