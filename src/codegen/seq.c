// SPDX-License-Identifier: Apache-2.0
// Loops over a known number of times: what is carried stands in registers.
#include "codegen/seq.h"
#include "codegen/access.h"
#include "codegen/branch.h"
#include "codegen/early.h"
#include "codegen/emit.h"
#include "codegen/hoist.h"
#include "codegen/hooks.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/stack.h"
#include "codegen/turn.h"
#include "codegen/types.h"
#include "codegen/updates.h"
#include "map/gpu_lanes.h"

#define WRITTEN_OUT 8 // trips of a tile of a GPU that are written out

// By turn and carry: what goes into the loop, stands in it, comes out.
struct state {
    uint32_t n;
    struct cg_value *at;
};

static struct state make_state(struct cg_lowering *l, uint32_t n)
{
    return (struct state){n, arena_array(l->arena, struct cg_value, (size_t)n * CG_CHUNKS + 1)};
}

static struct cg_value *value_at(struct cg_lowering *l, const struct state *s, uint32_t i)
{
    return &s->at[(l->chunks.at ? l->chunks.now : 0) * s->n + i];
}

// The values, of as many lanes as what is carried has.
static struct state collect(struct cg_lowering *l, const struct nest_statement *s,
                            const nest_id *from)
{
    struct state all = make_state(l, s->n_in);
    for (struct cg_turn t = {0}; cg_turn_next(l, &t);)
        for (uint32_t i = 0; i < s->n_in; i++) {
            struct cg_value v = l->values[from[i]];
            *value_at(l, &all, i) = cg_is_wide(l, s->first_carry + i) ? cg_wide_value(l, v) : v;
        }
    return all;
}

// Phis of the values; those of the first turn are for all when lanes are the same.
static struct state open_phis(struct cg_lowering *l, const struct nest_statement *s,
                              const struct state *from, LLVMBasicBlockRef before)
{
    struct state phis = make_state(l, s->n_in);
    for (struct cg_turn t = {0}; cg_turn_next(l, &t);)
        for (uint32_t i = 0; i < s->n_in; i++) {
            bool is_shared = t.all && l->chunks.now && !cg_is_wide(l, s->first_carry + i);
            *value_at(l, &phis, i) =
                is_shared ? phis.at[i] : cg_phi(l, *value_at(l, from, i), before);
        }
    return phis;
}

static void close_phis(struct cg_lowering *l, const struct nest_statement *s,
                       const struct state *phis, const struct state *next,
                       LLVMBasicBlockRef latch)
{
    for (struct cg_turn t = {0}; cg_turn_next(l, &t);)
        for (uint32_t i = 0; i < s->n_in; i++)
            if (!t.all || !l->chunks.now || cg_is_wide(l, s->first_carry + i))
                cg_phi_add(*value_at(l, phis, i), *value_at(l, next, i), latch);
}

static void define(struct cg_lowering *l, nest_id first, const struct state *from)
{
    for (struct cg_turn t = {0}; cg_turn_next(l, &t);)
        for (uint32_t i = 0; i < from->n; i++)
            l->values[first + i] = *value_at(l, from, i);
}

// Trips first .. first + count - 1, from what init says, in strips of so many that are written out;
// in tiles, trip i is the i-th of a tile.
static struct state run_trips(struct cg_lowering *l, const struct nest_statement *s,
                              const struct state *init, LLVMValueRef first, LLVMValueRef count,
                              int64_t strip, bool is_tile)
{
    LLVMBuilderRef b = l->m.b;
    struct state phis = *init;
    LLVMValueRef last = cg_int(l->module, cg_extent(l, s) - 1);
    struct cg_early early = {0};
    if (l->gpu && !is_tile)
        early = cg_early_of(l, s, strip);
    cg_early_begin(l, &early, first);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    struct cg_loop loop =
        cg_loop_open(l, cg_int(l->module, 0), count, cg_int(l->module, strip));
    if (loop.body) {
        phis = open_phis(l, s, init, before);
        cg_early_open(l, &early, before);
    }
    struct state next = phis;
    LLVMValueRef start = LLVMBuildAdd(b, first, loop.index, "");
    const struct nest_statement *outer = l->around.time;
    l->around.time = s;
    for (int64_t k = 0; k < strip; k++) {
        LLVMValueRef trip = LLVMBuildAdd(b, start, cg_int(l->module, k), "");
        cg_early_trip(l, &early, trip, k);
        l->axes[s->axes[0]] = s->reverse ? LLVMBuildSub(b, last, trip, "") : trip;
        if (is_tile)
            cg_stack_trip(l, s, LLVMBuildAdd(b, loop.index, cg_int(l->module, k), ""), count);
        else if (strip > 1)
            cg_stack_trip(l, s, cg_int(l->module, k), cg_int(l->module, strip));
        define(l, s->first_carry, &next);
        cg_lower_block(l, s->body);
        next = collect(l, s, s->yields);
    }
    l->around.time = outer;
    if (strip > 1 && !is_tile)
        l->module->hooks->strip_store(l, s, start, strip);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    cg_loop_close(l, &loop);
    if (!loop.body)
        return next;
    struct state result = open_phis(l, s, init, before);
    close_phis(l, s, &phis, &next, latch);
    close_phis(l, s, &result, &next, latch);
    cg_early_close(l, &early, latch);
    return result;
}

static struct state run_tiles(struct cg_lowering *l, const struct nest_statement *s,
                              const struct state *init, int64_t trips)
{
    LLVMBuilderRef b = l->m.b;
    struct state phis = *init;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    int64_t n = cg_extent(l, s);
    int64_t strip = l->gpu && map_is_short(l->nest, s->body, WRITTEN_OUT) ? WRITTEN_OUT : 1;
    LLVMValueRef end = cg_int(l->module, n), size = cg_int(l->module, trips);
    struct cg_loop loop = cg_loop_open(l, cg_int(l->module, 0), end, size);
    if (loop.body)
        phis = open_phis(l, s, init, before);
    // Tiles begin at times that are multiples of their size.
    LLVMValueRef time = loop.index;
    if (s->reverse)
        time = LLVMBuildSub(b, cg_int(l->module, (n - 1) / trips * trips), time, "");
    LLVMValueRef rest = LLVMBuildSub(b, end, time, "");
    LLVMValueRef fits = LLVMBuildICmp(b, LLVMIntSLT, rest, size, "");
    LLVMValueRef count = n % trips ? LLVMBuildSelect(b, fits, rest, size, "") : size;
    LLVMValueRef first = s->reverse ? LLVMBuildSub(b, rest, count, "") : time;
    if (!l->gpu)
        cg_stack_move(l, s, NEST_LOAD, first, count);
    struct state next = run_trips(l, s, &phis, first, count, strip, true);
    if (l->gpu)
        l->module->hooks->rows_store(l, s, first, trips);
    else
        cg_stack_move(l, s, NEST_PUT, first, count);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    cg_loop_close(l, &loop);
    if (loop.body) {
        struct state result = open_phis(l, s, init, before);
        close_phis(l, s, &phis, &next, latch);
        close_phis(l, s, &result, &next, latch);
        next = result;
    }
    if (l->gpu)
        l->module->hooks->strip_end(l, s);
    else
        cg_stack_end(l, s);
    return next;
}

void cg_lower_seq(struct cg_lowering *l, const struct nest_statement *s)
{
    if (!l->gpu && cg_lower_updates(l, s))
        return;
    struct state end = collect(l, s, s->in);
    int64_t n = cg_extent(l, s);
    if (n > 0) {
        cg_hoist(l, s->axes, 1, s->first_carry, s->n_in, &s->body, 1);
        int64_t tile = l->gpu                ? l->module->hooks->rows_find(l, s)
                       : cg_stack_find(l, s) ? cg_stack_trips(l)
                                             : 0;
        int64_t strip = l->gpu && !tile ? l->module->hooks->strip_find(l, s) : 1;
        end = tile ? run_tiles(l, s, &end, tile)
                   : run_trips(l, s, &end, cg_int(l->module, 0), cg_int(l->module, n), strip,
                               false);
        if (strip > 1)
            l->module->hooks->strip_end(l, s);
        cg_forget_hoisted(l, s->body);
    }
    define(l, s->result, &end);
}
