// SPDX-License-Identifier: Apache-2.0
// Scheduling: where values are in memory, and what is copied.
#include "schedule_random.h"

// What a routine takes or gives has its memory, whatever its shape is.
START_TEST(shapes_need_no_copies)
{
    struct ir_builder b = begin("shapes");
    int64_t flat = 24;
    int64_t rows[] = {4, 6};
    ir_id x = ir_reshape(&b, ir_param(&b, F32(24, 1)), 2, rows);
    ir_output(&b, ir_reshape(&b, ir_sort(&b, 1, &x, 1), 1, &flat));
    uint32_t f = finish(&b);
    struct nest_program *p = schedule(f);
    require_of(p->steps.count == 1 && p->arena_bytes == 0, "shapes", f, p);
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

// A part of a matrix as a vector lies where it lies in the matrix: no place is divided to be put together again.
START_TEST(places_of_reshapes)
{
    struct ir_builder b = begin("part");
    ir_id x = ir_param(&b, F32(50, 20));
    x = ir_reshape(&b, x, 1, (int64_t[]){1000});
    x = ir_slice(&b, x, (int64_t[]){3}, (int64_t[]){1000}, NULL);
    ir_output(&b, ir_exp(&b, x));
    uint32_t f = finish(&b);
    struct nest_program *p = schedule(f);
    const struct nest *n = p->nests.at[0];
    for (uint32_t i = 0; i < n->statements.count; i++)
        require_of(n->statements.at[i].kind != NEST_LOAD ||
                       !nest_index_has_values(&n->statements.at[i].index),
                   "a place is divided", f, p);
    check_run(f, p, draw_inputs(f, seed));
}
END_TEST

// Programs over x: f32[100,64], i: i32[N,1], u: f32[50,64], and how many kernels and copies they
// take, when nothing and when x is donated.
static const struct {
    const char *text;
    uint32_t kernels, copies, donated_copies;
} places[] = {
    // A gather is part of what reads it, and of what computes the indices.
    {"%0: f32[100,64], %1: i32[50,1], %2: f32[50,64]) {\n  %3 = add %1, %1 : i32[50,1]\n"
     "  %4 = gather %0, %3 {offset_dims=[1], collapsed_dims=[0], index_map=[0], sizes=[1, 64], "
     "mode=1} : f32[50,64]\n  %5 = mul %4, %2 : f32[50,64]\n"
     "  %6 = reduce_sum %5 {axes=[1]} : f32[50]\n  return %6\n}\n",
     1, 0, 0},
    // What is dear and gathered more often than there are elements is computed before.
    {"%0: f32[100,64], %1: i32[500,1], %2: f32[50,64]) {\n  %3 = exp %0 : f32[100,64]\n"
     "  %4 = gather %3, %1 {offset_dims=[1], collapsed_dims=[0], index_map=[0], sizes=[1, 64], "
     "mode=1} : f32[500,64]\n  return %4\n}\n",
     2, 0, 0},
    // Updates are in the memory of an operand that is not needed.
    {"%0: f32[100,64], %1: i32[50,1], %2: f32[50,64]) {\n"
     "  %3 = scatter_add %0, %1, %2 {offset_dims=[1], collapsed_dims=[0], index_map=[0]} : "
     "f32[100,64]\n  return %3\n}\n",
     1, 1, 0},
    {"%0: f32[100,64], %1: i32[50,1], %2: f32[50,64]) {\n"
     "  %3 = scatter_add %0, %1, %2 {offset_dims=[1], collapsed_dims=[0], index_map=[0]} : "
     "f32[100,64]\n"
     "  %4 = scatter_max %3, %1, %2 {offset_dims=[1], collapsed_dims=[0], index_map=[0]} : "
     "f32[100,64]\n  return %4\n}\n",
     2, 1, 0},
    {"%0: f32[100,64], %1: i32[50,1], %2: f32[50,64]) {\n  %3 = sin %0 : f32[100,64]\n"
     "  %4 = scatter %3, %1, %2 {offset_dims=[1], collapsed_dims=[0], index_map=[0]} : "
     "f32[100,64]\n  return %4\n}\n",
     2, 0, 0},
    // The operand is a result as well: what makes it puts it twice.
    {"%0: f32[100,64], %1: i32[50,1], %2: f32[50,64]) {\n  %3 = sin %0 : f32[100,64]\n"
     "  %4 = scatter %3, %1, %2 {offset_dims=[1], collapsed_dims=[0], index_map=[0]} : "
     "f32[100,64]\n  return %3, %4\n}\n",
     2, 0, 0},
    // Somebody reads the operand beside the result: before it changes.
    {"%0: f32[100,64], %1: i32[50,1], %2: f32[50,64]) {\n  %3 = sin %0 : f32[100,64]\n"
     "  %4 = scatter %3, %1, %2 {offset_dims=[1], collapsed_dims=[0], index_map=[0]} : "
     "f32[100,64]\n"
     "  %5 = gather %3, %1 {offset_dims=[1], collapsed_dims=[0], index_map=[0], sizes=[1, 64], "
     "mode=1} : f32[50,64]\n"
     "  %6 = gather %4, %1 {offset_dims=[1], collapsed_dims=[0], index_map=[0], sizes=[1, 64], "
     "mode=1} : f32[50,64]\n  %7 = sub %5, %6 : f32[50,64]\n  return %7\n}\n",
     4, 0, 0},
    // Updates that are made of the operand are stored before it changes.
    {"%0: f32[100,64], %1: i32[50,1], %2: f32[50,64]) {\n"
     "  %3 = gather %0, %1 {offset_dims=[1], collapsed_dims=[0], index_map=[0], sizes=[1, 64], "
     "mode=1} : f32[50,64]\n  %4 = mul %3, %2 : f32[50,64]\n"
     "  %5 = scatter %0, %1, %4 {offset_dims=[1], collapsed_dims=[0], index_map=[0]} : "
     "f32[100,64]\n  return %5\n}\n",
     0, 1, 0},
};
enum { PLACES = sizeof places / sizeof *places };

static uint32_t count_steps(const struct nest_program *p, enum nest_step_kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        const struct nest_memory *to = &p->memories.at[t->memories[0]];
        bool is_nothing =
            kind == NEST_STEP_COPY && to->kind == NEST_OUTPUT &&
            p->memories.at[t->memories[1]].kind == NEST_INPUT &&
            p->donated[to->index] == (int32_t)p->memories.at[t->memories[1]].index;
        count += t->kind == kind && !is_nothing;
    }
    return count;
}

START_TEST(places_in_memory)
{
    struct strbuf text = strbuf_make(module->arena);
    strbuf_printf(&text, "jot ir 1\nfunction @0 places(%s", places[_i].text);
    uint32_t f = parse(text.text);
    const bool donated[] = {true, false, false};
    for (int d = 0; d < 2; d++) {
        struct nest_program *p =
            schedule_with(f, &(struct schedule_options){.donated = d ? donated : NULL});
        check_program(f, p);
        uint32_t copies = d ? places[_i].donated_copies : places[_i].copies;
        require_of(count_steps(p, NEST_STEP_COPY) == copies, "copies", f, p);
        require_of(!places[_i].kernels ||
                       count_steps(p, NEST_STEP_KERNEL) == places[_i].kernels,
                   "kernels", f, p);
        check_run(f, p, draw_inputs(f, seed));
    }
}
END_TEST

// Of five transforms four do not wait for one another, and one is of another length.
START_TEST(routines_go_side_by_side)
{
    struct ir_builder b = begin("transforms");
    const int64_t sizes[] = {64, 64, 32};
    ir_id x[3], y[3];
    for (int i = 0; i < 3; i++)
        x[i] = ir_param(&b, ir_type_make(module, JOT_C64, 2, (int64_t[]){3, sizes[i]}));
    for (int i = 0; i < 3; i++)
        y[i] = ir_fft(&b, FFT_FFT, x[i], 1, &sizes[i]);
    ir_id z = ir_fft(&b, FFT_FFT, ir_neg(&b, x[0]), 1, (int64_t[]){64});
    ir_output(&b,
              ir_fft(&b, FFT_FFT, ir_mul(&b, ir_mul(&b, y[0], y[1]), z), 1, (int64_t[]){64}));
    ir_output(&b, y[2]);
    uint32_t f = done(&b);
    for (int is_gpu = 0; is_gpu < 2; is_gpu++) {
        struct nest_program *p =
            schedule_with(f, &(struct schedule_options){.many_lanes = is_gpu});
        require_of(count_steps(p, NEST_STEP_LIBRARY) == (is_gpu ? 3 : 5), "calls", f, p);
        check_program(f, p);
    }
}
END_TEST

// Zeros that two updates begin with are in memory; what compares with them reads none.
static const char zeros_beside[] =
    "jot ir 1\n"
    "function @0 f(%0: f64[512], %1: i32[4,1], %2: f64[4]) {\n"
    "  %3 = const {data=0} : f64[]\n"
    "  %4 = broadcast_in_dim %3 {dims=[512], axes=[]} : f64[512]\n"
    "  %5 = scatter_add %4, %1, %2 {offset_dims=[], collapsed_dims=[0], operand_batch=[], "
    "index_batch=[], index_map=[0], unique=0, mode=2} : f64[512]\n"
    "  %6 = scatter_max %4, %1, %2 {offset_dims=[], collapsed_dims=[0], operand_batch=[], "
    "index_batch=[], index_map=[0], unique=0, mode=2} : f64[512]\n"
    "  %7 = max %0, %4 : f64[512]\n"
    "  return %5, %6, %7, %4\n"
    "}\n";

START_TEST(numbers_in_memory_are_not_read)
{
    uint32_t f = parse(zeros_beside), found = 0;
    struct nest_program *p = schedule(f);
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
    for (uint32_t i = 0; i < p->nests.count; i++) {
        const struct nest *n = p->nests.at[i];
        bool compares = false;
        for (uint32_t k = 0; k < n->statements.count; k++)
            compares |= n->statements.at[k].kind == NEST_OP &&
                        n->statements.at[k].op == IR_max && count_kind(n, NEST_LOAD) == 1;
        found += compares;
    }
    require_of(found == 1, "a number is read", f, p);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, shapes_need_no_copies);
    tcase_add_test(t, places_of_reshapes);
    tcase_add_loop_test(t, places_in_memory, 0, PLACES);
    tcase_add_test(t, routines_go_side_by_side);
    tcase_add_test(t, numbers_in_memory_are_not_read);
}

int main(void) { return support_run("schedule_memory", add_tests); }
