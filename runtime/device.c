/* device.c: the names of devices, and the CPU. */
#include "runtime/device.h"

#include "runtime/block.h"
#include "runtime/plan.h"

/* -- Names -- */

static const char *const kind_names[] = {
#define KIND_NAME(name, text) text,
    KILN_DEVICE_LIST(KIND_NAME)
#undef KIND_NAME
};

const char *kiln_device_kind_name(int kind) {
  return (unsigned)kind < KILN_DEVICE__COUNT ? kind_names[kind] : "unknown";
}

void kiln_device_print(kiln_text *text, kiln_device_id id) {
  kiln_text_puts(text, kiln_device_kind_name(id.kind));
  if (id.index >= 0) kiln_text_printf(text, ":%d", id.index);
}

bool kiln_device_parse(kiln_str text, kiln_device_id *out_id) {
  for (int kind = 0; kind < KILN_DEVICE__COUNT; kind++) {
    const size_t n = strlen(kind_names[kind]);
    int64_t index = -1;
    if (!kiln_str_starts(text, kind_names[kind])) continue;
    if (text.len > n &&
        (text.data[n] != ':' ||
         !kiln_str_parse_i64(kiln_str_make(text.data + n + 1, text.len - n - 1), &index) ||
         index < 0 || index > INT8_MAX)) {
      return false;
    }
    *out_id = (kiln_device_id){(int8_t)kind, (int16_t)index};
    return true;
  }
  return false;
}

/* -- The CPU -- */

static void *allocate(const kiln_device *self, kiln_mem *mem, kiln_cache *cache, size_t bytes) {
  (void)self;
  return kiln__block_alloc(mem, cache, bytes);
}

static void release(const kiln_device *self, kiln_mem *mem, kiln_cache *cache, void *data,
                    size_t bytes) {
  (void)self;
  kiln__block_free(mem, cache, data, bytes);
}

static void copy(const kiln_device *self, void *to, const void *from, size_t bytes) {
  (void)self;
  if (bytes > 0) memcpy(to, from, bytes);
}

typedef struct range_run {
  const kiln_group *group;
  const kiln_kernel_work *work;
  const kiln_kernel_args *args;
  size_t scratch_bytes; /* of each worker */
} range_run;

static void run_range(void *data, int64_t begin, int64_t end, int worker) {
  const range_run *run = data;
  kiln_kernel_args args = *run->args;
  if (args.scratch) args.scratch = (char *)args.scratch + (size_t)worker * run->scratch_bytes;
  while (begin < end) {
    kiln_kernel_box box;
    begin += kiln_kernel_next_box(run->work, begin, end, &box);
    run->group->fn(&args, &box);
  }
}

/* On the pool's threads where that pays. */
static kiln_status *launch(const kiln_device *self, kiln_call *call, const kiln_group *group,
                           const kiln_kernel_args *given) {
  (void)self;
  kiln_kernel_work work = group->work;
  if (group->shape && !kiln_kernel_shape_work(group->shape, given->symbols, &work))
    return KILN_ERROR(KILN_OP_ERROR, "%s: sizes of more than 2^63", group->name);
  const int64_t extent = kiln_kernel_range(&work);
  const bool split = call->pool && extent / 2 >= work.grain;
  const size_t each = (work.scratch_bytes + 63) & ~(size_t)63;
  const size_t bytes = split ? each * (size_t)kiln_pool_threads(call->pool) : each;
  kiln_kernel_args args = *given;
  if (bytes > 0) {
    args.scratch = kiln_cache_alloc(&call->cache, bytes);
    if (!args.scratch) return kiln_status_oom();
  }
  if (split || kiln_budget_may_end(&call->budget)) {
    range_run run = {group, &work, &args, each};
    kiln_pool_for(call->pool, extent, work.grain, run_range, &run);
  } else {
    group->fn(&args, &work.grid);
  }
  if (args.scratch) kiln_cache_free(&call->cache, args.scratch, bytes);
  return NULL;
}

const kiln_device kiln_device_cpu = {.id = {KILN_DEVICE_CPU, -1},
                                     .allocate = allocate,
                                     .release = release,
                                     .copy = copy,
                                     .launch = launch};

const kiln_device *kiln_device_find(kiln_device_id id) {
  return id.kind == KILN_DEVICE_CPU ? &kiln_device_cpu : NULL;
}
