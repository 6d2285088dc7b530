/* structs.c: what a plan points to, as it lies in memory: kernels, guards, groups, ranges.
 * Addresses of this process are never written. */
#include "export/internal.h"

static size_t put_array(kiln__exporter *x, const void *data, size_t each, int count) {
  return count && data ? kiln__image_put(&x->image, data, each * (size_t)count, 8) : 0;
}
static void point(kiln__exporter *x, size_t at, size_t target) {
  if (target) kiln__image_point(&x->image, at, target);
}
static void point_text(kiln__exporter *x, size_t at, const char *text) {
  if (text) kiln__image_point(&x->image, at, kiln__image_text(&x->image, text));
}

/* -- Kernels -- */

kiln_status *kiln__export_kernel(kiln__exporter *x, const kiln_kernel *kernel, size_t *out_place) {
  void *known = kiln_map_find_ptr(&x->kernel_at, kernel);
  if (known) {
    *out_place = (size_t)(uintptr_t)known - 1;
    return NULL;
  }
  const kiln_registry *registry = x->request->jit->unit->registry;
  const char *name = kernel->body ? kiln_registry_kernel_name(registry, kernel) : NULL;
  if (kernel->body && !name)
    return KILN_ERROR(KILN_UNSUPPORTED,
                      "%s: a host's operator, or one on quantised, sparse or "
                      "nested tensors, has no place in a program",
                      kernel->name);
  kiln_kernel image;
  memset(&image, 0, sizeof image);
  image.arg_count = kernel->arg_count;
  image.out_count = kernel->out_count;
  image.dest_arg = kernel->dest_arg;
  image.reuse = kernel->reuse;
  image.refuses = kernel->refuses;
  image.nested = kernel->nested;
  image.quant = kernel->quant;
  image.devices = kernel->devices;
  const size_t at = KILN__PUT(&x->image, image);
  point_text(x, at + offsetof(kiln_kernel, name), kernel->name);
  if (name)
    kiln__image_name(&x->image, at + offsetof(kiln_kernel, body),
                     kiln_arena_printf(x->arena, "kiln__kernel_%s", name));
  if (!kernel->body) point_text(x, at + offsetof(kiln_kernel, user), kernel->user);
  kiln_map_set_ptr(&x->kernel_at, kernel, (void *)(uintptr_t)(at + 1));
  *out_place = at;
  return NULL;
}

/* -- Guards -- */

static size_t put_program(kiln__exporter *x, const kiln_dim_program *program) {
  return program ? kiln__image_put(&x->image, program, program->bytes, 8) : 0;
}

static size_t put_orders(kiln__exporter *x, const kiln_guard_symbols *s) {
  const size_t at = kiln__image_put(&x->image, "", 0, 8);
  for (int i = 0; i < s->order_count; i++) {
    kiln_guard_order image;
    memset(&image, 0, sizeof image);
    image.place = s->orders[i].place;
    KILN__PUT(&x->image, image);
  }
  for (int i = 0; i < s->order_count; i++)
    point_text(x, at + (size_t)i * sizeof(kiln_guard_order) + offsetof(kiln_guard_order, words),
               s->orders[i].words);
  return at;
}

static size_t put_words(kiln__exporter *x, const char *const *words, int count) {
  if (!words) return 0;
  const char **none = KILN_NEW_ARRAY(x->arena, const char *, count);
  const size_t at = put_array(x, none, sizeof *none, count);
  for (int i = 0; i < count; i++) point_text(x, at + (size_t)i * sizeof *none, words[i]);
  return at;
}

static size_t put_symbols(kiln__exporter *x, const kiln_guard_desc *guard) {
  const kiln_guard_symbols *s = guard->symbols;
  if (!s) return 0;
  kiln_guard_symbols image;
  memset(&image, 0, sizeof image);
  image.symbol_count = s->symbol_count;
  image.from_one = s->from_one;
  image.relation_count = s->relation_count;
  image.order_count = s->order_count;
  const size_t bind = put_array(x, s->bind, sizeof *s->bind, s->symbol_count);
  const size_t relations = put_array(x, s->relations, sizeof *s->relations, s->relation_count);
  const size_t orders = put_orders(x, s), program = put_program(x, s->program);
  const size_t words = put_words(x, s->words, guard->count);
  const size_t at = KILN__PUT(&x->image, image);
  point(x, at + offsetof(kiln_guard_symbols, bind), bind);
  point(x, at + offsetof(kiln_guard_symbols, relations), relations);
  point(x, at + offsetof(kiln_guard_symbols, orders), orders);
  point(x, at + offsetof(kiln_guard_symbols, program), program);
  point(x, at + offsetof(kiln_guard_symbols, words), words);
  return at;
}

static size_t put_entries(kiln__exporter *x, const kiln_guard_desc *guard) {
  size_t *dims = KILN_NEW_ARRAY(x->arena, size_t, guard->count);
  for (int i = 0; i < guard->count; i++)
    dims[i] = put_array(x, guard->entries[i].dims, sizeof(kiln_dim), 2 * guard->entries[i].rank);
  const size_t at = kiln__image_put(&x->image, "", 0, 8);
  for (int i = 0; i < guard->count; i++) {
    const kiln_guard_entry *e = &guard->entries[i];
    kiln_guard_entry image;
    memset(&image, 0, sizeof image);
    image.key_word = e->key_word;
    image.key_mask = e->key_mask;
    image.rank = e->rank;
    image.check_dims = e->check_dims;
    image.some = e->some;
    KILN__PUT(&x->image, image);
  }
  for (int i = 0; i < guard->count; i++)
    point(x, at + (size_t)i * sizeof(kiln_guard_entry) + offsetof(kiln_guard_entry, dims), dims[i]);
  return at;
}

size_t kiln__guard_images(kiln__exporter *x, const kiln_guard_desc *guards, int count) {
  size_t *parts = KILN_NEW_ARRAY(x->arena, size_t, 3 * count);
  for (int i = 0; i < count; i++) {
    parts[3 * i] = put_entries(x, &guards[i]);
    parts[3 * i + 1] = put_array(x, guards[i].at, sizeof *guards[i].at, guards[i].count);
    parts[3 * i + 2] = put_symbols(x, &guards[i]);
  }
  const size_t at = kiln__image_put(&x->image, "", 0, 8);
  for (int i = 0; i < count; i++) {
    kiln_guard_desc image;
    memset(&image, 0, sizeof image);
    image.count = guards[i].count;
    image.symbols_at = guards[i].symbols_at;
    image.hash = guards[i].hash;
    KILN__PUT(&x->image, image);
  }
  for (int i = 0; i < count; i++) {
    const size_t own = at + (size_t)i * sizeof(kiln_guard_desc);
    point(x, own + offsetof(kiln_guard_desc, entries), parts[3 * i]);
    point(x, own + offsetof(kiln_guard_desc, at), parts[3 * i + 1]);
    point(x, own + offsetof(kiln_guard_desc, symbols), parts[3 * i + 2]);
  }
  return at;
}

void kiln__guard_words(kiln_text *text, const kiln_guard_desc *guard, const bool *shown) {
  const char *between = "(";
  for (int i = 0; i < guard->count; i++) {
    const kiln_guard_entry *e = &guard->entries[i];
    const kiln_tensor_key key = {.word = e->key_word};
    const char *known = guard->symbols && guard->symbols->words ? guard->symbols->words[i] : NULL;
    const kiln_tensor_detail detail = {.dtype = key.f.dtype,
                                       .rank = (int8_t)(e->check_dims ? e->rank : -1),
                                       .requires_grad = -1,
                                       .undefined = (int8_t)key.f.undefined,
                                       .device = -1,
                                       .device_index = -1,
                                       .sizes = e->dims};
    if (!shown[i]) continue;
    kiln_text_puts(text, between);
    if (known)
      kiln_text_puts(text, known);
    else
      kiln_tensor_detail_print(text, &detail, 1);
    between = ", ";
  }
  kiln_text_puts(text, *between == '(' ? "()" : ")");
}

/* -- Groups -- */

static kiln_status *put_code(kiln__exporter *x, const kiln_group *group, size_t *out_place) {
  void *known = kiln_map_find_ptr(&x->code_at, (uintptr_t)group->fn);
  if (known) {
    *out_place = (size_t)(uintptr_t)known - 1;
    return NULL;
  }
  const kiln_compiled *code = kiln_map_find_ptr(&x->compiled, (uintptr_t)group->fn);
  if (!code || !code->object)
    return KILN_ERROR(KILN_UNSUPPORTED, "%s has no machine code: a program needs LLVM's back end",
                      group->name);
  const kiln_code_image image = kiln_compiled_image(code);
  const char *name = kiln_arena_printf(x->arena, "%s_%s", x->request->name, group->name);
  const size_t at = kiln__image_code(&x->image, name, image.bytes, image.size);
  kiln_map_set_ptr(&x->code_at, (uintptr_t)group->fn, (void *)(uintptr_t)(at + image.entry + 1));
  *out_place = at + image.entry;
  return NULL;
}

static size_t put_outputs(kiln__exporter *x, const kiln_group *group) {
  const int count = group->output_count;
  size_t *dims = KILN_NEW_ARRAY(x->arena, size_t, 2 * count);
  for (int i = 0; i < count; i++) {
    const kiln_group_output *out = &group->outputs[i];
    dims[2 * i] = put_array(x, out->sizes, sizeof(kiln_dim), out->rank);
    dims[2 * i + 1] = put_array(x, out->strides, sizeof(kiln_dim), out->rank);
  }
  const size_t at = kiln__image_put(&x->image, "", 0, 8);
  for (int i = 0; i < count; i++) {
    const kiln_group_output *out = &group->outputs[i];
    kiln_group_output image;
    memset(&image, 0, sizeof image);
    image.dtype = out->dtype;
    image.rank = out->rank;
    image.first = out->first;
    image.contiguous = out->contiguous;
    image.border = out->border;
    image.donors = out->donors;
    image.donor = out->donor;
    KILN__PUT(&x->image, image);
  }
  for (int i = 0; i < count; i++) {
    const size_t own = at + (size_t)i * sizeof(kiln_group_output);
    point(x, own + offsetof(kiln_group_output, sizes), dims[2 * i]);
    point(x, own + offsetof(kiln_group_output, strides), dims[2 * i + 1]);
  }
  return at;
}

/* A struct without addresses whose padding is not set by whoever made it. */
static kiln_kernel_pack clean_pack(const kiln_kernel_pack *p) {
  kiln_kernel_pack image;
  memset(&image, 0, sizeof image);
  image.input = p->input;
  image.item_size = p->item_size;
  image.rank = p->rank;
  image.outer = p->outer;
  memcpy(image.sizes, p->sizes, sizeof image.sizes);
  memcpy(image.strides, p->strides, sizeof image.strides);
  memcpy(image.before, p->before, sizeof image.before);
  memcpy(image.between, p->between, sizeof image.between);
  memcpy(image.after, p->after, sizeof image.after);
  image.offset = p->offset;
  image.columns = p->columns;
  image.column = p->column;
  image.panel = p->panel;
  image.columns_before = p->columns_before;
  image.columns_between = p->columns_between;
  image.of_tensor = p->of_tensor;
  memcpy(image.dims, p->dims, sizeof image.dims);
  image.columns_after = p->columns_after;
  image.as_it_lies = p->as_it_lies;
  image.rounds = p->rounds;
  image.pairs = p->pairs;
  image.whole = p->whole;
  image.transform = p->transform;
  image.form = p->form;
  return image;
}

static size_t put_packs(kiln__exporter *x, const kiln_group *group) {
  size_t *packs = KILN_NEW_ARRAY(x->arena, size_t, group->pack_count);
  for (int i = 0; i < group->pack_count; i++) {
    const kiln_kernel_pack pack = clean_pack(group->packs[i].pack);
    packs[i] = KILN__PUT(&x->image, pack);
  }
  const size_t at = kiln__image_put(&x->image, "", 0, 8);
  for (int i = 0; i < group->pack_count; i++) {
    kiln_group_pack image;
    memset(&image, 0, sizeof image);
    image.operand = group->packs[i].operand;
    image.border = group->packs[i].border;
    KILN__PUT(&x->image, image);
  }
  for (int i = 0; i < group->pack_count; i++) {
    const size_t own = at + (size_t)i * sizeof(kiln_group_pack);
    point(x, own + offsetof(kiln_group_pack, pack), packs[i]);
    /* Of weights: any address will do, aot/ puts its own slot there. */
    if (group->packs[i].slot) point(x, own + offsetof(kiln_group_pack, slot), packs[i]);
  }
  return at;
}

static size_t put_heavy(kiln__exporter *x, const kiln_group_heavy *h) {
  if (!h) return 0;
  kiln_group_heavy image;
  memset(&image, 0, sizeof image);
  image.machine = h->machine;
  image.winograd = h->winograd;
  image.blocked = h->blocked;
  image.alone = h->alone;
  image.x = h->x;
  image.weight = h->weight;
  image.bias = h->bias;
  image.given = h->given;
  image.pack = clean_pack(&h->pack);
  return KILN__PUT(&x->image, image);
}

static kiln_status *put_group_parts(kiln__exporter *x, const kiln_group *g, size_t parts[7]) {
  if (g->device != &kiln_device_cpu)
    return KILN_ERROR(KILN_UNSUPPORTED, "%s runs on a device that programs do not have", g->name);
  KILN_TRY(put_code(x, g, &parts[0]));
  parts[1] = put_outputs(x, g);
  parts[2] = g->shape ? kiln__image_put(&x->image, g->shape, g->shape->bytes, 8) : 0;
  parts[3] = put_program(x, g->dims);
  parts[4] = g->pack_count ? put_packs(x, g) : 0;
  parts[5] = put_heavy(x, g->heavy);
  parts[6] = kiln__image_text(&x->image, g->name);
  return NULL;
}

kiln_status *kiln__export_groups(kiln__exporter *x, const kiln_plan *plan, size_t *out_place) {
  enum { PARTS = 7 };
  size_t(*parts)[PARTS] = (void *)KILN_NEW_ARRAY(x->arena, size_t, PARTS * plan->group_count);
  for (int i = 0; i < plan->group_count; i++)
    KILN_TRY(put_group_parts(x, &plan->groups[i], parts[i]));
  const size_t at = kiln__image_put(&x->image, "", 0, 8);
  for (int i = 0; i < plan->group_count; i++) {
    const kiln_group *g = &plan->groups[i];
    kiln_group image;
    memset(&image, 0, sizeof image);
    image.input_count = g->input_count;
    image.output_count = g->output_count;
    image.work = g->work;
    image.symbols_at = g->symbols_at;
    image.pack_count = g->pack_count;
    KILN__PUT(&x->image, image);
  }
  for (int i = 0; i < plan->group_count; i++) {
    const size_t own = at + (size_t)i * sizeof(kiln_group);
    kiln__image_point_code(&x->image, own + offsetof(kiln_group, fn), parts[i][0]);
    kiln__image_name(&x->image, own + offsetof(kiln_group, device), "kiln_device_cpu");
    point(x, own + offsetof(kiln_group, outputs), parts[i][1]);
    point(x, own + offsetof(kiln_group, shape), parts[i][2]);
    point(x, own + offsetof(kiln_group, dims), parts[i][3]);
    point(x, own + offsetof(kiln_group, packs), parts[i][4]);
    point(x, own + offsetof(kiln_group, heavy), parts[i][5]);
    point(x, own + offsetof(kiln_group, name), parts[i][6]);
  }
  *out_place = at;
  return NULL;
}

/* -- Places in the model's source -- */

/* The line that a range begins in, of the program that the model was made from where it is known: a
 * source of its own, so that a program has the lines that its errors show and no others. */
static kiln_source_range line_of(kiln__exporter *x, const kiln_source_range *r,
                                 kiln_source *out_source) {
  const kiln_source *s = r->source;
  kiln_original *original = KILN_NEW(x->arena, kiln_original);
  if (s->origin && s->origin->find(s->origin, r->begin, original)) {
    *out_source = (kiln_source){.name = kiln_str_from(original->file),
                                .text = kiln_str_from(original->text),
                                .first_line = original->line};
    const uint32_t begin = original->column > 0 ? (uint32_t)original->column - 1 : 0;
    const uint32_t end = original->end > (int64_t)begin ? (uint32_t)original->end : begin;
    return (kiln_source_range){.begin = begin, .end = end};
  }
  size_t first = r->begin < s->text.len ? r->begin : s->text.len, last = first;
  while (first > 0 && s->text.data[first - 1] != '\n') first--;
  while (last < s->text.len && s->text.data[last] != '\n') last++;
  *out_source = (kiln_source){.name = s->name,
                              .text = kiln_str_make(s->text.data + first, last - first),
                              .first_line = kiln_source_range_loc(r).line};
  const size_t end = r->end < last ? r->end : last, begin = r->begin < last ? r->begin : last;
  return (kiln_source_range){.begin = (uint32_t)(begin - first),
                             .end = (uint32_t)(end > first ? end - first : 0)};
}

static size_t put_source(kiln__exporter *x, const kiln_source *s) {
  const char *key =
      kiln_arena_printf(x->arena, KILN_STR_FMT ":%d", KILN_STR_ARG(s->name), s->first_line);
  void *known = kiln_map_find(&x->source_at, kiln_str_from(key));
  if (known) return (size_t)(uintptr_t)known - 1;
  kiln_source image;
  memset(&image, 0, sizeof image);
  image.name.len = s->name.len;
  image.text.len = s->text.len;
  image.first_line = s->first_line;
  const size_t name = kiln__image_text(&x->image, kiln_arena_str(x->arena, s->name).data);
  const size_t text = kiln__image_text(&x->image, kiln_arena_str(x->arena, s->text).data);
  const size_t at = KILN__PUT(&x->image, image);
  kiln__image_point(&x->image, at + offsetof(kiln_source, name) + offsetof(kiln_str, data), name);
  kiln__image_point(&x->image, at + offsetof(kiln_source, text) + offsetof(kiln_str, data), text);
  kiln_map_set(&x->source_at, kiln_str_from(key), (void *)(uintptr_t)(at + 1));
  return at;
}

/* With the calls around it. */
static size_t put_range(kiln__exporter *x, const kiln_source_range *range) {
  KILN_VEC(const kiln_source_range *) chain = {0};
  size_t at = 0;
  for (; range && !kiln_map_find_ptr(&x->range_at, range); range = range->inlined_at)
    kiln_vec_push(x->arena, &chain, range);
  if (range) at = (size_t)(uintptr_t)kiln_map_find_ptr(&x->range_at, range) - 1;
  while (chain.count > 0) {
    const kiln_source_range *r = kiln_vec_pop(&chain);
    kiln_source line;
    kiln_source_range image, in_line = {0};
    if (r->source) in_line = line_of(x, r, &line);
    memset(&image, 0, sizeof image);
    image.begin = in_line.begin;
    image.end = in_line.end;
    const size_t source = r->source ? put_source(x, &line) : 0, outer = at;
    at = KILN__PUT(&x->image, image);
    point(x, at + offsetof(kiln_source_range, source), source);
    point(x, at + offsetof(kiln_source_range, inlined_at), outer);
    point_text(x, at + offsetof(kiln_source_range, function), r->function);
    kiln_map_set_ptr(&x->range_at, r, (void *)(uintptr_t)(at + 1));
  }
  return at;
}

/* What comes of the region's own operators names their places. That there is no code for its
 * arguments is no matter of a line. */
static bool calls_region(const kiln_plan *plan, const kiln_instr *in) {
  const kiln_executor *ex =
      in->op == KILN_INSTR_CALL ? kiln__executor_of(plan->callables[in->x]) : NULL;
  return ex && !ex->function;
}

size_t kiln__export_ranges(kiln__exporter *x, const kiln_plan *plan) {
  if (!plan->ranges) return 0;
  size_t *ranges = KILN_NEW_ARRAY(x->arena, size_t, plan->code_count);
  for (int i = 0; i < plan->code_count; i++)
    ranges[i] = calls_region(plan, &plan->code[i]) ? 0 : put_range(x, plan->ranges[i]);
  void **none = KILN_NEW_ARRAY(x->arena, void *, plan->code_count);
  const size_t at = put_array(x, none, sizeof *none, plan->code_count);
  for (int i = 0; i < plan->code_count; i++) point(x, at + (size_t)i * sizeof *none, ranges[i]);
  return at;
}
