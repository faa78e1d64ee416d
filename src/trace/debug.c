// SPDX-License-Identifier: Apache-2.0
// Assertions, callbacks and printing, in the graph.
#include "jot/debug.h"

#include "runtime/array.h"
#include "trace/emit.h"
#include "trace/print.h"

#include "jot/compile.h"

#include <stdio.h>

static jot_value assert_value(jot_value holds, const char *message, const char *where)
{
    jot_value error;
    char buffer[320];
    if (!trace_ready("jot_assert", 1, &holds, &error))
        return error;
    struct trace *t = trace_top();
    if (trace_type(holds).dtype != JOT_BOOL)
        return trace_fail("jot_assert", JOT_ERR_DTYPE, "%s is not bool: compare it",
                          trace_type_text(holds));
    ir_check(&t->b, trace_operand(holds, JOT_BOOL), 0, NULL,
             message ? message : "does not hold", trace_shorten(where, buffer, sizeof buffer));
    return t->b.status == JOT_OK ? (jot_value){0, 0}
                                 : trace_result("jot_assert", IR_NONE, false);
}

static jot_value guarded_assert(jot_value holds, const char *message, const char *where)
{
    TRACE_RETURN(assert_value(holds, message, where));
}

void jot_assert_value(jot_value holds, const char *message, const char *where)
{
    jot_place(guarded_assert(holds, message, where), where);
}

// -- Callbacks --------------------------------------------------------------------------------

jot_status jot_callback_fail(jot_status status, const char *message)
{
    return status_fail(status, "%s", message ? message : jot_status_name(status));
}

static const char *spec_problem(const jot_callback_spec *spec, const jot_value *out)
{
    return !spec                       ? "the spec is NULL"
           : !spec->call               ? "the function is NULL"
           : spec->n_out && !spec->out ? "the list of result types is NULL"
           : spec->n_out && !out       ? "out is NULL"
                                       : NULL;
}

static bool read_types(size_t n, const jot_type *out, struct ir_type *types)
{
    char what[48];
    struct ir_module *m = trace_top()->module;
    for (size_t i = 0; i < n; i++) {
        int64_t rank = 0;
        while (out[i].dims && out[i].dims[rank] != JOT_END && rank <= IR_MAX_RANK)
            rank++;
        snprintf(what, sizeof what, "the type of result %zu", i);
        if (rt_array_check(what, (int)out[i].dtype, rank, out[i].dims) != JOT_OK)
            return false;
        types[i] = ir_type_make(m, out[i].dtype, (int)rank, out[i].dims);
    }
    return true;
}

// A call of a host over strong values; IR_NONE with an error.
static ir_id call_host(const char *op, const struct ir_host *host, size_t n_in, jot_value *in,
                       size_t n_out, const struct ir_type *types, jot_value *error)
{
    struct trace *t = trace_top();
    ir_id *ids = arena_array(t->module->arena, ir_id, n_in + 1);
    for (size_t i = 0; i < n_in; i++)
        ids[i] = trace_strong(in[i]);
    ir_id y =
        ir_callback(&t->b, ir_host_add(t->module, host), 0, (int)n_in, ids, (int)n_out, types);
    *error = t->b.status == JOT_OK ? (jot_value){0, 0} : trace_result(op, IR_NONE, false);
    return t->b.status == JOT_OK ? y : IR_NONE;
}

jot_value trace_call_host(const char *op, const struct ir_host *host, size_t n_in,
                          const jot_value *values, size_t n_out, const jot_type *out_types,
                          jot_value *out)
{
    jot_value error;
    struct arena *arena = trace_top()->module->arena;
    jot_value *in = arena_array(arena, jot_value, n_in + 1);
    struct ir_type *types = arena_array(arena, struct ir_type, n_out + 1);
    memcpy(in, values, n_in * sizeof *in);
    if (!trace_ready(op, (int)n_in, in, &error))
        return error;
    if (!read_types(n_out, out_types, types))
        return trace_fail_status(op);
    ir_id y = call_host(op, host, n_in, in, n_out, types, &error);
    for (size_t i = 0; i < n_out && y != IR_NONE; i++)
        out[i] = trace_value(y + (ir_id)i, false);
    return error;
}

static jot_value callback_values(const jot_callback_spec *spec, jot_value *out,
                                 const char *where, size_t n_in, const jot_value *values)
{
    jot_value error;
    char buffer[320];
    if (!trace_ready("jot_callback", 0, NULL, &error))
        return error;
    const char *problem = spec_problem(spec, out);
    if (problem)
        return trace_fail("jot_callback", JOT_ERR_ARGUMENT, "%s", problem);
    struct ir_host host = {.name = spec->name ? spec->name : IR_HOST_UNNAMED,
                           .where = trace_shorten(where, buffer, sizeof buffer),
                           .call = spec->call,
                           .ctx = spec->ctx,
                           .maps_batch = spec->map == JOT_CALLBACK_BATCH,
                           .is_told = true};
    return trace_call_host("jot_callback", &host, n_in, values, spec->n_out, spec->out, out);
}

static jot_value guarded_callback(const jot_callback_spec *spec, jot_value *out,
                                  const char *where, size_t n_in, const jot_value *in)
{
    TRACE_RETURN(callback_values(spec, out, where, n_in, in));
}

void jot_callback_values(const jot_callback_spec *spec, jot_value *out, const char *where,
                         size_t n_in, const jot_value *in)
{
    size_t n_out = spec ? spec->n_out : 0;
    if (trace_lacks("jot_callback", "in", n_in, in, n_out, out, where))
        return;
    jot_value error = guarded_callback(spec, out, where, n_in, in);
    jot_place(error, where);
    for (size_t i = 0; out && i < n_out && (error.trace || error.id); i++)
        out[i] = error;
}

// -- Printing ---------------------------------------------------------------------------------

static jot_value print_values(const char *op, const char *format, size_t n_in,
                              const jot_value *values)
{
    jot_value error;
    if (!trace_ready(op, 0, NULL, &error))
        return error;
    jot_value *in = arena_array(trace_top()->module->arena, jot_value, n_in + 1);
    memcpy(in, values, n_in * sizeof *in);
    if (!trace_ready(op, (int)n_in, in, &error))
        return error;
    int wanted = format ? print_count(format) : -1;
    if (wanted < 0)
        return trace_fail(op, JOT_ERR_ARGUMENT,
                          format ? "a brace of the format stands alone: "
                                   "{} is a value, {{ and }} are braces"
                                 : "the format is NULL");
    if ((size_t)wanted != n_in)
        return trace_fail(op, JOT_ERR_ARGUMENT, "the format has %d {} for %zu values", wanted,
                          n_in);
    struct ir_host host = {.name = op,
                           .where = "",
                           .call = print_call,
                           .ctx = (void *)(uintptr_t)format,
                           .ctx_bytes = strlen(format) + 1,
                           .maps_batch = true,
                           .names_lanes = true};
    call_host(op, &host, n_in, in, 0, NULL, &error);
    return error;
}

static jot_value guarded_print(const char *op, const char *format, size_t n_in,
                               const jot_value *in)
{
    TRACE_RETURN(print_values(op, format, n_in, in));
}

void trace_print(const char *op, const char *format, size_t n_in, const jot_value *in)
{
    guarded_print(op, format, n_in, in);
}

void jot_printf_values(const char *format, const char *where, size_t n_in, const jot_value *in)
{
    size_t n = 0;
    if (trace_lacks("jot_printf", "in", n_in, in, 0, NULL, where))
        return;
    while (n < n_in && (in[n].trace || in[n].id))
        n++;
    // Where the format wants more and there are more, it is one that was never set.
    if (format && n + 1 < n_in && print_count(format) > (int)n)
        n++;
    jot_place(guarded_print("jot_printf", format, n, in), where);
    if (trace_top() && trace_top()->kind == TRACE_SCOPE &&
        jot_eval_tree(0, NULL, NULL) != JOT_OK)
        printf("jot_printf: %s\n", jot_error_message());
}
