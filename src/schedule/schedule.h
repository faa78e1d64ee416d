// SPDX-License-Identifier: Apache-2.0
// From a graph to kernels: grouping, loops, memory.
//
//     struct nest_program *p;
//     JOT_TRY(pass_schedule(arena, graph, &(struct schedule_options){0}, &p));
//
// The graph is canonical and simplified; calls that are left in it are inlined.  Inputs of the
// program are the parameters, outputs are the outputs.  The program lives in the arena and
// borrows nothing of the graph but the data of constants, which live as long as the module.
#ifndef SCHEDULE_SCHEDULE_H
#define SCHEDULE_SCHEDULE_H

#include "ir/graph.h"
#include "nest/program.h"

// Whether a value that several kernels want is stored or computed in each: by its price, or, where measuring
// says so (trace/native_tune.c), rather stored, or rather computed again.  No bit depends on it.
enum schedule_repeat { SCHEDULE_PRICED, SCHEDULE_STORES, SCHEDULE_REPEATS };
#define SCHEDULE_REPEAT_KINDS (SCHEDULE_REPEATS + 1)

struct schedule_options {
    bool separate; // every value in a kernel of its own, nothing fused, and steps: for tests
    bool no_gemm;  // products stay in kernels
    bool steps;    // no loop or branch is one kernel: for tests
    bool large;    // decides as if all extents were large: for tests
    // The library takes half types, adds to products what stands beside them, and puts biases and
    // activations behind them (epilogue.c).
    bool rich_gemm;
    // A sum over points is a kernel of loops of its own, and so is a layer, unless all layers of a
    // network and what they need are one kernel over its points.
    bool no_accumulation;
    bool has_convolutions; // those that are there are the routine's (pass_expand_convolutions)
    bool one_loop;        // a kernel is one loop where that is more parallel (fission.c): a GPU
    bool many_lanes;      // elements are lanes where they can be: a GPU has a thread for each
    bool early_exchanges; // of devices, which run beside kernels: a GPU
    bool verifies;        // graphs and programs after every pass, and the plan
    bool says_places;     // steps have the places of what they compute
    enum schedule_repeat repeat;
    // What a processor takes for a kernel, which it may change on the way, in scalar operations of a core (map/map.h);
    // NULL: nobody asks.
    int64_t (*price)(struct nest *n);
    // Nanoseconds of a kernel of a GPU, which it leaves as it is (fission.c); NULL: nobody asks.
    int64_t (*gpu_price)(const struct nest *n);
    // Writes into the nests who does what, before memory is planned, and verifies that; NULL: nobody does.
    jot_status (*map)(struct nest_program *p, void *ctx);
    void *map_ctx;
    const bool *donated; // by input, may be NULL: its memory may be overwritten
    uint32_t mesh_rank;  // of the mesh whose devices all run the program; 0: one device does
    const int64_t *mesh;
};

// What a kind of device wants of every program.
static inline struct schedule_options schedule_options_of(bool is_gpu)
{
    return (struct schedule_options){.rich_gemm = is_gpu,
                                     .no_accumulation = is_gpu,
                                     .one_loop = is_gpu,
                                     .many_lanes = is_gpu};
}

jot_status pass_schedule(struct arena *arena, const struct ir_graph *g,
                         const struct schedule_options *options, struct nest_program **out);

// Calls a host (struct ir_host) with the memories and the params of a NEST_STEP_CALLBACK.
jot_status schedule_call_host(void *host, void *const *buffers, const int64_t *params);

// Lays out the temporaries and constants of a program and decides which outputs take the memory of
// donated inputs (donated may be NULL).
void plan_memory(struct nest_program *p, const bool *donated, bool runs_beside);

// Replays the steps on the memory plan: a temporary that is read before it is written or after
// something else was put in its place is a fault, and so is a write to an input that is still
// read.  Returns the number of faults, a line each in *report (may be NULL).
int plan_verify(const struct nest_program *p, struct strbuf *report);

// Who has what memory when, and which copies are made and why (JOT_DUMP=memory).
void plan_print(struct strbuf *s, const struct nest_program *p);

// The steps with their reasons, then the kernels (JOT_DUMP=schedule).
void schedule_print(struct strbuf *s, const struct nest_program *p);
// The same of a GPU: before them the steps that its host waits for, between which those that follow
// one another are graphs.
void schedule_print_gpu(struct strbuf *s, const struct nest_program *p);

#endif
