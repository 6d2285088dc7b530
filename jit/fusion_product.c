/* fusion_product.c: which contractions are worth a kernel.
 *
 * The interpreter's products are as good as a kernel's where nothing is known of their factors. A
 * kernel gains where one factor is a weight, which is copied once into the order that the kernel
 * reads (runtime/pack.h): linear(x, self.weight) for x of several rows. Small ones are not worth
 * the compilation. */
#include "codegen/codegen.h"
#include "jit/fusion.h"

/* Views of weights are weights: linear is matmul(x, w.t()) in other words. */
static bool is_weight(const kiln_ir_value *v) {
  while (!kiln_ir_value_is_weight(v) && v->node->op && v->node->op->cost == KILN_COST_view &&
         v->node->input_count > 0)
    v = kiln_node_input(v->node, 0);
  return kiln_ir_value_is_weight(v);
}

/* Multiplications from which a kernel is worth compiling: about a microsecond. */
enum { WORTH_PRODUCTS = 1 << 14, SYMBOL = 16 /* what one stands for */ };

static double products_of(const kiln_node *n, int first) {
  const kiln_tensor_detail *out = n->outputs[0]->type->detail;
  const kiln_tensor_detail *x = kiln_node_input(n, first)->type->detail;
  const kiln_dim inner = x->sizes[x->rank - 1];
  double products = kiln_dim_is_number(inner) ? (double)inner : (double)SYMBOL;
  for (int d = 0; d < out->rank; d++)
    products *= kiln_dim_is_number(out->sizes[d]) ? (double)out->sizes[d] : (double)SYMBOL;
  return products;
}

/* One row, whatever its batches. */
static bool has_one_row(const kiln_tensor_detail *t) {
  for (int d = 0; d < t->rank - 1; d++)
    if (t->sizes[d] != 1) return false;
  return true;
}

/* Products of an element of a convolution up to which a kernel gains: what stands behind it in the
 * group saves a way through memory, as much as some twenty products take. The interpreter sums more
 * of them faster: it copies what a tile reads into the order of the registers. Of one channel it is
 * faster too: a kernel's image is copied with its border before, a way through memory. */
enum { MOST_PRODUCTS = 128 };

static bool conv_gains(const kiln_node *n) {
  const kiln_tensor_detail *out = n->outputs[0]->type->detail;
  const kiln_dim channels = kiln_node_input(n, 1)->type->detail->sizes[1];
  double elements = 1;
  uint64_t flops;
  if (channels == 1 || !is_weight(kiln_node_input(n, 1)) || !n->op->flops ||
      !n->op->flops(n, &flops))
    return false;
  for (int d = 0; d < out->rank; d++) {
    if (!kiln_dim_is_number(out->sizes[d])) return false;
    elements *= (double)out->sizes[d];
  }
  return flops / 2 >= WORTH_PRODUCTS && (double)flops / 2 <= MOST_PRODUCTS * elements;
}

kiln_reason kiln__fusion_check_product(const kiln_fusion *f, const kiln_node *n) {
  const kiln_flags *flags = &f->pass->env->flags;
  int first = 0;
  if (flags->exact || flags->codegen != (int)KILN_BACKEND_LLVM ||
      flags->compat == KILN_COMPAT_TORCH)
    return KILN_REASON_product_by_llvm;
  if (kiln_codegen_convolves(n->op))
    return conv_gains(n) ? KILN_REASON_none : KILN_REASON_product_by_kernel;
  while (!kiln_type_is_tensor(kiln_node_input(n, first)->type)) first++;
  if (kiln_node_is(n, KILN_OP_addmm) || kiln_node_is(n, KILN_OP_baddbmm)) first++;
  const bool gains = is_weight(kiln_node_input(n, first + 1)) &&
                     !has_one_row(kiln_node_input(n, first)->type->detail) &&
                     products_of(n, first) >= WORTH_PRODUCTS;
  return gains ? KILN_REASON_none : KILN_REASON_product_by_kernel;
}
