/* plans.c: callables and their plans, found from the method on. */
#include "export/internal.h"

int kiln__export_callable_number(const kiln__exporter *x, const kiln_callable *callable) {
  return callable ? (int)(uintptr_t)kiln_map_find_ptr(&x->callable_at, callable) - 1 : -1;
}

/* -- Finding -- */

static int add_callable(kiln__exporter *x, const kiln_callable *callable, int arg_count) {
  const int known = kiln__export_callable_number(x, callable);
  if (known >= 0) return known;
  kiln__out_callable *c = KILN_NEW(x->arena, kiln__out_callable);
  c->callable = callable;
  c->image = (kiln_aot_callable){
      .arg_count = arg_count, .fork = callable->fork, .is_part = callable->is_part};
  c->args = KILN_NEW_ARRAY(x->arena, kiln_ivalue, arg_count);
  c->known = KILN_NEW_ARRAY(x->arena, uint8_t, arg_count);
  kiln_vec_push(x->arena, &x->callables, c);
  kiln_map_set_ptr(&x->callable_at, callable, (void *)(uintptr_t)x->callables.count);
  return x->callables.count - 1;
}

static void add_plan(kiln__exporter *x, kiln__out_callable *c, const kiln_plan *plan) {
  if (kiln_map_find_ptr(&x->plan_at, plan)) return;
  kiln__out_plan *p = KILN_NEW(x->arena, kiln__out_plan);
  p->plan = plan;
  p->of = c;
  kiln_vec_push(x->arena, &x->plans, p);
  kiln_map_set_ptr(&x->plan_at, plan, (void *)(uintptr_t)x->plans.count);
}

static void add_variant(kiln__exporter *x, kiln__out_callable *c, const kiln_guard_desc *guard,
                        const kiln_plan *plan) {
  const int n = c->image.variant_count++;
  c->plans[n] = plan;
  c->guards[n] = guard;
  add_plan(x, c, plan);
}

/* The plan of calls without JIT: of functions that no call has specialised, and with `general` of
 * all. */
static kiln_status *add_plain(kiln__exporter *x, kiln__out_callable *c) {
  kiln_call *call = x->request->call;
  const kiln_plan *plan;
  const bool jit = call->jit;
  call->jit = false;
  kiln_status *status = c->callable->get_plan(c->callable, call, NULL, 0, &plan);
  call->jit = jit;
  if (!status) add_variant(x, c, NULL, plan);
  return status;
}

static const kiln_variant *next_of(const kiln_variant *v) {
  return __atomic_load_n(&v->next, __ATOMIC_ACQUIRE);
}

static kiln_status *add_variants(kiln__exporter *x, kiln__out_callable *c) {
  const kiln_executor *ex = kiln__executor_of(c->callable);
  int count = 1;
  bool always = false;
  const kiln_variant *first = ex ? __atomic_load_n(&ex->variants, __ATOMIC_ACQUIRE) : NULL;
  for (const kiln_variant *v = first; v; v = next_of(v)) count++;
  c->plans = KILN_NEW_ARRAY(x->arena, const kiln_plan *, count);
  c->guards = KILN_NEW_ARRAY(x->arena, const kiln_guard_desc *, count);
  if (!ex) { /* of a group's operators, which have one plan */
    const kiln_plan *plan;
    KILN_TRY(c->callable->get_plan(c->callable, x->request->call, NULL, 0, &plan));
    add_variant(x, c, NULL, plan);
    return NULL;
  }
  for (const kiln_variant *v = first; v && !always && c->image.variant_count < count - 1;
       v = next_of(v)) {
    if (!v->plan) continue;
    add_variant(x, c, v->guard, v->plan);
    always = !v->guard;
  }
  if (always || (c->image.variant_count > 0 && !x->request->general)) return NULL;
  return ex->function || x->request->general ? add_plain(x, c) : NULL;
}

/* A group's operators run where its kernel could fault. */
static bool runs_operators(const kiln__exporter *x, const kiln_group *group) {
  const kiln_compiled *code = kiln_map_find_ptr(&x->compiled, (uintptr_t)group->fn);
  return group->interpreted && code && code->info.can_fault;
}

/* A method that is called by its name, of whatever object. */
static void add_method_name(kiln__exporter *x, kiln_str name, const kiln_method_lookup *lookup) {
  if (kiln_map_find(&x->method_at, name)) return;
  kiln_map_set(&x->method_at, name, x);
  kiln_vec_push(x->arena, &x->method_names, (kiln__method_name){name, lookup, 0});
}

/* Those of the program's classes that have methods of such names. */
static kiln_status *add_methods(kiln__exporter *x) {
  for (int i = 0; i < x->method_names.count; i++) {
    for (; x->method_names.data[i].asked < x->types.count; x->method_names.data[i].asked++) {
      const kiln__method_name *name = &x->method_names.data[i];
      const kiln_type *cls = x->types.data[name->asked].type;
      const kiln_callable *callable;
      if (cls->kind != KILN_TYPE_CLASS) continue;
      kiln_status *status = name->lookup->find(name->lookup, cls, name->name, &callable);
      if (status) { /* it has none of that name */
        kiln_status_destroy(status);
        continue;
      }
      const int number = add_callable(x, callable, callable->arg_count);
      x->callables.data[number]->is_open = true;
      kiln_vec_push(x->arena, &x->methods, (kiln__out_method){name->name, name->asked, number});
    }
  }
  return NULL;
}

static kiln_status *add_callees(kiln__exporter *x, const kiln_plan *plan) {
  for (int k = 0; k < plan->code_count; k++) {
    const kiln_instr *in = &plan->code[k];
    switch (in->op) {
      case KILN_INSTR_CALL:
      case KILN_INSTR_FORK: (void)add_callable(x, plan->callables[in->x], in->in_count); break;
      case KILN_INSTR_CALL_METHOD: add_method_name(x, plan->strings[in->x], plan->methods); break;
      case KILN_INSTR_ENTER:
        add_method_name(x, KILN_STR("__enter__"), plan->methods);
        add_method_name(x, KILN_STR("__exit__"), plan->methods);
        break;
      case KILN_INSTR_OBJECT: {
        int32_t type;
        KILN_TRY(kiln__export_type(x, plan->types[in->x], &type));
        break;
      }
      case KILN_INSTR_PROFILE: return KILN_ERROR(KILN_INTERNAL, "%s still profiles", plan->name);
      case KILN_INSTR_GROUP: {
        const kiln_group *g = &plan->groups[in->x];
        if (runs_operators(x, g)) (void)add_callable(x, g->interpreted, in->in_count);
        break;
      }
      default: break;
    }
  }
  for (int i = 0; i < plan->constant_count; i++) {
    const kiln_ivalue v = plan->constants[i];
    if (v.tag != KILN_TAG_FUNCTION) continue;
    const int number = add_callable(x, v.u.function, v.u.function->arg_count);
    x->callables.data[number]->is_open = true;
  }
  return NULL;
}

kiln_status *kiln__export_callables(kiln__exporter *x) {
  kiln_jit *jit = x->request->jit;
  kiln_cleanup unlocking;
  KILN_TRY(kiln_job_lock_take(&jit->lock, NULL));
  kiln_scope_defer(&unlocking, kiln__jit_give_lock, jit);
  for (const kiln_group_info *g = jit->now->groups.first; g; g = g->next)
    if (g->code) kiln_map_set_ptr(&x->compiled, (uintptr_t)g->code->fn, g->code);
  kiln_scope_undefer(&unlocking);
  kiln_job_lock_give(&jit->lock);
  const kiln_callable *method;
  KILN_TRY(kiln_jit_callable(jit, x->request->function, &method));
  (void)add_callable(x, method, x->request->arg_count + 1);
  int plans = 0;
  for (int i = 0; i < x->callables.count; i++) {
    KILN_TRY(add_variants(x, x->callables.data[i]));
    for (; plans < x->plans.count; plans++) KILN_TRY(add_callees(x, x->plans.data[plans]->plan));
    KILN_TRY(add_methods(x));
  }
  return NULL;
}

/* -- Writing -- */

static kiln_status *put_kernels(kiln__exporter *x, const kiln_plan *plan, size_t *out_place) {
  size_t *kernels = KILN_NEW_ARRAY(x->arena, size_t, plan->kernel_count);
  void **none = KILN_NEW_ARRAY(x->arena, void *, plan->kernel_count);
  for (int i = 0; i < plan->kernel_count; i++)
    KILN_TRY(kiln__export_kernel(x, plan->kernels[i], &kernels[i]));
  *out_place = kiln__image_put(&x->image, none, sizeof *none * (size_t)plan->kernel_count, 8);
  for (int i = 0; i < plan->kernel_count; i++)
    kiln__image_point(&x->image, *out_place + (size_t)i * sizeof *none, kernels[i]);
  return NULL;
}

static kiln_status *put_kept(kiln__exporter *x, const kiln_plan *plan, size_t *out_place) {
  size_t *kernels = KILN_NEW_ARRAY(x->arena, size_t, plan->kept_count);
  const kiln_kept_op image = {0};
  for (int i = 0; i < plan->kept_count; i++)
    KILN_TRY(kiln__export_kernel(x, plan->kept[i].kernel, &kernels[i]));
  *out_place = kiln__image_put(&x->image, "", 0, 8);
  for (int i = 0; i < plan->kept_count; i++) KILN__PUT(&x->image, image);
  for (int i = 0; i < plan->kept_count; i++)
    kiln__image_point(&x->image, *out_place + (size_t)i * sizeof image, kernels[i]);
  return NULL;
}

static size_t put_strings(kiln__exporter *x, const kiln_plan *plan) {
  kiln_str *texts = KILN_NEW_ARRAY(x->arena, kiln_str, plan->string_count);
  for (int i = 0; i < plan->string_count; i++) texts[i].len = plan->strings[i].len;
  const size_t at =
      kiln__image_put(&x->image, texts, sizeof *texts * (size_t)plan->string_count, 8);
  for (int i = 0; i < plan->string_count; i++) {
    const char *text = kiln_arena_str(x->arena, plan->strings[i]).data;
    kiln__image_point(&x->image, at + (size_t)i * sizeof *texts + offsetof(kiln_str, data),
                      kiln__image_text(&x->image, text));
  }
  return at;
}

static kiln_status *put_lists(kiln__exporter *x, const kiln_plan *plan, size_t *out_place) {
  const int count = plan->type_list_count;
  size_t *places = KILN_NEW_ARRAY(x->arena, size_t, count);
  kiln_aot_types *lists = KILN_NEW_ARRAY(x->arena, kiln_aot_types, count);
  for (int i = 0; i < count; i++) {
    const kiln_type_span *span = &plan->type_lists[i];
    int32_t *types = KILN_NEW_ARRAY(x->arena, int32_t, span->count);
    for (int k = 0; k < span->count; k++) KILN_TRY(kiln__export_type(x, span->types[k], &types[k]));
    lists[i].count = span->count;
    places[i] = kiln__export_numbers(x, types, span->count);
  }
  *out_place = kiln__image_put(&x->image, lists, sizeof *lists * (size_t)count, 8);
  for (int i = 0; i < count; i++)
    if (places[i])
      KILN__POINT(&x->image, *out_place + (size_t)i * sizeof *lists, kiln_aot_types, types,
                  places[i]);
  return NULL;
}

/* The plan's own arrays, and those of numbers. */
typedef struct plan_places {
  size_t name, code, operands, kernels, guards, groups, kept_ops, strings, ranges, entry_guard;
  size_t constants, callables, interpreted, types, lists, packs, kept;
} plan_places;

static kiln_status *put_numbers(kiln__exporter *x, const kiln_plan *plan, plan_places *at) {
  const int most =
      plan->constant_count + plan->callable_count + plan->group_count + plan->type_count;
  int32_t *numbers = KILN_NEW_ARRAY(x->arena, int32_t, most);
  for (int i = 0; i < plan->constant_count; i++)
    KILN_TRY(kiln__export_value(x, plan->constants[i], &numbers[i]));
  at->constants = kiln__export_numbers(x, numbers, plan->constant_count);
  for (int i = 0; i < plan->callable_count; i++) {
    const int number = kiln__export_callable_number(x, plan->callables[i]);
    numbers[i] = number < 0 ? 0 : number; /* nothing calls it */
  }
  at->callables = kiln__export_numbers(x, numbers, plan->callable_count);
  for (int i = 0; i < plan->group_count; i++)
    numbers[i] = runs_operators(x, &plan->groups[i])
                     ? kiln__export_callable_number(x, plan->groups[i].interpreted)
                     : -1;
  at->interpreted = kiln__export_numbers(x, numbers, plan->group_count);
  for (int i = 0; i < plan->type_count; i++)
    KILN_TRY(kiln__export_type(x, plan->types[i], &numbers[i]));
  at->types = kiln__export_numbers(x, numbers, plan->type_count);
  return NULL;
}

static size_t put_kept_values(kiln__exporter *x, const kiln__out_plan *p) {
  const int32_t *numbers = p->kept_values.data;
  size_t *args = KILN_NEW_ARRAY(x->arena, size_t, p->kept.count);
  for (int i = 0; i < p->kept.count; i++) {
    const int count = p->kept.data[i].arg_count + p->kept.data[i].out_count;
    args[i] = kiln__export_numbers(x, numbers, count);
    numbers += count;
  }
  const size_t at =
      kiln__image_put(&x->image, p->kept.data, sizeof *p->kept.data * (size_t)p->kept.count, 8);
  for (int i = 0; i < p->kept.count; i++) {
    const kiln_aot_kept *k = &p->kept.data[i];
    const size_t own = at + (size_t)i * sizeof *k;
    KILN__POINT(&x->image, own, kiln_aot_kept, args, args[i]);
    KILN__POINT(&x->image, own, kiln_aot_kept, outs,
                args[i] + sizeof(int32_t) * (size_t)k->arg_count);
  }
  return at;
}

static kiln_status *put_parts(kiln__exporter *x, const kiln__out_plan *p, plan_places *at) {
  const kiln_plan *plan = p->plan;
  int operands = 0;
  for (int i = 0; i < plan->code_count; i++) {
    const int end = (int)plan->code[i].operands + plan->code[i].in_count + plan->code[i].out_count;
    operands = end > operands ? end : operands;
  }
  at->name = kiln__image_text(&x->image, plan->name);
  at->code =
      kiln__image_put(&x->image, plan->code, sizeof *plan->code * (size_t)plan->code_count, 64);
  at->operands =
      kiln__image_put(&x->image, plan->operands, sizeof *plan->operands * (size_t)operands, 64);
  KILN_TRY(put_kernels(x, plan, &at->kernels));
  at->guards = kiln__guard_images(x, plan->guards, plan->guard_count);
  KILN_TRY(kiln__export_groups(x, plan, &at->groups));
  KILN_TRY(put_kept(x, plan, &at->kept_ops));
  at->strings = put_strings(x, plan);
  at->ranges = kiln__export_ranges(x, plan);
  if (plan->entry_guard) at->entry_guard = kiln__guard_images(x, plan->entry_guard, 1);
  KILN_TRY(put_numbers(x, plan, at));
  KILN_TRY(put_lists(x, plan, &at->lists));
  at->packs =
      kiln__image_put(&x->image, p->packs.data, sizeof *p->packs.data * (size_t)p->packs.count, 8);
  at->kept = put_kept_values(x, p);
  return NULL;
}

static void put_plan(kiln__exporter *x, const kiln__out_plan *p) {
  const kiln_plan *plan = p->plan;
  kiln_aot_plan image;
  memset(&image, 0, sizeof image);
  image.plan.register_count = plan->register_count;
  image.plan.arg_count = plan->arg_count;
  image.plan.borrowed_count = plan->borrowed_count;
  image.plan.result_count = plan->result_count;
  image.plan.borrows_self = plan->borrows_self;
  image.plan.max_in = plan->max_in;
  image.plan.max_entered = plan->max_entered;
  image.plan.code_count = plan->code_count;
  image.plan.constant_count = plan->constant_count;
  image.plan.kernel_count = plan->kernel_count;
  image.plan.callable_count = plan->callable_count;
  image.plan.guard_count = plan->guard_count;
  image.plan.group_count = plan->group_count;
  image.plan.kept_count = plan->kept_count;
  image.plan.symbol_count = plan->symbol_count;
  image.plan.record_count = plan->record_count;
  image.plan.type_count = plan->type_count;
  image.plan.type_list_count = plan->type_list_count;
  image.plan.string_count = plan->string_count;
  image.pack_count = p->packs.count;
  image.kept_count = p->kept.count;
  KILN__PUT(&x->image, image);
}

static void point_plan(kiln__exporter *x, size_t own, const plan_places *at) {
  const struct {
    size_t field, target;
  } fields[] = {
      {offsetof(kiln_aot_plan, plan.name), at->name},
      {offsetof(kiln_aot_plan, plan.code), at->code},
      {offsetof(kiln_aot_plan, plan.operands), at->operands},
      {offsetof(kiln_aot_plan, plan.kernels), at->kernels},
      {offsetof(kiln_aot_plan, plan.guards), at->guards},
      {offsetof(kiln_aot_plan, plan.groups), at->groups},
      {offsetof(kiln_aot_plan, plan.kept), at->kept_ops},
      {offsetof(kiln_aot_plan, plan.strings), at->strings},
      {offsetof(kiln_aot_plan, plan.ranges), at->ranges},
      {offsetof(kiln_aot_plan, plan.entry_guard), at->entry_guard},
      {offsetof(kiln_aot_plan, constants), at->constants},
      {offsetof(kiln_aot_plan, callables), at->callables},
      {offsetof(kiln_aot_plan, interpreted), at->interpreted},
      {offsetof(kiln_aot_plan, types), at->types},
      {offsetof(kiln_aot_plan, lists), at->lists},
      {offsetof(kiln_aot_plan, packs), at->packs},
      {offsetof(kiln_aot_plan, kept), at->kept},
  };
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    if (fields[i].target) kiln__image_point(&x->image, own + fields[i].field, fields[i].target);
}

kiln_status *kiln__export_plans_at(kiln__exporter *x, size_t *out_place) {
  plan_places *places = KILN_NEW_ARRAY(x->arena, plan_places, x->plans.count);
  for (int i = 0; i < x->plans.count; i++) KILN_TRY(put_parts(x, x->plans.data[i], &places[i]));
  *out_place = kiln__image_put(&x->image, "", 0, 8);
  for (int i = 0; i < x->plans.count; i++) put_plan(x, x->plans.data[i]);
  for (int i = 0; i < x->plans.count; i++)
    point_plan(x, *out_place + (size_t)i * sizeof(kiln_aot_plan), &places[i]);
  return NULL;
}

/* What its caller asked for, and what its variants ask for, of arguments that are no weights. */
static const char *words_of(kiln__exporter *x, const kiln__out_callable *c) {
  enum { MOST = 4 };
  kiln_text text = kiln_text_in(x->arena);
  if (c->words) kiln_text_puts(&text, c->words);
  for (int k = 0; k < c->image.variant_count && k < MOST; k++) {
    const kiln_guard_desc *guard = c->guards[k];
    bool *shown = guard ? KILN_NEW_ARRAY(x->arena, bool, guard->count) : NULL;
    if (!guard) return NULL;
    for (int i = 0; i < guard->count; i++) {
      const uint32_t at = guard->at[i] & KILN_OPERAND_INDEX;
      shown[i] = at < (uint32_t)c->image.arg_count && c->known[at] != KILN__KNOWN;
    }
    if (text.len > 0) kiln_text_puts(&text, " or ");
    kiln__guard_words(&text, guard, shown);
  }
  if (c->image.variant_count > MOST) kiln_text_puts(&text, " or others");
  return text.len > 0 ? text.data : NULL;
}

static void point_words(kiln__exporter *x, size_t own, const kiln__out_callable *c) {
  const char *words = words_of(x, c);
  const int count = c->image.arg_count;
  if (!words) return;
  uint8_t *shown = KILN_NEW_ARRAY(x->arena, uint8_t, count);
  for (int i = 0; i < count; i++) shown[i] = c->known[i] != KILN__KNOWN;
  KILN__POINT(&x->image, own, kiln_aot_callable, words, kiln__image_text(&x->image, words));
  KILN__POINT(&x->image, own, kiln_aot_callable, shown,
              kiln__image_put(&x->image, shown, (size_t)count, 8));
}

size_t kiln__export_callables_at(kiln__exporter *x) {
  size_t *variants = KILN_NEW_ARRAY(x->arena, size_t, x->callables.count);
  for (int i = 0; i < x->callables.count; i++) {
    const kiln__out_callable *c = x->callables.data[i];
    const int count = c->image.variant_count;
    size_t *guards = KILN_NEW_ARRAY(x->arena, size_t, count);
    for (int k = 0; k < count; k++)
      guards[k] = c->guards[k] ? kiln__guard_images(x, c->guards[k], 1) : 0;
    variants[i] = kiln__image_put(&x->image, "", 0, 8);
    for (int k = 0; k < count; k++) {
      kiln_aot_variant image;
      memset(&image, 0, sizeof image);
      image.plan = (int32_t)(uintptr_t)kiln_map_find_ptr(&x->plan_at, c->plans[k]) - 1;
      KILN__PUT(&x->image, image);
    }
    for (int k = 0; k < count; k++) {
      if (!guards[k]) continue;
      const size_t own = variants[i] + (size_t)k * sizeof(kiln_aot_variant);
      KILN__POINT(&x->image, own, kiln_aot_variant, guard, guards[k]);
    }
  }
  const size_t at = kiln__image_put(&x->image, "", 0, 8);
  for (int i = 0; i < x->callables.count; i++) KILN__PUT(&x->image, x->callables.data[i]->image);
  for (int i = 0; i < x->callables.count; i++) {
    const size_t own = at + (size_t)i * sizeof(kiln_aot_callable);
    KILN__POINT(&x->image, own, kiln_aot_callable, variants, variants[i]);
    KILN__POINT(&x->image, own, kiln_aot_callable, name,
                kiln__image_text(&x->image, x->callables.data[i]->callable->name));
    point_words(x, own, x->callables.data[i]);
  }
  return at;
}

size_t kiln__export_methods_at(kiln__exporter *x) {
  const size_t at = kiln__image_put(&x->image, "", 0, 8);
  for (int i = 0; i < x->methods.count; i++) {
    kiln_aot_method image;
    memset(&image, 0, sizeof image);
    image.type = x->methods.data[i].type;
    image.callable = x->methods.data[i].callable;
    image.name.len = x->methods.data[i].name.len;
    KILN__PUT(&x->image, image);
  }
  for (int i = 0; i < x->methods.count; i++)
    kiln__image_point(
        &x->image,
        at + (size_t)i * sizeof(kiln_aot_method) + offsetof(kiln_aot_method, name) +
            offsetof(kiln_str, data),
        kiln__image_text(&x->image, kiln_arena_str(x->arena, x->methods.data[i].name).data));
  return at;
}
