// SPDX-License-Identifier: Apache-2.0
// From a graph to a program: calls become their bodies, values are grouped into kernels and library
// calls (group.c), kernels are written (write/write.c), equal ones once, and memory is planned
// (plan.c).
#include "schedule/schedule.h"

#include "base/status.h"
#include "ir/control.h"
#include "ir/indexing.h"
#include "ir/number.h"
#include "passes/expand/expand.h"
#include "passes/expand/scatter_parts.h"
#include "passes/passes.h"
#include "passes/transform.h"
#include "schedule/control/control.h"
#include "schedule/copies.h"
#include "schedule/group/group.h"
#include "schedule/internal.h"
#include "schedule/kernels/points.h"
#include "schedule/library/library.h"
#include "schedule/order.h"
#include "schedule/pipeline.h"
#include "schedule/plan/plan.h"
#include "schedule/rewrites.h"
#include "schedule/write/write.h"

#include <string.h>

#define LEAST_ACCUMULATION 1024 // numbers that are not worth a kernel of their own

// ---- Calls

static int64_t parts_of(const struct ir_graph *g, const struct ir_node *n)
{
    if (n->op != IR_scatter_add)
        return 1;
    return ir_scatter_parts(
        g->module, IR_scatter_add, n->attrs, ir_type_of(g, ir_operand(g, n, 0)),
        ir_type_of(g, ir_operand(g, n, 1)), ir_type_of(g, ir_operand(g, n, 2)));
}

// Lanes that no kernel can have to itself are computed side by side.
static bool is_spread(const struct ir_graph *g, const struct ir_node *n,
                      const struct schedule_options *o)
{
    return n->op == IR_scan && ir_scan_of(n).lanes && !ir_has_effect(g, n) &&
           (o->separate || o->steps || !schedule_is_resident(g, n));
}

static bool has_calls(const struct ir_graph *g, const struct schedule_options *o)
{
    ir_for_each_node (g, n)
        if (ir_op_class((enum ir_op)n->op) == IR_CLASS_CALL || parts_of(g, n) > 1 ||
            is_spread(g, n, o))
            return true;
    return false;
}

static void add_spread(struct ir_builder *b, const struct ir_node *n, const ir_id *in,
                       ir_id *out)
{
    uint32_t f;
    jot_status status = pass_spread_lanes(b->module, n, &f);
    if (status == JOT_OK)
        ir_inline(b, ir_function(b->module, f), in, out);
    else
        ir_fail(b, status, "%s", jot_error_message());
}

// One level of calls inlined, lanes spread, and scatters cut into parts.
static struct ir_graph *inline_level(const struct ir_graph *g, const struct schedule_options *o)
{
    struct ir_module *m = g->module;
    struct ir_builder b = ir_builder_make(m, g->name, IR_BUILD_ALL);
    ir_id *map = arena_array(m->arena, ir_id, g->values.count);
    VEC(ir_id) in = {0};
    ir_for_each_node (g, n) {
        in.count = 0;
        for (uint32_t i = 0; i < n->n_in; i++)
            vec_push(m->arena, &in, map[ir_operand(g, n, i)]);
        b.where = n->where;
        if (n->op == IR_param) {
            map[n->out] = ir_param(&b, ir_type_of(g, n->out));
        } else if (ir_op_class((enum ir_op)n->op) == IR_CLASS_CALL) {
            ir_inline(&b, ir_body(g, n, 0), in.at, map + n->out);
        } else if (is_spread(g, n, o)) {
            add_spread(&b, n, in.at, map + n->out);
        } else if (parts_of(g, n) > 1) {
            map[n->out] = scatter_in_parts(&b, n, in.at, parts_of(g, n));
        } else {
            ir_id first = ir_rebuild(&b, g, n, in.at);
            for (uint32_t k = 0; k < n->n_out; k++)
                map[n->out + k] = first + k;
        }
    }
    pass_copy_outputs(&b, g, map);
    struct ir_graph *out = ir_finish(&b);
    return out ? ir_canonical(out) : NULL;
}

// ---- Memories

uint32_t schedule_add_memory(struct schedule *s, struct nest_memory m)
{
    vec_push(s->program->arena, &s->program->memories, m);
    return s->program->memories.count - 1;
}

const char *schedule_place(const struct schedule *s, const struct ir_node *n)
{
    return s->options->says_places ? ir_where_text(s->g->module, n->where) : NULL;
}

static const char *name_of(struct schedule *s, const char *kind, uint32_t i)
{
    struct strbuf b = strbuf_make(s->program->arena);
    strbuf_printf(&b, "%s%u", kind, i);
    return b.text;
}

uint32_t schedule_memory(struct schedule *s, ir_id v)
{
    const struct ir_node *n = ir_node_of(s->g, v);
    if (s->part_of[v] != NONE)
        return schedule_memory(s, s->part_of[v]);
    if (s->memory_of[v] != NONE)
        return s->memory_of[v];
    struct nest_memory m = {.dtype = ir_dtype_of(s->g, v), .count = value_count(s, v)};
    if (n->op == IR_const) {
        m.kind = NEST_CONSTANT;
        m.data = ir_const_data(n);
        m.name = name_of(s, "c", v);
    } else {
        m.kind = NEST_TEMPORARY;
        m.name = name_of(s, "t", v);
    }
    return s->memory_of[v] = schedule_add_memory(s, m);
}

static uint32_t add_argument(struct schedule *s, enum nest_memory_kind kind, ir_id v,
                             uint32_t index)
{
    return schedule_add_memory(
        s, (struct nest_memory){.kind = kind,
                                .dtype = ir_dtype_of(s->g, v),
                                .count = value_count(s, v),
                                .index = index,
                                .name = name_of(s, kind == NEST_INPUT ? "x" : "y", index)});
}

// Parameters are in their memories, and outputs that are stored by a step go to theirs.
static void bind_arguments(struct schedule *s, const uint32_t *in, const uint32_t *out)
{
    const struct ir_graph *g = s->g;
    for (uint32_t i = 0; i < g->n_params; i++)
        s->memory_of[i] = in[i];
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        ir_id v = g->outputs.at[i];
        if (s->memory_of[v] == NONE && ir_node_of(g, v)->op != IR_const)
            s->memory_of[v] = out[i];
    }
}

// ---- Steps

void schedule_step(struct schedule *s, struct nest_step step)
{
    vec_push(s->program->arena, &s->program->steps, step);
}

static uint32_t find_nest(struct schedule *s, struct nest *nest)
{
    uint64_t h = nest_hash(nest);
    for (struct hash_probe p = hash_probe(s->kernels, h); hash_next(s->kernels, &p);)
        if (nest_equal(s->program->nests.at[p.id], nest))
            return p.id;
    vec_push(s->program->arena, &s->program->nests, nest);
    hash_insert(s->program->arena, s->kernels, h, s->program->nests.count - 1);
    return s->program->nests.count - 1;
}

void schedule_kernel_step(struct schedule *s, const struct kernel *k, const char *reason)
{
    schedule_step(s,
                  (struct nest_step){.kind = NEST_STEP_KERNEL,
                                     .nest = find_nest(s, k->nest),
                                     .n_memories = k->n_memories,
                                     .memories = k->memories,
                                     .place = s->options->says_places ? k->nest->place : NULL,
                                     .reason = reason});
}

static bool is_empty(const struct schedule *s, const struct group *g)
{
    for (uint32_t i = 0; i < g->roots.count; i++)
        if (value_count(s, g->roots.at[i]) != 0)
            return false;
    return true;
}

static void add_kernel_step(struct schedule *s, uint32_t group)
{
    struct group *g = &s->groups.at[group];
    struct strbuf name = strbuf_make(s->program->arena);
    if (is_empty(s, g))
        return;
    strbuf_printf(&name, "k%u_%s", s->program->nests.count,
                  ir_op_get((enum ir_op)ir_node_of(s->g, g->roots.at[0])->op)->name);
    struct kernel k = nest_from_group(s, group, name.text);
    k.nest->place = ir_where_text(s->g->module, ir_node_of(s->g, g->roots.at[0])->where);
    schedule_kernel_step(s, &k, g->reason);
}

static void add_gemm_step(struct schedule *s, uint32_t group)
{
    struct group *g = &s->groups.at[group];
    struct nest_step step = {.kind = NEST_STEP_GEMM, .n_memories = 3, .reason = g->reason};
    ir_id v = g->roots.at[0], base[2];
    uint32_t *memories = arena_array(s->program->arena, uint32_t, 3);
    gemm_of_dot(s, ir_node_of(s->g, v), &step.gemm, base);
    memories[0] = schedule_memory(s, base[0]);
    memories[1] = schedule_memory(s, base[1]);
    memories[2] = schedule_memory(s, v);
    step.place = schedule_place(s, ir_node_of(s->g, v));
    step.memories = memories;
    schedule_step(s, step);
}

void schedule_add_copy(struct schedule *s, uint32_t to, uint32_t from, const char *why,
                       const struct ir_node *by)
{
    uint32_t *memories = arena_array(s->program->arena, uint32_t, 2);
    memories[0] = to;
    memories[1] = from;
    if (to != from && s->program->memories.at[to].count != 0)
        schedule_step(s, (struct nest_step){.kind = NEST_STEP_COPY,
                                            .n_memories = 2,
                                            .memories = memories,
                                            .place = by ? schedule_place(s, by) : NULL,
                                            .reason = schedule_reason(s, why, by)});
}

// An operand that only an update reads is made in the memory of the result.
static void share_updated(struct schedule *s)
{
    const struct ir_graph *g = s->g;
    for (uint32_t i = g->nodes.count; i-- > 0;) {
        const struct ir_node *n = &g->nodes.at[i];
        if (!node_is_update(n) || s->decision[n->out] != DECIDE_MEMBER ||
            s->groups.at[group_root(s, s->group_of[n->out])].roots.at[0] != n->out ||
            s->groups.at[group_root(s, s->group_of[n->out])].kind != GROUP_UPDATE)
            continue;
        ir_id x = ir_operand(g, n, 0);
        if (x < g->n_params || ir_node_of(g, x)->op == IR_const || s->is_output[x] ||
            s->uses[x] != 1)
            continue;
        s->memory_of[x] = schedule_memory(s, n->out);
    }
}

// The kernel of an update, after what brings its operand to its memory.
static void add_update_step(struct schedule *s, uint32_t group)
{
    ir_id v = s->groups.at[group].roots.at[0];
    const struct ir_node *n = ir_node_of(s->g, v);
    uint32_t to = schedule_memory(s, v), from = schedule_memory(s, ir_operand(s->g, n, 0));
    schedule_add_copy(s, to, from, "an update keeps its operand", n);
    add_kernel_step(s, group);
}

static void add_copies(struct schedule *s, const uint32_t *out)
{
    const struct ir_graph *g = s->g;
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        ir_id v = g->outputs.at[i];
        uint32_t from = schedule_memory(s, v);
        if (from != out[i])
            schedule_add_copy(s, out[i], from,
                              v < g->n_params ? "the output is an input"
                              : ir_node_of(g, v)->op == IR_const
                                  ? "the output is a constant"
                                  : "the output is another output",
                              NULL);
    }
}

static void add_step(struct schedule *s, uint32_t group)
{
    enum group_kind kind = s->groups.at[group].kind;
    bool is_loop = s->has_loops && s->groups.at[group].resident;
    if (s->is_trial && kind != GROUP_KERNEL && kind != GROUP_UPDATE && !is_loop) {
        s->has_steps = true;
        return;
    }
    switch (kind) {
    case GROUP_GEMM:
        add_gemm_step(s, group);
        return;
    case GROUP_LIBRARY:
        schedule_library(s, group);
        return;
    case GROUP_UPDATE:
        add_update_step(s, group);
        return;
    case GROUP_CONTROL:
        schedule_control(s, group);
        return;
    case GROUP_EFFECT:
        schedule_effect(s, group);
        return;
    case GROUP_KERNEL:
        add_kernel_step(s, group);
        return;
    }
}

static void add_steps(struct schedule *s)
{
    uint32_t n;
    const uint32_t *order = schedule_order(s, &n);
    s->n_bound = s->axes.atoms.count;
    s->bound = arena_array(s->scratch, uint32_t, s->n_bound);
    memset(s->bound, 0xff, s->n_bound * sizeof *s->bound);
    for (uint32_t i = 0; i < n; i++) {
        // Of what a step needs nothing but atoms is left.
        struct arena_mark mark = arena_mark(s->scratch);
        struct lane_graph *loops = s->axes.loops;
        uint32_t n_atoms = s->axes.atoms.count;
        add_step(s, order[i]);
        if (s->axes.atoms.count != n_atoms)
            continue;
        arena_rewind(s->scratch, mark);
        s->axes.loops = loops;
    }
}

static void make_tables(struct schedule *s)
{
    uint32_t n = s->g->values.count;
    struct arena *a = s->scratch;
    s->first_demand = arena_array(a, uint32_t, n);
    s->decision = arena_array(a, uint8_t, n);
    s->group_of = arena_array(a, uint32_t, n);
    s->view_of = arena_array(a, struct view, n);
    s->folded_of = arena_array(a, struct atoms, n);
    s->is_stored = arena_array(a, bool, n);
    s->is_forced = arena_array(a, bool, n);
    s->is_old = arena_array(a, bool, n);
    s->is_narrow = arena_array(a, bool, n);
    s->is_output = arena_array(a, bool, n);
    if (!s->is_apart)
        s->is_apart = arena_array(a, bool, n);
    s->uses = arena_array(a, uint32_t, n);
    s->cheap = arena_array(a, uint8_t, n);
    s->cone_ops = arena_array(a, uint8_t, n);
    s->cone_bytes = arena_array(a, int64_t, n);
    s->memory_of = arena_array(a, uint32_t, n);
    s->stored_as = arena_array(a, ir_id, n);
    s->part_of = arena_array(a, ir_id, n);
    s->axis_last = arena_array(a, uint8_t, n);
    s->last_block = arena_array(a, uint8_t, n);
    if (!s->residents)
        s->residents = arena_array(a, const struct resident *, s->g->nodes.count + 1);
    s->fold_depth = arena_array(a, uint32_t, n);
    s->computed = arena_array(a, uint8_t, n);
    memset(s->first_demand, 0xff, n * sizeof *s->first_demand);
    memset(s->memory_of, 0xff, n * sizeof *s->memory_of);
    memset(s->stored_as, 0xff, n * sizeof *s->stored_as);
    memset(s->part_of, 0xff, n * sizeof *s->part_of);
    memset(s->fold_depth, 0xff, n * sizeof *s->fold_depth);
    for (uint32_t i = 0; i < s->g->n_params; i++)
        s->is_stored[i] = true;
}

static void add_layer(struct schedule *s, int64_t points)
{
    for (uint32_t i = 0; i < s->points.count; i++)
        if (s->points.at[i].count == points) {
            s->points.at[i].layers++;
            return;
        }
    vec_push(s->scratch, &s->points, (struct points_of_layers){points, 1});
}

// Keeps the numbers of points of which there are layers enough.
static void find_points(struct schedule *s)
{
    uint32_t kept = 0;
    ir_for_each_node (s->g, n) {
        struct nest_gemm gemm;
        ir_id base[2];
        if (n->op == IR_dot_general && gemm_of_dot(s, n, &gemm, base) && points_is_layer(&gemm))
            add_layer(s, gemm.m);
    }
    for (uint32_t i = 0; i < s->points.count; i++)
        if (s->points.at[i].layers >= POINTS_LEAST_LAYERS)
            s->points.at[kept++] = s->points.at[i];
    s->points.count = kept;
}

static uint32_t count_products(const struct ir_graph *g)
{
    uint32_t n = 0;
    ir_for_each_node (g, node)
        n += node->op == IR_dot_general;
    return n;
}

// The graph with bodies in place of its calls; NULL when that fails.
static const struct ir_graph *without_calls(const struct ir_graph *g,
                                            const struct schedule_options *o)
{
    bool had_calls = has_calls(g, o);
    while (g && has_calls(g, o))
        g = inline_level(g, o);
    if (!g || !had_calls)
        return g;
    // What a body packs into a vector of residuals another one unpacks (split.c).
    uint32_t f = ir_function_add(g->module, (struct ir_graph *)(uintptr_t)g);
    return ir_function(g->module, pass_simplify(g->module, f));
}

// Decides for every value where it is computed.
static void group(struct schedule *s)
{
    make_tables(s);
    s->alone = s->options->large || s->points.count ? 0 : COST_ALONE;
    s->alone_together = s->options->no_accumulation ? COST_OF_KERNEL : INT64_MAX;
    s->tiny = s->options->large ? 0 : s->options->no_accumulation ? COST_LAUNCH : COST_STEP;
    s->groups.count = s->demands.count = s->effect_rank = 0;
    group_values(s);
}

static void add_groups(struct schedule *s, const uint32_t *in, const uint32_t *out)
{
    bind_arguments(s, in, out);
    share_updated(s);
    if (ir_control_depth(s->g))
        write_make_results(s);
    add_steps(s);
}

// The steps of s->g over the memories of its parameters and outputs.
static void schedule(struct schedule *s, const uint32_t *in, const uint32_t *out)
{
    uint32_t first = s->program->steps.count, first_memory = s->program->memories.count;
    s->g = schedule_join_routines(s);
    s->g = schedule_pack_operands(s);
    s->g = schedule_part_outputs(s);
    s->g = schedule_part_concatenations(s);
    s->g = schedule_overlap_exchanges(s);
    s->g = schedule_join_loops(s, s->g);
    s->axes.g = s->g;
    if (!s->options->separate && !s->options->no_gemm && !s->options->no_accumulation)
        find_points(s);
    group(s);
    bool has_price = (s->options->price || s->options->gpu_price) && !s->options->separate;
    // Kernels of the points of networks become one (points.c), whose price is another.
    bool is_priced = has_price && (!s->points.count || s->has_no_network);
    s->is_unpriced |= has_price && !is_priced;
    if (is_priced && group_find_apart(s))
        group(s);
    if ((is_priced && s->options->price) || (s->options->large && !s->options->separate))
        group_find_blocks(s);
    add_groups(s, in, out);
    add_copies(s, out);
    schedule_forward_copies(s, first, first_memory);
}

void schedule_body(struct schedule *s, const struct ir_graph *g, const bool *dies,
                   const uint32_t *in, const uint32_t *out)
{
    g = without_calls(g, s->options);
    if (!g) {
        s->is_refused = true;
        return;
    }
    struct schedule_options options = *s->options;
    options.donated = dies;
    struct schedule body = {.arena = s->arena,
                            .scratch = s->scratch,
                            .g = g,
                            .axes.scratch = s->scratch,
                            .options = &options,
                            .program = s->program,
                            .kernels = s->kernels,
                            .has_no_network = s->has_no_network};
    schedule(&body, in, out);
    s->is_unpriced |= body.is_unpriced;
    s->is_refused |= body.is_refused;
    s->refused = body.refused ? body.refused : s->refused;
}

// Memories of the parameters and outputs of all of a program.
static void add_arguments(struct schedule *s, uint32_t **in, uint32_t **out)
{
    const struct ir_graph *g = s->g;
    *in = arena_array(s->scratch, uint32_t, g->n_params + 1);
    *out = arena_array(s->scratch, uint32_t, g->outputs.count + 1);
    for (uint32_t i = 0; i < g->n_params; i++)
        (*in)[i] = add_argument(s, NEST_INPUT, i, i);
    for (uint32_t i = 0; i < g->outputs.count; i++)
        (*out)[i] = add_argument(s, NEST_OUTPUT, g->outputs.at[i], i);
}

void schedule_trial(struct schedule *s)
{
    uint32_t *in, *out;
    add_arguments(s, &in, &out);
    group(s);
    add_groups(s, in, out);
}

static jot_status schedule_program(struct arena *scratch, void *ctx)
{
    struct schedule *s = ctx;
    s->scratch = s->axes.scratch = scratch;
    uint32_t *in, *out;
    add_arguments(s, &in, &out);
    schedule(s, in, out);
    if (s->refused || s->is_refused)
        return JOT_OK;
    return pass_program_pipeline(s->program, scratch, s->options);
}

// Whether nothing accumulates over a loop but over the points of networks, and in small loops.
static bool accumulates_in_networks(const struct nest_program *p)
{
    bool has_network = false;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        if (p->steps.at[i].kind != NEST_STEP_KERNEL)
            continue;
        const struct nest *n = p->nests.at[p->steps.at[i].nest];
        bool is_network = points_is_network(n);
        has_network |= is_network;
        if (!is_network && points_accumulated(n) > LEAST_ACCUMULATION)
            return false;
    }
    return has_network;
}

// Whether the op is of a class whose rows are told apart by op, and none that is known.
static bool is_unknown(enum ir_op op)
{
    switch (ir_op_class(op)) {
    case IR_CLASS_CONTROL:
        return op != IR_scan && op != IR_while && op != IR_cond;
    case IR_CLASS_EFFECT:
        return op != IR_check && op != IR_callback;
    case IR_CLASS_COLLECTIVE:
        return true;
    case IR_CLASS_CONST:
        return op != IR_const;
    case IR_CLASS_PARAM:
        return op != IR_param;
    default:
        return false;
    }
}

// The first such node of the graph or of a body, or NULL; seen: by function.
static const struct ir_node *find_unknown(const struct ir_graph *g, bool *seen)
{
    const struct ir_node *found = NULL;
    ir_for_each_node (g, n) {
        if (is_unknown((enum ir_op)n->op))
            return n;
        const struct ir_field *f = ir_field_find(n->attrs, IR_KEY_functions);
        for (uint32_t i = 0; f && i < f->count && !found; i++) {
            bool is_new = !seen[f->ints[i]];
            seen[f->ints[i]] = true;
            found = is_new ? find_unknown(ir_function(g->module, (uint32_t)f->ints[i]), seen)
                           : NULL;
        }
        if (found)
            return found;
    }
    return NULL;
}

static jot_status refuse(const struct ir_node *n)
{
    return status_fail(JOT_ERR_INTERNAL, "schedule: nothing computes %s",
                       ir_op_get((enum ir_op)n->op)->name);
}

static bool has_network(const struct nest_program *p)
{
    for (uint32_t i = 0; i < p->nests.count; i++)
        nest_for_all (s, p->nests.at[i])
            if (s->kind == NEST_CONTRACT)
                return true;
    return false;
}

static jot_status schedule_graph(struct arena *arena, const struct ir_graph *g,
                                 const struct schedule_options *options, bool has_no_network,
                                 struct nest_program **out)
{
    struct schedule s = {
        .arena = arena, .g = g, .options = options, .has_no_network = has_no_network};
    s.program = arena_new(arena, struct nest_program);
    s.program->arena = arena;
    s.program->name = arena_text(arena, g->name ? g->name : "program");
    s.program->n_inputs = g->n_params;
    s.program->n_outputs = g->outputs.count;
    s.program->mesh_rank = options->mesh_rank;
    for (uint32_t i = 0; i < options->mesh_rank; i++)
        s.program->mesh[i] = options->mesh[i];
    s.kernels = arena_new(arena, struct hash_table);
    JOT_TRY(arena_lend(schedule_program, &s));
    if (s.refused)
        return refuse(s.refused);
    if (s.is_refused)
        return status_fail(JOT_ERR_INTERNAL, "schedule: a body could not be written");
    *out = s.program;
    return s.is_unpriced && !has_network(*out) ? schedule_graph(arena, g, options, true, out)
                                               : JOT_OK;
}

// Of a graph, a program whose memory is not planned.
static jot_status schedule_steps(struct arena *arena, const struct ir_graph *g,
                                 const struct schedule_options *options,
                                 struct nest_program **out)
{
    bool *seen = arena_array(arena, bool, g->module->functions.count + 1);
    const struct ir_node *unknown = find_unknown(g, seen);
    if (unknown)
        return refuse(unknown);
    g = pass_expand(without_calls(g, options), options->has_convolutions);
    if (!g)
        return status_fail(JOT_ERR_INTERNAL, "schedule: a call could not be inlined");
    g = schedule_without_shapes(g);
    if (options->no_accumulation && !options->separate && !options->no_gemm &&
        count_products(g) >= POINTS_LEAST_LAYERS) {
        struct schedule_options with = *options;
        with.no_accumulation = false;
        JOT_TRY(schedule_graph(arena, g, &with, false, out));
        if (accumulates_in_networks(*out))
            return JOT_OK;
    }
    return schedule_graph(arena, g, options, false, out);
}

jot_status pass_schedule(struct arena *arena, const struct ir_graph *g,
                         const struct schedule_options *options, struct nest_program **out)
{
    static const struct schedule_options defaults;
    options = options ? options : &defaults;
    JOT_TRY(schedule_steps(arena, g, options, out));
    if (options->map)
        JOT_TRY(options->map(*out, options->map_ctx));
    JOT_TRY(pass_verify_program(options, *out, "map"));
    plan_memory(*out, options->donated, options->early_exchanges);
    struct strbuf report = strbuf_make(arena);
    if (options->verifies && plan_verify(*out, &report))
        return status_fail(JOT_ERR_INTERNAL, "the plan of memory is wrong: %s", report.text);
    return JOT_OK;
}
