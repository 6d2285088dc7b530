/* dim.h: dimensions: sizes and strides that are numbers or expressions of named symbols.
 *
 * A kiln_dim is a number (0 and up), KILN_DIM_UNKNOWN, or the handle of an expression: a constant
 * and a sum of coefficient x atom, where an atom is a symbol (s0, s1, ...), such a sum
 * floor-divided by a number, or a product of those. Expressions are interned in a kiln_dims, so two
 * dimensions of one table are equal at run time, whatever the symbols are, if their handles are. A
 * bare symbol has the same handle in every table.
 *
 * A symbol stands for a size that differs from call to call: s0 for one of at least 2, n0 for one
 * that may be 1 too, both at most 2^40. What is 1 broadcasts, so less is known of n0; 0 empties
 * loops, and guards take it for a number. Symbols of both kinds are numbered together: where there
 * is an n0, no s0 is.
 *
 * Arithmetic is done on kiln_sum, which may pass through what is no dimension (a window of
 * s0 + 2 - 3), and kiln_sum_dim makes a dimension of it in the end:
 *   kiln_sum s = kiln_sum_plus(kiln_sum_of(dims, in), kiln_sum_number(2 * padding - size));
 *   kiln_dim out = kiln_sum_dim(dims, kiln_sum_plus(kiln_sum_divided(dims, s, stride), one));
 * What overflows, has more than KILN_SUM_TERMS terms (64 in all its divisions) or multiplies more
 * than KILN_SUM_FACTORS atoms is not known. Products of symbols have no greatest value: what
 * exists has a size that int64 holds, and arithmetic modulo 2^64 gives it whatever lies between.
 *
 * The text is s0, 2*s0 + n1 + 3, 4*s0*s1, (s0 + 1)//2; the one of PyTorch's for a symbol, SS(-2)
 * for s0, is read too. One thread at a time; everything lives in the table's arena. */
#pragma once

#include "base/base.h"

typedef int64_t kiln_dim;
enum {
  KILN_DIM_UNKNOWN = -1,
  KILN_DIM_NUMBERS = 1 << 19,              /* s0 is -2, s1 is -3, ..., and n0 so many below s0; */
  KILN_DIM_SYMBOLS = 2 * KILN_DIM_NUMBERS, /* handles below both are the table's */
  KILN_SUM_TERMS = 12,
  KILN_SUM_FACTORS = 6,
};
#define KILN_DIM_MOST ((int64_t)1 << 40) /* the greatest that a symbol stands for */
static inline bool kiln_dim_is_number(kiln_dim d) { return d >= 0; }
static inline int64_t kiln_dim_or(kiln_dim d, int64_t otherwise) {
  return kiln_dim_is_number(d) ? d : otherwise;
}
static inline bool kiln_dim_is_known(kiln_dim d) { return d != KILN_DIM_UNKNOWN; }
static inline kiln_dim kiln_dim_symbol(int number) { return -2 - (kiln_dim)number; }
/* One that may be 1. */
static inline kiln_dim kiln_dim_symbol_from_one(int number) {
  return kiln_dim_symbol(number) - KILN_DIM_NUMBERS;
}
/* Whether a table is needed to tell what it is. */
static inline bool kiln_dim_is_expression(kiln_dim d) { return d < -1 - KILN_DIM_SYMBOLS; }
static inline bool kiln_dim_is_symbol(kiln_dim d) { return d < -1 && !kiln_dim_is_expression(d); }
/* Of a symbol: its number, and the least that it stands for. */
static inline int kiln_dim_symbol_number(kiln_dim d) { return (int)((-2 - d) % KILN_DIM_NUMBERS); }
static inline int kiln_dim_symbol_least(kiln_dim d) { return -2 - d < KILN_DIM_NUMBERS ? 2 : 1; }

typedef struct kiln_dims kiln_dims;
/* An arena rule function, as all makers here. */
kiln_dims *kiln_dims_create(kiln_arena *arena) __attribute__((returns_nonnull));

/* -- Sums -- */

typedef struct kiln_term {
  int64_t coefficient; /* not 0 */
  kiln_dim atom;       /* a symbol, a floor-divided sum or a product */
} kiln_term;
typedef struct kiln_sum {
  bool known;
  int count;
  int64_t constant;
  kiln_term terms[KILN_SUM_TERMS]; /* of different atoms, in any order */
} kiln_sum;

static inline kiln_sum kiln_sum_number(int64_t n) {
  return (kiln_sum){.known = true, .constant = n};
}
/* `dims` may be NULL where `d` is no expression. */
kiln_sum kiln_sum_of(const kiln_dims *dims, kiln_dim d);
kiln_sum kiln_sum_plus(kiln_sum a, kiln_sum b);
kiln_sum kiln_sum_times(kiln_sum a, int64_t n);
static inline kiln_sum kiln_sum_minus(kiln_sum a, kiln_sum b) {
  return kiln_sum_plus(a, kiln_sum_times(b, -1));
}
kiln_sum kiln_sum_product(kiln_dims *dims, kiln_sum a, kiln_sum b);
/* Rounded down; n >= 1. */
kiln_sum kiln_sum_divided(kiln_dims *dims, kiln_sum a, int64_t n);
/* a / b where that is a sum: (s0*s1 + 2*s1) / s1 is s0 + 2. Else not known. */
kiln_sum kiln_sum_quotient(kiln_dims *dims, kiln_sum a, kiln_sum b);
/* What it is at least and at most; INT64_MIN and INT64_MAX where there is no bound. False where it
 * is not known. */
bool kiln_sum_range(const kiln_dims *dims, kiln_sum a, int64_t *out_least, int64_t *out_most);
/* Whether it is proved to be 0 or more whatever the symbols are: by its range, or since all
 * coefficients are once each atom is written as its least value and the rest. Of s0*s1 - s1 that is
 * (2 + r0)*(2 + r1) - (2 + r1) = r0*r1 + 2*r0 + r1 + 2. In s0
 * - 2*(s0//2) the quotient is at most half of s0: s0 - s0 is left. */
bool kiln_sum_is_natural(const kiln_dims *dims, kiln_sum a);
/* The dimension; KILN_DIM_UNKNOWN for what is not known, or is negative for certain. */
kiln_dim kiln_sum_dim(kiln_dims *dims, kiln_sum a);

/* -- Order -- */

/* less <= more. */
typedef struct kiln_dim_order {
  kiln_dim less, more;
} kiln_dim_order;
enum { KILN_DIMS_ASSUMED = 8 };

/* What a guard asks for: proofs in this table take it for granted until it is forgotten, all but
 * the first `count`. False where there are KILN_DIMS_ASSUMED already. */
bool kiln_dims_assume(kiln_dims *dims, kiln_dim_order order);
/* The first that follows from this one (3 <= s0 from 3 <= s0 - 2), in whose place it may be taken
 * for granted; -1: none does. */
int kiln_dims_weaker(const kiln_dims *dims, kiln_dim_order order);
void kiln_dims_assume_at(kiln_dims *dims, int index, kiln_dim_order order);
/* Forgets, all but the first `first`, what follows from the others; how many there are then. */
int kiln_dims_drop_implied(kiln_dims *dims, int first);
void kiln_dims_forget(kiln_dims *dims, int count);
int kiln_dims_assumed(const kiln_dims *dims);
kiln_dim_order kiln_dims_assumed_at(const kiln_dims *dims, int index);
/* What was asked of proofs in vain. */
enum { KILN_DIMS_WISHES = 64 };
typedef struct kiln_dim_wishes {
  int count, first; /* of the last question's */
  kiln_dim_order all[KILN_DIMS_WISHES];
} kiln_dim_wishes;
/* Who listens gets what is not proved; NULL: nobody does from then on. `needed`: of
 * kiln_dims_prove; `liked`: of kiln_dims_like, which others may need. */
void kiln_dims_listen(kiln_dims *dims, kiln_dim_wishes *needed, kiln_dim_wishes *liked);
/* A question begins: wishes from here on are its own. */
void kiln_dims_begin_question(kiln_dims *dims);
/* Whether less <= more is proved. */
bool kiln_dims_prove(kiln_dims *dims, kiln_sum less, kiln_sum more);
void kiln_dims_like(kiln_dims *dims, kiln_sum less, kiln_sum more);
/* The symbols below 64 that stand in it, a bit each. */
uint64_t kiln_dim_symbols(const kiln_dims *dims, kiln_dim d);

/* -- Dimensions -- */

/* Shorthands for one step. */
kiln_dim kiln_dim_plus(kiln_dims *dims, kiln_dim a, kiln_dim b);
kiln_dim kiln_dim_product(kiln_dims *dims, kiln_dim a, kiln_dim b);
/* The same expression in another table. */
kiln_dim kiln_dim_copy(kiln_dims *to, const kiln_dims *from, kiln_dim d);

/* -- Text -- */

void kiln_dim_print(kiln_text *text, const kiln_dims *dims, kiln_dim d);
/* From the start of *text, which is moved behind it; "*" is KILN_DIM_UNKNOWN. False where no
 * dimension stands there. */
bool kiln_dim_parse(kiln_dims *dims, kiln_str *text, kiln_dim *out_dim);
/* s0 <= 64. The same rule. */
void kiln_dim_order_print(kiln_text *text, const kiln_dims *dims, kiln_dim_order order);
bool kiln_dim_order_parse(kiln_dims *dims, kiln_str *text, kiln_dim_order *out);
/* s0 <= 64, s0 + s1 <= 128. At most KILN_DIMS_ASSUMED of them; the whole text is read. */
void kiln_dim_orders_print(kiln_text *text, const kiln_dims *dims, const kiln_dim_order *orders,
                           int count);
bool kiln_dim_orders_parse(kiln_dims *dims, kiln_str text, kiln_dim_order *out, int *out_count);
