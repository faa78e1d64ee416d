// SPDX-License-Identifier: Apache-2.0
// Functions with loops and branches in every way that is easily got wrong: carries that feed each
// other, that nobody reads or sets, integers among them, rows that nobody reads, no trips, one in
// the other.  None of their loops but is one kernel when it may be.
#ifndef CONTROL_PROGRAMS_H
#define CONTROL_PROGRAMS_H

enum control_kind {
    CONTROL_ANY,
    CONTROL_SMOOTH,   // f64 at points where differences are near derivatives
    CONTROL_NO_BOUND, // a while without a bound or slots: not differentiated in reverse
};

struct control_program {
    const char *name, *text;
    enum control_kind kind;
};

enum { CONTROL_PROGRAMS = 22, CONTROL_SMOOTH_PROGRAMS = 11 }; // the smooth ones first
extern const struct control_program control_programs[CONTROL_PROGRAMS];

#endif
