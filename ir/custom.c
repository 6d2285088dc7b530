/* custom.c: operators that the host registers, beside those of the tables.
 *
 * Each lives in an arena of its own, so that one that is refused leaves nothing behind. A name has
 * its overloads in one set; a new overload makes a new set, and the old ones stay for those who
 * hold them. Names hang in buckets, newest first: registering is rare, and a lookup that fails (an
 * unknown operator at load) is the common one. */
#include "ir/custom.h"

struct kiln__custom_op {
  kiln_arena *arena;
  kiln_op op;
  kiln_schema *schema;
  kiln_op_set set; /* the overloads of the name, this one last */
  void *user;
  void (*destroy)(void *user);
  int index;
  kiln__custom_op *elder;
};

struct kiln__custom_name {
  kiln_str name;
  const kiln_op_set *set; /* atomic */
  kiln__custom_name *next;
};

enum { MAX_CUSTOM_ARGS = 64 };

void kiln__custom_init(kiln__custom_ops *ops) {
  *ops = (kiln__custom_ops){.count = 0};
  pthread_mutex_init(&ops->lock, NULL);
}

static void destroy_op(kiln__custom_op *c) {
  kiln_schema_deinit(c->schema);
  kiln_arena_destroy(c->arena); /* c lies in it */
}

void kiln__custom_deinit(kiln__custom_ops *ops) {
  for (kiln__custom_op *c = ops->last, *elder; c; c = elder) {
    elder = c->elder;
    if (c->destroy) c->destroy(c->user);
    destroy_op(c);
  }
  pthread_mutex_destroy(&ops->lock);
}

/* -- Lookup -- */

static int bucket_of(kiln_str name) {
  return (int)(kiln_hash_bytes(0, name.data, name.len) % KILN__CUSTOM_BUCKETS);
}

static kiln__custom_name *find_name(const kiln__custom_ops *ops, kiln_str name) {
  kiln__custom_name *n = __atomic_load_n(&ops->buckets[bucket_of(name)], __ATOMIC_ACQUIRE);
  while (n && !kiln_str_equal(n->name, name)) n = n->next;
  return n;
}

const kiln_op_set *kiln__custom_find(const kiln__custom_ops *ops, kiln_str name) {
  const kiln__custom_name *n = find_name(ops, name);
  return n ? __atomic_load_n(&n->set, __ATOMIC_ACQUIRE) : NULL;
}

const kiln_op *kiln__custom_find_exact(const kiln__custom_ops *ops, kiln_str full_name) {
  kiln_str name = full_name;
  const char *dot = full_name.len ? memchr(full_name.data, '.', full_name.len) : NULL;
  if (dot) name.len = (size_t)(dot - full_name.data);
  const kiln_op_set *set = kiln__custom_find(ops, name);
  for (int i = 0; set && i < set->count; i++) {
    if (kiln_str_equal(set->ops[i]->full_name, full_name)) return set->ops[i];
  }
  return NULL;
}

int kiln__custom_count(const kiln__custom_ops *ops) {
  return __atomic_load_n(&ops->count, __ATOMIC_ACQUIRE);
}

const kiln_op *kiln__custom_at(const kiln__custom_ops *ops, int index) {
  const kiln__custom_op *c = __atomic_load_n(&ops->last, __ATOMIC_ACQUIRE);
  while (c && c->index != index) c = c->elder;
  return c ? &c->op : NULL;
}

/* -- What a schema may say -- */

static kiln_status *refuse(const kiln_op_def *def, const char *why, kiln_str what) {
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "schema \"%s\": %s '" KILN_STR_FMT "'", def->text, why,
                    KILN_STR_ARG(what));
}

/* "mine::scale", with one namespace. */
static kiln_status *check_name(const kiln_op_def *def, const kiln_schema *s) {
  const char *colons = s->name.len ? memchr(s->name.data, ':', s->name.len) : NULL;
  size_t space = colons ? (size_t)(colons - s->name.data) : 0;
  bool good = space > 0 && s->name.len > space + 2 && colons[1] == ':';
  for (size_t i = space + 2; good && i < s->name.len; i++)
    good = s->name.data[i] != ':' && s->name.data[i] != '.';
  if (!good) return refuse(def, "an operator is named namespace::name, not", s->name);
  kiln_str name = kiln_str_make(s->name.data, space);
  if (kiln_str_is(name, "aten") || kiln_str_is(name, "prim")) {
    return refuse(def, "the host cannot add to the namespace", name);
  }
  for (size_t i = 0; i < s->overload.len; i++) {
    if (s->overload.data[i] == ':') return refuse(def, "not an overload's name:", s->overload);
  }
  return NULL;
}

static bool is_tensor_or_list(const kiln_type *type) {
  if (type->kind == KILN_TYPE_OPTIONAL) type = type->elems[0];
  if (type->kind == KILN_TYPE_LIST) type = type->elems[0];
  if (type->kind == KILN_TYPE_OPTIONAL) type = type->elems[0];
  return kiln_type_is_tensor(type);
}

static bool is_list(const kiln_type *type) {
  return type->kind == KILN_TYPE_LIST ||
         (type->kind == KILN_TYPE_OPTIONAL && type->elems[0]->kind == KILN_TYPE_LIST);
}

/* The host's kernel writes elements of tensors, and nothing else. */
static kiln_status *check_argument(const kiln_op_def *def, const kiln_schema *s, int i) {
  const kiln_schema_arg *a = &s->args[i];
  if (a->name.len == 0) return refuse(def, "an argument has no name after", s->name);
  for (int k = 0; k < i; k++) {
    if (kiln_str_equal(s->args[k].name, a->name)) return refuse(def, "two arguments", a->name);
  }
  if (kiln_type_has_var(a->type)) return refuse(def, "unknown type of argument", a->name);
  bool container = a->alias.is_write && is_list(a->type);
  if (container || ((a->alias.is_write || a->elem_alias.is_write) && !is_tensor_or_list(a->type))) {
    return refuse(def, "only tensors can be marked as written, not", a->name);
  }
  if (a->has_default && !kiln_ivalue_matches(a->default_value, a->type)) {
    return refuse(def, "the default is of another type for argument", a->name);
  }
  if (!a->has_default && !a->kwarg_only && i > 0 && s->args[i - 1].has_default) {
    return refuse(def, "an argument without default follows one with:", a->name);
  }
  return NULL;
}

/* A mark on a result is one that an argument has. */
static kiln_status *check_result(const kiln_op_def *def, const kiln_schema *s, int i) {
  const kiln_schema_arg *r = &s->results[i];
  if (kiln_type_has_var(r->type)) return refuse(def, "unknown type of a result of", s->name);
  uint32_t sets = (r->alias.sets | r->elem_alias.sets) & ~KILN_ALIAS_WILDCARD, known = 0;
  for (int k = 0; k < s->arg_count; k++)
    known |= s->args[k].alias.sets | s->args[k].elem_alias.sets;
  if (sets & ~known) return refuse(def, "no argument has the alias set of a result of", s->name);
  return NULL;
}

static kiln_status *check_schema(const kiln_op_def *def, const kiln_schema *s) {
  KILN_TRY(check_name(def, s));
  if (s->is_vararg || s->is_varret) return refuse(def, "'...' is not for", s->name);
  if (s->arg_count > MAX_CUSTOM_ARGS) return refuse(def, "too many arguments for", s->name);
  if (s->result_count > KILN_MAX_OUTS) return refuse(def, "more than 8 results for", s->name);
  for (int i = 0; i < s->arg_count; i++) KILN_TRY(check_argument(def, s, i));
  for (int i = 0; i < s->result_count; i++) KILN_TRY(check_result(def, s, i));
  return NULL;
}

/* -- Adding -- */

typedef struct making {
  kiln_arena *arena;
  kiln_type_table *types;
  const kiln_op_def *def;
  kiln__custom_ops *ops;
  kiln__custom_op *made;
  kiln__custom_name *name; /* of a name that is new */
} making;

static void fill_op(making *m) {
  const kiln_schema *s = m->made->schema;
  kiln_op *op = &m->made->op;
  const char *name =
      kiln_arena_printf(m->arena, KILN_STR_FMT "%s" KILN_STR_FMT, KILN_STR_ARG(s->name),
                        s->overload.len ? "." : "", KILN_STR_ARG(s->overload));
  *op = (kiln_op){.id = KILN_OP__CUSTOM,
                  .full_name = kiln_str_from(name),
                  .text = kiln_arena_strdup(m->arena, m->def->text),
                  .schema = s,
                  .shape = m->def->shape,
                  .flags = m->def->flags | (kiln_schema_writes(s) ? KILN_OP_WRITES : 0),
                  .cost = m->def->cost};
  op->name = kiln_arena_str(m->arena, s->name);
  op->kernel = (kiln_kernel){.name = name,
                             .body = m->def->body,
                             .arg_count = (int16_t)s->arg_count,
                             .out_count = (int16_t)s->result_count,
                             .dest_arg = -1,
                             .user = m->def->user};
}

/* The name's overloads with the new one behind them. */
static kiln_status *fill_set(making *m) {
  kiln__custom_op *c = m->made;
  const kiln_op_set *old = kiln__custom_find(m->ops, c->op.name);
  int count = old ? old->count : 0;
  const kiln_op **list = KILN_NEW_ARRAY(m->arena, const kiln_op *, count + 1);
  for (int i = 0; i < count; i++) {
    if (kiln_str_equal(old->ops[i]->full_name, c->op.full_name)) {
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "operator %s is registered already",
                        c->op.kernel.name);
    }
    list[i] = old->ops[i];
  }
  list[count] = &c->op;
  c->set = (kiln_op_set){c->op.name, count + 1, count + 1, list};
  if (!old) {
    m->name = KILN_NEW(m->arena, kiln__custom_name);
    *m->name = (kiln__custom_name){.name = c->op.name, .set = &c->set};
  }
  return NULL;
}

static kiln_status *make(making *m) {
  m->made = KILN_NEW(m->arena, kiln__custom_op);
  m->made->arena = m->arena;
  KILN_TRY(kiln_schema_parse(m->arena, m->types, m->def->text, &m->made->schema));
  KILN_TRY(check_schema(m->def, m->made->schema));
  fill_op(m);
  return fill_set(m);
}
static kiln_status *try_make(making *m) { KILN_PROTECT(make(m)); }

static void publish(making *m) {
  kiln__custom_ops *ops = m->ops;
  kiln__custom_op *c = m->made;
  c->user = m->def->user;
  c->destroy = m->def->destroy;
  c->index = ops->count;
  c->elder = ops->last;
  __atomic_store_n(&ops->last, c, __ATOMIC_RELEASE);
  __atomic_store_n(&ops->count, ops->count + 1, __ATOMIC_RELEASE);
  if (m->name) {
    kiln__custom_name **bucket = &ops->buckets[bucket_of(c->op.name)];
    m->name->next = *bucket;
    __atomic_store_n(bucket, m->name, __ATOMIC_RELEASE);
  } else {
    __atomic_store_n(&find_name(ops, c->op.name)->set, &c->set, __ATOMIC_RELEASE);
  }
}

kiln_status *kiln__custom_add(kiln__custom_ops *ops, kiln_mem *mem, kiln_type_table *types,
                              const kiln_op_def *def, const kiln_op **out_op) {
  making m = {.types = types, .def = def, .ops = ops};
  KILN_TRY(kiln_arena_create(mem, &m.arena));
  pthread_mutex_lock(&ops->lock);
  kiln_status *status = try_make(&m);
  if (!status) {
    *out_op = &m.made->op;
    publish(&m);
  }
  pthread_mutex_unlock(&ops->lock);
  if (!status) return NULL;
  if (m.made) {
    destroy_op(m.made);
  } else {
    kiln_arena_destroy(m.arena);
  }
  return status;
}
