/* timeline.c: events as JSON, each written at once. */
#include "base/timeline.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/flags.h"
#include "base/sink.h"

enum { LINE_BYTES = 8192, TEXT_BYTES = 480 }; /* room for a name and the args, all of quotes */
_Static_assert((1 + KILN_TIMELINE_ARGS) * (2 * TEXT_BYTES + 2) < LINE_BYTES - 1024, "a line");

static const struct {
  const char *name;
  int where;
} events[KILN_EVENT__COUNT] = {
#define EVENT(name, where, meaning) {#name, KILN_IN_##where},
    KILN_EVENTS(EVENT)
#undef EVENT
};

typedef struct sink {
  int fd;        /* -1: there is none */
  int64_t bytes; /* that were written */
} sink;

struct kiln_timeline {
  pid_t maker;
  pthread_mutex_t lock; /* of both */
  sink trace, lines;
  kiln_event_fn fn; /* gets lines too; NULL: nobody */
  void *user;
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

static void write_all(sink *s, const line *l) {
  if (s->fd < 0 || s->bytes >= KILN_TIMELINE_BYTES) return;
  if (kiln_write_all(s->fd, l->text, l->used))
    s->bytes += (int64_t)l->used; /* or the disk is full: the line is lost */
}

/* -- Life -- */

static kiln_status *open_sink(const char *flag, const char *path, int mode, sink *out) {
  out->fd = *path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0666) : -1;
  if (out->fd >= 0 || !*path) return NULL;
  return KILN_ERROR(KILN_INVALID_FILE, "option %s: cannot write '%s': %s", flag, path,
                    strerror(errno));
}

/* Whether another context, of any process, writes a trace to this file; else it is locked until it
 * is closed. Of what is no file, and where there are no locks, that is not known. */
static bool is_taken(int fd) {
  struct stat s;
  return fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && flock(fd, LOCK_EX | LOCK_NB) != 0 &&
         errno == EWOULDBLOCK;
}

/* The first of FILE, FILE.2, FILE.3, … that is free; its old text goes. */
static kiln_status *open_trace(const char *path, sink *out) {
  enum { MOST_FILES = 1000 };
  char name[KILN_FLAG_STRING_MAX + 8];
  snprintf(name, sizeof name, "%s", path);
  KILN_TRY(open_sink("trace", name, 0, out));
  for (int i = 2; i <= MOST_FILES && out->fd >= 0 && is_taken(out->fd); i++) {
    close(out->fd);
    snprintf(name, sizeof name, "%s.%d", path, i);
    KILN_TRY(open_sink("trace", name, 0, out));
  }
  if (out->fd >= 0) (void)!ftruncate(out->fd, 0); /* a pipe has no text */
  return NULL;
}

kiln_status *kiln_timeline_create(const char *trace, const char *lines, kiln_timeline **out) {
  kiln_timeline *t = calloc(1, sizeof *t);
  if (!t) return kiln_status_oom();
  *t = (kiln_timeline){.maker = getpid(), .trace.fd = -1, .lines.fd = -1};
  pthread_mutex_init(&t->lock, NULL);
  kiln_status *status = open_trace(trace, &t->trace);
  if (!status) status = open_sink("events", lines, O_APPEND, &t->lines);
  if (status) {
    kiln_timeline_destroy(t);
    return status;
  }
  line first = {0};
  put(&first, "[{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%ld,\"args\":{\"name\":\"kiln\"}}",
      (long)t->maker);
  write_all(&t->trace, &first);
  *out = t;
  return NULL;
}

void kiln_timeline_destroy(kiln_timeline *t) {
  if (!t) return;
  const line last = {.used = 3, .text = "\n]\n"};
  if (getpid() == t->maker) write_all(&t->trace, &last);
  if (t->trace.fd >= 0) close(t->trace.fd);
  if (t->lines.fd >= 0) close(t->lines.fd);
  pthread_mutex_destroy(&t->lock);
  free(t);
}

void kiln_timeline_set_fn(kiln_timeline *t, kiln_event_fn fn, void *user) {
  t->fn = fn;
  t->user = user;
}

/* -- Events -- */

static void put_args(line *l, const char *before, int count, const kiln_timeline_arg *args) {
  for (int i = 0; i < count; i++) {
    put(l, "%s\"%s\":", i ? "," : before, args[i].name);
    if (args[i].text) {
      put_text(l, args[i].text);
    } else {
      put(l, "%lld", (long long)args[i].number);
    }
  }
}

typedef struct happening {
  kiln_event event;
  const char *name;
  uint64_t began_ns, took_ns;
  bool is_span;
  int count;
  const kiln_timeline_arg *args;
} happening;

static void draw(kiln_timeline *t, const happening *h) {
  line l = {0};
  put(&l, ",\n{\"name\":");
  put_text(&l, h->name);
  put(&l, ",\"cat\":\"%s\",\"ph\":\"%s\"", events[h->event].name, h->is_span ? "X" : "i");
  put_time(&l, "ts", h->began_ns);
  if (h->is_span)
    put_time(&l, "dur", h->took_ns);
  else
    put(&l, ",\"s\":\"t\"");
  put(&l, ",\"pid\":%ld,\"tid\":%ld,\"args\":{", (long)t->maker, syscall(SYS_gettid));
  put_args(&l, "", h->count, h->args);
  put(&l, "}}");
  pthread_mutex_lock(&t->lock);
  write_all(&t->trace, &l);
  pthread_mutex_unlock(&t->lock);
}

static void tell(kiln_timeline *t, const happening *h) {
  line l = {0};
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  put(&l, "{\"time\":%lld.%06ld,\"event\":\"%s\",\"name\":", (long long)now.tv_sec,
      now.tv_nsec / 1000, events[h->event].name);
  put_text(&l, h->name);
  if (h->is_span) put(&l, ",\"took_us\":%llu", (unsigned long long)(h->took_ns / 1000));
  put_args(&l, ",", h->count, h->args);
  put(&l, "}");
  if (t->fn) t->fn(t->user, l.text);
  put(&l, "\n");
  pthread_mutex_lock(&t->lock);
  write_all(&t->lines, &l);
  pthread_mutex_unlock(&t->lock);
}

static void happens(kiln_timeline *t, const happening *h) {
  KILN_ASSERT(h->count <= KILN_TIMELINE_ARGS);
  const int where = events[h->event].where;
  const bool draws = (where & KILN_IN_TRACE) && t->trace.fd >= 0;
  const bool tells = (where & KILN_IN_LINES) && (t->lines.fd >= 0 || t->fn);
  if (!(draws || tells) || getpid() != t->maker) return;
  if (draws) draw(t, h);
  if (tells) tell(t, h);
}

void kiln_timeline_span(kiln_timeline *t, kiln_event event, const char *name, uint64_t began_ns,
                        int count, const kiln_timeline_arg *args) {
  if (!t) return;
  happens(t, &(happening){event, name, began_ns, kiln_now_ns() - began_ns, true, count, args});
}

void kiln_timeline_mark(kiln_timeline *t, kiln_event event, const char *name, int count,
                        const kiln_timeline_arg *args) {
  if (!t) return;
  happens(t, &(happening){event, name, kiln_now_ns(), 0, false, count, args});
}
