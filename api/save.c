/* save.c: models, instances and builders to TorchScript archives. */
#include "frontend/torchscript/save.h"

#include "api/builder.h"

/* To a file, or to a function of the host. */
typedef struct save_job {
  kiln__saver saver;
  kiln_torchscript_save_options options;
  bool to_file;
  const char *path;
  kiln_write_fn write;
  void *user;
} save_job;

kiln_status *kiln__object_state(void *user, kiln_ivalue object, kiln_ivalue *out_state) {
  const kiln__saver *saver = user;
  kiln_model *model = saver->instance->model;
  kiln_function *function = kiln_class_find_method(object.u.object->type, KILN_STR("__getstate__"));
  kiln_call *call = NULL;
  KILN_TRY(kiln__model_make_call(model, &call));
  kiln_call_begin(call, saver->limits);
  call->budget.deadline_ns = saver->deadline_ns;
  kiln_status *status = kiln_jit_call(model->jit, call, function, &object, 1, out_state);
  kiln_call_destroy(call);
  return status ? kiln_status_note(status, "in %s", function->qualname) : NULL;
}

static kiln_status *write_to(const kiln_sink *sink, void *arg) {
  save_job *job = arg;
  const kiln_instance *instance = job->saver.instance;
  return kiln_torchscript_save(instance->model->context->env, instance->model->script,
                               instance->root, &job->options, sink);
}

static kiln_status *write_by_host(void *user, const void *data, size_t size) {
  const save_job *job = user;
  if (job->write(job->user, data, size) == 0) return NULL;
  return KILN_ERROR(KILN_INVALID_FILE, "the host could not take the archive's bytes");
}

static kiln_status *init_job(save_job *job, kiln_instance *instance,
                             const kiln_save_options *given) {
  kiln_save_options read, *options = &read;
  job->saver.instance = instance;
  job->options.get_state = kiln__object_state;
  job->options.user = &job->saver;
  if (job->to_file && (!job->path || !*job->path)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a path is needed");
  }
  if (!job->to_file && !job->write) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a function that takes the bytes is needed");
  }
  KILN_ABI_READ(kiln_save_options, given, options);
  if (options->extra_count < 0 || (options->extra_count > 0 && !options->extras)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%d extra files are wanted, and none is given",
                      options->extra_count);
  }
  job->options.extras = options->extras;
  job->options.extra_count = options->extra_count;
  job->options.drop_extras = options->drop_extras != 0;
  job->options.reprint = options->reprint != 0;
  return NULL;
}

/* Nothing else may run on the instance meanwhile. */
static kiln_status *save_instance(kiln_instance *instance, save_job *job,
                                  const kiln_save_options *options) {
  const kiln_sink sink = {job, write_by_host};
  KILN_TRY(init_job(job, instance, options));
  KILN_TRY(kiln__instance_occupy(instance,
                                 job->to_file ? "kiln_instance_save" : "kiln_instance_save_to"));
  kiln_status *status =
      job->to_file ? kiln_file_write(instance->model->context->env->mem, job->path, write_to, job)
                   : write_to(&sink, job);
  kiln__instance_vacate(instance);
  return status && job->to_file ? kiln_status_note(status, "saving %s", job->path) : status;
}

/* As a new instance would be. */
static kiln_status *save_model(kiln_model *model, save_job *job, const kiln_save_options *options) {
  kiln_instance *instance = NULL;
  KILN_TRY(kiln_instance_create(model, &instance));
  kiln_status *status = save_instance(instance, job, options);
  kiln_instance_release(instance);
  return status;
}

/* As the model would be that the builder makes. */
static kiln_status *save_builder(kiln_builder *builder, save_job *job,
                                 const kiln_save_options *options) {
  kiln_builder *copy = NULL;
  kiln_model *model = NULL;
  KILN_TRY(kiln__builder_copy(builder, &copy));
  kiln_status *status = kiln_builder_finish(copy, &model);
  kiln_builder_destroy(copy);
  if (!status) status = save_model(model, job, options);
  kiln_model_release(model);
  return status;
}

#define SAVE(what)                                                                       \
  kiln_status *kiln_##what##_save(kiln_##what *what, const char *path,                   \
                                  const kiln_save_options *options) {                    \
    KILN_NEEDS(what);                                                                    \
    return save_##what(what, &(save_job){.to_file = true, .path = path}, options);       \
  }                                                                                      \
  kiln_status *kiln_##what##_save_to(kiln_##what *what, kiln_write_fn write, void *user, \
                                     const kiln_save_options *options) {                 \
    KILN_NEEDS(what);                                                                    \
    return save_##what(what, &(save_job){.write = write, .user = user}, options);        \
  }
SAVE(instance)
SAVE(model)
SAVE(builder)
