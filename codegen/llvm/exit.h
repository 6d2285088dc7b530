/* exit.h: threads that are within LLVM when the process ends. For codegen/ only.
 *
 * exit() destroys LLVM's objects while other threads go on. A host that ends without releasing its
 * models, as many do, would crash in the thread that compiles beside its calls. So exit waits until
 * no thread is within LLVM, some milliseconds, and none gets in any more: what it is refused counts
 * as cancelled. There are two ways to be asked by exit before LLVM's objects are.
 *
 * A thread's own destructors run before all of the process's, so the main thread, which calls exit
 * in nearly all programs, gets one: at its start where the program is linked with the library, else
 * when it first loads or calls a model that compiles beside it. (The library then stays in memory,
 * as libLLVM does.) For other threads that call exit there are handlers, which are asked before
 * what LLVM had made until they were left: one is when libLLVM has been opened, and others are in
 * its first uses. In the moment of opening there is none: LLVM's own are newer. */
#pragma once

#include <stdbool.h>

/* Around each use of LLVM. False: the process ends, and it is not to be used. */
bool kiln__llvm_enter(void);
void kiln__llvm_leave(void);
/* LLVM was opened, or has done a step: leaves a handler, if it was one of the first. */
void kiln__llvm_watch_exit(void);
/* Of the main thread: leaves its destructor, once. Of others: nothing. */
void kiln__llvm_watch_main(void);
