/* context.c: options, contexts, limits on memory, the host's callbacks. */
#include <stdio.h>
#include <stdlib.h>

#include "api/internal.h"
#include "base/cpu.h"
#include "base/workers.h"
#include "codegen/codegen.h"

extern char **environ;

/* -- Options: "KILN_NAME=value" entries that are laid over the environment -- */

struct kiln_options {
  bool ignore_environment;
  int count;
  char **entries; /* owned, and NULL at the end */
};

kiln_status *kiln_options_create(kiln_options **out_options) {
  KILN_NEEDS(out_options);
  *out_options = NULL;
  kiln_options *o = calloc(1, sizeof *o);
  if (!o) return kiln_status_oom();
  *out_options = o;
  return NULL;
}

static char *make_entry(const char *name, const char *value) {
  size_t name_len = strlen(name), value_len = strlen(value);
  char *entry = malloc(5 + name_len + 1 + value_len + 1);
  if (!entry) return NULL;
  memcpy(entry, "KILN_", sizeof "KILN_");
  for (size_t i = 0; i < name_len; i++) {
    char c = name[i];
    entry[5 + i] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  entry[5 + name_len] = '=';
  memcpy(entry + 5 + name_len + 1, value, value_len + 1);
  return entry;
}

/* The value alone, over the defaults. */
static kiln_status *parse_option(const char *name, const char *value, kiln_flags *out_flags,
                                 kiln_log *out_log) {
  kiln_flags_init(out_flags);
  KILN_TRY(kiln_flags_set(out_flags, name, value));
  kiln_log_init(out_log);
  return kiln_log_parse(out_log, out_flags->log.text);
}

kiln_status *kiln_options_set(kiln_options *options, const char *name, const char *value) {
  if (!options || !name || !value) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "an option needs a name and a value");
  }
  kiln_flags flags;
  kiln_log log;
  KILN_TRY(parse_option(name, value, &flags, &log));
  char **entries = realloc(options->entries, sizeof *entries * (size_t)(options->count + 2));
  if (!entries) return kiln_status_oom();
  options->entries = entries;
  entries[options->count] = make_entry(name, value);
  if (!entries[options->count]) return kiln_status_oom();
  entries[++options->count] = NULL;
  return NULL;
}

void kiln_options_ignore_environment(kiln_options *options) {
  if (options) options->ignore_environment = true;
}

void kiln_options_destroy(kiln_options *options) {
  if (!options) return;
  for (int i = 0; i < options->count; i++) free(options->entries[i]);
  free(options->entries);
  free(options);
}

/* The environment without variables that are empty, which is how a shell unsets them. NULL when
 * memory is short. */
static char **copy_environment(void) {
  size_t count = 0, used = 0;
  while (environ && environ[count]) count++;
  char **all = malloc(sizeof *all * (count + 1));
  if (!all) return NULL;
  for (size_t i = 0; i < count; i++) {
    const char *equal = strchr(environ[i], '=');
    if (equal && equal[1]) all[used++] = environ[i];
  }
  all[used] = NULL;
  return all;
}

/* -- Contexts -- */

static void destroy_context(kiln_context *context) {
  kiln__context_leave_jobs(context);
  kiln_workers_destroy(context->callers);
  kiln_codegen_destroy(context->codegen);
  kiln_registry_destroy(context->registry);
  kiln_file_table_release(context->files);
  kiln_env_destroy(context->env);
  pthread_mutex_destroy(&context->lock);
  free(context);
}

static void print_to_stdout(void *user, const char *text, size_t size) {
  (void)user;
  fwrite(text, 1, size, stdout);
}

static int count_callers(const kiln_env *env) {
  const int given = (int)env->flags.async_calls;
  return given ? given : kiln_cpu_count(false);
}

kiln_status *kiln_context_create(const kiln_options *options, kiln_context **out_context) {
  KILN_NEEDS(out_context);
  *out_context = NULL;
  kiln_context *context = calloc(1, sizeof *context);
  const bool reads = !options || !options->ignore_environment;
  char **environment = reads ? copy_environment() : NULL;
  if (!context || (reads && !environment)) {
    free(context);
    free(environment);
    return kiln_status_oom();
  }
  kiln_refs_init(&context->refs);
  context->print = print_to_stdout;
  pthread_mutex_init(&context->lock, NULL);
  kiln_status *status =
      kiln_env_create_with(environment, options ? options->entries : NULL, &context->env);
  free(environment);
  if (!status) kiln__context_enter_jobs(context);
  if (!status) status = kiln_registry_create(context->env, &context->registry);
  if (!status) status = kiln_file_table_create(context->env->mem, &context->files);
  if (!status) status = kiln_codegen_create(context->env, &context->codegen);
  if (!status) status = kiln_workers_create(count_callers(context->env), &context->callers);
  if (status) {
    destroy_context(context);
    return status;
  }
  *out_context = context;
  return NULL;
}

kiln_context *kiln__context_retain(kiln_context *context) {
  kiln_refs_retain(&context->refs);
  return context;
}

void kiln_context_release(kiln_context *context) {
  if (context && kiln_refs_release(&context->refs)) destroy_context(context);
}

void kiln__context_give(kiln_context *context, uint32_t stripe) {
  if (kiln_refs_give(&context->refs, stripe)) destroy_context(context);
}

kiln_env kiln__context_env(kiln_context *context) {
  pthread_mutex_lock(&context->lock);
  const kiln_env env = *context->env;
  pthread_mutex_unlock(&context->lock);
  return env;
}

void kiln_context_set_log(kiln_context *context, kiln_log_fn fn, void *user) {
  if (!context) return;
  context->env->log.callback = fn;
  context->env->log.user = user;
}

kiln_status *kiln_context_set_events(kiln_context *context, kiln_event_fn fn, void *user) {
  KILN_NEEDS(context);
  kiln_env *env = context->env;
  if (!env->timeline && fn) KILN_TRY(kiln_timeline_create("", "", &env->timeline));
  if (env->timeline) kiln_timeline_set_fn(env->timeline, fn, user);
  env->log.timeline = env->timeline;
  return NULL;
}

void kiln_context_set_print(kiln_context *context, kiln_print_fn fn, void *user) {
  if (!context) return;
  context->print = fn ? fn : print_to_stdout;
  context->print_user = fn ? user : NULL;
}

void kiln_context_set_pool(kiln_context *context, kiln_pool *pool) {
  if (!context) return;
  kiln_pool_retain(pool);
  kiln_pool_release(context->env->pool);
  context->env->pool = pool;
}

kiln_status *kiln_context_set_jobs(kiln_context *context, const kiln_host_jobs *jobs) {
  KILN_NEEDS(context && jobs);
  kiln_host_jobs own;
  KILN_ABI_READ(kiln_host_jobs, jobs, &own);
  if (!own.submit) return KILN_ERROR(KILN_INVALID_ARGUMENT, "jobs need the function submit");
  return kiln_job_queue_set_host(context->env->jobs, &own);
}

int kiln_context_threads(const kiln_context *context) {
  if (!context) return 0;
  return kiln_pool_threads(context->env->pool);
}

/* Under the lock; the value was parsed before. */
static kiln_status *set_flag(kiln_env *env, const char *name, const char *value,
                             const kiln_log *log) {
  KILN_TRY(kiln_flags_set(&env->flags, name, value));
  env->from_options |= (uint64_t)1 << (kiln_flags_find(name) - kiln_flag_table);
  if (strcmp(name, "log") == 0) {
    kiln_log_copy_levels(&env->log, log);
  } else if (strcmp(name, "memory_limit") == 0) {
    kiln_mem_set_limit(env->mem, (size_t)env->flags.memory_limit);
  }
  return NULL;
}

kiln_status *kiln_context_set(kiln_context *context, const char *name, const char *value,
                              char **out_old) {
  KILN_NEEDS(context && name && value);
  const kiln_flag_info *info = kiln_flags_find(name);
  if (!info) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "there is no option \"%s\" (kiln list flags)", name);
  }
  if (kiln_flag_is_fixed(info)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "option %s is fixed when the context is made", name);
  }
  char old[KILN_FLAG_STRING_MAX + 8], *copy = NULL;
  kiln_flags flags;
  kiln_log log;
  KILN_TRY(parse_option(name, value, &flags, &log));
  KILN_TRY(kiln_env_check_flags(&flags));
  pthread_mutex_lock(&context->lock);
  kiln_flags_print(&context->env->flags, info, old, sizeof old);
  kiln_status *status =
      out_old ? kiln__text_copy(context->env->mem, kiln_str_from(old), &copy) : NULL;
  if (!status) status = set_flag(context->env, name, value, &log);
  pthread_mutex_unlock(&context->lock);
  if (status) kiln_text_free(copy);
  if (!status && out_old) *out_old = copy;
  return status;
}

size_t kiln_context_bytes(const kiln_context *context) {
  if (!context) return 0;
  return kiln_mem_bytes(context->env->mem);
}

uint64_t kiln_context_mapped_bytes(const kiln_context *context) {
  if (!context) return 0;
  return kiln_file_table_mapped_bytes(context->files);
}

size_t kiln_context_peak_bytes(const kiln_context *context) {
  if (!context) return 0;
  return kiln_mem_peak_bytes(context->env->mem);
}
