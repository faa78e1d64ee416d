// SPDX-License-Identifier: Apache-2.0
#include "passes/transform.h"

#include "base/status.h"

struct memo_entry {
    struct memo_key key;
    const void *result;
};

struct ir_memo {
    VEC(struct memo_entry) entries;
    struct hash_table table;
};

static uint64_t hash_key(const struct memo_key *k)
{
    uint64_t h = hash_combine(k->kind, k->f);
    h = hash_combine(hash_combine(h, (uint64_t)k->number), k->axis);
    return hash_bytes(h, k->mask, k->n * sizeof *k->mask);
}

static bool keys_equal(const struct memo_key *a, const struct memo_key *b)
{
    return a->kind == b->kind && a->f == b->f && a->number == b->number && a->axis == b->axis &&
           a->n == b->n && (a->n == 0 || !memcmp(a->mask, b->mask, a->n * sizeof *a->mask));
}

const void *pass_memo_find(const struct ir_module *m, const struct memo_key *key)
{
    if (!m->memo)
        return NULL;
    for (struct hash_probe p = hash_probe(&m->memo->table, hash_key(key));
         hash_next(&m->memo->table, &p);)
        if (keys_equal(&m->memo->entries.at[p.id].key, key))
            return m->memo->entries.at[p.id].result;
    return NULL;
}

void pass_memo_add(struct ir_module *m, const struct memo_key *key, const void *result)
{
    if (!m->memo)
        m->memo = arena_new(m->arena, struct ir_memo);
    struct memo_entry e = {.key = *key, .result = result};
    if (key->n)
        e.key.mask = arena_copy(m->arena, key->mask, key->n * sizeof *key->mask);
    vec_push(m->arena, &m->memo->entries, e);
    hash_insert(m->arena, &m->memo->table, hash_key(key), m->memo->entries.count - 1);
}

uint32_t pass_memo_add_function(struct ir_module *m, const struct memo_key *key, uint32_t f)
{
    pass_memo_add(m, key, arena_copy(m->arena, &f, sizeof f));
    return f;
}

jot_status pass_builder_status(const struct ir_builder *b)
{
    return b->status == JOT_OK ? JOT_OK : status_fail(b->status, "%s", b->message);
}

jot_status pass_finish(struct ir_builder *b, uint32_t *out_f)
{
    uint32_t f = ir_finish_function(b);
    if (f == IR_NONE)
        return pass_builder_status(b);
    *out_f = f;
    return JOT_OK;
}

void pass_copy_params(struct ir_builder *b, const struct ir_graph *g, const bool *mask,
                      bool which, ir_id *out)
{
    for (uint32_t i = 0; i < g->n_params; i++)
        if (!mask || mask[i] == which)
            out[i] = ir_param(b, ir_type_of(g, i));
}

void pass_copy_node(struct ir_builder *b, const struct ir_graph *g, const struct ir_node *n,
                    ir_id *map)
{
    ir_id few[8], *in = n->n_in <= 8 ? few : arena_array(b->module->arena, ir_id, n->n_in);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = map[ir_operand(g, n, i)];
    ir_id y = ir_rebuild(b, g, n, in);
    for (uint32_t i = 0; i < n->n_out; i++)
        map[n->out + i] = y == IR_NONE ? IR_NONE : y + i;
}

void pass_copy_values(struct ir_builder *b, const struct ir_graph *g, ir_id *map)
{
    pass_copy_params(b, g, NULL, true, map);
    for (uint32_t at = g->n_params; at < g->nodes.count && b->status == JOT_OK; at++)
        pass_copy_node(b, g, &g->nodes.at[at], map);
}

void pass_copy_outputs(struct ir_builder *b, const struct ir_graph *g, const ir_id *map)
{
    for (uint32_t i = 0; i < g->outputs.count; i++)
        ir_output(b, map[g->outputs.at[i]]);
}

bool pass_is_marked(const bool *values, const struct ir_node *n)
{
    for (uint32_t i = 0; i < n->n_out; i++)
        if (values[n->out + i])
            return true;
    return false;
}

ir_id *pass_no_values(struct ir_module *m, uint32_t n)
{
    ir_id *v = arena_array(m->arena, ir_id, n + 1);
    for (uint32_t i = 0; i < n; i++)
        v[i] = IR_NONE;
    return v;
}

uint32_t *pass_count_uses(struct ir_module *m, const struct ir_graph *g)
{
    uint32_t *uses = arena_array(m->arena, uint32_t, g->values.count + 1);
    for (uint32_t i = 0; i < g->operands.count; i++)
        uses[g->operands.at[i]]++;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        uses[g->outputs.at[i]]++;
    return uses;
}
