/* epoch.h: epoch-based reclamation (Fraser, 2004): when what was replaced may be freed.
 *
 * A run enters the current epoch and leaves it at its end. An object that is retired in epoch g is
 * freed once the epoch is g + 2. The epoch moves from e to e + 1 only when no run of e - 1 is left.
 *
 * Why two epochs. Run A enters epoch 4 and loads plan P. Thread B publishes plan Q in P's place,
 * retires P in epoch 4, and moves the epoch to 5. Run C enters epoch 5: it can only find Q. The
 * epoch becomes 6 when A has left, and then nobody has P: it is freed.
 *
 * Why a run looks twice. Run D reads that the epoch is 4 and is preempted before it counts itself.
 * The epoch moves to 5 and to 6, since nobody is counted in 4, and B frees what D would use. D
 * counts itself in 4, reads the epoch again, finds 6, takes itself out and begins anew.
 *
 * Entering and leaving cost two atomic additions, on a line that threads share only where there are
 * more of them than stripes; retiring and collecting take a lock. */
#pragma once

#include <pthread.h>

#include "base/base.h"
#include "base/stripe.h"

typedef struct kiln_retired {
  struct kiln_retired *next;
  uint64_t epoch;
  void (*destroy)(void *object);
  void *object;
  bool is_allocated; /* or it lies in the object */
} kiln_retired;

/* Where some of the runs are counted. */
typedef struct kiln_epoch_stripe {
  char before[KILN_STRIPE_BYTES / 2];
  uint64_t inside[3]; /* atomic: runs that entered in epoch % 3 */
  char after[KILN_STRIPE_BYTES / 2 - 3 * sizeof(uint64_t)];
} kiln_epoch_stripe;

typedef struct kiln_epoch {
  kiln_mem *mem;
  uint64_t current; /* atomic */
  pthread_mutex_t lock;
  kiln_retired *retired; /* newest first */
  kiln_epoch_stripe stripes[KILN_STRIPES];
} kiln_epoch;

void kiln_epoch_init(kiln_epoch *epoch, kiln_mem *mem);
/* Frees everything; no run is under way. */
void kiln_epoch_deinit(kiln_epoch *epoch);
/* Returns a ticket for kiln_epoch_leave. Runs of one thread may nest. Runs at the same time are
 * best told apart by `stripe`, any number. */
uint64_t kiln_epoch_enter(kiln_epoch *epoch, uint32_t stripe);
void kiln_epoch_leave(kiln_epoch *epoch, uint64_t ticket);
/* How many runs are under way, about. */
uint64_t kiln_epoch_runs(const kiln_epoch *epoch);
/* Hands an object over, to be destroyed when no run can hold it. It was unpublished before. When
 * memory is short, the object is kept until deinit of what owns it: false is returned. */
bool kiln_epoch_retire(kiln_epoch *epoch, void (*destroy)(void *object), void *object);
/* The same by a node in the object. */
void kiln_epoch_retire_in(kiln_epoch *epoch, kiln_retired *node, void (*destroy)(void *object),
                          void *object);
/* Moves the epoch on where that is possible, and frees what is two epochs old; returns how many. */
int kiln_epoch_collect(kiln_epoch *epoch);
