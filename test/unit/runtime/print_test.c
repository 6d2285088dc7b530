/* print_test.c: what a TorchScript program prints, against PyTorch's output: 1.13's, of
 * sparse tensors 2.15's. */
#include <locale.h>
#include <math.h>

#include "runtime/structure.h"
#include "runtime/value.h"
#include "test/unit/runtime/tables.h"
#include "test/unit/sweep.h"

/* The same elements as another dtype; takes `t`. */
static kiln_tensor *as_dtype(kiln_mem *mem, kiln_tensor *t, kiln_dtype dtype) {
  kiln_tensor *made;
  assert_ok(kiln_tensor_create(mem, NULL, dtype, kiln_tensor_rank(t), kiln_tensor_sizes(t), &made));
  assert_ok(kiln_tensor_copy(made, t));
  kiln_tensor_release(t);
  return made;
}
/* And without the zeros. */
static kiln_tensor *as_sparse(kiln_mem *mem, kiln_tensor *t, kiln_dtype dtype) {
  const int rank = kiln_tensor_rank(t);
  const double *data = t->storage->data;
  int64_t count = 0;
  for (int64_t i = 0; i < t->numel; i++) count += data[i] != 0;
  kiln_tensor *indices, *values, *made;
  assert_ok(kiln_tensor_create(mem, NULL, KILN_DTYPE_I64, 2, (int64_t[]){rank, count}, &indices));
  assert_ok(kiln_tensor_create(mem, NULL, KILN_DTYPE_F64, 1, &count, &values));
  int64_t *to = indices->storage->data;
  double *value = values->storage->data;
  for (int64_t i = 0; i < t->numel; i++) {
    if (data[i] == 0) continue;
    int64_t rest = i;
    for (int d = rank - 1; d >= 0; d--) {
      to[d * count] = rest % kiln_tensor_sizes(t)[d];
      rest /= kiln_tensor_sizes(t)[d];
    }
    to++;
    *value++ = data[i];
  }
  values = as_dtype(mem, values, dtype);
  assert_ok(
      kiln_sparse_tensor(mem, NULL, rank, kiln_tensor_sizes(t), indices, values, true, &made));
  kiln_tensor_release(indices);
  kiln_tensor_release(values);
  kiln_tensor_release(t);
  return made;
}

/* "case F32 2x3 hex..." makes a tensor, "sparse F32 2x3 hex..." a sparse one. */
static kiln_tensor *read_case(kiln_mem *mem, char *line) {
  int64_t sizes[8];
  int rank = 0;
  char *save, *save2;
  const bool sparse = strcmp(strtok_r(line, " \n", &save), "sparse") == 0;
  kiln_dtype dtype = table_dtype(strtok_r(NULL, " \n", &save));
  char *shape = strtok_r(NULL, " \n", &save);
  for (char *s = strtok_r(shape, "x", &save2); s && *s != '-'; s = strtok_r(NULL, "x", &save2)) {
    sizes[rank++] = atoll(s);
  }
  kiln_tensor *wide;
  assert_ok(kiln_tensor_create(mem, NULL, KILN_DTYPE_F64, rank, sizes, &wide));
  double *data = wide->storage->data;
  for (char *v = strtok_r(NULL, " \n", &save); v; v = strtok_r(NULL, " \n", &save)) {
    *data++ = strtod(v, NULL);
  }
  assert_int_equal(data - (double *)wide->storage->data, wide->numel);
  return sparse ? as_sparse(mem, wide, dtype) : as_dtype(mem, wide, dtype);
}

static kiln_status *tensors_as_pytorch(void *arg) {
  kiln_arena *arena = arg;
  kiln_mem *mem = kiln_arena_mem(arena);
  FILE *file = open_table("prints.txt");
  static char line[100000];
  int cases = 0, wrong = 0;
  while (fgets(line, sizeof line, file)) {
    kiln_tensor *t = read_case(mem, line);
    kiln_text want, got;
    want = kiln_text_in(arena);
    got = kiln_text_in(arena);
    while (fgets(line, sizeof line, file) && strcmp(line, "end\n") != 0) {
      kiln_text_puts(&want, line);
    }
    kiln_tensor_print(&got, t);
    kiln_text_putc(&got, '\n');
    if (strcmp(got.data, want.data) != 0) {
      print_error("case %d is\n%swhere PyTorch has\n%s", cases, got.data, want.data);
      wrong++;
    }
    kiln_tensor_release(t);
    cases++;
  }
  fclose(file);
  assert_int_equal(cases, 57);
  assert_int_equal(wrong, 0);
  return NULL;
}

static kiln_status *print_values(void *arg) {
  kiln_arena *arena = arg;
  kiln_mem *mem = kiln_arena_mem(arena);
  static const struct {
    double f;
    const char *text;
  } floats[] = {{1, "1."},
                {-0.0, "0."},
                {0.1, "0.10000000000000001"},
                {2.5e-7, "2.4999999999999999e-07"},
                {1e9, "1000000000."},
                {9999999999.0, "9999999999."},
                {1e10, "10000000000."},
                {1e18, "1000000000000000000."},
                {123456789012345678.0, "123456789012345680."},
                {0x1p63, "9.2233720368547758e+18"},
                {-0x1p63, "-9223372036854775808."},
                {1e19, "1e+19"},
                {1e20, "1e+20"},
                {12345678912.5, "12345678912.5"},
                {123456.789, "123456.789"},
                {NAN, "nan"},
                {-INFINITY, "-inf"}};
  kiln_text text;
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
    text = kiln_text_in(arena);
    kiln_ivalue_print(&text, kiln_float(floats[i].f));
    assert_string_equal(text.data, floats[i].text);
  }
  /* {1: ([a, None], 0.5-2.j), True...}: strings have no quotes, one-element tuples a comma */
  kiln_dict *d;
  kiln_list *list;
  kiln_string *s;
  kiln_tuple *one;
  kiln_complex *c;
  assert_ok(kiln_dict_create(mem, NULL, NULL, &d));
  assert_ok(kiln_list_create(mem, NULL, 0, &list));
  assert_ok(kiln_string_create(mem, KILN_STR("it's\n"), &s));
  assert_ok(kiln_tuple_create(mem, NULL, 1, &one));
  assert_ok(kiln_complex_create(mem, 0.5, -2, &c));
  assert_ok(kiln_list_push(list, kiln_of_box(s)));
  assert_ok(kiln_list_push(list, kiln_none()));
  assert_ok(kiln_list_push(list, kiln_of_box(c)));
  one->items[0] = kiln_of_box(list);
  assert_ok(kiln_dict_set(d, kiln_int(-3), kiln_of_box(one)));
  assert_ok(kiln_dict_set(d, kiln_bool(true), kiln_device_value((kiln_device_id){1, 2})));
  text = kiln_text_in(arena);
  kiln_ivalue_print(&text, kiln_of_box(d));
  assert_string_equal(text.data, "{-3: ([it's\n, None, 0.5-2.j],), True: cuda:2}");
  kiln_ivalue_release(kiln_of_box(d));
  kiln_tensor *t;
  assert_ok(kiln_tensor_undefined(mem, &t));
  text = kiln_text_in(arena);
  kiln_tensor_print(&text, t);
  assert_string_equal(text.data, "[ Tensor (undefined) ]");
  kiln_tensor_release(t);
  return NULL;
}

static void run(kiln_status *(*body)(void *arg)) {
  kiln_mem *mem = test_mem();
  kiln_arena *arena;
  assert_ok(kiln_arena_create(mem, &arena));
  assert_ok(body(arena));
  kiln_arena_destroy(arena);
  kiln_mem_release(mem);
}

static void tensors(void **state) {
  (void)state;
  run(tensors_as_pytorch);
}
static void values(void **state) {
  (void)state;
  run(print_values);
}

int main(void) {
  setlocale(LC_ALL, "de_DE.UTF-8"); /* where it is installed: a comma must not show */
  const struct CMUnitTest tests[] = {cmocka_unit_test(tensors), cmocka_unit_test(values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
