// SPDX-License-Identifier: Apache-2.0
// A library of the right name with nothing in it.
extern int jot_lacking_cuda;
int jot_lacking_cuda;
