/* emit_sort.c: sort and sorted of objects that have __lt__.
 *
 * No kernel can call a method, so each class gets a function in TorchScript, made when it is first
 * asked for: insertion sort with binary search (stable; n log n comparisons). */
#include "frontend/torchscript/emit.h"

static const char body_text[] = "def sort(l: List[%s], reverse: bool) -> NoneType:\n"
                                "  for i in range(len(l)):\n"
                                "    x = l[i]\n"
                                "    low = 0\n"
                                "    high = i\n"
                                "    while low < high:\n"
                                "      mid = (low + high) // 2\n"
                                "      if reverse:\n"
                                "        less = l[mid] < x\n"
                                "      else:\n"
                                "        less = x < l[mid]\n"
                                "      if less:\n"
                                "        high = mid\n"
                                "      else:\n"
                                "        low = mid + 1\n"
                                "    l.insert(low, l.pop(i))\n"
                                "  return None\n";

bool kiln__sorts_objects(const kiln_op *op, const kiln_ir_value *list) {
  if (!kiln_str_is(op->name, "aten::sort") && !kiln_str_is(op->name, "aten::sorted")) return false;
  if (list->type->kind != KILN_TYPE_LIST) return false;
  const kiln_type *elem = list->type->elems[0];
  return elem->kind == KILN_TYPE_CLASS && kiln_class_find_method(elem, KILN_STR("__lt__"));
}

static kiln_status *find_sort(kiln__script_emitter *e, const kiln_type *type, kiln_function **out) {
  kiln_loader *l = e->l;
  const char *name =
      kiln_arena_printf(l->arena, KILN_STR_FMT ".__kiln_sort__", KILN_STR_ARG(type->name));
  *out = kiln_unit_find_function(l->unit, kiln_str_from(name));
  if (*out) return NULL;
  kiln_code_file *file = KILN_NEW(l->arena, kiln_code_file);
  const char *class_name = kiln_arena_str(l->arena, type->name).data;
  file->source.name = KILN_STR("sort");
  file->source.text = kiln_str_from(kiln_arena_printf(l->arena, body_text, class_name));
  file->source.first_line = 1;
  file->qualifier = type->name;
  file->names = kiln_map_in(l->ast_arena);
  kiln_ast *ast;
  KILN_TRY(kiln_ast_parse(l->ast_arena, &file->source, NULL, &ast));
  file->ast = ast;
  *out = kiln__declare(l, file, ast->kids[0], kiln_str_from(name), NULL);
  return kiln__loader_schema(l, *out);
}

kiln_status *kiln__ts_sort(kiln__script_emitter *e, const kiln_ast *ast, const kiln_op *op,
                           kiln_ir_value *list, kiln_ir_value *reverse, kiln_ir_value **out) {
  kiln_function *function;
  bool sorted = kiln_str_is(op->name, "aten::sorted");
  KILN_TRY(find_sort(e, list->type->elems[0], &function));
  if (sorted) KILN_TRY(kiln__ts_op_values(e, ast, "aten::copy", &list, 1, &list));
  if (!reverse) reverse = kiln__ts_bool(e, ast, false);
  kiln_ir_value *constant = kiln_append_function(e->scope->block, function);
  kiln_node *node =
      kiln__ts_node(e, ast, KILN_OP_prim_CallFunction, KILN_VALUES(constant, list, reverse));
  *out = kiln_node_add_output(node, kiln_type_basic(KILN_TYPE_NONE));
  if (sorted) *out = list;
  kiln_pending_body *body = e->function->pending;
  kiln_vec_push(e->l->ast_arena, &body->calls, function);
  return NULL;
}
