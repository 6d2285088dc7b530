/* interp_internal.h: between the files of the interpreter (interp*.c). */
#pragma once

#include "runtime/plan.h"

/* What the caller's frame does with a result. */
typedef enum kiln_interp_return {
  KILN_RETURN_VALUE,
  KILN_RETURN_FUTURE,  /* FORK: wrapped */
  KILN_RETURN_ENTERED, /* ENTER: the object counts as entered from now on */
} kiln_interp_return;

typedef struct kiln_fork kiln_fork; /* interp_fork.c */

typedef struct kiln_frame {
  const kiln_plan *plan;
  const kiln_instr *pc;         /* next instruction; current while another frame is on top */
  const kiln_ivalue *constants; /* the plan's */
  kiln_ivalue *regs;            /* [plan->register_count], owned but for what is borrowed */
  kiln_ivalue *args;    /* [plan->max_in], borrowed: where an instruction gathers its inputs */
  kiln_ivalue *entered; /* [plan->max_entered], owned; slots beyond entered_count are None, but
                           for the object whose __enter__ is running */
  int entered_count;
  kiln_interp_return on_return;
  kiln_operand result;       /* register of the caller's frame */
  bool counts;               /* in call->recursion */
  bool borrows_self;         /* register 0 is the caller's, who has it until the frame ends */
  kiln_type_record *records; /* [plan->record_count], or NULL */
  kiln_meter *meter;         /* that wants the time of this run, and when it began; NULL: none */
  uint64_t metered_from;
  int64_t *symbols; /* [plan->symbol_count], of guards that held */
  /* Tasks of this frame, the oldest first; each holds a handle of its future. */
  kiln_fork *forks, *last_fork;
  struct kiln_frame *prev;
} kiln_frame;

/* Copies field by field. A value is written as a tag and a word, so reading its 16 bytes at once
 * would wait for both stores to reach the cache instead of being forwarded from them. */
static inline void kiln__value_copy(kiln_ivalue *to, const kiln_ivalue *from) {
  to->tag = from->tag;
  to->u.i = from->u.i;
}
static inline const kiln_ivalue *kiln__frame_read(const kiln_frame *f, kiln_operand o) {
  return kiln_operand_read(o, f->regs, f->constants);
}
/* An owned reference: moved out of its register, or a new one. */
static inline kiln_ivalue kiln__frame_take(kiln_frame *f, kiln_operand o) {
  if (o & KILN_OPERAND_MOVE) {
    kiln_ivalue *slot = &f->regs[o & KILN_OPERAND_INDEX];
    kiln_ivalue v = *slot;
    *slot = kiln_none();
    return v;
  }
  return kiln_ivalue_retain(*kiln__frame_read(f, o));
}
/* Releases the registers of the operands that are marked MOVE. */
static inline void kiln__frame_release_moved(kiln_call *call, kiln_frame *f, const kiln_operand *o,
                                             int count) {
  for (int i = 0; i < count; i++) {
    if (o[i] & KILN_OPERAND_MOVE) {
      kiln_ivalue *slot = &f->regs[o[i] & KILN_OPERAND_INDEX];
      kiln_ivalue_release_to(&call->cache, (kiln_ivalue){.tag = slot->tag, .u.i = slot->u.i});
      slot->tag = KILN_TAG_NONE;
    }
  }
}
/* Takes `v`. */
static inline void kiln__frame_write(kiln_call *call, kiln_frame *f, kiln_operand o,
                                     kiln_ivalue v) {
  if (__builtin_expect((o & KILN_OPERAND_INDEX) == KILN_OPERAND_NONE, 0)) {
    kiln_ivalue_release_to(&call->cache, v);
    return;
  }
  KILN_ASSERT(f->regs[o].tag < KILN_TAG__COUNTED);
  kiln__value_copy(&f->regs[o], &v);
}

/* It may become a result: nobody else could see a write to it, and it does not require grad, which
 * a result would inherit (no result does). */
static inline bool kiln__is_free(const kiln_tensor *t) {
  const kiln_storage *s = t->storage;
  return s && __atomic_load_n(&t->refs, __ATOMIC_ACQUIRE) == 1 &&
         __atomic_load_n(&s->refs, __ATOMIC_ACQUIRE) == 1 &&
         (!s->owner || (s->flags & KILN_STORAGE_BOUND)) && !t->key.f.requires_grad;
}

/* -- Forked functions that run beside their frame -- */

/* Whether this FORK becomes a task. */
bool kiln__fork_is_worth(const kiln_call *call, const kiln_callable *callable);
/* By the FORK `in`; `args` are borrowed. */
kiln_status *kiln__fork_start(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                              const kiln_ivalue *args, kiln_ivalue *out_future) KILN_MUST_USE;
/* Of what the future of this FORK holds; NULL: not known. */
static inline const kiln_type *kiln__fork_type(const kiln_plan *plan, const kiln_instr *in) {
  return in->flags && in->flags <= plan->type_count ? plan->types[in->flags - 1] : NULL;
}
/* Returns when the future is complete. */
void kiln__fork_wait(kiln_call *call, kiln_future *future);
/* Before the frame goes, its registers empty already: waits for its tasks. */
void kiln__fork_join(kiln_call *call, kiln_frame *f);

/* GROUP and TYPECHECK; `o` are the operands. */
kiln_status *kiln__interp_group(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                                const kiln_operand *o) KILN_MUST_USE;
void kiln__interp_typecheck(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                            const kiln_operand *o);
/* KEPT. */
kiln_status *kiln__interp_kept(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                               const kiln_operand *o) KILN_MUST_USE;
/* Instructions that make and take apart values; `o` are the operands. */
kiln_status *kiln__interp_value(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                                const kiln_operand *o) KILN_MUST_USE;
