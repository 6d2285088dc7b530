/* gdb.c: see gdb.h. */
#include "codegen/gdb.h"

#include <pthread.h>

/* -- What debuggers know by these names and these places -- */

enum { NO_ACTION, REGISTER, UNREGISTER };

typedef struct code_entry {
  struct code_entry *next, *prev;
  const void *file;
  uint64_t size;
} code_entry;

struct jit_descriptor {
  uint32_t version, action;
  code_entry *relevant, *first;
};
extern struct jit_descriptor __jit_debug_descriptor;
void __jit_debug_register_code(void);

struct jit_descriptor __jit_debug_descriptor = {.version = 1};
__attribute__((noinline, used)) void __jit_debug_register_code(void) {
  __asm__ volatile("" ::: "memory"); /* the call stays */
}

/* -- The list -- */

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

struct kiln__gdb_entry {
  code_entry public;
  kiln_mem *mem;
  size_t bytes; /* of this block, the file behind it */
};

static void tell(uint32_t action, code_entry *entry) {
  __jit_debug_descriptor.action = action;
  __jit_debug_descriptor.relevant = entry;
  __jit_debug_register_code();
  __jit_debug_descriptor.action = NO_ACTION;
  __jit_debug_descriptor.relevant = NULL;
}

kiln_status *kiln__gdb_enter(kiln_mem *mem, const void *object, size_t size,
                             const kiln__pages *pages, const char *symbol, const char *name,
                             kiln__gdb_entry **out_entry) {
  const size_t bytes = sizeof(kiln__gdb_entry) + size;
  kiln__gdb_entry *entry = kiln_mem_alloc(mem, bytes);
  if (!entry) return kiln_status_oom();
  *entry =
      (kiln__gdb_entry){.public = {.file = entry + 1, .size = size}, .mem = mem, .bytes = bytes};
  kiln_status *status = kiln__object_describe(object, size, pages, symbol, name, entry + 1);
  if (status) {
    kiln_mem_free(mem, entry, bytes);
    return status;
  }
  pthread_mutex_lock(&list_lock);
  code_entry *next = entry->public.next = __jit_debug_descriptor.first;
  if (next) next->prev = &entry->public;
  __jit_debug_descriptor.first = &entry->public;
  tell(REGISTER, &entry->public);
  pthread_mutex_unlock(&list_lock);
  *out_entry = entry;
  return NULL;
}

void kiln__gdb_leave(kiln__gdb_entry *entry) {
  if (!entry) return;
  pthread_mutex_lock(&list_lock);
  code_entry *next = entry->public.next, *prev = entry->public.prev;
  if (next) next->prev = prev;
  *(prev ? &prev->next : &__jit_debug_descriptor.first) = next;
  tell(UNREGISTER, &entry->public);
  pthread_mutex_unlock(&list_lock);
  kiln_mem_free(entry->mem, entry, entry->bytes);
}
