// SPDX-License-Identifier: Apache-2.0
// Test programs: @main computes something of inputs that other functions without arguments give, and
// checks compare it with what such functions expect.
#include "interop/check.h"
#include "interop/graph_call.h"
#include "interop/numbers.h"
#include "interop/program.h"
#include "interop/refine.h"

#include "base/dtype.h"
#include "base/memory.h"

#include "jot/compile.h"

#include <math.h>
#include <stdlib.h>

// ---- what functions without arguments give ----

static jot_array *array_of(const struct mlir_attr *a)
{
    const struct mlir_type *t = a->type;
    const struct mlir_element_row *e = &mlir_elements[t->element];
    int64_t dims[IR_MAX_RANK + 1], n = mlir_elements_of(t);
    size_t bytes = dtype_get(e->dtype)->bytes;
    bool is_small_float = e->kind == 'f' && e->bits <= 8;
    if (t->rank > IR_MAX_RANK || n < 0 || e->kind == '-')
        return NULL;
    memcpy(dims, t->dims, sizeof *dims * (size_t)t->rank);
    dims[t->rank] = JOT_END;
    if (!a->is_splat && !is_small_float)
        return jot_array_copy(e->dtype, a->bytes, dims);
    char *all = memory_allocate((size_t)n * bytes + 1);
    for (int64_t i = 0; all && i < n; i++) {
        char *to = all + (size_t)i * bytes;
        if (is_small_float)
            number_keep_small(t->element, a->bytes + (a->is_splat ? 0 : i), 1, to);
        else
            memcpy(to, a->bytes, bytes);
    }
    jot_array *array = all ? jot_array_copy(e->dtype, all, dims) : NULL;
    memory_release(all);
    return array;
}

struct test {
    const jot_program *p;
    struct graph_function main;
    jot_array **given; // by number
    jot_device *device;
    int wide;
};

// Constants, else what running the function gives.
static jot_status give(struct test *t, const struct mlir_op *op, const struct graph_function *f)
{
    const struct mlir_block *body = f->f->body;
    const struct mlir_op *end = body->ops[body->n_ops - 1];
    jot_array **out = memory_allocate_zeroed(sizeof *out * (op->n_results + 1));
    if (!out)
        return status_out_of_memory();
    bool is_constant = end->n_operands == op->n_results;
    for (uint32_t i = 0; i < op->n_results && is_constant; i++) {
        const struct mlir_op *maker = f->makers[end->operands[i]->number];
        const struct mlir_attr *a = maker ? mlir_attr_find(maker, "value") : NULL;
        out[i] = a && a->kind == MLIR_DENSE ? array_of(a) : NULL;
        is_constant = out[i] != NULL;
    }
    jot_status status = JOT_OK;
    if (!is_constant) {
        jot_arrays_release(op->n_results, out);
        jot_executable *run = jot_jit(graph_function_value(f));
        status = run ? jot_call_list(run, 0, NULL, op->n_results, out) : status_last();
        jot_executable_release(run);
    }
    for (uint32_t i = 0; i < op->n_results && status == JOT_OK; i++)
        t->given[op->results[i]->number] = out[i];
    memory_release(out);
    return status;
}

// Constants are inputs, so that they are not computed with before the program runs.
static void give_constant(struct test *t, const struct mlir_op *op)
{
    const struct mlir_attr *a = mlir_attr_find(op, "value");
    if (a && a->kind == MLIR_DENSE && a->type->kind == MLIR_TENSOR)
        t->given[op->results[0]->number] = array_of(a);
}

static jot_status give_inputs(struct test *t)
{
    const struct mlir_block *body = t->main.f->body;
    for (uint32_t i = 0; i < body->n_ops; i++) {
        const struct mlir_op *op = body->ops[i];
        if (op->row && op->row->code == MLIR_OP_stablehlo_constant)
            give_constant(t, op);
        bool is_call = op->row && op->row->code == MLIR_OP_func_call && !op->n_operands;
        int callee = is_call ? program_find(t->p, mlir_text(op, "callee")) : -1;
        if (callee >= 0)
            JOT_TRY(give(t, op, &t->p->functions[callee]));
    }
    return JOT_OK;
}

// ---- comparing ----

// How far two arrays may be apart.
struct limits {
    double units;    // in the last place
    double absolute; // or by this
    double *bounds;  // or, element by element, by these
};

static int64_t ordered(int64_t bits, int width)
{
    int64_t low = (int64_t)((uint64_t)bits << (64 - width)) >> (64 - width);
    return low < 0 ? -(low & (INT64_MAX >> (64 - width))) : low;
}

// A number of a part of an element of type d, and its number among the numbers of the type.
static double read_part(jot_dtype d, const char *at, int64_t *out_number)
{
    float single;
    double wide;
    uint16_t half;
    int32_t bits;
    int64_t long_bits;
    switch ((int)d) {
    case JOT_F64:
        memcpy(&wide, at, 8);
        memcpy(&long_bits, at, 8);
        *out_number = long_bits < 0 ? -(long_bits & INT64_MAX) : long_bits;
        return wide;
    case JOT_F32:
        memcpy(&single, at, 4);
        memcpy(&bits, at, 4);
        *out_number = ordered(bits, 32);
        return (double)single;
    default:
        memcpy(&half, at, 2);
        *out_number = ordered(half, 16);
        return (double)(d == JOT_F16 ? dtype_f16_to_f32(half) : dtype_bf16_to_f32(half));
    }
}

static bool is_near(jot_dtype part, const char *x, const char *y, const struct limits *l,
                    size_t i)
{
    int64_t at_x, at_y, units;
    double a = read_part(part, x, &at_x), b = read_part(part, y, &at_y);
    if ((isnan(a) && isnan(b)) || a == b)
        return true;
    if (isnan(a) || isnan(b) || isinf(a) || isinf(b))
        return false;
    if (!__builtin_sub_overflow(at_x, at_y, &units) && fabs((double)units) <= l->units)
        return true;
    return fabs(a - b) <= (l->bounds ? l->bounds[i] : l->absolute);
}

// The first element that is too far away; -1: none.
static int64_t first_difference(const jot_array *x, const jot_array *y, const struct limits *l)
{
    jot_dtype d = jot_array_dtype(x), part = dtype_real(d);
    const char *a = jot_array_data(x), *b = jot_array_data(y);
    size_t bytes = dtype_get(d)->bytes, step = dtype_get(part)->bytes;
    for (size_t i = 0; i < jot_array_size(x); i++) {
        bool same = true;
        if (dtype_is_inexact(d))
            for (size_t k = 0; k < bytes; k += step)
                same = same && is_near(part, a + i * bytes + k, b + i * bytes + k, l, i);
        else
            same = !memcmp(a + i * bytes, b + i * bytes, bytes);
        if (!same)
            return (int64_t)i;
    }
    return -1;
}

// ---- checks ----

static double number_attr(const struct mlir_op *op, const char *name, double otherwise)
{
    const struct mlir_attr *a = mlir_attr_find(op, name);
    return !a                       ? otherwise
           : a->kind == MLIR_REAL   ? a->real
           : a->kind == MLIR_INT    ? (double)a->integer
           : a->kind == MLIR_STRING ? strtod(a->text, NULL)
                                    : otherwise;
}

static struct limits limits_of(const struct mlir_op *op, const char *name)
{
    struct limits l = {0};
    if (!strncmp(name, "expect_close", 12)) {
        l.units = number_attr(op, "max_ulp_difference", 3);
    } else if (!strncmp(name, "expect_almost_eq", 16)) {
        l.absolute = number_attr(op, "tolerance", 1e-3);
    }
    return l;
}

static const char *name_of(const struct mlir_op *op)
{
    const char *target = mlir_text(op, "call_target_name");
    return target ? target + strlen("check.") : op->row->name;
}

static double epsilon(jot_dtype part)
{
    return part == JOT_F64   ? 0x1p-52
           : part == JOT_F32 ? 0x1p-23
           : part == JOT_F16 ? 0x1p-10
                             : 0x1p-7;
}

static double largest(const jot_array *y)
{
    jot_dtype d = jot_array_dtype(y), part = dtype_real(d);
    size_t bytes = dtype_get(part)->bytes, n = jot_array_bytes(y) / bytes;
    const char *at = jot_array_data(y);
    double most = 0;
    int64_t number;
    for (size_t i = 0; i < n; i++) {
        double x = fabs(read_part(part, at + i * bytes, &number));
        most = x > most ? x : most;
    }
    return most;
}

// What the manual says of functions of elements, in units in the last place (docs/numerics.md).
enum { DOCUMENTED_UNITS = 4 };

// What computes the value, in main or in the functions that it calls; NULL when that is not one operation.
static const struct mlir_row *computed_by(const struct test *t, const struct mlir_value *v)
{
    const struct graph_function *f = &t->main;
    const struct mlir_op *maker = f->makers[v->number];
    for (uint32_t depth = 0; maker && maker->row && maker->row->code == MLIR_OP_func_call;
         depth++) {
        int callee = program_find(t->p, mlir_text(maker, "callee"));
        if (callee < 0 || depth > t->p->tree->n_functions)
            return NULL;
        uint32_t result = 0;
        while (maker->results[result] != v)
            result++;
        f = &t->p->functions[callee];
        v = f->f->body->ops[f->f->body->n_ops - 1]->operands[result];
        maker = f->makers[v->number];
    }
    if (!maker || !maker->row)
        return NULL;
    return maker->row->code == MLIR_OP_stablehlo_composite
               ? graph_called_row(mlir_text(maker, "name"), "chlo")
               : maker->row;
}

// The wider limit of what a function, a product or a transform gives; false when the value is none of these.
static bool widen_limits(struct test *t, const struct mlir_op *check, const jot_array *x,
                         struct limits *l)
{
    const struct mlir_op *maker = t->main.makers[check->operands[0]->number];
    const struct mlir_row *row = computed_by(t, check->operands[0]);
    if (!row || !dtype_is_inexact(jot_array_dtype(x)))
        return false;
    double eps = epsilon(dtype_real(jot_array_dtype(x)));
    if (row->code == MLIR_OP_stablehlo_fft) {
        l->absolute = 16 * eps * largest(x);
        return true;
    }
    if (graph_map_find(row->code) && l->units < DOCUMENTED_UNITS) {
        l->units = DOCUMENTED_UNITS;
        return true;
    }
    l->bounds = check_product_bounds(&t->main, maker, 4 * eps);
    return l->bounds != NULL;
}

static jot_status compare_arrays(struct test *t, const struct mlir_op *op, const jot_array *x,
                                 const jot_array *y)
{
    const char *name = name_of(op);
    struct limits l = limits_of(op, name);
    if (jot_array_dtype(x) != jot_array_dtype(y) || jot_array_size(x) != jot_array_size(y))
        return status_fail(JOT_ERR_CHECK, "%s:%u: %s: of other types or shapes", t->p->file,
                           op->place.line, name);
    int64_t i = first_difference(x, y, &l);
    if (i < 0)
        return JOT_OK;
    if ((l.units > 0 || l.absolute > 0) && widen_limits(t, op, x, &l)) {
        int64_t still = first_difference(x, y, &l);
        memory_release(l.bounds);
        if (still < 0)
            return t->wide++, JOT_OK;
        i = still;
    }
    char a[256], b[256];
    check_format(x, (size_t)i, a, sizeof a);
    check_format(y, (size_t)i, b, sizeof b);
    return status_fail(JOT_ERR_CHECK, "%s:%u: %s: element %lld is %s, expected %s", t->p->file,
                       op->place.line, name, (long long)i, a, b);
}

static jot_status compare_all(struct test *t, jot_array *const *out, uint32_t n_out)
{
    const struct mlir_block *body = t->main.f->body;
    uint32_t at = body->ops[body->n_ops - 1]->n_operands;
    for (uint32_t i = 0; i < body->n_ops; i++) {
        const struct mlir_op *op = body->ops[i];
        uint32_t n = graph_check_operands(op);
        const struct mlir_attr *value = mlir_attr_find(op, "value");
        if (n == 2 && at + 2 <= n_out) {
            JOT_TRY(compare_arrays(t, op, out[at], out[at + 1]));
        } else if (n == 1 && value && value->kind == MLIR_DENSE) {
            jot_array *y = array_of(value);
            jot_status status =
                y ? compare_arrays(t, op, out[at], y)
                  : status_fail(JOT_ERR_DTYPE, "%s:%u: %s: its value cannot be read",
                                t->p->file, op->place.line, name_of(op));
            jot_array_release(y);
            JOT_TRY(status);
        } else if (n) {
            return status_fail(JOT_ERR_ARGUMENT, "%s:%u: %s: %u operands", t->p->file,
                               op->place.line, name_of(op), n);
        }
        at += n;
    }
    return JOT_OK;
}

static jot_status run_test(struct test *t)
{
    uint32_t n_out = graph_results(&t->main);
    JOT_TRY(give_inputs(t));
    jot_array **out = memory_allocate_zeroed(sizeof *out * (n_out + 1));
    if (!out)
        return status_out_of_memory();
    jot_jit_options options = {.device = t->device};
    jot_executable *f = jot_jit_with(graph_function_value(&t->main), &options);
    jot_status status = f ? jot_call_list(f, 0, NULL, n_out, out) : status_last();
    if (status == JOT_OK)
        status = compare_all(t, out, n_out);
    jot_arrays_release(n_out, out);
    memory_release(out);
    jot_executable_release(f);
    return status;
}

static jot_status run_function(const jot_program *p, uint32_t i, jot_device *device, int *wide)
{
    struct test t = {.p = p, .main = p->functions[i], .device = device};
    size_t n = t.main.f->n_values + 1;
    t.given = memory_allocate_zeroed(sizeof *t.given * n);
    if (!t.given)
        return status_out_of_memory();
    t.main.has_checks = true;
    t.main.given = t.given;
    jot_status status = run_test(&t);
    jot_arrays_release(n, t.given);
    memory_release(t.given);
    *wide += t.wide;
    return status;
}

static bool has_checks(const struct mlir_function *f)
{
    for (uint32_t i = 0; f->body && i < f->body->n_ops; i++)
        if (graph_check_operands(f->body->ops[i]))
            return true;
    return false;
}

// Whether some operation takes extents as operands; they are known, all types being so.
static bool takes_extents(const struct mlir_block *block)
{
    static const char *const names[] = {"stablehlo.dynamic_conv", "stablehlo.dynamic_gather",
                                        "stablehlo.dynamic_pad",
                                        "stablehlo.real_dynamic_slice"};
    for (uint32_t i = 0; i < block->n_ops; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (!strcmp(block->ops[i]->name, names[k]))
                return true;
    return false;
}

// The function in a program of its own, where no operation takes extents as operands.
static jot_status run_refined(const jot_program *p, uint32_t i, jot_device *device, int *wide)
{
    struct mlir_program *tree;
    JOT_TRY(mlir_refine(p->tree, p->tree->functions[i].name, NULL, 0, &tree));
    jot_program *refined = program_of_tree(p->file, tree);
    if (!refined)
        return status_last();
    int at = program_find(refined, p->tree->functions[i].name);
    jot_status status =
        at < 0 ? status_last() : run_function(refined, (uint32_t)at, device, wide);
    jot_program_release(refined);
    return status;
}

jot_status jot_program_check(const jot_program *p, jot_device *device, int *out_wide)
{
    int n = 0, wide = 0;
    if (!p)
        return status_fail(JOT_ERR_ARGUMENT, "jot_program_check: p is NULL");
    for (uint32_t i = 0; i < p->tree->n_functions; i++) {
        const struct mlir_function *f = &p->tree->functions[i];
        if (!has_checks(f))
            continue;
        if (f->body->n_args)
            return status_fail(JOT_ERR_ARGUMENT,
                               "%s: @%s, which checks something, takes arguments", p->file,
                               f->name);
        JOT_TRY((takes_extents(f->body) ? run_refined : run_function)(p, i, device, &wide));
        n++;
    }
    if (out_wide)
        *out_wide = wide;
    return n ? JOT_OK : status_fail(JOT_ERR_ARGUMENT, "%s: nothing is checked", p->file);
}
