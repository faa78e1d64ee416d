// SPDX-License-Identifier: Apache-2.0
// A callback that writes down what it is called with: the effects of a run, in order.
#ifndef RANDOM_RECORD_H
#define RANDOM_RECORD_H

#include "ir/build.h"

// A call of it on a number of its own and x.
void record_build(struct ir_builder *b, int64_t number, ir_id x);

// From here on lines go to *to (NULL: nowhere), a line a call, and the call after so many fails.
void record_begin(struct strbuf *to, uint64_t calls);

#endif
