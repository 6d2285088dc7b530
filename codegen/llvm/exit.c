/* exit.c: counting the threads within LLVM, and waiting for them at exit. */
#include "codegen/llvm/exit.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Of the process, as LLVM is. After a fork() only the child's own threads count. */
static int threads_inside;  /* atomic */
static pid_t counted_for;   /* atomic */
static bool process_ends;   /* atomic */
static int exit_is_watched; /* atomic: how often */
/* Of this thread: it may end the process from within. */
static _Thread_local int own_depth;
static _Thread_local bool is_watched;

static void count_anew_in_child(void) {
  pid_t was = __atomic_load_n(&counted_for, __ATOMIC_ACQUIRE);
  const pid_t self = getpid();
  if (was == self) return;
  if (__atomic_compare_exchange_n(&counted_for, &was, self, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_RELAXED))
    __atomic_store_n(&threads_inside, own_depth > 0, __ATOMIC_RELEASE);
}

bool kiln__llvm_enter(void) {
  count_anew_in_child();
  if (own_depth++ == 0) __atomic_add_fetch(&threads_inside, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&process_ends, __ATOMIC_SEQ_CST)) return true;
  kiln__llvm_leave();
  return false;
}

void kiln__llvm_leave(void) {
  if (--own_depth == 0) __atomic_sub_fetch(&threads_inside, 1, __ATOMIC_SEQ_CST);
}

static void wait_at_exit(void) {
  enum { NS = 200000, MOST = 50000 }; /* ten seconds: a thread that hangs keeps no process */
  count_anew_in_child();
  __atomic_store_n(&process_ends, true, __ATOMIC_SEQ_CST);
  for (int i = 0; i < MOST; i++) {
    if (__atomic_load_n(&threads_inside, __ATOMIC_SEQ_CST) <= (own_depth > 0)) return;
    (void)nanosleep(&(struct timespec){.tv_nsec = NS}, NULL);
  }
}

void kiln__llvm_watch_exit(void) {
  enum { MOST = 1000 };
  if (__atomic_load_n(&exit_is_watched, __ATOMIC_RELAXED) >= MOST) return;
  __atomic_add_fetch(&exit_is_watched, 1, __ATOMIC_RELAXED);
  (void)atexit(wait_at_exit);
}

/* Of the C library, where destructors of C++'s thread-local objects are left; other libraries lack
 * it. */
extern int __cxa_thread_atexit_impl(void (*destroy)(void *object), void *object, void *library)
    __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

static void end_main(void *object) {
  (void)object;
  wait_at_exit();
}

void kiln__llvm_watch_main(void) {
  if (is_watched) return;
  is_watched = true;
  if (__cxa_thread_atexit_impl && syscall(SYS_gettid) == getpid())
    (void)__cxa_thread_atexit_impl(end_main, NULL, &__dso_handle);
}

/* Whether the library is in the program itself. */
static bool is_in_program(void) {
  Dl_info own, program;
  return dladdr((void *)(uintptr_t)kiln__llvm_watch_main, &own) &&
         dladdr((void *)(uintptr_t)getauxval(AT_ENTRY), &program) &&
         own.dli_fbase == program.dli_fbase;
}

/* Of a program that is linked with the library: its main thread may never call it itself. Elsewhere
 * the library may be unloaded, if nobody has called it. */
__attribute__((constructor)) static void watch_linked(void) {
  if (is_in_program() || dlsym(RTLD_DEFAULT, "kiln_version")) kiln__llvm_watch_main();
}
