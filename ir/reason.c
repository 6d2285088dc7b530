/* reason.c: the table of reasons, as text. */
#include "ir/reason.h"

static const struct {
  const char *id, *sentence;
} reasons[] = {
#define KILN_REASON(id, sentence) {#id, sentence},
#include "ir/reasons.def"
#undef KILN_REASON
};

static int known(kiln_reason reason) {
  return (unsigned)reason < (unsigned)KILN_REASON__COUNT ? (int)reason : (int)KILN_REASON_none;
}

const char *kiln_reason_id(kiln_reason reason) { return reasons[known(reason)].id; }

const char *kiln_reason_sentence(kiln_reason reason) { return reasons[known(reason)].sentence; }
