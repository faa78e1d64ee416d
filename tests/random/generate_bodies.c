// SPDX-License-Identifier: Apache-2.0
// Nodes of random programs that have bodies.
#include "ir/control.h"
#include "random/maker.h"
#include "random/record.h"

// A function of its own of values that are picked, or IR_NONE.
static uint32_t make_part(struct maker *k, const struct signature *signature, uint64_t n_more)
{
    uint32_t f = make_function(k->m, k->state, k->kind, k->depth + 1, signature, n_more);
    draw(k, 2);
    return f;
}

static void pick_operands(struct maker *k, uint32_t n, ir_id *in, struct ir_type *types)
{
    for (uint32_t i = 0; i < n; i++) {
        in[i] = pick(k);
        types[i] = type_in(k, in[i]);
    }
}

// The results after the first, too, can be picked.  There may be none.
static ir_id add_results(struct maker *k, ir_id v)
{
    if (v == IR_NONE || v == k->b.graph->values.count)
        return IR_NONE;
    for (uint32_t i = 1; i < ir_node_of(k->b.graph, v)->n_out; i++)
        vec_push(k->m->arena, &k->pool, v + i);
    return v;
}

// Says of some loops and branches that results are parameters, from `first` on, that are swapped;
// some operands become others of these, for there to be several of a type.
static void draw_turns(struct maker *k, uint32_t first, uint32_t n, ir_id *in,
                       struct ir_type *types)
{
    for (uint32_t i = first + 1; i < first + n; i++)
        if (chance(k, 2)) {
            in[i] = in[first + draw(k, i - first)];
            types[i] = type_in(k, in[i]);
        }
}

// The next of the type of parameter `at`, or any, or the one itself.
static uint32_t turned(struct maker *k, uint32_t first, uint32_t n, uint32_t at,
                       const struct ir_type *types)
{
    uint32_t by = chance(k, 4) ? (uint32_t)draw(k, n) : 1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t to = first + (at - first + by + i) % n;
        if (ir_type_equal(types[to], types[at]))
            return to;
    }
    return at;
}

// By result, of the types of the n parameters from `first` on: all of them, or most, are turned.
static void draw_from(struct maker *k, uint32_t first, uint32_t n, const struct ir_type *types,
                      uint32_t *from)
{
    bool all = chance(k, 2);
    for (uint32_t i = 0; i < n; i++)
        from[i] = all || !chance(k, 3) ? turned(k, first, n, first + i, types) : IR_NONE;
}

static ir_id make_call(struct maker *k)
{
    uint32_t n = 1 + (uint32_t)draw(k, 2);
    ir_id in[2];
    struct ir_type types[2];
    pick_operands(k, n, in, types);
    uint32_t f =
        make_part(k, &(struct signature){.n_types = n, .types = types}, 1 + draw(k, 3));
    if (f == IR_NONE)
        return IR_NONE;
    enum ir_op op = chance(k, 3) ? IR_checkpoint : IR_call;
    return add_results(k, ir_call(&k->b, op, 1, &f, (int)n, in));
}

// Up to two consts, up to three carries, and rows of one value where its axis 0 is short.
static ir_id make_scan(struct maker *k)
{
    static const int64_t policies[] = {IR_CHECKPOINT_AUTO,
                                       IR_CHECKPOINT_AUTO,
                                       IR_CHECKPOINT_ALL,
                                       IR_CHECKPOINT_SQRT,
                                       IR_CHECKPOINT_SQRT,
                                       IR_CHECKPOINT_RECOMPUTE,
                                       1,
                                       2};
    struct ir_scan s = {.n_consts = (int)draw(k, 3),
                        .n_carry = (int)draw(k, 4),
                        .length = (int64_t)draw(k, 5),
                        .reverse = chance(k, 2),
                        .checkpoint = policies[draw(k, 8)]};
    uint32_t n = (uint32_t)(s.n_consts + s.n_carry);
    ir_id in[6];
    struct ir_type types[6];
    pick_operands(k, n, in, types);
    if (s.n_carry && chance(k, 3)) {
        in[s.n_consts] = ir_scalar_int(&k->b, JOT_I32, (int64_t)draw(k, 3));
        types[s.n_consts] = type_in(k, in[s.n_consts]);
    }
    uint32_t from[4], first = (uint32_t)s.n_consts, carries = (uint32_t)s.n_carry;
    bool turns = carries > 1 && chance(k, 3);
    if (turns) {
        draw_turns(k, first, carries, in, types);
        draw_from(k, first, carries, types, from);
    }
    ir_id rows = pick(k);
    struct ir_type t = type_in(k, rows);
    if (t.rank && ir_dims(k->m, t)[0] < 8) {
        s.length = ir_dims(k->m, t)[0];
        in[n] = rows;
        types[n++] = ir_type_row(k->m, t);
    }
    for (uint32_t i = 0; i < n; i++)
        if (ir_count(k->m, types[i]) > k->most / 8)
            return IR_NONE;
    struct signature signature = {.n_types = n,
                                  .types = types,
                                  .n_results = carries,
                                  .results = types + first,
                                  .from = turns ? from : NULL};
    s.body = make_part(k, &signature, draw(k, 3));
    if (s.body == IR_NONE)
        return IR_NONE;
    const struct ir_graph *body = ir_function(k->m, s.body);
    for (uint32_t i = 0; i < body->outputs.count; i++)
        if (ir_count(k->m, ir_type_of(body, body->outputs.at[i])) > k->most / 8)
            return IR_NONE;
    return add_results(k, ir_scan(&k->b, &s, (int)n, in));
}

// An index from the sign of a value, or an integer as it is.
static ir_id make_index(struct maker *k)
{
    ir_id x = pick(k);
    jot_dtype d = dtype_in(k, x);
    if (d == JOT_BOOL || dtype_is_complex(d) || count_in(k, x) == 0)
        return IR_NONE;
    int64_t axes[IR_MAX_RANK];
    for (int i = 0; i < IR_MAX_RANK; i++)
        axes[i] = i;
    x = ir_reduce(&k->b, IR_reduce_max, x, type_in(k, x).rank, axes);
    return d == JOT_I32 ? x
                        : ir_convert(&k->b, ir_lt(&k->b, x, ir_scalar(&k->b, d, 1)), JOT_I32);
}

// Whether a carry is small, all of it.
static ir_id make_limit(struct maker *k, struct ir_builder *b, ir_id x)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t axes[IR_MAX_RANK];
    for (int i = 0; i < IR_MAX_RANK; i++)
        axes[i] = i;
    ir_id small = ir_lt(b, x, ir_scalar(b, ir_dtype(t), 1 + (double)draw(k, 2)));
    return ir_reduce(b, IR_reduce_and, small, t.rank, axes);
}

// (count, carries) -> count < n, perhaps while a carry is small, and -> count + 1 and the carries
// of the part.
static void make_count(struct maker *k, uint32_t part, int64_t n, struct ir_while *out)
{
    const struct ir_graph *f = ir_function(k->m, part);
    struct ir_builder test = ir_builder_make(k->m, "test", IR_BUILD_PLAIN);
    struct ir_builder step = ir_builder_make(k->m, "step", IR_BUILD_PLAIN);
    ir_id in[5], y[5];
    for (uint32_t i = 0; i < f->n_params; i++) {
        in[i] = ir_param(&step, ir_type_of(f, i));
        ir_param(&test, ir_type_of(f, i));
    }
    ir_id goes_on = ir_lt(&test, 0, ir_scalar_int(&test, JOT_I32, n));
    if (f->n_params > 1 && dtype_is_float(ir_dtype_of(f, 1)) && chance(k, 3))
        goes_on = ir_and(&test, goes_on, make_limit(k, &test, 1));
    if (k->kind & PROGRAM_RECORDS && chance(k, 4))
        record_build(&test, (int64_t)draw(k, 1000), 0);
    ir_output(&test, goes_on);
    out->test = ir_finish_function(&test);
    ir_output(&step, ir_add(&step, in[0], ir_scalar_int(&step, JOT_I32, 1)));
    ir_inline(&step, f, in, y);
    for (uint32_t i = 0; i < f->outputs.count; i++)
        ir_output(&step, y[i]);
    out->body = ir_finish_function(&step);
}

// A few trips, by a count that may come from a value.
static ir_id make_while(struct maker *k)
{
    uint32_t n = 1 + (uint32_t)draw(k, 4);
    int64_t most = (int64_t)draw(k, 4);
    ir_id in[5];
    struct ir_type types[5];
    in[0] = chance(k, 2) ? make_index(k) : ir_scalar_int(&k->b, JOT_I32, 0);
    if (in[0] == IR_NONE)
        return IR_NONE;
    types[0] = type_in(k, in[0]);
    // Of i32 values there are all: none is so small that the loop is long.
    in[0] = ir_max(&k->b, in[0], ir_scalar_int(&k->b, JOT_I32, 0));
    pick_operands(k, n, in + 1, types + 1);
    uint32_t from[4];
    bool turns = n > 1 && chance(k, 3);
    if (turns) {
        draw_turns(k, 1, n, in, types);
        draw_from(k, 1, n, types, from);
    }
    struct signature signature = {.n_types = n + 1,
                                  .types = types,
                                  .n_results = n,
                                  .results = types + 1,
                                  .from = turns ? from : NULL};
    uint32_t part = make_part(k, &signature, 0);
    if (part == IR_NONE)
        return IR_NONE;
    bool is_bounded = chance(k, 2);
    struct ir_while l = {.max_trips = is_bounded ? most + (int64_t)draw(k, 2) : IR_NO_BOUND};
    if (!is_bounded)
        l.slots = (int64_t)draw(k, 5);
    make_count(k, part, most, &l);
    return add_results(k, ir_while(&k->b, &l, (int)n + 1, in));
}

static ir_id make_cond(struct maker *k)
{
    uint32_t n = 1 + (uint32_t)draw(k, 3), branches[3];
    int n_branches = 2 + chance(k, 3);
    ir_id in[4];
    struct ir_type types[4], results[4];
    in[0] = make_index(k);
    if (in[0] == IR_NONE)
        return IR_NONE;
    pick_operands(k, n, in + 1, types);
    struct signature signature = {.n_types = n, .types = types};
    uint32_t from[4];
    bool turns = n > 1 && chance(k, 3);
    if (turns) {
        draw_turns(k, 0, n, in + 1, types);
        signature.n_results = n;
        signature.results = types;
        signature.from = from;
    }
    for (int i = 0; i < n_branches; i++) {
        if (turns)
            draw_from(k, 0, n, types, from);
        branches[i] = make_part(k, &signature, i || turns ? 0 : 1 + draw(k, 3));
        if (branches[i] == IR_NONE)
            return IR_NONE;
        if (turns)
            continue;
        const struct ir_graph *first = ir_function(k->m, branches[0]);
        signature.n_results = first->outputs.count;
        for (uint32_t o = 0; o < first->outputs.count; o++)
            results[o] = ir_type_of(first, first->outputs.at[o]);
        signature.results = results;
    }
    return add_results(k, ir_cond(&k->b, n_branches, branches, (int)n + 1, in));
}

ir_id make_bodies(struct maker *k)
{
    bool are_loops = k->kind & PROGRAM_LOOPS;
    if (k->depth > (are_loops ? 2 : 1))
        return IR_NONE;
    switch (draw(k, are_loops ? 4 : 5)) {
    case 0:
        return make_scan(k);
    case 1:
        return make_cond(k);
    case 2:
        return make_while(k);
    default:
        return make_call(k);
    }
}
