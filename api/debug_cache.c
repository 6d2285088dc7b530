/* debug_cache.c: what `kiln cache` stands on: the kernels that are kept in files. */
#include <inttypes.h>
#include <stdio.h>

#include "api/internal.h"
#include "codegen/codegen.h"
#include "codegen/object_store.h"
#include "kiln/debug.h"

static kiln_status *store_of(kiln_context *context, kiln__object_store **out_store) {
  *out_store = context->codegen ? kiln__codegen_store(context->codegen) : NULL;
  if (*out_store && *(*out_store)->folder) return NULL;
  return KILN_ERROR(KILN_INVALID_ARGUMENT,
                    "kernels are kept in no files: the option cache_dir names no folder");
}

/* -- The files -- */

typedef struct listing {
  kiln__object_store *store;
  kiln_debug_row_fn row;
  void *user;
} listing;

static kiln_status *list(const listing *l) {
  kiln_arena *arena = kiln_arena_scoped(l->store->env->mem);
  kiln__object_files files = {0};
  KILN_TRY(kiln__object_store_list(l->store, arena, &files));
  KILN__ROW(l->row, l->user, "file", "bytes", "used", "cpu", "kernel", "group", "unused",
            "useless");
  for (int i = 0; i < files.count; i++) {
    const kiln__object_file *f = &files.data[i];
    char bytes[24], used[24];
    snprintf(bytes, sizeof bytes, "%" PRIu64, f->file.bytes);
    snprintf(used, sizeof used, "%" PRId64, f->file.used_ns / 1000000000);
    KILN__ROW(l->row, l->user, f->file.name, bytes, used, f->isa, f->kernel, f->group,
              f->why ? f->why : "", f->is_useless ? "yes" : "");
  }
  kiln_arena_destroy(arena);
  return NULL;
}
static kiln_status *try_list(const listing *l) { KILN_PROTECT(list(l)); }

kiln_status *kiln_debug_cache(kiln_context *context, kiln_debug_row_fn row, void *user) {
  KILN_NEEDS(context && row);
  listing l = {.row = row, .user = user};
  KILN_TRY(store_of(context, &l.store));
  return try_list(&l);
}

kiln_status *kiln_debug_cache_prune(kiln_context *context, uint64_t bytes, int *out_removed) {
  KILN_NEEDS(context && out_removed);
  kiln__object_store *store;
  KILN_TRY(store_of(context, &store));
  return kiln__object_store_prune(store, bytes, out_removed);
}

/* -- Why it is compiled -- */

kiln_status *kiln_debug_cache_watch(kiln_context *context) {
  KILN_NEEDS(context);
  kiln__object_store *store;
  KILN_TRY(store_of(context, &store));
  kiln__object_store_watch(store);
  return NULL;
}

/* Of what was kept of the same group. */
static const char *explain(const kiln__object_lookup *lookup, const kiln__object_files *files) {
  const char *why = lookup->why;
  if (!why || *why) return why ? why : "";
  why = "none was kept: the group or its shapes are new, or it was pruned";
  for (int i = 0; i < files->count; i++) {
    const kiln__object_file *f = &files->data[i];
    if (strcmp(f->group, lookup->name.group) != 0) continue;
    if (f->why && f->is_useless)
      why = "what was kept of its group is damaged, or another Kiln's";
    else if (f->why)
      return "what was kept of its group is for another CPU";
    else
      return "what was kept of its group has another schedule: of another machine, or autotune's";
  }
  return why;
}

static kiln_status *tell_lookups(const listing *l) {
  kiln_arena *arena = kiln_arena_scoped(l->store->env->mem);
  kiln__object_files files = {0};
  KILN_TRY(kiln__object_store_list(l->store, arena, &files));
  KILN__ROW(l->row, l->user, "group", "kernel", "found", "why");
  for (int i = 0; i < l->store->lookups.count; i++) {
    const kiln__object_lookup *lookup = &l->store->lookups.data[i];
    KILN__ROW(l->row, l->user, lookup->name.group, lookup->name.kernel, lookup->why ? "" : "yes",
              explain(lookup, &files));
  }
  kiln_arena_destroy(arena);
  return NULL;
}
static kiln_status *try_tell(const listing *l) { KILN_PROTECT(tell_lookups(l)); }

kiln_status *kiln_debug_cache_lookups(kiln_context *context, kiln_debug_row_fn row, void *user) {
  KILN_NEEDS(context && row);
  listing l = {.row = row, .user = user};
  KILN_TRY(store_of(context, &l.store));
  pthread_mutex_lock(&l.store->lock);
  kiln_status *status = try_tell(&l);
  pthread_mutex_unlock(&l.store->lock);
  return status;
}
