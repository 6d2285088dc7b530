/* plan.c: bytecode plans: destroy, print, verify.
 *
 * What an instruction's immediate means stands in instr.def; printer and verifier read it. */
#include "runtime/plan.h"

/* What x indexes. */
typedef enum x_kind {
  X_NONE,
  X_KERNEL,
  X_GROUP,
  X_KEPT,
  X_CONSTANT,
  X_JUMP,
  X_CALLABLE,
  X_STRING,
  X_RECORD,
  X_GUARD,
  X_TYPE,
  X_TYPE_LIST,
  X_NUMBER, /* a slot or element: checked when it runs */
} x_kind;

static const struct instr_info {
  const char *name;
  x_kind x;
  int ins, outs;
  const char *meaning;
} instr_table[] = {
#define KILN_INSTR(name, x, ins, outs, meaning) {#name, X_##x, ins, outs, meaning},
#include "runtime/instr.def"
#undef KILN_INSTR
};

/* That an OP is fresh is the interpreter's concern. */
const char *kiln_instr_name(kiln_instr_op op) {
  return instr_table[op == KILN_INSTR_OP_FRESH ? KILN_INSTR_OP : op].name;
}

void kiln_plan_destroy(kiln_plan *plan) {
  if (!plan) return;
  for (int i = 0; i < plan->constant_count; i++) kiln_ivalue_release(plan->constants[i]);
  for (int i = 0; i < plan->kept_count; i++) kiln_kept_slot_release(plan->kept[i].slot);
  kiln_arena_destroy(plan->arena);
}

/* -- Printing -- */

static void print_x(const kiln_plan *plan, const kiln_instr *in, kiln_text *text) {
  switch (instr_table[in->op].x) {
    case X_NONE: break;
    case X_KERNEL: kiln_text_printf(text, " %s", plan->kernels[in->x]->name); break;
    case X_GROUP: kiln_text_printf(text, " %s", plan->groups[in->x].name); break;
    case X_KEPT: kiln_text_printf(text, " %s", plan->kept[in->x].kernel->name); break;
    case X_CONSTANT: kiln_text_printf(text, " c%u", in->x); break;
    case X_JUMP: kiln_text_printf(text, " ->%u", in->x); break;
    case X_CALLABLE: kiln_text_printf(text, " %s", plan->callables[in->x]->name); break;
    case X_STRING:
      kiln_text_printf(text, " " KILN_STR_FMT, KILN_STR_ARG(plan->strings[in->x]));
      break;
    case X_RECORD: kiln_text_printf(text, " record %u", in->x); break;
    case X_GUARD: kiln_text_printf(text, " guard %u", in->x); break;
    case X_TYPE:
      kiln_text_putc(text, ' ');
      kiln_type_print(text, plan->types[in->x], 0);
      break;
    case X_TYPE_LIST:
      for (int i = 0; i < plan->type_lists[in->x].count; i++) {
        kiln_text_puts(text, i ? " | " : " ");
        kiln_type_print(text, plan->type_lists[in->x].types[i], 0);
      }
      break;
    case X_NUMBER: kiln_text_printf(text, " %u", in->x); break;
  }
}

static void print_operand(kiln_text *text, kiln_operand o) {
  if ((o & KILN_OPERAND_INDEX) == KILN_OPERAND_NONE) {
    kiln_text_puts(text, " _");
  } else {
    kiln_text_printf(text, " %c%u%s", o & KILN_OPERAND_CONSTANT ? 'c' : 'r', o & KILN_OPERAND_INDEX,
                     o & KILN_OPERAND_DONATE ? "^"
                     : o & KILN_OPERAND_MOVE ? "!"
                                             : "");
  }
}

void kiln_plan_print(const kiln_plan *plan, kiln_text *text) {
  kiln_text_printf(text, "plan %s: %d argument%s, %d register%s, %d instruction%s\n", plan->name,
                   plan->arg_count, kiln_plural((uint64_t)plan->arg_count), plan->register_count,
                   kiln_plural((uint64_t)plan->register_count), plan->code_count,
                   kiln_plural((uint64_t)plan->code_count));
  for (int i = 0; i < plan->constant_count; i++) {
    kiln_text_printf(text, "  c%d = ", i);
    if (plan->constants[i].tag == KILN_TAG_TENSOR) {
      kiln_text_puts(text, "<Tensor>");
    } else if (plan->constants[i].tag == KILN_TAG_FUNCTION) {
      kiln_text_puts(text, plan->constants[i].u.function->name);
    } else {
      kiln_ivalue_print(text, plan->constants[i]);
    }
    kiln_text_putc(text, '\n');
  }
  for (int i = 0; i < plan->code_count; i++) {
    const kiln_instr *in = &plan->code[i];
    const kiln_operand *o = plan->operands + in->operands;
    kiln_text_printf(text, "%4d %s", i, kiln_instr_name((kiln_instr_op)in->op));
    print_x(plan, in, text);
    for (int k = 0; k < in->in_count; k++) print_operand(text, o[k]);
    if (in->out_count) kiln_text_puts(text, " =>");
    for (int k = 0; k < in->out_count; k++) print_operand(text, o[in->in_count + k]);
    kiln_text_putc(text, '\n');
  }
}

/* -- Verifying -- */

static bool x_in_range(const kiln_plan *plan, const kiln_instr *in) {
  uint32_t limit = UINT32_MAX;
  switch (instr_table[in->op].x) {
    case X_NONE:
    case X_NUMBER: break;
    case X_KERNEL: limit = (uint32_t)plan->kernel_count; break;
    case X_GROUP: limit = (uint32_t)plan->group_count; break;
    case X_KEPT: limit = (uint32_t)plan->kept_count; break;
    case X_CONSTANT: limit = (uint32_t)plan->constant_count; break;
    case X_JUMP: limit = (uint32_t)plan->code_count; break;
    case X_CALLABLE: limit = (uint32_t)plan->callable_count; break;
    case X_STRING: limit = (uint32_t)plan->string_count; break;
    case X_RECORD: limit = (uint32_t)plan->record_count; break;
    case X_GUARD: limit = (uint32_t)plan->guard_count; break;
    case X_TYPE: limit = (uint32_t)plan->type_count; break;
    case X_TYPE_LIST: limit = (uint32_t)plan->type_list_count; break;
  }
  return in->x < limit;
}

static kiln_status *verify_operand(const kiln_plan *plan, int at, kiln_operand o, bool is_out) {
  uint32_t index = o & KILN_OPERAND_INDEX;
  if (is_out) {
    if (index == KILN_OPERAND_NONE) return NULL;
    if (o == index && index < (uint32_t)plan->register_count) return NULL;
  } else if (o & KILN_OPERAND_CONSTANT) {
    if (!(o & KILN_OPERAND_MOVE) && index < (uint32_t)plan->constant_count) return NULL;
  } else if (index < (uint32_t)plan->register_count) {
    return NULL;
  }
  return KILN_ERROR(KILN_INTERNAL, "plan %s, instruction %d: operand %#x is out of range",
                    plan->name, at, (unsigned)o);
}

/* The flags of an OP say what its operands say. */
static kiln_status *verify_moves(const kiln_plan *plan, int at) {
  const kiln_instr *in = &plan->code[at];
  const kiln_operand *o = plan->operands + in->operands;
  unsigned moved = 0;
  for (int i = 0; i < in->in_count && i < KILN_INSTR_MOVE_BITS; i++) {
    if (o[i] & KILN_OPERAND_MOVE) moved |= 1u << i;
  }
  if (!kiln_instr_is_op(in) || in->flags == moved) return NULL;
  return KILN_ERROR(KILN_INTERNAL, "plan %s, instruction %d: flags %#x, but it moves %#x",
                    plan->name, at, in->flags, moved);
}

/* Whether the kernel of an instruction can write a result into the memory of operand k. */
static bool can_donate(const kiln_plan *plan, const kiln_instr *in, int k) {
  if (in->op == KILN_INSTR_OP) return k == 0 && plan->kernels[in->x]->reuse;
  if (in->op != KILN_INSTR_GROUP) return false;
  int outputs = 0; /* each has memory of its own */
  for (int i = 0; i < plan->groups[in->x].output_count; i++) {
    outputs += plan->groups[in->x].outputs[i].donor == k;
  }
  return outputs == 1;
}

/* A donor is as plan.h says, and nothing else is one. */
static kiln_status *verify_donors(const kiln_plan *plan, int at) {
  const kiln_instr *in = &plan->code[at];
  const kiln_operand *o = plan->operands + in->operands;
  bool good = true;
  for (int k = 0; k < in->in_count; k++) {
    if (!(o[k] & KILN_OPERAND_DONATE)) continue;
    good = good && o[k] & KILN_OPERAND_MOVE && can_donate(plan, in, k);
    for (int i = 0; i < in->in_count; i++) {
      const bool constant = o[i] & KILN_OPERAND_CONSTANT;
      if (i != k && !constant && !((o[i] ^ o[k]) & KILN_OPERAND_INDEX)) good = false;
    }
  }
  const kiln_group *group = in->op == KILN_INSTR_GROUP ? &plan->groups[in->x] : NULL;
  for (int i = 0; group && i < group->output_count; i++) {
    const int donor = group->outputs[i].donor;
    if (donor >= in->in_count || (donor >= 0 && !(o[donor] & KILN_OPERAND_DONATE))) good = false;
  }
  if (good) return NULL;
  return KILN_ERROR(KILN_INTERNAL, "plan %s, instruction %d: memory is donated that is not free",
                    plan->name, at);
}

/* Whether output k of the instruction is a register that holds no reference. */
static bool gives_borrowed(const kiln_instr *in, int k) {
  return in->op == KILN_INSTR_BORROW_ATTR || (in->op == KILN_INSTR_KEPT && k < in->out_count / 2);
}

/* Registers that hold no reference stay as BORROW_ATTR or KEPT wrote them. */
static kiln_status *verify_borrows(const kiln_plan *plan, int at) {
  const kiln_instr *in = &plan->code[at];
  const kiln_operand *o = plan->operands + in->operands;
  bool good = true;
  for (int k = 0; k < in->in_count + in->out_count; k++) {
    const uint32_t index = o[k] & KILN_OPERAND_INDEX;
    if (o[k] & KILN_OPERAND_CONSTANT || index == KILN_OPERAND_NONE) continue;
    const bool borrows = kiln_plan_borrows(plan, index);
    if (k >= in->in_count) {
      good = good && borrows == gives_borrowed(in, k - in->in_count);
    } else {
      good = good && !(borrows && (o[k] & KILN_OPERAND_MOVE || in->op == KILN_INSTR_DROP));
    }
  }
  if (good) return NULL;
  return KILN_ERROR(KILN_INTERNAL, "plan %s, instruction %d: a borrowed register is given away",
                    plan->name, at);
}

static kiln_status *verify_counts(const kiln_plan *plan, int at) {
  const kiln_instr *in = &plan->code[at];
  const struct instr_info *info = &instr_table[in->op];
  bool good = (info->ins < 0 || info->ins == in->in_count) &&
              (info->outs < 0 || info->outs == in->out_count) && in->in_count <= plan->max_in;
  if (in->op == KILN_INSTR_MOVE) good = good && in->in_count == in->out_count;
  if (in->op == KILN_INSTR_OP) good = good && in->out_count <= KILN_MAX_OUTS;
  if (in->op == KILN_INSTR_KEPT) {
    good = good && in->out_count == 2 * plan->kept[in->x].kernel->out_count &&
           in->out_count <= 2 * KILN_MAX_OUTS;
  }
  if (in->op == KILN_INSTR_OP_FRESH) {
    good = good && kiln_op_is_fresh(plan->kernels[in->x], in->in_count, in->out_count);
  }
  if (in->op == KILN_INSTR_TYPECHECK) {
    const kiln_guard_desc *guard = &plan->guards[in->x];
    good = good && guard->count == in->in_count && guard->at == plan->operands + in->operands;
  }
  if (in->op == KILN_INSTR_DICT) good = good && in->in_count % 2 == 0;
  if (in->op == KILN_INSTR_RAISE) good = good && (in->in_count == 1 || in->in_count == 2);
  if (in->op == KILN_INSTR_CALL_VALUE || in->op == KILN_INSTR_CALL_METHOD) {
    good = good && in->in_count > 0;
  }
  if (good) return NULL;
  return KILN_ERROR(KILN_INTERNAL, "plan %s, instruction %d: %s (%s) has %d inputs and %d outputs",
                    plan->name, at, info->name, info->meaning, in->in_count, in->out_count);
}

kiln_status *kiln_plan_verify(const kiln_plan *plan) {
  if (plan->arg_count + plan->borrowed_count > plan->register_count ||
      (plan->borrows_self && plan->arg_count == 0)) {
    return KILN_ERROR(KILN_INTERNAL, "plan %s: fewer registers than arguments", plan->name);
  }
  for (int i = 0; i < plan->code_count; i++) {
    const kiln_instr *in = &plan->code[i];
    if (in->op >= KILN_INSTR__COUNT) {
      return KILN_ERROR(KILN_INTERNAL, "plan %s, instruction %d: no such instruction (%d)",
                        plan->name, i, in->op);
    }
    if (!x_in_range(plan, in)) {
      return KILN_ERROR(KILN_INTERNAL, "plan %s, instruction %d: %s names %u, out of range",
                        plan->name, i, instr_table[in->op].name, in->x);
    }
    KILN_TRY(verify_counts(plan, i));
    KILN_TRY(verify_moves(plan, i));
    KILN_TRY(verify_donors(plan, i));
    KILN_TRY(verify_borrows(plan, i));
    const kiln_operand *o = plan->operands + in->operands;
    for (int k = 0; k < in->in_count + in->out_count; k++) {
      KILN_TRY(verify_operand(plan, i, o[k], k >= in->in_count));
    }
  }
  int last = plan->code_count - 1; /* control never runs off the end */
  if (last < 0 || (plan->code[last].op != KILN_INSTR_RET && plan->code[last].op != KILN_INSTR_JMP &&
                   plan->code[last].op != KILN_INSTR_RAISE)) {
    return KILN_ERROR(KILN_INTERNAL, "plan %s does not end with RET", plan->name);
  }
  return NULL;
}

/* -- Times -- */

void kiln_plan_tick(kiln_call *call, const kiln_plan *plan, const kiln_instr *in) {
  const uint64_t now = kiln_now_ns();
  if (call->ticking) {
    __atomic_fetch_add(&call->ticking->ns, now - call->ticked_at, __ATOMIC_RELAXED);
    __atomic_fetch_add(&call->ticking->count, 1, __ATOMIC_RELAXED);
  }
  call->ticking = plan && plan->times ? &plan->times[in - plan->code] : NULL;
  call->ticked_at = now;
  call->cache.tag = call->ticking;
}
