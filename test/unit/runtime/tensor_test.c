/* tensor_test.c: making, sharing, writing and releasing tensors; shapes. */
#include "runtime/tensor.h"

#include "runtime/type.h"
#include "test/unit/runtime/tables.h"
#include "test/unit/sweep.h"

static void layouts(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  static const struct {
    int rank;
    int64_t sizes[4], strides[4];
    kiln_layout_class layout;
  } cases[] = {
      {2, {2, 3}, {3, 1}, KILN_LAYOUT_CONTIGUOUS},
      {2, {2, 3}, {1, 2}, KILN_LAYOUT_STRIDED},
      {2, {1, 3}, {7, 1}, KILN_LAYOUT_CONTIGUOUS}, /* strides of size 1 do not count */
      {2, {3, 0}, {1, 5}, KILN_LAYOUT_CONTIGUOUS},
      {1, {3}, {0}, KILN_LAYOUT_STRIDED},
      {1, {1}, {0}, KILN_LAYOUT_CONTIGUOUS},
      {4, {2, 3, 4, 5}, {60, 1, 15, 3}, KILN_LAYOUT_CHANNELS_LAST},
      {4, {2, 1, 4, 5}, {20, 1, 5, 1}, KILN_LAYOUT_CONTIGUOUS}, /* both: contiguous wins */
      {4, {2, 3, 4, 5}, {60, 1, 3, 12}, KILN_LAYOUT_STRIDED},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kiln_tensor *t;
    assert_ok(kiln_tensor_create_strided(mem, NULL, KILN_DTYPE_F32, cases[i].rank, cases[i].sizes,
                                         cases[i].strides, &t));
    assert_int_equal(t->key.f.layout, cases[i].layout);
    kiln_tensor_release(t);
  }
  kiln_mem_release(mem);
}

static void sizes_are_checked(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_tensor *t;
  assert_error(kiln_tensor_create(mem, NULL, KILN_DTYPE_F32, 1, (int64_t[]){-1}, &t), KILN_OP_ERROR,
               "negative dimension -1: [-1]");
  int64_t huge[3] = {INT64_C(1) << 31, INT64_C(1) << 31, 4};
  assert_error(kiln_tensor_create(mem, NULL, KILN_DTYPE_F32, 3, huge, &t), KILN_OP_ERROR, "large");
  huge[2] = 0; /* empty, but its strides would overflow */
  huge[0] = huge[1] = INT64_C(1) << 40;
  assert_error(kiln_tensor_create(mem, NULL, KILN_DTYPE_F32, 3, huge, &t), KILN_OP_ERROR, "large");
  int64_t wide[2] = {INT64_C(1) << 61, 1};
  assert_error(kiln_tensor_create(mem, NULL, KILN_DTYPE_F64, 2, wide, &t), KILN_OP_ERROR, "large");
  int64_t ones[KILN_MAX_RANK + 1];
  for (int i = 0; i <= KILN_MAX_RANK; i++) ones[i] = 1;
  assert_error(kiln_tensor_create(mem, NULL, KILN_DTYPE_F32, KILN_MAX_RANK + 1, ones, &t),
               KILN_OP_ERROR, "65 dimensions");
  assert_ok(kiln_tensor_create(mem, NULL, KILN_DTYPE_F32, KILN_MAX_RANK, ones, &t));
  assert_int_equal(t->numel, 1);
  kiln_tensor_release(t);
  assert_error(
      kiln_tensor_create_strided(mem, NULL, KILN_DTYPE_F32, 1, (int64_t[]){4}, (int64_t[]){-1}, &t),
      KILN_OP_ERROR, NULL);
  kiln_mem_release(mem);
}

static void within_a_storage(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_storage *s;
  kiln_tensor *t;
  assert_ok(kiln_storage_create(mem, NULL, 40, &s));
  int64_t sizes[2] = {2, 5}, strides[2] = {5, 1};
  assert_ok(kiln_tensor_create_on(mem, NULL, s, KILN_DTYPE_F32, 2, sizes, strides, 0, &t));
  kiln_tensor_release(t);
  assert_error(kiln_tensor_create_on(mem, NULL, s, KILN_DTYPE_F32, 2, sizes, strides, 1, &t),
               KILN_OP_ERROR, "out of bounds for storage of size 40");
  strides[0] = 6;
  assert_error(kiln_tensor_create_on(mem, NULL, s, KILN_DTYPE_F32, 2, sizes, strides, 0, &t),
               KILN_OP_ERROR, "out of bounds");
  strides[0] = INT64_MAX;
  assert_error(kiln_tensor_create_on(mem, NULL, s, KILN_DTYPE_F32, 2, sizes, strides, 0, &t),
               KILN_OP_ERROR, NULL);
  sizes[0] = 0; /* nothing is reached, whatever the strides and offset */
  assert_ok(kiln_tensor_create_on(mem, NULL, s, KILN_DTYPE_F32, 2, sizes, strides, 1000, &t));
  kiln_tensor_release(t);
  assert_error(kiln_tensor_create_on(mem, NULL, s, KILN_DTYPE_F32, 2, sizes, strides, -1, &t),
               KILN_OP_ERROR, NULL);
  kiln_storage_release(s);
  kiln_mem_release(mem);
}

/* A stride that nobody steps by ends where its bytes are still an int64, however it was made. */
static void strides_have_an_end(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_storage *s;
  kiln_tensor *t[5];
  const int64_t one = 1, wide[3] = {0, INT64_MAX / 4, 2}, far = INT64_MAX, steps[3] = {far, 2, 1};
  assert_ok(kiln_storage_create(mem, NULL, 64, &s));
  assert_ok(kiln_tensor_create_on(mem, NULL, s, KILN_DTYPE_C128, 1, &one, &far, 0, &t[0]));
  assert_ok(kiln_tensor_view(NULL, t[0], 1, &one, &far, 1, &t[1]));
  assert_ok(kiln_tensor_view(NULL, t[0], 1, &one, &one, 0, &t[2]));
  assert_ok(kiln_tensor_set(t[2], s, KILN_DTYPE_C128, 3, wide, steps, 0));
  assert_ok(kiln_tensor_create(mem, NULL, KILN_DTYPE_F32, 3, wide, &t[3]));
  assert_ok(kiln_tensor_create_strided(mem, NULL, KILN_DTYPE_F32, 1, &one, &far, &t[4]));
  for (int i = 0; i < 5; i++) {
    assert_int_equal(kiln_tensor_strides(t[i])[0], KILN_STRIDE_MAX);
    kiln_tensor_release(t[i]);
  }
  const int64_t two = 2;
  assert_error(kiln_tensor_create_on(mem, NULL, s, KILN_DTYPE_U8, 1, &two, &far, 0, &t[0]),
               KILN_OP_ERROR, NULL);
  kiln_storage_release(s);
  kiln_mem_release(mem);
}

/* A view keeps a small tensor's block when the tensor itself is gone, and sees writes. */
static void views_outlive_their_base(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_cache cache;
  kiln_cache_init(&cache, mem, 1 << 20);
  for (int big = 0; big < 2; big++) {
    int64_t sizes[2] = {2, big ? 5000 : 5}, n = sizes[1];
    kiln_tensor *base, *view;
    void *data;
    assert_ok(kiln_tensor_create(mem, &cache, KILN_DTYPE_I64, 2, sizes, &base));
    assert_int_equal((uintptr_t)kiln_tensor_data(base) % 64, 0);
    assert_ok(kiln_tensor_view(&cache, base, 1, &sizes[1], (int64_t[]){1}, n, &view));
    assert_ok(kiln_tensor_writable_data(base, &data));
    for (int64_t i = 0; i < 2 * n; i++) ((int64_t *)data)[i] = i;
    assert_int_equal(((const int64_t *)kiln_tensor_data(view))[3], n + 3);
    kiln_tensor_release_to(big ? NULL : &cache, base);
    assert_int_equal(((const int64_t *)kiln_tensor_data(view))[3], n + 3);
    assert_int_equal(view->storage->version, 1);
    kiln_tensor_release_to(&cache, view);
  }
  kiln_cache_deinit(&cache);
  kiln_mem_release(mem);
}

typedef struct lender {
  kiln_owner base;
  int destroyed;
} lender;

static void destroy_lender(kiln_owner *owner) { ((lender *)owner)->destroyed++; }

/* Mapped memory: read in place, copied by the first write, for all views at once. */
static void read_only_storages(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  float file[6] = {0, 1, 2, 3, 4, 5};
  lender owner = {.base = {.refs = 1, .destroy = destroy_lender}};
  kiln_storage *s;
  kiln_tensor *a, *b;
  int64_t six = 6, two = 2, one = 1;
  assert_ok(kiln_storage_wrap(mem, &owner.base, file, sizeof file, KILN_STORAGE_READ_ONLY, &s));
  assert_ok(kiln_tensor_create_on(mem, NULL, s, KILN_DTYPE_F32, 1, &six, &one, 0, &a));
  assert_ok(kiln_tensor_view(NULL, a, 1, &two, &one, 4, &b));
  kiln_storage_release(s);
  kiln_owner_release(&owner.base);
  assert_ptr_equal(kiln_tensor_data(a), file);
  void *data;
  assert_ok(kiln_tensor_writable_data(b, &data));
  assert_int_equal(owner.destroyed, 1);
  ((float *)data)[0] = 40;
  assert_true(file[4] == 4);
  assert_true(((const float *)kiln_tensor_data(a))[4] == 40);
  assert_true(((const float *)kiln_tensor_data(a))[3] == 3);
  kiln_tensor_release(a);
  kiln_tensor_release(b);
  kiln_mem_release(mem);
}

/* Both sides of a share read one memory until one writes; the last one left does not copy. */
static void shared_storages(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  for (size_t bytes = 64; bytes <= 65536; bytes *= 1024) {
    kiln_storage *a, *b, *c;
    assert_ok(kiln_storage_create(mem, NULL, bytes, &a));
    memset(a->data, 1, bytes);
    assert_ok(kiln_storage_share(a, &b));
    assert_ok(kiln_storage_share(a, &c));
    if (bytes > 4096) assert_ptr_equal(a->data, b->data);
    assert_ok(kiln_storage_make_writable(a));
    memset(a->data, 2, bytes);
    assert_int_equal(((char *)b->data)[bytes - 1], 1);
    assert_int_equal(((char *)c->data)[bytes - 1], 1);
    kiln_storage_release(c);
    const void *before = b->data;
    assert_ok(kiln_storage_make_writable(b));
    assert_ptr_equal(b->data, before);
    kiln_storage_release(a);
    kiln_storage_release(b);
  }
  kiln_mem_release(mem);
}

static void set_and_resize(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_tensor *t, *other;
  int64_t two = 2, eight[8] = {2, 1, 1, 1, 1, 1, 1, 3};
  assert_ok(kiln_tensor_create(mem, NULL, KILN_DTYPE_F32, 1, &two, &t));
  void *data;
  assert_ok(kiln_tensor_writable_data(t, &data));
  ((float *)data)[0] = 7;
  assert_ok(kiln_tensor_resize(t, 8, eight)); /* grows, keeps what was there, leaves inline dims */
  assert_int_equal(t->numel, 6);
  assert_true(*(const float *)kiln_tensor_data(t) == 7);
  assert_int_equal(kiln_tensor_strides(t)[0], 3);
  assert_ok(kiln_tensor_resize(t, 1, &two));
  assert_int_equal(kiln_tensor_rank(t), 1);
  /* Another storage and back: the first block lives as long as the tensor. */
  assert_ok(kiln_tensor_create(mem, NULL, KILN_DTYPE_I64, 1, &two, &other));
  kiln_storage *own = t->storage;
  int64_t one = 1;
  assert_ok(kiln_tensor_set(t, other->storage, KILN_DTYPE_I64, 1, &two, &one, 0));
  assert_int_equal(kiln_tensor_dtype(t), KILN_DTYPE_I64);
  assert_ok(
      kiln_tensor_set(t, own, KILN_DTYPE_F32, 1, kiln_tensor_sizes(t), kiln_tensor_strides(t), 0));
  assert_true(*(const float *)kiln_tensor_data(t) == 7);
  assert_ok(kiln_tensor_set(t, other->storage, KILN_DTYPE_I64, 1, &two, &one, 0));
  kiln_tensor_release(other);
  kiln_tensor_release(t);
  kiln_mem_release(mem);
}

/* -- Side structures -- */

typedef struct counted_side {
  kiln_side side;
  int *alive;
} counted_side;
static void destroy_counted(kiln_side *side) {
  --*((counted_side *)(void *)side)->alive;
  free(side);
}
static kiln_side *make_side(kiln_side_kind kind, int *alive) {
  counted_side *made = calloc(1, sizeof *made);
  made->side = (kiln_side){.refs = 1, .kind = kind, .destroy = destroy_counted};
  made->alive = alive;
  ++*alive;
  return &made->side;
}

/* Small tensors are one block, which goes back to a cache as it is: not with something on it. */
static void side_structures(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_cache cache;
  kiln_cache_init(&cache, mem, 1 << 20);
  int alive = 0;
  int64_t two = 2, one = 1;
  kiln_tensor *t, *copy, *more, *view;
  for (int i = 0; i < 3; i++) {
    assert_ok(kiln_tensor_create(mem, &cache, KILN_DTYPE_U8, 1, &two, &t));
    assert_null(t->sides);
    kiln_side *quant = make_side(KILN_SIDE_QUANT, &alive);
    kiln_tensor_attach(t, quant);
    assert_ptr_equal(kiln_tensor_side(t, KILN_SIDE_QUANT), quant);
    assert_null(kiln_tensor_side(t, KILN_SIDE_NESTED));
    /* A copy shares what hangs there; what is hung on the copy is its own. */
    assert_ok(kiln_tensor_create(mem, &cache, KILN_DTYPE_U8, 1, &two, &copy));
    kiln_tensor_share_sides(copy, t);
    kiln_side *nested = make_side(KILN_SIDE_NESTED, &alive);
    kiln_tensor_attach(copy, nested);
    copy->key.f.layout = KILN_LAYOUT_NESTED;
    assert_ptr_equal(kiln_tensor_side(copy, KILN_SIDE_NESTED), nested);
    assert_ptr_equal(kiln_tensor_side(copy, KILN_SIDE_QUANT), quant);
    assert_null(kiln_tensor_side(t, KILN_SIDE_NESTED));
    /* The layout class goes along: without it nobody would ask. */
    assert_ok(kiln_tensor_create(mem, &cache, KILN_DTYPE_U8, 1, &two, &more));
    kiln_tensor_share_sides(more, copy);
    assert_int_equal(more->key.f.layout, KILN_LAYOUT_NESTED);
    /* A view has none, and a write leaves them. */
    assert_ok(kiln_tensor_view(&cache, t, 1, &one, &one, 1, &view));
    assert_null(view->sides);
    void *data;
    assert_ok(kiln_tensor_writable_data(more, &data));
    assert_ptr_equal(kiln_tensor_side(more, KILN_SIDE_NESTED), nested);
    kiln_tensor_release_to(&cache, t);
    kiln_tensor_release_to(&cache, copy);
    assert_int_equal(alive, 2); /* the last holder has both */
    if (i == 0) {               /* new geometry: they are not its own any more */
      assert_ok(kiln_tensor_set(more, more->storage, KILN_DTYPE_U8, 1, &one, &one, 0));
      assert_null(more->sides);
      assert_int_equal(more->key.f.layout, KILN_LAYOUT_CONTIGUOUS);
      assert_int_equal(alive, 0);
    }
    kiln_tensor_release_to(&cache, more);
    assert_int_equal(alive, 0);
    kiln_tensor_release_to(&cache, view);
  }
  kiln_cache_deinit(&cache);
  kiln_mem_release(mem);
}

static void shapes(void **state) {
  (void)state;
  int64_t out[KILN_MAX_RANK], a[3] = {2, 1, 3}, b[2] = {4, 1}, c[2] = {4, 2}, zero[1] = {0};
  int rank, dim;
  assert_ok(kiln_broadcast(3, a, 2, b, &rank, out));
  assert_int_equal(rank, 3);
  assert_true(out[0] == 2 && out[1] == 4 && out[2] == 3);
  assert_error(kiln_broadcast(3, a, 2, c, &rank, out), KILN_OP_ERROR,
               "The size of tensor a (3) must match the size of tensor b (2) at non-singleton "
               "dimension 2");
  assert_ok(kiln_broadcast(1, zero, 2, b, &rank, out));
  assert_true(out[0] == 4 && out[1] == 0);
  assert_ok(kiln_broadcast(0, NULL, 0, NULL, &rank, out));
  assert_int_equal(rank, 0);
  assert_ok(kiln_wrap_dim(-2, 2, &dim));
  assert_int_equal(dim, 0);
  assert_ok(kiln_wrap_dim(-1, 0, &dim));
  assert_int_equal(dim, 0);
  assert_error(kiln_wrap_dim(2, 2, &dim), KILN_OP_ERROR,
               "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
  assert_error(kiln_wrap_dim(INT64_MIN, 3, &dim), KILN_OP_ERROR, NULL);
}

static kiln_status *life(kiln_mem *mem, void *arg) {
  (void)arg;
  int64_t sizes[8] = {2, 3, 1, 1, 1, 1, 1, 2}, big[1] = {3000};
  kiln_tensor *t = NULL, *v = NULL, *u = NULL;
  kiln_storage *share = NULL;
  void *data;
  kiln_status *status = kiln_tensor_create(mem, NULL, KILN_DTYPE_F32, 8, sizes, &t);
  if (!status) status = kiln_tensor_alias(NULL, t, &v);
  if (!status) status = kiln_tensor_create(mem, NULL, KILN_DTYPE_F64, 1, big, &u);
  if (!status) status = kiln_storage_share(u->storage, &share);
  if (!status) status = kiln_tensor_writable_data(u, &data);
  if (!status) status = kiln_tensor_resize(v, 1, big);
  if (!status) status = kiln_tensor_resize(u, 8, sizes);
  kiln_storage_release(share);
  kiln_tensor_release(u);
  kiln_tensor_release(v);
  kiln_tensor_release(t);
  return status;
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  sweep(life, NULL);
}

/* An allocator may give the struct and what it grows into side by side. */
static void storages_beside_their_data(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  enum { COUNT = 64 };
  const size_t before = kiln_mem_bytes(mem);
  kiln_storage *storages[COUNT];
  for (int i = 0; i < COUNT; i++) {
    assert_ok(kiln_storage_create(mem, NULL, 0, &storages[i]));
    assert_ok(kiln_storage_grow(storages[i], sizeof *storages[i]));
  }
  for (int i = 0; i < COUNT; i++) kiln_storage_release(storages[i]);
  assert_int_equal(kiln_mem_bytes(mem), before);
  kiln_mem_release(mem);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layouts),
      cmocka_unit_test(sizes_are_checked),
      cmocka_unit_test(within_a_storage),
      cmocka_unit_test(strides_have_an_end),
      cmocka_unit_test(views_outlive_their_base),
      cmocka_unit_test(read_only_storages),
      cmocka_unit_test(shared_storages),
      cmocka_unit_test(set_and_resize),
      cmocka_unit_test(side_structures),
      cmocka_unit_test(storages_beside_their_data),
      cmocka_unit_test(shapes),
      cmocka_unit_test(survives_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
