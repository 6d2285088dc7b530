/* emit_index.c: subscripts, attributes, deletion. */
#include "frontend/torchscript/emit.h"

/* -- Tuples -- */

static kiln_status *constant_int(kiln__script_emitter *e, const kiln_ast *ast, int64_t *out) {
  kiln_ir_value *value;
  KILN_TRY(kiln__ts_value(e, ast, NULL, &value));
  const kiln_ivalue *constant = kiln_ir_value_constant(value);
  if (!constant || constant->tag != KILN_TAG_INT) {
    return kiln__ts_error(e, ast, "a tuple's index must be a constant");
  }
  *out = constant->u.i;
  return NULL;
}

static kiln_ir_value *pick_at(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *tuple,
                              kiln_ir_value *index, const kiln_type *type) {
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_TupleIndex, KILN_VALUES(tuple, index));
  kiln_ir_value *out = kiln_node_add_output(node, type);
  if (kiln__is_loose(e, tuple) && kiln_type_is_tensor(type)) kiln__make_loose(e, out);
  return out;
}

static kiln_ir_value *tuple_item(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *tuple,
                                 int64_t index) {
  kiln_ir_value *at = kiln__ts_int(e, ast, index);
  return pick_at(e, ast, tuple, at, tuple->type->elems[index]);
}

static int64_t clamp_bound(int64_t bound, int64_t count) {
  if (bound < 0) bound += count;
  return bound < 0 ? 0 : bound > count ? count : bound;
}

static kiln_status *tuple_slice(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *tuple,
                                const kiln_ast *slice, kiln_ir_value **out) {
  int64_t count = tuple->type->elem_count, begin = 0, end = count, step = 1;
  if (slice->kids[0]) KILN_TRY(constant_int(e, slice->kids[0], &begin));
  if (slice->kids[1]) KILN_TRY(constant_int(e, slice->kids[1], &end));
  if (slice->kids[2]) KILN_TRY(constant_int(e, slice->kids[2], &step));
  if (step != 1) return kiln__ts_error(e, ast, "a slice of a tuple with a step");
  begin = clamp_bound(begin, count);
  end = clamp_bound(end, count);
  if (end < begin) end = begin;
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_TupleSlice, &tuple, 1);
  kiln_node_set_int(node, "beg", begin);
  kiln_node_set_int(node, "end", end);
  *out = kiln_node_add_output(
      node, kiln_type_tuple(e->l->types, tuple->type->elems + begin, (int)(end - begin)));
  return NULL;
}

/* Elements of one type may be picked by any int. */
static kiln_status *pick_item(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *tuple,
                              kiln_ir_value *index, kiln_ir_value **out) {
  const kiln_type *type = tuple->type;
  bool alike = type->elem_count > 0;
  for (int i = 1; alike && i < type->elem_count; i++) alike = type->elems[i] == type->elems[0];
  if (!alike) {
    return kiln__ts_error(e, ast,
                          "Cannot index into a tuple with a non-integer literal because we cannot "
                          "resolve the output type");
  }
  *out = pick_at(e, ast, tuple, index, type->elems[0]);
  return NULL;
}

static kiln_status *index_tuple(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *tuple,
                                const kiln_ast *subscript, kiln_ir_value **out) {
  if (subscript->kind == KILN_AST_SLICE) return tuple_slice(e, ast, tuple, subscript, out);
  kiln_ir_value *value;
  KILN_TRY(kiln__ts_value(e, subscript, NULL, &value));
  if (value->type->kind != KILN_TYPE_INT) {
    return kiln__ts_error(e, ast, "tuple index must be an integer");
  }
  int64_t index = 0, count = tuple->type->elem_count;
  if (!kiln_ir_value_const_int(value, &index)) return pick_item(e, ast, tuple, value, out);
  if (index < 0) index += count;
  if (index < 0 || index >= count) {
    return kiln__ts_error(e, ast, "a tuple of %lld has no such element", (long long)count);
  }
  *out = tuple_item(e, ast, tuple, index);
  return NULL;
}

/* -- Slices of lists and strings -- */

/* start, stop, step; absent ones are None and 1. */
static kiln_status *slice_bounds(kiln__script_emitter *e, const kiln_ast *slice,
                                 kiln_ir_value **out) {
  for (int i = 0; i < 3; i++) {
    if (slice->kids[i]) {
      KILN_TRY(kiln__ts_value(e, slice->kids[i], NULL, &out[i]));
    } else {
      out[i] = i == 2 ? kiln__ts_int(e, slice, 1) : kiln__ts_none(e, slice);
    }
  }
  return NULL;
}

/* -- Tensors -- */

/* The view or copy that the subscripts choose, up to tensor indices: those are left in `indices`
 * (Optional[Tensor] for each dimension so far), to be applied at once. */
typedef struct tensor_index {
  kiln_ir_value *self;
  int dim; /* from the front; after an ellipsis from the back (negative) */
  KILN_VEC(kiln_ir_value *) indices; /* NULL: None */
  bool any;
} tensor_index;

static int dims_consumed(const kiln_ast *ast, int from) {
  int count = 0;
  for (int i = from; i < ast->count; i++) {
    if (ast->kids[i]->kind != KILN_AST_NONE && ast->kids[i]->kind != KILN_AST_ELLIPSIS) count++;
  }
  return count;
}

static kiln_status *apply_slice(kiln__script_emitter *e, const kiln_ast *slice, tensor_index *t) {
  kiln_ir_value *args[5] = {t->self};
  KILN_TRY(slice_bounds(e, slice, args + 2));
  args[1] = kiln__ts_int(e, slice, t->dim);
  return kiln__ts_op_values(e, slice, "aten::slice", args, 5, &t->self);
}

static kiln_status *apply_subscript(kiln__script_emitter *e, const kiln_ast *ast, int at,
                                    tensor_index *t) {
  const kiln_ast *kid = ast->kids[at];
  if (kid->kind == KILN_AST_ELLIPSIS) {
    t->dim = -dims_consumed(ast, at + 1);
    if (t->any) return kiln__ts_error(e, kid, "'...' after a tensor index");
    return NULL;
  }
  kiln_ir_value *value = NULL;
  if (kid->kind == KILN_AST_SLICE) {
    KILN_TRY(apply_slice(e, kid, t));
  } else {
    KILN_TRY(kiln__ts_value(e, kid, NULL, &value));
  }
  if (value && value->type->kind == KILN_TYPE_NONE) {
    kiln_ir_value *dim = kiln__ts_int(e, kid, t->dim);
    KILN_TRY(kiln__ts_op_values(e, kid, "aten::unsqueeze", KILN_VALUES(t->self, dim), &t->self));
    value = NULL;
  }
  if (!value) { /* the dimension is kept whole, or is new */
    kiln_vec_push(e->l->ast_arena, &t->indices, NULL);
    t->dim++;
    return NULL;
  }
  if (value->type->kind == KILN_TYPE_INT) {
    kiln_ir_value *dim = kiln__ts_int(e, kid, t->dim);
    KILN_TRY(
        kiln__ts_op_values(e, kid, "aten::select", KILN_VALUES(t->self, dim, value), &t->self));
    if (t->dim < 0) t->dim++;
    return NULL;
  }
  if (!kiln_type_is_tensor(value->type) && value->type->kind != KILN_TYPE_OPTIONAL) {
    KILN_TRY(kiln__ts_op_values(e, kid, "aten::tensor", &value, 1, &value));
  }
  if (t->dim < 0) return kiln__ts_error(e, kid, "a tensor index after '...'");
  kiln_vec_push(e->l->ast_arena, &t->indices, value);
  t->any = true;
  t->dim++;
  return NULL;
}

static kiln_status *apply_subscripts(kiln__script_emitter *e, const kiln_ast *ast,
                                     kiln_ir_value *self, tensor_index *t) {
  memset(t, 0, sizeof *t);
  t->self = self;
  const kiln_ast *list = ast;
  int first = 1;
  if (ast->count == 2 && ast->kids[1]->kind == KILN_AST_TUPLE) { /* x[(a, b)] */
    list = ast->kids[1];
    first = 0;
  }
  for (int i = first; i < list->count; i++) KILN_TRY(apply_subscript(e, list, i, t));
  return NULL;
}

static kiln_ir_value *index_list(kiln__script_emitter *e, const kiln_ast *ast,
                                 const tensor_index *t) {
  const kiln_type *elem = kiln_type_optional(e->l->types, kiln_type_basic(KILN_TYPE_TENSOR));
  int count = t->indices.count;
  while (count > 0 && !t->indices.data[count - 1]) count--;
  kiln_ir_value **items = KILN_NEW_ARRAY(e->l->ast_arena, kiln_ir_value *, count + 1);
  for (int i = 0; i < count; i++) {
    items[i] = t->indices.data[i] ? t->indices.data[i] : kiln__ts_none(e, ast);
  }
  return kiln__ts_list(e, ast, elem, items, count);
}

/* -- Reading -- */

static kiln_status *index_class(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *object,
                                const kiln_type *hint, kiln_ir_value **out) {
  kiln_ir_value *key;
  KILN_TRY(kiln__ts_value(e, ast->kids[1], NULL, &key));
  KILN_TRY(kiln__ts_magic(e, ast, object, "__getitem__", &key, 1, out));
  if (*out) return NULL;
  if (!object->type->cls->is_module || !hint) {
    return kiln__ts_error(e, ast, "a value of type %s has no elements",
                          kiln__ts_type_name(e, object->type));
  }
  if (key->type->kind != KILN_TYPE_INT && key->type->kind != KILN_TYPE_STR) {
    return kiln__ts_error(e, ast, "an index of type %s", kiln__ts_type_name(e, key->type));
  }
  kiln_node *node =
      kiln__ts_node(e, ast, KILN_OP_prim_ModuleContainerIndex, KILN_VALUES(object, key));
  /* Only the run finds out which module it is. */
  kiln_ir_value *found = kiln_node_add_output(node, kiln_type_basic(KILN_TYPE_ANY));
  *out = kiln__ts_cast(e, ast, found, hint);
  return NULL;
}

kiln_status *kiln__ts_index(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                            kiln_ir_value **out) {
  kiln_ir_value *self;
  KILN_TRY(kiln__ts_value(e, ast->kids[0], NULL, &self));
  const kiln_ast *subscript = ast->kids[1];
  bool one = ast->count == 2;
  if (kiln_type_is_tensor(self->type) && !kiln__is_loose(e, self)) {
    tensor_index t;
    KILN_TRY(apply_subscripts(e, ast, self, &t));
    *out = t.self;
    if (!t.any) return NULL;
    return kiln__ts_op_values(e, ast, "aten::index", KILN_VALUES(t.self, index_list(e, ast, &t)),
                              out);
  }
  if (!one) return kiln__ts_error(e, ast, "several subscripts on what is no tensor");
  switch (self->type->kind) {
    case KILN_TYPE_TUPLE: return index_tuple(e, ast, self, subscript, out);
    case KILN_TYPE_CLASS: return index_class(e, ast, self, hint, out);
    case KILN_TYPE_LIST:
    case KILN_TYPE_STR:
    case KILN_TYPE_DICT:
    case KILN_TYPE_TENSOR: break;
    default:
      return kiln__ts_error(e, ast, "a value of type %s has no elements",
                            kiln__ts_type_name(e, self->type));
  }
  kiln_ir_value *args[4] = {self, NULL, NULL, NULL};
  if (subscript->kind == KILN_AST_SLICE) {
    KILN_TRY(slice_bounds(e, subscript, args + 1));
    return kiln__ts_op_values(e, ast, "aten::slice", args, 4, out);
  }
  KILN_TRY(kiln__ts_value(e, subscript, NULL, &args[1]));
  return kiln__ts_op_values(e, ast, "aten::__getitem__", args, 2, out);
}

/* -- Writing -- */

/* A number becomes a tensor of the target's dtype and device. */
static kiln_status *as_tensor_like(kiln__script_emitter *e, const kiln_ast *ast,
                                   kiln_ir_value *like, kiln_ir_value **value) {
  if (kiln_type_is_tensor((*value)->type)) return NULL;
  kiln_arg args[3] = {
      {.value = *value}, {.keyword = KILN_STR("dtype")}, {.keyword = KILN_STR("device")}};
  KILN_TRY(kiln__ts_op_values(e, ast, "prim::dtype", &like, 1, &args[1].value));
  KILN_TRY(kiln__ts_op_values(e, ast, "prim::device", &like, 1, &args[2].value));
  kiln_sugar sugar;
  KILN_TRY(kiln__ts_op(e, ast, "aten::tensor", args, 3, &sugar));
  return kiln__sugar_value(e, ast, &sugar, value);
}

kiln_status *kiln__ts_index_assign(kiln__script_emitter *e, const kiln_ast *target,
                                   kiln_ir_value *value) {
  kiln_ir_value *self, *ignored;
  KILN_TRY(kiln__ts_value(e, target->kids[0], NULL, &self));
  if (kiln_type_is_tensor(self->type) && !kiln__is_loose(e, self)) {
    tensor_index t;
    KILN_TRY(apply_subscripts(e, target, self, &t));
    KILN_TRY(as_tensor_like(e, target, self, &value));
    if (!t.any) {
      return kiln__ts_op_values(e, target, "aten::copy_", KILN_VALUES(t.self, value), &ignored);
    }
    return kiln__ts_op_values(e, target, "aten::index_put_",
                              KILN_VALUES(t.self, index_list(e, target, &t), value), &ignored);
  }
  if (target->count != 2 || target->kids[1]->kind == KILN_AST_SLICE) {
    return kiln__ts_error(e, target, "this cannot be assigned to");
  }
  kiln_ir_value *key;
  KILN_TRY(kiln__ts_value(e, target->kids[1], NULL, &key));
  KILN_TRY(kiln__ts_magic(e, target, self, "__setitem__", KILN_VALUES(key, value), &ignored));
  if (ignored) return NULL;
  return kiln__ts_op_values(e, target, "aten::_set_item", KILN_VALUES(self, key, value), &ignored);
}

kiln_status *kiln__ts_delete(kiln__script_emitter *e, const kiln_ast *target) {
  if (target->kind == KILN_AST_NAME) {
    kiln__set_var(e, target->text, NULL)->why = "it has been deleted";
    return NULL;
  }
  if (target->kind != KILN_AST_INDEX || target->count != 2) {
    return kiln__ts_error(e, target, "this cannot be deleted");
  }
  kiln_ir_value *args[2], *ignored;
  KILN_TRY(kiln__ts_value(e, target->kids[0], NULL, &args[0]));
  KILN_TRY(kiln__ts_value(e, target->kids[1], NULL, &args[1]));
  return kiln__ts_op_values(e, target, "aten::Delete", args, 2, &ignored);
}

/* -- Attributes -- */

static kiln_status *class_attribute(kiln__script_emitter *e, const kiln_ast *ast,
                                    kiln_ir_value *object, kiln_str name, kiln_sugar *out) {
  const kiln_type *type = object->type;
  int slot = type->kind == KILN_TYPE_CLASS ? kiln_type_find_attribute(type, name) : -1;
  if (slot >= 0) {
    kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_GetAttr, &object, 1);
    kiln_node_set_str(node, "name", name);
    out->value = kiln_node_add_output(node, type->cls->attributes[slot].type);
    return NULL;
  }
  out->function = kiln_class_find_method(type, name);
  if (out->function) {
    out->kind = KILN_SUGAR_METHOD;
    out->value = object;
    return NULL;
  }
  const kiln_ivalue *constant = kiln_map_find(&kiln_class_of(type)->constants, name);
  if (constant) {
    const kiln_type *constant_type = kiln_ivalue_type(e->l->types, *constant);
    out->value = kiln__ts_constant(e, ast, kiln_ivalue_retain(*constant), constant_type);
    return NULL;
  }
  return kiln__ts_error(e, ast, KILN_STR_FMT " has no attribute '" KILN_STR_FMT "'",
                        KILN_STR_ARG(type->name), KILN_STR_ARG(name));
}

/* Properties of tensors and devices: operators without call. */
static const char *property_op(const kiln_type *type, kiln_str name) {
  static const struct {
    const char *name, *op;
  } tensor[] = {{"dtype", "prim::dtype"},
                {"device", "prim::device"},
                {"grad", "prim::grad"},
                {"data", "prim::data"},
                {"shape", "aten::size"},
                {"is_cuda", "prim::is_cuda"},
                {"is_cpu", "prim::is_cpu"},
                {"is_sparse", "prim::is_sparse"},
                {"is_quantized", "prim::is_quantized"},
                {"is_mkldnn", "prim::is_mkldnn"},
                {"is_meta", "prim::is_meta"},
                {"is_nested", "prim::is_nested"},
                {"layout", "prim::layout"},
                {"requires_grad", "prim::requires_grad"},
                {"is_leaf", "aten::is_leaf"},
                {"itemsize", "prim::itemsize"},
                {"nbytes", "prim::nbytes"},
                {"ndim", "aten::dim"},
                {"T", "aten::numpy_T"},
                {"mT", "aten::mT"},
                {"H", "aten::matrix_H"},
                {"mH", "aten::mH"},
                {"real", "aten::real"},
                {"imag", "aten::imag"}};
  if (type->kind == KILN_TYPE_DEVICE) {
    return kiln_str_is(name, "type")    ? "prim::type"
           : kiln_str_is(name, "index") ? "prim::index"
                                        : NULL;
  }
  for (size_t i = 0; kiln_type_is_tensor(type) && i < sizeof tensor / sizeof *tensor; i++) {
    if (kiln_str_is(name, tensor[i].name)) return tensor[i].op;
  }
  return NULL;
}

static kiln_status *enum_attribute(kiln__script_emitter *e, const kiln_ast *ast,
                                   kiln_ir_value *value, kiln_str name, kiln_sugar *out) {
  bool is_name = kiln_str_is(name, "name");
  if (!is_name && !kiln_str_is(name, "value")) {
    return kiln__ts_error(e, ast, "an enum has only a name and a value");
  }
  kiln_node *node =
      kiln__ts_node(e, ast, is_name ? KILN_OP_prim_EnumName : KILN_OP_prim_EnumValue, &value, 1);
  out->value = kiln_node_add_output(
      node, is_name ? kiln_type_basic(KILN_TYPE_STR) : value->type->cls->value_type);
  return NULL;
}

static kiln_status *value_attribute(kiln__script_emitter *e, const kiln_ast *ast,
                                    kiln_ir_value *value, kiln_str name, kiln_sugar *out) {
  const kiln_type *type = value->type;
  if (type->kind == KILN_TYPE_CLASS || type->kind == KILN_TYPE_INTERFACE) {
    return class_attribute(e, ast, value, name, out);
  }
  if (type->kind == KILN_TYPE_ENUM) return enum_attribute(e, ast, value, name, out);
  for (int i = 0; type->kind == KILN_TYPE_TUPLE && type->names && i < type->elem_count; i++) {
    if (!kiln_str_equal(type->names[i], name)) continue;
    out->value = tuple_item(e, ast, value, i);
    return NULL;
  }
  const char *property = property_op(type, name);
  if (property) return kiln__ts_op_values(e, ast, property, &value, 1, &out->value);
  switch (type->kind) {
    case KILN_TYPE_OPTIONAL:
    case KILN_TYPE_UNION:
    case KILN_TYPE_ANY:
    case KILN_TYPE_NONE:
    case KILN_TYPE_TUPLE:
      return kiln__ts_error(e, ast, "a value of type %s has no attribute '" KILN_STR_FMT "'",
                            kiln__ts_type_name(e, type), KILN_STR_ARG(name));
    default: break;
  }
  out->kind = KILN_SUGAR_OP;
  out->value = value;
  out->name =
      kiln_str_from(kiln_arena_printf(e->l->ast_arena, "aten::" KILN_STR_FMT, KILN_STR_ARG(name)));
  return NULL;
}

static kiln_status *path_attribute(kiln__script_emitter *e, kiln_str path, kiln_str name,
                                   kiln_sugar *out) {
  out->kind = KILN_SUGAR_PATH;
  out->name = kiln_str_from(kiln_arena_printf(e->l->ast_arena, KILN_STR_FMT "." KILN_STR_FMT,
                                              KILN_STR_ARG(path), KILN_STR_ARG(name)));
  kiln_found found;
  KILN_TRY(kiln__loader_find(e->l, out->name, &found));
  if (found.type) {
    out->kind = KILN_SUGAR_CLASS;
    out->type = found.type;
  } else if (found.function) {
    out->kind = KILN_SUGAR_FUNCTION;
    out->function = found.function;
  }
  return NULL;
}

/* Class.__new__, Class.method, Enum.MEMBER. */
static kiln_status *type_attribute(kiln__script_emitter *e, const kiln_ast *ast,
                                   const kiln_type *type, kiln_str name, kiln_sugar *out) {
  out->type = type;
  if (kiln_str_is(name, "__new__")) {
    out->kind = KILN_SUGAR_NEW;
    return NULL;
  }
  for (int i = 0; type->kind == KILN_TYPE_ENUM && i < type->cls->member_count; i++) {
    if (!kiln_str_equal(type->cls->member_names[i], name)) continue;
    kiln_enum *enumerator = NULL;
    KILN_TRY(kiln_enum_create(e->l->env->mem, type, i, &enumerator));
    out->kind = KILN_SUGAR_VALUE;
    out->value = kiln__ts_constant(e, ast, kiln_of_box(enumerator), type);
    return NULL;
  }
  out->function = type->cls ? kiln_class_find_method(type, name) : NULL;
  if (!out->function) {
    return kiln__ts_error(e, ast, KILN_STR_FMT " has no '" KILN_STR_FMT "'",
                          KILN_STR_ARG(type->name), KILN_STR_ARG(name));
  }
  out->kind = KILN_SUGAR_FUNCTION;
  return NULL;
}

static kiln_status *torch_attribute(kiln__script_emitter *e, const kiln_ast *ast, kiln_str name,
                                    kiln_sugar *out) {
  const kiln_dtype dtype = kiln_dtype_from_name(name);
  if (kiln_str_is(name, "autograd")) {
    out->kind = KILN_SUGAR_TORCH;
  } else if (dtype != KILN_DTYPE_NONE && dtype != KILN_DTYPE_BOOL) { /* torch.float32 is an int */
    out->value = kiln__ts_int(e, ast, dtype);
  } else {
    out->kind = KILN_SUGAR_OP;
    out->name = kiln_str_from(
        kiln_arena_printf(e->l->ast_arena, "aten::" KILN_STR_FMT, KILN_STR_ARG(name)));
  }
  return NULL;
}

kiln_status *kiln__ts_attribute(kiln__script_emitter *e, const kiln_ast *ast, kiln_sugar base,
                                kiln_str name, kiln_sugar *out) {
  *out = (kiln_sugar){.kind = KILN_SUGAR_VALUE};
  switch (base.kind) {
    case KILN_SUGAR_VALUE: return value_attribute(e, ast, base.value, name, out);
    case KILN_SUGAR_VALUES:
      KILN_TRY(kiln__sugar_value(e, ast, &base, &base.value));
      return value_attribute(e, ast, base.value, name, out);
    case KILN_SUGAR_TORCH: return torch_attribute(e, ast, name, out);
    case KILN_SUGAR_OPS:
      out->kind = KILN_SUGAR_NAMESPACE;
      out->name = name;
      return NULL;
    case KILN_SUGAR_NAMESPACE:
      out->kind = KILN_SUGAR_OP;
      out->name = kiln_str_from(kiln_arena_printf(e->l->ast_arena, KILN_STR_FMT "::" KILN_STR_FMT,
                                                  KILN_STR_ARG(base.name), KILN_STR_ARG(name)));
      return NULL;
    case KILN_SUGAR_CONSTANTS: {
      kiln_ivalue value;
      KILN_TRY(kiln__loader_constant(e->l, e->source, ast, &value));
      const kiln_type *type = kiln_ivalue_type(e->l->types, value);
      out->value = kiln__ts_constant(e, ast, kiln_ivalue_retain(value), type);
      kiln_ir_value_set_wrapped_number(out->value);
      return NULL;
    }
    case KILN_SUGAR_PATH: return path_attribute(e, base.name, name, out);
    case KILN_SUGAR_CLASS: return type_attribute(e, ast, base.type, name, out);
    default:
      return kiln__ts_error(e, ast, "this has no attribute '" KILN_STR_FMT "'", KILN_STR_ARG(name));
  }
}
