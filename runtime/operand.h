/* operand.h: where an instruction, or a guard, finds a value: a register of the frame or a constant
 * of the plan. A call's arguments are the first registers. */
#pragma once

#include "runtime/value.h"

/* MOVE marks the last use of a register; DONATE, beside it, that the instruction may write a result
 * into the tensor's memory (plan.h). */
typedef uint32_t kiln_operand;
#define KILN_OPERAND_MOVE 0x80000000u
#define KILN_OPERAND_CONSTANT 0x40000000u
#define KILN_OPERAND_DONATE 0x20000000u
#define KILN_OPERAND_INDEX 0x1fffffffu
#define KILN_OPERAND_NONE 0x1fffffffu /* an output that nobody uses: released at once */

static inline const kiln_ivalue *kiln_operand_read(kiln_operand o, const kiln_ivalue *registers,
                                                   const kiln_ivalue *constants) {
  const kiln_ivalue *base = o & KILN_OPERAND_CONSTANT ? constants : registers;
  return base + (o & KILN_OPERAND_INDEX);
}
