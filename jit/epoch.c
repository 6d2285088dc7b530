/* epoch.c: epochs of runs, and what waits to be freed. */
#include "jit/epoch.h"

void kiln_epoch_init(kiln_epoch *e, kiln_mem *mem) {
  *e = (kiln_epoch){.mem = mem, .current = 2};
  pthread_mutex_init(&e->lock, NULL);
}

static void destroy_all(kiln_epoch *e, kiln_retired *list) {
  while (list) {
    kiln_retired *next = list->next;
    list->destroy(list->object);
    kiln_mem_free(e->mem, list, sizeof *list);
    list = next;
  }
}

void kiln_epoch_deinit(kiln_epoch *e) {
  KILN_ASSERT(!e->inside[0] && !e->inside[1] && !e->inside[2]);
  destroy_all(e, e->retired);
  e->retired = NULL;
  pthread_mutex_destroy(&e->lock);
}

uint64_t kiln_epoch_enter(kiln_epoch *e) {
  for (;;) {
    uint64_t now = __atomic_load_n(&e->current, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&e->inside[now % 3], 1, __ATOMIC_SEQ_CST);
    /* Had the epoch moved on in between, a collector may have missed us. */
    if (__atomic_load_n(&e->current, __ATOMIC_SEQ_CST) == now) return now;
    __atomic_fetch_sub(&e->inside[now % 3], 1, __ATOMIC_SEQ_CST);
  }
}

void kiln_epoch_leave(kiln_epoch *e, uint64_t ticket) {
  __atomic_fetch_sub(&e->inside[ticket % 3], 1, __ATOMIC_RELEASE);
}

bool kiln_epoch_retire(kiln_epoch *e, void (*destroy)(void *object), void *object) {
  kiln_retired *r = kiln_mem_alloc(e->mem, sizeof *r);
  if (!r) return false;
  pthread_mutex_lock(&e->lock);
  *r = (kiln_retired){.next = e->retired,
                      .epoch = __atomic_load_n(&e->current, __ATOMIC_SEQ_CST),
                      .destroy = destroy,
                      .object = object};
  __atomic_store_n(&e->retired, r, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&e->lock);
  return true;
}

int kiln_epoch_collect(kiln_epoch *e) {
  pthread_mutex_lock(&e->lock);
  kiln_retired *free_now = NULL;
  if (e->retired) {
    uint64_t now = e->current;
    /* Runs of the epoch before this one must have left before it may move on. */
    if (__atomic_load_n(&e->inside[(now - 1) % 3], __ATOMIC_SEQ_CST) == 0) {
      __atomic_store_n(&e->current, now + 1, __ATOMIC_SEQ_CST);
      now++;
    }
    kiln_retired **link = &e->retired;
    while (*link && (*link)->epoch + 2 > now) link = &(*link)->next;
    free_now = *link;
    __atomic_store_n(link, NULL, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&e->lock);
  int count = 0;
  for (kiln_retired *r = free_now; r; r = r->next) count++;
  destroy_all(e, free_now);
  return count;
}
