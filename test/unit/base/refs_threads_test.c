/* refs_threads_test.c: owners' and users' references: the last one is seen once, in whatever order
 * and by whatever threads they are given back. */
#include "base/refs.h"

#include <stdlib.h>

#include "test/unit/unit.h"

enum { THREADS = 4, ROUNDS = 200, STEPS = 100 };

static void users_outlive_owners(void **state) {
  kiln_refs refs;
  (void)state;
  kiln_refs_init(&refs);
  kiln_refs_retain(&refs);
  kiln_refs_take(&refs, 3);
  kiln_refs_take(&refs, KILN_STRIPES - 1);
  assert_false(kiln_refs_release(&refs));
  assert_false(kiln_refs_release(&refs));
  kiln_refs_take(&refs, 3); /* beside the one that is there */
  assert_false(kiln_refs_give(&refs, 3));
  assert_false(kiln_refs_give(&refs, KILN_STRIPES - 1));
  assert_true(kiln_refs_give(&refs, 3));
}

static void owners_outlive_users(void **state) {
  kiln_refs refs;
  (void)state;
  kiln_refs_init(&refs);
  for (uint32_t i = 0; i < KILN_STRIPES; i++) {
    kiln_refs_take(&refs, i);
    assert_false(kiln_refs_give(&refs, i));
  }
  kiln_refs_retain(&refs);
  assert_false(kiln_refs_release(&refs));
  assert_true(kiln_refs_release(&refs));
}

/* Each stripe alone can be what keeps the object, the first and the last too. */
static void any_stripe_keeps(void **state) {
  (void)state;
  for (uint32_t i = 0; i < KILN_STRIPES; i++) {
    kiln_refs refs;
    kiln_refs_init(&refs);
    kiln_refs_take(&refs, i);
    assert_false(kiln_refs_release(&refs));
    assert_true(kiln_refs_give(&refs, i));
  }
}

static void stripes_share_no_line(void **state) {
  kiln_refs refs;
  const char *last = (const char *)&refs.live;
  (void)state;
  for (int i = 0; i < KILN_STRIPES; i++) {
    const char *at = (const char *)&refs.stripes[i].count;
    assert_true(at - last >= (i ? KILN_STRIPE_BYTES : KILN_STRIPE_BYTES / 2));
    last = at;
  }
  assert_true((const char *)(&refs + 1) - last >= KILN_STRIPE_BYTES / 2);
}

typedef struct object {
  kiln_refs refs;
  int *ends; /* atomic */
} object;
static void end(object *o) {
  __atomic_fetch_add(o->ends, 1, __ATOMIC_RELAXED);
  free(o); /* who comes here again, or later, is seen by a sanitizer */
}
static void use(object *o, uint32_t stripe) {
  for (int i = 0; i < STEPS; i++) {
    kiln_refs_take(&o->refs, stripe);
    if (kiln_refs_give(&o->refs, stripe)) abort();
  }
}
static void *use_own(void *arg) {
  use(arg, kiln_stripe_here());
  return NULL;
}
typedef struct user {
  pthread_t thread;
  object *o;
  uint32_t stripe;
} user;
static void *use_and_give(void *arg) {
  user *u = arg;
  use(u->o, u->stripe);
  if (kiln_refs_give(&u->o->refs, u->stripe)) end(u->o);
  return NULL;
}

/* The owner goes while users come and go; whoever is the last ends it. */
static void ends_once(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    user users[THREADS];
    int ends = 0;
    object *o = malloc(sizeof *o);
    assert_non_null(o);
    kiln_refs_init(&o->refs);
    o->ends = &ends;
    for (uint32_t i = 0; i < THREADS; i++) { /* two on a stripe */
      users[i] = (user){.o = o, .stripe = (i / 2 * 7 + (uint32_t)round) % KILN_STRIPES};
      kiln_refs_take(&o->refs, users[i].stripe);
    }
    for (int i = 0; i < THREADS; i++) {
      assert_int_equal(pthread_create(&users[i].thread, NULL, use_and_give, &users[i]), 0);
    }
    if (kiln_refs_release(&o->refs)) end(o);
    for (int i = 0; i < THREADS; i++) pthread_join(users[i].thread, NULL);
    assert_int_equal(__atomic_load_n(&ends, __ATOMIC_RELAXED), 1);
  }
}

/* While there is an owner, a thread uses its own stripe. */
static void threads_use_their_own(void **state) {
  pthread_t threads[THREADS];
  int ends = 0;
  (void)state;
  object *o = malloc(sizeof *o);
  assert_non_null(o);
  kiln_refs_init(&o->refs);
  o->ends = &ends;
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, use_own, o), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < KILN_STRIPES; i++) assert_int_equal(o->refs.stripes[i].count, 1);
  assert_true(kiln_refs_release(&o->refs));
  free(o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(users_outlive_owners),
      cmocka_unit_test(owners_outlive_users),
      cmocka_unit_test(any_stripe_keeps),
      cmocka_unit_test(stripes_share_no_line),
      cmocka_unit_test(ends_once),
      cmocka_unit_test(threads_use_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
