/* known.c: what plans read of attributes and constants: one walk over the code of each, as
 * runtime/prepare.c does it, with what is known of arguments from who calls.
 *
 * Callers first say what their callees' arguments are, until nothing new is said:
 *   forward: CALL fallback(r1.weight, r2)    of fallback: argument 0 is that weight, 1 is not known
 * Then plans are walked over once more, for what they keep and read. A value that is written to an
 * attribute, or comes from what is not known, is not known. */
#include "export/internal.h"

typedef struct held {
  bool is_known;
  kiln_ivalue value; /* borrowed */
} held;

typedef struct walk {
  kiln__exporter *x;
  kiln__out_plan *p;
  held *regs;
  int *from, *until; /* of each instruction: the first jump to it from before, the last from behind
                      */
  const kiln_guard_desc **guards; /* of each instruction: who jumps there asked this; or NULL */
  bool says;                      /* the last walk: what is kept and needed */
  bool changed;                   /* something new was said of a callee */
} walk;

/* -- Attributes that some plan sets -- */

static bool is_written(const kiln__exporter *x, uint32_t slot) {
  return kiln_map_find_id(&x->written, slot + 1) != NULL;
}

static void find_written(kiln__exporter *x) {
  for (int i = 0; i < x->plans.count; i++) {
    const kiln_plan *plan = x->plans.data[i]->plan;
    for (int k = 0; k < plan->code_count; k++)
      if (plan->code[k].op == KILN_INSTR_SET_ATTR)
        kiln_map_set_id(&x->written, plan->code[k].x + 1, x);
  }
}

/* -- Values -- */

static held look(const walk *w, kiln_operand o) {
  if (o & KILN_OPERAND_CONSTANT) return (held){true, w->p->plan->constants[o & KILN_OPERAND_INDEX]};
  return w->regs[o & KILN_OPERAND_INDEX];
}

static void put(const walk *w, kiln_operand o, held value) {
  if ((o & KILN_OPERAND_INDEX) != KILN_OPERAND_NONE) w->regs[o & KILN_OPERAND_INDEX] = value;
}

static bool is_tensor(held h) {
  return h.is_known && h.value.tag == KILN_TAG_TENSOR && h.value.u.tensor &&
         !kiln_tensor_is_undefined(h.value.u.tensor);
}

static void need_storage(kiln__exporter *x, const kiln_storage *s) {
  const int known = kiln__number_of(&x->storage_at, s->data ? s->data : (const void *)s);
  if (known >= 0) x->storages.data[known].is_needed = true;
}

/* All that is reached from the value may be read. */
static void need(kiln__exporter *x, kiln_ivalue first) {
  KILN_VEC(kiln_ivalue) todo = {0};
  kiln_vec_push(x->arena, &todo, first);
  while (todo.count > 0) {
    const kiln_ivalue v = kiln_vec_pop(&todo);
    if (v.tag < KILN_TAG__COUNTED || !v.u.box || kiln_map_find_ptr(&x->needed, v.u.box)) continue;
    kiln_map_set_ptr(&x->needed, v.u.box, x);
    if (v.tag == KILN_TAG_TENSOR && v.u.tensor->storage) need_storage(x, v.u.tensor->storage);
    for (int64_t i = 0; i < kiln_child_count(v); i++)
      kiln_vec_push(x->arena, &todo, kiln_child_at(v, i));
  }
}

static void need_operand(const walk *w, kiln_operand o) {
  if ((o & KILN_OPERAND_INDEX) == KILN_OPERAND_NONE) return;
  const held h = look(w, o);
  if (w->says && h.is_known) need(w->x, h.value);
}

/* -- Instructions -- */

static void walk_attr(walk *w, const kiln_instr *in, const kiln_operand *o) {
  const held from = look(w, o[0]);
  held got = {0};
  if (from.is_known && from.value.tag == KILN_TAG_OBJECT &&
      in->x < (uint64_t)from.value.u.object->count) {
    got = (held){true, from.value.u.object->slots[in->x]};
    if (is_written(w->x, in->x)) {
      if (w->says) need(w->x, got.value);
      got = (held){0};
    }
  } else if (w->says) {
    w->x->needs_all = true;
  }
  put(w, o[1], got);
}

static kiln_status *say_kept(walk *w, const kiln_instr *in, const kiln_ivalue *args,
                             const kiln_ivalue *outs) {
  const int n = in->in_count, out_count = in->out_count / 2;
  kiln_aot_kept kept = {.kept = (int)in->x, .arg_count = n, .out_count = out_count};
  for (int i = 0; i < n + out_count; i++) {
    int32_t number;
    KILN_TRY(kiln__export_value(w->x, i < n ? args[i] : outs[i - n], &number));
    kiln_vec_push(w->x->arena, &w->p->kept_values, number);
  }
  kiln_vec_push(w->x->arena, &w->p->kept, kept);
  return NULL;
}

static kiln_status *walk_kept(walk *w, const kiln_instr *in, const kiln_operand *o) {
  const int n = in->in_count, out_count = in->out_count / 2;
  kiln_ivalue *args = KILN_NEW_ARRAY(w->x->arena, kiln_ivalue, n);
  bool known = true;
  for (int i = 0; known && i < n; i++) {
    known = look(w, o[i]).is_known;
    args[i] = look(w, o[i]).value;
  }
  const kiln_ivalue *outs = known ? kiln_kept_find(w->p->plan->kept[in->x].slot, args, n) : NULL;
  if (outs && w->says) KILN_TRY(say_kept(w, in, args, outs));
  for (int i = 0; !outs && i < n; i++) need_operand(w, o[i]);
  for (int i = 0; i < out_count; i++) {
    put(w, o[n + i], outs ? (held){true, outs[i]} : (held){0});
    put(w, o[n + out_count + i], (held){0});
  }
  return NULL;
}

/* Whether the slot has a packed copy of the operand, which then goes into the file. */
static kiln_status *say_pack(walk *w, const kiln_instr *in, kiln_operand o, int pack,
                             const kiln_pack_slot *slot, bool *out_is_packed) {
  const held h = look(w, o);
  size_t bytes;
  *out_is_packed = false;
  if (!is_tensor(h)) return NULL;
  const void *copy = kiln_pack_find(slot, h.value.u.tensor, &bytes);
  if (!copy) return NULL;
  kiln_aot_pack image = {.group = (int)in->x, .pack = pack, .bytes = (int64_t)bytes};
  KILN_TRY(kiln__export_value(w->x, h.value, &image.value));
  kiln_vec_push(w->x->arena, &w->p->packs, image);
  kiln_vec_push(w->x->arena, &w->p->copies, copy);
  *out_is_packed = true;
  return NULL;
}

static kiln_status *say_group(walk *w, const kiln_instr *in, const kiln_operand *o) {
  const kiln_group *g = &w->p->plan->groups[in->x];
  const kiln_group_heavy *h = g->heavy;
  bool *packed = KILN_NEW_ARRAY(w->x->arena, bool, in->in_count);
  for (int i = 0; i < g->pack_count; i++) {
    const kiln_group_pack *p = &g->packs[i];
    if (p->slot && !p->pack->of_tensor)
      KILN_TRY(say_pack(w, in, o[p->operand], i, p->slot, &packed[p->operand]));
  }
  /* Of images of any size the form is not known. */
  if (h && !(h->pack.transform == KILN_TRANSFORM_WINOGRAD && h->winograd.batch == 0))
    KILN_TRY(say_pack(w, in, o[h->weight], -1, &h->slots[h->pack.form], &packed[h->weight]));
  const bool operators = kiln__export_callable_number(w->x, g->interpreted) >= 0;
  for (int i = 0; i < in->in_count; i++)
    if (!packed[i] || operators) need_operand(w, o[i]);
  return NULL;
}

static void say_argument(walk *w, kiln__out_callable *c, int i, held h) {
  const bool same =
      h.is_known && c->known[i] == KILN__KNOWN && kiln_ivalue_same(c->args[i], h.value);
  if (c->known[i] == KILN__UNKNOWN || same) return;
  w->changed = true;
  c->known[i] = h.is_known && c->known[i] == KILN__UNSEEN ? KILN__KNOWN : KILN__UNKNOWN;
  c->args[i] = h.value;
}

/* A fallback, by the guard before it. */
static void say_words(walk *w, kiln__out_callable *c, const kiln_guard_desc *guard) {
  kiln_text text = kiln_text_in(w->x->arena);
  bool *shown = KILN_NEW_ARRAY(w->x->arena, bool, guard->count);
  for (int i = 0; i < guard->count; i++) shown[i] = !look(w, guard->at[i]).is_known;
  kiln__guard_words(&text, guard, shown);
  c->words = text.data;
}

static void walk_call(walk *w, const kiln_instr *in, const kiln_operand *o) {
  const int number = kiln__export_callable_number(w->x, w->p->plan->callables[in->x]);
  kiln__out_callable *c = w->x->callables.data[number];
  const kiln_guard_desc *guard = w->guards[in - w->p->plan->code];
  if (w->says && guard) say_words(w, c, guard);
  for (int i = 0; i < in->in_count && i < c->image.arg_count; i++) {
    if (!w->says)
      say_argument(w, c, i, look(w, o[i]));
    else if (c->known[i] == KILN__UNKNOWN)
      need_operand(w, o[i]);
  }
}

/* -- Paths -- */

static void find_paths(walk *w) {
  const kiln_plan *plan = w->p->plan;
  const int end = plan->code_count;
  w->regs = KILN_NEW_ARRAY(w->x->arena, held, plan->register_count);
  w->from = KILN_NEW_ARRAY(w->x->arena, int, end + 1);
  w->until = KILN_NEW_ARRAY(w->x->arena, int, end + 1);
  w->guards = KILN_NEW_ARRAY(w->x->arena, const kiln_guard_desc *, end + 1);
  for (int k = 0; k <= end; k++) w->from[k] = end, w->until[k] = -1;
  for (int k = 0; k < end; k++) {
    const kiln_instr *in = &plan->code[k];
    const int to = (int)in->x;
    if (in->op != KILN_INSTR_JMP && in->op != KILN_INSTR_JF && in->op != KILN_INSTR_LOOP) continue;
    if (k < w->from[to] && k < to) w->from[to] = k;
    if (k > w->until[to] && k >= to) w->until[to] = k;
    if (in->op == KILN_INSTR_JF && k > 0 && in[-1].op == KILN_INSTR_TYPECHECK)
      w->guards[to] = &plan->guards[in[-1].x];
  }
}

/* What the instruction writes is not known any more, and may be read all the same. */
static void forget(walk *w, const kiln_instr *in) {
  const kiln_operand *outs = w->p->plan->operands + in->operands + in->in_count;
  for (int i = 0; i < in->out_count; i++) {
    need_operand(w, outs[i]);
    put(w, outs[i], (held){0});
  }
}

/* Paths meet at instruction k: they differ in what was written since the first jump to it, or will
 * be before the last one. */
static void meet(walk *w, int k) {
  const kiln_instr *code = w->p->plan->code;
  for (int i = w->from[k] + 1; i < k; i++) forget(w, &code[i]);
  for (int i = k; i <= w->until[k]; i++) forget(w, &code[i]);
}

static kiln_status *walk_plan(walk *w) {
  const kiln_plan *plan = w->p->plan;
  find_paths(w);
  for (int i = 0; i < plan->arg_count && i < w->p->of->image.arg_count; i++)
    if (w->p->of->known[i] == KILN__KNOWN) w->regs[i] = (held){true, w->p->of->args[i]};
  for (int k = 0; k < plan->code_count; k++) {
    const kiln_instr *in = &plan->code[k];
    const kiln_operand *o = plan->operands + in->operands;
    meet(w, k);
    switch (in->op) {
      case KILN_INSTR_GET_ATTR:
      case KILN_INSTR_BORROW_ATTR: walk_attr(w, in, o); continue;
      case KILN_INSTR_KEPT: KILN_TRY(walk_kept(w, in, o)); continue;
      case KILN_INSTR_TYPECHECK: /* which looks at no element */
      case KILN_INSTR_DROP: break;
      case KILN_INSTR_GROUP:
        if (w->says) KILN_TRY(say_group(w, in, o));
        break;
      case KILN_INSTR_CALL:
      case KILN_INSTR_FORK: walk_call(w, in, o); break;
      default:
        for (int i = 0; i < in->in_count; i++) need_operand(w, o[i]);
        break;
    }
    for (int i = 0; i < in->out_count; i++) put(w, o[in->in_count + i], (held){0});
  }
  return NULL;
}

static kiln_status *walk_all(kiln__exporter *x, bool says, bool *out_changed) {
  walk w = {.x = x, .says = says};
  for (int i = 0; i < x->plans.count; i++) {
    w.p = x->plans.data[i];
    KILN_TRY(walk_plan(&w));
  }
  *out_changed = w.changed;
  return NULL;
}

/* What is called as a value or as a method is called with anything. */
static void forget_arguments(kiln__exporter *x) {
  for (int i = 0; i < x->callables.count; i++) {
    kiln__out_callable *c = x->callables.data[i];
    if (!c->is_open) continue;
    memset(c->known, KILN__UNKNOWN, (size_t)c->image.arg_count);
  }
}

kiln_status *kiln__export_known(kiln__exporter *x) {
  enum { MOST = 64 }; /* walks: as deep as calls stand in calls */
  kiln__out_callable *entry = x->callables.data[0];
  bool changed = true;
  find_written(x);
  forget_arguments(x);
  entry->known[0] = entry->known[0] == KILN__UNKNOWN ? KILN__UNKNOWN : KILN__KNOWN;
  entry->args[0] = x->request->self;
  for (int i = 1; i < entry->image.arg_count; i++) entry->known[i] = KILN__UNKNOWN;
  for (int i = 0; changed && i < MOST; i++) KILN_TRY(walk_all(x, false, &changed));
  if (changed) {
    for (int i = 0; i < x->callables.count; i++)
      memset(x->callables.data[i]->known, KILN__UNKNOWN,
             (size_t)x->callables.data[i]->image.arg_count);
  }
  KILN_TRY(walk_all(x, true, &changed));
  for (int i = 0; x->needs_all && i < x->storages.count; i++) x->storages.data[i].is_needed = true;
  return NULL;
}
