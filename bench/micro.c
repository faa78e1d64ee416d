// SPDX-License-Identifier: Apache-2.0
// The fixed costs, each beside what it is to be: one call, one compilation, one load from the disk
// cache.  Ends with a failure when something that does not depend on the machine's speed is wrong:
// a call that allocates, or a load that needs LLVM.
#include <jot/jot.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// ---- counting allocations ----

#if defined(__GLIBC__)
static size_t n_allocations;
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);
void *malloc(size_t size)
{
    n_allocations++;
    return __libc_malloc(size);
}
void *calloc(size_t n, size_t size)
{
    n_allocations++;
    return __libc_calloc(n, size);
}
void *realloc(void *block, size_t size)
{
    n_allocations++;
    return __libc_realloc(block, size);
}
#else
static const size_t n_allocations;
#endif

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(jot_status status)
{
    if (status != JOT_OK) {
        fprintf(stderr, "%s\n", jot_error_message());
        exit(1);
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_size);
    return x[n / 2];
}

// ---- a call ----

static jot_value plus_one(jot_value x) { return jot_add(x, 1); }

// A million calls, each on another array than the one before.
static int time_call(void)
{
    enum { ARRAYS = 64, BATCHES = 1000000 / ARRAYS };
    static double sample[BATCHES];
    jot_executable *f = jot_jit(jot_fn(plus_one));
    jot_array *in[ARRAYS], *out;
    for (int i = 0; i < ARRAYS; i++)
        in[i] = jot_array_full(JOT_F32, i);
    must(jot_call_list(f, 1, in, 1, &out));
    jot_array_release(out);
    size_t before = n_allocations;
    for (int i = 0; i < BATCHES; i++) {
        double start = seconds();
        for (int k = 0; k < ARRAYS; k++) {
            must(jot_call_list(f, 1, &in[k], 1, &out));
            jot_array_release(out);
        }
        sample[i] = (seconds() - start) / ARRAYS;
    }
    size_t allocations = n_allocations - before;
    printf("call of x + 1 on f32[]                %8.1f ns   (under 200), %zu allocations in a "
           "million calls (none)\n",
           1e9 * median(sample, BATCHES), allocations);
    jot_arrays_release(ARRAYS, in);
    jot_executable_release(f);
    return allocations != 0;
}

// ---- a compilation ----

// Sixteen of add, mul and max, four of exp and tanh; another number makes another program.
static void twenty_ops(const jot_value *in, jot_value *out, void *ctx)
{
    jot_value x = in[0];
    double number = *(const double *)ctx;
    for (int i = 0; i < 4; i++) {
        x = jot_add(jot_mul(x, number), 0.25 * i);
        x = jot_maximum(jot_mul(x, in[0]), -1.0 - i);
        x = i % 2 ? jot_tanh(x) : jot_exp(jot_neg(jot_abs(x)));
    }
    out[0] = x;
}

static double time_first_call(double number)
{
    jot_array *x = jot_array_full(JOT_F32, 0.5, 65536), *y;
    double start = seconds();
    jot_executable *f = jot_jit(jot_function_make(twenty_ops, 1, 1, &number), .name = "twenty");
    must(jot_call(f, JOT_IN(x), JOT_OUT(y)));
    double time = seconds() - start;
    jot_array_release(x), jot_array_release(y);
    jot_executable_release(f);
    return time;
}

// The first, which loads LLVM, stays in the cache for time_load.
static void time_compilation(void)
{
    enum { TRIES = 21 };
    double sample[TRIES], fresh = seconds() - (double)(long)seconds();
    time_first_call(0.5);
    for (int i = 0; i < TRIES; i++)
        sample[i] = time_first_call(1.0 + fresh + i);
    double middle = median(sample, TRIES);
    printf("20 operations on f32[65536], compiled %8.2f ms   (under 10), least %.2f\n",
           1e3 * middle, 1e3 * sample[0]);
}

// ---- a load ----

static int is_mapped(const char *name)
{
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        found |= strstr(line, name) != NULL;
    if (maps)
        fclose(maps);
    return found;
}

// Says how long the first call took, and whether LLVM was needed.
static int load_once(void)
{
    printf("%.9f %d\n", time_first_call(0.5), is_mapped("LLVM") || is_mapped("jot-codegen"));
    return 0;
}

// In processes of their own, which have loaded nothing yet; the entry is there already.
static int time_load(const char *program)
{
    enum { TRIES = 15 };
    double sample[TRIES];
    int mapped = 0, is_found = 1;
    char command[4200];
    snprintf(command, sizeof command, "'%s' load", program);
    for (int i = 0; i < TRIES; i++) {
        int has = 1;
        FILE *child = popen(command, "r");
        is_found &= child && fscanf(child, "%lf %d", &sample[i], &has) == 2;
        mapped |= has;
        if (child)
            pclose(child);
    }
    if (!is_found)
        return 1;
    double middle = median(sample, TRIES);
    printf("the same from the disk cache          %8.2f ms   (under 1), least %.2f, LLVM %s\n",
           1e3 * middle, 1e3 * sample[0], mapped ? "MAPPED" : "not mapped");
    return mapped;
}

int main(int argc, char **argv)
{
    char own[4096] = "";
    if (readlink("/proc/self/exe", own, sizeof own - 1) < 0)
        snprintf(own, sizeof own, "%s", argv[0]);
    if (argc > 1 && !strcmp(argv[1], "load"))
        return load_once();
    int failed = time_call();
    time_compilation();
    failed |= time_load(own);
    return failed;
}
