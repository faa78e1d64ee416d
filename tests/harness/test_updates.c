// SPDX-License-Identifier: Apache-2.0
// Updates at indices that are numbers of an operand: machine code, which takes 16 at once and makes
// those by themselves that are not all inside, against the evaluator, bit for bit.
#include "harness/native.h"
#include "passes/pass_support.h"

#define COUNT 1003 // 62 sixteens and a rest
#define ELEMENTS 41

static struct strbuf report;
static struct native run; // of a test

static void begin(void)
{
    report = strbuf_make(module->arena);
    run = native_make(module, &report);
}

static void end(void)
{
    int failures = native_finish(&run);
    ck_assert_msg(failures == 0, "seed %" PRIu64 ": %s", seed, report.text);
}

// Numbers of which some sixteens are inside, others not: 5 and 9 have the ends, 20 to 29 and 58,
// near the last, what is beyond them, and the rest is drawn.
static int64_t draw_index(int i, uint64_t *state)
{
    static const int64_t ends[] = {0, ELEMENTS - 1};
    static const int64_t beyond[] = {-1, ELEMENTS, -ELEMENTS, -ELEMENTS - 1, 2 * ELEMENTS, 127};
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t drawn = *state >> 33;
    int turn = i / 16;
    if (turn == 5 || turn == 9)
        return ends[i % 2];
    bool has_beyond = (turn >= 20 && turn < 30) || turn == 58;
    return has_beyond && i % 16 == turn % 16 ? beyond[drawn % 6] : (int64_t)(drawn % ELEMENTS);
}

static struct ir_tensor draw_indices(jot_dtype d, int components, uint64_t *state)
{
    int64_t dims[] = {COUNT, components};
    struct ir_tensor t = {ir_type_make(module, d, 2, dims), NULL};
    int bytes = dtype_get(d)->bytes;
    char *data = arena_allocate(module->arena, (size_t)(COUNT * components * bytes));
    for (int i = 0; i < COUNT * components; i++) {
        int64_t x = draw_index(i / components, state);
        x = components > 1 && x < ELEMENTS && x >= 0 ? x % 7 : x;
        memcpy(data + i * bytes, &x, (size_t)bytes); // the low ones come first
    }
    t.data = data;
    return t;
}

// A negative index counts from the end, as jot_at_add has it.
static const char wraps[] = "  %%z = const {data=0} : %s[]\n"
                            "  %%m = const {data=41} : %s[]\n"
                            "  %%l = lt %%i, %%z : bool[1003,1]\n"
                            "  %%a = add %%i, %%m : %s[1003,1]\n"
                            "  %%j = select %%l, %%a, %%i : %s[1003,1]\n";

static uint32_t one_axis(jot_dtype indices, jot_dtype d, const char *op, int mode, bool wrap)
{
    char text[2000], chain[600] = "";
    const char *p = dtype_get(indices)->name, *n = dtype_get(d)->name;
    if (wrap)
        snprintf(chain, sizeof chain, wraps, p, p, p, p);
    snprintf(text, sizeof text,
             "jot ir 1\nfunction @0 %s(%%x: %s[41], %%i: %s[1003,1], %%u: %s[1003]) {\n%s"
             "  %%v = %s %%u, %%u : %s[1003]\n"
             "  %%1 = %s %%x, %s, %%u {collapsed_dims=[0], index_map=[0], mode=%d} : %s[41]\n"
             "  %%2 = %s %%x, %s, %%v {collapsed_dims=[0], index_map=[0], mode=%d} : %s[41]\n"
             "  return %%1, %%2\n}\n",
             op, n, p, n, chain, d == JOT_BOOL ? "and" : "mul", n, op, wrap ? "%j" : "%i", mode,
             n, op, wrap ? "%j" : "%i", mode, n);
    return parse(text);
}

static const char *const ops[] = {"scatter", "scatter_add", "scatter_mul", "scatter_min",
                                  "scatter_max"};
static const jot_dtype dtypes_of_indices[] = {JOT_I32, JOT_I64, JOT_I8, JOT_U8, JOT_U32};
static const jot_dtype numbers[] = {JOT_F32, JOT_F64, JOT_I32, JOT_C64, JOT_F16, JOT_BOOL};

static void add(uint32_t f, struct ir_tensor at, uint64_t *state)
{
    struct ir_tensor in[3] = {draw(ir_type_of(graph(f), 0), state), at,
                              draw(ir_type_of(graph(f), 2), state)};
    native_add(&run, graph(f)->name, f, in, &(struct native_how){.interpret = true});
}

START_TEST(at_one_index)
{
    uint64_t state = seed + (uint64_t)_i;
    for (int p = 0; p < 5; p++)
        for (int way = 0; way < 4; way++) {
            jot_dtype at = dtypes_of_indices[p], d = numbers[(_i + p + way) % 6];
            bool wrap = way % 2 && dtype_is_signed(at);
            if ((d != JOT_C64 || _i <= 2) && (d != JOT_BOOL || _i == 0))
                add(one_axis(at, d, ops[_i], way / 2 ? 3 : 0, wrap),
                    draw_indices(at, 1, &state), &state);
        }
    end();
}
END_TEST

START_TEST(at_two_indices)
{
    uint64_t state = seed;
    for (int mode = 0; mode <= 3; mode += 3) {
        char text[1000];
        snprintf(
            text, sizeof text,
            "jot ir 1\nfunction @0 two(%%x: f32[7,41], %%i: i32[1003,2], %%u: f32[1003]) {\n"
            "  %%1 = scatter_add %%x, %%i, %%u {collapsed_dims=[0, 1], index_map=[0, 1], "
            "mode=%d} : f32[7,41]\n  return %%1\n}\n",
            mode);
        add(parse(text), draw_indices(JOT_I32, 2, &state), &state);
    }
    end();
}
END_TEST

// Indices that are themselves read at indices.
START_TEST(indices_of_indices)
{
    uint64_t state = seed;
    for (int i = 0; i < 4; i++) {
        char text[1000];
        const char *d = dtype_get(dtypes_of_indices[i])->name;
        snprintf(
            text, sizeof text,
            "jot ir 1\nfunction @0 draw_indices(%%x: f32[41], %%i: %s[1003,1], %%u: f32[1003], "
            "%%p: i32[1003,1]) {\n"
            "  %%j = gather %%i, %%p {collapsed_dims=[0], index_map=[0], mode=0, "
            "offset_dims=[1], sizes=[1, 1]} : %s[1003,1]\n"
            "  %%1 = scatter_add %%x, %%j, %%u {collapsed_dims=[0], index_map=[0], mode=3} "
            ": f32[41]\n  return %%1\n}\n",
            d, d);
        uint32_t f = parse(text);
        struct ir_tensor in[4] = {draw(ir_type_of(graph(f), 0), &state),
                                  draw_indices(dtypes_of_indices[i], 1, &state),
                                  draw(ir_type_of(graph(f), 2), &state),
                                  draw_indices(JOT_I32, 1, &state)};
        native_add(&run, graph(f)->name, f, in, &(struct native_how){.interpret = true});
    }
    end();
}
END_TEST

// Numbers that no signed type has are not below all others.
START_TEST(beyond_signed)
{
    uint64_t state = seed;
    add(parse("jot ir 1\nfunction @0 beyond(%x: f32[41], %i: u64[1003,1], %u: f32[1003]) {\n"
              "  %l = const {data=9223372036854775813} : u64[]\n"
              "  %j = max %i, %l : u64[1003,1]\n"
              "  %1 = scatter_add %x, %j, %u {collapsed_dims=[0], index_map=[0], mode=3} : "
              "f32[41]\n  return %1\n}\n"),
        draw_indices(JOT_U64, 1, &state), &state);
    end();
}
END_TEST

// Chunks of updates that a GPU sorts by index, some indices with many of them, others with none.
START_TEST(of_many_chunks)
{
    uint64_t state = seed;
    uint32_t f = parse(
        "jot ir 1\nfunction @0 draw_indices(%0: f32[150001]) {\n"
        "  %1 = iota {dtype=i32, dims=[150001], axis=0} : i32[150001]\n"
        "  %2 = const {data=7919} : i32[]\n  %3 = const {data=1602} : i32[]\n"
        "  %4 = const {data=1500} : i32[]\n  %5 = const {data=1} : i32[]\n"
        "  %6 = mul %1, %2 : i32[150001]\n  %7 = rem %6, %3 : i32[150001]\n"
        "  %8 = min %7, %4 : i32[150001]\n  %9 = sub %8, %5 : i32[150001]\n"
        "  %10 = reshape %9 {dims=[150001, 1]} : i32[150001,1]\n"
        "  %11 = slice %0 {starts=[0], limits=[1500], strides=[1]} : f32[1500]\n"
        "  %12 = scatter_add %11, %10, %0 {collapsed_dims=[0], index_map=[0], mode=3} : "
        "f32[1500]\n"
        "  %13 = scatter %11, %10, %0 {collapsed_dims=[0], index_map=[0], mode=0} : f32[1500]\n"
        "  %14 = convert %0 {dtype=f64} : f64[150001]\n"
        "  %15 = convert %11 {dtype=f64} : f64[1500]\n"
        "  %16 = scatter_max %15, %10, %14 {collapsed_dims=[0], index_map=[0], mode=3} : "
        "f64[1500]\n"
        "  %17 = broadcast_in_dim %5 {dims=[150001], axes=[]} : i32[150001]\n"
        "  %18 = slice %1 {starts=[0], limits=[1500], strides=[1]} : i32[1500]\n"
        "  %19 = scatter_add %18, %10, %17 {collapsed_dims=[0], index_map=[0], mode=3} : "
        "i32[1500]\n"
        "  return %12, %13, %16, %19\n}\n");
    struct ir_tensor in = draw(ir_type_of(graph(f), 0), &state);
    native_add(&run, graph(f)->name, f, &in, &(struct native_how){.threads = true});
    end();
}
END_TEST

// Many updates of few indices, a half of them one after the other at the same index; and of so many that most have none.
// A GPU sorts what the updates take.  Indices of two axes in each of some points, some of them outside.
static const struct {
    const char *op, *type;
    int points, rows, columns, turns;
} of_bins[] = {
    {"scatter_add", "f32", 3, 3, 11, 40001},   {"scatter_mul", "f64", 3, 1, 1, 3001},
    {"scatter", "i32", 3, 5, 140, 40001},      {"scatter_max", "f64", 3, 40, 8, 33000},
    {"scatter_add", "f64", 3, 400, 350, 5000}, {"scatter", "f32", 3, 400, 350, 5000},
    {"scatter_add", "f16", 3, 3, 11, 10000},   {"scatter_min", "u32", 3, 70, 16, 9000},
    {"scatter_add", "f32", 600, 4, 5, 200},
};

static uint32_t in_bins(int i, bool is_one)
{
    char text[2000], each[40], two[40], operand[60];
    const char *t = of_bins[i].type;
    int p = of_bins[i].points, rows = of_bins[i].rows, columns = of_bins[i].columns,
        n = of_bins[i].turns;
    snprintf(each, sizeof each, "[%d, %d]", p, n);
    snprintf(two, sizeof two, "[%d, %d, 2]", p, n);
    snprintf(operand, sizeof operand, "%s[%d,%d,%d]", t, p, rows, columns);
    snprintf(text, sizeof text,
             "jot ir 1\nfunction @0 bins(%%x: %s, %%u: %s%s, %%j: i32%s) {\n"
             "  %%1 = iota {dtype=i32, dims=%s, axis=1} : i32%s\n"
             "  %%2 = const {data=%d} : i32[]\n  %%3 = const {data=0} : i32[]\n"
             "  %%4 = lt %%1, %%2 : bool%s\n"
             "  %%6 = iota {dtype=i32, dims=%s, axis=2} : i32%s\n"
             "  %%7 = const {data=%d} : i32[]\n  %%8 = const {data=%d} : i32[]\n"
             "  %%9 = eq %%6, %%3 : bool%s\n  %%10 = select %%9, %%7, %%8 : i32%s\n"
             "  %%11 = abs %%j : i32%s\n  %%12 = rem %%11, %%10 : i32%s\n"
             "  %%13 = select %%4, %%3, %%12 : i32%s\n  %%14 = const {data=1} : %s[]\n"
             "  %%15 = broadcast_in_dim %%14 {dims=%s, axes=[]} : %s%s\n"
             "  %%16 = %s %%x, %%13, %s {collapsed_dims=[1, 2], operand_batch=[0], "
             "index_batch=[0], index_map=[1, 2], mode=3} : %s\n  return %%16\n}\n",
             operand, t, each, two, two, two, n / 2, two, two, two, rows + 1, columns + 1, two,
             two, two, two, two, t, each, t, each, of_bins[i].op, is_one ? "%15" : "%u",
             operand);
    return parse(text);
}

START_TEST(of_few_and_many_indices)
{
    uint64_t state = seed + (uint64_t)_i;
    for (int is_one = 0; is_one < 2; is_one++) {
        uint32_t f = in_bins(_i, is_one);
        struct ir_tensor in[3];
        for (uint32_t k = 0; k < 3; k++)
            in[k] = draw(ir_type_of(graph(f), k), &state);
        native_add(&run, of_bins[_i].op, f, in, &(struct native_how){.threads = true});
    }
    end();
}
END_TEST

// Updates of rows, at indices of two axes, some of them outside: a GPU sorts them once for all of a
// row.
static uint32_t rows(const char *op, jot_dtype d, int width, int indices, int mode)
{
    char text[2000];
    const char *n = dtype_get(d)->name;
    snprintf(text, sizeof text,
             "jot ir 1\nfunction @0 %s(%%x: %s[%d,%d], %%u: %s[70,60,%d]) {\n"
             "  %%1 = iota {dtype=i32, dims=[4200], axis=0} : i32[4200]\n"
             "  %%2 = const {data=7919} : i32[]\n  %%3 = const {data=%d} : i32[]\n"
             "  %%4 = mul %%1, %%2 : i32[4200]\n  %%5 = rem %%4, %%3 : i32[4200]\n"
             "  %%6 = const {data=1} : i32[]\n  %%7 = sub %%5, %%6 : i32[4200]\n"
             "  %%8 = reshape %%7 {dims=[70, 60, 1]} : i32[70,60,1]\n"
             "  %%9 = %s %%x, %%8, %%u {offset_dims=[2], collapsed_dims=[0], index_map=[0], "
             "mode=%d} : %s[%d,%d]\n  return %%9\n}\n",
             op, n, indices, width, n, width, indices + 2, op, mode, n, indices, width);
    return parse(text);
}

START_TEST(of_rows)
{
    uint64_t state = seed;
    static const int widths[] = {8, 40, 1, 33, 64}, counts[] = {300, 5, 700, 1, 40};
    for (int i = 0; i < 5; i++) {
        jot_dtype d = numbers[(i + _i) % 5];
        d = d == JOT_C64 && i > 2 ? JOT_F32 : d; // no order
        uint32_t f =
            rows(ops[i], d, widths[(i + _i) % 5], counts[(2 * i + _i) % 5], i % 2 ? 3 : 0);
        struct ir_tensor in[2] = {draw(ir_type_of(graph(f), 0), &state),
                                  draw(ir_type_of(graph(f), 1), &state)};
        native_add(&run, graph(f)->name, f, in, &(struct native_how){.threads = true});
    }
    end();
}
END_TEST

// Of rows so short that the order has what is to be added to each number of them, and of others.
START_TEST(of_short_rows)
{
    uint64_t state = seed;
    static const struct {
        int op, width, count;
        jot_dtype dtype;
    } cases[] = {{1, 2, 300, JOT_F32}, {1, 3, 9000, JOT_F32}, {0, 4, 40, JOT_I32},
                 {4, 2, 7, JOT_F64},   {1, 3, 70, JOT_F64},   {0, 2, 20000, JOT_F32},
                 {2, 2, 30, JOT_F16},  {1, 2, 9000, JOT_C64}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t f = rows(ops[cases[i].op], cases[i].dtype, cases[i].width, cases[i].count, 3);
        struct ir_tensor in[2] = {draw(ir_type_of(graph(f), 0), &state),
                                  draw(ir_type_of(graph(f), 1), &state)};
        native_add(&run, graph(f)->name, f, in, &(struct native_how){.threads = true});
    }
    end();
}
END_TEST

// So many that a GPU has more bins of them, and more warps.
START_TEST(of_many_rows)
{
    uint64_t state = seed;
    uint32_t f = parse(
        "jot ir 1\nfunction @0 rows(%0: f32[3000,8], %1: f32[270000]) {\n"
        "  %2 = iota {dtype=i32, dims=[270000], axis=0} : i32[270000]\n"
        "  %3 = const {data=7919} : i32[]\n  %4 = const {data=3001} : i32[]\n"
        "  %5 = mul %2, %3 : i32[270000]\n  %6 = rem %5, %4 : i32[270000]\n"
        "  %7 = reshape %6 {dims=[270000, 1]} : i32[270000,1]\n"
        "  %8 = broadcast_in_dim %1 {dims=[270000, 8], axes=[0]} : f32[270000,8]\n"
        "  %9 = scatter_add %0, %7, %8 {offset_dims=[1], collapsed_dims=[0], index_map=[0], "
        "mode=3} : f32[3000,8]\n  return %9\n}\n");
    struct ir_tensor in[2] = {draw(ir_type_of(graph(f), 0), &state),
                              draw(ir_type_of(graph(f), 1), &state)};
    native_add(&run, "rows", f, in, &(struct native_how){.threads = true});
    end();
}
END_TEST

// Windows that may meet: few, of which a GPU's threads each have an element of the operand, and many, which it sorts.
static const struct {
    const char *operand, *indices, *updates, *how;
    int count;
} windows[] = {
    {"[4000]", "[7,1]", "[7,3000]", "offset_dims=[1], collapsed_dims=[], index_map=[0]", 1100},
    {"[60,7,30]", "[9,2]", "[9,50,20]",
     "offset_dims=[1,2], collapsed_dims=[1], index_map=[0,1]", 14},
    {"[80,5,40]", "[6,5,1]", "[6,5,70,30]",
     "offset_dims=[2,3], collapsed_dims=[], operand_batch=[1], index_batch=[1], index_map=[2]",
     12},
    {"[900]", "[40,1]", "[40]", "offset_dims=[], collapsed_dims=[0], index_map=[0]", 904},
    {"[70,80]", "[700,2]", "[700,3,4]", "offset_dims=[1,2], collapsed_dims=[], index_map=[0,1]",
     76},
};

START_TEST(of_windows)
{
    uint64_t state = seed + (uint64_t)_i;
    for (int op = 0; op < 5; op++) {
        char text[1000];
        const char *d = dtype_get(numbers[(_i + op) % 5])->name, *in = windows[_i].operand;
        const char *at = windows[_i].indices;
        if (numbers[(_i + op) % 5] == JOT_C64 && op > 2)
            continue;
        snprintf(text, sizeof text,
                 "jot ir 1\nfunction @0 windows(%%x: %s%s, %%i: i32%s, %%u: %s%s) {\n"
                 "  %%m = const {data=%d} : i32[]\n  %%l = const {data=3} : i32[]\n"
                 "  %%q = broadcast_in_dim %%m {dims=%s, axes=[]} : i32%s\n"
                 "  %%p = broadcast_in_dim %%l {dims=%s, axes=[]} : i32%s\n"
                 "  %%a = abs %%i : i32%s\n  %%r = rem %%a, %%q : i32%s\n"
                 "  %%s = sub %%r, %%p : i32%s\n"
                 "  %%1 = %s %%x, %%s, %%u {%s, mode=%d} : %s%s\n  return %%1\n}\n",
                 d, in, at, d, windows[_i].updates, windows[_i].count, at, at, at, at, at, at,
                 at, ops[op], windows[_i].how, op % 2 ? 3 : 0, d, in);
        uint32_t f = parse(text);
        struct ir_tensor in3[3];
        for (uint32_t k = 0; k < 3; k++)
            in3[k] = draw(ir_type_of(graph(f), k), &state);
        native_add(&run, graph(f)->name, f, in3, &(struct native_how){.threads = true});
    }
    end();
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, begin, NULL);
    tcase_add_loop_test(t, of_rows, 0, 5);
    tcase_add_test(t, of_short_rows);
    tcase_add_test(t, of_many_rows);
    tcase_add_loop_test(t, at_one_index, 0, 5);
    tcase_add_test(t, at_two_indices);
    tcase_add_test(t, indices_of_indices);
    tcase_add_test(t, beyond_signed);
    tcase_add_test(t, of_many_chunks);
    tcase_add_loop_test(t, of_few_and_many_indices, 0, sizeof of_bins / sizeof *of_bins);
    tcase_add_loop_test(t, of_windows, 0, sizeof windows / sizeof *windows);
}

int main(void) { return support_run("updates", add_tests); }
