/* sink.c: files that are written whole or not at all: a temporary file beside the place, synced,
 * then renamed. */
#include "base/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_SIZE = 1 << 16, MAX_TRIES = 100 };

typedef struct file_sink {
  const char *path; /* for errors */
  int fd;
  size_t used;
  char buffer[BUFFER_SIZE];
} file_sink;

static kiln_status *fail(const char *path) {
  return KILN_ERROR(KILN_INVALID_FILE, "cannot write '%s': %s", path, strerror(errno));
}

bool kiln_write_all(int fd, const void *data, size_t size) {
  for (const char *at = data; size > 0;) {
    const ssize_t n = write(fd, at, size > (1u << 30) ? 1u << 30 : size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

static kiln_status *write_all(const file_sink *f, const char *data, size_t size) {
  return kiln_write_all(f->fd, data, size) ? NULL : fail(f->path);
}

static kiln_status *flush(file_sink *f) {
  size_t used = f->used;
  f->used = 0;
  return write_all(f, f->buffer, used);
}

/* What does not fit the buffer goes to the file from where it lies. */
static kiln_status *put(void *user, const void *data, size_t size) {
  file_sink *f = user;
  if (size > BUFFER_SIZE - f->used) KILN_TRY(flush(f));
  if (size >= BUFFER_SIZE) return write_all(f, data, size);
  memcpy(f->buffer + f->used, data, size);
  f->used += size;
  return NULL;
}

static kiln_status *run_body(file_sink *f, kiln_status *(*body)(const kiln_sink *, void *),
                             void *arg) {
  const kiln_sink sink = {f, put};
  KILN_TRY(body(&sink, arg));
  return flush(f);
}

/* A new file "<path>.tmp<number>"; `out_name` holds PATH_MAX bytes. */
static kiln_status *create_beside(const char *path, mode_t mode, char *out_name, int *out_fd) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  unsigned long number = (unsigned long)now.tv_nsec ^ ((unsigned long)getpid() << 16);
  for (int i = 0; i < MAX_TRIES; i++) {
    int n = snprintf(out_name, PATH_MAX, "%s.tmp%lx", path, number + (unsigned long)i);
    if (n < 0 || n >= PATH_MAX) {
      errno = ENAMETOOLONG;
      return fail(path);
    }
    *out_fd = open(out_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (*out_fd >= 0) return NULL;
    if (errno != EEXIST) return fail(path);
  }
  return fail(path);
}

/* So that the rename too is on the disk; a folder that cannot be synced is no error. */
static void sync_folder(const char *path) {
  char folder[PATH_MAX];
  const char *slash = strrchr(path, '/');
  size_t len = slash ? (size_t)(slash - path) : 0;
  if (slash && len >= sizeof folder) return;
  if (len > 0) memcpy(folder, path, len);
  folder[len] = 0;
  int fd = open(len > 0 ? folder : slash ? "/" : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fsync(fd);
  close(fd);
}

static kiln_status *replace_file(const char *path, const struct stat *old, file_sink *f,
                                 kiln_status *(*body)(const kiln_sink *, void *), void *arg) {
  char temporary[PATH_MAX];
  KILN_TRY(create_beside(path, 0666, temporary, &f->fd));
  kiln_status *status = NULL;
  if (old && fchmod(f->fd, old->st_mode & 07777) != 0) status = fail(path);
  if (!status) status = run_body(f, body, arg);
  if (!status && fsync(f->fd) != 0) status = fail(path);
  if (close(f->fd) != 0 && !status) status = fail(path);
  if (!status && rename(temporary, path) != 0) status = fail(path);
  if (status) {
    unlink(temporary);
    return status;
  }
  sync_folder(path);
  return NULL;
}

static kiln_status *write_through(const char *path, file_sink *f,
                                  kiln_status *(*body)(const kiln_sink *, void *), void *arg) {
  f->fd = open(path, O_WRONLY | O_CLOEXEC);
  if (f->fd < 0) return fail(path);
  kiln_status *status = run_body(f, body, arg);
  if (close(f->fd) != 0 && !status) status = fail(path);
  return status;
}

kiln_status *kiln_file_write(kiln_mem *mem, const char *path,
                             kiln_status *(*body)(const kiln_sink *sink, void *arg), void *arg) {
  struct stat old;
  bool exists = stat(path, &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) {
    errno = EISDIR;
    return fail(path);
  }
  file_sink *f = kiln_mem_alloc(mem, sizeof *f);
  if (!f) return kiln_status_oom();
  f->path = path;
  f->used = 0;
  kiln_status *status;
  if (exists && !S_ISREG(old.st_mode)) {
    status = write_through(path, f, body, arg);
  } else {
    char target[PATH_MAX];
    bool resolved = exists && realpath(path, target);
    status = replace_file(resolved ? target : path, exists ? &old : NULL, f, body, arg);
  }
  kiln_mem_free(mem, f, sizeof *f);
  return status;
}
