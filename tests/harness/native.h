// SPDX-License-Identifier: Apache-2.0
// The evaluator, the interpreter of nests and machine code on the same functions and operands.
//
//     struct native n = native_make(module, &report);
//     native_add(&n, "tanh f32[3]", f, in, &(struct native_how){.no_gemm = true});
//     ...
//     int failures = native_finish(&n);
//
// Compiling costs more than running, so functions are compiled together, many to a program, in a
// child process; when one of them crashes it is found by running each alone.
#ifndef HARNESS_NATIVE_H
#define HARNESS_NATIVE_H

#include "ir/eval.h"
#include "schedule/schedule.h"

struct native_how {
    bool separate, steps, gemm; // schedule options; without gemm products stay in kernels
    bool interpret;             // the interpreter of nests too
    bool threads;               // with 2 and 7 threads of the host too
    double tolerance;           // relative; 0: the same bits, or what routines may be off
};

struct native_case {
    const char *what;
    const struct ir_graph *g;
    const struct ir_tensor *in;
    const struct ir_tensor *want;
    struct nest_program *program;
    struct native_how how;
};

struct native {
    struct ir_module *module;
    struct strbuf *report;
    int failures;
    uint32_t done;   // cases compared
    uint32_t weight; // kernels waiting
    VEC(struct native_case) cases;
};

struct native native_make(struct ir_module *m, struct strbuf *report);
void native_add(struct native *n, const char *what, uint32_t f, const struct ir_tensor *in,
                const struct native_how *how);
// Runs what waits.  Returns the number of failures so far.
int native_finish(struct native *n);

// Whether two tensors are the same: equal bits, or both NaN; with a tolerance, close relative to
// the largest element.  A line about the first difference goes to *report (may be NULL).
bool native_same(const struct ir_module *m, struct ir_tensor got, struct ir_tensor want,
                 double tolerance, struct strbuf *report);
// The same of result `output` of g of the operands.  With a tolerance each number may be off besides by
// four times what it is moved by a rounding of every operand, as products and sums round on their way.
bool native_close(const struct ir_graph *g, const struct ir_tensor *in, uint32_t output,
                  struct ir_tensor got, struct ir_tensor want, double tolerance,
                  struct strbuf *report);

#endif
