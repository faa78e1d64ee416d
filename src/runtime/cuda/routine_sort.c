// SPDX-License-Identifier: Apache-2.0
// The routines sort and top_k, by the kernels of sort_kernels.inc.
//
// One row of numbers alone is sorted as it is.  A few of the greatest numbers of up to 32 bits are chosen: of parts of
// each row, then of what these give.  Otherwise what is sorted are indices: by the row, then by
// the parts of each key, as many at once as fit 64 bits, the last ones first; results are gathered.
#include "runtime/cuda/kernels.h"
#include "runtime/cuda/routine.h"
#include "runtime/cuda/sort_kernels.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>

#define KERNELS(...) #__VA_ARGS__ "\n",
static const char *const source[] = {
#include "runtime/cuda/sort_kernels.inc"
    NULL};
static const char *const numbers = SORT_WORDS(KERNELS_WORD);
#define NUMBER(word, value) word = (int)(value),
enum { SORT_WORDS(NUMBER) };
#undef NUMBER

#define ELEMENTS_MOST (1 << 30) // as far as counts of digits go
#define OPERANDS_MOST (RT_ROUTINE_MOST / 2)
#define PARTS_MOST (1 + 2 * OPERANDS_MOST)

// Elements of an operand, or one part of them, or the numbers of rows.
struct part {
    int operand; // -1: the row
    int bits, size, step;
    uint64_t offset, infinite;
    bool is_signed;
};

// Of one row of numbers, and of indices.
enum { COUNT, PASS, RESTORE, ROWS = RESTORE, PART, GATHER, KERNEL_COUNT };
static const char names_alone[] = "sort_count sort_pass sort_restore";
static const char names_choice[] = "sort_top";
static const char names_indices[] = "sort_count sort_pass sort_rows sort_part sort_gather";

struct sort {
    struct cuda_routine base;
    CUfunction kernels[KERNEL_COUNT];
    int64_t rows, length, count, tiles;
    int64_t k;           // of a choice
    int key_bytes, kind; // kind: of elements that are keys, or 0
    bool is_alone, is_turned, is_choice;
    int n_parts;
    struct part parts[PARTS_MOST];
    size_t state, told, keys[2], tags[2]; // in the workspace
};

// ---- Passes

struct buffers {
    uint64_t from, to, tags_from, tags_to;
};

static jot_status clear_state(struct cuda_device *d, const struct sort *s, int passes,
                              char *workspace)
{
    size_t bytes = s->told - s->state;
    bytes += (size_t)passes * (size_t)s->tiles * SORT_DIGITS * sizeof(uint32_t);
    return cuda_clear(&d->base, workspace + s->state, bytes);
}

static jot_status count_digits(struct cuda_device *d, const struct sort *s, uint64_t from,
                               int kind, int passes, char *workspace)
{
    uint64_t blocks = ((uint64_t)s->count + 2047) / 2048, most = (uint64_t)d->sm_count * 4;
    JOT_TRY(clear_state(d, s, passes, workspace));
    return cuda_start(
        d, &(struct cuda_start){s->kernels[COUNT],
                                blocks < most ? blocks : most,
                                256,
                                {from, cuda_address(workspace + s->state), (uint64_t)s->count,
                                 (uint64_t)kind, (uint64_t)passes}});
}

static jot_status sort_digit(struct cuda_device *d, const struct sort *s,
                             const struct buffers *b, int pass, int first_kind, int last_kind,
                             char *workspace)
{
    char *told =
        workspace + s->told + (size_t)pass * (size_t)s->tiles * SORT_DIGITS * sizeof(uint32_t);
    return cuda_start(
        d, &(struct cuda_start){s->kernels[PASS],
                                (uint64_t)s->tiles,
                                SORT_THREADS,
                                {b->from, b->to, b->tags_from, b->tags_to,
                                 cuda_address(workspace + s->state), cuda_address(told),
                                 (uint64_t)s->count, (uint64_t)pass, (uint64_t)first_kind,
                                 (uint64_t)last_kind}});
}

// ---- One row of numbers

static jot_status run_alone(struct cuda_device *d, const struct cuda_routine *r,
                            void *const *operands, char *workspace)
{
    const struct sort *s = (const struct sort *)r;
    int passes = s->key_bytes;
    uint64_t in = cuda_address(operands[0]), out = cuda_address(operands[1]),
             spare = cuda_address(workspace + s->keys[0]);
    JOT_TRY(count_digits(d, s, in, s->kind, passes, workspace));
    struct buffers b = {.from = in};
    for (int pass = 0; pass < passes; pass++) {
        bool is_last = pass == passes - 1;
        b.to = (passes - 1 - pass) % 2 ? spare : out;
        JOT_TRY(
            sort_digit(d, s, &b, pass, pass ? 0 : s->kind, is_last ? s->kind : 0, workspace));
        b.from = b.to;
    }
    if (s->kind < 2)
        return JOT_OK;
    return cuda_start(d, &(struct cuda_start){s->kernels[RESTORE],
                                              1,
                                              1024,
                                              {in, out, cuda_address(workspace + s->state),
                                               (uint64_t)s->count}});
}

// ---- Indices

// The part is the first one, or what is there moves up.
static jot_status add_part(struct cuda_device *d, const struct sort *s, const struct part *p,
                           bool is_first, uint64_t keys, uint64_t indices,
                           void *const *operands)
{
    struct cuda_start start = {s->kernels[ROWS],
                               cuda_blocks(d, s->count),
                               256,
                               {keys, indices, (uint64_t)s->count, (uint64_t)s->length}};
    if (p->operand >= 0)
        start = (struct cuda_start){s->kernels[PART],
                                    start.blocks,
                                    256,
                                    {keys, cuda_address(operands[p->operand]) + p->offset,
                                     indices, (uint64_t)s->count, (uint64_t)p->size,
                                     (uint64_t)p->step, p->is_signed, p->infinite, s->is_turned,
                                     is_first ? 0 : (uint64_t)p->bits}};
    return cuda_start(d, &start);
}

// Sorts indices by parts first, ..., end - 1; which buffers of keys and indices are in use changes.
static jot_status sort_by(struct cuda_device *d, const struct sort *s, int first, int end,
                          uint64_t *indices, void *const *operands, char *workspace)
{
    uint64_t keys[2], tags[2];
    int bits = 0, now = 0;
    for (int i = 0; i < 2; i++) {
        keys[i] = cuda_address(workspace + s->keys[i]);
        tags[i] = cuda_address(workspace + s->tags[i]);
    }
    for (int i = first; i < end; i++) {
        JOT_TRY(add_part(d, s, &s->parts[i], i == first, keys[0], *indices, operands));
        bits += s->parts[i].bits;
    }
    int passes = (bits + 7) / 8;
    JOT_TRY(count_digits(d, s, keys[0], 0, passes, workspace));
    for (int pass = 0; pass < passes; pass++, now = !now) {
        struct buffers b = {keys[now], keys[!now], *indices, tags[*indices == tags[0]]};
        JOT_TRY(sort_digit(d, s, &b, pass, 0, 0, workspace));
        *indices = b.tags_to;
    }
    return JOT_OK;
}

static jot_status sort_indices(struct cuda_device *d, const struct sort *s,
                               void *const *operands, char *workspace, uint64_t *indices)
{
    *indices = 0;
    for (int end = s->n_parts, first; end > 0; end = first) {
        int bits = s->parts[end - 1].bits;
        for (first = end - 1; first > 0 && bits + s->parts[first - 1].bits <= 64; first--)
            bits += s->parts[first - 1].bits;
        JOT_TRY(sort_by(d, s, first, end, indices, operands, workspace));
    }
    return JOT_OK;
}

// The first k of each row; without `from` where they were.
static jot_status gather_rows(struct cuda_device *d, const struct sort *s, const void *from,
                              void *to, uint64_t indices, int64_t k, int size)
{
    int64_t count = s->rows * k;
    return cuda_start(d,
                      &(struct cuda_start){s->kernels[GATHER],
                                           cuda_blocks(d, count),
                                           256,
                                           {cuda_address(from), cuda_address(to), indices,
                                            (uint64_t)count, (uint64_t)k, (uint64_t)s->length,
                                            (uint64_t)size, (uint64_t)(size / 8)}});
}

static jot_status run_sort(struct cuda_device *d, const struct cuda_routine *r,
                           void *const *operands, char *workspace)
{
    const struct sort *s = (const struct sort *)r;
    uint32_t n = r->call.read_count;
    uint64_t indices;
    JOT_TRY(sort_indices(d, s, operands, workspace, &indices));
    for (uint32_t i = 0; i < n; i++)
        JOT_TRY(gather_rows(d, s, operands[i], operands[n + i], indices, s->length,
                            (int)dtype_get((jot_dtype)r->call.params[4 + i])->bytes));
    return JOT_OK;
}

static jot_status run_top_k(struct cuda_device *d, const struct cuda_routine *r,
                            void *const *operands, char *workspace)
{
    const struct sort *s = (const struct sort *)r;
    const int64_t *p = r->call.params;
    uint64_t indices;
    JOT_TRY(sort_indices(d, s, operands, workspace, &indices));
    JOT_TRY(gather_rows(d, s, operands[0], operands[1], indices, p[3],
                        (int)dtype_get((jot_dtype)p[0])->bytes));
    return gather_rows(d, s, NULL, operands[2], indices, p[3],
                       (int)dtype_get((jot_dtype)p[4])->bytes);
}

// ---- Choice

static bool is_chosen(jot_dtype d, int64_t k)
{
    return !dtype_is_complex(d) && dtype_get(d)->bytes <= 4 && k <= SORT_MOST_CHOSEN;
}

static int64_t chosen_of(int64_t length, int64_t k)
{
    return (length + SORT_CHOICE - 1) / SORT_CHOICE * k;
}

static jot_status run_choice(struct cuda_device *d, const struct cuda_routine *r,
                             void *const *operands, char *workspace)
{
    const struct sort *s = (const struct sort *)r;
    const struct part *p = &s->parts[s->n_parts - 1];
    int64_t length = s->length, k = s->k;
    uint64_t given = 0, size = dtype_get((jot_dtype)r->call.params[4])->bytes;
    for (int turn = 0;; turn = !turn) {
        bool is_last = length <= SORT_CHOICE;
        int64_t warps = s->rows * ((length + SORT_CHOICE - 1) / SORT_CHOICE);
        uint64_t kept = is_last ? 0 : cuda_address(workspace + s->keys[turn]);
        JOT_TRY(cuda_start(
            d, &(struct cuda_start){s->kernels[0],
                                    (uint64_t)(warps + 7) / 8,
                                    256,
                                    {cuda_address(operands[0]), given, kept,
                                     cuda_address(operands[1]), cuda_address(operands[2]),
                                     (uint64_t)s->rows, (uint64_t)length, (uint64_t)s->length,
                                     (uint64_t)k, (uint64_t)p->size, p->is_signed, p->infinite,
                                     size}}));
        if (is_last)
            return JOT_OK;
        given = kept;
        length = chosen_of(length, k);
    }
}

// ---- Binding

static void add_parts(struct sort *s, jot_dtype dtype, int operand)
{
    jot_dtype real = dtype_real(dtype);
    int size = (int)dtype_get(real)->bytes, n = 1 + dtype_is_complex(dtype);
    for (int i = 0; i < n; i++)
        s->parts[s->n_parts++] =
            (struct part){.operand = operand,
                          .bits = 8 * size,
                          .size = size,
                          .step = n,
                          .offset = (uint64_t)(i * size),
                          .infinite = dtype_is_float(real) ? dtype_infinity(real) : 0,
                          .is_signed = dtype_is_signed(real)};
}

static int bits_of(int64_t n)
{
    int bits = 0;
    while (bits < 62 && INT64_C(1) << bits < n)
        bits++;
    return bits;
}

static bool is_key(jot_dtype d) { return !dtype_is_complex(d) && dtype_get(d)->bytes >= 4; }

static jot_status get_kernels(struct cuda_device *d, struct sort *s)
{
    char words[1024], suffix[32];
    bool is_wide = s->key_bytes == 8;
    snprintf(suffix, sizeof suffix, "_u%d%s", 8 * s->key_bytes, s->is_alone ? "" : "_tagged");
    snprintf(words, sizeof words,
             "%s#define SORT_ITEMS (SORT_KEY_BYTES / (int)sizeof(KEY))\n"
             "#define SORT_TILE (SORT_THREADS * SORT_ITEMS)\n"
             "#define NAMED(name) name##%s\n#define KEY %s\n#define INFINITE %s\n"
             "#define TAGGED %d\n",
             numbers, suffix, is_wide ? "unsigned long long" : "unsigned",
             is_wide ? "0x7ff0000000000000ull" : "0x7f800000u", !s->is_alone);
    const char *of = s->is_alone ? names_alone : s->is_choice ? names_choice : names_indices;
    return cuda_kernels_get(d, words, source, of, suffix, s->kernels);
}

static void plan_workspace(struct sort *s)
{
    int64_t length = s->length, k = s->k;
    for (int i = 0; s->is_choice && i < 2; i++, length = chosen_of(length, k))
        s->keys[i] = cuda_take(&s->base.workspace,
                               (uint64_t)(s->rows * chosen_of(length, k)) * sizeof(uint64_t));
    if (s->is_choice)
        return;
    int64_t tile = (int64_t)SORT_THREADS * SORT_KEY_BYTES / s->key_bytes;
    size_t *used = &s->base.workspace, keys = (size_t)s->count * (size_t)s->key_bytes;
    s->tiles = (s->count + tile - 1) / tile;
    s->state = cuda_take(used, SORT_STATE * sizeof(uint32_t));
    s->told = cuda_take(used, (uint64_t)s->tiles * SORT_DIGITS * sizeof(uint32_t) *
                                  (uint64_t)s->key_bytes);
    s->keys[0] = cuda_take(used, keys);
    for (int i = 0; i < 2 && !s->is_alone; i++) {
        s->keys[1] = i ? cuda_take(used, keys) : s->keys[1];
        s->tags[i] = cuda_take(used, (size_t)s->count * sizeof(uint32_t));
    }
}

// The routine with its kernels; takes s.
static jot_status finish(struct cuda_device *d, struct sort *s, struct cuda_routine **out)
{
    int most = 0;
    for (int end = s->n_parts, first, bits; end > 0; end = first) {
        bits = s->parts[end - 1].bits;
        for (first = end - 1; first > 0 && bits + s->parts[first - 1].bits <= 64; first--)
            bits += s->parts[first - 1].bits;
        most = bits > most ? bits : most;
    }
    s->key_bytes = most > 32 || s->is_choice ? 8 : 4;
    plan_workspace(s);
    jot_status status = get_kernels(d, s);
    if (status == JOT_OK)
        *out = &s->base;
    else
        memory_release(s);
    return status;
}

// NULL for more elements than counts go.
static jot_status start_sort(const struct rt_routine_call *call, struct sort **out)
{
    const int64_t *p = call->params;
    int64_t count;
    *out = NULL;
    if (__builtin_mul_overflow(p[1], p[2], &count) || count < 1 || count >= ELEMENTS_MOST)
        return JOT_OK;
    struct sort *s = memory_allocate_zeroed(sizeof *s);
    if (!s)
        return status_out_of_memory();
    s->rows = p[1];
    s->length = p[2];
    s->count = count;
    if (s->rows > 1)
        s->parts[s->n_parts++] = (struct part){.operand = -1, .bits = bits_of(s->rows)};
    *out = s;
    return JOT_OK;
}

jot_status cuda_sort_bind(struct cuda_device *d, const struct rt_routine_call *call,
                          struct cuda_routine **out)
{
    const int64_t *p = call->params;
    jot_dtype first = (jot_dtype)p[4];
    struct sort *s;
    JOT_TRY(start_sort(call, &s));
    if (!s)
        return JOT_OK;
    for (int i = 0; i < p[3]; i++) {
        int64_t bits =
            call->param_count > 4 + call->read_count ? p[4 + call->read_count + i] : 0;
        add_parts(s, (jot_dtype)p[4 + i], i);
        if (bits > 0 && bits < s->parts[s->n_parts - 1].bits) {
            s->parts[s->n_parts - 1].bits = (int)bits;
            s->parts[s->n_parts - 1].is_signed = false;
        }
    }
    s->is_alone = s->rows == 1 && call->read_count == 1 && is_key(first);
    s->kind = dtype_is_float(first) ? 2 : dtype_is_signed(first);
    s->base.run = s->is_alone ? run_alone : run_sort;
    return finish(d, s, out);
}

jot_status cuda_top_k_bind(struct cuda_device *d, const struct rt_routine_call *call,
                           struct cuda_routine **out)
{
    struct sort *s;
    JOT_TRY(start_sort(call, &s));
    if (!s || call->params[3] == 0) {
        memory_release(s);
        return JOT_OK;
    }
    add_parts(s, (jot_dtype)call->params[0], 0);
    s->is_turned = true;
    s->k = call->params[3];
    s->is_choice = is_chosen((jot_dtype)call->params[0], call->params[3]);
    s->base.run = s->is_choice ? run_choice : run_top_k;
    return finish(d, s, out);
}
