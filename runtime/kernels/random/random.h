/* random.h: what the operators that draw numbers share. They draw what PyTorch's CPU kernels draw:
 * as many words of the generator for an element, in the order of the elements in memory. */
#pragma once

#include "runtime/kernels/support.h"

/* Draws n elements of a compute type. `params` are the caller's. */
typedef void (*kiln__draw)(kiln_random *g, const void *params, void *to, int64_t n);

/* A Generator argument; None is the call's own. */
kiln_status *kiln__generator(kiln_call *call, kiln_ivalue v, kiln_random **out) KILN_MUST_USE;
/* Of an operator in place: the generator of argument `at`, and `self` as the result. */
kiln_status *kiln__random_begin(kiln_call *call, const kiln_ivalue *args, int at, kiln_random **g,
                                kiln_ivalue *outs) KILN_MUST_USE;
/* A new tensor as the result, which is to be drawn: from args[at] on size [, generator], dtype
 * (None: fallback), layout, device. */
kiln_status *kiln__random_new(kiln_call *call, const kiln_ivalue *args, int at, bool has_generator,
                              kiln_dtype fallback, kiln_random **g, kiln_ivalue *out) KILN_MUST_USE;
/* One like self: from args[at] on [generator,] dtype, layout, device, pin_memory, memory_format. */
kiln_status *kiln__random_new_like(kiln_call *call, const kiln_ivalue *args, int at,
                                   bool has_generator, kiln_random **g,
                                   kiln_ivalue *out) KILN_MUST_USE;
/* The next n of kiln_random_f64, sooner: what is done with them is a loop of its own. */
void kiln__draw_f64s(kiln_random *g, double *to, int64_t n);
/* Fills any tensor in the order of its memory with what `draw` makes, elements of `ctype`. A
 * complex one is filled as pairs of numbers. */
kiln_status *kiln__random_fill(kiln_call *call, kiln_random *g, kiln_tensor *t, kiln__draw draw,
                               kiln_ctype ctype, const void *params) KILN_MUST_USE;
/* Normal numbers: a contiguous tensor of 16 elements and more is filled by blocks of 16. */
kiln_status *kiln__random_normal(kiln_call *call, kiln_random *g, kiln_tensor *t, double mean,
                                 double std) KILN_MUST_USE;
kiln_status *kiln__random_exponential(kiln_call *call, kiln_random *g, kiln_tensor *t,
                                      double lambda) KILN_MUST_USE;

/* `value` with that chance, else 0; in F64. */
typedef struct kiln__chance {
  double p, value;
} kiln__chance;
void kiln__draw_chance(kiln_random *g, const void *params, void *to, int64_t n);

/* [from, to) in a dtype, whole numbers; complaints are those of random_. */
kiln_status *kiln__random_whole(kiln_call *call, kiln_random *g, kiln_tensor *t, int64_t from,
                                int64_t to) KILN_MUST_USE;

/* As PyTorch's complaints name an element's type in C++. */
const char *kiln__dtype_c_name(kiln_dtype dtype);

/* x * mask / (1 - p), the mask random; a new tensor, laid out like t. */
kiln_status *kiln__dropout(kiln_call *call, kiln_tensor *t, double p,
                           kiln_tensor **out) KILN_MUST_USE;
