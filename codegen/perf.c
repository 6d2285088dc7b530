/* perf.c: see perf.h. */
#include "codegen/perf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/flags.h"
#include "base/sink.h"

struct kiln__perf {
  kiln_mem *mem;
  int kind, fd;
  pid_t owner;
  void *marker; /* of a jitdump: the page whose mapping tells perf of the file */
  size_t marker_bytes;
  pthread_mutex_t lock; /* of the jitdump's records and their count */
  uint64_t count;
};

/* -- jitdump -- */

enum { MAGIC = 0x4A695444, VERSION = 1, CODE_LOAD = 0 };
typedef struct dump_header {
  uint32_t magic, version, size, machine, padding, pid;
  uint64_t timestamp, flags;
} dump_header;
typedef struct code_load {
  uint32_t id, size;
  uint64_t timestamp; /* until here of every record */
  uint32_t pid, tid;
  uint64_t virtual_address, address, code_size, index; /* then the name, and the code */
} code_load;

static bool begin_dump(kiln__perf *s) {
  const dump_header header = {.magic = MAGIC,
                              .version = VERSION,
                              .size = sizeof header,
                              .machine = EM_X86_64,
                              .pid = (uint32_t)s->owner,
                              .timestamp = kiln_now_ns()};
  s->marker_bytes = (size_t)sysconf(_SC_PAGESIZE);
  if (!kiln_write_all(s->fd, &header, sizeof header)) return false;
  s->marker = mmap(NULL, s->marker_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, s->fd, 0);
  if (s->marker == MAP_FAILED) s->marker = NULL;
  return s->marker != NULL;
}

static void tell_dump(kiln__perf *s, const char *name, const void *code, size_t size) {
  const size_t name_size = strlen(name) + 1, all = sizeof(code_load) + name_size + size;
  if (all > UINT32_MAX) return;
  pthread_mutex_lock(&s->lock);
  const code_load load = {.id = CODE_LOAD,
                          .size = (uint32_t)all,
                          .timestamp = kiln_now_ns(),
                          .pid = (uint32_t)s->owner,
                          .tid = (uint32_t)syscall(SYS_gettid),
                          .virtual_address = (uint64_t)(uintptr_t)code,
                          .address = (uint64_t)(uintptr_t)code,
                          .code_size = size,
                          .index = s->count++};
  /* A record that is not whole would end the file for its readers. */
  const off_t begin = lseek(s->fd, 0, SEEK_END);
  if (begin < 0 || !kiln_write_all(s->fd, &load, sizeof load) ||
      !kiln_write_all(s->fd, name, name_size) || !kiln_write_all(s->fd, code, size))
    (void)!ftruncate(s->fd, begin < 0 ? 0 : begin);
  pthread_mutex_unlock(&s->lock);
}

/* -- perf's map -- */

/* One write, so that contexts of a process can share the file. */
static void tell_map(const kiln__perf *s, const char *name, const void *code, size_t size) {
  char line[256];
  const int length =
      snprintf(line, sizeof line, "%llx %zx %s\n", (unsigned long long)(uintptr_t)code, size, name);
  if (length > 0 && (size_t)length < sizeof line) (void)!write(s->fd, line, (size_t)length);
}

/* -- Both -- */

static kiln_status *refused(const char *path) {
  return KILN_ERROR(KILN_INVALID_FILE, "option perf: %s: %s", path, strerror(errno));
}

static kiln_status *open_file(kiln__perf *s) {
  const bool is_map = s->kind == KILN_PERF_MAP;
  char path[64], folder[] = "/tmp/kiln-jitdump-XXXXXX";
  struct stat about;
  if (!is_map && !mkdtemp(folder)) return refused(folder);
  if (is_map) {
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)s->owner);
  } else {
    snprintf(path, sizeof path, "%s/jit-%d.dump", folder, (int)s->owner);
  }
  s->fd =
      open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (is_map ? O_APPEND : O_EXCL), 0600);
  if (s->fd < 0) return refused(path);
  if (fstat(s->fd, &about) != 0 || about.st_uid != geteuid() || !S_ISREG(about.st_mode)) {
    errno = EPERM;
    return refused(path);
  }
  return is_map || begin_dump(s) ? NULL : refused(path);
}

kiln_status *kiln__perf_open(kiln_mem *mem, int kind, kiln__perf **out) {
  *out = NULL;
  if (kind == KILN_PERF_OFF) return NULL;
  kiln__perf *s = kiln_mem_alloc_zero(mem, sizeof *s);
  if (!s) return kiln_status_oom();
  *s = (kiln__perf){.mem = mem, .kind = kind, .fd = -1, .owner = getpid()};
  pthread_mutex_init(&s->lock, NULL);
  kiln_status *status = open_file(s);
  if (status) {
    kiln__perf_close(s);
    return status;
  }
  *out = s;
  return NULL;
}

void kiln__perf_tell(kiln__perf *s, const char *name, const void *code, size_t size) {
  if (!s || s->owner != getpid()) return;
  if (s->kind == KILN_PERF_MAP) {
    tell_map(s, name, code, size);
  } else {
    tell_dump(s, name, code, size);
  }
}

void kiln__perf_close(kiln__perf *s) {
  if (!s) return;
  if (s->marker) munmap(s->marker, s->marker_bytes);
  if (s->fd >= 0) close(s->fd);
  pthread_mutex_destroy(&s->lock);
  kiln_mem_free(s->mem, s, sizeof *s);
}
