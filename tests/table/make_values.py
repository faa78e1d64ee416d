#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes values.golden: what JAX gives for the calls in docs/jax-to-jot.md and cases.md, and
checks that every public name of its modules is there.

    pip install jax scipy && JAX_PLATFORMS=cpu tests/table/make_values.py

A file is lines of words: an operand, or a call; type; elements, of complex numbers both parts.
"""
import os
import re
import sys
import types

os.environ["JAX_ENABLE_X64"] = "1"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import jax.scipy.ndimage
import jax.scipy.special as special
import numpy as np
from jax import lax, nn, random

import table

HERE = os.path.dirname(os.path.abspath(__file__))
DOCUMENTS = [os.path.join(HERE, "../../docs/jax-to-jot.md"), os.path.join(HERE, "cases.md")]
MODULES = {"jnp": jnp, "lax": lax, "jnp.linalg": jnp.linalg, "jnp.fft": jnp.fft,
           "special": special, "random": random, "nn": nn}
NAMES = {"bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
         "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "float16": "f16",
         "bfloat16": "bf16", "float32": "f32", "float64": "f64", "complex64": "c64",
         "complex128": "c128"}

nan, inf = np.nan, np.inf
OPERANDS = {
    "x": np.array([0.3, -1.3, 2.4, 0.8, -0.4, 1.7]),
    "y": np.array([1.1, 0.6, -0.7, 2.2, 0.9, -1.5]),
    "a": np.array([0.2, 0.5, 0.9, 0.35, 0.7, 0.15]),
    "m": np.array([[0.5, -1, 2, 0.25], [1.5, 0.75, -0.5, 3], [-2, 1, 0.1, -0.6]]),
    "w": np.array([[1, 0.5, -0.3], [0.2, 2, 1], [-1, 0.4, 0.8], [0.6, -0.7, 1.2]]),
    "s": np.array([[4, 1, -0.5], [1, 3, 0.75], [-0.5, 0.75, 2]]),
    "t": np.sin(np.arange(24.0)).reshape(2, 3, 4).round(3),
    "v": np.array([1.5, nan, -2, 0.25, nan, 3]),
    "h": np.array([inf, -inf, nan, 0, -0.0, 1]),
    "z": np.array([1 + 2j, -0.5 + 1j, 3 - 1j, 0.25 - 0.75j]),
    "i": np.array([3, 0, 2, 5, 1, 4], np.int32),
    "j": np.array([12, -7, 18, 5, -30, 8], np.int32),
    "b": np.array([True, False, True, True, False, False]),
    "c": np.array([True, True, False, True, False, True]),
    "u": np.array([5, 200, 17], np.uint8),
    "key": np.array([0, 42], np.uint32),
}


def words(x):
    x = np.asarray(x)
    kind = "%s[%s]" % (NAMES[x.dtype.name], ",".join(str(n) for n in x.shape))
    x = np.ascontiguousarray(x).reshape(-1)
    x = x.view(x.real.dtype) if x.dtype.kind == "c" else x
    exact = repr if x.dtype.kind in "iu" else lambda e: "%.17g" % e
    return " ".join([kind] + [exact(e) for e in x.astype(object if x.dtype.kind in "iu" else float)])


def public_names(module):
    return [n for n in dir(module) if n[0] != "_" and not isinstance(getattr(module, n), types.ModuleType)]


def missing_names(text):
    for prefix, module in MODULES.items():
        for name in public_names(module):
            if not re.search(r"(?<![\w.])%s\.%s(?!\w)" % (re.escape(prefix), name), text):
                yield "%s.%s" % (prefix, name)


def main():
    space = dict(MODULES, jax=jax, np=np, **{n: jnp.asarray(x) for n, x in OPERANDS.items()})
    lines = ["operand %s %s" % (n, words(x)) for n, x in OPERANDS.items()]
    text = ""
    for place, calls, jot in (row for d in DOCUMENTS for row in table.read(d)):
        text += " ".join(calls) + "\n"
        if jot:
            try:
                value = words(eval(calls[0], space))
            except Exception as e:
                sys.exit("%s:%d: %s: %s" % (*place, calls[0], e))
            lines += ["call " + calls[0], value]
    missing = list(missing_names(text))
    with open(os.path.join(HERE, "values.golden"), "w", encoding="utf-8") as f:
        f.write("\n".join(["made with jax %s" % jax.__version__] + lines) + "\n")
    if missing:
        sys.exit("not in the document: " + " ".join(missing))


if __name__ == "__main__":
    main()
