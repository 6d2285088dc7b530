/* file.c: mappings of files and of the host's memory. */
#include "frontend/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void destroy_wrapped(kiln_owner *owner) {
  kiln_mapping *mapping = (kiln_mapping *)owner;
  kiln_mem *mem = mapping->mem;
  kiln_mem_free(mem, mapping, sizeof *mapping);
  kiln_mem_release(mem);
}

static void destroy_mapped(kiln_owner *owner) {
  kiln_mapping *mapping = (kiln_mapping *)owner;
  if (mapping->size > 0) munmap((void *)(uintptr_t)mapping->data, mapping->size);
  destroy_wrapped(owner);
}

kiln_status *kiln_mapping_wrap(kiln_mem *mem, const void *data, size_t size,
                               kiln_mapping **out_mapping) {
  kiln_mapping *mapping = kiln_mem_alloc_zero(mem, sizeof *mapping);
  if (!mapping) return kiln_status_oom();
  kiln_mem_retain(mem);
  mapping->owner.refs = 1;
  mapping->owner.destroy = destroy_wrapped;
  mapping->mem = mem;
  mapping->data = data ? data : "";
  mapping->size = data ? size : 0;
  *out_mapping = mapping;
  return NULL;
}

static kiln_status *map_descriptor(kiln_mem *mem, int fd, const char *path,
                                   kiln_mapping **out_mapping) {
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return KILN_ERROR(KILN_INVALID_FILE, "cannot read '%s': %s", path, strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return KILN_ERROR(KILN_INVALID_FILE, "'%s' is not a regular file", path);
  }
  kiln_mapping *mapping = NULL;
  KILN_TRY(kiln_mapping_wrap(mem, NULL, 0, &mapping));
  if (info.st_size > 0) {
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      int error = errno;
      kiln_owner_release(&mapping->owner);
      return KILN_ERROR(KILN_INVALID_FILE, "cannot map '%s': %s", path, strerror(error));
    }
    mapping->data = data;
    mapping->size = (size_t)info.st_size;
    mapping->owner.destroy = destroy_mapped;
  }
  *out_mapping = mapping;
  return NULL;
}

kiln_status *kiln_mapping_open(kiln_mem *mem, const char *path, kiln_mapping **out_mapping) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to hang on a pipe */
  if (fd < 0) {
    return KILN_ERROR(KILN_INVALID_FILE, "cannot open '%s': %s", path, strerror(errno));
  }
  kiln_status *status = map_descriptor(mem, fd, path, out_mapping);
  close(fd);
  return status;
}
