/* grid.c: elements at places that a grid gives (grid_sampler), and back from the places that a
 * max pool gave (max_unpool). */
#include <math.h>
#include <string.h>

#include "runtime/kernels/nn/nn.h"

/* -- grid_sampler: [n, c, in...] at grid [n, out..., spatial], whose last has x first -- */

enum { BILINEAR, NEAREST, BICUBIC, ZEROS = 0, BORDER, REFLECTION, MAX_SPATIAL = 3 };
typedef struct grid {
  int spatial;
  int64_t mode, padding;
  bool align;
  int64_t in[MAX_SPATIAL], plane; /* elements of a channel */
} grid;

/* From [-1, 1] to elements. */
static double unnormalize(const grid *g, int d, double x) {
  const double size = (double)g->in[d];
  return g->align ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
}
/* Mirrored at the ends `twice_low` / 2 and `twice_high` / 2. */
static double reflect(double x, double twice_low, double twice_high) {
  if (twice_low == twice_high) return 0;
  const double low = twice_low / 2, span = (twice_high - twice_low) / 2;
  x = fabs(x - low);
  const double rest = fmod(x, span);
  return fmod(floor(x / span), 2) == 0 ? rest + low : span - rest + low;
}
static double pad(const grid *g, int d, double x) {
  const double last = (double)(g->in[d] - 1);
  if (g->padding == REFLECTION) {
    x = g->align ? reflect(x, 0, 2 * last) : reflect(x, -1, 2 * last + 1);
  }
  if (g->padding != ZEROS) x = !(x > 0) ? 0 : x > last ? last : x; /* NaN goes to 0 */
  return x;
}
/* The taps of a dimension around x: places (-1: nothing) and weights. */
static int taps(const grid *g, int d, double x, int64_t *place, double *weight) {
  const double size = (double)g->in[d];
  int count = 1;
  double first;
  if (g->mode == BICUBIC) { /* every tap is padded by itself */
    const double a = -0.75, t = x - floor(x), far = 1 + t, back = 1 - t, end = 2 - t;
    weight[0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
    weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    weight[2] = ((a + 2) * back - (a + 3)) * back * back + 1;
    weight[3] = ((a * end - 5 * a) * end + 8 * a) * end - 4 * a;
    for (int i = 0; i < 4; i++) {
      const double at = pad(g, d, floor(x) + i - 1);
      place[i] = at >= 0 && at < size ? (int64_t)at : -1;
    }
    return 4;
  }
  x = pad(g, d, x);
  if (g->mode == NEAREST) {
    first = nearbyint(x);
    weight[0] = 1;
  } else {
    first = floor(x);
    weight[1] = x - first;
    weight[0] = 1 - weight[1];
    count = 2;
  }
  for (int i = 0; i < count; i++) {
    const double at = first + i;
    place[i] = at >= 0 && at < size ? (int64_t)at : -1;
  }
  return count;
}
/* Where one result element comes from, for all channels. */
typedef struct sources {
  int count;
  int64_t offset[64];
  double weight[64];
} sources;
static void find_sources(const grid *g, const double *at, sources *s) {
  int64_t place[MAX_SPATIAL][4];
  double weight[MAX_SPATIAL][4];
  int count[MAX_SPATIAL] = {1, 1, 1};
  for (int d = 0; d < MAX_SPATIAL; d++) {
    place[d][0] = 0;
    weight[d][0] = 1;
    if (d < MAX_SPATIAL - g->spatial) continue;
    count[d] = taps(g, d, unnormalize(g, d, at[MAX_SPATIAL - 1 - d]), place[d], weight[d]);
  }
  s->count = 0;
  for (int z = 0; z < count[0]; z++) {
    for (int y = 0; y < count[1]; y++) {
      for (int x = 0; x < count[2]; x++) {
        if (place[0][z] < 0 || place[1][y] < 0 || place[2][x] < 0) continue;
        s->offset[s->count] = (place[0][z] * g->in[1] + place[1][y]) * g->in[2] + place[2][x];
        s->weight[s->count++] = weight[0][z] * weight[1][y] * weight[2][x];
      }
    }
  }
}
static kiln_status *check_grid(const kiln_ivalue *args, int spatial) {
  const kiln_tensor *t = SELF, *at = ARG(1);
  const int rank = kiln_tensor_rank(t);
  if (kiln_tensor_dtype(t) != kiln_tensor_dtype(at)) {
    return KILN_OP_FAIL("expected scalar type %s but found %s",
                        kiln_dtype_ir_name(kiln_tensor_dtype(t)),
                        kiln_dtype_ir_name(kiln_tensor_dtype(at)));
  }
  if (rank != spatial + 2 || kiln_tensor_rank(at) != rank) {
    return KILN_OP_FAIL("grid_sampler(): expected %dD input and grid with same number of "
                        "dimensions, but got input with sizes %s and grid with sizes %s",
                        spatial + 2, kiln__sizes_of(t).text, kiln__sizes_of(at).text);
  }
  if (kiln_tensor_sizes(t)[0] != kiln_tensor_sizes(at)[0]) {
    return KILN_OP_FAIL("grid_sampler(): expected grid and input to have same batch size, but got "
                        "input with sizes %s and grid with sizes %s",
                        kiln__sizes_of(t).text, kiln__sizes_of(at).text);
  }
  if (kiln_tensor_sizes(at)[rank - 1] != spatial) {
    return KILN_OP_FAIL("grid_sampler(): expected grid to have size %d in last dimension, but got "
                        "grid with sizes %s",
                        spatial, kiln__sizes_of(at).text);
  }
  for (int d = 2; d < rank; d++) {
    if (kiln_tensor_sizes(t)[d] > 0) continue;
    return KILN_OP_FAIL("grid_sampler(): expected input to have non-empty spatial dimensions, but "
                        "input has sizes %s with dimension %d being empty",
                        kiln__sizes_of(t).text, d);
  }
  return NULL;
}
static kiln_status *sample(kiln__nn *nn, const kiln_ivalue *args, int spatial, kiln_ivalue *outs) {
  kiln_tensor *t = SELF, *at = ARG(1), *result;
  grid g = {.spatial = spatial,
            .mode = kiln_arg_int(args, 2),
            .padding = kiln_arg_int(args, 3),
            .align = kiln_arg_bool(args, 4),
            .plane = 1};
  int64_t sizes[MAX_SPATIAL + 2], points = 1;
  const char *from, *places;
  char *to;
  sources s;
  KILN_TRY(check_grid(args, spatial));
  for (int d = 0; d < MAX_SPATIAL; d++) {
    const int own = d - (MAX_SPATIAL - spatial) + 2;
    g.in[d] = own < 2 ? 1 : kiln_tensor_sizes(t)[own];
    g.plane *= g.in[d];
    if (own >= 2) points *= sizes[own] = kiln_tensor_sizes(at)[own - 1];
  }
  sizes[0] = kiln_tensor_sizes(t)[0];
  sizes[1] = kiln_tensor_sizes(t)[1];
  KILN_TRY(kiln__nn_begin(nn, kiln_tensor_dtype(t)));
  KILN_TRY(kiln__nn_dense(nn, t, &from));
  KILN_TRY(kiln__nn_dense(nn, at, &places));
  KILN_TRY(kiln__nn_new(nn, spatial + 2, sizes, &result, &to));
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; result->numel && i < sizes[0] * points && !kiln_budget_spent(&left, 16);
       i++) {
    double where[MAX_SPATIAL] = {0};
    for (int d = 0; d < spatial; d++) where[d] = kiln__nn_get(nn, places, i * spatial + d);
    find_sources(&g, where, &s);
    for (int64_t c = 0; c < sizes[1] && !kiln_budget_spent(&left, 2 + 2 * s.count); c++) {
      const int64_t plane = i / points * sizes[1] + c;
      double sum = 0;
      for (int k = 0; k < s.count; k++) {
        sum += kiln__nn_get(nn, from, plane * g.plane + s.offset[k]) * s.weight[k];
      }
      kiln__nn_set(nn, to, plane * points + i % points, sum);
    }
  }
  return kiln__nn_give(nn, result, kiln_tensor_dtype(t), outs);
}
KILN_NN_KERNEL(grid_sampler_2d) { return sample(nn, args, 2, outs); }
KILN_NN_KERNEL(grid_sampler_3d) { return sample(nn, args, 3, outs); }
KILN_NN_KERNEL(grid_sampler) { return sample(nn, args, kiln_tensor_rank(SELF) == 5 ? 3 : 2, outs); }

/* -- max_unpool: self, indices, output_size -- */

static kiln_status *unpool(kiln__nn *nn, const kiln_ivalue *args, int spatial, kiln_ivalue *outs) {
  kiln_tensor *t = SELF, *at = ARG(1), *dense, *places, *result;
  const int rank = kiln_tensor_rank(t);
  int64_t sizes[KILN_MAX_RANK], wanted[KILN_MAX_RANK], in = 1, out = 1;
  int count;
  void *data;
  KILN_TRY(kiln__arg_int_list(args, 2, wanted, &count));
  if (kiln_tensor_dtype(at) != KILN_DTYPE_I64) {
    return KILN_OP_FAIL("elements in indices should be type int64 but got: %s",
                        kiln_dtype_ir_name(kiln_tensor_dtype(at)));
  }
  if (count != spatial) {
    return KILN_OP_FAIL("There should be exactly %d elements in output_size, but got %d elements.",
                        spatial, count);
  }
  if (rank != spatial + 1 && rank != spatial + 2) {
    return KILN_OP_FAIL("Input to max_unpooling%dd should be a %dd or %dd Tensor", spatial,
                        spatial + 1, spatial + 2);
  }
  if (!kiln_tensor_same_sizes(at, t)) {
    return KILN_OP_FAIL("Expected shape of indices to be same as that of the input tensor (%s) but "
                        "got indices tensor with shape: %s",
                        kiln__sizes_of(t).text, kiln__sizes_of(at).text);
  }
  memcpy(sizes, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)rank);
  for (int d = 0; d < spatial; d++) {
    in *= sizes[rank - spatial + d];
    sizes[rank - spatial + d] = wanted[d];
    if (wanted[d] < 0) return KILN_OP_FAIL("max_unpooling: negative output size");
    if (!kiln_checked_mul_i64(out, wanted[d], &out)) return kiln_status_oom();
  }
  KILN_TRY(kiln__nn_as(nn, t, kiln_tensor_dtype(t), &dense));
  KILN_TRY(kiln__nn_as(nn, at, KILN_DTYPE_I64, &places));
  KILN_TRY(kiln__nn_make(nn, kiln_tensor_dtype(t), rank, sizes, &result, &data));
  const size_t item = kiln_tensor_item_size(result);
  const int64_t *place = kiln_tensor_data(places);
  const char *from = kiln_tensor_data(dense);
  kiln__zero(data, (size_t)result->numel * item);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < t->numel && !kiln_budget_spent(&left, 2); i++) {
    if (place[i] < 0 || place[i] >= out) {
      return KILN_OP_FAIL("Found an invalid max index: %lld (output volumes are of size %lld)",
                          (long long)place[i], (long long)out);
    }
    memcpy((char *)data + (size_t)(i / in * out + place[i]) * item, from + (size_t)i * item, item);
  }
  return kiln__nn_give(nn, result, kiln_tensor_dtype(t), outs);
}
KILN_NN_KERNEL(max_unpool2d) { return unpool(nn, args, 2, outs); }
KILN_NN_KERNEL(max_unpool3d) { return unpool(nn, args, 3, outs); }
