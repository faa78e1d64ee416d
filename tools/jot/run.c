// SPDX-License-Identifier: Apache-2.0
// jot run, jot print, jot convert.
#include "command.h"

#include <string.h>

static bool compile_main(struct job *j, bool may_be_random)
{
    return open_job(j) && read_inputs(j, may_be_random) &&
           compile_job(j, jot_program_function(j->program, j->a->function),
                       j->signature->n_out);
}

bool command_run(const struct arguments *a)
{
    struct job j = {.a = a, .is_last_run = true};
    bool is_well = compile_main(&j, false) && run_job(&j) && give_outputs(&j, "out");
    close_job(&j);
    return is_well;
}

bool command_print(const struct arguments *a)
{
    static const char *const stages[] = {"trace",  "simplify", "schedule",
                                         "memory", "llvm",     "code"};
    struct job j = {.a = a};
    bool is_known = false;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        is_known |= !strcmp(a->stage, stages[i]);
    if (!is_known)
        return misuse("--stage %s: it is trace, simplify, schedule, memory, llvm or code",
                      a->stage);
    bool is_well = compile_main(&j, true);
    const char *text = is_well ? jot_executable_text(j.executable, a->stage) : NULL;
    if (text)
        fputs(text, stdout);
    else if (is_well)
        fail_status();
    close_job(&j);
    return text != NULL;
}
