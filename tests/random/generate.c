// SPDX-License-Identifier: Apache-2.0
#include "random/maker.h"

#include "random/record.h"
#include "support/opcases.h"

#include <math.h>

uint64_t draw(struct maker *k, uint64_t n)
{
    return (uint64_t)(opcase_random(&k->state) * (double)n);
}

bool chance(struct maker *k, uint64_t one_in) { return draw(k, one_in) == 0; }

ir_id pick(struct maker *k)
{
    // Half the time one of the last few, so that chains get long.
    uint32_t n = k->pool.count;
    return k->pool.at[chance(k, 2) && n > 3 ? n - 1 - draw(k, 3) : draw(k, n)];
}

struct ir_type type_in(struct maker *k, ir_id v)
{
    return ir_type_in(&k->b, v == IR_NONE ? 0 : v);
}

// -- Types ------------------------------------------------------------------------------------

jot_dtype draw_dtype(struct maker *k)
{
    static const jot_dtype likely[] = {JOT_F32, JOT_F64, JOT_I32, JOT_F32, JOT_U8, JOT_F16};
    if (is_derivable(k) || (k->kind & PROGRAM_LARGE && !chance(k, 4)))
        return real_of(k->kind);
    return chance(k, 2) ? likely[draw(k, 6)] : (jot_dtype)draw(k, DTYPE_COUNT);
}

static int64_t draw_length(struct maker *k)
{
    static const int64_t lengths[] = {300, 1024, 2048, 4099, 16384, 20000, 65537, 300000};
    return lengths[draw(k, 8)];
}

static int64_t draw_side(struct maker *k)
{
    static const int64_t sides[] = {64, 20, 8, 3, 1, 2, 4, 7, 16, 33, 100, 128, 10};
    return sides[draw(k, 13)];
}

// Rows of few numbers each, matrices for them, and a number of each row, of which a program has one
// each; what it has beside them is mostly as long, or as wide.
static struct ir_type draw_large_type(struct maker *k, jot_dtype d, uint32_t i)
{
    int64_t length = chance(k, 6) ? draw_length(k) : k->length;
    int64_t side = chance(k, 4) ? draw_side(k) : k->side;
    switch (i < 3 ? i : draw(k, 5)) {
    case 0:
        return ir_type_make(k->m, d, 2, (int64_t[]){length, k->side});
    case 1:
        return ir_type_make(k->m, d, 2, (int64_t[]){k->side, side});
    case 2:
        return ir_type_make(k->m, d, 1, &length);
    case 3:
        return ir_type_make(k->m, d, 1, &side);
    default:
        return ir_type_make(k->m, d, 0, NULL);
    }
}

static struct ir_type draw_type(struct maker *k, jot_dtype d)
{
    static const int64_t extents[] = {1,  2,  3,  5,  7,   4,   13,  17,
                                      31, 64, 65, 67, 130, 300, 513, 1030};
    static const int64_t divisible[] = {6, 12, 2, 3, 5, 1};
    uint64_t n = k->kind & PROGRAM_WIDE ? 16 : 13;
    int64_t dims[4], count = 1;
    if (k->kind & PROGRAM_WIDE && chance(k, 4)) {
        // Few long rows, whose folds are shared.
        dims[0] = 1 + (int64_t)draw(k, 3);
        dims[1] = 32760 + (int64_t)draw(k, 2000);
        return ir_type_make(k->m, d, 2, dims);
    }
    int rank = (int)draw(k, 4);
    for (int i = 0; i < rank; i++) {
        dims[i] = k->kind & PROGRAM_PIECES ? divisible[draw(k, 6)]
                                           : extents[draw(k, i == 0 ? n : n - 6)];
        if (count * dims[i] > k->most)
            dims[i] = 2;
        count *= dims[i];
    }
    if (rank && chance(k, 40))
        dims[draw(k, (uint64_t)rank)] = 0;
    if (rank == 1 && chance(k, 60))
        dims[0] = 4097 + (int64_t)draw(k, 70);
    return ir_type_make(k->m, d, rank, dims);
}

static struct ir_type draw_param_type(struct maker *k, uint32_t i)
{
    jot_dtype d = k->kind & PROGRAM_LARGE && i < 3 ? real_of(k->kind) : draw_dtype(k);
    struct ir_type t = k->kind & PROGRAM_LARGE ? draw_large_type(k, d, i) : draw_type(k, d);
    return k->kind & PROGRAM_LANES ? varying(k, t) : t;
}

ir_id constant(struct maker *k, jot_dtype d)
{
    static const double values[] = {0, 1, 2, -1, 0.5, 3, -0.0};
    double x = values[draw(k, 7)];
    if (d == JOT_BOOL || dtype_is_unsigned(d))
        x = fabs(x) > 1 && d == JOT_BOOL ? 1 : fabs(x);
    return ir_scalar(&k->b, d, x);
}

ir_id as_dtype(struct maker *k, ir_id x, jot_dtype d)
{
    return dtype_in(k, x) == d ? x : ir_convert(&k->b, x, d);
}

// -- Nodes ------------------------------------------------------------------------------------

static ir_id make_hint(struct maker *k)
{
    ir_id x = pick(k);
    if (chance(k, 3))
        return ir_build(&k->b, IR_barrier, 1, &x, NULL);
    return chance(k, 3) ? ir_variable(&k->b, x) : ir_neg(&k->b, as_dtype(k, x, draw_dtype(k)));
}

static ir_id make_node(struct maker *k)
{
    if (k->kind & PROGRAM_LANES && chance(k, 3))
        return make_collective(k);
    if (k->kind & PROGRAM_PIECES && chance(k, 3))
        return make_pieces(k);
    if (k->kind & PROGRAM_LOOPS && chance(k, 3))
        return make_bodies(k);
    if (k->kind & PROGRAM_LOOPS && k->depth && chance(k, 4))
        return make_indices_map(k);
    if (k->kind & PROGRAM_LARGE && chance(k, 2))
        return chance(k, 3) ? make_indices_map(k) : chance(k, 3) ? make_dot(k) : make_layer(k);
    switch (draw(k, 19)) {
    case 18:
        return k->kind & PROGRAM_PIECES && !is_derivable(k) ? make_map(k) : make_library(k);
    case 16:
    case 17:
        return make_indices_map(k);
    case 0:
    case 1:
    case 2:
        return make_layout(k);
    case 3:
    case 4:
        return make_fold(k, IR_CLASS_REDUCE);
    case 5:
        return make_fold(k, IR_CLASS_CUMULATIVE);
    case 6:
        return is_derivable(k) ? make_dot(k) : make_fold(k, IR_CLASS_ARG);
    case 7:
        return make_dot(k);
    case 8:
        return make_bodies(k);
    case 9:
        return make_hint(k);
    default:
        return make_map(k);
    }
}

// A check that holds of every value, NaN as well: an effect wherever it stands.
static void make_check(struct maker *k)
{
    ir_id x = pick(k);
    ir_check(&k->b, ir_or(&k->b, ir_eq(&k->b, x, x), ir_ne(&k->b, x, x)), 0, NULL, "eq or ne",
             "random");
}

static void make_record(struct maker *k)
{
    record_build(&k->b, (int64_t)draw(k, 1000), pick(k));
}

// -- Programs ---------------------------------------------------------------------------------

// A value of the type; of moderate size when derivatives are to be taken of many trips.
static ir_id value_of(struct maker *k, struct ir_type t)
{
    uint32_t n = k->pool.count, first = (uint32_t)draw(k, n);
    for (uint32_t i = 0; i < n; i++) {
        ir_id v = k->pool.at[(first + i) % n];
        if (ir_type_equal(type_in(k, v), t))
            return is_derivable(k) && dtype_is_float(ir_dtype(t)) ? ir_sin(&k->b, v) : v;
    }
    return ir_zeros(&k->b, t);
}

static void add_outputs(struct maker *k, const struct signature *signature, uint64_t n_more)
{
    for (uint32_t i = 0; i < signature->n_results; i++)
        ir_output(&k->b, signature->from && signature->from[i] != IR_NONE
                             ? k->pool.at[signature->from[i]]
                             : value_of(k, signature->results[i]));
    for (uint64_t i = 0; i < n_more; i++)
        ir_output(&k->b, i ? pick(k) : vec_last(&k->pool));
}

static uint32_t make_stretched(struct ir_module *m, uint64_t seed, unsigned kind, int depth,
                               const struct signature *signature, uint64_t n_more,
                               int64_t stretch)
{
    struct maker k = {.b = ir_builder_make(m, depth ? "part" : "program", IR_BUILD_PLAIN),
                      .m = m,
                      .state = hash_mix(seed),
                      .kind = kind,
                      .depth = depth,
                      .most = kind & PROGRAM_LARGE  ? INT64_C(1) << 26
                              : kind & PROGRAM_WIDE ? 105000
                                                    : 700};
    k.length = draw_length(&k) + stretch;
    k.side = draw_side(&k);
    const struct ir_type *types = signature->types;
    uint32_t n_params = types ? signature->n_types : 1 + (uint32_t)draw(&k, 3);
    if (!types && kind & PROGRAM_LARGE)
        n_params += 2;
    for (uint32_t i = 0; i < n_params; i++)
        vec_push(m->arena, &k.pool, ir_param(&k.b, types ? types[i] : draw_param_type(&k, i)));
    if (n_params == 0)
        vec_push(m->arena, &k.pool, constant(&k, draw_dtype(&k)));
    uint64_t wanted = depth ? 1 + draw(&k, 4) : 2 + draw(&k, MOST_NODES - 2);
    for (uint64_t made = 0, attempts = 0; made < wanted && attempts < 100; attempts++) {
        ir_id v = make_node(&k);
        if (k.b.status != JOT_OK)
            return IR_NONE;
        if (v == IR_NONE)
            continue;
        vec_push(m->arena, &k.pool, v);
        made++;
        if (chance(&k, 16) && !(kind & PROGRAM_LARGE))
            make_check(&k);
        if (kind & PROGRAM_RECORDS && chance(&k, depth ? 3 : 6))
            make_record(&k);
    }
    add_outputs(&k, signature, n_more);
    return ir_finish_function(&k.b);
}

uint32_t make_function(struct ir_module *m, uint64_t seed, unsigned kind, int depth,
                       const struct signature *signature, uint64_t n_more)
{
    return make_stretched(m, seed, kind, depth, signature, n_more, 0);
}

uint32_t program_make(struct ir_module *m, uint64_t seed, unsigned kind)
{
    return program_make_stretched(m, seed, kind, 0);
}

uint32_t program_make_stretched(struct ir_module *m, uint64_t seed, unsigned kind,
                                int64_t stretch)
{
    for (uint64_t i = 0;; i++) {
        struct signature any = {0};
        uint64_t n = 1 + hash_mix(seed) % 3;
        if (kind & (PROGRAM_LANES | PROGRAM_PIECES))
            name_axes(m);
        uint32_t f = make_stretched(m, seed + (i << 48), kind, 0, &any, n, stretch);
        if (f != IR_NONE && kind & PROGRAM_LANES)
            f = shard_program(m, f);
        if (f != IR_NONE)
            return f;
    }
}

struct ir_tensor *program_inputs(struct ir_module *m, const struct ir_graph *g, uint64_t seed,
                                 unsigned kind)
{
    static const double specials[] = {-0.0, NAN, -0.0, INFINITY, -0.0, -INFINITY, 0, 1e300};
    struct ir_tensor *in = arena_array(m->arena, struct ir_tensor, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++) {
        uint64_t state = hash_combine(seed, i);
        in[i] = opcase_draw(m, ir_type_of(g, i), "ANY", &state);
        jot_dtype d = ir_dtype_of(g, i);
        int64_t n = ir_count(m, in[i].type);
        bool is_wild = !(kind & PROGRAM_DERIVABLE) && opcase_random(&state) < 0.5;
        for (int64_t at = 0; is_wild && at < n; at++) {
            double x = specials[(int)(opcase_random(&state) * 8)];
            if (opcase_random(&state) > 0.2)
                continue;
            if (d == JOT_F64)
                ((double *)in[i].data)[at] = x;
            else if (d == JOT_F32)
                ((float *)in[i].data)[at] = (float)x;
        }
    }
    return in;
}
