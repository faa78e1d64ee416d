// SPDX-License-Identifier: Apache-2.0
// Printing what a stage made: JOT_DUMP=trace,transform or JOT_DUMP=all, to stderr.
#ifndef TRACE_DUMP_H
#define TRACE_DUMP_H

#include "ir/graph.h"

// Every stage, in order: S(name).  The last is not of `all`: it makes programs run step by step.
#define DUMP_STAGES(S) S(trace) S(transform) DUMP_CODE_STAGES(S) S(tune) S(cache) S(run)
// Those of compiled code.
#define DUMP_CODE_STAGES(S) S(simplify) S(schedule) S(memory) S(llvm) S(code)

bool dump_wants(const char *stage);
// Prints text under a title line.
void dump_text(const char *stage, const char *name, const char *text);
// Of a step that a program comes to; of several of one name in a row the first alone.
void dump_step(const char *name);
void dump_function(const char *stage, const struct ir_module *m, uint32_t function);

#endif
