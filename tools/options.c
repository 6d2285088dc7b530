/* options.c: parsing of a command's arguments by its option table, and the help made from it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tool.h"

static const tool_option help_option = {"--help", TOOL_SWITCH, 0, NULL, 0, "show this text"};

static const tool_option *find_option(const tool_command *command, const char *name, size_t len) {
  for (int i = 0; i < command->option_count; i++) {
    const tool_option *o = &command->options[i];
    if (strlen(o->name) == len && memcmp(o->name, name, len) == 0) return o;
  }
  return NULL;
}

static bool is_word_of(const char *value, const char *words) {
  size_t len = strlen(value);
  for (const char *w = words; *w;) {
    size_t n = strcspn(w, "|");
    if (n == len && memcmp(w, value, n) == 0) return true;
    w += n + (w[n] == '|');
  }
  return false;
}

/* Stores a value; false after a complaint. */
static bool store(const tool_option *o, const char *value, void *options) {
  char *field = (char *)options + o->offset;
  char *end = NULL;
  errno = 0;
  switch (o->kind) {
    case TOOL_SWITCH: *(bool *)(void *)field = true; return true;
    case TOOL_TEXT: *(const char **)(void *)field = value; return true;
    case TOOL_WORD:
      if (!is_word_of(value, o->value)) {
        tool_usage_error("%s takes %s, not '%s'", o->name, o->value, value);
        return false;
      }
      *(const char **)(void *)field = value;
      return true;
    case TOOL_BYTES:
    case TOOL_INT: {
      long long n = strtoll(value, &end, 10);
      static const char units[] = "KMGT";
      const char *unit = o->kind == TOOL_BYTES && *end ? memchr(units, *end & ~0x20, 4) : NULL;
      if (unit && end > value) {
        end++;
        if (__builtin_mul_overflow(n, 1LL << (10 * (unit - units + 1)), &n)) errno = ERANGE;
      }
      if (errno || end == value || *end || n < o->min) {
        tool_usage_error(
            "%s takes a whole number of at least %lld%s, not '%s'", o->name, (long long)o->min,
            o->kind == TOOL_BYTES ? ", in bytes or with K, M, G or T behind it" : "", value);
        return false;
      }
      *(int64_t *)(void *)field = n;
      return true;
    }
    case TOOL_REAL: {
      double d = strtod(value, &end);
      if (errno || end == value || *end || !(d >= (double)o->min)) {
        tool_usage_error("%s takes a number of at least %lld, not '%s'", o->name, (long long)o->min,
                         value);
        return false;
      }
      *(double *)(void *)field = d;
      return true;
    }
    case TOOL_LIST: {
      tool_list *list = (tool_list *)(void *)field;
      list->items = tool_grow(list->items, sizeof *list->items * (size_t)(list->count + 1));
      list->items[list->count++] = value;
      return true;
    }
  }
  return false;
}

static bool is_option(const char *text) { return text[0] == '-' && text[1] != 0; }

static int unknown_option(const tool_command *command, const char *arg, size_t len) {
  char *given = tool_format("%.*s", (int)len, arg);
  const char *near = NULL;
  size_t least = TOOL_NEAR;
  for (int i = 0; i < command->option_count; i++) {
    if (tool_is_nearer(given, command->options[i].name, &least)) near = command->options[i].name;
  }
  const int exit_status = tool_usage_error(
      "%s: unknown option '%s'%s%s%s (kiln %s --help shows them)", command->name, given,
      near ? "; did you mean " : "", near ? near : "", near ? "?" : "", command->name);
  free(given);
  return exit_status;
}

int tool_parse(const tool_command *command, int argc, char **argv, void *options) {
  int operands = 0;
  bool only_operands = false;
  for (int i = 0; i < argc; i++) {
    char *arg = argv[i];
    if (only_operands || !is_option(arg)) {
      argv[operands++] = arg;
      continue;
    }
    if (strcmp(arg, "--") == 0) {
      only_operands = true;
      continue;
    }
    if (strcmp(arg, help_option.name) == 0 || strcmp(arg, "-h") == 0) {
      tool_print_help(command, stdout);
      return TOOL_GOOD;
    }
    size_t len = strcspn(arg, "=");
    const tool_option *o = find_option(command, arg, len);
    if (!o) {
      return unknown_option(command, arg, len);
    }
    const char *value = arg[len] == '=' ? arg + len + 1 : NULL;
    if (o->kind == TOOL_SWITCH && value) {
      return tool_usage_error("%s takes no value", o->name);
    }
    if (o->kind != TOOL_SWITCH && !value) {
      if (i + 1 >= argc) return tool_usage_error("%s needs a value: %s", o->name, o->value);
      value = argv[++i];
    }
    if (!store(o, value, options)) return TOOL_USAGE;
  }
  argv[operands] = NULL;
  if (operands < command->min_operands ||
      (command->max_operands >= 0 && operands > command->max_operands)) {
    return tool_usage_error("usage: %s", command->usage);
  }
  return -1;
}

void tool_options_free(const tool_command *command, void *options) {
  for (int i = 0; i < command->option_count; i++) {
    const tool_option *o = &command->options[i];
    if (o->kind == TOOL_LIST) {
      free(((tool_list *)(void *)((char *)options + o->offset))->items);
    }
  }
}

static void print_option(const tool_option *o, FILE *file) {
  enum { HELP_AT = 27 };
  const int width =
      fprintf(file, "  %s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
  fprintf(file, "%*s%s\n", width < HELP_AT ? HELP_AT - width : 1, "", o->help);
}

void tool_print_help(const tool_command *command, FILE *file) {
  fprintf(file, "usage: %s\n%s\n", command->usage, command->summary);
  if (command->details) fprintf(file, "\n%s", command->details);
  fputs("\noptions:\n", file);
  for (int i = 0; i < command->option_count; i++) print_option(&command->options[i], file);
  print_option(&help_option, file);
}
