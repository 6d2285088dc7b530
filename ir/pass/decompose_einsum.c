/* decompose_einsum.c: einsum of three and more operands becomes einsums of two, from left to right,
 * as its kernel contracts them (runtime/kernels/heavy/einsum.c): pairs can have kernels.
 *
 * The operator complains of all operands before it contracts any, and of sizes by the operand's
 * number: so the pairs stand behind a branch that asks for ranks and for equal sizes. */
#include <ctype.h>

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

/* Only where ranks and sizes are such that no operand is broadcast. */
static void where_sizes_fit(kiln__maker *m, kiln_node *n, const kiln_node *list,
                            const kiln_einsum *e) {
  const kiln__maker outside = *m;
  kiln_ir_value *fit = NULL, *first[KILN_MAX_RANK] = {NULL};
  for (int i = 0; i < e->operands; i++)
    fit = BOTH(fit, EQUAL(RANK(kiln_node_input(list, i)), INT(e->ranks[i])));
  kiln__ask_where(m, fit);
  fit = NULL;
  for (int i = 0; i < e->operands; i++) {
    for (int d = 0; d < e->ranks[i]; d++) {
      kiln_ir_value *size = SIZE(kiln_node_input(list, i), d);
      kiln_ir_value **known = &first[e->places[i][d]];
      if (*known) {
        fit = BOTH(fit, EQUAL(size, *known));
      } else {
        *known = size;
      }
    }
  }
  kiln__apart_where(m, n, 1, kiln__asked(m, &outside, fit ? fit : BOOL(true)));
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

static kiln_ir_value *pair(kiln__maker *m, const kiln_einsum *e, kiln_ir_value *left,
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
  return STEP(einsum, equation, LIST_OF(TENSOR, left, right), NONE);
}

KILN__APART(einsum) {
  kiln_einsum e;
  const kiln_node *list = kiln__list_of_tensors(n, 1);
  if (!list || list->input_count < 3 || !read_equation(n, list, &e)) return false;
  where_sizes_fit(m, n, list, &e);
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
    now = pair(m, &e, now, &had, i, kiln_node_input(list, i), &kept);
    had = kept;
  }
  GIVE(now);
  return true;
}
