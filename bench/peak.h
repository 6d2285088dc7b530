/* peak.h: the most floating point operations of a core with the vectors of an instruction set. */
#pragma once

#include "base/env.h"
#include "bench/bench.h"
#include "tools/peak.h"

static inline tool_isa bench_tool_isa(kiln_isa isa) {
  return isa >= KILN_ISA_AVX512 ? TOOL_AVX512 : isa == KILN_ISA_AVX2 ? TOOL_AVX2 : TOOL_V2;
}
/* GFLOP/s, in float. */
static inline double bench_peak(kiln_isa isa) {
  return tool_peak_fma(bench_tool_isa(isa), TOOL_PEAK_RUNS);
}
