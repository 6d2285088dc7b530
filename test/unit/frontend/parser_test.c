/* parser_test.c: trees, written as S-expressions. */
#include "frontend/torchscript/ast.h"
#include "test/unit/sweep.h"

typedef struct parsing {
  kiln_arena *arena;
  const char *text;
  kiln_text out;
  char copy[2048];
} parsing;

static const char *const names[] = {
    "name",  "int",      "float", "imag",  "str",     "True",   "False", "None",   "...", "attr",
    "call",  "kw",       "star",  "index", "slice",   "tuple",  "list",  "dict",   "bin", "cmp",
    "un",    "not",      "and",   "or",    "ternary", "lcomp",  "dcomp", "expr",   "=",   "decl",
    "aug",   "if",       "for",   "while", "with",    "return", "raise", "assert", "del", "pass",
    "break", "continue", "block", "def",   "param",   "class",  "import"};

static void show(kiln_text *out, const kiln_ast *ast) {
  if (!ast) {
    kiln_text_puts(out, "-");
    return;
  }
  if (ast->kind == KILN_AST_NAME) {
    kiln_text_put(out, ast->text);
    return;
  }
  if (ast->kind == KILN_AST_INT) {
    kiln_text_printf(out, "%lld", (long long)ast->u.integer);
    return;
  }
  kiln_text_printf(out, "(%s", names[ast->kind]);
  if (ast->text.len) kiln_text_printf(out, ":" KILN_STR_FMT, KILN_STR_ARG(ast->text));
  if (ast->op) {
    kiln_text_putc(out, ':');
    if (ast->op < 32) kiln_text_printf(out, "%u", ast->op);
    for (uint32_t op = ast->op; ast->op >= 32 && op; op >>= 8) kiln_text_putc(out, (char)op);
  }
  for (int i = 0; i < ast->count; i++) {
    kiln_text_putc(out, ' ');
    show(out, ast->kids[i]);
  }
  kiln_text_putc(out, ')');
}

static kiln_status *parse_in_arena(parsing *x) {
  kiln_source source = {.name = KILN_STR("t.py"), .text = kiln_str_from(x->text), .first_line = 1};
  kiln_ast *file = NULL;
  KILN_TRY(kiln_ast_parse(x->arena, &source, NULL, &file));
  x->out = kiln_text_in(x->arena);
  for (int i = 0; i < file->count; i++) show(&x->out, file->kids[i]);
  assert_true(x->out.len < sizeof x->copy);
  memcpy(x->copy, x->out.data, x->out.len + 1);
  return NULL;
}

static parsing result;

static kiln_status *parse(const char *text) {
  kiln_mem *mem = NULL;
  result = (parsing){.text = text};
  KILN_TRY(kiln_mem_create(KILN_MEM_DEFAULT, &mem));
  kiln_status *status = kiln_arena_create(mem, &result.arena);
  if (!status) status = parse_in_arena(&result);
  kiln_arena_destroy(result.arena);
  kiln_mem_release(mem);
  return status;
}

static void expect(const char *text, const char *tree) {
  assert_ok(parse(text));
  assert_string_equal(result.copy, tree);
}

/* Python's rules, each from the language reference's table of precedence. */
static void precedence(void **state) {
  (void)state;
  expect("a + b * c", "(expr (bin:+ a (bin:* b c)))");
  expect("a - b - c", "(expr (bin:- (bin:- a b) c))");
  expect("a ** b ** c", "(expr (bin:** a (bin:** b c)))");
  expect("-a ** b", "(expr (un:- (bin:** a b)))");
  expect("-2 ** b", "(expr (un:- (bin:** 2 b)))");
  expect("a ** -b", "(expr (bin:** a (un:- b)))");
  expect("a | b ^ c & d << e + f", "(expr (bin:| a (bin:^ b (bin:& c (bin:<< d (bin:+ e f))))))");
  expect("not a == b and c or d", "(expr (or (and (not (cmp:== a b)) c) d))");
  expect("a < b < c", "(expr (and (cmp:< a b) (cmp:< b c)))");
  expect("a not in b", "(expr (cmp:2 a b))");
  expect("a is not None", "(expr (cmp:4 a (None:None)))");
  expect("x if c else y if d else z", "(expr (ternary c x (ternary d y z)))");
  expect("-1", "(expr -1)");
  expect("- -1", "(expr (un:- -1))");
  expect("-9223372036854775808", "(expr -9223372036854775808)");
  assert_error(parse("9223372036854775808"), KILN_INVALID_FILE, "64 bits");
}

static void postfix(void **state) {
  (void)state;
  expect("torch.add(a, b, alpha=1)", "(expr (call (attr:add torch) a b (kw:alpha 1)))");
  expect("(l).forward(x, )", "(expr (call (attr:forward l) x))");
  expect("x[1:, ::2, None]", "(expr (index x (slice 1 - -) (slice - - 2) (None:None)))");
  expect("f(*a)[0].b", "(expr (attr:b (index (call f (star a)) 0)))");
  expect("a = [x for y in z if w]", "(= (lcomp x y z w) - a)");
  expect("a = {k: v for k, v in z}", "(= (dcomp k v (tuple k v) z -) - a)");
  expect("a = {1: b, 2: c}", "(= (dict 1 b 2 c) - a)");
  expect("a = (b,)", "(= (tuple b) - a)");
  expect("a = ()", "(= (tuple) - a)");
  expect("a = \"b\" \"c\"", "(= (str:bc) - a)");
}

static void statements(void **state) {
  (void)state;
  expect("a, b, = c", "(= c - (tuple a b))");
  expect("a, = c", "(= c - (tuple a))");
  expect("a = b = c", "(= c - a b)");
  expect("a : int = b", "(= b int a)");
  expect("a : int", "(decl a int)");
  expect("a += b", "(aug:+ a b)");
  expect("if a:\n  pass\nelif b:\n  pass\nelse:\n  c\n",
         "(if a (block (pass)) (block (if b (block (pass)) (block (expr c)))))");
  expect("for i, j in a:\n  break\n", "(for (tuple i j) a (block (break)))");
  expect("while a: b = 1\n", "(while a (block (= 1 - b)))");
  expect("with a as b, c:\n  pass\n", "(with (block (pass)) a b c -)");
  expect("assert a, b", "(assert a b)");
  expect("return a, b", "(return (tuple a b))");
}

static void definitions(void **state) {
  (void)state;
  expect("def f(self: A,\n    x: int=1) -> Tuple[A, B]:\n  return x\n",
         "(def:f (index Tuple A B) (block (return x)) (param:self A -) (param:x int 1))");
  expect("def f(a, *, b):\n  pass\n", "(def:f - (block (pass)) (param:a - -) (param:b:1 - -))");
  expect("class A(Module):\n  __parameters__ = [\"w\", ]\n  w : Tensor\n",
         "(class:A Module (block (= (list (str:w)) - __parameters__) (decl w Tensor)))");
  expect("import a.b\nop_version_set = 1\n", "(import)(= 1 - op_version_set)");
}

static void errors(void **state) {
  (void)state;
  static const char *const bad[] = {
      "a = ",          "a +",          "f(a b)",           "(a",  "[a, b", "if a\n  b\n",
      "def (a): pass", "class : pass", "for in a:\n  b\n", "a[",  "a[]",   "x = = y",
      "{a}",           "if a:\nb\n",   "a if b",           "not", "*"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_error(parse(bad[i]), KILN_INVALID_FILE, NULL);
  }
}

/* Nesting of every kind ends in an error, not in the C stack's end. */
static void depth(void **state) {
  (void)state;
  static const char *const units[] = {"(",   "[",   "{1:",          "-", "not ",         "a.b[",
                                      "f(",  "a**", "a if b else ", "~", "[a for a in ", "[a for ",
                                      "-2**"};
  static char text[400001];
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    size_t length = strlen(units[i]), count = (sizeof text - 1) / length;
    for (size_t k = 0; k < count; k++) memcpy(text + k * length, units[i], length);
    text[count * length] = 0;
    assert_error(parse(text), KILN_INVALID_FILE, "nested deeper");
  }
  size_t at = 0;
  for (int i = 0; i < 100000; i++) at += (size_t)sprintf(text + at, "a+");
  text[at - 1] = 0;
  assert_error(parse(text), KILN_INVALID_FILE, "nested deeper");
}

static kiln_status *parse_in(kiln_arena *arena, void *arg) {
  result = (parsing){.arena = arena, .text = arg};
  return parse_in_arena(&result);
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  static char text[] =
      "class A(Module):\n  __parameters__ = [\"w\", ]\n  w : Tensor\n"
      "  def f(self: __torch__.A, x: Tensor=1, *, k: Optional[int]=None) -> Tuple[int, str]:\n"
      "    for i in range(3):\n      if not x[0, 1:2] and a < b:\n        y = [z for z in {1: 2}]\n"
      "      else:\n        raise E(\"m\", *q, k=-1)\n    return (x if y else 2, 's')\n";
  sweep_arena(parse_in, text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(precedence),
                                     cmocka_unit_test(postfix),
                                     cmocka_unit_test(statements),
                                     cmocka_unit_test(definitions),
                                     cmocka_unit_test(errors),
                                     cmocka_unit_test(depth),
                                     cmocka_unit_test(survives_lack_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
