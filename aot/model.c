/* model.c: opening a program with its weights, and closing it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aot/aot.h"
#include "base/abi.h"
#include "base/scope.h"

const char KILN_AOT_MARK = 1;

/* -- The weights -- */

static kiln_status *check_weights(const kiln_aot_program *p, const char *what, const void *data,
                                  size_t size) {
  kiln_aot_head head;
  if (size < sizeof head || memcmp(data, "KILNAOT1", 8) != 0)
    return KILN_ERROR(KILN_INVALID_FILE, "%s: these are no weights of kiln compile", what);
  memcpy(&head, data, sizeof head);
  if (!kiln_digest_equal(head.digest, p->weights))
    return KILN_ERROR(KILN_INVALID_FILE, "%s: the weights are of another program than %s", what,
                      p->name);
  if (size != head.bytes || head.bytes != (uint64_t)p->weights_bytes)
    return KILN_ERROR(KILN_INVALID_FILE, "%s has %zu bytes, of %llu: it is cut off", what, size,
                      (unsigned long long)p->weights_bytes);
  return NULL;
}

static kiln_status *map_file(kiln_aot_model *m, const char *path) {
  struct stat info;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return KILN_ERROR(errno == ENOENT ? KILN_NOT_FOUND : KILN_INVALID_FILE, "%s: %s", path,
                      strerror(errno));
  const bool is_file = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  if (is_file && info.st_size >= (off_t)sizeof(kiln_aot_head)) {
    m->mapped_bytes = (size_t)info.st_size;
    m->mapped = mmap(NULL, m->mapped_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (m->mapped == MAP_FAILED) m->mapped = NULL;
  }
  close(fd);
  if (!is_file) return KILN_ERROR(KILN_INVALID_FILE, "%s is no file", path);
  if (m->mapped_bytes == 0) return check_weights(m->program, path, "", 0);
  if (!m->mapped) return kiln_status_oom();
  m->weights = m->mapped;
  return check_weights(m->program, path, m->weights, m->mapped_bytes);
}

/* Addresses of storages that are not in the file. */
static kiln_status *reserve_absent(kiln_aot_model *m) {
  m->absent_bytes = (size_t)m->program->absent_bytes;
  if (m->absent_bytes == 0) return NULL;
  void *at =
      mmap(NULL, m->absent_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return kiln_status_oom();
  m->absent = at;
  return NULL;
}

/* -- Opening -- */

enum { OPTIONS = 16 };

static kiln_status *make_env(kiln_aot_model **out_model, const kiln_aot_program *p, int threads) {
  char text[32], *options[OPTIONS + 2];
  int count = 0;
  kiln_env *env;
  snprintf(text, sizeof text, "KILN_THREADS=%d", threads);
  options[count++] = text;
  for (const char *const *o = p->options; *o && count <= OPTIONS; o++)
    options[count++] = (char *)(uintptr_t)*o;
  options[count] = NULL;
  KILN_TRY(kiln_env_create_with(NULL, options, &env));
  if (env->isa < p->isa || (p->needs_tiles && !env->tiles)) {
    kiln_status *status = KILN_ERROR(
        KILN_UNSUPPORTED, "%s was compiled for %s%s, which this processor lacks: it has %s",
        p->name, kiln_isa_name(p->isa), p->needs_tiles ? " with AMX" : "", kiln_isa_name(env->isa));
    kiln_env_destroy(env);
    return status;
  }
  env->isa = p->isa;
  kiln_aot_model *m = kiln_mem_alloc_zero(env->mem, sizeof *m);
  if (!m) {
    kiln_env_destroy(env);
    return kiln_status_oom();
  }
  m->program = p;
  m->env = env;
  m->owner.refs = m->lender.refs = 1; /* they are never given back: the model has them */
  kiln_epoch_init(&m->epoch, env->mem);
  pthread_mutex_init(&m->lock, NULL);
  *out_model = m;
  return NULL;
}

static kiln_status *make_all(kiln_aot_model *m) {
  kiln_status *status = kiln_type_table_create(m->env->mem, NULL, &m->table);
  if (!status) status = kiln__aot_make_types(m);
  if (!status) status = kiln__aot_make_plans(m);
  return status;
}
static kiln_status *make_in_scope(kiln_aot_model *m) { KILN_PROTECT(make_all(m)); }

static kiln_status *open_with(const kiln_aot_program *program, const char *path, const void *data,
                              size_t size, const kiln_aot_options *given,
                              kiln_aot_model **out_model) {
  kiln_aot_options options = {0};
  kiln_aot_model *m;
  KILN_ABI_READ(kiln_aot_options, given, &options);
  if (options.threads < 0) return KILN_ERROR(KILN_INVALID_ARGUMENT, "%d threads", options.threads);
  if (!path) {
    KILN_TRY(check_weights(program, "the weights", data, size));
    if ((uintptr_t)data % KILN_AOT_ALIGN != 0)
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "the weights are not 64-byte aligned");
  }
  KILN_TRY(make_env(&m, program, options.threads ? options.threads : 1));
  m->weights = data;
  kiln_status *status = path ? map_file(m, path) : NULL;
  if (!status) status = reserve_absent(m);
  if (!status) status = kiln_arena_create(m->env->mem, &m->arena);
  if (!status) status = kiln_pack_store_create(m->env->mem, &m->packs);
  if (!status) status = kiln_random_create(m->env->mem, KILN_RANDOM_SEED, &m->random);
  if (!status) status = make_in_scope(m);
  if (status) {
    kiln_aot_close(m);
    return status;
  }
  *out_model = m;
  return NULL;
}

kiln_status *kiln_aot_open(const kiln_aot_program *program, const char *weights,
                           const kiln_aot_options *options, kiln_aot_model **out_model) {
  if (!program || !weights || !out_model)
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "kiln_aot_open: an argument is NULL");
  *out_model = NULL;
  return open_with(program, weights, NULL, 0, options, out_model);
}

kiln_status *kiln_aot_open_memory(const kiln_aot_program *program, const void *weights, size_t size,
                                  const kiln_aot_options *options, kiln_aot_model **out_model) {
  if (!program || !weights || !out_model)
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "kiln_aot_open_memory: an argument is NULL");
  *out_model = NULL;
  return open_with(program, NULL, weights, size, options, out_model);
}

void kiln_aot_close(kiln_aot_model *m) {
  if (!m) return;
  kiln_env *env = m->env;
  for (int i = 0; i < m->idle_count; i++) kiln_call_destroy(m->idle[i]);
  kiln__aot_drop_plans(m);
  kiln__aot_drop_values(m);
  kiln_epoch_deinit(&m->epoch);
  kiln_pack_store_destroy(m->packs);
  kiln_random_release(m->random);
  if (m->table) kiln_type_table_destroy(m->table);
  if (m->arena) kiln_arena_destroy(m->arena);
  if (m->absent) munmap(m->absent, m->absent_bytes);
  if (m->mapped) munmap(m->mapped, m->mapped_bytes);
  pthread_mutex_destroy(&m->lock);
  kiln_mem_free(env->mem, m, sizeof *m);
  kiln_env_destroy(env);
}

size_t kiln_aot_bytes(const kiln_aot_model *m) { return m ? kiln_mem_bytes(m->env->mem) : 0; }
