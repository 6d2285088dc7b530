/* dispatch_select.c: the table of this processor. Whoever links this file has the kernels of every
 * instruction set. */
#include "runtime/kernels/isa.h"

/* Those that the build's option isa asks for. */
static const kiln_dispatch *const tables[] = {
    &kiln__dispatch_v2,
#if defined(__x86_64__)
    &kiln__dispatch_avx2,
#if KILN_KERNEL_ISAS > 2
    &kiln__dispatch_avx512,
#endif
#endif
};

const kiln_dispatch *kiln_dispatch_select(kiln_isa isa) {
  const size_t index = (size_t)isa, count = sizeof tables / sizeof *tables;
  return tables[index < count ? index : count - 1];
}

kiln_status *kiln_call_create(kiln_env *env, kiln_call **out_call) {
  return kiln_call_create_for(env, kiln_dispatch_select(env->isa), out_call);
}
