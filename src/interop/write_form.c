// SPDX-License-Identifier: Apache-2.0
// The forms of text_forms.def as text.
#include "interop/text_forms.h"
#include "interop/write_text.h"

#include <string.h>

// ---- parts with code of their own

static void write_ranges(struct writer *w, struct write_said *said)
{
    const struct mlir_attr *start = write_say(said, "start_indices", 13);
    const struct mlir_attr *limit = write_say(said, "limit_indices", 13);
    const struct mlir_attr *stride = write_say(said, "strides", 7);
    strbuf_add(w->out, "[");
    for (size_t i = 0; i < start->n; i++) {
        strbuf_printf(w->out, i ? ", %lld:%lld" : "%lld:%lld", (long long)start->numbers[i],
                      (long long)limit->numbers[i]);
        if (stride && stride->numbers[i] != 1)
            strbuf_printf(w->out, ":%lld", (long long)stride->numbers[i]);
    }
    strbuf_add(w->out, "]");
}

static void write_algorithm(struct writer *w, struct write_said *said)
{
    static const char *const names[] = {
        "lhs_precision_type",          "rhs_precision_type",  "accumulation_type",
        "lhs_component_count",         "rhs_component_count", "num_primitive_operations",
        "allow_imprecise_accumulation"};
    strbuf_add(w->out, "<");
    bool is_open = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct mlir_attr *a = write_say(said, names[i], strlen(names[i]));
        if (!a)
            continue;
        strbuf_printf(w->out, is_open ? ", %s = " : "%s = ", names[i]);
        write_in_form(w->out, a->kind == MLIR_INT ? 'i' : 'x', a);
        is_open = true;
    }
    strbuf_add(w->out, ">");
}

static void write_pairs(struct writer *w, const struct mlir_attr *a)
{
    strbuf_add(w->out, "[");
    for (size_t i = 0; i + 1 < a->n; i += 2)
        strbuf_printf(w->out, i ? ", [%lld, %lld]" : "[%lld, %lld]", (long long)a->numbers[i],
                      (long long)a->numbers[i + 1]);
    strbuf_add(w->out, "]");
}

static void write_bools(struct writer *w, const struct mlir_attr *a)
{
    strbuf_add(w->out, "[");
    for (size_t i = 0; i < a->n; i++) {
        strbuf_add(w->out, i ? ", " : "");
        strbuf_add(w->out, a->numbers[i] ? "true" : "false");
    }
    strbuf_add(w->out, "]");
}

static void write_window(struct writer *w, struct write_said *said)
{
    bool is_open = false;
    for (int i = 0; i < FORM_WINDOWS; i++) {
        const struct mlir_attr *a =
            write_say(said, form_windows[i].name, strlen(form_windows[i].name));
        if (!a)
            continue;
        strbuf_printf(w->out, is_open ? ", %s = " : "%s = ", form_windows[i].word);
        is_open = true;
        if (!strcmp(form_windows[i].word, "pad"))
            write_pairs(w, a);
        else if (!strcmp(form_windows[i].word, "reverse"))
            write_bools(w, a);
        else
            write_numbers(w->out, a);
    }
}

static void write_format(struct writer *w, struct write_said *said)
{
    const struct mlir_attr *exponent = write_say(said, "exponent_bits", 13);
    const struct mlir_attr *mantissa = write_say(said, "mantissa_bits", 13);
    strbuf_printf(w->out, "e%lldm%lld", (long long)exponent->integer,
                  (long long)mantissa->integer);
}

static const char *const axes[3][3] = {
    {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"},
    {"kernel_input_feature_dimension", "kernel_output_feature_dimension",
     "kernel_spatial_dimensions"},
    {"output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"}};

// [b, f, 0, 1]x[i, o, 0, 1]->[b, f, 0, 1]
static void write_axes(struct writer *w, struct write_said *said)
{
    for (int i = 0; i < 3; i++) {
        int64_t one = write_say(said, axes[i][0], strlen(axes[i][0]))->integer;
        int64_t two = write_say(said, axes[i][1], strlen(axes[i][1]))->integer;
        const struct mlir_attr *spatial = write_say(said, axes[i][2], strlen(axes[i][2]));
        strbuf_add(w->out, i == 0 ? "[" : i == 1 ? "x[" : "->[");
        for (int64_t k = 0; k < (int64_t)spatial->n + 2; k++) {
            size_t axis = 0;
            while (axis < spatial->n && spatial->numbers[axis] != k)
                axis++;
            strbuf_add(w->out, k ? ", " : "");
            if (k == one || k == two)
                strbuf_add(w->out, i == 1 ? k == one ? "i" : "o" : k == one ? "b" : "f");
            else
                strbuf_printf(w->out, "%zu", axis);
        }
        strbuf_add(w->out, "]");
    }
}

static void write_sharding(struct writer *w, struct write_said *said)
{
    strbuf_add(w->out, strchr(write_say(said, "sharding", 8)->text, '<'));
}

// ---- what these take

static bool has_int(const struct mlir_op *op, const char *name)
{
    const struct mlir_attr *a = mlir_attr_find(op, name);
    return a && a->kind == MLIR_INT;
}

static bool fits_ranges(const struct mlir_op *op)
{
    size_t starts, limits, strides;
    mlir_ints(op, "start_indices", &starts);
    mlir_ints(op, "limit_indices", &limits);
    mlir_ints(op, "strides", &strides);
    return mlir_attr_find(op, "start_indices") && starts == limits &&
           (strides == starts || !mlir_attr_find(op, "strides"));
}

static bool fits_format(const struct mlir_op *op)
{
    return has_int(op, "exponent_bits") && has_int(op, "mantissa_bits") &&
           (uint64_t)mlir_int(op, "exponent_bits", 0) < 1000 &&
           (uint64_t)mlir_int(op, "mantissa_bits", 0) < 1000;
}

static bool fits_algorithm(const struct mlir_op *op)
{
    return mlir_attr_find(op, "lhs_precision_type") != NULL;
}

// Each axis is one of the letters or spatial, once.
static bool fits_axes(const struct mlir_op *op)
{
    for (int i = 0; i < 3; i++) {
        size_t n;
        const int64_t *spatial = mlir_ints(op, axes[i][2], &n);
        int64_t one = mlir_int(op, axes[i][0], -1), two = mlir_int(op, axes[i][1], -1);
        if (!mlir_attr_find(op, axes[i][2]) || !has_int(op, axes[i][0]) ||
            !has_int(op, axes[i][1]) || one == two || n > MLIR_MAX_DEPTH)
            return false;
        for (int64_t k = 0; k < (int64_t)n + 2; k++) {
            int count = (k == one) + (k == two);
            for (size_t p = 0; p < n; p++)
                count += spatial[p] == k;
            if (count != 1)
                return false;
        }
    }
    return true;
}

static bool fits_window(const struct mlir_op *op)
{
    size_t n;
    mlir_ints(op, "padding", &n);
    return n % 2 == 0;
}

static bool fits_sharding(const struct mlir_op *op)
{
    const struct mlir_attr *a = mlir_attr_find(op, "sharding");
    return a && a->kind == MLIR_OPAQUE && !strncmp(a->text, "#sdy.sharding<", 14);
}

// It is written in the general form.
static bool fits_manual(const struct mlir_op *op)
{
    (void)op;
    return false;
}

static const struct part {
    const char *name;
    bool (*fits)(const struct mlir_op *op);
    void (*write)(struct writer *w, struct write_said *said);
} parts[] = {
    {"ranges", fits_ranges, write_ranges},
    {"format", fits_format, write_format},
    {"algorithm", fits_algorithm, write_algorithm},
    {"axes", fits_axes, write_axes},
    {"window", fits_window, write_window},
    {"sharding", fits_sharding, write_sharding},
    {"manual", fits_manual, NULL},
};

static const struct part *part_of(const char *name, size_t n)
{
    const struct part *p = parts;
    while (strncmp(p->name, name, n) != 0 || p->name[n])
        p++;
    return p;
}

// ---- forms

static size_t name_length(const char *form)
{
    return strspn(form, "abcdefghijklmnopqrstuvwxyz_");
}

static const struct mlir_attr *find_attr(const struct mlir_op *op, const char *name, size_t n)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (!strncmp(op->attrs[i].name, name, n) && !op->attrs[i].name[n])
            return op->attrs[i].attr;
    return NULL;
}

// Whether what stands in ?< > is written: there is its first attribute, and it is no empty list.
static bool has_group(const struct mlir_op *op, const char *form)
{
    const char *name = form + strcspn(form, "$!") + 1;
    size_t n = name_length(name);
    if (name[-1] == '!')
        return part_of(name, n)->fits(op);
    const struct mlir_attr *a = find_attr(op, name, n);
    return a && !((a->kind == MLIR_INTS || a->kind == MLIR_ARRAY) && a->n == 0);
}

static bool is_list_of_words(const struct mlir_attr *a)
{
    for (size_t i = 0; a->kind == MLIR_ARRAY && i < a->n; i++)
        if (a->parts[i]->kind != MLIR_ENUM)
            return false;
    return a->kind == MLIR_ARRAY;
}

static bool fits_letter(char letter, const struct mlir_attr *a)
{
    switch (letter) {
    case 'I':
        return !a || a->kind == MLIR_INTS;
    case 'i':
        return a && a->kind == MLIR_INT;
    case 'b':
        return a && a->kind == MLIR_BOOL;
    case 'e':
        return a && a->kind == MLIR_ENUM;
    case 's':
        return a && a->kind == MLIR_STRING;
    case 'y':
        return a && a->kind == MLIR_SYMBOL;
    case 'd':
        return a && a->kind == MLIR_DENSE;
    case 'f':
        return a && a->kind == MLIR_REAL;
    default:
        return a && is_list_of_words(a);
    }
}

// What can be a symbol.
static bool is_name(const struct mlir_attr *a)
{
    return *a->text && (a->kind == MLIR_SYMBOL || strlen(a->text) == a->n);
}

static bool fits_types(const struct mlir_op *op)
{
    uint32_t n = op->n_results;
    switch (form_types(op->row)) {
    case FORM_TYPE:
        return n == 1;
    case FORM_TYPES:
        for (uint32_t i = 0; n == op->n_operands && i < n; i++)
            if (!mlir_types_equal(op->operands[i]->type, op->results[i]->type))
                return false;
        return op->row->code == MLIR_OP_stablehlo_optimization_barrier
                   ? n && n == op->n_operands
                   : n == 0;
    case FORM_CHOICE:
        return n == 1 && op->n_operands == 3 &&
               mlir_types_equal(op->operands[1]->type, op->results[0]->type) &&
               mlir_types_equal(op->operands[2]->type, op->results[0]->type);
    case FORM_ARROW:
    case FORM_CAST:
        return n && op->n_operands;
    case FORM_NONE:
        return n == 0;
    default:
        return true;
    }
}

bool write_fits_form(const struct mlir_op *op)
{
    const char *form = form_of(op->row);
    uint32_t operands = 0;
    bool takes_rest = false;
    if (!form || op->n_regions || !fits_types(op))
        return false;
    while (*form) {
        char c = *form++;
        size_t n = name_length(form);
        if (c == '?' && !has_group(op, form))
            form = strchr(form, '>');
        else if (c == '%' && *form == '*')
            takes_rest = true;
        else if (c == '%')
            operands++;
        else if (c == '!' && !part_of(form, n)->fits(op))
            return false;
        else if ((c == '$' || c == '@') &&
                 !fits_letter(form_letter(op->row, form, n), find_attr(op, form, n)))
            return false;
        else if (c == '@' && !is_name(find_attr(op, form, n)))
            return false;
    }
    return takes_rest ? op->n_operands >= operands : op->n_operands == operands;
}

void write_form(struct writer *w, struct write_said *said)
{
    const struct mlir_op *op = said->op;
    const char *form = form_of(op->row);
    uint32_t next = 0;
    // A bracket follows the name at once.
    if (*form && *form != '(' && !(*form == '%' && op->n_operands == 0))
        strbuf_add(w->out, " ");
    while (*form) {
        char c = *form++;
        size_t n = name_length(form);
        if (c == '?') {
            bool has = has_group(op, form);
            // What is empty is said by nothing.
            for (const char *at = form; !has && *at != '>'; at++)
                if (*at == '$')
                    write_say(said, at + 1, name_length(at + 1));
            form = has ? form + 1 : strchr(form, '>') + 1;
        } else if (c == '%') {
            uint32_t last = *form == '*' ? op->n_operands : next + 1;
            for (bool is_first = true; next < last; next++, is_first = false) {
                strbuf_add(w->out, is_first ? "" : ", ");
                write_value(w, op->operands[next]);
            }
            form += *form == '*';
        } else if (c == '!') {
            part_of(form, n)->write(w, said);
            form += n;
        } else if (c == '$') {
            write_in_form(w->out, form_letter(op->row, form, n), write_say(said, form, n));
            form += n;
        } else if (c == '@') {
            write_symbol(w->out, write_say(said, form, n)->text);
            form += n;
        } else if (c != '>') {
            strbuf_add_bytes(w->out, &c, 1);
        }
    }
}
