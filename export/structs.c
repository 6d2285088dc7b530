/* structs.c: what a plan points to, as it lies in memory: kernels, guards, groups, ranges.
 * Addresses of this process are never written. */
#include "export/internal.h"

/* -- Kernels -- */

kiln_status *kiln__export_kernel(kiln__exporter *x, const kiln_kernel *kernel,
                                 const kiln_kernel **out_at) {
  *out_at = kiln_map_find_ptr(&x->kernel_at, kernel);
  if (*out_at) return NULL;
  const kiln_registry *registry = x->request->jit->unit->registry;
  const char *name = kernel->body ? kiln_registry_kernel_name(registry, kernel) : NULL;
  if (kernel->body && !name)
    return KILN_ERROR(KILN_UNSUPPORTED,
                      "%s: a host's operator, or one on quantised, sparse or "
                      "nested tensors, has no place in a program",
                      kernel->name);
  kiln_kernel *own = KILN_NEW(x->arena, kiln_kernel);
  KILN__SAME(own, kernel, arg_count), KILN__SAME(own, kernel, out_count);
  KILN__SAME(own, kernel, dest_arg), KILN__SAME(own, kernel, reuse);
  KILN__SAME(own, kernel, refuses), KILN__SAME(own, kernel, nested), KILN__SAME(own, kernel, quant);
  KILN__SAME(own, kernel, devices), KILN__SAME(own, kernel, format);
  kiln_kernel *at = KILN__ARRAY(&x->image, own, 1);
  kiln__image_set(&x->image, &at->name, kiln__image_text(&x->image, kernel->name));
  if (name) {
    const char *symbol = kiln_arena_printf(x->arena, "kiln__kernel_%s", name);
    kiln__image_set(&x->image, &at->body, kiln__image_symbol(&x->image, symbol));
  } else {
    kiln__image_set(&x->image, &at->user, kiln__image_text(&x->image, kernel->user));
  }
  kiln_map_set_ptr(&x->kernel_at, kernel, at);
  *out_at = at;
  return NULL;
}

/* -- Guards -- */

static const kiln_dim_program *put_program(kiln__exporter *x, const kiln_dim_program *program) {
  return program ? kiln__image_put(&x->image, program, program->bytes, 8) : NULL;
}

static const kiln_guard_order *put_orders(kiln__exporter *x, const kiln_guard_symbols *s) {
  kiln_guard_order *own = KILN_NEW_ARRAY(x->arena, kiln_guard_order, s->order_count);
  for (int i = 0; i < s->order_count; i++) KILN__SAME(&own[i], &s->orders[i], place);
  kiln_guard_order *at = kiln__image_put(&x->image, own, sizeof *own * (size_t)s->order_count, 8);
  for (int i = 0; i < s->order_count; i++)
    kiln__image_set(&x->image, &at[i].words, kiln__image_text(&x->image, s->orders[i].words));
  return at;
}

static const char *const *put_words(kiln__exporter *x, const char *const *words, int count) {
  if (!words) return NULL;
  const char **own = KILN_NEW_ARRAY(x->arena, const char *, count);
  const char **at = KILN__ARRAY(&x->image, own, count);
  for (int i = 0; i < count; i++)
    kiln__image_set(&x->image, &at[i], kiln__image_text(&x->image, words[i]));
  return at;
}

static const kiln_guard_symbols *put_symbols(kiln__exporter *x, const kiln_guard_desc *guard) {
  const kiln_guard_symbols *s = guard->symbols;
  if (!s) return NULL;
  kiln_guard_symbols *own = KILN_NEW(x->arena, kiln_guard_symbols);
  KILN__SAME(own, s, symbol_count), KILN__SAME(own, s, from_one);
  KILN__SAME(own, s, relation_count), KILN__SAME(own, s, order_count);
  own->bind = KILN__ARRAY(&x->image, s->bind, s->symbol_count);
  own->relations = KILN__ARRAY(&x->image, s->relations, s->relation_count);
  own->orders = put_orders(x, s);
  own->program = put_program(x, s->program);
  own->words = put_words(x, s->words, guard->count);
  return KILN__PUT(&x->image, own, 1, &own->bind, &own->relations, &own->orders, &own->program,
                   &own->words);
}

static kiln_guard_entry *put_entries(kiln__exporter *x, const kiln_guard_desc *guard) {
  kiln_guard_entry *all = KILN_NEW_ARRAY(x->arena, kiln_guard_entry, guard->count), *own = all;
  for (const kiln_guard_entry *e = guard->entries; own < all + guard->count; own++, e++) {
    KILN__SAME(own, e, key_word), KILN__SAME(own, e, key_mask), KILN__SAME(own, e, rank);
    KILN__SAME(own, e, some);
    own->check_dims = e->check_dims && e->rank > 0; /* the word has the rank */
    own->dims = KILN__ARRAY(&x->image, e->dims, 2 * e->rank);
  }
  return KILN__PUT(&x->image, all, guard->count, &all->dims);
}

const kiln_guard_desc *kiln__guard_images(kiln__exporter *x, const kiln_guard_desc *guards,
                                          int count) {
  kiln_guard_desc *all = KILN_NEW_ARRAY(x->arena, kiln_guard_desc, count), *own = all;
  for (const kiln_guard_desc *g = guards; own < all + count; own++, g++) {
    KILN__SAME(own, g, count), KILN__SAME(own, g, symbols_at), KILN__SAME(own, g, hash);
    own->entries = put_entries(x, g);
    own->at = KILN__ARRAY(&x->image, g->at, g->count);
    own->symbols = put_symbols(x, g);
  }
  return KILN__PUT(&x->image, all, count, &all->entries, &all->at, &all->symbols);
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

static kiln_status *put_code(kiln__exporter *x, const kiln_group *group, kiln_kernel_fn *out_fn) {
  char *at = kiln_map_find_ptr(&x->code_at, (uintptr_t)group->fn);
  const kiln_compiled *code = kiln_map_find_ptr(&x->compiled, (uintptr_t)group->fn);
  if (!at && (!code || !code->object))
    return KILN_ERROR(KILN_UNSUPPORTED, "%s has no machine code: a program needs LLVM's back end",
                      group->name);
  if (!at) {
    const kiln_code_image image = kiln_compiled_image(code);
    const char *name = kiln_arena_printf(x->arena, "%s_%s", x->request->name, group->name);
    at = kiln__image_code(&x->image, name, image.bytes, image.size);
    at += image.entry;
    kiln_map_set_ptr(&x->code_at, (uintptr_t)group->fn, at);
  }
  *out_fn = (kiln_kernel_fn)(uintptr_t)at;
  return NULL;
}

static const kiln_group_output *put_outputs(kiln__exporter *x, const kiln_group *group) {
  const int count = group->output_count;
  kiln_group_output *all = KILN_NEW_ARRAY(x->arena, kiln_group_output, count), *own = all;
  for (const kiln_group_output *out = group->outputs; own < all + count; own++, out++) {
    KILN__SAME(own, out, dtype), KILN__SAME(own, out, rank), KILN__SAME(own, out, first);
    KILN__SAME(own, out, contiguous), KILN__SAME(own, out, border), KILN__SAME(own, out, donors);
    KILN__SAME(own, out, donor), KILN__SAME(own, out, is_part), KILN__SAME(own, out, whole);
    KILN__SAME(own, out, begin);
    own->sizes = KILN__ARRAY(&x->image, out->sizes, out->rank);
    own->strides = KILN__ARRAY(&x->image, out->strides, out->rank);
  }
  return KILN__PUT(&x->image, all, count, &all->sizes, &all->strides);
}

/* Field by field: nobody has set the padding. */
static void set_pack(kiln_kernel_pack *own, const kiln_kernel_pack *p) {
  KILN__SAME(own, p, input), KILN__SAME(own, p, item_size), KILN__SAME(own, p, rank);
  KILN__SAME(own, p, outer), KILN__SAME(own, p, sizes), KILN__SAME(own, p, strides);
  KILN__SAME(own, p, before), KILN__SAME(own, p, after);
  KILN__SAME(own, p, offset), KILN__SAME(own, p, columns), KILN__SAME(own, p, column);
  KILN__SAME(own, p, panel), KILN__SAME(own, p, columns_before);
  KILN__SAME(own, p, columns_after);
  KILN__SAME(own, p, of_tensor), KILN__SAME(own, p, dims), KILN__SAME(own, p, as_it_lies);
  KILN__SAME(own, p, rounds), KILN__SAME(own, p, pairs), KILN__SAME(own, p, whole);
  KILN__SAME(own, p, transform), KILN__SAME(own, p, form);
  _Static_assert(sizeof *p == 480, "a new field stands here, too");
}

static const kiln_group_pack *put_packs(kiln__exporter *x, const kiln_group *group) {
  const int count = group->pack_count;
  kiln_group_pack *all = KILN_NEW_ARRAY(x->arena, kiln_group_pack, count), *own = all;
  for (const kiln_group_pack *p = group->packs; own < all + count; own++, p++) {
    kiln_kernel_pack *pack = KILN_NEW(x->arena, kiln_kernel_pack);
    set_pack(pack, p->pack);
    KILN__SAME(own, p, operand), KILN__SAME(own, p, border);
    void *at = KILN__ARRAY(&x->image, pack, 1);
    own->pack = at;
    if (p->slot) own->slot = at; /* of weights: any address will do, aot/ puts its own slot there */
  }
  return KILN__PUT(&x->image, all, count, &all->pack, &all->slot);
}

/* Its gaps are zeros. */
static void set_machine(kiln_core_machine *own, const kiln_core_machine *m) {
  KILN__SAME(own, m, lanes), KILN__SAME(own, m, ports), KILN__SAME(own, m, tiles);
  KILN__SAME(own, m, l1_bytes), KILN__SAME(own, m, l2_bytes), KILN__SAME(own, m, l3_bytes);
  _Static_assert(sizeof *m == 40, "a new field stands here, too");
}

static const kiln_group_heavy *put_heavy(kiln__exporter *x, const kiln_group_heavy *h) {
  kiln_group_heavy *own = KILN_NEW(x->arena, kiln_group_heavy);
  set_machine(&own->machine, &h->machine);
  KILN__SAME(own, h, winograd), KILN__SAME(own, h, grouped), KILN__SAME(own, h, blocked);
  KILN__SAME(own, h, alone), KILN__SAME(own, h, x), KILN__SAME(own, h, weight);
  KILN__SAME(own, h, bias), KILN__SAME(own, h, given), KILN__SAME(own, h, carrier);
  set_pack(&own->pack, &h->pack);
  return KILN__ARRAY(&x->image, own, 1);
}

static kiln_status *fill_group(kiln__exporter *x, const kiln_group *g, kiln_group *own) {
  if (g->device != &kiln_device_cpu)
    return KILN_ERROR(KILN_UNSUPPORTED, "%s runs on a device that programs do not have", g->name);
  KILN__SAME(own, g, input_count), KILN__SAME(own, g, output_count), KILN__SAME(own, g, work);
  KILN__SAME(own, g, symbols_at), KILN__SAME(own, g, pack_count);
  KILN_TRY(put_code(x, g, &own->fn));
  own->device = kiln__image_symbol(&x->image, "kiln_device_cpu");
  own->outputs = put_outputs(x, g);
  if (g->shape) own->shape = kiln__image_put(&x->image, g->shape, g->shape->bytes, 8);
  own->dims = put_program(x, g->dims);
  if (g->pack_count) own->packs = put_packs(x, g);
  if (g->heavy) own->heavy = put_heavy(x, g->heavy);
  own->name = kiln__image_text(&x->image, g->name);
  return NULL;
}

kiln_status *kiln__export_groups(kiln__exporter *x, const kiln_plan *plan,
                                 const kiln_group **out_at) {
  kiln_group *own = KILN_NEW_ARRAY(x->arena, kiln_group, plan->group_count);
  for (int i = 0; i < plan->group_count; i++) KILN_TRY(fill_group(x, &plan->groups[i], &own[i]));
  *out_at = KILN__PUT(&x->image, own, plan->group_count, &own->fn, &own->device, &own->outputs,
                      &own->shape, &own->dims, &own->packs, &own->heavy, &own->name);
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

static const kiln_source *put_source(kiln__exporter *x, const kiln_source *s) {
  const kiln_str key = kiln_str_from(
      kiln_arena_printf(x->arena, KILN_STR_FMT ":%d", KILN_STR_ARG(s->name), s->first_line));
  void *at = kiln_map_find(&x->source_at, key);
  if (at) return at;
  kiln_source *own = KILN_NEW(x->arena, kiln_source);
  KILN__SAME(own, s, first_line);
  own->name = kiln__image_str(&x->image, s->name);
  own->text = kiln__image_str(&x->image, s->text);
  at = KILN__PUT(&x->image, own, 1, &own->name.data, &own->text.data);
  kiln_map_set(&x->source_at, key, at);
  return at;
}

/* With the calls around it. */
static const kiln_source_range *put_range(kiln__exporter *x, const kiln_source_range *range) {
  KILN_VEC(const kiln_source_range *) chain = {0};
  for (; range && !kiln_map_find_ptr(&x->range_at, range); range = range->inlined_at)
    kiln_vec_push(x->arena, &chain, range);
  kiln_source_range *at = range ? kiln_map_find_ptr(&x->range_at, range) : NULL;
  while (chain.count > 0) {
    const kiln_source_range *r = kiln_vec_pop(&chain);
    kiln_source_range *own = KILN_NEW(x->arena, kiln_source_range);
    if (r->source) {
      kiln_source line;
      *own = line_of(x, r, &line);
      own->source = put_source(x, &line);
    }
    own->inlined_at = at;
    at = KILN__PUT(&x->image, own, 1, &own->source, &own->inlined_at);
    kiln__image_set(&x->image, &at->function, kiln__image_text(&x->image, r->function));
    kiln_map_set_ptr(&x->range_at, r, at);
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

const kiln_source_range *const *kiln__export_ranges(kiln__exporter *x, const kiln_plan *plan) {
  if (!plan->ranges) return NULL;
  const kiln_source_range **own =
      KILN_NEW_ARRAY(x->arena, const kiln_source_range *, plan->code_count);
  for (int i = 0; i < plan->code_count; i++)
    if (!calls_region(plan, &plan->code[i])) own[i] = put_range(x, plan->ranges[i]);
  return KILN__PUT(&x->image, own, plan->code_count, own);
}
