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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder.h"
#include "codegen/generator_version.h"
#include "codegen/tune.h"

enum { MOST_BYTES = 1 << 16 };

#define FAIL(...) return KILN_ERROR(KILN_INVALID_FILE, __VA_ARGS__)

static const char title[] = "; kiln schedule 1\n; of ";

/* -- Where -- */

void kiln__store_key(const kiln__tuner *tuner, kiln_digest kernel, char out_key[KILN__TUNE_KEY]) {
  const kiln_machine *m = tuner->machine;
  char hex[33];
  kiln_digest_format(kernel, hex);
  snprintf(out_key, KILN__TUNE_KEY,
           "%s, %s, lanes=%d registers=%d ports=%d masks=%d pairs=%d l1=%lld l2=%lld l3=%lld "
           "line=%lld fetch=%lld, threads=%d, kernel %s",
           kiln__generator_version, kiln_isa_name(tuner->env->isa), m->lanes, m->registers,
           m->ports, m->masks, m->pairs, (long long)m->l1_bytes, (long long)m->l2_bytes,
           (long long)m->l3_bytes, (long long)m->line_bytes, (long long)m->fetch_bytes,
           tuner->env->pool ? kiln_pool_threads(tuner->env->pool) : 1, hex);
}

static void name_file(const char *key, char out_name[KILN_FOLDER_NAME]) {
  char hex[33];
  kiln_digest_format(kiln_digest_bytes(key, strlen(key)), hex);
  snprintf(out_name, KILN_FOLDER_NAME, "%s.schedule", hex);
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

/* -- Reading -- */

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
  char key[KILN__TUNE_KEY], name[KILN_FOLDER_NAME];
  kiln_str text;
  if (!tuner->folder[0]) return KILN_ERROR(KILN_NOT_FOUND, "no folder");
  kiln__store_key(tuner, kernel, key);
  name_file(key, name);
  kiln_status *status = kiln_folder_read(tuner->folder, name, MOST_BYTES, arena, &text);
  if (!status) status = parse_file(tuner, text, key, fn, arena, out_schedule, out_about);
  return status ? kiln_status_note(status, "%s/%s", tuner->folder, name) : NULL;
}

/* -- Writing -- */

kiln_status *kiln__store_write(const kiln__tuner *tuner, kiln_digest kernel, kiln_str schedule,
                               const kiln_tuned *about, kiln_arena *scratch) {
  char key[KILN__TUNE_KEY], name[KILN_FOLDER_NAME];
  if (!tuner->folder[0]) FAIL("there is no folder: neither XDG_CACHE_HOME nor HOME is set");
  kiln__store_key(tuner, kernel, key);
  name_file(key, name);
  const kiln_str text = kiln_str_from(kiln_arena_printf(
      scratch, "%s%s\n; rules %lld ns, this %lld ns, of %d tried\n" KILN_STR_FMT, title, key,
      (long long)about->rule_ns, (long long)about->best_ns, about->tried, KILN_STR_ARG(schedule)));
  if (text.len > MOST_BYTES) FAIL("the schedule is too long");
  kiln_status *status = kiln_folder_write(tuner->folder, name, &text, 1);
  return status ? kiln_status_note(status, "%s/%s", tuner->folder, name) : NULL;
}
