/* devices.c: rules that move an archive's devices to ones that are here. */
#include "frontend/devices.h"

/* "cuda:1" to "cuda" and "1"; "cuda" to "cuda" and "*". */
static void split(kiln_str name, kiln_str *out_kind, kiln_str *out_index) {
  const char *colon = name.len ? memchr(name.data, ':', name.len) : NULL;
  size_t head = colon ? (size_t)(colon - name.data) : name.len;
  *out_kind = kiln_str_make(name.data, head);
  *out_index = colon ? kiln_str_make(colon + 1, name.len - head - 1) : KILN_STR("*");
}

static bool is_word(kiln_str text) {
  for (size_t i = 0; i < text.len; i++) {
    char c = text.data[i];
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  return text.len > 0;
}

static kiln_status *parse_rule(kiln_device_map *map, kiln_str text) {
  struct kiln_device_rule rule = {0};
  const char *equal = text.len ? memchr(text.data, '=', text.len) : NULL;
  size_t head = equal ? (size_t)(equal - text.data) : 0;
  split(kiln_arena_str(map->arena, kiln_str_make(text.data, head)), &rule.kind, &rule.index);
  bool good = equal && (is_word(rule.kind) || kiln_str_is(rule.kind, "*")) &&
              (is_word(rule.index) || kiln_str_is(rule.index, "*"));
  if (!good) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT,
                      "map_device: '" KILN_STR_FMT "' is no rule like cuda:*=cpu",
                      KILN_STR_ARG(text));
  }
  rule.to = kiln_arena_str(map->arena, kiln_str_make(equal + 1, text.len - head - 1));
  if (!kiln_str_is(rule.to, "cpu")) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT,
                      "map_device: this build has no device '" KILN_STR_FMT "', only cpu",
                      KILN_STR_ARG(rule.to));
  }
  kiln_vec_push(map->arena, &map->rules, rule);
  return NULL;
}

kiln_status *kiln_device_map_parse(kiln_arena *arena, const char *text, kiln_device_map **out_map) {
  kiln_device_map *map = KILN_NEW(arena, kiln_device_map);
  map->arena = arena;
  *out_map = map;
  while (text && *text) {
    size_t len = strcspn(text, ",");
    KILN_TRY(parse_rule(map, kiln_str_make(text, len)));
    text += len + (text[len] == ',');
  }
  return NULL;
}

static bool fits(const struct kiln_device_rule *rule, kiln_str kind, kiln_str index) {
  if (kiln_str_is(rule->kind, "*")) return !kiln_str_is(kind, "cpu");
  return kiln_str_equal(rule->kind, kind) &&
         (kiln_str_is(rule->index, "*") || kiln_str_equal(rule->index, index));
}

static void note(kiln_device_map *map, kiln_str from, kiln_str to, kiln_remap_kind kind,
                 kiln_str where) {
  for (int i = 0; i < map->rows.count; i++) {
    kiln_remap_row *row = &map->rows.data[i];
    if (row->kind == kind && kiln_str_equal(row->from, from)) {
      row->count++;
      return;
    }
  }
  kiln_remap_row row = {kiln_arena_str(map->arena, from), to, kind, 1,
                        kiln_arena_str(map->arena, where)};
  kiln_vec_push(map->arena, &map->rows, row);
}

bool kiln_device_map_apply(kiln_device_map *map, kiln_str *device, kiln_remap_kind kind,
                           kiln_str where) {
  if (!map || map->rules.count == 0) return false;
  kiln_str name, index;
  split(*device, &name, &index);
  for (int i = 0; i < map->rules.count; i++) {
    if (!fits(&map->rules.data[i], name, index)) continue;
    note(map, *device, map->rules.data[i].to, kind, where);
    *device = map->rules.data[i].to;
    return true;
  }
  return false;
}

void kiln_device_map_report(const kiln_device_map *map, kiln_env *env) {
  static const char *const kinds[] = {"storages of tensors", "values", "devices in the code"};
  for (int i = 0; map && i < map->rows.count; i++) {
    const kiln_remap_row *row = &map->rows.data[i];
    KILN_LOG(&env->log, load, 1, "%lld %s moved from %s to %s, the first at %s",
             (long long)row->count, kinds[row->kind], row->from.data, row->to.data,
             row->where.data);
  }
}
