// SPDX-License-Identifier: Apache-2.0
// Checks everything a graph promises, without trusting any of it: numbers are compared with the
// tables they point into before they are followed.  A node whose own fields are broken is
// reported and its types are left alone; everything else is still checked.
#include "base/bitset.h"
#include "ir/infer.h"

#include <stdarg.h>
#include <stdio.h>

struct verifier {
    struct ir_module *m;
    struct arena *scratch;
    const struct ir_graph *g; // being checked
    uint32_t number;          // of it in the module, or IR_NONE
    struct strbuf *report;
    int faults;
    struct bitset broken; // functions of the module whose signature cannot be read
};

__attribute__((format(printf, 2, 3))) static bool fault(struct verifier *v, const char *format,
                                                        ...)
{
    va_list args;
    char text[1024];
    v->faults++;
    if (!v->report)
        return false;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (v->number != IR_NONE)
        strbuf_printf(v->report, "function %u", v->number);
    else
        strbuf_add(v->report, "graph");
    if (v->g->name)
        strbuf_printf(v->report, " %s", v->g->name);
    strbuf_printf(v->report, ": %s\n", text);
    return false;
}

static const char *op_name(const struct ir_node *n)
{
    return n->op < IR_OP_COUNT ? ir_op_get(n->op)->name : "?";
}

static uint32_t index_of(const struct verifier *v, const struct ir_node *n)
{
    return (uint32_t)(n - v->g->nodes.at);
}

static bool check_type(struct verifier *v, uint32_t value)
{
    struct ir_type t = v->g->values.at[value].type;
    if (!dtype_is_valid(t.dtype))
        return fault(v, "value %%%u: %d is not a dtype", value, t.dtype);
    if (t.shape >= v->m->shapes.count)
        return fault(v, "value %%%u: shape %u of %u in the module", value, t.shape,
                     v->m->shapes.count);
    const int64_t *shape = v->m->shapes.at[t.shape];
    if (shape[0] != t.rank)
        return fault(v, "value %%%u: rank %d, but its shape has %lld axes", value, t.rank,
                     (long long)shape[0]);
    if (t.varies >> v->m->axes.count)
        return fault(v, "value %%%u: it varies over axes %#x of %u in the module", value,
                     t.varies, v->m->axes.count);
    if (!infer_dims_fit(ir_dtype(t), t.rank, shape + 1))
        return fault(v, "value %%%u: its extents are negative or larger than 2^62 bytes",
                     value);
    return true;
}

static bool check_field(struct verifier *v, const struct ir_node *n, const struct ir_field *f)
{
    uint32_t at = index_of(v, n);
    if ((unsigned)f->key >= IR_KEY_COUNT)
        return fault(v, "node %u (%s): %d is not an attribute", at, op_name(n), (int)f->key);
    const struct ir_key_info *info = &ir_key_table[f->key];
    if ((info->kind == IR_KIND_INT || info->kind == IR_KIND_DTYPE) && f->count != 1)
        return fault(v, "node %u (%s): %u numbers in the attribute %s, which is one", at,
                     op_name(n), f->count, info->name);
    if (info->kind == IR_KIND_DTYPE && (f->ints[0] < 0 || f->ints[0] >= DTYPE_COUNT))
        return fault(v, "node %u (%s): %lld is not a dtype", at, op_name(n),
                     (long long)f->ints[0]);
    for (uint32_t i = 0; info->kind == IR_KIND_AXES && i < f->count; i++)
        if (f->ints[i] < 0 || f->ints[i] >= v->m->axes.count)
            return fault(v, "node %u (%s): axis %lld of %u in the module", at, op_name(n),
                         (long long)f->ints[i], v->m->axes.count);
    for (uint32_t i = 0; info->kind == IR_KIND_FUNCTIONS && i < f->count; i++) {
        // A function exists before it is used, so numbers that fall rule out every cycle.
        int64_t limit = v->number == IR_NONE ? v->m->functions.count : v->number;
        if (f->ints[i] < 0 || f->ints[i] >= v->m->functions.count)
            return fault(v, "node %u (%s): function %lld of %u in the module", at, op_name(n),
                         (long long)f->ints[i], v->m->functions.count);
        if (f->ints[i] >= limit)
            return fault(v,
                         "node %u (%s): function %lld uses function %lld, which is not older",
                         at, op_name(n), (long long)v->number, (long long)f->ints[i]);
    }
    return true;
}

static bool check_attrs(struct verifier *v, const struct ir_node *n)
{
    const struct ir_attrs *a = n->attrs;
    bool ok = true;
    if (!a)
        return true;
    if (a->id >= v->m->attrs.count || v->m->attrs.at[a->id] != a)
        ok = fault(v, "node %u (%s): its attributes are not interned", index_of(v, n),
                   op_name(n));
    for (uint32_t i = 0; i < a->count; i++) {
        if (i && a->fields[i].key <= a->fields[i - 1].key)
            ok = fault(v, "node %u (%s): its attributes are not in increasing order",
                       index_of(v, n), op_name(n));
        ok = check_field(v, n, &a->fields[i]) && ok;
    }
    return ok;
}

static bool check_operands(struct verifier *v, const struct ir_node *n)
{
    const struct ir_graph *g = v->g;
    uint32_t at = index_of(v, n);
    bool ok = true;
    if (n->in > g->operands.count || n->n_in > g->operands.count - n->in)
        return fault(v, "node %u (%s): %u operands from %u of %u in the graph", at, op_name(n),
                     n->n_in, n->in, g->operands.count);
    for (uint32_t i = 0; i < n->n_in; i++) {
        ir_id x = ir_operand(g, n, i);
        if (x >= g->values.count)
            ok = fault(v, "node %u (%s): operand %u is %%%u of %u values", at, op_name(n), i, x,
                       g->values.count);
        else if (g->values.at[x].node >= at)
            ok = fault(v, "node %u (%s): operand %u is %%%u, which is not defined before it",
                       at, op_name(n), i, x);
    }
    return ok;
}

static bool check_results(struct verifier *v, const struct ir_node *n, struct bitset *claimed)
{
    const struct ir_graph *g = v->g;
    uint32_t at = index_of(v, n);
    bool ok = true;
    if (n->out > g->values.count || n->n_out > g->values.count - n->out)
        return fault(v, "node %u (%s): %u results from %%%u of %u values", at, op_name(n),
                     n->n_out, n->out, g->values.count);
    for (uint32_t i = 0; i < n->n_out; i++) {
        ir_id x = n->out + i;
        if (bitset_has(claimed, x))
            ok = fault(v, "node %u (%s): %%%u is the result of two nodes", at, op_name(n), x);
        if (g->values.at[x].node != at)
            ok = fault(v, "node %u (%s): its result %%%u says it is of node %u", at, op_name(n),
                       x, g->values.at[x].node);
        bitset_set(claimed, x);
    }
    return ok;
}

static bool check_place(struct verifier *v, const struct ir_node *n)
{
    uint32_t at = index_of(v, n);
    bool is_param = at < v->g->n_params, ok = true;
    if (n->op >= IR_OP_COUNT)
        return fault(v, "node %u: %d is not an op", at, n->op);
    if (is_param && (n->op != IR_param || n->n_in || n->n_out != 1 || n->out != at))
        ok = fault(v, "node %u (%s): the first %u nodes are the parameters %%0 to %%%u", at,
                   op_name(n), v->g->n_params, v->g->n_params - 1);
    if (!is_param && n->op == IR_param)
        ok = fault(v, "node %u (param): a parameter after other nodes", at);
    if (n->where >= v->m->wheres.count)
        ok = fault(v, "node %u (%s): place %u of %u in the module", at, op_name(n), n->where,
                   v->m->wheres.count);
    return ok;
}

// Whether every body of the node may be read.
static bool has_sound_bodies(const struct verifier *v, const struct ir_node *n)
{
    const struct ir_field *f = ir_field_find(n->attrs, IR_KEY_functions);
    for (uint32_t i = 0; f && i < f->count; i++) {
        if (bitset_has(&v->broken, (uint32_t)f->ints[i]))
            return false;
    }
    return true;
}

// The types are those that the rule of the op gives.
static void check_inferred(struct verifier *v, const struct ir_node *n)
{
    const struct ir_graph *g = v->g;
    struct ir_graph view = *g;
    struct ir_builder probe = {.graph = &view, .module = v->m};
    struct ir_type one;
    struct ir_infer call = {.b = &probe,
                            .op = (enum ir_op)n->op,
                            .n_in = (int)n->n_in,
                            .in = ir_operands(g, n),
                            .attrs = n->attrs,
                            .types = &one};
    uint32_t at = index_of(v, n);
    if (!ir_infer(&call)) {
        fault(v, "node %u (%s): %s", at, op_name(n), probe.message);
        return;
    }
    if (call.n_out != n->n_out) {
        fault(v, "node %u (%s): it has %u results, not %d", at, op_name(n), n->n_out,
              call.n_out);
        return;
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        struct ir_type t = ir_type_of(g, n->out + i);
        if (!ir_type_equal(t, call.types[i]))
            fault(v, "node %u (%s): result %%%u is %s, not %s", at, op_name(n), n->out + i,
                  ir_type_text(v->m, t), ir_type_text(v->m, call.types[i]));
    }
}

static bool check_outputs(struct verifier *v)
{
    const struct ir_graph *g = v->g;
    bool ok = true;
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        if (g->outputs.at[i] >= g->values.count)
            ok = fault(v, "output %u is %%%u of %u values", i, g->outputs.at[i],
                       g->values.count);
    }
    return ok;
}

// Whether a caller of the graph may read its signature.
static bool check_graph(struct verifier *v)
{
    const struct ir_graph *g = v->g;
    struct bitset claimed = bitset_make(v->scratch, g->values.count);
    struct bitset bad_values = bitset_make(v->scratch, g->values.count);
    bool readable = check_outputs(v);
    if (g->n_params > g->nodes.count || g->n_params > g->values.count)
        return fault(v, "%u parameters, but %u nodes and %u values", g->n_params,
                     g->nodes.count, g->values.count);
    for (uint32_t i = 0; i < g->values.count; i++) {
        if (!check_type(v, i)) {
            bitset_set(&bad_values, i);
            readable = false;
        }
    }
    ir_for_each_node (g, n) {
        bool placed = check_place(v, n), attrs = check_attrs(v, n);
        bool operands = check_operands(v, n), results = check_results(v, n, &claimed);
        bool sound = placed && attrs && operands && results;
        for (uint32_t i = 0; sound && i < n->n_in; i++)
            sound = !bitset_has(&bad_values, ir_operand(g, n, i));
        for (uint32_t i = 0; sound && i < n->n_out; i++)
            sound = !bitset_has(&bad_values, n->out + i);
        if (sound && n->op != IR_param && has_sound_bodies(v, n))
            check_inferred(v, n);
    }
    for (uint32_t i = 0; i < g->values.count; i++) {
        if (!bitset_has(&claimed, i))
            fault(v, "value %%%u is the result of no node", i);
    }
    return readable;
}

// Marks the functions a graph uses, as far as their numbers can be believed.
static void mark_used(const struct verifier *v, const struct ir_graph *g, struct bitset *used)
{
    for (uint32_t i = 0; i < g->nodes.count; i++) {
        const struct ir_attrs *a = g->nodes.at[i].attrs;
        uint32_t op = g->nodes.at[i].op;
        if (!a || op >= IR_OP_COUNT || !ir_has_bodies((enum ir_op)op))
            continue;
        const struct ir_field *f = ir_field_find(a, IR_KEY_functions);
        for (uint32_t k = 0; f && k < f->count; k++) {
            if (f->ints[k] >= 0 && f->ints[k] < v->m->functions.count)
                bitset_set(used, (uint32_t)f->ints[k]);
        }
    }
}

static jot_status verify(struct arena *scratch, void *ctx)
{
    struct verifier *v = ctx;
    struct ir_module *m = v->m;
    const struct ir_graph *g = v->g;
    uint32_t n_functions = m->functions.count, own = IR_NONE;
    v->scratch = scratch;
    v->broken = bitset_make(scratch, n_functions);
    struct bitset used = bitset_make(scratch, n_functions);
    mark_used(v, g, &used);
    for (uint32_t i = n_functions; i-- > 0;) {
        if (m->functions.at[i] == g)
            own = i;
        else if (bitset_has(&used, i))
            mark_used(v, m->functions.at[i], &used);
    }
    // Callees have lower numbers and come first, so that callers know which to believe.
    for (uint32_t i = 0; i < n_functions; i++) {
        v->g = m->functions.at[i];
        v->number = i;
        if (v->g != g && bitset_has(&used, i) && !check_graph(v))
            bitset_set(&v->broken, i);
    }
    v->g = g;
    v->number = own;
    check_graph(v);
    return JOT_OK;
}

int ir_verify(const struct ir_graph *g, struct strbuf *report)
{
    struct verifier v = {.m = g->module, .g = g, .report = report};
    if (arena_lend(verify, &v) != JOT_OK)
        arena_exhausted();
    return v.faults;
}
