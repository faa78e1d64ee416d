// SPDX-License-Identifier: Apache-2.0
// Result types of collectives (collective.h).
#include "ir/collective.h"
#include "ir/infer.h"

static bool check_over(struct ir_infer *call)
{
    int n;
    const int64_t *over = ir_over(call->attrs, &n);
    const struct ir_module *m = call->b->module;
    if (n == 0)
        return infer_fail(call, JOT_ERR_ARGUMENT, "%s over no axis", infer_name(call));
    for (int i = 0; i < n; i++) {
        if (over[i] < 0 || over[i] >= m->axes.count)
            return infer_fail(call, JOT_ERR_ARGUMENT, "%s over axis %lld: the module has %u",
                              infer_name(call), (long long)over[i], m->axes.count);
        for (int k = 0; k < i; k++)
            if (over[k] == over[i])
                return infer_fail(call, JOT_ERR_ARGUMENT, "%s over %s twice", infer_name(call),
                                  m->axes.at[over[i]].name);
    }
    return true;
}

// The operand varies over all the axes, or over none of them.
static bool check_operand(struct ir_infer *call, bool varies)
{
    if (!check_over(call))
        return false;
    uint16_t over = ir_over_set(call->attrs), have = infer_in(call, 0).varies & over;
    if (varies && have != over)
        return infer_fail(call, JOT_ERR_ARGUMENT, "%s of %s, which does not vary over %s",
                          infer_name(call), infer_text(call, infer_in(call, 0)),
                          ir_axes_text(call->b->module, over & (uint16_t)~have));
    if (!varies && have)
        return infer_fail(call, JOT_ERR_ARGUMENT, "%s of %s, which varies over %s already",
                          infer_name(call), infer_text(call, infer_in(call, 0)),
                          ir_axes_text(call->b->module, have));
    return true;
}

// A row for each lane in front.
static bool check_rows(struct ir_infer *call)
{
    struct ir_type t = infer_in(call, 0);
    int64_t lanes = ir_lanes_over(call->b->module, call->attrs);
    if (t.rank == 0 || infer_dims(call, 0)[0] != lanes)
        return infer_fail(
            call, JOT_ERR_SHAPE, "%s of %s over %s: axis 0 has %lld rows, one a lane",
            infer_name(call), infer_text(call, t),
            ir_axes_text(call->b->module, ir_over_set(call->attrs)), (long long)lanes);
    return true;
}

static bool give(struct ir_infer *call, struct ir_type t, uint16_t varies)
{
    t.varies = varies;
    return infer_result(call, t);
}

bool infer_pvary(struct ir_infer *call)
{
    if (!check_operand(call, false))
        return false;
    struct ir_type t = infer_in(call, 0);
    return give(call, t, t.varies | ir_over_set(call->attrs));
}

bool infer_psum(struct ir_infer *call)
{
    if (!check_operand(call, true))
        return false;
    struct ir_type t = infer_in(call, 0);
    return give(call, t, t.varies & (uint16_t)~ir_over_set(call->attrs));
}

bool infer_all_gather(struct ir_infer *call)
{
    if (!check_operand(call, true))
        return false;
    struct ir_type t = infer_in(call, 0);
    int64_t dims[IR_MAX_RANK + 1] = {ir_lanes_over(call->b->module, call->attrs)};
    memcpy(dims + 1, infer_dims(call, 0), sizeof *dims * t.rank);
    return infer_result_dims(call, ir_dtype(t), t.rank + 1, dims) &&
           give(call, call->types[0], t.varies & (uint16_t)~ir_over_set(call->attrs));
}

bool infer_psum_scatter(struct ir_infer *call)
{
    return check_operand(call, true) && check_rows(call) &&
           give(call, ir_type_row(call->b->module, infer_in(call, 0)),
                infer_in(call, 0).varies);
}

bool infer_all_to_all(struct ir_infer *call)
{
    return check_operand(call, true) && check_rows(call) &&
           infer_result(call, infer_in(call, 0));
}

bool infer_ppermute(struct ir_infer *call)
{
    if (!check_operand(call, true))
        return false;
    int n;
    const int64_t *pairs = ir_attr_ints(call->attrs, IR_KEY_pairs, &n);
    int64_t lanes = ir_lanes_over(call->b->module, call->attrs);
    if (n % 2)
        return infer_fail(call, JOT_ERR_ARGUMENT, "ppermute with %d numbers as pairs", n);
    for (int i = 0; i < n; i++) {
        if (pairs[i] < 0 || pairs[i] >= lanes)
            return infer_fail(call, JOT_ERR_ARGUMENT, "ppermute %s lane %lld of %lld",
                              i % 2 ? "to" : "from", (long long)pairs[i], (long long)lanes);
        for (int k = i % 2; k < i; k += 2)
            if (pairs[k] == pairs[i])
                return infer_fail(call, JOT_ERR_ARGUMENT, "ppermute %s lane %lld twice",
                                  i % 2 ? "to" : "from", (long long)pairs[i]);
    }
    return infer_result(call, infer_in(call, 0));
}

bool infer_exchange(struct ir_infer *call)
{
    struct collective c;
    struct ir_type t = infer_in(call, 0);
    const char *fault = ir_exchange_read(call->attrs, &c);
    int64_t dims[IR_MAX_RANK + 1];
    if (fault || c.dtype != ir_dtype(t))
        return infer_fail(call, JOT_ERR_ARGUMENT, "exchange of %s: it is %s",
                          infer_text(call, t), fault ? fault : "one of other elements");
    bool has_rows = c.kind == COLLECTIVE_REDUCE_SCATTER || c.kind == COLLECTIVE_ALL_TO_ALL;
    if (has_rows && (t.rank == 0 || infer_dims(call, 0)[0] != c.size))
        return infer_fail(call, JOT_ERR_SHAPE,
                          "exchange of %s: axis 0 has %lld rows, one a device",
                          infer_text(call, t), (long long)c.size);
    if (c.kind == COLLECTIVE_REDUCE_SCATTER)
        return infer_result(call, ir_type_row(call->b->module, t));
    if (c.kind != COLLECTIVE_ALL_GATHER)
        return infer_result(call, t);
    dims[0] = c.size;
    memcpy(dims + 1, infer_dims(call, 0), sizeof *dims * t.rank);
    return infer_result_dims(call, ir_dtype(t), t.rank + 1, dims);
}

bool infer_axis_index(struct ir_infer *call)
{
    int n;
    ir_over(call->attrs, &n);
    if (n > 1)
        return infer_fail(call, JOT_ERR_ARGUMENT, "axis_index over %d axes: it takes one", n);
    return check_over(call) && give(call, ir_type_make(call->b->module, JOT_I32, 0, NULL),
                                    ir_over_set(call->attrs));
}
