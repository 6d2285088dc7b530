/* eval_reduce.h: what the evaluator reduces: places of the greatest and the least (part of eval.c).
 *
 * A reduction has one accumulator for each lane. FIND has two: the value and its place. */

/* -- Places -- */

/* Whether x at place i is to be taken instead of the best, at place k: of equal ones and of NaN the
 * first. */
#define BETTER(x, best, beats, i, k)      \
  ((x) != (x) ? (best) == (best) || i < k \
              : (best) == (best) && ((x)beats(best) || ((x) == (best) && i < k)))

/* find_<type>_<op>(best, places, x, first, step, n): lane i is at place first + step x i. */
typedef void (*find_fn)(void *best, int64_t *places, const void *x, int64_t first, int64_t step,
                        int n);
/* join_<type>_<op>(best, places, other, other_places, n) */
typedef void (*join_fn)(void *best, int64_t *places, const void *other, const int64_t *other_places,
                        int n);
#define FIND_FNS(name, suffix, type) \
  FIND_FN(argmax, suffix, type, >)   \
  FIND_FN(argmin, suffix, type, <)
#define FIND_FN(op, suffix, type, beats)                                                      \
  static void find_##suffix##_##op(void *best, int64_t *places, const void *x, int64_t first, \
                                   int64_t step, int n) {                                     \
    type *b = best;                                                                           \
    const type *v = x;                                                                        \
    for (int i = 0; i < n; i++) {                                                             \
      const int64_t place = first + step * i;                                                 \
      if (BETTER(v[i], b[i], beats, place, places[i])) b[i] = v[i], places[i] = place;        \
    }                                                                                         \
  }                                                                                           \
  static void join_##suffix##_##op(void *best, int64_t *places, const void *other,            \
                                   const int64_t *other_places, int n) {                      \
    type *b = best;                                                                           \
    const type *v = other;                                                                    \
    for (int i = 0; i < n; i++) {                                                             \
      if (BETTER(v[i], b[i], beats, other_places[i], places[i]))                              \
        b[i] = v[i], places[i] = other_places[i];                                             \
    }                                                                                         \
  }
EVAL_TYPES(FIND_FNS)
static const find_fn find_table[EVAL_TYPE__COUNT][2] = {
#define FIND_ROW(name, suffix, type) {find_##suffix##_argmax, find_##suffix##_argmin},
    EVAL_TYPES(FIND_ROW)
#undef FIND_ROW
};
static const join_fn join_table[EVAL_TYPE__COUNT][2] = {
#define JOIN_ROW(name, suffix, type) {join_##suffix##_argmax, join_##suffix##_argmin},
    EVAL_TYPES(JOIN_ROW)
#undef JOIN_ROW
};
