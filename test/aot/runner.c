/* runner.c: a program that kiln compile has made, beside the library: the same inputs, the same
 * bits.
 *
 *   runner MODEL WEIGHTS CALLS SETTING... -- INPUTS.pt...
 *
 * CALLS of each file, in turn. Linked with model.o (kiln compile --name model), libkiln-aot.a and
 * libkiln.so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"
#include "model.h"

enum { MOST = 1024 };

static void die(kiln_status *status, const char *what) {
  if (!status) return;
  printf("%s: %s\n", what, kiln_status_report(status));
  exit(kiln_status_code(status) == KILN_INVALID_ARGUMENT ? 2 : 3);
}

typedef struct leaves {
  int count;
  kiln_value *values[MOST]; /* owned */
} leaves;

/* Takes `value`. */
static void flatten(leaves *l, kiln_value *value) {
  const kiln_kind kind = kiln_value_kind(value);
  if (kind == KILN_KIND_LIST || kind == KILN_KIND_TUPLE || kind == KILN_KIND_DICT) {
    for (int i = 0; i < kiln_value_count(value); i++) {
      kiln_value *item;
      die(kiln_value_item(value, i, &item), "item");
      flatten(l, item);
    }
  } else if (kind == KILN_KIND_TENSOR || kind == KILN_KIND_INT || kind == KILN_KIND_FLOAT ||
             kind == KILN_KIND_BOOL) {
    if (l->count == MOST) exit(3);
    l->values[l->count++] = value;
    return;
  }
  kiln_value_destroy(value);
}

static size_t bytes_of(const kiln_aot_tensor *t) {
  size_t bytes = kiln_dtype_size(t->dtype);
  for (int i = 0; i < t->rank; i++) bytes *= (size_t)t->sizes[i];
  return bytes;
}

/* A copy of it, as the program takes it. */
static kiln_aot_tensor tensor_of(const kiln_value *value) {
  kiln_aot_tensor t = {.dtype = KILN_DTYPE_I64};
  const kiln_kind kind = kiln_value_kind(value);
  if (kind == KILN_KIND_TENSOR) {
    t.dtype = kiln_value_dtype(value);
    t.rank = kiln_value_rank(value);
    for (int i = 0; i < t.rank; i++) t.sizes[i] = kiln_value_sizes(value)[i];
  } else if (kind != KILN_KIND_INT) {
    t.dtype = kind == KILN_KIND_FLOAT ? KILN_DTYPE_F64 : KILN_DTYPE_BOOL;
  }
  t.bytes = bytes_of(&t);
  t.data = aligned_alloc(64, (t.bytes + 64) & ~(size_t)63);
  const int64_t i = kiln_value_as_int(value);
  const double f = kiln_value_as_float(value);
  const char b = (char)kiln_value_as_bool(value);
  if (kind == KILN_KIND_TENSOR)
    die(kiln_value_copy_data(value, t.data, t.bytes), "copy");
  else
    memcpy(t.data,
           kind == KILN_KIND_INT     ? (const void *)&i
           : kind == KILN_KIND_FLOAT ? (const void *)&f
                                     : &b,
           t.bytes);
  return t;
}

/* An argument as the program takes it: a tensor lies row by row. Takes `value`. */
static kiln_value *by_rows(kiln_context *context, kiln_value *value) {
  kiln_value *rows;
  if (kiln_value_kind(value) != KILN_KIND_TENSOR) return value;
  const kiln_aot_tensor t = tensor_of(value);
  die(kiln_value_tensor(context, t.dtype, t.rank, t.sizes, t.data, &rows), "tensor");
  free(t.data);
  kiln_value_destroy(value);
  return rows;
}

static int same(int call, const leaves *want, const kiln_aot_tensor *got) {
  for (int i = 0; i < want->count; i++) {
    kiln_aot_tensor w = tensor_of(want->values[i]);
    int fine = w.dtype == got[i].dtype && w.rank == got[i].rank &&
               memcmp(w.sizes, got[i].sizes, sizeof *w.sizes * (size_t)w.rank) == 0;
    if (!fine) printf("call %d: output %d has other sizes or another dtype\n", call, i);
    for (size_t k = 0; fine && k < w.bytes; k++) {
      if (((char *)w.data)[k] == ((char *)got[i].data)[k]) continue;
      printf("call %d: output %d differs at byte %zu of %zu\n", call, i, k, w.bytes);
      fine = 0;
    }
    free(w.data);
    if (!fine) return 0;
  }
  return 1;
}

int main(int argc, char **argv) {
  kiln_options *options;
  kiln_context *context;
  kiln_model *model;
  kiln_instance *instance;
  kiln_aot_model *program;
  int a = 4, fine = 1, call = 0;
  if (argc < 5) return 3;
  die(kiln_options_create(&options), "options");
  for (; a < argc && strcmp(argv[a], "--") != 0; a++) {
    char *equals = strchr(argv[a], '=');
    *equals = '\0';
    die(kiln_options_set(options, argv[a], equals + 1), "option");
  }
  die(kiln_context_create(options, &context), "context");
  kiln_options_destroy(options);
  die(kiln_model_load(context, argv[1], NULL, &model), "load");
  const int first = a + 1, files = argc - first, calls = atoi(argv[3]);
  kiln_value *inputs[MOST];
  for (int f = 0; f < files; f++) {
    kiln_value *arguments[MOST], *all;
    die(kiln_value_read(context, argv[first + f], &all), "inputs");
    inputs[f] = all;
    const int count = kiln_value_count(all);
    for (int i = 0; i < count; i++) {
      die(kiln_value_item(all, i, &arguments[i]), "argument");
      arguments[i] = by_rows(context, arguments[i]);
    }
    die(kiln_model_warm_up(model, "forward", arguments, count, NULL), "warm-up");
    for (int i = 0; i < count; i++) kiln_value_destroy(arguments[i]);
  }
  die(kiln_instance_create(model, &instance), "instance");
  const kiln_aot_options aot = {.threads = 1, .struct_size = sizeof aot};
  die(model_open(argv[2], &aot, &program), "open");
  for (; call < calls * files && fine; call++) {
    kiln_value *arguments[MOST], *copy, *result;
    kiln_aot_tensor in[MOST] = {0}, out[MOST] = {0};
    leaves given = {0}, want = {0};
    die(kiln_value_clone(inputs[call % files], &copy), "clone");
    const int count = kiln_value_count(copy);
    for (int i = 0; i < count; i++) {
      kiln_value *item;
      die(kiln_value_item(copy, i, &arguments[i]), "argument");
      arguments[i] = by_rows(context, arguments[i]);
      die(kiln_value_share(arguments[i], &item), "share");
      flatten(&given, item);
    }
    for (int i = 0; i < given.count; i++) in[i] = tensor_of(given.values[i]);
    die(kiln_instance_call(instance, "forward", arguments, count, NULL, &result), "call");
    flatten(&want, result);
    for (int i = 0; i < want.count; i++) out[i] = tensor_of(want.values[i]);
    for (int i = 0; i < want.count; i++) memset(out[i].data, 0x5a, out[i].bytes);
    if (given.count != MODEL_INPUTS || want.count != MODEL_OUTPUTS) {
      printf("call %d: %d inputs and %d outputs\n", call, given.count, want.count);
      return 3;
    }
    die(kiln_aot_call(program, in, given.count, out, want.count), "program");
    fine = same(call, &want, out);
    for (int i = 0; i < given.count; i++) free(in[i].data);
    for (int i = 0; i < want.count; i++) free(out[i].data);
    for (int i = 0; i < given.count; i++) kiln_value_destroy(given.values[i]);
    for (int i = 0; i < want.count; i++) kiln_value_destroy(want.values[i]);
    for (int i = 0; i < count; i++) kiln_value_destroy(arguments[i]);
    kiln_value_destroy(copy);
  }
  if (fine) printf("%d calls, %zu bytes\n", call, kiln_aot_bytes(program));
  kiln_aot_close(program);
  for (int f = 0; f < files; f++) kiln_value_destroy(inputs[f]);
  kiln_instance_release(instance);
  kiln_model_release(model);
  kiln_context_release(context);
  return fine ? 0 : 1;
}
