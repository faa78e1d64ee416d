// SPDX-License-Identifier: Apache-2.0
// A nest from its text.
#ifndef TESTS_NEST_TEXT_H
#define TESTS_NEST_TEXT_H

#include "nest/nest.h"

#include <check.h>

static inline struct nest *nest_of_text(struct arena *a, const char *text)
{
    struct nest **nests;
    int count;
    ck_assert_msg(nest_parse(a, text, &count, &nests) == JOT_OK, "%s\n%s", jot_error_message(),
                  text);
    return nests[0];
}

#endif
