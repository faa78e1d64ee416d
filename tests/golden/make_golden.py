#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden files of this directory with JAX: what operations, derivatives, types and
random numbers are, by somebody else's account.

    pip install jax && JAX_PLATFORMS=cpu tests/golden/make_golden.py

A file is lines of words:

    values NAME TYPE HEX             elements, each by its bits, first the highest digit
    test NAME exact | ulp N | close R
    apply vjp MASK | jvp MASK | hessian MASK | vmap SIZE AXIS ...
    op STATEMENT | STATEMENT ...     nodes in the text form of graphs; the last is the result
    in NAME ...
    out TYPE HEX
    promote A WEAK B WEAK RESULT WEAK
    random FUNCTION DTYPE SEED ARGUMENT ... TYPE HEX

XLA takes denormal operands for zero on the CPU and makes no denormal results, so no operand here
is denormal, and denormals.golden comes from NumPy.  XLA's elementary functions are off by up to
hundreds of units in the last place, so finite results of these are NumPy's in a wider type, rounded,
after a check that JAX means the same; what is NaN, infinite or zero is JAX's word.
"""
import os
import sys

os.environ["JAX_ENABLE_X64"] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

NAMES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "c64": np.complex64,
    "c128": np.complex128,
}
NAME_OF = {np.dtype(t): n for n, t in NAMES.items()}
FLOATS = ["f16", "bf16", "f32", "f64"]
INTEGERS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
COMPLEX = ["c64", "c128"]
random = np.random.default_rng(7)


def hex_of(x):
    x = np.ascontiguousarray(x)
    if np.iscomplexobj(x):
        x = x.view(x.real.dtype)
    size = x.dtype.itemsize
    return "".join("%0*x" % (2 * size, int(v)) for v in x.reshape(-1).view("u%d" % size)) or "-"


def type_of(x):
    return "%s[%s]" % (NAME_OF[np.dtype(x.dtype)], ",".join(str(n) for n in x.shape))


class File:
    def __init__(self, name):
        self.path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".golden")
        self.lines = ["jot golden 1", "made with jax %s, jaxlib %s, numpy %s" % (
            jax.__version__, jax.lib.__version__, np.__version__)]
        self.names = {}

    def values(self, x):
        x = np.asarray(x)
        key = (type_of(x), hex_of(x))
        if key not in self.names:
            self.names[key] = "v%d" % len(self.names)
            self.lines.append("values %s %s %s" % (self.names[key], *key))
        return self.names[key]

    # out: arrays, or a function of the operands.
    def test(self, name, how, op, operands, out, apply=None):
        operands = [np.asarray(x) for x in operands]
        if callable(out):
            out = out(*[jnp.asarray(x) for x in operands])
        if not isinstance(out, (list, tuple)):
            out = [out]
        out = [np.asarray(x) for x in out]
        names = [self.values(x) for x in operands]
        self.lines.append("test %s %s" % (name, how))
        if apply:
            self.lines.append("apply " + apply)
        self.lines.append("op " + op)
        self.lines.append("in " + " ".join(names))
        self.lines += ["out %s %s" % (type_of(x), hex_of(x)) for x in out]

    def write(self):
        with open(self.path, "w", encoding="ascii") as f:
            f.write("\n".join(self.lines) + "\n")
        print(self.path, os.path.getsize(self.path))


# -- Operands


def cast(values, name):
    with np.errstate(all="ignore"):
        return np.array(values, np.float64).astype(NAMES[name])


def no_denormals(x):
    real = np.abs(x.astype(np.float64))
    tiny = float(ml_dtypes.finfo(x.dtype).tiny)
    return x[~((real > 0) & (real < tiny))]


def float_values(name):
    info = ml_dtypes.finfo(NAMES[name])
    eps, big, tiny = float(info.eps), float(info.max), float(info.tiny)
    v = [0.0, -0.0, np.inf, -np.inf, np.nan, big, -big, tiny, -tiny, eps, -eps, 1 + eps,
         1 - eps / 2, np.pi, -np.pi, np.pi / 2, 1e5, -1e5, 1e10, 1e22, -1e16, 88, -88, 89, 104, 710,
         -746, 11.09, -17]
    for x in (1, 0.5, 2, 3, 0.1, 1.5, 2.5, 10, 0.999, 1e-3, 0.25, 20.75):
        v += [x, -x]
    v += list(random.normal(0, 2, 16)) + list(random.normal(0, 60, 6))
    return no_denormals(cast(v, name))


def float_pairs(name):
    info = ml_dtypes.finfo(NAMES[name])
    big, tiny = float(info.max), float(info.tiny)
    v = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 7.25, 1e-3, big, -big, tiny, np.inf, -np.inf,
         np.nan, 2.5, -1.5, 100, 0.1]
    return no_denormals(cast(v, name))


def integer_values(name):
    info = np.iinfo(NAMES[name])
    v = [0, 1, 2, 3, 5, 7, 8, 10, 31, 63, 64, 100, int(info.max), int(info.max) - 1,
         int(info.max) // 2]
    if info.min < 0:
        v += [-1, -2, -3, -7, -8, -10, -100, int(info.min), int(info.min) + 1]
    return np.array(v, NAMES[name])


def complex_values(name):
    part = [0.5, -0.5, 2.0, -2.0, 0.1, -1.5, 3.0, -0.75]
    v = [complex(a, b) for a in part for b in part]
    v += [complex(a, b) for a in (-2.0, -0.5, 0.5, 2.0) for b in (0.0, -0.0)]
    v += [complex(a, b) for b in (-2.0, -0.5, 0.5, 2.0) for a in (0.0, -0.0)]
    return np.array(v, NAMES[name])


def values_of(name):
    if name == "bool":
        return np.array([False, True])
    if name in INTEGERS:
        return integer_values(name)
    return complex_values(name) if name in COMPLEX else float_values(name)


# -- Elementwise


UNARY = {
    # name: function, bound in ULP; half types have 1
    "neg": (lax.neg, 0), "sign": (lax.sign, 0), "abs": (lax.abs, 0), "floor": (lax.floor, 0),
    "ceil": (lax.ceil, 0),
    "round_even": (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), 0),
    "round_away": (lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), 0),
    "is_finite": (lax.is_finite, 0),
    "exp": (lax.exp, 2), "exp2": (lax.exp2, 2), "expm1": (lax.expm1, 2), "log": (lax.log, 2),
    "log1p": (lax.log1p, 2), "sqrt": (lax.sqrt, 0.5), "rsqrt": (lax.rsqrt, 2),
    "cbrt": (lax.cbrt, 4), "sin": (lax.sin, 2), "cos": (lax.cos, 2), "tan": (lax.tan, 4),
    "asin": (lax.asin, 4), "acos": (lax.acos, 4), "atan": (lax.atan, 4), "sinh": (lax.sinh, 4),
    "cosh": (lax.cosh, 4), "tanh": (lax.tanh, 2), "asinh": (lax.asinh, 4), "acosh": (lax.acosh, 4),
    "atanh": (lax.atanh, 4), "logistic": (lax.logistic, 4), "erf_inv": (lax.erf_inv, 8),
}
WIDE = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2, "pow": np.power,
    "rsqrt": lambda x: 1 / np.sqrt(x), "logistic": lambda x: 1 / (1 + np.exp(-x)), "erf_inv": None,
}
BINARY = {
    "add": (lax.add, 0), "sub": (lax.sub, 0), "mul": (lax.mul, 0), "div": (lax.div, 0),
    "rem": (lax.rem, 0), "pow": (lax.pow, 4), "max": (lax.max, 0), "min": (lax.min, 0),
    "atan2": (lax.atan2, 4), "nextafter": (lax.nextafter, 0), "eq": (lax.eq, 0), "ne": (lax.ne, 0),
    "lt": (lax.lt, 0), "le": (lax.le, 0), "gt": (lax.gt, 0), "ge": (lax.ge, 0),
}
COMPLEX_UNARY = ["neg", "sign", "abs", "exp", "exp2", "expm1", "log", "log1p", "sqrt", "rsqrt",
                 "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
                 "acosh", "atanh", "logistic"]


def how(ulp, name):
    if ulp == 0:
        return "exact"
    return "ulp %g" % (1 if name in ("f16", "bf16") else ulp)


# y with its finite numbers from NumPy in a wider type.
def widened(op, y, *operands):
    wide = WIDE.get(op) or getattr(np, op, None)
    if wide is None or y.dtype.kind == "c":
        return y
    t = np.longdouble if y.dtype == np.float64 else np.float64
    with np.errstate(all="ignore"):
        z = wide(*[np.asarray(x).astype(t) for x in operands])
        rounded = z.astype(y.dtype)
        # Half types are computed in f32, so their denormals are no denormals to XLA.
        tiny = 0 if y.dtype == np.float16 else float(ml_dtypes.finfo(y.dtype).tiny)
        ok = np.isfinite(y) & np.isfinite(rounded) & (np.abs(z) >= tiny)
        coarse = {2: 0.5, 4: 1e-4, 8: 1e-9}[y.dtype.itemsize]
        a, b = y[ok].astype(t), z[ok]
        assert np.all(np.abs(a - b) <= coarse * np.abs(b) + 1e-5 * (y.dtype.itemsize == 2) + tiny), (op, a, b)
        return np.where(ok, rounded, y).astype(y.dtype)


def unary(f, op, name, ulp, function):
    x = values_of(name)
    y = np.asarray(function(jnp.asarray(x)))
    if ulp:
        y = widened(op, y, x)
    f.test("%s_%s" % (op, name), how(ulp, name), "%s %%0 : %s" % (op, type_of(y)), [x], y)


def binary(f, op, name, ulp, function, v, w=None):
    x, y = np.reshape(v, (-1, 1)), np.reshape(v if w is None else w, (1, -1))
    z = np.asarray(function(*jnp.broadcast_arrays(jnp.asarray(x), jnp.asarray(y))))
    if ulp:
        z = widened(op, z, *np.broadcast_arrays(x, y))
    f.test("%s_%s" % (op, name), how(ulp, name), "%s %%0, %%1 : %s" % (op, type_of(z)), [x, y], z)


def floats():
    f = File("floats")
    for name in FLOATS:
        for op, (function, ulp) in UNARY.items():
            unary(f, op, name, ulp, function)
        for op, (function, ulp) in BINARY.items():
            if op == "nextafter" and name in ("f16", "bf16"):
                continue  # its results around 0 are denormal
            binary(f, op, name, ulp, function, float_pairs(name))
        x = values_of(name)
        for n in (-3, -1, 0, 1, 2, 3, 5):
            # XLA multiplies in another order, so large powers differ in the last place.
            bound = "exact" if 0 <= n < 3 else "ulp 4"
            f.test("integer_pow_%d_%s" % (n, name), bound,
                   "integer_pow %%0 {exponent=%d} : %s" % (n, type_of(x)), [x],
                   lambda v, n=n: lax.integer_pow(v, n))
        low, high = cast([-1.0], name), cast([2.0], name)
        f.test("clamp_" + name, "exact", "clamp %%0, %%1, %%2 : %s" % type_of(x), [low, x, high],
               lambda a, b, c: lax.clamp(a[0], b, c[0]))
        if name in ("f32", "f64"):
            for e, m in ((8, 7), (5, 10), (5, 2), (8, 23)):
                f.test("reduce_precision_%d_%d_%s" % (e, m, name), "exact",
                       "reduce_precision %%0 {exponent_bits=%d, mantissa_bits=%d} : %s" % (
                           e, m, type_of(x)), [x],
                       lambda v, e=e, m=m: lax.reduce_precision(v, e, m))
    f.write()


def integers():
    f = File("integers")
    for name in INTEGERS:
        v = integer_values(name)
        bits = np.iinfo(NAMES[name]).bits
        for op in ("neg", "sign", "abs"):
            if name[0] == "i" or op != "abs":
                unary(f, op, name, 0, UNARY[op][0])
        for op, g in (("not", lax.bitwise_not), ("popcount", lax.population_count),
                      ("clz", lax.clz)):
            unary(f, op, name, 0, g)
        for op in ("add", "sub", "mul", "div", "rem", "max", "min", "eq", "ne", "lt", "le", "gt",
                   "ge"):
            binary(f, op, name, 0, BINARY[op][0], v)
        for op, g in (("and", lax.bitwise_and), ("or", lax.bitwise_or), ("xor", lax.bitwise_xor)):
            binary(f, op, name, 0, g, v)
        counts = np.array([0, 1, 2, bits // 2, bits - 1, bits, bits + 1, 100], NAMES[name])
        for op, g in (("shl", lax.shift_left), ("shr_logical", lax.shift_right_logical),
                      ("shr_arith", lax.shift_right_arithmetic)):
            binary(f, op, name, 0, g, v, counts)
        for n in (0, 1, 2, 3, 5):
            f.test("integer_pow_%d_%s" % (n, name), "exact",
                   "integer_pow %%0 {exponent=%d} : %s" % (n, type_of(v)), [v],
                   lambda x, n=n: lax.integer_pow(x, n))
    p, q = np.array([[False], [True]]), np.array([[False, True]])
    for op, g in (("and", lax.bitwise_and), ("or", lax.bitwise_or), ("xor", lax.bitwise_xor),
                  ("eq", lax.eq), ("ne", lax.ne), ("lt", lax.lt), ("ge", lax.ge)):
        f.test("%s_bool" % op, "exact", "%s %%0, %%1 : bool[2,2]" % op, [p, q],
               lambda a, b, g=g: g(*jnp.broadcast_arrays(a, b)))
    f.test("not_bool", "exact", "not %0 : bool[1,2]", [q], lax.bitwise_not)
    k = np.array([0, 0xffffffff, 0x13198a2e, 5], np.uint32)
    l = np.array([0, 0xffffffff, 0x03707344, 7], np.uint32)
    x = np.array([0, 0xffffffff, 0x243f6a88, 1], np.uint32)
    y = np.array([0, 0xffffffff, 0x85a308d3, 0], np.uint32)
    from jax.extend.random import threefry2x32_p
    f.test("threefry", "exact", "threefry2x32 %0, %1, %2, %3 : u32[4], u32[4]", [k, l, x, y],
           lambda *a: threefry2x32_p.bind(*a))
    f.write()


def complexes():
    f = File("complex")
    for name in COMPLEX:
        bound = "close %g" % (4e-6 if name == "c64" else 1e-14)
        x = complex_values(name)
        for op in COMPLEX_UNARY:
            y = np.asarray(UNARY[op][0](jnp.asarray(x)))
            f.test("%s_%s" % (op, name), "exact" if op == "neg" else bound,
                   "%s %%0 : %s" % (op, type_of(y)), [x], y)
        for op, g in (("real", lax.real), ("imag", lax.imag), ("conj", lax.conj)):
            y = np.asarray(g(jnp.asarray(x)))
            f.test("%s_%s" % (op, name), "exact", "%s %%0 : %s" % (op, type_of(y)), [x], y)
        some = x[::5].reshape(-1, 1), x[::7].reshape(1, -1)
        for op in ("add", "sub", "mul", "div", "pow", "eq", "ne"):
            y = np.asarray(BINARY[op][0](*jnp.broadcast_arrays(*some)))
            f.test("%s_%s" % (op, name), "exact" if op in ("add", "sub", "eq", "ne") else bound,
                   "%s %%0, %%1 : %s" % (op, type_of(y)), some, y)
        for n in (-2, 0, 1, 2, 3):
            f.test("integer_pow_%d_%s" % (n, name), bound,
                   "integer_pow %%0 {exponent=%d} : %s" % (n, type_of(x)), [x],
                   lambda v, n=n: lax.integer_pow(v, n))
    f.write()


def converts():
    f = File("converts")
    for a in NAMES:
        x = values_of(a)
        if a in FLOATS:
            edges = [127.5, 128, -128.9, 255.5, 256, 32767.5, 65535.9, -1e-3, 2147483648.0,
                     -2147483648.0, 4294967296.0, 9.3e18, -9.3e18, 1.9e19, 2.0 ** 63, 2.0 ** 64]
            x = np.concatenate([x[:40], no_denormals(cast(edges, a))])
        for b in NAMES:
            y = jnp.asarray(x)
            if a in COMPLEX and b in FLOATS + INTEGERS:
                y = y.real
            y = np.asarray(y.astype(NAMES[b]))
            f.test("convert_%s_%s" % (a, b), "exact",
                   "convert %%0 {dtype=%s} : %s" % (b, type_of(y)), [x], y)
    f.write()


# -- Denormals, by NumPy


def denormals():
    f = File("denormals")
    for name in FLOATS:
        tiny = NAMES[name](ml_dtypes.finfo(NAMES[name]).tiny)
        least = np.array([1], "u%d" % tiny.itemsize).view(NAMES[name])[0]
        v = np.array([least, -least, tiny / NAMES[name](2), tiny - least, -(tiny - least),
                      least * NAMES[name](5), tiny, NAMES[name](0.5), NAMES[name](-3),
                      NAMES[name](0)], NAMES[name])
        wide = np.float32 if name in ("f16", "bf16") else NAMES[name]
        narrow = lambda g: lambda *a: g(*[b.astype(wide) for b in a]).astype(NAMES[name])
        with np.errstate(all="ignore"):
            for op, g in (("neg", np.negative), ("abs", np.abs), ("sqrt", np.sqrt),
                          ("sign", np.sign), ("floor", np.floor), ("ceil", np.ceil)):
                y = narrow(g)(v)
                f.test("%s_%s" % (op, name), "exact", "%s %%0 : %s" % (op, type_of(y)), [v], y)
            for op, g in (("exp", np.exp), ("expm1", np.expm1), ("log", np.log), ("sin", np.sin),
                          ("tan", np.tan), ("atan", np.arctan), ("tanh", np.tanh),
                          ("cbrt", np.cbrt), ("log1p", np.log1p), ("sinh", np.sinh),
                          ("asin", np.arcsin), ("asinh", np.arcsinh), ("atanh", np.arctanh)):
                y = narrow(g)(v)
                f.test("%s_%s" % (op, name), how(4, name), "%s %%0 : %s" % (op, type_of(y)), [v], y)
            x, y = v.reshape(-1, 1), v.reshape(1, -1)
            for op, g in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply),
                          ("div", np.divide), ("max", np.maximum), ("min", np.minimum),
                          ("rem", np.fmod)):
                z = narrow(g)(x, y)
                f.test("%s_%s" % (op, name), "exact", "%s %%0, %%1 : %s" % (op, type_of(z)), [x, y],
                       z)
            for op, g in (("eq", np.equal), ("lt", np.less), ("le", np.less_equal)):
                z = g(x, y)
                f.test("%s_%s" % (op, name), "exact", "%s %%0, %%1 : %s" % (op, type_of(z)), [x, y],
                       z)
            for b in FLOATS:
                y = v.astype(np.float64).astype(NAMES[b])
                f.test("convert_%s_%s" % (name, b), "exact",
                       "convert %%0 {dtype=%s} : %s" % (b, type_of(y)), [v], y)
    f.write()


# -- Arrays


def reductions():
    f = File("reductions")
    nan, inf = np.nan, np.inf
    rows = [[1, 2, 3, 4], [-0.0, -0.0, -0.0, -0.0], [0.0, -0.0, -0.0, 0.0], [-0.0, 0.0, -0.0, -0.0],
            [nan, 1, 2, 3], [1, nan, nan, 0], [inf, 1, -inf, 2], [inf, inf, 1, 2],
            [-inf, -inf, -inf, -inf], [3, 3, 1, 3], [-1, -1, 2, 2], [inf, nan, inf, -inf],
            [nan, nan, nan, nan]]
    reducers = {"reduce_sum": lax.reduce_sum, "reduce_prod": lax.reduce_prod,
                "reduce_max": lax.reduce_max, "reduce_min": lax.reduce_min,
                "reduce_and": lax.reduce_and, "reduce_or": lax.reduce_or,
                "reduce_xor": lax.reduce_xor}
    running = {"cumsum": lax.cumsum, "cumprod": lax.cumprod, "cummax": lax.cummax,
               "cummin": lax.cummin}
    for name in FLOATS + INTEGERS + ["bool", "c64"]:
        if name in FLOATS:
            x = cast(rows, name)
        elif name == "bool":
            x = np.array([[0, 0, 1], [0, 0, 0], [1, 1, 1]], bool)
        elif name == "c64":
            x = np.array([[1, 2j, -3], [0.5, 1 + 1j, 4]], NAMES[name])
        else:
            v = integer_values(name)
            x = np.concatenate([v, v[::-1]])[:24].reshape(4, 6)
        for op, g in reducers.items():
            is_bits = op in ("reduce_and", "reduce_or", "reduce_xor")
            if is_bits != (name == "bool") and not (is_bits and name in INTEGERS):
                continue
            if name == "c64" and op in ("reduce_max", "reduce_min"):
                continue
            for axes in ((1,), (0,), (0, 1)):
                y = np.asarray(g(jnp.asarray(x), axes))
                f.test("%s_%s_%s" % (op, name, "".join(map(str, axes))), "exact",
                       "%s %%0 {axes=[%s]} : %s" % (op, ",".join(map(str, axes)), type_of(y)), [x],
                       y)
            empty = np.zeros((0, 2), NAMES[name])
            y = np.asarray(g(jnp.asarray(empty), (0,)))
            f.test("%s_%s_empty" % (op, name), "exact", "%s %%0 {axes=[0]} : %s" % (op, type_of(y)),
                   [empty], y)
        if name not in ("bool", "c64"):
            for op, g in (("argmax", lax.argmax), ("argmin", lax.argmin)):
                for axis in (0, 1):
                    y = np.asarray(g(jnp.asarray(x), axis, np.int32))
                    f.test("%s_%s_%d" % (op, name, axis), "exact",
                           "%s %%0 {dtype=i32, axis=%d} : %s" % (op, axis, type_of(y)), [x], y)
        if name != "bool":
            for op, g in running.items():
                if name == "c64" and op in ("cummax", "cummin"):
                    continue
                for axis, reverse in ((1, 0), (0, 1)):
                    f.test("%s_%s_%d" % (op, name, axis), "exact",
                           "%s %%0 {axis=%d, reverse=%d} : %s" % (op, axis, reverse, type_of(x)),
                           [x], lambda v, g=g, a=axis, r=reverse: g(v, a, bool(r)))
    for name in ("f32", "f64"):
        x = cast([[0.5, -1, 2, 100, 3], [-inf, -inf, 1, inf, 2], [1, nan, 2, 3, 4]], name)
        f.test("cumlogsumexp_%s" % name, "ulp 16",
               "cumlogsumexp %%0 {axis=1, reverse=0} : %s" % type_of(x), [x],
               lambda v: lax.cumlogsumexp(v, 1))
    f.write()


def layouts():
    f = File("layouts")
    x = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    f.test("transpose", "exact", "transpose %0 {axes=[1,2,0]} : i32[3,4,2]", [x],
           lambda v: lax.transpose(v, (1, 2, 0)))
    f.test("reshape", "exact", "reshape %0 {dims=[4,6]} : i32[4,6]", [x],
           lambda v: lax.reshape(v, (4, 6)))
    f.test("rev", "exact", "rev %0 {axes=[0,2]} : i32[2,3,4]", [x], lambda v: lax.rev(v, (0, 2)))
    f.test("broadcast", "exact", "broadcast_in_dim %0 {dims=[2,3,5,4], axes=[0,1,3]} : i32[2,3,5,4]",
           [x], lambda v: lax.broadcast_in_dim(v, (2, 3, 5, 4), (0, 1, 3)))
    f.test("slice", "exact", "slice %0 {starts=[0,1,0], limits=[2,3,4], strides=[1,1,3]} : i32[2,2,2]",
           [x], lambda v: lax.slice(v, (0, 1, 0), (2, 3, 4), (1, 1, 3)))
    for low, high, interior in (((1, 0, 2), (0, 2, 1), (0, 1, 0)), ((-1, 1, 0), (0, -1, -2), (0, 0, 1)),
                                ((0, -2, -1), (1, 3, -1), (2, 2, 0)), ((-1, -1, -1), (-1, 0, 0), (1, 1, 1))):
        y = np.asarray(lax.pad(jnp.asarray(x), np.int32(-7), list(zip(low, high, interior))))
        f.test("pad", "exact", "pad %%0, %%1 {low=%s, high=%s, interior=%s} : %s" % (
            str(list(low)), str(list(high)), str(list(interior)), type_of(y)), [x, np.int32(-7)], y)
    y = np.arange(100, 108, dtype=np.int32).reshape(2, 1, 4)
    f.test("concatenate", "exact", "concatenate %0, %1, %0 {axis=1} : i32[2,7,4]", [x, y],
           lambda a, b: lax.concatenate([a, b, a], 1))
    for axis in (0, 1):
        f.test("iota", "exact", "iota {dtype=f32, dims=[3,5], axis=%d} : f32[3,5] | add %%1, %%0 : f32[3,5]"
               % axis, [np.zeros((3, 5), np.float32)],
               lambda z, a=axis: z + lax.broadcasted_iota(np.float32, (3, 5), a))
    p = np.array([True, False, True])
    f.test("select", "exact", "select %0, %1, %2 : i32[3]",
           [p, np.array([1, 2, 3], np.int32), np.array([4, 5, 6], np.int32)],
           lambda c, a, b: lax.select(c, a, b))
    for name in ("f32", "f64", "i32", "u8", "f16", "bf16", "c64"):
        a = (np.arange(24) % 7 - (0 if name == "u8" else 3)).astype(NAMES[name]).reshape(2, 3, 4)
        b = (np.arange(40) % 5 - (0 if name == "u8" else 2)).astype(NAMES[name]).reshape(2, 4, 5)
        f.test("dot_batch_" + name, "exact",
               "dot_general %%0, %%1 {lhs_contract=[2], rhs_contract=[1], lhs_batch=[0], rhs_batch=[0], "
               "precision=0} : %s[2,3,5]" % name, [a, b],
               lambda u, v: lax.dot_general(u, v, (((2,), (1,)), ((0,), (0,)))))
        f.test("dot_turned_" + name, "exact",
               "dot_general %%0, %%1 {lhs_contract=[0,2], rhs_contract=[0,1], lhs_batch=[], rhs_batch=[], "
               "precision=0} : %s[3,5]" % name, [a, b],
               lambda u, v: lax.dot_general(u, v, (((0, 2), (0, 1)), ((), ()))))
    f.write()


# Places that are data: every kind, mode and derivative, by the dimension numbers of JAX.
def indexing():
    f = File("indexing")
    clip, fill, drop = (lax.GatherScatterMode.CLIP, lax.GatherScatterMode.FILL_OR_DROP,
                        lax.GatherScatterMode.FILL_OR_DROP)
    x = np.arange(1, 21, dtype=np.float64).reshape(5, 4)
    i = np.array([[3], [-1], [0], [5], [3]], np.int32)
    rows = "offset_dims=[1], collapsed_dims=[0], index_map=[0]"
    g = lax.GatherDimensionNumbers((1,), (0,), (0,))
    for mode, how_out in ((clip, 0), (fill, 1)):
        f.test("gather_rows", "exact", "gather %%0, %%1 {%s, sizes=[1,4], mode=%d} : f64[5,4]"
               % (rows, how_out), [x, i],
               lambda v, at, m=mode: lax.gather(v, at, g, (1, 4), mode=m))
    for name in ("i8", "u16", "bool", "f16", "c64"):
        y = (np.arange(5) % 3).astype(NAMES[name])
        f.test("gather_fill_" + name, "exact", "gather %%0, %%1 {collapsed_dims=[0], index_map=[0], "
               "sizes=[1], mode=1} : %s[5]" % name, [y, i],
               lambda v, at: lax.gather(v, at, lax.GatherDimensionNumbers((), (0,), (0,)), (1,),
                                        mode=fill))
    z = np.arange(60, dtype=np.float64).reshape(3, 4, 5)
    at = np.array([[[0, 1], [3, 2]], [[1, 4], [2, 0]], [[9, 9], [-3, 1]]], np.int64)
    b = lax.GatherDimensionNumbers((2, 3), (), (1, 2), (0,), (0,))
    f.test("gather_batch", "exact", "gather %0, %1 {offset_dims=[2,3], collapsed_dims=[], operand_batch=[0], "
           "index_batch=[0], index_map=[1,2], sizes=[1,2,2], mode=0} : f64[3,2,2,2]", [z, at],
           lambda v, p: lax.gather(v, p, b, (1, 2, 2), mode=clip))
    for starts in ((1, 2), (-3, 9)):
        s = [np.int32(n) for n in starts]
        f.test("dynamic_slice", "exact", "dynamic_slice %0, %1, %2 {sizes=[2,3]} : f64[2,3]", [x] + s,
               lambda v, p, q: lax.dynamic_slice(v, (p, q), (2, 3), allow_negative_indices=False))
        f.test("dynamic_update_slice", "exact", "dynamic_update_slice %0, %1, %2, %3 : f64[5,4]",
               [x, -x[:2, :3].copy()] + s,
               lambda v, u, p, q: lax.dynamic_update_slice(v, u, (p, q), allow_negative_indices=False))
    scatters = {"scatter": lax.scatter, "scatter_add": lax.scatter_add, "scatter_mul": lax.scatter_mul,
                "scatter_min": lax.scatter_min, "scatter_max": lax.scatter_max}
    u = np.array([[2, -30, 4, 50.5], [7, 1, 3, 2], [1, 2, 3, 4], [5, 5, 5, 5], [16, 14, 0, 15]], np.float64)
    s = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    inside = np.array([[3], [1], [0], [2], [3]], np.int32)
    once = np.array([[3], [-1], [0], [5], [1]], np.int32)
    for op, function in scatters.items():
        places = once if op == "scatter" else i
        for mode, number in ((clip, 0), (drop, 3)):
            if op == "scatter" and number == 0:
                continue  # JAX leaves open which of two updates counts
            h = lambda v, p, w, function=function, m=mode: function(v, p, w, s, mode=m)
            text = "%s %%0, %%1, %%2 {%s, mode=%d} : f64[5,4]" % (op, rows, number)
            f.test(op, "exact", text, [x, places, u], h)
            if op == "scatter_mul":
                continue
            # JAX's derivative of extremes is infinite beside windows that are left out.
            places = inside if op in ("scatter_min", "scatter_max") else places
            unique = {"unique_indices": True} if op == "scatter" else {}
            d = lambda v, w, function=function, m=mode, k=unique, p=places: function(v, p, w, s, mode=m, **k)
            y, pull = jax.vjp(d, jnp.asarray(x), jnp.asarray(u))
            ct = np.cos(np.arange(20.0)).reshape(5, 4)
            f.test("vjp_" + op, "close 1e-15", text, [x, places, u, ct], [y] + list(pull(jnp.asarray(ct))),
                   "vjp 101")
    y, pull = jax.vjp(lambda v: lax.gather(v, i, g, (1, 4), mode=clip), jnp.asarray(x))
    f.test("vjp_gather", "close 1e-15", "gather %%0, %%1 {%s, sizes=[1,4], mode=0} : f64[5,4]" % rows,
           [x, i, u], [y, pull(jnp.asarray(u))[0]], "vjp 10")
    f.write()


# -- Derivatives


def vjps(f, name, bound, op, operands, function, mask=None):
    y, pull = jax.vjp(function, *[jnp.asarray(x) for x in operands])
    ct = jnp.ones_like(y)
    if jnp.iscomplexobj(y):
        ct = ct * (1 + 0.5j)
    cts = pull(ct)
    mask = mask or "1" * len(operands)
    out = [y] + [c for c, m in zip(cts, mask) if m == "1"]
    f.test(name, bound, op % {"t": type_of(np.asarray(y))}, list(operands) + [ct], out, "vjp " + mask)


def derivatives():
    f = File("derivatives")
    inf, nan = np.inf, np.nan
    for name in ("f32", "f64"):
        x = cast([0.0, -0.0, 0.25, -0.25, 0.5, 2.0, -2.0, 1.0, -1.0, 0.999, 30.0, -30.0], name)
        for op, (function, ulp) in UNARY.items():
            if op != "is_finite":
                # 1 - y and exp(y^2) make a unit of y many.
                bound = {"logistic": 64, "erf_inv": 128}.get(op, 16)
                some = x[np.abs(x) < 10] if op == "logistic" else x
                vjps(f, "vjp_%s_%s" % (op, name), "ulp %d" % bound, op + " %%0 : %(t)s", [some],
                     function)
        v = cast([0.0, -0.0, 1, -1, 2, -2.5, 3, 0.5], name)
        a, b = np.repeat(v, len(v)), np.tile(v, len(v))
        for op in ("add", "sub", "mul", "div", "rem", "pow", "max", "min", "atan2"):
            vjps(f, "vjp_%s_%s" % (op, name), "ulp 16", op + " %%0, %%1 : %(t)s", [a, b], BINARY[op][0])
        low, high = np.full_like(v, -1), np.full_like(v, 2)
        vjps(f, "vjp_clamp_" + name, "exact", "clamp %%0, %%1, %%2 : %(t)s", [low, v, high], lax.clamp)
        for n in (-2, 0, 1, 2, 3):
            vjps(f, "vjp_integer_pow_%d_%s" % (n, name), "ulp 8",
                 "integer_pow %%%%0 {exponent=%d} : %%(t)s" % n, [v], lambda z, n=n: lax.integer_pow(z, n))
        rows = cast([[1, 3, 3, 2], [2, 2, 2, 2], [0.0, -0.0, -1, -0.0], [-inf, 0, inf, inf],
                     [0, 1, 0, 2], [0, 3, 4, 5]], name)
        for op, g in (("reduce_sum", lax.reduce_sum), ("reduce_prod", lax.reduce_prod),
                      ("reduce_max", lax.reduce_max), ("reduce_min", lax.reduce_min)):
            some = np.delete(rows, 3, 0) if op == "reduce_prod" else rows
            vjps(f, "vjp_%s_%s" % (op, name), "ulp 8", op + " %%0 {axes=[1]} : %(t)s", [some],
                 lambda z, g=g: g(z, (1,)))
        finite = np.delete(rows, 3, 0)
        for op, g in (("cumsum", lax.cumsum), ("cumprod", lax.cumprod), ("cummax", lax.cummax),
                      ("cummin", lax.cummin), ("cumlogsumexp", lax.cumlogsumexp)):
            vjps(f, "vjp_%s_%s" % (op, name), "ulp 32", op + " %%0 {axis=1, reverse=0} : %(t)s",
                 [finite], lambda z, g=g: g(z, 1))
    for name in COMPLEX:
        bound = "close %g" % (2e-5 if name == "c64" else 2e-13)
        part = [0.5, -0.5, 2.0, -1.5, 0.1]
        z = np.array([complex(a, b) for a in part for b in part], NAMES[name])
        for op in COMPLEX_UNARY:
            vjps(f, "vjp_%s_%s" % (op, name), bound, op + " %%0 : %(t)s", [z], UNARY[op][0])
        for op, g in (("real", lax.real), ("imag", lax.imag), ("conj", lax.conj)):
            vjps(f, "vjp_%s_%s" % (op, name), bound, op + " %%0 : %(t)s", [z], g)
        for op in ("add", "sub", "mul", "div", "pow"):
            vjps(f, "vjp_%s_%s" % (op, name), bound, op + " %%0, %%1 : %(t)s", [z, z[::-1].copy()],
                 BINARY[op][0])
        part = NAMES["f32" if name == "c64" else "f64"]
        vjps(f, "vjp_complex_" + name, bound, "complex %%0, %%1 : %(t)s",
             [np.array([1, 2], part), np.array([3, 4], part)], lax.complex)
    # abs of a complex zero, and a real function of complex operands.
    z = np.array([0, 1 + 1j, -2j, 3], np.complex128)
    vjps(f, "vjp_abs_zero", "close 1e-14", "abs %%0 : %(t)s", [z], lax.abs)
    vjps(f, "vjp_square_modulus", "close 1e-14",
         "conj %%0 : c128[4] | mul %%0, %%1 : c128[4] | real %%2 : %(t)s", [z],
         lambda w: lax.real(w * lax.conj(w)))
    vjps(f, "vjp_convert", "exact", "convert %%0 {dtype=f32} : %(t)s", [np.array([1.5, 2.0])],
         lambda w: lax.convert_element_type(w, np.float32))
    f.write()


def transforms():
    f = File("transforms")
    x = np.array([0.3, -0.7, 1.1])
    m = np.array([[1.0, 2.0, 0.5], [0.25, -1.0, 0.75], [1.5, 0.5, -0.25]])
    hessians = [
        ("tanh %0 : f64[3] | mul %1, %0 : f64[3] | reduce_sum %2 {axes=[0]} : f64[]",
         lambda v: jnp.sum(jnp.tanh(v) * v)),
        ("exp %0 : f64[3] | reduce_prod %1 {axes=[0]} : f64[] | sin %2 : f64[]",
         lambda v: jnp.sin(jnp.prod(jnp.exp(v)))),
        ("mul %0, %0 : f64[3] | reduce_sum %1 {axes=[0]} : f64[] | sqrt %2 : f64[]",
         lambda v: jnp.sqrt(jnp.sum(v * v))),
        ("integer_pow %0 {exponent=3} : f64[3] | reduce_max %1 {axes=[0]} : f64[]",
         lambda v: jnp.max(v ** 3)),
        ("cumsum %0 {axis=0, reverse=0} : f64[3] | logistic %1 : f64[3] | "
         "reduce_sum %2 {axes=[0]} : f64[]", lambda v: jnp.sum(jax.nn.sigmoid(jnp.cumsum(v)))),
        ("atan2 %0, %0 : f64[3] | div %1, %0 : f64[3] | reduce_sum %2 {axes=[0]} : f64[]",
         lambda v: jnp.sum(jnp.arctan2(v, v) / v)),
    ]
    for i, (op, g) in enumerate(hessians):
        f.test("hessian_%d" % i, "close 1e-13", op, [x], jax.hessian(g), "hessian 1")
    op = ("dot_general %0, %1 {lhs_contract=[1], rhs_contract=[0], lhs_batch=[], rhs_batch=[], "
          "precision=0} : f64[3] | sin %2 : f64[3] | dot_general %3, %1 {lhs_contract=[0], "
          "rhs_contract=[0], lhs_batch=[], rhs_batch=[], precision=0} : f64[]")
    g = lambda a, v: jnp.sin(a @ v) @ v
    f.test("hessian_dot", "close 1e-13", op, [m, x], lambda a, v: jax.hessian(g, 1)(a, v),
           "hessian 01")
    y, dy = jax.jvp(g, (jnp.asarray(m), jnp.asarray(x)), (jnp.asarray(m.T), jnp.ones(3)))
    f.test("jvp_dot", "close 1e-14", op, [m, x, m.T.copy(), np.ones(3)], [y, dy], "jvp 11")
    # Maps, the mapped axis anywhere.
    batch = np.arange(24, dtype=np.float64).reshape(2, 3, 4) % 7 - 3
    other = np.arange(12, dtype=np.float64).reshape(3, 4) % 5 - 2
    pair = [("dot_general %0, %1 {lhs_contract=[0], rhs_contract=[0], lhs_batch=[], rhs_batch=[], "
             "precision=0} : f64[3,3]", lambda a, b: lax.dot_general(a, b, (((0,), (0,)), ((), ()))))]
    for op, g in pair:
        for i, j in ((0, None), (2, 1), (1, 0)):
            a, b = np.moveaxis(batch, 0, 0), other
            k = batch.shape[i]
            # Lanes [p, q] and [p, r] with the contracted extent in front.
            a = np.moveaxis(np.arange(k * 6, dtype=np.float64).reshape(k, 2, 3) % 5 - 2, 0, i)
            b = np.arange(6, dtype=np.float64).reshape(2, 3) - 2
            if j is not None:
                b = np.moveaxis(np.arange(k * 6, dtype=np.float64).reshape(k, 2, 3) % 7 - 3, 0, j)
            f.test("vmap_dot_%d" % i, "exact", op, [a, b], jax.vmap(g, (i, j)),
                   "vmap %d %d %s" % (k, i, "-" if j is None else str(j)))
    singles = [
        ("cumsum %0 {axis=1, reverse=1} : f64[2,3]", lambda v: lax.cumsum(v, 1, True)),
        ("argmax %0 {dtype=i32, axis=0} : i32[3]", lambda v: lax.argmax(v, 0, np.int32)),
        ("transpose %0 {axes=[1,0]} : f64[3,2]", lambda v: v.T),
        ("reduce_max %0 {axes=[0]} : f64[3]", lambda v: jnp.max(v, 0)),
        ("reshape %0 {dims=[6]} : f64[6]", lambda v: v.reshape(6)),
        ("rev %0 {axes=[1]} : f64[2,3]", lambda v: lax.rev(v, (1,))),
        ("concatenate %0, %0 {axis=0} : f64[4,3]", lambda v: jnp.concatenate([v, v], 0)),
        ("broadcast_in_dim %0 {dims=[2,5,3], axes=[0,2]} : f64[2,5,3]",
         lambda v: lax.broadcast_in_dim(v, (2, 5, 3), (0, 2))),
        ("slice %0 {starts=[0,1], limits=[2,3], strides=[1,1]} : f64[2,2]", lambda v: v[:, 1:]),
    ]
    for axis in (0, 1, 2):
        lanes = np.moveaxis(random.permutation(24.0 - np.arange(24)).reshape(4, 2, 3), 0, axis)
        for i, (op, g) in enumerate(singles):
            f.test("vmap_%d_%d" % (i, axis), "exact", op, [lanes], jax.vmap(g, axis),
                   "vmap 4 %d" % axis)
    f.write()


# -- Types and random numbers


def promotions():
    f = File("promotions")
    from jax._src.lax.lax import _convert_element_type
    weak = [("i32", 1), ("i64", 1), ("f32", 1), ("f64", 1), ("c64", 1), ("c128", 1)]
    kinds = [(n, 0) for n in NAMES] + weak
    values = {}
    for name, is_weak in kinds:
        v = jnp.zeros((), NAMES[name])
        values[name, is_weak] = _convert_element_type(v, weak_type=True) if is_weak else v
    for a in kinds:
        for b in kinds:
            y = jax.eval_shape(lambda p, q: jnp.where(True, p, q), values[a], values[b])
            f.lines.append("promote %s %d %s %d %s %d" % (*a, *b, NAME_OF[np.dtype(y.dtype)],
                                                          int(y.weak_type)))
    f.write()


def randoms():
    f = File("random")

    def line(function, dtype, seed, arguments, y):
        y = np.asarray(y)
        f.lines.append("random %s %s %d %s %s %s" % (function, dtype, seed, arguments or "-",
                                                     type_of(y), hex_of(y)))

    seeds = (0, 42, 0xffffffff, 0x123456789abc)
    for seed in seeds:
        key = jax.random.PRNGKey(seed)
        line("key", "u32", seed, "", key)
        line("split", "u32", seed, "5", jax.random.split(key, 5))
        for d in (0, 7, 0xffffffff):
            line("fold_in", "u32", seed, str(d), jax.random.fold_in(key, np.uint32(d)))
    R, shape = jax.random, (4, 6)
    for seed in seeds[:2]:
        key = R.PRNGKey(seed)
        for name in ("u8", "u16", "u32", "u64"):
            line("bits", name, seed, "", R.bits(key, (3, 5), NAMES[name]))
        for name in FLOATS:
            d = NAMES[name]
            line("normal", name, seed, "", R.normal(key, shape if seed else (40, 25), d))
            for k in ("uniform", "exponential", "gumbel", "laplace", "logistic", "cauchy", "maxwell"):
                line(k, name, seed, "", getattr(R, k)(key, shape, d))
            if name != "f16":  # XLA contracts f16 where a processor has an fma of it
                line("uniform_in", name, seed, "-2,5", R.uniform(key, shape, d, -2, 5))
            for k, *p in (("lognormal", .7), ("rayleigh", 2.5), ("pareto", 3.), ("wald", 1.5),
                          ("weibull_min", 2., 1.5), ("triangular", -1., .5, 2.)):
                if k == "wald" and name == "f16":
                    continue  # cancels: XLA's roundings of f16 are not those of its ops
                line(k, name, seed, ",".join(map(str, p)),
                     getattr(R, k)(key, *(np.asarray(x, d) for x in p), shape, d))
        for name in ("c64", "c128"):
            line("normal", name, seed, "", R.normal(key, shape, NAMES[name]))
        for name in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"):
            low, high = np.iinfo(NAMES[name]).min, min(np.iinfo(NAMES[name]).max, 2 ** 63 - 2)
            for bounds in ((3, 100), (low, high), (low, high + 1), (-50, 7), (9, 9)):
                line("randint", name, seed, "%d,%d" % bounds, R.randint(key, shape, *bounds, NAMES[name]))
        line("bernoulli", "bool", seed, "0.3", R.bernoulli(key, np.float32(0.3), (4, 9)))
        line("geometric", "i32", seed, "0.3", R.geometric(key, np.float32(0.3), (4, 9), np.int32))
        for name in ("f32", "f64"):
            d = NAMES[name]
            for k, *p in (("truncated_normal", -1., 2.), ("gamma", 2.5), ("gamma", .3), ("loggamma", .3),
                          ("chisquare", 3.), ("t", 3.), ("beta", 2., .5), ("f", 3., 5.)):
                line(k, name, seed, ",".join(map(str, p)),
                     getattr(R, k)(key, *(np.asarray(x, d) for x in p), shape, d))
            for p in ((20., .3), (1000., .7)):
                own = p if d == np.float64 else map(np.float32, p)  # numbers of Python are f64 here
                line("binomial", name, seed, "%s,%s" % p, R.binomial(key, *own, shape, d))
        for mean in (.5, 4.5, 40.):
            line("poisson", "i32", seed, str(mean), R.poisson(key, mean, shape, np.int32))
        line("generalized_normal", "f64", seed, "3.0", R.generalized_normal(key, 3., shape, np.float64))
        # What 0.5 is decides which numbers are behind a sign.
        for name in ("i64", "f64"):
            line("rademacher", name, seed, "", R.rademacher(key, (4, 9), NAMES[name]))
        line("double_sided_maxwell", "f64", seed, "0.5,2.0", R.double_sided_maxwell(key, .5, 2., shape, np.float64))
        with jax.enable_x64(False):
            for name in ("i8", "i32", "f32"):
                line("rademacher", name, seed, "", R.rademacher(key, (4, 9), NAMES[name]))
            line("generalized_normal", "f32", seed, "3.0", R.generalized_normal(key, 3., shape))
            line("double_sided_maxwell", "f32", seed, "0.5,2.0", R.double_sided_maxwell(key, .5, 2., shape))
    f.write()


ALL = [floats, integers, complexes, converts, denormals, reductions, layouts, indexing, derivatives, transforms,
       promotions, randoms]

if __name__ == "__main__":
    for make in ALL:
        if len(sys.argv) == 1 or make.__name__ in sys.argv[1:]:
            make()
