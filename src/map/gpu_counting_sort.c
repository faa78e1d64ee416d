// SPDX-License-Identifier: Apache-2.0
// Updates of elements so few that a block of threads can count those of each (codegen/gpu/counting_sort.c).
#include "map/gpu_counting_sort.h"

#include "map/gpu_updates.h"

#define LEAST_COUNTED (MAP_CHUNK / 16)

bool map_is_in_turn(const struct nest *n, const struct map_updates *u, nest_id value)
{
    nest_id statement = n->values.at[value].statement;
    for (uint32_t i = 0; i < u->body->statements.count; i++)
        if (u->body->statements.at[i] == statement)
            return true;
    return false;
}

// The value that says where it goes: it counts elements, and other terms count points.
static bool find_value(const struct map_gpu *m, const struct map_updates *u,
                       struct map_counting_sort *p)
{
    const struct nest_index *x = &u->put->index;
    p->element = NEST_NONE;
    p->count = m->nest->buffers.at[u->put->buffer].count;
    for (uint32_t i = 0; i < x->count; i++) {
        const struct nest_term *t = &x->terms[i];
        if (t->is_value) {
            if (p->element != NEST_NONE || t->factor != 1)
                return false;
            p->element = t->id;
        } else if (map_is_of_turns(u, t->id) || t->factor <= 0) {
            return false;
        } else if (t->factor < p->count) {
            p->count = t->factor;
        }
    }
    return x->constant == 0 && p->element != NEST_NONE &&
           map_is_in_turn(m->nest, u, p->element) && !u->depends[p->element];
}

int64_t map_value_bytes(jot_dtype d) { return d == JOT_BOOL ? 0 : dtype_get(d)->bytes; }

bool map_value_find(const struct map_gpu *m, const struct map_updates *u, nest_id *out,
                    jot_dtype *out_dtype)
{
    *out = NEST_NONE;
    if (dtype_is_complex(m->nest->buffers.at[u->put->buffer].dtype))
        return false;
    for (uint32_t i = 0; i < u->body->statements.count; i++) {
        const struct nest_statement *s = nest_statement_at(m->nest, u->body->statements.at[i]);
        bool wants = s == u->put || (s->kind == NEST_OP && u->depends[s->result]);
        for (uint32_t k = 0; wants && k < s->n_in; k++) {
            nest_id v = s->in[k];
            if (u->depends[v] || v == *out || !map_is_in_turn(m->nest, u, v) ||
                nest_maker_of(m->nest, v)->kind == NEST_CONST)
                continue;
            if (*out != NEST_NONE)
                return false;
            *out = v;
        }
    }
    jot_dtype d = *out_dtype = *out == NEST_NONE ? JOT_BOOL : m->nest->values.at[*out].dtype;
    return *out == NEST_NONE || d == JOT_F32 || d == JOT_F64 || d == JOT_I32 || d == JOT_I64 ||
           d == JOT_U32 || d == JOT_U64;
}

bool map_counting_sort_find(const struct map_gpu *m, const struct map_updates *u,
                            struct map_counting_sort *p)
{
    *p = (struct map_counting_sort){0};
    int64_t step = (int64_t)MAP_SORT_BLOCK * 8; // elements in 16 bytes of each thread
    bool is_such = u->window == 1 && u->copies == 1 && u->turns >= MAP_CHUNK &&
                   find_value(m, u, p) && map_value_find(m, u, &p->value, &p->dtype) &&
                   p->count >= LEAST_COUNTED && p->count <= MAP_MOST_COUNTED;
    p->room = (p->count + step - 1) / step * step;
    p->row = p->room + 8;
    p->chunks = (u->turns + MAP_CHUNK - 1) / MAP_CHUNK;
    return is_such;
}
