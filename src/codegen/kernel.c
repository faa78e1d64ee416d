// SPDX-License-Identifier: Apache-2.0
// A nest as functions of the kernel ABI, and how they are to be run.
//
// Loops of independent points are split over chunks of one of their axes, a function for each.  A fold at the top is
// split over its blocks: each chunk leaves the results of its blocks in memory, and a
// second function of one chunk combines them in the fixed tree and goes on with what follows, so
// the bits do not depend on how many threads there are.  Folds in a loop of few points are split in the same way (fold_shared.c).
// Anything else is one function, run once.
#include "codegen/kernel.h"
#include "codegen/access.h"
#include "codegen/accumulate.h"
#include "codegen/contiguous.h"
#include "codegen/emit.h"
#include "codegen/fold.h"
#include "codegen/fold_shared.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/points.h"
#include "codegen/prefetch.h"
#include "codegen/pressure.h"
#include "codegen/size.h"
#include "codegen/types.h"
#include "map/map.h"

#include "base/status.h"
#include "ir/cost.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_CHUNKS 64

static bool is_loop(enum nest_kind kind)
{
    return kind == NEST_PAR || kind == NEST_MAP || kind == NEST_FOLD || kind == NEST_SCAN ||
           kind == NEST_SEQ || kind == NEST_WHILE || kind == NEST_IF;
}

struct cg_lowering cg_lowering_make(struct cg_module *module, struct arena *arena,
                                    const struct nest *nest)
{
    struct machine m = {.module = module, .b = LLVMCreateBuilderInContext(module->context)};
    return (struct cg_lowering){.module = module,
                                .arena = arena,
                                .nest = nest,
                                .uses = arena_new(arena, struct map_uses),
                                .written_out = cg_most_written_out(module, nest),
                                .m = m,
                                .around.top = NEST_NONE,
                                .vector = {.axis = NEST_NONE, .loop = NEST_NONE, .lanes = 1},
                                .tile = {.axis = NEST_NONE, .across = NEST_NONE}};
}

void cg_make_tables(struct cg_lowering *l)
{
    const struct nest *nest = l->nest;
    l->values = arena_array(l->arena, struct cg_value, nest->values.count + 1);
    l->axes = arena_array(l->arena, LLVMValueRef, nest->axes.count + 1);
    l->buffers = arena_array(l->arena, struct cg_buffer, nest->buffers.count + 1);
    l->marks = arena_array(l->arena, struct cg_mark, nest->statements.count + 1);
}

static struct cg_lowering begin_function(struct cg_module *module, struct arena *arena,
                                         const struct nest *nest, bool by_function,
                                         const char *symbol)
{
    LLVMTypeRef p = module->ptr, i = module->i64;
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(module->context),
                                        (LLVMTypeRef[]){p, i, i, i, p}, 5, 0);
    struct cg_lowering l = cg_lowering_make(module, arena, nest);
    l.m.by_function = by_function;
    l.frame.function = LLVMAddFunction(module->module, symbol, type);
    l.frame.buffers = LLVMGetParam(l.frame.function, 0);
    l.frame.scratch = LLVMGetParam(l.frame.function, 4);
    l.frame.entry = LLVMAppendBasicBlockInContext(module->context, l.frame.function, "entry");
    LLVMBasicBlockRef start =
        LLVMAppendBasicBlockInContext(module->context, l.frame.function, "start");
    LLVMPositionBuilderAtEnd(l.m.b, l.frame.entry);
    LLVMBuildBr(l.m.b, start);
    LLVMPositionBuilderAtEnd(l.m.b, start);
    cg_make_tables(&l);
    return l;
}

static LLVMValueRef operand(struct cg_lowering *l, uint32_t i)
{
    LLVMValueRef at = cg_at(l, l->module->ptr, l->frame.buffers, cg_int(l->module, i));
    return LLVMBuildLoad2(l->m.b, l->module->ptr, at, "");
}

// The arguments of the nest; returns how many there are.
static uint32_t bind_buffers(struct cg_lowering *l)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->nest->buffers.count; i++)
        if (l->nest->buffers.at[i].role != NEST_LOCAL)
            l->buffers[i].base = operand(l, n++);
    return n;
}

static void end_function(struct cg_lowering *l)
{
    cg_end_streams(l);
    LLVMBuildRetVoid(l->m.b);
    LLVMDisposeBuilder(l->m.b);
}

static void lower_simple(struct cg_lowering *l, const struct nest_block *body, uint32_t from,
                         uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        cg_lower_statement(l, body->statements.at[i]);
}

static const char *symbol_name(struct arena *arena, int number, const char *suffix)
{
    char text[64];
    snprintf(text, sizeof text, "jot_kernel_%d%s", number, suffix);
    return arena_text(arena, text);
}

static int64_t chunk_size(int64_t total, double chunks, int64_t unit)
{
    if (chunks > MAX_CHUNKS)
        chunks = MAX_CHUNKS;
    int64_t grain = (int64_t)ceil((double)total / chunks);
    grain = (grain + unit - 1) / unit * unit;
    return grain < unit ? unit : grain;
}

static void set_step(struct cg_kernel_step *step, const char *symbol, int64_t total,
                     double cost, int64_t unit)
{
    step->symbol = symbol;
    step->total = total;
    step->parallel = cost > COST_PARALLEL;
    step->grain = step->phase_grain = total > 0 ? total : 1;
    if (step->parallel)
        step->grain = chunk_size(total, cost / COST_CHUNK, unit);
    // So many that two, four or eight threads have as many each, for they wait for one another.
    if (cost > COST_PHASE)
        step->phase_grain =
            chunk_size(total, fmax(2, exp2(ceil(log2(cost / COST_PHASE_CHUNK)))), unit);
}

// Elements of an axis that a chunk has at least: of lanes whole vectors, of what lanes cross a tile.
static int64_t chunk_unit(struct cg_lowering *l, nest_id loop, nest_id split)
{
    const struct nest_statement *s = cg_statement(l, loop);
    nest_id axis = nest_vector_axis(l->nest, s);
    unsigned lanes = axis == NEST_NONE ? 1 : l->nest->axes.at[axis].vector;
    if (nest_has_time(l->nest, s->body)) // points are long
        return axis == split ? (int64_t)lanes * cg_choose_chunks(l, loop, axis, lanes) : 1;
    if (axis == NEST_NONE)
        return cg_is_network(l, loop) ? CG_CHUNK : 1;
    if (axis == split)
        return CG_CHUNK;
    return cg_crossing_axis(l, s, axis) == split ? CG_TILE : 1;
}

// The axis that chunks divide: the first that is long enough, else that of most units.
static nest_id split_axis(struct cg_lowering *l, nest_id loop)
{
    const struct nest_statement *s = cg_statement(l, loop);
    nest_id most = s->axes[0];
    int64_t units = 0;
    for (uint32_t i = 0; i < s->n_axes; i++) {
        int64_t unit = chunk_unit(l, loop, s->axes[i]);
        int64_t n = (l->nest->axes.at[s->axes[i]].extent + unit - 1) / unit;
        if (n >= MAX_CHUNKS)
            return s->axes[i];
        if (n > units) {
            units = n;
            most = s->axes[i];
        }
    }
    return most;
}

static void lower_points_kernel(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *out)
{
    const struct nest_statement *s = cg_statement(l, loop);
    nest_id split = split_axis(l, loop);
    l->around.top = loop;
    cg_prefetch_find(l, loop);
    cg_lower_points(l, loop, split, LLVMGetParam(l->frame.function, 1),
                    LLVMGetParam(l->frame.function, 2));
    double factor = nest_has_time(l->nest, s->body) ? COST_EVEN : 1;
    set_step(out, out->symbol, l->nest->axes.at[split].extent,
             factor * map_cost(l->nest, loop, NULL), chunk_unit(l, loop, split));
}

// Whether each function of a kernel may do it for itself.
static bool may_be_repeated(const struct nest *n, const struct nest_statement *s)
{
    bool is_read = s->kind == NEST_LOAD && n->buffers.at[s->buffer].role != NEST_IN;
    return nest_is_scalar(s) && !is_read;
}

// Whether the loops of a nest are points, some of them worth threads, and what stands between can be done once for
// each of them.
static bool has_loops_of_points(const struct nest *n, uint32_t loops)
{
    nest_id *scopes = arena_array(n->arena, nest_id, n->buffers.count + 1);
    double most = 0;
    nest_local_scopes(n, scopes);
    for (uint32_t i = 0; i < n->buffers.count; i++)
        if (n->buffers.at[i].role == NEST_LOCAL && scopes[i] == NEST_NONE)
            return false;
    nest_for_each (s, n, 0) {
        bool is_points = s->kind == NEST_PAR || s->kind == NEST_MAP;
        if (!is_points && !may_be_repeated(n, s))
            return false;
        if (is_points)
            most = fmax(most, map_cost(n, nest_id_of(n, s), NULL));
    }
    return loops > 1 && loops <= CG_KERNEL_STEPS && most > COST_PARALLEL;
}

// A function for each loop; l is the first.
static void lower_loops(struct cg_lowering *l, const struct nest_block *body, int number,
                        struct cg_kernel *out)
{
    static const char *const suffixes[CG_KERNEL_STEPS] = {"", "_1", "_2", "_3"};
    struct cg_lowering at = *l;
    out->n_steps = 0;
    for (uint32_t i = 0; i < body->statements.count && !at.failure; i++) {
        if (!is_loop(cg_statement(l, body->statements.at[i])->kind))
            continue;
        struct cg_kernel_step *step = &out->steps[out->n_steps];
        *step = (struct cg_kernel_step){
            .symbol = symbol_name(l->arena, number, suffixes[out->n_steps])};
        if (out->n_steps++) {
            at = begin_function(l->module, l->arena, l->nest, l->m.by_function, step->symbol);
            bind_buffers(&at);
        }
        for (uint32_t k = 0; k < i; k++)
            if (!is_loop(cg_statement(l, body->statements.at[k])->kind))
                cg_lower_statement(&at, body->statements.at[k]);
        lower_points_kernel(&at, body->statements.at[i], step);
        end_function(&at);
        step->scratch_bytes = at.frame.scratch_bytes;
    }
    l->failure = at.failure;
}

static LLVMValueRef results_of_blocks(struct cg_lowering *l)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->nest->buffers.count; i++)
        n += l->nest->buffers.at[i].role != NEST_LOCAL;
    return operand(l, n);
}

// Another function of the kernel, of one chunk.
static struct cg_lowering begin_step(const struct cg_lowering *before, const struct nest *nest,
                                     int number, const char *suffix, struct cg_kernel *out)
{
    struct cg_kernel_step *step = &out->steps[out->n_steps++];
    *step = (struct cg_kernel_step){.symbol = symbol_name(before->arena, number, suffix),
                                    .total = 1,
                                    .grain = 1,
                                    .phase_grain = 1};
    struct cg_lowering l = begin_function(before->module, before->arena, nest,
                                          before->m.by_function, step->symbol);
    l.around.top = before->around.top;
    bind_buffers(&l);
    return l;
}

static void end_step(struct cg_lowering *l, struct cg_kernel *out)
{
    end_function(l);
    out->steps[out->n_steps - 1].scratch_bytes = l->frame.scratch_bytes;
}

// Blocks that are chunks.
static struct cg_loop open_blocks(struct cg_lowering *l)
{
    return cg_loop_open(l, LLVMGetParam(l->frame.function, 1),
                        LLVMGetParam(l->frame.function, 2), cg_int(l->module, 1));
}

static void lower_fold_kernel(struct cg_lowering *l, const struct nest_block *body, uint32_t at,
                              int number, struct cg_kernel *out)
{
    nest_id fold = body->statements.at[at];
    double cost = map_cost(l->nest, fold, NULL);
    l->around.top = fold;
    lower_simple(l, body, 0, at);
    struct cg_fold_plan p = cg_fold_plan_make(l, fold, 0);
    out->partial_bytes = cg_fold_lay_out(l, &p, results_of_blocks(l), p.blocks, NULL);
    struct cg_loop loop = open_blocks(l);
    cg_fold_block(l, &p, loop.index, loop.index);
    cg_loop_close(l, &loop);
    end_step(l, out);
    set_step(&out->steps[0], out->steps[0].symbol, p.blocks, cost, 1);
    if (l->failure)
        return;

    struct cg_lowering end = begin_step(l, l->nest, number, "_end", out);
    lower_simple(&end, body, 0, at);
    struct cg_fold_plan q = cg_fold_plan_make(&end, fold, 0);
    cg_fold_lay_out(&end, &q, results_of_blocks(&end), q.blocks, NULL);
    for (uint32_t i = 0; i < q.state.n_combines + q.state.n_puts; i++)
        cg_results_combine(&end, &q.state.accumulators[i], &q.results[i], q.blocks);
    cg_fold_results(&end, &q);
    lower_simple(&end, body, at + 1, body->statements.count);
    end_step(&end, out);
    l->failure = end.failure;
}

// Whether the points of the loop are chunks for few threads, where blocks of its folds are for more.
static bool shares_folds(struct cg_lowering *l, nest_id loop, struct cg_shared_folds *out)
{
    nest_id split = split_axis(l, loop);
    int64_t unit = chunk_unit(l, loop, split);
    int64_t chunks = (l->nest->axes.at[split].extent + unit - 1) / unit;
    if (chunks >= COST_FEW_CHUNKS || !cg_shared_folds_find(l, loop, out) ||
        map_cost(l->nest, loop, NULL) <= COST_PARALLEL * out->n)
        return false;
    for (uint32_t k = 0; k < out->n; k++)
        if (cg_fold_blocks(l, out->folds[k]) < 2 * chunks)
            return false;
    nest_for_each (s, l->nest, 0)
        if (nest_id_of(l->nest, s) != loop && !may_be_repeated(l->nest, s))
            return false;
    return true;
}

// The points, with what stands in front of them, of a function that has part of the folds.
static void lower_part_of_folds(struct cg_lowering *l, const struct nest_block *body,
                                uint32_t at, struct cg_shared_folds *s, bool is_of_blocks)
{
    struct cg_loop blocks;
    s->memory = results_of_blocks(l);
    s->block = NULL;
    l->shared = s;
    l->around.top = s->points;
    lower_simple(l, body, 0, at);
    if (is_of_blocks) {
        blocks = open_blocks(l);
        s->block = blocks.index;
    }
    cg_lower_points(l, s->points, NEST_NONE, NULL, NULL);
    if (is_of_blocks)
        cg_loop_close(l, &blocks);
}

static void lower_shared_folds(struct cg_lowering *l, const struct nest_block *body,
                               uint32_t at, struct cg_shared_folds *s, int number,
                               struct cg_kernel *out)
{
    static const char *const suffixes[CG_KERNEL_STEPS] = {"", "_end", "_1", "_1_end"};
    _Static_assert(2 * CG_SHARED_FOLDS == CG_KERNEL_STEPS,
                   "a function for blocks, one for what they give");
    const struct nest *whole = l->nest;
    double cost = map_cost(whole, s->points, NULL) / s->n;
    struct cg_lowering now = *l;
    for (; s->now < s->n && !now.failure; s->now++) {
        const struct nest *cut = cg_shared_folds_cut(l->arena, whole, s);
        if (s->now)
            now = begin_step(&now, cut, number, suffixes[2 * s->now], out);
        now.nest = cut;
        now.uses = arena_new(l->arena, struct map_uses);
        lower_part_of_folds(&now, body, at, s, true);
        end_step(&now, out);
        struct cg_kernel_step *step = &out->steps[out->n_steps - 1];
        set_step(step, step->symbol, cg_fold_blocks(&now, s->folds[s->now]), cost, 1);
        if (now.failure)
            break;
        now = begin_step(&now, s->now + 1 < s->n ? cut : whole, number,
                         suffixes[2 * s->now + 1], out);
        lower_part_of_folds(&now, body, at, s, false);
        end_step(&now, out);
    }
    out->partial_bytes = s->at[s->n];
    l->failure = now.failure;
}

static jot_status lower_kernel(struct cg_module *module, struct arena *arena, struct nest *nest,
                               int number, enum map_form form, struct cg_kernel *out)
{
    bool by_function = form >= MAP_BY_FUNCTION;
    map_to_host(nest, &(struct map_host){module->vector_bytes, form});
    *out = (struct cg_kernel){.form = (int)form, .n_steps = 1};
    out->steps[0] = (struct cg_kernel_step){
        .symbol = symbol_name(arena, number, ""), .total = 1, .grain = 1, .phase_grain = 1};
    struct cg_lowering l =
        begin_function(module, arena, nest, by_function, out->steps[0].symbol);
    bind_buffers(&l);
    const struct nest_block *body = &nest->blocks.at[0];
    uint32_t loops = 0, at = 0;
    for (uint32_t i = 0; i < body->statements.count; i++)
        if (is_loop(cg_statement(&l, body->statements.at[i])->kind)) {
            loops++;
            at = i;
        }
    const struct nest_statement *only =
        loops == 1 ? cg_statement(&l, body->statements.at[at]) : NULL;
    bool is_points = only && at + 1 == body->statements.count &&
                     (only->kind == NEST_PAR || only->kind == NEST_MAP);
    struct cg_shared_folds shared;
    if (only && only->kind == NEST_FOLD &&
        cg_extent(&l, only) > fold_block(cg_extent(&l, only)) &&
        map_cost(nest, body->statements.at[at], NULL) > COST_PARALLEL) {
        lower_fold_kernel(&l, body, at, number, out);
    } else if (is_points && shares_folds(&l, body->statements.at[at], &shared)) {
        lower_shared_folds(&l, body, at, &shared, number, out);
    } else if (has_loops_of_points(nest, loops)) {
        lower_loops(&l, body, number, out);
    } else {
        if (is_points) {
            lower_simple(&l, body, 0, at);
            lower_points_kernel(&l, body->statements.at[at], &out->steps[0]);
        } else {
            l.around.top = loops ? body->statements.at[at] : NEST_NONE;
            lower_simple(&l, body, 0, body->statements.count);
        }
        end_function(&l);
        out->steps[0].scratch_bytes = l.frame.scratch_bytes;
    }
    if (l.failure)
        return status_fail(JOT_ERR_INTERNAL, "%s: %s", nest->name, l.failure);
    return JOT_OK;
}

// Whether a function of the kernel is too much code; forgets all of them then.
static bool give_up_large(struct cg_module *m, const struct cg_kernel *k)
{
    LLVMValueRef f[CG_KERNEL_STEPS];
    int64_t most = 0;
    for (int i = 0; i < k->n_steps; i++) {
        f[i] = LLVMGetNamedFunction(m->module, k->steps[i].symbol);
        int64_t code = cg_code_of(m, f[i]);
        most = code > most ? code : most;
    }
    for (int i = 0; cost_is_too_much_code(most) && i < k->n_steps; i++)
        LLVMDeleteFunction(f[i]);
    return cost_is_too_much_code(most);
}

jot_status cg_kernel_lower(struct cg_module *module, struct arena *arena, struct nest *nest,
                           int number, struct cg_kernel *out)
{
    enum map_form form = MAP_WRITTEN_OUT;
    JOT_TRY(lower_kernel(module, arena, nest, number, form, out));
    while (form < MAP_ONE_REGISTER && give_up_large(module, out))
        JOT_TRY(lower_kernel(module, arena, nest, number, ++form, out));
    return JOT_OK;
}

void cg_kernel_share(const struct cg_module *module, struct nest *nest,
                     const struct cg_kernel *kernel, struct cg_kernel *out)
{
    map_to_host(nest, &(struct map_host){module->vector_bytes, (enum map_form)kernel->form});
    *out = *kernel;
}
