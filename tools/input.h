/* input.h: the arguments of a call, from --inputs FILE.pt or from --input SPEC. */
#pragma once

#include "tools/spec.h"

typedef struct tool_inputs {
  kiln_value **values; /* owned; NULL: the argument takes its default */
  int count;
} tool_inputs;

/* Reads a torch.save archive that holds the tuple of positional arguments. */
kiln_status *tool_inputs_read(kiln_context *context, const char *path, tool_inputs *out_inputs);
/* From SPECs: "2x3xf32", "[name=]2x3xf32=@x.npy", "[2xf32, 3xf32]"; see tool_spec_help. Named ones
 * go to the method's argument of that name; what is left out takes its default. Returns -1, or the
 * exit status after a complaint. `seed` makes the random tensors. */
int tool_inputs_parse(kiln_context *context, const kiln_model *model, const char *method,
                      const tool_list *specs, uint64_t seed, tool_inputs *out_inputs);
kiln_status *tool_inputs_clone(const tool_inputs *inputs, tool_inputs *out_inputs);
void tool_inputs_free(tool_inputs *inputs);
/* Elements of a list or tuple as an array of values. */
kiln_status *tool_inputs_unpack(const kiln_value *sequence, tool_inputs *out_inputs);
