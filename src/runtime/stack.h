// SPDX-License-Identifier: Apache-2.0
// The stack of the calling thread, and another one where it is too small.
#ifndef RUNTIME_STACK_H
#define RUNTIME_STACK_H

#include "jot/status.h"

#include <stdbool.h>
#include <stddef.h>

// Whether the address is of the stack that the system gave the thread; not so on a stack of the
// user's own, as of a coroutine or a signal handler, or when the system does not say.
bool rt_stack_has(const void *address);
// Bytes left for what the caller calls; SIZE_MAX when that is not known.
size_t rt_stack_left(void);

// Runs the body where it has so many bytes of stack: here, or on a thread made for it, which this
// one waits for.  What is of a thread is then another's, but for the message of a failure, which is
// brought back.  JOT_ERR_MEMORY when there can be no such thread.
jot_status rt_stack_lend(size_t bytes, jot_status (*body)(void *ctx), void *ctx);

#endif
