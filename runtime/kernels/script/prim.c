/* prim.c: structural operators that run as kernels: print, tolist, members of enums, modules by
 * index. Their arguments are not checked by a schema. */
#include <stdio.h>
#include <string.h>

#include "runtime/kernels/support.h"

/* Arguments separated by spaces, and a newline. */
static kiln_status *print(kiln_call *call, kiln_text *text, void *arg) {
  const kiln_ivalue *args = arg;
  for (int i = 0; i < call->arg_count; i++) {
    if (i) kiln_text_putc(text, ' ');
    kiln_ivalue_print(text, args[i]);
  }
  kiln_text_putc(text, '\n');
  kiln_str s = kiln_text_str(text);
  if (call->print)
    call->print(call->print_user, s.data, s.len);
  else
    fwrite(s.data, 1, s.len, stdout);
  return NULL;
}
KILN_KERNEL(print) { return kiln_call_text(call, print, (void *)(uintptr_t)args); }

/* -- tolist -- */

static kiln_status *nested(kiln_call *call, const kiln_tensor *t, int dim, int64_t offset,
                           kiln_type_kind elem, kiln_ivalue *out) {
  if (dim == kiln_tensor_rank(t)) return kiln__element(call, t, offset, out);
  kiln_list *list;
  int64_t size = kiln_tensor_sizes(t)[dim];
  const kiln_type *type = dim + 1 == kiln_tensor_rank(t) ? kiln_type_basic(elem) : NULL;
  KILN_TRY(kiln_list_create_in(call->env->mem, &call->cache, type, size, &list));
  *out = kiln_of_box(list);
  for (int64_t i = 0; i < size; i++) {
    kiln_ivalue item = kiln_none();
    kiln_status *status =
        nested(call, t, dim + 1, offset + i * kiln_tensor_strides(t)[dim], elem, &item);
    if (status) {
      kiln_ivalue_release_to(&call->cache, item);
      return status;
    }
    KILN_TRY(kiln_list_push(list, item));
  }
  return NULL;
}
/* tensor, depth of the lists, code of the element: 0 int, 1 float, 2 complex, 3 bool */
KILN_KERNEL(tolist) {
  static const kiln_type_kind kinds[] = {KILN_TYPE_INT, KILN_TYPE_FLOAT, KILN_TYPE_COMPLEX,
                                         KILN_TYPE_BOOL};
  const kiln_tensor *t = SELF;
  int64_t code = kiln_arg_int(args, 2);
  if (kiln_arg_int(args, 1) != kiln_tensor_rank(t)) {
    return KILN_OP_FAIL(
        "Output annotation list dimension and runtime tensor dimension must match for "
        "tolist()");
  }
  kiln_dtype dtype = kiln_tensor_dtype(t);
  bool fits = code == 0   ? dtype == KILN_DTYPE_I64
              : code == 1 ? kiln_dtype_is_float(dtype)
              : code == 2 ? kiln_dtype_is_complex(dtype)
              : code == 3 ? dtype == KILN_DTYPE_BOOL
                          : false;
  if (!fits) {
    return KILN_OP_FAIL(
        "Output annotation element type and runtime tensor element type must match for "
        "tolist()");
  }
  return nested(call, t, 0, 0, kinds[code], outs);
}

/* -- Members -- */

KILN_KERNEL(enum_name) {
  const kiln_enum *e = args[0].u.enumerator;
  const kiln_class_info *cls = e->type->cls;
  KILN_CHECK(cls && e->member >= 0 && e->member < cls->member_count);
  kiln_string *name;
  KILN_TRY(kiln_string_create(call->env->mem, cls->member_names[e->member], &name));
  return kiln__give_value(outs, kiln_of_box(name));
}
KILN_KERNEL(enum_value) {
  const kiln_enum *e = args[0].u.enumerator;
  const kiln_class_info *cls = e->type->cls;
  KILN_CHECK(cls && e->member >= 0 && e->member < cls->member_count);
  return kiln__give_value(outs, kiln_ivalue_retain(cls->member_values[e->member]));
}
static kiln_status *submodule(const kiln_object *object, int slot, kiln_ivalue *out) {
  kiln_ivalue v = object->slots[slot];
  if (v.tag != KILN_TAG_OBJECT) return KILN_OP_FAIL("a submodule is not set");
  return kiln__give_value(out, kiln_ivalue_retain(v));
}

/* A submodule by position or by name. Positions are counted over attributes that are modules. */
KILN_KERNEL(module_index) {
  const kiln_object *object = args[0].u.object;
  const kiln_type *type = object->type;
  if (args[1].tag == KILN_TAG_STRING) {
    int slot = kiln_type_find_attribute(type, kiln_arg_str(args, 1));
    if (slot < 0 || slot >= object->count) {
      return KILN_OP_FAIL("KeyError: " KILN_STR_FMT, KILN_STR_ARG(kiln_arg_str(args, 1)));
    }
    return submodule(object, slot, outs);
  }
  int64_t index = kiln_arg_int(args, 1), count = 0;
  for (int pass = 0; pass < 2; pass++) {
    int64_t at = 0;
    for (int i = 0; i < type->cls->attribute_count && i < object->count; i++) {
      const kiln_type *t = type->cls->attributes[i].type;
      if (t->kind != KILN_TYPE_CLASS || !t->cls->is_module) continue;
      if (pass && at == index) return submodule(object, i, outs);
      at++;
    }
    count = at;
    if (!pass && index < 0) index += count;
  }
  return KILN_OP_FAIL("list index out of range");
}
