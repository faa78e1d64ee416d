// SPDX-License-Identifier: Apache-2.0
#include "runtime/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

void rt_text_add(struct rt_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bool fits = text->length < text->size;
    int n = vsnprintf(fits ? text->at + text->length : NULL,
                      fits ? text->size - text->length : 0, format, arguments);
    va_end(arguments);
    text->length += n > 0 ? (size_t)n : 0;
}
