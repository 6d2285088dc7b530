#include "ir/internal.h"
bool kiln__shape_self(kiln_shape_query *q) { (void)q; return false; }
bool kiln__shape_promote(kiln_shape_query *q);
bool kiln__shape_promote(kiln_shape_query *q) { (void)q; return false; }
