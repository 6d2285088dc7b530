/* loading_test.c: where archives come from (path, descriptor, memory), who shares them, what
 * becomes of files that change, checksums, devices and limits of a load.
 *
 * test/data/load is made by test/make/loads.py; the models add their weight, 1 to 6, and 1. */
#include <fcntl.h>
#include <time.h>

#include "base/refs.h"
#include "test/unit/api/fixture.h"
#include "test/unit/files.h"

enum { COMMENT = 65000 };

static char warnings[4096];

static void keep_line(void *user, const char *channel, int level, const char *line) {
  (void)user;
  (void)level;
  size_t at = strlen(warnings);
  snprintf(warnings + at, sizeof warnings - at, "%s: %s\n", channel, line);
}

/* Its warnings about loads are kept. */
static kiln_context *warned_context(const char *name, const char *value) {
  kiln_context *context = context_with(name, value);
  assert_ok(kiln_context_set(context, "log", "load=1", NULL));
  warnings[0] = 0;
  kiln_context_set_log(context, keep_line, NULL);
  return context;
}

/* The plain archive with a long comment, so that it is large enough to be mapped. */
static size_t make_large(unsigned char *data, size_t capacity) {
  size_t size = read_file(TEST_DATA "/load/plain.pt", data, capacity);
  assert_true(size > 0 && size + COMMENT < capacity);
  data[size - 2] = COMMENT & 0xff;
  data[size - 1] = COMMENT >> 8;
  memset(data + size, ' ', COMMENT);
  return size + COMMENT;
}

static kiln_status *run(kiln_context *context, kiln_instance *instance, float *out) {
  const int64_t sizes[] = {2, 3};
  kiln_value *x = NULL, *y = NULL;
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F32, 2, sizes, NULL, &x));
  kiln_status *status = kiln_instance_call(instance, "forward", &x, 1, NULL, &y);
  if (!status) assert_ok(kiln_value_copy_data(y, out, 6 * sizeof *out));
  kiln_value_destroy(x);
  kiln_value_destroy(y);
  return status;
}

static void assert_runs(kiln_context *context, kiln_model *model) {
  float y[6] = {0};
  kiln_instance *instance = instance_of(model);
  assert_ok(run(context, instance, y));
  for (int i = 0; i < 6; i++) assert_true(y[i] == (float)(i + 2));
  kiln_instance_release(instance);
}

/* Longer than a tick of the coarse clock, within which a file is not looked at twice. */
static void wait_a_tick(void) {
  struct timespec t = {0, 30000000};
  nanosleep(&t, NULL);
}

/* -- Sources -- */

static void loads_from_everywhere(void **state) {
  (void)state;
  static unsigned char data[1 << 17];
  kiln_context *context = warned_context(NULL, NULL);
  kiln_model *model = NULL;
  assert_ok(kiln_model_load(context, TEST_DATA "/load/plain.pt", NULL, &model));
  assert_runs(context, model);
  kiln_model_release(model);

  int fd = open(TEST_DATA "/load/plain.pt", O_RDONLY);
  assert_int_equal(lseek(fd, 100, SEEK_SET), 100);
  assert_ok(kiln_model_load_fd(context, fd, NULL, &model));
  assert_int_equal(lseek(fd, 0, SEEK_CUR), 100);
  close(fd);
  assert_runs(context, model);
  kiln_model_release(model);

  size_t size = read_file(TEST_DATA "/load/plain.pt", data, sizeof data);
  assert_ok(kiln_model_load_memory(context, data, size, NULL, &model));
  assert_runs(context, model);
  kiln_model_release(model);

  int ends[2];
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], data, size), size);
  close(ends[1]);
  assert_ok(kiln_model_load_fd(context, ends[0], NULL, &model));
  close(ends[0]);
  assert_runs(context, model);
  kiln_model_release(model);

  assert_error(kiln_model_load_fd(context, -1, NULL, &model), KILN_INVALID_ARGUMENT, "descriptor");
  assert_error(kiln_model_load_fd(context, 1 << 20, NULL, &model), KILN_INVALID_FILE,
               "cannot be read");
  assert_int_equal(pipe(ends), 0);
  close(ends[1]);
  assert_error(kiln_model_load_fd(context, ends[0], NULL, &model), KILN_INVALID_FILE,
               "an empty file");
  close(ends[0]);
  kiln_context_release(context);
}

/* -- Sharing -- */

static void shares_a_file(void **state) {
  (void)state;
  static unsigned char data[1 << 17];
  char path[64];
  size_t size = make_large(data, sizeof data);
  temporary_file(path, sizeof path, "");
  write_file(path, data, size);
  kiln_context *context = warned_context(NULL, NULL);
  kiln_model *a = NULL, *b = NULL, *c = NULL;
  assert_ok(kiln_model_load(context, path, NULL, &a));
  assert_int_equal(kiln_context_mapped_bytes(context), size);
  assert_ok(kiln_model_load(context, path, NULL, &b));
  int fd = open(path, O_RDONLY);
  assert_ok(kiln_model_load_fd(context, fd, NULL, &c));
  close(fd);
  assert_int_equal(kiln_context_mapped_bytes(context), size);
  kiln_model_release(a);
  kiln_model_release(c);
  assert_runs(context, b);
  assert_int_equal(kiln_context_mapped_bytes(context), size);

  /* Another file under the name: a mapping of its own, and the old model lives on. */
  char other[64];
  temporary_file(other, sizeof other, "");
  write_file(other, data, size - 1);
  data[size - COMMENT - 2]--; /* the comment is one byte shorter */
  write_file(other, data, size - 1);
  assert_int_equal(rename(other, path), 0);
  wait_a_tick();
  assert_runs(context, b);
  assert_ok(kiln_model_load(context, path, NULL, &a));
  assert_int_equal(kiln_context_mapped_bytes(context), 2 * size - 1);
  kiln_model_release(a);
  kiln_model_release(b);
  assert_int_equal(kiln_context_mapped_bytes(context), 0);
  kiln_context_release(context);
  unlink(path);
}

static void copies_on_request(void **state) {
  (void)state;
  static unsigned char data[1 << 17];
  char path[64];
  size_t size = make_large(data, sizeof data);
  temporary_file(path, sizeof path, "");
  write_file(path, data, size);
  kiln_context *context = warned_context("map", "copy");
  kiln_model *a = NULL, *b = NULL;
  const size_t begin = kiln_context_bytes(context);
  assert_ok(kiln_model_load(context, path, NULL, &a));
  assert_int_equal(kiln_context_mapped_bytes(context), 0);
  const size_t held = kiln_context_bytes(context);
  assert_ok(kiln_model_load(context, path, NULL, &b)); /* shares the copy */
  assert_true(kiln_context_bytes(context) - held + size <= held - begin);
  kiln_limits limits = {.bytes = 1000};
  kiln_model *c = NULL;
  data[0] ^= 0;
  assert_int_equal(truncate(path, 10), 0);
  wait_a_tick();
  assert_runs(context, a);
  assert_runs(context, b);
  write_file(path, data, size);
  assert_error(kiln_model_load(context, path, &limits, &c), KILN_LIMIT, "1000 bytes");
  kiln_model_release(a);
  kiln_model_release(b);
  kiln_context_release(context);
  unlink(path);
}

static void sees_a_changed_file(void **state) {
  (void)state;
  static unsigned char data[1 << 17];
  char path[64];
  size_t size = make_large(data, sizeof data);
  temporary_file(path, sizeof path, "");
  write_file(path, data, size);
  kiln_context *context = warned_context(NULL, NULL);
  kiln_model *model = NULL;
  kiln_instance *instance = NULL;
  float y[6];
  assert_ok(kiln_model_load(context, path, NULL, &model));
  assert_ok(kiln_instance_create(model, &instance));
  assert_ok(run(context, instance, y));
  assert_int_equal(truncate(path, 10), 0); /* its pages are gone: reading them would be a SIGBUS */
  wait_a_tick();
  assert_error(run(context, instance, y), KILN_INVALID_FILE, "changed while it is in use");
  kiln_instance_release(instance);
  kiln_model_release(model);
  kiln_context_release(context);
  unlink(path);
}

/* What a host may do with what it got before the file was cut: each of these reads every weight. */
typedef struct late {
  kiln_context *context;
  kiln_instance *instance;
  kiln_value *weight;
} late;

static kiln_status *saves(late *l) {
  size_t count = 0;
  return kiln_instance_save_to(l->instance, count_bytes, &count, NULL);
}
static kiln_status *freezes(late *l) {
  kiln_model *frozen = NULL;
  return kiln_instance_freeze(l->instance, &(kiln_freeze_options){.eval = 1}, &frozen);
}
static kiln_status *gets(late *l) {
  kiln_value *value = NULL;
  return kiln_instance_get(l->instance, "w", &value);
}
static kiln_status *copies(late *l) {
  float data[6];
  return kiln_value_copy_data(l->weight, data, sizeof data);
}
static kiln_status *prints(late *l) {
  char *text = NULL;
  return kiln_value_print(l->weight, 10, &text);
}
static kiln_status *prints_a_list(late *l) {
  char *text = NULL;
  kiln_value *list = NULL;
  assert_ok(kiln_value_list(l->context, &l->weight, 1, &list));
  kiln_status *status = kiln_value_print(list, 10, &text);
  kiln_value_destroy(list);
  return status;
}
static kiln_status *copies_a_clone(late *l) {
  float data[6];
  kiln_value *clone = NULL;
  assert_ok(kiln_value_clone(l->weight, &clone)); /* shares the memory */
  kiln_status *status = kiln_value_copy_data(clone, data, sizeof data);
  kiln_value_destroy(clone);
  return status;
}
static kiln_status *writes(late *l) { return kiln_value_write(l->weight, "/dev/null"); }
static kiln_status *exports(late *l) {
  struct DLManagedTensor *tensor = NULL;
  return kiln_value_to_dlpack(l->weight, &tensor);
}
static kiln_status *passes_it_on(late *l) {
  kiln_model *other = NULL;
  kiln_instance *instance = NULL;
  kiln_value *y = NULL;
  assert_ok(kiln_model_load(l->context, TEST_DATA "/load/plain.pt", NULL, &other));
  assert_ok(kiln_instance_create(other, &instance));
  kiln_status *status = kiln_instance_call(instance, "forward", &l->weight, 1, NULL, &y);
  kiln_instance_release(instance);
  kiln_model_release(other);
  return status;
}

/* The plain archive as kiln writes it, with weights aligned for use where they lie, and mapped. */
static void save_large(const char *path) {
  static char padding[2 * COMMENT];
  const kiln_extra extra = {.name = "padding", .data = padding, .size = sizeof padding};
  kiln_context *context = warned_context(NULL, NULL);
  kiln_model *model = NULL;
  assert_ok(kiln_model_load(context, TEST_DATA "/load/plain.pt", NULL, &model));
  assert_ok(kiln_model_save(model, path, &(kiln_save_options){.extras = &extra, .extra_count = 1}));
  kiln_model_release(model);
  kiln_context_release(context);
}

static void readers_see_a_changed_file(void **state) {
  static kiln_status *(*const readers[])(late *) = {saves,   freezes,       gets,   copies,
                                                    prints,  prints_a_list, writes, copies_a_clone,
                                                    exports, passes_it_on};
  (void)state;
  for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
    char path[64];
    temporary_file(path, sizeof path, "");
    save_large(path);
    late l = {.context = warned_context(NULL, NULL)};
    kiln_model *model = NULL;
    assert_ok(kiln_model_load(l.context, path, NULL, &model));
    assert_ok(kiln_instance_create(model, &l.instance));
    assert_ok(kiln_instance_get(l.instance, "w", &l.weight));
    assert_int_equal(truncate(path, 0), 0);
    wait_a_tick();
    assert_error(readers[i](&l), KILN_INVALID_FILE, "changed while it is in use");
    kiln_value_destroy(l.weight);
    kiln_instance_release(l.instance);
    kiln_model_release(model);
    kiln_context_release(l.context);
    unlink(path);
  }
}

/* A file that is not trusted is not relied on either. */
static void limits_copy_the_file(void **state) {
  static const kiln_limits limits[] = {
      {.bytes = 1 << 20}, {.time_ms = 60000}, {.operations = 1000}};
  char path[64];
  (void)state;
  kiln_context *context = warned_context(NULL, NULL);
  kiln_model *model = NULL;
  temporary_file(path, sizeof path, "");
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    save_large(path);
    assert_ok(kiln_model_load(context, path, &limits[i], &model));
    assert_int_equal(kiln_context_mapped_bytes(context), 0);
    assert_int_equal(truncate(path, 0), 0);
    wait_a_tick();
    assert_runs(context, model);
    kiln_model_release(model);
  }
  save_large(path);
  assert_ok(kiln_context_set(context, "map", "map", NULL));
  assert_ok(kiln_model_load(context, path, &limits[0], &model));
  assert_true(kiln_context_mapped_bytes(context) > COMMENT);
  kiln_model_release(model);
  kiln_context_release(context);
  unlink(path);
}

/* -- Checksums -- */

static void minds_checksums(void **state) {
  (void)state;
  kiln_model *model = NULL;
  kiln_context *context = warned_context(NULL, NULL);
  assert_error(kiln_model_load(context, TEST_DATA "/load/crc.pt", NULL, &model), KILN_INVALID_FILE,
               "record 'data/0' has a wrong checksum");
  assert_ok(kiln_context_set(context, "crc", "warn", NULL));
  assert_ok(kiln_model_load(context, TEST_DATA "/load/crc.pt", NULL, &model));
  assert_non_null(strstr(warnings, "warn: 1 of the archive's 5 records has a wrong checksum, the "
                                   "first 'data/0'"));
  kiln_model_release(model);
  kiln_context_release(context);
}

/* -- Warnings of a model -- */

static int count_of(const char *words) {
  int count = 0;
  for (const char *at = warnings; (at = strstr(at, words)); at++) count++;
  return count;
}

/* Whatever runs them: the plans that profile and that are compiled, another instance. */
static void warns_once_a_place(void **state) {
  (void)state;
  kiln_model *model = NULL;
  kiln_context *context = warned_context(NULL, NULL);
  for (int load = 1; load <= 2; load++) {
    assert_ok(kiln_model_load(context, TEST_DATA "/load/warned.pt", NULL, &model));
    for (int i = 0; i < 4; i++) {
      kiln_instance *instance = NULL;
      float y[6];
      assert_ok(kiln_instance_create(model, &instance));
      assert_ok(run(context, instance, y));
      kiln_instance_release(instance);
    }
    assert_int_equal(count_of("warn: in a loop: 0"), load);
    assert_int_equal(count_of("warn: in a loop"), load);
    assert_int_equal(count_of("warn: in a part"), load);
    kiln_model_release(model);
  }
  kiln_context_release(context);
}

/* -- Devices -- */

static void moves_devices(void **state) {
  (void)state;
  static const struct {
    const char *kind, *where;
    int64_t count;
  } want[] = {
      {"storages", "data/0", 1}, {"values", "data.pkl", 1}, {"code", "code/__torch__.py:11", 2}};
  kiln_model *model = NULL;
  kiln_value *value = NULL;
  kiln_remap remap;
  kiln_context *context = warned_context(NULL, NULL);
  assert_error(kiln_model_load(context, TEST_DATA "/load/cuda.pt", NULL, &model), KILN_INVALID_FILE,
               "device 'cuda:0', which is not here; the option map_device");
  assert_error(kiln_value_read(context, TEST_DATA "/load/state_cuda.pt", &value), KILN_INVALID_FILE,
               "device 'cuda:1'");
  static const char *const rules[] = {"cuda:*=cpu", "cuda=cpu", "cuda:0=cpu,cuda:1=cpu",
                                      "mps=cpu,*=cpu"};
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
    warnings[0] = 0;
    assert_ok(kiln_context_set(context, "map_device", rules[i], NULL));
    assert_ok(kiln_model_load(context, TEST_DATA "/load/cuda.pt", NULL, &model));
    assert_runs(context, model);
    for (int k = 0; k < 3; k++) {
      assert_ok(kiln_model_remap(model, k, &remap));
      assert_string_equal(remap.from, "cuda:0");
      assert_string_equal(remap.to, "cpu");
      assert_string_equal(remap.kind, want[k].kind);
      assert_string_equal(remap.where, want[k].where);
      assert_int_equal(remap.count, want[k].count);
    }
    assert_error(kiln_model_remap(model, 3, &remap), KILN_NOT_FOUND, "3");
    assert_non_null(strstr(warnings, "load: 1 storages of tensors moved from cuda:0 to cpu"));
    kiln_model_release(model);
    assert_ok(kiln_value_read(context, TEST_DATA "/load/state_cuda.pt", &value));
    kiln_value_destroy(value);
  }
  static const char *const others[] = {"cuda:1=cpu", "mps:*=cpu", ""};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    assert_ok(kiln_context_set(context, "map_device", others[i], NULL));
    assert_error(kiln_model_load(context, TEST_DATA "/load/cuda.pt", NULL, &model),
                 KILN_INVALID_FILE, "map_device");
  }
  static const char *const bad[] = {"cuda", "cuda:0=cuda:1", "=cpu", "cu da=cpu", "cuda:=cpu"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_ok(kiln_context_set(context, "map_device", bad[i], NULL));
    assert_error(kiln_model_load(context, TEST_DATA "/load/plain.pt", NULL, &model),
                 KILN_INVALID_ARGUMENT, "map_device");
  }
  kiln_context_release(context);
}

/* -- Containers -- */

static void reads_odd_containers(void **state) {
  (void)state;
  kiln_model *model = NULL;
  kiln_extra extra;
  kiln_context *context = warned_context(NULL, NULL);
  assert_ok(kiln_model_load(context, TEST_DATA "/load/nested.pt", NULL, &model));
  assert_runs(context, model);
  assert_ok(kiln_model_extra_file(model, 0, &extra));
  assert_string_equal(extra.name, "notes/read me.txt");
  assert_int_equal(extra.size, 5);
  assert_memory_equal(extra.data, "caf\xc3\xa9", 5);
  assert_ok(kiln_model_extra_file(model, 1, &extra));
  assert_string_equal(extra.name, "empty");
  assert_int_equal(extra.size, 0);
  assert_error(kiln_model_extra_file(model, 2, &extra), KILN_NOT_FOUND, "2");
  kiln_model_release(model);
  kiln_context_release(context);
}

/* -- Files of values -- */

static void reads_values(void **state) {
  (void)state;
  kiln_value *value = NULL;
  char *text = NULL;
  kiln_context *context = warned_context(NULL, NULL);
  assert_ok(kiln_value_read(context, TEST_DATA "/load/values.pt", &value));
  assert_ok(kiln_value_print(value, 100, &text));
  /* Layouts and dtypes are ints in TorchScript: sparse_coo 1, float16 5. */
  assert_string_equal(
      text, "({'b': 1, 'a': 2}, {'k': [1]}, [2, 3], cpu, 1, 5, "
            "tensor([(1., -2.j), (3., 4.j)], dtype=complex64), tensor([-1., 2.], dtype=float32))");
  kiln_text_free(text);
  kiln_value_destroy(value);
  assert_ok(kiln_value_read(context, TEST_DATA "/load/quantised.pt", &value));
  assert_ok(kiln_value_print(value, 100, &text));
  assert_string_equal(text,
                      "tensor([1., 1.], dtype=quint8, "
                      "quantization_scheme=torch.per_tensor_affine, scale=0.5, zero_point=0)");
  kiln_text_free(text);
  kiln_value_destroy(value);
  assert_error(kiln_value_read(context, TEST_DATA "/load/sparse.pt", &value), KILN_UNSUPPORTED,
               "'torch._utils._rebuild_sparse_tensor': sparse tensors are not supported");
  kiln_context_release(context);
}

/* -- Limits -- */

static void keeps_limits(void **state) {
  (void)state;
  const char *path = TEST_DATA "/load/forever.pt";
  kiln_model *model = NULL;
  kiln_context *context = warned_context(NULL, NULL);
  assert_error(kiln_model_load(context, path, &(kiln_limits){.operations = 100000}, &model),
               KILN_LIMIT, "100000 operations");
  assert_error(kiln_model_load(context, path, &(kiln_limits){.time_ms = 50}, &model), KILN_LIMIT,
               "50 ms");
  assert_error(kiln_model_load(context, path, &(kiln_limits){.bytes = 2000}, &model), KILN_LIMIT,
               "2000 bytes");
  kiln_limits enough = {.bytes = 10 << 20, .operations = 1000, .recursion = 10, .time_ms = 60000};
  assert_ok(kiln_model_load(context, TEST_DATA "/load/plain.pt", &enough, &model));
  kiln_model_release(model);
  kiln_context_release(context);
}

/* The copy of the file and what is made of it count together; what a model has beyond its script is
 * some KiB, and its references. */
static void one_limit_for_all(void **state) {
  (void)state;
  bool loads = false;
  for (uint64_t bytes = 16 << 10; bytes < 8 << 20; bytes += bytes / 64) {
    kiln_context *context = context_with(NULL, NULL);
    kiln_model *model = NULL;
    const size_t before = kiln_context_bytes(context);
    kiln_status *status = kiln_model_load(context, TEST_DATA "/own/mlp/model.pt",
                                          &(kiln_limits){.bytes = bytes}, &model);
    loads = loads || !status;
    assert_int_equal(kiln_status_code(status), status ? KILN_LIMIT : KILN_OK);
    assert_in_range(kiln_context_peak_bytes(context) - before, 0,
                    bytes + (6 << 10) + sizeof(kiln_refs));
    kiln_status_destroy(status);
    kiln_model_release(model);
    kiln_context_release(context);
  }
  assert_true(loads);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(loads_from_everywhere),
      cmocka_unit_test(shares_a_file),
      cmocka_unit_test(copies_on_request),
      cmocka_unit_test(sees_a_changed_file),
      cmocka_unit_test(readers_see_a_changed_file),
      cmocka_unit_test(limits_copy_the_file),
      cmocka_unit_test(minds_checksums),
      cmocka_unit_test(warns_once_a_place),
      cmocka_unit_test(moves_devices),
      cmocka_unit_test(reads_odd_containers),
      cmocka_unit_test(reads_values),
      cmocka_unit_test(keeps_limits),
      cmocka_unit_test(one_limit_for_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
