// SPDX-License-Identifier: Apache-2.0
// Runs the cases on request, so that a driver can alternate between jot and a peer in one run:
//
//     list               one line "NAME REACH" for each case, then "end"
//     roofs              what the device does at most: "roofs COPY READ F32 TF32 BF16" a second
//     prepare NAME       makes inputs and calls once: "ready"
//     compile            traces and compiles anew: "compiled MS"
//     save FOLDER        writes inputs and results as FOLDER/inI.npy and outI.npy: "saved FLOOR_US"
//     run SECONDS        calls again and again: "time MEDIAN_US LEAST_US"
//     text STAGE         what was made, then "end"
//     drop               forgets the case: "dropped"
//
// What fails answers "error MESSAGE".  LLVM is loaded from the start; whether there is an entry in
// the disk cache is the driver's affair.  With arguments it runs the cases whose names contain one
// of them (all: every case) and prints a table.
#include "cases.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Those of the device that calls are made on.
static struct bench_run runs[MAX_RUNS];
static int n_runs;
static bool is_gpu;
static struct bench_roofs roofs; // zeros until they are asked for

static struct {
    const struct bench_run *chosen;
    jot_executable *f;
    jot_array *in[MAX_INPUTS];
} now;

static jot_status call_once(jot_executable *f)
{
    jot_array *out[MAX_OUTPUTS];
    jot_status status = jot_call_list(f, (size_t)now.chosen->c->n_in, now.in,
                                      (size_t)now.chosen->c->n_out, out);
    if (status == JOT_OK)
        jot_arrays_release((size_t)now.chosen->c->n_out, out);
    return status;
}

// A GPU is handed the work and is done with it later.
static jot_status call_and_wait(jot_executable *f)
{
    TRY(call_once(f));
    return jot_device_wait(NULL);
}

static void drop(void)
{
    if (now.chosen)
        jot_arrays_release((size_t)now.chosen->c->n_in, now.in);
    jot_executable_release(now.f);
    memset(&now, 0, sizeof now);
}

// ---- preparing ----

// What the first call takes longer than the least of some more.
static jot_status first_call(jot_executable *f, double *out_seconds)
{
    double start = seconds();
    TRY(call_and_wait(f));
    double first = seconds() - start, least = first;
    for (int i = 0; i < 3; i++) {
        start = seconds();
        TRY(call_and_wait(f));
        double time = seconds() - start;
        least = time < least ? time : least;
    }
    *out_seconds = first - least;
    return JOT_OK;
}

static jot_executable *jitted(void)
{
    return jot_jit(now.chosen->c->function(), .name = now.chosen->name,
                   .precision = now.chosen->c->precision);
}

static jot_status prepare(const char *name)
{
    drop();
    const struct bench_run *run = runs;
    while (run < runs + n_runs && strcmp(run->name, name) != 0)
        run++;
    if (run == runs + n_runs)
        return JOT_ERR_ARGUMENT;
    TRY(bench_inputs(run, now.in));
    now.chosen = run;
    now.f = jitted();
    return now.f ? call_and_wait(now.f) : JOT_ERR_MEMORY;
}

static jot_status compile(double *out_seconds)
{
    jot_executable *f = jitted();
    jot_status status = f ? first_call(f, out_seconds) : JOT_ERR_MEMORY;
    jot_executable_release(f);
    return status;
}

// Loads LLVM, so that no case pays for it.
static jot_status warm_up(void)
{
    jot_value x;
    jot_scope *s = jot_scope_open();
    x = jot_exp(jot_full(JOT_F32, 0.5, 100));
    jot_status status = jot_eval(x, NULL);
    jot_scope_close(s);
    return status;
}

// ---- saving ----

static const char *numpy_name(jot_dtype d)
{
    switch (d) {
    case JOT_BOOL:
        return "|b1";
    case JOT_I32:
        return "<i4";
    case JOT_U32:
        return "<u4";
    case JOT_I64:
        return "<i8";
    case JOT_F64:
        return "<f8";
    case JOT_C64:
        return "<c8";
    case JOT_BF16: // which NumPy has no name for
        return "<V2";
    default:
        return "<f4";
    }
}

static void save_array(const char *folder, const char *kind, int i, const jot_array *a)
{
    char path[4096], sizes[256] = "", header[512];
    snprintf(path, sizeof path, "%s/%s%d.npy", folder, kind, i);
    FILE *file = fopen(path, "wb");
    if (!file)
        return;
    for (int k = 0, at = 0; k < jot_array_rank(a); k++)
        at += snprintf(sizes + at, sizeof sizes - (size_t)at, "%lld,",
                       (long long)jot_array_dim(a, k));
    int length = snprintf(header, sizeof header,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (%s)}",
                          numpy_name(jot_array_dtype(a)), sizes);
    // Version 1.0 of the format: magic, two bytes of length, text padded to 64 bytes.
    int padded = (10 + length + 1 + 63) / 64 * 64 - 10;
    fwrite("\x93NUMPY\x01\x00", 1, 8, file);
    fputc(padded & 255, file);
    fputc(padded >> 8, file);
    fprintf(file, "%-*s\n", padded - 1, header);
    fwrite(jot_array_data(a), 1, jot_array_bytes(a), file);
    fclose(file);
}

static jot_status save(const char *folder, double *out_floor)
{
    const struct bench_case *c = now.chosen->c;
    jot_array *out[MAX_OUTPUTS];
    double bytes = 0, results = 0;
    TRY(jot_call_list(now.f, (size_t)c->n_in, now.in, (size_t)c->n_out, out));
    for (int i = 0; i < c->n_in; i++) {
        save_array(folder, "in", i, now.in[i]);
        bytes += (double)jot_array_bytes(now.in[i]);
    }
    for (int i = 0; i < c->n_out; i++) {
        save_array(folder, "out", i, out[i]);
        results += (double)jot_array_bytes(out[i]);
    }
    *out_floor = roofs.copy > 0 ? bench_floor(&roofs, now.chosen, bytes + results, results) : 0;
    jot_arrays_release((size_t)c->n_out, out);
    return JOT_OK;
}

// ---- measuring ----

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Calls come in batches that take so long that reading the clock does not count; those of a GPU are
// queued, for some milliseconds.
static jot_status measure(double budget, double *out_median, double *out_least)
{
    enum { SAMPLES = 2000 };
    static double sample[SAMPLES];
    double start = seconds();
    TRY(call_and_wait(now.f));
    double once = seconds() - start;
    double least = is_gpu ? 5e-3 : 20e-6;
    int batch = once < least ? (int)(2 * least / (once + 50e-9)) + 1 : 1, n = 0;
    for (double end = seconds() + budget; n < SAMPLES && (n < 3 || seconds() < end); n++) {
        start = seconds();
        for (int i = 0; i < batch; i++)
            TRY(call_once(now.f));
        TRY(jot_device_wait(NULL));
        sample[n] = (seconds() - start) / batch;
    }
    qsort(sample, (size_t)n, sizeof *sample, by_size);
    *out_median = sample[n / 2];
    *out_least = sample[0];
    return JOT_OK;
}

// ---- talking ----

static void answer_error(void)
{
    const char *text = jot_error_message();
    fputs("error ", stdout);
    for (; *text; text++)
        putchar(*text == '\n' ? ' ' : *text);
    putchar('\n');
}

static jot_status obey(const char *command, const char *argument)
{
    double a = 0, b = 0;
    if (!strcmp(command, "prepare")) {
        TRY(prepare(argument));
        printf("ready\n");
    } else if (!strcmp(command, "roofs")) {
        TRY(bench_roofs(&roofs));
        printf("roofs %g %g %g %g %g\n", roofs.copy, roofs.read, roofs.product[ROOF_F32],
               roofs.product[ROOF_TF32], roofs.product[ROOF_BF16]);
    } else if (!now.f) {
        printf("error nothing is prepared\n");
    } else if (!strcmp(command, "compile")) {
        TRY(compile(&a));
        printf("compiled %.3f\n", 1e3 * a);
    } else if (!strcmp(command, "save")) {
        TRY(save(argument, &a));
        printf("saved %.3f\n", 1e6 * a);
    } else if (!strcmp(command, "run")) {
        TRY(measure(atof(argument), &a, &b));
        printf("time %.4f %.4f\n", 1e6 * a, 1e6 * b);
    } else if (!strcmp(command, "text")) {
        const char *text = jot_executable_text(now.f, argument);
        printf("%s\nend\n", text ? text : jot_error_message());
    } else if (!strcmp(command, "drop")) {
        drop();
        printf("dropped\n");
    } else {
        printf("error unknown command\n");
    }
    return JOT_OK;
}

static int serve(void)
{
    char line[4200], command[64], argument[4096];
    while (fgets(line, sizeof line, stdin)) {
        argument[0] = 0;
        if (sscanf(line, "%63s %4095s", command, argument) < 1)
            continue;
        if (!strcmp(command, "list")) {
            for (int i = 0; i < n_runs; i++)
                printf("%s %g\n", runs[i].name, runs[i].reach);
            printf("end\n");
        } else if (obey(command, argument) != JOT_OK) {
            answer_error();
        }
        fflush(stdout);
    }
    drop();
    return 0;
}

static int print_table(int n, char **wanted)
{
    int failures = 0;
    printf("%-26s %12s %12s %10s %10s\n", "case", "median us", "least us", "cold ms",
           "warm ms");
    for (int i = 0; i < n_runs; i++) {
        const char *name = runs[i].name;
        bool is_wanted = false;
        for (int k = 0; k < n; k++)
            is_wanted |= !strcmp(wanted[k], "all") || strstr(name, wanted[k]);
        double cached, median, least;
        if (!is_wanted)
            continue;
        if (prepare(name) == JOT_OK && compile(&cached) == JOT_OK &&
            measure(0.5, &median, &least) == JOT_OK) {
            printf("%-26s %12.2f %12.2f %12.2f\n", name, 1e6 * median, 1e6 * least,
                   1e3 * cached);
        } else {
            printf("%-26s %s\n", name, jot_error_message());
            failures++;
        }
        fflush(stdout);
        drop();
    }
    return failures != 0;
}

int main(int argc, char **argv)
{
    jot_device_kind kind = jot_device_kind_of(NULL);
    is_gpu = kind == JOT_CUDA;
    n_runs = bench_list(kind, runs);
    if (warm_up() != JOT_OK)
        fprintf(stderr, "%s\n", jot_error_message());
    return argc > 1 ? print_table(argc - 1, argv + 1) : serve();
}
