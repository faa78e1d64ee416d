# SPDX-License-Identifier: Apache-2.0
"""The cases in PyTorch, as its users write them; compare.py starts it (worker.py has the protocol)."""

import numpy as np
import torch
import torch.nn.functional as F

import worker

DEVICE = "cuda" if worker.IS_GPU else "cpu"


def chain(x):
    for _ in range(10):
        x = torch.sin(x) * torch.cos(x) + torch.sqrt(torch.abs(x))
    return torch.mean(x)


def gradient(loss):
    def grad(*args):
        args = [a.detach().requires_grad_() for a in args]
        return torch.autograd.grad(loss(*args), args)

    return grad


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, scale=1 / 8)


def sums_at(n):
    return lambda i, u: torch.zeros(n, dtype=u.dtype, device=u.device).index_add_(0, i, u)


CASES = {
    "chain_mean": chain,
    "axpy": lambda x, y: torch.add(y, x, alpha=2.5),
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "softmax": lambda x: torch.softmax(x, -1),
    "softmax_grad": gradient(lambda x: (torch.softmax(x, -1) ** 2).sum()),
    "layernorm": lambda x: F.layer_norm(x, x.shape[-1:], eps=1e-5),
    "gemm_f32": torch.matmul,
    "gemm_bf16": torch.matmul,
    "gemm_bias_relu": lambda a, b, c: torch.relu(torch.addmm(c, a, b)),
    "gemm_batched": torch.bmm,
    "attention_fwd": attention,
    "attention_grad": gradient(lambda q, k, v: attention(q, k, v).float().sum()),
    "vmap_dot": lambda x, w, b: torch.addmv(b.expand(len(x)), x, w),
    "sum_axis1": lambda x: x.sum(1),
    "sum_axis0": lambda x: x.sum(0),
    "sum_all": torch.sum,
    "argmax_axis1": lambda x: x.argmax(1),
    "transpose_add": lambda x: x.T + x,
    "fft2_c64": torch.fft.fft2,
    "rfft_batch": torch.fft.rfft,
    "cumsum_1d": lambda x: torch.cumsum(x, 0),
    "sort_1d": lambda x: torch.sort(x).values,
    "gather_rows": lambda x, i: torch.index_select(x, 0, i),
    "scatter_add": sums_at(4096),
    "scatter_add_16384": sums_at(16384),
}

# What its compiler makes faster, and where products are of TF32.
COMPILED = ("chain_mean", "layernorm", "gemm_bias_relu", "transpose_add")
TF32 = ("gemm_f32_default", "gemm_bias_relu")


class Torch(worker.Worker):
    cases = CASES

    def version(self):
        return f"PyTorch {torch.__version__}"

    def array(self, a):
        if a.dtype.kind == "V":
            return torch.from_numpy(a.view(np.int16)).view(torch.bfloat16).to(DEVICE)
        return torch.from_numpy(a).to(DEVICE)

    def jit(self, name, function):
        torch.backends.cuda.matmul.allow_tf32 = name.startswith(TF32)
        return torch.compile(function) if name.startswith(COMPILED) else function

    def wait(self, result):
        if worker.IS_GPU:
            torch.cuda.synchronize()
        return result

    def leaves(self, result):
        leaves = list(result) if isinstance(result, (tuple, list)) else [result]
        return [
            r.detach().cpu().view(torch.int16).numpy().view("V2")
            if r.dtype == torch.bfloat16
            else r.detach().cpu().numpy()
            for r in leaves
        ]


if __name__ == "__main__":
    worker.serve(Torch())
