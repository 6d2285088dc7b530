/* ledger_test.c: when a level pays, what a job is worth, which variants are retired. */
#include "test/unit/jit/jit_support.h"

enum { HASH = 7, OTHER = 8 };

typedef struct world {
  kiln_jit jit;
  kiln_executor ex;
  kiln_variant v, plain;
  kiln_call call;
} world;

/* Plans are only told apart. */
static kiln_plan *const compiled = (kiln_plan *)16, *const interpreted = (kiln_plan *)32;

static void make(world *w, const void *jobs) {
  *w = (world){.v = {.plan = compiled}, .plain = {.plan = interpreted}};
  w->jit.env.flags.compile_after = 2;
  w->jit.jobs = (kiln_job_queue *)(uintptr_t)jobs;
  w->ex.jit = &w->jit;
  w->ex.plain = &w->plain;
}

static void interpret(world *w, uint64_t hash, uint64_t ns) {
  kiln__ledger_meter(&w->ex, &w->call, hash);
  assert_ptr_equal(w->call.meter, &w->ex.interim_meter);
  kiln_meter_add(w->call.meter, ns);
}

/* One call: the plan that it gets takes so long. */
static const kiln_plan *run(world *w, uint64_t hash, uint64_t own_ns, uint64_t plain_ns,
                            bool *out_doubtful) {
  *out_doubtful = false;
  w->call.meter = NULL;
  const kiln_plan *plan = kiln__ledger_choose(&w->ex, &w->call, hash, &w->v, out_doubtful);
  if (w->call.meter) kiln_meter_add(w->call.meter, plan == compiled ? own_ns : plain_ns);
  return plan;
}

static void a_level_pays_when_enough_was_spent(void **state) {
  world w;
  (void)state;
  make(&w, NULL);
  w.ex.nodes = 10;
  w.jit.made_nodes = 100;
  w.jit.made_ns = 100 * 50000; /* so 500 us are expected: 10 us must have been spent */
  for (int i = 0; i < 4; i++) interpret(&w, HASH + (uint64_t)i, 2400);
  assert_false(kiln__ledger_pays(&w.ex));
  assert_int_equal(kiln__ledger_worth(&w.ex), 19);
  interpret(&w, HASH, 2400);
  assert_true(kiln__ledger_pays(&w.ex));
  w.jit.env.flags.compile_after = 200;
  assert_false(kiln__ledger_pays(&w.ex));
  w.jit.eager = 1;
  assert_true(kiln__ledger_pays(&w.ex));
  w.jit.eager = 0;
  w.jit.env.flags.compile_after = 0;
  assert_true(kiln__ledger_pays(&w.ex));
}

/* A level ends what was spent, and its runs are compared with those of the same types. */
static void a_variant_is_metered(void **state) {
  world w;
  bool doubtful;
  (void)state;
  make(&w, &w);
  interpret(&w, OTHER, 10);
  interpret(&w, HASH, 3000);
  interpret(&w, HASH, 2000);
  kiln__ledger_open(&w.ex, &w.v, 5000);
  assert_int_equal(w.ex.interim_meter.ns, 0);
  assert_int_equal(w.v.entry.made_ns, 5000);
  assert_int_equal(w.v.entry.interpreted.least_ns, 2000);
  for (int i = 0; i < 100 && w.v.state; i++) {
    assert_ptr_equal(run(&w, i % 2 ? HASH : OTHER, i % 2 ? 900 + (uint64_t)i : 9000, 0, &doubtful),
                     compiled);
    assert_false(doubtful);
  }
  assert_int_equal(w.v.state, 0);
  assert_int_equal(w.v.entry.own.least_ns, 901);
  assert_int_equal(w.v.entry.own.runs, 16);
}

/* Of ever other types, metering ends too. */
static void metering_ends(void **state) {
  world w;
  bool doubtful;
  (void)state;
  make(&w, &w);
  interpret(&w, HASH, 3000);
  kiln__ledger_open(&w.ex, &w.v, 5000);
  for (int i = 0; i < 1025; i++) assert_ptr_equal(run(&w, OTHER, 1, 1, &doubtful), compiled);
  assert_int_equal(w.v.state, 0);
}

static void try_variant(world *w, uint64_t own_ns, uint64_t plain_ns) {
  bool doubtful = false;
  interpret(w, HASH, 2000);
  kiln__ledger_open(&w->ex, &w->v, 5000);
  for (int i = 0; i < 17; i++) run(w, HASH, own_ns, 0, &doubtful);
  assert_true(doubtful); /* until a job could be asked for */
  run(w, HASH, own_ns, 0, &doubtful);
  assert_true(doubtful);
  kiln__ledger_try(&w->v);
  int turns[2] = {0};
  for (int i = 0; i < 17; i++) turns[run(w, HASH, own_ns, plain_ns, &doubtful) == interpreted]++;
  assert_in_range(turns[0], 8, 9);
  assert_false(w->v.state & KILN_VARIANT_TRIED);
}

static void a_variant_that_loses_is_retired(void **state) {
  world w;
  bool doubtful;
  (void)state;
  make(&w, &w);
  try_variant(&w, 4000, 2100);
  assert_true(w.v.state & KILN_VARIANT_RETIRED);
  assert_int_equal(w.jit.retired, 1);
  assert_ptr_equal(run(&w, OTHER, 0, 0, &doubtful), interpreted);
}

/* The interpreter's run that was metered first was a short one by chance. */
static void a_variant_that_wins_stays(void **state) {
  world w;
  bool doubtful;
  (void)state;
  make(&w, &w);
  try_variant(&w, 4000, 4100);
  assert_int_equal(w.v.state, 0);
  assert_ptr_equal(run(&w, HASH, 0, 0, &doubtful), compiled);
  for (int i = 0; i < 100; i++) run(&w, HASH, 0, 0, &doubtful);
  assert_int_equal(w.jit.retired, 0);
}

/* With compile=sync nothing follows from times. */
static void nothing_is_doubtful_without_jobs(void **state) {
  world w;
  bool doubtful;
  (void)state;
  make(&w, NULL);
  interpret(&w, HASH, 2000);
  kiln__ledger_open(&w.ex, &w.v, 5000);
  for (int i = 0; i < 20; i++) {
    run(&w, HASH, 4000, 0, &doubtful);
    assert_false(doubtful);
  }
  assert_int_equal(w.v.state, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_level_pays_when_enough_was_spent),
      cmocka_unit_test(a_variant_is_metered),
      cmocka_unit_test(metering_ends),
      cmocka_unit_test(a_variant_that_loses_is_retired),
      cmocka_unit_test(a_variant_that_wins_stays),
      cmocka_unit_test(nothing_is_doubtful_without_jobs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
