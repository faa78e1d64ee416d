// SPDX-License-Identifier: Apache-2.0
// Times programs that are given as the text of graphs, on random inputs, and compares them with the host.
//
//     graphs [--text STAGE] [--check] [--integers N] [--floats LOW HIGH] FILE...
//
// Inputs are even numbers between LOW and HIGH (-1, 1), integers from 0 to N - 1 (2^31).  --check runs the
// host as well and prints the largest difference of each output over its largest element.  --text prints a
// stage instead: schedule, memory, llvm, code.
#include "base/dtype.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "ir/graph.h"
#include "trace/backend.h"

#include "jot/array.h"
#include "jot/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RUNS 30
#define SECONDS 4.0

struct options {
    const char *text;
    bool check;
    uint64_t integers;
    double low, high;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        return NULL;
    long size = ftell(f);
    char *text = calloc(1, (size_t)size + 1);
    rewind(f);
    if (text && fread(text, 1, (size_t)size, f) != (size_t)size)
        return NULL;
    fclose(f);
    return text;
}

static uint64_t random_bits(void)
{
    static uint64_t state = 20261126;
    uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static jot_array *random_input(const struct ir_graph *g, ir_id v, const struct options *o)
{
    jot_dtype d = ir_dtype_of(g, v), real = dtype_real(d);
    int64_t dims[IR_MAX_RANK + 1], n = dtype_is_complex(d) ? 2 : 1;
    int rank = ir_rank_of(g, v);
    for (int i = 0; i < rank; i++)
        n *= dims[i] = ir_dims_of(g, v)[i];
    dims[rank] = JOT_END;
    char *data = calloc((size_t)n + 1, jot_dtype_size(real));
    for (int64_t i = 0; data && i < n; i++) {
        uint64_t bits = random_bits(), integer = bits % (d == JOT_BOOL ? 2 : o->integers);
        double x = o->low + (o->high - o->low) * (double)(bits >> 11) * 0x1p-53;
        float y = (float)x;
        uint16_t half = d == JOT_F16 ? dtype_f16_from_f32(y) : dtype_bf16_from_f32(y);
        const void *from = real == JOT_F64       ? (void *)&x
                           : real == JOT_F32     ? (void *)&y
                           : dtype_is_half(real) ? (void *)&half
                                                 : (void *)&integer;
        memcpy(data + (size_t)i * jot_dtype_size(real), from, jot_dtype_size(real));
    }
    jot_array *a = data ? jot_array_copy(d, data, dims) : NULL;
    free(data);
    return a;
}

// Part i of an array on the host.
static double part(const jot_array *a, size_t i)
{
    jot_dtype d = dtype_real(jot_array_dtype(a));
    const char *at = (const char *)jot_array_data(a) + i * jot_dtype_size(d);
    uint64_t bits = 0;
    double x;
    float y;
    memcpy(&bits, at, jot_dtype_size(d));
    memcpy(&x, at, d == JOT_F64 ? sizeof x : 0);
    memcpy(&y, &bits, sizeof y);
    return d == JOT_F64    ? x
           : d == JOT_F32  ? (double)y
           : d == JOT_F16  ? (double)dtype_f16_to_f32((uint16_t)bits)
           : d == JOT_BF16 ? (double)dtype_bf16_to_f32((uint16_t)bits)
                           : (double)bits;
}

static double difference(jot_array *got, const jot_array *want)
{
    size_t n = jot_array_bytes(want) / jot_dtype_size(dtype_real(jot_array_dtype(want)));
    jot_array *near = jot_array_to(got, jot_host());
    double largest = 0, most = 0;
    for (size_t i = 0; near && i < n; i++) {
        double x = part(near, i), y = part(want, i);
        largest = fmax(largest, isfinite(y) ? fabs(y) : 0);
        if (x != y && !(isnan(x) && isnan(y)))
            most = fmax(most, isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY);
    }
    jot_array_release(near);
    return !near ? NAN : most == 0 ? 0 : most / largest;
}

static bool run(struct backend_program *p, jot_array **in, jot_array **out, jot_device *d)
{
    if (backend_run(p, in, out))
        return false;
    return jot_device_wait(d) == JOT_OK;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool measure(const struct ir_graph *g, uint32_t f, const char *name,
                    const struct options *o)
{
    jot_device *device = jot_default_device();
    struct backend_options options = {.name = name, .device = device};
    struct backend_program *p, *host;
    double start = now(), times[RUNS];
    if (backend_compile(g->module, f, &options, &p))
        return false;
    double compiled = now() - start;
    if (o->text) {
        struct arena *arena = arena_create();
        const char *text = backend_text(p, o->text, arena);
        fputs(text ? text : jot_error_message(), stdout);
        arena_release(arena);
        backend_release(p);
        return text != NULL;
    }
    uint32_t n_out = g->outputs.count;
    jot_array **in = calloc(g->n_params + 1, sizeof *in),
              **near = calloc(g->n_params + 1, sizeof *in);
    jot_array **out = calloc(n_out + 1, sizeof *out), **want = calloc(n_out + 1, sizeof *want);
    for (uint32_t i = 0; i < g->n_params; i++) {
        near[i] = random_input(g, i, o);
        in[i] = near[i] ? jot_array_to(near[i], device) : NULL;
        if (!in[i])
            return false;
    }
    int runs = 0;
    for (start = now(); runs < RUNS && (runs < 3 || now() - start < SECONDS); runs++) {
        double t = now();
        if (!run(p, in, out, device))
            return false;
        times[runs] = now() - t;
        if (runs == 0)
            printf("%-28s compile %8.1f ms  first %10.3f ms", name, 1e3 * compiled,
                   1e3 * times[0]),
                fflush(stdout);
        if (runs + 1 < RUNS && (runs < 2 || now() - start < SECONDS))
            jot_arrays_release(n_out, out);
    }
    // The first runs find addresses and make graphs.
    if (runs > 4)
        memmove(times, times + 2, (size_t)(runs -= 2) * sizeof *times);
    qsort(times, (size_t)runs, sizeof *times, compare);
    printf("  median %10.3f ms  least %10.3f\n", 1e3 * times[runs / 2], 1e3 * times[0]);
    options.device = jot_host();
    if (o->check) {
        start = now();
        if (backend_compile(g->module, f, &options, &host) ||
            !run(host, near, want, jot_host()))
            return false;
        printf("    host %.1f ms; differences:", 1e3 * (now() - start));
        for (uint32_t i = 0; i < n_out; i++)
            printf(" %.3g", difference(out[i], want[i]));
        printf("\n");
        backend_release(host);
        jot_arrays_release(n_out, want);
    }
    fflush(stdout);
    jot_arrays_release(n_out, out);
    jot_arrays_release(g->n_params, in);
    jot_arrays_release(g->n_params, near);
    backend_release(p);
    free(in), free(near), free(out), free(want);
    return true;
}

static bool read_and_measure(const char *path, const struct options *o)
{
    struct arena_guard guard;
    struct ir_module *m = ir_module_create();
    struct ir_graph *g;
    char *text = read_file(path);
    const char *slash = strrchr(path, '/');
    bool done = false;
    if (!text || !m || arena_guard_left(&guard)) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return false;
    }
    if (ir_graph_parse(m, text, &g) == JOT_OK)
        done = measure(g, ir_function_add(m, g), slash ? slash + 1 : path, o);
    if (!done)
        fprintf(stderr, "%s: %s\n", path, jot_error_message());
    arena_guard_close(&guard);
    free(text);
    return done;
}

int main(int argc, char **argv)
{
    struct options o = {.integers = UINT64_C(1) << 31, .low = -1, .high = 1};
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--check"))
            o.check = true;
        else if (!strcmp(argv[i], "--text") && i + 1 < argc)
            o.text = argv[++i];
        else if (!strcmp(argv[i], "--integers") && i + 1 < argc)
            o.integers = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--floats") && i + 2 < argc)
            o.low = atof(argv[i + 1]), o.high = atof(argv[i + 2]), i += 2;
        else
            failed += !read_and_measure(argv[i], &o);
    }
    return failed != 0;
}
