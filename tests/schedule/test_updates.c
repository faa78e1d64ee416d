// SPDX-License-Identifier: Apache-2.0
// Updates of windows that may meet, as a GPU makes them: few by the elements of what they change, many one after the
// other in one sequence, whose turns threads share.
#include "ir/indexing.h"
#include "schedule_support.h"

static const struct schedule_options gpu = {
    .rich_gemm = true, .many_lanes = true, .no_accumulation = true, .one_loop = true};

// How many loops over time the kernels have, and how many of those hand a value on.
static void count_loops(const struct nest_program *p, int *loops, int *carrying)
{
    *loops = *carrying = 0;
    for (uint32_t i = 0; i < p->nests.count; i++)
        nest_for_all (s, p->nests.at[i]) {
            *loops += s->kind == NEST_SEQ;
            *carrying += s->kind == NEST_SEQ && s->n_in;
        }
}

// Integers from -first on are places, so that some windows are outside.
static struct ir_tensor places(struct ir_type t, int64_t first, int64_t count)
{
    struct ir_tensor x = zeros(t);
    int32_t *data = x.data;
    for (int64_t i = 0; i < ir_count(module, t); i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        data[i] = (int32_t)((int64_t)(seed >> 33) % count - first);
    }
    return x;
}

static void check(const char *text, int64_t first, int64_t count, int loops, int carrying)
{
    uint32_t f = parse(text);
    uint64_t state = seed;
    struct ir_tensor in[3];
    for (uint32_t i = 0; i < 3; i++)
        in[i] = i == 1 ? places(ir_type_of(graph(f), i), first, count)
                       : draw(ir_type_of(graph(f), i), &state);
    struct nest_program *p = schedule_with(f, &gpu);
    int has, carry;
    check_program(f, p);
    check_run(f, p, in);
    count_loops(p, &has, &carry);
    require_of(has == loops && carry == carrying, "loops", f, p);
}

static const char *const ops[] = {"scatter", "scatter_add", "scatter_mul", "scatter_min",
                                  "scatter_max"};
static const char *const dtypes[] = {"f32", "f64", "i32", "f16", "u8"};

// Windows of all of an axis but its ends, of the middle of another one, and of single numbers of a third.
static const struct {
    const char *operand, *places, *updates, *how;
    int64_t count;
} windows[] = {
    {"[4000]", "[7,1]", "[7,3000]", "offset_dims=[1], collapsed_dims=[], index_map=[0]", 1100},
    {"[50,90]", "[3,4,2]", "[3,4,40,60]",
     "offset_dims=[2,3], collapsed_dims=[], index_map=[1,0]", 60},
    {"[60,7,30]", "[9,2]", "[9,50,20]",
     "offset_dims=[1,2], collapsed_dims=[1], index_map=[0,1]", 14},
    {"[80,5,40]", "[6,5,1]", "[6,5,70,30]",
     "offset_dims=[2,3], collapsed_dims=[], operand_batch=[1], index_batch=[1], index_map=[2]",
     12},
    {"[6000]", "[40,1]", "[40]", "offset_dims=[], collapsed_dims=[0], index_map=[0]", 6004},
};

START_TEST(few_are_of_elements)
{
    static const int modes[] = {IR_MODE_CLIP, IR_MODE_PROMISE, IR_MODE_DROP};
    int shape = _i / 5, op = _i % 5, loops = shape == 1 ? 2 : 1;
    for (int k = 0; k < 3; k++) {
        char text[1000];
        const char *d = dtypes[(op + shape + k) % 5], *in = windows[shape].operand;
        snprintf(text, sizeof text,
                 "jot ir 1\nfunction @0 few(%%x: %s%s, %%i: i32%s, %%u: %s%s) {\n"
                 "  %%v = add %%u, %%u : %s%s\n"
                 "  %%1 = %s %%x, %%i, %%v {%s, mode=%d} : %s%s\n  return %%1\n}\n",
                 d, in, windows[shape].places, d, windows[shape].updates, d,
                 windows[shape].updates, ops[op], windows[shape].how, modes[k], d, in);
        check(text, 3, windows[shape].count, loops, loops);
    }
}
END_TEST

// What an update is made of, with loops or dear, is made before.
START_TEST(what_is_dear_is_made_once)
{
    char text[1000];
    snprintf(text, sizeof text,
             "jot ir 1\nfunction @0 dear(%%x: f64[4000], %%i: i32[6,1], %%u: f64[6,3000]) {\n"
             "  %%v = sin %%u : f64[6,3000]\n  %%w = reduce_sum %%u {axes=[1]} : f64[6]\n"
             "  %%b = broadcast_in_dim %%w {dims=[6, 3000], axes=[0]} : f64[6,3000]\n"
             "  %%s = mul %%v, %%b : f64[6,3000]\n"
             "  %%1 = scatter_add %%x, %%i, %%s {offset_dims=[1], collapsed_dims=[], "
             "index_map=[0], mode=3} : f64[4000]\n  return %%1\n}\n");
    uint32_t f = parse(text);
    struct nest_program *p = schedule_with(f, &gpu);
    for (uint32_t i = 0; i < p->nests.count; i++)
        require_of(
            !count_kind(p->nests.at[i], NEST_SEQ) ||
                (!count_ops(p->nests.at[i], IR_sin) && !count_kind(p->nests.at[i], NEST_FOLD)),
            "made for each element", f, p);
    check(text, 3, 1100, 1, 1);
}
END_TEST

// Many small ones are turns of one sequence.
START_TEST(many_are_one_sequence)
{
    check("jot ir 1\nfunction @0 many(%x: f32[70,80], %i: i32[700,2], %u: f32[700,3,4]) {\n"
          "  %1 = scatter_add %x, %i, %u {offset_dims=[1,2], collapsed_dims=[], "
          "index_map=[0,1], mode=3} : f32[70,80]\n  return %1\n}\n",
          3, 76, 3, 0);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, few_are_of_elements, 0, 25);
    tcase_add_test(t, what_is_dear_is_made_once);
    tcase_add_test(t, many_are_one_sequence);
}

int main(void) { return support_run("updates", add_tests); }
