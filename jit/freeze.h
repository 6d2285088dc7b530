/* freeze.h: a module frozen, as torch.jit.freeze does: attributes become constants of its methods.
 *
 * forward and the methods that are to stay are inlined; attributes that no method changes become
 * constants, in place of parameters without requires_grad; what is constant is evaluated. The
 * module that is left has those methods and the attributes that they still use. Numbers stay as
 * they are: nothing is folded across operators. */
#pragma once

#include "ir/unit.h"

/* A unit of one module and what is left of its submodules. Types of the source's unit, and its
 * classes, are used on: that unit lives longer. */
typedef struct kiln_frozen_module {
  kiln_unit *unit;  /* owned */
  kiln_ivalue root; /* owned */
} kiln_frozen_module;

typedef struct kiln_freeze_request {
  const char *const *preserve; /* names of methods and attributes */
  int preserve_count;
  bool eval; /* `training` is false, whatever the modules say */
} kiln_freeze_request;

/* Freezes `root`, an object of `unit`'s, as it is now; neither is changed. What is preserved
 * stays, and may be changed later: "n", "sub.weight", a whole submodule "sub".
 * KILN_INVALID_ARGUMENT for a module in training mode and for names that it does not have;
 * KILN_UNSUPPORTED names what cannot be frozen: hooks, modules that only a run chooses. `env`'s
 * flags are those of the model. */
kiln_status *kiln_jit_freeze(kiln_env *env, kiln_unit *unit, kiln_ivalue root,
                             const kiln_freeze_request *request,
                             kiln_frozen_module *out_module) KILN_MUST_USE;
void kiln_frozen_module_deinit(kiln_frozen_module *module);
