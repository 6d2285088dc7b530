/* tune_store.c: schedules in files: one for each kernel, in a folder of the user's.
 *
 *   ; kiln schedule 1
 *   ; of generator 0123456789abcdef, kiln_k4_, avx2, lanes=8 ..., threads=1, kernel 7b9e...
 *   ; rules 41020 ns, this 34100 ns, of 16 tried
 *   schedule {
 *     nest 0: panel i1 16, pack b1, tile i0 6
 *   }
 *
 * The file's name is the digest of the second line. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codegen/generator_version.h"
#include "codegen/tune.h"

enum { MOST_BYTES = 1 << 16, NAME = 64 };

#define FAIL(...) return KILN_ERROR(KILN_INVALID_FILE, __VA_ARGS__)

static const char title[] = "; kiln schedule 1\n; of ";

/* -- Where -- */

void kiln__store_key(const kiln__tuner *tuner, kiln_digest kernel, char out_key[KILN__TUNE_KEY]) {
  const kiln_machine *m = tuner->machine;
  char hex[33];
  kiln_digest_format(kernel, hex);
  snprintf(out_key, KILN__TUNE_KEY,
           "%s, %s, lanes=%d registers=%d ports=%d masks=%d pairs=%d l1=%lld l2=%lld l3=%lld "
           "line=%lld, threads=%d, kernel %s",
           kiln__generator_version, kiln_isa_name(tuner->env->isa), m->lanes, m->registers,
           m->ports, m->masks, m->pairs, (long long)m->l1_bytes, (long long)m->l2_bytes,
           (long long)m->l3_bytes, (long long)m->line_bytes,
           tuner->env->pool ? kiln_pool_threads(tuner->env->pool) : 1, hex);
}

static void name_file(const char *key, char out_name[NAME]) {
  char hex[33];
  kiln_digest_format(kiln_digest_bytes(key, strlen(key)), hex);
  snprintf(out_name, NAME, "%s.schedule", hex);
}

void kiln__store_folder(kiln__tuner *tuner) {
  const char *given = tuner->env->flags.autotune_dir.text;
  const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
  int len = 0;
  if (*given) {
    len = snprintf(tuner->folder, sizeof tuner->folder, "%s", given);
  } else if (cache && *cache == '/') {
    len = snprintf(tuner->folder, sizeof tuner->folder, "%s/kiln/autotune", cache);
  } else if (home && *home == '/') {
    len = snprintf(tuner->folder, sizeof tuner->folder, "%s/.cache/kiln/autotune", home);
  }
  if (len <= 0 || len >= (int)sizeof tuner->folder) tuner->folder[0] = 0;
}

/* -- Whose -- */

/* Why somebody else could have written it, or NULL. */
static const char *distrust(const struct stat *s) {
  if (s->st_uid != geteuid()) return "it is another user's";
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
  char part[KILN__TUNE_PATH];
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

static kiln_status *read_open(int fd, kiln_arena *arena, kiln_str *out_text) {
  struct stat s;
  if (fstat(fd, &s) != 0) FAIL("%s", strerror(errno));
  const char *why = S_ISREG(s.st_mode) ? distrust(&s) : "it is no file";
  if (why) FAIL("%s", why);
  if (s.st_size <= 0 || s.st_size > MOST_BYTES) FAIL("it has %lld bytes", (long long)s.st_size);
  char *text = kiln_arena_alloc(arena, MOST_BYTES);
  size_t size;
  KILN_TRY(read_all(fd, text, MOST_BYTES, &size));
  *out_text = kiln_str_make(text, size);
  return NULL;
}

/* An arena's scope may be left here. */
static kiln_status *try_read_open(int fd, kiln_arena *arena, kiln_str *out_text) {
  KILN_PROTECT(read_open(fd, arena, out_text));
}

static kiln_status *read_file(const char *folder, const char *name, kiln_arena *arena,
                              kiln_str *out_text) {
  int in;
  KILN_TRY(open_folder(folder, &in));
  if (in < 0) return KILN_ERROR(KILN_NOT_FOUND, "no folder");
  const int fd = openat(in, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  const int error = errno;
  close(in);
  if (fd < 0 && error == ENOENT) return KILN_ERROR(KILN_NOT_FOUND, "no file");
  if (fd < 0) FAIL("%s", strerror(error));
  kiln_status *status = try_read_open(fd, arena, out_text);
  close(fd);
  return status;
}

static bool take_number(kiln_cursor *c, const char *before, const char *behind, int64_t *out) {
  return kiln_cursor_accept(c, before) &&
         kiln_str_parse_i64(kiln_cursor_take(c, kiln_is_digit), out) &&
         kiln_cursor_accept(c, behind);
}

/* The lines before the schedule. */
static kiln_status *parse_head(kiln_str text, const char *key, kiln_tuned *out) {
  kiln_cursor cursor = kiln_cursor_of(text), *c = &cursor;
  int64_t tried;
  if (!kiln_cursor_accept(c, title)) FAIL("it is no schedule of Kiln's");
  if (!kiln_str_starts(kiln_cursor_rest(c), key)) FAIL("it is of another kernel, machine or Kiln");
  c->at += strlen(key);
  if (kiln_cursor_peek(c) != '\n') FAIL("it is of another kernel, machine or Kiln");
  *out = (kiln_tuned){.is_known = true};
  if (!take_number(c, "; rules ", "ns", &out->rule_ns) ||
      !take_number(c, ", this ", "ns", &out->best_ns) ||
      !take_number(c, ", of ", "tried\n", &tried) || tried > INT32_MAX)
    FAIL("its times cannot be read");
  out->tried = (int)tried;
  return NULL;
}

/* Which the head does not tell from comments. */
static kiln_status *parse_file(const kiln__tuner *tuner, kiln_str text, const char *key,
                               const kiln_loop_fn *fn, kiln_arena *arena,
                               kiln_schedule *out_schedule, kiln_tuned *out_about) {
  KILN_TRY(parse_head(text, key, out_about));
  KILN_TRY(kiln_schedule_parse(text, fn, arena, out_schedule));
  const kiln_schedule rules = kiln_schedule_choose(fn, tuner->machine, arena);
  const char *why = kiln_schedule_beyond(out_schedule, &rules);
  if (why) FAIL("%s", why);
  return NULL;
}

kiln_status *kiln__store_read(const kiln__tuner *tuner, kiln_digest kernel, const kiln_loop_fn *fn,
                              kiln_arena *arena, kiln_schedule *out_schedule,
                              kiln_tuned *out_about) {
  char key[KILN__TUNE_KEY], name[NAME];
  kiln_str text;
  if (!tuner->folder[0]) return KILN_ERROR(KILN_NOT_FOUND, "no folder");
  kiln__store_key(tuner, kernel, key);
  name_file(key, name);
  kiln_status *status = read_file(tuner->folder, name, arena, &text);
  if (!status) status = parse_file(tuner, text, key, fn, arena, out_schedule, out_about);
  return status ? kiln_status_note(status, "%s/%s", tuner->folder, name) : NULL;
}

/* -- Writing -- */

static kiln_status *write_all(int fd, kiln_str text) {
  for (size_t done = 0; done < text.len;) {
    const ssize_t put = write(fd, text.data + done, text.len - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) FAIL("%s", strerror(errno));
    done += (size_t)put;
  }
  return NULL;
}

/* Under a name that no other thread or process has. */
static kiln_status *write_in(int folder, const char *name, kiln_str text) {
  char temporary[2 * NAME];
  snprintf(temporary, sizeof temporary, "%s.%ld.%llx", name, (long)getpid(),
           (unsigned long long)kiln_now_ns());
  const int fd =
      openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) FAIL("%s", strerror(errno));
  kiln_status *status = write_all(fd, text);
  if (close(fd) != 0 && !status) status = KILN_ERROR(KILN_INVALID_FILE, "%s", strerror(errno));
  if (!status && renameat(folder, temporary, folder, name) != 0)
    status = KILN_ERROR(KILN_INVALID_FILE, "%s", strerror(errno));
  if (status) (void)unlinkat(folder, temporary, 0);
  return status;
}

kiln_status *kiln__store_write(const kiln__tuner *tuner, kiln_digest kernel, kiln_str schedule,
                               const kiln_tuned *about, kiln_arena *scratch) {
  char key[KILN__TUNE_KEY], name[NAME];
  int folder;
  if (!tuner->folder[0]) FAIL("there is no folder: neither XDG_CACHE_HOME nor HOME is set");
  kiln__store_key(tuner, kernel, key);
  name_file(key, name);
  const kiln_str text = kiln_str_from(kiln_arena_printf(
      scratch, "%s%s\n; rules %lld ns, this %lld ns, of %d tried\n" KILN_STR_FMT, title, key,
      (long long)about->rule_ns, (long long)about->best_ns, about->tried, KILN_STR_ARG(schedule)));
  if (text.len > MOST_BYTES) FAIL("the schedule is too long");
  KILN_TRY(make_folder(tuner->folder));
  KILN_TRY(open_folder(tuner->folder, &folder));
  if (folder < 0) FAIL("%s is gone", tuner->folder);
  kiln_status *status = write_in(folder, name, text);
  close(folder);
  return status ? kiln_status_note(status, "%s/%s", tuner->folder, name) : NULL;
}
