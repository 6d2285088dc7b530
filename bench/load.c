/* load.c: what loading an archive costs: time, memory beyond the file's own pages, what a second
 * load of the same file adds, and the speed of the source parser on the archive's code.
 *
 * bench_load MODEL.pt [TIMES] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/bench.h"
#include "frontend/torchscript/parser.h"
#include "kiln/debug.h"

static double now_ms(void) { return 1e3 * bench_seconds(); }

/* A line of /proc/self/status in bytes: VmHWM is the most resident so far. */
static double status_bytes(const char *name) {
  FILE *file = fopen("/proc/self/status", "r");
  char line[256];
  double bytes = 0;
  while (file && fgets(line, sizeof line, file)) {
    size_t len = strlen(name);
    if (strncmp(line, name, len) == 0 && line[len] == ':') bytes = atof(line + len + 1) * 1024;
  }
  if (file) fclose(file);
  return bytes;
}

static void must(kiln_status *status) {
  if (!status) return;
  fprintf(stderr, "%s\n", kiln_status_report(status));
  exit(1);
}

/* -- Loads -- */

static void time_loads(kiln_context *context, const char *path, int times) {
  struct stat info;
  double *ms = malloc(sizeof *ms * (size_t)times);
  double before = status_bytes("VmHWM");
  if (!ms || stat(path, &info) != 0) exit(1);
  for (int i = 0; i < times; i++) {
    kiln_model *model = NULL;
    double start = now_ms();
    must(kiln_model_load(context, path, NULL, &model));
    ms[i] = now_ms() - start;
    if (i == 0) {
      double peak = status_bytes("VmHWM"), file = (double)info.st_size;
      printf("first load          %8.2f ms\n", ms[0]);
      printf("peak resident       %8.2f MB, of which the file %.2f MB, other %.2f MB (%.2f MB "
             "before the load)\n",
             peak * 1e-6, file * 1e-6, (peak - file) * 1e-6, before * 1e-6);
    }
    kiln_model_release(model);
  }
  printf("median load         %8.2f ms of %d\n", bench_median(ms, times), times);
  free(ms);
}

static void load_twice(kiln_context *context, const char *path) {
  kiln_model *a = NULL, *b = NULL;
  must(kiln_model_load(context, path, NULL, &a));
  double resident = status_bytes("VmRSS");
  uint64_t mapped = kiln_context_mapped_bytes(context);
  must(kiln_model_load(context, path, NULL, &b));
  printf("a second model      %8.2f MB more resident, %.2f MB more mapped (%.2f MB by the first)\n",
         (status_bytes("VmRSS") - resident) * 1e-6,
         (double)(kiln_context_mapped_bytes(context) - mapped) * 1e-6, (double)mapped * 1e-6);
  kiln_model_release(a);
  kiln_model_release(b);
}

/* -- The parser -- */

typedef struct parsing {
  kiln_arena *arena;
  char **texts;
  size_t *sizes;
  int count;
} parsing;

static void add_source(void *user, const char *const *cells, int count) {
  parsing *p = user;
  if (count < 2 || strcmp(cells[0], "file") == 0) return;
  p->texts = realloc(p->texts, sizeof *p->texts * (size_t)(p->count + 1));
  p->sizes = realloc(p->sizes, sizeof *p->sizes * (size_t)(p->count + 1));
  if (!p->texts || !p->sizes) exit(1);
  p->texts[p->count] = strdup(cells[1]);
  p->sizes[p->count++] = strlen(cells[1]);
}

static kiln_status *parse_all(const parsing *p) {
  for (int i = 0; i < p->count; i++) {
    kiln_source *source = KILN_NEW(p->arena, kiln_source);
    kiln_ast *ast;
    source->name = KILN_STR("source");
    source->text = kiln_str_make(p->texts[i], p->sizes[i]);
    source->first_line = 1;
    KILN_TRY(kiln_ast_parse(p->arena, source, NULL, &ast));
  }
  return NULL;
}

static void time_parser(kiln_context *context, const char *path) {
  parsing p = {0};
  kiln_model *model = NULL;
  kiln_mem *mem = NULL;
  size_t bytes = 0;
  must(kiln_debug_model_open(context, path, NULL, &model));
  must(kiln_debug_model_sources(model, add_source, &p));
  kiln_model_release(model);
  for (int i = 0; i < p.count; i++) bytes += p.sizes[i];
  must(kiln_mem_create(KILN_MEM_DEFAULT, &mem));
  must(kiln_arena_create(mem, &p.arena));
  double best = 1e30;
  for (int i = 0; i < 50; i++) {
    double start = now_ms();
    must(parse_all(&p));
    double ms = now_ms() - start;
    if (ms < best) best = ms;
    kiln_arena_reset(p.arena);
  }
  printf("parser              %8.2f MB/s (%d files, %.1f KB, %.3f ms)\n",
         (double)bytes / best * 1e-3, p.count, (double)bytes * 1e-3, best);
  kiln_arena_destroy(p.arena);
  kiln_mem_release(mem);
  for (int i = 0; i < p.count; i++) free(p.texts[i]);
  free(p.texts);
  free(p.sizes);
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fputs("usage: bench_load MODEL.pt [TIMES]\n", stderr);
    return 2;
  }
  int times = argc > 2 ? atoi(argv[2]) : 21;
  kiln_context *context = NULL;
  must(kiln_context_create(NULL, &context));
  time_loads(context, argv[1], times > 0 ? times : 1);
  load_twice(context, argv[1]);
  time_parser(context, argv[1]);
  kiln_context_release(context);
  return 0;
}
