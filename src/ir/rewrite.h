// SPDX-License-Identifier: Apache-2.0
// What the builder does in place of recording a node: identities that are exact for every value,
// and evaluation of nodes whose operands are constants.
#ifndef IR_REWRITE_H
#define IR_REWRITE_H

#include "ir/build.h"

struct ir_rewrite {
    struct ir_builder *b;
    enum ir_op op;
    int n_in;
    const ir_id *in;
    const struct ir_attrs *attrs;
    struct ir_type type; // of the one result
    const void *known;   // its elements, when they were found and the node is made all the same
};

// A value equal to the node, or IR_NONE.  Only for ops with one result.
ir_id ir_rewrite(struct ir_rewrite *r);

// Those of shifts to the right and of convert (rewrite_count.c).
ir_id ir_rewrite_shift(struct ir_rewrite *r);
ir_id ir_rewrite_convert(struct ir_rewrite *r);

#endif
