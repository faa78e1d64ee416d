// SPDX-License-Identifier: Apache-2.0
// Several trips of a loop over time in one launch, where a trip makes of an array its like from
// neighbours: steps of a stencil.
//
//     loop 1000 {                                         loop 200 {
//       par i < 1024, j < 1024 {                            a warp: tiles of 8 by 112 points, of which it
//         load carry[1024*i + j], carry[.. - 1], ...   =>     reads 5 more on each side, makes 5 trips in
//         put next[1024*i + j]                                registers, and stores what has been right
//       }                                                     to the end
//     }                                                     }
//
// A thread has neighbouring columns of all rows of its tile; those of the threads beside it come through
// shuffles.  Points near a side are computed by several warps, in the same way, so that the bits are
// those of one trip after the other, and no warp waits for another.
//
// Rows and columns go round: what a roll takes from the other end is a neighbour too.  Which neighbour a
// value is, is found for each part of the array where comparisons of places with numbers are decided.
#include "codegen/gpu/gpu.h"

#include "passes/cost.h"

#define LANES 4 // columns of a thread
#define ROWS 8  // of a tile
#define HALO 8  // columns of a warp on either side that it does not store
#define REACH 2 // of a neighbour, at most
#define BLOCK MAP_TRIPS_BLOCK
#define MOST_TRIPS 5    // of a launch: what is read beyond the tile is what they reach
#define LEAST (1 << 14) // points
#define OP_WORK 4.0     // of an operation: no branches
#define WORK 32.0       // of a point
#define WIDTH (GPU_WARP * LANES - 2 * HALO)

struct neighbour {
    bool is;
    int row, column;
};

struct trips {
    const struct nest_statement *loop, *put;
    nest_id row, column; // axes
    int64_t height, width, trips, reach;
    struct neighbour *at; // by value
    bool *is_needed;      // by statement
};

// ---- Neighbours

#define PARTS (2 * REACH + 1) // of an axis

// The places at its ends are parts by themselves, and what is between is one.
static struct cg_segment part_of(int64_t extent, int i)
{
    if (i < REACH)
        return (struct cg_segment){i, i + 1};
    if (i == REACH)
        return (struct cg_segment){REACH, extent - REACH};
    return (struct cg_segment){extent - PARTS + i, extent - PARTS + i + 1};
}

// In the part that cg_segment_enter has been told: 1 or 0 when the value is always so, or -1.
static int decides(const struct cg_lowering *l, nest_id value)
{
    const struct nest_statement *s = cg_maker_of(l, value);
    if (s->kind == NEST_OP && s->op == IR_and) {
        int x = decides(l, s->in[0]), y = decides(l, s->in[1]);
        return !x || !y ? 0 : x < 0 || y < 0 ? -1 : 1;
    }
    LLVMValueRef v = s->kind == NEST_OP ? cg_segment_decides(l, s) : NULL;
    return v ? LLVMConstIntGetZExtValue(v) != 0 : -1;
}

// The load that the value is in this part, or NULL.
static const struct nest_statement *load_of(const struct cg_lowering *l, nest_id value)
{
    const struct nest_statement *s = cg_maker_of(l, value);
    while (s->kind == NEST_OP && s->op == IR_select) {
        int is = decides(l, s->in[0]);
        if (is < 0)
            return NULL;
        s = cg_maker_of(l, s->in[is ? 1 : 2]);
    }
    return s->kind == NEST_LOAD ? s : NULL;
}

static int64_t around(int64_t x, int64_t extent) { return (x % extent + extent) % extent; }

// Whether what is loaded at the place is that neighbour of it.
static bool is_at(const struct trips *t, const struct nest_statement *load, int64_t i,
                  int64_t j, const struct neighbour *n)
{
    int64_t place = load->index.constant + i * nest_index_factor(&load->index, t->row) +
                    j * nest_index_factor(&load->index, t->column);
    return place == around(i + n->row, t->height) * t->width + around(j + n->column, t->width);
}

// Whether the value is the neighbour in the whole part: places are affine there, so its corners tell.
static bool is_in_part(const struct cg_lowering *l, const struct trips *t, nest_id value,
                       const struct cg_segment *rows, const struct cg_segment *columns,
                       const struct neighbour *n)
{
    const struct nest_statement *load = load_of(l, value), *s = cg_maker_of(l, value);
    if (!load || nest_index_has_values(&load->index))
        return false;
    int is_read = load->guard == NEST_NONE ? 1 : decides(l, load->guard);
    if (is_read <= 0)
        return is_read == 0 && load == s; // the guard is looked at again
    return is_at(t, load, rows->first, columns->first, n) &&
           is_at(t, load, rows->first, columns->end - 1, n) &&
           is_at(t, load, rows->end - 1, columns->first, n) &&
           is_at(t, load, rows->end - 1, columns->end - 1, n);
}

static void enter(struct cg_lowering *l, const struct trips *t, const struct cg_segment *rows,
                  const struct cg_segment *columns)
{
    cg_segment_enter(l, t->row, rows);
    cg_segment_enter(l, t->column, columns);
}

static bool is_everywhere(struct cg_lowering *l, const struct trips *t, nest_id value,
                          const struct neighbour *n)
{
    bool is = true;
    for (int i = 0; is && i < PARTS * PARTS; i++) {
        struct cg_segment rows = part_of(t->height, i / PARTS);
        struct cg_segment columns = part_of(t->width, i % PARTS);
        enter(l, t, &rows, &columns);
        is = is_in_part(l, t, value, &rows, &columns, n);
    }
    return is;
}

// Which neighbour the value is, if it is the same one everywhere.
static struct neighbour neighbour_of(struct cg_lowering *l, const struct trips *t,
                                     nest_id value)
{
    struct neighbour n = {0};
    struct cg_segment rows = part_of(t->height, REACH), columns = part_of(t->width, REACH);
    enter(l, t, &rows, &columns);
    const struct nest_statement *load = load_of(l, value);
    if (load) {
        int64_t by = load->index.constant;
        int64_t row = (by + (by < 0 ? -1 : 1) * t->width / 2) / t->width;
        int64_t column = by - row * t->width;
        n = (struct neighbour){true, (int)row, (int)column};
        n.is = row >= -REACH && row <= REACH && column >= -REACH && column <= REACH &&
               is_everywhere(l, t, value, &n);
    }
    cg_segment_leave(l, t->row);
    cg_segment_leave(l, t->column);
    return n;
}

// ---- Whether it is such a loop

static bool need(struct cg_lowering *l, struct trips *t, nest_id value);

// Marks what the statement takes; false: there is something that such a kernel does not do, as read an
// element of the array that is no neighbour.
static bool need_statement(struct cg_lowering *l, struct trips *t,
                           const struct nest_statement *s)
{
    if (s->kind == NEST_CONST || s->kind == NEST_INDEX)
        return true;
    if (s->kind != NEST_OP || s->n_results != 1 || cost_of_op(s->op, s->dtype) > OP_WORK)
        return false;
    for (uint32_t i = 0; i < s->n_in; i++)
        if (!need(l, t, s->in[i]))
            return false;
    return true;
}

static bool need(struct cg_lowering *l, struct trips *t, nest_id value)
{
    nest_id id = l->nest->values.at[value].statement;
    const struct nest_statement *s = cg_statement(l, id);
    if (t->is_needed[id])
        return true;
    t->is_needed[id] = true;
    struct neighbour n = t->at[value] = neighbour_of(l, t, value);
    if (!n.is)
        return need_statement(l, t, s);
    int64_t row = n.row < 0 ? -n.row : n.row, column = n.column < 0 ? -n.column : n.column;
    t->reach = row > t->reach ? row : t->reach;
    t->reach = column > t->reach ? column : t->reach;
    return s->kind != NEST_LOAD || s->guard == NEST_NONE || need(l, t, s->guard);
}

// The body's only put, of all points; NULL: there is none such.
static const struct nest_statement *only_put(const struct cg_lowering *l, const struct trips *t)
{
    const struct nest_statement *put = NULL;
    nest_for_each (s, l->nest, t->loop->body) {
        if (s->kind > NEST_PUT || (s->kind == NEST_PUT && put))
            return NULL;
        put = s->kind == NEST_PUT ? s : put;
    }
    const struct neighbour here = {true, 0, 0};
    bool is = put && !put->op && put->guard == NEST_NONE && put->index.count == 2 &&
              nest_index_factor(&put->index, t->row) == t->width &&
              nest_index_factor(&put->index, t->column) == 1 && is_at(t, put, 0, 0, &here);
    return is ? put : NULL;
}

// Whether the nest has but two buffers, f32[height, width] each.
static bool has_pair(const struct cg_lowering *l, const struct trips *t)
{
    const struct nest *n = l->nest;
    for (uint32_t i = 0; i < n->buffers.count; i++)
        if (n->buffers.at[i].dtype != JOT_F32 ||
            n->buffers.at[i].count != t->height * t->width ||
            gpu_align_of(l, i) < sizeof(float) * LANES)
            return false;
    return n->buffers.count == 2 && n->buffers.at[0].role == NEST_IN &&
           n->buffers.at[1].role == NEST_OUT;
}

static bool find(struct cg_lowering *l, nest_id loop, struct trips *t)
{
    const struct nest_statement *s = cg_statement(l, loop);
    double work = 0;
    *t = (struct trips){.loop = s};
    if (s->kind != NEST_PAR || s->n_axes != 2)
        return false;
    t->row = s->axes[0];
    t->column = s->axes[1];
    t->height = l->nest->axes.at[t->row].extent;
    t->width = l->nest->axes.at[t->column].extent;
    if (t->height < 2 * PARTS || t->width < GPU_WARP * LANES || t->width % LANES ||
        t->height * t->width < LEAST || t->height * t->width > INT32_MAX || !has_pair(l, t))
        return false;
    t->put = only_put(l, t);
    t->at = arena_array(l->arena, struct neighbour, l->nest->values.count + 1);
    t->is_needed = arena_array(l->arena, bool, l->nest->statements.count + 1);
    if (!t->put || !need(l, t, t->put->in[0]) || !t->reach)
        return false;
    nest_for_all (x, l->nest)
        work += t->is_needed[nest_id_of(l->nest, x)] && x->kind == NEST_OP
                    ? cost_of_op(x->op, x->dtype)
                    : 0;
    // An odd number of them, so that the last one puts in the other array.
    for (t->trips = MOST_TRIPS; l->gpu->trips % t->trips || t->trips * t->reach > HALO;)
        t->trips -= 2;
    return t->trips > 1 && work <= WORK;
}

bool gpu_is_trips(struct cg_lowering *l, nest_id loop)
{
    struct trips t;
    return l->gpu->trips > 1 && find(l, loop, &t);
}

// Of a loop whose only step is s, from one array into the other by turns.
static bool takes_turns(const struct nest_program *p, const struct nest_step *loop,
                        const struct nest_step *s)
{
    if (s->n_memories != 2)
        return false;
    const struct nest_memory *from = &p->memories.at[s->memories[0]];
    const struct nest_memory *to = &p->memories.at[s->memories[1]];
    return from->place == NEST_TURN && to->place == NEST_TURN && from->n_of == 2 &&
           to->n_of == 2 && from->loop == loop->loop && to->loop == loop->loop &&
           from->of[from->index % 2] == to->of[(to->index + 1) % 2] &&
           from->of[(from->index + 1) % 2] == to->of[to->index % 2];
}

const int64_t *gpu_trips_of(struct arena *arena, const struct nest_program *p)
{
    int64_t *trips = arena_array(arena, int64_t, p->nests.count + 1);
    uint32_t *uses = arena_array(arena, uint32_t, p->nests.count + 1);
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *s = &p->steps.at[i];
        if (s->kind != NEST_STEP_KERNEL)
            continue;
        bool is_all = uses[s->nest]++ == 0 && i > 0 && s[-1].kind == NEST_STEP_LOOP &&
                      s[1].kind == NEST_STEP_END && takes_turns(p, &s[-1], s);
        trips[s->nest] = is_all ? s[-1].trips : 1;
    }
    return trips;
}

// ---- The kernel

// The columns of a row that are so far from the thread's own.
static LLVMValueRef beside(struct cg_lowering *l, LLVMValueRef row, int by)
{
    LLVMBuilderRef b = l->m.b;
    LLVMValueRef all = row;
    for (int i = 0; by && i < LANES; i++) {
        int at = i + by;
        struct cg_element x = {{cg_extract(&l->m, row, (unsigned)around(at, LANES), 1)}};
        if (at < 0)
            x = gpu_shuffle_up(l, &x, 1);
        else if (at >= LANES)
            x = gpu_shuffle_down(l, &x, 1);
        all = LLVMBuildInsertElement(b, all, x.v[0], gpu_i32(l, i), "");
    }
    return all;
}

// Row r after one more trip, of the rows as they are.
static LLVMValueRef advance(struct cg_lowering *l, const struct trips *t,
                            const LLVMValueRef *rows, int64_t r)
{
    const struct nest_block *b = &l->nest->blocks.at[t->loop->body];
    for (uint32_t i = 0; i < b->statements.count; i++) {
        nest_id id = b->statements.at[i];
        const struct nest_statement *s = cg_statement(l, id);
        if (!t->is_needed[id])
            continue;
        const struct neighbour *n = &t->at[s->result];
        if (!n->is) {
            cg_lower_statement(l, id);
            continue;
        }
        LLVMValueRef v = beside(l, rows[r + n->row], n->column);
        if (s->kind == NEST_LOAD && s->guard != NEST_NONE) {
            LLVMValueRef is = cg_splat(&l->m, l->values[s->guard].re, LANES);
            v = LLVMBuildSelect(l->m.b, is, v, LLVMConstNull(LLVMTypeOf(v)), "");
        }
        l->values[s->result] = (struct cg_value){v, NULL};
    }
    return cg_wide_value(l, l->values[t->put->in[0]]).re;
}

static LLVMValueRef modulo(struct cg_lowering *l, LLVMValueRef x, int64_t extent)
{
    return LLVMBuildURem(l->m.b, x, gpu_i32(l, extent), "");
}

// The memory of the thread's columns of a row.
static LLVMValueRef place(struct cg_lowering *l, const struct trips *t, nest_id buffer,
                          LLVMValueRef row)
{
    LLVMValueRef at = LLVMBuildMul(l->m.b, row, cg_int(l->module, t->width), "");
    at = LLVMBuildAdd(l->m.b, at, l->axes[t->column], "");
    return cg_at(l, l->module->f32, cg_buffer_base(l, buffer), at);
}

// The tile of the warp, whose first row and column are given.
static void lower_tile(struct cg_lowering *l, const struct trips *t, LLVMValueRef row,
                       LLVMValueRef column)
{
    LLVMBuilderRef b = l->m.b;
    enum { BYTES = LANES * sizeof(float), MOST = ROWS + 2 * HALO };
    LLVMTypeRef type = LLVMVectorType(l->module->f32, LANES);
    LLVMValueRef at[MOST], rows[MOST], next[MOST];
    int64_t halo = t->trips * t->reach, n = ROWS + 2 * halo;
    LLVMValueRef lane = modulo(l, l->gpu->thread, GPU_WARP);
    LLVMValueRef own = LLVMBuildMul(b, lane, gpu_i32(l, LANES), "");
    LLVMValueRef to = LLVMBuildAdd(b, column, own, ""); // HALO behind the column itself
    l->axes[t->column] =
        gpu_wide(l, modulo(l, LLVMBuildAdd(b, to, gpu_i32(l, t->width - HALO), ""), t->width));
    for (int64_t r = 0; r < n; r++) {
        at[r] = LLVMBuildAdd(b, row, gpu_i32(l, r + t->height - halo), "");
        at[r] = gpu_wide(l, modulo(l, at[r], t->height));
        rows[r] = cg_load_row(l, type, place(l, t, 0, at[r]), BYTES, NULL);
    }
    for (int64_t k = 1; k <= t->trips; k++) {
        for (int64_t r = k * t->reach; r < n - k * t->reach; r++) {
            l->axes[t->row] = at[r];
            next[r] = advance(l, t, rows, r);
        }
        for (int64_t r = k * t->reach; r < n - k * t->reach; r++)
            rows[r] = next[r];
    }
    LLVMValueRef low = LLVMBuildICmp(b, LLVMIntUGE, own, gpu_i32(l, HALO), "");
    LLVMValueRef high = LLVMBuildICmp(b, LLVMIntULT, own, gpu_i32(l, HALO + WIDTH), "");
    LLVMValueRef end = LLVMBuildICmp(b, LLVMIntULT, to, gpu_i32(l, t->width + HALO), "");
    struct cg_branch is_own =
        cg_if_open(l, LLVMBuildAnd(b, LLVMBuildAnd(b, low, high, ""), end, ""));
    for (int64_t r = halo; r < n - halo; r++) {
        LLVMValueRef last = gpu_i32(l, t->height - (r - halo));
        struct cg_branch is_there = {0};
        if (t->height % ROWS)
            is_there = cg_if_open(l, LLVMBuildICmp(b, LLVMIntULT, row, last, ""));
        cg_store_row(l, rows[r], place(l, t, 1, at[r]), BYTES, NULL, false);
        if (t->height % ROWS)
            cg_if_close(l, &is_there);
    }
    cg_if_close(l, &is_own);
}

void gpu_trips_lower(struct cg_lowering *l, nest_id loop, struct cg_kernel_step *step,
                     int64_t *out_trips)
{
    LLVMBuilderRef b = l->m.b;
    struct trips t;
    find(l, loop, &t);
    int64_t across = (t.width + WIDTH - 1) / WIDTH, down = (t.height + ROWS - 1) / ROWS;
    int64_t warps = BLOCK / GPU_WARP;
    step->total = (across * down + warps - 1) / warps;
    step->grain = 1;
    step->exact_grid = true;
    LLVMValueRef warp = LLVMBuildUDiv(b, l->gpu->thread, gpu_i32(l, GPU_WARP), "");
    LLVMValueRef tile = LLVMBuildMul(b, gpu_block_number(l), gpu_i32(l, warps), "");
    tile = LLVMBuildAdd(b, tile, warp, "");
    struct cg_branch is_there = {0};
    if (across * down % warps)
        is_there =
            cg_if_open(l, LLVMBuildICmp(b, LLVMIntULT, tile, gpu_i32(l, across * down), ""));
    LLVMValueRef row = LLVMBuildUDiv(b, tile, gpu_i32(l, across), "");
    LLVMValueRef column = modulo(l, tile, across);
    l->vector_axis = t.column;
    l->vector_loop = loop;
    l->lanes = LANES;
    lower_tile(l, &t, LLVMBuildMul(b, row, gpu_i32(l, ROWS), ""),
               LLVMBuildMul(b, column, gpu_i32(l, WIDTH), ""));
    l->lanes = 1;
    l->vector_axis = NEST_NONE;
    if (across * down % warps)
        cg_if_close(l, &is_there);
    *out_trips = t.trips;
}
