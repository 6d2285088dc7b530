/* parse.c: parser of the textual form (print.c): descent over the bytes, any bytes give a graph or
 * a status.
 *
 * Numbers and names of values are kept, so that printing gives the text again. Values are seen in
 * the rest of their block and in blocks within it. Overloads are chosen as the graph's nodes are
 * met, from the types of their inputs; what no overload takes stays an unknown operator. A name
 * with a suffix "_N" is a group while a "with" for it follows the graph; else the suffix is part of
 * it. */
#include "ir/match.h"
#include "ir/reader.h"

/* A node that may get its subgraph from a "with". */
typedef struct pending {
  kiln_node *node;
  kiln_str full_name;
} pending;

/* One graph of the text (the main one or a subgraph). */
typedef struct graph_parser {
  kiln__reader *r;
  kiln_graph *graph;
  kiln_map values;                      /* name -> value, of the blocks that are open */
  KILN_VEC(kiln_str) names;             /* of `values`, in order of definition */
  kiln_map ids;                         /* number + 1 -> value */
  KILN_VEC(kiln_ir_value *) unnumbered; /* numbers that were taken already */
  KILN_VEC(pending) groups;
} graph_parser;

static kiln_status *parse_graph(kiln__reader *r, kiln_graph *graph);
static kiln_status *parse_block(graph_parser *g, kiln_block *block, const char *end);

/* -- Values -- */

/* "x.1" after a '%'. */
static kiln_status *parse_value_name(graph_parser *g, kiln_str *out) {
  KILN_TRY(kiln__reader_expect(g->r, "%"));
  *out = kiln__reader_word(g->r);
  const char *colon = memchr(out->data, ':', out->len); /* "%x:int" */
  if (colon) {
    out->len = (size_t)(colon - out->data);
    g->r->c.at = colon;
  }
  return out->len ? NULL : kiln__reader_fail(g->r, "expected a name");
}

static kiln_status *parse_use(graph_parser *g, kiln_ir_value **out) {
  kiln_str name;
  KILN_TRY(parse_value_name(g, &name));
  *out = kiln_map_find(&g->values, name);
  if (*out) return NULL;
  return kiln__reader_fail(g->r, "%%" KILN_STR_FMT " is not defined here", KILN_STR_ARG(name));
}

/* Names a value as the text does. */
static kiln_status *define(graph_parser *g, kiln_ir_value *value, kiln_str name) {
  kiln__reader *r = g->r;
  if (kiln_map_find(&g->values, name)) {
    return kiln__reader_fail(r, "%%" KILN_STR_FMT " is defined twice", KILN_STR_ARG(name));
  }
  kiln_map_set(&g->values, name, value);
  kiln_vec_push(r->arena, &g->names, name);
  int64_t id;
  bool canonical = name.data[0] != '0' || name.len == 1;
  if (!canonical || !kiln_str_parse_i64(name, &id) || id < 0 || id > INT32_MAX) {
    kiln_ir_value_set_name(value, name);
    kiln_vec_push(r->arena, &g->unnumbered, value);
    return NULL;
  }
  if (kiln_map_find_id(&g->ids, (uint64_t)id + 1)) {
    kiln_vec_push(r->arena, &g->unnumbered, value);
    return NULL;
  }
  kiln_map_set_id(&g->ids, (uint64_t)id + 1, value);
  value->id = (uint32_t)id;
  if (g->graph->next_id <= value->id) g->graph->next_id = value->id + 1;
  return NULL;
}

static void close_scope(graph_parser *g, int mark) {
  while (g->names.count > mark) kiln_map_remove(&g->values, kiln_vec_pop(&g->names));
}

/* -- Attributes -- */

/* The text at the cursor is a type and not a value: (possibly behind brackets) a name that is no
 * value's. */
static bool looks_like_type(kiln__reader *r) {
  const char *begin = r->c.at;
  while (r->c.at < r->c.end && (*r->c.at == '(' || *r->c.at == ' ')) r->c.at++;
  kiln_str word = kiln__reader_word(r);
  bool is_dump = kiln_cursor_peek(&r->c) == '{'; /* "CPUFloatType{0}" */
  r->c.at = begin;
  if (is_dump || !word.len || kiln_is_digit(word.data[0]) || word.data[0] == '.') return false;
  static const char *const values[] = {"inf", "nan", "None", "True", "False", "annotate"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    if (kiln_str_is(word, values[i])) return false;
  }
  return true;
}

/* A list of types, or false and the cursor where it was. */
static kiln_status *try_types(kiln__reader *r, kiln_node *node, const char *name, bool *out_is) {
  const char *begin = r->c.at;
  *out_is = false;
  if (!kiln_cursor_accept(&r->c, "[")) return NULL;
  kiln_cursor_skip(&r->c);
  bool empty = kiln_cursor_accept(&r->c, "]"); /* empty lists of values are annotated */
  if (!empty && !looks_like_type(r)) {
    r->c.at = begin;
    return NULL;
  }
  KILN_VEC(const kiln_type *) types = {0};
  while (!empty) {
    const kiln_type *type;
    KILN_TRY(kiln__reader_type(r, &type));
    kiln_vec_push(r->arena, &types, type);
    if (kiln_cursor_accept(&r->c, ",")) continue;
    KILN_TRY(kiln__reader_expect(r, "]"));
    break;
  }
  kiln_node_set_types(node, name, types.data, types.count);
  *out_is = true;
  return NULL;
}

static kiln_status *parse_attr_value(kiln__reader *r, kiln_node *node, const char *name,
                                     const kiln_type *hint) {
  kiln_cursor_skip(&r->c);
  if (!hint) {
    bool is_types;
    KILN_TRY(try_types(r, node, name, &is_types));
    if (is_types) return NULL;
    if (looks_like_type(r)) {
      const kiln_type *type;
      KILN_TRY(kiln__reader_type(r, &type));
      kiln_node_set_type(node, name, type);
      return NULL;
    }
  }
  if (kiln_cursor_accept(&r->c, "<Graph>")) return NULL; /* of a single printed node */
  kiln_ivalue value;
  KILN_TRY(kiln__literal_parse(r, hint, &value));
  kiln__node_set_owned(node, name, value);
  return NULL;
}

/* After the '['. `hint` is the type of a constant's value. */
static kiln_status *parse_attrs(kiln__reader *r, kiln_node *node, const kiln_type *hint) {
  do {
    kiln_cursor_skip(&r->c);
    kiln_str word = kiln__reader_word(r);
    if (!word.len) return kiln__reader_fail(r, "expected an attribute");
    const char *name = kiln_arena_str(r->arena, word).data;
    KILN_TRY(kiln__reader_expect(r, "="));
    KILN_TRY(parse_attr_value(r, node, name, strcmp(name, "value") == 0 ? hint : NULL));
  } while (kiln_cursor_accept(&r->c, ","));
  return kiln__reader_expect(r, "]");
}

/* -- Places -- */

/* "# file:line:col" as a range in a made-up source: blanks, so that the column is found again. */
static void set_range(kiln__reader *r, kiln_node *node, kiln_str comment) {
  enum { MAX_COLUMN = 4096 };
  int64_t numbers[2];
  for (int i = 1; i >= 0; i--) {
    size_t colon = kiln_str_behind_last(comment, ':');
    if (colon == 0) return;
    kiln_str digits = kiln_str_without(comment, colon);
    if (!kiln_str_parse_i64(digits, &numbers[i]) || numbers[i] < 0) return;
    comment.len = colon - 1;
  }
  if (numbers[0] > INT32_MAX || numbers[1] > MAX_COLUMN) return;
  kiln_source *source = KILN_NEW(r->arena, kiln_source);
  source->name = kiln_arena_str(r->arena, comment);
  source->first_line = (int)numbers[0];
  char *blanks = kiln_arena_alloc(r->arena, (size_t)numbers[1] + 1);
  memset(blanks, ' ', (size_t)numbers[1]);
  source->text = kiln_str_make(blanks, (size_t)numbers[1]);
  kiln_source_range *range = KILN_NEW(r->arena, kiln_source_range);
  range->source = source;
  range->begin = range->end = (uint32_t)numbers[1];
  range->function = "";
  node->range = range;
}

static void skip_blanks(kiln__reader *r) {
  while (r->c.at < r->c.end && (*r->c.at == ' ' || *r->c.at == '\t')) r->c.at++;
}

static kiln_str trim(const char *begin, const char *end) {
  while (begin < end && (*begin == ' ' || *begin == '\t')) begin++;
  while (begin < end && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) end--;
  return kiln_str_make(begin, (size_t)(end - begin));
}

/* ", scope: …" and "# …" on the rest of the line. */
static void parse_line_end(kiln__reader *r, kiln_node *node) {
  static const char scope[] = ", scope:";
  skip_blanks(r);
  if (kiln_str_starts(kiln_cursor_rest(&r->c), scope)) {
    const char *begin = r->c.at += sizeof scope - 1;
    while (r->c.at < r->c.end && *r->c.at != '\n' && *r->c.at != '#') r->c.at++;
    kiln_str text = trim(begin, r->c.at);
    node->scope = kiln_arena_str(r->arena, text);
  }
  if (kiln_cursor_peek(&r->c) != '#') return;
  const char *begin = ++r->c.at;
  while (r->c.at < r->c.end && *r->c.at != '\n') r->c.at++;
  set_range(r, node, trim(begin, r->c.at));
}

/* -- Nodes -- */

typedef struct output {
  kiln_str name;
  const kiln_type *type; /* NULL: to be found */
} output;
typedef KILN_VEC(output) outputs;

static kiln_status *parse_outputs(graph_parser *g, outputs *outs) {
  kiln__reader *r = g->r;
  kiln_cursor_skip(&r->c);
  if (kiln_cursor_peek(&r->c) == '%') {
    do {
      output out = {{0}, NULL};
      KILN_TRY(parse_value_name(g, &out.name));
      if (kiln_cursor_accept(&r->c, ":")) KILN_TRY(kiln__reader_type(r, &out.type));
      kiln_vec_push(r->arena, outs, out);
    } while (kiln_cursor_accept(&r->c, ","));
    return kiln__reader_expect(r, "=");
  }
  (void)kiln_cursor_accept(&r->c, "="); /* no results */
  return NULL;
}

/* Splits "prim::TensorExprGroup_2". */
static bool split_group(kiln_str name, kiln_str *out_base, int64_t *out_number) {
  size_t at = name.len;
  while (at > 0 && kiln_is_digit(name.data[at - 1])) at--;
  if (at < 2 || at == name.len || name.data[at - 1] != '_') return false;
  if (!kiln_str_parse_i64(kiln_str_without(name, at), out_number)) return false;
  *out_base = kiln_str_make(name.data, at - 1);
  return name.data[at] != '0' || at + 1 == name.len;
}

/* A node without operator for now; choose_op follows when its inputs are known. */
static kiln_status *parse_node_name(graph_parser *g, kiln_node **out_node) {
  kiln__reader *r = g->r;
  kiln_cursor_skip(&r->c);
  kiln_str name = kiln__reader_word(r), base;
  int64_t number;
  bool qualified = name.len > 2 && memchr(name.data, ':', name.len);
  if (!qualified) return kiln__reader_fail(r, "expected an operator");
  const kiln_registry *registry = g->graph->registry;
  if (!kiln_registry_find(registry, name) && split_group(name, &base, &number)) {
    *out_node = kiln_node_create_unknown(g->graph, base);
    pending p = {*out_node, name};
    kiln_vec_push(r->arena, &g->groups, p);
  } else {
    *out_node = kiln_node_create_unknown(g->graph, name);
  }
  return NULL;
}

static void choose_op(graph_parser *g, kiln_node *node) {
  const kiln_op_set *set = kiln_registry_find(g->graph->registry, node->name);
  if (!set) return;
  const kiln_type **types = KILN_NEW_ARRAY(g->r->arena, const kiln_type *, node->input_count);
  for (int i = 0; i < node->input_count; i++) types[i] = kiln_node_input(node, i)->type;
  node->op = kiln_match_node(g->r->types, set, types, node->input_count);
  if (node->op) node->name = node->op->name;
}

/* The type of an output that the text gives none for. */
static const kiln_type *default_type(graph_parser *g, const kiln_node *node, int index) {
  const kiln_schema *s = node->op ? node->op->schema : NULL;
  if (s && index < s->result_count) {
    kiln_type_env env = {.types = g->r->types};
    for (int i = 0; i < s->arg_count && i < node->input_count; i++) {
      if (!kiln_type_env_match(&env, s->args[i].type, kiln_node_input(node, i)->type)) break;
    }
    const kiln_type *type = kiln_type_env_eval(&env, s->results[index].type);
    if (type) return type;
  }
  if (kiln_node_is(node, KILN_OP_prim_Constant)) {
    const kiln_attr *value = kiln_node_attr(node, "value");
    if (!value && kiln_node_attr(node, "name")) return kiln_type_basic(KILN_TYPE_FUNCTION);
    if (!value) return kiln_type_basic(KILN_TYPE_NONE);
    if (value->kind == KILN_ATTR_VALUE) return kiln_ivalue_type(g->r->types, value->u.value);
  }
  if (node->block_count && index < kiln_block_output_count(node->blocks[0])) {
    bool loop = kiln_node_is(node, KILN_OP_prim_Loop);
    int at = loop ? index + 1 : index;
    if (at < kiln_block_output_count(node->blocks[0])) {
      return kiln_block_output(node->blocks[0], at)->type;
    }
  }
  return kiln_type_basic(KILN_TYPE_TENSOR);
}

static kiln_status *parse_inputs(graph_parser *g, kiln_node *node) {
  kiln__reader *r = g->r;
  KILN_TRY(kiln__reader_expect(r, "("));
  skip_blanks(r);
  if (!kiln_cursor_accept(&r->c, ")")) {
    do {
      kiln_ir_value *value;
      KILN_TRY(parse_use(g, &value));
      kiln_node_add_input(node, value);
    } while (kiln_cursor_accept(&r->c, ","));
    KILN_TRY(kiln__reader_expect(r, ")"));
  }
  return NULL;
}

static bool accept_block_header(kiln__reader *r) {
  const char *begin = r->c.at;
  if (kiln_cursor_accept(&r->c, "block")) {
    (void)kiln_cursor_take(&r->c, kiln_is_digit);
    if (kiln_cursor_peek(&r->c) == '(') return true;
  }
  r->c.at = begin;
  return false;
}

static kiln_status *parse_node(graph_parser *g, kiln_block *block) {
  kiln__reader *r = g->r;
  outputs outs = {0};
  kiln_node *node = NULL;
  KILN_TRY(parse_outputs(g, &outs));
  KILN_TRY(parse_node_name(g, &node));
  bool constant = kiln_str_is(node->name, "prim::Constant");
  const kiln_type *hint = constant && outs.count == 1 ? outs.data[0].type : NULL;
  if (hint && hint->kind == KILN_TYPE_FUNCTION) hint = NULL;
  if (kiln_cursor_accept(&r->c, "[")) KILN_TRY(parse_attrs(r, node, hint));
  KILN_TRY(parse_inputs(g, node));
  parse_line_end(r, node);
  choose_op(g, node);
  kiln_node_append(block, node);
  while (accept_block_header(r)) KILN_TRY(parse_block(g, kiln_node_add_block(node), "->"));
  for (int i = 0; i < outs.count; i++) {
    const kiln_type *type = outs.data[i].type;
    kiln_ir_value *value = kiln_node_add_output(node, type ? type : default_type(g, node, i));
    KILN_TRY(define(g, value, outs.data[i].name));
  }
  return NULL;
}

/* -- Blocks and graphs -- */

/* "(%a : T, …):", nodes, then `end` and "(%r, …)". */
static kiln_status *parse_block(graph_parser *g, kiln_block *block, const char *end) {
  kiln__reader *r = g->r;
  if (++r->depth > KILN__MAX_NESTING) return kiln__reader_fail(r, "nested too deeply");
  int mark = g->names.count;
  KILN_TRY(kiln__reader_expect(r, "("));
  if (!kiln_cursor_accept(&r->c, ")")) {
    do {
      kiln_str name;
      const kiln_type *type = kiln_type_basic(KILN_TYPE_TENSOR);
      KILN_TRY(parse_value_name(g, &name));
      if (kiln_cursor_accept(&r->c, ":")) KILN_TRY(kiln__reader_type(r, &type));
      KILN_TRY(define(g, kiln_block_add_input(block, NULL, type), name));
    } while (kiln_cursor_accept(&r->c, ","));
    KILN_TRY(kiln__reader_expect(r, ")"));
  }
  KILN_TRY(kiln__reader_expect(r, ":"));
  while (!kiln_cursor_accept(&r->c, end)) KILN_TRY(parse_node(g, block));
  KILN_TRY(parse_inputs(g, block->ret));
  close_scope(g, mark);
  r->depth--;
  return NULL;
}

/* The next "with name_N" is for the first such node after those before it, N their number. Where
 * there is none, it is that of a graph around this one, and index is the count of nodes. */
static int find_group(const graph_parser *g, int begin, int64_t number) {
  kiln__reader *r = g->r;
  const char *text = r->c.at;
  kiln_str name = {0}, base;
  int64_t stated = -1;
  if (kiln_cursor_accept(&r->c, "with")) {
    kiln_cursor_skip(&r->c);
    name = kiln__reader_word(r);
  }
  int i = split_group(name, &base, &stated) && stated == number ? begin : g->groups.count;
  while (i < g->groups.count && !kiln_str_equal(name, g->groups.data[i].full_name)) i++;
  if (i == g->groups.count) r->c.at = text;
  return i;
}

/* The "with" parts of one graph; nodes that get none are plain operators after all. */
static kiln_status *parse_subgraphs(graph_parser *g) {
  kiln__reader *r = g->r;
  for (int i = 0, number = 0; i < g->groups.count; i++, number++) {
    int taken = find_group(g, i, number);
    for (; i < taken; i++) {
      pending p = g->groups.data[i];
      p.node->op = NULL;
      p.node->name = kiln_arena_str(r->arena, p.full_name);
    }
    if (taken == g->groups.count) break;
    KILN_TRY(kiln__reader_expect(r, "="));
    kiln_graph *sub = kiln_graph_create_sub(g->graph);
    kiln_node_set_graph(g->groups.data[taken].node, "Subgraph", sub);
    KILN_TRY(parse_graph(r, sub));
  }
  return NULL;
}

static kiln_status *parse_graph(kiln__reader *r, kiln_graph *graph) {
  graph_parser g = {.r = r, .graph = graph};
  g.values = kiln_map_in(r->arena);
  g.ids = kiln_map_in(r->arena);
  if (++r->depth > KILN__MAX_NESTING) return kiln__reader_fail(r, "nested too deeply");
  KILN_TRY(kiln__reader_expect(r, "graph"));
  KILN_TRY(parse_block(&g, graph->top, "return"));
  for (int i = 0; i < g.unnumbered.count; i++) g.unnumbered.data[i]->id = graph->next_id++;
  KILN_TRY(parse_subgraphs(&g));
  r->depth--;
  return NULL;
}

/* -- Entry -- */

static kiln_status *parse_root(kiln__reader *r) {
  r->root->owns_sources = true;
  KILN_TRY(parse_graph(r, r->root));
  kiln_cursor_skip(&r->c);
  return r->c.at == r->c.end ? NULL : kiln__reader_fail(r, "unexpected text");
}

kiln_status *kiln_graph_parse(kiln_mem *mem, const kiln_registry *registry, kiln_type_table *types,
                              kiln_str source, kiln_graph **out_graph) {
  *out_graph = NULL;
  kiln_graph *graph = kiln_graph_create(mem, registry, types);
  kiln_cleanup releasing;
  kiln_graph_defer(graph, &releasing);
  kiln__reader r = {
      .root = graph, .arena = graph->arena, .types = types, .c = kiln_cursor_of(source)};
  r.c.comment = '#';
  kiln_status *status = parse_root(&r);
  kiln_scope_undefer(&releasing);
  if (status) {
    kiln_graph_release(graph);
    return status;
  }
  *out_graph = graph;
  return NULL;
}
