/* eval.c: the evaluator of loop IR against LLVM's code: microseconds of a kernel in each, their
 * ratio, and whether they give the same bits.
 *
 *   taskset -c 0 build/bench/bench_eval [--isa v2|avx2|avx512] [--markdown] [WORD]
 *
 * Kernels are texts over R rows and C columns (and D = 2 x R, E = R x C), for 64 x 64, 256 x 256
 * and 1024 x 1024 elements, and once more with symbols for R and C. Both run in turns in one
 * thread; medians of its time. WORD: those kernels whose names have it. */
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "codegen/codegen.h"
#include "runtime/kernel_shape.h"

typedef struct sample {
  const char *name, *text;
  bool numbers; /* the verifier proves it for numbers alone */
} sample;

#define IN(n, t) "in b" #n ": " t "[R, C] [C, 1]\n"
#define OUT(n, t) "out b" #n ": " t "[R, C] [C, 1]\n"
#define LOAD(v, n, t) v " = load " t " b" #n " + 0 [C, 1]\n"
#define STORE(n, t, v) "store " t " b" #n " + 0 [C, 1], " v "\n"
#define UNARY(t, op)                                                              \
  "kernel {" IN(0, t) OUT(1, t) "nest [R, C] {" LOAD("%0", 0, t) "%1 = " op " " t \
                                                                 " %0\n" STORE(1, t, "%1") "} }"
#define CHAIN(t)                                                                                   \
  "kernel {" IN(0, t) IN(1, t) IN(2, t) OUT(3, t) "nest [R, C] {" LOAD("%0", 0, t)                 \
      LOAD("%1", 1, t) LOAD("%2", 2, t) "%3 = mul " t " %0, %1\n %4 = add " t " %3, %2\n"          \
                                        "%5 = sub " t " %4, %0\n %6 = const " t " 3\n %7 = mul " t \
                                        " %5, %6\n"                                                \
                                        "%8 = max " t " %7, %1\n %9 = min " t                      \
                                        " %8, %2\n" STORE(3, t, "%9") "} }"
#define ROWS(t, u, op)                                                                             \
  "kernel {" IN(0, t) "out b1: " u "[R] [1]\n nest [R] { reduce C {\n"                             \
                      "%1 = load " t " b0 + 0 [C, 1]\n %2 = " op " " u " %1 over 1\n }\n store " u \
                      " b1 + 0 [1], %2 } }"
#define COLUMNS(t, u, op)                                                                          \
  "kernel {" IN(0, t) "out b1: " u "[C] [1]\n nest [C] { reduce R {\n"                             \
                      "%1 = load " t " b0 + 0 [1, C]\n %2 = " op " " u " %1 over 1\n }\n store " u \
                      " b1 + 0 [1], %2 } }"

static const sample samples[] = {
    {.name = "add f32",
     .text = "kernel {" IN(0, "f32") IN(1, "f32") OUT(2, "f32") "nest [R, C] {" LOAD("%0", 0, "f32")
         LOAD("%1", 1, "f32") "%2 = add f32 %0, %1\n" STORE(2, "f32", "%2") "} }"},
    {.name = "chain f32", .text = CHAIN("f32")},
    {.name = "chain f64", .text = CHAIN("f64")},
    {.name = "chain i64", .text = CHAIN("i64")},
    {.name = "mix f16 bool",
     .text = "kernel {" IN(0, "f16") IN(1, "bool") IN(2, "f32")
         OUT(3, "f16") "nest [R, C] {" LOAD("%0", 0, "f16") LOAD("%1", 1, "bool")
             LOAD("%2", 2, "f32") "%3 = cast f32 %0\n %4 = mul f32 %3, %2\n %5 = lt bool %4, %2\n "
                                  "%6 = and bool %5, %1\n"
                                  "%7 = select f32 %6, %4, %3\n %8 = cast f16 %7\n" STORE(
                                      3, "f16", "%8") "} }"},
    {.name = "exp f32", .text = UNARY("f32", "exp")},
    {.name = "tanh f32", .text = UNARY("f32", "tanh")},
    {.name = "erf f32", .text = UNARY("f32", "erf")},
    {.name = "sigmoid f64", .text = UNARY("f64", "sigmoid")},
    {.name = "gelu f32",
     .text = "kernel {" IN(0, "f32") OUT(1, "f32") "nest [R, C] {" LOAD(
         "%0", 0, "f32") "%1 = const f32 0.70710678\n %2 = mul f32 %0, %1\n %3 = erf f32 %2\n %4 = "
                         "const f32 1\n"
                         "%5 = add f32 %3, %4\n %6 = const f32 0.5\n %7 = mul f32 %0, %6\n %8 = "
                         "mul f32 %7, %5\n" STORE(1, "f32", "%8") "} }"},
    {.name = "tanh * sigmoid",
     .text = "kernel {" IN(0, "f32") IN(1, "f32") OUT(2, "f32") "nest [R, C] {" LOAD("%0", 0, "f32")
         LOAD("%1", 1, "f32") "%2 = mul f32 %0, %1\n %3 = tanh f32 %2\n"
                              "%4 = sigmoid f32 %0\n %5 = mul f32 %3, %4\n" STORE(2, "f32",
                                                                                  "%5") "} }"},
    {.name = "cat of rows",
     .text = "kernel {" IN(0, "f32")
         IN(1, "f32") "out b2: f32[D, C] [C, 1]\n"
                      "nest [R, C] {" LOAD(
                          "%0", 0,
                          "f32") "%1 = neg f32 %0\n store f32 b2 + 0 [C, 1], %1\n }\n"
                                 "nest [R, C] {" LOAD(
                                     "%0", 1,
                                     "f32") "%1 = neg f32 %0\n store f32 b2 + E [C, 1], %1\n } }",
     .numbers = true},
    {.name = "row and column",
     .text = "kernel {" IN(0, "f32") "in b1: f32[C] [1]\n in b2: f32[R] [1]\n" OUT(
         3, "f32") "nest [R, C] {" LOAD("%0", 0,
                                        "f32") "%1 = load f32 b1 + 0 [0, 1]\n"
                                               "%2 = load f32 b2 + 0 [1, 0]\n %3 = exp f32 %2\n %4 "
                                               "= add f32 %0, %1\n %5 = mul f32 %4, %3\n" STORE(
                                                   3, "f32", "%5") "} }"},
    {.name = "transposed",
     .text = "kernel {" IN(0, "f32") "in b1: f32[C, R] [R, 1]\n" OUT(2, "f32") "nest [R, C] {" LOAD(
         "%0", 0, "f32") "%1 = load f32 b1 + 0 [1, R]\n"
                         "%2 = add f32 %0, %1\n" STORE(2, "f32", "%2") "} }"},
    {.name = "sum of rows", .text = ROWS("f32", "f32", "sum")},
    {.name = "sum of rows f64", .text = ROWS("f64", "f64", "sum")},
    {.name = "max of rows", .text = ROWS("f32", "f32", "amax")},
    {.name = "argmax of rows", .text = ROWS("f32", "i64", "argmax")},
    {.name = "sum of columns", .text = COLUMNS("f32", "f32", "sum")},
    {.name = "max of columns", .text = COLUMNS("f32", "f32", "amax")},
    {.name = "argmax of columns", .text = COLUMNS("f32", "i64", "argmax")},
    {.name = "softmax",
     .text = "kernel {" IN(0, "f32") OUT(
         1,
         "f32") "local b2: f32[C] [1]\n nest [R] {\n"
                "reduce C {\n %1 = load f32 b0 + 0 [C, 1]\n %2 = amax f32 %1 over 1\n }\n"
                "reduce C {\n %5 = load f32 b0 + 0 [C, 1]\n %6 = sub f32 %5, %2\n %7 = exp f32 %6\n"
                "store f32 b2 + 0 [0, 1], %7\n %9 = sum f32 %7 over 1\n }\n"
                "for C {\n %12 = load f32 b2 + 0 [0, 1]\n %13 = div f32 %12, %9\n"
                "store f32 b1 + 0 [C, 1], %13\n } } }"},
    {.name = "layer norm",
     .text = "kernel {" IN(0, "f32") "in b1: f32[C] [1]\n in b2: f32[C] [1]\n" OUT(
         3, "f32") "nest [R] {\n %0 = const f32 0.001\n reduce C {\n %2 = load f32 b0 + 0 [C, 1]\n"
                   "%3 = sum f32 %2 over 1\n }\n %5 = mul f32 %3, %0\n reduce C {\n"
                   "%7 = load f32 b0 + 0 [C, 1]\n %8 = sub f32 %7, %5\n %9 = dot f32 %8, %8 over "
                   "1\n }\n"
                   "%11 = mul f32 %9, %0\n %12 = add f32 %11, %0\n %13 = sqrt f32 %12\n for C {\n"
                   "%15 = load f32 b0 + 0 [C, 1]\n %16 = sub f32 %15, %5\n %17 = div f32 %16, %13\n"
                   "%18 = load f32 b1 + 0 [0, 1]\n %19 = mul f32 %17, %18\n %20 = load f32 b2 + 0 "
                   "[0, 1]\n"
                   "%21 = add f32 %19, %20\n store f32 b3 + 0 [C, 1], %21\n } } }"},
};
enum { SIZES = 3, MOST_BUFFERS = 8, TIMES = 41 };
static const int64_t sizes[SIZES] = {64, 256, 1024};

typedef struct bench {
  kiln_env *env;
  kiln_codegen *codegen;
  kiln_arena *arena;
  bool markdown, differs;
} bench;

static void expect(kiln_status *status) {
  if (!status) return;
  fprintf(stderr, "bench_eval: %s\n", kiln_status_message(status));
  exit(2);
}

/* The text with numbers or symbols for R, C, D = 2 x R and E = R x C. */
static const char *instance_of(const char *text, int64_t side, kiln_arena *arena) {
  static const char letters[] = "RCDE", *const names[] = {"s0", "s1", "2*s0", "s0*s1"};
  const int64_t numbers[] = {side, side, 2 * side, side * side};
  char *result = KILN_NEW_ARRAY(arena, char, 8 * (int)strlen(text) + 1), *at = result;
  for (; *text; text++) {
    const char *letter = strchr(letters, *text);
    if (!letter)
      *at++ = *text;
    else if (side)
      at += sprintf(at, "%lld", (long long)numbers[letter - letters]);
    else
      at += sprintf(at, "%s", names[letter - letters]);
  }
  *at = 0;
  return result;
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
  expect(kiln_codegen_compile(b->codegen, fn, backend, &reason, &s->code, NULL));
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

/* The processor's time of this thread: others take turns with it. */
static double thread_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double time_calls(const side *s, int calls) {
  const double begin = thread_seconds();
  for (int i = 0; i < calls; i++) s->code->fn(&s->args, &s->work.grid);
  return (thread_seconds() - begin) / calls;
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
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
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
