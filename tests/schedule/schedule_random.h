// SPDX-License-Identifier: Apache-2.0
// Random programs of small tensors: every kind of index change, fold and elementwise op.
#ifndef TESTS_SCHEDULE_RANDOM_H
#define TESTS_SCHEDULE_RANDOM_H

#include "schedule_examples.h"

struct random_program {
    struct ir_builder b;
    uint64_t state;
    VEC(ir_id) values;
};

static inline int64_t random_below(struct random_program *r, int64_t n)
{
    return (int64_t)(opcase_random(&r->state) * (double)n);
}

static inline ir_id random_value(struct random_program *r)
{
    int64_t recent = r->values.count < 8 || random_below(r, 3) == 0 ? r->values.count : 8;
    return r->values.at[r->values.count - 1 - random_below(r, recent)];
}

static inline const int64_t *dims_of(struct random_program *r, ir_id v)
{
    return ir_dims(module, ir_type_in(&r->b, v));
}

static inline ir_id random_unary(struct random_program *r, ir_id x)
{
    static const enum ir_op ops[] = {IR_neg, IR_sin, IR_tanh, IR_abs, IR_sign};
    return ir_map1(&r->b, ops[random_below(r, 5)], x);
}

// x brought to the shape of y, through one element if need be.
static inline ir_id random_fit(struct random_program *r, ir_id x, ir_id y)
{
    struct ir_type t = ir_type_in(&r->b, x), u = ir_type_in(&r->b, y);
    if (ir_type_equal(t, u))
        return x;
    if (ir_count(module, t) == ir_count(module, u))
        return ir_reshape(&r->b, x, u.rank, ir_dims(module, u));
    const int64_t *from = ir_dims(module, t), *dims = ir_dims(module, u);
    if (t.rank < u.rank && t.rank > 0) {
        int64_t axes[IR_MAX_RANK];
        int k = 0;
        for (int i = 0; i < u.rank && k < t.rank; i++)
            if (from[k] == dims[i] || from[k] == 1)
                axes[k++] = i;
        if (k == t.rank)
            return ir_broadcast_in_dim(&r->b, x, u.rank, dims, axes);
    }
    int64_t all[IR_MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        all[i] = i;
    return ir_reduce(&r->b, random_below(r, 2) ? IR_reduce_sum : IR_reduce_max, x, t.rank, all);
}

static inline ir_id random_binary(struct random_program *r, ir_id x)
{
    static const enum ir_op ops[] = {IR_add, IR_sub, IR_mul, IR_max, IR_min};
    ir_id y = random_fit(r, random_value(r), x);
    return ir_map2(&r->b, ops[random_below(r, 5)], x, y);
}

static inline ir_id random_reduce(struct random_program *r, ir_id x)
{
    int rank = ir_type_in(&r->b, x).rank, n = 0;
    int64_t axes[IR_MAX_RANK];
    for (int i = 0; i < rank; i++)
        if (random_below(r, 2))
            axes[n++] = i;
    static const enum ir_op ops[] = {IR_reduce_sum, IR_reduce_max, IR_reduce_sum,
                                     IR_reduce_min};
    ir_id y = ir_reduce(&r->b, ops[random_below(r, 4)], x, n, axes);
    if (n == 0 || random_below(r, 2))
        return y;
    int64_t kept[IR_MAX_RANK];
    int k = 0;
    for (int i = 0, j = 0; i < rank; i++) {
        if (j < n && axes[j] == i)
            j++;
        else
            kept[k++] = i;
    }
    return ir_sub(&r->b, x, ir_broadcast_in_dim(&r->b, y, rank, dims_of(r, x), kept));
}

static inline ir_id random_reshape(struct random_program *r, ir_id x)
{
    int64_t count = ir_count(module, ir_type_in(&r->b, x)), dims[IR_MAX_RANK];
    int rank = 0;
    while (count > 1 && rank < 4) {
        int64_t d = 1 + random_below(r, count);
        while (count % d)
            d--;
        dims[rank++] = d;
        count /= d;
    }
    dims[rank++] = count;
    return ir_reshape(&r->b, x, rank, dims);
}

static inline ir_id random_layout(struct random_program *r, ir_id x)
{
    int rank = ir_type_in(&r->b, x).rank;
    const int64_t *dims = dims_of(r, x);
    int64_t a[IR_MAX_RANK], c[IR_MAX_RANK], d[IR_MAX_RANK];
    if (rank == 0)
        return x;
    int64_t axis = random_below(r, rank);
    switch (random_below(r, 6)) {
    case 0:
        for (int i = 0; i < rank; i++)
            a[i] = (i + axis) % rank;
        return ir_transpose(&r->b, x, a);
    case 1:
        return ir_rev(&r->b, x, 1, &axis);
    case 2:
        for (int i = 0; i < rank; i++) {
            a[i] = dims[i] > 1 ? random_below(r, 2) : 0;
            c[i] = dims[i];
            d[i] = 1 + random_below(r, 2);
        }
        return ir_slice(&r->b, x, a, c, d);
    case 3:
        for (int i = 0; i < rank; i++) {
            a[i] = random_below(r, 3) - (dims[i] > 2);
            c[i] = random_below(r, 2);
            d[i] = random_below(r, 4) == 0;
        }
        return ir_pad(&r->b, x, ir_scalar_like(&r->b, x, 0.5), a, c, d);
    case 4:
        return ir_concatenate(&r->b, 2, (ir_id[]){x, random_unary(r, x)}, (int)axis);
    default:
        return random_reshape(r, x);
    }
}

static inline ir_id random_dot(struct random_program *r, ir_id x)
{
    ir_id y = random_value(r);
    int rank_x = ir_type_in(&r->b, x).rank, rank_y = ir_type_in(&r->b, y).rank;
    const int64_t *dx = dims_of(r, x), *dy = dims_of(r, y);
    int64_t ax[2], ay[2];
    int n = 0;
    for (int i = 0; i < rank_x && n < 2; i++)
        for (int k = 0; k < rank_y && n < 2; k++)
            if (dx[i] == dy[k] && (n == 0 || (ax[0] != i && ay[0] != k)) &&
                random_below(r, 3)) {
                ax[n] = i;
                ay[n++] = k;
                break;
            }
    struct ir_dot d = {.n_contract = n, .lhs_contract = ax, .rhs_contract = ay};
    if (n && random_below(r, 3) == 0)
        d = (struct ir_dot){.n_contract = n - 1,
                            .lhs_contract = ax + 1,
                            .rhs_contract = ay + 1,
                            .n_batch = 1,
                            .lhs_batch = ax,
                            .rhs_batch = ay};
    return ir_dot_general(&r->b, x, y, &d);
}

static inline ir_id random_step(struct random_program *r)
{
    ir_id x = random_value(r);
    int rank = ir_type_in(&r->b, x).rank;
    switch (random_below(r, 12)) {
    case 0:
    case 1:
        return random_unary(r, x);
    case 2:
    case 3:
    case 4:
        return random_binary(r, x);
    case 5:
    case 6:
        return random_reduce(r, x);
    case 7:
        return random_dot(r, x);
    case 8:
        return rank ? ir_cumulative(&r->b, IR_cumsum, x, (int)random_below(r, rank),
                                    random_below(r, 2))
                    : x;
    default:
        return random_layout(r, x);
    }
}

static inline uint32_t random_program_of(uint64_t state, int steps)
{
    struct random_program r = {.b = begin("random"), .state = state};
    for (int i = 0; i < 3; i++) {
        static const int64_t extents[] = {1, 2, 3, 4, 6, 8};
        int rank = (int)random_below(&r, 4);
        int64_t dims[4];
        for (int k = 0; k < rank; k++)
            dims[k] = extents[random_below(&r, 6)];
        vec_push(module->arena, &r.values, ir_param(&r.b, type_of_dims(JOT_F32, rank, dims)));
    }
    for (int i = 0; i < steps; i++) {
        ir_id v = random_step(&r);
        ck_assert_msg(v != IR_NONE, "seed %" PRIu64 ": %s", state, r.b.message);
        struct ir_type t = ir_type_in(&r.b, v);
        if (ir_count(module, t) <= 1000 && t.rank <= 6)
            vec_push(module->arena, &r.values, v);
    }
    ir_output(&r.b, vec_last(&r.values));
    for (int i = 0; i < 2; i++)
        ir_output(&r.b, random_value(&r));
    return finish(&r.b);
}

#endif
