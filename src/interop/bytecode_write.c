// SPDX-License-Identifier: Apache-2.0
// Writes a program as portable bytecode: MLIR bytecode of version 6 with VHLO of the version below.
//
// The operations are written first, into memory, for they say which strings, attributes, types and
// properties there are; then come the tables, in the order of sections that readers expect.
#include "interop/bytecode_write.h"

#include "base/status.h"

#include <stdarg.h>

#define PRODUCER "StableHLO_v1.17.0"
enum { FORMAT_VERSION = 6, LARGE = 1 << 16 };

void bytecode_write_fail(struct bytecode_writer *w, const struct mlir_op *op,
                         const char *format, ...)
{
    va_list args;
    if (w->status)
        return;
    va_start(args, format);
    w->status = mlir_fail(JOT_ERR_ARGUMENT, w->program->file, op, format, args);
    va_end(args);
}

// ---- numbers and tables ----

// As many zero bits as bytes follow the first; nine bytes begin with a byte of zero.
void bytecode_put(struct strbuf *s, uint64_t number)
{
    unsigned char bytes[9] = {0};
    size_t n = 1;
    while (n < 9 && (n == 8 ? number >> 56 : number >> (7 * n)))
        n++;
    uint64_t shifted = n < 9 ? (number << 1 | 1) << (n - 1) : number;
    for (size_t i = 0; i < 8; i++)
        bytes[i + (n == 9)] = (unsigned char)(shifted >> (8 * i));
    strbuf_add_bytes(s, bytes, n);
}

void bytecode_put_signed(struct strbuf *s, int64_t number)
{
    bytecode_put(s, (uint64_t)number << 1 ^ (uint64_t)(number >> 63));
}

static bool is_same(const struct written *a, const struct written *b)
{
    return a->n == b->n && a->n_more == b->n_more && a->is_vhlo == b->is_vhlo &&
           !memcmp(a->bytes, b->bytes, a->n) &&
           (!a->n_more || a->more == b->more || !memcmp(a->more, b->more, a->n_more));
}

uint32_t bytecode_entry(struct bytecode_writer *w, struct written_table *t, struct written e)
{
    uint64_t h = hash_bytes(e.is_vhlo, e.bytes, e.n);
    h = e.n_more ? hash_bytes(h, e.more, e.n_more < LARGE ? e.n_more : LARGE) : h;
    for (struct hash_probe p = hash_probe(&t->table, h); hash_next(&t->table, &p);)
        if (is_same(&t->at.at[p.id], &e))
            return p.id;
    hash_insert(w->scratch, &t->table, h, t->at.count);
    vec_push(w->scratch, &t->at, e);
    return t->at.count - 1;
}

uint32_t bytecode_text(struct bytecode_writer *w, const char *text, size_t n)
{
    return bytecode_entry(w, &w->strings, (struct written){.bytes = text, .n = n});
}

// ---- operations ----

enum {
    HAS_ATTRS = 1,
    HAS_RESULTS = 2,
    HAS_OPERANDS = 4,
    HAS_REGIONS = 16,
    HAS_PROPERTIES = 64,
};

static void write_block(struct bytecode_writer *w, struct strbuf *s,
                        const struct mlir_block *block, uint32_t base);

// Operations that on one device are their operands.
static bool is_identity(const struct mlir_op *op)
{
    return op->row && op->n_operands == op->n_results &&
           (op->row->code == MLIR_OP_builtin_unrealized_conversion_cast ||
            op->row->code == MLIR_OP_sdy_sharding_constraint);
}

static uint32_t name_of(struct bytecode_writer *w, const char *dialect, const char *name,
                        int version)
{
    struct strbuf s = strbuf_make(w->scratch);
    strbuf_add(&s, name);
    if (version)
        strbuf_printf(&s, "_v%d", version);
    return bytecode_entry(
        w, &w->names,
        (struct written){.bytes = s.text, .n = s.length, .is_vhlo = !strcmp(dialect, "vhlo")});
}

static void write_section(struct strbuf *s, unsigned char id, const struct strbuf *data)
{
    strbuf_add_bytes(s, &id, 1);
    bytecode_put(s, data->length);
    strbuf_add_bytes(s, data->text, data->length);
}

// Numbers the values of a region from `base` on; how many there are.
static uint32_t number_values(struct bytecode_writer *w, const struct mlir_block *block,
                              uint32_t base)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < block->n_args; i++)
        w->values[block->args[i]->number] = base + n++;
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const struct mlir_op *op = block->ops[i];
        for (uint32_t k = 0; k < op->n_results; k++)
            w->values[op->results[k]->number] =
                is_identity(op) ? w->values[op->operands[k]->number] : base + n++;
    }
    return n;
}

static void write_region(struct bytecode_writer *w, struct strbuf *s,
                         const struct mlir_block *block, uint32_t base)
{
    uint32_t n = number_values(w, block, base);
    bytecode_put(s, 1);
    bytecode_put(s, n);
    write_block(w, s, block, base + n);
}

static void write_op(struct bytecode_writer *w, struct strbuf *s, const struct mlir_op *op,
                     uint32_t base)
{
    uint32_t discardable = 0;
    bool is_portable = op->row && op->row->version && strcmp(op->row->dialect, "chlo");
    if (!is_portable || w->depth > MLIR_MAX_DEPTH) {
        bytecode_write_fail(w, op, "it has no portable form%s",
                            is_portable ? ": too deep" : "");
        return;
    }
    bool has_attrs = builtin_discardable(w, op->row, op->attrs, op->n_attrs, &discardable);
    unsigned char mask =
        (unsigned char)((has_attrs ? HAS_ATTRS : 0) | (op->n_results ? HAS_RESULTS : 0) |
                        (op->n_operands ? HAS_OPERANDS : 0) |
                        (op->n_regions ? HAS_REGIONS : 0) |
                        (*op->row->attrs ? HAS_PROPERTIES : 0));
    bytecode_put(s, name_of(w, "vhlo", op->row->name, op->row->version));
    strbuf_add_bytes(s, &mask, 1);
    bytecode_put(s, builtin_location(w, op->location));
    if (has_attrs)
        bytecode_put(s, discardable);
    if (*op->row->attrs)
        bytecode_put(s, vhlo_properties(w, op));
    if (op->n_results)
        bytecode_put(s, op->n_results);
    for (uint32_t i = 0; i < op->n_results; i++)
        bytecode_put(s, vhlo_type(w, op->results[i]->type));
    if (op->n_operands)
        bytecode_put(s, op->n_operands);
    for (uint32_t i = 0; i < op->n_operands; i++)
        bytecode_put(s, w->values[op->operands[i]->number]);
    if (op->n_regions)
        bytecode_put(s, (uint64_t)op->n_regions << 1);
    w->depth++;
    for (uint32_t i = 0; i < op->n_regions && !w->status; i++)
        write_region(w, s, &op->regions[i], base);
    w->depth--;
}

static void write_block(struct bytecode_writer *w, struct strbuf *s,
                        const struct mlir_block *block, uint32_t base)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < block->n_ops; i++)
        n += !is_identity(block->ops[i]);
    bytecode_put(s, n << 1 | (block->n_args != 0));
    if (block->n_args) {
        unsigned char no_uses = 0;
        bytecode_put(s, block->n_args);
        for (uint32_t i = 0; i < block->n_args; i++)
            bytecode_put(s, (uint64_t)vhlo_type(w, block->args[i]->type) << 1);
        strbuf_add_bytes(s, &no_uses, 1);
    }
    for (uint32_t i = 0; i < block->n_ops && !w->status; i++)
        if (!is_identity(block->ops[i]))
            write_op(w, s, block->ops[i], base);
}

static void write_function(struct bytecode_writer *w, struct strbuf *s,
                           const struct mlir_function *f)
{
    const unsigned char mask = HAS_REGIONS | HAS_PROPERTIES;
    struct strbuf properties = strbuf_make(w->scratch), body = strbuf_make(w->scratch);
    const char *visibility = f->is_private ? "private" : "public";
    uint32_t n_results = f->type->n_parts - f->type->n_inputs;
    bytecode_put(&properties, vhlo_dictionaries(w, f->args, f->type->n_inputs));
    bytecode_put(&properties, vhlo_type_attr(w, f->type));
    bytecode_put(&properties, vhlo_dictionaries(w, f->results, n_results));
    bytecode_put(&properties, vhlo_string(w, f->name, strlen(f->name)));
    bytecode_put(&properties, vhlo_string(w, visibility, strlen(visibility)));
    bytecode_put(s, name_of(w, "vhlo", "func", 1));
    strbuf_add_bytes(s, &mask, 1);
    bytecode_put(s, builtin_location(w, NULL));
    bytecode_put(
        s, bytecode_entry(w, &w->properties,
                          (struct written){.bytes = properties.text, .n = properties.length}));
    bytecode_put(s, 1 << 1 | 1);
    w->values = arena_array(w->scratch, uint32_t, f->n_values);
    write_region(w, &body, f->body, 0);
    write_section(s, 4, &body);
}

static struct strbuf write_module(struct bytecode_writer *w)
{
    const struct mlir_program *p = w->program;
    struct strbuf s = strbuf_make(w->scratch), body = strbuf_make(w->scratch);
    uint32_t attrs = 0;
    bool has_attrs = builtin_discardable(w, NULL, p->attrs, p->n_attrs, &attrs);
    unsigned char mask = (unsigned char)(HAS_REGIONS | (has_attrs ? HAS_ATTRS : 0));
    bytecode_put(&s, 1 << 1); // one operation
    bytecode_put(&s, name_of(w, "builtin", "module", 0));
    strbuf_add_bytes(&s, &mask, 1);
    bytecode_put(&s, builtin_location(w, NULL));
    if (has_attrs)
        bytecode_put(&s, attrs);
    bytecode_put(&s, 1 << 1 | 1);
    bytecode_put(&body, 1);
    bytecode_put(&body, 0);
    bytecode_put(&body, (uint64_t)p->n_functions << 1);
    for (uint32_t i = 0; i < p->n_functions && !w->status; i++)
        write_function(w, &body, &p->functions[i]);
    write_section(&s, 4, &body);
    return s;
}

// ---- tables ----

enum { BUILTIN, VHLO }; // dialects

static uint32_t run_of(const struct written_table *t, uint32_t from)
{
    uint32_t n = 0;
    while (from + n < t->at.count && t->at.at[from + n].is_vhlo == t->at.at[from].is_vhlo)
        n++;
    return n;
}

static struct strbuf write_dialects(struct bytecode_writer *w)
{
    static const char *const names[] = {"builtin", "vhlo"};
    struct strbuf s = strbuf_make(w->scratch);
    bytecode_put(&s, 2);
    for (int i = BUILTIN; i <= VHLO; i++)
        bytecode_put(&s, (uint64_t)bytecode_text(w, names[i], strlen(names[i])) << 1);
    bytecode_put(&s, w->names.at.count);
    for (uint32_t i = 0, n; i < w->names.at.count; i += n) {
        n = run_of(&w->names, i);
        bytecode_put(&s, w->names.at.at[i].is_vhlo ? VHLO : BUILTIN);
        bytecode_put(&s, n);
        for (uint32_t k = i; k < i + n; k++) {
            struct written name = w->names.at.at[k];
            bytecode_put(&s, (uint64_t)bytecode_text(w, name.bytes, name.n) << 1 | 1);
        }
    }
    return s;
}

static void put_offsets(struct strbuf *s, const struct written_table *t)
{
    for (uint32_t i = 0, n; i < t->at.count; i += n) {
        n = run_of(t, i);
        bytecode_put(s, t->at.at[i].is_vhlo ? VHLO : BUILTIN);
        bytecode_put(s, n);
        for (uint32_t k = i; k < i + n; k++)
            bytecode_put(s, (uint64_t)(t->at.at[k].n + t->at.at[k].n_more) << 1 | 1);
    }
}

static size_t size_of(const struct written_table *t)
{
    size_t n = 0;
    for (uint32_t i = 0; i < t->at.count; i++)
        n += t->at.at[i].n + t->at.at[i].n_more;
    return n;
}

static void put_data(struct strbuf *s, const struct written_table *t)
{
    for (uint32_t i = 0; i < t->at.count; i++) {
        strbuf_add_bytes(s, t->at.at[i].bytes, t->at.at[i].n);
        if (t->at.at[i].n_more)
            strbuf_add_bytes(s, t->at.at[i].more, t->at.at[i].n_more);
    }
}

static struct strbuf write_strings(struct bytecode_writer *w)
{
    struct strbuf s = strbuf_make(w->scratch);
    bytecode_put(&s, w->strings.at.count);
    for (uint32_t i = w->strings.at.count; i-- > 0;)
        bytecode_put(&s, w->strings.at.at[i].n + 1);
    for (uint32_t i = 0; i < w->strings.at.count; i++) {
        strbuf_add_bytes(&s, w->strings.at.at[i].bytes, w->strings.at.at[i].n);
        strbuf_add_bytes(&s, "", 1);
    }
    return s;
}

static struct strbuf write_properties(struct bytecode_writer *w)
{
    struct strbuf s = strbuf_make(w->scratch);
    bytecode_put(&s, w->properties.at.count);
    for (uint32_t i = 0; i < w->properties.at.count; i++) {
        bytecode_put(&s, w->properties.at.at[i].n);
        strbuf_add_bytes(&s, w->properties.at.at[i].bytes, w->properties.at.at[i].n);
    }
    return s;
}

// The data of attributes and types may be large: it is written once, without a copy between.
static void write_file(struct bytecode_writer *w, const struct strbuf *ir, struct strbuf *out)
{
    static const unsigned char magic[4] = {0x4d, 0x4c, 0xef, 0x52};
    const unsigned char data = 2;
    struct strbuf dialects = write_dialects(w), offsets = strbuf_make(w->scratch);
    struct strbuf strings = write_strings(w), properties = write_properties(w);
    bytecode_put(&offsets, w->attrs.at.count);
    bytecode_put(&offsets, w->types.at.count);
    put_offsets(&offsets, &w->attrs);
    put_offsets(&offsets, &w->types);
    size_t n_data = size_of(&w->attrs) + size_of(&w->types), n_heads = 256;
    strbuf_reserve(out, n_data + dialects.length + offsets.length + ir->length +
                            strings.length + properties.length + n_heads);
    strbuf_add_bytes(out, magic, sizeof magic);
    bytecode_put(out, FORMAT_VERSION);
    strbuf_add_bytes(out, PRODUCER, sizeof PRODUCER);
    write_section(out, 1, &dialects);
    strbuf_add_bytes(out, &data, 1);
    bytecode_put(out, n_data);
    put_data(out, &w->attrs);
    put_data(out, &w->types);
    write_section(out, 3, &offsets);
    write_section(out, 4, ir);
    write_section(out, 0, &strings);
    write_section(out, 8, &properties);
}

struct request {
    const struct mlir_program *program;
    struct strbuf *out;
};

static jot_status write_with(struct arena *scratch, void *ctx)
{
    struct request *q = ctx;
    struct bytecode_writer *w = arena_new(scratch, struct bytecode_writer);
    *w = (struct bytecode_writer){.scratch = scratch, .program = q->program};
    struct strbuf ir = write_module(w);
    if (!w->status)
        write_file(w, &ir, q->out);
    return w->status;
}

jot_status mlir_write_bytecode(struct strbuf *out, const struct mlir_program *p)
{
    struct request q = {p, out};
    return arena_lend(write_with, &q);
}
