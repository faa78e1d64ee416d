// SPDX-License-Identifier: Apache-2.0
// Constant bytes that live as long as the process, each once: the lists of transforms, which
// are values without an owner.
//
// Thread-safety: any thread, without a lock, so that a child of fork() may go on.
#ifndef TRACE_INTERNED_H
#define TRACE_INTERNED_H

#include <stddef.h>

// The copy of the bytes, the same for the same bytes; aligned for pointers.  NULL when memory is out.
const void *interned(const void *bytes, size_t size);

#endif
