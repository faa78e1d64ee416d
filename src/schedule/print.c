// SPDX-License-Identifier: Apache-2.0
// The text of a program: its steps with their reasons, and what a GPU does of it.
#include "schedule/internal.h"

#include "base/collective.h"
#include "schedule/plan/plan.h"

#include <string.h>

// How a loop of steps runs, and why not better.
static void print_loop(struct strbuf *s, const struct nest_program *p, uint32_t i)
{
    uint32_t obstacle = nest_loop_obstacle(p, i);
    bool is_phases = obstacle == NEST_NONE;
    const char *reason = p->steps.at[is_phases ? i : obstacle].reason;
    strbuf_printf(s, ": %s (%s)\n", is_phases ? "phases" : "steps", reason ? reason : "");
}

void schedule_print(struct strbuf *s, const struct nest_program *p)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const struct nest_step *step = &p->steps.at[i];
        depth -= step->kind == NEST_STEP_END;
        strbuf_printf(s, "# step %u:", i);
        strbuf_indent(s, depth);
        strbuf_printf(s, " %s", nest_step_name(step->kind));
        depth += nest_step_opens(step);
        if (nest_step_loops(step)) {
            print_loop(s, p, i);
            continue;
        }
        if (step->kind == NEST_STEP_KERNEL)
            strbuf_printf(s, " %s", p->nests.at[step->nest]->name);
        if (step->kind == NEST_STEP_COLLECTIVE)
            strbuf_printf(s, " %s", step->text);
        strbuf_printf(s, " (%s)\n", step->reason ? step->reason : "");
    }
    nest_program_print(s, p);
}

// How the loops that a GPU runs whole do, and the others.
static void print_gpu_loops(struct strbuf *s, const struct nest_program *p)
{
    static const char *const names[] = {[NEST_LOOP_STEPS] = "steps",
                                        [NEST_LOOP_BLOCK] = "one block",
                                        [NEST_LOOP_GRID] = "blocks that wait for one another"};
    for (uint32_t i = 0; i < p->steps.count; i++) {
        const char *why;
        if (!nest_step_loops(&p->steps.at[i]))
            continue;
        enum nest_loop_class c = nest_loop_on_gpu(p, i, &why);
        strbuf_printf(s, "# on the GPU: step %u, %s: %s (%s)\n", i,
                      nest_step_name(p->steps.at[i].kind),
                      nest_loop_is_node(p, i) ? "a node of a graph" : names[c], why ? why : "");
        if (c != NEST_LOOP_STEPS)
            i = nest_step_end(p, i);
    }
}

// Whether a GPU takes the routine down in a graph, where it has the library for it.
static bool is_recorded(const char *routine)
{
#define ROUTINE(name, recorded)                                                                \
    if (!strcmp(routine, #name))                                                               \
        return recorded;
#include "base/gpu_routines.def"
#undef ROUTINE
    return false;
}

// Why the host has a part in step i of a GPU, or NULL.
static const char *part_of_host(const struct nest_step *t)
{
    switch (t->kind) {
    case NEST_STEP_TEST:
        return "the host reads whether a loop goes on";
    case NEST_STEP_BRANCH:
        return "the host reads which case it is";
    case NEST_STEP_CHECK:
        return "the host reads flags";
    case NEST_STEP_LIBRARY:
        return is_recorded(t->text) ? NULL : t->text;
    case NEST_STEP_CALLBACK:
        return "a function of the user's";
    default:
        return NULL;
    }
}

// The steps that a collective runs beside.
static void print_beside(struct strbuf *s, const struct nest_program *p, uint32_t i)
{
    uint32_t end = plan_beside_end(p, i), n = 0;
    for (uint32_t k = i + 1; k < end; k++)
        if (p->steps.at[k].kind != NEST_STEP_COLLECTIVE)
            strbuf_printf(s, "%s %u", n++ ? "," : "; beside", k);
}

static void print_collective(struct strbuf *s, const struct nest_program *p, uint32_t i)
{
    const struct nest_step *t = &p->steps.at[i];
    const struct nest_memory *to = &p->memories.at[t->memories[0]];
    const struct nest_memory *from = &p->memories.at[t->memories[1]];
    uint64_t size = jot_dtype_size(to->dtype);
    struct collective c;
    collective_read(t->params, t->n_params, p->mesh_rank, p->mesh, &c);
    bool is_small = collective_part(&c, (uint64_t)to->count * size,
                                    (uint64_t)from->count * size) <= COLLECTIVE_SMALL;
    strbuf_printf(s, "# together: step %u, %s (%s", i, t->text,
                  is_small ? "a kernel over the memory of other GPUs, else NCCL" : "NCCL");
    print_beside(s, p, i);
    strbuf_add(s, ")\n");
}

void schedule_print_gpu(struct strbuf *s, const struct nest_program *p)
{
    print_gpu_loops(s, p);
    for (uint32_t i = 0; i < p->steps.count; i++) {
        if (nest_loop_is_resident(p, i) || nest_loop_is_node(p, i))
            i = nest_step_end(p, i);
        if (p->steps.at[i].kind == NEST_STEP_COLLECTIVE)
            print_collective(s, p, i);
        const char *why = part_of_host(&p->steps.at[i]);
        if (why)
            strbuf_printf(s, "# not in a graph: step %u, %s (%s)\n", i,
                          nest_step_name(p->steps.at[i].kind), why);
    }
    schedule_print(s, p);
}
