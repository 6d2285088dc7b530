/* differential.c: the JIT never changes a dtype, a size, a stride, an alias, a bit or an error.
 *
 *   differential [--rounds N] [--seed N] [--only WORDS] [--case SEED] [--print]
 *
 * Every operator of the table that can be called with drawn arguments (draw.h) becomes a small
 * graph: its tensors are inputs, so that fusion acts, or constants, so that folding acts, or both;
 * some come from a node before it, some of its results go into a node behind it. The plain
 * interpreter runs it, and each of the modes below, before and after they compile, with two sets of
 * inputs, the second of other shapes and dtypes. A case that differs is told with what makes it
 * again: its operator and its seed. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/debug.h"
#include "kiln/kiln_graph.h"
#include "test/differential/draw.h"

enum { MAX_ARGS = 48, MAX_INPUTS = 24, MAX_RESULTS = 8, MAX_TEXT = 1 << 14, MAX_REPORTS = 200 };

/* -- Modes -- */

static const struct {
  const char *name;
  const char *options[6][2];
} modes[] = {
    {"off", {{"jit", "off"}}},
    {"eval", {{"codegen", "eval"}, {"min_group_size", "1"}}},
    {"llvm", {{"codegen", "llvm"}, {"min_group_size", "1"}}},
};
enum { MODES = sizeof modes / sizeof *modes };
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
  return out;
}

/* -- Operators -- */

typedef struct op_row {
  char *name, *schema;
} op_row;
static op_row *ops;
static int op_count;

/* What differs from call to call, reads files or clocks, shows memory as it is, or the sign of a
 * NaN. */
static bool is_excluded(const char *name) {
  static const char *const words[] = {"rand",        "dropout",         "empty",     "bernoulli",
                                      "multinomial", "normal",          "uniform",   "poisson",
                                      "manual_seed", "exponential",     "geometric", "cauchy",
                                      "binomial",    "_standard_gamma", "dirichlet", "rrelu",
                                      "time",        "::save",          "from_file", "warn",
                                      "prim::",      "resize",          "Print",     "seed",
                                      "set_",        "signbit",         "copysign"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strstr(name, words[i])) return true;
  }
  return false;
}

static void add_op(void *user, const char *const *columns, int count) {
  (void)user;
  if (count < 5 || strcmp(columns[2], "yes") != 0 || is_excluded(columns[0])) return;
  ops = realloc(ops, sizeof *ops * (size_t)(op_count + 1));
  ops[op_count++] = (op_row){strdup(columns[0]), strdup(columns[4])};
}

/* -- The graph of a case -- */

typedef struct trial {
  const op_row *op;
  uint64_t seed;
  bool print;
} trial;

typedef struct program {
  kiln_context *context;
  const trial *t;
  draw d; /* what the graph looks like: the same in all modes */
  kiln_builder *b;
  int form; /* of its tensors: 0 inputs, 1 constants, 2 either */
  int input_count;
  draw_arg inputs[MAX_INPUTS];
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

static kiln_status *tensor_var(program *p, const draw_arg *arg, int key, kiln_var *out) {
  const bool constant = p->form == 1 || (p->form == 2 && draw_below(&p->d, 2));
  const bool through = draw_below(&p->d, 4) == 0;
  if (constant || p->input_count == MAX_INPUTS) {
    kiln_value *v = draw_tensor(p->context, arg, p->t->seed, (uint64_t)key);
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
  for (int i = 0; i < count && !status; i++) {
    const draw_arg *a = &args[i];
    draw d = draw_from(p->t->seed, 0x1000 + (uint64_t)i);
    if (a->has_default && draw_below(&d, 2)) {
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

/* False: there is no such graph. */
static bool build(program *p) {
  kiln_var vars[2 * MAX_RESULTS];
  int count = 0, made = 0;
  p->d = draw_from(p->t->seed, 0x9a9);
  p->form = draw_below(&p->d, 3);
  draw_must(kiln_builder_create(p->context, &p->b));
  kiln_status *status = build_call(p, vars, &count);
  for (int i = 0; !status && i < count; i++) {
    const bool follow = draw_below(&p->d, 3) == 0, hide = draw_below(&p->d, 2);
    if (!follow || strcmp(kiln_builder_type(p->b, vars[i]), "Tensor") != 0) continue;
    kiln_var next;
    status = pass_through(p, vars[i], &next);
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

/* -- What a call gave, as text -- */

typedef struct answer {
  size_t len;
  const void *seen[64]; /* memory of the tensors told so far: the inputs' first */
  int seen_count;
  char text[MAX_TEXT];
} answer;

static void tell(answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(answer *a, const char *format, ...) {
  va_list list;
  va_start(list, format);
  if (a->len + 1 < sizeof a->text) {
    const int n = vsnprintf(a->text + a->len, sizeof a->text - a->len, format, list);
    a->len += n > 0 ? (size_t)n : 0;
    if (a->len >= sizeof a->text) a->len = sizeof a->text - 1;
  }
  va_end(list);
}

/* Which NaN it is is not promised. */
static void same_nans(kiln_dtype dtype, size_t bytes, void *data) {
  if (dtype == KILN_DTYPE_F32 || dtype == KILN_DTYPE_C64) {
    for (uint32_t *u = data; (char *)u < (char *)data + bytes; u++) {
      if ((*u & 0x7fffffffu) > 0x7f800000u) *u = 0x7fc00000u;
    }
  } else if (dtype == KILN_DTYPE_F64 || dtype == KILN_DTYPE_C128) {
    for (uint64_t *u = data; (char *)u < (char *)data + bytes; u++) {
      if ((*u & INT64_MAX) > 0x7ff0000000000000u) *u = 0x7ff8000000000000u;
    }
  } else if (dtype == KILN_DTYPE_F16 || dtype == KILN_DTYPE_BF16) {
    const unsigned inf = dtype == KILN_DTYPE_F16 ? 0x7c00 : 0x7f80;
    for (uint16_t *u = data; (char *)u < (char *)data + bytes; u++) {
      if ((*u & 0x7fffu) > inf) *u = (uint16_t)(inf + 1);
    }
  }
}

/* The first ones, for the reader of a report. */
static void tell_elements(answer *a, kiln_dtype dtype, const void *data, int count) {
  for (int i = 0; i < count; i++) {
    switch (dtype) {
      case KILN_DTYPE_F32: tell(a, " %.9g", (double)((const float *)data)[i]); break;
      case KILN_DTYPE_F64: tell(a, " %.17g", ((const double *)data)[i]); break;
      case KILN_DTYPE_F16: tell(a, " %.5g", (double)((const _Float16 *)data)[i]); break;
      case KILN_DTYPE_I64: tell(a, " %lld", (long long)((const int64_t *)data)[i]); break;
      case KILN_DTYPE_I32: tell(a, " %d", ((const int32_t *)data)[i]); break;
      case KILN_DTYPE_BF16:
      case KILN_DTYPE_I16: tell(a, " %d", ((const int16_t *)data)[i]); break;
      default: tell(a, " %d", ((const uint8_t *)data)[i]); break;
    }
  }
}

static void tell_data(answer *a, const kiln_value *v, int64_t numel) {
  const size_t bytes = (size_t)numel * kiln_dtype_size(kiln_value_dtype(v));
  unsigned char *data = malloc(bytes + 8);
  uint64_t hash = 14695981039346656037u;
  if (!data) exit(2);
  kiln_status *status = kiln_value_copy_data(v, data, bytes);
  if (status) {
    tell(a, " %s", kiln_status_message(status));
  } else {
    same_nans(kiln_value_dtype(v), bytes, data);
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ data[i]) * 1099511628211u;
    tell(a, " #%016llx", (unsigned long long)hash);
    tell_elements(a, kiln_value_dtype(v), data, numel < 16 ? (int)numel : 16);
  }
  kiln_status_destroy(status);
  free(data);
}

static void tell_tensor(answer *a, const kiln_value *v) {
  const int rank = kiln_value_rank(v);
  int64_t numel = 1;
  tell(a, "%s[", kiln_dtype_name(kiln_value_dtype(v)));
  for (int i = 0; i < rank; i++) {
    tell(a, "%lld/%lld ", (long long)kiln_value_sizes(v)[i], (long long)kiln_value_strides(v)[i]);
    numel *= kiln_value_sizes(v)[i];
  }
  tell(a, "]%s", kiln_value_requires_grad(v) == 1 ? " requires_grad" : "");
  if (numel == 0) return;
  int at = 0;
  while (at < a->seen_count && a->seen[at] != kiln_value_data(v)) at++;
  if (at == a->seen_count && at < 64) a->seen[a->seen_count++] = kiln_value_data(v);
  tell(a, " memory %d", at);
  tell_data(a, v, numel);
}

static void tell_value(answer *a, const kiln_value *v, int depth) {
  switch (kiln_value_kind(v)) {
    case KILN_KIND_TENSOR: tell_tensor(a, v); return;
    case KILN_KIND_LIST:
    case KILN_KIND_TUPLE:
      tell(a, "(");
      for (int i = 0; i < kiln_value_count(v) && depth < 4; i++) {
        kiln_value *item = NULL;
        draw_must(kiln_value_item(v, i, &item));
        tell_value(a, item, depth + 1);
        tell(a, ", ");
        kiln_value_destroy(item);
      }
      tell(a, ")");
      return;
    case KILN_KIND_FLOAT: tell(a, "%a", kiln_value_as_float(v)); return;
    default: {
      char *text = NULL;
      if (!kiln_value_print(v, 8, &text)) tell(a, "%s", text);
      kiln_text_free(text);
    }
  }
}

/* Calls with fresh inputs of that set. */
static void call(const program *p, int set, answer *a) {
  kiln_value *inputs[MAX_INPUTS], *result = NULL;
  a->len = 0;
  a->seen_count = 0;
  a->text[0] = '\0';
  for (int i = 0; i < p->input_count; i++) {
    inputs[i] =
        draw_tensor(p->context, &p->inputs[i], p->t->seed + (uint64_t)set, (uint64_t)i + 0x5e7);
    a->seen[a->seen_count++] = kiln_value_data(inputs[i]);
  }
  kiln_status *status =
      kiln_instance_call(p->instance, "forward", inputs, p->input_count, NULL, &result);
  if (status) {
    tell(a, "%s: %s", kiln_code_name(kiln_status_code(status)), kiln_status_message(status));
  } else {
    tell_value(a, result, 0);
    for (int i = 0; i < p->input_count; i++) { /* they may have been written */
      tell(a, " | ");
      tell_tensor(a, inputs[i]);
    }
  }
  kiln_status_destroy(status);
  kiln_value_destroy(result);
  for (int i = 0; i < p->input_count; i++) kiln_value_destroy(inputs[i]);
}

/* -- Cases -- */

static int cases, succeeded, unbuilt, differing;
static uint64_t compiled_runs;
/* Set of each call: profiled, compiled, with other types, again with the first. */
static const int sets[] = {0, 0, 0, 1, 1, 0};
enum { CALLS = sizeof sets / sizeof *sets };

static void report(const trial *t, int mode, int index, const answer *want, const answer *got) {
  if (differing++ >= MAX_REPORTS) return;
  printf("DIFFERS %s --case %llu: %s, call %d\n  plain: %.1000s\n  %5s: %.1000s\n", t->op->name,
         (unsigned long long)t->seed, modes[mode].name, index + 1, want->text, modes[mode].name,
         got->text);
  fflush(stdout);
}

/* 1: the operator gave results, 0: an error; -1: nothing to compare. */
static int run_case(const trial *t) {
  static answer want[2], got;
  program p = {.context = contexts[0], .t = t};
  if (!build(&p)) {
    unbuilt++;
    return -1;
  }
  bool stable = true;
  for (int set = 0; set < 2; set++) {
    call(&p, set, &want[set]);
    call(&p, set, &got);
    stable = stable && strcmp(want[set].text, got.text) == 0;
    if (t->print) printf("set %d: %s\n", set, want[set].text);
  }
  close_program(&p);
  if (!stable) return -1;
  cases++;
  for (int mode = 1; mode < MODES; mode++) {
    program q = {.context = contexts[mode], .t = t};
    if (!build(&q)) exit(2);
    for (int i = 0; i < CALLS; i++) {
      call(&q, sets[i], &got);
      if (strcmp(want[sets[i]].text, got.text) == 0) continue;
      report(t, mode, i, &want[sets[i]], &got);
      break;
    }
    kiln_counters counters;
    kiln_model_counters(q.model, &counters);
    compiled_runs += counters.compiled_runs;
    close_program(&q);
  }
  const bool good = strchr(want[0].text, '[') == want[0].text + strcspn(want[0].text, "[:");
  succeeded += good;
  return good;
}

/* Draws until the operator has been run with success, and a few more. */
static void run_op(const op_row *op, uint64_t seed, int rounds) {
  enum { TRIES = 12 };
  for (int round = 0; round < rounds; round++) {
    for (int attempt = 0; attempt < TRIES; attempt++) {
      draw d = draw_from(seed, (uint64_t)(round * TRIES + attempt));
      for (const char *c = op->name; *c; c++) d = draw_from(d.state, (uint64_t)*c);
      (void)draw_below(&d, 2);
      const trial t = {.op = op, .seed = d.state >> 8};
      if (run_case(&t) == 1) break;
    }
  }
}

int main(int argc, char **argv) {
  const char *only = "";
  uint64_t seed = 1, one = 0;
  int rounds = 1;
  bool print = false;
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (strcmp(argv[i], "--print") == 0) {
      print = true;
      continue;
    }
    if (strcmp(argv[i], "--rounds") == 0) rounds = atoi(value);
    if (strcmp(argv[i], "--seed") == 0) seed = strtoull(value, NULL, 10);
    if (strcmp(argv[i], "--only") == 0) only = value;
    if (strcmp(argv[i], "--case") == 0) one = strtoull(value, NULL, 10);
    i++;
  }
  for (int i = 0; i < MODES; i++) contexts[i] = create_context(i);
  draw_must(kiln_debug_list(contexts[0], "ops", add_op, NULL));
  for (int i = 0; i < op_count; i++) {
    if (one && strcmp(ops[i].name, only) == 0) {
      run_case(&(trial){&ops[i], one, print});
    } else if (!one && strstr(ops[i].name, only)) {
      run_op(&ops[i], seed, rounds);
    }
  }
  printf("seed %llu: %d operators, %d cases, %d with results, %d not built, %llu compiled runs, "
         "%d differ\n",
         (unsigned long long)seed, op_count, cases, succeeded, unbuilt,
         (unsigned long long)compiled_runs, differing);
  for (int i = 0; i < MODES; i++) kiln_context_release(contexts[i]);
  for (int i = 0; i < op_count; i++) {
    free(ops[i].name);
    free(ops[i].schema);
  }
  free(ops);
  /* A run of the whole table in which nothing was compiled would have tested nothing. */
  return differing > 0 || (!*only && (succeeded < op_count / 2 || compiled_runs < 1000));
}
