/* pass.c: what passes ask of their surroundings: the alias analysis, made when it is first wanted,
 * and an ear for refusals. */
#include "ir/pass.h"

kiln_alias *kiln_pass_alias(kiln_pass *pass) {
  if (!pass->alias) pass->alias = kiln_alias_create(pass->scratch, pass->graph);
  return pass->alias;
}

void kiln_pass_forget_alias(kiln_pass *pass) { pass->alias = NULL; }

void kiln_pass_refuse(kiln_pass *pass, const kiln_node *node, kiln_reason reason,
                      const char *detail) {
  if (pass->refuse) pass->refuse(pass, node, reason, detail);
}
