/* program.c: random programs, step by step. */
#include "test/differential/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "codegen/lower.h"

/* -- Samples -- */

static kiln_context *sampler;

static void set_sample(program *p, kiln_var var, kiln_value *v) {
  if (p->chosen || var >= MAX_SAMPLES) {
    kiln_value_destroy(v);
    return;
  }
  kiln_value_destroy(p->samples[var]);
  p->samples[var] = v;
}
static const kiln_value *sample_of(const program *p, const kiln_builder_arg *arg) {
  return !arg->var ? arg->value : arg->var < MAX_SAMPLES ? p->samples[arg->var] : NULL;
}
/* Of what a loop or a branch gives: what it is at first, or of one side. */
static void share_sample(program *p, kiln_var to, kiln_var from) {
  kiln_value *v = from < MAX_SAMPLES ? p->samples[from] : NULL;
  if (v) draw_must(kiln_value_clone(v, &v));
  set_sample(p, to, v);
}

/* What an operator gives for the samples; how many, 0: it fails, or an argument has none. */
static int call_samples(program *p, const char *op, const kiln_builder_arg *args, int count,
                        kiln_value **out, int most) {
  kiln_call_arg given[MAX_ARGS] = {{0}};
  kiln_value *items[MAX_ARGS] = {NULL};
  int results = 0;
  for (int i = 0; i < count; i++) {
    given[i] = (kiln_call_arg){.name = args[i].name, .value = sample_of(p, &args[i])};
    items[i] = (kiln_value *)given[i].value;
    if (args[i].var && !given[i].value) return 0;
  }
  kiln_status *status =
      strcmp(op, "prim::ListConstruct") == 0
          ? kiln_value_list(sampler, items, count, out)
          : kiln_operator_call(sampler, NULL, op, given, count, out, most, &results);
  if (!status && results == 0) results = 1;
  if (status) results = 0;
  kiln_status_destroy(status);
  return results;
}

/* Adds a node, and samples of its results. */
static kiln_status *call(program *p, const char *op, const kiln_builder_arg *args, int count,
                         kiln_var *out, int out_count) {
  kiln_value *values[MAX_RESULTS] = {NULL};
  kiln_status *status = kiln_builder_call(p->b, op, args, count, out, out_count, NULL);
  if (status || p->chosen) return status;
  (void)call_samples(p, op, args, count, values, out_count);
  for (int i = 0; i < out_count; i++) set_sample(p, out[i], values[i]);
  return NULL;
}

/* -- Nodes of a table -- */

/* What a node takes: t a tensor of sizes that broadcast with the first one's, s that one again, i
 * and f an int and a float constant, d a dimension, D a list of one, b a bool, n None, + the int 1,
 * L a list of two such tensors, M one of two or three with the first one's letters, g places of the
 * first one's greatest along the dimension, h those of another's along its last, of a matrix; 2: it
 * has two results, of which the first is used. What its result has: '=' all its tensors' sizes, '-'
 * without the dimension, '1' with 1 there, 'x' the last two exchanged, 'u' one more, 'c' unknown.
 */
typedef struct form {
  const char *op, *takes;
  char gives;
} form;
static const form forms[] = {
    {"aten::add.Tensor", "tt+", '='},
    {"aten::sub.Tensor", "tti", '='},
    {"aten::mul.Tensor", "tt", '='},
    {"aten::div.Tensor", "tt", '='},
    {"aten::maximum", "tt", '='},
    {"aten::add.Scalar", "tf+", '='},
    {"aten::mul.Scalar", "tf", '='},
    {"aten::mul.Scalar", "ti", '='},
    {"aten::relu", "t", '='},
    {"aten::tanh", "t", '='},
    {"aten::sigmoid", "t", '='},
    {"aten::exp", "t", '='},
    {"aten::neg", "t", '='},
    {"aten::abs", "t", '='},
    {"aten::clamp", "tff", '='},
    {"aten::where.self", "ctt", '='},
    {"aten::add_.Tensor", "tt+", '='},
    {"aten::relu_", "t", '='},
    {"aten::softmax.int", "tdn", '='},
    {"aten::log_softmax.int", "tdn", '='},
    {"aten::sum.dim_IntList", "tDkn", '1'},
    {"aten::sum.dim_IntList", "tDbn", '-'},
    {"aten::mean.dim", "tDkn", '1'},
    {"aten::amax", "tDb", '-'},
    {"aten::amin", "tDk", '1'},
    {"aten::argmax", "tdb", '-'},
    {"aten::max.dim", "tdk2", '1'},
    {"aten::min.dim", "tdb2", '-'},
    {"aten::var.dim", "tDbk", '1'},
    {"aten::std.dim", "tDkb", '-'},
    {"aten::linalg_vector_norm", "tiDkn", '1'},
    {"aten::logsumexp", "tDk", '1'},
    {"aten::nansum", "tDbn", '-'},
    {"aten::cumsum", "tdn", '='},
    {"aten::cumsum", "tdn", '='},
    {"aten::cumprod", "tdn", '='},
    {"aten::cummax", "td2", '='},
    {"aten::cummin", "td2", '='},
    {"aten::ones_like", "tnnnnn", '='},
    {"aten::tril", "ti", '='},
    {"aten::transpose.int", "txy", 'x'},
    {"aten::unsqueeze", "td", 'u'},
    {"aten::clone", "tn", '='},
    {"aten::contiguous", "ti", '='},
    {"aten::cat", "Ld", 'c'},
    {"aten::cat", "Md", 'c'},
    {"aten::stack", "Md", 'c'},
    {"aten::chunk", "tid", 'c'},
    {"aten::matmul", "tm", 'c'},
    {"aten::expand_as", "ts", 'c'},
    {"aten::expand_as", "tt", '='},
    {"aten::slice.Tensor", "td+ni", 'c'},
    {"aten::select.int", "tdz", '-'},
    {"aten::select.int", "td+", '-'},
    {"aten::narrow", "td+i", 'c'},
    {"aten::split.Tensor", "tid", 'c'},
    {"aten::unfold", "tdi+", 'c'},
    {"aten::gather", "tdgb", '1'},
    {"aten::embedding", "thxbb", 'c'},
};

static bool writes(const form *f) { return f->op[strcspn(f->op, ".") - 1] == '_'; }

static kiln_value *number(program *p, char take, const variable *first) {
  kiln_value *v = NULL, *item = NULL;
  const int rank = (int)strlen(first->sizes);
  switch (take) {
    case 'f': draw_must(kiln_value_float(p->context, 0.5 * draw_below(&p->d, 7) - 1, &v)); break;
    case 'i': draw_must(kiln_value_int(p->context, 1 + draw_below(&p->d, 2), &v)); break;
    case 'b': draw_must(kiln_value_bool(p->context, 0, &v)); break;
    case 'k': draw_must(kiln_value_bool(p->context, 1, &v)); break;
    case 'n': draw_must(kiln_value_none(p->context, &v)); break;
    case 'x': draw_must(kiln_value_int(p->context, -1, &v)); break;
    case 'y': draw_must(kiln_value_int(p->context, -2, &v)); break;
    case 'z': draw_must(kiln_value_int(p->context, 0, &v)); break;
    case '+': draw_must(kiln_value_int(p->context, 1, &v)); break;
    default: draw_must(kiln_value_int(p->context, rank ? draw_below(&p->d, rank) : 0, &v)); break;
  }
  if (take != 'D') return v;
  item = v;
  draw_must(kiln_value_list(p->context, &item, 1, &v));
  kiln_value_destroy(item);
  return v;
}

static bool broadcasts(const char *a, const char *b) {
  size_t n = strlen(a), m = strlen(b);
  for (size_t i = 1; i <= n && i <= m; i++) {
    if (a[n - i] != b[m - i] && a[n - i] != '1' && b[m - i] != '1') return false;
  }
  return true;
}
static void join(char *a, const char *b) {
  char out[8] = {0};
  const size_t n = strlen(a), m = strlen(b), most = n > m ? n : m;
  for (size_t i = 1; i <= most; i++) {
    const char x = i <= n ? a[n - i] : '1', y = i <= m ? b[m - i] : '1';
    out[most - i] = x == '1' ? y : x;
  }
  memcpy(a, out, sizeof out);
}

/* A variable, mostly one of the last, which broadcasts with `sizes`. */
static const variable *pick(program *p, const char *sizes) {
  for (int tries = 0; tries < 12; tries++) {
    const int n = p->count, recent = draw_below(&p->d, 2) && n > 4 ? 4 : n;
    const variable *v = &p->vars[n - 1 - draw_below(&p->d, recent)];
    if (broadcasts(v->sizes, sizes) || draw_below(&p->d, 40) == 0) return v;
  }
  return NULL;
}

static void result_sizes(char *sizes, char gives, int dim) {
  const size_t n = strlen(sizes);
  if (gives == '1' && n) sizes[dim] = '1';
  if (gives == '-' && n) memmove(sizes + dim, sizes + dim + 1, n - (size_t)dim);
  if (gives == 'u' && n < 6) {
    memmove(sizes + dim + 1, sizes + dim, n - (size_t)dim + 1);
    sizes[dim] = '1';
  }
  if (gives == 'x' && n > 1) {
    const char last = sizes[n - 1];
    sizes[n - 1] = sizes[n - 2];
    sizes[n - 2] = last;
  }
  if (gives == 'c' && n) sizes[n - 1] = '?';
}

/* Places of greatest elements, in `out`; false: there are none. */
static bool places(program *p, const variable *v, int dim, bool keep, kiln_var *out) {
  kiln_value *values[2] = {NULL};
  draw_must(kiln_value_int(p->context, dim, &values[0]));
  draw_must(kiln_value_bool(p->context, keep, &values[1]));
  const kiln_builder_arg args[3] = {{.var = v->var}, {.value = values[0]}, {.value = values[1]}};
  kiln_status *status = call(p, "aten::argmax", args, 3, out, 1);
  const bool good = !status;
  kiln_status_destroy(status);
  for (int i = 0; i < 2; i++) kiln_value_destroy(values[i]);
  return good;
}

/* Whether it may be written; then it will be. */
static bool write_to(program *p, const variable *v) {
  const int i = (int)(v - p->vars);
  if (v->joined || (p->outside && i >= p->outside)) return false;
  p->vars[i].written = true;
  return true;
}

/* Adds a node; false: it cannot be. */
static bool add_node(program *p) {
  const form *f = &forms[draw_below(&p->d, sizeof forms / sizeof *forms)];
  kiln_builder_arg args[6] = {{0}};
  kiln_value *values[6] = {NULL};
  variable out = {0};
  const variable *first = pick(p, "");
  int dim = 0, count = 0;
  bool good = first;
  if (first) memcpy(out.sizes, first->sizes, sizeof out.sizes);
  if (first && (strlen(first->sizes) > 4 || (writes(f) && !write_to(p, first)))) good = false;
  out.joined = first && first->joined;
  for (const char *take = f->takes; good && *take && *take != '2'; take++, count++) {
    kiln_builder_arg *g = &args[count];
    if (*take == 's') {
      g->var = first->var;
    } else if (*take == 't' || *take == 'm' || *take == 'c') {
      const variable *v = take == f->takes && *take == 't' ? first : pick(p, out.sizes);
      good = v;
      if (!v) break;
      g->var = v->var;
      join(out.sizes, v->sizes);
      if (*take != 'c') continue;
      kiln_builder_arg test[2] = {{.var = v->var}, {.var = first->var}};
      kiln_status *status = call(p, "aten::lt.Tensor", test, 2, &g->var, 1);
      good = !status;
      kiln_status_destroy(status);
    } else if (*take == 'M') {
      kiln_builder_arg items[3] = {{.var = first->var}, {.var = first->var}, {.var = first->var}};
      for (int tries = 0, i = 1; tries < 16 && i < 3; tries++) {
        const variable *v = pick(p, first->sizes);
        if (v && strcmp(v->sizes, first->sizes) == 0) items[i++].var = v->var;
      }
      draw_must(call(p, "prim::ListConstruct", items, 2 + draw_below(&p->d, 2), &g->var, 1));
    } else if (*take == 'g' || *take == 'h') {
      const variable *v = *take == 'g' ? first : pick(p, "");
      good = v && (*take == 'g' || strlen(first->sizes) == 2) &&
             places(p, v, *take == 'g' ? dim : -1, *take == 'g', &g->var);
    } else if (*take == 'L') {
      kiln_builder_arg items[2] = {{.var = first->var}, {.var = pick(p, "")->var}};
      draw_must(call(p, "prim::ListConstruct", items, 2, &g->var, 1));
    } else {
      g->value = values[count] = number(p, *take, first);
      if (*take == 'd') dim = (int)kiln_value_as_int(g->value);
      if (*take == 'D') {
        kiln_value *item = NULL;
        draw_must(kiln_value_item(g->value, 0, &item));
        dim = (int)kiln_value_as_int(item);
        kiln_value_destroy(item);
      }
    }
  }
  kiln_status *status = NULL;
  kiln_var results[2] = {0};
  if (good) status = call(p, f->op, args, count, results, strchr(f->takes, '2') ? 2 : 1);
  out.var = results[0];
  if (good && !status && strcmp(kiln_builder_type(p->b, out.var), "Tensor[]") == 0) {
    kiln_value *zero = NULL;
    draw_must(kiln_value_int(p->context, 0, &zero));
    const kiln_builder_arg item[2] = {{.var = out.var}, {.value = zero}};
    status = call(p, "aten::__getitem__.t", item, 2, &out.var, 1);
    kiln_value_destroy(zero);
  }
  good = good && !status;
  kiln_status_destroy(status);
  for (int i = 0; i < 6; i++) kiln_value_destroy(values[i]);
  if (!good || p->count == MAX_VARS) return false;
  result_sizes(out.sizes, f->gives, dim);
  p->vars[p->count++] = out;
  return true;
}

/* A node that gives one value; false: it cannot be. */
static bool add_call(program *p, const char *op, const kiln_builder_arg *args, int count,
                     kiln_var *out) {
  kiln_status *status = call(p, op, args, count, out, 1);
  const bool good = !status;
  kiln_status_destroy(status);
  return good;
}

/* -- Any operator that becomes loop IR -- */

static draw_ops ops;
int program_faults;

int program_op_count(void) { return ops.count; }

/* It becomes loops, or what an in-place operator is with a copy of its own does. */
static bool is_wanted(const kiln_registry *registry, const kiln_op *op) {
  const uint32_t never = KILN_OP_SIDE_EFFECT | KILN_OP_NONDETERMINISTIC | KILN_OP_UNINITIALISED;
  const char *name = op->kernel.name;
  const size_t len = strcspn(name, ".");
  char copy[128];
  if (op->flags & never || op->stats.mean || strncmp(name, "aten::", 6) != 0 ||
      strstr(name, ".out"))
    return false;
  if (kiln_codegen_has_lowering(op)) return true;
  if (len == 0 || name[len - 1] != '_') return false;
  snprintf(copy, sizeof copy, "kiln%s", strstr(name, "::"));
  return kiln_codegen_has_lowering(kiln_registry_find_exact(registry, kiln_str_from(copy)));
}

/* Whether it says that a result may be an argument's memory. */
static bool may_share(const draw_op *op) {
  return op->op->flags & KILN_OP_MAY_RETURN_ARG || strstr(op->schema, "(a");
}

void program_open(void) {
  kiln_options *options = NULL;
  draw_must(kiln_options_create(&options));
  kiln_options_ignore_environment(options);
  draw_must(kiln_options_set(options, "memory_limit", "67108864"));
  draw_must(kiln_context_create(options, &sampler));
  kiln_options_destroy(options);
  kiln_context_set_log(sampler, NULL, NULL);
  ops = draw_ops_of(sampler, is_wanted);
}

void program_close(void) {
  draw_ops_free(&ops);
  kiln_context_release(sampler);
}

/* Arguments by the schema, in `wanted`; how many, -1: one of them cannot be drawn. `out` gets what
 * the first tensor is, and whether a result of a branch or loop is among them. */
static int draw_args(program *p, const draw_op *op, draw_arg *wanted, kiln_builder_arg *args,
                     kiln_value **values, variable *out) {
  const int count = draw_schema(op->schema, wanted, MAX_ARGS);
  bool any = false;
  for (int i = 0; i < count; i++) {
    const draw_arg *w = &wanted[i];
    if (w->keyword) args[i].name = w->name;
    if (draw_is_tensor(w) && (w->type[6] != '?' || draw_below(&p->d, 2))) {
      const variable *v = pick(p, out->sizes);
      if (!v || (w->written && !write_to(p, v))) return -1;
      if (!any) memcpy(out->sizes, v->sizes, sizeof out->sizes);
      any = true;
      out->joined |= v->joined;
      args[i].var = v->var;
    } else if (draw_is_tensor_list(w)) {
      const variable *a = pick(p, out->sizes), *b = pick(p, out->sizes);
      if (!a || !b ||
          !add_call(p, "prim::ListConstruct",
                    (kiln_builder_arg[]){{.var = a->var}, {.var = b->var}}, 2, &args[i].var))
        return -1;
      out->joined |= a->joined || b->joined;
    } else {
      args[i].value = values[i] = draw_value(sampler, w, &p->d);
      if (!values[i] && w->type[strlen(w->type) - 1] != '?') return -1;
    }
  }
  return any ? count : -1;
}

/* Letters for the sizes of a result. False: it is no tensor, too large, or mostly no numbers. */
static bool describe(const kiln_value *v, const program *p, const variable *first, variable *out) {
  const kiln_builder_arg arg = {.var = first->var};
  const kiln_value *like = sample_of(p, &arg);
  if (kiln_value_kind(v) != KILN_KIND_TENSOR || kiln_value_rank(v) > 4) return false;
  const int rank = kiln_value_rank(v);
  int64_t numel = 1;
  const bool same = like && kiln_value_rank(like) == rank && (int)strlen(first->sizes) == rank;
  memset(out->sizes, 0, sizeof out->sizes);
  for (int k = 0; k < rank; k++) {
    const int64_t size = kiln_value_sizes(v)[k];
    numel *= size;
    out->sizes[k] = same && kiln_value_sizes(like)[k] == size ? first->sizes[k] : '?';
    if (out->sizes[k] == '?' && size == 1) out->sizes[k] = '1';
  }
  if (numel > 20000) return false;
  if (kiln_value_dtype(v) != KILN_DTYPE_F32 || numel == 0) return true;
  float *data = malloc((size_t)numel * sizeof *data);
  int64_t numbers = 0;
  if (!data) exit(2);
  draw_must(kiln_value_copy_data(v, data, (size_t)numel * sizeof *data));
  for (int64_t i = 0; i < numel; i++) numbers += data[i] - data[i] == 0;
  free(data);
  return 2 * numbers >= numel;
}

/* Alias analysis goes by what an operator says: one that gives an argument's memory without saying
 * so would be written by whoever writes the result. */
static void look_at_memory(const program *p, const draw_op *op, const kiln_builder_arg *args,
                           int count, const kiln_value *result) {
  for (int i = 0; i < count && !may_share(op); i++) {
    const kiln_value *v = sample_of(p, &args[i]);
    if (!v || kiln_value_kind(v) != KILN_KIND_TENSOR ||
        kiln_value_kind(result) != KILN_KIND_TENSOR || !kiln_value_data(v) ||
        kiln_value_data(v) != kiln_value_data(result))
      continue;
    printf("SHARES %s gives its argument %d\n", op->name, i + 1);
    program_faults++;
  }
}

/* Whether the call stays, for the samples; what it gives is `values` then. */
static bool choose(program *p, const draw_op *op, const kiln_builder_arg *args, int count,
                   kiln_value **values, variable *out) {
  const bool in_place = op->name[strcspn(op->name, ".") - 1] == '_';
  variable first = *out;
  for (int i = 0; i < count && !first.var; i++) first.var = args[i].var;
  const int results = call_samples(p, op->name, args, count, values, MAX_RESULTS);
  if (results > 0) look_at_memory(p, op, args, count, values[0]);
  const bool good = results > 0 && describe(values[0], p, &first, out);
  return good || (results > 0 && in_place); /* it has written */
}

static bool add_any(program *p) {
  const draw_op *op = &ops.all[draw_below(&p->d, ops.count)];
  draw_arg wanted[MAX_ARGS]; /* whose names the arguments have */
  kiln_builder_arg args[MAX_ARGS] = {{0}};
  kiln_value *values[MAX_ARGS] = {NULL}, *samples[MAX_RESULTS] = {NULL};
  kiln_var results[MAX_RESULTS] = {0};
  variable out = {0};
  const int count = p->count == MAX_VARS ? -1 : draw_args(p, op, wanted, args, values, &out);
  bool stay = false;
  if (count >= 0 && p->choice < MAX_CHOICES) {
    choice *c = &p->choices->all[p->choice++];
    if (!p->chosen) {
      stay = choose(p, op, args, count, samples, &out);
      *c = (choice){stay, out};
    }
    stay = c->stay;
    out = c->out;
  }
  if (stay) {
    int result_count = 0;
    kiln_status *status =
        kiln_builder_call(p->b, op->name, args, count, results, MAX_RESULTS, &result_count);
    stay =
        !status && result_count > 0 && strcmp(kiln_builder_type(p->b, results[0]), "Tensor") == 0;
    kiln_status_destroy(status);
  }
  out.var = results[0];
  if (stay) p->vars[p->count++] = out;
  if (stay) set_sample(p, out.var, samples[0]);
  for (int i = stay; i < MAX_RESULTS; i++) kiln_value_destroy(samples[i]);
  for (int i = 0; i < MAX_ARGS; i++) kiln_value_destroy(values[i]);
  return stay;
}

/* -- Views by sizes -- */

static kiln_builder_arg int_arg(program *p, int64_t number, kiln_value **keep) {
  draw_must(kiln_value_int(p->context, number, keep));
  return (kiln_builder_arg){.value = *keep};
}

/* x.size(k), of a variable whose letter for it is `letter`; false: none has it. */
static bool add_size(program *p, char letter, kiln_builder_arg *out) {
  kiln_value *at = NULL;
  const variable *v = NULL;
  for (int tries = 0; tries < 8 && !v; tries++) {
    v = &p->vars[draw_below(&p->d, p->count)];
    if (!strchr(v->sizes, letter)) v = NULL;
  }
  if (!v) return false;
  kiln_builder_arg args[2] = {{.var = v->var}};
  args[1] = int_arg(p, strchr(v->sizes, letter) - v->sizes, &at);
  const bool good = add_call(p, "aten::size.int", args, 2, &out->var);
  kiln_value_destroy(at);
  return good;
}

/* x as sizes that others tell: two of its dimensions as one, (a * b), or one as two, (2, a / 2), or
 * the last one as -1; or expanded to what it is. */
static bool add_view(program *p) {
  const variable *x = pick(p, "");
  const int rank = x ? (int)strlen(x->sizes) : 0, kind = draw_below(&p->d, 4);
  kiln_value *two = NULL, *open = NULL;
  variable out = {0};
  if (rank < 1 || rank > 3 || p->count == MAX_VARS || (kind == 1 && rank < 2)) return false;
  out.joined = x->joined;
  kiln_builder_arg sizes[5] = {{0}}, args[2] = {{.var = x->var}};
  const kiln_builder_arg by = int_arg(p, 2, &two), rest = int_arg(p, -1, &open);
  bool good = true;
  int count = 0;
  for (int k = 0; k < rank && good; k++, count++) {
    good = x->sizes[k] != '?' && add_size(p, x->sizes[k], &sizes[count]);
    out.sizes[count] = x->sizes[k];
    if (!good || k + 1 < rank) continue;
    const kiln_builder_arg halved[2] = {sizes[count], by};
    const kiln_builder_arg product[2] = {sizes[count - (kind == 1)], sizes[count]};
    if (kind == 0) sizes[count] = rest;
    if (kind == 1) {
      good = add_call(p, "aten::mul.int", product, 2, &sizes[--count].var);
      out.sizes[count] = '?';
      out.sizes[count + 1] = 0;
    }
    if (kind == 2) {
      good = add_call(p, "aten::floordiv.int", halved, 2, &sizes[count + 1].var);
      sizes[count++] = by;
      out.sizes[count - 1] = out.sizes[count] = '?';
    }
  }
  good = good && add_call(p, "prim::ListConstruct", sizes, count, &args[1].var) &&
         add_call(p,
                  kind == 3              ? "aten::expand"
                  : draw_below(&p->d, 2) ? "aten::view"
                                         : "aten::reshape",
                  args, 2, &out.var);
  kiln_value_destroy(two);
  kiln_value_destroy(open);
  if (good) p->vars[p->count++] = out;
  return good;
}

/* -- Branches and loops -- */

static void add_step(program *p, int depth);

/* x.size(k) > 2, or whether any element of a variable is above a number: nothing that raises, or
 * that depends on the order of reading. */
static bool add_condition(program *p, kiln_var *out) {
  kiln_value *bound = NULL;
  kiln_builder_arg args[2] = {{0}};
  const variable *v = pick(p, "");
  bool good = v;
  if (draw_below(&p->d, 2)) {
    args[1] = int_arg(p, 2, &bound);
    good = good && add_size(p, "abc"[draw_below(&p->d, 3)], &args[0]) &&
           add_call(p, "aten::gt.int", args, 2, out);
  } else {
    args[0].var = v ? v->var : 0;
    args[1] = int_arg(p, draw_below(&p->d, 3) - 1, &bound);
    good = good && add_call(p, "aten::gt.Scalar", args, 2, &args[0].var) &&
           add_call(p, "aten::any", args, 1, &args[0].var) &&
           add_call(p, "aten::Bool.Tensor", args, 1, out);
  }
  kiln_value_destroy(bound);
  return good;
}

/* What comes of a few steps that nobody else sees. */
static variable add_inside(program *p, int depth) {
  const int before = p->count, outside = p->outside;
  if (!outside) p->outside = before;
  for (int i = 1 + draw_below(&p->d, 3); i > 0; i--) add_step(p, depth + 1);
  const variable last = p->vars[p->count - 1];
  p->count = before;
  p->outside = outside;
  return last;
}

static void add_branch(program *p, int depth) {
  kiln_var condition;
  if (p->count == MAX_VARS || !add_condition(p, &condition)) return;
  draw_must(kiln_builder_if(p->b, condition));
  variable one = add_inside(p, depth);
  draw_must(kiln_builder_else(p->b, &one.var, 1));
  const variable other = add_inside(p, depth);
  draw_must(kiln_builder_end_if(p->b, &other.var, 1, &one.var));
  share_sample(p, one.var, other.var);
  if (strcmp(one.sizes, other.sizes) != 0) result_sizes(one.sizes, 'c', 0);
  one.joined = true;
  p->vars[p->count++] = one;
}

/* Rounds of what a variable becomes; as many as a dimension has, or three at most. */
static void add_loop(program *p, int depth) {
  const variable *first = pick(p, "");
  if (!first || p->count >= MAX_VARS - 1) return;
  kiln_value *rounds = NULL;
  kiln_builder_arg trip = {0};
  variable x = *first;
  if (draw_below(&p->d, 2) == 0 || !add_size(p, "ab"[draw_below(&p->d, 2)], &trip)) {
    draw_must(kiln_value_int(p->context, draw_below(&p->d, 4), &rounds));
    draw_must(kiln_builder_constant(p->b, rounds, &trip.var));
    kiln_value_destroy(rounds);
  }
  draw_must(kiln_builder_loop(p->b, trip.var, 0, &first->var, 1, NULL, &x.var));
  share_sample(p, x.var, first->var);
  x.joined = true;
  p->vars[p->count++] = x;
  variable next = add_inside(p, depth);
  p->count--;
  /* What may grow must not grow often. */
  if (!rounds && (strcmp(next.sizes, x.sizes) != 0 || strchr(x.sizes, '?'))) next = x;
  draw_must(kiln_builder_end_loop(p->b, 0, &next.var, 1, &x.var));
  share_sample(p, x.var, next.var);
  if (strcmp(next.sizes, x.sizes) != 0) result_sizes(x.sizes, 'c', 0);
  p->vars[p->count++] = x;
}

static void add_step(program *p, int depth) {
  const int kind = draw_below(&p->d, 16);
  if (kind == 0 && depth < 2) {
    add_branch(p, depth);
  } else if (kind == 1 && depth < 2) {
    add_loop(p, depth);
  } else if (kind < 4) {
    (void)add_view(p);
  } else if (kind < 10) {
    for (int tries = 0; tries < 8 && !add_any(p); tries++) {
    }
  } else {
    (void)add_node(p);
  }
}

static void draw_samples(program *p, uint64_t seed) {
  draw d;
  int64_t abc[3];
  program_draw_call(seed, 0, &d, abc);
  for (int i = 0; i < INPUTS; i++)
    set_sample(p, p->vars[i].var, program_input(sampler, &d, i, abc));
}

bool program_build(program *p, uint64_t seed, bool print) {
  p->d = draw_from(seed, 0x57);
  draw_must(kiln_builder_create(p->context, &p->b));
  for (int i = 0; i < INPUTS; i++) {
    char name[8];
    snprintf(name, sizeof name, "x%d", i);
    draw_must(kiln_builder_input(p->b, name, "Tensor", &p->vars[i].var));
    strcpy(p->vars[i].sizes, program_inputs[i]);
  }
  p->count = INPUTS;
  if (!p->chosen) draw_samples(p, seed);
  const int nodes = 2 + draw_below(&p->d, MAX_NODES - 2);
  for (int i = 0; i < nodes; i++) add_step(p, 0);
  kiln_var results[MAX_VARS];
  int count = 0;
  for (int i = p->count - 1; i >= INPUTS; i--) {
    const bool drawn = count < 4 && (count == 0 || draw_below(&p->d, 3) == 0);
    if (drawn || p->vars[i].written) results[count++] = p->vars[i].var;
  }
  kiln_status *status = count > 0 ? kiln_builder_return(p->b, results, count) : NULL;
  if (print && count > 0) {
    char *text = NULL;
    draw_must(kiln_builder_print(p->b, 3, &text));
    printf("%s", text);
    kiln_text_free(text);
  }
  if (count > 0 && !status) status = kiln_builder_finish(p->b, &p->model);
  kiln_builder_destroy(p->b);
  draw_must(status);
  if (count > 0) draw_must(kiln_instance_create(p->model, &p->instance));
  return count > 0;
}

void program_destroy(program *p) {
  kiln_instance_release(p->instance);
  kiln_model_release(p->model);
  for (int i = 0; i < MAX_SAMPLES; i++) kiln_value_destroy(p->samples[i]);
}
