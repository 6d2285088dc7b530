/* flags.h: the settings of a context. flags.def is the one list: environment variable KILN_<NAME>,
 * option "<name>" of kiln_options, type, default, range and meaning.
 *
 * The environment is read once, when a context is made. A model keeps the flags that it was loaded
 * with. A kiln_flags is plain data and is copied. */
#pragma once

#include "base/status.h"
#include "base/str.h"

/* A fusion strategy: levels in order, "STATIC,2;DYNAMIC,10". */
enum { KILN_STRATEGY_MAX = 8 };
typedef struct kiln_strategy {
  bool given; /* set by the user, not the default */
  int count;
  struct {
    bool dynamic;
    int depth;
  } level[KILN_STRATEGY_MAX];
} kiln_strategy;

typedef enum kiln_flag_type {
  KILN_FLAG_BOOL,  /* on|off, 1|0, true|false */
  KILN_FLAG_INT,   /* within [min, max] */
  KILN_FLAG_BYTES, /* the same, with K, M, G or T for KiB and so on behind it */
  KILN_FLAG_FLOAT,
  KILN_FLAG_ENUM,     /* one of the words in `words`, "a|b|c", stored as its index */
  KILN_FLAG_STRING,   /* up to KILN_FLAG_STRING_MAX - 1 bytes */
  KILN_FLAG_STRATEGY, /* as above */
} kiln_flag_type;

enum { KILN_FLAG_STRING_MAX = 256 };

/* The struct has one field a line of flags.def, named like the flag. */
#define KILN_FLAG_FIELD_BOOL bool
#define KILN_FLAG_FIELD_INT int64_t
#define KILN_FLAG_FIELD_BYTES int64_t
#define KILN_FLAG_FIELD_FLOAT double
#define KILN_FLAG_FIELD_ENUM int
#define KILN_FLAG_FIELD_STRING kiln_flag_string
#define KILN_FLAG_FIELD_STRATEGY kiln_strategy
typedef struct kiln_flag_string {
  char text[KILN_FLAG_STRING_MAX];
} kiln_flag_string;

typedef struct kiln_flags {
#define KILN_FLAG(name, type, default_text, min, max, words, meaning) KILN_FLAG_FIELD_##type name;
#include "base/flags.def"
#undef KILN_FLAG
} kiln_flags;

typedef struct kiln_flag_info {
  const char *name; /* lower case: "num_profiled_runs" */
  kiln_flag_type type;
  const char *default_text;
  int64_t min, max;
  const char *words; /* of an enum */
  const char *meaning;
  size_t offset; /* in kiln_flags */
} kiln_flag_info;

/* Values of ENUM flags, in the order of their words. */
enum { KILN_COMPAT_KILN, KILN_COMPAT_TORCH };
enum { KILN_COMPILE_SYNC, KILN_COMPILE_ASYNC };
enum { KILN_ALLOC_DEFAULT, KILN_ALLOC_SYSTEM };
enum { KILN_PERF_OFF, KILN_PERF_MAP, KILN_PERF_JITDUMP };

extern const kiln_flag_info kiln_flag_table[];
extern const int kiln_flag_count;

/* Sets every flag to its default. */
void kiln_flags_init(kiln_flags *flags);
/* Sets one flag from text; KILN_INVALID_ARGUMENT names the flag, the value and what is allowed. */
kiln_status *kiln_flags_set(kiln_flags *flags, const char *name, const char *value) KILN_MUST_USE;
/* Applies KILN_* from `environ` (array of "NAME=value"), and adds the bits of the flags that it
 * sets, by their place in the table, to *out_set. An unknown KILN_* name is not an error:
 * on_unknown is called with it. */
kiln_status *kiln_flags_read_env(kiln_flags *flags, char *const *environment,
                                 void (*on_unknown)(void *user, const char *name), void *user,
                                 uint64_t *out_set) KILN_MUST_USE;
/* Writes the current value of a flag as text that kiln_flags_set reads; returns the length. */
int kiln_flags_print(const kiln_flags *flags, const kiln_flag_info *info, char *buffer,
                     size_t size);
/* A context reads it when it is made, as its meaning says: it cannot be changed behind that. */
bool kiln_flag_is_fixed(const kiln_flag_info *info);
/* The line of flags.def with that name, or NULL. */
const kiln_flag_info *kiln_flags_find(const char *name);

/* The strategy in force: fusion_strategy capped by bailout_depth, its first levels kept. */
kiln_strategy kiln_flags_strategy(const kiln_flags *flags);
/* Total depth of a strategy, and whether the level at `remaining` (total .. 1) is dynamic: the list
 * is walked from the back (reference: PyTorch's getCurrentBehavior). */
int kiln_strategy_depth(const kiln_strategy *strategy);
bool kiln_strategy_is_dynamic(const kiln_strategy *strategy, int remaining);
