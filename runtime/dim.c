/* dim.c: dimensions. The canonical form of a floor-divided sum keeps outside what divides evenly:
 * (4*s0 + 2*s1 + 5)//2 is 2*s0 + s1 + 2, and (3*s0 + 5)//2 is s0 + (s0 + 1)//2 + 2. What is left
 * is divided by no factor of all its coefficients ((2*s0)//4 is s0//2), and once: s0//2//3 is
 * s0//6. */
#include "runtime/dim_node.h"

#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"

enum { MAX_NODES = 64, MAX_DEPTH = 16 }; /* written out; of parentheses that are read */

typedef kiln__dim_node node;

kiln_dims *kiln_dims_create(kiln_arena *arena) {
  kiln_dims *dims = KILN_NEW(arena, kiln_dims);
  dims->arena = arena;
  dims->index = kiln_map_in(arena);
  return dims;
}

static kiln_dim handle_of(int index) { return -2 - KILN_DIM_SYMBOLS - (kiln_dim)index; }

const node *kiln__dim_node_of(const kiln_dims *dims, kiln_dim d) {
  const kiln_dim index = -2 - KILN_DIM_SYMBOLS - d;
  KILN_ASSERT(dims && index >= 0 && index < dims->nodes.count);
  return dims->nodes.data[index];
}
static const node *node_of(const kiln_dims *dims, kiln_dim d) { return kiln__dim_node_of(dims, d); }

int kiln__dim_factors(const kiln_dims *dims, kiln_dim atom, kiln_dim *out_factors) {
  const node *n = kiln_dim_is_expression(atom) ? node_of(dims, atom) : NULL;
  if (!n || n->factor_count == 0) {
    out_factors[0] = atom;
    return 1;
  }
  memcpy(out_factors, n->factors, sizeof *out_factors * (size_t)n->factor_count);
  return n->factor_count;
}

/* -- Order -- */

static int compare_sums(const kiln_dims *dims, const kiln_sum *a, const kiln_sum *b);

/* Products of more factors first, then symbols by number, then divisions by what they divide. */
static int compare_atoms(const kiln_dims *dims, kiln_dim a, kiln_dim b) {
  if (a == b) return 0;
  const node *x = kiln_dim_is_expression(a) ? node_of(dims, a) : NULL;
  const node *y = kiln_dim_is_expression(b) ? node_of(dims, b) : NULL;
  const int p = x ? x->factor_count : 0, q = y ? y->factor_count : 0;
  if (p != q) return p > q ? -1 : 1;
  for (int i = 0; i < p; i++) {
    const int order = compare_atoms(dims, x->factors[i], y->factors[i]);
    if (order) return order;
  }
  if (!x && !y) {
    const int here = kiln_dim_symbol_number(a), there = kiln_dim_symbol_number(b);
    return here != there ? here - there : a > b ? -1 : 1;
  }
  if (!x || !y) return a > b ? -1 : 1;
  if (x->by != y->by) return x->by < y->by ? -1 : 1;
  return compare_sums(dims, &x->sum, &y->sum);
}

static int compare_sums(const kiln_dims *dims, const kiln_sum *a, const kiln_sum *b) {
  if (a->count != b->count) return a->count < b->count ? -1 : 1;
  if (a->constant != b->constant) return a->constant < b->constant ? -1 : 1;
  for (int i = 0; i < a->count; i++) {
    const kiln_term *x = &a->terms[i], *y = &b->terms[i];
    const int order = compare_atoms(dims, x->atom, y->atom);
    if (order) return order;
    if (x->coefficient != y->coefficient) return x->coefficient < y->coefficient ? -1 : 1;
  }
  return 0;
}

static void sort_terms(const kiln_dims *dims, kiln_sum *s) {
  for (int i = 1; i < s->count; i++) {
    const kiln_term term = s->terms[i];
    int at = i;
    for (; at > 0 && compare_atoms(dims, s->terms[at - 1].atom, term.atom) > 0; at--) {
      s->terms[at] = s->terms[at - 1];
    }
    s->terms[at] = term;
  }
}

/* -- Sums -- */

static const kiln_sum unknown = {.known = false};

kiln_sum kiln_sum_of(const kiln_dims *dims, kiln_dim d) {
  if (kiln_dim_is_number(d)) return kiln_sum_number(d);
  if (!kiln_dim_is_known(d)) return unknown;
  if (kiln_dim_is_expression(d)) {
    const node *n = node_of(dims, d);
    if (!n->by && !n->factor_count) return n->sum;
  }
  return (kiln_sum){.known = true, .count = 1, .terms = {{1, d}}};
}

/* Adds one term; the sum is not known where that has no room. */
static void add_term(kiln_sum *s, kiln_term term) {
  for (int i = 0; i < s->count; i++) {
    kiln_term *t = &s->terms[i];
    if (t->atom != term.atom) continue;
    if (!kiln_checked_add_i64(t->coefficient, term.coefficient, &t->coefficient))
      *s = unknown;
    else if (t->coefficient == 0)
      *t = s->terms[--s->count];
    return;
  }
  if (s->count == KILN_SUM_TERMS) {
    *s = unknown;
    return;
  }
  s->terms[s->count++] = term;
}

kiln_sum kiln_sum_plus(kiln_sum a, kiln_sum b) {
  if (!a.known || !b.known || !kiln_checked_add_i64(a.constant, b.constant, &a.constant)) {
    return unknown;
  }
  for (int i = 0; i < b.count && a.known; i++) add_term(&a, b.terms[i]);
  return a;
}

kiln_sum kiln_sum_times(kiln_sum a, int64_t n) {
  if (n == 0) return a.known ? kiln_sum_number(0) : unknown;
  if (!a.known || !kiln_checked_mul_i64(a.constant, n, &a.constant)) return unknown;
  for (int i = 0; i < a.count; i++) {
    int64_t *c = &a.terms[i].coefficient;
    if (!kiln_checked_mul_i64(*c, n, c)) return unknown;
  }
  return a;
}

static int64_t floor_div(int64_t a, int64_t n) { return a / n - (a % n < 0); }

/* -- Ranges -- */

void kiln__dim_range_of_atom(const kiln_dims *dims, kiln_dim atom, int64_t *least, int64_t *most) {
  *most = KILN_DIM_MOST;
  if (!kiln_dim_is_expression(atom)) {
    *least = kiln_dim_symbol_least(atom);
    return;
  }
  *least = node_of(dims, atom)->least;
  *most = node_of(dims, atom)->most;
}

/* One side of a sum's range, without bound where a part of it has none. */
typedef struct bound {
  __int128 value;
  bool none;
} bound;

static void add_to_bound(bound *b, int64_t coefficient, int64_t factor) {
  const bool none = factor == INT64_MIN || factor == INT64_MAX;
  b->none |= none || __builtin_add_overflow(b->value, (__int128)coefficient * factor, &b->value);
}
static int64_t bound_least(bound b) {
  if (b.none || b.value < INT64_MIN) return INT64_MIN;
  return b.value > INT64_MAX ? INT64_MAX : (int64_t)b.value;
}
static int64_t bound_most(bound b) {
  if (b.none || b.value > INT64_MAX) return INT64_MAX;
  return b.value < INT64_MIN ? INT64_MIN : (int64_t)b.value;
}

bool kiln_sum_range(const kiln_dims *dims, kiln_sum a, int64_t *out_least, int64_t *out_most) {
  bound least = {.value = a.constant}, most = least;
  for (int i = 0; a.known && i < a.count; i++) {
    const int64_t c = a.terms[i].coefficient;
    int64_t low, high;
    kiln__dim_range_of_atom(dims, a.terms[i].atom, &low, &high);
    add_to_bound(&least, c, c > 0 ? low : high);
    add_to_bound(&most, c, c > 0 ? high : low);
  }
  *out_least = bound_least(least);
  *out_most = bound_most(most);
  return a.known;
}

/* Of the product of n's factors. */
static void range_of_product(const kiln_dims *dims, node *n) {
  bound least = {.value = 1}, most = least;
  for (int i = 0; i < n->factor_count; i++) {
    int64_t low, high;
    kiln__dim_range_of_atom(dims, n->factors[i], &low, &high);
    const bool natural = low >= 0;
    least.none |= !natural || __builtin_mul_overflow(least.value, low, &least.value);
    most.none |= !natural || high == INT64_MAX ||
                 __builtin_mul_overflow(most.value, (__int128)high, &most.value);
  }
  n->least = bound_least(least);
  n->most = bound_most(most);
}

/* -- Interning -- */

static uint64_t hash_node(const kiln_dims *dims, const node *n) {
  const kiln_sum *s = &n->sum;
  uint64_t h = kiln_hash_mix(dims->index.seed + (uint64_t)n->by, (uint64_t)s->constant);
  for (int i = 0; i < n->factor_count; i++) h = kiln_hash_mix(h, (uint64_t)n->factors[i]);
  for (int i = 0; i < s->count; i++) {
    h = kiln_hash_mix(h + (uint64_t)s->terms[i].coefficient, (uint64_t)s->terms[i].atom);
  }
  return h;
}

static bool same_node(const node *x, const node *y) {
  const kiln_sum *a = &x->sum, *b = &y->sum;
  if (x->by != y->by || x->factor_count != y->factor_count) return false;
  for (int i = 0; i < x->factor_count; i++) {
    if (x->factors[i] != y->factors[i]) return false;
  }
  if (a->count != b->count || a->constant != b->constant) return false;
  for (int i = 0; i < a->count; i++) {
    if (a->terms[i].atom != b->terms[i].atom ||
        a->terms[i].coefficient != b->terms[i].coefficient) {
      return false;
    }
  }
  return true;
}

static int nodes_of(const kiln_dims *dims, kiln_dim atom) {
  return kiln_dim_is_expression(atom) ? node_of(dims, atom)->nodes : 1;
}

/* The handle of a node like n, whose factors or terms are in order. */
static kiln_dim intern(kiln_dims *dims, node n) {
  const uint64_t hash = hash_node(dims, &n);
  node *first = kiln_map_find_id(&dims->index, hash);
  for (const node *m = first; m; m = m->same_hash) {
    if (same_node(m, &n)) return m->handle;
  }
  n.handle = handle_of(dims->nodes.count);
  n.nodes = 1;
  for (int i = 0; i < n.factor_count; i++) n.nodes += nodes_of(dims, n.factors[i]);
  for (int i = 0; i < n.sum.count; i++) n.nodes += nodes_of(dims, n.sum.terms[i].atom);
  if (n.nodes > MAX_NODES) return KILN_DIM_UNKNOWN;
  if (n.factor_count > 0) {
    range_of_product(dims, &n);
  } else {
    (void)kiln_sum_range(dims, n.sum, &n.least, &n.most);
    if (n.by && n.least != INT64_MIN) n.least = floor_div(n.least, n.by);
    if (n.by && n.most != INT64_MAX) n.most = floor_div(n.most, n.by);
  }
  n.same_hash = first;
  node *kept = KILN_NEW(dims->arena, node);
  *kept = n;
  kiln_vec_push(dims->arena, &dims->nodes, kept);
  kiln_map_set_id(&dims->index, hash, kept);
  return kept->handle;
}

/* The handle of the sum, divided `by` a number where that is not 0. */
static kiln_dim intern_sum(kiln_dims *dims, int64_t by, kiln_sum s) {
  sort_terms(dims, &s);
  return intern(dims, (node){.by = by, .sum = s});
}

/* The atom a*b. */
static kiln_dim product_of_atoms(kiln_dims *dims, kiln_dim a, kiln_dim b) {
  kiln_dim all[2 * KILN_SUM_FACTORS];
  int count = kiln__dim_factors(dims, a, all);
  count += kiln__dim_factors(dims, b, all + count);
  if (count > KILN_SUM_FACTORS) return KILN_DIM_UNKNOWN;
  for (int i = 1; i < count; i++) {
    const kiln_dim factor = all[i];
    int at = i;
    for (; at > 0 && compare_atoms(dims, all[at - 1], factor) > 0; at--) all[at] = all[at - 1];
    all[at] = factor;
  }
  node n = {.factor_count = count};
  memcpy(n.factors, all, sizeof *all * (size_t)count);
  return intern(dims, n);
}

kiln_sum kiln_sum_product(kiln_dims *dims, kiln_sum a, kiln_sum b) {
  if (!a.known || !b.known) return unknown;
  kiln_sum out = kiln_sum_times(a, b.constant);
  for (int i = 0; i < b.count && out.known; i++) {
    const kiln_term y = b.terms[i];
    kiln_sum row = kiln_sum_number(0);
    int64_t c;
    if (!kiln_checked_mul_i64(a.constant, y.coefficient, &c)) return unknown;
    if (c) add_term(&row, (kiln_term){c, y.atom});
    for (int k = 0; k < a.count && row.known; k++) {
      const kiln_dim atom = product_of_atoms(dims, a.terms[k].atom, y.atom);
      if (!kiln_dim_is_known(atom) ||
          !kiln_checked_mul_i64(a.terms[k].coefficient, y.coefficient, &c))
        return unknown;
      add_term(&row, (kiln_term){c, atom});
    }
    out = kiln_sum_plus(out, row);
  }
  return out;
}

/* A sum with coefficients between 0 and n, divided by n. */
static kiln_sum divide_rest(kiln_dims *dims, kiln_sum rest, int64_t n) {
  int64_t factor = n;
  for (int i = 0; i < rest.count; i++) {
    factor = kiln_gcd_i64(factor, rest.terms[i].coefficient);
  }
  for (int i = 0; i < rest.count; i++) rest.terms[i].coefficient /= factor;
  rest.constant = floor_div(rest.constant, factor);
  n /= factor;
  const kiln_dim only = rest.count == 1 && rest.terms[0].coefficient == 1 ? rest.terms[0].atom : 0;
  if (kiln_dim_is_expression(only) && node_of(dims, only)->by) {
    const node *inner = node_of(dims, only);
    const kiln_sum more = kiln_sum_times(kiln_sum_number(rest.constant), inner->by);
    int64_t both;
    if (!kiln_checked_mul_i64(n, inner->by, &both)) return unknown;
    return kiln_sum_divided(dims, kiln_sum_plus(inner->sum, more), both);
  }
  const kiln_dim atom = intern_sum(dims, n, rest);
  return kiln_dim_is_known(atom) ? (kiln_sum){.known = true, .count = 1, .terms = {{1, atom}}}
                                 : unknown;
}

/* Whether all coefficients are nearer to n than to 0: 7*s0//8 is s0 - (s0 + 7)//8, as what is
 * rounded up is written else. */
static bool is_rather_negative(const kiln_sum *rest, int64_t n) {
  bool all = true;
  for (int i = 0; i < rest->count; i++) all &= rest->terms[i].coefficient > n / 2;
  return all;
}

kiln_sum kiln_sum_divided(kiln_dims *dims, kiln_sum a, int64_t n) {
  KILN_ASSERT(n >= 1);
  if (!a.known || n == 1) return a;
  kiln_sum whole = kiln_sum_number(floor_div(a.constant, n));
  kiln_sum rest = kiln_sum_number(a.constant - whole.constant * n);
  for (int i = 0; i < a.count; i++) {
    const kiln_term *t = &a.terms[i];
    const int64_t times = floor_div(t->coefficient, n), left = t->coefficient - times * n;
    if (times) add_term(&whole, (kiln_term){times, t->atom});
    if (left) add_term(&rest, (kiln_term){left, t->atom});
  }
  if (rest.count == 0) return whole; /* its constant is below n */
  if (!is_rather_negative(&rest, n)) return kiln_sum_plus(whole, divide_rest(dims, rest, n));
  kiln_sum less = kiln_sum_number(n - 1 - rest.constant);
  for (int i = 0; i < rest.count; i++) {
    add_term(&whole, (kiln_term){1, rest.terms[i].atom});
    add_term(&less, (kiln_term){n - rest.terms[i].coefficient, rest.terms[i].atom});
  }
  return kiln_sum_minus(whole, kiln_sum_divided(dims, less, n));
}

/* The term of the greatest degree that stands first; the constant is the last one. */
static kiln_term leading_term(const kiln_dims *dims, const kiln_sum *s) {
  kiln_term first = {s->constant, 1};
  for (int i = 0; i < s->count; i++) {
    if (i == 0 || compare_atoms(dims, s->terms[i].atom, first.atom) < 0) first = s->terms[i];
  }
  return first;
}

/* a without the factors of b, as a dimension; unknown where it does not have them. Both are atoms
 * or 1. */
static kiln_dim drop_factors(kiln_dims *dims, kiln_dim a, kiln_dim b) {
  kiln_dim all[KILN_SUM_FACTORS], by[KILN_SUM_FACTORS], rest = 1;
  const int count = a == 1 ? 0 : kiln__dim_factors(dims, a, all);
  const int by_count = b == 1 ? 0 : kiln__dim_factors(dims, b, by);
  int found = 0;
  for (int i = 0; i < count; i++) { /* both are in order */
    if (found < by_count && all[i] == by[found])
      found++;
    else
      rest = kiln_dim_product(dims, rest, all[i]);
  }
  return found == by_count ? rest : KILN_DIM_UNKNOWN;
}

/* Division of polynomials, by their leading terms. */
kiln_sum kiln_sum_quotient(kiln_dims *dims, kiln_sum a, kiln_sum b) {
  kiln_sum quotient = kiln_sum_number(0);
  if (!b.known || (b.count == 0 && b.constant == 0)) return unknown;
  const kiln_term by = leading_term(dims, &b);
  for (int steps = 0; a.known && (a.count > 0 || a.constant != 0); steps++) {
    const kiln_term term = leading_term(dims, &a);
    const kiln_dim rest = drop_factors(dims, term.atom, by.atom);
    if (steps > KILN_SUM_TERMS || !kiln_dim_is_known(rest) || term.coefficient % by.coefficient)
      return unknown;
    const kiln_sum step =
        kiln_sum_times(kiln_sum_of(dims, rest), term.coefficient / by.coefficient);
    quotient = kiln_sum_plus(quotient, step);
    a = kiln_sum_minus(a, kiln_sum_product(dims, step, b));
  }
  return a.known ? quotient : unknown;
}

kiln_dim kiln_sum_dim(kiln_dims *dims, kiln_sum a) {
  int64_t least, most;
  if (!a.known) return KILN_DIM_UNKNOWN;
  if (a.count == 0) return a.constant >= 0 ? a.constant : KILN_DIM_UNKNOWN;
  (void)kiln_sum_range(dims, a, &least, &most);
  if (most < 0 || least == INT64_MAX) return KILN_DIM_UNKNOWN;
  if (a.count == 1 && a.constant == 0 && a.terms[0].coefficient == 1) return a.terms[0].atom;
  return intern_sum(dims, 0, a);
}

/* -- Dimensions -- */

kiln_dim kiln_dim_plus(kiln_dims *dims, kiln_dim a, kiln_dim b) {
  if (kiln_dim_is_number(a) && kiln_dim_is_number(b)) {
    return kiln_checked_add_i64(a, b, &a) ? a : KILN_DIM_UNKNOWN;
  }
  return kiln_sum_dim(dims, kiln_sum_plus(kiln_sum_of(dims, a), kiln_sum_of(dims, b)));
}

kiln_dim kiln_dim_product(kiln_dims *dims, kiln_dim a, kiln_dim b) {
  if (kiln_dim_is_number(a) && kiln_dim_is_number(b)) {
    return kiln_checked_mul_i64(a, b, &a) ? a : KILN_DIM_UNKNOWN;
  }
  return kiln_sum_dim(dims, kiln_sum_product(dims, kiln_sum_of(dims, a), kiln_sum_of(dims, b)));
}

static kiln_sum copy_sum(kiln_dims *to, const kiln_dims *from, const kiln_sum *s) {
  kiln_sum copy = kiln_sum_number(s->constant);
  for (int i = 0; i < s->count; i++) {
    kiln_sum term = kiln_sum_of(to, kiln_dim_copy(to, from, s->terms[i].atom));
    copy = kiln_sum_plus(copy, kiln_sum_times(term, s->terms[i].coefficient));
  }
  return copy;
}

kiln_dim kiln_dim_copy(kiln_dims *to, const kiln_dims *from, kiln_dim d) {
  if (to == from || !kiln_dim_is_expression(d)) return d;
  const node *n = node_of(from, d);
  if (n->factor_count > 0) {
    kiln_dim product = 1;
    for (int i = 0; i < n->factor_count; i++) {
      product = kiln_dim_product(to, product, kiln_dim_copy(to, from, n->factors[i]));
    }
    return product;
  }
  const kiln_sum sum = copy_sum(to, from, &n->sum);
  return kiln_sum_dim(to, n->by ? kiln_sum_divided(to, sum, n->by) : sum);
}

/* -- Text -- */

static void print_sum(kiln_text *text, const kiln_dims *dims, const kiln_sum *s);

static void print_atom(kiln_text *text, const kiln_dims *dims, kiln_dim atom) {
  if (!kiln_dim_is_expression(atom)) {
    const char kind = kiln_dim_symbol_least(atom) == 1 ? 'n' : 's';
    kiln_text_printf(text, "%c%d", kind, kiln_dim_symbol_number(atom));
    return;
  }
  const node *n = node_of(dims, atom);
  for (int i = 0; i < n->factor_count; i++) {
    const bool apart = kiln_dim_is_expression(n->factors[i]);
    kiln_text_puts(text, i > 0 ? apart ? "*(" : "*" : apart ? "(" : "");
    print_atom(text, dims, n->factors[i]);
    if (apart) kiln_text_putc(text, ')');
  }
  if (n->factor_count > 0) return;
  const bool bare = n->sum.count == 1 && n->sum.constant == 0 && n->sum.terms[0].coefficient == 1;
  if (!bare) kiln_text_putc(text, '(');
  print_sum(text, dims, &n->sum);
  if (!bare) kiln_text_putc(text, ')');
  kiln_text_printf(text, "//%lld", (long long)n->by);
}

static void print_sum(kiln_text *text, const kiln_dims *dims, const kiln_sum *s) {
  for (int i = 0; i < s->count; i++) {
    int64_t c = s->terms[i].coefficient;
    if (i > 0) kiln_text_puts(text, c < 0 ? " - " : " + ");
    if (i > 0 && c < 0) c = -c;
    const kiln_dim atom = s->terms[i].atom;
    const bool apart = c != 1 && kiln_dim_is_expression(atom) && node_of(dims, atom)->by;
    if (c == -1) {
      kiln_text_putc(text, '-');
    } else if (c != 1) {
      kiln_text_printf(text, "%lld*", (long long)c);
    }
    if (apart) kiln_text_putc(text, '(');
    print_atom(text, dims, atom);
    if (apart) kiln_text_putc(text, ')');
  }
  if (s->constant < 0)
    kiln_text_printf(text, " - %llu", 0 - (unsigned long long)s->constant);
  else if (s->constant > 0)
    kiln_text_printf(text, " + %lld", (long long)s->constant);
}

void kiln_dim_print(kiln_text *text, const kiln_dims *dims, kiln_dim d) {
  if (kiln_dim_is_number(d)) {
    kiln_text_printf(text, "%lld", (long long)d);
  } else if (!kiln_dim_is_known(d)) {
    kiln_text_putc(text, '*');
  } else if (kiln_dim_is_expression(d) && node_of(dims, d)->sum.count > 0 &&
             !node_of(dims, d)->by) {
    print_sum(text, dims, &node_of(dims, d)->sum);
  } else {
    print_atom(text, dims, d);
  }
}

/* sum := ["-"] term (("+" | "-") term)*;
 * term := number | [number "*"] atom ("*" atom)* ("//" number)*;
 * atom := ("s" | "n") number | "SS(-" number ")" | "(" sum ")" */
typedef struct parser {
  kiln_dims *dims;
  kiln_cursor c;
  int depth;
} parser;

static bool parse_number(parser *p, int64_t *out) {
  kiln_cursor_skip(&p->c);
  return kiln_str_parse_i64(kiln_cursor_take(&p->c, kiln_is_digit), out);
}

static bool parse_sum(parser *p, kiln_sum *out);

static bool parse_symbol(parser *p, int64_t first, kiln_dim (*make)(int), kiln_sum *out) {
  int64_t number;
  if (!parse_number(p, &number) || number < first || number - first >= KILN_DIM_NUMBERS)
    return false;
  *out = kiln_sum_of(NULL, make((int)(number - first)));
  return true;
}

static bool parse_atom(parser *p, kiln_sum *out) {
  if (kiln_cursor_accept(&p->c, "SS(-"))
    return parse_symbol(p, 2, kiln_dim_symbol, out) && kiln_cursor_accept(&p->c, ")");
  if (kiln_cursor_accept(&p->c, "s")) return parse_symbol(p, 0, kiln_dim_symbol, out);
  if (kiln_cursor_accept(&p->c, "n")) return parse_symbol(p, 0, kiln_dim_symbol_from_one, out);
  if (!kiln_cursor_accept(&p->c, "(")) return false;
  if (++p->depth > MAX_DEPTH || !parse_sum(p, out) || !kiln_cursor_accept(&p->c, ")")) return false;
  p->depth--;
  return true;
}

static bool parse_term(parser *p, kiln_sum *out) {
  int64_t number = 1;
  kiln_cursor_skip(&p->c);
  if (kiln_is_digit((char)kiln_cursor_peek(&p->c))) {
    if (!parse_number(p, &number)) return false;
    *out = kiln_sum_number(number);
    if (!kiln_cursor_accept(&p->c, "*")) return true;
  }
  if (!parse_atom(p, out)) return false;
  *out = kiln_sum_times(*out, number);
  while (kiln_cursor_accept(&p->c, "*")) {
    kiln_sum factor;
    if (!parse_atom(p, &factor)) return false;
    *out = kiln_sum_product(p->dims, *out, factor);
  }
  while (kiln_cursor_accept(&p->c, "//")) {
    if (!parse_number(p, &number) || number < 1) return false;
    *out = kiln_sum_divided(p->dims, *out, number);
  }
  return true;
}

static bool parse_sum(parser *p, kiln_sum *out) {
  bool minus = kiln_cursor_accept(&p->c, "-");
  *out = kiln_sum_number(0);
  for (;;) {
    kiln_sum term;
    if (!parse_term(p, &term)) return false;
    *out = kiln_sum_plus(*out, kiln_sum_times(term, minus ? -1 : 1));
    minus = kiln_cursor_accept(&p->c, "-");
    if (!minus && !kiln_cursor_accept(&p->c, "+")) return out->known;
  }
}

bool kiln_dim_parse(kiln_dims *dims, kiln_str *text, kiln_dim *out_dim) {
  parser p = {.dims = dims, .c = kiln_cursor_of(*text)};
  kiln_sum sum;
  *out_dim = KILN_DIM_UNKNOWN;
  if (!kiln_cursor_accept(&p.c, "*") && !kiln_cursor_accept(&p.c, "SS(-1)")) {
    if (!parse_sum(&p, &sum)) return false;
    *out_dim = kiln_sum_dim(dims, sum);
    if (!kiln_dim_is_known(*out_dim)) return false;
  }
  *text = kiln_cursor_rest(&p.c);
  return true;
}
