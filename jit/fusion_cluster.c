/* fusion_cluster.c: which nodes go together.
 *
 * A group is grown from its last node backwards, taking in producers, latest first, as PyTorch's
 * fuser does. A producer may join when no path leads from it to the group through a third cluster,
 * which would have to stand both before and after the group. (No path leads the other way: it would
 * close a cycle with the edge that makes it a producer.) What is found about a cluster, that it
 * reaches the group or does not, stays true while the group grows, for whatever reaches a producer
 * reached the group through it before: so each group looks at an edge once. A search need not look
 * behind the group, but for clusters from which a group leads back.
 *
 * Groups that stand side by side are then joined when they share an input or the shape of their
 * results: one kernel then reads once what both read. (PyTorch joins any two; KILN_COMPAT=torch
 * does too.)
 *
 * All searches of a block share one budget; when it is used up, they count as having found a path.
 */
#include "codegen/codegen.h"
#include "jit/fusion.h"
#include "runtime/strides.h"

enum { STEPS_PER_EDGE = 256, STEPS_MIN = 1 << 16 };

/* What the group that is being grown knows of a value. */
typedef struct value_note {
  int group, uses; /* the group (and 1) that reads it, and how often */
  int node;        /* the node (and 1) whose inputs were counted last */
} value_note;

typedef struct frame {
  int cluster, member, next; /* the next edge to follow */
} frame;

typedef struct partition {
  kiln_fusion *f;
  kiln_map notes; /* value -> value_note */
  kiln_vec_int heap;
  int *asked;    /* of a node: the group (and 1) that it was last a candidate of */
  int search;    /* the number of the present one */
  int64_t steps; /* left */
  KILN_VEC(frame) stack;
  kiln_fusion_reads reads; /* of one node */
  int group, values;       /* of the group that is being grown: its inputs and outputs */
} partition;

/* -- Paths -- */

static void enter(partition *p, int cluster) {
  frame top = {cluster, p->f->clusters[cluster].first, 0};
  kiln_vec_push(p->f->arena, &p->stack, top);
}

/* The next cluster that an edge from the top of the stack leads to, or -1. */
static int next_cluster(partition *p) {
  frame *top = &kiln_vec_last(&p->stack);
  while (top->member >= 0) {
    const kiln_fusion_node *n = &p->f->nodes[top->member];
    while (top->next < n->next.count) {
      int to = p->f->nodes[n->next.data[top->next++]].cluster;
      p->steps--;
      if (to != top->cluster) return to;
    }
    top->member = n->next_member;
    top->next = 0;
  }
  return -1;
}

/* The search found a path: all on the stack but its begin are on it. */
static bool note_path(partition *p) {
  for (int i = 1; i < p->stack.count; i++) {
    p->f->clusters[p->stack.data[i].cluster].reaches = true;
  }
  return true;
}

/* Whether a path leads from one cluster to another through a third one. Searches with the same
 * number share what they found. */
static bool reaches_around(partition *p, int from, int to) {
  kiln_fusion_cluster *clusters = p->f->clusters;
  kiln_vec_clear(&p->stack);
  enter(p, from);
  while (p->stack.count && p->steps > 0) {
    int c = next_cluster(p);
    if (c < 0) {
      (void)kiln_vec_pop(&p->stack); /* `reaches` is false since it was entered */
    } else if (c == to) {
      if (p->stack.count > 1) return note_path(p);
    } else if (clusters[c].seen == p->search) {
      if (clusters[c].reaches) return note_path(p);
    } else if (clusters[c].first < clusters[to].last || clusters[c].leads_back) {
      clusters[c].seen = p->search;
      clusters[c].reaches = false;
      enter(p, c);
    }
  }
  return p->steps <= 0;
}

/* All that stands behind `node` is in its final cluster. */
static void find_whether_it_leads_back(partition *p, int node) {
  kiln_fusion *f = p->f;
  int own = f->nodes[node].cluster;
  if (f->clusters[own].first != node) return;
  for (int m = node; m >= 0; m = f->nodes[m].next_member) {
    for (int k = 0; k < f->nodes[m].next.count; k++) {
      int c = f->nodes[f->nodes[m].next.data[k]].cluster;
      if (c != own && (f->clusters[c].first < node || f->clusters[c].leads_back)) {
        f->clusters[own].leads_back = true;
        return;
      }
    }
  }
}

/* -- Values -- */

bool kiln__fusion_is_inline(const kiln_ir_value *v) {
  return kiln_node_is(v->node, KILN_OP_prim_Constant) && !kiln_type_is_tensor(v->type);
}

static bool is_used_outside(const kiln_fusion *f, const kiln_ir_value *v, int cluster) {
  for (const kiln_use *use = v->uses; use; use = use->next) {
    if (use->user->block != f->block || use->user == f->block->ret ||
        f->nodes[use->user->mark - 1].cluster != cluster) {
      return true;
    }
  }
  return false;
}

void kiln__fusion_values(const kiln_fusion *f, const kiln_fusion_cluster *c,
                         kiln_fusion_values *out) {
  *out = (kiln_fusion_values){0};
  kiln_map seen = kiln_map_in(f->arena);
  int cluster = f->nodes[c->first].cluster;
  kiln_fusion_reads reads = {0};
  for (int m = c->first; m >= 0; m = f->nodes[m].next_member) {
    kiln_node *n = f->nodes[m].node;
    kiln_vec_clear(&reads);
    kiln__fusion_add_reads(f, &f->nodes[m], &reads);
    for (int i = 0; i < reads.count; i++) {
      kiln_ir_value *v = reads.data[i];
      if (kiln_map_find_ptr(&seen, v)) continue;
      bool inside = v->node->block == f->block && v->node != f->block->param &&
                    f->nodes[v->node->mark - 1].cluster == cluster;
      kiln_map_set_ptr(&seen, v, v);
      if (!inside) kiln_vec_push(f->arena, &out->inputs, v);
    }
    for (int i = 0; i < n->output_count; i++) {
      if (is_used_outside(f, n->outputs[i], cluster)) {
        kiln_vec_push(f->arena, &out->outputs, n->outputs[i]);
      }
    }
  }
}

static value_note *note_of(partition *p, const kiln_ir_value *v) {
  value_note *note = kiln_map_find_ptr(&p->notes, v);
  if (note) return note;
  note = KILN_NEW(p->f->arena, value_note);
  kiln_map_set_ptr(&p->notes, v, note);
  return note;
}

/* How often the growing group reads a result of one of the nodes in front of it. */
static int uses_in_group(partition *p, const kiln_ir_value *v) {
  const value_note *note = kiln_map_find_ptr(&p->notes, v);
  return note && note->group == p->group + 1 ? note->uses : 0;
}

/* Inputs and outputs of a node by itself. */
static int count_values(partition *p, int node) {
  const kiln_node *n = p->f->nodes[node].node;
  int count = 0;
  kiln_vec_clear(&p->reads);
  kiln__fusion_add_reads(p->f, &p->f->nodes[node], &p->reads);
  for (int i = 0; i < p->reads.count; i++) {
    value_note *note = note_of(p, p->reads.data[i]);
    if (note->node == node + 1) continue;
    note->node = node + 1;
    count++;
  }
  for (int i = 0; i < n->output_count; i++) count += n->outputs[i]->use_count > 0;
  return count;
}

/* -- Growing -- */

static void push_candidate(partition *p, int node) {
  kiln_vec_push(p->f->arena, &p->heap, node);
  int *heap = p->heap.data, at = p->heap.count - 1;
  for (; at > 0 && heap[(at - 1) / 2] < node; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
  heap[at] = node;
}

/* The latest one. */
static int pop_candidate(partition *p) {
  int *heap = p->heap.data, top = heap[0], node = kiln_vec_pop(&p->heap), at = 0;
  for (int child; (child = 2 * at + 1) < p->heap.count; at = child) {
    if (child + 1 < p->heap.count && heap[child + 1] > heap[child]) child++;
    if (heap[child] <= node) break;
    heap[at] = heap[child];
  }
  if (p->heap.count) heap[at] = node;
  return top;
}

/* Whether it was made of windows, a few operators before. */
static bool is_image(const kiln_ir_value *v) {
  for (int steps = 0; steps < 8; steps++) {
    const kiln_node *n = v->node;
    if (!n->op || n->input_count == 0) return false;
    if (n->op->flags & KILN_OP_WINDOWS) return true;
    if (n->op->cost != KILN_COST_pointwise && !kiln_node_is(n, KILN_OP_cat) &&
        !kiln_node_is(n, KILN_OP_prim_ListConstruct))
      return false;
    v = kiln_node_input(n, 0);
  }
  return false;
}
/* Whether its elements are those of a convolution's image, element by element, a few operators
 * before. `left` of them are looked at. */
static bool is_of_convolution(const kiln_ir_value *v, int *left) {
  const kiln_node *n = v->node;
  if (!n->op || n->input_count == 0 || --*left < 0) return false;
  if (kiln_codegen_convolves(n->op) || is_image(v)) return true;
  const bool is_view = n->op->cost == KILN_COST_view || kiln_node_is(n, KILN_OP_reshape);
  if (is_view || kiln_node_is(n, KILN_OP_batch_norm))
    return is_of_convolution(kiln_node_input(n, 0), left);
  for (int i = 0; n->op->cost == KILN_COST_pointwise && i < n->input_count; i++)
    if (kiln_type_is_tensor(kiln_node_input(n, i)->type) &&
        is_of_convolution(kiln_node_input(n, i), left))
      return true;
  return false;
}
/* An image's pixels as rows: its channels stand last. */
enum { MOST_NODES = 24 };
static bool is_turned_image(const kiln_ir_value *v) {
  int left = MOST_NODES;
  const kiln_tensor_detail *d = v->type->detail;
  return d && d->has_strides && d->rank > 1 && d->strides[d->rank - 1] != 1 &&
         is_of_convolution(v, &left);
}
/* The same, or of an image with channels last, of which a view makes rows. */
static bool has_pixels_as_rows(const kiln_ir_value *v) {
  const bool is_view = v->node->op && v->node->op->cost == KILN_COST_view;
  return is_turned_image(v) || (is_view && is_of_convolution(v, &(int){MOST_NODES}));
}
static bool goes_into_windows(const kiln_ir_value *v) {
  const kiln_node *reader = v->use_count == 1 ? v->uses->user : NULL;
  return reader && reader->op &&
         (kiln_codegen_convolves(reader->op) || reader->op->flags & KILN_OP_WINDOWS);
}
/* It computes each element of several in a window, of all of an image or of a row of pixels, joins
 * channels of images, puts a border around one or its pixels into another order, or reads pixels as
 * rows: alone it is a group, which reads images as they lie. */
static bool is_of_images(const kiln_node *n) {
  uint64_t mask;
  int64_t dim;
  const kiln_tensor_detail *image = kiln_node_input(n, 0)->type->detail;
  const kiln_tensor_detail *out = n->outputs[0]->type->detail;
  if (n->op->flags & KILN_OP_WINDOWS) return n->op->cost != KILN_COST_heavy;
  if (kiln_node_is(n, KILN_OP_constant_pad_nd) || kiln_node_is(n, KILN_OP_pad))
    return out && out->rank == 4 && is_image(kiln_node_input(n, 0)) &&
           goes_into_windows(n->outputs[0]);
  if (kiln__fusion_moves_pixels(n)) return true;
  if (n->op->cost == KILN_COST_pointwise) return is_turned_image(n->outputs[0]);
  if (kiln_node_is(n, KILN_OP_cat))
    return out && out->rank == 4 && kiln_ir_value_const_int(kiln_node_input(n, 1), &dim) &&
           (dim == 1 || dim == -3) && is_image(kiln_node_input(n, 0));
  if (!image || !kiln_codegen_reduces(n, &mask)) return false;
  return (image->rank == 4 && mask == (1 << 2 | 1 << 3)) ||
         (image->rank > 1 && mask == UINT64_C(1) << (image->rank - 1) &&
          has_pixels_as_rows(kiln_node_input(n, 0)));
}

/* A join of images, of which a convolution makes one at least for it alone: its kernel writes it
 * where the joined image is, so that it stays out of the join's group. */
static bool is_join_of_images(const kiln_fusion *f, const kiln_node *n) {
  int64_t dim;
  if (!kiln_node_is(n, KILN_OP_cat)) return false;
  const kiln_tensor_detail *out = n->outputs[0]->type->detail;
  const kiln_ir_value *list = kiln_node_input(n, 0);
  if (!out || !kiln_may_lie_channels_last(out->rank) ||
      !kiln_ir_value_const_int(kiln_node_input(n, 1), &dim) || (dim != 1 && dim != 1 - out->rank) ||
      list->use_count != 1 || !kiln_node_is(list->node, KILN_OP_prim_ListConstruct))
    return false;
  for (int i = 0; i < list->node->input_count; i++) {
    const kiln_ir_value *v = kiln_node_input(list->node, i);
    int left = MOST_NODES;
    if (v->use_count == 1 && v->node->block == f->block && v->node != f->block->param &&
        f->nodes[v->node->mark - 1].fusible && is_of_convolution(v, &left))
      return true;
  }
  return false;
}

/* The product whose factors a list has; else the node itself. */
static const kiln_node *product_of(const kiln_node *n) {
  if (!kiln_node_is(n, KILN_OP_prim_ListConstruct) || n->outputs[0]->use_count != 1) return n;
  const kiln_node *user = n->outputs[0]->uses->user;
  return kiln_node_is(user, KILN_OP_einsum) && user->block == n->block ? user : n;
}

/* Takes in a node that stands before all members. */
static void add_member(partition *p, int node) {
  kiln_fusion *f = p->f;
  const kiln_node *n = f->nodes[node].node;
  for (int i = 0; i < n->output_count; i++) {
    int inside = uses_in_group(p, n->outputs[i]);
    p->values += (n->outputs[i]->use_count > inside) - (inside > 0);
  }
  kiln_vec_clear(&p->reads);
  kiln__fusion_add_reads(f, &f->nodes[node], &p->reads);
  for (int i = 0; i < p->reads.count; i++) {
    value_note *note = note_of(p, p->reads.data[i]);
    if (note->group == p->group + 1) continue;
    *note = (value_note){.group = p->group + 1, .node = note->node};
    p->values++;
  }
  for (int i = 0; i < n->input_count; i++) { /* of what it reads for sizes alone it is no user */
    value_note *note = kiln_map_find_ptr(&p->notes, kiln_node_input(n, i));
    if (note && note->group == p->group + 1) note->uses++;
  }
  kiln_fusion_cluster *c = &f->clusters[p->group];
  kiln__fusion_rows_take(&c->rows, &f->nodes[node]);
  c->size++;
  c->work += f->nodes[node].is_view ? 0 : c->places || is_of_images(n) ? 2 : 1;
  c->has_maps |= kiln__fusion_is_map(n) && product_of(n) == n;
  c->repeats |= f->nodes[node].repeats;
  c->has_windows |= f->nodes[node].repeats && n->op->flags & KILN_OP_WINDOWS;
  f->nodes[node].cluster = p->group;
  if (node != c->first) f->nodes[node].next_member = c->first;
  c->first = node;
  for (int k = 0; k < f->nodes[node].prev.count; k++) {
    int from = f->nodes[node].prev.data[k];
    if (!f->nodes[from].fusible || f->clusters[f->nodes[from].cluster].is_group) continue;
    if (p->asked[from] == p->group + 1) continue;
    p->asked[from] = p->group + 1;
    push_candidate(p, from);
  }
}

/* A view or list must have all its users in the group: memory of the group's own results only. (All
 * that could still join stand before it.) */
static bool all_users_in(partition *p, int node) {
  const kiln_node *n = p->f->nodes[node].node;
  for (int i = 0; i < n->output_count; i++) {
    if (uses_in_group(p, n->outputs[i]) != n->outputs[i]->use_count) return false;
  }
  return true;
}

static int64_t numel_of(const kiln_ir_value *v) {
  const kiln_tensor_detail *d = kiln_type_is_tensor(v->type) ? v->type->detail : NULL;
  int64_t numel = 1;
  for (int i = 0; d && i < d->rank; i++) numel *= d->sizes[i];
  return numel;
}

/* It gives each element several times, and not only in its last dimensions, along which code stays
 * outside of the loops: expand(x (8, 1), (8, 64)) does not count. */
static bool gives_again(const kiln_node *n) {
  if (kiln_codegen_contracts(product_of(n)->op)) return true;
  uint64_t mask;
  if (n->op->flags & KILN_OP_GATHERS) return true; /* it may */
  if (n->op->flags & KILN_OP_WINDOWS) return !kiln_codegen_reduces(n, &mask);
  if (!kiln__fusion_is_map(n) || !kiln_type_is_tensor(kiln_node_input(n, 0)->type)) return false;
  const kiln_ir_value *from = kiln_node_input(n, 0), *to = kiln_node_output(n, 0);
  if (!kiln_type_is_tensor(to->type) || numel_of(to) <= numel_of(from)) return false;
  if (n->op->cost != KILN_COST_view)
    return !(kiln_node_is(n, KILN_OP_constant_pad_nd) || kiln_node_is(n, KILN_OP_pad));
  const kiln_tensor_detail *a = from->type->detail, *b = to->type->detail;
  bool grown = false;
  for (int d = b->rank - 1; d >= 0; d--) {
    const int at = d - (b->rank - a->rank);
    const bool grows = b->sizes[d] != 1 && (at < 0 || a->sizes[at] != b->sizes[d]);
    if (grows && (grown || (at >= 0 && a->sizes[at] != 1))) return true;
    grown |= b->sizes[d] != 1 && !grows;
  }
  return false;
}

/* Whether a reader in the group asks for elements of the node again and again. What a view hands on
 * does too; an index is read as its reader's elements are. */
static bool is_read_again(partition *p, int node) {
  const kiln_fusion *f = p->f;
  for (int k = 0; k < f->nodes[node].next.count; k++) {
    const kiln_fusion_node *to = &f->nodes[f->nodes[node].next.data[k]];
    if (to->cluster != p->group || !to->repeats) continue;
    const bool gathers = to->node->op->flags & KILN_OP_GATHERS;
    const kiln_node *product = product_of(to->node);
    kiln_factors of;
    if (f->nodes[product->mark - 1].chain == KILN_FUSION_SECOND &&
        kiln_codegen_factors(product, &of) && of.values[0]->node == f->nodes[node].node)
      continue;
    if (!gathers || kiln_node_input(to->node, 0)->node == f->nodes[node].node) return true;
  }
  return false;
}

/* To read it again is to read its argument again. A join before windows would have parts for each
 * of an element's neighbours. */
static bool is_copied(const kiln_fusion *f, const kiln_fusion_cluster *c, int node) {
  const kiln_fusion_node *n = &f->nodes[node];
  if (c->has_windows && !n->is_view) return false;
  if (c->rows.product && kiln__fusion_is_for_once(n->node)) return false;
  return kiln__fusion_is_map(n->node) && !(n->node->op->flags & KILN_OP_WINDOWS);
}

static void grow_group(partition *p, int node) {
  kiln_fusion *f = p->f;
  p->group = node;
  p->values = 0;
  p->search++;
  f->clusters[node].is_group = true;
  f->nodes[node].repeats = gives_again(f->nodes[node].node);
  f->clusters[node].places = is_join_of_images(f, f->nodes[node].node);
  add_member(p, node);
  while (p->heap.count) {
    int from = pop_candidate(p);
    if (f->nodes[from].is_view && !all_users_in(p, from)) continue;
    if (f->clusters[node].places && !kiln_node_is(f->nodes[from].node, KILN_OP_prim_ListConstruct))
      continue;
    const bool again = is_read_again(p, from), maps = is_copied(f, &f->clusters[node], from);
    f->nodes[from].repeats = (maps && again) || gives_again(f->nodes[from].node);
    const bool twice = !all_users_in(p, from) && !f->nodes[from].is_view &&
                       (f->clusters[node].rows.chain ||
                        kiln__fusion_rows_again(&f->clusters[node].rows, f->nodes[from].node));
    const kiln_reason misfit = kiln__fusion_rows_fit(&f->clusters[node].rows, &f->nodes[from]);
    if ((again && !maps) || twice) {
      kiln__fusion_refuse(f, f->nodes[from].node, KILN_REASON_read_again);
    } else if (f->clusters[node].size >= f->pass->env->flags.max_group_size) {
      kiln__fusion_refuse(f, f->nodes[from].node, KILN_REASON_group_too_large);
    } else if (p->values + count_values(p, from) > KILN_GROUP_VALUES) {
      kiln__fusion_refuse(f, f->nodes[from].node, KILN_REASON_too_many_values);
    } else if (misfit != KILN_REASON_none) {
      kiln__fusion_refuse(f, f->nodes[from].node, misfit);
    } else if (f->clusters[node].rows.product && f->nodes[from].apart) {
      kiln__fusion_refuse(f, f->nodes[from].node, KILN_REASON_no_affine_map);
    } else if (!reaches_around(p, from, node)) {
      add_member(p, from);
    }
  }
}

static void grow_groups(partition *p) {
  const kiln_fusion *f = p->f;
  for (int i = f->count - 1; i >= 0; i--) {
    const kiln_fusion_node *n = &f->nodes[i];
    const bool begins = n->fusible && !n->is_view && n->chain != KILN_FUSION_FIRST;
    if (begins && !f->clusters[n->cluster].is_group) grow_group(p, i);
    find_whether_it_leads_back(p, i);
  }
}

/* -- Neighbours -- */

/* The second one reads a tensor that the first reads or gives, or results have the same shape. */
static bool worth_joining(const kiln_fusion *f, const kiln_fusion_values *a,
                          const kiln_fusion_values *b) {
  if (f->pass->env->flags.compat == KILN_COMPAT_TORCH) return true;
  for (int k = 0; k < b->inputs.count; k++) {
    const kiln_ir_value *v = b->inputs.data[k];
    if (!kiln_type_is_tensor(v->type)) continue;
    for (int i = 0; i < a->inputs.count; i++) {
      if (a->inputs.data[i] == v) return true;
    }
    for (int i = 0; i < a->outputs.count; i++) {
      if (a->outputs.data[i] == v) return true;
    }
  }
  for (int i = 0; i < a->outputs.count; i++) {
    for (int k = 0; k < b->outputs.count; k++) {
      if (kiln_tensor_detail_same_sizes(a->outputs.data[i]->type->detail,
                                        b->outputs.data[k]->type->detail))
        return true;
    }
  }
  return false;
}

static bool is_path(partition *p, int from, int to) {
  p->search++;
  return reaches_around(p, from, to);
}

/* The members of b become members of a. */
static void join(kiln_fusion *f, int a, int b) {
  kiln_fusion_cluster *ca = &f->clusters[a], *cb = &f->clusters[b];
  int *link = &ca->first, left = ca->first, right = cb->first;
  for (int m = right; m >= 0; m = f->nodes[m].next_member) f->nodes[m].cluster = a;
  while (left >= 0 || right >= 0) {
    int *least = right < 0 || (left >= 0 && left < right) ? &left : &right;
    *link = *least;
    link = &f->nodes[*least].next_member;
    *least = *link;
  }
  if (cb->last > ca->last) ca->last = cb->last;
  ca->size += cb->size;
  ca->work += cb->work;
  ca->has_maps |= cb->has_maps;
  cb->is_group = false;
}

/* Its nest is its own, or what joins it could be read again and again. */
static bool stays_alone(const kiln_fusion_cluster *c) {
  return c->rows.space || c->repeats || c->places;
}

static void join_neighbours(partition *p) {
  kiln_fusion *f = p->f;
  int previous = -1;
  kiln_fusion_values before = {0}, values;
  for (int i = 0; i < f->count; i++) {
    int c = f->nodes[i].cluster;
    if (!f->clusters[c].is_group || f->clusters[c].first != i) continue;
    kiln__fusion_values(f, &f->clusters[c], &values);
    bool joins =
        previous >= 0 && !stays_alone(&f->clusters[previous]) && !stays_alone(&f->clusters[c]) &&
        worth_joining(f, &before, &values) &&
        f->clusters[previous].size + f->clusters[c].size <= f->pass->env->flags.max_group_size;
    if (joins &&
        before.inputs.count + before.outputs.count + values.inputs.count + values.outputs.count >
            KILN_GROUP_VALUES) {
      kiln__fusion_refuse(f, f->nodes[i].node, KILN_REASON_too_many_values);
      joins = false;
    }
    if (joins && !is_path(p, previous, c) && !is_path(p, c, previous)) {
      join(f, previous, c);
      kiln__fusion_values(f, &f->clusters[previous], &before);
    } else {
      previous = c;
      before = values;
    }
  }
}

/* -- Which clusters become groups -- */

/* A product is worth a kernel alone. */
static bool is_small(const kiln_fusion *f, const kiln_fusion_cluster *c) {
  return c->work < f->pass->env->flags.min_group_size && !c->rows.product;
}
static kiln_reason why_not(const kiln_fusion *f, const kiln_fusion_cluster *c) {
  if (is_small(f, c)) return KILN_REASON_group_too_small;
  if (c->work == 1 && c->rows.windows) return KILN_REASON_product_by_kernel;
  return f->pass->groups_left > 0 ? KILN_REASON_none : KILN_REASON_too_many_groups;
}

/* Each member is a cluster of its own again. */
static void dissolve(kiln_fusion *f, kiln_fusion_cluster *c, kiln_reason reason) {
  for (int m = c->first, next; m >= 0; m = next) {
    next = f->nodes[m].next_member;
    f->nodes[m].next_member = -1;
    f->nodes[m].cluster = m;
    f->clusters[m] = (kiln_fusion_cluster){.first = m, .last = m};
    if (kiln__fusion_is_work(f->nodes[m].node)) {
      kiln__fusion_refuse(f, f->nodes[m].node, reason);
    }
  }
}

/* -- Which groups can be lowered as a whole -- */

/* The second of two products without the first is not worth a kernel. */
static bool has_its_first(const kiln_fusion *f, const kiln_fusion_cluster *c) {
  bool found = false;
  for (int m = c->first; m >= 0; m = f->nodes[m].next_member)
    found |= f->nodes[m].chain == KILN_FUSION_FIRST;
  return found;
}
static void refuse_second(kiln_fusion *f, const kiln_fusion_cluster *c) {
  for (int m = c->first; m >= 0; m = f->nodes[m].next_member) {
    if (f->nodes[m].chain != KILN_FUSION_SECOND) continue;
    f->nodes[m].fusible = false;
    kiln__fusion_refuse(f, f->nodes[m].node, KILN_REASON_product_by_kernel);
  }
}

static bool reduces(const kiln_node *n) {
  return n->op->cost == KILN_COST_reduction || kiln__fusion_drops_dims(n);
}

/* Reductions that may not go together: a long sum in steps that the loops cannot take, a distance
 * in a running sum. */
static bool asks_for_trial(const kiln_fusion *f, const kiln_fusion_cluster *c) {
  int rows = 0;
  bool drops = false;
  for (int m = c->first; m >= 0; m = f->nodes[m].next_member) {
    rows += reduces(f->nodes[m].node);
    drops |= kiln__fusion_drops_dims(f->nodes[m].node);
  }
  return drops || rows > 1;
}

/* What reads elements by their number reads a kernel's inputs, and no view of one. */
static bool refuse_views(kiln_fusion *f, const kiln_fusion_cluster *c) {
  bool any = false;
  for (int m = c->first; m >= 0; m = f->nodes[m].next_member) {
    kiln_fusion_node *n = &f->nodes[m];
    if (!n->is_view || !kiln_type_is_tensor(n->node->outputs[0]->type)) continue;
    n->fusible = false;
    kiln__fusion_refuse(f, n->node, KILN_REASON_no_indirect_load);
    any = true;
  }
  return any;
}

/* A convolution may have tiles with channels last alone: without them it gives way (layouts.c). */
static bool gets_last(const kiln_fusion *f, const kiln_fusion_cluster *c) {
  for (int m = c->first; m >= 0; m = f->nodes[m].next_member)
    if (f->nodes[m].lies_last) return true;
  return false;
}

/* A group that cannot is to be formed without what changes where elements stand, or without joins,
 * where they are the cause: views have no parts; or without reductions, where their rows may be;
 * then without its product, which a kernel would make slowly. */
static bool is_lowered(kiln_fusion *f, const kiln_fusion_cluster *c) {
  kiln_fusion_values v;
  const bool small = c->work < f->pass->env->flags.min_group_size;
  if (c->rows.chain && !has_its_first(f, c)) {
    refuse_second(f, c);
    return false;
  }
  const bool rows_matter = asks_for_trial(f, c);
  if (!c->rows.product && ((!c->has_maps && !rows_matter) || small)) return true;
  kiln__fusion_values(f, c, &v);
  const kiln_reason reason = kiln_codegen_can_lower_values(
      v.inputs.data, v.inputs.count, v.outputs.data, v.outputs.count,
      (kiln_factor_type)f->pass->env->flags.matmul, kiln_arena_mem(f->arena));
  if (reason == KILN_REASON_none || (reason == KILN_REASON_product_by_kernel && gets_last(f, c)))
    return true;
  if (reason == KILN_REASON_no_indirect_load && refuse_views(f, c)) return false;
  for (int m = c->first; m >= 0; m = f->nodes[m].next_member) {
    const bool rows = c->rows.unclear ? kiln__fusion_drops_dims(f->nodes[m].node)
                                      : !c->has_maps && reduces(f->nodes[m].node);
    const bool product = kiln_codegen_contracts(f->nodes[m].node->op);
    if (!rows && !kiln__fusion_is_map(f->nodes[m].node) && !product) continue;
    if (product_of(f->nodes[m].node) != f->nodes[m].node || (product && c->has_maps)) continue;
    if (reason == KILN_REASON_rows_cut && f->nodes[m].is_view) continue;
    if (c->rows.product && !product && !f->nodes[m].apart) {
      f->nodes[m].apart = true;
      continue;
    }
    f->nodes[m].fusible = false;
    kiln__fusion_refuse(f, f->nodes[m].node, reason);
  }
  return false;
}

/* Each node is a cluster of its own. */
static void begin(kiln_fusion *f) {
  for (int i = 0; i < f->count; i++) {
    f->clusters[i] = (kiln_fusion_cluster){.first = i, .last = i};
    f->nodes[i].cluster = i;
    f->nodes[i].next_member = -1;
    f->nodes[i].repeats = false;
  }
}

/* The clusters of the block; false: one of them cannot be lowered. In the last round all that could
 * be the cause is left out. */
static bool make_groups(kiln_fusion *f, bool is_last) {
  bool good = true;
  for (int i = 0; is_last && i < f->count; i++) {
    if (f->nodes[i].fusible) f->nodes[i].fusible = !kiln__fusion_is_map(f->nodes[i].node);
  }
  begin(f);
  partition p = {.f = f, .asked = KILN_NEW_ARRAY(f->arena, int, f->count + 1)};
  p.steps = STEPS_MIN + STEPS_PER_EDGE * f->edges;
  p.notes = kiln_map_in(f->arena);
  grow_groups(&p);
  join_neighbours(&p);
  for (int i = 0; i < f->count; i++) {
    if (f->clusters[i].is_group) good &= is_lowered(f, &f->clusters[i]);
  }
  return good;
}

bool kiln__fusion_partition(kiln_fusion *f) {
  enum { ROUNDS = 4 };
  f->clusters = KILN_NEW_ARRAY(f->arena, kiln_fusion_cluster, f->count + 1);
  for (int round = 1; round <= ROUNDS && !make_groups(f, round == ROUNDS); round++) {
  }
  bool any = false;
  for (int i = 0; i < f->count; i++) {
    kiln_fusion_cluster *c = &f->clusters[i];
    if (!c->is_group) continue;
    const kiln_reason reason = why_not(f, c);
    if (reason != KILN_REASON_none) {
      dissolve(f, c, reason);
      continue;
    }
    f->pass->groups_left--;
    any = true;
  }
  return any;
}
