/* string.c: TorchScript's strings: bytes, with Python's methods for ASCII. */
#include <string.h>

#include "runtime/kernels/support.h"

#define TEXT kiln_arg_str(args, 0)

static kiln_status *give_str(kiln_call *call, kiln_str text, kiln_ivalue *out) {
  kiln_string *s;
  KILN_TRY(kiln_string_create(call->env->mem, text, &s));
  return kiln__give_value(out, kiln_of_box(s));
}
static kiln_status *push_str(kiln_call *call, kiln_list *list, kiln_str text) {
  kiln_ivalue v;
  KILN_TRY(give_str(call, text, &v));
  return kiln_list_push(list, v);
}
static kiln_status *str_list(kiln_call *call, kiln_ivalue *out, kiln_list **list) {
  KILN_TRY(kiln__new_list(call, KILN_TYPE_STR, 0, list));
  return kiln__give_value(out, kiln_of_box(*list));
}
static kiln_str part(kiln_str s, size_t from, size_t to) {
  return kiln_str_make(s.data + from, to > from ? to - from : 0);
}

/* -- Built texts -- */

typedef kiln_status *(*builder)(kiln_call *call, kiln_text *text, const kiln_ivalue *args);
typedef struct job {
  builder build;
  const kiln_ivalue *args;
  kiln_ivalue *out;
} job;
static kiln_status *run_job(kiln_call *call, kiln_text *text, void *arg) {
  job *j = arg;
  KILN_TRY(j->build(call, text, j->args));
  return give_str(call, kiln_text_str(text), j->out);
}
/* A kernel whose result is what its body writes to `text`. */
#define TEXT_KERNEL(name)                                                        \
  static kiln_status *build_##name(KILN_UNUSED kiln_call *call, kiln_text *text, \
                                   const kiln_ivalue *args);                     \
  KILN_KERNEL(name) {                                                            \
    job j = {build_##name, args, outs};                                          \
    return kiln_call_text(call, run_job, &j);                                    \
  }                                                                              \
  static kiln_status *build_##name(KILN_UNUSED kiln_call *call, kiln_text *text, \
                                   const kiln_ivalue *args)

TEXT_KERNEL(str_add) {
  kiln_text_put(text, TEXT);
  kiln_text_put(text, kiln_arg_str(args, 1));
  return NULL;
}
TEXT_KERNEL(str) {
  kiln_ivalue_print(text, args[0]);
  return NULL;
}
/* "{}" is replaced by the next argument. */
TEXT_KERNEL(format) {
  kiln_str s = TEXT;
  int used = 1;
  for (size_t i = 0; i < s.len; i++) {
    if (s.data[i] == '{' && i + 1 < s.len && s.data[i + 1] == '}') {
      if (used >= call->arg_count) {
        return KILN_OP_FAIL("Too few arguments for format string: " KILN_STR_FMT, KILN_STR_ARG(s));
      }
      kiln_ivalue_print(text, args[used++]);
      i++;
    } else {
      kiln_text_putc(text, s.data[i]);
    }
  }
  return NULL;
}
/* PyTorch's names of what cannot be formatted as a number. */
static const char *tag_name(kiln_ivalue v) {
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_NONE: return "None";
    case KILN_TAG_STRING: return "String";
    case KILN_TAG_TENSOR: return "Tensor";
    case KILN_TAG_COMPLEX: return "ComplexDouble";
    case KILN_TAG_LIST: return "GenericList";
    case KILN_TAG_DICT: return "GenericDict";
    case KILN_TAG_TUPLE: return "Tuple";
    case KILN_TAG_OBJECT: return "Object";
    case KILN_TAG_DEVICE: return "Device";
    case KILN_TAG_ENUM: return "Enum";
    default: return "another value";
  }
}
static kiln_status *put_percent(kiln_text *text, char key, kiln_ivalue v) {
  const kiln_number n = kiln__number(v);
  const bool number = v.tag == KILN_TAG_INT || v.tag == KILN_TAG_FLOAT || v.tag == KILN_TAG_BOOL;
  if (!number && key && strchr("dieEfF", key)) {
    return KILN_OP_FAIL("%%%c requires a number for formatting, but got %s", key, tag_name(v));
  }
  switch (key) {
    case 'd':
    case 'i': kiln_text_printf(text, "%lld", (long long)kiln__number_i64(n)); return NULL;
    case 'e': kiln_text_printf(text, "%e", n.f); return NULL;
    case 'E': kiln_text_printf(text, "%E", n.f); return NULL;
    case 'f':
    case 'F': kiln_text_printf(text, "%f", n.f); return NULL;
    case 's': kiln_ivalue_print(text, v); return NULL;
    case 'c':
      if (v.tag == KILN_TAG_INT)
        kiln_text_putc(text, (char)v.u.i);
      else if (v.tag == KILN_TAG_STRING)
        kiln_text_put(text, kiln_string_view(v.u.string));
      else
        return KILN_OP_FAIL("%%c requires an int or char for formatting");
      return NULL;
    default:
      return KILN_OP_FAIL("The specifier %%%c is not supported in TorchScript format strings", key);
  }
}
TEXT_KERNEL(percent_format) {
  kiln_str s = TEXT;
  const kiln_ivalue *values = args + 1;
  int64_t count = call->arg_count - 1, used = 0;
  if (count == 1 && args[1].tag == KILN_TAG_TUPLE) {
    values = args[1].u.tuple->items;
    count = args[1].u.tuple->count;
  }
  for (size_t i = 0; i < s.len; i++) {
    if (s.data[i] != '%') {
      kiln_text_putc(text, s.data[i]);
      continue;
    }
    if (++i >= s.len) return KILN_OP_FAIL("Incomplete format specifier");
    if (s.data[i] == '%') {
      kiln_text_putc(text, '%');
      continue;
    }
    if (used >= count) return KILN_OP_FAIL("Too few arguments for format string");
    KILN_TRY(put_percent(text, s.data[i], values[used++]));
  }
  if (used < count) return KILN_OP_FAIL("Too many arguments for format string");
  return NULL;
}
TEXT_KERNEL(str_join) {
  const kiln_list *list = kiln_arg_list(args, 1);
  for (int64_t i = 0; i < list->count; i++) {
    if (i) kiln_text_put(text, TEXT);
    kiln_text_put(text, kiln_string_view(list->items[i].u.string));
  }
  return NULL;
}

/* -- Parts -- */

KILN_KERNEL(str_len) { return kiln__give_int(outs, (int64_t)TEXT.len); }
KILN_KERNEL(str_get) {
  int64_t index = kiln_arg_int(args, 1), count = (int64_t)TEXT.len;
  if (index < 0) index += count;
  if (index < 0 || index >= count) {
    return KILN_OP_FAIL("string index out of range: basic_string::at: __n (which is %llu) >= "
                        "this->size() (which is %zu)",
                        (unsigned long long)index, TEXT.len);
  }
  return give_str(call, kiln_str_make(TEXT.data + index, 1), outs);
}
kiln_status *kiln__slice_bounds(int64_t count, const kiln_ivalue *args, int64_t *out_start,
                                int64_t *out_step, int64_t *out_length);
TEXT_KERNEL(str_slice) {
  int64_t start, step, length;
  KILN_TRY(kiln__slice_bounds((int64_t)TEXT.len, args + 1, &start, &step, &length));
  for (int64_t i = 0; i < length; i++) kiln_text_putc(text, TEXT.data[start + i * step]);
  return NULL;
}
KILN_KERNEL(str_to_list) {
  kiln_list *list;
  KILN_TRY(str_list(call, outs, &list));
  for (size_t i = 0; i < TEXT.len; i++) KILN_TRY(push_str(call, list, part(TEXT, i, i + 1)));
  return NULL;
}
KILN_KERNEL(ord) {
  if (TEXT.len != 1) {
    return KILN_OP_FAIL("String for ord() must be 1 character, found %zu", TEXT.len);
  }
  return kiln__give_int(outs, (uint8_t)TEXT.data[0]);
}
KILN_KERNEL(chr) {
  int64_t i = kiln_arg_int(args, 0);
  if (i < 0 || i >= 1114111) { /* PyTorch's bound */
    return KILN_OP_FAIL("chr() arg not in range(0x110000), found %lld", (long long)i);
  }
  char c = (char)kiln_arg_int(args, 0);
  return give_str(call, kiln_str_make(&c, 1), outs);
}
static void put_base(kiln_text *text, int64_t i, const char *prefix, unsigned base) {
  char digits[72];
  int at = (int)sizeof digits;
  uint64_t n = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
  do {
    digits[--at] = "0123456789abcdef"[n % base];
    n /= base;
  } while (n);
  if (i < 0) kiln_text_putc(text, '-');
  kiln_text_puts(text, prefix);
  kiln_text_put(text, kiln_str_make(digits + at, sizeof digits - (size_t)at));
}
#define IN_BASE(name, prefix, base)                      \
  TEXT_KERNEL(name) {                                    \
    put_base(text, kiln_arg_int(args, 0), prefix, base); \
    return NULL;                                         \
  }
IN_BASE(bin, "0b", 2)
IN_BASE(oct, "0o", 8)
IN_BASE(hex, "0x", 16)

/* -- Characters -- */

static bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
static bool is_alpha(char c) { return is_upper(c) || is_lower(c); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_alnum(char c) { return is_alpha(c) || is_digit(c); }
static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_print(char c) { return c >= ' ' && c <= '~'; }
static char upper_of(char c) { return is_lower(c) ? (char)(c - 32) : c; }
static char lower_of(char c) { return is_upper(c) ? (char)(c + 32) : c; }

#define ALL_OF(name, test, when_empty)                                           \
  KILN_KERNEL(name) {                                                            \
    bool result = TEXT.len ? true : (when_empty);                                \
    for (size_t i = 0; i < TEXT.len; i++) result = result && test(TEXT.data[i]); \
    return kiln__give_bool(outs, result);                                        \
  }
ALL_OF(str_isalpha, is_alpha, false)
ALL_OF(str_isdigit, is_digit, false)
ALL_OF(str_isalnum, is_alnum, false)
ALL_OF(str_isspace, is_space, false)
ALL_OF(str_isprintable, is_print, true)
/* Some letter, and none of the other case. */
#define CASED(name, want, other)                  \
  KILN_KERNEL(name) {                             \
    bool some = false, wrong = false;             \
    for (size_t i = 0; i < TEXT.len; i++) {       \
      some = some || want(TEXT.data[i]);          \
      wrong = wrong || other(TEXT.data[i]);       \
    }                                             \
    return kiln__give_bool(outs, some && !wrong); \
  }
CASED(str_isupper, is_upper, is_lower)
CASED(str_islower, is_lower, is_upper)
KILN_KERNEL(str_istitle) {
  bool some = false, wrong = false, inside = false;
  for (size_t i = 0; i < TEXT.len; i++) {
    char c = TEXT.data[i];
    if (is_upper(c)) wrong = wrong || inside;
    if (is_lower(c)) wrong = wrong || !inside;
    inside = is_alpha(c);
    some = some || inside;
  }
  return kiln__give_bool(outs, some && !wrong);
}
/* PyTorch does not count the underscore. */
KILN_KERNEL(str_isidentifier) {
  bool result = TEXT.len > 0 && !is_digit(TEXT.data[0]);
  for (size_t i = 0; i < TEXT.len; i++) {
    result = result && is_alnum(TEXT.data[i]);
  }
  return kiln__give_bool(outs, result);
}
#define MAP(name, expr)                     \
  TEXT_KERNEL(name) {                       \
    for (size_t i = 0; i < TEXT.len; i++) { \
      const char c = TEXT.data[i];          \
      kiln_text_putc(text, expr);           \
    }                                       \
    return NULL;                            \
  }
MAP(str_upper, upper_of(c))
MAP(str_lower, lower_of(c))
MAP(str_swapcase, is_upper(c) ? lower_of(c) : upper_of(c))
MAP(str_capitalize, i == 0 ? upper_of(c) : lower_of(c))
MAP(str_title, i > 0 && is_alpha(TEXT.data[i - 1]) ? lower_of(c) : upper_of(c))

/* -- Padding and trimming -- */

static kiln_status *strip(kiln_call *call, const kiln_ivalue *args, bool left, bool right,
                          kiln_ivalue *out) {
  kiln_str s = TEXT, set = kiln_arg_str(args, 1);
  bool in_set[256] = {false};
  for (size_t i = 0; i < set.len; i++) in_set[(uint8_t)set.data[i]] = true;
  while (left && s.len && in_set[(uint8_t)s.data[0]]) s.data++, s.len--;
  while (right && s.len && in_set[(uint8_t)s.data[s.len - 1]]) s.len--;
  return give_str(call, s, out);
}
KILN_KERNEL(str_strip) { return strip(call, args, true, true, outs); }
KILN_KERNEL(str_lstrip) { return strip(call, args, true, false, outs); }
KILN_KERNEL(str_rstrip) { return strip(call, args, false, true, outs); }

/* `count` times `c`, by blocks; a count beyond all memory is seen at once. */
static kiln_status *put_fill(kiln_call *call, kiln_text *text, char c, int64_t count) {
  char block[4096];
  memset(block, c, sizeof block);
  if (count > (int64_t)1 << 31) return KILN_ERROR(KILN_LIMIT, "a text would be larger than 2 GiB");
  if (count > 0) KILN_TRY(kiln_budget_room(&call->budget, (size_t)count));
  for (; count > 0; count -= (int64_t)sizeof block) {
    KILN_TRY(kiln_call_check(call, 1));
    const bool all = count >= (int64_t)sizeof block;
    kiln_text_put(text, kiln_str_make(block, all ? sizeof block : (size_t)count));
  }
  return NULL;
}
static kiln_status *pad(kiln_call *call, kiln_text *text, const kiln_ivalue *args, int64_t left,
                        int64_t right) {
  kiln_str fill = kiln_arg_str(args, 2);
  if (fill.len != 1) {
    return KILN_OP_FAIL("TypeError: The fill character must be exactly one character long");
  }
  KILN_TRY(put_fill(call, text, fill.data[0], left));
  kiln_text_put(text, TEXT);
  KILN_TRY(put_fill(call, text, fill.data[0], right));
  return NULL;
}
static int64_t room(const kiln_ivalue *args) {
  const int64_t width = kiln_arg_int(args, 1), len = (int64_t)TEXT.len;
  return width > len ? width - len : 0;
}
TEXT_KERNEL(str_ljust) { return pad(call, text, args, 0, room(args)); }
TEXT_KERNEL(str_rjust) { return pad(call, text, args, room(args), 0); }
TEXT_KERNEL(str_center) {
  int64_t n = room(args), left = n / 2 + (n & kiln_arg_int(args, 1) & 1);
  return pad(call, text, args, left, n - left);
}
/* As PyTorch's: in front of a sign too. */
TEXT_KERNEL(str_zfill) {
  KILN_TRY(put_fill(call, text, '0', room(args)));
  kiln_text_put(text, TEXT);
  return NULL;
}
TEXT_KERNEL(str_expandtabs) {
  int64_t size = kiln_arg_int(args, 1), column = 0;
  for (size_t i = 0; i < TEXT.len; i++) {
    char c = TEXT.data[i];
    if (c != '\t') {
      kiln_text_putc(text, c);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    } else if (size > 0) {
      const int64_t spaces = size - column % size;
      KILN_TRY(put_fill(call, text, ' ', spaces));
      column += spaces;
    }
  }
  return NULL;
}

/* -- Search -- */

/* Longer texts are not compared at every place. */
enum { SHORT = 16 };
/* a b + c modulo 2^61 - 1. */
static uint64_t roll(uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t prime = (UINT64_C(1) << 61) - 1;
  const __uint128_t product = (__uint128_t)a * b + c;
  const uint64_t folded = (uint64_t)(product & prime) + (uint64_t)(product >> 61);
  return folded >= prime ? folded - prime : folded;
}
/* First place of `what` in s from `from`; SIZE_MAX when absent. */
static size_t find_from(kiln_str s, kiln_str what, size_t from) {
  if (from > s.len || what.len > s.len - from) return SIZE_MAX;
  const char *found = what.len ? memmem(s.data + from, s.len - from, what.data, what.len)
                               : s.data + from; /* memmem is linear (two-way) */
  return found ? (size_t)(found - s.data) : SIZE_MAX;
}
/* By a rolling hash (Karp and Rabin, 1987) modulo 2^61 - 1, with the context's seed for a base:
 * what repeats would make comparing from every place quadratic. */
static size_t find_last_long(uint64_t seed, kiln_str s, kiln_str what) {
  const uint64_t prime = (UINT64_C(1) << 61) - 1, base = seed % (prime - 256) + 256;
  uint64_t wanted = 0, seen = 0, top = 1; /* base to the power of len - 1 */
  for (size_t i = what.len; i-- > 0;) {
    wanted = roll(wanted, base, (uint8_t)what.data[i]);
    seen = roll(seen, base, (uint8_t)s.data[s.len - what.len + i]);
    if (i > 0) top = roll(top, base, 0);
  }
  for (size_t i = s.len - what.len;; i--) {
    if (seen == wanted && memcmp(s.data + i, what.data, what.len) == 0) return i;
    if (i == 0) return SIZE_MAX;
    const uint64_t gone = roll(top, (uint8_t)s.data[i + what.len - 1], 0);
    seen = roll(seen >= gone ? seen - gone : seen + prime - gone, base, (uint8_t)s.data[i - 1]);
  }
}
static size_t find_last(const kiln_call *call, kiln_str s, kiln_str what) {
  if (what.len > s.len) return SIZE_MAX;
  if (what.len > SHORT) return find_last_long(kiln_mem_hash_seed(call->env->mem), s, what);
  for (size_t i = s.len + 1; i-- > 0;) {
    if (i + what.len <= s.len && (what.len == 0 || memcmp(s.data + i, what.data, what.len) == 0)) {
      return i;
    }
  }
  return SIZE_MAX;
}
/* The bounds of (self, substr, start, end): both count from the back, where -1 as an end is the end
 * itself. They may lie beyond the end. */
static void bounds_of(const kiln_ivalue *args, int64_t *out_start, int64_t *out_end) {
  int64_t size = (int64_t)TEXT.len, start = kiln_arg_int(args, 2), end = kiln_arg_int(args, 3);
  if (start < 0) start = start + size < 0 ? 0 : start + size;
  if (end < 0) end = end + size + 1 < 0 ? 0 : end + size + 1;
  *out_start = start;
  *out_end = end;
}
static size_t clamped(kiln_str s, int64_t at) { return at < (int64_t)s.len ? (size_t)at : s.len; }
static kiln_status *beyond_end(kiln_str s, int64_t at) {
  return KILN_OP_FAIL("basic_string::substr: __pos (which is %lld) > this->size() (which is %zu)",
                      (long long)at, s.len);
}
/* An empty range has nothing in it but the empty string, wherever it lies (as in PyTorch). -1, or
 * where it `must` be there an error. */
static kiln_status *search(const kiln_call *call, const kiln_ivalue *args, bool last, bool must,
                           kiln_ivalue *out) {
  int64_t start, end, found = -1;
  kiln_str what = kiln_arg_str(args, 1);
  bounds_of(args, &start, &end);
  if (end <= start) {
    if (what.len == 0) found = start;
  } else if (start > (int64_t)TEXT.len) {
    return beyond_end(TEXT, start);
  } else {
    kiln_str s = part(TEXT, (size_t)start, clamped(TEXT, end));
    size_t at = last ? find_last(call, s, what) : find_from(s, what, 0);
    if (at != SIZE_MAX) found = (int64_t)at + start;
  }
  if (must && found < 0) return KILN_OP_FAIL("ValueError: substring not found");
  return kiln__give_int(out, found);
}
KILN_KERNEL(str_find) { return search(call, args, false, false, outs); }
KILN_KERNEL(str_rfind) { return search(call, args, true, false, outs); }
KILN_KERNEL(str_index) { return search(call, args, false, true, outs); }
KILN_KERNEL(str_rindex) { return search(call, args, true, true, outs); }
/* What begins before `end` counts. */
KILN_KERNEL(str_count) {
  kiln_str s = TEXT, what = kiln_arg_str(args, 1);
  int64_t start, end, n = 0;
  bounds_of(args, &start, &end);
  if (what.len == 0) {
    size_t from = clamped(s, start), to = clamped(s, end);
    n = to < from ? 0 : (int64_t)(to - from) + 1;
  } else if (start <= (int64_t)s.len) {
    size_t at = find_from(s, what, (size_t)start);
    for (; at != SIZE_MAX && (int64_t)at < end; at = find_from(s, what, at + what.len)) n++;
  }
  return kiln__give_int(outs, n);
}
/* The part that startswith and endswith look at: an end before the start is no end. */
static kiln_status *tested_part(const kiln_ivalue *args, kiln_str *out) {
  int64_t start, end;
  bounds_of(args, &start, &end);
  if (start > (int64_t)TEXT.len) return beyond_end(TEXT, start);
  *out = part(TEXT, (size_t)start, end < start ? TEXT.len : clamped(TEXT, end));
  return NULL;
}
KILN_KERNEL(str_startswith) {
  kiln_str s, what = kiln_arg_str(args, 1);
  KILN_TRY(tested_part(args, &s));
  *outs =
      kiln_bool(s.len >= what.len && (what.len == 0 || memcmp(s.data, what.data, what.len) == 0));
  return NULL;
}
KILN_KERNEL(str_endswith) {
  kiln_str s, what = kiln_arg_str(args, 1);
  KILN_TRY(tested_part(args, &s));
  return kiln__give_bool(
      outs, s.len >= what.len &&
                (what.len == 0 || memcmp(s.data + s.len - what.len, what.data, what.len) == 0));
}
TEXT_KERNEL(str_replace) {
  kiln_str s = TEXT, old = kiln_arg_str(args, 1), with = kiln_arg_str(args, 2);
  int64_t most = kiln_arg_int(args, 3);
  size_t at = 0;
  for (int64_t n = 0; most < 0 || n < most; n++) {
    size_t found = find_from(s, old, at);
    if (found == SIZE_MAX) break;
    kiln_text_put(text, part(s, at, found));
    kiln_text_put(text, with);
    at = found + old.len;
    if (old.len == 0) { /* between all characters */
      if (at >= s.len) return NULL;
      kiln_text_putc(text, s.data[at++]);
    }
  }
  kiln_text_put(text, part(s, at, s.len));
  return NULL;
}

/* -- Cutting -- */

static kiln_status *split_spaces(kiln_call *call, kiln_str s, int64_t most, kiln_list *list) {
  size_t i = 0;
  for (int64_t n = 0;; n++) {
    while (i < s.len && is_space(s.data[i])) i++;
    if (i >= s.len) return NULL;
    size_t end = i;
    if (most >= 0 && n >= most) return push_str(call, list, part(s, i, s.len));
    while (end < s.len && !is_space(s.data[end])) end++;
    KILN_TRY(push_str(call, list, part(s, i, end)));
    i = end;
  }
}
KILN_KERNEL(str_split) {
  kiln_list *list;
  int64_t most = kiln_arg_int(args, 2);
  KILN_TRY(str_list(call, outs, &list));
  if (kiln_arg_is_none(args, 1)) return split_spaces(call, TEXT, most, list);
  kiln_str s = TEXT, by = kiln_arg_str(args, 1);
  size_t at = 0;
  if (by.len == 0) return KILN_OP_FAIL("ValueError: empty separator");
  for (int64_t n = 0; most < 0 || n < most; n++) {
    size_t found = find_from(s, by, at);
    if (found == SIZE_MAX) break;
    KILN_TRY(push_str(call, list, part(s, at, found)));
    at = found + by.len;
  }
  return push_str(call, list, part(s, at, s.len));
}
KILN_KERNEL(str_rsplit) {
  kiln_list *list;
  kiln_str s = TEXT, by = kiln_arg_str(args, 1);
  int64_t most = kiln_arg_int(args, 2);
  KILN_TRY(str_list(call, outs, &list));
  if (by.len == 0) return KILN_OP_FAIL("ValueError: empty separator");
  for (int64_t n = 0; most < 0 || n < most; n++) {
    size_t found = find_last(call, s, by);
    if (found == SIZE_MAX) break;
    KILN_TRY(push_str(call, list, part(s, found + by.len, s.len)));
    s.len = found;
  }
  KILN_TRY(push_str(call, list, s));
  for (int64_t i = 0, j = list->count - 1; i < j; i++, j--) {
    kiln_ivalue v = list->items[i];
    list->items[i] = list->items[j];
    list->items[j] = v;
  }
  return NULL;
}
/* PyTorch ends lines at single bytes: those of U+0085, U+2028 and U+2029 too. What is kept of them
 * is an element of its own. */
static bool ends_line(char c) {
  return c != 0 && strchr("\n\r\v\f\x1c\x1d\x1e\x85\xe2\x80\xa8\xa9", c) != NULL;
}
KILN_KERNEL(str_splitlines) {
  kiln_list *list;
  kiln_str s = TEXT;
  bool keep = kiln_arg_bool(args, 1);
  KILN_TRY(str_list(call, outs, &list));
  size_t from = 0;
  for (size_t i = 0; i < s.len; i++) {
    if (!ends_line(s.data[i])) continue;
    KILN_TRY(push_str(call, list, part(s, from, i)));
    if (keep) KILN_TRY(push_str(call, list, part(s, i, i + 1)));
    from = i + 1;
  }
  return from < s.len ? push_str(call, list, part(s, from, s.len)) : NULL;
}
static kiln_status *partition(kiln_call *call, const kiln_ivalue *args, bool last,
                              kiln_ivalue *outs) {
  kiln_str s = TEXT, by = kiln_arg_str(args, 1);
  if (by.len == 0) return KILN_OP_FAIL("ValueError: empty separator");
  size_t at = last ? find_last(call, s, by) : find_from(s, by, 0);
  bool found = at != SIZE_MAX;
  if (!found) at = last ? 0 : s.len;
  kiln_str head = found || !last ? part(s, 0, at) : kiln_str_make("", 0);
  kiln_str tail = found ? part(s, at + by.len, s.len) : last ? s : kiln_str_make("", 0);
  KILN_TRY(give_str(call, head, &outs[0]));
  KILN_TRY(give_str(call, found ? by : kiln_str_make("", 0), &outs[1]));
  return give_str(call, tail, &outs[2]);
}
KILN_KERNEL(str_partition) { return partition(call, args, false, outs); }
KILN_KERNEL(str_rpartition) { return partition(call, args, true, outs); }

/* -- Devices, warnings -- */

KILN_KERNEL(device_of_str) {
  kiln_device_id id;
  if (!kiln_device_parse(TEXT, &id)) {
    return KILN_OP_FAIL("Invalid device string: '" KILN_STR_FMT "'", KILN_STR_ARG(TEXT));
  }
  return kiln__give_value(outs, kiln_device_value(id));
}
KILN_KERNEL(device_type) {
  return give_str(call, kiln_str_from(kiln_device_kind_name(args[0].u.device.kind)), outs);
}
KILN_KERNEL(device_index) {
  if (args[0].u.device.index >= 0) *outs = kiln_int(args[0].u.device.index);
  return NULL;
}
/* Once a place, as in PyTorch: a plan's kernel has the place's mark (jit/bytecode_nodes.c). */
KILN_KERNEL(warn) {
  bool *told = call->kernel ? call->kernel->user : NULL;
  if (told && __atomic_exchange_n(told, true, __ATOMIC_RELAXED)) return NULL;
  KILN_LOG(&call->env->log, warn, 1, KILN_STR_FMT, KILN_STR_ARG(TEXT));
  return NULL;
}
KILN_KERNEL(str_hash) {
  return kiln__give_int(outs, args[0].tag == KILN_TAG_STRING
                                  ? (int64_t)(kiln_hash_bytes(0, TEXT.data, TEXT.len) >> 1)
                                  : kiln__number_i64(kiln__number(args[0])));
}
