/* dot.c: graphs for Graphviz: a box a node, a cluster a block, an edge a use. Nodes are numbered in
 * the order of printing, so that one graph gives one text. */
#include "ir/internal.h"

/* Numbers of nodes and blocks. */
typedef struct dot {
  kiln_text *text;
  kiln_map numbers; /* node or block -> number + 1 */
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

static void print_label(kiln_text *text, kiln_str s) {
  for (size_t i = 0; i < s.len; i++) {
    if (s.data[i] == '"' || s.data[i] == '\\') kiln_text_putc(text, '\\');
    kiln_text_putc(text, s.data[i]);
  }
}

static void print_id(dot *d, const kiln_node *node) {
  kiln_text_printf(d->text, "n%d", number_of(d, node));
}

static void print_node(dot *d, const kiln_node *node, const char *shape) {
  kiln_text *text = d->text;
  print_id(d, node);
  kiln_text_printf(text, " [shape=%s,label=\"", shape);
  print_label(text, node->name);
  for (const kiln_attr *a = node->attrs; a; a = a->next) {
    if (a->kind != KILN_ATTR_VALUE) continue;
    kiln_text inner;
    kiln_text_init(&inner, text->arena);
    kiln__literal_print(&inner, a->u.value);
    kiln_text_printf(text, "\\n%s=", a->name);
    print_label(text, kiln_text_str(&inner));
  }
  kiln_text_puts(text, "\"];\n");
}

static void print_edges(dot *d, const kiln_node *node) {
  kiln_text *text = d->text;
  for (int i = 0; i < node->input_count; i++) {
    const kiln_ir_value *value = kiln_node_input(node, i);
    print_id(d, value->node);
    kiln_text_puts(text, " -> ");
    print_id(d, node);
    kiln_text_puts(text, " [label=\"");
    kiln__value_print(text, value);
    kiln_text_puts(text, "\"];\n");
  }
}

static void print_block(dot *d, const kiln_block *block, const char *label);

static void print_nested(dot *d, const kiln_node *node) {
  kiln_text *text = d->text;
  for (int b = 0; b < node->block_count; b++) {
    print_block(d, node->blocks[b], "block");
    print_id(d, node);
    kiln_text_puts(text, " -> ");
    print_id(d, node->blocks[b]->param);
    kiln_text_printf(text, " [style=dashed,label=\"block%d\"];\n", b);
  }
  const kiln_graph *sub = kiln_node_graph(node, "Subgraph");
  if (!sub) return;
  print_block(d, sub->top, "Subgraph");
  print_id(d, node);
  kiln_text_puts(text, " -> ");
  print_id(d, sub->top->param);
  kiln_text_puts(text, " [style=dotted];\n");
}

static void print_block(dot *d, const kiln_block *block, const char *label) {
  kiln_text *text = d->text;
  kiln_text_printf(text, "subgraph cluster_%d {\nlabel=\"%s\";\n", number_of(d, block), label);
  print_node(d, block->param, "ellipse");
  for (const kiln_node *n = block->first; n; n = n->next) {
    print_node(d, n, "box");
    print_edges(d, n);
    print_nested(d, n);
  }
  print_node(d, block->ret, "ellipse");
  print_edges(d, block->ret);
  kiln_text_puts(text, "}\n");
}

void kiln_graph_print_dot(kiln_text *text, const kiln_graph *graph) {
  dot d = {.text = text};
  kiln_map_init(&d.numbers, text->arena);
  kiln_text_puts(text, "digraph kiln {\nnode [fontname=\"monospace\"];\n");
  print_block(&d, graph->top, "graph");
  kiln_text_puts(text, "}\n");
}
