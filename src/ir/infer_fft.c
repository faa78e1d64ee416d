// SPDX-License-Identifier: Apache-2.0
// The result type of Fourier transforms.
#include "base/fft.h"
#include "ir/infer.h"

static bool check_dtype(struct ir_infer *call, enum fft_kind kind)
{
    jot_dtype d = ir_dtype(infer_in(call, 0));
    bool takes_real = kind == FFT_RFFT;
    if (!dtype_is_half(d) && dtype_is_complex(d) != takes_real)
        return true;
    return infer_fail(call, JOT_ERR_DTYPE, "%s of %s: it takes %s: convert it first",
                      infer_name(call), infer_text(call, infer_in(call, 0)),
                      takes_real ? "f32 and f64" : "c64 and c128");
}

bool infer_fft(struct ir_infer *call)
{
    struct ir_type t = infer_in(call, 0);
    int64_t mode, dims[IR_MAX_RANK];
    int n;
    const int64_t *sizes = ir_attr_ints(call->attrs, IR_KEY_sizes, &n);
    if (!infer_int(call, IR_KEY_mode, &mode))
        return false;
    if (mode < 0 || mode >= FFT_KIND_COUNT)
        return infer_fail(call, JOT_ERR_ARGUMENT, "fft of mode %lld: there are 0 to %d",
                          (long long)mode, FFT_KIND_COUNT - 1);
    enum fft_kind kind = (enum fft_kind)mode;
    if (!check_dtype(call, kind))
        return false;
    if (n < 1 || n > t.rank)
        return infer_fail(call, JOT_ERR_SHAPE, "fft over %d axes of %s", n,
                          infer_text(call, t));
    memcpy(dims, infer_dims(call, 0), t.rank * sizeof *dims);
    for (int i = 0; i < n; i++) {
        int64_t *dim = &dims[t.rank - n + i], want = sizes[i];
        if (want < 1)
            return infer_fail(call, JOT_ERR_SHAPE, "fft of length %lld: at least 1",
                              (long long)want);
        if (kind == FFT_IRFFT && i == n - 1)
            want = fft_half(want);
        if (*dim != want)
            return infer_fail(
                call, JOT_ERR_SHAPE,
                "fft of length %lld along axis %d of %s, which has %lld, not %lld",
                (long long)sizes[i], t.rank - n + i, infer_text(call, t), (long long)*dim,
                (long long)want);
        *dim = kind == FFT_RFFT && i == n - 1 ? fft_half(want) : sizes[i];
    }
    jot_dtype d = ir_dtype(t), result = kind == FFT_RFFT    ? dtype_complex(d)
                                        : kind == FFT_IRFFT ? dtype_real(d)
                                                            : d;
    return infer_result_dims(call, result, t.rank, dims);
}
