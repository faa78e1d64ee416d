// SPDX-License-Identifier: Apache-2.0
// JOT_MAP: a scan without carries, over rows or over batches of rows that are mapped.
#include "ir/control.h"
#include "passes/passes.h"
#include "trace/block.h"

static bool open_map(jot_block *b)
{
    b->length = -1;
    if (b->in.count == 0) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT, "no rows: list what is mapped");
        return false;
    }
    if (b->batch < 0) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT, "a batch of %lld: it is 1 or more rows",
                              (long long)b->batch);
        return false;
    }
    return block_open_rows(b);
}

struct map {
    const jot_block *b;
    struct ir_builder *w;
    uint32_t f; // of consts, then a row of each
    int n_consts, n_in;
    const ir_id *in;
};

// The body on so many rows at once.
static jot_status map_body(const struct map *m, int64_t rows, uint32_t *out)
{
    struct arena *arena = m->w->module->arena;
    int32_t *in_axes = arena_array(arena, int32_t, m->n_in + 1);
    int32_t *out_axes = arena_array(arena, int32_t, m->b->out.count + 1);
    for (int i = 0; i < m->n_consts; i++)
        in_axes[i] = PASS_NO_AXIS;
    return pass_vmap_axes(m->w->module, m->f, in_axes, out_axes, rows, PASS_UNNAMED, out);
}

// Rows first .. end of v.
static ir_id rows_of(const struct map *m, ir_id v, int64_t first, int64_t end)
{
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK];
    struct ir_type t = ir_type_in(m->w, v);
    memcpy(limits, ir_dims(m->w->module, t), t.rank * sizeof *limits);
    starts[0] = first;
    limits[0] = end;
    return ir_slice(m->w, v, starts, limits, NULL);
}

// v with axis 0 as `split` axes in place of `merged` ones.
static ir_id with_rows(const struct map *m, ir_id v, int merged, int split, const int64_t *rows)
{
    int64_t dims[IR_MAX_RANK + 1];
    struct ir_type t = ir_type_in(m->w, v);
    const int64_t *old = ir_dims(m->w->module, t) + merged;
    memcpy(dims, rows, (size_t)split * sizeof *dims);
    memcpy(dims + split, old, (size_t)(t.rank - merged) * sizeof *dims);
    return ir_reshape(m->w, v, t.rank - merged + split, dims);
}

// The results of the first rows, in so many batches.
static jot_status map_batches(const struct map *m, int64_t batches, ir_id *results)
{
    int64_t shape[] = {batches, m->b->batch}, rows = batches * m->b->batch;
    struct ir_scan scan = {.n_consts = m->n_consts, .length = batches};
    ir_id *in = arena_array(m->w->module->arena, ir_id, m->n_in + 1);
    for (int i = 0; i < m->n_in; i++)
        in[i] = i < m->n_consts ? m->in[i]
                                : with_rows(m, rows_of(m, m->in[i], 0, rows), 1, 2, shape);
    JOT_TRY(map_body(m, m->b->batch, &scan.body));
    block_take_results(m->b, ir_scan(m->w, &scan, m->n_in, in), results);
    for (int i = 0; i < m->b->out.count && m->w->status == JOT_OK; i++)
        results[i] = with_rows(m, results[i], 2, 1, &rows);
    return JOT_OK;
}

// Those of the rows from `first` on, all at once, behind the results there are.
static jot_status map_rest(const struct map *m, int64_t first, ir_id *results)
{
    uint32_t f;
    ir_id *in = arena_array(m->w->module->arena, ir_id, m->n_in + 1);
    ir_id *rest = arena_array(m->w->module->arena, ir_id, m->b->out.count + 1);
    for (int i = 0; i < m->n_in; i++)
        in[i] = i < m->n_consts ? m->in[i] : rows_of(m, m->in[i], first, m->b->length);
    JOT_TRY(map_body(m, m->b->length - first, &f));
    block_take_results(m->b, ir_call(m->w, IR_call, 1, &f, m->n_in, in), rest);
    for (int i = 0; i < m->b->out.count && m->w->status == JOT_OK; i++)
        results[i] =
            first ? ir_concatenate(m->w, 2, (ir_id[]){results[i], rest[i]}, 0) : rest[i];
    return JOT_OK;
}

static jot_status map_in_batches(const struct map *m, ir_id *results)
{
    int64_t batches = m->b->length / m->b->batch, done = batches * m->b->batch;
    if (batches)
        JOT_TRY(map_batches(m, batches, results));
    return batches && done == m->b->length ? JOT_OK : map_rest(m, done, results);
}

static enum block_progress close_map(jot_block *b, ir_id *results)
{
    struct traced body;
    const struct traced *part = &body;
    struct block_consts consts;
    if (!block_collect(b, results) || !block_close_part(b, b->out.count, results, &body))
        return BLOCK_FAILED;
    struct map m = {.b = b, .w = &trace_top()->b};
    if (!block_share(b, 1, &part, &m.f, &consts))
        return BLOCK_FAILED;
    m.n_consts = consts.n;
    m.in = block_operands(b, &consts, 1, (const struct block_leaves *[]){&b->in}, &m.n_in);
    if (!b->batch) {
        struct ir_scan scan = {.body = m.f, .n_consts = consts.n, .length = b->length};
        return block_take_results(b, ir_scan(m.w, &scan, m.n_in, m.in), results);
    }
    if (map_in_batches(&m, results) == JOT_OK)
        return BLOCK_DONE;
    jot_place(trace_fail_status(b->name), b->where);
    return BLOCK_FAILED;
}

static const struct block_kind map_kind = {
    .options = BLOCK_BATCH, .open = open_map, .close = close_map};

jot_block *jot_map_begin(const jot_piece *in, const jot_piece *out,
                         const jot_loop_options *options, const char *where)
{
    jot_block *b = block_create(&map_kind, NULL, in, out, where);
    if (!b || !block_accepts(b, options))
        return b;
    b->batch = options ? options->batch : 0;
    return block_begin(b);
}
