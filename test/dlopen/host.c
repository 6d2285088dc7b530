/* host.c: a program that knows libkiln.so only through dlopen, as a plugin host does.
 *
 *   host LIBRARY CASE twice|thread|beside LIBRARY...
 *
 * twice: load, use, unload, and again. thread: load in one thread, use in several, unload while
 * threads that used it live. beside: the named libraries are loaded first, as the host's own.
 * "Use" is a context and a tensor; and the model of CASE (a folder of test/data), called until it
 * runs compiled, with results compared. */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"

/* The functions that are used: a struct of pointers, filled by dlsym. */
#define FUNCTIONS(X)  \
  X(version)          \
  X(status_report)    \
  X(status_destroy)   \
  X(context_create)   \
  X(context_release)  \
  X(model_load)       \
  X(model_release)    \
  X(model_counters)   \
  X(model_wait_idle)  \
  X(instance_create)  \
  X(instance_release) \
  X(instance_call)    \
  X(value_read)       \
  X(value_count)      \
  X(value_item)       \
  X(value_kind)       \
  X(value_rank)       \
  X(value_sizes)      \
  X(value_copy_data)  \
  X(value_tensor)     \
  X(value_dtype)      \
  X(value_destroy)
typedef struct api {
  void *handle;
#define POINTER(name) __typeof__(&kiln_##name) name;
  FUNCTIONS(POINTER)
#undef POINTER
} api;

static const char *library, *case_folder;

static void die(const char *what, const char *why) {
  fprintf(stderr, "host: %s: %s\n", what, why ? why : "?");
  exit(1);
}

static void check(const api *k, kiln_status *status, const char *what) {
  if (status) die(what, k->status_report(status));
}

static api load(void) {
  api k = {0};
  k.handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!k.handle) die("dlopen", dlerror());
#define LOOK_UP(name)                                      \
  *(void **)&k.name = dlsym(k.handle, "kiln_" #name);      \
  if (!k.name) {                                           \
    fprintf(stderr, "host: there is no kiln_" #name "\n"); \
    exit(1);                                               \
  }
  FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  return k;
}

/* -- Using it -- */

enum { MOST_ARGUMENTS = 16 };

static int64_t element_count(const api *k, const kiln_value *tensor) {
  int64_t count = 1;
  for (int i = 0; i < k->value_rank(tensor); i++) count *= k->value_sizes(tensor)[i];
  return count;
}

/* Tensors of f32, in tuples and lists, within 1e-4. */
static void compare(const api *k, const kiln_value *got, const kiln_value *want) {
  if (k->value_kind(got) != k->value_kind(want)) die("compare", "another kind");
  if (k->value_kind(got) != KILN_KIND_TENSOR) {
    int count = k->value_count(want);
    if (k->value_count(got) != count || count == 0) die("compare", "another number of items");
    for (int i = 0; i < count; i++) {
      kiln_value *a = NULL, *b = NULL;
      check(k, k->value_item(got, i, &a), "item");
      check(k, k->value_item(want, i, &b), "item");
      compare(k, a, b);
      k->value_destroy(a);
      k->value_destroy(b);
    }
    return;
  }
  int64_t count = element_count(k, want);
  if (k->value_dtype(got) != KILN_DTYPE_F32 || element_count(k, got) != count)
    die("compare", "another tensor");
  size_t size = (size_t)count * sizeof(float);
  float *x = malloc(size), *y = malloc(size);
  if (!x || !y) die("malloc", "no memory");
  check(k, k->value_copy_data(got, x, size), "copy");
  check(k, k->value_copy_data(want, y, size), "copy");
  for (int64_t i = 0; i < count; i++) {
    if (!(fabsf(x[i] - y[i]) <= 1e-4f + 1e-4f * fabsf(y[i]))) die("compare", "results differ");
  }
  free(x);
  free(y);
}

static kiln_value *read_value(const api *k, kiln_context *context, const char *name) {
  char path[4096];
  kiln_value *value = NULL;
  snprintf(path, sizeof path, "%s/%s", case_folder, name);
  check(k, k->value_read(context, path, &value), path);
  return value;
}

static void call_model(const api *k, kiln_context *context) {
  char path[4096];
  snprintf(path, sizeof path, "%s/model.pt", case_folder);
  kiln_model *model = NULL;
  kiln_instance *instance = NULL;
  check(k, k->model_load(context, path, NULL, &model), "load");
  check(k, k->instance_create(model, &instance), "instance");
  kiln_value *inputs = read_value(k, context, "inputs_0.pt");
  kiln_value *expected = read_value(k, context, "expected_0.pt");
  kiln_value *arguments[MOST_ARGUMENTS];
  int count = k->value_count(inputs);
  for (int i = 0; i < count && i < MOST_ARGUMENTS; i++)
    check(k, k->value_item(inputs, i, &arguments[i]), "argument");
  for (int call = 0; call < 6; call++) {
    kiln_value *result = NULL;
    check(k, k->instance_call(instance, "forward", arguments, count, NULL, &result), "call");
    compare(k, result, expected);
    k->value_destroy(result);
    check(k, k->model_wait_idle(model, NULL), "wait"); /* for what it has asked for */
  }
  kiln_counters counters;
  k->model_counters(model, &counters);
  if (counters.compiled_runs == 0) die("call", "nothing ran compiled");
  for (int i = 0; i < count; i++) k->value_destroy(arguments[i]);
  k->value_destroy(inputs);
  k->value_destroy(expected);
  k->instance_release(instance);
  k->model_release(model);
}

static void use(const api *k) {
  kiln_context *context = NULL;
  kiln_value *tensor = NULL;
  int64_t sizes[2] = {300, 200};
  if (strcmp(k->version(), KILN_VERSION_STRING) != 0) die("version", k->version());
  check(k, k->context_create(NULL, &context), "context");
  check(k, k->value_tensor(context, KILN_DTYPE_F32, 2, sizes, NULL, &tensor), "tensor");
  if (element_count(k, tensor) != 60000) die("tensor", "another size");
  k->value_destroy(tensor);
  call_model(k, context);
  k->context_release(context);
}

/* -- The ways of loading -- */

static void *use_in_thread(void *arg) {
  use(arg);
  return NULL;
}

static pthread_barrier_t barrier;

/* Ends after the library was unloaded, so its thread clean-up runs then. */
static void *use_and_stay(void *arg) {
  use(arg);
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  return NULL;
}

static void *load_in_thread(void *arg) {
  api *k = arg;
  *k = load();
  use(k);
  return NULL;
}

static void run_threads(void) {
  static api k;
  pthread_t thread, stays, users[3];
  pthread_create(&thread, NULL, load_in_thread, &k);
  pthread_join(thread, NULL);
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&stays, NULL, use_and_stay, &k);
  for (int i = 0; i < 3; i++) pthread_create(&users[i], NULL, use_in_thread, &k);
  for (int i = 0; i < 3; i++) pthread_join(users[i], NULL);
  pthread_barrier_wait(&barrier);
  dlclose(k.handle);
  pthread_barrier_wait(&barrier);
  pthread_join(stays, NULL);
}

int main(int argc, char **argv) {
  if (argc < 4) die("usage", "host LIBRARY CASE twice|thread|beside [LIBRARY]...");
  library = argv[1];
  case_folder = argv[2];
  bool threads = strcmp(argv[3], "thread") == 0;
  int rounds = strcmp(argv[3], "twice") == 0 ? 2 : 1;
  for (int i = 4; i < argc; i++) {
    if (!dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL)) die("dlopen of the host's own", dlerror());
  }
  /* The host's own heap is at work all the while. */
  void *blocks[1000];
  for (size_t i = 0; i < 1000; i++) blocks[i] = malloc(i * 100);
  if (threads) {
    run_threads();
  } else {
    for (int i = 0; i < rounds; i++) {
      api k = load();
      use(&k);
      use(&k);
      dlclose(k.handle);
    }
  }
  for (size_t i = 0; i < 1000; i++) free(blocks[i]);
  return 0;
}
