/* upgrade.c: operators that meant something else when an archive was written.
 *
 * The archive's version says which meaning its code has. upgrades.def lists each operator that has
 * changed with the last version of its old meaning; a call of it in such an archive is matched
 * against its old arguments and becomes a call of the function below, which gives the old result by
 * today's operators. The functions are TorchScript, compiled like a file of the archive when one is
 * first needed, and inlined as any other; within them operators have today's meaning.
 *
 * div took integers to integers, rounding to zero (the overloads with a rounding mode have not
 * changed). full made floats of every number unless told a dtype. linspace and logspace had 100
 * steps unless told. gelu had no other form.
 *
 * Operators also changed without a version of their own. Of those changes the one that turned
 * results into others is kept for archives from before 2.1, which lack an entry that later ones
 * have: aminmax of no dimensions kept one. */
#include "frontend/torchscript/emit.h"
#include "frontend/torchscript/python_print.h"

static const char source_text[] =
    "def div_Tensor(self: Tensor, other: Tensor) -> Tensor:\n"
    "  if torch.is_floating_point(self) or torch.is_floating_point(other):\n"
    "    out = torch.div(self, other)\n"
    "  else:\n"
    "    out = torch.div(self, other, rounding_mode=\"trunc\")\n"
    "  return out\n"
    "def div_Scalar(self: Tensor, other: number) -> Tensor:\n"
    "  if torch.is_floating_point(self) or isinstance(other, float):\n"
    "    out = torch.div(self, other)\n"
    "  else:\n"
    "    out = torch.div(self, other, rounding_mode=\"trunc\")\n"
    "  return out\n"
    /* The result's dtype has a say here: out= may ask for floats. */
    "def div_out(self: Tensor, other: Tensor, *, out: Tensor) -> Tensor:\n"
    "  floats = torch.is_floating_point(self) or torch.is_floating_point(other)\n"
    "  if floats or torch.is_floating_point(out):\n"
    "    result = torch.div(self, other, out=out)\n"
    "  else:\n"
    "    whole = torch.div(self, other, rounding_mode=\"trunc\")\n"
    "    result = torch.add(whole, torch.zeros_like(whole), out=out)\n"
    "  return result\n"
    "def div__Tensor(self: Tensor, other: Tensor) -> Tensor:\n"
    "  if torch.is_floating_point(self) or torch.is_floating_point(other):\n"
    "    out = torch.div_(self, other)\n"
    "  else:\n"
    "    out = torch.div_(self, other, rounding_mode=\"trunc\")\n"
    "  return out\n"
    "def div__Scalar(self: Tensor, other: number) -> Tensor:\n"
    "  if torch.is_floating_point(self) or isinstance(other, float):\n"
    "    out = torch.div_(self, other)\n"
    "  else:\n"
    "    out = torch.div_(self, other, rounding_mode=\"trunc\")\n"
    "  return out\n"
    "def full(size: List[int], fill_value: number, *, dtype: Optional[int]=None,\n"
    "    layout: Optional[int]=None, device: Optional[Device]=None,\n"
    "    pin_memory: Optional[bool]=None) -> Tensor:\n"
    "  if dtype is None:\n"
    "    out = torch.full(size, float(fill_value), layout=layout, device=device,\n"
    "        pin_memory=pin_memory)\n"
    "  else:\n"
    "    out = torch.full(size, fill_value, dtype=dtype, layout=layout, device=device,\n"
    "        pin_memory=pin_memory)\n"
    "  return out\n"
    "def linspace(start: number, end: number, steps: Optional[int]=None, *,\n"
    "    dtype: Optional[int]=None, layout: Optional[int]=None, device: Optional[Device]=None,\n"
    "    pin_memory: Optional[bool]=None) -> Tensor:\n"
    "  count = 100\n"
    "  if steps is not None:\n"
    "    count = steps\n"
    "  return torch.linspace(start, end, count, dtype=dtype, layout=layout, device=device,\n"
    "      pin_memory=pin_memory)\n"
    "def logspace(start: number, end: number, steps: Optional[int]=None, base: float=10.0, *,\n"
    "    dtype: Optional[int]=None, layout: Optional[int]=None, device: Optional[Device]=None,\n"
    "    pin_memory: Optional[bool]=None) -> Tensor:\n"
    "  count = 100\n"
    "  if steps is not None:\n"
    "    count = steps\n"
    "  return torch.logspace(start, end, count, base, dtype=dtype, layout=layout,\n"
    "      device=device, pin_memory=pin_memory)\n"
    "def gelu(self: Tensor) -> Tensor:\n"
    "  return torch.gelu(self, approximate=\"none\")\n"
    "def gelu_out(self: Tensor, *, out: Tensor) -> Tensor:\n"
    "  return torch.gelu(self, approximate=\"none\", out=out)\n"
    "def aminmax(self: Tensor, *, dim: Optional[int]=None, keepdim: bool=False)"
    " -> Tuple[Tensor, Tensor]:\n"
    "  low, high = torch.aminmax(self, dim=dim, keepdim=keepdim)\n"
    "  if keepdim and dim is not None and torch.dim(self) == 0:\n"
    "    result = (torch.unsqueeze(low, 0), torch.unsqueeze(high, 0))\n"
    "  else:\n"
    "    result = (low, high)\n"
    "  return result\n";

enum { KILN_BEFORE_2_1 = -1 }; /* no version: what wrote the archive decides */

static const struct {
  const char *op, *overload;
  int64_t last;
  const char *function;
} upgrades[] = {
#define KILN_UPGRADE(op, overload, last, function) {op, overload, last, function},
#include "frontend/torchscript/upgrades.def"
#undef KILN_UPGRADE
};
enum { UPGRADE_COUNT = sizeof upgrades / sizeof *upgrades };

kiln_str kiln__upgrade_source(void) { return kiln_str_make(source_text, sizeof source_text - 1); }

int64_t kiln__upgrade_first_version(kiln_str op) {
  int64_t version = 3;
  for (int i = 0; i < UPGRADE_COUNT; i++) {
    if (kiln_str_is(op, upgrades[i].op) && upgrades[i].last >= version) {
      version = upgrades[i].last + 1;
    }
  }
  return version;
}

/* Whether the archive has the old meaning of the operator in row i. */
static bool is_old(const kiln_loader *l, int i) {
  const int64_t last = upgrades[i].last;
  return last == KILN_BEFORE_2_1 ? l->model->early : l->model->version <= last;
}

/* The row of the overload that has the schema, in an archive of this version, or -1; NULL: of any
 * overload. */
static int find_upgrade(const kiln_loader *l, const char *name, const kiln_schema *schema) {
  for (int i = 0; i < UPGRADE_COUNT; i++) {
    if (is_old(l, i) && strcmp(name, upgrades[i].op) == 0 &&
        (!schema || kiln_str_is(schema->overload, upgrades[i].overload))) {
      return i;
    }
  }
  return -1;
}

static kiln_status *find_function(kiln__script_emitter *e, int row, kiln_function **out_function) {
  kiln_found found;
  const char *name =
      kiln_arena_printf(e->l->ast_arena, KILN_UPGRADE_QUALIFIER ".%s", upgrades[row].function);
  KILN_TRY(kiln__loader_find(e->l, kiln_str_from(name), &found));
  KILN_CHECK(found.function);
  *out_function = found.function;
  return kiln__loader_schema(e->l, found.function);
}

/* Whether the arguments are those of the old operator, with conversions or without. */
static bool fits(kiln__script_emitter *e, const kiln_schema *schema, const kiln_actual *actuals,
                 int count, bool convert) {
  kiln_type_env env = {.types = e->l->types};
  kiln_match_slot *slots = KILN_NEW_ARRAY(e->l->ast_arena, kiln_match_slot, schema->arg_count + 1);
  int varargs = count;
  return kiln_match_schema(&env, schema, actuals, count, convert, slots, &varargs, NULL);
}

kiln_status *kiln__ts_find_upgrade(kiln__script_emitter *e, const char *name,
                                   const kiln_op_set *set, const kiln_actual *actuals, int count,
                                   kiln_function **out_function) {
  *out_function = NULL;
  if (e->file->builtin || find_upgrade(e->l, name, NULL) < 0) return NULL;
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < set->count; i++) {
      const kiln_schema *schema = set->ops[i]->schema;
      kiln_function *function = NULL;
      int row = schema ? find_upgrade(e->l, name, schema) : -1;
      if (row >= 0) {
        KILN_TRY(find_function(e, row, &function));
        if (upgrades[row].last == KILN_BEFORE_2_1) e->l->model->has_early_calls = true;
        schema = function->schema;
      }
      if (!schema || !fits(e, schema, actuals, count, pass == 1)) continue;
      *out_function = function; /* NULL: the call is of an overload that has not changed */
      return NULL;
    }
  }
  return NULL;
}
