// SPDX-License-Identifier: Apache-2.0
#include "interop/text_forms.h"

#include <string.h>

static const struct {
    const char *form;
    enum form_types types;
} forms[MLIR_N_CODES] = {
#define FORM(dialect, name, types, form) [MLIR_OP_##dialect##_##name] = {form, FORM_##types},
#include "interop/text_forms.def"
#undef FORM
};

const struct form_window form_windows[FORM_WINDOWS] = {{"stride", "window_strides"},
                                                       {"pad", "padding"},
                                                       {"lhs_dilate", "lhs_dilation"},
                                                       {"rhs_dilate", "rhs_dilation"},
                                                       {"reverse", "window_reversal"}};

const char *form_of(const struct mlir_row *row)
{
    const char *form = forms[row->code].form;
    return !form && row->form == MLIR_FORM_SAME ? "%*" : form;
}

enum form_types form_types(const struct mlir_row *row)
{
    if (forms[row->code].form)
        return forms[row->code].types;
    return !strcmp(row->dialect, "chlo") ? FORM_ARROW : FORM_SAME;
}

char form_letter(const struct mlir_row *row, const char *name, size_t n)
{
    for (const char *spec = row ? row->attrs : ""; *spec; spec += *spec == ' ') {
        size_t length = strcspn(spec, ":");
        if (length == n && !memcmp(spec, name, n))
            return spec[n + 1];
        spec += strcspn(spec, " ");
    }
    return 0;
}
