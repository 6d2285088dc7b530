/* commands.h: the one list of subcommands, in the order of the help. */
#pragma once

#include "tools/tool.h"

#define KILN_COMMANDS(X) \
  X(run)                 \
  X(check)               \
  X(bench)               \
  X(inspect)             \
  X(convert)             \
  X(compile)             \
  X(graph)               \
  X(explain)             \
  X(profile)             \
  X(opt)                 \
  X(cache)               \
  X(list)

#define TOOL_COMMAND(name) extern const tool_command tool_command_##name;
KILN_COMMANDS(TOOL_COMMAND)
#undef TOOL_COMMAND
