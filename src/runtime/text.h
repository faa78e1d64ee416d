// SPDX-License-Identifier: Apache-2.0
// Text in a buffer of the caller's.
#ifndef RUNTIME_TEXT_H
#define RUNTIME_TEXT_H

#include <stddef.h>

// length is what all of the text takes, also where the buffer is too short and cuts it off.
struct rt_text {
    char *at;
    size_t size, length;
};

__attribute__((format(printf, 2, 3))) void rt_text_add(struct rt_text *text, const char *format,
                                                       ...);

#endif
