/* scope.c: scopes and their cleanups.
 *
 * Cleanups run before the jump, while the frames that hold their nodes are still there. */
#include "base/scope.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"

_Thread_local kiln__thread kiln__this_thread;

void kiln_scope_enter(kiln_scope *scope) {
  kiln__thread *thread = &kiln__this_thread;
  scope->why = NULL;
  scope->outer = thread->scope;
  scope->budget = thread->budget;
  scope->cleanups.before = scope->cleanups.after = &scope->cleanups;
  thread->scope = scope;
}

static void end(kiln_scope *scope) {
  while (scope->cleanups.before != &scope->cleanups) {
    kiln_cleanup *node = scope->cleanups.before;
    kiln_scope_undefer(node);
    node->run(node->what);
  }
  kiln__thread *thread = &kiln__this_thread;
  thread->scope = scope->outer;
  thread->budget = scope->budget;
}

kiln_status *kiln_scope_leave(kiln_scope *scope, kiln_status *status) {
  end(scope);
  return status;
}

void kiln_scope_fail(kiln_status *why) {
  kiln_scope *scope = kiln__this_thread.scope;
  if (!scope) {
    fprintf(stderr, "kiln: outside of any scope: %s\n", kiln_status_report(why));
    abort();
  }
  end(scope);
  scope->why = why;
  longjmp(scope->jump, 1);
}

void kiln_scope_oom(void) { kiln_scope_fail(kiln_status_oom()); }

void kiln_scope_defer(kiln_cleanup *node, void (*run)(void *what), void *what) {
  kiln_scope *scope = kiln__this_thread.scope;
  *node = (kiln_cleanup){.run = run, .what = what};
  if (!scope) return;
  node->before = scope->cleanups.before;
  node->after = &scope->cleanups;
  node->before->after = node->after->before = node;
}

void kiln_scope_undefer(kiln_cleanup *node) {
  if (!node->before) return;
  node->before->after = node->after;
  node->after->before = node->before;
  node->before = node->after = NULL;
}
