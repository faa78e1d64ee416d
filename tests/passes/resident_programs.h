// SPDX-License-Identifier: Apache-2.0
// Loops and branches that are single kernels, alone and under transforms.
#ifndef TESTS_RESIDENT_PROGRAMS_H
#define TESTS_RESIDENT_PROGRAMS_H

#include "schedule_random.h"

#include "ir/control.h"

#include <string.h>

struct resident_program {
    const char *name, *text;
    bool has_while; // without a bound: reverse mode is several loops
};

static const struct resident_program programs[] = {
    {"a spring: rows out, a const, a count and a flag",
     "jot ir 1\n"
     "function @0(%k: f32[], %x: f32[], %v: f32[], %i: i32[], %b: bool[]) {\n"
     "  %h = const {data=0.01} : f32[]\n"
     "  %p = mul %k, %x : f32[]\n"
     "  %n = neg %p : f32[]\n"
     "  %w = fma %h, %n, %v : f32[]\n"
     "  %y = fma %h, %w, %x : f32[]\n"
     "  %one = const {data=1} : i32[]\n"
     "  %j = add %i, %one : i32[]\n"
     "  %c = not %b : bool[]\n"
     "  %z = select %b, %y, %w : f32[]\n"
     "  return %y, %w, %j, %c, %z, %i\n"
     "}\n"
     "function @1 f(%k: f32[], %x: f32[], %v: f32[], %i: i32[], %b: bool[]) {\n"
     "  %1, %2, %3, %4, %5, %6 = scan %k, %x, %v, %i, %b {reverse=0, length=7, n_consts=1, "
     "n_carry=4, functions=[@0]} : f32[], f32[], i32[], bool[], f32[7], i32[7]\n"
     "  return %1, %2, %3, %4, %5, %6\n"
     "}\n",
     false},
    {"carry k feeds carry k + 1, rows in and out, from the end",
     "jot ir 1\n"
     "function @0(%a: f64[2], %x: f64[2], %y: f64[2], %z: f64[2], %s: f64[2], %t: f64[]) {\n"
     "  %p = sin %a : f64[2]\n"
     "  %q = cos %z : f64[2]\n"
     "  %r = mul %q, %s : f64[2]\n"
     "  %u = add %r, %t : f64[2]\n"
     "  return %p, %x, %y, %u, %t\n"
     "}\n"
     "function @1 f(%a: f64[2], %x: f64[2], %y: f64[2], %z: f64[2], %s: f64[6,2], %t: f64[6]) "
     "{\n"
     "  %1, %2, %3, %4, %5 = scan %a, %x, %y, %z, %s, %t {reverse=1, length=6, n_consts=1, "
     "n_carry=3, functions=[@0]} : f64[2], f64[2], f64[2], f64[6,2], f64[6]\n"
     "  return %1, %2, %3, %4, %5\n"
     "}\n",
     false},
    {"carries that trade places, and no trips",
     "jot ir 1\n"
     "function @0(%i: i32[], %x: f32[3], %y: f32[3], %u: u32[2]) {\n"
     "  %one = const {data=1} : i32[]\n"
     "  %j = add %i, %one : i32[]\n"
     "  %f = convert %j {dtype=f32} : f32[]\n"
     "  %p = mul %f, %x : f32[3]\n"
     "  return %j, %y, %p, %u\n"
     "}\n"
     "function @1 f(%i: i32[], %x: f32[3], %y: f32[3], %u: u32[2]) {\n"
     "  %1, %2, %3, %4 = scan %i, %x, %y, %u {reverse=0, length=5, n_consts=0, n_carry=4, "
     "functions=[@0]} : i32[], f32[3], f32[3], u32[2]\n"
     "  %5, %6, %7, %8 = scan %1, %2, %3, %4 {reverse=0, length=0, n_consts=0, n_carry=4, "
     "functions=[@0]} : i32[], f32[3], f32[3], u32[2]\n"
     "  return %5, %6, %7, %8\n"
     "}\n",
     false},
    {"a small matrix and a vector: products, sums, places",
     "jot ir 1\n"
     "function @0(%a: f32[3,3], %x: f32[3], %i: i32[]) {\n"
     "  %p = dot_general %a, %x {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
     "rhs_batch=[], precision=0} : f32[3]\n"
     "  %s = reduce_sum %p {axes=[0]} : f32[]\n"
     "  %m = reduce_max %p {axes=[0]} : f32[]\n"
     "  %t = tanh %s : f32[]\n"
     "  %q = sub %p, %m : f32[3]\n"
     "  %u = slice %q {starts=[1], limits=[3], strides=[1]} : f32[2]\n"
     "  %v = slice %x {starts=[0], limits=[1], strides=[1]} : f32[1]\n"
     "  %c = concatenate %u, %v {axis=0} : f32[3]\n"
     "  %r = rev %c {axes=[0]} : f32[3]\n"
     "  %e = tanh %r : f32[3]\n"
     "  %d = dynamic_slice %e, %i {sizes=[1]} : f32[1]\n"
     "  %g = dynamic_update_slice %e, %v, %i : f32[3]\n"
     "  %w = cumsum %g {axis=0, reverse=0} : f32[3]\n"
     "  %k = argmax %w {axis=0, dtype=i32} : i32[]\n"
     "  %h = mul %w, %t : f32[3]\n"
     "  %z = tanh %h : f32[3]\n"
     "  return %z, %k, %d\n"
     "}\n"
     "function @1 f(%a: f32[3,3], %x: f32[3], %i: i32[]) {\n"
     "  %1, %2, %3 = scan %a, %x, %i {reverse=0, length=6, n_consts=1, n_carry=2, "
     "functions=[@0]} : f32[3], i32[], f32[6,1]\n"
     "  return %1, %2, %3\n"
     "}\n",
     false},
    {"a vector that is looped over",
     "jot ir 1\n"
     "function @0(%a: f64[20,20], %b: f64[20], %x: f64[20]) {\n"
     "  %p = dot_general %a, %x {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
     "rhs_batch=[], precision=0} : f64[20]\n"
     "  %q = add %p, %b : f64[20]\n"
     "  %r = tanh %q : f64[20]\n"
     "  %s = reduce_sum %r {axes=[0]} : f64[]\n"
     "  %t = mul %r, %s : f64[20]\n"
     "  %u = tanh %t : f64[20]\n"
     "  %v = rev %u {axes=[0]} : f64[20]\n"
     "  return %v, %s\n"
     "}\n"
     "function @1 f(%a: f64[20,20], %b: f64[20], %x: f64[20]) {\n"
     "  %1, %2 = scan %a, %b, %x {reverse=0, length=4, n_consts=2, n_carry=1, "
     "functions=[@0]} : f64[20], f64[4]\n"
     "  return %1, %2\n"
     "}\n",
     false},
    {"a scan in a scan, whose rows are read",
     "jot ir 1\n"
     "function @0(%a: f64[], %w: f64[], %x: f64[2], %s: f64[]) {\n"
     "  %p = mul %a, %x : f64[2]\n"
     "  %q = sin %p : f64[2]\n"
     "  %r = add %q, %w : f64[2]\n"
     "  %y = mul %s, %x : f64[2]\n"
     "  return %r, %y\n"
     "}\n"
     "function @1(%a: f64[], %x: f64[2], %s: f64[3]) {\n"
     "  %w = reduce_sum %s {axes=[0]} : f64[]\n"
     "  %n = cos %s : f64[3]\n"
     "  %y, %r = scan %a, %w, %x, %n {reverse=1, length=3, n_consts=2, n_carry=1, "
     "functions=[@0]} : f64[2], f64[3,2]\n"
     "  %z = reduce_sum %r {axes=[0]} : f64[2]\n"
     "  %v = add %z, %y : f64[2]\n"
     "  %u = sin %v : f64[2]\n"
     "  return %u, %r\n"
     "}\n"
     "function @2 f(%a: f64[], %x: f64[2], %s: f64[4,3]) {\n"
     "  %1, %2 = scan %a, %x, %s {reverse=0, length=4, n_consts=1, n_carry=1, functions=[@1]} "
     ": f64[2], f64[4,3,2]\n"
     "  return %1, %2\n"
     "}\n",
     false},
    {"three branches in a loop",
     "jot ir 1\n"
     "function @0(%x: f64[2], %y: f64[]) {\n"
     "  %p = sin %x : f64[2]\n"
     "  %q = mul %p, %y : f64[2]\n"
     "  %r = reduce_sum %q {axes=[0]} : f64[]\n"
     "  return %q, %r\n"
     "}\n"
     "function @1(%x: f64[2], %y: f64[]) {\n"
     "  %p = tanh %y : f64[]\n"
     "  return %x, %p\n"
     "}\n"
     "function @2(%x: f64[2], %y: f64[]) {\n"
     "  %p = const {data=[1, 2]} : f64[2]\n"
     "  return %p, %y\n"
     "}\n"
     "function @3(%i: i32[], %x: f64[2], %y: f64[]) {\n"
     "  %p, %q = cond %i, %x, %y {functions=[@0, @1, @2]} : f64[2], f64[]\n"
     "  %one = const {data=1} : i32[]\n"
     "  %j = add %i, %one : i32[]\n"
     "  return %j, %p, %q\n"
     "}\n"
     "function @4 f(%i: i32[], %x: f64[2], %y: f64[]) {\n"
     "  %1, %2, %3 = scan %i, %x, %y {reverse=0, length=4, n_consts=0, n_carry=3, "
     "functions=[@3]} : i32[], f64[2], f64[]\n"
     "  return %1, %2, %3\n"
     "}\n",
     false},
    {"a branch alone",
     "jot ir 1\n"
     "function @0(%x: f64[3], %y: f64[]) {\n"
     "  %p = sin %x : f64[3]\n"
     "  %q = mul %p, %y : f64[3]\n"
     "  return %q, %y\n"
     "}\n"
     "function @1(%x: f64[3], %y: f64[]) {\n"
     "  %q = tanh %y : f64[]\n"
     "  return %x, %q\n"
     "}\n"
     "function @2 f(%i: i32[], %x: f64[3], %y: f64[]) {\n"
     "  %p, %q = cond %i, %x, %y {functions=[@0, @1]} : f64[3], f64[]\n"
     "  return %p, %q\n"
     "}\n",
     false},
    {"a while whose trips depend on data, with a scan in it",
     "jot ir 1\n"
     "function @0 test(%a: f64[], %x: f64[], %n: f64[], %i: i32[]) {\n"
     "  %m = const {data=4} : f64[]\n"
     "  %p = lt %n, %m : bool[]\n"
     "  %k = const {data=20} : i32[]\n"
     "  %q = lt %i, %k : bool[]\n"
     "  %r = and %p, %q : bool[]\n"
     "  return %r\n"
     "}\n"
     "function @1(%a: f64[], %x: f64[]) {\n"
     "  %b = sin %a : f64[]\n"
     "  %p = add %b, %x : f64[]\n"
     "  return %p\n"
     "}\n"
     "function @2 step(%a: f64[], %x: f64[], %n: f64[], %i: i32[]) {\n"
     "  %q = scan %a, %x {reverse=0, length=2, n_consts=1, n_carry=1, functions=[@1]} : f64[]\n"
     "  %c = sin %q : f64[]\n"
     "  %s = mul %c, %c : f64[]\n"
     "  %m = add %n, %s : f64[]\n"
     "  %one = const {data=1} : i32[]\n"
     "  %j = add %i, %one : i32[]\n"
     "  return %c, %m, %j\n"
     "}\n"
     "function @3 f(%a: f64[], %x: f64[], %n: f64[], %i: i32[]) {\n"
     "  %y, %m, %j = while %a, %x, %n, %i {n_consts=1, functions=[@0, @2]} : f64[], f64[], "
     "i32[]\n"
     "  return %y, %m, %j\n"
     "}\n",
     true},
    {"a while in a scan, over a vector",
     "jot ir 1\n"
     "function @0 test(%x: f64[3], %i: i32[]) {\n"
     "  %k = const {data=3} : i32[]\n"
     "  %q = lt %i, %k : bool[]\n"
     "  %s = reduce_sum %x {axes=[0]} : f64[]\n"
     "  %m = const {data=9} : f64[]\n"
     "  %p = lt %s, %m : bool[]\n"
     "  %r = and %p, %q : bool[]\n"
     "  return %r\n"
     "}\n"
     "function @1 step(%x: f64[3], %i: i32[]) {\n"
     "  %y = rev %x {axes=[0]} : f64[3]\n"
     "  %z = add %y, %x : f64[3]\n"
     "  %one = const {data=1} : i32[]\n"
     "  %j = add %i, %one : i32[]\n"
     "  return %z, %j\n"
     "}\n"
     "function @2(%x: f64[3], %i: i32[]) {\n"
     "  %y, %j = while %x, %i {n_consts=0, functions=[@0, @1]} : f64[3], i32[]\n"
     "  %z = sin %y : f64[3]\n"
     "  %zero = const {data=0} : i32[]\n"
     "  return %z, %zero, %j\n"
     "}\n"
     "function @3 f(%x: f64[3], %i: i32[]) {\n"
     "  %1, %2, %3 = scan %x, %i {reverse=0, length=3, n_consts=0, n_carry=2, functions=[@2]} "
     ": f64[3], i32[], i32[3]\n"
     "  return %1, %2, %3\n"
     "}\n",
     true},
    {"random numbers",
     "jot ir 1\n"
     "function @0(%k: u32[2], %x: f32[2]) {\n"
     "  %p = slice %k {starts=[0], limits=[1], strides=[1]} : u32[1]\n"
     "  %q = slice %k {starts=[1], limits=[2], strides=[1]} : u32[1]\n"
     "  %a = const {data=[3]} : u32[1]\n"
     "  %b, %c = threefry2x32 %p, %q, %a, %q : u32[1], u32[1]\n"
     "  %n = concatenate %b, %c {axis=0} : u32[2]\n"
     "  %f = convert %n {dtype=f32} : f32[2]\n"
     "  %s = const {data=0.0000000001} : f32[]\n"
     "  %g = mul %f, %s : f32[2]\n"
     "  %y = fma %g, %x, %x : f32[2]\n"
     "  return %n, %y\n"
     "}\n"
     "function @1 f(%k: u32[2], %x: f32[2]) {\n"
     "  %1, %2 = scan %k, %x {reverse=0, length=3, n_consts=0, n_carry=2, functions=[@0]} : "
     "u32[2], f32[2]\n"
     "  return %1, %2\n"
     "}\n",
     false},
};

enum { PROGRAMS = sizeof programs / sizeof programs[0], LANES = 70 };

static inline uint32_t simplified(uint32_t f)
{
    return pass_simplify(module, pass_inline(module, pass_simplify(module, f), 10000));
}

static inline uint32_t count_control(uint32_t f)
{
    uint32_t n = 0;
    ir_for_each_node (graph(f), node)
        n += ir_op_class((enum ir_op)node->op) == IR_CLASS_CONTROL;
    return n;
}

static inline uint32_t count_resident(const struct nest_program *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->steps.count; i++)
        n += p->steps.at[i].reason && strstr(p->steps.at[i].reason, "resident");
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

static inline uint64_t inexact_bits(uint32_t f)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < graph(f)->n_params; i++)
        bits |= (uint64_t)inexact(ir_type_of(graph(f), i)) << i;
    return bits;
}

static inline uint32_t forward(uint32_t f)
{
    uint32_t g;
    require(pass_jvp(module, f, mask_of(graph(f)->n_params, inexact_bits(f)), &g, NULL));
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
    for (int i = 1; i < 4; i++)
        out[i - 1] = ir_map1(&r.b, IR_tanh, fitted(&r, random_value(&r), in[i]));
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
