/* samples.h: kernels as texts of loop IR, over R rows and C columns (and D = 2 x R, E = R x C), for
 * the programs that measure code generation. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "codegen/codegen.h"

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
    {.name = "gelu f32", /* as it is lowered */
     .text = "kernel {" IN(0, "f32") OUT(1, "f32") "nest [R, C] {" LOAD(
         "%0", 0, "f32") "%1 = ndtr f32 %0\n %2 = mul f32 %0, %1\n" STORE(1, "f32", "%2") "} }"},
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
enum { SAMPLE_COUNT = sizeof samples / sizeof *samples };

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
