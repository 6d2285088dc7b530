/* registry.c: the operators of a context, built from the tables as they are asked for.
 *
 * A context uses some dozens of operators of 2,500, so kiln_registry_create reads names alone. The
 * entries whose names have one stem are a family (aten::add.Tensor, aten::add_, prim::add: "add"),
 * which is made when one of its names or ids is looked up first: each entry's schema is parsed, and
 * followed by its variants, whose schemas are derived: `add_` writes its first argument, `add.out`
 * an added keyword argument, `kiln::add_` gives what `add_` would have made of its first argument,
 * with the same complaints, in memory that nobody else sees. How an out variant is called depends
 * on how many overloads its base has.
 *
 * Threads A and B look up aten::add, which nobody has: A makes its family under the lock, B waits;
 * who comes later sees that it is made, and takes no lock. A family that is made never changes. The
 * host's operators stand beside the tables (ir/custom.h); names are of one part or the other. */
#include <unistd.h>

#include "base/job_lock.h"
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
  uint8_t format, devices;
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
#undef FORMAT
#define FORMAT(from) .format = KILN_FORMAT_FROM_##from,
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

enum { NO_ENTRY = -1 };

typedef struct family {
  bool is_made; /* atomic */
  int first;    /* of its entries */
  KILN_VEC(kiln_op_set *) sets;
} family;

struct kiln_registry {
  kiln_env *env;
  pthread_mutex_t lock; /* of who makes families */
  pid_t maker;
  kiln_arena *arena;
  kiln_type_table *types;
  kiln_map families;                    /* by stem: family; complete from the start */
  family **family_of;                   /* [ENTRY_COUNT]: by kiln_op_id, as what follows */
  int *next_of;                         /* the next entry of its family, or NO_ENTRY */
  kiln_schema **schemas;                /* of bases, to release their defaults */
  kiln_op *(*ops)[KILN_VARIANT__COUNT]; /* NULL where there is no such variant */
  KILN_VEC(kiln_op *) all;              /* in order, from when that was first asked for */
  bool is_listed;                       /* atomic: all of `all` is there */
  kiln__custom_ops custom;
};

/* -- Names -- */

/* The name that a schema's text begins with: up to its overload or arguments. */
static kiln_str name_in(const char *text) {
  while (*text == ' ' || *text == '\t' || *text == '\n') text++;
  return kiln_str_make(text, strcspn(text, ".( \t\n"));
}

/* "add" of aten::add, aten::add_ and kiln::add_. */
static kiln_str stem_of(kiln_str name) {
  const char *colons = name.len > 2 ? memchr(name.data, ':', name.len) : NULL;
  const size_t space = colons ? (size_t)(colons - name.data) + 2 : 0;
  if (space < name.len) name = kiln_str_make(name.data + space, name.len - space);
  while (name.len > 1 && name.data[name.len - 1] == '_') name.len--;
  return name;
}

/* -- Sets -- */

static const char *join(kiln_arena *arena, kiln_str a, const char *b, kiln_str c) {
  size_t n = strlen(b);
  char *text = kiln_arena_alloc(arena, a.len + n + c.len + 1);
  memcpy(text, a.data, a.len);
  memcpy(text + a.len, b, n);
  if (c.len) memcpy(text + a.len + n, c.data, c.len);
  return text;
}

static kiln_op_set *find_set(const family *f, kiln_str name) {
  for (int i = 0; i < f->sets.count; i++)
    if (kiln_str_equal(f->sets.data[i]->name, name)) return f->sets.data[i];
  return NULL;
}

static kiln_op_set *set_of(kiln_registry *r, family *f, kiln_str name) {
  kiln_op_set *set = find_set(f, name);
  if (!set) {
    set = KILN_NEW(r->arena, kiln_op_set);
    set->name = name;
    kiln_vec_push(r->arena, &f->sets, set);
  }
  return set;
}

static const kiln_op *find_in_set(const kiln_op_set *set, kiln_str full_name) {
  for (int i = 0; set && i < set->count; i++)
    if (kiln_str_equal(set->ops[i]->full_name, full_name)) return set->ops[i];
  return NULL;
}

static void push_to_set(kiln_registry *r, kiln_op_set *set, kiln_op *op) {
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
  kiln_op_set *set = set_of(r, r->family_of[op->id], op->name);
  if (find_in_set(set, op->full_name))
    return KILN_ERROR(KILN_INTERNAL, "operator %s is registered twice", op->kernel.name);
  push_to_set(r, set, op);
  r->ops[op->id][op->variant] = op;
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
  return add_op(r, op, inplace->kernel.body, inplace->kernel.dest_arg);
}

static kiln_status *add_variant(kiln_registry *r, const kiln_op *base, kiln_op_variant variant,
                                int overload_count) {
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
  op->kernel.format = KILN_FORMAT_FROM_nothing;
  if (variant == KILN_VARIANT_INPLACE) {
    op->schema = inplace_schema(r, s);
    op->shape = kiln__shape_self;
  } else {
    op->schema = out_schema(r, s, overload_count);
    op->shape = NULL; /* the destination is resized */
    dest = op->schema->arg_count - 1;
  }
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

static bool has_schema(const entry *e) { return strchr(e->text, '(') != NULL; }

static kiln_status *parse_entry(kiln_registry *r, int id, kiln_op **out_op) {
  const entry *e = &entries[id];
  kiln_op *op = *out_op = KILN_NEW(r->arena, kiln_op);
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
  op->kernel.format = e->format;
  op->kernel.devices = e->devices;
  op->kernel.sparse = e->sparse;
  op->kernel.nested = e->nested;
  op->kernel.quant = e->quant;
  if (!has_schema(e)) return NULL;
  kiln_schema_deinit(r->schemas[id]); /* of a time when memory was short */
  kiln_status *status = kiln_schema_parse(r->arena, r->types, e->text, &r->schemas[id]);
  op->schema = r->schemas[id];
  return kiln_status_as(status, KILN_INTERNAL, "operator table: ");
}

static int count_overloads(const kiln_registry *r, int id) {
  const kiln_str name = name_in(entries[id].text);
  int count = 0;
  for (int i = r->family_of[id]->first; i != NO_ENTRY; i = r->next_of[i])
    count += has_schema(&entries[i]) && kiln_str_equal(name_in(entries[i].text), name);
  return count;
}

/* An entry and its variants. */
static kiln_status *add_entry(kiln_registry *r, kiln_op *op) {
  const int overloads = op->schema ? count_overloads(r, op->id) : 1;
  KILN_TRY(add_op(r, op, op->kernel.body, -1));
  if (op->flags & KILN_OP_HAS_VARIANT_INPLACE) {
    KILN_TRY(add_variant(r, op, KILN_VARIANT_INPLACE, overloads));
    bool same = op->flags & KILN_OP_SAME_TYPE && op->cost == KILN_COST_pointwise;
    if (same) op->kernel.reuse = KILN_REUSE_SELF;
  }
  const kiln_op *inplace = r->ops[op->id][KILN_VARIANT_INPLACE], *written = inplace ? inplace : op;
  if (has_copy_form(written)) KILN_TRY(add_copy_form(r, written));
  if (op->flags & KILN_OP_HAS_VARIANT_OUT)
    KILN_TRY(add_variant(r, op, KILN_VARIANT_OUT, overloads));
  return NULL;
}

static kiln_status *make_family(kiln_registry *r, family *f) {
  f->sets.count = 0;
  for (int id = f->first; id != NO_ENTRY; id = r->next_of[id]) {
    kiln_op *op;
    memset(r->ops[id], 0, sizeof r->ops[id]);
    KILN_TRY(parse_entry(r, id, &op));
    KILN_TRY(add_entry(r, op));
  }
  return NULL;
}
static kiln_status *try_family(kiln_registry *r, family *f) { KILN_PROTECT(make_family(r, f)); }

/* Makes what `done` tells of, unless somebody has; under the lock. */
static kiln_status *make_once(const kiln_registry *registry, bool *done, family *f,
                              kiln_status *(*make)(kiln_registry *r, family *f)) {
  kiln_registry *r = (kiln_registry *)(uintptr_t)registry;
  if (__atomic_load_n(done, __ATOMIC_ACQUIRE)) return NULL;
  KILN_TRY(kiln_short_lock_take(&r->lock, r->maker));
  kiln_status *status = *done ? NULL : make(r, f);
  if (!status) __atomic_store_n(done, true, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&r->lock);
  return status;
}
/* A lookup that lacks memory ends the scope that it is in. */
static void need(const kiln_registry *registry, family *f) {
  kiln_status *status = make_once(registry, &f->is_made, f, try_family);
  if (status) kiln_scope_fail(status);
}

static kiln_status *list_all(kiln_registry *r) {
  static const kiln_op_variant order[] = {KILN_VARIANT_NONE, KILN_VARIANT_INPLACE,
                                          KILN_VARIANT_COPY, KILN_VARIANT_OUT};
  r->all.count = 0;
  for (int id = 0; id < ENTRY_COUNT; id++) {
    for (int v = 0; v < KILN_VARIANT__COUNT; v++)
      if (r->ops[id][order[v]]) kiln_vec_push(r->arena, &r->all, r->ops[id][order[v]]);
  }
  return NULL;
}
static kiln_status *try_list(kiln_registry *r, family *none) {
  (void)none;
  KILN_PROTECT(list_all(r));
}
static void need_all(const kiln_registry *registry) {
  bool *listed = (bool *)(uintptr_t)&registry->is_listed;
  if (__atomic_load_n(listed, __ATOMIC_ACQUIRE)) return;
  for (int id = 0; id < ENTRY_COUNT; id++) need(registry, registry->family_of[id]);
  kiln_status *status = make_once(registry, listed, NULL, try_list);
  if (status) kiln_scope_fail(status);
}

/* By entry, so that a family's are in the order of the tables. */
static void find_families(kiln_registry *r) {
  for (int id = ENTRY_COUNT - 1; id >= 0; id--) {
    const kiln_str stem = stem_of(name_in(entries[id].text));
    family *f = kiln_map_find(&r->families, stem);
    if (!f) {
      f = KILN_NEW(r->arena, family);
      f->first = NO_ENTRY;
      kiln_map_set(&r->families, stem, f);
    }
    r->family_of[id] = f;
    r->next_of[id] = f->first;
    f->first = id;
  }
}

/* -- Life -- */

static kiln_status *create_tables(kiln_registry *r) {
  r->family_of = KILN_NEW_ARRAY(r->arena, family *, ENTRY_COUNT);
  r->next_of = KILN_NEW_ARRAY(r->arena, int, ENTRY_COUNT);
  r->schemas = KILN_NEW_ARRAY(r->arena, kiln_schema *, ENTRY_COUNT);
  r->ops = kiln_arena_alloc(r->arena, sizeof *r->ops * ENTRY_COUNT);
  r->families = kiln_map_in(r->arena);
  find_families(r);
  return NULL;
}
static kiln_status *try_tables(kiln_registry *r) { KILN_PROTECT(create_tables(r)); }

kiln_status *kiln_registry_create(kiln_env *env, kiln_registry **out_registry) {
  *out_registry = NULL;
  kiln_registry *r = kiln_mem_alloc_zero(env->mem, sizeof *r);
  if (!r) return kiln_status_oom();
  r->env = env;
  pthread_mutex_init(&r->lock, NULL);
  r->maker = getpid();
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
  pthread_mutex_destroy(&registry->lock);
  kiln_mem_free(mem, registry, sizeof *registry);
}

/* -- Lookup -- */

kiln_type_table *kiln_registry_types(const kiln_registry *registry) { return registry->types; }

/* Of the tables' operators; NULL when absent. */
static const kiln_op_set *find_own(const kiln_registry *registry, kiln_str name) {
  family *f = kiln_map_find(&registry->families, stem_of(name));
  if (!f) return NULL;
  need(registry, f);
  return find_set(f, name);
}
static const kiln_op *find_own_exact(const kiln_registry *registry, kiln_str full_name) {
  const char *dot = full_name.len ? memchr(full_name.data, '.', full_name.len) : NULL;
  const size_t len = dot ? (size_t)(dot - full_name.data) : full_name.len;
  return find_in_set(find_own(registry, kiln_str_make(full_name.data, len)), full_name);
}

const kiln_op_set *kiln_registry_find(const kiln_registry *registry, kiln_str name) {
  const kiln_op_set *set = find_own(registry, name);
  return set ? set : kiln__custom_find(&registry->custom, name);
}

const char *kiln_registry_kernel_name(const kiln_registry *registry, const kiln_kernel *kernel) {
  const kiln_op *op = find_own_exact(registry, kiln_str_from(kernel->name));
  const bool is_own = op && op->kernel.body == kernel->body;
  return is_own && entries[op->id].body == kernel->body ? entries[op->id].kernel : NULL;
}

const kiln_op *kiln_registry_find_exact(const kiln_registry *registry, kiln_str full_name) {
  const kiln_op *op = find_own_exact(registry, full_name);
  return op ? op : kiln__custom_find_exact(&registry->custom, full_name);
}

const kiln_op *kiln_registry_variant(const kiln_registry *registry, kiln_op_id id,
                                     kiln_op_variant variant) {
  KILN_ASSERT((unsigned)id < ENTRY_COUNT);
  need(registry, registry->family_of[id]);
  return registry->ops[id][variant];
}

const kiln_op *kiln_registry_op(const kiln_registry *registry, kiln_op_id id) {
  return kiln_registry_variant(registry, id, KILN_VARIANT_NONE);
}

int kiln_registry_count(const kiln_registry *registry) {
  need_all(registry);
  return registry->all.count + kiln__custom_count(&registry->custom);
}

const kiln_op *kiln_registry_at(const kiln_registry *registry, int index) {
  need_all(registry);
  const int own = registry->all.count;
  return index < own ? registry->all.data[index] : kiln__custom_at(&registry->custom, index - own);
}

const kiln_op *kiln_registry_custom_at(const kiln_registry *registry, int index) {
  return kiln__custom_at(&registry->custom, index);
}

/* -- Custom operators -- */

kiln_status *kiln_registry_add(kiln_registry *registry, const kiln_op_def *def,
                               const kiln_op **out_op) {
  *out_op = NULL;
  kiln_str name = name_in(def->text);
  family *f = kiln_map_find(&registry->families, stem_of(name));
  if (f) KILN_TRY(make_once(registry, &f->is_made, f, try_family));
  if (f && find_set(f, name)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "operator " KILN_STR_FMT " is Kiln's own",
                      KILN_STR_ARG(name));
  }
  return kiln__custom_add(&registry->custom, registry->env->mem, registry->types, def, out_op);
}
