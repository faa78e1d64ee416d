// SPDX-License-Identifier: Apache-2.0
// Relocatable ELF objects in memory: what the code generator emits, made to run without a
// linker.  Several stand one behind the other, from multiples of 8 bytes on, and find each other by name.
//
// Takes x86-64 objects of the small code model compiled as position-independent code.  Code is
// never writable while it can run.  The structure of the bytes is checked throughout, so
// damaged input gives a status; what the code itself does is trusted.
//
// Thread-safety: loaded code is immutable and may be used by any thread.
#ifndef RUNTIME_LOADER_H
#define RUNTIME_LOADER_H

#include "jot/status.h"

#include <stddef.h>

struct rt_code;

// The address of a symbol that the object needs from outside, or NULL.
typedef void *rt_resolve(void *ctx, const char *name);

// JOT_ERR_IO for what is not such an object or is damaged; JOT_ERR_LIBRARY for a symbol that is
// found nowhere; JOT_ERR_DEVICE for an object of another machine.
jot_status rt_code_load(const void *object, size_t size, rt_resolve *resolve, void *ctx,
                        struct rt_code **out_code);
void rt_code_release(struct rt_code *code); // unmaps; NULL is fine

// A global symbol of the object, or NULL.
void *rt_code_find(const struct rt_code *code, const char *name);

#endif
