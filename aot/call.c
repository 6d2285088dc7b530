/* call.c: a call of an open model: the caller's tensors in, the result's tensors out. */
#include <string.h>

#include "aot/aot.h"
#include "base/scope.h"
#include "runtime/binding.h"
#include "runtime/cycles.h"

enum { FEW = 16 };

/* -- Inputs -- */

static kiln_status *check_tensor(const char *name, const kiln_aot_tensor *t, int64_t *out_numel) {
  if (t->rank < 0 || t->rank > KILN_AOT_RANK)
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s: a rank of %d, of at most %d", name, t->rank,
                      KILN_AOT_RANK);
  const size_t item = kiln_dtype_size(t->dtype);
  if (item == 0) return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s: dtype %d is none", name, t->dtype);
  for (int i = 0; i < t->rank; i++)
    if (t->sizes[i] < 0)
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s: dimension %d has size %lld", name, i,
                        (long long)t->sizes[i]);
  int64_t bytes;
  if (!kiln_numel(t->rank, t->sizes, out_numel) ||
      __builtin_mul_overflow(*out_numel, (int64_t)item, &bytes))
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s: more elements than memory has", name);
  if (!t->data && *out_numel > 0)
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s: a tensor without data", name);
  if ((uintptr_t)t->data % (item < 8 ? item : 8) != 0)
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s: the data is not aligned to its elements", name);
  return NULL;
}

static kiln_status *lent_tensor(kiln_aot_model *m, const kiln_aot_tensor *t, int64_t numel,
                                kiln_tensor **out) {
  int64_t strides[KILN_AOT_RANK];
  kiln_storage *storage;
  kiln_strides_contiguous(t->rank, t->sizes, strides);
  KILN_TRY(kiln_storage_wrap(m->env->mem, &m->lender, t->data,
                             (size_t)numel * kiln_dtype_size(t->dtype), 0, &storage));
  kiln_status *status = kiln_tensor_create_on(m->env->mem, NULL, storage, t->dtype, t->rank,
                                              t->sizes, strides, 0, out);
  kiln_storage_release(storage);
  return status;
}

/* A number, as the argument wants it. */
static kiln_status *read_number(const kiln_aot_input *in, const kiln_aot_tensor *t,
                                kiln_ivalue *out) {
  static const kiln_dtype wanted[] = {[KILN_TAG_INT] = KILN_DTYPE_I64,
                                      [KILN_TAG_FLOAT] = KILN_DTYPE_F64,
                                      [KILN_TAG_BOOL] = KILN_DTYPE_BOOL};
  if (t->rank != 0 || t->dtype != wanted[in->tag])
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s is a number: a %s tensor of rank 0", in->name,
                      kiln_dtype_name(wanted[in->tag]));
  if (in->tag == KILN_TAG_FLOAT) {
    double value;
    memcpy(&value, t->data, sizeof value);
    *out = kiln_float(value);
  } else if (in->tag == KILN_TAG_INT) {
    int64_t value;
    memcpy(&value, t->data, sizeof value);
    *out = kiln_int(value);
  } else {
    *out = kiln_bool(*(const unsigned char *)t->data != 0);
  }
  return NULL;
}

static kiln_status *read_inputs(kiln_aot_model *m, const kiln_aot_tensor *given, int count,
                                kiln_ivalue *out) {
  for (int i = 0; i < count; i++) {
    const kiln_aot_input *in = &m->program->inputs[i];
    int64_t numel;
    KILN_TRY(check_tensor(in->name, &given[i], &numel));
    if (in->tag != KILN_TAG_TENSOR) {
      KILN_TRY(read_number(in, &given[i], &out[i]));
      continue;
    }
    kiln_tensor *t;
    KILN_TRY(lent_tensor(m, &given[i], numel, &t));
    out[i] = kiln_of_tensor(t);
  }
  return NULL;
}

/* The caller's memory is the caller's again: what an attribute keeps of it moves out. */
static kiln_status *give_inputs_back(kiln_ivalue *inputs, int count) {
  kiln_status *status = NULL;
  for (int i = 0; i < count; i++) {
    if (inputs[i].tag != KILN_TAG_TENSOR) continue;
    kiln_tensor *t = inputs[i].u.tensor;
    const bool alone = kiln_binding_is_alone(t);
    if (!alone && !status) status = kiln_storage_move_out(t->storage);
    kiln_tensor_release(t);
  }
  return status;
}

/* -- Outputs -- */

/* The tensors of a result in order; numbers become tensors. */
typedef struct leaves {
  kiln_mem *mem;
  int count, most;
  kiln_tensor **tensors; /* retained */
} leaves;

static kiln_status *add_leaf(leaves *l, kiln_tensor *t) {
  if (l->count == l->most) {
    kiln_tensor_release(t);
    return KILN_ERROR(KILN_INVALID_ARGUMENT,
                      "the result has more than the %d tensors that it had "
                      "when it was compiled",
                      l->most);
  }
  l->tensors[l->count++] = t;
  return NULL;
}

static kiln_status *collect(leaves *l, kiln_ivalue v) {
  kiln_tensor *t;
  switch (v.tag) {
    case KILN_TAG_NONE: return NULL;
    case KILN_TAG_TENSOR: return add_leaf(l, kiln_tensor_retain(v.u.tensor));
    case KILN_TAG_INT:
      KILN_TRY(kiln_tensor_scalar_i64(l->mem, KILN_DTYPE_I64, v.u.i, &t));
      return add_leaf(l, t);
    case KILN_TAG_BOOL:
      KILN_TRY(kiln_tensor_scalar_i64(l->mem, KILN_DTYPE_BOOL, v.u.b, &t));
      return add_leaf(l, t);
    case KILN_TAG_FLOAT:
      KILN_TRY(kiln_tensor_scalar_f64(l->mem, KILN_DTYPE_F64, v.u.f, &t));
      return add_leaf(l, t);
    case KILN_TAG_TUPLE:
    case KILN_TAG_LIST:
    case KILN_TAG_DICT: {
      const int step = v.tag == KILN_TAG_DICT ? 2 : 1; /* of a dict the values */
      for (int64_t i = step - 1; i < kiln_child_count(v); i += step)
        KILN_TRY(collect(l, kiln_child_at(v, i)));
      return NULL;
    }
    default: return KILN_ERROR(KILN_UNSUPPORTED, "the result holds what is no tensor");
  }
}

static kiln_status *write_output(kiln_call *call, int index, kiln_tensor *t, kiln_aot_tensor *out) {
  const int rank = kiln_tensor_rank(t);
  const size_t bytes = (size_t)t->numel * kiln_tensor_item_size(t);
  if (rank > KILN_AOT_RANK)
    return KILN_ERROR(KILN_UNSUPPORTED, "output %d has rank %d, of at most %d", index, rank,
                      KILN_AOT_RANK);
  out->dtype = kiln_tensor_dtype(t);
  out->rank = rank;
  memcpy(out->sizes, kiln_tensor_sizes(t), sizeof *out->sizes * (size_t)rank);
  if (bytes > out->bytes || (!out->data && bytes))
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "output %d takes %zu bytes, and there is room for %zu",
                      index, bytes, out->data ? out->bytes : 0);
  if (bytes == 0 || kiln_tensor_data(t) == out->data) return NULL;
  kiln_tensor *dense;
  KILN_TRY(kiln_tensor_contiguous(&call->cache, t, &dense));
  memcpy(out->data, kiln_tensor_data(dense), bytes);
  kiln_tensor_release_to(&call->cache, dense);
  return NULL;
}

/* Sizes of all, also where some have no room. */
static kiln_status *write_leaves(kiln_call *call, const leaves *l, kiln_aot_tensor *outputs) {
  kiln_status *status = NULL;
  for (int i = 0; i < l->count; i++) {
    kiln_status *written = write_output(call, i, l->tensors[i], &outputs[i]);
    if (status)
      kiln_status_destroy(written);
    else
      status = written;
  }
  return status;
}

static kiln_status *write_outputs(kiln_call *call, kiln_ivalue result, kiln_aot_tensor *outputs,
                                  int count) {
  kiln_mem *mem = call->env->mem;
  kiln_tensor *few[FEW];
  leaves l = {.mem = mem, .most = count, .tensors = few};
  const size_t bytes = sizeof *l.tensors * (size_t)count;
  if (count > FEW) l.tensors = kiln_mem_alloc(mem, bytes);
  if (!l.tensors) return kiln_status_oom();
  kiln_status *status = collect(&l, result);
  if (!status && l.count != count)
    status = KILN_ERROR(KILN_INVALID_ARGUMENT, "the result has %d tensors, of %d", l.count, count);
  if (!status) status = write_leaves(call, &l, outputs);
  for (int i = 0; i < l.count; i++) kiln_tensor_release_to(&call->cache, l.tensors[i]);
  if (l.tensors != few) kiln_mem_free(mem, l.tensors, bytes);
  return status;
}

/* -- Running -- */

static kiln_status *run(kiln_aot_model *m, kiln_call *call, const kiln_ivalue *inputs,
                        kiln_ivalue *out_result) {
  const kiln_aot_program *p = m->program;
  kiln_ivalue few[FEW], *args = few;
  const int count = p->arg_count + 1;
  if (count > FEW) {
    args = kiln_mem_alloc(m->env->mem, sizeof *args * (size_t)count);
    if (!args) return kiln_status_oom();
  }
  kiln_status *status = kiln__aot_value(m, p->self, inputs, &args[0]);
  int made = 1;
  for (; !status && made < count; made++)
    status = kiln__aot_value(m, p->args[made - 1], inputs, &args[made]);
  if (!status) {
    const uint64_t ticket = kiln_epoch_enter(&m->epoch, 0);
    kiln_budget *outer = kiln_budget_enter(&call->budget);
    call->epoch = &m->epoch;
    status = kiln_interp_run(call, &m->callables[p->entry].callable, args, count, out_result);
    kiln_budget_leave(outer);
    kiln_epoch_leave(&m->epoch, ticket);
  }
  while (made-- > 0) kiln_ivalue_release_to(&call->cache, args[made]);
  if (args != few) kiln_mem_free(m->env->mem, args, sizeof *args * (size_t)count);
  return status;
}

static kiln_status *take_call(kiln_aot_model *m, kiln_call **out_call) {
  pthread_mutex_lock(&m->lock);
  kiln_call *call = m->idle_count > 0 ? m->idle[--m->idle_count] : NULL;
  if (!m->program->writes) pthread_mutex_unlock(&m->lock);
  kiln_status *status = NULL;
  if (!call) {
    status = kiln_call_create_for(m->env, m->program->dispatch, &call);
    if (!status) {
      call->types = m->table;
      call->plans_memory = true;
      call->random = m->random;
    }
  }
  if (status && m->program->writes) pthread_mutex_unlock(&m->lock);
  *out_call = call;
  return status;
}

static void leave_call(kiln_aot_model *m, kiln_call *call) {
  kiln_possible_roots_collect(m->env->mem, &call->roots);
  if (!m->program->writes) pthread_mutex_lock(&m->lock);
  const bool kept = m->idle_count < KILN__AOT_IDLE;
  if (kept) m->idle[m->idle_count++] = call;
  pthread_mutex_unlock(&m->lock);
  if (!kept) kiln_call_destroy(call);
}

static kiln_status *call_with(kiln_aot_model *m, const kiln_aot_tensor *given, int input_count,
                              kiln_ivalue *inputs, kiln_aot_tensor *outputs, int output_count) {
  kiln_call *call;
  kiln_ivalue result = kiln_none();
  kiln_status *status = read_inputs(m, given, input_count, inputs);
  if (!status) {
    status = take_call(m, &call);
    if (!status) {
      kiln_call_begin(call, NULL);
      status = run(m, call, inputs, &result);
      if (!status) status = write_outputs(call, result, outputs, output_count);
      kiln_ivalue_release_to(&call->cache, result);
      leave_call(m, call);
    }
  }
  kiln_status *back = give_inputs_back(inputs, input_count);
  if (status) kiln_status_destroy(back);
  return status ? status : back;
}

kiln_status *kiln_aot_call(kiln_aot_model *m, const kiln_aot_tensor *given, int input_count,
                           kiln_aot_tensor *outputs, int output_count) {
  if (!m) return KILN_ERROR(KILN_INVALID_ARGUMENT, "kiln_aot_call: the model is NULL");
  const kiln_aot_program *p = m->program;
  if (input_count != p->input_count || output_count != p->output_count)
    return KILN_ERROR(KILN_INVALID_ARGUMENT,
                      "%s takes %d inputs and gives %d outputs: called with %d and %d", p->name,
                      p->input_count, p->output_count, input_count, output_count);
  if ((input_count && !given) || (output_count && !outputs))
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s: an array is NULL", p->name);
  kiln_ivalue few[FEW], *inputs = few;
  const size_t bytes = sizeof *inputs * (size_t)input_count;
  if (input_count > FEW) {
    inputs = kiln_mem_alloc(m->env->mem, bytes);
    if (!inputs) return kiln_status_oom();
  }
  for (int i = 0; i < input_count; i++) inputs[i] = kiln_none();
  kiln_status *status = call_with(m, given, input_count, inputs, outputs, output_count);
  if (inputs != few) kiln_mem_free(m->env->mem, inputs, bytes);
  return status;
}
