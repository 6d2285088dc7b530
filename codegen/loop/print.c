/* print.c: loop IR as canonical text. Two kernels that print alike are the same kernel.
 *
 *   kernel {
 *     in b0: f32[64, 8] [8, 1]
 *     out b1: f32[64, 8] [8, 1]
 *     scalar x0: f64
 *     nest [64, 8] {
 *       %0 = load f32 b0 + 0 [8, 1]
 *       %1 = const f32 0.5
 *       %2 = add f32 %0, %1
 *       store f32 b1 + 0 [8, 1], %2
 *     }
 *   }
 *
 * `where s0 <= 64` in front of all says what holds of symbols whenever the kernel runs.
 *
 * Behind outputs stand local buffers, `local b2: f32[8] [1]`; a loop in a body is
 *
 *       reduce 8 {
 *         %0 = load f32 b0 + 0 [8, 1]
 *         %1 = sum f32 %0 over 1
 *       }
 *
 * An element at a place that data tells is `%2 = gather f32 b1 + 0 [0, 1] at %1 * 8`, which reads
 * b1[8 * %1 + j], where `%1 = check i64 %0 below 64`.
 *
 * Stores, loops and their ends are counted with the values: %3 comes behind that one. */
#include <math.h>

#include "codegen/loop/loop.h"

const char *kiln_loop_dtype_name(kiln_dtype dtype) {
  switch (dtype) {
#define CASE(name, number, size, storage, python, short_name) \
  case KILN_DTYPE_##name: return #short_name;
    KILN_DTYPE_LIST(CASE)
#undef CASE
    default: return "?";
  }
}

static void print_dims(kiln_text *text, const kiln_dims *table, int count, const kiln_dim *dims) {
  kiln_text_putc(text, '[');
  for (int i = 0; i < count; i++) {
    if (i) kiln_text_puts(text, ", ");
    kiln_dim_print(text, table, dims[i]);
  }
  kiln_text_putc(text, ']');
}

static void print_constant(kiln_text *text, const kiln_loop_inst *inst) {
  char digits[40];
  if (kiln_loop_class(inst->dtype) != KILN_LOOP_CLASS_F) {
    kiln_text_printf(text, " %lld", (long long)inst->imm.i);
  } else if (isnan(inst->imm.f)) {
    kiln_text_puts(text, " nan");
  } else if (isinf(inst->imm.f)) {
    kiln_text_puts(text, inst->imm.f < 0 ? " -inf" : " inf");
  } else {
    kiln_format_double(inst->imm.f, digits);
    kiln_text_printf(text, " %s", digits);
  }
}

static void print_map(kiln_text *text, const kiln_loop_fn *fn, const kiln_loop_inst *inst,
                      int depth) {
  if (kiln_loop_is_access(inst)) kiln_text_printf(text, " b%d +", inst->index);
  kiln_text_putc(text, ' ');
  kiln_dim_print(text, fn->dims, inst->offset);
  kiln_text_putc(text, ' ');
  print_dims(text, fn->dims, depth, inst->strides);
  if (inst->op == KILN_LOOP_store) kiln_text_putc(text, ',');
}

/* `open`: loops of the body around it, of `nest`'s around all. */
static void print_inst(kiln_text *text, const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                       int number, int open) {
  const kiln_loop_inst *inst = &nest->body.data[number];
  const kiln_loop_op_info *info = &kiln_loop_ops[inst->op];
  kiln_text_indent(text, 4 + 2 * open);
  if (info->rule == KILN_LOOP_RULE_END) {
    kiln_text_puts(text, "}\n");
    return;
  }
  if (info->rule == KILN_LOOP_RULE_OPEN) {
    kiln_text_printf(text, "%s ", info->name);
    kiln_dim_print(text, fn->dims, inst->offset);
    kiln_text_puts(text, " {\n");
    return;
  }
  if (inst->op != KILN_LOOP_store) kiln_text_printf(text, "%%%d = ", number);
  kiln_text_printf(text, "%s %s", info->name, kiln_loop_dtype_name(inst->dtype));
  if (kiln_loop_has_map(inst)) print_map(text, fn, inst, nest->rank + open);
  if (inst->op == KILN_LOOP_const) print_constant(text, inst);
  if (inst->op == KILN_LOOP_scalar) kiln_text_printf(text, " x%d", inst->index);
  if (inst->op == KILN_LOOP_dim) {
    kiln_text_putc(text, ' ');
    kiln_dim_print(text, fn->dims, inst->offset);
  }
  if (inst->op == KILN_LOOP_gather) kiln_text_puts(text, " at");
  for (int a = 0; a < info->arity; a++)
    kiln_text_printf(text, "%s%%%d", a ? ", " : " ", inst->args[a]);
  if (inst->op == KILN_LOOP_gather || inst->op == KILN_LOOP_check) {
    kiln_text_puts(text, inst->op == KILN_LOOP_gather ? " * " : " below ");
    kiln_dim_print(text, fn->dims, inst->op == KILN_LOOP_gather ? inst->imm.step : inst->offset);
  }
  if (kiln_loop_reduces(inst->op)) kiln_text_printf(text, " over %d", inst->index);
  kiln_text_putc(text, '\n');
}

static void print_nest(kiln_text *text, const kiln_loop_fn *fn, const kiln_loop_nest *nest) {
  kiln_text_puts(text, "  nest ");
  print_dims(text, fn->dims, nest->rank, nest->extents);
  kiln_text_puts(text, " {\n");
  for (int i = 0, open = 0; i < nest->body.count; i++) {
    const kiln_loop_rule rule = kiln_loop_ops[nest->body.data[i].op].rule;
    open -= rule == KILN_LOOP_RULE_END;
    print_inst(text, fn, nest, i, open);
    open += rule == KILN_LOOP_RULE_OPEN;
  }
  kiln_text_puts(text, "  }\n");
}

static void print_copy(kiln_text *text, const kiln_loop_fn *fn, const kiln_loop_buffer *b) {
  const kiln_loop_copy *c = b->copy;
  const struct {
    const char *word;
    const kiln_dim *dims;
  } lists[] = {{" before ", c->before}, {" flipped ", c->flipped}};
  kiln_text_puts(text, " copy of ");
  print_dims(text, fn->dims, b->rank, c->sizes);
  kiln_text_putc(text, ' ');
  print_dims(text, fn->dims, b->rank, c->strides);
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    bool any = false;
    for (int d = 0; d < b->rank; d++) any |= lists[i].dims[d] != 0;
    if (!any) continue;
    kiln_text_puts(text, lists[i].word);
    print_dims(text, fn->dims, b->rank, lists[i].dims);
  }
  if (c->from) kiln_text_printf(text, " from %lld", (long long)c->from);
}

kiln_str kiln_loop_print(const kiln_loop_fn *fn, kiln_arena *arena) {
  kiln_text text = kiln_text_in(arena);
  kiln_text_puts(&text, "kernel {\n");
  for (int i = 0; i < kiln_dims_assumed(fn->dims); i++) {
    kiln_text_puts(&text, "  where ");
    kiln_dim_order_print(&text, fn->dims, kiln_dims_assumed_at(fn->dims, i));
    kiln_text_putc(&text, '\n');
  }
  for (int i = 0; i < fn->buffers.count; i++) {
    const kiln_loop_buffer *b = &fn->buffers.data[i];
    const int output = i - fn->input_count;
    const char *kind = output < 0 ? "in" : output < fn->output_count ? "out" : "local";
    kiln_text_printf(&text, "  %s b%d: %s", kind, i, kiln_loop_dtype_name(b->dtype));
    print_dims(&text, fn->dims, b->rank, b->sizes);
    kiln_text_putc(&text, ' ');
    print_dims(&text, fn->dims, b->rank, b->strides);
    if (b->copy) print_copy(&text, fn, b);
    kiln_text_putc(&text, '\n');
  }
  for (int i = 0; i < fn->scalars.count; i++)
    kiln_text_printf(&text, "  scalar x%d: %s\n", i, kiln_loop_dtype_name(fn->scalars.data[i]));
  for (int n = 0; n < fn->nests.count; n++) print_nest(&text, fn, fn->nests.data[n]);
  kiln_text_puts(&text, "}\n");
  return kiln_text_str(&text);
}
