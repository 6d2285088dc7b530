/* nested.h: nested tensors, for kernels that know them. */
#pragma once

#include "runtime/kernels/composite.h"
#include "runtime/structure.h"

/* A plain tensor on the padded elements. */
kiln_tensor *kiln__nested_padded(kiln__composite *r, const kiln_tensor *t);
/* True beyond the end of each row: [rows, length]. */
kiln_tensor *kiln__nested_padding(kiln__composite *r, const kiln_nested *nested, int64_t length);
/* `padded` with rows of these lengths. */
kiln_tensor *kiln__nested_with(kiln__composite *r, const kiln_tensor *padded,
                               const int64_t *lengths);
