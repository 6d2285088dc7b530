/* elf.c: an image as a relocatable ELF object (System V gABI, chapter 4; x86-64 psABI, 4.4). */
#include <elf.h>

#include "base/text.h"
#include "export/image.h"

enum { NONE, CODE, DATA, RELOCATIONS, SYMBOLS, STRINGS, NAMES, STACK, SECTIONS };

static const char *const section_names[SECTIONS] = {
    [NONE] = "",
    [CODE] = ".text",
    [DATA] = ".data.rel.ro",
    [RELOCATIONS] = ".rela.data.rel.ro",
    [SYMBOLS] = ".symtab",
    [STRINGS] = ".strtab",
    [NAMES] = ".shstrtab",
    [STACK] = ".note.GNU-stack",
};

typedef struct writer {
  const kiln__image *image;
  kiln_text out;
  Elf64_Shdr sections[SECTIONS];
  KILN_VEC(Elf64_Sym) symbols;
  kiln_text strings;
  kiln_map known; /* symbols of elsewhere: their number */
} writer;

static void put(writer *w, const void *bytes, size_t size) {
  kiln_text_put(&w->out, kiln_str_make(bytes, size));
}

static uint32_t add_string(kiln_text *strings, const char *text) {
  const uint32_t at = (uint32_t)strings->len;
  kiln_text_put(strings, kiln_str_make(text, strlen(text) + 1));
  return at;
}

static uint32_t add_symbol(writer *w, const char *name, unsigned char info, uint16_t section,
                           size_t at, size_t bytes) {
  const Elf64_Sym symbol = {.st_name = name ? add_string(&w->strings, name) : 0,
                            .st_info = info,
                            .st_shndx = section,
                            .st_value = at,
                            .st_size = bytes};
  kiln_vec_push(w->image->arena, &w->symbols, symbol);
  return (uint32_t)w->symbols.count - 1;
}

static uint32_t symbol_of_elsewhere(writer *w, const char *name) {
  void *known = kiln_map_find(&w->known, kiln_str_from(name));
  if (known) return (uint32_t)(uintptr_t)known;
  const uint32_t number =
      add_symbol(w, name, ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE), SHN_UNDEF, 0, 0);
  kiln_map_set(&w->known, kiln_str_from(name), (void *)(uintptr_t)number);
  return number;
}

/* A section begins where the file ends, and has what is put until it is over. */
static void begin(writer *w, int section, uint32_t type, uint64_t flags, uint64_t align) {
  static const char zeros[64];
  put(w, zeros, -w->out.len & (align - 1));
  w->sections[section] = (Elf64_Shdr){
      .sh_type = type, .sh_flags = flags, .sh_offset = w->out.len, .sh_addralign = align};
}
static void end(writer *w, int section) {
  w->sections[section].sh_size = w->out.len - w->sections[section].sh_offset;
}

static void put_relocations(writer *w, const uint32_t *section_symbols) {
  for (int i = 0; i < w->image->relocations.count; i++) {
    const kiln__relocation *r = &w->image->relocations.data[i];
    const bool is_ours = r->part != KILN__IMAGE_SYMBOLS;
    const uint32_t symbol = is_ours ? section_symbols[r->part == KILN__IMAGE_CODE ? CODE : DATA]
                                    : symbol_of_elsewhere(w, w->image->symbols.data[r->target]);
    const Elf64_Rela rela = {.r_offset = r->at,
                             .r_info = ELF64_R_INFO((uint64_t)symbol, R_X86_64_64),
                             .r_addend = is_ours ? (int64_t)r->target : 0};
    put(w, &rela, sizeof rela);
  }
}

static void put_names(writer *w) {
  kiln_text names = kiln_text_in(w->image->arena);
  begin(w, NAMES, SHT_STRTAB, 0, 1);
  for (int i = 0; i < SECTIONS; i++) w->sections[i].sh_name = add_string(&names, section_names[i]);
  put(w, names.data, names.len);
  end(w, NAMES);
}

kiln_str kiln__image_object(const kiln__image *image, const char *symbol, const void *at,
                            size_t bytes) {
  writer w = {.image = image,
              .out = kiln_text_in(image->arena),
              .strings = kiln_text_in(image->arena),
              .known = kiln_map_in(image->arena)};
  Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                                   EV_CURRENT, ELFOSABI_SYSV},
                       .e_type = ET_REL,
                       .e_machine = EM_X86_64,
                       .e_version = EV_CURRENT,
                       .e_ehsize = sizeof header,
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = SECTIONS,
                       .e_shstrndx = NAMES};
  uint32_t section_symbols[SECTIONS] = {0};
  (void)add_string(&w.strings, "");
  (void)add_symbol(&w, NULL, 0, SHN_UNDEF, 0, 0);
  for (int i = CODE; i <= DATA; i++)
    section_symbols[i] =
        add_symbol(&w, NULL, ELF64_ST_INFO(STB_LOCAL, STT_SECTION), (uint16_t)i, 0, 0);
  for (int i = 0; i < image->functions.count; i++) {
    const kiln__function *f = &image->functions.data[i];
    (void)add_symbol(&w, f->name, ELF64_ST_INFO(STB_LOCAL, STT_FUNC), CODE, f->at, f->bytes);
  }
  const uint32_t locals = (uint32_t)w.symbols.count;
  (void)add_symbol(&w, symbol, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), DATA, kiln__image_place(at),
                   bytes);

  put(&w, &header, sizeof header);
  begin(&w, CODE, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 64);
  put(&w, image->code.data, (size_t)image->code.count);
  end(&w, CODE);
  begin(&w, DATA, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 64);
  put(&w, image->data.data, (size_t)image->data.count);
  end(&w, DATA);
  begin(&w, RELOCATIONS, SHT_RELA, SHF_INFO_LINK, 8);
  put_relocations(&w, section_symbols);
  end(&w, RELOCATIONS);
  begin(&w, SYMBOLS, SHT_SYMTAB, 0, 8);
  put(&w, w.symbols.data, sizeof *w.symbols.data * (size_t)w.symbols.count);
  end(&w, SYMBOLS);
  begin(&w, STRINGS, SHT_STRTAB, 0, 1);
  put(&w, w.strings.data, w.strings.len);
  end(&w, STRINGS);
  begin(&w, STACK, SHT_PROGBITS, 0, 1);
  put_names(&w);
  w.sections[RELOCATIONS].sh_link = SYMBOLS;
  w.sections[RELOCATIONS].sh_info = DATA;
  w.sections[RELOCATIONS].sh_entsize = sizeof(Elf64_Rela);
  w.sections[SYMBOLS].sh_link = STRINGS;
  w.sections[SYMBOLS].sh_info = locals;
  w.sections[SYMBOLS].sh_entsize = sizeof(Elf64_Sym);

  static const char zeros[8];
  put(&w, zeros, -w.out.len & 7);
  header.e_shoff = w.out.len;
  put(&w, w.sections, sizeof w.sections);
  memcpy(w.out.data, &header, sizeof header);
  return kiln_text_str(&w.out);
}
