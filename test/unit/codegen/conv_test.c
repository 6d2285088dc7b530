/* conv_test.c: convolutions as loop IR: random ones of 1 to 3 dimensions, transposed ones too, with
 * and without what stands behind them, with channels last and not, of channels that are cut out of
 * an image, and as a part of another, on the evaluator and on LLVM for every instruction set,
 * against plain C. Elements are small integers, so that sums in any order are the same. Seeds are
 * fixed. */
#include "lower_support.h"
#include "runtime/kernel_shape.h"
#include "runtime/pack.h"

enum { MOST = 3, TENSORS = 5 /* x, w, bias, residual, y */ };

typedef struct conv {
  uint64_t seed;
  int nd;
  bool transposed, lone, bias, residual, relu, wide /* f64 */;
  int64_t batch, groups, channels, outputs; /* of a group */
  int64_t in[MOST], out[MOST], taps[MOST], stride[MOST], pad[MOST], dilation[MOST], more[MOST];
  bool last[TENSORS]; /* its channels are */
  int rank[TENSORS];
  int64_t sizes[TENSORS][MOST + 2], strides[TENSORS][MOST + 2], numel[TENSORS];
  int64_t skip[TENSORS], around[TENSORS]; /* channels of the whole before it; and all beside it */
  bool symbols;                           /* s0, s1, ... for the image's sizes */
  kiln_arena *arena;
  kiln_dims *dims;
  void *data[TENSORS];
  double *wanted;
} conv;

static int64_t draw(conv *c, int least, int most) {
  return least + random_below(&c->seed, most - least + 1);
}

/* -- Which one -- */

/* Taps, padding and what more there is of a transposed one; others have no lowering. */
static void draw_residues(conv *c, int d) {
  if (c->nd == 3 && c->stride[d] > 2) c->stride[d] = 2; /* else there are too many loops */
  const int64_t s = c->stride[d];
  if (s > 1) {
    c->dilation[d] = 1;
    c->taps[d] = s * draw(c, 1, 3);
    c->pad[d] = s * draw(c, 0, 2);
    if (s % 2 == 0 && random_below(&c->seed, 2)) c->pad[d] += s / 2;
  } else if (random_below(&c->seed, 2)) {
    c->more[d] = draw(c, 0, (int)c->dilation[d] - 1);
  }
}

/* False: it has no results. */
static bool draw_axis(conv *c, int d) {
  const bool one = random_below(&c->seed, 3) == 0;
  c->taps[d] = one ? 1 : draw(c, 1, c->nd == 3 ? 3 : 5);
  c->stride[d] = random_below(&c->seed, 2) ? 1 : draw(c, 1, c->transposed ? 4 : 3);
  c->dilation[d] = random_below(&c->seed, 3) ? 1 : draw(c, 1, 3);
  c->pad[d] = random_below(&c->seed, 3) ? draw(c, 0, 3) : 0;
  c->in[d] = draw(c, 1, d == c->nd - 1 ? 37 : 9);
  if (!c->transposed && random_below(&c->seed, 4) == 0) { /* taps that read zeros alone */
    c->dilation[d] = draw(c, 1, 14);
    c->pad[d] = draw(c, 0, 14);
    c->in[d] = draw(c, 1, 7);
  }
  if (c->transposed) draw_residues(c, d);
  const int64_t reach = (c->taps[d] - 1) * c->dilation[d];
  if (c->transposed) {
    c->out[d] = (c->in[d] - 1) * c->stride[d] - 2 * c->pad[d] + reach + 1 + c->more[d];
    return c->out[d] > 0;
  }
  const int64_t whole = c->in[d] + 2 * c->pad[d];
  c->out[d] = (whole - reach - 1) / c->stride[d] + 1;
  return whole > reach;
}

static void set_sizes(conv *c, int t, int rank, const int64_t *sizes) {
  int64_t step = 1;
  c->rank[t] = rank;
  for (int d = rank - 1; d >= 0; d--) {
    c->sizes[t][d] = sizes[d];
    c->strides[t][d] = step;
    step *= sizes[d];
  }
  c->numel[t] = step;
}

/* Of what has batches: x, the residual and y, each by itself. Windows of one channel go over an
 * image's own or over some of a wider one; a result may be a part. */
static void draw_layouts(conv *c) {
  for (int t = 0; t < TENSORS && !c->lone; t++) {
    const bool may_be_part = t == 0 ? c->channels == 1 && !c->transposed : t == 4;
    int64_t whole[MOST + 2];
    if (t == 1 || t == 2) continue;
    if (may_be_part && !c->symbols && random_below(&c->seed, 3) == 0) {
      c->skip[t] = draw(c, 0, 9);
      c->around[t] = c->skip[t] + draw(c, c->skip[t] == 0, 9);
    }
    c->last[t] = random_below(&c->seed, 2) == 0;
    memcpy(whole, c->sizes[t], sizeof whole);
    whole[1] += c->around[t];
    kiln_physical_strides(c->last[t] ? KILN_PHYSICAL_CHANNELS_LAST : KILN_PHYSICAL_STRIDED,
                          c->rank[t], whole, c->strides[t]);
  }
}

static bool draw_conv(conv *c) {
  c->nd = 1 + random_below(&c->seed, MOST);
  c->transposed = random_below(&c->seed, 4) == 0;
  c->lone = random_below(&c->seed, 5) == 0;
  c->bias = random_below(&c->seed, 2);
  c->residual = random_below(&c->seed, 3) == 0;
  c->relu = random_below(&c->seed, 2);
  c->wide = random_below(&c->seed, 5) == 0;
  c->batch = c->lone ? 1 : draw(c, 1, 3);
  c->groups = random_below(&c->seed, 2) ? 1 : draw(c, 1, 6);
  c->channels = random_below(&c->seed, 3) ? draw(c, 1, 9) : 1;
  c->outputs = random_below(&c->seed, 3) ? draw(c, 1, 19) : 1;
  for (int d = 0; d < c->nd; d++)
    if (!draw_axis(c, d)) return false;
  const int64_t in = c->groups * c->channels, out = c->groups * c->outputs;
  int64_t x[MOST + 2] = {c->batch, in}, y[MOST + 2] = {c->batch, out};
  int64_t w[MOST + 2] = {c->transposed ? in : out, c->transposed ? c->outputs : c->channels};
  for (int d = 0; d < c->nd; d++) {
    x[2 + d] = c->in[d];
    y[2 + d] = c->out[d];
    w[2 + d] = c->taps[d];
  }
  set_sizes(c, 0, c->nd + 2 - c->lone, x + c->lone);
  set_sizes(c, 1, c->nd + 2, w);
  set_sizes(c, 2, 1, &out);
  set_sizes(c, 3, c->nd + 2 - c->lone, y + c->lone);
  set_sizes(c, 4, c->nd + 2 - c->lone, y + c->lone);
  draw_layouts(c);
  return true;
}

/* -- In plain C -- */

/* Elements are counted as if channels were not last. */
static double element(const conv *c, int t, int64_t at) {
  if (c->last[t] || c->around[t] > 0) {
    const int64_t channels = c->sizes[t][1], pixels = c->numel[t] / c->batch / channels;
    const int64_t pixel = at % pixels, channel = at / pixels % channels + c->skip[t];
    const int64_t image = at / pixels / channels, all = channels + c->around[t];
    at = c->last[t] ? (image * pixels + pixel) * all + channel
                    : (image * all + channel) * pixels + pixel;
  }
  return c->wide ? ((const double *)c->data[t])[at] : (double)((const float *)c->data[t])[at];
}

/* Adds one product at result `o` of all: tap `tap` of channel pair. */
static void add_tap(conv *c, int64_t n, int64_t g, int64_t ci, int64_t oi, const int64_t *from,
                    const int64_t *tap) {
  const int64_t channel = g * c->channels + ci, output = g * c->outputs + oi;
  int64_t x = n * c->groups * c->channels + channel, y = n * c->groups * c->outputs + output;
  int64_t w = c->transposed ? channel * c->outputs + oi : output * c->channels + ci;
  for (int d = 0; d < c->nd; d++) {
    int64_t in, out;
    if (c->transposed) {
      in = from[d];
      out = in * c->stride[d] - c->pad[d] + tap[d] * c->dilation[d];
    } else {
      out = from[d];
      in = out * c->stride[d] - c->pad[d] + tap[d] * c->dilation[d];
    }
    if (in < 0 || in >= c->in[d] || out < 0 || out >= c->out[d]) return;
    x = x * c->in[d] + in;
    y = y * c->out[d] + out;
    w = w * c->taps[d] + tap[d];
  }
  c->wanted[y] += element(c, 0, x) * element(c, 1, w);
}

/* Goes on to the next index; false: that was the last. */
static bool step(int64_t *at, const int64_t *sizes, int count) {
  for (int d = count - 1; d >= 0; d--) {
    if (++at[d] < sizes[d]) return true;
    at[d] = 0;
  }
  return false;
}

static void run_plain(conv *c) {
  const int64_t *all = c->transposed ? c->in : c->out;
  int64_t sizes[4 + 2 * MOST] = {c->batch, c->groups, c->channels, c->outputs},
                        at[4 + 2 * MOST] = {0};
  for (int d = 0; d < c->nd; d++) {
    sizes[4 + d] = all[d];
    sizes[4 + c->nd + d] = c->taps[d];
  }
  memset(c->wanted, 0, sizeof *c->wanted * (size_t)c->numel[4]);
  do {
    add_tap(c, at[0], at[1], at[2], at[3], at + 4, at + 4 + c->nd);
  } while (step(at, sizes, 4 + 2 * c->nd));
  const int64_t outputs = c->groups * c->outputs, plane = c->numel[4] / c->batch / outputs;
  for (int64_t i = 0; i < c->numel[4]; i++) {
    double v = c->wanted[i] + (c->bias ? element(c, 2, i / plane % outputs) : 0);
    if (c->residual) v += element(c, 3, i);
    c->wanted[i] = c->relu && v < 0 ? 0 : v;
  }
}

/* -- As a graph -- */

/* Of an axis of the image, and of the result, what stands behind its symbol. */
static int64_t left_of(const conv *c, int d) {
  const int64_t reach = (c->taps[d] - 1) * c->dilation[d];
  if (c->transposed) return reach + 1 + c->more[d] - 2 * c->pad[d] - c->stride[d];
  return 2 * c->pad[d] + c->stride[d] - reach - 1;
}
/* Whether that is so for all sizes from 2 on. */
static bool can_be_symbols(const conv *c) {
  bool can = true;
  for (int d = 0; d < c->nd; d++) {
    const int64_t least = c->transposed ? c->stride[d] * 2 : 0;
    can &= c->in[d] >= 2 && left_of(c, d) + least >= (c->transposed ? c->stride[d] : 0);
  }
  return can;
}

static kiln_dim size_of(const conv *c, int t, int d) {
  const int axis = d - (c->rank[t] - c->nd);
  if (!c->symbols || t == 1 || t == 2 || axis < 0) return c->sizes[t][d];
  const kiln_dim from = kiln_dim_symbol(axis);
  if (t == 0) return from;
  const kiln_sum left = kiln_sum_number(left_of(c, axis));
  if (c->transposed)
    return kiln_sum_dim(
        c->dims, kiln_sum_plus(kiln_sum_times(kiln_sum_of(c->dims, from), c->stride[axis]), left));
  const kiln_sum all = kiln_sum_plus(kiln_sum_of(c->dims, from), left);
  return kiln_sum_dim(c->dims, kiln_sum_divided(c->dims, all, c->stride[axis]));
}

/* The group's own result lies as `t`, what is inside as nothing says. `around`: channels that there
 * are more. */
static int put_type(const conv *c, int t, bool last, int64_t around, char *to, size_t room) {
  kiln_text text = kiln_text_in(c->arena);
  kiln_dim strides[MOST + 2], step = 1;
  kiln_text_puts(&text, c->wide ? "Double(" : "Float(");
  for (int d = c->rank[t] - 1; d >= 0; d--) {
    strides[d] = step;
    step = kiln_dim_product(c->dims, step, size_of(c, t, d) + (d == 1 ? around : 0));
  }
  for (int d = 0; d < c->rank[t]; d++) {
    kiln_dim_print(&text, c->dims, size_of(c, t, d) + (d == 1 ? around : 0));
    kiln_text_puts(&text, ", ");
  }
  for (int d = 0; d < c->rank[t]; d++) {
    kiln_text_puts(&text, d ? ", " : "strides=[");
    kiln_dim_print(&text, c->dims, strides[d]);
  }
  return snprintf(to, room, KILN_STR_FMT "]%s, requires_grad=0, device=cpu)",
                  KILN_STR_ARG(kiln_text_str(&text)), last ? ", layout=channels_last" : "");
}
static int put_list(const conv *c, const char *name, const int64_t *list, char *to, size_t room) {
  int n = snprintf(to, room, "  %%%s : int[] = prim::Constant[value=[", name);
  for (int d = 0; d < c->nd; d++)
    n += snprintf(to + n, room - (size_t)n, "%s%lld", d ? ", " : "", (long long)list[d]);
  return n + snprintf(to + n, room - (size_t)n, "]]()\n");
}

#define PUT(...) n += snprintf(to + n, room - (size_t)n, __VA_ARGS__)
#define PUT_TYPE(t, last) n += put_type(c, t, last, 0, to + n, room - (size_t)n)
#define PUT_WHOLE(t, last) n += put_type(c, t, last, c->around[t], to + n, room - (size_t)n)
/* Where the part of a whole begins and ends. */
static void put_ints(const conv *c, int t, char *to, size_t room, int *count) {
  int n = *count;
  PUT("  %%begin%d : int = prim::Constant[value=%lld]()\n", t, (long long)c->skip[t]);
  PUT("  %%end%d : int = prim::Constant[value=%lld]()\n", t,
      (long long)(c->skip[t] + c->sizes[t][1]));
  *count = n;
}
static void put_graph(conv *c, char *to, size_t room) {
  static const char *const names[TENSORS] = {"x", "w", "b", "r", "y"};
  const bool general = random_below(&c->seed, 3) == 0;
  int n = 0;
  PUT("graph(");
  for (int t = 0; t < 4; t++) {
    if ((t == 2 && !c->bias) || (t == 3 && !c->residual)) continue;
    PUT("%s%%%s : ", t ? ", " : "", t == 0 && c->around[0] ? "whole" : names[t]);
    PUT_WHOLE(t, c->last[t]);
  }
  PUT("):\n  %%none : NoneType = prim::Constant()\n  %%one : int = prim::Constant[value=1]()\n"
      "  %%groups : int = prim::Constant[value=%lld]()\n  %%t : bool = "
      "prim::Constant[value=%d]()\n",
      (long long)c->groups, c->transposed);
  n += put_list(c, "stride", c->stride, to + n, room - (size_t)n);
  n += put_list(c, "pad", c->pad, to + n, room - (size_t)n);
  n += put_list(c, "dilation", c->dilation, to + n, room - (size_t)n);
  n += put_list(c, "more", c->more, to + n, room - (size_t)n);
  if (c->around[0]) {
    put_ints(c, 0, to, room, &n);
    PUT("  %%x : ");
    PUT_TYPE(0, false);
    PUT(" = aten::slice(%%whole, %%one, %%begin0, %%end0, %%one)\n");
  }
  PUT("  %%c : ");
  PUT_TYPE(4, c->last[4] && !c->residual && !c->relu);
  if (general) {
    PUT(" = aten::convolution(%%x, %%w, %s, %%stride, %%pad, %%dilation, %%t, %%more, %%groups)\n",
        c->bias ? "%b" : "%none");
  } else if (c->transposed) {
    PUT(" = aten::conv_transpose%dd(%%x, %%w, %s, %%stride, %%pad, %%more, %%groups, %%dilation)\n",
        c->nd, c->bias ? "%b" : "%none");
  } else {
    PUT(" = aten::conv%dd(%%x, %%w, %s, %%stride, %%pad, %%dilation, %%groups)\n", c->nd,
        c->bias ? "%b" : "%none");
  }
  const char *last = "c";
  if (c->residual) {
    PUT("  %%s : ");
    PUT_TYPE(4, c->last[4] && !c->relu);
    PUT(" = aten::add(%%c, %%r, %%one)\n");
    last = "s";
  }
  if (c->relu) {
    PUT("  %%z : ");
    PUT_TYPE(4, c->last[4]);
    PUT(" = aten::relu(%%%s)\n", last);
    last = "z";
  }
  if (c->around[4]) {
    put_ints(c, 4, to, room, &n);
    PUT("  %%sizes : int[] = prim::Constant[value=[");
    for (int d = 0; d < c->rank[4]; d++)
      PUT("%s%lld", d ? ", " : "", (long long)(c->sizes[4][d] + (d == 1 ? c->around[4] : 0)));
    PUT("]]()\n  %%e : ");
    PUT_WHOLE(4, c->last[4]);
    PUT(" = aten::new_empty(%%%s, %%sizes, %%none, %%none, %%none, %%none)\n  %%o : ", last);
    PUT_WHOLE(4, c->last[4]);
    PUT(" = aten::slice_scatter(%%e, %%%s, %%one, %%begin4, %%end4, %%one)\n", last);
    last = "o";
  }
  PUT("  return (%%%s)\n", last);
}

/* -- Running -- */

static int64_t all_of(const conv *c, int t) {
  return c->around[t] ? c->numel[t] / c->sizes[t][1] * (c->sizes[t][1] + c->around[t])
                      : c->numel[t];
}

static void fill(conv *c) {
  const size_t item = c->wide ? 8 : 4;
  for (int t = 0; t < TENSORS; t++) {
    c->data[t] = aligned_alloc(64, ((size_t)all_of(c, t) * item + 63) / 64 * 64);
    for (int64_t i = 0; i < all_of(c, t); i++) {
      const int value = random_below(&c->seed, 9) - 4;
      if (c->wide) ((double *)c->data[t])[i] = value;
      if (!c->wide) ((float *)c->data[t])[i] = (float)value;
    }
  }
  c->wanted = calloc((size_t)c->numel[4], sizeof *c->wanted);
}

/* What stands beside the part is as it was. */
static void check_around(const conv *c) {
  const size_t item = c->wide ? 8 : 4;
  const unsigned char *data = c->data[4];
  const int64_t all = c->around[4] + c->sizes[4][1], step = c->strides[4][1];
  for (int64_t i = 0; c->around[4] && i < all_of(c, 4); i++) {
    const int64_t channel = i / step % all - c->skip[4];
    if (channel >= 0 && channel < c->sizes[4][1]) continue;
    for (size_t b = 0; b < item; b++) assert_int_equal(data[(size_t)i * item + b], 0x7f);
  }
}

/* In boxes that are cut anywhere. */
static void run_code(conv *c, const kiln_compiled *code) {
  const size_t item = c->wide ? 8 : 4;
  void *data[TENSORS], *copies[TENSORS] = {0};
  int tensors[TENSORS], count = 0;
  for (int t = 0; t < TENSORS; t++) {
    if ((t == 2 && !c->bias) || (t == 3 && !c->residual)) continue;
    tensors[count] = t;
    data[count++] = c->data[t];
  }
  if (c->around[4]) /* the caller tells where the part begins */
    data[count - 1] = (char *)c->data[4] + (size_t)(c->skip[4] * c->strides[4][1]) * item;
  assert_true(code->info.pack_count <= TENSORS);
  for (int i = 0; i < code->info.pack_count; i++) {
    const int input = code->info.packs[i].input;
    const int t = tensors[input];
    const kiln_kernel_pack pack =
        kiln_pack_of(&code->info.packs[i], all_of(c, t), c->sizes[t], c->strides[t]);
    size_t bytes;
    assert_true(kiln_pack_bytes(&pack, &bytes));
    copies[i] = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(copies[i], 0xff, bytes); /* NaN */
    kiln_pack_copy(&pack, data[input], copies[i]);
    data[input] = copies[i];
  }
  kiln_kernel_work work = code->info.work;
  if (code->info.shape) assert_true(kiln_kernel_shape_work(code->info.shape, c->in, &work));
  void *scratch = aligned_alloc(64, work.scratch_bytes / 64 * 64 + 64);
  const kiln_kernel_args args = {
      .data = data, .scratch = scratch, .closure = code->closure, .symbols = c->in};
  memset(c->data[4], 0x7f, (size_t)all_of(c, 4) * item);
  kiln_kernel_box box = work.grid;
  const int axis = random_below(&c->seed, KILN_KERNEL_AXES);
  for (int64_t at = 0, end = work.grid.end[axis]; at < end;) {
    box.begin[axis] = at;
    at = box.end[axis] = at + 1 + random_below(&c->seed, (int)(end - at));
    code->fn(&args, &box);
  }
  check_around(c);
  free(scratch);
  for (int i = 0; i < TENSORS; i++) free(copies[i]);
}

static void compare(const conv *c, uint64_t seed, const char *what, const char *text) {
  for (int64_t i = 0; i < c->numel[4]; i++) {
    if (element(c, 4, i) == c->wanted[i]) continue;
    fail_msg("seed %llu, %s: element %lld is %g, not %g\n%s", (unsigned long long)seed, what,
             (long long)i, element(c, 4, i), c->wanted[i], text);
  }
}

typedef struct trial {
  lowered t;
  kiln_backend backend;
  kiln_compiled *code;
} trial;
static kiln_status *compile_body(trial *t) {
  return kiln_codegen_compile(t->t.codegen, t->t.fn, t->backend, &t->t.reason, &t->code, NULL);
}

/* Gives whether it was one of symbols. */
static bool run_seed(uint64_t seed) {
  char source[8192];
  conv c = {.seed = seed * UINT64_C(0x9e3779b97f4a7c15), .symbols = seed / 8 % 2};
  if (!draw_conv(&c)) return false;
  fill(&c);
  const uint64_t before = c.seed;
  fixture f;
  fixture_open(&f);
  c.arena = f.arena;
  c.dims = kiln_dims_create(f.arena);
  c.symbols &= can_be_symbols(&c);
  put_graph(&c, source, sizeof source);
  trial t = {.backend = KILN_BACKEND_LLVM};
  kiln_status *refused = open_graph(&t.t, source);
  if (refused && c.symbols) { /* sizes that are too small for the window have no result */
    kiln_status_destroy(refused);
    close_graph(&t.t);
    c.symbols = false;
    c.seed = before;
    put_graph(&c, source, sizeof source);
    refused = open_graph(&t.t, source);
  }
  assert_ok(refused);
  kiln_codegen_destroy(t.t.codegen);
  t.t.f.env->isa = (kiln_isa)(seed % (uint64_t)isa_count());
  kiln_flags *flags = &t.t.f.env->flags;
  assert_ok(kiln_flags_set(flags, "machine", seed / 4 % 2 ? "pairs=1" : "pairs=0"));
  assert_ok(kiln_flags_set(flags, "matmul", seed / 2 % 2 ? "bf16" : "f32"));
  assert_ok(lower(&t.t)); /* these numbers are bf16's */
  assert_ok(kiln_codegen_create(t.t.f.env, &t.t.codegen));
  kiln_str again;
  (void)parse_loop(&t.t.f, t.t.text.data, false, &again);
  assert_string_equal(again.data, t.t.text.data);
  run_plain(&c);
  for (int turn = 0; turn < (llvm_compiles((int)seed) ? 2 : 1); turn++) {
    t.backend = turn ? KILN_BACKEND_LLVM : KILN_BACKEND_EVAL;
    assert_ok(compile_body(&t));
    run_code(&c, t.code);
    compare(&c, seed, turn ? "LLVM" : "evaluator", t.t.text.data);
    kiln_compiled_release(t.code);
  }
  close_graph(&t.t);
  for (int i = 0; i < TENSORS; i++) free(c.data[i]);
  free(c.wanted);
  fixture_close(&f);
  return c.symbols;
}

static void test_random(void **unused) {
  (void)unused;
  const uint64_t count = (uint64_t)random_rounds(80);
  uint64_t symbols = 0;
  for (uint64_t seed = 1; seed <= count; seed++) symbols += run_seed(random_seed(seed));
  assert_true(symbols >= count / 8);
}

/* -- Copies that are none -- */

static void test_wrong_copies(void **unused) {
  (void)unused;
  static const char *const wrong[][2] = {
      {"in b0: f32[5] [1] copy of [4] [1] before [2]", "smaller"},
      {"in b0: f32[6] [2] copy of [4] [1] before [1]", "not contiguous"},
      {"in b0: f32[6] [1] copy of [4] [1] flipped [2]", "of nothing"},
      {"in b0: f32[6] [1] copy of [0] [1]", "of nothing"},
      {"in b0: f32[6] [1] copy of [s0] [1]", "smaller"},
      {"in b0: f32[s0 + 1] [1] copy of [s0] [1] before [2]", "smaller"},
      {"in b0: f32[s0 + s1] [1] copy of [s0] [1]", "not contiguous"},
      {"in b0: f32[s0 + 1] [1] copy of [s0] [1] before [1] flipped [1]", "of nothing"},
      {"in b0: f32[6] [1] copy of [4] [1] before [s0]", "no number"},
      {"in b0: f32[4] [1] copy of [4] [1] from -1", "no number"},
      {"in b0: f32[s0] [1] copy of [s0] [1] from 2", "of nothing"},
      {"in b0: f32[s0, 4] [4, 1] copy of [s0, 4] [4, 1] flipped [0, 1]", "of nothing"},
      {"in b0: f32[6] [1] copy of [4, 1] [1, 1]", "a copy of 2 dimensions"},
      {"in b0: f32[6] [1] copy of [4] [1] before [1, 1]", "2 numbers for a copy"},
      {"in b0: f32[] [] copy of [] []", "a copy of a number"},
      {"in b0: f32[1] [1] out b1: f32[6] [1] copy of [4] [1]", "no input"},
      {"in b0: f32[6] [1] copy of [4] [1] before [1] out b1: f32[6] [1] nest [6] {"
       " %0 = load f32 b0 + 1 [1] store f32 b1 + 0 [1], %0 }",
       "outside of b0"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    fixture f;
    fixture_open(&f);
    char text[512];
    snprintf(text, sizeof text, "kernel { %s }", wrong[i][0]);
    parse_job job = {.f = &f, .text = kiln_str_from(text)};
    assert_error(parse_body(&job), KILN_INVALID_ARGUMENT, wrong[i][1]);
    fixture_close(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random),
                                     cmocka_unit_test(test_wrong_copies)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
