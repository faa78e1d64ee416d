// SPDX-License-Identifier: Apache-2.0
// Kernels over the points of a network: its products add up there, and their factors are read.
#include "control_schedule.h"
#include "nest/nest_support.h"
#include "support/sample.h"

// The sum of squares of what two layers make of 300 rows.
static const char network[] =
    "jot ir 1\n"
    "function @0 net(%0: f64[300,8], %1: f64[8,20], %2: f64[20], %3: f64[20,8]) {\n"
    "  %4 = dot_general %0, %1 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f64[300,20]\n"
    "  %5 = broadcast_in_dim %2 {dims=[300, 20], axes=[1]} : f64[300,20]\n"
    "  %6 = add %4, %5 : f64[300,20]\n"
    "  %7 = tanh %6 : f64[300,20]\n"
    "  %8 = dot_general %7, %3 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f64[300,8]\n"
    "  %9 = mul %8, %8 : f64[300,8]\n"
    "  %10 = reduce_sum %9 {axes=[0, 1]} : f64[]\n"
    "  return %10\n"
    "}\n";

// The statements in the loop that accumulates products, which stand before the put.
static void only_loads_before(const struct nest *n, const struct nest_block *b, uint32_t put)
{
    for (uint32_t i = 0; i < put; i++) {
        enum nest_kind kind = n->statements.at[b->statements.at[i]].kind;
        ck_assert_msg(kind == NEST_LOAD || kind == NEST_PUT,
                      "a factor is made for each product\n%s", print_nest(module->arena, n));
    }
}

static int count_products(const struct nest *n)
{
    int products = 0;
    for (uint32_t k = 0; k < n->blocks.count; k++) {
        const struct nest_block *b = &n->blocks.at[k];
        for (uint32_t i = 0; i < b->statements.count; i++) {
            const struct nest_statement *s = &n->statements.at[b->statements.at[i]];
            if (s->kind != NEST_PUT || s->op != IR_fma)
                continue;
            only_loads_before(n, b, i);
            products++;
        }
    }
    return products;
}

// Results of the program against those of the function: sums over points in two orders.
static void close_program(uint32_t f, const struct nest_program *p, double tolerance)
{
    const struct ir_graph *g = graph(f);
    struct ir_tensor *in = draw_inputs(f, seed), *want = evaluate(f, in);
    void *inputs[8], *outputs[8];
    for (uint32_t i = 0; i < g->n_params; i++)
        inputs[i] = in[i].data;
    for (uint32_t i = 0; i < g->outputs.count; i++)
        outputs[i] = arena_allocate(module->arena, tensor_bytes(want[i].type) + 16);
    require(nest_program_eval(p, inputs, outputs));
    for (uint32_t i = 0; i < g->outputs.count; i++)
        ck_assert_double_le(distance((struct ir_tensor){want[i].type, outputs[i]}, want[i]),
                            tolerance);
}

// Both gradients of weights are products whose factors are read, and the numbers are right.
START_TEST(products_over_points)
{
    uint32_t f = simplified(backward(parse(network)));
    struct nest_program *p = schedule(f);
    check_program(f, p);
    int products = 0;
    for (uint32_t i = 0; i < p->nests.count; i++)
        if (count_kind(p->nests.at[i], NEST_CONTRACT))
            products += count_products(p->nests.at[i]);
    require_of(products == 2, "not two products over points", f, p);
    close_program(f, p, 1e-11); // of 300 points
}
END_TEST

// A product over points of what is in memory stays the library's, beside layers of the same points.
START_TEST(products_of_memory_stay)
{
    uint32_t f = simplified(parse(
        "jot ir 1\n"
        "function @0 net(%0: f64[300,8], %1: f64[8,20], %2: f64[300,20], %3: f64[20,8]) {\n"
        "  %4 = dot_general %0, %1 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
        "rhs_batch=[], precision=0} : f64[300,20]\n"
        "  %5 = tanh %4 : f64[300,20]\n"
        "  %6 = dot_general %5, %3 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
        "rhs_batch=[], precision=0} : f64[300,8]\n"
        "  %7 = dot_general %0, %2 {lhs_contract=[0], rhs_contract=[0], lhs_batch=[], "
        "rhs_batch=[], precision=0} : f64[8,20]\n"
        "  %8 = dot_general %0, %5 {lhs_contract=[0], rhs_contract=[0], lhs_batch=[], "
        "rhs_batch=[], precision=0} : f64[8,20]\n"
        "  return %6, %7, %8\n"
        "}\n"));
    struct nest_program *p = schedule(f);
    check_program(f, p);
    int library = 0, products = 0;
    for (uint32_t i = 0; i < p->steps.count; i++)
        library += p->steps.at[i].kind == NEST_STEP_GEMM;
    for (uint32_t i = 0; i < p->nests.count; i++)
        products += count_products(p->nests.at[i]);
    require_of(library == 1 && products == 1, "not one product by the library", f, p);
    close_program(f, p, 1e-11);
}
END_TEST

// Three layers, the first from `in` numbers, the last to `out`, and the gradient in their weights.  A
// product with a side below 8 is no library's: it comes as sums of columns over the points.
static const char three_layers[] =
    "jot ir 1\n"
    "function @0 net(%%0: f64[%d,%d], %%1: f64[%d,16], %%2: f64[16,16], %%3: f64[16,%d]) {\n"
    "  %%4 = dot_general %%0, %%1 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f64[%d,16]\n"
    "  %%5 = tanh %%4 : f64[%d,16]\n"
    "  %%6 = dot_general %%5, %%2 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f64[%d,16]\n"
    "  %%7 = tanh %%6 : f64[%d,16]\n"
    "  %%8 = dot_general %%7, %%3 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f64[%d,%d]\n"
    "  %%9 = mul %%8, %%8 : f64[%d,%d]\n"
    "  %%10 = reduce_sum %%9 {axes=[0, 1]} : f64[]\n"
    "  return %%10\n"
    "}\n";

// Sums of products in blocks of nothing else.
static int count_pure_products(const struct nest *n)
{
    int products = 0;
    for (uint32_t k = 0; k < n->blocks.count; k++) {
        const struct nest_block *b = &n->blocks.at[k];
        int puts = 0, others = 0;
        for (uint32_t i = 0; i < b->statements.count; i++) {
            const struct nest_statement *s = &n->statements.at[b->statements.at[i]];
            puts += s->kind == NEST_PUT && s->op == IR_fma;
            others += s->kind != NEST_LOAD && s->kind != NEST_PUT;
        }
        products += others ? 0 : puts;
    }
    return products;
}

// How many sums of products are in the kernel over the points, whose numbers are right.
static int check_sides(int n, int in, int out)
{
    char text[2048];
    snprintf(text, sizeof text, three_layers, n, in, in, out, n, n, n, n, n, out, n, out);
    uint32_t f;
    require(pass_vjp(module, parse(text), mask_of(4, 0xe), &f));
    f = simplified(f);
    struct nest_program *p = schedule(f);
    close_program(f, p, 1e-11 * n);
    int products = 0;
    for (uint32_t i = 0; i < p->nests.count; i++)
        if (count_kind(p->nests.at[i], NEST_CONTRACT))
            products += count_pure_products(p->nests.at[i]);
    return products;
}

// Points that end before a block of 512, with it, and behind it.
START_TEST(products_of_any_sides)
{
    static const int points[] = {257, 301, 511, 512, 513, 1025};
    for (int i = 0; i < 17 * 17; i++) {
        int in = 1 + i % 17, out = 1 + i / 17, n = points[i % 6];
        if (!sample_takes((uint64_t)i, 8))
            continue;
        int products = check_sides(n, in, out);
        ck_assert_msg(in < 4 || out < 8 || products == 3, "%d points, %d in, %d out: %d sums",
                      n, in, out, products);
    }
}
END_TEST

// A carry of points that is made anew in its place is read before it is written: it is no local.
static const char overwritten[] =
    "jot ir 1\n"
    "function @0 part(%0: f32[8,8], %1: f32[1024,8], %2: f32[1024,8]) {\n"
    "  %3 = dot_general %1, %0 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f32[1024,8]\n"
    "  %4 = tanh %3 : f32[1024,8]\n"
    "  %5 = dot_general %4, %0 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f32[1024,8]\n"
    "  %6 = dot_general %1, %5 {lhs_contract=[0], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f32[8,8]\n"
    "  %7 = dot_general %5, %6 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f32[1024,8]\n"
    "  %8 = reduce_max %2 {axes=[1]} : f32[1024]\n"
    "  %9 = broadcast_in_dim %8 {dims=[1024, 8], axes=[0]} : f32[1024,8]\n"
    "  %10 = max %9, %5 : f32[1024,8]\n"
    "  return %7, %10\n"
    "}\n"
    "function @1 program(%0: f32[8,8], %1: f32[1024,8], %2: f32[1024,8]) {\n"
    "  %3, %4 = scan %0, %1, %2 "
    "{reverse=0, length=3, n_consts=1, n_carry=2, functions=[@0]} : f32[1024,8], f32[1024,8]\n"
    "  return %3, %4\n"
    "}\n";

START_TEST(what_is_overwritten_is_read_first)
{
    uint32_t f = parse(overwritten);
    check_program(f, schedule(f));
}
END_TEST

// A minimum over the points at an index that is data: its loop stands behind another one over the points
// in the same kernel, and reads what the layers make of all of them.
static const char looked_up[] =
    "jot ir 1\n"
    "function @0 net(%0: f64[20000,8], %1: f64[8,8], %2: f64[8,8], %3: i32[1,1]) {\n"
    "  %4 = dot_general %0, %1 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f64[20000,8]\n"
    "  %5 = dot_general %4, %2 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f64[20000,8]\n"
    "  %6 = reduce_min %5 {axes=[0]} : f64[8]\n"
    "  %7 = slice %6 {starts=[2], limits=[6], strides=[1]} : f64[4]\n"
    "  %8 = gather %7, %3 {offset_dims=[], collapsed_dims=[0], operand_batch=[], "
    "index_batch=[], index_map=[0], sizes=[1], mode=2} : f64[1]\n"
    "  return %8\n"
    "}\n";

START_TEST(what_is_looked_up_is_of_all_points)
{
    uint32_t f = simplified(parse(looked_up));
    struct nest_program *p = schedule(f);
    check_program(f, p);
    close_program(f, p, 1e-11);
}
END_TEST

// Columns that begin with what is made of other sums over the points, and sum over them then.
static const char sums_of_sums[] =
    "jot ir 1\n"
    "function @0 net(%0: f64[300,2], %1: f64[300,8], %2: f64[8,20], %3: f64[20,20], %4: "
    "f64[2]) {\n"
    "  %5 = dot_general %1, %2 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f64[300,20]\n"
    "  %6 = tanh %5 : f64[300,20]\n"
    "  %7 = dot_general %6, %3 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f64[300,20]\n"
    "  %8 = reduce_sum %7 {axes=[0]} : f64[20]\n"
    "  %9 = reduce_sum %6 {axes=[0]} : f64[20]\n"
    "  %10 = add %8, %9 : f64[20]\n"
    "  %11 = dot_general %0, %7 {lhs_contract=[0], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f64[2,20]\n"
    "  %12 = dot_general %0, %6 {lhs_contract=[0], rhs_contract=[0], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f64[2,20]\n"
    "  %13 = add %11, %12 : f64[2,20]\n"
    "  %14 = dot_general %4, %10 {lhs_contract=[], rhs_contract=[], lhs_batch=[], "
    "rhs_batch=[], precision=0} : f64[2,20]\n"
    "  %15 = add %13, %14 : f64[2,20]\n"
    "  return %15\n"
    "}\n";

START_TEST(sums_that_begin_with_sums)
{
    uint32_t f = simplified(parse(sums_of_sums));
    struct nest_program *p = schedule(f);
    check_program(f, p);
    for (uint32_t i = 0; i < p->nests.count; i++)
        require_of(!count_kind(p->nests.at[i], NEST_FOLD) ||
                       count_kind(p->nests.at[i], NEST_CONTRACT),
                   "sums over points outside of their kernel", f, p);
    close_program(f, p, 1e-11);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, products_over_points);
    tcase_add_test(t, products_of_memory_stay);
    tcase_add_test(t, products_of_any_sides);
    tcase_add_test(t, what_is_overwritten_is_read_first);
    tcase_add_test(t, what_is_looked_up_is_of_all_points);
    tcase_add_test(t, sums_that_begin_with_sums);
}

int main(void) { return support_run("points", add_tests); }
