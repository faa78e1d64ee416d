// SPDX-License-Identifier: Apache-2.0
// Programs to files and to memory.
#include "base/status.h"
#include "base/strbuf.h"
#include "interop/input.h"
#include "interop/portable.h"
#include "runtime/stack.h"
#include "trace/stacks.h"

#include <stdbool.h>
#include <string.h>

struct request {
    const jot_program *program;
    bool is_text;
    const char *path; // NULL: to the buffer
    void *buffer;
    size_t size, *out_n;
};

static jot_status write_file(const char *path, const struct strbuf *bytes)
{
    struct output o;
    JOT_TRY(output_open(&o, path));
    return output_close(&o, output_write(&o, bytes->text, bytes->length));
}

static jot_status write_program(struct arena *scratch, void *ctx)
{
    const struct request *r = ctx;
    struct strbuf bytes = strbuf_make(scratch);
    if (r->is_text)
        mlir_write_text(&bytes, r->program->tree);
    else
        JOT_TRY(portable_write(&bytes, r->program->tree));
    if (r->path)
        return write_file(r->path, &bytes);
    *r->out_n = bytes.length;
    if (bytes.length && bytes.length <= r->size)
        memcpy(r->buffer, bytes.text, bytes.length);
    return JOT_OK;
}

static jot_status write_in_arena(void *ctx) { return arena_lend(write_program, ctx); }

static jot_status write_as(struct request r)
{
    return rt_stack_lend(STACK_OF_PROGRAM, write_in_arena, &r);
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
    return write_as((struct request){.program = p, .is_text = is_text, .path = path});
}

jot_status jot_program_to_memory(const jot_program *p, jot_program_format form, void *buffer,
                                 size_t size, size_t *out_n)
{
    if (!p || !out_n || (size && !buffer))
        return status_fail(JOT_ERR_ARGUMENT, "jot_program_to_memory: %s is NULL",
                           !p       ? "the program p"
                           : !out_n ? "out_n"
                                    : "buffer");
    if (form != JOT_PROGRAM_TEXT && form != JOT_PROGRAM_BYTECODE)
        return status_fail(JOT_ERR_ARGUMENT, "jot_program_to_memory: there is no format %d",
                           (int)form);
    return write_as((struct request){.program = p,
                                     .is_text = form == JOT_PROGRAM_TEXT,
                                     .buffer = buffer,
                                     .size = size,
                                     .out_n = out_n});
}
