// SPDX-License-Identifier: Apache-2.0
// A nest as a kernel: who does its points.
//
//     threads   par i { scalars, short folds, loops over time }    a thread has a few points
//     tiles     par i, j { reads that are contiguous along i }      a block of threads has 32 by 32 points
//     columns   par i { long folds of i's neighbours }             threads of several warps have a point
//     parts     the same of few points                              blocks of threads have parts of the folds
//     groups    par i { folds and maps along contiguous axes }     a group of threads has a point
//     blocks    fold i { } ...                                     blocks of threads have blocks of the fold;
//                                                                  the last one to end brings them together
//     scan      scan i { ... }                                      warps have parts of it (scan.c)
//     updates   seq i { put y[%i] = ... }                           warps or threads have places (updates.c)
//     network   fold i { contract, sums over i }                    a thread has a point, groups the sums (network.c)
//     attention par i { products and a softmax }                   warps have tiles of it (attention.c)
//     one       anything else                                      one block of threads
//
// A kernel runs its chunks by `for (c = block number; c < chunks; c += blocks)`.
#include "codegen/gpu/gpu.h"

#include "base/status.h"

#include <llvm-c/Target.h>
#include <stdio.h>
#include <string.h>

#define BLOCK 256
#define ONE_BLOCK 512
#define MANY_VECTORS (GPU_MULTIPROCESSORS * 8192) // of which a thread has several
#define MOST_TURNS 4
#define WORK_OF_TURN 16.0  // operations of a point
#define ROW_AT_HAND 32     // elements of a row that a thread has registers for beside those of
#define RESIDENT 4         // so many blocks
#define TILES_THREADS 2048 // of a multiprocessor
#define SHORT_ROW 256      // elements that a narrow group reads at once
#define NARROW_GROUP 8     // threads
#define COLUMNS_BLOCK 512  // threads that have registers enough for the stack of the tree
#define MOST_SHARED (227 * 1024)
#define MOST_LOCAL (512 * 1024) // of a thread; a kernel with more is not started
#define MANY_THREADS (GPU_MULTIPROCESSORS * 1024) // that keep one busy
#define FEW_POINTS (GPU_MULTIPROCESSORS * 4)      // of which a block each keeps a GPU busy

static void set_attribute(struct cg_lowering *l, unsigned parameter, const char *name,
                          uint64_t value)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(l->function, parameter + 1,
                            LLVMCreateEnumAttribute(l->module->context, kind, value));
}

static void annotate(struct cg_lowering *l, const char *what, unsigned value)
{
    LLVMContextRef c = l->module->context;
    LLVMMetadataRef parts[] = {LLVMValueAsMetadata(l->function),
                               LLVMMDStringInContext2(c, what, strlen(what)),
                               LLVMValueAsMetadata(LLVMConstInt(l->module->i32, value, 0))};
    LLVMAddNamedMetadataOperand(l->module->module, "nvvm.annotations",
                                LLVMMetadataAsValue(c, LLVMMDNodeInContext2(c, parts, 3)));
}

static unsigned count_operands(const struct nest *nest)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < nest->buffers.count; i++)
        n += nest->buffers.at[i].role != NEST_LOCAL;
    return n;
}

// Where the threads are, from the machine or, in a phase, from what stands behind the operands.
static void find_place(struct cg_lowering *l, unsigned n)
{
    struct cg_gpu *g = l->gpu;
    g->thread = g->is_phase ? LLVMGetParam(l->function, n) : gpu_special(&l->m, "tid.x");
    if (!g->is_phase)
        return;
    g->block_number = LLVMGetParam(l->function, n + 1);
    g->blocks = LLVMGetParam(l->function, n + 2);
    g->barrier = LLVMGetParam(l->function, n + 3);
    g->shared = LLVMGetParam(l->function, n + 4);
}

static void begin_function(struct cg_lowering *l, const char *symbol, unsigned extra)
{
    unsigned n = count_operands(l->nest) + extra;
    LLVMTypeRef *types = arena_array(l->arena, LLVMTypeRef, n + GPU_PHASE_PARAMETERS);
    for (unsigned i = 0; i < n + GPU_PHASE_PARAMETERS; i++)
        types[i] = i < n || i == n + 4 ? l->module->ptr : l->module->i32;
    unsigned all = l->gpu->is_phase ? n + GPU_PHASE_PARAMETERS : n;
    LLVMTypeRef type =
        LLVMFunctionType(LLVMVoidTypeInContext(l->module->context), types, all, 0);
    l->function = LLVMAddFunction(l->module->module, symbol, type);
    if (l->gpu->is_phase) {
        LLVMSetLinkage(l->function, LLVMInternalLinkage);
        set_attribute(l, LLVMAttributeFunctionIndex - 1u, "alwaysinline", 0);
    } else {
        LLVMSetFunctionCallConv(l->function, LLVMPTXKernelCallConv);
        annotate(l, "maxntidx", l->gpu->block);
        if (l->gpu->resident)
            annotate(l, "minctasm", l->gpu->resident);
    }
    l->entry = LLVMAppendBasicBlockInContext(l->module->context, l->function, "entry");
    LLVMBasicBlockRef start =
        LLVMAppendBasicBlockInContext(l->module->context, l->function, "start");
    LLVMPositionBuilderAtEnd(l->m.b, l->entry);
    uint32_t operand = 0;
    for (uint32_t i = 0; i < l->nest->buffers.count; i++) {
        const struct nest_buffer *info = &l->nest->buffers.at[i];
        if (info->role == NEST_LOCAL)
            continue;
        const struct gpu_operand *o = &l->gpu->operands[operand];
        set_attribute(l, operand, "align", o->align);
        if (o->is_alone)
            set_attribute(l, operand, "noalias", 0);
        if (o->is_constant && info->role == NEST_IN)
            set_attribute(l, operand, "readonly", 0);
        l->buffers[i].base = LLVMGetParam(l->function, operand++);
    }
    struct cg_gpu *g = l->gpu;
    find_place(l, n);
    g->place = g->thread;
    g->number = gpu_i32(l, 0);
    if (g->columns) {
        g->place = LLVMBuildUDiv(l->m.b, g->thread, gpu_i32(l, g->columns), "");
        g->number = LLVMBuildURem(l->m.b, g->thread, gpu_i32(l, g->columns), "");
    } else if (g->group < g->block) {
        g->number = LLVMBuildUDiv(l->m.b, g->thread, gpu_i32(l, g->group), "");
        g->place = LLVMBuildURem(l->m.b, g->thread, gpu_i32(l, g->group), "");
    }
    LLVMBuildBr(l->m.b, start);
    LLVMPositionBuilderAtEnd(l->m.b, start);
}

// The bytes of its own that a thread has.
static uint64_t local_bytes(const struct cg_lowering *l)
{
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(l->module->module);
    uint64_t bytes = 0;
    for (LLVMValueRef i = LLVMGetFirstInstruction(l->entry); i; i = LLVMGetNextInstruction(i))
        if (LLVMGetInstructionOpcode(i) == LLVMAlloca)
            bytes += LLVMABISizeOfType(layout, LLVMGetAllocatedType(i));
    return bytes;
}

// ---- What a nest asks for

// The most telling accesses of a point: are they beside one another along an axis of the loop,
// or along an axis inside?
struct directions {
    double along, inside;
    nest_id outer; // the axis of the loop
};

static void look(const struct cg_lowering *l, uint32_t block, double times, bool is_inside,
                 const nest_id *axes, uint32_t n_axes, struct directions *d)
{
    if (block >= l->nest->blocks.count)
        return;
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        if ((s->kind == NEST_LOAD || s->kind == NEST_PUT) && is_inside &&
            l->nest->buffers.at[s->buffer].role != NEST_LOCAL) {
            int64_t outer = nest_index_factor(&s->index, d->outer);
            if (outer == 1 || outer == -1)
                d->along += times;
            for (uint32_t k = 0; k < n_axes; k++) {
                int64_t inner = nest_index_factor(&s->index, axes[k]);
                if (inner == 1 || inner == -1)
                    d->inside += times;
            }
        }
        bool is_loop = s->kind == NEST_MAP || s->kind == NEST_FOLD || s->kind == NEST_PAR;
        double turns = s->n_axes ? (double)cg_extent(l, s) : 1;
        look(l, s->body, times * turns, is_inside || is_loop, is_loop ? s->axes : axes,
             is_loop ? s->n_axes : n_axes, d);
        look(l, s->other, times, is_inside, axes, n_axes, d);
    }
}

// The longest loop in the block that threads can share, which decides how many they are.
static nest_id longest(const struct cg_lowering *l, uint32_t block, nest_id best)
{
    if (block >= l->nest->blocks.count)
        return best;
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *s = cg_statement(l, id);
        if (s->kind == NEST_MAP || s->kind == NEST_PAR || s->kind == NEST_FOLD) {
            bool is_better = best == NEST_NONE ||
                             cg_extent(l, s) > cg_extent(l, cg_statement(l, best)) ||
                             (cg_extent(l, s) == cg_extent(l, cg_statement(l, best)) &&
                              gpu_is_team_fold(l, id));
            best = is_better ? id : best;
        }
        best = longest(l, s->body, best);
        best = longest(l, s->other, best);
    }
    return best;
}

// Arrays that are read and written are for one thread at a time.
static bool has_updates(const struct nest *nest)
{
    for (uint32_t i = 0; i < nest->statements.count; i++) {
        const struct nest_statement *s = &nest->statements.at[i];
        if (s->kind == NEST_LOAD && nest->buffers.at[s->buffer].role != NEST_IN &&
            nest->buffers.at[s->buffer].role != NEST_LOCAL)
            return true;
    }
    return false;
}

static bool has_kind(const struct nest *nest, enum nest_kind kind)
{
    for (uint32_t i = 0; i < nest->statements.count; i++)
        if (nest->statements.at[i].kind == kind)
            return true;
    return false;
}

static bool wants_groups(const struct cg_lowering *l, const struct nest_statement *s)
{
    nest_id inner = longest(l, s->body, NEST_NONE);
    if (inner == NEST_NONE || has_updates(l->nest) || has_kind(l->nest, NEST_CONTRACT))
        return false;
    int64_t length = cg_extent(l, cg_statement(l, inner)), points = cg_extent(l, s);
    struct directions d = {.outer = s->axes[s->n_axes - 1]};
    look(l, s->body, 1, false, NULL, 0, &d);
    if (length < 16 || d.along > d.inside)
        return false;
    return points < FEW_POINTS * BLOCK || d.inside > d.along;
}

static void mark_repeated(struct cg_lowering *l, uint32_t block, bool inside)
{
    if (block >= l->nest->blocks.count)
        return;
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *s = cg_statement(l, id);
        bool is_control = s->kind == NEST_SEQ || s->kind == NEST_WHILE || s->kind == NEST_IF;
        l->gpu->is_repeated[id] = inside;
        mark_repeated(l, s->body, inside || is_control);
        mark_repeated(l, s->other, inside || is_control);
    }
}

static void mark_shared_out(struct cg_lowering *l, uint32_t block, bool inside)
{
    if (block >= l->nest->blocks.count)
        return;
    const struct nest_block *b = &l->nest->blocks.at[block];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *s = cg_statement(l, id);
        bool is_out = inside || s->kind == NEST_MAP || s->kind == NEST_PAR ||
                      s->kind == NEST_FOLD || s->kind == NEST_SCAN;
        l->gpu->is_shared_out[id] = is_out;
        mark_shared_out(l, s->body, is_out);
        mark_shared_out(l, s->other, is_out);
    }
}

// What threads of a group do together: statements from the block on that are in no shared loop.
static void share_out(struct cg_lowering *l, uint32_t block)
{
    struct cg_gpu *g = l->gpu;
    g->is_shared_out = arena_array(l->arena, bool, l->nest->statements.count + 1);
    g->is_repeated = arena_array(l->arena, bool, l->nest->statements.count + 1);
    g->is_read = arena_array(l->arena, bool, l->nest->buffers.count + 1);
    g->scopes = arena_array(l->arena, nest_id, l->nest->buffers.count + 1);
    g->shares_locals = false;
    g->statement = 0;
    mark_repeated(l, block, false);
    nest_local_scopes(l->nest, g->scopes);
    if (g->group > 1)
        mark_shared_out(l, block, false);
    for (uint32_t i = 0; i < l->nest->buffers.count; i++)
        g->shares_locals |= g->group > 1 && l->nest->buffers.at[i].role == NEST_LOCAL &&
                            (g->scopes[i] == NEST_NONE || !g->is_shared_out[g->scopes[i]]);
}

// ---- The roles

struct cg_loop gpu_chunks_open(struct cg_lowering *l, int64_t chunks)
{
    const struct cg_gpu *g = l->gpu;
    LLVMValueRef first = gpu_block_number(l);
    LLVMValueRef step = g->is_phase ? g->blocks : gpu_special(&l->m, "nctaid.x");
    if (chunks > INT32_MAX / 2) // where the last step could leave 32 bits
        return cg_loop_open(l, gpu_wide(l, first), cg_int(l->module, chunks),
                            gpu_wide(l, step));
    struct cg_loop loop = cg_loop_open(l, first, gpu_i32(l, chunks), step);
    loop.index = gpu_wide(l, loop.index);
    return loop;
}

struct cg_loop gpu_own_chunk_open(struct cg_lowering *l, int64_t chunks)
{
    if (l->gpu->is_phase)
        return gpu_chunks_open(l, chunks);
    return (struct cg_loop){.index = gpu_wide(l, gpu_block_number(l))};
}

static bool has_direct_load(const struct cg_lowering *l)
{
    const struct nest_block *b = &l->nest->blocks.at[0];
    for (uint32_t i = 0; i < b->statements.count; i++)
        if (cg_statement(l, b->statements.at[i])->kind == NEST_LOAD)
            return true;
    return false;
}

// Whether a thread is to wait for what it reads of two vectors at once: where it has that much to do
// with them, or where it has waited for their places.
static bool has_two_turns(const struct cg_lowering *l, const struct gpu_points *p)
{
    const struct nest_block *b = &l->nest->blocks.at[p->s->body];
    bool reads = false, waits = gpu_work(l, p->s->body) >= WORK_OF_TURN;
    for (uint32_t i = 0; i < b->statements.count; i++) {
        const struct nest_statement *s = cg_statement(l, b->statements.at[i]);
        if (s->kind > NEST_PUT || (s->kind == NEST_PUT && s->op))
            return false;
        reads |= s->kind == NEST_LOAD;
        for (uint32_t k = 0; s->kind == NEST_LOAD && k < s->index.count; k++)
            waits |= s->index.terms[k].is_value;
    }
    return reads && waits && !l->gpu->is_phase && p->lanes > 1 && p->count >= MANY_VECTORS &&
           p->count % (2 * BLOCK) == 0 && gpu_is_short(l, p->s->body, 2);
}

// Of blocks that stay, a thread has some of many vectors at once.
static void by_threads(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    struct gpu_points p = gpu_points_make(l, loop, true);
    bool has_time = cg_has_time(l, p.s->body);
    // What is read before the loop is read once by blocks that stay.
    step->exact_grid = has_time || !has_direct_load(l);
    int64_t turns = step->exact_grid && has_two_turns(l, &p) ? 2 : 1;
    while (turns < MOST_TURNS && !step->exact_grid && p.count >= MANY_VECTORS &&
           p.count % (2 * turns * BLOCK) == 0 && gpu_is_short(l, p.s->body, 2 * turns))
        turns *= 2;
    int64_t size = turns * BLOCK, chunks = (p.count + size - 1) / size;
    struct cg_loop chunk =
        step->exact_grid ? gpu_own_chunk_open(l, chunks) : gpu_chunks_open(l, chunks);
    LLVMValueRef i = LLVMBuildMul(b, chunk.index, cg_int(l->module, size), "");
    i = LLVMBuildAdd(b, i, gpu_wide(l, l->gpu->thread), "");
    struct cg_branch inside = {0};
    LLVMValueRef last = cg_int(l->module, p.count - 1);
    LLVMValueRef is_inside = LLVMBuildICmp(b, LLVMIntSLE, i, last, "");
    if (l->gpu->common) { // threads beyond the block of points have none
        LLVMValueRef size_of = gpu_i32(l, BLOCK);
        LLVMValueRef has_one = LLVMBuildICmp(b, LLVMIntSLT, l->gpu->thread, size_of, "");
        is_inside = LLVMBuildAnd(b, is_inside, has_one, "");
        gpu_common_guard(l->gpu->common, is_inside);
        i = LLVMBuildSelect(b, is_inside, i, last, "");
    } else if (p.count % size) {
        inside = cg_if_open(l, is_inside);
    }
    bool is_warp = has_time && p.lanes == 1 && p.count % GPU_WARP == 0 &&
                   l->nest->axes.at[p.axis].extent % GPU_WARP == 0;
    l->gpu->warp_points = is_warp ? &p : NULL;
    l->gpu->replay = has_time && p.lanes == 1 ? gpu_replay_find(l, loop) : NULL;
    for (int64_t k = 0; k < turns; k++)
        gpu_points_body(l, &p, LLVMBuildAdd(b, i, cg_int(l->module, k * BLOCK), ""));
    l->gpu->warp_points = NULL;
    l->gpu->replay = NULL;
    if (p.count % size && !l->gpu->common)
        cg_if_close(l, &inside);
    cg_loop_close(l, &chunk);
    step->total = p.count;
    step->grain = size;
}

static void by_groups(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step)
{
    const struct nest_statement *s = cg_statement(l, loop);
    struct gpu_points p = {
        .s = s, .axis = s->axes[s->n_axes - 1], .lanes = 1, .count = cg_extent(l, s)};
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

// Of a square, a block does a tile and then its mirror image, which reads the same.
static void by_mirrored_tiles(struct cg_lowering *l, const struct gpu_tiles *t,
                              LLVMValueRef chunk)
{
    LLVMBuilderRef b = l->m.b;
    int64_t side = t->side;
    LLVMValueRef n = cg_int(l->module, side);
    // Row i with the tiles from the diagonal on, and behind it those of row side - 1 - i.
    LLVMValueRef width = cg_int(l->module, side + 1);
    LLVMValueRef i = LLVMBuildUDiv(b, chunk, width, ""), j = LLVMBuildURem(b, chunk, width, "");
    LLVMValueRef last = cg_int(l->module, side - 1);
    LLVMValueRef is_above = LLVMBuildICmp(b, LLVMIntSGT, j, i, "");
    i = LLVMBuildSelect(b, is_above, i, LLVMBuildSub(b, last, i, ""), "");
    j = LLVMBuildSelect(b, is_above, LLVMBuildSub(b, j, cg_int(l->module, 1), ""),
                        LLVMBuildSub(b, last, j, ""), "");
    LLVMValueRef tile = LLVMBuildAdd(b, LLVMBuildMul(b, i, n, ""), j, "");
    LLVMValueRef image = LLVMBuildAdd(b, LLVMBuildMul(b, j, n, ""), i, "");
    LLVMValueRef is_two = LLVMBuildICmp(b, LLVMIntNE, i, j, "");
    LLVMValueRef count =
        LLVMBuildAdd(b, LLVMBuildZExt(b, is_two, l->module->i64, ""), cg_int(l->module, 1), "");
    struct cg_loop turn = cg_loop_open(l, cg_int(l->module, 0), count, cg_int(l->module, 1));
    LLVMValueRef is_first = LLVMBuildICmp(b, LLVMIntEQ, turn.index, cg_int(l->module, 0), "");
    gpu_tiles_lower(l, t, LLVMBuildSelect(b, is_first, tile, image, ""));
    cg_loop_close(l, &turn);
}

static void by_tiles(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step)
{
    struct gpu_tiles t;
    gpu_tiles_find(l, loop, &t);
    l->gpu->group = l->gpu->block; // they wait for one another
    l->gpu->is_alone = true;
    step->total = t.side ? t.count / 2 + t.side / 2 : t.count;
    struct cg_loop chunk = gpu_own_chunk_open(l, step->total);
    if (t.side)
        by_mirrored_tiles(l, &t, chunk.index);
    else
        gpu_tiles_lower(l, &t, chunk.index);
    cg_loop_close(l, &chunk);
    step->grain = 1;
    step->exact_grid = true;
}

// Neighbouring points for neighbouring threads, and several threads for each.
static void by_columns(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step)
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

void gpu_lower_list(struct cg_lowering *l, uint32_t from, uint32_t to)
{
    const struct nest_block *body = &l->nest->blocks.at[0];
    l->gpu->is_before = from == 0 && to < body->statements.count;
    for (uint32_t i = from; i < to; i++)
        cg_lower_statement(l, body->statements.at[i]);
    l->gpu->is_before = false;
}

// One block of threads, the first.
static void by_one(struct cg_lowering *l, const struct nest_block *body,
                   struct cg_kernel_step *step)
{
    gpu_lower_list(l, 0, body->statements.count);
    step->total = step->grain = 1;
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
        BY_ATTENTION,
        BY_ONE
    } role;
    uint32_t at; // the loop, in the body of the nest
    nest_id loop;
};

static bool is_loop(enum nest_kind kind)
{
    return kind == NEST_PAR || kind == NEST_MAP || kind == NEST_FOLD || kind == NEST_SCAN ||
           kind == NEST_SEQ || kind == NEST_WHILE || kind == NEST_IF || kind == NEST_TILE ||
           kind == NEST_CONTRACT;
}

static void set_group(struct cg_lowering *l, nest_id widest, unsigned most)
{
    struct cg_gpu *g = l->gpu;
    const struct nest_statement *s = cg_statement(l, widest);
    g->group = gpu_is_team_fold(l, widest) ? gpu_row_threads(l, s) : GPU_WARP;
    while (!gpu_is_team_fold(l, widest) && g->group < most &&
           (int64_t)g->group * 8 < cg_extent(l, s))
        g->group *= 2;
    g->group = g->group > most ? most : g->group;
    g->block = g->group < BLOCK ? BLOCK : g->group;
    // Groups of several warps wait for one another by a barrier, which is one of the block.
    if (g->group > GPU_WARP)
        g->block = g->group;
    if (gpu_is_team_fold(l, widest))
        g->row = gpu_row_make(l, s, g->group);
}

// Many points with one short fold each: a warp has several, and each thread more of its row.
static bool is_narrow(struct cg_lowering *l, nest_id loop, nest_id fold)
{
    const struct nest_block *b = &l->nest->blocks.at[cg_statement(l, loop)->body];
    uint32_t loops = 0;
    for (uint32_t i = 0; i < b->statements.count; i++)
        loops += is_loop(cg_statement(l, b->statements.at[i])->kind);
    for (uint32_t i = 0; i < l->nest->buffers.count; i++)
        loops += l->nest->buffers.at[i].role == NEST_LOCAL;
    int64_t points = cg_extent(l, cg_statement(l, loop));
    return loops == 1 && gpu_is_team_fold(l, fold) && !l->gpu->is_phase &&
           l->gpu->row.length <= SHORT_ROW && l->gpu->row.lanes > 1 &&
           points * NARROW_GROUP >= MANY_THREADS && points % (GPU_WARP / NARROW_GROUP) == 0;
}

void gpu_groups_choose(struct cg_lowering *l, nest_id loop)
{
    l->gpu->group = 2; // lanes of a group are asked for
    struct cg_gpu *g = l->gpu;
    nest_id widest = longest(l, cg_statement(l, loop)->body, NEST_NONE);
    set_group(l, widest, 1024);
    if (is_narrow(l, loop, widest)) {
        g->group = NARROW_GROUP;
        g->row = gpu_row_make(l, cg_statement(l, widest), g->group);
    }
    int64_t at_hand = g->row.length / g->group;
    g->resident = g->row.is_exact && g->block == BLOCK && at_hand > ROW_AT_HAND / 2 &&
                          at_hand <= ROW_AT_HAND
                      ? RESIDENT
                      : 0;
}

void gpu_groups_lower(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step)
{
    share_out(l, cg_statement(l, loop)->body);
    by_groups(l, loop, step);
}

// Whether the points, each of which has a long fold, are so few that several threads share one.
static bool set_columns(struct cg_lowering *l, nest_id loop)
{
    struct cg_gpu *g = l->gpu;
    const struct nest_statement *s = cg_statement(l, loop);
    nest_id inner = longest(l, s->body, NEST_NONE);
    if (inner == NEST_NONE || has_updates(l->nest) || has_kind(l->nest, NEST_CONTRACT))
        return false;
    for (uint32_t i = 0; i < l->nest->buffers.count; i++)
        if (l->nest->buffers.at[i].role == NEST_LOCAL)
            return false;
    int64_t length = cg_extent(l, cg_statement(l, inner)), block = fold_block(length);
    g->columns = GPU_WARP;
    struct gpu_points p = gpu_points_make(l, loop, true);
    while (g->columns > 4 && p.count % g->columns)
        g->columns /= 2;
    if (!gpu_is_team_fold(l, inner) || length <= block || p.count > MANY_THREADS ||
        l->nest->axes.at[p.axis].extent % p.lanes || g->columns <= 4) {
        g->columns = 0;
        return false;
    }
    g->group = GPU_WARP;
    while (g->group / 2 * block >= length)
        g->group /= 2;
    while (g->group * g->columns > COLUMNS_BLOCK)
        g->group /= 2;
    while (g->is_phase && g->group * g->columns < GPU_WARP)
        g->group *= 2; // beside others of the block there are whole warps
    g->block = g->group * g->columns;
    return true;
}

static struct choice choose(struct cg_lowering *l, const struct nest_block *body)
{
    struct choice c = {.role = BY_ONE};
    struct cg_gpu *g = l->gpu;
    uint32_t loops = 0, scans = 0;
    for (uint32_t i = 0; i < body->statements.count; i++)
        if (is_loop(cg_statement(l, body->statements.at[i])->kind)) {
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
    if (loops == 1 && ends && gpu_is_updates(l, c.loop)) {
        c.role = BY_UPDATES;
        return c;
    }
    if (loops == 1 && ends && s->kind == NEST_PAR && !has_updates(l->nest) &&
        gpu_is_parts(l, c.loop)) {
        c.role = BY_PARTS;
        return c;
    }
    if (loops == 1 && ends && (s->kind == NEST_PAR || s->kind == NEST_MAP)) {
        g->group = 2; // lanes of a group are asked for
        bool groups = wants_groups(l, s);
        c.role = groups ? BY_GROUPS : BY_THREADS;
        g->group = 1;
        g->block = BLOCK;
        struct gpu_tiles tiles;
        if (!groups && gpu_tiles_find(l, c.loop, &tiles)) {
            c.role = BY_TILES;
            g->block = gpu_tile_threads(&tiles);
            g->resident = TILES_THREADS / g->block;
        } else if (!groups && set_columns(l, c.loop)) {
            c.role = BY_COLUMNS;
        }
        if (groups)
            gpu_groups_choose(l, c.loop);
        g->common = c.role == BY_THREADS ? gpu_common_find(l, c.loop) : NULL;
        g->block += g->common ? GPU_WARP : 0;
        return c;
    }
    if (loops == 1 && gpu_is_network(l, c.loop)) {
        c.role = BY_NETWORK;
        return c;
    }
    if (loops == scans && loops && ends && !has_updates(l->nest)) {
        c.role = BY_SCAN;
        return c;
    }
    nest_id widest = longest(l, 0, NEST_NONE);
    if (widest == NEST_NONE || has_updates(l->nest) || has_kind(l->nest, NEST_CONTRACT))
        return c;
    g->group = 2;
    set_group(l, widest, ONE_BLOCK);
    g->block = g->group;
    if (loops == 1 && gpu_is_team_fold(l, c.loop) &&
        (g->row.blocks > 2 * g->row.teams || gpu_has_terms(l, c.loop))) {
        c.role = BY_BLOCKS;
        // Few blocks of the fold are those of as many blocks of threads.
        for (g->group = BLOCK;; g->group /= 2) {
            g->row = gpu_row_make(l, s, g->group);
            if (g->group == GPU_WARP || g->row.blocks / g->row.teams >= GPU_MULTIPROCESSORS)
                break;
        }
        g->block = g->group;
    }
    return c;
}

void gpu_tables_make(struct cg_lowering *l)
{
    const struct nest *nest = l->nest;
    l->values = arena_array(l->arena, struct cg_value, nest->values.count + 1);
    l->axes = arena_array(l->arena, LLVMValueRef, nest->axes.count + 1);
    l->buffers = arena_array(l->arena, struct cg_buffer, nest->buffers.count + 1);
    l->hoisted = arena_array(l->arena, bool, nest->statements.count + 1);
    l->stacks = arena_array(l->arena, struct cg_stack, nest->statements.count + 1);
    l->prefetches = arena_array(l->arena, bool, nest->statements.count + 1);
    l->staged = arena_array(l->arena, LLVMValueRef, nest->statements.count + 1);
}

struct cg_kernel_step *gpu_function_open(struct cg_lowering *l, struct cg_kernel *out,
                                         const char *suffix, unsigned extra)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "jot_%s_%d%s", l->gpu->is_phase ? "phase" : "kernel",
             l->gpu->kernel, suffix);
    struct cg_kernel_step *step = &out->steps[out->n_steps++];
    *step = (struct cg_kernel_step){
        .symbol = arena_text(l->arena, symbol), .total = 1, .grain = 1, .parallel = true};
    gpu_tables_make(l);
    l->gpu->shared_bytes = 0;
    begin_function(l, step->symbol, extra);
    return step;
}

void gpu_function_close(struct cg_lowering *l, struct cg_kernel_step *step)
{
    struct cg_gpu *g = l->gpu;
    LLVMBuildRetVoid(l->m.b);
    step->block = g->block;
    step->scratch_bytes = g->shared_bytes * (g->columns ? 1 : g->block / g->group);
    if (step->scratch_bytes > MOST_SHARED)
        cg_fail(l, "no room for its locals in the shared memory of a GPU");
    if (local_bytes(l) > MOST_LOCAL)
        cg_fail(l, "no room for its locals in what a thread of a GPU has of its own");
}

LLVMValueRef gpu_extra_operand(const struct cg_lowering *l, unsigned i)
{
    return LLVMGetParam(l->function, count_operands(l->nest) + i);
}

static void lower_by_role(struct cg_lowering *l, const struct choice *c, struct cg_kernel *out)
{
    const struct nest_block *body = &l->nest->blocks.at[0];
    struct cg_kernel_step *step = gpu_function_open(l, out, "", c->role == BY_BLOCKS ? 2 : 0);
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
        by_columns(l, c->loop, step);
        break;
    case BY_GROUPS:
        by_groups(l, c->loop, step);
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
    share_out(l, 0);
    unsigned extra = (out->partial_bytes > 0) + out->has_counter;
    struct cg_kernel_step *step = gpu_function_open(l, out, "_late", extra);
    for (uint32_t i = 0; i < at; i++)
        if (!is_loop(cg_statement(l, body->statements.at[i])->kind))
            cg_lower_statement(l, body->statements.at[i]);
    gpu_function_close(l, step);
}

jot_status gpu_kernel_lower(struct cg_module *module, struct arena *arena,
                            const struct nest *nest, int number,
                            const struct gpu_operand *operands, bool is_phase,
                            struct cg_kernel *out)
{
    *out = (struct cg_kernel){0};
    struct cg_gpu g = {.operands = operands, .kernel = number, .is_phase = is_phase};
    struct cg_lowering l = cg_lowering_make(module, arena, nest);
    l.gpu = &g;
    struct choice c = choose(&l, &nest->blocks.at[0]);
    share_out(&l,
              c.role == BY_GROUPS || c.role == BY_COLUMNS ? cg_statement(&l, c.loop)->body : 0);
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
    else
        lower_by_role(&l, &c, out);
    if (g.has_late_puts)
        lower_late_puts(&l, c.at, out);
    LLVMDisposeBuilder(l.m.b);
    if (l.status != JOT_OK)
        return status_fail(l.status, "%s: %s", nest->name, l.message);
    return JOT_OK;
}
