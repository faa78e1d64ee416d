// SPDX-License-Identifier: Apache-2.0
// Lanes of a while of which one is left alone, in machine code against the interpreter of nests, bit
// for bit.
#include "nest_check.h"

#include <stdio.h>

static const int64_t lanes[] = {1, 2, 7, 16, 17, 33, 100};
static const char *const floats[] = {"f32", "f64", "f16", "bf16"};
#define COUNT(a) (sizeof(a) / sizeof *(a))

// Lanes that go on for so long that one is left alone, which scalars do: with values of its own, and
// all that it may read and carry.
START_TEST(lane_left_alone)
{
    static const char text[] =
        "kernel alone(n: i32[%B], x: %d[%B], w: %d[%P], z: c64[%B], y: out %d[%B],"
        "             m: out i32[%B], c: out c64[%B], g: out bool[%B]) {"
        "  %0 = const 0x00000000 : i32"
        "  %1 = const 0x00000001 : i32"
        "  %2 = const 0x000004b0 : i32"
        "  %3 = const 0x01 : bool"
        "  par b < %B {"
        "    %4 = load n[b] : i32"
        "    %5 = mul %4, %4 : i32"
        "    %6 = load x[b] : %d"
        "    %7 = load z[b] : c64"
        "    while carry %8 = %0, %9 = %6, %10 = %7, %11 = %3 {"
        "      %12 = lt %8, %5 : bool"
        "      yield %12"
        "    } do {"
        "      %13 = add %8, %1 : i32"
        "      %14 = lt %8, %2 : bool"
        "      %15 = load w[1600*b + %8] if %14 : %d"
        "      if %11 {"
        "        %17 = max %9, %6 : %d"
        "        yield %17"
        "      } else {"
        "        %18 = add %15, %6 : %d"
        "        yield %18"
        "      } -> %16"
        "      %19 = sub %7, %10 : c64"
        "      %20 = not %11 : bool"
        "      yield %13, %16, %19, %20"
        "    } -> %21, %22, %23, %24"
        "    put y[b] = %22 put m[b] = %21 put c[b] = %23 put g[b] = %24"
        "  }"
        "}";
    for (size_t i = 0; i < COUNT(lanes); i++)
        nest_check_text(nest_check_instance(text, lanes[i], 1600, floats[_i]));
    nest_check_end();
}
END_TEST

// With rows: short ones and long ones, of complex numbers, and such as only the loop knows; with
// loops over them, over time and inside of others, branches, and indices that data choose.
static const char rows[] =
    "kernel rows(n: i32[%B], x: %d[%B], w: %d[%P], z: c64[%B], y: out %d[%P], v: out "
    "%d[%B],"
    "            c: out c64[%B], e: out c64[%B], s: out %d[%B], m: inout %d[%B],"
    "            u: out f32[%B]) {"
    "  local g: %d[300]"
    "  local a: %d[4]"
    "  local b: %d[20]"
    "  local t: %d[20]"
    "  local h: c64[3]"
    "  local k: c64[18]"
    "  local f: bool[20]"
    "  %0 = const 0x00000000 : i32"
    "  %1 = const 0x00000001 : i32"
    "  %2 = const 0x00000007 : i32"
    "  %3 = const 0x00000003 : i32"
    "  par p < %B {"
    "    %10 = load n[p] : i32"
    "    %11 = mul %10, %2 : i32"
    "    %12 = load x[p] : %d"
    "    %13 = load z[p] : c64"
    "    map i < 4 { put a[i] = %12 }"
    "    map i < 20 {"
    "      %14 = load w[20*p + i] : %d"
    "      %15 = gt %14, %12 : bool"
    "      put b[i] = %14 put f[i] = %15"
    "    }"
    "    map i < 3 { put h[i] = %13 }"
    "    map i < 18 { put k[i] = %13 }"
    "    map i < 300 {"
    "      %16 = index i : i32"
    "      %17 = convert %16 : %d"
    "      put g[i] = %17"
    "    }"
    "    while carry %20 = %0, %21 = %12 {"
    "      %22 = lt %20, %11 : bool"
    "      yield %22"
    "    } do {"
    "      %23 = add %20, %1 : i32"
    "      %24 = and %20, %3 : i32"
    "      fold i < 20 {"
    "        %25 = load b[i] : %d"
    "        yield reduce_max %25 free"
    "      } -> %26 : %d"
    "      scan i < 20 {"
    "        %27 = load b[i] : %d"
    "        %28 = sub %26, %27 : %d"
    "        yield reduce_min %28 free -> %29 : %d"
    "        put t[i] = %29"
    "      }"
    "      map i < 20 {"
    "        %30 = load t[i] : %d"
    "        %31 = load b[i] : %d"
    "        %32 = sub %31, %30 : %d"
    "        put b[i] = %32"
    "      }"
    "      %33 = load a[%24] : %d"
    "      seq i < 3 carry %34 = %33 {"
    "        %35 = load b[5*i + %24] : %d"
    "        %38 = load g[97*i + %24] : %d"
    "        %39 = min %38, %35 : %d"
    "        %36 = max %34, %39 : %d"
    "        put a[i] = %36"
    "        yield %36"
    "      } -> %37"
    "      while carry %40 = %24, %41 = %37 {"
    "        %42 = gt %40, %0 : bool"
    "        yield %42"
    "      } do {"
    "        %43 = sub %40, %1 : i32"
    "        %44 = load a[%40] : %d"
    "        %45 = sub %44, %41 : %d"
    "        yield %43, %45"
    "      } -> %46, %47"
    "      %50 = load f[%24] : bool"
    "      %51 = not %50 : bool"
    "      put f[%24] = %51 put g[97*%24 + 2] = %47"
    "      put a[%24] = %47 if %50"
    "      if %50 {"
    "        yield %47"
    "      } else {"
    "        put m[p] = %47"
    "        yield %21"
    "      } -> %55"
    "      %56 = load h[2] : c64"
    "      %57 = load k[%24 + 5] : c64"
    "      %58 = sub %57, %56 : c64"
    "      put h[0] = %58 put h[2] = %57 put k[%24 + 11] = %58"
    "      yield %23, %55"
    "    } -> %60, %61"
    "    map i < 20 { %62 = load b[i] : %d put y[20*p + i] = %62 }"
    "    fold i < 4 { %63 = load a[i] : %d yield reduce_min %63 free } -> %64 : %d"
    "    fold i < 300 {"
    "      %68 = load g[i] : %d"
    "      %70 = convert %68 : f32"
    "      yield reduce_sum %70 sum64"
    "    } -> %69 : f32"
    "    fold i < 18 { %65 = load k[i] : c64 yield reduce_sum %65 sum64 } -> %66 : c64"
    "    %67 = load h[0] : c64"
    "    put v[p] = %64 put c[p] = %66 put e[p] = %67 put s[p] = %61 put u[p] = %69"
    "  }"
    "}";

START_TEST(rows_of_a_lane_alone)
{
    for (size_t i = 0; i < COUNT(lanes); i++)
        nest_check_text(nest_check_instance(rows, lanes[i], 20, floats[_i]));
    nest_check_end();
}
END_TEST

// The statement `of` for each of the five elements of a row; in it # is the element, ~ the next one.
static void add_row(struct strbuf *text, const char *of)
{
    for (int i = 0; i < 5; i++)
        for (const char *c = of; *c; c++)
            if (*c == '#' || *c == '~')
                strbuf_printf(text, "%d", *c == '#' ? i : (i + 1) % 5);
            else
                strbuf_printf(text, "%c", *c);
}

// Elements that are values of their own, with which steps do the same: in order and in another, with
// numbers of each and of all, and what is made of all of them.
START_TEST(elements_of_a_lane_alone)
{
    struct strbuf s = strbuf_make(nest_check_arena);
    strbuf_printf(
        &s, "kernel elements(n: i32[%%B], w: %%d[%%P], y: out %%d[%%P], z: out i32[%%P]) {"
            "  %%0 = const 0x00000000 : i32"
            "  %%1 = const 0x00000007 : i32"
            "  %%2 = const 0x00000001 : i32"
            "  par p < %%B {"
            "    %%3 = load n[p] : i32"
            "    %%4 = mul %%3, %%1 : i32");
    add_row(&s, " %1# = load w[5*p + #] : %d %2# = sin %1# : %d %3# = convert %1# : i32"
                " %4# = index 2*p - # : i32 %5# = convert %4# : %d");
    strbuf_printf(&s, " while carry %%5 = %%0");
    add_row(&s, ", %6# = %2#");
    add_row(&s, ", %7# = %3#");
    strbuf_printf(&s, " { %%6 = lt %%5, %%4 : bool yield %%6 } do {"
                      "  %%7 = add %%5, %%2 : i32"
                      "  %%8 = add %%60, %%64 : %%d"
                      "  %%9 = convert %%5 : %%d");
    add_row(&s, " %8# = mul %6#, %2# : %d %9# = mul %6~, %5# : %d %10# = gt %8#, %9# : bool"
                " %11# = lt %6~, %62 : bool %12# = or %10#, %11# : bool"
                " %13# = select %12#, %9#, %8# : %d %14# = fma %13#, %8, %5# : %d"
                " %15# = sin %14# : %d %16# = add %7#, %4# : i32 %17# = xor %16#, %5 : i32");
    strbuf_printf(&s, " yield %%7");
    add_row(&s, ", %15#");
    add_row(&s, ", %17#");
    strbuf_printf(&s, "} -> %%400");
    add_row(&s, ", %41#");
    add_row(&s, ", %42#");
    add_row(&s, " put y[5*p + #] = %41# put z[5*p + #] = %42#");
    strbuf_printf(&s, "}}");
    for (size_t i = 0; i < COUNT(lanes); i++)
        nest_check_text(nest_check_instance(s.text, lanes[i], 5, floats[_i]));
    nest_check_end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("alone");
    printf("seed %llu\n", (unsigned long long)nest_check_seed());
    TCase *c = tcase_create("bits");
    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, nest_check_setup, nest_check_teardown);
    tcase_add_loop_test(c, lane_left_alone, 0, 4);
    tcase_add_loop_test(c, rows_of_a_lane_alone, 0, 4);
    tcase_add_loop_test(c, elements_of_a_lane_alone, 0, 4);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
