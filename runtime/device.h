/* device.h: where memory lies and kernels run.
 *
 * A device is an object: it gives out memory, copies it, and launches kernels. A storage points to
 * its own, a group is launched through its own, and an operator's column DEVICES says on which
 * kinds of devices its kernel runs beside the CPU. TorchScript's value (torch.device) is a
 * kiln_device_id; kiln_device_find leads from it to the object, where there is one.
 *
 * The CPU is the first object, and the only one. It has no state of its own: blocks come from the
 * caller's kiln_mem, threads from the call's pool. So it is one constant for all contexts. A device
 * with a state, such as a driver's context, will be the environment's, and kiln_device_find will
 * ask that. A launch on the CPU is over when it returns; the first device whose launch is not gets
 * an event of a storage's last write and a synchronise before the host reads, here. */
#pragma once

#include "base/mem.h"
#include "base/text.h"

/* TorchScript's kinds of devices, as it spells them. */
#define KILN_DEVICE_LIST(X) \
  X(CPU, "cpu")             \
  X(CUDA, "cuda")           \
  X(META, "meta")

typedef enum kiln_device_kind {
#define KILN_DEVICE_ENUM(name, text) KILN_DEVICE_##name,
  KILN_DEVICE_LIST(KILN_DEVICE_ENUM)
#undef KILN_DEVICE_ENUM
      KILN_DEVICE__COUNT
} kiln_device_kind;

typedef struct kiln_device_id {
  int8_t kind;   /* kiln_device_kind */
  int16_t index; /* -1: none given */
} kiln_device_id;
#define KILN_CPU ((kiln_device_id){KILN_DEVICE_CPU, -1})

struct kiln_call;
struct kiln_group;
struct kiln_kernel_args;

typedef struct kiln_device {
  kiln_device_id id;
  /* A block of its memory, 64-byte aligned, counted against `mem`; NULL: there is none left. A host
   * device may take it from `cache` (which may be NULL). */
  void *(*allocate)(const struct kiln_device *self, kiln_mem *mem, kiln_cache *cache, size_t bytes);
  void (*release)(const struct kiln_device *self, kiln_mem *mem, kiln_cache *cache, void *data,
                  size_t bytes);
  /* From its memory to its memory. */
  void (*copy)(const struct kiln_device *self, void *to, const void *from, size_t bytes);
  /* Runs a group's kernel over its whole extent. `args` has everything but scratch. */
  kiln_status *(*launch)(const struct kiln_device *self, struct kiln_call *call,
                         const struct kiln_group *group, const struct kiln_kernel_args *args);
} kiln_device;

extern const kiln_device kiln_device_cpu;

/* NULL: this machine has no such device, or Kiln does not drive it. */
const kiln_device *kiln_device_find(kiln_device_id id);

/* "cuda"; "unknown" for what is no kind. */
const char *kiln_device_kind_name(int kind);
/* "cuda:0", and without a number what has none. */
void kiln_device_print(kiln_text *text, kiln_device_id id);
/* The inverse; false when the text names no device. */
bool kiln_device_parse(kiln_str text, kiln_device_id *out_id);
