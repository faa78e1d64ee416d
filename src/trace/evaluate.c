// SPDX-License-Identifier: Apache-2.0
// What earlier stages have to give first, stage by stage, then what is asked for (carried.h).
#include "trace/evaluate.h"

#include "passes/passes.h"
#include "runtime/array.h"
#include "trace/carried.h"
#include "trace/lazy_cache.h"

// One program: the values that are asked for, then the results of the effects that happen meanwhile,
// for an effect happens once, then what is carried.
struct evaluation {
    struct rt_frame frame; // while it runs
    struct trace *t;
    struct arena *arena; // of the module of the scope
    VEC(ir_id) outs;
    uint32_t n_asked, n_effects;
    bool is_earlier;         // a stage before the last one, without effects
    uint32_t n_in, n_hidden; // hidden parameters before it
    jot_array **in, **out;
};

static jot_array *array_of_number(const struct trace *t, const struct trace_hidden *h)
{
    return jot_array_copy(ir_dtype(ir_type_of(t->b.graph, h->id)), h->scalar,
                          (const int64_t[]){JOT_END});
}

// Whether it is made of nothing: what is computed alike elsewhere is better not an input.
static bool is_constant(const struct trace *t, ir_id id)
{
    const struct ir_graph *g = t->b.graph;
    const struct ir_node *n = ir_node_of(g, id);
    if (n->op == IR_broadcast_in_dim)
        n = ir_node_of(g, ir_operand(g, n, 0));
    return n->n_in == 0 && n->op != IR_param;
}

static void add_effects(struct evaluation *e)
{
    const struct ir_graph *g = e->t->b.graph;
    for (uint32_t at = e->t->done_effects; at < g->nodes.count; at++)
        for (uint32_t k = 0; ir_has_effect(g, &g->nodes.at[at]) && k < g->nodes.at[at].n_out;
             k++)
            vec_push(e->arena, &e->outs, g->nodes.at[at].out + k);
    e->n_effects = e->outs.count - e->n_asked;
}

// What is evaluated is an array from then on, and stays in the graph, for derivatives.
static void add_hidden(struct evaluation *e)
{
    struct trace *t = e->t;
    for (uint32_t i = 0; i < e->outs.count; i++)
        if (!trace_hidden_find(t, e->outs.at[i]) &&
            (i >= e->n_asked || !is_constant(t, e->outs.at[i])))
            trace_hide(t, (struct trace_hidden){.kind = TRACE_ARRAY, .id = e->outs.at[i]});
}

// The caller has the first arrays, the others are nobody else's.
static void fill_hidden(struct evaluation *e)
{
    struct trace *t = e->t;
    for (uint32_t i = 0; i < e->outs.count; i++) {
        struct trace_hidden *h = trace_hidden_find(t, e->outs.at[i]);
        bool fills = h && h->kind == TRACE_ARRAY && !h->array, is_asked = i < e->n_asked;
        if (fills)
            h->array = is_asked ? jot_array_retain(e->out[i]) : e->out[i];
        else if (!is_asked)
            jot_array_release(e->out[i]);
        if (fills && i >= e->n_asked + e->n_effects)
            carried_add(t, h);
    }
}

// The function of the program, and in *out_key what it is known by without what it is expected to
// give besides; IR_NONE with an error.
static uint32_t close_program(struct evaluation *e, uint32_t **hidden, struct hash128 *out_key)
{
    struct trace *t = e->t;
    uint32_t effects = t->done_effects, n;
    if (e->is_earlier)
        t->done_effects = t->b.graph->nodes.count;
    uint32_t f = trace_close(t, (int)e->outs.count, e->outs.at, &e->n_in, hidden);
    if (f != IR_NONE && !e->is_earlier) {
        *out_key = ir_graph_key(ir_function(t->module, f));
        const ir_id *more = carried_expected(t, *out_key, &n);
        for (uint32_t i = 0; i < n; i++)
            vec_push(e->arena, &e->outs, more[i]);
        if (n)
            f = trace_close(t, (int)e->outs.count, e->outs.at, &e->n_in, hidden);
    }
    t->done_effects = effects;
    // Before any transform, as for functions.
    return f == IR_NONE ? f : pass_form_fma(t->module, f);
}

static bool take_inputs(struct evaluation *e, const uint32_t *hidden)
{
    for (uint32_t i = 0; i < e->n_in; i++) {
        struct trace_hidden *h = &e->t->hidden.at[hidden[i]];
        carried_use(e->t, h);
        e->in[i] = h->array ? jot_array_retain(h->array) : array_of_number(e->t, h);
        if (!e->in[i])
            return false;
    }
    return true;
}

static void release_inputs(struct evaluation *e)
{
    for (uint32_t i = 0; i < e->n_in; i++)
        jot_array_release(e->in[i]);
}

// Code of the user has left the run: what it was to give is not there, and its effects are over.
static void abandon_run(struct rt_frame *frame)
{
    struct evaluation *e = (struct evaluation *)frame;
    struct trace *t = e->t;
    release_inputs(e);
    trace_unhide(t, t->hidden.count - e->n_hidden);
    if (!e->is_earlier)
        t->done_effects = t->b.graph->nodes.count;
}

__attribute__((noinline)) static jot_status run_open(struct evaluation *e, uint32_t f,
                                                     bool *has_run)
{
    RT_MARK mark = {0};
    const struct ir_graph *g = ir_function(e->t->module, f);
    struct hash128 key = ir_graph_key(g);
    rt_frame_open(&e->frame, &mark, abandon_run);
    jot_status status = lazy_run(g, key, e->t->root->mesh, e->in, e->out, has_run);
    rt_frame_close(&mark);
    return status;
}

static jot_status run_evaluation(struct evaluation *e)
{
    struct trace *t = e->t;
    uint32_t *hidden;
    struct hash128 alone = {0};
    e->n_hidden = t->hidden.count;
    if (!e->is_earlier)
        add_effects(e);
    uint32_t f = close_program(e, &hidden, &alone);
    if (f == IR_NONE)
        return trace_report(t->latest);
    // Whatever needs the arena comes before the references, which leaving it would lose.
    add_hidden(e);
    carried_reserve(t, e->outs.count);
    e->in = arena_array(e->arena, jot_array *, e->n_in + 1);
    e->out = arena_array(e->arena, jot_array *, e->outs.count + 1);
    bool has_run = false;
    jot_status status = take_inputs(e, hidden) ? run_open(e, f, &has_run) : status_last();
    release_inputs(e);
    if (has_run && !e->is_earlier)
        t->done_effects = t->b.graph->nodes.count;
    if (status != JOT_OK) {
        trace_unhide(t, t->hidden.count - e->n_hidden);
        return status;
    }
    fill_hidden(e);
    if (!e->is_earlier)
        carried_end_stage(t, alone);
    return JOT_OK;
}

// In the arena, for a run may be left.
static struct evaluation *make_evaluation(struct trace *t, bool is_earlier)
{
    struct evaluation *e = arena_new(t->module->arena, struct evaluation);
    e->t = t;
    e->arena = t->module->arena;
    e->is_earlier = is_earlier;
    return e;
}

// Makes arrays of what the last stage needs of those before it.
static jot_status run_earlier(struct trace *t, int n, const ir_id *outs)
{
    struct arena *arena = t->module->arena;
    uint32_t count;
    const struct carried_value *c = carried_find(t, n, outs, &count);
    for (uint32_t i = 0; i < count;) {
        struct evaluation *e = make_evaluation(t, true);
        for (uint32_t stage = c[i].stage; i < count && c[i].stage == stage; i++)
            vec_push(arena, &e->outs, c[i].id);
        JOT_TRY(run_evaluation(e));
    }
    return JOT_OK;
}

static bool has_effects_to_come(const struct trace *t)
{
    const struct ir_graph *g = t->b.graph;
    for (uint32_t at = t->done_effects; at < g->nodes.count; at++)
        if (ir_has_effect(g, &g->nodes.at[at]))
            return true;
    return false;
}

// The array that the value stands for already, which is the user's from then on; or NULL.
static jot_array *known_array(struct trace *t, ir_id id)
{
    struct trace_hidden *h = trace_hidden_find(t, id);
    if (h && h->array && t->history)
        carried_claim(t, h);
    return h ? h->array : NULL;
}

jot_status scope_evaluate(const char *op, size_t n, const jot_value *values, jot_array **out)
{
    struct trace *t = trace_top();
    struct evaluation *e = make_evaluation(t, false);
    ir_id *ids = arena_array(e->arena, ir_id, n + 1);
    for (size_t i = 0; i < n; i++) {
        jot_value v = trace_import(op, values[i]);
        if (trace_is_error(v))
            return trace_report(trace_slot_of(v)->error);
        ids[i] = trace_strong(v);
    }
    bool has_effects = has_effects_to_come(t), has_all = true;
    for (size_t i = 0; i < n; i++)
        has_all &= known_array(t, ids[i]) != NULL;
    if (!has_all || has_effects)
        JOT_TRY(run_earlier(t, (int)n, ids));
    for (size_t i = 0; i < n; i++)
        if (!known_array(t, ids[i]))
            vec_push(e->arena, &e->outs, ids[i]);
    e->n_asked = e->outs.count;
    if (e->n_asked || has_effects)
        JOT_TRY(run_evaluation(e));
    for (size_t i = 0, asked = 0; i < n; i++) {
        jot_array *known =
            asked < e->n_asked && e->outs.at[asked] == ids[i] ? NULL : known_array(t, ids[i]);
        out[i] = known ? jot_array_retain(known) : e->out[asked++];
    }
    if (t->history)
        carried_trim(t);
    return JOT_OK;
}
