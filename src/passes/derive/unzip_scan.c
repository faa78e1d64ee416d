// SPDX-License-Identifier: Apache-2.0
// What reverse mode keeps of a scan: the attribute `checkpoint`.
//
//     x, dx = scan {body, length=7, checkpoint=3} [a, da | x0, dx0]
// is separated as
//     x', dx', da' = scan {segment, length=2, checkpoint=1} [a | x0, dx0, da]
//         where segment: scan {body', length=3, checkpoint=-1}
//     x, dx, da'' = scan {body', length=1, checkpoint=-1} [a | x', dx', da']
//
// checkpoint=1 keeps the carries before each trip, here a segment, and computes it again on the way
// back; checkpoint=-1 keeps the residuals of every trip.  The trips that do not fill a segment are
// the last, so they are the first on the way back and need nothing computed again.
//
// Bits are those of the loop without segments: linear consts are carries, so that their cotangents
// are summed over all trips in one order, and body' reads each of them once.
#include "passes/derive/unzip.h"

#include "base/status.h"
#include "ir/cost.h"
#include "passes/body.h"
#include "passes/rules/rules.h"

struct segments {
    struct unzip *u;
    struct ir_builder *b;
    struct ir_module *m;
    const struct known_linear *whole;
    struct ir_scan scan;                // of the trips of a segment, over body'
    int64_t k, n, rest;                 // trips of a segment, segments, trips after them
    uint32_t n_consts, first_row, n_in; // operands of the whole
    uint32_t n_carry, n_out;            // results of the whole
    uint32_t n_states;                  // carries and linear consts
};

static ir_id linear_if(struct segments *s, bool linear, ir_id v)
{
    if (linear && v != IR_NONE)
        vec_push(s->m->arena, &s->u->made, v);
    return v;
}

// x as the result of a call: what reads it is summed before it is added to other cotangents of x, as
// in a loop without segments, where the sum over its trips is handed to a trip only if it is long.
static ir_id read_once(struct ir_builder *b, ir_id x)
{
    struct ir_builder w = ir_builder_make(b->module, "identity", IR_BUILD_PLAIN);
    ir_output(&w, ir_param(&w, ir_type_in(b, x)));
    uint32_t f = ir_finish_function(&w);
    return ir_call(b, IR_call, 1, &f, 1, &x);
}

// (known consts | carries, linear consts | rows) -> (carries, linear consts | rows)
static jot_status build_body(struct segments *s, uint32_t *out_f)
{
    const bool *linear = s->whole->linear_in;
    struct body w = body_of(s->m, s->whole->scan.body);
    ir_id *sums = pass_no_values(s->m, s->n_consts);
    for (uint32_t i = 0; i < s->n_consts; i++)
        if (!linear[i])
            body_take(&w, i);
    for (uint32_t i = s->n_consts; i < s->first_row; i++)
        body_take(&w, i);
    for (uint32_t i = 0; i < s->n_consts; i++)
        if (linear[i])
            sums[i] = ir_param(&w.b, ir_type_of(w.f, i));
    for (uint32_t i = s->first_row; i < s->n_in; i++)
        body_take(&w, i);
    for (uint32_t i = 0; i < s->n_consts; i++)
        if (linear[i])
            w.in[i] =
                rule_accumulates(s->m, ir_type_of(w.f, i)) ? sums[i] : read_once(&w.b, sums[i]);
    body_run(&w);
    for (uint32_t i = 0; i < s->n_carry; i++)
        body_give(&w, i);
    for (uint32_t i = 0; i < s->n_consts; i++)
        if (linear[i])
            ir_output(&w.b, sums[i]);
    for (uint32_t i = s->n_carry; i < s->n_out; i++)
        body_give(&w, i);
    return pass_finish(&w.b, out_f);
}

// body' over the trips of a segment.
static jot_status build_segment(const struct segments *s, uint32_t *out_f)
{
    const struct ir_graph *f = ir_function(s->m, s->scan.body);
    struct ir_builder b = ir_builder_make(s->m, f->name, IR_BUILD_PLAIN);
    ir_id *in = pass_no_values(s->m, f->n_params);
    uint32_t first_row = (uint32_t)(s->scan.n_consts + s->scan.n_carry);
    for (uint32_t i = 0; i < f->n_params; i++) {
        struct ir_type t = ir_type_of(f, i);
        in[i] = ir_param(&b, i < first_row ? t : ir_type_stack(s->m, t, s->k));
    }
    struct ir_scan scan = s->scan;
    scan.length = scan.part = s->k;
    scan.first = s->scan.reverse ? s->rest : 0;
    ir_id y = ir_scan(&b, &scan, (int)f->n_params, in);
    for (uint32_t i = 0; i < f->outputs.count && y != IR_NONE; i++)
        ir_output(&b, y + i);
    return pass_finish(&b, out_f);
}

// The operands of the first segment, and which are linear; rows are those of the whole.
static void first_operands(const struct segments *s, ir_id *x, bool *linear)
{
    const struct known_linear *k = s->whole;
    int n = body_pick(k->linear_in, false, 0, s->n_consts, k->x, x);
    for (uint32_t i = s->n_consts; i < s->first_row; i++) {
        linear[n] = k->linear_in[i];
        x[n++] = k->x[i];
    }
    for (uint32_t i = 0; i < s->n_consts; i++)
        if (k->linear_in[i]) {
            linear[n] = true;
            x[n++] = k->x[i];
        }
    for (uint32_t i = s->first_row; i < s->n_in; i++) {
        linear[n] = k->linear_in[i];
        x[n++] = k->x[i];
    }
}

// Rows first .. end - 1 of v.
static ir_id some_rows(struct segments *s, ir_id v, int64_t first, int64_t end, bool linear)
{
    int64_t starts[IR_MAX_RANK] = {first}, limits[IR_MAX_RANK];
    struct ir_type t = ir_type_in(s->b, v);
    memcpy(limits, ir_dims(s->m, t), sizeof *limits * t.rank);
    limits[0] = end;
    return linear_if(s, linear, ir_slice(s->b, v, starts, limits, NULL));
}

// Axis 0 as segments of trips, and back.
static ir_id group_rows(struct segments *s, ir_id v, bool linear)
{
    struct ir_type t = ir_type_stack(s->m, ir_type_in(s->b, v), s->n);
    int64_t dims[IR_MAX_RANK];
    memcpy(dims, ir_dims(s->m, t), sizeof *dims * t.rank);
    dims[1] = s->k;
    return linear_if(s, linear, ir_reshape(s->b, v, t.rank, dims));
}

static ir_id join_rows(struct segments *s, ir_id v, bool linear)
{
    struct ir_type t = ir_type_row(s->m, ir_type_in(s->b, v));
    int64_t dims[IR_MAX_RANK];
    memcpy(dims, ir_dims(s->m, t), sizeof *dims * t.rank);
    dims[0] = s->n * s->k;
    return linear_if(s, linear, ir_reshape(s->b, v, t.rank, dims));
}

// The segments, or the trips after them, over operands in the order of body'.
static jot_status run_trips(struct segments *s, bool segments, ir_id *x, const bool *linear,
                            ir_id *y, bool *linear_out)
{
    struct known_linear k = {.scan = s->scan,
                             .n_in = s->n_in,
                             .x = arena_copy(s->m->arena, x, s->n_in * sizeof *x),
                             .linear_in = linear,
                             .y = y,
                             .linear_out = linear_out};
    uint32_t first_row = (uint32_t)(s->scan.n_consts + s->scan.n_carry);
    // The trips after the segments are of the last rows, or of the first when these come last.
    int64_t first = segments == s->scan.reverse ? (segments ? s->rest : s->n * s->k) : 0;
    int64_t count = segments ? s->n * s->k : s->rest;
    ir_id *rows = (ir_id *)k.x;
    for (uint32_t i = first_row; i < s->n_in && s->b->status == JOT_OK; i++) {
        if (s->rest)
            rows[i] = some_rows(s, x[i], first, first + count, linear[i]);
        if (segments)
            rows[i] = group_rows(s, rows[i], linear[i]);
    }
    k.scan.length = segments ? s->n : s->rest;
    k.scan.first = segments ? 0 : first;
    if (segments) {
        k.scan.checkpoint = 1;
        JOT_TRY(build_segment(s, &k.scan.body));
    }
    struct tape tape;
    JOT_TRY(unzip_trips(s->b, &k, INT64_MAX, &tape));
    for (uint32_t i = 0; i < s->n_states + s->n_out - s->n_carry; i++)
        linear_if(s, linear_out[i], y[i]);
    return JOT_OK;
}

static jot_status split_segments(struct segments *s)
{
    uint32_t n_consts = (uint32_t)s->scan.n_consts, n_y = s->n_states + s->n_out - s->n_carry;
    ir_id *x = pass_no_values(s->m, s->n_in), *y = pass_no_values(s->m, n_y);
    ir_id *last = pass_no_values(s->m, n_y);
    bool *linear_in = body_mask(s->m, s->n_in), *linear_out = body_mask(s->m, n_y);
    JOT_TRY(build_body(s, &s->scan.body));
    first_operands(s, x, linear_in);
    JOT_TRY(run_trips(s, true, x, linear_in, y, linear_out));
    for (uint32_t i = s->n_states; i < n_y; i++)
        y[i] = join_rows(s, y[i], linear_out[i]);
    if (s->rest) {
        memcpy(x + n_consts, y, s->n_states * sizeof *x);
        memcpy(linear_in + n_consts, linear_out, s->n_states);
        JOT_TRY(run_trips(s, false, x, linear_in, last, linear_out));
        memcpy(y, last, s->n_states * sizeof *y);
        for (uint32_t i = s->n_states; i < n_y; i++) {
            ir_id parts[2] = {s->scan.reverse ? last[i] : y[i],
                              s->scan.reverse ? y[i] : last[i]};
            y[i] = linear_if(s, linear_out[i], ir_concatenate(s->b, 2, parts, 0));
        }
    }
    for (uint32_t i = 0; i < s->n_out; i++) {
        uint32_t at = i < s->n_carry ? i : i - s->n_carry + s->n_states;
        s->whole->y[i] = y[at];
        s->whole->linear_out[i] = linear_out[at];
    }
    return pass_builder_status(s->b);
}

static jot_status split_every(struct unzip *u, const struct known_linear *whole, int64_t k)
{
    struct ir_module *m = u->b->module;
    const struct ir_scan *scan = &whole->scan;
    uint32_t n_consts = (uint32_t)scan->n_consts;
    uint32_t n_linear = body_count(whole->linear_in, true, 0, n_consts);
    struct segments s = {.u = u,
                         .b = u->b,
                         .m = m,
                         .whole = whole,
                         .k = k,
                         .n = scan->length / k,
                         .rest = scan->length % k,
                         .n_consts = n_consts,
                         .first_row = n_consts + (uint32_t)scan->n_carry,
                         .n_in = whole->n_in,
                         .n_carry = (uint32_t)scan->n_carry,
                         .n_out = ir_function(m, scan->body)->outputs.count,
                         .n_states = (uint32_t)scan->n_carry + n_linear};
    s.scan = (struct ir_scan){.n_consts = (int)(n_consts - n_linear),
                              .n_carry = (int)s.n_states,
                              .length = s.rest,
                              .reverse = scan->reverse,
                              .checkpoint = IR_CHECKPOINT_ALL};
    return split_segments(&s);
}

// The least whole number whose square is at least x.
static int64_t root(double x)
{
    int64_t k = 1;
    while ((double)k * (double)k < x)
        k++;
    return k;
}

// The k for which carries before segments and residuals of one segment are the fewest bytes, when
// that is less than the residuals of all trips; or the length.
static int64_t best_k(int64_t length, const struct tape *t)
{
    if (t->trip == 0)
        return length;
    int64_t k = root((double)length * (double)t->state / (double)t->trip);
    double bytes = (double)t->state * (double)(length / k) + (double)t->trip * (double)k;
    return bytes < (double)t->trip * (double)length ? k : length;
}

static jot_status split_by_policy(struct unzip *u, const struct known_linear *s)
{
    struct tape tape = {0};
    int64_t k = s->scan.checkpoint, length = s->scan.length;
    if (s->scan.lanes || !pass_is_repeatable(u->b->module, s->scan.body))
        k = IR_CHECKPOINT_ALL;
    if (k == IR_CHECKPOINT_RECOMPUTE && length > 0)
        return unzip_from_start(u->b, s);
    if (k == IR_CHECKPOINT_AUTO) {
        JOT_TRY(unzip_trips(u->b, s, COST_TAPE_BYTES, &tape));
        if (tape.is_built)
            return JOT_OK;
        k = best_k(length, &tape);
    } else if (k == IR_CHECKPOINT_SQRT) {
        k = root((double)length);
    }
    if (k > 1 && k < length)
        return split_every(u, s, k);
    struct known_linear whole = *s;
    whole.scan.checkpoint = k == 1 ? 1 : IR_CHECKPOINT_ALL;
    return unzip_trips(u->b, &whole, INT64_MAX, &tape);
}

void unzip_loop(struct unzip *u, const struct ir_node *n, const struct ir_scan *scan)
{
    struct ir_builder *b = u->b;
    b->where = n->where;
    struct known_linear s = {.scan = *scan,
                             .n_in = n->n_in,
                             .x = unzip_operands(u, n),
                             .linear_in = unzip_linear_operands(u, n),
                             .y = pass_no_values(b->module, n->n_out),
                             .linear_out = body_mask(b->module, n->n_out)};
    jot_status status = split_by_policy(u, &s);
    if (status != JOT_OK && b->status == JOT_OK)
        ir_fail(b, status, "%s", jot_error_message());
    for (uint32_t i = 0; i < n->n_out && status == JOT_OK; i++) {
        u->map[n->out + i] = s.y[i];
        u->linear[n->out + i] = s.linear_out[i];
    }
}

void unzip_scan(struct unzip *u, const struct ir_node *n)
{
    struct ir_scan s = ir_scan_of(n);
    unzip_loop(u, n, &s);
}
