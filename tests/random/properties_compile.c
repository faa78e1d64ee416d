// SPDX-License-Identifier: Apache-2.0
// Large programs, and what is derived of them: schedulers and code generators take them, LLVM too,
// which verifies every module.
#include "random/checker.h"

#include "base/status.h"
#include "codegen/codegen.h"
#include "map/map.h"
#include "schedule/schedule.h"
#include "support/opcases.h"

#include <string.h>

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

// Processors with vectors of 16, 32 and 64 bytes, and GPUs.
static const char *const targets[] = {
    "x86-64 ",
    "haswell +avx2,+fma",
    "skylake-avx512 +avx2,+fma,+avx512f,+avx512vl,+avx512dq,+avx512bw",
    "cuda sm_80",
    "cuda sm_90",
};
enum { HOSTS = 3, TARGETS = 5 };

// Of a GPU: the text with its levels is the same code.
static bool is_said_by_levels(struct checker *c, const char *text, const char *target,
                              const struct cg_response *r)
{
    struct cg_request request = {.want = CG_WANT_MAPPED, .program = text, .target = target};
    struct cg_response mapped, again;
    jot_codegen_entry(&request, &mapped);
    request = (struct cg_request){.program = mapped.text, .target = target};
    jot_codegen_entry(&request, &again);
    bool is = again.status == JOT_OK && again.object_size == r->object_size &&
              memcmp(again.object, r->object, r->object_size) == 0;
    if (!is)
        strbuf_printf(c->why, "%.2000s: other code than that of its levels:\n%s\n",
                      again.message ? again.message : "", mapped.text);
    again.release(&again);
    mapped.release(&mapped);
    return is;
}

static bool compiles_in(struct arena *arena, struct checker *c, uint32_t f, const char *what,
                        const char *target, const struct schedule_options *options)
{
    struct nest_program *p;
    if (pass_schedule(arena, ir_function(c->m, f), options, &p) != JOT_OK)
        return check_refuse(c, "schedule");
    struct strbuf text = strbuf_make(arena);
    bool is_good = nest_program_verify(p, c->why) + plan_verify(p, c->why) == 0;
    if (is_good) {
        nest_program_print(&text, p);
        struct cg_request request = {.program = text.text, .target = target};
        struct cg_response r;
        jot_codegen_entry(&request, &r);
        is_good = r.status == JOT_OK;
        if (!is_good)
            strbuf_printf(c->why, "%.2000s\n", r.message);
        else if (options->many_lanes)
            is_good = is_said_by_levels(c, text.text, target, &r);
        r.release(&r);
    }
    if (!is_good) {
        strbuf_printf(c->why, "%s, for %s\n%s", what, target,
                      ir_graph_text(ir_function(c->m, f)));
        schedule_print(c->why, p);
    }
    return is_good;
}

// A failure is compiled many times on its way to the smallest.
static bool compiles(struct checker *c, uint32_t f, const char *what, const char *target,
                     const struct schedule_options *options)
{
    struct arena *arena = arena_create();
    bool is_good = compiles_in(arena, c, f, what, target, options);
    arena_release(arena);
    return is_good;
}

static bool compiles_everywhere(struct checker *c, uint32_t f, const char *what)
{
    struct schedule_options host = {.price = map_price_of_all}, gpu = schedule_options_of(true);
    f = check_final(c, f);
    uint32_t on_gpu = pass_three_products(c->m, pass_relu_masks(c->m, f));
    int first = (int)(opcase_random(&c->state) * HOSTS);
    int second = HOSTS + (int)(opcase_random(&c->state) * (TARGETS - HOSTS));
    return compiles(c, f, what, targets[first], &host) &&
           compiles(c, on_gpu, what, targets[second], &gpu);
}

bool check_compiles(struct checker *c)
{
    bool *floats = arena_array(c->m->arena, bool, c->g->n_params + 1), any = false;
    uint32_t back;
    for (uint32_t i = 0; i < c->g->n_params; i++)
        any |= floats[i] = dtype_is_inexact(ir_dtype_of(c->g, i));
    if (!compiles_everywhere(c, c->f, "the program"))
        return false;
    if (!any || !(c->kind & PROGRAM_DERIVABLE))
        return true;
    if (pass_vjp(c->m, c->f, floats, &back) != JOT_OK)
        return check_refuse(c, "vjp");
    return compiles_everywhere(c, back, "its gradient");
}
