/* npy.h: reads and writes tensors as .npy, the file format of numpy.save (versions 1 to 3), and
 * reads .npz, the zip archive of them that numpy.savez and savez_compressed write.
 *
 * Reference: numpy/lib/format.py. Plain numeric dtypes only; nothing is unpickled. Both byte orders
 * and both memory orders are read; what is written is little-endian and row-major. */
#pragma once

#include "frontend/file.h"
#include "runtime/value.h"

/* The tensor is a copy. KILN_INVALID_FILE for damaged files and dtypes that Kiln does not have. */
kiln_status *kiln_npy_read(kiln_env *env, kiln_str bytes, kiln_tensor **out_tensor) KILN_MUST_USE;
/* Whether the bytes begin as such a file does. */
bool kiln_npy_is(kiln_str bytes);
/* The archive's tensors by their names (without .npy), in its order: a Dict(str, Tensor). Members
 * that are no .npy are refused. */
kiln_status *kiln_npz_read(kiln_env *env, kiln_mapping *mapping,
                           kiln_dict **out_dict) KILN_MUST_USE;
kiln_status *kiln_npy_read_file(kiln_env *env, const char *path,
                                kiln_tensor **out_tensor) KILN_MUST_USE;
/* KILN_INVALID_ARGUMENT for dtypes without a form there (bfloat16, float8, quantised). */
kiln_status *kiln_npy_write_file(kiln_tensor *tensor, const char *path) KILN_MUST_USE;
