// SPDX-License-Identifier: Apache-2.0
// Bytes of stack that parts of jot take (runtime/stack.h); the tests of small stacks hold them.
#ifndef TRACE_STACKS_H
#define TRACE_STACKS_H

#include <stddef.h>

// Tracing, beside the code of the user.
#define STACK_OF_TRACE ((size_t)20 << 10)
// Passes, which call themselves for functions inside functions: when a transform is traced, and
// when a program is compiled, where LLVM takes the most.
#define STACK_OF_PASSES ((size_t)192 << 10)
#define STACK_OF_TRACED_FUNCTION ((size_t)8 << 10)
#define STACK_OF_COMPILER ((size_t)4 << 20)
#define STACK_OF_COMPILED_FUNCTION ((size_t)16 << 10)
// Kernels and routines of a run; where it calls code of the user, that has to do with what the
// thread has.
#define STACK_OF_RUN ((size_t)256 << 10)
#define STACK_OF_CALLBACKS ((size_t)16 << 10)
// Reading and writing programs, whose parts stand up to 1000 deep in each other.
#define STACK_OF_PROGRAM ((size_t)2 << 20)

#endif
