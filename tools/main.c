/* main.c: the `kiln` command: finds the subcommand, parses its options, runs it. A new command is
 * its file and its line in KILN_COMMANDS. */
#include <stdlib.h>
#include <string.h>

#include "tools/commands.h"

static const tool_command *const commands[] = {
#define TOOL_COMMAND(name) &tool_command_##name,
    KILN_COMMANDS(TOOL_COMMAND)
#undef TOOL_COMMAND
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_help(FILE *file) {
  fputs("usage: kiln COMMAND [arguments]\n"
        "Runs TorchScript models without libtorch.\n\ncommands:\n",
        file);
  for (int i = 0; i < COMMAND_COUNT; i++) {
    fprintf(file, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
  }
  fputs("\n`kiln COMMAND --help` tells more; `kiln --version` tells which Kiln this is.\n", file);
}

static int run_command(const tool_command *command, int argc, char **argv) {
  void *options = tool_alloc(command->options_size);
  if (command->defaults) command->defaults(options);
  int status = tool_parse(command, argc, argv, options);
  if (status < 0) status = command->run(options, argv);
  tool_options_free(command, options);
  free(options);
  /* Results that could not be written are no results. */
  if (fflush(stdout) != 0 && status == TOOL_GOOD) {
    fputs("kiln: cannot write to standard output\n", stderr);
    status = TOOL_USAGE;
  }
  return status;
}

static bool is_one_of(const char *text, const char *a, const char *b, const char *c) {
  return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

static const tool_command *find_command(const char *name) {
  for (int i = 0; i < COMMAND_COUNT; i++) {
    if (strcmp(commands[i]->name, name) == 0) return commands[i];
  }
  return NULL;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    print_help(stderr);
    return TOOL_USAGE;
  }
  const char *name = argv[1];
  const bool help = is_one_of(name, "--help", "-h", "help");
  if (help && argc < 3) {
    print_help(stdout);
    return TOOL_GOOD;
  }
  if (is_one_of(name, "--version", "-V", "version")) {
    printf("kiln %s\n", kiln_version());
    return TOOL_GOOD;
  }
  if (help) name = argv[2];
  const tool_command *command = find_command(name);
  if (command && help) {
    tool_print_help(command, stdout);
    return TOOL_GOOD;
  }
  if (command) return run_command(command, argc - 2, argv + 2);
  const char *near = NULL;
  size_t least = TOOL_NEAR;
  for (int i = 0; i < COMMAND_COUNT; i++) {
    if (tool_is_nearer(name, commands[i]->name, &least)) near = commands[i]->name;
  }
  return tool_usage_error("unknown %s '%s'%s%s%s (kiln --help lists the commands)",
                          name[0] == '-' ? "option" : "command", name,
                          near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}
