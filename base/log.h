/* log.h: the log, what the library says about itself. Channels have levels (0 silent); a callback
 * of the host gets the lines, else they go to stderr. A log is thread-safe; the callback may be
 * called from several threads at once. */
#pragma once

#include "base/status.h"

#define KILN_LOG_CHANNELS(X)                                        \
  X(load, "Loading: archive, source, names")                        \
  X(profile, "Profiling runs and what they recorded")               \
  X(pass, "Passes that changed a graph, with the graph at level 2") \
  X(fusion, "Groups formed and refused")                            \
  X(guard, "Guards that failed, with the two types")                \
  X(compile, "Kernels compiled, with times")                        \
  X(run, "Calls, with times")                                       \
  X(warn, "Warnings; level 1 by default")

typedef enum kiln_log_channel {
#define KILN_LOG_ENUM(name, meaning) KILN_LOG_##name,
  KILN_LOG_CHANNELS(KILN_LOG_ENUM)
#undef KILN_LOG_ENUM
      KILN_LOG__COUNT
} kiln_log_channel;

typedef struct kiln_log {
  int level[KILN_LOG__COUNT]; /* atomic: a host may set them at any time */
  kiln_log_fn callback;       /* NULL: stderr */
  void *user;
  struct kiln_timeline *timeline; /* gets warnings as events; NULL: there is none */
} kiln_log;

void kiln_log_init(kiln_log *log);
/* Gives `to` the levels of `from`. */
void kiln_log_copy_levels(kiln_log *to, const kiln_log *from);
/* "fusion=2,guard=1": KILN_INVALID_ARGUMENT on an unknown channel. */
kiln_status *kiln_log_parse(kiln_log *log, const char *spec) KILN_MUST_USE;
void kiln__log_print(const kiln_log *log, kiln_log_channel channel, int level, const char *fmt, ...)
    KILN_PRINTF(4, 5);

static inline bool kiln_log_on(const kiln_log *log, kiln_log_channel channel, int level) {
  return __atomic_load_n(&log->level[channel], __ATOMIC_RELAXED) >= level;
}
#define KILN_LOG(log, channel, min_level, ...)                                \
  (kiln_log_on((log), KILN_LOG_##channel, (min_level))                        \
       ? kiln__log_print((log), KILN_LOG_##channel, (min_level), __VA_ARGS__) \
       : (void)0)
