/* reason.h: reasons of missed optimisations, each an identifier and a sentence: reasons.def. */
#pragma once

typedef enum kiln_reason {
#define KILN_REASON(id, sentence) KILN_REASON_##id,
#include "ir/reasons.def"
#undef KILN_REASON
  KILN_REASON__COUNT
} kiln_reason;

const char *kiln_reason_id(kiln_reason reason); /* "no_lowering" */
const char *kiln_reason_sentence(kiln_reason reason);
