// SPDX-License-Identifier: Apache-2.0
// Small macros that the convenient forms of several headers are made of.  Names that end in an
// underscore are not for users.
#ifndef JOT_MACROS_H
#define JOT_MACROS_H

#include <stddef.h>
#include <stdint.h>

#define JOT_STR_(x) #x
#define JOT_STR(x) JOT_STR_(x)
#define JOT_CAT_(a, b) a##b
#define JOT_CAT(a, b) JOT_CAT_(a, b)

// The place of the call, "file:line".
#define JOT_HERE __FILE__ ":" JOT_STR(__LINE__)

// Ends a list of integers; no axis, argument number or size has this value.
#define JOT_END (-2147483647 - 1)
// In a list of axes: reduced axes stay, with size 1.
#define JOT_KEEPDIMS (-2147483647)
// In a list of mapped axes: this argument is not mapped.
#define JOT_NONE (-2147483646)

// The first of some arguments, and the others.  The list must have one more than is wanted, as
// `JOT_FIRST_(__VA_ARGS__, 0)` and `JOT_REST_(__VA_ARGS__, JOT_END)` do.
#define JOT_FIRST_(a, ...) a
#define JOT_REST_(a, ...) __VA_ARGS__

// Arrays of the arguments that live as long as the expression: int and int64_t.
#if defined(__cplusplus)
template <class Element, size_t count> struct jot_list_ {
    Element v[count];
};
template <class... T> jot_list_<int, sizeof...(T)> jot_ints_(T... x)
{
    return jot_list_<int, sizeof...(T)>{{static_cast<int>(x)...}};
}
template <class... T> jot_list_<int64_t, sizeof...(T)> jot_dims_(T... x)
{
    return jot_list_<int64_t, sizeof...(T)>{{static_cast<int64_t>(x)...}};
}
#define JOT_INTS_(...) jot_ints_(__VA_ARGS__).v
#define JOT_DIMS_(...) jot_dims_(__VA_ARGS__).v
#else
#define JOT_INTS_(...) ((const int[]){__VA_ARGS__})
#define JOT_DIMS_(...) ((const int64_t[]){__VA_ARGS__})
#endif

// m(a), m(b), ... for one to sixteen arguments.  clang-format off
#define JOT_EACH_(m, ...)                                                                      \
    JOT_PICK16_(__VA_ARGS__, JOT_E16_, JOT_E15_, JOT_E14_, JOT_E13_, JOT_E12_, JOT_E11_,       \
                JOT_E10_, JOT_E9_, JOT_E8_, JOT_E7_, JOT_E6_, JOT_E5_, JOT_E4_, JOT_E3_,       \
                JOT_E2_, JOT_E1_, 0)(m, __VA_ARGS__)
#define JOT_PICK16_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, pick, ...) pick
#define JOT_E1_(m, a) m(a)
#define JOT_E2_(m, a, ...) m(a), JOT_E1_(m, __VA_ARGS__)
#define JOT_E3_(m, a, ...) m(a), JOT_E2_(m, __VA_ARGS__)
#define JOT_E4_(m, a, ...) m(a), JOT_E3_(m, __VA_ARGS__)
#define JOT_E5_(m, a, ...) m(a), JOT_E4_(m, __VA_ARGS__)
#define JOT_E6_(m, a, ...) m(a), JOT_E5_(m, __VA_ARGS__)
#define JOT_E7_(m, a, ...) m(a), JOT_E6_(m, __VA_ARGS__)
#define JOT_E8_(m, a, ...) m(a), JOT_E7_(m, __VA_ARGS__)
#define JOT_E9_(m, a, ...) m(a), JOT_E8_(m, __VA_ARGS__)
#define JOT_E10_(m, a, ...) m(a), JOT_E9_(m, __VA_ARGS__)
#define JOT_E11_(m, a, ...) m(a), JOT_E10_(m, __VA_ARGS__)
#define JOT_E12_(m, a, ...) m(a), JOT_E11_(m, __VA_ARGS__)
#define JOT_E13_(m, a, ...) m(a), JOT_E12_(m, __VA_ARGS__)
#define JOT_E14_(m, a, ...) m(a), JOT_E13_(m, __VA_ARGS__)
#define JOT_E15_(m, a, ...) m(a), JOT_E14_(m, __VA_ARGS__)
#define JOT_E16_(m, a, ...) m(a), JOT_E15_(m, __VA_ARGS__)
// clang-format on

#endif
