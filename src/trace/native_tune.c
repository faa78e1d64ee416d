// SPDX-License-Identifier: Apache-2.0
// Tuning: a program is compiled with each choice that leaves its bits alone and run on the arrays of a call,
// and what took the least time is kept.
//
//     1. values stored or computed again, of the whole program: what is fastest
//     2. the choices of a mapping, each for all kernels: what a kernel takes with each; it keeps the fastest
//     3. the program of these choices, where it is faster than that of the prices
//
// The choices are kept in the disk cache, so another process measures nothing.
#include "base/status.h"
#include "runtime/cache.h"
#include "runtime/device.h"
#include "runtime/stack.h"
#include "trace/dump.h"
#include "trace/native_internal.h"
#include "trace/stacks.h"

#include <string.h>
#include <time.h>

// A choice is taken where it takes at most such a part of the time without it: less is noise.
#define OF_A_KERNEL .95
#define OF_A_PROGRAM .98
// What is less of the program is left as it is.
#define PART_OF_PROGRAM .02
// Microseconds that a program is run for, and how often.
#define MEASURED_US 50e3
#define LEAST_ROUNDS 3
#define MOST_ROUNDS 50

// By kernel: none of them, then one after the other; threads of a GPU have neither jam nor stages.
static const uint8_t choices[] = {0, NEST_MORE_LANES, NEST_FEWER_LANES, NEST_NO_JAM,
                                  NEST_NO_STAGES};
#define CHOICES (sizeof choices / sizeof *choices)
#define CHOICES_OF_GPU 3

// What steps of one name take together, in microseconds.
struct timed_step {
    const char *name; // borrowed of a program, which lives as long
    double now, least;
};

struct candidate {
    struct native_choices choices;
    struct rt_program *program; // NULL: it cannot be compiled
    double least;               // of a run in microseconds
    VEC(struct timed_step) steps;
};

// Programs that are loaded at once: those of a step and the best one so far.
#define MOST_LOADED (CHOICES + SCHEDULE_REPEAT_KINDS)

struct tuner {
    struct native_program *p;
    struct arena *arena;
    jot_array *const *in;
    jot_array **out;
    struct rt_program *loaded[MOST_LOADED];
    struct candidate best;
};

// The candidate that runs on this thread, step by step, the step that it is at, and since when.
static _Thread_local struct {
    struct tuner *t;
    struct candidate *c;
    struct timed_step *step;
    double since;
} watched;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static struct timed_step *step_of(struct arena *arena, struct candidate *c, const char *name)
{
    for (uint32_t i = 0; i < c->steps.count; i++)
        if (!strcmp(c->steps.at[i].name, name))
            return &c->steps.at[i];
    vec_push(arena, &c->steps, (struct timed_step){.name = name});
    return &c->steps.at[c->steps.count - 1];
}

static void end_step(double now)
{
    if (watched.step)
        watched.step->now += now - watched.since;
    watched.step = NULL;
}

static void begin_step(const char *name)
{
    end_step(now_us());
    watched.step = step_of(watched.t->arena, watched.c, name);
    watched.since = now_us();
}

// One run.  The arrays have references of the tuner's, so no input is overwritten.
static jot_status run_candidate(struct tuner *t, struct candidate *c, double *us)
{
    native_use(t->p, c->program);
    double start = now_us();
    JOT_TRY(native_run(t->p, t->in, t->out));
    jot_status status = t->p->device->type->wait(t->p->device);
    *us = now_us() - start;
    end_step(start + *us);
    jot_arrays_release(t->p->n_out, t->out);
    return status;
}

static jot_status run_in_steps(struct tuner *t, struct candidate *c)
{
    double us;
    for (uint32_t i = 0; i < c->steps.count; i++)
        c->steps.at[i].now = 0;
    rt_program_watch(c->program, begin_step);
    watched.t = t;
    watched.c = c;
    jot_status status = run_candidate(t, c, &us);
    watched.step = NULL;
    native_watch(t->p);
    for (uint32_t i = 0; i < c->steps.count; i++) {
        struct timed_step *s = &c->steps.at[i];
        s->least = !s->least || s->now < s->least ? s->now : s->least;
    }
    return status;
}

// All candidates in turn, so that what else the machine does comes to all of them.
static jot_status measure(struct tuner *t, struct candidate *all, uint32_t n, bool in_steps)
{
    double us;
    JOT_TRY(run_candidate(t, &all[0], &us)); // wakes what sleeps
    JOT_TRY(run_candidate(t, &all[0], &us));
    double rounds = MEASURED_US / (us + 1);
    for (int round = 0; round < LEAST_ROUNDS || (round < MOST_ROUNDS && round < rounds);
         round++)
        for (uint32_t i = 0; i < n; i++) {
            struct candidate *c = &all[i];
            if (!c->program)
                continue;
            if (in_steps) {
                JOT_TRY(run_in_steps(t, c));
                continue;
            }
            JOT_TRY(run_candidate(t, c, &us));
            c->least = !c->least || us < c->least ? us : c->least;
        }
    return JOT_OK;
}

// Compiles a candidate for its choices.  Those that cannot be compiled are none.
static void prepare(struct tuner *t, struct candidate *c)
{
    uint32_t at = 0;
    while (t->loaded[at])
        at++;
    t->p->choices = c->choices;
    t->p->program = NULL;
    if (native_compile_anew(t->p, t->arena) == JOT_OK)
        c->program = t->loaded[at] = t->p->program;
    t->p->program = NULL;
}

// Releases all programs but one.
static void keep_best(struct tuner *t, const struct rt_program *program)
{
    for (uint32_t i = 0; i < MOST_LOADED; i++)
        if (t->loaded[i] != program) {
            rt_program_release(t->loaded[i]);
            t->loaded[i] = NULL;
        }
}

// ---- 1: stored or computed again

static jot_status tune_repeat(struct tuner *t, struct strbuf *report)
{
    static const char *const names[] = {"by their prices", "rather stored",
                                        "rather computed again"};
    struct candidate all[SCHEDULE_REPEAT_KINDS] = {t->best};
    for (int i = 1; i < SCHEDULE_REPEAT_KINDS; i++) {
        all[i].choices =
            (struct native_choices){.is_made = true, .repeat = (enum schedule_repeat)i};
        prepare(t, &all[i]);
    }
    JOT_TRY(measure(t, all, SCHEDULE_REPEAT_KINDS, false));
    for (int i = 0; i < SCHEDULE_REPEAT_KINDS; i++)
        if (all[i].program) {
            strbuf_printf(report, "values that several kernels want %s: %.1f us\n", names[i],
                          all[i].least);
            if (all[i].least < OF_A_PROGRAM * t->best.least || i == 0)
                t->best = all[i];
        }
    keep_best(t, t->best.program);
    return JOT_OK;
}

// ---- 2: the choices of a mapping

// What kernels do together, as a loop of phases, chooses together: the name that the time of each goes by.
static const char **names_of(struct tuner *t, const struct nest_program *nests)
{
    const char **names = arena_array(t->arena, const char *, nests->nests.count + 1);
    for (uint32_t i = 0; i < nests->steps.count; i++) {
        uint32_t end = nest_loop_is_phases(nests, i) ? nest_step_end(nests, i) : i;
        const char *name = NULL;
        for (; i <= end; i++) {
            const struct nest_step *s = &nests->steps.at[i];
            if (s->kind != NEST_STEP_KERNEL)
                continue;
            name = name ? name : nests->nests.at[s->nest]->name;
            names[s->nest] = name;
        }
        i--;
    }
    return names;
}

static double least_of(const struct candidate *c, const char *name)
{
    for (uint32_t i = 0; name && i < c->steps.count; i++)
        if (!strcmp(c->steps.at[i].name, name))
            return c->steps.at[i].least;
    return 0;
}

static uint32_t choices_of(const struct tuner *t)
{
    return t->p->device->type->kind == JOT_CUDA ? CHOICES_OF_GPU : CHOICES;
}

static struct native_choices fastest(struct tuner *t, const struct nest_program *nests,
                                     const struct candidate *all, struct strbuf *report)
{
    uint32_t n = nests->nests.count;
    struct native_choices c = {true, all[0].choices.repeat, n,
                               arena_array(t->p->module->arena, uint8_t, n + 1)};
    const char **names = names_of(t, nests);
    bool is_any = false;
    for (uint32_t i = 0; i < n; i++) {
        double priced = least_of(&all[0], names[i]), least = OF_A_KERNEL * priced;
        if (priced < PART_OF_PROGRAM * all[0].least)
            continue;
        strbuf_printf(report, "kernel %s: %.1f us", nests->nests.at[i]->name, priced);
        for (uint32_t k = 1; k < choices_of(t); k++) {
            double us = all[k].program ? least_of(&all[k], names[i]) : 0;
            if (us)
                strbuf_printf(report, ", %s %.1f", nest_choice_names[__builtin_ctz(choices[k])],
                              us);
            if (us && us < least) {
                least = us;
                c.of[i] = choices[k];
                is_any = true;
            }
        }
        strbuf_add(report, "\n");
    }
    if (!is_any)
        c.count = 0;
    return c;
}

static jot_status tune_mapping(struct tuner *t, struct strbuf *report)
{
    struct nest_program *nests;
    struct candidate all[CHOICES] = {t->best};
    t->p->choices = t->best.choices;
    JOT_TRY(native_schedule(t->p, t->arena, &nests));
    uint32_t n = nests->nests.count;
    for (uint32_t k = 1; k < choices_of(t); k++) {
        uint8_t *of = arena_array(t->arena, uint8_t, n + 1);
        memset(of, choices[k], n);
        all[k].choices = (struct native_choices){true, t->best.choices.repeat, n, of};
        prepare(t, &all[k]);
    }
    JOT_TRY(measure(t, all, choices_of(t), true));
    struct candidate ends[2] = {t->best, {.choices = fastest(t, nests, all, report)}};
    keep_best(t, t->best.program);
    if (!ends[1].choices.count)
        return JOT_OK;
    prepare(t, &ends[1]);
    JOT_TRY(measure(t, ends, 2, false));
    bool is_better = ends[1].program && ends[1].least < OF_A_PROGRAM * ends[0].least;
    strbuf_printf(report, "the program: %.1f us, with the fastest of each kernel %.1f: %s\n",
                  ends[0].least, ends[1].least, is_better ? "taken" : "not taken");
    t->best = ends[is_better];
    return JOT_OK;
}

// ---- The choices in the cache: how values are repeated, then a byte for each kernel

static struct hash128 key_of_choices(const struct native_program *p)
{
    struct hash128 key = native_key(p);
    struct strbuf s = strbuf_make(p->module->arena);
    strbuf_add(&s, "tuned|");
    strbuf_add_bytes(&s, &key, sizeof key);
    return hash128_bytes(s.text, s.length);
}

static bool read_choices(struct native_program *p, struct hash128 key)
{
    struct rt_cache_entry e;
    if (!rt_cache_find(rt_cache_default(), key, &e, NULL))
        return false;
    const uint8_t *bytes = e.bytes;
    bool is_sound = e.size && bytes[0] < SCHEDULE_REPEAT_KINDS;
    if (is_sound)
        p->choices = (struct native_choices){
            true, (enum schedule_repeat)bytes[0], (uint32_t)(e.size - 1),
            arena_copy(p->module->arena, bytes + 1, e.size - 1)};
    rt_cache_entry_release(&e);
    return is_sound;
}

static void keep_choices(const struct tuner *t, struct hash128 key)
{
    const struct native_choices *c = &t->best.choices;
    uint8_t *bytes = arena_array(t->arena, uint8_t, c->count + 1);
    bytes[0] = (uint8_t)c->repeat;
    if (c->count)
        memcpy(bytes + 1, c->of, c->count);
    rt_cache_store(rt_cache_default(), key, bytes, c->count + 1, NULL);
}

// ---- The whole

// The program of choices that were made before.
static jot_status take_choices(struct tuner *t)
{
    struct native_program *p = t->p;
    struct rt_text report = {0};
    if (!p->choices.count && !p->choices.repeat)
        return JOT_OK;
    p->program = NULL;
    JOT_TRY(native_find_or_make(p, t->arena, &report));
    t->best.choices = p->choices;
    t->best.program = t->loaded[1] = p->program;
    return JOT_OK;
}

static jot_status tune(struct arena *arena, void *ctx)
{
    struct tuner *t = ctx;
    struct native_program *p = t->p;
    struct hash128 key = key_of_choices(p);
    t->arena = arena;
    t->out = arena_array(arena, jot_array *, p->n_out + 1);
    if (read_choices(p, key))
        return take_choices(t);
    struct strbuf report = strbuf_make(arena);
    JOT_TRY(tune_repeat(t, &report));
    JOT_TRY(tune_mapping(t, &report));
    keep_choices(t, key);
    if (dump_wants("tune"))
        dump_text("tune", ir_function(p->module, p->function)->name, report.text);
    return JOT_OK;
}

static jot_status tune_in_arena(void *ctx) { return arena_lend(tune, ctx); }

void native_tune(struct native_program *p, jot_array *const *in)
{
    if (p->mesh.mesh || native_calls_back(p))
        return;
    struct tuner t = {.p = p, .in = in, .loaded = {p->program}, .best.program = p->program};
    for (uint32_t i = 0; i < p->n_in; i++)
        jot_array_retain(in[i]);
    // A run that fails, as of a check, fails again in the call that follows and is told there.
    (void)rt_stack_lend(backend_stack(p->module), tune_in_arena, &t);
    for (uint32_t i = 0; i < p->n_in; i++)
        jot_array_release(in[i]);
    keep_best(&t, t.best.program);
    p->choices = t.best.choices;
    native_use(p, t.best.program);
}
