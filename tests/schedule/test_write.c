// SPDX-License-Identifier: Apache-2.0
// Kernels as they are written: no loop of them is for nothing.
#include "schedule_support.h"

// A long fold of which one result is read, at an index that is data, is made where that is read.
START_TEST(folds_read_at_data_are_made_there)
{
    uint32_t f = parse("jot ir 1\nfunction @0 at(%x: f32[65537,2], %i: i32[]) {\n"
                       "  %2 = reduce_max %x {axes=[0]} : f32[2]\n"
                       "  %3 = dynamic_slice %2, %i {sizes=[1]} : f32[1]\n  return %3\n}\n");
    struct nest_program *p = schedule(f);
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
    require_of(p->nests.count == 1 && count_kind(p->nests.at[0], NEST_FOLD) == 1, "one fold", f,
               p);
}
END_TEST

static void add_tests(TCase *t) { tcase_add_test(t, folds_read_at_data_are_made_there); }

int main(void) { return support_run("write", add_tests); }
