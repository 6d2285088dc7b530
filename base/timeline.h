/* timeline.h: what happened when, for those who draw it and those who collect it.
 *
 * The flag `trace` names a file in the JSON that Chrome (about:tracing) and Perfetto draw: the
 * "JSON Array Format" of Google's "Trace Event Format" (2016):
 *   {"name":"forward","cat":"call","ph":"X","ts":12.250,"dur":3.125,"pid":7,"tid":7,"args":{…}}
 * The flag `events` names one of lines, an object each, which a host may get instead:
 *   {"time":1764329.250417,"event":"stall","name":"forward","waited_us":1520}
 * In the trace times are microseconds of kiln_now_ns, in lines seconds since 1970; a span has a
 * beginning and an end ("X", a bar; in lines `took_us`), a mark is one moment ("i").
 *
 * Threads of a context write to one file, each event at once, so that a process that is killed
 * leaves all of them: readers of a trace do not ask for the "]" of the end. Texts are cut at some
 * 480 bytes. A child of a fork is silent, and so is everybody once a file has KILN_TIMELINE_BYTES.
 * Where there is no timeline (NULL) nothing is done. */
#pragma once

#include "base/budget.h"
#include "base/str.h"

enum { KILN_TIMELINE_BYTES = 1 << 30, KILN_TIMELINE_ARGS = 6 };

/* X(event, where it is told, meaning) */
#define KILN_EVENTS(X)                                                                             \
  X(load, ALL, "A model was loaded, or could not be")                                              \
  X(unload, ALL, "A model has gone")                                                               \
  X(call, TRACE, "A call")                                                                         \
  X(failed, LINES, "A call ended in an error")                                                     \
  X(stall, ALL, "A call waited for the JIT longer than max_stall_us")                              \
  X(level, ALL, "A method or region went to another state: the next level begins, or is compiled") \
  X(compile, ALL, "A plan was made")                                                               \
  X(kernel, ALL, "A group's kernel was compiled, or found")                                        \
  X(llvm, ALL, "LLVM was opened, or unloaded")                                                     \
  X(guard, ALL, "A guard failed: what it expected and what came")                                  \
  X(retired, ALL, "A specialised plan was slower than the interpreter, which serves now")          \
  X(evicted, ALL,                                                                                  \
    "A kernel, or all that was made for a model, went for lack of room: see options")              \
  X(limit, ALL, "A limit of compiling was reached, and what there is goes on serving")             \
  X(warning, LINES, "A line of the log's channel warn")

enum { KILN_IN_TRACE = 1, KILN_IN_LINES = 2, KILN_IN_ALL = 3 };

typedef enum kiln_event {
#define KILN_EVENT_ENUM(name, where, meaning) KILN_EVENT_##name,
  KILN_EVENTS(KILN_EVENT_ENUM)
#undef KILN_EVENT_ENUM
      KILN_EVENT__COUNT
} kiln_event;

typedef struct kiln_timeline kiln_timeline;

/* Files of a trace and of lines, "" for none: KILN_INVALID_FILE where they cannot be written. A
 * trace that is there gives way, but for one that another context still writes: then the file is
 * FILE.2, or the next that is free. Lines are added at the file's end. */
kiln_status *kiln_timeline_create(const char *trace, const char *lines,
                                  kiln_timeline **out_timeline) KILN_MUST_USE;
void kiln_timeline_destroy(kiln_timeline *timeline);
/* Before any event: lines go to `fn` too, each without its end; NULL: to nobody. */
void kiln_timeline_set_fn(kiln_timeline *timeline, kiln_event_fn fn, void *user);

/* What is told of an event: a text, or a number where that is NULL. */
typedef struct kiln_timeline_arg {
  const char *name, *text;
  int64_t number;
} kiln_timeline_arg;

/* When a span begins; 0 without a timeline. */
static inline uint64_t kiln_timeline_now(const kiln_timeline *timeline) {
  return timeline ? kiln_now_ns() : 0;
}
/* A span that ends now. Names of args are words of ours, `name` is any text. */
void kiln_timeline_span(kiln_timeline *timeline, kiln_event event, const char *name,
                        uint64_t began_ns, int count, const kiln_timeline_arg *args);
void kiln_timeline_mark(kiln_timeline *timeline, kiln_event event, const char *name, int count,
                        const kiln_timeline_arg *args);
