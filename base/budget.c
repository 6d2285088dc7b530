/* budget.c: budgets, and the tokens by which a host cancels. */
#include "base/budget.h"
#include "base/job_queue.h"
#include "base/text.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* Operations between two looks at the clock: with its 30 ns, some 2 % of the cheapest ones. */
enum { GRANT = 32 };

struct kiln_cancel {
  atomic_bool asked;
  _Atomic(uint64_t) looks_left; /* until it is asked, for tests; 0: not so */
};

uint64_t kiln_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* -- Tokens -- */

kiln_status *kiln_cancel_create(kiln_cancel **out_cancel) {
  KILN_NEEDS(out_cancel);
  *out_cancel = malloc(sizeof **out_cancel);
  if (!*out_cancel) return kiln_status_oom();
  atomic_init(&(*out_cancel)->asked, false);
  atomic_init(&(*out_cancel)->looks_left, 0);
  return NULL;
}

void kiln_cancel_destroy(kiln_cancel *cancel) { free(cancel); }

void kiln_call_cancel(kiln_cancel *cancel) {
  if (cancel) atomic_store_explicit(&cancel->asked, true, memory_order_release);
}

void kiln_cancel_reset(kiln_cancel *cancel) {
  if (cancel) atomic_store_explicit(&cancel->asked, false, memory_order_release);
}

void kiln_cancel_at_look(kiln_cancel *cancel, uint64_t n) {
  atomic_store_explicit(&cancel->looks_left, n, memory_order_relaxed);
}

/* True at the look that a test has named. */
static bool is_due(const kiln_cancel *cancel) {
  kiln_cancel *counted = (kiln_cancel *)(uintptr_t)cancel;
  if (atomic_fetch_sub_explicit(&counted->looks_left, 1, memory_order_relaxed) != 1) return false;
  kiln_call_cancel(counted);
  return true;
}

int kiln_cancel_is_asked(const kiln_cancel *cancel) {
  if (!cancel) return false;
  if (atomic_load_explicit(&cancel->asked, memory_order_acquire)) return true;
  return atomic_load_explicit(&cancel->looks_left, memory_order_relaxed) > 0 && is_due(cancel);
}

/* -- Budgets -- */

/* Of a budget that needs no looks. */
static const int64_t UNLIMITED = INT64_MAX >> 1;

void kiln_budget_begin(kiln_budget *b, const char *what, kiln_mem *mem, const kiln_limits *limits) {
  static const kiln_limits none = {0};
  const kiln_limits *l = limits ? limits : &none;
  /* Field by field: every call begins one, and a compound literal is a `rep stos` of 10 ns. */
  b->what = what;
  b->mem = mem;
  b->cache = NULL;
  b->held_at_start = mem && l->bytes ? kiln_mem_bytes_of_calls(mem) : 0;
  b->charged = 0;
  b->bytes = l->bytes;
  b->operations = l->operations;
  b->deadline_ns = l->time_ms ? kiln_now_ns() + (uint64_t)l->time_ms * 1000000u : 0;
  b->time_ms = l->time_ms;
  b->cancel = l->cancel;
  b->done = 0;
  b->grant = l->bytes || l->time_ms || l->cancel ? GRANT : UNLIMITED;
  b->granted = b->fuel = b->grant == UNLIMITED && !l->operations ? UNLIMITED : 0;
  b->is_quick = b->has_left = b->over = false;
}

uint64_t kiln_budget_bytes(const kiln_budget *b) {
  if (!b->mem) return b->charged;
  const size_t held = kiln_mem_bytes_of_calls(b->mem) - (b->cache ? b->cache->bytes : 0);
  const size_t grown = held - b->held_at_start; /* modulo SIZE_MAX + 1, as what is aside */
  return grown <= SIZE_MAX / 2 ? grown : 0;
}

uint64_t kiln_budget_operations(const kiln_budget *b) {
  return b->done + (uint64_t)(b->granted - b->fuel);
}

static kiln_status *out_of_bytes(const kiln_budget *b) {
  char number[32];
  kiln_format_bytes(b->bytes, number);
  return KILN_ERROR(KILN_LIMIT, "%s needs more than its limit of %s (bytes)", b->what, number);
}

/* Where neither holds, the host has taken its word back. */
static kiln_status *ended(const kiln_budget *b) {
  const bool is_late = b->deadline_ns && kiln_now_ns() > b->deadline_ns;
  if (!is_late || kiln_cancel_is_asked(b->cancel)) {
    return KILN_ERROR(KILN_CANCELLED, "%s was cancelled", b->what);
  }
  return KILN_ERROR(KILN_LIMIT, "%s took longer than its limit of %u ms (time_ms)", b->what,
                    b->time_ms);
}

static bool is_over(const kiln_budget *b) {
  return __atomic_load_n(&b->over, __ATOMIC_RELAXED) || kiln_cancel_is_asked(b->cancel) ||
         (b->deadline_ns && kiln_now_ns() > b->deadline_ns);
}

bool kiln_budget_is_over(kiln_budget *b) {
  if (!kiln_budget_may_end(b) || !is_over(b)) return false;
  __atomic_store_n(&b->over, true, __ATOMIC_RELAXED);
  return true;
}

kiln_status *kiln_budget_room(const kiln_budget *b, uint64_t more) {
  if (!b || !b->bytes) return NULL;
  uint64_t used = kiln_budget_bytes(b);
  return used > b->bytes || more > b->bytes - used ? out_of_bytes(b) : NULL;
}

kiln_status *kiln_budget_check(const kiln_budget *b, uint64_t more) {
  if (__builtin_expect(kiln__this_thread.jobs != NULL, 0)) kiln_job_breathe();
  KILN_TRY(kiln_budget_room(b, more));
  return kiln_budget_may_end(b) && is_over(b) ? ended(b) : NULL;
}

kiln_status *kiln_budget_work(kiln_budget *b, uint64_t operations) {
  b->done = kiln_budget_operations(b) + operations;
  b->granted = b->fuel = 0;
  if (b->operations && b->done > b->operations) {
    return KILN_ERROR(KILN_LIMIT, "%s ran more than its limit of %llu operation%s (operations)",
                      b->what, (unsigned long long)b->operations, kiln_plural(b->operations));
  }
  KILN_TRY(kiln_budget_check(b, 0));
  b->granted = b->grant;
  uint64_t left = b->operations - b->done;
  if (b->operations && (uint64_t)b->granted > left) b->granted = (int64_t)left;
  b->fuel = b->granted;
  return NULL;
}

/* -- The thread's -- */

kiln_budget **kiln_budget_place(void) { return &kiln__this_thread.budget; }

kiln_budget *kiln_budget_current(void) { return kiln__this_thread.budget; }

bool kiln_budget_leaves_out(void) {
  kiln_budget *budget = kiln__this_thread.budget;
  if (!kiln_budget_is_over(budget)) return false;
  kiln_budget_settle(budget);
  return true;
}

kiln_budget *kiln_budget_enter(kiln_budget *budget) {
  kiln_budget *outer = kiln__this_thread.budget;
  kiln__this_thread.budget = budget;
  return outer;
}

void kiln_budget_leave(kiln_budget *outer) { kiln__this_thread.budget = outer; }
