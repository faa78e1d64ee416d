// SPDX-License-Identifier: Apache-2.0
// The order of the passes: of a graph that is traced and differentiated, and of the program that it is scheduled to.
#include "schedule/pipeline.h"

#include "base/status.h"
#include "base/strbuf.h"
#include "base/timeline.h"
#include "ir/cost.h"
#include "passes/passes.h"
#include "schedule/copies.h"
#include "schedule/internal.h"
#include "schedule/kernels/points.h"
#include "schedule/library/library.h"
#include "schedule/rewrites.h"

// ---- Graphs

enum { HOST = 1 << 0, GPU = 1 << 1, MESH = 1 << 2, ALL = HOST | GPU };

static uint32_t expand_convolutions(struct ir_module *m, uint32_t f,
                                    const struct pass_target *target)
{
    return pass_expand_convolutions(m, f, target->convolutions);
}

static uint32_t inline_calls(struct ir_module *m, uint32_t f, const struct pass_target *target)
{
    (void)target;
    return pass_inline(m, f, COST_INLINE);
}

// A pass is for the host, for GPUs or for both; one of MESH runs where several devices do the program.
static const struct stage {
    const char *name;
    unsigned where;
    uint32_t (*pass)(struct ir_module *m, uint32_t f);
    uint32_t (*pass_for)(struct ir_module *m, uint32_t f, const struct pass_target *target);
} stages[] = {
    {"expand_convolutions", ALL, .pass_for = expand_convolutions},
    {"simplify", ALL, .pass = pass_simplify},
    {"inline", ALL, .pass_for = inline_calls},
    {"simplify", MESH, .pass = pass_simplify},
    {"pack_exchanges", MESH, .pass = pass_pack_exchanges},
    {"sort_updates", GPU, .pass = pass_sort_updates},
    {"count_trips", ALL, .pass = pass_count_trips},
    {"hoist", ALL, .pass = pass_hoist},
    {"loop_products", ALL, .pass = pass_loop_products},
    {"loop_folds", GPU, .pass = pass_loop_folds},
    {"half_products", HOST, .pass = pass_half_products},
    {"simplify", ALL, .pass = pass_simplify},
    {"while_lanes", ALL, .pass = pass_while_lanes},
    {"predictive_commoning", ALL, .pass = pass_predictive_commoning},
    {"simplify", ALL, .pass = pass_simplify},
    {"relu_masks", GPU, .pass = pass_relu_masks},
    {"long_products", GPU, .pass = pass_long_products},
    {"three_products", GPU, .pass = pass_three_products},
};

jot_status pass_verify(const struct ir_graph *g, const char *name)
{
    struct strbuf report = strbuf_make(g->module->arena);
    if (!ir_verify(g, &report))
        return JOT_OK;
    return status_fail(JOT_ERR_INTERNAL, "the pass %s leaves a graph that is wrong: %s", name,
                       report.text);
}

jot_status pass_pipeline(struct ir_module *m, uint32_t f, const struct pass_target *target,
                         uint32_t *out)
{
    unsigned where = (target->is_gpu ? GPU : HOST) | (target->is_on_mesh ? MESH : 0);
    uint32_t simplified = IR_NONE;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        const struct stage *s = &stages[i];
        if (!(s->where & where) || (s->pass == pass_simplify && f == simplified))
            continue;
        int64_t since = timeline_begin();
        f = s->pass ? s->pass(m, f) : s->pass_for(m, f, target);
        timeline_end(since, &(struct timeline_event){.kind = "pass", .name = s->name});
        simplified = s->pass == pass_simplify ? f : simplified;
        if (target->verifies)
            JOT_TRY(pass_verify(ir_function(m, f), s->name));
    }
    *out = f;
    return JOT_OK;
}

// ---- Programs

// What options must say for a pass to be made.
enum {
    FUSED = 1 << 0,
    ONE_LOOP = 1 << 1,
    RICH_PRODUCTS = 1 << 2,
    ACCUMULATING = 1 << 3,
    EARLY_EXCHANGES = 1 << 4
};

static unsigned wishes_of(const struct schedule_options *o)
{
    return (o->separate ? 0 : FUSED) | (o->one_loop ? ONE_LOOP : 0) |
           (o->rich_gemm ? RICH_PRODUCTS : 0) | (o->no_accumulation ? 0 : ACCUMULATING) |
           (o->early_exchanges ? EARLY_EXCHANGES : 0);
}

static void points(struct nest_program *p, struct arena *scratch,
                   const struct schedule_options *options)
{
    schedule_points(p, scratch, options->one_loop ? COST_POINTS_ALONE : 0);
}

static void fission(struct nest_program *p, struct arena *scratch,
                    const struct schedule_options *options)
{
    (void)scratch;
    schedule_fission(p, options);
}

static void share_kernels(struct nest_program *p, struct arena *scratch,
                          const struct schedule_options *options)
{
    (void)scratch;
    schedule_share_kernels(p, options->large);
}

static const struct program_stage {
    const char *name;
    unsigned needs;
    void (*pass)(struct nest_program *p);
    void (*pass_in)(struct nest_program *p, struct arena *scratch);
    void (*pass_for)(struct nest_program *p, struct arena *scratch,
                     const struct schedule_options *options);
} program_stages[] = {
    {"points", FUSED | ACCUMULATING, .pass_for = points},
    {"put_copies", FUSED, .pass_in = schedule_put_copies},
    {"fuse_maps", FUSED | ONE_LOOP, .pass_in = schedule_fuse_maps},
    {"epilogue", RICH_PRODUCTS, .pass = epilogue_products},
    {"attention_join", RICH_PRODUCTS, .pass = attention_join},
    {"fission", ONE_LOOP, .pass_for = fission},
    {"loads_first", ONE_LOOP, .pass_in = schedule_loads_first},
    {"share_kernels", 0, .pass_for = share_kernels},
    {"ranges", FUSED, .pass_in = schedule_ranges},
    {"narrow_parts", EARLY_EXCHANGES, .pass = schedule_narrow_parts},
    {"sort_memories", 0, .pass = schedule_sort_memories},
    {"layout_products", 0, .pass = layout_products},
};

// The kernels; the rest of a program is whole when its memories are in order.
static int verify_kernels(const struct nest_program *p, struct strbuf *report)
{
    int faults = 0;
    for (uint32_t i = 0; i < p->nests.count; i++)
        faults += nest_verify(p->nests.at[i], report);
    return faults;
}

static jot_status verify_with(int verify(const struct nest_program *, struct strbuf *),
                              const struct schedule_options *options,
                              const struct nest_program *p, const char *name)
{
    struct strbuf report = strbuf_make(p->arena);
    if (!options->verifies || !verify(p, &report))
        return JOT_OK;
    return status_fail(JOT_ERR_INTERNAL, "the pass %s leaves a program that is wrong: %s", name,
                       report.text);
}

jot_status pass_verify_program(const struct schedule_options *options,
                               const struct nest_program *p, const char *name)
{
    return verify_with(nest_program_verify, options, p, name);
}

jot_status pass_program_pipeline(struct nest_program *p, struct arena *scratch,
                                 const struct schedule_options *options)
{
    JOT_TRY(verify_with(verify_kernels, options, p, "schedule"));
    for (size_t i = 0; i < sizeof program_stages / sizeof *program_stages; i++) {
        const struct program_stage *s = &program_stages[i];
        if (s->needs & ~wishes_of(options))
            continue;
        int64_t since = timeline_begin();
        if (s->pass)
            s->pass(p);
        else if (s->pass_in)
            s->pass_in(p, scratch);
        else
            s->pass_for(p, scratch, options);
        timeline_end(since, &(struct timeline_event){.kind = "pass", .name = s->name});
        JOT_TRY(verify_with(verify_kernels, options, p, s->name));
    }
    return pass_verify_program(options, p, "layout_products or one before it");
}
