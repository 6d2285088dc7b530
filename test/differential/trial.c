/* trial.c: see trial.h. */
#include "test/differential/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/internal.h"
#include "base/sanitize.h"
#include "kiln/kiln_graph.h"
#include "test/differential/answer.h"

enum { MAX_ARGS = 48, MAX_INPUTS = 24, MAX_RESULTS = 8, MAX_REPORTS = 200 };

trial_counts trial_counted;
const kiln_limits trial_wild_limits = {
    .bytes = 32 << 20, .operations = 20000, .recursion = 64, .time_ms = 200};
static kiln_call_options call_options;

/* -- Modes -- */

static const struct {
  const char *name;
  int fill; /* of memory; -1: left as it is */
  const char *options[6][2];
} modes[] = {
    {"off", 0x41, {{"jit", "off"}, {"memory_plan", "off"}}}, /* its bytes are counted */
    {"off, other memory", 0xff, {{"jit", "off"}}},
    {"eval", 0xff, {{"codegen", "eval"}, {"min_group_size", "1"}}},
    {"llvm", 0x41, {{"codegen", "llvm"}, {"min_group_size", "1"}}},
};
enum { MODES = sizeof modes / sizeof *modes, EVAL = MODES - 2, LLVM = MODES - 1 };
static kiln_context *contexts[MODES];

static kiln_context *create_context(int mode) {
  kiln_options *options = NULL;
  kiln_context *out = NULL;
  draw_must(kiln_options_create(&options));
  kiln_options_ignore_environment(options);
  draw_must(kiln_options_set(options, "compile", "sync"));
  draw_must(kiln_options_set(options, "memory_limit", "268435456"));
  for (int i = 0; modes[mode].options[i][0]; i++) {
    draw_must(kiln_options_set(options, modes[mode].options[i][0], modes[mode].options[i][1]));
  }
  draw_must(kiln_context_create(options, &out));
  kiln_options_destroy(options);
  kiln_context_set_log(out, NULL, NULL);
  kiln_context_set_print(out, NULL, NULL);
  kiln_mem_set_fill(out->env->mem, modes[mode].fill);
  return out;
}

/* -- Operators -- */

static draw_ops ops;

/* Nodes behind it would read what it leaves. */
static bool is_wanted(const kiln_registry *registry, const kiln_op *op) {
  (void)registry;
  return !KILN_MSAN || !(op->flags & KILN_OP_UNINITIALISED);
}

void trial_open(const kiln_limits *limits) {
  call_options.limits = *limits;
  for (int i = 0; i < MODES; i++) contexts[i] = create_context(i);
  ops = draw_ops_of(contexts[0], is_wanted);
}

void trial_close(void) {
  draw_ops_free(&ops);
  for (int i = 0; i < MODES; i++) kiln_context_release(contexts[i]);
}

int trial_op_count(void) { return ops.count; }
const draw_op *trial_op_at(int index) { return &ops.all[index]; }
const draw_op *trial_find(const char *name) {
  for (int i = 0; i < ops.count; i++) {
    if (strcmp(ops.all[i].name, name) == 0) return &ops.all[i];
  }
  return NULL;
}

/* -- The graph of a case -- */

typedef struct program {
  kiln_context *context;
  const trial *t;
  draw d; /* what the graph looks like: the same in all modes */
  kiln_builder *b;
  int form; /* of its tensors: 0 inputs, 1 constants, 2 either */
  int input_count;
  draw_arg inputs[MAX_INPUTS];
  draw_edge edge;
  kiln_model *model;
  kiln_instance *instance;
} program;

static kiln_status *call_on(program *p, const char *op, kiln_var x, const kiln_value *a,
                            const kiln_value *b, kiln_var *out) {
  const kiln_builder_arg args[] = {{.var = x}, {.value = a}, {.value = b}};
  return kiln_builder_call(p->b, op, args, b ? 3 : a ? 2 : 1, out, 1, NULL);
}

/* A node of another operator on x. */
static kiln_status *pass_through(program *p, kiln_var x, kiln_var *out) {
  kiln_value *numbers[3] = {NULL};
  draw_must(kiln_value_int(p->context, 0, &numbers[0]));
  draw_must(kiln_value_int(p->context, -1, &numbers[1]));
  draw_must(kiln_value_float(p->context, 0.5, &numbers[2]));
  kiln_status *status = NULL;
  switch (draw_below(&p->d, 6)) {
    case 0: status = call_on(p, "aten::clone", x, NULL, NULL, out); break;
    case 1: status = call_on(p, "aten::transpose.int", x, numbers[0], numbers[1], out); break;
    case 2: status = call_on(p, "aten::mul.Scalar", x, numbers[1], NULL, out); break;
    case 3: status = call_on(p, "aten::mul.Scalar", x, numbers[2], NULL, out); break;
    case 4: status = call_on(p, "aten::abs", x, NULL, NULL, out); break;
    default: status = call_on(p, "aten::relu", x, NULL, NULL, out); break;
  }
  for (int i = 0; i < 3; i++) kiln_value_destroy(numbers[i]);
  return status;
}

/* How many dimensions it has, or the size of one. */
static kiln_status *size_of(program *p, kiln_var x, kiln_var *out) {
  kiln_value *dim = NULL;
  if (draw_below(&p->d, 3) == 0) return call_on(p, "aten::dim", x, NULL, NULL, out);
  draw_must(kiln_value_int(p->context, draw_below(&p->d, 3) - 1, &dim));
  kiln_status *status = call_on(p, "aten::size.int", x, dim, NULL, out);
  kiln_value_destroy(dim);
  return status;
}

static kiln_status *tensor_var(program *p, const draw_arg *arg, int key, kiln_var *out) {
  const bool constant = p->form == 1 || (p->form == 2 && draw_below(&p->d, 2));
  const bool through = draw_below(&p->d, 4) == 0;
  if (constant || p->input_count == MAX_INPUTS) {
    kiln_value *v = draw_tensor(p->context, arg, p->t->seed, (uint64_t)key, -1);
    kiln_status *status = kiln_builder_constant(p->b, v, out);
    kiln_value_destroy(v);
    if (status) return status;
    /* Constants are not to be written. */
    return arg->written ? call_on(p, "aten::clone", *out, NULL, NULL, out) : NULL;
  }
  char name[16];
  snprintf(name, sizeof name, "x%d", p->input_count);
  p->inputs[p->input_count++] = *arg;
  kiln_status *status = kiln_builder_input(p->b, name, "Tensor", out);
  return status || !through ? status : pass_through(p, *out, out);
}

/* A number, list or text that the graph does not know. */
static kiln_status *input_var(program *p, const draw_arg *arg, kiln_var *out) {
  char name[16], type[sizeof arg->type];
  size_t len = 0;
  for (const char *c = arg->type; *c; c++) { /* "int[2]" is "int[]" */
    if (!strchr("0123456789", *c)) type[len++] = *c;
  }
  type[len] = '\0';
  snprintf(name, sizeof name, "x%d", p->input_count);
  p->inputs[p->input_count++] = *arg;
  return kiln_builder_input(p->b, name, type, out);
}

static kiln_status *tensor_list(program *p, const draw_arg *arg, int key, kiln_var *out) {
  kiln_builder_arg items[4] = {{0}};
  const int count = 1 + draw_below(&p->d, 3);
  for (int i = 0; i < count; i++) {
    kiln_status *status = tensor_var(p, arg, key * 8 + i, &items[i].var);
    if (status) return status;
  }
  return kiln_builder_call(p->b, "prim::ListConstruct", items, count, out, 1, NULL);
}

/* The call itself. *out_count < 0: an argument of its cannot be drawn. */
static kiln_status *build_call(program *p, kiln_var *results, int *out_count) {
  draw_arg args[MAX_ARGS];
  kiln_builder_arg given[MAX_ARGS] = {{0}};
  kiln_value *values[MAX_ARGS] = {NULL};
  int count = draw_schema(p->t->op->schema, args, MAX_ARGS), used = 0;
  bool left_out = false;
  kiln_status *status = NULL;
  *out_count = -1;
  if (p->t->op->op->variant == KILN_VARIANT_COPY)
    args[0].written = true; /* a copy that overlaps as it does */
  for (int i = 0; i < count && !status; i++) {
    const draw_arg *a = &args[i];
    draw d = draw_from(p->t->seed, 0x1000 + (uint64_t)i);
    d.edge = &p->edge;
    if (a->has_default && draw_below(&d, 2) && !p->t->edges) {
      left_out = true;
      continue;
    }
    kiln_builder_arg *g = &given[used];
    if (a->keyword || left_out) g->name = a->name;
    if ((draw_is_tensor(a) && (a->type[6] != '?' || draw_below(&d, 4)))) {
      status = tensor_var(p, a, i + 1, &g->var);
    } else if (draw_is_tensor_list(a)) {
      status = tensor_list(p, a, i + 1, &g->var);
    } else {
      g->value = values[used] = draw_value(p->context, a, &d);
      if (!g->value) goto end;
      if (d.wild && p->form != 1 && p->input_count < MAX_INPUTS && draw_below(&d, 4) == 0) {
        g->value = NULL;
        status = input_var(p, a, &g->var);
      }
    }
    used++;
  }
  if (!status && count >= 0) {
    status = kiln_builder_call(p->b, p->t->op->name, given, used, results, MAX_RESULTS, out_count);
  }
end:
  for (int i = 0; i < MAX_ARGS; i++) kiln_value_destroy(values[i]);
  return status;
}

/* A graph of the call, whose results may be hidden behind another node: their sizes too, which
 * shape inference must not know where the call raises. False: there is none. */
static bool build(program *p) {
  kiln_var vars[2 * MAX_RESULTS];
  int count = 0, made = 0;
  p->d = draw_from(p->t->seed, 0x9a9);
  p->form = draw_below(&p->d, 3);
  if (p->t->edges) p->form = 0;
  p->edge = (draw_edge){.at = p->t->at, .which = p->t->which};
  draw_must(kiln_builder_create(p->context, &p->b));
  kiln_status *status = build_call(p, vars, &count);
  for (int i = 0; !status && i < count; i++) {
    const int then = draw_below(&p->d, 8);
    const bool hide = draw_below(&p->d, 2);
    if (then > 3 || strcmp(kiln_builder_type(p->b, vars[i]), "Tensor") != 0) continue;
    kiln_var next;
    status = then == 0 ? size_of(p, vars[i], &next) : pass_through(p, vars[i], &next);
    vars[hide ? i : count + made++] = next;
  }
  if (!status && count >= 0) status = kiln_builder_return(p->b, vars, count + made);
  if (!status && count >= 0 && p->t->print) {
    char *text = NULL;
    draw_must(kiln_builder_print(p->b, 3, &text));
    printf("%s", text);
    kiln_text_free(text);
  }
  if (!status && count >= 0) status = kiln_builder_finish(p->b, &p->model);
  if (status && p->t->print) printf("not built: %s\n", kiln_status_report(status));
  const bool good = !status && count >= 0;
  kiln_status_destroy(status);
  kiln_builder_destroy(p->b);
  p->b = NULL;
  if (good) draw_must(kiln_instance_create(p->model, &p->instance));
  return good;
}

static void close_program(program *p) {
  kiln_instance_release(p->instance);
  kiln_model_release(p->model);
}

/* -- Running -- */

/* Set of each call: profiled, compiled, with other types, again with the first. */
static const int sets[] = {0, 0, 0, 1, 1, 0};
enum { CALLS = sizeof sets / sizeof *sets };

static void print_name(const trial *t) {
  printf("%s --case %llu", t->op->name, (unsigned long long)t->seed);
  if (t->edges) printf(" --edge %d.%d.%d.%d", t->at, t->which, t->tensor, t->other);
}

static bool found(const trial *t, int mode, int index) {
  if (trial_counted.found++ >= MAX_REPORTS) return false;
  printf("DIFFERS ");
  print_name(t);
  printf(": %s, call %d\n", modes[mode].name, index + 1);
  return true;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static kiln_value *draw_input(const program *p, int i, uint64_t seed) {
  const draw_arg *arg = &p->inputs[i];
  const uint64_t key = (uint64_t)i + 0x5e7;
  /* Optional tensors that are inputs are there. */
  if (draw_is_tensor(arg) || draw_is_tensor_list(arg)) {
    return draw_tensor(p->context, arg, seed, key,
                       p->t->tensor == i + 1 || p->t->tensor < 0 ? p->t->other : -1);
  }
  draw d = draw_from(seed, key);
  return draw_value(p->context, arg, &d);
}

/* Calls with fresh inputs of that set. */
static void call(const program *p, int mode, int index, answer *a) {
  kiln_value *inputs[MAX_INPUTS], *result = NULL;
  const uint64_t seed = p->t->seed + (uint64_t)sets[index];
  a->without_data = p->t->op->op->flags & KILN_OP_UNINITIALISED;
  a->len = 0;
  a->seen_count = 0;
  a->text[0] = '\0';
  for (int i = 0; i < p->input_count; i++) {
    inputs[i] = draw_input(p, i, seed);
    if (kiln_value_kind(inputs[i]) == KILN_KIND_TENSOR) {
      a->seen[a->seen_count++] = kiln_value_data(inputs[i]);
    }
  }
  const double begin = seconds();
  kiln_status *status =
      kiln_instance_call(p->instance, "forward", inputs, p->input_count, &call_options, &result);
  const double taken = seconds() - begin, most = call_options.limits.time_ms * 1.5e-3 + 0.5;
  if (call_options.limits.time_ms && taken > most && found(p->t, mode, index)) {
    printf("  took %.2f s\n", taken);
  }
  a->code = kiln_status_code(status);
  if (status) {
    answer_tell(a, "%s: %s", kiln_code_name(a->code), kiln_status_message(status));
    if (a->code == KILN_INTERNAL && found(p->t, mode, index)) printf("  %s\n", a->text);
  } else {
    answer_value(a, result, 0);
    for (int i = 0; i < p->input_count; i++) { /* they may have been written */
      answer_tell(a, " | ");
      answer_value(a, inputs[i], 0);
    }
  }
  kiln_status_destroy(status);
  kiln_value_destroy(result);
  for (int i = 0; i < p->input_count; i++) kiln_value_destroy(inputs[i]);
}

static bool is_limited(const answer *a) {
  return a->code == KILN_LIMIT || a->code == KILN_OUT_OF_MEMORY;
}

/* Of two operators of a wild case that both refuse their arguments either may be told. */
static bool is_same(const trial *t, const answer *want, const answer *got) {
  if (strcmp(want->text, got->text) == 0) return true;
  return t->seed & DRAW_WILD && want->code == KILN_OP_ERROR && got->code == KILN_OP_ERROR;
}

/* Bytes in use: what waits in the caches of the instance's calls left out. */
static size_t bytes_of(const program *p) {
  size_t bytes = kiln_context_bytes(p->context);
  for (int i = 0; i < KILN__IDLE_CALLS; i++) {
    const kiln_call *idle = p->instance->idle[i];
    if (idle) bytes -= idle->cache.bytes;
  }
  return bytes;
}

/* Lets calls fail for want of memory wherever they ask for some; they must leave nothing. */
static void starve(const program *p) {
  enum { MOST = 1 << 16 };
  static answer got;
  const kiln_limits limits = call_options.limits;
  const size_t before = bytes_of(p);
  const double begin = seconds();
  got.code = KILN_LIMIT;
  for (uint64_t bytes = 64; is_limited(&got) && bytes < MOST; bytes += bytes / 8 + 64) {
    if (seconds() - begin > 0.2) break; /* memory is asked for late */
    call_options.limits.bytes = bytes;
    call(p, 0, 0, &got);
  }
  call_options.limits = limits;
  if (bytes_of(p) > before && found(p->t, 0, CALLS)) {
    printf("  kept %zu bytes of calls that failed\n", bytes_of(p) - before);
  }
}

/* All calls in one mode, slow ones less often: four modes of 0.4 s and one more call of 0.2 s stay
 * below what the fuzzer takes for slow (main.c). After a call that reached a limit there is nothing
 * to compare. False: there is no such graph. */
static bool run_mode(const trial *t, int mode, answer *wants) {
  static answer got;
  program p = {.context = contexts[mode], .t = t};
  const double begin = seconds();
  const size_t before = kiln_context_bytes(p.context);
  if (!build(&p)) {
    if (mode > 0 && found(t, mode, -1)) printf("  not built\n");
    return false;
  }
  int limited = 0;
  for (int i = 0; i < CALLS && limited < 2 && seconds() - begin < 0.4; i++) {
    answer *a = mode == 0 ? &wants[i] : &got;
    call(&p, mode, i, a);
    if (t->print && mode == 0) printf("call %d: %s\n", i + 1, a->text);
    if (is_limited(a) || is_limited(&wants[i])) {
      limited++;
    } else if (!limited && !is_same(t, &wants[i], a)) {
      if (found(t, mode, i)) printf("  plain: %.1000s\n  here: %.1000s\n", wants[i].text, a->text);
      break;
    }
  }
  if (mode == 0 && !t->edges && !limited && seconds() - begin < 0.2) starve(&p);
  trial_counted.choices = p.edge.seen;
  trial_counted.tensors = p.input_count;
  kiln_counters counters;
  kiln_model_counters(p.model, &counters);
  trial_counted.compiled_runs += counters.compiled_runs;
  close_program(&p);
  /* What the context's tables have learnt stays. */
  const size_t after = kiln_context_bytes(p.context);
  if (after > before + (1 << 20) && found(t, mode, CALLS))
    printf("  kept %zu bytes\n", after - before);
  return true;
}

void trial_take_edges(trial *t, const char *text) {
  t->edges = sscanf(text, "%d.%d.%d.%d", &t->at, &t->which, &t->tensor, &t->other) == 4;
}

int trial_run(const trial *t) {
  static answer wants[CALLS];
  for (int i = 0; i < CALLS; i++) wants[i].code = KILN_LIMIT; /* until it was made */
  if (t->list) {
    print_name(t);
    putchar('\n');
    fflush(stdout);
  }
  if (!run_mode(t, 0, wants)) {
    trial_counted.unbuilt++;
    return -1;
  }
  trial_counted.cases++;
  for (int mode = 1; mode < MODES; mode++) {
    if (t->edges ? mode == EVAL : mode != LLVM || !t->no_llvm) run_mode(t, mode, wants);
  }
  fflush(stdout);
  trial_counted.succeeded += wants[0].code == KILN_OK;
  return wants[0].code == KILN_OK;
}
