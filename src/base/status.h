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

// What a function of the API that makes something returns when it has failed: its name comes in
// front of the message where it is not, and the first such failure of its kind on the thread
// explains the NULL to whatever is handed it.
enum status_null { STATUS_NULL_ARRAY, STATUS_NULL_FUNCTION, STATUS_NULL_ARCHIVE, STATUS_NULLS };
void *status_null(enum status_null kind, const char *what);
// The status of that failure and " (its message)"; JOT_ERR_ARGUMENT and "" when there was none.
jot_status status_of_null(enum status_null kind, const char **out_why);
void status_forget_nulls(void); // something has run since

#endif
