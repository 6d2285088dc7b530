/* hardware.c: see hardware.h. */
#include "tools/hardware.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME(name, type, config) #name,
const char *const tool_event_names[TOOL_EVENT__COUNT] = {TOOL_EVENTS(NAME)};
#undef NAME

#define EVENT(name, type, config) {type, config},
static const struct {
  uint32_t type;
  uint64_t config;
} events[TOOL_EVENT__COUNT] = {TOOL_EVENTS(EVENT)};
#undef EVENT

void tool_hardware_open(tool_hardware *h) {
  h->error = 0;
  for (int i = 0; i < TOOL_EVENT__COUNT; i++) {
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = events[i].type,
        .config = events[i].config,
        .disabled = 1,
        .inherit = 1,
        .exclude_kernel = events[i].type == PERF_TYPE_HARDWARE,
        .exclude_hv = 1,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING};
    h->fds[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (h->fds[i] < 0 && !h->error) h->error = errno;
  }
}

void tool_hardware_run(const tool_hardware *h, bool on) {
  for (int i = 0; i < TOOL_EVENT__COUNT; i++)
    if (h->fds[i] >= 0)
      (void)ioctl(h->fds[i], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

bool tool_hardware_read(const tool_hardware *h, tool_event event, double *out_count) {
  uint64_t got[3]; /* count, nanoseconds that it was on, and that it counted */
  if (h->fds[event] < 0 || read(h->fds[event], got, sizeof got) != sizeof got || !got[2])
    return false;
  *out_count = (double)got[0] * ((double)got[1] / (double)got[2]);
  return true;
}

void tool_hardware_close(tool_hardware *h) {
  for (int i = 0; i < TOOL_EVENT__COUNT; i++)
    if (h->fds[i] >= 0) close(h->fds[i]);
}
