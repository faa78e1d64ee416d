// SPDX-License-Identifier: Apache-2.0
// What must hold of derivatives and maps, in the evaluator.
#include "random/checker.h"

#include "base/status.h"
#include "harness/native.h"
#include "ir/control.h"
#include "support/opcases.h"

#include <math.h>

bool *check_floats(struct checker *c, const struct ir_graph *g)
{
    bool *mask = arena_array(c->m->arena, bool, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        mask[i] = ir_dtype_of(g, i) == JOT_F64;
    return mask;
}

// A derivative whose zeros are settled, as in every program; false, and why.
static bool settle(struct checker *c, uint32_t f, uint32_t *out)
{
    if (pass_unshard(c->m, f, &f) != JOT_OK)
        return check_refuse(c, "unshard");
    *out = pass_support(c->m, f);
    return true;
}

static const struct ir_graph *settled(struct checker *c, uint32_t f)
{
    return settle(c, f, &f) ? ir_function(c->m, f) : NULL;
}

static struct ir_tensor drawn(struct checker *c, struct ir_type t)
{
    return opcase_draw(c->m, t, "ANY", &c->state);
}

static struct ir_tensor zeros(struct checker *c, struct ir_type t)
{
    return (struct ir_tensor){t, arena_allocate(c->m->arena, check_bytes(c->m, t) + 1)};
}

// Room for the operands of a derivative of g, or for what is said of each operand or result.
static uint32_t most_operands(const struct ir_graph *g)
{
    return 2 * g->n_params + g->outputs.count + 1;
}
static struct ir_tensor *operands(struct checker *c)
{
    return arena_array(c->m->arena, struct ir_tensor, most_operands(c->g));
}
static bool *flags(struct checker *c)
{
    return arena_array(c->m->arena, bool, most_operands(c->g));
}

// A derivative f at `in`, and what its results from `from` on are multiplied with.
struct derivative {
    uint32_t f, from, n;
    struct ir_tensor *in, *by;
};

// The sum of the products, and of their absolute values.
struct product {
    double sum, size;
};

static struct product product_of(const struct checker *c, const struct derivative *d,
                                 const struct ir_tensor *y)
{
    struct product p = {0, 0};
    for (uint32_t i = 0; i < d->n; i++)
        for (int64_t k = 0; k < ir_count(c->m, d->by[i].type); k++) {
            double term =
                ((const double *)y[d->from + i].data)[k] * ((const double *)d->by[i].data)[k];
            p.sum += term;
            p.size += fabs(term);
        }
    return p;
}

// Forward and reverse mode at drawn tangents and cotangents.
static bool draw_derivatives(struct checker *c, struct derivative *forward,
                             struct derivative *back)
{
    const struct ir_graph *g = c->g;
    bool *mask = check_floats(c, g), *nonzero = flags(c);
    if (pass_jvp(c->m, c->f, mask, &forward->f, nonzero) != JOT_OK)
        return check_refuse(c, "jvp");
    if (pass_vjp(c->m, c->f, mask, &back->f) != JOT_OK)
        return check_refuse(c, "vjp");
    uint32_t n = g->n_params, m = g->n_params;
    for (struct derivative *d = forward; d; d = d == forward ? back : NULL) {
        *d = (struct derivative){d->f, g->outputs.count, 0, operands(c), operands(c)};
        memcpy(d->in, c->in, n * sizeof *d->in);
    }
    for (uint32_t i = 0; i < g->n_params; i++)
        if (mask[i])
            forward->in[n++] = back->by[back->n++] = drawn(c, ir_type_of(g, i));
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        if (ir_dtype(c->out[i].type) != JOT_F64)
            continue;
        back->in[m] = drawn(c, c->out[i].type);
        if (nonzero[i])
            forward->by[forward->n++] = back->in[m];
        m++;
    }
    return true;
}

static bool agree(struct product x, struct product y)
{
    double size = 1 + fmax(x.size, y.size);
    // What is not finite or cancels badly says nothing.
    return !(size < 1e12) || fabs(x.sum - y.sum) <= 1e-10 * size;
}

// Whether zeros that are no paths are terms of the op's sums: no guard reaches these
// (docs/numerics.md).
static bool adds_products(const struct ir_node *n)
{
    return n->op == IR_dot_general || n->op == IR_conv || n->op == IR_fft ||
           n->op == IR_triangular_solve || n->op == IR_tridiagonal_solve;
}

// The derivative when ops that add products find 0 in place of NaN and infinities.  False: it cannot
// be written out.
static bool product_without_nan(struct checker *c, const struct derivative *d, uint32_t settled,
                                struct product *p)
{
    uint32_t f = program_unroll(c->m, settled, d->in);
    if (f == IR_NONE)
        return false;
    const struct ir_graph *g = ir_function(c->m, f);
    struct ir_builder b = ir_builder_make(c->m, "without NaN", IR_BUILD_PLAIN);
    ir_id *map = arena_array(c->m->arena, ir_id, g->values.count + 1);
    ir_for_each_node (g, n) {
        ir_id *in = arena_array(c->m->arena, ir_id, n->n_in + 1);
        for (uint32_t i = 0; i < n->n_in; i++) {
            ir_id x = in[i] = map[ir_operand(g, n, i)];
            if (adds_products(n) && ir_dtype(ir_type_in(&b, x)) == JOT_F64)
                in[i] = ir_select(&b, ir_is_finite(&b, x), x, ir_scalar(&b, JOT_F64, 0));
        }
        ir_id y =
            n->op == IR_param ? ir_param(&b, ir_type_of(g, n->out)) : ir_rebuild(&b, g, n, in);
        for (uint32_t i = 0; i < n->n_out; i++)
            map[n->out + i] = y + i;
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        ir_output(&b, map[g->outputs.at[i]]);
    const struct ir_tensor *y = check_run(c, ir_function(c->m, ir_finish_function(&b)), d->in);
    if (y)
        *p = product_of(c, d, y);
    return y;
}

bool check_transposes(struct checker *c)
{
    struct derivative d[2];
    struct product p[2], q[2];
    uint32_t f[2];
    if (!draw_derivatives(c, &d[0], &d[1]))
        return false;
    for (int k = 0; k < 2; k++) {
        if (!settle(c, d[k].f, &f[k]))
            return false;
        const struct ir_tensor *y = check_run(c, ir_function(c->m, f[k]), d[k].in);
        if (!y || !check_outputs(c, "results beside derivatives", y))
            return false;
        p[k] = product_of(c, &d[k], y);
    }
    if (agree(p[0], p[1]))
        return true;
    // Where a zero meets no number in a sum of products, one of them may be NaN.
    if ((isnan(p[0].sum) || isnan(p[1].sum)) && product_without_nan(c, &d[0], f[0], &q[0]) &&
        product_without_nan(c, &d[1], f[1], &q[1]) && agree(q[0], q[1]))
        return true;
    strbuf_printf(c->why, "<w,Jv> = %.17g, <J'w,v> = %.17g\n%s", p[0].sum, p[1].sum,
                  ir_graph_text(ir_function(c->m, d[1].f)));
    return false;
}

static struct ir_tensor stacked(struct checker *c, int64_t n, const struct ir_tensor *lanes)
{
    int64_t dims[IR_MAX_RANK] = {n};
    struct ir_type t = lanes->type;
    memcpy(dims + 1, ir_dims(c->m, t), t.rank * sizeof *dims);
    struct ir_tensor x = zeros(c, ir_type_make(c->m, ir_dtype(t), t.rank + 1, dims));
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)x.data + (size_t)i * check_bytes(c->m, t), lanes[i].data,
               check_bytes(c->m, t));
    return x;
}

static struct ir_tensor lane_of(struct checker *c, struct ir_tensor x, int64_t i)
{
    const int64_t *dims = ir_dims(c->m, x.type);
    struct ir_type t = ir_type_make(c->m, ir_dtype(x.type), x.type.rank - 1, dims + 1);
    return (struct ir_tensor){t, (char *)x.data + (size_t)i * check_bytes(c->m, t)};
}

// Dots sum by another shape when mapped; everything else keeps its bits.
static bool close_lanes(struct checker *c, const struct ir_graph *g, const struct ir_tensor *in,
                        uint32_t output, struct ir_tensor got, struct ir_tensor want)
{
    double tolerance = ir_dtype(want.type) == JOT_F64 ? 1e-9 : 0;
    return native_close(g, in, output, got, want, tolerance, c->why);
}

// NaN and overflow make tolerances useless.
static bool is_moderate(const struct checker *c, const struct ir_tensor *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (int64_t k = 0; ir_dtype(x[i].type) == JOT_F64 && k < ir_count(c->m, x[i].type);
             k++)
            if (!(fabs(((const double *)x[i].data)[k]) < 1e6))
                return false;
    return true;
}

bool check_maps(struct checker *c)
{
    enum { LANES = 3 };
    const struct ir_graph *g = c->g;
    bool *mapped_in = flags(c), *mapped_out = flags(c);
    struct ir_tensor *in = operands(c), *lanes[LANES];
    for (int k = 0; k < LANES; k++)
        lanes[k] = operands(c);
    for (uint32_t i = 0; i < g->n_params; i++) {
        mapped_in[i] = opcase_random(&c->state) < 0.7 || i == 0;
        struct ir_tensor own[LANES];
        for (int k = 0; k < LANES; k++)
            lanes[k][i] = own[k] =
                k == 0 || !mapped_in[i] ? c->in[i] : drawn(c, ir_type_of(g, i));
        in[i] = mapped_in[i] ? stacked(c, LANES, own) : c->in[i];
    }
    uint32_t f;
    if (pass_vmap(c->m, c->f, mapped_in, LANES, &f, mapped_out) != JOT_OK)
        return check_refuse(c, "vmap");
    struct ir_tensor *y = check_run(c, ir_function(c->m, f), in);
    for (int k = 0; y && k < LANES; k++) {
        struct ir_tensor *want = check_run(c, g, lanes[k]);
        if (!want)
            return false;
        if (!is_moderate(c, want, g->outputs.count))
            continue;
        for (uint32_t i = 0; i < g->outputs.count; i++)
            if (!close_lanes(c, g, lanes[k], i, mapped_out[i] ? lane_of(c, y[i], k) : y[i],
                             want[i])) {
                strbuf_printf(c->why, "  lane %d of output %u\n%s", k, i,
                              ir_graph_text(ir_function(c->m, f)));
                return false;
            }
    }
    return y != NULL;
}

bool check_commutes(struct checker *c)
{
    const struct ir_graph *g = c->g;
    bool *mask = check_floats(c, g), *all = flags(c), *mapped_out = flags(c);
    memset(all, 1, most_operands(g));
    uint32_t back, map_of_back, map, back_of_map, n = g->n_params;
    if (pass_vjp(c->m, c->f, mask, &back) != JOT_OK ||
        pass_vmap(c->m, back, all, 2, &map_of_back, NULL) != JOT_OK ||
        pass_vmap(c->m, c->f, all, 2, &map, mapped_out) != JOT_OK ||
        pass_vjp(c->m, map, mask, &back_of_map) != JOT_OK)
        return check_refuse(c, "transforms");
    const struct ir_graph *a = settled(c, map_of_back), *b = settled(c, back_of_map);
    if (!a || !b)
        return false;
    if (a->n_params != b->n_params)
        return true; // a result without the axis has one cotangent
    struct ir_tensor *in = operands(c);
    for (uint32_t i = 0; i < a->n_params; i++) {
        if (!ir_type_equal(ir_type_of(a, i), ir_type_of(b, i)))
            return true;
        struct ir_tensor lanes[2];
        lanes[0] = lanes[1] = i < n ? c->in[i] : zeros(c, ir_type_of(a, i));
        in[i] = drawn(c, ir_type_of(a, i));
        if (i < n) {
            lanes[1] = drawn(c, ir_type_of(g, i));
            in[i] = stacked(c, 2, lanes);
        }
    }
    struct ir_tensor *x = check_run(c, a, in), *y = check_run(c, b, in);
    if (!x || !y)
        return false;
    if (!is_moderate(c, x, a->outputs.count))
        return true;
    for (uint32_t i = 0; i < a->outputs.count; i++) {
        struct ir_tensor p = x[i], q = y[i];
        if (p.type.rank < q.type.rank)
            q = lane_of(c, q, 0);
        if (q.type.rank < p.type.rank)
            p = lane_of(c, p, 0);
        if (!close_lanes(c, b, in, i, p, q)) {
            strbuf_printf(c->why, "  output %u\n", i);
            return false;
        }
    }
    return true;
}

// -- Loops and their runs ---------------------------------------------------------------------

// Close relative to the largest of all results.
static bool close_results(struct checker *c, const char *what, const struct ir_tensor *got,
                          const struct ir_tensor *want, uint32_t n)
{
    double largest = 1;
    for (uint32_t i = 0; i < n; i++)
        for (int64_t k = 0;
             ir_dtype(want[i].type) == JOT_F64 && k < ir_count(c->m, want[i].type); k++)
            largest = fmax(largest, fabs(((const double *)want[i].data)[k]));
    for (uint32_t i = 0; i < n; i++)
        for (int64_t k = 0;
             ir_dtype(want[i].type) == JOT_F64 && k < ir_count(c->m, want[i].type); k++) {
            double x = ((const double *)got[i].data)[k], y = ((const double *)want[i].data)[k];
            if (fabs(x - y) <= 1e-9 * largest)
                continue;
            strbuf_printf(c->why, "%s %u[%lld] is %.17g, without loops %.17g\n", what, i,
                          (long long)k, x, y);
            return false;
        }
    return true;
}

// The function has the bits of its run written out, and its derivatives are those of the run.
bool check_unrolls(struct checker *c)
{
    const struct ir_graph *g = c->g;
    bool *mask = check_floats(c, g), *nonzero = flags(c), *nonzero_unrolled = flags(c);
    uint32_t unrolled = program_unroll(c->m, c->f, c->in), forward[2], back[2];
    if (unrolled == IR_NONE)
        return check_refuse(c, "a run written out");
    struct ir_tensor *plain = check_run(c, ir_function(c->m, unrolled), c->in);
    if (!plain || !check_outputs(c, "without loops", plain))
        return false;
    if (pass_jvp(c->m, c->f, mask, &forward[0], nonzero) != JOT_OK ||
        pass_jvp(c->m, unrolled, mask, &forward[1], nonzero_unrolled) != JOT_OK ||
        pass_vjp(c->m, c->f, mask, &back[0]) != JOT_OK ||
        pass_vjp(c->m, unrolled, mask, &back[1]) != JOT_OK)
        return check_refuse(c, "derivatives");
    struct ir_tensor *v = operands(c), *w = operands(c), *y[2], *x[2];
    const struct ir_graph *jw = ir_function(c->m, back[0]);
    memcpy(v, c->in, g->n_params * sizeof *v);
    memcpy(w, c->in, g->n_params * sizeof *w);
    for (uint32_t i = 0, n = g->n_params; i < g->n_params; i++)
        if (mask[i])
            v[n++] = drawn(c, ir_type_of(g, i));
    for (uint32_t i = g->n_params; i < jw->n_params; i++)
        w[i] = drawn(c, ir_type_of(jw, i));
    for (int k = 0; k < 2; k++) {
        y[k] = check_run(c, settled(c, forward[k]), v);
        x[k] = check_run(c, settled(c, back[k]), w);
        if (!y[k] || !x[k])
            return false;
    }
    if (!is_moderate(c, x[1], jw->outputs.count))
        return true;
    uint32_t at[2] = {g->outputs.count, g->outputs.count};
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        struct ir_tensor none = zeros(c, ir_type_of(g, g->outputs.at[i])), t[2];
        t[0] = nonzero[i] ? y[0][at[0]++] : none;
        t[1] = nonzero_unrolled[i] ? y[1][at[1]++] : none;
        if (is_moderate(c, &t[1], 1) && !close_results(c, "tangent", &t[0], &t[1], 1))
            return false;
    }
    return close_results(c, "value or cotangent", x[0], x[1], jw->outputs.count);
}
