/* interp.c: the interpreter: a register machine over kiln_plan, with switch dispatch.
 *
 * Frames and their registers lie on a stack of the call, made of linked chunks that are kept from
 * run to run, so a call in its steady state allocates nothing here and script recursion does not
 * use C's stack. Runs may nest (a kernel or __exit__ that calls back): a nested run stacks its
 * frames on top.
 *
 * Every instruction burns fuel of the call's budget, which asks all limits when it is out of it. An
 * error unwinds frame by frame: it gets one traceback entry a frame, leaves what the frame has
 * entered, and drops registers and profile records. Threads: a call belongs to one thread, and so
 * does its stack. */
#include "runtime/interp_internal.h"

#include "base/stripe.h"

enum {
  FIRST_CHUNK = 16 * 1024,
  KEEP_BYTES = 1024 * 1024, /* of stack that an idle call keeps */
  MAX_CHOSEN = 1000         /* nested calls of what a run chose, where kiln_limits names none */
};

typedef struct chunk {
  struct chunk *prev, *next;
  size_t size, used; /* bytes of data */
  _Alignas(16) char data[];
} chunk;

/* call->frames */
typedef struct machine {
  kiln_frame *top;
  chunk *chunk; /* that the next frame goes to; those after it are empty */
  size_t bytes;
  char apart[KILN_STRIPE_BYTES - 3 * sizeof(void *)]; /* from what other threads' calls write */
} machine;

/* -- The stack -- */

static kiln_status *machine_of(kiln_call *call, machine **out) {
  if (!call->frames) {
    call->frames = kiln_mem_alloc_zero(call->env->mem, sizeof(machine));
    if (!call->frames) return kiln_status_oom();
    call->destroy_frames = kiln__interp_free_frames;
  }
  *out = call->frames;
  return NULL;
}

static void free_chunks_after(kiln_call *call, machine *m, chunk *c) {
  chunk *next = c ? c->next : NULL;
  if (c) c->next = NULL;
  while (next) {
    chunk *after = next->next;
    m->bytes -= next->size;
    kiln_mem_free(call->env->mem, next, sizeof(chunk) + next->size);
    next = after;
  }
}

void kiln__interp_free_frames(kiln_call *call) {
  machine *m = call->frames;
  if (!m) return;
  KILN_ASSERT(!m->top);
  if (m->chunk) {
    free_chunks_after(call, m, m->chunk);
    kiln_mem_free(call->env->mem, m->chunk, sizeof(chunk) + m->chunk->size);
  }
  kiln_mem_free(call->env->mem, m, sizeof *m);
  call->frames = NULL;
}

/* NULL when memory is exhausted. */
static void *stack_alloc(kiln_call *call, machine *m, size_t size) {
  if (!m->chunk || m->chunk->size - m->chunk->used < size) {
    chunk *next = m->chunk ? m->chunk->next : NULL;
    if (!next || next->size < size) {
      free_chunks_after(call, m, m->chunk);
      size_t bytes = m->chunk ? 2 * m->chunk->size : FIRST_CHUNK;
      if (bytes < size) bytes = size;
      next = kiln_mem_alloc(call->env->mem, sizeof(chunk) + bytes);
      if (!next) return NULL;
      *next = (chunk){.prev = m->chunk, .size = bytes};
      if (m->chunk) m->chunk->next = next;
      m->bytes += bytes;
    }
    m->chunk = next;
  }
  void *block = m->chunk->data + m->chunk->used;
  m->chunk->used += size;
  return block;
}

static void stack_free(machine *m, void *block) {
  m->chunk->used = (size_t)((char *)block - m->chunk->data);
  if (m->chunk->used == 0 && m->chunk->prev) m->chunk = m->chunk->prev;
}

static size_t frame_bytes(const kiln_plan *plan) {
  size_t values = (size_t)plan->register_count + (size_t)plan->max_in + (size_t)plan->max_entered;
  size_t bytes = sizeof(kiln_frame) + values * sizeof(kiln_ivalue);
  if (plan->sink) bytes += (size_t)plan->record_count * sizeof(kiln_type_record);
  bytes += (size_t)plan->symbol_count * sizeof(int64_t);
  return (bytes + 15) & ~(size_t)15;
}

static kiln_status *too_deep(const kiln_call *call) {
  if (call->limits.recursion) {
    return KILN_ERROR(KILN_LIMIT,
                      "script functions are nested deeper than the call's limit of %u (recursion)",
                      call->limits.recursion);
  }
  return KILN_ERROR(
      KILN_LIMIT,
      "calls of methods that a run chooses are nested deeper than %d, the limit where "
      "a call's limits have none (recursion)",
      MAX_CHOSEN);
}

/* A frame whose registers are empty. Functions that call each other by name have an end, as no
 * function can call itself so: they are counted only against a limit that the host gives. */
static kiln_status *push_frame(kiln_call *call, machine *m, const kiln_plan *plan, bool is_named,
                               kiln_frame **out_frame) {
  const uint32_t given = call->limits.recursion;
  const bool counts = given || !is_named;
  if (counts && call->recursion >= (given ? given : MAX_CHOSEN)) return too_deep(call);
  kiln_frame *f = stack_alloc(call, m, frame_bytes(plan));
  if (!f) return kiln_status_oom();
  kiln_ivalue *values = (kiln_ivalue *)(f + 1);
  int count = plan->register_count + plan->max_in + plan->max_entered;
  *f = (kiln_frame){.plan = plan,
                    .pc = plan->code,
                    .constants = plan->constants,
                    .regs = values,
                    .args = values + plan->register_count,
                    .entered = values + plan->register_count + plan->max_in,
                    .result = KILN_OPERAND_NONE,
                    .counts = counts,
                    .prev = m->top};
  memset(values, 0, (size_t)count * sizeof *values);
  if (plan->sink && !__atomic_load_n(&plan->sink->is_full, __ATOMIC_RELAXED)) {
    f->records = (kiln_type_record *)(values + count);
    for (int i = 0; i < plan->record_count; i++) kiln_type_record_init(&f->records[i]);
  }
  f->symbols = (int64_t *)(void *)((char *)f + frame_bytes(plan)) - plan->symbol_count;
  m->top = f;
  call->recursion += counts;
  *out_frame = f;
  return NULL;
}

static void pop_frame(kiln_call *call, machine *m) {
  kiln_frame *f = m->top;
  const kiln_plan *plan = f->plan;
  for (int i = f->borrows_self; i < plan->arg_count; i++) {
    kiln_ivalue_release_to(&call->cache, f->regs[i]);
  }
  for (int i = plan->arg_count + plan->borrowed_count; i < plan->register_count; i++) {
    kiln_ivalue_release_to(&call->cache, f->regs[i]);
  }
  for (int i = 0; i < plan->max_entered; i++) kiln_ivalue_release_to(&call->cache, f->entered[i]);
  if (f->forks) kiln__fork_join(call, f);
  m->top = f->prev;
  call->recursion -= f->counts;
  stack_free(m, f);
}

/* -- Operators -- */

static kiln_status *missing_op(const kiln_kernel *kernel) {
  const char *hint = kernel->user;
  return KILN_ERROR(KILN_MISSING_OP, "operator %s is not implemented%s", kernel->name,
                    hint ? hint : "");
}

/* Same sizes, strides, elements and side structures, in new memory. */
static kiln_status *copy_tensor(kiln_call *call, const kiln_tensor *t, kiln_tensor **out) {
  int rank = kiln_tensor_rank(t);
  KILN_TRY(kiln_tensor_create_strided(call->env->mem, &call->cache, kiln_tensor_dtype(t), rank,
                                      kiln_tensor_sizes(t), kiln_tensor_strides(t), out));
  KILN_TRY(kiln_tensor_copy(*out, t));
  kiln_tensor_share_sides(*out, t);
  return NULL;
}

/* Where the first argument's memory may take the result (kiln_reuse). *out_copy: owned. */
static kiln_status *offer_memory(kiln_call *call, const kiln_kernel *kernel, bool donated,
                                 kiln_ivalue *args, kiln_ivalue *outs, kiln_tensor **out_copy) {
  if (args[0].tag != KILN_TAG_TENSOR || kiln_tensor_is_undefined(args[0].u.tensor)) return NULL;
  kiln_tensor *self = args[0].u.tensor;
  bool sole = donated && kiln__is_free(self);
  if (kernel->reuse == KILN_REUSE_SELF) {
    if (sole && kiln_tensor_has_rows(self)) outs[0] = kiln_ivalue_retain(args[0]);
    return NULL;
  }
  if (!sole) {
    KILN_TRY(copy_tensor(call, self, out_copy));
    args[0] = kiln_of_tensor(*out_copy);
  }
  if (kernel->dest_arg >= 0) outs[0] = kiln_ivalue_retain(args[0]);
  return NULL;
}

static bool shares_storage(kiln_ivalue v, const kiln_storage *storage) {
  if (v.tag == KILN_TAG_TENSOR) return v.u.tensor->storage == storage;
  if (v.tag != KILN_TAG_LIST) return false;
  for (int64_t i = 0; i < v.u.list->count; i++) {
    if (shares_storage(v.u.list->items[i], storage)) return true;
  }
  return false;
}

/* True when out= is memory that the operator also reads: to fit it to the result would change the
 * arguments under the kernel. */
static bool reads_destination(const kiln_kernel *kernel, const kiln_ivalue *args, int count) {
  const int dest = kernel->dest_arg;
  if (dest <= 0 || kernel->out_count != 1 || args[dest].tag != KILN_TAG_TENSOR) return false;
  const kiln_storage *storage = args[dest].u.tensor->storage;
  for (int i = 0; storage && i < count; i++) {
    if (i != dest && shares_storage(args[i], storage)) return true;
  }
  return false;
}

/* The result is made apart, then put into the destination. */
static kiln_status *run_apart(kiln_call *call, const kiln_kernel *kernel, const kiln_ivalue *args,
                              int count, kiln_ivalue *outs) {
  kiln_tensor *dest = args[kernel->dest_arg].u.tensor;
  KILN_TRY(kiln_kernel_run(call, kernel, args, count, outs));
  if (outs[0].tag != KILN_TAG_TENSOR || outs[0].u.tensor == dest) return NULL;
  kiln_tensor *made = outs[0].u.tensor;
  kiln_status *status = NULL;
  if (!kiln_dtype_can_cast(kiln_tensor_dtype(made), kiln_tensor_dtype(dest))) {
    status = KILN_ERROR(KILN_OP_ERROR, "result type %s can't be cast to the desired output type %s",
                        kiln_dtype_ir_name(kiln_tensor_dtype(made)),
                        kiln_dtype_ir_name(kiln_tensor_dtype(dest)));
  }
  if (!status) status = kiln_tensor_resize(dest, kiln_tensor_rank(made), kiln_tensor_sizes(made));
  if (!status) status = kiln_tensor_copy(dest, made);
  outs[0] = status ? kiln_none() : kiln_of_tensor(kiln_tensor_retain(dest));
  kiln_tensor_release_to(&call->cache, made);
  return status;
}

/* The rare kinds of operators: those that have a destination. */
static __attribute__((noinline)) kiln_status *run_into(kiln_call *call, const kiln_kernel *kernel,
                                                       bool donated, kiln_ivalue *args, int count,
                                                       kiln_ivalue *outs) {
  kiln_tensor *copy = NULL;
  kiln_status *status = NULL;
  if (kernel->reuse) {
    status = offer_memory(call, kernel, donated, args, outs, &copy);
  } else if (reads_destination(kernel, args, count)) {
    return run_apart(call, kernel, args, count, outs);
  } else {
    outs[0] = kiln_ivalue_retain(args[kernel->dest_arg]);
  }
  if (!status) status = kiln_kernel_run(call, kernel, args, count, outs);
  kiln_tensor_release_to(&call->cache, copy);
  return status;
}

/* Empties the registers of the first inputs that are marked MOVE. */
static inline void release_flagged(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                                   const kiln_operand *o) {
  for (unsigned moved = in->flags; moved; moved &= moved - 1) {
    kiln_ivalue *slot = &f->regs[o[__builtin_ctz(moved)] & KILN_OPERAND_INDEX];
    kiln_ivalue_release_to(&call->cache, (kiln_ivalue){.tag = slot->tag, .u.i = slot->u.i});
    slot->tag = KILN_TAG_NONE;
  }
}

static kiln_status *run_op(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                           const kiln_operand *o) {
  const kiln_kernel *kernel = f->plan->kernels[in->x];
  kiln_ivalue *args = f->args;
  kiln_ivalue outs[KILN_MAX_OUTS];
  int n = in->in_count, out_count = in->out_count;
  for (int i = 0; i < n; i++) kiln__value_copy(&args[i], kiln__frame_read(f, o[i]));
  for (int i = 0; i < out_count; i++) outs[i] = kiln_none();
  if (!kernel->body) return missing_op(kernel);
  kiln_status *status = kernel->dest_arg >= 0 || kernel->reuse
                            ? run_into(call, kernel, n && o[0] & KILN_OPERAND_DONATE, args, n, outs)
                            : kiln_kernel_run(call, kernel, args, n, outs);
  release_flagged(call, f, in, o);
  if (n > KILN_INSTR_MOVE_BITS) {
    kiln__frame_release_moved(call, f, o + KILN_INSTR_MOVE_BITS, n - KILN_INSTR_MOVE_BITS);
  }
  for (int i = 0; i < out_count; i++) {
    if (status) {
      kiln_ivalue_release_to(&call->cache, outs[i]);
    } else {
      kiln__frame_write(call, f, o[n + i], outs[i]);
    }
  }
  return status;
}

static inline kiln_status *run_fresh_op(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                                        const kiln_operand *o) {
  const kiln_kernel *kernel = f->plan->kernels[in->x];
  kiln_ivalue *arg = f->args, out = kiln_none();
  int n = in->in_count;
  const kiln_operand *end = o + n;
  for (const kiln_operand *input = o; input < end; input++, arg++) {
    kiln__value_copy(arg, kiln__frame_read(f, *input));
  }
  kiln_status *status = kiln_kernel_run(call, kernel, f->args, n, &out);
  release_flagged(call, f, in, o);
  if (__builtin_expect(status != NULL, 0)) {
    kiln_ivalue_release_to(&call->cache, out);
    return status;
  }
  kiln__frame_write(call, f, *end, (kiln_ivalue){.tag = out.tag, .u.i = out.u.i});
  return NULL;
}

/* -- Moves -- */

static void run_move(kiln_call *call, kiln_frame *f, const kiln_instr *in, const kiln_operand *o) {
  int n = in->in_count;
  if (n == 1) {
    kiln__frame_write(call, f, o[1], kiln__frame_take(f, o[0]));
    return;
  }
  for (int i = 0; i < n; i++) { /* references that stay come first: an operand may stand twice */
    f->args[i] = *kiln__frame_read(f, o[i]);
    if (!(o[i] & KILN_OPERAND_MOVE)) (void)kiln_ivalue_retain(f->args[i]);
  }
  for (int i = 0; i < n; i++) {
    if (o[i] & KILN_OPERAND_MOVE) f->regs[o[i] & KILN_OPERAND_INDEX] = kiln_none();
  }
  for (int i = 0; i < n; i++) kiln__frame_write(call, f, o[n + i], f->args[i]);
}

static void run_drop(kiln_call *call, kiln_frame *f, const kiln_instr *in, const kiln_operand *o) {
  for (int i = 0; i < in->in_count; i++) {
    kiln_ivalue *slot = &f->regs[o[i] & KILN_OPERAND_INDEX];
    kiln_ivalue_release_to(&call->cache, *slot);
    *slot = kiln_none();
  }
}

/* -- Calls -- */

static __attribute__((noinline)) void begin_meter(kiln_call *call, kiln_frame *f) {
  f->meter = call->meter;
  f->metered_from = kiln_now_ns();
  call->meter = NULL;
}
static __attribute__((noinline)) void end_meter(const kiln_frame *f) {
  kiln_meter_add(f->meter, kiln_now_ns() - f->metered_from);
}

/* Pushes a frame for callable(args), which were gathered, borrowed, in `args`. `is_named`: the
 * code names the function. `lasting`: the arguments are there until the frame ends. */
static kiln_status *enter_callable(kiln_call *call, machine *m, const kiln_callable *callable,
                                   bool is_named, bool lasting, const kiln_ivalue *args, int count,
                                   kiln_frame **out_frame) {
  const kiln_plan *plan = NULL;
  call->meter = NULL;
  if (callable->call_counter) kiln_count(&call->tally, callable->call_counter);
  KILN_TRY(callable->get_plan(callable, call, args, count, &plan));
  if (plan->arg_count != count) {
    return KILN_ERROR(KILN_INTERNAL, "%s takes %d arguments but got %d", callable->name,
                      plan->arg_count, count);
  }
  KILN_TRY(push_frame(call, m, plan, is_named, out_frame));
  if (__builtin_expect(call->meter != NULL, 0)) begin_meter(call, *out_frame);
  KILN_ASSERT(count == 0 || (*out_frame)->regs); /* arguments are the first registers */
  const bool borrows = lasting && plan->borrows_self;
  (*out_frame)->borrows_self = borrows;
  if (borrows) (*out_frame)->regs[0] = args[0];
  for (int i = borrows; i < count; i++) (*out_frame)->regs[i] = kiln_ivalue_retain(args[i]);
  if (plan->entry_guard) kiln_guard_bind(plan->entry_guard, args, NULL, (*out_frame)->symbols);
  return NULL;
}

static kiln_status *find_method(const kiln_plan *plan, kiln_ivalue object, kiln_str name,
                                const kiln_callable **out) {
  if (object.tag != KILN_TAG_OBJECT || !plan->methods) {
    return KILN_ERROR(KILN_INTERNAL, "method '" KILN_STR_FMT "' of something that has none",
                      KILN_STR_ARG(name));
  }
  return plan->methods->find(plan->methods, object.u.object->type, name, out);
}

/* CALL, CALL_VALUE, CALL_METHOD, FORK, ENTER: the new frame is on top afterwards. */
static kiln_status *run_call(kiln_call *call, machine *m, kiln_frame *f, const kiln_instr *in,
                             const kiln_operand *o) {
  const kiln_callable *callable = NULL;
  int n = in->in_count, first = 0;
  for (int i = 0; i < n; i++) f->args[i] = *kiln__frame_read(f, o[i]);
  switch (in->op) {
    case KILN_INSTR_CALL_VALUE:
      KILN_CHECK(f->args[0].tag == KILN_TAG_FUNCTION);
      callable = f->args[0].u.function;
      first = 1;
      break;
    case KILN_INSTR_CALL_METHOD:
      KILN_TRY(find_method(f->plan, f->args[0], f->plan->strings[in->x], &callable));
      break;
    case KILN_INSTR_ENTER:
      KILN_CHECK(f->entered_count < f->plan->max_entered);
      KILN_TRY(find_method(f->plan, f->args[0], KILN_STR("__enter__"), &callable));
      break;
    default: callable = f->plan->callables[in->x]; break;
  }
  kiln_frame *callee;
  const bool is_named = in->op == KILN_INSTR_CALL;
  KILN_TRY(enter_callable(call, m, callable, is_named, false, f->args + first, n - first, &callee));
  callee->result = o[n];
  if (in->op == KILN_INSTR_FORK) callee->on_return = KILN_RETURN_FUTURE;
  if (in->op == KILN_INSTR_ENTER) {
    callee->on_return = KILN_RETURN_ENTERED;
    f->entered[f->entered_count] = kiln_ivalue_retain(f->args[0]);
  }
  kiln__frame_release_moved(call, f, o, n);
  return NULL;
}

static kiln_status *run_fork(kiln_call *call, machine *m, kiln_frame *f, const kiln_instr *in,
                             const kiln_operand *o) {
  const kiln_callable *callable = f->plan->callables[in->x];
  if (!kiln__fork_is_worth(call, callable)) return run_call(call, m, f, in, o);
  kiln_ivalue future;
  for (int i = 0; i < in->in_count; i++) f->args[i] = *kiln__frame_read(f, o[i]);
  KILN_TRY(kiln__fork_start(call, f, in, f->args, &future));
  kiln__frame_release_moved(call, f, o, in->in_count);
  kiln__frame_write(call, f, o[in->in_count], future);
  return NULL;
}

static kiln_status *run_exit(kiln_call *call, machine *m, kiln_frame *f, const kiln_operand *o) {
  KILN_CHECK(f->entered_count > 0);
  const kiln_callable *callable;
  kiln_ivalue args[4] = {f->entered[f->entered_count - 1]};
  KILN_TRY(find_method(f->plan, args[0], KILN_STR("__exit__"), &callable));
  kiln_frame *callee;
  f->entered_count--; /* it is left now, whatever comes */
  kiln_status *status = enter_callable(call, m, callable, false, false, args, 4, &callee);
  if (!status) callee->result = o[0];
  f->entered[f->entered_count] = kiln_none();
  kiln_ivalue_release_to(&call->cache, args[0]);
  return status;
}

/* Leaves the top frame with `value` (taken); it goes to the frame below. */
static kiln_status *return_value(kiln_call *call, machine *m, kiln_ivalue value) {
  kiln_frame *f = m->top, *caller = f->prev;
  kiln_operand result = f->result;
  kiln_interp_return on_return = f->on_return;
  pop_frame(call, m);
  if (on_return == KILN_RETURN_FUTURE) {
    kiln_future *future;
    const kiln_type *type = kiln__fork_type(caller->plan, caller->pc - 1);
    KILN_TRY(kiln_future_create(call->env->mem, type, value, NULL, &future));
    value = kiln_of_box(future);
  } else if (on_return == KILN_RETURN_ENTERED) {
    caller->entered_count++;
  }
  kiln__frame_write(call, caller, result, value);
  return NULL;
}

static kiln_status *run_wait(kiln_call *call, kiln_frame *f, const kiln_operand *o) {
  const kiln_ivalue *future = kiln__frame_read(f, o[0]);
  KILN_CHECK(future->tag == KILN_TAG_FUTURE);
  kiln__fork_wait(call, future->u.future);
  if (future->u.future->error) return kiln_status_copy(future->u.future->error);
  kiln_ivalue value = kiln_ivalue_retain(future->u.future->value);
  kiln__frame_release_moved(call, f, o, 1);
  kiln__frame_write(call, f, o[1], value);
  return NULL;
}

/* -- Errors -- */

/* Whether __exit__ may still run: not when what stopped us would stop it too. */
static bool may_leave(const kiln_status *status) {
  return !kiln_status_ends(status) && kiln_status_code(status) != KILN_INTERNAL;
}

/* Runs __exit__ of what the frame has entered; an error of its own replaces `status`. */
static kiln_status *leave_entered(kiln_call *call, kiln_frame *f, kiln_status *status) {
  while (f->entered_count > 0 && may_leave(status)) {
    kiln_ivalue object = f->entered[--f->entered_count];
    f->entered[f->entered_count] = kiln_none();
    const kiln_callable *callable;
    kiln_ivalue args[4] = {object}, result = kiln_none();
    kiln_status *own = find_method(f->plan, object, KILN_STR("__exit__"), &callable);
    if (!own) own = kiln_interp_run(call, callable, args, 4, &result);
    kiln_ivalue_release(result);
    kiln_ivalue_release(object);
    if (own) {
      kiln_status_destroy(status);
      status = own;
    }
  }
  return status;
}

/* A forked function failed: its error waits in the future. */
static kiln_status *keep_in_future(kiln_call *call, kiln_frame *caller, kiln_operand result,
                                   kiln_status *status) {
  kiln_future *future;
  const kiln_type *type = kiln__fork_type(caller->plan, caller->pc - 1);
  KILN_TRY(kiln_future_create(call->env->mem, type, kiln_none(), status, &future));
  kiln__frame_write(call, caller, result, kiln_of_box(future));
  return NULL;
}

/* Whether the operators that the instruction runs have told where they stand. */
static bool is_told(const kiln_plan *plan, const kiln_instr *in, const kiln_status *status) {
  const bool part =
      in->op == KILN_INSTR_GROUP || (in->op == KILN_INSTR_CALL && plan->callables[in->x]->is_part);
  return part && kiln_status_location(status);
}

/* Takes frames off until `base` is on top, or until one takes the error. Takes and returns
 * `status`; NULL: the frame on top goes on. */
static __attribute__((noinline)) kiln_status *unwind(kiln_call *call, machine *m,
                                                     const kiln_frame *base, kiln_status *status) {
  while (m->top != base) {
    kiln_frame *f = m->top;
    const kiln_source_range *range =
        f->plan->ranges ? f->plan->ranges[f->pc - 1 - f->plan->code] : NULL;
    if (range && !is_told(f->plan, f->pc - 1, status)) {
      status = kiln_status_at(status, kiln_source_range_loc(range));
      status = kiln_source_range_trace(range, status);
    }
    status = leave_entered(call, f, status);
    bool forked = f->on_return == KILN_RETURN_FUTURE && may_leave(status);
    kiln_operand result = f->result;
    pop_frame(call, m);
    if (forked) {
      status = keep_in_future(call, m->top, result, status);
      if (!status) return NULL;
    }
  }
  return status;
}

/* -- The loop -- */

/* Bytes of the tensors that go in, once. */
static void weigh(const kiln_frame *f, const kiln_instr *in) {
  kiln_instr_time *t = f->plan->times ? &f->plan->times[in - f->plan->code] : NULL;
  uint64_t bytes = 0;
  if (!t || !__atomic_exchange_n(&t->unweighed, false, __ATOMIC_RELAXED)) return;
  for (int i = 0; i < in->in_count; i++) {
    const kiln_ivalue *v = kiln__frame_read(f, f->plan->operands[in->operands + (uint32_t)i]);
    if (v->tag != KILN_TAG_TENSOR || !v->u.tensor) continue;
    bytes += (uint64_t)v->u.tensor->numel * kiln_dtype_size(kiln_tensor_dtype(v->u.tensor));
  }
  __atomic_store_n(&t->bytes, bytes, __ATOMIC_RELAXED);
}

/* No fuel: looks at the limits. The budget of a timed call grants none, so it always comes here. */
static __attribute__((noinline)) kiln_status *refuel(kiln_call *call, const kiln_frame *f,
                                                     const kiln_instr *in) {
  if (call->timed) {
    weigh(f, in);
    kiln_plan_tick(call, f->plan, in);
  }
  return kiln_budget_work(&call->budget, 0);
}

/* Runs until `base` is on top again. What is rare stands in functions of its own: the loop keeps
 * its state in registers. So it is not inlined: 100 small operators took 5 % longer. */
static __attribute__((noinline)) kiln_status *run_frames(kiln_call *call, machine *m,
                                                         const kiln_frame *base,
                                                         kiln_ivalue *out_result) {
  kiln_frame *f = m->top;
  const kiln_instr *pc = f->pc;
  for (;;) {
    const kiln_instr *in = pc++;
    const kiln_operand *o = f->plan->operands + in->operands;
    kiln_status *status = NULL;
    if (__builtin_expect(!kiln_budget_burn(&call->budget), 0)) {
      status = refuel(call, f, in);
      if (status) goto failed;
    }
    switch ((kiln_instr_op)in->op) {
      case KILN_INSTR_OP_FRESH: status = run_fresh_op(call, f, in, o); break;
      case KILN_INSTR_OP: status = run_op(call, f, in, o); break;
      case KILN_INSTR_GROUP: status = kiln__interp_group(call, f, in, o); break;
      case KILN_INSTR_LOADC:
        kiln__frame_write(call, f, o[0], kiln_ivalue_retain(f->plan->constants[in->x]));
        break;
      case KILN_INSTR_MOVE: run_move(call, f, in, o); break;
      case KILN_INSTR_DROP: run_drop(call, f, in, o); break;
      case KILN_INSTR_JMP: pc = f->plan->code + in->x; break;
      case KILN_INSTR_JF:
        if (!kiln__frame_read(f, o[0])->u.b) pc = f->plan->code + in->x;
        break;
      case KILN_INSTR_LOOP:
        if (kiln__frame_read(f, o[0])->u.i >= kiln__frame_read(f, o[1])->u.i ||
            !kiln__frame_read(f, o[2])->u.b) {
          pc = f->plan->code + in->x;
        }
        break;
      case KILN_INSTR_INC: f->regs[o[0]].u.i++; break;
      case KILN_INSTR_RET: {
        kiln_ivalue value = kiln__frame_take(f, o[0]);
        if (__builtin_expect(f->meter != NULL, 0)) end_meter(f);
        if (f->records) f->plan->sink->commit(f->plan->sink, f->records, f->plan->record_count);
        if (f->prev == base) {
          pop_frame(call, m);
          *out_result = value;
          return NULL;
        }
        status = return_value(call, m, value);
        f = m->top;
        pc = f->pc;
        break;
      }
      case KILN_INSTR_CALL:
      case KILN_INSTR_CALL_VALUE:
      case KILN_INSTR_CALL_METHOD:
      case KILN_INSTR_ENTER:
      case KILN_INSTR_EXIT:
        f->pc = pc;
        status = in->op == KILN_INSTR_EXIT ? run_exit(call, m, f, o) : run_call(call, m, f, in, o);
        f = m->top;
        pc = f->pc;
        break;
      case KILN_INSTR_FORK:
        f->pc = pc;
        status = run_fork(call, m, f, in, o);
        f = m->top;
        pc = f->pc;
        break;
      case KILN_INSTR_WAIT: status = run_wait(call, f, o); break;
      case KILN_INSTR_PROFILE:
        if (f->records) {
          kiln_type_record_add(&f->records[in->x], *kiln__frame_read(f, o[0]), call->grad_mode);
        }
        break;
      case KILN_INSTR_TYPECHECK: kiln__interp_typecheck(call, f, in, o); break;
      case KILN_INSTR_KEPT: status = kiln__interp_kept(call, f, in, o); break;
      default: status = kiln__interp_value(call, f, in, o); break;
    }
    if (__builtin_expect(status != NULL, 0)) {
    failed:
      f->pc = pc;
      status = unwind(call, m, base, status);
      if (status) return status;
      f = m->top;
      pc = f->pc;
    }
  }
}

kiln_status *kiln_interp_run(kiln_call *call, const kiln_callable *callable,
                             const kiln_ivalue *args, int arg_count, kiln_ivalue *out_result) {
  machine *m = NULL;
  kiln_frame *f;
  KILN_TRY(machine_of(call, &m));
  kiln_frame *base = m->top;
  KILN_TRY(enter_callable(call, m, callable, false, true, args, arg_count, &f));
  kiln_status *status = run_frames(call, m, base, out_result);
  if (__builtin_expect(call->timed, 0)) kiln_plan_tick(call, NULL, NULL);
  if (!m->top && m->bytes > KEEP_BYTES) {
    while (m->chunk->prev) m->chunk = m->chunk->prev;
    free_chunks_after(call, m, m->chunk);
  }
  return status;
}
