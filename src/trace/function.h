// SPDX-License-Identifier: Apache-2.0
// Function values from the inside: counting, tracing and transforming them.
#ifndef TRACE_FUNCTION_H
#define TRACE_FUNCTION_H

#include "trace/tracer.h"

#include "jot/transform.h"

enum trace_transform {
    TRACE_GRAD,
    TRACE_VALUE_AND_GRAD,
    TRACE_JVP,
    TRACE_VJP,
    TRACE_JACFWD,
    TRACE_JACREV,
    TRACE_HESSIAN,
    TRACE_VMAP,
    TRACE_PMAP,
    TRACE_SHARD_MAP,
    TRACE_CHECKPOINT,
    TRACE_NO_MEMORY, // stands for all when there was none
};

enum trace_rule { TRACE_RULE_NONE, TRACE_RULE_JVP, TRACE_RULE_VJP };

#define TRACE_AXIS_NONE JOT_NONE // of a mapped argument

extern const char *const trace_transform_names[];
static inline const char *trace_transform_name(const jot_transform *t)
{
    return trace_transform_names[t->kind];
}
// Whether it is a map over axes of its arguments.
static inline bool trace_is_map(const jot_transform *t)
{
    return t->kind == TRACE_VMAP || t->kind == TRACE_PMAP;
}

// What is wrong with f, place included, or NULL.  In a buffer of the thread.
const char *function_problem(const jot_function *f);
// The status that goes with it.
jot_status function_problem_status(const jot_function *f);

// Values in argument `arg`, before it, in all arguments, in all results of a C function.
// Its place, or NULL for a function of jot's own, whose place is its name: what it records and
// how it fails has the place of the call that uses it.
const char *callee_place(const jot_callee *c);
int callee_leaves(const jot_callee *c, int arg);
int callee_first(const jot_callee *c, int arg);
int callee_in(const jot_callee *c);
int callee_out(const jot_callee *c);
// Values that f takes and gives after `level` of its transforms.
int function_in(const jot_function *f, int level);
int function_out(const jot_function *f, int level);
// The values that a transform which lists arguments is about, in the order of the list, by their
// numbers before it.  Returns how many; with an empty list all arguments, or argument 0.
int transform_listed(const jot_function *f, int level, bool all_when_empty, int *listed);

// The argument that value i is of before transform `level`; what jvp and vjp put behind those of
// the C function is numbered on.
int function_argument(const jot_function *f, int level, int i);
// The axis along which transform `level`, a map, maps value i, or TRACE_AXIS_NONE.
int function_mapped_axis(const jot_function *f, int level, int i);

// Calls the C function in the innermost trace, which is its own; out receives handles of it, errors
// where it did not set them.
void callee_call(const jot_callee *c, const jot_value *in, jot_value *out);

// A function of the module with the values it uses besides its arguments, as handles of traces
// around it; they are its last parameters.
struct traced {
    uint32_t function;
    int n_hidden, n_out;
    jot_value *hidden;
    bool *weak; // by result: what a C number gave
};

// Traces f with the first `level` of its transforms on values of the given types.  weak is by value
// or NULL; then results are strong too.  Parameters of the function may vary over more axes than the
// types.  False with an error in the innermost trace.
bool function_trace(const jot_function *f, int level, const struct ir_type *types,
                    const bool *weak, struct traced *out);
// The same in maps that name the axes, which are those of the innermost trace and more.
bool function_trace_in(const jot_function *f, int level, uint16_t axes,
                       const struct ir_type *types, const bool *weak, struct traced *out);

// What a transform makes of a traced function (transform.c).  types are those after it.
// axis is that of a named map, or PASS_UNNAMED.
bool function_transform(const jot_function *f, int level, int axis, const struct ir_type *types,
                        struct traced *t);
// What custom rules make of it (rule.c).
bool function_add_rule(const jot_function *f, uint16_t axes, const struct ir_type *types,
                       struct traced *t);

// Emits a call of the traced function: n_in values of the graph, then the hidden ones.
bool traced_emit(const char *name, const struct traced *t, int n_in, const ir_id *in,
                 ir_id *out);

static inline struct ir_type traced_out_type(const struct traced *t, int i)
{
    const struct ir_graph *g = ir_function(trace_top()->module, t->function);
    return ir_type_of(g, g->outputs.at[i]);
}

#endif
