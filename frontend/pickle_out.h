/* pickle_out.h: the opcodes of a pickle of protocol 2, for both writers: torch.save's
 * (torch_save_write.c) and TorchScript's (torchscript/pickle_write.c). */
#pragma once

#include "base/map.h"
#include "base/text.h"
#include "frontend/zip_write.h"
#include "runtime/quant.h"
#include "runtime/value.h"

typedef struct kiln_pickle_out {
  kiln_arena *arena;
  bool for_script;                   /* for TorchScript's reader, not torch.load */
  kiln_text text;                    /* the pickle so far */
  kiln_map memo;                     /* tensor, box or storage -> memo index + 1 */
  KILN_VEC(kiln_storage *) storages; /* storage i is the member data/<i> */
  kiln_map numbers;                  /* for torch.load: storage -> its i + 1 */
  uint32_t memo_count;
  KILN_VEC(kiln_ivalue) held; /* made for the archive: they keep storages until all is written */
  kiln_cleanup releasing;     /* of those */
} kiln_pickle_out;

/* `out` outlives the scope, which releases what it holds. */
void kiln__pickle_out_begin(kiln_pickle_out *out, kiln_arena *arena, bool for_script);
static inline void kiln__pickle_put_byte(kiln_pickle_out *out, unsigned value) {
  kiln_text_putc(&out->text, (char)value);
}
void kiln__pickle_put_string(kiln_pickle_out *out, kiln_str text);
void kiln__pickle_put_int(kiln_pickle_out *out, int64_t value);
void kiln__pickle_put_bool(kiln_pickle_out *out, bool value);
/* "torch._utils\n_rebuild_tensor_v2". */
void kiln__pickle_put_global(kiln_pickle_out *out, const char *module_and_name);
/* None, numbers, bools, strings. KILN_INVALID_ARGUMENT for every other value, by its type's name.
 */
kiln_status *kiln__pickle_put_leaf(kiln_pickle_out *out, kiln_ivalue v) KILN_MUST_USE;

/* Memoises what is on top under `address`; gets it from there, or says false. */
void kiln__pickle_put_memo(kiln_pickle_out *out, const void *address);
bool kiln__pickle_put_from_memo(kiln_pickle_out *out, const void *address);

/* KILN_INVALID_ARGUMENT beyond KILN_PICKLE_MAX_DEPTH, which is how cycles are met. */
kiln_status *kiln__pickle_check_depth(int depth) KILN_MUST_USE;
/* A tensor: None where it is undefined, else the call that makes it of its storage. */
kiln_status *kiln__pickle_put_tensor(kiln_pickle_out *out, kiln_tensor *tensor) KILN_MUST_USE;
/* The members <folder>/<i> of an archive: "data" beside data.pkl. */
kiln_status *kiln__pickle_add_data(const kiln_pickle_out *out, const char *folder,
                                   kiln_zip_writer *zip) KILN_MUST_USE;
