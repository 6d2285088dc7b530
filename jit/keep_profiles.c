/* keep_profiles.c: what calls have seen, from files and for files. */
#include "jit/executor.h"

static kiln_status *open_profiles(kiln_jit *jit) {
  if (jit->profile_arena) return NULL;
  KILN_TRY(kiln_arena_create(jit->env.mem, &jit->profile_arena));
  jit->profiles = kiln_profile_file_in(jit->profile_arena);
  return NULL;
}

static kiln_status *read_profiles(kiln_jit *jit, const char *path) {
  KILN_TRY(open_profiles(jit));
  return kiln_profile_file_read(&jit->profiles, path);
}
static kiln_status *try_read(kiln_jit *jit, const char *path) {
  KILN_PROTECT(read_profiles(jit, path));
}

kiln_status *kiln_jit_read_profiles(kiln_jit *jit, const char *path) {
  KILN_TRY(kiln_job_lock_take(&jit->lock, NULL));
  kiln_status *status = try_read(jit, path);
  kiln_job_lock_give(&jit->lock);
  return status;
}

static void keep(kiln_profile_file *file, const kiln_executor *ex, const kiln_variant *v) {
  if (ex->site && v->profile && kiln_profile_is_ready(v->profile))
    kiln_profile_file_add(file, ex->site, v->profile->records, v->profile->count, 1);
}

static void keep_all(kiln_profile_file *file, const kiln_jit *jit) {
  for (const kiln_executor *ex = jit->now->executors.first; ex; ex = ex->next) {
    if (ex->building) keep(file, ex, ex->building);
    for (const kiln_variant *v = ex->variants; v; v = v->next) keep(file, ex, v);
  }
}

static kiln_status *keep_now(kiln_jit *jit) {
  KILN_TRY(open_profiles(jit));
  keep_all(&jit->profiles, jit);
  __atomic_store_n(&jit->has_kept_profiles, true, __ATOMIC_RELAXED);
  return NULL;
}
kiln_status *kiln__jit_keep_profiles(kiln_jit *jit) { KILN_PROTECT(keep_now(jit)); }

/* What was read for this model, or with `only_new` what the file has now: other processes may have
 * written it since. What is damaged goes. */
static kiln_status *write_profiles(kiln_jit *jit, const char *path, bool only_new) {
  kiln_arena *arena = kiln_arena_scoped(jit->env.mem);
  kiln_profile_file file = kiln_profile_file_in(arena);
  kiln_status *status = NULL;
  if (only_new) {
    kiln_status_destroy(kiln_profile_file_read(&file, path));
    file.changed = false;
    if (jit->has_kept_profiles) kiln_profile_file_add_all(&file, &jit->profiles);
  } else {
    kiln_profile_file_add_all(&file, &jit->profiles);
  }
  keep_all(&file, jit);
  if (file.changed || !only_new) status = kiln_profile_file_write(&file, path);
  kiln_arena_destroy(arena);
  return status;
}
static kiln_status *try_write(kiln_jit *jit, const char *path, bool only_new) {
  KILN_PROTECT(write_profiles(jit, path, only_new));
}

kiln_status *kiln_jit_write_profiles(kiln_jit *jit, const char *path, bool only_new) {
  KILN_TRY(kiln_job_lock_take(&jit->lock, NULL));
  kiln_status *status = try_write(jit, path, only_new);
  kiln_job_lock_give(&jit->lock);
  return status;
}
