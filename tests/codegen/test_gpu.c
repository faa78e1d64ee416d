// SPDX-License-Identifier: Apache-2.0
// Kernels on a GPU, without one: what the structure of their PTX promises.
#include "ptx_support.h"

// What all lanes share is no vector, of which the assembler could think that some lanes are undefined.
START_TEST(powers_of_none_are_scalar)
{
    const char *ptx = ptx_of("kernel k(x: u8[1030], y: out u8[1030]) {"
                             "  fold i < 1030 {"
                             "    %0 = load x[i] : u8"
                             "    yield reduce_xor %0 free"
                             "  } -> %1 : u8"
                             "  map j < 1030 {"
                             "    %2 = load x[j] : u8"
                             "    %3 = integer_pow %2 : u8"
                             "    %4 = sub %1, %3 : u8"
                             "    put y[j] = %4"
                             "  }"
                             "}");
    ck_assert_msg(!strstr(ptx, "s16x2"), "%s", ptx);
}
END_TEST

START_TEST(maps_go_by_16_bytes)
{
    const char *ptx = ptx_of(AXPY("1048576"));
    ck_assert_int_eq(count(ptx, "ld.global.nc.v4.f32"), 2);
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 1);
    ck_assert_int_eq(count(ptx, "mul.rn.f32"), 4); // nothing is contracted
    check_clean(ptx);
    // A length that is no multiple of four ends in single numbers.
    ptx = ptx_of(AXPY("1048579"));
    ck_assert_int_eq(count(ptx, "ld.global.nc.v4.f32"), 2);
    ck_assert_int_eq(count(ptx, "st.global.f32"), 1);
    check_clean(ptx);
}
END_TEST

// Folds in folds are written out within one bound for all of them.
START_TEST(folds_in_folds)
{
    char text[2000], *at = text;
    enum { DEPTH = 6 };
    at += sprintf(at, "kernel deep(x: f32[1], y: out f32[1]) {\n  %%0 = load x[0] : f32\n");
    for (int i = 0; i < DEPTH; i++)
        at += sprintf(at, "  fold i%d < 8 {\n", i);
    at += sprintf(at, "  %%1 = index i5 : i64\n  %%2 = convert %%1 : f32\n"
                      "  %%3 = add %%0, %%2 : f32\n");
    for (int i = 0, v = 3; i < DEPTH; i++, v += 2)
        at += sprintf(
            at, "  yield reduce_sum %%%d sum64\n  } -> %%%d : f32\n  %%%d = exp %%%d : f32\n",
            v, v + 1, v + 2, v + 1);
    sprintf(at, "  put y[0] = %%15\n}\n");
    ck_assert_uint_lt(strlen(ptx_of(text)), 1000000);
}
END_TEST

#define PRODUCTS(n, all)                                                                       \
    "kernel products(x: f32[" all "], y: f32[" all "], z: out f32[" all "]) {\n"               \
    "  par i < " #n ", j < 16, k < 16 {\n"                                                     \
    "    fold l < 16 {\n"                                                                      \
    "      %0 = load x[256*i + 16*j + l] : f32\n"                                              \
    "      %1 = load y[256*i + k + 16*l] : f32\n"                                              \
    "      yield fma %0 %1 sum64\n"                                                            \
    "    } -> %2 : f32\n"                                                                      \
    "    put z[256*i + 16*j + k] = %2\n"                                                       \
    "  }\n"                                                                                    \
    "}\n"

START_TEST(small_products_share_a_matrix)
{
    // Two rows of x and all of y, for two times four results.
    const char *ptx = ptx_of(PRODUCTS(100000, "25600000"));
    ck_assert_int_eq(count(ptx, "ld.global.nc.v4.f32"), 2 * 4 + 16);
    ck_assert_int_eq(count(ptx, "ld.global"), 2 * 4 + 16);
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 2);
    check_clean(ptx);
    // Few of them need all the threads that there can be.
    ptx = ptx_of(PRODUCTS(1000, "256000"));
    ck_assert_int_eq(count(ptx, "ld.global.nc.v4.f32"), 4 + 16);
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 1);
}
END_TEST

// A window at an index that is data lies anywhere.
START_TEST(windows_go_by_elements)
{
    static const char *const types[] = {"bool", "u8", "i8", "i16", "f16", "i32", "f64"};
    static const char *const from[] = {"j + %1", "-j + %1 + 500"};
    for (int i = 0; i < 14; i++) {
        const char *type = types[i / 2];
        struct strbuf text = strbuf_make(arena);
        strbuf_printf(&text, "kernel k(p: i64[3], x: %s[513], y: inout %s[513]) {\n", type,
                      type);
        strbuf_printf(&text, "  seq i < 3 {\n    %%1 = load p[i] : i64\n    map j < 501 {\n");
        strbuf_printf(&text, "      %%2 = load x[%s] : %s\n", from[i % 2], type);
        strbuf_printf(&text, "      put y[j + %%1] = %%2\n    }\n  }\n}\n");
        const char *ptx = ptx_of(text.text);
        ck_assert_msg(!strstr(ptx, "global.v") && !strstr(ptx, "global.nc.v"), "%s of x[%s]",
                      type, from[i % 2]);
        check_assembles(ptx);
    }
}
END_TEST

// What ptxas makes of a choice of floats between 1 or -1 and -0 is 0.
START_TEST(negative_zeros_are_chosen_by_bits)
{
    static const char *const ones[] = {"0x3f800000", "0xbf800000"};
    for (int i = 0; i < 2; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "kernel k(x: f32[64], y: out f32[64]) {\n"
                 "  %%0 = const %s : f32\n"
                 "  %%1 = const 0x80000000 : f32\n"
                 "  par i < 64 {\n"
                 "    %%2 = load x[i] : f32\n"
                 "    %%3 = lt %%2, %%0 : bool\n"
                 "    %%4 = select %%3, %%0, %%1 : f32\n"
                 "    put y[i] = %%4\n"
                 "  }\n"
                 "}\n",
                 ones[i]);
        const char *ptx = ptx_of(text);
        ck_assert_int_gt(count(ptx, "selp.b32"), 0);
        ck_assert_int_eq(count(ptx, "selp.f32"), 0);
        check_clean(ptx);
    }
}
END_TEST

// ptxas drops a negation of the three integers that it finds the maximum of at once.
START_TEST(integers_are_negated_by_complement)
{
    static const char *const types[] = {"i32", "u32", "i16"};
    for (int i = 0; i < 3; i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "kernel k(x: %s[192], y: out %s[64]) {\n"
                 "  par i < 64 {\n"
                 "    fold j < 3 {\n"
                 "      %%0 = load x[3*i + j] : %s\n"
                 "      %%1 = neg %%0 : %s\n"
                 "      yield reduce_max %%1 free\n"
                 "    } -> %%2 : %s\n"
                 "    put y[i] = %%2\n"
                 "  }\n"
                 "}\n",
                 types[i], types[i], types[i], types[i], types[i]);
        const char *ptx = ptx_of(text);
        ck_assert_int_eq(count(ptx, "neg.s"), 0);
        ck_assert_int_eq(count(ptx, "not.b"), 3);
        check_clean(ptx);
    }
}
END_TEST

#define CUMSUM(type, n)                                                                        \
    "kernel cumsum(x: " type "[" n "], y: out " type "[" n "]) {\n"                            \
    "  scan i < " n " reverse {\n"                                                             \
    "    %0 = load x[i] : " type "\n"                                                          \
    "    yield reduce_sum %0 serial -> %1 : " type "\n"                                        \
    "    put y[i] = %1\n"                                                                      \
    "  }\n"                                                                                    \
    "}\n"

START_TEST(long_scans_go_by_warps)
{
    // One function folds the chunks, one makes of that what comes before each, one stores.
    const char *ptx = ptx_of(CUMSUM("f64", "1048576"));
    ck_assert_int_eq(count(ptx, ".entry"), 3);
    ck_assert_int_eq(count(ptx, "ld.global.nc.v2.f64"), 8);
    ck_assert_int_eq(count(ptx, "st.global.v2.f64"), 12); // 8 of them what comes before
    ck_assert_ptr_nonnull(strstr(ptx, "shfl.sync.up"));
    check_clean(ptx);
}
END_TEST

// One function over all elements behind one that clears what blocks tell each other.
START_TEST(scans_of_words_are_one_pass)
{
    const char *sizes[] = {CUMSUM("f32", "1048576"), CUMSUM("f32", "1048580"),
                           CUMSUM("i32", "65536")};
    for (int i = 0; i < 3; i++) {
        const char *ptx = ptx_of(sizes[i]), *type = i == 2 ? "u32" : "f32";
        char load[40], store[40];
        snprintf(load, sizeof load, "ld.global.nc.L1::no_allocate.v4.%s", type);
        snprintf(store, sizeof store, "st.global.cs.v4.%s", type);
        ck_assert_int_eq(count(ptx, ".entry"), 2);
        ck_assert_int_eq(count(ptx, "ld.global.nc"), 16);
        ck_assert_int_eq(count(ptx, load), 16);
        ck_assert_int_eq(count(ptx, store), 8);
        ck_assert_int_ge(count(ptx, "ld.volatile.global.u64"), 4);
        ck_assert_int_ge(count(ptx, "st.volatile.global.u64"), 1);
        ck_assert_int_eq(count(ptx, "atom."), 0);
        check_clean(ptx);
    }
    // Shorter ones go by three functions.
    ck_assert_int_eq(count(ptx_of(CUMSUM("f32", "65532")), ".entry"), 3);
}
END_TEST

START_TEST(updates_are_sorted_by_index)
{
    const char *ptx =
        ptx_of("kernel updates(i: i32[65536], u: f32[65536], y: inout f32[100]) {\n"
               "  %0 = const 0x0000000000000000 : i64\n"
               "  %1 = const 0x0000000000000063 : i64\n"
               "  seq n < 65536 {\n"
               "    %2 = load i[n] : i32\n"
               "    %3 = convert %2 : i64\n"
               "    %4 = max %3, %0 : i64\n"
               "    %5 = min %4, %1 : i64\n"
               "    %6 = eq %3, %5 : bool\n"
               "    %7 = load u[n] : f32\n"
               "    %8 = load y[%5] : f32\n"
               "    %9 = add %8, %7 : f32\n"
               "    put y[%5] = %9 if %6\n"
               "  }\n"
               "}\n");
    ck_assert_int_eq(count(ptx, ".entry"), 2);
    ck_assert_ptr_nonnull(strstr(ptx, "vote.sync.ballot"));
    ck_assert_ptr_null(strstr(ptx, "atom."));
    // The assembler is not to write out any loop: the code is shorter and not slower.
    ck_assert_int_ge(count(ptx, ".pragma \"nounroll\";"), 8);
    check_clean(ptx);
}
END_TEST

START_TEST(transposes_go_through_shared_memory)
{
    const char *ptx = ptx_of("kernel t(x: f32[1048576], y: out f32[1048576]) {\n"
                             "  par i < 1024, j < 1024 {\n"
                             "    %0 = load x[i + 1024*j] : f32\n"
                             "    %1 = load x[1024*i + j] : f32\n"
                             "    %2 = add %0, %1 : f32\n"
                             "    put y[1024*i + j] = %2\n"
                             "  }\n"
                             "}\n");
    // A tile and its mirror image read the same once.
    ck_assert_int_eq(count(ptx, "ld.global"), 8);
    ck_assert_int_eq(count(ptx, "st.shared.f32"), 8);
    ck_assert_int_eq(count(ptx, "ld.shared.f32"), 8);
    // All reads of the tiles are in one block of code, between that of the loop and its barrier.
    const char *first = strstr(ptx, "ld.global"), *barrier = strstr(ptx, "bar.sync");
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_nonnull(barrier);
    const char *label = strstr(first, "$L");
    ck_assert(label == NULL || label > barrier);
    check_clean(ptx);
}
END_TEST

// One of many has wider tiles.
START_TEST(large_transposes_have_wide_tiles)
{
    const char *ptx = ptx_of("kernel t(x: f32[268435456], y: out f32[268435456]) {\n"
                             "  par i < 16384, j < 16384 {\n"
                             "    %0 = load x[i + 16384*j] : f32\n"
                             "    put y[16384*i + j] = %0\n"
                             "  }\n"
                             "}\n");
    ck_assert_ptr_nonnull(strstr(ptx, ".maxntid 1024"));
    ck_assert_int_eq(count(ptx, "st.shared.f32"), 8);
    check_clean(ptx);
}
END_TEST

// Where a thread does much with what it reads, it reads of two vectors.
START_TEST(large_maps_read_two_vectors)
{
    const char *ptx = ptx_of("kernel f(x: f32[268435456], y: out f32[268435456]) {\n"
                             "  par i < 268435456 {\n"
                             "    %0 = load x[i] : f32\n"
                             "    %1 = tanh %0 : f32\n"
                             "    put y[i] = %1\n"
                             "  }\n"
                             "}\n");
    ck_assert_int_eq(count(ptx, "ld.global.nc.v4.f32"), 2);
    ck_assert_int_eq(count(ptx, "st.global.v4"), 2);
    ck_assert_ptr_null(strstr(ptx, "bra"));
    // Both before it does anything with them, with registers for that.
    ck_assert_int_eq(count(strstr(ptx, "fma.rn"), "ld.global"), 0);
    ck_assert_ptr_nonnull(strstr(ptx, ".minnctapersm 6"));
    check_clean(ptx);
    ptx = ptx_of(AXPY("268435456"));
    ck_assert_ptr_null(strstr(ptx, ".minnctapersm"));
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 1);
}
END_TEST

#define RANDOM(rest)                                                                           \
    "kernel f(k: u32[2], y: out f32[134217728]) {\n"                                           \
    "  %0 = load k[0] : u32\n"                                                                 \
    "  %1 = load k[1] : u32\n"                                                                 \
    "  par i < 134217728 {\n"                                                                  \
    "    %2 = index i : i64\n"                                                                 \
    "    %3 = convert %2 : u32\n"                                                              \
    "    %4, %5 = threefry2x32 %0, %1, %0, %3 : u32\n"                                         \
    "    %6 = xor %4, %5 : u32\n"                                                              \
    "    %7 = convert %6 : f32\n" rest "  }\n"                                                 \
    "}\n"

// Threads that make much of random bits have registers to do it in.
START_TEST(random_numbers_have_registers)
{
    const char *ptx = ptx_of(RANDOM("    %8 = erf_inv %7 : f32\n    put y[i] = %8\n"));
    ck_assert_ptr_nonnull(strstr(ptx, ".minnctapersm 6"));
    check_clean(ptx);
    ck_assert_ptr_null(strstr(ptx_of(RANDOM("    put y[i] = %7\n")), ".minnctapersm"));
}
END_TEST

// What only the thread reads that put it is in no memory.
START_TEST(threads_keep_rows)
{
    static const char text[] = "kernel f(x: f32[67108864], y: out f32[67108864]) {\n"
                               "  local e: f32[8192]\n"
                               "  par i < 8192 {\n"
                               "    fold j < 8192 {\n"
                               "      %%0 = load x[8192*i + j] : f32\n"
                               "      %%1 = mul %%0, %%0 : f32\n"
                               "      put e[j] = %%1\n"
                               "      yield reduce_sum %%1 sum64\n"
                               "    } -> %%2 : f32\n"
                               "    map k < 8192 {\n"
                               "      %%3 = load e[%s] : f32\n"
                               "      %%4 = mul %%3, %%2 : f32\n"
                               "      put y[8192*i + k] = %%4\n"
                               "    }\n"
                               "  }\n"
                               "}\n";
    char straight[sizeof text + 16], reversed[sizeof text + 16];
    snprintf(straight, sizeof straight, text, "k");
    snprintf(reversed, sizeof reversed, text, "8191 - k");
    const char *ptx = ptx_of(straight);
    ck_assert_int_eq(count(ptx, "shared.v4.f32"), 0);
    ck_assert_int_eq(count(ptx, "ld.global.nc.L1::no_allocate.v4.f32"), 8);
    ck_assert_int_eq(count(ptx, "st.global.cs.v4.f32"), 8);
    check_clean(ptx);
    ptx = ptx_of(reversed);
    ck_assert_int_gt(count(ptx, "st.shared.v4.f32"), 0);
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 8);
}
END_TEST

// A row of 100 is of eight threads: three shuffles of four lanes for each of the sums.
START_TEST(short_rows_are_of_few_threads)
{
    const char *ptx = ptx_of("kernel f(x: f32[10000000], w: f32[100], y: out f32[100000]) {\n"
                             "  par i < 100000 {\n"
                             "    fold j < 100 {\n"
                             "      %0 = load x[100*i + j] : f32\n"
                             "      %1 = load w[j] : f32\n"
                             "      yield fma %0 %1 sum64\n"
                             "    } -> %2 : f32\n"
                             "    put y[i] = %2\n"
                             "  }\n"
                             "}\n");
    ck_assert_int_eq(count(ptx, "shfl.sync.down"), 12);
    ck_assert_int_eq(count(ptx, "ld.global.nc.v4.f32"), 2 * 4);
    check_clean(ptx);
}
END_TEST

// Functions that hold in a range have one branch in common.
START_TEST(ranges_have_one_branch)
{
    const char *ptx = ptx_of("kernel f(x: f32[4096], y: out f32[4096]) {\n"
                             "  par i < 4096 {\n"
                             "    %0 = load x[i] : f32\n"
                             "    %1 = sin %0 : f32\n"
                             "    %2 = cos %0 : f32\n"
                             "    %3 = mul %1, %2 : f32\n"
                             "    %4 = sin %3 : f32\n"
                             "    %5 = sqrt %4 : f32\n"
                             "    put y[i] = %5\n"
                             "  }\n"
                             "}\n");
    const char *kernel = strstr(ptx, ".entry"), *load = strstr(kernel, "ld.global.nc.f32");
    const char *branch = strstr(load, "bra"), *put = strstr(load, "st.global.f32");
    ck_assert(branch < put);
    branch = strstr(branch, "call.uni"); // of what does it again
    ck_assert_ptr_nonnull(branch);
    ck_assert_int_eq(count(load, "rsqrt.approx"), 1);
    ck_assert_int_eq(count(load, "sqrt.rn.f32"), 1);
    check_clean(ptx);
}
END_TEST

// A root that one side of a select takes, with what is made of it, is behind a branch.
START_TEST(arms_are_skipped)
{
    struct strbuf text = strbuf_make(arena);
    strbuf_add(&text, "kernel f(x: f32[4096], y: out f32[4096]) {\n"
                      "  %0 = const 0x3f000000 : f32\n"
                      "  par i < 4096 {\n"
                      "    %1 = load x[i] : f32\n"
                      "    %2 = lt %1, %0 : bool\n"
                      "    %3 = sqrt %1 : f32\n");
    for (int i = 3; i < 12; i++)
        strbuf_printf(&text, "    %%%d = fma %%%d, %%3, %%0 : f32\n", i + 1, i);
    strbuf_add(&text, "    %13 = mul %1, %1 : f32\n"
                      "    %14 = select %2, %13, %12 : f32\n"
                      "    put y[i] = %14\n"
                      "  }\n"
                      "}\n");
    const char *ptx = ptx_of(text.text);
    const char *load = strstr(ptx, "ld.global.nc"), *root = strstr(load, "sqrt");
    ck_assert(strstr(load, "bra") < root);
    check_clean(ptx);
}
END_TEST

// Few points read what later steps divide before their loop, and in each turn of it before they divide; of an f64 eight
// steps before.
START_TEST(few_points_read_early)
{
    const char *ptx = ptx_of("kernel f(x: f64[1024000], y: out f64[1024000]) {\n"
                             "  %0 = const 0x3ff0000000000000 : f64\n"
                             "  par i < 1024 {\n"
                             "    seq j < 1000 carry %1 = %0 {\n"
                             "      %2 = load x[i + 1024*j] : f64\n"
                             "      %3 = div %2, %1 : f64\n"
                             "      put y[i + 1024*j] = %3\n"
                             "      yield %3\n"
                             "    } -> %4\n"
                             "  }\n"
                             "}\n");
    const char *loop = strstr(ptx, "$L__BB0_1:"), *first = strstr(ptx, "ld.global.nc.f64");
    ck_assert_ptr_nonnull(loop);
    ck_assert_int_eq(count(ptx, "ld.global.nc.f64"), 16);
    ck_assert_int_eq(count(loop, "ld.global.nc.f64"), 8);
    ck_assert(first < loop && strstr(loop, "ld.global.nc.f64") < strstr(loop, "div.rn"));
    check_clean(ptx);
}
END_TEST

#define QUOTIENT(number)                                                                       \
    "kernel f(x: u32[4096], y: out f32[4096]) {\n"                                             \
    "  %0 = const 0x00000009 : u32\n"                                                          \
    "  %1 = const 0x3f800000 : u32\n"                                                          \
    "  %2 = const " number " : f32\n"                                                          \
    "  %3 = const 0x3f000000 : f32\n"                                                          \
    "  par i < 4096 {\n"                                                                       \
    "    %4 = load x[i] : u32\n"                                                               \
    "    %5 = shr_logical %4, %0 : u32\n"                                                      \
    "    %6 = or %5, %1 : u32\n"                                                               \
    "    %7 = bitcast %6 : f32\n"                                                              \
    "    %8 = sub %7, %2 : f32\n"                                                              \
    "    %9 = lt %8, %3 : bool\n"                                                              \
    "    %10 = div %7, %8 : f32\n"                                                             \
    "    %11 = select %9, %10, %7 : f32\n"                                                     \
    "    put y[i] = %11\n"                                                                     \
    "  }\n"                                                                                    \
    "}\n"

// Of a mantissa in [1, 2) less 0.5 a quotient is in range wherever it is taken, less 1 it is not.
START_TEST(quotients_of_mantissas_are_in_range)
{
    const char *ptx = ptx_of(QUOTIENT("0x3f000000"));
    ck_assert_int_eq(count(ptx, "div.rn"), 0);
    check_clean(ptx);
    ck_assert_int_gt(count(ptx_of(QUOTIENT("0x3f800000")), "div.rn"), 0);
}
END_TEST

// One look at what a root is made of does for the quotients and powers of the root.
// Two in a register, without a detour by f32, which two at once are rounded from.
#define HALVES(type)                                                                           \
    "kernel f(x: " type "[4096], v: f32[4096], y: out " type "[4096]) {\n"                     \
    "  par i < 4096 {\n    %0 = load x[i] : " type "\n    %1 = mul %0, %0 : " type "\n"        \
    "    %2 = load v[i] : f32\n    %3 = convert %2 : " type "\n    %4 = add %1, %3 : " type    \
    "\n    %5 = neg %4 : " type "\n    put y[i] = %5\n  }\n}\n"

// Two in a register, without a detour by f32, which two at once are rounded from.
START_TEST(half_types_go_by_two)
{
    const char *ptx = ptx_of(_i ? HALVES("f16") : HALVES("bf16"));
    static const char *const words[] = {"mul.rn.%sx2", "add.rn.%sx2", "cvt.rn.%sx2.f32"};
    for (int k = 0; k < 3; k++) {
        char word[32];
        snprintf(word, sizeof word, words[k], _i ? "f16" : "bf16");
        ck_assert_msg(count(ptx, word) > 0, "%s in\n%s", word, ptx);
    }
    ck_assert_msg(!strstr(ptx, ".rn.f32 ") && !strstr(ptx, "setp.nan"), "%s", ptx);
}
END_TEST

START_TEST(sizes_are_looked_at_once)
{
    const char *ptx = ptx_of("kernel f(x: f32[12288], y: out f32[4096]) {\n"
                             "  %0 = const 0x3f800000 : f32\n"
                             "  par i < 4096 {\n"
                             "    %1 = load x[3*i] : f32\n"
                             "    %2 = sqrt %1 : f32\n"
                             "    %3 = integer_pow %2 {-2, 0} : f32\n"
                             "    %4 = div %0, %2 : f32\n"
                             "    %5 = load x[3*i + 1] : f32\n"
                             "    %6 = mul %3, %4 : f32\n"
                             "    %7 = mul %6, %5 : f32\n"
                             "    put y[i] = %7\n"
                             "  }\n"
                             "}\n");
    const char *quick = strstr(ptx, "rsqrt.approx"), *slow = strstr(ptx, "sqrt.rn");
    ck_assert_ptr_nonnull(quick);
    ck_assert_ptr_nonnull(slow);
    ck_assert_int_eq(count(ptx, "sqrt.rn"), 1);
    ck_assert_int_eq(count(ptx, "rcp.approx"), 2);
    for (const char *p = quick; (p = strstr(p, "setp.f32")) && p < slow;)
        ck_abort_msg("a size is looked at");
    check_clean(ptx);
}
END_TEST

static void add_tests(TCase *c)
{
    tcase_add_test(c, powers_of_none_are_scalar);
    tcase_add_test(c, maps_go_by_16_bytes);
    tcase_add_test(c, integers_are_negated_by_complement);
    tcase_add_test(c, folds_in_folds);
    tcase_add_test(c, small_products_share_a_matrix);
    tcase_add_test(c, windows_go_by_elements);
    tcase_add_test(c, negative_zeros_are_chosen_by_bits);
    tcase_add_test(c, long_scans_go_by_warps);
    tcase_add_test(c, scans_of_words_are_one_pass);
    tcase_add_test(c, updates_are_sorted_by_index);
    tcase_add_test(c, transposes_go_through_shared_memory);
    tcase_add_test(c, large_transposes_have_wide_tiles);
    tcase_add_test(c, large_maps_read_two_vectors);
    tcase_add_test(c, random_numbers_have_registers);
    tcase_add_test(c, threads_keep_rows);
    tcase_add_test(c, short_rows_are_of_few_threads);
    tcase_add_test(c, ranges_have_one_branch);
    tcase_add_test(c, arms_are_skipped);
    tcase_add_test(c, few_points_read_early);
    tcase_add_test(c, quotients_of_mantissas_are_in_range);
    tcase_add_loop_test(c, half_types_go_by_two, 0, 2);
    tcase_add_test(c, sizes_are_looked_at_once);
}

int main(void) { return run_ptx("gpu", add_tests); }
