// SPDX-License-Identifier: Apache-2.0
// The variables of the environment that choose how jot works.
#ifndef TRACE_ENVIRONMENT_H
#define TRACE_ENVIRONMENT_H

#include "base/status.h"

#include <stdbool.h>

// JOT_ERR_ARGUMENT, naming the variable and what it may be, when one has a value that nothing
// understands.  Those who read a variable take such a value for the default.
jot_status environment_check(void);

// Whether the variable is the word, or a list that has it.
bool environment_lists(const char *name, const char *word);

// Whether what each pass leaves is verified: JOT_VERIFY, or in debug builds.
bool environment_verifies(void);

#endif
