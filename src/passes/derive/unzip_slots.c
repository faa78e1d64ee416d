// SPDX-License-Identifier: Apache-2.0
// Slots for the states of a loop, an axis of them in front of what each lane has, read and written by lane.
#include "passes/derive/unzip_slots.h"

#include "base/status.h"
#include "ir/indexing.h"
#include "passes/body.h"
#include "passes/rules/rules.h"

#include <string.h>

struct ir_type unzip_slots_type(const struct unzip_lanes *l, struct ir_type t, int64_t n)
{
    int64_t dims[IR_MAX_RANK];
    const int64_t *from = ir_dims(l->m, t);
    for (int i = 0; i < l->axes; i++)
        dims[i] = from[i];
    dims[l->axes] = n;
    for (int i = l->axes; i < t.rank; i++)
        dims[i + 1] = from[i];
    return ir_type_make(l->m, ir_dtype(t), t.rank + 1, dims);
}

// A function of one lane over all of them.
static ir_id over_lanes(const struct unzip_lanes *l, struct ir_builder *b,
                        struct ir_builder *lane, const ir_id *in)
{
    uint32_t f = ir_finish_function(lane);
    const int64_t *lanes = ir_dims(l->m, l->count);
    bool all[3] = {true, true, true};
    ir_id out = IR_NONE;
    jot_status status = f == IR_NONE ? lane->status : JOT_OK;
    for (int i = l->axes; i-- > 0 && status == JOT_OK;)
        status = pass_vmap_all(l->m, f, all, lanes[i], &f);
    if (status != JOT_OK)
        return ir_fail(b, status, "%s", lane->message ? lane->message : jot_error_message());
    ir_inline(b, ir_function(l->m, f), in, &out);
    return out;
}

static struct ir_type lane_type(const struct unzip_lanes *l, const struct ir_builder *b,
                                ir_id v)
{
    struct ir_type t = ir_type_in(b, v);
    return ir_type_make(l->m, ir_dtype(t), t.rank - l->axes, ir_dims(l->m, t) + l->axes);
}

static void slot_starts(struct ir_builder *b, ir_id at, int rank, ir_id *starts)
{
    starts[0] = at;
    for (int i = 1; i < rank; i++)
        starts[i] = ir_scalar_int(b, JOT_I32, 0);
}

ir_id unzip_fetch(const struct unzip_lanes *l, struct ir_builder *b, ir_id slots, ir_id at)
{
    if (slots == IR_NONE || at == IR_NONE)
        return IR_NONE;
    struct ir_builder w = ir_builder_make(l->m, "fetch", IR_BUILD_PLAIN);
    ir_id x = ir_param(&w, lane_type(l, b, slots)), k = ir_param(&w, lane_type(l, b, at));
    struct ir_type t = ir_type_in(&w, x);
    int64_t sizes[IR_MAX_RANK];
    ir_id starts[IR_MAX_RANK];
    memcpy(sizes, ir_dims(l->m, t), sizeof *sizes * t.rank);
    sizes[0] = 1;
    slot_starts(&w, k, t.rank, starts);
    ir_output(&w,
              ir_reshape(&w, ir_dynamic_slice(&w, x, starts, sizes), t.rank - 1, sizes + 1));
    return over_lanes(l, b, &w, (const ir_id[]){slots, at});
}

ir_id unzip_store(const struct unzip_lanes *l, struct ir_builder *b, ir_id slots, ir_id at,
                  ir_id v)
{
    if (slots == IR_NONE || at == IR_NONE || v == IR_NONE)
        return IR_NONE;
    struct ir_builder w = ir_builder_make(l->m, "store", IR_BUILD_PLAIN);
    ir_id x = ir_param(&w, lane_type(l, b, slots)), k = ir_param(&w, lane_type(l, b, at));
    ir_id row = ir_param(&w, lane_type(l, b, v)), starts[IR_MAX_RANK];
    struct ir_type t = ir_type_stack(l->m, ir_type_in(&w, row), 1);
    slot_starts(&w, k, t.rank, starts);
    row = ir_reshape(&w, row, t.rank, ir_dims(l->m, t));
    ir_output(&w, ir_dynamic_update_slice(&w, x, row, starts));
    return over_lanes(l, b, &w, (const ir_id[]){slots, at, v});
}

ir_id unzip_spread(const struct unzip_lanes *l, struct ir_builder *b, ir_id slots, int64_t step,
                   int64_t n)
{
    if (slots == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, slots);
    int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK], strides[IR_MAX_RANK];
    int64_t low[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0}, interior[IR_MAX_RANK] = {0};
    memcpy(limits, ir_dims(l->m, t), sizeof *limits * t.rank);
    for (int i = 0; i < t.rank; i++)
        strides[i] = i == l->axes ? step : 1;
    high[l->axes] = n - limits[l->axes] / step;
    return ir_pad(b, ir_slice(b, slots, starts, limits, strides), ir_scalar_like(b, slots, 0),
                  low, high, interior);
}
