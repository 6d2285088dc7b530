/* device_test.c: names of devices; and a device that is not the CPU, which counts what is asked of
 * it: storages, kernels and groups must know no other way to memory than through it. Launches that
 * fault, or fail. */
#include "runtime/device.h"

#include "test/unit/runtime/plan_support.h"

static void names(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int kind, index; /* kind -1: no device */
  } cases[] = {
      {"cpu", KILN_DEVICE_CPU, -1},
      {"cpu:0", KILN_DEVICE_CPU, 0},
      {"cuda", KILN_DEVICE_CUDA, -1},
      {"cuda:127", KILN_DEVICE_CUDA, 127},
      {"meta", KILN_DEVICE_META, -1},
      {"cuda:128", -1, 0},
      {"cuda:-1", -1, 0},
      {"cuda:", -1, 0},
      {"cuda:1x", -1, 0},
      {"cudax", -1, 0},
      {"", -1, 0},
      {"gpu", -1, 0},
      {"CPU", -1, 0},
  };
  kiln_mem *mem = NULL;
  kiln_arena *arena = NULL;
  assert_ok(kiln_mem_create(KILN_MEM_DEFAULT, &mem));
  assert_ok(kiln_arena_create(mem, &arena));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kiln_device_id id = {7, 7};
    kiln_text text;
    const bool good = kiln_device_parse(kiln_str_from(cases[i].text), &id);
    if (good != (cases[i].kind >= 0)) fail_msg("'%s'", cases[i].text);
    if (!good) continue;
    assert_int_equal(id.kind, cases[i].kind);
    assert_int_equal(id.index, cases[i].index);
    text = kiln_text_in(arena);
    kiln_device_print(&text, id);
    assert_string_equal(text.data, cases[i].text);
  }
  assert_string_equal(kiln_device_kind_name(KILN_DEVICE__COUNT), "unknown");
  assert_string_equal(kiln_device_kind_name(-1), "unknown");
  assert_ptr_equal(kiln_device_find(KILN_CPU), &kiln_device_cpu);
  assert_ptr_equal(kiln_device_find((kiln_device_id){KILN_DEVICE_CPU, 0}), &kiln_device_cpu);
  assert_null(kiln_device_find((kiln_device_id){KILN_DEVICE_CUDA, -1}));
  assert_null(kiln_device_find((kiln_device_id){KILN_DEVICE_META, -1}));
  kiln_arena_destroy(arena);
  kiln_mem_release(mem);
}

/* -- A device that counts -- */

typedef struct counting_device {
  kiln_device device; /* first */
  int blocks, copies, launches;
  size_t bytes;
  bool is_full;
  kiln_code answer; /* of launches that fail */
} counting_device;

static counting_device *counting(const kiln_device *self) {
  return (counting_device *)(uintptr_t)self;
}
static void *give_block(const kiln_device *self, kiln_mem *mem, kiln_cache *cache, size_t bytes) {
  (void)mem, (void)cache;
  if (counting(self)->is_full) return NULL;
  counting(self)->blocks++;
  counting(self)->bytes += bytes;
  return malloc(bytes + 1);
}
static void take_block(const kiln_device *self, kiln_mem *mem, kiln_cache *cache, void *data,
                       size_t bytes) {
  (void)mem, (void)cache;
  counting(self)->blocks--;
  counting(self)->bytes -= bytes;
  free(data);
}
static void copy_block(const kiln_device *self, void *to, const void *from, size_t bytes) {
  counting(self)->copies++;
  memcpy(to, from, bytes);
}
static kiln_status *count_launch(const kiln_device *self, kiln_call *call, const kiln_group *group,
                                 const kiln_kernel_args *args) {
  counting(self)->launches++;
  return kiln_device_cpu.launch(&kiln_device_cpu, call, group, args);
}
static counting_device other_device(void) {
  return (counting_device){.device = {.id = {KILN_DEVICE_META, 3},
                                      .allocate = give_block,
                                      .release = take_block,
                                      .copy = copy_block,
                                      .launch = count_launch}};
}

static kiln_status *refuse_launch(const kiln_device *self, kiln_call *call, const kiln_group *group,
                                  const kiln_kernel_args *args) {
  (void)call, (void)group, (void)args;
  return KILN_ERROR(counting(self)->answer, "no launch");
}

/* Even the smallest storage lies there, and whoever shares, writes or grows it asks its device. */
static void storages_are_their_devices(void **state) {
  fixture *f = *state;
  kiln_mem *mem = f->env->mem;
  counting_device other = other_device();
  for (size_t bytes = 16; bytes <= 16384; bytes *= 1024) {
    kiln_storage *s = NULL, *share = NULL;
    kiln_tensor *t = NULL, *view = NULL;
    const int64_t four = 4, one = 1;
    assert_ok(kiln_storage_create_on(&other.device, mem, NULL, bytes, &s));
    assert_int_equal(other.blocks, 1);
    assert_int_equal(other.bytes, bytes);
    assert_ok(kiln_tensor_create_on(mem, NULL, s, KILN_DTYPE_F32, 1, &four, &one, 0, &t));
    assert_ok(kiln_tensor_view(NULL, t, 1, &one, &one, 1, &view));
    assert_int_equal(kiln_tensor_device(t).kind, KILN_DEVICE_META);
    assert_int_equal(kiln_tensor_device(view).index, 3);
    other.copies = 0;
    assert_ok(kiln_storage_share(s, &share));
    assert_ptr_equal(share->device, &other.device);
    assert_int_equal(other.copies, 0); /* both read the one block, until one writes */
    assert_int_equal(other.blocks, 1);
    void *data;
    assert_ok(kiln_tensor_writable_data(t, &data));
    assert_int_equal(other.copies, 1);
    assert_int_equal(other.blocks, 2);
    assert_ok(kiln_storage_grow(share, 2 * bytes));
    assert_int_equal(other.copies, 2);
    assert_int_equal(other.bytes, 3 * bytes);
    other.is_full = true;
    assert_error(kiln_storage_grow(share, 4 * bytes), KILN_OUT_OF_MEMORY, NULL);
    other.is_full = false;
    /* Over the CPU's memory it is a tensor of the CPU. */
    kiln_tensor *host = make_tensor(f, 4);
    assert_ok(kiln_tensor_set(view, host->storage, KILN_DTYPE_F32, 1, &four, &one, 0));
    assert_int_equal(kiln_tensor_device(view).kind, KILN_DEVICE_CPU);
    kiln_tensor_release(host);
    kiln_tensor_release(view);
    kiln_tensor_release(t);
    kiln_storage_release(share);
    kiln_storage_release(s);
    assert_int_equal(other.blocks, 0);
    assert_int_equal(other.bytes, 0);
  }
}

static kiln_status *give_rank(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  (void)call;
  outs[0] = kiln_int(kiln_tensor_rank(kiln_arg_tensor(args, 0)));
  return NULL;
}

/* A kernel whose column does not name the device never sees such a tensor, in a list neither. */
static void kernels_run_where_they_say(void **state) {
  fixture *f = *state;
  counting_device other = other_device();
  kiln_storage *s = NULL;
  kiln_tensor *t = NULL, *host = make_tensor(f, 4);
  kiln_list *list = NULL;
  const int64_t four = 4, one = 1;
  kiln_kernel kernel = {
      .name = "test::rank", .body = give_rank, .arg_count = 1, .out_count = 1, .dest_arg = -1};
  kiln_ivalue out = kiln_none(), arg = kiln_of_tensor(host);
  assert_ok(kiln_kernel_run(f->call, &kernel, &arg, 1, &out));
  assert_ok(kiln_storage_create_on(&other.device, f->env->mem, NULL, 16, &s));
  assert_ok(kiln_tensor_create_on(f->env->mem, NULL, s, KILN_DTYPE_F32, 1, &four, &one, 0, &t));
  assert_ok(kiln_kernel_run(f->call, &kernel, &arg, 1, &out)); /* of the CPU, as before */
  arg = kiln_of_tensor(t);
  assert_error(kiln_kernel_run(f->call, &kernel, &arg, 1, &out), KILN_OP_ERROR,
               "test::rank does not run on tensors of the device 'meta'");
  assert_ok(kiln_list_create(f->env->mem, kiln_type_basic(KILN_TYPE_TENSOR), 1, &list));
  assert_ok(kiln_list_push(list, kiln_of_tensor(t)));
  arg = kiln_of_box(list);
  assert_error(kiln_kernel_run(f->call, &kernel, &arg, 1, &out), KILN_OP_ERROR, "'meta'");
  kernel.devices = 1u << KILN_DEVICE_CUDA;
  assert_error(kiln_kernel_run(f->call, &kernel, list->items, 1, &out), KILN_OP_ERROR, "'meta'");
  kernel.devices = 1u << KILN_DEVICE_META;
  assert_ok(kiln_kernel_run(f->call, &kernel, list->items, 1, &out));
  assert_int_equal(out.u.i, 1);
  kiln_ivalue_release(arg);
  kiln_tensor_release(host);
  kiln_storage_release(s);
  assert_int_equal(other.blocks, 0);
}

static void twice(const kiln_kernel_args *args, const kiln_kernel_box *box) {
  const float *from = args->data[0];
  float *to = args->data[1];
  for (int64_t i = box->begin[0]; i < box->end[0]; i++) to[i] = 2 * from[i];
}

static void groups_are_launched(void **state) {
  fixture *f = *state;
  counting_device other = other_device();
  const int64_t four = 4, one = 1;
  kiln_group_output out = {.dtype = KILN_DTYPE_F32,
                           .rank = 1,
                           .sizes = &four,
                           .strides = &one,
                           .contiguous = true,
                           .donor = -1};
  kiln_group group = {.device = &other.device,
                      .fn = twice,
                      .input_count = 1,
                      .output_count = 1,
                      .outputs = &out,
                      .work.grid.end = {4, 1, 1},
                      .work.grain = 1 << 20};
  program p;
  program_init(&p, "group", 1, 3);
  p.kernels[0] = &increment_kernel;
  p.plan.groups = &group;
  p.plan.group_count = 1;
  emit(&p, KILN_INSTR_OP, 0, 1, 1, R(0), R(1));
  emit(&p, KILN_INSTR_GROUP, 0, 1, 1, RM(1), R(2));
  emit(&p, KILN_INSTR_RET, 0, 1, 0, RM(2));
  kiln_ivalue x = kiln_of_tensor(make_tensor(f, 4)), y = run_good(f, &p, &x);
  assert_int_equal(other.launches, 1);
  assert_true(((const float *)kiln_tensor_data(y.u.tensor))[3] == 2);
  kiln_ivalue_release(y);
  kiln_ivalue_release(x);
}

static void sum_of_two(const kiln_kernel_args *args, const kiln_kernel_box *box) {
  const float *x = args->data[0], *y = args->data[1];
  float *to = args->data[2];
  for (int64_t i = box->begin[0]; i < box->end[0]; i++) to[i] = x[i] + y[i];
}

/* Leaves half of each output. */
static void give_up(const kiln_kernel_args *args, const kiln_kernel_box *box) {
  (void)box;
  for (int i = 1; i < 3; i++) ((float *)args->data[i])[0] = 99;
  *args->fault = 1;
}

static kiln_status *complain(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) {
  (void)call, (void)args, (void)outs;
  return KILN_ERROR(KILN_OP_ERROR, "index out of range in self");
}

/* What a kernel that faults has written is not seen: the group's operators run on what it was
 * given, which ends there, and give its results or raise. */
static void what_faults_runs_again(void **state) {
  fixture *f = *state;
  const kiln_kernel bad = {
      .name = "test::bad", .body = complain, .arg_count = 1, .out_count = 1, .dest_arg = -1};
  const int64_t four = 4, one = 1;
  const kiln_group_output out = {.dtype = KILN_DTYPE_F32,
                                 .rank = 1,
                                 .sizes = &four,
                                 .strides = &one,
                                 .contiguous = true,
                                 .donor = -1};
  const kiln_group_output outs[] = {out, out};
  program operators, p;
  const kiln_group group = {.device = &kiln_device_cpu,
                            .fn = give_up,
                            .interpreted = &operators.callable,
                            .input_count = 1,
                            .output_count = 2,
                            .outputs = outs,
                            .work.grid.end = {4, 1, 1},
                            .work.grain = 1 << 20};
  for (int raises = 0; raises < 2; raises++) {
    program_init(&operators, "operators", 1, 4);
    operators.plan.types = (const kiln_type *const[]){NULL};
    operators.plan.type_count = 1;
    operators.kernels[0] = &increment_kernel;
    operators.kernels[1] = raises ? &bad : &increment_kernel;
    emit(&operators, KILN_INSTR_OP, 0, 1, 1, RM(0), R(1));
    emit(&operators, KILN_INSTR_OP, 1, 1, 1, R(1), R(2));
    emit(&operators, KILN_INSTR_TUPLE, 0, 2, 1, RM(1), RM(2), R(3));
    emit(&operators, KILN_INSTR_RET, 0, 1, 0, RM(3));
    assert_ok(kiln_plan_verify(&operators.plan));
    program_init(&p, "group", 1, 4);
    p.plan.types = operators.plan.types;
    p.plan.type_count = 1;
    p.kernels[0] = &increment_kernel;
    p.plan.groups = &group;
    p.plan.group_count = 1;
    emit(&p, KILN_INSTR_OP, 0, 1, 1, R(0), R(1));
    emit(&p, KILN_INSTR_GROUP, 0, 1, 2, RM(1), R(2), R(3));
    emit(&p, KILN_INSTR_TUPLE, 0, 2, 1, RM(2), RM(3), R(1));
    emit(&p, KILN_INSTR_RET, 0, 1, 0, RM(1));
    kiln_ivalue x = kiln_of_tensor(make_tensor(f, 4));
    if (raises) {
      assert_int_equal(run_bad(f, &p, &x, "index out of range in self"), KILN_OP_ERROR);
    } else {
      kiln_ivalue y = run_good(f, &p, &x);
      for (int i = 0; i < 2; i++) {
        const float *data = kiln_tensor_data(y.u.tuple->items[i].u.tensor);
        for (int k = 0; k < 4; k++) assert_true(data[k] == (float)i + 2);
      }
      kiln_ivalue_release(y);
    }
    kiln_ivalue_release(x);
  }
}

/* A copy that is made for one call goes back when the kernel has run, each of several. */
static void copies_of_a_call_end(void **state) {
  fixture *f = *state;
  static const kiln_kernel_pack packs[] = {
      {.input = 0, .item_size = 4, .columns = 4, .column = 1, .panel = 4},
      {.input = 1, .item_size = 4, .columns = 4, .column = 1, .panel = 4}};
  const kiln_group_pack wanted[] = {{.pack = &packs[0], .operand = 0},
                                    {.pack = &packs[1], .operand = 1}};
  const int64_t four = 4, one = 1;
  const kiln_group_output out = {.dtype = KILN_DTYPE_F32,
                                 .rank = 1,
                                 .sizes = &four,
                                 .strides = &one,
                                 .contiguous = true,
                                 .donor = -1};
  program operators, p;
  program_init(&operators, "operators", 2, 3);
  operators.kernels[0] = &increment_kernel;
  emit(&operators, KILN_INSTR_OP, 0, 1, 1, R(0), R(2));
  emit(&operators, KILN_INSTR_RET, 0, 1, 0, RM(2));
  for (int count = 1; count <= 2; count++) {
    const kiln_group group = {.device = &kiln_device_cpu,
                              .fn = sum_of_two,
                              .interpreted = &operators.callable,
                              .input_count = 2,
                              .output_count = 1,
                              .outputs = &out,
                              .pack_count = count,
                              .packs = wanted,
                              .work.grid.end = {4, 1, 1},
                              .work.grain = 1 << 20};
    program_init(&p, "group", 2, 3);
    p.plan.groups = &group;
    p.plan.group_count = 1;
    emit(&p, KILN_INSTR_GROUP, 0, 2, 1, R(0), R(1), R(2));
    emit(&p, KILN_INSTR_RET, 0, 1, 0, RM(2));
    kiln_ivalue x[] = {kiln_of_tensor(make_tensor(f, 4)), kiln_of_tensor(make_tensor(f, 4))};
    ((float *)kiln_tensor_data(x[0].u.tensor))[3] = 5;
    ((float *)kiln_tensor_data(x[1].u.tensor))[3] = 7;
    kiln_ivalue y = run_good(f, &p, x);
    assert_true(((const float *)kiln_tensor_data(y.u.tensor))[3] == 12);
    kiln_ivalue_release(y);
    for (int i = 0; i < 2; i++) kiln_ivalue_release(x[i]);
  } /* what is left when the call ends is a failure */
}

/* A kernel that gives no element would pass by no index: it is not launched, and the operators say
 * whether there is a complaint. */
static void nothing_is_not_launched(void **state) {
  fixture *f = *state;
  counting_device other = other_device();
  const int64_t none = 0, four = 4, one = 1;
  program operators, p;
  program_init(&operators, "operators", 1, 2);
  operators.kernels[0] = &increment_kernel;
  emit(&operators, KILN_INSTR_OP, 0, 1, 1, R(0), R(1));
  emit(&operators, KILN_INSTR_RET, 0, 1, 0, RM(1));
  for (int full = 0; full < 2; full++) {
    const kiln_group_output out = {.dtype = KILN_DTYPE_F32,
                                   .rank = 1,
                                   .sizes = full ? &four : &none,
                                   .strides = &one,
                                   .contiguous = true,
                                   .donor = -1};
    const kiln_group group = {.device = &other.device,
                              .fn = twice,
                              .interpreted = &operators.callable,
                              .input_count = 1,
                              .output_count = 1,
                              .outputs = &out,
                              .work.grid.end = {full ? 4 : 0, 1, 1},
                              .work.grain = 1 << 20};
    program_init(&p, "group", 1, 2);
    p.plan.groups = &group;
    p.plan.group_count = 1;
    emit(&p, KILN_INSTR_GROUP, 0, 1, 1, R(0), R(1));
    emit(&p, KILN_INSTR_RET, 0, 1, 0, RM(1));
    kiln_ivalue x = kiln_of_tensor(make_tensor(f, full ? 4 : 0)), y = run_good(f, &p, &x);
    assert_int_equal(y.u.tensor->numel, full ? 4 : 0);
    assert_int_equal(other.launches, full);
    kiln_ivalue_release(y);
    kiln_ivalue_release(x);
  }
}

/* What lacks memory, or room in the budget, for copies of a kernel's own: the operators run, if the
 * group has them. Other complaints are the call's. */
static void operators_need_no_copies(void **state) {
  fixture *f = *state;
  static const kiln_code answers[] = {KILN_OUT_OF_MEMORY, KILN_LIMIT, KILN_OP_ERROR};
  counting_device other = other_device();
  other.device.launch = refuse_launch;
  const int64_t four = 4, one = 1;
  const kiln_group_output out = {.dtype = KILN_DTYPE_F32,
                                 .rank = 1,
                                 .sizes = &four,
                                 .strides = &one,
                                 .contiguous = true,
                                 .donor = -1};
  program operators, p;
  program_init(&operators, "operators", 1, 2);
  operators.kernels[0] = &increment_kernel;
  emit(&operators, KILN_INSTR_OP, 0, 1, 1, R(0), R(1));
  emit(&operators, KILN_INSTR_RET, 0, 1, 0, RM(1));
  for (int i = 0; i < 6; i++) {
    const bool has_operators = i < 3;
    const kiln_group group = {.device = &other.device,
                              .fn = twice,
                              .interpreted = has_operators ? &operators.callable : NULL,
                              .input_count = 1,
                              .output_count = 1,
                              .outputs = &out,
                              .work.grid.end = {4, 1, 1},
                              .work.grain = 1 << 20};
    program_init(&p, "group", 1, 2);
    p.plan.groups = &group;
    p.plan.group_count = 1;
    emit(&p, KILN_INSTR_GROUP, 0, 1, 1, R(0), R(1));
    emit(&p, KILN_INSTR_RET, 0, 1, 0, RM(1));
    kiln_ivalue x = kiln_of_tensor(make_tensor(f, 4));
    other.answer = answers[i % 3];
    if (has_operators && other.answer != KILN_OP_ERROR) {
      kiln_ivalue y = run_good(f, &p, &x);
      assert_true(((const float *)kiln_tensor_data(y.u.tensor))[3] == 1);
      kiln_ivalue_release(y);
    } else {
      assert_int_equal(run_bad(f, &p, &x, "no launch"), other.answer);
    }
    kiln_ivalue_release(x);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names),
      cmocka_unit_test_setup_teardown(storages_are_their_devices, set_up, tear_down),
      cmocka_unit_test_setup_teardown(kernels_run_where_they_say, set_up, tear_down),
      cmocka_unit_test_setup_teardown(groups_are_launched, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_faults_runs_again, set_up, tear_down),
      cmocka_unit_test_setup_teardown(copies_of_a_call_end, set_up, tear_down),
      cmocka_unit_test_setup_teardown(nothing_is_not_launched, set_up, tear_down),
      cmocka_unit_test_setup_teardown(operators_need_no_copies, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
