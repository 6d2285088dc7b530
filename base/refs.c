/* refs.c: owners' and users' references. */
#include "base/refs.h"

void kiln_refs_init(kiln_refs *refs) {
  refs->owners = 1;
  refs->live = KILN_STRIPES;
  for (int i = 0; i < KILN_STRIPES; i++) refs->stripes[i].count = 1;
}

void kiln_refs_retain(kiln_refs *refs) { __atomic_fetch_add(&refs->owners, 1, __ATOMIC_RELAXED); }

/* The bias goes stripe by stripe: the last one, which is not given back yet, keeps the object. */
bool kiln_refs_release(kiln_refs *refs) {
  bool last = false;
  if (__atomic_fetch_sub(&refs->owners, 1, __ATOMIC_ACQ_REL) != 1) return false;
  for (uint32_t i = 0; i < KILN_STRIPES; i++) last = kiln_refs_give(refs, i);
  return last;
}

void kiln_refs_take(kiln_refs *refs, uint32_t stripe) {
  __atomic_fetch_add(&refs->stripes[stripe].count, 1, __ATOMIC_RELAXED);
}

bool kiln_refs_give(kiln_refs *refs, uint32_t stripe) {
  if (__atomic_fetch_sub(&refs->stripes[stripe].count, 1, __ATOMIC_ACQ_REL) != 1) return false;
  return __atomic_fetch_sub(&refs->live, 1, __ATOMIC_ACQ_REL) == 1;
}
