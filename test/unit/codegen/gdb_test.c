/* gdb_test.c: what debuggers read of generated kernels: a list of ELF objects whose sections lie
 * where the code does and whose symbols have the names that the user knows, as long as the code
 * lives. */
#include "codegen/gdb.h"

#include <elf.h>

#include "codegen/codegen.h"
#include "test/unit/codegen/codegen_support.h"

/* As a debugger knows them (GDB's manual, "JIT Compilation Interface"). */
typedef struct entry {
  struct entry *next, *prev;
  const char *file;
  uint64_t size;
} entry;
struct jit_descriptor;
extern struct jit_descriptor __jit_debug_descriptor;
typedef struct descriptor {
  uint32_t version, action;
  const entry *relevant, *first;
} descriptor;
static descriptor list_of_process(void) {
  descriptor d;
  memcpy(&d, &__jit_debug_descriptor, sizeof d);
  assert_int_equal(d.version, 1);
  assert_true(d.action == 0 && !d.relevant);
  return d;
}

/* The address of the only function, called `name`; and whether there is a table for unwinding. */
static uint64_t find_function(const entry *e, const char *name, bool *out_unwinds) {
  Elf64_Ehdr header;
  Elf64_Sym symbol;
  uint64_t address = 0;
  memcpy(&header, e->file, sizeof header);
  assert_memory_equal(header.e_ident, ELFMAG, SELFMAG);
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(e->file + header.e_shoff);
  for (int i = 0; i < header.e_shnum; i++) {
    const Elf64_Shdr *s = &sections[i];
    if (s->sh_type == SHT_X86_64_UNWIND) *out_unwinds = true;
    if (s->sh_type != SHT_SYMTAB) continue;
    for (uint64_t at = 0; at < s->sh_size; at += sizeof symbol) {
      memcpy(&symbol, e->file + s->sh_offset + at, sizeof symbol);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      assert_int_equal(address, 0);
      assert_string_equal(e->file + sections[s->sh_link].sh_offset + symbol.st_name, name);
      address = sections[symbol.st_shndx].sh_addr + symbol.st_value;
    }
  }
  return address;
}

static kiln_compiled *compile(fixture *f, kiln_codegen *codegen, const char *number) {
  char text[256];
  kiln_reason reason;
  kiln_compiled *code;
  snprintf(text, sizeof text,
           "kernel { in b0: f32[64] [1] out b1: f32[64] [1] nest [64] {\n"
           "%%0 = load f32 b0 + 0 [1]\n%%1 = const f32 %s\n%%2 = add f32 %%0, %%1\n"
           "store f32 b1 + 0 [1], %%2 } }",
           number);
  assert_ok(kiln_codegen_compile(codegen, parse_loop(f, text, false, NULL), KILN_BACKEND_LLVM,
                                 &reason, &code, NULL));
  return code;
}

static void assert_tells(const entry *e, const kiln_compiled *code) {
  char name[] = "kiln_00000000000000000000000000000000";
  uint64_t address;
  bool unwinds = false;
  kiln_digest_format(code->digest, name + strlen("kiln_"));
  memcpy(&address, &code->fn, sizeof address);
  assert_int_equal(find_function(e, name, &unwinds), address);
  assert_true(unwinds);
}

/* Two kernels, of which the first, the last of the list, goes first; then none is left. */
static void test_kernels(void **unused) {
  (void)unused;
  fixture f;
  kiln_codegen *codegen;
  fixture_open(&f);
  assert_ok(kiln_flags_set(&f.env->flags, "code_cache", "0"));
  assert_ok(kiln_flags_set(&f.env->flags, "gdb", "on"));
  assert_ok(kiln_codegen_create(f.env, &codegen));
  assert_null(list_of_process().first);
  kiln_compiled *a = compile(&f, codegen, "1"), *b = compile(&f, codegen, "2");
  const entry *first = list_of_process().first, *second = first->next;
  assert_true(!first->prev && second->prev == first && !second->next);
  assert_tells(first, b);
  assert_tells(second, a);
  kiln_compiled_release(a);
  assert_true(list_of_process().first == first && !first->next);
  kiln_compiled_release(b);
  assert_null(list_of_process().first);
  kiln_codegen_destroy(codegen);
  fixture_close(&f);
}

static void test_off(void **unused) {
  (void)unused;
  fixture f;
  kiln_codegen *codegen;
  fixture_open(&f);
  assert_ok(kiln_codegen_create(f.env, &codegen));
  kiln_compiled *code = compile(&f, codegen, "1");
  assert_null(list_of_process().first);
  kiln_compiled_release(code);
  kiln_codegen_destroy(codegen);
  fixture_close(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels), cmocka_unit_test(test_off)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
