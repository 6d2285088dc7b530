/* frontend.c: targets of the loader alone: zip (the input is the file), pickle (it is data.pkl of
 * an archive with some classes) and source (it is a code file). Whatever the bytes are: a model
 * whose graphs verify, or a status; no leak. */
#include <stdlib.h>

#include "frontend/npy.h"
#include "frontend/torch_save.h"
#include "frontend/torchscript/torchscript.h"
#include "test/fuzz/fuzz.h"
#include "test/unit/frontend/archive_support.h"

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

static kiln_env *env;
static kiln_registry *registry;

static void start(void) {
  if (env) return;
  fuzz_must(kiln_env_create(NULL, &env));
  fuzz_must(kiln_registry_create(env, &registry));
}

/* What the context's type table has learnt stays; a megabyte at once is a leak. */
static void end(size_t bytes_before) {
  if (kiln_mem_bytes(env->mem) > bytes_before + (1 << 20)) abort();
}

static void load(const void *data, size_t size) {
  kiln_mapping *mapping = NULL;
  kiln_torchscript *model = NULL;
  start();
  size_t before = kiln_mem_bytes(env->mem);
  fuzz_must(kiln_mapping_wrap(env->mem, data, size, &mapping));
  kiln_torchscript_options options = {.limits = {.bytes = 64 << 20, .time_ms = 1000}};
  kiln_status *status = kiln_torchscript_load(env, registry, mapping, &options, &model);
  kiln_owner_release(&mapping->owner);
  fuzz_may(status);
  for (int i = 0; model && i < model->unit->all.count; i++) {
    if (model->unit->all.data[i]->graph)
      fuzz_must(kiln_graph_verify(model->unit->all.data[i]->graph));
  }
  kiln_torchscript_destroy(model);
  end(before);
}

static void load_with(const char *pickle_data, size_t pickle_size, const char *code,
                      size_t code_size) {
  static archive_builder archive;
  static const char weights[256];
  archive.size = 0;
  archive.count = 0;
  archive_add_bytes(&archive, "t/data.pkl", pickle_data, pickle_size);
  archive_add_bytes(&archive, "t/code/__torch__.py", classes, sizeof classes - 1);
  archive_add_bytes(&archive, "t/code/__torch__/p.py", code, code_size);
  archive_add_bytes(&archive, "t/data/0", weights, sizeof weights);
  archive_add_bytes(&archive, "t/constants.pkl", none, sizeof none - 1);
  archive_add(&archive, "t/version", "3\n");
  archive_finish(&archive);
  load(archive.bytes, archive.size);
}

void fuzz_zip(const uint8_t *data, size_t size) { load(data, size); }

void fuzz_pickle(const uint8_t *data, size_t size) {
  if (size < ARCHIVE_MAX / 2) load_with((const char *)data, size, module, sizeof module - 1);
}

void fuzz_source(const uint8_t *data, size_t size) {
  if (size < ARCHIVE_MAX / 2) load_with(root, sizeof root - 1, (const char *)data, size);
}

void fuzz_values(const uint8_t *data, size_t size) {
  kiln_type_table *types = NULL;
  kiln_mapping *mapping = NULL;
  start();
  size_t before = kiln_mem_bytes(env->mem);
  if (size >= 6 && memcmp(data, "\x93NUMPY", 6) == 0) {
    kiln_tensor *tensor = NULL;
    fuzz_may(kiln_npy_read(env, kiln_str_make((const char *)data, size), &tensor));
    if (tensor) kiln_tensor_release(tensor);
  } else {
    kiln_ivalue value = kiln_none();
    fuzz_must(kiln_type_table_create(env->mem, kiln_registry_types(registry), &types));
    fuzz_must(kiln_mapping_wrap(env->mem, data, size, &mapping));
    fuzz_may(kiln_torch_save_read(env, types, mapping, NULL, &value));
    kiln_owner_release(&mapping->owner);
    kiln_ivalue_release(value);
    kiln_type_table_destroy(types);
  }
  end(before);
}
