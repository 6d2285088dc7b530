/* fusion_product.c: which contractions are worth a kernel.
 *
 * The interpreter's products are as good as a kernel's where nothing is known of their factors. A
 * kernel gains where one factor is a weight, which is copied once into the order that the kernel
 * reads (runtime/pack.h): linear(x, self.weight) for x of several rows; of one row where the copy
 * has half the bytes (the flag matmul). Small ones are not worth the compilation.
 *
 * Two products with the rows of one going into the other, softmax(q k^T) v, gain together: the rows
 * stay in a cache. */

#include "codegen/codegen.h"
#include "jit/convolution.h"
#include "jit/fusion.h"
#include "jit/heavy.h"
#include "jit/kept.h"
#include "jit/layouts.h"

/* Multiplications from which a kernel is worth compiling: about a microsecond. */
enum { WORTH_PRODUCTS = 1 << 14, SYMBOL = 16 /* what one stands for */ };

static double products_of(const kiln_node *n, const kiln_tensor_detail *x, uint64_t summed) {
  const kiln_tensor_detail *out = n->outputs[0]->type->detail;
  double products = 1;
  for (int d = 0; d < x->rank; d++)
    if (summed >> d & 1) products *= (double)kiln_dim_or(x->sizes[d], SYMBOL);
  for (int d = 0; d < out->rank; d++) products *= (double)kiln_dim_or(out->sizes[d], SYMBOL);
  return products;
}

/* One row, whatever its batches. */
static bool has_one_row(const kiln_tensor_detail *t, uint64_t summed) {
  for (int d = 0; d < t->rank; d++)
    if (!(summed >> d & 1) && t->sizes[d] != 1) return false;
  return true;
}

/* Products of an element of a convolution up to which a kernel gains: what stands behind it in the
 * group saves a way through memory, as much as some twenty products take. The interpreter sums more
 * of them faster: it copies what a tile reads into the order of the registers. Of one channel it is
 * faster too: a kernel's image is copied with its border before, a way through memory. Of a strided
 * one a tile's vectors are shuffled for each few outputs, the interpreter's once for all. Of a
 * transposed one residues by the stride lie apart, in elements where channels are not last. */
enum { MOST_PRODUCTS = 128, MOST_STRIDED_OUTPUTS = 32 };

static bool is_strided(const kiln_tensor_detail *x, const kiln_tensor_detail *out) {
  const kiln_dim from = x->sizes[x->rank - 1], to = out->sizes[out->rank - 1];
  return kiln_dim_is_number(from) && kiln_dim_is_number(to) && 2 * from > 3 * to;
}

/* Outputs of a group from which vectors of channels are filled well. */
enum { LEAST_OUTPUTS = 8 };

/* Whether a transposed one's windows read few zeros: of 4 x 4 taps at 1 pixel all but one are. */
static bool reads_pixels(const kiln_node *n, const kiln_tensor_detail *in,
                         const kiln_tensor_detail *to) {
  static const double MOST = 1.6; /* windows of a residue by the stride for one pixel */
  double windows = 1;
  for (int d = 2; d < to->rank; d++) {
    const double stride = (double)kiln__convolution_number_at(n, KILN__CONVOLUTION_STRIDE, d - 2);
    windows *= (double)to->sizes[d] / ((double)in->sizes[d] * stride);
  }
  return windows <= MOST;
}

/* A window over all of an image: a vector times a matrix of weights, which lie well as they are. */
static bool is_whole_image(const kiln_tensor_detail *to, const kiln_tensor_detail *of) {
  return to->sizes[0] == 1 && of->sizes[1] > 1 && kiln__is_of_pixels(to) && !kiln__is_of_pixels(of);
}

/* Whether its result may have channels last in memory (layouts.c): a matrix product of pixels and
 * outputs then, which is as fast for any image and window. */
static bool may_lie_last(const kiln_fusion *f, const kiln_node *n) {
  const kiln_ir_value *x = kiln_node_input(n, 0), *w = kiln_node_input(n, 1), *y = n->outputs[0];
  if (!f->pass->env->flags.layouts || !kiln_type_is_complete_tensor(x->type) ||
      !kiln_type_is_complete_tensor(w->type) || !kiln_type_is_complete_tensor(y->type))
    return false;
  const kiln_tensor_detail *in = x->type->detail, *to = y->type->detail, *of = w->type->detail;
  if (!kiln__convolution_has_batch(n)) return false;
  if (kiln__convolution_is_transposed(n))
    return of->sizes[1] >= LEAST_OUTPUTS && reads_pixels(n, in, to);
  if (is_whole_image(to, of)) return false;
  const int64_t groups = in->sizes[1] / of->sizes[1];
  if (groups > 1 && of->sizes[1] == 1) return to->sizes[1] == groups; /* a vector of channels */
  return groups > 0 &&
         (to->sizes[1] / groups >= LEAST_OUTPUTS || kiln__heavy_takes_groups(f->pass->env, n));
}

static bool conv_gains(const kiln_fusion *f, const kiln_node *n) {
  const kiln_tensor_detail *out = n->outputs[0]->type->detail;
  const kiln_tensor_detail *w = kiln_node_input(n, 1)->type->detail;
  const kiln_dim outputs = out->sizes[out->rank - w->rank + 1];
  double products = 1, elements = 1;
  if (!kiln__is_made_of_weights(kiln_node_input(n, 1))) return false;
  const bool last = may_lie_last(f, n);
  if ((w->sizes[1] == 1 || kiln__convolution_is_transposed(n)) && !last) return false;
  f->nodes[n->mark - 1].lies_last = last;
  if (!last && outputs > MOST_STRIDED_OUTPUTS &&
      is_strided(kiln_node_input(n, 0)->type->detail, out))
    return false;
  for (int d = 0; d < w->rank; d++) products *= (double)w->sizes[d];
  for (int d = 0; d < out->rank; d++) elements *= (double)kiln_dim_or(out->sizes[d], SYMBOL);
  products /= (double)outputs;
  return (last || products <= (double)MOST_PRODUCTS) &&
         products * elements >= (double)WORTH_PRODUCTS;
}

/* -- Two products -- */

/* A tensor that its only reader reads, or a list that its only reader does: that one. NULL: there
 * are more. */
static kiln_node *reader_of(const kiln_ir_value *v) {
  if (v->use_count != 1) return NULL;
  kiln_node *user = v->uses->user;
  if (!kiln_node_is(user, KILN_OP_prim_ListConstruct)) return user;
  return user->outputs[0]->use_count == 1 ? user->outputs[0]->uses->user : NULL;
}

/* Whether it makes rows of rows: element by element, or as softmax does along the last dimension.
 */
static bool keeps_rows(const kiln_node *n, const kiln_tensor_detail *space) {
  uint64_t mask;
  if (space->rank < 2 || !n->op || !kiln_codegen_has_lowering(n->op) || n->output_count != 1)
    return false;
  const bool reduces = kiln_codegen_reduces(n, &mask);
  if (reduces ? mask != UINT64_C(1) << (space->rank - 1) : n->op->cost != KILN_COST_pointwise)
    return false;
  return kiln_tensor_detail_same_sizes(n->outputs[0]->type->detail, space);
}

enum { LEAST_ROWS = 12 }; /* fewer do not pay for the copies of panels */

static bool has_rows(const kiln_tensor_detail *t) {
  const kiln_dim rows = t->rank >= 2 ? t->sizes[t->rank - 2] : 1;
  return !kiln_dim_is_number(rows) || rows >= LEAST_ROWS;
}

/* Both products by itself. */
static bool is_attention(const kiln_node *n) {
  return kiln_node_is(n, KILN_OP_scaled_dot_product_attention);
}

/* The second product, whose first factor is made of the rows of n alone; NULL: there is none. */
static const kiln_node *second_of(const kiln_node *n) {
  const kiln_ir_value *v = n->outputs[0];
  const kiln_tensor_detail *space = v->type->detail;
  if (!has_rows(space)) return NULL;
  for (;;) {
    kiln_node *user = reader_of(v);
    if (!user || user->block != n->block) return NULL;
    if (kiln_codegen_contracts(user->op)) {
      kiln_factors of;
      return kiln_codegen_factors(user, &of) && of.values[0] == v ? user : NULL;
    }
    if (!keeps_rows(user, space)) return NULL;
    v = user->outputs[0];
  }
}

static bool has_weight(const kiln_node *n) {
  kiln_factors of;
  return kiln_codegen_factors(n, &of) && kiln__is_made_of_weights(of.values[1]);
}

/* The two, if n is the first of them; it comes first. A product with a weight gains more alone. */
static void find_second(const kiln_fusion *f, const kiln_node *n) {
  kiln_fusion_node *node = &f->nodes[n->mark - 1];
  const kiln_node *second = node->chain == KILN_FUSION_ALONE ? second_of(n) : NULL;
  if (!second || has_weight(n) || has_weight(second)) return;
  node->chain = KILN_FUSION_FIRST;
  f->nodes[second->mark - 1].chain = KILN_FUSION_SECOND;
}

kiln_reason kiln__fusion_check_product(const kiln_fusion *f, const kiln_node *n) {
  const kiln_flags *flags = &f->pass->env->flags;
  if (flags->exact || flags->codegen != (int)KILN_BACKEND_LLVM ||
      flags->compat == KILN_COMPAT_TORCH)
    return KILN_REASON_product_by_llvm;
  if (kiln_codegen_convolves(n->op))
    return conv_gains(f, n) ? KILN_REASON_none : KILN_REASON_product_by_kernel;
  if (is_attention(n)) {
    const kiln_tensor_detail *q = kiln_node_input(n, 0)->type->detail;
    const bool big = products_of(n, q, UINT64_C(1) << (q->rank - 1)) >= (double)WORTH_PRODUCTS;
    return big && has_rows(n->outputs[0]->type->detail) ? KILN_REASON_none
                                                        : KILN_REASON_product_by_kernel;
  }
  kiln_factors of;
  if (!kiln_codegen_factors(n, &of)) return KILN_REASON_types_unknown;
  const kiln_tensor_detail *x = of.values[0]->type->detail;
  const bool big = products_of(n, x, of.summed) >= (double)WORTH_PRODUCTS;
  if (big) find_second(f, n);
  if (f->nodes[n->mark - 1].chain != KILN_FUSION_ALONE) return KILN_REASON_none;
  const bool gains =
      big && has_weight(n) && (flags->matmul == KILN_FACTORS_BF16 || !has_one_row(x, of.summed));
  return gains ? KILN_REASON_none : KILN_REASON_product_by_kernel;
}
