/* pool_test.c: means over windows against plain loops, to the bit: random windows, and rows longer
 * than the kernel sums at once. */
#include "test/unit/runtime/run_kernel.h"

kiln_status *kiln__kernel_avg_pool2d(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs);

static int64_t draw(kiln_random *random, int64_t from, int64_t to) {
  return from + (int64_t)(kiln_random_u64(random) % (uint64_t)(to - from + 1));
}

static kiln_ivalue pair(fixture *f, const int64_t numbers[2]) {
  kiln_list *list;
  assert_ok(kiln_list_create(f->env->mem, kiln_type_basic(KILN_TYPE_INT), 2, &list));
  for (int i = 0; i < 2; i++) assert_ok(kiln_list_push(list, kiln_int(numbers[i])));
  return kiln_of_box(list);
}

typedef struct windows {
  int64_t in[2], k[2], stride[2], pad[2];
  bool ceil_mode, count_pad;
  int64_t divisor; /* 0: none */
} windows;

/* Result (y, x): its window's elements in the order of rows. */
static float mean_at(const windows *w, const float *plane, int64_t y, int64_t x) {
  const int64_t at[2] = {y * w->stride[0] - w->pad[0], x * w->stride[1] - w->pad[1]};
  int64_t inside = 0, padded = 1;
  double sum = 0;
  for (int d = 0; d < 2; d++) {
    const int64_t end = at[d] + w->k[d], limit = w->in[d] + w->pad[d];
    padded *= (end < limit ? end : limit) - at[d];
  }
  for (int64_t i = at[0]; i < at[0] + w->k[0]; i++) {
    for (int64_t j = at[1]; j < at[1] + w->k[1]; j++) {
      if (i < 0 || j < 0 || i >= w->in[0] || j >= w->in[1]) continue;
      sum += (double)plane[i * w->in[1] + j];
      inside++;
    }
  }
  const int64_t count = w->divisor ? w->divisor : w->count_pad ? padded : inside;
  return inside == 0 ? 0 : (float)(sum / (double)count);
}

static windows draw_windows(kiln_random *random) {
  windows w = {.ceil_mode = draw(random, 0, 1), .count_pad = draw(random, 0, 1)};
  if (draw(random, 0, 3) == 0) w.divisor = draw(random, 1, 9);
  for (int d = 0; d < 2; d++) {
    w.in[d] = d && draw(random, 0, 3) == 0 ? draw(random, 250, 700) : draw(random, 2, 20);
    w.k[d] = draw(random, 1, w.in[d] <= 5 ? w.in[d] - 1 : 5);
    w.stride[d] = draw(random, 1, 4);
    w.pad[d] = draw(random, 0, w.k[d] / 2);
  }
  return w;
}

static void means_are_those_of_plain_loops(void **state) {
  fixture *f = *state;
  kiln_random *random;
  assert_ok(kiln_random_create(f->env->mem, 7, &random));
  for (int round = 0; round < 300; round++) {
    const windows w = draw_windows(random);
    kiln_tensor *t;
    assert_ok(
        kiln_call_tensor(f->call, KILN_DTYPE_F32, 3, (const int64_t[]){2, w.in[0], w.in[1]}, &t));
    float *data = (float *)(uintptr_t)kiln_tensor_data(t);
    for (int64_t i = 0; i < t->numel; i++)
      data[i] = (float)draw(random, -1000, 1000) * (float)draw(random, 1, 7) * 0x1p-9f;
    const kiln_ivalue k = pair(f, w.k), stride = pair(f, w.stride), pad = pair(f, w.pad);
    kiln_tensor *out = RUN(avg_pool2d, T(t), k, stride, pad, B(w.ceil_mode), B(w.count_pad),
                           w.divisor ? I(w.divisor) : NONE);
    const int64_t rows = kiln_tensor_sizes(out)[1], columns = kiln_tensor_sizes(out)[2];
    const float *got = kiln_tensor_data(out);
    for (int64_t i = 0; i < out->numel; i++) {
      const float *plane = data + i / (rows * columns) * w.in[0] * w.in[1];
      const float wanted = mean_at(&w, plane, i / columns % rows, i % columns);
      if (got[i] != wanted) fail_msg("round %d, element %lld", round, (long long)i);
    }
    kiln_ivalue_release(k);
    kiln_ivalue_release(stride);
    kiln_ivalue_release(pad);
    drop(f, out);
    drop(f, t);
  }
  kiln_random_release(random);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(means_are_those_of_plain_loops, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
