// SPDX-License-Identifier: Apache-2.0
// Which levels a nest gets for a processor, and what goes side by side.  That they change no bit is seen in tests/codegen, of every nest there.
#include "map/map.h"

#include "base/status.h"
#include "ir/cost.h"
#include "support/nest_text.h"
#include "support/suite.h"

#include <math.h>
#include <string.h>

static struct arena *arena;

static void setup(void) { arena = arena_create(); }
static void teardown(void) { arena_release(arena); }

#define SUM_OF_ROWS(load)                                                                      \
    "  par i < 256 {\n    fold k < 256 {\n" load                                               \
    "      yield reduce_sum %0 sum64\n    } -> %1 : f32\n    put y[i] = %1\n  }\n"
#define EXPONENTIALS(n)                                                                        \
    "  par i < " n " {\n    %0 = load x[i] : f32\n    %1 = exp %0 : f32\n"                     \
    "    put y[i] = %1\n  }\n"

#define ROWS_AT(index, rest)                                                                   \
    "  par i < 4096 {\n    %0 = load " index " : i32\n    fold k < 8 {\n"                      \
    "      %1 = load x[k + 8*%0] : f32\n      %2 = mul %1, %1 : f32\n"                         \
    "      yield reduce_sum %2 sum64\n    } -> %3 : f32\n    put y[i + 32768] = %3\n" rest     \
    "  }\n"

#define STEPS_OF(matrix)                                                                       \
    "  seq t < 9 {\n    map i < 16 {\n      fold k < 16 {\n        %0 = load x[" matrix        \
    "] : f32\n        %1 = load y[k] : f32\n        yield fma %0 %1 sum64\n      } -> %2 : "   \
    "f32\n      put y[i + 16*t + 16] = %2\n    }\n  }\n"

// Bodies over x: f32[65536], d: f64[65536], n: i32[65536], and the heads of loops that they have then.
static const struct {
    const char *what, *body;
    struct map_host host;
    const char *has[2];
} rows[] = {
    {"points whose elements lie apart: each lane folds by itself",
     SUM_OF_ROWS("      %0 = load x[256*i + k] : f32\n"),
     {64, MAP_WRITTEN_OUT},
     {"par i < 256 @vector 64 {", "fold k < 256 @vector 64 {"}},
    {"points whose elements lie together: all lanes at once",
     SUM_OF_ROWS("      %0 = load x[i + 256*k] : f32\n"),
     {64, MAP_WRITTEN_OUT},
     {"par i < 256 @vector 64 {", "fold k < 256 {"}},
    {"the same beside a loop over time, which vectors go through side by side",
     "  par i < 256 {\n    fold k < 256 {\n      %0 = load x[256*i + k] : f32\n"
     "      yield reduce_sum %0 sum64\n    } -> %1 : f32\n"
     "    seq t < 8 carry %2 = %1 {\n      %3 = exp %2 : f32\n      yield %3\n    } -> %4\n"
     "    put y[i] = %4\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"par i < 256 @vector", "fold k < 256 {"}},
    {"a matrix that registers keep through time: all lanes at once",
     STEPS_OF("16*i + k"),
     {64, MAP_WRITTEN_OUT},
     {"map i < 16 @vector 16 {", "fold k < 16 {"}},
    {"one of each step: each lane folds by itself",
     STEPS_OF("16*i + k + 256*t"),
     {64, MAP_WRITTEN_OUT},
     {"fold k < 16 @vector 16 {"}},
    {"one that smaller registers do not keep",
     STEPS_OF("16*i + k"),
     {32, MAP_WRITTEN_OUT},
     {"fold k < 16 @vector 16 {"}},
    {"a chain of some forty operations, of little work in all: four vectors at once",
     "  par i < 4096 {\n    %0 = load x[i] : f32\n    %1 = tanh %0 : f32\n"
     "    %2 = tanh %1 : f32\n    put y[i] = %2\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"i < 4096 @vector 64 {"}},
    {"a long one: one",
     "  par i < 4096 {\n    %0 = load x[i] : f32\n    %1 = tanh %0 : f32\n"
     "    %2 = tanh %1 : f32\n    %3 = tanh %2 : f32\n    %4 = tanh %3 : f32\n"
     "    put y[i] = %4\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"i < 4096 @vector 16 {"}},
    {"a smaller register",
     EXPONENTIALS("65536"),
     {32, MAP_WRITTEN_OUT},
     {"i < 65536 @vector 32 {"}},
    {"few points", EXPONENTIALS("9"), {64, MAP_WRITTEN_OUT}, {"i < 9 @vector 16 {"}},
    {"much code", EXPONENTIALS("65536"), {64, MAP_ONE_REGISTER}, {"i < 65536 @vector 16 {"}},
    {"a wider type",
     "  par i < 256 {\n    %0 = load d[i] : f64\n    %1 = convert %0 : f32\n"
     "    put y[i] = %1\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"i < 256 @vector 32 {"}},
    {"wide elements that are the same for all lanes, in a loop that does more for all than for "
     "each: several vectors of what lanes have",
     "  par i < 128 {\n    %9 = const 0x0000000000000001 : i64\n    seq t < 512 {\n"
     "      %0 = load n[t] : i32\n      %1 = convert %0 : i64\n      %2 = max %1, %9 : i64\n"
     "      %3 = load n[t + 512] : i32\n      %4 = convert %3 : i64\n"
     "      %5 = max %4, %2 : i64\n      %6 = load x[i + 128*%5] : f32\n"
     "      put y[i + 128*%2] = %6\n    }\n  }\n",
     {32, MAP_WRITTEN_OUT},
     {"par i < 128 @vector 16 {"}},
    {"the same with few points: each core has some",
     "  par i < 32 {\n    %9 = const 0x0000000000000001 : i64\n    seq t < 512 {\n"
     "      %0 = load n[t] : i32\n      %1 = convert %0 : i64\n      %2 = max %1, %9 : i64\n"
     "      %3 = load n[t + 512] : i32\n      %4 = convert %3 : i64\n"
     "      %5 = max %4, %2 : i64\n      %6 = load x[i + 32*%5] : f32\n"
     "      put y[i + 32*%2] = %6\n    }\n  }\n",
     {32, MAP_WRITTEN_OUT},
     {"par i < 32 @vector 8 {"}},
    {"a running fold, whose order is strict",
     "  scan i < 256 {\n    %0 = load x[i] : f32\n"
     "    yield reduce_sum %0 serial -> %1 : f32\n    put y[i] = %1\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"scan i < 256 {"}},
    {"the last axis of a fold",
     "  fold i < 16, k < 256 {\n    %0 = load x[256*i + k] : f32\n"
     "    yield reduce_sum %0 sum64\n  } -> %1 : f32\n  put y[0] = %1\n",
     {64, MAP_WRITTEN_OUT},
     {"fold i < 16, k < 256 @vector 64 {"}},
    {"rows that end anywhere among the accumulators: parts of one register",
     "  fold i < 256, k < 72 {\n    %0 = load x[72*i + k] : f32\n"
     "    yield reduce_sum %0 sum64\n  } -> %1 : f32\n  put y[0] = %1\n",
     {64, MAP_WRITTEN_OUT},
     {"fold i < 256, k < 72 @vector 16 {"}},
    {"rows whose indices are data: their elements lie together",
     ROWS_AT("n[i]", "    map m < 8 {\n      %4 = load x[m + 8*%0] : f32\n"
                     "      put y[8*i + m] = %4\n    }\n"),
     {64, MAP_WRITTEN_OUT},
     {"fold k < 8 @vector 8 {", "map m < 8 @vector 8 {"}},
    {"the same where an index is made of what a loop carries",
     ROWS_AT("n[i]", "    seq t < 9 carry %4 = %0 {\n      %5 = load n[i + %4] : i32\n"
                     "      yield %5\n    } -> %6\n    map m < 8 {\n"
                     "      %7 = load x[m + 8*%6] : f32\n      put y[8*i + m] = %7\n    }\n"),
     {64, MAP_WRITTEN_OUT},
     {"map m < 8 @vector 8 {"}},
    {"elements whose indices differ along the row: all points at once",
     "  par i < 4096 {\n    fold k < 8 {\n      %0 = load n[8*i + k] : i32\n"
     "      %1 = load x[k + 8*%0] : f32\n      yield reduce_sum %1 sum64\n    } -> %2 : f32\n"
     "    put y[i] = %2\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"par i < 4096 @vector"}},
    {"the index of the largest in short rows: halving a vector to one takes longer than the "
     "row",
     "  par i < 2048 {\n    fold k < 19 {\n      %0 = load x[19*i + k] : f32\n"
     "      yield argmax %0 free\n    } -> %1 : f32, %2 : i64\n    put y[i] = %1\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"par i < 2048 @vector", "fold k < 19 {"}},
    {"short rows that are put: a vector for each of them",
     "  par i < 16384, j < 4 {\n    %0 = load n[i] : i32\n    %1 = convert %0 : f32\n"
     "    put y[4*i + j] = %1\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"j < 4 @vector 4 {"}},
    {"few terms, which registers hold: lanes are along what is put",
     "  par i < 7, j < 8192 {\n    fold k < 7 {\n      %0 = load x[7*j + k] : f32\n"
     "      %1 = load x[i + 7*k + 57344] : f32\n      yield fma %0 %1 sum64\n"
     "    } -> %2 : f32\n    put y[7*j + i] = %2\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"par i < 7 @vector 8, j < 8192 {"}},
    {"sums of a fold in rows: lanes are along what is read, wherever the sums lie",
     "  fold i < 512 {\n    map j < 128, k < 7 {\n      %0 = load x[128*i + j] : f32\n"
     "      %1 = load d[7*i + k] : f64\n      %2 = convert %1 : f32\n"
     "      put y[7*j + k] fma= %0, %2 in @i sum64\n    }\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"map j < 128 @vector"}},
    {"loops in lanes, and what a lane that is left alone does in a while",
     "  par i < 256 {\n    %0 = load x[i] : f32\n    %1 = const 0x3f800000 : f32\n"
     "    while carry %2 = %0 {\n      %3 = lt %2, %1 : bool\n      yield %3\n    } do {\n"
     "      fold k < 20 {\n        %4 = load x[k] : f32\n        %5 = mul %4, %2 : f32\n"
     "        yield reduce_sum %5 sum64\n      } -> %6 : f32\n      %11 = exp %6 : f32\n"
     "      yield %11\n    } -> %7\n"
     "    fold j < 20 {\n      %8 = load x[j] : f32\n      %9 = mul %8, %7 : f32\n"
     "      yield reduce_sum %9 sum64\n    } -> %10 : f32\n    put y[i] = %10\n  }\n",
     {64, MAP_WRITTEN_OUT},
     {"fold k < 20 @vector 32", "fold j < 20 {"}},
};

static const char *print(const struct nest *n)
{
    struct strbuf s = strbuf_make(arena);
    nest_print(&s, n);
    return s.text;
}

START_TEST(levels_of_a_processor)
{
    struct strbuf s = strbuf_make(arena), report = strbuf_make(arena);
    strbuf_printf(
        &s,
        "kernel k(x: f32[65536], d: f64[65536], n: i32[65536], y: inout f32[65536]) {\n%s}\n",
        rows[_i].body);
    struct nest *n = nest_of_text(arena, s.text);
    map_to_host(n, &rows[_i].host);
    const char *text = print(n);
    ck_assert_msg(!nest_verify(n, &report), "%s%s", report.text, text);
    for (int i = 0; i < 2 && rows[_i].has[i]; i++)
        ck_assert_msg(strstr(text, rows[_i].has[i]), "%s: no '%s' in\n%s", rows[_i].what,
                      rows[_i].has[i], text);
    // The price is a part of the text, whole as it is.
    ck_assert_int_gt(n->price, 0);
    ck_assert_int_eq(nest_of_text(arena, text)->price, n->price);
    ck_assert_str_eq(text, print(nest_of_text(arena, text)));
    // Levels that stand there are replaced.
    map_to_host(n, &(struct map_host){16, MAP_WRITTEN_OUT});
    map_to_host(n, &rows[_i].host);
    ck_assert_str_eq(text, print(n));
}
END_TEST

// A fold has no more lanes than accumulators, and what verifies has no more anywhere.
START_TEST(lanes_have_an_end)
{
    struct strbuf s = strbuf_make(arena), report = strbuf_make(arena);
    strbuf_printf(&s, "kernel k(x: f32[65536], y: inout f32[65536]) more_lanes {\n%s}\n",
                  SUM_OF_ROWS("      %0 = load x[256*i + k] : f32\n"));
    struct nest *n = nest_of_text(arena, s.text);
    map_to_host(n, &(struct map_host){64, MAP_WRITTEN_OUT});
    ck_assert_msg(!nest_verify(n, &report), "%s%s", report.text, print(n));
    ck_assert(strstr(print(n), "fold k < 256 @vector 64 {"));
}
END_TEST

// What the index alone decides is decided once for a range of indices: it costs nothing.
START_TEST(guards_by_index_are_free)
{
    static const char head[] = "kernel k(x: f32[4096], y: out f32[4096]) {\n"
                               "  par i < 64, j < 64 {\n    %0 = load x[64*i + j] : f32\n";
    static const char *const bodies[] = {
        "    %1 = load x[j + 4032] : f32\n    %2 = add %0, %1 : f32\n    put y[64*i + j] = "
        "%2\n",
        "    %1 = load x[j + 4032] : f32\n    %3 = const 0x0000000000000001 : i64\n"
        "    %4 = index i : i64\n    %5 = lt %4, %3 : bool\n    %6 = select %5, %0, %1 : f32\n"
        "    %2 = add %0, %6 : f32\n    put y[64*i + j] = %2\n",
        "    %1 = load x[j + 4032] : f32\n    %3 = lt %0, %1 : bool\n"
        "    %4 = select %3, %0, %1 : f32\n    %2 = add %0, %4 : f32\n    put y[64*i + j] = "
        "%2\n"};
    int64_t price[3];
    for (int i = 0; i < 3; i++) {
        struct strbuf s = strbuf_make(arena);
        strbuf_printf(&s, "%s%s  }\n}\n", head, bodies[i]);
        price[i] = map_price(nest_of_text(arena, s.text));
    }
    ck_assert_int_lt(price[1], price[0] + price[0] / 4);
    ck_assert_int_gt(price[2], price[0] + price[0] / 4);
}
END_TEST

// Of lanes that are far apart, neighbours go by rows, and what lies along time by tiles.
START_TEST(rows_of_lanes_are_tiles)
{
    static const char *const loads[] = {
        "      %0 = load x[1600*i + 40*j] : f32\n      %1 = load x[1600*i + 40*j + 20] : f32\n",
        "      %0 = load x[1600*i + 40*j] : f32\n      %1 = load x[1600*i + 40*j + 1] : f32\n",
        "      %0 = load x[1600*i + j] : f32\n      %1 = load x[1600*i + j + 800] : f32\n"};
    int64_t price[3];
    for (int i = 0; i < 3; i++) {
        struct strbuf s = strbuf_make(arena);
        strbuf_printf(&s,
                      "kernel k(x: f32[102400], y: out f32[64]) {\n  par i < 64 @vector 16 {\n"
                      "    %%9 = const 0x00000000 : f32\n    seq j < 40 carry %%8 = %%9 {\n%s"
                      "      %%2 = add %%0, %%1 : f32\n      %%3 = fma %%8, %%2, %%8 : f32\n"
                      "      yield %%3\n    } -> %%7\n    put y[i] = %%7\n  }\n}\n",
                      loads[i]);
        price[i] = map_price(nest_of_text(arena, s.text));
    }
    ck_assert_int_lt(price[1], price[0] * 3 / 4);
    ck_assert_int_lt(price[2], price[0] / 2);
}
END_TEST

// Lines that are a power of two apart have few indices in the nearest cache.
START_TEST(conflicts_are_dear)
{
    static const int64_t strides[] = {1000, 1024, 1040};
    int64_t price[3];
    for (int i = 0; i < 3; i++) {
        struct strbuf s = strbuf_make(arena);
        strbuf_printf(&s,
                      "kernel k(x: f32[70000], y: out f32[64]) {\n  par i < 64 {\n"
                      "    %%9 = const 0x00000000 : f32\n    seq j < 40 carry %%8 = %%9 {\n"
                      "      %%0 = load x[%d*i + 4*j] : f32\n"
                      "      %%1 = load x[%d*i + 4*j + 1] : f32\n"
                      "      %%2 = add %%0, %%1 : f32\n      %%3 = fma %%8, %%2, %%8 : f32\n"
                      "      yield %%3\n    } -> %%7\n    put y[i] = %%7\n  }\n}\n",
                      (int)strides[i], (int)strides[i]);
        price[i] = map_price(nest_of_text(arena, s.text));
    }
    ck_assert_int_eq(price[0], price[2]);
    ck_assert_int_gt(price[1], 2 * price[0]);
}
END_TEST

// A register of dear functions waits for itself, and eight numbers of f64 are one.
START_TEST(few_lanes_of_functions_wait)
{
    int64_t price[2];
    for (int i = 0; i < 2; i++) {
        struct strbuf s = strbuf_make(arena);
        strbuf_printf(&s,
                      "kernel k(x: f64[400000], y: out f64[400000]) {\n"
                      "  par i < %d, j < %d {\n    %%0 = load x[40*i + j] : f64\n"
                      "    %%1 = sin %%0 : f64\n    %%2 = exp %%1 : f64\n"
                      "    put y[40*i + j] = %%2\n  }\n}\n",
                      i ? 2048 : 8192, i ? 32 : 8);
        price[i] = map_price(nest_of_text(arena, s.text));
    }
    ck_assert_int_gt(price[0], price[1] + price[1] / 4);
    ck_assert_int_lt(price[0], 3 * price[1]);
}
END_TEST

// Each term of a running log-sum-exp takes an exponential and a logarithm.
START_TEST(combiners_are_dear)
{
    int64_t price[2];
    for (int i = 0; i < 2; i++) {
        struct strbuf s = strbuf_make(arena);
        strbuf_printf(&s,
                      "kernel k(x: f32[65536], y: out f32[65536]) {\n  par i < 64 {\n"
                      "    scan j < 1024 {\n      %%0 = load x[i + 64*j] : f32\n"
                      "      yield %s %%0 serial -> %%1 : f32\n      put y[i + 64*j] = %%1\n"
                      "    }\n  }\n}\n",
                      i ? "cumlogsumexp" : "reduce_sum");
        price[i] = map_price(nest_of_text(arena, s.text));
    }
    ck_assert_int_gt(price[1], 4 * price[0]);
}
END_TEST

// Of loops that have no parts one thread does all, and nobody wakes threads for little.
START_TEST(threads_have_parts)
{
    static const struct {
        const char *loops;
        double cores;
    } nests[] = {
        {"  par i < 200000 {\n    %0 = load x[i] : f32\n    put y[i] = %0\n  }\n", COST_CORES},
        {"  par i < 16 {\n    fold k < 12500 {\n      %0 = load x[i + 16*k] : f32\n"
         "      yield reduce_sum %0 sum64\n    } -> %1 : f32\n    put y[i] = %1\n  }\n",
         1},
        {"  fold k < 200000 {\n    %0 = load x[k] : f32\n    yield reduce_sum %0 sum64\n"
         "  } -> %1 : f32\n  put y[0] = %1\n",
         COST_CORES},
        {"  fold k < 1000 {\n    %0 = load x[k] : f32\n    yield reduce_sum %0 sum64\n"
         "  } -> %1 : f32\n  put y[0] = %1\n",
         2},
        {"  scan k < 200000 {\n    %0 = load x[k] : f32\n"
         "    yield reduce_sum %0 serial -> %1 : f32\n    put y[k] = %1\n  }\n",
         1},
    };
    for (size_t i = 0; i < sizeof nests / sizeof *nests; i++) {
        struct strbuf s = strbuf_make(arena);
        strbuf_printf(&s, "kernel k(x: f32[200000], y: out f32[200000]) {\n%s}\n",
                      nests[i].loops);
        struct nest *n = nest_of_text(arena, s.text);
        ck_assert_double_eq(map_cores(n), nests[i].cores);
        double price = (double)map_price(n), all = (double)map_price_of_all(n);
        ck_assert_double_le(
            fabs(all - (price > COST_PARALLEL ? price / nests[i].cores : price)), 1);
    }
}
END_TEST

// Bytes are moved once while a cache holds them, a line at a time, and cost more the further they are.
START_TEST(traffic_is_of_lines)
{
    static const struct {
        const char *text;
        double more; // than the one before, at least
    } nests[] = {
        {"kernel k(x: f32[65536], y: out f32[65536]) {\n  par i < 65536 {\n"
         "    %0 = load x[i] : f32\n    put y[i] = %0\n  }\n}\n",
         0},
        {"kernel k(x: f32[65536], y: out f32[4096]) {\n  par i < 4096 {\n    fold k < 64 {\n"
         "      %0 = load x[k] : f32\n      yield reduce_sum %0 sum64\n    } -> %1 : f32\n"
         "    put y[i] = %1\n  }\n}\n",
         0.02},
        {"kernel k(x: f32[65536], y: out f32[4096]) {\n  par i < 4096 {\n"
         "    %0 = load x[16*i] : f32\n    put y[i] = %0\n  }\n}\n",
         8},
        {"kernel k(x: f32[4194304], y: out f32[64]) {\n  par i < 64 {\n"
         "    fold k < 4194304 {\n      %0 = load x[k] : f32\n"
         "      yield reduce_sum %0 sum64\n    } -> %1 : f32\n    put y[i] = %1\n  }\n}\n",
         6000},
        {"kernel k(x: f32[67108864], y: out f32[64]) {\n  par i < 64 {\n"
         "    fold k < 67108864 {\n      %0 = load x[k] : f32\n"
         "      yield reduce_sum %0 sum64\n    } -> %1 : f32\n    put y[i] = %1\n  }\n}\n",
         30},
    };
    double before = 0;
    for (size_t i = 0; i < sizeof nests / sizeof *nests; i++) {
        double own = map_traffic(nest_of_text(arena, nests[i].text));
        ck_assert_msg(own >= nests[i].more * before && own > 0, "nest %zu: %g after %g", i, own,
                      before);
        before = own;
    }
    struct nest *n = nest_of_text(arena, nests[0].text);
    ck_assert_double_ge((double)map_price(n), map_traffic(n));
    ck_assert_double_le(map_traffic(nest_of_text(arena, nests[1].text)), map_traffic(n) / 16);
}
END_TEST

// Nests with one row or several of x: f32[4096], matrices w: f32[1048576] and y: f32[4096], and whether rows go side by
// side.
#define ROWS(head, body)                                                                       \
    "kernel k(x: f32[4096], w: f32[1048576], y: inout f32[4096]) {\n  par " head " {\n" body   \
    "    put y[1024*i + j] = %2\n  }\n}\n"
#define PRODUCT(k, row, column)                                                                \
    "    fold k < " k " {\n      %0 = load x[" row "] : f32\n      %1 = load w[" column        \
    "] : f32\n      yield fma %0 %1 sum64\n    } -> %2 : f32\n"
#define MANY(n)                                                                                \
    "kernel k(x: f32[7936], w: f32[65536], y: inout f32[7936]) {\n  par i < " n                \
    ", j < 256 {\n" PRODUCT("256", "256*i + k",                                                \
                            "j + 256*k") "    put y[256*i + j] = %2\n  }\n}\n"
static const struct {
    const char *what, *text, *has;
} jams[] = {
    {"four rows read the matrix once",
     ROWS("i < 4, j < 1024", PRODUCT("1024", "1024*i + k", "j + 1024*k")),
     "  par j < 1024 {\n    fold k < 1024 {\n      %0 = load x[k] : f32\n"},
    {"three rows do", ROWS("i < 3, j < 1024", PRODUCT("1024", "1024*i + k", "j + 1024*k")),
     "yield fma %0 %3 sum64, fma %1 %3 sum64, fma %2 %3 sum64\n"},
    {"turned", ROWS("i < 4, j < 1024", PRODUCT("1024", "1024*i + k", "1024*j + k")),
     "put y[j + 3072] = %8\n"},
    {"eleven go in two parts", MANY("11"),
     "put y[j + 1280] = %12\n    fold k < 256 {\n      %13 = load x[k + 1536] : f32\n"},
    {"of many, groups are a loop and the rest is another", MANY("31"),
     "par i < 3, j < 256 {\n    fold k < 256 {\n      %0 = load x[2048*i + k] : f32\n"},
    {"the rest", MANY("31"), "put y[j + 6144] = "},
    {"of many that are whole groups", MANY("30"), "par i < 5, j < 256 {\n"},
    {"rows with what is theirs, in locals and maps",
     "kernel k(x: f32[4096], w: f32[1048576], y: inout f32[4096]) {\n"
     "  local row: f32[1024]\n  par i < 2 {\n"
     "    fold k < 1024 {\n      %0 = load x[1024*i + k] : f32\n      put row[k] = %0\n"
     "      yield reduce_max %0 free\n    } -> %1 : f32\n"
     "    map j < 1024 {\n      fold k < 1024 {\n        %2 = load row[k] : f32\n"
     "        %3 = mul %2, %1 : f32\n        %4 = load w[j + 1024*k] : f32\n"
     "        yield fma %3 %4 sum64\n      } -> %5 : f32\n      put y[1024*i + j] = %5\n"
     "    }\n  }\n}\n",
     "put row[k] = %0\n      put row_2[k] = %1\n"},
    {"a loop behind another one, whose points it has for itself",
     "kernel k(x: f32[4096], w: f32[1048576], y: inout f32[4096]) {\n"
     "  par l < 4 {\n    %9 = load x[l] : f32\n    put y[l + 4092] = %9\n  }\n"
     "  par i < 3, j < 1024 {\n" PRODUCT("1024", "1024*i + k",
                                         "j + 1024*k") "    put y[1024*i + j] = %2\n  }\n}\n",
     "yield fma %1 %4 sum64, fma %2 %4 sum64, fma %3 %4 sum64\n"},
    {"what lies together for each lane is read for five at a time",
     ROWS("i < 3, j < 300", PRODUCT("400", "400*i + k", "400*j + k")), "put y[j + 2048] = "},
    {"rows whose fold makes others of exponentials",
     "kernel k(x: f32[4096], w: f32[1048576], y: inout f32[4096]) {\n"
     "  local row: f32[1024]\n  par i < 4 {\n"
     "    fold j < 1024 {\n" PRODUCT("1024", "1024*i + k",
                                     "j + 1024*k") "      put row[j] = %2\n      yield "
                                                   "reduce_max %2 free\n    } -> %3 : f32\n"
                                                   "    fold j < 1024 {\n      %4 = load "
                                                   "row[j] : f32\n      %5 = sub %4, %3 : f32\n"
                                                   "      %6 = exp %5 : f32\n      yield "
                                                   "reduce_sum %6 sum64\n    } -> %7 : f32\n"
                                                   "    put y[i] = %7\n  }\n}\n",
     "yield fma %0 %4 sum64, fma %1 %4 sum64, fma %2 %4 sum64, fma %3 %4 sum64\n"},
    {"a short fold has none",
     ROWS("i < 4, j < 1024", PRODUCT("60", "1024*i + k", "j + 1024*k")), NULL},
    {"nor has a small matrix", ROWS("i < 4, j < 16", PRODUCT("300", "1024*i + k", "j + 16*k")),
     NULL},
    {"nor rows with matrices of their own",
     ROWS("i < 4, j < 256", PRODUCT("256", "k", "262144*i + j + 256*k")), NULL},
    {"nor has a nest with time",
     "kernel k(x: f32[4096], w: f32[1048576], y: inout f32[4096]) {\n  seq t < 4 {\n"
     "    map i < 4, j < 1024 {\n" PRODUCT(
         "1024", "1024*i + k", "j + 1024*k") "    put y[1024*i + j] = %2\n    }\n  }\n}\n",
     NULL},
    {"nor a fold whose work is no loads",
     ROWS("i < 4, j < 1024",
          "    fold k < 1024 {\n      %0 = load x[1024*i + k] : f32\n"
          "      %1 = load w[j + 1024*k] : f32\n      %3 = sub %0, %1 : f32\n"
          "      %4 = exp %3 : f32\n      yield reduce_sum %4 sum64\n    } -> %2 : f32\n"),
     NULL},
};

START_TEST(elements_go_side_by_side)
{
    struct nest *n = nest_of_text(arena, jams[_i].text);
    struct strbuf report = strbuf_make(arena);
    const char *before = print(n);
    ck_assert_int_eq(map_jam(n), jams[_i].has != NULL);
    nest_collapse(n);
    const char *after = print(n);
    ck_assert_msg(!nest_verify(n, &report), "%s%s", report.text, after);
    if (jams[_i].has)
        ck_assert_msg(strstr(after, jams[_i].has), "%s: no '%s' in\n%s", jams[_i].what,
                      jams[_i].has, after);
    else
        ck_assert_str_eq(before, after);
    ck_assert_msg(!map_jam(n), "again:\n%s", print(n));
}
END_TEST

// The map of a loop over points, x: f32[4096], and what stands there once rows are staged; or the same.
#define POINTS(map)                                                                            \
    "kernel k(x: f32[4096], w: f32[64], y: out f32[4096]) {\n  local a: f32[8]\n"              \
    "  local z: f32[8]\n  par n < 512 {\n    map i < 8 {\n"                                    \
    "      %0 = load x[8*n + i] : f32\n      put a[i] = %0\n    }\n"                           \
    "    contract z[j] = a[k], w[j + 8*k] for j < 8 over k < 8\n" map "  }\n}\n"
static const struct {
    const char *what, *text, *has[2];
} stages[] = {
    {"a row that is loaded twice, and one that is put",
     POINTS("    map l < 8 {\n      %1 = load z[l] : f32\n      %2 = load x[8*n + l] : f32\n"
            "      %3 = mul %1, %2 : f32\n      %4 = load x[8*n + l] : f32\n"
            "      %5 = add %3, %4 : f32\n      put y[8*n + l] = %5\n    }\n"),
     {"      %1 = load x[8*n + k] : f32\n      put x_2[k] = %1\n",
      "      %5 = load x_2[l] : f32\n      %6 = add %4, %5 : f32\n      put y_2[l] = %6\n    "
      "}\n"
      "    map k < 8 {\n      %7 = load y_2[k] : f32\n      put y[8*n + k] = %7\n"}},
    {"a copy is one already",
     POINTS("    map l < 8 {\n      %1 = load z[l] : f32\n      put y[8*n + l] = %1\n    }\n"),
     {NULL, NULL}},
    {"neighbouring points lie together",
     POINTS("    map l < 8 {\n      %1 = load z[l] : f32\n      %2 = tanh %1 : f32\n"
            "      put y[n + 512*l] = %2\n    }\n"),
     {NULL, NULL}},
    {"and a guard is kept where it is",
     POINTS("    map l < 8 {\n      %1 = load z[l] : f32\n      %2 = lt %1, %1 : bool\n"
            "      %3 = load x[8*n + l] if %2 : f32\n      put z[l] = %3\n    }\n"
            "    map m < 8 {\n      %4 = load z[m] : f32\n      put y[8*n + m] = %4\n    }\n"),
     {NULL, NULL}},
};

START_TEST(rows_are_staged)
{
    struct nest *n = nest_of_text(arena, stages[_i].text);
    struct strbuf report = strbuf_make(arena);
    const char *before = print(n);
    map_stage(n);
    const char *after = print(n);
    ck_assert_msg(!nest_verify(n, &report), "%s%s", report.text, after);
    for (int i = 0; i < 2 && stages[_i].has[i]; i++)
        ck_assert_msg(strstr(after, stages[_i].has[i]), "%s: no '%s' in\n%s", stages[_i].what,
                      stages[_i].has[i], after);
    if (!stages[_i].has[0])
        ck_assert_str_eq(before, after);
    map_stage(n);
    ck_assert_str_eq(after, print(n));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, levels_of_a_processor, 0, (int)(sizeof rows / sizeof *rows));
    tcase_add_loop_test(t, elements_go_side_by_side, 0, (int)(sizeof jams / sizeof *jams));
    tcase_add_loop_test(t, rows_are_staged, 0, (int)(sizeof stages / sizeof *stages));
    tcase_add_test(t, lanes_have_an_end);
    tcase_add_test(t, guards_by_index_are_free);
    tcase_add_test(t, traffic_is_of_lines);
    tcase_add_test(t, threads_have_parts);
    tcase_add_test(t, rows_of_lanes_are_tiles);
    tcase_add_test(t, conflicts_are_dear);
    tcase_add_test(t, few_lanes_of_functions_wait);
    tcase_add_test(t, combiners_are_dear);
}

int main(void) { return suite_run("map", add_tests); }
