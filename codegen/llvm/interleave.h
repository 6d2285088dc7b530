/* interleave.h: calls of runtime/math, inlined in turns. */
#pragma once

#include "codegen/llvm/llvm.h"

/* Inlines each few calls of one function of runtime/math, which has been linked, that stand side by
 * side in `function`; the others are left to LLVM. */
void kiln__llvm_interleave(const kiln__llvm *ll, LLVMContextRef context, LLVMValueRef function);
