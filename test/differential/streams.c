/* streams.c: random programs over streams of shapes: the JIT, at every level of every strategy,
 * gives what the plain interpreter gives, to the bit, through views, in-place operators, branches
 * and loops.
 *
 *   streams [--rounds N] [--seed N] [--no-llvm]
 *   streams --case SEED [--print]
 *
 * A case is a program and a stream of calls of it. The program has nodes of the table below on
 * inputs [a, b], [b], [a, 1], [c, a, b] and [a, a]; a call draws a, b and c, most of them small, so
 * that sizes are equal, or 1, by accident, and seldom a dtype or strides of another order. Errors
 * must come of the same calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "kiln/debug.h"
#include "kiln/kiln_graph.h"
#include "test/differential/answer.h"
#include "test/differential/draw.h"

enum { MAX_NODES = 14, MAX_VARS = 48, INPUTS = 5, CALLS = 14, MAX_REPORTS = 50 };

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
  for (int i = 0; modes[mode].options[i][0]; i++) {
    draw_must(kiln_options_set(options, modes[mode].options[i][0], modes[mode].options[i][1]));
  }
  draw_must(kiln_context_create(options, &out));
  kiln_options_destroy(options);
  kiln_context_set_log(out, NULL, NULL);
  kiln_mem_set_fill(out->env->mem, mode % 2 ? 0xff : 0x41);
  return out;
}

/* -- Programs -- */

/* Sizes of a variable, as letters: "ab", "b", "a1". */
typedef struct variable {
  kiln_var var;
  char sizes[8];
  /* It may be a branch's or loop's result. Such are not written: where the interpreter cannot tell
   * that nobody reads it then, it computes, and complains of, what the JIT leaves out. */
  bool joined;
} variable;

typedef struct program {
  draw d;
  kiln_context *context;
  kiln_builder *b;
  variable vars[MAX_VARS];
  int count;
  kiln_model *model;
  kiln_instance *instance;
} program;

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
    {"aten::slice.Tensor", "td+ni", 'c'},
    {"aten::select.int", "tdz", '-'},
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
  kiln_status *status = kiln_builder_call(p->b, "aten::argmax", args, 3, out, 1, NULL);
  const bool good = !status;
  kiln_status_destroy(status);
  for (int i = 0; i < 2; i++) kiln_value_destroy(values[i]);
  return good;
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
  if (first && (strlen(first->sizes) > 4 || (first->joined && writes(f)))) good = false;
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
      kiln_status *status = kiln_builder_call(p->b, "aten::lt.Tensor", test, 2, &g->var, 1, NULL);
      good = !status;
      kiln_status_destroy(status);
    } else if (*take == 'M') {
      kiln_builder_arg items[3] = {{.var = first->var}, {.var = first->var}, {.var = first->var}};
      for (int tries = 0, i = 1; tries < 16 && i < 3; tries++) {
        const variable *v = pick(p, first->sizes);
        if (v && strcmp(v->sizes, first->sizes) == 0) items[i++].var = v->var;
      }
      draw_must(kiln_builder_call(p->b, "prim::ListConstruct", items, 2 + draw_below(&p->d, 2),
                                  &g->var, 1, NULL));
    } else if (*take == 'g' || *take == 'h') {
      const variable *v = *take == 'g' ? first : pick(p, "");
      good = v && (*take == 'g' || strlen(first->sizes) == 2) &&
             places(p, v, *take == 'g' ? dim : -1, *take == 'g', &g->var);
    } else if (*take == 'L') {
      kiln_builder_arg items[2] = {{.var = first->var}, {.var = pick(p, "")->var}};
      draw_must(kiln_builder_call(p->b, "prim::ListConstruct", items, 2, &g->var, 1, NULL));
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
  if (good)
    status =
        kiln_builder_call(p->b, f->op, args, count, results, strchr(f->takes, '2') ? 2 : 1, NULL);
  out.var = results[0];
  if (good && !status && strcmp(kiln_builder_type(p->b, out.var), "Tensor[]") == 0) {
    kiln_value *zero = NULL;
    draw_must(kiln_value_int(p->context, 0, &zero));
    const kiln_builder_arg item[2] = {{.var = out.var}, {.value = zero}};
    status = kiln_builder_call(p->b, "aten::__getitem__.t", item, 2, &out.var, 1, NULL);
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

/* -- Views by sizes -- */

/* A node that gives one value; false: it cannot be. */
static bool add_call(program *p, const char *op, const kiln_builder_arg *args, int count,
                     kiln_var *out) {
  kiln_status *status = kiln_builder_call(p->b, op, args, count, out, 1, NULL);
  const bool good = !status;
  kiln_status_destroy(status);
  return good;
}

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
  const int before = p->count;
  for (int i = 1 + draw_below(&p->d, 3); i > 0; i--) add_step(p, depth + 1);
  const variable last = p->vars[p->count - 1];
  p->count = before;
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
  x.joined = true;
  p->vars[p->count++] = x;
  variable next = add_inside(p, depth);
  p->count--;
  /* What may grow must not grow often. */
  if (!rounds && (strcmp(next.sizes, x.sizes) != 0 || strchr(x.sizes, '?'))) next = x;
  draw_must(kiln_builder_end_loop(p->b, 0, &next.var, 1, &x.var));
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
  } else {
    (void)add_node(p);
  }
}

static const char *const input_sizes[INPUTS] = {"ab", "b", "a1", "cab", "aa"};

static bool build(program *p, uint64_t seed, bool print) {
  p->d = draw_from(seed, 0x57);
  draw_must(kiln_builder_create(p->context, &p->b));
  for (int i = 0; i < INPUTS; i++) {
    char name[8];
    snprintf(name, sizeof name, "x%d", i);
    draw_must(kiln_builder_input(p->b, name, "Tensor", &p->vars[i].var));
    strcpy(p->vars[i].sizes, input_sizes[i]);
  }
  p->count = INPUTS;
  const int nodes = 2 + draw_below(&p->d, MAX_NODES - 2);
  for (int i = 0; i < nodes; i++) add_step(p, 0);
  kiln_var results[4];
  int count = 0;
  for (int i = p->count - 1; i >= INPUTS && count < 4; i--) {
    if (count == 0 || draw_below(&p->d, 3) == 0) results[count++] = p->vars[i].var;
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

/* -- Calls -- */

static int64_t draw_size(draw *d) {
  static const int64_t sizes[] = {1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 0};
  return sizes[draw_below(d, draw_below(d, 6) ? 13 : (int)(sizeof sizes / sizeof *sizes))];
}

static void fill(draw *d, kiln_dtype dtype, int64_t count, void *data) {
  for (int64_t i = 0; i < count; i++) {
    const double f = (draw_below(d, 4001) - 2000) * 1e-3;
    if (dtype == KILN_DTYPE_F32) ((float *)data)[i] = (float)f;
    if (dtype == KILN_DTYPE_F64) ((double *)data)[i] = f;
    if (dtype == KILN_DTYPE_I64) ((int64_t *)data)[i] = (int64_t)(10 * f);
  }
}

/* Input `i` of the call whose sizes are a, b, c. */
static kiln_value *make_input(kiln_context *context, draw *d, int i, const int64_t *abc) {
  static const kiln_dtype odd[] = {KILN_DTYPE_F64, KILN_DTYPE_I64};
  const kiln_dtype dtype = draw_below(d, 30) ? KILN_DTYPE_F32 : odd[draw_below(d, 2)];
  const char *letters = input_sizes[i];
  int64_t sizes[4], strides[4], numel = 1;
  const int rank = (int)strlen(letters), kind = draw_below(d, 12);
  for (int k = 0; k < rank; k++) sizes[k] = letters[k] == '1' ? 1 : abc[letters[k] - 'a'];
  if (draw_below(d, 60) == 0) sizes[draw_below(d, rank)] = 1;
  for (int n = 0; n < rank; n++) { /* row-major, or the other way round */
    const int k = kind == 0 ? n : rank - 1 - n;
    strides[k] = numel * (kind == 1 ? 2 : 1);
    numel *= sizes[k];
  }
  kiln_value *out = NULL;
  const size_t bytes = (size_t)(numel * 2 + 1) * kiln_dtype_size(dtype);
  void *data = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!data) exit(2);
  fill(d, dtype, numel * 2, data);
  draw_must(
      kiln_value_tensor_over(context, dtype, rank, sizes, strides, data, bytes, free, data, &out));
  return out;
}

static void call(const program *p, uint64_t seed, int index, answer *a) {
  kiln_value *inputs[INPUTS], *result = NULL;
  draw d = draw_from(seed, 0xca11 + (uint64_t)(index < 2 ? 0 : index));
  int64_t abc[3];
  for (int i = 0; i < 3; i++) abc[i] = draw_size(&d);
  *a = (answer){0};
  for (int i = 0; i < INPUTS; i++) {
    inputs[i] = make_input(p->context, &d, i, abc);
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
  int cases, calls, succeeded, found;
  uint64_t compiled_runs, variants;
} counted;

/* Of two nodes that both fail either may be told: fusion moves them. */
static bool is_same(const answer *want, const answer *got) {
  return strcmp(want->text, got->text) == 0 ||
         (want->code == KILN_OP_ERROR && got->code == KILN_OP_ERROR);
}

static void tell_failures(kiln_model *model) {
  kiln_debug_refusal_info r;
  kiln_status *status;
  for (int i = 0; !(status = kiln_debug_refusal(model, i, &r)); i++)
    if (strcmp(r.reason, "check_failed") == 0 || strstr(r.detail, "Group"))
      printf("  %s: %s\n", r.detail, r.sentence);
  kiln_status_destroy(status);
}

static void run_mode(uint64_t seed, int mode, bool print, answer *wants) {
  static answer got;
  program p = {.context = contexts[mode]};
  if (!build(&p, seed, print && mode == 0)) return;
  for (int i = 0; i < CALLS; i++) {
    answer *a = mode == 0 ? &wants[i] : &got;
    call(&p, seed, i, a);
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
  if (counters.compile_failures > 0 && counted.found++ < MAX_REPORTS) {
    printf("FAILS --case %llu: %s, %llu compilations\n", (unsigned long long)seed, modes[mode].name,
           (unsigned long long)counters.compile_failures);
    tell_failures(p.model);
  }
  counted.compiled_runs += counters.compiled_runs;
  counted.variants += counters.compiles;
  kiln_instance_release(p.instance);
  kiln_model_release(p.model);
}

static void run_case(uint64_t seed, bool print, bool no_llvm) {
  static answer wants[CALLS];
  counted.cases++;
  for (int mode = 0; mode < MODES; mode++) {
    if (!modes[mode].llvm || !no_llvm) run_mode(seed, mode, print, wants);
  }
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
  for (int i = 0; i < rounds && !one; i++) run_case(draw_from(seed, (uint64_t)i).state, 0, no_llvm);
  if (one) run_case(seed, print, no_llvm);
  for (int i = 0; i < MODES; i++) kiln_context_release(contexts[i]);
  printf("seed %llu: %d streams, %d of %d calls with results, %llu groups compiled, %llu compiled "
         "runs\n",
         (unsigned long long)seed, counted.cases, counted.succeeded, counted.calls,
         (unsigned long long)counted.variants, (unsigned long long)counted.compiled_runs);
  printf("%d passed, %d failed\n", counted.cases - counted.found, counted.found);
  /* Streams that mostly fail, or in which nothing is compiled, test nothing. */
  return counted.found > 0 || (!one && (counted.succeeded < counted.calls / 2 ||
                                        counted.compiled_runs < (uint64_t)counted.calls));
}
