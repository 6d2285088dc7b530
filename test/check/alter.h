/* alter.h: copies of a recorded case, altered through the public API alone. Failures end the test
 * (cmocka). */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"

typedef struct alter_case {
  char *folder; /* temporary; holds "case" */
  kiln_context *context;
} alter_case;

typedef enum alter_how {
  ALTER_KEEP,
  ALTER_NUDGE,          /* the first element that is no NaN, by 0.01 (or 1, or the other bool) */
  ALTER_NUDGE_SLIGHTLY, /* by 1e-6: within the tolerance */
  ALTER_TO_NAN,
  ALTER_FROM_NAN,
  ALTER_TO_INFINITY,
  ALTER_TO_F64,
  ALTER_TO_U8,
  ALTER_FLATTEN,
  ALTER_ADD_DIM,
  ALTER_SWAP, /* dicts: the entries */
  ALTER_RENAME,
  ALTER_DROP,
} alter_how;

/* The command and the folder test/data. */
void alter_setup(const char *kiln, const char *data);
void alter_open(alter_case *c, const char *name);
void alter_close(alter_case *c);
/* Runs `kiln check` on the copy; returns the exit status and what it printed (freed by the caller).
 */
int alter_check(const alter_case *c, const char *arguments, char **out_output);

/* Files "expected_0" and so on hold tuples. put takes the value. */
void alter_put(alter_case *c, const char *file, int index, kiln_value *value);
/* Cuts the tuple, or repeats its last element. */
void alter_resize(alter_case *c, const char *file, int count);
kiln_value *alter_tensor(alter_case *c, const char *file, int index, alter_how how);
kiln_value *alter_dict(alter_case *c, const char *file, int index, alter_how how);
kiln_value *alter_ints(alter_case *c, int count, ...);
kiln_value *alter_pair(alter_case *c, int a, int b);
kiln_value *alter_int(alter_case *c, int i);
kiln_value *alter_float(alter_case *c, double f);
kiln_value *alter_bool(alter_case *c, int b);
kiln_value *alter_string(alter_case *c, const char *text);
kiln_value *alter_none(alter_case *c);

void alter_remove(alter_case *c, const char *file);
void alter_cut(alter_case *c, const char *file, int bytes);
/* Replaces the first occurrence of a text in case.json. */
void alter_json(alter_case *c, const char *from, const char *to);
/* A new file beside the copy. */
FILE *alter_file(const alter_case *c, const char *name);
