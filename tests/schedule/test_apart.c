// SPDX-License-Identifier: Apache-2.0
// Values apart by a price: fusion never loses.
#include "schedule_examples.h"

#include "ir/cost.h"

#define MUCH (16 * COST_ALONE)

static bool has_op(const struct nest *n, enum ir_op op)
{
    nest_for_all (s, n)
        if (s->kind == NEST_OP && s->op == op)
            return true;
    return false;
}

static bool has_loop(const struct nest *n, enum nest_kind kind)
{
    nest_for_all (s, n)
        if (s->kind == kind)
            return true;
    return false;
}

static uint32_t count_buffers(const struct nest *n, enum nest_role role)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->buffers.count; i++)
        count += n->buffers.at[i].role == role;
    return count;
}

// Functions in folds take long.
static int64_t price_of_functions(struct nest *n)
{
    return has_op(n, IR_tanh) && has_loop(n, NEST_FOLD) ? MUCH : MUCH / 8;
}

// They are worth it.
static int64_t price_of_kernels(struct nest *n)
{
    return has_op(n, IR_tanh) && has_loop(n, NEST_FOLD) ? MUCH : MUCH * 3 / 4;
}

// Two results of one loop do.
static int64_t price_of_results(struct nest *n)
{
    return count_buffers(n, NEST_OUT) > 1 ? MUCH : MUCH / 8;
}

static uint32_t largest_of_functions(void)
{
    struct ir_builder b = begin("largest");
    ir_id x = ir_param(&b, F32(300, 20));
    ir_output(&b, ir_reduce(&b, IR_reduce_max, ir_map1(&b, IR_tanh, x), 1, (int64_t[]){1}));
    return finish(&b);
}

static struct nest_program *check_steps(uint32_t f, int64_t (*price)(struct nest *n),
                                        uint32_t steps)
{
    struct nest_program *p = schedule_with(f, &(struct schedule_options){.price = price});
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
    require_of(p->steps.count == steps, "it has another number of steps", f, p);
    return p;
}

START_TEST(dear_kernels_are_split)
{
    uint32_t f = largest_of_functions();
    check_steps(f, NULL, 1);
    struct nest_program *p = check_steps(f, price_of_functions, 2);
    for (uint32_t i = 0; i < p->nests.count; i++)
        require_of(price_of_functions(p->nests.at[i]) < MUCH, "a dear kernel", f, p);
}
END_TEST

// Others stay whole, and what gains less than the bound.
START_TEST(others_are_whole) { check_steps(largest_of_functions(), price_of_kernels, 1); }
END_TEST

START_TEST(results_are_split)
{
    struct ir_builder b = begin("results");
    ir_id x = ir_param(&b, F32(300, 20));
    ir_output(&b, ir_map1(&b, IR_tanh, x));
    ir_output(&b, ir_map1(&b, IR_exp, x));
    uint32_t f = finish(&b);
    check_steps(f, NULL, 1);
    check_steps(f, price_of_results, 2);
}
END_TEST

// What a GPU takes: functions in a loop beside another one.
static int64_t price_on_gpu(const struct nest *n)
{
    uint32_t functions = 0;
    nest_for_all (s, n)
        functions += s->kind == NEST_OP && s->op == IR_tanh;
    return COST_SPLIT_NS * (int64_t)functions;
}

static int64_t price_of_nothing(const struct nest *n)
{
    (void)n;
    return COST_SPLIT_NS;
}

// A result that a fold takes as well, whose loop makes it once more: the fold reads it where it is put.
START_TEST(gpus_read_what_is_put)
{
    struct ir_builder b = begin("read");
    ir_id x = ir_param(&b, F32(6, 50000)); // more than a block keeps
    ir_id y = ir_map1(&b, IR_tanh, x);
    ir_output(&b, y);
    ir_output(&b, ir_reduce(&b, IR_reduce_sum, y, 1, (int64_t[]){1}));
    uint32_t f = finish(&b);
    for (int i = 0; i < 2; i++) {
        struct nest_program *p = schedule_with(
            f, &(struct schedule_options){.gpu_price = i ? price_on_gpu : price_of_nothing,
                                          .many_lanes = true,
                                          .one_loop = true,
                                          .no_accumulation = true});
        int64_t price = 0;
        for (uint32_t k = 0; k < p->steps.count; k++)
            price += price_on_gpu(p->nests.at[p->steps.at[k].nest]);
        require_of(price == COST_SPLIT_NS * (i ? 1 : 2), "functions", f, p);
        check_program(f, p);
        check_run(f, p, draw_inputs(f, seed));
    }
}
END_TEST

// Kernels of equal values are priced once, in bodies of loops as well.
static uint32_t n_priced;
static int64_t price_counted(struct nest *n)
{
    n_priced++;
    return price_of_functions(n);
}

START_TEST(equal_kernels_are_priced_once)
{
    uint32_t priced[2];
    for (int many = 0; many < 2; many++) {
        struct ir_builder b = begin("layers");
        int layers = many ? 6 : 3;
        ir_id x[6];
        for (int i = 0; i < layers; i++)
            x[i] = ir_param(&b, F32(300, 20));
        for (int i = 0; i < layers; i++)
            ir_output(&b, ir_reduce(&b, IR_reduce_max, ir_map1(&b, IR_tanh, x[i]), 1,
                                    (int64_t[]){1}));
        n_priced = 0;
        check_steps(finish(&b), price_counted, 2 * (uint32_t)layers);
        priced[many] = n_priced;
    }
    // All of the program is priced twice: two kernels for each more, and one.
    ck_assert_uint_le(priced[1] - priced[0], 3 * 3);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, dear_kernels_are_split);
    tcase_add_test(t, others_are_whole);
    tcase_add_test(t, results_are_split);
    tcase_add_test(t, gpus_read_what_is_put);
    tcase_add_test(t, equal_kernels_are_priced_once);
}

int main(void) { return support_run("apart", add_tests); }
