/* flags.c: the table of flags, and their values from and to text. */
#include "base/flags.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

const kiln_flag_info kiln_flag_table[] = {
#define KILN_FLAG(name, type, default_text, min, max, words, meaning) \
  {#name, KILN_FLAG_##type, default_text, min, max, words, meaning, offsetof(kiln_flags, name)},
#include "base/flags.def"
#undef KILN_FLAG
};
_Static_assert(sizeof kiln_flag_table / sizeof *kiln_flag_table <= 64, "kiln_env has a bit each");
const int kiln_flag_count = sizeof kiln_flag_table / sizeof *kiln_flag_table;

const kiln_flag_info *kiln_flags_find(const char *name) {
  for (int i = 0; i < kiln_flag_count; i++) {
    if (strcmp(kiln_flag_table[i].name, name) == 0) return &kiln_flag_table[i];
  }
  return NULL;
}

bool kiln_flag_is_fixed(const kiln_flag_info *info) {
  return strstr(info->meaning, "read when a context is made") != NULL;
}

/* -- Strategies -- */

/* "STATIC,2;DYNAMIC,10"; a last ";" and no level at all are fine, as in PyTorch. */
static bool parse_strategy(kiln_str text, kiln_strategy *out) {
  kiln_strategy strategy = {0};
  while (text.len > 0) {
    const char *stop = memchr(text.data, ';', text.len);
    kiln_str level = kiln_str_make(text.data, stop ? (size_t)(stop - text.data) : text.len);
    size_t eaten = level.len + (stop ? 1 : 0);
    text = kiln_str_make(text.data + eaten, text.len - eaten);

    const char *comma = level.len ? memchr(level.data, ',', level.len) : NULL;
    if (!comma || strategy.count == KILN_STRATEGY_MAX) return false;
    kiln_str word = kiln_str_make(level.data, (size_t)(comma - level.data));
    kiln_str number = kiln_str_make(comma + 1, level.len - word.len - 1);
    bool dynamic = kiln_str_is(word, "DYNAMIC");
    int64_t depth;
    if (!dynamic && !kiln_str_is(word, "STATIC")) return false;
    if (!kiln_str_parse_i64(number, &depth) || depth < 0 || depth > 1000) return false;
    strategy.level[strategy.count].dynamic = dynamic;
    strategy.level[strategy.count].depth = (int)depth;
    strategy.count++;
  }
  *out = strategy;
  return true;
}

int kiln_strategy_depth(const kiln_strategy *strategy) {
  int depth = 0;
  for (int i = 0; i < strategy->count; i++) depth += strategy->level[i].depth;
  return depth;
}

bool kiln_strategy_is_dynamic(const kiln_strategy *strategy, int remaining) {
  int depth = 0;
  for (int i = strategy->count - 1; i >= 0; i--) {
    depth += strategy->level[i].depth;
    if (remaining <= depth) return strategy->level[i].dynamic;
  }
  return false;
}

kiln_strategy kiln_flags_strategy(const kiln_flags *flags) {
  kiln_strategy strategy = flags->fusion_strategy;
  if (flags->bailout_depth < 0) return strategy;
  int left = (int)flags->bailout_depth;
  if (!strategy.given) {
    strategy.count = 1;
    strategy.level[0].dynamic = false;
    strategy.level[0].depth = left;
    return strategy;
  }
  for (int i = 0; i < strategy.count; i++) {
    if (strategy.level[i].depth > left) strategy.level[i].depth = left;
    left -= strategy.level[i].depth;
  }
  return strategy;
}

/* -- From text -- */

static bool parse_bool(const char *value, bool *out) {
  static const char *const words[] = {"off", "on", "0", "1", "false", "true"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcmp(value, words[i]) == 0) {
      *out = i & 1;
      return true;
    }
  }
  return false;
}

/* The place of `value` in "a|b|c", or -1. */
static int find_word(const char *words, const char *value) {
  size_t len = strlen(value);
  int index = 0;
  for (const char *word = words;; index++) {
    size_t word_len = strcspn(word, "|");
    if (word_len == len && memcmp(word, value, len) == 0) return index;
    if (!word[word_len]) return -1;
    word += word_len + 1;
  }
}

static void describe(const kiln_flag_info *info, char *buffer, size_t size) {
  switch (info->type) {
    case KILN_FLAG_BOOL: snprintf(buffer, size, "on or off"); break;
    case KILN_FLAG_ENUM: snprintf(buffer, size, "one of %s", info->words); break;
    case KILN_FLAG_STRING:
      snprintf(buffer, size, "at most %d bytes", KILN_FLAG_STRING_MAX - 1);
      break;
    case KILN_FLAG_STRATEGY:
      snprintf(buffer, size, "levels like STATIC,2;DYNAMIC,10, at most %d", KILN_STRATEGY_MAX);
      break;
    case KILN_FLAG_BYTES:
      snprintf(buffer, size, "a number of bytes, or of KiB, MiB, GiB or TiB: 1000, 64M, 2G");
      break;
    case KILN_FLAG_INT:
    case KILN_FLAG_FLOAT:
      snprintf(buffer, size, "%s from %lld to %lld",
               info->type == KILN_FLAG_INT ? "an integer" : "a number", (long long)info->min,
               (long long)info->max);
      break;
  }
}

static bool parse_value(const kiln_flag_info *info, const char *value, void *field) {
  kiln_str text = kiln_str_from(value);
  int64_t integer;
  double number;
  int index;
  bool on;
  switch (info->type) {
    case KILN_FLAG_BOOL: return parse_bool(value, field);
    case KILN_FLAG_INT:
    case KILN_FLAG_BYTES:
      if (info->type == KILN_FLAG_BYTES ? !kiln_str_parse_bytes(text, &integer)
                                        : !kiln_str_parse_i64(text, &integer)) {
        return false;
      }
      if (integer < info->min || integer > info->max) return false;
      *(int64_t *)field = integer;
      return true;
    case KILN_FLAG_FLOAT:
      if (!kiln_str_parse_f64(text, &number)) return false;
      if (!(number >= (double)info->min && number <= (double)info->max)) return false;
      *(double *)field = number;
      return true;
    case KILN_FLAG_ENUM:
      index = find_word(info->words, value);
      if (index < 0 && parse_bool(value, &on)) index = find_word(info->words, on ? "on" : "off");
      if (index < 0) return false;
      *(int *)field = index;
      return true;
    case KILN_FLAG_STRING:
      if (text.len >= KILN_FLAG_STRING_MAX) return false;
      memcpy(((kiln_flag_string *)field)->text, value, text.len + 1);
      return true;
    case KILN_FLAG_STRATEGY: return parse_strategy(text, field);
  }
  return false;
}

kiln_status *kiln_flags_set(kiln_flags *flags, const char *name, const char *value) {
  const kiln_flag_info *info = kiln_flags_find(name);
  if (!info)
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "there is no option \"%s\" (kiln list flags)", name);
  kiln_flags changed = *flags;
  void *field = (char *)&changed + info->offset;
  if (!parse_value(info, value, field)) {
    char allowed[128];
    describe(info, allowed, sizeof allowed);
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "option %s: \"%s\" is not %s", name, value, allowed);
  }
  if (info->type == KILN_FLAG_STRATEGY) ((kiln_strategy *)field)->given = true;
  /* Only what differs: other threads read the other flags, as the one that opens LLVM its path. */
  const char *from = (const char *)&changed;
  char *to = (char *)flags;
  for (size_t i = 0; i < sizeof changed; i++) {
    if (to[i] != from[i]) to[i] = from[i];
  }
  return NULL;
}

void kiln_flags_init(kiln_flags *flags) {
  memset(flags, 0, sizeof *flags);
  for (int i = 0; i < kiln_flag_count; i++) {
    const kiln_flag_info *info = &kiln_flag_table[i];
    bool fine = parse_value(info, info->default_text, (char *)flags + info->offset);
    KILN_ASSERT(fine); /* test/unit/base/flags_test.c sees to it */
    (void)fine;
  }
}

kiln_status *kiln_flags_read_env(kiln_flags *flags, char *const *environment,
                                 void (*on_unknown)(void *user, const char *name), void *user,
                                 uint64_t *out_set) {
  static const char prefix[] = "KILN_";
  for (; environment && *environment; environment++) {
    const char *entry = *environment;
    const char *equals = strchr(entry, '=');
    if (!equals || strncmp(entry, prefix, sizeof prefix - 1) != 0) continue;
    char full[80], name[sizeof full];
    size_t len = (size_t)(equals - entry);
    if (len >= sizeof full) len = sizeof full - 1;
    memcpy(full, entry, len);
    full[len] = 0;
    size_t i = 0;
    bool is_upper = true; /* KILN_JIT, not KILN_jit */
    for (const char *c = full + sizeof prefix - 1; *c; c++, i++) {
      if (islower((unsigned char)*c)) is_upper = false;
      name[i] = (char)tolower((unsigned char)*c);
    }
    name[i] = 0;
    if (!is_upper || !kiln_flags_find(name)) {
      if (on_unknown) on_unknown(user, full);
      continue;
    }
    KILN_TRY_NOTE(kiln_flags_set(flags, name, equals + 1), "reading the environment variable %s",
                  full);
    *out_set |= (uint64_t)1 << (kiln_flags_find(name) - kiln_flag_table);
  }
  return NULL;
}

/* -- To text -- */

static int print_strategy(const kiln_strategy *strategy, char *buffer, size_t size) {
  char text[KILN_STRATEGY_MAX * 24] = "";
  size_t len = 0;
  for (int i = 0; i < strategy->count; i++)
    len += (size_t)snprintf(text + len, sizeof text - len, "%s%s,%d", i ? ";" : "",
                            strategy->level[i].dynamic ? "DYNAMIC" : "STATIC",
                            strategy->level[i].depth);
  return snprintf(buffer, size, "%s", text);
}

int kiln_flags_print(const kiln_flags *flags, const kiln_flag_info *info, char *buffer,
                     size_t size) {
  const void *field = (const char *)flags + info->offset;
  char digits[32];
  switch (info->type) {
    case KILN_FLAG_BOOL: return snprintf(buffer, size, "%s", *(const bool *)field ? "on" : "off");
    case KILN_FLAG_BYTES: {
      int64_t bytes = *(const int64_t *)field;
      int unit = 0;
      for (; bytes && bytes % 1024 == 0 && unit < 4; unit++) bytes /= 1024;
      return snprintf(buffer, size, "%lld%.1s", (long long)bytes, unit ? &"KMGT"[unit - 1] : "");
    }
    case KILN_FLAG_INT: return snprintf(buffer, size, "%lld", (long long)*(const int64_t *)field);
    case KILN_FLAG_FLOAT:
      kiln_format_double(*(const double *)field, digits);
      return snprintf(buffer, size, "%s", digits);
    case KILN_FLAG_ENUM: {
      const char *word = info->words;
      for (int i = *(const int *)field; i > 0; i--) word += strcspn(word, "|") + 1;
      return snprintf(buffer, size, "%.*s", (int)strcspn(word, "|"), word);
    }
    case KILN_FLAG_STRING:
      return snprintf(buffer, size, "%s", ((const kiln_flag_string *)field)->text);
    case KILN_FLAG_STRATEGY: return print_strategy(field, buffer, size);
  }
  return 0;
}
