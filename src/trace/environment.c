// SPDX-License-Identifier: Apache-2.0
#include "trace/environment.h"

#include "runtime/device.h"
#include "runtime/host/pool.h"
#include "trace/dump.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORD(name) #name ", "

// Either words, with ", " between them, or a number from least.
static const struct variable {
    const char *name, *words;
    bool is_list; // takes several words, with commas between them
    bool is_device;
    unsigned long long least, most;
} variables[] = {
    {.name = "JOT_BACKEND", .words = "native, eval"},
    {.name = "JOT_CACHE", .words = "on, off"},
    {.name = "JOT_CACHE_BYTES", .most = UINT64_MAX},
    {.name = "JOT_CHECK", .words = "nan, inf", .is_list = true},
    {.name = "JOT_COMPILE", .words = "inside, process"},
    {.name = "JOT_COMPILE_BYTES", .least = 1, .most = UINT64_MAX},
    {.name = "JOT_COMPILE_SECONDS", .least = 1, .most = UINT64_MAX},
    {.name = "JOT_DEVICE", .is_device = true},
    {.name = "JOT_DUMP", .words = DUMP_STAGES(WORD) "all", .is_list = true},
    {.name = "JOT_FFTW", .words = "on, off"},
    {.name = "JOT_HOST_DEVICES", .least = 1, .most = RT_HOST_MOST},
    {.name = "JOT_NAN_GUARD", .words = "on, off"},
    {.name = "JOT_PERF", .words = "0, 1"},
    {.name = "JOT_THREADS", .least = 1, .most = RT_POOL_MOST},
    {.name = "JOT_VERIFY", .words = "on, off"},
};

static bool is_word_of(const char *words, const char *text, size_t length)
{
    for (const char *at = words; at; at = strchr(at, ',')) {
        at += strspn(at, ", ");
        if (strcspn(at, ",") == length && !memcmp(at, text, length))
            return true;
    }
    return false;
}

static jot_status check_words(const struct variable *v, const char *text)
{
    while (*text) {
        size_t n = v->is_list ? strcspn(text, ",") : strlen(text);
        if (!is_word_of(v->words, text, n))
            return status_fail(JOT_ERR_ARGUMENT,
                               "the environment variable %s %s '%.*s', which is none of: %s",
                               v->name, v->is_list ? "lists" : "is", (int)n, text, v->words);
        text += n + (text[n] == ',');
    }
    return JOT_OK;
}

static jot_status check_number(const struct variable *v, const char *text)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && !errno && n >= v->least && n <= v->most)
        return JOT_OK;
    return status_fail(
        JOT_ERR_ARGUMENT,
        "the environment variable %s is '%s', which is no number from %llu to %llu", v->name,
        text, v->least, v->most);
}

static jot_status check_device(const char *text)
{
    jot_device *device;
    return rt_device_parse(text, &device);
}

jot_status environment_check(void)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const struct variable *v = &variables[i];
        const char *text = secure_getenv(v->name);
        if (text && *text)
            JOT_TRY(v->is_device ? check_device(text)
                    : v->words   ? check_words(v, text)
                                 : check_number(v, text));
    }
    return JOT_OK;
}

bool environment_lists(const char *name, const char *word)
{
    const char *text = secure_getenv(name);
    return text && is_word_of(text, word, strlen(word));
}

bool environment_verifies(void)
{
    const char *text = secure_getenv("JOT_VERIFY");
    return text && *text ? !strcmp(text, "on") : JOT_VERIFIES;
}
