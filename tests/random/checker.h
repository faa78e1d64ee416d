// SPDX-License-Identifier: Apache-2.0
// The parts of program_check.
#ifndef RANDOM_CHECKER_H
#define RANDOM_CHECKER_H

#include "nest/program.h"
#include "passes/passes.h"
#include "random/programs.h"

struct checker {
    struct ir_module *m;
    uint32_t f;
    const struct ir_graph *g;
    const struct ir_tensor *in, *out;
    uint64_t state;
    unsigned kind;
    struct strbuf *why;
};

static inline size_t check_bytes(const struct ir_module *m, struct ir_type t)
{
    return (size_t)ir_count(m, t) * jot_dtype_size(ir_dtype(t));
}

// False, and why: what, and the message of the thread.
bool check_refuse(struct checker *c, const char *what);
// The results of the evaluator, NULL when it fails.
struct ir_tensor *check_run(struct checker *c, const struct ir_graph *g,
                            const struct ir_tensor *in);
// What f is when it is scheduled.
uint32_t check_final(struct checker *c, uint32_t f);
// Whether these are the results of the program.
bool check_outputs(struct checker *c, const char *what, const struct ir_tensor *got);
// Whether running it takes no longer than so many statements.
bool check_is_quick(const struct nest_program *p, double limit);
// Whether a GPU adds in another order than the evaluator (docs/numerics.md): running folds by chunks.
bool check_has_chunks(const struct nest_program *p);
// Runs the steps of a program for the graph.
jot_status check_interpret(struct checker *c, const struct nest_program *p,
                           struct ir_tensor **out);
// Any price of a kernel (schedule_options), so that any values are apart.
int64_t check_price(struct nest *n);
// Which parameters of g are f64, and derivatives are taken in.
bool *check_floats(struct checker *c, const struct ir_graph *g);

// Properties by their names in programs.h.
bool check_transposes(struct checker *c);
bool check_maps(struct checker *c);
bool check_commutes(struct checker *c);
bool check_unrolls(struct checker *c);
bool check_keeps(struct checker *c);
bool check_machine(struct checker *c);
bool check_compiles(struct checker *c);
bool check_devices(struct checker *c);
bool check_shares(struct checker *c);

#endif
