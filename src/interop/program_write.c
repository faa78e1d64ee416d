// SPDX-License-Identifier: Apache-2.0
// Programs to files.
#include "base/status.h"
#include "base/strbuf.h"
#include "interop/input.h"
#include "interop/program.h"

#include <stdbool.h>
#include <string.h>

struct request {
    const jot_program *program;
    const char *path;
    bool is_text;
};

static jot_status write_program(struct arena *scratch, void *ctx)
{
    const struct request *r = ctx;
    struct strbuf bytes = strbuf_make(scratch);
    struct output o;
    if (r->is_text)
        mlir_write_text(&bytes, r->program->tree);
    else
        JOT_TRY(mlir_write_bytecode(&bytes, r->program->tree));
    JOT_TRY(output_open(&o, r->path));
    return output_close(&o, output_write(&o, bytes.text, bytes.length));
}

jot_status jot_program_write(const jot_program *p, const char *path)
{
    if (!p || !path)
        return status_fail(JOT_ERR_ARGUMENT, "jot_program_write: %s is NULL",
                           p ? "path" : "the program p");
    const char *dot = strrchr(path, '.');
    bool is_text = dot && !strcmp(dot, ".mlir");
    if (!is_text && (!dot || strcmp(dot, ".mlirbc")))
        return status_fail(
            JOT_ERR_ARGUMENT,
            "%s: a name that ends in .mlir is for text, one in .mlirbc for portable bytecode",
            path);
    return arena_lend(write_program, &(struct request){p, path, is_text});
}
