/* dot.c: graphs for Graphviz: a box a node, a cluster a block, an edge a use.
 *
 * Drawn is what a reader asks for: constants and attributes of modules stand in the labels of those
 * that use them, a group is a coloured cluster whose inner nodes take the outer values, and what a
 * guard falls back to is one grey box. All edges stand behind all clusters: an edge inside of a
 * cluster would make its ends members of it. Nodes are numbered in the order of printing, so that
 * one graph gives one text. */
#include "ir/internal.h"

enum { MAX_LITERAL = 40, MAX_ARGUMENTS = 16, MAX_OUTPUTS = 8 };

typedef struct dot {
  kiln_text *text, edges;
  kiln_map numbers; /* node or block -> number + 1 */
  kiln_map owners;  /* param of a group's subgraph -> the group's node */
  kiln_map groups;  /* node with a subgraph -> its number in the text of the graph + 1 */
  int count;
} dot;

static int number_of(dot *d, const void *thing) {
  intptr_t known = (intptr_t)kiln_map_find_ptr(&d->numbers, thing);
  if (!known) {
    known = ++d->count;
    kiln_map_set_ptr(&d->numbers, thing, (void *)known);
  }
  return (int)known - 1;
}

static void print_escaped(kiln_text *text, kiln_str s) {
  for (size_t i = 0; i < s.len; i++) {
    if (s.data[i] == '"' || s.data[i] == '\\') kiln_text_putc(text, '\\');
    kiln_text_putc(text, s.data[i]);
  }
}

/* -- What is not drawn as a node -- */

static bool is_group(const kiln_node *n) {
  return kiln_node_is_group(n) && kiln_node_graph(n, "Subgraph");
}

/* Values that stand in labels. */
static bool is_folded(const kiln_node *n) {
  return kiln_node_is(n, KILN_OP_prim_Constant) || kiln_node_is(n, KILN_OP_prim_GetAttr);
}

static bool is_fallback(const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_FallbackGraph)) return true;
    if (kiln_node_is(n, KILN_OP_prim_CallFunction) && n->input_count > 0 &&
        kiln_node_attr(kiln_node_input(n, 0)->node, "fallback")) {
      return true;
    }
  }
  return false;
}

/* Output i of a guard is its input i, of a known type; the last one says whether all have theirs.
 */
static bool is_checked(const kiln_ir_value *v) {
  return kiln_node_is_type_check(v->node) && v->index < v->node->input_count;
}

/* The value behind the borders of groups and behind guards. */
static const kiln_ir_value *source_of(dot *d, const kiln_ir_value *v) {
  for (;;) {
    const kiln_node *owner = kiln_map_find_ptr(&d->owners, v->node);
    if (owner) {
      v = kiln_node_input(owner, v->index);
    } else if (is_group(v->node)) {
      v = kiln_graph_output(kiln_node_graph(v->node, "Subgraph"), v->index);
    } else if (is_checked(v)) {
      v = kiln_node_input(v->node, v->index);
    } else {
      return v;
    }
  }
}

/* -- Labels -- */

static void print_folded(dot *d, const kiln_ir_value *v) {
  const kiln_node *n = v->node;
  kiln_text inner = kiln_text_in(d->text->arena);
  const kiln_attr *attr =
      kiln_node_attr(n, kiln_node_is(n, KILN_OP_prim_GetAttr) ? "name" : "value");
  if (attr && attr->kind == KILN_ATTR_VALUE) {
    kiln__literal_print(&inner, attr->u.value);
  } else if (v->type->kind == KILN_TYPE_NONE) {
    kiln_text_puts(&inner, "None");
  } else {
    kiln__value_print(&inner, v);
  }
  kiln_str text = kiln_text_str(&inner);
  if (kiln_node_is(n, KILN_OP_prim_GetAttr)) { /* self.layer.weight */
    const kiln_ir_value *object = source_of(d, kiln_node_input(n, 0));
    if (is_folded(object->node)) {
      print_folded(d, object);
    } else {
      kiln__value_print(d->text, object);
    }
    kiln_text_putc(d->text, '.');
    if (text.len > 2 && text.data[0] == '"') text = kiln_str_make(text.data + 1, text.len - 2);
  }
  const bool cut = text.len > MAX_LITERAL;
  if (cut) text.len = MAX_LITERAL;
  print_escaped(d->text, text);
  if (cut) kiln_text_puts(d->text, "...");
}

static void print_value(dot *d, const kiln_ir_value *v) {
  v = source_of(d, v);
  if (is_folded(v->node)) {
    print_folded(d, v);
  } else {
    kiln__value_print(d->text, v);
  }
}

/* What is too long to be read is cut: true when it was. */
static bool cuts(dot *d, int i, int count, int most, const char *separator) {
  if (i < most || count <= most + 1) return false;
  kiln_text_printf(d->text, "%sand %d more", separator, count - i);
  return true;
}

/* As print.c numbers them: in the order of the nodes, what is not drawn among them. */
static int number_groups(dot *d, const kiln_block *block, int count) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_graph(n, "Subgraph")) kiln_map_set_ptr(&d->groups, n, (void *)(intptr_t)++count);
    for (int i = 0; i < n->block_count; i++) count = number_groups(d, n->blocks[i], count);
  }
  return count;
}

static void print_name(dot *d, const kiln_node *node) {
  const int number = (int)(intptr_t)kiln_map_find_ptr(&d->groups, node);
  print_escaped(d->text, node->name);
  if (number) kiln_text_printf(d->text, "_%d", number - 1);
}

/* "aten::add(%x, 1)" */
static void print_call(dot *d, const kiln_node *node) {
  print_name(d, node);
  kiln_text_putc(d->text, '(');
  for (int i = 0; i < node->input_count && !cuts(d, i, node->input_count, MAX_ARGUMENTS, ", ");
       i++) {
    if (i > 0) kiln_text_puts(d->text, ", ");
    print_value(d, kiln_node_input(node, i));
  }
  kiln_text_putc(d->text, ')');
}

/* "%x : Float(2, 3)" for what a node gives; for what a guard checks, under its own name. */
static void print_outputs(dot *d, kiln_ir_value *const *values, int count) {
  for (int i = 0; i < count && !cuts(d, i, count, MAX_OUTPUTS, "\\n"); i++) {
    kiln_text_puts(d->text, i ? "\\n" : "");
    print_value(d, values[i]);
    kiln_text_puts(d->text, " : ");
    kiln_type_print(d->text, values[i]->type, 1);
  }
}

/* -- Nodes and edges -- */

static void print_edge(dot *d, const kiln_ir_value *value, int to, const char *style) {
  const kiln_ir_value *from = source_of(d, value);
  if (is_folded(from->node)) return;
  kiln_text_printf(&d->edges, "n%d -> n%d [label=\"", number_of(d, from->node), to);
  kiln__value_print(&d->edges, from);
  kiln_text_printf(&d->edges, "\"%s];\n", style);
}

static void print_block(dot *d, const kiln_block *block, const char *label, const char *style,
                        int join);

/* The blocks of an If or Loop lie in the cluster; what they return goes to the node itself, which
 * stands for the results. */
static void print_blocks(dot *d, const kiln_node *node) {
  static const char *const sides[] = {"then", "else"};
  const bool branches = kiln_node_is(node, KILN_OP_prim_If);
  for (int b = 0; b < node->block_count; b++) {
    const kiln_block *block = node->blocks[b];
    const int join = number_of(d, node);
    if (is_fallback(block)) {
      kiln_text_printf(d->text,
                       "n%d [shape=box,style=filled,fillcolor=gray90,label=\"fallback\"];\n",
                       number_of(d, block));
      kiln_text_printf(&d->edges, "n%d -> n%d [style=dashed];\n", number_of(d, block), join);
    } else {
      print_block(d, block, branches ? sides[b & 1] : "loop", "style=dashed;", join);
    }
  }
}

static void print_group(dot *d, const kiln_node *node) {
  const kiln_graph *sub = kiln_node_graph(node, "Subgraph");
  kiln_map_set_ptr(&d->owners, sub->top->param, (void *)(uintptr_t)node);
  kiln_text_printf(d->text, "subgraph cluster_%d {\nlabel=\"", number_of(d, sub->top));
  print_name(d, node);
  kiln_text_puts(d->text, "\";\nstyle=filled;\nfillcolor=lightblue;\n");
  for (const kiln_node *n = sub->top->first; n; n = n->next) {
    if (is_folded(n)) continue;
    kiln_text_printf(d->text, "n%d [shape=box,label=\"", number_of(d, n));
    print_call(d, n);
    kiln_text_puts(d->text, "\\n");
    print_outputs(d, n->outputs, n->output_count);
    kiln_text_puts(d->text, "\"];\n");
    for (int i = 0; i < n->input_count; i++) {
      print_edge(d, kiln_node_input(n, i), number_of(d, n), "");
    }
  }
  kiln_text_puts(d->text, "}\n");
}

static void print_node(dot *d, const kiln_node *n) {
  if (is_folded(n)) return;
  if (is_group(n)) {
    print_group(d, n);
    return;
  }
  const bool guard = kiln_node_is_type_check(n);
  kiln_text_printf(d->text, "n%d [shape=%s%s,label=\"", number_of(d, n),
                   n->block_count ? "diamond" : "box",
                   guard ? ",style=filled,fillcolor=khaki" : "");
  if (guard) {
    print_escaped(d->text, n->name);
  } else {
    print_call(d, n);
  }
  if (n->output_count) kiln_text_puts(d->text, "\\n");
  print_outputs(d, n->outputs, guard ? n->input_count : n->output_count);
  kiln_text_puts(d->text, "\"];\n");
  for (int i = 0; i < n->input_count; i++) {
    print_edge(d, kiln_node_input(n, i), number_of(d, n), "");
  }
  print_blocks(d, n);
  const kiln_graph *sub = kiln_node_graph(n, "Subgraph");
  if (!sub) return;
  (void)number_groups(d, sub->top, 0);
  print_block(d, sub->top, "Subgraph", "", number_of(d, n));
}

/* `join`: the node that gets the results; -1: they are the graph's. */
static void print_block(dot *d, const kiln_block *block, const char *label, const char *style,
                        int join) {
  kiln_text_printf(d->text, "subgraph cluster_%d {\nlabel=\"%s\";\n%s\n", number_of(d, block),
                   label, style);
  if (block->param->output_count > 0) {
    kiln_text_printf(d->text, "n%d [shape=ellipse,label=\"", number_of(d, block->param));
    print_outputs(d, block->param->outputs, block->param->output_count);
    kiln_text_puts(d->text, "\"];\n");
  }
  for (const kiln_node *n = block->first; n; n = n->next) print_node(d, n);
  if (join < 0) {
    join = number_of(d, block->ret);
    kiln_text_printf(d->text, "n%d [shape=ellipse,label=\"return\"];\n", join);
  }
  for (int i = 0; i < block->ret->input_count; i++) {
    print_edge(d, kiln_node_input(block->ret, i), join, ",style=dashed");
  }
  kiln_text_puts(d->text, "}\n");
}

void kiln_graph_print_dot(kiln_text *text, const kiln_graph *graph) {
  dot d = {.text = text};
  d.numbers = kiln_map_in(text->arena);
  d.owners = kiln_map_in(text->arena);
  d.groups = kiln_map_in(text->arena);
  d.edges = kiln_text_in(text->arena);
  kiln_text_puts(text, "digraph kiln {\nnode [fontname=\"monospace\",fontsize=10];\n"
                       "edge [fontname=\"monospace\",fontsize=8];\n");
  (void)number_groups(&d, graph->top, 0);
  print_block(&d, graph->top, "graph", "", -1);
  kiln_text_put(text, kiln_text_str(&d.edges));
  kiln_text_puts(text, "}\n");
}
