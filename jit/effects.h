/* effects.h: may a function change attributes of the instance that it is called on?
 *
 * Two calls of functions that change none may run on one instance at the same time; otherwise the
 * second one waits or is refused. For example: call A runs forward(), call B asks for encode(). The
 * instance asks this analysis about both; when neither writes, B starts beside A.
 *
 * Answers depend on the instance's bool attributes (`training` and its like) and are kept with
 * them: a list for each function, added to by any thread. */
#pragma once

#include "ir/unit.h"

typedef struct kiln_effects kiln_effects; /* what is known of one function */

/* `known`: the function's list, NULL at first; read and written atomically. True where it is not
 * known, too. */
bool kiln_effects_may_write(kiln_effects **known, kiln_env *env, kiln_function *function,
                            kiln_ivalue self);
/* No thread asks any more. NULL is fine. */
void kiln_effects_destroy(kiln_effects *known);
