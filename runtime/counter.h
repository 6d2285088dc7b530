/* counter.h: what plans count: guards that held or failed, groups that ran.
 *
 * Plans are const: a counter is a number in the book of its model. A call counts on a page that no
 * other thread writes, so that threads which run one model share no line:
 *   thread A, guard 7 holds: page of A [7] += 1      thread B the same: page of B [7] += 1
 *   somebody asks for 7: the book's base [7] + page of A [7] + page of B [7]
 * When a call is destroyed, its page is added to the base. Sums are exact of calls that have ended.
 * Number 0 counts nothing. */
#pragma once

#include <pthread.h>

#include "base/base.h"

typedef struct kiln_counter_page {
  struct kiln_counter_page *next; /* of the book */
  uint32_t capacity;
  uint32_t stripe;   /* for what threads of a model keep apart besides (base/epoch.h) */
  uint64_t counts[]; /* atomic, relaxed; one writer */
} kiln_counter_page;

typedef struct kiln_counter_book {
  kiln_mem *mem;
  pid_t maker;
  pthread_mutex_t lock;
  uint32_t count;    /* atomic: numbers that were given out; written under the lock */
  uint32_t capacity; /* of base */
  uint64_t *base;    /* of pages that are gone, and what had no place on a page */
  kiln_counter_page *pages;
  uint32_t stripes; /* given out */
} kiln_counter_book;

/* Where one call counts; zeroed: nowhere. */
typedef struct kiln_tally {
  kiln_counter_book *book;
  kiln_counter_page *page;
} kiln_tally;

void kiln_counter_book_init(kiln_counter_book *book, kiln_mem *mem);
/* No tally is open, but for those of a fork's child that could not be closed. */
void kiln_counter_book_deinit(kiln_counter_book *book);
/* The first of `count` new numbers; 0 when there is no memory: they count nothing. */
uint32_t kiln_counter_book_new(kiln_counter_book *book, uint32_t count);
uint64_t kiln_counter_sum(kiln_counter_book *book, uint32_t number);

/* Opens it, with a page for all numbers that there are, or leaves it as it is where that is so. */
void kiln__tally_turn(kiln_tally *tally, kiln_counter_book *book);
static inline void kiln_tally_begin(kiln_tally *tally, kiln_counter_book *book) {
  if (__builtin_expect(!tally->page || tally->book != book ||
                           tally->page->capacity < __atomic_load_n(&book->count, __ATOMIC_RELAXED),
                       0)) {
    kiln__tally_turn(tally, book);
  }
}
void kiln_tally_end(kiln_tally *tally);

/* A number that is newer than the page, or a tally without one: on the base. */
void kiln__count_apart(kiln_tally *tally, uint32_t number);
static inline void kiln_count(kiln_tally *tally, uint32_t number) {
  kiln_counter_page *page = tally->page;
  if (__builtin_expect(page && number < page->capacity, 1)) {
    uint64_t *at = &page->counts[number];
    __atomic_store_n(at, __atomic_load_n(at, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
  } else {
    kiln__count_apart(tally, number);
  }
}
