/* zip_write.h: writes zip archives as torch does: each entry's bytes begin at a multiple of 64
 * (padded by an extra field of the local header), stored or deflated, with real sizes and CRCs in
 * both headers; the end has the zip64 form too. The bytes depend on the entries alone. */
#pragma once

#include "base/arena.h"
#include "base/sink.h"

typedef struct kiln_zip_writer kiln_zip_writer;

/* In `arena`, as all of these; `prefix` ("archive") and `sink` are borrowed. */
kiln_zip_writer *kiln_zip_writer_create(kiln_arena *arena, const kiln_sink *sink,
                                        const char *prefix);
/* Adds "<prefix>/<name>". `data` is read now and goes to the sink from where it lies. `deflate`:
 * where that makes it smaller. KILN_INVALID_ARGUMENT for a name that is there already. */
kiln_status *kiln_zip_writer_add(kiln_zip_writer *zip, kiln_str name, const void *data, size_t size,
                                 bool deflate) KILN_MUST_USE;
bool kiln_zip_writer_has(const kiln_zip_writer *zip, kiln_str name);
/* Writes the directory. */
kiln_status *kiln_zip_writer_finish(kiln_zip_writer *zip) KILN_MUST_USE;
