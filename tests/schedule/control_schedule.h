// SPDX-License-Identifier: Apache-2.0
// Loops and branches under transforms and at random, for tests of what becomes of them.
#ifndef TESTS_CONTROL_SCHEDULE_H
#define TESTS_CONTROL_SCHEDULE_H

#include "passes/control_programs.h"
#include "schedule_random.h"

#include "ir/control.h"
#include "ir/indexing.h"

#include <string.h>

// As it is scheduled.
static inline uint32_t simplified(uint32_t f)
{
    f = pass_inline(module, pass_simplify(module, f), 10000);
    return pass_simplify(module, pass_count_trips(module, f));
}

static inline uint32_t count_control(uint32_t f)
{
    uint32_t n = 0;
    ir_for_each_node (graph(f), node)
        n += ir_op_class((enum ir_op)node->op) == IR_CLASS_CONTROL;
    return n;
}

// Loops and branches that are kernels, or parts of one ("resident, 2 loops").
static inline uint32_t count_resident(const struct nest_program *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const char *reason = p->steps.at[i].reason;
        unsigned loops = 1;
        if (!reason || strncmp(reason, "resident", 8) != 0)
            continue;
        n += sscanf(reason, "resident, %u loops", &loops) == 1 ? loops : 1;
    }
    return n;
}

static inline uint32_t mapped(uint32_t f, uint64_t bits, int64_t size)
{
    uint32_t g;
    require(pass_vmap(module, f, mask_of(graph(f)->n_params, bits), size, &g, NULL));
    return g;
}

static inline uint64_t all_inputs(uint32_t f)
{
    return (UINT64_C(1) << graph(f)->n_params) - 1;
}

static inline uint32_t forward(uint32_t f)
{
    uint32_t g;
    require(pass_jvp(module, f, mask_of(graph(f)->n_params, inexact_bits(f)), &g, NULL));
    return g;
}

static inline uint32_t backward(uint32_t f)
{
    uint32_t g;
    require(pass_vjp(module, f, mask_of(graph(f)->n_params, inexact_bits(f)), &g));
    return g;
}

// A value of the type, from one that may be of another.
static inline ir_id fitted(struct random_program *r, ir_id x, struct ir_type t)
{
    struct ir_type have = ir_type_in(&r->b, x);
    int64_t all[IR_MAX_RANK];
    if (ir_type_equal(have, t))
        return x;
    for (int i = 0; i < have.rank; i++)
        all[i] = i;
    ir_id one = ir_reduce(&r->b, IR_reduce_max, x, have.rank, all);
    return ir_broadcast_in_dim(&r->b, one, t.rank, ir_dims(module, t), NULL);
}

// x with a row of it replaced, at an index that is data; x itself when it has no rows.
static inline ir_id with_a_row(struct random_program *r, ir_id x)
{
    struct ir_type t = ir_type_in(&r->b, x);
    int64_t dims[IR_MAX_RANK];
    ir_id starts[IR_MAX_RANK];
    if (t.rank == 0)
        return x;
    memcpy(dims, ir_dims(module, t), t.rank * sizeof *dims);
    dims[0] = 1;
    for (int i = 1; i < t.rank; i++)
        starts[i] = ir_scalar_int(&r->b, JOT_I32, 0);
    ir_id index = fitted(r, random_value(r), type_of_dims(JOT_F32, 0, NULL));
    index = ir_mul(&r->b, ir_map1(&r->b, IR_sin, index), ir_scalar_like(&r->b, index, 5));
    starts[0] = ir_convert(&r->b, index, JOT_I32);
    ir_id row = fitted(r, random_value(r), type_of_dims(JOT_F32, t.rank, dims));
    return ir_dynamic_update_slice(&r->b, x, ir_map1(&r->b, IR_tanh, row), starts);
}

// scan over a random body: a const, three carries, rows in and rows out.
static inline uint32_t random_loop(uint64_t state, int steps)
{
    static const int64_t extents[] = {1, 2, 3, 4, 6, 12, 24};
    struct random_program r = {.b = begin("body"), .state = state};
    struct ir_type in[5];
    ir_id out[4];
    for (int i = 0; i < 5; i++) {
        int64_t dims[3];
        int rank = (int)random_below(&r, 3);
        for (int k = 0; k < rank; k++)
            dims[k] = extents[random_below(&r, 7)];
        in[i] = i > 1 && random_below(&r, 2) ? in[i - 1] : type_of_dims(JOT_F32, rank, dims);
        vec_push(module->arena, &r.values, ir_param(&r.b, in[i]));
    }
    for (int i = 0; i < steps; i++) {
        ir_id v = random_step(&r);
        ck_assert_msg(v != IR_NONE, "seed %" PRIu64 ": %s", state, r.b.message);
        struct ir_type t = ir_type_in(&r.b, v);
        if (ir_count(module, t) <= 600 && t.rank <= 4)
            vec_push(module->arena, &r.values, v);
    }
    // Carries are made anew, or are one of the carries with a row or two replaced.
    for (ir_id i = 1; i < 4; i++) {
        ir_id from = 1 + (ir_id)random_below(&r, 3);
        if (random_below(&r, 2) || !ir_type_equal(in[from], in[i])) {
            out[i - 1] = ir_map1(&r.b, IR_tanh, fitted(&r, random_value(&r), in[i]));
            continue;
        }
        out[i - 1] = with_a_row(&r, from);
        if (random_below(&r, 2)) {
            vec_push(module->arena, &r.values, out[i - 1]);
            out[i - 1] = with_a_row(&r, out[i - 1]);
        }
    }
    out[3] = random_value(&r);
    for (int i = 0; i < 4; i++)
        ir_output(&r.b, out[i]);
    struct ir_scan s = {.body = finish(&r.b),
                        .n_consts = 1,
                        .n_carry = 3,
                        .length = 1 + random_below(&r, 4),
                        .reverse = random_below(&r, 2)};
    struct ir_builder b = begin("loop");
    ir_id x[5];
    for (int i = 0; i < 5; i++)
        x[i] = ir_param(&b, i < 4 ? in[i] : ir_type_stack(module, in[i], s.length));
    ir_id y = ir_scan(&b, &s, 5, x);
    for (ir_id k = 0; k < 4; k++)
        ir_output(&b, y + k);
    return finish(&b);
}

#endif
