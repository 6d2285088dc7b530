/* abi.c: options of hosts that were compiled against another version. */
#include "base/abi.h"

kiln_status *kiln_abi_read(const char *name, const void *given, size_t struct_size, size_t least,
                           size_t known, void *out) {
  memset(out, 0, known);
  if (!given) return NULL;
  if (struct_size == 0) struct_size = known;
  if (struct_size < least || struct_size > 4096) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s.struct_size is %zu, which no version has", name,
                      struct_size);
  }
  for (size_t i = known; i < struct_size; i++) {
    if (((const char *)given)[i] != 0) {
      return KILN_ERROR(KILN_UNSUPPORTED, "%s asks for something that Kiln %s does not know", name,
                        KILN_VERSION_STRING);
    }
  }
  memcpy(out, given, struct_size < known ? struct_size : known);
  return NULL;
}
