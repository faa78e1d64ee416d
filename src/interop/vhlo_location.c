// SPDX-License-Identifier: Apache-2.0
// Locations of portable bytecode, of which the place in a file is kept.
#include "interop/bytecode.h"

#include "base/strbuf.h"
#include "interop/vhlo.h"

#include <inttypes.h>

bool bytecode_is_location(const struct bytecode_entry *e)
{
    unsigned char code = e->bytes.at == e->bytes.end ? 0 : *e->bytes.at;
    return !e->is_text && e->dialect == BYTECODE_BUILTIN && (code & 1) &&
           ((code >> 1 >= BUILTIN_ATTR_LOC_CALL && code >> 1 <= BUILTIN_ATTR_LOC_UNKNOWN) ||
            code >> 1 == BUILTIN_ATTR_LOC_RANGE);
}

static const char *print_place(struct bytecode *b, uint64_t file, uint64_t line)
{
    const struct mlir_attr *name = bytecode_attr(b, file);
    if (!name || name->kind != MLIR_STRING || !bytecode_spend(b, name->n))
        return NULL;
    struct strbuf text = strbuf_make(b->arena);
    strbuf_printf(&text, "%s:%" PRIu64, name->text, line);
    return text.text;
}

// One step of a location: its text, or the location that stands for it in *next.
static const char *step_location(struct bytecode *b, struct bytes s, uint64_t *next)
{
    uint64_t code = bytecode_number(b, &s), n, file;
    switch (code) {
    case BUILTIN_ATTR_LOC_NAME:
        bytecode_number(b, &s);
        *next = bytecode_number(b, &s);
        return NULL;
    case BUILTIN_ATTR_LOC_CALL:
        *next = bytecode_number(b, &s);
        return NULL;
    case BUILTIN_ATTR_LOC_FUSED:
    case BUILTIN_ATTR_LOC_FUSED_MORE:
        n = bytecode_count(b, &s, 1);
        if (n)
            *next = bytecode_number(b, &s);
        return NULL;
    case BUILTIN_ATTR_LOC_LINE:
        file = bytecode_number(b, &s);
        return print_place(b, file, bytecode_number(b, &s));
    case BUILTIN_ATTR_LOC_RANGE:
        file = bytecode_number(b, &s);
        n = bytecode_count(b, &s, 1);
        return n ? print_place(b, file, bytecode_number(b, &s)) : NULL;
    default:
        return NULL;
    }
}

// A location is a chain of calls, names and places; all that lead to the same place are the same.
// It is not a fault when it says nothing, or goes round in a circle.
const struct mlir_attr *bytecode_location(struct bytecode *b, uint64_t index)
{
    VEC(struct bytecode_entry *) chain = {0};
    struct mlir_attr *a = NULL;
    for (uint64_t next = index; !a;) {
        struct bytecode_entry *e = next < b->n_attrs ? &b->attrs[next] : NULL;
        if (!e || e->state == BYTECODE_READING || !bytecode_is_location(e)) {
            a = bytecode_new_attr(b, MLIR_LOCATION);
        } else if (e->state == BYTECODE_READ) {
            for (uint32_t i = 0; i < chain.count; i++)
                chain.at[i]->attr = e->attr;
            break;
        } else {
            e->state = BYTECODE_READING;
            vec_push(b->scratch, &chain, e);
            next = UINT64_MAX;
            const char *text = step_location(b, e->bytes, &next);
            if (text) {
                a = bytecode_new_attr(b, MLIR_LOCATION);
                a->text = text;
                a->n = strlen(text);
            }
        }
    }
    for (uint32_t i = 0; i < chain.count; i++) {
        chain.at[i]->state = BYTECODE_READ;
        if (a)
            chain.at[i]->attr = a;
    }
    return b->attrs[index].attr;
}

const struct mlir_attr *bytecode_location_name(struct bytecode *b, uint64_t index)
{
    const struct bytecode_entry *e = index < b->n_attrs ? &b->attrs[index] : NULL;
    if (!e || !bytecode_is_location(e))
        return NULL;
    struct bytes s = e->bytes;
    if (bytecode_number(b, &s) != BUILTIN_ATTR_LOC_NAME)
        return NULL;
    const struct mlir_attr *name = bytecode_attr(b, bytecode_number(b, &s));
    return name && name->kind == MLIR_STRING ? name : NULL;
}
