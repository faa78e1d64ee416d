// SPDX-License-Identifier: Apache-2.0
// A code generator whose fault $JOT_TEST_FAULT names: what becomes of a process that has it.
#include "base/built.h"
#include "codegen/codegen.h"
#include "jot/status.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

JOT_API extern const char jot_codegen_built[];
#if defined(OF_ANOTHER_BUILD)
const char jot_codegen_built[] = "00000000000000000000000000000000";
#else
const char jot_codegen_built[] = BUILT;
#endif

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response);

static void release(struct cg_response *response) { (void)response; }

// As LLVM: it ends the process where it finds no memory.
static void take_all_memory(void)
{
    for (;;) {
        char *block = malloc(1 << 20);
        if (!block) {
            fputs("LLVM ERROR: out of memory\n", stderr);
            abort();
        }
        memset(block, 1, 1 << 20);
    }
}

JOT_API void jot_codegen_entry(const struct cg_request *request, struct cg_response *response)
{
    const char *fault = getenv("JOT_TEST_FAULT");
    *response = (struct cg_response){.release = release};
    if (!strcmp(fault, "abort")) {
        fputs("LLVM ERROR: Cannot select: ", stderr);
        for (int i = 0; i < 2000; i++)
            fprintf(stderr, "t%d ", i);
        fputs("the end\n", stderr);
        abort();
    }
    if (!strcmp(fault, "segv")) {
        signal(SIGSEGV, SIG_DFL); // sanitizers have handlers
        raise(SIGSEGV);
    }
    if (!strcmp(fault, "exit"))
        exit(0);
    if (!strcmp(fault, "memory"))
        take_all_memory();
    if (!strcmp(fault, "hang"))
        for (;;)
            pause();
    if (!strcmp(fault, "deaf")) // hangs, with its standard error closed
        for (close(STDERR_FILENO);;)
            pause();
    if (!strcmp(fault, "garbage")) {
        if (write(STDOUT_FILENO, "garbage, and much more of it than a header takes, garbage",
                  57) < 0)
            abort();
        _exit(0);
    }
    if (!strcmp(fault, "heir") && fork() == 0) { // holds the standard error after its end
        sleep(55);
        _exit(0);
    }
    response->status = JOT_ERR_SHAPE;
    response->message = strlen(request->program) ? "a message of its own" : "";
}
