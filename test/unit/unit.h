/* unit.h: what every cmocka unit includes: cmocka in its order, checks of statuses, a clock. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

/* The call must succeed; what it says otherwise is printed. */
#define assert_ok(expr) unit__assert_ok((expr), #expr, __FILE__, __LINE__)
static inline void unit__assert_ok(kiln_status *status, const char *text, const char *file,
                                   int line) {
  if (!status) return;
  print_error("%s: %s\n", text, kiln_status_report(status));
  kiln_status_destroy(status);
  _fail(file, line);
}

/* The call must fail with that code, and its message hold `words` (NULL: any). */
#define assert_error(expr, code, words) \
  unit__assert_error((expr), (code), (words), #expr, __FILE__, __LINE__)
static inline void unit__assert_error(kiln_status *status, kiln_code code, const char *words,
                                      const char *text, const char *file, int line) {
  if (kiln_status_code(status) != code || (words && !strstr(kiln_status_message(status), words))) {
    print_error("%s gave %s: %s\n", text, kiln_code_name(kiln_status_code(status)),
                kiln_status_report(status));
    kiln_status_destroy(status);
    _fail(file, line);
  }
  kiln_status_destroy(status);
}

static inline double now_ms(void) { return (double)kiln_now_ns() * 1e-6; }
