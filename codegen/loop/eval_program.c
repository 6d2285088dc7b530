/* eval_program.c: makes the evaluator's program of a kernel: the order of instructions, for which
 * iterations of a block each runs, its function, and its slot. */
#include "codegen/loop/eval_program.h"

#include <string.h>

#include "runtime/dtype.h"

/* -- Functions -- */

static int type_index(kiln_dtype dtype) {
  switch (dtype) {
#define CASE(name, suffix, type, unsigned_type, is_bool) \
  case KILN_DTYPE_##name: return EVAL_TYPE_##name;
    EVAL_TYPES(CASE)
#undef CASE
    default: break;
  }
  KILN_ASSERT(false); /* the verifier refuses it */
  return 0;
}

static eval_fn cast_fn(const kiln_eval_table *table, kiln_dtype from, kiln_dtype to) {
  if (kiln_dtype_is_half(from)) return table->from_half[from == KILN_DTYPE_BF16];
  if (kiln_dtype_is_half(to)) return table->to_half[to == KILN_DTYPE_BF16];
  return table->casts[type_index(from)][type_index(to)];
}

/* Of a load it makes numbers of what is in memory: of a file or a host, any byte but 0 is true. */
static void choose_function(eval_inst *e, const kiln_loop_nest *from,
                            const kiln_eval_table *table) {
  const kiln_loop_inst *inst = &e->inst;
  const kiln_dtype operand =
      inst->args[0] < 0 ? KILN_DTYPE_NONE : from->body.data[inst->args[0]].dtype;
  switch (kiln_loop_ops[inst->op].rule) {
    case KILN_LOOP_RULE_LEAF:
      e->kind = inst->op == KILN_LOOP_load    ? EVAL_LOAD
                : inst->op == KILN_LOOP_index ? EVAL_INDEX
                                              : EVAL_LEAF;
      if (inst->op == KILN_LOOP_load && inst->dtype == KILN_DTYPE_BOOL)
        e->fn = table->casts[EVAL_TYPE_BOOL][EVAL_TYPE_BOOL];
      break;
    case KILN_LOOP_RULE_STORE: e->kind = EVAL_STORE; break;
    case KILN_LOOP_RULE_CAST: e->fn = cast_fn(table, operand, inst->dtype); break;
    case KILN_LOOP_RULE_CHECK: e->kind = EVAL_CHECK; break;
    case KILN_LOOP_RULE_GATHER:
      e->kind = EVAL_GATHER;
      if (inst->dtype == KILN_DTYPE_BOOL) e->fn = table->casts[EVAL_TYPE_BOOL][EVAL_TYPE_BOOL];
      break;
    case KILN_LOOP_RULE_SAME:
    case KILN_LOOP_RULE_COMPARE: e->fn = table->ops[inst->op][type_index(operand)]; break;
    case KILN_LOOP_RULE_SELECT: e->fn = table->select[__builtin_ctz((unsigned)e->size)]; break;
    case KILN_LOOP_RULE_REDUCE:
    case KILN_LOOP_RULE_FIND: e->kind = EVAL_REDUCE; break;
    case KILN_LOOP_RULE_SCAN: e->kind = EVAL_SCAN; break;
    case KILN_LOOP_RULE_OPEN: e->kind = EVAL_OPEN; break;
    case KILN_LOOP_RULE_END: e->kind = EVAL_END; break;
  }
}

/* -- Order -- */

/* A nest whose instructions stand in the order of their levels (kiln_loop_levels). */
typedef struct sorted {
  const kiln_loop_nest *nest;
  kiln_loop_scopes scopes;
  int *levels;
  int phases[KILN_LOOP_MAX_RANK + 2];
} sorted;

static sorted sort_nest(const kiln_loop_nest *from, kiln_arena *arena) {
  const int count = from->body.count;
  kiln_loop_nest *nest = KILN_NEW(arena, kiln_loop_nest);
  int *levels = KILN_NEW_ARRAY(arena, int, count + 1),
      *number = KILN_NEW_ARRAY(arena, int, count + 1);
  sorted s = {.nest = nest, .levels = KILN_NEW_ARRAY(arena, int, count + 1)};
  kiln_loop_levels(from, levels);
  *nest = *from;
  nest->body.data = KILN_NEW_ARRAY(arena, kiln_loop_inst, count + 1);
  nest->body.count = 0;
  for (int level = 0; level <= from->rank; level++) {
    s.phases[level] = nest->body.count;
    for (int i = 0; i < count; i++) {
      const int at = nest->body.count;
      if (levels[i] != level) continue;
      kiln_loop_inst *inst = &nest->body.data[at];
      *inst = from->body.data[i];
      for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++) inst->args[a] = number[inst->args[a]];
      number[i] = at;
      s.levels[at] = level;
      nest->body.count++;
    }
  }
  s.phases[from->rank + 1] = count;
  s.scopes = kiln_loop_scopes_of(nest, arena);
  return s;
}

/* -- Blocks -- */

static bool is_local(const eval_inst *e, int shared) {
  return kiln_loop_is_access(&e->inst) && e->inst.index >= shared;
}

/* What the nest's blocks are. Many rows: all loops of the body are of columns, and local buffers
 * have an element for each. */
static void find_form(eval_nest *nest, const kiln_loop_nest *from, int shared) {
  nest->along_body = kiln_loop_strips_body(from);
  nest->many_rows = nest->along_body && nest->rank > 0;
  for (int i = 0; i < nest->count; i++) {
    eval_inst *e = &nest->body[i];
    const bool opens = e->kind == EVAL_OPEN, local = is_local(e, shared);
    nest->has_loops |= opens || local;
    if (opens) {
      e->innermost = true;
      for (int k = i + 1; k < e->end && e->innermost; k++)
        e->innermost = nest->body[k].kind != EVAL_OPEN;
      nest->many_rows &= e->innermost;
    } else if (local) {
      nest->many_rows &=
          e->inst.offset == 0 && e->depth == nest->rank + 1 && e->inst.strides[nest->rank] == 1;
      for (int d = 0; d < nest->rank; d++) nest->many_rows &= e->inst.strides[d] == 0;
    }
  }
  nest->outer = nest->rank - (nest->along_body || nest->has_loops ? 1 : 2);
  if (nest->outer < 0) nest->outer = 0;
}

/* For which of a block's iterations instructions run. */
static void find_iterations(eval_nest *nest, const sorted *s) {
  const int last = nest->rank - 1;
  for (int i = 0; i < nest->count; i++) {
    eval_inst *e = &nest->body[i];
    const int scope = s->scopes.parent[i], level = s->levels[i];
    const bool inner = scope >= 0 && nest->body[scope].innermost;
    e->row_loop = e->column_loop = -1;
    if (level < nest->rank && level <= nest->outer) continue;
    if (nest->along_body) {
      e->row_loop = last;
      if (inner) e->column_loop = e->depth - 1;
    } else if (nest->has_loops) {
      e->column_loop = last;
      if (inner) e->row_loop = e->depth - 1;
    } else {
      e->row_loop = last - 1;
      if (level == nest->rank) e->column_loop = last;
    }
    e->iterations =
        (e->row_loop >= 0 ? EVAL_EACH_ROW : 0) | (e->column_loop >= 0 ? EVAL_EACH_COLUMN : 0);
    e->values = e->iterations;
    if (e->kind == EVAL_REDUCE) e->values &= nest->along_body ? EVAL_EACH_ROW : EVAL_EACH_COLUMN;
  }
}

/* Which pointer each operand is read by, and what has to be spread for that. Those that an opcode
 * does not have are the first again. */
static void find_operands(eval_nest *nest) {
  for (int i = 0; i < nest->count; i++) {
    eval_inst *e = &nest->body[i];
    for (int a = 0; a < 3; a++) {
      e->operands[a] = a > 0 ? e->operands[0] : 2 * i;
      if (a >= kiln_loop_ops[e->inst.op].arity) continue;
      eval_inst *value = &nest->body[e->inst.args[a]];
      if (e->kind == EVAL_GATHER) { /* reads the indices as they are */
        e->operands[a] = 2 * e->inst.args[a];
        continue;
      }
      const bool wide = value->values == EVAL_EACH_ROW && e->iterations & EVAL_EACH_COLUMN;
      e->operands[a] = 2 * e->inst.args[a] + wide;
      value->spreads |= (e->iterations & ~value->values) != 0;
    }
  }
}

/* -- Lives -- */

/* The last instruction before which each value must stay; of one that loops or blocks read again,
 * their end. */
static int *find_ends(const eval_nest *nest, const sorted *s, kiln_arena *arena) {
  int *ends = KILN_NEW_ARRAY(arena, int, nest->count + 1);
  for (int i = 0; i < nest->count; i++) {
    const eval_inst *e = &nest->body[i];
    ends[i] = i;
    for (int a = 0; a < kiln_loop_ops[e->inst.op].arity; a++) {
      const int value = e->inst.args[a], home = kiln_loop_home(s->nest, &s->scopes, value);
      int end = i, scope = s->scopes.parent[i];
      for (; scope != home; scope = s->scopes.parent[scope]) end = s->scopes.end[scope];
      if (s->levels[value] < s->levels[i]) end = nest->count;
      if (ends[value] < end) ends[value] = end;
    }
  }
  return ends;
}

/* Finds which loads need no copy, and which results can be written where a store puts them. Memory
 * of an output may be that of an input whose elements were all loaded before: between a load that
 * is no copy and what reads it there must be no store, and no load between a result and its store.
 */
static void find_in_place(eval_nest *nest, const sorted *s, const int *ends, kiln_arena *arena) {
  int *loads = KILN_NEW_ARRAY(arena, int, nest->count + 2); /* before each instruction */
  int *stores = KILN_NEW_ARRAY(arena, int, nest->count + 2);
  for (int i = 0; i < nest->count; i++) {
    eval_inst *e = &nest->body[i];
    loads[i + 1] = loads[i] + (e->kind == EVAL_LOAD || e->kind == EVAL_GATHER);
    if (e->kind != EVAL_STORE) continue;
    const int from = e->inst.args[0];
    eval_inst *value = &nest->body[from];
    if (value->kind == EVAL_CALL && value->store < 0 && !value->spreads &&
        value->iterations == e->iterations && s->scopes.parent[from] == s->scopes.parent[i] &&
        loads[i] == loads[from]) {
      value->store = i;
      stores[from + 1]++;
    } else {
      stores[i + 1]++;
    }
  }
  for (int i = 0; i < nest->count; i++) stores[i + 1] += stores[i];
  for (int i = 0; i < nest->count; i++) {
    eval_inst *e = &nest->body[i];
    if (e->kind != EVAL_LOAD || e->fn || e->spreads) continue;
    e->in_place = ends[i] <= i + 1 || stores[ends[i]] == stores[i + 1];
  }
}

/* Finds loads that give all blocks the same, such as a bias for each column; their slots stay
 * theirs. */
static void find_steady(eval_nest *nest, int shared, int *ends) {
  const int both = EVAL_EACH_ROW | EVAL_EACH_COLUMN;
  for (int i = 0; i < nest->count && (nest->along_body || !nest->has_loops); i++) {
    eval_inst *e = &nest->body[i];
    e->steady = e->kind == EVAL_LOAD && e->iterations == both && !is_local(e, shared);
    for (int d = 0; d < e->depth && e->steady; d++)
      e->steady = d == e->column_loop || e->inst.strides[d] == 0;
    if (e->steady) ends[i] = nest->count;
  }
}

/* -- Slots -- */

typedef struct slot_pool {
  int free[EVAL_SIZES], used[EVAL_SIZES]; /* free: the first of a list */
  int *next;                              /* of the list, by the number of a pointer; -1 */
  int *number;                            /* of each pointer's slot among those of its size; -1 */
} slot_pool;

/* `fresh`: of nobody before, who would write it again in the next block. */
static void take_slot(slot_pool *s, int pointer, int size, bool fresh) {
  int *first = &s->free[__builtin_ctz((unsigned)size)];
  if (fresh || *first < 0) {
    s->number[pointer] = s->used[__builtin_ctz((unsigned)size)]++;
  } else {
    s->number[pointer] = s->number[*first];
    *first = s->next[*first];
  }
}

static void give_slot(slot_pool *s, int pointer, int size) {
  int *first = &s->free[__builtin_ctz((unsigned)size)];
  if (s->number[pointer] < 0) return;
  s->next[pointer] = *first;
  *first = pointer;
}

static bool has_slot(const eval_inst *e) {
  return e->kind == EVAL_CALL || e->kind == EVAL_LOAD || e->kind == EVAL_LEAF ||
         e->kind == EVAL_INDEX || e->kind == EVAL_CHECK || e->kind == EVAL_GATHER ||
         e->kind == EVAL_REDUCE || e->kind == EVAL_SCAN;
}

/* Those whose last reader is instruction `i` give theirs to who follows: to its own result too,
 * where elements have one size. */
static void take_slots(const eval_nest *nest, int i, slot_pool *s) {
  const eval_inst *e = &nest->body[i];
  take_slot(s, 2 * i, e->size, e->steady);
  if (e->spreads && e->values == EVAL_EACH_ROW) take_slot(s, 2 * i + 1, e->size, e->steady);
}

static void assign_slots(const eval_nest *nest, const int *ends, slot_pool *s, kiln_arena *arena) {
  int *ending = KILN_NEW_ARRAY(arena, int, nest->count + 1); /* lists of values by their end */
  int *next = KILN_NEW_ARRAY(arena, int, nest->count + 1);
  for (int i = 0; i <= nest->count; i++) ending[i] = -1;
  for (int i = 0; i < nest->count; i++) {
    if (!has_slot(&nest->body[i])) continue;
    next[i] = ending[ends[i]];
    ending[ends[i]] = i;
  }
  for (int i = 0; i < nest->count; i++) {
    const eval_inst *e = &nest->body[i];
    const int own = e->kind == EVAL_CALL ? e->size : 0;
    for (int r = e->kind == EVAL_OPEN ? e->first : -1; r >= 0; r = nest->reductions[r].next) {
      const int inst = nest->reductions[r].inst;
      if (nest->body[inst].kind == EVAL_REDUCE) take_slots(nest, inst, s);
    }
    for (int pass = 0; pass < 2; pass++) {
      for (int v = ending[i]; v >= 0; v = next[v]) {
        const int size = nest->body[v].size;
        if (v == i || (size == own) != (pass == 0)) continue;
        give_slot(s, 2 * v, size);
        give_slot(s, 2 * v + 1, size);
      }
      if (pass == 0 && has_slot(e) && e->kind != EVAL_REDUCE) take_slots(nest, i, s);
    }
  }
}

/* Where everything of a nest lies in scratch, from byte `at` on; gives the end. */
static size_t place_values(eval_nest *nest, const kiln_loop_fn *fn, const int *ends, size_t at,
                           kiln_arena *arena) {
  slot_pool s = {.next = KILN_NEW_ARRAY(arena, int, 2 * nest->count + 2),
                 .number = KILN_NEW_ARRAY(arena, int, 2 * nest->count + 2)};
  const int locals = fn->buffers.count - fn->input_count - fn->output_count;
  size_t bytes = nest->many_rows ? 8 * (size_t)locals : 0, begin[EVAL_SIZES];
  for (int i = 0; i < 2 * nest->count; i++) s.number[i] = -1;
  for (int c = 0; c < EVAL_SIZES; c++) s.free[c] = -1;
  assign_slots(nest, ends, &s, arena);
  for (int c = 0; c < EVAL_SIZES; c++) bytes += (size_t)s.used[c] << c;
  nest->block = EVAL_MOST_BLOCK;
  while (nest->block > EVAL_LEAST_BLOCK && bytes * (size_t)nest->block > EVAL_BLOCK_BYTES)
    nest->block /= 2;
  for (int c = 0; c < EVAL_SIZES; c++) {
    begin[c] = at;
    at += (size_t)nest->block * ((size_t)s.used[c] << c);
  }
  nest->tiles_at = at;
  if (nest->many_rows) at += (size_t)nest->block * 8 * (size_t)locals;
  for (int i = 0; i < 2 * nest->count; i++) {
    const int size = nest->body[i / 2].size;
    if (s.number[i] >= 0)
      nest->slots[i] =
          begin[__builtin_ctz((unsigned)size)] + (size_t)nest->block * (size_t)(s.number[i] * size);
  }
  return at;
}

/* -- Reductions -- */

/* Adds what instruction i of the nest reduces or scans; gives the end of the scratch that begins at
 * `at`. */
static size_t add_reduction(eval_nest *nest, const sorted *s, const kiln_eval_table *table, int i,
                            int number, size_t at) {
  eval_inst *e = &nest->body[i];
  const kiln_dtype dtype = s->nest->body.data[e->inst.args[0]].dtype;
  const bool find = kiln_loop_ops[e->inst.op].rule == KILN_LOOP_RULE_FIND;
  const int others = nest->along_body ? (nest->many_rows ? EVAL_ROWS : 1) : EVAL_COLUMNS;
  eval_reduction *r = &nest->reductions[number];
  int open = s->scopes.parent[i];
  *r = (eval_reduction){.inst = i, .type = type_index(dtype), .size = kiln_loop_size(dtype)};
  if (find) {
    r->find = table->finders[e->inst.op == KILN_LOOP_argmin][r->type];
  } else if (e->kind == EVAL_SCAN) {
    r->scan = table->scanners[e->inst.op][r->type];
  } else {
    const kiln_loop_opcode op = kiln_loop_multiplies(e->inst.op) ? KILN_LOOP_sum : e->inst.op;
    r->fns = table->reducers[e->inst.op][r->type];
    r->may_be_whole = nest->along_body && r->type <= EVAL_TYPE_F64 && e->inst.index == 1 &&
                      nest->body[open].innermost;
    r->combine = table->ops[op][r->type];
  }
  r->lanes_at = at;
  r->places_at = at + (size_t)(others * KILN_REDUCE_LANES * r->size);
  for (int k = 1; k < e->inst.index; k++) open = s->scopes.parent[open];
  e->first = number;
  r->next = nest->body[open].first;
  nest->body[open].first = number;
  return r->places_at + (find ? (size_t)others * sizeof(int64_t) : 0) + EVAL_LINE - 1;
}

/* -- The program -- */

static size_t whole_lines(size_t bytes) { return (bytes + EVAL_LINE - 1) / EVAL_LINE * EVAL_LINE; }

/* Gives the end of its scratch. */
static size_t make_nest(eval_nest *nest, const kiln_loop_fn *fn, const sorted *s,
                        const kiln_eval_table *table, size_t at, kiln_arena *arena) {
  const kiln_loop_nest *from = s->nest;
  int reductions = 0;
  memcpy(nest->extents, from->extents, sizeof nest->extents);
  memcpy(nest->phases, s->phases, sizeof nest->phases);
  nest->rank = from->rank;
  nest->axes = kiln_loop_nest_axes(from);
  for (int i = 0; i < KILN_KERNEL_AXES; i++) nest->grid[i] = kiln_loop_nest_extent(from, i);
  for (int i = 0; i < nest->count; i++) {
    const kiln_loop_inst *inst = &from->body.data[i];
    nest->body[i] = (eval_inst){.inst = *inst,
                                .size = kiln_loop_size(inst->dtype),
                                .depth = s->scopes.depth[i],
                                .end = s->scopes.end[i],
                                .store = -1,
                                .first = -1};
    choose_function(&nest->body[i], from, table);
  }
  find_form(nest, from, fn->input_count + fn->output_count);
  find_iterations(nest, s);
  find_operands(nest);
  for (int i = 0; i < nest->count; i++) {
    if (nest->body[i].kind == EVAL_REDUCE || nest->body[i].kind == EVAL_SCAN)
      at = whole_lines(add_reduction(nest, s, table, i, reductions++, at));
  }
  int *ends = find_ends(nest, s, arena);
  find_in_place(nest, s, ends, arena);
  find_steady(nest, fn->input_count + fn->output_count, ends);
  return place_values(nest, fn, ends, at, arena);
}

typedef struct totals {
  size_t insts, reductions, most;
} totals;
static totals count_all(const kiln_loop_fn *fn) {
  totals t = {0};
  for (int n = 0; n < fn->nests.count; n++) {
    const kiln_loop_nest *nest = fn->nests.data[n];
    const size_t count = (size_t)nest->body.count;
    t.insts += count;
    if (count > t.most) t.most = count;
    for (int i = 0; i < nest->body.count; i++) {
      const kiln_loop_opcode op = nest->body.data[i].op;
      t.reductions += kiln_loop_reduces(op) || kiln_loop_carries(op);
    }
  }
  return t;
}

/* Where the scratch of nests begins: behind pointers and the values of symbols. */
static size_t place_shared(kiln_eval_program *program, const totals *t) {
  size_t at = whole_lines(2 * t->most * sizeof(char *));
  if (!program->values) return at;
  program->values_at = at;
  const int room = kiln_dim_program_room(program->values) + program->values->result_count;
  return whole_lines(at + sizeof(int64_t) * (size_t)room);
}

static void destroy(void *program) { kiln_eval_destroy(program); }

/* Its parts lie behind it, in its block. */
static void fill_program(kiln_eval_program *program, const kiln_loop_fn *fn, const totals *t,
                         const kiln_loop_flat *flat, kiln_arena *arena) {
  const int locals = fn->buffers.count - fn->input_count - fn->output_count;
  program->nests = (eval_nest *)(program + 1);
  eval_inst *body = (eval_inst *)(program->nests + fn->nests.count);
  eval_reduction *reductions = (eval_reduction *)(body + t->insts);
  size_t *slots = (size_t *)(reductions + t->reductions);
  program->places = (kiln_dim *)(slots + 2 * t->insts);
  memcpy(program->places, flat->places, sizeof(kiln_dim) * (size_t)locals);
  if (flat->values)
    program->values = memcpy(program->places + locals, flat->values, flat->values->bytes);
  program->nest_count = fn->nests.count;
  program->shared_count = fn->input_count + fn->output_count;
  const size_t shared = place_shared(program, t);
  program->own_bytes = shared;
  for (int n = 0; n < fn->nests.count; n++) {
    eval_nest *nest = &program->nests[n];
    const sorted s = sort_nest(flat->fn->nests.data[n], arena);
    nest->count = s.nest->body.count;
    nest->joins = kiln_loop_nest_joins(flat->fn, n);
    nest->body = body;
    nest->reductions = reductions;
    nest->slots = slots;
    const size_t end = make_nest(nest, fn, &s, program->table, shared, arena);
    if (end > program->own_bytes) program->own_bytes = end;
    for (int i = 0; i < nest->count; i++)
      reductions += body[i].kind == EVAL_REDUCE || body[i].kind == EVAL_SCAN;
    body += nest->count;
    slots += 2 * nest->count;
  }
}

kiln_status *kiln_eval_create(const kiln_loop_fn *fn, const kiln_eval_table *table, kiln_mem *mem,
                              kiln_arena *arena, kiln_eval_program **out_program) {
  const totals t = count_all(fn);
  const size_t nests = (size_t)fn->nests.count;
  const size_t locals = (size_t)(fn->buffers.count - fn->input_count - fn->output_count);
  const kiln_loop_flat flat = kiln_loop_flatten(fn, EVAL_COLUMNS, arena);
  const size_t bytes = sizeof(kiln_eval_program) + sizeof(eval_nest) * nests +
                       (sizeof(eval_inst) + 2 * sizeof(size_t)) * t.insts +
                       sizeof(eval_reduction) * t.reductions + sizeof(kiln_dim) * locals +
                       (flat.values ? flat.values->bytes : 0);
  kiln_eval_program *program = kiln_mem_alloc_zero(mem, bytes);
  if (!program) return kiln_status_oom();
  program->mem = mem;
  program->table = table;
  program->bytes = bytes;
  kiln_cleanup freeing;
  kiln_scope_defer(&freeing, destroy, program);
  fill_program(program, fn, &t, &flat, arena);
  kiln_scope_undefer(&freeing);
  *out_program = program;
  return NULL;
}

void kiln_eval_destroy(kiln_eval_program *program) {
  if (program) kiln_mem_free(program->mem, program, program->bytes);
}
size_t kiln_eval_bytes(const kiln_eval_program *program) { return program->bytes; }
int kiln_eval_columns(void) { return EVAL_COLUMNS; }
int64_t kiln_eval_own_bytes(const kiln_eval_program *program) {
  return (int64_t)program->own_bytes;
}
