// SPDX-License-Identifier: Apache-2.0
#include "control_support.h"

const struct program control_programs[CONTROL_PROGRAMS] = {
    {"a const, a carry, rows in and out",
     "jot ir 1\n"
     "function @0(%a: f64[], %x: f64[], %s: f64[]) {\n"
     "  %p = mul %a, %x : f64[]\n"
     "  %q = sin %p : f64[]\n"
     "  %y = add %q, %s : f64[]\n"
     "  %z = mul %y, %x : f64[]\n"
     "  return %y, %z\n"
     "}\n"
     "function @1 f(%a: f64[], %x: f64[], %s: f64[5]) {\n"
     "  %y, %z = scan %a, %x, %s {reverse=0, length=5, n_consts=1, n_carry=1, functions=[@0]} "
     ": "
     "f64[], f64[5]\n"
     "  return %y, %z\n"
     "}\n"},
    {"carry k feeds carry k + 1, and the last is all that is read",
     "jot ir 1\n"
     "function @0(%a: f64[2], %x: f64[2], %y: f64[2], %z: f64[2], %w: f64[2]) {\n"
     "  %p = sin %a : f64[2]\n"
     "  %q = cos %z : f64[2]\n"
     "  %r = mul %q, %a : f64[2]\n"
     "  return %p, %x, %y, %r\n"
     "}\n"
     "function @1 f(%a: f64[2], %x: f64[2], %y: f64[2], %z: f64[2], %w: f64[2]) {\n"
     "  %1, %2, %3, %4 = scan %a, %x, %y, %z, %w {reverse=1, length=6, n_consts=1, n_carry=4, "
     "functions=[@0]} : f64[2], f64[2], f64[2], f64[2]\n"
     "  return %4\n"
     "}\n"},
    {"carries that trade places, one of them unused, and a count",
     "jot ir 1\n"
     "function @0(%i: i32[], %x: f64[3], %y: f64[3], %u: f64[2]) {\n"
     "  %one = const {data=1} : i32[]\n"
     "  %j = add %i, %one : i32[]\n"
     "  %f = convert %j {dtype=f64} : f64[]\n"
     "  %p = mul %f, %x : f64[3]\n"
     "  %q = sin %p : f64[3]\n"
     "  return %j, %y, %q, %u, %f\n"
     "}\n"
     "function @1 f(%i: i32[], %x: f64[3], %y: f64[3], %u: f64[2]) {\n"
     "  %1, %2, %3, %4, %5 = scan %i, %x, %y, %u {reverse=0, length=4, n_consts=0, n_carry=4, "
     "functions=[@0]} : i32[], f64[3], f64[3], f64[2], f64[4]\n"
     "  return %2, %3, %5, %1\n"
     "}\n"},
    {"no trips",
     "jot ir 1\n"
     "function @0(%a: f64[2], %x: f64[2], %s: f64[2]) {\n"
     "  %p = mul %x, %a : f64[2]\n"
     "  %q = mul %p, %s : f64[2]\n"
     "  return %q, %p\n"
     "}\n"
     "function @1 f(%a: f64[2], %x: f64[2], %s: f64[0,2]) {\n"
     "  %1, %2 = scan %a, %x, %s {reverse=0, length=0, n_consts=1, n_carry=1, functions=[@0]} "
     ": "
     "f64[2], f64[0,2]\n"
     "  return %1, %2\n"
     "}\n"},
    {"a carry that the body sets without reading it, rows that are not read",
     "jot ir 1\n"
     "function @0(%a: f64[], %x: f64[], %z: f64[], %s: f64[], %t: f64[2]) {\n"
     "  %zero = const {data=0} : f64[]\n"
     "  %p = mul %a, %s : f64[]\n"
     "  return %p, %zero, %x\n"
     "}\n"
     "function @1 f(%a: f64[], %x: f64[], %z: f64[], %s: f64[3], %t: f64[3,2]) {\n"
     "  %1, %2, %3 = scan %a, %x, %z, %s, %t {reverse=1, length=3, n_consts=1, n_carry=2, "
     "functions=[@0]} : f64[], f64[], f64[3]\n"
     "  return %1, %2, %3\n"
     "}\n"},
    {"residuals that are a carry before and after the trip, and of a const",
     "jot ir 1\n"
     "function @0(%a: f64[2], %x: f64[2]) {\n"
     "  %b = cos %a : f64[2]\n"
     "  %p = mul %b, %x : f64[2]\n"
     "  %n = neg %p : f64[2]\n"
     "  %m = sin %n : f64[2]\n"
     "  %y = exp %m : f64[2]\n"
     "  return %y\n"
     "}\n"
     "function @1 f(%a: f64[2], %x: f64[2]) {\n"
     "  %1 = scan %a, %x {reverse=0, length=4, n_consts=1, n_carry=1, functions=[@0]} : "
     "f64[2]\n"
     "  return %1\n"
     "}\n"},
    {"a scan in a scan",
     "jot ir 1\n"
     "function @0(%a: f64[3,3], %w: f64[], %x: f64[3]) {\n"
     "  %p = dot_general %a, %x {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
     "rhs_batch=[], "
     "precision=0} : f64[3]\n"
     "  %c = const {data=0.2} : f64[]\n"
     "  %d = mul %c, %p : f64[3]\n"
     "  %q = sin %d : f64[3]\n"
     "  %v = cos %w : f64[]\n"
     "  %r = mul %q, %v : f64[3]\n"
     "  return %r\n"
     "}\n"
     "function @1(%a: f64[3,3], %x: f64[3], %s: f64[3]) {\n"
     "  %w = reduce_sum %s {axes=[0]} : f64[]\n"
     "  %y = scan %a, %w, %x {reverse=0, length=2, n_consts=2, n_carry=1, functions=[@0]} : "
     "f64[3]\n"
     "  %z = add %y, %s : f64[3]\n"
     "  return %z, %w\n"
     "}\n"
     "function @2 f(%a: f64[3,3], %x: f64[3], %s: f64[4,3]) {\n"
     "  %1, %2 = scan %a, %x, %s {reverse=0, length=4, n_consts=1, n_carry=1, functions=[@1]} "
     ": "
     "f64[3], f64[4]\n"
     "  return %1, %2\n"
     "}\n"},
    {"three branches with other residuals",
     "jot ir 1\n"
     "function @0(%x: f64[2], %y: f64[]) {\n"
     "  %p = sin %x : f64[2]\n"
     "  %q = mul %p, %y : f64[2]\n"
     "  %r = reduce_sum %q {axes=[0]} : f64[]\n"
     "  return %q, %r\n"
     "}\n"
     "function @1(%x: f64[2], %y: f64[]) {\n"
     "  %p = exp %y : f64[]\n"
     "  return %x, %p\n"
     "}\n"
     "function @2(%x: f64[2], %y: f64[]) {\n"
     "  %p = const {data=[1, 2]} : f64[2]\n"
     "  %q = const {data=3} : f64[]\n"
     "  return %p, %q\n"
     "}\n"
     "function @3 f(%i: i32[], %x: f64[2], %y: f64[]) {\n"
     "  %p, %q = cond %i, %x, %y {functions=[@0, @1, @2]} : f64[2], f64[]\n"
     "  return %p, %q\n"
     "}\n"},
    {"a scan in a bounded while in a branch",
     "jot ir 1\n"
     "function @0(%a: f64[], %x: f64[], %s: f64[]) {\n"
     "  %b = sin %a : f64[]\n"
     "  %p = mul %b, %x : f64[]\n"
     "  %q = sin %p : f64[]\n"
     "  %r = add %q, %s : f64[]\n"
     "  return %r\n"
     "}\n"
     "function @1 test(%a: f64[], %s: f64[3], %i: i32[], %x: f64[]) {\n"
     "  %n = const {data=3} : i32[]\n"
     "  %p = lt %i, %n : bool[]\n"
     "  return %p\n"
     "}\n"
     "function @2 step(%a: f64[], %s: f64[3], %i: i32[], %x: f64[]) {\n"
     "  %one = const {data=1} : i32[]\n"
     "  %j = add %i, %one : i32[]\n"
     "  %y = scan %a, %x, %s {reverse=0, length=3, n_consts=1, n_carry=1, functions=[@0]} : "
     "f64[]\n"
     "  return %j, %y\n"
     "}\n"
     "function @3(%i: i32[], %a: f64[], %x: f64[], %s: f64[3]) {\n"
     "  %j, %y = while %a, %s, %i, %x {n_consts=2, max_trips=14, functions=[@1, @2]} : i32[], "
     "f64[]\n"
     "  return %y\n"
     "}\n"
     "function @4(%i: i32[], %a: f64[], %x: f64[], %s: f64[3]) {\n"
     "  %y = mul %a, %x : f64[]\n"
     "  return %y\n"
     "}\n"
     "function @5 f(%i: i32[], %a: f64[], %x: f64[], %s: f64[3]) {\n"
     "  %y = cond %i, %i, %a, %x, %s {functions=[@3, @4]} : f64[]\n"
     "  return %y\n"
     "}\n"},
    {"a while without a bound",
     "jot ir 1\n"
     "function @0 test(%a: f64[], %x: f64[], %n: f64[]) {\n"
     "  %m = const {data=40} : f64[]\n"
     "  %p = lt %n, %m : bool[]\n"
     "  return %p\n"
     "}\n"
     "function @1 step(%a: f64[], %x: f64[], %n: f64[]) {\n"
     "  %b = sin %a : f64[]\n"
     "  %p = mul %b, %x : f64[]\n"
     "  %q = sin %p : f64[]\n"
     "  %s = mul %q, %q : f64[]\n"
     "  %one = const {data=1} : f64[]\n"
     "  %t = add %s, %one : f64[]\n"
     "  %m = add %n, %t : f64[]\n"
     "  return %q, %m\n"
     "}\n"
     "function @2 f(%a: f64[], %x: f64[], %n: f64[]) {\n"
     "  %y, %m = while %a, %x, %n {n_consts=1, slots=4, functions=[@0, @1]} : f64[], f64[]\n"
     "  return %y, %m\n"
     "}\n"},
};

uint64_t inexact_bits(uint32_t f)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < graph(f)->n_params; i++)
        bits |= (uint64_t)inexact(ir_type_of(graph(f), i)) << i;
    return bits;
}

struct ir_tensor *draw_inputs(uint32_t f, uint64_t *state)
{
    uint32_t n = graph(f)->n_params;
    struct ir_tensor *x = arena_array(module->arena, struct ir_tensor, n + 1);
    for (uint32_t i = 0; i < n; i++)
        x[i] = draw(ir_type_of(graph(f), i), state);
    return x;
}

void check_derivatives(const char *what, uint32_t f, const bool *mask, uint64_t *state)
{
    struct ir_tensor *x = draw_inputs(f, state);
    check_differences(what, f, mask, x, state);
    check_transpose(what, f, mask, x, state);
    check_simplify(what, f, x);
}

int count_op(uint32_t f, enum ir_op op)
{
    int n = 0;
    ir_for_each_node (graph(f), node)
        n += node->op == op;
    return n;
}

const struct ir_node *find_op(uint32_t f, enum ir_op op)
{
    ir_for_each_node (graph(f), node)
        if (node->op == op)
            return node;
    ck_abort_msg("no %s in\n%s", ir_op_get(op)->name, ir_graph_text(graph(f)));
    return NULL;
}
