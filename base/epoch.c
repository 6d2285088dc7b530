/* epoch.c: epochs of runs, and what waits to be freed. */
#include "base/epoch.h"

void kiln_epoch_init(kiln_epoch *e, kiln_mem *mem) {
  *e = (kiln_epoch){.mem = mem, .current = 2};
  pthread_mutex_init(&e->lock, NULL);
}

static void destroy_all(kiln_epoch *e, kiln_retired *list) {
  while (list) {
    kiln_retired *next = list->next;
    const bool is_allocated = list->is_allocated;
    list->destroy(list->object);
    if (is_allocated) kiln_mem_free(e->mem, list, sizeof *list);
    list = next;
  }
}

/* Runs that entered in this epoch and have not left. One that enters while the stripes are looked
 * at is of the current epoch, or takes itself out again. */
static uint64_t count_inside(const kiln_epoch *e, uint64_t epoch) {
  uint64_t count = 0;
  for (int i = 0; i < KILN_STRIPES; i++) {
    count += __atomic_load_n(&e->stripes[i].inside[epoch % 3], __ATOMIC_SEQ_CST);
  }
  return count;
}

void kiln_epoch_deinit(kiln_epoch *e) {
  for (uint64_t epoch = 0; epoch < 3; epoch++) KILN_ASSERT(count_inside(e, epoch) == 0);
  destroy_all(e, e->retired);
  e->retired = NULL;
  pthread_mutex_destroy(&e->lock);
}

uint64_t kiln_epoch_enter(kiln_epoch *e, uint32_t stripe) {
  stripe %= KILN_STRIPES;
  uint64_t *inside = e->stripes[stripe].inside;
  for (;;) {
    uint64_t now = __atomic_load_n(&e->current, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&inside[now % 3], 1, __ATOMIC_SEQ_CST);
    /* Had the epoch moved on in between, a collector may have missed us. */
    if (__atomic_load_n(&e->current, __ATOMIC_SEQ_CST) == now) {
      return now * KILN_STRIPES + stripe;
    }
    __atomic_fetch_sub(&inside[now % 3], 1, __ATOMIC_SEQ_CST);
  }
}

uint64_t kiln_epoch_runs(const kiln_epoch *epoch) {
  uint64_t runs = 0;
  for (int i = 0; i < KILN_STRIPES; i++)
    for (int k = 0; k < 3; k++)
      runs += __atomic_load_n(&epoch->stripes[i].inside[k], __ATOMIC_RELAXED);
  return runs;
}

void kiln_epoch_leave(kiln_epoch *e, uint64_t ticket) {
  uint64_t *inside = e->stripes[ticket % KILN_STRIPES].inside;
  __atomic_fetch_sub(&inside[ticket / KILN_STRIPES % 3], 1, __ATOMIC_RELEASE);
}

static void retire(kiln_epoch *e, kiln_retired *r, kiln_retired given) {
  pthread_mutex_lock(&e->lock);
  *r = given;
  r->next = e->retired;
  r->epoch = __atomic_load_n(&e->current, __ATOMIC_SEQ_CST);
  __atomic_store_n(&e->retired, r, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&e->lock);
}

void kiln_epoch_retire_in(kiln_epoch *e, kiln_retired *node, void (*destroy)(void *object),
                          void *object) {
  retire(e, node, (kiln_retired){.destroy = destroy, .object = object});
}

bool kiln_epoch_retire(kiln_epoch *e, void (*destroy)(void *object), void *object) {
  kiln_retired *r = kiln_mem_alloc(e->mem, sizeof *r);
  if (!r) return false;
  retire(e, r, (kiln_retired){.destroy = destroy, .object = object, .is_allocated = true});
  return true;
}

int kiln_epoch_collect(kiln_epoch *e) {
  pthread_mutex_lock(&e->lock);
  kiln_retired *free_now = NULL;
  if (e->retired) {
    uint64_t now = e->current;
    /* Runs of the epoch before this one must have left before it may move on. */
    if (count_inside(e, now - 1) == 0) {
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
