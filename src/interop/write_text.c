// SPDX-License-Identifier: Apache-2.0
// A program as text: the module and its functions.
#include "interop/write_text.h"

#include <string.h>

static void write_optional_dictionary(struct strbuf *out, const struct mlir_attr *a)
{
    if (!a || !a->n)
        return;
    strbuf_add(out, " ");
    write_dictionary(out, a->named, a->n);
}

static void write_inputs(struct writer *w, const struct mlir_function *f)
{
    for (uint32_t i = 0; i < f->type->n_inputs; i++) {
        strbuf_add(w->out, i ? ", " : "");
        if (f->body)
            write_argument(w, f->body->args[i]);
        else
            mlir_print_type(w->out, f->type->parts[i]);
        write_optional_dictionary(w->out, f->args ? f->args[i] : NULL);
    }
}

// " -> type", or " -> (type {attributes}, ...)"
static void write_outputs(struct strbuf *out, const struct mlir_function *f)
{
    uint32_t n = f->type->n_parts - f->type->n_inputs;
    const struct mlir_type *const *types = f->type->parts + f->type->n_inputs;
    if (n == 0)
        return;
    bool has_attrs = f->results && f->results[0] && f->results[0]->n;
    bool is_one = n == 1 && !has_attrs && types[0]->kind != MLIR_FUNCTION;
    strbuf_add(out, is_one ? " -> " : " -> (");
    for (uint32_t i = 0; i < n; i++) {
        strbuf_add(out, i ? ", " : "");
        mlir_print_type(out, types[i]);
        write_optional_dictionary(out, f->results ? f->results[i] : NULL);
    }
    strbuf_add(out, is_one ? "" : ")");
}

static void write_function(struct strbuf *out, const struct mlir_function *f)
{
    struct writer w = {.out = out, .indent = 2};
    w.names = arena_array(out->arena, struct write_name, f->n_values + 1);
    strbuf_printf(out, "  func.func %s ", f->is_private ? "private" : "public");
    write_symbol(out, f->name);
    strbuf_add(out, "(");
    write_inputs(&w, f);
    strbuf_add(out, ")");
    write_outputs(out, f);
    if (f->body) {
        strbuf_add(out, " ");
        write_block(&w, f->body);
    }
    strbuf_add(out, "\n");
}

void mlir_write_text(struct strbuf *out, const struct mlir_program *p)
{
    struct mlir_named *attrs = arena_array(out->arena, struct mlir_named, p->n_attrs + 1);
    const struct mlir_attr *name = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_attrs; i++) {
        bool is_name = !strcmp(p->attrs[i].name, "sym_name");
        if (is_name && p->attrs[i].attr->kind == MLIR_STRING && p->attrs[i].attr->n)
            name = p->attrs[i].attr;
        else if (!is_name && strcmp(p->attrs[i].name, "sdy.mesh") != 0)
            attrs[n++] = p->attrs[i];
    }
    strbuf_add(out, "module");
    if (name) {
        strbuf_add(out, " ");
        write_symbol(out, name->text);
    }
    if (n) {
        strbuf_add(out, " attributes ");
        write_dictionary(out, attrs, n);
    }
    strbuf_add(out, " {\n");
    for (uint32_t i = 0; i < p->n_attrs; i++)
        if (!strcmp(p->attrs[i].name, "sdy.mesh") && p->attrs[i].attr->kind == MLIR_OPAQUE &&
            !write_is_unread(p->attrs[i].attr))
            strbuf_printf(out, "  sdy.mesh %s\n", p->attrs[i].attr->text);
    for (uint32_t i = 0; i < p->n_functions; i++)
        write_function(out, &p->functions[i]);
    strbuf_add(out, "}\n");
}
