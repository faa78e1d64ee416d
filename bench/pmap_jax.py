# SPDX-License-Identifier: Apache-2.0
"""The rows of pmap.c in JAX, by pmap and by shard_map: the better of the two.

The devices are those of the platform; on the host as many as JOT_HOST_DEVICES says.
"""

import os
import sys
import time

IS_GPU = os.environ.get("JOT_DEVICE", "").startswith("cuda")
os.environ["JAX_PLATFORMS"] = "cuda" if IS_GPU else "cpu"
if not IS_GPU:
    count = os.environ.get("JOT_HOST_DEVICES", "4")
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={count}"

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

try:
    from jax import shard_map
except ImportError:
    from jax.experimental.shard_map import shard_map

N = len(jax.devices())
MESH = Mesh(jax.devices(), ("i",))


def numbers(*shape):
    return 0.1 * jax.random.normal(jax.random.key(1), shape, jnp.float32)


def put(x, *spec):
    return jax.device_put(x, NamedSharding(MESH, P(*spec)))


def mapped(f, ins, outs):
    return jax.jit(shard_map(f, mesh=MESH, in_specs=ins, out_specs=outs))


def time_call(f, *args):
    best, end = float("inf"), None
    jax.block_until_ready(f(*args))
    while end is None or time.perf_counter() < end:
        start = time.perf_counter()
        jax.block_until_ready(f(*args))
        now = time.perf_counter()
        best = min(best, now - start)
        end = end or now + 0.5
    return best * 1e6


def both(f, x):
    """A function of one row, by pmap and by shard_map."""
    by_pmap = time_call(jax.pmap(f, axis_name="i"), x)
    by_map = time_call(mapped(lambda x: f(x[0])[None], P("i"), P("i")), put(x, "i"))
    return min(by_pmap, by_map)


def add(name):
    return both(lambda x: x + 1, numbers(N, 1))


def psum(name):
    def chain(x):
        return lax.fori_loop(0, 1000, lambda k, x: lax.pmean(x, "i"), x)

    x = numbers(N, 1)
    return (time_call(jax.pmap(chain, axis_name="i"), x) - add(name)) / 1000


def large_psum(name):
    x = numbers(N, (64 if IS_GPU else 4) << 18)
    by_pmap = time_call(jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i"), x)
    by_map = time_call(mapped(lambda x: lax.psum(x[0], "i"), P("i"), P()), put(x, "i"))
    return min(by_pmap, by_map)


def product(precision):
    def row(name):
        size = 8192 if IS_GPU else 1024
        x = numbers(size, size)
        f = mapped(lambda a, b: jnp.matmul(a, b, precision=precision), (P("i"), P()), P("i"))
        return time_call(f, put(x, "i"), put(x))

    return row


def sgd(precision):
    def loss(p, x, y):
        (w1, b1), (w2, b2), (w3, b3) = p
        h = jax.nn.relu(jnp.matmul(x, w1, precision=precision) + b1)
        h = jax.nn.relu(jnp.matmul(h, w2, precision=precision) + b2)
        rows = jax.nn.log_softmax(jnp.matmul(h, w3, precision=precision) + b3)
        return -jnp.mean(jnp.sum(rows * y, 1))

    def step(p, x, y):
        g = lax.pmean(jax.grad(loss)(p, x, y), "i")
        return jax.tree.map(lambda a, d: a - 0.1 * d, p, g)

    def row(name):
        rows = 1024 if IS_GPU else 64
        p = [(numbers(a, b), numbers(1, b)) for a, b in ((784, 512), (512, 512), (512, 10))]
        x, y = numbers(N, rows, 784), numbers(N, rows, 10)
        f = jax.pmap(step, axis_name="i", in_axes=(None, 0, 0))
        return time_call(f, p, x, y)

    return row


def heat(name):
    size, steps = (4096, 1000) if IS_GPU else (512, 100)
    down = [(i, i + 1) for i in range(N - 1)]
    up = [(i + 1, i) for i in range(N - 1)]

    def step(t, u):
        above = lax.ppermute(u[-1:], "i", down)
        below = lax.ppermute(u[:1], "i", up)
        wide, tall = jnp.pad(u, ((0, 0), (1, 1))), jnp.concatenate([above, u, below])
        around = wide[:, :-2] + wide[:, 2:] + tall[:-2] + tall[2:]
        return u + 0.2 * (around - 4 * u)

    f = mapped(lambda u: lax.fori_loop(0, steps, step, u), P("i"), P("i"))
    return time_call(f, put(numbers(size, size), "i"))


ROWS = {
    "scalar add over all": add,
    "psum of a scalar": psum,
    "psum of a block": large_psum,
    "product by rows, f32": product("highest"),
    "product by rows, TF32": product("default"),
    "SGD of an MLP, f32": sgd("highest"),
    "SGD of an MLP, TF32": sgd("default"),
    "heat with halos": heat,
}

print(f"JAX {jax.__version__} on {N} devices, us")
for name, row in ROWS.items():
    if len(sys.argv) == 1 or any(word in name for word in sys.argv[1:]):
        print(f"{name:28} {row(name):12.1f}", flush=True)
