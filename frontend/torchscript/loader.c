/* loader.c: from qualified names to definitions, files parsed on the way; recursion among
 * functions.
 *
 * Reference: torch/csrc/jit/serialization/import_source.cpp. */
#include "frontend/torchscript/loader.h"
#include "frontend/torchscript/origins.h"

enum { MAX_NESTED_DEFINITIONS = 200, FUNCTIONS_PER_CHECK = 16 };

kiln_status *kiln__loader_check(const kiln_loader *l, size_t more) {
  size_t bytes = kiln_arena_bytes(l->ast_arena) + kiln_arena_bytes(l->arena) + l->graph_bytes +
                 l->object_bytes + more;
  if (bytes > l->memory) {
    char number[32];
    kiln_format_bytes(l->memory, number);
    return KILN_ERROR(KILN_LIMIT, "the load needs more than its limit of %s (bytes)", number);
  }
  return kiln_budget_check(&l->budget, 0);
}

static kiln_status *check_parsing(void *user) { return kiln__loader_check(user, 0); }

/* -- Files -- */

static kiln_str entry_name_of(kiln_loader *l, kiln_str qualifier) {
  char *path = kiln_arena_printf(l->arena, "code/" KILN_STR_FMT ".py", KILN_STR_ARG(qualifier));
  for (size_t i = sizeof "code/" - 1; i < sizeof "code/" - 1 + qualifier.len; i++) {
    if (path[i] == '.') path[i] = '/';
  }
  return kiln_str_from(path);
}

static kiln_status *index_file(kiln_loader *l, kiln_code_file *file) {
  for (int i = 0; i < file->ast->count; i++) {
    kiln_ast *item = file->ast->kids[i];
    switch (item->kind) {
      case KILN_AST_CLASS:
      case KILN_AST_DEF:
        if (!kiln_map_find(&file->names, item->text)) {
          kiln_map_set(&file->names, item->text, item);
        }
        break;
      case KILN_AST_IMPORT:
      case KILN_AST_PASS:
      case KILN_AST_ASSIGN: break; /* op_version_set = 1 */
      default:
        return kiln_source_error(&file->source, item->begin,
                                 "only classes and functions may stand at the top of a file");
    }
  }
  return kiln__loader_check(l, 0);
}

/* What the code was printed from, if the archive tells it: read when an error is told. */
static void find_origins(kiln_loader *l, kiln_code_file *file) {
  kiln_str entry =
      kiln_str_from(kiln_arena_printf(l->arena, "%s.debug_pkl", file->source.name.data));
  if (!kiln_zip_find(l->zip, entry)) return;
  kiln_torchscript *model = l->model;
  kiln_vec_reserve(l->arena, &model->origins, model->origins.count + 1);
  file->source.origin = kiln__origins_create(l->arena, l->env, l->mapping, l->types, entry);
  model->origins.data[model->origins.count++] = file->source.origin;
}

/* The file of a qualifier, parsed; *out_file is NULL when there is none. */
static kiln_status *find_file(kiln_loader *l, kiln_str qualifier, kiln_code_file **out_file) {
  *out_file = kiln_map_find(&l->files, qualifier);
  if (*out_file && (*out_file)->broken) {
    return KILN_ERROR(KILN_INVALID_FILE, "%s could not be read", (*out_file)->source.name.data);
  }
  if (*out_file) return NULL;
  bool builtin = kiln_str_is(qualifier, KILN_UPGRADE_QUALIFIER);
  kiln_str name = builtin ? KILN_STR("an upgrader of Kiln") : entry_name_of(l, qualifier);
  kiln_zip_entry *entry = builtin ? NULL : kiln_zip_find(l->zip, name);
  if (!entry && !builtin) return NULL;
  kiln_code_file *file = KILN_NEW(l->arena, kiln_code_file);
  file->builtin = builtin;
  file->source.name = name;
  file->source.first_line = 1;
  file->qualifier = kiln_arena_str(l->arena, qualifier);
  file->names = kiln_map_in(l->ast_arena);
  if (builtin) {
    file->source.text = kiln__upgrade_source();
  } else {
    KILN_TRY(kiln_zip_read(l->zip, entry, &file->source.text));
  }
  if (file->source.text.len >= UINT32_MAX) {
    return KILN_ERROR(KILN_INVALID_FILE, "%s is larger than 4 GiB", name.data);
  }
  if (!kiln_str_is_utf8(file->source.text)) {
    return KILN_ERROR(KILN_INVALID_FILE, "%s is not UTF-8", name.data);
  }
  kiln_source_index_lines(&file->source, l->arena);
  if (!builtin) find_origins(l, file);
  kiln_ast *ast;
  file->broken = true; /* it is not parsed twice, whoever needs it again */
  kiln_map_set(&l->files, file->qualifier, file);
  const kiln_ast_check check = {check_parsing, l};
  KILN_TRY(kiln_ast_parse(l->ast_arena, &file->source, &check, &ast));
  file->ast = ast;
  KILN_TRY(index_file(l, file));
  file->broken = false;
  *out_file = file;
  return NULL;
}

/* -- Names -- */

static kiln_status *define(kiln_loader *l, kiln_code_file *file, const kiln_ast *ast,
                           kiln_str qualname, kiln_found *out_found) {
  kiln_str name = kiln_arena_str(l->arena, qualname);
  if (ast->kind == KILN_AST_DEF) {
    out_found->function = kiln__declare(l, file, ast, name, NULL);
    return NULL;
  }
  if (kiln_map_find(&l->defining, name)) {
    return kiln_source_error(&file->source, ast->begin,
                             "class " KILN_STR_FMT " is defined in terms of itself",
                             KILN_STR_ARG(name));
  }
  if (++l->depth > MAX_NESTED_DEFINITIONS) {
    return kiln_source_error(&file->source, ast->begin, "classes are nested deeper than %d",
                             MAX_NESTED_DEFINITIONS);
  }
  kiln_map_set(&l->defining, name, l);
  kiln_status *status = kiln__define_class(l, file, ast, name, &out_found->type);
  kiln_map_remove(&l->defining, name);
  l->depth--;
  return status;
}

kiln_status *kiln__loader_find(kiln_loader *l, kiln_str qualname, kiln_found *out_found) {
  *out_found = (kiln_found){0};
  out_found->function = kiln_unit_find_function(l->unit, qualname);
  if (out_found->function) return NULL;
  out_found->type = kiln_type_find(l->types, qualname);
  if (out_found->type) return NULL;
  if (l->lenient && kiln__is_custom_class(qualname)) {
    out_found->type = kiln__define_custom_class(l, qualname);
    return NULL;
  }
  size_t dot = kiln_str_behind_last(qualname, '.');
  if (dot == 0) return NULL;
  kiln_code_file *file = NULL;
  KILN_TRY(find_file(l, kiln_str_make(qualname.data, dot - 1), &file));
  if (!file) return NULL;
  kiln_str name = kiln_str_without(qualname, dot);
  const kiln_ast *ast = kiln_map_find(&file->names, name);
  return ast ? define(l, file, ast, qualname, out_found) : NULL;
}

/* -- Schemas -- */

static kiln_status *resolve_param(kiln_loader *l, kiln_function *function, const kiln_ast *param,
                                  bool is_self, kiln_schema_arg *arg) {
  kiln_pending_body *body = function->pending;
  const kiln_source *source = &body->file->source;
  arg->name = kiln_arena_str(l->arena, param->text);
  arg->kwarg_only = param->op != 0;
  if (is_self) {
    arg->type = function->owner;
    return NULL;
  }
  arg->type = kiln_type_basic(KILN_TYPE_TENSOR);
  if (param->kids[0]) KILN_TRY(kiln__resolve_type(l, source, param->kids[0], &arg->type));
  if (param->kids[1]) {
    kiln_ivalue value;
    KILN_TRY(kiln__eval_literal(l, body->file, param->kids[1], arg->type, &value));
    if (!kiln_ivalue_matches(value, arg->type)) {
      return kiln_source_error(source, param->kids[1]->begin,
                               "the default of '" KILN_STR_FMT "' is not of its type",
                               KILN_STR_ARG(param->text));
    }
    arg->default_value = kiln_ivalue_retain(value);
    arg->has_default = true;
  }
  return NULL;
}

kiln_status *kiln__loader_schema(kiln_loader *l, kiln_function *function) {
  if (function->schema) return NULL;
  kiln_pending_body *body = function->pending;
  const kiln_ast *def = body->def;
  if (body->schema_open) {
    return kiln_source_error(&body->file->source, def->begin, "a signature refers to itself");
  }
  body->schema_open = true;
  kiln_schema *schema = KILN_NEW(l->arena, kiln_schema);
  schema->name = kiln_str_from(function->qualname);
  schema->arg_count = def->count - 2;
  schema->args = KILN_NEW_ARRAY(l->arena, kiln_schema_arg, schema->arg_count + 1);
  schema->result_count = 1;
  schema->results = KILN_NEW(l->arena, kiln_schema_arg);
  kiln_status *status = NULL;
  if (function->owner && schema->arg_count == 0) {
    status = kiln_source_error(&body->file->source, def->begin, "a method without self");
  }
  for (int i = 0; i < schema->arg_count && !status; i++) {
    status =
        resolve_param(l, function, def->kids[2 + i], i == 0 && function->owner, &schema->args[i]);
  }
  schema->results[0].type = kiln_type_basic(KILN_TYPE_TENSOR);
  if (!status && def->kids[0]) {
    status = kiln__resolve_type(l, &body->file->source, def->kids[0], &schema->results[0].type);
  }
  body->schema_open = false;
  if (status) {
    kiln_schema_deinit(schema);
    return status;
  }
  function->schema = schema;
  return NULL;
}

/* -- Bodies -- */

/* Depth-first search with a stack of its own: a function that can reach itself is refused, since
 * its inlining would not end. */
static kiln_status *refuse_recursion(kiln_loader *l, kiln_function *root) {
  typedef struct {
    kiln_pending_body *body;
    kiln_function *function;
    int next;
  } frame;
  KILN_VEC(frame) stack = {0};
  kiln_pending_body *first = root->pending;
  if (!first || first->color) return NULL;
  first->color = 1;
  kiln_vec_push(l->ast_arena, &stack, (frame){first, root, 0});
  while (stack.count > 0) {
    frame *top = &kiln_vec_last(&stack);
    if (top->next == top->body->calls.count) {
      top->body->color = 2;
      (void)kiln_vec_pop(&stack);
      continue;
    }
    kiln_function *callee = top->body->calls.data[top->next++];
    kiln_pending_body *body = callee->pending;
    if (!body || body->color == 2) continue;
    if (body->color == 1) {
      return kiln_source_error(&body->file->source, body->def->begin,
                               "function '%s' is called recursively, which TorchScript does not "
                               "support",
                               callee->qualname);
    }
    body->color = 1;
    kiln_vec_push(l->ast_arena, &stack, (frame){body, callee, 0});
  }
  return NULL;
}

static kiln_status *compile(kiln_loader *l, kiln_function *function) {
  if (function->state != 0 || !function->pending) return NULL;
  kiln_status *status = kiln__loader_schema(l, function);
  kiln_pending_body *body = function->pending;
  bool has_body = !function->owner || function->owner->kind != KILN_TYPE_INTERFACE;
  if (!status && has_body) {
    function->state = 1;
    status = kiln__ts_function(l, function);
    if (function->graph) l->graph_bytes += kiln_arena_bytes(function->graph->arena);
    if (!status && ++l->functions % FUNCTIONS_PER_CHECK == 0) status = kiln__loader_check(l, 0);
  }
  function->state = 2;
  if (!status) return NULL;
  if (kiln_status_code(status) != KILN_OUT_OF_MEMORY) {
    status = kiln_status_note(status, "in %s, %.*s", function->qualname,
                              KILN_STR_ARG(body->file->source.name));
  }
  if (!l->lenient || kiln_status_ends(status)) return status;
  function->error = status;
  return NULL;
}

kiln_status *kiln__loader_compile_all(kiln_loader *l) {
  for (int i = 0; i < l->unit->all.count; i++) {
    KILN_TRY(kiln_budget_check(&l->budget, 0));
    KILN_TRY(compile(l, l->unit->all.data[i]));
  }
  for (int i = 0; i < l->unit->all.count; i++) KILN_TRY(refuse_recursion(l, l->unit->all.data[i]));
  for (int i = 0; i < l->unit->all.count; i++) l->unit->all.data[i]->pending = NULL;
  return NULL;
}
