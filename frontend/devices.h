/* devices.h: device mapping: rules that say where an archive's tensors go, and what they did.
 *
 * "cuda:*=cpu" or "cuda:1=cpu,*=cpu": the first rule that fits a device's name counts. A name
 * without index fits every device of that kind, as name:* does; * alone fits every device but the
 * CPU. Targets are devices that this build has: cpu. */
#pragma once

#include "base/env.h"
#include "runtime/value.h"

/* What was on the device: one line of the report each. */
typedef enum kiln_remap_kind {
  KILN_REMAP_TENSOR, /* storages of tensors */
  KILN_REMAP_VALUE,  /* devices among the archive's values */
  KILN_REMAP_CODE,   /* devices that the code names */
} kiln_remap_kind;

typedef struct kiln_remap_row {
  kiln_str from, to; /* terminated, as `where` is */
  kiln_remap_kind kind;
  int64_t count;
  kiln_str where; /* the first: "data/3", "code/__torch__.py:12" */
} kiln_remap_row;

typedef struct kiln_device_map {
  kiln_arena *arena;
  KILN_VEC(struct kiln_device_rule {
    kiln_str kind;  /* "*" for all */
    kiln_str index; /* "*" for all */
    kiln_str to;
  })
  rules;
  KILN_VEC(kiln_remap_row) rows;
} kiln_device_map;

/* In `arena`. NULL or "" is the empty list. KILN_INVALID_ARGUMENT. */
kiln_status *kiln_device_map_parse(kiln_arena *arena, const char *text,
                                   kiln_device_map **out_map) KILN_MUST_USE;
/* Replaces the name in *device by its rule's target and notes it; false when no rule fits. `map`
 * may be NULL. */
bool kiln_device_map_apply(kiln_device_map *map, kiln_str *device, kiln_remap_kind kind,
                           kiln_str where);
/* Tells the rows on the log's channel `load`. `map` may be NULL. */
void kiln_device_map_report(const kiln_device_map *map, kiln_env *env);
