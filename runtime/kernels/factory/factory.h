/* factory.h: what the makers of new tensors share. */
#pragma once

#include "runtime/kernels/support.h"

/* MemoryFormat: 0 contiguous, 1 preserve, 2 channels last. */

/* A device argument: only the CPU is there. */
kiln_status *kiln__check_device(kiln_ivalue v) KILN_MUST_USE;
/* A new tensor, row-major but for channels last; its elements are anything. */
kiln_status *kiln__empty(kiln_call *call, kiln_dtype dtype, int rank, const int64_t *sizes,
                         int64_t format, kiln_tensor **out) KILN_MUST_USE;
/* The same of t's sizes; PRESERVE: in t's order of memory. */
kiln_status *kiln__empty_like(kiln_call *call, const kiln_tensor *t, kiln_dtype dtype,
                              int64_t format, kiln_tensor **out) KILN_MUST_USE;
