/* einsum.c: reads the equation of einsum. */
#include "runtime/einsum.h"

#include <ctype.h>
#include <string.h>

#include "runtime/kernel.h"

enum { LETTERS = 52, LABELS = LETTERS + KILN_MAX_RANK }; /* the last ones are the ellipsis's */

/* Labels of an operand or of the result as they are written. */
typedef struct subscripts {
  int count, ellipsis; /* where the ellipsis stands; -1: nowhere */
  int labels[KILN_MAX_RANK];
} subscripts;

typedef struct reader {
  const char *at, *end;
  kiln_einsum *e;
  int ellipsis;      /* dimensions that it stands for: the most of any operand */
  int count[LABELS]; /* of the operands' subscripts */
  int place[LABELS]; /* -1: not there */
} reader;

static int label_of(char c) { return c >= 'a' ? c - 'a' + 26 : c - 'A'; }
static char letter_of(int label) {
  return (char)(label >= LETTERS ? '.' : label < 26 ? 'A' + label : 'a' + label - 26);
}

/* Ends at ',', '-' or the end. */
static kiln_status *read_subscripts(reader *r, subscripts *out) {
  out->count = 0;
  out->ellipsis = -1;
  for (; r->at < r->end && *r->at != ',' && *r->at != '-'; r->at++) {
    if (*r->at == ' ') continue;
    if (*r->at == '.') {
      if (r->end - r->at < 3 || r->at[1] != '.' || r->at[2] != '.' || out->ellipsis >= 0)
        return KILN_OP_FAIL("einsum(): found '.' that is not part of any ellipsis, or two of them");
      out->ellipsis = out->count;
      r->at += 2;
    } else if (isalpha((unsigned char)*r->at) && out->count < KILN_MAX_RANK) {
      out->labels[out->count++] = label_of(*r->at);
    } else {
      return KILN_OP_FAIL("einsum(): invalid subscript given: %c, subscripts must be in [a-zA-Z]",
                          *r->at);
    }
  }
  return NULL;
}

/* A label for each dimension of operand i, the ellipsis put in. */
static kiln_status *read_operand(reader *r, int i, int rank, int *labels) {
  subscripts s;
  int n = 0;
  KILN_TRY(read_subscripts(r, &s));
  const int extra = rank - s.count;
  if (extra < 0 || (extra > 0 && s.ellipsis < 0))
    return KILN_OP_FAIL("einsum(): the number of subscripts in the equation (%d) does not "
                        "match the number of dimensions (%d) for an operand",
                        s.count, rank);
  for (int k = 0; k <= s.count; k++) {
    for (int d = 0; k == s.ellipsis && d < extra; d++) labels[n++] = LABELS - extra + d;
    if (k == s.count) break;
    labels[n++] = s.labels[k];
    r->count[s.labels[k]]++;
  }
  r->e->ranks[i] = rank;
  if (extra > r->ellipsis) r->ellipsis = extra;
  return NULL;
}

/* The result's labels come first, in its order; then the others. */
static kiln_status *order_labels(reader *r, bool arrow) {
  kiln_einsum *e = r->e;
  subscripts s = {0};
  int order[2 * LABELS], n = 0;
  if (arrow) {
    KILN_TRY(read_subscripts(r, &s));
    if (r->at < r->end)
      return KILN_OP_FAIL("einsum(): invalid subscript given: %c, subscripts must be in [a-zA-Z]",
                          *r->at);
  }
  for (int i = 0; i <= s.count; i++) {
    for (int k = r->ellipsis; (i == s.ellipsis || !arrow) && k > 0; k--) order[n++] = LABELS - k;
    if (i < s.count) order[n++] = s.labels[i];
  }
  for (int i = 0; i < LETTERS && !arrow; i++)
    if (r->count[i] == 1) order[n++] = i;
  for (int i = 0; i < n; i++) {
    const bool known = order[i] >= LETTERS || r->count[order[i]] > 0;
    if (!known || r->place[order[i]] >= 0)
      return KILN_OP_FAIL("einsum(): output subscript %c %s", letter_of(order[i]),
                          known ? "appears more than once in the output"
                                : "does not appear in the equation for any input operand");
    r->place[order[i]] = i;
  }
  e->out_rank = n;
  for (int i = 0; i < LABELS; i++) {
    const bool used = i < LETTERS ? r->count[i] > 0 : i >= LABELS - r->ellipsis;
    if (used && r->place[i] < 0) r->place[i] = n++;
  }
  if (n > KILN_MAX_RANK) return KILN_OP_FAIL("einsum(): more than %d subscripts", KILN_MAX_RANK);
  e->rank = n;
  for (int i = 0; i < LABELS; i++)
    if (r->place[i] >= 0) e->letters[r->place[i]] = letter_of(i);
  return NULL;
}

kiln_status *kiln_einsum_read(kiln_str equation, int operands, const int *ranks, kiln_einsum *out) {
  reader reading = {.at = equation.data, .end = equation.data + equation.len, .e = out},
         *r = &reading;
  int labels[KILN_EINSUM_OPERANDS][KILN_MAX_RANK];
  memset(r->place, -1, sizeof r->place);
  out->operands = operands;
  if (operands < 1 || operands > KILN_EINSUM_OPERANDS)
    return KILN_OP_FAIL("einsum(): must provide at least one operand, and at most %d",
                        (int)KILN_EINSUM_OPERANDS);
  for (int i = 0; i < operands; i++) {
    if (i > 0 && (r->at == r->end || *r->at++ != ','))
      return KILN_OP_FAIL("einsum(): more operands were provided than specified in the equation");
    KILN_TRY(read_operand(r, i, ranks[i], labels[i]));
  }
  const bool arrow = r->end - r->at >= 2 && r->at[0] == '-' && r->at[1] == '>';
  if (!arrow && r->at < r->end)
    return KILN_OP_FAIL("einsum(): fewer operands were provided than specified in the equation");
  if (arrow) r->at += 2;
  KILN_TRY(order_labels(r, arrow));
  for (int i = 0; i < operands; i++)
    for (int d = 0; d < ranks[i]; d++) out->places[i][d] = (int8_t)r->place[labels[i][d]];
  return NULL;
}
