/* alter.c: copies a recorded case into a temporary folder and changes it there. */
#include "test/check/alter.h"

#include <cmocka.h>
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
  const char *kiln, *data;
} setup;

void alter_setup(const char *kiln, const char *data) {
  setup.kiln = kiln;
  setup.data = data;
}

static void need(kiln_status *status) {
  if (status) fail_msg("%s", kiln_status_report(status));
}

static char *text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *text(const char *fmt, ...) {
  va_list args;
  char *out = NULL;
  va_start(args, fmt);
  assert_true(vasprintf(&out, fmt, args) >= 0);
  va_end(args);
  return out;
}

static int run(char *command) {
  int status = system(command);
  free(command);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* -- The copy -- */

void alter_open(alter_case *c, const char *name) {
  const char *temporary = getenv("TMPDIR");
  c->folder = text("%s/kiln_%s_XXXXXX", temporary ? temporary : "/tmp", name);
  assert_non_null(mkdtemp(c->folder));
  assert_int_equal(run(text("cp -r '%s/own/values' '%s/case' && chmod -R u+w '%s'", setup.data,
                            c->folder, c->folder)),
                   0);
  need(kiln_context_create(NULL, &c->context));
}

void alter_close(alter_case *c) {
  kiln_context_release(c->context);
  assert_int_equal(run(text("rm -r '%s'", c->folder)), 0);
  free(c->folder);
}

int alter_check(const alter_case *c, const char *arguments, char **out_output) {
  /* Not the skips of the folder that the test happens to run in. */
  const char *skips = strstr(arguments, "--skips") ? "" : "--skips /dev/null";
  char *command =
      text("'%s' check --repeat 2 %s %s '%s/case' 2>&1", setup.kiln, skips, arguments, c->folder);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  char *output = calloc(1, 1 << 16);
  assert_non_null(output);
  size_t size = fread(output, 1, (1 << 16) - 1, pipe);
  output[size] = 0;
  int status = pclose(pipe);
  free(command);
  *out_output = output;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* -- Tuples in files -- */

static char *path_of(const alter_case *c, const char *file) {
  return text("%s/case/%s.pt", c->folder, file);
}

static kiln_value *read_tuple(const alter_case *c, const char *file) {
  kiln_value *tuple = NULL;
  char *path = path_of(c, file);
  need(kiln_value_read(c->context, path, &tuple));
  free(path);
  return tuple;
}

/* Writes `count` elements: those of the file, `value` (taken, or NULL) at `index`. */
static void rewrite(alter_case *c, const char *file, int count, int index, kiln_value *value) {
  kiln_value *tuple = read_tuple(c, file), *changed = NULL, *items[16] = {NULL};
  int known = kiln_value_count(tuple);
  assert_true(count <= 16 && known > 0);
  for (int i = 0; i < count; i++) {
    need(kiln_value_item(tuple, i < known ? i : known - 1, &items[i]));
  }
  if (value) {
    kiln_value_destroy(items[index]);
    items[index] = value;
  }
  need(kiln_value_tuple(c->context, items, count, &changed));
  char *path = path_of(c, file);
  need(kiln_value_write(changed, path));
  free(path);
  for (int i = 0; i < count; i++) kiln_value_destroy(items[i]);
  kiln_value_destroy(changed);
  kiln_value_destroy(tuple);
}

static int count_of(const alter_case *c, const char *file) {
  kiln_value *tuple = read_tuple(c, file);
  int count = kiln_value_count(tuple);
  kiln_value_destroy(tuple);
  return count;
}

void alter_put(alter_case *c, const char *file, int index, kiln_value *value) {
  rewrite(c, file, count_of(c, file), index, value);
}

void alter_resize(alter_case *c, const char *file, int count) { rewrite(c, file, count, 0, NULL); }

/* -- Altered values -- */

static void alter_floats(float *data, int64_t numel, alter_how how) {
  for (int64_t i = 0; i < numel; i++) {
    if (isnan(data[i]) != (how == ALTER_FROM_NAN)) continue;
    if (how == ALTER_NUDGE) data[i] += 0.01f;
    if (how == ALTER_NUDGE_SLIGHTLY) data[i] += 1e-6f;
    if (how == ALTER_TO_NAN) data[i] = NAN;
    if (how == ALTER_FROM_NAN) data[i] = 0;
    if (how == ALTER_TO_INFINITY) data[i] = INFINITY;
    return;
  }
  fail_msg("no element to alter");
}

static kiln_value *item_of(const alter_case *c, const char *file, int index) {
  kiln_value *tuple = read_tuple(c, file), *item = NULL;
  need(kiln_value_item(tuple, index, &item));
  kiln_value_destroy(tuple);
  return item;
}

kiln_value *alter_tensor(alter_case *c, const char *file, int index, alter_how how) {
  kiln_value *old = item_of(c, file, index), *altered = NULL;
  kiln_dtype dtype = kiln_value_dtype(old);
  int rank = kiln_value_rank(old);
  int64_t sizes[8] = {1}, numel = 1;
  assert_int_equal(kiln_value_kind(old), KILN_KIND_TENSOR);
  for (int i = 0; i < rank; i++) numel *= sizes[i] = kiln_value_sizes(old)[i];
  size_t size = (size_t)numel * kiln_dtype_size(dtype);
  char *data = calloc(1, size * 2 + 1);
  need(kiln_value_copy_data(old, data, size));
  if (how == ALTER_FLATTEN) {
    rank = 1;
    sizes[0] = numel;
  } else if (how == ALTER_ADD_DIM) {
    memmove(sizes + 1, sizes, sizeof *sizes * (size_t)rank++);
    sizes[0] = 1;
  } else if (how == ALTER_TO_F64) {
    double *wide = (double *)(void *)data;
    for (int64_t i = numel - 1; i >= 0; i--) wide[i] = (double)((float *)(void *)data)[i];
    dtype = KILN_DTYPE_F64;
  } else if (how == ALTER_TO_U8) {
    dtype = KILN_DTYPE_U8;
  } else if (dtype == KILN_DTYPE_BOOL) {
    data[0] = !data[0];
  } else if (dtype == KILN_DTYPE_I64) {
    ((int64_t *)(void *)data)[0] += 1;
  } else if (how != ALTER_KEEP) {
    alter_floats((float *)(void *)data, numel, how);
  }
  need(kiln_value_tensor(c->context, dtype, rank, sizes, data, &altered));
  free(data);
  kiln_value_destroy(old);
  return altered;
}

kiln_value *alter_dict(alter_case *c, const char *file, int index, alter_how how) {
  kiln_value *old = item_of(c, file, index), *altered = NULL, *keys[2], *values[2];
  assert_int_equal(kiln_value_count(old), 2);
  for (int i = 0; i < 2; i++) {
    int from = how == ALTER_SWAP ? 1 - i : i;
    need(kiln_value_key(old, from, &keys[i]));
    need(kiln_value_item(old, from, &values[i]));
  }
  if (how == ALTER_RENAME) {
    kiln_value_destroy(keys[1]);
    keys[1] = alter_string(c, "renamed");
  }
  need(kiln_value_dict(c->context, keys, values, how == ALTER_DROP ? 1 : 2, &altered));
  for (int i = 0; i < 2; i++) {
    kiln_value_destroy(keys[i]);
    kiln_value_destroy(values[i]);
  }
  kiln_value_destroy(old);
  return altered;
}

kiln_value *alter_ints(alter_case *c, int count, ...) {
  kiln_value *items[8], *list = NULL;
  va_list args;
  va_start(args, count);
  for (int i = 0; i < count; i++) items[i] = alter_int(c, va_arg(args, int));
  va_end(args);
  need(kiln_value_list(c->context, items, count, &list));
  for (int i = 0; i < count; i++) kiln_value_destroy(items[i]);
  return list;
}

kiln_value *alter_pair(alter_case *c, int a, int b) {
  kiln_value *items[2] = {alter_int(c, a), alter_int(c, b)}, *tuple = NULL;
  need(kiln_value_tuple(c->context, items, 2, &tuple));
  kiln_value_destroy(items[0]);
  kiln_value_destroy(items[1]);
  return tuple;
}

kiln_value *alter_int(alter_case *c, int i) {
  kiln_value *value = NULL;
  need(kiln_value_int(c->context, i, &value));
  return value;
}

kiln_value *alter_float(alter_case *c, double f) {
  kiln_value *value = NULL;
  need(kiln_value_float(c->context, f, &value));
  return value;
}

kiln_value *alter_bool(alter_case *c, int b) {
  kiln_value *value = NULL;
  need(kiln_value_bool(c->context, b, &value));
  return value;
}

kiln_value *alter_string(alter_case *c, const char *string) {
  kiln_value *value = NULL;
  need(kiln_value_string(c->context, string, strlen(string), &value));
  return value;
}

kiln_value *alter_none(alter_case *c) {
  kiln_value *value = NULL;
  need(kiln_value_none(c->context, &value));
  return value;
}

/* -- Files -- */

void alter_remove(alter_case *c, const char *file) {
  char *path = text("%s/case/%s", c->folder, file);
  assert_int_equal(unlink(path), 0);
  free(path);
}

void alter_cut(alter_case *c, const char *file, int bytes) {
  char *path = text("%s/case/%s", c->folder, file);
  assert_int_equal(truncate(path, bytes), 0);
  free(path);
}

void alter_json(alter_case *c, const char *from, const char *to) {
  static char old[1 << 14];
  char *path = text("%s/case/case.json", c->folder);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  old[fread(old, 1, sizeof old - 1, file)] = 0;
  fclose(file);
  char *at = strstr(old, from);
  assert_non_null(at);
  file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "%.*s%s%s", (int)(at - old), old, to, at + strlen(from));
  fclose(file);
  free(path);
}

FILE *alter_file(const alter_case *c, const char *name) {
  char *path = text("%s/%s", c->folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  free(path);
  return file;
}
