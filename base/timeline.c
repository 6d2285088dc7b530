/* timeline.c: events as lines of JSON, each written at once. */
#include "base/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE_BYTES = 8192, TEXT_BYTES = 480 }; /* room for a name and the args, all of quotes */
_Static_assert((1 + KILN_TIMELINE_ARGS) * (2 * TEXT_BYTES + 2) < LINE_BYTES - 1024, "a line");

struct kiln_timeline {
  pid_t maker;
  int fd;
  pthread_mutex_t lock;
  int64_t bytes; /* under the lock: that were written */
};

/* -- Lines -- */

typedef struct line {
  size_t used;
  char text[LINE_BYTES];
} line;

static KILN_PRINTF(2, 3) void put(line *l, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const int n = vsnprintf(l->text + l->used, sizeof l->text - l->used, fmt, args);
  va_end(args);
  if (n > 0 && (size_t)n < sizeof l->text - l->used) l->used += (size_t)n;
}

/* Bytes of what is kept of a text: no character of UTF-8 is cut. */
static size_t kept(const char *text) {
  size_t n = strnlen(text, TEXT_BYTES);
  while (n == TEXT_BYTES && ((unsigned char)text[n] & 0xc0) == 0x80 && n > TEXT_BYTES - 4) n--;
  return n;
}
/* Control characters become blanks. */
static void put_text(line *l, const char *text) {
  put(l, "\"");
  for (const char *end = text + kept(text); text < end; text++) {
    const char *escape = *text == '"' || *text == '\\' ? "\\" : "";
    put(l, "%s%c", escape, (unsigned char)*text < ' ' ? ' ' : *text);
  }
  put(l, "\"");
}
/* Microseconds, whatever the locale's decimal point is. */
static void put_time(line *l, const char *name, uint64_t ns) {
  put(l, ",\"%s\":%llu.%03llu", name, (unsigned long long)(ns / 1000),
      (unsigned long long)(ns % 1000));
}

static void write_all(kiln_timeline *t, const line *l) {
  for (size_t done = 0; done < l->used;) {
    const ssize_t n = write(t->fd, l->text + done, l->used - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return; /* a full disk: the line is lost */
    done += (size_t)n;
    t->bytes += n;
  }
}

/* -- Life -- */

kiln_status *kiln_timeline_create(const char *path, kiln_timeline **out_timeline) {
  kiln_timeline *t = calloc(1, sizeof *t);
  if (!t) return kiln_status_oom();
  t->maker = getpid();
  t->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (t->fd < 0) {
    free(t);
    return KILN_ERROR(KILN_INVALID_FILE, "option trace: cannot write '%s': %s", path,
                      strerror(errno));
  }
  pthread_mutex_init(&t->lock, NULL);
  line first = {0};
  put(&first, "[{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%ld,\"args\":{\"name\":\"kiln\"}}",
      (long)t->maker);
  write_all(t, &first);
  *out_timeline = t;
  return NULL;
}

void kiln_timeline_destroy(kiln_timeline *t) {
  if (!t) return;
  const line last = {.used = 3, .text = "\n]\n"};
  if (getpid() == t->maker) write_all(t, &last);
  close(t->fd);
  pthread_mutex_destroy(&t->lock);
  free(t);
}

/* -- Events -- */

static void begin_event(line *l, const char *category, const char *name, const char *phase,
                        uint64_t ns) {
  put(l, ",\n{\"name\":");
  put_text(l, name);
  put(l, ",\"cat\":\"%s\",\"ph\":\"%s\"", category, phase);
  put_time(l, "ts", ns);
}

static void end_event(kiln_timeline *t, line *l, int count, const kiln_timeline_arg *args) {
  KILN_ASSERT(count <= KILN_TIMELINE_ARGS);
  if (getpid() != t->maker) return;
  put(l, ",\"pid\":%ld,\"tid\":%ld,\"args\":{", (long)t->maker, syscall(SYS_gettid));
  for (int i = 0; i < count; i++) {
    put(l, "%s\"%s\":", i ? "," : "", args[i].name);
    if (args[i].text) {
      put_text(l, args[i].text);
    } else {
      put(l, "%lld", (long long)args[i].number);
    }
  }
  put(l, "}}");
  pthread_mutex_lock(&t->lock);
  if (t->bytes < KILN_TIMELINE_BYTES) write_all(t, l);
  pthread_mutex_unlock(&t->lock);
}

void kiln_timeline_span(kiln_timeline *t, const char *category, const char *name, uint64_t began_ns,
                        int count, const kiln_timeline_arg *args) {
  if (!t) return;
  line l = {0};
  begin_event(&l, category, name, "X", began_ns);
  put_time(&l, "dur", kiln_now_ns() - began_ns);
  end_event(t, &l, count, args);
}

void kiln_timeline_mark(kiln_timeline *t, const char *category, const char *name, int count,
                        const kiln_timeline_arg *args) {
  if (!t) return;
  line l = {0};
  begin_event(&l, category, name, "i", kiln_now_ns());
  put(&l, ",\"s\":\"t\"");
  end_event(t, &l, count, args);
}
