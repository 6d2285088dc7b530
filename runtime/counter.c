/* counter.c: books of counters, and the pages that calls count on. */
#include "runtime/counter.h"

#include <string.h>
#include <unistd.h>

#include "base/job_lock.h"

enum { LINE = 64, LEAST_BYTES = 512, LEAST_NUMBERS = 64 };

static size_t page_bytes(uint32_t capacity) {
  return sizeof(kiln_counter_page) + capacity * sizeof(uint64_t);
}

/* False in a child of a fork, where another thread of the parent had the lock. */
static bool lock(kiln_counter_book *book) {
  kiln_status *status = kiln_short_lock_take(&book->lock, book->maker);
  const bool taken = status == NULL;
  kiln_status_destroy(status);
  return taken;
}

void kiln_counter_book_init(kiln_counter_book *book, kiln_mem *mem) {
  *book = (kiln_counter_book){.mem = mem, .maker = getpid(), .count = 1};
  pthread_mutex_init(&book->lock, NULL);
}

void kiln_counter_book_deinit(kiln_counter_book *book) {
  for (kiln_counter_page *p = book->pages, *next; p; p = next) {
    next = p->next;
    kiln_mem_free(book->mem, p, page_bytes(p->capacity));
  }
  kiln_mem_free(book->mem, book->base, book->capacity * sizeof *book->base);
  pthread_mutex_destroy(&book->lock);
}

/* Under the lock. */
static bool make_room(kiln_counter_book *book, uint32_t count) {
  if (count <= book->capacity) return true;
  uint32_t capacity = count < UINT32_MAX / 2 ? 2 * count : UINT32_MAX;
  if (capacity < LEAST_NUMBERS) capacity = LEAST_NUMBERS;
  uint64_t *base = kiln_mem_alloc_zero(book->mem, capacity * sizeof *base);
  if (!base) return false;
  if (book->base) memcpy(base, book->base, book->capacity * sizeof *base);
  kiln_mem_free(book->mem, book->base, book->capacity * sizeof *base);
  book->base = base;
  book->capacity = capacity;
  return true;
}

uint32_t kiln_counter_book_new(kiln_counter_book *book, uint32_t count) {
  uint32_t first = 0, end;
  if (!lock(book)) return 0;
  if (!__builtin_add_overflow(book->count, count, &end) && make_room(book, end)) {
    first = book->count;
    __atomic_store_n(&book->count, end, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&book->lock);
  return first;
}

uint64_t kiln_counter_sum(kiln_counter_book *book, uint32_t number) {
  if (number == 0 || !lock(book)) return 0;
  uint64_t sum = number < book->capacity ? book->base[number] : 0;
  for (const kiln_counter_page *p = book->pages; p; p = p->next) {
    if (number < p->capacity) sum += __atomic_load_n(&p->counts[number], __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&book->lock);
  return sum;
}

/* -- Tallies -- */

/* Adds a page to the base, which has room for all numbers, and frees it. Under the lock. */
static void close_page(kiln_counter_book *book, kiln_counter_page *page) {
  kiln_counter_page **link = &book->pages;
  while (*link != page) link = &(*link)->next;
  *link = page->next;
  for (uint32_t i = 1; i < page->capacity && i < book->capacity; i++) {
    book->base[i] += page->counts[i];
  }
  kiln_mem_free(book->mem, page, page_bytes(page->capacity));
}

void kiln__tally_turn(kiln_tally *tally, kiln_counter_book *book) {
  if (!book) return;
  if (tally->book != book) kiln_tally_end(tally);
  tally->book = book;
  const uint32_t count = __atomic_load_n(&book->count, __ATOMIC_RELAXED);
  size_t bytes = (page_bytes(count + count / 2) + LINE - 1) / LINE * LINE;
  if (bytes < LEAST_BYTES) bytes = LEAST_BYTES;
  kiln_counter_page *page = kiln_mem_alloc_zero(book->mem, bytes);
  if (!page) return; /* it goes on where it was, or on the base */
  page->capacity = (uint32_t)((bytes - sizeof *page) / sizeof(uint64_t));
  if (!lock(book)) {
    kiln_mem_free(book->mem, page, bytes);
    return;
  }
  page->stripe = tally->page ? tally->page->stripe : book->stripes++;
  if (tally->page) close_page(book, tally->page);
  page->next = book->pages;
  book->pages = page;
  pthread_mutex_unlock(&book->lock);
  tally->page = page;
}

void kiln_tally_end(kiln_tally *tally) {
  if (tally->page && lock(tally->book)) {
    close_page(tally->book, tally->page);
    pthread_mutex_unlock(&tally->book->lock);
  }
  *tally = (kiln_tally){0};
}

void kiln__count_apart(kiln_tally *tally, uint32_t number) {
  kiln_counter_book *book = tally->book;
  if (number == 0 || !book || !lock(book)) return;
  if (number < book->capacity) book->base[number]++;
  pthread_mutex_unlock(&book->lock);
}
