// SPDX-License-Identifier: Apache-2.0
// Differential equations: y' = f(t, y, p) from y(t0) on, and stochastic ones.
//
//     static struct state slope(jot_value t, struct state y, struct rates p) { ... }
//     JOT_FUNCTION(slope_fn, slope, struct state, jot_value, struct state, struct rates);
//
//     y = jot_ode_solve(slope_fn, 0, 10, y, .parameters = JOT_PARAMETERS(p), .rtol = 1e-8);
//
// The state y is a value or a tree of them, of any shapes; what comes has the type of what is
// given.  p is another tree; without .parameters f takes t and y alone.  f may use values of
// the functions around it as well.  Times are C numbers or values of rank 0, and t1 may lie
// before t0.  Names and defaults are those of Diffrax where it has them.
//
// Solving is a loop of the traced function (jot/control.h).  Under jot_vmap each lane has steps
// of its own and ends by itself, and as long as f works on elements all lanes are one kernel.
//
// dtypes: floats and complex numbers of y keep their type; C numbers and integers become floats
// as wide as the slopes.  Time is computed in the widest real type of t0, t1 and y, in f32 at
// least.
//
// Derivatives, forward and reverse, are those of the steps that were taken: lengths of steps
// are constants, but that the last one ends at t1.  With .adjoint = JOT_ODE_CONTINUOUS reverse
// mode solves the adjoint equation instead.
#ifndef JOT_ODE_H
#define JOT_ODE_H

#include "jot/transform.h"

#include <stdint.h>

JOT_BEGIN_C

// Runge-Kutta methods: slopes in a step, order of the solution, of the estimate of its error.
typedef enum jot_ode_method {
    JOT_ODE_TSIT5,    // 6, order 5(4): Tsitouras, 2011
    JOT_ODE_EULER,    // 1, order 1; .steps only
    JOT_ODE_MIDPOINT, // 2, order 2(1)
    JOT_ODE_HEUN,     // 2, order 2(1): the trapezoid rule with Euler's guess
    JOT_ODE_BOSH3,    // 3, order 3(2): Bogacki and Shampine, 1989
    JOT_ODE_RK4,      // 4, order 4: Kutta, 1901; .steps only
    JOT_ODE_DOPRI5,   // 6, order 5(4): Dormand and Prince, 1980
    JOT_ODE_DOPRI8,   // 13, order 8(7): Prince and Dormand, 1981
    // For stiff equations, of real states: L-stable.  They solve systems of as many equations
    // as the state has elements, with the matrix df/dy, which jot derives and factors once a
    // step.
    JOT_ODE_IMPLICIT_EULER, // order 1
    JOT_ODE_KVAERNO3,       // order 3(2), 3 systems by Newton's method: Kvaerno, 2004
    JOT_ODE_KVAERNO5,       // order 5(4), 6 such systems
    JOT_ODE_RODAS5P, // order 5(4), 8 linear systems, a Rosenbrock method: Steinebach, 2023
    // Symplectic, of equations x' = f(t, v), v' = g(t, x); .steps only.  The first half of the
    // values of the state is x, the second half v, and the slope of neither may depend on its
    // own.
    JOT_ODE_SEMI_IMPLICIT_EULER, // order 1: v before x
    JOT_ODE_LEAPFROG,            // order 2, one g a step: half of v, x, half of v; Verlet, 1967
} jot_ode_method;

// How the solution ended.  With JOT_ODE_MOST_STEPS and JOT_ODE_STEP_TOO_SMALL the call does not
// fail, but y is NaN, and so are its derivatives.
enum jot_ode_status {
    JOT_ODE_DONE,
    JOT_ODE_MOST_STEPS, // t1 is further than most_steps steps; methods for stiff equations help
    // A step that the tolerance allows does not move t, or f is not finite.
    JOT_ODE_STEP_TOO_SMALL,
    JOT_ODE_EVENT, // .event has changed its sign
};

// Of i32[], and a time.
typedef struct jot_ode_result {
    jot_value status;
    jot_value accepted, rejected; // steps
    jot_value time;               // where the steps ended: t1, or before
} jot_ode_result;

// How the errors of all elements become one number.
typedef enum jot_ode_norm {
    JOT_ODE_RMS, // root of the mean of squares over all elements of the state
    JOT_ODE_MAX, // the largest
} jot_ode_norm;

// What reverse mode differentiates.
typedef enum jot_ode_adjoint {
    JOT_ODE_OF_STEPS, // the derivative of the solver's own steps
    // Reverse mode solves a' = -a df/dy backwards from t1 to t0, beside y and the integral of a
    // df/dp, by the same method and tolerances.  It keeps nothing on the way there.  Its error
    // is that of solving, and where y cannot be solved backwards it is wrong.  f may not use
    // values of functions around it whose derivative is wanted, but by .parameters.  Not by
    // symplectic methods.  NaN where it does not come to t0.
    JOT_ODE_CONTINUOUS,
} jot_ode_adjoint;

// Zero is the default of every field.
typedef struct jot_ode_options {
    jot_ode_method method;
    jot_piece parameters; // JOT_PARAMETERS(p)
    // Where y is wanted: floats of shape [n], from t0 towards t1, in order.  Each value of the
    // result has a new first axis of them.  Steps do not end at these times: y is what a
    // shorter step from the point before gives, so that it is as exact as the steps are.  Where
    // the solution does not come, and outside of t0 to t1, NaN; steps of one length go to any
    // time.
    jot_value times;
    // Steps of one length: so many from t0 to t1, or with times to each from the one before.
    // 0: steps as long as the error allows, by the fields down to longest_step.
    int64_t steps;
    // f(t, y, p) as the slope takes them, one real number: the solution ends where it becomes
    // zero after it was not, and has the derivative of this equation in y and result->time.  A
    // step in which it changes its sign twice is not noticed; longest_step helps.  Not with
    // steps, times or the continuous adjoint.
    const jot_function *event;
    // A step is accepted where the norm of  error / (atol + rtol max(|y before|, |y after|))
    // is at most 1.  rtol 0 is 1e-6, of time in f32 1e-4; atol 0 is rtol / 1000.  In steps of
    // one length as well they bound what Newton's method leaves; where it does not converge, y
    // is NaN.
    double rtol, atol;
    jot_ode_norm norm;
    // Gains of the controller: with e the norm of this step, e1 and e2 of the accepted ones
    // before, and k the order of the estimate, a step is followed by one 0.2 to 10 times as
    // long, namely
    //     0.9 e^(-(p + i + d) / k) e1^((p + 2 d) / k) e2^(-d / k).
    // All 0: i = 1.  Where accuracy does not bound the steps but stability, p = 0.4, i = 0.3
    // rejects fewer.  Soederlind, ACM Trans. Math. Softw. 29 (2003) 1.
    double p, i, d;
    double first_step;   // 0: from f and its change, as Hairer, Noersett and Wanner, II.4
    double longest_step; // 0: any
    int64_t most_steps;  // accepted and rejected; 0: 4096
    jot_ode_adjoint adjoint;
    // What reverse mode keeps of the steps as the error allows: so many states
    // (jot_loop_options), 0: 64; -1: all of them.  Of steps of one length: `checkpoint` of
    // jot_loop_options.
    int64_t slots, checkpoint;
    jot_ode_result *result; // what became of it, unless NULL
    size_t size;            // of this struct, set by the macro; 0 is this version
} jot_ode_options;

// y becomes y(t1), or with times y at these.  f takes t, the n values of the state, and the
// parameters, and gives the n slopes, of the shapes of the state.  options may be NULL.
//
// Errors: JOT_ERR_ARGUMENT for a method without an estimate of its error and no steps, and for
// numbers that are negative or NaN, and counts above 2^31 - 1; JOT_ERR_DTYPE where a slope is
// complex and the state is not; JOT_ERR_SHAPE for slopes and times of other shapes.
JOT_API void jot_ode_solve_tree(jot_function f, jot_value t0, jot_value t1, size_t n,
                                jot_value *y, const jot_ode_options *options,
                                const char *where);

// y becomes the steady state that the solution from y, at t0, tends to: the steps end where the
// norm of f / (atol + rtol |y|) is at most 1, which is a speed; result->time tells when.  Where
// they end before, y is what they reached, and result->status tells.  Its derivative in what f
// uses is that of f(t, y, p) = 0, however it was found, by a matrix that is derived and solved;
// none in the start.  Without .event, .steps, .times and .adjoint.
JOT_API void jot_ode_steady_state_tree(jot_function f, jot_value t0, size_t n, jot_value *y,
                                       const jot_ode_options *options, const char *where);

// ---- Stochastic equations ----
//
//     dX = f(t, X, p) dt + g(t, X, p) dW
//
// from t0 to t1, which may lie before t0: dW then has the variance |dt|, and is what a step
// back adds.  Every element of the state has noise of its own, g of the shape of X, and its g
// depends on no other element.

// Strong order: the mean error of a path falls with this power of the length of steps.
typedef enum jot_sde_method {
    JOT_SDE_EULER_MARUYAMA, // Ito, 1/2; 1 where g does not depend on X.  Maruyama, 1955
    JOT_SDE_MILSTEIN,       // Ito, 1, with the derivative of g.  Milstein, 1974
    JOT_SDE_HEUN,           // Stratonovich, 1.  Rumelin, 1982
    JOT_SDE_SRK, // Ito, 1, without a derivative: Platen's.  Kloeden and Platen, 1992, 11.1
} jot_sde_method;

// Zero is the default of every field but steps.
typedef struct jot_sde_options {
    jot_sde_method method;
    jot_piece parameters; // as in jot_ode_options, both functions have them
    jot_value times;      // where X is wanted, as in jot_ode_options
    int64_t steps; // of one length, from t0 to t1 or to each of the times from the one before
    // Levels of a virtual tree, 1 to 30: the path of W depends on the key, t0 and t1 alone,
    // whatever steps there are, and is straight between points (t1 - t0) / 2^tree apart.  A
    // step costs as many normal numbers.  0: step i has a number of its own,
    // jot_random_fold_in(key, i), and that is all it costs.  Of several values, value j has the
    // key jot_random_fold_in(key, j) of this key.
    int tree;
    int64_t checkpoint; // of jot_loop_options
    size_t size;        // of this struct, set by the macro; 0 is this version
} jot_sde_options;

// X becomes X(t1), or with times X at these, on the path that the key chooses.  Derivatives in
// all but the key are those of the steps, of a path that stays; with a tree none of W in time.
// Errors as those of jot_ode_solve, and JOT_ERR_ARGUMENT without steps.
JOT_API void jot_sde_solve_tree(jot_function drift, jot_function noise, jot_value t0,
                                jot_value t1, jot_value key, size_t n, jot_value *y,
                                const jot_sde_options *options, const char *where);

// W(t), of the shape and type of like, of the tree of so many levels from t0 to t1: what
// jot_sde_solve has of a state of one value.  W(t0) is 0, and W(t1) has variance |t1 - t0|.
JOT_API jot_value jot_brownian_at(jot_value key, jot_value t0, jot_value t1, jot_value t,
                                  jot_value like, int levels, const char *where);

JOT_END_C

#if !defined(JOT_PLAIN) && defined(JOT_AUTO_)

// A variable that holds the parameters: a value, or a struct or array of values.
#if defined(__cplusplus)
#define JOT_PARAMETERS(p) (jot_piece{&(p), JOT_COUNT_("JOT_PARAMETERS", p), #p})
#else
#define JOT_PARAMETERS(p)                                                                      \
    ((jot_piece){.at = &(p), .n = JOT_COUNT_("JOT_PARAMETERS", p), .name = #p})

// jot_ode_solve(f, t0, t1, y, .rtol = 1e-8): y at t1, or at .times, of the type of y.
#define jot_ode_solve(f, t0, t1, ...)                                                          \
    JOT_ODE_SOLVE_(f, t0, t1,                                                                  \
                   JOT_OPTIONS_(jot_ode_options,                                               \
                                "jot_ode_solve takes (f, t0, t1, y, .method = ..., "           \
                                ".rtol = ..., ...)",                                           \
                                JOT_REST_(__VA_ARGS__, .size = sizeof(jot_ode_options))),      \
                   JOT_CAT(jot_y_, __COUNTER__), JOT_FIRST_(__VA_ARGS__, 0))
#define JOT_ODE_SOLVE_(f, t0, t1, options, v, y)                                               \
    __extension__({                                                                            \
        JOT_AUTO_ v = (y);                                                                     \
        JOT_NO_ARRAY_("jot_ode_solve", v);                                                     \
        jot_ode_solve_tree(JOT_A_FUNCTION_("jot_ode_solve", f),                                \
                           JOT_VALUE_("jot_ode_solve", t0), JOT_VALUE_("jot_ode_solve", t1),   \
                           JOT_TREE_("jot_ode_solve", v), options,                             \
                           JOT_HERE ": jot_ode_solve");                                        \
        v;                                                                                     \
    })

// jot_ode_steady_state(f, t0, y, .rtol = 1e-8): of the type of y.
#define jot_ode_steady_state(f, t0, ...)                                                       \
    JOT_ODE_STEADY_(f, t0,                                                                     \
                    JOT_OPTIONS_(jot_ode_options,                                              \
                                 "jot_ode_steady_state takes (f, t0, y, .method = ..., "       \
                                 ".rtol = ..., ...)",                                          \
                                 JOT_REST_(__VA_ARGS__, .size = sizeof(jot_ode_options))),     \
                    JOT_CAT(jot_y_, __COUNTER__), JOT_FIRST_(__VA_ARGS__, 0))
#define JOT_ODE_STEADY_(f, t0, options, v, y)                                                  \
    __extension__({                                                                            \
        JOT_AUTO_ v = (y);                                                                     \
        JOT_NO_ARRAY_("jot_ode_steady_state", v);                                              \
        jot_ode_steady_state_tree(JOT_A_FUNCTION_("jot_ode_steady_state", f),                  \
                                  JOT_VALUE_("jot_ode_steady_state", t0),                      \
                                  JOT_TREE_("jot_ode_steady_state", v), options,               \
                                  JOT_HERE ": jot_ode_steady_state");                          \
        v;                                                                                     \
    })

// jot_sde_solve(f, g, t0, t1, key, x, .steps = 100): x at t1, or at .times, of the type of x.
#define jot_sde_solve(f, g, t0, t1, key, ...)                                                  \
    JOT_SDE_SOLVE_(                                                                            \
        f, g, t0, t1, key,                                                                     \
        JOT_OPTIONS_(jot_sde_options,                                                          \
                     "jot_sde_solve takes (f, g, t0, t1, key, x, .steps = ..., ...)",          \
                     JOT_REST_(__VA_ARGS__, .size = sizeof(jot_sde_options))),                 \
        JOT_CAT(jot_y_, __COUNTER__), JOT_FIRST_(__VA_ARGS__, 0))
#define JOT_SDE_SOLVE_(f, g, t0, t1, key, options, v, y)                                       \
    __extension__({                                                                            \
        JOT_AUTO_ v = (y);                                                                     \
        JOT_NO_ARRAY_("jot_sde_solve", v);                                                     \
        jot_sde_solve_tree(JOT_A_FUNCTION_("jot_sde_solve", f),                                \
                           JOT_A_FUNCTION_("jot_sde_solve", g),                                \
                           JOT_VALUE_("jot_sde_solve", t0), JOT_VALUE_("jot_sde_solve", t1),   \
                           JOT_VALUE_("jot_sde_solve", key), JOT_TREE_("jot_sde_solve", v),    \
                           options, JOT_HERE ": jot_sde_solve");                               \
        v;                                                                                     \
    })
#endif

#define jot_brownian(key, t0, t1, t, like, levels)                                             \
    jot_brownian_at(JOT_VALUE_("jot_brownian", key), JOT_VALUE_("jot_brownian", t0),           \
                    JOT_VALUE_("jot_brownian", t1), JOT_VALUE_("jot_brownian", t),             \
                    JOT_VALUE_("jot_brownian", like), levels, JOT_HERE ": jot_brownian")

#endif // JOT_PLAIN

#endif
