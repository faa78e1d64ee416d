// SPDX-License-Identifier: Apache-2.0
// The key of a function for caches that outlive the process: its content as bytes, hashed.
//
// Numbers of functions and of interned things depend on what else a module holds, so bodies come
// in by their own keys and types and attributes by what they say.
#include "ir/graph.h"

static void add(struct strbuf *s, const void *data, size_t bytes)
{
    strbuf_add_bytes(s, data, bytes);
}

static void add_number(struct strbuf *s, uint64_t x) { add(s, &x, sizeof x); }

static void add_type(struct strbuf *s, const struct ir_module *m, struct ir_type t)
{
    add_number(s, (uint64_t)t.dtype | (uint64_t)t.rank << 8 | (uint64_t)t.varies << 16);
    add(s, ir_dims(m, t), sizeof(int64_t) * t.rank);
}

struct keys {
    struct hash128 *of; // of functions, by number; all zero until known
    bool across;        // of all processes: without what is an address
};

static struct hash128 key_of(const struct ir_graph *g, struct keys *known);

static struct hash128 body_key(const struct ir_module *m, uint32_t f, struct keys *known)
{
    if (!known->of)
        known->of = arena_array(m->arena, struct hash128, m->functions.count);
    struct hash128 *k = &known->of[f];
    if (!k->lo && !k->hi)
        *k = key_of(ir_function(m, f), known);
    return *k;
}

static void add_host(struct strbuf *s, const struct ir_host *h, bool across)
{
    add(s, h->name, strlen(h->name) + 1);
    add(s, h->where, strlen(h->where) + 1);
    if (across)
        return;
    add(s, &h->call, sizeof h->call);
    add_number(s, (uint64_t)h->maps_batch);
    add_number(s, h->ctx_bytes);
    if (h->ctx_bytes)
        add(s, h->ctx, h->ctx_bytes);
    else
        add(s, &h->ctx, sizeof h->ctx);
}

static void add_attrs(struct strbuf *s, const struct ir_module *m, const struct ir_attrs *a,
                      struct keys *known)
{
    for (uint32_t i = 0; a && i < a->count; i++) {
        const struct ir_field *f = &a->fields[i];
        add_number(s, (uint64_t)f->key << 32 | f->count);
        enum ir_key_kind kind = ir_key_table[f->key].kind;
        if (kind == IR_KIND_BYTES || kind == IR_KIND_TEXT) {
            add(s, f->bytes, f->count);
            continue;
        }
        if (f->key == IR_KEY_host) {
            add_host(s, &m->hosts.at[f->ints[0]], known->across);
            continue;
        }
        for (uint32_t k = 0; k < f->count; k++) {
            if (kind == IR_KIND_AXES)
                add_number(s, (uint64_t)m->axes.at[f->ints[k]].size);
            if (kind == IR_KIND_FUNCTIONS) {
                struct hash128 body = body_key(m, (uint32_t)f->ints[k], known);
                add(s, &body, sizeof body);
            } else {
                add_number(s, (uint64_t)f->ints[k]);
            }
        }
    }
}

static struct hash128 key_of(const struct ir_graph *g, struct keys *known)
{
    struct strbuf s = strbuf_make(g->module->arena);
    add_number(&s, g->n_params);
    ir_for_each_node (g, n) {
        add_number(&s, (uint64_t)n->op << 32 | n->n_in);
        add(&s, ir_operands(g, n), sizeof(ir_id) * n->n_in);
        for (uint32_t i = 0; i < n->n_out; i++)
            add_type(&s, g->module, ir_type_of(g, n->out + i));
        add_attrs(&s, g->module, n->attrs, known);
    }
    add(&s, g->outputs.at, sizeof(ir_id) * g->outputs.count);
    return hash128_bytes(s.text, s.length);
}

struct hash128 ir_graph_key(const struct ir_graph *g)
{
    struct keys known = {NULL, false};
    return key_of(g, &known);
}

struct hash128 ir_graph_key_across(const struct ir_graph *g)
{
    struct keys known = {NULL, true};
    return key_of(g, &known);
}
