# SPDX-License-Identifier: Apache-2.0
"""The cases in CuPy, as its users write them; compare.py starts it (worker.py has the protocol)."""

import cupy as cp
import cupyx

import worker


def sums_at(n):
    def scatter(i, u):
        sums = cp.zeros(n, u.dtype)
        cupyx.scatter_add(sums, i, u)
        return sums

    return scatter


@cp.fuse
def axpy(x, y):
    return cp.float32(2.5) * x + y


CASES = {
    "axpy": axpy,
    "gemm_f32_highest": cp.matmul,
    "gemm_f32_3tf32": cp.matmul,
    "gemm_batched": cp.matmul,
    "rng_normal": lambda k: cp.random.standard_normal(1 << 22, dtype=cp.float32),
    "rng_normal_2^27": lambda k: cp.random.standard_normal(1 << 27, dtype=cp.float32),
    "rng_uniform": lambda k: cp.random.random(1 << 22, dtype=cp.float32),
    "rng_uniform_2^27": lambda k: cp.random.random(1 << 27, dtype=cp.float32),
    "sum_axis1": lambda x: x.sum(1),
    "sum_axis0": lambda x: x.sum(0),
    "sum_all": lambda x: x.sum(),
    "argmax_axis1": lambda x: x.argmax(1),
    "transpose_add": lambda x: x.T + x,
    "fft2_c64": cp.fft.fft2,
    "rfft_batch": cp.fft.rfft,
    "cumsum_1d": lambda x: cp.cumsum(x),
    "sort_1d": lambda x: cp.sort(x),
    "gather_rows": lambda x, i: cp.take(x, i, axis=0),
    "scatter_add": sums_at(4096),
    "scatter_add_16384": sums_at(16384),
}


class CuPy(worker.Worker):
    cases = CASES
    random = ("rng",)

    def version(self):
        return f"CuPy {cp.__version__}"

    def array(self, a):
        return cp.asarray(a)

    def wait(self, result):
        cp.cuda.Device().synchronize()
        return result

    def leaves(self, result):
        return [cp.asnumpy(result)]


if __name__ == "__main__":
    worker.serve(CuPy())
