/* answer.h: what a call gave, as text: dtypes, sizes, strides, which memory is whose, and the bits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "kiln/kiln.h"

typedef struct answer {
  kiln_code code;
  bool without_data; /* what tensors hold is not told */
  size_t len;
  const void *seen[64]; /* memory of the tensors told so far: the inputs' first */
  int seen_count;
  char text[1 << 14];
} answer;

void answer_tell(answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
void answer_tensor(answer *a, const kiln_value *v);
void answer_value(answer *a, const kiln_value *v, int depth);
