// SPDX-License-Identifier: Apache-2.0
// How a GPU runs a loop of steps.  Measured on one with 132 multiprocessors: a trip of a graph of
// launches takes 1.2 us, of a kernel whose blocks wait for one another 1.4 us, of one block that
// does 100 000 units of work 1.6 us, and of a loop whose flag the host reads 20 us.
#include "base/launch.h"
#include "ir/cost.h"
#include "nest/program.h"

#include <math.h>

static double larger(double x, double y) { return x > y ? x : y; }

static double step_work(const struct nest_program *p, const struct nest_step *t)
{
    if (t->kind == NEST_STEP_KERNEL)
        return nest_work(p->nests.at[t->nest], 0);
    return t->kind == NEST_STEP_COPY ? (double)p->memories.at[t->memories[0]].count : 0;
}

// Elements that the statements of a block read and write, by buffer, so many times over.
static void count_accesses(const struct nest *n, uint32_t block, double times, double *accesses)
{
    nest_for_each (s, n, block) {
        double turns = times;
        for (uint32_t k = 0; k < s->n_axes; k++)
            turns *= (double)n->axes.at[s->axes[k]].extent;
        if (s->kind == NEST_LOAD || s->kind == NEST_PUT)
            accesses[s->buffer] += turns;
        count_accesses(n, s->body, turns, accesses);
        count_accesses(n, s->other, turns, accesses);
    }
}

// ---- Time

// Reads of memory in the block that wait for one another, at most: `of` has as many for each value.
static double reads_in_turn(const struct nest *n, uint32_t block, double *of)
{
    double most = 0;
    nest_for_each (s, n, block) {
        double own = 0;
        bool is_at_data = false;
        for (uint32_t k = 0; k < s->n_in; k++)
            own = larger(own, of[s->in[k]]);
        if (s->kind == NEST_LOAD) {
            for (uint32_t k = 0; k < s->index.count; k++)
                if (s->index.terms[k].is_value) {
                    own = larger(own, of[s->index.terms[k].id]);
                    is_at_data = true;
                }
            own = n->buffers.at[s->buffer].role == NEST_LOCAL ? own
                  : is_at_data                                ? own + 1
                                                              : larger(own, 1);
        }
        double inner = larger(reads_in_turn(n, s->body, of), reads_in_turn(n, s->other, of));
        // A step of a loop over time reads where the one before it has found.
        if (s->kind == NEST_SEQ && inner > 1)
            inner *= (double)nest_extent(n, s);
        own = larger(own, inner);
        for (uint32_t k = 0; k < s->n_results; k++)
            of[s->result + k] = own;
        most = larger(most, own);
    }
    return most;
}

// Whether all that the block reads lies side by side, as what a thread reads at once does.
static bool reads_vectors(const struct nest *n, uint32_t block)
{
    nest_for_below (s, n, block)
        if (s->kind == NEST_LOAD && nest_index_has_values(&s->index))
            return false;
    return true;
}

// Microseconds of a kernel in which so many threads wait for what they read, each for one vector after the other.
static double waiting_time(const struct nest *n, double threads)
{
    enum { WRITTEN_OUT = 8 }; // inner elements that a thread reads together
    struct arena_mark mark = arena_mark(n->arena);
    double us = 0, *of = arena_array(n->arena, double, n->values.count + 1);
    nest_for_each (s, n, 0) {
        double reads = larger(reads_in_turn(n, s->body, of), 1);
        double own = reads_vectors(n, s->body) ? 4 : 1;
        double inner = larger(nest_turns(n, s->body) / WRITTEN_OUT, 1);
        if (s->n_axes)
            us +=
                ceil((double)nest_extent(n, s) * inner / own / threads) * reads * COST_READ_US;
    }
    arena_rewind(n->arena, mark);
    return us;
}

// Microseconds that the step takes all of a GPU, about.
static double step_time(const struct nest_program *p, const struct nest_step *t)
{
    double bytes = 0, work = step_work(p, t) / COST_WORK_PER_US;
    if (t->kind == NEST_STEP_COPY)
        return 2 * (double)p->memories.at[t->memories[0]].count *
               (double)jot_dtype_size(p->memories.at[t->memories[0]].dtype) / COST_BYTES_PER_US;
    if (t->kind != NEST_STEP_KERNEL)
        return 0;
    const struct nest *n = p->nests.at[t->nest];
    struct arena_mark mark = arena_mark(n->arena);
    double *accesses = arena_array(n->arena, double, n->buffers.count + 1);
    count_accesses(n, 0, 1, accesses);
    for (uint32_t i = 0; i < n->buffers.count; i++) {
        double count = (double)n->buffers.at[i].count;
        if (n->buffers.at[i].role != NEST_LOCAL)
            bytes += (accesses[i] < count ? accesses[i] : count) *
                     (double)jot_dtype_size(n->buffers.at[i].dtype);
    }
    arena_rewind(n->arena, mark);
    return bytes / COST_BYTES_PER_US > work ? bytes / COST_BYTES_PER_US : work;
}

// Microseconds that the step takes longer as a phase than as a kernel of its own, which has more threads.
static double time_lost(const struct nest_program *p, const struct nest_step *t)
{
    if (t->kind != NEST_STEP_KERNEL)
        return 0;
    const struct nest *n = p->nests.at[t->nest];
    double least = step_time(p, t), work = step_work(p, t) / COST_WORK_PER_US;
    double resident = waiting_time(n, COST_RESIDENT_THREADS * (double)COST_MULTIPROCESSORS);
    double launched = waiting_time(n, COST_THREADS_OF_ONE * (double)COST_MULTIPROCESSORS);
    resident = larger(resident, COST_RESIDENT_WORK * work);
    return larger(resident, least) - larger(launched, least);
}

// How many launches the steps first .. end - 1 are when nothing but their number decides it; more
// than any graph has where the host would read a flag.
static double launches(const struct nest_program *p, uint32_t first, uint32_t end)
{
    double sum = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct nest_step *t = &p->steps.at[i];
        if (t->kind == NEST_STEP_WHILE || t->kind == NEST_STEP_BRANCH)
            return RT_GRAPH_MOST + 1;
        sum += t->kind == NEST_STEP_KERNEL || t->kind == NEST_STEP_COPY;
        if (t->kind != NEST_STEP_LOOP)
            continue;
        uint32_t last = nest_step_end(p, i);
        sum += (double)t->trips * launches(p, i + 1, last);
        i = last;
    }
    return sum;
}

// ---- Nodes of graphs

// Whether the host has no part in the steps first .. end - 1.
static bool is_captured(const struct nest_program *p, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        const struct nest_step *t = &p->steps.at[i];
        uint32_t last = nest_step_loops(t) ? nest_step_end(p, i) : i;
        bool is_loop = nest_loop_is_resident(p, i) || nest_loop_is_node(p, i) ||
                       (t->kind == NEST_STEP_LOOP && is_captured(p, i + 1, last) &&
                        launches(p, i, last + 1) <= RT_GRAPH_MOST);
        if (!is_loop && t->kind != NEST_STEP_KERNEL && t->kind != NEST_STEP_GEMM &&
            t->kind != NEST_STEP_COPY && t->kind != NEST_STEP_TEST)
            return false;
        i = last;
    }
    return true;
}

// Whether the memories that the loop moves are where they were after a few trips.
static bool comes_round(const struct nest_program *p, uint32_t loop)
{
    uint32_t turns = 1;
    for (uint32_t i = 0; i < p->memories.count; i++) {
        const struct nest_memory *m = &p->memories.at[i];
        if ((m->kind != NEST_ROW && m->kind != NEST_TURN) || m->loop != loop)
            continue;
        if (m->kind == NEST_ROW || (turns % m->n_of && m->n_of % turns))
            return false;
        turns = m->n_of > turns ? m->n_of : turns;
    }
    return turns <= RT_TURNS_MOST;
}

// Whether a graph can have the while that step i opens as a node.
static bool may_be_node(const struct nest_program *p, uint32_t i)
{
    const struct nest_step *t = &p->steps.at[i];
    return t->kind == NEST_STEP_WHILE && t->trips == NEST_NO_BOUND && comes_round(p, t->loop) &&
           is_captured(p, i + 1, nest_step_end(p, i));
}

// ---- Classes

enum nest_loop_class nest_loop_on_gpu(const struct nest_program *p, uint32_t i,
                                      const char **out_why)
{
    uint32_t obstacle = nest_loop_obstacle(p, i), end = nest_step_end(p, i);
    double most = 0, time = 0, lost = 0;
    *out_why = "its phases are short";
    if (obstacle != NEST_NONE) {
        *out_why = p->steps.at[obstacle].reason;
        return NEST_LOOP_STEPS;
    }
    for (uint32_t k = i; k < end; k++) {
        double work = step_work(p, &p->steps.at[k]), us = step_time(p, &p->steps.at[k]);
        most = larger(most, work);
        time = larger(time, us);
        lost += time_lost(p, &p->steps.at[k]);
        if (p->steps.at[k].kind == NEST_STEP_GEMM) {
            *out_why = "a product of the library";
            return NEST_LOOP_STEPS;
        }
    }
    bool is_graph = launches(p, i, end + 1) <= RT_GRAPH_MOST;
    if (most <= (is_graph ? COST_OF_BLOCK / 4 : COST_OF_BLOCK))
        return NEST_LOOP_BLOCK;
    bool is_long =
        (time > COST_LONG_PHASE || lost > COST_NODE_US) && (is_graph || may_be_node(p, i));
    *out_why = is_graph  ? "a graph of its launches is faster"
               : is_long ? "a phase is worth launches"
                         : "a phase is worth several blocks";
    return is_graph || is_long ? NEST_LOOP_STEPS : NEST_LOOP_GRID;
}

bool nest_loop_is_node(const struct nest_program *p, uint32_t i)
{
    return !nest_loop_is_resident(p, i) && may_be_node(p, i);
}
