/* dot.c: graphs for Graphviz: a box a node, a cluster a block, an edge a use. */
#include "ir/internal.h"

static void print_label(kiln_text *text, kiln_str s) {
  for (size_t i = 0; i < s.len; i++) {
    if (s.data[i] == '"' || s.data[i] == '\\') kiln_text_putc(text, '\\');
    kiln_text_putc(text, s.data[i]);
  }
}

static void print_id(kiln_text *text, const kiln_node *node) {
  kiln_text_printf(text, "n%llx", (unsigned long long)(uintptr_t)node);
}

static void print_node(kiln_text *text, const kiln_node *node, const char *shape) {
  print_id(text, node);
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

static void print_edges(kiln_text *text, const kiln_node *node) {
  for (int i = 0; i < node->input_count; i++) {
    const kiln_ir_value *value = kiln_node_input(node, i);
    print_id(text, value->node);
    kiln_text_puts(text, " -> ");
    print_id(text, node);
    kiln_text_puts(text, " [label=\"");
    kiln__value_print(text, value);
    kiln_text_puts(text, "\"];\n");
  }
}

static void print_block(kiln_text *text, const kiln_block *block, const char *label);

static void print_nested(kiln_text *text, const kiln_node *node) {
  for (int b = 0; b < node->block_count; b++) {
    print_block(text, node->blocks[b], "block");
    print_id(text, node);
    kiln_text_puts(text, " -> ");
    print_id(text, node->blocks[b]->param);
    kiln_text_printf(text, " [style=dashed,label=\"block%d\"];\n", b);
  }
  const kiln_graph *sub = kiln_node_graph(node, "Subgraph");
  if (!sub) return;
  print_block(text, sub->top, "Subgraph");
  print_id(text, node);
  kiln_text_puts(text, " -> ");
  print_id(text, sub->top->param);
  kiln_text_puts(text, " [style=dotted];\n");
}

static void print_block(kiln_text *text, const kiln_block *block, const char *label) {
  kiln_text_printf(text, "subgraph cluster_%llx {\nlabel=\"%s\";\n",
                   (unsigned long long)(uintptr_t)block, label);
  print_node(text, block->param, "ellipse");
  for (const kiln_node *n = block->first; n; n = n->next) {
    print_node(text, n, "box");
    print_edges(text, n);
    print_nested(text, n);
  }
  print_node(text, block->ret, "ellipse");
  print_edges(text, block->ret);
  kiln_text_puts(text, "}\n");
}

void kiln_graph_print_dot(kiln_text *text, const kiln_graph *graph) {
  kiln_text_puts(text, "digraph kiln {\nnode [fontname=\"monospace\"];\n");
  print_block(text, graph->top, "graph");
  kiln_text_puts(text, "}\n");
}
