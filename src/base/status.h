// SPDX-License-Identifier: Apache-2.0
// Failing with a message.
//
//     return status_fail(JOT_ERR_SHAPE, "jot_dot: contracting %d with %d", m, n);
//     JOT_TRY(load(path, &object));
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include "jot/status.h"

#define JOT_TRY(expression)                                                                    \
    do {                                                                                       \
        jot_status status_ = (expression);                                                     \
        if (status_ != JOT_OK)                                                                 \
            return status_;                                                                    \
    } while (0)

// Keeps the message of the thread and returns the status.
__attribute__((format(printf, 2, 3))) jot_status status_fail(jot_status status,
                                                             const char *format, ...);
jot_status status_out_of_memory(void);
// The status that goes with the message of the thread, and how many failures there were before.
jot_status status_last(void);
unsigned status_failures(void);

#endif
