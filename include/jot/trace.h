// SPDX-License-Identifier: Apache-2.0
// Values while a function is traced.
//
// A jot_value stands for an array that is computed later.  It is eight bytes, passed by value and
// never freed.  Where an operation takes a value, a C number, a bool or a jot_array * will do too.
// C numbers are weak: they take the type of what they meet, so x of f32 stays f32 in
// jot_mul(x, 2.0).  Numbers do not convert at calls of your own functions: f(x, jot_from(2.0)).
//
// Each operation is an ordinary function.  A macro of the same name adds the conversion of numbers
// and the place of the call; define JOT_PLAIN before including to leave the macros out, and
// JOT_NO_TEXT to leave the text of calls out of the places.  (jot_add)(a, b), or jot_add where no
// parenthesis follows, is the function itself.
//
// Errors are values.  An operation that fails gives a value that holds the message; operations on
// it give it on.  A traced function fails if any operation in it failed, with the message of the
// first; in a scope only what depends on the failure fails.
//
// Thread-safety: tracing belongs to the thread; values are of use to the thread that made them, and an
// error in every other.
#ifndef JOT_TRACE_H
#define JOT_TRACE_H

#include "jot/array.h"
#include "jot/dtype.h"
#include "jot/macros.h"
#include "jot/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
#include <complex>
#include <type_traits>
#endif

// All zero is "no value".  In a debugger: p jot_describe(x)
#if defined(__cplusplus)
struct jot_value {
    uint32_t trace, id;
    jot_value() = default;
    template <class T, typename std::enable_if<std::is_arithmetic<T>::value, int>::type = 0>
    jot_value(T x);
    jot_value(std::complex<double> x);
    jot_value(const jot_array *a);
};
#else
typedef struct jot_value {
    uint32_t trace, id;
} jot_value;
#endif

JOT_BEGIN_C

// ---- making values ----

// From C numbers: weak, of rank 0.  i32, f32 and c64 unless what they meet says otherwise; bool is
// bool.  A number that i32 cannot hold is an i64 or u64.
JOT_API jot_value jot_from_int(int64_t x);
JOT_API jot_value jot_from_uint(uint64_t x);
JOT_API jot_value jot_from_double(double x);
JOT_API jot_value jot_from_bool(bool x);
JOT_API jot_value jot_from_complex(double re, double im);

// The array as a value.  The trace, or what is compiled from it, keeps a reference.  The array
// becomes a hidden input of the compiled function: its contents are not baked in.
JOT_API jot_value jot_from_array(const jot_array *a);

// ---- asking values ----

// The element type, rank, extent of an axis (negative counts from the end) and number of elements.
// JOT_BOOL, 0, 0 and 0 of a value that is in error.
JOT_API jot_dtype jot_value_dtype(jot_value x);
JOT_API int jot_value_rank(jot_value x);
JOT_API int64_t jot_value_dim(jot_value x, int axis);
JOT_API int64_t jot_value_size(jot_value x);

// Whether the value is an error (or no value of the current traces).
JOT_API bool jot_value_failed(jot_value x);

// What the value is, for debuggers and messages.  Borrowed until the next call on this thread.
JOT_API const char *jot_describe(jot_value v);

// ---- places ----

// Gives the place to everything recorded since the last call, and to the error in v if it has none.
// `where` is "file:line" or "file:line: text" and must stay as long as the program: a literal.
// Returns v.
JOT_API JOT_MUST_USE jot_value jot_at(jot_value v, const char *where);
JOT_API void jot_place(jot_value v, const char *where);

// ---- functions on top of these ----

// The value that is this error: what a function of one's own gives for what it does not take.  op is its
// name, for the message; a text of NULL is the name of the status.
JOT_API JOT_MUST_USE jot_value jot_error(jot_status status, const char *op, const char *text);
// Zeroed memory that lives as long as the values of what is being traced, whichever way it ends; for what
// ctx of a function or a loop points to.  NULL when nothing is being traced or memory is out.
JOT_API void *jot_trace_memory(size_t size);

JOT_END_C

// ---------------------------------------------------------------------------------------
// The convenient layer.

// JOT_V(x): x as a value, whatever it is.
#if defined(__cplusplus)

template <class T, typename std::enable_if<std::is_arithmetic<T>::value, int>::type>
inline jot_value::jot_value(T x)
{
    if constexpr (std::is_same<T, bool>::value)
        *this = jot_from_bool(x);
    else if constexpr (std::is_floating_point<T>::value)
        *this = jot_from_double(static_cast<double>(x));
    else if constexpr (std::is_signed<T>::value)
        *this = jot_from_int(static_cast<int64_t>(x));
    else
        *this = jot_from_uint(static_cast<uint64_t>(x));
}
inline jot_value::jot_value(std::complex<double> x)
{
    *this = jot_from_complex(x.real(), x.imag());
}
inline jot_value::jot_value(const jot_array *a) { *this = jot_from_array(a); }

#define JOT_AUTO_ auto
#define JOT_V(x) jot_value(x)
#define JOT_VALUE_(name, x) jot_value(x)

#else

// An inline that a debugger steps over.
#if defined(__GNUC__)
__attribute__((always_inline, artificial))
#endif
static inline jot_value
jot_from_value(jot_value v)
{
    return v;
}
// Read as two numbers, so that neither <complex.h> nor its macro I is needed.
static inline jot_value jot_from_complex_(double _Complex z)
{
    return jot_from_complex(((double *)&z)[0], ((double *)&z)[1]);
}

// Which function takes a C value of the type.
#define JOT_FROM_(x)                                                                           \
    _Generic(x,                                                                                \
        jot_value: jot_from_value,                                                             \
        jot_array *: jot_from_array,                                                           \
        const jot_array *: jot_from_array,                                                     \
        _Bool: jot_from_bool,                                                                  \
        unsigned long: jot_from_uint,                                                          \
        unsigned long long: jot_from_uint,                                                     \
        float: jot_from_double,                                                                \
        double: jot_from_double,                                                               \
        long double: jot_from_double,                                                          \
        float _Complex: jot_from_complex_,                                                     \
        double _Complex: jot_from_complex_,                                                    \
        default: jot_from_int)

// JOT_VALUE_(name, x): x as a value; a mistake of the macro `name`.  The text of a nested
// _Generic doubles at every level; a variable of its own for each operand keeps it linear.
#if defined(__GNUC__) && !defined(JOT_NO_STATEMENT_EXPRESSIONS)
#define JOT_AUTO_ __auto_type
#define JOT_VALUE_(name, x) JOT_VALUE2_(name, x, JOT_CAT(jot_v_, __COUNTER__))
#define JOT_IS_VALUE_(t)                                                                       \
    _Generic(t, jot_value: 1, jot_array *: 1, const jot_array *: 1, default: JOT_IS_NUMBER_(t))
#define JOT_VALUE2_(name, x, t)                                                                \
    __extension__({                                                                            \
        __auto_type t = (x);                                                                   \
        enum { JOT_CAT(is_, t) = JOT_IS_VALUE_(t) };                                           \
        _Static_assert(JOT_CAT(is_, t),                                                        \
                       name " takes a jot_value, a C number or a jot_array *");                \
        JOT_FROM_(t)(t);                                                                       \
    })
#else
#define JOT_VALUE_(name, x) JOT_FROM_(x)(x)
#endif
#define JOT_V(x) JOT_VALUE_("JOT_V(x)", x)

#endif // C

// A tree is a struct, or an array, that holds nothing but jot_value.  JOT_COUNT(x) is the number
// of its values, JOT_LEAVES(x) a pointer to the first, JOT_TREE(x) both, as arguments.
#define JOT_COUNT(x) JOT_COUNT_("JOT_COUNT", x)
#define JOT_TREE(x) JOT_TREE_("JOT_TREE", x)
#define JOT_TREE_(name, x) JOT_COUNT_(name, x), JOT_LEAVES_(x)
#define JOT_LEAVES(x) (JOT_LEAVES_(x) + 0 * JOT_COUNT_("JOT_LEAVES", x))
#define JOT_TAKES_TREE_ " takes a jot_value, or a struct or C array of nothing else"
#if defined(__cplusplus)
template <class T> constexpr bool jot_is_tree_()
{
    return std::is_class<typename std::remove_all_extents<T>::type>::value &&
           sizeof(T) % sizeof(jot_value) == 0 && alignof(T) == alignof(jot_value);
}
template <class T> constexpr size_t jot_count_()
{
    static_assert(jot_is_tree_<T>(),
                  "a tree is a jot_value, or a struct or C array of nothing else");
    return sizeof(T) / sizeof(jot_value);
}
#define JOT_COUNT_(name, x) jot_count_<typename std::remove_reference<decltype(x)>::type>()
#define JOT_LEAVES_(x) reinterpret_cast<jot_value *>(&(x))
#define JOT_NO_ARRAY_(name, x) static_assert(true, "")
#else
#define JOT_COUNT_(name, x)                                                                    \
    (JOT_MUST_(JOT_IS_TREE_(x), name JOT_TAKES_TREE_) + sizeof(x) / sizeof(jot_value))
#define JOT_LEAVES_(x) ((jot_value *)(void *)&(x))
// A pointer is no tree, though it is as large as a value, and numbers are none; a struct that
// holds doubles or pointers is aligned as these are.
#if defined(__GNUC__)
#define JOT_IS_TREE_(x)                                                                        \
    (sizeof(x) % sizeof(jot_value) == 0 &&                                                     \
     __alignof__(__typeof__(x)) == __alignof__(jot_value) &&                                   \
     JOT_IS_STRUCT_OR_ARRAY_(JOT_ITEM_(x)))
#else
#define JOT_IS_TREE_(x) (sizeof(x) % sizeof(jot_value) == 0)
#endif
// Macros that return what they are given cannot return an array.
#define JOT_NO_ARRAY_(name, x)                                                                 \
    _Static_assert(_Generic(x, jot_value *: 0, const jot_value *: 0, default: 1),              \
                   name ": an array of values cannot be returned: put it in a struct")
#endif

#if !defined(JOT_PLAIN)

// The value v, and everything recorded for it, has the place of the call.
#if defined(JOT_NO_TEXT)
#define JOT_PLACED_(text, v) jot_at(v, JOT_HERE)
#else
#define JOT_PLACED_(text, v) jot_at(v, JOT_HERE ": " text)
#endif
// The text of a call whose last argument is missing ends like this.
#define JOT_NONE_LACKS_(text)                                                                  \
    ((void)JOT_MUST_(!JOT_ENDS_(text, "()") && !JOT_ENDS_(text, ", )"),                        \
                     text ": an argument is missing at the end"))
#define JOT_OP_(text, ...) JOT_PLACED_(text, (JOT_NONE_LACKS_(text), __VA_ARGS__))
// The same of the text of arguments alone.
#define JOT_LACKS_(name) name ": an argument is missing at the end"
#define JOT_ONE_IS_THERE_(name, t) ((void)JOT_MUST_(sizeof(t) > 1, JOT_LACKS_(name)))
#define JOT_LAST_IS_THERE_(name, t) ((void)JOT_MUST_(!JOT_ENDS_(t, ", "), JOT_LACKS_(name)))

// The text must be made where the argument is not yet expanded, so it is passed along.
#define JOT_OP1_(f, t, a)                                                                      \
    JOT_PLACED_(#f "(" t ")", (JOT_ONE_IS_THERE_(#f, t), f(JOT_VALUE_(#f, a))))
#define JOT_OP2_(f, t, a, b)                                                                   \
    JOT_PLACED_(#f "(" t ")",                                                                  \
                (JOT_LAST_IS_THERE_(#f, t), f(JOT_VALUE_(#f, a), JOT_VALUE_(#f, b))))
#define JOT_OP3_(f, t, a, b, c)                                                                \
    JOT_PLACED_(#f "(" t ")", (JOT_LAST_IS_THERE_(#f, t),                                      \
                               f(JOT_VALUE_(#f, a), JOT_VALUE_(#f, b), JOT_VALUE_(#f, c))))
// name(x, list...): f takes x and a list that LIST makes.
#define JOT_OPL_(name, t, f, LIST, ...)                                                        \
    JOT_PLACED_(name "(" t ")",                                                                \
                (JOT_ONE_IS_THERE_(name, t), f(JOT_VALUE_(name, JOT_FIRST_(__VA_ARGS__, 0)),   \
                                               LIST(JOT_REST_(__VA_ARGS__, JOT_END)))))

// A value from a C number or an array.
#define jot_from(x) JOT_OP_("jot_from(" #x ")", JOT_VALUE_("jot_from", x))

#endif // JOT_PLAIN

#endif
