// SPDX-License-Identifier: Apache-2.0
// Reads a scheduled program whose nests have no levels, and prints it with those of a processor,
// then its assembly, so that the text is the same on every machine.
//
//     for_target TARGET <PROGRAM
#include "codegen/codegen.h"

#include <stdio.h>

extern cg_entry jot_codegen_entry;

int main(int argc, char **argv)
{
    static char program[1 << 16];
    size_t size = fread(program, 1, sizeof program - 1, stdin);
    if (argc != 2 || size == sizeof program - 1)
        return 2;
    const unsigned wants[] = {CG_WANT_MAPPED, CG_WANT_ASSEMBLY};
    for (int i = 0; i < 2; i++) {
        struct cg_request request = {.want = wants[i], .program = program, .target = argv[1]};
        struct cg_response response;
        jot_codegen_entry(&request, &response);
        if (response.status) {
            fprintf(stderr, "%s\n", response.message);
            return 1;
        }
        puts(i ? response.assembly : response.text);
        response.release(&response);
    }
}
