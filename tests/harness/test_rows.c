// SPDX-License-Identifier: Apache-2.0
// Rows of every class beside those of the op table (rows/ir/ops.def), which the libraries are made
// with for this test: what a row alone gives.  Alone, mapped, in loops, mapped loops and derived they
// have the evaluator's bits; what a row does not say how to compute is refused by its name.
#include "harness/native.h"
#include "passes/pass_support.h"
#include "support/sample.h"

#include "ir/control.h"
#include "ir/indexing.h"

static struct strbuf report;
static struct native native;
static uint64_t state;

static void begin(void)
{
    report = strbuf_make(module->arena);
    native = native_make(module, &report);
    state = seed;
}

static void end(void)
{
    int failures = native_finish(&native);
    ck_assert_msg(failures == 0, "seed %" PRIu64 ": %d failures\n%.6000s", seed, failures,
                  report.text);
}

static void run(const char *how, enum ir_op op, uint32_t f)
{
    const char *domain = ir_op_get(op)->domain;
    f = pass_simplify(module, pass_inline(module, f, 100000));
    const struct ir_graph *g = graph(f);
    struct ir_tensor *in = arena_array(module->arena, struct ir_tensor, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        in[i] = opcase_draw(module, ir_type_of(g, i), strcmp(domain, "NONE") ? domain : "ANY",
                            &state);
    struct strbuf what = strbuf_make(module->arena);
    strbuf_printf(&what, "%s %s", ir_op_get(op)->name, how);
    bool steps = opcase_random(&state) < 0.3;
    native_add(&native, what.text, f, in,
               &(struct native_how){.steps = steps, .interpret = opcase_random(&state) < 0.3});
}

static uint32_t mapped(uint32_t f)
{
    uint32_t y;
    bool all[4] = {true, true, true, true};
    require(pass_vmap(module, f, all, 3, &y, NULL));
    return y;
}

// f of each row of what it takes, and a count.
static uint32_t looped(uint32_t f)
{
    const struct ir_graph *g = graph(f);
    struct ir_builder body = ir_builder_make(module, "body", 0);
    struct ir_builder b = ir_builder_make(module, "loop", 0);
    ir_id in[5], rows[5], out[2];
    in[0] = ir_param(&body, type_of_dims(JOT_I32, 0, NULL));
    for (uint32_t i = 0; i < g->n_params; i++) {
        struct ir_type t = ir_type_of(g, i);
        int64_t dims[IR_MAX_RANK] = {2};
        memcpy(dims + 1, ir_dims(module, t), t.rank * sizeof *dims);
        in[i + 1] = ir_param(&body, t);
        rows[i + 1] = ir_param(&b, type_of_dims(ir_dtype(t), t.rank + 1, dims));
    }
    ir_inline(&body, g, in + 1, out);
    ir_output(&body, ir_add(&body, in[0], ir_scalar_int(&body, JOT_I32, 1)));
    ir_output(&body, out[0]);
    struct ir_scan s = {.body = ir_finish_function(&body), .n_carry = 1, .length = 2};
    rows[0] = ir_scalar_int(&b, JOT_I32, 0);
    ir_output(&b, ir_scan(&b, &s, (int)g->n_params + 1, rows) + 1);
    return done(&b);
}

static bool is_derivable(enum ir_op op, const struct ir_graph *g)
{
    return strcmp(ir_op_get(op)->jvp, "none") && strcmp(ir_op_get(op)->jvp, "zero") &&
           dtype_is_inexact(ir_dtype_of(g, 0));
}

static void check(enum ir_op op, struct ir_builder *b, ir_id y)
{
    ir_output(b, y);
    uint32_t f = done(b), derived;
    const struct ir_graph *g = graph(f);
    bool floats[] = {true, true, false};
    run("alone", op, f);
    run("mapped", op, mapped(f));
    run("in a loop", op, looped(f));
    run("in a mapped loop", op, mapped(looped(f)));
    if (!is_derivable(op, g))
        return;
    require(pass_jvp(module, f, floats, &derived, NULL));
    run("forward", op, derived);
    require(pass_vjp(module, f, floats, &derived));
    run("backward", op, derived);
}

// -- By class ---------------------------------------------------------------------------------

static struct ir_builder part(void) { return ir_builder_make(module, "rows", 0); }

static ir_id param(struct ir_builder *b, jot_dtype d, int64_t rows, int64_t columns)
{
    return ir_param(b, type_of_dims(d, 2, (int64_t[]){rows, columns}));
}

// Folds of one, of so few that they are written out, and of several accumulators and blocks.
static const int64_t lengths[] = {1, 3, 70, 700};

static void check_fold(enum ir_op op, jot_dtype d, int64_t length, int axis)
{
    struct ir_builder b = part();
    ir_id x = axis ? param(&b, d, 4, length) : param(&b, d, length, 4);
    if (ir_op_class(op) == IR_CLASS_REDUCE)
        check(op, &b, ir_reduce(&b, op, x, 1, (int64_t[]){axis}));
    else if (ir_op_class(op) == IR_CLASS_ARG)
        check(op, &b, ir_arg(&b, op, x, axis, JOT_I32));
    else
        check(op, &b, ir_cumulative(&b, op, x, axis, length % 2));
}

static void check_map(enum ir_op op, jot_dtype d)
{
    struct ir_builder b = part();
    ir_id in[2];
    for (int i = 0; i < ir_op_get(op)->in; i++)
        in[i] = param(&b, d, 5, 7);
    check(op, &b, ir_build(&b, op, ir_op_get(op)->in, in, NULL));
}

// Rows of three numbers at places in the first axis.
static struct ir_gather rows_of_3(enum ir_index_mode mode)
{
    static const int64_t zero = 0, one = 1, sizes[] = {1, 3};
    return (struct ir_gather){.n_offset = 1,
                              .offset_dims = &one,
                              .n_collapsed = 1,
                              .collapsed_dims = &zero,
                              .n_map = 1,
                              .index_map = &zero,
                              .sizes = sizes,
                              .mode = mode};
}

// Updates of rows of which some are the same, and some outside.
static void check_update(enum ir_op op, jot_dtype d, int64_t n)
{
    static const int32_t places[] = {3, 1, 3, 7, 0, 1, -1, 3};
    struct ir_gather g = rows_of_3(IR_MODE_DROP);
    struct ir_builder b = part();
    ir_id x = param(&b, d, 5, 3), u = param(&b, d, n, 3);
    ir_id i = ir_const(&b, type_of_dims(JOT_I32, 2, (int64_t[]){n, 1}), places);
    check(op, &b, ir_scatter(&b, op, x, i, u, &g));
}

static void check_contract(enum ir_op op, jot_dtype d, int64_t length)
{
    struct ir_builder b = part(), other = part();
    ir_id in[] = {param(&b, d, 4, length), param(&b, d, length, 3)};
    static const int64_t zero = 0, one = 1;
    struct ir_dot dot = {.n_contract = 1, .lhs_contract = &one, .rhs_contract = &zero};
    ir_id x = param(&other, d, 4, length), y = param(&other, d, length, 3);
    ir_id v = ir_dot_general(&other, x, y, &dot);
    check(op, &b, ir_build(&b, op, 2, in, ir_node_of(other.graph, v)->attrs));
}

static void check_layout(enum ir_op op, jot_dtype d)
{
    const int64_t axis = 1;
    struct ir_builder b = part();
    ir_id x = param(&b, d, 5, 7);
    const struct ir_attrs *attrs =
        op == IR_backwards ? ir_attrs(module, IR_INTS(axes, 1, &axis))
                           : ir_attrs(module, IR_INT(axis, 0), IR_INT(along, 1),
                                      IR_INT(offset, -3), IR_INT(step, 1), IR_INT(length, 6));
    check(op, &b, ir_build(&b, op, 1, &x, attrs));
}

static void check_call(enum ir_op op, jot_dtype d)
{
    struct ir_builder b = part(), body = part();
    ir_output(&body, ir_sin(&body, param(&body, d, 5, 7)));
    uint32_t f = done(&body);
    ir_id x = param(&b, d, 5, 7);
    check(op, &b, ir_call(&b, op, 1, &f, 1, &x));
}

static void check_row(enum ir_op op, jot_dtype d)
{
    switch (ir_op_class(op)) {
    case IR_CLASS_MAP:
    case IR_CLASS_HINT:
        check_map(op, d);
        return;
    case IR_CLASS_REDUCE:
    case IR_CLASS_ARG:
    case IR_CLASS_CUMULATIVE:
        for (int i = 0; i < 8; i++)
            if (sample_takes(hash_combine(seed, (uint64_t)i + op * 100u + d), 3))
                check_fold(op, d, lengths[i / 2], i % 2);
        return;
    case IR_CLASS_UPDATE:
        check_update(op, d, 1);
        check_update(op, d, 8);
        return;
    case IR_CLASS_CONTRACT:
        check_contract(op, d, 3);
        check_contract(op, d, 70);
        return;
    case IR_CLASS_LAYOUT:
        if (ir_op_get(op)->index)
            check_layout(op, d);
        return;
    case IR_CLASS_CALL:
        if (dtype_is_inexact(d))
            check_call(op, d);
        return;
    default:
        return; // refused
    }
}

START_TEST(rows_are_enough)
{
    static const jot_dtype dtypes[] = {JOT_BOOL, JOT_I32, JOT_U8,  JOT_F32,
                                       JOT_F64,  JOT_F16, JOT_C64, JOT_I64};
    begin();
    for (int op = IR_gray; op < IR_OP_COUNT; op++)
        if (opcase_takes((enum ir_op)op, dtypes[_i]))
            check_row((enum ir_op)op, dtypes[_i]);
    end();
}
END_TEST

// The or of two rows, by a loop that sees one of them as a lane.
START_TEST(unions_in_a_loop)
{
    uint32_t f =
        parse("jot ir 1\n"
              "function @0 body(%x: i32[3], %i: i32[], %a: i32[]) {\n"
              "  %r = reduce_union %x {axes=[0]} : i32[]\n"
              "  %s = mul %r, %i : i32[]\n  %b = or %a, %s : i32[]\n"
              "  %one = const {data=1} : i32[]\n  %j = add %i, %one : i32[]\n"
              "  return %j, %b\n}\n"
              "function @1 f(%x: i32[3]) {\n"
              "  %i = const {data=0} : i32[]\n  %a = const {data=0} : i32[]\n"
              "  %j, %b = scan %x, %i, %a {reverse=0, length=2, n_consts=1, n_carry=2, "
              "functions=[@0]} : i32[], i32[]\n  return %b\n}\n");
    int32_t rows[] = {3, 6, 12, 1, 3, 2};
    uint32_t both;
    require(pass_vmap(module, f, (const bool[]){true}, 2, &both, NULL));
    struct ir_tensor in = {type_of_dims(JOT_I32, 2, (int64_t[]){2, 3}), rows};
    const int32_t *y = evaluate(both, &in)[0].data;
    ck_assert_int_eq(y[0], 15);
    ck_assert_int_eq(y[1], 3);
    begin();
    native_add(&native, "unions", pass_simplify(module, both), &in,
               &(struct native_how){.interpret = true});
    native_add(&native, "unions", pass_simplify(module, both), &in,
               &(struct native_how){.steps = true});
    end();
}
END_TEST

// -- What is refused --------------------------------------------------------------------------

// The words of the table agree: a pair has the scalar of its row, and takes what the row takes.
START_TEST(words_fit)
{
    for (int i = 0; i < IR_OP_COUNT; i++) {
        enum ir_op op = (enum ir_op)i;
        const struct ir_op_info *info = ir_op_get(op);
        bool folds = info->op_class == IR_CLASS_REDUCE || info->op_class == IR_CLASS_ARG ||
                     info->op_class == IR_CLASS_CUMULATIVE ||
                     info->op_class == IR_CLASS_CONTRACT;
        ck_assert_msg(!folds || (ir_is_fold(op) && info->combiner != IR_OP_COUNT),
                      "%s has no fold", info->name);
        bool moves = info->op_class == IR_CLASS_LAYOUT && info->in && op != IR_reshape;
        ck_assert_msg(!moves || info->index || op == IR_turn,
                      "%s does not say where it reads: INDEX(...)", info->name);
        for (int d = 0; info->pair != IR_OP_COUNT && d < DTYPE_COUNT; d++) {
            bool is_of_bools = d == JOT_BOOL && (info->pair == IR_max || info->pair == IR_min);
            ck_assert_msg(!opcase_takes(op, (jot_dtype)d) || is_of_bools ||
                              opcase_takes(info->pair, (jot_dtype)d),
                          "%s does not take what %s does", ir_op_get(info->pair)->name,
                          info->name);
        }
    }
}
END_TEST

static void check_refused(enum ir_op op, int n_in, const ir_id *in, struct ir_builder *b,
                          const struct ir_attrs *attrs)
{
    struct strbuf want = strbuf_make(module->arena);
    struct nest_program *p;
    ir_id v = ir_build(b, op, n_in, in, attrs);
    ck_assert_msg(b->status == JOT_OK, "%s", jot_error_message());
    if (ir_op_get(op)->out)
        ir_output(b, v);
    else
        ir_output(b, in[0]);
    uint32_t f = done(b);
    const struct ir_graph *g = graph(f);
    struct ir_tensor *of = arena_array(module->arena, struct ir_tensor, g->n_params + 1),
                     out[3];
    for (uint32_t i = 0; i < g->n_params; i++)
        of[i] = opcase_draw(module, ir_type_of(g, i), "ANY", &state);
    ck_assert_int_ne(ir_eval(module->arena, g, of, out), JOT_OK);
    strbuf_printf(&want, "%s has no value of its own", ir_op_get(op)->name);
    ck_assert_str_eq(jot_error_message(), want.text);
    strbuf_printf(&want, "!schedule: nothing computes %s", ir_op_get(op)->name);
    ck_assert_int_ne(pass_schedule(module->arena, graph(pass_simplify(module, f)), NULL, &p),
                     JOT_OK);
    ck_assert_str_eq(jot_error_message(), strchr(want.text, '!') + 1);
}

START_TEST(others_are_refused)
{
    state = seed;
    struct ir_builder b = part();
    ir_id x = param(&b, JOT_F32, 4, 3);
    static const int64_t zero = 0, one = 1;
    struct ir_module *m = module;
    check_refused(IR_turn, 1, &x, &b, ir_attrs(m, IR_INTS(axes, 1, &zero)));

    b = part();
    ir_id in[] = {param(&b, JOT_F32, 4, 3), param(&b, JOT_I32, 2, 1)};
    struct ir_gather g = rows_of_3(IR_MODE_CLIP);
    struct ir_builder other = part();
    ir_id v = ir_gather(&other, param(&other, JOT_F32, 4, 3), param(&other, JOT_I32, 2, 1), &g);
    check_refused(IR_fetch, 2, in, &b, ir_node_of(other.graph, v)->attrs);

    b = part(), other = part();
    x = param(&b, JOT_F32, 4, 3);
    ir_id y = param(&other, JOT_F32, 4, 3);
    v = ir_sort(&other, 1, &y, 1);
    check_refused(IR_arrange, 1, &x, &b, ir_node_of(other.graph, v)->attrs);

    b = part(), other = part();
    struct ir_builder body = part();
    ir_output(&body, ir_sin(&body, param(&body, JOT_F32, 4, 3)));
    x = param(&b, JOT_F32, 4, 3), y = param(&other, JOT_F32, 4, 3);
    v = ir_scan(&other, &(struct ir_scan){.body = done(&body), .n_carry = 1, .length = 3}, 1,
                &y);
    check_refused(IR_repeat, 1, &x, &b, ir_node_of(other.graph, v)->attrs);

    b = part(), other = part();
    x = param(&b, JOT_BOOL, 4, 3), y = param(&other, JOT_BOOL, 4, 3);
    ir_check(&other, y, 0, NULL, "holds", "here");
    check_refused(IR_watch, 1, &x, &b, vec_last(&other.graph->nodes).attrs);

    b = part();
    check_refused(IR_argument, 0, NULL, &b,
                  ir_attrs(m, IR_INT(dtype, JOT_F32), IR_INTS(dims, 1, &one)));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, words_fit);
    tcase_add_loop_test(t, rows_are_enough, 0, 8);
    tcase_add_test(t, unions_in_a_loop);
    tcase_add_test(t, others_are_refused);
}

int main(void) { return support_run("rows", add_tests); }
