// SPDX-License-Identifier: Apache-2.0
// Absolute values of complex numbers as operations on their parts, which JAX writes out:
//
//     sqrt(square(s re) + square(s im)) / s, with s by how large the parts are, and infinity where one is
//
// They are found by trying them on numbers.  What is tried is a selection of such a root times a number, computed
// of the real and the imaginary part of one value by operations on elements and nothing else.  As jot_abs it has a
// derivative where the number is 0, and where it is too large for squares.
#include "interop/to_graph.h"

#include <math.h>

#define HLO_(name) MLIR_OP_stablehlo_##name

enum { MOST_VALUES = 96 };

// A trial on one number.
struct trial {
    const struct graph_frame *frame;
    const struct mlir_value *z; // whose parts are taken; NULL: none yet
    bool is_single;             // f32; else f64
    double re, im;
    const struct mlir_value *values[MOST_VALUES];
    double results[MOST_VALUES];
    int n;
};

static bool compute(struct trial *t, const struct mlir_value *v, double *out);

static bool read_constant(const struct trial *t, const struct mlir_value *v, double *out)
{
    const struct mlir_attr *a = graph_constant(t->frame, v);
    if (!a || (a->type->element != MLIR_F32 && a->type->element != MLIR_F64))
        return false;
    float single;
    memcpy(&single, a->bytes, sizeof single);
    *out = (double)single;
    if (a->type->element == MLIR_F64)
        memcpy(out, a->bytes, sizeof *out);
    return true;
}

static bool read_part(struct trial *t, const struct mlir_op *op, double *out)
{
    if (t->z && t->z != op->operands[0])
        return false;
    t->z = op->operands[0];
    *out = op->row->code == HLO_(real) ? t->re : t->im;
    return true;
}

static bool compare(const struct mlir_op *op, double x, double y, double *out)
{
    const char *word = mlir_text(op, "comparison_direction");
    *out = !word                 ? 2
           : !strcmp(word, "EQ") ? x == y
           : !strcmp(word, "NE") ? x != y
           : !strcmp(word, "GE") ? x >= y
           : !strcmp(word, "GT") ? x > y
           : !strcmp(word, "LE") ? x <= y
                                 : x < y;
    return *out < 2;
}

static bool combine(const struct mlir_op *op, const double *x, double *out)
{
    switch ((int)op->row->code) {
    case HLO_(abs):
        return *out = fabs(x[0]), true;
    case HLO_(sqrt):
        return *out = sqrt(x[0]), true;
    case MLIR_OP_chlo_square:
        return *out = x[0] * x[0], true;
    case HLO_(multiply):
        return *out = x[0] * x[1], true;
    case HLO_(divide):
        return *out = x[0] / x[1], true;
    case HLO_(add):
        return *out = x[0] + x[1], true;
    case HLO_(maximum):
        return *out = isnan(x[0]) || isnan(x[1]) ? NAN : fmax(x[0], x[1]), true;
    case HLO_(minimum):
        return *out = isnan(x[0]) || isnan(x[1]) ? NAN : fmin(x[0], x[1]), true;
    case HLO_(or):
        return *out = x[0] != 0 || x[1] != 0, true;
    case HLO_(and):
        return *out = x[0] != 0 && x[1] != 0, true;
    case HLO_(select):
        return *out = x[0] != 0 ? x[1] : x[2], true;
    case HLO_(compare):
        return compare(op, x[0], x[1], out);
    default:
        return false;
    }
}

static bool compute_op(struct trial *t, const struct mlir_op *op, double *out)
{
    double x[3] = {0};
    if (!op || !op->row || op->n_results != 1)
        return false;
    if (op->row->code == HLO_(real) || op->row->code == HLO_(imag))
        return read_part(t, op, out);
    if (op->n_operands > 3)
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (!compute(t, op->operands[i], &x[i]))
            return false;
    if (!op->n_operands || !combine(op, x, out))
        return false;
    *out = t->is_single ? (double)(float)*out : *out;
    return true;
}

static bool compute(struct trial *t, const struct mlir_value *v, double *out)
{
    for (int i = 0; i < t->n; i++)
        if (t->values[i] == v)
            return *out = t->results[i], true;
    if (t->n == MOST_VALUES)
        return false;
    int at = t->n++; // none computes itself
    t->values[at] = v;
    if (!read_constant(t, v, out) && !compute_op(t, graph_maker(t->frame, v), out))
        return false;
    t->results[at] = *out;
    return true;
}

static bool agrees(struct trial *t, const struct mlir_op *op, double re, double im)
{
    t->re = t->is_single ? (double)(float)re : re;
    t->im = t->is_single ? (double)(float)im : im;
    double got, want = hypot(t->re, t->im);
    t->n = 0;
    if (!compute(t, op->results[0], &got))
        return false;
    if (isnan(want) || isinf(want) || want == 0)
        return isnan(want) ? isnan(got) : got == want;
    double eps = t->is_single ? 0x1p-23 : 0x1p-52, least = t->is_single ? 0x1p-149 : 0x1p-1074;
    return fabs(got - want) <= 4 * eps * want + 2 * least;
}

// Whether the operation is a selection of a root times a number.
static bool selects_root(const struct graph_frame *f, const struct mlir_op *op)
{
    const struct mlir_op *product = graph_maker(f, op->operands[2]);
    if (!product || !product->row || product->row->code != HLO_(multiply))
        return false;
    for (int i = 0; i < 2; i++) {
        const struct mlir_op *root = graph_maker(f, product->operands[i]);
        if (root && root->row && root->row->code == HLO_(sqrt))
            return true;
    }
    return false;
}

const struct mlir_value *graph_magnitude_of(const struct graph_frame *f,
                                            const struct mlir_op *op)
{
    static const double singles[] = {0,        1,    -3,      0.7,      0x1p-12,   -1e-20,
                                     0x1p-149, 1e20, -1.5e38, INFINITY, -INFINITY, NAN},
                        doubles[] = {0,         1,     -3,     0.7,      0x1p-12,   -1e-160,
                                     0x1p-1074, 1e160, -1e308, INFINITY, -INFINITY, NAN};
    const struct mlir_type *type = op->results[0]->type;
    struct trial t = {.frame = f, .is_single = type->element == MLIR_F32};
    if (type->kind != MLIR_TENSOR || op->n_operands != 3 ||
        (type->element != MLIR_F32 && type->element != MLIR_F64) || !selects_root(f, op))
        return NULL;
    const double *x = t.is_single ? singles : doubles;
    size_t n = sizeof singles / sizeof *singles;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            if (!agrees(&t, op, x[i], x[k]))
                return NULL;
    return t.z;
}
