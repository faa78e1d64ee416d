// SPDX-License-Identifier: Apache-2.0
// Scheduling: programs are right, and make nothing that is not wanted.
#include "schedule_random.h"

#include "ir/windows.h"

// ---- Every op

static void check_opcase(const struct opcase *c, const struct schedule_options *o)
{
    uint32_t f = opcase_function(module, c);
    struct nest_program *p = schedule_with(f, o);
    check_program(f, p);
    check_run(f, p, c->in);
}

static void check_opcases(const struct schedule_options *o, int d)
{
    struct opcases cases = opcases_make(module, (jot_dtype)d, seed);
    for (uint32_t i = 0; i < cases.count; i++)
        check_opcase(&cases.at[i], o);
}

START_TEST(every_op_runs_alone)
{
    check_opcases(&(struct schedule_options){.separate = true}, _i);
}
END_TEST

START_TEST(every_op_runs) { check_opcases(NULL, _i); }
END_TEST

START_TEST(every_gradient_runs)
{
    struct opcases cases = opcases_make(module, JOT_F64, seed);
    for (uint32_t i = 0; i < cases.count; i++) {
        uint32_t f = opcase_function(module, &cases.at[i]), back;
        bool wrt[OPCASE_OPERANDS] = {0};
        for (uint32_t k = 0; k < graph(f)->n_params; k++)
            wrt[k] = dtype_is_inexact(ir_dtype_of(graph(f), k));
        require(pass_vjp(module, f, wrt, &back));
        back = pass_simplify(module, pass_inline(module, back, 10000));
        struct ir_tensor *in = draw_inputs(back, seed + i);
        memcpy(in, cases.at[i].in, (size_t)cases.at[i].n_in * sizeof *in);
        struct nest_program *p = schedule_with(back, &(struct schedule_options){.large = _i});
        check_program(back, p);
        check_run(back, p, in);
    }
}
END_TEST

// ---- Programs

// Forces that have a dear weight for each pair, summed over both of the pair.
static uint32_t weighted_pairs(int64_t n)
{
    struct ir_builder b = begin("weighted_pairs");
    ir_id x = ir_param(&b, F32(n, 3)), a = ir_param(&b, F32(n, n));
    int64_t dims[] = {n, n, 3};
    ir_id d = ir_sub(&b, ir_broadcast_in_dim(&b, x, 3, dims, (int64_t[]){0, 2}),
                     ir_broadcast_in_dim(&b, x, 3, dims, (int64_t[]){1, 2}));
    ir_id e = ir_exp(&b, a), w = ir_neg(&b, ir_mul(&b, e, ir_div(&b, a, e)));
    w = ir_broadcast_in_dim(&b, w, 3, dims, (int64_t[]){0, 1});
    ir_id f = ir_add(&b, ir_mul(&b, w, d), ir_mul(&b, ir_mul(&b, d, d), w));
    ir_output(&b, ir_reduce(&b, IR_reduce_sum, f, AXES(0)));
    ir_output(&b, ir_reduce(&b, IR_reduce_sum, ir_neg(&b, f), AXES(1)));
    return finish(&b);
}

// Memory is given to the weights, which are a third of the forces, and to no operand of them.
START_TEST(narrow_values_are_stored)
{
    const int64_t n = 1024, weights = n * n * 4, sums = 4 * n * 3 * 4;
    uint32_t f = weighted_pairs(n);
    struct nest_program *p = schedule(f);
    check_program(f, p);
    require_of(p->arena_bytes <= (uint64_t)(weights + sums), "forces are stored", f, p);
    check_small(weighted_pairs(40));
}
END_TEST

// The gradient of running products holds numbers for each element, none for pairs of them.
START_TEST(running_products_hold_no_pairs)
{
    for (int axis = 0; axis < 2; axis++) {
        struct ir_builder b = begin("products");
        ir_id x = ir_param(&b, axis ? F32(2048, 16) : F32(16, 2048));
        ir_id y = ir_cumulative(&b, IR_cumprod, x, axis, false);
        ir_output(&b, sum_all(&b, ir_sin(&b, y)));
        uint32_t g;
        require(pass_grad(module, finish(&b), mask_of(1, 1), &g));
        g = pass_simplify(module, g);
        struct nest_program *p = schedule(g);
        require_of(p->arena_bytes <= 8 * 4 * 16 * 2048, "products", g, p);
    }
}
END_TEST

// Sines of sines, and the sums of their rows.
static uint32_t sines(int64_t rows, int64_t length)
{
    struct ir_builder b = begin("sines");
    ir_id y = ir_param(&b, F32(rows, length));
    for (int i = 0; i < 4; i++)
        y = ir_sin(&b, y);
    ir_output(&b, y);
    ir_output(&b, ir_reduce(&b, IR_reduce_sum, y, AXES(1)));
    return finish(&b);
}

// What is stored anyway is read, where no block of threads of a GPU keeps a row of it, rather than made twice.
START_TEST(long_rows_are_made_once)
{
    const struct schedule_options gpu = {
        .no_accumulation = true, .one_loop = true, .many_lanes = true};
    for (int is_long = 0; is_long < 2; is_long++) {
        struct nest_program *p = schedule_with(sines(16, is_long ? 1 << 17 : 512), &gpu);
        uint32_t made = 0;
        for (uint32_t i = 0; i < p->nests.count; i++)
            made += count_ops(p->nests.at[i], IR_sin);
        ck_assert_uint_eq(made, 4);
        ck_assert_uint_eq(p->steps.count, is_long ? 2 : 1);
    }
}
END_TEST

// Rows of x times their sums, x itself and the negative of it, side by side along the axis or, without
// one, one after the other in a vector; and the sum of it all.
static uint32_t joined_parts(jot_dtype d, int64_t rows, int axis, bool is_read)
{
    struct ir_builder b = begin("joined");
    int64_t dims[] = {rows, 20}, length = 20 * rows;
    ir_id x = ir_param(&b, type_of_dims(d, 2, dims));
    ir_id parts[] = {ir_mul(&b, x, along_rows(&b, IR_reduce_sum, x)), x, ir_neg(&b, x)};
    for (int i = 0; i < 3 && axis < 0; i++)
        parts[i] = ir_reshape(&b, parts[i], 1, &length);
    ir_id y = ir_concatenate(&b, 3, parts, axis < 0 ? 0 : axis);
    ir_output(&b, y);
    if (is_read)
        ir_output(&b, sum_all(&b, y));
    return finish(&b);
}

// Dear parts of a large array are computed once, where they belong.
START_TEST(parts_are_put_in_place)
{
    static const jot_dtype dtypes[] = {JOT_F64, JOT_F32, JOT_BF16, JOT_F16,
                                       JOT_I32, JOT_U8,  JOT_C64};
    for (int axis = -1; axis < 2; axis++) {
        uint32_t f = joined_parts(dtypes[_i], 100, axis, false);
        struct nest_program *p = schedule(f);
        uint32_t folds = 0;
        for (uint32_t i = 0; i < p->nests.count; i++)
            folds += count_kind(p->nests.at[i], NEST_FOLD);
        require_of(folds == 1 && p->arena_bytes == 0, "parts", f, p);
        check_program(f, p);
        check_run(f, p, draw_inputs(f, seed));
        for (int64_t rows = 1; rows < 2000; rows *= 33)
            check_small(joined_parts(dtypes[_i], rows, axis, true));
    }
}
END_TEST

// The rows of x from the first one of `by` on, the others behind.
static ir_id rolled(struct ir_builder *b, ir_id x, int64_t by)
{
    const int64_t *dims = ir_dims(module, ir_type_in(b, x));
    int64_t here[] = {by, 0}, zero[] = {0, 0}, until[] = {by, dims[1]};
    ir_id parts[] = {ir_slice(b, x, here, dims, NULL), ir_slice(b, x, zero, until, NULL)};
    return ir_concatenate(b, 2, parts, 0);
}

// Rows of a stencil that go around at the borders are read from where they are: no copy of them is made.
START_TEST(rolled_rows_are_read)
{
    int64_t dims[] = {300, 64};
    struct ir_builder b = begin("rolled");
    ir_id x = ir_param(&b, type_of_dims(JOT_F32, 2, dims)), e = ir_exp(&b, x);
    ir_id sides = ir_add(&b, rolled(&b, e, 1), rolled(&b, e, 299));
    ir_output(&b, ir_add(&b, ir_mul(&b, e, e), sides));
    uint32_t f = finish(&b);
    for (int large = 0; large < 2; large++) {
        struct schedule_options o = {.large = large};
        struct nest_program *p = schedule_with(f, &o);
        uint32_t parts = 0;
        for (uint32_t i = 0; i < p->nests.count; i++)
            for (uint32_t k = 0; k < p->nests.at[i]->buffers.count; k++)
                parts += p->nests.at[i]->buffers.at[k].role == NEST_PART;
        require_of(parts == 0 && p->steps.count <= 2, "copies of rows", f, p);
        check_program(f, p);
        check_run(f, p, draw_inputs(f, seed));
    }
}
END_TEST

// The gradient of the squares of the largest elements of windows of a plane.
static uint32_t pooled(int64_t n, int64_t stride)
{
    struct ir_builder b = begin("pooled");
    struct ir_axis_window w = {
        .size = 3, .stride = stride, .high = 1, .base = 1, .dilation = 1};
    w.count = (n - 2) / stride + 1;
    ir_id x = ir_param(&b, F32(n, n)), low = ir_scalar_like(&b, x, -INFINITY);
    ir_id y = ir_reduce(&b, IR_reduce_max,
                        ir_windows(&b, x, low, (struct ir_axis_window[]){w, w}, 2), AXES(2, 3));
    ir_output(&b, sum_all(&b, ir_mul(&b, y, y)));
    return gradient(&b, 1);
}

static uint32_t count_inner_folds(const struct nest *n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->statements.count; i++) {
        const struct nest_statement *fold = &n->statements.at[i];
        for (uint32_t k = 0;
             fold->kind == NEST_FOLD && k < n->blocks.at[fold->body].statements.count; k++)
            count +=
                n->statements.at[n->blocks.at[fold->body].statements.at[k]].kind == NEST_FOLD;
    }
    return count;
}

static uint32_t count_folds_of(const struct nest *n, int64_t terms)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n->statements.count; i++)
        count += n->statements.at[i].kind == NEST_FOLD &&
                 nest_extent(n, &n->statements.at[i]) == terms;
    return count;
}

// What windows that meet want is made once for all of them.
START_TEST(windows_are_searched_once)
{
    for (int64_t stride = 1; stride <= 3; stride++) {
        uint32_t f = pooled(60, stride);
        struct nest_program *p = schedule(f);
        uint32_t inner = 0;
        for (uint32_t i = 0; i < p->nests.count; i++)
            inner += count_inner_folds(p->nests.at[i]);
        require_of(inner == 0, "folds in folds", f, p);
        check_small(f);
    }
}
END_TEST

// Scores of a query are stored, not made again for their largest, their sum and what they weigh.
START_TEST(long_folds_are_done_once)
{
    struct ir_builder b = begin("attend");
    ir_id q = ir_param(&b, F32(4, 32)), k = ir_param(&b, F32(128, 4, 32)),
          v = ir_param(&b, F32(128, 4, 32));
    struct ir_dot scores = {.n_batch = 1,
                            .n_contract = 1,
                            .lhs_batch = (int64_t[]){0},
                            .rhs_batch = (int64_t[]){1},
                            .lhs_contract = (int64_t[]){1},
                            .rhs_contract = (int64_t[]){2}};
    struct ir_dot weigh = scores;
    weigh.rhs_contract = (int64_t[]){0};
    ir_id p = softmax_of(&b, ir_dot_general(&b, q, k, &scores));
    ir_output(&b, ir_dot_general(&b, p, v, &weigh));
    uint32_t f = finish(&b);
    struct nest_program *program = schedule(f);
    uint32_t products = 0;
    for (uint32_t i = 0; i < program->nests.count; i++)
        products += count_folds_of(program->nests.at[i], 32);
    require_of(products == 1, "scores are made again", f, program);
    check_small(f);
}
END_TEST

// A product that is computed again where it is searched reads its operands there: these, which have an axis that it
// sums over, are made before, not for each of its columns.
START_TEST(operands_of_repeated_folds_are_done_once)
{
    enum { POINTS = 3000, TERMS = 3 };
    struct ir_builder b = begin("pairs");
    struct ir_type points = ir_type_make(module, JOT_I32, 2, (int64_t[]){POINTS, TERMS}),
                   square = ir_type_make(module, JOT_I32, 2, (int64_t[]){TERMS, TERMS});
    ir_id x = ir_param(&b, points), w = ir_param(&b, square);
    ir_id moved = dot(&b, w, dot(&b, x, w, 1, 0), 0, 1), product = dot(&b, moved, x, 0, 1);
    ir_output(&b, ir_arg(&b, IR_argmax, product, 1, JOT_I32));
    ir_output(&b, ir_slice(&b, product, (int64_t[]){5, 0}, (int64_t[]){8, POINTS},
                           (int64_t[]){1, 1}));
    uint32_t f = finish(&b);
    struct nest_program *p = schedule(f);
    double work = 0;
    for (uint32_t i = 0; i < p->nests.count; i++)
        work += nest_work(p->nests.at[i], 0);
    const double pair = 3.0 * (TERMS + 2);
    require_of(work < 2 * pair * POINTS * POINTS, "what a fold reads is made again in each", f,
               p);
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

// What weighs rows is made in lanes before they are summed: a number of many rows, or of rows too short for
// vectors, beside the sum.
START_TEST(weights_are_made_in_lanes)
{
    static const struct {
        int64_t rows, columns;
        uint32_t kernels;
    } shapes[] = {{128, 32, 2}, {2, 32, 1}, {128, 4, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct ir_builder b = begin("weigh");
        ir_id w = ir_param(&b, F32(shapes[i].rows));
        ir_id x = ir_param(&b, F32(shapes[i].rows, shapes[i].columns));
        struct ir_dot weigh = {
            .n_contract = 1, .lhs_contract = (int64_t[]){0}, .rhs_contract = (int64_t[]){0}};
        ir_output(&b, ir_dot_general(&b, ir_exp(&b, w), x, &weigh));
        uint32_t f = finish(&b);
        struct nest_program *p = schedule(f);
        require_of(p->nests.count == shapes[i].kernels, "number of kernels", f, p);
        check_run(f, p, draw_inputs(f, seed));
    }
}
END_TEST

// A value that is made of rows of channels and gathered as such lies so in between, whatever its axes.
static const char channels[] =
    "jot ir 1\n"
    "function @0 channels(%0: f32[100,64,3], %1: f32[64,3], %2: i32[500,1]) {\n"
    "  %3 = dot_general %0, %1 {lhs_batch=[1], rhs_batch=[0], lhs_contract=[2], "
    "rhs_contract=[1]} : f32[64,100]\n"
    "  %4 = transpose %3 {axes=[1, 0]} : f32[100,64]\n"
    "  %5 = gather %4, %2 {offset_dims=[1], collapsed_dims=[0], index_map=[0], sizes=[1, 64], "
    "mode=1} : f32[500,64]\n  return %5\n}\n";

START_TEST(values_lie_as_they_are_read)
{
    uint32_t f = parse(channels);
    struct nest_program *p = schedule(f);
    const struct nest *n = p->nests.at[0];
    require_of(p->steps.count == 2, "two kernels", f, p);
    for (uint32_t i = 0; i < n->statements.count; i++) {
        const struct nest_statement *s = &n->statements.at[i];
        for (nest_id a = 0; s->kind == NEST_PUT && a < n->axes.count; a++)
            require_of(nest_index_factor(&s->index, a) == (n->axes.at[a].extent == 64    ? 1
                                                           : n->axes.at[a].extent == 100 ? 64
                                                                                         : 0),
                       "the order in memory", f, p);
    }
    check_small(f);
}
END_TEST

START_TEST(random_programs)
{
    for (uint64_t i = 0; i < 150; i++) {
        uint64_t state = seed + (uint64_t)_i * 1000 + i;
        uint32_t f = random_program_of(state, 5 + (int)(i % 30));
        check_small(f);
    }
}
END_TEST

// The number of steps and kernels grows with the graph and not faster; equal kernels appear once.
START_TEST(long_programs)
{
    struct ir_builder b = begin("long");
    ir_id x = ir_param(&b, F32(1024)), y = ir_param(&b, F32(1024));
    for (int i = 0; i < 20000; i++) {
        ir_id z = ir_add(&b, x, y);
        x = y;
        y = i % 5 ? z : ir_sin(&b, z);
    }
    ir_output(&b, y);
    uint32_t f = done(&b);
    struct nest_program *p = schedule(f);
    check_program(f, p);
    ck_assert_uint_le(p->steps.count, 24000 / 100);
    ck_assert_uint_le(p->nests.count, 8);
}
END_TEST

// Kernels that differ in numbers alone are one, when they are many; integers are no such numbers.
static const struct {
    const char *name;
    jot_dtype dtype;
    int layers;
    uint32_t kernels;
} layers[] = {
    {"few", JOT_F32, 7, 7},
    {"many", JOT_F32, 9, 1},
    {"half", JOT_BF16, 9, 1},
    {"double", JOT_F64, 64, 1},
    {"integers", JOT_I32, 9, 9},
    {"complex", JOT_C64, 9, 1},
    {"complex of doubles", JOT_C128, 9, 1},
};

START_TEST(numbers_are_read)
{
    struct ir_builder b = begin(layers[_i].name);
    struct ir_type type = ir_type_make(module, layers[_i].dtype, 1, (int64_t[]){40});
    ir_id x = ir_param(&b, type);
    // One of the two numbers of a layer is that of all.
    for (int i = 0; i < layers[_i].layers; i++) {
        ir_id k = ir_full(&b, type, 2.0 + i), same = ir_full(&b, type, -5);
        x = ir_sub(&b, ir_mul(&b, x, k), same);
        x = ir_cumulative(&b, IR_cumsum, x, 0, false);
    }
    ir_output(&b, x);
    uint32_t f = done(&b);
    struct nest_program *p = schedule(f);
    check_program(f, p);
    require_of(p->nests.count == layers[_i].kernels, "kernels", f, p);
    check_run(f, p, draw_inputs(f, seed));
    p = schedule_with(f, &(struct schedule_options){.one_loop = true, .many_lanes = true});
    require_of(p->nests.count == layers[_i].kernels, "kernels of a GPU", f, p);
}
END_TEST

// exp(x w^T) u: threads of a GPU make sums of few terms where they are wanted, and once the terms of few sums.
static const struct {
    const char *name;
    int64_t terms, sums;
    uint32_t steps; // a kernel, and a step of the library for each product that is left
} narrow[] = {
    {"few terms and sums", 8, 8, 1}, {"very few terms", 4, 16, 2}, {"few terms", 8, 16, 3},
    {"few sums", 64, 8, 2},          {"neither", 64, 16, 3},
};

START_TEST(threads_make_narrow_products)
{
    struct ir_builder b = begin(narrow[_i].name);
    int64_t axes[] = {1};
    ir_id x =
        ir_param(&b, ir_type_make(module, JOT_F32, 2, (int64_t[]){1024, narrow[_i].terms}));
    ir_id w =
        ir_param(&b, ir_type_make(module, JOT_F32, 2, (int64_t[]){200, narrow[_i].terms}));
    ir_id u = ir_param(&b, ir_type_make(module, JOT_F32, 2, (int64_t[]){narrow[_i].sums, 200}));
    struct ir_dot last = {.n_contract = 1, .lhs_contract = axes, .rhs_contract = axes};
    ir_id y = ir_exp(&b, ir_dot_general(&b, x, w, &last));
    ir_output(&b, ir_dot_general(&b, y, u, &last));
    uint32_t f = done(&b);
    struct nest_program *p = schedule_with(
        f,
        &(struct schedule_options){
            .rich_gemm = true, .no_accumulation = true, .one_loop = true, .many_lanes = true});
    require_of(p->steps.count == narrow[_i].steps, "steps", f, p);
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

// A product of seven columns, and what is made of these: a GPU makes the product where it has 140 points.
START_TEST(sums_of_few_points_are_apart)
{
    struct ir_builder b = begin("sums");
    ir_id x = ir_param(&b, F32(4096, 20)), y = ir_param(&b, F32(4096, 7));
    ir_id z = ir_mul(&b, y, ir_sub(&b, y, ir_scalar_like(&b, y, 2)));
    ir_output(&b, dot(&b, x, z, 0, 0));
    ir_output(&b, z);
    uint32_t f = finish(&b);
    struct schedule_options gpu = {
        .rich_gemm = true, .many_lanes = true, .no_accumulation = true, .one_loop = true};
    struct nest_program *p = schedule_with(f, &gpu);
    check_program(f, p);
    for (uint32_t i = 0; i < p->nests.count; i++)
        nest_for_each (s, p->nests.at[i], 0)
            require_of(s->kind != NEST_PAR || nest_extent(p->nests.at[i], s) >= 140,
                       "few points", f, p);
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, long_programs);
    tcase_add_loop_test(t, numbers_are_read, 0, sizeof layers / sizeof *layers);
    tcase_add_loop_test(t, random_programs, 0, 4);
    tcase_add_test(t, long_rows_are_made_once);
    tcase_add_test(t, narrow_values_are_stored);
    tcase_add_test(t, running_products_hold_no_pairs);
    tcase_add_loop_test(t, parts_are_put_in_place, 0, 7);
    tcase_add_test(t, rolled_rows_are_read);
    tcase_add_test(t, windows_are_searched_once);
    tcase_add_test(t, long_folds_are_done_once);
    tcase_add_test(t, operands_of_repeated_folds_are_done_once);
    tcase_add_test(t, weights_are_made_in_lanes);
    tcase_add_test(t, values_lie_as_they_are_read);
    tcase_add_loop_test(t, threads_make_narrow_products, 0, 5);
    tcase_add_test(t, sums_of_few_points_are_apart);
    tcase_add_loop_test(t, every_op_runs_alone, 0, DTYPE_COUNT);
    tcase_add_loop_test(t, every_op_runs, 0, DTYPE_COUNT);
    tcase_add_loop_test(t, every_gradient_runs, 0, 2);
}

int main(void) { return support_run("schedule", add_tests); }
