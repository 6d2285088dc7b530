/* lexer_test.c: tokens, written as a line of kinds and texts. */
#include "frontend/torchscript/lexer.h"
#include "test/unit/sweep.h"

typedef struct lexing {
  kiln_arena *arena;
  const char *text;
  char out[1024];
} lexing;

static kiln_status *lex_all(lexing *x) {
  kiln_source source = {.name = KILN_STR("t.py"), .text = kiln_str_from(x->text), .first_line = 1};
  kiln_lexer *lexer = KILN_NEW(x->arena, kiln_lexer);
  kiln_lexer_init(lexer, x->arena, &source);
  size_t at = 0;
  for (;;) {
    kiln_token t = {0};
    KILN_TRY(kiln_lexer_next(lexer, &t));
    char *out = x->out + at;
    size_t room = sizeof x->out - at;
    int n = 0;
    switch (t.kind) {
      case KILN_TOKEN_END: x->out[at] = 0; return NULL;
      case KILN_TOKEN_NEWLINE: n = snprintf(out, room, "; "); break;
      case KILN_TOKEN_INDENT: n = snprintf(out, room, "> "); break;
      case KILN_TOKEN_DEDENT: n = snprintf(out, room, "< "); break;
      case KILN_TOKEN_NAME: n = snprintf(out, room, KILN_STR_FMT " ", KILN_STR_ARG(t.text)); break;
      case KILN_TOKEN_INT: n = snprintf(out, room, "i%llu ", (unsigned long long)t.integer); break;
      case KILN_TOKEN_FLOAT: n = snprintf(out, room, "f%g ", t.number); break;
      case KILN_TOKEN_IMAGINARY: n = snprintf(out, room, "j%g ", t.number); break;
      case KILN_TOKEN_STRING:
        n = snprintf(out, room, "s%zu:" KILN_STR_FMT " ", t.text.len, KILN_STR_ARG(t.text));
        break;
      case KILN_TOKEN_OP:
        n = snprintf(out, room, "%c%c%c ", (char)t.op, (char)(t.op >> 8 ? t.op >> 8 : ' '),
                     (char)(t.op >> 16 ? t.op >> 16 : ' '));
        break;
    }
    at += (size_t)n;
    assert_true(at < sizeof x->out);
  }
}

static kiln_status *lex(const char *text, char *out) {
  static lexing x;
  kiln_mem *mem = NULL;
  x = (lexing){.text = text};
  KILN_TRY(kiln_mem_create(KILN_MEM_DEFAULT, &mem));
  kiln_status *status = kiln_arena_create(mem, &x.arena);
  if (!status) status = lex_all(&x);
  kiln_arena_destroy(x.arena);
  kiln_mem_release(mem);
  strcpy(out, x.out);
  return status;
}

static void expect(const char *text, const char *tokens) {
  char out[1024];
  assert_ok(lex(text, out));
  assert_string_equal(out, tokens);
}

static void indents(void **state) {
  (void)state;
  expect("a:\n  b\n\n  # c\n  d\ne\n", "a :   ; > b ; d ; < e ; ");
  expect("a:\n    b:\n      c\nd", "a :   ; > b :   ; > c ; < < d ");
  expect("f(\n  x,\n y)\n", "f (   x ,   y )   ; ");
  expect("a \\\n  b\n", "a b ; ");
  char out[1024];
  assert_error(lex("a:\n    b\n  c\n", out), KILN_INVALID_FILE, "indentation");
}

static void numbers(void **state) {
  (void)state;
  expect("1 1. .5 1e3 1e-05 2j 0.10000000000000001 9223372036854775808 0x1f",
         "i1 f1 f0.5 f1000 f1e-05 j2 f0.1 i9223372036854775808 i31 ");
  char out[1024];
  assert_error(lex("99999999999999999999", out), KILN_INVALID_FILE, "number");
  assert_error(lex("1x", out), KILN_INVALID_FILE, "number");
}

static void strings(void **state) {
  (void)state;
  expect("\"a\\n\\t\\\"\\\\\" 'b' \"\\001\\377\"", "s5:a\n\t\"\\ s1:b s2:\001\377 ");
  expect("\"\\r\"", "s1:\r ");
  char out[1024];
  assert_error(lex("\"a", out), KILN_INVALID_FILE, "without end");
  assert_error(lex("\"\\x41\"", out), KILN_INVALID_FILE, "escape");
  assert_error(lex("\"\\777\"", out), KILN_INVALID_FILE, "escape");
  assert_error(lex("\"a\\", out), KILN_INVALID_FILE, NULL);
}

static void operators(void **state) {
  (void)state;
  expect("a**b//c<<1!=2->x...y**=z", "a **  b //  c <<  i1 !=  i2 ->  x ... y **= z ");
  char out[1024];
  assert_error(lex("a $ b", out), KILN_INVALID_FILE, "character");
}

static void places(void **state) {
  (void)state;
  char out[1024];
  kiln_status *status = lex("a = 1\nbb = ?\n", out);
  assert_string_equal(kiln_status_location(status), "t.py:2:6");
  kiln_status_destroy(status);
}

static kiln_status *lex_in(kiln_arena *arena, void *arg) {
  lexing x = {.arena = arena, .text = arg};
  return lex_all(&x);
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  static char text[] = "a = \"x\\n\" + 'y'\nif b:\n  c = 1e-5 ** 0x10  # text\n  d\n";
  sweep_arena(lex_in, text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(indents), cmocka_unit_test(numbers),
      cmocka_unit_test(strings), cmocka_unit_test(operators),
      cmocka_unit_test(places),  cmocka_unit_test(survives_lack_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
