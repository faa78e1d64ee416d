// SPDX-License-Identifier: Apache-2.0
// The stack of the calling thread.
#ifndef RUNTIME_STACK_H
#define RUNTIME_STACK_H

#include <stdbool.h>
#include <stddef.h>

// Whether the address is of the stack that the system gave the thread; not so on a stack of the
// user's own, as of a coroutine or a signal handler, or when the system does not say.
bool rt_stack_has(const void *address);
// Bytes left for what the caller calls; SIZE_MAX when that is not known.
size_t rt_stack_left(void);

#endif
