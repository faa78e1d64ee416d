// SPDX-License-Identifier: Apache-2.0
// Loops over time in machine code against the interpreter of nests, bit for bit.
//
// A case is a text with %B for the lanes and %T for the times.  Extents are such that there are
// whole groups of vectors, single ones, and lanes left over.
#include "nest_check.h"
#include "time_programs.h"

#include <stdio.h>
#include <string.h>

static const int64_t lanes[] = {1, 2, 7, 16, 17, 33, 100, 300, 4099};
static const int64_t times[] = {0, 1, 2, 16, 17, 40};
#define COUNT(a) (sizeof(a) / sizeof *(a))

// Every second of the extents, the others of other dtypes.
static void check_extents(const char *text, const char *dtype, size_t first)
{
    for (size_t i = 0; i < COUNT(lanes); i++)
        for (size_t k = 0; k < COUNT(times); k++)
            if (lanes[i] * times[k] < 100000 && (lanes[i] < 300 || times[k] == 17) &&
                sample_takes(first + i + k, 2))
                nest_check_text(nest_check_instance(text, lanes[i], times[k], dtype));
    nest_check_end();
}

static const char *const floats[] = {"f32", "f64", "f16", "bf16"};

START_TEST(springs) { check_extents(spring, floats[_i], (size_t)_i); }
END_TEST

// Carries that swap, a bool, an integer that counts, a complex one, and one that nobody changes.
static const char mixed[] =
    "kernel mixed(x: f32[%B], z: c64[%B], n: i64[%B], y: out c64[%B], a: out f32[%B],"
    "             m: out i64[%B], q: out bool[%B], w: out f64[%B]) {"
    "  %0 = const 0x3f800000 : f32"
    "  %30 = const 0x01 : bool"
    "  par b < %B {"
    "    %1 = load x[b] : f32"
    "    %2 = load z[b] : c64"
    "    %3 = load n[b] : i64"
    "    %4 = convert %1 : f64"
    "    seq t < %T reverse carry %5 = %1, %6 = %0, %7 = %2, %8 = %3, %9 = %30, %10 = %4, %11 "
    "= %0 {"
    "      %12 = index t : i64"
    "      %13 = add %8, %12 : i64"
    "      %14 = mul %7, %7 : c64"
    "      %15 = not %9 : bool"
    "      %16 = add %10, %10 : f64"
    "      yield %6, %5, %14, %13, %15, %16, %11"
    "    } -> %20, %21, %22, %23, %24, %25, %26"
    "    %27 = mul %20, %26 : f32"
    "    put a[b] = %27 put y[b] = %22 put m[b] = %23 put q[b] = %24 put w[b] = %25"
    "  }"
    "}";

START_TEST(mixed_carries) { check_extents(mixed, "", 0); }
END_TEST

// What depends on time alone, and keys that all lanes share.
static const char uniform[] =
    "kernel uniform(u: f32[64], x: f32[%B], y: out f32[%B], k: out u32[%B]) {"
    "  %0 = const 0x00000007 : u32"
    "  par b < %B {"
    "    %1 = load x[b] : f32"
    "    seq t < %T carry %2 = %1, %3 = %0, %4 = %0 {"
    "      %5 = load u[t] : f32"
    "      %6 = exp %5 : f32"
    "      %7 = mul %2, %6 : f32"
    "      %8, %9 = threefry2x32 %3, %4, %3, %4 : u32"
    "      %10 = convert %8 : f32"
    "      %11 = add %7, %10 : f32"
    "      yield %11, %8, %9"
    "    } -> %12, %13, %14"
    "    put y[b] = %12 put k[b] = %14"
    "  }"
    "}";

START_TEST(uniform_work) { check_extents(uniform, "", 0); }
END_TEST

// Long steps, in which an operation is for several vectors.
static const char random_steps[] =
    "kernel random(x: %d[%B], k: u32[%B], y: out %d[%B], z: out u32[%B]) {"
    "  par b < %B {"
    "    %1 = load x[b] : %d"
    "    %2 = load k[b] : u32"
    "    seq t < %T carry %3 = %1, %4 = %2 {"
    "      %5, %6 = threefry2x32 %4, %2, %4, %2 : u32"
    "      %7, %8 = threefry2x32 %5, %6, %4, %2 : u32"
    "      %9 = convert %7 : %d"
    "      %10 = add %3, %9 : %d"
    "      yield %10, %8"
    "    } -> %11, %12"
    "    put y[b] = %11 put z[b] = %12"
    "  }"
    "}";

START_TEST(long_steps) { check_extents(random_steps, floats[_i], (size_t)_i); }
END_TEST

// Inputs and trajectories, time first and lane first, forwards and backwards.
static const char trajectories[] =
    "kernel first(x: %d[%P], w: %d[%B], y: out %d[%P]) {"
    "  par b < %B {"
    "    %0 = load w[b] : %d"
    "    seq t < %T carry %1 = %0 {"
    "      %2 = load x[%B*t + b] : %d"
    "      %3 = add %1, %2 : %d"
    "      put y[%B*t + b] = %3"
    "      yield %3"
    "    } -> %4"
    "  }"
    "}"
    "kernel last(x: %d[%P], w: %d[%B], y: out %d[%P]) {"
    "  par b < %B {"
    "    %0 = load w[b] : %d"
    "    seq t < %T reverse carry %1 = %0 {"
    "      %2 = load x[%T*b + t] : %d"
    "      %3 = add %1, %2 : %d"
    "      put y[%T*b + t] = %3"
    "      yield %3"
    "    } -> %4"
    "  }"
    "}"
    "kernel across(x: %d[%P], w: %d[%B], y: out %d[%P], z: out %d[%P]) {"
    "  par b < %B {"
    "    %0 = load w[b] : %d"
    "    seq t < %T carry %1 = %0 {"
    "      %2 = load x[%T*b + t] : %d"
    "      %3 = add %1, %2 : %d"
    "      put y[%P - 1 - %T*b - t] = %3"
    "      %5 = mul %1, %2 : %d"
    "      put z[%B*t + b] = %5"
    "      yield %3"
    "    } -> %4"
    "  }"
    "}";

START_TEST(stacked)
{
    static const char *const dtypes[] = {"f32", "f64", "f16", "i32", "c64"};
    for (size_t i = 0; i < COUNT(lanes); i++)
        for (size_t k = 1; k < COUNT(times); k++)
            if ((lanes[i] < 300 || (times[k] == 17 && lanes[i] == 300)) &&
                sample_takes(i + k + (size_t)_i, 2))
                nest_check_text(
                    nest_check_instance(trajectories, lanes[i], times[k], dtypes[_i]));
    // Rows that begin anywhere in a cache line.
    nest_check_text(nest_check_instance(trajectories, 300, 57, dtypes[_i]));
    nest_check_text(nest_check_instance(trajectories, 1100, 239, dtypes[_i]));
    nest_check_end();
}
END_TEST

// Lanes that end by themselves: as often as n says, which may be never; one inside the other, in a
// loop over a known number of times, with puts, and with a test that all lanes share.
static const char whiles[] =
    "kernel counts(n: i32[%B], x: f32[%B], y: out f32[%B], m: out i32[%B]) {"
    "  %0 = const 0x00000000 : i32"
    "  %1 = const 0x00000001 : i32"
    "  par b < %B {"
    "    %2 = load n[b] : i32"
    "    %3 = load x[b] : f32"
    "    while carry %4 = %0, %5 = %3 {"
    "      %6 = lt %4, %2 : bool"
    "      yield %6"
    "    } do {"
    "      %7 = add %4, %1 : i32"
    "      %8 = mul %5, %3 : f32"
    "      %9 = add %8, %3 : f32"
    "      yield %7, %9"
    "    } -> %10, %11"
    "    put y[b] = %11 put m[b] = %10"
    "  }"
    "}"
    "kernel nested(n: i32[%B], x: %d[%B], y: out %d[%B], m: out i32[%B]) {"
    "  %0 = const 0x00000000 : i32"
    "  %1 = const 0x00000001 : i32"
    "  par b < %B {"
    "    %2 = load n[b] : i32"
    "    %3 = load x[b] : %d"
    "    seq t < %T carry %30 = %3, %31 = %0 {"
    "      %32 = index t : i32"
    "      while carry %4 = %32, %5 = %30, %20 = %31 {"
    "        %6 = lt %4, %2 : bool"
    "        yield %6"
    "      } do {"
    "        %7 = add %4, %1 : i32"
    "        while carry %21 = %5, %22 = %4 {"
    "          %23 = gt %22, %0 : bool"
    "          yield %23"
    "        } do {"
    "          %24 = sub %22, %1 : i32"
    "          %25 = sub %24, %1 : i32"
    "          %8 = mul %21, %3 : %d"
    "          yield %8, %25"
    "        } -> %26, %27"
    "        seq s < 3 carry %40 = %26 {"
    "          %41 = add %40, %3 : %d"
    "          yield %41"
    "        } -> %42"
    "        %28 = add %20, %27 : i32"
    "        yield %7, %42, %28"
    "      } -> %10, %11, %12"
    "      %33 = add %12, %10 : i32"
    "      yield %11, %33"
    "    } -> %34, %35"
    "    put y[b] = %34 put m[b] = %35"
    "  }"
    "}"
    "kernel shared(n: i32[1], x: f32[%B], y: out f32[%B], m: out i32[%B]) {"
    "  %0 = const 0x00000000 : i32"
    "  %1 = const 0x00000001 : i32"
    "  %2 = load n[0] : i32"
    "  par b < %B {"
    "    %3 = load x[b] : f32"
    "    while carry %4 = %0, %5 = %3 {"
    "      %6 = lt %4, %2 : bool"
    "      yield %6"
    "    } do {"
    "      %7 = add %4, %1 : i32"
    "      %8 = mul %5, %3 : f32"
    "      yield %7, %8"
    "    } -> %10, %11"
    "    put y[b] = %11 put m[b] = %10"
    "  }"
    "}";

START_TEST(lanes_that_end)
{
    for (size_t i = 0; i < COUNT(lanes); i++)
        if (sample_takes(i + (size_t)_i, 1))
            nest_check_text(
                nest_check_instance(whiles, lanes[i], lanes[i] < 300 ? 5 : 2, floats[_i]));
    nest_check_end();
}
END_TEST

// What lanes of another branch have no part in: the other side of a branch, and a while whose test
// would hold for them, with puts into memory that held something.
static const char masked[] =
    "kernel masked(x: %d[%B], n: i32[%B], y: inout %d[%B], z: inout %d[%B]) {"
    "  %0 = const 0x00000000 : i32"
    "  %1 = const 0x00000001 : i32"
    "  %2 = const 0x00000007 : i32"
    "  par b < %B {"
    "    %3 = load x[b] : %d"
    "    %4 = load n[b] : i32"
    "    %5 = and %4, %1 : i32"
    "    %6 = eq %5, %1 : bool"
    "    %7 = lt %4, %2 : bool"
    "    if %6 {"
    "      %8 = sin %3 : %d"
    "      if %7 {"
    "        %9 = exp %8 : %d"
    "        yield %9"
    "      } else {"
    "        %10 = cos %8 : %d"
    "        put y[b] = %10"
    "        yield %10"
    "      } -> %11"
    "      while carry %12 = %0, %13 = %11 {"
    "        %14 = lt %12, %4 : bool"
    "        yield %14"
    "      } do {"
    "        %15 = add %12, %1 : i32"
    "        %16 = mul %13, %8 : %d"
    "        put z[b] = %16"
    "        yield %15, %16"
    "      } -> %17, %18"
    "    }"
    "  }"
    "}";

START_TEST(masks_of_lanes) { check_extents(masked, floats[_i], (size_t)_i); }
END_TEST

// A while without lanes, and what it puts into memory that held something.
START_TEST(puts_in_while)
{
    static const char text[] = "kernel fills(n: i32[%B], y: inout f32[64*%B]) {"
                               "  %0 = const 0x00000000 : i32"
                               "  %1 = const 0x00000001 : i32"
                               "  %9 = const 0x3f800000 : f32"
                               "  par b < %B {"
                               "    %2 = load n[b] : i32"
                               "    while carry %4 = %0, %5 = %9 {"
                               "      %6 = lt %4, %2 : bool"
                               "      yield %6"
                               "    } do {"
                               "      %7 = add %4, %1 : i32"
                               "      %8 = load y[64*b + %4] : f32"
                               "      %12 = add %8, %5 : f32"
                               "      put y[64*b + %4] = %12"
                               "      yield %7, %12"
                               "    } -> %10, %11"
                               "    put y[64*b + 50] = %11"
                               "  }"
                               "}";
    for (size_t i = 0; i < COUNT(lanes); i++) {
        struct strbuf s = strbuf_make(nest_check_arena);
        const char *at = strstr(text, "64*%B");
        strbuf_printf(&s, "%.*s%lld%s", (int)(at - text), text, (long long)(64 * lanes[i]),
                      at + strlen("64*%B"));
        nest_check_text(nest_check_instance(s.text, lanes[i], 1, ""));
    }
    nest_check_end();
}
END_TEST

// Branches that lanes disagree about, cheap and dear, with puts, loops and branches in them.
static const char branches[] =
    "kernel branches(x: %d[%B], n: i32[%B], y: out %d[%B], z: inout %d[%B]) {"
    "  %0 = const 0x00000000 : i32"
    "  %1 = const 0x00000009 : i32"
    "  par b < %B {"
    "    %2 = load x[b] : %d"
    "    %3 = load n[b] : i32"
    "    %4 = gt %3, %1 : bool"
    "    seq t < %T carry %5 = %2, %6 = %0 {"
    "      %7 = index t : i32"
    "      %8 = gt %3, %7 : bool"
    "      if %8 {"
    "        %9 = mul %5, %2 : %d"
    "        yield %9, %7"
    "      } else {"
    "        yield %5, %6"
    "      } -> %10, %11"
    "      if %4 {"
    "        %12 = sin %10 : %d"
    "        if %8 {"
    "          put z[b] = %12"
    "          seq s < 4 carry %13 = %12 {"
    "            %14 = sub %13, %2 : %d"
    "            yield %14"
    "          } -> %15"
    "          yield %15"
    "        } else {"
    "          yield %12"
    "        } -> %16"
    "        yield %16"
    "      } else {"
    "        %17 = exp %10 : %d"
    "        yield %17"
    "      } -> %18"
    "      %20 = gt %7, %1 : bool"
    "      if %20 {"
    "        seq s < 4 carry %23 = %18 {"
    "          %24 = sub %23, %2 : %d"
    "          yield %24"
    "        } -> %25"
    "        yield %25"
    "      } else {"
    "        yield %18"
    "      } -> %26"
    "      yield %26, %11"
    "    } -> %27, %28"
    "    put y[b] = %27"
    "  }"
    "}";

START_TEST(branches_of_lanes) { check_extents(branches, floats[_i], (size_t)_i); }
END_TEST

// Sums over lanes of what loops over time make, inside them and behind.
static const char sums[] =
    "kernel sums(x: %d[%B], s: out f32[1], g: out f32[1], h: out f32[%T]) {"
    "  %0 = const 0x00000000 : f32"
    "  fold b < %B {"
    "    %1 = load x[b] : %d"
    "    %2 = convert %1 : f32"
    "    seq t < %T carry %3 = %2 {"
    "      %4 = mul %3, %2 : f32"
    "      put g[0] reduce_sum= %4 in @b sum64"
    "      put h[t] fma= %4, %3 in @b sum64"
    "      yield %4"
    "    } -> %5"
    "    yield reduce_sum %5 sum64"
    "  } -> %6 : f32"
    "  put s[0] = %6"
    "}";

START_TEST(sums_over_lanes)
{
    for (size_t i = 0; i < COUNT(lanes); i++)
        if (sample_takes(i + (size_t)_i, 1))
            nest_check_text(nest_check_instance(sums, lanes[i], 7, floats[_i]));
    nest_check_text(nest_check_instance(sums, 20000, 3, floats[_i]));
    nest_check_end();
}
END_TEST

// What lies together for each lane is folded before time, by vectors that go side by side; halves in f32.
#define ROWS_BEFORE(wide, sum, narrow)                                                         \
    "kernel rows(x: %d[%P], y: out %d[%B]) {"                                                  \
    "  par b < %B {"                                                                           \
    "    fold k < %T {"                                                                        \
    "      %0 = load x[%T*b + k] : %d" wide "      yield reduce_sum %" sum " sum64"            \
    "    } -> %8 : " narrow "    seq t < 5 carry %2 = %9 {"                                    \
    "      %3 = sin %2 : %d"                                                                   \
    "      yield %3"                                                                           \
    "    } -> %4"                                                                              \
    "    put y[b] = %4"                                                                        \
    "  }"                                                                                      \
    "}"
static const char *const rows_before[] = {
    ROWS_BEFORE("", "0", "%d    %9 = neg %8 : %d"),
    ROWS_BEFORE("      %1 = convert %0 : f32", "1", "f32    %9 = convert %8 : %d"),
};

START_TEST(rows_before_time)
{
    const char *text = rows_before[_i > 1];
    nest_check_text(nest_check_instance(text, 70, 200, floats[_i]));
    nest_check_text(nest_check_instance(text, 256, 256, floats[_i]));
    nest_check_end();
}
END_TEST

// State vectors in locals of a point: constant indices, indices that data choose, guarded puts.
static const char locals[] =
    "kernel locals(x: %d[%B], n: i32[%B], y: out %d[%B], z: out %d[%B]) {"
    "  local s: %d[3]"
    "  local r: %d[40]"
    "  par b < %B {"
    "    %0 = load x[b] : %d"
    "    %1 = load n[b] : i32"
    "    map i < 3 {"
    "      put s[i] = %0"
    "    }"
    "    map i < 40 {"
    "      put r[i] = %0"
    "    }"
    "    seq t < %T {"
    "      map i < 3 {"
    "        %2 = load s[i] : %d"
    "        %3 = mul %2, %0 : %d"
    "        put s[i] = %3"
    "      }"
    "      fold i < 3 {"
    "        %4 = load s[i] : %d"
    "        yield reduce_max %4 free"
    "      } -> %5 : %d"
    "      %6 = index t : i32"
    "      %7 = lt %6, %1 : bool"
    "      put r[%1] = %5 if %7"
    "      put r[t] = %0 if %7"
    "    }"
    "    %8 = load s[2] : %d"
    "    put y[b] = %8"
    "    %9 = load r[%1] : %d"
    "    put z[b] = %9"
    "  }"
    "}";

START_TEST(locals_of_points) { check_extents(locals, floats[_i], (size_t)_i); }
END_TEST

// What one loop keeps of its steps for the next: of every type, in order and where lanes say.
static const char tapes[] =
    "kernel tapes(x: %d[%B], n: i32[%B], y: out %d[%B], z: out c64[%B], q: out bool[%B]) {"
    "  local s: %d[200]"
    "  local c: c64[200]"
    "  local f: bool[200]"
    "  %0 = const 0x00000000 : i32"
    "  %1 = const 0x000000c7 : i32"
    "  par b < %B {"
    "    %2 = load x[b] : %d"
    "    %3 = load n[b] : i32"
    "    seq t < 200 carry %4 = %2 {"
    "      %5 = sin %4 : %d"
    "      %6 = gt %5, %2 : bool"
    "      %7 = convert %5 : f32"
    "      %8 = complex %7, %7 : c64"
    "      put s[t] = %4 put c[199 - t] = %8 put f[t] = %6"
    "      yield %5"
    "    } -> %9"
    "    %10 = convert %0 : c64"
    "    %11 = gt %2, %2 : bool"
    "    seq u < 200 reverse carry %12 = %9, %13 = %10, %14 = %11 {"
    "      %15 = load s[u] : %d"
    "      %16 = index u : i32"
    "      %17 = add %16, %3 : i32"
    "      %18 = max %17, %0 : i32"
    "      %19 = min %18, %1 : i32"
    "      %20 = load c[%19] : c64"
    "      %21 = load s[%19] : %d"
    "      %22 = load f[u] : bool"
    "      %23 = fma %12, %15, %21 : %d"
    "      %24 = add %13, %20 : c64"
    "      %25 = xor %14, %22 : bool"
    "      yield %23, %24, %25"
    "    } -> %26, %27, %28"
    "    put y[b] = %26 put z[b] = %27 put q[b] = %28"
    "  }"
    "}";

START_TEST(tapes_of_lanes)
{
    for (size_t i = 0; i < COUNT(lanes) - 1; i++)
        nest_check_text(nest_check_instance(tapes, lanes[i], 0, floats[_i]));
}
END_TEST

// A cotangent times numbers, at zeros of both signs, at the smallest numbers and at any.
START_TEST(cotangents_times_numbers)
{
    static const char *const numbers[] = {"3c23d70a", "c0400000", "00000001", "807fffff",
                                          "7f7fffff", "00000000", "80000000", "7f800000",
                                          "ff800000", "7fc00000"};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        struct strbuf s = strbuf_make(nest_check_arena);
        strbuf_printf(&s,
                      "kernel numbers(u: u32[100], y: out f32[100], z: out f32[100]) {"
                      "  %%0 = const 0x80000003 : u32"
                      "  %%1 = const 0x%s : f32"
                      "  par b < 100 {"
                      "    %%2 = load u[b] : u32"
                      "    %%3 = and %%2, %%0 : u32"
                      "    %%4 = bitcast %%3 : f32"
                      "    %%5 = mul %%4, %%1 : f32"
                      "    put y[b] = %%5"
                      "    %%6 = bitcast %%2 : f32"
                      "    %%7 = mul %%6, %%1 : f32"
                      "    put z[b] = %%7"
                      "  }"
                      "}",
                      numbers[i]);
        nest_check_text(s.text);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("time");
    printf("seed %llu\n", (unsigned long long)nest_check_seed());
    TCase *c = tcase_create("bits");
    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, nest_check_setup, nest_check_teardown);
    tcase_add_loop_test(c, springs, 0, 4);
    tcase_add_test(c, mixed_carries);
    tcase_add_test(c, uniform_work);
    tcase_add_loop_test(c, long_steps, 0, 2);
    tcase_add_loop_test(c, stacked, 0, 5);
    tcase_add_loop_test(c, lanes_that_end, 0, 4);
    tcase_add_test(c, puts_in_while);
    tcase_add_loop_test(c, branches_of_lanes, 0, 4);
    tcase_add_loop_test(c, masks_of_lanes, 0, 4);
    tcase_add_loop_test(c, sums_over_lanes, 0, 4);
    tcase_add_loop_test(c, locals_of_points, 0, 4);
    tcase_add_loop_test(c, rows_before_time, 0, 4);
    tcase_add_loop_test(c, tapes_of_lanes, 0, 4);
    tcase_add_test(c, cotangents_times_numbers);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
