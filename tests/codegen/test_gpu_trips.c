// SPDX-License-Identifier: Apache-2.0
// Steps of stencils, several of which a GPU makes in one launch (gpu/trips.c).
#include "ptx_support.h"

#define STENCIL(trips, above)                                                                  \
    "jot nest 1\n"                                                                             \
    "program \"stencil\" {\n"                                                                  \
    "  inputs 1\n"                                                                             \
    "  outputs 1 donated -1\n"                                                                 \
    "  arena 4194304\n"                                                                        \
    "  constants 0\n"                                                                          \
    "  memory input 0 : f32[1048576] \"x0\"\n"                                                 \
    "  memory output 0 : f32[1048576] \"y0\"\n"                                                \
    "  memory temporary at 0 : f32[1048576] \"turn\"\n"                                        \
    "  memory turn of 1, 2 in loop 0 : f32[1048576] \"carry\"\n"                               \
    "  memory turn of 2, 1 in loop 0 : f32[1048576] \"next\"\n"                                \
    "  step copy (1, 0) \"\"\n"                                                                \
    "  step loop 0 trips " trips " () \"\"\n"                                                  \
    "  step kernel 0 (3, 4) \"\"\n"                                                            \
    "  step end ()\n"                                                                          \
    "}\n"                                                                                      \
    "kernel step(carry: f32[1048576], next: out f32[1048576]) {\n"                             \
    "  %0 = const 0x0000000000000001 : i64\n"                                                  \
    "  %1 = const 0x00000000000003ff : i64\n"                                                  \
    "  %2 = load carry[0] : f32\n"                                                             \
    "  par i < 1024, j < 1024 {\n"                                                             \
    "    %3 = const 0x00000000 : f32\n"                                                        \
    "    %4 = index i : i64\n"                                                                 \
    "    %5 = lt %4, %0 : bool\n"                                                              \
    "    %6 = ge %4, %0 : bool\n"                                                              \
    "    %7 = load carry[1024*i + j - 1024] if %6 : f32\n"                                     \
    "    %8 = load carry[j + 1047552] : f32\n"                                                 \
    "    %9 = select %5, %8, %7 : f32\n"                                                       \
    "    %10 = index j : i64\n"                                                                \
    "    %11 = lt %10, %1 : bool\n"                                                            \
    "    %12 = load carry[1024*i + j + 1] if %11 : f32\n"                                      \
    "    %13 = add " above ", %12 : f32\n"                                                     \
    "    %14 = lt %4, %1 : bool\n"                                                             \
    "    %15 = load carry[1024*i + j + 1024] if %14 : f32\n"                                   \
    "    %16 = add %13, %15 : f32\n"                                                           \
    "    put next[1024*i + j] = %16\n"                                                         \
    "  }\n"                                                                                    \
    "}\n"

START_TEST(trips_are_made_together)
{
    // Five of them: 18 rows are read, and of 16, 14, 12, 10 and 8 one end goes to the thread beside.
    const char *ptx = ptx_of_program(STENCIL("1000", "%9"));
    ck_assert_int_eq(count(ptx, "ld.global.v4.f32"), 18);
    ck_assert_int_eq(count(ptx, "st.global.v4.f32"), 8);
    ck_assert_int_eq(count(ptx, "shfl.sync.down"), 60);
    ck_assert_int_eq(count(ptx, "shfl.sync.up"), 0);
    check_clean(ptx);
    // Three, in an odd number of launches or an even one.
    ptx = ptx_of_program(STENCIL("999", "%9"));
    ck_assert_int_eq(count(ptx, "shfl.sync.down"), 12 + 10 + 8);
    check_clean(ptx);
}
END_TEST

START_TEST(other_trips_are_made_one_by_one)
{
    // Launches of as many trips must be all of them.
    ck_assert_int_eq(count(ptx_of_program(STENCIL("998", "%9")), "shfl.sync.down"), 0);
    // What the first trip reads of the array is not what later ones would.
    ck_assert_int_eq(count(ptx_of_program(STENCIL("1000", "%2")), "shfl.sync.down"), 0);
    // That row is a neighbour of one row only.
    ck_assert_int_eq(count(ptx_of_program(STENCIL("1000", "%8")), "shfl.sync.down"), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, trips_are_made_together);
    tcase_add_test(tests, other_trips_are_made_one_by_one);
}

int main(void) { return run_ptx("gpu trips", add); }
