/* answer.c: see answer.h. */
#include "test/differential/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sanitize.h"
#include "test/differential/draw.h"

enum { MAX_NUMEL = 1 << 18, MAX_ITEMS = 256 };

void answer_tell(answer *a, const char *format, ...) {
  va_list list;
  va_start(list, format);
  if (a->len + 1 < sizeof a->text) {
    const int n = vsnprintf(a->text + a->len, sizeof a->text - a->len, format, list);
    a->len += n > 0 ? (size_t)n : 0;
    if (a->len >= sizeof a->text) a->len = sizeof a->text - 1;
  }
  va_end(list);
}

/* Which NaN it is is not promised, nor which byte a true one is. */
static void same_values(kiln_dtype dtype, size_t bytes, void *data) {
  if (dtype == KILN_DTYPE_F32 || dtype == KILN_DTYPE_C64) {
    for (uint32_t *u = data; (char *)u < (char *)data + bytes; u++) {
      if ((*u & 0x7fffffffu) > 0x7f800000u) *u = 0x7fc00000u;
    }
  } else if (dtype == KILN_DTYPE_F64 || dtype == KILN_DTYPE_C128) {
    for (uint64_t *u = data; (char *)u < (char *)data + bytes; u++) {
      if ((*u & INT64_MAX) > 0x7ff0000000000000u) *u = 0x7ff8000000000000u;
    }
  } else if (dtype == KILN_DTYPE_BOOL) {
    for (uint8_t *u = data; (char *)u < (char *)data + bytes; u++) *u = *u != 0;
  } else if (dtype == KILN_DTYPE_F16 || dtype == KILN_DTYPE_BF16) {
    const unsigned inf = dtype == KILN_DTYPE_F16 ? 0x7c00 : 0x7f80;
    for (uint16_t *u = data; (char *)u < (char *)data + bytes; u++) {
      if ((*u & 0x7fffu) > inf) *u = (uint16_t)(inf + 1);
    }
  }
}

/* The first ones, for the reader of a report. */
static void tell_elements(answer *a, kiln_dtype dtype, const void *data, int count) {
  for (int i = 0; i < count; i++) {
    switch (dtype) {
      case KILN_DTYPE_F32: answer_tell(a, " %.9g", (double)((const float *)data)[i]); break;
      case KILN_DTYPE_F64: answer_tell(a, " %.17g", ((const double *)data)[i]); break;
      case KILN_DTYPE_F16: answer_tell(a, " %.5g", (double)((const _Float16 *)data)[i]); break;
      case KILN_DTYPE_I64: answer_tell(a, " %lld", (long long)((const int64_t *)data)[i]); break;
      case KILN_DTYPE_I32: answer_tell(a, " %d", ((const int32_t *)data)[i]); break;
      case KILN_DTYPE_BF16:
      case KILN_DTYPE_I16: answer_tell(a, " %d", ((const int16_t *)data)[i]); break;
      default: answer_tell(a, " %d", ((const uint8_t *)data)[i]); break;
    }
  }
}

static void tell_data(answer *a, const kiln_value *v, int64_t numel) {
  const size_t bytes = (size_t)numel * kiln_dtype_size(kiln_value_dtype(v));
  unsigned char *data = malloc(bytes + 8);
  uint64_t hash = 14695981039346656037u;
  if (!data) exit(2);
  kiln_status *status = kiln_value_copy_data(v, data, bytes);
  if (status) {
    answer_tell(a, " %s", kiln_status_message(status));
  } else {
    kiln_msan_check(data, bytes);
    same_values(kiln_value_dtype(v), bytes, data);
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ data[i]) * 1099511628211u;
    answer_tell(a, " #%016llx", (unsigned long long)hash);
    tell_elements(a, kiln_value_dtype(v), data, numel < 16 ? (int)numel : 16);
  }
  kiln_status_destroy(status);
  free(data);
}

void answer_tensor(answer *a, const kiln_value *v) {
  const int rank = kiln_value_rank(v);
  int64_t numel = 1;
  answer_tell(a, "%s[", kiln_dtype_name(kiln_value_dtype(v)));
  for (int i = 0; i < rank; i++) {
    answer_tell(a, "%lld/%lld ", (long long)kiln_value_sizes(v)[i],
                (long long)kiln_value_strides(v)[i]);
    if (__builtin_mul_overflow(numel, kiln_value_sizes(v)[i], &numel)) numel = INT64_MAX;
  }
  answer_tell(a, "]%s", kiln_value_requires_grad(v) == 1 ? " requires_grad" : "");
  if (numel == 0) return;
  int at = 0;
  while (at < a->seen_count && a->seen[at] != kiln_value_data(v)) at++;
  if (at == a->seen_count && at < 64) a->seen[a->seen_count++] = kiln_value_data(v);
  answer_tell(a, " memory %d", at);
  if (numel <= MAX_NUMEL && !a->without_data) tell_data(a, v, numel);
}

void answer_value(answer *a, const kiln_value *v, int depth) {
  switch (kiln_value_kind(v)) {
    case KILN_KIND_TENSOR: answer_tensor(a, v); return;
    case KILN_KIND_LIST:
    case KILN_KIND_TUPLE:
      answer_tell(a, "(");
      for (int i = 0; i < kiln_value_count(v) && i < MAX_ITEMS && depth < 4; i++) {
        kiln_value *item = NULL;
        draw_must(kiln_value_item(v, i, &item));
        answer_value(a, item, depth + 1);
        answer_tell(a, ", ");
        kiln_value_destroy(item);
      }
      answer_tell(a, ")");
      return;
    case KILN_KIND_FLOAT: answer_tell(a, "%a", kiln_value_as_float(v)); return;
    default: {
      char *text = NULL;
      if (!kiln_value_print(v, 8, &text)) answer_tell(a, "%s", text);
      kiln_text_free(text);
    }
  }
}
