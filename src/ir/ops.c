// SPDX-License-Identifier: Apache-2.0
#include "ir/ops.h"

#include "ir/infer.h"

#include <string.h>

#define IR_none IR_OP_COUNT

#define V IR_VARIADIC
#define FOLD(combiner, identity, pair) IR_##combiner, IR_##pair, IR_IDENTITY_##identity, NULL
#define INDEX(rule) IR_none, IR_none, IR_IDENTITY_none, index_##rule
#define NO_FOLD FOLD(none, none, none)
const struct ir_op_info ir_op_table[IR_OP_COUNT] = {
#define OP(name, in, out, class, domain, types, shape, jvp, transp, batch, scalar, complex,    \
           fold, cost)                                                                         \
    [IR_##name] = {#name,                                                                      \
                   in,                                                                         \
                   out,                                                                        \
                   IR_CLASS_##class,                                                           \
                   #domain,                                                                    \
                   #types,                                                                     \
                   #shape,                                                                     \
                   #jvp,                                                                       \
                   #transp,                                                                    \
                   #batch,                                                                     \
                   __builtin_strcmp(#complex, "none") != 0,                                    \
                   fold,                                                                       \
                   cost},
#include "ir/ops.def"
#undef OP
};
#undef NO_FOLD
#undef INDEX
#undef FOLD
#undef V

int ir_op_find(const char *name, size_t length)
{
    for (int op = 0; op < IR_OP_COUNT; op++)
        if (strlen(ir_op_table[op].name) == length &&
            !memcmp(ir_op_table[op].name, name, length))
            return op;
    return -1;
}
