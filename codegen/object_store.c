/* object_store.c: kernels in files: one for each, in a folder of the user's.
 *
 *   kiln kernel 2
 *   generator 0123456789abcdef, kiln_k4_; avx512; kiln_k4_7b9e...; 5c4a...
 *   0123456789abcdef0123456789abcdef
 *
 * and then the object, of which the third line is the digest. The file's name is the digest of the
 * second line. */
#include "codegen/object_store.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/hash.h"
#include "base/job_lock.h"
#include "codegen/generator_version.h"

enum { MOST_BYTES = 64 << 20, KEY = 256, HEAD = KEY + 64 };
static const char title[] = "kiln kernel 2\n", suffix[] = ".kernel";

void kiln__object_store_init(kiln__object_store *store, kiln_env *env) {
  *store = (kiln__object_store){.env = env,
                                .folder = env->flags.cache_dir.text,
                                .most = (uint64_t)env->flags.cache_size,
                                .maker = getpid()};
  pthread_mutex_init(&store->lock, NULL);
}
void kiln__object_store_deinit(kiln__object_store *store) {
  kiln_arena_destroy(store->arena);
  pthread_mutex_destroy(&store->lock);
}

static void make_key(const kiln__object_store *store, const kiln__object_name *name,
                     char out_key[KEY], char out_name[KILN_FOLDER_NAME]) {
  char hex[33];
  snprintf(out_key, KEY, "%s; %s%s; %s; %s", kiln__generator_version,
           kiln_isa_name(store->env->isa), store->env->flags.gdb ? " gdb" : "", name->kernel,
           name->group);
  kiln_digest_format(kiln_digest_bytes(out_key, strlen(out_key)), hex);
  snprintf(out_name, KILN_FOLDER_NAME, "%s%s", hex, suffix);
}

static void warn(const kiln__object_store *store, kiln_status *status, const char *what) {
  if (status)
    KILN_LOG(&store->env->log, warn, 1, "cache_dir: %s: %s", what, kiln_status_message(status));
  kiln_status_destroy(status);
}

/* -- Reading -- */

#define FAIL(...) return KILN_ERROR(KILN_INVALID_FILE, __VA_ARGS__)

static kiln_status *parse(kiln_str text, const char *key, kiln_str *out_object) {
  char hex[33];
  kiln_cursor c = kiln_cursor_of(text);
  if (!kiln_cursor_accept(&c, title)) FAIL("it is no kernel of Kiln's");
  const kiln_str rest = kiln_cursor_rest(&c);
  const size_t head = strlen(key) + sizeof hex + 1;
  if (!kiln_str_starts(rest, key) || rest.len < head || rest.data[strlen(key)] != '\n')
    FAIL("it is of another kernel, CPU or Kiln");
  *out_object = kiln_str_make(rest.data + head, rest.len - head);
  kiln_digest_format(kiln_digest_bytes(out_object->data, out_object->len), hex);
  if (memcmp(rest.data + strlen(key) + 1, hex, 32) != 0 || rest.data[head - 1] != '\n')
    FAIL("it is damaged");
  return NULL;
}

static kiln_status *read_object(const kiln__object_store *store, const kiln__object_name *of,
                                void **out_bytes, size_t *out_size) {
  char key[KEY], name[KILN_FOLDER_NAME];
  kiln_str text, object;
  kiln_arena *scratch = kiln_arena_scoped(store->env->mem);
  make_key(store, of, key, name);
  kiln_status *status = kiln_folder_read(store->folder, name, MOST_BYTES, scratch, &text);
  if (!status) status = parse(text, key, &object);
  if (!status) {
    *out_size = object.len;
    *out_bytes = kiln_mem_alloc(store->env->mem, object.len);
    if (!*out_bytes) status = kiln_status_oom();
    if (*out_bytes) memcpy(*out_bytes, object.data, object.len);
  }
  kiln_arena_destroy(scratch);
  if (status) return kiln_status_note(status, "%s/%s", store->folder, name);
  kiln_folder_touch(store->folder, name);
  return NULL;
}
static kiln_status *try_read(const kiln__object_store *store, const kiln__object_name *of,
                             void **out_bytes, size_t *out_size) {
  KILN_PROTECT(read_object(store, of, out_bytes, out_size));
}

/* Under the lock. */
static kiln_status *keep_lookup(kiln__object_store *store, const kiln__object_name *of,
                                const kiln_status *status) {
  enum { MOST = 4096 };
  if (store->lookups.count == MOST) return NULL;
  if (!store->arena) KILN_TRY(kiln_arena_create(store->env->mem, &store->arena));
  kiln__object_lookup lookup = {.name = *of};
  if (kiln_status_code(status) == KILN_NOT_FOUND)
    lookup.why = "";
  else if (status)
    lookup.why = kiln_arena_strdup(store->arena, kiln_status_message(status));
  lookup.name.kernel = kiln_arena_strdup(store->arena, of->kernel);
  kiln_vec_push(store->arena, &store->lookups, lookup);
  return NULL;
}
static kiln_status *try_keep(kiln__object_store *store, const kiln__object_name *of,
                             const kiln_status *status) {
  KILN_PROTECT(keep_lookup(store, of, status));
}
static void watch(kiln__object_store *store, const kiln__object_name *of,
                  const kiln_status *status) {
  kiln_status *failed = kiln_short_lock_take(&store->lock, store->maker);
  if (!failed) {
    failed = try_keep(store, of, status);
    pthread_mutex_unlock(&store->lock);
  }
  kiln_status_destroy(failed); /* it is not told */
}

bool kiln__object_store_read(kiln__object_store *store, const kiln__object_name *of,
                             void **out_bytes, size_t *out_size) {
  *out_bytes = NULL;
  if (!*store->folder) return false;
  kiln_status *status = try_read(store, of, out_bytes, out_size);
  if (store->watched) watch(store, of, status);
  if (kiln_status_code(status) == KILN_NOT_FOUND) {
    kiln_status_destroy(status);
  } else {
    warn(store, status, "a kernel is compiled anew");
  }
  return *out_bytes != NULL;
}

/* -- Writing -- */

/* Under the lock. */
static kiln_status *make_room(kiln__object_store *store, uint64_t more) {
  const uint64_t most = store->most;
  store->bytes += more;
  if (!most || (store->counted && store->bytes <= most)) return NULL;
  kiln_arena *scratch = kiln_arena_scoped(store->env->mem);
  int removed;
  store->bytes = kiln_folder_trim(store->folder, suffix, store->counted ? most / 4 * 3 : most,
                                  scratch, &removed);
  store->counted = true;
  kiln_arena_destroy(scratch);
  return NULL;
}
static kiln_status *try_room(kiln__object_store *store, uint64_t more) {
  KILN_PROTECT(make_room(store, more));
}

static kiln_status *write_object(kiln__object_store *store, const kiln__object_name *of,
                                 kiln_str object) {
  char key[KEY], name[KILN_FOLDER_NAME], head[HEAD], hex[33];
  make_key(store, of, key, name);
  kiln_digest_format(kiln_digest_bytes(object.data, object.len), hex);
  const int len = snprintf(head, sizeof head, "%s%s\n%s\n", title, key, hex);
  const kiln_str parts[] = {kiln_str_make(head, (size_t)len), object};
  KILN_TRY(kiln_folder_write(store->folder, name, parts, 2));
  return try_room(store, (uint64_t)len + object.len);
}

void kiln__object_store_write(kiln__object_store *store, const kiln__object_name *of,
                              const void *bytes, size_t size) {
  if (!*store->folder) return;
  kiln_status *status = kiln_short_lock_take(&store->lock, store->maker);
  if (!status) {
    if (!store->read_only) status = write_object(store, of, kiln_str_make(bytes, size));
    store->read_only = store->read_only || status;
    pthread_mutex_unlock(&store->lock);
  }
  warn(store, status, "kernels are not kept");
}

/* -- Looking at the folder -- */

/* What the second line says; "" for what it does not. */
static void read_key(kiln_arena *arena, kiln_str line, kiln__object_file *out) {
  const char **const parts[] = {&out->generator, &out->isa, &out->kernel, &out->group};
  for (int i = 0; i < 4; i++) {
    const char *end = memchr(line.data, ';', line.len);
    const size_t len = end ? (size_t)(end - line.data) : line.len;
    *parts[i] = kiln_arena_str(arena, kiln_str_make(line.data, len)).data;
    const size_t past = end ? len + 2 : len;
    line = kiln_str_make(line.data + past, line.len > past ? line.len - past : 0);
  }
}

/* Damage is for all; what else differs from this process is told with its name. */
static const char *judge(const kiln__object_store *store, kiln_str text, kiln_arena *arena,
                         kiln__object_file *f) {
  char key[KEY], isa[32];
  kiln_str object;
  kiln_cursor c = kiln_cursor_of(text);
  f->is_useless = true;
  if (!kiln_cursor_accept(&c, title)) return "it is no kernel of this Kiln's";
  const kiln_str rest = kiln_cursor_rest(&c);
  const char *end = memchr(rest.data, '\n', rest.len);
  if (!end || end - rest.data >= KEY) return "it is damaged";
  snprintf(key, sizeof key, "%.*s", (int)(end - rest.data), rest.data);
  read_key(arena, kiln_str_from(key), f);
  kiln_status *status = parse(text, key, &object);
  if (status) {
    kiln_status_destroy(status);
    return "it is damaged";
  }
  if (strcmp(f->generator, kiln__generator_version) != 0) return "another Kiln's";
  f->is_useless = false;
  snprintf(isa, sizeof isa, "%s%s", kiln_isa_name(store->env->isa),
           store->env->flags.gdb ? " gdb" : "");
  return strcmp(f->isa, isa) == 0 ? NULL : "another CPU's";
}

kiln_status *kiln__object_store_list(const kiln__object_store *store, kiln_arena *arena,
                                     kiln__object_files *out) {
  kiln_folder_files files = {0};
  KILN_TRY(kiln_folder_list(store->folder, suffix, arena, &files));
  for (int i = 0; i < files.count; i++) {
    kiln__object_file f = {
        .file = files.data[i], .generator = "", .isa = "", .kernel = "", .group = ""};
    kiln_arena *scratch = kiln_arena_scoped(store->env->mem);
    kiln_str text;
    kiln_status *status = kiln_folder_read(store->folder, f.file.name, MOST_BYTES, scratch, &text);
    f.is_useless = true;
    f.why = status ? kiln_arena_strdup(arena, kiln_status_message(status))
                   : judge(store, text, arena, &f);
    kiln_status_destroy(status);
    kiln_arena_destroy(scratch);
    kiln_vec_push(arena, out, f);
  }
  return NULL;
}

static kiln_status *prune(const kiln__object_store *store, uint64_t most, int *out_removed) {
  kiln_arena *arena = kiln_arena_scoped(store->env->mem);
  kiln__object_files files = {0};
  KILN_TRY(kiln__object_store_list(store, arena, &files));
  for (int i = 0; i < files.count; i++)
    *out_removed +=
        files.data[i].is_useless && kiln_folder_remove(store->folder, files.data[i].file.name);
  int more;
  (void)kiln_folder_trim(store->folder, suffix, most ? most : UINT64_MAX, arena, &more);
  *out_removed += more;
  kiln_arena_destroy(arena);
  return NULL;
}
kiln_status *kiln__object_store_prune(const kiln__object_store *store, uint64_t most,
                                      int *out_removed) {
  *out_removed = 0;
  KILN_PROTECT(prune(store, most, out_removed));
}

void kiln__object_store_watch(kiln__object_store *store) {
  store->watched = store->read_only = true;
}
