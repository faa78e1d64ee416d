// SPDX-License-Identifier: Apache-2.0
// Points that several threads share: groups of threads along an axis inside, each with a point, and
// columns, neighbouring points of neighbouring threads.
#include "codegen/gpu/gpu.h"

#include "passes/cost.h"

#define SHORT_ROW 256     // elements that a narrow group reads at once
#define NARROW_GROUP 8    // threads
#define ROW_AT_HAND 32    // elements of a row that a thread has registers for beside those of
#define RESIDENT 4        // so many blocks
#define WIDENED 8         // elements of a point of which there are few, for each thread
#define COLUMNS_BLOCK 512 // threads that have registers enough for the stack of the tree
#define MANY_THREADS (GPU_MULTIPROCESSORS * 1024) // that keep one busy
#define FEW_POINTS (GPU_MULTIPROCESSORS * 4)      // of which a block each keeps a GPU busy
#define FEW_THREADS (GPU_MULTIPROCESSORS * 64)
#define LEAST_COLUMNS 8      // of a block
#define SMALL_READ (1 << 20) // elements that the second cache hands out in any order

// The longest loop in the block that threads can share, which decides how many they are.
nest_id gpu_longest_loop(const struct cg_lowering *l, uint32_t block, nest_id best)
{
    nest_for_each (s, l->nest, block) {
        nest_id id = nest_id_of(l->nest, s);
        if (s->kind == NEST_MAP || s->kind == NEST_PAR || s->kind == NEST_FOLD) {
            bool is_better = best == NEST_NONE ||
                             cg_extent(l, s) > cg_extent(l, cg_statement(l, best)) ||
                             (cg_extent(l, s) == cg_extent(l, cg_statement(l, best)) &&
                              gpu_is_team_fold(l, id));
            best = is_better ? id : best;
        }
        best = gpu_longest_loop(l, s->body, best);
        best = gpu_longest_loop(l, s->other, best);
    }
    return best;
}

// Arrays that are read and written are for one thread at a time.
bool gpu_has_updates(const struct nest *nest)
{
    nest_for_all (s, nest)
        if (s->kind == NEST_LOAD && nest->buffers.at[s->buffer].role != NEST_IN &&
            nest->buffers.at[s->buffer].role != NEST_LOCAL)
            return true;
    return false;
}

bool gpu_has_kind(const struct nest *nest, enum nest_kind kind)
{
    nest_for_all (s, nest)
        if (s->kind == kind)
            return true;
    return false;
}

// Operations of one of the threads that share the loops of a block.
static double work_of(const struct cg_lowering *l, uint32_t block, unsigned threads)
{
    double work = 0;
    nest_for_each (s, l->nest, block) {
        nest_id id = nest_id_of(l->nest, s);
        bool is_loop = s->kind == NEST_MAP || s->kind == NEST_PAR || s->kind == NEST_SCAN ||
                       s->kind == NEST_FOLD;
        bool is_shared = is_loop && (s->kind != NEST_FOLD || gpu_is_team_fold(l, id));
        int64_t turns = s->n_axes ? cg_extent(l, s) : 1;
        turns = is_shared ? (turns + threads - 1) / threads : turns;
        work += s->kind == NEST_OP ? cost_of_op(s->op, s->dtype) : 1;
        work += (double)turns * (work_of(l, s->body, is_loop ? 1 : threads) +
                                 work_of(l, s->other, is_loop ? 1 : threads));
    }
    return work;
}

// Elements of memory that are a point's own.
static double own_elements(const struct cg_lowering *l, uint32_t block,
                           const struct nest_statement *points)
{
    double count = 0;
    nest_for_each (s, l->nest, block) {
        bool is_own = false;
        if ((s->kind == NEST_LOAD || s->kind == NEST_PUT) &&
            l->nest->buffers.at[s->buffer].role != NEST_LOCAL) {
            for (uint32_t k = 0; k < points->n_axes; k++)
                is_own |= nest_index_factor(&s->index, points->axes[k]) != 0;
            for (uint32_t k = 0; k < s->index.count; k++)
                is_own |= s->index.terms[k].is_value;
        }
        count += is_own;
        count += (s->n_axes ? (double)cg_extent(l, s) : 1) *
                 (own_elements(l, s->body, points) + own_elements(l, s->other, points));
    }
    return count;
}

// Whether points that compute far more than they read are done sooner by a thread each than by a warp, of
// which each thread repeats what it does not share.
static bool are_for_threads(const struct cg_lowering *l, const struct nest_statement *s)
{
    double points = (double)cg_extent(l, s), alone = work_of(l, s->body, 1);
    double shared = work_of(l, s->body, GPU_WARP), waves = points / MANY_THREADS;
    double times = waves > 1 ? waves : 1;
    double times_shared = waves * GPU_WARP > 1 ? waves * GPU_WARP : 1;
    return alone >= COST_GROUP_WORK * own_elements(l, s->body, s) &&
           alone * times * COST_GROUP_BETTER <= shared * times_shared;
}

static bool has_locals(const struct nest *nest)
{
    for (uint32_t i = 0; i < nest->buffers.count; i++)
        if (nest->buffers.at[i].role == NEST_LOCAL)
            return true;
    return false;
}

// Neighbouring points of a block, where so few have a long fold each that several threads share one; 0: they are none.
static int64_t columns_of(struct cg_lowering *l, const struct nest_statement *s, int64_t length)
{
    struct cg_gpu *g = l->gpu;
    unsigned before = g->columns, group = g->group;
    int64_t columns = GPU_WARP;
    nest_id inner = gpu_longest_loop(l, s->body, NEST_NONE);
    if (gpu_has_updates(l->nest) || gpu_has_kind(l->nest, NEST_CONTRACT) ||
        has_locals(l->nest) || !gpu_is_team_fold(l, inner) || length <= fold_block(length))
        return 0;
    g->columns = GPU_WARP; // lanes are asked for
    g->group = 1;
    struct gpu_points p = gpu_points_make(l, nest_id_of(l->nest, s), true);
    g->columns = before;
    g->group = group;
    while (columns > LEAST_COLUMNS / 2 && p.count % columns)
        columns /= 2;
    bool is = p.count <= MANY_THREADS && l->nest->axes.at[p.axis].extent % p.lanes == 0;
    return is && columns >= LEAST_COLUMNS ? columns : 0;
}

bool gpu_has_columns(struct cg_lowering *l, const struct nest_statement *s)
{
    nest_id inner = gpu_longest_loop(l, s->body, NEST_NONE);
    return inner != NEST_NONE && columns_of(l, s, cg_extent(l, cg_statement(l, inner)));
}

bool gpu_groups_wanted(struct cg_lowering *l, const struct nest_statement *s)
{
    nest_id inner = gpu_longest_loop(l, s->body, NEST_NONE);
    if (inner == NEST_NONE || gpu_has_updates(l->nest) || gpu_has_kind(l->nest, NEST_CONTRACT))
        return false;
    if (are_for_threads(l, s))
        return false;
    int64_t length = cg_extent(l, cg_statement(l, inner)), points = cg_extent(l, s);
    struct nest_lines lines = nest_lines_in(l->nest, s);
    // Elements that lie beside those of other points are for neighbouring threads, but for so few that
    // the loads of a thread, which wait for one another, would be all that there is.
    bool is_fold = cg_statement(l, inner)->kind == NEST_FOLD;
    bool is_alone = length <= fold_block(length) || has_locals(l->nest) ||
                    (is_fold && !columns_of(l, s, length));
    bool is_small = length >= FOLD_LANES &&
                    (points * length <= SMALL_READ || (is_alone && points < FEW_THREADS));
    if (length < 16 || (nest_lies_along(lines) && !is_small))
        return false;
    return points < FEW_POINTS * GPU_BLOCK || lines.of_inner < lines.of_points;
}

// Marks the statements of the block that stand in one of these kinds, or are one.
static void mark(const struct cg_lowering *l, uint32_t block, uint32_t kinds, bool with_itself,
                 bool inside, bool *marks)
{
    nest_for_each (s, l->nest, block) {
        nest_id id = nest_id_of(l->nest, s);
        bool within = inside || kinds >> s->kind & 1;
        marks[id] = with_itself ? within : inside;
        mark(l, s->body, kinds, with_itself, within, marks);
        mark(l, s->other, kinds, with_itself, within, marks);
    }
}

// What threads of a group do together: statements from the block on that are in no shared loop.
void gpu_share_out(struct cg_lowering *l, uint32_t block)
{
    struct cg_gpu *g = l->gpu;
    g->is_shared_out = arena_array(l->arena, bool, l->nest->statements.count + 1);
    g->is_repeated = arena_array(l->arena, bool, l->nest->statements.count + 1);
    g->is_read = arena_array(l->arena, bool, l->nest->buffers.count + 1);
    g->scopes = arena_array(l->arena, nest_id, l->nest->buffers.count + 1);
    g->shares_locals = false;
    g->statement = 0;
    mark(l, block, 1u << NEST_SEQ | 1u << NEST_WHILE | 1u << NEST_IF, false, false,
         g->is_repeated);
    nest_local_scopes(l->nest, g->scopes);
    if (g->group > 1)
        mark(l, block, 1u << NEST_MAP | 1u << NEST_PAR | 1u << NEST_FOLD | 1u << NEST_SCAN,
             true, false, g->is_shared_out);
    for (uint32_t i = 0; i < l->nest->buffers.count; i++)
        g->shares_locals |= g->group > 1 && l->nest->buffers.at[i].role == NEST_LOCAL &&
                            (g->scopes[i] == NEST_NONE || !g->is_shared_out[g->scopes[i]]);
}

bool gpu_is_loop(enum nest_kind kind)
{
    return kind == NEST_PAR || kind == NEST_MAP || kind == NEST_FOLD || kind == NEST_SCAN ||
           kind == NEST_SEQ || kind == NEST_WHILE || kind == NEST_IF || kind == NEST_CONTRACT;
}

// Bytes of the locals that the threads of a group share.
static uint64_t shared_rows(const struct cg_lowering *l)
{
    uint64_t bytes = 0;
    for (nest_id i = 0; i < l->nest->buffers.count; i++) {
        const struct nest_buffer *x = &l->nest->buffers.at[i];
        if (x->role == NEST_LOCAL)
            bytes += (uint64_t)x->count * jot_dtype_size(x->dtype);
    }
    return bytes;
}

void gpu_group_set(struct cg_lowering *l, nest_id widest, unsigned most)
{
    struct cg_gpu *g = l->gpu;
    const struct nest_statement *s = cg_statement(l, widest);
    g->group = gpu_is_team_fold(l, widest) ? gpu_row_threads(l, s) : GPU_WARP;
    while (!gpu_is_team_fold(l, widest) && g->group < most &&
           (int64_t)g->group * 8 < cg_extent(l, s))
        g->group *= 2;
    g->group = g->group > most ? most : g->group;
    g->block = g->group < GPU_BLOCK ? GPU_BLOCK : g->group;
    while (g->block > g->group && shared_rows(l) * (g->block / g->group) > COST_SHARED_BYTES)
        g->block /= 2;
    // Groups of several warps wait for one another by a barrier, which is one of the block.
    if (g->group > GPU_WARP)
        g->block = g->group;
    if (gpu_is_team_fold(l, widest))
        g->row = gpu_row_make(l, s, g->group);
}

// Many points with one short fold each: a warp has several, and each thread more of its row.
static bool is_narrow(struct cg_lowering *l, nest_id loop, nest_id fold)
{
    uint32_t loops = 0;
    nest_for_each (s, l->nest, cg_statement(l, loop)->body)
        loops += gpu_is_loop(s->kind);
    for (uint32_t i = 0; i < l->nest->buffers.count; i++)
        loops += l->nest->buffers.at[i].role == NEST_LOCAL;
    int64_t points = cg_extent(l, cg_statement(l, loop));
    return loops == 1 && gpu_is_team_fold(l, fold) && !l->gpu->is_phase &&
           l->gpu->row.length <= SHORT_ROW && points * NARROW_GROUP >= MANY_THREADS &&
           points % (GPU_WARP / NARROW_GROUP) == 0;
}

// Points that leave multiprocessors idle have a block each, with more threads than share their fold:
// for the maps beside it, and for the loads of all.
static void widen(struct cg_lowering *l, nest_id loop, nest_id widest)
{
    struct cg_gpu *g = l->gpu;
    const struct nest_statement *s = cg_statement(l, widest);
    if (cg_extent(l, cg_statement(l, loop)) > GPU_MULTIPROCESSORS || g->is_phase)
        return;
    while (g->group < GPU_BLOCK && (int64_t)g->group * WIDENED < cg_extent(l, s))
        g->group *= 2;
    if (g->group > GPU_WARP)
        g->block = g->group;
    if (gpu_is_team_fold(l, widest))
        g->row = gpu_row_make(l, s, g->group);
}

void gpu_groups_choose(struct cg_lowering *l, nest_id loop)
{
    l->gpu->group = 2; // lanes of a group are asked for
    struct cg_gpu *g = l->gpu;
    nest_id widest = gpu_longest_loop(l, cg_statement(l, loop)->body, NEST_NONE);
    gpu_group_set(l, widest, 1024);
    widen(l, loop, widest);
    if (is_narrow(l, loop, widest)) {
        g->group = NARROW_GROUP;
        g->row = gpu_row_make(l, cg_statement(l, widest), g->group);
    }
    int64_t at_hand = g->row.length / g->group;
    g->resident = g->row.is_exact && g->block == GPU_BLOCK && at_hand > ROW_AT_HAND / 2 &&
                          at_hand <= ROW_AT_HAND
                      ? RESIDENT
                      : 0;
    gpu_kept_find(l, loop);
}

void gpu_groups_run(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step)
{
    const struct nest_statement *s = cg_statement(l, loop);
    struct gpu_points p = {.s = s,
                           .axis = s->axes[s->n_axes - 1],
                           .lanes = 1,
                           .rows = 1,
                           .count = cg_extent(l, s)};
    int64_t groups = l->gpu->block / l->gpu->group;
    struct cg_loop chunk = gpu_own_chunk_open(l, (p.count + groups - 1) / groups);
    LLVMValueRef i = chunk.index;
    struct cg_branch inside = {0};
    if (groups > 1) {
        i = LLVMBuildAdd(l->m.b, LLVMBuildMul(l->m.b, i, cg_int(l->module, groups), ""),
                         gpu_wide(l, l->gpu->number), "");
        inside =
            cg_if_open(l, LLVMBuildICmp(l->m.b, LLVMIntSLT, i, cg_int(l->module, p.count), ""));
    }
    gpu_points_body(l, &p, i);
    if (chunk.body)
        gpu_sync(l); // what is shared is used again
    if (groups > 1)
        cg_if_close(l, &inside);
    cg_loop_close(l, &chunk);
    step->total = p.count;
    step->grain = groups;
    step->exact_grid = true;
}

bool gpu_columns_choose(struct cg_lowering *l, nest_id loop)
{
    struct cg_gpu *g = l->gpu;
    const struct nest_statement *s = cg_statement(l, loop);
    nest_id inner = gpu_longest_loop(l, s->body, NEST_NONE);
    int64_t length = inner == NEST_NONE ? 0 : cg_extent(l, cg_statement(l, inner));
    g->columns = inner == NEST_NONE ? 0 : columns_of(l, s, length);
    if (!g->columns)
        return false;
    g->group = GPU_WARP;
    while (g->group / 2 * fold_block(length) >= length)
        g->group /= 2;
    while (g->group * g->columns > COLUMNS_BLOCK)
        g->group /= 2;
    while (g->is_phase && g->group * g->columns < GPU_WARP)
        g->group *= 2; // beside others of the block there are whole warps
    g->block = g->group * g->columns;
    return true;
}

// Neighbouring points for neighbouring threads, and several threads for each.
void gpu_columns_lower(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step)
{
    struct gpu_points p = gpu_points_make(l, loop, true);
    int64_t columns = l->gpu->columns;
    struct cg_loop chunk = gpu_own_chunk_open(l, p.count / columns);
    LLVMValueRef i = LLVMBuildMul(l->m.b, chunk.index, cg_int(l->module, columns), "");
    gpu_points_body(l, &p, LLVMBuildAdd(l->m.b, i, gpu_wide(l, l->gpu->number), ""));
    if (chunk.body)
        gpu_sync(l);
    cg_loop_close(l, &chunk);
    step->total = p.count;
    step->grain = columns;
    step->exact_grid = true;
}
