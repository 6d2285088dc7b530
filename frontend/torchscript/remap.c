/* remap.c: devices that an archive's code names, moved by the load's rules (frontend/devices.h).
 *
 * A traced model has the device of the trace in its code: torch.device("cuda:0"). Where a rule fits
 * a constant name, another device stands in the graph; names that are made as the model runs stay.
 * tensor.cuda() becomes a move to where the rule for "cuda" leads. */
#include "frontend/torchscript/emit.h"

static bool apply(kiln__script_emitter *e, const kiln_ast *ast, kiln_str *text) {
  kiln_source_range range = {.source = e->source, .begin = ast->begin, .end = ast->end};
  kiln_source_loc loc = kiln_source_range_loc(&range);
  const char *where = kiln_arena_printf(e->l->ast_arena, KILN_STR_FMT ":%d",
                                        KILN_STR_ARG(e->source->name), loc.line);
  return kiln_device_map_apply(e->l->model->devices, text, KILN_REMAP_CODE, kiln_str_from(where));
}

static bool has_rules(const kiln__script_emitter *e) {
  const kiln_device_map *map = e->l->model->devices;
  return map && map->rules.count > 0;
}

kiln_status *kiln__ts_map_device(kiln__script_emitter *e, const kiln_ast *ast, const char *name,
                                 const kiln_arg *args, int count, kiln_ir_value **out) {
  kiln_device_id device;
  *out = NULL;
  if (!has_rules(e) || count < 1) return NULL;
  const kiln_ivalue *constant = kiln_ir_value_constant(args[0].value);
  if (strcmp(name, "aten::device") == 0 && count == 1 && constant &&
      constant->tag == KILN_TAG_STRING) {
    kiln_str text = kiln_string_view(constant->u.string);
    if (apply(e, ast, &text) && kiln_device_parse(text, &device)) {
      *out =
          kiln__ts_constant(e, ast, kiln_device_value(device), kiln_type_basic(KILN_TYPE_DEVICE));
    }
    return NULL;
  }
  kiln_str text = KILN_STR("cuda");
  if (strcmp(name, "aten::cuda") != 0 || !apply(e, ast, &text) ||
      !kiln_device_parse(text, &device)) {
    return NULL;
  }
  kiln_ir_value *to =
      kiln__ts_constant(e, ast, kiln_device_value(device), kiln_type_basic(KILN_TYPE_DEVICE));
  return kiln__ts_op_values(e, ast, "aten::to", KILN_VALUES(args[0].value, to), out);
}
