/* plans.c: callables and their plans, found from the method on. */
#include "export/internal.h"

int kiln__export_callable_number(const kiln__exporter *x, const kiln_callable *callable) {
  return callable ? kiln__number_of(&x->callable_at, callable) : -1;
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
  kiln__set_number(&x->callable_at, callable, x->callables.count);
  kiln_vec_push(x->arena, &x->callables, c);
  return x->callables.count - 1;
}

static void add_plan(kiln__exporter *x, kiln__out_callable *c, const kiln_plan *plan) {
  if (kiln__number_of(&x->plan_at, plan) >= 0) return;
  kiln__out_plan *p = KILN_NEW(x->arena, kiln__out_plan);
  p->plan = plan;
  p->of = c;
  kiln__set_number(&x->plan_at, plan, x->plans.count);
  kiln_vec_push(x->arena, &x->plans, p);
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
      const kiln_type *cls = x->types.data[name->asked];
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

static kiln_status *put_kernels(kiln__exporter *x, const kiln_plan *plan, kiln_plan *own) {
  const kiln_kernel **kernels = KILN_NEW_ARRAY(x->arena, const kiln_kernel *, plan->kernel_count);
  for (int i = 0; i < plan->kernel_count; i++)
    KILN_TRY(kiln__export_kernel(x, plan->kernels[i], &kernels[i]));
  own->kernels = KILN__PUT(&x->image, kernels, plan->kernel_count, kernels);
  return NULL;
}

static kiln_status *put_kept(kiln__exporter *x, const kiln_plan *plan, kiln_plan *own) {
  kiln_kept_op *kept = KILN_NEW_ARRAY(x->arena, kiln_kept_op, plan->kept_count);
  for (int i = 0; i < plan->kept_count; i++)
    KILN_TRY(kiln__export_kernel(x, plan->kept[i].kernel, &kept[i].kernel));
  own->kept = KILN__PUT(&x->image, kept, plan->kept_count, &kept->kernel);
  return NULL;
}

static kiln_status *put_lists(kiln__exporter *x, const kiln_plan *plan, kiln_aot_plan *own) {
  const int count = plan->type_list_count;
  kiln_aot_types *lists = KILN_NEW_ARRAY(x->arena, kiln_aot_types, count);
  for (int i = 0; i < count; i++) {
    const kiln_type_span *span = &plan->type_lists[i];
    int32_t *types = KILN_NEW_ARRAY(x->arena, int32_t, span->count);
    for (int k = 0; k < span->count; k++) KILN_TRY(kiln__export_type(x, span->types[k], &types[k]));
    lists[i].count = span->count;
    lists[i].types = KILN__ARRAY(&x->image, types, span->count);
  }
  own->lists = KILN__PUT(&x->image, lists, count, &lists->types);
  return NULL;
}

static kiln_status *put_numbers(kiln__exporter *x, const kiln_plan *plan, kiln_aot_plan *own) {
  const int most =
      plan->constant_count + plan->callable_count + plan->group_count + plan->type_count;
  int32_t *numbers = KILN_NEW_ARRAY(x->arena, int32_t, most);
  for (int i = 0; i < plan->constant_count; i++)
    KILN_TRY(kiln__export_value(x, plan->constants[i], &numbers[i]));
  own->constants = KILN__ARRAY(&x->image, numbers, plan->constant_count);
  for (int i = 0; i < plan->callable_count; i++) {
    const int number = kiln__export_callable_number(x, plan->callables[i]);
    numbers[i] = number < 0 ? 0 : number; /* nothing calls it */
  }
  own->callables = KILN__ARRAY(&x->image, numbers, plan->callable_count);
  for (int i = 0; i < plan->group_count; i++)
    numbers[i] = runs_operators(x, &plan->groups[i])
                     ? kiln__export_callable_number(x, plan->groups[i].interpreted)
                     : -1;
  own->interpreted = KILN__ARRAY(&x->image, numbers, plan->group_count);
  for (int i = 0; i < plan->type_count; i++)
    KILN_TRY(kiln__export_type(x, plan->types[i], &numbers[i]));
  own->types = KILN__ARRAY(&x->image, numbers, plan->type_count);
  return NULL;
}

static const kiln_aot_kept *put_kept_values(kiln__exporter *x, const kiln__out_plan *p) {
  const int32_t *numbers = p->kept_values.data;
  kiln_aot_kept *own = KILN_NEW_ARRAY(x->arena, kiln_aot_kept, p->kept.count);
  for (int i = 0; i < p->kept.count; i++) {
    const int arg_count = p->kept.data[i].arg_count;
    const int count = arg_count + p->kept.data[i].out_count;
    own[i] = p->kept.data[i];
    own[i].args = KILN__ARRAY(&x->image, numbers, count);
    own[i].outs = own[i].args + arg_count;
    numbers += count;
  }
  return KILN__PUT(&x->image, own, p->kept.count, &own->args, &own->outs);
}

static void set_counts(kiln_plan *own, const kiln_plan *plan) {
  KILN__SAME(own, plan, register_count), KILN__SAME(own, plan, arg_count);
  KILN__SAME(own, plan, borrowed_count), KILN__SAME(own, plan, result_count);
  KILN__SAME(own, plan, borrows_self), KILN__SAME(own, plan, max_in);
  KILN__SAME(own, plan, max_entered), KILN__SAME(own, plan, code_count);
  KILN__SAME(own, plan, constant_count), KILN__SAME(own, plan, kernel_count);
  KILN__SAME(own, plan, callable_count), KILN__SAME(own, plan, guard_count);
  KILN__SAME(own, plan, group_count), KILN__SAME(own, plan, kept_count);
  KILN__SAME(own, plan, symbol_count), KILN__SAME(own, plan, record_count);
  KILN__SAME(own, plan, type_count), KILN__SAME(own, plan, type_list_count);
  KILN__SAME(own, plan, string_count);
  _Static_assert(sizeof *plan == 264, "a new count stands here, too, and a new pointer below");
}

static kiln_status *fill_plan(kiln__exporter *x, const kiln__out_plan *p, kiln_aot_plan *own) {
  const kiln_plan *plan = p->plan;
  size_t operands = 0;
  for (int i = 0; i < plan->code_count; i++) {
    const kiln_instr *in = &plan->code[i];
    const size_t end = (size_t)in->operands + in->in_count + in->out_count;
    operands = end > operands ? end : operands;
  }
  set_counts(&own->plan, plan);
  own->pack_count = p->packs.count;
  own->kept_count = p->kept.count;
  own->plan.name = kiln__image_text(&x->image, plan->name);
  own->plan.code =
      kiln__image_put(&x->image, plan->code, sizeof *plan->code * (size_t)plan->code_count, 64);
  own->plan.operands =
      kiln__image_put(&x->image, plan->operands, sizeof *plan->operands * operands, 64);
  KILN_TRY(put_kernels(x, plan, &own->plan));
  own->plan.guards = kiln__guard_images(x, plan->guards, plan->guard_count);
  KILN_TRY(kiln__export_groups(x, plan, &own->plan.groups));
  KILN_TRY(put_kept(x, plan, &own->plan));
  own->plan.strings = kiln__image_strs(&x->image, plan->strings, plan->string_count);
  own->plan.ranges = kiln__export_ranges(x, plan);
  if (plan->entry_guard) own->plan.entry_guard = kiln__guard_images(x, plan->entry_guard, 1);
  KILN_TRY(put_numbers(x, plan, own));
  KILN_TRY(put_lists(x, plan, own));
  own->packs =
      kiln__image_put(&x->image, p->packs.data, sizeof *p->packs.data * (size_t)p->packs.count, 8);
  own->kept = put_kept_values(x, p);
  return NULL;
}

kiln_status *kiln__export_plans_at(kiln__exporter *x, const kiln_aot_plan **out_at) {
  kiln_aot_plan *own = KILN_NEW_ARRAY(x->arena, kiln_aot_plan, x->plans.count);
  for (int i = 0; i < x->plans.count; i++) KILN_TRY(fill_plan(x, x->plans.data[i], &own[i]));
  *out_at = KILN__PUT(&x->image, own, x->plans.count, &own->plan.name, &own->plan.code,
                      &own->plan.operands, &own->plan.kernels, &own->plan.guards, &own->plan.groups,
                      &own->plan.kept, &own->plan.strings, &own->plan.ranges,
                      &own->plan.entry_guard, &own->constants, &own->callables, &own->interpreted,
                      &own->types, &own->lists, &own->packs, &own->kept);
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

static void set_words(kiln__exporter *x, kiln_aot_callable *at, const kiln__out_callable *c) {
  const char *words = words_of(x, c);
  const int count = c->image.arg_count;
  if (!words) return;
  uint8_t *shown = KILN_NEW_ARRAY(x->arena, uint8_t, count);
  for (int i = 0; i < count; i++) shown[i] = c->known[i] != KILN__KNOWN;
  kiln__image_set(&x->image, &at->words, kiln__image_text(&x->image, words));
  kiln__image_set(&x->image, &at->shown, kiln__image_put(&x->image, shown, (size_t)count, 8));
}

static const kiln_aot_variant *put_variants(kiln__exporter *x, const kiln__out_callable *c) {
  const int count = c->image.variant_count;
  kiln_aot_variant *own = KILN_NEW_ARRAY(x->arena, kiln_aot_variant, count);
  for (int k = 0; k < count; k++) {
    own[k].plan = kiln__number_of(&x->plan_at, c->plans[k]);
    if (c->guards[k]) own[k].guard = kiln__guard_images(x, c->guards[k], 1);
  }
  return KILN__PUT(&x->image, own, count, &own->guard);
}

const kiln_aot_callable *kiln__export_callables_at(kiln__exporter *x) {
  const int count = x->callables.count;
  kiln_aot_callable *own = KILN_NEW_ARRAY(x->arena, kiln_aot_callable, count);
  for (int i = 0; i < count; i++) {
    own[i] = x->callables.data[i]->image;
    own[i].variants = put_variants(x, x->callables.data[i]);
  }
  kiln_aot_callable *at = KILN__ARRAY(&x->image, own, count);
  for (int i = 0; i < count; i++) {
    const kiln__out_callable *c = x->callables.data[i];
    kiln__image_set(&x->image, &at[i].variants, own[i].variants);
    kiln__image_set(&x->image, &at[i].name, kiln__image_text(&x->image, c->callable->name));
    set_words(x, &at[i], c);
  }
  return at;
}

const kiln_aot_method *kiln__export_methods_at(kiln__exporter *x) {
  kiln_aot_method *own = KILN_NEW_ARRAY(x->arena, kiln_aot_method, x->methods.count);
  for (int i = 0; i < x->methods.count; i++) {
    const kiln__out_method *m = &x->methods.data[i];
    KILN__SAME(&own[i], m, type), KILN__SAME(&own[i], m, callable);
    own[i].name.len = m->name.len;
  }
  kiln_aot_method *at = kiln__image_put(&x->image, own, sizeof *own * (size_t)x->methods.count, 8);
  for (int i = 0; i < x->methods.count; i++)
    kiln__image_set(&x->image, &at[i].name.data,
                    kiln__image_str(&x->image, x->methods.data[i].name).data);
  return at;
}
