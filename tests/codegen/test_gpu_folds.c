// SPDX-License-Identifier: Apache-2.0
// Folds on a GPU, without one: what the structure of their PTX promises.
#include "ptx_support.h"
#include "support/opcases.h"

START_TEST(pairs_are_of_a_group)
{
    // The fold inside is of one thread, and the pairs of a body are of many.
    const char *ptx = ptx_of("kernel pairs(x: f32[24576], y: out f32[8192]) {\n"
                             "  par i < 8192 {\n"
                             "    fold j < 8192 {\n"
                             "      fold k < 3 {\n"
                             "        %0 = load x[3*j + k] : f32\n"
                             "        %1 = load x[3*i + k] : f32\n"
                             "        %2 = sub %0, %1 : f32\n"
                             "        yield fma %2 %2 sum64\n"
                             "      } -> %3 : f32\n"
                             "      %4 = sqrt %3 : f32\n"
                             "      yield reduce_sum %4 sum64\n"
                             "    } -> %5 : f32\n"
                             "    put y[i] = %5\n"
                             "  }\n"
                             "}\n");
    ck_assert_ptr_nonnull(strstr(ptx, "shfl.sync.down"));
    ck_assert_ptr_nonnull(strstr(ptx, ".maxntid 256"));
    check_clean(ptx);
}
END_TEST

START_TEST(a_row_is_read_once)
{
    const char *ptx = ptx_of("kernel softmax(x: f32[67108864], y: out f32[67108864]) {\n"
                             "  par r < 8192 {\n"
                             "    fold c < 8192 {\n"
                             "      %0 = load x[8192*r + c] : f32\n"
                             "      yield reduce_max %0 free\n"
                             "    } -> %1 : f32\n"
                             "    fold c < 8192 {\n"
                             "      %2 = load x[8192*r + c] : f32\n"
                             "      %3 = sub %2, %1 : f32\n"
                             "      %4 = exp %3 : f32\n"
                             "      yield reduce_sum %4 sum64\n"
                             "    } -> %5 : f32\n"
                             "    map c < 8192 {\n"
                             "      %6 = load x[8192*r + c] : f32\n"
                             "      %7 = sub %6, %1 : f32\n"
                             "      %8 = erf_inv %7 : f32\n"
                             "      %9 = div %8, %5 : f32\n"
                             "      put y[8192*r + c] = %9\n"
                             "    }\n"
                             "  }\n"
                             "}\n");
    ck_assert_int_eq(count(ptx, "ld.global.nc.v4.f32"), 8);
    ck_assert_int_eq(count(ptx, "ld.global"), 8);
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 8);
    check_clean(ptx);
}
END_TEST

#define EXP_LESS(of)                                                                           \
    "kernel exp_less(x: f32[4194305], z: f32[4194304], y: out f32[4194304]) {\n"               \
    "  par r < 1024 {\n"                                                                       \
    "    fold c < 4096 {\n"                                                                    \
    "      %0 = load x[4096*r + c] : f32\n"                                                    \
    "      yield reduce_max %0 free\n"                                                         \
    "    } -> %1 : f32\n"                                                                      \
    "    map c < 4096 {\n"                                                                     \
    "      %2 = load " of " : f32\n"                                                           \
    "      %3 = sub %2, %1 : f32\n"                                                            \
    "      %4 = exp %3 : f32\n"                                                                \
    "      put y[4096*r + c] = %4\n"                                                           \
    "    }\n"                                                                                  \
    "  }\n"                                                                                    \
    "}\n"

// A number less the maximum of its row is not above 0: its exponential needs no bound above.  One of
// another row, of another array or before its neighbour may be.
START_TEST(exponentials_of_rows_have_one_bound)
{
    const char *above = "0f42B20000", *below = "0fC2D00000"; // 89 and -104
    const char *others[] = {EXP_LESS("z[4096*r + c]"), EXP_LESS("x[c]"),
                            EXP_LESS("x[4096*r + c + 1]"), EXP_LESS("x[4194303 - 4096*r - c]")};
    const char *ptx = ptx_of(EXP_LESS("x[4096*r + c]"));
    ck_assert_int_eq(count(ptx, above), 0);
    ck_assert_int_gt(count(ptx, below), 0);
    check_clean(ptx);
    for (int i = 0; i < 4; i++)
        ck_assert_msg(count(ptx_of(others[i]), above) > 0, "%s", others[i]);
}
END_TEST

START_TEST(a_sum_is_one_kernel)
{
    const char *ptx = ptx_of("kernel sum(x: f32[16777216], y: out f32[1]) {\n"
                             "  fold c < 16777216 {\n"
                             "    %0 = load x[c] : f32\n"
                             "    yield reduce_sum %0 sum64\n"
                             "  } -> %1 : f32\n"
                             "  put y[0] = %1\n"
                             "}\n");
    ck_assert_int_eq(count(ptx, ".visible .entry"), 1);
    ck_assert_ptr_nonnull(strstr(ptx, "ld.global.nc.v4.f32"));
    ck_assert_ptr_nonnull(strstr(ptx, "atom.global.add.u32"));
    check_clean(ptx);
}
END_TEST

// Few long rows are shared by blocks, each of which counts those of its row; many are of a block each.
START_TEST(few_rows_are_shared)
{
    static const int rows[] = {16, 1024};
    for (int i = 0; i < 2; i++) {
        struct strbuf s = strbuf_make(arena);
        strbuf_printf(
            &s,
            "kernel sum(x: f32[%d], z: f32[%d], y: out f32[%d]) {\n"
            "  par r < %d {\n    %%3 = load z[r] : f32\n"
            "    fold c < 1048576 {\n"
            "      %%0 = load x[1048576*r + c] : f32\n      %%1 = mul %%0, %%3 : f32\n"
            "      yield reduce_sum %%1 sum64\n    } -> %%2 : f32\n"
            "    put y[r] = %%2\n  }\n}\n",
            rows[i] << 20, rows[i], rows[i], rows[i]);
        const char *ptx = ptx_of(s.text);
        ck_assert_int_eq(count(ptx, ".visible .entry"), 1);
        ck_assert_ptr_nonnull(strstr(ptx, "ld.global.nc.v4.f32"));
        ck_assert_int_eq(count(ptx, "atom.global.add.u32"), rows[i] == 16);
        check_clean(ptx);
    }
}
END_TEST

// Neighbouring columns by 16 bytes, several threads for each.
START_TEST(columns_are_read_side_by_side)
{
    const char *ptx = ptx_of("kernel sum(x: f32[134217728], y: out f32[32768]) {\n"
                             "  par j < 32768 {\n"
                             "    fold i < 4096 {\n"
                             "      %0 = load x[j + 32768*i] : f32\n"
                             "      yield reduce_sum %0 sum64\n"
                             "    } -> %1 : f32\n"
                             "    put y[j] = %1\n"
                             "  }\n"
                             "}\n");
    ck_assert_int_eq(count(ptx, "ld.global"), 8);
    ck_assert_int_eq(count(ptx, "ld.global.nc.v4.f32"), 8);
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 1);
    ck_assert_ptr_nonnull(strstr(ptx, "ld.shared"));
    check_clean(ptx);
}
END_TEST

static const char *points_with_loops(int points)
{
    struct strbuf text = strbuf_make(arena);
    strbuf_printf(
        &text,
        "kernel steps(x: f32[%d], w: f32[32], y: out f32[%d]) {\n"
        "  local h: f32[32]\n  %%0 = const 0x00000009 : i32\n"
        "  par i < %d {\n    %%1 = load x[i] : f32\n"
        "    seq t < 9 carry %%2 = %%1 {\n"
        "      map j < 32 {\n        %%3 = load w[j] : f32\n        %%4 = mul %%3, %%2 : f32\n"
        "        %%5 = tanh %%4 : f32\n        put h[j] = %%5\n      }\n"
        "      fold k < 32 {\n        %%6 = load h[k] : f32\n        %%7 = load w[k] : f32\n"
        "        yield fma %%6 %%7 sum64\n      } -> %%8 : f32\n"
        "      %%9 = pow %%8, %%1 : f32\n      %%10 = tanh %%9 : f32\n"
        "      yield %%10\n    } -> %%11\n    put y[i] = %%11\n  }\n}\n",
        points, points, points);
    return text.text;
}

// Points of much work and few reads: where there are threads enough without it no warp repeats what it does not
// share.
START_TEST(warps_share_where_points_are_few)
{
    ck_assert_ptr_nonnull(strstr(ptx_of(points_with_loops(1000)), "shfl.sync"));
    ck_assert_ptr_null(strstr(ptx_of(points_with_loops(400000)), "shfl.sync"));
}
END_TEST

static const char *dear_fold_of(const char *function, int n, int times)
{
    struct strbuf text = strbuf_make(arena);
    strbuf_printf(&text,
                  "kernel dear(x: f32[%d], y: out f32[1]) {\n  fold i < %d {\n"
                  "    %%0 = load x[i] : f32\n",
                  n, n);
    for (int i = 0; i < times; i++)
        strbuf_printf(&text, "    %%%d = %s %%%d : f32\n", i + 1, function, i);
    strbuf_printf(&text,
                  "    yield reduce_sum %%%d sum64\n  } -> %%%d : f32\n  put y[0] = %%%d\n}\n",
                  times, times + 1, times + 1);
    return text.text;
}

static const char *dear_fold(int n) { return dear_fold_of("sin", n, 8); }

// A thread that makes a term and a row of memory for it reads and puts neighbours of the row at once.
START_TEST(rows_beside_terms_are_vectors)
{
    const char *ptx =
        ptx_of("kernel step(x: f32[1048576], z: out f32[1048576], s: out f32[1]) {\n"
               "  fold i < 65536 {\n"
               "    %0 = load x[16*i] : f32\n"
               "    %1 = sin %0 : f32\n"
               "    %2 = sin %1 : f32\n"
               "    %3 = sin %2 : f32\n"
               "    map j < 16 {\n"
               "      %4 = load x[16*i + j] : f32\n"
               "      %5 = mul %4, %3 : f32\n"
               "      put z[16*i + j] = %5\n"
               "    }\n"
               "    yield reduce_sum %3 sum64\n"
               "  } -> %6 : f32\n"
               "  put s[0] = %6\n"
               "}\n");
    ck_assert_ptr_nonnull(strstr(ptx, "_terms("));
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 1);
    check_assembles(ptx);
}
END_TEST

// Several elements are read before the first is put: a load behind a put waits for it where both may have one memory.
START_TEST(folds_that_put_read_first)
{
    const char *ptx = ptx_of("kernel step(x: f32[65536], y: f32[65536], z: out f32[65536], "
                             "s: out f32[1]) {\n"
                             "  fold i < 65536 {\n"
                             "    %0 = load x[i] : f32\n"
                             "    %1 = load y[i] : f32\n"
                             "    %2 = sub %0, %1 : f32\n"
                             "    put z[i] = %2\n"
                             "    yield fma %2 %2 sum64\n"
                             "  } -> %3 : f32\n"
                             "  put s[0] = %3\n"
                             "}\n");
    const char *put = strstr(ptx, "st.global.v4.f32");
    ck_assert_ptr_nonnull(put);
    int read = count(ptx, "ld.global.nc.v4.f32"), behind = count(put, "ld.global.nc.v4.f32");
    ck_assert_int_ge(read - behind, 8);
    check_assembles(ptx);
}
END_TEST

// Elements that are dear, of few blocks of a fold: a thread each computes them first, by a function
// of its own where the blocks are fewer than multiprocessors.
START_TEST(dear_terms_are_computed_first)
{
    const char *ptx = ptx_of(dear_fold(100000));
    ck_assert_int_eq(count(ptx, ".visible .entry"), 2);
    ck_assert_ptr_nonnull(strstr(ptx, "_terms("));
    check_assembles(ptx);
    ptx = ptx_of(dear_fold(1000000));
    ck_assert_int_eq(count(ptx, ".visible .entry"), 1);
    ck_assert_ptr_null(strstr(ptx, "_terms("));
    check_assembles(ptx);
    ck_assert_ptr_null(strstr(ptx, ".minnctapersm"));
}
END_TEST

// Sines of sines, and their product, which takes so many of them in the other order.
static const char *wide_fold(int values)
{
    int sines = 40, n = sines;
    struct strbuf text = strbuf_make(arena);
    strbuf_add(&text, "kernel wide(x: f32[67108864], y: out f32[1]) {\n  fold i < 67108864 {\n"
                      "    %0 = load x[i] : f32\n");
    for (int i = 0; i < sines; i++)
        strbuf_printf(&text, "    %%%d = sin %%%d : f32\n", i + 1, i);
    for (int i = 0; i < values; i++, n++)
        strbuf_printf(&text, "    %%%d = mul %%%d, %%%d : f32\n", n + 1, n, sines - i);
    strbuf_printf(&text,
                  "    yield reduce_sum %%%d sum64\n  } -> %%%d : f32\n  put y[0] = %%%d\n}\n",
                  n, n + 1, n + 1);
    return text.text;
}

// Those of hundreds of operations have registers rather than more threads, unless these are not enough.
START_TEST(long_terms_have_registers)
{
    static const char *const functions[] = {"sin",   "exp",  "log",    "tanh",
                                            "erf",   "atan", "log1p",  "asin",
                                            "expm1", "cbrt", "lgamma", "erf_inv"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const char *ptx = ptx_of(dear_fold_of(functions[i], 67108864, 60));
        if (strcmp(functions[i], "lgamma") != 0)
            ck_assert_ptr_nonnull(strstr(ptx, ".minnctapersm 5"));
        check_assembles(ptx);
    }
    for (int values = 8; values <= 40; values += 32) {
        const char *ptx = ptx_of(wide_fold(values));
        ck_assert_int_eq(count(ptx, ".minnctapersm"), values == 8);
        check_assembles(ptx);
    }
}
END_TEST

// A fold whose elements are folds that are loops is one, too.
START_TEST(loops_are_not_written_out)
{
    const char *ptx = ptx_of("kernel k(x: f32[1280], y: out f32[1]) {\n"
                             "  fold j < 10 {\n"
                             "    fold i < 128 {\n"
                             "      %0 = load x[j + 10*i] : f32\n"
                             "      yield reduce_sum %0 sum64\n"
                             "    } -> %1 : f32\n"
                             "    %2 = mul %1, %1 : f32\n"
                             "    yield reduce_sum %2 sum64\n"
                             "  } -> %3 : f32\n"
                             "  put y[0] = %3\n"
                             "}\n");
    ck_assert_int_le(count(ptx, "ld.global"), 2);
    check_assembles(ptx);
}
END_TEST

// Of steps that are long the assembler is to write out no more than one.
START_TEST(long_steps_stay_loops)
{
    for (int is_long = 0; is_long < 2; is_long++) {
        struct strbuf text = strbuf_make(arena);
        strbuf_add(&text, "kernel k(x: f32[4096], y: out f32[4096]) {\n  par i < 4096 {\n"
                          "    %0 = load x[i] : f32\n    seq j < 100 carry %1 = %0 {\n");
        int n = is_long ? 150 : 10;
        for (int i = 1; i <= n; i++)
            strbuf_printf(&text, "      %%%d = fma %%%d, %%0, %%%d : f32\n", i + 1, i, i);
        strbuf_printf(&text, "      yield %%%d\n    } -> %%%d\n    put y[i] = %%%d\n  }\n}\n",
                      n + 1, n + 2, n + 2);
        const char *ptx = ptx_of(text.text);
        ck_assert_int_eq(count(ptx, "nounroll"), is_long);
        check_assembles(ptx);
    }
}
END_TEST

// Of a row of dear elements a thread has few at once, and takes its two blocks in a loop.
START_TEST(few_dear_elements_are_written_out)
{
    const char *ptx = ptx_of("kernel k(x: f32[24576], y: out f32[8192]) {\n"
                             "  par i < 8192 {\n"
                             "    %0 = load x[3*i] : f32\n"
                             "    fold j < 8192 {\n"
                             "      %1 = load x[3*j] : f32\n"
                             "      %2 = sub %0, %1 : f32\n"
                             "      %3 = sqrt %2 : f32\n"
                             "      %4 = div %1, %3 : f32\n"
                             "      %5 = sqrt %4 : f32\n"
                             "      %6 = div %0, %5 : f32\n"
                             "      yield reduce_sum %4 sum64, reduce_sum %6 sum64\n"
                             "    } -> %7 : f32, %8 : f32\n"
                             "    %9 = add %7, %8 : f32\n"
                             "    put y[i] = %9\n"
                             "  }\n"
                             "}\n");
    ck_assert_int_eq(count(ptx, "rsqrt.approx"), 16);
    check_assembles(ptx);
}
END_TEST

// Columns of few elements have a warp each; of many, neighbouring threads have them whole.
START_TEST(short_columns_are_of_warps)
{
    static const char text[] = "kernel sum(x: f32[%d], y: out f32[%d]) {\n"
                               "  par j < %d {\n"
                               "    fold i < 250 {\n"
                               "      %%0 = load x[j + %d*i] : f32\n"
                               "      yield reduce_sum %%0 sum64\n"
                               "    } -> %%1 : f32\n"
                               "    put y[j] = %%1\n"
                               "  }\n"
                               "}\n";
    for (int columns = 120; columns <= 120000; columns *= 1000) {
        char filled[sizeof text + 50];
        snprintf(filled, sizeof filled, text, 250 * columns, columns, columns, columns);
        bool are_of_warps = strstr(ptx_of(filled), "shfl.sync.down");
        ck_assert_int_eq(are_of_warps, columns == 120);
    }
}
END_TEST

// Of light terms and few blocks as well: a function makes the terms; and a sum of more than one block
// of threads should make is one of many.
START_TEST(sums_are_shared_out)
{
    static const struct {
        const char *op;
        int length;
        bool has_terms, is_shared;
    } sums[] = {{"exp", 30000, true, true},
                {"exp", 10000000, false, true},
                {"neg", 50000, false, true},
                {"neg", 4000, false, false}};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        const char *ptx = ptx_of(dear_fold_of(sums[i].op, sums[i].length, 1));
        ck_assert_int_eq(strstr(ptx, "_terms(") != NULL, sums[i].has_terms);
        ck_assert_int_eq(strstr(ptx, "atom.") != NULL, sums[i].is_shared); // who ends last
    }
}
END_TEST

// Few columns: blocks have parts of the rows, and a second function brings them together.
START_TEST(long_columns_go_by_parts)
{
    const char *ptx =
        ptx_of("kernel sum(x: f32[100000000], w: f32[1000000], y: out f32[100]) {\n"
               "  par j < 100 {\n"
               "    fold i < 1000000 {\n"
               "      %0 = load x[j + 100*i] : f32\n"
               "      %1 = load w[i] : f32\n"
               "      yield fma %0 %1 sum64\n"
               "    } -> %2 : f32\n"
               "    put y[j] = %2\n"
               "  }\n"
               "}\n");
    ck_assert_int_eq(count(ptx, ".visible .entry"), 2);
    ck_assert_ptr_nonnull(strstr(ptx, "_parts_streams("));
    ck_assert_int_ge(count(ptx, "ld.global.nc.L1::no_allocate.v4.f32"), 1);
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 1);
    check_clean(ptx);
}
END_TEST

// Points, how many elements each has, and where element i of point r lies: chunks, those of rows, whole rows, and those
// of columns.
static const struct {
    int points, length;
    const char *at;
} running[] = {{1, 1 << 20, "i"},
               {8, 40000, "40000*r + i"},
               {2000, 1100, "1100*r + i"},
               {64, 20000, "r + 64*i"}};

static const char *running_fold(enum ir_op op, jot_dtype d, size_t k)
{
    struct strbuf s = strbuf_make(arena);
    const char *type = dtype_get(d)->name;
    int elements = running[k].points * running[k].length;
    strbuf_printf(
        &s,
        "kernel running(x: %s[%d], y: out %s[%d]) {\n  par r < %d {\n    scan i < %d {\n"
        "      %%0 = load x[%s] : %s\n      yield %s %%0 %s -> %%1 : %s\n"
        "      put y[%s] = %%1\n    }\n  }\n}\n",
        type, elements, type, elements, running[k].points, running[k].length, running[k].at,
        type, ir_op_get(op)->name, nest_is_free((uint16_t)op, d) ? "free" : "serial", type,
        running[k].at);
    return s.text;
}

// Threads share a long running fold by each combiner that there is, of each type that this takes.  Halves are combined
// as f32.  Code is made of one shape of each.
START_TEST(running_folds_are_shared)
{
    enum ir_op op = (enum ir_op)_i;
    enum ir_class class = ir_op_class(op);
    const size_t shapes = sizeof running / sizeof *running;
    if ((class != IR_CLASS_REDUCE && class != IR_CLASS_CUMULATIVE) ||
        ir_op_get(op)->combiner != op)
        return;
    for (int d = 0; d < DTYPE_COUNT; d++)
        for (size_t k = 0; k < shapes; k++) {
            if (!opcase_takes(op, (jot_dtype)d) || dtype_is_half((jot_dtype)d))
                continue;
            const char *text = running_fold(op, (jot_dtype)d, k);
            ck_assert_msg(strstr(mapped_of(text, "cuda sm_90"), "scan @thread"),
                          "by one thread:\n%s", text);
            if ((size_t)(op + d) % shapes == k)
                ck_assert_msg(strstr(ptx_of(text), "shfl.sync.up"), "by one thread:\n%s", text);
        }
}
END_TEST

static void add_tests(TCase *c)
{
    tcase_add_loop_test(c, running_folds_are_shared, 0, IR_OP_COUNT);
    tcase_add_test(c, pairs_are_of_a_group);
    tcase_add_test(c, a_row_is_read_once);
    tcase_add_test(c, exponentials_of_rows_have_one_bound);
    tcase_add_test(c, a_sum_is_one_kernel);
    tcase_add_test(c, few_rows_are_shared);
    tcase_add_test(c, columns_are_read_side_by_side);
    tcase_add_test(c, warps_share_where_points_are_few);
    tcase_add_test(c, dear_terms_are_computed_first);
    tcase_add_test(c, long_terms_have_registers);
    tcase_add_test(c, loops_are_not_written_out);
    tcase_add_test(c, long_steps_stay_loops);
    tcase_add_test(c, few_dear_elements_are_written_out);
    tcase_add_test(c, short_columns_are_of_warps);
    tcase_add_test(c, sums_are_shared_out);
    tcase_add_test(c, folds_that_put_read_first);
    tcase_add_test(c, rows_beside_terms_are_vectors);
    tcase_add_test(c, long_columns_go_by_parts);
}

int main(void) { return run_ptx("gpu folds", add_tests); }
