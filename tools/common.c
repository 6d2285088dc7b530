/* common.c: complaints, memory, contexts and files of the command. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kiln/kiln_graph.h"
#include "kiln/kiln_op.h"
#include "tools/tool.h"

extern char **environ;

/* -- Complaints -- */

int tool_usage_error(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fputs("kiln: ", stderr);
  vfprintf(stderr, fmt, args);
  fputc('\n', stderr);
  va_end(args);
  return TOOL_USAGE;
}

int tool_complain(char *message) {
  tool_usage_error("%s", message);
  free(message);
  return TOOL_USAGE;
}

/* Levenshtein's distance, two rows at a time; long texts are far from everything. */
static size_t distance(const char *a, const char *b) {
  enum { MAX = 40 };
  size_t rows[2][MAX + 1];
  const size_t m = strlen(a), n = strlen(b);
  if (m > MAX || n > MAX) return MAX;
  for (size_t j = 0; j <= n; j++) rows[0][j] = j;
  for (size_t i = 1; i <= m; i++) {
    const size_t *above = rows[(i - 1) & 1];
    size_t *row = rows[i & 1];
    row[0] = i;
    for (size_t j = 1; j <= n; j++) {
      size_t least = above[j - 1] + (a[i - 1] != b[j - 1]);
      if (above[j] + 1 < least) least = above[j] + 1;
      if (row[j - 1] + 1 < least) least = row[j - 1] + 1;
      row[j] = least;
    }
  }
  return rows[m & 1][n];
}

bool tool_is_nearer(const char *given, const char *name, size_t *io_least) {
  const size_t letters = distance(given, name);
  if (letters >= *io_least || letters >= strlen(name)) return false;
  *io_least = letters;
  return true;
}

int tool_no_method(const kiln_model *model, const char *method) {
  kiln_argument unused;
  return tool_complain(tool_take_message(kiln_model_argument(model, method, 0, &unused)));
}

int tool_exit_status(kiln_code code) {
  static const int exits[] = {
#define TOOL_EXIT(name, exit_status, meaning) [KILN_##name] = exit_status,
      KILN_CODE_LIST(TOOL_EXIT)
#undef TOOL_EXIT
  };
  if ((int)code < 0 || (int)code >= (int)(sizeof exits / sizeof exits[0])) return TOOL_INTERNAL;
  return exits[code];
}

/* What was read to its end (tool_path), by the descriptor that has it. */
enum { MAX_STREAMS = 64 };
static const char *streams[MAX_STREAMS];

/* A copy in which such files are called what the user called them. */
static char *with_names(const char *text) {
  char *copy = tool_format("%s", text);
  for (int i = 0; i < MAX_STREAMS; i++) {
    char path[32];
    const int len = snprintf(path, sizeof path, "/proc/self/fd/%d", i);
    char *at = streams[i] ? strstr(copy, path) : NULL;
    while (at && at[len] >= '0' && at[len] <= '9') at = strstr(at + len, path);
    if (!at) continue;
    char *named = tool_format("%.*s%s%s", (int)(at - copy), copy, streams[i], at + len);
    free(copy);
    copy = named;
  }
  return copy;
}

int tool_report(kiln_status *status) {
  kiln_code code = kiln_status_code(status);
  char *report = with_names(kiln_status_report(status));
  size_t len = strlen(report);
  fprintf(stderr, "kiln: %s%s", report, len && report[len - 1] == '\n' ? "" : "\n");
  free(report);
  kiln_status_destroy(status);
  return tool_exit_status(code);
}

char *tool_take_message(kiln_status *status) {
  const char *message = kiln_status_message(status);
  char *copy = with_names(message && *message ? message : kiln_code_name(kiln_status_code(status)));
  kiln_status_destroy(status);
  return copy;
}

/* -- Memory: a command that has none left says so and ends -- */

static void no_memory(void) {
  fputs("kiln: out of memory\n", stderr);
  _Exit(TOOL_LIMIT);
}

void *tool_alloc(size_t size) {
  void *block = calloc(1, size ? size : 1);
  if (!block) no_memory();
  return block;
}

void *tool_grow(void *block, size_t size) {
  void *grown = realloc(block, size ? size : 1);
  if (!grown) no_memory();
  return grown;
}

char *tool_format(const char *fmt, ...) {
  va_list args;
  char *text = NULL;
  va_start(args, fmt);
  if (vasprintf(&text, fmt, args) < 0) no_memory();
  va_end(args);
  return text;
}

void tool_keep_first(char **first, char *text) {
  if (*first) {
    free(text);
  } else {
    *first = text;
  }
}

/* -- Contexts -- */

/* Lays KILN_* variables over `options` by hand; names that are no flags were complained about. */
static void copy_environment(kiln_options *options) {
  kiln_options_ignore_environment(options);
  for (char **e = environ; *e; e++) {
    const char *equal = strchr(*e, '=');
    if (strncmp(*e, "KILN_", 5) != 0 || !equal || !equal[1]) continue;
    size_t len = (size_t)(equal - *e) - 5;
    char name[64];
    if (len >= sizeof name) continue;
    for (size_t i = 0; i < len; i++) {
      char c = (*e)[5 + i];
      name[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    name[len] = 0;
    kiln_status_destroy(kiln_options_set(options, name, equal + 1));
  }
}

static kiln_status *set_named(kiln_options *options, const char *assignment) {
  const char *equal = strchr(assignment, '=');
  size_t len = equal ? (size_t)(equal - assignment) : strlen(assignment);
  char *name = tool_format("%.*s", (int)len, assignment);
  kiln_status *status = kiln_options_set(options, name, equal ? equal + 1 : "");
  free(name);
  return status;
}

static kiln_status *fill_options(const tool_settings *settings, kiln_options *options) {
  kiln_status *status = NULL;
  if (settings->environment_is_checked) copy_environment(options);
  if (!status && settings->compile)
    status = kiln_options_set(options, "compile", settings->compile);
  if (!status && settings->compile_after)
    status = kiln_options_set(options, "compile_after", settings->compile_after);
  if (!status && settings->compile_time)
    status = kiln_options_set(options, "compile_time", settings->compile_time);
  if (!status && settings->isa) status = kiln_options_set(options, "isa", settings->isa);
  if (!status && settings->fusion_strategy)
    status = kiln_options_set(options, "fusion_strategy", settings->fusion_strategy);
  if (!status && settings->jit) status = kiln_options_set(options, "jit", settings->jit);
  if (!status && settings->map_device)
    status = kiln_options_set(options, "map_device", settings->map_device);
  if (!status && settings->trace) status = kiln_options_set(options, "trace", settings->trace);
  if (!status && settings->threads)
    status = kiln_options_set(options, "threads", settings->threads);
  for (int i = 0; !status && i < settings->set.count; i++) {
    status = set_named(options, settings->set.items[i]);
  }
  return status;
}

void tool_print_to_stderr(void *user, const char *text, size_t size) {
  (void)user;
  fwrite(text, 1, size, stderr);
}

kiln_status *tool_context(const tool_settings *settings, kiln_context **out_context) {
  kiln_options *options = NULL;
  kiln_status *status = kiln_options_create(&options);
  if (status) return status;
  status = fill_options(settings, options);
  if (!status) status = kiln_context_create(options, out_context);
  kiln_options_destroy(options);
  return status;
}

/* -- Small things -- */

double tool_now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

int tool_by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

bool tool_is_directory(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool tool_exists(const char *path) {
  struct stat st;
  return stat(path, &st) == 0;
}

bool tool_ends_with(const char *path, const char *end) {
  const size_t len = strlen(path), end_len = strlen(end);
  return len > end_len && strcmp(path + len - end_len, end) == 0;
}

char *tool_join(const char *folder, const char *name) {
  size_t len = strlen(folder);
  return tool_format("%s%s%s", folder, len && folder[len - 1] == '/' ? "" : "/", name);
}

/* Waits until `from` can be read, its time is over (0: it has no end) or Ctrl-C has come. */
static kiln_status *wait_for(int from, const char *path, uint32_t time_ms, double end) {
  struct pollfd poll_for = {.fd = from, .events = POLLIN};
  const double left = end - tool_now_ms();
  const int ready = poll(&poll_for, 1, end <= 0 ? -1 : left > 0 ? (int)left + 1 : 0);
  if (ready > 0) return NULL;
  if (ready == 0) {
    return kiln_op_error(KILN_LIMIT, "reading '%s' took longer than its limit of %u ms (time_ms)",
                         path, time_ms);
  }
  if (errno == EINTR) return kiln_op_error(KILN_CANCELLED, "reading '%s' was cancelled", path);
  return kiln_op_error(KILN_INVALID_FILE, "cannot read '%s': %s", path, strerror(errno));
}

bool tool_write_all(int fd, const void *data, size_t size) {
  for (const char *at = data; size > 0;) {
    const ssize_t n = write(fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

/* Copies what can be read to the file `to`. */
static kiln_status *read_all(int from, int to, const char *path, const kiln_limits *limits) {
  char block[1 << 14];
  const uint32_t time_ms = limits ? limits->time_ms : 0;
  const double end = time_ms ? tool_now_ms() + time_ms : 0;
  for (uint64_t total = 0;;) {
    kiln_status *status = wait_for(from, path, time_ms, end);
    if (status) return status;
    const ssize_t got = read(from, block, sizeof block);
    if (got == 0) return NULL;
    if (got < 0 || !tool_write_all(to, block, (size_t)got)) {
      return kiln_op_error(KILN_INVALID_FILE, "cannot read '%s': %s", path, strerror(errno));
    }
    total += (uint64_t)got;
    if (limits && limits->bytes && total > limits->bytes) {
      return kiln_op_error(KILN_LIMIT, "'%s' has more bytes than its limit of %llu (bytes)", path,
                           (unsigned long long)limits->bytes);
    }
  }
}

kiln_status *tool_path(const char *path, const kiln_limits *limits, char **out_path) {
  const bool standard = strcmp(path, "-") == 0;
  struct stat st;
  *out_path = NULL;
  if (!standard && (stat(path, &st) != 0 || !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))) {
    *out_path = tool_format("%s", path);
    return NULL;
  }
  const int from = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  const int to = memfd_create("input", 0); /* stays open: the path leads to it */
  kiln_status *status = NULL;
  if (from < 0 || to < 0) {
    status = kiln_op_error(KILN_NOT_FOUND, "cannot open '%s': %s", path, strerror(errno));
  } else {
    status = read_all(from, to, path, limits);
  }
  if (!standard && from >= 0) close(from);
  if (status && to >= 0) close(to);
  if (status) return status;
  if (to < MAX_STREAMS) streams[to] = standard ? "standard input" : path;
  *out_path = tool_format("/proc/self/fd/%d", to);
  return NULL;
}

kiln_limits tool_limits_of(const tool_limits *limits) {
  return (kiln_limits){
      .bytes = (uint64_t)limits->bytes,
      .operations = (uint64_t)limits->operations,
      .time_ms = limits->ms < UINT32_MAX ? (uint32_t)limits->ms : UINT32_MAX,
  };
}

/* Whether the file begins as the text of a graph does, after comments. */
static bool is_graph(const char *path) {
  static const char begin[] = "graph(";
  char line[4096];
  bool found = false;
  FILE *file = fopen(path, "rb");
  while (file && fgets(line, sizeof line, file)) {
    if (*line == '#' || *line == ';' || *line == '\n') continue;
    found = strncmp(line, begin, sizeof begin - 1) == 0;
    break;
  }
  if (file) fclose(file);
  return found;
}

/* Reads a graph as text; a file that cannot be read any more is told as no graph. */
static kiln_status *load_graph(kiln_context *context, const char *path, kiln_model **out_model) {
  size_t size = 0;
  char *error = NULL, *text = tool_read_file(path, &size, &error);
  kiln_builder *builder = NULL;
  kiln_status *status = kiln_builder_parse(context, text ? text : "", size, &builder);
  if (!status) status = kiln_builder_finish(builder, out_model);
  kiln_builder_destroy(builder);
  free(error);
  free(text);
  return status;
}

kiln_status *tool_load(kiln_context *context, const char *path, const kiln_limits *limits,
                       kiln_model **out_model) {
  char *readable = NULL;
  kiln_status *status = tool_path(path, limits, &readable);
  if (status) return status;
  status = is_graph(readable) ? load_graph(context, readable, out_model)
                              : kiln_model_load(context, readable, limits, out_model);
  free(readable);
  return status;
}

/* Puts the dict's value of that name in the place of the dict. */
static kiln_status *take_member(const char *name, kiln_value **value) {
  kiln_value *found = NULL;
  kiln_status *status = NULL;
  for (int i = 0; !status && !found && i < kiln_value_count(*value); i++) {
    kiln_value *key = NULL;
    status = kiln_value_key(*value, i, &key);
    const char *text = key ? kiln_value_as_string(key, NULL) : NULL;
    if (text && strcmp(text, name) == 0) status = kiln_value_item(*value, i, &found);
    kiln_value_destroy(key);
  }
  kiln_value_destroy(*value);
  *value = found;
  if (status || found) return status;
  return kiln_op_error(KILN_INVALID_ARGUMENT, "the archive has no tensor '%s'", name);
}

kiln_status *tool_read_value(kiln_context *context, const char *path, kiln_value **out_value) {
  const char *member = strstr(path, TOOL_MEMBER);
  char *file = member ? tool_format("%.*s", (int)(member + 4 - path), path) : NULL;
  kiln_status *status = file ? NULL : tool_path(path, NULL, &file);
  if (!status) status = kiln_value_read(context, file, out_value);
  if (!status && member) status = take_member(member + sizeof TOOL_MEMBER - 1, out_value);
  free(file);
  return status;
}

bool tool_is_stdout(const char *path) {
  return strcmp(path, "-") == 0 || strcmp(path, "-.npy") == 0;
}

int tool_write_value(const kiln_value *value, const char *path) {
  char folder[] = "/tmp/kiln-XXXXXX", *error = NULL;
  size_t size = 0;
  if (!tool_is_stdout(path)) {
    kiln_status *status = kiln_value_write(value, path);
    return status ? tool_report(status) : -1;
  }
  if (!mkdtemp(folder)) return tool_usage_error("cannot make %s: %s", folder, strerror(errno));
  char *file = tool_format("%s/value%s", folder, path[1] ? ".npy" : ".pt");
  kiln_status *status = kiln_value_write(value, file);
  int exit_status = status ? tool_report(status) : -1;
  char *data = status ? NULL : tool_read_file(file, &size, &error);
  if (data && (fwrite(data, 1, size, stdout) != size || fflush(stdout) != 0)) {
    error = tool_format("cannot write to standard output: %s", strerror(errno));
  }
  if (error) exit_status = tool_complain(error);
  unlink(file);
  rmdir(folder);
  free(data);
  free(file);
  return exit_status;
}

int tool_check_output(const char *option, const char *path, const char *also) {
  static const char *const foreign[] = {".npy", ".npz",  ".csv", ".txt", ".json",        ".onnx",
                                        ".bin", ".gguf", ".h5",  ".pb",  ".safetensors", ".pt2"};
  if (also && tool_is_stdout(path)) return -1;
  if (strcmp(path, "-") == 0) {
    return tool_usage_error("%s takes the name of a file, not '-'", option);
  }
  for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
    if (also && strcmp(foreign[i], also) == 0) continue;
    if (tool_ends_with(path, foreign[i])) {
      return tool_usage_error("%s %s: Kiln writes .pt%s%s, not %s", option, path,
                              also ? " and " : "", also ? also : "", foreign[i]);
    }
  }
  return -1;
}

char *tool_read_file(const char *path, size_t *out_size, char **out_error) {
  const bool standard = strcmp(path, "-") == 0;
  FILE *file = standard ? stdin : fopen(path, "rb");
  char *data = NULL;
  size_t size = 0, capacity = 0;
  *out_error = NULL;
  if (!file) {
    *out_error = tool_format("cannot open '%s': %s", path, strerror(errno));
    return NULL;
  }
  do {
    if (capacity - size < 4097) data = tool_grow(data, capacity = capacity * 2 + 8192);
    size += fread(data + size, 1, capacity - size - 1, file);
  } while (!feof(file) && !ferror(file));
  if (ferror(file)) *out_error = tool_format("cannot read '%s': %s", path, strerror(errno));
  if (!standard) fclose(file);
  if (*out_error) {
    free(data);
    return NULL;
  }
  data[size] = 0;
  *out_size = size;
  return data;
}
