// SPDX-License-Identifier: Apache-2.0
// A function that jax.export has serialized: portable bytecode and what is said of it.
#ifndef INTEROP_JAX_EXPORT_H
#define INTEROP_JAX_EXPORT_H

#include "interop/mlir.h"

// An argument or a result.  Extents are text: "3", or an expression of symbols such as "2*b + 1".
struct jax_aval {
    bool is_token;
    enum mlir_element element; // MLIR_N_ELEMENTS: of none
    const char *dtype;         // its name, also where it is no element: "float0", "key<fry>"
    uint32_t rank;
    const char *const *dims;
};

struct jax_export {
    struct arena *arena;
    const char *file;
    int version, calling_convention; // of the serialization, and of main
    const char *function_name;
    uint32_t n_devices;
    bool uses_global_constants; // main has symbols
    uint32_t n_in, n_out;       // flattened
    const struct jax_aval *in, *out;
    // The arguments of main are those of `in` with these numbers, behind the number of the
    // platform, an i32, where there are several.
    uint32_t n_kept;
    const uint32_t *kept;
    uint32_t n_platforms, n_ordered, n_unordered, n_disabled;
    const char *const *platforms;                  // "cpu", "cuda", ...
    const char *const *ordered, *const *unordered; // effects
    const char *const *disabled; // checks: "platform", "custom_call:NAME", ...
    const unsigned char
        *module; // portable bytecode, inside what was read, as long as that is there
    size_t module_size;
    const struct jax_export *vjp; // of this function, or NULL; released with it
};

// Whether the bytes are such a function: whether bytecode is where its module should be.
bool jax_export_is(const void *bytes, size_t n);
// The function in n bytes; `file` names them in messages.
jot_status jax_export_read(const char *file, const void *bytes, size_t n,
                           struct jax_export **out);
void jax_export_release(struct jax_export *e); // NULL is fine

#endif
