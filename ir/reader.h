/* reader.h: the bytes of a textual graph and where in them the parser stands; for ir/ alone. */
#pragma once

#include "base/cursor.h"
#include "ir/internal.h"

typedef struct kiln__reader {
  kiln_graph *root;
  kiln_arena *arena; /* of root */
  kiln_type_table *types;
  kiln_cursor c;
  int depth;
  bool in_dump; /* what follows are the numbers of a tensor's dump */
} kiln__reader;

enum { KILN__MAX_NESTING = 100 };

/* KILN_INVALID_FILE with line and column of the cursor: "line 3, column 7: expected ')'". */
kiln_status *kiln__reader_fail(const kiln__reader *r, const char *fmt, ...)
    KILN_PRINTF(2, 3) KILN_MUST_USE KILN__NOT_NULL;
kiln_status *kiln__reader_expect(kiln__reader *r, const char *token) KILN_MUST_USE;
/* [A-Za-z0-9_.:]+, possibly empty; does not skip. */
kiln_str kiln__reader_word(kiln__reader *r);
kiln_status *kiln__reader_type(kiln__reader *r, const kiln_type **out_type) KILN_MUST_USE;

/* -- literal.c -- */

/* Parses a constant; `hint` (may be NULL) is the type that it shall have. The result is owned by
 * the graph: borrow it. */
kiln_status *kiln__literal_parse(kiln__reader *r, const kiln_type *hint,
                                 kiln_ivalue *out) KILN_MUST_USE;

/* -- literal_tensor.c -- */

/* After the '{' of a tensor constant, to its '}'. */
kiln_status *kiln__literal_parse_tensor(kiln__reader *r, const kiln_type *hint,
                                        kiln_ivalue *out) KILN_MUST_USE;
/* " 1  2 [ CPULongType{2} ]", as PyTorch prints small tensors. */
kiln_status *kiln__literal_parse_dump(kiln__reader *r, const kiln_type *hint,
                                      kiln_ivalue *out) KILN_MUST_USE;
/* "<Tensor>": zeros of the type, which must be complete. */
kiln_status *kiln__literal_make_tensor(kiln__reader *r, const kiln_type *hint,
                                       kiln_ivalue *out) KILN_MUST_USE;
