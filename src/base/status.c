// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// Fixed memory, so that running out of it can still be told.
static _Thread_local char message[1024];
static _Thread_local jot_status last;
static _Thread_local unsigned failures;

const char *jot_error_message(void) { return message; }

jot_status status_last(void) { return last; }

unsigned status_failures(void) { return failures; }

jot_status status_fail(jot_status status, const char *format, ...)
{
    char text[sizeof message]; // an argument may be the old message
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(message, text, sizeof text);
    failures++;
    return last = status;
}

static _Thread_local struct {
    jot_status status;
    char text[512];
} causes[STATUS_NULLS];

void *status_null(enum status_null kind, const char *what)
{
    if (strncmp(message, what, strlen(what)))
        status_fail(last, "%s: %s", what, message);
    if (causes[kind].status == JOT_OK) {
        causes[kind].status = last;
        snprintf(causes[kind].text, sizeof causes[kind].text, " (%.500s)", message);
    }
    return NULL;
}

jot_status status_of_null(enum status_null kind, const char **out_why)
{
    bool is_known = causes[kind].status != JOT_OK;
    *out_why = is_known ? causes[kind].text : "";
    return is_known ? causes[kind].status : JOT_ERR_ARGUMENT;
}

void status_forget_nulls(void)
{
    for (int kind = 0; kind < STATUS_NULLS; kind++)
        causes[kind].status = JOT_OK;
}

// "file:12: " stands at the begin.
static bool has_place(const char *text)
{
    const char *colon = strchr(text, ':');
    return colon && colon[1] >= '0' && colon[1] <= '9';
}

jot_status jot_status_place(jot_status status, const char *where)
{
    return status == JOT_OK || !where || has_place(message)
               ? status
               : status_fail(status, "%s: %s", where, message);
}

jot_status status_out_of_memory(void) { return status_fail(JOT_ERR_MEMORY, "out of memory"); }

const char *jot_status_name(jot_status status)
{
    static const char *const names[] = {
        [JOT_OK] = "JOT_OK",
        [JOT_ERR_ARGUMENT] = "JOT_ERR_ARGUMENT",
        [JOT_ERR_SHAPE] = "JOT_ERR_SHAPE",
        [JOT_ERR_DTYPE] = "JOT_ERR_DTYPE",
        [JOT_ERR_STALE] = "JOT_ERR_STALE",
        [JOT_ERR_TRACE] = "JOT_ERR_TRACE",
        [JOT_ERR_MEMORY] = "JOT_ERR_MEMORY",
        [JOT_ERR_LIBRARY] = "JOT_ERR_LIBRARY",
        [JOT_ERR_DEVICE] = "JOT_ERR_DEVICE",
        [JOT_ERR_IO] = "JOT_ERR_IO",
        [JOT_ERR_CHECK] = "JOT_ERR_CHECK",
        [JOT_ERR_INTERNAL] = "JOT_ERR_INTERNAL",
    };
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "?";
}
