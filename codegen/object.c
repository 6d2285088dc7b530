/* object.c: the object loader: lay out the constant sections in one mapping, apply the relocations,
 * make it executable. About 6 microseconds; LLVM is not needed. */
#include "codegen/object.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"

enum { MAX_SECTIONS = 256 };

typedef struct object {
  const unsigned char *bytes;
  size_t size;
  Elf64_Ehdr header;
  Elf64_Shdr sections[MAX_SECTIONS];
  bool kept[MAX_SECTIONS];
  size_t place[MAX_SECTIONS]; /* of kept ones, in the mapping */
  unsigned char *base;
  size_t mapped;
} object;

#define REFUSE(...) return KILN_ERROR(KILN_UNSUPPORTED, "object file: " __VA_ARGS__)

/* The bytes [offset, offset + size) of the file, or NULL. */
static const unsigned char *range_of(const object *o, uint64_t offset, uint64_t size) {
  return offset <= o->size && size <= o->size - offset ? o->bytes + offset : NULL;
}

static kiln_status *read_header(object *o) {
  if (o->size < sizeof o->header) REFUSE("too short");
  memcpy(&o->header, o->bytes, sizeof o->header);
  const Elf64_Ehdr *h = &o->header;
  if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
      h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_type != ET_REL || h->e_machine != EM_X86_64)
    REFUSE("not an x86-64 ELF object");
  if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum == 0 || h->e_shnum > MAX_SECTIONS)
    REFUSE("%d sections", h->e_shnum);
  const unsigned char *table = range_of(o, h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr));
  if (!table) REFUSE("the section table is cut off");
  memcpy(o->sections, table, h->e_shnum * sizeof(Elf64_Shdr));
  return NULL;
}

static kiln_status *lay_out(object *o) {
  for (int i = 0; i < o->header.e_shnum; i++) {
    const Elf64_Shdr *s = &o->sections[i];
    if (!(s->sh_flags & SHF_ALLOC) || s->sh_size == 0) continue;
    if (s->sh_type == SHT_X86_64_UNWIND) continue; /* kernels do not unwind */
    if (s->sh_type != SHT_PROGBITS || (s->sh_flags & SHF_WRITE))
      REFUSE("section %d is writable, or of type %u", i, s->sh_type);
    if (!range_of(o, s->sh_offset, s->sh_size)) REFUSE("section %d is cut off", i);
    uint64_t align = s->sh_addralign ? s->sh_addralign : 1;
    if (align > 4096 || (align & (align - 1))) REFUSE("section %d is oddly aligned", i);
    o->mapped = (o->mapped + align - 1) & ~(size_t)(align - 1);
    o->kept[i] = true;
    o->place[i] = o->mapped;
    o->mapped += s->sh_size;
    if (o->mapped > (size_t)1 << 28) REFUSE("larger than 256 MiB");
  }
  if (o->mapped == 0) REFUSE("no code");
  return NULL;
}

/* Symbol `index` of table section `table`. */
static kiln_status *read_symbol(const object *o, const Elf64_Shdr *table, uint64_t index,
                                Elf64_Sym *out_symbol) {
  if (table->sh_type != SHT_SYMTAB || table->sh_entsize != sizeof(Elf64_Sym) ||
      index >= table->sh_size / sizeof(Elf64_Sym))
    REFUSE("symbol %llu does not exist", (unsigned long long)index);
  const unsigned char *at =
      range_of(o, table->sh_offset + index * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
  if (!at) REFUSE("the symbol table is cut off");
  memcpy(out_symbol, at, sizeof *out_symbol);
  return NULL;
}

static const char *string_at(const object *o, uint32_t section, uint32_t offset) {
  if (section >= o->header.e_shnum || o->sections[section].sh_type != SHT_STRTAB) return NULL;
  const Elf64_Shdr *s = &o->sections[section];
  const unsigned char *text = range_of(o, s->sh_offset, s->sh_size);
  if (!text || offset >= s->sh_size || !memchr(text + offset, 0, s->sh_size - offset)) return NULL;
  return (const char *)text + offset;
}

static kiln_status *address_of_symbol(const object *o, const Elf64_Shdr *table,
                                      const Elf64_Sym *symbol, uint64_t *out_address) {
  if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= o->header.e_shnum ||
      !o->kept[symbol->st_shndx]) {
    const char *name = string_at(o, table->sh_link, symbol->st_name);
    REFUSE("it needs '%s' from elsewhere", name ? name : "?");
  }
  if (symbol->st_value > o->sections[symbol->st_shndx].sh_size) REFUSE("a symbol out of range");
  *out_address = (uint64_t)(uintptr_t)(o->base + o->place[symbol->st_shndx]) + symbol->st_value;
  return NULL;
}

static kiln_status *relocate_one(object *o, const Elf64_Shdr *table, int target,
                                 const Elf64_Rela *rela) {
  Elf64_Sym symbol;
  uint64_t address;
  uint32_t type = (uint32_t)ELF64_R_TYPE(rela->r_info);
  if (type != R_X86_64_PC32 && type != R_X86_64_PLT32) REFUSE("relocation of type %u", type);
  int32_t value;
  const uint64_t size = o->sections[target].sh_size;
  if (rela->r_offset > size || sizeof value > size - rela->r_offset)
    REFUSE("a relocation out of range");
  KILN_TRY(read_symbol(o, table, ELF64_R_SYM(rela->r_info), &symbol));
  KILN_TRY(address_of_symbol(o, table, &symbol, &address));
  unsigned char *place = o->base + o->place[target] + rela->r_offset;
  const int64_t distance =
      (int64_t)(address + (uint64_t)rela->r_addend - (uint64_t)(uintptr_t)place);
  value = (int32_t)distance;
  if (distance != value) REFUSE("a relocation does not fit");
  memcpy(place, &value, sizeof value);
  return NULL;
}

static kiln_status *relocate(object *o) {
  for (int i = 0; i < o->header.e_shnum; i++) {
    const Elf64_Shdr *s = &o->sections[i];
    if (s->sh_type == SHT_REL) REFUSE("relocations without addends");
    if (s->sh_type != SHT_RELA) continue;
    if (s->sh_info >= o->header.e_shnum || s->sh_link >= o->header.e_shnum)
      REFUSE("relocations of section %u", s->sh_info);
    if (!o->kept[s->sh_info]) continue;
    const unsigned char *table = range_of(o, s->sh_offset, s->sh_size);
    if (!table || s->sh_entsize != sizeof(Elf64_Rela)) REFUSE("the relocations are cut off");
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= s->sh_size; at += sizeof(Elf64_Rela)) {
      Elf64_Rela rela;
      memcpy(&rela, table + at, sizeof rela);
      KILN_TRY(relocate_one(o, &o->sections[s->sh_link], (int)s->sh_info, &rela));
    }
  }
  return NULL;
}

static kiln_status *find_function(const object *o, const char *name, kiln_kernel_fn *out_fn,
                                  size_t *out_bytes) {
  for (int i = 0; i < o->header.e_shnum; i++) {
    const Elf64_Shdr *table = &o->sections[i];
    if (table->sh_type != SHT_SYMTAB) continue;
    for (uint64_t n = 0; n < table->sh_size / sizeof(Elf64_Sym); n++) {
      Elf64_Sym symbol;
      KILN_TRY(read_symbol(o, table, n, &symbol));
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      const char *text = string_at(o, table->sh_link, symbol.st_name);
      if (!text || strcmp(text, name) != 0) continue;
      uint64_t address;
      KILN_TRY(address_of_symbol(o, table, &symbol, &address));
      memcpy(out_fn, &address, sizeof address);
      *out_bytes = symbol.st_size;
      return NULL;
    }
  }
  REFUSE("no function '%s'", name);
}

static kiln_status *load(object *o, const char *symbol, kiln_kernel_fn *out_fn, size_t *out_bytes) {
  for (int i = 0; i < o->header.e_shnum; i++)
    if (o->kept[i])
      memcpy(o->base + o->place[i], o->bytes + o->sections[i].sh_offset, o->sections[i].sh_size);
  KILN_TRY(relocate(o));
  KILN_TRY(find_function(o, symbol, out_fn, out_bytes));
  if (mprotect(o->base, o->mapped, PROT_READ | PROT_EXEC) != 0)
    REFUSE("the system does not allow generated code");
  return NULL;
}

kiln_status *kiln__object_load(const void *bytes, size_t size, const char *symbol,
                               kiln__pages *out_pages, kiln_kernel_fn *out_fn) {
  object o = {.bytes = bytes, .size = size};
  KILN_TRY(read_header(&o));
  KILN_TRY(lay_out(&o));
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), used = o.mapped;
  o.mapped = (o.mapped + page - 1) / page * page;
  // cppcheck-suppress invalidFunctionArg ; no file is -1
  o.base = mmap(NULL, o.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // cppcheck-suppress memleak ; there is none to unmap
  if (o.base == MAP_FAILED) return kiln_status_oom();
  size_t code_bytes = 0;
  kiln_status *status = load(&o, symbol, out_fn, &code_bytes);
  if (status) {
    munmap(o.base, o.mapped);
    return status;
  }
  *out_pages = (kiln__pages){o.base, o.mapped, used, code_bytes};
  return NULL;
}

static void rename_symbol(const object *o, const char *symbol, const char *name, char *out) {
  const size_t length = strlen(symbol);
  for (int i = 0; i < o->header.e_shnum; i++) {
    const Elf64_Shdr *s = &o->sections[i];
    const char *at = (const char *)range_of(o, s->sh_offset, s->sh_size);
    if (s->sh_type != SHT_STRTAB || !at || strlen(name) > length) continue;
    for (size_t left = s->sh_size; left > length;) {
      const size_t step = strnlen(at, left - 1) + 1;
      if (step == length + 1 && memcmp(at, symbol, length) == 0)
        strcpy(out + (at - (const char *)o->bytes), name);
      at += step;
      left -= step;
    }
  }
}

kiln_status *kiln__object_describe(const void *bytes, size_t size, const kiln__pages *pages,
                                   const char *symbol, const char *name, void *out) {
  object o = {.bytes = bytes, .size = size};
  KILN_TRY(read_header(&o));
  KILN_TRY(lay_out(&o));
  memcpy(out, bytes, size);
  for (int i = 0; i < o.header.e_shnum; i++)
    if (o.kept[i]) o.sections[i].sh_addr = (uint64_t)(uintptr_t)pages->base + o.place[i];
  memcpy((char *)out + o.header.e_shoff, o.sections, o.header.e_shnum * sizeof(Elf64_Shdr));
  rename_symbol(&o, symbol, name, out);
  return NULL;
}

void kiln__pages_release(kiln__pages *pages) {
  if (pages->base) munmap(pages->base, pages->size);
  *pages = (kiln__pages){0};
}
