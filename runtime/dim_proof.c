/* dim_proof.c: whether a sum is 0 or more whatever the symbols are.
 *
 * A sum of at most MAX_MONOMIALS monomials, each atom x of them written as its least value and the
 * rest, is natural if all coefficients are. A quotient may be replaced by its bounds before that:
 * (S - n + 1)/n <= S//n <= S/n, the whole sum multiplied by n: it is natural if n - 1 more than
 * that is, being whole and above -1; beside Q = S//m that of S//(m n),
 * which is Q//n, by those of Q. A sum A*x + B is natural if A and A*least + B are: so bounds of
 * quotients are not needed of what both of (s0 + 1)//2*s1 - s0//2*s1 have. What has no room is not
 * proved. What is taken for granted of order
 * (s0 <= 64) is a natural sum as well (64 - s0), and taken from others. */
#include <string.h>

#include "base/checked.h"
#include "runtime/dim_node.h"

enum { MAX_MONOMIALS = 64, MAX_QUOTIENTS = 8 };

typedef struct monomial {
  int64_t coefficient;
  int count;
  kiln_dim factors[KILN_SUM_FACTORS]; /* ascending */
} monomial;

typedef struct polynomial {
  bool known;
  int count;
  monomial terms[MAX_MONOMIALS]; /* of different factors; the constant has none */
} polynomial;

static void add(polynomial *p, const monomial *m) {
  const size_t bytes = sizeof *m->factors * (size_t)m->count;
  if (m->coefficient == 0) return;
  for (int i = 0; i < p->count; i++) {
    monomial *t = &p->terms[i];
    if (t->count != m->count || memcmp(t->factors, m->factors, bytes) != 0) continue;
    p->known &= kiln_checked_add_i64(t->coefficient, m->coefficient, &t->coefficient);
    if (t->coefficient == 0) *t = p->terms[--p->count];
    return;
  }
  if (p->count == MAX_MONOMIALS) {
    p->known = false;
  } else {
    p->terms[p->count++] = *m;
  }
}

/* Adds m times coefficient times the atom's factors. */
static void add_product(const kiln_dims *dims, polynomial *p, monomial m, kiln_term term) {
  kiln_dim more[KILN_SUM_FACTORS];
  const int count = kiln__dim_factors(dims, term.atom, more);
  if (m.count + count > KILN_SUM_FACTORS ||
      !kiln_checked_mul_i64(m.coefficient, term.coefficient, &m.coefficient)) {
    p->known = false;
    return;
  }
  for (int i = 0; i < count; i++) {
    int at = m.count++;
    for (; at > 0 && m.factors[at - 1] > more[i]; at--) m.factors[at] = m.factors[at - 1];
    m.factors[at] = more[i];
  }
  add(p, &m);
}

/* Adds m times the sum. */
static void add_sum(const kiln_dims *dims, polynomial *p, monomial m, const kiln_sum *s) {
  for (int i = 0; i < s->count; i++) add_product(dims, p, m, s->terms[i]);
  p->known &= kiln_checked_mul_i64(m.coefficient, s->constant, &m.coefficient);
  add(p, &m);
}

/* -- Ranges -- */

static int64_t floor_of(int64_t a, int64_t n) { return a / n - (a % n < 0); }

static void range_of(const kiln_dims *dims, kiln_dim atom, int64_t *least, int64_t *most);

/* The least of a sum, what is assumed of its atoms being so; INT64_MIN: there is none. */
static int64_t least_of(const kiln_dims *dims, const kiln_sum *s) {
  int64_t sum = s->constant;
  for (int i = 0; i < s->count; i++) {
    const int64_t c = s->terms[i].coefficient;
    int64_t least, most, part;
    range_of(dims, s->terms[i].atom, &least, &most);
    const int64_t bound = c > 0 ? least : most;
    if (bound == INT64_MIN || bound == INT64_MAX || !kiln_checked_mul_i64(c, bound, &part) ||
        !kiln_checked_add_i64(sum, part, &sum))
      return INT64_MIN;
  }
  return s->known ? sum : INT64_MIN;
}
/* What an order says that the atom is at least; INT64_MIN: nothing. Of 3 <= s0 - 2 it is 5. */
static int64_t least_by(const kiln_dims *dims, kiln_dim_order order, kiln_dim atom) {
  if (!kiln_dim_is_number(order.less)) return INT64_MIN;
  if (order.more == atom) return order.less;
  if (!kiln_dim_is_expression(order.more)) return INT64_MIN;
  const kiln_sum room = kiln_sum_minus(kiln_sum_of(dims, order.more), kiln_sum_number(order.less));
  const bool says = room.known && room.count == 1 && room.terms[0].atom == atom &&
                    room.terms[0].coefficient == 1 && room.constant > INT64_MIN;
  return says ? -room.constant : INT64_MIN;
}
/* Of an atom: of s0//2 it is 2 where 5 <= s0 is taken for granted. */
static void range_of(const kiln_dims *dims, kiln_dim atom, int64_t *least, int64_t *most) {
  kiln__dim_range_of_atom(dims, atom, least, most);
  if (dims->assumed.count == 0) return;
  for (int i = 0; i < dims->assumed.count; i++) {
    const int64_t said = least_by(dims, dims->assumed.data[i], atom);
    if (said > *least) *least = said;
  }
  const kiln__dim_node *n = kiln_dim_is_expression(atom) ? kiln__dim_node_of(dims, atom) : NULL;
  if (!n || n->by < 2) return;
  const int64_t sum = least_of(dims, &n->sum);
  if (sum != INT64_MIN && floor_of(sum, n->by) > *least) *least = floor_of(sum, n->by);
}

static void drop_factor(monomial *m, int at) {
  m->count--;
  memmove(m->factors + at, m->factors + at + 1, sizeof *m->factors * (size_t)(m->count - at));
}

/* -- Quotients -- */

/* A quotient in the monomial whose other factors are natural, of several the one by most; -1: none.
 */
static int find_quotient(const kiln_dims *dims, const monomial *m) {
  int found = -1, negative = -1;
  for (int i = 0; i < m->count; i++) {
    int64_t least, most;
    range_of(dims, m->factors[i], &least, &most);
    if (least < 0 && negative >= 0) return -1;
    if (least < 0) negative = i;
    if (!kiln_dim_is_expression(m->factors[i])) continue;
    const int64_t by = kiln__dim_node_of(dims, m->factors[i])->by;
    if (found < 0 || by > kiln__dim_node_of(dims, m->factors[found])->by) found = i;
  }
  if (negative < 0) return found;
  return kiln_dim_is_expression(m->factors[negative]) ? negative : -1;
}

static bool is_natural_product(const kiln_dims *dims, const monomial *m) {
  bool all = true;
  for (int i = 0; i < m->count; i++) {
    int64_t least, most;
    range_of(dims, m->factors[i], &least, &most);
    all &= least >= 0;
  }
  return all;
}
/* Whether they are quotients by one number of what differs by a number. */
static bool are_alike(const kiln_dims *dims, kiln_dim a, kiln_dim b) {
  if (a == b || !kiln_dim_is_expression(a) || !kiln_dim_is_expression(b)) return false;
  const kiln__dim_node *x = kiln__dim_node_of(dims, a), *y = kiln__dim_node_of(dims, b);
  if (x->by < 2 || x->by != y->by) return false;
  const kiln_sum apart = kiln_sum_minus(x->sum, y->sum);
  return apart.known && apart.count == 0;
}
/* Whether both have the same factors, but for that one of each. */
static bool have_others(monomial a, int own, monomial b, int other) {
  drop_factor(&a, own);
  drop_factor(&b, other);
  return a.count == b.count &&
         memcmp(a.factors, b.factors, sizeof *a.factors * (size_t)a.count) == 0;
}
/* Which factor of a term is such a quotient where another term has one like it, the other factors
 * of both being the same: of s0//2*s1 - (s0 + 1)//2*s1. -1: there is none. */
static int find_alike(const kiln_dims *dims, const polynomial *p, int at) {
  const monomial *m = &p->terms[at];
  for (int i = 0; i < p->count; i++) {
    const monomial *t = &p->terms[i];
    for (int own = 0; i != at && own < m->count; own++) {
      for (int other = 0; other < t->count; other++) {
        if (are_alike(dims, m->factors[own], t->factors[other]) && have_others(*m, own, *t, other))
          return own;
      }
    }
  }
  return -1;
}

/* What a quotient is by, and what of it: the sum S and m n of S//(m n); Q + b and n where p has
 * Q = (S - m b)//m, of several the one by most. Where p has Q = (S - b)//(m n) the quotient is Q
 * and as many whole ones as b has, or, of a bound from above, may have. */
static kiln_sum divided(const kiln_dims *dims, const polynomial *p, const kiln__dim_node *n,
                        bool from_above, int64_t *out_by) {
  kiln_sum best = n->sum;
  *out_by = n->by;
  for (int i = 0; i < p->count; i++) {
    for (int k = 0; k < p->terms[i].count; k++) {
      if (!kiln_dim_is_expression(p->terms[i].factors[k])) continue;
      const kiln__dim_node *q = kiln__dim_node_of(dims, p->terms[i].factors[k]);
      if (q == n || q->by < 2 || n->by % q->by != 0 || n->by / q->by >= *out_by) continue;
      const kiln_sum apart = kiln_sum_minus(n->sum, q->sum);
      if (!apart.known || apart.count > 0) continue;
      if (q->by != n->by && apart.constant % q->by != 0) continue;
      *out_by = n->by / q->by;
      const int64_t whole = floor_of(apart.constant, q->by);
      const bool is_more = from_above && apart.constant % q->by != 0;
      best = (kiln_sum){
          .known = true, .count = 1, .constant = whole + is_more, .terms = {{1, q->handle}}};
    }
  }
  return best;
}

/* Replaces quotients of terms below 0, or of all, by what makes the sum less; *scale is multiplied
 * as the sum is. */
static void replace_quotients(const kiln_dims *dims, polynomial *p, bool all, int64_t *scale) {
  for (int times = 0; times < MAX_QUOTIENTS && p->known; times++) {
    int at = 0, factor = -1;
    for (; at < p->count; at++) {
      const monomial *m = &p->terms[at];
      const int wanted = all || m->coefficient < 0 ? find_quotient(dims, m) : -1;
      const int alike = wanted >= 0 && is_natural_product(dims, m) ? find_alike(dims, p, at) : -1;
      factor = alike >= 0 ? alike : wanted;
      if (factor >= 0) break;
    }
    if (factor < 0) return;
    monomial m = p->terms[at];
    const kiln__dim_node *n = kiln__dim_node_of(dims, m.factors[factor]);
    int64_t by;
    kiln_sum bound = divided(dims, p, n, m.coefficient < 0, &by);
    p->terms[at] = p->terms[--p->count];
    p->known &= kiln_checked_mul_i64(*scale, by, scale);
    for (int i = 0; i < p->count; i++) {
      int64_t *c = &p->terms[i].coefficient;
      p->known &= kiln_checked_mul_i64(*c, by, c);
    }
    drop_factor(&m, factor);
    if (m.coefficient > 0) bound = kiln_sum_plus(bound, kiln_sum_number(1 - by));
    p->known &= bound.known;
    add_sum(dims, p, m, &bound);
  }
}

/* -- Coefficients -- */

/* Adds the monomial, in which factors from `first` on are still to be written as their least value
 * and the rest. */
static void add_rests(const kiln_dims *dims, polynomial *p, monomial m, int first) {
  for (int i = first; i < m.count; i++) {
    int64_t least, most;
    range_of(dims, m.factors[i], &least, &most);
    monomial constant = m;
    p->known &=
        least != INT64_MIN && kiln_checked_mul_i64(m.coefficient, least, &constant.coefficient);
    drop_factor(&constant, i);
    if (p->known && constant.coefficient != 0) add_rests(dims, p, constant, i);
  }
  add(p, &m);
}

static bool has_natural_coefficients(const kiln_dims *dims, const polynomial *p) {
  polynomial rests = {.known = p->known};
  for (int i = 0; i < p->count && rests.known; i++) add_rests(dims, &rests, p->terms[i], 0);
  for (int i = 0; i < rests.count; i++) rests.known &= rests.terms[i].coefficient > 0;
  return rests.known;
}

/* Whether p, which is `scale` times a whole number or less, shows that this one is natural. */
static bool is_above(const kiln_dims *dims, polynomial p, int64_t scale) {
  const monomial fraction = {.coefficient = scale - 1};
  add(&p, &fraction);
  return has_natural_coefficients(dims, &p);
}
static bool has_natural_bounds(const kiln_dims *dims, polynomial p) {
  int64_t scale = 1;
  if (has_natural_coefficients(dims, &p)) return true;
  replace_quotients(dims, &p, false, &scale);
  if (is_above(dims, p, scale)) return true;
  replace_quotients(dims, &p, true, &scale);
  return is_above(dims, p, scale);
}

static int find_factor(const monomial *m, kiln_dim x) {
  for (int i = 0; i < m->count; i++)
    if (m->factors[i] == x) return i;
  return -1;
}

static bool is_natural_in_parts(const kiln_dims *dims, const polynomial *p, int depth);

/* Whether p is A*x + B, the terms of A*x having at least `count` factors, of which A is natural,
 * and so is A*least + B, x being `least` or more. */
static bool is_natural_by(const kiln_dims *dims, const polynomial *p, kiln_dim x, int count,
                          int depth) {
  polynomial a = {.known = p->known}, b = {.known = p->known};
  int64_t least, most;
  range_of(dims, x, &least, &most);
  if (least == INT64_MIN) return false;
  for (int i = 0; i < p->count; i++) {
    monomial m = p->terms[i];
    const int at = m.count >= count ? find_factor(&m, x) : -1;
    if (at >= 0) {
      drop_factor(&m, at);
      add(&a, &m);
      b.known &= kiln_checked_mul_i64(m.coefficient, least, &m.coefficient);
    }
    add(&b, &m);
  }
  return is_natural_in_parts(dims, &a, depth - 1) && is_natural_in_parts(dims, &b, depth - 1);
}
static bool is_natural_in_parts(const kiln_dims *dims, const polynomial *p, int depth) {
  if (has_natural_bounds(dims, *p)) return true;
  for (int i = 0; depth > 0 && i < p->count; i++) {
    const monomial *m = &p->terms[i];
    for (int k = 0; m->count > 1 && k < m->count; k++) {
      bool is_first = true; /* of the terms that have this factor */
      for (int j = 0; j < i; j++)
        is_first &= p->terms[j].count < 2 || find_factor(&p->terms[j], m->factors[k]) < 0;
      if (is_first && (is_natural_by(dims, p, m->factors[k], 2, depth) ||
                       is_natural_by(dims, p, m->factors[k], 1, depth)))
        return true;
    }
  }
  return false;
}

/* By ranges and coefficients alone. */
static bool is_natural_alone(const kiln_dims *dims, kiln_sum a) {
  enum { DEPTH = 1 };
  const int64_t least = least_of(dims, &a);
  if (!a.known || least >= 0 || a.count == 0) return least >= 0;
  polynomial p = {.known = true};
  add_sum(dims, &p, (monomial){.coefficient = 1}, &a);
  return is_natural_in_parts(dims, &p, DEPTH);
}

/* How often the fact has to be taken from the sum so that one of its terms is gone; 0: never. */
static int64_t times_in(const kiln_sum *a, const kiln_sum *fact) {
  for (int i = 0; i < fact->count; i++) {
    for (int k = 0; k < a->count; k++) {
      const int64_t c = a->terms[k].coefficient, by = fact->terms[i].coefficient;
      if (a->terms[k].atom == fact->terms[i].atom && c % by == 0 && c / by > 0) return c / by;
    }
  }
  return 0;
}

/* A sum of naturals is one: what is left of it without the facts from `first` on, a few of them. */
static bool is_natural_with(const kiln_dims *dims, kiln_sum a, int first, int depth) {
  if (is_natural_alone(dims, a)) return true;
  for (int i = first; a.known && depth > 0 && i < dims->assumed.count; i++) {
    const kiln_dim_order order = dims->assumed.data[i];
    const kiln_sum fact =
        kiln_sum_minus(kiln_sum_of(dims, order.more), kiln_sum_of(dims, order.less));
    const int64_t times = fact.known ? times_in(&a, &fact) : 0;
    if (times == 0) continue;
    const kiln_sum rest = kiln_sum_minus(a, kiln_sum_times(fact, times));
    if (is_natural_with(dims, rest, i + 1, depth - 1)) return true;
  }
  return false;
}

bool kiln_sum_is_natural(const kiln_dims *dims, kiln_sum a) {
  enum { FACTS = 3 };
  return is_natural_with(dims, a, 0, FACTS);
}
