// SPDX-License-Identifier: Apache-2.0
// Elements as text: integers in decimal, true and false, floats with the fewest digits that
// read back to the same bits, complex numbers as (re, im).  A NaN that is not the usual quiet
// one shows its bits: nan(0x7fc00001).  The locale of the process has no say.
#ifndef IR_LITERAL_H
#define IR_LITERAL_H

#include "base/dtype.h"
#include "base/strbuf.h"

void literal_print(struct strbuf *s, jot_dtype dtype, const void *element);

// Reads one element at *at and moves *at behind it.  False, with nothing moved, when there is
// none or it does not fit the dtype.  Floats may also be written as 0x1.8p3.
bool literal_read(const char **at, jot_dtype dtype, void *element);

// One number, digits with an optional sign; the same conventions.
bool literal_read_int(const char **at, int64_t *out);

#endif
