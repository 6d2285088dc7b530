/* joined_convolution.c: the weight and the bias of the one convolution that gives the sum of
 * several over the same image, each perhaps behind a batch norm that does not train.
 *
 * Batch norm of a convolution is one whose weight is multiplied by the norm's scale, and a sum of
 * convolutions is one with the sum of their weights; a smaller window stands somewhere in the
 * largest, beside zeros (Ding et al., RepVGG: Making VGG-style ConvNets Great Again, 2021). The
 * image itself is a convolution with a window of one element that is 1. All is summed as double and
 * rounded once. */
#include <math.h>

#include "runtime/kernels/nn/nn.h"

enum {
  WEIGHT, /* None: the image itself */
  BIAS,
  GAMMA,
  BETA,
  MEAN, /* None: there is no norm */
  VARIANCE,
  PARAMS, /* of a branch */
  MOST_AXES = KILN_MAX_RANK - 2
};

/* What all branches become. */
typedef struct joined {
  int axes;                     /* of the window */
  const int64_t *sizes;         /* of the weight: outputs, inputs of a group, window */
  int64_t taps;                 /* of the window */
  double *weight, *bias;        /* sums; */
  int64_t steps[KILN_MAX_RANK]; /* of the weight */
} joined;

typedef struct branch {
  const char *params[PARAMS];
  double eps;
  int64_t window[MOST_AXES], taps;
  const int64_t *place; /* of the window's first element in the largest */
} branch;

static kiln_status *check_vector(const kiln_tensor *t, int64_t count) {
  return t && (kiln_tensor_rank(t) != 1 || t->numel != count)
             ? KILN_OP_FAIL("joined_convolution: a vector of %lld elements was expected",
                            (long long)count)
             : NULL;
}

static kiln_status *open_branch(kiln__nn *nn, const joined *j, const kiln_ivalue *params,
                                double eps, const int64_t *place, branch *b) {
  *b = (branch){.eps = eps, .place = place, .taps = 1};
  for (int i = 0; i < PARAMS; i++) {
    kiln_tensor *t = params[i].tag == KILN_TAG_TENSOR ? params[i].u.tensor : NULL;
    if (i != WEIGHT) KILN_TRY(check_vector(t, j->sizes[0]));
    KILN_TRY(kiln__nn_dense(nn, t, &b->params[i]));
  }
  if (!b->params[MEAN] != !b->params[VARIANCE])
    return KILN_OP_FAIL("joined_convolution: a mean without a variance");
  const kiln_tensor *weight = b->params[WEIGHT] ? params[WEIGHT].u.tensor : NULL;
  const int64_t *sizes = weight ? kiln_tensor_sizes(weight) : NULL;
  bool fits = !weight || (kiln_tensor_rank(weight) == 2 + j->axes && sizes[0] == j->sizes[0] &&
                          sizes[1] == j->sizes[1]);
  for (int a = 0; a < j->axes && fits; a++) {
    b->window[a] = sizes ? sizes[2 + a] : 1;
    b->taps *= b->window[a];
    fits = place[a] >= 0 && b->window[a] <= j->sizes[2 + a] &&
           place[a] <= j->sizes[2 + a] - b->window[a];
  }
  return fits ? NULL : KILN_OP_FAIL("joined_convolution: a window does not fit");
}

/* Adds scale * the branch's taps of one output and input. */
static void add_taps(const kiln__nn *nn, const joined *j, const branch *b, double scale,
                     int64_t output, int64_t input) {
  const int64_t row = output * j->sizes[1] + input;
  double *into = j->weight + row * j->taps;
  for (int64_t tap = 0; tap < b->taps; tap++) {
    int64_t rest = tap, at = 0;
    for (int a = j->axes - 1; a >= 0; a--) {
      at += (b->place[a] + rest % b->window[a]) * j->steps[2 + a];
      rest /= b->window[a];
    }
    into[at] +=
        scale * (b->params[WEIGHT] ? kiln__nn_get(nn, b->params[WEIGHT], row * b->taps + tap) : 1);
  }
}

static void add_branch(const kiln__nn *nn, const joined *j, const branch *b) {
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t o = 0; o < j->sizes[0]; o++) {
    const double gamma = b->params[GAMMA] ? kiln__nn_get(nn, b->params[GAMMA], o) : 1;
    double scale = 1, shift = 0;
    if (kiln_budget_spent(&left, j->sizes[1] * b->taps)) return;
    if (b->params[MEAN]) {
      scale = gamma / sqrt(kiln__nn_get(nn, b->params[VARIANCE], o) + b->eps);
      shift = (b->params[BETA] ? kiln__nn_get(nn, b->params[BETA], o) : 0) -
              scale * kiln__nn_get(nn, b->params[MEAN], o);
    }
    j->bias[o] += shift + (b->params[BIAS] ? scale * kiln__nn_get(nn, b->params[BIAS], o) : 0);
    if (!b->params[WEIGHT]) {
      add_taps(nn, j, b, scale, o, o % j->sizes[1]);
      continue;
    }
    for (int64_t i = 0; i < j->sizes[1]; i++) add_taps(nn, j, b, scale, o, i);
  }
}

static kiln_status *add_branches(kiln__nn *nn, const joined *j, const kiln_list *params,
                                 const kiln_list *eps, const int64_t *places) {
  for (int64_t i = 0; i < eps->count; i++) {
    kiln__nn own = {.call = nn->call};
    branch b;
    kiln_status *status = kiln__nn_begin(&own, nn->dtype);
    if (!status)
      status = open_branch(&own, j, params->items + i * PARAMS, eps->items[i].u.f,
                           places + i * j->axes, &b);
    if (!status) add_branch(&own, j, &b);
    kiln__nn_release(&own);
    KILN_TRY(status);
  }
  return NULL;
}

/* like, params, eps, sizes, places; zeroed sums that are given as what `like` is. */
KILN_NN_KERNEL(joined_convolution) {
  enum { MOST = 64 };
  const kiln_tensor *like = kiln_arg_tensor(args, 0);
  const kiln_list *params = kiln_arg_list(args, 1), *eps = kiln_arg_list(args, 2);
  int64_t sizes[KILN_MAX_RANK], places[MOST * MOST_AXES];
  int rank, place_count;
  KILN_TRY(kiln_arg_ints(args, 3, KILN_MAX_RANK, sizes, &rank));
  KILN_TRY(kiln_arg_ints(args, 4, MOST * MOST_AXES, places, &place_count));
  bool good = rank > 2 && eps->count <= MOST && params->count == eps->count * PARAMS &&
              place_count == eps->count * (rank - 2);
  for (int d = 0; d < rank && good; d++) good = sizes[d] > 0;
  if (!good) return KILN_OP_FAIL("joined_convolution: lists of other lengths were expected");
  const kiln_dtype dtype = kiln_tensor_dtype(like);
  KILN_TRY(kiln__nn_begin(nn, dtype));
  joined j = {.axes = rank - 2, .sizes = sizes, .taps = 1};
  for (int d = rank - 1; d >= 2; d--) j.steps[d] = j.taps, j.taps *= sizes[d];
  kiln_tensor *weight, *bias;
  KILN_TRY(kiln__nn_make(nn, KILN_DTYPE_F64, rank, sizes, &weight, (void **)&j.weight));
  KILN_TRY(kiln__nn_make(nn, KILN_DTYPE_F64, 1, sizes, &bias, (void **)&j.bias));
  memset(j.weight, 0, (size_t)weight->numel * sizeof *j.weight);
  memset(j.bias, 0, (size_t)bias->numel * sizeof *j.bias);
  KILN_TRY(add_branches(nn, &j, params, eps, places));
  KILN_TRY(kiln__nn_give(nn, weight, dtype, &outs[0]));
  return kiln__nn_give(nn, bias, dtype, &outs[1]);
}
