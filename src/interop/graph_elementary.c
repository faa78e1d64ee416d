// SPDX-License-Identifier: Apache-2.0
// Elementary functions that a program computes with the bits of floats, so that they have no derivative in it: JAX
// writes lgamma so.
//
// They are found by trying them on numbers.  A function is tried that takes floats and gives as many of their type.
#include "interop/graph_call.h"

#include "base/memory.h"

#include "jot/compile.h"

#include <math.h>

// Whether the function takes bits of floats.
static bool takes_bits(const struct mlir_function *f)
{
    enum { LEAST = 32 }; // operations
    for (uint32_t i = 0; f->body && f->body->n_ops >= LEAST && i < f->body->n_ops; i++) {
        const struct mlir_op *op = f->body->ops[i];
        if (op->row && op->row->code == MLIR_OP_stablehlo_bitcast_convert &&
            op->operands[0] == f->body->args[0])
            return true;
    }
    return false;
}

static bool is_near(double got, double x, double eps)
{
    int sign;
    double want = lgamma_r(x, &sign);
    return got == want || fabs(got - want) <= 64 * eps * fmax(1, fabs(want));
}

static double element(const jot_array *a, size_t i)
{
    return jot_array_dtype(a) == JOT_F32 ? (double)((const float *)jot_array_data(a))[i]
                                         : ((const double *)jot_array_data(a))[i];
}

// Numbers, repeated until they fill an array of that type; NULL when memory is out.
static jot_array *filled(const struct mlir_type *t, const double *numbers, size_t n_numbers)
{
    bool is_single = t->element == MLIR_F32;
    size_t n = (size_t)mlir_elements_of(t);
    int64_t dims[IR_MAX_RANK + 1];
    double *wide = memory_allocate(n * sizeof *wide + 1);
    memcpy(dims, t->dims, sizeof *dims * (size_t)t->rank);
    dims[t->rank] = JOT_END;
    for (size_t i = 0; wide && i < n; i++) {
        float single = (float)numbers[i % n_numbers];
        if (is_single)
            memcpy((char *)wide + i * sizeof single, &single, sizeof single);
        else
            wide[i] = numbers[i % n_numbers];
    }
    jot_array *x = wide ? jot_array_copy(is_single ? JOT_F32 : JOT_F64, wide, dims) : NULL;
    memory_release(wide);
    return x;
}

// Whether it is lgamma of the first of those numbers, as many as its argument has elements.
static bool agrees(jot_executable *f, const struct mlir_type *t, const double *numbers,
                   size_t n_numbers)
{
    double eps = t->element == MLIR_F32 ? 0x1p-23 : 0x1p-52;
    size_t n = (size_t)mlir_elements_of(t);
    jot_array *x = filled(t, numbers, n_numbers), *y = NULL;
    bool does = x && jot_call_list(f, 1, &x, 1, &y) == JOT_OK && jot_array_data(y);
    for (size_t i = 0; does && i < n && i < n_numbers; i++)
        does = is_near(element(y, i), element(x, i), eps);
    jot_array_release(x);
    jot_array_release(y);
    return does;
}

bool graph_is_lgamma(struct graph_frame *frame, const struct mlir_function *f)
{
    static const double numbers[] = {0.5, 3.7, 11,   -1.3, 1e-3, 100.5, 1.5,
                                     2.2, 30,  -0.4, 1e5,  0.9,  -7.25};
    enum { N = sizeof numbers / sizeof *numbers };
    const struct mlir_type *t = f->type;
    if (t->n_inputs != 1 || t->n_parts != 2 || !mlir_types_equal(t->parts[0], t->parts[1]))
        return false;
    t = t->parts[0];
    int64_t n = t->kind == MLIR_TENSOR ? mlir_elements_of(t) : 0;
    if (n < 1 || t->rank > IR_MAX_RANK || (t->element != MLIR_F32 && t->element != MLIR_F64) ||
        !takes_bits(f))
        return false;
    jot_executable *run =
        jot_jit(graph_function_value(&frame->in->all[f - frame->in->program->functions]));
    bool does = run != NULL;
    for (int64_t i = 0; does && i < N; i += n)
        does = agrees(run, t, numbers + i, (size_t)(N - i));
    jot_executable_release(run);
    return does;
}
