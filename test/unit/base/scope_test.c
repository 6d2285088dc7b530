/* scope_test.c: what leaves a scope, what is cleaned up on the way, and in which order. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/budget.h"
#include "test/unit/sweep.h"

static kiln_mem *mem;

/* -- The order of events -- */

static char events[64];
static void note(void *what) { strcat(events, what); }
static void begin(void) { events[0] = 0; }

/* Three cleanups, one of them forgotten; then as `why` says. */
static kiln_status *three_cleanups(kiln_cleanup *nodes, kiln_status *why, bool fails) {
  kiln_scope_defer(&nodes[0], note, "a");
  kiln_scope_defer(&nodes[1], note, "b");
  kiln_scope_defer(&nodes[2], note, "c");
  kiln_scope_undefer(&nodes[1]);
  kiln_scope_undefer(&nodes[1]); /* twice is fine */
  strcat(events, "-");
  if (fails) kiln_scope_fail(why);
  return why;
}
static kiln_status *try_three(kiln_cleanup *nodes, kiln_status *why, bool fails) {
  KILN_PROTECT(three_cleanups(nodes, why, fails));
}

static void cleanups_run_in_reverse_order(void **state) {
  (void)state;
  kiln_cleanup nodes[3];
  begin();
  assert_ok(try_three(nodes, NULL, false));
  assert_string_equal(events, "-ca");
  begin();
  assert_error(try_three(nodes, KILN_ERROR(KILN_NOT_FOUND, "own"), false), KILN_NOT_FOUND, "own");
  assert_string_equal(events, "-ca");
  begin();
  assert_error(try_three(nodes, KILN_ERROR(KILN_LIMIT, "much"), true), KILN_LIMIT, "much");
  assert_string_equal(events, "-ca");
  begin();
  assert_error(try_three(nodes, kiln_status_oom(), true), KILN_OUT_OF_MEMORY, NULL);
  assert_string_equal(events, "-ca");
}

/* -- Nesting -- */

static kiln_status *inner(bool fails) {
  kiln_cleanup node;
  kiln_scope_defer(&node, note, "i");
  if (fails) kiln_scope_oom();
  kiln_scope_undefer(&node);
  return NULL;
}
static kiln_status *try_inner(bool fails) { KILN_PROTECT(inner(fails)); }

/* The inner scope's failure is caught; what follows belongs to the outer one again. */
static kiln_status *outer(bool inner_fails, bool outer_fails) {
  kiln_cleanup node;
  kiln_scope_defer(&node, note, "o");
  kiln_status *status = try_inner(inner_fails);
  strcat(events, status ? "!" : ".");
  kiln_status_destroy(status);
  if (outer_fails) kiln_scope_oom();
  kiln_scope_undefer(&node);
  return NULL;
}
static kiln_status *try_outer(bool inner_fails, bool outer_fails) {
  KILN_PROTECT(outer(inner_fails, outer_fails));
}

static void scopes_nest(void **state) {
  static const char *const wants[] = {".", "i!", ".o", "i!o"};
  (void)state;
  for (int i = 0; i < 4; i++) {
    const bool outer_fails = i >= 2;
    begin();
    kiln_status *status = try_outer(i & 1, outer_fails);
    assert_int_equal(kiln_status_code(status), outer_fails ? KILN_OUT_OF_MEMORY : KILN_OK);
    kiln_status_destroy(status);
    assert_string_equal(events, wants[i]);
  }
}

/* A cleanup is of the scope that it was made in, also if an inner one is left meanwhile; and it can
 * be forgotten from there. */
static kiln_status *undefer(kiln_cleanup *node) {
  kiln_scope_undefer(node);
  return NULL;
}
static kiln_status *try_undefer(kiln_cleanup *node) { KILN_PROTECT(undefer(node)); }
static kiln_status *undefer_within(kiln_cleanup *nodes) {
  kiln_scope_defer(&nodes[0], note, "a");
  kiln_scope_defer(&nodes[1], note, "b");
  return try_undefer(&nodes[0]);
}
static kiln_status *try_undefer_within(kiln_cleanup *nodes) { KILN_PROTECT(undefer_within(nodes)); }

static void an_inner_scope_may_forget(void **state) {
  (void)state;
  kiln_cleanup nodes[2];
  begin();
  assert_ok(try_undefer_within(nodes));
  assert_string_equal(events, "b");
}

/* -- Arenas -- */

static kiln_status *use_arenas(kiln_arena **out_kept, bool fails) {
  kiln_arena *left = kiln_arena_scoped(mem), *kept = kiln_arena_scoped(mem);
  kiln_arena *destroyed = kiln_arena_scoped(mem);
  kiln_arena_alloc(left, 100000);
  kiln_arena_alloc(kept, 1000);
  kiln_arena_destroy(destroyed);
  if (fails) kiln_arena_alloc(left, PTRDIFF_MAX);
  kiln_arena_keep(kept);
  *out_kept = kept;
  return NULL;
}
static kiln_status *try_arenas(kiln_arena **out_kept, bool fails) {
  KILN_PROTECT(use_arenas(out_kept, fails));
}

static void arenas_die_with_their_scope(void **state) {
  (void)state;
  kiln_arena *kept = NULL;
  assert_error(try_arenas(&kept, true), KILN_OUT_OF_MEMORY, NULL);
  assert_null(kept);
  assert_int_equal(kiln_mem_bytes(mem), 0);
  assert_ok(try_arenas(&kept, false));
  assert_true(kiln_arena_bytes(kept) >= 1000);
  kiln_arena_destroy(kept);
  assert_int_equal(kiln_mem_bytes(mem), 0);
}

/* -- Budgets -- */

static kiln_status *spend(kiln_budget *budget, kiln_cleanup *node) {
  (void)!kiln_budget_enter(budget); /* the scope leaves it */
  kiln_scope_defer(node, note, "x");
  kiln_arena *arena = kiln_arena_scoped(mem);
  for (int i = 0; i < 10000; i++) kiln_arena_alloc(arena, 1000);
  return NULL;
}
static kiln_status *try_spend(kiln_budget *budget, kiln_cleanup *node) {
  KILN_PROTECT(spend(budget, node));
}

static void a_budget_that_is_over_leaves_the_scope(void **state) {
  (void)state;
  kiln_budget budget, around;
  kiln_cleanup node;
  const kiln_limits limits = {.bytes = 1 << 20};
  kiln_budget_begin(&budget, "the test", mem, &limits);
  kiln_budget_begin(&around, "the rest", mem, NULL);
  kiln_budget *before = kiln_budget_enter(&around);
  begin();
  assert_error(try_spend(&budget, &node), KILN_LIMIT, "the test needs more");
  assert_string_equal(events, "x");
  assert_ptr_equal(kiln_budget_current(), &around);
  kiln_budget_leave(before);
  assert_int_equal(kiln_mem_bytes(mem), 0);
}

/* -- Outside of any scope -- */

static void a_failure_outside_stops_the_program(void **state) {
  (void)state;
  kiln_cleanup node;
  kiln_scope_defer(&node, note, "x"); /* nobody's: forgotten, never run */
  kiln_scope_undefer(&node);
  kiln_arena *arena = kiln_arena_scoped(mem); /* its maker's */
  kiln_arena_alloc(arena, 100);
  kiln_arena_destroy(arena);
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(open("/dev/null", O_WRONLY), 2);
    signal(SIGABRT, SIG_DFL);
    kiln_scope_oom();
  }
  int end = 0;
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_true(WIFSIGNALED(end) && WTERMSIG(end) == SIGABRT);
}

/* -- The failing allocator -- */

static kiln_status *nest_deeply(kiln_arena *arena, int depth);
static kiln_status *try_deeply(kiln_arena *arena, int depth) {
  KILN_PROTECT(nest_deeply(arena, depth));
}
static kiln_status *nest_deeply(kiln_arena *arena, int depth) {
  kiln_arena *own = kiln_arena_scoped(kiln_arena_mem(arena));
  kiln_arena_alloc(own, 10000);
  if (depth > 0) KILN_TRY(try_deeply(own, depth - 1));
  kiln_arena_alloc(arena, 10000);
  kiln_arena_keep(own);
  kiln_arena_destroy(own);
  return NULL;
}
static kiln_status *nest(kiln_arena *arena, void *arg) {
  (void)arg;
  return nest_deeply(arena, 10);
}

static void survives_a_failing_allocator(void **state) {
  (void)state;
  sweep_arena(nest, NULL);
}

static int set_up(void **state) {
  (void)state;
  assert_ok(kiln_mem_create(KILN_MEM_DEFAULT, &mem));
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  kiln_mem_release(mem);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cleanups_run_in_reverse_order),
      cmocka_unit_test(scopes_nest),
      cmocka_unit_test(an_inner_scope_may_forget),
      cmocka_unit_test(arenas_die_with_their_scope),
      cmocka_unit_test(a_budget_that_is_over_leaves_the_scope),
      cmocka_unit_test(a_failure_outside_stops_the_program),
      cmocka_unit_test(survives_a_failing_allocator),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
