// SPDX-License-Identifier: Apache-2.0
// Functions of numbers that have loops of their own, applied element by element.
#ifndef TRACE_LANES_H
#define TRACE_LANES_H

#include "trace/emit.h"

#include "jot/control.h"
#include "jot/transform.h"

// f, of n numbers of one floating type, at the elements of operands that are brought to one
// such type and broadcast; half types are computed in f32.  All elements are lanes of one
// kernel.
jot_value trace_lanes(const char *name, jot_function f, int n, const jot_value *v);

// f of n operands with the derivative that `rule` says, a function of them and of as many
// tangents; and that in lanes.
jot_value trace_ruled(const char *name, int n, void (*f)(void), void (*rule)(void),
                      const jot_value *v);
jot_value trace_ruled_lanes(const char *name, int n, void (*f)(void), void (*rule)(void),
                            const jot_value *v);

// NaN, which is so in derivatives of any order in each of the operands, as a constant is not.
jot_value trace_nan_of(int n, const jot_value *v);
// 0 of x >= 0, with a slope that at 0 is NaN: for a constant at the end of a domain.
jot_value trace_without_slope(jot_value x);
// y, a function of the operands, and that where it is NaN: its derivatives are NaN there as well.  trace_ruled_lanes
// does it.
jot_value trace_defined(int n, const jot_value *v, jot_value y);

// The same of operands one by one: TRACE_RULED_LANES("jot_beta", beta, beta_rule, a, b).
#define TRACE_RULED(name, f, rule, ...)                                                        \
    trace_ruled(name, TRACE_RULED_OPERANDS(f, rule, __VA_ARGS__))
#define TRACE_RULED_LANES(name, f, rule, ...)                                                  \
    trace_ruled_lanes(name, TRACE_RULED_OPERANDS(f, rule, __VA_ARGS__))
#define TRACE_RULED_OPERANDS(f, rule, ...)                                                     \
    (int)(sizeof((jot_value[]){__VA_ARGS__}) / sizeof(jot_value)), (void (*)(void))(f),        \
        (void (*)(void))(rule), (jot_value[])                                                  \
    {                                                                                          \
        __VA_ARGS__                                                                            \
    }

// A function of n numbers with its derivatives: f of a member is derived as often in each
// operand as its orders say.  Up to the order `most` in all, which is at most 2, each derivative
// is a member; those beyond are what the trips of f give.
struct trace_member {
    const struct trace_family *family;
    int orders[TRACE_MAX_OPERANDS];
};
struct trace_family {
    const char *name;
    int n, most;
    jot_value (*f)(const jot_value *x, const struct trace_member *m);
    const struct trace_member *members; // the function itself first
};

// Whether the member is derived in one of the first n operands; then `out` is the derivative of
// what `f`, with a member as its context, gives for the one that is derived once less.
bool trace_member_from_lower(const struct trace_member *m, int n, jot_body *f,
                             const jot_value *x, jot_value *out);
// The function itself, in lanes.
jot_value trace_family_lanes(const struct trace_family *family, const jot_value *v);

enum { TRACE_MEMBERS = 15 };
#define TRACE_FAMILY(symbol, name, n, most, f)                                                 \
    static const struct trace_member symbol##_members[TRACE_MEMBERS];                          \
    static const struct trace_family symbol = {name, n, most, f, symbol##_members};            \
    static const struct trace_member symbol##_members[TRACE_MEMBERS] = {                       \
        {&symbol, {0, 0, 0, 0}}, {&symbol, {1, 0, 0, 0}}, {&symbol, {0, 1, 0, 0}},             \
        {&symbol, {0, 0, 1, 0}}, {&symbol, {0, 0, 0, 1}}, {&symbol, {2, 0, 0, 0}},             \
        {&symbol, {1, 1, 0, 0}}, {&symbol, {1, 0, 1, 0}}, {&symbol, {1, 0, 0, 1}},             \
        {&symbol, {0, 2, 0, 0}}, {&symbol, {0, 1, 1, 0}}, {&symbol, {0, 1, 0, 1}},             \
        {&symbol, {0, 0, 2, 0}}, {&symbol, {0, 0, 1, 1}}, {&symbol, {0, 0, 0, 2}}}

// tangent slope, as rules add them up: 0 where the tangent is, whatever the slope is.
jot_value trace_along(jot_value tangent, jot_value slope);

// The distance of 1 to the next number of a dtype.
double trace_epsilon(jot_dtype dtype);

// c[0] + c[1] x + ... + c[n-1] x^(n-1)
jot_value trace_polynomial(int n, const double *c, jot_value x);

// The sum of c[k] T_k(t), by Clenshaw's recurrence; two coefficients or more.
jot_value trace_chebyshev(int n, const double *c, jot_value t);

#endif
