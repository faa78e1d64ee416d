// SPDX-License-Identifier: Apache-2.0
// Cotangents of loops.
//
//     dc, dy = scan {body} [r, da | dc0 | s, dx]
// becomes, from the last trip to the first,
//     ct_dc0, ct_da, ct_dx = scan {body'} [r | ct_dc, 0 | s, ct_dy]
//
// where r and s are known and a is a const: its cotangents are summed in a carry, or when trips
// are lanes behind the loop.  Every carry is linear (unzip.c); one that starts with a known
// value starts with zeros.
#include "passes/rules/rules.h"

#include "base/status.h"
#include "ir/control.h"
#include "passes/body.h"

struct backward {
    struct transpose *c;
    struct ir_module *m;
    struct ir_scan scan;
    const struct ir_graph *body;
    uint32_t n_consts, first_row, n_in; // operands
    uint32_t n_carry, n_out;            // results
    bool *linear;                       // by operand: what the body is linear in
    bool *ct;                           // by result: those with a cotangent in some trip
    bool *nonzero;                      // by operand: cotangents that a trip gives
    bool *handed;                       // by operand: consts whose sum a trip goes on with
    uint32_t f;                         // the transposed body
};

static struct backward make_backward(struct transpose *c)
{
    struct ir_scan scan = ir_scan_of(c->n);
    struct ir_module *m = c->b->module;
    struct backward s = {.c = c,
                         .m = m,
                         .scan = scan,
                         .body = ir_function(m, scan.body),
                         .n_consts = (uint32_t)scan.n_consts,
                         .first_row = (uint32_t)(scan.n_consts + scan.n_carry),
                         .n_in = c->n->n_in,
                         .n_carry = (uint32_t)scan.n_carry,
                         .n_out = c->n->n_out,
                         .linear = body_mask(m, c->n->n_in),
                         .ct = body_mask(m, c->n->n_out),
                         .nonzero = body_mask(m, c->n->n_in),
                         .handed = body_mask(m, c->n->n_in)};
    for (uint32_t i = 0; i < s.n_in; i++)
        s.linear[i] = transpose_is_linear(c, i) || (i >= s.n_consts && i < s.first_row);
    for (uint32_t i = 0; i < s.n_out; i++)
        s.ct[i] = c->ct[i] != IR_NONE;
    return s;
}

// The index of input i of the body, which is known, among the parameters of its transpose.
static uint32_t known_index(const struct backward *s, uint32_t i)
{
    return body_count(s->linear, false, 0, i);
}

// The index of the cotangent of result i of the body.
static uint32_t ct_index(const struct backward *s, uint32_t i)
{
    return body_count(s->linear, false, 0, s->n_in) + body_count(s->ct, true, 0, i);
}

// The index of the sum of input i, which is handed over.
static uint32_t sum_index(const struct backward *s, uint32_t i)
{
    return ct_index(s, s->n_out) + body_count(s->handed, true, 0, i);
}

// (known consts | cotangents of carries, sums for consts | known rows, cotangents of rows)
//     -> (cotangents of carries, sums | cotangents of rows)
static jot_status wrap_body(const struct backward *s, uint32_t *out_f)
{
    struct body w = body_of(s->m, s->f);
    ir_id *sum = pass_no_values(s->m, s->n_consts);
    for (uint32_t i = 0; i < s->n_consts; i++)
        if (!s->linear[i])
            body_take(&w, known_index(s, i));
    for (uint32_t i = 0; i < s->n_carry; i++)
        if (s->ct[i])
            body_take(&w, ct_index(s, i));
    for (uint32_t i = 0; i < s->n_consts; i++)
        if (s->handed[i])
            body_take(&w, sum_index(s, i));
        else if (s->nonzero[i] && !s->scan.lanes)
            sum[i] = ir_param(&w.b, ir_type_of(s->body, i));
    for (uint32_t i = s->first_row; i < s->n_in; i++)
        if (!s->linear[i])
            body_take(&w, known_index(s, i));
    for (uint32_t i = s->n_carry; i < s->n_out; i++)
        if (s->ct[i])
            body_take(&w, ct_index(s, i));
    body_run(&w);
    // Results of the transposed body are the cotangents in the order of the inputs.
    uint32_t n_const_ct = body_count(s->nonzero, true, 0, s->n_consts), next = n_const_ct;
    for (uint32_t i = 0; i < s->n_carry; i++) {
        bool there = s->nonzero[s->n_consts + i];
        if (s->ct[i])
            body_give_or_zeros(&w, there, next, ir_type_of(s->body, s->n_consts + i));
        next += there;
    }
    for (uint32_t i = 0, k = 0; i < s->n_consts; i++)
        if (s->nonzero[i])
            ir_output(&w.b, rule_accumulate(&w.b, sum[i], w.out[k++]));
    for (; next < w.f->outputs.count; next++)
        body_give(&w, next);
    return pass_finish(&w.b, out_f);
}

static int operands_of(const struct backward *s, ir_id *x)
{
    const struct transpose *c = s->c;
    int n = body_pick(s->linear, false, 0, s->n_consts, c->x, x);
    for (uint32_t i = 0; i < s->n_carry; i++)
        if (s->ct[i])
            x[n++] = transpose_instantiate(s->c, i);
    for (uint32_t i = 0; i < s->n_consts; i++)
        if (s->nonzero[i] && !s->scan.lanes)
            x[n++] = s->handed[i] ? transpose_take_sum(s->c, i)
                                  : ir_zeros(c->b, ir_type_of(s->body, i));
    n += body_pick(s->linear, false, s->first_row, s->n_in, c->x, x + n);
    return n + body_pick(s->ct, true, s->n_carry, s->n_out, c->ct, x + n);
}

static jot_status transpose_loop(struct backward *s)
{
    struct transpose *c = s->c;
    do {
        JOT_TRY(pass_transpose_function(s->m, s->scan.body, s->linear, s->ct, NULL, &s->f,
                                        s->nonzero));
    } while (body_grow(s->ct, s->nonzero + s->n_consts, s->n_carry));
    for (uint32_t i = 0; i < s->n_consts && !s->scan.lanes; i++)
        s->handed[i] = s->nonzero[i] && rule_accumulates(s->m, transpose_type(c, i));
    JOT_TRY(pass_transpose_function(s->m, s->scan.body, s->linear, s->ct, s->handed, &s->f,
                                    s->nonzero));
    struct ir_scan back = {.length = s->scan.length,
                           .reverse = s->scan.lanes ? s->scan.reverse : !s->scan.reverse,
                           .checkpoint = s->scan.checkpoint,
                           .lanes = s->scan.lanes};
    JOT_TRY(wrap_body(s, &back.body));
    uint32_t n_ct = body_count(s->ct, true, 0, s->n_carry);
    back.n_consts = (int)body_count(s->linear, false, 0, s->n_consts);
    if (!s->scan.lanes)
        back.n_carry = (int)(n_ct + body_count(s->nonzero, true, 0, s->n_consts));
    ir_id *x = pass_no_values(s->m, s->n_in + s->n_out + s->n_consts);
    ir_id y = ir_scan(c->b, &back, operands_of(s, x), x);
    if (y == IR_NONE)
        return pass_builder_status(c->b);
    for (uint32_t i = 0; i < s->n_carry; i++)
        if (s->ct[i])
            transpose_give(c, s->n_consts + i, y++);
    for (uint32_t i = 0; i < s->n_consts; i++)
        if (s->nonzero[i]) {
            static const int64_t lanes[1] = {0};
            ir_id ct = y++;
            transpose_give(c, i,
                           s->scan.lanes ? ir_reduce(c->b, IR_reduce_sum, ct, 1, lanes) : ct);
        }
    for (uint32_t i = s->first_row; i < s->n_in; i++)
        if (s->nonzero[i])
            transpose_give(c, i, y++);
    return JOT_OK;
}

void transpose_scan(struct transpose *c)
{
    struct backward s = make_backward(c);
    jot_status status = transpose_loop(&s);
    if (status != JOT_OK && c->b->status == JOT_OK)
        rule_fail_nested(c->b, status);
}

// A while with a bound has become a scan before it is transposed (unzip_while.c).
void transpose_while(struct transpose *c) { transpose_none(c); }
