// SPDX-License-Identifier: Apache-2.0
// Transpose and batching of Fourier transforms.  They are linear, and the matrix of one axis is
// symmetric; where half a transform stands for all of it, the other half is put back.
#include "passes/rules/rules.h"

#define B c->b
#define CT c->ct[0]

struct fft {
    enum fft_kind kind;
    int n;
    const int64_t *sizes;
};

static struct fft fft_of(const struct ir_node *n)
{
    struct fft f = {.kind = (enum fft_kind)ir_attr_int(n->attrs, IR_KEY_mode)};
    f.sizes = ir_attr_ints(n->attrs, IR_KEY_sizes, &f.n);
    return f;
}

// Zeros in place of the other half, and the transform of all: only that of real numbers counts.
static ir_id transpose_rfft(struct ir_builder *b, const struct fft *f, ir_id ct)
{
    struct ir_type t = ir_type_in(b, ct);
    int64_t low[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0}, n = f->sizes[f->n - 1];
    high[t.rank - 1] = n - fft_half(n);
    ir_id whole = ir_pad(b, ct, ir_scalar_like(b, ct, 0), low, high, low);
    return ir_real(b, ir_fft(b, FFT_FFT, whole, f->n, f->sizes));
}

// conj(w rfft(ct)): all but what is its own conjugate stands for two, w = 1 or 2 over the points.
static ir_id transpose_irfft(struct ir_builder *b, const struct fft *f, ir_id ct)
{
    ir_id half = ir_fft(b, FFT_RFFT, ct, f->n, f->sizes);
    if (half == IR_NONE)
        return IR_NONE;
    struct ir_type t = ir_type_in(b, half);
    int64_t n = f->sizes[f->n - 1];
    double points = 1;
    for (int i = 0; i < f->n; i++)
        points *= (double)f->sizes[i];
    ir_id k = ir_iota(b, ir_type_with(t, JOT_I64), t.rank - 1);
    ir_id is_one = ir_eq(b, k, ir_scalar_int(b, JOT_I64, 0));
    if (n % 2 == 0)
        is_one = ir_or(b, is_one, ir_eq(b, k, ir_scalar_int(b, JOT_I64, n / 2)));
    ir_id w = ir_select(b, is_one, ir_scalar_like(b, ct, 1 / points),
                        ir_scalar_like(b, ct, 2 / points));
    return ir_complex(b, ir_mul(b, ir_real(b, half), w),
                      ir_neg(b, ir_mul(b, ir_imag(b, half), w)));
}

void transpose_fft(struct transpose *c)
{
    struct fft f = fft_of(c->n);
    if (f.kind == FFT_RFFT)
        transpose_give(c, 0, transpose_rfft(B, &f, CT));
    else if (f.kind == FFT_IRFFT)
        transpose_give(c, 0, transpose_irfft(B, &f, CT));
    else
        transpose_give(c, 0, ir_fft(B, f.kind, CT, f.n, f.sizes));
}

// The last axes stay the last ones.
void batch_fft(struct batch *c) { c->y[0] = ir_build(B, IR_fft, 1, c->x, c->n->attrs); }
