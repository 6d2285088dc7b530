/* shape_test.c: shape functions against the kernels: for random arguments, whatever an operator's
 * shape function claims to know must be what the kernel makes. */
#include "ir/shape.h"
#include "ir/pass.h"
#include "test/unit/dim_value.h"
#include "test/unit/ir/ir_support.h"

enum { ROUNDS = 1000, MAX_ARGS = 16 };

static uint64_t seed;
static int rnd(int n) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (int)((seed >> 33) % (uint64_t)n);
}

/* -- Random arguments -- */

/* Matrix products want sizes that fit: all sizes are 3, and one dtype. */
static bool square;
static bool wants_square(const kiln_op *op) {
  static const char *const names[] = {"aten::mm",
                                      "aten::bmm",
                                      "aten::matmul",
                                      "aten::mv",
                                      "aten::addmm",
                                      "aten::linear",
                                      "aten::dot",
                                      "aten::bilinear",
                                      "aten::baddbmm",
                                      "aten::layer_norm",
                                      "aten::scaled_dot_product_attention"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (kiln_str_is(op->name, names[i])) return true;
  }
  return false;
}

typedef struct sample {
  int count;
  kiln_ivalue args[MAX_ARGS];
  kiln_tensor_detail details[MAX_ARGS];
  kiln_tensor_detail elem_details[MAX_ARGS][4];
  int rank;         /* of the first tensor, for dimensions */
  int64_t sizes[8]; /* of the first tensor */
} sample;

static const kiln_dtype dtypes[] = {
    KILN_DTYPE_F32,  KILN_DTYPE_F32, KILN_DTYPE_F64, KILN_DTYPE_I64,  KILN_DTYPE_I32,
    KILN_DTYPE_BOOL, KILN_DTYPE_U8,  KILN_DTYPE_F16, KILN_DTYPE_BF16, KILN_DTYPE_C64};

/* Strides of a random order of dimensions, sometimes with gaps or repeated elements. */
static kiln_tensor *random_tensor(fixture *f, kiln_dtype dtype, int rank, const int64_t *sizes) {
  int order[8];
  int64_t strides[8], step = 1;
  kiln_tensor *t;
  for (int i = 0; i < rank; i++) order[i] = rank - 1 - i;
  if (rnd(2)) {
    for (int i = rank - 1; i > 0; i--) {
      int j = rnd(i + 1), swap = order[i];
      order[i] = order[j];
      order[j] = swap;
    }
  }
  for (int i = 0; i < rank; i++) {
    strides[order[i]] = step;
    step *= sizes[order[i]] ? sizes[order[i]] : 1;
    if (rnd(10) == 0) step *= 2;
    if (rnd(15) == 0) strides[order[i]] = 0;
  }
  assert_ok(kiln_tensor_create_strided(f->env->mem, NULL, dtype, rank, sizes, strides, &t));
  if (t->storage->bytes) memset(t->storage->data, 1, t->storage->bytes);
  return t;
}

static kiln_tensor_detail detail_of(const kiln_tensor *t) {
  kiln_tensor_detail d = KILN_TENSOR_DETAIL_ANY;
  d.dtype = t->key.f.dtype;
  d.rank = (int8_t)t->key.f.rank;
  d.requires_grad = 0;
  d.undefined = 0;
  d.device = t->key.f.device_kind;
  d.device_index = t->key.f.device_index;
  d.has_strides = true;
  d.sizes = kiln_tensor_sizes(t);
  d.strides = kiln_tensor_strides(t);
  return d;
}

/* Tensors after the first have a shape that broadcasts with it, mostly. */
static kiln_ivalue sample_tensor(fixture *f, sample *s, bool first, kiln_dtype dtype) {
  int64_t sizes[8];
  static const int64_t choices[] = {1, 2, 3, 4, 2, 3, 0};
  int rank = rnd(5), pad = 0;
  for (int i = 0; i < rank; i++) sizes[i] = square ? 3 : choices[rnd(rnd(8) ? 6 : 7)];
  if (square) {
    if (!first && rnd(2)) rank = s->rank;
    for (int i = 0; i < rank; i++) sizes[i] = 3;
    if (first) s->rank = rank;
    return kiln_of_tensor(random_tensor(f, dtype, rank, sizes));
  }
  if (!first) {
    if (rnd(2)) rank = s->rank;
    if (rank > s->rank) rank = s->rank;
    pad = s->rank - rank;
    for (int i = 0; i < rank; i++) sizes[i] = rnd(4) ? s->sizes[i + pad] : 1;
  } else {
    s->rank = rank;
    memcpy(s->sizes, sizes, sizeof sizes);
  }
  if (rnd(3)) dtype = dtypes[rnd(sizeof dtypes / sizeof *dtypes)];
  return kiln_of_tensor(random_tensor(f, dtype, rank, sizes));
}

static kiln_ivalue random_number(void) {
  switch (rnd(3)) {
    case 0: return kiln_int(rnd(5) + 1);
    case 1: return kiln_float(rnd(5) + 0.5);
    default: return kiln_bool(rnd(2));
  }
}

static kiln_ivalue random_ints(fixture *f, const sample *s, const kiln_schema_arg *arg) {
  kiln_list *list;
  assert_ok(kiln_list_create(f->env->mem, kiln_type_basic(KILN_TYPE_INT), 4, &list));
  bool size = kiln_str_is(arg->name, "size") || kiln_str_is(arg->name, "shape");
  bool dims = kiln_str_is(arg->name, "dims");
  if (dims) { /* a permutation */
    for (int i = 0; i < s->rank; i++) {
      assert_ok(kiln_list_push(list, kiln_int((i + 1) % s->rank - (rnd(2) ? s->rank : 0))));
    }
  } else if (size) { /* the same elements in another shape, or more of them */
    int at = 0;
    while (at < s->rank) {
      int64_t product = s->sizes[at++];
      while (at < s->rank && rnd(3) == 0) product *= s->sizes[at++];
      if (rnd(4) == 0) assert_ok(kiln_list_push(list, kiln_int(1)));
      assert_ok(kiln_list_push(list, kiln_int(rnd(6) ? product : -1)));
    }
  } else {
    for (int i = 0; i < 1 + rnd(2); i++) assert_ok(kiln_list_push(list, kiln_int(rnd(3) - 1)));
  }
  return kiln_of_box(list);
}

static kiln_ivalue random_string(fixture *f) {
  static const char *const words[] = {"trunc", "floor", "none", "tanh"};
  kiln_string *string;
  assert_ok(kiln_string_create(f->env->mem, kiln_str_from(words[rnd(4)]), &string));
  return kiln_of_box(string);
}

static kiln_ivalue random_tensors(fixture *f, sample *s, int index) {
  kiln_list *list;
  assert_ok(kiln_list_create(f->env->mem, kiln_type_basic(KILN_TYPE_TENSOR), 4, &list));
  int count = 1 + rnd(3);
  kiln_dtype dtype = dtypes[rnd(3)];
  for (int i = 0; i < count; i++) {
    kiln_ivalue v = sample_tensor(f, s, i == 0, dtype);
    s->elem_details[index][i] = detail_of(v.u.tensor);
    assert_ok(kiln_list_push(list, v));
  }
  return kiln_of_box(list);
}

/* None, or indices that fit any dimension. */
static kiln_ivalue random_indices(fixture *f, sample *s, int index, const kiln_type *elem) {
  kiln_list *list;
  assert_ok(kiln_list_create(f->env->mem, elem, 4, &list));
  const int count = 1 + rnd(3);
  for (int i = 0; i < count; i++) {
    const int64_t sizes[] = {1 + rnd(3), 1 + rnd(3)};
    kiln_ivalue v = kiln_none();
    if (rnd(2)) {
      kiln_tensor *t = random_tensor(f, rnd(2) ? KILN_DTYPE_I64 : KILN_DTYPE_I32, rnd(3), sizes);
      memset(t->storage->data, 0, t->storage->bytes);
      v = kiln_of_tensor(t);
      s->elem_details[index][i] = detail_of(t);
    }
    assert_ok(kiln_list_push(list, v));
  }
  return kiln_of_box(list);
}

static kiln_ivalue random_arg(fixture *f, sample *s, int index, const kiln_schema_arg *arg,
                              kiln_dtype dtype) {
  const kiln_type *type = arg->type;
  if (type->kind == KILN_TYPE_OPTIONAL) {
    if (rnd(3) == 0) return kiln_none();
    type = type->elems[0];
  }
  bool is_dtype = kiln_str_is(arg->name, "dtype");
  bool fixed = kiln_str_is(arg->name, "layout") || kiln_str_is(arg->name, "memory_format");
  if (arg->has_default && (fixed || rnd(2))) return kiln_ivalue_retain(arg->default_value);
  if (is_dtype) return kiln_int(dtypes[rnd(7)]);
  if (fixed) return kiln_none();
  switch (type->kind) {
    case KILN_TYPE_TENSOR: return sample_tensor(f, s, index == 0, dtype);
    case KILN_TYPE_NUMBER: return random_number();
    case KILN_TYPE_INT: return kiln_int(rnd(6) - 2);
    case KILN_TYPE_FLOAT: return kiln_float(0.5);
    case KILN_TYPE_BOOL: return kiln_bool(rnd(2));
    case KILN_TYPE_STR: return random_string(f);
    case KILN_TYPE_DEVICE: return kiln_device_value(KILN_CPU);
    case KILN_TYPE_LIST:
      if (type->elems[0]->kind == KILN_TYPE_INT) return random_ints(f, s, arg);
      if (type->elems[0]->kind == KILN_TYPE_TENSOR) return random_tensors(f, s, index);
      if (type->elems[0]->kind == KILN_TYPE_OPTIONAL)
        return random_indices(f, s, index, type->elems[0]);
      break;
    default: break;
  }
  return kiln_none();
}

/* -- Arguments of layers: sizes that fit -- */

static kiln_ivalue few_ints(fixture *f, int n, int least, int most) {
  kiln_list *list;
  const int count = rnd(4) ? n : 1;
  assert_ok(kiln_list_create(f->env->mem, kiln_type_basic(KILN_TYPE_INT), 4, &list));
  for (int i = 0; i < count; i++) {
    assert_ok(kiln_list_push(list, kiln_int(least + rnd(most - least + 1))));
  }
  return kiln_of_box(list);
}
/* The dimensions of a layer by the digit in its name; 0: it is no convolution or pool. */
static int layer_dims(const kiln_op *op) {
  char name[64];
  snprintf(name, sizeof name, KILN_STR_FMT, KILN_STR_ARG(op->name));
  if (!strstr(name, "conv") && !strstr(name, "pool")) return 0;
  for (int n = 1; n <= 3; n++) {
    if (strchr(name, '0' + n)) return n;
  }
  return strstr(name, "aten::convolution") || strstr(name, "aten::_convolution") ? 1 + rnd(3) : 0;
}
static kiln_ivalue layer_arg(fixture *f, const kiln_op *op, int i, int n, int64_t channels,
                             int64_t groups, bool transposed) {
  const kiln_schema_arg *arg = &op->schema->args[i];
  int64_t sizes[8];
  if (kiln_str_is(arg->name, "weight")) {
    sizes[0] = transposed ? channels : groups * (1 + rnd(3));
    sizes[1] = transposed ? 1 + rnd(3) : channels / groups;
    for (int d = 0; d < n; d++) sizes[2 + d] = 1 + rnd(3);
    return kiln_of_tensor(random_tensor(f, KILN_DTYPE_F32, n + 2, sizes));
  }
  if (i == 0) {
    sizes[0] = 1 + rnd(2);
    sizes[1] = channels;
    for (int d = 0; d < n; d++) sizes[2 + d] = 3 + rnd(6);
    return kiln_of_tensor(random_tensor(f, KILN_DTYPE_F32, n + 2, sizes));
  }
  if (kiln_str_is(arg->name, "groups")) return kiln_int(groups);
  if (kiln_str_is(arg->name, "transposed")) return kiln_bool(transposed);
  if (kiln_str_is(arg->name, "output_padding")) return few_ints(f, n, 0, 0);
  if (kiln_str_is(arg->name, "padding")) {
    if (arg->type->kind != KILN_TYPE_STR) return few_ints(f, n, 0, 1);
    kiln_string *string;
    assert_ok(
        kiln_string_create(f->env->mem, rnd(2) ? KILN_STR("same") : KILN_STR("valid"), &string));
    return kiln_of_box(string);
  }
  if (kiln_str_is(arg->name, "kernel_size")) return few_ints(f, n, 1, 3);
  if (kiln_str_is(arg->name, "output_size")) return few_ints(f, n, 1, 3);
  if (kiln_str_is(arg->name, "stride") && kiln_str_is(op->schema->overload, "padding")) {
    return kiln_int(1);
  }
  if (kiln_str_is(arg->name, "stride") || kiln_str_is(arg->name, "dilation")) {
    return few_ints(f, n, 1, 2);
  }
  if (arg->type->kind == KILN_TYPE_OPTIONAL) return kiln_none();
  return arg->type->kind == KILN_TYPE_BOOL ? kiln_bool(rnd(2)) : kiln_int(1);
}
static bool layer_args(fixture *f, sample *s, const kiln_op *op) {
  const int n = layer_dims(op);
  if (!n) return false;
  const int64_t groups = 1 + rnd(2), channels = groups * (1 + rnd(2));
  char name[64];
  snprintf(name, sizeof name, KILN_STR_FMT, KILN_STR_ARG(op->name));
  bool transposed = strstr(name, "transpose") != NULL;
  for (int i = 0; i < s->count; i++) {
    if (kiln_str_is(op->schema->args[i].name, "transposed")) transposed = rnd(2);
  }
  for (int i = 1; i < s->count; i++) { /* others want more of their arguments */
    const kiln_schema_arg *arg = &op->schema->args[i];
    if (arg->type->kind == KILN_TYPE_TENSOR && !kiln_str_is(arg->name, "weight")) return false;
    if (kiln_str_is(arg->name, "kernel_size") && kiln_str_is(op->schema->args[1].name, "weight")) {
      return false;
    }
  }
  for (int i = 0; i < s->count; i++) {
    s->args[i] = layer_arg(f, op, i, n, channels, groups, transposed);
  }
  return true;
}

/* -- Asking -- */

/* Symbol i stands for i % 64. */
enum { SYMBOLS = 128 };
static int64_t symbols[SYMBOLS];

typedef struct ask_args {
  const kiln_op *op;
  sample *s;
  kiln_dims *dims;
  bool symbolic; /* some sizes of arguments are symbols */
  kiln_shape_query q;
  bool known;
} ask_args;

/* A symbol of that value where one may stand for it, or the number. */
static kiln_dim symbol_or_number(int64_t size) {
  if (size < 1 || size >= 64 || rnd(2)) return size;
  const bool from_one = size == 1 || rnd(2);
  return from_one ? kiln_dim_symbol_from_one((int)size + 64) : kiln_dim_symbol((int)size);
}

/* Sizes are such; strides are numbers, or not known. */
static void make_symbolic(fixture *f, kiln_tensor_detail *d) {
  kiln_dim *sizes = KILN_NEW_ARRAY(f->arena, kiln_dim, d->rank + 1);
  kiln_dim *strides = KILN_NEW_ARRAY(f->arena, kiln_dim, d->rank + 1);
  for (int i = 0; i < d->rank; i++) {
    sizes[i] = symbol_or_number(d->sizes[i]);
    strides[i] = d->has_strides && rnd(2) ? d->strides[i] : KILN_DIM_UNKNOWN;
  }
  d->sizes = sizes;
  if (d->has_strides) d->strides = strides;
}

/* An int that is given, as a number or as a symbol. */
static void give_int(const ask_args *a, int64_t given, int64_t *number, bool *known,
                     kiln_dim *dim) {
  const kiln_dim d = a->symbolic && given >= 0 ? symbol_or_number(given) : given;
  *known = d == given;
  *number = *known ? given : KILN_DIM_UNKNOWN;
  *dim = *known && given < 0 ? KILN_DIM_UNKNOWN : d;
}

static void ask_body(fixture *f, void *arg) {
  ask_args *a = arg;
  const kiln_schema *schema = a->op->schema;
  int n = schema->arg_count;
  const kiln_type **types = KILN_NEW_ARRAY(f->arena, const kiln_type *, n);
  const kiln_tensor_detail **args = KILN_NEW_ARRAY(f->arena, const kiln_tensor_detail *, n);
  const kiln_ivalue **constants = KILN_NEW_ARRAY(f->arena, const kiln_ivalue *, n);
  const kiln_shape_list **lists = KILN_NEW_ARRAY(f->arena, const kiln_shape_list *, n);
  kiln_dim *sizes = KILN_NEW_ARRAY(f->arena, kiln_dim, n);
  for (int i = 0; i < n; i++) {
    kiln_ivalue v = a->s->args[i];
    types[i] = kiln_ivalue_type(f->types, v);
    constants[i] = v.tag == KILN_TAG_TENSOR ? NULL : &a->s->args[i];
    sizes[i] = KILN_DIM_UNKNOWN;
    if (v.tag == KILN_TAG_INT) {
      int64_t number;
      bool known;
      give_int(a, v.u.i, &number, &known, &sizes[i]);
      if (known) sizes[i] = KILN_DIM_UNKNOWN;
      if (!known) constants[i] = NULL;
    }
    if (v.tag == KILN_TAG_TENSOR) {
      a->s->details[i] = detail_of(v.u.tensor);
      if (a->symbolic) make_symbolic(f, &a->s->details[i]);
      args[i] = &a->s->details[i];
      types[i] = kiln_type_basic(KILN_TYPE_TENSOR);
    }
    if (v.tag != KILN_TAG_LIST) continue;
    kiln_shape_list *list = KILN_NEW(f->arena, kiln_shape_list);
    int64_t *ints = KILN_NEW_ARRAY(f->arena, int64_t, v.u.list->count + 1);
    bool *known = KILN_NEW_ARRAY(f->arena, bool, v.u.list->count + 1);
    kiln_dim *dims = KILN_NEW_ARRAY(f->arena, kiln_dim, v.u.list->count + 1);
    const bool is_ints = v.u.list->elem_type->kind == KILN_TYPE_INT;
    const kiln_tensor_detail **tensors =
        KILN_NEW_ARRAY(f->arena, const kiln_tensor_detail *, v.u.list->count + 1);
    list->count = (int)v.u.list->count;
    for (int k = 0; k < list->count; k++) {
      if (is_ints) give_int(a, v.u.list->items[k].u.i, &ints[k], &known[k], &dims[k]);
      if (is_ints && !known[k]) constants[i] = NULL;
      if (v.u.list->items[k].tag != KILN_TAG_TENSOR) continue;
      if (a->symbolic) make_symbolic(f, &a->s->elem_details[i][k]);
      tensors[k] = &a->s->elem_details[i][k];
    }
    for (int k = 0; !is_ints && k < list->count; k++)
      known[k] = v.u.list->items[k].tag == KILN_TAG_NONE;
    list->known = known;
    if (is_ints)
      list->ints = ints, list->dims = dims;
    else
      list->tensors = tensors;
    lists[i] = list;
  }
  a->dims = kiln_dims_create(f->arena);
  a->q = (kiln_shape_query){.arena = f->arena,
                            .dims = a->dims,
                            .op = a->op,
                            .arg_count = n,
                            .types = types,
                            .args = args,
                            .constants = constants,
                            .lists = lists,
                            .sizes = sizes,
                            .out_count = schema->result_count};
  for (int i = 0; i < KILN_MAX_OUTS; i++) a->q.outs[i] = KILN_TENSOR_DETAIL_ANY;
  a->known = kiln_shape_run(&a->q);
}

static bool dim_agrees(const kiln_shape_query *q, kiln_dim d, int64_t real) {
  return !kiln_dim_is_known(d) || dim_value(q->arena, q->dims, d, symbols) == real;
}

/* What the detail says is so of the tensor; *out_complete: it says everything, in numbers. A
 * product of symbols, one of which is 0, is 0, where a kernel takes 1 for it: nobody reads by such
 * strides. */
static bool agrees(const kiln_shape_query *q, const kiln_tensor_detail *d, const kiln_tensor *t,
                   bool *out_complete) {
  *out_complete = d->dtype >= 0 && d->rank >= 0 && d->has_strides && d->device >= 0;
  if (d->dtype >= 0 && d->dtype != t->key.f.dtype) return false;
  if (d->device >= 0 && d->device != t->key.f.device_kind) return false;
  if (d->rank < 0) return true;
  if (d->rank != t->key.f.rank) return false;
  for (int i = 0; i < d->rank; i++) {
    if (!dim_agrees(q, d->sizes[i], kiln_tensor_sizes(t)[i])) return false;
    if (d->sizes[i] < 0) *out_complete = false;
    if (!d->has_strides) continue;
    const bool is_read = t->numel > 0 || kiln_dim_is_number(d->strides[i]);
    if (is_read && !dim_agrees(q, d->strides[i], kiln_tensor_strides(t)[i])) return false;
    if (d->strides[i] < 0) *out_complete = false;
  }
  return true;
}

static void print_detail(const char *what, const kiln_tensor_detail *d) {
  print_error("  %s dtype %d rank %d:", what, d->dtype, d->rank);
  for (int i = 0; i < d->rank; i++) print_error(" %lld", (long long)d->sizes[i]);
  print_error(" |");
  for (int i = 0; d->has_strides && i < d->rank; i++) {
    print_error(" %lld", (long long)d->strides[i]);
  }
  print_error("\n");
}

static void complain(const ask_args *a, const kiln_tensor_detail *d, const kiln_tensor *t) {
  print_error("%s\n", a->op->kernel.name);
  for (int i = 0; i < a->op->schema->arg_count; i++) {
    if (a->s->args[i].tag == KILN_TAG_TENSOR)
      print_detail("argument", &a->s->details[i]);
    else
      print_error("  argument tag %u value %lld\n", a->s->args[i].tag,
                  (long long)a->s->args[i].u.i);
    for (int k = 0; a->q.lists[i] && a->q.lists[i]->ints && k < a->q.lists[i]->count; k++) {
      print_error("    %lld\n", (long long)a->q.lists[i]->ints[k]);
    }
    for (int k = 0; a->q.lists[i] && a->q.lists[i]->tensors && k < a->q.lists[i]->count; k++)
      if (a->q.lists[i]->tensors[k]) print_detail("  element", a->q.lists[i]->tensors[k]);
  }
  kiln_tensor_detail real = detail_of(t);
  print_detail("kernel  ", &real);
  print_detail("function", d);
}

typedef struct tally {
  int compared, complete, symbolic;
} tally;

static bool has_symbols(const kiln_tensor_detail *d) {
  bool some = false;
  for (int i = 0; i < d->rank; i++) {
    some |= kiln_dim_is_known(d->sizes[i]) && !kiln_dim_is_number(d->sizes[i]);
  }
  return some;
}

/* What the function answered, against what the kernel has made. */
static void compare(const ask_args *a, const kiln_ivalue *outs, tally *t) {
  for (int i = 0; a->known && i < a->op->schema->result_count; i++) {
    int count = 1;
    const kiln_ivalue *items = &outs[i];
    const kiln_tensor_detail *found = &a->q.outs[i];
    if (outs[i].tag == KILN_TAG_LIST) {
      count = (int)outs[i].u.list->count;
      items = outs[i].u.list->items;
      found = a->q.elems;
      if (!found) continue;
      assert_int_equal(count, a->q.elem_count);
    }
    for (int k = 0; k < count; k++) {
      bool complete;
      if (items[k].tag != KILN_TAG_TENSOR) continue;
      if (!agrees(&a->q, &found[k], items[k].u.tensor, &complete)) {
        complain(a, &found[k], items[k].u.tensor);
        fail();
      }
      t->compared++;
      t->complete += complete;
      t->symbolic += has_symbols(&found[k]);
    }
  }
}

/* Asks in numbers and in symbols, the second without a say in how much is known. */
static void check_sample(fixture *f, kiln_call *call, const kiln_op *op, tally *t) {
  sample s = {.count = op->schema->arg_count};
  kiln_ivalue outs[KILN_MAX_OUTS] = {{0}};
  kiln_dtype dtype = dtypes[rnd(4)];
  if (!layer_args(f, &s, op)) {
    for (int i = 0; i < s.count; i++) s.args[i] = random_arg(f, &s, i, &op->schema->args[i], dtype);
  }
  ask_args a = {.op = op, .s = &s};
  ask_body(f, &a);
  kiln_status *status = kiln_kernel_run(call, &op->kernel, s.args, s.count, outs);
  if (!status) {
    tally symbolic = {0};
    compare(&a, outs, t);
    a.symbolic = true;
    ask_body(f, &a);
    compare(&a, outs, &symbolic);
    t->symbolic += symbolic.symbolic;
  }
  kiln_status_destroy(status);
  for (int i = 0; i < s.count; i++) kiln_ivalue_release(s.args[i]);
  for (int i = 0; i < KILN_MAX_OUTS; i++) kiln_ivalue_release(outs[i]);
  kiln_arena_reset(f->arena);
}

/* Every operator that has both is compared, and mostly told everything. */
static void test_against_kernels(void **state) {
  fixture *f = *state;
  kiln_call *call;
  assert_ok(kiln_call_create(f->env, &call));
  int ops = 0, idle = 0, symbolic = 0;
  for (int i = 0; i < SYMBOLS; i++) symbols[i] = i % 64;
  for (int i = 0; i < kiln_registry_count(f->registry); i++) {
    const kiln_op *op = kiln_registry_at(f->registry, i);
    if (!op->schema || !op->shape || !op->kernel.body || op->variant != KILN_VARIANT_NONE) continue;
    if (op->schema->arg_count > MAX_ARGS || (op->flags & KILN_OP_NONDETERMINISTIC)) continue;
    if (op->flags & KILN_OP_WRITES) continue;
    tally t = {0};
    seed = 1; /* an operator's samples are its own, whichever others there are */
    for (const char *c = op->kernel.name; *c; c++) seed = seed * 31 + (uint8_t)*c;
    square = wants_square(op);
    kiln_call_begin(call, NULL);
    for (int k = 0; k < ROUNDS; k++) check_sample(f, call, op, &t);
    ops++;
    symbolic += t.symbolic > 0;
    if (t.compared == 0) {
      idle++;
      print_message("%s was never compared\n", op->kernel.name);
    } else if (2 * t.complete < t.compared) {
      print_message("%s: %d of %d complete\n", op->kernel.name, t.complete, t.compared);
    }
  }
  print_message("%d operators, %d with symbols in results\n", ops, symbolic);
  assert_true(ops > 150);
  assert_true(symbolic > 150);
  assert_true(idle * 10 < ops);
  kiln_call_destroy(call);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_kernels),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
