// SPDX-License-Identifier: Apache-2.0
// Random bits.
#include "interop/to_graph.h"

#include "base/dtype.h"

#define HLO_(name) MLIR_OP_stablehlo_##name

static ir_id low_word(struct ir_builder *b, ir_id x) { return ir_convert(b, x, JOT_U32); }

static ir_id high_word(struct ir_builder *b, ir_id x)
{
    return ir_convert(b, ir_shr_logical(b, x, ir_scalar_int(b, JOT_U64, 32)), JOT_U32);
}

static ir_id word_of_state(struct ir_builder *b, ir_id state, int64_t i)
{
    int64_t limit = i + 1, one = 1;
    return ir_reshape(b, ir_slice(b, state, &i, &limit, &one), 0, NULL);
}

// Both words of Threefry-2x32 at the counters state[1] + 0, 1, ... of that shape.
static ir_id words(struct graph_op *g, ir_id key, ir_id counter, int rank, const int64_t *dims)
{
    struct ir_builder *b = g->b;
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dims[i];
    ir_id number = ir_iota(b, ir_type_make(b->module, JOT_U64, 1, &n), 0);
    ir_id at = ir_add(b, counter, ir_reshape(b, number, rank, dims));
    ir_id in[] = {low_word(b, key), high_word(b, key), low_word(b, at), high_word(b, at)};
    return ir_build(b, IR_threefry2x32, 4, in, NULL);
}

// Two words of 32 bits for each counter stand beside each other along the first axis of even extent, or the
// last one, which then has one element too many.
static ir_id bits_32(struct graph_op *g, ir_id key, ir_id counter, const int64_t *dims,
                     int rank, int64_t *out_counters)
{
    struct ir_builder *b = g->b;
    int64_t half[IR_MAX_RANK + 1], all[IR_MAX_RANK + 1], zeros[IR_MAX_RANK] = {0};
    int64_t ones[IR_MAX_RANK + 1];
    int axis = 0;
    while (axis < rank && dims[axis] % 2)
        axis++;
    axis -= axis == rank && rank > 0;
    *out_counters = 1;
    for (int i = 0; i < rank; i++) {
        half[i] = i == axis ? (dims[i] + 1) / 2 : dims[i];
        all[i] = i == axis ? 2 * half[i] : dims[i];
        ones[i] = 1;
        *out_counters *= half[i];
    }
    ir_id first = words(g, key, counter, rank, half);
    if (first == IR_NONE || rank == 0)
        return first;
    int64_t apart[IR_MAX_RANK + 1];
    for (int i = 0, at = 0; i < rank; i++) {
        apart[at++] = half[i];
        if (i == axis)
            apart[at++] = 1;
    }
    ir_id pair[] = {ir_reshape(b, first, rank + 1, apart),
                    ir_reshape(b, first + 1, rank + 1, apart)};
    ir_id joined = ir_reshape(b, ir_concatenate(b, 2, pair, axis + 1), rank, all);
    return ir_slice(b, joined, zeros, dims, ones);
}

static ir_id bits_64(struct graph_op *g, ir_id key, ir_id counter, const int64_t *dims,
                     int rank)
{
    struct ir_builder *b = g->b;
    ir_id first = words(g, key, counter, rank, dims);
    if (first == IR_NONE)
        return first;
    ir_id high = ir_shl(b, ir_convert(b, first + 1, JOT_U64), ir_scalar_int(b, JOT_U64, 32));
    return ir_or(b, ir_convert(b, first, JOT_U64), high);
}

// ---- Philox-4x32-10 (J. K. Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011) ----

// The halves of a product of two words of 32 bits.
static ir_id product(struct ir_builder *b, ir_id x, uint32_t by, ir_id *out_high)
{
    ir_id wide = ir_mul(b, ir_convert(b, x, JOT_U64), ir_scalar_int(b, JOT_U64, by));
    *out_high = high_word(b, wide);
    return low_word(b, wide);
}

// The words c at a counter become random.
static void philox(struct ir_builder *b, ir_id c[4], ir_id key)
{
    ir_id k[] = {low_word(b, key), high_word(b, key)};
    for (int round = 0; round < 10; round++) {
        ir_id high0, high2, low0 = product(b, c[0], 0xd2511f53, &high0);
        ir_id low2 = product(b, c[2], 0xcd9e8d57, &high2);
        c[0] = ir_xor(b, ir_xor(b, high2, c[1]), k[0]);
        c[2] = ir_xor(b, ir_xor(b, high0, c[3]), k[1]);
        c[1] = low2;
        c[3] = low0;
        k[0] = ir_add(b, k[0], ir_scalar_int(b, JOT_U32, 0x9e3779b9));
        k[1] = ir_add(b, k[1], ir_scalar_int(b, JOT_U32, 0xbb67ae85));
    }
}

// A counter of 128 bits.
struct counter {
    ir_id low, high;
};

static struct counter advanced(struct ir_builder *b, struct counter c, ir_id by)
{
    ir_id low = ir_add(b, c.low, by);
    ir_id carry = ir_convert(b, ir_lt(b, low, by), JOT_U64);
    return (struct counter){low, ir_add(b, c.high, carry)};
}

// n words, four for each counter.
static ir_id philox_words(struct graph_op *g, ir_id key, struct counter from, int64_t n)
{
    struct ir_builder *b = g->b;
    int64_t fours = (n + 3) / 4, column[] = {fours, 1}, all = 4 * fours, zero = 0, one = 1;
    struct counter at =
        advanced(b, from, ir_iota(b, ir_type_make(b->module, JOT_U64, 1, &fours), 0));
    ir_id c[] = {low_word(b, at.low), high_word(b, at.low), low_word(b, at.high),
                 high_word(b, at.high)};
    philox(b, c, key);
    for (int i = 0; i < 4; i++)
        c[i] = ir_reshape(b, c[i], 2, column);
    return ir_slice(b, ir_reshape(b, ir_concatenate(b, 4, c, 1), 1, &all), &zero, &n, &one);
}

// Pairs of words as words of twice the bits, the lower half first.
static ir_id joined(struct ir_builder *b, ir_id words32, int64_t n)
{
    int64_t pairs[] = {n, 2}, first[] = {0, 0}, second[] = {0, 1}, ones[] = {1, 1};
    int64_t to_first[] = {n, 1}, to_second[] = {n, 2};
    ir_id both = ir_convert(b, ir_reshape(b, words32, 2, pairs), JOT_U64);
    ir_id low = ir_slice(b, both, first, to_first, ones);
    ir_id high = ir_slice(b, both, second, to_second, ones);
    return ir_or(b, low, ir_shl(b, high, ir_scalar_int(b, JOT_U64, 32)));
}

// ---- the operation ----

struct generator {
    struct graph_op *g;
    ir_id state;
    int64_t n_state; // words of 64 bits: the key, and a counter of one or two
    struct ir_type type;
    int bits;
};

// The state is the key and the lower half of the counter, whose upper half is the key again, or stands behind
// them.
static ir_id by_philox(struct generator *r, ir_id *out_state)
{
    struct graph_op *g = r->g;
    struct ir_builder *b = g->b;
    int64_t n = ir_count(b->module, r->type), n_words = r->bits == 64 ? 2 * n : n, one = 1;
    ir_id key = word_of_state(b, r->state, 0);
    struct counter from = {word_of_state(b, r->state, 1),
                           r->n_state > 2 ? word_of_state(b, r->state, 2) : key};
    ir_id bits = philox_words(g, key, from, n_words);
    ir_id by = ir_scalar_int(b, JOT_U64, (n_words + 3) / 4);
    struct counter next = advanced(b, from, by);
    ir_id state[] = {key, next.low, next.high};
    for (int i = 0; i < 3; i++)
        state[i] = ir_reshape(b, state[i], 1, &one);
    *out_state = ir_concatenate(b, (int)r->n_state, state, 0);
    if (r->bits == 64)
        bits = joined(b, bits, n);
    return ir_reshape(b, bits, r->type.rank, ir_dims(b->module, r->type));
}

static ir_id by_threefry(struct generator *r, ir_id *out_state)
{
    struct graph_op *g = r->g;
    struct ir_builder *b = g->b;
    const int64_t *dims = ir_dims(b->module, r->type);
    int64_t counters = ir_count(b->module, r->type), one = 1;
    ir_id key = word_of_state(b, r->state, 0), counter = word_of_state(b, r->state, 1);
    ir_id bits = r->bits == 64 ? bits_64(g, key, counter, dims, r->type.rank)
                               : bits_32(g, key, counter, dims, r->type.rank, &counters);
    ir_id state[] = {key, ir_add(b, counter, ir_scalar_int(b, JOT_U64, counters))};
    for (int i = 0; i < 2; i++)
        state[i] = ir_reshape(b, state[i], 1, &one);
    *out_state = ir_concatenate(b, 2, state, 0);
    return bits;
}

// DEFAULT is Philox, as on the hosts and GPUs of XLA.  Words of 32 bits are cut to what is asked for.
static void convert_rng_bit_generator(struct graph_op *g)
{
    static const jot_dtype unsigned_of[] = {JOT_U8, JOT_U16, JOT_U32, JOT_U64};
    struct ir_builder *b = g->b;
    const char *algorithm = mlir_text(g->op, "rng_algorithm");
    bool is_threefry = algorithm && !strcmp(algorithm, "THREE_FRY");
    struct ir_type state = ir_type_in(b, g->in[0]);
    struct generator r = {.g = g, .state = g->in[0], .n_state = ir_count(b->module, state)};
    if (!algorithm || !graph_type(b, g->op->results[1]->type, &r.type))
        return;
    jot_dtype d = ir_dtype(r.type);
    r.bits = dtype_get(d)->bits;
    if (ir_dtype(state) != JOT_U64 || state.rank != 1 || r.n_state < 2 ||
        r.n_state > (is_threefry ? 2 : 3) || dtype_is_complex(d) || dtype_is_bool(d)) {
        graph_refuse(g, "bits of %s by %s from a state of %s are not taken", jot_dtype_name(d),
                     algorithm, ir_type_text(b->module, state));
        return;
    }
    ir_id bits = is_threefry ? by_threefry(&r, &g->out[0]) : by_philox(&r, &g->out[0]);
    int k = r.bits == 8 ? 0 : r.bits == 16 ? 1 : r.bits == 32 ? 2 : 3;
    if (k < 2)
        bits = ir_convert(b, bits, unsigned_of[k]);
    g->out[1] = d == unsigned_of[k] ? bits : ir_bitcast(b, bits, d);
}

graph_convert *graph_call_find(enum mlir_code code)
{
    return code == HLO_(rng_bit_generator) ? convert_rng_bit_generator : NULL;
}
