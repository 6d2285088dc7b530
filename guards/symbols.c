/* symbols.c: sizes that differ from call to call, in the guards of DYNAMIC levels.
 *
 * A dimension's history is what it was at earlier levels and is now. Where it was always the same
 * it stays a number; dimensions that always were alike are one symbol. Of x [8, 64], then [5, 64],
 * and y [8], then [5], the second level knows x [s0, 64], y [s0]. So two sizes that are equal by
 * accident are two symbols as soon as they once were not. A level without any history follows
 * PyTorch's rule: every size from 2 on is a symbol, equal ones the same (JIT executor,
 * GenerateGuard); but sizes of attributes stay numbers, and so do those that are equal to them,
 * such as the columns that a weight multiplies. KILN_COMPAT=torch makes no exception.
 *
 * Where `from_one` says so, what a history makes a symbol may be 1 as well: [8, 64], then [5, 64],
 * is [n0, 64], and so is [1, 64], then [5, 64]. To such symbols 1 is a size like all others.
 * Elsewhere it is a number, and says nothing of what is alike: it goes with every size. */
#include <string.h>

#include "guards/region.h"

/* -- Histories -- */

static int input_of(const kiln_ir_value *v) {
  const bool is_input = v->node == v->node->graph->top->param;
  return is_input ? v->index : -1;
}

/* What dimension `at` of the value's sizes and strides was at earlier levels; gives how many of
 * them say it. */
static int history_of(const kiln_symbols *s, const kiln_ir_value *v, int rank, int at,
                      kiln_dim *out) {
  const int input = input_of(v);
  int known = 0;
  for (int l = 0; l < s->level_count; l++) {
    const kiln_shape_seen *seen = input >= 0 ? &s->history->levels[l][input] : NULL;
    const bool says = seen && seen->rank == rank;
    out[l] = says ? seen->dims[at] : KILN_DIM_UNKNOWN;
    known += says;
  }
  return known;
}

/* What does not tell a dimension from others: nobody saw it, or it was 1, which goes with every
 * size. */
static bool is_open(const kiln_symbol *key, int level) {
  const bool is_one = key->history[level] == 1 && !key->is_stride && !key->from_one;
  return key->history[level] == KILN_DIM_UNKNOWN || is_one;
}

static bool are_alike(const kiln_symbol *a, const kiln_symbol *b, int level_count) {
  if (a->is_stride != b->is_stride || a->from_one != b->from_one || a->now != b->now) return false;
  for (int l = 0; l < level_count; l++) {
    if (a->history[l] != b->history[l] && !is_open(a, l) && !is_open(b, l)) return false;
  }
  return true;
}

static kiln_dim symbol_of(const kiln_symbols *s, int number) {
  return s->all[number].from_one ? kiln_dim_symbol_from_one(number) : kiln_dim_symbol(number);
}

static kiln_dim symbol_now(const kiln_symbols *s, int64_t now) {
  for (int i = 0; i < s->count; i++) {
    if (!s->all[i].is_stride && s->all[i].now == now) return symbol_of(s, i);
  }
  return now;
}

/* What the dimension is. Without a history it is the symbol that has its value, if there is one. */
static kiln_dim dim_of(kiln_symbols *s, const kiln_ir_value *v, int rank, int at, int64_t now) {
  kiln_symbol key = {.now = now, .is_stride = at >= rank};
  if (now < 1 || now > KILN_DIM_MOST) return now;
  const bool known = history_of(s, v, rank, at, key.history) > 0;
  key.from_one = s->from_one && known && !key.is_stride;
  if (now == 1 && !key.from_one) return now;
  bool varied = false;
  for (int l = 0; l < s->level_count; l++)
    varied |= key.history[l] != now && key.history[l] != KILN_DIM_UNKNOWN;
  const bool first = s->level_count == 0 && !kiln_map_find_id(&s->fixed, (uint64_t)now);
  if (!known && s->level_count > 0 && !key.is_stride) return symbol_now(s, now);
  if (!varied && !first) return now;
  for (int i = 0; i < s->count; i++) {
    kiln_symbol *like = &s->all[i];
    if (!are_alike(like, &key, s->level_count)) continue;
    for (int l = 0; l < s->level_count; l++)
      if (is_open(like, l)) like->history[l] = key.history[l];
    return s->same_as[i] ? s->same_as[i] : symbol_of(s, i);
  }
  if (s->count == KILN_GUARD_SYMBOLS) return now;
  s->all[s->count] = key;
  return symbol_of(s, s->count++);
}

/* -- Types -- */

/* Strides as products of the sizes within, as far as they are such: of a contiguous tensor, a
 * transposed one, one of channels last. A symbol that is 1 now stands within what has its stride.
 */
static void find_strides(kiln_symbols *s, const kiln_ir_value *v, const kiln_tensor_detail *d,
                         const kiln_dim *sizes, kiln_dim *strides) {
  kiln_dims *dims = kiln_type_table_dims(s->types);
  bool done[KILN_MAX_RANK] = {false};
  int64_t reach = 1;
  kiln_dim product = 1;
  for (int n = 0; n < d->rank; n++) {
    int at = -1;
    for (int i = d->rank - 1; i >= 0; i--) {
      if (done[i] || (d->sizes[i] == 1 && sizes[i] == 1)) continue;
      const bool within = at >= 0 && d->strides[i] == d->strides[at] && d->sizes[i] == 1;
      if (at < 0 || d->strides[i] < d->strides[at] || (within && d->sizes[at] != 1)) at = i;
    }
    if (at < 0) break;
    done[at] = true;
    const int64_t stride = d->strides[at];
    strides[at] = stride == reach ? product : dim_of(s, v, d->rank, d->rank + at, stride);
    if (__builtin_mul_overflow(stride, d->sizes[at], &reach)) reach = -1;
    product = kiln_dim_product(dims, strides[at], sizes[at]);
  }
  for (int i = d->rank - 1; i >= 0; i--) {
    if (done[i]) continue; /* one element: what PyTorch gives it, or anything */
    const bool last = i + 1 == d->rank;
    const int64_t within = last ? 1 : d->strides[i + 1] * d->sizes[i + 1];
    strides[i] = d->strides[i];
    if (d->strides[i] == within)
      strides[i] = last ? 1 : kiln_dim_product(dims, strides[i + 1], sizes[i + 1]);
  }
}

const kiln_type *kiln__symbols_type(kiln_symbols *s, const kiln_ir_value *v,
                                    const kiln_type *type) {
  if (!s || !kiln_type_is_complete_tensor(type)) return type;
  kiln_tensor_detail d = *type->detail;
  kiln_dim sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  for (int i = 0; i < d.rank; i++) sizes[i] = dim_of(s, v, d.rank, i, d.sizes[i]);
  find_strides(s, v, type->detail, sizes, strides);
  for (int i = 0; i < d.rank; i++) {
    if (!kiln_dim_is_known(strides[i])) return type;
  }
  d.sizes = sizes;
  d.strides = strides;
  d.dims = kiln_type_table_dims(s->types);
  return kiln_type_tensor(s->types, &d);
}

static void fix_sizes(kiln_symbols *s, const kiln_type *type) {
  if (!type || type->kind != KILN_TYPE_TENSOR || !type->detail) return;
  for (int d = 0; d < type->detail->rank; d++)
    kiln_map_set_id(&s->fixed, (uint64_t)type->detail->sizes[d], s);
}
static void fix_constants(kiln_symbols *s, const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) fix_constants(s, n->blocks[b]);
    if (kiln_node_is(n, KILN_OP_prim_Constant)) fix_sizes(s, n->outputs[0]->type);
  }
}

void kiln__symbols_begin(kiln_symbols *s, kiln_pass *pass, const kiln_map *claims) {
  s->fixed = kiln_map_in(pass->scratch);
  s->level_count = s->history->level_count;
  if (s->level_count > KILN_SYMBOL_HISTORY) s->level_count = KILN_SYMBOL_HISTORY;
  if (claims->count > 0) fix_constants(s, pass->graph->top);
  for (int i = 0; i < claims->count; i++) {
    const kiln_ir_value *v = (const kiln_ir_value *)(uintptr_t)claims->entries[i].id;
    if (kiln_node_is(v->node, KILN_OP_prim_GetAttr)) fix_sizes(s, claims->entries[i].value);
  }
  if (s->level_count == 0) return;
  /* Those of the inputs come first: what has no history may be one of them. */
  for (int i = 0; i < claims->count; i++) {
    const kiln_ir_value *v = (const kiln_ir_value *)(uintptr_t)claims->entries[i].id;
    const kiln_type *type = claims->entries[i].value;
    const int rank = type && kiln_type_is_complete_tensor(type) ? type->detail->rank : 0;
    kiln_dim history[KILN_SYMBOL_HISTORY];
    for (int d = 0; d < rank && history_of(s, v, rank, d, history) > 0; d++)
      (void)dim_of(s, v, rank, d, type->detail->sizes[d]);
  }
}

/* -- Agreement -- */

/* What a dimension is now. */
static bool find_worth(const kiln_symbols *s, kiln_arena *scratch, kiln_dim d, int64_t *out) {
  int64_t symbols[KILN_GUARD_SYMBOLS];
  *out = d;
  if (kiln_dim_is_number(d)) return true;
  for (int i = 0; i < s->count; i++) symbols[i] = s->all[i].now;
  const kiln_dim_program *p =
      kiln_dim_program_create(scratch, kiln_type_table_dims(s->types), &d, 1);
  int64_t *room = KILN_NEW_ARRAY(scratch, int64_t, kiln_dim_program_room(p) + 1);
  return p->symbol_count <= s->count && kiln_dim_program_run(p, symbols, room, out);
}
static bool is_worth(const kiln_symbols *s, kiln_arena *scratch, kiln_dim d, int64_t value) {
  int64_t found;
  return find_worth(s, scratch, d, &found) && found == value;
}

bool kiln__symbols_hold(const kiln_symbols *s, kiln_arena *scratch, kiln_dim_order order) {
  int64_t less, more;
  return find_worth(s, scratch, order.less, &less) && find_worth(s, scratch, order.more, &more) &&
         less <= more;
}

bool kiln__symbols_agree(const kiln_symbols *s, kiln_arena *scratch, const kiln_type *type,
                         const kiln_type *now) {
  const kiln_tensor_detail *a = type->detail, *b = now->detail;
  if (!kiln_type_has_dims(type) || !kiln_type_is_complete_tensor(now)) return false;
  if (a->dtype != b->dtype || a->rank != b->rank || a->requires_grad != b->requires_grad)
    return false;
  for (int i = 0; i < a->rank; i++) {
    if (!is_worth(s, scratch, a->sizes[i], b->sizes[i])) return false;
    if (b->sizes[i] != 1 && !is_worth(s, scratch, a->strides[i], b->strides[i])) return false;
  }
  return true;
}

/* -- Relations -- */

static int number_of(kiln_dim d) { return kiln_dim_is_symbol(d) ? kiln_dim_symbol_number(d) : -1; }

uint64_t kiln__symbols_bound(const kiln_guard_checks *checks) {
  uint64_t bound = 0;
  for (int i = 0; i < checks->types.count; i++) {
    const kiln_tensor_detail *d = checks->types.data[i]->detail;
    for (int k = 0; k < d->rank; k++)
      if (number_of(d->sizes[k]) >= 0) bound |= UINT64_C(1) << number_of(d->sizes[k]);
  }
  return bound;
}

/* Whether it is a sum of these symbols. */
static bool is_sum_of(const kiln_symbols *s, kiln_dim d, uint64_t symbols) {
  const kiln_sum sum = kiln_sum_of(kiln_type_table_dims(s->types), d);
  for (int i = 0; i < sum.count; i++) {
    const int number = number_of(sum.terms[i].atom);
    if (number < 0 || !(symbols >> number & 1)) return false;
  }
  return sum.known;
}

/* What a symbol of a new check may as well be: an expression without it, or an earlier symbol. */
static kiln_dim find_other(const kiln_symbols *s, kiln_arena *scratch, int symbol, uint64_t bound,
                           const kiln_type_vec *known) {
  const int64_t now = s->all[symbol].now;
  const uint64_t others = bound & ~(UINT64_C(1) << symbol);
  for (int i = 0; i < known->count; i++) {
    const kiln_tensor_detail *d = known->data[i]->detail;
    for (int k = 0; d && k < d->rank; k++) {
      const kiln_dim size = d->sizes[k];
      if (kiln_dim_is_expression(size) && is_sum_of(s, size, others) &&
          is_worth(s, scratch, size, now))
        return size;
    }
  }
  for (int i = 0; i < symbol; i++)
    if ((bound >> i & 1) && !s->all[i].is_stride && s->all[i].now == now) return symbol_of(s, i);
  return 0;
}

bool kiln__symbols_relate(kiln_symbols *s, kiln_arena *scratch, const kiln_map *claims,
                          const kiln_type_vec *known, kiln_guard_checks *checks, int first) {
  kiln_guard_checks before = *checks;
  before.types.count = first;
  const uint64_t settled = kiln__symbols_bound(&before), bound = kiln__symbols_bound(checks);
  uint64_t kept = bound;
  memset(s->same_as, 0, sizeof s->same_as);
  for (int i = 0; i < s->count; i++) { /* only what the new checks alone bind */
    const bool is_new = (bound & ~settled) >> i & 1;
    if (is_new) s->same_as[i] = find_other(s, scratch, i, bound, known);
    if (s->same_as[i]) kept &= ~(UINT64_C(1) << i);
  }
  bool any = kept != bound;
  for (int i = 0; i < s->count; i++) any &= !s->same_as[i] || is_sum_of(s, s->same_as[i], kept);
  for (int i = first; any && i < checks->types.count; i++) {
    kiln_ir_value *v = checks->values.data[i];
    const kiln_type *claim = kiln_map_find_ptr(claims, v);
    if (claim) v->type = checks->types.data[i] = kiln__symbols_type(s, v, claim);
  }
  memset(s->same_as, 0, sizeof s->same_as);
  return any;
}

/* -- Groups -- */

typedef struct retyping {
  const kiln_symbols *symbols;
  kiln_arena *scratch;
  KILN_VEC(kiln_ir_value *) values;
  KILN_VEC(const kiln_type *) types; /* before */
} retyping;

static void set_type(retyping *r, kiln_ir_value *v, const kiln_type *type) {
  kiln_vec_push(r->scratch, &r->values, v);
  kiln_vec_push(r->scratch, &r->types, v->type);
  v->type = type;
}

/* The types of a node's results follow from those of its operands, and are what they were. */
static bool retype_node(retyping *r, kiln_node *n) {
  const int first = r->types.count;
  if (kiln_node_is(n, KILN_OP_prim_Constant)) return true;
  for (int i = 0; i < n->output_count; i++) {
    kiln_ir_value *v = n->outputs[i];
    if (kiln_type_is_tensor(v->type)) set_type(r, v, kiln_type_unshaped(n->graph->types, v->type));
  }
  (void)kiln_shape_infer(n->graph, n);
  for (int i = first; i < r->types.count; i++) {
    if (!kiln__symbols_agree(r->symbols, r->scratch, r->values.data[i]->type, r->types.data[i]))
      return false;
  }
  return true;
}

bool kiln__symbols_retype(const kiln_symbols *s, const kiln_pass *pass, kiln_graph *body,
                          const kiln_type *const *inputs, kiln_type_vec *found) {
  retyping r = {.symbols = s, .scratch = pass->scratch};
  kiln_dims *dims = kiln_type_table_dims(s->types);
  bool good = true;
  for (int i = 0; i < kiln_graph_input_count(body); i++) {
    if (inputs[i]) set_type(&r, kiln_graph_input(body, i), inputs[i]);
  }
  kiln_numbers numbers; /* sizes that arguments are made of */
  kiln_numbers_begin(&numbers, body, pass->scratch);
  for (kiln_node *n = body->top->first; n && good; n = n->next) {
    kiln_dims_begin_question(dims);
    good = retype_node(&r, n);
    kiln_numbers_learn(&numbers, n);
  }
  if (good) kiln_dims_begin_question(dims);
  good = good && pass->lowers(body);
  kiln_numbers_end(&numbers);
  for (int i = r.values.count - 1; !good && i >= 0; i--) {
    kiln_vec_push(r.scratch, found, r.values.data[i]->type);
    r.values.data[i]->type = r.types.data[i];
  }
  return good;
}
