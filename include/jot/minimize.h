// SPDX-License-Identifier: Apache-2.0
// Minima of functions, on the derivatives that jot has of them.
//
//     struct net p = start;
//     jot_search at = jot_lbfgs(loss_fn, &p, .tol = 1e-6);    p is where the loss is least
//
// x is a tree of floating values of one type, f32 or f64: where the search begins, and then the
// best point found.  The function takes the values of x, and may use values of the functions
// around it.  Derivatives of x in those are the derivatives of the equation that holds at the
// minimum (the gradient is 0), by jot_custom_root, however it was found; the search is not
// differentiated.  They mean something only where it came to an end.
//
// All are to be called while tracing, may be mapped, and fail no call: a search that does not
// come to an end in its steps gives what it has, and says so by `gradient`, which is above tol
// then.  Where the function is not finite at the start, nor anywhere that was tried, x is NaN.
// Mistakes are errors of all results: JOT_ERR_ARGUMENT, JOT_ERR_DTYPE and JOT_ERR_SHAPE.
#ifndef JOT_MINIMIZE_H
#define JOT_MINIMIZE_H

#include "jot/solvers.h"

// Where a search ended; without derivatives.
typedef struct jot_search {
    jot_value value;    // of the function
    jot_value gradient; // the largest absolute element of the gradient
    jot_value steps;    // i32
} jot_search;

// Named options of the methods below, `.tol = 1e-6`.
typedef struct jot_minimize_options {
    double tol;          // ends when the gradient is no larger; 0: 1e-4 in f32, 1e-8 in f64
    int64_t max_steps;   // 0: 500
    int history;         // of jot_lbfgs: steps that it remembers; 0: 10
    bool is_matrix_free; // of least squares: products with J, not its matrix
    size_t size;         // of this struct, set by the macro; 0 is this version
} jot_minimize_options;

JOT_BEGIN_C

// The least value of f, which gives one real number and has a gradient.  Both go along
//     d = -H g       jot_lbfgs: H after the last `history` steps, by Nocedal's two loops (1980)
//     d = -g + b d   jot_nonlinear_cg: b = max(0, g . (g - g') / g' . g'), Polak and Ribiere, 1969
// to a point with the strong conditions of Wolfe, f <= f' + 1e-4 t g' . d and |g . d| <= c |g'
// . d| (c = 0.9; 0.1), where ' is before the step.
JOT_API jot_search jot_lbfgs_tree(jot_function f, size_t n, jot_value *x,
                                  const jot_minimize_options *options, const char *where);
JOT_API jot_search jot_nonlinear_cg_tree(jot_function f, size_t n, jot_value *x,
                                         const jot_minimize_options *options,
                                         const char *where);

// The least |r|^2 / 2 of residuals r, one value of any shape.  With the Jacobian J a step h
// solves
//     (J^T J + mu) h = -J^T r
// where mu is as large as is needed (Levenberg, 1944; Marquardt, 1963; Nielsen, 1999), or 0
// (Gauss), and then h is halved until the sum falls.  The matrix of J is made, or with
// is_matrix_free h is found by conjugate gradients on products with J and its transpose.
JOT_API jot_search jot_levenberg_marquardt_tree(jot_function residuals, size_t n, jot_value *x,
                                                const jot_minimize_options *options,
                                                const char *where);
JOT_API jot_search jot_gauss_newton_tree(jot_function residuals, size_t n, jot_value *x,
                                         const jot_minimize_options *options,
                                         const char *where);

// The least value of f without derivatives, by a simplex that mirrors, grows and shrinks:
// Nelder and Mead, 1965.  It ends when no two corners differ by more than tol, nor does f
// there; `gradient` is the largest difference of corners.  x has no derivatives.
JOT_API jot_search jot_nelder_mead_tree(jot_function f, size_t n, jot_value *x,
                                        const jot_minimize_options *options, const char *where);

// ---- in convex sets ----

// The nearest point of a set.  Element by element in [low, high]; in the ball of a radius, x of
// any shape; of vectors, in the simplex of numbers from 0 on with a sum, and in the ball of a
// radius of sums of absolute values.  Of the shape of x; half floats are computed in f32.
// JOT_ERR_SHAPE for what is no vector there, a size of a set that is not one number, and bounds
// that do not fit x.  Held, Wolfe and Crowder, 1974; Duchi and others, 2008.
JOT_API jot_value jot_project_box_at(jot_value x, jot_value low, jot_value high,
                                     const char *where);
JOT_API jot_value jot_project_ball_at(jot_value x, jot_value radius, const char *where);
JOT_API jot_value jot_project_simplex_at(jot_value x, jot_value total, const char *where);
JOT_API jot_value jot_project_l1_ball_at(jot_value x, jot_value radius, const char *where);

// The least value of f in a convex set, which the projection maps the values of x into; it
// gives as many values of the same shapes.  Accelerated steps along the gradient: Beck and
// Teboulle, 2009.  `gradient` is how far a step goes, divided by its length.  Derivatives are
// those of x = P(x - gradient).
JOT_API jot_search jot_projected_gradient_tree(jot_function f, jot_function projection,
                                               size_t n, jot_value *x,
                                               const jot_minimize_options *options,
                                               const char *where);

// The x for which x . p x / 2 + q . x is least while low <= a x <= high, with the multipliers y
// of the bounds: p x + q + a^T y = 0, and y is above 0 only at high, below 0 only at low.
// p[n,n] is symmetric and has no negative eigenvalue, a[m,n]; bounds may be infinite, and are
// equal for equations.  By alternating directions, as OSQP (Stellato and others,
// arXiv:1711.08013), which ends when no equation is off by more than tol (1 + what stands in
// it), and a last step of Newton's.  Options: tol (1e-5 in f32, 1e-8 in f64), max_steps (4000).
// x and y have derivatives in all five where bounds with a multiplier 0 are not met and the
// rows of those that are do not depend on each other.  Of five values of f32 or of f64
// (JOT_ERR_DTYPE, JOT_ERR_SHAPE).
typedef struct jot_quadratic_solution {
    jot_value x, y;
    jot_value residual, steps; // before the last step; without derivatives
} jot_quadratic_solution;
JOT_API jot_quadratic_solution jot_quadratic_program_at(jot_value p, jot_value q, jot_value a,
                                                        jot_value low, jot_value high,
                                                        const jot_minimize_options *options,
                                                        const char *where);

JOT_END_C

#if !defined(JOT_PLAIN)

// jot_lbfgs(f, &x, .tol = 1e-6)
#if defined(__cplusplus)
#define JOT_MINIMIZE_(name, f, x) name##_tree(JOT_SEARCHED_(name, f, x))
#define JOT_SEARCHED_(name, f, x) f, JOT_TREE_(#name, *(x)), nullptr, JOT_HERE ": " #name
#else
#define JOT_MINIMIZE_(name, f, ...) name##_tree(JOT_SEARCHED_(name, f, __VA_ARGS__))
#define JOT_SEARCHED_(name, f, ...)                                                            \
    JOT_A_FUNCTION_(#name, f), JOT_TREE_(#name, *(JOT_FIRST_(__VA_ARGS__, 0))),                \
        JOT_OPTIONS_(jot_minimize_options, #name " takes (f, &x), and named options",          \
                     JOT_REST_(__VA_ARGS__, .size = sizeof(jot_minimize_options))),            \
        JOT_HERE ": " #name
#endif
#define jot_lbfgs(f, ...) JOT_MINIMIZE_(jot_lbfgs, f, __VA_ARGS__)
#define jot_nonlinear_cg(f, ...) JOT_MINIMIZE_(jot_nonlinear_cg, f, __VA_ARGS__)
#define jot_levenberg_marquardt(r, ...) JOT_MINIMIZE_(jot_levenberg_marquardt, r, __VA_ARGS__)
#define jot_gauss_newton(r, ...) JOT_MINIMIZE_(jot_gauss_newton, r, __VA_ARGS__)
#define jot_nelder_mead(f, ...) JOT_MINIMIZE_(jot_nelder_mead, f, __VA_ARGS__)
// jot_projected_gradient(f, projection, &x, .tol = 1e-6)
#define jot_projected_gradient(f, projection, ...)                                             \
    jot_projected_gradient_tree(                                                               \
        f, JOT_SEARCHED_(jot_projected_gradient, projection, __VA_ARGS__))

// clang-format off
#define jot_project_box(x, low, high) jot_project_box_at(JOT_VALUE_("jot_project_box", x), JOT_VALUE_("jot_project_box", low), JOT_VALUE_("jot_project_box", high), JOT_HERE ": jot_project_box(" #x ", " #low ", " #high ")")
#define jot_project_ball(x, radius) jot_project_ball_at(JOT_VALUE_("jot_project_ball", x), JOT_VALUE_("jot_project_ball", radius), JOT_HERE ": jot_project_ball(" #x ", " #radius ")")
#define jot_project_simplex(x, total) jot_project_simplex_at(JOT_VALUE_("jot_project_simplex", x), JOT_VALUE_("jot_project_simplex", total), JOT_HERE ": jot_project_simplex(" #x ", " #total ")")
#define jot_project_l1_ball(x, radius) jot_project_l1_ball_at(JOT_VALUE_("jot_project_l1_ball", x), JOT_VALUE_("jot_project_l1_ball", radius), JOT_HERE ": jot_project_l1_ball(" #x ", " #radius ")")
// clang-format on

// jot_quadratic_program(p, q, a, low, high, .tol = 1e-6)
#define JOT_QUADRATIC_(p, q, a, low, high, ...)                                                \
    jot_quadratic_program_at(                                                                  \
        JOT_VALUE_("jot_quadratic_program", p), JOT_VALUE_("jot_quadratic_program", q),        \
        JOT_VALUE_("jot_quadratic_program", a), JOT_VALUE_("jot_quadratic_program", low),      \
        JOT_VALUE_("jot_quadratic_program", high), __VA_ARGS__,                                \
        JOT_HERE ": jot_quadratic_program")
#if defined(__cplusplus)
#define jot_quadratic_program(p, q, a, low, high) JOT_QUADRATIC_(p, q, a, low, high, nullptr)
#else
#define jot_quadratic_program(p, q, a, low, ...)                                               \
    JOT_QUADRATIC_(p, q, a, low, JOT_FIRST_(__VA_ARGS__, 0),                                   \
                   JOT_OPTIONS_(jot_minimize_options,                                          \
                                "jot_quadratic_program takes (p, q, a, low, high), and named " \
                                "options",                                                     \
                                JOT_REST_(__VA_ARGS__, .size = sizeof(jot_minimize_options))))
#endif

#endif // JOT_PLAIN

#endif
