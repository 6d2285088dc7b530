/* interp_group.c: fused groups and the guards in front of them. */
#include "runtime/border.h"
#include "runtime/interp_internal.h"

/* With the contraction's result of heavy ones. */
enum { GROUP_VALUES = KILN_GROUP_VALUES + 1 };

/* -- Fused groups -- */

/* What symbols make of a group's outputs. */
static kiln_status *work_out(const kiln_group *group, const int64_t *symbols, int64_t *dims,
                             kiln_group_output *outputs) {
  int64_t room[KILN_GROUP_DIMS];
  if (!kiln_dim_program_run(group->dims, symbols, room, dims))
    return KILN_ERROR(KILN_OP_ERROR, "%s: sizes of more than 2^63", group->name);
  for (int i = 0; i < group->output_count; i++) {
    outputs[i] = group->outputs[i];
    outputs[i].sizes = dims + outputs[i].first;
    outputs[i].strides = outputs[i].sizes + outputs[i].rank;
    if (outputs[i].is_part) outputs[i].begin = outputs[i].strides[outputs[i].rank];
  }
  return NULL;
}

static kiln_status *make_group_output(kiln_call *call, const kiln_group_output *out,
                                      kiln_tensor **out_tensor) {
  if (out->border)
    return kiln_border_create(call->env->mem, &call->cache, out->dtype, out->rank, out->sizes,
                              out->strides, out->border, out_tensor);
  if (out->contiguous) {
    return kiln_call_tensor(call, out->dtype, out->rank, out->sizes, out_tensor);
  }
  return kiln_tensor_create_strided(call->env->mem, &call->cache, out->dtype, out->rank, out->sizes,
                                    out->strides, out_tensor);
}

/* The tensor of the output's donor, retained; NULL: it has none, somebody else holds that one's
 * memory, or it is not as the output must be. Writing over what was read takes half the memory, and
 * half the caches. */
static kiln_tensor *take_donor(const kiln_frame *f, const kiln_group_output *out,
                               const kiln_operand *o) {
  if (out->donor < 0) return NULL;
  kiln_tensor *t = kiln__frame_read(f, o[out->donor])->u.tensor; /* the guard saw one */
  if (!kiln__is_free(t)) return NULL;
  const size_t bytes = (size_t)out->rank * sizeof(int64_t);
  if ((t->storage->flags & KILN_STORAGE_READ_ONLY) || t->sides ||
      kiln_tensor_dtype(t) != out->dtype || kiln_tensor_rank(t) != out->rank ||
      memcmp(kiln_tensor_sizes(t), out->sizes, bytes) != 0 ||
      memcmp(kiln_tensor_strides(t), out->strides, bytes) != 0 ||
      (out->border && !kiln_border_is_around(t, out->border))) {
    return NULL;
  }
  return kiln_tensor_retain(t);
}

/* Memory for an output: its donor's, or new memory, with what stands around a part. */
static kiln_status *take_output(kiln_call *call, const kiln_frame *f, const kiln_group_output *out,
                                const kiln_operand *o, kiln_tensor **out_tensor) {
  *out_tensor = take_donor(f, out, o);
  if (*out_tensor) return NULL;
  KILN_TRY(make_group_output(call, out, out_tensor));
  if (!out->is_part || out->whole < 0) return NULL;
  return kiln_tensor_copy(*out_tensor, kiln__frame_read(f, o[out->whole])->u.tensor);
}

/* Where the kernel's result begins in it. */
static const void *begin_of(const kiln_group_output *out, const kiln_tensor *t) {
  const char *data = kiln_tensor_data(t);
  return out->is_part ? data + out->begin * (int64_t)kiln_tensor_item_size(t) : data;
}

/* Copies that are made for one call. */
typedef struct packed_inputs {
  int count, tensor_count;
  void *own[KILN_GROUP_PACKS];
  size_t bytes[KILN_GROUP_PACKS];
  kiln_tensor *tensors[KILN_GROUP_PACKS];
} packed_inputs;

/* An operand's memory with its border. What the group's operators have made, where its kernel could
 * not, has none. */
static kiln_status *take_bordered(kiln_call *call, kiln_tensor *t, int border,
                                  const void **out_data, packed_inputs *packed) {
  const int rank = kiln_tensor_rank(t);
  int64_t strides[KILN_MAX_RANK];
  if (!kiln_border_is_around(t, border)) {
    const kiln_physical physical = (kiln_physical)(KILN_PHYSICAL_CHANNELS_LAST + border);
    kiln_physical_strides(physical, rank, kiln_tensor_sizes(t), strides);
    kiln_tensor **copy = &packed->tensors[packed->tensor_count];
    KILN_TRY(kiln_border_create(call->env->mem, &call->cache, kiln_tensor_dtype(t), rank,
                                kiln_tensor_sizes(t), strides, border, copy));
    packed->tensor_count++;
    KILN_TRY(kiln_tensor_copy(*copy, t));
    t = *copy;
  }
  *out_data = kiln_border_begin(t);
  return NULL;
}

/* *out_left: a copy of a weight is being made beside the calls. */
static kiln_status *pack_inputs(kiln_call *call, const kiln_frame *f, const kiln_group *group,
                                const kiln_operand *o, const void **data, packed_inputs *packed,
                                bool *out_left) {
  for (int i = 0; i < group->pack_count && !*out_left; i++) {
    const kiln_group_pack *p = &group->packs[i];
    kiln_tensor *t = kiln__frame_read(f, o[p->operand])->u.tensor;
    const int n = packed->count;
    if (p->border) {
      KILN_TRY(take_bordered(call, t, p->border, &data[p->pack->input], packed));
      continue;
    }
    KILN_TRY(kiln_pack_take(call, p->slot, p->pack, t, &data[p->pack->input], &packed->own[n],
                            &packed->bytes[n]));
    packed->count += packed->own[n] != NULL;
    *out_left = !data[p->pack->input];
  }
  return NULL;
}

/* -- Contractions in the core's kernels -- */

/* What is left of the group: a row is `each` of the grid's first axis; 0: no whole number of them,
 * it goes over all when the contraction is complete. */
typedef struct rest_run {
  const kiln_group *group;
  const kiln_kernel_args *args;
  kiln_kernel_work work;
  int64_t each;
  int64_t image_rows; /* of an image's windows */
} rest_run;

/* Of rows that are complete. */
static void run_rest(const rest_run *run, int64_t first, int64_t rows) {
  kiln_kernel_box box = run->work.grid;
  box.begin[0] = first * run->each;
  box.end[0] = box.begin[0] + rows * run->each;
  run->group->fn(run->args, &box);
}
static void rest_of_image(void *data, int64_t image, int64_t first, int64_t rows, int worker) {
  const rest_run *run = data;
  (void)worker;
  run_rest(run, image * run->image_rows + first, rows);
}
static void rest_of_rows(void *data, int64_t first, int64_t rows, int worker) {
  (void)worker;
  run_rest(data, first, rows);
}

static int threads_of(const kiln_call *call) {
  return call->pool ? kiln_pool_threads(call->pool) : 1;
}
/* The problem, and the form of the weight for it; of images of any size as x is, NONE where it has
 * no windows. */
static kiln_winograd_form windows_of(const kiln_group_heavy *h, const kiln_tensor *x,
                                     kiln_winograd *out) {
  const int64_t *sizes = kiln_tensor_sizes(x), *strides = kiln_tensor_strides(x);
  *out = h->winograd;
  if (out->batch) return (kiln_winograd_form)h->pack.form;
  out->batch = sizes[0];
  out->in_batch = strides[0];
  out->out_batch = out->outputs;
  bool any = x->numel > 0;
  for (int d = 2; d >= 0; d--) {
    const int at = d + kiln_tensor_rank(x) - 3;
    out->in[d] = at < 2 ? 1 : sizes[at];
    out->in_axis[d] = at < 2 ? 0 : strides[at];
    out->out[d] =
        out->in[d] + 2 * out->pad[d] - (d == 0 ? out->planes - 1 : 2 * out->dilation[d - 1]);
    out->out_axis[d] = out->out_batch;
    out->out_batch *= out->out[d];
    any &= out->out[d] > 0;
  }
  if (!any) return KILN_WINOGRAD_NONE;
  const kiln_winograd_form form = kiln_winograd_choose(out, &h->machine);
  return form ? form : KILN_WINOGRAD_F2;
}
static kiln_status *run_winograd(kiln_call *call, rest_run *run, const kiln_winograd *windows,
                                 kiln_winograd_form form, const float *x, const float *u,
                                 float *y) {
  const kiln_group_heavy *h = run->group->heavy;
  const int64_t rows = windows->batch * windows->out[0] * windows->out[1];
  const int64_t all = run->work.grid.end[0];
  kiln_winograd_plan plan;
  run->image_rows = windows->out[1];
  run->each = all % rows == 0 ? all / rows : 0;
  KILN_TRY(
      kiln_winograd_make_plan(windows, form, call->dispatch, &h->machine, threads_of(call), &plan));
  return kiln_winograd_call(call, &plan, x, u, y, h->alone || !run->each ? NULL : rest_of_image,
                            run);
}
static void rest_of_row(void *data, int64_t image, int64_t row, int worker) {
  rest_of_image(data, image, row, 1, worker);
}
static kiln_status *run_grouped(kiln_call *call, rest_run *run, const kiln_tensor *x,
                                const float *u, float *y) {
  const kiln_group_heavy *h = run->group->heavy;
  kiln_grouped problem = h->grouped;
  if (problem.batch == 0) {
    problem.batch = kiln_tensor_sizes(x)[0];
    problem.in_batch = kiln_tensor_strides(x)[0];
    problem.out_batch = problem.outputs;
    for (int d = 1; d >= 0; d--) {
      problem.in[d] = kiln_tensor_sizes(x)[2 + d];
      problem.in_axis[d] = kiln_tensor_strides(x)[2 + d];
      if (problem.in[d] + 2 * problem.pad[d] < 3) return NULL;
      problem.out[d] = (problem.in[d] + 2 * problem.pad[d] - 3) / problem.step + 1;
      problem.out_axis[d] = problem.out_batch;
      problem.out_batch *= problem.out[d];
    }
  }
  const int64_t rows = problem.batch * problem.out[0], all = run->work.grid.end[0];
  if (rows == 0) return NULL;
  run->image_rows = problem.out[0];
  run->each = all % rows == 0 ? all / rows : 0;
  kiln_grouped_run(&problem, call->dispatch, kiln_tensor_data(x), u, y,
                   h->alone || !run->each ? NULL : rest_of_row, run, call->pool);
  return NULL;
}
static kiln_status *run_blocked(kiln_call *call, rest_run *run, const kiln_tensor *x,
                                const float *u, const float *bias, float *y) {
  const kiln_group_heavy *h = run->group->heavy;
  const int64_t all = run->work.grid.end[0];
  kiln_blocked problem = h->blocked;
  kiln_blocked_plan plan;
  if (problem.rows == 0) problem.rows = x->numel / problem.depth;
  if (problem.rows == 0) return NULL;
  run->each = all % problem.rows == 0 ? all / problem.rows : 0;
  KILN_TRY(kiln_blocked_make_plan(&problem, (kiln_blocked_form)h->pack.form, h->pack.sizes[2],
                                  call->dispatch, &h->machine, threads_of(call), &plan));
  return kiln_blocked_call(call, &plan, kiln_tensor_data(x), u, bias, y,
                           h->alone || !run->each ? NULL : rest_of_rows, run);
}
static kiln_status *run_heavy(kiln_call *call, kiln_frame *f, const kiln_group *group,
                              const kiln_operand *o, const kiln_kernel_args *args, bool *out_left) {
  const kiln_group_heavy *h = group->heavy;
  const kiln_tensor *x = kiln__frame_read(f, o[h->x])->u.tensor;
  kiln_tensor *weight = kiln__frame_read(f, o[h->weight])->u.tensor;
  const float *bias =
      h->bias < 0 ? NULL : kiln_tensor_data(kiln__frame_read(f, o[h->bias])->u.tensor);
  rest_run run = {.group = group, .args = args, .work = group->work};
  const kiln_kernel_pack *pack = &h->pack;
  kiln_kernel_pack other; /* of another form */
  kiln_winograd windows = {0};
  int form = pack->form;
  const void *u;
  void *own;
  size_t bytes;
  if (group->shape && !kiln_kernel_shape_work(group->shape, args->symbols, &run.work))
    return KILN_ERROR(KILN_OP_ERROR, "%s: sizes of more than 2^63", group->name);
  if (pack->transform == KILN_TRANSFORM_WINOGRAD) form = (int)windows_of(h, x, &windows);
  if (form == 0) return NULL;
  if (form != pack->form) {
    other = *pack;
    other.form = form;
    pack = &other;
  }
  KILN_TRY(kiln_pack_take(call, &h->slots[form], pack, weight, &u, &own, &bytes));
  *out_left = !u;
  if (!u) return NULL;
  float *y = args->data[h->given];
  kiln_status *status = NULL;
  if (pack->transform == KILN_TRANSFORM_WINOGRAD)
    status =
        run_winograd(call, &run, &windows, (kiln_winograd_form)form, kiln_tensor_data(x), u, y);
  else if (pack->transform == KILN_TRANSFORM_GROUPED)
    status = run_grouped(call, &run, x, u, y);
  else
    status = run_blocked(call, &run, x, u, bias, y);
  if (own) kiln_cache_free(&call->cache, own, bytes);
  if (status || h->alone || run.each) return status;
  return group->device->launch(group->device, call, group, args);
}

/* The operators want no copies. */
static bool lacks_memory(const kiln_status *status) {
  const kiln_code code = kiln_status_code(status);
  return code == KILN_OUT_OF_MEMORY || code == KILN_LIMIT;
}

/* *fault is set where the kernel says so, or could not be run for lack of memory for copies. */
static kiln_status *launch(kiln_call *call, kiln_frame *f, const kiln_group *group,
                           const kiln_operand *o, const void **data,
                           const kiln_kernel_scalar *scalars, uint32_t *fault) {
  packed_inputs packed = {0};
  bool left = false;
  kiln_status *status = pack_inputs(call, f, group, o, data, &packed, &left);
  const kiln_kernel_args args = {.data = (void *const *)data,
                                 .scalars = scalars,
                                 .symbols = group->shape ? f->symbols + group->symbols_at : NULL,
                                 .closure = group->closure,
                                 .fault = fault};
  if (!status && !left)
    status = group->heavy ? run_heavy(call, f, group, o, &args, &left)
                          : group->device->launch(group->device, call, group, &args);
  if (left) *fault = 1;
  if (group->interpreted && lacks_memory(status) && !kiln_budget_is_over(&call->budget)) {
    kiln_status_destroy(status);
    status = NULL;
    *fault = 1;
  }
  for (int i = 0; i < packed.count; i++)
    kiln_cache_free(&call->cache, packed.own[i], packed.bytes[i]);
  for (int i = 0; i < packed.tensor_count; i++)
    kiln_tensor_release_to(&call->cache, packed.tensors[i]);
  return status;
}

/* Nothing of what a kernel that faulted has written is kept: the group's operators run, and have
 * the complaint, if there is one. */
static kiln_status *run_operators(kiln_call *call, kiln_frame *f, const kiln_group *group,
                                  const kiln_operand *o, int in_count, kiln_tensor **outs) {
  kiln_ivalue result;
  for (int i = 0; i < group->output_count; i++) {
    kiln_tensor_release_to(&call->cache, outs[i]);
    outs[i] = NULL;
  }
  for (int i = 0; i < in_count; i++) f->args[i] = *kiln__frame_read(f, o[i]);
  KILN_TRY(kiln_interp_run(call, group->interpreted, f->args, in_count, &result));
  const kiln_ivalue *items = group->output_count == 1 ? &result : result.u.tuple->items;
  for (int i = 0; i < group->output_count; i++) outs[i] = kiln_tensor_retain(items[i].u.tensor);
  kiln_ivalue_release_to(&call->cache, result);
  return NULL;
}

static kiln_status *call_group(kiln_call *call, kiln_frame *f, const kiln_group *group,
                               const kiln_group_output *outputs, const kiln_operand *o,
                               int in_count, kiln_tensor **outs) {
  const void *data[GROUP_VALUES];
  kiln_kernel_scalar scalars[GROUP_VALUES];
  int tensors = 0, scalar_count = 0;
  bool none = false;
  for (int i = 0; i < in_count; i++) {
    kiln_ivalue v = *kiln__frame_read(f, o[i]);
    switch (v.tag) {
      case KILN_TAG_TENSOR: data[tensors++] = kiln_tensor_data(v.u.tensor); break;
      case KILN_TAG_FLOAT: scalars[scalar_count++].f = v.u.f; break;
      case KILN_TAG_BOOL: scalars[scalar_count++].i = v.u.b; break;
      default: scalars[scalar_count++].i = v.u.i; break;
    }
  }
  if (group->heavy) tensors++; /* the contraction's result: where one of the group's will be */
  for (int i = 0; i < group->output_count; i++) {
    KILN_TRY(take_output(call, f, &outputs[i], o, &outs[i]));
    if (group->heavy && i == group->heavy->carrier)
      data[group->heavy->given] = begin_of(&outputs[i], outs[i]);
    data[tensors++] = begin_of(&outputs[i], outs[i]);
    none |= outs[i]->numel == 0;
  }
  uint32_t fault = none && group->interpreted; /* its loops would pass by no index */
  if (!fault) KILN_TRY(launch(call, f, group, o, data, scalars, &fault));
  if (__builtin_expect(fault != 0, 0)) return run_operators(call, f, group, o, in_count, outs);
  kiln_count(&call->tally, group->runs);
  kiln_recent_worked(&call->recent, group->work.cost);
  return NULL;
}

static kiln_status *call_symbolic(kiln_call *call, kiln_frame *f, const kiln_group *group,
                                  const kiln_operand *o, int in_count, kiln_tensor **outs) {
  kiln_group_output outputs[GROUP_VALUES];
  int64_t dims[KILN_GROUP_DIMS];
  KILN_TRY(work_out(group, f->symbols + group->symbols_at, dims, outputs));
  return call_group(call, f, group, outputs, o, in_count, outs);
}

kiln_status *kiln__interp_group(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                                const kiln_operand *o) {
  const kiln_group *group = &f->plan->groups[in->x];
  kiln_tensor *outs[GROUP_VALUES];
  KILN_CHECK(in->in_count + group->output_count <= GROUP_VALUES && group->fn &&
             in->out_count == group->output_count);
  memset(outs, 0, sizeof *outs * (size_t)group->output_count);
  kiln_status *status = group->shape
                            ? call_symbolic(call, f, group, o, in->in_count, outs)
                            : call_group(call, f, group, group->outputs, o, in->in_count, outs);
  kiln__frame_release_moved(call, f, o, in->in_count);
  for (int i = 0; i < group->output_count; i++) { /* NULL where it failed: the frame ends */
    kiln__frame_write(call, f, o[in->in_count + i], kiln_of_tensor(outs[i]));
  }
  return status;
}

/* -- Guards -- */

void kiln__interp_typecheck(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                            const kiln_operand *o) {
  const kiln_guard_desc *guard = &f->plan->guards[in->x];
  const bool holds = kiln_guard_check(guard, f->regs, f->constants, call);
  kiln_count(&call->tally, holds ? guard->hits : guard->misses);
  if (__builtin_expect(!holds && guard->watch, 0)) {
    guard->watch->missed(guard->watch, guard, f->regs, f->constants, call->grad_mode);
  }
  if (holds && guard->symbols)
    kiln_guard_bind(guard, f->regs, f->constants, f->symbols + guard->symbols_at);
  kiln__frame_release_moved(call, f, o, in->in_count);
  kiln__frame_write(call, f, o[in->in_count], kiln_bool(holds));
}
