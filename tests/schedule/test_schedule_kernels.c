// SPDX-License-Identifier: Apache-2.0
// What should be one kernel is one kernel.
#include "schedule_examples.h"

static struct nest_program *check_example(uint32_t f, uint32_t steps)
{
    struct nest_program *p = schedule(f);
    check_program(f, p);
    require_of(p->steps.count == steps, "it has another number of steps", f, p);
    return p;
}

START_TEST(softmax_is_one_kernel)
{
    struct nest_program *p = check_example(example_softmax(2048, 2048), 1);
    const struct nest *n = p->nests.at[0];
    ck_assert_uint_eq(count_kind(n, NEST_FOLD), 2);
    ck_assert_uint_eq(count_kind(n, NEST_MAP), 1);
    ck_assert_uint_eq(count_loads(p, 0, 0), 2); // the row of exponentials is kept
    ck_assert_uint_eq(count_ops(n, IR_exp), 1);
    check_small(example_softmax(70, 500));
    check_small(example_softmax(3, 5));
}
END_TEST

// Of dear values that are made of each other a fold and a result want the last: the one row.
START_TEST(rows_are_read)
{
    struct nest_program *p = check_example(example_dear_sums(16384, 64), 1);
    const struct nest *n = p->nests.at[0];
    ck_assert_uint_eq(count_ops(n, IR_tanh) + count_ops(n, IR_atan), 3);
    ck_assert_uint_eq(n->buffers.count, 4);
    check_small(example_dear_sums(130, 7));
}
END_TEST

// What a fold computes and a result wants is put where it is computed, not computed again.
START_TEST(results_are_put_in_folds)
{
    int64_t rows[] = {4096, 5};
    for (int i = 0; i < 2; i++) {
        struct ir_builder b = begin("put");
        ir_id x = ir_param(&b, F32(rows[i], 3, 24)), y = ir_param(&b, F32(rows[i], 3, 24));
        ir_id d = ir_sub(&b, x, y), e = ir_exp(&b, ir_mul(&b, d, d));
        ir_output(&b, ir_reduce(&b, IR_reduce_sum, e, AXES(1, 2)));
        ir_output(&b, d);
        ir_output(&b, e);
        // A sum that lies otherwise in memory than it is computed.
        ir_output(&b, ir_transpose(&b, d, (int64_t[]){2, 1, 0}));
        uint32_t f = finish(&b);
        struct nest_program *p = schedule(f);
        const struct nest *n = p->nests.at[0];
        require_of(count_ops(n, IR_exp) == 1 && count_kind(n, NEST_MAP) <= 1, "again", f, p);
        for (uint32_t k = 0; k < n->buffers.count; k++)
            require_of(n->buffers.at[k].role != NEST_LOCAL, "a row", f, p);
        check_small(f);
    }
}
END_TEST

START_TEST(softmax_gradient_is_one_kernel)
{
    struct nest_program *p = check_example(example_softmax_gradient(2048, 2048), 1);
    ck_assert_uint_eq(count_ops(p->nests.at[0], IR_exp), 1);
    check_small(example_softmax_gradient(70, 500));
    check_small(example_softmax_gradient(4, 9));
}
END_TEST

START_TEST(layer_norm_is_one_kernel)
{
    check_example(example_layer_norm(2048, 2048), 1);
    check_example(example_layer_norm_gradient(2048, 2048), 1);
    check_small(example_layer_norm(70, 500));
    check_small(example_layer_norm_gradient(70, 500));
}
END_TEST

START_TEST(chain_and_mean_are_one_kernel)
{
    struct nest_program *p = check_example(example_chain_mean(1000), 1);
    const struct nest *n = p->nests.at[0];
    ck_assert_uint_eq(count_kind(n, NEST_FOLD), 1);
    ck_assert_uint_eq(count_kind(n, NEST_PAR), 0);
    check_small(example_chain_mean(70));
}
END_TEST

START_TEST(energy_gradient_reads_once)
{
    struct nest_program *p = check_example(example_energy_gradient(100000, 100), 1);
    const struct nest *n = p->nests.at[0];
    ck_assert_uint_eq(count_kind(n, NEST_FOLD),
                      2); // over samples; both products of a row in one
    ck_assert_uint_eq(count_kind(n, NEST_MAP), 1);
    ck_assert_uint_eq(count_loads(p, 0, 2), 2); // in the products, and in the results
    check_small(example_energy_gradient(5000, 10));
    check_small(example_energy_gradient(10, 4));
}
END_TEST

// Rows do not read a large matrix each for itself.
START_TEST(few_rows_share_a_matrix)
{
    check_example(example_softmax_of_layer(4, 512, 512), 2);
    check_example(example_softmax_of_layer(1, 512, 512), 2);
    check_example(example_softmax_of_layer(4, 64, 64), 1);
    check_example(example_softmax_of_layer(2048, 1, 16384), 1); // no larger than a row
    check_small(example_softmax_of_layer(3, 200, 100));
}
END_TEST

START_TEST(reductions_are_one_kernel)
{
    for (int axis = -1; axis < 2; axis++) {
        check_example(example_reduce(IR_reduce_sum, 4096, 4096, axis), 1);
        check_small(example_reduce(IR_reduce_sum, 130, 333, axis));
    }
    check_example(example_reduce(IR_argmax, 4096, 4096, 1), 1);
    check_small(example_reduce(IR_argmax, 130, 333, 1));
    check_small(example_reduce(IR_reduce_sum, 20000, 3, 0));
    check_small(example_reduce(IR_reduce_sum, 3, 20000, 0));
}
END_TEST

START_TEST(index_changes_are_free)
{
    check_example(example_transpose_add(4096), 1);
    check_small(example_transpose_add(100));
    check_example(example_vmap_dot(10000, 4), 1);
    check_small(example_vmap_dot(10000, 4));
    check_example(example_heat(256, 1), 1);
    check_example(example_heat(256, 3), 3);
    check_small(example_heat(30, 3));
    check_example(example_lattice(256), 1);
    check_small(example_lattice(20));
    check_small(example_rosenbrock_hessian(40));
}
END_TEST

START_TEST(library_products)
{
    struct nest_program *p = check_example(example_matmul_bias_relu(1024), 2);
    ck_assert_int_eq(p->steps.at[0].kind, NEST_STEP_GEMM);
    p = check_example(example_per_sample(4096, 64), 2);
    ck_assert_int_eq(p->steps.at[0].kind, NEST_STEP_GEMM);
    // Threads of a GPU make the product where they store what it is for.
    p = schedule_with(example_per_sample(4096, 64),
                      &(struct schedule_options){.rich_gemm = true, .many_lanes = true});
    ck_assert_uint_eq(p->steps.count, 1);
    ck_assert_int_eq(p->steps.at[0].kind, NEST_STEP_KERNEL);
    check_small(example_matmul_bias_relu(40));
    check_small(example_per_sample(40, 40));
    check_small(example_mlp_step(64, 48));
}
END_TEST

START_TEST(prefix_sums)
{
    check_example(example_cumsum(1 << 20), 1);
    check_small(example_cumsum(5000));
}
END_TEST

START_TEST(pairs)
{
    // Both sums in one loop, nothing of the size of all pairs, no root for each coordinate.
    struct nest_program *p = check_example(example_nbody_gradient(1024), 1);
    ck_assert_uint_eq(p->arena_bytes, 0);
    ck_assert_uint_eq(count_ops(p->nests.at[0], IR_sqrt), 2);
    p = schedule_with(example_nbody_gradient(4096),
                      &(struct schedule_options){
                          .no_accumulation = true, .one_loop = true, .many_lanes = true});
    ck_assert_uint_eq(p->arena_bytes, 0);
    check_small(example_nbody_gradient(60));
    check_small(example_nbody_gradient(130));
}
END_TEST

// Sums of columns, squared and added up.
static uint32_t columns_norm(int64_t rows, int64_t columns)
{
    struct ir_builder b = begin("columns");
    ir_id sums = ir_reduce(&b, IR_reduce_sum, ir_param(&b, F32(rows, columns)), AXES(0));
    ir_output(&b, sum_all(&b, ir_mul(&b, sums, sums)));
    return finish(&b);
}

// What a core does alone is several kernels of a GPU when it takes one block of threads long.
START_TEST(one_block_does_little)
{
    const struct schedule_options gpu = {.no_accumulation = true};
    ck_assert_uint_eq(schedule_with(example_softmax(1, 1000), &gpu)->steps.count, 1);
    ck_assert_uint_gt(schedule_with(example_softmax(1, 30000), &gpu)->steps.count, 1);
    check_example(example_softmax(1, 30000), 1);
    // Each thread would make all of a sum that is inside of another.
    ck_assert_uint_eq(schedule_with(columns_norm(64, 10), &gpu)->steps.count, 1);
    ck_assert_uint_eq(schedule_with(columns_norm(65, 10), &gpu)->steps.count, 2);
    check_example(columns_norm(65, 10), 1);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, softmax_is_one_kernel);
    tcase_add_test(t, rows_are_read);
    tcase_add_test(t, results_are_put_in_folds);
    tcase_add_test(t, softmax_gradient_is_one_kernel);
    tcase_add_test(t, layer_norm_is_one_kernel);
    tcase_add_test(t, chain_and_mean_are_one_kernel);
    tcase_add_test(t, energy_gradient_reads_once);
    tcase_add_test(t, few_rows_share_a_matrix);
    tcase_add_test(t, reductions_are_one_kernel);
    tcase_add_test(t, index_changes_are_free);
    tcase_add_test(t, library_products);
    tcase_add_test(t, one_block_does_little);
    tcase_add_test(t, prefix_sums);
    tcase_add_test(t, pairs);
}

int main(void) { return support_run("schedule kernels", add_tests); }
