#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes windows.inc of tests/trace with JAX: values and derivatives of functions of x and w.

    pip install jax && JAX_PLATFORMS=cpu tests/golden/make_windows.py

Elements of x and w are small integers that repeat, so that sums are exact and extrema tie.
A case is the C expression, its type, and all elements of y, then of the derivatives of sum(y c) in
x and, where it is used, in w; c are such numbers too.
"""
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

CASES = []


def numbers(stream, dims):
    n = int(np.prod(dims))
    return jnp.asarray(((np.arange(n) * 7 + 3 * stream) % 11 - 5).reshape(dims), jnp.float32)


def case(code, f, x, w=(1,)):
    CASES.append((code, f, x, w))


def dims(n):
    return "JOT_DIMS(%s)" % ", ".join(str(i) for i in n)


def options(**given):
    out = []
    for k, v in given.items():
        if v is None:
            continue
        if isinstance(v, tuple):
            v = dims(v)
        elif isinstance(v, str) and not v.startswith("JOT_"):
            v = '"%s"' % v
        out.append(".%s = %s" % (k, v))
    return "".join(", " + o for o in out)


def pads(padding, n):
    if isinstance(padding, str):
        return {"padding": "JOT_PADDING_" + padding}
    if padding is None:
        return {}
    return {"low": tuple(p[0] for p in padding), "high": tuple(p[1] for p in padding)}


# ---- convolution ----


def conv(x, w, strides=None, padding=None, lhs=None, rhs=None, letters=None, groups=1, batch=1):
    n = len(x) - 2
    code = "jot_conv_general_dilated(x, w%s)" % options(
        strides=strides, **pads(padding, n), lhs_dilation=lhs, rhs_dilation=rhs,
        x=letters and letters[0], w=letters and letters[1], out=letters and letters[2],
        feature_group_count=groups if groups > 1 else None,
        batch_group_count=batch if batch > 1 else None)
    case(code, lambda a, b: lax.conv_general_dilated(
        a, b, strides or (1,) * n, padding or "VALID", lhs, rhs, letters, groups, batch), x, w)


NHWC = ("NHWC", "HWIO", "NHWC")
conv((2, 3, 5), (4, 3, 2))
conv((2, 1, 6), (3, 1, 3), (2,), "SAME")
conv((2, 2, 5, 6), (3, 2, 3, 2))
conv((1, 2, 5, 6), (2, 2, 2, 3), (2, 1), ((1, 0), (2, 1)))
conv((2, 2, 7, 6), (2, 2, 3, 3), (2, 3), "SAME")
conv((1, 2, 6, 7), (2, 2, 4, 2), (1, 2), "SAME_LOWER")
conv((1, 2, 7, 7), (2, 2, 3, 3), None, ((-1, -2), (1, -1)))
conv((1, 2, 3, 4), (2, 2, 3, 2), None, ((2, 2), (1, 0)), (2, 3))
conv((1, 2, 7, 6), (2, 2, 3, 2), None, None, None, (3, 2))
conv((2, 2, 4, 3), (2, 2, 2, 3), (2, 1), ((2, 1), (1, 2)), (2, 1), (1, 2))
conv((2, 5, 4, 3), (3, 2, 3, 2), None, "SAME", None, None, NHWC)
conv((2, 5, 4, 3), (1, 1, 3, 4), (2, 2), None, None, None, NHWC)
conv((3, 2, 5, 4), (2, 3, 2, 2), None, None, None, None, ("HCWN", "WOHI", "CNHW"))
conv((2, 4, 3, 4), (4, 2, 2, 2), None, "SAME", groups=2)
conv((2, 4, 4, 6), (2, 3, 1, 6), None, None, None, None, NHWC, 6)
conv((1, 3, 3, 4), (2, 2, 2, 6), (1, 2), "SAME", None, None, NHWC, 2)
conv((4, 2, 3, 3), (6, 2, 2, 2), batch=2)
conv((4, 3, 3, 2), (2, 2, 2, 4), None, "SAME", None, None, NHWC, 1, 4)
conv((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), (1, 2, 1), "SAME")
conv((2, 3), (4, 3))


def transposed(x, w, strides, padding, rhs=None, letters=None, kernel=False):
    n = len(x) - 2
    code = "jot_conv_transpose(x, w%s)" % options(
        strides=strides, **pads(padding, n), rhs_dilation=rhs, x=letters and letters[0],
        w=letters and letters[1], out=letters and letters[2],
        transpose_kernel="true" if kernel else None).replace('"true"', "true")
    case(code, lambda a, b: lax.conv_transpose(
        a, b, strides, padding, rhs, letters, kernel), x, w)


transposed((1, 3, 4, 2), (3, 3, 2, 2), (2, 2), "SAME")
transposed((1, 3, 4, 2), (2, 3, 2, 3), (2, 1), "VALID")
transposed((1, 3, 2), (2, 3, 2), (3,), "SAME", None, None, True)
transposed((1, 2, 4), (3, 2, 3), (2,), ((1, 2),), (2,), ("NCH", "OIH", "NCH"))


def patches(x, filter, strides=None, padding=None, letters=None):
    code = "jot_conv_general_dilated_patches(x, %s%s)" % (
        dims(filter), options(strides=strides, **pads(padding, 2), x=letters, out=letters))
    spec = letters and (letters, "OIHW", letters)
    case(code, lambda a, b: lax.conv_general_dilated_patches(
        a, filter, strides or (1, 1), padding or "VALID", dimension_numbers=spec), x)


patches((1, 2, 4, 5), (2, 3))
patches((2, 4, 3, 2), (3, 2), (2, 1), "SAME", "NHWC")

for x, w in (((7,), (3,)), ((3,), (6,)), ((4,), (4,))):
    for mode in ("full", "same", "valid"):
        for f in ("convolve", "correlate"):
            case("jot_%s(x, w, JOT_%s)" % (f, mode.upper()),
                 lambda a, b, f=f, mode=mode: getattr(jnp, f)(a, b, mode), x, w)

# ---- windows ----

KINDS = {
    "SUM": (0.0, lax.add), "PROD": (1.0, lax.mul), "MAX": (-jnp.inf, lax.max),
    "MIN": (jnp.inf, lax.min),
}


def window(kind, x, size, strides=None, padding=None, base=None, dilation=None):
    code = "jot_reduce_window(x, JOT_WINDOW_%s%s)" % (kind, options(
        window=size, strides=strides, **pads(padding, len(x)), base_dilation=base,
        window_dilation=dilation))
    init, op = KINDS[kind]
    # JAX has no derivative of products and of extrema that are dilated.
    case(code, lambda a, b: lax.reduce_window(
        a, init, op, size, strides or (1,) * len(x), padding or "VALID", base, dilation), x)


for kind in ("SUM", "MAX", "MIN"):
    window(kind, (6,), (3,))
    window(kind, (2, 5, 6), (1, 2, 3), (1, 2, 1), "SAME")
    window(kind, (2, 4, 6, 2), (1, 2, 3, 1), (1, 2, 3, 1))
    window(kind, (5, 7), (2, 2), (2, 2))
    window(kind, (5, 6), (3, 2), (2, 3), ((1, 2), (0, 1)))
window("SUM", (4, 5), (2, 2), None, ((1, 1), (0, -1)), (2, 1), (1, 2))


def scattered(kind, source, x, size, strides, padding):
    f = {"MAX": lax.ge_p, "MIN": lax.le_p}[kind]
    from jax._src.lax import windowed_reductions as wr
    low = tuple(p[0] for p in padding)
    high = tuple(p[1] for p in padding)
    opts = options(window=size, strides=strides, low=low, high=high)
    case("jot_select_and_scatter_add(w, x, JOT_WINDOW_%s%s)" % (kind, opts),
         lambda a, b: wr._select_and_scatter_add(b, a, f, size, strides, padding), x, source)


scattered("MAX", (3, 2), (5, 5), (3, 2), (1, 2), ((0, 0), (0, 0)))
scattered("MIN", (4, 3), (5, 5), (2, 2), (1, 2), ((0, 0), (1, 0)))


def pooled(kind, x, size, strides=None, padding=None, leave_out=False):
    def f(a, b):
        st = strides or size
        y = lax.reduce_window(a, 0.0, lax.add, size, st, padding or "VALID")
        ones = jnp.ones_like(a)
        n = lax.reduce_window(ones, 0.0, lax.add, size, st, padding or "VALID")
        return y / (n if leave_out else np.prod(size))
    case("jot_avg_pool(x%s)" % options(
        window=size, strides=strides, **pads(padding, len(x)),
        leave_out_padding="JOT_TRUE" if leave_out else None).replace("JOT_TRUE", "true"), f, x)


pooled("AVG", (4, 6), (2, 3))
pooled("AVG", (5, 6), (2, 3), (2, 2), "SAME")
pooled("AVG", (5, 6), (2, 3), (2, 2), "SAME", True)

# ---- padding ----

for mode in ("edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "minimum", "mean"):
    for x, low, high in (((4,), 2, 3), ((3, 2), 5, 7), ((1, 3), 2, 1)):
        width = ((low, high),) + ((0, 0),) * (len(x) - 1)
        case("jot_pad_with_mode(x, JOT_PAD_%s, 0, %d, %d)" % (mode.upper(), low, high),
             lambda a, b, mode=mode, width=width: jnp.pad(a, width, mode), x)

# ---- interpolation ----

case("jot_interp(x, jot_stack(0, -4, -1.5, 0, 0.5, 3), w)",
     lambda a, b: jnp.interp(a, jnp.asarray([-4, -1.5, 0, 0.5, 3], jnp.float32), b), (11,), (5,))
METHODS = {"LINEAR": "linear", "CUBIC": "cubic", "LANCZOS3": "lanczos3", "LANCZOS5": "lanczos5"}
for method, name in METHODS.items():
    for x, y in (((4, 5), (7, 3)), ((6,), (3,))):
        case("jot_image_resize(x, JOT_RESIZE_%s, %s)" % (method, ", ".join(map(str, y))),
             lambda a, b, y=y, name=name: jax.image.resize(a, y, name), x)
case("jot_image_resize(x, JOT_RESIZE_NEAREST, 7, 3)",
     lambda a, b: jax.image.resize(a, (7, 3), "nearest"), (4, 5))
case("jot_image_scale_and_translate(x, JOT_DIMS(6, 4), JOT_AXES(0, 1), jot_stack(0, 1.5, 0.75), "
     "jot_stack(0, -0.5, 0.25), JOT_RESIZE_LINEAR, true)",
     lambda a, b: jax.image.scale_and_translate(
         a, (6, 4), (0, 1), jnp.asarray([1.5, 0.75]), jnp.asarray([-0.5, 0.25]), "linear"), (4, 5))


def text(x):
    return "NAN" if np.isnan(x) else "INFINITY" if x == np.inf else (
        "-INFINITY" if x == -np.inf else "%.9g" % x)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    lines = ["// SPDX-License-Identifier: Apache-2.0",
             "// Made by tests/golden/make_windows.py with JAX %s.  clang-format off" % jax.__version__]
    for code, f, xs, ws in CASES:
        x, w = numbers(1, xs), numbers(2, ws)
        y = f(x, w)
        c = numbers(3, y.shape)
        uses_w = ws != (1,)
        g = jax.grad(lambda a, b: jnp.sum(f(a, b) * c), (0, 1) if uses_w else (0,))(x, w) \
            if "scatter_add" not in code else jax.grad(lambda b: jnp.sum(f(x, b) * c))(w)
        if "scatter_add" in code:
            g = (jnp.zeros_like(x), g)
        kind = "BOTH" if uses_w else "ONE"
        flat = np.concatenate([np.asarray(v).reshape(-1) for v in (y, *g)])
        lines.append("CASE_%s(%s,\n     (%s), (%s), \"f32[%s]\",\n     %s)" % (
            kind, code, ", ".join(map(str, xs)), ", ".join(map(str, ws)),
            ",".join(map(str, y.shape)), ", ".join(text(v) for v in flat)))
    path = os.path.join(here, "..", "trace", "windows.inc")
    with open(path, "w") as out:
        out.write("\n".join(lines) + "\n")
    print(len(CASES), "cases")


main()
