/* rotated.c: the overlap of rotated boxes (torchvision's box_iou_rotated): one box is cut by
 * the four sides of the other (Sutherland and Hodgman, 1974), then the area of what is left. */
#include <math.h>

#include "runtime/kernels/nn/nn.h"

typedef struct point {
  double x, y;
} point;
enum { MAX_CORNERS = 8 }; /* a side cuts off one corner at least for each one that it adds */

/* Clockwise corners of (center x, center y, width, height, degrees) about an origin. */
static void corners_of(const kiln__nn *nn, const char *boxes, int64_t i, point origin,
                       point out[4]) {
  double v[5];
  for (int k = 0; k < 5; k++) v[k] = kiln__nn_get(nn, boxes, i * 5 + k);
  const double angle = v[4] * (3.14159265358979323846 / 180);
  const double c = cos(angle) / 2, s = sin(angle) / 2;
  const double x = v[0] - origin.x, y = v[1] - origin.y;
  out[0] = (point){x + s * v[3] + c * v[2], y + c * v[3] - s * v[2]};
  out[1] = (point){x - s * v[3] + c * v[2], y - c * v[3] - s * v[2]};
  out[2] = (point){2 * x - out[0].x, 2 * y - out[0].y};
  out[3] = (point){2 * x - out[1].x, 2 * y - out[1].y};
}
/* Positive on the inner side of the line from a to b. */
static double side_of(point a, point b, point p) {
  return (b.y - a.y) * (p.x - a.x) - (b.x - a.x) * (p.y - a.y);
}
static int cut(const point *from, int count, point a, point b, point *to) {
  int kept = 0;
  for (int i = 0; i < count; i++) {
    const point p = from[i], q = from[(i + 1) % count];
    const double dp = side_of(a, b, p), dq = side_of(a, b, q);
    if (dp >= 0 && kept < MAX_CORNERS) to[kept++] = p;
    if ((dp >= 0) != (dq >= 0) && kept < MAX_CORNERS) {
      const double t = dp / (dp - dq);
      to[kept++] = (point){p.x + t * (q.x - p.x), p.y + t * (q.y - p.y)};
    }
  }
  return kept;
}
static double area_of(const point *p, int count) {
  double twice = 0;
  for (int i = 1; i + 1 < count; i++) {
    twice += (p[i].x - p[0].x) * (p[i + 1].y - p[0].y) - (p[i].y - p[0].y) * (p[i + 1].x - p[0].x);
  }
  return fabs(twice) / 2;
}
static double overlap(const kiln__nn *nn, const char *a, int64_t i, const char *b, int64_t j) {
  const double area_a = kiln__nn_get(nn, a, i * 5 + 2) * kiln__nn_get(nn, a, i * 5 + 3);
  const double area_b = kiln__nn_get(nn, b, j * 5 + 2) * kiln__nn_get(nn, b, j * 5 + 3);
  if (area_a < 1e-14 || area_b < 1e-14) return 0;
  /* Near the origin no digits are lost. */
  const point origin = {(kiln__nn_get(nn, a, i * 5) + kiln__nn_get(nn, b, j * 5)) / 2,
                        (kiln__nn_get(nn, a, i * 5 + 1) + kiln__nn_get(nn, b, j * 5 + 1)) / 2};
  point first[MAX_CORNERS], second[MAX_CORNERS], knife[4], *now = first, *next = second;
  corners_of(nn, a, i, origin, first);
  corners_of(nn, b, j, origin, knife);
  int count = 4;
  for (int k = 0; k < 4 && count > 0; k++) {
    count = cut(now, count, knife[k], knife[(k + 1) % 4], next);
    point *swap = now;
    now = next;
    next = swap;
  }
  const double both = area_of(now, count);
  return both / (area_a + area_b - both);
}
/* boxes1 (N, 5), boxes2 (M, 5): (N, M) */
KILN_NN_KERNEL(torchvision_box_iou_rotated) {
  kiln_tensor *a = SELF, *b = ARG(1), *result;
  const char *first, *second;
  char *to;
  for (int i = 0; i < 2; i++) {
    const kiln_tensor *t = i == 0 ? a : b;
    if (kiln_tensor_rank(t) != 2 || kiln_tensor_sizes(t)[1] != 5) {
      return KILN_OP_FAIL("boxes%d should be a tensor of shape (N, 5), got %s", i + 1,
                          kiln__sizes_of(t).text);
    }
  }
  if (kiln_tensor_dtype(a) != kiln_tensor_dtype(b)) {
    return KILN_OP_FAIL("boxes1 and boxes2 should have the same type");
  }
  KILN_TRY(kiln__nn_begin(nn, kiln_tensor_dtype(a)));
  KILN_TRY(kiln__nn_dense(nn, a, &first));
  KILN_TRY(kiln__nn_dense(nn, b, &second));
  const int64_t sizes[] = {kiln_tensor_sizes(a)[0], kiln_tensor_sizes(b)[0]};
  KILN_TRY(kiln__nn_new(nn, 2, sizes, &result, &to));
  for (int64_t i = 0; i < sizes[0]; i++) {
    KILN_TRY(kiln_call_check(nn->call, 1));
    for (int64_t j = 0; j < sizes[1]; j++) {
      kiln__nn_set(nn, to, i * sizes[1] + j, overlap(nn, first, i, second, j));
    }
  }
  return kiln__nn_give(nn, result, KILN_DTYPE_F32, outs); /* also of doubles */
}
