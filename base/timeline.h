/* timeline.h: what happened when, in the JSON that Chrome (about:tracing) and Perfetto draw: the
 * "JSON Array Format" of Google's "Trace Event Format" (2016). The flag `trace` names the file:
 *
 *   {"name":"forward","cat":"call","ph":"X","ts":12.250,"dur":3.125,"pid":7,"tid":7,"args":{…}}
 *
 * A span has a beginning and an end ("X", a bar), a mark is one moment ("i"). Times are
 * microseconds of kiln_now_ns. Threads of a context write to one file, each event at once, so that
 * a process that is killed leaves all of them: readers do not ask for the "]" of the end. Texts are
 * cut at some 480 bytes. A child of a fork is silent, and so is everybody once the file has
 * KILN_TIMELINE_BYTES. Where there is no timeline (NULL) nothing is done. */
#pragma once

#include "base/budget.h"
#include "base/str.h"

enum { KILN_TIMELINE_BYTES = 1 << 30, KILN_TIMELINE_ARGS = 6 };

typedef struct kiln_timeline kiln_timeline;

/* KILN_INVALID_FILE where the path cannot be written; a file that is there gives way. */
kiln_status *kiln_timeline_create(const char *path, kiln_timeline **out_timeline) KILN_MUST_USE;
void kiln_timeline_destroy(kiln_timeline *timeline);

/* What is told of an event: a text, or a number where that is NULL. */
typedef struct kiln_timeline_arg {
  const char *name, *text;
  int64_t number;
} kiln_timeline_arg;

/* When a span begins; 0 without a timeline. */
static inline uint64_t kiln_timeline_now(const kiln_timeline *timeline) {
  return timeline ? kiln_now_ns() : 0;
}
/* A span that ends now. `category` and names of args are words of ours, `name` is any text. */
void kiln_timeline_span(kiln_timeline *timeline, const char *category, const char *name,
                        uint64_t began_ns, int count, const kiln_timeline_arg *args);
void kiln_timeline_mark(kiln_timeline *timeline, const char *category, const char *name, int count,
                        const kiln_timeline_arg *args);
