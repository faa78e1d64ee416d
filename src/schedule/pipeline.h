// SPDX-License-Identifier: Apache-2.0
// What happens to a graph before it is scheduled, and to the program that it becomes.
#ifndef SCHEDULE_PIPELINE_H
#define SCHEDULE_PIPELINE_H

#include "passes/passes.h"
#include "schedule/schedule.h"

// What the program is for.
struct pass_target {
    bool is_gpu, is_on_mesh;
    bool verifies;                                // the graph after every pass
    const struct pass_conv_library *convolutions; // NULL: no routine has them
};

// The function for the target: all passes in their order.
jot_status pass_pipeline(struct ir_module *m, uint32_t f, const struct pass_target *target,
                         uint32_t *out);

// The same of a program that is written, before its kernels are mapped.
jot_status pass_program_pipeline(struct nest_program *p, struct arena *scratch,
                                 const struct schedule_options *options);

// JOT_ERR_INTERNAL, saying what is wrong with what the pass left; of a program where options want to know.
jot_status pass_verify(const struct ir_graph *g, const char *name);
jot_status pass_verify_program(const struct schedule_options *options,
                               const struct nest_program *p, const char *name);

#endif
