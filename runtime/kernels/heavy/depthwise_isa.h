/* depthwise_isa.h: planes of one type (see depthwise_isa.c). No include guard. */

enum { NAME(W) = (int)(sizeof(V) / sizeof(T)) };

static inline void NAME(store)(T *to, V value, int64_t n) {
  if (n >= NAME(W))
    *(VU *)to = value;
  else
    STORE_SOME(to, value, n);
}

/* -- The sums -- */

/* `rows` >= 4 rows of outputs with k x k taps. The last vectors and rows overlap those before. */
static inline __attribute__((always_inline)) void NAME(square)(const int k, const int step,
                                                               const slab *u, const T *padded,
                                                               const T *weight, T start, T *out) {
  const int64_t columns = u->p->axis[2].out, out_row = u->p->axis[1].out_stride;
  const int64_t rows = u->rows, pitch = u->pitch;
  int64_t offsets[7];
  V w[7 * 7];
#pragma GCC unroll 7
  for (int i = 0; i < k; i++) offsets[i] = u->offsets[i];
#pragma GCC unroll 49
  for (int i = 0; i < k * k; i++) w[i] = weight[i] - (V){0};
  for (int64_t y = 0; y < rows; y += 4) {
    const int64_t at_y = y + 4 <= rows ? y : rows - 4;
    for (int64_t x = 0; x < columns; x += NAME(W)) {
      const int64_t at_x = x + NAME(W) <= columns || x == 0 ? x : columns - NAME(W);
      const T *from = padded + at_y * step * pitch + at_x;
      V acc[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; i++) acc[i] = start - (V){0};
#pragma GCC unroll 16
      for (int r = 0; r < 3 * step + k; r++, from += pitch) {
#pragma GCC unroll 7
        for (int t = 0; t < k; t++) {
          V in = *(const VU *)(from + offsets[t]);
          KILN_IN_REGISTER(in);
#pragma GCC unroll 4
          for (int i = 0; i < 4; i++) {
            const int tap = r - i * step;
            if (tap >= 0 && tap < k) acc[i] = FMA(acc[i], in, w[tap * k + t]);
          }
        }
      }
      T *to = out + at_y * out_row + at_x;
#pragma GCC unroll 4
      for (int i = 0; i < 4; i++) NAME(store)(to + i * out_row, acc[i], columns - at_x);
    }
  }
}
#define SQUARE(k, step)                                                   \
  static __attribute__((noinline)) void NAME(square_##k##_##step)(        \
      const slab *u, const T *padded, const T *weight, T start, T *out) { \
    NAME(square)(k, step, u, padded, weight, start, out);                 \
  }
SQUARE(3, 1)
SQUARE(3, 2)
SQUARE(5, 1)
SQUARE(5, 2)
SQUARE(7, 1)
SQUARE(7, 2)
#undef SQUARE
/* Any taps and steps, a row at a time. */
static void NAME(any)(const slab *u, const T *padded, const T *weight, T start, T *out) {
  const kiln_conv_axis *y = &u->p->axis[1], *x = &u->p->axis[2];
  for (int64_t row = 0; row < u->rows; row++, out += y->out_stride) {
    for (int64_t at = 0; at < x->out; at += 2 * NAME(W)) {
      V low = start - (V){0}, high = low;
      for (int64_t ty = 0; ty < y->taps; ty++) {
        const T *from = padded + (row * y->step + ty * y->tap_step) * u->pitch + at;
        const T *w = weight + ty * x->taps;
        for (int64_t t = 0; t < x->taps; t++) {
          const V tap = w[t] - (V){0};
          low = FMA(low, *(const VU *)(from + u->offsets[t]), tap);
          high = FMA(high, *(const VU *)(from + u->offsets[t] + NAME(W)), tap);
        }
      }
      NAME(store)(out + at, low, x->out - at);
      if (x->out - at > NAME(W)) NAME(store)(out + at + NAME(W), high, x->out - at - NAME(W));
    }
  }
}
typedef void (*NAME(plane_fn))(const slab *u, const T *padded, const T *weight, T start, T *out);
static NAME(plane_fn) NAME(choose)(const slab *u) {
  const kiln_conv_axis *y = &u->p->axis[1], *x = &u->p->axis[2];
  if (u->rows < 4 || y->taps != x->taps || y->tap_step != 1 || y->step > 2) return NAME(any);
  switch (y->taps) {
    case 3: return y->step == 1 ? NAME(square_3_1) : NAME(square_3_2);
    case 5: return y->step == 1 ? NAME(square_5_1) : NAME(square_5_2);
    case 7: return y->step == 1 ? NAME(square_7_1) : NAME(square_7_2);
    default: return NAME(any);
  }
}

/* -- The padded tile -- */

#ifndef FILL
#define FILL NAME(fill)
/* Which of W inputs from `at` on are inside [0, n). */
static inline void NAME(clip)(int64_t at, int64_t n, int64_t *low, int64_t *high) {
  *low = at >= 0 ? 0 : -at < NAME(W) ? -at : NAME(W);
  *high = n - at > NAME(W) ? NAME(W) : n > at ? n - at : 0;
}
/* W columns of all rows: the inputs from `at` on. */
static void NAME(fill_whole)(T *to, int64_t pitch, const T *from, int64_t stride, int64_t rows) {
  for (int64_t i = 0; i < rows; i++) *(VU *)(to + i * pitch) = *(const VU *)(from + i * stride);
}
static void NAME(fill_part)(T *to, int64_t pitch, const T *from, int64_t stride, int64_t rows,
                            int64_t low, int64_t high) {
  for (int64_t i = 0; i < rows; i++) {
    *(VU *)(to + i * pitch) = LOAD_PART(from + i * stride, low, high);
  }
}
/* The same for every other input; `odds` may be NULL. */
static void NAME(fill_pairs)(T *evens, T *odds, int64_t pitch, const T *from, int64_t stride,
                             int64_t rows, const int64_t low[2], const int64_t high[2]) {
  for (int64_t i = 0; i < rows; i++, evens += pitch, from += stride) {
    const V a = LOAD_PART(from, low[0], high[0]);
    const V b = LOAD_PART(from + NAME(W), low[1], high[1]);
    *(VU *)evens = EVENS(a, b);
    if (!odds) continue;
    *(VU *)odds = ODDS(a, b);
    odds += pitch;
  }
}
static void NAME(fill_columns)(const slab *u, T *to, const T *from, int64_t rows) {
  const kiln_conv_axis *y = &u->p->axis[1], *x = &u->p->axis[2];
  int64_t low[2], high[2];
  for (int64_t i = 0; i < u->phasing.length; i += NAME(W)) {
    const int64_t at = x->first + i * x->step;
    NAME(clip)(at, x->in, &low[0], &high[0]);
    if (x->step == 2) {
      NAME(clip)(at + NAME(W), x->in, &low[1], &high[1]);
      NAME(fill_pairs)
      (to + i, u->phasing.phases > 1 ? to + u->length + i : NULL, u->pitch, from + at, y->in_stride,
       rows, low, high);
    } else if (low[0] == 0 && high[0] == NAME(W)) {
      NAME(fill_whole)(to + i, u->pitch, from + at, y->in_stride, rows);
    } else if (low[0] < NAME(W) && high[0] > 0) {
      NAME(fill_part)(to + i, u->pitch, from + at, y->in_stride, rows, low[0], high[0]);
    }
  }
}
static void NAME(fill)(const slab *u, T *padded, const T *in) {
  const kiln_conv_axis *y = &u->p->axis[1], *x = &u->p->axis[2];
  const int64_t begin = u->first_row < 0 ? -u->first_row : 0;
  int64_t end = y->in - u->first_row;
  if (end > u->padded_rows) end = u->padded_rows;
  if (begin >= end) return;
  in += (u->first_row + begin) * y->in_stride;
  padded += begin * u->pitch;
  if (x->in_stride == 1 && (x->step == 1 || (x->step == 2 && x->tap_step == 1))) {
    NAME(fill_columns)(u, padded, in, end - begin);
    return;
  }
  for (int64_t row = begin; row < end; row++, padded += u->pitch, in += y->in_stride) {
    for (int64_t phase = 0; phase < u->phasing.phases; phase++) {
      for (int64_t i = 0; i < u->phasing.length; i++) {
        const int64_t at = x->first + phase * x->tap_step + i * x->step;
        if (at >= 0 && at < x->in) padded[phase * u->length + i] = in[at * x->in_stride];
      }
    }
  }
}
#endif

static void NAME(run)(const kiln_conv *c, const kiln_conv_plan *p, int64_t index, void *scratch) {
  slab u;
  begin_slab(&u, c, p, index);
  const NAME(plane_fn) plane = NAME(choose)(&u);
  const int64_t nx = p->axis[2].taps, ny = p->axis[1].taps;
  T *padded = scratch, weight[KILN_CONV_DEPTHWISE_TAPS * KILN_CONV_DEPTHWISE_TAPS];
  const T *in = (const T *)c->in + u.image * c->in_batch;
  T *out = (T *)c->out + u.image * c->out_batch + u.row * p->axis[1].out_stride;
  /* Two padded tiles in turn: one is filled well before it is read, so that no load waits for a
   * store that it overlaps only in part. */
  const int64_t half = (int64_t)(p->scratch / 2 / sizeof(T));
  memset(padded, 0, p->scratch);
  FILL(&u, padded, in + u.group * c->in_channel);
  for (int64_t g = u.group; g < u.group + u.groups; g++) {
    T *next = padded == (T *)scratch ? padded + half : scratch;
    if (g + 1 < u.group + u.groups) FILL(&u, next, in + (g + 1) * c->in_channel);
    for (int64_t i = 0; i < c->outputs; i++) {
      const T *w = (const T *)c->weight + g * c->w_group + i * c->w_output;
      const int64_t channel = g * c->outputs + i;
      if (!p->a_contiguous) {
        for (int64_t t = 0; t < ny * nx; t++) {
          weight[t] = w[t / nx * p->axis[1].w_tap + t % nx * p->axis[2].w_tap];
        }
        w = weight;
      }
      plane(&u, padded, w, c->bias ? ((const T *)c->bias)[channel] : (T)0,
            out + channel * c->out_channel);
    }
    padded = next;
  }
}
