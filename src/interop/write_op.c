// SPDX-License-Identifier: Apache-2.0
// Operations as text: in the forms that StableHLO prints where they have what these take, else in
// the general one.
#include "interop/text_forms.h"
#include "interop/write_text.h"

#include <string.h>

enum { FUNCTION_INDENT = 4 }; // of the operations of a function

// ---- values

void write_value(struct writer *w, const struct mlir_value *v)
{
    const struct write_name *n = &w->names[v->number];
    if (n->kind == WRITE_RESULT)
        strbuf_printf(w->out, "%%%u", n->number);
    else
        strbuf_printf(w->out, "%%%s%u", n->kind == WRITE_ARGUMENT ? "arg" : "iterArg_",
                      n->number);
    if (n->kind == WRITE_RESULT && n->n_results > 1)
        strbuf_printf(w->out, "#%u", n->result);
}

static void name_argument(struct writer *w, const struct mlir_value *v)
{
    w->names[v->number] = (struct write_name){.kind = WRITE_ARGUMENT, .number = w->n_args++};
}

static void write_typed(struct writer *w, const struct mlir_value *v)
{
    write_value(w, v);
    strbuf_add(w->out, ": ");
    mlir_print_type(w->out, v->type);
}

void write_argument(struct writer *w, const struct mlir_value *v)
{
    name_argument(w, v);
    write_typed(w, v);
}

static void write_values(struct writer *w, struct mlir_value *const *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        strbuf_add(w->out, i ? ", " : "");
        write_value(w, values[i]);
    }
}

// "%3 = " or "%3:2 = "
static void write_results(struct writer *w, const struct mlir_op *op)
{
    if (!op->n_results)
        return;
    for (uint32_t i = 0; i < op->n_results; i++)
        w->names[op->results[i]->number] = (struct write_name){.kind = WRITE_RESULT,
                                                               .number = w->n_results,
                                                               .result = i,
                                                               .n_results = op->n_results};
    strbuf_printf(w->out, "%%%u", w->n_results++);
    if (op->n_results > 1)
        strbuf_printf(w->out, ":%u", op->n_results);
    strbuf_add(w->out, " = ");
}

// ---- types

static void write_types(struct writer *w, struct mlir_value *const *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        strbuf_add(w->out, i ? ", " : "");
        mlir_print_type(w->out, values[i]->type);
    }
}

// b, or (b, c)
static void write_result_types(struct writer *w, const struct mlir_op *op)
{
    bool is_one = op->n_results == 1 && op->results[0]->type->kind != MLIR_FUNCTION;
    strbuf_add(w->out, is_one ? "" : "(");
    write_types(w, op->results, op->n_results);
    strbuf_add(w->out, is_one ? "" : ")");
}

static void write_function_type(struct writer *w, const struct mlir_op *op)
{
    strbuf_add(w->out, " : (");
    write_types(w, op->operands, op->n_operands);
    strbuf_add(w->out, ") -> ");
    write_result_types(w, op);
}

static bool have_type(struct mlir_value *const *values, uint32_t n, const struct mlir_type *t)
{
    for (uint32_t i = 0; i < n; i++)
        if (!mlir_types_equal(values[i]->type, t))
            return false;
    return true;
}

static void write_form_types(struct writer *w, const struct mlir_op *op)
{
    enum form_types types = form_types(op->row);
    if (types == FORM_SAME)
        types =
            op->n_results == 1 && have_type(op->operands, op->n_operands, op->results[0]->type)
                ? FORM_TYPE
                : FORM_FUNCTION;
    switch (types) {
    case FORM_TYPE:
        strbuf_add(w->out, " : ");
        mlir_print_type(w->out, op->results[0]->type);
        break;
    case FORM_TYPES:
        strbuf_add(w->out, op->n_operands ? " : " : "");
        write_types(w, op->operands, op->n_operands);
        break;
    case FORM_CHOICE:
        strbuf_add(w->out, " : ");
        mlir_print_type(w->out, op->operands[0]->type);
        strbuf_add(w->out, ", ");
        mlir_print_type(w->out, op->results[0]->type);
        break;
    case FORM_ARROW:
    case FORM_CAST:
        strbuf_add(w->out, " : ");
        write_types(w, op->operands, op->n_operands);
        strbuf_add(w->out, types == FORM_CAST ? " to " : " -> ");
        if (types == FORM_CAST)
            write_types(w, op->results, op->n_results);
        else
            write_result_types(w, op);
        break;
    case FORM_NONE:
        break;
    default:
        write_function_type(w, op);
    }
}

// ---- attributes

const struct mlir_attr *write_say(struct write_said *said, const char *name, size_t n)
{
    for (uint32_t i = 0; i < said->op->n_attrs; i++)
        if (!strncmp(said->op->attrs[i].name, name, n) && !said->op->attrs[i].name[n]) {
            said->at[i] = true;
            return said->op->attrs[i].attr;
        }
    return NULL;
}

// A bool that text has as a name alone.
static bool is_flag(const struct mlir_named *a)
{
    return a->attr->kind == MLIR_BOOL && !strcmp(a->name, "use_global_device_ids");
}

// What opens the braces stands before the first; false when there are none.
static bool write_entries(struct writer *w, struct write_said *said, const char *open,
                          bool of_table_only)
{
    const struct mlir_op *op = said->op;
    bool is_open = false;
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const struct mlir_named *a = &op->attrs[i];
        bool is_of_table = form_letter(op->row, a->name, strlen(a->name)) != 0;
        if (said->at[i] || (of_table_only && !is_of_table))
            continue;
        said->at[i] = true;
        if ((is_flag(a) && !a->attr->integer) || write_is_unread(a->attr))
            continue;
        strbuf_add(w->out, is_open ? ", " : open);
        is_open = true;
        write_key(w->out, a->name);
        if (a->attr->kind == MLIR_UNIT || is_flag(a))
            continue;
        strbuf_add(w->out, " = ");
        write_attr(w->out, op->row, a->name, a->attr);
    }
    return is_open;
}

// {a = 1, b}, of those that are not written, with what opens it; nothing when there are none.
static void write_rest(struct writer *w, struct write_said *said, const char *open)
{
    strbuf_add(w->out, write_entries(w, said, open, false) ? "}" : "");
}

// Dimension numbers of the general form.
static const struct structure {
    const char *name, *printed;
    const char *fields[6];
} structures[] = {
    {"dimension_numbers",
     "#stablehlo.gather",
     {"offset_dims", "collapsed_slice_dims", "operand_batching_dims",
      "start_indices_batching_dims", "start_index_map", "index_vector_dim"}},
    {"scatter_dimension_numbers",
     "#stablehlo.scatter",
     {"update_window_dims", "inserted_window_dims", "input_batching_dims",
      "scatter_indices_batching_dims", "scatter_dims_to_operand_dims", "index_vector_dim"}},
    {"channel_handle", "#stablehlo.channel_handle", {"channel_id", "channel_type"}},
};

static const struct structure *structure_of(const struct mlir_row *row)
{
    if (row->code == MLIR_OP_stablehlo_gather || row->code == MLIR_OP_stablehlo_dynamic_gather)
        return &structures[0];
    if (row->code == MLIR_OP_stablehlo_scatter)
        return &structures[1];
    return strstr(row->attrs, "channel_id:") ? &structures[2] : NULL;
}

// name = #stablehlo.gather<...>; lists that are empty and axis 0 are not written.
static bool write_structure(struct writer *w, struct write_said *said,
                            const struct structure *s, const char *open)
{
    bool is_channel = s == &structures[2], is_open = false;
    struct strbuf body = strbuf_make(w->out->arena);
    for (int i = 0; i < 6 && s->fields[i]; i++) {
        const struct mlir_attr *a = write_say(said, s->fields[i], strlen(s->fields[i]));
        bool is_empty = !a || (a->kind == MLIR_INTS ? a->n == 0 : a->integer == 0);
        if (is_empty && !(is_channel && (a || is_open)))
            continue;
        strbuf_printf(&body, is_open ? ", %s = " : "%s = ",
                      is_channel ? i ? "type" : "handle" : s->fields[i]);
        if (a)
            write_in_form(&body, form_letter(said->op->row, s->fields[i], strlen(s->fields[i])),
                          a);
        else
            strbuf_add(&body, "0");
        is_open = true;
    }
    if (is_open || !is_channel)
        strbuf_printf(w->out, "%s%s = %s<%s>", open, s->name, s->printed, body.text);
    return is_open || !is_channel;
}

// ---- regions

static void new_line(struct writer *w) { strbuf_printf(w->out, "\n%*s", w->indent, ""); }

static void write_ops(struct writer *w, const struct mlir_block *block)
{
    w->indent += 2;
    for (uint32_t i = 0; i < block->n_ops; i++) {
        new_line(w);
        write_op(w, block->ops[i]);
    }
    w->indent -= 2;
    new_line(w);
}

void write_block(struct writer *w, const struct mlir_block *block)
{
    strbuf_add(w->out, "{");
    write_ops(w, block);
    strbuf_add(w->out, "}");
}

// With a label that names the arguments.
static void write_region(struct writer *w, const struct mlir_block *block)
{
    strbuf_add(w->out, "{");
    if (block->n_args) {
        new_line(w);
        strbuf_add(w->out, "^bb0(");
        for (uint32_t i = 0; i < block->n_args; i++) {
            strbuf_add(w->out, i ? ", " : "");
            write_argument(w, block->args[i]);
        }
        strbuf_add(w->out, "):");
    }
    write_ops(w, block);
    strbuf_add(w->out, "}");
}

static bool same_types(struct mlir_value *const *a, struct mlir_value *const *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!mlir_types_equal(a[i]->type, b[i]->type))
            return false;
    return true;
}

// ---- while and reduce

static bool is_plain_while(const struct mlir_op *op)
{
    uint32_t n = op->n_operands;
    bool is_plain = op->n_regions == 2 && op->n_results == n;
    for (int i = 0; is_plain && i < 2; i++)
        is_plain =
            op->regions[i].n_args == n && same_types(op->operands, op->regions[i].args, n);
    return is_plain && same_types(op->operands, op->results, n);
}

// (%iterArg_0 = %1, ...) : types cond { ... } do { ... }
static void write_while(struct writer *w, struct write_said *said)
{
    const struct mlir_op *op = said->op;
    strbuf_add(w->out, "(");
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct write_name name = {.kind = WRITE_CARRIED, .number = w->n_carried++};
        for (int k = 0; k < 2; k++)
            w->names[op->regions[k].args[i]->number] = name;
        strbuf_add(w->out, i ? ", " : "");
        write_value(w, op->regions[0].args[i]);
        strbuf_add(w->out, " = ");
        write_value(w, op->operands[i]);
    }
    strbuf_add(w->out, op->n_operands ? ") : " : ")");
    write_types(w, op->operands, op->n_operands);
    write_rest(w, said, " attributes {");
    new_line(w);
    strbuf_add(w->out, "cond ");
    write_block(w, &op->regions[0]);
    strbuf_add(w->out, " do ");
    write_block(w, &op->regions[1]);
}

static bool is_plain_reduce(const struct mlir_op *op)
{
    return op->n_regions == 1 && op->n_operands >= 2 && op->n_operands % 2 == 0 &&
           op->regions[0].n_args == op->n_operands && mlir_attr_find(op, "dimensions");
}

// The operation that the region is, of its two arguments.
static const struct mlir_op *applied(const struct mlir_op *op)
{
    const struct mlir_block *b = &op->regions[0];
    if (op->n_operands != 2 || b->n_ops != 2)
        return NULL;
    const struct mlir_op *f = b->ops[0], *end = b->ops[1];
    bool is_one = f->row && f->row->form == MLIR_FORM_SAME && f->n_operands == 2 &&
                  f->n_results == 1 && f->n_attrs == 0 && f->operands[0] == b->args[0] &&
                  f->operands[1] == b->args[1] && end->n_operands == 1 && end->n_attrs == 0 &&
                  end->operands[0] == f->results[0] &&
                  end->row == &mlir_rows[MLIR_OP_stablehlo_return];
    const struct mlir_type *t = op->operands[1]->type;
    return is_one && mlir_types_equal(f->results[0]->type, t) &&
                   mlir_types_equal(b->args[0]->type, t) &&
                   mlir_types_equal(b->args[1]->type, t)
               ? f
               : NULL;
}

// (%1 init: %2), ... across dimensions = [0] : types reducer(%a: type, %b: type) { ... }
static void write_reduce(struct writer *w, struct write_said *said)
{
    const struct mlir_op *op = said->op, *f = applied(op);
    uint32_t pairs = op->n_operands / 2;
    for (uint32_t i = 0; i < pairs; i++) {
        strbuf_add(w->out, i ? ", (" : "(");
        write_value(w, op->operands[i]);
        strbuf_add(w->out, " init: ");
        write_value(w, op->operands[pairs + i]);
        strbuf_add(w->out, ")");
    }
    if (f)
        strbuf_printf(w->out, " applies %s", f->name);
    strbuf_add(w->out, " across dimensions = ");
    write_numbers(w->out, write_say(said, "dimensions", 10));
    write_rest(w, said, " {");
    write_function_type(w, op);
    if (f)
        return;
    new_line(w);
    strbuf_add(w->out, " reducer");
    struct mlir_value *const *args = op->regions[0].args;
    for (uint32_t i = 0; i < 2 * pairs; i++)
        name_argument(w, args[i]);
    for (uint32_t i = 0; i < pairs; i++) {
        strbuf_add(w->out, i ? " (" : "(");
        for (uint32_t k = 0; k < 2; k++) {
            strbuf_add(w->out, k ? ", " : "");
            write_typed(w, args[k * pairs + i]);
        }
        strbuf_add(w->out, ")");
    }
    strbuf_add(w->out, " ");
    write_block(w, &op->regions[0]);
}

// ---- any

static bool is_plain_constant(const struct mlir_op *op)
{
    const struct mlir_attr *a = mlir_attr_find(op, "value");
    return op->n_operands == 0 && op->n_regions == 0 && op->n_results == 1 && a &&
           a->kind == MLIR_DENSE && mlir_types_equal(a->type, op->results[0]->type);
}

// "name"(operands) <{...}> ({ ... }, { ... }) {...} : types
static void write_general(struct writer *w, struct write_said *said)
{
    const struct mlir_op *op = said->op;
    write_string(w->out, op->name, strlen(op->name));
    strbuf_add(w->out, "(");
    write_values(w, op->operands, op->n_operands);
    strbuf_add(w->out, ")");
    const struct structure *s = op->row ? structure_of(op->row) : NULL;
    bool has_structure = s && write_structure(w, said, s, " <{");
    bool has_entries = write_entries(w, said, has_structure ? ", " : " <{", true);
    strbuf_add(w->out, has_structure || has_entries ? "}>" : "");
    for (uint32_t i = 0; i < op->n_regions; i++) {
        strbuf_add(w->out, i ? ", " : " (");
        write_region(w, &op->regions[i]);
    }
    strbuf_add(w->out, op->n_regions ? ")" : "");
    write_rest(w, said, " {");
    write_function_type(w, op);
}

// In a function itself its dialect goes without saying.
static void write_name(struct writer *w, const struct mlir_op *op)
{
    bool is_short = w->indent == FUNCTION_INDENT && !strcmp(op->row->dialect, "func");
    strbuf_add(w->out, is_short ? op->row->name : op->name);
}

void write_op(struct writer *w, const struct mlir_op *op)
{
    struct write_said said = {.op = op};
    said.at = arena_array(w->out->arena, bool, op->n_attrs + 1);
    enum mlir_code code = op->row ? op->row->code : MLIR_N_CODES;
    bool is_constant = code == MLIR_OP_stablehlo_constant || code == MLIR_OP_chlo_constant;
    write_results(w, op);
    if (code == MLIR_OP_stablehlo_while && is_plain_while(op)) {
        strbuf_add(w->out, op->name);
        write_while(w, &said);
    } else if (code == MLIR_OP_stablehlo_reduce && is_plain_reduce(op)) {
        strbuf_add(w->out, op->name);
        write_reduce(w, &said);
    } else if (is_constant && is_plain_constant(op)) {
        const struct mlir_attr *value = write_say(&said, "value", 5);
        strbuf_add(w->out, op->name);
        write_rest(w, &said, " {");
        strbuf_add(w->out, " ");
        write_attr(w->out, op->row, "value", value);
    } else if (op->row && write_fits_form(op)) {
        write_name(w, op);
        write_form(w, &said);
        write_rest(w, &said, " {");
        write_form_types(w, op);
    } else {
        write_general(w, &said);
    }
}
