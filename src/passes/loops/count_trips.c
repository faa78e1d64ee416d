// SPDX-License-Identifier: Apache-2.0
// Bounded whiles as whiles that count their trips.
//
//     x = while {test, body, max_trips=9} [a | x0]
// becomes
//     x, k = while {test', body'} [a | x0, 0]     where  test': test and k < 9,  body': body, k + 1
//
// A count has the lanes of the test.  For what follows a bound is then nothing special.  After all
// differentiation, which wants to know bounds.
#include "ir/control.h"
#include "passes/body.h"

// (consts, carries, count) -> what holds of the test and of the count
static uint32_t counted_test(struct ir_module *m, const struct ir_while *l,
                             struct ir_type count)
{
    struct body w = body_of(m, l->test);
    body_take_all(&w);
    ir_id k = ir_param(&w.b, count);
    body_run(&w);
    ir_output(&w.b, ir_and(&w.b, w.out[0],
                           ir_lt(&w.b, k, ir_scalar_int(&w.b, JOT_I64, l->max_trips))));
    return ir_finish_function(&w.b);
}

static uint32_t counted_body(struct ir_module *m, const struct ir_while *l,
                             struct ir_type count)
{
    struct body w = body_of(m, l->body);
    body_take_all(&w);
    ir_id k = ir_param(&w.b, count);
    body_run(&w);
    for (uint32_t i = 0; i < w.f->outputs.count; i++)
        body_give(&w, i);
    ir_output(&w.b, ir_add(&w.b, k, ir_scalar_int(&w.b, JOT_I64, 1)));
    return ir_finish_function(&w.b);
}

// The bounded while n over the operands in, which have room for one more.
static ir_id count_while(struct ir_builder *b, const struct ir_node *n, const uint32_t *bodies,
                         ir_id *in)
{
    struct ir_module *m = b->module;
    struct ir_while l = ir_while_of(n);
    l.test = bodies[0];
    l.body = bodies[1];
    struct ir_type count = ir_type_with(body_result(ir_function(m, l.test), 0), JOT_I64);
    uint32_t test = counted_test(m, &l, count);
    l.body = counted_body(m, &l, count);
    l.test = test;
    l.max_trips = IR_NO_BOUND;
    in[n->n_in] = ir_zeros(b, count);
    return ir_while(b, &l, (int)n->n_in + 1, in);
}

static void copy_counted(struct ir_builder *b, const struct ir_graph *g,
                         const struct ir_node *n, ir_id *map)
{
    struct ir_module *m = b->module;
    if (!ir_has_bodies((enum ir_op)n->op)) {
        pass_copy_node(b, g, n, map);
        return;
    }
    uint32_t *made = body_rewrite_all(m, n, pass_count_trips);
    ir_id *in = body_operands(m, g, n, map);
    b->where = n->where;
    ir_id y = n->op == IR_while && ir_while_of(n).max_trips != IR_NO_BOUND
                  ? count_while(b, n, made, in)
                  : ir_build(b, (enum ir_op)n->op, (int)n->n_in, in,
                             ir_with_functions(m, n->attrs, made));
    body_set_results(n, y, map);
}

uint32_t pass_count_trips(struct ir_module *m, uint32_t f)
{
    return body_rewrite(m, f, MEMO_COUNT_TRIPS, copy_counted);
}
