// SPDX-License-Identifier: Apache-2.0
// JOT_VMAP and JOT_VMAP_NAMED.
#include "trace/block.h"

#include "passes/passes.h"

static bool open_vmap(jot_block *b)
{
    b->length = -1;
    if (b->in.count == 0) {
        b->error = block_fail(b, JOT_ERR_ARGUMENT, "no rows: list what is mapped");
        return false;
    }
    return block_open_rows(b);
}

static enum block_progress close_vmap(jot_block *b, ir_id *out)
{
    struct traced body;
    if (!block_collect(b, out) || !block_close_part(b, b->out.count, out, &body))
        return BLOCK_FAILED;
    struct trace *t = trace_top();
    struct arena *arena = t->module->arena;
    int n = b->in.count;
    int32_t *in_axes = arena_array(arena, int32_t, n + body.n_hidden + 1);
    int32_t *out_axes = arena_array(arena, int32_t, b->out.count + 1);
    ir_id *in = arena_array(arena, ir_id, n + 1);
    for (int i = 0; i < n; i++)
        in[i] = trace_kept(b->in.at[i].outer);
    for (int i = 0; i < body.n_hidden; i++)
        in_axes[n + i] = PASS_NO_AXIS;
    if (pass_vmap_axes(t->module, body.function, in_axes, out_axes, b->length, b->axis,
                       &body.function) != JOT_OK) {
        jot_place(trace_fail_status(b->name), b->where);
        return BLOCK_FAILED;
    }
    return traced_emit(b->name, &body, n, in, out) ? BLOCK_DONE : BLOCK_FAILED;
}

static const struct block_kind vmap_kind = {.open = open_vmap, .close = close_vmap};

jot_block *jot_vmap_begin(const jot_piece *in, const jot_piece *out, const char *where)
{
    return block_begin(block_create(&vmap_kind, NULL, in, out, where));
}

jot_block *jot_vmap_named_begin(const char *name, const jot_piece *in, const jot_piece *out,
                                const char *where)
{
    jot_block *b = block_create(&vmap_kind, NULL, in, out, where);
    if (b)
        b->axis_name = name ? name : "";
    return block_begin(b);
}
