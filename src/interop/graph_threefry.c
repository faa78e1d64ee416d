// SPDX-License-Identifier: Apache-2.0
// Threefry-2x32 as programs of JAX have it: a function (key, key, counter, counter) of 32 bits each, whose
// rounds are a loop over lists of rotations, or written out.  In a program for several platforms the number of the one at
// hand comes first, and both forms are cases of it.
//
// It is found by trying it on numbers.  A function is tried that adds, shifts and combines bits of elements
// and nothing else, and whose loops do not depend on them: such functions that agree on random
// numbers of 128 bits are the same.
#include "interop/graph_call.h"

#include "ir/eval_ops.h"

enum {
    MOST_LISTED = 8,     // elements of a list, as of rotations
    MOST_DONE = 1 << 13, // operations
    MOST_DEPTH = 16,     // blocks in each other
    TRIALS = 4,
    PLATFORMS = 4, // that a program is tried for: a case that is not there is the last one
};

// Elements that are all the same, or those of a short list.
struct words {
    uint8_t n;    // 0: not known
    bool is_data; // depends on the arguments
    uint64_t at[MOST_LISTED];
};

struct trial {
    const struct mlir_program *program;
    struct arena *arena;
    int left, depth;
};

typedef struct words *values;

static bool run_block(struct trial *t, values v, const struct mlir_block *block,
                      const struct words *args, struct words *out);

static const struct mlir_element_row *element_of(const struct mlir_type *t)
{
    return t->kind == MLIR_TENSOR ? &mlir_elements[t->element] : &mlir_elements[MLIR_NONE];
}

static bool is_integer(const struct mlir_type *t)
{
    const struct mlir_element_row *e = element_of(t);
    return e->kind == 'b' || ((e->kind == 'i' || e->kind == 'u') && e->bits >= 32);
}

static uint64_t cut(uint64_t x, const struct mlir_element_row *e)
{
    return e->bits == 64 ? x : x & ((UINT64_C(1) << e->bits) - 1);
}

static bool read_constant(const struct mlir_op *op, struct words *out)
{
    const struct mlir_attr *a = mlir_attr_find(op, "value");
    int64_t n = a && a->kind == MLIR_DENSE ? a->is_splat ? 1 : mlir_elements_of(a->type) : 0;
    size_t size = n ? (size_t)(element_of(a->type)->bits + 7) / 8 : 0;
    if (n < 1 || n > MOST_LISTED)
        return false;
    *out = (struct words){.n = (uint8_t)n};
    for (int64_t i = 0; i < n; i++)
        memcpy(&out->at[i], a->bytes + (size_t)i * size, size);
    return true;
}

// A part of a list, which is no data.
static bool read_slice(const struct mlir_op *op, const struct words *x, struct words *out)
{
    size_t n;
    const int64_t *starts = mlir_ints(op, "start_indices", &n);
    int64_t first = n == 1 ? starts[0] : -1, count = mlir_elements_of(op->results[0]->type);
    const int64_t *strides = mlir_ints(op, "strides", &n);
    if (first < 0 || count < 1 || first + count > x->n || x->is_data || n > 1 ||
        (n && strides[0] != 1))
        return false;
    *out = (struct words){.n = (uint8_t)count};
    memcpy(out->at, x->at + first, (size_t)count * sizeof *out->at);
    return true;
}

// Whether an array of the type is one of the other where its extents of 1 are repeated.
static bool repeats_to(const struct mlir_type *from, const struct mlir_type *to)
{
    bool does = from->rank == to->rank;
    for (int i = 0; does && i < from->rank; i++)
        does = from->dims[i] == to->dims[i] || from->dims[i] == 1;
    return does;
}

// Shapes change for what all elements have.  Elements of data stay where they are, and are repeated.
static bool is_same(const struct mlir_op *op, const struct words *x)
{
    const struct mlir_type *from = op->operands[0]->type, *to = op->results[0]->type;
    size_t n;
    const int64_t *axes = mlir_ints(op, "broadcast_dimensions", &n);
    bool is_repeated = op->row->code == MLIR_OP_stablehlo_broadcast_in_dim &&
                       n == (size_t)from->rank && repeats_to(from, to);
    for (size_t i = 0; is_repeated && i < n; i++)
        is_repeated = axes[i] == (int64_t)i;
    return x->n == 1 && (!x->is_data || mlir_elements_of(from) == 1 || is_repeated);
}

static bool combine(const struct mlir_op *op, uint64_t x, uint64_t y, uint64_t *out)
{
    const struct mlir_element_row *e = element_of(op->results[0]->type);
    bool is_inside = y < (uint64_t)e->bits;
    switch ((int)op->row->code) {
    case MLIR_OP_stablehlo_add:
        *out = cut(x + y, e);
        return true;
    case MLIR_OP_stablehlo_subtract:
        *out = cut(x - y, e);
        return true;
    case MLIR_OP_stablehlo_xor:
        *out = x ^ y;
        return true;
    case MLIR_OP_stablehlo_or:
        *out = x | y;
        return true;
    case MLIR_OP_stablehlo_shift_left:
        *out = is_inside ? cut(x << y, e) : 0;
        return true;
    case MLIR_OP_stablehlo_shift_right_logical:
        *out = is_inside ? x >> y : 0;
        return true;
    default:
        return false;
    }
}

static bool combine_all(const struct mlir_op *op, const struct words *x, const struct words *y,
                        struct words *out)
{
    *out = (struct words){.n = x->n > y->n ? x->n : y->n, .is_data = x->is_data || y->is_data};
    for (int i = 0; i < out->n; i++)
        if (!combine(op, x->at[x->n == 1 ? 0 : i], y->at[y->n == 1 ? 0 : i], &out->at[i]))
            return false;
    return true;
}

// Of counters, which are below 2^31.
static bool compare(const struct mlir_op *op, const struct words *x, const struct words *y,
                    struct words *out)
{
    const char *word = mlir_text(op, "comparison_direction");
    uint64_t a = x->at[0], b = y->at[0];
    if (x->is_data || y->is_data || x->n != 1 || y->n != 1 || !word || (a | b) >> 31)
        return false;
    *out = (struct words){.n = 1};
    out->at[0] = !strcmp(word, "LT")   ? a < b
                 : !strcmp(word, "NE") ? a != b
                 : !strcmp(word, "LE") ? a <= b
                 : !strcmp(word, "GT") ? a > b
                                       : 2;
    return out->at[0] < 2;
}

static bool run_while(struct trial *t, values v, const struct mlir_op *op, struct words *carry)
{
    struct words goes_on;
    while (run_block(t, v, &op->regions[0], carry, &goes_on)) {
        if (goes_on.is_data || !goes_on.at[0])
            return !goes_on.is_data;
        if (!run_block(t, v, &op->regions[1], carry, carry))
            return false;
    }
    return false;
}

// The case that is chosen, whatever the arguments; its results in place of its number.
static bool run_case(struct trial *t, values v, const struct mlir_op *op, struct words *x)
{
    uint64_t last = op->n_regions - 1;
    return x->n == 1 && !x->is_data &&
           run_block(t, v, &op->regions[x->at[0] < last ? x->at[0] : last], NULL, x);
}

static bool run_call(struct trial *t, const struct mlir_op *op, struct words *in)
{
    const char *callee = mlir_text(op, "callee");
    const struct mlir_function *f = callee ? mlir_function_find(t->program, callee) : NULL;
    if (!f || !f->body || f->body->n_args != op->n_operands)
        return false;
    return run_block(t, arena_array(t->arena, struct words, f->n_values + 1), f->body, in, in);
}

// The results, in place of the operands.
static bool run_op(struct trial *t, values v, const struct mlir_op *op, struct words *x)
{
    struct words y = {0};
    switch ((int)op->row->code) {
    case MLIR_OP_stablehlo_while:
        return op->n_results == op->n_operands && run_while(t, v, op, x);
    case MLIR_OP_stablehlo_case:
        return run_case(t, v, op, x);
    case MLIR_OP_func_call:
        return run_call(t, op, x);
    case MLIR_OP_stablehlo_constant:
        return read_constant(op, x);
    case MLIR_OP_stablehlo_slice:
        return read_slice(op, x, &y) && (*x = y, true);
    case MLIR_OP_stablehlo_compare:
        return compare(op, &x[0], &x[1], &y) && (*x = y, true);
    case MLIR_OP_stablehlo_convert:
        for (int i = 0; i < x->n; i++)
            x->at[i] = cut(x->at[i], element_of(op->results[0]->type));
        return !x->is_data || (element_of(op->operands[0]->type)->bits == 32 &&
                               element_of(op->results[0]->type)->bits == 32);
    case MLIR_OP_stablehlo_broadcast_in_dim:
    case MLIR_OP_stablehlo_reshape:
        return is_same(op, x);
    default:
        return op->n_operands == 2 && combine_all(op, &x[0], &x[1], &y) && (*x = y, true);
    }
}

static bool run_ops(struct trial *t, values v, const struct mlir_block *block,
                    struct words *out)
{
    enum { MOST = 32 };
    struct words x[MOST];
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const struct mlir_op *op = block->ops[i];
        bool is_end = i + 1 == block->n_ops;
        if (!op->row || op->n_operands > MOST || op->n_results > MOST || t->left-- <= 0)
            return false;
        for (uint32_t k = 0; k < op->n_operands; k++) {
            x[k] = v[op->operands[k]->number];
            if (!x[k].n)
                return false;
        }
        if (is_end) {
            memcpy(out, x, op->n_operands * sizeof *out);
            return true;
        }
        for (uint32_t k = 0; k < op->n_results; k++)
            if (!is_integer(op->results[k]->type))
                return false;
        if (!op->n_results || !run_op(t, v, op, x))
            return false;
        for (uint32_t k = 0; k < op->n_results; k++)
            v[op->results[k]->number] = x[k];
    }
    return false;
}

// What the block returns may stand where its arguments did.
static bool run_block(struct trial *t, values v, const struct mlir_block *block,
                      const struct words *args, struct words *out)
{
    if (t->depth == MOST_DEPTH)
        return false;
    for (uint32_t i = 0; i < block->n_args; i++)
        v[block->args[i]->number] = args[i];
    t->depth++;
    bool done = run_ops(t, v, block, out);
    t->depth--;
    return done;
}

static bool agrees(struct trial *t, const struct mlir_function *f, uint64_t platform,
                   uint32_t word[4])
{
    struct words x[5] = {{.n = 1, .at = {platform}}};
    bool has_platform = f->type->n_inputs == 5;
    uint32_t want[] = {word[2], word[3]};
    for (int i = 0; i < 4; i++)
        x[i + 1] = (struct words){.n = 1, .is_data = true, .at = {word[i]}};
    values v = arena_array(t->arena, struct words, f->n_values + 1);
    eval_threefry2x32(word, want);
    return run_block(t, v, f->body, has_platform ? x : x + 1, x) && x[0].at[0] == want[0] &&
           x[1].at[0] == want[1];
}

static bool takes_words(const struct mlir_function *f)
{
    const struct mlir_type *t = f->type, *end = t->n_parts ? t->parts[t->n_parts - 1] : NULL;
    uint32_t first = t->n_inputs == 5;
    if (!f->body || t->n_inputs != 4 + first || t->n_parts != 6 + first)
        return false;
    if (first && (t->parts[0]->rank || !is_integer(t->parts[0])))
        return false;
    for (uint32_t i = first; i < t->n_parts; i++)
        if (t->parts[i]->kind != MLIR_TENSOR || t->parts[i]->element != MLIR_UI32 ||
            (t->parts[i]->rank && !repeats_to(t->parts[i], end)))
            return false;
    return mlir_types_equal(t->parts[4 + first], end);
}

bool graph_is_threefry(struct graph_frame *frame, const struct mlir_function *f)
{
    if (!takes_words(f))
        return false;
    struct trial t = {frame->in->program, frame->arena, MOST_DONE, 0};
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < TRIALS * PLATFORMS; i++) {
        uint32_t word[4];
        t.left = MOST_DONE;
        for (int k = 0; k < 4; k++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            word[k] = (uint32_t)(state >> 32);
        }
        if (!agrees(&t, f, (uint64_t)i % PLATFORMS, word))
            return false;
    }
    return true;
}
