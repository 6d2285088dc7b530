/* instance.c: instances, calls, attributes.
 *
 * Calls at the same time. The first call of an instance needs no analysis. When a second comes
 * while one is under way, alias analysis says of each of the methods whether it may change
 * attributes, under the instance's flags; if one may, the second gets KILN_BUSY or, where the model
 * was loaded with busy=wait, stands in line. Who comes later stands behind it, or writers would
 * never have their turn.
 *
 * Seats. Methods that have met and write nothing are readers from then on, until somebody comes who
 * may write. A reader needs no lock: it takes a seat, on lines that other threads leave alone.
 *   thread A, a reader: takes a seat, then looks whether its method is a reader still
 *   thread B, a writer: says that no method is, then looks whether a seat is taken
 * Each writes and then reads what the other one writes, sequentially consistent, so that one of the
 * two sees the other (Dekker, 1965): A leaves and goes through the lock, or B is refused or waits.
 * Were A to look first, B could come between its look and its taking a seat, see all seats free,
 * and write beside A. Likewise who leaves a seat frees it and then looks whether somebody waits,
 * and who waits says so and then looks at the seats. */
#include "api/internal.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

#include "base/job_lock.h"
#include "base/thread.h"

/* -- Instances -- */

kiln_status *kiln_instance_create(kiln_model *model, kiln_instance **out_instance) {
  KILN_NEEDS(model && out_instance);
  kiln_mem *mem = model->context->env->mem;
  *out_instance = NULL;
  if (model->at_rest) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the model was opened to be inspected, not run");
  }
  kiln_instance *instance = kiln_mem_alloc_zero(mem, sizeof *instance);
  if (!instance) return kiln_status_oom();
  kiln_status *status = kiln_random_create(mem, KILN_RANDOM_SEED, &instance->random);
  if (!status) status = kiln_ivalue_clone(mem, model->script->root, &instance->root);
  if (status) {
    kiln_random_release(instance->random);
    kiln_mem_free(mem, instance, sizeof *instance);
    return status;
  }
  instance->refs = 1;
  instance->model = kiln__model_retain(model);
  instance->process = getpid();
  pthread_mutex_init(&instance->lock, NULL);
  pthread_cond_init(&instance->changed, NULL);
  *out_instance = instance;
  return NULL;
}

kiln_instance *kiln__instance_retain(kiln_instance *instance) {
  __atomic_fetch_add(&instance->refs, 1, __ATOMIC_RELAXED);
  return instance;
}

void kiln_instance_release(kiln_instance *instance) {
  if (!instance || __atomic_fetch_sub(&instance->refs, 1, __ATOMIC_ACQ_REL) != 1) return;
  kiln_model *model = instance->model;
  for (int i = 0; i < instance->idle_count; i++) kiln_call_destroy(instance->idle[i]);
  for (int i = 0; i < KILN__SEATS; i++) { /* one that is taken is of a fork's parent */
    if (!instance->seats[i].thread) kiln_call_destroy(instance->seats[i].call);
  }
  kiln_ivalue_release(instance->root);
  kiln_random_release(instance->random);
  kiln_possible_roots_deinit(model->context->env->mem, &instance->survivors);
  pthread_cond_destroy(&instance->changed);
  pthread_mutex_destroy(&instance->lock);
  kiln_mem_free(model->context->env->mem, instance, sizeof *instance);
  kiln_model_release(model);
}

/* -- Who may run at the same time -- */

static kiln_status *busy(const char *method, const char *other) {
  return KILN_ERROR(KILN_BUSY,
                    "%s() cannot run while the instance is in %s: one of them may write attributes",
                    method, other);
}

/* The name of a call under way, or NULL: then none is, and none comes by a seat. With the lock. */
static const char *call_inside(kiln_instance *instance) {
  if (instance->active) return instance->active->method->name;
  if (!instance->has_seats) return NULL;
  __atomic_store_n(&instance->readers, 0, __ATOMIC_SEQ_CST);
  for (int i = 0; i < KILN__SEATS; i++) {
    const kiln__seat *seat = &instance->seats[i];
    if (!__atomic_load_n(&seat->thread, __ATOMIC_SEQ_CST)) continue;
    const char *name = __atomic_load_n(&seat->method, __ATOMIC_RELAXED);
    return name ? name : "a call"; /* it has not said yet */
  }
  instance->has_seats = false;
  return NULL;
}

kiln_status *kiln__instance_occupy(kiln_instance *instance, const char *function) {
  KILN_TRY(kiln_short_lock_take(&instance->lock, instance->process));
  bool is_free = !instance->occupied_by && !call_inside(instance);
  if (is_free) instance->occupied_by = function;
  pthread_mutex_unlock(&instance->lock);
  if (!is_free) return busy(function, "a call");
  kiln_status *status = kiln_mapping_check(instance->model->script->mapping, true);
  if (status) kiln__instance_vacate(instance);
  return status;
}

void kiln__instance_vacate(kiln_instance *instance) {
  pthread_mutex_lock(&instance->lock);
  instance->occupied_by = NULL;
  if (instance->waiting) pthread_cond_broadcast(&instance->changed);
  pthread_mutex_unlock(&instance->lock);
}

/* The method may change attributes of the instance. */
static bool may_write(const kiln_instance *instance, kiln__method *method) {
  return kiln_effects_may_write(&method->effects, kiln_jit_env(instance->model->jit),
                                method->function, instance->root);
}

/* The name of what may be writing attributes at this time, or NULL; the lock is held. As soon as
 * two calls are under way none of them writes, so the flags that the answers depend on stay. No
 * call in a seat writes. */
static const char *writer(const kiln_instance *instance) {
  if (instance->occupied_by) return instance->occupied_by;
  for (const kiln__active *a = instance->active; a; a = a->next) {
    if (may_write(instance, a->method)) return a->method->name;
  }
  return NULL;
}
/* What stands in the way of a call. The first call of an instance needs no analysis. */
static const char *obstacle(kiln_instance *instance, const kiln__active *active) {
  const char *other = writer(instance);
  if (other || !(instance->active || instance->has_seats)) return other;
  return may_write(instance, active->method) ? call_inside(instance) : NULL;
}
static bool is_inside(const kiln_instance *instance) {
  for (const kiln__active *a = instance->active; a; a = a->next) {
    if (pthread_equal(a->thread, pthread_self())) return true;
  }
  for (int i = 0; i < KILN__SEATS; i++) {
    const pthread_t thread = __atomic_load_n(&instance->seats[i].thread, __ATOMIC_RELAXED);
    if (thread && pthread_equal(thread, pthread_self())) return true;
  }
  return false;
}
static void append(kiln__active **list, kiln__active *active) {
  while (*list) list = &(*list)->next;
  active->next = NULL;
  *list = active;
}
static void take_out(kiln__active **list, const kiln__active *active) {
  while (*list != active) list = &(*list)->next;
  *list = active->next;
}

enum { WAIT_NS = 2000000 }; /* between two looks at the clock and at the host's patience */

/* Waits until the call is the first in the line and nothing stands in its way. With the lock. */
static kiln_status *wait_for_turn(kiln_instance *instance, kiln__active *active,
                                  const kiln_limits *limits) {
  const uint64_t came = kiln_now_ns();
  kiln_budget budget;
  kiln_status *status = NULL;
  kiln_budget_begin(&budget, "the call", NULL, limits);
  append(&instance->waiting, active);
  __atomic_store_n(&instance->is_awaited, true, __ATOMIC_SEQ_CST);
  __atomic_store_n(&instance->readers, 0, __ATOMIC_SEQ_CST); /* who comes stands behind it */
  while (!status && (instance->waiting != active || obstacle(instance, active))) {
    if (kiln_budget_may_end(&budget)) {
      const struct timespec until = kiln__moment_in(CLOCK_REALTIME, WAIT_NS);
      (void)pthread_cond_timedwait(&instance->changed, &instance->lock, &until);
      status = kiln_budget_check(&budget, 0);
    } else {
      pthread_cond_wait(&instance->changed, &instance->lock);
    }
  }
  active->waited_ns += kiln_now_ns() - came;
  take_out(&instance->waiting, active);
  __atomic_store_n(&instance->is_awaited, instance->waiting != NULL, __ATOMIC_SEQ_CST);
  if (instance->waiting) pthread_cond_broadcast(&instance->changed); /* the next may go too */
  return status;
}

/* -- Seats -- */

/* A method's bit in `readers`; 0: it never uses seats. */
static uint64_t bit_of(const kiln_instance *instance, const kiln__method *method) {
  const ptrdiff_t place = method - instance->model->methods;
  return place < KILN__MASK_METHODS ? (uint64_t)1 << place : 0;
}

static bool is_reader(const kiln_instance *instance, uint64_t bit) {
  return (__atomic_load_n(&instance->readers, __ATOMIC_SEQ_CST) & bit) != 0;
}

/* A call comes, and others are under way: none of them writes (obstacle). With the lock. */
static void open_seats(kiln_instance *instance, const kiln__method *method) {
  uint64_t bits = bit_of(instance, method);
  for (const kiln__active *a = instance->active; a; a = a->next) {
    bits |= bit_of(instance, a->method);
  }
  if ((__atomic_load_n(&instance->readers, __ATOMIC_RELAXED) & bits) == bits) return;
  instance->has_seats = true;
  __atomic_fetch_or(&instance->readers, bits, __ATOMIC_SEQ_CST);
}

static void leave_seat(kiln_instance *instance, kiln__seat *seat) {
  __atomic_store_n(&seat->thread, 0, __ATOMIC_SEQ_CST);
  if (__builtin_expect(!__atomic_load_n(&instance->is_awaited, __ATOMIC_SEQ_CST), 1)) return;
  kiln_status *status = kiln_short_lock_take(&instance->lock, instance->process);
  if (!status) {
    pthread_cond_broadcast(&instance->changed);
    pthread_mutex_unlock(&instance->lock);
  }
  kiln_status_destroy(status); /* who waits is of a fork's parent */
}

/* A seat that the call is in now, or NULL: it goes through the lock. */
static kiln__seat *enter_seat(kiln_instance *instance, const kiln__method *method) {
  enum { TRIES = 4 };
  const uint64_t bit = bit_of(instance, method);
  const pthread_t self = pthread_self();
  const uint32_t first = kiln_stripe_here();
  for (uint32_t i = 0; i < TRIES && is_reader(instance, bit); i++) {
    kiln__seat *seat = &instance->seats[(first + i) % KILN__SEATS];
    pthread_t none = 0;
    if (__atomic_load_n(&seat->thread, __ATOMIC_RELAXED) ||
        !__atomic_compare_exchange_n(&seat->thread, &none, self, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED)) {
      continue;
    }
    __atomic_store_n(&seat->method, method->name, __ATOMIC_RELAXED);
    if (is_reader(instance, bit)) return seat;
    leave_seat(instance, seat);
    return NULL;
  }
  return NULL;
}

/* -- Entering and leaving -- */

static kiln_call *take_idle(kiln_instance *instance) {
  return instance->idle_count > 0 ? instance->idle[--instance->idle_count] : NULL;
}

/* The call object of a seat; one that was idle goes to it for good. */
static kiln_status *seat_call(kiln_instance *instance, kiln__seat *seat) {
  if (seat->call) return NULL;
  KILN_TRY(kiln_short_lock_take(&instance->lock, instance->process));
  seat->call = take_idle(instance);
  pthread_mutex_unlock(&instance->lock);
  return seat->call ? NULL : kiln__model_make_call(instance->model, &seat->call);
}

/* Enters a call and takes an idle call object, NULL when there is none. A call from within another
 * one of its thread never waits: it would wait for itself; nor does one in a fork's child, where
 * the calls of the parent's other threads do not end. */
static kiln_status *enter(kiln_instance *instance, kiln__active *active, const kiln_limits *limits,
                          kiln_call **out_call) {
  kiln_status *status = NULL;
  *out_call = NULL;
  active->thread = pthread_self();
  KILN_TRY(kiln_short_lock_take(&instance->lock, instance->process));
  const char *other = obstacle(instance, active);
  if (__builtin_expect(other || instance->waiting, 0)) {
    if (instance->model->flags.busy && !is_inside(instance) && instance->process == getpid()) {
      status = wait_for_turn(instance, active, limits);
    } else if (other) {
      status = busy(active->method->name, other);
    }
  }
  if (!status) {
    const bool has_met = instance->active || instance->has_seats;
    if (has_met && !instance->waiting) open_seats(instance, active->method);
    active->next = instance->active;
    instance->active = active;
    *out_call = take_idle(instance);
  }
  pthread_mutex_unlock(&instance->lock);
  return status;
}

/* -- What contains itself (runtime/cycles.h) -- */

/* Frees what this call and those before it have left and nobody holds any more. True: some of it is
 * held, perhaps by a value of the host. */
static bool collect(kiln_instance *instance, kiln_call *call) {
  kiln_mem *mem = instance->model->context->env->mem;
  kiln_possible_roots roots = {0};
  pthread_mutex_lock(&instance->lock);
  roots = instance->survivors;
  instance->survivors = (kiln_possible_roots){0};
  pthread_mutex_unlock(&instance->lock);
  kiln_possible_roots_take(&roots, &call->roots);
  kiln_possible_roots_collect(mem, &roots);
  const bool some = roots.first != NULL;
  pthread_mutex_lock(&instance->lock);
  kiln_possible_roots_take(&instance->survivors, &roots);
  __atomic_store_n(&instance->has_survivors, instance->survivors.first != NULL, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&instance->lock);
  return some;
}

static bool has_survivors(const kiln_instance *instance) {
  return __atomic_load_n(&instance->has_survivors, __ATOMIC_RELAXED);
}

/* Leaves; `call` (may be NULL) goes back to the pool. */
static void leave(kiln_instance *instance, kiln__active *active, kiln_call *call) {
  pthread_mutex_lock(&instance->lock);
  take_out(&instance->active, active);
  if (instance->waiting) pthread_cond_broadcast(&instance->changed);
  if (call && instance->idle_count < KILN__IDLE_CALLS) {
    instance->idle[instance->idle_count++] = call;
    call = NULL;
  }
  pthread_mutex_unlock(&instance->lock);
  kiln_call_destroy(call);
}

/* -- Calls -- */

enum { INLINE_ARGS = 16 };

/* Runs with the result in the host's tensors. */
static kiln_status *call_bound(kiln_model *model, kiln_call *call, kiln_function *function,
                               const kiln_ivalue *args, int arg_count,
                               const kiln_call_options *options, uint64_t alone,
                               kiln_ivalue *out_result) {
  kiln_tensor *outputs[KILN_BINDING_OUTPUTS];
  for (int i = 0; i < options->output_count; i++)
    outputs[i] = options->outputs[i] ? options->outputs[i]->v.u.tensor : NULL;
  kiln_status *status =
      kiln_binding_begin(call, outputs, options->output_count, alone, args, arg_count);
  if (!status) status = kiln_jit_call(model->jit, call, function, args, arg_count, out_result);
  kiln_status *ended = kiln_binding_end(call, status ? NULL : out_result);
  if (status) kiln_status_destroy(ended);
  if (!status && ended) {
    kiln_ivalue_release(*out_result);
    *out_result = kiln_none();
  }
  return status ? status : ended;
}

static kiln_status *run(kiln_instance *instance, const kiln__active *active, kiln_call *call,
                        kiln_value *const *values, int count, const kiln_call_options *options,
                        kiln_value **out_result) {
  kiln_model *model = instance->model;
  kiln__method *method = active->method;
  kiln_mem *mem = model->context->env->mem;
  kiln_ivalue few[INLINE_ARGS], *args = few, result = kiln_none();
  int arg_count = method->argument_count + 1;
  size_t size = sizeof *args * (size_t)arg_count;
  if (arg_count > INLINE_ARGS) {
    args = kiln_mem_alloc(mem, size);
    if (!args) return kiln_status_oom();
  }
  for (int i = 1; i < arg_count; i++) args[i] = kiln_none();
  args[0] = instance->root; /* borrowed */
  kiln_status *status = kiln_mapping_check(model->script->mapping, false);
  if (!status) status = kiln__arguments_match(model, method, values, count, args);
  if (!status) {
    call->random = instance->random;
    const uint32_t every = __atomic_load_n(&model->timed, __ATOMIC_RELAXED);
    call->timed = every && ++call->untimed >= every;
    if (call->timed) call->untimed = 0;
    kiln_call_begin(call, &options->limits);
    if (call->budget.deadline_ns) call->budget.deadline_ns -= active->waited_ns;
    call->grad_mode = options->grad != 0;
    status = options->output_count > 0
                 ? call_bound(model, call, method->function, args, arg_count, options,
                              active->alone, &result)
                 : kiln_jit_call(model->jit, call, method->function, args, arg_count, &result);
  }
  for (int i = 1; i < arg_count; i++) kiln_ivalue_release_to(&call->cache, args[i]);
  if (args != few) kiln_mem_free(mem, args, size);
  if (!status) status = kiln__value_wrap(model->context, model, result, out_result);
  if (__builtin_expect(call->roots.first || has_survivors(instance), 0) &&
      collect(instance, call)) {
    for (int i = 0; i < count; i++) {
      if (values[i]) kiln__value_set_cyclic(values[i]); /* NULL has failed the call */
    }
    if (*out_result) kiln__value_set_cyclic(*out_result);
  }
  return status;
}

static void tell_call(const kiln_log *log, uint64_t number, const kiln__method *method,
                      int argument_count, const kiln_status *status, uint64_t start) {
  KILN_LOG(log, run, 1, "call %" PRIu64 ": %s, %d argument%s: %s in %.3f ms", number, method->name,
           argument_count, kiln_plural((uint64_t)argument_count),
           kiln_code_name(kiln_status_code(status)), (double)(kiln_now_ns() - start) * 1e-6);
}

static kiln_status *check_outputs(const kiln_call_options *options) {
  const int count = options->output_count;
  if (count < 0 || count > KILN_BINDING_OUTPUTS || (count > 0 && !options->outputs))
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%d outputs, of at most %d%s", count,
                      KILN_BINDING_OUTPUTS, options->outputs ? "" : ": the array is NULL");
  for (int i = 0; i < count; i++) {
    const kiln_value *v = options->outputs[i];
    if (v && (v->v.tag != KILN_TAG_TENSOR || !v->v.u.tensor))
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "output %d is no tensor", i);
  }
  return NULL;
}

uint64_t kiln__outputs_alone(const kiln_call_options *options) {
  uint64_t alone = 0;
  for (int i = 0; i < options->output_count; i++) {
    const kiln_value *v = options->outputs[i];
    if (v && kiln_binding_is_alone(v->v.u.tensor)) alone |= (uint64_t)1 << i;
  }
  return alone;
}

kiln_status *kiln__call_check(const kiln_model *model, const char *method,
                              kiln_value *const *arguments, int argument_count,
                              const kiln_call_options *given, kiln__method **out_method,
                              kiln_call_options *out_options) {
  kiln__method *m = *out_method = kiln__model_method(model, method);
  if (!m) return kiln__model_no_method(model, method);
  if (argument_count < 0) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s() with %d arguments", m->name, argument_count);
  }
  if (argument_count > 0 && !arguments) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s(): the array of the %d argument%s is NULL",
                      m->name, argument_count, kiln_plural((uint64_t)argument_count));
  }
  KILN_ABI_READ(kiln_call_options, given, out_options);
  KILN_TRY(check_outputs(out_options));
  if (out_options->grad) {
    return KILN_ERROR(KILN_UNSUPPORTED, "gradients are not recorded yet: call %s() without grad",
                      m->name);
  }
  return NULL;
}

static void tell_failure(kiln_timeline *timeline, const kiln__method *method,
                         const kiln_status *status) {
  const char *place = kiln_status_location(status);
  const kiln_timeline_arg args[] = {{"status", .text = kiln_code_name(kiln_status_code(status))},
                                    {"message", .text = kiln_status_message(status)},
                                    {"place", .text = place ? place : ""}};
  kiln_timeline_mark(timeline, KILN_EVENT_failed, method->name, 3, args);
}

/* Whether something was made for the model since it was asked last. */
static void look_at_budget(kiln_model *model) {
  const uint64_t made = kiln_jit_made(model->jit);
  if (__atomic_exchange_n(&model->made_then, made, __ATOMIC_RELAXED) != made)
    kiln__context_made(model);
}

kiln_status *kiln__instance_run(kiln_instance *instance, kiln__method *m,
                                kiln_value *const *arguments, int argument_count,
                                const kiln_call_options *options, uint64_t alone,
                                uint64_t waited_ns, kiln_value **out_result) {
  kiln_model *model = instance->model;
  kiln_call *call = NULL;
  kiln__active active = {.method = m, .waited_ns = waited_ns, .alone = alone};
  kiln__seat *seat = enter_seat(instance, m);
  if (!seat) KILN_TRY(enter(instance, &active, &options->limits, &call));
  const kiln_log *log = &kiln_jit_env(model->jit)->log;
  const bool told = kiln_log_on(log, KILN_LOG_run, 1);
  kiln_timeline *timeline = kiln_jit_env(model->jit)->timeline;
  const uint64_t start = told || timeline ? kiln_now_ns() : 0;
  kiln_status *status = NULL;
  if (seat) {
    status = seat_call(instance, seat);
    call = seat->call;
  } else if (!call) {
    status = kiln__model_make_call(model, &call);
  }
  if (!status) {
    kiln_jit_count_call(model->jit, call);
    status = run(instance, &active, call, arguments, argument_count, options, out_result);
  }
  kiln_timeline_span(
      timeline, KILN_EVENT_call, m->name, start, 1,
      &(kiln_timeline_arg){"status", .text = kiln_code_name(kiln_status_code(status))});
  if (status && timeline) tell_failure(timeline, m, status);
  if (told) tell_call(log, kiln_jit_calls(model->jit), m, argument_count, status, start);
  if (seat) {
    leave_seat(instance, seat);
  } else {
    leave(instance, &active, call);
  }
  if (__builtin_expect(model->flags.jit_memory != 0, 0)) look_at_budget(model);
  return status;
}

kiln_status *kiln_instance_call(kiln_instance *instance, const char *method,
                                kiln_value *const *arguments, int argument_count,
                                const kiln_call_options *given, kiln_value **out_result) {
  KILN_NEEDS(instance && out_result);
  kiln__method *m;
  kiln_call_options options;
  *out_result = NULL;
  KILN_TRY(
      kiln__call_check(instance->model, method, arguments, argument_count, given, &m, &options));
  return kiln__instance_run(instance, m, arguments, argument_count, &options,
                            kiln__outputs_alone(&options), 0, out_result);
}

/* -- Attributes -- */

/* Walks "layer.0.bias" to the object that holds the last name, and its slot. */
static kiln_status *find_slot(kiln_instance *instance, const char *path, kiln_object **out_object,
                              int *out_slot) {
  kiln_object *object = instance->root.u.object;
  for (const char *name = path;;) {
    size_t len = strcspn(name, ".");
    int slot = kiln_type_find_attribute(object->type, kiln_str_make(name, len));
    if (slot < 0) {
      return KILN_ERROR(KILN_NOT_FOUND, "'" KILN_STR_FMT "' has no attribute '%.*s'%s%s%s",
                        KILN_STR_ARG(object->type->cls->qualname), (int)len, name,
                        name == path && !name[len] ? "" : " (of '",
                        name == path && !name[len] ? "" : path,
                        name == path && !name[len] ? "" : "')");
    }
    if (!name[len]) {
      *out_object = object;
      *out_slot = slot;
      return NULL;
    }
    if (object->slots[slot].tag != KILN_TAG_OBJECT) {
      return KILN_ERROR(KILN_NOT_FOUND, "'%.*s' in '%s' is no module", (int)len, name, path);
    }
    object = object->slots[slot].u.object;
    name += len + 1;
  }
}

kiln_status *kiln_instance_get(kiln_instance *instance, const char *name, kiln_value **out_value) {
  KILN_NEEDS(instance && out_value);
  kiln_object *object = NULL;
  kiln_ivalue v = kiln_none();
  int slot = 0;
  *out_value = NULL;
  if (!name) return KILN_ERROR(KILN_INVALID_ARGUMENT, "an attribute needs a name");
  KILN_TRY(kiln_mapping_check(instance->model->script->mapping, false));
  KILN_TRY(kiln_short_lock_take(&instance->lock, instance->process));
  const char *other = writer(instance);
  kiln_status *status = other ? busy("kiln_instance_get", other) : NULL;
  if (!status) status = find_slot(instance, name, &object, &slot);
  if (!status) {
    v = object->slots[slot];
    if (v.tag == KILN_TAG_TENSOR && !v.u.tensor) {
      status = KILN_ERROR(KILN_NOT_FOUND, "attribute '%s' is not set yet", name);
    } else {
      v = kiln_ivalue_retain(v);
    }
  }
  pthread_mutex_unlock(&instance->lock);
  if (status) return status;
  KILN_TRY(kiln__value_wrap(instance->model->context, instance->model, v, out_value));
  if (has_survivors(instance)) kiln__value_set_cyclic(*out_value);
  return NULL;
}

/* So that what kernels want of it is made beside the calls: memory that is only read, until
 * somebody writes to it. Without memory for that, calls pack what they need. */
static void freeze_memory(kiln_ivalue v) {
  kiln_storage *s = v.tag == KILN_TAG_TENSOR && v.u.tensor ? v.u.tensor->storage : NULL;
  if (s && !s->owner && s->bytes >= KILN_PACK_BESIDE_BYTES)
    kiln_status_destroy(kiln_storage_freeze(s));
}

static kiln_status *set_slot(kiln_instance *instance, const char *name, kiln_value *value) {
  kiln_object *object = NULL;
  kiln_ivalue v = kiln_none();
  int slot = 0;
  bool fits = true;
  KILN_TRY(find_slot(instance, name, &object, &slot));
  const kiln_type *type = object->type->cls->attributes[slot].type;
  KILN_TRY(kiln__convert_value(instance->model, value, type, &fits, &v));
  if (!fits) {
    kiln_ivalue_release(v);
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the value does not have the type of attribute '%s'",
                      name);
  }
  freeze_memory(v);
  kiln_ivalue old = object->slots[slot];
  object->slots[slot] = v;
  if (old.tag != KILN_TAG_TENSOR || old.u.tensor) kiln_ivalue_release(old);
  return NULL;
}

kiln_status *kiln_instance_set(kiln_instance *instance, const char *name, const kiln_value *value) {
  KILN_NEEDS(instance);
  if (!name || !value) return KILN_ERROR(KILN_INVALID_ARGUMENT, "a name and a value are needed");
  if (value->model && value->model != instance->model) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the value is of another model");
  }
  KILN_TRY(kiln__instance_occupy(instance, "kiln_instance_set"));
  /* The handle is not changed in what the caller can see. */
  kiln_status *status = set_slot(instance, name, (kiln_value *)(uintptr_t)value);
  kiln__instance_vacate(instance);
  return status;
}
