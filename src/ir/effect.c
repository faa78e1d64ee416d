// SPDX-License-Identifier: Apache-2.0
// Nodes with effects: their types and their evaluation.
#include "base/check.h"
#include "base/status.h"
#include "ir/eval_ops.h"
#include "ir/infer.h"

_Static_assert(IR_CHECK_TRIPS == CHECK_MAX_TRIPS, "as many trips in a node as in a message");
_Static_assert(IR_CHECK_LANES == CHECK_MAX_LANES, "and as many lanes");
_Static_assert(IR_MAX_RANK == CHECK_MAX_RANK, "and axes");

static bool check_text(struct ir_infer *call, enum ir_key key)
{
    return ir_field_find(call->attrs, key) ||
           infer_fail(call, JOT_ERR_ARGUMENT, "%s without the attribute %s", infer_name(call),
                      ir_key_table[key].name);
}

bool infer_check(struct ir_infer *call)
{
    int n_lanes;
    ir_attr_ints(call->attrs, IR_KEY_lane_axes, &n_lanes);
    if (call->n_in < 1 + n_lanes || call->n_in > 1 + IR_CHECK_TRIPS + n_lanes)
        return infer_fail(call, JOT_ERR_ARGUMENT,
                          "check of %d operands: it takes what must hold and the trips of at "
                          "most %d loops",
                          call->n_in, IR_CHECK_TRIPS);
    if (ir_dtype(infer_in(call, 0)) != JOT_BOOL)
        return infer_fail(call, JOT_ERR_DTYPE, "check of %s, not of bool: compare it",
                          infer_text(call, infer_in(call, 0)));
    for (int i = 1; i < call->n_in; i++) {
        struct ir_type t = infer_in(call, i);
        if (ir_dtype(t) != JOT_I64 || t.rank != 0)
            return infer_fail(call, t.rank ? JOT_ERR_SHAPE : JOT_ERR_DTYPE,
                              "trip %d of check is %s, not i64[]", i - 1, infer_text(call, t));
    }
    int64_t dims[IR_MAX_RANK];
    int rank = ir_check_index(call->b->module, call->attrs, infer_in(call, 0), dims);
    if (rank < 0 || ir_check_lanes(call->attrs) > rank)
        return infer_fail(call, JOT_ERR_ARGUMENT,
                          "check of lanes at axes that its index has not");
    return check_text(call, IR_KEY_message) && check_text(call, IR_KEY_place);
}

int ir_check_index(const struct ir_module *m, const struct ir_attrs *attrs,
                   struct ir_type holds, int64_t *dims)
{
    int n_lanes, rank;
    const int64_t *axes = ir_attr_ints(attrs, IR_KEY_lane_axes, &n_lanes);
    if (n_lanes > IR_CHECK_LANES || n_lanes > IR_MAX_RANK - holds.rank)
        return -1;
    rank = holds.rank + n_lanes;
    memset(dims, 0, sizeof *dims * (size_t)rank);
    for (int i = 0; i < n_lanes; i++) {
        if (axes[i] < 0 || axes[i] >= rank || (i && axes[i] <= axes[i - 1]))
            return -1;
        dims[axes[i]] = -1;
    }
    for (int axis = 0, next = 0; axis < rank; axis++)
        if (!dims[axis])
            dims[axis] = ir_dims(m, holds)[next++];
    return rank;
}

int ir_check_lanes(const struct ir_attrs *attrs)
{
    int64_t n = ir_attr_int_or(attrs, IR_KEY_lanes, 0);
    return n < 0 ? 0 : n > IR_MAX_RANK ? IR_MAX_RANK + 1 : (int)n;
}

const char *ir_check_text(struct arena *arena, const struct ir_attrs *attrs)
{
    const struct ir_field *message = ir_field_find(attrs, IR_KEY_message);
    const struct ir_field *place = ir_field_find(attrs, IR_KEY_place);
    struct strbuf s = strbuf_make(arena);
    strbuf_add_bytes(&s, place->bytes, place->count);
    strbuf_add(&s, place->count ? ": " : "");
    strbuf_add_bytes(&s, message->bytes, message->count);
    return s.text;
}

jot_status eval_check(const struct eval_call *c)
{
    int64_t dims[IR_MAX_RANK];
    struct check check = {.what = ir_check_text(c->arena, c->attrs),
                          .holds = c->in[0].data,
                          .rank = ir_check_index(c->module, c->attrs, c->in[0].type, dims),
                          .dims = dims,
                          .n_lanes = ir_check_lanes(c->attrs),
                          .n_counts = c->n_in - 1};
    for (int i = 1; i < c->n_in; i++)
        memcpy(&check.counts[i - 1], c->in[i].data, sizeof check.counts[0]);
    return check_all(&check);
}

// -- Callbacks --------------------------------------------------------------------------------

uint32_t ir_host_add(struct ir_module *m, const struct ir_host *h)
{
    const char *where = h->where ? h->where : "";
    for (uint32_t i = 0; i < m->hosts.count; i++) {
        const struct ir_host *k = &m->hosts.at[i];
        bool same = k->call == h->call && k->ctx_bytes == h->ctx_bytes &&
                    k->maps_batch == h->maps_batch && !strcmp(k->name, h->name) &&
                    !strcmp(k->where, where);
        if (same && (h->ctx_bytes ? !memcmp(k->ctx, h->ctx, h->ctx_bytes) : k->ctx == h->ctx))
            return i;
    }
    struct ir_host copy = *h;
    copy.name = arena_text(m->arena, h->name);
    copy.where = arena_text(m->arena, where);
    if (h->ctx_bytes)
        copy.ctx = arena_copy(m->arena, h->ctx, h->ctx_bytes);
    vec_push(m->arena, &m->hosts, copy);
    return m->hosts.count - 1;
}

ir_id ir_callback(struct ir_builder *b, uint32_t host, int lanes, int n_in, const ir_id *in,
                  int n_out, const struct ir_type *types)
{
    VEC(int64_t) results = {0};
    struct arena *arena = b->module->arena;
    vec_reserve(arena, &results, 1);
    for (int i = 0; i < n_out; i++) {
        vec_push(arena, &results, types[i].dtype);
        vec_push(arena, &results, types[i].rank);
        for (int axis = 0; axis < types[i].rank; axis++)
            vec_push(arena, &results, ir_dims(b->module, types[i])[axis]);
    }
    return ir_build(b, IR_callback, n_in, in,
                    ir_attrs(b->module, IR_INT(host, host), IR_INT(lanes, lanes),
                             IR_INTS(results, results.count, results.at)));
}

// The next of the types that are left in list[0 .. n).
static bool read_result(struct ir_infer *call, const int64_t **list, int *n,
                        struct ir_type *out)
{
    const int64_t *at = *list;
    if (*n < 2 || at[0] < 0 || at[0] >= DTYPE_COUNT || at[1] < 0 || at[1] > IR_MAX_RANK ||
        at[1] > *n - 2)
        return infer_fail(call, JOT_ERR_ARGUMENT,
                          "callback: its results are not dtype, rank, "
                          "extents of each");
    if (!infer_dims_fit((jot_dtype)at[0], (int)at[1], at + 2))
        return infer_fail(call, JOT_ERR_SHAPE,
                          "callback: a result has an extent below 0, or more "
                          "than 2^62 bytes");
    *out = ir_type_make(call->b->module, (jot_dtype)at[0], (int)at[1], at + 2);
    *list += 2 + at[1];
    *n -= 2 + (int)at[1];
    return true;
}

bool infer_callback(struct ir_infer *call)
{
    int64_t host, lanes;
    int n;
    if (!infer_int(call, IR_KEY_host, &host) || !infer_int(call, IR_KEY_lanes, &lanes))
        return false;
    if (host < 0 || host >= call->b->module->hosts.count)
        return infer_fail(call, JOT_ERR_ARGUMENT, "callback of host %lld: the module has %u",
                          (long long)host, call->b->module->hosts.count);
    const int64_t *list = ir_attr_ints(call->attrs, IR_KEY_results, &n);
    call->types = arena_array(call->b->module->arena, struct ir_type, n / 2 + 1);
    for (call->n_out = 0; n; call->n_out++)
        if (!read_result(call, &list, &n, &call->types[call->n_out]))
            return false;
    int n_counts = (int)ir_attr_int_or(call->attrs, IR_KEY_told, 0);
    if (n_counts < 0 || n_counts > call->n_in)
        return infer_fail(call, JOT_ERR_ARGUMENT, "callback: %d of its %d operands are counts",
                          n_counts, call->n_in);
    for (int i = call->n_in - n_counts; i < call->n_in; i++)
        if (infer_in(call, i).rank || infer_in(call, i).dtype != JOT_I64)
            return infer_fail(call, JOT_ERR_DTYPE,
                              "operand %d of callback is %s, a count i64[]", i,
                              infer_text(call, infer_in(call, i)));
    for (int i = 0; i < call->n_in - n_counts; i++)
        if (infer_in(call, i).rank < lanes)
            return infer_fail(call, JOT_ERR_SHAPE,
                              "operand %d of callback is %s, without %lld "
                              "axes of lanes",
                              i, infer_text(call, infer_in(call, i)), (long long)lanes);
    return true;
}

static jot_callback_array array_of(const struct eval_call *c, const struct ir_tensor *t)
{
    return (jot_callback_array){.dtype = ir_dtype(t->type),
                                .rank = t->type.rank,
                                .dims = ir_dims(c->module, t->type),
                                .data = t->data};
}

jot_status eval_callback(const struct eval_call *c)
{
    const struct ir_host *h = &c->module->hosts.at[ir_attr_int(c->attrs, IR_KEY_host)];
    jot_callback_array *all = arena_array(c->arena, jot_callback_array, c->n_in + c->n_out + 1);
    for (int i = 0; i < c->n_in; i++)
        all[i] = array_of(c, &c->in[i]);
    for (int i = 0; i < c->n_out; i++)
        all[c->n_in + i] = array_of(c, &c->out[i]);
    struct ir_host_call call = ir_host_call_of(c->attrs, c->n_in, c->n_out);
    return ir_host_call(h, &call, all);
}

struct ir_host_call ir_host_call_of(const struct ir_attrs *attrs, int n_in, int n_out)
{
    int n_named;
    const int64_t *axes = ir_attr_ints(attrs, IR_KEY_lane_axes, &n_named);
    int n_counts = (int)ir_attr_int_or(attrs, IR_KEY_told, 0);
    return (struct ir_host_call){.lanes = (int)ir_attr_int(attrs, IR_KEY_lanes),
                                 .n_in = n_in - n_counts,
                                 .n_out = n_out,
                                 .n_trips = n_counts - n_named,
                                 .n_named = n_named,
                                 .axes = axes};
}

// Adds the numbers in the last of a call's operands.
static void add_counts(char *text, size_t size, const char *what, int n,
                       const jot_callback_array *from)
{
    int64_t numbers[CHECK_MAX_COUNTS];
    n = n < CHECK_MAX_COUNTS ? n : CHECK_MAX_COUNTS;
    for (int i = 0; i < n; i++)
        numbers[i] = *(const int64_t *)from[i].data;
    check_add_numbers(text, size, what, n, numbers);
}

jot_status ir_host_call(const struct ir_host *h, const struct ir_host_call *c,
                        const jot_callback_array *all)
{
    char counts[300] = "";
    const jot_callback_array *trips = all + c->n_in, *lanes = trips + c->n_trips;
    struct ir_lane_call call = {.call = {.n_in = (size_t)c->n_in,
                                         .n_out = (size_t)c->n_out,
                                         .in = all,
                                         .out = lanes + c->n_named,
                                         .n_lanes = c->lanes},
                                .n_named = c->n_named,
                                .axes = c->axes,
                                .named = lanes};
    unsigned before = status_failures();
    jot_status status = h->call(h->ctx, &call.call);
    if (status == JOT_OK)
        return JOT_OK;
    add_counts(counts, sizeof counts, "lane", c->n_named, lanes);
    add_counts(counts, sizeof counts, "trip", c->n_trips, trips);
    // Without a name the place says that it is a callback.
    bool is_named = !*h->where || strcmp(h->name, IR_HOST_UNNAMED) != 0;
    return status_fail(
        status, "%s%s%s%s%s%s", h->where, *h->where ? ": " : "", is_named ? h->name : "",
        is_named ? ": " : "",
        status_failures() == before ? jot_status_name(status) : jot_error_message(), counts);
}
