// SPDX-License-Identifier: Apache-2.0
// The text form of a graph and the functions it uses:
//
//     jot ir 1
//     function @0 twice(%0: f32[8]) {
//       %1 = add %0, %0 : f32[8]
//       return %1
//     }
//     function @1 main(%0: f32[8]) {
//       %1 = call %0 {functions=[@0]} : f32[8]  ; prog.c:8: jot_call(twice, x)
//       return %1
//     }
//
// Functions are numbered in the order of their first use, so the text does not depend on what
// else the module holds.  Everything after a semicolon is a comment: the places a node comes
// from.
#include "ir/graph.h"
#include "ir/literal.h"

enum { LISTED_ELEMENTS = 16 }; // a const with more prints its bytes

struct printer {
    struct strbuf *s;
    const struct ir_module *m;
    uint32_t *number; // in the text, of each function of the module
    VEC(uint32_t) order;
};

struct frame {
    const struct ir_graph *g;
    uint32_t function, node, at;
};

// Callees before callers, depth-first with a stack of our own.
static void order_functions(struct printer *p, const struct ir_graph *g)
{
    struct arena *arena = p->s->arena;
    VEC(struct frame) stack = {0};
    p->number = arena_array(arena, uint32_t, p->m->functions.count + 1);
    for (uint32_t i = 0; i < p->m->functions.count; i++)
        p->number[i] = IR_NONE;
    vec_push(arena, &stack, (struct frame){.g = g, .function = IR_NONE});
    while (stack.count) {
        struct frame *top = &vec_last(&stack);
        if (top->node == top->g->nodes.count) {
            if (top->function != IR_NONE) {
                p->number[top->function] = p->order.count;
                vec_push(arena, &p->order, top->function);
            }
            stack.count--;
            continue;
        }
        const struct ir_field *f =
            ir_field_find(top->g->nodes.at[top->node].attrs, IR_KEY_functions);
        if (!f || top->at == f->count) {
            top->node++;
            top->at = 0;
            continue;
        }
        uint32_t callee = (uint32_t)f->ints[top->at++];
        if (p->number[callee] == IR_NONE)
            vec_push(arena, &stack,
                     (struct frame){.g = ir_function(p->m, callee), .function = callee});
    }
}

static void print_text(struct strbuf *s, const char *text, size_t n)
{
    strbuf_add(s, "\"");
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            strbuf_printf(s, "\\%c", c);
        else if (c < 32 || c == 127)
            strbuf_printf(s, "\\x%02x", c);
        else
            strbuf_add_bytes(s, text + i, 1);
    }
    strbuf_add(s, "\"");
}

static void print_bytes(struct strbuf *s, const uint8_t *bytes, size_t n)
{
    static const char hex[] = "0123456789abcdef";
    strbuf_add(s, "0x");
    for (size_t i = 0; i < n; i++)
        strbuf_add_bytes(s, (char[]){hex[bytes[i] >> 4], hex[bytes[i] & 15]}, 2);
}

// The elements of a const, as the type after the colon will have them read.
static void print_data(struct printer *p, const struct ir_field *data, struct ir_type t)
{
    int64_t count = ir_count(p->m, t);
    int bytes = dtype_get(ir_dtype(t))->bytes;
    if (count > LISTED_ELEMENTS || count * bytes != (int64_t)data->count) {
        print_bytes(p->s, data->bytes, data->count);
        return;
    }
    strbuf_add(p->s, t.rank ? "[" : "");
    for (int64_t i = 0; i < count; i++) {
        strbuf_add(p->s, i ? ", " : "");
        literal_print(p->s, ir_dtype(t), (const uint8_t *)data->bytes + i * bytes);
    }
    strbuf_add(p->s, t.rank ? "]" : "");
}

static void print_ints(struct printer *p, const struct ir_field *f)
{
    enum ir_key_kind kind = ir_key_table[f->key].kind;
    strbuf_add(p->s, "[");
    for (uint32_t i = 0; i < f->count; i++) {
        strbuf_add(p->s, i ? ", " : "");
        if (kind == IR_KIND_FUNCTIONS)
            strbuf_printf(p->s, "@%u", p->number[f->ints[i]]);
        else if (kind == IR_KIND_AXES)
            ir_axis_print(p->s, p->m, (int)f->ints[i]);
        else
            strbuf_printf(p->s, "%lld", (long long)f->ints[i]);
    }
    strbuf_add(p->s, "]");
}

static void print_field(struct printer *p, const struct ir_field *f)
{
    switch (ir_key_table[f->key].kind) {
    case IR_KIND_INT:
        strbuf_printf(p->s, "%lld", (long long)f->ints[0]);
        break;
    case IR_KIND_INTS:
    case IR_KIND_FUNCTIONS:
    case IR_KIND_AXES:
        print_ints(p, f);
        break;
    case IR_KIND_DTYPE:
        strbuf_add(p->s, jot_dtype_name((jot_dtype)f->ints[0]));
        break;
    case IR_KIND_BYTES:
        print_bytes(p->s, f->bytes, f->count);
        break;
    case IR_KIND_TEXT:
        print_text(p->s, f->bytes, f->count);
        break;
    }
}

static void print_attrs(struct printer *p, const struct ir_graph *g, const struct ir_node *n)
{
    const char *before = " {";
    for (uint32_t i = 0; n->attrs && i < n->attrs->count; i++) {
        const struct ir_field *f = &n->attrs->fields[i];
        // The type of a const says the same.
        if (n->op == IR_const && (f->key == IR_KEY_dtype || f->key == IR_KEY_dims))
            continue;
        strbuf_printf(p->s, "%s%s=", before, ir_key_table[f->key].name);
        if (n->op == IR_const && f->key == IR_KEY_data)
            print_data(p, f, ir_type_of(g, n->out));
        else
            print_field(p, f);
        before = ", ";
    }
    strbuf_add(p->s, before[0] == ',' ? "}" : "");
}

static void print_places(struct printer *p, uint32_t where)
{
    const char *before = "  ; ";
    for (uint32_t w = where; w; w = p->m->wheres.at[w].next) {
        strbuf_add(p->s, before);
        for (const char *c = p->m->wheres.at[w].text; *c; c++)
            strbuf_add_bytes(p->s, *c == '\n' || *c == '\r' ? " " : c, 1);
        before = " + ";
    }
}

static void print_node(struct printer *p, const struct ir_graph *g, const struct ir_node *n)
{
    struct strbuf *s = p->s;
    strbuf_add(s, "  ");
    for (uint32_t i = 0; i < n->n_out; i++)
        strbuf_printf(s, i ? ", %%%u" : "%%%u", n->out + i);
    strbuf_printf(s, "%s%s", n->n_out ? " = " : "", ir_op_get(n->op)->name);
    for (uint32_t i = 0; i < n->n_in; i++)
        strbuf_printf(s, i ? ", %%%u" : " %%%u", ir_operand(g, n, i));
    print_attrs(p, g, n);
    for (uint32_t i = 0; i < n->n_out; i++) {
        strbuf_add(s, i ? ", " : " : ");
        ir_type_print(s, p->m, ir_type_of(g, n->out + i));
    }
    print_places(p, n->where);
    strbuf_add(s, "\n");
}

static bool is_word(const char *name)
{
    bool word =
        (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') || *name == '_';
    for (; *name && word; name++)
        word = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
               (*name >= '0' && *name <= '9') || *name == '_' || *name == '.';
    return word;
}

static void print_function(struct printer *p, const struct ir_graph *g, uint32_t number)
{
    struct strbuf *s = p->s;
    strbuf_printf(s, "function @%u", number);
    if (g->name) {
        strbuf_add(s, " ");
        if (is_word(g->name))
            strbuf_add(s, g->name);
        else
            print_text(s, g->name, strlen(g->name));
    }
    strbuf_add(s, "(");
    for (uint32_t i = 0; i < g->n_params; i++) {
        strbuf_printf(s, i ? ", %%%u: " : "%%%u: ", i);
        ir_type_print(s, p->m, ir_type_of(g, i));
    }
    strbuf_add(s, ") {\n");
    for (uint32_t i = g->n_params; i < g->nodes.count; i++)
        print_node(p, g, &g->nodes.at[i]);
    strbuf_add(s, "  return");
    for (uint32_t i = 0; i < g->outputs.count; i++)
        strbuf_printf(s, i ? ", %%%u" : " %%%u", g->outputs.at[i]);
    strbuf_add(s, "\n}\n");
}

void ir_graph_print(struct strbuf *s, const struct ir_graph *g)
{
    struct printer p = {.s = s, .m = g->module};
    order_functions(&p, g);
    strbuf_add(s, "jot ir 1\n");
    for (uint32_t i = 0; i < p.order.count; i++)
        print_function(&p, ir_function(p.m, p.order.at[i]), i);
    print_function(&p, g, p.order.count);
}
