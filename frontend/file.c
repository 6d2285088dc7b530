/* file.c: files mapped or read, and the table of those that are open. */
#include "frontend/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct kiln_file_table {
  int refs; /* atomic */
  kiln_mem *mem;
  pthread_mutex_t lock;
  kiln_mapping *first; /* borrowed: each leaves when it dies */
};

/* -- The table -- */

kiln_status *kiln_file_table_create(kiln_mem *mem, kiln_file_table **out_table) {
  kiln_file_table *table = kiln_mem_alloc_zero(mem, sizeof *table);
  if (!table) return kiln_status_oom();
  kiln_mem_retain(mem);
  table->refs = 1;
  table->mem = mem;
  pthread_mutex_init(&table->lock, NULL);
  *out_table = table;
  return NULL;
}

void kiln_file_table_release(kiln_file_table *table) {
  if (!table || __atomic_fetch_sub(&table->refs, 1, __ATOMIC_ACQ_REL) != 1) return;
  kiln_mem *mem = table->mem;
  pthread_mutex_destroy(&table->lock);
  kiln_mem_free(mem, table, sizeof *table);
  kiln_mem_release(mem);
}

uint64_t kiln_file_table_mapped_bytes(kiln_file_table *table) {
  uint64_t bytes = 0;
  pthread_mutex_lock(&table->lock);
  for (const kiln_mapping *m = table->first; m; m = m->next) bytes += m->block ? 0 : m->size;
  pthread_mutex_unlock(&table->lock);
  return bytes;
}

static bool same_time(struct timespec a, struct timespec b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool unchanged(const struct stat *a, const struct stat *b) {
  return a->st_size == b->st_size && same_time(a->st_mtim, b->st_mtim);
}

/* Retains a mapping whose count is not 0 yet: one that is dying stays dead. */
static bool retain_living(kiln_mapping *mapping) {
  int refs = __atomic_load_n(&mapping->owner.refs, __ATOMIC_RELAXED);
  while (refs > 0) {
    if (__atomic_compare_exchange_n(&mapping->owner.refs, &refs, refs + 1, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED)) {
      return true;
    }
  }
  return false;
}

static kiln_mapping *find_open(const kiln_file_options *options, const struct stat *info) {
  kiln_file_table *table = options->table;
  if (!table) return NULL;
  pthread_mutex_lock(&table->lock);
  kiln_mapping *m = table->first;
  for (; m; m = m->next) {
    if (m->info.st_dev == info->st_dev && m->info.st_ino == info->st_ino &&
        unchanged(&m->info, info) && (m->block || options->mode == KILN_MAP_AUTO) &&
        retain_living(m)) {
      break;
    }
  }
  pthread_mutex_unlock(&table->lock);
  return m;
}

static void enter_table(kiln_file_table *table, kiln_mapping *mapping) {
  __atomic_fetch_add(&table->refs, 1, __ATOMIC_RELAXED);
  pthread_mutex_lock(&table->lock);
  mapping->table = table;
  mapping->next = table->first;
  table->first = mapping;
  pthread_mutex_unlock(&table->lock);
}

static void leave_table(kiln_mapping *mapping) {
  kiln_file_table *table = mapping->table;
  if (!table) return;
  pthread_mutex_lock(&table->lock);
  kiln_mapping **link = &table->first;
  while (*link != mapping) link = &(*link)->next;
  *link = mapping->next;
  pthread_mutex_unlock(&table->lock);
  kiln_file_table_release(table);
}

/* -- Mappings -- */

static void destroy_mapping(kiln_owner *owner) {
  kiln_mapping *mapping = (kiln_mapping *)owner;
  kiln_mem *mem = mapping->mem;
  leave_table(mapping);
  if (mapping->block) {
    kiln_mem_free(mem, (void *)(uintptr_t)mapping->data, mapping->block);
  } else if (mapping->fd >= 0) {
    munmap((void *)(uintptr_t)mapping->data, mapping->size);
    close(mapping->fd);
  }
  kiln_mem_free(mem, mapping, sizeof *mapping);
  kiln_mem_release(mem);
}

/* Pages that lie in it wholly, of the file: they come back when they are read. */
static void give_back(kiln_owner *owner, const void *data, size_t bytes) {
  const kiln_mapping *mapping = (const kiln_mapping *)owner;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const uintptr_t first = ((uintptr_t)data + page - 1) / page * page;
  const uintptr_t last = ((uintptr_t)data + bytes) / page * page;
  KILN_ASSERT(mapping->fd >= 0 && !mapping->block);
  if (last > first)
    (void)madvise((char *)(uintptr_t)mapping->data + (first - (uintptr_t)mapping->data),
                  last - first, MADV_DONTNEED);
}

kiln_status *kiln_mapping_wrap(kiln_mem *mem, const void *data, size_t size,
                               kiln_mapping **out_mapping) {
  kiln_mapping *mapping = kiln_mem_alloc_zero(mem, sizeof *mapping);
  if (!mapping) return kiln_status_oom();
  kiln_mem_retain(mem);
  mapping->owner.refs = 1;
  mapping->owner.destroy = destroy_mapping;
  mapping->mem = mem;
  mapping->data = data ? data : "";
  mapping->size = data ? size : 0;
  mapping->fd = -1;
  *out_mapping = mapping;
  return NULL;
}

static kiln_status *map(kiln_mapping *mapping, int fd, size_t size) {
  int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  void *data = own < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_PRIVATE, own, 0);
  if (data == MAP_FAILED) {
    int error = errno;
    if (own >= 0) close(own);
    return KILN_ERROR(KILN_INVALID_FILE, "the file cannot be mapped: %s", strerror(error));
  }
  mapping->fd = own;
  mapping->data = data;
  mapping->owner.give_back = give_back;
  mapping->size = size;
  return NULL;
}

static kiln_status *too_large(const kiln_file_options *options) {
  return KILN_ERROR(KILN_LIMIT,
                    "the file has more than the %llu bytes that may be held (bytes; the option "
                    "map=map uses it where it lies)",
                    (unsigned long long)options->max_copy);
}

/* Reads a regular file of `size` bytes, which may have become shorter, into memory. */
static kiln_status *copy(kiln_mapping *mapping, int fd, size_t size,
                         const kiln_file_options *options) {
  enum { PIECE = 16 << 20 }; /* milliseconds */
  if (options->max_copy && size > options->max_copy) return too_large(options);
  char *data = kiln_mem_alloc(mapping->mem, size);
  if (!data) return kiln_status_oom();
  mapping->data = data;
  mapping->size = size;
  mapping->block = size;
  for (size_t at = 0; at < size;) {
    KILN_TRY(kiln_budget_check(options->budget, 0));
    ssize_t got = pread(fd, data + at, size - at < PIECE ? size - at : PIECE, (off_t)at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return KILN_ERROR(KILN_INVALID_FILE, "the file cannot be read: %s",
                        got < 0 ? strerror(errno) : "it has become shorter");
    }
    at += (size_t)got;
  }
  return NULL;
}

/* Waits for bytes of a stream, and looks at the budget meanwhile. */
static kiln_status *wait_for_bytes(int fd, const kiln_budget *budget) {
  enum { POLL_MS = 10 };
  struct pollfd p = {.fd = fd, .events = POLLIN};
  if (!kiln_budget_may_end(budget)) return NULL;
  do {
    KILN_TRY(kiln_budget_check(budget, 0));
  } while (poll(&p, 1, POLL_MS) == 0);
  return NULL;
}

/* Reads a stream to its end. */
static kiln_status *drain(kiln_mapping *mapping, int fd, const kiln_file_options *options) {
  size_t capacity = 64 << 10, size = 0;
  char *data = kiln_mem_alloc(mapping->mem, capacity);
  kiln_status *status = data ? NULL : kiln_status_oom();
  while (!status) {
    if (size == capacity) {
      char *larger = kiln_mem_realloc(mapping->mem, data, capacity, 2 * capacity);
      if (!larger) {
        status = kiln_status_oom();
        break;
      }
      data = larger;
      capacity *= 2;
    }
    status = wait_for_bytes(fd, options->budget);
    if (status) break;
    ssize_t got = read(fd, data + size, capacity - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      status = KILN_ERROR(KILN_INVALID_FILE, "the file cannot be read: %s", strerror(errno));
    }
    if (got <= 0) break;
    size += (size_t)got;
    if (options->max_copy && size > options->max_copy) status = too_large(options);
  }
  if (status) {
    if (data) kiln_mem_free(mapping->mem, data, capacity);
    return status;
  }
  mapping->data = data;
  mapping->size = size;
  mapping->block = capacity;
  return NULL;
}

static kiln_status *open_descriptor(kiln_mem *mem, int fd, bool stream,
                                    const kiln_file_options *options, kiln_mapping **out_mapping) {
  static const kiln_file_options plain = {0};
  struct stat info;
  kiln_mapping *mapping = NULL;
  if (!options) options = &plain;
  if (fstat(fd, &info) != 0) {
    return KILN_ERROR(KILN_INVALID_FILE, "the file cannot be read: %s", strerror(errno));
  }
  bool regular = S_ISREG(info.st_mode);
  if (!regular && (!stream || S_ISDIR(info.st_mode))) {
    return KILN_ERROR(KILN_INVALID_FILE,
                      S_ISDIR(info.st_mode) ? "a directory, not a file" : "not a regular file");
  }
  if (regular && (*out_mapping = find_open(options, &info))) return NULL;
  KILN_TRY(kiln_mapping_wrap(mem, NULL, 0, &mapping));
  mapping->info = info;
  kiln_status *status = NULL;
  size_t size = (size_t)info.st_size;
  if (!regular) {
    status = drain(mapping, fd, options);
  } else if (size > KILN_MAP_MIN && options->mode == KILN_MAP_AUTO) {
    status = map(mapping, fd, size);
  } else if (size > 0) {
    status = copy(mapping, fd, size, options);
  }
  if (status) {
    kiln_owner_release(&mapping->owner);
    return status;
  }
  if (regular && options->table) enter_table(options->table, mapping);
  *out_mapping = mapping;
  return NULL;
}

kiln_status *kiln_mapping_open_fd(kiln_mem *mem, int fd, const kiln_file_options *options,
                                  kiln_mapping **out_mapping) {
  return open_descriptor(mem, fd, true, options, out_mapping);
}

kiln_status *kiln_mapping_open(kiln_mem *mem, const char *path, const kiln_file_options *options,
                               kiln_mapping **out_mapping) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to hang on a pipe */
  if (fd < 0) {
    return KILN_ERROR(KILN_INVALID_FILE, "cannot open '%s': %s", path, strerror(errno));
  }
  kiln_status *status = open_descriptor(mem, fd, false, options, out_mapping);
  close(fd);
  return status ? kiln_status_note(status, "opening '%s'", path) : NULL;
}

/* -- Files that change -- */

kiln_mapping *kiln_mapping_of(kiln_owner *owner) {
  return owner && owner->destroy == destroy_mapping ? (kiln_mapping *)owner : NULL;
}

kiln_status *kiln_mapping_check(kiln_mapping *mapping, bool now) {
  struct timespec t;
  struct stat info;
  if (mapping->fd < 0) return NULL;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &t); /* some nanoseconds; ticks of some milliseconds */
  int64_t ticks = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
  if (!now && __atomic_load_n(&mapping->checked_at, __ATOMIC_RELAXED) == ticks) return NULL;
  if (fstat(mapping->fd, &info) != 0 || !unchanged(&info, &mapping->info)) {
    return KILN_ERROR(KILN_INVALID_FILE,
                      "the model's file was changed while it is in use; load it again (the option "
                      "map=copy keeps the weights in memory)");
  }
  __atomic_store_n(&mapping->checked_at, ticks, __ATOMIC_RELAXED);
  return NULL;
}
