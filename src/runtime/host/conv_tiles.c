// SPDX-License-Identifier: Apache-2.0
#include "runtime/host/conv_tiles.h"

#include "base/status.h"
#include "runtime/host/blocks.h"
#include "runtime/host/conv_code.h"
#include "runtime/host/conv_geometry.h"
#include "runtime/host/pool.h"

#include <string.h>

#define AXES CONV_AXES_MOST
#define SCRATCH_MOST (16 << 20) // of a worker
#define LEAST_WORK 0x1p16       // multiplications that pay for a call
#define LEAST_FEATURES 3
#define MOST_OF_W 0x1p21      // elements, which the third cache has to keep at hand
#define MOST_OF_SUMS 0x1p19   // the same where w is the result
#define TASKS 32              // that are enough for all threads
#define PARTS_BYTES (8 << 20) // of the parts of a gradient in w
#define MOST_KINDS 4096       // of positions, all of which a task goes through

// What a worker has of a block.  Indices are of elements: by position, by position, by element of the kernel.
struct memory {
    char *image, *columns, *rows;
    int64_t *from, *to, *runs;
};

struct job {
    struct conv_call c;
    struct conv_geometry g;
    const struct conv_code *code;
    const struct rt_routine_call *call;
    const char *image, *other; // operands
    char *result;
    int64_t features;    // of the result, in all groups
    int64_t panels;      // of the columns of a group
    int64_t splits;      // of the panels, or of the rows of w, for a task each
    char *packed;        // w as panels
    int64_t part_blocks; // of a part of the sums for w
    char *parts;         // those behind the first, which is the result
};

// ---- Columns

static int width_of(const struct job *j, int64_t panel)
{
    return (int)conv_least(j->code->columns, j->g.out - panel * j->code->columns);
}

static char *panel_of(const struct job *j, char *packed, int64_t panel, int64_t terms)
{
    return packed + panel * terms * j->code->columns * j->g.element;
}

// The panels of a group, of one kind of positions behind those of another.
static char *kernel_of(const struct job *j, int64_t group)
{
    return panel_of(j, j->packed, group * j->panels, j->g.kernel * j->g.in);
}

static void pack_kernel(void *ctx, int64_t chunk, int worker)
{
    const struct job *j = ctx;
    const struct conv_geometry *g = &j->g;
    int64_t group = chunk / j->panels, panel = chunk % j->panels;
    int64_t first = group * g->group_apart + panel * j->code->columns * g->out_apart;
    char *packed = kernel_of(j, group);
    (void)worker;
    for (int64_t kind = 0; kind < g->kinds; kind++) {
        struct conv_line l[AXES];
        int64_t counts[AXES], index[AXES] = {0};
        conv_lines_of(g, &j->c, kind, l);
        int64_t elements = conv_elements(g, l, counts);
        void *to = panel_of(j, packed, panel, elements * g->in);
        packed = panel_of(j, packed, j->panels, elements * g->in);
        for (int64_t k = 0; k < elements; k++, conv_next(g->n, counts, index)) {
            int64_t at = first;
            for (int i = 0; i < g->n; i++)
                at += (l[i].k + index[i] * l[i].k_apart) * g->kernel_apart[i];
            to = j->code->pack(g->in, width_of(j, panel), j->other + at * j->g.element,
                               g->in_apart, g->out_apart, to);
        }
    }
}

// ---- The call

static struct job job_of(const struct conv_call *c)
{
    struct job j = {.c = *c, .g = conv_geometry_of(c), .code = conv_code_of(c->dtype)};
    j.features = j.g.out * j.g.groups;
    j.panels = conv_divide_up(j.g.out, j.code->columns);
    return j;
}

static void *take_bytes(char *memory, size_t *used, int64_t bytes)
{
    size_t at = *used;
    *used += ((size_t)bytes + 63) & ~(size_t)63;
    return memory ? memory + at : NULL;
}

// Of `at`, which may be NULL; how much.
static size_t divide_memory(const struct job *j, char *at, struct memory *out)
{
    const struct conv_geometry *g = &j->g;
    int64_t positions = g->images * conv_positions(g),
            indices = positions * (int64_t)sizeof(int64_t);
    int64_t terms = j->c.part == CONV_W ? positions * j->g.element : 0;
    size_t used = 0;
    out->image =
        take_bytes(at, &used, g->copies ? g->images * conv_image_apart(g) * j->g.element : 0);
    out->columns = take_bytes(at, &used, j->panels * j->code->columns * terms);
    out->rows = take_bytes(at, &used, CONV_TILES_MOST * j->code->rows * terms);
    out->from = take_bytes(at, &used, indices);
    out->to = take_bytes(at, &used, indices);
    out->runs = take_bytes(at, &used, g->kernel * (int64_t)sizeof(int64_t));
    return used;
}

static struct memory memory_of(const struct job *j, int worker)
{
    struct memory m;
    divide_memory(j, j->call->scratch + (size_t)worker * j->call->scratch_stride, &m);
    return m;
}

static double work_of_block(const struct job *j)
{
    return (double)(j->g.images * conv_positions(&j->g)) * (double)(j->g.kernel * j->g.in) *
           (double)j->features;
}

// Of tasks of so much work.
static int64_t splits_of(double work, int64_t tasks)
{
    return conv_least(conv_divide_up(TASKS, tasks), 1 + (int64_t)(work / CONV_TASK_WORK));
}

// ---- x and y: tiles of positions by features

// Of one group and panel.
static void add_up_positions(const struct job *j, const struct memory *m, struct conv_tile *t,
                             int64_t positions, const char *image, char *to)
{
    for (int64_t position = 0; position < positions; position += t->rows) {
        t->rows = (int)conv_least(j->code->rows, positions - position);
        for (int i = 0; i < t->rows; i++) {
            t->from[i] = image + m->from[position + i] * j->g.element;
            t->to[i] = to + m->to[position + i] * j->g.element;
        }
        for (int i = t->rows; i < j->code->rows; i++)
            t->from[i] = t->from[0];
        j->code->add_up(t);
    }
}

static void run_positions(void *ctx, int64_t chunk, int worker)
{
    const struct job *j = ctx;
    const struct conv_geometry *g = &j->g;
    const struct memory m = memory_of(j, worker);
    const struct conv_block b = conv_block_of(g, chunk / j->splits);
    int64_t split = chunk % j->splits, behind = 0;
    int64_t first = split * j->panels / j->splits, end = (split + 1) * j->panels / j->splits;
    const char *images = conv_images_of(g, j->image, &b, m.image);
    char *result =
        j->result + b.image * conv_product(g->n, g->result) * j->features * j->g.element;
    for (int64_t kind = 0; kind < g->kinds; kind++) {
        struct conv_line l[AXES];
        int64_t counts[AXES];
        conv_lines_of(g, &j->c, kind, l);
        bool by_row = g->groups == 1 && l[g->n - 1].from_apart == 1;
        int64_t terms = conv_elements(g, l, counts) * g->in;
        int64_t positions = conv_find_positions(g, l, &b, m.from, m.to);
        struct conv_tile t = {.runs = m.runs,
                              .n_runs = conv_find_runs(g, l, by_row, m.runs),
                              .length = by_row ? counts[g->n - 1] * g->in : g->in,
                              .step = 1};
        for (int64_t group = 0; group < g->groups; group++)
            for (int64_t panel = first; panel < end; panel++) {
                int64_t column = group * g->out + panel * j->code->columns;
                t.width = width_of(j, panel);
                t.columns = panel_of(j, kernel_of(j, group) + behind, panel, terms);
                add_up_positions(j, &m, &t, positions, images + group * g->in * j->g.element,
                                 result + column * j->g.element);
            }
        behind += j->panels * terms * j->code->columns * j->g.element;
    }
}

static jot_status convolve(struct job *j, struct rt_pool *pool)
{
    const struct conv_geometry *g = &j->g;
    int64_t panels = g->groups * j->panels, blocks = conv_blocks(g);
    size_t bytes = (size_t)(panels * g->kernel * g->in * j->code->columns * j->g.element);
    j->packed = rt_block_allocate(bytes);
    if (!j->packed)
        return status_fail(JOT_ERR_MEMORY, "out of memory: %zu bytes for a kernel", bytes);
    j->splits = conv_least(j->panels, splits_of(work_of_block(j), blocks));
    rt_pool_run(pool, j->call->workers, pack_kernel, j, panels);
    rt_pool_run(pool, j->call->workers, run_positions, j, blocks * j->splits);
    rt_block_release(j->packed, bytes);
    return JOT_OK;
}

// ---- w: tiles of elements of windows by features, whose terms are positions

// The y of a group at the positions of a block, as panels.
static void pack_positions(const struct job *j, const struct memory *m,
                           const struct conv_block *b, int64_t group, int64_t positions)
{
    const struct conv_geometry *g = &j->g;
    int64_t row = conv_product(g->n - 1, g->result + 1),
            first = b->image * g->result[0] + b->row;
    for (int64_t panel = 0; panel < j->panels; panel++) {
        int64_t column = group * g->out + panel * j->code->columns;
        j->code->pack(positions, width_of(j, panel),
                      j->other + (first * row * j->features + column) * j->g.element,
                      j->features, 1, panel_of(j, m->columns, panel, positions));
    }
}

// All panels of the rows of w of a group from `row` on, as many as are gathered at once.
static void add_up_rows(const struct job *j, const struct memory *m, struct conv_rows *rows,
                        int64_t group, int64_t row, int64_t end, bool adds, const char *image,
                        char *to)
{
    static const int64_t none = 0;
    const struct conv_geometry *g = &j->g;
    int64_t positions = rows->n_runs * rows->length, n = j->code->rows;
    rows->tiles = (int)conv_least(CONV_TILES_MOST, conv_divide_up(end - row, n));
    for (int64_t i = 0; i < rows->tiles * n; i++) {
        int64_t k = conv_least(row + i, end - 1);
        rows->from[i] = image + (m->runs[k / g->in] + group * g->in + k % g->in) * j->g.element;
    }
    j->code->gather(rows, m->rows);
    for (int64_t panel = 0; panel < j->panels; panel++)
        for (int64_t k = row; k < row + rows->tiles * n; k += n) {
            int64_t column = group * g->out + panel * j->code->columns;
            struct conv_tile t = {.columns = panel_of(j, m->columns, panel, positions),
                                  .runs = &none,
                                  .n_runs = 1,
                                  .length = positions,
                                  .step = n,
                                  .rows = (int)conv_least(n, end - k),
                                  .width = width_of(j, panel),
                                  .adds = adds};
            for (int i = 0; i < n; i++)
                t.from[i] = m->rows + ((k - row) * positions + i) * j->g.element;
            for (int i = 0; i < t.rows; i++)
                t.to[i] = to + ((k + i) * j->features + column) * j->g.element;
            j->code->add_up(&t);
        }
}

// A part of all blocks, and of the rows of w.
static void run_part(void *ctx, int64_t chunk, int worker)
{
    const struct job *j = ctx;
    const struct conv_geometry *g = &j->g;
    const struct memory m = memory_of(j, worker);
    int64_t part = chunk / j->splits, split = chunk % j->splits, rows = g->kernel * g->in;
    int64_t row = split * rows / j->splits, end = (split + 1) * rows / j->splits;
    int64_t first = part * j->part_blocks;
    int64_t stop = conv_least(first + j->part_blocks, conv_blocks(g));
    char *to = part ? j->parts + (part - 1) * rows * j->features * j->g.element : j->result;
    struct conv_line l[AXES];
    conv_lines_of(g, &j->c, 0, l);
    conv_find_runs(g, l, false, m.runs);
    for (int64_t i = first; i < stop; i++) {
        const struct conv_block b = conv_block_of(g, i);
        const char *images = conv_images_of(g, j->image, &b, m.image);
        struct conv_rows block = conv_find_rows(g, &b, m.from);
        for (int64_t group = 0; group < g->groups; group++) {
            pack_positions(j, &m, &b, group, block.n_runs * block.length);
            for (int64_t k = row; k < end; k += CONV_TILES_MOST * j->code->rows)
                add_up_rows(j, &m, &block, group, k, end, i > first, images, to);
        }
    }
}

static void add_parts(void *ctx, int64_t row, int worker)
{
    const struct job *j = ctx;
    int64_t rows = j->g.kernel * j->g.in,
            parts = conv_divide_up(conv_blocks(&j->g), j->part_blocks);
    void *to = j->result + row * j->features * j->g.element;
    (void)worker;
    for (int64_t part = 1; part < parts; part++) {
        const void *from = j->parts + ((part - 1) * rows + row) * j->features * j->g.element;
        for (int64_t i = 0; i < j->features; i++)
            if (j->c.dtype == JOT_F32)
                ((float *)to)[i] += ((const float *)from)[i];
            else
                ((double *)to)[i] += ((const double *)from)[i];
    }
}

static jot_status sum_positions(struct job *j, struct rt_pool *pool)
{
    const struct conv_geometry *g = &j->g;
    int64_t rows = g->kernel * g->in, size = rows * j->features * j->g.element;
    int64_t blocks = conv_blocks(g);
    double work = work_of_block(j);
    int64_t parts = conv_least(TASKS, conv_least(blocks, 1 + PARTS_BYTES / size));
    j->part_blocks = conv_most(conv_divide_up(blocks, parts),
                               conv_least(blocks, (int64_t)(CONV_TASK_WORK / work)));
    parts = conv_divide_up(blocks, j->part_blocks);
    j->splits =
        conv_least(conv_divide_up(rows, 24), splits_of(work * (double)j->part_blocks, parts));
    size_t bytes = (size_t)((parts - 1) * size);
    j->parts = bytes ? rt_block_allocate(bytes) : NULL;
    if (bytes && !j->parts)
        return status_fail(JOT_ERR_MEMORY, "out of memory: %zu bytes for parts of sums", bytes);
    rt_pool_run(pool, j->call->workers, run_part, j, parts * j->splits);
    if (parts > 1)
        rt_pool_run(pool, j->call->workers, add_parts, j, rows);
    rt_block_release(j->parts, bytes);
    return JOT_OK;
}

// ---- Which

// What windows see of all images, and the steps between them, in no more elements than can be counted.
static bool is_countable(const struct conv_call *c)
{
    double kinds = 1, count = (double)c->dims[CONV_X][0] *
                              (double)(c->dims[CONV_X][c->n + 1] + c->dims[CONV_Y][c->n + 1]);
    for (int i = 0; i < c->n; i++) {
        int64_t stride = c->lists[CONV_STRIDES][i];
        kinds *= c->part == CONV_X ? (double)stride : 1;
        count *= (double)(c->dims[CONV_X][1 + i] + 2 * c->lists[CONV_PADDING][i] +
                          2 * c->dims[CONV_W][i] * c->lists[CONV_DILATION][i] + stride);
    }
    return count < 0x1p40 && kinds <= MOST_KINDS;
}

bool conv_has_tiles(const struct conv_call *c)
{
    if (c->layout != CONV_FEATURES_LAST || (c->dtype != JOT_F32 && c->dtype != JOT_F64) ||
        !is_countable(c))
        return false;
    return conv_tiles_scratch(c) <= SCRATCH_MOST;
}

// Windows that do not overlap are as many numbers as x; of few features a vector is mostly empty; and
// the library's products read a large w less often.
bool host_takes_convolution(jot_device *device, const int64_t *params, uint32_t count)
{
    struct conv_call c;
    (void)device;
    if (!conv_call_read(params, count, &c) || !conv_has_tiles(&c))
        return false;
    int64_t in = c.dims[CONV_W][c.n], out = c.dims[CONV_W][c.n + 1];
    double w = (double)in * (double)out, positions = (double)c.dims[CONV_Y][0];
    bool overlap = false;
    for (int i = 0; i < c.n; i++) {
        w *= (double)c.dims[CONV_W][i];
        positions *= (double)c.dims[CONV_Y][1 + i];
        overlap |=
            (c.dims[CONV_W][i] - 1) * c.lists[CONV_DILATION][i] >= c.lists[CONV_STRIDES][i];
    }
    return overlap && w * positions >= LEAST_WORK &&
           w <= (c.part == CONV_W ? MOST_OF_SUMS : MOST_OF_W) &&
           (c.part == CONV_X ? in : out / c.groups) >= LEAST_FEATURES;
}

size_t conv_tiles_scratch(const struct conv_call *c)
{
    const struct job j = job_of(c);
    struct memory m;
    return divide_memory(&j, NULL, &m);
}

jot_status conv_by_tiles(const struct rt_routine_call *call, const struct conv_call *c)
{
    struct job j = job_of(c);
    j.call = call;
    j.image = call->operands[c->part == CONV_X ? 1 : 0];
    j.other = call->operands[c->part == CONV_X ? 0 : 1];
    j.result = call->operands[2];
    return c->part == CONV_W ? sum_positions(&j, rt_pool_default())
                             : convolve(&j, rt_pool_default());
}
