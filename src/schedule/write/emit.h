// SPDX-License-Identifier: Apache-2.0
// Writing a nest in the order in which values are wanted.
//
// A scope is the body of an open loop.  A statement goes into the outermost scope that knows its
// operands, so what does not depend on a loop is written in front of it: the loop itself is added
// to its parent when it is closed.  Equal statements are written once.  Index forms are interned,
// which makes coordinates comparable.
#ifndef SCHEDULE_WRITE_EMIT_H
#define SCHEDULE_WRITE_EMIT_H

#include "schedule/internal.h"

typedef uint32_t form_id; // 0 is the constant 0
typedef uint32_t scope_id;

struct form {
    struct nest_index index;
    int64_t low, high; // its values, both included
    scope_id scope;
};

struct scope {
    scope_id parent;
    uint32_t depth;
    uint32_t block;
    nest_id loop; // NONE for the body of the kernel
    bool is_open;
};

struct emit_known { // a statement that has been written
    enum nest_kind kind;
    uint16_t op;
    jot_dtype dtype;
    nest_id in[4];
    int64_t bits[2];
    nest_id buffer;
    form_id form;
    nest_id guard;
    nest_id result;
    scope_id scope;
};

struct emit_division { // values of x / divisor and x mod divisor, of x that is not negative
    nest_id quotient, rest;
    int64_t divisor;
    form_id x;
};

struct emitter {
    struct arena *arena; // of the nest
    struct arena *scratch;
    struct nest_builder b;
    scope_id at;    // the innermost scope
    scope_id floor; // statements go no further out: the branch that is being written
    VEC(struct form) forms;
    VEC(struct scope) scopes;
    VEC(struct emit_known) known;
    VEC(scope_id) value_scope;           // by value of the nest
    VEC(scope_id) axis_scope;            // by axis of the nest
    VEC(struct emit_division) divisions; // by quotient
    VEC(int64_t) value_extent; // by value: bound of an integer used as a coordinate, or 0
    struct hash_table form_table, known_table;
    uint32_t ops;
};

struct emitter emit_make(struct arena *arena, struct arena *scratch, const char *name);

form_id emit_form(struct emitter *e, int64_t constant, int n, const struct nest_term *terms);
form_id emit_form_constant(struct emitter *e, int64_t constant);
form_id emit_form_axis(struct emitter *e, nest_id axis);
// x * factor + offset
form_id emit_form_affine(struct emitter *e, form_id x, int64_t factor, int64_t offset);
form_id emit_form_add(struct emitter *e, form_id x, int64_t factor, form_id y);
// The number of an element in row-major order.
form_id emit_form_linear(struct emitter *e, int rank, const int64_t *dims, const form_id *at);
// x / divisor and x mod divisor; statements where no index form can say it.
void emit_form_divide(struct emitter *e, form_id x, int64_t divisor, form_id *out_quotient,
                      form_id *out_rest);
bool emit_form_is_constant(const struct emitter *e, form_id x, int64_t *out);

// The scope in which both are known.
scope_id emit_deeper(const struct emitter *e, scope_id a, scope_id b);
// Whether code of the current scope sees what is in `scope`.
bool emit_sees(const struct emitter *e, scope_id scope);
bool emit_sees_from(const struct emitter *e, scope_id from, scope_id scope);
// A loop in the scope `parent`; becomes the current scope.
scope_id emit_open(struct emitter *e, scope_id parent, enum nest_kind kind, int n_axes,
                   const nest_id *axes);
// Ends the current loop, going back to the scope `back`; the first result, or NEST_NONE.
nest_id emit_close(struct emitter *e, scope_id back, int n,
                   const struct nest_combine *combines);
nest_id emit_axis(struct emitter *e, int64_t extent);

// Loops with state and branches (emit_control.c).  Opening gives the first of the n values that the
// carries have inside, closing the first of the results.  Carries of a while belong to its test
// until emit_while_do, then to its step.
nest_id emit_seq_open(struct emitter *e, scope_id parent, nest_id axis, bool reverse, int n,
                      const nest_id *init);
nest_id emit_while_open(struct emitter *e, scope_id parent, int n, const nest_id *init);
void emit_while_do(struct emitter *e, nest_id test);
void emit_if_open(struct emitter *e, scope_id parent, nest_id predicate);
void emit_if_else(struct emitter *e, int n, const nest_id *values);
nest_id emit_close_values(struct emitter *e, scope_id back, int n, const nest_id *values);

// What these are made of: a scope for the statement that was just opened in `parent`, which joins
// its parent's block when it is closed; the builder back in the current scope; the end of it.
scope_id emit_scope(struct emitter *e, scope_id parent, nest_id loop, uint32_t block);
void emit_reopen(struct emitter *e);
nest_id emit_closed(struct emitter *e, scope_id back, nest_id result);
void emit_enter(struct emitter *e, scope_id scope); // the builder goes to the scope's block
void emit_set_scope(struct emitter *e, nest_id value, scope_id scope);

nest_id emit_op(struct emitter *e, enum ir_op op, jot_dtype dtype, int n, const nest_id *in,
                const int64_t bits[2]);
static inline nest_id emit_op2(struct emitter *e, enum ir_op op, jot_dtype dtype, nest_id a,
                               nest_id b)
{
    return emit_op(e, op, dtype, 2, (nest_id[]){a, b}, NULL);
}
nest_id emit_const(struct emitter *e, jot_dtype dtype, const void *element);
nest_id emit_index(struct emitter *e, form_id x, jot_dtype dtype);
nest_id emit_load(struct emitter *e, nest_id buffer, form_id x, nest_id guard);
// In the current scope.
void emit_put(struct emitter *e, nest_id buffer, form_id x, nest_id value);
void emit_put_guarded(struct emitter *e, nest_id buffer, form_id x, nest_id value,
                      nest_id guard);
// A load that stays where it is: of a buffer that the kernel writes.
nest_id emit_load_here(struct emitter *e, nest_id buffer, form_id x);
void emit_put_combine(struct emitter *e, nest_id buffer, form_id x, nest_id fold,
                      const struct nest_combine *combine);
nest_id emit_yield(struct emitter *e, const struct nest_combine *combine);
// x < bound or x >= bound, as far as it is not known: NEST_NONE when it always holds.
nest_id emit_less(struct emitter *e, form_id x, int64_t bound);
nest_id emit_not_less(struct emitter *e, form_id x, int64_t bound);
nest_id emit_both(struct emitter *e, nest_id a, nest_id b); // NEST_NONE is true

#endif
