// SPDX-License-Identifier: Apache-2.0
// Large random programs and their gradients, as a device has them.
#ifndef RANDOM_LARGE_H
#define RANDOM_LARGE_H

#include "nest/program.h"
#include "random/programs.h"

// The program, or its gradient in all parameters, its long extent larger by `stretch`; IR_NONE where it has none.
uint32_t large_make(struct ir_module *m, uint64_t seed, int64_t stretch, bool is_gradient,
                    bool is_gpu);
jot_status large_schedule(struct ir_module *m, uint32_t f, bool is_gpu, bool separate,
                          struct nest_program **out);

#endif
