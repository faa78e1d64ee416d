// SPDX-License-Identifier: Apache-2.0
// Functions as values, and what can be made of them: derivatives, maps, rules of one's own.
//
// A jot_function says what to trace and how to transform it.  It is a small value: nothing to free,
// nothing to leak, and transforms nest, jot_grad(jot_vmap(f)).  Its parts are not for users.  What
// is wrong with it is reported where it is used, with the place of the transform that is wrong.
//
//     jot_fn(energy)                                    C function of jot_value arguments
//     JOT_FUNCTION(step_fn, step, struct mlp, struct mlp, jot_value, jot_value);      over structs
//     jot_function_make(body, 3, 1, ctx)                uniform signature, with a context
//
// Arguments are numbered from 0; a struct is one argument.  A function is traced once for each set
// of types it is used with, so it must give the same for the same arguments: numbers that ctx
// points to must not change while it is in use.  Values of a trace around it may (jot_apply).
//
// A traced function, the body of a block and a rule are code of the user inside a call of jot.  They
// may call any function of jot, compiled functions included, and release the executable that is
// being traced, which is freed when its call returns; they cannot call it.  They may fork.  They may
// leave the call by an exception of C++, by longjmp or by ending the thread: the trace ends as if it
// had never been, and what it was for can be called again.  An exception runs the cleanup of jot on
// its way.  After a longjmp the next call of jot on the thread cleans up, wherever it stands; another
// thread that wants the same executable waits up to ten seconds for one that still seems to trace.
// On a stack of the user's own, as of a coroutine, a longjmp over jot is not noticed.
#ifndef JOT_TRANSFORM_H
#define JOT_TRANSFORM_H

#include "jot/trace.h"

#if defined(__cplusplus)
#include <cstring>
#include <tuple>
#endif

// The uniform signature: reads in[0 .. n_in-1], sets all of out[0 .. n_out-1].
typedef void jot_body(const jot_value *in, jot_value *out, void *ctx);

#define JOT_MAX_TRANSFORMS 8
#define JOT_MAX_ARGUMENTS 16

typedef struct jot_transform {
    uint8_t kind, n, n_out;
    int8_t axis[JOT_MAX_ARGUMENTS], out_axis[JOT_MAX_ARGUMENTS];
    const char *where;
} jot_transform;

// A C function: what to call and how its arguments and results are grouped.
typedef struct jot_callee {
    const char *name, *where;
    jot_body *body;                             // uniform signature, or NULL
    void (*plain)(void);                        // jot_value f(jot_value, ...), n_args of them
    void *ctx;                                  // borrowed
    const uint16_t *arg_leaves, *result_leaves; // values in each; NULL: one
    int16_t n_args, n_results;
} jot_callee;

typedef struct jot_function {
    jot_callee callee, rule[2];
    uint16_t rule_kind, n_transforms;
    const char *rule_where;
    jot_transform transform[JOT_MAX_TRANSFORMS]; // innermost first
} jot_function;

JOT_BEGIN_C

// ---- functions ----

JOT_API jot_function jot_function_plain(const char *name, const char *where, int n_args,
                                        void (*f)(void));
JOT_API jot_function jot_function_uniform(const char *name, const char *where, jot_body *f,
                                          int n_in, int n_out, void *ctx);
// The same with arguments and results that are trees; the lists are borrowed.
JOT_API jot_function jot_function_trees(const char *name, const char *where, jot_body *f,
                                        int n_args, const uint16_t *arg_leaves, int n_results,
                                        const uint16_t *result_leaves, void *ctx);

// Calls f on values while tracing, as jot_apply(f, n_in, in, n_out, out).  A function that uses
// nothing but its arguments is traced once for each set of types, and further uses refer to it.
// One that uses values of traced functions around it is traced at every use; uses that make the
// same graph share it.  Without a place (NULL) what it records has the next one.
JOT_API void jot_apply_at(jot_function f, size_t n_in, const jot_value *in, size_t n_out,
                          jot_value *out, const char *where);

// ---- transforms of functions ----
// Lists of arguments end with JOT_END; a list without entries is the default.

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
// results outermost.  A derivative has the shape of the result followed by that of the argument.
// jacfwd goes forward, one pass for each element of the arguments; jacrev backward, one for each
// element of the results.
JOT_API jot_function jot_jacfwd_of(jot_function f, const char *where, const int *args);
JOT_API jot_function jot_jacrev_of(jot_function f, const char *where, const int *args);
// The second derivatives of the one real scalar that f gives.
JOT_API jot_function jot_hessian_of(jot_function f, const char *where, const int *args);

// f mapped over one axis of its arguments: one number for each argument (a tree has it in all its
// values), JOT_NONE for an argument that every call sees whole.  Without a list axis 0 of all.
// Results have the mapped axis first.  Tangents and cotangents that jot_jvp and jot_vjp put behind
// the arguments are mapped over axis 0, unless the list goes on with a number for each of them:
//     jot_vmap(jot_vjp(f), JOT_NONE, 0)        of f with one argument: many cotangents at one point
JOT_API jot_function jot_vmap_of(jot_function f, const char *where, const int *axes);
// The same with the place of the mapped axis in each result; JOT_NONE for a result that is the same
// in all calls, which is checked.
JOT_API jot_function jot_vmap_axes_of(jot_function f, const char *where, const int *in_axes,
                                      const int *out_axes);

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

typedef struct jot_block jot_block;
typedef struct jot_piece {
    void *at; // a variable, struct or array that holds n values
    size_t n;
    const char *name;
} jot_piece;
JOT_API jot_block *jot_vmap_begin(const jot_piece *in, const jot_piece *out, const char *where);
JOT_API bool jot_block_next(jot_block *b);
JOT_API void jot_block_leave(jot_block **b);

JOT_END_C

// ---------------------------------------------------------------------------------------
// The convenient layer.

#if defined(__cplusplus)

// The uniform signature of a C++ function over values and structs of values.
template <auto function> struct jot_wrapped_;
template <class Result, class... Argument, Result (*function)(Argument...)>
struct jot_wrapped_<function> {
    static constexpr uint16_t leaves[] = {static_cast<uint16_t>(jot_count_<Argument>())...,
                                          static_cast<uint16_t>(jot_count_<Result>())};
    template <class T> static T take(const jot_value *&at)
    {
        T x;
        std::memcpy(&x, at, sizeof x);
        at += jot_count_<T>();
        return x;
    }
    static void body(const jot_value *in, jot_value *out, void *)
    {
        std::tuple<Argument...> arguments{take<Argument>(in)...};
        Result result = std::apply(function, arguments);
        std::memcpy(out, &result, sizeof result);
    }
    static jot_function make(const char *name, const char *where)
    {
        return jot_function_trees(name, where, body, sizeof...(Argument), leaves, 1,
                                  leaves + sizeof...(Argument), nullptr);
    }
};

// Defines NAME, the function value of F; the types may be written as in C, but are known.
#define JOT_FUNCTION(NAME, F, ...)                                                             \
    JOT_UNUSED static const jot_function NAME = jot_wrapped_<F>::make(#F, JOT_HERE)

// A function value from a C function of jot_value arguments.
#define jot_fn(f) jot_fn_(#f, JOT_HERE, f)
template <class... T>
inline jot_function jot_fn_(const char *name, const char *where, jot_value (*f)(T...))
{
    return jot_function_plain(name, where, static_cast<int>(sizeof...(T)),
                              reinterpret_cast<void (*)()>(f));
}

#else

// A function value from a C function of one to eight jot_value arguments.
// clang-format off
#define jot_fn(f)                                                                              \
    jot_function_plain(                                                                        \
        #f, JOT_HERE,                                                                          \
        _Generic((f),                                                                          \
            jot_value (*)(jot_value): 1,                                                       \
            jot_value (*)(jot_value, jot_value): 2,                                            \
            jot_value (*)(jot_value, jot_value, jot_value): 3,                                 \
            jot_value (*)(jot_value, jot_value, jot_value, jot_value): 4,                      \
            jot_value (*)(jot_value, jot_value, jot_value, jot_value, jot_value): 5,           \
            jot_value (*)(jot_value, jot_value, jot_value, jot_value, jot_value, jot_value): 6, \
            jot_value (*)(jot_value, jot_value, jot_value, jot_value, jot_value, jot_value,    \
                          jot_value): 7,                                                       \
            jot_value (*)(jot_value, jot_value, jot_value, jot_value, jot_value, jot_value,    \
                          jot_value, jot_value): 8),                                           \
        (void (*)(void))(f))
// clang-format on

// Defines NAME, the function value of F, a C function over values and structs of values:
//     JOT_FUNCTION(step_fn, step, struct mlp, struct mlp, jot_value, jot_value);
// after the definition of   struct mlp step(struct mlp, jot_value, jot_value).  Up to 8 arguments.
// clang-format off
#define JOT_FUNCTION(name, f, ...)                                                             \
    JOT_PICK9_(__VA_ARGS__, JOT_FUNCTION8_, JOT_FUNCTION7_, JOT_FUNCTION6_, JOT_FUNCTION5_,    \
               JOT_FUNCTION4_, JOT_FUNCTION3_, JOT_FUNCTION2_, JOT_FUNCTION1_, 0)              \
    (name, f, __VA_ARGS__)
#define JOT_PICK9_(r, a, b, c, d, e, f, g, h, n, ...) n
#define JOT_N_(t) (sizeof(t) / sizeof(jot_value))
#define JOT_FUNCTION1_(name, f, r, A) JOT_WRAP_(name, f, r, 1, (t->a), (A a;), JOT_N_(A))
#define JOT_FUNCTION2_(name, f, r, A, B)                                                       \
    JOT_WRAP_(name, f, r, 2, (t->a, t->b), (A a; B b;), JOT_N_(A), JOT_N_(B))
#define JOT_FUNCTION3_(name, f, r, A, B, C)                                                    \
    JOT_WRAP_(name, f, r, 3, (t->a, t->b, t->c), (A a; B b; C c;), JOT_N_(A), JOT_N_(B),       \
              JOT_N_(C))
#define JOT_FUNCTION4_(name, f, r, A, B, C, D)                                                 \
    JOT_WRAP_(name, f, r, 4, (t->a, t->b, t->c, t->d), (A a; B b; C c; D d;), JOT_N_(A),       \
              JOT_N_(B), JOT_N_(C), JOT_N_(D))
#define JOT_FUNCTION5_(name, f, r, A, B, C, D, E)                                              \
    JOT_WRAP_(name, f, r, 5, (t->a, t->b, t->c, t->d, t->e), (A a; B b; C c; D d; E e;),       \
              JOT_N_(A), JOT_N_(B), JOT_N_(C), JOT_N_(D), JOT_N_(E))
#define JOT_FUNCTION6_(name, f, r, A, B, C, D, E, F)                                           \
    JOT_WRAP_(name, f, r, 6, (t->a, t->b, t->c, t->d, t->e, t->f),                             \
              (A a; B b; C c; D d; E e; F f;), JOT_N_(A), JOT_N_(B), JOT_N_(C), JOT_N_(D),     \
              JOT_N_(E), JOT_N_(F))
#define JOT_FUNCTION7_(name, f, r, A, B, C, D, E, F, G)                                        \
    JOT_WRAP_(name, f, r, 7, (t->a, t->b, t->c, t->d, t->e, t->f, t->g),                       \
              (A a; B b; C c; D d; E e; F f; G g;), JOT_N_(A), JOT_N_(B), JOT_N_(C),           \
              JOT_N_(D), JOT_N_(E), JOT_N_(F), JOT_N_(G))
#define JOT_FUNCTION8_(name, f, r, A, B, C, D, E, F, G, H)                                     \
    JOT_WRAP_(name, f, r, 8, (t->a, t->b, t->c, t->d, t->e, t->f, t->g, t->h),                 \
              (A a; B b; C c; D d; E e; F f; G g; H h;), JOT_N_(A), JOT_N_(B), JOT_N_(C),      \
              JOT_N_(D), JOT_N_(E), JOT_N_(F), JOT_N_(G), JOT_N_(H))
// clang-format on
#define JOT_STRIP_(...) __VA_ARGS__
#define JOT_WRAP_(NAME, FUNCTION, RESULT, N, ARGUMENTS, MEMBERS, ...)                          \
    struct NAME##_arguments_ {                                                                 \
        JOT_STRIP_ MEMBERS                                                                     \
    };                                                                                         \
    _Static_assert(sizeof(RESULT) % sizeof(jot_value) == 0 &&                                  \
                       sizeof(struct NAME##_arguments_) % sizeof(jot_value) == 0,              \
                   #FUNCTION ": arguments and result may hold only jot_value");                \
    static void NAME##_body_(const jot_value *in, jot_value *out, void *ctx)                   \
    {                                                                                          \
        const struct NAME##_arguments_ *t = (const void *)in;                                  \
        *(RESULT *)(void *)out = FUNCTION ARGUMENTS;                                           \
        (void)ctx;                                                                             \
    }                                                                                          \
    static const uint16_t NAME##_leaves_[] = {__VA_ARGS__, JOT_N_(RESULT)};                    \
    JOT_UNUSED static const jot_function NAME = {                                              \
        .callee = {.name = #FUNCTION,                                                          \
                   .where = JOT_HERE,                                                          \
                   .body = NAME##_body_,                                                       \
                   .arg_leaves = NAME##_leaves_,                                               \
                   .result_leaves = NAME##_leaves_ + (N),                                      \
                   .n_args = (N),                                                              \
                   .n_results = 1}}

#endif

// A function value from the uniform signature.
#define jot_function_make(f, n_in, n_out, ctx)                                                 \
    jot_function_uniform(#f, JOT_HERE, (f), (n_in), (n_out), (ctx))

#if !defined(JOT_PLAIN)

#define jot_apply(...) jot_apply_at(__VA_ARGS__, JOT_HERE ": jot_apply")

// jot_grad(f)  jot_grad(f, 0, 1)  jot_vmap(f)  jot_vmap(f, 0, JOT_NONE)
#define JOT_TRANSFORM_(f, ...)                                                                 \
    f(JOT_FIRST_(__VA_ARGS__, 0), JOT_HERE, JOT_INTS_(JOT_REST_(__VA_ARGS__, JOT_END)))
#define jot_grad(...) JOT_TRANSFORM_(jot_grad_of, __VA_ARGS__)
#define jot_value_and_grad(...) JOT_TRANSFORM_(jot_value_and_grad_of, __VA_ARGS__)
#define jot_jvp(...) JOT_TRANSFORM_(jot_jvp_of, __VA_ARGS__)
#define jot_vjp(...) JOT_TRANSFORM_(jot_vjp_of, __VA_ARGS__)
#define jot_jacfwd(...) JOT_TRANSFORM_(jot_jacfwd_of, __VA_ARGS__)
#define jot_jacrev(...) JOT_TRANSFORM_(jot_jacrev_of, __VA_ARGS__)
#define jot_hessian(...) JOT_TRANSFORM_(jot_hessian_of, __VA_ARGS__)
#define jot_vmap(...) JOT_TRANSFORM_(jot_vmap_of, __VA_ARGS__)
// jot_vmap_axes(f, JOT_AXES(0, JOT_NONE), JOT_AXES(1))
#define jot_vmap_axes(f, ...) jot_vmap_axes_of((f), JOT_HERE, __VA_ARGS__)
#define JOT_AXES(...) JOT_INTS_(__VA_ARGS__, JOT_END)
#define jot_checkpoint(f) jot_checkpoint_of((f), JOT_HERE)
#define jot_custom_jvp(f, rule) jot_custom_jvp_of((f), (rule), JOT_HERE)
#define jot_custom_vjp(f, forward, backward)                                                   \
    jot_custom_vjp_of((f), (forward), (backward), JOT_HERE)

#if defined(JOT_AUTO_)

// The gradient of the real scalar y in x, a value or a tree; the result has the type of x.
#define jot_gradient(y, x)                                                                     \
    JOT_GRADIENT_(y, x, "jot_gradient(" #y ", " #x ")", JOT_CAT(jot_g_, __COUNTER__))
#define JOT_GRADIENT_(y, x, text, g)                                                           \
    __extension__({                                                                            \
        JOT_AUTO_ g = (x);                                                                     \
        JOT_NO_ARRAY_(g);                                                                      \
        jot_gradient_of(JOT_V(y), JOT_TREE(g));                                                \
        jot_place(*JOT_LEAVES(g), JOT_HERE ": " text);                                         \
        g;                                                                                     \
    })
// x under a fresh name: what is computed from the result can be differentiated in it.
#define jot_variable(x) JOT_VARIABLE_(x, "jot_variable(" #x ")", JOT_CAT(jot_x_, __COUNTER__))
#define JOT_VARIABLE_(x, text, v)                                                              \
    __extension__({                                                                            \
        JOT_AUTO_ v = (x);                                                                     \
        JOT_NO_ARRAY_(v);                                                                      \
        jot_variable_tree(JOT_TREE(v));                                                        \
        jot_place(*JOT_LEAVES(v), JOT_HERE ": " text);                                         \
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
        JOT_NO_ARRAY_(v);                                                                      \
        JOT_AUTO_ d = (dx);                                                                    \
        jot_at(jot_tangent_tree(JOT_V(y), JOT_TREE(v), JOT_LEAVES(d)), JOT_HERE ": " text);    \
    })
#define jot_jacobian(y, x) JOT_OP_("jot_jacobian(" #y ", " #x ")", jot_jacobian_of((y), (x)))

// The gradient of f(x, ...) in its first argument, a value or a tree; f is any C function.  A loop
// in f runs once for the value and once for the gradient; jot_grad and jot_value_and_grad, which
// take a whole function, run it once for both.
#define JOT_GRAD(f, ...)                                                                       \
    JOT_GRAD_(f, JOT_CAT(jot_p_, __COUNTER__), JOT_FIRST_(__VA_ARGS__, 0),                     \
              "JOT_GRAD(" #f ", " #__VA_ARGS__ ")", __VA_ARGS__)
#define JOT_GRAD_(f, p, x, text, ...)                                                          \
    __extension__({                                                                            \
        JOT_AUTO_ p = (x);                                                                     \
        JOT_NO_ARRAY_(p);                                                                      \
        jot_variable_tree(JOT_TREE(p));                                                        \
        jot_gradient_tree(JOT_CALL_WITH_(f, p, __VA_ARGS__), JOT_TREE(p));                     \
        jot_place(*JOT_LEAVES(p), JOT_HERE ": " text);                                         \
        p;                                                                                     \
    })
// The same, and *value = f(x, ...).
#define JOT_VALUE_AND_GRAD(value, f, ...)                                                      \
    JOT_VALUE_AND_GRAD_(value, f, JOT_CAT(jot_p_, __COUNTER__), JOT_FIRST_(__VA_ARGS__, 0),    \
                        "JOT_VALUE_AND_GRAD(" #f ", " #__VA_ARGS__ ")", __VA_ARGS__)
#define JOT_VALUE_AND_GRAD_(value, f, p, x, text, ...)                                         \
    __extension__({                                                                            \
        JOT_AUTO_ p = (x);                                                                     \
        JOT_NO_ARRAY_(p);                                                                      \
        jot_variable_tree(JOT_TREE(p));                                                        \
        *(value) = JOT_CALL_WITH_(f, p, __VA_ARGS__);                                          \
        jot_gradient_tree(*(value), JOT_TREE(p));                                              \
        jot_place(*JOT_LEAVES(p), JOT_HERE ": " text);                                         \
        p;                                                                                     \
    })
// f(p, all but the first of the arguments)
#define JOT_CALL_WITH_(f, p, ...)                                                              \
    JOT_PICK16_(__VA_ARGS__, JOT_W2_, JOT_W2_, JOT_W2_, JOT_W2_, JOT_W2_, JOT_W2_, JOT_W2_,    \
                JOT_W2_, JOT_W2_, JOT_W2_, JOT_W2_, JOT_W2_, JOT_W2_, JOT_W2_, JOT_W2_,        \
                JOT_W1_, 0)(f, p, __VA_ARGS__)
#define JOT_W1_(f, p, a) f(p)
#define JOT_W2_(f, p, a, ...) f(p, __VA_ARGS__)

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
#define JOT_PIECE_(x) {&(x), JOT_COUNT(x), #x}
#define JOT_PIECES_(...) {JOT_EACH_(JOT_PIECE_, __VA_ARGS__), {NULL, 0, NULL}}
#define JOT_NO_PIECES_(...) {{NULL, 0, NULL}}
// A list in parentheses, perhaps empty: JOT_COMMA_ meets "()" only when nothing stands between.
#define JOT_COMMA_(...) ,
#define JOT_LIST_(list) jot_write_lists_in_parentheses_ list
#define jot_write_lists_in_parentheses_(...)                                                   \
    JOT_LIST3_(JOT_FIRST_(__VA_ARGS__, 0), __VA_ARGS__)
#define JOT_LIST3_(first, ...)                                                                 \
    JOT_LIST4_(JOT_COMMA_ first(), JOT_NO_PIECES_, JOT_PIECES_, 0)(__VA_ARGS__)
#define JOT_LIST4_(...) JOT_LIST5_(__VA_ARGS__)
#define JOT_LIST5_(a, b, c, ...) c
// clang-format on

#define JOT_BLOCK_(k, begin)                                                                   \
    for (JOT_ON_EXIT_(jot_block_leave) jot_block * JOT_CAT(jot_b_, k) = begin;                 \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)

#define JOT_VMAP(in, out) JOT_VMAP_(__COUNTER__, in, out)
#define JOT_VMAP_(k, in, out)                                                                  \
    for (jot_piece JOT_CAT(jot_c_, k)[] = JOT_LIST_(in),                                       \
                                   JOT_CAT(jot_r_, k)[] = JOT_LIST_(out),                      \
                                   *JOT_CAT(jot_o_, k) = JOT_CAT(jot_c_, k);                   \
         JOT_CAT(jot_o_, k); JOT_CAT(jot_o_, k) = NULL)                                        \
        JOT_BLOCK_(                                                                            \
            k, jot_vmap_begin(JOT_CAT(jot_c_, k), JOT_CAT(jot_r_, k), JOT_HERE ": JOT_VMAP"))  \
    while (jot_block_next(JOT_CAT(jot_b_, k)))

#endif // JOT_PLAIN

#endif
