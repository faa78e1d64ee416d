// SPDX-License-Identifier: Apache-2.0
#include "interop/forms.h"

#include <string.h>

static const char *const forms[MLIR_N_CODES] = {
#define FORM(dialect, name, form) [MLIR_OP_##dialect##_##name] = form,
#include "interop/forms.def"
#undef FORM
};

const struct form_window form_windows[FORM_WINDOWS] = {{"stride", "window_strides"},
                                                       {"pad", "padding"},
                                                       {"lhs_dilate", "lhs_dilation"},
                                                       {"rhs_dilate", "rhs_dilation"},
                                                       {"reverse", "window_reversal"}};

const char *form_of(const struct mlir_row *row)
{
    return row->form == MLIR_FORM_SAME ? "%*" : forms[row->code];
}

char form_letter(const struct mlir_row *row, const char *name, size_t n)
{
    for (const char *spec = row ? row->attrs : ""; *spec; spec += *spec == ' ') {
        size_t length = strcspn(spec, ":");
        if (length == n && !memcmp(spec, name, n))
            return spec[n + 1];
        spec += strcspn(spec, " ");
    }
    return 'x';
}
