# SPDX-License-Identifier: Apache-2.0
"""Writes complex_grid.golden: functions of complex numbers whose parts are zeros, denormals, ordinary,
near the ends of the range, infinite or NaN.  Values come from mpmath, those at infinities and NaN from
C's Annex G; a sign that it leaves open is that of SIGNS_LEFT_OPEN below.  Needs mpmath and NumPy.

    python3 tests/golden/make_complex_grid.py
"""

import math
import os
import struct

import mpmath
from mpmath import mp, mpc, mpf

INF, NAN = math.inf, math.nan
# A zero part is taken as a number so near to 0 that the other numbers of the grid do not see it: its
# sign gives signs to zero results, and chooses sides of branch cuts.
NEAR_ZERO = mpf(2) ** -2600
mp.prec = 5600

# -- Numbers of a format


def rounded(x, bits):
    """The nearest number of the format, with the sign of x."""
    if isinstance(x, float):
        return x
    digits, least, most = {64: (53, -1074, 1024), 32: (24, -149, 128)}[bits]
    if x == 0:
        return 0.0
    man, exp = mpmath.frexp(x)
    unit = max(exp - digits, least)
    steps = int(mpmath.nint(mpmath.ldexp(abs(x), -unit)))
    size = INF if steps * mpf(2) ** unit >= mpf(2) ** most else math.ldexp(steps, unit)
    return math.copysign(size, 1 if x > 0 else -1)


def hex_of(x, bits):
    if x != x:
        return {64: "7ff8000000000000", 32: "7fc00000"}[bits]
    return struct.pack(*((">d", x) if bits == 64 else (">f", x))).hex()


# -- Values at finite numbers


def near(x):
    return mpf(x) if x else mpf(math.copysign(1, x)) * NEAR_ZERO


def mp_sinc(z):
    return mpmath.sin(mp.pi * z) / (mp.pi * z)


def mp_logistic(z):
    return 1 / (1 + mpmath.exp(-z))


VALUES = {
    "exp": mpmath.exp, "exp2": lambda z: mpmath.exp(z * mp.ln2), "expm1": lambda z: mpmath.exp(z) - 1,
    "logistic": mp_logistic, "log": mpmath.log, "log1p": lambda z: mpmath.log(1 + z),
    "log2": lambda z: mpmath.log(z) / mp.ln2,
    "sqrt": mpmath.sqrt, "rsqrt": lambda z: 1 / mpmath.sqrt(z), "reciprocal": lambda z: 1 / z,
    "square": lambda z: z * z, "sign": lambda z: z / abs(z), "abs": lambda z: mpc(abs(z), 0), "sinc": mp_sinc,
    "sinh": mpmath.sinh, "cosh": mpmath.cosh, "tanh": mpmath.tanh,
    "sin": mpmath.sin, "cos": mpmath.cos, "tan": mpmath.tan, "asin": mpmath.asin, "acos": mpmath.acos,
    "atan": mpmath.atan, "asinh": mpmath.asinh, "acosh": mpmath.acosh, "atanh": mpmath.atanh,
}
POLES = {
    (0, 0): {"log": lambda x, y: (-INF, math.atan2(y, x)), "sign": lambda x, y: (0.0, 0.0),
             "log2": lambda x, y: (-INF, math.atan2(y, x) / mp.ln2), "sinc": lambda x, y: (1.0, 0.0),
             "abs": lambda x, y: (0.0, 0.0),
             "reciprocal": lambda x, y: (math.copysign(INF, x), NAN), "rsqrt": lambda x, y: (INF, NAN)},
    (-1, 0): {"log1p": lambda x, y: (-INF, y), "atanh": lambda x, y: (-INF, y)},
    (1, 0): {"atanh": lambda x, y: (INF, y)},
    (0, 1): {"atan": lambda x, y: (x, INF)},
    (0, -1): {"atan": lambda x, y: (x, -INF)},
}


def hyperbolic(name, z):
    """tanh of parts beyond the range of what mpmath can cancel."""
    if abs(z.real) < 2000:
        return VALUES[name](z)
    s = mpmath.sign(z.real)
    decay = mpmath.exp(-2 * abs(z.real))
    return mpc(s * (1 - decay), 4 * mpmath.sin(z.imag) * mpmath.cos(z.imag) * decay)


def at(name, z):
    x = z.real
    if name == "tanh":
        return hyperbolic(name, z)
    if name == "tan":
        return hyperbolic("tanh", z * 1j) * -1j
    if name == "logistic" and abs(x) > 2000:
        decay = mpmath.exp(-abs(x))
        return mpc(1, decay * mpmath.sin(z.imag)) if x > 0 else decay * mpmath.expj(z.imag)
    if name == "expm1" and x < -4000:
        return mpc(-1, mpmath.exp(x) * mpmath.sin(z.imag))
    return mpmath.mpmathify(VALUES[name](z))


def finite(name, x, y):
    pole = POLES.get((x, y), {}).get(name)
    if pole:
        return pole(x, y)
    w = at(name, mpc(near(x), near(y)))
    if x and y:
        return w.real, w.imag
    exact = at(name, mpc(x, y))
    return tuple(p if e else math.copysign(0.0, p) for p, e in zip((w.real, w.imag), (exact.real, exact.imag)))


# -- Values at infinities and NaN

SIGNS_LEFT_OPEN = """
A part that is infinite or 0 with a sign that Annex G leaves open has the sign of the part of the operand
it comes from, plus if that is NaN: sinh(0 + i inf) is 0 + i nan, sinh(-inf + i nan) is -inf + i nan.
"""


def is_inf(x):
    return abs(x) == INF


def signed(a, s):
    return a if s != s else math.copysign(a, s)


def polar(size, y, cos=mpmath.cos, sin=mpmath.sin):
    """size (cos y, sin y) for a size of 0 or infinity, with the signs of a finite y."""
    if y == 0:
        return size, signed(0.0, y)
    return signed(size, float(mpmath.sign(cos(mpf(y))))), signed(size, float(mpmath.sign(sin(mpf(y)))))


def end_exp(x, y):
    if y == 0:
        return (0.0 if x < 0 else x), y
    if is_inf(x):
        size = INF if x > 0 else 0.0
        return polar(size, y) if math.isfinite(y) else (size, NAN if x > 0 else 0.0)
    return NAN, NAN


def end_exp2(x, y):
    if math.isfinite(y) and y and is_inf(x):
        return polar(INF if x > 0 else 0.0, y, lambda v: mpmath.cos(v * mp.ln2), lambda v: mpmath.sin(v * mp.ln2))
    return end_exp(x, y)


def end_expm1(x, y):
    re, im = end_exp(x, y)
    return (-1.0 if x == -INF else re), im


def end_logistic(x, y):
    if not is_inf(x):
        return NAN, NAN
    re, im = end_exp(-INF, y)
    return (re, im) if x < 0 else (1.0, im if math.isfinite(y) else 0.0)


def end_sinh(x, y):
    if y == 0:
        return x, y
    if x == 0 or (is_inf(x) and not math.isfinite(y)):
        return x, NAN
    if is_inf(x):
        re, im = polar(INF, y)
        return math.copysign(1, x) * re, im
    return NAN, NAN


def end_cosh(x, y):
    if y == 0:
        return abs(x), signed(1.0, x) * y
    if x == 0:
        return NAN, x
    if is_inf(x) and not math.isfinite(y):
        return INF, NAN
    if is_inf(x):
        re, im = polar(INF, y)
        return re, math.copysign(1, x) * im
    return NAN, NAN


def end_tanh(x, y):
    if is_inf(x):
        one = math.copysign(1, x)
        if y == 0 or not math.isfinite(y):
            return one, y if y == 0 else 0.0
        return one, math.copysign(0.0, mpmath.sin(2 * mpf(y)))
    if y == 0:
        return NAN, y
    return (x if x == 0 else NAN), NAN


def end_log(x, y, base=1):
    angle = math.atan2(y, x)
    angle = angle if angle != angle or angle == 0 else turn(y, x) / base
    return (INF if is_inf(x) or is_inf(y) else NAN), angle


def turn(y, x):
    """atan2 at infinities, exactly."""
    eighths = round(math.atan2(y, x) / (math.pi / 4))
    return mp.pi * eighths / 4 if eighths else math.atan2(y, x)


def end_sqrt(x, y):
    if is_inf(y):
        return INF, y
    if x == INF:
        return INF, NAN if y != y else math.copysign(0.0, y)
    if x == -INF:
        return (NAN, INF) if y != y else (0.0, math.copysign(INF, y))
    return NAN, NAN


def end_reciprocal(x, y):
    if is_inf(x) or is_inf(y):
        return signed(0.0, x), signed(0.0, -y)
    return NAN, NAN


def end_rsqrt(x, y):
    return end_reciprocal(*end_sqrt(x, y))


def end_asin(x, y):
    if is_inf(x) or is_inf(y):
        return (NAN if x != x or y != y else turn(x, abs(y))), signed(INF, y)
    return (x if x == 0 else NAN), NAN


def end_acos(x, y):
    if is_inf(x) or is_inf(y):
        return (NAN if x != x or y != y else turn(abs(y), x)), signed(INF, -y)
    return (mp.pi / 2 if x == 0 else NAN), NAN


def end_acosh(x, y):
    re, im = end_acos(x, y)
    return abs(im), re if re != re or y != y else re * int(math.copysign(1, y)) if re else math.copysign(0.0, y)


def end_atanh(x, y):
    if is_inf(x) or is_inf(y):
        return signed(0.0, x), NAN if y != y else mp.pi / 2 * int(math.copysign(1, y))
    return (x if x == 0 else NAN), NAN


def end_square(x, y):
    return (abs(x) - abs(y)) * (abs(x) + abs(y)), 2 * x * y


def end_sign(x, y):
    if x != x or y != y:
        return NAN, NAN
    a, b = (math.copysign(1 if is_inf(p) else 0, p) for p in (x, y))
    return (a, b) if 0 in (a, b) else (a * mpmath.sqrt(mpf(2)) / 2, b * mpmath.sqrt(mpf(2)) / 2)


def turned(end):
    """f(z) = -i g(i z)."""
    def f(x, y):
        re, im = end(-y, x)
        return im, -re
    return f


ENDS = {
    "exp": end_exp, "exp2": end_exp2, "expm1": end_expm1, "logistic": end_logistic, "log": end_log,
    "log1p": lambda x, y: end_log(x + 1, y), "log2": lambda x, y: end_log(x, y, mp.ln2),
    "sqrt": end_sqrt, "rsqrt": end_rsqrt,
    "reciprocal": end_reciprocal, "square": end_square, "sign": end_sign,
    "abs": lambda x, y: (INF if is_inf(x) or is_inf(y) else NAN, 0.0), "sinh": end_sinh, "cosh": end_cosh,
    "tanh": end_tanh, "sin": turned(end_sinh), "cos": lambda x, y: end_cosh(-y, x), "tan": turned(end_tanh),
    "asin": end_asin, "acos": end_acos, "atan": turned(end_atanh), "asinh": turned(end_asin),
    "acosh": end_acosh, "atanh": end_atanh,
}


def value(name, x, y):
    """The parts of f(x + i y): mpf, or float where infinite, NaN or a zero with a sign; None where f is not
    compared."""
    if math.isfinite(x) and math.isfinite(y):
        return finite(name, x, y)
    return ENDS[name](x, y) if name in ENDS else None


# -- The grid

PARTS = {
    64: [0.0, 5e-324, 1e-200, 0.5, 1.0, math.pi / 2, 3.5, 711.0, 1e200, 1.7976931348623157e308, INF],
    32: [0.0, 1.401298464324817e-45, 2.0 ** -80, 0.5, 1.0, 1.57079637050628662109375, 3.5, 89.5, 2.0 ** 80,
         3.4028234663852886e38, INF],
}
# Functions with f(-x) = f(x) or -f(x), of which half the plane tells all; every f(conj x) is conj f(x).
HALVED = {"square", "sign", "abs", "sinc", "sinh", "cosh", "tanh", "sin", "cos", "tan", "asin", "atan", "asinh",
          "atanh"}
# Units in the last place that a part may be off on this grid, by type.
BOUNDS = {"expm1": (4, 10), "exp2": (4, 4), "logistic": (40, 20), "sinc": (9, 9), "rsqrt": (3, 4)}
OPS = {"square": "integer_pow %%0 {exponent=2}", "reciprocal": "integer_pow %%0 {exponent=-1}"}


def is_compared(name, bits, x, y):
    """Not where a product with log 2 or pi is a denormal, or an angle that has lost its digits."""
    if name == "exp2":
        return abs(y) < {64: 2.0 ** 26, 32: 2.0 ** 11}[bits] and not 0 < abs(y) < 1e-44 or not math.isfinite(y)
    if name == "sinc":
        return all(abs(v) < 100 and not 0 < abs(v) < 1e-10 for v in (x, y)) and abs(x) < 3 and y != 0
    return True


def points(name, bits):
    parts = PARTS[bits]
    re = parts + ([] if name in HALVED else [-x for x in parts]) + [NAN]
    return [(x, y) for x in re for y in parts + [NAN] if is_compared(name, bits, x, y)]


# -- Quotients and powers


def quotient(a, b):
    """a / b; at infinities, NaN and a divisor of 0 by the example of Annex G (G.5.1)."""
    (x, y), (u, v) = a, b
    infinite = [any(is_inf(p) for p in z) for z in (a, b)]
    finite_ = [all(math.isfinite(p) for p in z) for z in (a, b)]
    if u == 0 and v == 0:
        return math.copysign(INF, u) * x, math.copysign(INF, u) * y
    if all(finite_):
        w = mpc(x, y) / mpc(u, v)
        return w.real, w.imag
    if infinite[0] and finite_[1]:
        x, y = (math.copysign(1 if is_inf(p) else 0, p) for p in (x, y))
        return INF * (x * u + y * v), INF * (y * u - x * v)
    if infinite[1] and finite_[0]:
        u, v = (math.copysign(1 if is_inf(p) else 0, p) for p in (u, v))
        x, y = (p / 4 if abs(p) > 1 else p for p in (x, y))
        return 0.0 * (x * u + y * v), 0.0 * (y * u - x * v)
    return NAN, NAN


def is_sum_of_zeros(a, b):
    """A part of the quotient is 0, and its sign a matter of the formula."""
    return all(math.isfinite(p) for p in a + b) and b != (0, 0) and 0 in quotient(a, b)


def power(a, b):
    w = mpmath.exp(mpc(*b) * mpmath.log(mpc(*a)))
    return w.real, w.imag


def operands(bits):
    huge, large, small, least = {
        64: (1.7976931348623157e308, 1e300, 1e-200, 5e-324),
        32: (3.4028234663852886e38, 2.0 ** 120, 2.0 ** -90, 1.401298464324817e-45)}[bits]
    return [(0.0, 0.0), (-0.0, 0.0), (1.5, 0.0), (0.0, -3.0), (1.5, -2.25), (huge, huge), (-huge, 0.5), (large, -large),
            (small, 2 * small), (-least, least), (1.5, -large), (INF, 1.5), (-INF, INF), (-0.0, -INF), (INF, NAN),
            (1.5, NAN)]


BASES = {
    64: [(2.0, 0.5), (-0.5, 1.25), (1e200, 1e200), (1e-200, -2e-200), (1.7e308, 1.7e308), (-1e-310, 1e-310)],
    32: [(2.0, 0.5), (-0.5, 1.25), (1e25, 1e25), (1e-25, -2e-25), (3.4e38, 3.4e38), (-1e-40, 1e-40)],
}
EXPONENTS = [(1.5, 0.0), (1.0, 0.5), (-0.75, 2.0), (1.0, 0.0), (1.125, -1.0), (0.25, 0.125)]


def single(z, bits):
    return z if bits == 64 else tuple(struct.unpack("f", struct.pack("f", p))[0] for p in z)


def binary_tests(f):
    for bits in (64, 32):
        pairs = [(a, b) for a in operands(bits) for b in operands(bits)]
        pairs = [p for p in pairs if not is_sum_of_zeros(*p)]
        f.test("div", bits, 2, "div %0, %1", [list(x) for x in zip(*pairs)], [quotient(a, b) for a, b in pairs])
        pairs = [(single(a, bits), b) for a in BASES[bits] for b in EXPONENTS]
        f.test("pow", bits, 2000 if bits == 64 else 3000, "pow %0, %1", [list(x) for x in zip(*pairs)],
               [power(a, b) for a, b in pairs])


class File:
    def __init__(self):
        self.lines = ["jot golden 1", "made with mpmath %s" % mpmath.__version__]
        self.names = {}

    def values(self, bits, numbers):
        digits = "".join(hex_of(p, bits) for z in numbers for p in z)
        key = "c%d[%d] %s" % (2 * bits, len(numbers), digits)
        if key not in self.names:
            self.names[key] = "v%d" % len(self.names)
            self.lines.append("values %s %s" % (self.names[key], key))
        return self.names[key]

    def test(self, name, bits, bound, op, operands, results):
        names = [self.values(bits, x) for x in operands]
        kind = "%s%d" % (("f", bits) if len(results[0]) == 1 else ("c", 2 * bits))
        kind += "[%d]" % len(results)
        digits = "".join(hex_of(rounded(p, bits), bits) for z in results for p in z)
        self.lines += ["test grid_%s_%d ulp %g" % (name, bits, bound), "op %s : %s" % (op, kind),
                       "in " + " ".join(names), "out %s %s" % (kind, digits)]


def main():
    f = File()
    for bits in (64, 32):
        for name in VALUES:
            z = points(name, bits)
            w = [tuple(rounded(p, bits) for p in value(name, *p)) for p in z]
            if name == "square":  # the difference of equal squares is +0
                w = [(re or 0.0, im) for re, im in w]
            if name == "abs":
                w = [(re,) for re, _ in w]
            f.test(name, bits, BOUNDS.get(name, (3, 3))[bits == 32], OPS.get(name, name + " %0").replace("%%", "%"),
                   [z], w)
    binary_tests(f)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "complex_grid.golden")
    with open(path, "w", encoding="ascii") as out:
        out.write("\n".join(f.lines) + "\n")
    print(path, os.path.getsize(path))


if __name__ == "__main__":
    main()
