/* refs.h: references on an object that many threads take and give back all the time.
 *
 * Owners are few and stay: the host's handle, an instance. They share one count. Users are many and
 * brief, as the values of a model: each takes a reference on a stripe (stripe.h), remembers which,
 * and gives that one back. Owners together hold one reference on each stripe, the bias, so that
 * while there is an owner any stripe may be used; who only has a user's reference takes on that
 * one's stripe. A stripe that reaches 0 is counted out of `live`; who counts the last one out
 * destroys the object.
 *
 * Why not a sum of counters. Say that the object lives while the stripes add up to more than 0, and
 * that threads A and B hold the last two references. A decrements its stripe and is preempted
 * before it adds the others up. B decrements its own, finds the sum 0 and frees the object. A goes
 * on, and reads the stripes in freed memory. Here nobody touches the object after his last
 * decrement: A's stripe reaches 0 and A takes `live` from 2 to 1, which keeps B, whose stripe is
 * still counted in, from freeing anything before. */
#pragma once

#include <stdbool.h>

#include "base/stripe.h"

typedef struct kiln_refs_stripe {
  char before[KILN_STRIPE_BYTES / 2];
  int count; /* atomic */
  char after[KILN_STRIPE_BYTES / 2 - sizeof(int)];
} kiln_refs_stripe;

typedef struct kiln_refs {
  int owners; /* atomic */
  int live;   /* atomic: stripes that are not at 0 */
  kiln_refs_stripe stripes[KILN_STRIPES];
} kiln_refs;

/* With one owner. */
void kiln_refs_init(kiln_refs *refs);
/* One owner more, beside one that stays for the time of this; one less. True: the object is to be
 * destroyed. */
void kiln_refs_retain(kiln_refs *refs);
bool kiln_refs_release(kiln_refs *refs);
/* A user's reference: on any stripe while there is an owner, else on one where there is a user; and
 * back. True: the object is to be destroyed. */
void kiln_refs_take(kiln_refs *refs, uint32_t stripe);
bool kiln_refs_give(kiln_refs *refs, uint32_t stripe);
