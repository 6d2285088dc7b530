/* futex.h: sleeping on a word, for base/pool.c alone.
 *
 * kiln__futex_wait sleeps while *word is `expected`, and may return at any time: the caller looks
 * again. kiln__futex_wake wakes up to `count` of those that wait on the word with a mask that has a
 * bit in common. A word that is about to be freed may still be woken: only its address is used.
 * Linux has this; elsewhere one lock and condition of the pool stand in, and wake everybody.
 * KILN_FUTEX_PORTABLE chooses the latter, for its test. */
#pragma once

#include <stdint.h>

#if defined(__linux__) && !defined(KILN_FUTEX_PORTABLE)

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether waking in a fork's child could wait for a lock that a thread of the parent held. */
enum { KILN__FUTEX_LOCKS = 0 };

typedef struct kiln_futex {
  char unused;
} kiln_futex;

static inline void kiln__futex_init(kiln_futex *futex) { (void)futex; }
static inline void kiln__futex_deinit(kiln_futex *futex) { (void)futex; }

static inline void kiln__futex_wait(kiln_futex *futex, uint32_t *word, uint32_t expected,
                                    uint32_t mask) {
  (void)futex;
  syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, NULL, NULL, mask);
}

static inline void kiln__futex_wake(kiln_futex *futex, uint32_t *word, int count, uint32_t mask) {
  (void)futex;
  syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, count, NULL, NULL, mask);
}

#else

#include <pthread.h>

enum { KILN__FUTEX_LOCKS = 1 };

typedef struct kiln_futex {
  pthread_mutex_t lock;
  pthread_cond_t changed;
} kiln_futex;

static inline void kiln__futex_init(kiln_futex *futex) {
  pthread_mutex_init(&futex->lock, NULL);
  pthread_cond_init(&futex->changed, NULL);
}

static inline void kiln__futex_deinit(kiln_futex *futex) {
  pthread_cond_destroy(&futex->changed);
  pthread_mutex_destroy(&futex->lock);
}

static inline void kiln__futex_wait(kiln_futex *futex, uint32_t *word, uint32_t expected,
                                    uint32_t mask) {
  (void)mask;
  pthread_mutex_lock(&futex->lock);
  if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == expected) {
    pthread_cond_wait(&futex->changed, &futex->lock);
  }
  pthread_mutex_unlock(&futex->lock);
}

static inline void kiln__futex_wake(kiln_futex *futex, uint32_t *word, int count, uint32_t mask) {
  (void)word, (void)count, (void)mask;
  pthread_mutex_lock(&futex->lock);
  pthread_cond_broadcast(&futex->changed);
  pthread_mutex_unlock(&futex->lock);
}

#endif
