/* parse.c: the parser of loop IR's text (print.c shows it). Blanks do not matter; ';' starts a
 * comment. Instruction numbers must be those that printing would give. */
#include "base/cursor.h"
#include "codegen/loop/loop.h"

typedef struct parser {
  kiln_cursor c;
  kiln_loop_fn *fn;
} parser;

#define FAIL(p, ...)                                                                          \
  return kiln_status_note(KILN_ERROR(KILN_INVALID_ARGUMENT, __VA_ARGS__), "loop IR, line %d", \
                          line_of(p))

static int line_of(const parser *p) {
  int line = 1;
  for (const char *at = p->c.begin; at < p->c.at; at++) line += *at == '\n';
  return line;
}

static bool is_word_char(char c) { return kiln_is_word(c) || c == '.' || c == '-' || c == '+'; }

/* A word (name or number), or an empty view before punctuation. */
static kiln_str next_word(parser *p) {
  kiln_cursor_skip(&p->c);
  return kiln_cursor_take(&p->c, is_word_char);
}

static kiln_status *expect(parser *p, char c) {
  kiln_cursor_skip(&p->c);
  if (kiln_cursor_peek(&p->c) != c) FAIL(p, "'%c' was expected", c);
  p->c.at++;
  return NULL;
}

static kiln_status *parse_int(parser *p, int64_t *out) {
  kiln_str word = next_word(p);
  if (!kiln_str_parse_i64(word, out))
    FAIL(p, "'" KILN_STR_FMT "' is not an integer", KILN_STR_ARG(word));
  return NULL;
}

/* A number after a one-letter prefix, as in b3, x0, %7. */
static kiln_status *parse_number_of(parser *p, char prefix, int count, int *out) {
  int64_t value;
  KILN_TRY(expect(p, prefix));
  KILN_TRY(parse_int(p, &value));
  if (value < 0 || value >= count) FAIL(p, "%c%lld does not exist", prefix, (long long)value);
  *out = (int)value;
  return NULL;
}

/* What is negative is no dimension: the verifier says where. */
static kiln_status *parse_dim(parser *p, kiln_dim *out) {
  kiln_cursor_skip(&p->c);
  kiln_str rest = kiln_cursor_rest(&p->c);
  const char *begin = rest.data;
  int64_t number;
  if (kiln_str_parse_i64(next_word(p), &number) && number < 0) {
    *out = KILN_DIM_UNKNOWN;
    return NULL;
  }
  if (!kiln_dim_parse(p->fn->dims, &rest, out)) {
    FAIL(p, "'" KILN_STR_FMT "' is no dimension",
         KILN_STR_ARG(kiln_str_make(begin, (size_t)(p->c.at - begin))));
  }
  p->c.at = p->c.end - rest.len;
  return NULL;
}

static kiln_status *parse_order(parser *p) {
  kiln_str rest = kiln_cursor_rest(&p->c);
  kiln_dim_order order;
  if (!kiln_dim_order_parse(p->fn->dims, &rest, &order)) FAIL(p, "s0 <= 64 was expected");
  if (!kiln_dims_assume(p->fn->dims, order)) FAIL(p, "too much is said of symbols");
  p->c.at = p->c.end - rest.len;
  return NULL;
}

static kiln_status *parse_dims(parser *p, int *count, kiln_dim *dims) {
  KILN_TRY(expect(p, '['));
  for (*count = 0; !kiln_cursor_accept(&p->c, "]"); ++*count) {
    if (*count) KILN_TRY(expect(p, ','));
    if (*count == KILN_LOOP_MAX_RANK) FAIL(p, "more than %d dimensions", KILN_LOOP_MAX_RANK);
    KILN_TRY(parse_dim(p, &dims[*count]));
  }
  return NULL;
}

static kiln_status *parse_dtype(parser *p, kiln_dtype *out) {
  kiln_str word = next_word(p);
  for (int dtype = 0; dtype < KILN_DTYPE__COUNT; dtype++) {
    if (!kiln_str_is(word, kiln_loop_dtype_name((kiln_dtype)dtype))) continue;
    *out = (kiln_dtype)dtype;
    return NULL;
  }
  FAIL(p, "'" KILN_STR_FMT "' is not a type", KILN_STR_ARG(word));
}

typedef enum buffer_kind { INPUT, OUTPUT, LOCAL } buffer_kind;

/* What stands behind an input's `copy of`. */
static kiln_status *parse_copy(parser *p, int rank, kiln_loop_copy *copy) {
  int count;
  KILN_TRY(parse_dims(p, &count, copy->sizes));
  if (count != rank) FAIL(p, "a copy of %d dimensions", count);
  KILN_TRY(parse_dims(p, &count, copy->strides));
  while (count == rank) {
    if (kiln_cursor_accept(&p->c, "from")) return parse_int(p, &copy->from);
    kiln_dim *dims = kiln_cursor_accept(&p->c, "before")    ? copy->before
                     : kiln_cursor_accept(&p->c, "flipped") ? copy->flipped
                                                            : NULL;
    if (!dims) return NULL;
    KILN_TRY(parse_dims(p, &count, dims));
  }
  FAIL(p, "%d numbers for a copy of %d dimensions", count, rank);
}

static kiln_status *parse_buffer(parser *p, buffer_kind kind) {
  int rank, stride_count, number;
  kiln_dim sizes[KILN_LOOP_MAX_RANK], strides[KILN_LOOP_MAX_RANK];
  kiln_dtype dtype;
  kiln_loop_fn *fn = p->fn;
  KILN_TRY(parse_number_of(p, 'b', fn->buffers.count + 1, &number));
  KILN_TRY(expect(p, ':'));
  KILN_TRY(parse_dtype(p, &dtype));
  KILN_TRY(parse_dims(p, &rank, sizes));
  KILN_TRY(parse_dims(p, &stride_count, strides));
  if (stride_count != rank) FAIL(p, "%d sizes, but %d strides", rank, stride_count);
  if (number != fn->buffers.count) FAIL(p, "buffer b%d is out of order", number);
  const bool has_local = fn->input_count + fn->output_count != number;
  if (kind == INPUT && fn->input_count != number) FAIL(p, "an input after an output");
  if (kind == OUTPUT && has_local) FAIL(p, "an output after a local buffer");
  (kind == INPUT    ? kiln_loop_add_input
   : kind == OUTPUT ? kiln_loop_add_output
                    : kiln_loop_add_local)(fn, dtype, rank, sizes, strides);
  if (!kiln_cursor_accept(&p->c, "copy of")) return NULL;
  if (kind != INPUT) FAIL(p, "b%d is no input, but a copy", number);
  kiln_loop_copy *copy = KILN_NEW(fn->arena, kiln_loop_copy);
  fn->buffers.data[number].copy = copy;
  return parse_copy(p, rank, copy);
}

static kiln_status *parse_scalar(parser *p) {
  int number;
  kiln_dtype dtype;
  KILN_TRY(parse_number_of(p, 'x', p->fn->scalars.count + 1, &number));
  KILN_TRY(expect(p, ':'));
  KILN_TRY(parse_dtype(p, &dtype));
  if (number != p->fn->scalars.count) FAIL(p, "scalar x%d is out of order", number);
  kiln_loop_add_scalar(p->fn, dtype);
  return NULL;
}

static kiln_status *parse_constant(parser *p, kiln_loop_inst *inst) {
  kiln_str word = next_word(p);
  bool ok;
  if (kiln_loop_class(inst->dtype) == KILN_LOOP_CLASS_F) {
    ok = true;
    if (kiln_str_is(word, "nan")) {
      inst->imm.f = __builtin_nan("");
    } else if (kiln_str_is(word, "inf") || kiln_str_is(word, "-inf")) {
      inst->imm.f = word.len == 3 ? __builtin_inf() : -__builtin_inf();
    } else {
      ok = kiln_str_parse_f64(word, &inst->imm.f);
    }
  } else {
    ok = kiln_str_parse_i64(word, &inst->imm.i);
  }
  if (!ok) FAIL(p, "'" KILN_STR_FMT "' is not a constant of its type", KILN_STR_ARG(word));
  return NULL;
}

static kiln_status *parse_inst_rest(parser *p, kiln_loop_nest *nest, kiln_loop_inst *inst) {
  const kiln_loop_op_info *info = &kiln_loop_ops[inst->op];
  KILN_TRY(parse_dtype(p, &inst->dtype));
  if (kiln_loop_is_access(inst)) {
    KILN_TRY(parse_number_of(p, 'b', p->fn->buffers.count, &inst->index));
    kiln_str plus = next_word(p);
    if (!kiln_str_is(plus, "+")) FAIL(p, "'+' and the offset were expected");
  }
  if (kiln_loop_has_map(inst)) {
    int count;
    KILN_TRY(parse_dim(p, &inst->offset));
    KILN_TRY(parse_dims(p, &count, inst->strides));
    const int depth = nest->rank + nest->open;
    if (count != depth) FAIL(p, "%d strides in %d loops", count, depth);
    if (inst->op == KILN_LOOP_store) KILN_TRY(expect(p, ','));
  }
  if (inst->op == KILN_LOOP_const) KILN_TRY(parse_constant(p, inst));
  if (inst->op == KILN_LOOP_dim) KILN_TRY(parse_dim(p, &inst->offset));
  if (inst->op == KILN_LOOP_scalar)
    KILN_TRY(parse_number_of(p, 'x', p->fn->scalars.count, &inst->index));
  if (inst->op == KILN_LOOP_gather && !kiln_cursor_accept(&p->c, "at")) {
    FAIL(p, "'at' was expected");
  }
  for (int a = 0; a < info->arity; a++) {
    if (a) KILN_TRY(expect(p, ','));
    KILN_TRY(parse_number_of(p, '%', nest->body.count, &inst->args[a]));
  }
  if (inst->op == KILN_LOOP_gather) {
    KILN_TRY(expect(p, '*'));
    KILN_TRY(parse_dim(p, &inst->imm.step));
  }
  if (inst->op == KILN_LOOP_check) {
    if (!kiln_cursor_accept(&p->c, "below")) FAIL(p, "'below' was expected");
    KILN_TRY(parse_dim(p, &inst->offset));
  }
  if (kiln_loop_reduces(inst->op)) {
    int64_t loops;
    if (!kiln_cursor_accept(&p->c, "over")) FAIL(p, "'over' was expected");
    KILN_TRY(parse_int(p, &loops));
    if (loops < 1 || loops > nest->open)
      FAIL(p, "over %lld of %d loops", (long long)loops, nest->open);
    inst->index = (int)loops;
  }
  return NULL;
}

static kiln_status *parse_open(parser *p, kiln_loop_nest *nest, kiln_loop_opcode kind) {
  kiln_dim extent;
  if (nest->rank + nest->open == KILN_LOOP_MAX_RANK) {
    FAIL(p, "more than %d loops", KILN_LOOP_MAX_RANK);
  }
  KILN_TRY(parse_dim(p, &extent));
  KILN_TRY(expect(p, '{'));
  kiln_loop_open(p->fn, nest, kind, extent);
  return NULL;
}

static kiln_status *parse_inst(parser *p, kiln_loop_nest *nest) {
  kiln_loop_inst inst = {.args = {-1, -1, -1}, .index = -1};
  int number;
  bool has_result = false;
  kiln_cursor_skip(&p->c);
  if (kiln_cursor_peek(&p->c) == '%') {
    has_result = true;
    KILN_TRY(parse_number_of(p, '%', nest->body.count + 1, &number));
    if (number != nest->body.count) FAIL(p, "%%%d is out of order", number);
    KILN_TRY(expect(p, '='));
  }
  kiln_str word = next_word(p);
  int op = 0;
  while (op < KILN_LOOP__COUNT && !kiln_str_is(word, kiln_loop_ops[op].name)) op++;
  if (op == KILN_LOOP__COUNT) FAIL(p, "'" KILN_STR_FMT "' is not an opcode", KILN_STR_ARG(word));
  inst.op = (kiln_loop_opcode)op;
  if (kiln_loop_ops[op].rule == KILN_LOOP_RULE_END) FAIL(p, "a loop ends with '}'");
  if (has_result != kiln_loop_has_result(inst.op)) {
    FAIL(p, "stores and loops have no result, all others have one");
  }
  if (nest->body.count >= KILN_LOOP_MAX_INSTS) FAIL(p, "too many instructions");
  if (kiln_loop_ops[op].rule == KILN_LOOP_RULE_OPEN) return parse_open(p, nest, inst.op);
  KILN_TRY(parse_inst_rest(p, nest, &inst));
  kiln_vec_push(p->fn->arena, &nest->body, inst);
  return NULL;
}

static kiln_status *parse_nest(parser *p) {
  int rank;
  kiln_dim extents[KILN_LOOP_MAX_RANK];
  KILN_TRY(parse_dims(p, &rank, extents));
  kiln_loop_nest *nest = kiln_loop_add_nest(p->fn, rank, extents);
  KILN_TRY(expect(p, '{'));
  for (;;) {
    if (!kiln_cursor_accept(&p->c, "}")) {
      KILN_TRY(parse_inst(p, nest));
    } else if (nest->open > 0) {
      kiln_loop_end(p->fn, nest);
    } else {
      return NULL;
    }
  }
}

kiln_status *kiln_loop_parse(kiln_str text, kiln_arena *arena, kiln_loop_fn **out_fn) {
  parser p = {.c = kiln_cursor_of(text), .fn = kiln_loop_create(arena)};
  p.c.comment = ';';
  kiln_str word = next_word(&p);
  if (!kiln_str_is(word, "kernel")) FAIL(&p, "'kernel' was expected");
  KILN_TRY(expect(&p, '{'));
  while (!kiln_cursor_accept(&p.c, "}")) {
    word = next_word(&p);
    if (kiln_str_is(word, "where")) {
      KILN_TRY(parse_order(&p));
    } else if (kiln_str_is(word, "in")) {
      KILN_TRY(parse_buffer(&p, INPUT));
    } else if (kiln_str_is(word, "out")) {
      KILN_TRY(parse_buffer(&p, OUTPUT));
    } else if (kiln_str_is(word, "local")) {
      KILN_TRY(parse_buffer(&p, LOCAL));
    } else if (kiln_str_is(word, "scalar")) {
      KILN_TRY(parse_scalar(&p));
    } else if (kiln_str_is(word, "nest")) {
      KILN_TRY(parse_nest(&p));
    } else {
      FAIL(&p, "where, in, out, local, scalar or nest was expected, not '" KILN_STR_FMT "'",
           KILN_STR_ARG(word));
    }
  }
  kiln_cursor_skip(&p.c);
  if (p.c.at != p.c.end) FAIL(&p, "text after the kernel");
  kiln_status *status = kiln_loop_verify(p.fn);
  if (status) {
    kiln_status *wrong =
        KILN_ERROR(KILN_INVALID_ARGUMENT, "loop IR: %s", kiln_status_message(status));
    kiln_status_destroy(status);
    return wrong;
  }
  *out_fn = p.fn;
  return NULL;
}
