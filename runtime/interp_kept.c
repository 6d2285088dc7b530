/* interp_kept.c: operators whose results the plan keeps (kept.h).
 *
 * The first half of the outputs are registers that hold no reference, for the results. Those that
 * are kept stay with the plan; what had to be computed for this run is owned by the registers of
 * the second half, until it is computed again or the frame ends. */
#include "runtime/interp_internal.h"

static kiln_status *compute(kiln_call *call, const kiln_kept_op *op, const kiln_ivalue *args,
                            int count, kiln_ivalue *outs, int out_count) {
  for (int i = 0; i < out_count; i++) outs[i] = kiln_none();
  kiln_status *status = kiln_kernel_run(call, op->kernel, args, count, outs);
  for (int i = 0; status && i < out_count; i++) {
    kiln_ivalue_release_to(&call->cache, outs[i]);
    outs[i] = kiln_none();
  }
  return status;
}

/* What this frame's last run of the instruction computed goes. */
static void empty_owners(kiln_call *call, kiln_frame *f, const kiln_operand *owners, int count) {
  for (int i = 0; i < count; i++) {
    if (owners[i] == KILN_OPERAND_NONE) continue;
    kiln_ivalue_release_to(&call->cache, f->regs[owners[i]]);
    f->regs[owners[i]] = kiln_none();
  }
}

static void put(kiln_frame *f, kiln_operand o, const kiln_ivalue *v) {
  if (o != KILN_OPERAND_NONE) kiln__value_copy(&f->regs[o], v);
}

/* With grad mode on results depend on more than the arguments' elements. */
kiln_status *kiln__interp_kept(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                               const kiln_operand *o) {
  const kiln_kept_op *op = &f->plan->kept[in->x];
  const int n = in->in_count, out_count = in->out_count / 2;
  const kiln_operand *results = o + n, *owners = results + out_count;
  kiln_ivalue outs[KILN_MAX_OUTS];
  for (int i = 0; i < n; i++) kiln__value_copy(&f->args[i], kiln__frame_read(f, o[i]));
  const kiln_ivalue *kept = call->grad_mode ? NULL : kiln_kept_find(op->slot, f->args, n);
  if (__builtin_expect(!kept, 0)) {
    KILN_TRY(compute(call, op, f->args, n, outs, out_count));
    empty_owners(call, f, owners, out_count);
    for (int i = 0; i < out_count; i++) kiln__frame_write(call, f, owners[i], outs[i]);
    if (!call->grad_mode)
      kiln_kept_offer(call->env->mem, call->epoch, op->slot, f->args, n, outs, out_count);
    kept = outs;
  }
  for (int i = 0; i < out_count; i++) put(f, results[i], &kept[i]);
  return NULL;
}
