/* turn.c: a matrix copied to where its rows are columns (iter.h).
 *
 * Square blocks of a line of memory each way: each line of both sides is touched once, in one go,
 * for rows that are a power of two apart share one place of the cache. What goes between lies in a
 * block on the stack. A result that no cache holds is written past them. */
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "runtime/kernels/pointwise/iter.h"

enum { LINE = 64, AHEAD = 2, PAST_CACHES = 32 << 20 };

typedef uint32_t quad __attribute__((vector_size(16), aligned(4), may_alias));

/* Four lines of `from`, of 4-byte elements: columns j to j + 3 of a block. */
static inline void turn_quads(char *block, const char *from, int64_t step) {
  for (int i = 0; i < LINE; i += 16) {
    const quad a = *(const quad *)(const void *)(from + i);
    const quad b = *(const quad *)(const void *)(from + step + i);
    const quad c = *(const quad *)(const void *)(from + 2 * step + i);
    const quad d = *(const quad *)(const void *)(from + 3 * step + i);
    const quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const quad cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const quad ef = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const quad gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    char *at = block + i / 4 * LINE;
    *(quad *)(void *)at = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(quad *)(void *)(at + LINE) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *(quad *)(void *)(at + 2 * LINE) = __builtin_shufflevector(ef, gh, 0, 1, 4, 5);
    *(quad *)(void *)(at + 3 * LINE) = __builtin_shufflevector(ef, gh, 2, 3, 6, 7);
  }
}

/* rows x columns of `from`, at most a block; `item` is a constant. */
static inline __attribute__((always_inline)) void turn_items(char *to, int64_t to_step,
                                                             const char *from, int64_t from_step,
                                                             int64_t rows, int64_t columns,
                                                             int64_t item) {
  for (int64_t c = 0; c < columns; c++) {
    for (int64_t r = 0; r < rows; r++)
      memcpy(to + c * to_step + r * item, from + r * from_step + c * item, (size_t)item);
  }
}

static void turn_part(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t rows,
                      int64_t columns, int64_t item) {
  switch (item) {
    case 1: turn_items(to, to_step, from, from_step, rows, columns, 1); break;
    case 2: turn_items(to, to_step, from, from_step, rows, columns, 2); break;
    case 4: turn_items(to, to_step, from, from_step, rows, columns, 4); break;
    case 8: turn_items(to, to_step, from, from_step, rows, columns, 8); break;
    default: turn_items(to, to_step, from, from_step, rows, columns, item); break;
  }
}

static void write_line(char *to, const char *from, bool past) {
  typedef long long lanes __attribute__((vector_size(16), may_alias));
  for (int i = 0; i < LINE; i += 16) {
    const lanes v = *(const lanes *)(const void *)(from + i);
#ifdef __x86_64__
    if (past) {
      _mm_stream_si128((__m128i *)(void *)(to + i), (__m128i)v);
      continue;
    }
#endif
    memcpy(to + i, &v, sizeof v);
  }
}

void kiln__turn(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t rows,
                int64_t columns, int64_t item) {
  _Alignas(LINE) char block[LINE * LINE];
  const int64_t side = LINE / item;
  const bool past =
      rows * columns * item >= PAST_CACHES && (uintptr_t)to % 16 == 0 && to_step % 16 == 0;
  for (int64_t r = 0; r < rows; r += side) {
    for (int64_t c = 0; c < columns; c += side) {
      const char *source = from + r * from_step + c * item;
      char *result = to + c * to_step + r * item;
      const int64_t high = rows - r < side ? rows - r : side;
      const int64_t wide = columns - c < side ? columns - c : side;
      if (high < side || wide < side) {
        turn_part(result, to_step, source, from_step, high, wide, item);
        continue;
      }
      for (int64_t k = 0; k < side; k++) /* too many streams for the CPU to follow */
        __builtin_prefetch(source + k * from_step + AHEAD * LINE);
      if (item == 4) {
        for (int64_t k = 0; k < side; k += 4)
          turn_quads(block + k * item, source + k * from_step, from_step);
      } else {
        turn_part(block, LINE, source, from_step, side, side, item);
      }
      for (int64_t k = 0; k < side; k++) write_line(result + k * to_step, block + k * LINE, past);
    }
  }
#ifdef __x86_64__
  if (past) _mm_sfence();
#endif
}
