// SPDX-License-Identifier: Apache-2.0
// Loops whose bodies are functions: loops over the blocks.
#define JOT_PLAIN
#include "jot/control.h"

#define NAMED(list, count, name)                                                               \
    {                                                                                          \
        {(list), (count), (name)}, { NULL, 0, NULL }                                           \
    }

void jot_scan(jot_scan_step *step, void *ctx, size_t n_carry, jot_value *carry, size_t n_rows,
              const jot_value *rows, size_t n_out, jot_value *out,
              const jot_loop_options *options)
{
    jot_value *row = (jot_value *)rows; // rebound while the block is open, and given back
    jot_piece carries[] = NAMED(n_carry ? carry : NULL, n_carry, "carry"),
              in[] = NAMED(n_rows ? row : NULL, n_rows, "rows"),
              results[] = NAMED(n_out ? out : NULL, n_out, "out");
    jot_block *b = jot_scan_begin(carries, in, results, options, "jot_scan");
    while (jot_block_next(b))
        step(carry, row, out, ctx);
    jot_block_leave(&b);
}

void jot_while(jot_while_condition *condition, jot_while_step *step, void *ctx, size_t n_carry,
               jot_value *carry, const jot_loop_options *options)
{
    jot_piece carries[] = NAMED(n_carry ? carry : NULL, n_carry, "carry");
    jot_block *b = jot_while_begin(carries, options, "jot_while");
    while (jot_block_next(b))
        if (jot_while_test(b, condition(carry, ctx)))
            step(carry, ctx);
    jot_block_leave(&b);
}
