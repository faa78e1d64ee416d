// SPDX-License-Identifier: Apache-2.0
// Of W operations of a kernel, min(device, W / grain) workers are to have their share, and none more than four
// times that, unless there is little to do:
//
//     ratio = (W / workers) / max(4 W / min(device, W / grain), least)
//
// Workers are the threads of the blocks that the launch plan starts, or chunks on the host.  What one thread does
// because each step needs the one before it is told by the mapping, and left out; what it
// does for any other reason has one worker.
#include "random/parallelism.h"

#include "base/launch.h"
#include "codegen/codegen.h"
#include "map/map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

// 132 multiprocessors of 2,048 threads, of which one has 64 operations at least and may have 256 turns of 16.  Cores
// of a processor, by scalar operations, of which vectors do sixteen at once.
const struct parallelism_device parallelism_gpu = {"cuda sm_90 sms=132 shared=233472", 270336,
                                                   64, 4096};
const struct parallelism_device parallelism_host = {
    "skylake-avx512 +avx2,+fma,+avx512f,+avx512vl,+avx512dq,+avx512bw", 16, 1 << 20, 1 << 22};

static const char *const named[] = {"(a trip needs the one before it)",
                                    "(it reads what it writes)"};

static double workers_of(const struct rt_step *t, const struct parallelism_device *device)
{
    double chunks = t->kind == RT_STEP_PHASES ? fmax((double)t->total, 1)
                                              : (double)((t->total + t->grain - 1) / t->grain);
    double threads = t->block ? chunks * t->block : t->flags & RT_STEP_PARALLEL ? chunks : 1;
    return fmin(fmax(threads, 1), device->workers);
}

// The most workers of a step of the title.
static double workers_by_title(const struct rt_plan *plan, const char *title,
                               const struct parallelism_device *device)
{
    double most = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct rt_step *t = &plan->steps[i];
        if ((t->kind == RT_STEP_KERNEL || t->kind == RT_STEP_PHASES) &&
            !strcmp(plan->text + t->title, title))
            most = fmax(most, workers_of(t, device));
    }
    return most;
}

// By kernel: the workers that it has in the step where it has fewest; 0: in none.
static double *workers_by_nest(struct arena *arena, const struct nest_program *p,
                               const struct rt_plan *plan,
                               const struct parallelism_device *device)
{
    double *workers = arena_array(arena, double, p->nests.count + 1), loop = 0;
    uint32_t end = 0; // of the loop that is one kernel
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *t = &p->steps.at[i];
        if (nest_step_loops(t) && i >= end && nest_loop_is_phases(p, i) &&
            (!device->target || strncmp(device->target, "cuda", 4) ||
             nest_loop_is_resident(p, i))) {
            end = nest_step_end(p, i);
            uint32_t first = i;
            while (first < end && p->steps.at[first].kind != NEST_STEP_KERNEL)
                first++;
            loop =
                first < end
                    ? workers_by_title(plan, p->nests.at[p->steps.at[first].nest]->name, device)
                    : 0;
        }
        if (t->kind != NEST_STEP_KERNEL)
            continue;
        double own =
            i < end ? loop : workers_by_title(plan, p->nests.at[t->nest]->name, device);
        if (!workers[t->nest] || own < workers[t->nest])
            workers[t->nest] = own;
    }
    return workers;
}

// Whether most of the work is in loops each step of which needs the one before it.
static bool is_of_steps(const struct nest *n)
{
    double work = 0;
    nest_for_all (s, n)
        if (s->kind == NEST_SEQ || s->kind == NEST_WHILE || s->kind == NEST_SCAN)
            work = fmax(work, (double)nest_extent(n, s) *
                                  (nest_work(n, s->body) + nest_work(n, s->other)));
    nest_for_each (s, n, 0)
        work *= s->kind == NEST_PAR ? (double)nest_extent(n, s) : 1;
    return 2 * work > nest_work(n, 0);
}

static bool compile(const struct nest_program *p, const struct parallelism_device *device,
                    struct cg_response *r)
{
    struct strbuf text = strbuf_make(p->arena);
    nest_program_print(&text, p);
    struct cg_request request = {.program = text.text, .target = device->target};
    jot_codegen_entry(&request, r);
    return r->status == JOT_OK;
}

// What one thread of a GPU does: alone, and because it must.
static void find_serial(struct arena *arena, const struct nest_program *p, double *workers,
                        bool *is_named)
{
    struct strbuf text = strbuf_make(arena);
    struct nest_program *mapped;
    nest_program_print(&text, p);
    if (nest_program_parse(arena, text.text, &mapped) != JOT_OK)
        return;
    map_program_to_gpu(mapped, false);
    for (uint32_t i = 0; i < mapped->nests.count; i++) {
        const char *serial = map_serial_text(arena, mapped->nests.at[i]);
        uint32_t of = 0; // that it was a part of
        while (strcmp(mapped->nests.at[of]->name, mapped->nests.at[i]->name))
            of++;
        for (size_t k = 0; serial && k < sizeof named / sizeof *named; k++)
            is_named[of] |= strstr(serial, named[k]) != NULL;
        workers[of] = serial && workers[of] ? 1 : workers[of];
    }
}

struct parallelism parallelism_of(struct arena *arena, const struct nest_program *p,
                                  const struct parallelism_device *device, struct strbuf *list)
{
    struct parallelism result = {0};
    struct cg_response r;
    struct rt_plan plan;
    bool is_gpu = !strncmp(device->target, "cuda", 4);
    if (!compile(p, device, &r) || rt_plan_read(r.plan, r.plan_size, &plan) != JOT_OK)
        return result;
    double *workers = workers_by_nest(arena, p, &plan, device);
    bool *is_named = arena_array(arena, bool, p->nests.count + 1);
    if (is_gpu)
        find_serial(arena, p, workers, is_named);
    for (uint32_t i = 0; i < p->nests.count; i++) {
        is_named[i] |= !is_gpu && is_of_steps(p->nests.at[i]);
        double work = nest_work(p->nests.at[i], 0);
        double share = 4 * work / fmin(device->workers, fmax(work / device->grain, 1));
        double ratio = workers[i] ? work / workers[i] / fmax(share, device->least) : 0;
        result.n_named += is_named[i];
        if (list)
            strbuf_printf(list, "# %s: %.3g operations, %.0f workers, %.2f%s\n",
                          p->nests.at[i]->name, work, workers[i], ratio,
                          is_named[i] ? ", trips in turn" : "");
        if (is_named[i] || ratio <= result.ratio)
            continue;
        result.ratio = ratio;
        result.kernel = arena_text(arena, p->nests.at[i]->name);
    }
    r.release(&r);
    return result;
}
