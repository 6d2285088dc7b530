/* source.c: positions in a model's source, and tracebacks from them. */
#include "runtime/source.h"

void kiln_source_index_lines(kiln_source *source, kiln_arena *arena) {
  kiln_str text = source->text;
  KILN_VEC(uint32_t) lines = {0};
  kiln_vec_push(arena, &lines, 0);
  const char *end = text.data + text.len;
  for (const char *at = text.data; at < end && (at = memchr(at, '\n', (size_t)(end - at)));) {
    kiln_vec_push(arena, &lines, (uint32_t)(++at - text.data));
  }
  source->lines = lines.data;
  source->line_count = lines.count;
}

/* Number of newlines before byte `at`; *begin is behind the last of them. */
static int count_lines(const kiln_source *source, size_t at, size_t *begin) {
  int low = 0, high = source->line_count;
  while (high - low > 1) {
    int mid = low + (high - low) / 2;
    *(source->lines[mid] <= at ? &low : &high) = mid;
  }
  if (source->lines) *begin = source->lines[low];
  for (size_t i = 0; !source->lines && i < at; i++) {
    if (source->text.data[i] == '\n') low++, *begin = i + 1;
  }
  return low;
}

/* The line that byte `at` of the text stands in: [*begin, *end), without the newline. */
static int find_line(const kiln_source *source, size_t at, size_t *begin, size_t *end) {
  kiln_str text = source->text;
  if (at > text.len) at = text.len;
  *begin = 0;
  int line = source->first_line + count_lines(source, at, begin);
  const char *stop = at < text.len ? memchr(text.data + at, '\n', text.len - at) : NULL;
  *end = stop ? (size_t)(stop - text.data) : text.len;
  return line;
}

kiln_source_loc kiln_source_range_loc(const kiln_source_range *range) {
  if (!range || !range->source) return (kiln_source_loc){NULL, 0, 0};
  size_t begin, end;
  int line = find_line(range->source, range->begin, &begin, &end);
  size_t at = range->begin < end ? range->begin : end;
  return (kiln_source_loc){range->source->name.data, line, (int)(at - begin) + 1};
}

/* One frame; lines longer than the buffer are cut. */
static kiln_status *trace_one(const kiln_source_range *range, kiln_status *status) {
  kiln_source_loc loc = kiln_source_range_loc(range);
  const char *function = range->function ? range->function : "";
  if (!range->source) return kiln_status_trace(status, function, loc, NULL, 0, 0);
  size_t begin, end;
  char line[400];
  find_line(range->source, range->begin, &begin, &end);
  size_t len = end - begin < sizeof line - 1 ? end - begin : sizeof line - 1;
  memcpy(line, range->source->text.data + begin, len);
  line[len] = 0;
  size_t from = range->begin > begin ? range->begin - begin : 0;
  size_t to = range->end > begin ? range->end - begin : 0;
  if (from > len) from = len;
  if (to > len) to = len; /* ranges of several lines are marked on their first */
  return kiln_status_trace(status, function, loc, line, (int)from, (int)to);
}

/* The part of a qualified name after its last dot. */
static const char *own_name(const char *function) {
  const char *dot = strrchr(function, '.');
  return dot ? dot + 1 : function;
}

static kiln_status *trace_original(const kiln_source_range *range, kiln_status *status) {
  kiln_original original;
  kiln_source_origin *origin = range->source ? range->source->origin : NULL;
  if (!origin || kiln_status_ends(status)) return status; /* it reads */
  if (!origin->find(origin, range->begin, &original)) return status;
  const kiln_source_loc loc = {original.file, original.line, original.column};
  return kiln_status_trace_original(status, own_name(range->function ? range->function : ""), loc,
                                    original.text, original.column - 1, (int)original.end);
}

kiln_status *kiln_source_range_trace(const kiln_source_range *range, kiln_status *status) {
  if (range) status = kiln_status_at(status, kiln_source_range_loc(range));
  for (; range; range = range->inlined_at) {
    status = trace_one(range, status);
    status = trace_original(range, status);
  }
  return status;
}
