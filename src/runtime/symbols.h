// SPDX-License-Identifier: Apache-2.0
// What compiled code may call.
#ifndef RUNTIME_SYMBOLS_H
#define RUNTIME_SYMBOLS_H

#include "jot/status.h"

#include <stddef.h>
#include <stdint.h>

// The address of a helper by its name in object code, or NULL: memcpy and its kin, the scalar
// elementary functions, and what compilers call on their own.
void *rt_symbol_find(const char *name);

// A library routine that a plan calls by name: buffers are the operands of the step, params its
// numbers.  Routines check their own params.
typedef jot_status rt_routine(void *const *buffers, const int64_t *params,
                              uint32_t param_count);

// NULL when there is none.
rt_routine *rt_routine_find(const char *name);

#endif
