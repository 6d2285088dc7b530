/* explain.c: what a guard expected and what it saw, and the list of guards that failed.
 *
 * The first misses of a guard are told with the two types, all of them where the log's channel
 * `guard` is on or there is a timeline; after that a guard only counts, since a shape that
 * alternates misses each time. */
#include <inttypes.h>
#include <unistd.h>

#include "base/job_lock.h"
#include "guards/guards.h"

enum { TOLD_MISSES = 8, MAX_MISSES = 1024 };

typedef struct watch {
  kiln_guard_watch base;
  kiln_guard_misses *misses;
  const char *site;
  kiln_source_loc loc;
  uint32_t told;       /* atomic: misses that were */
  const char *names[]; /* of the guarded values */
} watch;

static const char *name_of(const kiln_guard_desc *guard, int entry) {
  const watch *w = (const watch *)(const void *)guard->watch; /* its first field */
  return w ? w->names[entry] : "*";
}

/* -- In words -- */

static void detail_of_key(uint64_t word, kiln_tensor_detail *d) {
  kiln_tensor_key key = {.word = word};
  *d = KILN_TENSOR_DETAIL_ANY;
  d->dtype = key.f.dtype;
  d->rank = (int8_t)key.f.rank;
  d->requires_grad = (int8_t)key.f.requires_grad;
  d->undefined = (int8_t)key.f.undefined;
  d->device = key.f.device_kind;
  d->device_index = key.f.device_index;
}

/* Only what the guard looks at is told of what it expects. */
static void print_expected(kiln_text *text, const kiln_guard_entry *entry) {
  kiln_tensor_detail d;
  detail_of_key(entry->key_word, &d);
  kiln_tensor_key mask = {.word = entry->key_mask};
  int64_t unknown[KILN_MAX_RANK];
  for (int i = 0; i < KILN_MAX_RANK; i++) unknown[i] = KILN_DIM_UNKNOWN;
  if (!mask.f.dtype) d.dtype = KILN_DTYPE_NONE;
  if (!mask.f.rank) d.rank = -1;
  if (!mask.f.requires_grad) d.requires_grad = -1;
  if (!mask.f.device_kind) d.device = -1;
  d.sizes = entry->check_dims ? entry->dims : unknown;
  d.strides = entry->check_dims ? entry->dims + entry->rank : NULL;
  d.has_strides = entry->check_dims;
  kiln_tensor_detail_print(text, &d, 3);
}

static void print_given(kiln_text *text, kiln_ivalue v, bool grad_mode) {
  if (v.tag != KILN_TAG_TENSOR) {
    kiln_ivalue_type_name(text, v);
    return;
  }
  const kiln_tensor *t = v.u.tensor;
  kiln_tensor_detail d;
  detail_of_key(kiln_guard_word(t, grad_mode), &d);
  d.sizes = kiln_tensor_sizes(t);
  d.strides = kiln_tensor_strides(t);
  d.has_strides = true;
  kiln_tensor_detail_print(text, &d, 3);
}

static const char *layout_word(uint8_t layout) {
  switch ((kiln_layout_class)layout) {
    case KILN_LAYOUT_CONTIGUOUS: return "contiguous";
    case KILN_LAYOUT_CHANNELS_LAST: return "channels last";
    case KILN_LAYOUT_SPARSE: return "sparse";
    case KILN_LAYOUT_NESTED: return "nested";
    default: return "strided";
  }
}

/* -- Symbols in words -- */

static void print_place(kiln_text *text, const kiln_guard_desc *guard, kiln_guard_place place) {
  const int rank = guard->entries[place.entry].rank;
  kiln_text_printf(text, "%s(%d)", place.dim < rank ? "size" : "stride", place.dim % rank);
}

/* Where the symbols of an entry come from, and what they are now: " with s0 = %x.size(0) = 8". */
static void print_symbols(kiln_text *text, const kiln_guard_desc *guard, int failed,
                          const kiln_ivalue *registers, const kiln_ivalue *constants) {
  const kiln_guard_entry *entry = &guard->entries[failed];
  const char *lead = " with";
  for (int i = 0; i < guard->symbols->symbol_count; i++) {
    const kiln_guard_place bind = guard->symbols->bind[i];
    bool stands = false;
    for (int k = 0; k < 2 * entry->rank; k++)
      stands |= kiln_dim_is_symbol(entry->dims[k]) && kiln_dim_symbol_number(entry->dims[k]) == i;
    if (!stands || bind.entry < 0) continue;
    const kiln_ivalue *v = kiln_operand_read(guard->at[bind.entry], registers, constants);
    const int rank = guard->entries[bind.entry].rank;
    if (v->tag != KILN_TAG_TENSOR || kiln_tensor_rank(v->u.tensor) != rank) continue;
    const char kind = guard->symbols->from_one >> i & 1 ? 'n' : 's';
    kiln_text_printf(text, "%s %c%d = %%%s.", lead, kind, i, name_of(guard, bind.entry));
    print_place(text, guard, bind);
    kiln_text_printf(text, " = %" PRId64, v->u.tensor->dims[bind.dim]);
    lead = ",";
  }
}

/* -- All of it -- */

int kiln_guard_explain(const kiln_guard_desc *guard, const kiln_ivalue *registers,
                       const kiln_ivalue *constants, bool grad_mode, kiln_text *expected,
                       kiln_text *seen) {
  int failed = -1;
  for (int i = 0; i < guard->count && failed < 0; i++) {
    const kiln_ivalue *v = kiln_operand_read(guard->at[i], registers, constants);
    if (!kiln_guard_entry_holds(&guard->entries[i], v, grad_mode)) failed = i;
  }
  kiln_guard_place unbound = {.entry = -1};
  int order = -1;
  if (failed < 0 && guard->symbols) {
    unbound = kiln_guard_unbound(guard, registers, constants, &order);
    failed = unbound.entry;
  }
  if (failed < 0) return -1;
  const kiln_guard_entry *entry = &guard->entries[failed];
  const kiln_ivalue *v = kiln_operand_read(guard->at[failed], registers, constants);
  print_given(seen, *v, grad_mode);
  if (entry->some) {
    kiln_text_puts(expected, guard->symbols->words[failed]);
    print_symbols(expected, guard, failed, registers, constants);
  } else {
    print_expected(expected, entry);
  }
  if (unbound.entry >= 0) {
    kiln_text_puts(seen, " whose ");
    print_place(seen, guard, unbound);
    const int64_t size = v->u.tensor->dims[unbound.dim];
    const kiln_dim wanted = entry->dims[unbound.dim];
    const int least = kiln_dim_is_symbol(wanted) ? kiln_dim_symbol_least(wanted) : 0;
    if (order >= 0) {
      kiln_text_printf(seen, " is not within %s", guard->symbols->orders[order].words);
    } else if (size < least) {
      kiln_text_printf(seen, " is less than %d", least);
    } else {
      kiln_text_puts(seen, " differs");
    }
  }
  kiln_tensor_key mask = {.word = entry->key_mask}, key = {.word = entry->key_word};
  if (v->tag == KILN_TAG_TENSOR && ((v->u.tensor->key.f.layout ^ key.f.layout) & mask.f.layout)) {
    kiln_text_printf(seen, ", %s", layout_word(v->u.tensor->key.f.layout));
    kiln_text_printf(expected, ", %s", layout_word(key.f.layout));
  }
  return failed;
}

/* -- The list of misses -- */

void kiln_guard_misses_init(kiln_guard_misses *misses, const kiln_env *env, kiln_counter_book *book,
                            uint32_t calls) {
  *misses = (kiln_guard_misses){.env = env, .book = book, .calls = calls, .maker = getpid()};
  pthread_mutex_init(&misses->lock, NULL);
}

void kiln_guard_misses_deinit(kiln_guard_misses *misses) {
  kiln_arena_destroy(misses->arena);
  pthread_mutex_destroy(&misses->lock);
}

bool kiln_guard_miss_at(kiln_guard_misses *misses, int index, kiln_guard_miss *out) {
  kiln_status *status = kiln_short_lock_take(&misses->lock, misses->maker);
  if (status) {
    kiln_status_destroy(status);
    return false;
  }
  const kiln_guard_miss *m = misses->first;
  for (int i = 0; m && i < index; i++) m = m->next;
  const bool found = m && index >= 0;
  if (found) *out = *m;
  pthread_mutex_unlock(&misses->lock);
  return found;
}

static bool is_same(const kiln_guard_miss *a, const kiln_guard_miss *b) {
  return strcmp(a->site, b->site) == 0 && strcmp(a->value, b->value) == 0 &&
         strcmp(a->expected, b->expected) == 0 && strcmp(a->seen, b->seen) == 0;
}

/* Under the lock. */
static kiln_status *keep(kiln_guard_misses *misses, const kiln_guard_miss *given) {
  for (kiln_guard_miss *m = misses->first; m; m = m->next) {
    if (!is_same(m, given)) continue;
    m->count++;
    return NULL;
  }
  if (misses->count >= MAX_MISSES) return NULL;
  if (!misses->arena) KILN_TRY(kiln_arena_create(misses->env->mem, &misses->arena));
  kiln_guard_miss *m = KILN_NEW(misses->arena, kiln_guard_miss);
  *m = *given;
  m->value = kiln_arena_strdup(misses->arena, given->value); /* the guard's, which may give way */
  m->expected = kiln_arena_strdup(misses->arena, given->expected);
  m->seen = kiln_arena_strdup(misses->arena, given->seen);
  *(misses->last ? &misses->last->next : &misses->first) = m;
  misses->last = m;
  misses->count++;
  return NULL;
}
static kiln_status *try_keep(kiln_guard_misses *misses, const kiln_guard_miss *given) {
  KILN_PROTECT(keep(misses, given));
}

/* -- Who is told -- */

static kiln_status *tell(const watch *w, const kiln_guard_desc *guard, const kiln_ivalue *registers,
                         const kiln_ivalue *constants, bool grad_mode) {
  kiln_guard_misses *misses = w->misses;
  kiln_arena *scratch = kiln_arena_scoped(misses->env->mem);
  kiln_text expected = kiln_text_in(scratch), seen = kiln_text_in(scratch);
  const int i = kiln_guard_explain(guard, registers, constants, grad_mode, &expected, &seen);
  if (i < 0) return NULL; /* the flag stress_bailout made it fail */
  const kiln_guard_miss miss = {.site = w->site,
                                .value = w->names[i],
                                .expected = expected.data,
                                .seen = seen.data,
                                .loc = w->loc,
                                .call = kiln_counter_sum(misses->book, misses->calls),
                                .count = 1};
  KILN_LOG(&misses->env->log, guard, 1, "%s: call %" PRIu64 ": %%%s is %s, not %s as recorded",
           miss.site, miss.call, miss.value, miss.seen, miss.expected);
  const kiln_timeline_arg args[] = {
      {"value", .text = miss.value},     {"expected", .text = miss.expected},
      {"seen", .text = miss.seen},       {"file", .text = miss.loc.file ? miss.loc.file : ""},
      {"line", .number = miss.loc.line}, {"call", .number = (int64_t)miss.call}};
  kiln_timeline_mark(misses->env->timeline, KILN_EVENT_guard, miss.site, sizeof args / sizeof *args,
                     args);
  KILN_TRY(kiln_short_lock_take(&misses->lock, misses->maker));
  kiln_status *status = try_keep(misses, &miss);
  pthread_mutex_unlock(&misses->lock);
  return status;
}
static kiln_status *try_tell(const watch *w, const kiln_guard_desc *guard,
                             const kiln_ivalue *registers, const kiln_ivalue *constants,
                             bool grad_mode) {
  KILN_PROTECT(tell(w, guard, registers, constants, grad_mode));
}

/* The first ones write; a shape that alternates only reads. */
static bool wants_miss(watch *w) {
  if (__atomic_load_n(&w->told, __ATOMIC_RELAXED) < TOLD_MISSES) {
    __atomic_fetch_add(&w->told, 1, __ATOMIC_RELAXED);
    return true;
  }
  return w->misses->env->timeline || kiln_log_on(&w->misses->env->log, KILN_LOG_guard, 1);
}

static void missed(kiln_guard_watch *self, const kiln_guard_desc *guard,
                   const kiln_ivalue *registers, const kiln_ivalue *constants, bool grad_mode) {
  watch *w = (watch *)(void *)self; /* its first field */
  if (!wants_miss(w)) return;
  kiln_status_destroy(try_tell(w, guard, registers, constants, grad_mode)); /* no memory: untold */
}

void kiln_guard_tell(const kiln_guard_desc *guard, const kiln_ivalue *args, const kiln_call *call) {
  const watch *w = (const watch *)(const void *)guard->watch;
  if (w) kiln_status_destroy(try_tell(w, guard, args, NULL, call->grad_mode));
}

static const char *value_name(kiln_arena *arena, const kiln_ir_value *v) {
  return v->name.len ? kiln_arena_str(arena, v->name).data : kiln_arena_printf(arena, "%u", v->id);
}

kiln_guard_watch *kiln__guard_watch(const kiln_guard_maker *maker, kiln_arena *arena,
                                    const kiln_guard_checks *checks,
                                    const kiln_source_range *range) {
  if (!maker->misses) return NULL;
  const int count = checks->values.count;
  watch *w = kiln_arena_alloc(arena, sizeof *w + sizeof *w->names * (size_t)count);
  *w = (watch){.base = {missed}, .misses = maker->misses, .site = maker->site};
  w->loc = kiln_source_range_loc(range);
  for (int i = 0; i < count; i++) w->names[i] = value_name(arena, checks->values.data[i]);
  return &w->base;
}
