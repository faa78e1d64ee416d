// SPDX-License-Identifier: Apache-2.0
// Properties of speed, of random large programs and their gradients on the default device:
//
//     no cliff            the time is at most 30 times the roof: inputs and outputs at the speed of memory, or the
//                         operations at that of arithmetic, whichever is more, and a little for each program
//     fusion never loses  the program takes at most 1.1 times as long as with every value in a kernel of its own
//     neighbours          the same program with the long extent one less, one more, three more takes, by work, at
//                         most 1.3 times as long
//     compile time        at most 100 ms a kernel
//     price               what a kernel takes by its price, and by the mean over all kernels
//
// Prints the number of programs, and of each property how many break it, the worst ratio and the worst ten.  The price
// is of one thread: JOT_THREADS=1.
//
//     JOT_TEST_SEED=7 JOT_TEST_FIRST=0 JOT_TEST_COUNT=100 JOT_TEST_SECONDS=600 random_speed
//     JOT_TEST_ONE=12345 random_speed      one program, its schedule, and what it takes; with JOT_TEST_TIME=0 its
//                                          schedule alone, also where there is no device but a fake one
#include "base/memory.h"
#include "codegen/codegen.h"
#include "harness/isolate.h"
#include "jot/device.h"
#include "passes/passes.h"
#include "random/large.h"
#include "random/programs.h"
#include "runtime/device.h"
#include "schedule/schedule.h"
#include "support/nest_eval.h"
#include "support/number.h"
#include "support/run_native.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECONDS = 60, WORST = 10, NEIGHBOURS = 3, TIMED = 64 };
static const int64_t stretches[NEIGHBOURS] = {-1, 1, 3};

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

#define LEAST_BYTES 1e6 // of the largest value
#define MOST_BYTES 4e8
#define A_PROGRAM 1e-5    // seconds that any takes
#define BOUND_SECONDS 0.2 // of measuring one program
#define A_KERNEL 1e-5     // seconds of one whose price is looked at

enum property { CLIFF, FUSION, NEIGHBOUR, COMPILE, PROPERTIES };
static const struct {
    const char *name;
    double bound;
} properties[PROPERTIES] = {
    {"no cliff: time / roof", 30},
    {"fusion never loses: fused / separate", 1.1},
    {"neighbours: time by work / that of the program", 1.3},
    {"compile time: ms a kernel / 100", 1},
};

// What a device does in a second, measured.
struct rates {
    double bytes, work;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_gpu(void) { return jot_device_kind_of(jot_default_device()) == JOT_CUDA; }

// -- One program ------------------------------------------------------------------------------

// Operations of a program that fuses nothing, products in kernels: each value is computed once.
static double work_of(const struct nest_program *p)
{
    double work = 0, trips[64] = {1};
    int depth = 0;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        if (t->kind == NEST_STEP_KERNEL)
            work += trips[depth] * nest_work(p->nests.at[t->nest], 0);
        if (nest_step_opens(t) && depth < 63) {
            trips[depth + 1] =
                trips[depth] * (t->kind == NEST_STEP_LOOP ? (double)t->trips : 1);
            depth++;
        }
        if (t->kind == NEST_STEP_END && depth)
            depth--;
    }
    return work;
}

// Whether its time is known beforehand: no while, nothing of a library.
static bool is_counted(const struct nest_program *p)
{
    for (uint32_t i = 0; i < p->steps.count; i++)
        if (p->steps.at[i].kind == NEST_STEP_WHILE || p->steps.at[i].kind == NEST_STEP_CALLBACK)
            return false;
    return !nest_program_has_routines(p);
}

// Memory of the device with these bytes, or with none that matter.
static void *memory_of(uint64_t bytes, const void *data)
{
    jot_device *d = jot_default_device();
    void *at = NULL;
    if (d->type->allocate(d, bytes + 64, "an argument", &at) != JOT_OK ||
        (data && d->type->upload(d, at, data, bytes) != JOT_OK))
        exit(1);
    return at;
}

// The kernels of a program, what a call of each takes, and what by its price.
struct timed {
    char name[64];
    double least, now, price;
    int calls;
};
static struct {
    struct timed kernels[TIMED];
    int n, current;
    double since;
} watched;

static void end_kernel(void)
{
    if (watched.current >= 0)
        watched.kernels[watched.current].now += now() - watched.since;
    watched.current = -1;
}

// A kernel of several functions goes on with the next of them.
static void begin_kernel(const char *name)
{
    if (watched.current >= 0 && !strcmp(watched.kernels[watched.current].name, name))
        return;
    end_kernel();
    for (int i = 0; i < watched.n; i++)
        if (!strcmp(watched.kernels[i].name, name))
            watched.kernels[watched.current = i].calls++;
    watched.since = now();
}

// As the code generator maps it.
static void print_mapped(struct strbuf *s, const struct nest_program *p)
{
    struct strbuf text = strbuf_make(p->arena);
    nest_program_print(&text, p);
    char target[128];
    jot_device *d = jot_default_device();
    if (d->type->target(d, target, sizeof target) != JOT_OK)
        return;
    struct cg_request request = {
        .want = CG_WANT_MAPPED, .program = text.text, .target = *target ? target : NULL};
    struct cg_response r;
    jot_codegen_entry(&request, &r);
    strbuf_add(s, r.status == JOT_OK ? r.text : r.message);
    r.release(&r);
}

// The kernels of the program with their prices.
static void find_prices(const struct nest_program *p)
{
    struct strbuf text = strbuf_make(p->arena);
    print_mapped(&text, p);
    watched.n = 0;
    for (const char *at = text.text; at && watched.n < TIMED;) {
        struct timed *k = &watched.kernels[watched.n];
        const char *end = strchr(at, '\n'), *price = strstr(at, " price ");
        *k = (struct timed){.least = DBL_MAX};
        watched.n += !strncmp(at, "kernel ", 7) && price && (!end || price < end) &&
                     sscanf(at, "kernel %63[^( ]", k->name) == 1 &&
                     sscanf(price, " price %lf", &k->price) == 1;
        at = end ? end + 1 : NULL;
    }
}

static bool watch_run(struct rt_program *program, const void **in, void **out)
{
    for (int i = 0; i < watched.n; i++)
        watched.kernels[i].now = watched.kernels[i].calls = 0;
    watched.current = -1;
    if (rt_program_run(program, in, out) != JOT_OK || jot_device_wait(NULL) != JOT_OK)
        return false;
    end_kernel();
    for (int i = 0; i < watched.n; i++)
        if (watched.kernels[i].calls)
            watched.kernels[i].least = fmin(watched.kernels[i].least,
                                            watched.kernels[i].now / watched.kernels[i].calls);
    return true;
}

// The least time of a run; negative when it fails.
static double time_of(struct arena *arena, const struct ir_module *m,
                      const struct nest_program *p, const struct ir_tensor *inputs,
                      double *out_compile)
{
    struct rt_program *program;
    double start = now();
    if (run_native_load(arena, p, m, &program) != JOT_OK)
        return -1;
    *out_compile = now() - start;
    const struct rt_plan *plan = rt_program_plan(program);
    const void **in = arena_array(arena, const void *, plan->input_count + 1);
    void **out = arena_array(arena, void *, plan->output_count + 1);
    for (uint32_t i = 0; i < plan->input_count; i++)
        in[i] = memory_of(plan->inputs[i].bytes, inputs[i].data);
    for (uint32_t i = 0; i < plan->output_count; i++)
        out[i] = memory_of(plan->outputs[i].bytes, NULL);
    double best = DBL_MAX, begin = now();
    for (int run = 0; run < 3 || (run < 200 && now() - begin < BOUND_SECONDS); run++) {
        start = now();
        if (rt_program_run(program, in, out) != JOT_OK || jot_device_wait(NULL) != JOT_OK)
            return -1;
        best = fmin(best, now() - start);
    }
    rt_program_watch(program, begin_kernel);
    begin = now();
    for (int run = 0; watched.n && (run < 3 || (run < 50 && now() - begin < BOUND_SECONDS));
         run++)
        if (!watch_run(program, in, out))
            return -1;
    jot_device *d = jot_default_device();
    for (uint32_t i = 0; i < plan->input_count; i++)
        d->type->release(d, (void *)(uintptr_t)in[i], plan->inputs[i].bytes + 64);
    for (uint32_t i = 0; i < plan->output_count; i++)
        d->type->release(d, out[i], plan->outputs[i].bytes + 64);
    rt_program_release(program);
    return best;
}

struct subject {
    uint64_t seed;
    int64_t stretch;
    bool is_gradient;
    struct rates rates;
};

struct measured {
    double time, separate, roof, compile; // compile: seconds a kernel
    uint64_t likeness;                    // of the ops: neighbours have the same
    bool is_good;
    int n_timed; // of watched.kernels
};

static struct measured measure(const struct subject *s)
{
    struct measured r = {0};
    struct ir_module *m = ir_module_create();
    uint32_t f = large_make(m, s->seed, s->stretch, s->is_gradient, is_gpu());
    struct nest_program *fused, *separate;
    if (f == IR_NONE || large_schedule(m, f, is_gpu(), true, &separate) != JOT_OK ||
        large_schedule(m, f, is_gpu(), false, &fused) != JOT_OK || !is_counted(separate))
        return r;
    const struct ir_graph *g = ir_function(m, f);
    double bytes = 0, most = 0;
    for (uint32_t v = 0; v < g->values.count; v++) {
        double own =
            (double)ir_count(m, ir_type_of(g, v)) * (double)jot_dtype_size(ir_dtype_of(g, v));
        most = fmax(most, own);
        if (v < g->n_params)
            bytes += own;
    }
    for (uint32_t i = 0; i < g->outputs.count; i++)
        bytes += (double)ir_count(m, ir_type_of(g, g->outputs.at[i])) *
                 (double)jot_dtype_size(ir_dtype_of(g, g->outputs.at[i]));
    for (uint32_t i = 0; i < g->nodes.count; i++)
        r.likeness = hash_combine(r.likeness, g->nodes.at[i].op);
    r.roof = fmax(bytes / s->rates.bytes, work_of(separate) / s->rates.work) + A_PROGRAM;
    if (most < LEAST_BYTES || most > MOST_BYTES || r.roof > 0.3)
        return r;
    struct ir_tensor *in = program_inputs(m, g, s->seed, PROGRAM_LARGE | PROGRAM_DERIVABLE);
    double compile;
    watched.n = 0;
    if (!s->stretch)
        find_prices(fused);
    r.time = time_of(m->arena, m, fused, in, &compile);
    r.n_timed = watched.n;
    watched.n = 0;
    r.compile = compile / (double)(fused->nests.count ? fused->nests.count : 1);
    r.separate = s->stretch ? 1 : time_of(m->arena, m, separate, in, &compile);
    r.is_good = r.time > 0 && r.separate > 0;
    ir_module_release(m);
    return r;
}

static void measure_into(void *ctx, struct strbuf *report)
{
    struct subject s = *(const struct subject *)ctx;
    struct measured own = measure(&s);
    if (!own.is_good)
        return;
    double ratios[PROPERTIES] = {own.time / own.roof, own.time / own.separate, 0,
                                 own.compile / 0.1};
    int64_t which = 0;
    for (int i = 0; i < NEIGHBOURS; i++) {
        s.stretch = stretches[i];
        struct measured other = measure(&s);
        double by_work = other.is_good ? other.time / other.roof * own.roof / own.time : 0;
        if (other.likeness == own.likeness && by_work > ratios[NEIGHBOUR]) {
            ratios[NEIGHBOUR] = by_work;
            which = s.stretch;
        }
    }
    strbuf_printf(report, "%g %g %g %g %" PRId64 " %g", ratios[0], ratios[1], ratios[2],
                  ratios[3], which, own.time);
    for (int i = 0; i < own.n_timed; i++) {
        const struct timed *k = &watched.kernels[i];
        if (k->least > A_KERNEL && k->least < SECONDS && k->price > 0)
            strbuf_printf(report, ";%d %g %g", i, k->price, k->least);
    }
}

// -- All --------------------------------------------------------------------------------------

// Of x * x + x on many numbers, and of many products and sums of few.
static struct rates measure_rates(void)
{
    struct rates r;
    double times[2], compile;
    const double n = 1 << 26, few = 1 << 18, chain = 64;
    for (int k = 0; k < 2; k++) {
        struct ir_module *m = ir_module_create();
        struct ir_builder b = ir_builder_make(m, "rate", IR_BUILD_PLAIN);
        int64_t count = (int64_t)(k ? few : n);
        ir_id x = ir_param(&b, ir_type_make(m, JOT_F32, 1, &count)), y = x;
        for (int i = 0; i < (k ? chain : 1); i++)
            y = ir_add(&b, ir_mul(&b, y, y), x);
        ir_output(&b, y);
        uint32_t f = ir_finish_function(&b);
        struct nest_program *p;
        if (large_schedule(m, f, is_gpu(), false, &p) != JOT_OK)
            exit(1);
        const struct ir_graph *g = ir_function(m, f);
        times[k] =
            time_of(m->arena, m, p, program_inputs(m, g, 1, PROGRAM_DERIVABLE), &compile);
        ir_module_release(m);
    }
    r.bytes = 8 * n / times[0];
    r.work = 2 * chain * few / times[1];
    return r;
}

struct one {
    double ratio;
    uint64_t program;
    int64_t stretch;
    double time;
};

static int by_ratio(const void *x, const void *y)
{
    double a = ((const struct one *)x)->ratio, b = ((const struct one *)y)->ratio;
    return (a < b) - (a > b);
}

static void describe(const struct subject *s)
{
    struct ir_module *m = ir_module_create();
    uint32_t f = large_make(m, s->seed, s->stretch, s->is_gradient, is_gpu());
    struct nest_program *p;
    if (f == IR_NONE || large_schedule(m, f, is_gpu(), false, &p) != JOT_OK)
        return;
    struct strbuf text = strbuf_make(m->arena);
    strbuf_add(&text, ir_graph_text(ir_function(m, f)));
    print_mapped(&text, p);
    if (!number_from("JOT_TEST_TIME", 1)) {
        printf("%s\n", text.text);
        ir_module_release(m);
        return;
    }
    struct measured own = measure(s);
    strbuf_add(&text, "\n");
    for (int i = 0; i < own.n_timed; i++)
        strbuf_printf(&text, "%-32s price %12.0f, %10.2f us, %.4f ns an operation\n",
                      watched.kernels[i].name, watched.kernels[i].price,
                      1e6 * watched.kernels[i].least,
                      1e9 * watched.kernels[i].least / watched.kernels[i].price);
    printf("%s\n%.4g ms, separate %.4g, roof %.4g; %.0f ms a kernel\n", text.text,
           1e3 * own.time, 1e3 * own.separate, 1e3 * own.roof, 1e3 * own.compile);
    ir_module_release(m);
}

static void measure_rates_into(void *ctx, struct strbuf *report)
{
    (void)ctx;
    struct rates r = measure_rates();
    strbuf_printf(report, "%g %g", r.bytes, r.work);
}

struct priced {
    double error; // of its price: logarithm of the time by the price, later by the mean
    uint64_t program;
    int64_t kernel;
    double time;
};

static int by_error(const void *x, const void *y)
{
    double a = fabs(((const struct priced *)x)->error),
           b = fabs(((const struct priced *)y)->error);
    return (a < b) - (a > b);
}

typedef VEC(struct priced) price_list;

// The kernels that the report of a program ends with.
static void read_prices(struct arena *arena, const char *report, uint64_t program,
                        price_list *all)
{
    for (const char *at = strchr(report, ';'); at; at = strchr(at + 1, ';')) {
        struct priced k = {.program = program};
        double price;
        if (sscanf(at, ";%" SCNd64 " %lf %lf", &k.kernel, &price, &k.time) != 3)
            continue;
        k.error = log(k.time / price);
        vec_push(arena, all, k);
    }
}

static void print_prices(price_list *all)
{
    double mean = 0, squares = 0;
    for (uint32_t i = 0; i < all->count; i++)
        mean += all->at[i].error / all->count;
    for (uint32_t i = 0; i < all->count; i++) {
        all->at[i].error -= mean;
        squares += all->at[i].error * all->at[i].error / all->count;
    }
    if (all->count)
        qsort(all->at, all->count, sizeof *all->at, by_error);
    printf("price: %u kernels, %.4f ns an operation; within a factor of %.2f (root mean "
           "square); the worst\n",
           all->count, 1e9 * exp(mean), exp(sqrt(squares)));
    for (uint32_t i = 0; i < all->count && i < WORST; i++)
        printf("  %8.2f  program %" PRIu64 ", kernel %" PRId64 ", %.3g ms\n",
               exp(all->at[i].error), all->at[i].program, all->at[i].kernel,
               1e3 * all->at[i].time);
}

int main(void)
{
    uint64_t seed = number_from("JOT_TEST_SEED", 1), first = number_from("JOT_TEST_FIRST", 0);
    uint64_t count = number_from("JOT_TEST_COUNT", 50), n = 0;
    double limit = (double)number_from("JOT_TEST_SECONDS", 1000000), begin = now();
    struct arena *arena = arena_create();
    struct strbuf text = strbuf_make(arena);
    struct rates rates = {0};
    bool is_timed = number_from("JOT_TEST_TIME", 1);
    if (is_timed && (!isolate_run(measure_rates_into, NULL, SECONDS, &text) ||
                     sscanf(text.text, "%lf %lf", &rates.bytes, &rates.work) != 2))
        return 1;
    printf("seed %" PRIu64 "; %.3g bytes and %.3g operations a second\n", seed, rates.bytes,
           rates.work);
    if (getenv("JOT_TEST_ONE")) {
        uint64_t i = number_from("JOT_TEST_ONE", 0);
        describe(&(struct subject){
            .seed = hash_combine(seed, i), .is_gradient = i % 2, .rates = rates});
        return 0;
    }
    struct one *all[PROPERTIES];
    price_list prices = {0};
    for (int k = 0; k < PROPERTIES; k++)
        all[k] = arena_array(arena, struct one, count + 1);
    uint64_t tried = 0;
    for (; tried < count && now() - begin < limit; tried++) {
        uint64_t i = first + tried;
        struct subject s = {
            .seed = hash_combine(seed, i), .is_gradient = i % 2, .rates = rates};
        text = strbuf_make(arena);
        if (!isolate_run(measure_into, &s, SECONDS, &text))
            printf("program %" PRIu64 ": %s", i, text.text);
        struct one x = {.program = i};
        double ratios[PROPERTIES];
        if (text.length == 0 ||
            sscanf(text.text, "%lf %lf %lf %lf %" SCNd64 " %lf", &ratios[0], &ratios[1],
                   &ratios[2], &ratios[3], &x.stretch, &x.time) != 6)
            continue;
        read_prices(arena, text.text, i, &prices);
        for (int k = 0; k < PROPERTIES; k++) {
            x.ratio = ratios[k];
            all[k][n] = x;
        }
        n++;
    }
    printf("%" PRIu64 " programs measured of %" PRIu64 "\n", n, tried);
    for (int k = 0; k < PROPERTIES; k++) {
        uint64_t beyond = 0;
        qsort(all[k], n, sizeof *all[k], by_ratio);
        while (beyond < n && all[k][beyond].ratio > properties[k].bound)
            beyond++;
        printf("%s: %" PRIu64 " above %g; median %.2f; the worst\n", properties[k].name, beyond,
               properties[k].bound, n ? all[k][n / 2].ratio : 0);
        for (uint64_t i = 0; i < n && i < WORST; i++) {
            printf("  %8.2f  program %" PRIu64 ", %.3g ms", all[k][i].ratio, all[k][i].program,
                   1e3 * all[k][i].time);
            if (k == NEIGHBOUR)
                printf(", extent %+" PRId64, all[k][i].stretch);
            printf("\n");
        }
    }
    print_prices(&prices);
    arena_release(arena);
    return n == 0; // what is slow is no failure: other programs may have been in the way
}
