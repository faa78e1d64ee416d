// SPDX-License-Identifier: Apache-2.0
// Functions beside the numbers of make_layers.py: compiled, differentiated in all arguments,
// and mapped.
#ifndef LAYERS_SUPPORT_H
#define LAYERS_SUPPORT_H

#include "trace/trace_support.h"

#include <float.h>

enum { MOST_ARGUMENTS = 10, MOST_NUMBERS = 4096 };

// What make_layers.py has, too.
struct layer_case {
    const char *name;
    jot_value (*f)(const jot_value *x);
    int64_t dims[MOST_ARGUMENTS]
                [6]; // extents, ended by 0; the arguments end where there are none
};

static inline void check_between(jot_value v, double least, double most)
{
    double x = jot_item(v);
    ck_assert_msg(x >= least && x <= most, "%g is not between %g and %g: %s", x, least, most,
                  jot_error_message());
}

static inline void check_item(jot_value v, double want, double tolerance)
{
    double x = jot_item(v);
    ck_assert_msg(isnan(want) ? isnan(x) : x == want || fabs(x - want) <= tolerance,
                  "%.17g is not %.17g: %s", x, want, jot_error_message());
}

// An error with the text and the place of the call.
static inline void check_told(jot_value v, const char *text)
{
    ck_assert_int_ne(jot_eval(v, NULL), JOT_OK);
    const char *message = jot_error_message();
    ck_assert_msg(strstr(message, text) && strstr(message, "tests/library/test_"),
                  "'%s' has not '%s', or no place", message, text);
}

static inline double case_number(int64_t step, int64_t k)
{
    const int64_t most = INT64_C(1) << 31;
    int64_t x = (step * 7919 + k * 104729 + 12345) % most;
    x = (x * 1103515245 + 12345) % most;
    return (double)((x >> 8) % 8191 - 4095) / 4096;
}

// n integers below `most`.
static inline jot_value case_integers(int64_t n, int64_t most)
{
    return jot_mod(jot_mul(jot_arange(JOT_I32, n), 7), most);
}

static inline int case_rank(const int64_t *dims)
{
    int rank = 0;
    while (rank < 6 && dims[rank])
        rank++;
    return rank;
}

static inline int case_arguments(const struct layer_case *c)
{
    int n = 0;
    while (n < MOST_ARGUMENTS && c->dims[n][0])
        n++;
    return n;
}

static inline jot_array *case_array(jot_dtype dtype, int64_t n, const double *x,
                                    const int64_t *dims)
{
    static float f[MOST_NUMBERS];
    for (int64_t i = 0; i < n; i++)
        f[i] = (float)x[i];
    jot_array *a =
        dtype == JOT_F32 ? jot_array_copy(dtype, f, dims) : jot_array_copy(dtype, x, dims);
    ck_assert_msg(a != NULL, "%s", jot_error_message());
    return a;
}

// The arguments of `lanes` steps from the first on, along a first axis where they are two or
// more.
static inline void case_make(const struct layer_case *c, jot_dtype dtype, int64_t step,
                             int64_t lanes, jot_array **out)
{
    static double x[MOST_NUMBERS];
    int64_t k = 0;
    for (int i = 0; i < case_arguments(c); i++) {
        int64_t dims[8] = {lanes}, size = 1;
        int rank = case_rank(c->dims[i]);
        for (int axis = 0; axis < rank; axis++)
            size *= dims[axis + 1] = c->dims[i][axis];
        dims[rank + 1] = JOT_END;
        for (int64_t e = 0; e < lanes * size; e++)
            x[e] = case_number(step + e / size, k + e % size);
        out[i] = case_array(dtype, lanes * size, x, dims + (lanes == 1));
        k += size;
    }
}

static inline void case_result(const jot_value *in, jot_value *out, void *ctx)
{
    const struct layer_case *c = ctx;
    out[0] = jot_reshape(c->f(in), -1);
}

static inline void case_loss(const jot_value *in, jot_value *out, void *ctx)
{
    static double weights[MOST_NUMBERS];
    jot_value y;
    case_result(in, &y, ctx);
    int64_t n = jot_value_size(y);
    for (int64_t i = 0; i < n && i < MOST_NUMBERS; i++)
        weights[i] = case_number(5000, i);
    jot_array *w = case_array(jot_value_dtype(y), n, weights, (const int64_t[]){n, JOT_END});
    out[0] = jot_sum(jot_mul(y, w));
    jot_array_release(w);
}

static inline int case_golden(const char *name, const char *what, double *out)
{
    static char line[1 << 17];
    char head[80];
    FILE *f = fopen("tests/library/layers.golden", "r");
    ck_assert_ptr_nonnull(f);
    snprintf(head, sizeof head, "%s %s ", name, what);
    int n = 0;
    while (!n && fgets(line, sizeof line, f))
        if (!strncmp(line, head, strlen(head)))
            for (char *at = line + strlen(head), *end; n < MOST_NUMBERS; at = end, n++) {
                out[n] = strtod(at, &end);
                if (end == at)
                    break;
            }
    fclose(f);
    ck_assert_msg(n > 0, "%s: not in the file", head);
    return n;
}

static inline void case_read(const jot_array *a, double *out)
{
    for (size_t i = 0; i < jot_array_size(a); i++)
        out[i] = jot_array_dtype(a) == JOT_F32 ? (double)((const float *)jot_array_data(a))[i]
                                               : ((const double *)jot_array_data(a))[i];
}

// Within 4e-6 of the largest number in f32, and 1e-12 of it in f64.
static inline void case_near(const char *name, const char *what, jot_dtype dtype, int64_t n,
                             const double *have, const double *want)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(want[i]));
    double most = (dtype == JOT_F32 ? 4e-6 : 1e-12) * largest;
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabs(have[i] - want[i]) <= most,
                      "%s, %s, %s, %lld: %.17g is not %.17g, by %.2g of what may be", name,
                      what, jot_dtype_name(dtype), (long long)i, have[i], want[i],
                      fabs(have[i] - want[i]) / most);
}

static inline void case_check_gradient(const struct layer_case *c, jot_dtype dtype,
                                       jot_array **in)
{
    static double want[MOST_NUMBERS], have[MOST_NUMBERS];
    int all[MOST_ARGUMENTS + 1], n = case_arguments(c), k = 0, i;
    jot_array *g[MOST_ARGUMENTS];
    for (i = 0; i < n; i++)
        all[i] = i;
    all[n] = JOT_END;
    jot_function loss = jot_function_make(case_loss, n, 1, (void *)(uintptr_t)c);
    jot_executable *e = jot_jit(jot_grad_of(loss, JOT_HERE, all));
    must(jot_call_list(e, (size_t)n, in, (size_t)n, g));
    int found = case_golden(c->name, "g", want);
    for (i = 0; i < n; k += (int)jot_array_size(g[i++]))
        case_read(g[i], have + k);
    ck_assert_int_eq(k, found);
    case_near(c->name, "gradient", dtype, found, have, want);
    jot_arrays_release((size_t)n, g);
    jot_executable_release(e);
}

// Of the arguments of a step; what the case is of them.
static inline int case_value(jot_executable *f, const struct layer_case *c, jot_dtype dtype,
                             int64_t step, int64_t lanes, double *out)
{
    jot_array *in[MOST_ARGUMENTS], *y = NULL;
    int n = case_arguments(c);
    case_make(c, dtype, step, lanes, in);
    must(jot_call_list(f, (size_t)n, in, 1, &y));
    ck_assert_int_eq(jot_array_dtype(y), dtype);
    int size = (int)jot_array_size(y);
    case_read(y, out);
    jot_array_release(y), jot_arrays_release((size_t)n, in);
    return size;
}

// Two lanes are two calls.
static inline void case_check_lanes(const struct layer_case *c)
{
    static double each[MOST_NUMBERS], lanes[MOST_NUMBERS];
    jot_function f = jot_function_make(case_result, case_arguments(c), 1, (void *)(uintptr_t)c);
    jot_executable *one = jot_jit(f), *two = jot_jit(jot_vmap(f));
    int size = case_value(one, c, JOT_F32, 1000, 1, each);
    case_value(one, c, JOT_F32, 1001, 1, each + size);
    ck_assert_int_eq(case_value(two, c, JOT_F32, 1000, 2, lanes), 2 * size);
    case_near(c->name, "lanes", JOT_F32, 2 * size, lanes, each);
    jot_executable_release(one), jot_executable_release(two);
}

static inline void case_check(const struct layer_case *c, jot_dtype dtype)
{
    static double want[MOST_NUMBERS], have[MOST_NUMBERS];
    int n = case_arguments(c), size = case_golden(c->name, "y", want);
    jot_array *in[MOST_ARGUMENTS];
    jot_executable *f = jot_jit(jot_function_make(case_result, n, 1, (void *)(uintptr_t)c));
    ck_assert_int_eq(case_value(f, c, dtype, 1000, 1, have), size);
    case_near(c->name, "value", dtype, size, have, want);
    case_make(c, dtype, 1000, 1, in);
    case_check_gradient(c, dtype, in);
    jot_arrays_release((size_t)n, in);
    jot_executable_release(f);
}

#endif
