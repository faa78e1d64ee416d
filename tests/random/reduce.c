// SPDX-License-Identifier: Apache-2.0
// Delta debugging on graphs (Zeller and Hildebrandt 2002): edits that make a program smaller are
// tried in turn, and one that keeps the failure is kept, until none is left.
#include "random/programs.h"

#include "harness/isolate.h"
#include "ir/control.h"
#include "passes/passes.h"

enum { SECONDS = 20, MOST_CHECKS = 1500 };

enum edit_kind {
    EDIT_KEEP_OUTPUT,  // output a alone
    EDIT_OUTPUT_INPUT, // output 0 becomes operand a of its node
    EDIT_TO_OPERAND,   // value a becomes operand b of its node
    EDIT_TO_PARAM,     // value a becomes a parameter
    EDIT_TO_CONSTANT,  // value a becomes ones
    EDIT_DROP,         // node a, an effect, goes
    EDIT_SHRINK,       // extent a becomes b everywhere
    EDIT_INLINE,
};

struct edit {
    enum edit_kind kind;
    int64_t a, b;
    uint32_t f; // the function, or a body in it
};

struct reducer {
    struct ir_module *m;
    uint64_t seed;
    unsigned kind;
    unsigned property;
    uint32_t f;
    int checks;
    bool keeps; // parameters that nothing reads any more, so that others get the same numbers
    bool ends;  // a check of the failure does not end its process
    VEC(uint32_t) refused; // functions that do not fail so
};

// The functions of any node that has some.
static int bodies_of(const struct ir_node *n, const int64_t **out)
{
    const struct ir_field *f = ir_field_find(n->attrs, IR_KEY_functions);
    *out = f ? f->ints : NULL;
    return f ? (int)f->count : 0;
}

// -- Applying an edit -------------------------------------------------------------------------

struct rebuild {
    struct ir_builder b;
    const struct ir_graph *g;
    struct edit e;
    bool *live; // by value
    ir_id *map; // by value
};

static bool is_replaced(const struct rebuild *r, ir_id v)
{
    bool replaces = r->e.kind == EDIT_TO_PARAM || r->e.kind == EDIT_TO_CONSTANT ||
                    r->e.kind == EDIT_TO_OPERAND;
    return replaces && v == (ir_id)r->e.a;
}

// Whether results are read that stay, or effects.
static bool is_live(const struct rebuild *r, const struct ir_node *n)
{
    if (r->e.kind == EDIT_DROP && n == &r->g->nodes.at[r->e.a])
        return false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (r->live[n->out + i] && !is_replaced(r, n->out + i))
            return true;
    return ir_has_effect(r->g, n);
}

static void mark_live(struct rebuild *r, uint32_t n_outputs, const ir_id *outputs)
{
    const struct ir_graph *g = r->g;
    for (uint32_t i = 0; i < n_outputs; i++)
        r->live[outputs[i]] = true;
    for (uint32_t k = g->nodes.count; k-- > 0;) {
        const struct ir_node *n = &g->nodes.at[k];
        for (uint32_t i = 0; i < n->n_out; i++)
            if (r->e.kind == EDIT_TO_OPERAND && r->live[n->out + i] &&
                is_replaced(r, n->out + i))
                r->live[ir_operand(g, n, (uint32_t)r->e.b)] = true;
        for (uint32_t i = 0; is_live(r, n) && i < n->n_in; i++)
            r->live[ir_operand(g, n, i)] = true;
    }
}

static int64_t shrunk(const struct edit *e, int64_t n)
{
    return e->kind == EDIT_SHRINK && n == e->a ? e->b : n;
}

static struct ir_type shrunk_type(struct rebuild *r, struct ir_type t)
{
    int64_t dims[IR_MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        dims[i] = shrunk(&r->e, ir_dims(r->b.module, t)[i]);
    return ir_type_make(r->b.module, ir_dtype(t), t.rank, dims);
}

static const struct ir_attrs *shrunk_attrs(struct rebuild *r, const struct ir_attrs *a)
{
    if (!a || r->e.kind != EDIT_SHRINK)
        return a;
    struct ir_field *fields = arena_array(r->b.module->arena, struct ir_field, a->count);
    for (uint32_t i = 0; i < a->count; i++) {
        fields[i] = a->fields[i];
        if (fields[i].key != IR_KEY_dims && fields[i].key != IR_KEY_limits)
            continue;
        int64_t *ints = arena_array(r->b.module->arena, int64_t, fields[i].count + 1);
        for (uint32_t k = 0; k < fields[i].count; k++)
            ints[k] = shrunk(&r->e, fields[i].ints[k]);
        fields[i].ints = ints;
    }
    return ir_attrs_make(r->b.module, (int)a->count, fields);
}

// What takes the place of value a.
static void replace(struct rebuild *r, const struct ir_node *n)
{
    ir_id v = (ir_id)r->e.a;
    if (r->e.kind == EDIT_TO_OPERAND)
        r->map[v] = r->map[ir_operand(r->g, n, (uint32_t)r->e.b)];
    else if (r->e.kind == EDIT_TO_CONSTANT)
        r->map[v] = ir_full(&r->b, ir_type_of(r->g, v), 1);
}

static void rebuild_node(struct rebuild *r, const struct ir_node *n)
{
    const struct ir_graph *g = r->g;
    ir_id v, *in = arena_array(r->b.module->arena, ir_id, n->n_in + 1);
    for (uint32_t i = 0; i < n->n_in; i++)
        in[i] = r->map[ir_operand(g, n, i)];
    if (n->op == IR_const && r->e.kind == EDIT_SHRINK)
        v = ir_full(&r->b, shrunk_type(r, ir_type_of(g, n->out)), 1);
    else if (n->op == IR_const)
        v = ir_rebuild(&r->b, g, n, in);
    else
        v = ir_build(&r->b, (enum ir_op)n->op, (int)n->n_in, in, shrunk_attrs(r, n->attrs));
    for (uint32_t i = 0; i < n->n_out; i++)
        if (!is_replaced(r, n->out + i))
            r->map[n->out + i] = v == IR_NONE ? IR_NONE : v + i;
}

// The graph with the edit.  Parameters that nothing reads go, or stay: those of a body do.
static uint32_t edit_graph(struct ir_module *m, const struct ir_graph *g, struct edit e,
                           bool keeps)
{
    struct rebuild r = {ir_builder_make(m, g->name, IR_BUILD_PLAIN), g, e, NULL, NULL};
    r.live = arena_array(m->arena, bool, g->values.count + 1);
    r.map = arena_array(m->arena, ir_id, g->values.count + 1);
    memset(r.map, 0xff, g->values.count * sizeof *r.map);
    ir_id output = g->outputs.count ? g->outputs.at[e.kind == EDIT_KEEP_OUTPUT ? e.a : 0] : 0;
    if (e.kind == EDIT_OUTPUT_INPUT)
        output = ir_operand(g, ir_node_of(g, output), (uint32_t)e.a);
    bool is_one = e.kind == EDIT_KEEP_OUTPUT || e.kind == EDIT_OUTPUT_INPUT;
    uint32_t n_outputs = is_one ? 1 : g->outputs.count;
    const ir_id *outputs = is_one ? &output : g->outputs.at;
    mark_live(&r, n_outputs, outputs);
    for (uint32_t i = 0; i < g->n_params; i++)
        if (r.live[i] || keeps)
            r.map[i] = ir_param(&r.b, shrunk_type(&r, ir_type_of(g, i)));
    if (e.kind == EDIT_TO_PARAM)
        r.map[e.a] = ir_param(&r.b, ir_type_of(g, (ir_id)e.a));
    for (uint32_t k = g->n_params; k < g->nodes.count; k++) {
        const struct ir_node *n = &g->nodes.at[k];
        if (is_live(&r, n))
            rebuild_node(&r, n);
        for (uint32_t i = 0; i < n->n_out; i++)
            if (is_replaced(&r, n->out + i) && r.live[n->out + i])
                replace(&r, n);
        if (r.b.status != JOT_OK)
            return IR_NONE;
    }
    for (uint32_t i = 0; i < n_outputs; i++)
        ir_output(&r.b, r.map[outputs[i]]);
    return r.b.status == JOT_OK ? ir_finish_function(&r.b) : IR_NONE;
}

// f with the edit in it, in one of the bodies of its nodes or in one of theirs.
static uint32_t edit_function(struct ir_module *m, uint32_t f, struct edit e, bool keeps)
{
    const struct ir_graph *g = ir_function(m, f);
    if (f == e.f)
        return edit_graph(m, g, e, keeps);
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_PLAIN);
    ir_id *map = arena_array(m->arena, ir_id, g->values.count + 1);
    ir_for_each_node (g, n) {
        const int64_t *bodies;
        int count = bodies_of(n, &bodies);
        uint32_t *edited = arena_array(m->arena, uint32_t, (size_t)count + 1);
        for (int i = 0; i < count; i++) {
            edited[i] = edit_function(m, (uint32_t)bodies[i], e, true);
            if (edited[i] == IR_NONE)
                return IR_NONE;
        }
        ir_id *in = arena_array(m->arena, ir_id, n->n_in + 1);
        for (uint32_t i = 0; i < n->n_in; i++)
            in[i] = map[ir_operand(g, n, i)];
        ir_id v = n->op == IR_param ? ir_param(&b, ir_type_of(g, n->out))
                  : count           ? ir_build(&b, (enum ir_op)n->op, (int)n->n_in, in,
                                               ir_with_functions(m, n->attrs, edited))
                                    : ir_rebuild(&b, g, n, in);
        if (b.status != JOT_OK)
            return IR_NONE;
        for (uint32_t i = 0; i < n->n_out; i++)
            map[n->out + i] = v + i;
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        ir_output(&b, map[g->outputs.at[i]]);
    return ir_finish_function(&b);
}

// The edited function, or IR_NONE when the edit does not fit.
static uint32_t apply(struct reducer *d, struct edit e)
{
    return e.kind == EDIT_INLINE ? pass_inline(d->m, d->f, 100000)
                                 : edit_function(d->m, d->f, e, d->keeps);
}

// -- Searching --------------------------------------------------------------------------------

struct trial {
    const struct reducer *d;
    uint32_t f;
};

static void try_in_child(void *ctx, struct strbuf *report)
{
    const struct trial *t = ctx;
    struct strbuf why = strbuf_make(t->d->m->arena);
    unsigned failed =
        program_check(t->d->m, t->f, t->d->seed, t->d->kind, t->d->property, &why);
    strbuf_add(report, failed == t->d->property ? "!" : ".");
}

// Whether the function fails; *ends: and its process goes on.
static bool fails(struct reducer *d, uint32_t f, bool *ends)
{
    struct trial t = {d, f};
    struct strbuf report = strbuf_make(d->m->arena);
    d->checks++;
    *ends = isolate_run(try_in_child, &t, SECONDS, &report);
    return !*ends || report.text[0] == '!';
}

// Whether it fails as the first one does: a loop that an edit leaves without an end is another failure.
// Functions are known by their content, so the edits that are tried again after each success take no
// time.
static bool still_fails(struct reducer *d, uint32_t f)
{
    for (uint32_t i = 0; i < d->refused.count; i++)
        if (d->refused.at[i] == f)
            return false;
    bool ends, is_failure = fails(d, f, &ends) && ends == d->ends;
    if (!is_failure)
        vec_push(d->m->arena, &d->refused, f);
    return is_failure;
}

// How large a function is; an edit that does not make it smaller would be tried for ever.
static int64_t size_of(const struct ir_module *m, uint32_t f)
{
    const struct ir_graph *g = ir_function(m, f);
    int64_t size = g->outputs.count + g->n_params;
    ir_for_each_node (g, n) {
        size += 1000 * (n->op != IR_param && n->op != IR_const) + 10 * (n->op == IR_const);
        for (uint32_t i = 0; i < n->n_out; i++) {
            struct ir_type t = ir_type_of(g, n->out + i);
            for (int k = 0; k < t.rank; k++)
                size += 1 + (ir_dims(m, t)[k] > 1) + (ir_dims(m, t)[k] > 9);
        }
        const int64_t *bodies;
        for (int i = bodies_of(n, &bodies); i-- > 0;)
            size += 10000 + size_of(m, (uint32_t)bodies[i]);
    }
    return size;
}

static bool improve(struct reducer *d, struct edit e)
{
    uint32_t f = d->checks < MOST_CHECKS ? apply(d, e) : IR_NONE;
    if (f == IR_NONE || size_of(d->m, f) >= size_of(d->m, d->f) || !still_fails(d, f))
        return false;
    d->f = f;
    return true;
}

static bool improve_value(struct reducer *d, uint32_t f, const struct ir_node *n, ir_id v)
{
    const struct ir_graph *g = ir_function(d->m, f);
    if (f != d->f &&
        !dtype_is_float(ir_dtype_of(g, v))) // a count or a test: the loop has an end
        return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (ir_type_equal(ir_type_of(g, ir_operand(g, n, i)), ir_type_of(g, v)) &&
            improve(d, (struct edit){EDIT_TO_OPERAND, v, i, f}))
            return true;
    return improve(d, (struct edit){EDIT_TO_CONSTANT, v, 0, f}) ||
           (f == d->f && improve(d, (struct edit){EDIT_TO_PARAM, v, 0, f}));
}

static bool improve_nodes(struct reducer *d, uint32_t f)
{
    const struct ir_graph *g = ir_function(d->m, f);
    for (uint32_t k = g->nodes.count; k-- > 0;) {
        const struct ir_node *n = &g->nodes.at[k];
        if (n->n_out == 0 && improve(d, (struct edit){EDIT_DROP, k, 0, f}))
            return true;
        for (uint32_t i = 0; n->op != IR_param && n->op != IR_const && i < n->n_out; i++)
            if (improve_value(d, f, n, n->out + i))
                return true;
        const int64_t *bodies;
        for (int i = bodies_of(n, &bodies); i-- > 0;)
            if (improve_nodes(d, (uint32_t)bodies[i]))
                return true;
    }
    return false;
}

static bool improve_extents(struct reducer *d)
{
    const struct ir_graph *g = ir_function(d->m, d->f);
    for (uint32_t v = 0; v < g->values.count; v++) {
        struct ir_type t = ir_type_of(g, v);
        for (int i = 0; i < t.rank; i++) {
            int64_t n = ir_dims(d->m, t)[i];
            const int64_t smaller[] = {1, 2, 3, n / 2};
            for (int k = 0; k < 4; k++)
                if (smaller[k] < n && smaller[k] > 0 &&
                    improve(d, (struct edit){EDIT_SHRINK, n, smaller[k], d->f}))
                    return true;
        }
    }
    return false;
}

static bool improve_somehow(struct reducer *d)
{
    const struct ir_graph *g = ir_function(d->m, d->f);
    for (uint32_t i = 0; i < g->outputs.count && g->outputs.count > 1; i++)
        if (improve(d, (struct edit){EDIT_KEEP_OUTPUT, i, 0, d->f}))
            return true;
    const struct ir_node *last = ir_node_of(g, g->outputs.at[0]);
    for (uint32_t i = 0; i < last->n_in; i++)
        if (improve(d, (struct edit){EDIT_OUTPUT_INPUT, i, 0, d->f}))
            return true;
    if (improve(d, (struct edit){EDIT_INLINE, 0, 0, d->f}))
        return true;
    return improve_nodes(d, d->f) || improve_extents(d);
}

uint32_t program_reduce(struct ir_module *m, uint32_t f, uint64_t seed, unsigned kind,
                        unsigned property)
{
    struct reducer d = {.m = m, .seed = seed, .kind = kind, .property = property, .f = f};
    fails(&d, f, &d.ends);
    do {
        d.keeps = false;
        while (improve_somehow(&d))
            continue;
        d.keeps = true;
    } while (improve_somehow(&d));
    return d.f;
}
