/* log.c: lines of a channel, to the host's callback or to stderr. */
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/timeline.h"

static const char *const channel_names[] = {
#define CHANNEL_NAME(name, meaning) #name,
    KILN_LOG_CHANNELS(CHANNEL_NAME)
#undef CHANNEL_NAME
};

void kiln_log_init(kiln_log *log) {
  *log = (kiln_log){0};
  log->level[KILN_LOG_warn] = 1;
}

static bool parse_channel(kiln_log *log, kiln_str text) {
  const char *equals = text.len ? memchr(text.data, '=', text.len) : NULL;
  kiln_str name = kiln_str_make(text.data, equals ? (size_t)(equals - text.data) : text.len);
  int64_t level = 1;
  if (equals) {
    kiln_str number = kiln_str_make(equals + 1, text.len - name.len - 1);
    if (!kiln_str_parse_i64(number, &level) || level < 0 || level > 9) return false;
  }
  for (int i = 0; i < KILN_LOG__COUNT; i++) {
    if (!kiln_str_is(name, channel_names[i])) continue;
    log->level[i] = (int)level;
    return true;
  }
  return false;
}

void kiln_log_copy_levels(kiln_log *to, const kiln_log *from) {
  for (int i = 0; i < KILN_LOG__COUNT; i++) {
    const int level = __atomic_load_n(&from->level[i], __ATOMIC_RELAXED);
    __atomic_store_n(&to->level[i], level, __ATOMIC_RELAXED);
  }
}

kiln_status *kiln_log_parse(kiln_log *log, const char *spec) {
  kiln_log parsed = *log;
  for (const char *at = spec; *at;) {
    size_t len = strcspn(at, ",");
    if (!parse_channel(&parsed, kiln_str_make(at, len))) {
      char known[256];
      size_t used = 0;
      for (int i = 0; i < KILN_LOG__COUNT && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                                 channel_names[i]);
      return KILN_ERROR(KILN_INVALID_ARGUMENT,
                        "log: \"%.*s\" is not a channel and a level from 0 to 9 (channels: %s)",
                        (int)len, at, known);
    }
    at += len;
    if (*at) at++;
  }
  *log = parsed;
  return NULL;
}

static void put_line(const kiln_log *log, kiln_log_channel channel, int level, const char *line) {
  if (channel == KILN_LOG_warn)
    kiln_timeline_mark(log->timeline, KILN_EVENT_warning, line, 0, NULL);
  if (log->callback) {
    log->callback(log->user, channel_names[channel], level, line);
  } else {
    fprintf(stderr, "kiln %s: %s\n", channel_names[channel], line);
  }
}

void kiln__log_print(const kiln_log *log, kiln_log_channel channel, int level, const char *fmt,
                     ...) {
  char small[1024];
  char *text = small;
  va_list args, again;
  va_start(args, fmt);
  va_copy(again, args);
  int len = vsnprintf(small, sizeof small, fmt, args);
  if (len >= (int)sizeof small) {
    char *large = malloc((size_t)len + 1);
    if (large) {
      vsnprintf(large, (size_t)len + 1, fmt, again);
      text = large;
    }
  }
  va_end(again);
  va_end(args);
  if (len >= 0) {
    for (char *line = text; line;) {
      char *end = strchr(line, '\n');
      if (end) *end = 0;
      put_line(log, channel, level, line);
      line = end && end[1] ? end + 1 : NULL;
    }
  }
  if (text != small) free(text);
}
