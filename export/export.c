/* export.c: the program, its weights and its files, in this order:
 *   callables and plans are found; self and the arguments become values; plans are walked over for
 *   what they read and keep; the weights' file is laid out; all is put into the image. */
#include "export/export.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/scope.h"
#include "base/sink.h"
#include "export/internal.h"

/* -- The weights' file -- */

/* Appends the bytes at a multiple of 64; gives the place in the file. */
static int64_t put_weights(kiln__exporter *x, const void *bytes, size_t size) {
  const kiln__out_bytes piece = {.bytes = bytes, .size = size, .at = x->weights_end};
  kiln_vec_push(x->arena, &x->pieces, piece);
  x->weights_end += (int64_t)((size + KILN_AOT_ALIGN - 1) & ~(size_t)(KILN_AOT_ALIGN - 1));
  return piece.at;
}

/* A copy serves all that keep it: by its address. */
static void put_copies(kiln__exporter *x) {
  kiln_map places = kiln_map_in(x->arena);
  for (int i = 0; i < x->plans.count; i++) {
    kiln__out_plan *p = x->plans.data[i];
    for (int k = 0; k < p->packs.count; k++) {
      void *known = kiln_map_find_ptr(&places, p->copies.data[k]);
      int64_t at = (int64_t)(intptr_t)known;
      if (!known) {
        at = put_weights(x, p->copies.data[k], (size_t)p->packs.data[k].bytes);
        kiln_map_set_ptr(&places, p->copies.data[k], (void *)(intptr_t)at);
      }
      p->packs.data[k].at = at;
    }
  }
}

static void put_storages(kiln__exporter *x) {
  for (int i = 0; i < x->storages.count; i++) {
    kiln__out_storage *s = &x->storages.data[i];
    s->image.bytes = (int64_t)s->storage->bytes;
    s->image.is_there = s->is_needed;
    if (s->is_needed) {
      s->image.at = put_weights(x, s->storage->data, s->storage->bytes);
    } else {
      s->image.at = x->absent_bytes;
      x->absent_bytes +=
          (int64_t)((s->storage->bytes + KILN_AOT_ALIGN) & ~(size_t)(KILN_AOT_ALIGN - 1));
    }
  }
}

static const kiln_aot_storage *put_storage_images(kiln__exporter *x) {
  const kiln_aot_storage *at = kiln__image_put(&x->image, NULL, 0, 8);
  for (int i = 0; i < x->storages.count; i++)
    (void)KILN__ARRAY(&x->image, &x->storages.data[i].image, 1);
  return at;
}

/* The digest is one of the pieces' digests. */
static kiln_aot_head head_of(const kiln__exporter *x) {
  kiln_digest *digests = KILN_NEW_ARRAY(x->arena, kiln_digest, x->pieces.count + 1);
  for (int i = 0; i < x->pieces.count; i++)
    digests[i] = kiln_digest_bytes(x->pieces.data[i].bytes, x->pieces.data[i].size);
  const size_t bytes = sizeof *digests * (size_t)x->pieces.count;
  return (kiln_aot_head){.magic = {'K', 'I', 'L', 'N', 'A', 'O', 'T', '1'},
                         .bytes = (uint64_t)x->weights_end,
                         .digest = kiln_digest_bytes(digests, bytes)};
}

/* -- The program -- */

static const kiln_aot_input *put_inputs(kiln__exporter *x) {
  kiln_aot_input *own = KILN_NEW_ARRAY(x->arena, kiln_aot_input, x->inputs.count);
  for (int i = 0; i < x->inputs.count; i++) own[i].tag = x->inputs.data[i].tag;
  kiln_aot_input *at = kiln__image_put(&x->image, own, sizeof *own * (size_t)x->inputs.count, 8);
  for (int i = 0; i < x->inputs.count; i++)
    kiln__image_set(&x->image, &at[i].name, kiln__image_text(&x->image, x->inputs.data[i].name));
  return at;
}

/* What a context is to be told beside its threads. */
static const char *const *put_options(kiln__exporter *x) {
  const char **own = KILN_NEW_ARRAY(x->arena, const char *, 2);
  const char *text = kiln__image_text(&x->image, "KILN_MATMUL=bf16");
  if (x->request->jit->env.flags.matmul != 0) own[0] = text;
  return KILN__PUT(&x->image, own, 2, own);
}

static const char *dispatch_symbol(const kiln_dispatch *dispatch) {
  return dispatch->isa == KILN_ISA_V2     ? "kiln__dispatch_v2"
         : dispatch->isa == KILN_ISA_AVX2 ? "kiln__dispatch_avx2"
                                          : "kiln__dispatch_avx512";
}

static kiln_status *put_program(kiln__exporter *x, int32_t self) {
  const kiln_export *r = x->request;
  struct kiln_aot_program *own = KILN_NEW(x->arena, struct kiln_aot_program);
  KILN_TRY(kiln__export_plans_at(x, &own->plans));
  own->callables = kiln__export_callables_at(x);
  own->methods = kiln__export_methods_at(x);
  own->inputs = put_inputs(x);
  own->options = put_options(x);
  own->args = KILN__ARRAY(&x->image, x->args.data, x->args.count);
  if (!own->args) own->args = x->begin; /* of none: an address all the same */
  own->name = kiln__image_text(&x->image, r->name);
  own->method = kiln__image_text(&x->image, r->method_name);
  own->types = kiln__export_types_at(x);
  own->values = kiln__export_values_at(x);
  own->storages = put_storage_images(x);
  own->mark = kiln__image_symbol(&x->image, KILN_AOT_MARK_NAME);
  own->dispatch = kiln__image_symbol(&x->image, dispatch_symbol(r->call->dispatch));
  own->isa = r->jit->env.isa;
  own->needs_tiles = r->jit->env.tiles;
  x->head = head_of(x);
  own->weights = x->head.digest;
  own->weights_bytes = x->weights_end;
  own->absent_bytes = x->absent_bytes;
  own->type_count = x->types.count;
  own->storage_count = x->storages.count;
  own->value_count = x->values.count;
  own->plan_count = x->plans.count;
  own->callable_count = x->callables.count;
  own->method_count = x->methods.count;
  own->self = self;
  own->arg_count = x->args.count;
  own->input_count = x->inputs.count;
  own->output_count = x->output_words.count;
  own->writes = r->writes;
  x->program = KILN__PUT(&x->image, own, 1, &own->name, &own->method, &own->options, &own->types,
                         &own->storages, &own->values, &own->plans, &own->callables, &own->methods,
                         &own->args, &own->inputs, &own->mark, &own->dispatch);
  return NULL;
}

/* -- Files -- */

/* The body of the weights' file; `arg` is the exporter. */
static kiln_status *write_weights(const kiln_sink *sink, void *arg) {
  static const char zeros[KILN_AOT_ALIGN];
  const kiln__exporter *x = arg;
  int64_t at = sizeof x->head;
  KILN_TRY(kiln_sink_put(sink, &x->head, sizeof x->head));
  for (int i = 0; i < x->pieces.count; i++) {
    const kiln__out_bytes *piece = &x->pieces.data[i];
    KILN_TRY(kiln_sink_put(sink, zeros, (size_t)(piece->at - at)));
    KILN_TRY(kiln_sink_put(sink, piece->bytes, piece->size));
    at = piece->at + (int64_t)piece->size;
  }
  return kiln_sink_put(sink, zeros, (size_t)(x->weights_end - at));
}

/* `arg` is a kiln_str. */
static kiln_status *write_text(const kiln_sink *sink, void *arg) {
  const kiln_str *text = arg;
  return kiln_sink_put(sink, text->data, text->len);
}

static kiln_status *write_file(const kiln__exporter *x, const char *ending,
                               kiln_status *(*body)(const kiln_sink *sink, void *arg), void *arg) {
  const char *path =
      kiln_arena_printf(x->arena, "%s/%s.%s", x->request->folder, x->request->name, ending);
  return kiln_file_write(x->request->jit->env.mem, path, body, arg);
}

static kiln_status *write_files(kiln__exporter *x) {
  const char *folder = x->request->folder;
  const char *symbol = kiln_arena_printf(x->arena, "%s_program", x->request->name);
  kiln_str header = kiln__export_header(x);
  kiln_str object = kiln__image_object(&x->image, symbol, x->program, sizeof *x->program);
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return KILN_ERROR(KILN_INVALID_FILE, "%s: %s", folder, strerror(errno));
  KILN_TRY(write_file(x, "weights", write_weights, x));
  KILN_TRY(write_file(x, "o", write_text, &object));
  return write_file(x, "h", write_text, &header);
}

/* -- All of it -- */

static kiln_status *export_in(const kiln_export *request, kiln_arena *arena) {
  kiln__exporter *x = KILN_NEW(arena, kiln__exporter);
  *x = (kiln__exporter){.request = request,
                        .arena = arena,
                        .image = kiln__image_in(arena),
                        .weights_end = sizeof(kiln_aot_head)};
  kiln_map *maps[] = {&x->value_at,  &x->type_at,   &x->storage_at, &x->callable_at, &x->plan_at,
                      &x->kernel_at, &x->code_at,   &x->source_at,  &x->range_at,    &x->written,
                      &x->needed,    &x->method_at, &x->compiled};
  for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) *maps[i] = kiln_map_in(arena);
  x->begin = kiln__image_text(&x->image, KILN_VERSION_STRING);
  int32_t self;
  KILN_TRY(kiln__export_value(x, request->self, &self)); /* with the classes that have methods */
  KILN_TRY(kiln__export_callables(x));
  for (int i = 0; i < x->plans.count; i++) {
    const kiln_plan *plan = x->plans.data[i]->plan;
    int32_t number;
    for (int k = 0; k < plan->constant_count; k++) /* whose storages are looked at then */
      if (plan->constants[k].tag >= KILN_TAG__COUNTED)
        KILN_TRY(kiln__export_value(x, plan->constants[k], &number));
  }
  KILN_TRY(kiln__export_arguments(x));
  KILN_TRY(kiln__export_known(x));
  put_copies(x);
  put_storages(x);
  KILN_TRY(put_program(x, self));
  return write_files(x);
}

static kiln_status *export_scoped(const kiln_export *request) {
  return export_in(request, kiln_arena_scoped(request->jit->env.mem));
}
static kiln_status *export_protected(const kiln_export *request) {
  KILN_PROTECT(export_scoped(request));
}

kiln_status *kiln_export_program(const kiln_export *request) {
  kiln_epoch *epoch = &request->jit->epoch; /* no variant goes meanwhile */
  const uint64_t ticket = kiln_epoch_enter(epoch, 0);
  request->call->epoch = epoch;
  kiln_status *status = export_protected(request);
  request->call->epoch = NULL;
  kiln_epoch_leave(epoch, ticket);
  return status;
}
