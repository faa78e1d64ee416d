// SPDX-License-Identifier: Apache-2.0
#ifndef INTEROP_ARTEFACT_H
#define INTEROP_ARTEFACT_H

#include "interop/program.h"

// The signature of the function that the artefact of p is of, when jot can run it.
jot_status artefact_open(jot_program *p);
// That function, which hands the arguments that main has on to it.
jot_function artefact_function(const jot_program *p);

#endif
