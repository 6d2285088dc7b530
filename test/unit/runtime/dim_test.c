/* dim_test.c: dimensions against the arithmetic that they stand for, on random symbols. */
#include "runtime/dim_program.h"

#include "test/unit/dim_value.h"
#include "test/unit/sweep.h"

enum { SYMBOLS = 3, EXPRESSIONS = 40, ROUNDS = 300 };

static uint64_t seed;
static int rnd(int n) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int)((seed >> 33) % (uint64_t)n);
}

/* Odd ones may be 1. */
static kiln_dim symbol_of(int number) {
  return number % 2 ? kiln_dim_symbol_from_one(number) : kiln_dim_symbol(number);
}

static int64_t floor_div(int64_t a, int64_t n) { return (a - ((a % n) + n) % n) / n; }

typedef struct pair {
  kiln_sum sum;
  int64_t value;
} pair;

/* One more of what was made before. */
static pair make(kiln_dims *dims, const pair *made, int count, const int64_t *symbols) {
  const pair a = made[rnd(count)], b = made[rnd(count)];
  const int64_t n = 1 + rnd(5), k = rnd(7) - 3;
  int64_t product;
  switch (rnd(8)) {
    case 0: {
      const int i = rnd(SYMBOLS);
      return (pair){kiln_sum_of(dims, symbol_of(i)), symbols[i]};
    }
    case 1: return (pair){kiln_sum_number(k), k};
    case 2: return (pair){kiln_sum_plus(a.sum, b.sum), a.value + b.value};
    case 3: return (pair){kiln_sum_minus(a.sum, b.sum), a.value - b.value};
    case 4: return (pair){kiln_sum_times(a.sum, k), a.value * k};
    case 5:
      if (__builtin_mul_overflow(a.value, b.value, &product) || llabs(product) > INT64_MAX / 64)
        return a;
      return (pair){kiln_sum_product(dims, a.sum, b.sum), product};
    case 6: {
      const kiln_sum q = kiln_sum_quotient(dims, kiln_sum_product(dims, a.sum, b.sum), b.sum);
      return q.known ? (pair){q, a.value} : a;
    }
    default: return (pair){kiln_sum_divided(dims, a.sum, n), floor_div(a.value, n)};
  }
}

static kiln_str text_of(kiln_arena *arena, const kiln_dims *dims, kiln_dim d) {
  kiln_text text = kiln_text_in(arena);
  kiln_dim_print(&text, dims, d);
  return kiln_text_str(&text);
}

/* The text read into another table, and the copy made there, are one handle. */
static void same_elsewhere(kiln_arena *arena, const kiln_dims *dims, kiln_dim d) {
  kiln_dims *other = kiln_dims_create(arena);
  const kiln_str text = text_of(arena, dims, d);
  kiln_str rest = text;
  kiln_dim parsed;
  (void)kiln_dim_plus(other, kiln_dim_symbol(1), 7); /* handles differ from those of `dims` */
  assert_true(kiln_dim_parse(other, &rest, &parsed));
  assert_int_equal(rest.len, 0);
  assert_int_equal(parsed, kiln_dim_copy(other, dims, d));
  assert_true(kiln_str_equal(text_of(arena, other, parsed), text));
}

static void check(kiln_arena *arena, kiln_dims *dims, const pair *p, const int64_t *symbols) {
  int64_t least, most;
  if (!p->sum.known) return;
  if (kiln_sum_range(dims, p->sum, &least, &most)) assert_true(least <= p->value);
  if (kiln_sum_range(dims, p->sum, &least, &most)) assert_true(p->value <= most);
  if (kiln_sum_is_natural(dims, p->sum)) assert_true(p->value >= 0);
  const kiln_dim d = kiln_sum_dim(dims, p->sum);
  if (!kiln_dim_is_known(d)) return;
  assert_int_equal(dim_value(arena, dims, d, symbols), p->value);
  assert_int_equal(kiln_sum_dim(dims, kiln_sum_of(dims, d)), d);
  same_elsewhere(arena, dims, d);
}

/* All of them as one program. Gives whether its numbers fit. */
static bool check_program(kiln_arena *arena, kiln_dims *dims, const pair *made,
                          const int64_t *symbols) {
  kiln_dim all[EXPRESSIONS];
  int64_t values[EXPRESSIONS], got[EXPRESSIONS];
  int count = 0;
  for (int i = 0; i < EXPRESSIONS; i++) {
    all[count] = kiln_sum_dim(dims, made[i].sum);
    values[count] = made[i].value;
    count += kiln_dim_is_known(all[count]);
  }
  kiln_dim_program *program = kiln_dim_program_create(arena, dims, all, count);
  void *copy = memcpy(kiln_arena_alloc(arena, program->bytes), program, program->bytes);
  int64_t *room = KILN_NEW_ARRAY(arena, int64_t, kiln_dim_program_room(program) + 1);
  memset(program, 0, program->bytes);
  if (!kiln_dim_program_run(copy, symbols, room, got)) return false;
  for (int i = 0; i < count; i++) assert_int_equal(got[i], values[i]);
  return true;
}

static kiln_status *random_sums(void *arg) {
  (void)arg;
  kiln_mem *mem;
  KILN_TRY(kiln_mem_create(KILN_MEM_SYSTEM, &mem));
  int known = 0, equal = 0, run = 0;
  for (int round = 0; round < ROUNDS; round++) {
    kiln_arena *arena = kiln_arena_scoped(mem);
    kiln_dims *dims = kiln_dims_create(arena);
    int64_t symbols[SYMBOLS];
    pair made[EXPRESSIONS] = {{kiln_sum_number(1), 1}};
    seed = (uint64_t)round + 1;
    for (int i = 0; i < SYMBOLS; i++) symbols[i] = 2 - i % 2 + rnd(rnd(2) ? 5 : 5000);
    for (int i = 1; i < EXPRESSIONS; i++) {
      made[i] = make(dims, made, i, symbols);
      check(arena, dims, &made[i], symbols);
      known += made[i].sum.known;
      const kiln_dim d = kiln_sum_dim(dims, made[i].sum);
      for (int k = 0; kiln_dim_is_known(d) && k < i; k++) {
        if (kiln_sum_dim(dims, made[k].sum) != d) continue;
        assert_int_equal(made[k].value, made[i].value);
        equal++;
      }
    }
    run += check_program(arena, dims, made, symbols);
    kiln_arena_destroy(arena);
  }
  assert_true(run > ROUNDS / 2);
  assert_true(known > ROUNDS * EXPRESSIONS / 2);
  assert_true(equal > ROUNDS);
  kiln_mem_release(mem);
  return NULL;
}

/* What is equal by arithmetic is one handle, and prints so. */
static kiln_status *forms(void *arg) {
  (void)arg;
  static const char *const same[][2] = {
      {"s0", "s0"},
      {"SS(-2)", "s0"},
      {"n1", "n1"},
      {"s2 + n1 + 2*s0", "2*s0 + n1 + s2"},
      {"s2*n1", "n1*s2"},
      {"SS(-3)", "s1"},
      {"SS(-1)", "*"},
      {"*", "*"},
      {"7", "7"},
      {"3 - s1 + 2*s0 + s1", "2*s0 + 3"},
      {"s1 + s0", "s0 + s1"},
      {"(4*s0 + 2*s1 + 5)//2", "2*s0 + s1 + 2"},
      {"(3*s0 + 5)//2", "s0 + (s0 + 1)//2 + 2"},
      {"s0//2", "s0//2"},
      {"(s0 + s1)//2//3", "(s0 + s1)//6"},
      {"10 - s0", "-s0 + 10"},
      {"10 - 2*s0", "-2*s0 + 10"},
      {"s0//3 - s0//3", "0"},
      {"2*s0//4", "s0//2"},
      {"(2*s0 + 3)//4", "(s0 + 1)//2"},
      {"(s0//2 + 1)//3", "(s0 + 2)//6"},
      {"4*(s0//3)", "4*(s0//3)"},
      {"s1 - s0//2", "s1 - s0//2"},
      {"5 - s0//2", "-(s0//2) + 5"},
      {"s1*s0", "s0*s1"},
      {"3*s0*s1*s0", "3*s0*s0*s1"},
      {"(s0 + 1)*(s1 + 2)", "s0*s1 + 2*s0 + s1 + 2"},
      {"(s0//2)*s1 + s1", "s1*(s0//2) + s1"},
      {"4*s0*s1//2", "2*s0*s1"},
      {"s0*s1//2", "s0*s1//2"},
      {"3*(s0//2)*s1", "3*s1*(s0//2)"},
      {"(7*s0)//8", "s0 - (s0 + 7)//8"}, /* rounded up: one form of both */
      {"s0 + (8 - (s0 - 8*(s0//8))) - 8*((8 - (s0 - 8*(s0//8)))//8)", "8*((s0 + 7)//8)"},
      {"(2*s0 + 2*s1 + 1)//3", "s0 + s1 - (s0 + s1 + 1)//3"},
  };
  static const char *const wrong[] = {"",
                                      "s",
                                      "s-1",
                                      "-3",
                                      "s0//0",
                                      "s0//-1",
                                      "(s0",
                                      "2*3*s0",
                                      "s0*s1*s2*s3*s4*s5*s6",
                                      "s0*2",
                                      "s524288",
                                      "n",
                                      "n-1",
                                      "n524288",
                                      "-s0",
                                      "SS(2)",
                                      "SS(-2",
                                      "s0 +",
                                      "99999999999999999999",
                                      "9223372036854775807*s0*s0"};
  kiln_mem *mem;
  KILN_TRY(kiln_mem_create(KILN_MEM_SYSTEM, &mem));
  kiln_arena *arena = kiln_arena_scoped(mem);
  kiln_dims *dims = kiln_dims_create(arena);
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    kiln_str text = kiln_str_from(same[i][0]);
    kiln_dim d;
    assert_true(kiln_dim_parse(dims, &text, &d));
    assert_int_equal(text.len, 0);
    assert_string_equal(text_of(arena, dims, d).data, same[i][1]);
  }
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    kiln_str text = kiln_str_from(wrong[i]);
    kiln_dim d;
    const bool whole = kiln_dim_parse(dims, &text, &d) && text.len == 0;
    if (whole) print_error("%s\n", wrong[i]);
    assert_false(whole);
  }
  kiln_arena_destroy(arena);
  kiln_mem_release(mem);
  return NULL;
}

/* Nothing that a text can make long takes long. */
static kiln_status *limits(void *arg) {
  (void)arg;
  kiln_mem *mem;
  KILN_TRY(kiln_mem_create(KILN_MEM_SYSTEM, &mem));
  kiln_arena *arena = kiln_arena_scoped(mem);
  kiln_dims *dims = kiln_dims_create(arena);
  const kiln_sum s0 = kiln_sum_of(dims, kiln_dim_symbol(0)), one = kiln_sum_number(1);
  kiln_sum many = s0, deep = s0;
  int terms = 0, divisions = 0;
  for (; many.known; terms++) {
    many = kiln_sum_plus(many, kiln_sum_of(dims, kiln_dim_symbol(terms + 1)));
  }
  assert_int_equal(terms, KILN_SUM_TERMS);
  for (; deep.known; divisions++) {
    const kiln_sum twice = kiln_sum_plus(deep, kiln_sum_divided(dims, kiln_sum_plus(deep, one), 3));
    deep = kiln_sum_divided(dims, twice, 2);
  }
  assert_in_range(divisions, 2, 16);
  assert_false(kiln_sum_times(s0, INT64_MAX).known &&
               kiln_sum_plus(kiln_sum_times(s0, INT64_MAX), s0).known);
  int factors = 0;
  for (kiln_dim product = 1; kiln_dim_is_known(product); factors++) {
    product = kiln_dim_product(dims, product, kiln_dim_symbol(factors));
  }
  assert_int_equal(factors - 1, KILN_SUM_FACTORS);
  assert_int_equal(kiln_dim_product(dims, 0, kiln_dim_symbol(0)), 0);
  assert_int_equal(kiln_dim_plus(dims, KILN_DIM_UNKNOWN, 3), KILN_DIM_UNKNOWN);
  assert_int_equal(kiln_sum_dim(dims, kiln_sum_times(s0, -1)), KILN_DIM_UNKNOWN);
  const kiln_sum half = kiln_sum_divided(dims, kiln_sum_of(dims, kiln_dim_symbol(1)), 2);
  const int64_t symbols[2] = {3, 9};
  assert_int_equal(dim_value(arena, dims, kiln_sum_dim(dims, half), symbols), 4);
  kiln_arena_destroy(arena);
  kiln_mem_release(mem);
  return NULL;
}

/* Whether the second is at least the first, whatever the symbols are. */
static kiln_status *proofs(void *arg) {
  (void)arg;
  static const struct {
    const char *less, *more;
    bool proved;
  } cases[] = {
      {"s0", "s0", true},
      {"s0 + 1", "s0", false},
      {"s1", "s0*s1", true},
      {"2*s0 + 2*s1", "s0*s1 + 4", true},
      {"2*s0 + 2*s1", "s0*s1", false}, /* 2, 2 */
      {"2*(s0//2)", "s0", true},
      {"s0", "2*(s0//2) + 1", true},
      {"s0", "2*(s0//2)", false},
      {"s1*(s0//2)", "s0*s1", true},
      {"s1*s2*(s0//3) + s1*s2", "s0*s1*s2", true}, /* s0//3 + 1 <= s0 from 2 on */
      {"2*((s0 + 1)//2) + 2", "s0 + 3", true},
      {"2*((s0 + 1)//2) + 2", "s0 + 2", false},
      {"2*(s0//4)", "s0//2", true}, /* s0//2 // 2 */
      {"s0//2", "2*(s0//4)", false},
      {"3*((s0 + 3)//6)", "(s0 + 1)//2 + 1", true}, /* s0 + 3 is s0 + 1 and 2 more */
      {"3*((s0 + 3)//6)", "(s0 + 1)//2", false},    /* 3 */
      {"2*((s0 + 1)//4)", "s0//2", false},          /* 3 */
      {"2*(s0//8) + 2*s1*(s0//4)", "s0//4 + s1*(s0//2)", true},
      {"(s0 + 2)//3", "s0//3 + 1", true},
      {"(s0 + 2)//3", "s0//3", false},
      {"(s0 - 2)//3 + 1", "(s0 + 2)//3", true}, /* whole, and above -1 */
      {"((s0 + 1)//2)*s1", "(s0//2)*s1 + s1", true},
      {"((s0 + 1)//2)*s1", "(s0//2)*s1", false},
      {"((s0 + 1)//2)*((s1 + 1)//2) + s1//2", "(s0//2)*((s1 + 1)//2) + 2*((s1 + 1)//2)", true},
      {"s0*s1", "s0*s0", false},
      {"s0", "1099511627776", true},
      {"2", "s0", true},
      {"1", "n0", true},
      {"2", "n0", false},
      {"n0", "n0*n1", true},
      {"n0 + n1", "n0*n1 + 1", true},
      {"n0 + n1", "n0*n1", false}, /* 1, 1 */
      {"n0", "1099511627776", true},
  };
  kiln_mem *mem;
  KILN_TRY(kiln_mem_create(KILN_MEM_SYSTEM, &mem));
  kiln_arena *arena = kiln_arena_scoped(mem);
  kiln_dims *dims = kiln_dims_create(arena);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kiln_str less = kiln_str_from(cases[i].less), more = kiln_str_from(cases[i].more);
    kiln_dim x, y;
    assert_true(kiln_dim_parse(dims, &less, &x));
    assert_true(kiln_dim_parse(dims, &more, &y));
    const kiln_sum left = kiln_sum_minus(kiln_sum_of(dims, y), kiln_sum_of(dims, x));
    if (kiln_sum_is_natural(dims, left) != cases[i].proved) {
      fail_msg("%s <= %s", cases[i].less, cases[i].more);
    }
  }
  kiln_arena_destroy(arena);
  kiln_mem_release(mem);
  return NULL;
}

/* Sums of products of quotients, with what is taken for granted of their symbols: none that is said
 * to be natural is below 0 where that holds, of all that were tried. */
static kiln_status *tried_proofs(void *arg) {
  (void)arg;
  enum { PROOFS = 30000, MOST = 14, TERMS = 5 };
  kiln_mem *mem;
  KILN_TRY(kiln_mem_create(KILN_MEM_SYSTEM, &mem));
  int proved = 0;
  for (int round = 0; round < PROOFS; round++) {
    kiln_arena *arena = kiln_arena_scoped(mem);
    kiln_dims *dims = kiln_dims_create(arena);
    int64_t c[TERMS], more[TERMS][2], by[TERMS][2], least[2];
    const int count = 1 + rnd(TERMS), kind = rnd(4);
    const int64_t constant = rnd(7) - 2;
    seed = (uint64_t)round * 31 + 7;
    kiln_sum sum = kiln_sum_number(constant);
    for (int k = 0; k < 2; k++) {
      least[k] = 2 + (rnd(2) ? rnd(5) : 0);
      if (least[k] > 2)
        assert_true(kiln_dims_assume(dims, (kiln_dim_order){least[k], kiln_dim_symbol(k)}));
    }
    for (int i = 0; i < count; i++) {
      c[i] = rnd(7) - 3;
      kiln_sum product = kiln_sum_number(c[i]);
      for (int k = 0; k < 2; k++) {
        const bool alike = i > 0 && rnd(2);
        by[i][k] = alike ? by[i - 1][k] : 1 + rnd(4);
        more[i][k] = kind == k ? 0 : rnd(6) - 2;
        const kiln_sum s =
            kiln_sum_plus(kiln_sum_of(dims, kiln_dim_symbol(k)), kiln_sum_number(more[i][k]));
        if (rnd(4) == 0) by[i][k] = 0; /* no factor */
        if (by[i][k])
          product = kiln_sum_product(dims, product, kiln_sum_divided(dims, s, by[i][k]));
      }
      sum = kiln_sum_plus(sum, product);
    }
    if (sum.known && kiln_sum_is_natural(dims, sum)) {
      proved++;
      for (int64_t x = least[0]; x < least[0] + MOST; x++) {
        for (int64_t y = least[1]; y < least[1] + MOST; y++) {
          int64_t value = constant;
          for (int i = 0; i < count; i++)
            value += c[i] * (by[i][0] ? floor_div(x + more[i][0], by[i][0]) : 1) *
                     (by[i][1] ? floor_div(y + more[i][1], by[i][1]) : 1);
          assert_true(value >= 0);
        }
      }
    }
    kiln_arena_destroy(arena);
  }
  assert_true(proved > PROOFS / 20);
  kiln_mem_release(mem);
  return NULL;
}

/* What is no sum has no quotient. */
static kiln_status *quotients(void *arg) {
  (void)arg;
  static const char *const cases[][3] = {
      {"64*s0*s1", "4*s0*s1", "16"},
      {"s0*s1 + 2*s1", "s1", "s0 + 2"},
      {"s0*s1 + 2*s1", "s0 + 2", "s1"},
      {"s0*s0 - s1*s1", "s0 - s1", "s0 + s1"},
      {"s1*(s0//2)", "s0//2", "s1"},
      {"6*s0 + 4", "2", "3*s0 + 2"},
      {"0", "s0", "0"},
      {"s0", "s1", NULL},
      {"s0 + 1", "s0", NULL},
      {"3*s0", "2*s0", NULL},
      {"s0*s1", "s0 + s1", NULL},
      {"s0", "0", NULL},
  };
  kiln_mem *mem;
  KILN_TRY(kiln_mem_create(KILN_MEM_SYSTEM, &mem));
  kiln_arena *arena = kiln_arena_scoped(mem);
  kiln_dims *dims = kiln_dims_create(arena);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kiln_dim d[3] = {KILN_DIM_UNKNOWN, KILN_DIM_UNKNOWN, KILN_DIM_UNKNOWN};
    for (int k = 0; k < 3 && cases[i][k]; k++) {
      kiln_str text = kiln_str_from(cases[i][k]);
      assert_true(kiln_dim_parse(dims, &text, &d[k]));
    }
    const kiln_sum a = kiln_sum_of(dims, d[0]), b = kiln_sum_of(dims, d[1]);
    if (kiln_sum_dim(dims, kiln_sum_quotient(dims, a, b)) != d[2])
      fail_msg("%s / %s", cases[i][0], cases[i][1]);
  }
  kiln_arena_destroy(arena);
  kiln_mem_release(mem);
  return NULL;
}

/* Quotients of one divisor stand in one order, whichever was made or added first. */
static kiln_status *orders(void *arg) {
  (void)arg;
  kiln_mem *mem;
  KILN_TRY(kiln_mem_create(KILN_MEM_SYSTEM, &mem));
  for (int k = 0; k < 2; k++) {
    kiln_arena *arena = kiln_arena_scoped(mem);
    kiln_dims *dims = kiln_dims_create(arena);
    const kiln_sum s0 = kiln_sum_of(dims, kiln_dim_symbol(0));
    const kiln_sum made = kiln_sum_divided(dims, kiln_sum_times(s0, k ? 2 : 3), 7);
    const kiln_sum next = kiln_sum_divided(dims, kiln_sum_times(s0, k ? 3 : 2), 7);
    const kiln_dim sum = kiln_sum_dim(dims, kiln_sum_plus(made, next));
    assert_int_equal(sum, kiln_sum_dim(dims, kiln_sum_plus(next, made)));
    const kiln_str text = text_of(arena, dims, sum);
    if (!kiln_str_is(text, "(2*s0)//7 + (3*s0)//7")) fail_msg(KILN_STR_FMT, KILN_STR_ARG(text));
    kiln_arena_destroy(arena);
  }
  kiln_mem_release(mem);
  return NULL;
}

/* What others say is dropped, but for the first; what they do not say stays. */
static kiln_status *implied(void *arg) {
  (void)arg;
  static const char *const orders[] = {"2 <= s0*s1", "2 <= 4*(s0//4)", "2 <= s0//4",
                                       "s1 <= s0",   "5 <= s0",        "4*s1 + 1 <= s0*s1"};
  static const char *const left[] = {"2 <= s0*s1", "2 <= s0//4", "s1 <= s0", "5 <= s0"};
  kiln_mem *mem;
  KILN_TRY(kiln_mem_create(KILN_MEM_SYSTEM, &mem));
  kiln_arena *arena = kiln_arena_scoped(mem);
  kiln_dims *dims = kiln_dims_create(arena);
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    kiln_str text = kiln_str_from(orders[i]);
    kiln_dim_order order;
    assert_true(kiln_dim_order_parse(dims, &text, &order));
    assert_true(kiln_dims_assume(dims, order));
  }
  assert_int_equal(kiln_dims_drop_implied(dims, 1), sizeof left / sizeof *left);
  for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
    kiln_text text = kiln_text_in(arena);
    kiln_dim_order_print(&text, dims, kiln_dims_assumed_at(dims, (int)i));
    assert_string_equal(text.data, left[i]);
  }
  kiln_arena_destroy(arena);
  kiln_mem_release(mem);
  return NULL;
}

/* Orders of a symbol and a number make it larger: (s0 - 2)*(s1 - 2), written out. */
static kiln_status *shifted(void *arg) {
  (void)arg;
  static const char *const orders[] = {"3 <= s0 - 2", "3 <= s1 - 2"};
  static const struct {
    const char *order;
    int needed; /* of the orders above: with fewer it is not so */
  } cases[] = {{"0 <= s0*s1 - 2*s0 - 2*s1 + 4", 0}, /* symbols are 2 or more */
               {"1 <= s0*s1 - 2*s0 - 2*s1 + 4", 2},
               {"9 <= s0*s1 - 2*s0 - 2*s1 + 4", 2},
               {"5 <= s0", 1},
               {"10 <= s0*s1 - 2*s0 - 2*s1 + 4", 3},
               {"6 <= s0", 3}};
  kiln_mem *mem;
  KILN_TRY(kiln_mem_create(KILN_MEM_SYSTEM, &mem));
  kiln_arena *arena = kiln_arena_scoped(mem);
  kiln_dims *dims = kiln_dims_create(arena);
  for (int known = 0; known <= 2; known++) {
    kiln_dim_order order;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      kiln_str text = kiln_str_from(cases[i].order);
      assert_true(kiln_dim_order_parse(dims, &text, &order));
      const kiln_sum room =
          kiln_sum_minus(kiln_sum_of(dims, order.more), kiln_sum_of(dims, order.less));
      assert_int_equal(kiln_sum_is_natural(dims, room), known >= cases[i].needed);
    }
    if (known == 2) break;
    kiln_str text = kiln_str_from(orders[known]);
    assert_true(kiln_dim_order_parse(dims, &text, &order));
    assert_true(kiln_dims_assume(dims, order));
  }
  kiln_arena_destroy(arena);
  kiln_mem_release(mem);
  return NULL;
}

static kiln_status *run(kiln_status *(*body)(void *), void *arg) { KILN_PROTECT(body(arg)); }
static void test_tried_proofs(void **state) {
  (void)state;
  assert_null(run(tried_proofs, NULL));
}
static void test_shifted(void **state) {
  (void)state;
  assert_null(run(shifted, NULL));
}
static void test_random(void **state) {
  (void)state;
  assert_null(run(random_sums, NULL));
}
static void test_forms(void **state) {
  (void)state;
  assert_null(run(forms, NULL));
}
static void test_limits(void **state) {
  (void)state;
  assert_null(run(limits, NULL));
}
static void test_proofs(void **state) {
  (void)state;
  assert_null(run(proofs, NULL));
}
static void test_quotients(void **state) {
  (void)state;
  assert_null(run(quotients, NULL));
}
static void test_implied(void **state) {
  (void)state;
  assert_null(run(implied, NULL));
}
static void test_orders(void **state) {
  (void)state;
  assert_null(run(orders, NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tried_proofs), cmocka_unit_test(test_shifted),
      cmocka_unit_test(test_random),       cmocka_unit_test(test_forms),
      cmocka_unit_test(test_limits),       cmocka_unit_test(test_proofs),
      cmocka_unit_test(test_quotients),    cmocka_unit_test(test_orders),
      cmocka_unit_test(test_implied)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
