// SPDX-License-Identifier: Apache-2.0
// Cases of ops whose indices are data.
#include "support/opcases_maker.h"

#include "ir/indexing.h"

void opcase_add_dynamic_slice(struct opcase_maker *k, enum ir_op op)
{
    const struct opcase_shape wholes[] = {SHAPE(5), SHAPE(6, 3), SHAPE(4, 5), SHAPE(3, 0),
                                          scalar};
    const struct opcase_shape parts[] = {SHAPE(2), SHAPE(1, 3), SHAPE(3, 2), SHAPE(2, 0),
                                         scalar};
    for (int i = 0; i < 5; i++) {
        struct opcase_shape in[4] = {wholes[i], scalar, scalar, scalar};
        int rank = wholes[i].rank;
        const struct ir_attrs *sizes = ir_attrs(k->m, IR_INTS(sizes, rank, parts[i].dims));
        if (op == IR_dynamic_slice) {
            opcase_add(k, op, sizes, 1 + rank, in);
            continue;
        }
        in[1] = parts[i];
        opcase_add(k, op, NULL, 2 + rank, in);
    }
}

// Operands, indices, windows (of a gather) or updates, and how they belong together.
static const struct {
    struct opcase_shape x, indices, sizes, updates;
    int n[4];
    int64_t offset[3], collapsed[3], operand_batch[2], index_batch[2], map[3];
} windows[] = {
    {{1, {5}}, {2, {7, 1}}, {1, {1}}, {1, {7}}, {0, 1, 0, 1}, {0}, {0}, {0}, {0}, {0}},
    {{2, {5, 3}}, {2, {4, 1}}, {2, {1, 3}}, {2, {4, 3}}, {1, 1, 0, 1}, {1}, {0}, {0}, {0}, {0}},
    {{2, {4, 5}}, {2, {3, 1}}, {2, {4, 1}}, {2, {4, 3}}, {1, 1, 0, 1}, {0}, {1}, {0}, {0}, {1}},
    {{2, {4, 6}},
     {3, {2, 3, 2}},
     {2, {2, 3}},
     {4, {2, 2, 3, 3}},
     {2, 0, 0, 2},
     {1, 3},
     {0},
     {0},
     {0},
     {1, 0}},
    {{3, {2, 4, 3}},
     {3, {2, 5, 1}},
     {3, {1, 1, 2}},
     {3, {2, 5, 2}},
     {1, 1, 1, 1},
     {2},
     {1},
     {0},
     {0},
     {1}},
    {{3, {4, 2, 3}},
     {3, {5, 3, 2}},
     {3, {1, 2, 1}},
     {3, {2, 5, 3}},
     {1, 1, 1, 2},
     {0},
     {0},
     {2},
     {1},
     {1, 0}},
    {{1, {4}}, {1, {1}}, {1, {2}}, {1, {2}}, {1, 0, 0, 1}, {0}, {0}, {0}, {0}, {0}},
    {{2, {3, 2}}, {2, {4, 0}}, {2, {1, 2}}, {2, {4, 2}}, {1, 1, 0, 0}, {1}, {0}, {0}, {0}, {0}},
    {{1, {4}}, {2, {0, 1}}, {1, {1}}, {1, {0}}, {0, 1, 0, 1}, {0}, {0}, {0}, {0}, {0}},
};
enum { WINDOWS = sizeof windows / sizeof *windows };

static const struct ir_attrs *window_attrs(struct opcase_maker *k, int i, int mode,
                                           bool gathers)
{
    const int *n = windows[i].n;
    struct ir_field fields[] = {
        IR_INTS(offset_dims, n[0], windows[i].offset),
        IR_INTS(collapsed_dims, n[1], windows[i].collapsed),
        IR_INTS(operand_batch, n[2], windows[i].operand_batch),
        IR_INTS(index_batch, n[2], windows[i].index_batch),
        IR_INTS(index_map, n[3], windows[i].map),
        IR_INT(mode, mode),
        IR_INTS(sizes, windows[i].sizes.rank, windows[i].sizes.dims),
    };
    return ir_attrs_make(k->m, gathers ? 7 : 6, fields);
}

// What fills has no difference quotient: not for the dtypes of those tests.
void opcase_add_gather(struct opcase_maker *k)
{
    bool fills = k->dtype != JOT_F64 && k->dtype != JOT_C128;
    for (int i = 0; i < WINDOWS; i++)
        for (int mode = 0; mode < IR_MODE_COUNT; mode++)
            if (mode != IR_MODE_FILL || fills)
                opcase_add(k, IR_gather, window_attrs(k, i, mode, true), 2,
                           (struct opcase_shape[]){windows[i].x, windows[i].indices});
}

void opcase_add_scatter(struct opcase_maker *k, enum ir_op op)
{
    if (op == IR_scatter_mul) { // has derivatives when indices do not repeat
        const int64_t zero = 0;
        opcase_add(k, op,
                   ir_attrs(k->m, IR_INTS(collapsed_dims, 1, &zero),
                            IR_INTS(index_map, 1, &zero), IR_INT(mode, 0), IR_INT(unique, 1)),
                   3, (struct opcase_shape[]){SHAPE(6), SHAPE(3, 1), SHAPE(3)});
        struct opcase *c = &k->cases.at[k->cases.count - 1];
        size_t bytes = jot_dtype_size(k->indices);
        for (int64_t i = 0; i < 3; i++)
            memcpy((char *)c->in[1].data + (size_t)i * bytes, &(int64_t){5 - 2 * i}, bytes);
        return;
    }
    for (int i = 0; i < WINDOWS; i++)
        for (int mode = 0; mode < IR_MODE_COUNT; mode++)
            if (mode == IR_MODE_CLIP || mode == IR_MODE_DROP)
                opcase_add(k, op, window_attrs(k, i, mode, false), 3,
                           (struct opcase_shape[]){windows[i].x, windows[i].indices,
                                                   windows[i].updates});
}
