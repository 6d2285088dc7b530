/* folder.c: files of the user's own, read, written and removed. */
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/scope.h"
#include "base/sink.h"

#define FAIL(...) return KILN_ERROR(KILN_INVALID_FILE, __VA_ARGS__)

/* -- Whose -- */

/* Why somebody else could have written it, or NULL. The administrator may. */
static const char *distrust(const struct stat *s) {
  if (s->st_uid != geteuid() && s->st_uid != 0) return "it is another user's";
  if (s->st_mode & (S_IWGRP | S_IWOTH)) return "others may write to it";
  return NULL;
}

/* *out_folder: -1: there is none. */
static kiln_status *open_folder(const char *path, int *out_folder) {
  struct stat s;
  *out_folder = -1;
  const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return NULL;
  if (fd < 0) FAIL("%s: %s", path, strerror(errno));
  const char *why = fstat(fd, &s) != 0 ? strerror(errno) : distrust(&s);
  if (!why) {
    *out_folder = fd;
    return NULL;
  }
  close(fd);
  FAIL("%s is not used: %s", path, why);
}

/* With all that it lies in. */
static kiln_status *make_folder(const char *path) {
  char part[KILN_FOLDER_PATH];
  snprintf(part, sizeof part, "%s", path);
  for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
    if (slash) *slash = 0;
    if (mkdir(part, 0700) != 0 && errno != EEXIST) FAIL("%s: %s", part, strerror(errno));
    if (!slash) return NULL;
    *slash = '/';
  }
}

/* -- Reading -- */

/* *out_size: what was read, at most `most`. */
static kiln_status *read_all(int fd, char *to, size_t most, size_t *out_size) {
  for (*out_size = 0; *out_size < most;) {
    const ssize_t got = read(fd, to + *out_size, most - *out_size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) FAIL("%s", strerror(errno));
    if (got == 0) break;
    *out_size += (size_t)got;
  }
  return NULL;
}

static kiln_status *read_open(int fd, size_t most, kiln_arena *arena, kiln_str *out_text) {
  struct stat s;
  if (fstat(fd, &s) != 0) FAIL("%s", strerror(errno));
  const char *why = S_ISREG(s.st_mode) ? distrust(&s) : "it is no file";
  if (why) FAIL("%s", why);
  if (s.st_size <= 0 || (uint64_t)s.st_size > most) FAIL("it has %lld bytes", (long long)s.st_size);
  char *text = kiln_arena_alloc(arena, (size_t)s.st_size);
  size_t size;
  KILN_TRY(read_all(fd, text, (size_t)s.st_size, &size));
  *out_text = kiln_str_make(text, size);
  return NULL;
}

/* An arena's scope may be left here. */
static kiln_status *try_read_open(int fd, size_t most, kiln_arena *arena, kiln_str *out_text) {
  KILN_PROTECT(read_open(fd, most, arena, out_text));
}

kiln_status *kiln_folder_read(const char *folder, const char *name, size_t most, kiln_arena *arena,
                              kiln_str *out_text) {
  int in;
  KILN_TRY(open_folder(folder, &in));
  if (in < 0) return KILN_ERROR(KILN_NOT_FOUND, "no folder");
  const int fd = openat(in, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  const int error = errno;
  close(in);
  if (fd < 0 && error == ENOENT) return KILN_ERROR(KILN_NOT_FOUND, "no file");
  if (fd < 0) FAIL("%s", strerror(error));
  kiln_status *status = try_read_open(fd, most, arena, out_text);
  close(fd);
  return status;
}

/* -- Writing -- */

static kiln_status *write_all(int fd, kiln_str text) {
  if (!kiln_write_all(fd, text.data, text.len)) FAIL("%s", strerror(errno));
  return NULL;
}

/* Under a name that no other thread or process has; with the same end, so that what a process that
 * died has left goes with the old files. */
static kiln_status *write_in(int folder, const char *name, const kiln_str *parts, int part_count) {
  char temporary[2 * KILN_FOLDER_NAME];
  snprintf(temporary, sizeof temporary, "%ld.%llx.%s", (long)getpid(),
           (unsigned long long)kiln_now_ns(), name);
  const int fd =
      openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) FAIL("%s", strerror(errno));
  kiln_status *status = NULL;
  for (int i = 0; !status && i < part_count; i++) status = write_all(fd, parts[i]);
  if (close(fd) != 0 && !status) status = KILN_ERROR(KILN_INVALID_FILE, "%s", strerror(errno));
  if (!status && renameat(folder, temporary, folder, name) != 0)
    status = KILN_ERROR(KILN_INVALID_FILE, "%s", strerror(errno));
  if (status) (void)unlinkat(folder, temporary, 0);
  return status;
}

kiln_status *kiln_folder_write(const char *folder, const char *name, const kiln_str *parts,
                               int part_count) {
  int in;
  KILN_TRY(make_folder(folder));
  KILN_TRY(open_folder(folder, &in));
  if (in < 0) FAIL("%s is gone", folder);
  kiln_status *status = write_in(in, name, parts, part_count);
  close(in);
  return status;
}

/* -- Old files -- */

void kiln_folder_touch(const char *folder, const char *name) {
  const int in = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (in < 0) return;
  (void)utimensat(in, name, NULL, AT_SYMLINK_NOFOLLOW);
  close(in);
}

static int by_use(const void *a, const void *b) {
  const kiln_folder_file *x = a, *y = b;
  return (x->used_ns > y->used_ns) - (x->used_ns < y->used_ns);
}

static void list_files(DIR *folder, const char *suffix, kiln_arena *arena, kiln_folder_files *out) {
  enum { SECOND_NS = 1000000000 };
  struct stat s;
  for (const struct dirent *entry; (entry = readdir(folder));) {
    const size_t len = strlen(entry->d_name), end = strlen(suffix);
    if (len < end || strcmp(entry->d_name + len - end, suffix) != 0 ||
        fstatat(dirfd(folder), entry->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode))
      continue;
    const kiln_folder_file f = {.name = kiln_arena_strdup(arena, entry->d_name),
                                .used_ns = s.st_mtim.tv_sec * SECOND_NS + s.st_mtim.tv_nsec,
                                .bytes = (uint64_t)s.st_size};
    kiln_vec_push(arena, out, f);
  }
}

static void close_folder(void *folder) { closedir(folder); }

kiln_status *kiln_folder_list(const char *path, const char *suffix, kiln_arena *arena,
                              kiln_folder_files *out) {
  int in;
  KILN_TRY(open_folder(path, &in));
  if (in < 0) return NULL;
  DIR *folder = fdopendir(in);
  if (!folder) {
    close(in);
    FAIL("%s: %s", path, strerror(errno));
  }
  kiln_cleanup closing;
  kiln_scope_defer(&closing, close_folder, folder);
  list_files(folder, suffix, arena, out);
  kiln_scope_undefer(&closing);
  closedir(folder);
  if (out->count > 0) qsort(out->data, (size_t)out->count, sizeof *out->data, by_use);
  return NULL;
}

bool kiln_folder_remove(const char *path, const char *name) {
  const int in = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (in < 0) return false;
  const bool gone = unlinkat(in, name, 0) == 0;
  close(in);
  return gone;
}

uint64_t kiln_folder_trim(const char *path, const char *suffix, uint64_t bytes, kiln_arena *scratch,
                          int *out_removed) {
  kiln_folder_files files = {0};
  uint64_t left = 0;
  *out_removed = 0;
  kiln_status_destroy(kiln_folder_list(path, suffix, scratch, &files));
  for (int i = 0; i < files.count; i++) left += files.data[i].bytes;
  for (int i = 0; left > bytes && i < files.count; i++) {
    if (!kiln_folder_remove(path, files.data[i].name)) continue;
    left -= files.data[i].bytes;
    ++*out_removed;
  }
  return left;
}
