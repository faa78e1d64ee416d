// SPDX-License-Identifier: Apache-2.0
// Structs of values, their twins outside traces, and the names of their values.
//
//     JOT_STRUCT(block, w, b);
//     JOT_STRUCT(net, (struct block, layers[4]), (jot_dense, head), scale);
//
// declares a tree, struct net { struct block layers[4]; jot_dense head; jot_value scale; }, and
// what it is in JOT_IN(...), JOT_OUT(...) and jot_eval_tree,
// struct net_arrays { struct block_arrays layers[4]; ... jot_array *scale; }.  A member is the name of a value, or
// (type, name); either may be an array of a fixed number.  A type is jot_value, a struct of
// JOT_STRUCT, or one of JOT_STRUCT_TYPE.  There are 1 to 127 members.
//
// A part that a struct can be without is a value without elements, jot_zeros(JOT_F32, 0),
// which every transform takes: its shape says that it is not there.  Numbers and flags stand
// beside the tree,
//     struct model { struct net net; int heads; bool is_causal; };
// and go as C arguments where m.net goes as a tree: JOT_GRAD(loss, m.net, m.heads, x).
#ifndef JOT_STRUCT_H
#define JOT_STRUCT_H

#include "jot/trace.h"

// What a struct is made of.
struct jot_members;
typedef struct jot_member {
    const char *name; // as it is written: "layers[4]"
    size_t values;    // in all of it
    const struct jot_members
        *of; // the struct that it is, or is an array of; of a value: no members
} jot_member;
typedef struct jot_members {
    size_t n, values;
    const jot_member *member;
} jot_members;

JOT_BEGIN_C

// Writes the name of value i, "layers[2].w", at most `size` bytes with the final zero, and
// returns the length that the whole name has, like snprintf; -1 when there are not so many
// values.  Items of an array of arrays are counted through.
JOT_API int jot_value_name(const jot_members *members, size_t i, char *buffer, size_t size);

JOT_END_C

// ---------------------------------------------------------------------------------------
// The convenient layer.

// What a value of a struct is in its twin.
typedef jot_array *jot_value_arrays;

// Declares struct NAME of values and struct NAME_arrays of arrays:  JOT_STRUCT(line, slope, offset)
#define JOT_STRUCT(NAME, ...)                                                                  \
    struct NAME {                                                                              \
        JOT_EACH_BY_(JOT_SEMICOLON_, JOT_MEMBER_, JOT_AS_VALUES_, __VA_ARGS__);                \
    };                                                                                         \
    JOT_NAMES_(NAME, __VA_ARGS__)                                                              \
    struct NAME##_arrays {                                                                     \
        JOT_EACH_BY_(JOT_SEMICOLON_, JOT_MEMBER_, JOT_AS_ARRAYS_, __VA_ARGS__);                \
    }
#define JOT_SEMICOLON_(...) ;
// as(type, name) of a member.
#define JOT_MEMBER_(as, x) JOT_MEMBER2_(JOT_COMMA_ x, JOT_TYPED_, JOT_UNTYPED_, 0)(as, x)
#define JOT_MEMBER2_(...) JOT_THIRD_(__VA_ARGS__)
#define JOT_TYPED_(as, x) as x
#define JOT_UNTYPED_(as, x) as(jot_value, x)
#define JOT_AS_VALUES_(T, name) T name
#define JOT_AS_ARRAYS_(T, name) T##_arrays name

// The same with the names NAME and NAME_arrays of the types, which stand without `struct`.
#define JOT_STRUCT_TYPE(NAME, ...)                                                             \
    JOT_STRUCT(NAME, __VA_ARGS__);                                                             \
    JOT_NAMES_OF_(JOT_TAG_##NAME, NAME)                                                        \
    typedef struct NAME NAME;                                                                  \
    typedef struct NAME##_arrays NAME##_arrays

#if defined(__cplusplus)
#define JOT_NAMES_(NAME, ...)
#define JOT_NAMES_OF_(tag, NAME)
#else
// The members of struct NAME, for jot_value_name(JOT_MEMBERS(net), i, text, sizeof text).
#define JOT_MEMBERS(NAME) (&NAME##_members_)
#define JOT_NAMES_(NAME, ...)                                                                  \
    JOT_UNUSED static const jot_member NAME##_member_[] = {                                    \
        JOT_EACH_(JOT_MEMBER_, JOT_AS_NAMES_, __VA_ARGS__)};                                   \
    JOT_NAMES_OF_(NAME, NAME)
#define JOT_NAMES_OF_(tag, NAME)                                                               \
    JOT_UNUSED static const jot_members tag##_members_ = {                                     \
        sizeof NAME##_member_ / sizeof *NAME##_member_,                                        \
        sizeof(struct NAME) / sizeof(jot_value), NAME##_member_};
#define JOT_AS_NAMES_(T, name)                                                                 \
    {#name, sizeof(struct { T name; }) / sizeof(jot_value), JOT_MEMBERS_OF_(JOT_TAG_##T)}
// JOT_TAG_struct of `struct net` leaves net; JOT_TAG_net of `net` is what JOT_STRUCT_TYPE has.
#define JOT_TAG_struct
#define JOT_MEMBERS_OF_(tag) JOT_MEMBERS_OF2_(tag)
#define JOT_MEMBERS_OF2_(tag) &tag##_members_
JOT_UNUSED static const jot_members JOT_TAG_jot_value_members_ = {0, 1, NULL};
#endif

#endif
