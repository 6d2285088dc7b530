/* process.c: the process that compiles: started, asked, killed, and what it does.
 *
 * It is a fork that executes nothing else: the code that it needs is in memory, wherever the host
 * has got it from (a library, a static one, a plugin), at the price of glibc's rules for forks of
 * threads: fork() keeps malloc and dlopen usable in the child, and the child touches nothing else
 * that another thread may have held: it has an env of its own, over malloc, and neither logs nor
 * calls back. LLVM's own locks are free, because the parent does not run LLVM (a host that runs the
 * same libLLVM itself at that moment is the exception: the child may then hang, until the budget is
 * over). Pages of the host that it writes to meanwhile are copied, so the process lives no longer
 * than a compile job (kiln_codegen_begin). */
#include "codegen/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/sanitize.h"
#include "codegen/loop/schedule.h"

enum {
  POLL_MS = 5,          /* between two looks at the budget */
  ORPHAN_POLL_MS = 1000 /* between two looks whether the host is there */
};
static const uint64_t product_max = (uint64_t)1 << 28; /* as the object loader's */

/* Followed by the text. */
typedef struct request {
  uint64_t text_size;
  uint64_t memory;
  uint32_t seconds; /* after which nobody waits any more; 0: somebody always does */
  int32_t product;
  char name[KILN_KERNEL_SYMBOL_BYTES];
} request;

/* Followed by the product. */
typedef struct reply {
  uint64_t size;
  int32_t code, reason; /* KILN_OK, or why not */
  char message[256];
} reply;

/* -- In the child -- */

typedef struct server {
  int socket;
  pid_t host;
  uint64_t data_at_start; /* bytes that the limit does not mean */
  kiln_env env;
  kiln__llvm_backend *llvm;
  bool broken; /* LLVM: the process ends */
} server;

/* Bytes of this process that RLIMIT_DATA counts; 0 where there is no /proc, which makes the limit
 * one for everything. */
static uint64_t data_bytes(void) {
  char text[4096];
  const int fd = open("/proc/self/status", O_RDONLY);
  if (fd < 0) return 0;
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  text[size > 0 ? size : 0] = 0;
  const char *line = strstr(text, "VmData:");
  return line ? strtoull(line + strlen("VmData:"), NULL, 10) << 10 : 0;
}

static void set_limit(int resource, uint64_t most) {
  struct rlimit limit;
  if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) return;
  limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
  setrlimit((__rlimit_resource_t)resource, &limit);
}

/* Not under a sanitizer: AddressSanitizer waits for itself when it is to tell of lack of memory. */
static void limit_memory(const server *s, uint64_t more) {
  if (KILN_SANITIZED) return;
  const bool any = more && more < UINT64_MAX - s->data_at_start;
  set_limit(RLIMIT_DATA, any ? s->data_at_start + more : RLIM_INFINITY);
}

/* Whoever runs out of memory for all, the system ends this process first. */
static void volunteer(void) {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY);
  if (fd < 0) return;
  const ssize_t written = write(fd, "1000", 4);
  (void)written;
  close(fd);
}

/* Leaves alone what is the host's: its handlers, its core dumps, its output, and its files, whose
 * readers may wait for the last holder to close them. Returns the socket. */
static int isolate(int socket) {
  enum { OURS = 3 };
  for (int s = 1; s < NSIG; s++) signal(s, SIG_DFL); /* all are blocked; LLVM's end is not */
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &alarms, NULL);
  prctl(PR_SET_NAME, "kiln-compile");
  volunteer();
  prctl(PR_SET_DUMPABLE, 0); /* after which its files in /proc are root's */
  set_limit(RLIMIT_CORE, 0);
  const int high = fcntl(socket, F_DUPFD, OURS + 1);
  const int none = open("/dev/null", O_RDWR);
  if (high < 0 || none < 0) _exit(1);
  dup2(none, 0);
  dup2(none, 1);
  if (!KILN_SANITIZED) dup2(none, 2); /* else reports are wanted */
  dup2(high, OURS);
  syscall(SYS_close_range, OURS + 1, ~0U, 0); /* before Linux 5.9 they stay open for so long */
  return OURS;
}

/* Without the host there is nobody to answer. */
static void receive_all(const server *s, void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    struct pollfd wait = {.fd = s->socket, .events = POLLIN};
    if (poll(&wait, 1, ORPHAN_POLL_MS) == 0) {
      if (getppid() != s->host) _exit(0);
      continue;
    }
    const ssize_t got = recv(s->socket, (char *)bytes + done, size - done, 0);
    if (got <= 0) _exit(0);
    done += (size_t)got;
  }
}

static void send_all(const server *s, const void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t sent = send(s->socket, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
    if (sent <= 0) _exit(0);
    done += (size_t)sent;
  }
}

/* Whatever it leaves behind ends with the process. */
static kiln_status *serve_one(server *s, const request *r, kiln_reason *out_reason,
                              void **out_bytes, size_t *out_size) {
  char *text = kiln_mem_alloc(s->env.mem, r->text_size);
  *out_reason = KILN_REASON_out_of_memory;
  if (!text) return kiln_status_oom();
  receive_all(s, text, r->text_size);
  if (!s->llvm) {
    *out_reason = KILN_REASON_llvm_missing;
    KILN_TRY(kiln__llvm_backend_create(&s->env, s->env.isa, &s->broken, &s->llvm));
  }
  *out_reason = KILN_REASON_llvm_failed;
  kiln_arena *arena = kiln_arena_scoped(s->env.mem);
  kiln_scheduled scheduled;
  KILN_TRY(kiln_scheduled_parse(kiln_str_make(text, r->text_size), arena, &scheduled));
  const kiln__llvm_product product = (kiln__llvm_product)r->product;
  const kiln_loop_flat flat = kiln_loop_flatten(scheduled.fn, kiln__llvm_width(product), arena);
  KILN_TRY(kiln__llvm_backend_compile(s->llvm, &flat, r->name, product, out_bytes, out_size));
  kiln_mem_free(s->env.mem, text, r->text_size);
  *out_reason = KILN_REASON_none;
  return NULL;
}
/* The scopes that this thread has entered are the host's. */
static kiln_status *try_one(server *s, const request *r, kiln_reason *out_reason, void **out_bytes,
                            size_t *out_size) {
  KILN_PROTECT(serve_one(s, r, out_reason, out_bytes, out_size));
}

static _Noreturn void serve(const kiln_env *host_env, pid_t host, int socket) {
  server s = {.socket = isolate(socket), .host = host, .env = *host_env};
  const kiln_budget *hosts = kiln_budget_enter(NULL);
  (void)hosts; /* its deadline is kept by killing */
  s.data_at_start = data_bytes();
  s.env.log = (kiln_log){0};
  s.env.pool = NULL;
  if (kiln_mem_create(KILN_MEM_SYSTEM, &s.env.mem)) _exit(1);
  for (;;) {
    request r;
    reply answer = {0};
    kiln_reason reason = KILN_REASON_none;
    void *bytes = NULL;
    size_t size = 0;
    receive_all(&s, &r, sizeof r);
    alarm(r.seconds); /* the host kills earlier, if it still lives */
    limit_memory(&s, r.memory);
    const kiln_status *status = try_one(&s, &r, &reason, &bytes, &size);
    answer.code = (int32_t)kiln_status_code(status);
    answer.reason = (int32_t)reason;
    answer.size = size;
    if (status) {
      snprintf(answer.message, sizeof answer.message, "%s", kiln_status_message(status));
    }
    send_all(&s, &answer, sizeof answer);
    send_all(&s, bytes, size);
    if (status) _exit(0);
    alarm(0);
    kiln_mem_free(s.env.mem, bytes, size);
  }
}

/* -- In the host -- */

static kiln_status *start(kiln__process *p, const kiln_env *env) {
  int sockets[2];
  sigset_t all, old;
  const pid_t host = getpid();
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return KILN_ERROR(KILN_UNSUPPORTED, "no socket to the process that compiles: %s",
                      strerror(errno));
  }
  /* The child inherits the mask: the host's handlers never run in it. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  const pid_t pid = fork();
  if (pid == 0) serve(env, host, sockets[1]);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  close(sockets[1]);
  if (pid < 0) {
    close(sockets[0]);
    return KILN_ERROR(KILN_UNSUPPORTED, "the process that compiles could not be started: %s",
                      strerror(error));
  }
  *p = (kiln__process){.pid = pid,
                       .owner = host,
                       .handle = (int)syscall(SYS_pidfd_open, pid, 0),
                       .socket = sockets[0]};
  return NULL;
}

/* Kills and reaps it. *out_status is wait's, or -1 where the host's own wait has had it. */
static void finish(kiln__process *p, int *out_status) {
  *out_status = -1;
  if (!p->pid) return;
  close(p->socket);
  if (p->owner == getpid()) {
    if (p->handle < 0 || syscall(SYS_pidfd_send_signal, p->handle, SIGKILL, NULL, 0) != 0) {
      kill(p->pid, SIGKILL);
    }
    while (waitpid(p->pid, out_status, 0) < 0 && errno == EINTR) continue;
  }
  if (p->handle >= 0) close(p->handle);
  *p = (kiln__process){0};
}

void kiln__process_end(kiln__process *p) {
  int status;
  finish(p, &status);
}

static kiln_status *tell_end(kiln__process *p) {
  int status;
  finish(p, &status);
  if (status == -1 || !WIFSIGNALED(status)) {
    return KILN_ERROR(KILN_INTERNAL, "the process that compiles has ended");
  }
  return KILN_ERROR(KILN_INTERNAL, "the process that compiles ended by signal %d%s",
                    WTERMSIG(status),
                    WTERMSIG(status) == SIGABRT ? ": so LLVM ends when memory is short" : "");
}

/* Until the socket is ready. A child of the host's may hold a copy of its other end, so the end of
 * the process is looked for, too. */
static kiln_status *await(kiln__process *p, short events) {
  for (;;) {
    const kiln_budget *budget = kiln_budget_current();
    KILN_TRY(kiln_budget_check(budget, 0));
    struct pollfd waits[2] = {{.fd = p->socket, .events = events},
                              {.fd = p->handle, .events = POLLIN}};
    const int ready = poll(waits, 2, kiln_budget_may_end(budget) ? POLL_MS : -1);
    if (ready > 0 && waits[0].revents) return NULL;
    if (ready > 0 && waits[1].revents) return tell_end(p);
  }
}

static kiln_status *put(kiln__process *p, const void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    KILN_TRY(await(p, POLLOUT));
    const ssize_t sent =
        send(p->socket, (const char *)bytes + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return tell_end(p);
    if (sent > 0) done += (size_t)sent;
  }
  return NULL;
}

static kiln_status *get(kiln__process *p, void *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    KILN_TRY(await(p, POLLIN));
    const ssize_t got = recv(p->socket, (char *)bytes + done, size - done, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return tell_end(p);
    if (got > 0) done += (size_t)got;
  }
  return NULL;
}

/* Until the budget's deadline, and some. */
static uint32_t seconds_left(const kiln_budget *budget) {
  const uint64_t now = kiln_now_ns(), second = 1000000000;
  if (!budget || !budget->deadline_ns) return 0;
  const uint64_t left = budget->deadline_ns > now ? (budget->deadline_ns - now) / second : 0;
  return left < 86400 ? (uint32_t)left + 2 : 86400;
}

typedef struct exchange {
  kiln__process *process;
  const kiln_env *env;
  kiln_str text; /* of the kernel */
  request request;
  reply reply;
} exchange;

static kiln_status *get_product(exchange *e, void **out_bytes, size_t *out_size) {
  if (e->reply.size > product_max) {
    return KILN_ERROR(KILN_INTERNAL, "the process that compiles gives %llu bytes",
                      (unsigned long long)e->reply.size);
  }
  *out_size = (size_t)e->reply.size;
  *out_bytes = kiln_mem_alloc(e->env->mem, *out_size);
  if (!*out_bytes) return kiln_status_oom();
  kiln_status *status = get(e->process, *out_bytes, *out_size);
  if (!status) return NULL;
  kiln_mem_free(e->env->mem, *out_bytes, *out_size);
  *out_bytes = NULL;
  return status;
}

static kiln_status *ask(exchange *e, void **out_bytes, size_t *out_size) {
  e->request.text_size = e->text.len;
  KILN_TRY(put(e->process, &e->request, sizeof e->request));
  KILN_TRY(put(e->process, e->text.data, e->text.len));
  KILN_TRY(get(e->process, &e->reply, sizeof e->reply));
  if ((uint32_t)e->reply.code >= KILN_CODE__COUNT ||
      (uint32_t)e->reply.reason >= KILN_REASON__COUNT) {
    e->reply.code = KILN_OK;
    return KILN_ERROR(KILN_INTERNAL, "the process that compiles gives no answer");
  }
  e->reply.message[sizeof e->reply.message - 1] = 0;
  if (e->reply.code == KILN_OUT_OF_MEMORY) return kiln_status_oom();
  if (e->reply.code) return KILN_ERROR((kiln_code)e->reply.code, "%s", e->reply.message);
  return get_product(e, out_bytes, out_size);
}

kiln_status *kiln__process_compile(kiln__process *p, const kiln_env *env, uint64_t memory,
                                   kiln_str text, const char *name, kiln__llvm_product product,
                                   kiln_reason *out_reason, void **out_bytes, size_t *out_size) {
  exchange e = {.process = p,
                .env = env,
                .text = text,
                .request = {.memory = memory,
                            .seconds = seconds_left(kiln_budget_current()),
                            .product = (int32_t)product}};
  snprintf(e.request.name, sizeof e.request.name, "%s", name);
  *out_bytes = NULL;
  *out_size = 0;
  if (p->pid && p->owner != getpid()) kiln__process_end(p);
  kiln_status *status = p->pid ? NULL : start(p, env);
  if (!status) status = ask(&e, out_bytes, out_size);
  *out_reason = KILN_REASON_none;
  if (!status) return NULL;
  *out_reason = kiln_status_ends(status) ? KILN_REASON_compile_budget
                : e.reply.code           ? (kiln_reason)e.reply.reason
                                         : KILN_REASON_process_ended;
  kiln__process_end(p);
  return status;
}
