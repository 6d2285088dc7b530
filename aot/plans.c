/* plans.c: the plans of an open model: those of the program, with constants, callables and slots.
 */
#include <stdio.h>
#include <string.h>

#include "aot/aot.h"

/* -- Callables -- */

static void add_words(char *text, size_t room, const char *words) {
  const size_t used = strlen(text);
  snprintf(text + used, room - used, "%s", words);
}

/* "(Float(2, 3), int)" of the arguments that words tell of. */
static void print_arguments(const kiln_aot_callable *c, const kiln_ivalue *args, int count,
                            char *text, size_t room) {
  const char *between = "(";
  text[0] = '\0';
  for (int i = 0; i < count && i < c->arg_count; i++) {
    char sizes[128] = "";
    if (!c->shown[i] || args[i].tag != KILN_TAG_TENSOR) continue;
    const kiln_tensor *t = args[i].u.tensor;
    add_words(text, room, between);
    add_words(text, room,
              kiln_tensor_is_undefined(t) ? "Tensor" : kiln_dtype_ir_name(kiln_tensor_dtype(t)));
    kiln_sizes_print(kiln_tensor_rank(t), kiln_tensor_sizes(t), sizes, sizeof sizes);
    sizes[0] = '('; /* [2, 3] as (2, 3) */
    sizes[strlen(sizes) - 1] = ')';
    add_words(text, room, sizes);
    between = ", ";
  }
  add_words(text, room, *between == '(' ? "()" : ")");
}

static kiln_status *refuse(const kiln__aot_callable *c, const kiln_ivalue *args, int count) {
  char text[512];
  const char *name = c->model->program->name;
  if (!c->image->words)
    return KILN_ERROR(KILN_UNSUPPORTED,
                      "%s has no code for %s, which was not called when it was "
                      "compiled: kiln compile --general has",
                      name, c->image->name);
  print_arguments(c->image, args, count, text, sizeof text);
  return KILN_ERROR(KILN_INVALID_ARGUMENT,
                    "%s was compiled for %s, and not for %s: kiln compile takes several --inputs, "
                    "and with --general makes code for all",
                    name, c->image->words, text);
}

static kiln_status *get_plan(const kiln_callable *self, kiln_call *call, const kiln_ivalue *args,
                             int arg_count, const kiln_plan **out_plan) {
  const kiln__aot_callable *c = (const kiln__aot_callable *)(const void *)self; /* first there */
  for (int i = 0; i < c->image->variant_count; i++) {
    const kiln_aot_variant *v = &c->image->variants[i];
    if (v->guard && !kiln_guard_holds(v->guard, args, NULL, call->grad_mode)) continue;
    *out_plan = &c->model->plans[v->plan];
    return NULL;
  }
  return refuse(c, args, arg_count);
}

static kiln_status *find_method(const kiln_method_lookup *self, const kiln_type *cls, kiln_str name,
                                const kiln_callable **out_callable) {
  const kiln_aot_model *m = (const void *)((const char *)self - offsetof(kiln_aot_model, methods));
  const kiln_map *of_class = kiln_map_find_ptr(&m->methods_of, cls);
  *out_callable = of_class ? kiln_map_find(of_class, name) : NULL;
  if (*out_callable) return NULL;
  return KILN_ERROR(KILN_UNSUPPORTED,
                    "method '" KILN_STR_FMT "' of " KILN_STR_FMT " was not compiled",
                    KILN_STR_ARG(name), KILN_STR_ARG(cls->name));
}

static void make_methods(kiln_aot_model *m) {
  m->methods.find = find_method;
  m->methods_of = kiln_map_in(m->arena);
  for (int i = 0; i < m->program->method_count; i++) {
    const kiln_aot_method *method = &m->program->methods[i];
    const kiln_type *cls = m->types[method->type];
    kiln_map *of_class = kiln_map_find_ptr(&m->methods_of, cls);
    if (!of_class) {
      of_class = KILN_NEW(m->arena, kiln_map);
      *of_class = kiln_map_in(m->arena);
      kiln_map_set_ptr(&m->methods_of, cls, of_class);
    }
    kiln_map_set(of_class, method->name, &m->callables[method->callable].callable);
  }
}

static void make_callables(kiln_aot_model *m) {
  const kiln_aot_program *p = m->program;
  m->callables = KILN_NEW_ARRAY(m->arena, kiln__aot_callable, p->callable_count);
  for (int i = 0; i < p->callable_count; i++) {
    const kiln_aot_callable *image = &p->callables[i];
    m->callables[i] = (kiln__aot_callable){.callable = {.name = image->name,
                                                        .get_plan = get_plan,
                                                        .arg_count = image->arg_count,
                                                        .fork = image->fork,
                                                        .is_part = image->is_part},
                                           .model = m,
                                           .image = image};
  }
  make_methods(m);
}

/* -- Plans -- */

static void make_group(kiln_aot_model *m, kiln_group *group, int32_t interpreted) {
  if (interpreted >= 0) group->interpreted = &m->callables[interpreted].callable;
  kiln_group_pack *packs =
      kiln_arena_copy(m->arena, group->packs, sizeof *packs * (size_t)group->pack_count);
  for (int i = 0; i < group->pack_count; i++) {
    if (!packs[i].slot) continue; /* it marks weights */
    packs[i].slot = KILN_NEW(m->arena, kiln_pack_slot);
    packs[i].slot->store = m->packs;
  }
  group->packs = packs;
  if (!group->heavy) return;
  kiln_group_heavy *heavy = kiln_arena_copy(m->arena, group->heavy, sizeof *heavy);
  heavy->slots = KILN_NEW_ARRAY(m->arena, kiln_pack_slot, KILN_GROUP_PACKS);
  for (int i = 0; i < KILN_GROUP_PACKS; i++) heavy->slots[i].store = m->packs;
  group->heavy = heavy;
}

static void make_plan(kiln_aot_model *m, const kiln_aot_plan *image, kiln_plan *plan) {
  *plan = image->plan;
  plan->constants = KILN_NEW_ARRAY(m->arena, kiln_ivalue, plan->constant_count);
  for (int i = 0; i < plan->constant_count; i++)
    plan->constants[i] = m->values[image->constants[i]]; /* borrowed */
  const kiln_callable **callables =
      KILN_NEW_ARRAY(m->arena, const kiln_callable *, plan->callable_count);
  for (int i = 0; i < plan->callable_count; i++)
    callables[i] = &m->callables[image->callables[i]].callable;
  plan->callables = callables;
  const kiln_type **types = KILN_NEW_ARRAY(m->arena, const kiln_type *, plan->type_count);
  for (int i = 0; i < plan->type_count; i++) types[i] = m->types[image->types[i]];
  plan->types = types;
  kiln_type_span *lists = KILN_NEW_ARRAY(m->arena, kiln_type_span, plan->type_list_count);
  for (int i = 0; i < plan->type_list_count; i++) {
    const int count = lists[i].count = image->lists[i].count;
    const kiln_type **items = KILN_NEW_ARRAY(m->arena, const kiln_type *, count);
    for (int k = 0; k < count; k++) items[k] = m->types[image->lists[i].types[k]];
    lists[i].types = items;
  }
  plan->type_lists = lists;
  kiln_group *groups =
      kiln_arena_copy(m->arena, plan->groups, sizeof *groups * (size_t)plan->group_count);
  for (int i = 0; i < plan->group_count; i++) make_group(m, &groups[i], image->interpreted[i]);
  plan->groups = groups;
  kiln_kept_op *kept =
      kiln_arena_copy(m->arena, plan->kept, sizeof *kept * (size_t)plan->kept_count);
  for (int i = 0; i < plan->kept_count; i++) kept[i].slot = KILN_NEW(m->arena, kiln_kept_slot);
  plan->kept = kept;
  plan->methods = &m->methods;
}

/* -- What is kept -- */

/* What the file has of it. */
static kiln_status *fill_slots(kiln_aot_model *m, const kiln_aot_plan *image,
                               const kiln_plan *plan) {
  kiln_ivalue outs[KILN_MAX_OUTS];
  for (int i = 0; i < image->kept_count; i++) {
    const kiln_aot_kept *k = &image->kept[i];
    kiln_ivalue *args = KILN_NEW_ARRAY(m->arena, kiln_ivalue, k->arg_count);
    for (int a = 0; a < k->arg_count; a++) args[a] = m->values[k->args[a]];
    for (int o = 0; o < k->out_count; o++) outs[o] = m->values[k->outs[o]];
    kiln_kept_offer(m->env->mem, &m->epoch, plan->kept[k->kept].slot, args, k->arg_count, outs,
                    k->out_count);
  }
  for (int i = 0; i < image->pack_count; i++) {
    const kiln_aot_pack *p = &image->packs[i];
    const kiln_group *group = &plan->groups[p->group];
    const kiln_kernel_pack *pack = p->pack < 0 ? &group->heavy->pack : group->packs[p->pack].pack;
    kiln_pack_slot *slot =
        p->pack < 0 ? &group->heavy->slots[pack->form] : group->packs[p->pack].slot;
    KILN_TRY(kiln_pack_give(&m->epoch, slot, pack, m->values[p->value].u.tensor, m->weights + p->at,
                            (size_t)p->bytes));
  }
  return NULL;
}

kiln_status *kiln__aot_make_plans(kiln_aot_model *m) {
  const kiln_aot_program *p = m->program;
  make_callables(m);
  KILN_TRY(kiln__aot_make_values(m));
  m->plans = KILN_NEW_ARRAY(m->arena, kiln_plan, p->plan_count);
  for (; m->plans_made < p->plan_count; m->plans_made++)
    make_plan(m, &p->plans[m->plans_made], &m->plans[m->plans_made]);
  for (int i = 0; i < p->plan_count; i++) KILN_TRY(fill_slots(m, &p->plans[i], &m->plans[i]));
  return NULL;
}

void kiln__aot_drop_plans(kiln_aot_model *m) {
  for (int i = 0; i < m->plans_made; i++) {
    const kiln_plan *plan = &m->plans[i];
    for (int k = 0; k < plan->kept_count; k++) kiln_kept_slot_release(plan->kept[k].slot);
    for (int g = 0; g < plan->group_count; g++) {
      const kiln_group *group = &plan->groups[g];
      for (int k = 0; k < group->pack_count; k++)
        if (group->packs[k].slot) kiln_pack_slot_release(group->packs[k].slot);
      for (int f = 0; group->heavy && f < KILN_GROUP_PACKS; f++)
        kiln_pack_slot_release(&group->heavy->slots[f]);
    }
  }
}
