// SPDX-License-Identifier: Apache-2.0
// Arrays to and from other libraries without a copy, by DLPack (https://dmlc.github.io/dlpack):
// NumPy, PyTorch, JAX and CuPy speak it.
//
//     jot_array *x = jot_array_from_dlpack(theirs);             // theirs is ours now
//     struct DLManagedTensorVersioned *t;
//     if (jot_array_to_dlpack(x, &t) == JOT_OK) give(t);        // x may be released before t is
//
// The structs are those of dlpack.h, which whoever looks into them includes.  Versioned tensors are
// those of DLPack 1, the others the older ones, which cannot say that they are only to be read.
//
// Thread-safety: every function here may be called from any thread, and so may what deletes a tensor
// that was made here.
#ifndef JOT_DLPACK_H
#define JOT_DLPACK_H

#include "jot/array.h"

JOT_BEGIN_C

// The two structs of DLPack.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

// A view of the array, on the host or on a GPU, which holds a reference until its deleter is called.
// Elements are only to be read: arrays do not change.  Waits until they are there.  JOT_ERR_DEVICE
// when they never will be.
JOT_API JOT_MUST_USE jot_status
jot_array_to_dlpack(jot_array *a, struct DLManagedTensorVersioned **out_tensor);
JOT_API JOT_MUST_USE jot_status
jot_array_to_dlpack_unversioned(jot_array *a, struct DLManagedTensor **out_tensor);

// An array over the memory of the tensor, which is deleted with the array.  The memory must not
// change while there is an array of it, and what writes it has ended before the call.  The tensor
// is dense, row-major, of a dtype that jot has, on the host or a GPU; NULL with a message
// otherwise, and the tensor stays the caller's.
JOT_API JOT_MUST_USE jot_array *jot_array_from_dlpack(struct DLManagedTensorVersioned *tensor);
JOT_API JOT_MUST_USE jot_array *
jot_array_from_dlpack_unversioned(struct DLManagedTensor *tensor);

JOT_END_C

#endif
