// SPDX-License-Identifier: Apache-2.0
// How programs grow with the functions they are made of (growth_graphs.c, growth_loops.c): the lines of the graph as
// traced and as simplified, and the processor's time and the memory to the first result.  Sizes double four times, each in a process of its own.  Of time and
// memory, less those of the smallest program, the exponent is what is judged: that of the line through
// the sizes whose measure is not lost in what a program costs at least.  Besides, what the largest size costs
// more than the smallest of the family is no more, for each line of the largest graph, than the budget of the
// family says, beside what may be lost.  The lines are those of the graph as traced or as simplified or the
// size, whichever is more.  All is on one core.  With JOT_DEVICE programs are for that device, and no budget counts.
//
//     growth [--texts] [LARGEST [FAMILY...]]     the largest size, 16 or more, 1000 unless told
//
// The bytes of the schedule and of the assembly are told with --texts alone, for their texts take more than the
// measured compilation does.
#include "growth_programs.h"
#include "measure.h"

#include <math.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// What grows too fast is measured again, for other programs may have been in the way.
enum { GRAPHS = 2, STAGES = 4, SIZES = 5, ROUNDS = 3 };

static const char *const stages[STAGES] = {"trace", "simplify", "schedule", "code"};
static int n_stages = GRAPHS; // whose texts are made

#define MOST_EXPONENT 1.15
// What is less, or than twice what the smallest program takes, is lost in the cost of any program.
#define LEAST_SECONDS 0.03
#define LEAST_BYTES (8 << 20)
#define SLOW 4 // times the budget of time that a slow or busy machine may take
// Times that again where code is longer: budgets are of a processor with AVX-512.
#define NO_SCATTER 1.5

struct row {
    size_t lines[GRAPHS], bytes[STAGES];
    double seconds, memory;
};

static double times_budget(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return SLOW;
#endif
    return SLOW * NO_SCATTER;
}

static size_t lines_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static jot_array *argument(const struct growth_family *f, int i, int n)
{
    int64_t extent = f->extent ? f->extent : n, dims[] = {extent, extent, JOT_END};
    // The second argument of a recurrent network is its matrix.
    int rank = f->n_in == 3 && i == 1 ? 2 : f->rank;
    dims[rank] = JOT_END;
    return jot_array_fill(f->dtype, rank == 2 ? 0.1 : 0.5 + i * 1e-3, dims);
}

static void usage(struct row *r)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    r->seconds = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    r->memory = 1024.0 * (double)u.ru_maxrss;
}

static jot_status measure(const struct growth_family *f, int n, struct row *r)
{
    int n_in = f->n_in ? f->n_in : n / 4, n_out = f->is_graded ? n_in : 1;
    uint16_t in_leaves = (uint16_t)n_in, out_leaves = 1;
    jot_array **in = calloc((size_t)n_in + (size_t)n_out, sizeof *in), **out = in + n_in;
    for (int i = 0; i < n_in; i++)
        in[i] = argument(f, i, n);
    jot_function traced =
        jot_function_trees(f->name, f->name, f->body, 1, &in_leaves, 1, &out_leaves, &n);
    jot_executable *e = jot_jit(f->is_graded ? jot_grad(traced) : traced, .name = f->name);
    jot_status status = jot_call_list(e, (size_t)n_in, in, (size_t)n_out, out);
    usage(r);
    for (int i = 0; status == JOT_OK && i < n_stages; i++) {
        const char *text = jot_executable_text(e, stages[i]);
        r->bytes[i] = text ? strlen(text) : 0;
        if (i < GRAPHS)
            r->lines[i] = text ? lines_of(text) : 0;
    }
    if (status == JOT_OK)
        jot_arrays_release((size_t)n_out, out);
    jot_arrays_release((size_t)n_in, in);
    free(in);
    jot_executable_release(e);
    return status;
}

// In a process of its own, so that neither what is kept nor the most memory so far counts.
static bool measure_apart(const struct growth_family *f, int n, struct row *r)
{
    int ends[2], status = 0;
    fflush(stdout);
    if (pipe(ends)) {
        perror("pipe");
        return false;
    }
    pid_t child = fork();
    if (child < 0)
        perror("fork");
    if (child == 0) {
        bool fits = measure(f, n, r) == JOT_OK;
        if (!fits)
            fprintf(stderr, "%s %d: %s\n", f->name, n, jot_error_message());
        _exit(!fits || write(ends[1], r, sizeof *r) != sizeof *r);
    }
    close(ends[1]);
    bool is_read = child > 0 && read(ends[0], r, sizeof *r) == sizeof *r;
    close(ends[0]);
    if (child < 0)
        return false;
    bool has_ended = waitpid(child, &status, 0) == child && status == 0;
    if (WIFSIGNALED(status))
        fprintf(stderr, "%s %d: signal %d\n", f->name, n, WTERMSIG(status));
    else if (!has_ended || !is_read)
        fprintf(stderr, "%s %d: exit status %d%s\n", f->name, n, WEXITSTATUS(status),
                is_read ? "" : ", nothing measured");
    return has_ended && is_read;
}

// The slope of the logarithms, of measures from `least` on; 0 of less than three.
static double exponent(const double *sizes, const double *measures, double least)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (int k = 0; k < SIZES; k++) {
        if (measures[k] < least)
            continue;
        double u = log(sizes[k]), v = log(measures[k]);
        n++, x += u, y += v, xx += u * u, xy += u * v;
    }
    return n < 3 ? 0 : (n * xy - x * y) / (n * xx - x * x);
}

static void print_row(const struct growth_family *f, int n, const struct row *r)
{
    printf("%-20s %7d %9zu %9zu", f->name, n, r->lines[0], r->lines[1]);
    for (int i = GRAPHS; i < n_stages; i++)
        printf(" %11zu", r->bytes[i]);
    printf(" %9.1f %8.1f\n", 1e3 * r->seconds, r->memory / (1 << 20));
}

static bool judge(const struct growth_family *f, const double *sizes, const double *seconds,
                  const double *memory, double lines, const struct row *least)
{
    double lost = fmax(LEAST_SECONDS, 2 * least->seconds);
    double of_time = exponent(sizes, seconds, lost);
    double of_memory = exponent(sizes, memory, LEAST_BYTES);
    double bytes = fmax(0, memory[SIZES - 1] - memory[0] - LEAST_BYTES) / lines;
    double microseconds = 1e6 * fmax(0, seconds[SIZES - 1] - seconds[0] - lost) / lines;
    bool fits = of_time <= MOST_EXPONENT && of_memory <= MOST_EXPONENT;
    bool has_budget = f->bytes && !getenv("JOT_DEVICE");
    bool is_cheap =
        !has_budget || (bytes <= f->bytes && microseconds <= times_budget() * f->microseconds);
    printf("%-20s exponents: time %.2f, memory %.2f%s\n", f->name, of_time, of_memory,
           fits ? "" : "  TOO FAST");
    if (has_budget)
        printf("%-20s a line: %.1f us (of %d), %.0f B (of %d)%s\n", f->name, microseconds,
               f->microseconds, bytes, f->bytes, is_cheap ? "" : "  TOO MUCH");
    return fits && is_cheap;
}

// Measures all sizes; keeps the least of each, and the lines of the
// largest.
static bool measure_all(const struct growth_family *f, const double *sizes, double *seconds,
                        double *memory, double *lines, const struct row *least)
{
    for (int k = 0; k < SIZES; k++) {
        struct row r = {0};
        if (!measure_apart(f, (int)sizes[k], &r))
            return false;
        print_row(f, (int)sizes[k], &r);
        seconds[k] = fmin(seconds[k], r.seconds - least->seconds);
        memory[k] = fmin(memory[k], r.memory - least->memory);
        *lines = fmax(sizes[k], fmax((double)r.lines[0], (double)r.lines[1]));
    }
    return true;
}

// Whether the family grows no faster than it may, and costs no more.
static bool grow(const struct growth_family *f, int largest, const struct row *least)
{
    double sizes[SIZES], seconds[SIZES], memory[SIZES];
    for (int k = 0; k < SIZES; k++) {
        sizes[k] = largest >> (SIZES - 1 - k);
        seconds[k] = memory[k] = INFINITY;
    }
    double lines = 0;
    bool fits = false;
    for (int i = 0; i < ROUNDS && !fits; i++) {
        if (!measure_all(f, sizes, seconds, memory, &lines, least))
            return false;
        fits = judge(f, sizes, seconds, memory, lines, least);
    }
    return fits;
}

static bool is_wanted(const char *name, int argc, char **argv)
{
    bool named = argc <= 2;
    for (int i = 2; i < argc; i++)
        named = named || !strcmp(argv[i], name);
    return named;
}

// On several cores the code generator has several threads, each with memory of its own: what a line takes would be that
// of the machine.  The core is the one that the system chose, so that runs side by side have different ones.
static void take_one_core(void)
{
    cpu_set_t one;
    int core = sched_getcpu();
    if (core < 0 || core >= CPU_SETSIZE)
        return;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
}

int main(int argc, char **argv)
{
    setenv("JOT_CACHE", "off", 1);
    take_one_core();
    if (argc > 1 && !strcmp(argv[1], "--texts")) {
        n_stages = STAGES;
        argc--, argv++;
    }
    int largest = argc > 1 ? atoi(argv[1]) : 1000, failed = 0, known = 0;
    if (largest >> (SIZES - 1) < 1) {
        fprintf(stderr, "the largest size is %d or more, for sizes double %d times\n",
                1 << (SIZES - 1), SIZES - 1);
        return 2;
    }
    struct row least = {0};
    if (!measure_apart(&growth_graphs[0], 2, &least))
        return 1;
    printf("%-20s %7s %9s %9s%s %9s %8s\n", "family", "size", "traced", "simple",
           n_stages == STAGES ? "  schedule B      code B" : "", "ms", "MiB");
    for (size_t i = 0; i < sizeof growth_lists / sizeof *growth_lists; i++)
        for (const struct growth_family *f = growth_lists[i]; f->name; f++)
            if (is_wanted(f->name, argc, argv)) {
                failed |= !grow(f, largest, &least);
                known++;
            }
    if (known < argc - 2 || known == 0) {
        fprintf(stderr, "a family has no such name\n");
        return 2;
    }
    return failed;
}
