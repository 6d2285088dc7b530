/* literal.c: constant expressions: defaults of parameters, Final attributes, enum members. Values
 * belong to the unit; room in its list is made before each is created. */
#include <math.h>

#include "frontend/torchscript/loader.h"

static void reserve(kiln_loader *l) {
  kiln_vec_reserve(l->arena, &l->unit->owned, l->unit->owned.count + 1);
}

static kiln_ivalue own(kiln_loader *l, kiln_ivalue value) {
  l->unit->owned.data[l->unit->owned.count++] = value;
  return value;
}

kiln_status *kiln__loader_constant(kiln_loader *l, const kiln_source *source, const kiln_ast *ast,
                                   kiln_ivalue *out_value) {
  int64_t index, count = l->constants.tag == KILN_TAG_TUPLE ? l->constants.u.tuple->count : 0;
  kiln_str digits = kiln_str_make(ast->text.data + 1, ast->text.len ? ast->text.len - 1 : 0);
  if (ast->text.len < 2 || ast->text.data[0] != 'c' || !kiln_str_parse_i64(digits, &index)) {
    return kiln_source_error(source, ast->begin, "CONSTANTS has no '" KILN_STR_FMT "'",
                             KILN_STR_ARG(ast->text));
  }
  if (index < 0 || index >= count) {
    return kiln_source_error(source, ast->begin, "constant %lld of %lld", (long long)index,
                             (long long)count);
  }
  *out_value = l->constants.u.tuple->items[index];
  return NULL;
}

static kiln_status *not_constant(const kiln_code_file *file, const kiln_ast *ast) {
  return kiln_source_error(&file->source, ast->begin, "a constant is expected here");
}

/* A container says of itself what its items are, so they are looked at here. */
static kiln_status *eval_item(kiln_loader *l, kiln_code_file *file, const kiln_ast *ast,
                              const kiln_type *type, kiln_ivalue *out_item) {
  KILN_TRY(kiln__eval_literal(l, file, ast, type, out_item));
  if (!type || kiln_ivalue_matches(*out_item, type)) return NULL;
  return kiln_source_error(&file->source, ast->begin, "an item is not of its declared type");
}

static kiln_status *eval_items(kiln_loader *l, kiln_code_file *file, const kiln_ast *ast,
                               const kiln_type *type, kiln_ivalue *out_value) {
  bool is_list = ast->kind == KILN_AST_LIST;
  const kiln_type *elem = is_list && type && type->kind == KILN_TYPE_LIST ? type->elems[0] : NULL;
  bool typed_tuple =
      !is_list && type && type->kind == KILN_TYPE_TUPLE && type->elem_count == ast->count;
  kiln_list *list = NULL;
  kiln_tuple *tuple = NULL;
  reserve(l);
  if (is_list) {
    KILN_TRY(kiln_list_create(l->env->mem, elem, ast->count, &list));
    *out_value = own(l, kiln_of_box(list));
  } else {
    KILN_TRY(kiln_tuple_create(l->env->mem, typed_tuple ? type : NULL, ast->count, &tuple));
    *out_value = own(l, kiln_of_box(tuple));
  }
  for (int i = 0; i < ast->count; i++) {
    kiln_ivalue item;
    const kiln_type *want = is_list ? elem : typed_tuple ? type->elems[i] : NULL;
    KILN_TRY(eval_item(l, file, ast->kids[i], want, &item));
    if (is_list) {
      KILN_TRY(kiln_list_push(list, kiln_ivalue_retain(item)));
    } else {
      tuple->items[i] = kiln_ivalue_retain(item);
    }
  }
  return NULL;
}

static kiln_status *eval_dict(kiln_loader *l, kiln_code_file *file, const kiln_ast *ast,
                              const kiln_type *type, kiln_ivalue *out_value) {
  bool typed = type && type->kind == KILN_TYPE_DICT;
  const kiln_type *key_type = typed ? type->elems[0] : NULL;
  const kiln_type *value_type = typed ? type->elems[1] : NULL;
  kiln_dict *dict = NULL;
  reserve(l);
  KILN_TRY(kiln_dict_create(l->env->mem, key_type, value_type, &dict));
  *out_value = own(l, kiln_of_box(dict));
  for (int i = 0; i + 1 < ast->count; i += 2) {
    kiln_ivalue key = kiln_none(), value = kiln_none();
    KILN_TRY(eval_item(l, file, ast->kids[i], key_type, &key));
    KILN_TRY(eval_item(l, file, ast->kids[i + 1], value_type, &value));
    KILN_TRY(kiln_dict_set(dict, kiln_ivalue_retain(key), kiln_ivalue_retain(value)));
  }
  return NULL;
}

static kiln_status *eval_complex(kiln_loader *l, double re, double im, kiln_ivalue *out_value) {
  kiln_complex *number = NULL;
  reserve(l);
  KILN_TRY(kiln_complex_create(l->env->mem, re, im, &number));
  *out_value = own(l, kiln_of_box(number));
  return NULL;
}

static kiln_status *eval_string(kiln_loader *l, kiln_str text, kiln_ivalue *out_value) {
  kiln_string *string = NULL;
  reserve(l);
  KILN_TRY(kiln_string_create(l->env->mem, text, &string));
  *out_value = own(l, kiln_of_box(string));
  return NULL;
}

/* CONSTANTS.c0, __torch__.m.Color.RED, inf, nan. */
static kiln_status *eval_name(kiln_loader *l, kiln_code_file *file, const kiln_ast *ast,
                              kiln_ivalue *out_value) {
  kiln_str name = kiln__dotted_name(l->ast_arena, ast);
  if (kiln_str_is(name, "inf") || kiln_str_is(name, "nan")) {
    *out_value = kiln_float(name.data[0] == 'i' ? INFINITY : NAN);
    return NULL;
  }
  if (kiln_str_is(name, "infj") || kiln_str_is(name, "nanj")) {
    return eval_complex(l, 0, name.data[0] == 'i' ? INFINITY : NAN, out_value);
  }
  if (kiln_str_starts(name, "CONSTANTS.") && ast->kind == KILN_AST_ATTR) {
    return kiln__loader_constant(l, &file->source, ast, out_value);
  }
  if (ast->kind != KILN_AST_ATTR || name.len == 0) return not_constant(file, ast);
  kiln_found found;
  kiln_str owner = kiln_str_make(name.data, name.len - ast->text.len - 1);
  KILN_TRY(kiln__loader_find(l, owner, &found));
  if (!found.type || found.type->kind != KILN_TYPE_ENUM) return not_constant(file, ast);
  for (int i = 0; i < found.type->cls->member_count; i++) {
    if (!kiln_str_equal(found.type->cls->member_names[i], ast->text)) continue;
    kiln_enum *enumerator = NULL;
    reserve(l);
    KILN_TRY(kiln_enum_create(l->env->mem, found.type, i, &enumerator));
    *out_value = own(l, kiln_of_box(enumerator));
    return NULL;
  }
  return not_constant(file, ast);
}

static bool numbers_of(kiln_ivalue v, double *out_re, double *out_im) {
  *out_im = 0;
  if (v.tag == KILN_TAG_INT)
    *out_re = (double)v.u.i;
  else if (v.tag == KILN_TAG_FLOAT)
    *out_re = v.u.f;
  else if (v.tag == KILN_TAG_COMPLEX)
    *out_re = v.u.complex->re, *out_im = v.u.complex->im;
  else
    return false;
  return true;
}

/* -inf, and complex constants, which print as sums: 0.+2.j, 1.-infj. */
static kiln_status *eval_operator(kiln_loader *l, kiln_code_file *file, const kiln_ast *ast,
                                  kiln_ivalue *out_value) {
  kiln_ivalue a = kiln_none(), b = kiln_int(0);
  double re, im, re2, im2;
  KILN_TRY(kiln__eval_literal(l, file, ast->kids[0], NULL, &a));
  if (ast->kind == KILN_AST_BINARY) {
    KILN_TRY(kiln__eval_literal(l, file, ast->kids[1], NULL, &b));
  }
  if (!numbers_of(a, &re, &im) || !numbers_of(b, &re2, &im2)) return not_constant(file, ast);
  if (ast->kind == KILN_AST_UNARY) {
    if (ast->op != '-') return not_constant(file, ast);
    if (a.tag == KILN_TAG_INT)
      *out_value = kiln_int((int64_t)(0 - (uint64_t)a.u.i));
    else if (a.tag == KILN_TAG_FLOAT)
      *out_value = kiln_float(-re);
    else
      return eval_complex(l, -re, -im, out_value);
    return NULL;
  }
  if ((ast->op != '+' && ast->op != '-') || b.tag != KILN_TAG_COMPLEX) {
    return not_constant(file, ast);
  }
  double sign = ast->op == '+' ? 1 : -1;
  return eval_complex(l, re + sign * re2, im + sign * im2, out_value);
}

/* torch.device("cpu") and annotate(T, value). */
static kiln_status *eval_call(kiln_loader *l, kiln_code_file *file, const kiln_ast *ast,
                              kiln_ivalue *out_value) {
  kiln_str name = kiln__dotted_name(l->ast_arena, ast->kids[0]);
  if (kiln_str_is(name, "annotate") && ast->count == 3) {
    const kiln_type *type;
    KILN_TRY(kiln__resolve_type(l, &file->source, ast->kids[1], &type));
    return kiln__eval_literal(l, file, ast->kids[2], type, out_value);
  }
  if (kiln_str_is(name, "torch.device") && ast->count == 2 &&
      ast->kids[1]->kind == KILN_AST_STRING) {
    kiln_str text = ast->kids[1]->text;
    kiln_device_id device;
    kiln_device_map_apply(l->model->devices, &text, KILN_REMAP_CODE, file->source.name);
    if (!kiln_device_parse(text, &device)) return not_constant(file, ast);
    *out_value = kiln_device_value(device);
    return NULL;
  }
  return not_constant(file, ast);
}

kiln_status *kiln__eval_literal(kiln_loader *l, kiln_code_file *file, const kiln_ast *ast,
                                const kiln_type *type, kiln_ivalue *out_value) {
  if (type && type->kind == KILN_TYPE_OPTIONAL) type = type->elems[0];
  switch ((kiln_ast_kind)ast->kind) {
    case KILN_AST_NONE: *out_value = kiln_none(); return NULL;
    case KILN_AST_TRUE: *out_value = kiln_bool(true); return NULL;
    case KILN_AST_FALSE: *out_value = kiln_bool(false); return NULL;
    case KILN_AST_INT:
      *out_value = type && type->kind == KILN_TYPE_FLOAT ? kiln_float((double)ast->u.integer)
                                                         : kiln_int(ast->u.integer);
      return NULL;
    case KILN_AST_FLOAT: *out_value = kiln_float(ast->u.number); return NULL;
    case KILN_AST_IMAGINARY: return eval_complex(l, 0, ast->u.number, out_value);
    case KILN_AST_STRING: return eval_string(l, ast->text, out_value);
    case KILN_AST_TUPLE:
    case KILN_AST_LIST: return eval_items(l, file, ast, type, out_value);
    case KILN_AST_DICT: return eval_dict(l, file, ast, type, out_value);
    case KILN_AST_UNARY:
    case KILN_AST_BINARY: return eval_operator(l, file, ast, out_value);
    case KILN_AST_CALL: return eval_call(l, file, ast, out_value);
    case KILN_AST_NAME:
    case KILN_AST_ATTR: return eval_name(l, file, ast, out_value);
    default: return not_constant(file, ast);
  }
}
