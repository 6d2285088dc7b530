/* embed.c: the smallest useful host: loads a model, calls it three times, prints the result.
 *
 *   cc embed.c -lkiln -o embed && ./embed model.pt 4 13
 *
 * runs `forward` of a model that takes one float tensor, here of shape 4 x 13, filled with 0.5. */
#include <stdio.h>
#include <stdlib.h>
#include "kiln/kiln.h"

static int fail(kiln_status *status) {
  fprintf(stderr, "embed: %s\n", kiln_status_report(status));
  kiln_status_destroy(status);
  return 1;
}

static kiln_status *make_input(kiln_context *context, int rank, char **sizes_text,
                               kiln_value **out_input) {
  int64_t sizes[8], count = 1;
  for (int i = 0; i < rank; i++) count *= sizes[i] = atoll(sizes_text[i]);
  float *data = malloc(sizeof *data * (size_t)(count > 0 ? count : 1));
  for (int64_t i = 0; data && i < count; i++) data[i] = 0.5f;
  kiln_status *status = kiln_value_tensor(context, KILN_DTYPE_F32, rank, sizes, data, out_input);
  free(data);
  return status;
}

int main(int argc, char **argv) {
  kiln_context *context = NULL;
  kiln_model *model = NULL;
  kiln_instance *instance = NULL;
  kiln_value *input = NULL, *result = NULL;
  char *text = NULL;
  if (argc < 2 || argc > 10) return fprintf(stderr, "usage: embed MODEL [SIZE...]\n"), 2;

  kiln_status *status = kiln_context_create(NULL, &context);
  if (!status) status = kiln_model_load(context, argv[1], NULL, &model);
  if (!status) status = kiln_instance_create(model, &instance);
  if (!status) status = make_input(context, argc - 2, argv + 2, &input);
  /* Calls never wait for kernels: without this line the interpreter would answer the first ones. */
  if (!status) status = kiln_model_warm_up(model, "forward", &input, 1, NULL);
  if (!status) status = kiln_instance_call(instance, "forward", &input, 1, NULL, &result);
  if (!status) status = kiln_value_print(result, 100, &text);
  int exit_status = status ? fail(status) : 0;
  if (text) {
    kiln_counters counters;
    kiln_model_counters(model, &counters);
    printf("%s\n%llu groups, %llu compiled runs\n", text, (unsigned long long)counters.groups,
           (unsigned long long)counters.compiled_runs);
  }

  /* Any order is fine, and NULL is: each object keeps what it needs. */
  kiln_text_free(text);
  kiln_value_destroy(result);
  kiln_value_destroy(input);
  kiln_instance_release(instance);
  kiln_model_release(model);
  kiln_context_release(context);
  return exit_status;
}
