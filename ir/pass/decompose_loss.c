/* decompose_loss.c: losses that are reduced become the losses of rows, and their sum or mean;
 * cross_entropy_loss becomes log_softmax and nll_loss. */
#include "ir/pass/network.h"

/* -- Sums and means of rows -- */

/* The reduction is input `at`: 0 each row, 1 the mean, 2 the sum. */
static bool of_rows(kiln__maker *m, kiln_node *n, int at) {
  kiln_ir_value *in[8];
  const bool mean = kiln_ir_value_is_number(IN(at), 1);
  if (!mean && !kiln_ir_value_is_number(IN(at), 2)) return false;
  KILN_ASSERT(n->input_count <= (int)(sizeof in / sizeof *in));
  for (int i = 0; i < n->input_count; i++) in[i] = i == at ? INT(0) : IN(i);
  kiln_ir_value *rows = kiln__maker_step(m, (kiln_op_id)n->op->id,
                                         kiln_type_basic(KILN_TYPE_TENSOR), n->input_count, in);
  GIVE(mean ? STEP(mean, rows, NONE) : STEP(sum, rows, NONE));
  return true;
}
KILN__APART(multi_margin_loss) { return of_rows(m, n, 5); }
KILN__APART(triplet_margin_loss) { return of_rows(m, n, 7); }
KILN__APART(cosine_embedding_loss) { return of_rows(m, n, 4); }

/* -- Classes -- */

/* self (N, C, ..), target (N, ..), weight, reduction, ignore_index, label_smoothing; a target of
 * probabilities is of self's sizes. */
KILN__APART(cross_entropy_loss) {
  if (!kiln_ir_value_is_number(IN(5), 0)) return false;
  kiln_ir_value *rank = RANK(IN(0));
  kiln_ir_value *classes = EQUAL(RANK(IN(1)), ASK(sub_int, INT, rank, INT(1)));
  classes = BOTH(classes, ASK(is_floating_point, BOOL, IN(0)));
  kiln__apart_where(m, n, 1, BOTH(classes, ASK(gt_int, BOOL, rank, INT(1))));
  kiln_ir_value *log = STEP(log_softmax_int, IN(0), INT(1), NONE);
  GIVE(STEP(nll_loss_nd, log, IN(1), IN(2), IN(3), IN(4)));
  return true;
}
