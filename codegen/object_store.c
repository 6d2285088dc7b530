/* object_store.c: kernels in files: one for each, in a folder of the user's.
 *
 *   kiln kernel 1
 *   generator 0123456789abcdef, kiln_k4_, avx512, kiln_k4_7b9e...
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
static const char title[] = "kiln kernel 1\n", suffix[] = ".kernel";

void kiln__object_store_init(kiln__object_store *store, kiln_env *env) {
  *store = (kiln__object_store){.env = env,
                                .folder = env->flags.cache_dir.text,
                                .most = (uint64_t)env->flags.cache_size,
                                .maker = getpid()};
  pthread_mutex_init(&store->lock, NULL);
}
void kiln__object_store_deinit(kiln__object_store *store) { pthread_mutex_destroy(&store->lock); }

static void make_key(const kiln__object_store *store, const char *kernel, char out_key[KEY],
                     char out_name[KILN_FOLDER_NAME]) {
  char hex[33];
  snprintf(out_key, KEY, "%s, %s%s, %s", kiln__generator_version, kiln_isa_name(store->env->isa),
           store->env->flags.gdb ? ", gdb" : "", kernel);
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

static kiln_status *read_object(const kiln__object_store *store, const char *kernel,
                                void **out_bytes, size_t *out_size) {
  char key[KEY], name[KILN_FOLDER_NAME];
  kiln_str text, object;
  kiln_arena *scratch = kiln_arena_scoped(store->env->mem);
  make_key(store, kernel, key, name);
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
static kiln_status *try_read(const kiln__object_store *store, const char *kernel, void **out_bytes,
                             size_t *out_size) {
  KILN_PROTECT(read_object(store, kernel, out_bytes, out_size));
}

bool kiln__object_store_read(kiln__object_store *store, const char *name, void **out_bytes,
                             size_t *out_size) {
  *out_bytes = NULL;
  if (!*store->folder) return false;
  kiln_status *status = try_read(store, name, out_bytes, out_size);
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
  store->bytes =
      kiln_folder_trim(store->folder, suffix, store->counted ? most / 4 * 3 : most, scratch);
  store->counted = true;
  kiln_arena_destroy(scratch);
  return NULL;
}
static kiln_status *try_room(kiln__object_store *store, uint64_t more) {
  KILN_PROTECT(make_room(store, more));
}

static kiln_status *write_object(kiln__object_store *store, const char *kernel, kiln_str object) {
  char key[KEY], name[KILN_FOLDER_NAME], head[HEAD], hex[33];
  make_key(store, kernel, key, name);
  kiln_digest_format(kiln_digest_bytes(object.data, object.len), hex);
  const int len = snprintf(head, sizeof head, "%s%s\n%s\n", title, key, hex);
  const kiln_str parts[] = {kiln_str_make(head, (size_t)len), object};
  KILN_TRY(kiln_folder_write(store->folder, name, parts, 2));
  return try_room(store, (uint64_t)len + object.len);
}

void kiln__object_store_write(kiln__object_store *store, const char *name, const void *bytes,
                              size_t size) {
  if (!*store->folder) return;
  kiln_status *status = kiln_short_lock_take(&store->lock, store->maker);
  if (!status) {
    if (!store->read_only) status = write_object(store, name, kiln_str_make(bytes, size));
    store->read_only = store->read_only || status;
    pthread_mutex_unlock(&store->lock);
  }
  warn(store, status, "kernels are not kept");
}
