/* type_internal.h: between type*.c only. */
#pragma once

#include "runtime/type.h"

/* kiln_dim_parse into the table's dims, under its lock. */
bool kiln__type_table_parse_dim(kiln_type_table *table, kiln_str *text, kiln_dim *out_dim,
                                const kiln_dims **out_dims);
/* Zeroed memory of the table, under its lock. */
void *kiln__type_table_alloc(kiln_type_table *table, size_t size);

/* A composite type of these very parts. */
const kiln_type *kiln__type_make(kiln_type_table *table, kiln_type_kind kind,
                                 const kiln_type *const *elems, int count);
/* The interface whose qualified name ends in ".atom": what the IR prints of one. NULL: none. */
const kiln_type *kiln__type_find_interface(const kiln_type_table *table, kiln_str atom);
/* Name of a kind without parts, in the IR and in annotations; NULL for the others. */
const char *kiln__type_basic_name(kiln_type_kind kind);
