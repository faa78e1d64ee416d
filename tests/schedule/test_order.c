// SPDX-License-Identifier: Apache-2.0
// The order of axes in memory of what loops that are one kernel read and leave.
#include "control_schedule.h"
#include "schedule_examples.h"

#include "ir/cost.h"

enum { LANES = 32, BLOCK = 16, INNER = 3 };

// A loop over time of one lane, between kernels.
static const char between_kernels[] =
    "jot ir 1\n"
    "function @0(%h: f32[3], %x: f32[3]) {\n"
    "  %p = mul %h, %x : f32[3]\n"
    "  %q = add %p, %x : f32[3]\n"
    "  return %q, %q\n"
    "}\n"
    "function @1 f(%h: f32[3], %s: f32[64,3]) {\n"
    "  %t = sin %s : f32[64,3]\n"
    "  %y, %r = scan %h, %t {reverse=0, length=64, n_consts=0, n_carry=1, functions=[@0]} : "
    "f32[3], f32[64,3]\n"
    "  %o = exp %r : f32[64,3]\n"
    "  return %y, %o\n"
    "}\n";

static const struct nest_statement *points_of(const struct nest *n)
{
    nest_for_each (s, n, 0)
        if (s->kind == NEST_PAR)
            return s;
    return NULL;
}

static bool has_time(const struct nest *n)
{
    nest_for_all (s, n)
        if (s->kind == NEST_SEQ)
            return true;
    return false;
}

// The last axis of points that is none of a lane.
static nest_id lanes_axis(const struct nest *n, const struct nest_statement *points)
{
    uint32_t i = points->n_axes - 1;
    while (i && n->axes.at[points->axes[i]].extent <= INNER)
        i--;
    return points->axes[i];
}

// Neighbours of a loop over time that are far apart take long.
static int64_t price_of_strides(struct nest *n)
{
    const struct nest_statement *points = points_of(n);
    int64_t price = COST_ALONE;
    nest_for_all (s, n) {
        if (!points || !has_time(n) || (s->kind != NEST_LOAD && s->kind != NEST_PUT) ||
            n->buffers.at[s->buffer].role == NEST_LOCAL)
            continue;
        int64_t by = nest_index_factor(&s->index, lanes_axis(n, points));
        price += by == 0 || by == 1 ? 0 : COST_ALONE;
    }
    return price;
}

static int64_t price_of_kernels(struct nest *n)
{
    (void)n;
    return COST_ALONE;
}

// The extent of the last axis of the lanes of the loop over time.
static int64_t last_lanes(uint32_t f, int64_t (*price)(struct nest *n))
{
    struct nest_program *p = schedule_with(f, &(struct schedule_options){.price = price});
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
    for (uint32_t i = 0; i < p->nests.count; i++) {
        const struct nest *n = p->nests.at[i];
        const struct nest_statement *points = points_of(n);
        if (points && has_time(n))
            return n->axes.at[points->axes[points->n_axes - 1]].extent;
    }
    return 0;
}

START_TEST(lanes_of_a_vector_lie_together)
{
    uint32_t f = parse(between_kernels), g = simplified(mapped(f, all_inputs(f), LANES));
    ck_assert_int_eq(last_lanes(g, price_of_strides), BLOCK);
    ck_assert_int_eq(last_lanes(g, price_of_kernels), INNER);
    ck_assert_int_eq(last_lanes(g, NULL), INNER);
}
END_TEST

// Lanes that are not so many times a part of a vector stay where they are.
START_TEST(others_do_not)
{
    uint32_t f = parse(between_kernels), g = simplified(mapped(f, all_inputs(f), LANES + 1));
    ck_assert_int_eq(last_lanes(g, price_of_strides), INNER);
}
END_TEST

// Of lanes that are so many times half a vector, or a quarter, these are the blocks.
START_TEST(blocks_may_be_parts_of_vectors)
{
    for (int block = BLOCK / 2; block >= 4; block /= 2) {
        uint32_t f = parse(between_kernels),
                 g = simplified(mapped(f, all_inputs(f), LANES + block));
        ck_assert_int_eq(last_lanes(g, price_of_strides), block);
    }
}
END_TEST

// As if extents were large, all lanes go by blocks: a program gives the evaluator's bits.
static void check_large(uint32_t f)
{
    static const struct schedule_options large = {.large = true};
    f = simplified(f);
    struct nest_program *p = schedule_with(f, &large);
    check_program(f, p);
    check_run(f, p, draw_inputs(f, seed));
}

START_TEST(programs)
{
    uint32_t f = parse(control_programs[_i].text);
    for (uint64_t bits = all_inputs(f); bits; bits--)
        check_large(mapped(f, bits, 4));
    check_large(mapped(forward(f), all_inputs(f), 6));
}
END_TEST

START_TEST(random_loops)
{
    for (uint64_t i = 0; i < 20; i++) {
        uint32_t f = simplified(random_loop(seed + (uint64_t)_i * 1000 + i, 3 + (int)(i % 9)));
        if (count_control(f))
            check_large(mapped(mapped(f, all_inputs(f), 4), all_inputs(f), 3));
    }
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, lanes_of_a_vector_lie_together);
    tcase_add_test(t, others_do_not);
    tcase_add_test(t, blocks_may_be_parts_of_vectors);
    tcase_add_loop_test(t, programs, 0, CONTROL_PROGRAMS);
    tcase_add_loop_test(t, random_loops, 0, 10);
}

int main(void) { return support_run("order", add_tests); }
