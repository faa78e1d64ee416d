// SPDX-License-Identifier: Apache-2.0
// Running something that may crash in a process of its own.
#ifndef HARNESS_ISOLATE_H
#define HARNESS_ISOLATE_H

#include "base/strbuf.h"

#include <stdbool.h>

// Calls work(ctx, report) in a child, for so many seconds of processor time, and appends what it
// put in the report.  The caller has used no GPU yet, for a child of a fork cannot use what was opened
// before it: what work() uses it opens itself.  True when the child ended by itself; false when
// a signal or the limit ended it, which the report then says.
bool isolate_run(void (*work)(void *ctx, struct strbuf *report), void *ctx, int seconds,
                 struct strbuf *report);

#endif
