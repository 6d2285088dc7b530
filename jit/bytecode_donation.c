/* bytecode_donation.c: which operands of an instruction donate their memory to its results.
 *
 * The rules stand in plan.h. The emitter knows where a register ends and who else reads it; where
 * its tensor comes from, it follows through views. That nobody else has the memory is not proved
 * here: an argument's tensor is free where the caller moved it, and only the run sees that. */
#include "jit/bytecode_internal.h"

/* Its register ends at instruction `at`, and nothing else there reads it: of several reads the last
 * one ends it. */
static bool is_free(kiln__bytecode_emitter *e, int at, int operand) {
  const kiln_operand *o = kiln__bytecode_operands(e, at);
  if (!(o[operand] & KILN_OPERAND_MOVE) || o[operand] & KILN_OPERAND_DONATE) return false;
  for (int i = 0; i < operand; i++) {
    if (o[i] == (o[operand] & KILN_OPERAND_INDEX)) return false;
  }
  return true;
}

static bool donate(kiln__bytecode_emitter *e, kiln_node *node, int at, int operand) {
  if (!is_free(e, at, operand) || kiln__bytecode_is_held(e, kiln_node_input(node, operand)))
    return false;
  kiln__bytecode_operands(e, at)[operand] |= KILN_OPERAND_DONATE;
  return true;
}

/* Each output takes the first of its donors that is free and that no output before it took. */
static void donate_to_group(kiln__bytecode_emitter *e, kiln_node *node, int at) {
  kiln_group *group = &e->groups.data[e->code.data[at].x];
  kiln_group_output *outputs =
      kiln_arena_copy(e->arena, group->outputs, sizeof *outputs * (size_t)group->output_count);
  for (int i = 0; i < group->output_count; i++) {
    outputs[i].donor = -1;
    for (uint32_t left = outputs[i].donors; left && outputs[i].donor < 0; left &= left - 1) {
      const int operand = __builtin_ctz(left);
      if (donate(e, node, at, operand)) outputs[i].donor = operand;
    }
  }
  group->outputs = outputs;
}

void kiln__bytecode_donations(kiln__bytecode_emitter *e, kiln_node *node, int at) {
  const kiln_instr *in = &e->code.data[at];
  if (in->op == KILN_INSTR_GROUP) {
    donate_to_group(e, node, at);
  } else if (in->op == KILN_INSTR_OP && e->kernels.data[in->x]->reuse) {
    (void)donate(e, node, at, 0);
  }
}
