/* custom.h: the part of the registry that grows: operators that the host registered. For ir/ alone;
 * others ask the registry (ir/op.h).
 *
 * Readers need no lock: what they walk only grows at its head, and is published by release stores.
 * Whoever has found a set or an operator may keep it as long as the registry lives. */
#pragma once

#include <pthread.h>

#include "ir/op.h"

enum { KILN__CUSTOM_BUCKETS = 64 };

typedef struct kiln__custom_op kiln__custom_op;
typedef struct kiln__custom_name kiln__custom_name;

typedef struct kiln__custom_ops {
  pthread_mutex_t lock;                             /* of those who add */
  kiln__custom_name *buckets[KILN__CUSTOM_BUCKETS]; /* atomic: by hash of the name */
  kiln__custom_op *last; /* atomic: the newest operator, then its elders */
  int count;             /* atomic */
} kiln__custom_ops;

void kiln__custom_init(kiln__custom_ops *ops);
void kiln__custom_deinit(kiln__custom_ops *ops);
/* NULL when absent. */
const kiln_op_set *kiln__custom_find(const kiln__custom_ops *ops, kiln_str name);
const kiln_op *kiln__custom_find_exact(const kiln__custom_ops *ops, kiln_str full_name);
int kiln__custom_count(const kiln__custom_ops *ops);
const kiln_op *kiln__custom_at(const kiln__custom_ops *ops, int index);
/* The name is known to be no built-in one's. */
kiln_status *kiln__custom_add(kiln__custom_ops *ops, kiln_mem *mem, kiln_type_table *types,
                              const kiln_op_def *def, const kiln_op **out_op) KILN_MUST_USE;
