/* pickle.c: the opcodes of the pickle machine.
 *
 * All that it holds lives in vectors of the context's memory, which are a cleanup of the scope.
 * Arguments stay on the stack until their result exists. Containers that have been
 * made are all remembered: a cycle or a deep nest is taken apart through that list, without
 * recursion. */
#include "frontend/pickle_machine.h"

enum { STEPS_PER_CHECK = 1024 };

kiln_status *kiln__pickle_ask(const kiln_pickle *p) {
  if (!p->hooks->check) return NULL;
  size_t values = p->stack.capacity + p->memo.capacity + p->made.capacity + p->pending.capacity;
  return p->hooks->check(p->hooks->user, p->object_bytes + values * sizeof(kiln_ivalue));
}

kiln_status *kiln__pickle_add(kiln_pickle *p, kiln_pickle_values *values, kiln_ivalue value) {
  if (values->count == values->capacity) {
    size_t capacity = values->capacity ? 2 * values->capacity : 32;
    void *data = kiln_mem_realloc(p->mem, values->data, values->capacity * sizeof *values->data,
                                  capacity * sizeof *values->data);
    if (!data) {
      kiln_ivalue_release(value);
      return kiln_status_oom();
    }
    values->data = data;
    values->capacity = capacity;
  }
  values->data[values->count++] = value;
  return NULL;
}

static void free_values(kiln_pickle *p, kiln_pickle_values *values) {
  for (size_t i = 0; i < values->count; i++) kiln_ivalue_release(values->data[i]);
  if (values->data) kiln_mem_free(p->mem, values->data, values->capacity * sizeof *values->data);
  *values = (kiln_pickle_values){0};
}

/* Remembers a container and pushes it. */
static kiln_status *push_made(kiln_pickle *p, kiln_ivalue value) {
  kiln_status *status = kiln__pickle_add(p, &p->made, kiln_ivalue_retain(value));
  if (status) {
    kiln_ivalue_release(value);
    return status;
  }
  return kiln__pickle_push(p, value);
}

/* -- Reading bytes -- */

static kiln_status *take(kiln_pickle *p, size_t size, const unsigned char **out_bytes) {
  if (size > p->bytes.len - p->at) return KILN_PICKLE_ERROR(p, "it ends too early");
  *out_bytes = (const unsigned char *)p->bytes.data + p->at;
  p->at += size;
  return NULL;
}

static kiln_status *take_uint(kiln_pickle *p, size_t size, uint64_t *out_value) {
  const unsigned char *bytes = NULL;
  KILN_TRY(take(p, size, &bytes));
  uint64_t value = 0;
  for (size_t i = 0; i < size; i++) value |= (uint64_t)bytes[i] << (8 * i);
  *out_value = value;
  return NULL;
}

static kiln_status *take_line(kiln_pickle *p, kiln_str *out_line) {
  const char *begin = p->bytes.data + p->at;
  const char *end = memchr(begin, '\n', p->bytes.len - p->at);
  if (!end) return KILN_PICKLE_ERROR(p, "it ends too early");
  *out_line = kiln_str_make(begin, (size_t)(end - begin));
  p->at += out_line->len + 1;
  return NULL;
}

/* -- The stack -- */

static kiln_status *need(kiln_pickle *p, size_t count) {
  size_t floor = p->marks.count ? (size_t)p->marks.data[p->marks.count - 1].u.i : 0;
  if (p->stack.count < floor + count) return KILN_PICKLE_ERROR(p, "stack underflow");
  return NULL;
}

static void drop(kiln_pickle *p, size_t count) {
  while (count-- > 0) kiln_ivalue_release(p->stack.data[--p->stack.count]);
}

static kiln_ivalue top(const kiln_pickle *p, size_t from_top) {
  return p->stack.data[p->stack.count - 1 - from_top];
}

/* Drops the `count` values below the top one. */
static void collapse(kiln_pickle *p, size_t count) {
  kiln_ivalue result = p->stack.data[--p->stack.count];
  drop(p, count);
  p->stack.data[p->stack.count++] = result;
}

static kiln_status *push_mark(kiln_pickle *p) {
  return kiln__pickle_add(p, &p->marks, kiln_int((int64_t)p->stack.count));
}

/* Removes the last mark; the values above it are the topmost `*out_count`. */
static kiln_status *pop_mark(kiln_pickle *p, size_t *out_count) {
  if (p->marks.count == 0) return KILN_PICKLE_ERROR(p, "no mark on the stack");
  *out_count = p->stack.count - (size_t)p->marks.data[--p->marks.count].u.i;
  return NULL;
}

/* -- Containers -- */

static kiln_status *make_tuple(kiln_pickle *p, size_t count) {
  kiln_tuple *tuple = NULL;
  KILN_TRY(kiln_tuple_create(p->mem, NULL, (int64_t)count, &tuple));
  for (size_t i = 0; i < count; i++) {
    tuple->items[i] = kiln_ivalue_retain(p->stack.data[p->stack.count - count + i]);
  }
  KILN_TRY(push_made(p, kiln_of_box(tuple)));
  collapse(p, count);
  return NULL;
}

static kiln_status *make_list(kiln_pickle *p, size_t count) {
  kiln_list *list = NULL;
  KILN_TRY(kiln_list_create(p->mem, NULL, (int64_t)count, &list));
  KILN_TRY(push_made(p, kiln_of_box(list)));
  for (size_t i = 0; i < count; i++) {
    kiln_ivalue item = p->stack.data[p->stack.count - 1 - count + i];
    KILN_TRY(kiln_list_push(list, kiln_ivalue_retain(item)));
  }
  collapse(p, count);
  return NULL;
}

/* Sets the topmost `count` values, pairs, in a dict. */
static kiln_status *set_items(kiln_pickle *p, kiln_ivalue target, size_t count) {
  if (target.tag != KILN_TAG_DICT) return KILN_PICKLE_ERROR(p, "items set on no dict");
  if (count % 2) return KILN_PICKLE_ERROR(p, "a key without value");
  for (size_t i = 0; i < count; i += 2) {
    kiln_ivalue *pair = p->stack.data + p->stack.count - count + i;
    if (!kiln_ivalue_is_key(pair[0]))
      return KILN_PICKLE_ERROR(p, "a dict key of a type that has no hash");
    KILN_TRY(
        kiln_dict_set(target.u.dict, kiln_ivalue_retain(pair[0]), kiln_ivalue_retain(pair[1])));
  }
  drop(p, count);
  return NULL;
}

static kiln_status *make_dict(kiln_pickle *p, size_t count) {
  kiln_dict *dict = NULL;
  KILN_TRY(kiln_dict_create(p->mem, NULL, NULL, &dict));
  kiln_ivalue value = kiln_of_box(dict);
  KILN_TRY(kiln__pickle_add(p, &p->made, value)); /* holds it while it is filled */
  KILN_TRY(set_items(p, value, count));
  return kiln__pickle_push(p, kiln_ivalue_retain(value));
}

static kiln_status *append_items(kiln_pickle *p, kiln_ivalue target, size_t count) {
  if (target.tag != KILN_TAG_LIST) return KILN_PICKLE_ERROR(p, "items appended to no list");
  for (size_t i = 0; i < count; i++) {
    kiln_ivalue item = p->stack.data[p->stack.count - count + i];
    KILN_TRY(kiln_list_push(target.u.list, kiln_ivalue_retain(item)));
  }
  drop(p, count);
  return NULL;
}

/* -- The memo -- */

static kiln_status *memo_put(kiln_pickle *p, uint64_t index) {
  KILN_TRY(need(p, 1));
  /* Indices are dense, and every one of them costs bytes. */
  if (index > p->bytes.len) return KILN_PICKLE_ERROR(p, "a memo index out of range");
  while (p->memo.count <= index) KILN_TRY(kiln__pickle_add(p, &p->memo, kiln_none()));
  kiln_ivalue old = p->memo.data[index];
  p->memo.data[index] = kiln_ivalue_retain(top(p, 0));
  kiln_ivalue_release(old);
  return NULL;
}

static kiln_status *memo_get(kiln_pickle *p, uint64_t index) {
  if (index >= p->memo.count) return KILN_PICKLE_ERROR(p, "a memo index out of range");
  return kiln__pickle_push(p, kiln_ivalue_retain(p->memo.data[index]));
}

/* -- Scalars -- */

static kiln_status *push_string(kiln_pickle *p) {
  uint64_t size;
  const unsigned char *bytes = NULL;
  KILN_TRY(take_uint(p, 4, &size));
  KILN_TRY(take(p, (size_t)size, &bytes));
  kiln_str text = kiln_str_make((const char *)bytes, (size_t)size);
  if (!kiln_str_is_utf8(text)) return KILN_PICKLE_ERROR(p, "a string that is not UTF-8");
  kiln_string *string = NULL;
  KILN_TRY(kiln_string_create(p->mem, text, &string));
  return kiln__pickle_push(p, kiln_of_box(string));
}

/* LONG1: little-endian two's complement of any length; within 64 bits. */
static kiln_status *push_long(kiln_pickle *p) {
  uint64_t size;
  const unsigned char *bytes = NULL;
  KILN_TRY(take_uint(p, 1, &size));
  KILN_TRY(take(p, (size_t)size, &bytes));
  uint64_t value = 0;
  unsigned char fill = size > 0 && (bytes[size - 1] & 0x80) ? 0xff : 0;
  for (size_t i = 0; i < 8; i++) {
    value |= (uint64_t)(i < size ? bytes[i] : fill) << (8 * i);
  }
  for (size_t i = 8; i < size; i++) {
    if (bytes[i] != fill) return KILN_PICKLE_ERROR(p, "an integer beyond 64 bits");
  }
  if (size > 8 && (value >> 63) != (uint64_t)(fill & 1)) {
    return KILN_PICKLE_ERROR(p, "an integer beyond 64 bits");
  }
  return kiln__pickle_push(p, kiln_int((int64_t)value));
}

static kiln_status *push_double(kiln_pickle *p) {
  const unsigned char *bytes = NULL;
  KILN_TRY(take(p, 8, &bytes));
  uint64_t bits = 0;
  for (size_t i = 0; i < 8; i++) bits = bits << 8 | bytes[i];
  double value;
  memcpy(&value, &bits, sizeof value);
  return kiln__pickle_push(p, kiln_float(value));
}

/* -- Dispatch -- */

static kiln_status *push_uint(kiln_pickle *p, size_t size) {
  uint64_t value;
  KILN_TRY(take_uint(p, size, &value));
  return kiln__pickle_push(p, kiln_int(size == 4 ? (int32_t)value : (int64_t)value));
}

static kiln_status *step_memo(kiln_pickle *p, size_t size, bool put) {
  uint64_t index;
  KILN_TRY(take_uint(p, size, &index));
  return put ? memo_put(p, index) : memo_get(p, index);
}

typedef kiln_status *(*binary_step)(kiln_pickle *p, kiln_ivalue a, kiln_ivalue b);

/* A step that takes two values and leaves one. */
static kiln_status *step_binary(kiln_pickle *p, binary_step step) {
  KILN_TRY(need(p, 2));
  KILN_TRY(step(p, top(p, 1), top(p, 0)));
  collapse(p, 2);
  return NULL;
}

static kiln_status *step_global(kiln_pickle *p) {
  kiln_str module, name;
  KILN_TRY(take_line(p, &module));
  KILN_TRY(take_line(p, &name));
  return kiln__pickle_global(p, module, name);
}

static kiln_status *step_marked(kiln_pickle *p, unsigned char op) {
  size_t count = 0;
  KILN_TRY(pop_mark(p, &count));
  switch (op) {
    case 't': return make_tuple(p, count);
    case 'l': return make_list(p, count);
    case 'd': return make_dict(p, count);
    default: break;
  }
  if (p->stack.count <= count) return KILN_PICKLE_ERROR(p, "stack underflow");
  kiln_ivalue target = top(p, count);
  return op == 'e' ? append_items(p, target, count) : set_items(p, target, count);
}

static kiln_status *step_few(kiln_pickle *p, unsigned char op) {
  size_t count = op == '}' || op == ']' || op == ')' ? 0 : (size_t)(op - 0x84);
  KILN_TRY(need(p, count));
  if (op == ']') return make_list(p, 0);
  if (op == '}') return make_dict(p, 0);
  return make_tuple(p, count);
}

/* One opcode; *out_done at STOP. */
static kiln_status *step(kiln_pickle *p, bool *out_done) {
  const unsigned char *op = NULL;
  KILN_TRY(take(p, 1, &op));
  switch (*op) {
    case '.': *out_done = true; return need(p, 1);
    case '(': return push_mark(p);
    case 'c': return step_global(p);
    case 'R': return step_binary(p, kiln__pickle_reduce);
    case 0x81: return step_binary(p, kiln__pickle_new_object);
    case 'b':
      KILN_TRY(need(p, 2));
      KILN_TRY(kiln__pickle_build(p, top(p, 1), top(p, 0)));
      drop(p, 1);
      return NULL;
    case 'Q':
      KILN_TRY(need(p, 1));
      KILN_TRY(kiln__pickle_persistent(p, top(p, 0)));
      collapse(p, 1);
      return NULL;
    case 't':
    case 'l':
    case 'd':
    case 'e':
    case 'u': return step_marked(p, *op);
    case ')':
    case ']':
    case '}':
    case 0x85:
    case 0x86:
    case 0x87: return step_few(p, *op);
    case 'a': KILN_TRY(need(p, 2)); return append_items(p, top(p, 1), 1);
    case 's': KILN_TRY(need(p, 3)); return set_items(p, top(p, 2), 2);
    case 'N': return kiln__pickle_push(p, kiln_none());
    case 0x88: return kiln__pickle_push(p, kiln_bool(true));
    case 0x89: return kiln__pickle_push(p, kiln_bool(false));
    case 'K': return push_uint(p, 1);
    case 'M': return push_uint(p, 2);
    case 'J': return push_uint(p, 4);
    case 0x8a: return push_long(p);
    case 'G': return push_double(p);
    case 'X': return push_string(p);
    case 'q': return step_memo(p, 1, true);
    case 'r': return step_memo(p, 4, true);
    case 'h': return step_memo(p, 1, false);
    case 'j': return step_memo(p, 4, false);
    default: return KILN_PICKLE_ERROR(p, "opcode 0x%02x is not allowed", *op);
  }
}

static kiln_status *run_machine(kiln_pickle *p) {
  const char *entry_name =
      p->hooks->whole_name ? p->name : kiln_arena_printf(p->arena, "%s.pkl", p->name);
  kiln_zip_entry *entry = kiln_zip_find(p->zip, kiln_str_from(entry_name));
  if (!entry) return KILN_ERROR(KILN_INVALID_FILE, "the archive has no %s", entry_name);
  KILN_TRY(kiln_zip_read(p->zip, entry, &p->bytes));
  p->storages = kiln_map_in(p->arena);
  p->pending_objects = kiln_map_in(p->arena);
  const unsigned char *proto = NULL;
  KILN_TRY(take(p, 2, &proto));
  if (proto[0] != 0x80 || proto[1] != 2) {
    return KILN_PICKLE_ERROR(p, "not a pickle of protocol 2");
  }
  bool done = false;
  for (uint32_t i = 0; !done; i++) {
    if (i % 4096 == 0) KILN_TRY(kiln_budget_check(p->hooks->budget, 0));
    KILN_TRY(step(p, &done));
    if (i % STEPS_PER_CHECK == 0) KILN_TRY(kiln__pickle_ask(p));
  }
  p->result = kiln_ivalue_retain(top(p, 0));
  return kiln__pickle_check(p);
}

static kiln_status *report_pending(kiln_pickle *p) {
  for (size_t i = 0; i + 1 < p->pending.count; i += 2) {
    KILN_TRY(p->hooks->set_state(p->hooks->user, p->pending.data[i], p->pending.data[i + 1]));
  }
  return NULL;
}

static void end_machine(void *machine) {
  kiln_pickle *p = machine;
  kiln__pickle_dismantle(p);
  free_values(p, &p->stack);
  free_values(p, &p->memo);
  free_values(p, &p->pending);
  free_values(p, &p->held);
  free_values(p, &p->made);
  free_values(p, &p->marks);
  kiln_ivalue_release(p->result);
}

kiln_status *kiln_pickle_read(kiln_env *env, kiln_arena *arena, kiln_type_table *types,
                              kiln_zip *zip, kiln_mapping *mapping, const char *name,
                              const kiln_pickle_hooks *hooks, kiln_ivalue *out_value) {
  static const kiln_pickle_hooks no_hooks = {0};
  kiln_pickle p = {.env = env,
                   .mem = env->mem,
                   .arena = arena,
                   .types = types,
                   .zip = zip,
                   .mapping = mapping,
                   .name = name,
                   .hooks = hooks ? hooks : &no_hooks,
                   .devices = hooks ? hooks->devices : NULL,
                   .unreached = SIZE_MAX};
  kiln_cleanup ending;
  kiln_scope_defer(&ending, end_machine, &p);
  kiln_status *status = run_machine(&p);
  if (!status) status = report_pending(&p);
  if (!status) *out_value = kiln_ivalue_retain(p.result);
  kiln_scope_undefer(&ending);
  end_machine(&p);
  return status;
}
