// SPDX-License-Identifier: Apache-2.0
// Effects under transforms, and machine code of transforms: what it computes and what it calls.
#include "random/checker.h"

#include "base/status.h"
#include "harness/isolate.h"
#include "harness/native.h"
#include "jot/device.h"
#include "map/gpu_shared.h"
#include "random/record.h"
#include "runtime/device.h"
#include "schedule/schedule.h"
#include "support/opcases.h"
#include "support/run_native.h"

#include <stdlib.h>

enum { MOST_PARAMS = 64, SECONDS = 100 };

// Transforms, one letter each, the first of them first: mapped, forward, reverse.
static const char *const derivable[] = {"m", "f", "r", "rm", "mr", "fm", "mf", "rf", "fr"};

static uint32_t transformed(struct checker *c, const char *letters, int64_t lanes)
{
    uint32_t f = c->f;
    for (; *letters; letters++) {
        bool *floats = check_floats(c, ir_function(c->m, f)), mapped[MOST_PARAMS];
        for (uint32_t i = 0; i < MOST_PARAMS; i++)
            mapped[i] = i == 0 || opcase_random(&c->state) < 0.7;
        jot_status status = ir_function(c->m, f)->n_params > MOST_PARAMS ? JOT_ERR_ARGUMENT
                            : *letters == 'm' ? pass_vmap(c->m, f, mapped, lanes, &f, NULL)
                            : *letters == 'f' ? pass_jvp(c->m, f, floats, &f, NULL)
                                              : pass_vjp(c->m, f, floats, &f);
        if (status != JOT_OK) {
            strbuf_printf(c->why, "transform %s: ", letters);
            check_refuse(c, "fails");
            return IR_NONE;
        }
    }
    return f;
}

static bool same_lines(struct checker *c, const char *what, const char *got, const char *want)
{
    if (!strcmp(got, want))
        return true;
    strbuf_printf(c->why, "%s calls\n%swhere these are due\n%s", what, got, want);
    return false;
}

// -- Effects in the evaluator -----------------------------------------------------------------

// The calls of a run of g, or NULL.
static const char *lines_of(struct checker *c, const struct ir_graph *g,
                            const struct ir_tensor *in)
{
    struct strbuf lines = strbuf_make(c->m->arena);
    record_begin(&lines, UINT64_MAX);
    struct ir_tensor *out = check_run(c, g, in);
    record_begin(NULL, UINT64_MAX);
    return out ? lines.text : NULL;
}

static struct ir_tensor *inputs_of(struct checker *c, const struct ir_graph *g)
{
    struct ir_tensor *in = program_inputs(c->m, g, c->state, c->kind);
    for (uint32_t i = 0; i < c->g->n_params && i < g->n_params; i++)
        if (ir_type_equal(ir_type_of(g, i), c->in[i].type))
            in[i] = c->in[i];
    return in;
}

// How often each number is called.
enum { NUMBERS = 1000 };
static void count_calls(const char *lines, int *counts)
{
    for (; *lines; lines = strchr(lines, '\n') + 1)
        counts[atoi(lines) % NUMBERS]++;
}

// Simplification and derivatives make the calls of the function itself, with what it gives them;
// a map those of its lanes, or one for all where they are the same.
bool check_keeps(struct checker *c)
{
    enum { LANES = 3 };
    const char *want = lines_of(c, c->g, c->in);
    bool all[MOST_PARAMS];
    memset(all, 1, sizeof all);
    struct {
        const char *what;
        uint32_t f;
    } kept[] = {
        {"the simplified function", check_final(c, c->f)},
        {"the tangents", c->kind & PROGRAM_DERIVABLE ? transformed(c, "f", 0) : c->f},
        {"the cotangents", c->kind & PROGRAM_DERIVABLE ? transformed(c, "r", 0) : c->f},
    };
    for (int k = 0; k < 3; k++) {
        if (kept[k].f == IR_NONE)
            return false;
        const struct ir_graph *g = ir_function(c->m, kept[k].f);
        const char *got = lines_of(c, g, inputs_of(c, g));
        if (!got || !same_lines(c, kept[k].what, got, want))
            return false;
    }
    int sum[NUMBERS] = {0}, most[NUMBERS] = {0}, calls[NUMBERS] = {0};
    uint32_t f;
    if (pass_vmap(c->m, c->f, all, LANES, &f, NULL) != JOT_OK)
        return check_refuse(c, "vmap");
    const struct ir_graph *g = ir_function(c->m, f);
    struct ir_tensor *in = program_inputs(c->m, g, c->state, c->kind), one[MOST_PARAMS];
    for (int lane = 0; lane < LANES; lane++) {
        int own[NUMBERS] = {0};
        for (uint32_t i = 0; i < g->n_params; i++) {
            one[i].type = ir_type_of(c->g, i);
            one[i].data = (char *)in[i].data + (size_t)lane * check_bytes(c->m, one[i].type);
        }
        const char *lines = lines_of(c, c->g, one);
        if (!lines)
            return false;
        count_calls(lines, own);
        for (int i = 0; i < NUMBERS; i++) {
            sum[i] += own[i];
            most[i] = own[i] > most[i] ? own[i] : most[i];
        }
    }
    const char *lines = lines_of(c, g, in);
    if (!lines)
        return false;
    count_calls(lines, calls);
    for (int i = 0; i < NUMBERS; i++)
        if (calls[i] < most[i] || calls[i] > sum[i]) {
            strbuf_printf(c->why, "number %d is called %d times, in lanes alone %d\n%s", i,
                          calls[i], sum[i], ir_graph_text(g));
            return false;
        }
    return true;
}

// -- Machine code -----------------------------------------------------------------------------

struct machine {
    struct checker *c;
    const struct ir_graph *g;
    const struct ir_tensor *in, *want;
    struct rt_program *program;
    const void **inputs;
    void **outputs;
};

// The run that ends with call number `calls`, or with none of them.
static bool runs_alike(struct machine *r, uint64_t calls, const char **out_lines)
{
    struct checker *c = r->c;
    struct strbuf want = strbuf_make(c->m->arena), got = strbuf_make(c->m->arena);
    struct ir_tensor *out = arena_array(c->m->arena, struct ir_tensor, r->g->outputs.count + 1);
    record_begin(&want, calls);
    jot_status expected = ir_eval(c->m->arena, r->g, r->in, out);
    const char *message =
        arena_text(c->m->arena, expected == JOT_OK ? "" : jot_error_message());
    record_begin(&got, calls);
    jot_status status = run_native_call(r->program, r->inputs, r->outputs);
    record_begin(NULL, UINT64_MAX);
    *out_lines = want.text;
    r->want = out;
    if (status != expected || (status != JOT_OK && strcmp(jot_error_message(), message) != 0)) {
        strbuf_printf(c->why, "machine code: %s \"%s\", expected %s \"%s\"\n",
                      jot_status_name(status), status == JOT_OK ? "" : jot_error_message(),
                      jot_status_name(expected), message);
        return false;
    }
    return same_lines(c, "machine code", got.text, want.text);
}

static bool agrees(struct machine *r)
{
    struct checker *c = r->c;
    const char *lines;
    r->inputs = arena_array(c->m->arena, const void *, r->g->n_params + 1);
    r->outputs = arena_array(c->m->arena, void *, r->g->outputs.count + 1);
    for (uint32_t i = 0; i < r->g->n_params; i++)
        r->inputs[i] = r->in[i].data;
    for (uint32_t i = 0; i < r->g->outputs.count; i++) {
        size_t bytes = check_bytes(c->m, ir_type_of(r->g, r->g->outputs.at[i]));
        r->outputs[i] = arena_allocate(c->m->arena, bytes + 64);
        memset(r->outputs[i], 0xa5, bytes);
    }
    if (!runs_alike(r, UINT64_MAX, &lines))
        return false;
    for (uint32_t i = 0; i < r->g->outputs.count; i++) {
        struct ir_tensor got = {r->want[i].type, r->outputs[i]};
        if (!native_same(c->m, got, r->want[i], 0, c->why)) {
            strbuf_printf(c->why, "  output %u of machine code\n", i);
            return false;
        }
    }
    uint64_t calls = 0;
    for (const char *at = lines; (at = strchr(at, '\n')) != NULL; at++)
        calls++;
    return calls == 0 ||
           runs_alike(r, (uint64_t)(opcase_random(&c->state) * (double)calls), &lines);
}

// Of the mapping of a kernel, none of which changes a bit.
static const unsigned choices[] = {0,           0,
                                   0,           NEST_MORE_LANES,
                                   NEST_NO_JAM, NEST_FEWER_LANES,
                                   0,           NEST_NO_STAGES | NEST_FEWER_LANES};
#define CHOICES (sizeof choices / sizeof *choices)

bool check_has_chunks(const struct nest_program *p)
{
    bool is_gpu = !rt_is_host(jot_default_device());
    for (uint32_t i = 0; is_gpu && i < p->nests.count; i++) {
        const struct nest *n = p->nests.at[i];
        for (nest_id id = 0; id < n->statements.count; id++) {
            const struct nest_statement *s = nest_statement_at(n, id);
            if (s->kind == NEST_SCAN && nest_extent(n, s) > MAP_SHORTEST_CHUNK)
                return true;
        }
    }
    return false;
}

// Before memory is planned, on half of the programs of a GPU; the code generator maps the others.
static jot_status map_by_choice(struct nest_program *p, void *ctx)
{
    uint64_t choice = *(const uint64_t *)ctx;
    for (uint32_t i = 0; i < p->nests.count; i++)
        p->nests.at[i]->choices = choices[(choice / 3 + i) % CHOICES];
    if (!rt_is_host(jot_default_device()) && choice / 2 % 2)
        map_program_to_gpu(p, false);
    return JOT_OK;
}

static bool agrees_in_machine(struct checker *c)
{
    bool is_derivable = c->kind & PROGRAM_DERIVABLE;
    double u = opcase_random(&c->state), how = opcase_random(&c->state);
    const char *letters = is_derivable ? derivable[(int)(u * 9)] : u < 0.7 ? "m" : "mm";
    uint32_t f = transformed(c, letters, 1 + (int64_t)(opcase_random(&c->state) * 11));
    if (f == IR_NONE)
        return false;
    f = check_final(c, f);
    struct machine r = {.c = c, .g = ir_function(c->m, f)};
    bool is_gpu = !rt_is_host(jot_default_device());
    uint64_t choice = (uint64_t)(how * 1e9);
    struct schedule_options options = schedule_options_of(is_gpu);
    options.repeat = (enum schedule_repeat)(choice % 3);
    options.steps = how < 0.3;
    options.separate = how > 0.8;
    options.no_gemm = true;
    options.price = choice % 2 ? check_price : NULL;
    options.large = (is_gpu || choice % 4 == 0) && how > 0.2 && how < 0.6;
    struct nest_program *p;
    options.map = map_by_choice;
    options.map_ctx = &choice;
    if (pass_schedule(c->m->arena, r.g, &options, &p) != JOT_OK)
        return check_refuse(c, "schedule");
    bool is_good = nest_program_verify(p, c->why) + plan_verify(p, c->why) == 0;
    if (is_good && (!check_is_quick(p, 1e8) || check_has_chunks(p)))
        return true;
    if (is_good) {
        r.in = inputs_of(c, r.g);
        is_good = run_native_load(c->m->arena, p, c->m, &r.program) == JOT_OK
                      ? agrees(&r)
                      : check_refuse(c, "compiling");
        rt_program_release(r.program);
    }
    if (!is_good) {
        strbuf_printf(c->why, "transformed by %s\n%s", letters, ir_graph_text(r.g));
        schedule_print(c->why, p);
    }
    return is_good;
}

// The last letter of the report says whether it holds.
static void try_machine(void *ctx, struct strbuf *report)
{
    struct checker c = *(const struct checker *)ctx;
    c.why = report;
    strbuf_add(report, agrees_in_machine(&c) ? "." : "!");
}

// In a process of its own: what it opens of a GPU, later children could not use.
bool check_machine(struct checker *c)
{
    struct strbuf report = strbuf_make(c->m->arena);
    bool ended = isolate_run(try_machine, c, SECONDS, &report);
    if (ended && report.length > 0 && report.text[report.length - 1] == '.')
        return true;
    strbuf_add(c->why, report.text);
    return false;
}
