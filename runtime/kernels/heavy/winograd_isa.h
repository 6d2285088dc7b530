/* winograd_isa.h: tiles of one form, FORM outputs along an axis (winograd_isa.c). No include guard.
 */

#define NAMED(name) KILN_ISA_CAT3(name, _, FORM)
enum { NAMED(AT) = FORM + 2, NAMED(POSITIONS) = NAMED(AT) * NAMED(AT) };
#define AT NAMED(AT)
#define POSITIONS NAMED(POSITIONS)

/* -- Weights -- */

/* Panels of U: [position][channel][outputs of the panel, whole vectors of them]. */
static void NAMED(fill)(const kiln_winograd_filling *f, int64_t begin, int64_t end) {
  const kiln_winograd_weight *w = f->weight;
  for (int64_t panel = begin; panel < end; panel++) {
    if (kiln_budget_leaves_out()) return;
    const int64_t first = panel * PANEL, left = f->outputs - first;
    const int64_t count = left < PANEL ? left : PANEL, width = count > LANES ? PANEL : LANES;
    const int64_t pitch = kiln__winograd_pitch(f->planes, f->channels, LANES);
    const int64_t depth = f->planes * pitch;
    float *to = f->u + kiln__winograd_panel_at(POSITIONS, depth, PANEL, panel);
    for (int64_t k = 0; k < depth; k++, to += width) {
      double g[3][3][PANEL], half[3][PANEL];
      memset(g, 0, sizeof g);
      const float *from =
          w->data + first * w->output + k / pitch * w->tap[0] + k % pitch * w->channel;
      for (int64_t n = 0; n < count && k % pitch < f->channels; n++, from += w->output) {
        for (int i = 0; i < 3; i++) {
          for (int j = 0; j < 3; j++) g[i][j][n] = (double)from[i * w->tap[1] + j * w->tap[2]];
        }
      }
      for (int row = 0; row < AT; row++) {
        const double *a = NAMED(weights)[row];
        for (int j = 0; j < 3; j++) {
          for (int n = 0; n < PANEL; n++) {
            half[j][n] = a[0] * g[0][j][n] + a[1] * g[1][j][n] + a[2] * g[2][j][n];
          }
        }
        for (int column = 0; column < AT; column++) {
          const double *b = NAMED(weights)[column];
          float *at = to + (row * AT + column) * depth * width;
          for (int n = 0; n < width; n++) {
            at[n] = (float)(b[0] * half[0][n] + b[1] * half[1][n] + b[2] * half[2][n]);
          }
        }
      }
    }
  }
}

/* -- Inputs -- */

/* Where a tile's inputs are, and zeros for those outside: of channels up to CHANNELS. */
enum { NAMED(CHANNELS) = 1024 };
static const float NAMED(zeros)[NAMED(CHANNELS)] __attribute__((aligned(64)));
ALWAYS_INLINE void NAMED(find)(const kiln_winograd *p, const float *x, int64_t row, int64_t column,
                               int64_t channel, const float *at[POSITIONS]) {
  for (int i = 0; i < AT; i++) {
    const int64_t y = row - p->pad[1] + i * p->dilation[0];
    const bool row_inside = y >= 0 && y < p->in[1];
    for (int j = 0; j < AT; j++) {
      const int64_t z = column - p->pad[2] + j * p->dilation[1];
      const bool inside = row_inside && z >= 0 && z < p->in[2];
      at[i * AT + j] = inside ? x + y * p->in_axis[1] + z * p->in_axis[2] + channel : NAMED(zeros);
    }
  }
}

/* Two rows of positions of a vector of channels: `pair` says which. */
typedef enum NAMED(pair) { NAMED(ENDS), NAMED(NEAR), NAMED(FAR) } NAMED(pair);
ALWAYS_INLINE void NAMED(line)(const NAMED(pair) pair, const V *d, V *low, V *high) {
  if (pair == NAMED(ENDS)) NAMED(gather_ends)(d, low, high);
  if (pair == NAMED(NEAR)) NAMED(gather_near)(d, low, high);
#if FORM == 4
  if (pair == NAMED(FAR)) NAMED(gather_far)(d, low, high);
#endif
}
ALWAYS_INLINE void NAMED(store)(const V *d, float *to, int64_t step) {
  V low, high;
  NAMED(gather_ends)(d, &low, &high);
  *(V *)to = low;
  *(V *)(to + (AT - 1) * step) = high;
  NAMED(gather_near)(d, &low, &high);
  *(V *)(to + step) = low;
  *(V *)(to + 2 * step) = high;
#if FORM == 4
  NAMED(gather_far)(d, &low, &high);
  *(V *)(to + 3 * step) = low;
  *(V *)(to + 4 * step) = high;
#endif
}
ALWAYS_INLINE void NAMED(gather_pair)(const NAMED(pair) pair, const bool whole, lanes_mask mask,
                                      const float *const at[POSITIONS], int64_t c, float *to,
                                      int64_t step) {
  V low[AT], high[AT];
  UNROLL for (int j = 0; j < AT; j++) {
    V d[AT];
    UNROLL for (int i = 0; i < AT; i++) {
      const float *from = at[i * AT + j] + c;
      const bool used = pair == NAMED(ENDS) || (i > 0 && i < AT - 1);
      if (!used)
        d[i] = (V){0};
      else if (whole)
        d[i] = *(const VU *)from;
      else
        d[i] = load_part(from, mask);
    }
    NAMED(line)(pair, d, &low[j], &high[j]);
  }
  const int first = pair == NAMED(ENDS) ? 0 : pair == NAMED(NEAR) ? 1 : 3;
  const int second = pair == NAMED(ENDS) ? AT - 1 : first + 1;
  NAMED(store)(low, to + first * AT * step, step);
  NAMED(store)(high, to + second * AT * step, step);
}
ALWAYS_INLINE void NAMED(gather_vector)(const bool whole, lanes_mask mask,
                                        const float *const at[POSITIONS], int64_t c, float *to,
                                        int64_t step) {
  NAMED(gather_pair)(NAMED(ENDS), whole, mask, at, c, to, step);
  NAMED(gather_pair)(NAMED(NEAR), whole, mask, at, c, to, step);
#if FORM == 4
  NAMED(gather_pair)(NAMED(FAR), whole, mask, at, c, to, step);
#endif
}
static void NAMED(gather_tile)(const float *const at[POSITIONS], int64_t channels, float *to,
                               int64_t step) {
  int64_t c = 0;
  for (; c + LANES <= channels; c += LANES) {
    NAMED(gather_vector)(true, mask_of(0), at, c, to + c, step);
  }
  if (c < channels) NAMED(gather_vector)(false, mask_of(channels - c), at, c, to + c, step);
}
/* A tile's channels of one plane. */
static void NAMED(gather_plane)(const kiln_winograd_strip *s, const float *x, int64_t row,
                                int64_t column, float *to) {
  const kiln_winograd *p = &s->plan->problem;
  const float *at[POSITIONS];
  for (int64_t c = 0; c < p->channels; c += NAMED(CHANNELS)) {
    const int64_t left = p->channels - c;
    NAMED(find)(p, x, row, column, c, at);
    NAMED(gather_tile)(at, left < NAMED(CHANNELS) ? left : NAMED(CHANNELS), to + c,
                       s->plan->v_position);
  }
}
/* Of taps that the strip has, but the tile's image has not. */
static void NAMED(gather_nothing)(const kiln_winograd_strip *s, int64_t begin, int64_t end,
                                  float *to) {
  const int64_t pitch = s->plan->pitch;
  for (int64_t position = 0; position < POSITIONS && begin < end; position++) {
    memset(to + position * s->plan->v_position + begin * pitch, 0,
           (size_t)((end - begin) * pitch) * sizeof *to);
  }
}
/* The first output of a row or column of tiles. */
ALWAYS_INLINE int64_t NAMED(begin)(int64_t index, int64_t dilation) {
  return dilation == 1 ? index * FORM : index / dilation * dilation * FORM + index % dilation;
}
static void NAMED(gather)(const kiln_winograd_strip *s) {
  const kiln_winograd_plan *plan = s->plan;
  const kiln_winograd *p = &plan->problem;
  for (int64_t i = 0; i < s->tiles; i++) {
    const int64_t tile = s->tile + i, line = tile / plan->columns;
    const int64_t image = line / plan->lines, plane = image % p->out[0];
    const float *x = s->x + image / p->out[0] * p->in_batch + (plane - p->pad[0]) * p->in_axis[0];
    float *to = s->v + i * plan->v_row;
    int64_t begin;
    const int64_t end = kiln_winograd_taps(p, plane, &begin);
    NAMED(gather_nothing)(s, s->first_tap, begin, to);
    for (int64_t tap = begin; tap < end; tap++) {
      NAMED(gather_plane)(
          s, x + tap * p->in_axis[0], NAMED(begin)(line % plan->lines, p->dilation[0]),
          NAMED(begin)(tile % plan->columns, p->dilation[1]), to + tap * plan->pitch);
    }
    NAMED(gather_nothing)(s, end, s->last_tap, to);
  }
}

/* -- Outputs -- */

/* Of a tile and a vector of outputs; `mask` NULL: a whole one. */
ALWAYS_INLINE void NAMED(give_vector)(const float *m, int64_t step, float *y, int64_t y_row,
                                      int64_t y_column, int64_t rows, int64_t columns,
                                      const lanes_mask *mask) {
  V half[FORM][AT];
  UNROLL for (int j = 0; j < AT; j++) {
    V from[AT], to[FORM];
    UNROLL for (int i = 0; i < AT; i++) from[i] = *(const V *)(m + (i * AT + j) * step);
    NAMED(give)(from, to);
    UNROLL for (int i = 0; i < FORM; i++) half[i][j] = to[i];
  }
  UNROLL for (int i = 0; i < FORM; i++) {
    V to[FORM];
    if (i >= rows) return;
    NAMED(give)(half[i], to);
    UNROLL for (int j = 0; j < FORM; j++) {
      if (j >= columns) break;
      float *at = y + i * y_row + j * y_column;
      if (mask)
        store_part(at, *mask, to[j]);
      else
        *(VU *)at = to[j];
    }
  }
}
static void NAMED(give_tile)(const float *m, int64_t step, float *y, int64_t y_row,
                             int64_t y_column, int64_t rows, int64_t columns, int64_t outputs) {
  for (int64_t n = 0; n < outputs; n += LANES, m += LANES, y += LANES) {
    if (n + LANES > outputs) {
      const lanes_mask mask = mask_of(outputs - n);
      NAMED(give_vector)(m, step, y, y_row, y_column, rows, columns, &mask);
    } else if (rows == FORM && columns == FORM) {
      NAMED(give_vector)(m, step, y, y_row, y_column, FORM, FORM, NULL);
    } else {
      NAMED(give_vector)(m, step, y, y_row, y_column, rows, columns, NULL);
    }
  }
}
/* Outputs of a tile, of those from its first one on. */
ALWAYS_INLINE int64_t NAMED(left)(int64_t outputs, int64_t dilation) {
  const int64_t left = dilation == 1 ? outputs : (outputs + dilation - 1) / dilation;
  return left < FORM ? left : FORM;
}
static void NAMED(panel)(const kiln_winograd_strip *s, int64_t panel) {
  const kiln_winograd_plan *plan = s->plan;
  const kiln_winograd *p = &plan->problem;
  const int64_t first = panel * PANEL, left = p->outputs - first;
  const int64_t outputs = left < PANEL ? left : PANEL;
  multiply_panel(s, POSITIONS, outputs > LANES ? VECTORS : 1,
                 s->u + kiln__winograd_panel_at(POSITIONS, plan->depth, PANEL, panel));
  for (int64_t i = 0; i < s->tiles; i++) {
    const int64_t tile = s->tile + i, line = tile / plan->columns;
    const int64_t row = NAMED(begin)(line % plan->lines, p->dilation[0]);
    const int64_t column = NAMED(begin)(tile % plan->columns, p->dilation[1]);
    const int64_t rows = NAMED(left)(p->out[1] - row, p->dilation[0]);
    const int64_t columns = NAMED(left)(p->out[2] - column, p->dilation[1]);
    const int64_t image = line / plan->lines;
    float *y = s->y + image / p->out[0] * p->out_batch + image % p->out[0] * p->out_axis[0] +
               row * p->out_axis[1] + column * p->out_axis[2] + first;
    if (rows <= 0 || columns <= 0) continue; /* the dilation is more than what is left */
    NAMED(give_tile)(s->m + i * PANEL, plan->m_position, y, p->out_axis[1] * p->dilation[0],
                     p->out_axis[2] * p->dilation[1], rows, columns, outputs);
  }
}
#undef NAMED
#undef AT
#undef POSITIONS
