// SPDX-License-Identifier: Apache-2.0
// Traces: what the operations of this thread are recorded into.
//
// Traces form a stack.  A root trace (of a compiled function, or a scope) owns a module; a nested
// one (the body of a function value or of a block) records a graph of its own in the same module
// and may use values of the traces around it, which become hidden parameters.  So do arrays, and
// the numbers of a scope.
//
// A trace belongs to the thread that opened it.  Its serial is that of no other open trace of the
// process, so that no thread takes the handle of another for one of its own.
//
// A handle is a slot of its trace: a value of the graph, a C number that has no type yet, or an
// error.  Slot 0 of every trace is the error "out of memory", so that failing needs no memory.
//
// Memory: every public operation runs inside a guard (TRACE_RETURN).  What runs out of memory
// breaks its trace: all later operations there give slot 0.
#ifndef TRACE_TRACER_H
#define TRACE_TRACER_H

#include "base/status.h"
#include "ir/build.h"
#include "runtime/frames.h"

#define JOT_PLAIN
#include "jot/trace.h"

#define TRACE_PLACES_KNOWN 64
#define TRACE_MOST_ENTRIES ((size_t)1 << 24) // of a list

enum trace_kind {
    TRACE_ROOT,     // holds the module while a function is compiled; records nothing itself
    TRACE_SCOPE,    // the same for a lazy scope, and records
    TRACE_FUNCTION, // the body of a function value
    TRACE_BLOCK,    // the body of a block
};

struct trace_error {
    jot_status status;
    const char *where; // NULL until known
    const char *op;    // "jot_add"
    const char *text;
};

// A C number that has not met a type.
struct trace_number {
    char kind; // b i u f c
    union {
        int64_t i;
        uint64_t u;
        double f;
    };
    double imag;
};

enum trace_slot_kind { TRACE_VALUE, TRACE_NUMBER, TRACE_ERROR };

struct trace_slot {
    uint8_t kind;  // enum trace_slot_kind
    uint8_t dtype; // what the user sees; a weak value may be wider in the graph
    bool weak;
    ir_id id;          // VALUE
    const char *where; // a literal of the user, NULL until known
    union {
        const struct trace_error *error;
        const struct trace_number *number;
    };
};

enum trace_hidden_kind { TRACE_CAPTURED, TRACE_ARRAY, TRACE_SCALAR };

// A parameter found while tracing.
struct trace_hidden {
    uint8_t kind;       // enum trace_hidden_kind
    ir_id id;           // its number in the graph
    jot_value outer;    // CAPTURED: handle in the parent
    jot_array *array;   // ARRAY: a reference that the trace owns
    const void *scalar; // SCALAR: the element
    bool is_carried;    // ARRAY: what a scope keeps for itself, and may let go of (carried.h)
    uint32_t used;      // the same: the last evaluation that read it
};

// What a value of a trace around is called inside.
struct trace_import {
    jot_value outer, inner;
};

struct jot_block;

struct trace {
    struct rt_frame frame; // of a function's body, or of a scope
    enum trace_kind kind;
    uint32_t serial;
    struct trace *below, *parent, *root;
    struct trace *newer, *older; // among those that are open in the process (opened.h)
    const char *name, *where;
    struct ir_module *module;
    struct ir_builder b;
    VEC(struct trace_slot) slots;
    VEC(struct trace_hidden) hidden;
    struct hash_table hidden_table;
    VEC(struct trace_import) imports;
    struct hash_table import_table; // by outer
    VEC(uint32_t) hidden_of;        // by value: the index in hidden, plus 1
    // What trace_close goes by: marks of the nodes and values that it comes to, and by value what it
    // has become.
    VEC(uint32_t) marks;
    VEC(ir_id) map;
    uint32_t last_mark;
    struct scope_history *history;  // scope: its evaluations
    VEC(struct trace_memo *) memos; // root: functions traced so far
    struct hash_table memo_table;
    // root: places by the address of the literal, lately used
    struct {
        const char *literal;
        uint32_t place;
    } places[TRACE_PLACES_KNOWN];
    uint32_t placed_slots, placed_nodes; // have their place
    uint32_t done_effects;               // scope: nodes whose effects have happened
    const struct trace_error *error;     // the first
    const struct trace_error *latest;    // root: of it and the traces inside it
    uint16_t axes;                       // of the maps around it, that have names
    const struct jot_mesh *mesh;         // root: of what devices do on pieces, or NULL
    const char *mesh_where;              // and who brought it
    int precision;                       // root: of products that ask for none
    const struct rule_in_progress
        *rule; // root: the innermost of the derivative rules being traced
    const struct rule_in_progress *rule_before; // what that was when this trace was opened
    struct jot_block *block;                    // whose part this is
    bool is_broken;                             // memory ran out
};

// The innermost trace of the thread, or NULL.
struct trace *trace_top(void);

// Opens a root trace with a module of its own; NULL when memory is out.
struct trace *trace_open_root(enum trace_kind kind, const char *name, const char *where);
// Opens a trace inside the innermost one.
struct trace *trace_open_nested(enum trace_kind kind, const char *name, const char *where);
// Ends the innermost trace, remembering the places of its values for messages about stale handles,
// and passes its first error on to the parent.  The module of a root goes to the caller.
void trace_end(struct trace *t);
// Abandons the frame of the trace of a body, which the user's code left: the trace ends, with all
// that is open inside it, as if it had never been.
void trace_abandon_body(struct rt_frame *frame);
// Ends what is open inside t, blocks included.  Needs no memory.
void trace_end_inside(struct trace *t);
// Ends a root trace with all that is open inside it, and frees what it owns.  Needs no memory.
void trace_abandon(struct trace *root);
// An empty scope in the place of one, which is freed: all its handles become stale.  NULL when
// memory is out, and then nothing has changed.
struct trace *trace_replace_scope(struct trace *old);
// A scope ends with the call or the thread around it.
void trace_guard_scope(struct trace *t);
// Frees what is remembered of ended traces on this thread.
void trace_forget_ended(void);

// Runs the body, which calls no code of the user, with the traces of this thread where there is stack
// enough for passes over the module; true when it gives true.
bool trace_with_stack(bool (*body)(void *ctx), void *ctx);

// Whether a trace inside the innermost one would be too deep: too many in each other, or no room on
// the stack for what it calls.  Gives the reason.
const char *trace_too_deep(enum trace_kind kind);

// An own parameter of the innermost trace; before anything else is recorded.
jot_value trace_param(struct ir_type type, bool weak);

// Adds a value that is given from outside to the hidden parameters of the trace.
void trace_hide(struct trace *t, struct trace_hidden h);
// The last n of them are values like others again.
void trace_unhide(struct trace *t, uint32_t n);
// The one that the value is, or NULL.
static inline struct trace_hidden *trace_hidden_find(const struct trace *t, ir_id id)
{
    uint32_t at = id < t->hidden_of.count ? t->hidden_of.at[id] : 0;
    return at ? &t->hidden.at[at - 1] : NULL;
}
// What the value stands for: a variable is only a name, and has done its work when a trace ends.
ir_id trace_resolve(const struct trace *t, ir_id id);
// What the value has become in the function that the last trace_close made, or IR_NONE when that
// does without it.
ir_id trace_closed_as(const struct trace *t, ir_id id);

// The function that computes outs of the trace from its own parameters and those of its hidden
// parameters that it needs, which are left in *out_hidden (indexes into t->hidden).  IR_NONE on
// failure, which is then the trace's error.
uint32_t trace_close(struct trace *t, int n_out, const ir_id *outs, uint32_t *out_n_hidden,
                     uint32_t **out_hidden);

// ---- handles (value.c) ----

// The handle as one of the innermost trace: itself, a captured one, or an error.
jot_value trace_import(const char *op, jot_value v);
// Whether v is a value of a trace that is open.
bool trace_is_open(jot_value v);
// Imports each; false with the result to give when one is an error or nothing is being traced.
bool trace_ready(const char *op, int n, jot_value *v, jot_value *out_error);
const struct trace_slot *trace_slot_of(jot_value v); // of the innermost trace
bool trace_is_error(jot_value v);

// What the user sees of a value that has dtype d in the graph, where weak floats are kept wider.
jot_dtype trace_seen(jot_dtype d, bool weak);
jot_value trace_value(ir_id id, bool weak); // a strong or weak value of the graph
// The result of a builder call: a value, or the builder's message as an error of op.
jot_value trace_result(const char *op, ir_id id, bool weak);

// A new error of the innermost trace, or of the thread when there is none.
__attribute__((format(printf, 3, 4))) jot_value trace_fail(const char *op, jot_status status,
                                                           const char *format, ...);
// The status and message of the thread as an error.
jot_value trace_fail_status(const char *op);
// The same error again, in the innermost trace.
jot_value trace_fail_again(const struct trace_error *e);
// Puts "'name': " before the text of the error, unless it is one of before, which has its place.
void trace_name_error(jot_value v, const char *name);
// Makes it the error of op, with the text before what its own operation says, under the same
// condition; NULL: no text, and the operation is not named.
void trace_retell_error(jot_value v, const char *op, const char *text);
// The result of what op calls: an error is one of op.
jot_value trace_own(const char *op, jot_value v);
// The last error of this trace and those inside it, again.
jot_value trace_fail_latest(void);
jot_value trace_out_of_memory(void);
// The error as status and message of the thread.
jot_status trace_report(const struct trace_error *e);

// The value in the graph, of the given dtype: numbers become constants (parameters in a scope).
ir_id trace_operand(jot_value v, jot_dtype dtype);
// The value in the graph with the dtype the user sees.
ir_id trace_strong(jot_value v);
// The value in the graph, as wide as it is kept there, and its type.
ir_id trace_kept(jot_value v);
struct ir_type trace_kept_type(jot_value v);
struct ir_type trace_type(jot_value v); // with the dtype the user sees
const char *trace_type_text(jot_value v);
// The number of a handle, if it is one (not seen in a scope through nested traces).
const struct trace_number *trace_number_of(jot_value v);

static inline struct ir_builder *trace_builder(void) { return &trace_top()->b; }

// "qmc.c:8: jot_dot(x, w)"; an over-long call is shortened to "qmc.c:8: jot_dot(...)".
const char *trace_shorten(const char *where, char *buffer, size_t size);
// Whether the last failure happened with nothing being traced and has no place yet.  Asking once
// is answering.
bool trace_message_wants_place(void);

static inline void trace_set_all(size_t n, jot_value *out, jot_value v)
{
    for (size_t i = 0; i < n; i++)
        out[i] = v;
}

// Gives values to out, or false with an error.
typedef bool trace_maker(void *ctx, jot_value *out, jot_value *out_error);
// All n values by `make`, inside a guard; where it fails, or memory runs out in traces that it opened,
// each is the error.  The place, unless it is NULL, is that of what is recorded and of the error.
void trace_make(trace_maker *make, void *ctx, size_t n, jot_value *out, const char *where);

// Whether a list of n entries is not there, or longer than any list is; then *out_error names
// the parameter of op.  Makes a guard of its own.
bool trace_is_missing(const char *op, const char *parameter, size_t n, const void *list,
                      jot_value *out_error);
// The same for a function whose results are the n_out values of out: they are the error, which
// has the place unless that is NULL.
bool trace_lacks(const char *op, const char *parameter, size_t n, const void *list,
                 size_t n_out, jot_value *out, const char *where);

#define TRACE_NEEDS(op, parameter, n, list)                                                    \
    do {                                                                                       \
        jot_value missing_;                                                                    \
        if (trace_is_missing(op, parameter, n, list, &missing_))                               \
            return missing_;                                                                   \
    } while (0)

#define TRACE_RETURN(expression)                                                               \
    do {                                                                                       \
        struct arena_guard guard_;                                                             \
        rt_frames_collect();                                                                   \
        if (arena_guard_left(&guard_))                                                         \
            return trace_out_of_memory();                                                      \
        jot_value result_ = (expression);                                                      \
        arena_guard_close(&guard_);                                                            \
        return result_;                                                                        \
    } while (0)

#endif
