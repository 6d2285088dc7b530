/* schedule.h: how a back end runs a kernel: a second text beside loop IR, never mixed into it.
 *
 *   schedule {
 *     nest 0: panel i1 48, pack b1, tile i0 8
 *   }
 *
 * A nest that is not named runs as it stands. Of linear(x, w), out[i0][i1] = sum of x[i0][k] *
 * w[i1][k], this makes
 *   panel i1 48  a loop over panels of 48 columns, then one over the rows, then one in the panel;
 *                columns that are left over are a nest of their own
 *   pack b1      w lies as [panel][k][48] in memory, the last panel filled with zeros: whoever
 * calls the kernel packs it (kiln_kernel_pack) tile i0 8    8 rows of a panel are summed in
 * registers at once
 *
 * `tile i0 4, strip 10` has 10 panels at a time inside of the rows' loop, with the loops that come
 * behind that one in the nest: of a convolution each tile's weights go over a strip of pixels.
 *
 * Loops of the body have tiles too. They are named by their order in the text, l0 and on; of a nest
 * over rows with `for T { reduce D { contract } .. }` in its body, between other loops, this makes
 *
 *   nest 0: block i2 64
 *   nest 0: panel l0 24, stage b1, tile i2 4
 *
 *   block i2 64     a loop over blocks of 64 rows, and in the body one over the rows of a block
 *                   around each of its parts: the loop with the tile, what stands before it, and
 *                   what stands behind it; local buffers that parts hand on have a row for each
 *   panel l0 24     the columns are cut into panels of 24, the last of which may be less; the loop
 *                   over panels is around the one over rows
 *   stage b1        what the columns move of b1 is copied for each panel: [d][24], in a local
 * buffer tile i2 4       4 rows of a panel are summed at once. `tile l0 4, panel l1 24` wants a
 * loop l0 that holds l1 alone
 *
 * A schedule changes no result but within what `contract` allows: it has no order. What is not
 * legal is refused with its reason: a tile wants a nest whose body has perfectly nested reduce
 * loops with contractions alone, and two loops that are independent of each other; what is packed
 * is read by one load, which moves with the panels' loop and not with the tile's. All of that are
 * numbers.
 *
 * The rules that choose one (schedule_rules.c) read the shape of the nest and the machine. */
#pragma once

#include "codegen/loop/loop.h"

/* What a CPU has, as far as rules ask for it. */
typedef struct kiln_machine {
  int lanes;                  /* floats of a register */
  int registers;              /* of vectors */
  int64_t l1_bytes, l2_bytes; /* data caches of a core */
} kiln_machine;
/* Of this process's CPU and instruction set; `text` (the flag machine) overrides:
 * "lanes=8,registers=16,l1=32768,l2=524288", any of them. KILN_INVALID_ARGUMENT says what is wrong.
 */
kiln_status *kiln_machine_describe(kiln_isa isa, kiln_str text,
                                   kiln_machine *out_machine) KILN_MUST_USE;

enum {
  KILN_SCHEDULE_MAX_ROWS = 16,
  KILN_SCHEDULE_MAX_PANEL = 256,
  KILN_SCHEDULE_MAX_STRIP = 1 << 20,
  KILN_SCHEDULE_MAX_BLOCK = 4096,
  KILN_SCHEDULE_MAX_TILES = 64 /* of a body */
};

/* Of two loops of the body, or of the nest's loop with blocks and one of the body. */
typedef struct kiln_schedule_tile {
  int panel_loop, panel; /* of the body's loops, from 0, in the order of the text */
  int stage;             /* buffer; -1: none */
  int tile_loop, tile;   /* -1: the nest's loop with blocks */
} kiln_schedule_tile;

typedef struct kiln_schedule_nest {
  int panel_loop, panel; /* loops of the nest, from 0; iterations; 0: there is no panel, nor tile */
  int pack;              /* input; -1: none */
  int tile_loop, tile;   /* 0: no tile */
  int strip;             /* panels; 0: all stand outside of the tile's loop */
  int block_loop, block; /* 0: no blocks */
  int body_count;        /* tiles of the body, in the order of the text */
  kiln_schedule_tile *body;
} kiln_schedule_nest;

/* Of a kernel's nests, as many as it has. */
typedef struct kiln_schedule {
  int count;
  kiln_schedule_nest *nests;
} kiln_schedule;

/* The schedule that the rules choose, in the arena; legal. Where nothing is to be said it is empty,
 * and prints as nothing. */
kiln_schedule kiln_schedule_choose(const kiln_loop_fn *fn, const kiln_machine *machine,
                                   kiln_arena *arena);
/* Whether the rules find a tile for all nests with contractions, whatever the machine. */
bool kiln_schedule_has_tiles(const kiln_loop_fn *fn, kiln_arena *scratch);
kiln_str kiln_schedule_print(const kiln_schedule *schedule, kiln_arena *arena);
/* Parses and verifies; an empty text is an empty schedule. KILN_INVALID_ARGUMENT with the line. */
kiln_status *kiln_schedule_parse(kiln_str text, const kiln_loop_fn *fn, kiln_arena *arena,
                                 kiln_schedule *out_schedule) KILN_MUST_USE;
/* KILN_INVALID_ARGUMENT: what is illegal, and why. */
kiln_status *kiln_schedule_verify(const kiln_loop_fn *fn, const kiln_schedule *schedule,
                                  kiln_arena *scratch) KILN_MUST_USE;

/* The kernel as a legal schedule has it, in the arena: buffers that are packed have the packed
 * sizes; and what is packed. `fn` is left as it is; where the schedule is empty it is the result.
 */
typedef struct kiln_scheduled {
  const kiln_loop_fn *fn;
  int pack_count;
  const kiln_kernel_pack *packs;
} kiln_scheduled;
kiln_scheduled kiln_schedule_apply(const kiln_loop_fn *fn, const kiln_schedule *schedule,
                                   kiln_arena *arena);
/* What both texts give: the kernel's text, then the schedule's. */
kiln_status *kiln_scheduled_parse(kiln_str text, kiln_arena *arena,
                                  kiln_scheduled *out_scheduled) KILN_MUST_USE;

/* -- Between schedule.c, schedule_body.c and schedule_rules.c -- */

/* One that says nothing of any nest. */
kiln_schedule kiln__schedule_nothing(const kiln_loop_fn *fn, kiln_arena *arena);
/* A nest of contractions: straight code, perfectly nested reduce loops, straight code. */
typedef struct kiln__contraction {
  int first_open, inner_open, end; /* the outermost and innermost loop, the outermost's end */
  int loops;
} kiln__contraction;
/* Of the loop of the body that instruction `open` opens; -1: of the nest. NULL, or why it is none.
 */
const char *kiln__find_contraction(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                                   const kiln_loop_scopes *scopes, int open,
                                   kiln__contraction *out);
/* schedule_body.c: blocks and tiles of the body: what is legal, and the nest that they make. */
kiln_status *kiln__schedule_verify_body(const kiln_loop_fn *fn, int number,
                                        const kiln_schedule_nest *s,
                                        kiln_arena *scratch) KILN_MUST_USE;
kiln_loop_nest *kiln__schedule_apply_body(kiln_loop_fn *to, const kiln_loop_nest *from,
                                          const kiln_schedule_nest *s);
/* The instruction that opens a loop of the body; -1: there is none. */
int kiln__loop_of_body(const kiln_loop_nest *nest, int loop);
