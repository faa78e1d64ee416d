// SPDX-License-Identifier: Apache-2.0
// What the tests of nests share.
#ifndef PASSES_NEST_SUPPORT_H
#define PASSES_NEST_SUPPORT_H

#include "base/status.h"
#include "nest/nest.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const nest_files[] = {
    "attention",   "contract", "cumsum", "energy_grad", "everything",
    "scatter_add", "softmax",  "spring", "spring_grad",
};
#define NEST_FILES (sizeof nest_files / sizeof *nest_files)

// The text of tests/nest/texts/<name>.nest, without the comments at its head.
static inline const char *read_nest_file(struct arena *a, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "tests/nest/texts/%s.nest", name);
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f, "cannot open %s", path);
    struct strbuf s = strbuf_make(a);
    char chunk[4096];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        strbuf_add_bytes(&s, chunk, n);
    fclose(f);
    const char *text = s.text;
    while (!strncmp(text, "//", 2))
        text = strchr(text, '\n') + 1;
    return text;
}

static inline struct nest *parse_nest(struct arena *a, const char *text)
{
    int count = 0;
    struct nest **nests = NULL;
    jot_status status = nest_parse(a, text, &count, &nests);
    ck_assert_msg(status == JOT_OK, "%s\n%s", jot_error_message(), text);
    ck_assert_int_eq(count, 1);
    return nests[0];
}

static inline const char *print_nest(struct arena *a, const struct nest *n)
{
    struct strbuf s = strbuf_make(a);
    nest_print(&s, n);
    return s.text;
}

static inline void check_faultless(struct arena *a, const struct nest *n)
{
    struct strbuf report = strbuf_make(a);
    ck_assert_msg(nest_verify(n, &report) == 0, "%s%s", report.text, print_nest(a, n));
}

static inline int run_suite(Suite *s)
{
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

#endif
