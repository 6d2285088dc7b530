/* header.c: the C header of a program: what it takes and gives, and functions by its name. */
#include <ctype.h>

#include "export/internal.h"

static const char *upper(const kiln__exporter *x) {
  char *text = kiln_arena_strdup(x->arena, x->request->name);
  for (char *c = text; *c; c++) *c = (char)toupper((unsigned char)*c);
  return text;
}

/* No end of a comment, and no line but ours. */
static void put_plain(kiln_text *text, const char *words) {
  for (const char *c = words; *c; c++)
    kiln_text_putc(text,
                   (unsigned char)*c < ' ' || (*c == '/' && c > words && c[-1] == '*') ? '?' : *c);
}

static void put_inputs(const kiln__exporter *x, kiln_text *text) {
  for (int i = 0; i < x->inputs.count; i++) {
    kiln_text_printf(text, " *   inputs[%d]   ", i);
    put_plain(text, x->inputs.data[i].name);
    kiln_text_printf(text, ": %s%s\n", x->input_words.data[i],
                     x->inputs.data[i].tag == KILN_TAG_TENSOR ? "" : ", rank 0");
  }
  for (int i = 0; i < x->output_words.count; i++)
    kiln_text_printf(text, " *   outputs[%d]  %s\n", i, x->output_words.data[i]);
}

kiln_str kiln__export_header(const kiln__exporter *x) {
  kiln_text text = kiln_text_in(x->arena);
  const char *name = x->request->name, *big = upper(x);
  kiln_text_printf(&text, "/* %s.h: ", name);
  put_plain(&text, x->request->method_name);
  kiln_text_puts(&text, "() of ");
  put_plain(&text, x->request->origin);
  kiln_text_printf(&text,
                   ", made by kiln compile (Kiln " KILN_VERSION_STRING ").\n *\n"
                   " *   cc main.c %s.o -lkiln-aot -lm -lpthread    with %s.weights where it runs\n"
                   " *\n"
                   " * Shapes are those of the inputs that it was compiled with%s:\n",
                   name, name,
                   x->request->general ? "; it takes others too" : "; it may take others");
  put_inputs(x, &text);
  kiln_text_printf(&text,
                   " */\n#ifndef KILN_AOT_%s_H\n#define KILN_AOT_%s_H\n\n#include <kiln/aot.h>\n\n"
                   "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
                   "extern const kiln_aot_program %s_program;\n\nenum {\n"
                   "  %s_INPUTS = %d,\n  %s_OUTPUTS = %d,\n",
                   big, big, name, big, x->inputs.count, big, x->output_words.count);
  for (int i = 0; i < x->output_bytes.count; i++)
    kiln_text_printf(&text, "  %s_OUTPUT_%d_BYTES = %zu,\n", big, i, x->output_bytes.data[i]);
  kiln_text_printf(
      &text,
      "};\n\nstatic inline kiln_status *%s_open(const char *weights, const kiln_aot_options "
      "*options,\n"
      "                                       kiln_aot_model **out_model) {\n"
      "  return kiln_aot_open(&%s_program, weights, options, out_model);\n}\n"
      "static inline kiln_status *%s_call(kiln_aot_model *model, const kiln_aot_tensor *inputs,\n"
      "                                       kiln_aot_tensor *outputs) {\n"
      "  return kiln_aot_call(model, inputs, %s_INPUTS, outputs, %s_OUTPUTS);\n}\n\n"
      "#ifdef __cplusplus\n}\n#endif\n#endif\n",
      name, name, name, big, big);
  return kiln_text_str(&text);
}
