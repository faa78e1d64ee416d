// SPDX-License-Identifier: Apache-2.0
// Loops and branches whose bodies are functions: loops over the blocks.
#include "trace/tracer.h"

#include "jot/control.h"

#define NAMED(list, count, name)                                                               \
    {                                                                                          \
        {(count) ? (list) : NULL, (count), (name)}, { NULL, 0, NULL }                          \
    }

// What a function takes: a list of n entries, or a function of the user's.
struct need {
    const char *parameter;
    size_t n;
    const void *list;
};
#define BODY(name) {#name, 1, (const void *)(uintptr_t)(name)}
#define NEEDS(...)                                                                             \
    (const struct need[])                                                                      \
    {                                                                                          \
        __VA_ARGS__, { NULL, 0, NULL }                                                         \
    }

// Whether one of them is not there, or too long: then the results are the error.
static bool is_refused(const char *op, const struct need *need, const char *where,
                       size_t n_carry, jot_value *carry, size_t n_out, jot_value *out)
{
    for (; need->parameter; need++)
        if (trace_lacks(op, need->parameter, need->n, need->list, n_carry, carry, where)) {
            trace_lacks(op, need->parameter, need->n, need->list, n_out, out, where);
            return true;
        }
    return false;
}

void jot_for_at(jot_for_step *step, void *ctx, jot_value first, jot_value end, size_t n_carry,
                jot_value *carry, const char *where)
{
    if (is_refused("jot_for", NEEDS(BODY(step), {"carry", n_carry, carry}), where, n_carry,
                   carry, 0, NULL))
        return;
    jot_piece carries[] = NAMED(carry, n_carry, "carry");
    jot_value index;
    jot_block *b = jot_range_begin(carries, first, end, where);
    while (jot_for_next(b, &index))
        step(index, carry, ctx);
    jot_block_leave(&b);
}

void jot_scan_at(jot_scan_step *step, void *ctx, size_t n_carry, jot_value *carry,
                 size_t n_rows, const jot_value *rows, size_t n_out, jot_value *out,
                 const jot_loop_options *options, const char *where)
{
    if (is_refused("jot_scan",
                   NEEDS(BODY(step), {"carry", n_carry, carry}, {"rows", n_rows, rows},
                         {"out", n_out, out}),
                   where, n_carry, carry, n_out, out))
        return;
    jot_value *row = (jot_value *)rows; // rebound while the block is open, and given back
    jot_piece carries[] = NAMED(carry, n_carry, "carry"), in[] = NAMED(row, n_rows, "rows"),
              results[] = NAMED(out, n_out, "out");
    jot_block *b = jot_scan_begin(carries, in, results, options, where);
    while (jot_block_next(b))
        step(carry, row, out, ctx);
    jot_block_leave(&b);
}

void jot_while_at(jot_while_condition *condition, jot_while_step *step, void *ctx,
                  size_t n_carry, jot_value *carry, const jot_loop_options *options,
                  const char *where)
{
    if (is_refused("jot_while", NEEDS(BODY(condition), BODY(step), {"carry", n_carry, carry}),
                   where, n_carry, carry, 0, NULL))
        return;
    jot_piece carries[] = NAMED(carry, n_carry, "carry");
    jot_block *b = jot_while_begin(carries, options, where);
    while (jot_block_next(b))
        for (bool steps = jot_while_test(b, condition(carry, ctx)); steps;
             steps = jot_while_stepped(b))
            step(carry, ctx);
    jot_block_leave(&b);
}

void jot_switch_at(jot_value index, int n_branches, const jot_function *branches, size_t n_in,
                   const jot_value *in, size_t n_out, jot_value *out, const char *where)
{
    if (is_refused("jot_switch",
                   NEEDS({"branches", n_branches > 0, branches}, {"in", n_in, in},
                         {"out", n_out, out}),
                   where, 0, NULL, n_out, out))
        return;
    jot_piece results[] = NAMED(out, n_out, "out");
    jot_block *b = jot_switch_begin(results, index, n_branches, where);
    while (jot_block_next(b) && n_branches > 0)
        jot_apply_at(branches[jot_switch_case(b)], n_in, in, n_out, out, where);
    jot_block_leave(&b);
}

void jot_map_at(jot_function f, size_t n_in, const jot_value *in, size_t n_out, jot_value *out,
                const jot_loop_options *options, const char *where)
{
    if (is_refused("jot_map", NEEDS({"rows", n_in, in}, {"out", n_out, out}), where, 0, NULL,
                   n_out, out))
        return;
    jot_value *row = (jot_value *)in; // as in jot_scan_at
    jot_piece rows[] = NAMED(row, n_in, "rows"), results[] = NAMED(out, n_out, "out");
    jot_block *b = jot_map_begin(rows, results, options, where);
    while (jot_block_next(b))
        jot_apply_at(f, n_in, row, n_out, out, where);
    jot_block_leave(&b);
}
