/* tensor_copy_test.c: conversions against bytes that PyTorch made, geometries against index
 * arithmetic, single elements. */
#include <math.h>

#include "test/unit/runtime/tables.h"
#include "test/unit/sweep.h"

static size_t unhex(const char *hex, unsigned char *out) {
  size_t n = 0;
  for (; hex[0] && hex[1]; hex += 2, n++) {
    unsigned byte;
    if (sscanf(hex, "%2x", &byte) != 1) fail();
    out[n] = (unsigned char)byte;
  }
  return n;
}

static bool is_nan_at(kiln_dtype dtype, const unsigned char *p) {
  uint16_t h;
  float f;
  double d;
  switch (dtype) {
    case KILN_DTYPE_F16: memcpy(&h, p, 2); return (h & 0x7fff) > 0x7c00;
    case KILN_DTYPE_BF16: memcpy(&h, p, 2); return (h & 0x7fff) > 0x7f80;
    case KILN_DTYPE_F8E5M2: return (*p & 0x7f) > 0x7c;
    case KILN_DTYPE_F8E4M3: return (*p & 0x7f) == 0x7f;
    case KILN_DTYPE_F32: memcpy(&f, p, 4); return isnan(f);
    case KILN_DTYPE_F64: memcpy(&d, p, 8); return isnan(d);
    default: return false;
  }
}

/* Bits must be equal; of NaNs only that they are. */
static bool same_elements(kiln_dtype dtype, const unsigned char *a, const unsigned char *b,
                          size_t size) {
  kiln_dtype part = kiln_dtype_real(dtype);
  size_t item = kiln_dtype_size(part);
  for (size_t i = 0; i < size; i += item) {
    if (memcmp(a + i, b + i, item) != 0 && !(is_nan_at(part, a + i) && is_nan_at(part, b + i))) {
      return false;
    }
  }
  return true;
}

static kiln_tensor *over(kiln_mem *mem, kiln_dtype dtype, unsigned char *bytes, size_t size) {
  kiln_storage *s;
  kiln_tensor *t;
  int64_t n = (int64_t)(size / kiln_dtype_size(dtype)), one = 1;
  assert_ok(kiln_storage_wrap(mem, NULL, bytes, size, KILN_STORAGE_READ_ONLY, &s));
  static kiln_owner nobody = {.refs = 1};
  s->owner = &nobody;
  kiln_owner_retain(&nobody);
  assert_ok(kiln_tensor_create_on(mem, NULL, s, dtype, 1, &n, &one, 0, &t));
  kiln_storage_release(s);
  return t;
}

static void converts_as_pytorch(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  FILE *file = open_table("convert.txt");
  char from[16], to[16], from_hex[2000], to_hex[2000];
  int rows = 0, wrong = 0;
  while (fscanf(file, "%15s %1999s %15s %1999s", from, from_hex, to, to_hex) == 4) {
    unsigned char source[1001], want[1001];
    size_t source_size = unhex(from_hex, source + 1), want_size = unhex(to_hex, want);
    kiln_dtype dtype = table_dtype(to);
    /* one byte off any alignment: a mapped file may lie so */
    kiln_tensor *src = over(mem, table_dtype(from), source + 1, source_size), *dst;
    assert_ok(kiln_tensor_create(mem, NULL, dtype, 1, kiln_tensor_sizes(src), &dst));
    assert_ok(kiln_tensor_copy(dst, src));
    assert_int_equal((size_t)dst->numel * kiln_dtype_size(dtype), want_size);
    if (!same_elements(dtype, kiln_tensor_data(dst), want, want_size)) {
      print_error("%s to %s differs\n", from, to);
      wrong++;
    }
    kiln_tensor_release(src);
    kiln_tensor_release(dst);
    rows++;
  }
  fclose(file);
  assert_int_equal(rows, 18 * 18);
  assert_int_equal(wrong, 0);
  kiln_mem_release(mem);
}

/* Out of range: what the instructions give, and never undefined. */
static void converts_out_of_range(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  static const struct {
    double value;
    int64_t i64;
    int32_t i32;
    int16_t i16;
    uint8_t u8;
  } cases[] = {
      {NAN, INT64_MIN, INT32_MIN, 0, 0},
      {1e30, INT64_MIN, INT32_MIN, 0, 0},
      {-1e30, INT64_MIN, INT32_MIN, 0, 0},
      {4294967296.0, 4294967296, INT32_MIN, 0, 0},
      {300.7, 300, 300, 300, 44},
      {-1.5, -1, -1, -1, 255},
      {-0x1p63, INT64_MIN, INT32_MIN, 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kiln_tensor *t[4];
    kiln_dtype dtypes[4] = {KILN_DTYPE_I64, KILN_DTYPE_I32, KILN_DTYPE_I16, KILN_DTYPE_U8};
    for (int k = 0; k < 4; k++) {
      assert_ok(kiln_tensor_scalar_f64(mem, dtypes[k], cases[i].value, &t[k]));
    }
    assert_true(*(const int64_t *)kiln_tensor_data(t[0]) == cases[i].i64);
    assert_int_equal(*(const int32_t *)kiln_tensor_data(t[1]), cases[i].i32);
    assert_int_equal(*(const int16_t *)kiln_tensor_data(t[2]), cases[i].i16);
    assert_int_equal(*(const uint8_t *)kiln_tensor_data(t[3]), cases[i].u8);
    for (int k = 0; k < 4; k++) kiln_tensor_release(t[k]);
  }
  kiln_mem_release(mem);
}

/* Element (i, j, k) of both geometries is the same, for every order of dimensions, with steps and
 * broadcast sources, with and without conversion. */
static void any_geometry(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  static const kiln_dtype dtypes[] = {KILN_DTYPE_U8, KILN_DTYPE_I16, KILN_DTYPE_F32, KILN_DTYPE_I64,
                                      KILN_DTYPE_C128};
  int64_t sizes[3] = {3, 5, 7};
  for (int round = 0; round < 6 * 6 * 3 * 5; round++) {
    const int *so = orders[round % 6], *to = orders[round / 6 % 6];
    int64_t step = 1 + round / 36 % 3;
    kiln_dtype dtype = dtypes[round / 108 % 5];
    int64_t ss[3], ds[3];
    ss[so[2]] = step, ss[so[1]] = step * sizes[so[2]];
    ss[so[0]] = round % 4 == 3 ? 0 : ss[so[1]] * sizes[so[1]];
    ds[to[2]] = step, ds[to[1]] = step * sizes[to[2]], ds[to[0]] = ds[to[1]] * sizes[to[1]];
    kiln_tensor *src, *dst, *back;
    assert_ok(kiln_tensor_create_strided(mem, NULL, KILN_DTYPE_I64, 3, sizes, ss, &src));
    assert_ok(kiln_tensor_create_strided(mem, NULL, dtype, 3, sizes, ds, &dst));
    int64_t *in = src->storage->data;
    for (size_t i = 0; i < src->storage->bytes / 8; i++) in[i] = (int64_t)i % 101;
    assert_ok(kiln_tensor_copy(dst, src));
    assert_ok(kiln_tensor_create(mem, NULL, KILN_DTYPE_I64, 3, sizes, &back));
    assert_ok(kiln_tensor_copy(back, dst));
    const int64_t *got = kiln_tensor_data(back);
    for (int64_t i = 0; i < 3; i++) {
      for (int64_t j = 0; j < 5; j++) {
        for (int64_t k = 0; k < 7; k++, got++) {
          assert_true(*got == (i * ss[0] + j * ss[1] + k * ss[2]) % 101);
        }
      }
    }
    kiln_tensor_release(src);
    kiln_tensor_release(dst);
    kiln_tensor_release(back);
  }
  kiln_mem_release(mem);
}

static void long_rows_and_overlap(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  int64_t n = 1000, m = 999, one = 1, zero = 0;
  kiln_tensor *a, *b, *head, *tail, *wide;
  assert_ok(kiln_tensor_create(mem, NULL, KILN_DTYPE_I32, 1, &n, &a));
  assert_ok(kiln_tensor_create(mem, NULL, KILN_DTYPE_F64, 1, &n, &b));
  for (int i = 0; i < 1000; i++) ((int32_t *)a->storage->data)[i] = i * i;
  assert_ok(kiln_tensor_copy(b, a));
  assert_int_equal(b->storage->version, 1);
  for (int i = 0; i < 1000; i++) assert_true(((double *)b->storage->data)[i] == i * i);
  assert_ok(kiln_tensor_view(NULL, a, 1, &m, &one, 0, &head));
  assert_ok(kiln_tensor_view(NULL, a, 1, &m, &one, 1, &tail));
  assert_ok(kiln_tensor_copy(tail, head)); /* as if head were read first */
  for (int i = 1; i < 1000; i++) {
    assert_int_equal(((int32_t *)a->storage->data)[i], (i - 1) * (i - 1));
  }
  assert_error(kiln_tensor_copy(head, a), KILN_OP_ERROR, "sizes [1000] cannot be copied");
  assert_ok(kiln_tensor_view(NULL, a, 1, &n, &zero, 0, &wide));
  assert_error(kiln_tensor_copy(wide, b), KILN_OP_ERROR, "more than one element");
  kiln_tensor *all[] = {a, b, head, tail, wide};
  for (int i = 0; i < 5; i++) kiln_tensor_release(all[i]);
  kiln_mem_release(mem);
}

static void items(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_tensor *t;
  double f;
  int64_t i, two = 2;
  assert_ok(kiln_tensor_scalar_f64(mem, KILN_DTYPE_F16, -2.75, &t));
  assert_ok(kiln_tensor_item_f64(t, &f));
  assert_true(f == -2.75);
  assert_ok(kiln_tensor_item_i64(t, &i));
  assert_int_equal(i, -2);
  kiln_tensor_release(t);
  assert_ok(kiln_tensor_scalar_i64(mem, KILN_DTYPE_I64, INT64_MAX, &t));
  assert_ok(kiln_tensor_item_i64(t, &i));
  assert_true(i == INT64_MAX);
  kiln_tensor_release(t);
  assert_ok(kiln_tensor_scalar_f64(mem, KILN_DTYPE_F64, 1e300, &t));
  assert_error(kiln_tensor_item_i64(t, &i), KILN_OP_ERROR, "without overflow");
  kiln_tensor_release(t);
  assert_ok(kiln_tensor_create(mem, NULL, KILN_DTYPE_F32, 1, &two, &t));
  assert_error(kiln_tensor_item_f64(t, &f), KILN_OP_ERROR,
               "a Tensor with 2 elements cannot be converted to Scalar");
  kiln_tensor_release(t);
  assert_ok(kiln_tensor_create(mem, NULL, KILN_DTYPE_C64, 0, NULL, &t));
  memcpy(t->storage->data, (float[]){1, 2}, 8);
  assert_error(kiln_tensor_item_f64(t, &f), KILN_OP_ERROR, "without overflow");
  kiln_tensor_release(t);
  assert_error(kiln_tensor_scalar_f64(mem, KILN_DTYPE_QI8, 1, &t), KILN_UNSUPPORTED, NULL);
  assert_ok(kiln_tensor_undefined(mem, &t));
  assert_error(kiln_tensor_item_f64(t, &f), KILN_OP_ERROR, "0 elements");
  void *data;
  assert_error(kiln_tensor_writable_data(t, &data), KILN_OP_ERROR, "undefined");
  kiln_tensor_release(t);
  kiln_mem_release(mem);
}

static kiln_status *copies(kiln_mem *mem, void *arg) {
  (void)arg;
  int64_t sizes[2] = {20, 30}, strides[2] = {1, 20};
  kiln_tensor *a = NULL, *b = NULL;
  kiln_status *status =
      kiln_tensor_create_strided(mem, NULL, KILN_DTYPE_F32, 2, sizes, strides, &a);
  if (!status) memset(a->storage->data, 0, a->storage->bytes);
  if (!status) status = kiln_tensor_contiguous(NULL, a, &b);
  kiln_tensor_release(a);
  kiln_tensor_release(b);
  return status;
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  sweep(copies, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(converts_as_pytorch),
      cmocka_unit_test(converts_out_of_range),
      cmocka_unit_test(any_geometry),
      cmocka_unit_test(long_rows_and_overlap),
      cmocka_unit_test(items),
      cmocka_unit_test(survives_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
