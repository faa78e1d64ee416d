// SPDX-License-Identifier: Apache-2.0
// Small macros that the convenient forms of several headers are made of.  Names that end in an
// underscore are not for users.
#ifndef JOT_MACROS_H
#define JOT_MACROS_H

#include <stddef.h>
#include <stdint.h>

// x as a text, and a and b as one name, both expanded before.
#define JOT_STR_(x) #x
#define JOT_STR(x) JOT_STR_(x)
#define JOT_CAT_(a, b) a##b
#define JOT_CAT(a, b) JOT_CAT_(a, b)

// The place of the call, "file:line".
#define JOT_HERE __FILE__ ":" JOT_STR(__LINE__)

// Ends a list of integers; no axis, argument number or size has this value.  A list that is
// NULL is empty.
#define JOT_END (-2147483647 - 1)
// In a list of axes: reduced axes stay, with size 1.
#define JOT_KEEPDIMS (-2147483647)
// In a list of mapped axes: this argument is not mapped.
#define JOT_NONE (-2147483646)

// The first of some arguments, and the others.  The list must have one more than is wanted, as
// `JOT_FIRST_(__VA_ARGS__, 0)` and `JOT_REST_(__VA_ARGS__, JOT_END)` do.
#define JOT_FIRST_(a, ...) a
#define JOT_SECOND_(a, b, ...) b
#define JOT_THIRD_(a, b, c, ...) c
#define JOT_FOURTH_(a, b, c, d, ...) d
#define JOT_REST_(a, ...) __VA_ARGS__
#define JOT_REST2_(a, b, ...) __VA_ARGS__
#define JOT_REST3_(a, b, c, ...) __VA_ARGS__
#define JOT_REST4_(a, b, c, d, ...) __VA_ARGS__

// In C a number passes for a pointer, and one pointer for another, with a warning; gcc from 14
// on and clang from 16 on refuse both.  With these headers older ones do, for what is called
// would read there.  JOT_KEEP_WARNINGS leaves the warnings.
#if defined(__GNUC__) && !defined(__cplusplus) && !defined(JOT_KEEP_WARNINGS)
#pragma GCC diagnostic error "-Wint-conversion"
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#endif

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
// A text as the first entry would be one for the list.
#define JOT_INTS_(...) ((const int[]){0, __VA_ARGS__} + 1)
#define JOT_DIMS_(...) ((const int64_t[]){0, __VA_ARGS__} + 1)
#endif

// Fails to compile with the text unless the constant condition holds; as a number it is 0.
#if defined(__cplusplus)
#define JOT_MUST_(condition, text)                                                             \
    (__extension__({                                                                           \
        static_assert(condition, text);                                                        \
        size_t(0);                                                                             \
    }))
#else
#define JOT_MUST_(condition, text)                                                             \
    (__extension__(0 * sizeof(struct {                                                         \
                       _Static_assert(condition, text);                                        \
                       int jot_;                                                               \
                   })))
#endif
// Whether a literal begins with another one, as a constant.
#if defined(__GNUC__)
#define JOT_BEGINS_(text, with) (!__builtin_strncmp(text, with, sizeof(with) - 1))
#define JOT_ENDS_(text, with) (!__builtin_strcmp(&(text)[sizeof(text) - sizeof(with)], with))
#else
#define JOT_BEGINS_(text, with) 1
#define JOT_ENDS_(text, with) 0
#endif
// Options are named, `.axis = 1`; `takes` says which there are.
#define JOT_OPTIONS_(type, takes, ...) JOT_OPTIONS2_(type, takes, __VA_ARGS__)
#define JOT_OPTIONS2_(type, takes, ...)                                                        \
    ((void)JOT_MUST_(JOT_BEGINS_(#__VA_ARGS__, "."), takes), &(type){__VA_ARGS__})
// The last argument of a function, and the options behind it, which C++ does not have.
#if defined(__cplusplus)
#define JOT_AND_OPTIONS_(type, f, takes, last) last, nullptr
#else
#define JOT_AND_OPTIONS_(type, f, takes, ...)                                                  \
    JOT_FIRST_(__VA_ARGS__, 0), JOT_OPTIONS_(type, f " takes " takes ", and named options",    \
                                             JOT_REST_(__VA_ARGS__, .size = sizeof(type)))
#endif
// At least and at most so many arguments are given.
#define JOT_TAKES_(takes, least, most, ...)                                                    \
    ((void)JOT_MUST_(                                                                          \
        JOT_ARGUMENTS_(__VA_ARGS__) >= least && JOT_ARGUMENTS_(__VA_ARGS__) <= most, takes))

#if defined(__cplusplus)
#define JOT_SAME_TYPE_(x, y) std::is_same<decltype(x), decltype(y)>::value
#define JOT_TRUTH_(name, x) (x)
#elif defined(__GNUC__)
#define JOT_SAME_TYPE_(x, y) __builtin_types_compatible_p(__typeof__(x), __typeof__(y))
// A pointer is true in C.
#define JOT_TRUTH_(name, x) (JOT_MUST_(JOT_IS_NUMBER_(x), name " takes true or false") || (x))
#else
#define JOT_SAME_TYPE_(x, y) 1
#define JOT_TRUTH_(name, x) (x)
#endif

// What kind of thing a variable is, as constants; its elements if it is a C array, else itself.
#if defined(__GNUC__) && !defined(__cplusplus)
#define JOT_IS_RECORD_(x) (__builtin_classify_type(x) >> 1 == 6) // 12, 13
// Of the classes 1 to 4 (integers), 8 and 9 (real and complex ones).
#define JOT_IS_NUMBER_(x) (0x31e >> __builtin_classify_type(x) & 1)
#define JOT_IS_C_ARRAY_(x)                                                                     \
    (!__builtin_types_compatible_p(__typeof__(x), __typeof__((void)0, x)))
#define JOT_ITEM_(x) (*__builtin_choose_expr(JOT_IS_C_ARRAY_(x), (x), (__typeof__(x) *)0))
#define JOT_IS_RECORD_TYPE_(T) JOT_IS_RECORD_(*(T *)0)
#define JOT_IS_STRUCT_OR_ARRAY_(x) (JOT_IS_RECORD_(x) || JOT_IS_C_ARRAY_(x))
#else
#define JOT_IS_RECORD_TYPE_(T) 1
#endif

// clang-format off
// The number of arguments, 1 to 64; of 65 to 127 it is 65, which JOT_MUST_BE_LIST_ refuses.
#define JOT_LIST_MOST_ 64
#define JOT_ARGUMENTS_(...)                                                                    \
    JOT_PICK127_(__VA_ARGS__,                                                                  \
                 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65,   \
                 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65,   \
                 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65, 65,   \
                 65, 65, 65, 65, 65, 65, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52,   \
                 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33,   \
                 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14,   \
                 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define JOT_PICK127_(p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16,    \
p17, p18, p19, p20, p21, p22, p23, p24, p25, p26, p27, p28, p29, p30, p31, p32, p33, p34, p35, \
p36, p37, p38, p39, p40, p41, p42, p43, p44, p45, p46, p47, p48, p49, p50, p51, p52, p53, p54, \
p55, p56, p57, p58, p59, p60, p61, p62, p63, p64, p65, p66, p67, p68, p69, p70, p71, p72, p73, \
p74, p75, p76, p77, p78, p79, p80, p81, p82, p83, p84, p85, p86, p87, p88, p89, p90, p91, p92, \
p93, p94, p95, p96, p97, p98, p99, p100, p101, p102, p103, p104, p105, p106, p107, p108, p109, \
p110, p111, p112, p113, p114, p115, p116, p117, p118, p119, p120, p121, p122, p123, p124,      \
p125, p126, p127, n, ...) n
// 1 of one argument, 2 of 2 to 127.
#define JOT_ONE_OR_MORE_(...)                                                                  \
    JOT_PICK127_(__VA_ARGS__,                                                                  \
                 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, \
                 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, \
                 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, \
                 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, \
                 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 0)
#define JOT_MUST_BE_LIST_(name, what, ...)                                                     \
    JOT_MUST_(JOT_ARGUMENTS_(__VA_ARGS__) <= JOT_LIST_MOST_, name " takes at most 64 " what)

// m(c, a), m(c, b), ... for up to 127 arguments a, b, ...; and with s() between them instead of commas.
#define JOT_EACH_(m, c, ...) JOT_EACH_BY_(JOT_COMMA_, m, c, __VA_ARGS__)
#define JOT_EACH_BY_(s, m, c, ...)                                                             \
    JOT_CAT(JOT_UP_TO_64_, JOT_ARGUMENTS_(__VA_ARGS__))(s, m, c, __VA_ARGS__)
#define JOT_COMMA_(...) ,
#define JOT_UP_TO_64_1(s, m, c, a) m(c, a)
#define JOT_UP_TO_64_2(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_1(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_3(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_2(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_4(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_3(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_5(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_4(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_6(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_5(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_7(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_6(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_8(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_7(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_9(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_8(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_10(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_9(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_11(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_10(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_12(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_11(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_13(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_12(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_14(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_13(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_15(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_14(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_16(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_15(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_17(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_16(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_18(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_17(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_19(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_18(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_20(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_19(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_21(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_20(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_22(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_21(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_23(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_22(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_24(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_23(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_25(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_24(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_26(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_25(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_27(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_26(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_28(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_27(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_29(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_28(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_30(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_29(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_31(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_30(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_32(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_31(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_33(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_32(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_34(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_33(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_35(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_34(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_36(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_35(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_37(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_36(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_38(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_37(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_39(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_38(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_40(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_39(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_41(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_40(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_42(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_41(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_43(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_42(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_44(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_43(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_45(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_44(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_46(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_45(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_47(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_46(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_48(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_47(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_49(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_48(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_50(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_49(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_51(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_50(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_52(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_51(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_53(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_52(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_54(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_53(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_55(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_54(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_56(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_55(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_57(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_56(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_58(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_57(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_59(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_58(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_60(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_59(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_61(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_60(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_62(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_61(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_63(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_62(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_64(s, m, c, a, ...) m(c, a) s() JOT_UP_TO_64_63(s, m, c, __VA_ARGS__)
#define JOT_UP_TO_64_65(s, m, c, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19, \
p20, p21, p22, p23, p24, p25, p26, p27, p28, p29, p30, p31, p32, p33, p34, p35, p36, \
p37, p38, p39, p40, p41, p42, p43, p44, p45, p46, p47, p48, p49, p50, p51, p52, p53, \
p54, p55, p56, p57, p58, p59, p60, p61, p62, p63, p64, ...) \
    JOT_UP_TO_64_64(s, m, c, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19, \
p20, p21, p22, p23, p24, p25, p26, p27, p28, p29, p30, p31, p32, p33, p34, p35, p36, \
p37, p38, p39, p40, p41, p42, p43, p44, p45, p46, p47, p48, p49, p50, p51, p52, p53, \
p54, p55, p56, p57, p58, p59, p60, p61, p62, p63, p64) s() \
    JOT_CAT(JOT_UP_TO_64_, JOT_ARGUMENTS_(__VA_ARGS__))(s, m, c, __VA_ARGS__)
// clang-format on

#endif
