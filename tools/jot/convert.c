// SPDX-License-Identifier: Apache-2.0
// jot convert: a program in another form.
#include "command.h"

bool command_convert(const struct arguments *a)
{
    jot_program *p = jot_program_read(a->files[0]);
    bool is_well = (p && jot_program_write(p, a->files[1]) == JOT_OK) || fail_status();
    jot_program_release(p);
    return is_well;
}
