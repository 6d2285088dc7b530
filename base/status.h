/* status.h: errors: kiln_status, by which everything that can fail says so.
 *
 * A function that can fail returns `kiln_status *`: NULL when fine, else an owned object with a
 * code, one sentence, the place in our C source, the place in the model's source if there is one,
 * and notes added on the way up. The caller must use it: pass it on with KILN_TRY, or release it
 * with kiln_status_destroy. Codes are those of include/kiln/kiln.h (KILN_CODE_LIST).
 *
 * Lack of memory never needs memory to report: then kiln_status_oom() is a static object.
 * KILN_ASSERT is for our own bugs only: it stops a debug build. A check that must also hold in
 * release builds is KILN_CHECK, which returns KILN_INTERNAL. */
#pragma once

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/kiln.h"

#define KILN_MUST_USE __attribute__((warn_unused_result))
#define KILN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* A place in a model's source: file as the archive names it, or the Python file where known. */
typedef struct kiln_source_loc {
  const char *file; /* borrowed by constructors, copied into the status */
  int line;         /* from 1; 0: unknown */
  int column;       /* from 1; 0: unknown */
} kiln_source_loc;

/* Never NULL: so that compilers see it. */
#define KILN__NOT_NULL __attribute__((returns_nonnull))

/* Makes a status. `file`/`line` are of our C source: use the macro KILN_ERROR. */
kiln_status *kiln_status_create(kiln_code code, const char *file, int line, const char *fmt, ...)
    KILN_PRINTF(4, 5) KILN_MUST_USE KILN__NOT_NULL;
kiln_status *kiln_status_create_v(kiln_code code, const char *file, int line, const char *fmt,
                                  va_list args) KILN_MUST_USE KILN__NOT_NULL;
/* KILN_OUT_OF_MEMORY: with the size and the limit that kiln_status_refused was told, if this thread
 * has not reported them yet and there is memory for it; else a static object. */
kiln_status *kiln_status_oom(void) KILN_MUST_USE KILN__NOT_NULL;
/* Said by who refuses memory: of `bytes`, for a limit or (0) because there was none. */
void kiln_status_refused(size_t bytes, size_t limit);
/* Limits, cancelling and lack of memory: what stops whoever goes on after other errors. */
bool kiln_status_ends(const kiln_status *status);
/* The same error again, with place, notes and traceback as they are now. */
kiln_status *kiln_status_copy(const kiln_status *status) KILN_MUST_USE;

/* All take ownership of `status`, which is not NULL, return it, and may lose the addition when
 * memory is short.
 * kiln_status_note adds a line of context; kiln_status_at sets the model location if none is set
 * (the innermost place wins); kiln_status_trace appends one frame of the model's traceback:
 * function name, location, and the source line's text with the byte range to mark (may be NULL). */
kiln_status *kiln_status_note(kiln_status *status, const char *fmt, ...)
    KILN_PRINTF(2, 3) KILN_MUST_USE KILN__NOT_NULL;
kiln_status *kiln_status_at(kiln_status *status, kiln_source_loc loc) KILN_MUST_USE KILN__NOT_NULL;
kiln_status *kiln_status_trace(kiln_status *status, const char *function, kiln_source_loc loc,
                               const char *source_line, int mark_begin,
                               int mark_end) KILN_MUST_USE KILN__NOT_NULL;
/* Takes `status`, gives its message behind `prefix` under another code; NULL and
 * KILN_OUT_OF_MEMORY stay as they are. */
kiln_status *kiln_status_as(kiln_status *status, kiln_code code, const char *prefix) KILN_MUST_USE;
/* The same frame in the program that the model was made from. */
kiln_status *kiln_status_trace_original(kiln_status *status, const char *function,
                                        kiln_source_loc loc, const char *source_line,
                                        int mark_begin, int mark_end) KILN_MUST_USE KILN__NOT_NULL;
/* For an exception of the model: the Python class name ("builtins.ValueError"), copied. */
kiln_status *kiln_status_set_exception(kiln_status *status,
                                       const char *class_name) KILN_MUST_USE KILN__NOT_NULL;

/* Drops a status that the caller has decided to ignore. NULL is fine. (Also public.) */

#define KILN_ERROR(code, ...) kiln_status_create((code), __FILE__, __LINE__, __VA_ARGS__)

/* Returns the status from the calling function if `expr` fails. */
#define KILN_TRY(expr)                                                        \
  do {                                                                        \
    kiln_status *kiln_try_status = (expr);                                    \
    if (__builtin_expect(kiln_try_status != NULL, 0)) return kiln_try_status; \
  } while (0)
/* The same with a note: KILN_TRY_NOTE(lower(x), "lowering %s", name). */
#define KILN_TRY_NOTE(expr, ...)                             \
  do {                                                       \
    kiln_status *kiln_try_status = (expr);                   \
    if (__builtin_expect(kiln_try_status != NULL, 0))        \
      return kiln_status_note(kiln_try_status, __VA_ARGS__); \
  } while (0)

#ifdef __clang_analyzer__
/* The analyser of ./dev lint believes what is asserted. */
#define KILN_ASSERT(cond) ((cond) ? (void)0 : __builtin_unreachable())
#elif defined(NDEBUG)
#define KILN_ASSERT(cond) ((void)sizeof(cond))
#else
#define KILN_ASSERT(cond) assert(cond)
#endif
/* An invariant that a release build must survive breaking: KILN_INTERNAL to the caller. */
#define KILN_CHECK(cond)                                                    \
  do {                                                                      \
    bool kiln_check_holds = (cond);                                         \
    KILN_ASSERT(kiln_check_holds &&#cond);                                  \
    if (__builtin_expect(!kiln_check_holds, 0))                             \
      return KILN_ERROR(KILN_INTERNAL, "internal check failed: %s", #cond); \
  } while (0)

/* Bad input never crashes: a pointer that a public function cannot do without. */
#define KILN_NEEDS(pointers)                                                                      \
  do {                                                                                            \
    if (__builtin_expect(!(pointers), 0)) {                                                       \
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s: a pointer that is needed is NULL", __func__); \
    }                                                                                             \
  } while (0)
