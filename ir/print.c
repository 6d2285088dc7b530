/* print.c: graphs in PyTorch's textual form. One pass over the nodes; linear in the output.
 *
 * Nodes with a "Subgraph" attribute print as name_N, N counting them within the graph, and the
 * subgraphs follow: "with prim::TensorExprGroup_0 = graph(…". A subgraph that has such nodes itself
 * is followed by its own, before its next sibling; the parser reads them in the same order. */
#include "ir/internal.h"

typedef struct printer {
  kiln_text *text;
  int verbosity;
  bool with_ranges;
  KILN_VEC(const kiln_node *) groups; /* of the graph that is being printed */
  bool number_groups;
} printer;

static void print_graph(printer *p, const kiln_graph *graph);

/* -- Parts of a node -- */

void kiln__value_print(kiln_text *text, const kiln_ir_value *value) {
  kiln_text_putc(text, '%');
  if (value->name.len) {
    kiln_text_put(text, value->name);
  } else {
    kiln_text_printf(text, "%u", value->id);
  }
}

static void print_typed_values(printer *p, kiln_ir_value *const *values, int count,
                               const char *separator) {
  for (int i = 0; i < count; i++) {
    if (i) kiln_text_puts(p->text, separator);
    kiln__value_print(p->text, values[i]);
    kiln_text_puts(p->text, " : ");
    kiln_type_print(p->text, values[i]->type, p->verbosity);
  }
}

static void print_inputs(printer *p, const kiln_node *node) {
  kiln_text_putc(p->text, '(');
  for (int i = 0; i < node->input_count; i++) {
    if (i) kiln_text_puts(p->text, ", ");
    kiln__value_print(p->text, kiln_node_input(node, i));
  }
  kiln_text_putc(p->text, ')');
}

static void print_types(printer *p, const kiln_attr *attr) {
  kiln_text_putc(p->text, '[');
  for (int i = 0; i < attr->u.types.count; i++) {
    if (i) kiln_text_puts(p->text, ", ");
    kiln_type_print(p->text, attr->u.types.data[i], p->verbosity);
  }
  kiln_text_putc(p->text, ']');
}

/* `typed`: the value's type stands by it, as by a constant. */
static void print_attr(printer *p, const kiln_attr *attr, bool typed) {
  kiln_text_puts(p->text, attr->name);
  kiln_text_putc(p->text, '=');
  switch (attr->kind) {
    case KILN_ATTR_VALUE:
      if (typed) {
        kiln__literal_print(p->text, attr->u.value);
      } else {
        kiln__literal_print_untyped(p->text, attr->u.value);
      }
      break;
    case KILN_ATTR_TYPE: kiln_type_print(p->text, attr->u.type, p->verbosity); break;
    case KILN_ATTR_TYPES: print_types(p, attr); break;
    case KILN_ATTR_GRAPH: kiln_text_puts(p->text, "<Graph>"); break;
    case KILN_ATTR_POINTER: break;
  }
}

static void print_attrs(printer *p, const kiln_node *node, bool hide_subgraph) {
  bool any = false;
  for (const kiln_attr *a = node->attrs; a; a = a->next) {
    if (a->kind == KILN_ATTR_POINTER) continue;
    if (hide_subgraph && strcmp(a->name, "Subgraph") == 0) continue;
    kiln_text_puts(p->text, any ? ", " : "[");
    print_attr(p, a, kiln_node_is(node, KILN_OP_prim_Constant));
    any = true;
  }
  if (any) kiln_text_putc(p->text, ']');
}

static void print_range(printer *p, const kiln_source_range *range) {
  if (!p->with_ranges || !range || !range->source) return;
  kiln_source_loc loc = kiln_source_range_loc(range);
  if (loc.line > 0) kiln_text_printf(p->text, " # %s:%d:%d", loc.file, loc.line, loc.column - 1);
}

/* -- Nodes -- */

static void print_node(printer *p, const kiln_node *node, int level);

static void print_block(printer *p, const kiln_block *block, int index, int level) {
  kiln_text_indent(p->text, 2 * level);
  kiln_text_printf(p->text, "block%d(", index);
  print_typed_values(p, block->param->outputs, block->param->output_count, ", ");
  kiln_text_puts(p->text, "):\n");
  for (const kiln_node *n = block->first; n; n = n->next) print_node(p, n, level + 1);
  kiln_text_indent(p->text, 2 * (level + 1));
  kiln_text_puts(p->text, "-> ");
  print_inputs(p, block->ret);
  kiln_text_putc(p->text, '\n');
}

static void print_node(printer *p, const kiln_node *node, int level) {
  kiln_text *text = p->text;
  kiln_text_indent(text, 2 * level);
  print_typed_values(p, node->outputs, node->output_count, ", ");
  kiln_text_puts(text, " = ");
  kiln_text_put(text, node->name);
  if (p->number_groups && kiln_node_graph(node, "Subgraph")) {
    kiln_text_printf(text, "_%d", p->groups.count);
    kiln_vec_push(text->arena, &p->groups, node);
    if (!kiln_node_is(node, KILN_OP_prim_DifferentiableGraph)) print_attrs(p, node, true);
  } else {
    print_attrs(p, node, false);
  }
  print_inputs(p, node);
  if (node->scope.len) {
    kiln_text_puts(text, ", scope: ");
    kiln_text_put(text, node->scope);
  }
  print_range(p, node->range);
  kiln_text_putc(text, '\n');
  for (int i = 0; i < node->block_count; i++) print_block(p, node->blocks[i], i, level + 1);
}

/* -- Graphs -- */

static void print_body(printer *p, const kiln_graph *graph) {
  kiln_text_puts(p->text, "graph(");
  print_typed_values(p, graph->top->param->outputs, graph->top->param->output_count, ",\n      ");
  kiln_text_puts(p->text, "):\n");
  for (const kiln_node *n = graph->top->first; n; n = n->next) print_node(p, n, 1);
  kiln_text_puts(p->text, "  return ");
  print_inputs(p, graph->top->ret);
  kiln_text_putc(p->text, '\n');
}

static void print_graph(printer *p, const kiln_graph *graph) {
  printer inner = {.text = p->text,
                   .verbosity = p->verbosity,
                   .with_ranges = p->with_ranges,
                   .number_groups = true};
  print_body(&inner, graph);
  for (int i = 0; i < inner.groups.count; i++) {
    kiln_text_puts(p->text, "with ");
    kiln_text_put(p->text, inner.groups.data[i]->name);
    kiln_text_printf(p->text, "_%d = ", i);
    print_graph(p, kiln_node_graph(inner.groups.data[i], "Subgraph"));
  }
}

void kiln_graph_print(kiln_text *text, const kiln_graph *graph, int verbosity, bool with_ranges) {
  printer p = {.text = text, .verbosity = verbosity, .with_ranges = with_ranges};
  print_graph(&p, graph);
}

void kiln_node_print(kiln_text *text, const kiln_node *node, int verbosity) {
  printer p = {.text = text, .verbosity = verbosity};
  print_node(&p, node, 0);
}
