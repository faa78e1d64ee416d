// SPDX-License-Identifier: Apache-2.0
// Exchanges between the devices of a mesh, which are the partitions of the program.
#include "interop/from_graph.h"

#include "ir/collective.h"

#define HLO_(name) MLIR_OP_stablehlo_##name

// The groups of a collective, a row of partitions each.
struct groups {
    struct collective c;
    int rank;
    const int64_t *mesh;
    int64_t devices, *of; // groups one after the other
};

static struct groups read_groups(struct hlo_node *n)
{
    struct groups s = {.mesh = NULL};
    s.mesh = ir_attr_ints(n->n->attrs, IR_KEY_mesh, &s.rank);
    ir_exchange_read(n->n->attrs, &s.c);
    s.devices = collective_mesh_size((uint32_t)s.rank, s.mesh);
    s.of = arena_array(n->w->arena, int64_t, s.devices + 1);
    for (int64_t device = 0, at = 0; device < s.devices; device++) {
        if (collective_position(&s.c, (uint32_t)s.rank, s.mesh, device) != 0)
            continue;
        for (int64_t position = 0; position < s.c.size; position++)
            s.of[at++] = collective_member(&s.c, (uint32_t)s.rank, s.mesh, device, position);
    }
    return s;
}

// Numbers in rows of so many.
static void add_rows(struct hlo_writer *w, struct hlo_attrs *a, const char *name, int64_t n,
                     int64_t columns, const int64_t *numbers)
{
    const int64_t dims[] = {columns ? n / columns : 0, columns};
    struct mlir_attr list = {.kind = MLIR_INTS,
                             .n = (size_t)n,
                             .type = hlo_type(w, JOT_I64, 2, dims),
                             .numbers = numbers};
    hlo_add(a, name, hlo_attr(w, list));
}

static void add_channel(struct hlo_writer *w, struct hlo_attrs *a, const struct groups *s,
                        bool is_global)
{
    hlo_int(w, a, "channel_id", 1);
    hlo_int(w, a, "channel_type", 1);
    add_rows(w, a, "replica_groups", s->devices, s->c.size, s->of);
    if (is_global)
        hlo_bool(w, a, "use_global_device_ids", true);
}

static enum ir_op combiner_of(const struct collective *c)
{
    static const enum ir_op of[] = {
        [COLLECTIVE_SUM] = IR_add, [COLLECTIVE_PRODUCT] = IR_mul, [COLLECTIVE_MAX] = IR_max,
        [COLLECTIVE_MIN] = IR_min, [COLLECTIVE_AND] = IR_and,     [COLLECTIVE_OR] = IR_or,
    };
    return of[c->combiner];
}

// x with one more axis of that extent in front.
static const struct mlir_type *in_rows(struct hlo_writer *w, const struct mlir_type *t,
                                       int64_t rows)
{
    int64_t dims[IR_MAX_RANK + 1] = {rows};
    memcpy(dims + 1, t->dims, sizeof *dims * (size_t)t->rank);
    return hlo_type(w, mlir_elements[t->element].dtype, t->rank + 1, dims);
}

static hlo_value reduce(struct hlo_node *n, const struct groups *s, bool scatters)
{
    struct hlo_writer *w = n->w;
    struct hlo_attrs a = {0};
    add_channel(w, &a, s, true);
    const struct mlir_type *t = scatters ? in_rows(w, n->type, 1) : n->type;
    if (scatters)
        hlo_int(w, &a, "scatter_dimension", 0);
    struct mlir_block body = hlo_combiner(w, combiner_of(&s->c), s->c.dtype);
    hlo_value y = hlo_emit(w, scatters ? HLO_(reduce_scatter) : HLO_(all_reduce), 1, n->in, 1,
                           &t, &a, 1, &body)
                      ->results[0];
    return scatters ? hlo_reshape(w, y, n->type->rank, n->type->dims) : y;
}

static hlo_value gather(struct hlo_node *n, const struct groups *s)
{
    struct hlo_attrs a = {0};
    const struct mlir_type *row = in_rows(n->w, n->in[0]->type, 1);
    hlo_value x = hlo_reshape(n->w, n->in[0], row->rank, row->dims);
    hlo_int(n->w, &a, "all_gather_dim", 0);
    add_channel(n->w, &a, s, true);
    return hlo_op(n->w, HLO_(all_gather), n->type, 1, &x, &a);
}

static hlo_value exchange_rows(struct hlo_node *n, const struct groups *s)
{
    struct hlo_attrs a = {0};
    add_channel(n->w, &a, s, false);
    hlo_int(n->w, &a, "concat_dimension", 0);
    hlo_int(n->w, &a, "split_count", s->c.size);
    hlo_int(n->w, &a, "split_dimension", 0);
    return hlo_op(n->w, HLO_(all_to_all), n->type, 1, n->in, &a);
}

static hlo_value permute(struct hlo_node *n, const struct groups *s)
{
    struct hlo_attrs a = {0};
    int64_t *pairs = arena_array(n->w->arena, int64_t, 2 * s->devices + 1), count = 0;
    for (int64_t i = 0; i < s->devices; i++) {
        int64_t from = s->c.sources[i % s->c.size];
        if (from < 0)
            continue;
        pairs[count++] = s->of[i / s->c.size * s->c.size + from];
        pairs[count++] = s->of[i];
    }
    hlo_int(n->w, &a, "channel_id", 1);
    hlo_int(n->w, &a, "channel_type", 1);
    add_rows(n->w, &a, "source_target_pairs", count, 2, pairs);
    return hlo_op(n->w, HLO_(collective_permute), n->type, 1, n->in, &a);
}

void hlo_exchange(struct hlo_node *n)
{
    struct groups s = read_groups(n);
    switch (s.c.kind) {
    case COLLECTIVE_ALL_REDUCE:
    case COLLECTIVE_REDUCE_SCATTER:
        n->out[0] = reduce(n, &s, s.c.kind == COLLECTIVE_REDUCE_SCATTER);
        break;
    case COLLECTIVE_ALL_GATHER:
        n->out[0] = gather(n, &s);
        break;
    case COLLECTIVE_ALL_TO_ALL:
        n->out[0] = exchange_rows(n, &s);
        break;
    default:
        n->out[0] = permute(n, &s);
        break;
    }
}

hlo_value hlo_coordinates(struct hlo_writer *w, int rank, const int64_t *mesh)
{
    const struct mlir_type *number = hlo_type(w, JOT_I32, 0, NULL);
    const struct mlir_type *one = hlo_type(w, JOT_I32, 1, (const int64_t[]){1});
    hlo_value id = hlo_op(w, HLO_(partition_id), hlo_type(w, JOT_U32, 0, NULL), 0, NULL, NULL);
    hlo_value parts[COLLECTIVE_MESH_RANK];
    id = hlo_convert(w, id, JOT_I32);
    for (int d = rank; d-- > 0;) {
        hlo_value size = hlo_number(w, number, (double)mesh[d]);
        parts[d] = hlo_reshape(w, hlo_2(w, HLO_(remainder), id, size), 1, one->dims);
        id = hlo_2(w, HLO_(divide), id, size);
    }
    struct hlo_attrs a = {0};
    hlo_int(w, &a, "dimension", 0);
    const int64_t all[] = {rank};
    return rank == 1 ? parts[0]
                     : hlo_op(w, HLO_(concatenate), hlo_type(w, JOT_I32, 1, all),
                              (uint32_t)rank, parts, &a);
}
