/* custom_class.c: classes that are written in C++ and known to the archive by name alone: packed
 * weights of quantised layers and their like. They cannot be run; a look at the archive tells which
 * there are. */
#include "frontend/torchscript/loader.h"

static bool in_name(char c) { return kiln_is_word(c) || c == '.'; }

static void add_names(kiln_loader *l, kiln_str text, kiln_map *known, kiln_text *names) {
  static const char prefix[] = "__torch__.torch.classes.";
  const char *at = text.data, *end = text.data + text.len;
  while ((at = memmem(at, (size_t)(end - at), prefix, sizeof prefix - 1))) {
    const char *last = at;
    while (last < end && in_name(*last)) last++;
    const kiln_str name = kiln_str_make(at, (size_t)(last - at));
    at = last;
    if (kiln_map_find(known, name)) continue;
    if (known->count) kiln_text_puts(names, ", ");
    kiln_map_set(known, name, l);
    kiln_text_printf(names, KILN_STR_FMT, KILN_STR_ARG(name));
  }
}

static bool is_source(kiln_str name) {
  return kiln_str_starts(name, "code/") && name.len > 3 &&
         memcmp(name.data + name.len - 3, ".py", 3) == 0;
}

const char *kiln__custom_classes(kiln_loader *l, kiln_str qualname) {
  if (l->unit->custom_classes) return l->unit->custom_classes;
  kiln_text names = kiln_text_in(l->arena);
  kiln_map known = kiln_map_in(l->ast_arena);
  for (int i = 0; i < kiln_zip_count(l->zip); i++) {
    kiln_zip_entry *entry = kiln_zip_at(l->zip, i);
    kiln_str text = {0};
    if (!is_source(entry->name)) continue;
    kiln_status_destroy(kiln_zip_read(l->zip, entry, &text)); /* who needs the file will say so */
    if (text.data) add_names(l, text, &known, &names);
  }
  if (!known.count) kiln_text_put(&names, qualname);
  l->unit->custom_classes = names.data;
  return names.data;
}

const kiln_type *kiln__define_custom_class(kiln_loader *l, kiln_str qualname) {
  (void)kiln__custom_classes(l, qualname);
  return kiln_unit_add_class(l->unit, KILN_TYPE_CLASS, qualname)->type;
}
