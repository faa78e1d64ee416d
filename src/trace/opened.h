// SPDX-License-Identifier: Apache-2.0
// The open traces of all threads: what gives each its serial, and says of a handle of another
// thread what it is of.
//
// A serial is given to no other trace while the trace is open.  After 2^32 traces they come again:
// those of open traces are passed over, and a handle of a trace that ended so long ago may be taken
// for one of a newer trace.
#ifndef TRACE_OPENED_H
#define TRACE_OPENED_H

#include "trace/tracer.h"

// The trace of the handles after the inputs of a function of uniform signature.  The low bits
// of the id say which it is, those above them how many inputs there are.
#define TRACE_GUARD_SERIAL UINT32_MAX
#define TRACE_GUARD_BITS 3

// A copy, for the trace may end at any time.
struct opened_trace {
    enum trace_kind kind;
    char name[64], where[256];
};

void opened_add(struct trace *t); // gives the serial
void opened_remove(struct trace *t);
// False when no trace of that serial is open, on any thread.
bool opened_find(uint32_t serial, struct opened_trace *out);
// The serial that was given last; for tests, which set it.
uint32_t *opened_last_serial(void);

#endif
