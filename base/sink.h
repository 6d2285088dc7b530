/* sink.h: output sinks: a file that appears whole or not at all, or a function. */
#pragma once

#include "base/mem.h"

typedef struct kiln_sink {
  void *user;
  /* Takes all of the bytes, in order, or fails. */
  kiln_status *(*write)(void *user, const void *data, size_t size);
} kiln_sink;

static inline kiln_status *kiln_sink_put(const kiln_sink *sink, const void *data, size_t size) {
  return size > 0 ? sink->write(sink->user, data, size) : NULL;
}

/* Writes all of it to a descriptor, however often the system takes a part or a signal comes. False:
 * it cannot, by errno. */
bool kiln_write_all(int fd, const void *data, size_t size);

/* Runs body(sink, arg) on a new file beside `path`, and puts it in the place of `path` in one step
 * when all of it is on the disk: whatever fails, and whenever the machine stops, `path` is what it
 * was or what it shall be. So a file that is mapped may be written over. A symbolic link is
 * followed; what is no regular file (a pipe, /dev/stdout) is written as it comes. `body`
 * returns also when memory is short: it has its own scope. */
kiln_status *kiln_file_write(kiln_mem *mem, const char *path,
                             kiln_status *(*body)(const kiln_sink *sink, void *arg),
                             void *arg) KILN_MUST_USE;
