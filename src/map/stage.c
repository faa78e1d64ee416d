// SPDX-License-Identifier: Apache-2.0
// Staging: rows of points that lie far apart go through locals of the points, by maps that only copy.
//
//     par n < 2048 {                                 par n < 2048 {
//       contract ...                                   contract ...
//       map j < 64 {                                   map k < 64 { %0 = load x[64*n + k]  put x_2[k] = %0 }
//         %0 = load x[64*n + j]           becomes      map j < 64 {
//         %1 = tanh %0                                   %0 = load x_2[j]  %1 = tanh %0  put y_2[j] = %1
//         put y[64*n + j] = %1                         }
//       }                                              map l < 64 { %2 = load y_2[l]  put y[64*n + l] = %2 }
//     }                                              }
//
// In loops over the points of a network, whose lanes are points: a copy goes by tiles that are transposed in
// registers (codegen/units.c), where an access of one element for all lanes touches as many cache lines.
#include "ir/cost.h"
#include "map/map.h"

struct stage {
    struct nest_builder b;
    nest_id point, unit; // axes
};

// An access and the local that it is to.
struct staged {
    struct nest_statement far;
    nest_id local;
};

static struct nest_statement *statement(struct nest *n, nest_id id)
{
    return &n->statements.at[id];
}

static bool is_far(const struct nest *n, const struct nest_statement *s, nest_id point,
                   nest_id unit)
{
    if ((s->kind != NEST_LOAD && s->kind != NEST_PUT) || s->op || s->guard != NEST_NONE ||
        nest_index_has_values(&s->index) || nest_index_factor(&s->index, unit) != 1)
        return false;
    const struct nest_buffer *b = &n->buffers.at[s->buffer];
    int64_t bytes = dtype_get(b->dtype)->bytes, units = n->axes.at[unit].extent;
    return b->role == (s->kind == NEST_LOAD ? NEST_IN : NEST_OUT) &&
           (bytes == 4 || bytes == 8) && !dtype_is_complex(b->dtype) &&
           units * bytes >= COST_ROW_BYTES && nest_index_factor(&s->index, point) >= units;
}

static bool is_same_access(const struct nest_statement *a, const struct nest_statement *b)
{
    return a->kind == b->kind && a->buffer == b->buffer &&
           nest_index_equal(&a->index, &b->index);
}

// The index with another axis in place of the unit's.
static struct nest_index along(const struct stage *g, const struct nest_index *x, nest_id axis)
{
    struct arena *a = g->b.nest->arena;
    struct nest_term *terms = arena_copy(a, x->terms, x->count * sizeof *terms);
    for (uint32_t i = 0; i < x->count; i++)
        terms[i].id = terms[i].id == g->unit ? axis : terms[i].id;
    return nest_index_make(a, x->constant, (int)x->count, terms);
}

static struct nest_index element_index(const struct stage *g, nest_id axis)
{
    return nest_index_make(g->b.nest->arena, 0, 1, &(struct nest_term){1, axis, false});
}

// A map that copies the row of a far access to the local or from it.
static void add_copy(struct stage *g, const struct nest_statement *far, nest_id local)
{
    nest_id axis = nest_axis(&g->b, "k", g->b.nest->axes.at[g->unit].extent), v;
    struct nest_index index = along(g, &far->index, axis);
    nest_open(&g->b, NEST_MAP, 1, &axis);
    if (far->kind == NEST_LOAD) {
        v = nest_load(&g->b, far->buffer, index, NEST_NONE);
        nest_put(&g->b, local, element_index(g, axis), v, NEST_NONE);
    } else {
        v = nest_load(&g->b, local, element_index(g, axis), NEST_NONE);
        nest_put(&g->b, far->buffer, index, v, NEST_NONE);
    }
    nest_close(&g->b, 0, NULL);
}

bool map_is_copy(const struct nest *n, const struct nest_statement *map, nest_id point)
{
    if (map->kind != NEST_MAP || map->n_axes != 1 ||
        n->blocks.at[map->body].statements.count != 2)
        return false;
    const struct nest_block *b = &n->blocks.at[map->body];
    const struct nest_statement *x = &n->statements.at[b->statements.at[0]];
    const struct nest_statement *y = &n->statements.at[b->statements.at[1]];
    if (x->kind != NEST_LOAD || y->kind != NEST_PUT || y->in[0] != x->result ||
        x->dtype != n->buffers.at[y->buffer].dtype)
        return false;
    const struct nest_statement *near = n->buffers.at[x->buffer].role == NEST_LOCAL ? x : y;
    return is_far(n, near == x ? y : x, point, map->axes[0]) && near->guard == NEST_NONE &&
           !near->op && n->buffers.at[near->buffer].role == NEST_LOCAL &&
           nest_index_is_axis(&near->index, map->axes[0]);
}

// Loads that are staged come in front of the map, puts behind it; an element that is loaded twice goes once.
static void stage_map(struct stage *g, nest_id map)
{
    struct nest *n = g->b.nest;
    uint32_t block = statement(n, map)->body, count = n->blocks.at[block].statements.count;
    VEC(struct staged) all = {0};
    g->unit = statement(n, map)->axes[0];
    for (uint32_t i = 0; i < count; i++) {
        nest_id id = n->blocks.at[block].statements.at[i];
        struct nest_statement far = *statement(n, id);
        uint32_t k = 0;
        if (!is_far(n, &far, g->point, g->unit))
            continue;
        while (k < all.count && !is_same_access(&all.at[k].far, &far))
            k++;
        if (k == all.count) {
            const struct nest_buffer *b = &n->buffers.at[far.buffer];
            vec_push(n->arena, &all,
                     ((struct staged){far, nest_local(&g->b, b->name, b->dtype,
                                                      n->axes.at[g->unit].extent)}));
            if (far.kind == NEST_LOAD)
                add_copy(g, &far, all.at[k].local);
        }
        statement(n, id)->buffer = all.at[k].local;
        statement(n, id)->index = element_index(g, g->unit);
    }
    vec_push(n->arena, &n->blocks.at[vec_last(&g->b.open)].statements, map);
    for (uint32_t i = 0; i < all.count; i++)
        if (all.at[i].far.kind == NEST_PUT)
            add_copy(g, &all.at[i].far, all.at[i].local);
}

// The loop over the points of a network, or NEST_NONE.
static nest_id find_points(const struct nest *n)
{
    nest_for_each (s, n, 0) {
        if ((s->kind != NEST_PAR && s->kind != NEST_FOLD) || s->n_axes != 1)
            continue;
        nest_for_each (t, n, s->body)
            if (t->kind == NEST_CONTRACT)
                return nest_id_of(n, s);
    }
    return NEST_NONE;
}

void map_stage(struct nest *n)
{
    nest_id points = n->choices & NEST_NO_STAGES ? NEST_NONE : find_points(n);
    if (points == NEST_NONE)
        return;
    uint32_t block = statement(n, points)->body, count = n->blocks.at[block].statements.count;
    uint32_t made = n->blocks.count;
    struct stage g = {.b = {.nest = n}, .point = statement(n, points)->axes[0]};
    vec_push(n->arena, &n->blocks, (struct nest_block){0});
    vec_push(n->arena, &g.b.open, made);
    for (uint32_t i = 0; i < count; i++) {
        nest_id id = n->blocks.at[block].statements.at[i];
        const struct nest_statement *s = statement(n, id);
        g.b.where = s->where;
        if (s->kind == NEST_MAP && s->n_axes == 1 && !map_is_copy(n, s, g.point))
            stage_map(&g, id);
        else
            vec_push(n->arena, &n->blocks.at[made].statements, id);
    }
    n->blocks.at[block].statements.count = 0;
    for (uint32_t i = 0; i < n->blocks.at[made].statements.count; i++)
        vec_push(n->arena, &n->blocks.at[block].statements,
                 n->blocks.at[made].statements.at[i]);
    n->blocks.at[made].statements.count = 0;
}
