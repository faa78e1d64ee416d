// SPDX-License-Identifier: Apache-2.0
// PTX without a GPU: what its structure promises, and that the assembler of the toolkit, where there is
// one, takes it and keeps registers in registers.
#include "support/run_native.h"

#include "base/status.h"
#include "codegen/codegen.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

static struct arena *arena;

static void setup(void) { arena = arena_create(); }
static void teardown(void) { arena_release(arena); }

// What compiling the text of one kernel gives.
static struct cg_response compiled(const char *text, const char *target)
{
    int n;
    struct nest **nests;
    ck_assert_msg(nest_parse(arena, text, &n, &nests) == JOT_OK, "%s", jot_error_message());
    struct strbuf program = strbuf_make(arena);
    nest_program_print(&program, run_native_wrap(arena, nests[0]));
    struct cg_request request = {
        .abi_version = CG_ABI_VERSION, .program = program.text, .target = target};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    return r;
}

static const char *ptx_of(const char *text)
{
    struct cg_response r = compiled(text, "cuda sm_90");
    ck_assert_msg(r.status == JOT_OK, "%s", r.message);
    ck_assert_uint_eq(strlen(r.object) + 1, r.object_size);
    const char *copy = arena_text(arena, r.object);
    r.release(&r);
    return copy;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)) != NULL; text += strlen(what))
        n++;
    return n;
}

// Assembled without spills; true also where there is no assembler.
static void check_assembles(const char *ptx)
{
    if (system("command -v ptxas >/dev/null 2>&1") != 0)
        return;
    char path[64], command[256], line[256];
    snprintf(path, sizeof path, "/tmp/jot-ptx-%d.ptx", (int)getpid());
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(ptx, f);
    fclose(f);
    snprintf(command, sizeof command, "ptxas -arch=sm_90 -v -o /dev/null %s 2>&1", path);
    f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    struct strbuf said = strbuf_make(arena);
    while (fgets(line, sizeof line, f))
        strbuf_add(&said, line);
    ck_assert_msg(pclose(f) == 0, "%s", said.text);
    unlink(path);
    ck_assert_msg(count(said.text, "bytes spill stores") ==
                      count(said.text, " 0 bytes spill stores"),
                  "%s", said.text);
}

static void check_clean(const char *ptx)
{
    ck_assert_ptr_null(strstr(ptx, ".local"));
    // Denormal numbers are what they are; approximations are of others.
    ck_assert_int_eq(count(ptx, ".ftz"), count(ptx, ".approx.ftz"));
    check_assembles(ptx);
}

#define AXPY(n)                                                                                \
    "kernel axpy(x: f32[" n "], y: f32[" n "], z: out f32[" n "]) {\n"                         \
    "  %0 = const 0x40200000 : f32\n"                                                          \
    "  par i < " n " {\n"                                                                      \
    "    %1 = load x[i] : f32\n"                                                               \
    "    %2 = load y[i] : f32\n"                                                               \
    "    %3 = mul %0, %1 : f32\n"                                                              \
    "    %4 = add %3, %2 : f32\n"                                                              \
    "    put z[i] = %4\n"                                                                      \
    "  }\n"                                                                                    \
    "}\n"

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

START_TEST(long_scans_go_by_warps)
{
    // One function folds the chunks, one makes of that what comes before each, one stores.
    const char *ptx = ptx_of("kernel cumsum(x: f32[1048576], y: out f32[1048576]) {\n"
                             "  scan i < 1048576 reverse {\n"
                             "    %0 = load x[i] : f32\n"
                             "    yield reduce_sum %0 -> %1 : f32\n"
                             "    put y[i] = %1\n"
                             "  }\n"
                             "}\n");
    ck_assert_int_eq(count(ptx, ".entry"), 3);
    ck_assert_int_eq(count(ptx, "ld.global.nc.v4.f32"), 8);
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 8);
    ck_assert_ptr_nonnull(strstr(ptx, "shfl.sync.up"));
    check_clean(ptx);
}
END_TEST

START_TEST(points_of_networks_are_threads)
{
    const char *ptx = ptx_of("kernel layer(x: f32[20000], w: f32[400], c: out f32[20], g: out "
                             "f32[400], e: out f32[1]) {\n"
                             "  local in: f32[20] @ point\n"
                             "  local z: f32[20] @ point\n"
                             "  local h: f32[20] @ point\n"
                             "  fold n < 1000 {\n"
                             "    map i < 20 {\n"
                             "      %0 = load x[20*n + i] : f32\n"
                             "      put in[i] = %0\n"
                             "    }\n"
                             "    contract z[j] = in[k], w[j + 20*k] for j < 20 over k < 20\n"
                             "    map j < 20 {\n"
                             "      %1 = load z[j] : f32\n"
                             "      %2 = mul %1, %1 : f32\n"
                             "      put h[j] = %2\n"
                             "      put c[j] reduce_sum= %2 in @n\n"
                             "    }\n"
                             "    map i < 20, j < 20 {\n"
                             "      %3 = load in[i] : f32\n"
                             "      %4 = load h[j] : f32\n"
                             "      put g[20*i + j] fma= %3, %4 in @n\n"
                             "    }\n"
                             "    %5 = load z[3] : f32\n"
                             "    yield reduce_sum %5\n"
                             "  } -> %6 : f32\n"
                             "  put e[0] = %6\n"
                             "}\n");
    ck_assert_int_eq(count(ptx, ".entry"), 3);
    // Four terms of a layer are written out, and each reads five times 16 bytes of the matrix.
    ck_assert_int_ge(count(ptx, "ld.global.nc.v4.f32"), 20);
    ck_assert_int_ge(count(ptx, "fma.rn.f32"), 80 + 20 * 4);
    check_assembles(ptx);
}
END_TEST

START_TEST(updates_are_sorted_by_place)
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
    ck_assert_ptr_nonnull(strstr(ptx, "match.any.sync"));
    ck_assert_ptr_null(strstr(ptx, "atom."));
    check_clean(ptx);
}
END_TEST

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
                             "        yield fma %2 %2\n"
                             "      } -> %3 : f32\n"
                             "      %4 = sqrt %3 : f32\n"
                             "      yield reduce_sum %4\n"
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
                             "      yield reduce_max %0\n"
                             "    } -> %1 : f32\n"
                             "    fold c < 8192 {\n"
                             "      %2 = load x[8192*r + c] : f32\n"
                             "      %3 = sub %2, %1 : f32\n"
                             "      %4 = exp %3 : f32\n"
                             "      yield reduce_sum %4\n"
                             "    } -> %5 : f32\n"
                             "    map c < 8192 {\n"
                             "      %6 = load x[8192*r + c] : f32\n"
                             "      %7 = sub %6, %1 : f32\n"
                             "      %8 = exp %7 : f32\n"
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

START_TEST(a_sum_is_one_kernel)
{
    const char *ptx = ptx_of("kernel sum(x: f32[16777216], y: out f32[1]) {\n"
                             "  fold c < 16777216 {\n"
                             "    %0 = load x[c] : f32\n"
                             "    yield reduce_sum %0\n"
                             "  } -> %1 : f32\n"
                             "  put y[0] = %1\n"
                             "}\n");
    ck_assert_int_eq(count(ptx, ".visible .entry"), 1);
    ck_assert_ptr_nonnull(strstr(ptx, "ld.global.nc.v4.f32"));
    ck_assert_ptr_nonnull(strstr(ptx, "atom.global.add.u32"));
    check_clean(ptx);
}
END_TEST

// Neighbouring columns by 16 bytes, several threads for each.
START_TEST(columns_are_read_side_by_side)
{
    const char *ptx = ptx_of("kernel sum(x: f32[67108864], y: out f32[16384]) {\n"
                             "  par j < 16384 {\n"
                             "    fold i < 4096 {\n"
                             "      %0 = load x[j + 16384*i] : f32\n"
                             "      yield reduce_sum %0\n"
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

// Elements that are dear, of few blocks of a fold: a thread each computes them first.
START_TEST(dear_terms_are_computed_first)
{
    struct strbuf text = strbuf_make(arena);
    strbuf_add(&text, "kernel dear(x: f32[1000000], y: out f32[1]) {\n  fold i < 1000000 {\n"
                      "    %0 = load x[i] : f32\n");
    for (int i = 0; i < 8; i++)
        strbuf_printf(&text, "    %%%d = sin %%%d : f32\n", i + 1, i);
    strbuf_add(&text, "    yield reduce_sum %8\n  } -> %9 : f32\n  put y[0] = %9\n}\n");
    const char *ptx = ptx_of(text.text);
    ck_assert_int_eq(count(ptx, ".visible .entry"), 2);
    ck_assert_ptr_nonnull(strstr(ptx, "_terms("));
    check_assembles(ptx);
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
               "      yield fma %0 %1\n"
               "    } -> %2 : f32\n"
               "    put y[j] = %2\n"
               "  }\n"
               "}\n");
    ck_assert_int_eq(count(ptx, ".visible .entry"), 2);
    ck_assert_int_ge(count(ptx, "ld.global.nc.v4.f32"), 1);
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 1);
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
    ck_assert_int_eq(count(ptx, "st.shared.f32"), 4);
    ck_assert_int_eq(count(ptx, "ld.shared.f32"), 4);
    // All reads of a tile are in one block of code, between that of the loop and its barrier.
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
    ck_assert_int_eq(count(ptx, "st.shared.f32"), 4);
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
    check_clean(ptx);
    ptx = ptx_of(AXPY("268435456"));
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 1);
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
                             "      yield fma %0 %1\n"
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

// Lanes that put a number at every step of a loop over time, beside the one before.
#define PATH(n, all)                                                                           \
    "kernel path(x: f32[1024], y: out f32[" all "]) {\n"                                       \
    "  %0 = const 0x3f800000 : f32\n"                                                          \
    "  par i < 1024 {\n"                                                                       \
    "    %1 = load x[i] : f32\n"                                                               \
    "    seq t < " n " carry %2 = %0 {\n"                                                      \
    "      %3 = fma %1, %2, %2 : f32\n"                                                        \
    "      put y[" n "*i + t] = %3\n"                                                          \
    "      yield %3\n"                                                                         \
    "    } -> %4\n"                                                                            \
    "  }\n"                                                                                    \
    "}\n"

START_TEST(steps_are_put_together)
{
    // A warp turns 40 steps of its rows in shared memory.
    const char *ptx = ptx_of(PATH("1000", "1024000"));
    ck_assert_int_eq(count(ptx, "st.shared.f32"), 8);
    ck_assert_int_eq(count(ptx, "bar.warp.sync"), 2);
    check_clean(ptx);
    // Steps that no tile divides go by what a thread stores at once.
    ptx = ptx_of(PATH("104", "106496"));
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 2);
    ck_assert_int_eq(count(ptx, "st.global.f32"), 0);
    check_clean(ptx);
    // Rows of 1002 numbers begin anywhere.
    ptx = ptx_of(PATH("1002", "1026048"));
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 0);
    check_clean(ptx);
}
END_TEST

// Everything is there that the host calls a library for.
START_TEST(functions_are_in_the_module)
{
    const char *ptx = ptx_of("kernel f(x: f64[4096], y: f64[4096], z: out f64[4096]) {\n"
                             "  par i < 4096 {\n"
                             "    %0 = load x[i] : f64\n"
                             "    %1 = load y[i] : f64\n"
                             "    %2 = sin %0 : f64\n"
                             "    %3 = rem %2, %1 : f64\n"
                             "    put z[i] = %3\n"
                             "  }\n"
                             "}\n");
    ck_assert_ptr_null(strstr(ptx, ".extern .func"));
    check_clean(ptx);
}
END_TEST

// x = x[i - 1] + x[i] for i > 0 while x[0] < 1.
#define WHILE(n)                                                                               \
    "jot nest 1\n"                                                                             \
    "program \"while\" {\n"                                                                    \
    "  inputs 1\n  outputs 1 donated -1\n  arena 9000128\n  constants 0\n"                     \
    "  memory input 0 : f32[" n "] \"x\"\n"                                                    \
    "  memory output 0 : f32[" n "] \"y\"\n"                                                   \
    "  memory temporary at 0 : f32[" n "] \"turn\"\n"                                          \
    "  memory temporary at 4500032 : f32[" n "] \"turn\"\n"                                    \
    "  memory turn of 3, 2 in loop 0 : f32[" n "] \"carry\"\n"                                 \
    "  memory turn of 2, 3 in loop 0 : f32[" n "] \"next\"\n"                                  \
    "  memory temporary at 9000064 : bool[1] \"any\"\n"                                        \
    "  step copy (3, 0) \"\"\n  step while 0 trips -1 () \"\"\n"                               \
    "  step kernel 0 (4, 6) \"\"\n  step test (6)\n  step kernel 1 (4, 5) \"\"\n"              \
    "  step end ()\n  step copy (1, 4) \"\"\n}\n"                                              \
    "kernel k0(x: f32[" n "], any: out bool[1]) {\n"                                           \
    "  %0 = load x[0] : f32\n  %1 = const 0x3f800000 : f32\n"                                  \
    "  %2 = lt %0, %1 : bool\n  put any[0] = %2\n}\n"                                          \
    "kernel k1(x: f32[" n "], y: out f32[" n "]) {\n"                                          \
    "  %0 = const 0x0000000000000001 : i64\n"                                                  \
    "  par i < " n " {\n"                                                                      \
    "    %1 = index i : i64\n    %2 = ge %1, %0 : bool\n"                                      \
    "    %3 = load x[i - 1] if %2 : f32\n    %4 = load x[i] : f32\n"                           \
    "    %5 = add %3, %4 : f32\n    put y[i] = %5\n  }\n}\n"

static const char *ptx_of_program(const char *text)
{
    struct cg_request request = {
        .abi_version = CG_ABI_VERSION, .program = text, .target = "cuda sm_90"};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    ck_assert_msg(r.status == JOT_OK, "%s", r.message);
    const char *copy = arena_text(arena, r.object);
    r.release(&r);
    return copy;
}

START_TEST(loops_of_steps_are_kernels)
{
    // Blocks count, look at the count, and read nothing past the caches that others write.
    const char *ptx = ptx_of_program(WHILE("1000000"));
    ck_assert_int_eq(count(ptx, ".visible .entry"), 1);
    ck_assert_ptr_nonnull(strstr(ptx, ".visible .entry jot_loop_0"));
    ck_assert_int_eq(count(ptx, "atom.acq_rel.gpu"), 2);
    ck_assert_int_eq(count(ptx, "ld.acquire.gpu"), 1);
    ck_assert_ptr_null(strstr(ptx, "ld.global.nc"));
    // x[i - 1] and x[i] are two vectors.
    ck_assert_int_eq(count(ptx, "ld.global.v4.f32"), 2);
    check_clean(ptx);
    // What is short is one block.
    ptx = ptx_of_program(WHILE("1000"));
    ck_assert_int_eq(count(ptx, ".visible .entry"), 1);
    ck_assert_ptr_null(strstr(ptx, "ld.acquire.gpu"));
    ck_assert_ptr_nonnull(strstr(ptx, "bar.sync"));
    check_clean(ptx);
}
END_TEST

START_TEST(architectures_that_nobody_knows)
{
    struct cg_response r = compiled(AXPY("64"), "cuda sm_35");
    ck_assert_int_eq(r.status, JOT_ERR_LIBRARY);
    ck_assert_str_eq(r.message, "no code for the GPU architecture \"sm_35\": sm_80 to sm_90 "
                                "and newer are known");
    r.release(&r);
    r = compiled(AXPY("64"), "cuda sm_120");
    ck_assert_int_eq(r.status, JOT_OK);
    ck_assert_ptr_nonnull(strstr(r.object, ".target sm_90\n"));
    r.release(&r);
}
END_TEST

START_TEST(tanh_has_no_branch)
{
    const char *ptx = ptx_of("kernel t(x: f32[1048576], y: out f32[1048576]) {\n"
                             "  par i < 1048576 {\n"
                             "    %0 = load x[i] : f32\n"
                             "    %1 = tanh %0 : f32\n"
                             "    put y[i] = %1\n"
                             "  }\n"
                             "}\n");
    ck_assert_int_eq(count(ptx, "div.rn.f32"), 0);
    ck_assert_int_eq(count(ptx, "rcp.approx"), 4);
    check_assembles(ptx);
}
END_TEST

// Lanes with a row of `n` numbers each, that is written forwards and read backwards; the rows of
// more lanes would be computed again.
#define TAPE(n)                                                                                \
    "kernel tape(x: f32[16], y: out f32[16]) {\n"                                              \
    "  local row: f32[" n "] @ point\n"                                                        \
    "  par i < 16 {\n"                                                                         \
    "    %0 = load x[i] : f32\n"                                                               \
    "    seq t < " n " carry %1 = %0 {\n"                                                      \
    "      put row[t] = %1\n"                                                                  \
    "      %2 = mul %1, %0 : f32\n"                                                            \
    "      yield %2\n"                                                                         \
    "    } -> %3\n"                                                                            \
    "    seq u < " n " reverse carry %4 = %3 {\n"                                              \
    "      %5 = load row[u] : f32\n"                                                           \
    "      %6 = fma %4, %0, %5 : f32\n"                                                        \
    "      yield %6\n"                                                                         \
    "    } -> %7\n"                                                                            \
    "    put y[i] = %7\n"                                                                      \
    "  }\n"                                                                                    \
    "}\n"

// A driver starts no kernel whose threads have more memory of their own, and does not say why.
START_TEST(threads_have_little_memory)
{
    ck_assert_int_eq(count(ptx_of(TAPE("1000")), "ld.local.v4.f32"), 2); // on their way at once
    check_assembles(ptx_of(TAPE("131072")));
    struct cg_response r = compiled(TAPE("131088"), "cuda sm_90");
    ck_assert_int_ne(r.status, JOT_OK);
    ck_assert_msg(strstr(r.message, "what a thread of a GPU has of its own"), "%s", r.message);
    r.release(&r);
}
END_TEST

// The largest number of a row is that of f at the scores, and so is what the sum and the weights have.
#define ATTENTION(f)                                                                           \
    "kernel attention(q: bf16[4194304], k: bf16[4194304], v: bf16[4194304], y: out "           \
    "bf16[4194304]) {\n"                                                                       \
    "  local score: f32[1024] @ point\n"                                                       \
    "  local row: f32[1024] @ point\n"                                                         \
    "  local weight: bf16[1024] @ point\n"                                                     \
    "  %0 = const 0x3e000000 : f32\n"                                                          \
    "  par b < 64, i < 1024 {\n"                                                               \
    "    map j < 1024 {\n"                                                                     \
    "      fold d < 64 {\n"                                                                    \
    "        %1 = load q[65536*b + 64*i + d] : bf16\n"                                         \
    "        %2 = convert %1 : f32\n"                                                          \
    "        %3 = load k[65536*b + 64*j + d] : bf16\n"                                         \
    "        %4 = convert %3 : f32\n"                                                          \
    "        yield fma %2 %4\n"                                                                \
    "      } -> %5 : f32\n"                                                                    \
    "      put score[j] = %5\n"                                                                \
    "    }\n"                                                                                  \
    "    fold j < 1024 {\n"                                                                    \
    "      %6 = load score[j] : f32\n"                                                         \
    "      %7 = " f " %6, %0 : f32\n"                                                          \
    "      yield reduce_max %7\n"                                                              \
    "    } -> %8 : f32\n"                                                                      \
    "    fold j < 1024 {\n"                                                                    \
    "      %9 = load score[j] : f32\n"                                                         \
    "      %10 = mul %9, %0 : f32\n"                                                           \
    "      %11 = sub %10, %8 : f32\n"                                                          \
    "      %12 = exp %11 : f32\n"                                                              \
    "      put row[j] = %12\n"                                                                 \
    "      yield reduce_sum %12\n"                                                             \
    "    } -> %13 : f32\n"                                                                     \
    "    map j < 1024 {\n"                                                                     \
    "      %14 = load row[j] : f32\n"                                                          \
    "      %15 = div %14, %13 : f32\n"                                                         \
    "      %16 = convert %15 : bf16\n"                                                         \
    "      put weight[j] = %16\n"                                                              \
    "    }\n"                                                                                  \
    "    map c < 64 {\n"                                                                       \
    "      fold j < 1024 {\n"                                                                  \
    "        %17 = load weight[j] : bf16\n"                                                    \
    "        %18 = convert %17 : f32\n"                                                        \
    "        %19 = load v[65536*b + 64*j + c] : bf16\n"                                        \
    "        %20 = convert %19 : f32\n"                                                        \
    "        yield fma %18 %20\n"                                                              \
    "      } -> %21 : f32\n"                                                                   \
    "      %22 = convert %21 : bf16\n"                                                         \
    "      put y[65536*b + 64*i + c] = %22\n"                                                  \
    "    }\n"                                                                                  \
    "  }\n"                                                                                    \
    "}\n"

START_TEST(attention_is_of_tensor_cores)
{
    const char *ptx = ptx_of(ATTENTION("mul"));
    ck_assert_int_eq(count(ptx, ".entry"), 1);
    // 32 queries by 64 keys of depth 64, and by 64 columns.
    ck_assert_int_eq(count(ptx, "mma.sync.aligned.m16n8k16"), 2 * 2 * 8 * 4);
    ck_assert_int_eq(count(ptx, "ldmatrix.sync"), 2 * 4 * 4);
    ck_assert_int_eq(count(ptx, "ex2.approx"), 2 * 32 + 4);
    ck_assert_ptr_nonnull(strstr(ptx, "cp.async.cg.shared.global"));
    ck_assert_ptr_null(strstr(ptx, ".local"));
    check_assembles(ptx);
    // What subtracts another largest number is no softmax.
    ck_assert_int_eq(count(ptx_of(ATTENTION("add")), "mma.sync"), 0);
}
END_TEST

// z = x + 1 and w = y + x, where z may have the memory of x.
#define SUM_AND_NEXT(donated)                                                                  \
    "jot nest 1\n"                                                                             \
    "program \"next\" {\n"                                                                     \
    "  inputs 2\n  outputs 2 donated " donated " -1\n  arena 0\n  constants 0\n"               \
    "  memory input 0 : f32[1] \"x\"\n  memory input 1 : f32[1000] \"y\"\n"                    \
    "  memory output 0 : f32[1] \"z\"\n  memory output 1 : f32[1000] \"w\"\n"                  \
    "  step kernel 0 (0, 1, 2, 3) \"\"\n}\n"                                                   \
    "kernel k0(x: f32[1], y: f32[1000], z: out f32[1], w: out f32[1000]) {\n"                  \
    "  %0 = load x[0] : f32\n  %1 = const 0x3f800000 : f32\n"                                  \
    "  %2 = add %0, %1 : f32\n  put z[0] = %2\n"                                               \
    "  map i < 1000 {\n    %3 = load y[i] : f32\n"                                             \
    "    %4 = add %3, %0 : f32\n    put w[i] = %4\n  }\n}\n"

// Not before all blocks have read what it is written over.
START_TEST(puts_over_what_is_read_come_last)
{
    ck_assert_int_eq(count(ptx_of_program(SUM_AND_NEXT("-1")), ".visible .entry"), 1);
    const char *ptx = ptx_of_program(SUM_AND_NEXT("0"));
    ck_assert_int_eq(count(ptx, ".visible .entry"), 2);
    const char *late = strstr(ptx, ".entry jot_kernel_0_late");
    ck_assert_ptr_nonnull(late);
    ck_assert_int_eq(count(ptx, "st.global") - count(late, "st.global"), 1);
    check_clean(ptx);
}
END_TEST

// A test stands before the first step and behind each: loops with one test in front, of a flag that an
// outer loop tests too, lose it in the assembler of CUDA 13.0.
START_TEST(tests_follow_steps)
{
    const char *ptx = ptx_of("kernel trips(n: i32[1], y: out i32[1]) {\n"
                             "  %0 = const 0x00000001 : i32\n"
                             "  %1 = const 0x00000000 : i32\n"
                             "  %2 = const 0x01 : bool\n"
                             "  %3 = const 0x00000002 : i32\n"
                             "  %4 = load n[0] : i32\n"
                             "  while carry %5 = %1, %6 = %2, %7 = %1 {\n"
                             "    yield %6\n"
                             "  } do {\n"
                             "    %8 = add %5, %4 : i32\n"
                             "    while carry %9 = %5, %10 = %6, %11 = %7 {\n"
                             "      %12 = lt %9, %8 : bool\n"
                             "      %13 = and %12, %10 : bool\n"
                             "      yield %13\n"
                             "    } do {\n"
                             "      %14 = add %9, %0 : i32\n"
                             "      %15 = add %11, %0 : i32\n"
                             "      %16 = lt %15, %3 : bool\n"
                             "      yield %14, %16, %15\n"
                             "    } -> %17, %18, %19\n"
                             "    yield %17, %18, %19\n"
                             "  } -> %20, %21, %22\n"
                             "  put y[0] = %22\n"
                             "}\n");
    ck_assert_int_eq(count(ptx, "setp."), 3); // one of the step, two of the inner test
    check_clean(ptx);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("gpu");
    TCase *c = tcase_create("ptx");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, maps_go_by_16_bytes);
    tcase_add_test(c, loops_of_steps_are_kernels);
    tcase_add_test(c, a_row_is_read_once);
    tcase_add_test(c, long_scans_go_by_warps);
    tcase_add_test(c, points_of_networks_are_threads);
    tcase_add_test(c, updates_are_sorted_by_place);
    tcase_add_test(c, long_columns_go_by_parts);
    tcase_add_test(c, dear_terms_are_computed_first);
    tcase_add_test(c, pairs_are_of_a_group);
    tcase_add_test(c, a_sum_is_one_kernel);
    tcase_add_test(c, columns_are_read_side_by_side);
    tcase_add_test(c, transposes_go_through_shared_memory);
    tcase_add_test(c, large_transposes_have_wide_tiles);
    tcase_add_test(c, large_maps_read_two_vectors);
    tcase_add_test(c, short_rows_are_of_few_threads);
    tcase_add_test(c, ranges_have_one_branch);
    tcase_add_test(c, steps_are_put_together);
    tcase_add_test(c, tanh_has_no_branch);
    tcase_add_test(c, functions_are_in_the_module);
    tcase_add_test(c, threads_have_little_memory);
    tcase_add_test(c, attention_is_of_tensor_cores);
    tcase_add_test(c, tests_follow_steps);
    tcase_add_test(c, puts_over_what_is_read_come_last);
    tcase_add_test(c, architectures_that_nobody_knows);
    suite_add_tcase(s, c);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
