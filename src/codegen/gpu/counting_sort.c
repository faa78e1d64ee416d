// SPDX-License-Identifier: Apache-2.0
// Updates (updates.c) of elements so few that a block of threads can count those of each.
//
// In a first function a block sorts a chunk of the turns by element: it counts those of every element,
// which gives each turn a number among them by who came first, and then counts for each turn how many
// of its element come before it, so that the order is that of the turns.  What the updates take of
// their turns is stored in that order.  In a second function a thread has an element, and makes its
// updates one after the other in a register.
#include "codegen/gpu/counting_sort.h"
#include "codegen/access.h"
#include "codegen/emit.h"
#include "codegen/gpu/device.h"
#include "codegen/gpu/entry.h"
#include "codegen/gpu/gpu.h"
#include "codegen/gpu/order.h"
#include "codegen/gpu/updates.h"
#include "codegen/kernel.h"
#include "codegen/loop.h"
#include "codegen/lower.h"
#include "codegen/memory.h"
#include "codegen/types.h"
#include "map/gpu_counting_sort.h"

#define BATCH                                                                                  \
    4 // turns that a thread reads together, in the 32 registers that two blocks leave it
#define FIRST 3 // of the turns of an element that a turn is compared with
#define AHEAD 8 // chunks whose first updates are read together
#define EARLY 2 // of each

struct counting_sort {
    const struct updates *u;
    struct map_counting_sort of;
    LLVMValueRef starts, values;
};

// ---- Pieces

static int64_t value_bytes(const struct counting_sort *p)
{
    return map_value_bytes(p->of.dtype);
}

static LLVMValueRef half_at(struct cg_lowering *l, LLVMValueRef base, LLVMValueRef i)
{
    return cg_at(l, l->module->i16, base, i);
}

static LLVMValueRef load_half(struct cg_lowering *l, LLVMValueRef base, LLVMValueRef i)
{
    LLVMValueRef half = LLVMBuildLoad2(l->m.b, l->module->i16, half_at(l, base, i), "");
    return LLVMBuildZExt(l->m.b, half, l->module->i32, "");
}

static void store_half(struct cg_lowering *l, LLVMValueRef base, LLVMValueRef i, LLVMValueRef x)
{
    LLVMBuildStore(l->m.b, LLVMBuildTrunc(l->m.b, x, l->module->i16, ""), half_at(l, base, i));
}

static LLVMValueRef as_i32(struct cg_lowering *l, LLVMValueRef x)
{
    unsigned bits = LLVMGetIntTypeWidth(LLVMTypeOf(x));
    return bits > 32   ? LLVMBuildTrunc(l->m.b, x, l->module->i32, "")
           : bits < 32 ? LLVMBuildZExt(l->m.b, x, l->module->i32, "")
                       : x;
}

static LLVMValueRef load_slot(struct cg_lowering *l, LLVMTypeRef type, LLVMValueRef slot)
{
    return LLVMBuildLoad2(l->m.b, type, slot, "");
}

// ---- A chunk by element

struct sort {
    LLVMValueRef first;   // turn of the chunk, i64
    LLVMValueRef starts;  // [room + 2]: updates of an element, then where they begin
    LLVMValueRef turns;   // [MAP_CHUNK]: by element, in any order
    LLVMValueRef values;  // [MAP_CHUNK], over both
    LLVMValueRef numbers; // [MAP_CHUNK], by turn: its number in the element, then where it goes
    LLVMValueRef sums;    // of warps
};

// Some of the turns of a thread.  Those that update nothing have an element behind all others, for what
// has no branch runs side by side.
struct batch {
    LLVMValueRef item[BATCH]; // in the chunk, i32
    LLVMValueRef element[BATCH], is_there[BATCH];
    LLVMValueRef value[BATCH];
};

static struct cg_loop open_batches(struct cg_lowering *l)
{
    return cg_loop_open(l, cg_int(l->module, 0), cg_int(l->module, MAP_CHUNK),
                        cg_int(l->module, (int64_t)MAP_SORT_BLOCK * BATCH));
}

static struct batch read_batch(struct cg_lowering *l, const struct counting_sort *p,
                               const struct sort *s, const struct cg_loop *loop)
{
    LLVMBuilderRef b = l->m.b;
    struct batch t;
    LLVMValueRef first = LLVMBuildTrunc(b, loop->index, l->module->i32, "");
    first = LLVMBuildAdd(b, first, l->gpu->thread, "");
    LLVMValueRef last = cg_int(l->module, p->u->of.turns - 1);
    LLVMValueRef behind = gpu_i32(l, p->of.room);
    for (int k = 0; k < BATCH; k++) {
        t.item[k] = LLVMBuildAdd(b, first, gpu_i32(l, (int64_t)k * MAP_SORT_BLOCK), "");
        LLVMValueRef turn = LLVMBuildAdd(b, s->first, gpu_wide(l, t.item[k]), "");
        LLVMValueRef there = LLVMConstInt(l->module->i1, 1, 0);
        if (p->u->of.turns % MAP_CHUNK) {
            there = LLVMBuildICmp(b, LLVMIntSLE, turn, last, "");
            turn = LLVMBuildSelect(b, there, turn, last, "");
        }
        updates_set_turn(l, p->u, turn);
        updates_lower_turn(l, p->u, false);
        if (p->u->of.put->guard != NEST_NONE)
            there = LLVMBuildAnd(b, there, l->values[p->u->of.put->guard].re, "");
        LLVMValueRef element = as_i32(l, l->values[p->of.element].re);
        LLVMValueRef inside =
            LLVMBuildICmp(b, LLVMIntULT, element, gpu_i32(l, p->of.count), "");
        t.is_there[k] = LLVMBuildAnd(b, there, inside, "");
        t.element[k] = gpu_wide(l, LLVMBuildSelect(b, t.is_there[k], element, behind, ""));
        t.value[k] = p->of.value == NEST_NONE ? NULL : l->values[p->of.value].re;
    }
    return t;
}

// One more of the element; how many there were before.
static LLVMValueRef count_one(struct cg_lowering *l, const struct sort *s, LLVMValueRef element)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef one = cg_int(l->module, 1), bits = cg_int(l->module, 4);
    LLVMValueRef shift = LLVMBuildShl(b, LLVMBuildAnd(b, element, one, ""), bits, "");
    shift = LLVMBuildTrunc(b, shift, l->module->i32, "");
    LLVMValueRef word = LLVMBuildLShr(b, element, one, "");
    LLVMValueRef old = LLVMBuildAtomicRMW(
        b, LLVMAtomicRMWBinOpAdd, cg_at(l, l->module->i32, s->starts, word),
        LLVMBuildShl(b, gpu_i32(l, 1), shift, ""), LLVMAtomicOrderingMonotonic, false);
    return LLVMBuildAnd(b, LLVMBuildLShr(b, old, shift, ""), gpu_i32(l, UINT16_MAX), "");
}

static void count_items(struct cg_lowering *l, const struct counting_sort *p,
                        const struct sort *s)
{
    struct cg_loop loop = open_batches(l);
    struct batch t = read_batch(l, p, s, &loop);
    LLVMValueRef number[BATCH];
    for (int k = 0; k < BATCH; k++)
        number[k] = count_one(l, s, t.element[k]);
    for (int k = 0; k < BATCH; k++)
        store_half(l, s->numbers, gpu_wide(l, t.item[k]), number[k]);
    cg_loop_close(l, &loop);
}

// Four words, the first of which has a number that is a multiple of four.
static LLVMValueRef four_at(struct cg_lowering *l, LLVMValueRef base, LLVMValueRef i)
{
    return cg_at(l, LLVMVectorType(l->module->i32, 4), base, i);
}

// Where the updates of each element begin, here and in memory.
static void lay_out_items(struct cg_lowering *l, const struct counting_sort *p,
                          const struct sort *s, LLVMValueRef row)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef four = LLVMVectorType(l->module->i32, 4);
    int fours = (int)(p->of.room / 8 / MAP_SORT_BLOCK);
    LLVMValueRef low = gpu_i32(l, UINT16_MAX), bits = gpu_i32(l, 16), own = gpu_i32(l, 0);
    LLVMValueRef words[MAP_MOST_COUNTED / 8 / MAP_SORT_BLOCK],
        at[MAP_MOST_COUNTED / 8 / MAP_SORT_BLOCK];
    for (int i = 0; i < fours; i++) {
        at[i] = LLVMBuildMul(b, l->gpu->thread, gpu_i32(l, fours), "");
        at[i] = gpu_wide(l, LLVMBuildAdd(b, at[i], gpu_i32(l, i), ""));
        words[i] = LLVMBuildLoad2(b, four, four_at(l, s->starts, at[i]), "");
        LLVMSetAlignment(words[i], 16);
        for (int k = 0; k < 4; k++) {
            LLVMValueRef word = LLVMBuildExtractElement(b, words[i], gpu_i32(l, k), "");
            own = LLVMBuildAdd(b, own, LLVMBuildAnd(b, word, low, ""), "");
            own = LLVMBuildAdd(b, own, LLVMBuildLShr(b, word, bits, ""), "");
        }
    }
    LLVMValueRef begin = updates_sum_before(l, p->u, s->sums, own);
    for (int i = 0; i < fours; i++) {
        LLVMValueRef begins = LLVMGetPoison(four);
        for (int k = 0; k < 4; k++) {
            LLVMValueRef word = LLVMBuildExtractElement(b, words[i], gpu_i32(l, k), "");
            LLVMValueRef next = LLVMBuildAdd(b, begin, LLVMBuildAnd(b, word, low, ""), "");
            LLVMValueRef two = LLVMBuildOr(b, begin, LLVMBuildShl(b, next, bits, ""), "");
            begins = LLVMBuildInsertElement(b, begins, two, gpu_i32(l, k), "");
            begin = LLVMBuildAdd(b, next, LLVMBuildLShr(b, word, bits, ""), "");
        }
        LLVMSetAlignment(LLVMBuildStore(b, begins, four_at(l, s->starts, at[i])), 16);
        LLVMSetAlignment(LLVMBuildStore(b, begins, four_at(l, row, at[i])), 16);
    }
    LLVMValueRef is_last =
        LLVMBuildICmp(b, LLVMIntEQ, l->gpu->thread, gpu_i32(l, MAP_SORT_BLOCK - 1), "");
    struct cg_branch last = cg_if_open(l, is_last);
    store_half(l, s->starts, cg_int(l->module, p->of.room), begin);
    store_half(l, row, cg_int(l->module, p->of.room), begin);
    cg_if_close(l, &last);
}

static void list_items(struct cg_lowering *l, const struct counting_sort *p,
                       const struct sort *s)
{
    struct cg_loop loop = open_batches(l);
    struct batch t = read_batch(l, p, s, &loop);
    LLVMValueRef at[BATCH];
    for (int k = 0; k < BATCH; k++) {
        LLVMValueRef number = load_half(l, s->numbers, gpu_wide(l, t.item[k]));
        at[k] = LLVMBuildAdd(l->m.b, load_half(l, s->starts, t.element[k]), number, "");
    }
    for (int k = 0; k < BATCH; k++)
        store_half(l, s->turns, gpu_wide(l, at[k]), t.item[k]);
    cg_loop_close(l, &loop);
}

// One more if the turn that is listed there comes before the item.
static LLVMValueRef add_if_before(struct cg_lowering *l, const struct sort *s, LLVMValueRef sum,
                                  LLVMValueRef at, LLVMValueRef item)
{
    LLVMValueRef turn = load_half(l, s->turns, at);
    LLVMValueRef is_before = LLVMBuildICmp(l->m.b, LLVMIntULT, turn, item, "");
    return LLVMBuildAdd(l->m.b, sum, LLVMBuildZExt(l->m.b, is_before, l->module->i32, ""), "");
}

// Where turns go: behind those of their element that come before them.
static void rank_items(struct cg_lowering *l, const struct counting_sort *p,
                       const struct sort *s)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef i32 = l->module->i32;
    LLVMValueRef one = cg_int(l->module, 1), begin[BATCH], end[BATCH], rank[BATCH];
    struct cg_loop loop = open_batches(l);
    struct batch t = read_batch(l, p, s, &loop);
    for (int k = 0; k < BATCH; k++) {
        rank[k] = load_half(l, s->starts, t.element[k]);
        begin[k] = gpu_wide(l, rank[k]);
        end[k] = load_half(l, s->starts, LLVMBuildAdd(b, t.element[k], one, ""));
        end[k] = gpu_wide(l, end[k]);
    }
    for (int i = 0; i < FIRST; i++)
        for (int k = 0; k < BATCH; k++) {
            LLVMValueRef at = LLVMBuildAdd(b, begin[k], cg_int(l->module, i), "");
            LLVMValueRef is_one = LLVMBuildICmp(b, LLVMIntSLT, at, end[k], "");
            LLVMValueRef more = add_if_before(
                l, s, rank[k], LLVMBuildSelect(b, is_one, at, begin[k], ""), t.item[k]);
            rank[k] = LLVMBuildSelect(b, is_one, more, rank[k], "");
        }
    for (int k = 0; k < BATCH; k++) {
        LLVMValueRef slot = cg_alloca(l, i32, 1);
        LLVMBuildStore(b, rank[k], slot);
        LLVMValueRef next = LLVMBuildAdd(b, begin[k], cg_int(l->module, FIRST), "");
        struct cg_loop other = cg_loop_open(l, next, end[k], one);
        LLVMValueRef sum = load_slot(l, i32, slot);
        LLVMBuildStore(b, add_if_before(l, s, sum, other.index, t.item[k]), slot);
        cg_loop_close(l, &other);
        store_half(l, s->numbers, gpu_wide(l, t.item[k]), load_slot(l, i32, slot));
    }
    cg_loop_close(l, &loop);
}

static void order_values(struct cg_lowering *l, const struct counting_sort *p,
                         const struct sort *s)
{
    LLVMTypeRef type = cg_memory_type(l->module, p->of.dtype);
    struct cg_loop loop = open_batches(l);
    struct batch t = read_batch(l, p, s, &loop);
    LLVMValueRef at[BATCH];
    for (int k = 0; k < BATCH; k++)
        at[k] = gpu_wide(l, load_half(l, s->numbers, gpu_wide(l, t.item[k])));
    for (int k = 0; k < BATCH; k++) {
        struct cg_branch one = cg_if_open(l, t.is_there[k]);
        LLVMBuildStore(l->m.b, t.value[k], cg_at(l, type, s->values, at[k]));
        cg_if_close(l, &one);
    }
    cg_loop_close(l, &loop);
}

// Fours of words first, first + block, ... as far as there are bytes.
static void copy_values(struct cg_lowering *l, const struct counting_sort *p,
                        const struct sort *s, LLVMValueRef chunk, LLVMValueRef count)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef four = LLVMVectorType(l->module->i32, 4);
    int64_t of_four = 16 / value_bytes(p);
    LLVMValueRef to = LLVMBuildMul(b, chunk, cg_int(l->module, MAP_CHUNK / of_four), "");
    LLVMValueRef fours = LLVMBuildAdd(b, count, gpu_i32(l, of_four - 1), "");
    fours = gpu_wide(l, LLVMBuildUDiv(b, fours, gpu_i32(l, of_four), ""));
    struct cg_loop copy =
        cg_loop_open(l, gpu_wide(l, l->gpu->thread), fours, cg_int(l->module, MAP_SORT_BLOCK));
    LLVMValueRef words = LLVMBuildLoad2(b, four, four_at(l, s->values, copy.index), "");
    LLVMSetAlignment(words, 16);
    LLVMValueRef at = LLVMBuildAdd(b, to, copy.index, "");
    LLVMSetAlignment(LLVMBuildStore(b, words, four_at(l, p->values, at)), 16);
    cg_loop_close(l, &copy);
}

static void lower_sort(struct cg_lowering *l, const struct counting_sort *p,
                       struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef four = LLVMVectorType(l->module->i32, 4);
    const struct updates *u = p->u;
    int64_t chunks = u->of.points * p->of.chunks, bytes = (p->of.row + MAP_CHUNK) * 2;
    int64_t of_values = MAP_CHUNK * value_bytes(p);
    struct sort s = {.starts = gpu_shared(l, (uint64_t)(bytes > of_values ? bytes : of_values)),
                     .numbers = gpu_shared(l, (uint64_t)MAP_CHUNK * 2),
                     .sums = gpu_shared(l, MAP_SORT_BLOCK / GPU_WARP * 4)};
    s.turns = half_at(l, s.starts, cg_int(l->module, p->of.row));
    s.values = s.starts;
    struct cg_loop own = gpu_own_chunk_open(l, chunks);
    LLVMValueRef n = cg_int(l->module, p->of.chunks), thread = gpu_wide(l, l->gpu->thread);
    updates_set_point(l, u, LLVMBuildUDiv(b, own.index, n, ""), cg_int(l->module, 0));
    s.first = LLVMBuildURem(b, own.index, n, "");
    s.first = LLVMBuildMul(b, s.first, cg_int(l->module, MAP_CHUNK), "");
    for (int64_t i = 0; i < p->of.room / 8; i += MAP_SORT_BLOCK) {
        LLVMValueRef at = LLVMBuildAdd(b, thread, cg_int(l->module, i), "");
        LLVMSetAlignment(LLVMBuildStore(b, LLVMConstNull(four), four_at(l, s.starts, at)), 16);
    }
    LLVMValueRef leads = LLVMBuildICmp(b, LLVMIntEQ, l->gpu->thread, gpu_i32(l, 0), "");
    struct cg_branch lead = cg_if_open(l, leads);
    LLVMValueRef behind = four_at(l, s.starts, cg_int(l->module, p->of.room / 8));
    LLVMSetAlignment(LLVMBuildStore(b, LLVMConstNull(four), behind), 16);
    cg_if_close(l, &lead);
    gpu_sync(l);
    count_items(l, p, &s);
    gpu_sync(l);
    LLVMValueRef row = LLVMBuildMul(b, own.index, cg_int(l->module, p->of.row), "");
    lay_out_items(l, p, &s, half_at(l, p->starts, row));
    gpu_sync(l);
    if (p->of.value != NEST_NONE) {
        LLVMValueRef count = load_half(l, s.starts, cg_int(l->module, p->of.room));
        list_items(l, p, &s);
        gpu_sync(l);
        rank_items(l, p, &s);
        gpu_sync(l);
        order_values(l, p, &s);
        gpu_sync(l);
        copy_values(l, p, &s, own.index, count);
    }
    if (own.body)
        gpu_sync(l);
    cg_loop_close(l, &own);
    step->total = chunks;
    step->exact_grid = true;
}

// ---- The updates of an element

struct one_element {
    struct cg_value *base; // values outside of a turn
    LLVMTypeRef lane;
    LLVMValueRef now, has; // what it holds, and whether that is of an update
    LLVMValueRef value;    // memory of the chunk's values
};

static LLVMValueRef value_at(struct cg_lowering *l, const struct counting_sort *p,
                             const struct one_element *o, LLVMValueRef i)
{
    LLVMTypeRef type = cg_memory_type(l->module, p->of.dtype);
    return p->of.value == NEST_NONE ? NULL : load_slot(l, type, cg_at(l, type, o->value, i));
}

// An update with the value, if there is one.
static void make_update(struct cg_lowering *l, const struct counting_sort *p,
                        const struct one_element *o, LLVMValueRef value, LLVMValueRef is_there)
{
    LLVMBuilderRef b = l->m.b;
    const struct updates *u = p->u;
    l->values = arena_copy(l->arena, o->base, l->nest->values.count * sizeof *l->values);
    LLVMValueRef old = load_slot(l, o->lane, o->now);
    if (u->of.load)
        l->values[u->of.load->result] = (struct cg_value){old, NULL};
    if (value)
        l->values[p->of.value] = (struct cg_value){value, NULL};
    updates_lower_turn(l, u, true);
    LLVMValueRef fresh = cg_wide_value(l, l->values[u->of.put->in[0]]).re;
    LLVMBuildStore(b, LLVMBuildSelect(b, is_there, fresh, old, ""), o->now);
    LLVMValueRef had = load_slot(l, l->module->i1, o->has);
    LLVMBuildStore(b, LLVMBuildOr(b, had, is_there, ""), o->has);
}

// Updates of chunks first .. first + AHEAD - 1 of the point, those of them that there are.
static void update_from(struct cg_lowering *l, const struct counting_sort *p,
                        struct one_element *o, LLVMValueRef point, LLVMValueRef element,
                        LLVMValueRef first)
{
    LLVMBuilderRef b = l->m.b;
    LLVMTypeRef type = cg_memory_type(l->module, p->of.dtype);
    LLVMValueRef one = cg_int(l->module, 1), chunks = cg_int(l->module, p->of.chunks);
    LLVMValueRef begin[AHEAD], end[AHEAD], memory[AHEAD], early[AHEAD][EARLY];
    int64_t ahead = p->of.chunks < AHEAD ? p->of.chunks : AHEAD;
    bool is_exact = p->of.chunks % ahead == 0;
    for (int k = 0; k < ahead; k++) {
        LLVMValueRef chunk = LLVMBuildAdd(b, first, cg_int(l->module, k), "");
        LLVMValueRef is_one = LLVMBuildICmp(b, LLVMIntSLT, chunk, chunks, "");
        if (!is_exact)
            chunk = LLVMBuildSelect(b, is_one, chunk, first, "");
        chunk = LLVMBuildAdd(b, LLVMBuildMul(b, point, chunks, ""), chunk, "");
        LLVMValueRef row = LLVMBuildMul(b, chunk, cg_int(l->module, p->of.row), "");
        row = half_at(l, p->starts, row);
        begin[k] = gpu_wide(l, load_half(l, row, element));
        end[k] = gpu_wide(l, load_half(l, row, LLVMBuildAdd(b, element, one, "")));
        if (!is_exact)
            end[k] = LLVMBuildSelect(b, is_one, end[k], begin[k], "");
        LLVMValueRef at = LLVMBuildMul(b, chunk, cg_int(l->module, MAP_CHUNK), "");
        memory[k] = p->of.value == NEST_NONE ? NULL : cg_at(l, type, p->values, at);
    }
    for (int k = 0; k < ahead; k++)
        for (int i = 0; i < EARLY; i++) {
            LLVMValueRef at = LLVMBuildAdd(b, begin[k], cg_int(l->module, i), "");
            LLVMValueRef is_one = LLVMBuildICmp(b, LLVMIntSLT, at, end[k], "");
            o->value = memory[k];
            early[k][i] =
                value_at(l, p, o, LLVMBuildSelect(b, is_one, at, cg_int(l->module, 0), ""));
        }
    for (int k = 0; k < ahead; k++) {
        LLVMValueRef at = begin[k];
        o->value = memory[k];
        for (int i = 0; i < EARLY; i++, at = LLVMBuildAdd(b, at, one, ""))
            make_update(l, p, o, early[k][i], LLVMBuildICmp(b, LLVMIntSLT, at, end[k], ""));
        struct cg_loop more = cg_loop_open(l, at, end[k], one);
        make_update(l, p, o, value_at(l, p, o, more.index), LLVMConstInt(l->module->i1, 1, 0));
        cg_loop_close(l, &more);
    }
}

static void lower_element(struct cg_lowering *l, const struct counting_sort *p,
                          LLVMValueRef point, LLVMValueRef element)
{
    LLVMBuilderRef b = l->m.b;
    const struct updates *u = p->u;
    jot_dtype d = l->nest->buffers.at[u->of.put->buffer].dtype;
    struct one_element o = {.lane = cg_lane_type(l->module, d)};
    updates_set_point(l, u, point, cg_int(l->module, 0));
    for (uint32_t i = 0; i < u->of.body->statements.count; i++)
        if (cg_statement(l, u->of.body->statements.at[i])->kind == NEST_CONST)
            cg_lower_statement(l, u->of.body->statements.at[i]);
    LLVMTypeRef type = cg_lane_type(l->module, l->nest->values.at[p->of.element].dtype);
    l->values[p->of.element] =
        (struct cg_value){LLVMBuildIntCast2(b, element, type, false, ""), NULL};
    if (u->of.put->guard != NEST_NONE)
        l->values[u->of.put->guard] =
            (struct cg_value){LLVMConstInt(l->module->i1, 1, 0), NULL};
    o.now = cg_alloca(l, o.lane, 1);
    o.has = cg_alloca(l, l->module->i1, 1);
    o.base = l->values;
    LLVMBuildStore(b, u->of.load ? cg_load(l, u->of.load).re : LLVMConstNull(o.lane), o.now);
    LLVMBuildStore(b, LLVMConstInt(l->module->i1, 0, 0), o.has);
    int64_t ahead = p->of.chunks < AHEAD ? p->of.chunks : AHEAD;
    struct cg_loop chunk = cg_loop_open(
        l, cg_int(l->module, 0), cg_int(l->module, p->of.chunks), cg_int(l->module, ahead));
    update_from(l, p, &o, point, element, chunk.index);
    cg_loop_close(l, &chunk);
    l->values = o.base;
    struct cg_branch has = cg_if_open(l, load_slot(l, l->module->i1, o.has));
    cg_store(l, u->of.put, (struct cg_value){load_slot(l, o.lane, o.now), NULL});
    cg_if_close(l, &has);
}

static void lower_updates(struct cg_lowering *l, const struct counting_sort *p,
                          struct cg_kernel_step *step)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef room = cg_int(l->module, p->of.room);
    struct cg_loop own = gpu_own_chunk_open(l, p->u->of.points * p->of.room / UPDATE_BLOCK);
    LLVMValueRef task = LLVMBuildMul(b, own.index, cg_int(l->module, UPDATE_BLOCK), "");
    task = LLVMBuildAdd(b, task, gpu_wide(l, l->gpu->thread), "");
    LLVMValueRef element = LLVMBuildURem(b, task, room, "");
    LLVMValueRef is_element =
        LLVMBuildICmp(b, LLVMIntSLT, element, cg_int(l->module, p->of.count), "");
    struct cg_branch one = cg_if_open(l, is_element);
    lower_element(l, p, LLVMBuildUDiv(b, task, room, ""), element);
    cg_if_close(l, &one);
    cg_loop_close(l, &own);
    step->total = p->u->of.points * p->of.room;
    step->grain = UPDATE_BLOCK;
    step->exact_grid = true;
}

void counting_sort_lower(struct cg_lowering *l, struct updates *u,
                         const struct map_counting_sort *of, uint32_t at, struct cg_kernel *out)
{
    struct counting_sort p = {.u = u, .of = *of};
    int64_t starts = u->of.points * p.of.chunks * p.of.row * 2;
    for (int pass = 0; pass < 2; pass++) {
        l->gpu->block = l->gpu->group = pass ? UPDATE_BLOCK : MAP_SORT_BLOCK;
        l->gpu->is_alone = true;
        l->gpu->function.resident = pass ? 0 : 2;
        struct cg_kernel_step *step = gpu_function_open(l, out, pass ? "" : "_order", 0);
        p.starts = gpu_scratch(l);
        p.values = cg_at(l, l->module->i8, p.starts, cg_int(l->module, starts));
        u->lane = LLVMBuildURem(l->m.b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
        gpu_lower_list(l, 0, at);
        if (pass)
            lower_updates(l, &p, step);
        else
            lower_sort(l, &p, step);
        gpu_function_close(l, step);
    }
    l->gpu->is_alone = false;
}
