/* resolve.c: annotations to types: "Dict[str, List[int]]", "Optional[__torch__.m.C]". */
#include "frontend/torchscript/loader.h"

kiln_str kiln__dotted_name(kiln_arena *arena, const kiln_ast *ast) {
  size_t length = 0;
  const kiln_ast *at = ast;
  for (; at->kind == KILN_AST_ATTR; at = at->kids[0]) length += at->text.len + 1;
  if (at->kind != KILN_AST_NAME) return (kiln_str){0};
  length += at->text.len;
  char *name = kiln_arena_alloc(arena, length + 1);
  char *end = name + length;
  for (at = ast; at->kind == KILN_AST_ATTR; at = at->kids[0]) {
    end -= at->text.len;
    memcpy(end, at->text.data, at->text.len);
    *--end = '.';
  }
  memcpy(name, at->text.data, at->text.len);
  return kiln_str_make(name, length);
}

static kiln_status *resolve_name(kiln_loader *l, const kiln_source *source, const kiln_ast *ast,
                                 const kiln_type **out_type) {
  kiln_str name = kiln__dotted_name(l->ast_arena, ast);
  *out_type = kiln_type_of_word(name, true);
  if (*out_type) return NULL;
  if (kiln__is_custom_class(name) && !l->lenient) {
    const char *names = kiln__custom_classes(l, name);
    return strchr(names, ',')
               ? kiln_source_error(source, ast->begin, "custom classes %s are not supported", names)
               : kiln_source_error(source, ast->begin,
                                   "custom class " KILN_STR_FMT " is not supported",
                                   KILN_STR_ARG(name));
  }
  kiln_found found = {0};
  if (name.len > 0) KILN_TRY(kiln__loader_find(l, name, &found));
  if (found.type) {
    *out_type = found.type;
    return NULL;
  }
  return kiln_source_error(source, ast->begin, "unknown type '" KILN_STR_FMT "'",
                           KILN_STR_ARG(name));
}

static bool is_key_type(const kiln_type *type) {
  switch (type->kind) {
    case KILN_TYPE_INT:
    case KILN_TYPE_FLOAT:
    case KILN_TYPE_BOOL:
    case KILN_TYPE_STR:
    case KILN_TYPE_COMPLEX:
    case KILN_TYPE_TENSOR:
    case KILN_TYPE_DEVICE:
    case KILN_TYPE_ANY: return true;
    default: return false;
  }
}

/* List[T], Tuple[A, B], …: `elems` are the resolved arguments. */
static kiln_status *apply(kiln_loader *l, const kiln_source *source, const kiln_ast *ast,
                          kiln_str name, const kiln_type **elems, int count,
                          const kiln_type **out_type) {
  static const struct {
    const char *name;
    int count; /* -1: any */
  } generics[] = {{"List", 1},   {"Optional", 1}, {"Dict", 2},  {"Tuple", -1},
                  {"Union", -1}, {"Future", 1},   {"Await", 1}, {"RRef", 1},
                  {"Final", 1},  {"list", 1},     {"dict", 2},  {"tuple", -1}};
  int which = -1;
  for (int i = 0; i < (int)(sizeof generics / sizeof *generics); i++) {
    if (kiln_str_is(name, generics[i].name)) which = i;
  }
  if (which < 0) {
    return kiln_source_error(source, ast->begin, "'" KILN_STR_FMT "' takes no types",
                             KILN_STR_ARG(name));
  }
  if (generics[which].count >= 0 && generics[which].count != count) {
    return kiln_source_error(source, ast->begin, KILN_STR_FMT " takes %d type%s but has %d",
                             KILN_STR_ARG(name), generics[which].count,
                             kiln_plural((uint64_t)generics[which].count), count);
  }
  switch (name.data[0]) {
    case 'L':
    case 'l': *out_type = kiln_type_list(l->types, elems[0]); return NULL;
    case 'O': *out_type = kiln_type_optional(l->types, elems[0]); return NULL;
    case 'T':
    case 't': *out_type = kiln_type_tuple(l->types, elems, count); return NULL;
    case 'A': *out_type = kiln_type_wrap(l->types, KILN_TYPE_AWAIT, elems[0]); return NULL;
    case 'R': *out_type = kiln_type_wrap(l->types, KILN_TYPE_RREF, elems[0]); return NULL;
    case 'U':
      if (count == 0) return kiln_source_error(source, ast->begin, "a Union of nothing");
      *out_type = kiln_type_union(l->types, elems, count);
      return NULL;
    case 'F':
      *out_type = name.data[1] == 'i' ? elems[0] : kiln_type_future(l->types, elems[0]);
      return NULL;
    default: break;
  }
  if (!is_key_type(elems[0])) {
    return kiln_source_error(source, ast->begin, "a Dict with keys of a type that has no hash");
  }
  *out_type = kiln_type_dict(l->types, elems[0], elems[1]);
  return NULL;
}

kiln_status *kiln__resolve_type(kiln_loader *l, const kiln_source *source, const kiln_ast *ast,
                                const kiln_type **out_type) {
  if (ast->kind == KILN_AST_NONE) {
    *out_type = kiln_type_basic(KILN_TYPE_NONE);
    return NULL;
  }
  if (ast->kind == KILN_AST_NAME || ast->kind == KILN_AST_ATTR) {
    return resolve_name(l, source, ast, out_type);
  }
  if (ast->kind == KILN_AST_INDEX && ast->kids[0]->kind == KILN_AST_NAME) {
    int count = ast->count - 1;
    kiln_ast **kids = ast->kids + 1;
    if (count == 1 && kids[0]->kind == KILN_AST_TUPLE) { /* Tuple[()] */
      count = kids[0]->count;
      kids = kids[0]->kids;
    }
    const kiln_type **elems = KILN_NEW_ARRAY(l->ast_arena, const kiln_type *, count + 1);
    for (int i = 0; i < count; i++) KILN_TRY(kiln__resolve_type(l, source, kids[i], &elems[i]));
    return apply(l, source, ast, ast->kids[0]->text, elems, count, out_type);
  }
  return kiln_source_error(source, ast->begin, "not a type");
}
