/* cost.c: pass `cost`: an analysis that prints the FLOPs and bytes of ir/cost.h, a line for each
 * operator. Types tell the sizes: `infer_shapes`, or the pipeline `one_call`, comes before. */
#include "ir/cost.h"

#include "ir/pass.h"

static void print_count(kiln_text *text, uint64_t count, const char *noun, const char *what) {
  if (count == 0) return;
  kiln_text_printf(text, "# cost: %llu %s%s %s\n", (unsigned long long)count, noun,
                   kiln_plural(count), what);
}

static void print_row(kiln_text *text, const kiln_cost_row *row) {
  kiln_text_printf(text, "# cost: " KILN_STR_FMT ", %llu time%s: %llu flops, %llu bytes",
                   KILN_STR_ARG(row->name), (unsigned long long)row->count, kiln_plural(row->count),
                   (unsigned long long)row->flops, (unsigned long long)row->bytes);
  if (row->unknown) kiln_text_printf(text, ", %llu unknown", (unsigned long long)row->unknown);
  kiln_text_putc(text, '\n');
}

kiln_status *kiln_pass_cost(kiln_pass *pass) {
  kiln_text *text = pass->report;
  kiln_cost cost;
  if (!text) return NULL;
  kiln_cost_find(&cost, pass->scratch, pass->graph);
  for (int i = 0; i < cost.rows.count; i++) print_row(text, cost.rows.entries[i].value);
  kiln_text_printf(text, "# cost: %llu flops; bytes: %llu of inputs, %llu made, %llu at once\n",
                   (unsigned long long)cost.total.flops, (unsigned long long)cost.total.input_bytes,
                   (unsigned long long)cost.total.made_bytes,
                   (unsigned long long)cost.total.peak_bytes);
  print_count(text, cost.total.unknown, "node", "of unknown cost, missing in the sums");
  print_count(text, cost.total.branches, "branch point", "not decided: the costlier side counts");
  print_count(text, cost.total.loops, "loop", "of unknown length: one round counts");
  return NULL;
}
