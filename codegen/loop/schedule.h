/* schedule.h: how LLVM's code runs a kernel: a second text beside loop IR, never mixed into it.
 *
 *   schedule {
 *     nest 0: order i1 i0, vector i0 16, unroll i0 2, parallel i1, grain 4000
 *   }
 *
 * A nest that is not named, and what is not said of one that is, runs as it stands: in that order,
 * one element at a time, in one part. Loops have the names that the kernel's text gives them: i0 is
 * the nest's first, l0 the first in the text that stands in its body. Of any nest,
 *   order i1 i0      its loops in that order, all of them: iterations depend on none other
 *   vector i0 16     16 iterations of i0, its last loop then, are a vector; those left over are a
 *                    partial one. Loops of the body go around vectors
 *   vector l 16      16 iterations are a vector in each innermost loop of the body, and elsewhere
 *                    all lanes are alike
 *   unroll i0 2      the body stands twice in a step of the vectors' loop, for 32 elements, as far
 *                    as they go; what is left goes in vectors, each perhaps a partial one. `unroll
 *                    i0 1` has a body for whole vectors and one for the partial one. Without it
 *                    there is one body, and any vector may be a partial one
 *   unroll l0 4      the same of an innermost loop of the body: 4 of its vectors in a step, or 4
 *                    iterations where it is a loop around vectors
 *   parallel i0 i1   axes of the grid, which boxes cut among threads (kernel_abi.h): these loops,
 *                    three at most, as they stand
 *   grain 4000       that many iterations of the nest are worth a thread; without it, what the
 *                    instructions cost decides
 *
 * A nest whose body has no loops may have panels:
 *   panel i1 16      its last loop goes in panels of 16, and the loop over panels stands before the
 *                    last but one: of a transposed copy all rows of a panel go before the next
 *                    panel, so that lines of memory are read while the cache has them. Iterations
 *                    that are left over are a nest of their own
 *
 * Contractions have tiles. Of linear(x, w), out[i0][i1] = sum of x[i0][k] * w[i1][k],
 *
 *   nest 0: panel i1 48, pack b1, tile i0 8
 *
 * makes
 *   panel i1 48  a loop over panels of 48 columns, then one over the rows, then one in the panel,
 *                along which vectors go; columns that are left over are a nest of their own. A box
 *                cuts between panels
 *   pack b1      w lies as [panel][k][48] in memory, the last panel filled with zeros: whoever
 *                calls the kernel packs it (kiln_kernel_pack). Where all that reads it are casts to
 *                bf16, it is packed as that
 *   prefetch     behind `pack b1`: while a panel is worked on, the next one comes into the second
 *                cache
 *   prefetch 96  the same of what 96 iterations of the sum later read, into the first cache: where
 *                one tile has all rows, so that a panel is read once
 *   claim        behind `tile`: a tile asks for the lines of its results before it sums, so that
 *                they are there when it writes them
 *   round b0     where all that reads x are casts to bf16 and back, whoever calls the kernel rounds
 *                it, and there are no casts: in the copy that it is, or one of all its elements as
 *                they lie, without gaps
 *   pairs        behind `pack b1, round b0`: two iterations of the innermost loop that is summed
 *                over, an even number, are one step of a loop of two: w lies as
 *                [panel][k / 2][48][2], and the copy of x, whose elements are neighbours along
 *                that loop, is bf16 too. For what multiplies pairs of bf16 in one instruction
 *   tile i0 8    8 rows of a panel are summed in registers at once; `unroll l0 2` has so many
 *                iterations of the innermost loop that is summed over in a step
 *   tile 1       of a nest without such a loop: it gets one of one iteration
 *
 * `tile i0 4, strip 10` has 10 panels at a time inside of the rows' loop, with the loops that come
 * behind that one in the nest: of a convolution each tile's weights go over a strip of pixels. What
 * is packed has all of its panels in one strip: few weights go over each tile of many pixels, which
 * are read once.
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
 *                   buffer
 *   tile i2 4       4 rows of a panel are summed at once. `tile l0 4, panel l1 24` wants a loop l0
 *                   that holds l1 alone
 *
 * A schedule changes no result but within what `contract` allows: it has no order. What is not
 * legal is refused with its reason: a tile wants a nest whose body has perfectly nested reduce
 * loops with contractions alone, and two loops that are independent of each other; what is packed
 * is read by one load, which moves with the panels' loop and not with the tile's. All of that are
 * numbers.
 *
 * The rules that choose one (schedule_rules.c, schedule_run_rules.c) read the shape of the nest and
 * the machine, and say something of every nest. The evaluator and PTX run the kernel as it stands:
 * a GPU's threads take single iterations, so that no word has a meaning there, and none is read. */
#pragma once

#include "base/cursor.h"
#include "base/text.h"
#include "codegen/loop/loop.h"
#include "runtime/kernels/heavy/core_machine.h"

/* What a CPU has, as far as rules ask for it. */
typedef struct kiln_machine {
  int lanes;     /* floats of a register: 1, 2, 4, ... */
  int registers; /* of vectors */
  int ports;     /* additions of vectors, with products, that begin in a cycle; as many loads */
  int masks;     /* bytes of the least element of which some lanes can be read and written; 1: of
                  * all, and that costs no more; 0: of none */
  int pairs;     /* 1: products of two pairs of bf16 are one instruction */
  int tiles;     /* 1: those of tiles of 16 x 16 pairs are (AMX); -1: if kiln_env has taken them */
  int64_t l1_bytes, l2_bytes, l3_bytes; /* caches that a core reaches */
  int64_t line_bytes, fetch_bytes;      /* and of the lines that come together */
} kiln_machine;
/* Of this process's CPU and instruction set; `text` (the flag machine) overrides: "lanes=8,
 * registers=16, ports=2, masks=0, pairs=0, tiles=0, l1=32768, l2=524288, l3=33554432, line=64,
 * fetch=64", any of them.
 * KILN_INVALID_ARGUMENT says what is wrong. */
kiln_status *kiln_machine_describe(kiln_isa isa, kiln_str text,
                                   kiln_machine *out_machine) KILN_MUST_USE;

/* What the core's own kernels read of it. `amx`: there are tiles, and this process may use them. */
static inline kiln_core_machine kiln_machine_of_core(const kiln_machine *m, bool amx) {
  const kiln_tiles tiles = m->tiles < 0 ? (amx ? KILN_TILES_AMX : KILN_TILES_NONE)
                           : !m->tiles  ? KILN_TILES_NONE
                           : amx        ? KILN_TILES_AMX
                                        : KILN_TILES_IN_C;
  return (kiln_core_machine){m->lanes, m->ports, m->l1_bytes, m->l2_bytes, m->l3_bytes, tiles};
}

/* Accumulators of a tile that are in registers with what they are made of: half of them where each
 * row has vectors of its own (`both`), and else some less than all, which LLVM takes for addresses
 * of rows. */
int kiln_schedule_most_sums(int registers, bool both);
/* Few accumulators wait for their last sum: so many of each take the iterations in turn. */
int kiln_schedule_chains(int sums, int registers, bool both);

enum {
  KILN_SCHEDULE_MAX_ROWS = 16,
  KILN_SCHEDULE_MAX_PANEL = 256,
  KILN_SCHEDULE_MAX_STRIP = 1 << 20,
  KILN_SCHEDULE_MAX_AHEAD = 1 << 16,
  KILN_SCHEDULE_MAX_BLOCK = 4096,
  KILN_SCHEDULE_MAX_ROUNDS = 2,    /* inputs of a contraction */
  KILN_SCHEDULE_MAX_TILES = 64,    /* of a body */
  KILN_SCHEDULE_MAX_UNROLL = 64,   /* steps in one */
  KILN_SCHEDULE_MAX_UNROLLS = 256, /* loops of a body that are unrolled */
  KILN_SCHEDULE_MAX_SUMS = 1024,   /* vectors of a tile's rows */
  KILN_SCHEDULE_MAX_CODE = 1 << 14 /* instructions of a nest as often as they stand, roughly */
};

/* Of two loops of the body, or of the nest's loop with blocks and one of the body. */
typedef struct kiln_schedule_tile {
  int panel_loop, panel; /* of the body's loops, from 0, in the order of the text */
  int stage;             /* buffer; -1: none */
  int tile_loop, tile;   /* -1: the nest's loop with blocks */
} kiln_schedule_tile;

/* Of a loop of the body, by its order in the text. */
typedef struct kiln_schedule_unroll {
  int loop, count;
} kiln_schedule_unroll;

typedef struct kiln_schedule_nest {
  bool ordered;
  int order[KILN_LOOP_MAX_RANK + 1]; /* the nest's loops, outermost first; then -1 */
  int lanes;                         /* 0: not said */
  int vector_loop;                   /* of the nest; -1: those of the body */
  int unroll;                        /* of the nest's vectors' loop; 0: not said */
  int unroll_count;                  /* loops of the body, in the order of the text */
  kiln_schedule_unroll *unrolls;
  uint32_t parallel;     /* a bit for each loop of the nest */
  int64_t grain;         /* 0: not said */
  int panel_loop, panel; /* loops of the nest, from 0; iterations; 0: there is no panel, nor tile */
  int pack;              /* input; -1: none */
  bool prefetch;         /* of what is packed: the next panel, */
  int ahead;             /* or what is read so many iterations later; 0: the panel */
  bool claim;            /* of the tile's results: their lines */
  int round_count, rounds[KILN_SCHEDULE_MAX_ROUNDS]; /* inputs */
  bool pairs;                                        /* of what is packed and what is rounded */
  int tile_loop, tile;                               /* -1: a loop of one row; 0: no tile */
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

/* The schedule that the rules choose, in the arena; legal. An empty one prints as nothing. */
kiln_schedule kiln_schedule_choose(const kiln_loop_fn *fn, const kiln_machine *machine,
                                   kiln_arena *arena);
/* What the rules choose of nests of which vectors, order, unrolling and parallel loops are not said
 * at all: for a schedule that has tiles alone. */
void kiln_schedule_complete(const kiln_loop_fn *fn, const kiln_machine *machine,
                            kiln_schedule *schedule, kiln_arena *arena);
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
/* -- Beside what the rules choose -- */

/* Legal schedules that differ from one in one thing (schedule_moves.c), `most` of them at most,
 * what gains most often first; gives how many. Some may be alike. */
int kiln_schedule_moves(const kiln_loop_fn *fn, const kiln_machine *machine,
                        const kiln_schedule *from, int most, kiln_arena *arena, kiln_schedule *out);
/* Why a legal schedule is not taken from a file all the same: it asks callers for other copies than
 * the rules' does, or for far more memory; NULL: it is. */
const char *kiln_schedule_beyond(const kiln_schedule *schedule, const kiln_schedule *rules);

/* What both texts give: the kernel's text, then the schedule's. */
kiln_status *kiln_scheduled_parse(kiln_str text, kiln_arena *arena,
                                  kiln_scheduled *out_scheduled) KILN_MUST_USE;

/* -- Between schedule*.c -- */

/* One that says nothing of any nest. */
kiln_schedule kiln__schedule_nothing(const kiln_loop_fn *fn, kiln_arena *arena);
/* Panels of its loop, whose iterations are a number; the last may be less than whole. */
int64_t kiln__schedule_panels(const kiln_loop_nest *nest, const kiln_schedule_nest *s);
/* Iterations of a tile's rows; one where no loop has them. */
static inline kiln_dim kiln__schedule_rows(const kiln_loop_nest *nest,
                                           const kiln_schedule_nest *s) {
  return s->tile_loop < 0 ? 1 : nest->extents[s->tile_loop];
}
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
/* `opens`: instructions that open loops, `count` of them, which become those of the new body. */
kiln_loop_nest *kiln__schedule_apply_body(kiln_loop_fn *to, const kiln_loop_nest *from,
                                          const kiln_schedule_nest *s, int *opens, int count);
/* The instruction that opens a loop of the body; -1: there is none. */
int kiln__loop_of_body(const kiln_loop_nest *nest, int loop);

/* schedule_pack.c: what is packed. Whether the input's copy may be, of which a contraction has this
 * load. */
bool kiln__schedule_may_pack_copy(const kiln_loop_buffer *copy, const kiln_loop_nest *nest,
                                  int load, const kiln__contraction *c);
kiln_status *kiln__schedule_verify_pack(const kiln_loop_fn *fn, int number,
                                        const kiln_schedule_nest *s, const kiln_loop_scopes *scopes,
                                        const kiln__contraction *c) KILN_MUST_USE;
/* The copy that callers make of it. */
kiln_kernel_pack kiln__schedule_describe_pack(const kiln_loop_fn *fn, const kiln_loop_nest *nest,
                                              const kiln_schedule_nest *s,
                                              const kiln_loop_inst *load,
                                              const kiln__contraction *c);
/* The one load of an input, in this nest; -1: there is none, or more. */
int kiln__schedule_only_load(const kiln_loop_fn *fn, int number, int input);

/* schedule_round.c: whether a load is there to be rounded to bf16 alone. */
bool kiln__schedule_is_rounded(const kiln_loop_nest *nest, int load);
/* Why an input of the nest is not rounded by callers; NULL: it can be. */
const char *kiln__schedule_round_refuses(const kiln_loop_fn *fn, int number, int input);
kiln_status *kiln__schedule_verify_round(const kiln_loop_fn *fn, int number,
                                         const kiln_schedule_nest *s,
                                         const kiln__contraction *c) KILN_MUST_USE;
/* The same of its pairs, where the inputs that it names are packed and rounded. */
const char *kiln__schedule_pairs_refuse(const kiln_loop_fn *fn, int number,
                                        const kiln_schedule_nest *s, const kiln__contraction *c);
/* The nest of `fn`, and the buffers of `to`, without the casts that callers do; gives how many
 * inputs are rounded as they lie, and which. */
int kiln__schedule_round(kiln_loop_fn *to, const kiln_loop_fn *fn, int number,
                         const kiln_schedule_nest *s, kiln_kernel_pack *out_packs);

/* schedule_run.c: the words of any nest: order, vector, unroll, parallel, grain. */
bool kiln__schedule_runs(const kiln_schedule_nest *s);
void kiln__schedule_print_run(kiln_text *text, const kiln_schedule_nest *s, int number);
/* Behind "nest N:", where one of these words comes next; *out_any: whether it does. */
kiln_status *kiln__schedule_parse_run(kiln_cursor *c, kiln_schedule_nest *s, kiln_arena *arena,
                                      bool *out_any) KILN_MUST_USE;
kiln_status *kiln__schedule_verify_run(const kiln_loop_fn *fn, int number,
                                       const kiln_schedule_nest *s,
                                       kiln_arena *scratch) KILN_MUST_USE;
/* A nest with its loops in their order, and the schedule with the names that they have there. */
kiln_loop_nest *kiln__schedule_order(kiln_arena *arena, const kiln_loop_nest *from,
                                     const kiln_schedule_nest *s, kiln_schedule_nest *out_s);
/* Of a nest that the schedule has made: loop k of it is one of loop from[k]; -1: boxes do not cut
 * it. `opens`: instructions of the loops that are unrolled. */
void kiln__schedule_run(kiln_loop_fn *to, kiln_loop_nest *nest, const kiln_schedule_nest *s,
                        const int *from, const int *opens);
/* A number of [0, most) behind a word. */
kiln_status *kiln__schedule_number(kiln_cursor *c, const char *word, int64_t most,
                                   int64_t *out) KILN_MUST_USE;

/* schedule_run_rules.c: iterations of the nest that has most of them; 0: there are few nests. */
double kiln__schedule_most_iterations(const kiln_loop_fn *fn, kiln_arena *arena);
/* What it chooses of a nest of which only tiles are said, perhaps; `most` is that number. */
void kiln__schedule_choose_run(const kiln_loop_fn *fn, int number, const kiln_machine *machine,
                               double most, kiln_arena *arena, kiln_schedule_nest *s);
/* Elements of a vector where a register holds `lanes` floats: half as many where all numbers of the
 * nest are of 8 bytes. */
int kiln__schedule_width(const kiln_loop_nest *nest, int lanes);
/* Of a nest with a tile, which reads a whole vector where less is left: no more than may be read.
 */
int kiln__schedule_most_width(const kiln_loop_nest *nest, int lanes);
/* That of so many columns: a few go in narrower vectors where masks are dear, for there each row is
 * stored through one. */
int kiln__schedule_tile_width(const kiln_loop_nest *nest, const kiln_machine *m, kiln_dim columns);
