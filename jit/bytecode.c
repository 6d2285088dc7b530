/* bytecode.c: registers, liveness and control flow of the emitter.
 *
 * Liveness is found on the structure, without a fixpoint: a value lives from its definition to the
 * last node of its own block that uses it, directly or inside. If that is an If, the value is
 * handed to both branches, where the same rule applies; a Loop keeps what it uses from outside
 * until its end. The loop's carried values have registers of their own; a value that becomes the
 * next carried one is made there directly when the old one is dead by then. */
#include "jit/bytecode_internal.h"

enum { MOST_OPERANDS = UINT16_MAX }; /* of an instruction, in or out */

bool kiln__bytecode_is_counted(const kiln_ir_value *v) {
  switch (v->type->kind) {
    case KILN_TYPE_INT:
    case KILN_TYPE_FLOAT:
    case KILN_TYPE_BOOL:
    case KILN_TYPE_NONE:
    case KILN_TYPE_DEVICE: return false;
    default: return true;
  }
}

/* -- Registers -- */

int kiln__bytecode_register(kiln__bytecode_emitter *e) {
  for (int r = e->free_from; r < e->live.count; r++) {
    if (!e->live.data[r] && !e->reserved.data[r]) {
      e->live.data[r] = 1;
      e->free_from = r + 1;
      return r;
    }
  }
  e->free_from = e->live.count + 1;
  kiln_vec_push(e->scratch, &e->live, 1);
  kiln_vec_push(e->scratch, &e->reserved, 0);
  kiln_vec_push(e->scratch, &e->last_reads, (kiln_last_read){-1, 0});
  return e->live.count - 1;
}

static void give_back(kiln__bytecode_emitter *e, int r) {
  e->live.data[r] = 0;
  if (r < e->free_from) e->free_from = r;
}

/* The register of a value that is being defined. */
static int define(kiln__bytecode_emitter *e, const kiln_ir_value *v) {
  if (kiln__bytecode_borrows(e, v)) return e->regs[v->id];
  int hint = e->hints[v->id];
  int r = hint >= 0 && !e->live.data[hint] ? hint : kiln__bytecode_register(e);
  e->live.data[r] = 1;
  return e->regs[v->id] = r;
}

static bool is_constant(const kiln_ir_value *v) {
  return kiln_node_is(v->node, KILN_OP_prim_Constant) ||
         kiln_node_is(v->node, KILN_OP_prim_Uninitialized);
}

static void free_register(kiln__bytecode_emitter *e, const kiln_ir_value *v) {
  give_back(e, e->regs[v->id]);
}

/* -- Instructions -- */

const kiln_source_range *kiln__bytecode_range(kiln__bytecode_emitter *e,
                                              const kiln_source_range *range) {
  return kiln_graph_copy_range(e->graph, range, e->arena, &e->own_ranges);
}

int kiln__bytecode_instr(kiln__bytecode_emitter *e, kiln_instr_op op, int in_count, int out_count,
                         uint32_t x) {
  kiln_vec_push(e->arena, &e->code,
                (kiln_instr){.op = (uint16_t)op,
                             .in_count = (uint16_t)in_count,
                             .out_count = (uint16_t)out_count,
                             .x = x,
                             .operands = (uint32_t)e->operands.count});
  kiln_vec_push(e->arena, &e->ranges, kiln__bytecode_range(e, e->range));
  if (e->env->timed) kiln_vec_push(e->arena, &e->times, kiln__bytecode_cost(e, op));
  for (int i = 0; i < in_count + out_count; i++) {
    kiln_vec_push(e->arena, &e->operands, KILN_OPERAND_NONE);
  }
  if (in_count > e->plan->max_in) e->plan->max_in = in_count;
  if (in_count > MOST_OPERANDS || out_count > MOST_OPERANDS) e->too_wide = e->code.count;
  return e->code.count - 1;
}

uint32_t kiln__bytecode_constant(kiln__bytecode_emitter *e, const kiln_ivalue *value) {
  uintptr_t known = (uintptr_t)kiln_map_find_ptr(&e->constant_index, value);
  if (known) return (uint32_t)known - 1;
  kiln_vec_reserve(e->arena, &e->constants, e->constants.count + 1);
  kiln_map_set_ptr(&e->constant_index, value, (void *)(uintptr_t)(e->constants.count + 1));
  e->constants.data[e->constants.count++] = kiln_ivalue_retain(*value);
  e->plan->constants = e->constants.data; /* from here on the plan's destroyer sees it */
  e->plan->constant_count = e->constants.count;
  return (uint32_t)e->constants.count - 1;
}

/* What an uninitialised value is: a number is 0, and anybody may read it; the others are None,
 * which a CHECK stops (bytecode_check.c). */
static const kiln_ivalue *uninitialized(const kiln_ir_value *v) {
  static const kiln_ivalue none = {.tag = KILN_TAG_NONE}, zero = {.tag = KILN_TAG_INT},
                           zero_float = {.tag = KILN_TAG_FLOAT}, no = {.tag = KILN_TAG_BOOL};
  switch (v->type->kind) {
    case KILN_TYPE_INT: return &zero;
    case KILN_TYPE_FLOAT: return &zero_float;
    case KILN_TYPE_BOOL: return &no;
    default: return &none;
  }
}

kiln_operand kiln__bytecode_read(kiln__bytecode_emitter *e, kiln_ir_value *v) {
  v = kiln__bytecode_root(e, v);
  if (is_constant(v)) {
    const kiln_ivalue *value = kiln_ir_value_constant(v);
    return kiln__bytecode_constant(e, value ? value : uninitialized(v)) | KILN_OPERAND_CONSTANT;
  }
  KILN_ASSERT(e->regs[v->id] >= 0);
  return (kiln_operand)e->regs[v->id];
}

static void emit_drop(kiln__bytecode_emitter *e, kiln_ir_value *const *values, int count) {
  int counted = 0;
  for (int i = 0; i < count; i++) counted += kiln__bytecode_is_counted(values[i]);
  if (counted) {
    int at = kiln__bytecode_instr(e, KILN_INSTR_DROP, counted, 0, 0);
    kiln_operand *o = kiln__bytecode_operands(e, at);
    for (int i = 0; i < count; i++) {
      if (kiln__bytecode_is_counted(values[i])) *o++ = (kiln_operand)e->regs[values[i]->id];
    }
  }
  for (int i = 0; i < count; i++) free_register(e, values[i]);
}

/* -- Liveness -- */

static kiln_value_vec *deaths_at(kiln__bytecode_emitter *e, const kiln_node *node) {
  kiln_value_vec *list = kiln_map_find_ptr(&e->deaths, node);
  if (!list) {
    list = KILN_NEW(e->scratch, kiln_value_vec);
    kiln_map_set_ptr(&e->deaths, node, list);
  }
  return list;
}

/* Plans the death of values in `block`; what is not used there dies now. */
static void schedule(kiln__bytecode_emitter *e, kiln_block *block, kiln_ir_value *const *values,
                     int count) {
  kiln_value_vec now = {0};
  for (int i = 0; i < count; i++) {
    if (kiln__bytecode_borrows(e, values[i])) continue;
    kiln_node *last = kiln__bytecode_last_use(e, values[i], block);
    if (last) {
      kiln_vec_push(e->scratch, deaths_at(e, last), values[i]);
    } else {
      kiln_vec_push(e->scratch, &now, values[i]);
    }
  }
  if (now.count) emit_drop(e, now.data, now.count);
}

static void index_reads(kiln__bytecode_emitter *e, int at) {
  const kiln_operand *o = kiln__bytecode_operands(e, at);
  e->last_reads_of = at;
  for (int i = 0; i < e->code.data[at].in_count; i++) {
    if (o[i] < (kiln_operand)e->last_reads.count) {
      e->last_reads.data[o[i]] = (kiln_last_read){.instr = at, .operand = i};
    }
  }
}
/* Marks MOVE on the last operand that reads `v`; false when none does. */
static bool mark_move(kiln__bytecode_emitter *e, int at, const kiln_ir_value *v) {
  if (e->last_reads_of != at) index_reads(e, at);
  const kiln_last_read read = e->last_reads.data[e->regs[v->id]];
  kiln_instr *in = &e->code.data[at];
  if (read.instr != at) return false;
  kiln__bytecode_operands(e, at)[read.operand] |= KILN_OPERAND_MOVE;
  if (kiln_instr_is_op(in) && read.operand < KILN_INSTR_MOVE_BITS) {
    in->flags |= (uint16_t)(1u << read.operand);
  }
  return true;
}

/* Moves what dies at `node` into instruction `at` where it reads it; the rest stays in the list. */
static void move_dying(kiln__bytecode_emitter *e, const kiln_node *node, int at) {
  kiln_value_vec *dying = kiln_map_find_ptr(&e->deaths, node);
  if (!dying) return;
  int kept = 0;
  for (int i = 0; i < dying->count; i++) {
    kiln_ir_value *v = dying->data[i];
    if (!kiln__bytecode_is_counted(v) || mark_move(e, at, v)) {
      free_register(e, v);
    } else {
      dying->data[kept++] = v;
    }
  }
  dying->count = kept;
}

void kiln__bytecode_finish(kiln__bytecode_emitter *e, kiln_node *node) {
  kiln_value_vec *dying = kiln_map_find_ptr(&e->deaths, node);
  if (!dying) return;
  emit_drop(e, dying->data, dying->count);
  dying->count = 0;
}

/* Gives the node's outputs from `first` on their registers, as outputs of instruction `at`. */
static void define_outputs(kiln__bytecode_emitter *e, kiln_node *node, int at, int first) {
  int in_count = e->code.data[at].in_count;
  for (int i = first; i < node->output_count; i++) {
    kiln_ir_value *out = kiln_node_output(node, i);
    if (!out->uses) continue;
    int r = define(e, out);
    kiln__bytecode_operands(e, at)[in_count + i - first] = (kiln_operand)r;
  }
  kiln__bytecode_finish(e, node);
  for (int i = first; i < node->output_count; i++) {
    kiln_ir_value *out = kiln_node_output(node, i);
    if (out->uses) schedule(e, node->block, &out, 1);
  }
}

kiln_status *kiln__bytecode_direct(kiln__bytecode_emitter *e, kiln_node *node, kiln_instr_op op,
                                   uint32_t x, int first_input, int input_count, int output_count) {
  int at = kiln__bytecode_instr(e, op, input_count, output_count, x);
  for (int i = 0; i < input_count; i++) {
    kiln_operand o = kiln__bytecode_read(e, kiln_node_input(node, first_input + i));
    kiln__bytecode_operands(e, at)[i] = o;
  }
  move_dying(e, node, at);
  kiln__bytecode_donations(e, node, at);
  define_outputs(e, node, at, node->output_count - output_count);
  return NULL;
}

void kiln__bytecode_unpack_of(kiln__bytecode_emitter *e, kiln_node *node, int at,
                              kiln_instr_op unpack) {
  move_dying(e, node, at);
  int all = kiln__bytecode_register(e);
  kiln__bytecode_operands(e, at)[e->code.data[at].in_count] = (kiln_operand)all;
  int second = kiln__bytecode_instr(e, unpack, 1, node->output_count, 0);
  kiln__bytecode_operands(e, second)[0] = (kiln_operand)all | KILN_OPERAND_MOVE;
  define_outputs(e, node, second, 0);
  give_back(e, all);
}

/* -- Blocks -- */

static kiln_status *emit_block(kiln__bytecode_emitter *e, kiln_block *block);

/* One MOVE of a block's results first .. first + count - 1 into registers (-1: not wanted). */
static void emit_results(kiln__bytecode_emitter *e, kiln_block *block, int first, int count,
                         const int32_t *targets) {
  KILN_VEC(int) moved = {0};
  for (int i = 0; i < count; i++) {
    if (targets[i] < 0) continue;
    kiln_operand o = kiln__bytecode_read(e, kiln_block_output(block, first + i));
    if (o != (kiln_operand)targets[i]) kiln_vec_push(e->scratch, &moved, i);
  }
  if (moved.count) {
    int at = kiln__bytecode_instr(e, KILN_INSTR_MOVE, moved.count, moved.count, 0);
    for (int i = 0; i < moved.count; i++) {
      kiln_operand o = kiln__bytecode_read(e, kiln_block_output(block, first + moved.data[i]));
      kiln__bytecode_operands(e, at)[i] = o;
      kiln__bytecode_operands(e, at)[moved.count + i] = (kiln_operand)targets[moved.data[i]];
    }
    /* A value that also stays where it is must not be moved out. */
    e->asked++;
    for (int k = 0; k < count; k++) {
      const kiln_ir_value *v = kiln__bytecode_root(e, kiln_block_output(block, first + k));
      if (targets[k] == e->regs[v->id]) e->wanted[v->id] = e->asked;
    }
    kiln_value_vec *dying = kiln_map_find_ptr(&e->deaths, block->ret);
    for (int i = 0; dying && i < dying->count; i++) {
      const kiln_ir_value *v = dying->data[i];
      const bool stays = e->wanted[v->id] == e->asked;
      if (kiln__bytecode_is_counted(v) && !stays) (void)mark_move(e, at, v);
    }
  }
}

/* What dies at the block's end and is no result any more (moved or in place). */
static void drop_unmoved(kiln__bytecode_emitter *e, kiln_block *block, int first, int count,
                         const int32_t *targets) {
  kiln_value_vec *dying = kiln_map_find_ptr(&e->deaths, block->ret);
  if (!dying) return;
  kiln_value_vec drop = {0};
  e->asked++;
  for (int k = 0; k < count; k++) {
    const kiln_ir_value *v = kiln__bytecode_root(e, kiln_block_output(block, first + k));
    if (targets[k] >= 0) e->wanted[v->id] = e->asked;
  }
  for (int i = 0; i < dying->count; i++) {
    kiln_ir_value *v = dying->data[i];
    if (e->wanted[v->id] != e->asked) kiln_vec_push(e->scratch, &drop, v);
  }
  emit_drop(e, drop.data, drop.count);
}

static void save_live(kiln__bytecode_emitter *e, uint8_t **saved, int *count) {
  *count = e->live.count;
  *saved = KILN_NEW_ARRAY(e->scratch, uint8_t, e->live.count + 1);
  for (int i = 0; i < e->live.count; i++) (*saved)[i] = e->live.data[i];
}
static void restore_live(kiln__bytecode_emitter *e, const uint8_t *saved, int count) {
  for (int i = 0; i < e->live.count; i++) e->live.data[i] = i < count ? saved[i] : 0;
  e->free_from = 0;
}

static kiln_status *emit_branch(kiln__bytecode_emitter *e, kiln_block *block,
                                const kiln_value_vec *dying, const int32_t *targets, int count) {
  schedule(e, block, dying->data, dying->count);
  for (int i = 0; i < count; i++) { /* make results in place */
    kiln_ir_value *v = kiln__bytecode_root(e, kiln_block_output(block, i));
    if (targets[i] >= 0 && v->node->block == block && e->hints[v->id] < 0) {
      e->hints[v->id] = targets[i];
      give_back(e, targets[i]); /* reserved below: free for this value alone */
    }
  }
  KILN_TRY(emit_block(e, block));
  emit_results(e, block, 0, count, targets);
  drop_unmoved(e, block, 0, count, targets);
  return NULL;
}

/* Both sides of an If, each from the same registers. */
static kiln_status *emit_sides(kiln__bytecode_emitter *e, kiln_node *node, int jf,
                               const kiln_value_vec *dying, const int32_t *targets, int count) {
  uint8_t *live;
  int live_count;
  save_live(e, &live, &live_count);
  KILN_TRY(emit_branch(e, node->blocks[0], dying, targets, count));
  restore_live(e, live, live_count);
  if (jf < 0) return NULL;
  e->range = node->range;
  int jmp = kiln__bytecode_instr(e, KILN_INSTR_JMP, 0, 0, 0);
  e->code.data[jf].x = (uint32_t)e->code.count;
  KILN_TRY(emit_branch(e, node->blocks[1], dying, targets, count));
  if (jmp == e->code.count - 1) { /* an empty else branch */
    e->code.count--;
    e->ranges.count--;
    e->times.count -= e->env->timed;
    e->code.data[jf].x = (uint32_t)e->code.count;
  } else {
    e->code.data[jmp].x = (uint32_t)e->code.count;
  }
  restore_live(e, live, live_count);
  return NULL;
}

static kiln_status *emit_if(kiln__bytecode_emitter *e, kiln_node *node) {
  int count = node->output_count, jf = -1; /* -1: the first side is all there is */
  if (!e->env->guard || !kiln_guards_is_checked(node->blocks[0])) {
    jf = kiln__bytecode_instr(e, KILN_INSTR_JF, 1, 0, 0);
    kiln_operand cond = kiln__bytecode_read(e, kiln_node_input(node, 0));
    kiln__bytecode_operands(e, jf)[0] = cond;
  }
  kiln_value_vec dying = {0};
  kiln_value_vec *list = kiln_map_find_ptr(&e->deaths, node);
  if (list) dying = *list, list->count = 0;
  int32_t *targets = KILN_NEW_ARRAY(e->scratch, int32_t, count + 1);
  for (int i = 0; i < count; i++) {
    targets[i] = kiln_node_output(node, i)->uses ? define(e, kiln_node_output(node, i)) : -1;
  }
  uint8_t *was_reserved = KILN_NEW_ARRAY(e->scratch, uint8_t, count + 1);
  for (int i = 0; i < count; i++) {
    if (targets[i] < 0) continue;
    was_reserved[i] = e->reserved.data[targets[i]];
    e->reserved.data[targets[i]] = 1;
  }
  KILN_TRY(emit_sides(e, node, jf, &dying, targets, count));
  for (int i = 0; i < dying.count; i++) free_register(e, dying.data[i]);
  for (int i = 0; i < count; i++) {
    if (targets[i] >= 0) e->reserved.data[targets[i]] = was_reserved[i];
    e->free_from = 0;
  }
  for (int i = 0; i < count; i++) {
    kiln_ir_value *out = kiln_node_output(node, i);
    if (out->uses) schedule(e, node->block, &out, 1);
  }
  return NULL;
}

static bool is_true(const kiln__bytecode_emitter *e, const kiln_ir_value *v) {
  return kiln_ir_value_is_bool(kiln__bytecode_root(e, v), true);
}

typedef struct loop_registers {
  int32_t i, cond; /* cond -1: always true */
  int32_t *carried;
  kiln_operand max;
} loop_registers;

/* Initial values; those that die here and that the body does not use are moved. */
static void emit_loop_entry(kiln__bytecode_emitter *e, kiln_node *node, loop_registers *regs) {
  int carried = node->output_count, first = regs->cond >= 0 ? 1 : 2, n = carried + 2 - first;
  static const kiln_ivalue zero = {.tag = KILN_TAG_INT};
  uint32_t zero_at = kiln__bytecode_constant(e, &zero);
  int at = kiln__bytecode_instr(e, KILN_INSTR_LOADC, 0, 1, zero_at);
  kiln__bytecode_operands(e, at)[0] = (kiln_operand)regs->i;
  if (!n) return;
  at = kiln__bytecode_instr(e, KILN_INSTR_MOVE, n, n, 0);
  for (int k = 0; k < n; k++) {
    kiln_operand o = kiln__bytecode_read(e, kiln_node_input(node, first + k));
    kiln__bytecode_operands(e, at)[k] = o;
    kiln__bytecode_operands(e, at)[n + k] =
        (kiln_operand)(first + k == 1 ? regs->cond : regs->carried[first + k - 2]);
  }
  kiln_value_vec *dying = kiln_map_find_ptr(&e->deaths, node);
  const kiln_block *body = node->blocks[0];
  int kept = 0;
  for (int i = 0; dying && i < dying->count; i++) {
    kiln_ir_value *v = dying->data[i];
    if (kiln__bytecode_is_counted(v) && !kiln__bytecode_last_use(e, v, body) &&
        mark_move(e, at, v)) {
      free_register(e, v);
    } else {
      dying->data[kept++] = v;
    }
  }
  if (dying) dying->count = kept;
}

static void define_loop(kiln__bytecode_emitter *e, kiln_node *node, loop_registers *regs) {
  kiln_block *body = node->blocks[0];
  int carried = node->output_count;
  bool endless = is_true(e, kiln_node_input(node, 1)) && is_true(e, kiln_block_output(body, 0));
  regs->i = define(e, kiln_block_input(body, 0));
  regs->cond = endless ? -1 : kiln__bytecode_register(e);
  regs->carried = KILN_NEW_ARRAY(e->scratch, int32_t, carried + 1);
  for (int k = 0; k < carried; k++) {
    regs->carried[k] = define(e, kiln_block_input(body, k + 1));
    e->reserved.data[regs->carried[k]]++;
  }
  e->reserved.data[regs->i]++;
  if (regs->cond >= 0) e->reserved.data[regs->cond]++;
  regs->max = kiln__bytecode_read(e, kiln_node_input(node, 0));
}

static kiln_status *emit_loop_body(kiln__bytecode_emitter *e, kiln_node *node,
                                   const loop_registers *regs) {
  kiln_block *body = node->blocks[0];
  int carried = node->output_count;
  schedule(e, body, body->param->outputs + 1, carried);
  for (int k = 0; k < carried; k++) {
    kiln_ir_value *v = kiln__bytecode_root(e, kiln_block_output(body, k + 1));
    if (v->node->block == body && v->node != body->param && e->hints[v->id] < 0) {
      e->hints[v->id] = regs->carried[k];
    }
  }
  KILN_TRY(emit_block(e, body));
  e->range = node->range;
  int32_t *targets = KILN_NEW_ARRAY(e->scratch, int32_t, carried + 1);
  targets[0] = regs->cond;
  memcpy(targets + 1, regs->carried, sizeof *targets * (size_t)carried);
  emit_results(e, body, 0, carried + 1, targets);
  drop_unmoved(e, body, 0, carried + 1, targets);
  return NULL;
}

static kiln_status *emit_loop(kiln__bytecode_emitter *e, kiln_node *node) {
  loop_registers regs = {0};
  define_loop(e, node, &regs);
  emit_loop_entry(e, node, &regs);
  uint8_t *live;
  int live_count, carried = node->output_count;
  save_live(e, &live, &live_count);
  int loop = kiln__bytecode_instr(e, KILN_INSTR_LOOP, 3, 0, 0);
  kiln_operand cond =
      regs.cond >= 0 ? (kiln_operand)regs.cond : kiln__bytecode_read(e, kiln_node_input(node, 1));
  kiln_operand *o = kiln__bytecode_operands(e, loop);
  o[0] = (kiln_operand)regs.i, o[1] = regs.max, o[2] = cond;
  KILN_TRY(emit_loop_body(e, node, &regs));
  int inc = kiln__bytecode_instr(e, KILN_INSTR_INC, 0, 1, 0);
  kiln__bytecode_operands(e, inc)[0] = (kiln_operand)regs.i;
  kiln__bytecode_instr(e, KILN_INSTR_JMP, 0, 0, (uint32_t)loop);
  e->code.data[loop].x = (uint32_t)e->code.count;
  restore_live(e, live, live_count);
  e->reserved.data[regs.i]--;
  e->free_from = 0;
  give_back(e, regs.i);
  if (regs.cond >= 0) {
    e->reserved.data[regs.cond]--;
    give_back(e, regs.cond);
  }
  for (int k = 0; k < carried; k++) {
    e->reserved.data[regs.carried[k]]--;
    e->regs[kiln_node_output(node, k)->id] = regs.carried[k];
  }
  kiln__bytecode_finish(e, node);
  schedule(e, node->block, node->outputs, carried);
  return NULL;
}

static kiln_status *emit_block(kiln__bytecode_emitter *e, kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    e->range = n->range;
    e->node = n;
    if (kiln_node_is(n, KILN_OP_prim_If)) {
      KILN_TRY(emit_if(e, n));
    } else if (kiln_node_is(n, KILN_OP_prim_Loop)) {
      KILN_TRY(emit_loop(e, n));
    } else {
      KILN_TRY(kiln__bytecode_node(e, n));
    }
  }
  return NULL;
}

/* -- The whole graph -- */

static void emit_return(kiln__bytecode_emitter *e, kiln_block *top) {
  static const kiln_ivalue none = {.tag = KILN_TAG_NONE};
  int count = kiln_block_output_count(top), at;
  if (count == 1) {
    at = kiln__bytecode_instr(e, KILN_INSTR_RET, 1, 0, 0);
    kiln__bytecode_operands(e, at)[0] = kiln__bytecode_read(e, kiln_block_output(top, 0));
    move_dying(e, top->ret, at);
    return;
  }
  kiln_operand result = 0;
  if (count == 0) result = kiln__bytecode_constant(e, &none) | KILN_OPERAND_CONSTANT;
  if (count > 1) { /* several results, as fallbacks and textual graphs have: a tuple */
    const kiln_type **elems = KILN_NEW_ARRAY(e->scratch, const kiln_type *, count);
    for (int i = 0; i < count; i++) {
      elems[i] = kiln_type_unshaped(e->env->types, kiln_block_output(top, i)->type);
    }
    kiln_vec_push(e->arena, &e->types, kiln_type_tuple(e->env->types, elems, count));
    at = kiln__bytecode_instr(e, KILN_INSTR_TUPLE, count, 1, (uint32_t)e->types.count - 1);
    for (int i = 0; i < count; i++) {
      kiln_operand o = kiln__bytecode_read(e, kiln_block_output(top, i));
      kiln__bytecode_operands(e, at)[i] = o;
    }
    move_dying(e, top->ret, at);
    result = (kiln_operand)kiln__bytecode_register(e);
    kiln__bytecode_operands(e, at)[count] = result;
    result |= KILN_OPERAND_MOVE;
  }
  at = kiln__bytecode_instr(e, KILN_INSTR_RET, 1, 0, 0);
  kiln__bytecode_operands(e, at)[0] = result;
}

static void fill_plan(kiln__bytecode_emitter *e) {
  kiln_plan *p = e->plan;
  p->register_count = e->live.count;
  p->code = e->code.data;
  p->code_count = e->code.count;
  p->operands = e->operands.data;
  p->kernels = e->kernels.data;
  p->kernel_count = e->kernels.count;
  p->callables = e->callables.data;
  p->callable_count = e->callables.count;
  p->guards = e->guards.data;
  p->guard_count = e->guards.count;
  if (e->env->guard && e->env->guard->symbols) {
    p->entry_guard = e->env->guard;
    p->symbol_count += p->entry_guard->symbols->symbol_count;
  }
  p->groups = e->groups.data;
  p->group_count = e->groups.count;
  p->kept = e->kept.data;
  p->kept_count = e->kept.count;
  p->types = e->types.data;
  p->type_count = e->types.count;
  p->type_lists = e->type_lists.data;
  p->type_list_count = e->type_lists.count;
  p->strings = e->strings.data;
  p->string_count = e->strings.count;
  p->ranges = e->ranges.data;
  p->times = e->times.data;
  p->record_count = e->record_count;
  p->max_entered = e->enter_count;
  p->sink = e->env->sink;
  p->methods = e->env->methods;
  for (int i = 0; i < p->code_count; i++) {
    const kiln_instr *in = &p->code[i];
    if (in->op == KILN_INSTR_TYPECHECK) e->guards.data[in->x].at = p->operands + in->operands;
  }
}

static void begin(kiln__bytecode_emitter *e, const kiln_graph *graph) {
  const uint32_t count = graph->next_id + 1;
  e->graph = graph;
  e->scratch = kiln_arena_scoped(kiln_arena_mem(e->arena));
  e->plan->name = kiln_arena_strdup(e->arena, e->env->name);
  e->plan->arg_count = kiln_block_input_count(graph->top);
  e->plan->result_count = 1;
  e->plan->max_in = 4; /* EXIT gathers four arguments */
  e->kernel_index = kiln_map_in(e->scratch);
  e->constant_index = kiln_map_in(e->scratch);
  e->deaths = kiln_map_in(e->scratch);
  e->wrapped_kernels = kiln_map_in(e->scratch);
  e->own_ranges = kiln_map_in(e->scratch);
  e->regs = KILN_NEW_ARRAY(e->scratch, int32_t, count);
  e->hints = KILN_NEW_ARRAY(e->scratch, int32_t, count);
  e->last_reads_of = -1;
  e->wanted = KILN_NEW_ARRAY(e->scratch, uint32_t, count);
  e->owners = KILN_NEW_ARRAY(e->scratch, int32_t, count);
  for (uint32_t i = 0; i < count; i++) e->regs[i] = e->hints[i] = e->owners[i] = -1;
}

/* The one place that holds the limit: whatever emits instructions may count on it. */
static kiln_status *check_width(const kiln__bytecode_emitter *e) {
  if (!e->too_wide) return NULL;
  kiln_status *status = KILN_ERROR(
      KILN_UNSUPPORTED, "more than %d values go into or out of one operator, branch or loop",
      MOST_OPERANDS);
  return kiln_source_range_trace(e->ranges.data[e->too_wide - 1], status);
}

static kiln_status *emit_plan(kiln__bytecode_emitter *e, const kiln_graph *graph) {
  kiln_block *top = graph->top;
  begin(e, graph);
  kiln__bytecode_find_lives(e, graph);
  for (int i = 0; i < kiln_block_input_count(top); i++) define(e, kiln_block_input(top, i));
  kiln__bytecode_borrow(e, graph);
  schedule(e, top, top->param->outputs, kiln_block_input_count(top));
  kiln__bytecode_find_unset(e, graph);
  kiln_status *status = emit_block(e, top);
  if (!status) {
    kiln__bytecode_check_unset(e, top->ret);
    e->range = NULL;
    emit_return(e, top);
    status = check_width(e);
  }
  if (!status) fill_plan(e);
  kiln_arena_destroy(e->scratch);
  return status ? status : kiln_plan_verify(e->plan);
}

static void destroy(void *plan) { kiln_plan_destroy(plan); }

kiln_status *kiln_bytecode_emit(const kiln_graph *graph, const kiln_bytecode_env *env,
                                kiln_plan **out_plan) {
  kiln_arena *arena = kiln_arena_scoped(env->env->mem);
  kiln__bytecode_emitter *e = KILN_NEW(arena, kiln__bytecode_emitter);
  kiln_plan *plan = KILN_NEW(arena, kiln_plan);
  kiln_cleanup destroying;
  *e = (kiln__bytecode_emitter){.arena = arena, .env = env, .plan = plan};
  plan->arena = arena;
  kiln_arena_keep(arena);
  kiln_scope_defer(&destroying, destroy, plan);
  kiln_status *status = emit_plan(e, graph);
  kiln_scope_undefer(&destroying);
  if (status) {
    kiln_plan_destroy(plan);
    return status;
  }
  *out_plan = plan;
  return NULL;
}
