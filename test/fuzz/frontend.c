/* frontend.c: libFuzzer targets of the loader: TARGET is zip (the input is the file), pickle (it is
 * data.pkl of an archive with some classes) or source (it is a code file). Whatever the bytes are:
 * a model whose graphs verify, or a status; no leak, no crash. */
#include <stdlib.h>

#include "frontend/torchscript/torchscript.h"
#include "test/unit/frontend/archive_support.h"

enum { zip, pickle, source };

static const char classes[] =
    "class E(Enum):\n  A = 1\n  B = 2\n"
    "class N(Module):\n  w : Tensor\n  l : List[int]\n  d : Dict[str, Tensor]\n  o : "
    "Optional[str]\n"
    "class S:\n  a : int\n"
    "  def __getstate__(self: __torch__.S) -> int:\n    return 1\n"
    "  def __setstate__(self: __torch__.S, x: int) -> NoneType:\n    self.a = x\n    return None\n"
    "class M(Module):\n  def f(self: __torch__.M, a: __torch__.p.M) -> int:\n    return 1\n";
static const char module[] = "class M(Module):\n  pass\n";
static const char root[] = "\x80\x02"
                           "c__torch__\nM\n)\x81}b.";
static const char none[] = "\x80\x02).";

static archive_builder archive;

static void build(const uint8_t *data, size_t size) {
  static const char weights[256];
  archive.size = 0;
  archive.count = 0;
  if (TARGET == pickle)
    archive_add_bytes(&archive, "t/data.pkl", data, size);
  else
    archive_add_bytes(&archive, "t/data.pkl", root, sizeof root - 1);
  archive_add_bytes(&archive, "t/code/__torch__.py", classes, sizeof classes - 1);
  if (TARGET == source)
    archive_add_bytes(&archive, "t/code/__torch__/p.py", data, size);
  else
    archive_add_bytes(&archive, "t/code/__torch__/p.py", module, sizeof module - 1);
  archive_add_bytes(&archive, "t/data/0", weights, sizeof weights);
  archive_add_bytes(&archive, "t/constants.pkl", none, sizeof none - 1);
  archive_add(&archive, "t/version", "3\n");
  archive_finish(&archive);
}

static void must(kiln_status *status) {
  if (!status) return;
  fprintf(stderr, "%s\n", kiln_status_report(status));
  abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static kiln_env *env;
  static kiln_registry *registry;
  if (size > ARCHIVE_MAX / 2) return 0;
  if (!env) {
    must(kiln_env_create(NULL, &env));
    must(kiln_registry_create(env, &registry));
  }
  if (TARGET != zip) build(data, size);
  kiln_mapping *mapping = NULL;
  kiln_torchscript *model = NULL;
  size_t before = kiln_mem_bytes(env->mem);
  if (TARGET == zip)
    must(kiln_mapping_wrap(env->mem, data, size, &mapping));
  else
    must(kiln_mapping_wrap(env->mem, archive.bytes, archive.size, &mapping));
  kiln_torchscript_options options = {.limits = {.bytes = 64 << 20, .time_ms = 5000}};
  kiln_status *status = kiln_torchscript_load(env, registry, mapping, &options, &model);
  kiln_owner_release(&mapping->owner);
  if (kiln_status_code(status) == KILN_INTERNAL) must(status);
  kiln_status_destroy(status);
  for (int i = 0; model && i < model->unit->all.count; i++) {
    if (model->unit->all.data[i]->graph) must(kiln_graph_verify(model->unit->all.data[i]->graph));
  }
  kiln_torchscript_destroy(model);
  /* What the context's type table has learnt stays; a megabyte at once is a leak. */
  if (kiln_mem_bytes(env->mem) > before + (1 << 20)) abort();
  return 0;
}
