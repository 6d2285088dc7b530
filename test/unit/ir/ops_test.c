/* ops_test.c: the operators of the tables against PyTorch's results in test/data/kernels/ops.txt,
 * compose.txt, library.txt, families.txt, inner.txt, models.txt, draws.txt, empty.txt, torch2.txt
 * and limits.txt (made by test/make/ops.py, which tells the format, and its like), on every
 * instruction set of this processor. In-place operators are run as the interpreter runs them. */
#include <math.h>
#include <stdlib.h>

#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/support.h"
#include "test/unit/ir/ir_support.h"
#include "test/unit/odd_strides.h"

enum {
  MAX_ARGS = 24,
  MAX_LINE = 1 << 15,
  LEAST_CASES = 1600,
  LEAST_OTHERS = 200,
  LEAST_MODELS = 75
};

/* What is tried with each case. */
typedef enum trial {
  AS_IT_IS,
  UNDEFINED,  /* run_undefined */
  ODD_STRIDES /* odd_strides.h */
} trial;

typedef struct reader {
  fixture *f;
  kiln_call *call;
  const char *at; /* in the line */
  int line;
  bool any_strides; /* the tensor read last had none */
  trial as;
  bool arguments; /* are read */
} reader;

/* -- Reading values -- */

static bool ends(char c) { return !c || strchr(" \t])}", c); }
static void need(bool ok, const reader *r) {
  if (!ok) fail_msg("line %d: cannot read at '%.40s'", r->line, r->at);
}
static bool take(reader *r, char c) {
  if (*r->at != c) return false;
  r->at++;
  return true;
}
static int64_t read_int(reader *r) {
  char *end;
  int64_t i = strtoll(r->at, &end, 10);
  need(end != r->at, r);
  r->at = end;
  return i;
}
static double read_double(reader *r) {
  char *end;
  double d = strtod(r->at, &end);
  need(end != r->at, r);
  r->at = end;
  return d;
}
static int read_dims(reader *r, int64_t *out) {
  int n = 0;
  if (r->at[0] == '-' && r->at[1] == ':') {
    r->at++;
  } else {
    do {
      need(n < KILN_MAX_RANK, r);
      out[n++] = read_int(r);
    } while (take(r, ','));
  }
  need(take(r, ':'), r);
  return n;
}
static kiln_dtype read_dtype(reader *r) {
#define NAME(dtype, number, size, storage, python, short_name) {#short_name, KILN_DTYPE_##dtype},
  static const struct {
    const char *name;
    kiln_dtype dtype;
  } names[] = {KILN_DTYPE_LIST(NAME){"b8", KILN_DTYPE_BOOL}};
#undef NAME
  size_t n = strcspn(r->at, ":");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strlen(names[i].name) == n && memcmp(names[i].name, r->at, n) == 0) {
      r->at += n + 1;
      return names[i].dtype;
    }
  }
  need(false, r);
  return KILN_DTYPE_NONE;
}
static kiln_ivalue read_tensor(reader *r) {
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  kiln_dtype dtype = read_dtype(r);
  int rank = read_dims(r, sizes);
  kiln_tensor *t;
  void *data;
  r->any_strides = take(r, '?');
  if (r->any_strides) {
    need(take(r, ':'), r);
    kiln_strides_contiguous(rank, sizes, strides);
  } else {
    assert_int_equal(read_dims(r, strides), rank);
  }
  assert_ok(kiln_tensor_create_strided(r->f->env->mem, NULL, dtype, rank, sizes, strides, &t));
  assert_ok(kiln_tensor_writable_data(t, &data));
  for (size_t at = 0; !ends(*r->at); at += kiln_dtype_bytes(dtype)) {
    kiln_number n = {KILN_DTYPE_C128, 0, 0, 0};
    if (kiln_dtype_is_int(dtype, true))
      n = kiln__number_int(read_int(r));
    else
      n.f = read_double(r);
    if (take(r, ';')) n.im = read_double(r);
    assert_true(at + kiln_dtype_bytes(dtype) <= t->storage->bytes);
    if (kiln_dtype_is_float(dtype)) n.kind = KILN_DTYPE_F64;
    kiln__number_store(n, dtype, (char *)data + at);
    take(r, ',');
  }
  return kiln_of_tensor(t);
}
static kiln_ivalue read_value(reader *r);
static const kiln_type *elem_of(kiln_ivalue v) {
  static const kiln_type_kind kinds[] = {
      [KILN_TAG_INT] = KILN_TYPE_INT,    [KILN_TAG_FLOAT] = KILN_TYPE_FLOAT,
      [KILN_TAG_BOOL] = KILN_TYPE_BOOL,  [KILN_TAG_TENSOR] = KILN_TYPE_TENSOR,
      [KILN_TAG_STRING] = KILN_TYPE_STR, [KILN_TAG_COMPLEX] = KILN_TYPE_COMPLEX,
      [KILN_TAG_NONE] = KILN_TYPE_NONE};
  bool basic = v.tag <= KILN_TAG_BOOL || v.tag == KILN_TAG_TENSOR || v.tag == KILN_TAG_STRING;
  return basic ? kiln_type_basic(kinds[v.tag]) : NULL;
}
static kiln_ivalue read_list(reader *r, char close) {
  kiln_ivalue items[64];
  int n = 0;
  while (!take(r, close)) {
    need(n < 64, r);
    items[n++] = read_value(r);
    take(r, ' ');
  }
  kiln_mem *mem = r->f->env->mem;
  if (close == ')') {
    kiln_tuple *tuple;
    assert_ok(kiln_tuple_create(mem, NULL, n, &tuple));
    memcpy(tuple->items, items, sizeof *items * (size_t)n);
    return kiln_of_box(tuple);
  }
  if (close == '}') {
    kiln_dict *dict;
    assert_ok(
        kiln_dict_create(mem, n ? elem_of(items[0]) : NULL, n ? elem_of(items[1]) : NULL, &dict));
    for (int i = 0; i < n; i += 2) assert_ok(kiln_dict_set(dict, items[i], items[i + 1]));
    return kiln_of_box(dict);
  }
  kiln_list *list;
  assert_ok(kiln_list_create(mem, n ? elem_of(items[0]) : NULL, n, &list));
  for (int i = 0; i < n; i++) assert_ok(kiln_list_push(list, items[i]));
  return kiln_of_box(list);
}
static kiln_ivalue read_string(reader *r) {
  char text[256];
  size_t n = 0;
  for (; !ends(*r->at); n++) {
    need(n + 1 < sizeof text, r);
    unsigned code = (unsigned char)*r->at++;
    if (code == '%') {
      need(sscanf(r->at, "%2x", &code) == 1, r);
      r->at += 2;
    }
    text[n] = (char)code;
  }
  kiln_string *s;
  assert_ok(kiln_string_create(r->f->env->mem, kiln_str_make(text, n), &s));
  return kiln_of_box(s);
}
static kiln_ivalue read_value(reader *r) {
  switch (*r->at++) {
    case 'N': return kiln_none();
    case 'i': return kiln_int(read_int(r));
    case 'f': return kiln_float(read_double(r));
    case 'b': return kiln_bool(read_int(r) != 0);
    case 's': return read_string(r);
    case '[': return read_list(r, ']');
    case '(': return read_list(r, ')');
    case '{': return read_list(r, '}');
    case 'c': {
      kiln_complex *z;
      double re = read_double(r);
      need(take(r, ';'), r);
      assert_ok(kiln_complex_create(r->f->env->mem, re, read_double(r), &z));
      return kiln_of_box(z);
    }
    case 'T': {
      need(take(r, ':'), r);
      const kiln_ivalue t = read_tensor(r);
      return r->as == ODD_STRIDES && r->arguments ? kiln_of_tensor(odd_strides(t.u.tensor)) : t;
    }
    default:
      r->at--;
      need(false, r);
      return kiln_none();
  }
}

/* -- Comparing -- */

static double tolerance_of(kiln_dtype dtype) {
  switch (dtype) {
    case KILN_DTYPE_F64:
    case KILN_DTYPE_C128: return 1e-7; /* the file has nine digits */
    case KILN_DTYPE_F16: return 2e-3;
    case KILN_DTYPE_BF16: return 1.6e-2;
    case KILN_DTYPE_F32:
    case KILN_DTYPE_C64: return 2e-6;
    default: return 0;
  }
}
static bool near(double a, double b, double tolerance) {
  if (isnan(b)) return isnan(a);
  return a == b || fabs(a - b) <= tolerance * (1 + fabs(b));
}
static bool same_tensor(const reader *r, const kiln_tensor *a, const kiln_tensor *b, bool strides) {
  int rank = kiln_tensor_rank(b);
  kiln_dtype dtype = kiln_tensor_dtype(b);
  if (kiln_tensor_dtype(a) != dtype || kiln_tensor_rank(a) != rank) return false;
  for (int d = 0; d < rank; d++) {
    if (kiln_tensor_sizes(a)[d] != kiln_tensor_sizes(b)[d]) return false;
    if (strides && b->numel > 0 && kiln_tensor_sizes(b)[d] > 1 &&
        kiln_tensor_strides(a)[d] != kiln_tensor_strides(b)[d]) {
      return false;
    }
  }
  for (int64_t i = 0; i < b->numel; i++) {
    double x[2], y[2];
    const kiln_tensor *both[2] = {a, b};
    for (int k = 0; k < 2; k++) {
      const kiln_tensor *t = both[k];
      int64_t at = kiln__offset_of(rank, kiln_tensor_sizes(t), kiln_tensor_strides(t), i);
      r->call->dispatch->load[dtype][KILN_CTYPE_C128](
          (char *)(k ? y : x), 0,
          (const char *)kiln_tensor_data(t) + at * (int64_t)kiln_dtype_bytes(dtype), 0, 1);
    }
    if (!near(x[0], y[0], tolerance_of(dtype)) || !near(x[1], y[1], tolerance_of(dtype))) {
      return false;
    }
  }
  return true;
}
static bool same(const reader *r, kiln_ivalue a, kiln_ivalue b, bool strides) {
  if (a.tag != b.tag) return false;
  const kiln_ivalue *x = NULL, *y = NULL;
  int64_t n = 0;
  switch (b.tag) {
    case KILN_TAG_TENSOR: return same_tensor(r, a.u.tensor, b.u.tensor, strides);
    case KILN_TAG_FLOAT: return near(a.u.f, b.u.f, 1e-14);
    case KILN_TAG_COMPLEX:
      return near(a.u.complex->re, b.u.complex->re, 1e-14) &&
             near(a.u.complex->im, b.u.complex->im, 1e-14);
    case KILN_TAG_LIST:
      if (a.u.list->count != b.u.list->count) return false;
      x = a.u.list->items, y = b.u.list->items, n = b.u.list->count;
      break;
    case KILN_TAG_TUPLE:
      if (a.u.tuple->count != b.u.tuple->count) return false;
      x = a.u.tuple->items, y = b.u.tuple->items, n = b.u.tuple->count;
      break;
    default: return kiln_ivalue_equal(a, b);
  }
  for (int64_t i = 0; i < n; i++) {
    if (!same(r, x[i], y[i], strides)) return false;
  }
  return true;
}
static kiln_status *print_value(kiln_call *call, kiln_text *text, void *value) {
  (void)call;
  kiln_ivalue_print(text, *(kiln_ivalue *)value);
  print_error("  got %s\n", text->data);
  return NULL;
}

/* -- Running -- */

/* True when the case is as it should be. */
static bool check(reader *r, const char *name, kiln_status *status, const kiln_ivalue *outs) {
  if (take(r, '!')) {
    take(r, '\t');
    bool fine = status && strstr(kiln_status_message(status), r->at);
    if (!fine) {
      print_error("line %d: %s: %s\n  must fail: %s\n", r->line, name,
                  status ? kiln_status_message(status) : "no error", r->at);
    }
    kiln_status_destroy(status);
    return fine;
  }
  need(take(r, '='), r);
  if (status) {
    print_error("line %d: %s: %s\n", r->line, name, kiln_status_message(status));
    kiln_status_destroy(status);
    return false;
  }
  bool fine = true;
  for (int i = 0; take(r, '\t'); i++) {
    const char *text = r->at;
    kiln_ivalue want = read_value(r);
    if (!same(r, outs[i], want, !r->any_strides && r->as == AS_IT_IS)) {
      print_error("line %d: %s: result %d must be %s\n", r->line, name, i, text);
      kiln_ivalue got = outs[i];
      assert_ok(kiln_call_text(r->call, print_value, &got));
      fine = false;
    }
    kiln_ivalue_release(want);
  }
  return fine;
}
/* With an undefined tensor in the place of each: a value or a status. A file can make one, of an
 * attribute that is None. */
static void run_undefined(reader *r, const kiln_op *op, kiln_ivalue *args, int count) {
  for (int i = 0; i < count; i++) {
    kiln_ivalue outs[KILN_MAX_OUTS], own = args[i];
    kiln_tensor *none;
    if (own.tag != KILN_TAG_TENSOR) continue;
    assert_ok(kiln_tensor_undefined(r->f->env->mem, &none));
    args[i] = kiln_of_tensor(none);
    for (int k = 0; k < KILN_MAX_OUTS; k++) outs[k] = kiln_none();
    if (op->kernel.dest_arg >= 0) outs[0] = kiln_ivalue_retain(args[op->kernel.dest_arg]);
    kiln_status_destroy(kiln_kernel_run(r->call, &op->kernel, args, count, outs));
    for (int k = 0; k < KILN_MAX_OUTS; k++) kiln_ivalue_release(outs[k]);
    kiln_ivalue_release(args[i]);
    args[i] = own;
  }
}
static bool run_line(reader *r, char *line) {
  char *tab = strchr(line, '\t');
  assert_non_null(tab);
  *tab = 0;
  r->at = tab + 1;
  const kiln_op *op = kiln_registry_find_exact(r->f->registry, kiln_str_from(line));
  if (!op || !op->kernel.body) {
    print_error("line %d: no operator %s\n", r->line, line);
    return false;
  }
  kiln_ivalue args[MAX_ARGS], outs[KILN_MAX_OUTS];
  int count = 0;
  r->arguments = true;
  while (*r->at != '=' && *r->at != '!') {
    need(count < MAX_ARGS, r);
    args[count++] = read_value(r);
    need(take(r, '\t') || ends(*r->at), r);
  }
  r->arguments = false;
  for (int i = 0; i < KILN_MAX_OUTS; i++) outs[i] = kiln_none();
  if (op->kernel.dest_arg >= 0) outs[0] = kiln_ivalue_retain(args[op->kernel.dest_arg]);
  for (; count < op->kernel.arg_count && op->schema->args[count].has_default; count++) {
    args[count] =
        kiln_ivalue_retain(op->schema->args[count].default_value); /* newer than the case */
  }
  assert_int_equal(count, op->kernel.arg_count);
  bool fine = true;
  if (r->as == UNDEFINED)
    run_undefined(r, op, args, count);
  else
    fine = check(r, line, kiln_kernel_run(r->call, &op->kernel, args, count, outs), outs);
  for (int i = 0; i < count; i++) kiln_ivalue_release(args[i]);
  for (int i = 0; i < KILN_MAX_OUTS; i++) kiln_ivalue_release(outs[i]);
  return fine;
}
static void run_file(fixture *f, kiln_isa isa, trial as, const char *path, int least) {
  static char line[MAX_LINE];
  reader r = {.f = f, .as = as};
  int cases = 0, wrong = 0;
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_ok(kiln_call_create(f->env, &r.call));
  kiln_call_begin(r.call, NULL);
  r.call->dispatch = kiln_dispatch_select(isa);
  while (fgets(line, sizeof line, file)) {
    r.line++;
    line[strcspn(line, "\n")] = 0;
    if (line[0] == '#') continue;
    cases++;
    wrong += !run_line(&r, line);
  }
  fclose(file);
  kiln_call_destroy(r.call);
  assert_true(cases >= least);
  if (wrong) fail_msg("%d of %d cases are wrong on %s", wrong, cases, kiln_isa_name(isa));
}
static void run_files(fixture *f, kiln_isa isa, trial as) {
  run_file(f, isa, as, KILN_SOURCE_DIR "/test/data/kernels/ops.txt", LEAST_CASES);
  run_file(f, isa, as, KILN_SOURCE_DIR "/test/data/kernels/compose.txt", LEAST_OTHERS);
  run_file(f, isa, as, KILN_SOURCE_DIR "/test/data/kernels/library.txt", LEAST_OTHERS);
  run_file(f, isa, as, KILN_SOURCE_DIR "/test/data/kernels/families.txt", LEAST_OTHERS);
  run_file(f, isa, as, KILN_SOURCE_DIR "/test/data/kernels/inner.txt", LEAST_OTHERS);
  run_file(f, isa, as, KILN_SOURCE_DIR "/test/data/kernels/models.txt", LEAST_MODELS);
  run_file(f, isa, as, KILN_SOURCE_DIR "/test/data/kernels/draws.txt", LEAST_OTHERS);
  run_file(f, isa, as, KILN_SOURCE_DIR "/test/data/kernels/empty.txt", LEAST_CASES);
  run_file(f, isa, as, KILN_SOURCE_DIR "/test/data/kernels/torch2.txt", LEAST_OTHERS);
  run_file(f, isa, as, KILN_SOURCE_DIR "/test/data/kernels/limits.txt", LEAST_OTHERS);
  run_file(f, isa, as, KILN_SOURCE_DIR "/test/data/kernels/shapes.txt", LEAST_CASES);
}
static void test_ops_v2(void **state) { run_files(*state, KILN_ISA_V2, AS_IT_IS); }
static void test_ops_avx2(void **state) {
  if (kiln_isa_detect() < KILN_ISA_AVX2) skip();
  run_files(*state, KILN_ISA_AVX2, AS_IT_IS);
}
static void test_ops_avx512(void **state) {
  if (kiln_isa_detect() < KILN_ISA_AVX512) skip();
  run_files(*state, KILN_ISA_AVX512, AS_IT_IS);
}
static void test_undefined(void **state) { run_files(*state, KILN_ISA_V2, UNDEFINED); }
static void test_odd_strides(void **state) { run_files(*state, kiln_isa_detect(), ODD_STRIDES); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_ops_v2, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(test_ops_avx2, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(test_ops_avx512, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(test_undefined, fixture_setup, fixture_teardown),
      cmocka_unit_test_setup_teardown(test_odd_strides, fixture_setup, fixture_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
