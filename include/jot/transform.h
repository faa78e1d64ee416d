// SPDX-License-Identifier: Apache-2.0
// Transforms: functions that are made of functions (jot/function.h).
//
//     jot_grad(f)                     the gradient in argument 0
//     jot_vmap(jot_grad(f, 0, 1))     the gradient in two arguments, for each row of all
//     JOT_GRAD(loss, p, x, y)         the gradient of values, inside of a function
//
// Transforms nest in any order.  A mistake in one is reported where the function is used, with
// the place of the transform.
//
// What a function, the body of a block or a rule may do while it is traced:
//
// - It may call any function of jot, and compiled functions, but not the executable that is being
//   traced.  That it may release: it is freed when its call returns.
// - It may fork.
// - It may leave by an exception of C++, by longjmp, or by ending its thread.  The trace then ends
//   as if it had never been, and the call can be made again.
// - An exception cleans up on its way.  After a longjmp the next call of jot on the thread cleans
//   up; until then another thread that wants the same executable waits, up to ten seconds.  On a
//   stack of the user's own, as a coroutine has, a longjmp over jot is not noticed.
#ifndef JOT_TRANSFORM_H
#define JOT_TRANSFORM_H

#include "jot/function.h"
#include "jot/trace.h"

JOT_BEGIN_C

// Calls f on values while tracing, as jot_apply(f, n_in, in, n_out, out).  A function that uses
// nothing but its arguments is traced once for each set of types, and further uses refer to it.
// One that uses values of traced functions around it is traced at every use; uses that make the
// same graph share it.  Without a place (NULL) what it records has the next one.
JOT_API void jot_apply_at(jot_function f, size_t n_in, const jot_value *in, size_t n_out,
                          jot_value *out, const char *where);

// ---- transforms of functions ----
// Lists of arguments end with JOT_END; a list without entries is the default.  Tangents and derivatives
// are in the order of the list: jot_grad(f, 2, 0) gives the gradient in argument 2, then that in 0.

// The gradient of the one real scalar that f gives, in the listed arguments (argument 0).
// Complex arguments z = x + iy have the gradient df/dx - i df/dy, as in JAX.
JOT_API jot_function jot_grad_of(jot_function f, const char *where, const int *args);
// The results of f, then that gradient.
JOT_API jot_function jot_value_and_grad_of(jot_function f, const char *where, const int *args);

// Takes the arguments of f, then a tangent for each listed argument (all); gives the results of f,
// then the tangent of each.  The tangent of an integer or bool is zero.
JOT_API jot_function jot_jvp_of(jot_function f, const char *where, const int *args);
// Takes the arguments of f, then a cotangent for each result; gives the results of f, then the
// cotangents of the listed arguments (all).
JOT_API jot_function jot_vjp_of(jot_function f, const char *where, const int *args);

// The derivative of each value of the result in each value of the listed arguments (argument 0),
// results outermost: of results r, s in a, b they are dr/da, dr/db, ds/da, ds/db.  A derivative
// has the shape of the result followed by that of the argument.  jacfwd goes forward, one pass
// for each element of the arguments; jacrev backward, one for each element of the results.
JOT_API jot_function jot_jacfwd_of(jot_function f, const char *where, const int *args);
JOT_API jot_function jot_jacrev_of(jot_function f, const char *where, const int *args);
// The second derivatives of the one real scalar that f gives, of every two values of the listed
// arguments, in the order of jacfwd: of a, b those in aa, ab, ba, bb.  That in ab has the shape
// of a followed by that of b.
JOT_API jot_function jot_hessian_of(jot_function f, const char *where, const int *args);

// f mapped over one axis of its arguments: one number for each argument (a tree has it in all its
// values), JOT_NONE for an argument that every call sees whole.  Without a list axis 0 of all.
// Results have the mapped axis first.  Tangents and cotangents that jot_jvp and jot_vjp put after
// the arguments are mapped over axis 0, unless the list goes on with a number for each of them:
//     jot_vmap(jot_vjp(f), JOT_NONE, 0)        of f with one argument: many cotangents at one point
JOT_API jot_function jot_vmap_of(jot_function f, const char *where, const int *axes);
// The same with the position of the mapped axis in each result; JOT_NONE for a result that is the same
// in all calls, which is checked.
JOT_API jot_function jot_vmap_axes_of(jot_function f, const char *where, const int *in_axes,
                                      const int *out_axes);

// The same over an axis with a name, letters, digits and _, by which the collectives of
// jot/collective.h refer to it: what f computes for one element may depend on all.  out_axes may be
// NULL.  Every call has arguments of its own, also those that are not mapped; without collectives the
// name makes no difference.
JOT_API jot_function jot_vmap_named_of(jot_function f, const char *name, const char *where,
                                       const int *in_axes, const int *out_axes);

// f, recomputed on the way back instead of keeping what its derivative needs.
JOT_API jot_function jot_checkpoint_of(jot_function f, const char *where);

// f with a derivative of one's own.  rule takes the arguments of f, then their tangents, and gives
// the tangents of the results, in which it must be linear.  Goes on f before other transforms.
JOT_API jot_function jot_custom_jvp_of(jot_function f, jot_function rule, const char *where);
// forward takes the arguments of f and gives its results, then whatever backward needs; backward
// takes that, then the cotangents of the results, and gives those of all arguments.  Forward mode
// has no use for the rule and differentiates f itself.
JOT_API jot_function jot_custom_vjp_of(jot_function f, jot_function forward,
                                       jot_function backward, const char *where);

// ---- derivatives of values ----
// Of what has been computed in the current trace, in x: parameters of the innermost traced function
// or block, or values from jot_variable.  x is replaced by the result.

// x[i] = a fresh name for x[i]: what is computed from it can be differentiated in it.
JOT_API void jot_variable_tree(size_t n, jot_value *x);
// x[i] = dy/dx[i] of a real scalar y.
JOT_API void jot_gradient_tree(jot_value y, size_t n, jot_value *x);
// The same; an error when y was computed from what x was before jot_variable.
JOT_API void jot_gradient_of(jot_value y, size_t n, jot_value *x);
// How y moves when each x[i] moves by dx[i].
JOT_API jot_value jot_tangent_tree(jot_value y, size_t n, const jot_value *x,
                                   const jot_value *dx);
// The shape of y, then that of x.
JOT_API jot_value jot_jacobian_of(jot_value y, jot_value x);

// ---- blocks ----

// What the macros of blocks are made of: a block, and a variable in its lists.
typedef struct jot_block jot_block;
typedef struct jot_piece {
    void *at; // a variable, struct or array that holds n values
    size_t n;
    const char *name;
} jot_piece;
// What JOT_VMAP and JOT_VMAP_NAMED expand to.
JOT_API jot_block *jot_vmap_begin(const jot_piece *in, const jot_piece *out, const char *where);
JOT_API jot_block *jot_vmap_named_begin(const char *name, const jot_piece *in,
                                        const jot_piece *out, const char *where);
JOT_API bool jot_block_next(jot_block *b);
JOT_API void jot_block_leave(jot_block **b);

JOT_END_C

// ---------------------------------------------------------------------------------------
// The convenient layer.

#if !defined(JOT_PLAIN)

#define jot_apply(...) jot_apply_at(__VA_ARGS__, JOT_HERE ": jot_apply")

// jot_grad(f)  jot_grad(f, 0, 1)  jot_vmap(f)  jot_vmap(f, 0, JOT_NONE)
#define JOT_TRANSFORM_(name, ...)                                                              \
    name##_of(JOT_A_FUNCTION_(#name, JOT_FIRST_(__VA_ARGS__, 0)), JOT_HERE,                    \
              JOT_INTS_(JOT_REST_(__VA_ARGS__, JOT_END)))
#define jot_grad(...) JOT_TRANSFORM_(jot_grad, __VA_ARGS__)
#define jot_value_and_grad(...) JOT_TRANSFORM_(jot_value_and_grad, __VA_ARGS__)
#define jot_jvp(...) JOT_TRANSFORM_(jot_jvp, __VA_ARGS__)
#define jot_vjp(...) JOT_TRANSFORM_(jot_vjp, __VA_ARGS__)
#define jot_jacfwd(...) JOT_TRANSFORM_(jot_jacfwd, __VA_ARGS__)
#define jot_jacrev(...) JOT_TRANSFORM_(jot_jacrev, __VA_ARGS__)
#define jot_hessian(...) JOT_TRANSFORM_(jot_hessian, __VA_ARGS__)
#define jot_vmap(...) JOT_TRANSFORM_(jot_vmap, __VA_ARGS__)
// jot_vmap_axes(f, JOT_AXES(0, JOT_NONE), JOT_AXES(1))
#define jot_vmap_axes(f, ...)                                                                  \
    jot_vmap_axes_of(JOT_A_FUNCTION_("jot_vmap_axes", f), JOT_HERE, __VA_ARGS__)
// jot_vmap_named(f, "i")  jot_vmap_named(f, "i", 0, JOT_NONE)
#define jot_vmap_named(f, ...)                                                                 \
    jot_vmap_named_of(JOT_A_FUNCTION_("jot_vmap_named", f), JOT_FIRST_(__VA_ARGS__, 0),        \
                      JOT_HERE, JOT_INTS_(JOT_REST_(__VA_ARGS__, JOT_END)), NULL)
// jot_vmap_axes_named(f, "i", JOT_AXES(0, JOT_NONE), JOT_AXES(1))
#define jot_vmap_axes_named(f, name, ...)                                                      \
    jot_vmap_named_of(JOT_A_FUNCTION_("jot_vmap_axes_named", f), name, JOT_HERE, __VA_ARGS__)
#define JOT_AXES(...) JOT_INTS_(__VA_ARGS__, JOT_END)
#define jot_checkpoint(f) jot_checkpoint_of(JOT_A_FUNCTION_("jot_checkpoint", f), JOT_HERE)
#define jot_custom_jvp(f, rule)                                                                \
    jot_custom_jvp_of(JOT_A_FUNCTION_("jot_custom_jvp", f),                                    \
                      JOT_A_FUNCTION_("jot_custom_jvp", rule), JOT_HERE)
#define jot_custom_vjp(f, forward, backward)                                                   \
    jot_custom_vjp_of(JOT_A_FUNCTION_("jot_custom_vjp", f),                                    \
                      JOT_A_FUNCTION_("jot_custom_vjp", forward),                              \
                      JOT_A_FUNCTION_("jot_custom_vjp", backward), JOT_HERE)

#if defined(JOT_AUTO_)

// The gradient of the real scalar y in x, a value or a tree; the result has the type of x.
#define jot_gradient(y, x)                                                                     \
    JOT_GRADIENT_(y, x, "jot_gradient(" #y ", " #x ")", JOT_CAT(jot_g_, __COUNTER__))
#define JOT_GRADIENT_(y, x, text, g)                                                           \
    __extension__({                                                                            \
        JOT_AUTO_ g = (x);                                                                     \
        JOT_NO_ARRAY_("jot_gradient", g);                                                      \
        jot_gradient_of(JOT_VALUE_("jot_gradient", y), JOT_TREE_("jot_gradient", g));          \
        jot_place(*JOT_LEAVES_(g), JOT_HERE ": " text);                                        \
        g;                                                                                     \
    })
// x under a fresh name: what is computed from the result can be differentiated in it.
#define jot_variable(x) JOT_VARIABLE_(x, "jot_variable(" #x ")", JOT_CAT(jot_x_, __COUNTER__))
#define JOT_VARIABLE_(x, text, v)                                                              \
    __extension__({                                                                            \
        JOT_AUTO_ v = (x);                                                                     \
        JOT_NO_ARRAY_("jot_variable", v);                                                      \
        jot_variable_tree(JOT_TREE_("jot_variable", v));                                       \
        jot_place(*JOT_LEAVES_(v), JOT_HERE ": " text);                                        \
        v;                                                                                     \
    })
// How y moves when x moves by dx (forward mode).
#define jot_tangent(y, x, dx)                                                                  \
    JOT_TANGENT_(y, x, dx, "jot_tangent(" #y ", " #x ", " #dx ")", __COUNTER__)
#define JOT_TANGENT_(y, x, dx, text, k)                                                        \
    JOT_TANGENT2_(y, x, dx, text, JOT_CAT(jot_x_, k), JOT_CAT(jot_d_, k))
#define JOT_TANGENT2_(y, x, dx, text, v, d)                                                    \
    __extension__({                                                                            \
        JOT_AUTO_ v = (x);                                                                     \
        JOT_NO_ARRAY_("jot_tangent", v);                                                       \
        JOT_AUTO_ d = (dx);                                                                    \
        (void)JOT_MUST_(JOT_SAME_TYPE_(v, d), "jot_tangent takes a dx of the type of x");      \
        jot_at(jot_tangent_tree(JOT_VALUE_("jot_tangent", y), JOT_TREE_("jot_tangent", v),     \
                                JOT_LEAVES_(d)),                                               \
               JOT_HERE ": " text);                                                            \
    })
#define jot_jacobian(y, x) JOT_OP_("jot_jacobian(" #y ", " #x ")", jot_jacobian_of(y, x))

// The gradient of f(x, ...) in its first argument, a value or a tree; f is any C function.  A loop
// in f runs once for the value and once for the gradient; jot_grad and jot_value_and_grad, which
// take a whole function, run it once for both.
#define JOT_GRAD(f, ...)                                                                       \
    JOT_GRAD_(f, JOT_CAT(jot_p_, __COUNTER__), JOT_FIRST_(__VA_ARGS__, 0),                     \
              "JOT_GRAD(" #f ", " #__VA_ARGS__ ")", __VA_ARGS__)
#define JOT_GRAD_(f, p, x, text, ...)                                                          \
    __extension__({                                                                            \
        JOT_AUTO_ p = (x);                                                                     \
        JOT_NO_ARRAY_("JOT_GRAD", p);                                                          \
        jot_variable_tree(JOT_TREE_("JOT_GRAD", p));                                           \
        jot_gradient_tree(JOT_CALL_WITH_(f, p, __VA_ARGS__), JOT_TREE_("JOT_GRAD", p));        \
        jot_place(*JOT_LEAVES_(p), JOT_HERE ": " text);                                        \
        p;                                                                                     \
    })
// The same, and *value = f(x, ...).
#define JOT_VALUE_AND_GRAD(value, f, ...)                                                      \
    JOT_VALUE_AND_GRAD_(value, f, JOT_CAT(jot_p_, __COUNTER__), JOT_FIRST_(__VA_ARGS__, 0),    \
                        "JOT_VALUE_AND_GRAD(" #f ", " #__VA_ARGS__ ")", __VA_ARGS__)
#define JOT_VALUE_AND_GRAD_(value, f, p, x, text, ...)                                         \
    __extension__({                                                                            \
        JOT_AUTO_ p = (x);                                                                     \
        JOT_NO_ARRAY_("JOT_VALUE_AND_GRAD", p);                                                \
        jot_variable_tree(JOT_TREE_("JOT_VALUE_AND_GRAD", p));                                 \
        *(value) = JOT_CALL_WITH_(f, p, __VA_ARGS__);                                          \
        jot_gradient_tree(*(value), JOT_TREE_("JOT_VALUE_AND_GRAD", p));                       \
        jot_place(*JOT_LEAVES_(p), JOT_HERE ": " text);                                        \
        p;                                                                                     \
    })
// f(p, all but the first of the arguments)
#define JOT_CALL_WITH_(f, p, ...)                                                              \
    JOT_CAT(JOT_WITH_, JOT_ONE_OR_MORE_(__VA_ARGS__))(f, p, __VA_ARGS__)
#define JOT_WITH_1(f, p, a) f(p)
#define JOT_WITH_2(f, p, a, ...) f(p, __VA_ARGS__)

#endif // JOT_AUTO_

// A block is traced in place, so it sees every variable in sight; the variables in its lists are
// rebound: inside to one row, afterwards the inputs to what they were and the results to all rows.
// Do not leave a block by break, return or goto: it is reported.
//
//     JOT_VMAP ((x, y), (g)) { g = JOT_GRAD(loss, w, x, y); }      rows in, rows out
#if defined(__GNUC__)
#define JOT_ON_EXIT_(f) __attribute__((cleanup(f)))
#else
#define JOT_ON_EXIT_(f)
#endif
// clang-format off
#if defined(__cplusplus)
#define JOT_PIECE_(block, x) {&(x), JOT_COUNT_(block, x), #x}
#else
#define JOT_PIECE_(block, x) {.n = JOT_COUNT_(block, x), .at = &(x), .name = #x}
#endif
#define JOT_PIECES_(name, ...)                                                                 \
    {JOT_EACH_(JOT_PIECE_, name, __VA_ARGS__),                                                 \
     {NULL, JOT_MUST_BE_LIST_(name, "variables", __VA_ARGS__), NULL}}
#define JOT_NO_PIECES_(name, ...) {{NULL, 0, NULL}}
// A list in parentheses, perhaps empty: JOT_COMMA_ meets "()" only when nothing stands between.
#define JOT_LIST_(block, list) JOT_LIST2_(#block, block##_takes_lists_in_parentheses_ list)
#define JOT_SCAN_takes_lists_in_parentheses_(...) __VA_ARGS__
#define JOT_MAP_takes_lists_in_parentheses_(...) __VA_ARGS__
#define JOT_WHILE_takes_lists_in_parentheses_(...) __VA_ARGS__
#define JOT_VMAP_takes_lists_in_parentheses_(...) __VA_ARGS__
#define JOT_VMAP_NAMED_takes_lists_in_parentheses_(...) __VA_ARGS__
#define JOT_LIST2_(name, ...) JOT_LIST3_(name, JOT_FIRST_(__VA_ARGS__, 0), __VA_ARGS__)
#define JOT_LIST3_(name, first, ...)                                                           \
    JOT_LIST4_(JOT_COMMA_ first(), JOT_NO_PIECES_, JOT_PIECES_, 0)(name, __VA_ARGS__)
#define JOT_LIST4_(...) JOT_LIST5_(__VA_ARGS__)
#define JOT_LIST5_(a, b, c, ...) c
// clang-format on

#define JOT_BLOCK_(k, begin)                                                                   \
    for (JOT_ON_EXIT_(jot_block_leave) jot_block * JOT_CAT(jot_b_, k) = begin;                 \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)

// The block for each row of the inputs, all at once; each result is a row of what it is afterwards.
#define JOT_VMAP(in, out) JOT_VMAP_(__COUNTER__, in, out)
#define JOT_VMAP_(k, in, out)                                                                  \
    for (jot_piece JOT_CAT(jot_c_, k)[] = JOT_LIST_(JOT_VMAP, in),                             \
                                   JOT_CAT(jot_r_, k)[] = JOT_LIST_(JOT_VMAP, out),            \
                                   *JOT_CAT(jot_o_, k) = JOT_CAT(jot_c_, k);                   \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)                                        \
        JOT_BLOCK_(                                                                            \
            k, jot_vmap_begin(JOT_CAT(jot_c_, k), JOT_CAT(jot_r_, k), JOT_HERE ": JOT_VMAP"))  \
    while (jot_block_next(JOT_CAT(jot_b_, k)))

// The same over a named axis.
//
//     JOT_VMAP_NAMED ("i", (x), (y)) { y = jot_div(x, jot_psum(x, "i")); }
#define JOT_VMAP_NAMED(name, in, out) JOT_VMAP_NAMED_(__COUNTER__, name, in, out)
#define JOT_VMAP_NAMED_(k, name, in, out)                                                      \
    for (jot_piece JOT_CAT(jot_c_, k)[] = JOT_LIST_(JOT_VMAP_NAMED, in),                       \
                                   JOT_CAT(jot_r_, k)[] = JOT_LIST_(JOT_VMAP_NAMED, out),      \
                                   *JOT_CAT(jot_o_, k) = JOT_CAT(jot_c_, k);                   \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)                                        \
        JOT_BLOCK_(k, jot_vmap_named_begin(name, JOT_CAT(jot_c_, k), JOT_CAT(jot_r_, k),       \
                                           JOT_HERE ": JOT_VMAP_NAMED"))                       \
    while (jot_block_next(JOT_CAT(jot_b_, k)))

#endif // JOT_PLAIN

#endif
