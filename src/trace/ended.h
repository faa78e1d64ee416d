// SPDX-License-Identifier: Apache-2.0
// What is remembered of traces that have ended: where their values were made, so that the message
// about a stale handle can name both places.  A ring of the last 64 traces of the thread.
#ifndef TRACE_ENDED_H
#define TRACE_ENDED_H

#include "trace/tracer.h"

struct ended_trace {
    uint32_t serial, count;
    enum trace_kind kind;
    char name[64];
    const char *where;
    const char **made; // by handle; may be NULL
};

void ended_add(const struct trace *t);
// NULL when it is forgotten or never was.
const struct ended_trace *ended_find(uint32_t serial);

#endif
