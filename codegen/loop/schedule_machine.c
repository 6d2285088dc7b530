/* schedule_machine.c: what the rules of schedules know of the machine, and the words of the flag
 * `machine`, which say it otherwise. */
#include <stddef.h>

#include "base/cpu.h"
#include "codegen/loop/schedule.h"

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static const struct {
  const char *name;
  int64_t least, most;
  size_t offset;
  bool is_wide;
} words[] = {
    {"lanes", 1, KILN_LOOP_LANES / 4, offsetof(kiln_machine, lanes), false},
    {"registers", 1, 64, offsetof(kiln_machine, registers), false},
    {"ports", 1, 8, offsetof(kiln_machine, ports), false},
    {"masks", 0, 8, offsetof(kiln_machine, masks), false},
    {"pairs", 0, 1, offsetof(kiln_machine, pairs), false},
    {"tiles", 0, 1, offsetof(kiln_machine, tiles), false},
    {"l1", 1, INT64_MAX, offsetof(kiln_machine, l1_bytes), true},
    {"l2", 1, INT64_MAX, offsetof(kiln_machine, l2_bytes), true},
    {"l3", 1, INT64_MAX, offsetof(kiln_machine, l3_bytes), true},
    {"line", 1, 4096, offsetof(kiln_machine, line_bytes), true},
    {"fetch", 1, 4096, offsetof(kiln_machine, fetch_bytes), true},
};

static kiln_status * override(kiln_str text, kiln_machine *m) {
  kiln_cursor cursor = kiln_cursor_of(text), *c = &cursor;
  for (bool first = true; kiln_cursor_skip(c), c->at < c->end; first = false) {
    int64_t value;
    if (!first && !kiln_cursor_accept(c, ","))
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "option machine: ',' was expected");
    kiln_cursor_skip(c);
    const kiln_str name = kiln_cursor_take(c, is_letter);
    if (!kiln_cursor_accept(c, "=") ||
        !kiln_str_parse_i64(kiln_cursor_take(c, is_letter), &value) || value < 0)
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "option machine: NAME=NUMBER was expected");
    bool known = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
      if (!kiln_str_is(name, words[i].name) || value < words[i].least || value > words[i].most)
        continue;
      known = true;
      if (words[i].is_wide)
        *(int64_t *)(void *)((char *)m + words[i].offset) = value;
      else
        *(int *)(void *)((char *)m + words[i].offset) = (int)value;
    }
    if (!known || (m->lanes & (m->lanes - 1)))
      return KILN_ERROR(KILN_INVALID_ARGUMENT,
                        "option machine: " KILN_STR_FMT
                        "=%lld is none of lanes (1, 2, 4, 8, 16), registers (to 64), ports (to 8), "
                        "masks (to 8), pairs (to 1), tiles (to 1), l1, l2, l3, line, fetch",
                        KILN_STR_ARG(name), (long long)value);
  }
  return NULL;
}

kiln_status *kiln_machine_describe(kiln_isa isa, kiln_str text, kiln_machine *out) {
  static const struct {
    int lanes, registers, masks, pairs;
  } vectors[KILN_ISA__COUNT] = {
      [KILN_ISA_V2] = {4, 16, 0, 0},
      [KILN_ISA_AVX2] = {8, 16, 4, 0},
      [KILN_ISA_AVX512] = {16, 32, 1, 0},
      [KILN_ISA_AVX512BF16] = {16, 32, 1, 1},
  };
  const kiln_cpu_caches caches = kiln_cpu_find_caches();
  *out = (kiln_machine){.lanes = vectors[isa].lanes,
                        .registers = vectors[isa].registers,
                        .ports = 2, /* of all that have AVX2, but for some of AVX-512; none tells */
                        .masks = vectors[isa].masks,
                        .pairs = vectors[isa].pairs,
                        .tiles = -1,
                        .l1_bytes = caches.l1,
                        .l2_bytes = caches.l2,
                        .l3_bytes = caches.l3,
                        .line_bytes = caches.line,
                        .fetch_bytes = caches.fetch};
  return override(text, out);
}
