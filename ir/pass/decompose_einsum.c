/* decompose_einsum.c: einsum of three and more operands becomes einsums of two, from left to right,
 * as its kernel contracts them (runtime/kernels/heavy/einsum.c): pairs can have kernels.
 *
 * The operator complains of all operands before it contracts any, and of sizes by the operand's
 * number: so the pairs stand behind a branch that asks for ranks and for equal sizes. */
#include <ctype.h>

#include "ir/pass.h"
#include "ir/pass/network.h"
#include "runtime/einsum.h"

/* The equation of operands whose ranks it tells itself: without an ellipsis. */
static bool read_equation(const kiln_node *n, const kiln_node *list, kiln_einsum *e) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(n, 0));
  int ranks[KILN_EINSUM_OPERANDS] = {0}, at = 0;
  if (!v || v->tag != KILN_TAG_STRING || list->input_count > KILN_EINSUM_OPERANDS) return false;
  const kiln_str text = kiln_string_view(v->u.string);
  for (size_t i = 0; i < text.len && text.data[i] != '-'; i++) {
    if (text.data[i] == '.') return false;
    if (text.data[i] == ',' && ++at == KILN_EINSUM_OPERANDS) return false;
    ranks[at] += isalpha((unsigned char)text.data[i]) != 0;
  }
  for (int i = 0; i <= at; i++)
    if (ranks[i] > KILN_MAX_RANK) return false;
  kiln_status *status = kiln_einsum_read(text, list->input_count, ranks, e);
  const bool fits = !status;
  kiln_status_destroy(status);
  return fits;
}

/* That ranks and sizes are such that no operand is broadcast. */
static kiln_ir_value *sizes_fit(kiln_node *n, const kiln_node *list, const kiln_einsum *e) {
  const kiln__maker before = {n->graph, NULL, n, n}, *m = &before;
  kiln_ir_value *fits = NULL, *all = NULL;
  for (int i = 0; i < e->operands; i++) {
    kiln_ir_value *rank = ASK(dim, INT, kiln_node_input(list, i));
    kiln_ir_value *same = ASK(eq_int, BOOL, rank, INT(e->ranks[i]));
    fits = fits ? ASK(__and___bool, BOOL, fits, same) : same;
  }
  kiln_node *branch = kiln_node_create_id(n->graph, KILN_OP_prim_If);
  kiln_node_add_input(branch, fits);
  kiln_ir_value *result = kiln__maker_put(m, branch, kiln_type_basic(KILN_TYPE_BOOL));
  kiln_block *yes = kiln_node_add_block(branch), *no = kiln_node_add_block(branch);
  const kiln__maker inside = {n->graph, yes, NULL, n};
  kiln_ir_value *first[KILN_MAX_RANK] = {NULL};
  m = &inside;
  for (int i = 0; i < e->operands; i++) {
    for (int d = 0; d < e->ranks[i]; d++) {
      kiln_ir_value *size = ASK(size_int, INT, kiln_node_input(list, i), INT(d));
      kiln_ir_value **known = &first[e->places[i][d]];
      if (*known) {
        kiln_ir_value *same = ASK(eq_int, BOOL, size, *known);
        all = all ? ASK(__and___bool, BOOL, all, same) : same;
      } else {
        *known = size;
      }
    }
  }
  kiln_block_add_output(yes, all ? all : BOOL(true));
  kiln_block_add_output(
      no, kiln_append_constant(no, kiln_bool(false), kiln_type_basic(KILN_TYPE_BOOL)));
  return result;
}

/* Labels of a tensor, by their places. */
typedef struct labels {
  int count;
  int8_t places[KILN_MAX_RANK];
} labels;

static bool has(const kiln_einsum *e, int operand, int place) {
  for (int d = 0; d < e->ranks[operand]; d++)
    if (e->places[operand][d] == place) return true;
  return false;
}
static size_t write_labels(const kiln_einsum *e, const int8_t *places, int count, char *to) {
  for (int d = 0; d < count; d++) to[d] = e->letters[places[d]];
  return (size_t)count;
}

static kiln_ir_value *pair(const kiln__maker *m, const kiln_einsum *e, kiln_ir_value *left,
                           const labels *had, int operand, kiln_ir_value *right,
                           const labels *kept) {
  char text[3 * KILN_MAX_RANK + 4];
  size_t len = write_labels(e, had->places, had->count, text);
  text[len++] = ',';
  len += write_labels(e, e->places[operand], e->ranks[operand], text + len);
  text[len++] = '-';
  text[len++] = '>';
  len += write_labels(e, kept->places, kept->count, text + len);
  kiln_string *string = NULL;
  kiln_status *status =
      kiln_string_create(kiln_arena_mem(m->graph->arena), (kiln_str){text, len}, &string);
  if (status) kiln_scope_fail(status);
  kiln_ir_value *equation = kiln__maker_constant(m, kiln_of_box(string), KILN_TYPE_STR);
  const kiln_type *tensors = kiln_type_list(m->graph->types, kiln_type_basic(KILN_TYPE_TENSOR));
  kiln_ir_value *list =
      kiln__maker_step(m, KILN_OP_prim_ListConstruct, tensors, 2, (kiln_ir_value *[]){left, right});
  return STEP(einsum, equation, list, NONE);
}

/* It stands where this has left it: the other side gives an einsum of two. */
static bool is_left(const kiln_node *n) {
  const kiln_node *branch = n->block->owner;
  if (!branch || !kiln_node_is(branch, KILN_OP_prim_If) || branch->blocks[1] != n->block ||
      n->block->first != n || branch->output_count != 1)
    return false;
  const kiln_node *last = kiln_block_output(branch->blocks[0], 0)->node;
  return kiln_node_is(last, KILN_OP_einsum) && kiln_node_input(last, 1)->node->input_count == 2;
}

bool kiln__decompose_einsum(kiln_node *n) {
  kiln_einsum e;
  if (!kiln_node_is(n, KILN_OP_einsum)) return false;
  const kiln_node *list = kiln_node_input(n, 1)->node;
  if (!kiln_node_is(list, KILN_OP_prim_ListConstruct) || list->input_count < 3 ||
      !kiln_shape_list_stays(list->outputs[0]) || !read_equation(n, list, &e) || is_left(n))
    return false;
  kiln_block *network = kiln__branch_around(n, sizes_fit(n, list, &e));
  const kiln__maker inside = {n->graph, network, NULL, n};
  kiln_ir_value *now = kiln_node_input(list, 0);
  labels had = {.count = e.ranks[0]};
  for (int d = 0; d < had.count; d++) had.places[d] = e.places[0][d];
  for (int i = 1; i < e.operands; i++) {
    labels kept = {0};
    for (int p = 0; p < e.rank; p++) {
      bool seen = has(&e, i, p), later = p < e.out_rank;
      for (int d = 0; d < had.count; d++) seen |= had.places[d] == p;
      for (int k = i + 1; k < e.operands; k++) later |= has(&e, k, p);
      if (seen && later) kept.places[kept.count++] = (int8_t)p;
    }
    now = pair(&inside, &e, now, &had, i, kiln_node_input(list, i), &kept);
    had = kept;
  }
  kiln_block_add_output(network, now);
  return true;
}
