// SPDX-License-Identifier: Apache-2.0
// The text form of scheduled programs, and what must hold of one.
//
//     jot nest 1
//     program f {
//       inputs 2
//       outputs 1 donated -1
//       arena 4096
//       constants 16
//       memory input 0 : f32[128] "x"
//       memory constant at 0 : f32[4] = 0000803f000000400000404000008040
//       memory temporary at 128 : f32[256]
//       step kernel 0 (0, 1, 2) "reduces all axes"
//       step gemm f32 m 2 n 3 k 4 lda 4 ldb 3 ldc 3 batch 1 1 1 1 stride_a 0 0 0 0
//           stride_b 0 0 0 0 stride_c 0 0 0 0 (0, 1, 2)
//       step copy (3, 1)
//     }
//     kernel ...
#include "passes/nest_lex.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const place_names[] = {
    [NEST_INPUT] = "input",
    [NEST_OUTPUT] = "output",
    [NEST_CONSTANT] = "constant",
    [NEST_TEMPORARY] = "temporary",
};

static const char *const step_names[] = {
    [NEST_STEP_KERNEL] = "kernel",
    [NEST_STEP_GEMM] = "gemm",
    [NEST_STEP_COPY] = "copy",
};

// The numbers of a gemm by name; groups of four are per batch axis.
struct gemm_field {
    const char *name;
    size_t offset;
    int count;
};

#define FIELD(name, count) {#name, offsetof(struct nest_gemm, name), count}
static const struct gemm_field gemm_fields[] = {
    FIELD(m, 1),   FIELD(n, 1),     FIELD(k, 1),        FIELD(lda, 1),      FIELD(ldb, 1),
    FIELD(ldc, 1), FIELD(batch, 4), FIELD(stride_a, 4), FIELD(stride_b, 4), FIELD(stride_c, 4),
};
#undef FIELD

static int64_t *gemm_numbers(struct nest_gemm *g, const struct gemm_field *f)
{
    return (int64_t *)(void *)((char *)g + f->offset);
}

// --- printing

static void print_string(struct strbuf *s, const char *text)
{
    strbuf_add(s, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c == '"' || *c == '\\')
            strbuf_printf(s, "\\%c", *c);
        else if (*c < ' ' || *c == 127)
            strbuf_printf(s, "\\x%02x", *c);
        else
            strbuf_add_bytes(s, c, 1);
    strbuf_add(s, "\"");
}

static void print_bytes(struct strbuf *s, const unsigned char *data, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    char chunk[512];
    for (size_t at = 0; at < n;) {
        size_t k = 0;
        for (; at < n && k < sizeof chunk; at++) {
            chunk[k++] = digits[data[at] >> 4];
            chunk[k++] = digits[data[at] & 15];
        }
        strbuf_add_bytes(s, chunk, k);
    }
}

static void print_memory(struct strbuf *s, const struct nest_memory *m)
{
    strbuf_printf(s, "  memory %s", place_names[m->place]);
    if (m->place == NEST_INPUT || m->place == NEST_OUTPUT)
        strbuf_printf(s, " %u", m->index);
    else
        strbuf_printf(s, " at %llu", (unsigned long long)m->offset);
    strbuf_printf(s, " : %s[%lld]", dtype_get(m->dtype)->name, (long long)m->count);
    if (m->place == NEST_CONSTANT && m->data) {
        strbuf_add(s, " = ");
        print_bytes(s, m->data, (size_t)m->count * dtype_get(m->dtype)->bytes);
    }
    if (m->name) {
        strbuf_add(s, " ");
        print_string(s, m->name);
    }
    strbuf_add(s, "\n");
}

static void print_gemm(struct strbuf *s, struct nest_gemm g)
{
    strbuf_printf(s, " %s%s%s", dtype_get(g.dtype)->name, g.transpose_a ? " transpose_a" : "",
                  g.transpose_b ? " transpose_b" : "");
    for (size_t i = 0; i < sizeof gemm_fields / sizeof *gemm_fields; i++) {
        strbuf_printf(s, " %s", gemm_fields[i].name);
        for (int j = 0; j < gemm_fields[i].count; j++)
            strbuf_printf(s, " %lld", (long long)gemm_numbers(&g, &gemm_fields[i])[j]);
    }
}

static void print_step(struct strbuf *s, const struct nest_step *t)
{
    strbuf_printf(s, "  step %s", step_names[t->kind]);
    if (t->kind == NEST_STEP_KERNEL)
        strbuf_printf(s, " %u", t->nest);
    if (t->kind == NEST_STEP_GEMM)
        print_gemm(s, t->gemm);
    strbuf_add(s, " (");
    for (uint32_t i = 0; i < t->n_memories; i++)
        strbuf_printf(s, "%s%u", i ? ", " : "", t->memories[i]);
    strbuf_add(s, ")");
    if (t->reason) {
        strbuf_add(s, " ");
        print_string(s, t->reason);
    }
    strbuf_add(s, "\n");
}

void nest_program_print(struct strbuf *s, const struct nest_program *p)
{
    strbuf_add(s, "jot nest 1\nprogram ");
    print_string(s, p->name ? p->name : "");
    strbuf_printf(s, " {\n  inputs %u\n  outputs %u", p->n_inputs, p->n_outputs);
    if (p->donated && p->n_outputs) {
        strbuf_add(s, " donated");
        for (uint32_t i = 0; i < p->n_outputs; i++)
            strbuf_printf(s, " %d", p->donated[i]);
    }
    strbuf_printf(s, "\n  arena %llu\n  constants %llu\n", (unsigned long long)p->arena_bytes,
                  (unsigned long long)p->constant_bytes);
    for (uint32_t i = 0; i < p->memories.count; i++)
        print_memory(s, &p->memories.at[i]);
    for (uint32_t i = 0; i < p->steps.count; i++)
        print_step(s, &p->steps.at[i]);
    strbuf_add(s, "}\n");
    for (uint32_t i = 0; i < p->nests.count; i++)
        nest_print(s, p->nests.at[i]);
}

// --- parsing

static bool parse_bytes(struct lexer *l, int64_t count, size_t size, const void **out)
{
    lex_skip(l);
    uint64_t room = (uint64_t)(l->end - l->at);
    if (count < 0 || (uint64_t)count > room / 2 / size)
        return lex_fail(l, "the constant has too few bytes");
    size_t n = (size_t)count * size;
    unsigned char *data = arena_allocate(l->arena, n ? n : 1);
    for (size_t i = 0; i < 2 * n; i++, l->at++) {
        char c = *l->at;
        int digit = lex_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return lex_fail(l, "the constant has too few bytes");
        data[i / 2] = (unsigned char)(data[i / 2] << 4 | digit);
    }
    if (lex_is_digit(*l->at) || lex_is_letter(*l->at))
        return lex_fail(l, "the constant has too many bytes");
    *out = data;
    return true;
}

static bool parse_choice(struct lexer *l, int n, const char *const *names, int *out)
{
    struct lex_word w;
    if (!lex_identifier(l, &w))
        return false;
    for (int i = 0; i < n; i++)
        if (lex_equal(w, names[i])) {
            *out = i;
            return true;
        }
    return lex_fail(l, "expected %s, ... or %s", names[0], names[n - 1]);
}

static bool parse_memory(struct lexer *l, struct nest_program *p)
{
    struct nest_memory m = {0};
    int place;
    if (!parse_choice(l, 4, place_names, &place))
        return false;
    m.place = (enum nest_place)place;
    if (place == NEST_INPUT || place == NEST_OUTPUT) {
        if (!lex_u32(l, &m.index))
            return false;
    } else if (!lex_expect_keyword(l, "at") || !lex_unsigned(l, &m.offset)) {
        return false;
    }
    if (!lex_expect(l, ":") || !lex_dtype(l, &m.dtype) || !lex_expect(l, "[") ||
        !lex_signed(l, &m.count) || !lex_expect(l, "]"))
        return false;
    if (place == NEST_CONSTANT && lex_char(l, '=') &&
        !parse_bytes(l, m.count, dtype_get(m.dtype)->bytes, &m.data))
        return false;
    if (lex_peek(l) == '"' && !lex_string(l, &m.name))
        return false;
    vec_push(l->arena, &p->memories, m);
    return true;
}

static bool parse_gemm(struct lexer *l, struct nest_gemm *g)
{
    if (!lex_dtype(l, &g->dtype))
        return false;
    g->transpose_a = lex_keyword(l, "transpose_a");
    g->transpose_b = lex_keyword(l, "transpose_b");
    for (size_t i = 0; i < sizeof gemm_fields / sizeof *gemm_fields; i++) {
        if (!lex_expect_keyword(l, gemm_fields[i].name))
            return false;
        for (int j = 0; j < gemm_fields[i].count; j++)
            if (!lex_signed(l, gemm_numbers(g, &gemm_fields[i]) + j))
                return false;
    }
    return true;
}

static bool parse_step(struct lexer *l, struct nest_program *p)
{
    struct nest_step t = {0};
    VEC(uint32_t) memories = {0};
    int kind;
    if (!parse_choice(l, 3, step_names, &kind))
        return false;
    t.kind = (enum nest_step_kind)kind;
    if (kind == NEST_STEP_KERNEL && !lex_u32(l, &t.nest))
        return false;
    if (kind == NEST_STEP_GEMM && !parse_gemm(l, &t.gemm))
        return false;
    if (!lex_expect(l, "("))
        return false;
    if (lex_peek(l) != ')')
        do {
            uint32_t m;
            if (!lex_u32(l, &m))
                return false;
            vec_push(l->arena, &memories, m);
        } while (lex_char(l, ','));
    if (!lex_expect(l, ")") || (lex_peek(l) == '"' && !lex_string(l, &t.reason)))
        return false;
    t.n_memories = memories.count;
    t.memories = memories.at;
    vec_push(l->arena, &p->steps, t);
    return true;
}

static bool parse_donated(struct lexer *l, struct nest_program *p)
{
    if (!lex_keyword(l, "donated"))
        return true;
    if (p->n_outputs > (uint64_t)(l->end - l->at))
        return lex_fail(l, "there are too few donated inputs");
    p->donated = arena_array(l->arena, int32_t, p->n_outputs + 1);
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        int64_t input;
        if (!lex_signed(l, &input))
            return false;
        if (input < -1 || input > INT32_MAX)
            return lex_fail(l, "a donated input is a number or -1");
        p->donated[i] = (int32_t)input;
    }
    return true;
}

static bool parse_program(struct lexer *l, struct nest_program *p)
{
    if (!lex_expect_keyword(l, "jot") || !lex_expect_keyword(l, "nest") ||
        !lex_expect(l, "1") || !lex_expect_keyword(l, "program") || !lex_string(l, &p->name) ||
        !lex_expect(l, "{") || !lex_expect_keyword(l, "inputs") || !lex_u32(l, &p->n_inputs) ||
        !lex_expect_keyword(l, "outputs") || !lex_u32(l, &p->n_outputs) ||
        !parse_donated(l, p) || !lex_expect_keyword(l, "arena") ||
        !lex_unsigned(l, &p->arena_bytes) || !lex_expect_keyword(l, "constants") ||
        !lex_unsigned(l, &p->constant_bytes))
        return false;
    while (lex_keyword(l, "memory"))
        if (!parse_memory(l, p))
            return false;
    while (lex_keyword(l, "step"))
        if (!parse_step(l, p))
            return false;
    if (!lex_expect(l, "}"))
        return false;
    while (lex_peek(l)) {
        struct nest *n;
        if (!nest_parse_kernel(l, &n))
            return false;
        vec_push(l->arena, &p->nests, n);
    }
    return true;
}

jot_status nest_program_parse(struct arena *arena, const char *text, struct nest_program **out)
{
    struct lexer l = lex_make(arena, text);
    struct nest_program *p = arena_new(arena, struct nest_program);
    p->arena = arena;
    if (!parse_program(&l, p))
        return l.status;
    *out = p;
    return JOT_OK;
}

// --- verifying

struct checker {
    const struct nest_program *p;
    struct strbuf *report;
    int faults;
};

__attribute__((format(printf, 2, 3))) static void fault(struct checker *c, const char *format,
                                                        ...)
{
    c->faults++;
    if (!c->report)
        return;
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    strbuf_add(c->report, line);
    strbuf_add(c->report, "\n");
}

static void check_memory(struct checker *c, uint32_t i)
{
    const struct nest_program *p = c->p;
    const struct nest_memory *m = &p->memories.at[i];
    if (!dtype_is_valid((int)m->dtype) || m->count < 0) {
        fault(c, "memory %u has no size", i);
        return;
    }
    uint64_t bytes = 0, end = 0;
    bool fits =
        !__builtin_mul_overflow((uint64_t)m->count, dtype_get(m->dtype)->bytes, &bytes) &&
        !__builtin_add_overflow(bytes, m->offset, &end);
    if (m->place == NEST_INPUT && m->index >= p->n_inputs)
        fault(c, "memory %u is input %u of %u", i, m->index, p->n_inputs);
    if (m->place == NEST_OUTPUT && m->index >= p->n_outputs)
        fault(c, "memory %u is output %u of %u", i, m->index, p->n_outputs);
    if (m->place == NEST_CONSTANT && m->count && !m->data)
        fault(c, "constant memory %u has no bytes", i);
    if (m->place == NEST_CONSTANT && (!fits || end > p->constant_bytes))
        fault(c, "memory %u ends outside the constants of %llu bytes", i,
              (unsigned long long)p->constant_bytes);
    if (m->place == NEST_TEMPORARY && (!fits || end > p->arena_bytes))
        fault(c, "memory %u ends outside the arena of %llu bytes", i,
              (unsigned long long)p->arena_bytes);
}

static bool is_read_only(const struct nest_memory *m)
{
    return m->place == NEST_INPUT || m->place == NEST_CONSTANT;
}

static void check_kernel(struct checker *c, uint32_t i)
{
    const struct nest_program *p = c->p;
    const struct nest_step *t = &p->steps.at[i];
    if (t->nest >= p->nests.count) {
        fault(c, "step %u runs kernel %u of %u", i, t->nest, p->nests.count);
        return;
    }
    const struct nest *n = p->nests.at[t->nest];
    uint32_t k = 0;
    for (uint32_t j = 0; j < n->buffers.count; j++) {
        const struct nest_buffer *b = &n->buffers.at[j];
        if (b->role == NEST_LOCAL || k++ >= t->n_memories)
            continue;
        const struct nest_memory *m = &p->memories.at[t->memories[k - 1]];
        if (m->dtype != b->dtype || m->count < b->count)
            fault(c, "step %u: memory %u of %lld %s is buffer %s of %lld %s", i,
                  t->memories[k - 1], (long long)m->count, dtype_get(m->dtype)->name, b->name,
                  (long long)b->count, dtype_get(b->dtype)->name);
        if (b->role != NEST_IN && is_read_only(m))
            fault(c, "step %u writes memory %u, an %s", i, t->memories[k - 1],
                  place_names[m->place]);
    }
    if (k != t->n_memories)
        fault(c, "step %u has %u memories for %u buffers", i, t->n_memories, k);
}

// Whether a matrix of the rows and columns, repeated by batch, is inside count elements.
static bool matrix_fits(const struct nest_gemm *g, const int64_t stride[4], int64_t rows,
                        int64_t columns, int64_t ld, int64_t count)
{
    if (rows <= 0 || columns <= 0)
        return true;
    int64_t last, step;
    if (ld < columns || __builtin_mul_overflow(rows - 1, ld, &last) ||
        __builtin_add_overflow(last, columns - 1, &last))
        return false;
    for (int i = 0; i < 4; i++) {
        if (g->batch[i] <= 0)
            return true;
        if (stride[i] < 0 || __builtin_mul_overflow(g->batch[i] - 1, stride[i], &step) ||
            __builtin_add_overflow(last, step, &last))
            return false;
    }
    return last < count;
}

static void check_gemm(struct checker *c, uint32_t i)
{
    const struct nest_step *t = &c->p->steps.at[i];
    const struct nest_gemm *g = &t->gemm;
    if (t->n_memories != 3) {
        fault(c, "step %u: a gemm has 3 memories, not %u", i, t->n_memories);
        return;
    }
    const int64_t *strides[] = {g->stride_a, g->stride_b, g->stride_c};
    const int64_t rows[] = {g->transpose_a ? g->k : g->m, g->transpose_b ? g->n : g->k, g->m};
    const int64_t columns[] = {g->transpose_a ? g->m : g->k, g->transpose_b ? g->k : g->n,
                               g->n};
    const int64_t ld[] = {g->lda, g->ldb, g->ldc};
    for (int j = 0; j < 3; j++) {
        const struct nest_memory *m = &c->p->memories.at[t->memories[j]];
        if (m->dtype != g->dtype)
            fault(c, "step %u: a gemm of %s with memory %u of %s", i, dtype_get(g->dtype)->name,
                  t->memories[j], dtype_get(m->dtype)->name);
        if (!matrix_fits(g, strides[j], rows[j], columns[j], ld[j], m->count))
            fault(c, "step %u: matrix %c is not inside memory %u", i, "abc"[j],
                  t -> memories[j]);
    }
    if (is_read_only(&c->p->memories.at[t->memories[2]]))
        fault(c, "step %u writes memory %u, which is only read", i, t->memories[2]);
}

static void check_copy(struct checker *c, uint32_t i)
{
    const struct nest_step *t = &c->p->steps.at[i];
    if (t->n_memories != 2) {
        fault(c, "step %u: a copy has 2 memories, not %u", i, t->n_memories);
        return;
    }
    const struct nest_memory *to = &c->p->memories.at[t->memories[0]];
    const struct nest_memory *from = &c->p->memories.at[t->memories[1]];
    if (to->dtype != from->dtype || to->count != from->count)
        fault(c, "step %u copies %lld %s to %lld %s", i, (long long)from->count,
              dtype_get(from->dtype)->name, (long long)to->count, dtype_get(to->dtype)->name);
    if (is_read_only(to))
        fault(c, "step %u writes memory %u, which is only read", i, t->memories[0]);
}

static void check_step(struct checker *c, uint32_t i)
{
    const struct nest_step *t = &c->p->steps.at[i];
    for (uint32_t j = 0; j < t->n_memories; j++)
        if (t->memories[j] >= c->p->memories.count) {
            fault(c, "step %u uses memory %u of %u", i, t->memories[j], c->p->memories.count);
            return;
        }
    if (t->kind == NEST_STEP_KERNEL)
        check_kernel(c, i);
    else if (t->kind == NEST_STEP_GEMM)
        check_gemm(c, i);
    else
        check_copy(c, i);
}

int nest_program_verify(const struct nest_program *p, struct strbuf *report)
{
    struct checker c = {.p = p, .report = report};
    for (uint32_t i = 0; i < p->nests.count; i++)
        c.faults += nest_verify(p->nests.at[i], report);
    for (uint32_t i = 0; i < p->memories.count; i++)
        check_memory(&c, i);
    if (c.faults)
        return c.faults;
    for (uint32_t i = 0; i < p->steps.count; i++)
        check_step(&c, i);
    for (uint32_t i = 0; p->donated && i < p->n_outputs; i++)
        if (p->donated[i] >= 0 && (uint32_t)p->donated[i] >= p->n_inputs)
            fault(&c, "output %u takes the memory of input %d of %u", i, p->donated[i],
                  p->n_inputs);
    return c.faults;
}
