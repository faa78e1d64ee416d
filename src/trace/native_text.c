// SPDX-License-Identifier: Apache-2.0
// What each stage made of a function, as text.
#include "trace/native_internal.h"

#include "base/status.h"
#include "map/map.h"
#include "schedule/plan/plan.h"
#include "schedule/schedule.h"
#include "trace/dump.h"

#include <string.h>

static const char *simplify_text(struct native_program *p, struct arena *arena)
{
    struct strbuf s = strbuf_make(arena);
    ir_graph_print(&s, ir_function(p->module, p->function));
    return s.text;
}

static const char *memory_text(struct native_program *p, struct arena *arena)
{
    struct strbuf s = strbuf_make(arena);
    struct nest_program *nests;
    if (native_schedule(p, arena, &nests) != JOT_OK)
        return NULL;
    plan_print(&s, nests);
    return s.text;
}

static const char *generated_text(struct native_program *p, unsigned want, struct arena *arena)
{
    struct cg_response r;
    if (native_generate(p, arena, want, NULL, &r) != JOT_OK)
        return NULL;
    struct arena_guard guard;
    if (arena_guard_left(&guard)) {
        r.release(&r);
        arena_exhausted();
    }
    const char *text = want == CG_WANT_LLVM       ? r.llvm
                       : want == CG_WANT_ASSEMBLY ? r.assembly
                                                  : r.text;
    text = arena_text(arena, text ? text : "");
    arena_guard_close(&guard);
    r.release(&r);
    return text;
}

// What kernels do by one thread of a GPU.
static void print_serial(struct strbuf *s, const struct nest_program *nests)
{
    for (uint32_t i = 0; i < nests->nests.count; i++) {
        const struct nest *n = nests->nests.at[i];
        const char *text = map_serial_text(s->arena, n);
        if (text)
            strbuf_printf(s, "# by one thread: kernel %s%s%s: %s\n", n->name,
                          n->place ? " at " : "", n->place ? n->place : "", text);
    }
}

// The nests with the levels of a processor, as far as there is a code generator to give them.
static void take_levels(struct native_program *p, struct arena *arena,
                        struct nest_program *nests)
{
    const char *text = generated_text(p, CG_WANT_MAPPED, arena);
    struct nest_program *mapped;
    if (!text || nest_program_parse(arena, text, &mapped) != JOT_OK)
        return;
    for (uint32_t i = 0; i < nests->nests.count; i++) {
        mapped->nests.at[i]->place = nests->nests.at[i]->place;
        nests->nests.at[i] = mapped->nests.at[i];
    }
}

static const char *schedule_text(struct native_program *p, struct arena *arena)
{
    struct nest_program *nests;
    struct strbuf s = strbuf_make(arena);
    if (native_schedule(p, arena, &nests) != JOT_OK)
        return NULL;
    if (p->device->type->kind == JOT_CUDA) {
        print_serial(&s, nests);
        schedule_print_gpu(&s, nests);
        return s.text;
    }
    take_levels(p, arena, nests);
    schedule_print(&s, nests);
    return s.text;
}

static const char *llvm_text(struct native_program *p, struct arena *arena)
{
    return generated_text(p, CG_WANT_LLVM, arena);
}

static const char *code_text(struct native_program *p, struct arena *arena)
{
    return generated_text(p, CG_WANT_ASSEMBLY, arena);
}

#define STAGE(name) {#name, name##_text},
static const struct stage {
    const char *name;
    const char *(*text)(struct native_program *p, struct arena *arena);
} stages[] = {DUMP_CODE_STAGES(STAGE)};

#define COMMA_AND(name) ", " #name

const char *native_text(struct native_program *p, const char *stage, struct arena *arena)
{
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        if (!strcmp(stage, stages[i].name))
            return stages[i].text(p, arena);
    status_fail(JOT_ERR_ARGUMENT,
                "jot_executable_text: there is no stage '%s', only "
                "trace" DUMP_CODE_STAGES(COMMA_AND),
                stage);
    return NULL;
}

void native_dump(struct native_program *p, struct arena *arena)
{
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        if (dump_wants(stages[i].name)) {
            const char *text = stages[i].text(p, arena);
            dump_text(stages[i].name, ir_function(p->module, p->function)->name,
                      text ? text : jot_error_message());
        }
}
