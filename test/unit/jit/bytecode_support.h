/* bytecode_support.h: plans made of textual graphs, and what they are printed as. */
#pragma once

#include "jit/bytecode.h"
#include "test/unit/ir/ir_support.h"

/* `runs` of a group tells its guard by the counter of hits; `user` is what groups without a kernel
 * call. */
static inline kiln_status *fake_group(void *user, const kiln_node *node,
                                      const kiln_guard_desc *guard, kiln_arena *arena,
                                      kiln_group *out, const kiln_callable **out_interpreted) {
  *out_interpreted = user;
  if (user) return NULL;
  kiln_group_output *outputs = KILN_NEW_ARRAY(arena, kiln_group_output, node->output_count);
  for (int i = 0; i < node->output_count; i++) outputs[i].donors = 3; /* either of the first two */
  *out = (kiln_group){.name = "G",
                      .outputs = outputs,
                      .input_count = node->input_count,
                      .output_count = node->output_count,
                      .runs = guard ? guard->hits : 0};
  return NULL;
}

static inline kiln_status *emit_behind(fixture *f, const char *text, const kiln_guard_maker *guards,
                                       const kiln_guard_desc *guard, kiln_callable *interpreted,
                                       kiln_plan **out_plan) {
  kiln_graph *graph = parse(f, text);
  kiln_bytecode_env env = {.env = f->env,
                           .name = "p",
                           .types = f->types,
                           .user = interpreted,
                           .group = fake_group,
                           .guards = *guards,
                           .guard = guard};
  kiln_status *status = kiln_bytecode_emit(graph, &env, out_plan);
  kiln_graph_release(graph); /* the plan needs nothing of it */
  return status;
}

static inline kiln_status *emit(fixture *f, const char *text, double stress, kiln_plan **out_plan) {
  const kiln_guard_maker guards = {.stress = stress};
  return emit_behind(f, text, &guards, NULL, NULL, out_plan);
}

static inline void print_plan(fixture *f, void *arg) {
  kiln_text text = kiln_text_in(f->arena);
  kiln_plan_print(*(kiln_plan **)arg, &text);
  *(const char **)arg = text.data;
}

static inline void check(fixture *f, const char *graph, const char *expected) {
  kiln_plan *plan;
  assert_ok(emit(f, graph, 0, &plan));
  void *arg = plan;
  print_plan(f, &arg);
  if (strcmp(arg, expected) != 0) fail_msg("expected:\n%sgot:\n%s", expected, (char *)arg);
  kiln_plan_destroy(plan);
}
