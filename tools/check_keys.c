/* check_keys.c: the keys that a case.json may have, and of what kind their values are. A check that
 * overlooked a misspelt tolerance would compare by another one than the case says. */
#include <stdlib.h>
#include <string.h>

#include "tools/check.h"

typedef enum key_kind {
  KEY_TEXT,
  KEY_NUMBER,
  KEY_BOOL,
  KEY_LIST,
  KEY_NOTE, /* of who made the case: no check reads it */
} key_kind;

typedef struct key_info {
  const char *name;
  key_kind kind;
} key_info;

static const key_info case_keys[] = {
    {"name", KEY_TEXT},          {"category", KEY_TEXT},    {"method", KEY_TEXT},
    {"expect", KEY_TEXT},        {"n_cases", KEY_NUMBER},   {"calls", KEY_NUMBER},
    {"rtol", KEY_NUMBER},        {"atol", KEY_NUMBER},      {"stateful", KEY_BOOL},
    {"raises", KEY_LIST},        {"samples", KEY_LIST},     {"mutates_inputs", KEY_LIST},
    {"note", KEY_NOTE},          {"producer", KEY_NOTE},    {"kind", KEY_NOTE},
    {"verified_with", KEY_NOTE}, {"not_with", KEY_NOTE},    {"reference", KEY_NOTE},
    {"f64_dev", KEY_NOTE},       {"graphs", KEY_NOTE},      {"ops", KEY_NOTE},
    {"grad", KEY_NOTE},          {"params", KEY_NOTE},      {"size", KEY_NOTE},
    {"grad_inputs", KEY_NOTE},   {"param_names", KEY_NOTE}, {"absent_grads", KEY_NOTE},
    {"sgd", KEY_NOTE},           {"losses", KEY_NOTE},      {NULL, KEY_NOTE}};
static const key_info sample_keys[] = {
    {"method", KEY_TEXT}, {"rtol", KEY_NUMBER},  {"atol", KEY_NUMBER},   {"dtype", KEY_NOTE},
    {"args", KEY_NOTE},   {"f64_dev", KEY_NOTE}, {"not_with", KEY_NOTE}, {NULL, KEY_NOTE}};
static const key_info raise_keys[] = {
    {"input", KEY_NUMBER}, {"contains", KEY_TEXT}, {NULL, KEY_NOTE}};

static bool is_of_kind(const cJSON *item, key_kind kind) {
  switch (kind) {
    case KEY_TEXT: return cJSON_IsString(item);
    case KEY_NUMBER: return cJSON_IsNumber(item);
    case KEY_BOOL: return cJSON_IsBool(item);
    case KEY_LIST: return cJSON_IsArray(item);
    default: return true;
  }
}

/* `where`: "", or what the object is an item of. */
static char *check_object(const cJSON *json, const key_info *keys, const char *where) {
  static const char *const kinds[] = {"a string", "a number", "true or false", "a list", ""};
  const cJSON *item = NULL;
  if (!cJSON_IsObject(json)) return tool_format("case.json: an item of %s is no object", where);
  cJSON_ArrayForEach(item, json) {
    const key_info *key = keys;
    while (key->name && strcmp(key->name, item->string) != 0) key++;
    if (!key->name) {
      return tool_format("case.json has the key '%s'%s%s, which means nothing", item->string,
                         *where ? " in " : "", where);
    }
    if (!is_of_kind(item, key->kind)) {
      return tool_format("case.json: '%s'%s%s is not %s", item->string, *where ? " in " : "", where,
                         kinds[key->kind]);
    }
  }
  return NULL;
}

static char *check_items(const cJSON *json, const char *name, const key_info *keys) {
  const cJSON *item = NULL;
  char *complaint = NULL;
  cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, name)) {
    if (!complaint) complaint = check_object(item, keys, name);
  }
  return complaint;
}

char *check_keys(const cJSON *json) {
  char *complaint = check_object(json, case_keys, "");
  if (!complaint) complaint = check_items(json, "raises", raise_keys);
  if (!complaint) complaint = check_items(json, "samples", sample_keys);
  return complaint;
}
