/* prepare.c: two walks over a plan's code: one that finds its weights, one that computes of them.
 */
#include "runtime/prepare.h"

#include <string.h>

struct kiln_weights {
  kiln_mem *mem;
  int count;
  kiln_tensor *views[]; /* owned; NULL: not needed, or not to be had */
};

static size_t weights_bytes(int count) {
  return sizeof(kiln_weights) + (size_t)count * sizeof(kiln_tensor *);
}

bool kiln_plan_wants_preparation(const kiln_plan *plan) {
  bool wants = plan->kept_count > 0;
  for (int i = 0; i < plan->group_count; i++) {
    const kiln_group *g = &plan->groups[i];
    wants |= g->heavy != NULL;
    for (int k = 0; k < g->pack_count; k++) wants |= g->packs[k].slot != NULL;
  }
  return wants;
}

void kiln_weights_destroy(kiln_weights *w) {
  if (!w) return;
  for (int i = 0; i < w->count; i++) kiln_tensor_release(w->views[i]);
  kiln_mem_free(w->mem, w, weights_bytes(w->count));
}

/* -- Walking -- */

/* What a register holds while the code is walked over; values are borrowed. */
typedef enum origin { UNKNOWN, PLACE, DERIVED } origin;
typedef struct held {
  origin origin;
  int place;
  kiln_ivalue value; /* while collecting of a place, while preparing of anything that is known */
} held;

typedef struct walk {
  const kiln_plan *plan;
  kiln_mem *mem;
  held *regs;
  int places; /* attributes that were met, behind the arguments */
  /* Collecting: */
  bool *needed; /* by place */
  kiln_ivalue *found;
  /* Preparing: */
  kiln_call *call;
  kiln_ivalue *args; /* [plan->max_in]: where an instruction gathers its inputs */
  const kiln_weights *weights;
} walk;

static bool is_attr(const kiln_instr *in) {
  return in->op == KILN_INSTR_GET_ATTR || in->op == KILN_INSTR_BORROW_ATTR;
}

static int count_places(const kiln_plan *plan) {
  int count = plan->arg_count;
  for (int i = 0; i < plan->code_count; i++) count += is_attr(&plan->code[i]);
  return count;
}

static bool is_constant(kiln_operand o) { return (o & KILN_OPERAND_CONSTANT) != 0; }
static held *reg_of(const walk *w, kiln_operand o) { return &w->regs[o & KILN_OPERAND_INDEX]; }
static bool is_known(const walk *w, kiln_operand o) {
  return is_constant(o) || reg_of(w, o)->origin != UNKNOWN;
}

static kiln_ivalue value_of(const walk *w, kiln_operand o) {
  return is_constant(o) ? *kiln_operand_read(o, NULL, w->plan->constants) : reg_of(w, o)->value;
}

static void need(const walk *w, kiln_operand o) {
  if (w->needed && !is_constant(o) && reg_of(w, o)->origin == PLACE)
    w->needed[reg_of(w, o)->place] = true;
}

static void put(const walk *w, kiln_operand o, held value) {
  if ((o & KILN_OPERAND_INDEX) != KILN_OPERAND_NONE) *reg_of(w, o) = value;
}

/* Of a place, while preparing; or NULL. */
static kiln_tensor *view_at(const walk *w, int place) {
  return w->weights ? w->weights->views[place] : NULL;
}

static void walk_attr(walk *w, const kiln_instr *in, const kiln_operand *o) {
  held got = {.origin = PLACE, .place = w->places++};
  if (w->call) {
    kiln_tensor *view = view_at(w, got.place);
    got.value = view ? kiln_of_tensor(view) : kiln_none();
    if (!view) got.origin = UNKNOWN;
  } else {
    const kiln_ivalue from = is_constant(o[0]) ? kiln_none() : reg_of(w, o[0])->value;
    const bool is_there = from.tag == KILN_TAG_OBJECT && in->x < (uint64_t)from.u.object->count;
    got.value = is_there ? from.u.object->slots[in->x] : kiln_none();
    if (!is_there) got.origin = UNKNOWN;
    w->found[got.place] = got.value;
  }
  put(w, o[1], got);
}

/* Its results count as known where the plan keeps them. */
static kiln_status *walk_kept(walk *w, const kiln_instr *in, const kiln_operand *o) {
  const kiln_kept_op *op = &w->plan->kept[in->x];
  const int n = in->in_count, out_count = in->out_count / 2;
  kiln_ivalue *args = w->args, outs[KILN_MAX_OUTS];
  bool known = true;
  for (int i = 0; known && i < n; i++) known = is_known(w, o[i]);
  for (int i = 0; known && i < n; i++) need(w, o[i]);
  const kiln_ivalue *kept = NULL;
  if (known && w->call) {
    for (int i = 0; i < n; i++) args[i] = value_of(w, o[i]);
    kept = kiln_kept_find(op->slot, args, n);
    if (!kept) {
      for (int i = 0; i < out_count; i++) outs[i] = kiln_none();
      kiln_status *status = kiln_kernel_run(w->call, op->kernel, args, n, outs);
      if (!status) kiln_kept_offer(w->mem, w->call->epoch, op->slot, args, n, outs, out_count);
      for (int i = 0; i < out_count; i++) kiln_ivalue_release_to(&w->call->cache, outs[i]);
      if (status) return status;
      kept = kiln_kept_find(op->slot, args, n);
    }
    known = kept != NULL;
  }
  for (int i = 0; i < out_count; i++) {
    const held result = {.origin = known ? DERIVED : UNKNOWN,
                         .value = kept ? kept[i] : kiln_none()};
    put(w, o[n + i], result);
    put(w, o[n + out_count + i], (held){0});
  }
  return NULL;
}

static kiln_status *pack(const walk *w, kiln_operand o, kiln_pack_slot *slot,
                         const kiln_kernel_pack *pack) {
  const void *data;
  void *own;
  size_t bytes;
  need(w, o);
  const kiln_ivalue weight = value_of(w, o);
  if (!w->call || weight.tag != KILN_TAG_TENSOR || !weight.u.tensor) return NULL;
  KILN_TRY(kiln_pack_take(w->call, slot, pack, weight.u.tensor, &data, &own, &bytes));
  if (own) kiln_cache_free(&w->call->cache, own, bytes);
  return NULL;
}

static kiln_status *walk_group(const walk *w, const kiln_instr *in, const kiln_operand *o) {
  const kiln_group *g = &w->plan->groups[in->x];
  for (int i = 0; i < g->pack_count; i++) {
    const kiln_group_pack *p = &g->packs[i];
    if (p->slot && is_known(w, o[p->operand])) KILN_TRY(pack(w, o[p->operand], p->slot, p->pack));
  }
  const kiln_group_heavy *h = g->heavy;
  /* Of images of any size the form is not known. */
  if (!h || (h->pack.transform == KILN_TRANSFORM_WINOGRAD && h->winograd.batch == 0)) return NULL;
  return is_known(w, o[h->weight]) ? pack(w, o[h->weight], &h->slots[h->pack.form], &h->pack)
                                   : NULL;
}

static kiln_status *walk_code(walk *w) {
  const kiln_plan *plan = w->plan;
  for (int i = 0; i < plan->code_count; i++) {
    const kiln_instr *in = &plan->code[i];
    const kiln_operand *o = plan->operands + in->operands;
    if (is_attr(in)) {
      walk_attr(w, in, o);
      continue;
    }
    if (in->op == KILN_INSTR_KEPT) {
      KILN_TRY(walk_kept(w, in, o));
      continue;
    }
    if (in->op == KILN_INSTR_GROUP) KILN_TRY(walk_group(w, in, o));
    for (int k = 0; k < in->out_count; k++) put(w, o[in->in_count + k], (held){0});
  }
  return NULL;
}

/* -- Collecting -- */

/* Its elements never change. */
kiln_status *kiln_weight_view(kiln_mem *mem, const kiln_tensor *t, kiln_tensor **out) {
  *out = NULL;
  kiln_storage *storage;
  if (!t->storage || t->sides || !kiln_storage_is_lent(t->storage)) return NULL;
  KILN_TRY(kiln_storage_share(t->storage, &storage));
  kiln_status *status =
      kiln_tensor_create_on(mem, NULL, storage, kiln_tensor_dtype(t), kiln_tensor_rank(t),
                            kiln_tensor_sizes(t), kiln_tensor_strides(t), t->offset, out);
  kiln_storage_release(storage);
  if (!status) (*out)->key = t->key;
  return status;
}
static kiln_status *view_of(kiln_mem *mem, kiln_ivalue v, kiln_tensor **out) {
  *out = NULL;
  return v.tag == KILN_TAG_TENSOR && v.u.tensor ? kiln_weight_view(mem, v.u.tensor, out) : NULL;
}

static kiln_status *take_views(const walk *w, int count, kiln_weights **out) {
  bool any = false;
  for (int i = 0; i < count; i++) any |= w->needed[i];
  if (!any) return NULL;
  kiln_weights *weights = kiln_mem_alloc_zero(w->mem, weights_bytes(count));
  if (!weights) return kiln_status_oom();
  weights->mem = w->mem;
  weights->count = count;
  for (int i = 0; i < count; i++) {
    kiln_status *status = w->needed[i] ? view_of(w->mem, w->found[i], &weights->views[i]) : NULL;
    if (!status) continue;
    kiln_weights_destroy(weights);
    return status;
  }
  *out = weights;
  return NULL;
}

kiln_status *kiln_weights_collect(const kiln_plan *plan, kiln_mem *mem, const kiln_ivalue *args,
                                  int arg_count, kiln_weights **out_weights) {
  const int count = count_places(plan);
  const size_t regs = (size_t)plan->register_count * sizeof(held);
  const size_t found = (size_t)count * sizeof(kiln_ivalue);
  const size_t bytes = regs + found + (size_t)count;
  *out_weights = NULL;
  char *block = kiln_mem_alloc_zero(mem, bytes);
  if (!block) return kiln_status_oom();
  walk w = {.plan = plan,
            .mem = mem,
            .regs = (held *)(void *)block,
            .places = plan->arg_count,
            .found = (kiln_ivalue *)(void *)(block + regs),
            .needed = (bool *)(block + regs + found)};
  for (int i = 0; i < plan->arg_count && i < arg_count; i++) {
    w.regs[i] = (held){PLACE, i, args[i]};
    w.found[i] = args[i];
  }
  kiln_status *status = walk_code(&w);
  if (!status) status = take_views(&w, count, out_weights);
  kiln_mem_free(mem, block, bytes);
  return status;
}

/* -- Preparing -- */

kiln_status *kiln_plan_prepare(const kiln_plan *plan, kiln_call *call,
                               const kiln_weights *weights) {
  kiln_mem *mem = call->env->mem;
  const size_t regs = (size_t)plan->register_count * sizeof(held);
  const size_t bytes = regs + (size_t)plan->max_in * sizeof(kiln_ivalue) + 1;
  char *block = kiln_mem_alloc_zero(mem, bytes);
  if (!block) return kiln_status_oom();
  walk w = {.plan = plan,
            .mem = mem,
            .regs = (held *)(void *)block,
            .places = plan->arg_count,
            .call = call,
            .args = (kiln_ivalue *)(void *)(block + regs),
            .weights = weights};
  for (int i = 0; i < plan->arg_count; i++)
    if (view_at(&w, i)) w.regs[i] = (held){PLACE, i, kiln_of_tensor(view_at(&w, i))};
  kiln_status *status = walk_code(&w);
  kiln_mem_free(mem, block, bytes);
  return status;
}
