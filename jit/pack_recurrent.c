/* pack_recurrent.c: pass `pack_recurrent`: the weights that the steps of a recurrent layer read are
 * put into the steps' order once.
 *
 * lstm(x, hx, [w_ih, w_hh, ..], ..) of weights becomes
 *   panels = [recurrent_panels(w_hh, 4)]                     kept: runtime/kept.h
 *   recurrent(x, hx, [w_ih, w_hh, ..], .., panels)
 * The operator lstm makes panels too, in each call, where there are steps enough; here they gain
 * from the first step on. Bits may be others than those of steps without panels: not with
 * KILN_EXACT, and not under KILN_COMPAT=torch. */
#include "jit/fusion.h"
#include "runtime/kernels/heavy/recurrent.h"

/* An operator: its cell, and where its arguments stand; the rest follow the parameters. */
typedef struct layer_op {
  kiln_op_id id;
  kiln_cell_kind cell;
  bool
      is_packed; /* data, batch_sizes, hx, params .. bidirectional; else input, hx .. batch_first */
} layer_op;
static const layer_op layer_ops[] = {
    {KILN_OP_lstm_input, KILN_CELL_LSTM, false},     {KILN_OP_lstm_data, KILN_CELL_LSTM, true},
    {KILN_OP_gru_input, KILN_CELL_GRU, false},       {KILN_OP_gru_data, KILN_CELL_GRU, true},
    {KILN_OP_rnn_tanh_input, KILN_CELL_TANH, false}, {KILN_OP_rnn_tanh_data, KILN_CELL_TANH, true},
    {KILN_OP_rnn_relu_input, KILN_CELL_RELU, false}, {KILN_OP_rnn_relu_data, KILN_CELL_RELU, true}};

static const layer_op *find_op(const kiln_node *n) {
  for (size_t i = 0; i < sizeof layer_ops / sizeof *layer_ops; i++)
    if (kiln_node_is(n, layer_ops[i].id)) return &layer_ops[i];
  return NULL;
}

static bool is_const_bool(const kiln_ir_value *v, bool *out) {
  *out = kiln_ir_value_is_bool(v, true);
  return *out || kiln_ir_value_is_bool(v, false);
}

/* The parameters of all cells, weights each of them: the list, and how many belong to a cell. */
static const kiln_node *find_params(const kiln_node *n, int at, int *out_per_cell) {
  const kiln_node *list = kiln_node_input(n, at)->node;
  bool has_biases, is_both;
  int64_t layers;
  if (!kiln_node_is(list, KILN_OP_prim_ListConstruct) ||
      !is_const_bool(kiln_node_input(n, at + 1), &has_biases) ||
      !kiln_ir_value_const_int(kiln_node_input(n, at + 2), &layers) ||
      !is_const_bool(kiln_node_input(n, at + 5), &is_both))
    return NULL;
  *out_per_cell = has_biases ? 4 : 2;
  if (layers < 1 || layers > list->input_count ||
      layers * (is_both ? 2 : 1) * *out_per_cell != list->input_count)
    return NULL;
  for (int i = 0; i < list->input_count; i++)
    if (!kiln_ir_value_is_of_weights(kiln_node_input(list, i))) return NULL;
  return list;
}

/* The list of the panels of all cells. */
static kiln_ir_value *make_panels(kiln_node *n, const kiln_node *params, int per_cell,
                                  kiln_cell_kind cell) {
  kiln_ir_value *gates = kiln_insert_int_before(n, kiln_cell_gates(cell));
  kiln_node *list = kiln_insert_list_before(n);
  for (int i = 1; i < params->input_count; i += per_cell) {
    kiln_node *panels = kiln_node_create_like(n, KILN_OP_recurrent_panels);
    kiln_node_add_input(panels, kiln_node_input(params, i));
    kiln_node_add_input(panels, gates);
    kiln_node_set_int(panels, "kept", 1);
    kiln_node_insert_before(panels, list);
    kiln_node_add_input(list, kiln_node_add_output(panels, kiln_type_basic(KILN_TYPE_TENSOR)));
  }
  return kiln_list_give(list, kiln_type_basic(KILN_TYPE_TENSOR));
}

static bool pack(kiln_node *n) {
  const layer_op *op = find_op(n);
  const int hx_at = op && op->is_packed ? 2 : 1, at = hx_at + 1; /* of params */
  int per_cell;
  const kiln_node *params = op ? find_params(n, at, &per_cell) : NULL;
  if (!params) return false;
  kiln_ir_value *panels = make_panels(n, params, per_cell, op->cell),
                *hx = kiln_node_input(n, hx_at);
  if (op->cell != KILN_CELL_LSTM) {
    kiln_node *list = kiln_insert_list_before(n);
    kiln_node_add_input(list, hx);
    hx = kiln_list_give(list, kiln_type_basic(KILN_TYPE_TENSOR));
  }
  const kiln_type *no = kiln_type_basic(KILN_TYPE_BOOL), *none = kiln_type_basic(KILN_TYPE_NONE);
  kiln_node *layers = kiln_node_create_like(n, KILN_OP_recurrent);
  kiln_node_insert_before(layers, n);
  kiln_node_add_input(layers, kiln_node_input(n, 0));
  kiln_node_add_input(layers, hx);
  for (int i = 0; i < 6; i++) kiln_node_add_input(layers, kiln_node_input(n, at + i));
  kiln_node_add_input(layers, op->is_packed
                                  ? kiln_insert_constant_before(layers, kiln_bool(false), no)
                                  : kiln_node_input(n, at + 6));
  kiln_node_add_input(layers, op->is_packed
                                  ? kiln_node_input(n, 1)
                                  : kiln_insert_constant_before(layers, kiln_none(), none));
  kiln_node_add_input(layers, kiln_insert_int_before(layers, op->cell));
  kiln_node_add_input(layers, panels);
  for (int i = 0; i < 3; i++) {
    const bool has_one = i < n->output_count;
    const kiln_type *type = has_one ? n->outputs[i]->type : kiln_type_basic(KILN_TYPE_TENSOR);
    kiln_ir_value *result = kiln_node_add_output(layers, type);
    if (has_one) kiln_ir_value_replace_uses(n->outputs[i], result);
  }
  kiln_node_destroy(n);
  return true;
}

static void visit(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) visit(pass, n->blocks[b]);
    if (pack(n)) pass->changed = true;
  }
}

kiln_status *kiln_pass_pack_recurrent(kiln_pass *pass) {
  const kiln_flags *flags = &pass->env->flags;
  if (flags->keep && !flags->exact && flags->compat != KILN_COMPAT_TORCH)
    visit(pass, pass->graph->top);
  return NULL;
}
