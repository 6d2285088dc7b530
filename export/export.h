/* export.h: a method's plans as an object file, a header and weights: what `kiln compile` writes,
 * and aot/ runs (aot/image.h).
 *
 * The plans are those that calls have made: the method's own, and those of what it calls, with the
 * guards before them. Attributes are values of the program; what a plan keeps of weights (kept.h,
 * pack.h) is written as it is kept now. */
#pragma once

#include "jit/jit.h"

typedef struct kiln_export {
  kiln_jit *jit;
  kiln_function *function; /* the method */
  const char *method_name;
  kiln_call *call;    /* of the model; plans without JIT are made in it */
  kiln_ivalue self;   /* the object that it is called on */
  const char *name;   /* of files and of what is in them: a C identifier */
  const char *origin; /* of the model, for the header */
  const char *folder;
  bool general;  /* with the plans of calls without JIT behind those that are guarded */
  bool writes;   /* calls may change attributes */
  int arg_count; /* without self */
  const char *const *arg_names;
  const kiln_ivalue *args; /* what the program will be called with: tensors and numbers in them are
                              its inputs, all else is constant */
  kiln_ivalue result;      /* what came of it: tensors and numbers are its outputs */
} kiln_export;

/* Writes name.h, name.o and name.weights. No call of the instance is under way. KILN_UNSUPPORTED
 * where something has no place in such a program, KILN_INVALID_FILE where a file cannot be written.
 */
kiln_status *kiln_export_program(const kiln_export *request) KILN_MUST_USE;
