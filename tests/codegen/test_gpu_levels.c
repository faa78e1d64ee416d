// SPDX-License-Identifier: Apache-2.0
// The code generator does what the text of a mapped nest says.
#include "map/gpu_nests.h"
#include "ptx_support.h"

#include "base/strbuf.h"

// ptx_of compares the code of a text with that of the text with its levels.
START_TEST(text_with_levels_has_the_same_code)
{
    if (!gpu_nests[_i].is_phase)
        ptx_of(gpu_nests[_i].text);
}
END_TEST

#define DOUBLES                                                                                \
    "kernel k(x: f32[1048576], y: out f32[1048576]) block 256 {\n"                             \
    "  par @thread i < 1048576 @vector 4 {\n    %0 = load x[i] : f32\n"                        \
    "    %1 = add %0, %0 : f32\n    put y[i] = %1\n  }\n}\n"
#define ROW                                                                                    \
    "kernel k(x: f32[131072], y: out f32[131072]) block 256 group 32 {\n"                      \
    "  par @group i < 128 {\n    fold @thread k < 1024 @vector 4 {\n"                          \
    "      %0 = load x[1024*i + k] : f32\n      yield reduce_sum %0 sum64\n    } -> %1 : "     \
    "f32\n"                                                                                    \
    "    map @row j < 1024 @vector 4 {\n      %2 = load x[1024*i + j] : f32\n"                 \
    "      %3 = sub %2, %1 : f32\n      put y[1024*i + j] = %3\n    }\n  }\n}\n"

#define TURNED                                                                                 \
    "kernel k(x: f32[1048576], y: out f32[1048576]) block 256 {\n"                             \
    "  par @thread i < 1024 @tile 32, j < 1024 @tile 32 turns 2 {\n"                           \
    "    %0 = load x[i + 1024*j] : f32\n    put y[1024*i + j] = %0\n  }\n}\n"

// Levels that map would not have written.
START_TEST(levels_by_hand_are_followed)
{
    ck_assert_int_eq(count(ptx_of(DOUBLES), "ld.global.nc.v4.f32"), 1);
    const char *ptx = ptx_of(replaced(DOUBLES, "@vector 4", "@vector 2"));
    ck_assert_int_eq(count(ptx, "ld.global.nc.v2.f32"), 1);
    ptx = ptx_of(replaced(DOUBLES, "@vector 4", "@vector 4 turns 4"));
    ck_assert_int_eq(count(ptx, "ld.global.nc.v4.f32"), 4);
    ck_assert_ptr_nonnull(strstr(ptx, ".maxntid 256"));
    ck_assert_ptr_nonnull(strstr(ptx_of(replaced(DOUBLES, "256", "128")), ".maxntid 128"));
    // Eight vectors of a row are written out, as turns of a map are if it says so; else they are a loop.
    ck_assert_int_eq(count(ptx_of(ROW), "st.global.v4.f32"), 8);
    ptx =
        ptx_of(replaced(ROW, "@row j < 1024 @vector 4", "@thread j < 1024 @vector 4 turns 8"));
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 8);
    // So are windows of a fold: eight are all of a team's block.
    ck_assert_int_eq(count(ptx_of(ROW), "ld.global.nc.v4.f32"), 1 + 8);
    ptx = ptx_of(replaced(ROW, "@vector 4", "@vector 4 at_once 2"));
    ck_assert_int_eq(count(ptx, "ld.global.nc.v4.f32"), 2 + 8);
    // Four rows of a tile and as many of its mirror image, or of a tile.
    ck_assert_int_eq(count(ptx_of(TURNED), "st.global.f32"), 8);
    ck_assert_int_eq(count(ptx_of(replaced(TURNED, " turns 2", "")), "st.global.f32"), 4);
    ptx = ptx_of(replaced(ROW, "@row", "@thread"));
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 1);
}
END_TEST

#define TWO_PUTS(at)                                                                           \
    "kernel k(x: f32[1024], y: out f32[2048]) {\n  map k < 1024 {\n"                           \
    "    %0 = load x[k] : f32\n    put y[k] = %0\n  }\n  map l < 1024 {\n"                     \
    "    %1 = load x[l] : f32\n    %2 = add %1, %1 : f32\n    put y[" at "] = %2\n  }\n}\n"

// Threads of a group wait where one of them puts what another one has put, and not where elements differ.
START_TEST(threads_wait_for_what_others_put)
{
    ck_assert_int_eq(count(ptx_of(TWO_PUTS("-l + 1023")), "bar.sync"), 2);
    ck_assert_int_eq(count(ptx_of(TWO_PUTS("l + 1023")), "bar.sync"), 2);
    ck_assert_int_eq(count(ptx_of(TWO_PUTS("l + 1024")), "bar.sync"), 0);
    ck_assert_int_eq(count(ptx_of(replaced(TWO_PUTS("2*l + 1"), "y[k]", "y[2*k]")), "bar.sync"),
                     0);
}
END_TEST

// A text that there is no code for is refused with what is wrong.
START_TEST(wrong_levels_are_refused)
{
    struct cg_response r = compiled(replaced(ROW, "k < 1024", "k < 1023"), "cuda sm_90");
    ck_assert_msg(r.status != JOT_OK &&
                      strstr(r.message, "fold k: a row of 1023 is no vectors of 4"),
                  "%s", r.status == JOT_OK ? "compiled" : r.message);
    r.release(&r);
    r = compiled(replaced(ROW, "1024*i + j] = ", "1023*i + j] = "), "cuda sm_90");
    ck_assert_msg(r.status != JOT_OK && strstr(r.message, "put the same element of y"), "%s",
                  r.status == JOT_OK ? "compiled" : r.message);
    r.release(&r);
}
END_TEST

static void add(TCase *c)
{
    tcase_add_loop_test(c, text_with_levels_has_the_same_code, 0, (int)GPU_NESTS);
    tcase_add_test(c, levels_by_hand_are_followed);
    tcase_add_test(c, threads_wait_for_what_others_put);
    tcase_add_test(c, wrong_levels_are_refused);
}

int main(void) { return run_ptx("gpu_levels", add); }
