/* join_convolutions.c: pass `join_convolutions`: convolutions of one image whose results are added
 * are one convolution with the sum of their weights.
 *
 * Networks that are trained with branches (RepVGG, MobileOne, FastViT) are often shipped with them.
 * Of three branches over x,
 *   a = batch_norm(conv2d(x, w3, padding=1), ..)     3 x 3
 *   b = batch_norm(conv2d(x, w1), ..)                1 x 1
 *   y = a + b + batch_norm(x, ..)
 * becomes
 *   w, bias = joined_convolution(w3, [w3, None, .., w1, None, .., None, None, ..], ..)     kept
 *   y = conv2d(x, w, bias, padding=1)
 * (runtime/kernels/nn/joined_convolution.c). A smaller window stands in the largest where it reads
 * the same pixels; other terms of the sum are added to what comes of these. A norm behind a single
 * convolution is left alone: it costs that one's kernel nothing.
 *
 * The sum is rounded once, and not once for each branch: not with KILN_EXACT, and not under
 * KILN_COMPAT=torch. */
#include "jit/convolution.h"
#include "jit/fusion.h"
#include "jit/norm.h"

enum {
  MOST_TERMS = 64,
  MOST_AXES = 3,
  FEW_PIXELS = 32 /* of which a convolution takes as long as the sum of weights, if none is kept */
};

typedef struct axis {
  int64_t size, stride, padding, dilation, place;
} axis;

/* A term of the sum: a window over the image, or a norm of that, or of the image, or the image; or
 * anything else. */
typedef struct term {
  kiln_ir_value *value, *image; /* NULL: anything else */
  kiln_node *norm, *window;     /* NULL: none */
  int axis_count;
  axis axes[MOST_AXES];
} term;

typedef struct sum {
  int count, node_count;
  term terms[MOST_TERMS];
  kiln_node *nodes[MOST_TERMS]; /* the additions, the last one first */
} sum;

static const kiln_tensor_detail *floats_of(const kiln_ir_value *v) {
  if (!kiln_type_has_dims(v->type)) return NULL;
  const kiln_tensor_detail *d = v->type->detail;
  const bool fits = (d->dtype == KILN_DTYPE_F32 || d->dtype == KILN_DTYPE_F64) &&
                    d->requires_grad != 1 && d->undefined != 1;
  return fits ? d : NULL;
}

static bool are_alike(const kiln_tensor_detail *a, const kiln_tensor_detail *b) {
  return kiln_tensor_detail_same_sizes(a, b) && a->dtype == b->dtype;
}

/* -- Terms -- */

/* A sum of two tensors of the result's sizes. */
static bool is_sum(const kiln_node *n) {
  if (!n->op || n->op->id != KILN_OP_add_Tensor || !kiln_op_is_functional(n->op) ||
      !kiln_ir_value_is_number(kiln_node_input(n, 2), 1))
    return false;
  const kiln_tensor_detail *result = floats_of(n->outputs[0]);
  return are_alike(result, floats_of(kiln_node_input(n, 0))) &&
         are_alike(result, floats_of(kiln_node_input(n, 1)));
}

/* Read here alone, and made in the block. */
static bool is_own(const kiln_ir_value *v, const kiln_block *block) {
  return v->use_count == 1 && v->node->block == block;
}

/* A vector of weights, one for each channel; or None where it may be. */
static bool is_vector(const kiln_ir_value *v, int64_t count, int dtype, bool may_be_none) {
  if (kiln_ir_value_is_none(v)) return may_be_none;
  const kiln_tensor_detail *d = floats_of(v);
  return d && d->rank == 1 && d->sizes[0] == count && d->dtype == dtype &&
         kiln_ir_value_is_of_weights(v);
}

/* Batch norm that does not train, of weights alone. */
static bool is_norm(const kiln_node *n) {
  const kiln_tensor_detail *x = kiln__is_trained_norm(n) ? floats_of(kiln_node_input(n, 0)) : NULL;
  if (!x || x->rank < 3 || !kiln_dim_is_number(x->sizes[1]) ||
      !kiln_ir_value_constant(kiln_node_input(n, KILN__NORM_EPS)))
    return false;
  for (int i = 1; i < 5; i++)
    if (!is_vector(kiln_node_input(n, i), x->sizes[1], x->dtype, i < 3)) return false;
  return true;
}

static bool find_window(const kiln_node *n, term *t) {
  const kiln_tensor_detail *weight =
      kiln__convolution_groups(n) > 0 ? floats_of(kiln_node_input(n, 1)) : NULL;
  const kiln_tensor_detail *result = floats_of(n->outputs[0]);
  if (!weight || !result || weight->rank < 3 || weight->rank > 2 + MOST_AXES ||
      result->rank != weight->rank || !kiln_ir_value_is_of_weights(kiln_node_input(n, 1)) ||
      !is_vector(kiln_node_input(n, 2), weight->sizes[0], weight->dtype, true))
    return false;
  bool known = kiln_dim_is_number(weight->sizes[0]) && kiln_dim_is_number(weight->sizes[1]);
  t->axis_count = weight->rank - 2;
  for (int a = 0; a < t->axis_count; a++) {
    t->axes[a] =
        (axis){weight->sizes[2 + a], kiln__convolution_number_at(n, KILN__CONVOLUTION_STRIDE, a),
               kiln__convolution_number_at(n, KILN__CONVOLUTION_PADDING, a),
               kiln__convolution_number_at(n, KILN__CONVOLUTION_DILATION, a), 0};
    const axis x = t->axes[a];
    known &= kiln_dim_is_number(x.size) && x.stride > 0 && x.padding >= 0 && x.dilation > 0;
  }
  return known;
}

static bool has_few_pixels(const kiln_tensor_detail *image) {
  double pixels = 1;
  for (int d = 0; d < image->rank; d++)
    pixels *= d == 1 ? 1 : (double)kiln_dim_or(image->sizes[d], FEW_PIXELS);
  return pixels < (double)FEW_PIXELS;
}

static term term_of(kiln_ir_value *v, const kiln_block *block) {
  term t = {.value = v};
  kiln_node *n = v->node;
  if (!is_own(v, block)) return t;
  if (is_norm(n)) {
    t.norm = n;
    t.image = kiln_node_input(n, 0);
    n = is_own(t.image, block) ? t.image->node : NULL;
  }
  if (n && n->op && find_window(n, &t)) {
    t.window = n;
    t.image = kiln_node_input(n, 0);
  }
  return t;
}

/* The sum that ends in n: its additions, whose results nobody else reads, and its terms. */
static bool find_sum(kiln_node *n, sum *s) {
  s->count = 0, s->node_count = 1;
  s->nodes[0] = n;
  for (int i = 0; i < s->node_count; i++) {
    for (int k = 1; k >= 0; k--) {
      kiln_ir_value *v = kiln_node_input(s->nodes[i], k);
      if (s->count + s->node_count >= MOST_TERMS) return false;
      if (is_own(v, n->block) && is_sum(v->node))
        s->nodes[s->node_count++] = v->node;
      else
        s->terms[s->count++] = term_of(v, n->block);
    }
  }
  return true;
}

/* -- Windows in a window -- */

/* Where the term's window stands in the largest one; false: it reads other pixels. */
static bool place(term *t, const term *largest) {
  if (t->image != largest->image) return false;
  const kiln_tensor_detail *all = kiln_node_input(largest->window, 1)->type->detail;
  if (!t->window) {
    if (!are_alike(floats_of(t->image), floats_of(largest->value)) ||
        all->sizes[0] != all->sizes[1] * kiln__convolution_groups(largest->window))
      return false;
    t->axis_count = largest->axis_count;
    for (int a = 0; a < t->axis_count; a++)
      t->axes[a] = (axis){1, 1, 0, largest->axes[a].dilation, 0};
  } else {
    const kiln_tensor_detail *own = kiln_node_input(t->window, 1)->type->detail;
    if (own->rank != all->rank || own->dtype != all->dtype || own->sizes[0] != all->sizes[0] ||
        own->sizes[1] != all->sizes[1])
      return false;
  }
  for (int a = 0; a < t->axis_count; a++) {
    axis *x = &t->axes[a];
    const axis *y = &largest->axes[a];
    const int64_t step = y->dilation;
    if (x->stride != y->stride || (x->dilation != step && x->size > 1) || y->padding < x->padding ||
        (y->padding - x->padding) % step)
      return false;
    x->place = (y->padding - x->padding) / step;
    if (x->place > y->size - x->size) return false;
  }
  return true;
}

static double taps_of(const term *t) {
  double taps = 1;
  for (int a = 0; a < t->axis_count; a++) taps *= (double)t->axes[a].size;
  return taps;
}

/* The largest window of at least two terms over its image, of those that come behind a larger one
 * or did not fit into one (`done`). NULL: there is none. */
static term *next_largest(sum *s, const bool *done) {
  term *best = NULL;
  for (int i = 0; i < s->count; i++) {
    term *t = &s->terms[i];
    if (t->window && !done[i] && (!best || taps_of(t) > taps_of(best))) best = t;
  }
  return best;
}

/* -- What they become -- */

static kiln_ir_value *list_params(kiln_node *before, const sum *s, const bool *joins) {
  kiln_type_table *types = before->graph->types;
  const kiln_type *none_type = kiln_type_basic(KILN_TYPE_NONE);
  kiln_ir_value *none = kiln_insert_constant_before(before, kiln_none(), none_type);
  kiln_node *list = kiln_insert_list_before(before);
  for (int i = 0; i < s->count; i++) {
    const term *t = &s->terms[i];
    for (int k = 1; k < 3 && joins[i]; k++)
      kiln_node_add_input(list, t->window ? kiln_node_input(t->window, k) : none);
    for (int k = 1; k < 5 && joins[i]; k++)
      kiln_node_add_input(list, t->norm ? kiln_node_input(t->norm, k) : none);
  }
  return kiln_list_give(list, kiln_type_optional(types, kiln_type_basic(KILN_TYPE_TENSOR)));
}
static kiln_ir_value *list_eps(kiln_node *before, const sum *s, const bool *joins) {
  const kiln_type *type = kiln_type_basic(KILN_TYPE_FLOAT);
  kiln_ir_value *zero = kiln_insert_constant_before(before, kiln_float(0), type);
  kiln_node *list = kiln_insert_list_before(before);
  for (int i = 0; i < s->count; i++)
    if (joins[i])
      kiln_node_add_input(
          list, s->terms[i].norm ? kiln_node_input(s->terms[i].norm, KILN__NORM_EPS) : zero);
  return kiln_list_give(list, type);
}
static kiln_ir_value *list_ints(kiln_node *before, int count, const int64_t *ints) {
  kiln_node *list = kiln_insert_list_before(before);
  for (int i = 0; i < count; i++) kiln_node_add_input(list, kiln_insert_int_before(list, ints[i]));
  return kiln_list_give(list, kiln_type_basic(KILN_TYPE_INT));
}

/* The convolution of all that join, before `before`. */
static kiln_ir_value *join(kiln_node *before, const sum *s, const bool *joins,
                           const term *largest) {
  const kiln_ir_value *weight = kiln_node_input(largest->window, 1);
  const kiln_tensor_detail *d = weight->type->detail;
  int64_t places[MOST_TERMS * MOST_AXES];
  int place_count = 0;
  for (int i = 0; i < s->count; i++)
    for (int a = 0; a < largest->axis_count && joins[i]; a++)
      places[place_count++] = s->terms[i].axes[a].place;
  kiln_node *made = kiln_node_create_like(before, KILN_OP_joined_convolution);
  kiln_node_insert_before(made, before);
  kiln_node_add_input(made, kiln_node_input(largest->window, 1));
  kiln_node_add_input(made, list_params(made, s, joins));
  kiln_node_add_input(made, list_eps(made, s, joins));
  kiln_node_add_input(made, list_ints(made, d->rank, d->sizes));
  kiln_node_add_input(made, list_ints(made, place_count, places));
  for (int i = 0; i < 2; i++) kiln_node_add_output(made, kiln_type_basic(KILN_TYPE_TENSOR));
  (void)kiln_shape_infer(made->graph, made);
  const kiln_node *like = largest->window;
  kiln_node *window = kiln_node_create_like(like, (kiln_op_id)like->op->id);
  kiln_node_insert_before(window, before);
  for (int i = 0; i < like->input_count; i++)
    kiln_node_add_input(window, i == 1 || i == 2 ? made->outputs[i - 1] : kiln_node_input(like, i));
  return kiln_node_add_output(window, like->outputs[0]->type);
}

static void destroy_unused(kiln_node *n) {
  if (n && n->outputs[0]->use_count == 0) kiln_node_destroy(n);
}

/* The sum of what was made and of the terms that did not join is the result. */
static void finish(sum *s, const bool *joined, kiln_ir_value *made) {
  kiln_node *root = s->nodes[0];
  for (int i = s->count - 1; i >= 0; i--) {
    if (joined[i]) continue;
    kiln_node *add = kiln_node_create_like(root, KILN_OP_add_Tensor);
    kiln_node_insert_before(add, root);
    kiln_node_add_input(add, made);
    kiln_node_add_input(add, s->terms[i].value);
    kiln_node_add_input(add, kiln_insert_int_before(add, 1));
    made = kiln_node_add_output(add, root->outputs[0]->type);
  }
  kiln_ir_value_replace_uses(root->outputs[0], made);
  for (int i = 0; i < s->node_count; i++) kiln_node_destroy(s->nodes[i]);
  for (int i = 0; i < s->count; i++) {
    destroy_unused(joined[i] ? s->terms[i].norm : NULL);
    destroy_unused(joined[i] ? s->terms[i].window : NULL);
  }
}

/* Writes a tensor or an attribute, or may, in its blocks too. */
static bool writes(const kiln_node *n) {
  if (kiln_node_may_write(n) || n->op->id == KILN_OP__CUSTOM || kiln_node_writes_stats(n))
    return true;
  for (int b = 0; b < n->block_count; b++)
    for (const kiln_node *m = n->blocks[b]->first; m; m = m->next)
      if (writes(m)) return true;
  return false;
}

/* Whether all that join may be computed where the sum ends: nothing is written since the first of
 * them. */
static bool may_wait(const sum *s, const bool *joins) {
  enum { MOST_BETWEEN = 512 };
  int left = 0, seen = 0;
  for (int i = 0; i < s->count; i++)
    left += joins[i] * ((s->terms[i].norm != NULL) + (s->terms[i].window != NULL));
  for (const kiln_node *n = s->nodes[0]->prev; left > 0; n = n->prev) {
    if (!n || ++seen > MOST_BETWEEN || writes(n)) return false;
    for (int i = 0; i < s->count; i++)
      left -= joins[i] && (n == s->terms[i].norm || n == s->terms[i].window);
  }
  return true;
}

static bool join_sum(sum *s) {
  bool tried[MOST_TERMS] = {false}, joined[MOST_TERMS] = {false};
  kiln_ir_value *made = NULL;
  for (term *largest; !made && (largest = next_largest(s, tried));) {
    int count = 0;
    for (int i = 0; i < s->count; i++) {
      joined[i] = s->terms[i].image && place(&s->terms[i], largest);
      count += joined[i];
    }
    tried[largest - s->terms] = true;
    if (count < 2 || !may_wait(s, joined)) continue;
    for (int i = 0; i < s->count; i++) {
      if (joined[i] || s->terms[i].value != largest->image) continue;
      term image = {.value = s->terms[i].value, .image = s->terms[i].value};
      joined[i] = place(&image, largest);
      if (joined[i]) s->terms[i] = image;
    }
    made = join(s->nodes[0], s, joined, largest);
  }
  if (made) finish(s, joined, made);
  return made;
}

/* The last of its additions. */
static bool ends_sum(const kiln_node *n) {
  if (!is_sum(n) || has_few_pixels(n->outputs[0]->type->detail)) return false;
  const kiln_ir_value *result = n->outputs[0];
  return !is_own(result, n->block) || result->uses->user->block != n->block ||
         !is_sum(result->uses->user);
}

static void visit(kiln_pass *pass, kiln_block *block, sum *s) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) visit(pass, n->blocks[b], s);
    if (ends_sum(n) && find_sum(n, s) && join_sum(s)) pass->changed = true;
  }
}

kiln_status *kiln_pass_join_convolutions(kiln_pass *pass) {
  const kiln_flags *flags = &pass->env->flags;
  if (flags->keep && !flags->exact && flags->compat != KILN_COMPAT_TORCH)
    visit(pass, pass->graph->top, KILN_NEW(pass->scratch, sum));
  return NULL;
}
