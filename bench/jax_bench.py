# SPDX-License-Identifier: Apache-2.0
"""The cases in JAX, with the protocol of jot_bench: compare.py starts it.

    prepare NAME FOLDER   takes the inputs from FOLDER/inI.npy: "ready COLD_MS 0"
    check FOLDER          compares with FOLDER/outI.npy: "checked DEVIATION"
    run SECONDS           "time MEDIAN_US LEAST_US"
    queue SECONDS         the same for calls that are queued back to back

The deviation is the largest difference over the largest size of the result.
"""

import glob
import os
import sys
import time

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def chain(x):
    for _ in range(10):
        x = jnp.sin(x) * jnp.cos(x) + jnp.sqrt(jnp.abs(x))
    return jnp.mean(x)


def layernorm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def energy(w, a, x):
    return jnp.mean(jnp.dot(x, w) * jnp.exp(-jnp.dot(x, a)))


def network_loss(p, x, y):
    *hidden, (w, b) = p
    for v, c in hidden:
        x = jax.nn.relu(x @ v + c)
    rows = jnp.sum(jax.nn.log_softmax(x @ w + b) * jax.nn.one_hot(y, 10), -1)
    return -jnp.mean(rows)


def network_step(w0, w1, w2, b0, b1, b2, x, y):
    p = [(w0, b0), (w1, b1), (w2, b2)]
    g = jax.grad(network_loss)(p, x, y)
    p = jax.tree.map(lambda a, d: a - 0.1 * d, p, g)
    return tuple(w for w, _ in p) + tuple(b for _, b in p)


def logistic_loss(w, x, y):
    return jnp.mean(jnp.logaddexp(0.0, -y * (x @ w)))


def rosenbrock(x):
    low, high = x[:-1], x[1:]
    return jnp.sum(100.0 * (high - low**2) ** 2 + (1 - low) ** 2)


def gravity(p):
    d = p[:, None] - p[None]
    r2 = jnp.sum(d * d, -1) + 1e-2
    return -jnp.sum(1.0 / jnp.sqrt(r2))


def softmax(x):
    return jax.nn.softmax(x, -1)


# Names of cases begin with these, the longest that fits counts.
CASES = {
    "dispatch_scalar_add": lambda x: x + 1.0,
    "dispatch_20_args": lambda *x: sum(x),
    "chain_mean": chain,
    "axpy": lambda x, y: 2.5 * x + y,
    "gelu": lambda x: jax.nn.gelu(x),
    "softmax": softmax,
    "softmax_grad": jax.grad(lambda x: (softmax(x) ** 2).sum()),
    "layernorm": layernorm,
    "qmc_grad": jax.grad(energy, (0, 1)),
    "gemm_f32_default": lambda a, b: a @ b,
    "gemm_f32_highest": lambda a, b: jnp.matmul(a, b, precision="highest"),
    "gemm_bias_relu": lambda a, b, c: jax.nn.relu(a @ b + c),
    "rng_normal": lambda k: jax.random.normal(k, (1 << 22,)),
    "rng_uniform": lambda k: jax.random.uniform(k, (1 << 22,)),
    "mlp_sgd_step": network_step,
    "hessian_logreg": jax.hessian(logistic_loss),
    "hessian_rosenbrock": jax.hessian(rosenbrock),
    "vmap_dot": jax.vmap(lambda x, w, b: jnp.dot(x, w) + b, (0, None, None)),
    "per_sample_grads": jax.vmap(
        jax.grad(lambda p, x: jnp.sum(jnp.tanh(x @ p) ** 2)), (None, 0)
    ),
    "sum_axis1": lambda x: x.sum(1),
    "sum_axis0": lambda x: x.sum(0),
    "sum_all": lambda x: x.sum(),
    "argmax_axis1": lambda x: x.argmax(1),
    "transpose_add": lambda x: x.T + x,
    "cumsum_1d": lambda x: jnp.cumsum(x),
    "gather_rows": lambda x, i: x[i],
    "scatter_add": lambda i, u: jnp.zeros(16384, u.dtype).at[i].add(u),
    "nbody_grad": jax.grad(gravity),
}


class Worker:
    def __init__(self):
        self.drop()

    def drop(self, *_):
        self.f = self.args = None
        return "dropped"

    def prepare(self, name, folder):
        function = CASES[max((c for c in CASES if name.startswith(c)), key=len)]
        n = len(glob.glob(folder + "/in*.npy"))
        self.args = [jnp.asarray(np.load(f"{folder}/in{i}.npy")) for i in range(n)]
        self.f = jax.jit(function)
        start = time.perf_counter()
        self.f.lower(*self.args).compile()
        cold = time.perf_counter() - start
        self.call()
        return f"ready {1e3 * cold:.3f} 0"

    def call(self):
        return jax.block_until_ready(self.f(*self.args))

    def check(self, folder):
        worst = 0.0
        for i, mine in enumerate(jax.tree.leaves(self.call())):
            mine, other = np.asarray(mine), np.load(f"{folder}/out{i}.npy")
            if mine.shape != other.shape or mine.dtype != other.dtype:
                return f"error result {i}: {other.dtype}{other.shape}, JAX has {mine.dtype}{mine.shape}"
            mine, other = (np.atleast_1d(a).astype(np.float64) for a in (mine, other))
            size = np.max(np.abs(mine), initial=1e-30)
            difference = np.abs(mine - other)
            difference[np.isnan(mine) & np.isnan(other)] = 0
            worst = max(worst, float(np.max(difference, initial=0.0)) / size)
        return f"checked {worst:.2e}"

    def run(self, budget, calls=None):
        start = time.perf_counter()
        self.call()
        once = time.perf_counter() - start
        batch = calls or (int(40e-6 / once) + 1 if once < 20e-6 else 1)
        sample, end = [], time.perf_counter() + float(budget)
        while len(sample) < 2000 and (len(sample) < 3 or time.perf_counter() < end):
            start = time.perf_counter()
            if calls:
                for _ in range(batch):
                    result = self.f(*self.args)
                jax.block_until_ready(result)
            else:
                for _ in range(batch):
                    self.call()
            sample.append((time.perf_counter() - start) / batch)
        sample.sort()
        return f"time {1e6 * sample[len(sample) // 2]:.4f} {1e6 * sample[0]:.4f}"

    def queue(self, budget):
        return self.run(budget, calls=20)

    def version(self):
        return f"JAX {jax.__version__}"


def main():
    worker = Worker()
    for line in sys.stdin:
        command, *rest = line.split()
        try:
            answer = getattr(worker, command)(*rest)
        except Exception as e:  # what went wrong belongs to the case, not to the run
            answer = "error " + " ".join(str(e).split())[:300]
        print(answer, flush=True)


if __name__ == "__main__":
    main()
