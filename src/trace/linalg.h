// SPDX-License-Identifier: Apache-2.0
// What operations on matrices share.
#ifndef TRACE_LINALG_H
#define TRACE_LINALG_H

#include "trace/emit.h"

#include "jot/linalg.h"
#include "jot/transform.h"

// The value brought to a type that factorizations take; an error when it is no matrix, or, if it is
// to be, not square.
jot_value linalg_matrix(const char *name, jot_value a, bool is_square);

// Size of an axis, counted from the end: 1 is the last.
int64_t linalg_extent(jot_value a, int from_end);
// a^T, a^H, the diagonal, and its sum.
jot_value linalg_transpose(jot_value a);
jot_value linalg_adjoint(jot_value a);
jot_value linalg_diagonal(jot_value a);
jot_value linalg_trace(jot_value a);
// The unit matrix of the type and batch of a.
jot_value linalg_eye_like(jot_value a);
// x p, of the permutation p of rows with p a = l u.
jot_value linalg_times_permutation(jot_value x, jot_lu_factors f);

// f(in) -> out, with the derivative that rule says (jot_custom_jvp_of).
void linalg_apply(const char *name, jot_body *f, jot_body *rule, int n_in, const jot_value *in,
                  int n_out, jot_value *out);

#endif
