// SPDX-License-Identifier: Apache-2.0
#include "random/programs.h"

#include "base/status.h"
#include "harness/native.h"
#include "passes/passes.h"
#include "support/nest_eval.h"
#include "support/opcases.h"

#include <math.h>

const char *const program_property_names[PROGRAM_PROPERTIES] = {
    "verifies", "prints",     "canonical", "simplifies", "schedules", "separate",
    "native",   "transposes", "maps",      "commutes",   "fault",
};

struct checker {
    struct ir_module *m;
    uint32_t f;
    const struct ir_graph *g;
    const struct ir_tensor *in, *out;
    uint64_t state;
    struct strbuf *why;
};

static size_t bytes_of(const struct ir_module *m, struct ir_type t)
{
    return (size_t)ir_count(m, t) * jot_dtype_size(ir_dtype(t));
}

static bool refuse(struct checker *c, const char *what)
{
    strbuf_printf(c->why, "%s: %s\n", what, jot_error_message());
    return false;
}

static struct ir_tensor *run(struct checker *c, const struct ir_graph *g,
                             const struct ir_tensor *in)
{
    struct ir_tensor *out = arena_array(c->m->arena, struct ir_tensor, g->outputs.count + 1);
    if (ir_eval(c->m->arena, g, in, out) == JOT_OK)
        return out;
    refuse(c, "evaluator");
    return NULL;
}

// -- Bits -------------------------------------------------------------------------------------

static bool same_outputs(struct checker *c, const char *what, const struct ir_tensor *got)
{
    for (uint32_t i = 0; i < c->g->outputs.count; i++)
        if (!native_same(c->m, got[i], c->out[i], 0, c->why)) {
            strbuf_printf(c->why, "  output %u, %s\n", i, what);
            return false;
        }
    return true;
}

static bool same_graph(struct checker *c, const char *what, const struct ir_graph *g)
{
    struct strbuf faults = strbuf_make(c->m->arena);
    if (ir_verify(g, &faults)) {
        strbuf_printf(c->why, "%s: %s%s", what, faults.text, ir_graph_text(g));
        return false;
    }
    struct ir_tensor *out = run(c, g, c->in);
    return out && same_outputs(c, what, out);
}

static bool prints(struct checker *c)
{
    const char *text = ir_graph_text(c->g);
    struct ir_graph *again;
    if (ir_graph_parse(c->m, text, &again) != JOT_OK)
        return refuse(c, "parser");
    const char *second = ir_graph_text(again);
    if (ir_graph_equal(c->g, again) && !strcmp(text, second))
        return true;
    strbuf_printf(c->why, "parses to\n%s", second);
    return false;
}

static bool canonical(struct checker *c)
{
    struct ir_graph *once = ir_canonical(c->g), *twice = ir_canonical(once);
    if (!ir_graph_equal(once, twice)) {
        strbuf_printf(c->why, "canonical\n%s and of that\n%s", ir_graph_text(once),
                      ir_graph_text(twice));
        return false;
    }
    return same_graph(c, "canonical", once);
}

static bool simplifies(struct checker *c)
{
    return same_graph(c, "inlined", ir_function(c->m, pass_inline(c->m, c->f, 100000))) &&
           same_graph(c, "simplified", ir_function(c->m, pass_simplify(c->m, c->f)));
}

// Statements that a block executes.
static double work_of(const struct nest *n, uint32_t block)
{
    double work = 0;
    for (uint32_t i = 0; i < n->blocks.at[block].statements.count; i++) {
        const struct nest_statement *s =
            &n->statements.at[n->blocks.at[block].statements.at[i]];
        double times = 1;
        for (uint32_t k = 0; k < s->n_axes; k++)
            times *= (double)n->axes.at[s->axes[k]].extent;
        bool is_loop = s->kind == NEST_PAR || s->kind == NEST_MAP || s->kind == NEST_FOLD ||
                       s->kind == NEST_SCAN || s->kind == NEST_TILE;
        work += is_loop ? 1 + times * work_of(n, s->body) : 1;
    }
    return work;
}

// Whether running it takes no longer than a test may.
static bool is_quick(const struct nest_program *p, double limit)
{
    double work = 0;
    for (uint32_t i = 0; i < p->nests.count; i++)
        work += work_of(p->nests.at[i], 0);
    return work < limit;
}

static uint32_t final_function(struct checker *c)
{
    return pass_simplify(c->m, pass_inline(c->m, c->f, 100000));
}

static bool schedules(struct checker *c, bool separate)
{
    struct nest_program *p;
    struct schedule_options options = {.separate = separate, .no_gemm = true};
    const struct ir_graph *g = ir_function(c->m, final_function(c));
    if (pass_schedule(c->m->arena, g, &options, &p) != JOT_OK)
        return refuse(c, "schedule");
    if (nest_program_verify(p, c->why) + plan_verify(p, c->why)) {
        schedule_print(c->why, p);
        return false;
    }
    if (!is_quick(p, 2e6))
        return true;
    void **in = arena_array(c->m->arena, void *, g->n_params + 1);
    void **data = arena_array(c->m->arena, void *, g->outputs.count + 1);
    struct ir_tensor *out = arena_array(c->m->arena, struct ir_tensor, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        in[i] = c->in[i].data;
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        out[i] = c->out[i];
        out[i].data = data[i] = arena_allocate(c->m->arena, bytes_of(c->m, out[i].type) + 64);
    }
    if (nest_program_eval(p, in, data) != JOT_OK) {
        schedule_print(c->why, p);
        return refuse(c, "interpreter of nests");
    }
    if (same_outputs(c, separate ? "separate kernels" : "fused kernels", out))
        return true;
    schedule_print(c->why, p);
    return false;
}

static bool runs_native(struct checker *c)
{
    struct native n = native_make(c->m, c->why);
    uint32_t f = final_function(c);
    struct nest_program *p;
    struct schedule_options options = {.no_gemm = true};
    if (pass_schedule(c->m->arena, ir_function(c->m, f), &options, &p) != JOT_OK)
        return refuse(c, "schedule");
    if (is_quick(p, 1e9))
        native_add(&n, "program", f, c->in, &(struct native_how){.separate = false});
    native_add(&n, "program", f, c->in, &(struct native_how){.separate = true});
    return native_finish(&n) == 0;
}

// -- Derivatives ------------------------------------------------------------------------------

static bool *float_params(struct checker *c, const struct ir_graph *g)
{
    bool *mask = arena_array(c->m->arena, bool, g->n_params + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        mask[i] = ir_dtype_of(g, i) == JOT_F64;
    return mask;
}

static struct ir_tensor drawn(struct checker *c, struct ir_type t)
{
    return opcase_draw(c->m, t, "ANY", &c->state);
}

static struct ir_tensor zeros(struct checker *c, struct ir_type t)
{
    return (struct ir_tensor){t, arena_allocate(c->m->arena, bytes_of(c->m, t) + 1)};
}

// Adds the product and the sum of its absolute terms.
static void add_product(const struct ir_module *m, struct ir_tensor x, struct ir_tensor y,
                        double *sum, double *size)
{
    for (int64_t i = 0; i < ir_count(m, x.type); i++) {
        double p = ((const double *)x.data)[i] * ((const double *)y.data)[i];
        *sum += p;
        *size += fabs(p);
    }
}

static bool transposes(struct checker *c)
{
    const struct ir_graph *g = c->g;
    bool *mask = float_params(c, g), nonzero[16];
    uint32_t forward, back, n = g->n_params, k = 0;
    if (pass_jvp(c->m, c->f, mask, &forward, nonzero) != JOT_OK)
        return refuse(c, "jvp");
    if (pass_vjp(c->m, c->f, mask, &back) != JOT_OK)
        return refuse(c, "vjp");
    struct ir_tensor v[16], with_v[32], with_w[32];
    memcpy(with_v, c->in, n * sizeof *with_v);
    memcpy(with_w, c->in, n * sizeof *with_w);
    for (uint32_t i = 0; i < g->n_params; i++)
        if (mask[i])
            with_v[n++] = v[k++] = drawn(c, ir_type_of(g, i));
    struct ir_tensor *jv = run(c, ir_function(c->m, forward), with_v);
    if (!jv)
        return false;
    double there = 0, here = 0, size = 0, size_here = 0;
    uint32_t m = g->n_params, next = g->outputs.count;
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        bool is_float = ir_dtype(c->out[i].type) == JOT_F64;
        if (is_float)
            with_w[m] = drawn(c, c->out[i].type);
        if (nonzero[i])
            add_product(c->m, jv[next++], with_w[m], &there, &size);
        m += is_float;
    }
    struct ir_tensor *jw = run(c, ir_function(c->m, back), with_w);
    if (!jw || !same_outputs(c, "results beside cotangents", jw))
        return false;
    for (uint32_t i = 0; i < k; i++)
        add_product(c->m, jw[g->outputs.count + i], v[i], &here, &size_here);
    size = 1 + fmax(size, size_here);
    // What is not finite or cancels badly says nothing.
    if (!(size < 1e12) || fabs(there - here) <= 1e-10 * size)
        return true;
    strbuf_printf(c->why, "<w,Jv> = %.17g, <J'w,v> = %.17g\n%s", there, here,
                  ir_graph_text(ir_function(c->m, back)));
    return false;
}

static struct ir_tensor stacked(struct checker *c, int64_t n, const struct ir_tensor *lanes)
{
    int64_t dims[IR_MAX_RANK] = {n};
    struct ir_type t = lanes->type;
    memcpy(dims + 1, ir_dims(c->m, t), t.rank * sizeof *dims);
    struct ir_tensor x = zeros(c, ir_type_make(c->m, ir_dtype(t), t.rank + 1, dims));
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)x.data + (size_t)i * bytes_of(c->m, t), lanes[i].data,
               bytes_of(c->m, t));
    return x;
}

static struct ir_tensor lane_of(struct checker *c, struct ir_tensor x, int64_t i)
{
    const int64_t *dims = ir_dims(c->m, x.type);
    struct ir_type t = ir_type_make(c->m, ir_dtype(x.type), x.type.rank - 1, dims + 1);
    return (struct ir_tensor){t, (char *)x.data + (size_t)i * bytes_of(c->m, t)};
}

// Dots sum by another shape when mapped; everything else keeps its bits.
static bool close_lanes(struct checker *c, struct ir_tensor got, struct ir_tensor want)
{
    if (ir_dtype(want.type) != JOT_F64)
        return native_same(c->m, got, want, 0, c->why);
    return native_same(c->m, got, want, 1e-9, c->why);
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

static bool maps(struct checker *c)
{
    enum { LANES = 3 };
    const struct ir_graph *g = c->g;
    bool mapped_in[16], mapped_out[16];
    struct ir_tensor in[16], lanes[LANES][16];
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
        return refuse(c, "vmap");
    struct ir_tensor *y = run(c, ir_function(c->m, f), in);
    for (int k = 0; y && k < LANES; k++) {
        struct ir_tensor *want = run(c, g, lanes[k]);
        if (!want)
            return false;
        if (!is_moderate(c, want, g->outputs.count))
            continue;
        for (uint32_t i = 0; i < g->outputs.count; i++)
            if (!close_lanes(c, mapped_out[i] ? lane_of(c, y[i], k) : y[i], want[i])) {
                strbuf_printf(c->why, "  lane %d of output %u\n%s", k, i,
                              ir_graph_text(ir_function(c->m, f)));
                return false;
            }
    }
    return y != NULL;
}

static bool commutes(struct checker *c)
{
    const struct ir_graph *g = c->g;
    bool *mask = float_params(c, g), all[32], mapped_out[16];
    memset(all, 1, sizeof all);
    uint32_t back, map_of_back, map, back_of_map, n = g->n_params;
    if (pass_vjp(c->m, c->f, mask, &back) != JOT_OK ||
        pass_vmap(c->m, back, all, 2, &map_of_back, NULL) != JOT_OK ||
        pass_vmap(c->m, c->f, all, 2, &map, mapped_out) != JOT_OK ||
        pass_vjp(c->m, map, mask, &back_of_map) != JOT_OK)
        return refuse(c, "transforms");
    const struct ir_graph *a = ir_function(c->m, map_of_back),
                          *b = ir_function(c->m, back_of_map);
    if (a->n_params != b->n_params)
        return true; // a result without the axis has one cotangent
    struct ir_tensor in[32];
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
    struct ir_tensor *x = run(c, a, in), *y = run(c, b, in);
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
        if (!close_lanes(c, p, q)) {
            strbuf_printf(c->why, "  output %u\n", i);
            return false;
        }
    }
    return true;
}

// -- A fault on purpose -----------------------------------------------------------------------

// A wrong compiler: operands of sub and of lt change places, and max becomes min.
static bool agrees_with_wrong_copy(struct checker *c)
{
    const struct ir_graph *g = ir_function(c->m, pass_inline(c->m, c->f, 100000));
    struct ir_builder b = ir_builder_make(c->m, "wrong", IR_BUILD_PLAIN);
    ir_id *map = arena_array(c->m->arena, ir_id, g->values.count + 1);
    ir_for_each_node (g, n) {
        ir_id in[64];
        if (n->n_in > 64)
            return true;
        bool swaps = n->op == IR_sub || n->op == IR_lt;
        for (uint32_t i = 0; i < n->n_in; i++)
            in[i] = map[ir_operand(g, n, swaps ? 1 - i : i)];
        ir_id v = n->op == IR_param ? ir_param(&b, ir_type_of(g, n->out))
                  : n->op == IR_max ? ir_build(&b, IR_min, 2, in, n->attrs)
                                    : ir_rebuild(&b, g, n, in);
        for (uint32_t i = 0; i < n->n_out; i++)
            map[n->out + i] = v + i;
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        ir_output(&b, map[g->outputs.at[i]]);
    struct ir_graph *wrong = ir_finish(&b);
    return !wrong || same_graph(c, "wrong copy", wrong);
}

// -- All --------------------------------------------------------------------------------------

static bool holds(struct checker *c, unsigned property)
{
    switch (property) {
    case PROGRAM_VERIFIES:
        return true;
    case PROGRAM_PRINTS:
        return prints(c);
    case PROGRAM_CANONICAL:
        return canonical(c);
    case PROGRAM_SIMPLIFIES:
        return simplifies(c);
    case PROGRAM_SCHEDULES:
        return schedules(c, false);
    case PROGRAM_SEPARATE:
        return schedules(c, true);
    case PROGRAM_NATIVE:
        return runs_native(c);
    case PROGRAM_TRANSPOSES:
        return transposes(c);
    case PROGRAM_MAPS:
        return maps(c);
    case PROGRAM_COMMUTES:
        return commutes(c);
    default:
        return agrees_with_wrong_copy(c);
    }
}

unsigned program_check(struct ir_module *m, uint32_t f, uint64_t seed, bool is_derivable,
                       unsigned properties, struct strbuf *why)
{
    struct checker c = {.m = m, .f = f, .g = ir_function(m, f), .state = seed, .why = why};
    if (ir_verify(c.g, why)) {
        strbuf_printf(why, "%s", ir_graph_text(c.g));
        return PROGRAM_VERIFIES;
    }
    c.in = program_inputs(m, c.g, seed, is_derivable);
    c.out = run(&c, c.g, c.in);
    if (!c.out)
        return PROGRAM_VERIFIES;
    for (unsigned p = 2; p < 1u << PROGRAM_PROPERTIES; p <<= 1)
        if (properties & p && !holds(&c, p))
            return p;
    return 0;
}
