/* eval_run.c: the evaluator: blocks of a box, and what they read and write. */
#include <string.h>

#include "codegen/loop/eval_program.h"

typedef struct running {
  const kiln_kernel_args *args;
  const kiln_eval_program *program;
  const eval_nest *nest;
  const int64_t *symbols;
  char **pointers;
  int most_rows, most_columns; /* of a block */
  bool whole;                  /* a block has all columns */
  int rows, columns;           /* of the one at work */
  int64_t counters[KILN_LOOP_MAX_RANK], extents[KILN_LOOP_MAX_RANK];
  int64_t first[KILN_LOOP_MAX_RANK], last[KILN_LOOP_MAX_RANK]; /* of the nest's loops, in the box */
} running;

static int64_t number_of(const running *run, kiln_dim d) {
  return kiln_dim_is_number(d) ? d : run->symbols[kiln_dim_symbol_number(d)];
}

static eval_copy_fn copy_of(const running *run, int size) {
  return run->program->table->copy[__builtin_ctz((unsigned)size)];
}

static int least(int64_t a, int64_t b) { return (int)(a < b ? a : b); }

static char *scratch_at(const running *run, size_t at) { return (char *)run->args->scratch + at; }

static char *slot_of(const running *run, int pointer) {
  return scratch_at(run, run->nest->slots[pointer]);
}

/* How many values an instruction has in the block. */
static int count_of(const running *run, int values) {
  return (values & EVAL_EACH_ROW ? run->rows : 1) * (values & EVAL_EACH_COLUMN ? run->columns : 1);
}

/* -- Memory -- */

/* The elements of an access: a block of them from `at` on, strides in elements. */
typedef struct area {
  char *at;
  int rows, columns;
  int64_t row, column;
} area;

/* What a map gives at the block's first element; how it goes on there is put into `a`. */
static int64_t map_of(const running *run, const eval_inst *e, area *a) {
  const kiln_loop_inst *inst = &e->inst;
  int64_t at = number_of(run, inst->offset);
  for (int d = 0; d < e->depth; d++) {
    if (inst->strides[d] != 0) at += run->counters[d] * number_of(run, inst->strides[d]);
  }
  a->rows = e->iterations & EVAL_EACH_ROW ? run->rows : 1;
  a->columns = e->iterations & EVAL_EACH_COLUMN ? run->columns : 1;
  a->row = a->rows > 1 ? number_of(run, inst->strides[e->row_loop]) : 0;
  a->column = a->columns > 1 ? number_of(run, inst->strides[e->column_loop]) : 0;
  return at;
}

static area area_of(const running *run, const eval_inst *e) {
  const int local = e->inst.index - run->program->shared_count;
  area a = {0};
  int64_t at = map_of(run, e, &a);
  if (local < 0) {
    a.at = run->args->data[e->inst.index];
  } else if (run->nest->along_body && run->most_rows > 1) {
    a.at = scratch_at(run, run->nest->tiles_at) + (int64_t)local * run->nest->block * 8;
    a.row = run->most_columns;
  } else {
    const kiln_dim place = run->program->places[local];
    a.at = scratch_at(run, run->program->own_bytes) + number_of(run, place);
    if (!run->nest->along_body) at *= EVAL_COLUMNS, a.row *= EVAL_COLUMNS, a.column = 1;
  }
  a.at += at * e->size;
  return a;
}

/* Whether it lies as a block's values do. */
static bool is_block(const area *a) {
  return (a->columns == 1 || a->column == 1) && (a->rows == 1 || a->row == a->columns);
}

/* Whether an area's rows are its elements that lie next to each other. */
static bool is_transposed(const area *a) {
  return a->rows > 1 && a->columns > 1 && a->row == 1 && a->column != 1;
}

/* Between an area and a block's values. */
static void copy_area(const running *run, const area *a, int size, char *values, bool store) {
  const eval_copy_fn copy = copy_of(run, size);
  if (is_transposed(a)) {
    const int width = __builtin_ctz((unsigned)size);
    const eval_transpose_fn transpose = run->program->table->transpose[width];
    if (store)
      transpose(a->at, a->column, values, a->columns, a->rows, a->columns);
    else
      transpose(values, a->columns, a->at, a->column, a->columns, a->rows);
    return;
  }
  const bool by_row = a->columns >= a->rows;
  const int outer = by_row ? a->rows : a->columns, inner = by_row ? a->columns : a->rows;
  const int64_t step = by_row ? a->column : a->row, next = (by_row ? a->row : a->column) * size;
  const int64_t value_step = by_row ? 1 : a->columns, value_next = (by_row ? a->columns : 1) * size;
  for (int i = 0; i < outer; i++) {
    char *place = a->at + i * next, *value = values + i * value_next;
    if (store)
      copy(place, step, value, value_step, inner);
    else
      copy(value, value_step, place, step, inner);
  }
}

static void run_load(const running *run, int i, const eval_inst *e) {
  if (e->steady && run->whole && run->pointers[2 * i]) return;
  const area a = area_of(run, e);
  char *slot = slot_of(run, 2 * i);
  if (e->in_place && is_block(&a)) {
    run->pointers[2 * i] = a.at;
    return;
  }
  run->pointers[2 * i] = slot;
  copy_area(run, &a, e->size, slot, false);
  if (e->fn) e->fn(slot, slot, slot, slot, a.rows * a.columns);
}

static void run_store(const running *run, const eval_inst *e) {
  const area a = area_of(run, e);
  char *values = run->pointers[e->operands[0]];
  if (values != a.at) copy_area(run, &a, e->size, values, true);
}

static void run_call(const running *run, int i, const eval_inst *e) {
  char **pointers = run->pointers, *r = slot_of(run, 2 * i);
  if (e->store >= 0) {
    const area a = area_of(run, &run->nest->body[e->store]);
    if (is_block(&a)) r = a.at;
  }
  pointers[2 * i] = r;
  e->fn(r, pointers[e->operands[0]], pointers[e->operands[1]], pointers[e->operands[2]],
        count_of(run, e->iterations));
}

static void put_number(void *r, kiln_dtype dtype, double f, int64_t i) {
  switch (dtype) {
    case KILN_DTYPE_F32: *(float *)r = (float)f; break;
    case KILN_DTYPE_F64: *(double *)r = f; break;
    case KILN_DTYPE_I16: *(int16_t *)r = (int16_t)i; break;
    case KILN_DTYPE_I32: *(int32_t *)r = (int32_t)i; break;
    case KILN_DTYPE_I64: *(int64_t *)r = i; break;
    default: *(uint8_t *)r = (uint8_t)i; break;
  }
}

static void run_leaf(const running *run, int i, const eval_inst *e) {
  const kiln_loop_inst *inst = &e->inst;
  const kiln_dtype dtype = inst->dtype;
  char *r = run->pointers[2 * i];
  if (inst->op == KILN_LOOP_const) {
    put_number(r, dtype, inst->imm.f, inst->imm.i);
  } else if (inst->op == KILN_LOOP_dim) {
    put_number(r, dtype, 0, number_of(run, inst->offset));
  } else {
    const kiln_kernel_scalar scalar = run->args->scalars[inst->index];
    put_number(r, dtype, dtype == KILN_DTYPE_F64 ? scalar.f : 0,
               dtype == KILN_DTYPE_BOOL ? scalar.i != 0 : scalar.i);
  }
  copy_of(run, e->size)(r, 1, r, 0, count_of(run, e->iterations));
}

static void run_index(const running *run, int i, const eval_inst *e) {
  area a = {0};
  const int64_t first = map_of(run, e, &a);
  int64_t *r = (int64_t *)(void *)slot_of(run, 2 * i);
  run->pointers[2 * i] = (char *)r;
  for (int row = 0; row < a.rows; row++) {
    for (int column = 0; column < a.columns; column++)
      *r++ = first + row * a.row + column * a.column;
  }
}

/* -- Places that data tells -- */

static void run_check(const running *run, int i, const eval_inst *e) {
  const int64_t extent = number_of(run, e->inst.offset);
  const int64_t *from = (const int64_t *)(const void *)run->pointers[e->operands[0]];
  int64_t *r = (int64_t *)(void *)slot_of(run, 2 * i);
  run->pointers[2 * i] = (char *)r;
  bool good = true;
  for (int n = count_of(run, e->iterations), k = 0; k < n; k++) {
    const bool fits = (uint64_t)from[k] < (uint64_t)extent;
    good &= fits;
    r[k] = fits ? from[k] : 0;
  }
  if (!good) __atomic_store_n(run->args->fault, 1, __ATOMIC_RELAXED);
}

/* A row's elements go by one copy where they have one index. */
static void run_gather(const running *run, int i, const eval_inst *e) {
  const eval_inst *index = &run->nest->body[e->inst.args[0]];
  const int64_t *at = (const int64_t *)(const void *)run->pointers[e->operands[0]];
  const int64_t step = number_of(run, e->inst.imm.step) * e->size;
  const eval_copy_fn copy = copy_of(run, e->size);
  const area a = area_of(run, e);
  const int per_column = index->values & EVAL_EACH_COLUMN ? 1 : 0;
  const int per_row = !(index->values & EVAL_EACH_ROW) ? 0 : per_column ? run->columns : 1;
  char *slot = slot_of(run, 2 * i), *r = slot;
  run->pointers[2 * i] = slot;
  for (int row = 0; row < a.rows; row++, at += per_row) {
    const char *from = a.at + row * a.row * e->size;
    const int pieces = per_column ? a.columns : 1, length = per_column ? 1 : a.columns;
    for (int k = 0; k < pieces; k++, r += length * e->size)
      copy(r, 1, from + k * a.column * e->size + at[k] * step, length > 1 ? a.column : 1, length);
  }
  if (e->fn) e->fn(slot, slot, slot, slot, a.rows * a.columns);
}

/* Gives a value to all of a block that may read it. */
static void spread(const running *run, int i, const eval_inst *e) {
  const eval_copy_fn copy = copy_of(run, e->size);
  char *value = run->pointers[2 * i];
  const int block = run->most_rows * run->most_columns;
  if (e->values == 0) {
    copy(value, 1, value, 0, block);
  } else if (e->values == EVAL_EACH_COLUMN) {
    for (int at = run->columns; at + run->columns <= block; at += run->columns)
      copy(value + at * e->size, 1, value, 1, run->columns);
  } else {
    const int columns = run->nest->along_body ? run->most_columns : run->columns;
    char *wide = run->pointers[2 * i + 1];
    for (int r = 0; r < run->rows; r++)
      copy(wide + r * columns * e->size, 1, value + r * e->size, 0, columns);
  }
}

/* -- Reductions -- */

static char *lanes_of(const running *run, const eval_reduction *r) {
  return scratch_at(run, r->lanes_at);
}
static int64_t *places_of(const running *run, const eval_reduction *r) {
  return (int64_t *)(void *)scratch_at(run, r->places_at);
}

/* Lanes that have an iteration, where there is one for each column. */
static int lanes_used(const running *run, const eval_inst *e) {
  int64_t count = 1;
  for (int d = e->depth - e->inst.index; d < e->depth && count < KILN_REDUCE_LANES; d++)
    count *= run->extents[d];
  return count < KILN_REDUCE_LANES ? (int)count : KILN_REDUCE_LANES;
}

/* Whether a block has all that is reduced. */
static bool is_whole(const running *run, const eval_inst *e, const eval_reduction *r) {
  const int64_t extent = run->extents[e->depth - 1];
  return r->may_be_whole && extent > 0 && extent <= run->most_columns;
}

static void begin_reduction(const running *run, const eval_reduction *r) {
  const eval_inst *e = &run->nest->body[r->inst];
  const kiln_dtype dtype = run->nest->body[e->inst.args[0]].inst.dtype;
  const int others = run->nest->along_body ? run->rows : run->columns;
  char *lanes = lanes_of(run, r);
  if (r->find.row) return; /* place 0 begins */
  put_number(lanes, dtype, kiln_loop_first_f(e->inst.op), kiln_loop_first_i(e->inst.op, dtype));
  if (is_whole(run, e, r)) return;
  copy_of(run, r->size)(lanes, 1, lanes, 0, (r->scan.row ? 1 : KILN_REDUCE_LANES) * others);
}

static void run_reduction(const running *run, const eval_inst *e) {
  const eval_reduction *r = &run->nest->reductions[e->first];
  const char *x = run->pointers[e->operands[0]], *y = run->pointers[e->operands[1]];
  char *lanes = lanes_of(run, r);
  const int rows = e->iterations & EVAL_EACH_ROW ? run->rows : 1;
  const int columns = e->iterations & EVAL_EACH_COLUMN ? run->columns : 1;
  int64_t first = 0; /* iteration of those that are reduced */
  for (int d = e->depth - e->inst.index; d < e->depth; d++)
    first = first * run->extents[d] + run->counters[d];
  const int lane = (int)(first % KILN_REDUCE_LANES);
  if (!run->nest->along_body) {
    if (r->find.row)
      r->find.columns(lanes, places_of(run, r), x, first, rows, columns);
    else
      r->fns.columns(lanes, x, y, lane, rows, columns);
    return;
  }
  if (!r->find.row) {
    if (is_whole(run, e, r))
      r->fns.whole(run->pointers[2 * r->inst], lanes, x, y, rows, columns);
    else
      r->fns.rows(lanes, x, y, lane, rows, columns);
    return;
  }
  for (int i = 0; i < rows; i++, x += columns * r->size)
    r->find.row(lanes + i * r->size, places_of(run, r) + i, x, first, columns);
}

static void run_scan(const running *run, int i, const eval_inst *e) {
  const eval_reduction *r = &run->nest->reductions[e->first];
  const char *x = run->pointers[e->operands[0]];
  char *result = slot_of(run, 2 * i), *carried = lanes_of(run, r);
  const int rows = e->iterations & EVAL_EACH_ROW ? run->rows : 1;
  const int columns = e->iterations & EVAL_EACH_COLUMN ? run->columns : 1, step = columns * r->size;
  run->pointers[2 * i] = result;
  if (!run->nest->along_body) {
    r->scan.columns(carried, result, x, rows, columns);
    return;
  }
  for (int row = 0; row < rows; row++, x += step, result += step, carried += r->size)
    r->scan.row(carried, result, x, columns);
}

static void end_reduction(const running *run, const eval_reduction *r) {
  const eval_inst *e = &run->nest->body[r->inst];
  if (r->scan.row) return;
  char *result = run->pointers[2 * r->inst], *lanes = lanes_of(run, r);
  const eval_copy_fn copy = copy_of(run, e->size);
  if (r->find.row) {
    copy(result, 1, places_of(run, r), 1, count_of(run, e->values));
  } else if (is_whole(run, e, r)) {
    ; /* folded */
  } else if (run->nest->along_body) {
    r->fns.fold(result, lanes, run->rows);
  } else {
    /* A neutral lane changes no bit. */
    const int used = lanes_used(run, e), lane = run->columns * r->size;
    for (int half = KILN_REDUCE_LANES / 2; half > 0; half /= 2) {
      const int n = used - half < half ? used - half : half;
      if (n > 0) r->combine(lanes, lanes, lanes + half * lane, lanes, n * run->columns);
    }
    copy(result, 1, lanes, 1, run->columns);
  }
  if (e->spreads) spread(run, r->inst, e);
}

/* -- Loops -- */

static void run_range(running *run, int begin, int end);

static void run_loop(running *run, int open) {
  const eval_nest *nest = run->nest;
  const eval_inst *e = &nest->body[open];
  const int64_t extent = number_of(run, e->inst.offset);
  int *block = nest->along_body ? &run->columns : &run->rows;
  const int most = nest->along_body ? run->most_columns : run->most_rows, outside = *block;
  const int64_t step = e->innermost ? most : 1;
  run->extents[e->depth] = extent;
  for (int r = e->first; r >= 0; r = nest->reductions[r].next)
    begin_reduction(run, &nest->reductions[r]);
  for (int64_t i = 0; i < extent; i += step) {
    run->counters[e->depth] = i;
    if (e->innermost) *block = extent - i < step ? (int)(extent - i) : (int)step;
    run_range(run, open + 1, e->end);
  }
  *block = outside;
  for (int r = e->first; r >= 0; r = nest->reductions[r].next)
    end_reduction(run, &nest->reductions[r]);
}

static void run_range(running *run, int begin, int end) {
  for (int i = begin; i < end; i++) {
    const eval_inst *e = &run->nest->body[i];
    switch (e->kind) {
      case EVAL_CALL: run_call(run, i, e); break;
      case EVAL_LOAD: run_load(run, i, e); break;
      case EVAL_STORE: run_store(run, e); break;
      case EVAL_LEAF: run_leaf(run, i, e); break;
      case EVAL_INDEX: run_index(run, i, e); break;
      case EVAL_CHECK: run_check(run, i, e); break;
      case EVAL_GATHER: run_gather(run, i, e); break;
      case EVAL_SCAN: run_scan(run, i, e); break;
      case EVAL_REDUCE: run_reduction(run, e); continue; /* its value is behind the loop */
      case EVAL_OPEN: run_loop(run, i), i = e->end; continue;
      case EVAL_END: break;
    }
    if (e->spreads) spread(run, i, e);
  }
}

static void run_phase(running *run, int level) {
  run_range(run, run->nest->phases[level], run->nest->phases[level + 1]);
}

/* Blocks along the nest's loop `d`, or one for none: the phase of its level in each, and phase
 * `outside`, or none for -1, in front of those of other columns than the one before: its values are
 * spread over them. */
static void run_columns(running *run, int d, int outside) {
  const eval_nest *nest = run->nest;
  if (d < 0) {
    run_phase(run, nest->rank);
    return;
  }
  run->columns = 0;
  for (int64_t i = run->first[d]; i < run->last[d]; i += run->most_columns) {
    const int columns = least(run->last[d] - i, run->most_columns);
    const bool differs = columns != run->columns;
    run->columns = columns;
    if (differs && outside >= 0) run_phase(run, outside);
    run->counters[d] = i;
    run_phase(run, nest->rank);
  }
}

/* The blocks of the loops that are no outer ones. */
static void run_blocks(running *run) {
  const eval_nest *nest = run->nest;
  const int last = nest->rank - 1;
  run->rows = run->columns = 1;
  if (!nest->along_body && (nest->has_loops || nest->rank < 2)) {
    run_columns(run, last, -1);
    return;
  }
  const int d = nest->along_body ? last : last - 1;
  if (d < 0) {
    run_phase(run, nest->rank);
    return;
  }
  for (int64_t i = run->first[d]; i < run->last[d]; i += run->most_rows) {
    const int64_t left = run->last[d] - i;
    run->counters[d] = i;
    run->rows = left < run->most_rows ? (int)left : run->most_rows;
    if (nest->along_body)
      run_phase(run, nest->rank);
    else
      run_columns(run, last, d + 1);
  }
}

/* -- Nests -- */

static int64_t range_of(const running *run, int d) {
  return d < 0 ? 1 : run->last[d] - run->first[d];
}

/* Whether something in memory has its rows next to each other, and not its columns. */
static bool reads_transposed(const running *run) {
  const eval_nest *nest = run->nest;
  for (int i = 0; i < nest->count; i++) {
    const eval_inst *e = &nest->body[i];
    if ((e->kind == EVAL_LOAD || e->kind == EVAL_STORE) && e->row_loop >= 0 &&
        e->column_loop >= 0 && number_of(run, e->inst.strides[e->row_loop]) == 1 &&
        number_of(run, e->inst.strides[e->column_loop]) > 1)
      return true;
  }
  return false;
}

/* How many rows and columns a block has at most. */
static void choose_block(running *run) {
  const eval_nest *nest = run->nest;
  const int last = nest->rank - 1;
  run->whole = true;
  int64_t columns = range_of(run, last), rows = last > 0 ? range_of(run, last - 1) : 1;
  if (nest->along_body) {
    rows = nest->many_rows ? least(range_of(run, last), EVAL_ROWS) : 1;
    columns = 1;
    for (int i = 0, loops = 0; i < nest->count; i++) {
      const eval_inst *e = &nest->body[i];
      if (e->kind != EVAL_OPEN || !e->innermost) continue;
      const int64_t extent = number_of(run, e->inst.offset);
      run->whole &= loops++ == 0 || extent == columns;
      if (extent > columns) columns = extent;
    }
  } else if (nest->has_loops || reads_transposed(run)) {
    run->whole = columns <= EVAL_COLUMNS;
    run->most_columns = least(columns, EVAL_COLUMNS);
    run->most_rows = nest->block / run->most_columns;
    return;
  }
  run->most_columns = least(columns, nest->block);
  run->most_rows = run->whole ? least(rows, nest->block / run->most_columns) : 1;
  run->whole &= columns <= nest->block;
}

/* The part of a nest that lies in a box. Sizes of symbols may be 0 (x[:, 2:] of two columns): such
 * a nest has no element. */
static void run_nest(running *run, const int64_t *begin, const int64_t *end) {
  const eval_nest *nest = run->nest;
  for (int d = 0; d < nest->rank; d++) {
    run->first[d] = d < nest->axes ? begin[d] : 0;
    run->last[d] = d < nest->axes ? end[d] : number_of(run, nest->extents[d]);
    run->counters[d] = run->first[d];
    if (run->first[d] >= run->last[d]) return;
  }
  for (int i = 0; i < 2 * nest->count; i++)
    run->pointers[i] = nest->body[i / 2].steady ? NULL : slot_of(run, i);
  choose_block(run);
  for (int changed = 0;;) {
    for (int level = changed; level <= nest->outer && level < nest->rank; level++)
      run_phase(run, level);
    run_blocks(run);
    int d = nest->outer - 1;
    while (d >= 0 && ++run->counters[d] == run->last[d]) {
      run->counters[d] = run->first[d];
      d--;
    }
    if (d < 0) return;
    changed = d + 1;
  }
}

static const int64_t *find_symbols(const kiln_eval_program *program, const kiln_kernel_args *args) {
  if (!program->values) return NULL;
  int64_t *room = (int64_t *)(void *)((char *)args->scratch + program->values_at);
  int64_t *results = room + kiln_dim_program_room(program->values);
  /* Who calls has worked out the kernel's work, so that its sizes fit. */
  (void)kiln_dim_program_run(program->values, args->symbols, room, results);
  return results;
}

void kiln_eval_run(const kiln_kernel_args *args, const kiln_kernel_box *box) {
  const kiln_eval_program *program = args->closure;
  running run = {.args = args,
                 .program = program,
                 .symbols = find_symbols(program, args),
                 .pointers = args->scratch};
  int64_t base = 0;
  for (int n = 0; n < program->nest_count; n++) {
    const eval_nest *nest = run.nest = &program->nests[n];
    int64_t begin[KILN_KERNEL_AXES], end[KILN_KERNEL_AXES];
    bool empty = false;
    if (n > 0 && !nest->joins) base += number_of(&run, nest[-1].grid[0]);
    for (int axis = 0; axis < KILN_KERNEL_AXES; axis++) {
      const int64_t before = axis == 0 ? base : 0, extent = number_of(&run, nest->grid[axis]);
      begin[axis] = box->begin[axis] > before ? box->begin[axis] - before : 0;
      end[axis] = box->end[axis] - before < extent ? box->end[axis] - before : extent;
      empty |= begin[axis] >= end[axis];
    }
    if (!empty) run_nest(&run, begin, end);
  }
}
