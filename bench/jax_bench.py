# SPDX-License-Identifier: Apache-2.0
"""The cases in JAX; compare.py starts it (worker.py has the protocol)."""

import os

import worker

os.environ["JAX_PLATFORMS"] = "cuda" if worker.IS_GPU else "cpu"
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

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


def convolved(x, w, b):
    x = lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    squares = (1, 2, 2, 1)
    return lax.reduce_window(
        jax.nn.relu(x + b), -jnp.inf, lax.max, squares, squares, "VALID"
    )


def cnn_loss(p, x, y):
    w1, b1, w2, b2, w3, b3 = p
    x = convolved(convolved(x, w1, b1), w2, b2)
    x = jax.nn.log_softmax(x.reshape(x.shape[0], -1) @ w3 + b3)
    return -jnp.mean(jnp.sum(x * jax.nn.one_hot(y, 10), -1))


def cnn_train(*a):
    p, m, v, (t, x, y) = a[:6], a[6:12], a[12:18], a[18:]
    loss, g = jax.value_and_grad(cnn_loss)(p, x, y)
    clip = jnp.minimum(1.0, 1.0 / jnp.sqrt(sum(jnp.sum(d * d) for d in g)))
    g = [d * clip for d in g]
    m = [0.9 * a + 0.1 * d for a, d in zip(m, g)]
    v = [0.999 * a + 0.001 * d * d for a, d in zip(v, g)]
    t = t + 1
    p = [
        a - 1e-3 * (b / (1 - 0.9**t)) / (jnp.sqrt(c / (1 - 0.999**t)) + 1e-8)
        for a, b, c in zip(p, m, v)
    ]
    return *p, *m, *v, t, loss


def logistic_loss(w, x, y):
    return jnp.mean(jnp.logaddexp(0.0, -y * (x @ w)))


def rosenbrock(x):
    low, high = x[:-1], x[1:]
    return jnp.sum(100.0 * (high - low**2) ** 2 + (1 - low) ** 2)


def gravity(p):
    d = p[:, None] - p[None]
    r2 = jnp.sum(d * d, -1) + 1e-2
    return -jnp.sum(1.0 / jnp.sqrt(r2))


def solution(w, b, t, x):
    h = jnp.stack([t, x])
    for v, c in zip(w[:-1], b[:-1]):
        h = jnp.tanh(h @ v + c)
    return (h @ w[-1] + b[-1])[0]


def burgers_loss(w, b, t, x):
    def residual(t, x):
        u, u_t = solution(w, b, t, x), jax.grad(solution, 2)(w, b, t, x)
        u_x = jax.grad(solution, 3)(w, b, t, x)
        u_xx = jax.grad(jax.grad(solution, 3), 3)(w, b, t, x)
        return u_t + u * u_x - 0.01 * u_xx

    return jnp.mean(jax.vmap(residual)(t, x) ** 2)


def burgers_grad(*a):
    return jax.grad(burgers_loss, (0, 1))(a[:4], a[4:8], *a[8:])


def spring(k):
    def step(s, _):
        x, v = s
        v = v + (-k * x / 1.0) * 0.01
        x = x + v * 0.01
        return (x, v), x

    (x, _), path = lax.scan(step, (jnp.float32(1), jnp.float32(0)), None, length=1000)
    return x, path


def spring_end(k):
    return spring(k)[0]


def spring_misfit(k):
    return (spring_end(k) - 0.5) ** 2


def logistic_map(x):
    def step(x, _):
        x = 4.0 * x * (1.0 - x)
        return x, x

    return lax.scan(step, x, None, length=100000)


def lorenz_rk4(x, y, z, h=0.01):
    def slope(s):
        x, y, z = s
        return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z

    def moved(s, k, h):
        return tuple(p + h * q for p, q in zip(s, k))

    def step(_, s):
        a = slope(s)
        b = slope(moved(s, a, h / 2))
        c = slope(moved(s, b, h / 2))
        d = slope(moved(s, c, h))
        return tuple(
            p + h / 6 * (a + 2 * b + 2 * c + d) for p, a, b, c, d in zip(s, a, b, c, d)
        )

    return lax.fori_loop(0, 1000, step, (x, y, z))


def brownian(key, x):
    def step(s, _):
        key, x = s
        key, now = jax.random.split(key)
        dw = jax.random.normal(now, x.shape) * 0.1
        return (key, x + 0.05 * x * 0.01 + 0.2 * x * dw), None

    return lax.scan(step, (key, x), None, length=1000)[0][1]


def heat_step(u):
    around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
    return u + 0.1 * (around - 4 * u)


def energy_after_100(u):
    u, _ = lax.scan(lambda u, _: (heat_step(u), None), u, None, length=100)
    return (u**2).sum()


def cosine_point(c):
    x = jnp.ones_like(c)
    return lax.scan(lambda x, _: (jnp.cos(c * x), None), x, None, length=100)[0]


def softmax(x):
    return jax.nn.softmax(x, -1)


def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8
    return jnp.einsum("bhqk,bhkd->bhqd", softmax(scores), v)


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
    "gemm_f32_3tf32": lambda a, b: jnp.matmul(a, b, precision="highest"),
    "gemm_bf16": lambda a, b: a @ b,
    "gemm_batched": lambda a, b: a @ b,
    "svd": lambda a: jnp.linalg.svd(a, full_matrices=False),
    "svd_batched": lambda a: jnp.linalg.svd(a, full_matrices=False),
    "eigh": lambda a: jnp.linalg.eigh(a),
    "qr": lambda a: jnp.linalg.qr(a),
    "cholesky": jnp.linalg.cholesky,
    "chol_batched": jnp.linalg.cholesky,
    "solve": jnp.linalg.solve,
    "solve_batched": jnp.linalg.solve,
    "inv": jnp.linalg.inv,
    "attention_fwd": attention,
    "attention_grad": jax.grad(
        lambda q, k, v: attention(q, k, v).astype(jnp.float32).sum(), (0, 1, 2)
    ),
    "gemm_bias_relu": lambda a, b, c: jax.nn.relu(a @ b + c),
    "rng_normal": lambda k: jax.random.normal(k, (1 << 22,)),
    "rng_normal_2^27": lambda k: jax.random.normal(k, (1 << 27,)),
    "rng_uniform": lambda k: jax.random.uniform(k, (1 << 22,)),
    "rng_uniform_2^27": lambda k: jax.random.uniform(k, (1 << 27,)),
    "mlp_sgd_step_tf32": network_step,
    "mlp_sgd_step": network_step,
    "cnn_train_step": cnn_train,
    "hessian_logreg": jax.hessian(logistic_loss),
    "hessian_logreg_tf32": jax.hessian(logistic_loss),
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
    "fft2_c64": jnp.fft.fft2,
    "rfft_batch": jnp.fft.rfft,
    "cumsum_1d": lambda x: jnp.cumsum(x),
    "sort_1d": lambda x: jnp.sort(x),
    "argsort_1d": lambda x: jnp.argsort(x),
    "top_k_100": lambda x: lax.top_k(x, 100)[0],
    "gather_rows": lambda x, i: x[i],
    "scatter_add": lambda i, u: jnp.zeros(4096, u.dtype).at[i].add(u),
    "scatter_add_16384": lambda i, u: jnp.zeros(16384, u.dtype).at[i].add(u),
    "nbody_grad": jax.grad(gravity),
    "pinn_grad": burgers_grad,
    "spring_1_T1000": spring,
    "spring_1_T1000_grad": jax.grad(spring_misfit),
    "spring_vmap_T1000": jax.vmap(spring_end),
    "spring_vmap_traj": jax.vmap(spring),
    "spring_vmap_grad": jax.vmap(jax.grad(spring_misfit)),
    "quadmap": logistic_map,
    "lorenz_rk4": lorenz_rk4,
    "sde": brownian,
    "heat2d_1024": lambda u: lax.fori_loop(0, 1000, lambda i, u: heat_step(u), u),
    "heat2d_256": lambda u: lax.fori_loop(0, 1000, lambda i, u: heat_step(u), u),
    "heat2d_grad": jax.grad(energy_after_100),
    "fixed_point": cosine_point,
}


class Jax(worker.Worker):
    cases = CASES

    def version(self):
        return f"JAX {jax.__version__}"

    def array(self, a):
        return jnp.asarray(a.view(jnp.bfloat16) if a.dtype.kind == "V" else a)

    def jit(self, name, function):
        return jax.jit(function)

    def compile(self):
        self.f.lower(*self.args).compile()

    def wait(self, result):
        return jax.block_until_ready(result)

    def leaves(self, result):
        return [np.asarray(leaf) for leaf in jax.tree.leaves(result)]


if __name__ == "__main__":
    worker.serve(Jax())
