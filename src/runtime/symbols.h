// SPDX-License-Identifier: Apache-2.0
// What compiled code may call.
#ifndef RUNTIME_SYMBOLS_H
#define RUNTIME_SYMBOLS_H

// The address of a helper by its name in object code, or NULL: memcpy and its kin, the scalar
// elementary functions, and what compilers call on their own.
void *rt_symbol_find(const char *name);

#endif
