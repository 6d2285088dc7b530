/* generator_version.h: what the generator of kernels is called in their keys. */
#pragma once

#include "runtime/kernel_abi.h"

/* "generator 0123456789abcdef, kiln_k1_": a hash of its sources, and the kernels' ABI. */
extern const char kiln__generator_version[];
