// SPDX-License-Identifier: Apache-2.0
// Linear systems whose matrix is a function, and roots of equations.
//
//     x = jot_cg(jot_fn(laplacian), b, .tol = 1e-8);                    Krylov methods
//     x = jot_linear_solve(jot_fn(apply), jot_fn(solve), jot_fn(solve), b);      a solver of one's own
//     x = jot_custom_root(jot_fn(f), guess, jot_fn(newton), NULL, NULL);         a root
//
// Names are those of jax.lax and jax.scipy.sparse.linalg.  A is a function of values like those of
// b.  It is linear in them, and may use values of the functions around it.
//
// Derivatives are those of the equation A x = b, however x was found.  Nothing of a solver's
// iterations is kept or differentiated:
//
//     dx = A^-1 (db - dA x)        cotangent of b = A^-T (cotangent of x)
//
// All functions are called while tracing.  None fails a call: a method that does not come to an end
// in its trips, or breaks down, gives what it has.  To know, compare A(x) with b.
#ifndef JOT_SOLVERS_H
#define JOT_SOLVERS_H

#include "jot/transform.h"

JOT_BEGIN_C

// x = solve(b), which is to be x with matvec(x) = b; transposed_solve(c) gives y with matvec^T(y) = c
// (not conjugated), for reverse mode; where A is symmetric it is solve.  All three take the n values
// of b and give n of the same types, float or complex (JOT_ERR_DTYPE, JOT_ERR_SHAPE).
//
//     x = jot_linear_solve(jot_fn(apply), jot_fn(solve), jot_fn(solve), b);
//     jot_linear_solve_tree(apply, solve, solve, 2, b, x, JOT_HERE);         of several values
JOT_API void jot_linear_solve_tree(jot_function matvec, jot_function solve,
                                   jot_function transposed_solve, size_t n, const jot_value *b,
                                   jot_value *x, const char *where);
JOT_API jot_value jot_linear_solve_at(jot_function matvec, jot_function solve,
                                      jot_function transposed_solve, jot_value b,
                                      const char *where);

// Gives x with linear(x) = y, of n values.  The function may use values of the traces around it.
typedef void jot_tangent_solve(jot_function linear, size_t n, const jot_value *y, jot_value *x,
                               void *ctx);

// A root x = solve(guess), which is to be x with f(x) = 0, however it is found, with the derivatives
// of the equation in what f uses besides x:
//
//     dx = -(df/dx)^-1 (df of these at x)
//
// where tangent_solve inverts df/dx, the linear function that it is handed; it must be one that can be
// transposed for reverse mode, as jot_cg or a division are.  NULL: the matrix of df/dx is made and
// jot_solve inverts it, which is right for a few numbers.  None of the guess.  Derivatives up to the
// third order; further ones lack what comes through x.  f and solve take n values and give n of the same
// types, float or complex (JOT_ERR_ARGUMENT, JOT_ERR_DTYPE, JOT_ERR_SHAPE).
//
//     x = jot_custom_root(jot_fn(f), guess, jot_fn(newton), NULL, NULL);
JOT_API void jot_custom_root_tree(jot_function f, size_t n, const jot_value *guess,
                                  jot_function solve, jot_tangent_solve *tangent_solve,
                                  void *ctx, jot_value *x, const char *where);
JOT_API jot_value jot_custom_root_at(jot_function f, jot_value guess, jot_function solve,
                                     jot_tangent_solve *tangent_solve, void *ctx,
                                     const char *where);

// Named options of the methods below, `.tol = 1e-8`.
typedef struct jot_krylov_options {
    double tol, atol;    // ends at |b - A x| <= max(tol |b|, atol); tol 0 is 1e-5, below 0 is 0
    const jot_value *x0; // n values to begin with, of which there is no derivative; NULL: zeros
    int64_t max_trips;   // steps, of jot_gmres rounds; 0: ten times as many as b has elements
    int restart;         // of jot_gmres: directions that a round keeps; 0: 20
    const jot_function *preconditioner; // about A^-1, of the type of A; NULL: the identity
    size_t size;                        // of this struct, set by the macro; 0 is this version
} jot_krylov_options;

// x with A x = b, of n values as one vector.  jot_cg_at, ... take and give one; options may be NULL.
// jot_cg: conjugate gradients, for A that is symmetric (Hermitian) and positive definite, and a
// preconditioner that is, too.  Hestenes and Stiefel, 1952.
// jot_bicgstab: for any A, two products a step; ends early when it breaks down.  van der Vorst, 1992.
// jot_gmres: for any A, the least |M (b - A x)| over `restart` directions, one round after the
// other.  Saad and Schultz, 1986; Gram-Schmidt is done twice.
//
//     x = jot_cg(jot_fn(laplacian), b, .tol = 1e-8);
//
// Errors: JOT_ERR_ARGUMENT for a negative number of trips or directions, or NaN as tolerance.
JOT_API void jot_cg_tree(jot_function a, size_t n, const jot_value *b, jot_value *x,
                         const jot_krylov_options *options, const char *where);
JOT_API void jot_bicgstab_tree(jot_function a, size_t n, const jot_value *b, jot_value *x,
                               const jot_krylov_options *options, const char *where);
JOT_API void jot_gmres_tree(jot_function a, size_t n, const jot_value *b, jot_value *x,
                            const jot_krylov_options *options, const char *where);
JOT_API jot_value jot_cg_at(jot_function a, jot_value b, const jot_krylov_options *options,
                            const char *where);
JOT_API jot_value jot_bicgstab_at(jot_function a, jot_value b,
                                  const jot_krylov_options *options, const char *where);
JOT_API jot_value jot_gmres_at(jot_function a, jot_value b, const jot_krylov_options *options,
                               const char *where);

JOT_END_C

#if !defined(JOT_PLAIN)

// clang-format off
#define jot_linear_solve(matvec, solve, transposed_solve, b)                                   \
    jot_linear_solve_at(JOT_A_FUNCTION_("jot_linear_solve", matvec), JOT_A_FUNCTION_("jot_linear_solve", solve), JOT_A_FUNCTION_("jot_linear_solve", transposed_solve), JOT_VALUE_("jot_linear_solve", b),                       \
                        JOT_HERE ": jot_linear_solve(" #b ")")
#define jot_custom_root(f, guess, solve, tangent_solve, ctx)                                   \
    jot_custom_root_at(JOT_A_FUNCTION_("jot_custom_root", f), JOT_VALUE_("jot_custom_root", guess), JOT_A_FUNCTION_("jot_custom_root", solve), tangent_solve, ctx,                     \
                       JOT_HERE ": jot_custom_root(" #f ", " #guess ")")
#if defined(__cplusplus)
#define JOT_KRYLOV_(f, a, b) f##_at(a, JOT_VALUE_(#f, b), nullptr, JOT_HERE ": " #f "(" #b ")")
#define jot_cg(a, b) JOT_KRYLOV_(jot_cg, a, b)
#define jot_bicgstab(a, b) JOT_KRYLOV_(jot_bicgstab, a, b)
#define jot_gmres(a, b) JOT_KRYLOV_(jot_gmres, a, b)
#else
// jot_cg(a, b, .tol = 1e-8)
#define JOT_KRYLOV_(f, a, ...)                                                                 \
    f##_at(JOT_A_FUNCTION_(#f, a), JOT_VALUE_(#f, JOT_FIRST_(__VA_ARGS__, 0)),                                             \
           JOT_OPTIONS_(jot_krylov_options, #f " takes (a, b, .tol = ..., .atol = ..., .x0 = ..., .max_trips = ...)", \
                        JOT_REST_(__VA_ARGS__, .size = sizeof(jot_krylov_options))),           \
           JOT_HERE ": " #f)
#define jot_cg(a, ...) JOT_KRYLOV_(jot_cg, a, __VA_ARGS__)
#define jot_bicgstab(a, ...) JOT_KRYLOV_(jot_bicgstab, a, __VA_ARGS__)
#define jot_gmres(a, ...) JOT_KRYLOV_(jot_gmres, a, __VA_ARGS__)
#endif
// clang-format on

#endif // JOT_PLAIN

#endif
