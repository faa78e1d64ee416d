// SPDX-License-Identifier: Apache-2.0
// Which integers values may be: what is told is true of all that the evaluator computes, and as narrow as it says here.
#include "control_support.h"
#include "passes/analysis/interval.h"

static const struct {
    const char *body; // of x: i32[400], y: i8[400], b: bool[400]; a value %v
    int64_t low, high;
} cases[] = {
    {"  %v = add %x, %x : i32[400]\n", INT32_MIN, INT32_MAX},
    {"  %v = convert %y {dtype=i32} : i32[400]\n", -128, 127},
    {"  %v = convert %b {dtype=i32} : i32[400]\n", 0, 1},
    {"  %c = const {data=7} : i32[]\n  %v = clamp %z, %x, %c : i32[400]\n", 0, 7},
    {"  %c = const {data=7} : i32[]\n  %d = min %x, %c : i32[400]\n"
     "  %v = max %d, %z : i32[400]\n",
     0, 7},
    {"  %c = const {data=900} : i32[]\n  %d = clamp %z, %x, %c : i32[400]\n"
     "  %e = iota {dtype=i32, dims=[400], axis=0} : i32[400]\n"
     "  %f = mul %d, %e : i32[400]\n  %g = add %f, %d : i32[400]\n"
     "  %v = select %b, %g, %c : i32[400]\n",
     0, 360000},
    {"  %c = const {data=7} : i32[]\n  %e = iota {dtype=i32, dims=[400], axis=0} : i32[400]\n"
     "  %v = div %e, %c : i32[400]\n",
     0, 57},
    {"  %c = const {data=7} : i32[]\n  %e = iota {dtype=i32, dims=[400], axis=0} : i32[400]\n"
     "  %v = rem %e, %c : i32[400]\n",
     0, 6},
    // What may wrap, and what is below 0 where it is divided, may be anything.
    {"  %e = iota {dtype=i8, dims=[400], axis=0} : i8[400]\n"
     "  %v = convert %e {dtype=i32} : i32[400]\n",
     -128, 127},
    {"  %c = const {data=100} : i8[]\n  %d = max %y, %c : i8[400]\n"
     "  %e = add %d, %d : i8[400]\n  %v = convert %e {dtype=i32} : i32[400]\n",
     -128, 127},
    {"  %c = const {data=7} : i32[]\n  %v = rem %x, %c : i32[400]\n", INT32_MIN, INT32_MAX},
};

START_TEST(is_true_and_narrow)
{
    char text[1000];
    uint64_t state = seed;
    snprintf(text, sizeof text,
             "jot ir 1\nfunction @0 f(%%x: i32[400], %%y: i8[400], %%b: bool[400]) {\n"
             "  %%z = const {data=0} : i32[]\n%s  return %%v\n}\n",
             cases[_i].body);
    uint32_t f = parse(text);
    struct interval x = pass_interval_of(graph(f), graph(f)->outputs.at[0]);
    ck_assert_msg(x.low == cases[_i].low && x.high == cases[_i].high, "%lld to %lld of\n%s",
                  (long long)x.low, (long long)x.high, text);
    struct ir_tensor v = evaluate(f, draw_inputs(f, &state))[0];
    for (int i = 0; i < 400; i++) {
        int32_t at = ((const int32_t *)v.data)[i];
        ck_assert_msg(at >= x.low && at <= x.high, "%d of\n%s", (int)at, text);
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, is_true_and_narrow, 0, sizeof cases / sizeof *cases);
}

int main(void) { return support_run("interval", add_tests); }
