/* alias_build.h: constraints of the alias analysis: what alias_build.c and alias_schema.c share. */
#pragma once

#include "ir/alias_internal.h"

/* The variable of a value, made when it is first asked for. */
alias_var *kiln__alias_var(kiln_alias *a, const kiln_ir_value *value);
void kiln__alias_wildcard(kiln_alias *a, const kiln_ir_value *value);
/* Points the value to new memory, which is returned; -1 when it has none or may be anything. */
int kiln__alias_fresh(kiln_alias *a, const kiln_ir_value *value, bool with_elements);
void kiln__alias_constrain(kiln_alias *a, constraint_kind kind, const kiln_ir_value *dst,
                           const kiln_ir_value *src);
void kiln__alias_into(kiln_alias *a, constraint_kind kind, int loc, const kiln_ir_value *src);
void kiln__alias_escape(kiln_alias *a, const kiln_ir_value *value);
/* value NULL: everything that outsiders know. */
void kiln__alias_write(kiln_alias *a, const kiln_node *node, const kiln_ir_value *value,
                       bool elements);
/* A node of an operator with a schema. */
void kiln__alias_build_schema(kiln_alias *a, const kiln_node *node);
