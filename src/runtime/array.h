// SPDX-License-Identifier: Apache-2.0
// Arrays from the inside: what the tracer, interop and programs need beyond the public calls.
#ifndef RUNTIME_ARRAY_H
#define RUNTIME_ARRAY_H

#include "runtime/device.h"

#include "jot/array.h"

#include <stdatomic.h>
#include <stdbool.h>

#define RT_ARRAY_INLINE_RANK 8
#define RT_ARRAY_RANK_LIMIT 64

enum rt_array_flag {
    RT_ARRAY_BORROWED = 1u << 0, // the data is the user's
    RT_ARRAY_INLINE = 1u << 1,   // the data follows the header in one block
    RT_ARRAY_FAR = 1u << 2, // the data is on another device than the host: struct rt_far_array
    RT_ARRAY_SPLIT = 1u << 3, // in pieces: struct rt_split_array of mesh.h
};

struct jot_array {
    atomic_int references;
    uint8_t dtype, flags; // enum rt_array_flag
    uint16_t rank;
    size_t size, bytes;
    void *data;
    int64_t *dims; // inline_dims up to RT_ARRAY_INLINE_RANK
    void (*release)(const void *data, void *ctx);
    void *ctx;
    // Others that hold the data without a reference of ours that says so (an open export).
    atomic_int exports;
    int part; // of the host, from 1; 0: all of it
    int64_t inline_dims[RT_ARRAY_INLINE_RANK];
};

// An array on another device.  The mirror is a copy on the host, made when somebody first reads it.
struct rt_far_array {
    jot_array a;
    jot_device *device;
    _Atomic(void *) mirror; // of the data pool; as many bytes as the array
};

jot_device *rt_array_first_device(const jot_array *a); // of one in pieces

static inline jot_device *rt_array_device(const jot_array *a)
{
    if (a->flags & RT_ARRAY_SPLIT)
        return rt_array_first_device(a);
    if (a->flags & RT_ARRAY_FAR)
        return ((const struct rt_far_array *)a)->device;
    return a->part ? rt_host_part(a->part) : jot_host();
}

// A new array on the host whose data is not set yet.  dims has `rank` sizes, which are known to
// be good: the product with the element size fits.  NULL with a message when memory is out.
// Allocates from the data pool only; for small arrays that is a list of the thread.
jot_array *rt_array_create(jot_dtype dtype, int rank, const int64_t *dims);

// The same on a device.
jot_array *rt_array_create_on(jot_device *device, jot_dtype dtype, int rank,
                              const int64_t *dims);

// An array on the host over memory of somebody else; see jot_array_borrow.
jot_array *rt_array_create_over(jot_dtype dtype, int rank, const int64_t *dims,
                                const void *data, void (*release)(const void *, void *),
                                void *ctx);

// Elements of an array on the host as an array on another part of it, all of which have one memory.
jot_array *rt_array_view(jot_array *a, jot_device *device, int rank, const int64_t *dims,
                         const void *data);

// A header in a block of so many bytes, which begins with it; flags and data are to be set.
jot_array *rt_array_create_header(jot_dtype dtype, int rank, const int64_t *dims,
                                  size_t block_bytes);
void rt_array_release_header(jot_array *a, size_t block_bytes);

// Copies the elements of one array into another of the same type, which is whole, from device to device.
jot_status rt_array_transfer(jot_array *to, const jot_array *from);

// Checks sizes that come from outside.  `what` is the name of the public function for the
// message.
jot_status rt_array_check(const char *what, int dtype, int64_t rank, const int64_t *dims);

// Whether the caller, who holds one reference, may write the data in place: nobody else can see
// it.
static inline bool rt_array_is_unique(const jot_array *a)
{
    return atomic_load_explicit(&a->references, memory_order_acquire) == 1 &&
           atomic_load_explicit(&a->exports, memory_order_acquire) == 0 &&
           !(a->flags & RT_ARRAY_BORROWED);
}

// Gives an array that nobody else uses another type, so that the result of a call takes over the
// memory of a donated input.  Not possible when the new type needs another number of bytes or more
// room for its sizes than the header has.
bool rt_array_can_retype(const jot_array *a, jot_dtype dtype, int rank, const int64_t *dims);
void rt_array_retype(jot_array *a, jot_dtype dtype, int rank, const int64_t *dims);

// One element rounded to double; the real part of a complex one.
double rt_element_to_f64(jot_dtype dtype, const void *element);

#endif
