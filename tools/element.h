/* element.h: elements of tensors as C numbers, for printing, filling and comparing. */
#pragma once

#include "tools/tool.h"

typedef enum tool_element_class {
  TOOL_ELEMENT_INT,   /* bool, signed and unsigned integers: exact */
  TOOL_ELEMENT_FLOAT, /* any width */
  TOOL_ELEMENT_COMPLEX,
  TOOL_ELEMENT_BYTES, /* quantised and others: compared as bytes */
} tool_element_class;

/* Reads the element at the begin of `text` into `out` (16 bytes): where it ends, or NULL where it
 * is no element of that dtype or beyond its range. */
const char *tool_element_parse(kiln_dtype dtype, const char *text, void *out);
tool_element_class tool_element_class_of(kiln_dtype dtype);
/* Element `index` of a row-major array. */
int64_t tool_element_int(kiln_dtype dtype, const void *data, int64_t index);
void tool_element_float(kiln_dtype dtype, const void *data, int64_t index, double *out_re,
                        double *out_im);
/* Writes a number as an element, rounded to nearest even. */
void tool_element_store(kiln_dtype dtype, void *data, int64_t index, double value);
int64_t tool_numel(const kiln_value *tensor);
/* A row-major copy of the elements, freed by the caller; NULL with *out_status on failure. */
void *tool_elements(const kiln_value *tensor, kiln_status **out_status);
/* "f32", "i64", "bool" and so on; KILN_DTYPE_NONE when it is none. `len` bytes of `name`. */
kiln_dtype tool_dtype_of_short_name(const char *name, size_t len);
const char *tool_dtype_short_name(kiln_dtype dtype);
