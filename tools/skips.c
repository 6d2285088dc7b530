/* skips.c: reads test/SKIPPED.md: tables of what cannot run yet.
 *
 * Rows "| name | reason | issue |" count; a row of dashes and the row of titles before it do not.
 * Under a heading that holds the words "no group", a row says why a case forms no group. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/check.h"

/* The cell that starts at *cursor (behind its '|'), trimmed; moves to the next. NULL at the end. */
static char *next_cell(const char **cursor, const char *end) {
  const char *begin = *cursor, *bar = memchr(begin, '|', (size_t)(end - begin));
  if (!bar) return NULL;
  *cursor = bar + 1;
  while (begin < bar && (*begin == ' ' || *begin == '`')) begin++;
  while (bar > begin && (bar[-1] == ' ' || bar[-1] == '`')) bar--;
  return tool_format("%.*s", (int)(bar - begin), begin);
}

static void add_row(check_skips *skips, const char *line, const char *end, bool groups_only) {
  const char *cursor = line + 1;
  char *name = next_cell(&cursor, end), *reason = name ? next_cell(&cursor, end) : NULL;
  char *issue = reason ? next_cell(&cursor, end) : NULL;
  bool is_row = issue && *name && strspn(name, "-: ") != strlen(name);
  if (!is_row) {
    /* A line of dashes follows the titles, which were taken for a row. */
    if (name && reason && *name && skips->count > 0) {
      check_skip *titles = &skips->items[--skips->count];
      free(titles->name);
      free(titles->reason);
    }
    free(name);
    free(reason);
    free(issue);
    return;
  }
  skips->items = tool_grow(skips->items, sizeof *skips->items * (size_t)(skips->count + 1));
  skips->items[skips->count++] =
      (check_skip){name, tool_format("%s (%s)", reason, *issue ? issue : "no issue"), groups_only};
  free(reason);
  free(issue);
}

bool check_skips_read(const char *path, check_skips *out_skips) {
  size_t size = 0;
  char *error = NULL, *text = tool_read_file(path, &size, &error);
  *out_skips = (check_skips){0};
  if (!text) {
    tool_complain(error);
    return false;
  }
  bool groups_only = false;
  for (const char *line = text, *stop = text + size; line < stop;) {
    const char *end = memchr(line, '\n', (size_t)(stop - line));
    if (!end) end = stop;
    if (line[0] == '#') {
      char *heading = tool_format("%.*s", (int)(end - line), line);
      groups_only = strcasestr(heading, "no group") != NULL;
      free(heading);
    } else if (line[0] == '|') {
      add_row(out_skips, line, end, groups_only);
    }
    line = end + 1;
  }
  free(text);
  return true;
}

static bool matches(const char *entry, const check_case *c) {
  if (strcmp(entry, c->name) == 0) return true;
  if (*c->category && strcmp(entry, c->category) == 0) return true;
  size_t len = strlen(c->category);
  return len && strncmp(entry, c->category, len) == 0 && entry[len] == '/' &&
         strcmp(entry + len + 1, c->name) == 0;
}

const check_skip *check_skips_find(const check_skips *skips, const check_case *c,
                                   bool groups_only) {
  for (int i = 0; i < skips->count; i++) {
    if (skips->items[i].groups_only == groups_only && matches(skips->items[i].name, c)) {
      return &skips->items[i];
    }
  }
  return NULL;
}

void check_skips_free(check_skips *skips) {
  for (int i = 0; i < skips->count; i++) {
    free(skips->items[i].name);
    free(skips->items[i].reason);
  }
  free(skips->items);
  *skips = (check_skips){0};
}
