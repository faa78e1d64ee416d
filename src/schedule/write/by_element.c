// SPDX-License-Identifier: Apache-2.0
// Updates by the elements of what they change, for a GPU: each element goes through the windows in order, and takes of
// those that have it what they put there.
//
//     y = scatter_add(x, i, u)        kernel (i: i32[N], u: f32[N W], y: inout f32[M]) {
//                                       par m < M {
//                                         seq n < N carry %y = load y[m] {
//                                           %p = load i[n], %g = 0 <= m - %p < W
//                                           %u = load u[W n + m - %p] if %g
//                                           yield select(%g, %y + %u, %y)
//                                         }
//                                         put y[m]
//                                       }}
//
// Window after window (write/data_index.c) is one thread's where windows may meet, or, of many updates, a sort of all
// their elements.  The order of the updates of an element is the same.
#include "ir/cost.h"
#include "schedule/write/write.h"

#include <math.h>

bool write_is_by_element(const struct schedule *s, const struct ir_node *n,
                         const struct update_frame *f)
{
    ir_id x = ir_operand(s->g, n, 0);
    double elements = (double)ir_count_of(s->g, x), rank = ir_rank_of(s->g, x);
    double points = (double)axes_product(&s->axes, f->points),
           windows = (double)axes_product(&s->axes, f->order);
    double turns = windows * (double)axes_product(&s->axes, f->window);
    double bytes = (double)jot_dtype_size(ir_dtype_of(s->g, x));
    if (!s->options->one_loop || rank == 0 || windows < 2)
        return false;
    if (s->options->large)
        return true;
    double moved = 3 * points * turns * bytes / COST_BYTES_PER_US;
    double serial = fmax(turns / COST_TURNS_PER_US, moved), sorted = serial;
    if (turns >= COST_SORTED_TURNS)
        sorted = COST_SORT_US + fmax(turns / COST_SORTED_PER_US, moved);
    // A window that an element is in is waited for, and every window is looked at.
    double met = points * turns / elements;
    double waits = (windows / COST_LOOKS + met) / COST_TURNS_PER_US;
    double looks = elements * windows * COST_LOOK * rank / COST_WORK_PER_US;
    double own =
        COST_TOGETHER_US + fmax(waits, looks) + 2 * elements * bytes / COST_BYTES_PER_US;
    return own * COST_GROUP_BETTER < (serial < sorted ? serial : sorted);
}

// The element of the updates that window at[] puts in element `to` of the operand; *inside: whether there is one.
static void find_update(struct writer *w, const struct ir_node *n, const struct ir_window *v,
                        const form_id *to, form_id *at, nest_id *inside)
{
    struct emitter *e = &w->e;
    const int64_t *dims = ir_dims_of(w->s->g, n->out);
    form_id start[IR_MAX_RANK];
    for (int d = 0; d < v->rank; d++)
        if (v->is_batch[d])
            at[v->along[d]] = to[d];
    write_find_start(w, n, v, at, NEST_NONE, start, inside);
    for (int d = 0; d < v->rank; d++) {
        form_id index = emit_form_add(e, start[d], -1, to[d]);
        if (v->is_batch[d])
            continue;
        if (v->size[d] < dims[d]) {
            *inside = emit_both(e, *inside, emit_not_less(e, index, 0));
            *inside = emit_both(e, *inside, emit_less(e, index, v->size[d]));
        }
        if (v->along[d] >= 0)
            at[v->along[d]] = v->size[d] == 1 ? 0 : index;
    }
}

void write_by_element(struct writer *w, ir_id v)
{
    const struct ir_graph *g = w->s->g;
    struct emitter *e = &w->e;
    const struct ir_node *n = ir_node_of(g, v);
    struct ir_window window = write_window_of(w, n);
    const int64_t *dims = ir_dims_of(g, v);
    const int64_t *updates = ir_dims_of(g, write_updates_of(g, n));
    nest_id axes[IR_MAX_RANK],
        buffer = write_buffer_of(w, schedule_memory(w->s, v), NEST_INOUT);
    form_id to[IR_MAX_RANK], at[IR_MAX_RANK] = {0};
    scope_id back = e->at, scopes[IR_MAX_RANK];
    int depth = 0;
    for (int d = 0; d < window.rank; d++)
        axes[d] = emit_axis(e, dims[d]);
    w->point = emit_open(e, back, NEST_PAR, window.rank, axes);
    for (int d = 0; d < window.rank; d++)
        to[d] = emit_form_axis(e, axes[d]);
    form_id index = write_linear_of(w, v, to);
    nest_id value = emit_load_here(e, buffer, index), inside;
    uint32_t counts = write_counting_axes(&window);
    for (int d = 0; d < window.rank; d++)
        if (window.is_batch[d])
            counts &= ~(UINT32_C(1) << window.along[d]);
    for (int a = 0; counts >> a; a++)
        if (counts >> a & 1) {
            nest_id axis = emit_axis(e, updates[a]);
            scopes[depth++] = e->at;
            value = emit_seq_open(e, e->at, axis, false, 1, &value);
            at[a] = emit_form_axis(e, axis);
        }
    find_update(w, n, &window, to, at, &inside);
    nest_id next = write_value_at(w, write_updates_of(g, n), at, inside);
    if (ir_is_fold((enum ir_op)n->op))
        next = write_combined(w, n, value, next);
    if (inside != NEST_NONE)
        next =
            emit_op(e, IR_select, ir_dtype_of(g, v), 3, (nest_id[]){inside, next, value}, NULL);
    while (depth--)
        next = emit_close_values(e, scopes[depth], 1, &next);
    emit_put(e, buffer, index, next);
    emit_close(e, back, 0, NULL);
    e->at = back;
}
