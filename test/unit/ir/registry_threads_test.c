/* registry_threads_test.c: operators that several threads look up first find one and the same. */
#include <pthread.h>

#include "test/unit/ir/ir_support.h"

enum { THREADS = 4 };

typedef struct looker {
  const kiln_registry *registry;
  int first;
  const kiln_op *found[KILN_OP__BUILTIN_COUNT];
} looker;

/* By number, each thread from another on; by name every third. */
static void *look_up_all(void *arg) {
  looker *l = arg;
  for (int i = 0; i < KILN_OP__BUILTIN_COUNT; i++) {
    const int id = (l->first + i) % KILN_OP__BUILTIN_COUNT;
    const kiln_op *op = kiln_registry_op(l->registry, (kiln_op_id)id);
    l->found[id] = i % 3 ? op : kiln_registry_find_exact(l->registry, op->full_name);
  }
  return NULL;
}

static void threads_find_the_same(void **state) {
  (void)state;
  static looker lookers[THREADS];
  kiln_env *env = NULL;
  kiln_registry *registry = NULL;
  pthread_t threads[THREADS];
  assert_ok(kiln_env_create(NULL, &env));
  const size_t bytes = kiln_mem_bytes(env->mem);
  assert_ok(kiln_registry_create(env, &registry));
  for (int i = 0; i < THREADS; i++) {
    lookers[i] = (looker){.registry = registry, .first = i % 2 * 700};
    assert_int_equal(pthread_create(&threads[i], NULL, look_up_all, &lookers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int id = 0; id < KILN_OP__BUILTIN_COUNT; id++) {
    for (int i = 0; i < THREADS; i++) {
      assert_ptr_equal(lookers[i].found[id], lookers[0].found[id]);
      assert_int_equal(lookers[i].found[id]->id, id);
    }
  }
  kiln_registry_destroy(registry);
  assert_int_equal(kiln_mem_bytes(env->mem), bytes);
  kiln_env_destroy(env);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(threads_find_the_same)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
