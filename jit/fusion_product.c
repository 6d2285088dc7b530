/* fusion_product.c: which contractions are worth a kernel.
 *
 * The interpreter's products are as good as a kernel's where nothing is known of their factors. A
 * kernel gains where one factor is a weight, which is copied once into the order that the kernel
 * reads (runtime/pack.h): linear(x, self.weight) for x of several rows. */
#include "codegen/codegen.h"
#include "jit/fusion.h"

/* Views of weights are weights: linear is matmul(x, w.t()) in other words. */
static bool is_weight(const kiln_ir_value *v) {
  while (!kiln_ir_value_is_weight(v) && v->node->op && v->node->op->cost == KILN_COST_view &&
         v->node->input_count > 0)
    v = kiln_node_input(v->node, 0);
  return kiln_ir_value_is_weight(v);
}

/* One row, whatever its batches. */
static bool has_one_row(const kiln_tensor_detail *t) {
  for (int d = 0; d < t->rank - 1; d++)
    if (t->sizes[d] != 1) return false;
  return true;
}

kiln_reason kiln__fusion_check_product(const kiln_fusion *f, const kiln_node *n) {
  const kiln_flags *flags = &f->pass->env->flags;
  int first = 0;
  if (flags->exact || flags->codegen != (int)KILN_BACKEND_LLVM || flags->compat == KILN_COMPAT_TORCH)
    return KILN_REASON_product_by_llvm;
  while (!kiln_type_is_tensor(kiln_node_input(n, first)->type)) first++;
  if (kiln_node_is(n, KILN_OP_addmm) || kiln_node_is(n, KILN_OP_baddbmm)) first++;
  const bool gains = is_weight(kiln_node_input(n, first + 1)) &&
                     !has_one_row(kiln_node_input(n, first)->type->detail);
  return gains ? KILN_REASON_none : KILN_REASON_product_by_kernel;
}
