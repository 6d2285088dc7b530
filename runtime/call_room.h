/* call_room.h: the byte limit of a call, for what kernels allocate beside tensors. */
#ifndef KILN_RUNTIME_CALL_ROOM_H
#define KILN_RUNTIME_CALL_ROOM_H

#include "runtime/call.h"

/* KILN_LIMIT when `bytes` more would pass the call's limit. */
kiln_status *kiln_call_room(const kiln_call *call, size_t bytes) KILN_MUST_USE;

#endif
