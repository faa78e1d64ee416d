// SPDX-License-Identifier: Apache-2.0
// A nest as a kernel: who does its points.
//
//     threads   par i { scalars, short folds, loops over time }    a thread has a few points
//     tiles     par i, j { reads that are contiguous along i }      a block of threads has 32 by 32 points
//     columns   par i { long folds of i's neighbours }             threads of several warps have a point
//     parts     the same of few points                              blocks of threads have parts of the folds
//     trips     loop { par i, j { neighbours } }                   warps have tiles for several trips (trips.c)
//     groups    par i { folds and maps along contiguous axes }     a group of threads has a point
//     blocks    fold i { } ..., or in a par of few points          blocks of threads have blocks of the fold;
//                                                                  the last one to end brings them together
//     scan      scan i { ... }, or in a par of few points           warps have parts of it (scan.c, scan_once.c)
//     updates   seq i { put y[%i] = ... }                           warps or threads have places (updates.c)
//     network   fold i { contract, sums over i }                    a thread has a point, groups the sums (network.c)
//     attention par i { products and a softmax }                   warps have tiles of it (attention.c)
//     gradient  par b { maps of both and of products }              three functions (attention_gradient.c)
//     one       anything else                                      one block of threads
//
// A kernel runs its chunks by `for (c = block number; c < chunks; c += blocks)`.
#include "codegen/gpu/gpu.h"

#include "base/status.h"
#include "passes/cost.h"

#define ONE_BLOCK 512
#define SMALL_BLOCK 64
#define LONG_WORK 400.0                           // operations
#define MANY_VECTORS (GPU_MULTIPROCESSORS * 8192) // of which a thread has several
#define MOST_TURNS 4
#define WORK_OF_TURN 16.0  // operations of a point
#define RESIDENT_FOR_TWO 6 // blocks, 40 registers a thread
#define MOST_LOADS 2       // that these have room for
#define RESIDENT_FOR_NUMBERS 6
#define RESIDENT_FOR_TERMS 5 // of a fold, 48 registers
#define LIGHT_OP 30.0        // of an operation
#define FEW_VALUES 36        // of a thread, that all of these have room for
#define NOT_LIGHT UINT32_MAX
#define TILES_THREADS 2048 // of a multiprocessor
#define STRIPS_BLOCK 64
#define MOST_IN_STRIPS (COST_CODE / 4) // code of a kernel with strips of loops over time

static bool has_direct_load(const struct cg_lowering *l)
{
    nest_for_each (s, l->nest, 0)
        if (s->kind == NEST_LOAD)
            return true;
    return false;
}

// Whether a thread is to wait for what it reads of two vectors at once: where it has that much to do
// with them, or where it has waited for their places.
static bool has_two_turns(const struct cg_lowering *l, const struct gpu_points *p)
{
    bool reads = false, waits = gpu_work(l, p->s->body) >= WORK_OF_TURN;
    nest_for_each (s, l->nest, p->s->body) {
        if (s->kind > NEST_PUT || (s->kind == NEST_PUT && s->op))
            return false;
        reads |= s->kind == NEST_LOAD;
        for (uint32_t k = 0; s->kind == NEST_LOAD && k < s->index.count; k++)
            waits |= s->index.terms[k].is_value;
    }
    return reads && waits && !has_direct_load(l) && !l->gpu->is_phase && p->lanes > 1 &&
           p->rows == 1 && p->count >= MANY_VECTORS && p->count % (2 * GPU_BLOCK) == 0 &&
           l->nest->axes.at[p->axis].extent % p->lanes == 0 && gpu_is_short(l, p->s->body, 2);
}

// Blocks that a multiprocessor is to have at once of a map whose threads have two vectors each, 0: any.
// With registers for eight of them ptxas reads a vector only when the one before has been worked on.
static unsigned resident_for_two(const struct cg_lowering *l, nest_id loop)
{
    struct gpu_points p = gpu_points_make(l, loop, true);
    unsigned loads = 0;
    gpu_points_widen(l, &p);
    nest_for_each (s, l->nest, p.s->body) {
        loads += s->kind == NEST_LOAD;
        if (s->kind == NEST_OP && jot_dtype_size(s->dtype) > 4)
            return 0;
    }
    bool waits = gpu_work(l, p.s->body) >= WORK_OF_TURN;
    return loads <= MOST_LOADS && waits && has_two_turns(l, &p) ? RESIDENT_FOR_TWO : 0;
}

// The values of a loop's body that are needed at once, at most; NOT_LIGHT where they are not of 32 bits,
// stand in loops, or have functions that need many of their own.
static uint32_t values_at_once(const struct cg_lowering *l, const struct nest_statement *loop)
{
    const struct nest_block *b = &l->nest->blocks.at[loop->body];
    uint32_t n = b->statements.count, now = 0, most = 0;
    uint32_t *last = arena_array(l->arena, uint32_t, l->nest->values.count + 1);
    bool *lives = arena_array(l->arena, bool, l->nest->values.count + 1);
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        bool is_op = s->kind == NEST_OP;
        if (s->kind > NEST_PUT ||
            (is_op && (jot_dtype_size(s->dtype) > 4 ||
                       (s->op != IR_threefry2x32 && cost_of_op(s->op, s->dtype) > LIGHT_OP))))
            return NOT_LIGHT;
        for (uint32_t k = 0; k < s->n_in; k++)
            last[s->in[k]] = i;
    }
    for (uint32_t i = 0; i < loop->n_combines; i++)
        for (uint32_t k = 0; k < loop->combines[i].n; k++)
            last[loop->combines[i].value[k]] = n;
    for (uint32_t i = 0; i < n; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        for (uint32_t k = 0; k < s->n_in; k++)
            if (lives[s->in[k]] && last[s->in[k]] == i) {
                lives[s->in[k]] = false;
                now--;
            }
        for (uint32_t k = 0; k < s->n_results && s->kind != NEST_CONST; k++) {
            lives[s->result + k] = true;
            now++;
        }
        most = now > most ? now : most;
    }
    return most;
}

// The same of a map that makes numbers of random bits, in which a thread mostly waits for itself: with
// registers for eight blocks ptxas leaves it nothing else to do meanwhile.
static unsigned resident_for_numbers(const struct cg_lowering *l, nest_id loop)
{
    const struct nest_statement *s = cg_statement(l, loop);
    double work = 0;
    bool has_bits = false;
    nest_for_each (t, l->nest, s->body) {
        has_bits |= t->kind == NEST_OP && t->op == IR_threefry2x32;
        work += t->kind == NEST_OP && t->dtype == JOT_F32 ? cost_of_op(t->op, JOT_F32) : 0;
    }
    uint64_t values = (uint64_t)values_at_once(l, s) * gpu_points_make(l, loop, true).lanes;
    bool is = has_bits && work >= WORK_OF_TURN && values <= FEW_VALUES;
    return is ? RESIDENT_FOR_NUMBERS : 0;
}

static unsigned resident_for_maps(const struct cg_lowering *l, nest_id loop)
{
    unsigned two = resident_for_two(l, loop);
    return two ? two : resident_for_numbers(l, loop);
}

// Of blocks that stay, a thread has some of many vectors at once.
static void by_threads(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    struct gpu_points p = gpu_points_make(l, loop, true);
    gpu_points_widen(l, &p);
    bool has_time = nest_has_time(l->nest, p.s->body);
    // What is read before the loop is read once by blocks that stay.
    step->exact_grid = has_time || !has_direct_load(l);
    bool at_once = has_two_turns(l, &p);
    int64_t turns = at_once ? 2 : 1;
    while (turns < MOST_TURNS && !step->exact_grid && !gpu_is_long(l, &p) &&
           p.count >= MANY_VECTORS && p.count % (2 * turns * GPU_BLOCK) == 0 &&
           gpu_is_short(l, p.s->body, 2 * turns))
        turns *= 2;
    int64_t own = l->gpu->block - (l->gpu->common ? GPU_WARP : 0); // threads that have points
    int64_t size = turns * own, chunks = (p.count + size - 1) / size;
    struct cg_loop chunk =
        step->exact_grid ? gpu_own_chunk_open(l, chunks) : gpu_chunks_open(l, chunks);
    LLVMValueRef i = LLVMBuildMul(b, chunk.index, cg_int(l->module, size), "");
    i = LLVMBuildAdd(b, i, gpu_wide(l, l->gpu->thread), "");
    struct cg_branch inside = {0};
    LLVMValueRef last = cg_int(l->module, p.count - 1);
    LLVMValueRef is_inside = LLVMBuildICmp(b, LLVMIntSLE, i, last, "");
    if (l->gpu->common) { // threads beyond the block of points have none
        LLVMValueRef has_one =
            LLVMBuildICmp(b, LLVMIntSLT, l->gpu->thread, gpu_i32(l, own), "");
        is_inside = LLVMBuildAnd(b, is_inside, has_one, "");
        gpu_common_guard(l->gpu->common, is_inside);
        i = LLVMBuildSelect(b, is_inside, i, last, "");
    } else if (p.count % size) {
        inside = cg_if_open(l, is_inside);
    }
    bool is_warp = p.lanes == 1 && p.count % GPU_WARP == 0 &&
                   l->nest->axes.at[p.axis].extent % GPU_WARP == 0;
    l->gpu->warp_points = is_warp ? &p : NULL;
    l->gpu->replay = has_time && p.lanes == 1 ? gpu_replay_find(l, loop) : NULL;
    if (at_once)
        gpu_points_turns(l, &p, i, turns, own);
    for (int64_t k = 0; k < turns && !at_once; k++)
        gpu_points_body(l, &p, LLVMBuildAdd(b, i, cg_int(l->module, k * own), ""));
    l->gpu->warp_points = NULL;
    l->gpu->replay = NULL;
    if (p.count % size && !l->gpu->common)
        cg_if_close(l, &inside);
    cg_loop_close(l, &chunk);
    step->total = p.count;
    step->grain = size;
}

static void by_tiles(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step)
{
    struct gpu_tiles t;
    gpu_tiles_find(l, loop, &t);
    l->gpu->group = l->gpu->block; // they wait for one another
    l->gpu->is_alone = true;
    step->total = t.side ? t.count / 2 + t.side / 2 : t.count;
    struct cg_loop chunk = gpu_own_chunk_open(l, step->total);
    gpu_tiles_lower(l, &t, chunk.index);
    cg_loop_close(l, &chunk);
    step->grain = 1;
    step->exact_grid = true;
}

// One block of threads, the first.
static void by_one(struct cg_lowering *l, const struct nest_block *body,
                   struct cg_kernel_step *step)
{
    gpu_lower_list(l, 0, body->statements.count);
    step->total = step->grain = 1;
}

// Whether points are much work without loops: a thread has so many registers that a multiprocessor has
// few blocks, and the last ones leave it waiting unless they are small.
static bool is_long(const struct cg_lowering *l, uint32_t block)
{
    nest_for_each (s, l->nest, block)
        if (s->kind > NEST_PUT)
            return false;
    return gpu_work(l, block) >= LONG_WORK;
}

struct choice {
    enum {
        BY_THREADS,
        BY_TILES,
        BY_COLUMNS,
        BY_GROUPS,
        BY_BLOCKS,
        BY_SCAN,
        BY_NETWORK,
        BY_UPDATES,
        BY_PARTS,
        BY_TRIPS,
        BY_ATTENTION,
        BY_ATTENTION_GRADIENT,
        BY_ONE
    } role;
    uint32_t at; // the loop, in the body of the nest
    nest_id loop;
};

// The threads of blocks that have blocks of the fold, which so many points have each.  Few blocks of the fold are
// those of as many blocks of threads.
static void choose_blocks(struct cg_lowering *l, nest_id fold, int64_t points)
{
    struct cg_gpu *g = l->gpu;
    const struct nest_statement *s = cg_statement(l, fold);
    for (g->group = GPU_BLOCK;; g->group /= 2) {
        g->row = gpu_row_make(l, s, g->group);
        if (g->group == GPU_WARP ||
            points * (g->row.blocks / g->row.teams) >= GPU_MULTIPROCESSORS)
            break;
    }
    g->block = g->group;
    if (g->block == GPU_BLOCK && gpu_work(l, s->body) >= LONG_WORK &&
        (uint64_t)values_at_once(l, s) * g->row.lanes <= FEW_VALUES)
        g->resident = RESIDENT_FOR_TERMS;
}

static struct choice choose(struct cg_lowering *l, const struct nest_block *body)
{
    struct choice c = {.role = BY_ONE};
    struct cg_gpu *g = l->gpu;
    uint32_t loops = 0, scans = 0;
    for (uint32_t i = 0; i < body->statements.count; i++)
        if (gpu_is_loop(cg_statement(l, body->statements.at[i])->kind)) {
            loops++;
            scans += gpu_is_long_scan(l, body->statements.at[i]);
            c.at = i;
        }
    g->block = g->group = 1;
    c.loop = loops ? body->statements.at[c.at] : NEST_NONE;
    const struct nest_statement *s = loops ? cg_statement(l, c.loop) : NULL;
    bool ends = c.at + 1 == body->statements.count;
    if (loops == 1 && ends && gpu_is_attention(l)) {
        c.role = BY_ATTENTION;
        return c;
    }
    if (loops == 1 && ends && gpu_is_attention_gradient(l)) {
        c.role = BY_ATTENTION_GRADIENT;
        return c;
    }
    if (loops == 1 && ends && gpu_is_updates(l, c.loop)) {
        c.role = BY_UPDATES;
        return c;
    }
    if (loops == 1 && ends && s->kind == NEST_PAR && !gpu_has_updates(l->nest) &&
        gpu_is_parts(l, c.loop)) {
        c.role = BY_PARTS;
        return c;
    }
    g->group = 2; // lanes of a group are asked for
    nest_id shared = loops == 1 && ends ? gpu_shared_fold(l, c.loop) : NEST_NONE;
    g->group = 1;
    if (shared != NEST_NONE) {
        c.role = BY_BLOCKS;
        choose_blocks(l, shared, cg_extent(l, s));
        return c;
    }
    if (loops == 1 && ends && !g->is_phase && gpu_is_trips(l, c.loop)) {
        c.role = BY_TRIPS;
        g->block = GPU_TRIPS_BLOCK;
        return c;
    }
    if (loops == 1 && ends && gpu_is_scan_of_points(l, c.loop)) {
        c.role = BY_SCAN;
        return c;
    }
    if (loops == 1 && ends && (s->kind == NEST_PAR || s->kind == NEST_MAP)) {
        g->group = 2; // lanes of a group are asked for
        bool groups = gpu_groups_wanted(l, s);
        c.role = groups ? BY_GROUPS : BY_THREADS;
        g->group = 1;
        g->block = GPU_BLOCK;
        struct gpu_tiles tiles;
        if (!groups && gpu_tiles_find(l, c.loop, &tiles)) {
            c.role = BY_TILES;
            g->block = gpu_tile_threads(&tiles);
            g->resident = TILES_THREADS / g->block;
        } else if (!groups && gpu_columns_choose(l, c.loop)) {
            c.role = BY_COLUMNS;
        }
        if (groups)
            gpu_groups_choose(l, c.loop);
        if (c.role == BY_THREADS && !g->is_phase && is_long(l, s->body))
            g->block = SMALL_BLOCK;
        g->common = c.role == BY_THREADS ? gpu_common_find(l, c.loop) : NULL;
        if (g->common)
            g->block = gpu_common_threads(cg_extent(l, s)) + GPU_WARP;
        else if (c.role == BY_THREADS && gpu_has_strips(l, c.loop))
            g->block = STRIPS_BLOCK;
        else if (c.role == BY_THREADS)
            g->resident = resident_for_maps(l, c.loop);
        return c;
    }
    if (loops == 1 && gpu_is_network(l, c.loop)) {
        c.role = BY_NETWORK;
        return c;
    }
    if (loops == scans && loops && ends && !gpu_has_updates(l->nest)) {
        c.role = BY_SCAN;
        return c;
    }
    nest_id widest = gpu_longest_loop(l, 0, NEST_NONE);
    if (widest == NEST_NONE || gpu_has_updates(l->nest) || gpu_has_kind(l->nest, NEST_CONTRACT))
        return c;
    g->group = 2;
    gpu_group_set(l, widest, ONE_BLOCK);
    g->block = g->group;
    if (loops == 1 && gpu_is_team_fold(l, c.loop) &&
        (g->row.blocks > 2 * g->row.teams || g->row.length > GPU_MOST_OF_ONE_BLOCK ||
         gpu_has_terms(l, c.loop))) {
        c.role = BY_BLOCKS;
        choose_blocks(l, c.loop, 1);
    }
    return c;
}

// Rows that threads keep are read once, and so much is written that the second cache does not hold it.
static bool are_streams(const struct cg_lowering *l, const struct choice *c)
{
    uint64_t written = 0;
    for (uint32_t i = 0; i < l->nest->buffers.count; i++) {
        const struct nest_buffer *info = &l->nest->buffers.at[i];
        if (info->role == NEST_OUT)
            written += (uint64_t)info->count * jot_dtype_size(info->dtype);
    }
    return c->role == BY_GROUPS && gpu_keeps(l) && written > GPU_SECOND_CACHE;
}

static void lower_by_role(struct cg_lowering *l, const struct choice *c, struct cg_kernel *out)
{
    const struct nest_block *body = &l->nest->blocks.at[0];
    struct cg_kernel_step *step = gpu_function_open(
        l, out, are_streams(l, c) ? GPU_STREAMS : "", c->role == BY_BLOCKS ? 2 : 0);
    if (c->role != BY_BLOCKS && c->role != BY_ONE)
        gpu_lower_list(l, 0, c->at);
    switch (c->role) {
    case BY_THREADS:
        by_threads(l, c->loop, step);
        break;
    case BY_TILES:
        by_tiles(l, c->loop, step);
        break;
    case BY_COLUMNS:
        gpu_columns_lower(l, c->loop, step);
        break;
    case BY_GROUPS:
        gpu_groups_run(l, c->loop, step);
        break;
    case BY_TRIPS:
        gpu_trips_lower(l, c->loop, step, &out->trips);
        break;
    default:
        by_one(l, body, step);
        break;
    }
    gpu_function_close(l, step);
}

// What stands before the loop again, by one thread when all others are done, for what it puts in
// memory that they read.
static void lower_late_puts(struct cg_lowering *l, uint32_t at, struct cg_kernel *out)
{
    const struct nest_block *body = &l->nest->blocks.at[0];
    struct cg_gpu *g = l->gpu;
    *g = (struct cg_gpu){.operands = g->operands,
                         .kernel = g->kernel,
                         .is_phase = g->is_phase,
                         .block = 1,
                         .group = 1};
    gpu_share_out(l, 0);
    unsigned extra = (out->partial_bytes > 0) + (out->counters > 0);
    struct cg_kernel_step *step = gpu_function_open(l, out, "_late", extra);
    for (uint32_t i = 0; i < at; i++)
        if (!gpu_is_loop(cg_statement(l, body->statements.at[i])->kind))
            cg_lower_statement(l, body->statements.at[i]);
    gpu_function_close(l, step);
}

// What one thread does of the kernel, as text.
static const char *serial_text(struct cg_lowering *l, const struct choice *c)
{
    static const char *const names[NEST_KIND_COUNT] = {
        [NEST_PAR] = "points",  [NEST_MAP] = "points",        [NEST_FOLD] = "terms",
        [NEST_SCAN] = "terms",  [NEST_SEQ] = "steps",         [NEST_WHILE] = "a while",
        [NEST_IF] = "a branch", [NEST_CONTRACT] = "a product"};
    struct gpu_serial s = {.loop = NEST_NONE};
    if (c->role == BY_ONE)
        gpu_serial_find(l, NEST_NONE, l->gpu->group > 1, &s);
    else if (c->role == BY_THREADS || c->role == BY_GROUPS)
        gpu_serial_find(l, c->loop, c->role == BY_GROUPS, &s);
    if (s.loop == NEST_NONE)
        return NULL;
    struct strbuf text = strbuf_make(l->arena);
    if (s.count > 1)
        strbuf_printf(&text, "%lld ", (long long)s.count);
    strbuf_printf(&text, "%s (%s)", names[cg_statement(l, s.loop)->kind], s.why);
    return text.text;
}

jot_status gpu_kernel_lower(struct cg_module *module, struct arena *arena,
                            const struct nest *nest, int number, int64_t trips,
                            const struct gpu_operand *operands, bool is_phase,
                            struct cg_kernel *out)
{
    *out = (struct cg_kernel){0};
    struct cg_gpu g = {
        .operands = operands, .kernel = number, .trips = trips, .is_phase = is_phase};
    struct cg_lowering l = cg_lowering_make(module, arena, nest);
    l.gpu = &g;
    int64_t code = nest_code(nest, 0, CG_FOLD_LANES, CG_STRIP, l.written_out);
    l.m.is_long = is_phase || code > COST_KERNEL_OPS;
    g.has_strips = code <= MOST_IN_STRIPS;
    struct choice c = choose(&l, &nest->blocks.at[0]);
    out->serial = serial_text(&l, &c);
    bool is_of_points = c.role == BY_GROUPS || c.role == BY_COLUMNS ||
                        (c.role == BY_BLOCKS && cg_statement(&l, c.loop)->kind == NEST_PAR);
    gpu_share_out(&l, is_of_points ? cg_statement(&l, c.loop)->body : 0);
    if (c.role == BY_SCAN)
        gpu_scan_lower(&l, out);
    else if (c.role == BY_BLOCKS)
        gpu_blocks_lower(&l, c.at, out);
    else if (c.role == BY_PARTS)
        gpu_parts_lower(&l, c.loop, out);
    else if (c.role == BY_UPDATES)
        gpu_updates_lower(&l, c.at, out);
    else if (c.role == BY_NETWORK)
        gpu_network_lower(&l, c.at, out);
    else if (c.role == BY_ATTENTION)
        gpu_attention_lower(&l, c.at, out);
    else if (c.role == BY_ATTENTION_GRADIENT)
        gpu_attention_gradient_lower(&l, c.at, out);
    else
        lower_by_role(&l, &c, out);
    if (g.has_late_puts)
        lower_late_puts(&l, c.at, out);
    LLVMDisposeBuilder(l.m.b);
    if (l.status != JOT_OK)
        return status_fail(l.status, "%s: %s", nest->name, l.message);
    return JOT_OK;
}
