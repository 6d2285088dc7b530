/* registry.c: the operators of a context, built from the tables.
 *
 * Two steps. First every entry's schema is parsed; then the final order is laid out, each base
 * followed by its variants, whose schemas are derived: `add_` writes its first argument, `add.out`
 * an added keyword argument, `kiln::add_` gives what `add_` would have made of its first argument,
 * with the same complaints, in memory that nobody else sees. How an out variant is called depends
 * on how many overloads its base has, which is why the second step waits for the first. The tables'
 * part is immutable after kiln_registry_create; the host's operators stand beside it (ir/custom.h),
 * and names are of one part or the other. */
#include "ir/custom.h"
#include "ir/internal.h"
#include "ir/op.h"

/* -- The table -- */

#include "ir/ops_columns.h"
#undef KERNEL
#define KERNEL(fn) \
  kiln_status *kiln__kernel_##fn(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs);
#undef SPARSE
#define SPARSE(fn) KERNEL(fn)
#undef SHAPE
#define SHAPE(fn) bool kiln__shape_##fn(struct kiln_shape_query *query);
#undef FLOPS
#define FLOPS(fn) bool kiln__flops_##fn(const kiln_node *node, uint64_t *out_flops);
#define KILN_OP(id, schema, ...) __VA_ARGS__
#include "ir/ops.def"
#undef KILN_OP

typedef struct entry {
  const char *text;
  kiln_kernel_body body;
  const char *kernel; /* its name behind kiln__kernel_ */
  kiln_shape_fn shape;
  uint32_t flags, variants;
  kiln_op_cost cost;
  bool any_dtype;
  uint8_t devices;
  kiln_kernel_body sparse;
  kiln_nested_way nested;
  kiln_quant_way quant;
  kiln_flops_fn flops;
  kiln_op_result result;
  kiln_op_sizes sizes;
  kiln_op_stats stats;
  uint8_t raises, dims;
} entry;

#define ANY_DTYPE_any true
#define DEVICES_any UINT8_MAX

#define VARIANT_FLAG_inplace KILN_OP_HAS_VARIANT_INPLACE
#define VARIANT_FLAG_out KILN_OP_HAS_VARIANT_OUT
#define VARIANT_FLAGS_1(a) VARIANT_FLAG_##a
#define VARIANT_FLAGS_2(a, b) VARIANT_FLAG_##a | VARIANT_FLAG_##b
#define VARIANT_FLAGS_PICK(a, b, macro, ...) macro

#include "ir/ops_columns.h"
#undef KERNEL
#undef SHAPE
#undef COST
#undef FLAGS
#undef VARIANTS
#undef DTYPES
#undef DEVICES
#define DTYPES(class) .any_dtype = ANY_DTYPE_##class,
#define DEVICES(set) .devices = DEVICES_##set,
#undef SPARSE
#undef NESTED
#undef QUANT
#undef FLOPS
#undef DIMS
#undef RESULT
#undef SIZES
#undef WRITES_STATS
#undef RAISES
#define SPARSE(fn) .sparse = kiln__kernel_##fn,
#define NESTED(way) .nested = KILN_NESTED_##way,
#define QUANT(way) .quant = KILN_QUANT_##way,
#define FLOPS(fn) .flops = kiln__flops_##fn,
#define DIMS(count) .dims = count,
#define RESULT(kind) .result = KILN_RESULT_##kind,
#define SIZES(from) .sizes = KILN_SIZES_##from,
#define WRITES_STATS(...) .stats = {__VA_ARGS__},
#define RAISES(arg) .raises = (arg) + 1,
#define KERNEL(fn) .body = kiln__kernel_##fn, .kernel = #fn,
#define SHAPE(fn) .shape = kiln__shape_##fn,
#define COST(cost_class) .cost = KILN_COST_##cost_class,
#define FLAGS(set) .flags = set,
#define VARIANTS(...) \
  .variants = VARIANT_FLAGS_PICK(__VA_ARGS__, VARIANT_FLAGS_2, VARIANT_FLAGS_1, )(__VA_ARGS__),
static const entry entries[] = {
#define KILN_OP(id, schema, ...) {.text = schema, __VA_ARGS__},
#include "ir/ops.def"
#undef KILN_OP
};
enum { ENTRY_COUNT = sizeof entries / sizeof *entries };
_Static_assert((int)ENTRY_COUNT == (int)KILN_OP__BUILTIN_COUNT, "an entry for each operator");

/* -- The registry -- */

struct kiln_registry {
  kiln_env *env;
  kiln_arena *arena;
  kiln_type_table *types;
  kiln_map sets;  /* "aten::add" -> kiln_op_set */
  kiln_map exact; /* "aten::add.Tensor" -> kiln_op */
  KILN_VEC(kiln_op *) ops;
  kiln_op *bases;                         /* [ENTRY_COUNT]: by kiln_op_id */
  kiln_schema **schemas;                  /* [ENTRY_COUNT]: of bases, to release their defaults */
  int (*variant_at)[KILN_VARIANT__COUNT]; /* [ENTRY_COUNT]: index in ops by kiln_op_variant, -1 when
                                             absent */
  kiln__custom_ops custom;
};

static const char *join(kiln_arena *arena, kiln_str a, const char *b, kiln_str c) {
  size_t n = strlen(b);
  char *text = kiln_arena_alloc(arena, a.len + n + c.len + 1);
  memcpy(text, a.data, a.len);
  memcpy(text + a.len, b, n);
  if (c.len) memcpy(text + a.len + n, c.data, c.len);
  return text;
}

static kiln_op_set *set_of(kiln_registry *r, kiln_str name) {
  kiln_op_set *set = kiln_map_find(&r->sets, name);
  if (!set) {
    set = KILN_NEW(r->arena, kiln_op_set);
    set->name = name;
    kiln_map_set(&r->sets, name, set);
  }
  return set;
}

static void push_to_set(kiln_registry *r, kiln_op *op) {
  kiln_op_set *set = set_of(r, op->name);
  if (set->count == set->capacity) {
    int capacity = set->capacity ? 2 * set->capacity : 2;
    const kiln_op **ops = KILN_NEW_ARRAY(r->arena, const kiln_op *, capacity);
    if (set->count) memcpy(ops, set->ops, sizeof *ops * (size_t)set->count);
    set->ops = ops;
    set->capacity = capacity;
  }
  set->ops[set->count++] = op;
}

/* Names, kernel and place of an op whose schema (if any) is set. */
static kiln_status *add_op(kiln_registry *r, kiln_op *op, kiln_kernel_body body, int dest_arg) {
  const kiln_schema *s = op->schema;
  if (s) {
    op->name = s->name;
    op->full_name = s->name;
    if (s->overload.len) op->full_name = kiln_str_from(join(r->arena, s->name, ".", s->overload));
    op->kernel.arg_count = (int16_t)(s->is_vararg ? -1 : s->arg_count);
    op->kernel.out_count = (int16_t)s->result_count;
    if (kiln_schema_writes(s)) op->flags |= KILN_OP_WRITES;
    if (s->result_count > KILN_MAX_OUTS) {
      return KILN_ERROR(KILN_INTERNAL, "operator %s has too many results", op->text);
    }
  } else {
    op->name = op->full_name = kiln_str_from(op->text);
    op->kernel.arg_count = -1;
  }
  op->full_name = kiln_arena_str(r->arena, op->full_name);
  op->kernel.name = op->full_name.data;
  op->kernel.body = body;
  op->kernel.dest_arg = (int16_t)dest_arg;
  if (kiln_map_find(&r->exact, op->full_name)) {
    return KILN_ERROR(KILN_INTERNAL, "operator %s is registered twice", op->kernel.name);
  }
  kiln_map_set(&r->exact, op->full_name, op);
  push_to_set(r, op);
  kiln_vec_push(r->arena, &r->ops, op);
  return NULL;
}

/* -- Variants -- */

static const kiln_alias_info written_a = {.present = true, .is_write = true, .sets = 1, .after = 1};

/* The base's schema with room for one more argument and one result. Defaults are shared. */
static kiln_schema *derive_schema(kiln_registry *r, const kiln_schema *base) {
  kiln_schema *s = kiln_arena_copy(r->arena, base, sizeof *base);
  s->args = KILN_NEW_ARRAY(r->arena, kiln_schema_arg, base->arg_count + 1);
  memcpy(s->args, base->args, sizeof *s->args * (size_t)base->arg_count);
  s->results = kiln_arena_copy(r->arena, base->results, sizeof *base->results);
  s->results[0].alias = written_a;
  return s;
}

static kiln_schema *inplace_schema(kiln_registry *r, const kiln_schema *base) {
  kiln_schema *s = derive_schema(r, base);
  s->name = kiln_str_from(join(r->arena, base->name, "_", kiln_str_make("", 0)));
  s->args[0].alias = written_a;
  return s;
}

static kiln_schema *out_schema(kiln_registry *r, const kiln_schema *base, int overload_count) {
  kiln_schema *s = derive_schema(r, base);
  bool plain =
      overload_count == 1 || base->overload.len == 0 || kiln_str_is(base->overload, "Tensor");
  s->overload = KILN_STR("out");
  if (!plain) {
    s->overload = kiln_str_from(join(r->arena, base->overload, "_out", kiln_str_make("", 0)));
  }
  s->args[s->arg_count++] = (kiln_schema_arg){.name = KILN_STR("out"),
                                              .type = kiln_type_basic(KILN_TYPE_TENSOR),
                                              .kwarg_only = true,
                                              .alias = written_a};
  return s;
}

/* The operator writes its first argument, returns it and does nothing else that a copy of it would
 * not show. */
static bool has_copy_form(const kiln_op *op) {
  const kiln_schema *s = op->schema;
  const kiln_type *tensor = kiln_type_basic(KILN_TYPE_TENSOR);
  if (!s || s->is_vararg || s->arg_count < 1 || s->result_count != 1) return false;
  if (op->cost != KILN_COST_pointwise && op->cost != KILN_COST_data) return false;
  if (op->flags & (KILN_OP_SIDE_EFFECT | KILN_OP_NONDETERMINISTIC)) return false;
  for (int i = 1; i < s->arg_count; i++) {
    if (s->args[i].alias.is_write || s->args[i].elem_alias.is_write) return false;
  }
  return s->args[0].type == tensor && s->results[0].type == tensor && s->args[0].alias.is_write &&
         s->results[0].alias.is_write && kiln_str_starts(s->name, "aten::");
}

/* The schema of `aten::x_` without its marks, as `kiln::x_`. */
static kiln_schema *copy_schema(kiln_registry *r, const kiln_schema *inplace) {
  kiln_schema *s = derive_schema(r, inplace);
  kiln_str base = {s->name.data + 6, s->name.len - 6};
  s->name = kiln_str_from(join(r->arena, KILN_STR("kiln::"), "", base));
  s->args[0].alias = s->results[0].alias = (kiln_alias_info){0};
  return s;
}

static kiln_status *add_copy_form(kiln_registry *r, const kiln_op *inplace) {
  kiln_op *op = kiln_arena_copy(r->arena, inplace, sizeof *inplace);
  op->variant = KILN_VARIANT_COPY;
  op->schema = copy_schema(r, inplace->schema);
  op->shape = kiln__shape_self;
  op->flags = (op->flags & ~(uint32_t)KILN_OP_WRITES) | KILN_OP_NO_FOLD;
  op->kernel.reuse = KILN_REUSE_COPY;
  r->variant_at[inplace->id][KILN_VARIANT_COPY] = r->ops.count;
  return add_op(r, op, inplace->kernel.body, inplace->kernel.dest_arg);
}

static kiln_status *add_variant(kiln_registry *r, int id, kiln_op_variant variant,
                                int overload_count) {
  const kiln_op *base = &r->bases[id];
  const kiln_schema *s = base->schema;
  const kiln_type *tensor = kiln_type_basic(KILN_TYPE_TENSOR);
  if (!s || s->result_count != 1 || s->results[0].type != tensor || s->is_vararg ||
      (variant == KILN_VARIANT_INPLACE && (!s->arg_count || s->args[0].type != tensor))) {
    return KILN_ERROR(KILN_INTERNAL, "operator %s cannot have the variants it asks for",
                      base->text);
  }
  kiln_op *op = kiln_arena_copy(r->arena, base, sizeof *base);
  op->variant = variant;
  int dest = 0;
  if (variant == KILN_VARIANT_INPLACE) {
    op->schema = inplace_schema(r, s);
    op->shape = kiln__shape_self;
  } else {
    op->schema = out_schema(r, s, overload_count);
    op->shape = NULL; /* the destination is resized */
    dest = op->schema->arg_count - 1;
  }
  r->variant_at[id][variant] = r->ops.count;
  return add_op(r, op, base->kernel.body, dest);
}

/* -- Making -- */

/* The dtypes that a kernel does not take: it computes with the elements, and no kernel computes
 * with the rare ones. */
static uint32_t refuses(const entry *e) {
  const bool looks = e->cost == KILN_COST_pointwise || e->cost == KILN_COST_reduction ||
                     e->cost == KILN_COST_heavy || e->cost == KILN_COST_data;
  return looks && !e->any_dtype ? KILN_RARE_DTYPES : 0;
}

static kiln_status *parse_entry(kiln_registry *r, int id) {
  const entry *e = &entries[id];
  kiln_op *op = &r->bases[id];
  op->id = id;
  op->text = e->text;
  op->shape = e->shape;
  op->flags = e->flags | e->variants;
  op->cost = e->cost;
  op->flops = e->flops;
  op->result = e->result;
  op->sizes = e->sizes;
  op->stats = e->stats;
  op->raises = e->raises;
  op->dims = e->dims;
  op->kernel.body = e->body;
  op->kernel.refuses = refuses(e);
  op->kernel.devices = e->devices;
  op->kernel.sparse = e->sparse;
  op->kernel.nested = e->nested;
  op->kernel.quant = e->quant;
  if (!strchr(e->text, '(')) return NULL;
  kiln_status *status = kiln_schema_parse(r->arena, r->types, e->text, &r->schemas[id]);
  op->schema = r->schemas[id];
  return kiln_status_as(status, KILN_INTERNAL, "operator table: ");
}

/* How many table entries have each name; counts are stored + 1 in `counts`. */
static void count_overloads(kiln_registry *r, kiln_map *counts) {
  for (int id = 0; id < ENTRY_COUNT; id++) {
    if (!r->schemas[id]) continue;
    kiln_str name = r->schemas[id]->name;
    intptr_t n = (intptr_t)kiln_map_find(counts, name);
    kiln_map_set(counts, name, (void *)(n + 1));
  }
}

static kiln_status *fill(kiln_registry *r) {
  for (int id = 0; id < ENTRY_COUNT; id++) KILN_TRY(parse_entry(r, id));
  kiln_map counts = kiln_map_in(r->arena);
  count_overloads(r, &counts);
  kiln_vec_reserve(r->arena, &r->ops, 3 * ENTRY_COUNT);
  for (int id = 0; id < ENTRY_COUNT; id++) {
    kiln_op *op = &r->bases[id];
    int *at = r->variant_at[id];
    at[0] = r->ops.count;
    for (int v = 1; v < KILN_VARIANT__COUNT; v++) at[v] = -1;
    KILN_TRY(add_op(r, op, op->kernel.body, -1));
    int overloads = op->schema ? (int)(intptr_t)kiln_map_find(&counts, op->name) : 1;
    if (op->flags & KILN_OP_HAS_VARIANT_INPLACE) {
      KILN_TRY(add_variant(r, id, KILN_VARIANT_INPLACE, overloads));
      bool same = op->flags & KILN_OP_SAME_TYPE && op->cost == KILN_COST_pointwise;
      if (same) op->kernel.reuse = KILN_REUSE_SELF;
    }
    const kiln_op *written = at[KILN_VARIANT_INPLACE] < 0 ? op : r->ops.data[at[1]];
    if (has_copy_form(written)) KILN_TRY(add_copy_form(r, written));
    if (op->flags & KILN_OP_HAS_VARIANT_OUT) {
      KILN_TRY(add_variant(r, id, KILN_VARIANT_OUT, overloads));
    }
  }
  return NULL;
}

static kiln_status *create_tables(kiln_registry *r) {
  r->bases = KILN_NEW_ARRAY(r->arena, kiln_op, ENTRY_COUNT);
  r->schemas = KILN_NEW_ARRAY(r->arena, kiln_schema *, ENTRY_COUNT);
  r->variant_at = kiln_arena_alloc(r->arena, sizeof *r->variant_at * ENTRY_COUNT);
  r->sets = kiln_map_in(r->arena);
  r->exact = kiln_map_in(r->arena);
  return fill(r);
}
static kiln_status *try_tables(kiln_registry *r) { KILN_PROTECT(create_tables(r)); }

kiln_status *kiln_registry_create(kiln_env *env, kiln_registry **out_registry) {
  *out_registry = NULL;
  kiln_registry *r = kiln_mem_alloc_zero(env->mem, sizeof *r);
  if (!r) return kiln_status_oom();
  r->env = env;
  kiln__custom_init(&r->custom);
  kiln_status *status = kiln_arena_create(env->mem, &r->arena);
  if (!status) status = kiln_type_table_create(env->mem, NULL, &r->types);
  if (!status) status = try_tables(r);
  if (status) {
    kiln_registry_destroy(r);
    return status;
  }
  *out_registry = r;
  return NULL;
}

void kiln_registry_destroy(kiln_registry *registry) {
  if (!registry) return;
  kiln_mem *mem = registry->env->mem;
  kiln__custom_deinit(&registry->custom);
  for (int id = 0; registry->schemas && id < ENTRY_COUNT; id++) {
    kiln_schema_deinit(registry->schemas[id]);
  }
  if (registry->types) kiln_type_table_destroy(registry->types);
  kiln_arena_destroy(registry->arena);
  kiln_mem_free(mem, registry, sizeof *registry);
}

/* -- Lookup -- */

kiln_type_table *kiln_registry_types(const kiln_registry *registry) { return registry->types; }

const kiln_op_set *kiln_registry_find(const kiln_registry *registry, kiln_str name) {
  const kiln_op_set *set = kiln_map_find(&registry->sets, name);
  return set ? set : kiln__custom_find(&registry->custom, name);
}

const char *kiln_registry_kernel_name(const kiln_registry *registry, const kiln_kernel *kernel) {
  const kiln_op *op = kiln_map_find(&registry->exact, kiln_str_from(kernel->name));
  const bool is_own = op && op->id < (int)ENTRY_COUNT && op->kernel.body == kernel->body;
  return is_own && entries[op->id].body == kernel->body ? entries[op->id].kernel : NULL;
}

const kiln_op *kiln_registry_find_exact(const kiln_registry *registry, kiln_str full_name) {
  const kiln_op *op = kiln_map_find(&registry->exact, full_name);
  return op ? op : kiln__custom_find_exact(&registry->custom, full_name);
}

const kiln_op *kiln_registry_op(const kiln_registry *registry, kiln_op_id id) {
  KILN_ASSERT((unsigned)id < ENTRY_COUNT);
  return &registry->bases[id];
}

const kiln_op *kiln_registry_variant(const kiln_registry *registry, kiln_op_id id,
                                     kiln_op_variant variant) {
  int at = registry->variant_at[id][variant];
  return at < 0 ? NULL : registry->ops.data[at];
}

int kiln_registry_count(const kiln_registry *registry) {
  return registry->ops.count + kiln__custom_count(&registry->custom);
}

const kiln_op *kiln_registry_at(const kiln_registry *registry, int index) {
  int builtin = registry->ops.count;
  return index < builtin ? registry->ops.data[index]
                         : kiln__custom_at(&registry->custom, index - builtin);
}

const kiln_op *kiln_registry_custom_at(const kiln_registry *registry, int index) {
  return kiln__custom_at(&registry->custom, index);
}

/* -- Custom operators -- */

/* The name of a schema's text: up to its overload or arguments. */
static kiln_str name_in(const char *text) {
  while (*text == ' ' || *text == '\t' || *text == '\n') text++;
  return kiln_str_make(text, strcspn(text, ".( \t\n"));
}

kiln_status *kiln_registry_add(kiln_registry *registry, const kiln_op_def *def,
                               const kiln_op **out_op) {
  *out_op = NULL;
  kiln_str name = name_in(def->text);
  if (kiln_map_find(&registry->sets, name)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "operator " KILN_STR_FMT " is Kiln's own",
                      KILN_STR_ARG(name));
  }
  return kiln__custom_add(&registry->custom, registry->env->mem, registry->types, def, out_op);
}
