// SPDX-License-Identifier: Apache-2.0
#include "interop/check.h"

#include "base/dtype.h"
#include "base/memory.h"

#include "jot/compile.h"

// How many terms each element sums up; 0: the operation is no product.
static double terms_of(const struct mlir_op *op)
{
    size_t n;
    double terms = 1;
    if (op->row->code == MLIR_OP_stablehlo_dot_general) {
        const struct mlir_type *x = op->operands[0]->type;
        const int64_t *axes = mlir_ints(op, "lhs_contracting_dimensions", &n);
        for (size_t i = 0; i < n; i++)
            terms *= (double)x->dims[axes[i]];
        return terms;
    }
    if (op->row->code != MLIR_OP_stablehlo_convolution)
        return 0;
    const struct mlir_type *w = op->operands[1]->type;
    int64_t out = mlir_int(op, "kernel_output_feature_dimension", 0);
    return out < w->rank && w->dims[out] ? (double)mlir_elements_of(w) / (double)w->dims[out]
                                         : 0;
}

struct request {
    const struct graph_function *f;
    const struct mlir_op *op;
};

// Traces what the value is made of, down to values that are given; false when there is a way to another
// argument.
static bool reach(struct graph_frame *frame, const struct mlir_value *v, int depth)
{
    jot_value *at = &frame->values[v->number];
    const struct mlir_op *maker = graph_maker(frame, v);
    if (frame->in->given[v->number])
        *at = jot_from_array(frame->in->given[v->number]);
    if (at->trace)
        return true;
    if (!maker || depth > 16)
        return false;
    for (uint32_t i = 0; i < maker->n_operands; i++)
        if (!reach(frame, maker->operands[i], depth + 1))
            return false;
    graph_trace_op(frame, maker);
    return true;
}

static bool trace(void *ctx, jot_value *out, jot_value *out_error)
{
    const struct request *r = ctx;
    struct arena *arena = trace_top()->module->arena;
    struct graph_frame *frame = arena_new(arena, struct graph_frame);
    *frame =
        (struct graph_frame){.in = r->f,
                             .arena = arena,
                             .values = arena_array(arena, jot_value, r->f->f->n_values + 1)};
    for (int i = 0; i < 2; i++) {
        const struct mlir_value *v = r->op->operands[i];
        if (!reach(frame, v, 0)) {
            *out_error = trace_fail("check", JOT_ERR_ARGUMENT, "an operand is not given");
            return false;
        }
        jot_value x = jot_abs(frame->values[v->number]);
        bool is_complex = dtype_is_complex(mlir_elements[v->type->element].dtype);
        frame->values[v->number] = is_complex ? jot_complex(x, jot_zeros_like(x)) : x;
    }
    graph_trace_op(frame, r->op);
    *out = jot_convert(jot_abs(frame->values[r->op->results[0]->number]), JOT_F64);
    return true;
}

static void body(const jot_value *in, jot_value *out, void *ctx)
{
    (void)in;
    trace_make(trace, ctx, 1, out, NULL);
}

double *check_product_bounds(const struct graph_function *f, const struct mlir_op *op,
                             double factor)
{
    double terms = terms_of(op), *bounds = NULL;
    if (terms <= 0)
        return NULL;
    struct request r = {f, op};
    jot_array *sums = NULL;
    jot_executable *run = jot_jit(jot_function_uniform("bounds", "bounds", body, 0, 1, &r));
    if (run && jot_call_list(run, 0, NULL, 1, &sums) == JOT_OK)
        bounds = memory_allocate(jot_array_bytes(sums) + 1);
    if (bounds)
        memcpy(bounds, jot_array_data(sums), jot_array_bytes(sums));
    for (size_t i = 0; bounds && i < jot_array_size(sums); i++)
        bounds[i] *= factor * terms;
    jot_array_release(sums);
    jot_executable_release(run);
    return bounds;
}

void check_format(const jot_array *x, size_t i, char *out, size_t size)
{
    jot_dtype d = jot_array_dtype(x);
    const char *data = jot_array_data(x);
    jot_array *one =
        jot_array_copy(d, data + i * dtype_get(d)->bytes, (const int64_t[]){JOT_END});
    jot_array_format(one, out, size);
    jot_array_release(one);
}
