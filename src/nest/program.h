// SPDX-License-Identifier: Apache-2.0
// Programs: the steps, kernels among them, and the memories that they read and write.
#ifndef NEST_PROGRAM_H
#define NEST_PROGRAM_H

#include "base/collective.h"
#include "nest/nest.h"

// A scheduled program: kernels and library calls over buffers, in order, and loops and branches
// around them.  Its memory is planned: temporaries have offsets in one arena.
//
// Rows and turns are other memories seen from a trip of a loop, the number `loop`: row `trip` of a
// stacked array (from the end with reverse), and the one of several memories whose turn it is,
// of[(index + trip) % n_of].  What a carry is made anew in is exchanged with the carry from
// trip to trip in this way, and nothing is copied.  After its loop a turn stays where the last
// trip left it.
enum nest_memory_kind {
    NEST_INPUT,
    NEST_OUTPUT,
    NEST_CONSTANT,
    NEST_TEMPORARY,
    NEST_ROW,
    NEST_TURN
};

struct nest_memory {
    enum nest_memory_kind kind;
    jot_dtype dtype;
    int64_t count;
    uint32_t index;   // INPUT, OUTPUT: which; TURN: at the first trip
    const void *data; // CONSTANT: its bytes
    uint64_t offset;  // TEMPORARY: in the arena; CONSTANT: in the constant block
    const char *name; // for printing
    uint32_t loop;    // ROW, TURN
    bool reverse;     // ROW
    uint32_t n_of;    // ROW: 1; TURN: any number
    const uint32_t *of;
};

// Steps from LOOP, WHILE or BRANCH to their END are its body; bodies nest.
//
//     loop            trips times
//     while           until a test of it fails, at most trips times
//     test            leaves the while around when its flag, bool[1], is false
//     branch          the case numbered by its operand, i32[1], the first or last when there is none
//     case            where each of the cases begins
//     collective      what the devices of the program's mesh do together (base/collective.h)
enum nest_step_kind {
    NEST_STEP_KERNEL,
    NEST_STEP_GEMM,
    NEST_STEP_COPY,
    NEST_STEP_LIBRARY,
    NEST_STEP_CHECK,
    NEST_STEP_CALLBACK,
    NEST_STEP_COLLECTIVE,
    NEST_STEP_LOOP,
    NEST_STEP_WHILE,
    NEST_STEP_TEST,
    NEST_STEP_BRANCH,
    NEST_STEP_CASE,
    NEST_STEP_END
};
#define NEST_NO_BOUND (-1)

enum nest_activation { NEST_LINEAR, NEST_RELU, NEST_GELU };

// c[batch, m, n] = activation(alpha a b + addend + bias): strides in elements; a is [m, k] unless
// transpose_a, b is [k, n] unless transpose_b; an addend lies as c does, a bias is of n numbers.
struct nest_gemm {
    jot_dtype dtype, operands; // of c; of a and b, where it may be narrower (dtype_multiplies)
    bool transpose_a, transpose_b, has_bias, has_addend;
    bool is_symmetric; // c is, but for rounding
    enum nest_activation activation;
    int precision; // what dot_general allows
    double alpha;
    int64_t m, n, k, lda, ldb, ldc;
    int64_t batch[4], stride_a[4], stride_b[4], stride_c[4];
};

// Elements of a memory, one after the other.
struct nest_range {
    int64_t first, count;
};

struct nest_step {
    enum nest_step_kind kind;
    uint32_t nest;         // KERNEL: number in program->nests
    struct nest_gemm gemm; // GEMM: memories a, b, c, and the bias and the addend it has
    uint32_t loop;         // LOOP, WHILE: its number
    int64_t trips;         // LOOP; WHILE: the most, or NEST_NO_BOUND
    uint32_t
        n_memories; // KERNEL: one per IN or OUT buffer of the nest, in order; COPY: to, from;
    // COLLECTIVE: to, from; LIBRARY: n_reads operands, then results; CHECK: bool of any count, then i64[1], the trips
    // of the loops around it
    const uint32_t *memories;
    const struct nest_range
        *ranges; // COLLECTIVE, LIBRARY, KERNEL: what it uses of each memory; NULL: all
    // LIBRARY: the routine, CALLBACK: its name; COLLECTIVE: what messages call it; CHECK: what the message says before the index.
    const char *text;
    uint32_t n_reads; // LIBRARY
    bool in_place;    // LIBRARY: the first result may have the memory of the first operand
    uint32_t n_params;
    // LIBRARY: what the routine takes (library.c); COLLECTIVE: as collective_read takes it.
    // CHECK: the extents of what must hold.  CALLBACK: its number, how many operands and how many
    // results there are, how many axes are lanes, then dtype, rank and extents of every memory; then how
    // many of the operands, the last ones, are trips and how many lanes for the message of a failure, and of
    // which axis each lane is.
    const int64_t *params;
    const char *place;  // in the user's source, of what it computes; NULL: not said
    const char *reason; // why it is a step of its own, for the printed schedule
};

struct nest_program {
    struct arena *arena;
    const char *name;
    uint32_t n_inputs, n_outputs;
    uint32_t n_loops;
    VEC(struct nest *) nests; // equal kernels appear once
    VEC(struct nest_memory) memories;
    VEC(struct nest_step) steps;
    bool is_planned; // memories have their offsets
    uint64_t arena_bytes, constant_bytes;
    int32_t *donated;   // per output: the donated input whose memory it takes, or -1
    uint32_t mesh_rank; // of the mesh whose devices all run the program; 0: one device does
    int64_t mesh[COLLECTIVE_MESH_RANK]; // sizes
};

// Text form, exact round trip: everything a code generator needs.  The first line is "jot nest 1".
void nest_program_print(struct strbuf *s, const struct nest_program *p);
jot_status nest_program_parse(struct arena *arena, const char *text, struct nest_program **out);
// Number of faults of the kernels, the steps and the memories; a line each in *report.
int nest_program_verify(const struct nest_program *p, struct strbuf *report);

const char *nest_step_name(enum nest_step_kind kind);
static inline bool nest_step_loops(const struct nest_step *t)
{
    return t->kind == NEST_STEP_LOOP || t->kind == NEST_STEP_WHILE;
}
// Whether a step opens a body that its END closes.
static inline bool nest_step_opens(const struct nest_step *t)
{
    return nest_step_loops(t) || t->kind == NEST_STEP_BRANCH;
}
// The END of the body that step i opens.
uint32_t nest_step_end(const struct nest_program *p, uint32_t i);
// The first step of the body that step i, a loop, opens that only the host does; NEST_NONE when
// all are kernels, products, copies and control, no more than COST_STEP_DEPTH deep in one another.
// The loop is then one function of phases.
uint32_t nest_loop_obstacle(const struct nest_program *p, uint32_t i);
// Whether step i opens such a loop.
static inline bool nest_loop_is_phases(const struct nest_program *p, uint32_t i)
{
    return nest_step_loops(&p->steps.at[i]) && nest_loop_obstacle(p, i) == NEST_NONE;
}
// How a GPU runs the loop that step i opens: step by step (launches, graphs of them, with a part of
// the host where it has one), or as one kernel, of one block of threads or of as many as it holds.
enum nest_loop_class { NEST_LOOP_STEPS, NEST_LOOP_BLOCK, NEST_LOOP_GRID };
enum nest_loop_class nest_loop_on_gpu(const struct nest_program *p, uint32_t i,
                                      const char **out_why);
// Whether a GPU runs the while that step i opens as a node of a graph, no flag of which the host reads.
bool nest_loop_is_node(const struct nest_program *p, uint32_t i);
static inline bool nest_loop_is_resident(const struct nest_program *p, uint32_t i)
{
    const char *why;
    return nest_step_loops(&p->steps.at[i]) && nest_loop_on_gpu(p, i, &why) != NEST_LOOP_STEPS;
}
// Whether memory m is a row or a turn of others.
static inline bool nest_memory_is_view(const struct nest_memory *m)
{
    return m->kind == NEST_ROW || m->kind == NEST_TURN;
}
// The number of a buffer among the memories of a step, which locals have none of, and the buffer of a number.
uint32_t nest_argument_of(const struct nest *n, nest_id buffer);
nest_id nest_buffer_of(const struct nest *n, uint32_t argument);
// Whether memory m is memory `of`, or part of it in some trip.
bool nest_memory_shows(const struct nest_program *p, uint32_t m, uint32_t of);
// Whether memories a and b, or parts of them, are one in some trip.
bool nest_memory_meets(const struct nest_program *p, uint32_t a, uint32_t b);
// Whether two ranges of one memory share an element.
static inline bool nest_ranges_meet(struct nest_range x, struct nest_range y)
{
    return x.first < y.first + y.count && y.first < x.first + x.count;
}
// What step t uses of its memory k.
struct nest_range nest_step_range(const struct nest_program *p, const struct nest_step *t,
                                  uint32_t k);

#endif
