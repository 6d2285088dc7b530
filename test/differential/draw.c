/* draw.c: see draw.h. */
#include "test/differential/draw.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"

void draw_must(kiln_status *status) {
  if (!status) return;
  fprintf(stderr, "%s\n", kiln_status_report(status));
  exit(2);
}

/* -- Numbers -- */

static uint64_t mix(uint64_t x) { /* splitmix64 */
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

draw draw_from(uint64_t seed, uint64_t key) {
  return (draw){.state = mix(mix(seed) ^ key), .wild = (seed & DRAW_WILD) != 0};
}

int draw_below(draw *d, int n) {
  d->state = mix(d->state);
  return (int)(d->state % (uint64_t)n);
}

/* In a wild case, once in n draws. Draws nothing in others. */
static bool draw_odd(draw *d, int n) { return d->wild && draw_below(d, n) == 0; }

static double draw_double(draw *d) {
  static const double edges[] = {0,   -0.0,     1,         -1,    0.5,   2,   1e30,
                                 NAN, INFINITY, -INFINITY, 1e-30, 65504, 255, -1e18};
  static const double odd[] = {5e-324,  DBL_MAX, -DBL_MAX, 0x1p63,
                               -0x1p63, 0x1p31,  FLT_MIN,  1 - 0x1p-53};
  if (draw_odd(d, 12)) return odd[draw_below(d, sizeof odd / sizeof *odd)];
  if (draw_below(d, 12) == 0) return edges[draw_below(d, sizeof edges / sizeof *edges)];
  return (draw_below(d, 64) - 24) / 8.0;
}

static int64_t draw_int(draw *d) {
  static const int64_t edges[] = {INT64_MIN, INT64_MAX, INT32_MAX, -64, 63, 255, 100};
  static const int64_t odd[] = {INT64_MAX - 1,
                                INT64_MIN + 1,
                                INT32_MIN,
                                (int64_t)1 << 31,
                                (int64_t)1 << 40,
                                -((int64_t)1 << 40),
                                65536,
                                33,
                                17,
                                7};
  if (draw_odd(d, 12)) return odd[draw_below(d, sizeof odd / sizeof *odd)];
  if (draw_below(d, 24) == 0) return edges[draw_below(d, sizeof edges / sizeof *edges)];
  return draw_below(d, 6) - 1;
}

/* The edge that this number becomes; -1: it stays. */
static int take_edge(const draw *d) {
  draw_edge *e = d->edge;
  if (!e) return -1;
  e->seen++;
  if (e->at >= 0) return e->at == e->seen ? e->which : -1;
  draw chance = draw_from((uint64_t)e->which, (uint64_t)e->seen);
  return draw_below(&chance, 2) ? draw_below(&chance, DRAW_EDGES) : -1;
}

static double edge_double(int which) {
  static const double edges[DRAW_EDGES] = {NAN,     INFINITY, -INFINITY, DBL_MAX, -DBL_MAX,
                                           0x1p63,  -0x1p63,  0x1p64,    0x1p31,  -0x1p31,
                                           -0x1p40, 5e-324,   0,         -0.0};
  return edges[which];
}

static int64_t edge_int(int which) {
  static const int64_t edges[DRAW_EDGES] = {INT64_MIN,
                                            INT64_MIN + 1,
                                            INT64_MAX,
                                            INT64_MAX - 1,
                                            INT32_MIN,
                                            INT32_MAX,
                                            (int64_t)1 << 31,
                                            (int64_t)1 << 32,
                                            (int64_t)1 << 40,
                                            -((int64_t)1 << 40),
                                            (int64_t)1 << 62,
                                            -((int64_t)1 << 62),
                                            -1,
                                            0};
  return edges[which];
}

/* -- Schemas -- */

static void take_type(draw_arg *arg, const char *text, size_t len) {
  size_t out = 0;
  for (size_t i = 0; i < len && out + 1 < sizeof arg->type; i++) {
    const bool alias = text[i] == '(' && i + 1 < len && islower((unsigned char)text[i + 1]) &&
                       i >= 6 && strncmp(text + i - 6, "Tensor", 6) == 0;
    if (!alias) {
      arg->type[out++] = text[i];
      continue;
    }
    while (i < len && text[i] != ')') arg->written |= text[i++] == '!';
  }
  arg->type[out] = '\0';
}

/* One argument: "Tensor(a!) self", "int[2] stride=[1, 1]". */
static void take_arg(draw_arg *arg, const char *text, size_t len) {
  const char *equals = memchr(text, '=', len);
  if (equals) len = (size_t)(equals - text);
  arg->has_default = equals != NULL;
  while (len > 0 && text[len - 1] == ' ') len--;
  size_t name = len;
  while (name > 0 && text[name - 1] != ' ') name--;
  snprintf(arg->name, sizeof arg->name, "%.*s", (int)(len - name), text + name);
  take_type(arg, text, name > 0 ? name - 1 : 0);
}

int draw_schema(const char *schema, draw_arg *args, int max) {
  const char *p = strchr(schema, '(');
  int count = 0;
  bool keyword = false;
  for (p = p ? p + 1 : ""; *p && *p != ')';) {
    while (*p == ' ' || *p == ',') p++;
    int depth = 0;
    const char *begin = p;
    for (bool quoted = false; *p && (quoted || depth > 0 || (*p != ',' && *p != ')')); p++) {
      if (*p == '"' || *p == '\'') quoted = !quoted;
      depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
    }
    if (p == begin) break;
    if (*begin == '*' && p == begin + 1) {
      keyword = true;
      continue;
    }
    if (count == max) return -1;
    args[count] = (draw_arg){.keyword = keyword};
    take_arg(&args[count++], begin, (size_t)(p - begin));
  }
  return count;
}

bool draw_is_tensor(const draw_arg *arg) {
  return strcmp(arg->type, "Tensor") == 0 || strcmp(arg->type, "Tensor?") == 0;
}
bool draw_is_tensor_list(const draw_arg *arg) {
  return strncmp(arg->type, "Tensor[", 7) == 0 || strncmp(arg->type, "Tensor?[", 8) == 0;
}

/* -- Tensors -- */

enum { MAX_RANK = 5, MAX_ODD_RANK = 64, MAX_SPAN = 1 << 13 };

typedef struct layout {
  int rank;
  int64_t sizes[MAX_ODD_RANK], strides[MAX_ODD_RANK];
  int64_t span; /* elements of memory */
  bool fine;    /* floats whose sums are rounded, so that their order shows */
} layout;

static const kiln_dtype usual_dtypes[] = {
    KILN_DTYPE_F32,  KILN_DTYPE_F32,  KILN_DTYPE_F32,  KILN_DTYPE_F32, KILN_DTYPE_F64,
    KILN_DTYPE_F64,  KILN_DTYPE_I64,  KILN_DTYPE_I64,  KILN_DTYPE_I64, KILN_DTYPE_F16,
    KILN_DTYPE_BF16, KILN_DTYPE_BOOL, KILN_DTYPE_BOOL, KILN_DTYPE_I32, KILN_DTYPE_U8,
    KILN_DTYPE_I8,   KILN_DTYPE_I16,  KILN_DTYPE_C64};
static const kiln_dtype odd_dtypes[] = {KILN_DTYPE_C32,    KILN_DTYPE_C128, KILN_DTYPE_F8E5M2,
                                        KILN_DTYPE_F8E4M3, KILN_DTYPE_U16,  KILN_DTYPE_U32,
                                        KILN_DTYPE_U64,    KILN_DTYPE_C64};
enum {
  USUAL = sizeof usual_dtypes / sizeof *usual_dtypes,
  ODD = sizeof odd_dtypes / sizeof *odd_dtypes
};

static kiln_dtype draw_dtype(draw *d) {
  if (draw_odd(d, 8)) return odd_dtypes[draw_below(d, ODD)];
  return usual_dtypes[draw_below(d, USUAL)];
}

/* The shape and dtype that most tensors of a case have. */
static kiln_dtype draw_family(uint64_t seed, layout *out) {
  draw d = draw_from(seed, 0xfa);
  out->rank = draw_below(&d, MAX_RANK);
  for (int i = 0; i < out->rank; i++)
    out->sizes[i] = draw_below(&d, 25) ? 1 + draw_below(&d, 4) : 0;
  if (out->rank > 0 && draw_odd(&d, 6)) {
    static const int64_t odd[] = {0, 5, 7, 17, 33, 65, 130};
    out->sizes[draw_below(&d, out->rank)] = odd[draw_below(&d, sizeof odd / sizeof *odd)];
  }
  const kiln_dtype dtype = draw_dtype(&d);
  out->fine = draw_below(&d, 3) == 0;
  if (out->fine && out->rank > 0) {
    static const int64_t longer[] = {5, 9, 17, 31, 66, 100};
    out->sizes[draw_below(&d, out->rank)] = longer[draw_below(&d, sizeof longer / sizeof *longer)];
  }
  return dtype;
}

/* Of many dimensions, of no elements. */
static void draw_odd_sizes(draw *d, layout *l) {
  switch (draw_below(d, 3)) {
    case 0:
      l->rank = draw_below(d, 2) ? MAX_ODD_RANK - draw_below(d, 2) : 6 + draw_below(d, 4);
      for (int i = 0; i < l->rank; i++) l->sizes[i] = 1;
      l->sizes[draw_below(d, l->rank)] = draw_below(d, 4);
      break;
    case 1:
      if (l->rank > 0) l->sizes[draw_below(d, l->rank)] = 0;
      break;
    default:
      if (l->rank > 0) l->sizes[draw_below(d, l->rank)] = 1 + draw_below(d, 40);
      break;
  }
}

/* Of classes, one for each of the other elements. */
static void leave_out_classes(layout *l) {
  const int axis = l->rank > 1;
  if (l->rank == 0) return;
  for (int i = axis; i + 1 < l->rank; i++) l->sizes[i] = l->sizes[i + 1];
  l->rank--;
}

static void draw_sizes(draw *d, layout *l) {
  switch (draw_below(d, 9)) {
    case 0: l->rank = 0; break;
    case 1: /* another shape altogether */
      l->rank = draw_below(d, MAX_RANK);
      for (int i = 0; i < l->rank; i++) l->sizes[i] = 1 + draw_below(d, 4);
      break;
    case 2: /* broadcasts along a dimension */
      if (l->rank > 0) l->sizes[draw_below(d, l->rank)] = 1;
      break;
    case 3: /* broadcasts along the first ones */
      if (l->rank > 0) memmove(l->sizes, l->sizes + 1, sizeof *l->sizes * (size_t)--l->rank);
      break;
    default: break;
  }
}

/* Over memory that is shared by several of the elements, or by very many of them; steps along sizes
 * of 1 are not looked at. */
static void draw_odd_strides(draw *d, layout *l) {
  static const int64_t many[] = {1 << 12, (int64_t)1 << 20, (int64_t)1 << 32, (int64_t)1 << 33};
  static const int64_t steps[] = {0, 1, 1, 3, 64, (int64_t)1 << 40, INT64_MAX};
  for (int i = 0; i < l->rank; i++) {
    if (l->sizes[i] == 1) {
      l->strides[i] = steps[draw_below(d, sizeof steps / sizeof *steps)];
    } else if (draw_below(d, 3) == 0) {
      l->strides[i] = draw_below(d, 3);
    }
  }
  const int at = l->rank > 0 ? draw_below(d, l->rank) : 0;
  if (l->rank > 0 && draw_below(d, 4) == 0) {
    l->sizes[at] = many[draw_below(d, sizeof many / sizeof *many)];
    l->strides[at] = 0;
  }
}

static void draw_strides(draw *d, layout *l, bool written) {
  int order[MAX_ODD_RANK];
  const int kind = draw_below(d, 8);
  for (int i = 0; i < l->rank; i++) order[i] = i;
  if (kind == 0 && l->rank > 1) { /* two dimensions exchanged */
    const int a = draw_below(d, l->rank), b = draw_below(d, l->rank);
    order[a] = b, order[b] = a;
  } else if (kind == 1 && l->rank == 4) { /* channels last */
    order[1] = 2, order[2] = 3, order[3] = 1;
  }
  int64_t step = kind == 2 ? 2 : 1;
  for (int i = l->rank - 1; i >= 0; i--) {
    l->strides[order[i]] = step;
    step *= l->sizes[order[i]] > 0 ? l->sizes[order[i]] : 1;
  }
  if (kind == 3 && l->rank > 0 && !written) l->strides[draw_below(d, l->rank)] = 0;
  if (!written && draw_odd(d, 10)) draw_odd_strides(d, l);
  l->span = 1;
  for (int i = 0; i < l->rank; i++) {
    if (l->sizes[i] > 0) l->span += (l->sizes[i] - 1) * l->strides[i];
  }
}

/* Indices, masks and lengths want integers, and mostly such as are in range. */
static bool is_index(const char *name) {
  static const char *const words[] = {"index", "indices", "target", "lengths", "offsets", "batch"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strstr(name, words[i])) return true;
  }
  return false;
}

/* Any of [-2, 2). */
static double draw_fine(draw *d) {
  d->state = mix(d->state);
  return (double)(d->state >> 11) * 0x1p-51 - 2;
}

static void fill(draw *d, kiln_dtype dtype, bool index, bool fine, int64_t count, void *data) {
  for (int64_t i = 0; i < count; i++) {
    const double f = fine ? draw_fine(d) : draw_double(d);
    const int64_t n = index ? draw_below(d, 3) : draw_int(d);
    switch (dtype) {
      case KILN_DTYPE_F32: ((float *)data)[i] = (float)f; break;
      case KILN_DTYPE_F64: ((double *)data)[i] = f; break;
      case KILN_DTYPE_C64:
        ((float *)data)[2 * i] = (float)f;
        ((float *)data)[2 * i + 1] = (float)(fine ? draw_fine(d) : draw_double(d));
        break;
      case KILN_DTYPE_F16: ((_Float16 *)data)[i] = (_Float16)f; break;
      case KILN_DTYPE_BF16: {
        const float wide = (float)f;
        memcpy((char *)data + 2 * i, (const char *)&wide + 2, 2);
        break;
      }
      case KILN_DTYPE_I64: ((int64_t *)data)[i] = n; break;
      case KILN_DTYPE_I32: ((int32_t *)data)[i] = (int32_t)n; break;
      case KILN_DTYPE_I16: ((int16_t *)data)[i] = (int16_t)n; break;
      case KILN_DTYPE_BOOL: ((uint8_t *)data)[i] = (uint8_t)(draw_odd(d, 24) ? n : n & 1); break;
      default: {
        const size_t size = kiln_dtype_size(dtype);
        for (size_t k = 0; k < size; k++) ((uint8_t *)data)[size * (size_t)i + k] = (uint8_t)n;
      }
    }
  }
}

static void move_up(layout *l, int by) {
  if (l->rank + by > MAX_ODD_RANK) by = MAX_ODD_RANK - l->rank;
  memmove(l->sizes + by, l->sizes, sizeof *l->sizes * (size_t)l->rank);
  memmove(l->strides + by, l->strides, sizeof *l->strides * (size_t)l->rank);
  for (int i = 0; i < by; i++) l->sizes[i] = l->strides[i] = 1;
  l->rank += by;
}

/* Other sizes, over as much memory. */
enum { SIZE_EDGES = 11 };
_Static_assert(DRAW_TENSOR_EDGES == USUAL + ODD + SIZE_EDGES + DRAW_EDGES, "");
static void edge_sizes(layout *l, int which) {
  const int last = l->rank - 1;
  if (which == 0) l->rank = 0;
  if (which == 1) move_up(l, 1);
  if (which == 2) move_up(l, MAX_ODD_RANK);
  if (last < 0) return;
  const int at = which % 2 ? 0 : last;
  switch (which) {
    case 3:
    case 4: l->sizes[at] = 0; break;
    case 5:
    case 6: l->sizes[at] = 1; break;
    case 9:
    case 10: l->sizes[last - at] = 0; /* fall through */
    case 7:
    case 8:
      l->sizes[at] = (int64_t)1 << 33;
      l->strides[at] = 0;
      break;
    default: break;
  }
}

static void fill_edge(kiln_dtype dtype, int which, int64_t count, void *data) {
  const double f = edge_double(which);
  const int64_t n = edge_int(which);
  const size_t size = kiln_dtype_size(dtype);
  for (int64_t i = 0; i < count; i++) {
    char *at = (char *)data + size * (size_t)i;
    switch (dtype) {
      case KILN_DTYPE_F32: *(float *)(void *)at = (float)f; break;
      case KILN_DTYPE_F64: *(double *)(void *)at = f; break;
      case KILN_DTYPE_F16: *(_Float16 *)(void *)at = (_Float16)f; break;
      default: memcpy(at, &n, size < sizeof n ? size : sizeof n); break;
    }
  }
}

kiln_value *draw_tensor(kiln_context *context, const draw_arg *arg, uint64_t seed, uint64_t key,
                        int edge) {
  layout l;
  kiln_value *out = NULL;
  draw d = draw_from(seed, key + 0x100);
  kiln_dtype dtype = draw_family(seed, &l);
  if (strcmp(arg->name, "target") == 0 && draw_below(&d, 2)) {
    leave_out_classes(&l);
  } else {
    draw_sizes(&d, &l);
  }
  if (draw_odd(&d, 12)) draw_odd_sizes(&d, &l);
  if (draw_below(&d, 5) == 0) dtype = draw_dtype(&d);
  const bool index = is_index(arg->name);
  if (index && draw_below(&d, 8)) dtype = KILN_DTYPE_I64;
  if (strstr(arg->name, "mask") && draw_below(&d, 8)) dtype = KILN_DTYPE_BOOL;
  draw_strides(&d, &l, arg->written);
  if (l.span > MAX_SPAN) { /* sizes that are too much together */
    l.rank = 0;
    l.span = 1;
  }
  if (edge >= 0 && edge < ODD + USUAL)
    dtype = edge < ODD ? odd_dtypes[edge] : usual_dtypes[edge - ODD];
  if (edge >= ODD + USUAL) edge_sizes(&l, edge - ODD - USUAL);
  const size_t bytes = (size_t)l.span * kiln_dtype_size(dtype);
  void *data = calloc(1, bytes);
  if (!data) exit(2);
  fill(&d, dtype, index, l.fine, l.span, data);
  if (edge >= DRAW_TENSOR_EDGES - DRAW_EDGES)
    fill_edge(dtype, edge - DRAW_TENSOR_EDGES + DRAW_EDGES, l.span, data);
  kiln_status *status = kiln_value_tensor_over(context, dtype, l.rank, l.sizes, l.strides, data,
                                               bytes, free, data, &out);
  if (status && (d.wild || edge >= 0)) { /* more elements than can be counted */
    kiln_status_destroy(status);
    status = kiln_value_tensor_over(context, dtype, 0, NULL, NULL, data, bytes, free, data, &out);
  }
  draw_must(status);
  return out;
}

/* -- Other values -- */

static kiln_value *make_int(kiln_context *context, int64_t i) {
  kiln_value *out = NULL;
  draw_must(kiln_value_int(context, i, &out));
  return out;
}
/* `drawn`, or an edge in its place. */
static kiln_value *make_int_or_edge(kiln_context *context, draw *d, int64_t drawn) {
  const int edge = take_edge(d);
  return make_int(context, edge >= 0 ? edge_int(edge) : drawn);
}
static kiln_value *make_none(kiln_context *context) {
  kiln_value *out = NULL;
  draw_must(kiln_value_none(context, &out));
  return out;
}

static kiln_value *make_string(kiln_context *context, const char *name, draw *d) {
  static const char *const words[] = {"mean",  "sum",    "none",   "constant", "reflect", "same",
                                      "valid", "linear", "floor",  "trunc",    "tanh",    "reduced",
                                      "ij",    "fro",    "ij->ji", "max",      "amax",    "left"};
  static const char *const odd[] = {"",
                                    "L",
                                    "a",
                                    "cpu",
                                    "cuda",
                                    "ij,jk->ik",
                                    "...i,i->...",
                                    "i->",
                                    "higher",
                                    "midpoint",
                                    "nuc",
                                    "complete",
                                    "xy",
                                    "bilinear",
                                    "nearest",
                                    "linalg",
                                    "\xc3\xa9{}%d",
                                    "circular",
                                    "ortho",
                                    "r"};
  static const char *const equations[] = {
      "i,i->i",          "i,i",          "i,j->ij",         "ij,kj->ik",
      "ij,kj",           "ij,ij->i",     "ij,j->i",         "ij->ji",
      "ij->j",           "ii->i",        "ii,ij->ij",       "bij,bkj->bik",
      "bij,bkj->kb",     "ij,jk->ik",    "...j,...j->...",  "...i,j...",
      "...ij,kj->...ik", "ij,kj,kl->il", "abcd,aecd->aceb", "abcd,abed->bce",
      "abc,dbc->ad",     "abb,cb->ca"};
  const char *word = words[draw_below(d, sizeof words / sizeof *words)];
  if (draw_odd(d, 4)) word = odd[draw_below(d, sizeof odd / sizeof *odd)];
  if (strstr(name, "rounding")) word = draw_below(d, 2) ? "floor" : "trunc";
  if (strstr(name, "approximate")) word = draw_below(d, 2) ? "none" : "tanh";
  if (strcmp(name, "equation") == 0)
    word = equations[draw_below(d, sizeof equations / sizeof *equations)];
  const int edge = take_edge(d);
  if (edge >= 0) word = odd[edge];
  kiln_value *out = NULL;
  draw_must(kiln_value_string(context, word, strlen(word), &out));
  return out;
}

static int64_t draw_int_named(draw *d, const char *name) {
  if (draw_odd(d, 16)) return draw_int(d);
  if (strstr(name, "dtype")) return draw_odd(d, 8) ? draw_below(d, 48) - 8 : draw_dtype(d);
  if (strcmp(name, "dim") == 0 || strncmp(name, "dim", 3) == 0 || strcmp(name, "axis") == 0) {
    return draw_below(d, 10) ? draw_below(d, 4) - 2 : draw_below(d, 12) - 6;
  }
  if (strstr(name, "size") || strstr(name, "kernel") || strstr(name, "repeat")) {
    return draw_below(d, 12) ? 1 + draw_below(d, 4) : draw_below(d, 4) - 2;
  }
  if (strcmp(name, "end") == 0 && draw_below(d, 2)) return INT64_MAX;
  return draw_int(d);
}

enum { MAX_LIST = 80 };

static kiln_value *draw_list(kiln_context *context, const draw_arg *elem, int count, draw *d) {
  kiln_value *items[MAX_LIST], *out = NULL;
  int made = 0;
  while (made < count && (items[made] = draw_value(context, elem, d))) made++;
  if (made == count) draw_must(kiln_value_list(context, items, count, &out));
  while (made > 0) kiln_value_destroy(items[--made]);
  return out;
}

/* None, whose edges are those of the type without it: of the number, or of a list's length and of
 * its first two items by turns. */
static kiln_value *draw_none(kiln_context *context, const draw_arg *arg, draw *d) {
  const int edge = take_edge(d);
  if (edge < 0) return make_none(context);
  draw_edge inside = {.at = strchr(arg->type, '[') ? 1 + edge % 3 : 1, .which = edge};
  draw_edge *outside = d->edge;
  d->edge = &inside;
  kiln_value *some = draw_value(context, arg, d);
  d->edge = outside;
  return some ? some : make_none(context);
}

kiln_value *draw_value(kiln_context *context, const draw_arg *arg, draw *d) {
  draw_arg inner = *arg;
  const size_t len = strlen(arg->type);
  kiln_value *out = NULL;
  if (len > 0 && arg->type[len - 1] == '?') {
    inner.type[len - 1] = '\0';
    if (draw_below(d, 3) == 0) return draw_none(context, &inner, d);
    if (take_edge(d) == 0) return make_none(context);
    kiln_value *some = draw_value(context, &inner, d);
    return some ? some : make_none(context);
  }
  if (len > 2 && arg->type[len - 1] == ']') {
    char *open = strrchr(inner.type, '[');
    const int fixed = atoi(open + 1);
    *open = '\0';
    static const int lengths[DRAW_EDGES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 33, 63, 64, 65};
    const int edge = take_edge(d);
    if (edge >= 0) return draw_list(context, &inner, lengths[edge], d);
    if (draw_odd(d, 12)) {
      return draw_list(context, &inner, draw_below(d, 2) ? 0 : 64 + draw_below(d, 4), d);
    }
    return draw_list(context, &inner, fixed && draw_below(d, 8) ? fixed : 1 + draw_below(d, 4), d);
  }
  if (d->wild && strcmp(arg->type, "t") == 0) { /* of any type */
    static const char *const types[] = {"int", "float", "str", "bool"};
    snprintf(inner.type, sizeof inner.type, "%s", types[draw_below(d, 4)]);
    return draw_value(context, &inner, d);
  }
  if (strcmp(arg->type, "bool") == 0) {
    const int drawn = draw_below(d, 2), edge = take_edge(d);
    draw_must(kiln_value_bool(context, edge >= 0 ? edge % 2 : drawn, &out));
  } else if (strcmp(arg->type, "float") == 0) {
    const double drawn = draw_double(d);
    const int edge = take_edge(d);
    draw_must(kiln_value_float(context, edge >= 0 ? edge_double(edge) : drawn, &out));
  } else if (strcmp(arg->type, "complex") == 0) {
    const double real = draw_double(d), imag = draw_double(d);
    const int edge = take_edge(d), other = edge >= 0 ? (5 * edge + 3) % DRAW_EDGES : 0;
    draw_must(kiln_value_complex(context, edge >= 0 ? edge_double(edge) : real,
                                 edge >= 0 ? edge_double(other) : imag, &out));
  } else if (strcmp(arg->type, "str") == 0) {
    out = make_string(context, arg->name, d);
  } else if (strcmp(arg->type, "Scalar") == 0 || strcmp(arg->type, "number") == 0) {
    const int kind = draw_below(d, 24);
    const int ints = strcmp(arg->name, "alpha") == 0 ? 20 : 11;
    snprintf(inner.type, sizeof inner.type, "%s",
             kind < ints  ? "int"
             : kind < 22  ? "float"
             : kind == 22 ? "bool"
                          : "complex");
    out = draw_value(context, &inner, d);
  } else if (strcmp(arg->type, "int") == 0 || strcmp(arg->type, "ScalarType") == 0 ||
             strcmp(arg->type, "SymInt") == 0) {
    out = make_int_or_edge(context, d, draw_int_named(d, arg->name));
  } else if (strcmp(arg->type, "Layout") == 0) {
    out = make_int_or_edge(context, d, draw_odd(d, 4) ? draw_below(d, 8) - 1 : 0);
  } else if (strcmp(arg->type, "MemoryFormat") == 0) {
    out = make_int_or_edge(context, d, draw_odd(d, 8) ? draw_int(d) : draw_below(d, 3));
  }
  return out;
}

static bool is_excluded(const char *name) {
  static const char *const words[] = {
      "aten::seed", "aten::initial_seed", "time",  "::save", "from_file", "warn", "Print",
      "signbit",    "copysign",           "prim::"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strstr(name, words[i])) return true;
  }
  return false;
}

draw_ops draw_ops_of(const kiln_context *context,
                     bool (*wanted)(const kiln_registry *registry, const kiln_op *op)) {
  const kiln_registry *registry = context->registry;
  draw_ops ops = {.all = calloc((size_t)kiln_registry_count(registry), sizeof *ops.all)};
  kiln_arena *arena = NULL;
  if (!ops.all) exit(2);
  draw_must(kiln_arena_create(context->env->mem, &arena));
  for (int i = 0; i < kiln_registry_count(registry); i++) {
    const kiln_op *op = kiln_registry_at(registry, i);
    if (!op->kernel.body || !op->schema || is_excluded(op->kernel.name) || !wanted(registry, op))
      continue;
    kiln_text schema = kiln_text_in(arena);
    kiln_schema_print(&schema, op->schema);
    ops.all[ops.count++] = (draw_op){strdup(op->kernel.name), strdup(schema.data), op};
  }
  kiln_arena_destroy(arena);
  return ops;
}

void draw_ops_free(draw_ops *ops) {
  for (int i = 0; i < ops->count; i++) {
    free(ops->all[i].name);
    free(ops->all[i].schema);
  }
  free(ops->all);
  *ops = (draw_ops){0};
}
