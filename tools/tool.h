/* tool.h: what the files of the `kiln` command share: option tables, exit statuses, contexts, text.
 *
 * A command is one file with one table of options and one function; main.c has the list. The
 * command stands on include/kiln alone (and cJSON for case.json and --json). Exit statuses are
 * those of KILN_CODE_LIST: 0 good, 1 a result differs or the model failed, 2 usage, 3 a limit,
 * 4 internal. Sentences for people who made a mistake go to stderr, results to stdout. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kiln/kiln.h"

enum { TOOL_GOOD = 0, TOOL_DIFFERENT = 1, TOOL_USAGE = 2, TOOL_LIMIT = 3, TOOL_INTERNAL = 4 };

/* -- Options -- */

typedef enum tool_option_kind {
  TOOL_SWITCH, /* bool */
  TOOL_TEXT,   /* const char * */
  TOOL_WORD,   /* const char *, one of the words in `value` ("on|off") */
  TOOL_INT,    /* int64_t, at least `min` */
  TOOL_BYTES,  /* the same, with K, M, G or T behind it for KiB and so on */
  TOOL_REAL,   /* double, at least `min` */
  TOOL_LIST,   /* tool_list: may be given several times */
} tool_option_kind;

typedef struct tool_list {
  const char **items; /* owned by the parser until tool_options_free */
  int count;
} tool_list;

typedef struct tool_option {
  const char *name; /* "--repeat", "-p" */
  tool_option_kind kind;
  size_t offset;     /* of its field in the command's options struct */
  const char *value; /* what the usage text shows: "N", "FILE.pt", "on|off"; NULL for switches */
  int64_t min;
  const char *help;
} tool_option;

typedef struct tool_command {
  const char *name;
  const char *usage; /* "kiln run MODEL [options]" */
  const char *summary;
  const char *details; /* more help, or NULL */
  const tool_option *options;
  int option_count;
  size_t options_size;                                    /* of the options struct */
  void (*defaults)(void *options);                        /* NULL: all zero */
  int min_operands, max_operands;                         /* -1: any number */
  int (*run)(const void *options, char *const *operands); /* the exit status; NULL ends them */
} tool_command;
/* Of a tool_command: its table, and the struct that the table fills. */
#define TOOL_OPTIONS(table, type) \
  .options = table, .option_count = sizeof(table) / sizeof *(table), .options_size = sizeof(type)

/* Fills `options` and moves the operands to the front of argv, NULL behind them. Returns -1 when
 * the command should run, else the exit status (after --help, or a complaint on stderr). */
int tool_parse(const tool_command *command, int argc, char **argv, void *options);
void tool_options_free(const tool_command *command, void *options);
void tool_print_help(const tool_command *command, FILE *file);

/* -- Complaints -- */

/* "kiln: sentence" on stderr; returns TOOL_USAGE. */
int tool_usage_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same of one that is freed. */
int tool_complain(char *message);
/* For "did you mean": whether `given` is nearer to `name` than *io_least letters, which then is
 * their distance. Starts as TOOL_NEAR. */
enum { TOOL_NEAR = 3 };
bool tool_is_nearer(const char *given, const char *name, size_t *io_least);
/* The complaint about a method that the model has not; it names those that it has. */
int tool_no_method(const kiln_model *model, const char *method);
/* Prints the report of `status` to stderr, destroys it, returns its exit status. */
int tool_report(kiln_status *status);
int tool_exit_status(kiln_code code);
/* A copy of the message, which the caller frees; destroys the status. */
char *tool_take_message(kiln_status *status);
/* asprintf that never returns NULL: it ends the process with TOOL_LIMIT. The same for the others.
 */
char *tool_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *tool_alloc(size_t size); /* zeroed */
void *tool_grow(void *block, size_t size);
/* Frees `text` where *first is one already; else it becomes it. */
void tool_keep_first(char **first, char *text);

/* -- Contexts -- */

/* Settings common to several commands; NULL or 0: as the environment says. */
typedef struct tool_settings {
  const char *jit;             /* "on", "off" */
  const char *threads;         /* a number */
  const char *map_device;      /* cuda:*=cpu */
  const char *trace;           /* a file */
  tool_list set;               /* NAME=VALUE of any flag */
  const char *compile;         /* that option, whatever the environment says; NULL: as it says */
  const char *compile_after;   /* likewise */
  const char *compile_time;    /* likewise */
  const char *fusion_strategy; /* likewise */
  const char *isa;             /* likewise */
  bool environment_is_checked; /* a context was made from it before: do not warn again */
} tool_settings;

/* Rows of an option table for the fields of a tool_settings at `base` in `type`. */
#define TOOL_SETTINGS_OPTIONS(type, base)                                                  \
  {"--jit",  TOOL_WORD, offsetof(type, base.jit),                                          \
   "on|off", 0,         "profile and specialise, or run the plain interpreter"},           \
      {"--threads", TOOL_TEXT, offsetof(type, base.threads), "N", 0, "threads of a call"}, \
      {"--map-device", TOOL_TEXT, offsetof(type, base.map_device),                         \
       "RULES",        0,         "where the archive's devices go: cuda:*=cpu"},           \
      {"--trace", TOOL_TEXT, offsetof(type, base.trace),                                   \
       "FILE",    0,         "what happened when, for Chrome and Perfetto"},               \
      {"--set",      TOOL_LIST, offsetof(type, base.set),                                  \
       "NAME=VALUE", 0,         "any flag of `kiln list flags`"}

/* Limits of the load, of each call and of what else a command does with a model; 0: none. */
typedef struct tool_limits {
  int64_t bytes, ms, operations;
} tool_limits;

/* Rows of an option table for the fields of a tool_limits at `base` in `type`. */
#define TOOL_LIMIT_OPTIONS(type, base)                                                         \
  {"--limit-bytes", TOOL_BYTES, offsetof(type, base.bytes), "N", 0, "most memory: 64M, 2G"},   \
      {"--limit-ms", TOOL_INT, offsetof(type, base.ms), "N", 0, "most time of load and call"}, \
      {"--limit-operations", TOOL_INT, offsetof(type, base.operations), "N", 0, "most operations"}
kiln_limits tool_limits_of(const tool_limits *limits);

/* A kiln_print_fn for commands whose output is not the model's: graphs, figures, JSON. */
void tool_print_to_stderr(void *user, const char *text, size_t size);
kiln_status *tool_context(const tool_settings *settings, kiln_context **out_context);

/* -- Small things -- */

double tool_now_ms(void); /* monotonic */
/* Of doubles, for qsort. */
int tool_by_size(const void *a, const void *b);
/* What stands behind the noun of a number: "%d call%s". */
static inline const char *tool_plural(uint64_t count) { return count == 1 ? "" : "s"; }
/* All of it to a descriptor; false: it cannot, by errno. */
bool tool_write_all(int fd, const void *data, size_t size);
/* Reads a whole file; NULL and a filled-in *out_error (freed by the caller) when it cannot. */
char *tool_read_file(const char *path, size_t *out_size, char **out_error);
bool tool_is_directory(const char *path);
/* A path at which the library can open what the user named: "-" and what is no regular file (a
 * pipe) are read to their end first, under the limits of a load (NULL: none). Freed by the caller.
 */
kiln_status *tool_path(const char *path, const kiln_limits *limits, char **out_path);
/* Complains about a path to write whose ending is of a format that Kiln does not write, or that is
 * "-" (standard output has text); -1 when there is nothing to say. `also`: an ending that is fine
 * beside .pt, and then "-" is, too; or NULL. */
int tool_check_output(const char *option, const char *path, const char *also);
/* kiln_model_load, also of a graph as text, and kiln_value_read of such a path. */
kiln_status *tool_load(kiln_context *context, const char *path, const kiln_limits *limits,
                       kiln_model **out_model);
kiln_status *tool_read_value(kiln_context *context, const char *path, kiln_value **out_value);
/* What stands between the path of an archive of numpy.savez and the name of one of its tensors, in
 * paths for tool_read_value. */
#define TOOL_MEMBER ".npz:"
/* Writes a torch.save archive, or .npy by the ending; "-" and "-.npy" are standard output. Returns
 * -1, or the exit status after a complaint. */
int tool_write_value(const kiln_value *value, const char *path);
bool tool_is_stdout(const char *path);
bool tool_exists(const char *path);
char *tool_join(const char *folder, const char *name);
/* A name with that ending, and not the ending alone. */
bool tool_ends_with(const char *path, const char *end);
