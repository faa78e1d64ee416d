// SPDX-License-Identifier: Apache-2.0
// Types as portable bytecode has them.
#include "interop/bytecode_write.h"

#include "interop/vhlo.h"

static void put_types(struct bytecode_writer *w, struct strbuf *s,
                      const struct mlir_type *const *types, uint32_t n)
{
    bytecode_put(s, n);
    for (uint32_t i = 0; i < n; i++)
        bytecode_put(s, vhlo_type(w, types[i]));
}

uint32_t vhlo_element(struct bytecode_writer *w, enum mlir_element e)
{
    return vhlo_type(w, &(struct mlir_type){.kind = MLIR_SCALAR, .element = e});
}

// "tensor<*xf32>", of a rank that is not known.
static bool put_unranked(struct bytecode_writer *w, struct strbuf *s, const char *text)
{
    static const char before[] = "tensor<*x";
    size_t n = strlen(before), all = strlen(text);
    enum mlir_element e = all > n && !strncmp(text, before, n)
                              ? mlir_element_find(text + n, all - n - 1)
                              : MLIR_N_ELEMENTS;
    if (e == MLIR_N_ELEMENTS)
        return false;
    bytecode_put(s, VHLO_TYPE_UNRANKED);
    bytecode_put(s, vhlo_element(w, e));
    return true;
}

static void put_type(struct bytecode_writer *w, struct strbuf *s, const struct mlir_type *t)
{
    switch (t->kind) {
    case MLIR_TENSOR:
        bytecode_put(s, VHLO_TYPE_TENSOR);
        bytecode_put(s, (uint64_t)t->rank);
        for (int i = 0; i < t->rank; i++)
            bytecode_put_signed(s, t->dims[i]);
        bytecode_put(s, vhlo_element(w, t->element));
        break;
    case MLIR_SCALAR:
        bytecode_put(s, (uint64_t)mlir_elements[t->element].vhlo);
        if (mlir_elements[t->element].kind == 'c')
            bytecode_put(s, vhlo_element(w, t->element == MLIR_C64 ? MLIR_F32 : MLIR_F64));
        break;
    case MLIR_TUPLE:
        bytecode_put(s, VHLO_TYPE_TUPLE);
        put_types(w, s, t->parts, t->n_parts);
        break;
    case MLIR_FUNCTION:
        bytecode_put(s, VHLO_TYPE_FUNCTION);
        put_types(w, s, t->parts, t->n_inputs);
        put_types(w, s, t->parts + t->n_inputs, t->n_parts - t->n_inputs);
        break;
    case MLIR_TOKEN:
        bytecode_put(s, VHLO_TYPE_TOKEN);
        break;
    default:
        if (!put_unranked(w, s, t->text))
            bytecode_write_fail(w, NULL, "the type %s has no portable form", t->text);
    }
}

uint32_t vhlo_type(struct bytecode_writer *w, const struct mlir_type *t)
{
    struct strbuf s = strbuf_make(w->scratch);
    if (++w->depth > MLIR_MAX_DEPTH)
        bytecode_write_fail(w, NULL, "a type that is too deep");
    else
        put_type(w, &s, t);
    w->depth--;
    return bytecode_entry(w, &w->types,
                          (struct written){.bytes = s.text, .n = s.length, .is_vhlo = true});
}

// Types of numbers in attributes that stand beside VHLO's are MLIR's own.
uint32_t builtin_type(struct bytecode_writer *w, const struct mlir_type *t)
{
    struct strbuf s = strbuf_make(w->scratch);
    const struct mlir_element_row *e = &mlir_elements[t->element];
    if (t->kind == MLIR_TENSOR) {
        bytecode_put(&s, BUILTIN_TYPE_TENSOR);
        bytecode_put(&s, (uint64_t)t->rank);
        for (int i = 0; i < t->rank; i++)
            bytecode_put_signed(&s, t->dims[i]);
        struct mlir_type element = {.kind = MLIR_SCALAR, .element = t->element};
        bytecode_put(&s, builtin_type(w, &element));
    } else if (t->kind == MLIR_SCALAR && t->element == MLIR_INDEX) {
        bytecode_put(&s, BUILTIN_TYPE_INDEX);
    } else if (t->kind == MLIR_SCALAR && strchr("biu", e->kind)) {
        bytecode_put(&s, BUILTIN_TYPE_INTEGER);
        bytecode_put(&s, (uint64_t)e->bits << 2 | (e->kind == 'u' ? 2 : 0));
    } else if (t->kind == MLIR_SCALAR && t->element >= MLIR_F16 && t->element <= MLIR_F64) {
        static const int codes[] = {1, 0, 2, 3}; // f16, bf16, f32, f64
        bytecode_put(&s, (uint64_t)(BUILTIN_TYPE_BF16 + codes[t->element - MLIR_F16]));
    } else if (t->kind == MLIR_SCALAR && e->kind == 'c') {
        struct mlir_type part = {.kind = MLIR_SCALAR,
                                 .element = t->element == MLIR_C64 ? MLIR_F32 : MLIR_F64};
        bytecode_put(&s, BUILTIN_TYPE_COMPLEX);
        bytecode_put(&s, builtin_type(w, &part));
    } else {
        bytecode_write_fail(w, NULL, "an attribute of a type that has no portable form");
    }
    return bytecode_entry(w, &w->types, (struct written){.bytes = s.text, .n = s.length});
}
