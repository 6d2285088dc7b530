/* object_test.c: the object loader refuses what it does not understand, whatever the bytes. */
#include <elf.h>

#include "codegen/object.h"
#include "codegen_support.h"

/* A real object to damage: a kernel with constants in its own section and a table lookup. */
static kiln_compiled *make_object(fixture *f, kiln_codegen *codegen) {
  kiln_reason reason;
  kiln_compiled *code;
  kiln_loop_fn *fn = parse_loop(f,
                                "kernel { in b0: f32[64] [1] out b1: f32[64] [1] nest [64] {\n"
                                "%0 = load f32 b0 + 0 [1]\n %1 = tanh f32 %0\n %2 = sin f32 %1\n"
                                "store f32 b1 + 0 [1], %2 } }",
                                true, NULL);
  assert_ok(kiln_codegen_compile(codegen, fn, KILN_BACKEND_LLVM, &reason, &code, NULL));
  return code;
}

static bool loads(const void *bytes, size_t size, const char *name, kiln_code want) {
  kiln__pages pages = {0};
  kiln_kernel_fn fn = NULL;
  kiln_status *status = kiln__object_load(bytes, size, name, &pages, &fn);
  bool ok = status == NULL;
  if (!ok) assert_int_equal(kiln_status_code(status), want);
  assert_true(ok == (pages.base != NULL) && ok == (fn != NULL));
  kiln_status_destroy(status);
  kiln__pages_release(&pages);
  return ok;
}

static void name_of(const kiln_compiled *code, char name[KILN_KERNEL_SYMBOL_BYTES]) {
  static const char prefix[] = KILN_KERNEL_SYMBOL;
  const char *at = memmem(code->object, code->object_bytes, prefix, sizeof prefix - 1);
  assert_non_null(at);
  memcpy(name, at, KILN_KERNEL_SYMBOL_BYTES);
  assert_int_equal(strlen(name), KILN_KERNEL_SYMBOL_BYTES - 1);
}

typedef void (*damage)(unsigned char *bytes, size_t size);

static Elf64_Shdr *section(unsigned char *bytes, uint32_t type) {
  Elf64_Ehdr *h = (Elf64_Ehdr *)bytes;
  Elf64_Shdr *s = (Elf64_Shdr *)(bytes + h->e_shoff);
  for (int i = 0; i < h->e_shnum; i++)
    if (s[i].sh_type == type && s[i].sh_size) return &s[i];
  fail();
  return s;
}
/* Of a later version of runtime/kernel_abi.h. */
static void other_abi(unsigned char *bytes, size_t size) {
  unsigned char *at = memmem(bytes, size, KILN_KERNEL_SYMBOL, strlen(KILN_KERNEL_SYMBOL));
  assert_non_null(at);
  at[strlen(KILN_KERNEL_SYMBOL) - 2]++;
}
static void bad_magic(unsigned char *bytes, size_t size) {
  (void)size;
  bytes[1] = 'X';
}
static void bad_machine(unsigned char *bytes, size_t size) {
  (void)size;
  ((Elf64_Ehdr *)bytes)->e_machine = EM_AARCH64;
}
static void sections_outside(unsigned char *bytes, size_t size) {
  ((Elf64_Ehdr *)bytes)->e_shoff = size - 8;
}
static void data_outside(unsigned char *bytes, size_t size) {
  section(bytes, SHT_PROGBITS)->sh_offset = size;
}
static void writable(unsigned char *bytes, size_t size) {
  (void)size;
  section(bytes, SHT_PROGBITS)->sh_flags |= SHF_WRITE | SHF_ALLOC;
}
static void relocation_type(unsigned char *bytes, size_t size) {
  (void)size;
  Elf64_Rela *r = (Elf64_Rela *)(bytes + section(bytes, SHT_RELA)->sh_offset);
  r->r_info = ELF64_R_INFO(ELF64_R_SYM(r->r_info), R_X86_64_GOTPCREL);
}
static void relocation_outside(unsigned char *bytes, size_t size) {
  (void)size;
  ((Elf64_Rela *)(bytes + section(bytes, SHT_RELA)->sh_offset))->r_offset = 1 << 30;
}
static void relocation_too_far(unsigned char *bytes, size_t size) {
  (void)size;
  ((Elf64_Rela *)(bytes + section(bytes, SHT_RELA)->sh_offset))->r_addend = INT64_C(1) << 40;
}
static void undefined_symbol(unsigned char *bytes, size_t size) {
  (void)size;
  Elf64_Shdr *table = section(bytes, SHT_SYMTAB);
  Elf64_Sym *symbols = (Elf64_Sym *)(bytes + table->sh_offset);
  for (uint64_t i = 0; i < table->sh_size / sizeof *symbols; i++) symbols[i].st_shndx = SHN_UNDEF;
}
/* A relocation by what reads like a table of symbols and is none. */
static void symbols_elsewhere(unsigned char *bytes, size_t size) {
  (void)size;
  Elf64_Shdr *first = (Elf64_Shdr *)(bytes + ((Elf64_Ehdr *)bytes)->e_shoff);
  *first = *section(bytes, SHT_SYMTAB);
  first->sh_type = SHT_NULL;
  section(bytes, SHT_RELA)->sh_link = 0;
}

static void assert_refused(const void *bytes, size_t size, const char *why) {
  kiln__pages pages = {0};
  kiln_kernel_fn fn = NULL;
  assert_error(kiln__object_load(bytes, size, "any", &pages, &fn), KILN_UNSUPPORTED, why);
}

/* A header alone is whole, and says how many sections there are. */
static void test_header_alone(void **unused) {
  (void)unused;
  const Elf64_Ehdr header = {
      .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
      .e_type = ET_REL,
      .e_machine = EM_X86_64,
      .e_shentsize = sizeof(Elf64_Shdr)};
  assert_refused(&header, sizeof header - 1, "object file: too short");
  assert_refused(&header, sizeof header, "object file: 0 sections");
}

static void test_refusals(void **unused) {
  (void)unused;
  static const damage damages[] = {bad_magic,          bad_machine,        sections_outside,
                                   data_outside,       writable,           relocation_type,
                                   relocation_outside, relocation_too_far, undefined_symbol,
                                   other_abi,          symbols_elsewhere};
  fixture f;
  fixture_open(&f);
  kiln_codegen *codegen;
  assert_ok(kiln_codegen_create(f.env, &codegen));
  kiln_compiled *code = make_object(&f, codegen);
  char name[KILN_KERNEL_SYMBOL_BYTES];
  name_of(code, name);
  assert_true(loads(code->object, code->object_bytes, name, KILN_UNSUPPORTED));
  assert_false(loads(code->object, code->object_bytes, "no_such_kernel", KILN_UNSUPPORTED));
  for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
    unsigned char *copy = malloc(code->object_bytes);
    memcpy(copy, code->object, code->object_bytes);
    damages[i](copy, code->object_bytes);
    if (loads(copy, code->object_bytes, name, KILN_UNSUPPORTED)) fail_msg("damage %zu", i);
    free(copy);
  }
  /* Relocations of what is not kept, as of section 0, are nobody's business. */
  unsigned char *copy = malloc(code->object_bytes);
  memcpy(copy, code->object, code->object_bytes);
  section(copy, SHT_RELA)->sh_info = 0;
  assert_true(loads(copy, code->object_bytes, name, KILN_UNSUPPORTED));
  free(copy);
  kiln_compiled_release(code);
  kiln_codegen_destroy(codegen);
  fixture_close(&f);
}

/* Cut anywhere it is refused; with random bytes changed it loads or is refused, but stays inside
 * its memory (a sanitizer watches). Nothing damaged is run. */
static void test_random_damage(void **unused) {
  (void)unused;
  fixture f;
  fixture_open(&f);
  kiln_codegen *codegen;
  assert_ok(kiln_codegen_create(f.env, &codegen));
  kiln_compiled *code = make_object(&f, codegen);
  char name[KILN_KERNEL_SYMBOL_BYTES];
  name_of(code, name);
  uint64_t seed = 12345;
  for (size_t size = 0; size < code->object_bytes; size += 7) {
    unsigned char *copy = malloc(size + 1);
    memcpy(copy, code->object, size);
    assert_false(loads(copy, size, name, KILN_UNSUPPORTED));
    free(copy);
  }
  int refused = 0;
  for (int n = 0; n < 3000; n++) {
    unsigned char *copy = malloc(code->object_bytes);
    memcpy(copy, code->object, code->object_bytes);
    for (int k = 0; k <= n % 4; k++) {
      size_t at = random_next(&seed) % code->object_bytes;
      if (k == 0) { /* where it hurts: headers, symbols, relocations */
        const Elf64_Ehdr *h = (const Elf64_Ehdr *)code->object;
        at = n % 2 ? at % sizeof *h : h->e_shoff + at % (code->object_bytes - h->e_shoff);
      }
      copy[at] = (unsigned char)random_next(&seed);
    }
    kiln__pages pages = {0};
    kiln_kernel_fn fn;
    kiln_status *status = kiln__object_load(copy, code->object_bytes, name, &pages, &fn);
    refused += status != NULL;
    kiln_status_destroy(status);
    kiln__pages_release(&pages);
    free(copy);
  }
  assert_true(refused > 500);
  kiln_compiled_release(code);
  kiln_codegen_destroy(codegen);
  fixture_close(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_header_alone),
                                     cmocka_unit_test(test_refusals),
                                     cmocka_unit_test(test_random_damage)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
