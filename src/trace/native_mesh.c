// SPDX-License-Identifier: Apache-2.0
#include "trace/native_mesh.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/device.h"
#include "runtime/distributed.h"
#include "runtime/frames.h"

#include <string.h>

#define NOT_A_PART SIZE_MAX

// ---- Descriptions

static struct rt_spec spec_of(const struct ir_shard *s, struct ir_split split, int rank)
{
    struct rt_spec spec = {0};
    memset(spec.dim, -1, sizeof spec.dim);
    for (int d = 0, at = 0; d < rank; d++, at += 1 + (int)split.at[at])
        for (int k = 0; k < split.at[at]; k++) {
            spec.dim[split.at[at + 1 + k]] = (int8_t)d;
            spec.order[split.at[at + 1 + k]] = (int8_t)k;
        }
    (void)s;
    return spec;
}

// Where pieces are parts of the memory of a whole array.
static void find_starts(const struct native_mesh *p, uint32_t i, jot_dtype dtype, int rank,
                        const int64_t *dims)
{
    int64_t start[IR_MAX_RANK], piece[IR_MAX_RANK], row = (int64_t)dtype_get(dtype)->bytes;
    bool is_part = true;
    for (uint32_t axis = 0; axis < p->mesh->rank; axis++)
        is_part &= p->in[i].dim[axis] <= 0;
    for (int d = 1; d < rank; d++)
        row *= dims[d];
    for (uint32_t k = 0; k < p->mesh->count; k++) {
        rt_spec_piece(p->mesh, &p->in[i], rank, dims, k, start, piece);
        p->starts[(size_t)i * p->mesh->count + k] = !is_part ? NOT_A_PART
                                                    : rank   ? (size_t)(start[0] * row)
                                                             : 0;
    }
}

void native_mesh_describe(struct native_mesh *p, struct ir_module *m, uint32_t function,
                          const struct pass_partition *parts)
{
    const struct ir_graph *g = ir_function(m, function);
    p->n_in = g->n_params;
    p->n_out = g->outputs.count;
    p->in = arena_array(m->arena, struct rt_spec, p->n_in + 1);
    p->out = arena_array(m->arena, struct rt_spec, p->n_out + 1);
    p->whole = arena_array(m->arena, struct native_output, p->n_out + 1);
    p->starts = arena_array(m->arena, size_t, (size_t)p->n_in * p->mesh->count + 1);
    for (uint32_t i = 0; i < p->n_in; i++) {
        p->in[i] = spec_of(&parts->shard, parts->in[i], ir_rank_of(g, i));
        find_starts(p, i, ir_dtype_of(g, i), ir_rank_of(g, i), ir_dims_of(g, i));
    }
    for (uint32_t i = 0; i < p->n_out; i++) {
        ir_id v = g->outputs.at[i];
        p->out[i] = spec_of(&parts->shard, parts->out[i], ir_rank_of(g, v));
        p->whole[i] = (struct native_output){
            .dtype = ir_dtype_of(g, v), .rank = ir_rank_of(g, v), .dims = ir_dims_of(g, v)};
    }
}

// ---- Runs

// A run; each list is by device and then by input or output of the program.
struct mesh_run {
    struct rt_frame frame;
    const struct native_mesh *p;
    jot_array **brought; // by input: in pieces, or NULL where it is read in one
    jot_array **made;
    const void **inputs;
    void **outputs;
};

static void release_run(struct mesh_run *r)
{
    jot_arrays_release(r->p->n_in, r->brought);
    jot_arrays_release((size_t)r->p->n_out * r->p->mesh->count, r->made);
    memory_release(r);
}

static void abandon_run(struct rt_frame *frame) { release_run((struct mesh_run *)frame); }

static struct mesh_run *create_run(const struct native_mesh *p)
{
    size_t n = p->mesh->count, n_in = n * (p->n_in + 1), n_out = n * p->n_out;
    struct mesh_run *r =
        memory_allocate_zeroed(sizeof *r + (p->n_in + n_in + 2 * n_out) * sizeof(void *));
    if (!r)
        return NULL;
    r->p = p;
    r->brought = (jot_array **)(r + 1);
    r->made = r->brought + p->n_in;
    r->inputs = (const void **)(r->made + n_out);
    r->outputs = (void **)(r->inputs + n_in);
    return r;
}

jot_status native_mesh_bring(const struct native_mesh *p, uint32_t i, jot_array *a,
                             jot_array **out)
{
    *out = rt_array_split_as(a, p->mesh, &p->in[i]);
    return *out ? JOT_OK : status_last();
}

static jot_status set_input(struct mesh_run *r, uint32_t i, jot_array *a)
{
    const struct native_mesh *p = r->p;
    size_t n = p->mesh->count, stride = p->n_in + 1;
    const size_t *starts = p->starts + (size_t)i * n;
    if (!rt_array_split(a) && starts[0] != NOT_A_PART && rt_is_host(p->mesh->devices[0]) &&
        rt_is_host(rt_array_device(a))) {
        for (size_t d = 0; d < n; d++)
            r->inputs[d * stride + i] = (const char *)a->data + starts[d];
        return JOT_OK;
    }
    JOT_TRY(native_mesh_bring(p, i, a, &r->brought[i]));
    for (size_t d = 0; d < n; d++)
        r->inputs[d * stride + i] = rt_array_split(r->brought[i])->pieces[d]->data;
    return JOT_OK;
}

static jot_status set_inputs(struct mesh_run *r, jot_array *const *in)
{
    const struct native_mesh *p = r->p;
    jot_array *coordinates = rt_mesh_coordinates(p->mesh);
    if (!coordinates)
        return status_last();
    for (uint32_t i = 0; i < p->n_in; i++)
        JOT_TRY(set_input(r, i, in[i]));
    for (size_t d = 0; d < p->mesh->count; d++)
        r->inputs[d * (p->n_in + 1) + p->n_in] = rt_array_split(coordinates)->pieces[d]->data;
    return JOT_OK;
}

// Whether the caller gives the array once, and nobody else holds it: brought is one more reference to it.
static bool is_given(const struct mesh_run *r, jot_array *const *in, uint32_t at)
{
    const struct native_mesh *p = r->p;
    if (r->brought[at] != in[at] || atomic_load(&in[at]->references) != 2)
        return false;
    for (uint32_t i = 0; i < p->n_in; i++)
        if (i != at && in[i] == in[at])
            return false;
    return true;
}

// The piece of an output: that of the donated input where that is allowed, else a new one.
static jot_array *make_piece(const struct mesh_run *r, const struct native_output *t,
                             jot_array *const *in, size_t d)
{
    if (t->donated >= 0 && is_given(r, in, (uint32_t)t->donated)) {
        jot_array *a = rt_array_split(in[t->donated])->pieces[d];
        if (rt_array_is_unique(a) && rt_array_can_retype(a, t->dtype, t->rank, t->dims))
            return jot_array_retain(a);
    }
    return rt_array_create_on(r->p->mesh->devices[d], t->dtype, t->rank, t->dims);
}

static jot_status make_outputs(struct mesh_run *r, jot_array *const *in)
{
    const struct native_mesh *p = r->p;
    for (size_t d = 0; d < p->mesh->count; d++)
        for (uint32_t i = 0; i < p->n_out; i++) {
            size_t at = d * p->n_out + i;
            r->made[at] = make_piece(r, &p->pieces[i], in, d);
            if (!r->made[at])
                return status_last();
            r->outputs[at] = r->made[at]->data;
        }
    return JOT_OK;
}

// The pieces of result i as an array.
static jot_array *put_together(struct mesh_run *r, jot_array *const *in, uint32_t i,
                               jot_array **pieces)
{
    const struct native_mesh *p = r->p;
    const struct native_output *t = &p->pieces[i], *whole = &p->whole[i];
    for (size_t d = 0; d < p->mesh->count; d++) {
        jot_array **made = &r->made[d * p->n_out + i];
        if (t->donated >= 0 && r->brought[t->donated] == in[t->donated] &&
            *made == rt_array_split(in[t->donated])->pieces[d])
            rt_array_retype(*made, t->dtype, t->rank, t->dims);
        pieces[d] = *made;
        *made = NULL;
    }
    return rt_array_from_pieces(p->mesh, &p->out[i], whole->dtype, whole->rank, whole->dims,
                                pieces);
}

static jot_status give_outputs(struct mesh_run *r, jot_array *const *in, jot_array **out)
{
    const struct native_mesh *p = r->p;
    // What the program does not read any more has room for the pieces of a result.
    jot_array **pieces = (jot_array **)r->outputs;
    for (uint32_t i = 0; i < p->n_out; i++) {
        out[i] = put_together(r, in, i, pieces);
        if (!out[i]) {
            jot_status status = status_last();
            jot_arrays_release(i, out);
            return status;
        }
    }
    return JOT_OK;
}

static jot_status run_mesh(struct mesh_run *r, jot_array *const *in)
{
    JOT_TRY(set_inputs(r, in));
    JOT_TRY(make_outputs(r, in));
    return rt_team_run(r->p->team, r->inputs, r->outputs);
}

__attribute__((noinline)) static jot_status run_open(struct mesh_run *r, jot_array *const *in)
{
    RT_MARK mark = {0};
    rt_frame_open(&r->frame, &mark, abandon_run);
    jot_status status = run_mesh(r, in);
    rt_frame_close(&mark);
    return status;
}

jot_status native_mesh_run(const struct native_mesh *p, bool calls_back, jot_array *const *in,
                           jot_array **out)
{
    struct mesh_run *r = create_run(p);
    if (!r)
        return status_out_of_memory();
    jot_status status = calls_back ? run_open(r, in) : run_mesh(r, in);
    if (status != JOT_OK && rt_mesh_is_across(p->mesh))
        rt_distributed_fail(status, "%s", jot_error_message());
    if (status == JOT_OK)
        status = give_outputs(r, in, out);
    release_run(r);
    return status;
}
