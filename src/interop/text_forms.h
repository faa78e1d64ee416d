// SPDX-License-Identifier: Apache-2.0
// How operations are printed: forms.def for the reader and the writer of text.
#ifndef INTEROP_TEXT_FORMS_H
#define INTEROP_TEXT_FORMS_H

#include "interop/mlir.h"

enum form_types {
    FORM_FUNCTION,
    FORM_ARROW,
    FORM_TYPE,
    FORM_TYPES,
    FORM_SAME,
    FORM_CHOICE,
    FORM_CAST,
    FORM_NONE,
};

// NULL where an operation has the general form alone, or code of its own.
const char *form_of(const struct mlir_row *row);
enum form_types form_types(const struct mlir_row *row);
// The kind of an attribute in stablehlo.def; 0 where it is not there.
char form_letter(const struct mlir_row *row, const char *name, size_t n);

// The parts of the window of a convolution.
enum { FORM_WINDOWS = 5 };
struct form_window {
    const char *word, *name;
};
extern const struct form_window form_windows[FORM_WINDOWS];

#endif
