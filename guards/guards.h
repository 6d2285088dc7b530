/* guards.h: guards: from types to the words that TYPECHECK compares, and the passes that put guards
 * around compiled groups.
 *
 * A guarded region is prim::TypeCheck(inputs) -> (refined inputs…, ok), then prim::If(ok) with the
 * group in its first block and prim::FallbackGraph in its second; merged regions hold several
 * groups and what leads from one to the other. The check stands before any effect of its region, so
 * a fallback starts the region anew and needs no snapshot. */
#ifndef KILN_GUARDS_GUARDS_H
#define KILN_GUARDS_GUARDS_H

#include "ir/pass.h"
#include "runtime/guard.h"

/* The guard of values that have these tensor types: what a type leaves open is not compared.
 * Memory in `arena`. */
void kiln_guard_build(kiln_arena *arena, const kiln_type *const *types, int count,
                      kiln_guard_desc *out_guard);

/* The block is entered only when a TypeCheck held: tensor types in it are facts. */
bool kiln_guards_is_hit(const kiln_block *block);

/* Wraps every TensorExprGroup that is not guarded yet. */
kiln_status *kiln_pass_insert_guards(kiln_pass *pass);
/* Makes one guard of those whose checked values follow from, or stand beside, an earlier one's.
 * Nothing happens under KILN_COMPAT=torch. */
kiln_status *kiln_pass_merge_guards(kiln_pass *pass);
/* Splices the compiled side of every guard. */
kiln_status *kiln_pass_assume_guards(kiln_pass *pass);
/* Tensor types of every value become plain Tensor, but for those of constants, checks and groups.
 */
kiln_status *kiln_pass_remove_type_specializations(kiln_pass *pass);

#endif
