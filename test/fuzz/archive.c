/* archive.c: targets that run what they load: archive (the input is the file) and program (it is
 * the source of class M of a module without weights). Everything is under kiln_limits.
 *
 * Inputs are made from the methods' signatures. What they are is said by words, one for each
 * tensor, number or string in order of the signature: "f32:2x3", "3", "2.5", "text"; the file
 * extra/inputs of the archive has them, and the source's first line after "#". Where the words end,
 * the bytes choose. Each method is called until it has been profiled, specialised, and met another
 * shape. Loads and calls meet their limits at random too: few bytes, operations or milliseconds, a
 * request for memory that fails, or the host cancels, from the model's prints, from another thread
 * or when it is looked at for the n-th time. They must end in time, with a status. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "api/internal.h"
#include "test/fuzz/fuzz.h"
#include "test/unit/frontend/archive_support.h"

enum { methods = 2, max_arguments = 16, max_depth = 6 };

static const kiln_limits load_limits = {
    .bytes = 48 << 20, .operations = 100000, .recursion = 64, .time_ms = 400};
static const kiln_limits call_limits = {
    .bytes = 48 << 20, .operations = 20000, .recursion = 64, .time_ms = 200};

static kiln_cancel *cancel;
static int prints_left; /* until the host cancels; below 0: it does not */

static void take_print(void *user, const char *text, size_t size) {
  (void)user, (void)text, (void)size;
  if (prints_left-- == 0) kiln_call_cancel(cancel);
}

static kiln_context *make_context(bool jit) {
  kiln_context *context = NULL;
  kiln_options *options = NULL;
  fuzz_must(kiln_options_create(&options));
  fuzz_must(kiln_options_set(options, "codegen", "eval"));
  fuzz_must(kiln_options_set(options, "jit", jit ? "on" : "off"));
  fuzz_must(kiln_context_create(options, &context));
  kiln_options_destroy(options);
  kiln_context_set_print(context, take_print, NULL);
  return context;
}

/* -- Values from types -- */

typedef struct maker {
  kiln_context *context;
  const char *type;         /* what is left of the type */
  const char *word, *words; /* next word, and their end */
  uint32_t random;
  int grow; /* added to the sizes of tensors */
} maker;

static uint32_t draw(maker *m, uint32_t below) {
  m->random = m->random * 1664525u + 1013904223u;
  return (m->random >> 8) % below;
}

/* The next word, terminated; "" when there is none. */
static void take_word(maker *m, char out[64]) {
  size_t n = 0;
  while (m->word < m->words && (unsigned char)*m->word <= ' ') m->word++;
  for (; m->word < m->words && (unsigned char)*m->word > ' '; m->word++) {
    if (n < 63) out[n++] = *m->word;
  }
  out[n] = 0;
}

static kiln_value *make_tensor(maker *m) {
  static const struct {
    const char *name;
    kiln_dtype dtype;
  } dtypes[] = {{"f32", KILN_DTYPE_F32}, {"i64", KILN_DTYPE_I64},   {"b", KILN_DTYPE_BOOL},
                {"f64", KILN_DTYPE_F64}, {"i32", KILN_DTYPE_I32},   {"u8", KILN_DTYPE_U8},
                {"f16", KILN_DTYPE_F16}, {"bf16", KILN_DTYPE_BF16}, {"c64", KILN_DTYPE_C64},
                {"i8", KILN_DTYPE_I8},   {"i16", KILN_DTYPE_I16},   {"c128", KILN_DTYPE_C128}};
  char word[64];
  int64_t sizes[8], count = 1;
  int rank = 0, dtype = 0;
  take_word(m, word);
  const char *p = strchr(word, ':');
  if (p) {
    for (int i = 0; i < (int)(sizeof dtypes / sizeof dtypes[0]); i++) {
      if (strlen(dtypes[i].name) == (size_t)(p - word) &&
          memcmp(dtypes[i].name, word, (size_t)(p - word)) == 0) {
        dtype = i;
      }
    }
    for (p++; *p && rank < 8; p++) {
      sizes[rank++] = strtol(p, (char **)(uintptr_t)&p, 10) & 63;
      if (*p != 'x') break;
    }
  } else {
    dtype = draw(m, 4) ? 0 : (int)draw(m, 12);
    rank = (int)draw(m, 5);
    for (int i = 0; i < rank; i++) sizes[i] = draw(m, 5);
  }
  for (int i = 0; i < rank; i++) {
    sizes[i] += m->grow;
    if (count * sizes[i] > 4096) sizes[i] = 1;
    count *= sizes[i];
  }
  size_t bytes = (size_t)count * kiln_dtype_size(dtypes[dtype].dtype);
  static union {
    unsigned char u8[4096 * 16];
    float f32[4096];
    int64_t i64[4096];
    double f64[4096];
  } data;
  for (size_t i = 0; i < bytes; i++) data.u8[i] = (unsigned char)draw(m, 2);
  for (int64_t i = 0; i < count; i++) {
    if (dtype == 0) data.f32[i] = (float)draw(m, 64) / 8 - 4;
    if (dtype == 1) data.i64[i] = (int64_t)draw(m, 8) - 2;
    if (dtype == 3) data.f64[i] = (double)draw(m, 64) / 8 - 4;
  }
  kiln_value *value = NULL;
  fuzz_must(kiln_value_tensor(m->context, dtypes[dtype].dtype, rank, sizes, data.u8, &value));
  return value;
}

static bool accept(maker *m, const char *text) {
  size_t n = strlen(text);
  while (*m->type == ' ' || *m->type == ',') m->type++;
  if (strncmp(m->type, text, n) != 0) return false;
  m->type += n;
  return true;
}

static kiln_value *make(maker *m, int depth);

static kiln_value *make_plain(maker *m, int depth) {
  static const char *const texts[] = {"", "a", "mean", "constant", "ij,jk->ik", "\xc3\xa9%d {}"};
  kiln_value *v = NULL, *items[8] = {NULL}, *keys[2] = {NULL};
  char word[64];
  int n = 0;
  if (accept(m, "Tensor")) return make_tensor(m);
  if (accept(m, "(")) {
    while (n < 8 && !accept(m, ")") && *m->type) items[n++] = make(m, depth + 1);
    fuzz_must(kiln_value_tuple(m->context, items, n, &v));
  } else if (accept(m, "Dict(")) {
    keys[0] = make(m, depth + 1);
    items[0] = make(m, depth + 1);
    n = accept(m, ")");
    fuzz_may(kiln_value_dict(m->context, keys, items, 1, &v));
    kiln_value_destroy(keys[0]);
    kiln_value_destroy(items[0]);
    n = 0;
  } else if (accept(m, "int") || accept(m, "Scalar") || accept(m, "number")) {
    take_word(m, word);
    fuzz_must(kiln_value_int(m->context, *word ? strtol(word, NULL, 10) : (int)draw(m, 5) - 1, &v));
  } else if (accept(m, "float")) {
    take_word(m, word);
    fuzz_must(kiln_value_float(m->context, *word ? strtod(word, NULL) : draw(m, 9) / 4.0 - 1, &v));
  } else if (accept(m, "bool")) {
    take_word(m, word);
    fuzz_must(kiln_value_bool(m->context, *word ? *word == 'T' : draw(m, 2) == 0, &v));
  } else if (accept(m, "complex")) {
    fuzz_must(kiln_value_complex(m->context, 0.5, (double)draw(m, 3), &v));
  } else if (accept(m, "str")) {
    take_word(m, word);
    const char *text = *word ? word : texts[draw(m, 6)];
    fuzz_must(kiln_value_string(m->context, text, strlen(text), &v));
  } else {
    while (*m->type && !strchr("[],)?", *m->type)) m->type++;
  }
  for (int i = 0; i < n; i++) kiln_value_destroy(items[i]);
  if (!v) fuzz_must(kiln_value_none(m->context, &v));
  return v;
}

/* A value of the type at m->type, which is passed over. */
static kiln_value *make(maker *m, int depth) {
  kiln_value *v = NULL;
  if (depth > max_depth) {
    fuzz_must(kiln_value_none(m->context, &v));
    m->type = "";
    return v;
  }
  const char *begin = m->type;
  v = make_plain(m, depth);
  for (;;) {
    if (*m->type == '?') {
      m->type++;
    } else if (*m->type == '[') { /* a list of them: two elements, or one again */
      const char *after = strchr(m->type, ']');
      kiln_value *items[2] = {v, NULL};
      m->type = begin;
      if (draw(m, 4)) items[1] = make_plain(m, depth);
      m->type = after ? after + 1 : "";
      kiln_value *list = NULL;
      fuzz_may(kiln_value_list(m->context, items, items[1] ? 2 : 1, &list));
      kiln_value_destroy(items[0]);
      kiln_value_destroy(items[1]);
      v = list;
      if (!v) fuzz_must(kiln_value_none(m->context, &v));
    } else {
      return v;
    }
  }
}

/* -- Limits -- */

/* What ends a load or a call before its time. */
typedef struct fate {
  kiln_limits limits;
  kiln_mem *mem;
  double begin; /* processor's seconds */
  bool threaded;
  pthread_t thread;
  long nanoseconds; /* that the thread waits */
} fate;

static double processor_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *cancel_later(void *arg) {
  const fate *f = arg;
  nanosleep(&(struct timespec){.tv_nsec = f->nanoseconds}, NULL);
  kiln_call_cancel(cancel);
  return NULL;
}

/* A power of two below 2^bits, or a number below it. */
static uint32_t draw_scale(maker *m, uint32_t bits) { return 1 + draw(m, 1u << draw(m, bits)); }

static void begin_fate(fate *f, maker *m, const kiln_limits *limits) {
  *f = (fate){.limits = *limits, .mem = m->context->env->mem};
  if (!cancel) fuzz_must(kiln_cancel_create(&cancel));
  kiln_cancel_reset(cancel);
  f->limits.cancel = cancel;
  prints_left = -1;
  switch (draw(m, 24)) {
    case 0: f->limits.bytes = draw_scale(m, 24); break;
    case 1: f->limits.operations = draw_scale(m, 12); break;
    case 2: f->limits.time_ms = draw_scale(m, 6); break;
    case 3:
    case 4: kiln_cancel_at_look(cancel, draw_scale(m, 12)); break;
    case 5: prints_left = (int)draw(m, 4); break;
    case 6: kiln_mem_fail_at(f->mem, draw_scale(m, 12)); break;
    case 7:
      f->nanoseconds = draw_scale(m, 22);
      f->threaded = pthread_create(&f->thread, NULL, cancel_later, f) == 0;
      break;
    default: break;
  }
  f->begin = processor_seconds();
}

static void end_fate(fate *f) {
  const double taken = processor_seconds() - f->begin, most = f->limits.time_ms * 1.5e-3 + 0.5;
  if (taken > 3 * most) { /* sanitizers take their time */
    fprintf(stderr, "took %.2f s with a limit of %u ms\n", taken, f->limits.time_ms);
    abort();
  }
  kiln_mem_fail_at(f->mem, 0);
  if (f->threaded) pthread_join(f->thread, NULL);
  kiln_cancel_at_look(cancel, 0);
  prints_left = -1;
}

/* -- Running -- */

static void call_method(kiln_instance *instance, kiln_model *model, const char *name, maker *m,
                        maker *fates) {
  fate f;
  kiln_value *arguments[max_arguments], *result = NULL;
  kiln_argument argument;
  int count = 0;
  for (; count < max_arguments; count++) {
    kiln_status *status = kiln_model_argument(model, name, count, &argument);
    bool more = !status;
    kiln_status_destroy(status);
    if (!more) break;
    m->type = argument.type;
    arguments[count] = make(m, 0);
  }
  begin_fate(&f, fates, &call_limits);
  kiln_call_options options = {.limits = f.limits};
  kiln_status *status = kiln_instance_call(instance, name, arguments, count, &options, &result);
  end_fate(&f);
  fuzz_may(status);
  if (result) {
    char *text = NULL;
    fuzz_must(kiln_value_print(result, 20, &text));
    kiln_text_free(text);
  }
  kiln_value_destroy(result);
  for (int i = 0; i < count; i++) kiln_value_destroy(arguments[i]);
}

static void call_methods(kiln_context *context, kiln_model *model, uint32_t seed, bool jit,
                         maker *fates) {
  kiln_instance *instance = NULL;
  kiln_status *status = kiln_instance_create(model, &instance);
  bool good = !status;
  fuzz_may(status);
  if (!good) return;
  kiln_extra inputs = {0};
  for (int i = 0;; i++) {
    status = kiln_model_extra_file(model, i, &inputs);
    good = !status && strcmp(inputs.name, "inputs") == 0;
    bool over = status != NULL;
    kiln_status_destroy(status);
    if (over) inputs.size = 0;
    if (good || over) break;
  }
  int count = kiln_model_method_count(model), calls = jit ? 4 : 2;
  for (int i = 0; i < count && i < methods; i++) {
    for (int call = 0; call < calls; call++) {
      maker m = {.context = context, .random = seed, .grow = call == calls - 1};
      m.word = inputs.size ? inputs.data : "";
      m.words = m.word + inputs.size;
      call_method(instance, model, kiln_model_method_name(model, ((int)(seed >> 4) + i) % count),
                  &m, fates);
    }
  }
  kiln_instance_release(instance);
}

void fuzz_run_archive(const uint8_t *data, size_t size) {
  static kiln_context *contexts[2];
  static int runs;
  kiln_model *model = NULL;
  uint32_t seed = 2166136261u;
  for (size_t i = 0; i < size; i++) seed = (seed ^ data[i]) * 16777619u;
  bool jit = (seed >> 2 & 3) == 0;
  if (!contexts[jit]) contexts[jit] = make_context(jit);
  kiln_context *context = contexts[jit];
  size_t before = kiln_context_bytes(context);
  fate f;
  maker fates = {.context = context, .random = ~seed};
  begin_fate(&f, &fates, &load_limits);
  kiln_status *status = kiln_model_load_memory(context, data, size, &f.limits, &model);
  end_fate(&f);
  bool good = !status;
  fuzz_may(status);
  if (good) call_methods(context, model, seed, jit, &fates);
  kiln_model_release(model);
  if (kiln_context_bytes(context) > before + (1 << 20)) abort();
  if (++runs % 1024 == 0) {
    for (int i = 0; i < 2; i++) kiln_context_release(contexts[i]);
    contexts[0] = contexts[1] = NULL;
  }
}

void fuzz_archive(const uint8_t *data, size_t size) { fuzz_run_archive(data, size); }

void fuzz_program(const uint8_t *data, size_t size) {
  static archive_builder archive;
  static const char root[] = "\x80\x02"
                             "c__torch__\nM\n)\x81}X\x08\0\0\0training\x88sb.";
  static const char constants[] = "\x80\x02).";
  const char *text = (const char *)data, *line = memchr(text, '\n', size);
  if (size > ARCHIVE_MAX / 4) return;
  size_t first = size && *text == '#' && line ? (size_t)(line - text) : 0;
  archive.size = 0;
  archive.count = 0;
  archive_add_bytes(&archive, "t/data.pkl", root, sizeof root - 1);
  archive_add_bytes(&archive, "t/code/__torch__.py", text + first, size - first);
  if (first) archive_add_bytes(&archive, "t/extra/inputs", text + 1, first - 1);
  archive_add_bytes(&archive, "t/constants.pkl", constants, sizeof constants - 1);
  archive_add(&archive, "t/version", "9\n");
  archive_finish(&archive);
  fuzz_run_archive(archive.bytes, archive.size);
}
