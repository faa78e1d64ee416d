// SPDX-License-Identifier: Apache-2.0
// Loops and branches whose bodies are functions: loops over the blocks.
#include "trace/tracer.h"

#include "jot/control.h"

#define NAMED(list, count, name)                                                               \
    {                                                                                          \
        {(count) ? (list) : NULL, (count), (name)}, { NULL, 0, NULL }                          \
    }

static jot_value problem_error(const char *op, const char *problem)
{
    jot_value error;
    if (!trace_ready(op, 0, NULL, &error))
        return error;
    return trace_fail(op, JOT_ERR_ARGUMENT, "%s", problem);
}

static jot_value guarded_error(const char *op, const char *problem)
{
    TRACE_RETURN(problem_error(op, problem));
}

// Whether there is a problem: then the results are the error.
static bool is_refused(const char *op, const char *problem, const char *where, size_t n_carry,
                       jot_value *carry, size_t n_out, jot_value *out)
{
    if (!problem)
        return false;
    jot_value error = jot_at(guarded_error(op, problem), where);
    for (size_t i = 0; i < n_carry && carry; i++)
        carry[i] = error;
    for (size_t i = 0; i < n_out && out; i++)
        out[i] = error;
    return true;
}

void jot_for_at(jot_for_step *step, void *ctx, jot_value first, jot_value end, size_t n_carry,
                jot_value *carry, const char *where)
{
    const char *problem = !step ? "step is NULL" : n_carry && !carry ? "carry is NULL" : NULL;
    if (is_refused("jot_for", problem, where, n_carry, carry, 0, NULL))
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
    const char *problem = !step               ? "step is NULL"
                          : n_carry && !carry ? "carry is NULL"
                          : n_rows && !rows   ? "rows is NULL"
                          : n_out && !out     ? "out is NULL"
                                              : NULL;
    if (is_refused("jot_scan", problem, where, n_carry, carry, n_out, out))
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
    const char *problem = !condition          ? "condition is NULL"
                          : !step             ? "step is NULL"
                          : n_carry && !carry ? "carry is NULL"
                                              : NULL;
    if (is_refused("jot_while", problem, where, n_carry, carry, 0, NULL))
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
    const char *problem = n_branches > 0 && !branches ? "branches is NULL"
                          : n_in && !in               ? "in is NULL"
                          : n_out && !out             ? "out is NULL"
                                                      : NULL;
    if (is_refused("jot_switch", problem, where, 0, NULL, n_out, out))
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
    const char *problem = n_in && !in ? "rows is NULL" : n_out && !out ? "out is NULL" : NULL;
    if (is_refused("jot_map", problem, where, 0, NULL, n_out, out))
        return;
    jot_value *row = (jot_value *)in; // as in jot_scan_at
    jot_piece rows[] = NAMED(row, n_in, "rows"), results[] = NAMED(out, n_out, "out");
    jot_block *b = jot_map_begin(rows, results, options, where);
    while (jot_block_next(b))
        jot_apply_at(f, n_in, row, n_out, out, where);
    jot_block_leave(&b);
}
