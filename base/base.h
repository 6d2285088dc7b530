/* base.h: everything the layers above share: statuses, memory, containers, text, flags, log,
 * threads.
 *
 * A convenience header; each part documents itself. base/ knows nothing of tensors or graphs. */
#pragma once

#include "base/arena.h"
#include "base/budget.h"
#include "base/checked.h"
#include "base/env.h"
#include "base/flags.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/scope.h"
#include "base/status.h"
#include "base/str.h"
#include "base/text.h"
#include "base/vec.h"
