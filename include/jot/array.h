// SPDX-License-Identifier: Apache-2.0
// Arrays: dense, row-major, of any rank, with contents that do not change.
//
//     float data[6] = {1, 2, 3, 4, 5, 6};
//     jot_array *a = jot_array_from(data, 2, 3);
//     jot_array_print(a);
//     jot_array_release(a);
//
// An array is counted: who creates or retains it releases it once.  Constructors return NULL on
// failure and leave a message (jot_error_message); a NULL array may be given to any function
// here, which then fails or does nothing.  An axis may have size 0; rank 0 is a scalar.
//
// Lists of sizes (`dims`) end with JOT_END.
//
// An array lives on a device (jot/device.h), at first on the default one.  What reads elements on
// the host waits for them and copies them over.
//
// Thread-safety: arrays may be used, retained and released from several threads at once.
#ifndef JOT_ARRAY_H
#define JOT_ARRAY_H

#include "jot/device.h"
#include "jot/dtype.h"
#include "jot/macros.h"
#include "jot/status.h"

#include <stddef.h>
#include <stdint.h>
#if defined(__cplusplus)
#include <complex>
#endif

// An array.  What it holds is behind the functions below.
typedef struct jot_array jot_array;

JOT_BEGIN_C

// A new array with a copy of the data.
JOT_API JOT_MUST_USE jot_array *jot_array_copy(jot_dtype dtype, const void *data,
                                               const int64_t *dims);

// A new array with one value everywhere.  Fails with JOT_ERR_ARGUMENT when an integer dtype
// cannot hold the value; bool takes 0 as false and the rest as true; floats round to nearest.
JOT_API JOT_MUST_USE jot_array *jot_array_fill(jot_dtype dtype, double value,
                                               const int64_t *dims);

// A new array over memory of the caller on the host, which is not copied.  The memory must not
// change and must stay until `release(data, ctx)` is called, once, when nothing uses the array
// any more; release may be NULL, and may be called from any thread.  On failure it is not
// called.  The data is aligned to its elements; a bool is a byte 0 or 1.
JOT_API JOT_MUST_USE jot_array *jot_array_borrow(jot_dtype dtype, const void *data,
                                                 const int64_t *dims,
                                                 void (*release)(const void *data, void *ctx),
                                                 void *ctx);

// One more reference to the same array, which is returned.
JOT_API jot_array *jot_array_retain(jot_array *a);
JOT_API void jot_array_release(jot_array *a);

// What it is.  Of NULL: JOT_BOOL, 0, 0, 0, 0, NULL.
JOT_API jot_dtype jot_array_dtype(const jot_array *a);
JOT_API int jot_array_rank(const jot_array *a);
JOT_API int64_t jot_array_dim(const jot_array *a,
                              int axis);           // negative counts from the end; else 0
JOT_API size_t jot_array_size(const jot_array *a); // elements
JOT_API size_t jot_array_bytes(const jot_array *a);

// The elements in the memory of the host, row-major.  Borrowed until the array is released; not
// NULL even when there are none.  Of an array on another device the first call waits and makes a
// copy, which stays with the array; NULL with a message when that fails, as when the device is
// lost.
JOT_API const void *jot_array_data(const jot_array *a);

// The device that the array is on; that of NULL is the host.
JOT_API jot_device *jot_array_device(const jot_array *a);

// The array on another device: a new reference to the same when it is there, else to a copy.  NULL
// with a message when that fails.  A device of NULL is the default one.
JOT_API JOT_MUST_USE jot_array *jot_array_to(jot_array *a, jot_device *device);

// Waits until the elements are there.  JOT_ERR_DEVICE when they never will be.
JOT_API JOT_MUST_USE jot_status jot_array_wait(const jot_array *a);

// The address of the elements in the memory of the array's device, for other software that works
// there; jot_array_wait first.  NULL of NULL.
JOT_API const void *jot_array_device_data(const jot_array *a);

// A new array over memory of the caller on a device, which is not copied; see jot_array_borrow.
// What writes there has ended before.
JOT_API JOT_MUST_USE jot_array *
jot_array_borrow_on(jot_device *device, jot_dtype dtype, const void *data, const int64_t *dims,
                    void (*release)(const void *data, void *ctx), void *ctx);

// Copies all elements out.  JOT_ERR_DTYPE when the dtype is not that of the array,
// JOT_ERR_SHAPE when count is not its size.
JOT_API JOT_MUST_USE jot_status jot_array_copy_out(const jot_array *a, jot_dtype dtype,
                                                   void *dst, size_t count);
// The same, with the place of the call for messages.
JOT_API JOT_MUST_USE jot_status jot_array_read_at(const jot_array *a, jot_dtype dtype,
                                                  void *dst, size_t count, const char *where);

// The one element of an array of size 1, rounded to double; the real part of a complex one. NaN
// with a message when there is not exactly one.
JOT_API double jot_array_item(const jot_array *a);

// The elements as text, the way NumPy prints them; above 1000 elements only three at each end
// of an axis.  Writes at most `size` bytes with the final zero, and returns the length that the
// whole text has, like snprintf.
JOT_API int jot_array_format(const jot_array *a, char *buffer, size_t size);

// Writes that text and a line end to stdout.
JOT_API void jot_array_print(const jot_array *a);

// Releases n arrays and sets them to NULL.
JOT_API void jot_arrays_release(size_t n, jot_array **a);

// Releases the arrays of dst, moves those of src into them, and sets src to NULL: for taking
// over the result of a step.  Does nothing but leave a message when the counts differ.
JOT_API void jot_arrays_move(size_t n, jot_array **dst, size_t n_src, jot_array **src);

JOT_END_C

// ---------------------------------------------------------------------------------------
// The convenient layer: the dtype comes from the type of a C pointer, sizes are arguments.

#if defined(__cplusplus)
template <class T> struct jot_dtype_of_;
#define JOT_DTYPE_IS_(T, D)                                                                    \
    template <> struct jot_dtype_of_<T> {                                                      \
        static constexpr jot_dtype value = D;                                                  \
    };                                                                                         \
    template <> struct jot_dtype_of_<const T> {                                                \
        static constexpr jot_dtype value = D;                                                  \
    }
JOT_DTYPE_IS_(bool, JOT_BOOL);
JOT_DTYPE_IS_(signed char, JOT_I8);
JOT_DTYPE_IS_(short, JOT_I16);
JOT_DTYPE_IS_(int, JOT_I32);
JOT_DTYPE_IS_(long, sizeof(long) == 8 ? JOT_I64 : JOT_I32);
JOT_DTYPE_IS_(long long, JOT_I64);
JOT_DTYPE_IS_(unsigned char, JOT_U8);
JOT_DTYPE_IS_(unsigned short, JOT_U16);
JOT_DTYPE_IS_(unsigned, JOT_U32);
JOT_DTYPE_IS_(unsigned long, sizeof(long) == 8 ? JOT_U64 : JOT_U32);
JOT_DTYPE_IS_(unsigned long long, JOT_U64);
JOT_DTYPE_IS_(float, JOT_F32);
JOT_DTYPE_IS_(double, JOT_F64);
JOT_DTYPE_IS_(std::complex<float>, JOT_C64);
JOT_DTYPE_IS_(std::complex<double>, JOT_C128);
#undef JOT_DTYPE_IS_
template <class T> constexpr jot_dtype jot_dtype_at_(const T *)
{
    return jot_dtype_of_<T>::value;
}
#define JOT_DTYPE_OF(p) jot_dtype_at_(p)
#define JOT_DTYPE_OF_(name, p) jot_dtype_at_(p)
#else
// The dtype of what a C pointer points to.
#define JOT_DTYPE_OF(p) JOT_DTYPE_OF_("JOT_DTYPE_OF", p)
#define JOT_DTYPE_OF_(name, p)                                                                 \
    ((jot_dtype)(JOT_MUST_(JOT_IS_POINTER_(p), name JOT_TAKES_NUMBERS_) +                      \
                 JOT_MUST_(JOT_DTYPE_AT_(p) < 99, name JOT_TAKES_NUMBERS_) +                   \
                 JOT_DTYPE_AT_(p)))
#define JOT_TAKES_NUMBERS_ " takes a pointer to C numbers of a type that jot has"
#if defined(__GNUC__)
#define JOT_IS_POINTER_(p) (__builtin_classify_type(p) == 5)
#else
#define JOT_IS_POINTER_(p) 1
#endif
#define JOT_DTYPE_AT_(p)                                                                       \
    (int)_Generic(*(p),                                                                        \
        _Bool: JOT_BOOL,                                                                       \
        signed char: JOT_I8,                                                                   \
        short: JOT_I16,                                                                        \
        int: JOT_I32,                                                                          \
        long: (sizeof(long) == 8 ? JOT_I64 : JOT_I32),                                         \
        long long: JOT_I64,                                                                    \
        unsigned char: JOT_U8,                                                                 \
        unsigned short: JOT_U16,                                                               \
        unsigned: JOT_U32,                                                                     \
        unsigned long: (sizeof(long) == 8 ? JOT_U64 : JOT_U32),                                \
        unsigned long long: JOT_U64,                                                           \
        float: JOT_F32,                                                                        \
        double: JOT_F64,                                                                       \
        float _Complex: JOT_C64,                                                               \
        double _Complex: JOT_C128,                                                             \
        default: 99)
#endif

// jot_array_from(data, 2, 3): a copy of C data; without sizes a scalar.  A compound literal stands
// in parentheses of its own: jot_array_from(((double[]){1, 2}), 2).
#define jot_array_from(...)                                                                    \
    jot_array_from_(JOT_FIRST_(__VA_ARGS__, 0), JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END)))
#define jot_array_from_(data, dims)                                                            \
    jot_array_copy(JOT_DTYPE_OF_("jot_array_from", data), data, dims)

// jot_array_full(JOT_F32, 0.5, 2, 3).
#define jot_array_full(dtype, ...)                                                             \
    jot_array_fill(dtype, JOT_FIRST_(__VA_ARGS__, 0),                                          \
                   JOT_DIMS_(JOT_REST_(__VA_ARGS__, JOT_END)))

// jot_array_read(a, buffer, count): copies out to a C buffer of the array's own type.
#define jot_array_read(a, dst, count)                                                          \
    jot_array_read_at(a, JOT_DTYPE_OF_("jot_array_read", dst), dst, count,                     \
                      JOT_HERE ": jot_array_read")

#endif
