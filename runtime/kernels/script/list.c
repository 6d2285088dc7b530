/* list.c: TorchScript's lists. Lists are references: what changes one is seen by all who hold it.
 */
#include <string.h>

#include "runtime/kernels/support.h"

enum { MOVED_PER_OPERATION = 256 }; /* items */

static bool equal(kiln_ivalue a, kiln_ivalue b) { return kiln_ivalue_equal(a, b); }

/* Wraps an index; false when out of range. */
static bool wrap(const kiln_list *list, int64_t *index) {
  if (*index < 0) *index += list->count;
  return *index >= 0 && *index < list->count;
}
/* A value is about to come into the list. */
#define NOTE(list, v) \
  kiln_cycle_note(call->env->mem, &call->roots, &(list)->box, (list)->elem_type, v)
#define LIST kiln_arg_list(args, 0)
#define OUT_OF_RANGE() KILN_OP_FAIL("list index out of range")

KILN_KERNEL(list_get) {
  int64_t index = kiln_arg_int(args, 1);
  if (!wrap(LIST, &index)) return OUT_OF_RANGE();
  return kiln__give_value(outs, kiln_ivalue_retain(LIST->items[index]));
}
KILN_KERNEL(list_set) {
  kiln_list *list = LIST;
  int64_t index = kiln_arg_int(args, 1);
  if (!wrap(list, &index)) return OUT_OF_RANGE();
  KILN_TRY(NOTE(list, args[2]));
  kiln_ivalue old = list->items[index];
  list->items[index] = kiln_ivalue_retain(args[2]);
  kiln_ivalue_release_to(&call->cache, old);
  return kiln__give_value(outs, kiln_ivalue_retain(args[0]));
}
KILN_KERNEL(list_len) { return kiln__give_int(outs, LIST->count); }
KILN_KERNEL(list_append) {
  KILN_TRY(NOTE(LIST, args[1]));
  KILN_TRY(kiln_list_push_in(LIST, &call->cache, kiln_ivalue_retain(args[1])));
  return kiln__give_value(outs, kiln_ivalue_retain(args[0]));
}
/* Appends copies of the first ones of `from`, which may be `to` itself. */
static kiln_status *append_all(kiln_list *to, const kiln_list *from, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    KILN_TRY(kiln_list_push(to, kiln_ivalue_retain(from->items[i])));
  }
  return NULL;
}
static kiln_status *extend(kiln_call *call, kiln_list *to, const kiln_list *from) {
  for (int64_t i = 0; i < from->count; i++) KILN_TRY(NOTE(to, from->items[i]));
  return append_all(to, from, from->count);
}
KILN_KERNEL(list_extend) { return extend(call, LIST, kiln_arg_list(args, 1)); }
KILN_KERNEL(list_add_) {
  KILN_TRY(extend(call, LIST, kiln_arg_list(args, 1)));
  return kiln__give_value(outs, kiln_ivalue_retain(args[0]));
}
static kiln_status *new_like(kiln_call *call, const kiln_list *list, int64_t count,
                             kiln_ivalue *out, kiln_list **out_list) {
  KILN_TRY(kiln_list_create_in(call->env->mem, &call->cache, list->elem_type, count, out_list));
  return kiln__give_value(out, kiln_of_box(*out_list));
}
KILN_KERNEL(list_add) {
  kiln_list *result;
  const kiln_list *like = LIST->elem_type ? LIST : kiln_arg_list(args, 1);
  KILN_TRY(new_like(call, like, LIST->count + kiln_arg_list(args, 1)->count, outs, &result));
  KILN_TRY(append_all(result, LIST, LIST->count));
  return append_all(result, kiln_arg_list(args, 1), kiln_arg_list(args, 1)->count);
}
KILN_KERNEL(list_copy) {
  kiln_list *result;
  KILN_TRY(new_like(call, LIST, LIST->count, outs, &result));
  return append_all(result, LIST, LIST->count);
}
static kiln_status *repeat(kiln_call *call, const kiln_list *list, int64_t n, kiln_ivalue *out) {
  kiln_list *result;
  int64_t count = 0;
  if (n < 0 && list->count > 0) { /* as in PyTorch */
    return KILN_OP_FAIL("vector::reserve: a list cannot be repeated %lld times", (long long)n);
  }
  if (n < 0) n = 0;
  if (!kiln_checked_mul_i64(list->count, n, &count)) return kiln_status_oom();
  KILN_TRY(new_like(call, list, count, out, &result));
  for (int64_t i = 0; i < n && list->count; i++) {
    if ((i & 1023) == 0) KILN_TRY(kiln_call_check(call, 1));
    KILN_TRY(append_all(result, list, list->count));
  }
  return NULL;
}
KILN_KERNEL(list_mul) { return repeat(call, LIST, kiln_arg_int(args, 1), outs); }
KILN_KERNEL(list_mul_left) {
  return repeat(call, kiln_arg_list(args, 1), kiln_arg_int(args, 0), outs);
}
static void drop_from(kiln_call *call, kiln_list *list, int64_t count) {
  while (list->count > count) {
    kiln_ivalue last = list->items[--list->count];
    kiln_ivalue_release_to(&call->cache, last);
  }
}
KILN_KERNEL(list_mul_) {
  kiln_list *list = LIST;
  int64_t n = kiln_arg_int(args, 1), count = list->count;
  if (n <= 0) drop_from(call, list, 0);
  for (int64_t i = 1; i < n && count; i++) {
    if ((i & 1023) == 1) KILN_TRY(kiln_call_check(call, 1));
    KILN_TRY(append_all(list, list, count));
  }
  return kiln__give_value(outs, kiln_ivalue_retain(args[0]));
}
KILN_KERNEL(list_clear) {
  drop_from(call, LIST, 0);
  return NULL;
}
/* Takes one element out; the reference passes to the caller. What moves is work of the call. */
static kiln_ivalue take(kiln_call *call, kiln_list *list, int64_t index) {
  kiln_ivalue v = list->items[index];
  kiln_budget_skip(&call->budget, (list->count - index) / MOVED_PER_OPERATION);
  memmove(&list->items[index], &list->items[index + 1],
          sizeof(kiln_ivalue) * (size_t)(list->count - index - 1));
  list->count--;
  return v;
}
KILN_KERNEL(list_pop) {
  int64_t index = kiln_arg_int(args, 1);
  if (LIST->count == 0) return KILN_OP_FAIL("pop from empty list");
  if (!wrap(LIST, &index)) return OUT_OF_RANGE();
  *outs = take(call, LIST, index);
  return NULL;
}
KILN_KERNEL(list_delete) {
  int64_t index = kiln_arg_int(args, 1);
  if (LIST->count == 0) return KILN_OP_FAIL("pop index out of range");
  if (!wrap(LIST, &index)) return OUT_OF_RANGE();
  kiln_ivalue_release_to(&call->cache, take(call, LIST, index));
  return NULL;
}
KILN_KERNEL(list_insert) {
  kiln_list *list = LIST;
  int64_t index = kiln_arg_int(args, 1), count = list->count;
  if (index < 0) index = index + count < 0 ? 0 : index + count;
  if (index > count) index = count;
  KILN_TRY(NOTE(list, args[2]));
  KILN_TRY(kiln_list_push(list, kiln_ivalue_retain(args[2])));
  kiln_ivalue v = list->items[count];
  memmove(&list->items[index + 1], &list->items[index],
          sizeof(kiln_ivalue) * (size_t)(count - index));
  list->items[index] = v;
  return NULL;
}
KILN_KERNEL(list_reverse) {
  kiln_list *list = LIST;
  for (int64_t i = 0, j = list->count - 1; i < j; i++, j--) {
    kiln_ivalue v = list->items[i];
    list->items[i] = list->items[j];
    list->items[j] = v;
  }
  return NULL;
}
/* Python's slice bounds: what start:end:step covers of `count` elements. */
kiln_status *kiln__slice_bounds(int64_t count, const kiln_ivalue *args, int64_t *out_start,
                                int64_t *out_step, int64_t *out_length);
kiln_status *kiln__slice_bounds(int64_t count, const kiln_ivalue *args, int64_t *out_start,
                                int64_t *out_step, int64_t *out_length) {
  int64_t step = kiln_arg_int_or(args, 2, 1);
  if (step == 0) return KILN_OP_FAIL("List slice should have non-zero step");
  int64_t low = step > 0 ? 0 : -1, high = step > 0 ? count : count - 1;
  int64_t start = step > 0 ? low : high, end = step > 0 ? high : low;
  for (int k = 0; k < 2; k++) {
    if (args[k].tag != KILN_TAG_INT) continue;
    int64_t at = args[k].u.i;
    if (at < 0) at += count;
    at = at < low ? low : at > high ? high : at;
    if (k == 0)
      start = at;
    else
      end = at;
  }
  int64_t length = 0;
  if (step > 0 && end > start) length = (end - start - 1) / step + 1;
  if (step < 0 && start > end) {
    uint64_t stride = (uint64_t)0 - (uint64_t)step;
    length = (int64_t)((uint64_t)(start - end - 1) / stride + 1);
  }
  *out_start = start;
  *out_step = step;
  *out_length = length;
  return NULL;
}
KILN_KERNEL(list_slice) {
  int64_t start, step, length;
  kiln_list *result;
  KILN_TRY(kiln__slice_bounds(LIST->count, args + 1, &start, &step, &length));
  KILN_TRY(new_like(call, LIST, length, outs, &result));
  for (int64_t i = 0; i < length; i++) {
    KILN_TRY(kiln_list_push(result, kiln_ivalue_retain(LIST->items[start + i * step])));
  }
  return NULL;
}

/* -- Search -- */

/* Python's bool(a == b): tensors must compare to one element. */
static kiln_status *same_value(kiln_call *call, kiln_ivalue a, kiln_ivalue b, bool *out) {
  if (a.tag != KILN_TAG_TENSOR || b.tag != KILN_TAG_TENSOR) {
    *out = equal(a, b);
    return NULL;
  }
  const kiln_ivalue both[2] = {a, b};
  kiln_ivalue found = kiln_none();
  kiln_status *status = kiln_kernel_step(call, KILN_BODY_OF(eq), both, 2, &found);
  const kiln_tensor *t = status ? NULL : found.u.tensor;
  if (t && t->numel != 1) {
    status = KILN_OP_FAIL("Boolean value of Tensor with %s is ambiguous",
                          t->numel ? "more than one value" : "no values");
  }
  *out = !status && kiln__element_i64(t, 0) != 0;
  kiln_ivalue_release_to(&call->cache, found);
  return status;
}
static kiln_status *find(kiln_call *call, const kiln_list *list, kiln_ivalue v,
                         int64_t *out_index) {
  *out_index = -1;
  for (int64_t i = 0; i < list->count; i++) {
    bool same;
    KILN_TRY(same_value(call, list->items[i], v, &same));
    if (same) {
      *out_index = i;
      return NULL;
    }
  }
  return NULL;
}
/* Whether they are alike, or are not. */
static kiln_status *compare_tensors(kiln_call *call, const kiln_ivalue *args, bool alike,
                                    kiln_ivalue *out) {
  const kiln_list *a = kiln_arg_list(args, 0), *b = kiln_arg_list(args, 1);
  bool same = a->count == b->count;
  for (int64_t i = 0; same && i < a->count; i++) {
    KILN_TRY(same_value(call, a->items[i], b->items[i], &same));
  }
  return kiln__give_bool(out, same == alike);
}
KILN_KERNEL(tensor_list_eq) { return compare_tensors(call, args, true, outs); }
KILN_KERNEL(tensor_list_ne) { return compare_tensors(call, args, false, outs); }
KILN_KERNEL(list_contains) {
  int64_t index;
  KILN_TRY(find(call, LIST, args[1], &index));
  return kiln__give_bool(outs, index >= 0);
}
static kiln_status *not_in_list(kiln_call *call, kiln_text *text, void *value) {
  (void)call;
  kiln_ivalue_print(text, *(kiln_ivalue *)value);
  return KILN_OP_FAIL("'" KILN_STR_FMT "' is not in list", KILN_STR_ARG(kiln_text_str(text)));
}
KILN_KERNEL(list_index) {
  int64_t index;
  KILN_TRY(find(call, LIST, args[1], &index));
  if (index < 0) {
    kiln_ivalue v = args[1];
    return kiln_call_text(call, not_in_list, &v);
  }
  return kiln__give_int(outs, index);
}
KILN_KERNEL(list_remove) {
  int64_t index;
  KILN_TRY(find(call, LIST, args[1], &index));
  if (index < 0) return KILN_OP_FAIL("list.remove(x): x not in list");
  kiln_ivalue_release_to(&call->cache, take(call, LIST, index));
  return NULL;
}
KILN_KERNEL(list_count) {
  int64_t n = 0;
  for (int64_t i = 0; i < LIST->count; i++) {
    bool same;
    KILN_TRY(same_value(call, LIST->items[i], args[1], &same));
    n += same;
  }
  return kiln__give_int(outs, n);
}

/* -- Order -- */

/* Merge sort: stable, and no worse on hostile input. less(a, b) may fail for tensors. */
typedef struct sorter {
  kiln_ivalue *items, *spare;
  bool reverse;
  kiln_status *status;
} sorter;

static const char *kind_name(kiln_ivalue v) {
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_NONE: return "NoneType";
    case KILN_TAG_INT: return "int";
    case KILN_TAG_FLOAT: return "float";
    case KILN_TAG_BOOL: return "bool";
    case KILN_TAG_STRING: return "str";
    case KILN_TAG_TENSOR: return "Tensor";
    case KILN_TAG_TUPLE: return "tuple";
    case KILN_TAG_LIST: return "list";
    case KILN_TAG_DICT: return "dict";
    default: return "object";
  }
}

static bool text_before(const kiln_string *x, const kiln_string *y) {
  size_t n = x->len < y->len ? x->len : y->len;
  int order = memcmp(x->data, y->data, n);
  return order ? order < 0 : x->len < y->len;
}

/* A list of Any may hold values of several kinds: both tags are looked at. */
static bool before(sorter *s, kiln_ivalue a, kiln_ivalue b) {
  if (s->status) return false;
  if (s->reverse) {
    kiln_ivalue swap = a;
    a = b;
    b = swap;
  }
  while (a.tag == KILN_TAG_TUPLE && b.tag == KILN_TAG_TUPLE) { /* by the first that differ */
    const kiln_tuple *x = a.u.tuple, *y = b.u.tuple;
    int64_t n = x->count < y->count ? x->count : y->count, i = 0;
    while (i < n && equal(x->items[i], y->items[i])) i++;
    if (i == n) return x->count < y->count;
    a = x->items[i];
    b = y->items[i];
  }
  if (a.tag != b.tag) {
    s->status = KILN_OP_FAIL("'<' not supported between instances of '%s' and '%s'", kind_name(a),
                             kind_name(b));
    return false;
  }
  switch (a.tag) {
    case KILN_TAG_INT: return a.u.i < b.u.i;
    case KILN_TAG_FLOAT: return a.u.f < b.u.f;
    case KILN_TAG_BOOL: return a.u.b < b.u.b;
    case KILN_TAG_STRING: return text_before(a.u.string, b.u.string);
    case KILN_TAG_TENSOR: {
      double x = 0, y = 0;
      s->status = kiln_tensor_item_f64(a.u.tensor, &x);
      if (!s->status) s->status = kiln_tensor_item_f64(b.u.tensor, &y);
      return x < y;
    }
    default:
      s->status = KILN_OP_FAIL(
          "Only list of Tensors, ints, floats, bools, strs, a User Defined Class that defines the "
          "__lt__ compare method or Tuples of aforementioned types can be sorted");
      return false;
  }
}
static void merge_sort(sorter *s, int64_t from, int64_t to) {
  if (to - from < 2) return;
  int64_t middle = from + (to - from) / 2;
  merge_sort(s, from, middle);
  merge_sort(s, middle, to);
  int64_t a = from, b = middle;
  for (int64_t i = from; i < to; i++) {
    bool right = a >= middle || (b < to && before(s, s->items[b], s->items[a]));
    s->spare[i] = right ? s->items[b++] : s->items[a++];
  }
  memcpy(&s->items[from], &s->spare[from], sizeof(kiln_ivalue) * (size_t)(to - from));
}
static kiln_status *sort(kiln_call *call, kiln_list *list, bool reverse) {
  size_t bytes = sizeof(kiln_ivalue) * (size_t)list->count;
  if (list->count < 2) return NULL;
  sorter s = {.items = list->items, .reverse = reverse};
  s.spare = kiln_mem_alloc(call->env->mem, bytes);
  if (!s.spare) return kiln_status_oom();
  merge_sort(&s, 0, list->count);
  kiln_mem_free(call->env->mem, s.spare, bytes);
  return s.status;
}
KILN_KERNEL(list_sort) { return sort(call, LIST, kiln_arg_bool(args, 1)); }
KILN_KERNEL(list_sorted) {
  KILN_TRY(kiln__kernel_list_copy(call, args, outs));
  return sort(call, outs->u.list, false);
}

/* -- Folds -- */

KILN_KERNEL(list_sum) {
  const kiln_list *list = LIST;
  uint64_t whole = 0;
  double re = 0, im = 0;
  uint32_t tag = list->count ? list->items[0].tag : KILN_TAG_INT;
  if (!list->count && list->elem_type && list->elem_type->kind == KILN_TYPE_FLOAT) {
    tag = KILN_TAG_FLOAT;
  }
  for (int64_t i = 0; i < list->count; i++) {
    kiln_number n = kiln__number(list->items[i]);
    whole += (uint64_t)n.i;
    re += n.f;
    im += n.im;
  }
  if (tag == KILN_TAG_COMPLEX) return kiln__give_complex(call, re, im, outs);
  return kiln__give_value(outs, tag == KILN_TAG_FLOAT ? kiln_float(re) : kiln_int((int64_t)whole));
}
static bool truth(kiln_ivalue v) {
  if (v.tag == KILN_TAG_STRING) return v.u.string->len != 0;
  kiln_number n = kiln__number(v);
  return n.f != 0 || n.im != 0;
}
KILN_KERNEL(list_any) {
  bool result = false;
  for (int64_t i = 0; i < LIST->count; i++) result = result || truth(LIST->items[i]);
  return kiln__give_bool(outs, result);
}
KILN_KERNEL(list_all) {
  bool result = true;
  for (int64_t i = 0; i < LIST->count; i++) result = result && truth(LIST->items[i]);
  return kiln__give_bool(outs, result);
}
/* max(list) and min(list) */
static kiln_status *extreme(const kiln_list *list, bool largest, kiln_ivalue *out) {
  if (list->count == 0) {
    return KILN_OP_FAIL("%s() arg is an empty sequence", largest ? "max" : "min");
  }
  kiln_ivalue best = list->items[0];
  for (int64_t i = 1; i < list->count; i++) {
    kiln_ivalue v = list->items[i];
    bool less = v.tag == KILN_TAG_FLOAT  ? v.u.f < best.u.f
                : v.tag == KILN_TAG_BOOL ? v.u.b < best.u.b
                                         : v.u.i < best.u.i;
    bool more = v.tag == KILN_TAG_FLOAT  ? v.u.f > best.u.f
                : v.tag == KILN_TAG_BOOL ? v.u.b > best.u.b
                                         : v.u.i > best.u.i;
    if (largest ? more : less) best = v;
  }
  return kiln__give_value(out, kiln_ivalue_retain(best));
}
KILN_KERNEL(list_max) { return extreme(LIST, true, outs); }
KILN_KERNEL(list_min) { return extreme(LIST, false, outs); }
/* The lexically larger (smaller) of two lists. */
static bool list_less(const kiln_list *a, const kiln_list *b) {
  for (int64_t i = 0; i < a->count && i < b->count; i++) {
    double x = kiln__number(a->items[i]).f, y = kiln__number(b->items[i]).f;
    if (x != y) return x < y;
  }
  return a->count < b->count;
}
KILN_KERNEL(list_max_of) {
  return kiln__give_value(
      outs, kiln_ivalue_retain(list_less(LIST, kiln_arg_list(args, 1)) ? args[1] : args[0]));
}
KILN_KERNEL(list_min_of) {
  return kiln__give_value(
      outs, kiln_ivalue_retain(list_less(kiln_arg_list(args, 1), LIST) ? args[1] : args[0]));
}
KILN_KERNEL(rangelist) {
  kiln_list *list;
  int64_t n = kiln_arg_int(args, 0);
  KILN_TRY(kiln__new_list(call, KILN_TYPE_INT, n > 0 && n < 1024 ? n : 0, &list));
  *outs = kiln_of_box(list);
  for (int64_t i = 0; i < n; i++) {
    if ((i & 1023) == 0) KILN_TRY(kiln_call_check(call, 1));
    KILN_TRY(kiln_list_push(list, kiln_int(i)));
  }
  return NULL;
}
KILN_KERNEL(infer_size) {
  int64_t a[KILN_MAX_RANK], b[KILN_MAX_RANK];
  int n, m;
  KILN_TRY(kiln__arg_int_list(args, 0, a, &n));
  KILN_TRY(kiln__arg_int_list(args, 1, b, &m));
  KILN_TRY(kiln_broadcast(n, a, m, b, &n, a));
  return kiln__give_ints(call, n, a, outs);
}
