/* bitcode.c: the vector math library as clang compiles it to LLVM bitcode, once for each
 * instruction set, for generated code to inline. Not compiled into objects:
 * codegen/llvm/embed_math.py says how. */
#define KILN_MATH_PUBLIC __attribute__((always_inline, visibility("hidden")))
#include "runtime/math/math.h"
