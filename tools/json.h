/* json.h: values and counters as JSON, for --json. */
#pragma once

#include <cjson/cJSON.h>

#include "tools/tool.h"

/* Tensors: {"dtype", "shape", "data" (flat, row-major)}; tuples and lists: arrays; dicts: arrays of
 * pairs; complex numbers: [re, im]; NaN and infinities: "nan", "inf", "-inf". NULL: the value holds
 * itself, or is deeper or longer than anybody reads. */
cJSON *tool_json_value(const kiln_value *value);
cJSON *tool_json_counters(const kiln_counters *counters);
cJSON *tool_json_number(double value);
/* Integers beyond 2^53 are written in full. */
cJSON *tool_json_int(int64_t value);
/* Prints to `file` with a newline, as UTF-8 whatever the strings hold, and deletes it. */
void tool_json_print(cJSON *json, FILE *file);
