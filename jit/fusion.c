/* fusion.c: which pointwise nodes of a block become one kernel.
 *
 * The nodes of a block and what orders them (data, and memory as the alias analysis sees it) form a
 * graph. Clusters are grown from the last node backwards, taking in producers, latest first, as
 * PyTorch's fuser does; two clusters may join when no path leads from one to the other through a
 * third, which would have to stand both before and after the group. Only the finished partition is
 * put into the block, once, in an order that is as near to the old one as it can be.
 *
 * Groups that stand side by side are then joined when they share an input or the shape of their
 * results: one kernel then reads once what both read. (PyTorch joins any two; KILN_COMPAT=torch
 * does too.) Every refusal is told with its reason. */
#include "jit/fusion.h"

#include "codegen/codegen.h"

/* Orders to search before the analysis of a huge block is cut short. */
enum { MAX_ORDER_QUERIES = 1 << 21, MAX_SEARCH_STEPS = 1 << 24 };

/* -- What can be fused -- */

static bool is_list(const kiln_node *n) { return kiln_node_is(n, KILN_OP_prim_ListConstruct); }

/* A list of tensors that only one aten::cat reads. */
static bool is_cat_list(const kiln_node *n) {
  if (!is_list(n) || kiln_node_output(n, 0)->use_count != 1) return false;
  const kiln_use *use = kiln_node_output(n, 0)->uses;
  return kiln_str_is(use->user->name, "aten::cat") && use->index == 0;
}

static int64_t numel_of(const kiln_tensor_detail *d) {
  int64_t numel = 1;
  for (int i = 0; i < d->rank; i++) numel *= d->sizes[i];
  return numel;
}

static kiln_reason check_tensor(const kiln_ir_value *v) {
  if (!kiln_type_is_complete_tensor(v->type)) return KILN_REASON_types_unknown;
  const kiln_tensor_detail *d = v->type->detail;
  if (d->undefined != 0) return KILN_REASON_types_unknown;
  if (d->device != KILN_DEVICE_CPU) return KILN_REASON_device;
  if (d->requires_grad == 1) return KILN_REASON_requires_grad;
  return numel_of(d) == 0 ? KILN_REASON_zero_size : KILN_REASON_none;
}

static kiln_reason check_values(kiln_node *n) {
  for (int i = 0; i < n->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(n, i);
    if (v->type->kind == KILN_TYPE_NUMBER && !kiln_ir_value_constant(v)) {
      return KILN_REASON_number_unknown;
    }
    kiln_reason reason = kiln_type_is_tensor(v->type) ? check_tensor(v) : KILN_REASON_none;
    if (reason != KILN_REASON_none) return reason;
  }
  for (int i = 0; i < n->output_count; i++) {
    if (!kiln_type_is_tensor(kiln_node_output(n, i)->type)) continue;
    kiln_reason reason = check_tensor(kiln_node_output(n, i));
    if (reason != KILN_REASON_none) return reason;
  }
  return KILN_REASON_none;
}

/* Finds the types of the results that the profile did not see. */
static void infer_types(kiln_fusion *f, kiln_node *n) {
  const kiln_type *before[KILN_MAX_OUTS];
  int count = n->output_count < KILN_MAX_OUTS ? n->output_count : KILN_MAX_OUTS;
  for (int i = 0; i < count; i++) before[i] = n->outputs[i]->type;
  (void)kiln_shape_infer(n->graph, n);
  for (int i = 0; i < count; i++) {
    if (n->outputs[i]->type != before[i]) f->pass->changed = true;
  }
}

static kiln_reason why_not(kiln_fusion *f, kiln_node *n) {
  if (!n->op) return KILN_REASON_no_lowering;
  if (is_cat_list(n)) return check_values(n);
  bool pure = n->op->variant == KILN_VARIANT_NONE || n->op->variant == KILN_VARIANT_COPY;
  if (!pure) return KILN_REASON_mutation;
  if (!kiln_codegen_has_lowering(n->op)) return KILN_REASON_no_lowering;
  if (kiln_alias_node_writes(kiln_pass_alias(f->pass), n)) return KILN_REASON_mutation;
  infer_types(f, n);
  kiln_reason reason = check_values(n);
  if (reason != KILN_REASON_none) return reason;
  if (n->op->variant == KILN_VARIANT_COPY && !kiln_shape_keeps_self(n)) {
    return KILN_REASON_result_type;
  }
  return kiln_codegen_can_lower(n);
}

/* Nodes whose refusal is worth telling: those that compute something. */
static bool is_work(const kiln_node *n) {
  if (!n->op || n->block_count) return false;
  switch (n->op->cost) {
    case KILN_COST_pointwise:
    case KILN_COST_reduction:
    case KILN_COST_heavy:
    case KILN_COST_data: return true;
    default: return false;
  }
}

static void refuse(kiln_fusion *f, const kiln_node *n, kiln_reason reason) {
  char name[96];
  kiln_str s = n->op && n->op->full_name.len ? n->op->full_name : n->name;
  size_t len = s.len < sizeof name - 1 ? s.len : sizeof name - 1;
  memcpy(name, s.data, len);
  name[len] = '\0';
  kiln_pass_refuse(f->pass, n, reason, name);
}

/* -- Order -- */

int kiln__fusion_index(const kiln_fusion *f, const kiln_node *user) {
  while (user->block != f->block) {
    if (!user->block->owner) return -1;
    user = user->block->owner;
  }
  return user == f->block->ret ? -1 : (int)user->mark - 1;
}

static void add_edge(kiln_fusion *f, int from, int to) {
  if (from == to || from < 0 || to < 0) return;
  kiln_vec_push(f->arena, &f->nodes[from].next, to);
  kiln_vec_push(f->arena, &f->nodes[to].prev, from);
}

static void add_data_edges(kiln_fusion *f) {
  for (int i = 0; i < f->count; i++) {
    kiln_node *n = f->nodes[i].node;
    for (int k = 0; k < n->output_count; k++) {
      for (const kiln_use *use = n->outputs[k]->uses; use; use = use->next) {
        add_edge(f, i, kiln__fusion_index(f, use->user));
      }
    }
  }
}

static bool is_barrier(kiln_alias *alias, const kiln_node *n) {
  return kiln_alias_node_writes(alias, n) || kiln_node_has_side_effects(n);
}

/* What writes memory or has side effects keeps its order; others are ordered against those whose
 * memory they share. */
static void add_memory_edges(kiln_fusion *f) {
  kiln_alias *alias = kiln_pass_alias(f->pass);
  KILN_VEC(int) barriers = {0};
  for (int i = 0; i < f->count; i++) {
    if (is_barrier(alias, f->nodes[i].node)) kiln_vec_push(f->arena, &barriers, i);
  }
  bool exact = (int64_t)barriers.count * f->count <= MAX_ORDER_QUERIES;
  for (int b = 0; b < barriers.count; b++) {
    int w = barriers.data[b];
    int first = exact || b == 0 ? 0 : barriers.data[b - 1];
    int end = exact || b + 1 == barriers.count ? f->count : barriers.data[b + 1] + 1;
    if (b > 0) add_edge(f, barriers.data[b - 1], w);
    for (int i = first; i < end; i++) {
      if (i == w) continue;
      if (exact && !kiln_alias_must_keep_order(alias, f->nodes[i].node, f->nodes[w].node)) continue;
      add_edge(f, i < w ? i : w, i < w ? w : i);
    }
  }
}

/* -- Clusters -- */

/* Whether a path leads from cluster a to b through another one. */
static bool reaches_around(kiln_fusion *f, int a, int b) {
  KILN_VEC(int) stack = {0};
  uint32_t stamp = ++f->stamp;
  kiln_vec_push(f->arena, &stack, a);
  int steps = 0;
  while (stack.count) {
    int c = kiln_vec_pop(&stack);
    for (int m = 0; m < f->clusters[c].members.count; m++) {
      const kiln_fusion_node *n = &f->nodes[f->clusters[c].members.data[m]];
      for (int k = 0; k < n->next.count; k++) {
        int to = f->nodes[n->next.data[k]].cluster;
        if (++steps > MAX_SEARCH_STEPS) return true;
        if (to == a || (to == b && c == a)) continue;
        if (to == b) return true;
        if (f->clusters[to].stamp == stamp) continue;
        f->clusters[to].stamp = stamp;
        kiln_vec_push(f->arena, &stack, to);
      }
    }
  }
  return false;
}

bool kiln__fusion_is_inline(const kiln_ir_value *v) {
  return kiln_node_is(v->node, KILN_OP_prim_Constant) && !kiln_type_is_tensor(v->type);
}

void kiln__fusion_values(const kiln_fusion *f, const int *members, int count,
                         kiln_fusion_values *out) {
  *out = (kiln_fusion_values){0};
  kiln_map seen;
  kiln_map_init(&seen, f->arena);
  int cluster = f->nodes[members[0]].cluster;
  for (int m = 0; m < count; m++) {
    kiln_node *n = f->nodes[members[m]].node;
    for (int i = 0; i < n->input_count; i++) {
      kiln_ir_value *v = kiln_node_input(n, i);
      if (kiln__fusion_is_inline(v) || kiln_map_find_ptr(&seen, v)) continue;
      bool inside = v->node->block == f->block && v->node != f->block->param &&
                    f->nodes[v->node->mark - 1].cluster == cluster;
      kiln_map_set_ptr(&seen, v, v);
      if (!inside) kiln_vec_push(f->arena, &out->inputs, v);
    }
    for (int i = 0; i < n->output_count; i++) {
      bool escapes = false;
      for (const kiln_use *use = n->outputs[i]->uses; use && !escapes; use = use->next) {
        escapes = use->user->block != f->block || use->user == f->block->ret ||
                  f->nodes[use->user->mark - 1].cluster != cluster;
      }
      if (escapes) kiln_vec_push(f->arena, &out->outputs, n->outputs[i]);
    }
  }
}

static bool fits_limits(kiln_fusion *f, const kiln_fusion_cluster *a,
                        const kiln_fusion_cluster *b) {
  kiln_fusion_values va, vb;
  kiln__fusion_values(f, a->members.data, a->members.count, &va);
  kiln__fusion_values(f, b->members.data, b->members.count, &vb);
  return va.inputs.count + va.outputs.count + vb.inputs.count + vb.outputs.count <=
         KILN_GROUP_MAX_VALUES;
}

/* Joins b to a when that is valid. */
static bool try_join(kiln_fusion *f, int a, int b) {
  kiln_fusion_cluster *ca = &f->clusters[a], *cb = &f->clusters[b];
  if (!fits_limits(f, ca, cb)) {
    refuse(f, f->nodes[cb->members.data[0]].node, KILN_REASON_too_many_values);
    return false;
  }
  if (reaches_around(f, a, b) || reaches_around(f, b, a)) return false;
  KILN_VEC(int) merged = {0};
  int i = 0, k = 0;
  while (i < ca->members.count || k < cb->members.count) {
    bool from_a = k == cb->members.count ||
                  (i < ca->members.count && ca->members.data[i] < cb->members.data[k]);
    kiln_vec_push(f->arena, &merged, from_a ? ca->members.data[i++] : cb->members.data[k++]);
  }
  for (int m = 0; m < cb->members.count; m++) f->nodes[cb->members.data[m]].cluster = a;
  ca->members.data = merged.data;
  ca->members.count = ca->members.capacity = merged.count;
  cb->members.count = 0;
  cb->is_group = false;
  return true;
}

/* A view or list must have all its users in the cluster: memory of a group's own results only. */
static bool all_users_in(const kiln_fusion *f, int node, int cluster) {
  const kiln_node *n = f->nodes[node].node;
  for (int i = 0; i < n->output_count; i++) {
    for (const kiln_use *use = n->outputs[i]->uses; use; use = use->next) {
      if (use->user->block != f->block || use->user == f->block->ret ||
          f->nodes[use->user->mark - 1].cluster != cluster) {
        return false;
      }
    }
  }
  return true;
}

/* The latest producer that cluster c can take in, taken; false: none. */
static bool absorb_producer(kiln_fusion *f, int c, kiln_map *refused) {
  int best = -1;
  const kiln_fusion_cluster *cluster = &f->clusters[c];
  for (int m = 0; m < cluster->members.count; m++) {
    const kiln_fusion_node *n = &f->nodes[cluster->members.data[m]];
    for (int k = 0; k < n->prev.count; k++) {
      int p = n->prev.data[k];
      const kiln_fusion_node *from = &f->nodes[p];
      if (!from->fusible || from->cluster == c || f->clusters[from->cluster].is_group) continue;
      if (p <= best || kiln_map_find_id(refused, (uint64_t)p + 1)) continue;
      if (from->is_view && !all_users_in(f, p, c)) continue;
      best = p;
    }
  }
  if (best < 0) return false;
  if (!try_join(f, c, f->nodes[best].cluster)) {
    kiln_map_set_id(refused, (uint64_t)best + 1, f);
  }
  return true;
}

static void grow_groups(kiln_fusion *f) {
  for (int i = f->count - 1; i >= 0; i--) {
    const kiln_fusion_node *n = &f->nodes[i];
    if (!n->fusible || n->is_view || f->clusters[n->cluster].is_group) continue;
    kiln_map refused;
    kiln_map_init(&refused, f->arena);
    f->clusters[i].is_group = true;
    while (absorb_producer(f, i, &refused)) {
    }
  }
}

/* -- Neighbours -- */

static bool same_sizes(const kiln_ir_value *a, const kiln_ir_value *b) {
  const kiln_tensor_detail *x = a->type->detail, *y = b->type->detail;
  if (!kiln_type_is_tensor(a->type) || !kiln_type_is_tensor(b->type) || !x || !y) return false;
  return x->rank == y->rank &&
         (x->rank == 0 || memcmp(x->sizes, y->sizes, sizeof *x->sizes * (size_t)x->rank) == 0);
}

static bool worth_joining(const kiln_fusion *f, const kiln_fusion_cluster *a,
                          const kiln_fusion_cluster *b) {
  if (f->pass->env->flags.compat == 1) return true; /* torch */
  kiln_fusion_values va, vb;
  kiln__fusion_values(f, a->members.data, a->members.count, &va);
  kiln__fusion_values(f, b->members.data, b->members.count, &vb);
  for (int k = 0; k < vb.inputs.count; k++) {
    const kiln_ir_value *v = vb.inputs.data[k];
    if (!kiln_type_is_tensor(v->type)) continue;
    for (int i = 0; i < va.inputs.count; i++) {
      if (va.inputs.data[i] == v) return true;
    }
    for (int i = 0; i < va.outputs.count; i++) {
      if (va.outputs.data[i] == v) return true;
    }
  }
  for (int i = 0; i < va.outputs.count; i++) {
    for (int k = 0; k < vb.outputs.count; k++) {
      if (same_sizes(va.outputs.data[i], vb.outputs.data[k])) return true;
    }
  }
  return false;
}

static void join_neighbours(kiln_fusion *f) {
  int previous = -1;
  for (int i = 0; i < f->count; i++) {
    int c = f->nodes[i].cluster;
    if (!f->clusters[c].is_group || c == previous) continue;
    if (f->clusters[c].members.data[0] != i) continue;
    if (previous >= 0 && worth_joining(f, &f->clusters[previous], &f->clusters[c]) &&
        try_join(f, previous, c)) {
      continue;
    }
    previous = c;
  }
}

/* -- Small groups -- */

static void dissolve_small_groups(kiln_fusion *f) {
  int64_t least = f->pass->env->flags.min_group_size;
  for (int i = 0; i < f->count; i++) {
    kiln_fusion_cluster *c = &f->clusters[i];
    if (!c->is_group) continue;
    int64_t size = 0;
    for (int m = 0; m < c->members.count; m++) size += !is_list(f->nodes[c->members.data[m]].node);
    if (size >= least) continue;
    c->is_group = false;
    int count = c->members.count;
    int *members = kiln_arena_copy(f->arena, c->members.data, sizeof *members * (size_t)count);
    for (int m = 0; m < count; m++) { /* each is a cluster of its own again */
      kiln_fusion_cluster *own = &f->clusters[members[m]];
      f->nodes[members[m]].cluster = members[m];
      own->members.count = 0;
      kiln_vec_push(f->arena, &own->members, members[m]);
      if (is_work(f->nodes[members[m]].node)) {
        refuse(f, f->nodes[members[m]].node, KILN_REASON_group_too_small);
      }
    }
  }
}

/* -- Blocks -- */

static bool find_nodes(kiln_fusion *f) {
  int count = 0;
  for (kiln_node *n = f->block->first; n; n = n->next) n->mark = (uint32_t)++count;
  f->count = count;
  f->nodes = KILN_NEW_ARRAY(f->arena, kiln_fusion_node, count + 1);
  f->clusters = KILN_NEW_ARRAY(f->arena, kiln_fusion_cluster, count + 1);
  bool any = false;
  int i = 0;
  for (kiln_node *n = f->block->first; n; n = n->next, i++) {
    f->nodes[i] = (kiln_fusion_node){.node = n, .cluster = i};
    kiln_vec_push(f->arena, &f->clusters[i].members, i);
    if (n->block_count || kiln_node_is(n, KILN_OP_prim_Constant)) continue;
    kiln_reason reason = why_not(f, n);
    f->nodes[i].fusible = reason == KILN_REASON_none;
    f->nodes[i].is_view = is_list(n) || (n->op && n->op->cost == KILN_COST_view);
    any |= f->nodes[i].fusible && !f->nodes[i].is_view;
    if (reason != KILN_REASON_none && is_work(n)) refuse(f, n, reason);
  }
  return any;
}

static void fuse_block(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) fuse_block(pass, n->blocks[b]);
  }
  kiln_fusion f = {.pass = pass, .arena = pass->scratch, .block = block};
  if (!find_nodes(&f)) return;
  add_data_edges(&f);
  add_memory_edges(&f);
  grow_groups(&f);
  join_neighbours(&f);
  dissolve_small_groups(&f);
  kiln__fusion_build(&f);
}

kiln_status *kiln_pass_fuse_groups(kiln_pass *pass) {
  fuse_block(pass, pass->graph->top);
  return NULL;
}
