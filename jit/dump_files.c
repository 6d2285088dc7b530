/* dump_files.c: the flag `dump`: every graph, plan and kernel that is made, as files of a folder.
 *
 *   METHOD#HASH.frontend.ir                     the graph as it was loaded
 *   METHOD#HASH.levelN.profiled.ir|.optimized.ir|.bytecode
 *   GROUP.HASH.loop|.ll|.s                      of a group's kernel
 *
 * A file that cannot be written is warned of; the folder was made with the context. */
#include <errno.h>
#include <stdio.h>

#include "jit/dump.h"

/* Letters, digits and a few signs stay. */
static char *file_name(kiln_arena *arena, const char *folder, const char *name) {
  char *path = kiln_arena_printf(arena, "%s/%s", folder, name);
  for (char *c = path + strlen(folder) + 1; *c; c++) {
    const bool plain = kiln_is_word(*c) || strchr(".-#", *c);
    if (!plain) *c = '_';
  }
  return path;
}

static void write_file(kiln_jit *jit, kiln_arena *arena, const char *name, const kiln_text *text) {
  const char *path = file_name(arena, jit->env.flags.dump.text, name);
  FILE *file = fopen(path, "w");
  bool good = file != NULL;
  if (file) {
    const kiln_str all = kiln_text_str(text);
    good = fwrite(all.data, 1, all.len, file) == all.len;
    good = fclose(file) == 0 && good;
  }
  if (!good) KILN_LOG(&jit->env.log, warn, 1, "dump: cannot write %s: %s", path, strerror(errno));
}

static const struct {
  kiln_jit_stage stage;
  const char *ending;
} stages[] = {
    {KILN_JIT_STAGE_PROFILED, "profiled.ir"},
    {KILN_JIT_STAGE_OPTIMIZED, "optimized.ir"},
    {KILN_JIT_STAGE_BYTECODE, "bytecode"},
    {KILN_JIT_STAGE_LOOP, "loop"},
    {KILN_JIT_STAGE_SCHEDULE, "schedule"},
    {KILN_JIT_STAGE_LLVM, "ll"},
    {KILN_JIT_STAGE_ASM, "s"},
};
enum { STAGE_COUNT = sizeof stages / sizeof stages[0] };

static kiln_status *dump_group(kiln__printer *printer, kiln_arena *arena,
                               const kiln_group_info *g) {
  for (int i = 0; i < STAGE_COUNT; i++) {
    if (!kiln__is_of_groups(stages[i].stage)) continue;
    *printer->text = kiln_text_in(arena);
    KILN_TRY(kiln__print_group(printer, g, stages[i].stage));
    write_file(printer->jit, arena,
               kiln_arena_printf(arena, "%s.%.8s.%s", g->name, g->hash, stages[i].ending),
               printer->text);
  }
  return NULL;
}

static kiln_status *print_all(kiln__printer *printer, kiln_arena *arena, const kiln_executor *ex,
                              const kiln_variant *v, kiln_group_list groups) {
  kiln_text *text = printer->text;
  if (v->depth == 0 && ex->function && ex->function->graph) {
    *text = kiln_text_in(arena);
    kiln_graph_print(text, ex->function->graph, 4, false);
    write_file(ex->jit, arena, kiln_arena_printf(arena, "%s.frontend.ir", ex->site), text);
  }
  for (int i = 0; i < STAGE_COUNT; i++) {
    if (kiln__is_of_groups(stages[i].stage)) continue;
    *text = kiln_text_in(arena);
    KILN_TRY(kiln__print_variant(printer, ex, v, stages[i].stage));
    write_file(ex->jit, arena,
               kiln_arena_printf(arena, "%s.level%d.%s", ex->site, v->depth, stages[i].ending),
               text);
  }
  for (const kiln_group_info *g = groups.first; g; g = g == groups.last ? NULL : g->next) {
    KILN_TRY(dump_group(printer, arena, g));
  }
  return NULL;
}

static kiln_status *dump_all(const kiln_executor *ex, const kiln_variant *v,
                             kiln_group_list groups) {
  kiln_text text;
  kiln__printer printer = {.jit = ex->jit, .text = &text};
  kiln_arena *arena = kiln_arena_scoped(ex->jit->env.mem);
  kiln__printer_begin(&printer);
  kiln_status *status = print_all(&printer, arena, ex, v, groups);
  kiln__printer_end(&printer);
  return status;
}

static kiln_status *try_all(const kiln_executor *ex, const kiln_variant *v,
                            kiln_group_list groups) {
  KILN_PROTECT(dump_all(ex, v, groups));
}

void kiln__dump_files(const kiln_executor *ex, const kiln_variant *v, kiln_group_list groups) {
  kiln_jit *jit = ex->jit;
  if (!*jit->env.flags.dump.text) return;
  kiln_status *status = try_all(ex, v, groups);
  if (status) KILN_LOG(&jit->env.log, warn, 1, "dump: %s", kiln_status_report(status));
  kiln_status_destroy(status);
}
