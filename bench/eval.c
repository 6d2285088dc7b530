/* eval.c: the evaluator of loop IR against LLVM's code: microseconds of a kernel in each, their
 * ratio, and whether they give the same bits.
 *
 *   taskset -c 0 build/bench/bench_eval [--isa v2|avx2|avx512] [--markdown] [--schedule TEXT]
 *       [WORD]
 *
 * Kernels are texts over R rows and C columns (and D = 2 x R, E = R x C), for 64 x 64, 256 x 256
 * and 1024 x 1024 elements, and once more with symbols for R and C. Both run in turns in one
 * thread; medians of its time. WORD: those kernels whose names have it. With a schedule, "schedule
 * { nest 0: order i1 i0, vector i0 16 }", LLVM's code is that; of nests of which it says no such
 * word rules choose. */
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/samples.h"
#include "codegen/loop/schedule.h"
#include "runtime/kernel_shape.h"

enum { SIZES = 3, MOST_BUFFERS = 8, TIMES = 41 };
static const int64_t sizes[SIZES] = {64, 256, 1024};

typedef struct bench {
  kiln_env *env;
  kiln_codegen *codegen;
  kiln_arena *arena;
  bool markdown, differs;
  const char *schedule; /* NULL: of the rules */
} bench;

static void expect(kiln_status *status) {
  if (!status) return;
  fprintf(stderr, "bench_eval: %s\n", kiln_status_message(status));
  exit(2);
}

static kiln_loop_fn *parse(bench *b, const char *text) {
  kiln_loop_fn *fn;
  expect(kiln_loop_parse(kiln_str_from(text), b->arena, &fn));
  expect(kiln_loop_optimize(fn, b->arena));
  expect(kiln_loop_verify(fn));
  return fn;
}

static int64_t bytes_of(const kiln_loop_buffer *buffer) {
  int64_t count = 1;
  for (int d = 0; d < buffer->rank; d++) count += (buffer->sizes[d] - 1) * buffer->strides[d];
  return count * kiln_loop_size(buffer->dtype);
}

static void *allocate(int64_t bytes) {
  void *memory = aligned_alloc(64, (size_t)(bytes + 127) / 64 * 64);
  if (!memory) exit(3);
  return memset(memory, 0, (size_t)(bytes + 127) / 64 * 64);
}

static void fill(const kiln_loop_buffer *buffer, void *data) {
  const int64_t count = bytes_of(buffer) / kiln_loop_size(buffer->dtype);
  for (int64_t i = 0; i < count; i++) {
    const double value = (double)(i * 7919 % 1013) / 400 - 1.25;
    switch (buffer->dtype) {
      case KILN_DTYPE_F32: ((float *)data)[i] = (float)value; break;
      case KILN_DTYPE_F64: ((double *)data)[i] = value; break;
      case KILN_DTYPE_I64: ((int64_t *)data)[i] = i * 7919 % 1013 - 500; break;
      case KILN_DTYPE_F16: ((uint16_t *)data)[i] = (uint16_t)(0x3000 + i * 7919 % 0x1000); break;
      default: ((uint8_t *)data)[i] = (uint8_t)(i * 7919 % 1013 % 2); break;
    }
  }
}

/* A back end's kernel and the arguments of a call. */
typedef struct side {
  kiln_compiled *code;
  kiln_kernel_work work;
  kiln_kernel_args args;
  void *data[MOST_BUFFERS];
  double times[TIMES];
} side;

static void open_side(bench *b, side *s, kiln_backend backend, const kiln_loop_fn *fn,
                      const kiln_loop_fn *numbers, const int64_t *symbols, void *const *inputs) {
  kiln_reason reason;
  if (b->schedule && backend == KILN_BACKEND_LLVM) {
    kiln_machine machine;
    kiln_schedule schedule;
    expect(kiln_machine_describe(b->env->isa, KILN_STR(""), &machine));
    expect(kiln_schedule_parse(kiln_str_from(b->schedule), fn, b->arena, &schedule));
    kiln_schedule_complete(fn, &machine, &schedule, b->arena);
    expect(kiln_codegen_compile_as(b->codegen, fn, &schedule, &reason, &s->code));
  } else {
    expect(kiln_codegen_compile(b->codegen, fn, backend, &reason, &s->code, NULL));
  }
  s->work = s->code->info.work;
  if (s->code->info.shape && !kiln_kernel_shape_work(s->code->info.shape, symbols, &s->work))
    exit(3);
  for (int i = 0; i < fn->input_count; i++) s->data[i] = inputs[i];
  for (int i = fn->input_count; i < fn->input_count + fn->output_count; i++)
    s->data[i] = allocate(bytes_of(&numbers->buffers.data[i]));
  s->args = (kiln_kernel_args){.data = s->data,
                               .symbols = symbols,
                               .scratch = allocate((int64_t)s->work.scratch_bytes),
                               .closure = s->code->closure};
}

static double time_calls(const side *s, int calls) {
  const double begin = bench_thread_seconds();
  for (int i = 0; i < calls; i++) s->code->fn(&s->args, &s->work.grid);
  return (bench_thread_seconds() - begin) / calls;
}

static void run_sample(bench *b, const sample *what, bool symbolic, int64_t side_length,
                       double *out_times) {
  const int64_t symbols[2] = {side_length, side_length};
  const kiln_loop_fn *numbers = parse(b, instance_of(what->text, side_length, b->arena));
  const kiln_loop_fn *fn = symbolic ? parse(b, instance_of(what->text, 0, b->arena)) : numbers;
  void *inputs[MOST_BUFFERS];
  side sides[2] = {0};
  for (int i = 0; i < fn->input_count; i++) {
    inputs[i] = allocate(bytes_of(&numbers->buffers.data[i]));
    fill(&numbers->buffers.data[i], inputs[i]);
  }
  for (int i = 0; i < 2; i++)
    open_side(b, &sides[i], i ? KILN_BACKEND_EVAL : KILN_BACKEND_LLVM, fn, numbers, symbols,
              inputs);
  const double once = time_calls(&sides[1], 1) + time_calls(&sides[0], 1);
  const int calls = once > 50e-6 ? 1 : (int)(50e-6 / once) + 1;
  for (int t = 0; t < TIMES; t++)
    for (int i = 0; i < 2; i++) sides[i].times[t] = time_calls(&sides[i], calls);
  for (int i = fn->input_count; i < fn->input_count + fn->output_count; i++) {
    if (memcmp(sides[0].data[i], sides[1].data[i], (size_t)bytes_of(&numbers->buffers.data[i]))) {
      printf("%s, %lld: the bits differ\n", what->name, (long long)side_length);
      b->differs = true;
    }
  }
  for (int i = 0; i < 2; i++) {
    out_times[i] = 1e6 * bench_median(sides[i].times, TIMES);
    for (int o = fn->input_count; o < fn->input_count + fn->output_count; o++)
      free(sides[i].data[o]);
    free(sides[i].args.scratch);
    kiln_compiled_release(sides[i].code);
  }
  for (int i = 0; i < fn->input_count; i++) free(inputs[i]);
}

static void run_line(bench *b, const sample *what, bool symbolic) {
  printf(b->markdown ? "| %s%s" : "%-19s%-10s", what->name, symbolic ? ", symbols" : "");
  for (int i = 0; i < SIZES; i++) {
    double times[2];
    run_sample(b, what, symbolic, sizes[i], times);
    for (int k = 0; k < 2; k++)
      printf(b->markdown ? " | %.*f" : " %10.*f", times[k] < 100 ? 2 : 0, times[k]);
    printf(b->markdown ? " | %.2f" : " %6.2f ", times[1] / times[0]);
    fflush(stdout);
  }
  printf(b->markdown ? " |\n" : "\n");
}

/* Everything that takes memory of the arena stands in a scope. */
typedef struct job {
  bench *b;
  const char *word;
} job;
static kiln_status *run_all(job *j) {
  bench *b = j->b;
  for (int symbolic = 0; symbolic < 2; symbolic++) {
    for (int i = 0; i < SAMPLE_COUNT; i++) {
      if (symbolic && samples[i].numbers) continue;
      if (j->word && !strstr(samples[i].name, j->word)) continue;
      expect(kiln_arena_create(b->env->mem, &b->arena));
      run_line(b, &samples[i], symbolic);
      kiln_arena_destroy(b->arena);
    }
  }
  return NULL;
}
static kiln_status *protect(job *j) { KILN_PROTECT(run_all(j)); }

int main(int argc, char **argv) {
  bench b = {0};
  job j = {.b = &b};
  expect(kiln_env_create(NULL, &b.env));
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--markdown") == 0) {
      b.markdown = true;
    } else if (strcmp(argv[i], "--schedule") == 0 && i + 1 < argc) {
      b.schedule = argv[++i];
    } else if (strcmp(argv[i], "--isa") == 0 && i + 1 < argc) {
      i++;
      while (b.env->isa > KILN_ISA_V2 && strcmp(kiln_isa_name(b.env->isa), argv[i]) != 0)
        b.env->isa--;
    } else {
      j.word = argv[i];
    }
  }
  expect(kiln_codegen_create(b.env, &b.codegen));
  printf(b.markdown ? "| %s, us | 4 K: LLVM | eval | ratio | 64 K: LLVM | eval | ratio |"
                      " 1 M: LLVM | eval | ratio |\n|---|---|---|---|---|---|---|---|---|---|\n"
                    : "%-29s  4 K: LLVM     eval  ratio  64 K: LLVM     eval  ratio   1 M: LLVM"
                      "     eval  ratio\n",
         kiln_isa_name(b.env->isa));
  expect(protect(&j));
  kiln_codegen_destroy(b.codegen);
  kiln_env_destroy(b.env);
  return b.differs;
}
