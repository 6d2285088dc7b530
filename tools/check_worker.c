/* check_worker.c: runs cases in child processes and hands their results back.
 *
 * One child runs many cases, so that libLLVM is loaded once; when it dies or hangs, the case at
 * hand has failed and a new child goes on behind it. Malformed archives get a child each, because
 * their limits cannot be taken back. Nothing of Kiln has run in the parent when it forks. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/check.h"

/* What goes through the pipe, followed by the reason's bytes. */
typedef struct message {
  check_result result; /* `reason` is of the other process */
  size_t reason_size;
} message;

enum { BAD_TIMEOUT_S = 60 };

void check_run(const check_options *options, const check_case *c, check_result *result) {
  *result = (check_result){0};
  if (c->complaint) {
    check_fail(result, tool_format("%s", c->complaint));
  } else if (strcmp(c->category, "training") == 0) {
    check_fail(result, tool_format("gradients are not built"));
  } else if (strcmp(c->category, "ops") == 0) {
    check_run_ops(options, c, result);
  } else if (strcmp(c->category, "language") == 0) {
    check_run_language(options, c, result);
  } else if (check_is_bad(c)) {
    check_run_bad(options, c, result);
  } else {
    check_run_recorded(options, c, result);
  }
}

/* -- The child -- */

static void run_child(const check_options *options, const check_case *cases, int count, int fd) {
  for (int i = 0; i < count; i++) {
    message m = {0};
    check_run(options, &cases[i], &m.result);
    m.reason_size = m.result.reason ? strlen(m.result.reason) : 0;
    bool good =
        tool_write_all(fd, &m, sizeof m) && tool_write_all(fd, m.result.reason, m.reason_size);
    free(m.result.reason);
    if (!good) break;
  }
  close(fd);
  exit(0); /* not _exit: a leak checker runs here */
}

/* -- The parent -- */

/* Reads `size` bytes; false at the end of the pipe or the deadline (then *out_timeout). */
static bool read_all(int fd, void *data, size_t size, double deadline_ms, bool *out_timeout) {
  for (char *p = data; size;) {
    double left = deadline_ms - tool_now_ms();
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    int ready = poll(&poller, 1, left > 0 ? (left < 1e9 ? (int)left + 1 : 1000000000) : 0);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      *out_timeout = true;
      return false;
    }
    ssize_t n = ready < 0 ? -1 : read(fd, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    size -= (size_t)n;
  }
  return true;
}

static bool read_result(int fd, double timeout_s, check_result *out_result, bool *out_timeout) {
  double deadline = tool_now_ms() + timeout_s * 1e3;
  message m;
  if (!read_all(fd, &m, sizeof m, deadline, out_timeout)) return false;
  *out_result = m.result;
  out_result->reason = NULL;
  if (m.reason_size == 0) return true;
  char *reason = tool_alloc(m.reason_size + 1);
  out_result->reason = reason;
  return read_all(fd, reason, m.reason_size, deadline, out_timeout);
}

static char *death_text(int status, bool timeout, double timeout_s) {
  if (timeout) return tool_format("did not end within %.0f s", timeout_s);
  if (WIFSIGNALED(status)) {
    return tool_format("crashed with signal %d (%s)", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  }
  return tool_format("the process ended with status %d", WEXITSTATUS(status));
}

/* Runs cases[first .. first + count) in a child; returns how many have a verdict (at least one). */
static int run_batch(const check_options *options, const check_case *cases, int first, int count,
                     check_done_fn done, void *user, bool *good_end) {
  int ends[2], finished = 0, status = 0;
  double timeout_s = check_is_bad(&cases[first]) && options->timeout_s > BAD_TIMEOUT_S
                         ? (double)BAD_TIMEOUT_S
                         : (double)options->timeout_s;
  fflush(stdout);
  fflush(stderr);
  if (pipe(ends) != 0) exit(tool_usage_error("check: no pipe: %s", strerror(errno)));
  pid_t child = fork();
  if (child < 0) exit(tool_usage_error("check: no process: %s", strerror(errno)));
  if (child == 0) {
    close(ends[0]);
    run_child(options, cases + first, count, ends[1]);
  }
  close(ends[1]);
  bool timeout = false;
  while (finished < count) {
    check_result result = {0};
    if (!read_result(ends[0], timeout_s, &result, &timeout)) {
      free(result.reason);
      break;
    }
    done(user, first + finished++, &result);
    free(result.reason);
  }
  close(ends[0]);
  if (timeout) kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (finished < count) {
    check_result result = {0};
    check_fail(&result, death_text(status, timeout, timeout_s));
    done(user, first + finished++, &result);
    free(result.reason);
  } else if (status != 0) {
    char *text = death_text(status, false, 0);
    tool_usage_error("check: after case '%s' %s", cases[first + count - 1].name, text);
    free(text);
    *good_end = false;
  }
  return finished;
}

bool check_run_all(const check_options *options, const check_case *cases, int count,
                   check_done_fn done, void *user) {
  bool good_end = true;
  for (int i = 0; i < count;) {
    if (options->in_process) {
      check_result result;
      check_run(options, &cases[i], &result);
      done(user, i++, &result);
      free(result.reason);
      continue;
    }
    int batch = 1;
    while (!check_is_bad(&cases[i]) && i + batch < count && !check_is_bad(&cases[i + batch])) {
      batch++;
    }
    i += run_batch(options, cases, i, batch, done, user, &good_end);
  }
  return good_end;
}
