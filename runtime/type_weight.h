/* type_weight.h: how large a type is. One whose parts are shared may be exponentially larger than
 * the source that describes it, and what walks a type walks all of it. */
#pragma once

#include "runtime/type.h"

/* Beyond, the makers of types are out of memory. */
enum { KILN_TYPE_MAX_WEIGHT = 1 << 20 };

/* Its parts and itself, each as often as it is met. */
uint32_t kiln_type_weight(const kiln_type *type);
/* True when a tensor in it has details. */
bool kiln_type_is_shaped(const kiln_type *type);
