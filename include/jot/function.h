// SPDX-License-Identifier: Apache-2.0
// Functions as values.
//
// A jot_function says what to trace and how to transform it (jot/transform.h).  It is a small
// value: nothing to free, nothing to leak.  Its parts are not for users.
//
//     jot_fn(energy)                                    C function of jot_value arguments
//     JOT_FUNCTION(step_fn, step, struct mlp, struct mlp, jot_value, jot_value);      over structs
//     jot_function_make(body, 3, 1, ctx)                uniform signature, with a context
//
// Arguments are numbered from 0; a struct is one argument.  A function is traced once for each set
// of types it is used with, so it must give the same for the same arguments: numbers that ctx
// points to must not change while it is in use.  Values of a trace around it may (jot_apply).
#ifndef JOT_FUNCTION_H
#define JOT_FUNCTION_H

#include "jot/trace.h"

#if defined(__cplusplus)
#include <cstring>
#include <tuple>
#endif

// The uniform signature: reads in[0 .. n_in-1], sets all of out[0 .. n_out-1].
typedef void jot_body(const jot_value *in, jot_value *out, void *ctx);

// One transform; its lists live as long as the process.
typedef struct jot_transform {
    const int *axis, *out_axis; // n and n_out numbers
    const char *where;
    const char *name; // of a mapped axis, or NULL
    // Of what the devices of a mesh do on pieces (jot/parallel.h): the mesh, or NULL, and how arguments
    // and results are split.
    const struct jot_mesh *mesh;
    const char *const *split_in, *const *split_out;
    int n_split_in, n_split_out;
    int n, n_out, kind;
} jot_transform;

// A C function: what to call and how its arguments and results are grouped.
typedef struct jot_callee {
    const char *name, *where;
    jot_body *body;                             // uniform signature, or NULL
    void (*plain)(void);                        // jot_value f(jot_value, ...), n_args of them
    void *ctx;                                  // borrowed
    const uint16_t *arg_leaves, *result_leaves; // values in each; NULL: one
    int n_args, n_results;
} jot_callee;

// A function with its transforms.
typedef struct jot_function {
    jot_callee callee, rule[2];
    int rule_kind, n_transforms;
    const char *rule_where;
    const jot_transform *transform; // innermost first; lives as long as the process
} jot_function;

JOT_BEGIN_C

// Of a C function of 1 to 32 values.
JOT_API jot_function jot_function_plain(const char *name, const char *where, int n_args,
                                        void (*f)(void));
// Of any numbers of values; the results may be none.
JOT_API jot_function jot_function_uniform(const char *name, const char *where, jot_body *f,
                                          int n_in, int n_out, void *ctx);
// The same with arguments and results that are trees; the lists are borrowed.
JOT_API jot_function jot_function_trees(const char *name, const char *where, jot_body *f,
                                        int n_args, const uint16_t *arg_leaves, int n_results,
                                        const uint16_t *result_leaves, void *ctx);

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
    static_assert(sizeof...(T) >= 1 && sizeof...(T) <= 32,
                  "jot_fn takes a function of 1 to 32 jot_value that returns one");
    return jot_function_plain(name, where, static_cast<int>(sizeof...(T)),
                              reinterpret_cast<void (*)()>(f));
}

#else

// clang-format off
#define JOT_VALUES1_ jot_value
#define JOT_VALUES2_ JOT_VALUES1_, jot_value
#define JOT_VALUES3_ JOT_VALUES2_, jot_value
#define JOT_VALUES4_ JOT_VALUES3_, jot_value
#define JOT_VALUES5_ JOT_VALUES4_, jot_value
#define JOT_VALUES6_ JOT_VALUES5_, jot_value
#define JOT_VALUES7_ JOT_VALUES6_, jot_value
#define JOT_VALUES8_ JOT_VALUES7_, jot_value
typedef jot_value jot_plain_1(JOT_VALUES1_);
typedef jot_value jot_plain_2(JOT_VALUES2_);
typedef jot_value jot_plain_3(JOT_VALUES3_);
typedef jot_value jot_plain_4(JOT_VALUES4_);
typedef jot_value jot_plain_5(JOT_VALUES5_);
typedef jot_value jot_plain_6(JOT_VALUES6_);
typedef jot_value jot_plain_7(JOT_VALUES7_);
typedef jot_value jot_plain_8(JOT_VALUES8_);
typedef jot_value jot_plain_9(JOT_VALUES8_, JOT_VALUES1_);
typedef jot_value jot_plain_10(JOT_VALUES8_, JOT_VALUES2_);
typedef jot_value jot_plain_11(JOT_VALUES8_, JOT_VALUES3_);
typedef jot_value jot_plain_12(JOT_VALUES8_, JOT_VALUES4_);
typedef jot_value jot_plain_13(JOT_VALUES8_, JOT_VALUES5_);
typedef jot_value jot_plain_14(JOT_VALUES8_, JOT_VALUES6_);
typedef jot_value jot_plain_15(JOT_VALUES8_, JOT_VALUES7_);
typedef jot_value jot_plain_16(JOT_VALUES8_, JOT_VALUES8_);
typedef jot_value jot_plain_17(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES1_);
typedef jot_value jot_plain_18(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES2_);
typedef jot_value jot_plain_19(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES3_);
typedef jot_value jot_plain_20(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES4_);
typedef jot_value jot_plain_21(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES5_);
typedef jot_value jot_plain_22(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES6_);
typedef jot_value jot_plain_23(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES7_);
typedef jot_value jot_plain_24(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES8_);
typedef jot_value jot_plain_25(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES1_);
typedef jot_value jot_plain_26(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES2_);
typedef jot_value jot_plain_27(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES3_);
typedef jot_value jot_plain_28(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES4_);
typedef jot_value jot_plain_29(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES5_);
typedef jot_value jot_plain_30(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES6_);
typedef jot_value jot_plain_31(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES7_);
typedef jot_value jot_plain_32(JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES8_, JOT_VALUES8_);

// A function value from a C function of one to 32 jot_value arguments.
#define jot_fn(f)                                                                              \
    jot_function_plain(                                                                        \
        #f, JOT_HERE,                                                                          \
        JOT_MUST_(JOT_PLAIN_COUNT_(f),                                                         \
                  "jot_fn(" #f "): takes a C function of 1 to 32 jot_value that returns one")  \
            + JOT_PLAIN_COUNT_(f),                                                             \
        (void (*)(void))(f))
#define JOT_PLAIN_COUNT_(f)                                                                    \
    _Generic(f,                                                                              \
        jot_plain_1 *: 1, jot_plain_2 *: 2, jot_plain_3 *: 3,                                  \
        jot_plain_4 *: 4, jot_plain_5 *: 5, jot_plain_6 *: 6,                                  \
        jot_plain_7 *: 7, jot_plain_8 *: 8, jot_plain_9 *: 9,                                  \
        jot_plain_10 *: 10, jot_plain_11 *: 11, jot_plain_12 *: 12,                            \
        jot_plain_13 *: 13, jot_plain_14 *: 14, jot_plain_15 *: 15,                            \
        jot_plain_16 *: 16, jot_plain_17 *: 17, jot_plain_18 *: 18,                            \
        jot_plain_19 *: 19, jot_plain_20 *: 20, jot_plain_21 *: 21,                            \
        jot_plain_22 *: 22, jot_plain_23 *: 23, jot_plain_24 *: 24,                            \
        jot_plain_25 *: 25, jot_plain_26 *: 26, jot_plain_27 *: 27,                            \
        jot_plain_28 *: 28, jot_plain_29 *: 29, jot_plain_30 *: 30,                            \
        jot_plain_31 *: 31, jot_plain_32 *: 32,                                                \
        default: 0)

// Defines NAME, the function value of F, a C function over values and structs of values:
//     JOT_FUNCTION(step_fn, step, struct mlp, struct mlp, jot_value, jot_value);
// after the definition of   struct mlp step(struct mlp, jot_value, jot_value).  Up to 32 arguments.
#define JOT_FUNCTION(NAME, F, RESULT, ...)                                                     \
    _Static_assert(JOT_ARGUMENTS_(__VA_ARGS__) <= 32,                                          \
                   "JOT_FUNCTION(" #NAME ", " #F "): takes at most 32 types of arguments");    \
    _Static_assert(_Generic(F, RESULT (*)(__VA_ARGS__): 1, default: 0),                      \
                   "JOT_FUNCTION(" #NAME ", " #F "): takes a C function, the type of its result" \
                   ", and those of its arguments: " #RESULT ", " #__VA_ARGS__);                \
    static void NAME##_body_(const jot_value *in, jot_value *out, void *ctx)                   \
    {                                                                                          \
        *(RESULT *)(void *)out =                                                               \
            F(JOT_CAT(JOT_LOAD_, JOT_ARGUMENTS_(__VA_ARGS__))(0, __VA_ARGS__));                \
        (void)ctx;                                                                             \
    }                                                                                          \
    static const uint16_t NAME##_leaves_[] = {                                                 \
        JOT_EACH_(JOT_LEAVES_OF_, "JOT_FUNCTION(" #NAME ", " #F ")", __VA_ARGS__),             \
        JOT_LEAVES_OF_("JOT_FUNCTION(" #NAME ", " #F ")", RESULT)};                            \
    JOT_UNUSED static const jot_function NAME = {                                              \
        .callee = {.name = #F,                                                                 \
                   .where = JOT_HERE,                                                          \
                   .body = NAME##_body_,                                                       \
                   .arg_leaves = NAME##_leaves_,                                               \
                   .result_leaves = NAME##_leaves_ + JOT_ARGUMENTS_(__VA_ARGS__),              \
                   .n_args = JOT_ARGUMENTS_(__VA_ARGS__),                                      \
                   .n_results = 1}}
#define JOT_LEAVES_OF_(name, T)                                                                \
    (uint16_t)(JOT_MUST_(JOT_IS_RECORD_TYPE_(T) && _Alignof(T) == _Alignof(jot_value) &&       \
                             sizeof(T) % sizeof(jot_value) == 0 &&                             \
                             sizeof(T) / sizeof(jot_value) <= 65535,                           \
                         name ": arguments and result hold only jot_value, at most 65535") +   \
               sizeof(T) / sizeof(jot_value))
// The arguments from in[at] on, and where the one after T is.
#define JOT_LOAD_(at, T) *(const T *)(const void *)(in + (at))
#define JOT_AFTER_(at, T) at + sizeof(T) / sizeof(jot_value)
#define JOT_LOAD_1(at, T) JOT_LOAD_(at, T)
#define JOT_LOAD_2(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_1(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_3(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_2(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_4(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_3(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_5(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_4(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_6(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_5(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_7(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_6(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_8(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_7(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_9(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_8(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_10(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_9(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_11(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_10(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_12(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_11(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_13(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_12(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_14(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_13(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_15(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_14(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_16(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_15(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_17(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_16(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_18(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_17(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_19(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_18(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_20(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_19(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_21(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_20(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_22(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_21(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_23(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_22(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_24(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_23(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_25(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_24(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_26(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_25(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_27(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_26(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_28(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_27(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_29(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_28(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_30(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_29(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_31(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_30(JOT_AFTER_(at, T), __VA_ARGS__)
#define JOT_LOAD_32(at, T, ...) JOT_LOAD_(at, T), JOT_LOAD_31(JOT_AFTER_(at, T), __VA_ARGS__)
// clang-format on

#endif

// f, which is a function value.
#if defined(JOT_AUTO_) && !defined(__cplusplus)
#define JOT_A_FUNCTION_(name, f) JOT_A_FUNCTION2_(name, f, JOT_CAT(jot_f_, __COUNTER__))
#define JOT_A_FUNCTION2_(name, f, t)                                                           \
    __extension__({                                                                            \
        __auto_type t = (f);                                                                   \
        _Static_assert(_Generic(t, jot_function: 1, default: 0),                               \
                       name " takes a jot_function, as jot_fn(f) makes one of a C function");  \
        t;                                                                                     \
    })
#else
#define JOT_A_FUNCTION_(name, f) (f)
#endif

// A function value from the uniform signature.
#define jot_function_make(f, n_in, n_out, ctx)                                                 \
    jot_function_uniform(#f, JOT_HERE, f, n_in, n_out, ctx)

#endif
