// SPDX-License-Identifier: Apache-2.0
// Memory of loaded code, in this order, each part on pages of its own:
//
//     code       executable sections, then a 16-byte jump for each function from outside
//     constant   read-only sections, then an address (GOT entry) for each symbol that needs one
//     data       writable sections
//
// Everything of an object lies within 1 GiB, so relative references inside it always reach; functions from
// outside, also those of other objects, are reached by the jumps, data from outside by the GOT.  Each object
// ends with its section headers, and the next one begins at the next multiple of 8 bytes.
#include "runtime/loader.h"

#include "base/memory.h"
#include "base/status.h"

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define IMAGE_LIMIT ((size_t)1 << 30)
#define STUB_BYTES 16
#define NOWHERE SIZE_MAX

enum part { PART_CODE, PART_CONSTANT, PART_DATA, PART_COUNT };

struct named {
    const char *name;
    void *address;
};

struct image {
    char *base;
    size_t size;
    char *names; // of symbols
};

struct rt_code {
    struct image *images; // of each object
    size_t image_count;
    struct named *symbols; // of all, sorted by name
    size_t symbol_count;
};

// An object while it is loaded.
struct object {
    const char *bytes;
    size_t size;
    Elf64_Ehdr header;
    size_t section_count, symbol_count, names_size;
    const char *symbols; // of Elf64_Sym, not aligned
    const char *names;
    size_t *offsets; // of each section in the image; NOWHERE when it is not loaded
    size_t *stubs;   // of each symbol in the image; NOWHERE when it has none
    size_t *slots;   // likewise, of its GOT entry
    size_t part_at[PART_COUNT], part_end[PART_COUNT];
    char *image;
    size_t image_size;
    const struct rt_code *code;
    rt_resolve *resolve;
    void *ctx;
};

static jot_status damaged(const char *what)
{
    return status_fail(JOT_ERR_IO, "the object file is damaged: %s", what);
}

static bool is_inside(const struct object *o, uint64_t offset, uint64_t size)
{
    return offset <= o->size && size <= o->size - offset;
}

static Elf64_Shdr section(const struct object *o, size_t i)
{
    Elf64_Shdr s;
    memcpy(&s, o->bytes + o->header.e_shoff + i * sizeof s, sizeof s);
    return s;
}

static Elf64_Sym symbol(const struct object *o, size_t i)
{
    Elf64_Sym s;
    memcpy(&s, o->symbols + i * sizeof s, sizeof s);
    return s;
}

// Names are known to end: the last byte of the string table is zero.
static const char *name_of(const struct object *o, const Elf64_Sym *s)
{
    return s->st_name < o->names_size ? o->names + s->st_name : "";
}

// ---- reading the headers ----

static jot_status read_header(struct object *o)
{
    const Elf64_Ehdr *h = &o->header;
    if (o->size < sizeof *h)
        return damaged("it is shorter than a header");
    memcpy(&o->header, o->bytes, sizeof *h);
    if (memcmp(h->e_ident, ELFMAG, SELFMAG))
        return status_fail(JOT_ERR_IO, "not an ELF object file");
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
        return status_fail(JOT_ERR_DEVICE, "the object file is not 64-bit little-endian");
    if (h->e_machine == EM_AARCH64)
        return status_fail(JOT_ERR_DEVICE,
                           "the object file is for aarch64; only x86-64 objects can be loaded");
    if (h->e_machine != EM_X86_64)
        return status_fail(JOT_ERR_DEVICE, "the object file is for machine %u, not x86-64 (%u)",
                           h->e_machine, EM_X86_64);
    if (h->e_type != ET_REL)
        return status_fail(JOT_ERR_IO,
                           "the ELF file is of type %u, not a relocatable object (%u)",
                           h->e_type, ET_REL);
    if (h->e_shentsize != sizeof(Elf64_Shdr))
        return damaged("the section headers have a wrong size");
    o->section_count = h->e_shnum;
    if (!o->section_count ||
        !is_inside(o, h->e_shoff, (uint64_t)o->section_count * sizeof(Elf64_Shdr)))
        return damaged("the section headers lie outside the file");
    uint64_t end = h->e_shoff + o->section_count * sizeof(Elf64_Shdr);
    o->size = end < sizeof *h ? sizeof *h : end;
    return JOT_OK;
}

static jot_status read_sections(struct object *o)
{
    for (size_t i = 0; i < o->section_count; i++) {
        Elf64_Shdr s = section(o, i);
        if (s.sh_type != SHT_NULL && s.sh_type != SHT_NOBITS &&
            !is_inside(o, s.sh_offset, s.sh_size))
            return damaged("a section lies outside the file");
        if (s.sh_type == SHT_REL || s.sh_type == SHT_INIT_ARRAY || s.sh_type == SHT_FINI_ARRAY)
            return status_fail(JOT_ERR_IO,
                               "the object file has a section of type %u, which kernels "
                               "never need",
                               s.sh_type);
        if (s.sh_flags & SHF_TLS)
            return status_fail(JOT_ERR_IO, "the object file has thread-local data");
        if (s.sh_type != SHT_SYMTAB)
            continue;
        if (o->symbols)
            return damaged("it has two symbol tables");
        if (s.sh_entsize != sizeof(Elf64_Sym) || s.sh_link >= o->section_count)
            return damaged("the symbol table has no names");
        Elf64_Shdr names = section(o, s.sh_link);
        if (names.sh_type != SHT_STRTAB || !is_inside(o, names.sh_offset, names.sh_size) ||
            !names.sh_size || o->bytes[names.sh_offset + names.sh_size - 1])
            return damaged("the names of the symbols do not end");
        o->symbols = o->bytes + s.sh_offset;
        o->symbol_count = s.sh_size / sizeof(Elf64_Sym);
        o->names = o->bytes + names.sh_offset;
        o->names_size = names.sh_size;
    }
    return o->symbols ? JOT_OK : damaged("it has no symbol table");
}

static jot_status check_symbols(const struct object *o)
{
    for (size_t i = 0; i < o->symbol_count; i++) {
        Elf64_Sym s = symbol(o, i);
        unsigned type = ELF64_ST_TYPE(s.st_info);
        if (type == STT_GNU_IFUNC || type == STT_TLS || s.st_shndx == SHN_COMMON)
            return status_fail(JOT_ERR_IO, "symbol %s of the object file is of an unknown kind",
                               name_of(o, &s));
        if (s.st_shndx == SHN_UNDEF || s.st_shndx == SHN_ABS)
            continue;
        if (s.st_shndx >= o->section_count)
            return damaged("a symbol is in no section");
        if (s.st_value > section(o, s.st_shndx).sh_size)
            return damaged("a symbol lies outside its section");
    }
    return JOT_OK;
}

// ---- the layout of the image ----

// Unwind tables would have to be registered; nothing unwinds through kernels.
static bool is_loaded(const struct object *o, const Elf64_Shdr *s)
{
    if (!(s->sh_flags & SHF_ALLOC) || !s->sh_size || s->sh_type == SHT_NULL ||
        s->sh_type == SHT_X86_64_UNWIND)
        return false;
    Elf64_Shdr names;
    if (s->sh_type != SHT_PROGBITS || o->header.e_shstrndx >= o->section_count)
        return true;
    names = section(o, o->header.e_shstrndx);
    static const char unwind[] = ".eh_frame";
    return !(names.sh_type == SHT_STRTAB && s->sh_name < names.sh_size &&
             names.sh_size - s->sh_name >= sizeof unwind &&
             !memcmp(o->bytes + names.sh_offset + s->sh_name, unwind, sizeof unwind));
}

static enum part part_of(const Elf64_Shdr *s)
{
    return s->sh_flags & SHF_EXECINSTR ? PART_CODE
           : s->sh_flags & SHF_WRITE   ? PART_DATA
                                       : PART_CONSTANT;
}

static bool needs_slot(uint32_t type)
{
    return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX ||
           type == R_X86_64_REX_GOTPCRELX;
}

static jot_status check_relocations(struct object *o, size_t section_index)
{
    Elf64_Shdr s = section(o, section_index);
    if (s.sh_entsize != sizeof(Elf64_Rela) || s.sh_info >= o->section_count)
        return damaged("relocations belong to no section");
    if (o->offsets[s.sh_info] == NOWHERE)
        return JOT_OK;
    Elf64_Shdr target = section(o, s.sh_info);
    for (size_t i = 0; i < s.sh_size / sizeof(Elf64_Rela); i++) {
        Elf64_Rela r;
        memcpy(&r, o->bytes + s.sh_offset + i * sizeof r, sizeof r);
        uint32_t type = (uint32_t)ELF64_R_TYPE(r.r_info);
        size_t symbol_index = ELF64_R_SYM(r.r_info), width = type == R_X86_64_64 ? 8 : 4;
        if (type == R_X86_64_NONE)
            continue;
        if (type != R_X86_64_64 && type != R_X86_64_PC32 && type != R_X86_64_PLT32 &&
            !needs_slot(type))
            return status_fail(JOT_ERR_IO,
                               "relocation type %u of the object file is not known: compile as "
                               "position-independent code with the small code model",
                               type);
        if (symbol_index >= o->symbol_count)
            return damaged("a relocation names no symbol");
        if (target.sh_type == SHT_NOBITS || target.sh_size < width ||
            r.r_offset > target.sh_size - width)
            return damaged("a relocation lies outside its section");
        if (needs_slot(type))
            o->slots[symbol_index] = 0;
        else if (type == R_X86_64_PLT32 && symbol(o, symbol_index).st_shndx == SHN_UNDEF)
            o->stubs[symbol_index] = 0;
    }
    return JOT_OK;
}

static jot_status lay_out(struct object *o)
{
    size_t at = 0;
    for (int part = 0; part < PART_COUNT; part++) {
        o->part_at[part] = at;
        for (size_t i = 0; i < o->section_count; i++) {
            Elf64_Shdr s = section(o, i);
            if (o->offsets[i] == NOWHERE || (int)part_of(&s) != part)
                continue;
            size_t alignment = s.sh_addralign ? s.sh_addralign : 1;
            if (alignment & (alignment - 1) || alignment > PAGE)
                return damaged("the alignment of a section is no power of two up to 4096");
            if (s.sh_size > IMAGE_LIMIT)
                return damaged("a section is larger than 1 GiB");
            at = (at + alignment - 1) & ~(alignment - 1);
            o->offsets[i] = at;
            at += s.sh_size;
            if (at > IMAGE_LIMIT)
                return damaged("the sections are larger than 1 GiB");
        }
        at = (at + STUB_BYTES - 1) & ~(size_t)(STUB_BYTES - 1);
        size_t *extra = part == PART_CODE ? o->stubs : part == PART_CONSTANT ? o->slots : NULL;
        for (size_t i = 0; extra && i < o->symbol_count; i++)
            if (extra[i] != NOWHERE) {
                extra[i] = at;
                at += part == PART_CODE ? STUB_BYTES : sizeof(uint64_t);
            }
        o->part_end[part] = at;
        at = (at + PAGE - 1) & ~(PAGE - 1);
    }
    o->image_size = at ? at : PAGE;
    return at <= IMAGE_LIMIT ? JOT_OK : damaged("the sections are larger than 1 GiB");
}

static jot_status plan_image(struct object *o)
{
    for (size_t i = 0; i < o->section_count; i++) {
        Elf64_Shdr s = section(o, i);
        o->offsets[i] = is_loaded(o, &s) ? 0 : NOWHERE;
    }
    for (size_t i = 0; i < o->symbol_count; i++)
        o->stubs[i] = o->slots[i] = NOWHERE;
    for (size_t i = 0; i < o->section_count; i++)
        if (section(o, i).sh_type == SHT_RELA)
            JOT_TRY(check_relocations(o, i));
    return lay_out(o);
}

// ---- filling the image ----

// A symbol of another object, or of none.
static uint64_t find_outside(const struct object *o, const char *name)
{
    void *address = rt_code_find(o->code, name);
    return (uint64_t)(uintptr_t)(address ? address : o->resolve(o->ctx, name));
}

static jot_status address_of(const struct object *o, const Elf64_Sym *s, uint64_t *out_address)
{
    uint64_t address = s->st_value;
    if (s->st_shndx == SHN_UNDEF) {
        const char *name = name_of(o, s);
        address = s->st_name ? find_outside(o, name) : 0;
        if (!address && s->st_name && ELF64_ST_BIND(s->st_info) != STB_WEAK)
            return status_fail(JOT_ERR_LIBRARY,
                               "compiled code needs %s, which the library does "
                               "not have",
                               name);
    } else if (s->st_shndx != SHN_ABS) {
        size_t offset = o->offsets[s->st_shndx];
        if (offset == NOWHERE) {
            if (section(o, s->st_shndx).sh_size)
                return damaged("code refers to a section that is not loaded");
            offset = 0;
        }
        address += (uint64_t)(uintptr_t)(o->image + offset);
    }
    *out_address = address;
    return JOT_OK;
}

static void write_stub(char *at, uint64_t address)
{
    static const unsigned char jump[8] = {0xff, 0x25, 2, 0, 0, 0, 0x90, 0x90}; // jmp *2(%rip)
    memcpy(at, jump, 8);
    memcpy(at + 8, &address, 8);
}

static jot_status write_extras(struct object *o)
{
    for (size_t i = 0; i < o->symbol_count; i++) {
        if (o->stubs[i] == NOWHERE && o->slots[i] == NOWHERE)
            continue;
        Elf64_Sym s = symbol(o, i);
        uint64_t address;
        JOT_TRY(address_of(o, &s, &address));
        if (o->stubs[i] != NOWHERE)
            write_stub(o->image + o->stubs[i], address);
        if (o->slots[i] != NOWHERE)
            memcpy(o->image + o->slots[i], &address, sizeof address);
    }
    return JOT_OK;
}

static jot_status relocate(const struct object *o, size_t target_offset, const Elf64_Rela *r)
{
    uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
    if (type == R_X86_64_NONE)
        return JOT_OK;
    size_t i = ELF64_R_SYM(r->r_info);
    char *site = o->image + target_offset + r->r_offset;
    uint64_t value;
    if (needs_slot(type)) {
        value = (uint64_t)(uintptr_t)(o->image + o->slots[i]);
    } else if (type == R_X86_64_PLT32 && o->stubs[i] != NOWHERE) {
        value = (uint64_t)(uintptr_t)(o->image + o->stubs[i]);
    } else {
        Elf64_Sym s = symbol(o, i);
        JOT_TRY(address_of(o, &s, &value));
    }
    value += (uint64_t)r->r_addend;
    if (type == R_X86_64_64) {
        memcpy(site, &value, 8);
        return JOT_OK;
    }
    int64_t distance = (int64_t)(value - (uint64_t)(uintptr_t)site);
    int32_t near = (int32_t)distance;
    if (near != distance)
        return damaged("a relative reference does not reach");
    memcpy(site, &near, 4);
    return JOT_OK;
}

static jot_status fill_image(struct object *o)
{
    for (size_t i = 0; i < o->section_count; i++) {
        Elf64_Shdr s = section(o, i);
        if (o->offsets[i] != NOWHERE && s.sh_type != SHT_NOBITS)
            memcpy(o->image + o->offsets[i], o->bytes + s.sh_offset, s.sh_size);
    }
    JOT_TRY(write_extras(o));
    for (size_t i = 0; i < o->section_count; i++) {
        Elf64_Shdr s = section(o, i);
        if (s.sh_type != SHT_RELA || o->offsets[s.sh_info] == NOWHERE)
            continue;
        for (size_t k = 0; k < s.sh_size / sizeof(Elf64_Rela); k++) {
            Elf64_Rela r;
            memcpy(&r, o->bytes + s.sh_offset + k * sizeof r, sizeof r);
            JOT_TRY(relocate(o, o->offsets[s.sh_info], &r));
        }
    }
    return JOT_OK;
}

static jot_status protect(const struct object *o)
{
    static const int access[PART_COUNT] = {PROT_READ | PROT_EXEC, PROT_READ,
                                           PROT_READ | PROT_WRITE};
    for (int part = 0; part < PART_COUNT; part++) {
        size_t bytes = (o->part_end[part] - o->part_at[part] + PAGE - 1) & ~(PAGE - 1);
        if (bytes && mprotect(o->image + o->part_at[part], bytes, access[part]))
            return status_fail(
                JOT_ERR_LIBRARY,
                "the system refuses to make compiled code executable (mprotect)");
    }
    return JOT_OK;
}

// ---- the symbols that stay ----

static int by_name(const void *a, const void *b)
{
    const struct named *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static bool is_exported(const struct object *o, const Elf64_Sym *s)
{
    return ELF64_ST_BIND(s->st_info) != STB_LOCAL && s->st_shndx != SHN_UNDEF &&
           s->st_shndx < o->section_count && o->offsets[s->st_shndx] != NOWHERE;
}

static jot_status keep_symbols(const struct object *o, struct rt_code *code,
                               struct image *image)
{
    size_t count = code->symbol_count;
    for (size_t i = 0; i < o->symbol_count; i++) {
        Elf64_Sym s = symbol(o, i);
        count += is_exported(o, &s);
    }
    struct named *all = memory_resize(code->symbols, count * sizeof *all);
    image->names = memory_allocate(o->names_size);
    code->symbols = all ? all : code->symbols;
    if (!image->names || !all)
        return status_out_of_memory();
    memcpy(image->names, o->names, o->names_size);
    for (size_t i = 0; i < o->symbol_count; i++) {
        Elf64_Sym s = symbol(o, i);
        if (is_exported(o, &s) && s.st_name < o->names_size)
            all[code->symbol_count++] = (struct named){
                image->names + s.st_name, o->image + o->offsets[s.st_shndx] + s.st_value};
    }
    return JOT_OK;
}

// The map that `perf report` reads names from; asked for by JOT_PERF=1.
static void write_perf_map(const struct object *o)
{
    const char *asked = secure_getenv("JOT_PERF");
    char path[64];
    if (!asked || strcmp(asked, "1"))
        return;
    snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
    FILE *file = fopen(path, "ae");
    if (!file)
        return;
    for (size_t i = 0; i < o->symbol_count; i++) {
        Elf64_Sym s = symbol(o, i);
        if (ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_shndx != SHN_UNDEF &&
            s.st_shndx < o->section_count && o->offsets[s.st_shndx] != NOWHERE)
            fprintf(file, "%lx %lx jit:%s\n",
                    (unsigned long)(uintptr_t)(o->image + o->offsets[s.st_shndx] + s.st_value),
                    (unsigned long)s.st_size, name_of(o, &s));
    }
    fclose(file);
}

// ---- entry points ----

static jot_status map_image(struct object *o)
{
    void *at =
        mmap(NULL, o->image_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return status_out_of_memory();
    o->image = at;
    return JOT_OK;
}

// Its memory, with nothing in it, and where its symbols are.
static jot_status map_object(struct object *o, struct rt_code *code, struct image *image)
{
    JOT_TRY(read_sections(o));
    JOT_TRY(check_symbols(o));
    o->offsets = memory_allocate(o->section_count * sizeof *o->offsets);
    o->stubs = memory_allocate(o->symbol_count * sizeof *o->stubs);
    o->slots = memory_allocate(o->symbol_count * sizeof *o->slots);
    if (!o->offsets || !o->stubs || !o->slots)
        return status_out_of_memory();
    JOT_TRY(plan_image(o));
    JOT_TRY(map_image(o));
    image->base = o->image;
    image->size = o->image_size;
    return keep_symbols(o, code, image);
}

static jot_status fill(struct object *o)
{
    JOT_TRY(fill_image(o));
    JOT_TRY(protect(o));
    write_perf_map(o);
    return JOT_OK;
}

static size_t next_of(const struct object *o) { return (o->size + 7) & ~(size_t)7; }

// The objects one behind the other, and how many they are.
static jot_status find_objects(const struct object *all, struct object *out, size_t *out_count)
{
    size_t at = 0;
    *out_count = 0;
    do {
        struct object o = *all;
        o.bytes += at;
        o.size -= at;
        JOT_TRY(read_header(&o));
        if (out)
            out[*out_count] = o;
        at += next_of(&o);
        ++*out_count;
    } while (at < all->size);
    return JOT_OK;
}

static jot_status load_objects(struct object *objects, size_t count, struct rt_code *code)
{
    code->images = memory_allocate_zeroed(count * sizeof *code->images);
    if (!code->images)
        return status_out_of_memory();
    code->image_count = count;
    for (size_t i = 0; i < count; i++)
        JOT_TRY(map_object(&objects[i], code, &code->images[i]));
    if (code->symbol_count)
        qsort(code->symbols, code->symbol_count, sizeof *code->symbols, by_name);
    for (size_t i = 0; i < count; i++)
        JOT_TRY(fill(&objects[i]));
    return JOT_OK;
}

jot_status rt_code_load(const void *object, size_t size, rt_resolve *resolve, void *ctx,
                        struct rt_code **out_code)
{
    struct rt_code *code = memory_allocate_zeroed(sizeof *code);
    struct object all = {
        .bytes = object, .size = size, .code = code, .resolve = resolve, .ctx = ctx};
    size_t count;
    jot_status status = code ? find_objects(&all, NULL, &count) : status_out_of_memory();
    struct object *objects = status == JOT_OK ? memory_allocate(count * sizeof *objects) : NULL;
    if (status == JOT_OK)
        status = objects ? find_objects(&all, objects, &count) : status_out_of_memory();
    if (status == JOT_OK)
        status = load_objects(objects, count, code);
    for (size_t i = 0; objects && i < count; i++) {
        memory_release(objects[i].offsets);
        memory_release(objects[i].stubs);
        memory_release(objects[i].slots);
    }
    memory_release(objects);
    if (status == JOT_OK)
        *out_code = code;
    else
        rt_code_release(code);
    return status;
}

void rt_code_release(struct rt_code *code)
{
    if (!code)
        return;
    for (size_t i = 0; i < code->image_count; i++) {
        if (code->images[i].base)
            munmap(code->images[i].base, code->images[i].size);
        memory_release(code->images[i].names);
    }
    memory_release(code->images);
    memory_release(code->symbols);
    memory_release(code);
}

void *rt_code_find(const struct rt_code *code, const char *name)
{
    struct named key = {.name = name};
    const struct named *found =
        code->symbol_count
            ? bsearch(&key, code->symbols, code->symbol_count, sizeof key, by_name)
            : NULL;
    return found ? found->address : NULL;
}
