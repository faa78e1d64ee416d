// SPDX-License-Identifier: Apache-2.0
// The other way than expand/conv.c's to have a convolution.
#ifndef PASSES_EXPAND_CONV_H
#define PASSES_EXPAND_CONV_H

#include "ir/build.h"
#include "ir/conv.h"
#include "passes/passes.h"

// The part of type t as a node that the library takes, and what stands around it; IR_NONE if it does
// not take one.
ir_id conv_by_library(struct ir_builder *b, const struct pass_conv_library *library,
                      const struct ir_conv *c, struct ir_type t, const ir_id in[2]);

#endif
