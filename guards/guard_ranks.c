/* guard_ranks.c: pass `guard_ranks`: one check of the inputs' ranks and dtypes in front of a graph,
 * where they decide branches, or how often loops run:
 *
 *   y = If(x.dim() == 4): conv2d(x) else: conv1d(x)
 *
 * stands between what could be a group each, and its sides in blocks of their own. Ranks and dtypes
 * hardly ever change, so the graph that the taken sides make in a row stands behind a check of them
 * alone, and a fallback has the graph as it was:
 *
 *   If(TypeCheck(x: Float(*, *, *, *))): y = conv2d(x) else: FallbackGraph(x)
 *
 * [2.0 for _ in range(x.dim() - 2)], what to resize an image by, is a loop of a known number of
 * steps behind the check: later passes make a constant of it.
 *
 * What is known is what shape functions find from the ranks of inputs and of attributes, of values
 * that nobody writes; no claim of the profile counts but those that the check asks. Sizes are the
 * regions' affair (guard_regions.c), which are made inside. The fallback starts the graph anew:
 * nothing was done before the check. Not under KILN_COMPAT=torch. */
#include "guards/region.h"

typedef struct decided {
  kiln_node *branch;
  int side;
} decided;

typedef struct counted {
  kiln_node *loop;
  int64_t trips;
} counted;

enum { MAX_CHECKS = 256 };

typedef struct ranker {
  kiln_pass *pass;
  kiln_numbers numbers;
  KILN_VEC(kiln_ir_value *) values; /* whose claims are set aside */
  kiln_map claims;
  kiln_guard_checks sources; /* inputs, and attributes that are read */
  bool reads_attributes;     /* nothing writes them */
  KILN_VEC(decided) decided;
  KILN_VEC(counted) counted;
} ranker;

/* -- Whether there is something to decide -- */

/* More than a check, which a region decides. */
static bool is_choice(const kiln_node *n) {
  if (!kiln_node_is(n, KILN_OP_prim_If)) return false;
  const bool checks =
      n->output_count == 0 && (kiln_block_raises(n->blocks[0]) || kiln_block_raises(n->blocks[1]));
  return !checks && !kiln_ir_value_constant(kiln_node_input(n, 0)) &&
         !kiln_node_is_type_check(kiln_node_input(n, 0)->node);
}

/* A loop that computes more than numbers, which a region knows. */
static bool is_count(const kiln_node *n) {
  return kiln_node_is(n, KILN_OP_prim_Loop) && kiln_loop_is_counted(n) &&
         !kiln_ir_value_constant(kiln_node_input(n, 0)) && !kiln_numbers_is_count(n);
}

static bool has_choice(const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    if (is_choice(n) || is_count(n)) return true;
    for (int b = 0; b < n->block_count; b++)
      if (has_choice(n->blocks[b])) return true;
  }
  return false;
}

/* -- Claims -- */

/* Every value but constants. */
static void visit(ranker *r, kiln_block *block, void (*fn)(ranker *r, kiln_ir_value *v)) {
  for (int i = 0; i < block->param->output_count; i++) fn(r, block->param->outputs[i]);
  for (kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_Constant)) continue;
    for (int i = 0; i < n->output_count; i++) fn(r, n->outputs[i]);
    for (int b = 0; b < n->block_count; b++) visit(r, n->blocks[b], fn);
  }
}

/* What was inferred, or claimed. */
static void forget(ranker *r, kiln_ir_value *v) {
  v->type = kiln_type_unshaped(r->pass->graph->types, v->type);
}
/* Tuples of tensors have claims too. */
static void set_aside(ranker *r, kiln_ir_value *v) {
  const kiln_type *claim = v->type;
  forget(r, v);
  if (v->type == claim) return;
  kiln_vec_push(r->pass->scratch, &r->values, v);
  kiln_map_set_ptr(&r->claims, v, (void *)(uintptr_t)claim);
}
static void restore(ranker *r) {
  for (int i = 0; i < r->values.count; i++)
    r->values.data[i]->type = kiln_map_find_ptr(&r->claims, r->values.data[i]);
}

static bool is_written(const ranker *r, const kiln_ir_value *v) {
  return kiln_type_is_tensor(v->type) && kiln_alias_has_writers(kiln_pass_alias(r->pass), v);
}

/* Lets the check ask for the rank, the dtype and the device that the profile claims. */
static void add_source(ranker *r, kiln_ir_value *v) {
  const kiln_type *claimed = kiln_map_find_ptr(&r->claims, v);
  const kiln_tensor_detail *claim =
      claimed && kiln_type_is_tensor(claimed) ? claimed->detail : NULL;
  if (!claim || claim->rank < 0 || claim->undefined != 0 || claim->dtype == KILN_DTYPE_NONE ||
      r->sources.values.count == MAX_CHECKS || is_written(r, v))
    return;
  kiln_dim *sizes = KILN_NEW_ARRAY(r->pass->scratch, kiln_dim, claim->rank + 1);
  for (int i = 0; i < claim->rank; i++) sizes[i] = KILN_DIM_UNKNOWN;
  kiln_tensor_detail d = KILN_TENSOR_DETAIL_ANY;
  d.dtype = claim->dtype;
  d.rank = claim->rank;
  d.undefined = 0;
  d.device = claim->device;
  d.device_index = claim->device_index;
  d.sizes = sizes;
  v->type = kiln_type_tensor(r->pass->graph->types, &d);
  kiln_vec_push(r->pass->scratch, &r->sources.values, v);
  kiln_vec_push(r->pass->scratch, &r->sources.types, v->type);
}

/* An attribute of an input, or of one of its attributes. */
static bool is_attribute(const kiln_ir_value *v) {
  const kiln_node *param = v->node->graph->top->param;
  while (kiln_node_is(v->node, KILN_OP_prim_GetAttr)) v = kiln_node_input(v->node, 0);
  return v->node == param;
}

/* -- What ranks decide -- */

static void learn_node(ranker *r, kiln_node *n) {
  if (kiln_node_is(n, KILN_OP_prim_GetAttr)) {
    if (r->reads_attributes && is_attribute(n->outputs[0])) add_source(r, n->outputs[0]);
    return;
  }
  if (n->op) (void)kiln_shape_infer(n->graph, n);
  for (int i = 0; i < n->output_count; i++) {
    kiln_ir_value *v = n->outputs[i];
    if (is_written(r, v)) forget(r, v);
  }
  kiln_numbers_learn(&r->numbers, n);
}

static void learn_block(ranker *r, kiln_block *block);

static void learn_branch(ranker *r, kiln_node *n) {
  int64_t condition;
  if (!kiln_numbers_find(&r->numbers, kiln_node_input(n, 0), &condition)) {
    for (int b = 0; b < n->block_count; b++) learn_block(r, n->blocks[b]);
    return;
  }
  const decided d = {n, condition ? 0 : 1};
  kiln_vec_push(r->pass->scratch, &r->decided, d);
  learn_block(r, n->blocks[d.side]);
  for (int i = 0; i < n->output_count; i++) {
    const kiln_ir_value *from = kiln_block_output(n->blocks[d.side], i);
    kiln_numbers_same(&r->numbers, n->outputs[i], from);
    if (kiln_type_is_tensor(n->outputs[i]->type) && kiln_type_is_tensor(from->type))
      n->outputs[i]->type = from->type;
  }
}

static void learn_block(ranker *r, kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_If)) {
      learn_branch(r, n);
    } else if (n->block_count > 0) {
      counted c = {.loop = n};
      if (is_count(n) && kiln_numbers_find(&r->numbers, kiln_node_input(n, 0), &c.trips))
        kiln_vec_push(r->pass->scratch, &r->counted, c);
      for (int b = 0; b < n->block_count; b++) learn_block(r, n->blocks[b]);
    } else if (!kiln_node_is(n, KILN_OP_prim_Constant)) {
      learn_node(r, n);
    }
  }
}

/* -- Which inputs they are decided by -- */

typedef struct slice {
  ranker *ranker;
  kiln_map seen;
  KILN_VEC(const kiln_ir_value *) work;
} slice;

static void want(slice *s, const kiln_ir_value *v) {
  if (kiln_map_find_ptr(&s->seen, v)) return;
  kiln_map_set_ptr(&s->seen, v, s);
  kiln_vec_push(s->ranker->pass->scratch, &s->work, v);
}

static void find_inputs(ranker *r, kiln_guard_checks *checks) {
  slice s = {.ranker = r, .seen = kiln_map_in(r->pass->scratch)};
  for (int i = 0; i < r->decided.count; i++)
    want(&s, kiln_node_input(r->decided.data[i].branch, 0));
  for (int i = 0; i < r->counted.count; i++) want(&s, kiln_node_input(r->counted.data[i].loop, 0));
  while (s.work.count > 0) {
    const kiln_node *n = kiln_vec_pop(&s.work)->node;
    for (int i = 0; i < n->input_count; i++) want(&s, kiln_node_input(n, i));
    for (int b = 0; b < n->block_count; b++)
      for (int i = 0; i < kiln_block_output_count(n->blocks[b]); i++)
        want(&s, kiln_block_output(n->blocks[b], i));
  }
  for (int i = 0; i < r->sources.values.count; i++) {
    if (!kiln_map_find_ptr(&s.seen, r->sources.values.data[i])) continue;
    kiln_vec_push(r->pass->scratch, &checks->values, r->sources.values.data[i]);
    kiln_vec_push(r->pass->scratch, &checks->types, r->sources.types.data[i]);
  }
}

/* -- The graph behind the check -- */

static kiln_node *build_fallback(const ranker *r) {
  kiln_graph *graph = r->pass->graph, *sub = kiln_graph_create_sub(graph);
  kiln_node *fallback = kiln_node_create_id(graph, KILN_OP_prim_FallbackGraph);
  kiln_map copies = kiln_map_in(r->pass->scratch);
  for (int i = 0; i < kiln_graph_input_count(graph); i++) {
    kiln_ir_value *v = kiln_graph_input(graph, i), *own;
    if (!v->uses) continue;
    own = kiln_graph_add_input(sub, NULL, v->type);
    kiln_ir_value_set_name(own, v->name);
    own->weight = kiln_ir_value_is_weight(v);
    kiln_node_add_input(fallback, v);
    kiln_map_set_ptr(&copies, v, own);
  }
  for (const kiln_node *n = graph->top->first; n; n = n->next) {
    kiln_node *copy = kiln_node_copy(sub, n, &copies);
    kiln_node_append(sub->top, copy);
    for (int i = 0; i < n->output_count; i++)
      kiln_map_set_ptr(&copies, n->outputs[i], copy->outputs[i]);
  }
  for (int i = 0; i < kiln_graph_output_count(graph); i++) {
    kiln_ir_value *v = kiln_graph_output(graph, i);
    kiln_graph_add_output(sub, kiln_map_find_ptr(&copies, v));
    (void)kiln_node_add_output(fallback, kiln_type_unshaped(graph->types, v->type));
  }
  kiln_node_set_graph(fallback, "Subgraph", sub);
  return fallback;
}

/* An input, or an attribute, read in front of the check. */
static kiln_ir_value *read_ahead(const ranker *r, kiln_ir_value *v, kiln_node *check,
                                 kiln_map *read) {
  if (!kiln_node_is(v->node, KILN_OP_prim_GetAttr)) return v;
  kiln_ir_value *known = kiln_map_find_ptr(read, v);
  if (known) return known;
  kiln_map inputs = kiln_map_in(r->pass->scratch);
  kiln_ir_value *from = kiln_node_input(v->node, 0);
  kiln_map_set_ptr(&inputs, from, read_ahead(r, from, check, read));
  kiln_node *copy = kiln_node_copy(check->graph, v->node, &inputs);
  kiln_node_insert_before(copy, check);
  kiln_map_set_ptr(read, v, copy->outputs[0]);
  return copy->outputs[0];
}

static void put_behind(const ranker *r, const kiln_guard_checks *checks, kiln_node *fallback) {
  kiln_graph *graph = r->pass->graph;
  kiln_node *check = kiln_node_create_id(graph, KILN_OP_prim_TypeCheck);
  kiln_node *branch = kiln_node_create_id(graph, KILN_OP_prim_If);
  const kiln_node *first =
      r->decided.count > 0 ? r->decided.data[0].branch : r->counted.data[0].loop;
  check->range = branch->range = fallback->range = first->range;
  kiln_node_set_types(check, "types", checks->types.data, checks->types.count);
  kiln_node_set_int(check, KILN_ATTR_RANKS, 1);
  kiln_block *hit = kiln_node_add_block(branch), *miss = kiln_node_add_block(branch);
  for (kiln_node *n = graph->top->first, *next; n; n = next) {
    next = n->next;
    if (kiln_node_is(n, KILN_OP_prim_Constant)) continue;
    kiln_node_detach(n);
    kiln_node_append(hit, n);
  }
  kiln_node_append(miss, fallback);
  kiln_node_append(graph->top, check);
  kiln_map read = kiln_map_in(r->pass->scratch);
  for (int i = 0; i < checks->values.count; i++) {
    kiln_node_add_input(check, read_ahead(r, checks->values.data[i], check, &read));
    (void)kiln_node_add_output(check, checks->types.data[i]);
  }
  kiln_node_add_input(branch, kiln_node_add_output(check, kiln_type_basic(KILN_TYPE_BOOL)));
  kiln_node_append(graph->top, branch);
  for (int i = 0; i < kiln_graph_output_count(graph); i++) {
    kiln_ir_value *v = kiln_graph_output(graph, i);
    kiln_block_add_output(hit, v);
    kiln_block_add_output(miss, kiln_node_output(fallback, i));
    kiln_node_set_input(graph->top->ret, i,
                        kiln_node_add_output(branch, kiln_type_unshaped(graph->types, v->type)));
  }
}

/* -- The pass -- */

static bool is_worth(const ranker *r) {
  for (int i = 0; i < r->decided.count; i++)
    if (is_choice(r->decided.data[i].branch)) return true;
  return r->counted.count > 0;
}

kiln_status *kiln_pass_guard_ranks(kiln_pass *pass) {
  kiln_graph *graph = pass->graph;
  ranker r = {.pass = pass};
  if (pass->env->flags.compat == KILN_COMPAT_TORCH || !has_choice(graph->top)) return NULL;
  r.claims = kiln_map_in(pass->scratch);
  r.reads_attributes = !kiln_graph_writes_attributes(kiln_pass_alias(pass), graph);
  visit(&r, graph->top, set_aside);
  for (int i = 0; i < kiln_graph_input_count(graph); i++)
    add_source(&r, kiln_graph_input(graph, i));
  kiln_numbers_begin(&r.numbers, graph, pass->scratch);
  learn_block(&r, graph->top);
  kiln_numbers_end(&r.numbers);
  kiln_guard_checks checks = {0};
  const bool worth = is_worth(&r);
  if (worth) find_inputs(&r, &checks);
  visit(&r, graph->top, forget);
  kiln_node *fallback = worth && checks.values.count > 0 ? build_fallback(&r) : NULL;
  restore(&r);
  if (!fallback) return NULL;
  put_behind(&r, &checks, fallback);
  for (int i = 0; i < r.counted.count; i++) {
    kiln_node *loop = r.counted.data[i].loop;
    kiln_node_set_input(loop, 0, kiln_insert_int_before(loop, r.counted.data[i].trips));
  }
  for (int i = r.decided.count - 1; i >= 0; i--)
    (void)kiln_branch_splice(r.decided.data[i].branch, r.decided.data[i].side);
  kiln_pass_forget_alias(pass);
  pass->changed = true;
  return NULL;
}
