// SPDX-License-Identifier: Apache-2.0
#include "ir/index_map.h"

// As if the operand were the first; the axis along which it follows those before it, or -1.
static int map_alone(const struct ir_module *m, enum ir_op op, const struct ir_attrs *attrs,
                     uint32_t i, struct ir_type in, struct ir_type result,
                     struct ir_index_map *out)
{
    struct ir_index_call c = {.attrs = attrs,
                              .operand = i,
                              .dims = ir_dims(m, in),
                              .to = ir_dims(m, result),
                              .after = -1,
                              .map = out};
    out->rank = in.rank;
    for (int d = 0; d < in.rank; d++)
        out->axes[d] =
            (struct ir_index_axis){.n_terms = 1, .axis = {d}, .step = {1}, .spread = 1};
    ir_op_get(op)->index(&c);
    uint32_t kept = 0; // axes of the result, as bits
    for (int d = 0; d < in.rank; d++) {
        struct ir_index_axis *a = &out->axes[d];
        a->is_kept = a->n_terms == 1 && a->step[0] == 1 && a->offset == 0 && a->spread == 1 &&
                     c.dims[d] == c.to[a->axis[0]] && !(kept >> a->axis[0] & 1);
        kept |= (uint32_t)a->is_kept << a->axis[0];
    }
    return c.after;
}

// Behind an operand of so many elements along the axis.
static void move_on(struct ir_index_axis *a, int64_t extent)
{
    a->offset -= extent;
    a->is_kept &= extent == 0;
}

void ir_index_map_of(const struct ir_graph *g, const struct ir_node *n, uint32_t i,
                     struct ir_index_map *out)
{
    const ir_id *in = ir_operands(g, n);
    int after = map_alone(g->module, (enum ir_op)n->op, n->attrs, i, ir_type_of(g, in[i]),
                          ir_type_of(g, n->out), out);
    for (uint32_t k = 0; k < i && after >= 0; k++)
        move_on(&out->axes[after], ir_dims_of(g, in[k])[after]);
}

void ir_index_map_of_types(const struct ir_module *m, enum ir_op op,
                           const struct ir_attrs *attrs, uint32_t i, const struct ir_type *in,
                           struct ir_type result, struct ir_index_map *out)
{
    int after = map_alone(m, op, attrs, i, in[i], result, out);
    for (uint32_t k = 0; k < i && after >= 0; k++)
        move_on(&out->axes[after], ir_dims(m, in[k])[after]);
}

bool ir_index_is_guarded(const struct ir_index_map *map)
{
    for (int d = 0; d < map->rank; d++)
        if (map->axes[d].is_guarded)
            return true;
    return false;
}

// The map of a change of index with one operand.
static bool find_only_map(const struct ir_graph *g, const struct ir_node *n,
                          struct ir_index_map *out)
{
    if (!ir_op_get((enum ir_op)n->op)->index || n->n_in != 1)
        return false;
    ir_index_map_of(g, n, 0, out);
    return true;
}

bool ir_index_has_zeros(const struct ir_graph *g, const struct ir_node *n)
{
    struct ir_index_map map;
    return find_only_map(g, n, &map) && ir_index_is_guarded(&map);
}

bool ir_index_has_windows(const struct ir_graph *g, const struct ir_node *n)
{
    struct ir_index_map map;
    bool has = false;
    if (find_only_map(g, n, &map))
        for (int d = 0; d < map.rank; d++)
            has |= map.axes[d].n_terms > 1;
    return has;
}
