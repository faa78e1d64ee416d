// SPDX-License-Identifier: Apache-2.0
// Branches on one integer in one another, against the interpreter of nests; many are one jump.
#include "nest_check.h"

#include "codegen/codegen.h"
#include "support/nest_text.h"
#include "support/suite.h"

#include <stdio.h>
#include <string.h>

enum { POINTS = 20, BELOW = 3 };

// A kernel whose branches ask for the number of a row of points, which nobody knows while compiling.
struct tree {
    struct nest_builder *b;
    jot_dtype dtype; // of the number
    nest_id x, y, z, number, row, point;
    nest_id root; // the first predicate
    int n_cases;
};

static nest_id constant(struct tree *t, int64_t value)
{
    int32_t narrow = (int32_t)value;
    return nest_const(t->b, t->dtype, t->dtype == JOT_I64 ? (void *)&value : (void *)&narrow);
}

// Puts for one of the cases, a loop for another, else an op; two results.
static void open_case(struct tree *t, nest_id out[2])
{
    int k = t->n_cases++;
    struct nest_index here = form(t->b, 0, 1, (struct nest_term[]){AXIS(t->point, 1)});
    nest_id v = nest_load(
        t->b, t->x, form(t->b, k % 7, 1, (struct nest_term[]){AXIS(t->point, 1)}), NEST_NONE);
    if (k % 5 == 1) {
        nest_id at = nest_seq_open(t->b, nest_axis(t->b, "time", 3), false, 1, &v);
        nest_id next = nest_op(t->b, IR_mul, JOT_F32, 2, (nest_id[]){at, v}, NULL);
        v = nest_close_values(t->b, 1, &next);
    }
    if (k % 5 == 2)
        nest_put(t->b, t->z, here, v, NEST_NONE);
    out[0] = nest_op(t->b, k % 2 ? IR_neg : IR_sin, JOT_F32, 1, &v, NULL);
    out[1] = k % 3 ? v : out[0];
}

// The cases of numbers from low to high, of which the compared ones are picked anyhow.
static void open_tree(struct tree *t, int64_t low, int64_t high, nest_id out[2])
{
    if (low >= high) {
        open_case(t, out);
        return;
    }
    static const enum ir_op ops[] = {IR_le, IR_lt, IR_eq, IR_ne};
    enum ir_op op = ops[nest_check_random() % 8 < 5 ? 0 : nest_check_random() % 4];
    int64_t at = low + (int64_t)(nest_check_random() % (uint64_t)(high - low));
    nest_id operands[2] = {t->number, constant(t, at + (op == IR_lt))};
    nest_id predicate = nest_op(t->b, op, JOT_BOOL, 2, operands, NULL);
    t->root = t->root == NEST_NONE ? predicate : t->root;
    nest_if_open(t->b, predicate);
    // Numbers beside the one that is asked for are a tree that may ask for it again.
    int64_t last = op == IR_eq ? low : op == IR_ne ? high - 1 : at;
    open_tree(t, low, last, out);
    nest_open_other(t->b, 2, out);
    open_tree(t, op == IR_eq ? low + 1 : op == IR_ne ? high : at + 1, high, out);
    nest_id results = nest_close_values(t->b, 2, out);
    out[0] = results;
    out[1] = results + 1;
}

// Of so many numbers, from -1 on, asked for by rows of numbers below and above them as well.
static struct nest *tree_of(jot_dtype dtype, int64_t numbers)
{
    static struct nest_builder b;
    b = nest_builder_make(nest_check_arena, "tree");
    int64_t rows = numbers + 2 * BELOW;
    struct tree t = {.b = &b, .dtype = dtype, .root = NEST_NONE};
    t.x = nest_buffer(&b, "x", JOT_F32, POINTS + 8, NEST_IN);
    nest_id w = nest_buffer(&b, "w", JOT_F32, POINTS * rows, NEST_OUT);
    t.y = nest_buffer(&b, "y", JOT_F32, POINTS * rows, NEST_OUT);
    t.z = nest_buffer(&b, "z", JOT_F32, POINTS, NEST_LOCAL);
    t.row = nest_axis(&b, "row", rows);
    t.point = nest_axis(&b, "point", POINTS);
    nest_open(&b, NEST_PAR, 1, &t.point);
    nest_seq_open(&b, t.row, false, 0, NULL);
    nest_id at = nest_index_value(
        &b, form(&b, -BELOW - 1, 1, (struct nest_term[]){AXIS(t.row, 1)}), JOT_I32);
    nest_id real = nest_op(&b, IR_convert, JOT_F32, 1, &at, NULL);
    t.number = nest_op(&b, IR_convert, dtype, 1, &real, NULL);
    nest_id zero = nest_const(&b, JOT_F32, &(float){0});
    nest_put(&b, t.z, form(&b, 0, 1, (struct nest_term[]){AXIS(t.point, 1)}), zero, NEST_NONE);
    nest_id out[2];
    open_tree(&t, -1, numbers - 2, out);
    struct nest_index to =
        form(&b, 0, 2, (struct nest_term[]){AXIS(t.row, POINTS), AXIS(t.point, 1)});
    nest_id z =
        nest_load(&b, t.z, form(&b, 0, 1, (struct nest_term[]){AXIS(t.point, 1)}), NEST_NONE);
    nest_put(&b, w, to, nest_op(&b, IR_add, JOT_F32, 2, (nest_id[]){out[0], z}, NULL),
             NEST_NONE);
    // Behind the tree, what it asked first is what it was.
    nest_id chosen = nest_op(&b, IR_select, JOT_F32, 3, (nest_id[]){t.root, out[1], z}, NULL);
    nest_put(&b, t.y, to, chosen, NEST_NONE);
    nest_close_values(&b, 0, NULL);
    nest_close(&b, 0, NULL);
    return b.nest;
}

static const int64_t sizes[] = {2, 5, 15, 16, 17, 30, 64, 66, 130, 300};

START_TEST(trees)
{
    nest_check_vary(_i);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sample_takes(i + (size_t)_i, 2))
            nest_check(tree_of(_i % 2 ? JOT_I64 : JOT_I32, sizes[i]));
    nest_check_end();
}
END_TEST

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

static bool has_jump(struct nest *n)
{
    struct strbuf text = strbuf_make(nest_check_arena);
    nest_program_print(&text, run_native_wrap(nest_check_arena, n));
    struct cg_request request = {.want = CG_WANT_LLVM, .program = text.text};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    ck_assert_msg(r.status == JOT_OK, "%s", r.message);
    bool has = strstr(r.llvm, "switch i32");
    r.release(&r);
    return has;
}

START_TEST(many_cases_are_a_jump)
{
    ck_assert(has_jump(tree_of(JOT_I32, 100)));
    ck_assert(!has_jump(tree_of(JOT_I32, 4)));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cases");
    TCase *c = tcase_create("cases");
    tcase_add_checked_fixture(c, nest_check_setup, nest_check_teardown);
    tcase_set_timeout(c, 200);
    tcase_add_loop_test(c, trees, 0, 8);
    tcase_add_test(c, many_cases_are_a_jump);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
