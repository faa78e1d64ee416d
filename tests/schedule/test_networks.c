// SPDX-License-Identifier: Apache-2.0
// Derivatives of networks of any width, depth and number of points: the work of their kernels is that
// of their graphs, and the code is as long as these.
#include "networks.h"

#include "ir/cost.h"
#include "schedule/kernels/points.h"
#include "support/nest_work.h"
#include "support/sample.h"

// A kernel may compute as much again as it computes anyway, and COST_STEP; arithmetic of a few ops is
// computed wherever it is wanted.
static void check_work(const struct network *w, int64_t most, uint32_t f,
                       const struct nest_program *p)
{
    int64_t graph_does = graph_work(graph(f)), steps = (int64_t)p->steps.count;
    int64_t work = nest_program_work(p), statements = nest_program_statements(p);
    int64_t nodes = (int64_t)graph(f)->nodes.count;
    char what[300];
    snprintf(what, sizeof what,
             "network %d, %d inputs, width %d, depth %d, %d points, seed %" PRIu64
             ": work %" PRId64 " of %" PRId64 ", %" PRId64 " statements of %" PRId64 " nodes",
             (int)w->kind, (int)w->inputs, (int)w->width, (int)w->depth, (int)w->points,
             w->seed, work, graph_does, statements, nodes);
    require_of(work <= most * graph_does + 2 * COST_STEP * steps, what, f, p);
    require_of(statements <= 6 * nodes, what, f, p);
}

static void check_network(const struct network *w, int64_t most)
{
    uint32_t f = network_of(w);
    struct nest_program *p = schedule(f);
    check_program(f, p);
    check_work(w, most, f, p);
    if (graph_work(graph(f)) < 20000)
        check_run(f, p, draw_inputs(f, seed));
}

START_TEST(plain_networks)
{
    static const int64_t points[] = {1, 2, 7, 32, 100, 255, 256, 1000, 2000};
    static const int64_t widths[] = {1, 2, 3, 4, 5, 7, 8, 12, 16};
    uint64_t i = seed;
    for (int64_t inputs = 1; inputs <= 2; inputs++)
        for (int64_t depth = 1; depth < NETWORK_LAYERS; depth++)
            for (int k = 0; k < 81; k++)
                if (sample_takes(i++, 7))
                    check_network(&(struct network){(enum network_kind)_i, inputs,
                                                    widths[k / 9], depth, points[k % 9], 0},
                                  4);
}
END_TEST

START_TEST(random_networks)
{
    uint64_t state = seed + (uint64_t)_i;
    for (int i = 0; i < 100; i++) {
        struct random_program r = {.state = state + (uint64_t)i * 1000};
        struct network w = {.kind = (enum network_kind)_i, .seed = r.state};
        w.inputs = 1 + random_below(&r, 2);
        w.width = 1 + random_below(&r, 16);
        w.depth = 1 + random_below(&r, NETWORK_LAYERS - 1);
        w.points = 1 + random_below(&r, random_below(&r, 2) ? 40 : 2000);
        check_network(&w, 4);
    }
}
END_TEST

// All products of the gradients over many points are in one kernel, and so many kernels are beside it.
static const struct {
    enum network_kind kind;
    uint32_t beside;
} gradients[] = {{NETWORK_GRADIENT, 0}, {NETWORK_PRODUCT, 2}, {NETWORK_RESIDUAL, 5}};
enum { GRADIENTS = sizeof gradients / sizeof *gradients };

START_TEST(one_kernel_over_points)
{
    static const struct schedule_options devices[] = {
        {0}, {.no_accumulation = true, .one_loop = true, .many_lanes = true}};
    for (int k = 0; k < 6; k++) {
        int64_t width = 8 << k / 2;
        uint32_t f = network_of(&(struct network){gradients[_i].kind, 2, width, 2, 7500, 0});
        struct nest_program *p = schedule_with(f, &devices[k % 2]);
        uint32_t over_points = 0;
        for (uint32_t i = 0; i < p->steps.count; i++)
            over_points += p->steps.at[i].kind == NEST_STEP_KERNEL &&
                           points_is_network(p->nests.at[p->steps.at[i].nest]);
        require_of(over_points == 1, "not one kernel over the points", f, p);
        require_of(p->steps.count <= 1 + gradients[_i].beside, "more kernels", f, p);
    }
}
END_TEST

// Layers that nothing is summed behind: of few points a GPU's threads are too few for one each.
START_TEST(layers_of_few_points)
{
    static const struct schedule_options gpu = {.one_loop = true};
    static const struct {
        int points;
        bool is_gpu;
        uint32_t products;
    } rows[] = {{1024, false, 0}, {1024, true, 2}, {40000, true, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct strbuf text = strbuf_make(module->arena);
        int n = rows[i].points;
        strbuf_printf(&text,
                      "jot ir 1\n"
                      "function @0 f(%%x: f32[%d,8], %%v: f32[8,20], %%w: f32[20,20]) {\n"
                      "  %%a = dot_general %%x, %%v {lhs_contract=[1], rhs_contract=[0], "
                      "lhs_batch=[], rhs_batch=[]} : f32[%d,20]\n"
                      "  %%b = tanh %%a : f32[%d,20]\n"
                      "  %%c = dot_general %%b, %%w {lhs_contract=[1], rhs_contract=[0], "
                      "lhs_batch=[], rhs_batch=[]} : f32[%d,20]\n"
                      "  %%d = tanh %%c : f32[%d,20]\n"
                      "  return %%d\n"
                      "}\n",
                      n, n, n, n, n);
        uint32_t f = parse(text.text), products = 0;
        struct nest_program *p =
            schedule_with(f, rows[i].is_gpu ? &gpu : &(struct schedule_options){0});
        for (uint32_t k = 0; k < p->steps.count; k++)
            products += p->steps.at[k].kind == NEST_STEP_GEMM;
        require_of(products == rows[i].products, "not so many products", f, p);
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, layers_of_few_points);
    tcase_add_loop_test(t, one_kernel_over_points, 0, GRADIENTS);
    tcase_add_loop_test(t, plain_networks, 0, NETWORK_KINDS);
    tcase_add_loop_test(t, random_networks, 0, NETWORK_KINDS);
}

int main(void) { return support_run("networks", add_tests); }
