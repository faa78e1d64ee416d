// SPDX-License-Identifier: Apache-2.0
// Locations of a program of text, and aliases: a location may be named before it is known, at the end
// of the text.
#include "interop/text_read.h"

// Locations that are looked through for what to say of one: of what calls what, of names.
enum { LONGEST_CHAIN = 100 };

struct text_alias *text_alias_of(struct text_reader *r, char sigil, struct text_piece name)
{
    uint64_t hash = hash_bytes((uint64_t)sigil, name.at, name.n);
    for (struct hash_probe h = hash_probe(&r->alias_table, hash);
         hash_next(&r->alias_table, &h);) {
        struct text_alias *a = &r->aliases.at[h.id];
        if (a->sigil == sigil && a->name.n == name.n && !memcmp(a->name.at, name.at, name.n))
            return a;
    }
    vec_push(r->arena, &r->aliases,
             (struct text_alias){.sigil = sigil, .name = name, .first = name.at});
    hash_insert(r->arena, &r->alias_table, hash, r->aliases.count - 1);
    return &vec_last(&r->aliases);
}

static struct text_location *new_location(struct text_reader *r)
{
    struct text_location *l = arena_new(r->arena, struct text_location);
    l->attr = (struct mlir_attr){.kind = MLIR_LOCATION, .text = NULL};
    vec_push(r->arena, &r->locations, l);
    return l;
}

static struct text_location *read_inner(struct text_reader *r);

// "file":line:column, perhaps a range; or "name" or "name"(location).
static void read_place(struct text_reader *r, struct text_location *l)
{
    struct strbuf s = strbuf_make(r->arena);
    strbuf_add(&s, text_string(r, NULL));
    if (!text_accept(r, ":")) {
        l->name = s.text;
        if (text_accept(r, "(")) {
            l->child = read_inner(r);
            text_expect(r, ")");
        }
        return;
    }
    strbuf_printf(&s, ":%lld", (long long)text_integer(r));
    l->place = s.text;
    if (text_accept(r, ":"))
        text_integer(r);
    if (text_accept_word(r, "to")) {
        if (text_peek(r) != ':')
            text_integer(r);
        text_expect(r, ":");
        text_integer(r);
    }
}

// What stands between the brackets of loc(...).
static struct text_location *read_inner(struct text_reader *r)
{
    text_enter(r);
    struct text_location *l;
    if (text_accept(r, "#")) {
        struct text_piece name = text_word(r);
        if (!name.n)
            text_expected(r, "the name of an alias");
        struct text_alias *alias = text_alias_of(r, '#', name);
        if (!alias->location && alias->is_defined)
            text_fail(r, name.at, "#%.*s is not a location", (int)name.n, name.at);
        if (!alias->location)
            alias->location = new_location(r);
        l = alias->location;
        text_leave(r);
        return l;
    }
    l = new_location(r);
    if (text_accept_word(r, "unknown")) {
        ;
    } else if (text_accept_word(r, "callsite")) {
        text_expect(r, "(");
        l->child = read_inner(r);
        text_expect_word(r, "at");
        read_inner(r);
        text_expect(r, ")");
    } else if (text_accept_word(r, "fused")) {
        if (text_accept(r, "<")) {
            r->at--;
            text_balanced(r);
        }
        text_expect(r, "[");
        for (uint32_t n = 0; text_more(r, &n, "]");) {
            struct text_location *part = read_inner(r);
            l->child = l->child ? l->child : part;
        }
    } else if (text_peek(r) == '"') {
        read_place(r, l);
    } else {
        text_expected(r, "a location");
    }
    text_leave(r);
    return l;
}

const struct mlir_attr *text_location(struct text_reader *r)
{
    text_expect(r, "(");
    struct text_location *l = read_inner(r);
    text_expect(r, ")");
    return &l->attr;
}

const struct mlir_attr *text_optional_location(struct text_reader *r)
{
    return text_accept_word(r, "loc") ? text_location(r) : NULL;
}

void text_define_location(struct text_reader *r, struct text_piece name)
{
    text_expect(r, "(");
    struct text_location *l = read_inner(r);
    text_expect(r, ")");
    struct text_alias *alias = text_alias_of(r, '#', name);
    alias->is_defined = true;
    // Those who named it before have its location.
    if (alias->location)
        alias->location->child = l;
    else
        alias->location = l;
}

// Of places in a file and names the first place is told, the first name where there is none.
static const char *text_of(const struct text_location *l)
{
    const char *name = NULL;
    for (int steps = 0; l && steps < LONGEST_CHAIN; steps++, l = l->child) {
        if (l->place)
            return l->place;
        name = name ? name : l->name;
    }
    return name;
}

void text_call(struct text_reader *r, struct mlir_value *v, struct text_piece name,
               const struct mlir_attr *location)
{
    vec_push(r->arena, &r->called, (struct text_called){v, name, location});
}

// What JAX calls an argument is a location that is a name alone.
static const struct mlir_attr *called(struct text_reader *r, const struct text_called *c)
{
    const struct text_location *l = (const struct text_location *)c->location;
    for (int steps = 0; l && !l->name && !l->place && steps < LONGEST_CHAIN; steps++)
        l = l->child;
    const char *name =
        l && l->name && !l->child ? l->name : text_copy(r, c->name.at, c->name.n);
    return text_attr_of(
        r, (struct mlir_attr){.kind = MLIR_STRING, .n = strlen(name), .text = name});
}

void text_settle_locations(struct text_reader *r)
{
    for (uint32_t i = 0; i < r->aliases.count; i++) {
        const struct text_alias *a = &r->aliases.at[i];
        if (!a->is_defined)
            text_fail(r, a->first, "%c%.*s is not defined", a->sigil, (int)a->name.n,
                      a->name.at);
    }
    for (uint32_t i = 0; i < r->locations.count; i++)
        r->locations.at[i]->attr.text = text_of(r->locations.at[i]);
    for (uint32_t i = 0; i < r->called.count; i++)
        r->called.at[i].value->called = called(r, &r->called.at[i]);
}
