// SPDX-License-Identifier: Apache-2.0
// What the builder does to one layout op after another: the values stay, and one op is left. The
// identities of arithmetic are tested with the pass that uses them (harness/identities).
#include "eval_support.h"
#include "ir/indexing.h"

// Two ops in a row on x f32[2,3,4], its elements numbered.
typedef ir_id pair(struct ir_builder *b, ir_id x, int which);

static const int64_t cube[] = {2, 3, 4};

static void check_pair(pair *build, int which)
{
    float numbers[24];
    for (int i = 0; i < 24; i++)
        numbers[i] = (float)i;
    struct ir_tensor x = tensor(JOT_F32, 3, cube, numbers),
                     out[2] = {{.data = NULL}, {.data = NULL}};
    for (int simple = 0; simple < 2; simple++) {
        struct ir_builder b =
            ir_builder_make(module, "pair", simple ? IR_BUILD_IDENTITIES : IR_BUILD_PLAIN);
        ir_id in = ir_param(&b, x.type), v = build(&b, in, which);
        ck_assert_msg(v != IR_NONE, "%s", b.message);
        ir_output(&b, v);
        struct ir_graph *g = ir_finish(&b);
        ck_assert_ptr_nonnull(g);
        if (simple && v != in)
            ck_assert_int_eq(ir_operand(g, ir_node_of(g, v), 0), in);
        ck_assert_int_eq(ir_eval(arena, g, &x, &out[simple]), JOT_OK);
    }
    ck_assert_msg(ir_type_equal(out[0].type, out[1].type), "pair %d: type", which);
    ck_assert_msg(!memcmp(out[0].data, out[1].data,
                          (size_t)ir_count(module, out[0].type) * sizeof(float)),
                  "pair %d: values", which);
}

static const int64_t permutations[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                           {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

static ir_id two_transposes(struct ir_builder *b, ir_id x, int which)
{
    x = ir_transpose(b, x, permutations[which % 6]);
    return ir_transpose(b, x, permutations[which / 6]);
}

// Leaves out another axis of the result each time.
static ir_id broadcast(struct ir_builder *b, ir_id x, int missing)
{
    struct ir_type t = ir_type_in(b, x);
    int64_t dims[IR_MAX_RANK] = {0}, axes[IR_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        axes[i] = i + (i >= missing);
        dims[axes[i]] = ir_dims(module, t)[i];
    }
    dims[missing] = 5;
    return ir_broadcast_in_dim(b, x, t.rank + 1, dims, axes);
}

static ir_id two_broadcasts(struct ir_builder *b, ir_id x, int which)
{
    return broadcast(b, broadcast(b, x, which % 4), which / 4);
}

static ir_id two_reshapes(struct ir_builder *b, ir_id x, int which)
{
    static const int64_t shapes[][3] = {{2, 3, 4}, {4, 3, 2}, {1, 24, 1}, {6, 2, 2}};
    x = ir_reshape(b, x, 3, shapes[which % 4]);
    return ir_reshape(b, x, 3, shapes[which / 4]);
}

// An axis of one element, which leaves, and one that repeats, which stays.
START_TEST(test_added_axes)
{
    struct ir_builder b = ir_builder_make(module, "axes", IR_BUILD_IDENTITIES);
    ir_id x = ir_param(&b, ir_type_make(module, JOT_F32, 3, cube));
    const int64_t one[] = {2, 1, 3, 4}, two[] = {2, 2, 3, 4}, axes[] = {0, 2, 3}, flat[] = {48};
    ck_assert_int_eq(ir_reshape(&b, ir_broadcast_in_dim(&b, x, 4, one, axes), 3, cube), x);
    ir_id y = ir_reshape(&b, ir_broadcast_in_dim(&b, x, 4, two, axes), 1, flat);
    ck_assert_int_eq(ir_node_of(b.graph, ir_operand(b.graph, ir_node_of(b.graph, y), 0))->op,
                     IR_broadcast_in_dim);
}
END_TEST

START_TEST(test_transposes) { check_pair(two_transposes, _i); }
END_TEST

START_TEST(test_broadcasts) { check_pair(two_broadcasts, _i); }
END_TEST

START_TEST(test_reshapes) { check_pair(two_reshapes, _i); }
END_TEST

START_TEST(test_ops_that_do_nothing)
{
    struct ir_builder b = ir_builder_make(module, "nothing", IR_BUILD_IDENTITIES);
    ir_id x = ir_param(&b, ir_type_make(module, JOT_F32, 3, cube));
    const int64_t zeros[3] = {0}, one_less[] = {2, 3, 3};
    ck_assert_int_eq(ir_slice(&b, x, zeros, cube, NULL), x);
    ck_assert_int_ne(ir_slice(&b, x, zeros, one_less, NULL), x);
    ck_assert_int_ne(ir_slice(&b, x, zeros, cube, (int64_t[]){1, 2, 1}), x);
    ck_assert_int_eq(ir_concatenate(&b, 1, &x, 1), x);
    ir_id none = ir_slice(&b, x, zeros, (int64_t[]){2, 0, 4}, NULL);
    ck_assert_int_eq(ir_concatenate(&b, 3, (ir_id[]){none, x, none}, 1), x);
    ck_assert_int_ne(ir_concatenate(&b, 2, (ir_id[]){none, none}, 1), x);
    ck_assert_int_ne(ir_concatenate(&b, 2, (ir_id[]){x, x}, 1), x);
    ck_assert_int_eq(ir_convert(&b, x, JOT_F32), x);
    ck_assert_int_ne(ir_convert(&b, x, JOT_F64), x);
}
END_TEST

// Starts that are numbers, and updates of everything or of nothing.
START_TEST(test_known_indices)
{
    struct ir_builder b = ir_builder_make(module, "indices", IR_BUILD_IDENTITIES);
    ir_id x = ir_param(&b, ir_type_make(module, JOT_F32, 3, cube));
    ir_id i = ir_param(&b, ir_type_make(module, JOT_I32, 0, NULL));
    ir_id far = ir_scalar_int(&b, JOT_I64, 100), before = ir_scalar_int(&b, JOT_I32, -5);
    const int64_t part[] = {2, 1, 3}, starts[] = {0, 2, 0}, limits[] = {2, 3, 3};
    ir_id y = ir_dynamic_slice(&b, x, (ir_id[]){i, far, before}, part);
    const struct ir_node *n = ir_node_of(b.graph, y);
    ck_assert_int_eq(n->op, IR_slice);
    int count;
    ck_assert_mem_eq(ir_attr_ints(n->attrs, IR_KEY_starts, &count), starts, sizeof starts);
    ck_assert_mem_eq(ir_attr_ints(n->attrs, IR_KEY_limits, &count), limits, sizeof limits);
    ck_assert_int_eq(ir_dynamic_slice(&b, x, (ir_id[]){i, i, i}, cube), x);
    y = ir_dynamic_slice(&b, x, (ir_id[]){far, i, far}, part);
    ck_assert_int_eq(ir_node_of(b.graph, y)->op, IR_dynamic_slice);
    ck_assert_int_eq(ir_dynamic_update_slice(&b, x, x, (ir_id[]){i, i, i}), x);
    ck_assert_int_ne(ir_dynamic_update_slice(&b, x, y, (ir_id[]){i, i, i}), x);
}
END_TEST

// One window at numbers, inside of x and not, in each mode.
static ir_id one_window(struct ir_builder *b, ir_id x, int which)
{
    static const int32_t indices[4][2] = {{1, 2}, {0, 1}, {-1, 2}, {1, 4}};
    const int64_t n = 2, sizes[] = {1, 3, 1}, axes[] = {0, 2}, offsets[] = {0, 1, 2};
    bool collapses = which % 4 == 0;
    struct ir_gather g = {.n_offset = collapses ? 1 : 3,
                          .offset_dims = offsets,
                          .n_collapsed = collapses ? 2 : 0,
                          .collapsed_dims = axes,
                          .n_map = 2,
                          .index_map = axes,
                          .sizes = sizes,
                          .mode = (enum ir_index_mode)(which / 4)};
    ir_id at = ir_const(b, ir_type_make(module, JOT_I32, 1, &n), indices[which % 4]);
    ir_id y = ir_gather(b, x, at, &g);
    if (b->flags && which % 4 < 2)
        ck_assert_int_ne(ir_node_of(b->graph, y)->op, IR_gather);
    return collapses ? ir_reshape(b, y, 3, sizes) : y;
}

START_TEST(test_windows_at_numbers) { check_pair(one_window, _i); }
END_TEST

static ir_id all_true(struct ir_builder *b, int64_t n)
{
    return ir_full(b, ir_type_make(module, JOT_BOOL, 1, &n), 1);
}

// x without element 2.
static ir_id without_two(struct ir_builder *b, ir_id x)
{
    const int64_t one = 1, axis = 0;
    const int32_t two = 2;
    struct ir_gather g = {.n_collapsed = 1,
                          .collapsed_dims = &axis,
                          .n_map = 1,
                          .index_map = &axis,
                          .mode = IR_MODE_DROP};
    ir_id at = ir_const(b, ir_type_make(module, JOT_I32, 1, &one), &two);
    return ir_scatter(b, IR_scatter, x, at, ir_scalar(b, JOT_BOOL, 0), &g);
}

static enum ir_op op_of(const struct ir_builder *b, ir_id v)
{
    return (enum ir_op)ir_node_of(b->graph, v)->op;
}

// Masks of constants: updates make arrays, changes of index stay what they are, and what is the same
// everywhere is one element.
START_TEST(test_masks_of_constants)
{
    struct ir_builder b = ir_builder_make(module, "masks", IR_BUILD_FOLD);
    static const uint8_t expected[] = {1, 1, 0, 1, 1};
    ir_id x = without_two(&b, all_true(&b, 5));
    ck_assert_int_eq(op_of(&b, x), IR_const);
    ck_assert_mem_eq(ir_field_find(ir_node_of(b.graph, x)->attrs, IR_KEY_data)->bytes, expected,
                     sizeof expected);
    ck_assert_int_eq(op_of(&b, without_two(&b, all_true(&b, 5000))), IR_scatter);
    const int64_t low = 3, high = 1, none = 0, at[] = {3, 5, 2};
    ir_id y = ir_pad(&b, all_true(&b, 2), ir_scalar(&b, JOT_BOOL, 0), &low, &high, &none);
    ck_assert_int_eq(op_of(&b, y), IR_pad);
    ck_assert_int_eq(op_of(&b, ir_slice(&b, y, &at[0], &at[1], NULL)), IR_broadcast_in_dim);
    ck_assert_int_eq(op_of(&b, ir_slice(&b, y, &at[2], &at[1], NULL)), IR_slice);
    ck_assert_int_eq(op_of(&b, ir_not(&b, ir_or(&b, y, ir_not(&b, y)))), IR_broadcast_in_dim);
}
END_TEST

// Counters in one type, shifted or in another: iota * factor + first, by rows.
struct counted {
    int64_t n, factor, first, shift;
};

static const struct counted counted[] = {
    {5, 1, 0, 0},
    {5, 1, 0, 2},
    {5, 1, 0, 3},
    {127, 1, 0, 7},
    {128, 1, 0, 7},
    {129, 1, 0, 7},
    {256, 1, 0, 8},
    {257, 1, 0, 8},
    {300, 2, 0, 8},
    {300, 3, 5, 12},
    {5, -1, 0, 3},
    {5, 1, -2, 1},
    {5, 1, 0, 31},
    {5, 1, 0, 32},
    {5, 1, 0, 33},
    {5, 1, 0, 64},
    {5, 1, 0, -1},
    {0, 1, 0, 1},
    {5, 70000, 100, 16},
    {5, 1, 65530, 16},
    {5, 0, 255, 8},
    {5, 0, 256, 8},
    {5, INT64_C(1) << 30, 0, 32},
    {5, INT64_C(1) << 62, 0, 63},
};
enum { N_COUNTED = sizeof counted / sizeof *counted };

static const jot_dtype integers[] = {JOT_I8, JOT_I16, JOT_I32, JOT_I64,
                                     JOT_U8, JOT_U16, JOT_U32, JOT_U64};

// A number everywhere.
static ir_id filled(struct ir_builder *b, ir_id v, int64_t x)
{
    struct ir_type t = ir_type_in(b, v);
    return ir_broadcast_in_dim(b, ir_scalar_int(b, ir_dtype(t), x), t.rank, ir_dims(module, t),
                               NULL);
}

static ir_id count(struct ir_builder *b, const struct counted *c, jot_dtype d)
{
    const int64_t dims[] = {c->n, 2}, row = 0;
    ir_id number = ir_iota(b, ir_type_make(module, d, 1, dims), 0);
    ir_id x = ir_mul(b, number, filled(b, number, c->factor));
    x = ir_add(b, x, filled(b, number, c->first));
    return ir_broadcast_in_dim(b, x, 2, dims, &row);
}

static ir_id shifted(struct ir_builder *b, const struct counted *c, enum ir_op op, jot_dtype d)
{
    ir_id x = count(b, c, d);
    return ir_build(b, op, 2, (ir_id[]){x, filled(b, x, c->shift)}, NULL);
}

static struct ir_tensor value_of(struct ir_builder *b, ir_id v)
{
    struct ir_tensor out = {.data = NULL};
    ck_assert_msg(v != IR_NONE, "%s", b->message);
    ir_output(b, v);
    struct ir_graph *g = ir_finish(b);
    ck_assert_int_eq(ir_eval(arena, g, NULL, &out), JOT_OK);
    return out;
}

START_TEST(test_counters)
{
    const struct counted *c = &counted[_i];
    for (int from = 0; from < 8; from++)
        for (int to = 0; to < 10; to++) {
            struct ir_tensor out[2];
            for (int simple = 0; simple < 2; simple++) {
                struct ir_builder b = ir_builder_make(
                    module, "count", simple ? IR_BUILD_IDENTITIES : IR_BUILD_PLAIN);
                out[simple] = value_of(
                    &b, to < 8 ? ir_convert(&b, count(&b, c, integers[from]), integers[to])
                               : shifted(&b, c, to == 8 ? IR_shr_logical : IR_shr_arith,
                                         integers[from]));
            }
            ck_assert_mem_eq(out[0].data, out[1].data,
                             (size_t)c->n * 2 * jot_dtype_size(ir_dtype(out[0].type)));
        }
}
END_TEST

// As JAX counts random bits: the words of a counter of 64 bits.
START_TEST(test_words_of_counters)
{
    struct ir_builder b = ir_builder_make(module, "words", IR_BUILD_IDENTITIES);
    const struct counted small = {1000, 4, 3, 32};
    ir_id low = ir_convert(&b, count(&b, &small, JOT_U64), JOT_U32);
    ir_id high = shifted(&b, &small, IR_shr_logical, JOT_U64);
    ck_assert_int_eq(op_of(&b, high), IR_broadcast_in_dim);
    ck_assert_int_eq(op_of(&b, low), IR_broadcast_in_dim);
    ir_id x = ir_operand(b.graph, ir_node_of(b.graph, low), 0);
    ck_assert_int_eq(op_of(&b, x), IR_add);
    ck_assert_int_eq(ir_dtype_of(b.graph, x), JOT_U32);
    const struct counted large = {1000, INT64_C(1) << 32, 0, 32};
    ck_assert_int_eq(op_of(&b, shifted(&b, &large, IR_shr_logical, JOT_U64)), IR_shr_logical);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, test_counters, 0, N_COUNTED);
    tcase_add_test(t, test_words_of_counters);
    tcase_add_loop_test(t, test_transposes, 0, 36);
    tcase_add_loop_test(t, test_broadcasts, 0, 20);
    tcase_add_loop_test(t, test_reshapes, 0, 16);
    tcase_add_test(t, test_added_axes);
    tcase_add_test(t, test_ops_that_do_nothing);
    tcase_add_test(t, test_known_indices);
    tcase_add_loop_test(t, test_windows_at_numbers, 0, 16);
    tcase_add_test(t, test_masks_of_constants);
}

int main(void) { return run_suite("rewrite", add_tests); }
