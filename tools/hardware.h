/* hardware.h: what the processor counts while calls run (perf_event_open). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TOOL_EVENTS(X)                                              \
  X(cycles, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES)           \
  X(instructions, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS)   \
  X(branch_misses, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES) \
  X(cache_misses, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES)   \
  X(page_faults, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS)     \
  X(context_switches, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES)

#define TOOL_EVENT_ENUM(name, type, config) TOOL_EVENT_##name,
typedef enum tool_event { TOOL_EVENTS(TOOL_EVENT_ENUM) TOOL_EVENT__COUNT } tool_event;
#undef TOOL_EVENT_ENUM
extern const char *const tool_event_names[TOOL_EVENT__COUNT];

typedef struct tool_hardware {
  int fds[TOOL_EVENT__COUNT]; /* -1: the system refuses it */
  int error;                  /* errno of the first that it refused; 0 */
} tool_hardware;

/* Of this thread and those that it starts from now on, in user code; stopped. */
void tool_hardware_open(tool_hardware *h);
void tool_hardware_run(const tool_hardware *h, bool on);
/* False where it was refused. Scaled where events had to take turns. */
bool tool_hardware_read(const tool_hardware *h, tool_event event, double *out_count);
void tool_hardware_close(tool_hardware *h);
