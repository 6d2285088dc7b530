/* formats.h: foreign file formats, told by a file's first bytes or by an archive's entries.
 *
 * formats.def is the one table. People mistake many files for models; each gets its name and what
 * to do about it, instead of a complaint about zip. */
#pragma once

#include "base/base.h"

/* KILN_INVALID_FILE that names what these bytes are and what to do, where a TorchScript archive is
 * wanted; NULL when they are nothing that is known. */
kiln_status *kiln_format_refuse_model(const void *data, size_t size) KILN_MUST_USE;
/* The same where an archive of torch.save is wanted. */
kiln_status *kiln_format_refuse_values(const void *data, size_t size) KILN_MUST_USE;
/* The row that an entry's name tells of, INT_MAX for none. Of an archive's entries the one with the
 * least row says what it is (a package of torch.package has a data.pkl too). */
int kiln_format_of_entry(kiln_str name);
/* NULL for INT_MAX. */
kiln_status *kiln_format_refuse_row(int row) KILN_MUST_USE;
