// SPDX-License-Identifier: Apache-2.0
// The text form of scheduled programs.
//
//     jot nest 1
//     program f {
//       inputs 2
//       outputs 1 donated -1
//       arena 4096
//       constants 16
//       mesh 2 4                                         where every device of one runs it
//       memory input 0 : f32[128] "x"
//       memory constant at 0 : f32[4] = 0000803f000000400000404000008040
//       memory temporary at 128 : f32[256]
//       step kernel 0 (0, 1, 2) at "prog.c:3: jot_sum(x)" "reduces all axes"
//       step gemm f32 m 2 n 3 k 4 lda 4 ldb 3 ldc 3 batch 1 1 1 1 stride_a 0 0 0 0
//           stride_b 0 0 0 0 stride_c 0 0 0 0 (0, 1, 2)
//       step gemm f32 transpose_a precision 1 alpha 000000000000e0bf relu bias addend m ... (0, 1, 2, 5, 6)
//       step gemm i32 of i8 transpose_b m ... (7, 8, 9)
//       step copy (3, 1)
//       step collective "all_reduce" [0, 0, 11, 1, 0] (4, 3)
//       step collective "permute" [4, 0, 11, 1, 1, 0] (4[0:8], 3[24:32])    of 3 elements 24 to 31
//       step library "fft" [10, 0, 1, 64] in_place reads 1 (0, 1)
//       memory row of 3 in loop 0 reverse : f32[4]
//       memory turn of 5, 4 in loop 0 : f32[4]           5 in the first trip, 4 in the next, 5
//       step loop 0 trips 10 ()
//       step while 1 trips -1 ()
//       step test (7)
//       step branch (8)
//       step case ()
//       step end ()
//       step check "prog.c:3: x is negative" [0, 2, 3] (5)
//       step callback "measure" [0, 1, 1, 0, 10, 0, 9, 1, 3, 0, 0] (5, 6)
//     }
//     kernel ...
#include "nest/program.h"
#include "ir/cost.h"
#include "nest/lex.h"

static const char *const kind_names[] = {
    [NEST_INPUT] = "input",         [NEST_OUTPUT] = "output", [NEST_CONSTANT] = "constant",
    [NEST_TEMPORARY] = "temporary", [NEST_ROW] = "row",       [NEST_TURN] = "turn",
};

static const char *const step_names[] = {
    [NEST_STEP_KERNEL] = "kernel",
    [NEST_STEP_GEMM] = "gemm",
    [NEST_STEP_COPY] = "copy",
    [NEST_STEP_LOOP] = "loop",
    [NEST_STEP_WHILE] = "while",
    [NEST_STEP_TEST] = "test",
    [NEST_STEP_BRANCH] = "branch",
    [NEST_STEP_CASE] = "case",
    [NEST_STEP_CHECK] = "check",
    [NEST_STEP_END] = "end",
    [NEST_STEP_CALLBACK] = "callback",
    [NEST_STEP_LIBRARY] = "library",
    [NEST_STEP_COLLECTIVE] = "collective",
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

static const char *const activation_names[] = {
    [NEST_LINEAR] = "", [NEST_RELU] = " relu", [NEST_GELU] = " gelu"};

static int64_t *gemm_numbers(struct nest_gemm *g, const struct gemm_field *f)
{
    return (int64_t *)(void *)((char *)g + f->offset);
}

const char *nest_step_name(enum nest_step_kind kind) { return step_names[kind]; }

uint32_t nest_step_end(const struct nest_program *p, uint32_t i)
{
    uint32_t depth = 1;
    while (depth && ++i < p->steps.count) {
        depth += nest_step_opens(&p->steps.at[i]);
        depth -= p->steps.at[i].kind == NEST_STEP_END;
    }
    return i;
}

// Whether it is a step that no kernel does: it has a text and params.
static bool has_text(const struct nest_step *t)
{
    return t->kind == NEST_STEP_LIBRARY || t->kind == NEST_STEP_CHECK ||
           t->kind == NEST_STEP_CALLBACK || t->kind == NEST_STEP_COLLECTIVE;
}

uint32_t nest_loop_obstacle(const struct nest_program *p, uint32_t i)
{
    int depth = 0;
    for (uint32_t end = nest_step_end(p, i); i < end; i++) {
        depth += nest_step_opens(&p->steps.at[i]);
        depth -= p->steps.at[i].kind == NEST_STEP_END;
        if (has_text(&p->steps.at[i]) || depth > COST_STEP_DEPTH)
            return i;
    }
    return NEST_NONE;
}

bool nest_memory_shows(const struct nest_program *p, uint32_t m, uint32_t of)
{
    if (m == of)
        return true;
    const struct nest_memory *memory = &p->memories.at[m];
    for (uint32_t i = 0; nest_memory_is_view(memory) && i < memory->n_of; i++)
        if (nest_memory_shows(p, memory->of[i], of))
            return true;
    return false;
}

bool nest_memory_meets(const struct nest_program *p, uint32_t a, uint32_t b)
{
    const struct nest_memory *x = &p->memories.at[a], *y = &p->memories.at[b];
    if (x->kind == NEST_TURN && y->kind == NEST_TURN && x->loop == y->loop &&
        x->n_of == y->n_of) { // in the same trip
        bool is = false;
        for (uint32_t t = 0; t < x->n_of; t++)
            is |= nest_memory_meets(p, x->of[(x->index + t) % x->n_of],
                                    y->of[(y->index + t) % y->n_of]);
        return is;
    }
    for (uint32_t i = 0; nest_memory_is_view(x) && i < x->n_of; i++)
        if (nest_memory_meets(p, x->of[i], b))
            return true;
    for (uint32_t i = 0; nest_memory_is_view(y) && i < y->n_of; i++)
        if (nest_memory_meets(p, a, y->of[i]))
            return true;
    return a == b;
}

uint32_t nest_argument_of(const struct nest *n, nest_id buffer)
{
    uint32_t argument = 0;
    for (nest_id b = 0; b < buffer; b++)
        argument += n->buffers.at[b].role != NEST_LOCAL;
    return argument;
}

nest_id nest_buffer_of(const struct nest *n, uint32_t argument)
{
    for (nest_id b = 0;; b++)
        if (n->buffers.at[b].role != NEST_LOCAL && argument-- == 0)
            return b;
}

struct nest_range nest_step_range(const struct nest_program *p, const struct nest_step *t,
                                  uint32_t k)
{
    return t->ranges ? t->ranges[k]
                     : (struct nest_range){0, p->memories.at[t->memories[k]].count};
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

static void print_view(struct strbuf *s, const struct nest_memory *m)
{
    for (uint32_t i = 0; i < m->n_of; i++)
        strbuf_printf(s, "%s %u", i ? "," : " of", m->of[(m->index + i) % m->n_of]);
    strbuf_printf(s, " in loop %u%s", m->loop, m->reverse ? " reverse" : "");
}

static void print_memory(struct strbuf *s, const struct nest_memory *m)
{
    strbuf_printf(s, "  memory %s", kind_names[m->kind]);
    if (m->kind == NEST_INPUT || m->kind == NEST_OUTPUT)
        strbuf_printf(s, " %u", m->index);
    else if (nest_memory_is_view(m))
        print_view(s, m);
    else
        strbuf_printf(s, " at %llu", (unsigned long long)m->offset);
    strbuf_printf(s, " : %s[%lld]", dtype_get(m->dtype)->name, (long long)m->count);
    if (m->kind == NEST_CONSTANT && m->data) {
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
    strbuf_printf(s, " %s", dtype_get(g.dtype)->name);
    if (g.operands != g.dtype)
        strbuf_printf(s, " of %s", dtype_get(g.operands)->name);
    strbuf_printf(s, "%s%s", g.transpose_a ? " transpose_a" : "",
                  g.transpose_b ? " transpose_b" : "");
    if (g.is_symmetric)
        strbuf_add(s, " symmetric");
    if (g.precision)
        strbuf_printf(s, " precision %d", g.precision);
    if (g.alpha != 1) {
        strbuf_add(s, " alpha ");
        print_bytes(s, (const unsigned char *)&g.alpha, sizeof g.alpha);
    }
    strbuf_printf(s, "%s%s%s", activation_names[g.activation], g.has_bias ? " bias" : "",
                  g.has_addend ? " addend" : "");
    for (size_t i = 0; i < sizeof gemm_fields / sizeof *gemm_fields; i++) {
        strbuf_printf(s, " %s", gemm_fields[i].name);
        for (int j = 0; j < gemm_fields[i].count; j++)
            strbuf_printf(s, " %lld", (long long)gemm_numbers(&g, &gemm_fields[i])[j]);
    }
}

// The text and the params of a step that has them.
static void print_text(struct strbuf *s, const struct nest_step *t)
{
    strbuf_add(s, " ");
    print_string(s, t->text);
    strbuf_add(s, " [");
    for (uint32_t i = 0; i < t->n_params; i++)
        strbuf_printf(s, "%s%lld", i ? ", " : "", (long long)t->params[i]);
    strbuf_add(s, "]");
}

static void print_step(struct strbuf *s, const struct nest_step *t)
{
    strbuf_printf(s, "  step %s", step_names[t->kind]);
    if (t->kind == NEST_STEP_KERNEL)
        strbuf_printf(s, " %u", t->nest);
    if (t->kind == NEST_STEP_GEMM)
        print_gemm(s, t->gemm);
    if (nest_step_loops(t))
        strbuf_printf(s, " %u trips %lld", t->loop, (long long)t->trips);
    if (has_text(t))
        print_text(s, t);
    if (t->kind == NEST_STEP_LIBRARY)
        strbuf_printf(s, "%s reads %u", t->in_place ? " in_place" : "", t->n_reads);
    strbuf_add(s, " (");
    for (uint32_t i = 0; i < t->n_memories; i++) {
        strbuf_printf(s, "%s%u", i ? ", " : "", t->memories[i]);
        if (t->ranges)
            strbuf_printf(s, "[%lld:%lld]", (long long)t->ranges[i].first,
                          (long long)(t->ranges[i].first + t->ranges[i].count));
    }
    strbuf_add(s, ")");
    if (t->place) {
        strbuf_add(s, " at ");
        print_string(s, t->place);
    }
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
    for (uint32_t i = 0; i < p->mesh_rank; i++)
        strbuf_printf(s, "%s %lld%s", i ? "" : "  mesh", (long long)p->mesh[i],
                      i + 1 < p->mesh_rank ? "" : "\n");
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

static bool parse_view(struct lexer *l, struct nest_memory *m)
{
    VEC(uint32_t) of = {0};
    if (!lex_expect_keyword(l, "of"))
        return false;
    do {
        uint32_t i;
        if (!lex_u32(l, &i))
            return false;
        vec_push(l->arena, &of, i);
    } while (lex_char(l, ','));
    m->n_of = of.count;
    m->of = of.at;
    if (!lex_expect_keyword(l, "in") || !lex_expect_keyword(l, "loop") || !lex_u32(l, &m->loop))
        return false;
    m->reverse = lex_keyword(l, "reverse");
    return true;
}

static bool parse_memory(struct lexer *l, struct nest_program *p)
{
    struct nest_memory m = {0};
    int kind;
    if (!parse_choice(l, sizeof kind_names / sizeof *kind_names, kind_names, &kind))
        return false;
    m.kind = (enum nest_memory_kind)kind;
    if (kind == NEST_INPUT || kind == NEST_OUTPUT) {
        if (!lex_u32(l, &m.index))
            return false;
    } else if (nest_memory_is_view(&m)) {
        if (!parse_view(l, &m))
            return false;
    } else if (!lex_expect_keyword(l, "at") || !lex_unsigned(l, &m.offset)) {
        return false;
    }
    if (!lex_expect(l, ":") || !lex_dtype(l, &m.dtype) || !lex_expect(l, "[") ||
        !lex_signed(l, &m.count) || !lex_expect(l, "]"))
        return false;
    if (kind == NEST_CONSTANT && lex_char(l, '=') &&
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
    g->operands = g->dtype;
    if (lex_keyword(l, "of") && !lex_dtype(l, &g->operands))
        return false;
    g->transpose_a = lex_keyword(l, "transpose_a");
    g->transpose_b = lex_keyword(l, "transpose_b");
    g->is_symmetric = lex_keyword(l, "symmetric");
    g->alpha = 1;
    uint32_t precision = 0;
    const void *alpha;
    if (lex_keyword(l, "precision") && !lex_u32(l, &precision))
        return false;
    g->precision = (int)precision;
    if (lex_keyword(l, "alpha")) {
        if (!parse_bytes(l, 1, sizeof g->alpha, &alpha))
            return false;
        memcpy(&g->alpha, alpha, sizeof g->alpha);
    }
    g->activation = lex_keyword(l, "relu")   ? NEST_RELU
                    : lex_keyword(l, "gelu") ? NEST_GELU
                                             : NEST_LINEAR;
    g->has_bias = lex_keyword(l, "bias");
    g->has_addend = lex_keyword(l, "addend");
    for (size_t i = 0; i < sizeof gemm_fields / sizeof *gemm_fields; i++) {
        if (!lex_expect_keyword(l, gemm_fields[i].name))
            return false;
        for (int j = 0; j < gemm_fields[i].count; j++)
            if (!lex_signed(l, gemm_numbers(g, &gemm_fields[i]) + j))
                return false;
    }
    return true;
}

static bool parse_text(struct lexer *l, struct nest_step *t)
{
    VEC(int64_t) params = {0};
    if (!lex_string(l, &t->text) || !lex_expect(l, "["))
        return false;
    if (lex_peek(l) != ']')
        do {
            int64_t x;
            if (!lex_signed(l, &x))
                return false;
            vec_push(l->arena, &params, x);
        } while (lex_char(l, ','));
    t->n_params = params.count;
    t->params = params.at;
    return lex_expect(l, "]");
}

typedef VEC(struct nest_range) range_list;

// Of all memories of a step or of none.
static bool parse_range(struct lexer *l, uint32_t memories, range_list *ranges)
{
    struct nest_range r;
    int64_t end;
    bool has_range = lex_char(l, '[');
    if (has_range && (!lex_signed(l, &r.first) || !lex_expect(l, ":") || !lex_signed(l, &end) ||
                      !lex_expect(l, "]")))
        return false;
    if (has_range && __builtin_sub_overflow(end, r.first, &r.count))
        return lex_fail(l, "a range of too many elements");
    if (has_range)
        vec_push(l->arena, ranges, r);
    return ranges->count == 0 || ranges->count == memories ||
           lex_fail(l, "a range of one memory and not of another");
}

static bool parse_step(struct lexer *l, struct nest_program *p)
{
    struct nest_step t = {0};
    VEC(uint32_t) memories = {0};
    range_list ranges = {0};
    int kind;
    if (!parse_choice(l, sizeof step_names / sizeof *step_names, step_names, &kind))
        return false;
    t.kind = (enum nest_step_kind)kind;
    if (kind == NEST_STEP_KERNEL && !lex_u32(l, &t.nest))
        return false;
    if (kind == NEST_STEP_GEMM && !parse_gemm(l, &t.gemm))
        return false;
    if (nest_step_loops(&t)) {
        p->n_loops++;
        if (!lex_u32(l, &t.loop) || !lex_expect_keyword(l, "trips") || !lex_signed(l, &t.trips))
            return false;
    }
    if (has_text(&t) && !parse_text(l, &t))
        return false;
    if (kind == NEST_STEP_LIBRARY) {
        t.in_place = lex_keyword(l, "in_place");
        if (!lex_expect_keyword(l, "reads") || !lex_u32(l, &t.n_reads))
            return false;
    }
    if (!lex_expect(l, "("))
        return false;
    if (lex_peek(l) != ')')
        do {
            uint32_t m;
            if (!lex_u32(l, &m))
                return false;
            vec_push(l->arena, &memories, m);
            if (!parse_range(l, memories.count, &ranges))
                return false;
        } while (lex_char(l, ','));
    if (!lex_expect(l, ")") || (lex_keyword(l, "at") && !lex_string(l, &t.place)) ||
        (lex_peek(l) == '"' && !lex_string(l, &t.reason)))
        return false;
    t.n_memories = memories.count;
    t.memories = memories.at;
    t.ranges = ranges.at;
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

static bool parse_mesh(struct lexer *l, struct nest_program *p)
{
    if (!lex_keyword(l, "mesh"))
        return true;
    while (lex_is_digit(lex_peek(l))) {
        if (p->mesh_rank == COLLECTIVE_MESH_RANK)
            return lex_fail(l, "a mesh has at most %d axes", COLLECTIVE_MESH_RANK);
        if (!lex_signed(l, &p->mesh[p->mesh_rank++]))
            return false;
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
        !lex_unsigned(l, &p->constant_bytes) || !parse_mesh(l, p))
        return false;
    p->is_planned = true;
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
