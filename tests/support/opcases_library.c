// SPDX-License-Identifier: Apache-2.0
// Cases of contractions and of what libraries do.
#include "support/opcases_maker.h"

#include "ir/conv.h"

void opcase_add_dot_general(struct opcase_maker *k)
{
    struct ir_module *m = k->m;
#define DOT(lc, rc, lb, rb)                                                                    \
    ir_attrs(m, INTS(lhs_contract, lc), INTS(rhs_contract, rc), INTS(lhs_batch, lb),           \
             INTS(rhs_batch, rb), IR_INT(precision, 0))
    enum ir_op op = IR_dot_general;
    opcase_add(k, op, DOT(LIST(0), LIST(0), NO_LIST, NO_LIST), 2,
               (struct opcase_shape[]){SHAPE(5), SHAPE(5)});
    opcase_add(k, op, DOT(LIST(1), LIST(0), NO_LIST, NO_LIST), 2,
               (struct opcase_shape[]){SHAPE(2, 3), SHAPE(3, 4)});
    opcase_add(k, op, DOT(LIST(0), LIST(1), NO_LIST, NO_LIST), 2,
               (struct opcase_shape[]){SHAPE(3, 2), SHAPE(4, 3)});
    opcase_add(k, op, DOT(LIST(2), LIST(1), LIST(0), LIST(0)), 2,
               (struct opcase_shape[]){SHAPE(2, 3, 4), SHAPE(2, 4, 5)});
    opcase_add(k, op, DOT(LIST(2, 0), LIST(0, 2), LIST(1), LIST(3)), 2,
               (struct opcase_shape[]){SHAPE(2, 3, 4), SHAPE(4, 1, 2, 3)});
    opcase_add(k, op, DOT(NO_LIST, NO_LIST, NO_LIST, NO_LIST), 2,
               (struct opcase_shape[]){SHAPE(2), SHAPE(3)});
    opcase_add(k, op, DOT(LIST(1), LIST(0), NO_LIST, NO_LIST), 2,
               (struct opcase_shape[]){SHAPE(2, 0), SHAPE(0, 4)});
#undef DOT
}

// Adds to elements of every matrix, or of a diagonal, so that it is far from singular: those of the
// main diagonal, or, so that rows are swapped, of the other one.
static void make_regular(struct opcase_maker *k, struct ir_tensor *t, bool is_diagonal,
                         bool swaps)
{
    const int64_t *dims = ir_dims(k->m, t->type);
    int64_t columns = t->type.rank ? dims[t->type.rank - 1] : 1,
            count = ir_count(k->m, t->type);
    int64_t rows = is_diagonal ? 1 : dims[t->type.rank - 2];
    size_t bytes = jot_dtype_size(k->dtype);
    for (int64_t i = 0; i < count; i++) {
        int64_t row = i / columns % rows, column = i % columns;
        if (is_diagonal || row == (swaps ? rows - 1 - column : column))
            opcase_put_real(dtype_real(k->dtype), 12 + 3 * opcase_random(&k->state),
                            (char *)t->data + (size_t)i * bytes);
    }
}

void opcase_make_swapped(struct ir_module *m, struct ir_tensor *t, uint64_t *state)
{
    struct opcase_maker k = {.m = m, .dtype = ir_dtype(t->type), .state = *state};
    make_regular(&k, t, false, true);
    *state = k.state;
}

static struct ir_tensor *last_operand(struct opcase_maker *k, int i)
{
    return &k->cases.at[k->cases.count - 1].in[i];
}

void opcase_add_factored(struct opcase_maker *k, enum ir_op op)
{
    const struct opcase_shape shapes[] = {SHAPE(3, 3), SHAPE(1, 1),    SHAPE(2, 4, 4),
                                          SHAPE(0, 0), SHAPE(0, 2, 2), SHAPE(5, 5),
                                          SHAPE(4, 2), SHAPE(2, 2, 3)};
    for (int i = 0; i < (op == IR_lu ? 8 : 6); i++) {
        opcase_add_one(k, op, NULL, shapes[i]);
        make_regular(k, last_operand(k, 0), false, op == IR_lu);
    }
}

// Every flag at least once with each other one.
void opcase_add_triangular_solve(struct opcase_maker *k)
{
    const struct opcase_shape a[] = {SHAPE(3, 3), SHAPE(2, 4, 4), SHAPE(1, 1), SHAPE(0, 0)};
    const struct opcase_shape b[] = {SHAPE(3, 2), SHAPE(2, 4, 5), SHAPE(1, 1), SHAPE(0, 2)};
    const struct opcase_shape right[] = {SHAPE(2, 3), SHAPE(2, 5, 4), SHAPE(1, 1), SHAPE(2, 0)};
    for (int i = 0; i < 16; i++) {
        int shape = i < 12 ? i / 4 % 2 : i % 4, left = i & 1;
        const struct ir_attrs *attrs = ir_attrs(
            k->m, IR_INT(left, left), IR_INT(lower, i >> 1 & 1), IR_INT(transposed, i >> 2 & 1),
            IR_INT(conjugated, i >> 3 & 1), IR_INT(unit_diagonal, (i ^ i >> 1 ^ i >> 2) & 1));
        opcase_add(k, IR_triangular_solve, attrs, 2,
                   (struct opcase_shape[]){a[shape], left ? b[shape] : right[shape]});
        make_regular(k, last_operand(k, 0), false, false);
    }
}

void opcase_add_tridiagonal_solve(struct opcase_maker *k)
{
    const struct opcase_shape diagonals[] = {SHAPE(4), SHAPE(2, 3), SHAPE(1), SHAPE(2),
                                             SHAPE(0)};
    const struct opcase_shape b[] = {SHAPE(4, 2), SHAPE(2, 3, 1), SHAPE(1, 3), SHAPE(2, 1),
                                     SHAPE(0, 2)};
    for (int i = 0; i < 5; i++) {
        struct opcase_shape d = diagonals[i];
        opcase_add(k, IR_tridiagonal_solve, NULL, 4, (struct opcase_shape[]){d, d, d, b[i]});
        make_regular(k, last_operand(k, 1), true, false);
    }
}

// Lengths with and without large primes, one and several axes, none of a batch.
void opcase_add_fft(struct opcase_maker *k)
{
    static const struct opcase_shape wholes[] = {
        {1, {1}},       {1, {2}},       {1, {8}},     {2, {3, 7}}, {2, {2, 37}},
        {3, {2, 6, 5}}, {3, {0, 4, 4}}, {2, {20, 1}}, {2, {8, 6}}, {3, {4, 3, 8}}};
    static const int n_axes[] = {1, 1, 1, 1, 1, 2, 2, 2, 2, 3};
    bool is_complex = dtype_is_complex(k->dtype);
    for (size_t i = 0; i < sizeof n_axes / sizeof *n_axes; i++)
        for (int kind = 0; kind < FFT_KIND_COUNT; kind++) {
            struct opcase_shape s = wholes[i];
            const int64_t *sizes = wholes[i].dims + s.rank - n_axes[i];
            if (is_complex == (kind == FFT_RFFT))
                continue;
            if (kind == FFT_IRFFT)
                s.dims[s.rank - 1] = fft_half(s.dims[s.rank - 1]);
            opcase_add_one(k, IR_fft,
                           ir_attrs(k->m, IR_INT(mode, kind), IR_INTS(sizes, n_axes[i], sizes)),
                           s);
        }
}

// Both orders of axes; strides, padding, dilations and groups, positions that no window reaches, and none.
void opcase_add_conv(struct opcase_maker *k)
{
    static const struct conv_case {
        struct opcase_shape parts[CONV_PARTS];
        enum conv_layout layout;
        int64_t groups, lists[5][2]; // strides, low, high, dilation of x and of w
    } cases[] = {
        {{{2, {2, 3}}, {2, {4, 3}}, {2, {2, 4}}}, false, 1, {{0}}},
        {{{3, {2, 3, 7}}, {3, {4, 3, 3}}, {3, {2, 4, 3}}}, false, 1, {{2}, {0}, {0}, {1}, {1}}},
        {{{3, {2, 5, 4}}, {3, {2, 2, 6}}, {3, {2, 8, 6}}}, true, 2, {{1}, {1}, {-1}, {2}, {1}}},
        {{{4, {1, 4, 4, 5}}, {4, {6, 2, 2, 3}}, {4, {1, 6, 2, 5}}},
         false,
         2,
         {{2, 1}, {1, 1}, {0, 1}, {1, 1}, {2, 1}}},
        {{{4, {2, 4, 5, 2}}, {4, {2, 2, 2, 3}}, {4, {2, 2, 2, 3}}},
         true,
         1,
         {{2, 2}, {0, 0}, {0, 0}, {1, 1}, {1, 1}}},
        {{{3, {2, 0, 3}}, {3, {2, 0, 3}}, {3, {2, 2, 1}}}, false, 1, {{1}, {0}, {0}, {1}, {1}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct conv_case *of = &cases[i];
        struct ir_conv c = {.layout = of->layout,
                            .n = of->parts[0].rank - 2,
                            .groups = of->groups,
                            .strides = of->lists[0],
                            .low = of->lists[1],
                            .high = of->lists[2],
                            .lhs_dilation = of->lists[3],
                            .rhs_dilation = of->lists[4]};
        for (int part = 0; part < CONV_PARTS; part++) {
            c.part = (enum conv_part)part;
            if (c.part != CONV_Y && !dtype_is_inexact(k->dtype))
                continue;
            c.sizes = of->parts[part].dims + ir_conv_spatial(&c, c.part);
            opcase_add(k, IR_conv, ir_conv_attrs(k->m, &c), 2,
                       (struct opcase_shape[]){of->parts[ir_conv_operand(&c, 0)],
                                               of->parts[ir_conv_operand(&c, 1)]});
        }
    }
}

void opcase_add_sort(struct opcase_maker *k)
{
    const struct ir_attrs *one = ir_attrs(k->m, IR_INT(num_keys, 1));
    const struct ir_attrs *two = ir_attrs(k->m, IR_INT(num_keys, 2));
    const struct opcase_shape same[] = {SHAPE(3, 4), SHAPE(3, 4), SHAPE(3, 4)};
    opcase_add_one(k, IR_sort, one, SHAPE(7));
    opcase_add_one(k, IR_sort, one, SHAPE(2, 60));
    opcase_add_one(k, IR_sort, one, SHAPE(2, 0));
    opcase_add(k, IR_sort, one, 2, same);
    opcase_add(k, IR_sort, two, 3, same);
}

void opcase_add_top_k(struct opcase_maker *k)
{
    opcase_add_one(k, IR_top_k, ir_attrs(k->m, IR_INT(length, 3), IR_INT(dtype, JOT_I32)),
                   SHAPE(7));
    opcase_add_one(k, IR_top_k, ir_attrs(k->m, IR_INT(length, 5), IR_INT(dtype, JOT_I64)),
                   SHAPE(2, 5));
    opcase_add_one(k, IR_top_k, ir_attrs(k->m, IR_INT(length, 0), IR_INT(dtype, JOT_I32)),
                   SHAPE(2, 3));
}
