# SPDX-License-Identifier: Apache-2.0
"""First and second derivatives by mpmath, with how well conditioned they are, for
tests/trace/test_derivative_accuracy.c:

    python3 make_derivative_accuracy.py > ../trace/derivative_accuracy.def
    python3 make_derivative_accuracy.py 10 7 entr hypot    # ten times the points, seed 7, of two functions

A derivative is a central difference in as many digits as it takes: it is taken when one of twice the digits and another step
agrees.  The condition is the sum over the operands of the relative change of the derivative over that of the operand, and at
least 1.  Numbers of single precision are for both widths, others for f64.
"""
import itertools
import math
import random
import struct
import sys

import mpmath as mp

DENSITY = float(sys.argv[1]) if len(sys.argv) > 1 else 1
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 20
CHOSEN = sys.argv[3:]
inf = mp.inf


# ---- Derivatives

class Lattice:
    """f at x + i h."""

    def __init__(self, f, x, h):
        self.f, self.x, self.h, self.known = f, x, h, {}

    def at(self, i):
        if i not in self.known:
            y = self.f(*[x + k * h for x, k, h in zip(self.x, i, self.h)])
            self.known[i] = mp.re(y)
        return self.known[i]

    def derivative(self, orders):
        """(f(x + h) - f(x - h)) / 2h, as often as the orders say."""
        total = mp.mpf(0)
        for steps in itertools.product(*[range(n + 1) for n in orders]):
            weight, place = 1, []
            for n, k in zip(orders, steps):
                weight *= math.comb(n, k) * (-1) ** k
                place.append(n - 2 * k)
            total += weight * self.at(tuple(place))
        for n, h in zip(orders, self.h):
            total /= (2 * h) ** n
        return total


def agree(a, b, tolerance):
    return b == 0 or abs(a - b) <= tolerance * abs(b) or max(abs(a), abs(b)) < mp.mpf(10) ** -400


def derivatives(f, scale, point, wanted, deepest):
    """A dict from orders to derivatives."""
    last = None
    for level in range(deepest):
        mp.mp.dps = 100 * 2 ** level
        step = mp.mpf(10) ** -(18 + 3 * level)
        x = [mp.mpf(p) for p in point]
        sizes = scale(*x)
        lattice = Lattice(f, x, [s * step for s in sizes])
        try:
            here = {o: lattice.derivative(o) for o in wanted}
            # What is left of a derivative that is 0.
            least = abs(lattice.at((0,) * len(x))) * mp.mpf(10) ** -650
            for o in wanted:
                if abs(here[o]) * mp.fprod(s ** n for s, n in zip(sizes, o)) < least:
                    here[o] = mp.mpf(0)
        except (ArithmeticError, ValueError, mp.libmp.NoConvergence) as e:
            print(e, file=sys.stderr)
            return None
        if last and all(agree(last[o], here[o], mp.mpf(10) ** (-19 if sum(o) < 3 else -3)) for o in wanted):
            return here
        last = here
    return None


# ---- Scales: how far from x a function is about its Taylor polynomial

def entire(*x):
    return [mp.mpf(1) / 4] * len(x)


def gaussian(*x):
    return [1 / (4 + 4 * abs(t)) for t in x]


def powers(*x):
    return [abs(t) / 8 for t in x]


def from_points(*singular):
    return lambda x: [min(abs(x - s) for s in singular) / 8]


def from_poles(x):
    return [min(abs(x) + 1, abs(x - mp.nint(x)) if x < mp.mpf(1) / 2 else x) / 8]


def size(*x):
    """Where only the largest counts."""
    most = max(abs(t) for t in x)
    return [most / 8] * len(x)


def upright(*x):
    """Complex singularities at +-i."""
    return [mp.sqrt(1 + t * t) / 8 for t in x]


# ---- Operands

def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


class Draw:
    def __init__(self, name):
        self.random = random.Random("%s %d" % (name, SEED))

    def spread(self, low, high, wide=False):
        x = math.exp(self.random.uniform(math.log(low), math.log(high)))
        return x if wide else single(x)

    def sign(self, signs):
        return self.random.choice((1, -1)) if signs else 1

    def count(self, n):
        return max(1, round(n * DENSITY))

    def logarithmic(self, n, low, high, signs=True, wide=False):
        return [self.sign(signs) * self.spread(low, high, wide) for _ in range(self.count(n))]

    def even(self, n, low, high):
        return [single(self.random.uniform(low, high)) for _ in range(self.count(n))]

    def whole_range(self, signs=True):
        """All magnitudes of both widths, subnormal ones too."""
        return (self.logarithmic(5, 1e-37, 1e37, signs) + self.logarithmic(5, 1e-5, 1e5, signs)
                + self.logarithmic(4, 1e-300, 1e300, signs, True)
                + [self.sign(signs) * x for x in (1e300, 1e-300, 1e200, 1e-200, single(1e38), single(1e-37), single(1e20), single(1e-20))]
                + [self.sign(signs) * x for x in (single(3e-41), 3e-315)])

    def near(self, *places):
        """Both sides of some places, by steps that single precision has and finer ones."""
        out = []
        for p in places:
            for k in (3, 8, 14, 21):
                out += [single(p + s * 2.0 ** -k * self.random.uniform(1, 2)) for s in (1, -1)]
            out += [p + s * 2.0 ** -k for k in (34, 47) for s in (1, -1)]
        return out

    def pairs(self, xs, ys):
        xs, ys = list(xs), list(ys)
        n = max(len(xs), len(ys))
        self.random.shuffle(xs)
        self.random.shuffle(ys)
        return [(xs[i % len(xs)], ys[i % len(ys)]) for i in range(n)]


def unary(points):
    return lambda d: [(x,) for x in points(d)]


def within(low, high, points):
    return lambda d: [x for x in points(d) if low < x < high]


ALL = unary(lambda d: d.whole_range())
POSITIVE = unary(lambda d: d.whole_range(False))


def moderate(low, high, n=12, *places):
    """Evenly between two numbers, and small ones."""
    def points(d):
        xs = d.even(n, low, high) + d.logarithmic(4, 1e-37, 0.1, low < 0) + d.near(*places)
        xs += [d.sign(low < 0) * x for x in (1e-300, 1e-200, single(1e-20), single(3e-41), 3e-315)]
        return [x for x in xs if low <= x <= high]
    return unary(points)


def both(*makers):
    return lambda d: [p for m in makers for p in m(d)]


def two(low_x, high_x, low_y, high_y, n=24):
    return lambda d: [(d.spread(low_x, high_x), d.spread(low_y, high_y)) for _ in range(d.count(n))]


# ---- The functions

def log_gamma(x):
    return mp.re(mp.loggamma(x))


def softplus(x):
    return mp.log1p(mp.exp(x)) if x < 0 else x + mp.log1p(mp.exp(-x))


def erfc(x):
    return mp.erfc(x) if abs(x) < 1e4 else mp.mpf(0 if x > 0 else 2)


def erfcx(x):
    """Beyond 1000 by the asymptotic series."""
    if x < 1000:
        return mp.exp(x * x) * mp.erfc(x)
    term, total, k = mp.mpf(1), mp.mpf(0), 0
    while abs(term) > mp.eps:
        total += term
        term *= -(2 * k + 1) / (2 * x * x)
        k += 1
    return total / (x * mp.sqrt(mp.pi))


def ndtr(x):
    return erfc(-x / mp.sqrt(2)) / 2


def log_ndtr(x):
    return mp.log(ndtr(x)) if x > -5 else mp.log(erfcx(-x / mp.sqrt(2)) / 2) - x * x / 2


def log_add(x, y):
    return max(x, y) + mp.log1p(mp.exp(-abs(x - y)))


def lower(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def upper(a, x):
    return mp.gammainc(a, x, inf, regularized=True)


def betaln(a, b):
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


def sinc(x):
    return mp.sin(mp.pi * x) / (mp.pi * x) if x else mp.mpf(1)


def hypot(x, y):
    return mp.sqrt(x * x + y * y)


def ndtri(p):
    return mp.sqrt(2) * mp.erfinv(2 * p - 1)


def erf_inv(x):
    return mp.erfinv(x)


def gelu(x):
    return x / 2 * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x ** 3)))


def elu(x, alpha):
    return x if x > 0 else alpha * mp.expm1(x)


SELU = mp.mpf("1.0507009873554804934193349852946"), mp.mpf("1.6732632423543772848170429916717")


def near_0(s):
    """For functions with a kink at 0."""
    return lambda *x: [min(a, abs(t) / 8) for a, t in zip(s(*x), x)]


def of_gamma(*x):
    return [t / 8 for t in x]


def ordered(s):
    """With a kink where operands are equal."""
    return lambda x, y: [min(t, abs(x - y) / 8) for t in s(x, y)]


def by_norm(x, y):
    return [mp.sqrt(x * x + y * y) / 8] * 2


def mean_square(*x):
    m = sum(x) / len(x)
    return sum((t - m) ** 2 for t in x) / len(x)


def spread3(x, y, z):
    return [max(abs(x - y), abs(y - z)) / 8] * 3


HUGE_PAIRS = [(1e200, 1e200), (3e-200, 4e-200), (1e300, 1e-300), (1e-300, 1e300), (single(1e30), single(1e30)), (single(3e-30), single(4e-30)),
              (single(1e20), 1.0), (1.0, single(1e20)), (single(1e-30), 1.0), (1.0, single(1e-30))]


def plane(d):
    xs = [(d.sign(True) * x, d.sign(True) * y) for x, y in HUGE_PAIRS]
    for _ in range(d.count(8)):
        r = d.spread(1e-30, 1e30)
        xs.append((d.sign(True) * single(r * d.spread(1e-4, 1e4)), d.sign(True) * r))
    for _ in range(d.count(8)):
        xs.append((d.sign(True) * d.spread(1e-300, 1e300, True), d.sign(True) * d.spread(1e-300, 1e300, True)))
    return xs


def quadrant(d):
    return [(abs(x), abs(y)) for x, y in plane(d)]


def powers_of(d):
    out = [(d.spread(1e-37, 1e37), d.even(1, -3, 3)[0]) for _ in range(d.count(16))]
    out += [(d.spread(1e-300, 1e300, True), d.random.uniform(-3, 3)) for _ in range(d.count(10))]
    out += [(d.spread(0.1, 10), d.sign(True) * d.spread(1e-30, 30)) for _ in range(d.count(8))]
    out += [(d.spread(1e-30, 1e30), y) for y in (1.0, 2.0, 0.5, -1.0, 3.0, single(1e-3), single(-1e-20))]
    return out


def logs(d):
    return (d.pairs(d.logarithmic(8, 1e-30, 1e30), d.logarithmic(8, 1e-30, 1e30, False)) + d.pairs(d.even(6, -5, 5), d.logarithmic(6, 1e-37, 1e37, False))
            + [(1e200, 1e-200), (1e-200, 1e200), (1e-300, 1e-300), (1e-310, 2.0), (2.0, 1e-310)])


def pair_logs(d):
    return [(abs(x), y) for x, y in logs(d)] + [(single(x), single(x * d.random.uniform(0.999, 1.001))) for x in d.logarithmic(4, 1e-30, 1e30, False)]


def differences(d):
    """Of x - y of all sizes."""
    out = [(x, single(x + t)) for x, t in d.pairs(d.even(12, -50, 50), d.even(4, -2, 2) + d.even(4, -30, 30) + d.even(3, -100, 100))]
    return out + [(1e300, 1.0), (1.0, 1e300), (-1e308, 1e308), (single(1e-20), single(-1e-20)), (single(1e30), single(-1e30)), (0.5, 0.5)]


def away(points):
    """Without those at a kink."""
    return lambda d: [p for p in points(d) if p[0] != p[1]]


def fixed(f, *rest):
    return lambda x: f(*rest, x)


FUNCTIONS = {}


def row(name, f, scale, points, second=True, third=True, deepest=5):
    FUNCTIONS[name] = f, scale, points, second, third, deepest


BELOW_1 = unary(lambda d: [x for x in d.whole_range() if abs(x) < 0.9] + d.even(8, -1, 1) + [x for x in d.near(1, -1) if abs(x) < 1])
ABOVE_1 = unary(lambda d: [x for x in d.whole_range(False) if x > 1.1] + d.even(6, 1, 5) + [x for x in d.near(1) if x > 1])
ANGLES = both(moderate(-8, 8, 14, math.pi / 2, math.pi), unary(lambda d: d.logarithmic(6, 1, 1e5)))
LARGE = unary(lambda d: d.logarithmic(6, 1, 80) + d.logarithmic(3, 80, 600) + [1e200, -1e200, single(1e30), single(-1e30), single(-1e4), 1e4])
ONE = both(moderate(-4, 4), LARGE)

row("square", lambda x: x * x, powers, ALL)
row("reciprocal", lambda x: 1 / x, powers, ALL)
row("integer_pow_3", lambda x: x ** 3, powers, ALL)
row("integer_pow_m2", lambda x: x ** -2, powers, ALL)
row("integer_pow_m3", lambda x: x ** -3, powers, ALL)
row("sqrt", mp.sqrt, powers, POSITIVE)
row("rsqrt", lambda x: 1 / mp.sqrt(x), powers, POSITIVE)
row("cbrt", lambda x: mp.sign(x) * mp.cbrt(abs(x)), powers, ALL)
row("exp", mp.exp, entire, both(moderate(-88, 88), unary(lambda d: d.even(8, -740, 709))))
row("exp2", lambda x: mp.power(2, x), entire, both(moderate(-126, 127), unary(lambda d: d.even(8, -1070, 1023))))
row("expm1", mp.expm1, entire, both(moderate(-80, 88), moderate(-2, 2), unary(lambda d: d.even(8, -740, 709))))
row("log", mp.log, powers, POSITIVE)
row("log2", lambda x: mp.log(x, 2), powers, POSITIVE)
row("log10", mp.log10, powers, POSITIVE)
row("log1p", mp.log1p, from_points(-1), unary(lambda d: [x for x in d.whole_range() if x > -1] + [x for x in d.near(-1) if x > -1]))
row("sin", mp.sin, entire, ANGLES)
row("cos", mp.cos, entire, ANGLES)
row("tan", mp.tan, lambda x: [abs(mp.cos(x)) / 8], ANGLES)
row("asin", mp.asin, from_points(1, -1), BELOW_1)
row("acos", mp.acos, from_points(1, -1), BELOW_1)
row("atan", mp.atan, upright, ALL)
row("sinh", mp.sinh, entire, both(moderate(-88, 88), unary(lambda d: d.even(6, -709, 709))))
row("cosh", mp.cosh, entire, both(moderate(-88, 88), unary(lambda d: d.even(6, -709, 709))))
row("tanh", mp.tanh, entire, ONE)
row("asinh", mp.asinh, upright, ALL)
row("acosh", mp.acosh, from_points(1, -1), ABOVE_1)
row("atanh", mp.atanh, from_points(1, -1), BELOW_1)
row("logistic", lambda x: 1 / (1 + mp.exp(-x)), entire, ONE)
row("cospi", lambda x: mp.cos(mp.pi * x), entire, both(moderate(-3, 3, 16, 0.25), unary(lambda d: d.logarithmic(6, 1, 1e5))))
row("sinc", sinc, entire, both(moderate(-3, 3, 16, 0.25), unary(lambda d: d.logarithmic(6, 1, 1e5) + [single(1e10)])))
row("erf", lambda x: 1 - erfc(x), gaussian, both(moderate(-6, 6), unary(lambda d: d.even(8, -27, 27) + [1e200, single(1e30)])))
row("erfc", erfc, gaussian, both(moderate(-6, 6), unary(lambda d: d.even(8, -27, 27) + [1e200, single(1e30)])))
row("erf_inv", erf_inv, from_points(1, -1), BELOW_1, deepest=3)
row("lgamma", log_gamma, from_poles, both(POSITIVE, moderate(0, 5, 6, 1, 2), unary(lambda d: [x + 0.3 * d.random.random() for x in (-1.6, -7.6, -30.5)] + d.even(6, -20, -0.1))), deepest=3)
row("gamma", mp.gamma, from_poles, both(moderate(0, 30, 8, 1, 2), unary(lambda d: d.even(6, -8, -0.1) + d.even(5, 20, 170))), deepest=3)
row("digamma", mp.digamma, from_poles, both(POSITIVE, moderate(0, 5, 6, 1.4616321), unary(lambda d: d.even(6, -20, -0.1))), deepest=3)
row("div", lambda x, y: x / y, powers, plane)
row("mul", lambda x, y: x * y, powers, plane)
row("fma", lambda x, y, z: x * y + z, powers, lambda d: [(x, y, d.logarithmic(1, 1e-30, 1e30)[0]) for x, y in plane(d)])
row("rem", lambda x, y: x - y * mp.sign(x / y) * mp.floor(abs(x / y)), lambda x, y: [abs(x) / 1e9, abs(y) / 1e9],
    lambda d: [(x, y) for x, y in two(0.1, 1e4, 0.1, 10)(d) if abs(x / y - round(x / y)) > 1e-4] + [(0.3, 0.1), (single(0.7), single(-0.1)), (-5.5, 0.25 + 2.0 ** -20)], third=False)
row("pow", mp.power, lambda x, y: [x / (8 * (1 + abs(y))), 1 / (8 * (1 + abs(mp.log(x))))], powers_of)
row("atan2", mp.atan2, by_norm, plane)
row("hypot", hypot, by_norm, plane)
row("zeta", mp.zeta, lambda s, q: [(s - 1) / 8, q / 8], two(1.05, 30, 0.05, 50, 16), deepest=3)
row("logaddexp", log_add, ordered(lambda x, y: [mp.mpf(1) / 4] * 2), away(differences))
row("logaddexp2", lambda x, y: log_add(x * mp.log(2), y * mp.log(2)) / mp.log(2), ordered(lambda x, y: [mp.mpf(1) / 4] * 2), away(differences))

# jot/nn.h and what ops.h has of it
row("softplus", softplus, near_0(entire), ONE)
row("log_sigmoid", lambda x: -softplus(-x), near_0(entire), ONE)
row("silu", lambda x: x / (1 + mp.exp(-x)), entire, ONE)
row("gelu", gelu, entire, ONE)
row("gelu_exact", lambda x: x * ndtr(x), gaussian, both(moderate(-4, 4), unary(lambda d: d.even(8, -37, 37) + [1e200, -1e200, single(1e30), single(-1e30)])))
row("mish", lambda x: x * mp.tanh(softplus(x)), near_0(entire), ONE)
row("elu", elu, near_0(lambda x, a: [mp.mpf(1) / 4, a / 8]), lambda d: d.pairs([p[0] for p in ONE(d)], d.even(4, 0.1, 3)))
row("celu", lambda x, a: x if x > 0 else a * mp.expm1(x / a), near_0(lambda x, a: [a / 8, a * min(1, a / abs(x)) / 8]), lambda d: d.pairs([p[0] for p in ONE(d)], d.even(4, 0.1, 3)))
row("selu", lambda x: SELU[0] * elu(x, SELU[1]), near_0(entire), ONE)
row("soft_sign", lambda x: x / (abs(x) + 1), near_0(upright), ALL)
row("squareplus", lambda x, b: (x + mp.sqrt(x * x + b)) / 2 if x > 0 else b / 2 / (mp.sqrt(x * x + b) - x), lambda x, b: [mp.sqrt(x * x + b) / 8, b / 8],
    lambda d: d.pairs(d.whole_range(), d.even(4, 0.1, 8) + [4.0, 4.0]))
row("hard_silu", lambda x: x * max(0, min(6, x + 3)) / 6, from_points(-3, 3), moderate(-6, 6))
row("sparse_plus", lambda x: 0 if x < -1 else x if x > 1 else (x + 1) ** 2 / 4, from_points(1, -1), moderate(-3, 3))
row("log1mexp", lambda x: mp.log(-mp.expm1(-x)), lambda x: [min(x, 1) / 8], both(POSITIVE, moderate(0, 40, 12, math.log(2))))

# Of a few elements
row("logsumexp", log_add, ordered(lambda x, y: [mp.mpf(1) / 4] * 2), away(differences))
row("logmeanexp", lambda x, y: log_add(x, y) - mp.log(2), ordered(lambda x, y: [mp.mpf(1) / 4] * 2), away(differences))
row("cumlogsumexp", log_add, ordered(lambda x, y: [mp.mpf(1) / 4] * 2), away(differences))
row("softmax", lambda x, y: 1 / (1 + mp.exp(y - x)), entire, differences)
row("log_softmax", lambda x, y: x - log_add(x, y), ordered(lambda x, y: [mp.mpf(1) / 4] * 2), away(differences))
row("norm", hypot, by_norm, lambda d: [(d.sign(True) * single(r * d.spread(0.25, 4)), d.sign(True) * r) for r in d.logarithmic(16, 1e-15, 1e15, False)])
row("prod", lambda x, y: x * y, powers, plane)
TRIPLES = lambda d: [(single(m + s * a), single(m + s * b), single(m + s * c)) for m, s in d.pairs(d.even(10, -5, 5), d.logarithmic(10, 1e-2, 1e10, False))
                     for a, b, c in [d.even(3, -1, 1)[:3] if DENSITY >= 1 else (0.1, -0.5, 0.75)]]
row("var", mean_square, spread3, TRIPLES)
row("std", lambda *x: mp.sqrt(mean_square(*x)), spread3, TRIPLES)

# jot/special.h
row("erfcx", erfcx, gaussian, both(moderate(-5, 8), unary(lambda d: d.logarithmic(6, 1, 1e5, False) + [1e100, 1e200, single(1e15)])), deepest=4)
row("dawsn", lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), gaussian, both(moderate(-8, 8, 16), unary(lambda d: d.logarithmic(6, 1, 100))), deepest=4)
row("fresnel_s", mp.fresnels, lambda x: [1 / (8 + 8 * abs(x))], both(moderate(-4, 4), unary(lambda d: d.logarithmic(4, 1, 300))), deepest=3)
row("fresnel_c", mp.fresnelc, lambda x: [1 / (8 + 8 * abs(x))], both(moderate(-4, 4), unary(lambda d: d.logarithmic(4, 1, 300))), deepest=3)
row("exp1", mp.e1, lambda x: [min(x, 1) / 8], both(POSITIVE, moderate(0, 80)), deepest=3)
for n in (0, 1, 2, 5):
    row("expn_%d" % n, fixed(mp.expint, n), lambda x: [min(x, 1) / 8], unary(lambda d: d.logarithmic(8, 1e-12, 1, False) + d.even(12, 0, 80)), deepest=3)
row("expi", mp.ei, lambda x: [min(abs(x), 1) / 8], both(moderate(-80, 80), moderate(-2, 2, 8, 0.3725074), unary(lambda d: [690.5, 712.5, single(90.5)])), deepest=3)
row("si", mp.si, entire, both(moderate(-9, 9), unary(lambda d: d.logarithmic(6, 1, 1e4))), deepest=3)
row("ci", mp.ci, lambda x: [min(x, 1) / 8], both(moderate(0, 9), unary(lambda d: d.logarithmic(6, 1, 1e4, False))), deepest=3)
row("spence", lambda x: mp.polylog(2, 1 - x), lambda x: [min(x, 1 + abs(x - 1)) / 8], both(unary(lambda d: [x for x in d.whole_range(False) if 1e-100 < x < 1e30]), moderate(0, 4, 8, 1)), deepest=3)
row("factorial", lambda n: mp.gamma(n + 1), lambda n: [(n + 1) / 8], moderate(0, 30), deepest=3)
row("multigammaln", lambda a: mp.log(mp.pi) * 3 / 2 + sum(log_gamma(a - mp.mpf(j) / 2) for j in range(3)), lambda a: [(a - 1) / 8], unary(lambda d: d.even(6, 1.05, 5) + d.logarithmic(5, 2, 1e5, False)), deepest=3)
row("polygamma_1", fixed(mp.polygamma, 1), from_poles, both(moderate(0, 30), unary(lambda d: d.even(5, -9, -0.1) + [1e100, 1e-60, single(1e30)])), deepest=3)
row("polygamma_2", fixed(mp.polygamma, 2), from_poles, both(moderate(0, 30), unary(lambda d: d.even(5, -9, -0.1) + [1e100, 1e-60, single(1e10)])), deepest=3)
row("gammainc", lower, lambda a, x: [a / 8, x / 8], lambda d: two(0.05, 30, 0.05, 30, 16)(d) + [(a, single(a * d.random.uniform(0.7, 1.4))) for a in d.logarithmic(8, 1, 300, False)]
    + [(single(0.155898601), single(0.405539662)), (single(0.281623006), single(0.497635931))], deepest=3)
row("gammaincc", upper, lambda a, x: [a / 8, x / 8], lambda d: two(0.05, 30, 0.05, 30, 16)(d) + [(a, single(a * d.random.uniform(0.7, 1.4))) for a in d.logarithmic(8, 1, 300, False)]
    + [(single(0.155898601), single(0.405539662)), (single(0.281623006), single(0.497635931))], deepest=3)
row("beta", lambda a, b: mp.exp(betaln(a, b)), of_gamma, lambda d: two(0.1, 30, 0.1, 30, 14)(d) + two(0.1, 1, 1, 1e4, 6)(d), deepest=3)
row("betaln", betaln, of_gamma, lambda d: two(0.01, 30, 0.01, 30, 12)(d) + two(1e-6, 1e6, 1e-6, 1e6, 12)(d), deepest=3)
row("poch", lambda z, m: mp.exp(log_gamma(z + m) - log_gamma(z)), of_gamma, lambda d: two(0.01, 30, 0.01, 10, 12)(d) + two(1e-3, 1e5, 0.01, 5, 8)(d), deepest=3)
row("comb", lambda n, k: mp.exp(log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1)), lambda n, k: [min(n - k + 1, n) / 8, min(k + 1, n - k + 1) / 8],
    lambda d: [(n, single(n * d.random.random())) for n in d.logarithmic(16, 0.5, 300, False)] + [(single(6.12711716), single(0.488492042))], deepest=3)
row("betainc", lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True), lambda a, b, x: [a / 8, b / 8, min(x, 1 - x) / 8],
    lambda d: [(a, b, x) for (a, b), x in zip(two(0.1, 30, 0.1, 30, 10)(d), d.even(10, 0.05, 0.95))], third=True, deepest=2)
for n in (0, 1):
    row("i%d" % n, fixed(mp.besseli, n), entire, both(moderate(-16, 16), unary(lambda d: d.logarithmic(5, 8, 80))), deepest=3)
    row("i%de" % n, lambda x, n=n: mp.besseli(n, x) * mp.exp(-abs(x)), near_0(entire), both(moderate(-16, 16), unary(lambda d: d.logarithmic(5, 8, 5000))), deepest=3)
for n in (0, 1, 3):
    row("bessel_jn_%d" % n, fixed(mp.besselj, n), entire, both(moderate(-12, 12), unary(lambda d: d.logarithmic(5, 8, 500))), deepest=3)
def from_pole(b):
    """How far b is from 0, -1, -2, ..."""
    return (b if b > mp.mpf(1) / 2 else abs(b - mp.nint(b))) / 8


def near_whole(d, low, high, bits):
    return d.random.randint(low, high) + d.sign(True) * 2.0 ** -d.random.randint(1, bits)


def wide_or_single(points):
    """The same kinds of points, once for f64 and once for both widths."""
    return lambda d: [p for p in points(d)] + [tuple(map(single, p)) for p in points(d)]


def kummer_points(d):
    """Moderate operands; whole ones; ones that are next to whole; x far away and small; a or b large."""
    r, out = d.random, []
    for _ in range(d.count(1)):
        out += [(d.spread(0.2, 8), d.spread(0.2, 8), r.uniform(-20, 20)),
                (d.sign(True) * d.spread(0.05, 20), d.sign(True) * d.spread(0.05, 20), r.uniform(-40, 40)),
                (r.randint(-10, 10), r.randint(1, 10), r.uniform(-30, 30)),
                (near_whole(d, -10, 10, 44), near_whole(d, -6, 10, 40), r.uniform(-30, 30)),
                (d.sign(True) * d.spread(0.05, 10), d.spread(0.05, 10), d.sign(True) * d.spread(30, 1000)),
                (d.sign(True) * d.spread(0.05, 10), d.spread(0.05, 10), d.sign(True) * d.spread(1e-30, 1)),
                (d.spread(0.01, 1), d.spread(20, 200), r.uniform(-100, 100)),
                (d.spread(20, 100), d.spread(0.1, 100), r.uniform(-5, 50))]
    return out


def gauss_points(d):
    """Moderate operands; negative a, b and c; whole ones; ones that are next to whole; x next to 1, far away and small;
    c - a whole."""
    r, out = d.random, []
    for _ in range(d.count(1)):
        a = d.spread(0.2, 5)
        out += [(d.spread(0.2, 4), d.spread(0.2, 4), r.uniform(0.5, 8), r.uniform(-3, 0.9)),
                (d.sign(True) * d.spread(0.05, 12), d.sign(True) * d.spread(0.05, 12), d.spread(0.05, 20), r.uniform(-5, 0.97)),
                (d.sign(True) * d.spread(0.05, 8), d.sign(True) * d.spread(0.05, 8), -d.spread(0.05, 8), r.uniform(-2, 0.9)),
                (r.randint(-8, 8), r.randint(1, 8), r.randint(1, 10), r.uniform(-5, 0.97)),
                (near_whole(d, -8, 8, 44), d.sign(True) * d.spread(0.1, 8), near_whole(d, -4, 8, 40), r.uniform(-4, 0.95)),
                (d.sign(True) * d.spread(0.05, 5), d.sign(True) * d.spread(0.05, 5), d.spread(0.05, 8), 1 - 2.0 ** -r.uniform(2, 45)),
                (d.sign(True) * d.spread(0.05, 5), d.sign(True) * d.spread(0.05, 5), d.spread(0.05, 8), -d.spread(1, 1000)),
                (d.sign(True) * d.spread(0.05, 10), d.spread(0.05, 10), d.spread(0.05, 10), d.sign(True) * d.spread(1e-30, 0.1)),
                (a, d.spread(0.2, 5), a + r.randint(-3, 3), r.uniform(-4, 0.95))]
    return [p for p in out if p[3] < 1 and (p[2] > 0 or p[2] != round(p[2]))]


row("hyp1f1", mp.hyp1f1, lambda a, b, x: [mp.mpf(1) / 8, from_pole(b), mp.mpf(1) / 8],
    lambda d: wide_or_single(kummer_points)(d) + [tuple(map(single, p)) for p in ((0.292676091, 7.90702963, -19.1351089), (7.98440695, 1.04858398, -14.5961018))], deepest=3)
row("hyp2f1", mp.hyp2f1, lambda a, b, c, x: [mp.mpf(1) / 8, mp.mpf(1) / 8, from_pole(c), min(1 - x, 1) / 8],
    lambda d: wide_or_single(gauss_points)(d)
    + [tuple(map(single, p)) for p in ((0.298617065, 0.245830074, 4.79880762, -0.00334212068), (0.219458923, 0.327183247, 6.86048555, -1.17926717),
                                       (2.96800399, 1.13361537, 2.95350957, -1.32221711), (0.28043282, 0.366156936, 6.31122017, 0.766776502),
                                       (0.250066191, 2.53118205, 0.617476225, -2.51880145), (0.75, 1.25, 2.5, 1e-20))], deepest=3)
row("xlogy", lambda x, y: x * mp.log(y), powers, logs)
row("xlog1py", lambda x, y: x * mp.log1p(y), lambda x, y: [abs(x) / 8, (1 + y) / 8], lambda d: logs(d) + [(x, y) for x, (y,) in zip(d.even(8, -3, 3), [(t,) for t in d.near(-1) if t > -1])])
row("entr", lambda x: -x * mp.log(x), powers, both(POSITIVE, unary(lambda d: d.near(1 / math.e, 1))))
row("rel_entr", lambda p, q: p * mp.log(p / q), powers, pair_logs)
row("kl_div", lambda p, q: p * mp.log(p / q) - p + q, powers, pair_logs)
row("logit", lambda x: mp.log(x / (1 - x)), from_points(0, 1), unary(lambda d: [x for x in d.whole_range(False) + d.even(8, 0, 1) + d.near(1, 0.5) if 0 < x < 1]))
row("ndtr", ndtr, gaussian, both(moderate(-5, 5), unary(lambda d: d.even(8, -37, 37) + [1e200, -1e200, single(1e30)])))
row("log_ndtr", log_ndtr, gaussian, both(moderate(-5, 5), unary(lambda d: d.even(8, -60, 37) + [-1e100, -1e200, single(-1e15)])), deepest=4)
row("ndtri", ndtri, from_points(0, 1), unary(lambda d: d.even(12, 0, 1) + d.logarithmic(6, 1e-30, 0.1, False) + d.near(0.5) + [x for x in d.near(1) if x < 1 and 1 - x > 1e-12]), deepest=3)


def owens_slope(h, a):
    return mp.exp(-h * h * (1 + a * a) / 2) / (1 + a * a) / (2 * mp.pi)


# The slopes of Owen's T, of which one is elementary and the other an error function.
CLOSED = {"owens_t": ((lambda h, a: -mp.erf(a * h / mp.sqrt(2)) * mp.exp(-h * h / 2) / (2 * mp.sqrt(2 * mp.pi)), owens_slope),
                      lambda h, a: [1 / (8 * (1 + abs(h) + abs(a))), 1 / (8 * (1 + abs(h)))],
                      lambda d: d.pairs(d.even(10, -6, 6), d.even(6, -3, 3) + d.logarithmic(6, 1, 20)) + [(single(0.5), single(1e-20)), (single(1e-20), single(0.5)), (0.5, 1e200), (single(1e-20), single(1e15))])}


# ---- Writing

def orders_of(n, total):
    return [o for o in itertools.product(range(total + 1), repeat=n) if sum(o) == total]


def text(x):
    if abs(x) < mp.mpf(2) ** -1076:
        return "0"
    if abs(x) >= mp.mpf(2) ** 1024:
        return "-INFINITY" if x < 0 else "INFINITY"
    if abs(x) < mp.mpf(2) ** -1022:
        return repr(float(mp.nstr(x, 20)))
    return mp.nstr(x, 17, min_fixed=-3, max_fixed=9).rstrip("0").rstrip(".") if "e" not in mp.nstr(x, 17, min_fixed=-3, max_fixed=9) else mp.nstr(x, 17)


def condition(d, orders, x):
    """Of a derivative, by those of the next order."""
    total = mp.mpf(0)
    for i, t in enumerate(x):
        higher = tuple(o + (i == k) for k, o in enumerate(orders))
        total += abs(mp.mpf(t) * d[higher])
    value = abs(d[orders])
    if value == 0:
        return None
    return max(mp.mpf(1), total / value)


def line(name, point, d, n, second):
    """All first derivatives and all second ones, in the order of their operands; NAN where one is 0 for all numbers or has no
    correct digit."""
    values, conditions = [], []
    for total in (1, 2) if second else (1,):
        for indices in itertools.combinations_with_replacement(range(n), total):
            o = tuple(indices.count(i) for i in range(n))
            c = condition(d, o, point)
            known = c is not None and c < 1e12
            values.append(text(d[o]) if known else "NAN")
            conditions.append("1" if not known or c == 1 else mp.nstr(c, 3) if c < 1e5 else "%.1e" % float(c))
    lists = [[repr(float(x)) for x in point], values, conditions]
    return "POINT(%s, %s)" % (name, ", ".join("L(%s)" % ", ".join(l) for l in lists))


def rows_of(name):
    if name in CLOSED:
        slopes, scale, points = CLOSED[name]
        for point in points(Draw(name)):
            d = {}
            for i, f in enumerate(slopes):
                wanted = [o for t in range(3) for o in orders_of(2, t)]
                part = derivatives(f, scale, point, wanted, 5)
                if part:
                    d.update({tuple(k + (i == j) for j, k in enumerate(o)): v for o, v in part.items()})
            if len(d) == 9:
                yield line(name, point, d, 2, True)
        return
    f, scale, points, second, third, deepest = FUNCTIONS[name]
    for point in points(Draw(name)):
        n, most = len(point), 3 if second and third else 2
        wanted = [o for t in range(1, most + 1) for o in orders_of(n, t)]
        d = derivatives(f, scale, point, wanted, deepest)
        if not d:
            print("no derivative of %s at %s" % (name, point), file=sys.stderr)
            continue
        for o in orders_of(n, 3):
            d.setdefault(o, mp.mpf(0))
        yield line(name, point, d, n, second)


def main():
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Made by tests/golden/make_derivative_accuracy.py.")
    print("//")
    print("//     name, operands, first derivatives and second ones (of two operands: 0, 1, 00, 01, 11), their conditions")
    for name in list(FUNCTIONS) + list(CLOSED):
        if not CHOSEN or name in CHOSEN:
            for row_of_points in rows_of(name):
                print(row_of_points)
            sys.stdout.flush()


main()
