/* pack_threads_test.c: packed inputs: their order, which copies are kept, shared and given back. */
#include "runtime/pack.h"

#include <pthread.h>

#include "runtime/tensor.h"
#include "test/unit/unit.h"

typedef struct fixture {
  kiln_env *env;
  kiln_call *call;
  kiln_pack_store *store;
} fixture;

static void open_fixture(fixture *f) {
  assert_ok(kiln_env_create(NULL, &f->env));
  assert_ok(kiln_call_create(f->env, &f->call));
  kiln_call_begin(f->call, NULL);
  assert_ok(kiln_pack_store_create(f->env->mem, &f->store));
}
static void close_fixture(fixture *f) {
  kiln_pack_store_destroy(f->store);
  kiln_call_destroy(f->call);
  kiln_env_destroy(f->env);
}

/* w (5, 3) with columns 5 apart: of out[i] += x[k] * w[i][k] in panels of 4. */
static const kiln_kernel_pack panels = {
    .item_size = 4, .rank = 1, .sizes = {3}, .strides = {1}, .columns = 5, .column = 3, .panel = 4};

static kiln_tensor *weight(fixture *f) {
  const int64_t sizes[2] = {5, 3};
  kiln_tensor *t;
  void *data;
  assert_ok(kiln_tensor_create(f->env->mem, NULL, KILN_DTYPE_F32, 2, sizes, &t));
  assert_ok(kiln_tensor_writable_data(t, &data));
  for (int i = 0; i < 15; i++) ((float *)data)[i] = (float)(i + 1);
  return t;
}

static void test_order(void **unused) {
  (void)unused;
  static const float wanted[24] = {1,  4, 7, 10, 2,  5, 8, 11, 3,  6, 9, 12,
                                   13, 0, 0, 0,  14, 0, 0, 0,  15, 0, 0, 0};
  fixture f;
  open_fixture(&f);
  kiln_tensor *t = weight(&f);
  const void *data;
  void *own;
  size_t bytes;
  assert_ok(kiln_pack_take(f.call, NULL, &panels, t, &data, &own, &bytes));
  assert_ptr_equal(data, own);
  assert_int_equal(bytes, sizeof wanted + KILN_KERNEL_PACK_BEHIND);
  assert_memory_equal(data, wanted, sizeof wanted);
  kiln_cache_free(&f.call->cache, own, bytes);
  kiln_tensor_release(t);
  close_fixture(&f);
}

/* Every size of elements, loops outside of the panels and inside: against the page's formula. */
static void test_formula(void **unused) {
  (void)unused;
  for (int size = 1; size <= 8; size *= 2) {
    const kiln_kernel_pack p = {.item_size = size,
                                .rank = 3,
                                .outer = 1,
                                .sizes = {2, 3, 2},
                                .strides = {70, 2, 1},
                                .offset = 3,
                                .columns = 7,
                                .column = 9,
                                .panel = 3};
    uint8_t from[8 * 160], to[8 * 2 * 3 * 3 * 2 * 3 + KILN_KERNEL_PACK_BEHIND];
    size_t bytes;
    for (size_t i = 0; i < sizeof from; i++) from[i] = (uint8_t)(i * 37 + 1);
    assert_true(kiln_pack_bytes(&p, &bytes));
    assert_int_equal(bytes, 2 * 3 * 3 * 2 * 3 * size + KILN_KERNEL_PACK_BEHIND);
    kiln_pack_copy(&p, from, to);
    int at = 0;
    for (int a = 0; a < 2; a++) {
      for (int panel = 0; panel < 3; panel++) {
        for (int b = 0; b < 3; b++) {
          for (int c = 0; c < 2; c++) {
            for (int j = 0; j < 3; j++, at++) {
              static const uint8_t zeros[8] = {0};
              const int column = 3 * panel + j;
              const uint8_t *wanted = from + (3 + 70 * a + 2 * b + c + 9 * column) * size;
              assert_memory_equal(to + at * size, column < 7 ? wanted : zeros, (size_t)size);
            }
          }
        }
      }
    }
  }
  const kiln_kernel_pack large = {
      .item_size = 8, .rank = 2, .sizes = {INT64_MAX, 2}, .columns = 9, .column = 1, .panel = 4};
  size_t bytes;
  assert_false(kiln_pack_bytes(&large, &bytes));
}

/* Place `i` of a dimension with zeros around `count` elements: the element, or -1. */
static int element_at(int i, int before, int count) {
  const int at = i - before;
  return at >= count ? -1 : at;
}

/* Zeros around: 2 planes of 3 rows of 4, the rows last first. */
static void test_borders(void **unused) {
  (void)unused;
  for (int turn = 0; turn < 8; turn++) {
    const int lead = turn & 1 ? 3 : 0, before = turn & 2 ? 1 : 0, after = turn & 4 ? 2 : 0;
    const int rows = before + 3 + after, wide = lead + 4 + 2;
    const kiln_kernel_pack p = {.item_size = 4,
                                .rank = 2,
                                .sizes = {2, rows},
                                .strides = {12, -4},
                                .before = {0, before},
                                .after = {0, after},
                                .offset = 8,
                                .columns = 4,
                                .column = 1,
                                .panel = wide,
                                .columns_before = lead};
    float from[24], to[512];
    size_t bytes;
    for (int i = 0; i < 24; i++) from[i] = (float)(i + 1);
    memset(to, 0x7f, sizeof to);
    assert_true(kiln_pack_bytes(&p, &bytes) && bytes <= sizeof to);
    kiln_pack_copy(&p, from, to);
    for (int k = 0, at = 0; k < 2; k++) {
      for (int i = 0; i < rows; i++) {
        for (int j = 0; j < wide; j++, at++) {
          const int row = element_at(i, before, 3), column = element_at(j, lead, 4);
          const float wanted = row < 0 || column < 0 ? 0 : from[12 * k + 4 * (2 - row) + column];
          assert_true(to[at] == wanted);
        }
      }
    }
  }
}

static const void *take(fixture *f, kiln_pack_slot *slot, kiln_tensor *t) {
  const void *data;
  void *own;
  size_t bytes;
  assert_ok(kiln_pack_take(f->call, slot, &panels, t, &data, &own, &bytes));
  if (!own) return data;
  kiln_cache_free(&f->call->cache, own, bytes);
  return NULL;
}

/* Two kernels share a copy, which a write makes stale, and which goes with the last of them. */
static void test_kept(void **unused) {
  (void)unused;
  fixture f;
  open_fixture(&f);
  kiln_tensor *t = weight(&f), *other = weight(&f);
  assert_null(take(&f, NULL, t)); /* the call's cache has a block then */
  const size_t before = kiln_mem_bytes(f.env->mem);
  kiln_pack_slot a = {.store = f.store}, b = a, c = a;
  void *data;
  const void *copy = take(&f, &a, t);
  assert_non_null(copy);
  assert_ptr_equal(take(&f, &a, t), copy);
  assert_ptr_equal(take(&f, &b, t), copy);
  assert_null(take(&f, &a, other)); /* the slot keeps its first tensor */
  assert_ok(kiln_tensor_writable_data(t, &data));
  assert_null(take(&f, &a, t));
  const void *newer = take(&f, &c, t);
  assert_true(newer && newer != copy);
  kiln_pack_slot_release(&a);
  kiln_pack_slot_release(&c);
  kiln_pack_slot_release(&b);
  kiln_pack_slot_release(&b); /* of an empty one: nothing */
  assert_int_equal(kiln_mem_bytes(f.env->mem), before);
  kiln_tensor_release(t);
  kiln_tensor_release(other);
  close_fixture(&f);
}

typedef struct lender {
  kiln_owner owner;
  size_t given_back;
} lender;
static void nothing(kiln_owner *owner) { (void)owner; }
static void count_bytes(kiln_owner *owner, const void *data, size_t bytes) {
  (void)data;
  ((lender *)owner)->given_back += bytes;
}

/* What a host lends and may write at any time is packed again in each call. Else it is told, once,
 * that its memory will hardly be read again. */
static void test_lent(void **unused) {
  (void)unused;
  fixture f;
  open_fixture(&f);
  float memory[15] = {0};
  const int64_t sizes[2] = {5, 3}, strides[2] = {3, 1};
  lender lent = {{.refs = 2, .destroy = nothing, .give_back = count_bytes}, 0};
  for (uint32_t flags = 0; flags <= KILN_STORAGE_READ_ONLY; flags++) {
    kiln_storage *storage;
    kiln_tensor *t;
    kiln_pack_slot slot = {.store = f.store};
    assert_ok(kiln_storage_wrap(f.env->mem, &lent.owner, memory, sizeof memory, flags, &storage));
    assert_ok(
        kiln_tensor_create_on(f.env->mem, NULL, storage, KILN_DTYPE_F32, 2, sizes, strides, 0, &t));
    for (int i = 0; i < 2; i++)
      assert_int_equal(take(&f, &slot, t) != NULL, flags == KILN_STORAGE_READ_ONLY);
    assert_int_equal(lent.given_back, flags == KILN_STORAGE_READ_ONLY ? sizeof memory : 0);
    kiln_pack_slot_release(&slot);
    kiln_tensor_release(t);
    kiln_storage_release(storage);
  }
  close_fixture(&f);
}

/* Instances of a model have storages of their own on its weights: one copy serves them, until one
 * of them writes. */
static void test_instances(void **unused) {
  (void)unused;
  fixture f;
  open_fixture(&f);
  float memory[15] = {1};
  const int64_t sizes[2] = {5, 3}, strides[2] = {3, 1};
  kiln_owner owner = {.refs = 1, .destroy = nothing};
  kiln_tensor *t[2];
  kiln_pack_slot slot = {.store = f.store}, second = slot;
  for (int i = 0; i < 2; i++) {
    kiln_storage *storage;
    assert_ok(kiln_storage_wrap(f.env->mem, &owner, memory, sizeof memory, KILN_STORAGE_READ_ONLY,
                                &storage));
    assert_ok(kiln_tensor_create_on(f.env->mem, NULL, storage, KILN_DTYPE_F32, 2, sizes, strides, 0,
                                    &t[i]));
    kiln_storage_release(storage);
  }
  const void *copy = take(&f, &slot, t[0]);
  assert_non_null(copy);
  assert_ptr_equal(take(&f, &slot, t[1]), copy);
  assert_ptr_equal(take(&f, &second, t[1]), copy);
  void *data;
  assert_ok(kiln_tensor_writable_data(t[0], &data));
  assert_null(take(&f, &slot, t[0])); /* it has memory of its own */
  kiln_tensor_release(t[0]);
  assert_ptr_equal(take(&f, &slot, t[1]), copy);
  kiln_tensor_release(t[1]);
  kiln_pack_slot_release(&slot);
  kiln_pack_slot_release(&second);
  assert_int_equal(owner.refs, 1);
  close_fixture(&f);
}

typedef struct thread_job {
  fixture *f;
  kiln_pack_slot *slot, own;
  kiln_tensor *t;
  const void *shared, *mine;
} thread_job;
static void *run_thread(void *arg) {
  thread_job *job = arg;
  fixture f = *job->f;
  assert_ok(kiln_call_create(f.env, &f.call));
  kiln_call_begin(f.call, NULL);
  job->shared = take(&f, job->slot, job->t);
  job->mine = take(&f, &job->own, job->t);
  kiln_call_destroy(f.call);
  return NULL;
}

static void test_threads(void **unused) {
  (void)unused;
  enum { THREADS = 8, ROUNDS = 50 };
  fixture f;
  open_fixture(&f);
  kiln_tensor *t = weight(&f);
  for (int round = 0; round < ROUNDS; round++) {
    kiln_pack_slot slot = {.store = f.store};
    pthread_t threads[THREADS];
    thread_job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
      jobs[i] = (thread_job){.f = &f, .slot = &slot, .own = {.store = f.store}, .t = t};
      assert_int_equal(pthread_create(&threads[i], NULL, run_thread, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
      /* Who comes while another one adds it to the slot has a copy of the call's. */
      assert_true(!jobs[i].shared || jobs[i].shared == jobs[0].mine);
      assert_ptr_equal(jobs[i].mine, jobs[0].mine);
      kiln_pack_slot_release(&jobs[i].own);
    }
    kiln_pack_slot_release(&slot);
  }
  kiln_tensor_release(t);
  close_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_order),   cmocka_unit_test(test_formula),
      cmocka_unit_test(test_borders), cmocka_unit_test(test_kept),
      cmocka_unit_test(test_lent),    cmocka_unit_test(test_instances),
      cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
