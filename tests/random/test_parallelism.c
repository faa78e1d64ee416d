// SPDX-License-Identifier: Apache-2.0
// A property of what is compiled of random large programs and their gradients, for a GPU and for a processor of
// many cores: kernels use the device (parallelism.c), or the step that needs the one before it is named.
//
// What is slower than it should be by less than a launch takes is found too: of a program in so many a kernel may be
// beyond 1, and none far beyond.
//
//     JOT_TEST_SEED=7 JOT_TEST_FIRST=0 JOT_TEST_COUNT=1000 test_random_parallelism
//     JOT_TEST_ONE=12345 test_random_parallelism      one program and its schedules
#include "harness/isolate.h"
#include "random/large.h"
#include "random/parallelism.h"
#include "schedule/schedule.h"
#include "support/number.h"
#include "support/sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECONDS = 120, WORST = 10, DEVICES = 2, NAME = 64 };

static const struct {
    const char *name;
    const struct parallelism_device *device;
    double most;  // of a kernel
    double share; // of programs that may have one beyond 1
} devices[DEVICES] = {{"GPU", &parallelism_gpu, 8, 0.05}, {"host", &parallelism_host, 4, 0.05}};

struct subject {
    uint64_t seed;
    bool is_gradient, describes;
};

static void look(void *ctx, struct strbuf *report)
{
    const struct subject *s = ctx;
    for (int k = 0; k < DEVICES; k++) {
        struct ir_module *m = ir_module_create();
        uint32_t f = large_make(m, s->seed, 0, s->is_gradient, k == 0);
        struct nest_program *p;
        struct parallelism x = {0};
        if (f != IR_NONE && large_schedule(m, f, k == 0, false, &p) == JOT_OK) {
            if (s->describes)
                schedule_print(report, p);
            x = parallelism_of(m->arena, p, devices[k].device, s->describes ? report : NULL);
        }
        strbuf_printf(report, "%g %d %s\n", x.ratio, x.n_named, x.kernel ? x.kernel : "-");
        ir_module_release(m);
    }
}

struct one {
    double ratio;
    uint64_t program;
    char kernel[NAME];
};

static int by_ratio(const void *x, const void *y)
{
    double a = ((const struct one *)x)->ratio, b = ((const struct one *)y)->ratio;
    return (a < b) - (a > b);
}

// Prints the worst of device k; returns whether it is used as it should be.
static bool tell(int k, struct one *all, uint64_t n, uint64_t n_named)
{
    uint64_t beyond = 0;
    qsort(all, n, sizeof *all, by_ratio);
    while (beyond < n && all[beyond].ratio > 1)
        beyond++;
    printf("%s: %" PRIu64 " programs, %" PRIu64 " above 1, %" PRIu64
           " kernels of trips in turn; the worst\n",
           devices[k].name, n, beyond, n_named);
    for (uint64_t i = 0; i < n && i < WORST; i++)
        printf("  %8.2f  program %" PRIu64 ", kernel %s\n", all[i].ratio, all[i].program,
               all[i].kernel);
    return n && all[0].ratio <= devices[k].most &&
           (double)beyond <= 1 + devices[k].share * (double)n;
}

int main(void)
{
    uint64_t seed = number_from("JOT_TEST_SEED", 1), first, n[DEVICES] = {0},
             n_named[DEVICES] = {0};
    uint64_t count = number_from("JOT_TEST_COUNT", sample_part(250, &first));
    first = number_from("JOT_TEST_FIRST", getenv("JOT_TEST_COUNT") ? 0 : first);
    struct arena *arena = arena_create();
    struct one *all[DEVICES];
    bool describes = getenv("JOT_TEST_ONE");
    if (describes) {
        first = number_from("JOT_TEST_ONE", 0);
        count = 1;
    }
    for (int k = 0; k < DEVICES; k++)
        all[k] = arena_array(arena, struct one, count + 1);
    printf("seed %" PRIu64 "\n", seed);
    for (uint64_t i = first; i < first + count; i++) {
        struct subject s = {hash_combine(seed, i), i % 2, describes};
        struct strbuf text = strbuf_make(arena);
        bool ends = isolate_run(look, &s, SECONDS, &text);
        if (describes || !ends)
            printf("program %" PRIu64 ": %s\n", i, text.text);
        const char *line = ends && !describes ? text.text : NULL;
        for (int k = 0; k < DEVICES && line; k++) {
            struct one x = {.program = i};
            int named;
            if (sscanf(line, "%lf %d %63s", &x.ratio, &named, x.kernel) == 3) {
                all[k][n[k]++] = x;
                n_named[k] += (uint64_t)named;
            }
            line = strchr(line, '\n') + 1;
        }
    }
    bool is_good = true;
    for (int k = 0; k < DEVICES && !describes; k++)
        is_good &= tell(k, all[k], n[k], n_named[k]);
    arena_release(arena);
    return !is_good;
}
