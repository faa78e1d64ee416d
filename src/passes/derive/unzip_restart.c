// SPDX-License-Identifier: Apache-2.0
// A scan of which reverse mode keeps nothing but the carries before the first trip:
// checkpoint=-3.
//
//     x, dx = scan {body} [a | x0, dx0]
// becomes
//     x = scan {known} [a | x0]
//     dx = scan {linear} [a, x0 | dx0 | 0, 1, 2, ...]
//         where linear(t) runs t trips of known from x0 on, then the linear part of one trip
//
// That makes length * (length - 1) / 2 trips.  Trips are counted in the order in which they run.
#include "passes/derive/unzip.h"

#include "base/status.h"
#include "ir/indexing.h"
#include "passes/body.h"

struct restart {
    struct ir_builder *b;
    struct ir_module *m;
    const struct known_linear *k;
    const struct ir_graph *body;
    uint32_t n_consts, first_row, n_in; // operands
    uint32_t n_carry, n_out;            // results
    bool *linear_in;                    // with carries that are linear in some trip
    struct pass_split s;
};

static jot_status split_body(struct restart *r)
{
    bool *out = body_mask(r->m, r->n_out);
    do {
        JOT_TRY(pass_split_replay(r->m, r->k->scan.body, r->linear_in, &r->s));
        memcpy(out, r->s.linear_out, r->n_out);
    } while (body_grow(r->linear_in + r->n_consts, out, r->n_carry));
    for (uint32_t i = 0; i < r->n_out; i++)
        r->k->linear_out[i] = i < r->n_carry ? r->linear_in[r->n_consts + i] : out[i];
    return JOT_OK;
}

// The known part over some of its results: the carries, or all.
static jot_status known_body(const struct restart *r, uint32_t n_results, uint32_t *out_f)
{
    struct body w = body_of(r->m, r->s.forward);
    body_take_all(&w);
    body_run(&w);
    for (uint32_t i = 0; i < n_results; i++)
        if (!r->k->linear_out[i])
            body_give(&w, body_count(r->s.linear_out, false, 0, i));
    return pass_finish(&w.b, out_f);
}

static uint32_t known_count(const struct restart *r, uint32_t first, uint32_t end)
{
    return body_count(r->linear_in, false, first, end);
}

static jot_status build_known(struct restart *r)
{
    if (body_count(r->k->linear_out, false, 0, r->n_out) == 0 &&
        !ir_function(r->m, r->s.forward)->has_effects)
        return JOT_OK;
    struct ir_scan known = r->k->scan;
    JOT_TRY(known_body(r, r->n_out, &known.body));
    known.n_consts = (int)known_count(r, 0, r->n_consts);
    known.n_carry = (int)known_count(r, r->n_consts, r->first_row);
    ir_id *x = pass_no_values(r->m, r->n_in);
    int n = body_pick(r->linear_in, false, 0, r->n_in, r->k->x, x);
    ir_id y = ir_scan(r->b, &known, n, x);
    for (uint32_t i = 0; i < r->n_out && y != IR_NONE; i++)
        if (!r->k->linear_out[i])
            r->k->y[i] = y++;
    return pass_builder_status(r->b);
}

// -- Trips from the start, in the linear body -------------------------------------------------

// Row i of v, i counted in the order of trips.
static ir_id row_at(struct ir_builder *b, const struct ir_scan *scan, ir_id v, ir_id i)
{
    struct ir_type t = ir_type_in(b, v);
    ir_id starts[IR_MAX_RANK], zero = ir_scalar_int(b, JOT_I32, 0);
    int64_t sizes[IR_MAX_RANK];
    memcpy(sizes, ir_dims(b->module, t), sizeof *sizes * t.rank);
    sizes[0] = 1;
    for (int a = 0; a < t.rank; a++)
        starts[a] = zero;
    starts[0] = i;
    if (scan->reverse)
        starts[0] = ir_sub(b, ir_scalar_int(b, JOT_I32, scan->length - 1), i);
    return ir_reshape(b, ir_dynamic_slice(b, v, starts, sizes), t.rank - 1, sizes + 1);
}

// Parameters of the loop over trips: t, known consts, known rows | i, known carries.
static ir_id *trip_params(const struct restart *r, struct ir_builder *b, ir_id *t, ir_id *i)
{
    struct ir_type i32 = ir_type_make(r->m, JOT_I32, 0, NULL);
    ir_id *x = pass_no_values(r->m, r->n_in);
    *t = ir_param(b, i32);
    for (uint32_t k = 0; k < r->n_consts; k++)
        if (!r->linear_in[k])
            x[k] = ir_param(b, ir_type_of(r->body, k));
    for (uint32_t k = r->first_row; k < r->n_in; k++)
        if (!r->linear_in[k])
            x[k] = ir_param(b, ir_type_stack(r->m, ir_type_of(r->body, k), r->k->scan.length));
    *i = ir_param(b, i32);
    for (uint32_t k = r->n_consts; k < r->first_row; k++)
        if (!r->linear_in[k])
            x[k] = ir_param(b, ir_type_of(r->body, k));
    return x;
}

// i, x -> i + 1, known part of trip i
static jot_status build_body(const struct restart *r, uint32_t *out_f)
{
    uint32_t f;
    JOT_TRY(known_body(r, r->n_carry, &f));
    const struct ir_graph *known = ir_function(r->m, pass_strip_effects(r->m, f));
    struct ir_builder b = ir_builder_make(r->m, known->name, IR_BUILD_ZEROS);
    ir_id t, i, *x = trip_params(r, &b, &t, &i);
    for (uint32_t k = r->first_row; k < r->n_in; k++)
        if (!r->linear_in[k])
            x[k] = row_at(&b, &r->k->scan, x[k], i);
    ir_id *in = pass_no_values(r->m, r->n_in), *out = pass_no_values(r->m, r->n_carry);
    body_pick(r->linear_in, false, 0, r->n_in, x, in);
    ir_inline(&b, known, in, out);
    ir_output(&b, ir_add(&b, i, ir_scalar_int(&b, JOT_I32, 1)));
    for (uint32_t k = 0; k < known->outputs.count; k++)
        ir_output(&b, out[k]);
    return pass_finish(&b, out_f);
}

static jot_status build_test(const struct restart *r, uint32_t *out_f)
{
    struct ir_builder b = ir_builder_make(r->m, r->body->name, IR_BUILD_PLAIN);
    ir_id t, i;
    trip_params(r, &b, &t, &i);
    ir_output(&b, ir_lt(&b, i, t));
    return pass_finish(&b, out_f);
}

// The known carries in x, which are those before the first trip, become those before trip t.
static jot_status run_trips(const struct restart *r, struct ir_builder *b, ir_id t, ir_id *x)
{
    struct ir_while w = {.max_trips = r->k->scan.length};
    JOT_TRY(build_body(r, &w.body));
    JOT_TRY(build_test(r, &w.test));
    ir_id *in = pass_no_values(r->m, r->n_in + 2);
    in[0] = t;
    int n = 1 + body_pick(r->linear_in, false, 0, r->n_consts, x, in + 1);
    n += body_pick(r->linear_in, false, r->first_row, r->n_in, x, in + n);
    w.n_consts = n;
    in[n++] = ir_scalar_int(b, JOT_I32, 0);
    n += body_pick(r->linear_in, false, r->n_consts, r->first_row, x, in + n);
    ir_id y = ir_while(b, &w, n, in);
    for (uint32_t k = r->n_consts; k < r->first_row && y != IR_NONE; k++)
        if (!r->linear_in[k])
            x[k] = ++y;
    return pass_builder_status(b);
}

// -- The linear loop --------------------------------------------------------------------------

// (known consts, carries and rows, linear consts | linear carries | t, linear rows)
//     -> (linear carries | linear rows)
static jot_status linear_body(const struct restart *r, uint32_t *out_f)
{
    struct body w = body_of(r->m, r->s.linear);
    ir_id *x = pass_no_values(r->m, r->n_in);
    uint32_t next = r->s.n_residuals;
    for (uint32_t i = 0; i < r->n_in; i++) {
        struct ir_type t = ir_type_of(r->body, i);
        if (!r->linear_in[i])
            x[i] = ir_param(&w.b,
                            i < r->first_row ? t : ir_type_stack(r->m, t, r->k->scan.length));
    }
    for (uint32_t i = 0; i < r->first_row; i++)
        if (r->linear_in[i])
            body_take(&w, next++);
    ir_id t = ir_param(&w.b, ir_type_make(r->m, JOT_I32, 0, NULL));
    for (uint32_t i = r->first_row; i < r->n_in; i++)
        if (r->linear_in[i])
            body_take(&w, next++);
    JOT_TRY(run_trips(r, &w.b, t, x));
    for (uint32_t i = 0; i < r->s.n_residuals; i++) {
        uint32_t from = r->s.residuals[i].index;
        w.in[i] = from < r->first_row ? x[from] : row_at(&w.b, &r->k->scan, x[from], t);
    }
    body_run(&w);
    next = 0;
    for (uint32_t i = 0; i < r->n_out; i++) {
        bool there = r->s.linear_out[i];
        if (r->k->linear_out[i])
            body_give_or_zeros(&w, there, next, body_result(r->body, i));
        next += there;
    }
    return pass_finish(&w.b, out_f);
}

static jot_status build_linear(struct restart *r)
{
    struct ir_scan linear = r->k->scan;
    JOT_TRY(linear_body(r, &linear.body));
    ir_id *x = pass_no_values(r->m, r->n_in + 1);
    int n = body_pick(r->linear_in, false, 0, r->n_in, r->k->x, x);
    n += body_pick(r->linear_in, true, 0, r->n_consts, r->k->x, x + n);
    linear.n_consts = n;
    n += body_pick(r->linear_in, true, r->n_consts, r->first_row, r->k->x, x + n);
    linear.n_carry = n - linear.n_consts;
    ir_id trips = ir_iota(r->b, ir_type_make(r->m, JOT_I32, 1, &linear.length), 0);
    x[n++] = linear.reverse ? ir_rev(r->b, trips, 1, (const int64_t[]){0}) : trips;
    n += body_pick(r->linear_in, true, r->first_row, r->n_in, r->k->x, x + n);
    ir_id y = ir_scan(r->b, &linear, n, x);
    for (uint32_t i = 0; i < r->n_out && y != IR_NONE; i++)
        if (r->k->linear_out[i])
            r->k->y[i] = y++;
    return pass_builder_status(r->b);
}

jot_status unzip_from_start(struct ir_builder *b, const struct known_linear *k)
{
    struct ir_module *m = b->module;
    const struct ir_graph *body = ir_function(m, k->scan.body);
    struct restart r = {.b = b,
                        .m = m,
                        .k = k,
                        .body = body,
                        .n_consts = (uint32_t)k->scan.n_consts,
                        .first_row = (uint32_t)(k->scan.n_consts + k->scan.n_carry),
                        .n_in = k->n_in,
                        .n_carry = (uint32_t)k->scan.n_carry,
                        .n_out = body->outputs.count,
                        .linear_in = arena_copy(m->arena, k->linear_in, k->n_in)};
    JOT_TRY(split_body(&r));
    JOT_TRY(build_known(&r));
    return body_any(k->linear_out, r.n_out) ? build_linear(&r) : JOT_OK;
}
