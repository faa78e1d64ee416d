// SPDX-License-Identifier: Apache-2.0
// The fixed costs, each beside what it is to be: one call, one compilation, one load from the disk
// cache.  Ends with a failure when something that does not depend on the machine's speed is wrong:
// a call that allocates, or a load that needs LLVM.  Then a product of matrices beside what the
// machine can do.
#include "measure.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
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

// ---- lanes that end at different times ----

static jot_value steps_of(jot_value n)
{
    jot_value x = jot_from(0.0), k = jot_zeros_like(n);
    JOT_WHILE ((x, k), jot_less(k, n)) {
        x = jot_fma(x, jot_full(JOT_F32, 0.999), 1);
        k = jot_add(k, 1);
    }
    return x;
}

static double call_time(jot_executable *f, jot_array *in)
{
    jot_array *out;
    double start = seconds();
    must(jot_call(f, JOT_IN(in), JOT_OUT(out)));
    double time = seconds() - start;
    jot_array_release(out);
    return time;
}

// One lane of many goes on for a million steps: the others do not make its steps slower.  In turn,
// and the least of each.
static void time_long_lane(void)
{
    enum { LANES = 65536, LONG = 1000000, ROUNDS = 40 };
    static int n[LANES];
    double least[] = {1e9, 1e9, 1e9};
    for (int i = 0; i < LANES; i++)
        n[i] = 1;
    jot_executable *f = jot_jit(jot_vmap(jot_fn(steps_of)));
    jot_array *others = jot_array_from(n, LANES);
    n[LANES / 3] = LONG;
    jot_array *all = jot_array_from(n, LANES), *one = jot_array_from(&n[LANES / 3], 1);
    jot_array *in[] = {all, others, one};
    for (int i = 0; i < 3 * ROUNDS; i++) {
        double time = call_time(f, in[i % 3]);
        least[i % 3] = time < least[i % 3] ? time : least[i % 3];
    }
    double apart = least[1] + least[2];
    printf(
        "while of 65536 lanes, one of 1e6 trips%8.2f ms   (1.3 times the lane and the rest): "
        "%.2f times %.2f\n",
        1e3 * least[0], least[0] / apart, 1e3 * apart);
    jot_arrays_release(3, in);
    jot_executable_release(f);
}

// ---- the peak ----

enum { PRODUCT = 1024, MAX_THREADS = 64 };

#if defined(__x86_64__)
#include <immintrin.h>

// As many sums at once as the latency of an fma needs; two start in a cycle.  Gives the number
// of operations, an fma being two, and keeps the sums from being dropped.
enum { SUMS = 12, FMAS = 60000000 };

__attribute__((target("avx512f"))) static double fma_512(volatile float *out)
{
    __m512 s[SUMS], a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(1e-3f);
    for (int k = 0; k < SUMS; k++)
        s[k] = _mm512_set1_ps((float)k);
    for (int i = 0; i < FMAS / SUMS; i++)
#pragma GCC unroll 12 // they stay in registers
        for (int k = 0; k < SUMS; k++)
            s[k] = _mm512_fmadd_ps(s[k], a, b);
    for (int k = 0; k < SUMS; k++)
        *out += _mm512_reduce_add_ps(s[k]);
    return 2.0 * 16 * (FMAS / SUMS) * SUMS;
}

__attribute__((target("avx2,fma"))) static double fma_256(volatile float *out)
{
    __m256 s[SUMS], a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(1e-3f);
    for (int k = 0; k < SUMS; k++)
        s[k] = _mm256_set1_ps((float)k);
    for (int i = 0; i < FMAS / SUMS; i++)
#pragma GCC unroll 12 // they stay in registers
        for (int k = 0; k < SUMS; k++)
            s[k] = _mm256_fmadd_ps(s[k], a, b);
    for (int k = 0; k < SUMS; k++)
        *out += s[k][0];
    return 2.0 * 8 * (FMAS / SUMS) * SUMS;
}

static void *fma_thread(void *operations)
{
    volatile float out = 0;
    *(double *)operations = __builtin_cpu_supports("avx512f") ? fma_512(&out) : fma_256(&out);
    return NULL;
}
#else
static void *fma_thread(void *operations) { return *(double *)operations = 0, NULL; }
#endif

// Operations a second of that many threads which do nothing but fma.
static double fma_rate(int n)
{
    pthread_t thread[MAX_THREADS];
    double operations[MAX_THREADS], sum = 0, start = seconds();
    for (int i = 1; i < n; i++)
        if (pthread_create(&thread[i], NULL, fma_thread, &operations[i]) != 0)
            return 0;
    fma_thread(&operations[0]);
    for (int i = 0; i < n; i++) {
        if (i)
            pthread_join(thread[i], NULL);
        sum += operations[i];
    }
    return sum / (seconds() - start);
}

static jot_value product(jot_value a, jot_value b) { return jot_matmul(a, b); }

// In turn, and the best of each: other work on the machine only takes away.
static void compare_product(void)
{
    enum { ROUNDS = 20 };
    cpu_set_t cpus;
    int n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    n = n < MAX_THREADS ? n : MAX_THREADS;
    double peak = 0, rate = 0;
    jot_executable *f = jot_jit(jot_fn(product));
    jot_array *a = jot_array_full(JOT_F32, 0.1, PRODUCT, PRODUCT), *out;
    for (int i = 0; i < ROUNDS; i++) {
        double now = fma_rate(n);
        peak = now > peak ? now : peak;
        for (int k = 0; k < 10; k++) {
            double start = seconds();
            must(jot_call(f, JOT_IN(a, a), JOT_OUT(out)));
            now = 2.0 * PRODUCT * PRODUCT * PRODUCT / (seconds() - start);
            rate = now > rate ? now : rate;
            jot_array_release(out);
        }
    }
    printf("product of f32[%d,%d]             %8.0f Gflop/s, fma alone %.0f on %d threads\n",
           PRODUCT, PRODUCT, 1e-9 * rate, 1e-9 * peak, n);
    jot_array_release(a);
    jot_executable_release(f);
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
    time_long_lane();
    compare_product();
    return failed;
}
