// SPDX-License-Identifier: Apache-2.0
// Folds of few long rows and running folds, which blocks of a GPU's threads share: machine code against the evaluator,
// bit for bit.
#include "harness/native.h"
#include "schedule/schedule_support.h"

static struct strbuf report;
static struct native run; // of a test
static uint64_t state;

static void begin(void)
{
    report = strbuf_make(module->arena);
    run = native_make(module, &report);
    state = seed;
}

static void end(void)
{
    int failures = native_finish(&run);
    ck_assert_msg(failures == 0, "seed %" PRIu64 ": %.6000s", seed, report.text);
}

static void add(const char *text, const struct native_how *how)
{
    uint32_t f = parse(text);
    struct ir_tensor *in = arena_array(module->arena, struct ir_tensor, graph(f)->n_params + 1);
    for (uint32_t i = 0; i < graph(f)->n_params; i++)
        in[i] = draw(ir_type_of(graph(f), i), &state);
    native_add(&run, graph(f)->name, f, in, how);
}

// Whole blocks of a fold and a rest, of a number of rows that is none of multiprocessors; terms that are
// dear, and terms that are loads.
static const struct {
    const char *op;
    jot_dtype dtype;
    int rows, length;
    bool is_dear;
} folds[] = {
    {"reduce_sum", JOT_F32, 3, 70001, false},  {"reduce_sum", JOT_F32, 5, 36864, true},
    {"reduce_sum", JOT_F16, 3, 90001, false},  {"reduce_sum", JOT_BF16, 2, 90001, true},
    {"reduce_sum", JOT_F64, 3, 40001, false},  {"reduce_sum", JOT_C64, 2, 40001, false},
    {"reduce_sum", JOT_C128, 3, 33001, false}, {"reduce_sum", JOT_I32, 7, 40001, false},
    {"reduce_prod", JOT_F32, 3, 70001, false}, {"reduce_prod", JOT_C64, 2, 36865, false},
    {"reduce_prod", JOT_I64, 3, 33793, false}, {"reduce_max", JOT_F32, 4, 65537, false},
    {"reduce_max", JOT_F16, 3, 90001, false},  {"reduce_min", JOT_I8, 2, 300001, false},
    {"reduce_xor", JOT_U32, 3, 50001, false},  {"reduce_and", JOT_BOOL, 2, 300001, false},
    {"argmax", JOT_F32, 3, 60001, false},      {"argmax", JOT_BF16, 3, 90001, false},
    {"argmin", JOT_F64, 5, 33001, true},       {"argmin", JOT_I32, 2, 90001, false},
};

START_TEST(a_fold)
{
    char text[1000];
    const char *d = dtype_get(folds[_i].dtype)->name;
    int rows = folds[_i].rows, length = folds[_i].length;
    bool is_arg = folds[_i].op[0] == 'a';
    snprintf(text, sizeof text,
             "jot ir 1\nfunction @0 %s_%s(%%x: %s[%d,%d], %%y: %s[%d]) {\n"
             "  %%1 = broadcast_in_dim %%y {dims=[%d, %d], axes=[0]} : %s[%d,%d]\n"
             "  %%2 = %s %%x, %%1 : %s[%d,%d]\n  %%3 = %s %%2 : %s[%d,%d]\n"
             "  %%4 = %s %%3 {%s} : %s[%d]\n  return %%4\n}\n",
             folds[_i].op, d, d, rows, length, d, rows, rows, length, d, rows, length,
             folds[_i].dtype == JOT_BOOL ? "or" : "add", d, rows, length,
             folds[_i].is_dear             ? "tanh"
             : folds[_i].dtype == JOT_BOOL ? "not"
                                           : "neg",
             d, rows, length, folds[_i].op, is_arg ? "axis=1, dtype=i32" : "axes=[1]",
             is_arg ? "i32" : d, rows);
    add(text, &(struct native_how){.interpret = _i == 0});
    end();
}
END_TEST

// Running folds along an axis: one that is long, rows, many rows, and columns.
static const struct {
    int rows, columns, axis;
} running[] = {{1, 70001, 1}, {3, 3001, 1}, {1030, 40, 1}, {300, 40, 0}};

// Of each type of the op whose elements may be combined in any order; types have the shapes in turn.
START_TEST(running_folds)
{
    enum ir_op op = (enum ir_op)_i;
    for (int d = 0; d < DTYPE_COUNT && ir_op_class(op) == IR_CLASS_CUMULATIVE; d++) {
        char text[300];
        const char *type = dtype_get((jot_dtype)d)->name;
        size_t k = (size_t)(op + d) % (sizeof running / sizeof *running);
        snprintf(text, sizeof text,
                 "jot ir 1\nfunction @0 %s_%s(%%x: %s[%d,%d]) {\n"
                 "  %%1 = %s %%x {axis=%d, reverse=%d} : %s[%d,%d]\n  return %%1\n}\n",
                 ir_op_get(op)->name, type, type, running[k].rows, running[k].columns,
                 ir_op_get(op)->name, running[k].axis, d % 2, type, running[k].rows,
                 running[k].columns);
        if (opcase_takes(op, (jot_dtype)d) && nest_is_free((uint16_t)op, (jot_dtype)d))
            add(text, &(struct native_how){0});
    }
    end();
}
END_TEST

// Several folds that follow one another, with maps behind them and numbers of rows; planes as rows; results of
// what waits for no fold.
static const char *const programs[] = {
    "jot ir 1\nfunction @0 softmax(%x: f32[3,70001]) {\n"
    "  %1 = reduce_max %x {axes=[1]} : f32[3]\n"
    "  %2 = broadcast_in_dim %1 {dims=[3, 70001], axes=[0]} : f32[3,70001]\n"
    "  %3 = sub %x, %2 : f32[3,70001]\n  %4 = exp %3 : f32[3,70001]\n"
    "  %5 = reduce_sum %4 {axes=[1]} : f32[3]\n"
    "  %6 = broadcast_in_dim %5 {dims=[3, 70001], axes=[0]} : f32[3,70001]\n"
    "  %7 = div %4, %6 : f32[3,70001]\n  %8 = log %5 : f32[3]\n  %9 = add %8, %1 : f32[3]\n"
    "  return %7, %9\n}\n",
    "jot ir 1\nfunction @0 statistics(%x: f32[6,5,83,101], %w: f32[5]) {\n"
    "  %n = const {data=50298} : f32[]\n  %m = broadcast_in_dim %n {dims=[5], axes=[]} : "
    "f32[5]\n"
    "  %1 = reduce_sum %x {axes=[0, 2, 3]} : f32[5]\n  %2 = div %1, %m : f32[5]\n"
    "  %3 = broadcast_in_dim %2 {dims=[6, 5, 83, 101], axes=[1]} : f32[6,5,83,101]\n"
    "  %4 = sub %x, %3 : f32[6,5,83,101]\n  %5 = mul %4, %4 : f32[6,5,83,101]\n"
    "  %6 = reduce_sum %5 {axes=[0, 2, 3]} : f32[5]\n  %7 = sqrt %6 : f32[5]\n"
    "  %8 = div %w, %7 : f32[5]\n"
    "  %9 = broadcast_in_dim %8 {dims=[6, 5, 83, 101], axes=[1]} : f32[6,5,83,101]\n"
    "  %10 = mul %4, %9 : f32[6,5,83,101]\n  return %10, %6, %2\n}\n",
    "jot ir 1\nfunction @0 several(%x: f16[4,66001], %y: f32[4,66001]) {\n"
    "  %1 = convert %x {dtype=f32} : f32[4,66001]\n  %2 = mul %1, %y : f32[4,66001]\n"
    "  %3 = reduce_sum %2 {axes=[1]} : f32[4]\n  %4 = reduce_max %y {axes=[1]} : f32[4]\n"
    "  %5 = argmin %1 {axis=1, dtype=i64} : i64[4]\n"
    "  %6 = reduce_prod %y {axes=[1]} : f32[4]\n  %7 = tanh %2 : f32[4,66001]\n"
    "  %8 = div %3, %4 : f32[4]\n"
    "  %9 = broadcast_in_dim %8 {dims=[4, 66001], axes=[0]} : f32[4,66001]\n"
    "  %10 = add %9, %7 : f32[4,66001]\n  %11 = reduce_min %10 {axes=[1]} : f32[4]\n"
    "  return %5, %6, %7, %8, %11\n}\n",
    "jot ir 1\nfunction @0 columns(%x: f32[90001,3]) {\n"
    "  %1 = reduce_sum %x {axes=[0]} : f32[3]\n"
    "  %2 = broadcast_in_dim %1 {dims=[90001, 3], axes=[1]} : f32[90001,3]\n"
    "  %3 = div %x, %2 : f32[90001,3]\n  %4 = reduce_max %3 {axes=[0]} : f32[3]\n"
    "  return %3, %4\n}\n",
};

START_TEST(a_program)
{
    add(programs[_i], &(struct native_how){.threads = true});
    add(programs[_i], &(struct native_how){.steps = true});
    end();
}
END_TEST

// No exponential is kept for the quotients: each is made again of what is read for it.
START_TEST(a_softmax_keeps_no_rows)
{
    static const char text[] =
        "jot ir 1\nfunction @0 softmax(%x: f32[8,1048576]) {\n"
        "  %1 = reduce_max %x {axes=[1]} : f32[8]\n"
        "  %2 = broadcast_in_dim %1 {dims=[8, 1048576], axes=[0]} : f32[8,1048576]\n"
        "  %3 = sub %x, %2 : f32[8,1048576]\n  %4 = exp %3 : f32[8,1048576]\n"
        "  %5 = reduce_sum %4 {axes=[1]} : f32[8]\n"
        "  %6 = broadcast_in_dim %5 {dims=[8, 1048576], axes=[0]} : f32[8,1048576]\n"
        "  %7 = div %4, %6 : f32[8,1048576]\n  return %7\n}\n";
    uint32_t f = parse(text);
    struct nest_program *p = schedule_with(
        f,
        &(struct schedule_options){
            .rich_gemm = true, .no_accumulation = true, .one_loop = true, .many_lanes = true});
    check_program(f, p);
    require_of(p->nests.count == 3, "kernels", f, p);
    for (uint32_t i = 0; i < p->memories.count; i++)
        require_of(p->memories.at[i].kind != NEST_TEMPORARY || p->memories.at[i].count == 8,
                   "what is kept", f, p);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, begin, NULL);
    tcase_add_loop_test(t, a_fold, 0, sizeof folds / sizeof *folds);
    tcase_add_loop_test(t, running_folds, 0, IR_OP_COUNT);
    tcase_add_test(t, a_softmax_keeps_no_rows);
    tcase_add_loop_test(t, a_program, 0, sizeof programs / sizeof *programs);
}

int main(void) { return support_run("long rows", add_tests); }
