# SPDX-License-Identifier: Apache-2.0
"""Values of special functions and of their derivatives by mpmath, with how well conditioned they are, for
tests/trace/test_special_accuracy.c:

    python3 make_special_accuracy.py > ../trace/special_accuracy.def

Random arguments, numbers of single precision, so that both widths have the same values.  The condition is the sum over the
arguments of the relative change of the value over that of the argument, and at least 1.
"""
import math
import random
import struct

import mpmath as mp

mp.mp.dps = 50
inf = mp.inf
generator = random.Random(1708)


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def spread(low, high):
    """Evenly distributed in the logarithm; between negative ends below 0."""
    if low < 0:
        return -spread(-high, -low)
    return math.exp(generator.uniform(math.log(low), math.log(high)))


def drawn(count, *ranges):
    return [tuple(single(spread(*r)) for r in ranges) for _ in range(count)]


def log_gamma(x):
    return mp.re(mp.loggamma(x))


def betaln(a, b):
    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)


def betainc(a, b, x):
    if min(a, b) > 1e5:  # DLMF 8.17.8
        front = mp.exp(a * mp.log(x) + b * mp.log1p(-x) - betaln(a, b))
        return front / a * mp.hyp2f1(a + b, 1, a + 1, x, maxterms=10 ** 6)
    return mp.betainc(a, b, 0, x, regularized=True)


def lower(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def upper(a, x):
    return mp.gammainc(a, x, inf, regularized=True)


def polygamma(n, x):
    """With the sign of the nearest whole n."""
    size = mp.gamma(n + 1) * mp.zeta(n + 1, x)
    return size if int(mp.nint(n)) % 2 else -size


FUNCTIONS = {
    "betaln": betaln,
    "beta": lambda a, b: mp.exp(betaln(a, b)),
    "poch": lambda z, m: mp.exp(log_gamma(z + m) - log_gamma(z)),
    "comb": lambda n, k: mp.exp(log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1)),
    "betainc": betainc,
    "gammainc": lower,
    "gammaincc": upper,
    "i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    "i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
    "i0": lambda x: mp.besseli(0, x),
    "i1": lambda x: mp.besseli(1, x),
    "log_ndtr": lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2),
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "polygamma": polygamma,
    "hyp1f1": mp.hyp1f1,
    "hyp2f1": mp.hyp2f1,
}


def skewed(count):
    """x near the mean of a, b far apart."""
    points = []
    for a, b in drawn(count, (0.1, 30), (1e2, 1e6)):
        points.append((a, b, single(a / (a + b) * spread(0.2, 3))))
    return points


def chosen(count):
    return [(n, single(n * generator.random())) for (n,) in drawn(count, (1, 300))]


def around(count):
    return [(a, single(a * spread(0.6, 1.6))) for (a,) in drawn(count, (0.1, 50))]


NAMED = [(0.5, 1e6), (0.5, 1e8), (2, 1e6), (0.5, 1e10), (1e6, 1e6)]
BETA = NAMED + drawn(8, (0.01, 20), (0.01, 20)) + drawn(5, (0.05, 20), (5, 2000)) + drawn(4, (0.01, 100), (1e3, 1e8))
POCH = [(1e6, 0.5)] + drawn(6, (0.1, 1e6), (0.01, 8)) + drawn(4, (0.1, 1e3), (0.01, 30)) + drawn(4, (10, 1e4), (-8, -0.01))
COMB = [(1e6, 2), (31710, 10)] + chosen(10)
BETAINC = ([(0.5, 1e6, single(1e-6)), (2, 1e6, single(1e-6)), (1e6, 1e6, 0.5), (568.5, single(740.8), single(0.4243))]
           + drawn(12, (0.05, 30), (0.05, 30), (0.05, 0.99)) + drawn(8, (1e-3, 1), (1e-3, 3), (0.05, 0.99))
           + drawn(4, (100, 1000), (100, 1000), (0.4, 0.6)) + skewed(8))
# Where the fraction and the series end, but not their derivatives.
WHOLE = [(1, 1, 0.5), (2, 3, 0.25), (3, 2, 0.75), (1, 3, 0.125), (2.5, 1, 0.625), (1, 2.5, 0.625), (4, 6, 0.375), (0.5, 2, 0.125)]
GAMMAINC = ([(single(1.488e-4), single(0.8736)), (single(1e-17), 0.5), (single(1.056), single(1.16))] + drawn(10, (1e-4, 3), (1e-6, 3))
            + drawn(4, (1e-17, 1e-3), (1e-17, 30)) + drawn(8, (0.3, 12), (0.3, 20)) + around(8))
ONE = drawn(6, (1e-3, 1)) + drawn(8, (1, 16)) + drawn(4, (16, 80))
BOTH = ONE + [(-x,) for (x,) in ONE[::3]]
NEAR = [(single(1e-6),), (single(-1e-6),)]
BELOW = drawn(10, (-60, -0.01)) + drawn(5, (0.01, 3))
SMALL = drawn(8, (1e-6, 1e-3), (0.05, 5))
SMALL_BETA = drawn(8, (1e-6, 1e-3), (0.05, 5), (0.05, 0.95))
# At the mean, where derivatives of the logarithm are small.
MEAN = ([(a, single(a * generator.uniform(0.95, 1.05))) for (a,) in drawn(16, (3, 25))])
MEAN_BETA = [(a, b, single(a / (a + b))) for a, b in drawn(8, (12, 200), (12, 200))]
POLYGAMMA = ([(n, single(x)) for n, x in ((1, 0.1), (1, 7.3), (2, 40), (3, 0.7), (5, 3.3), (20, 9.1))]
             + [(n, single(n / 2.7 * spread(0.7, 1.4))) for n in (60, 120, 169, 170, 171, 180, 200, 250)])
def either_sign(x):
    return generator.choice((1, -1)) * x


def near_whole(low, high):
    return generator.randint(low, high) + either_sign(2.0 ** -generator.randint(1, 16))


def kummer(count):
    points = [(a, b, single(either_sign(x))) for a, b, x in drawn(count, (0.2, 8), (0.2, 8), (0.1, 40))]
    points += [(single(either_sign(a)), single(either_sign(b)), single(either_sign(x))) for a, b, x in drawn(count, (0.05, 20), (0.05, 20), (0.01, 1000))]
    points += [(single(near_whole(-10, 10)), single(near_whole(-6, 10)), single(generator.uniform(-30, 30))) for _ in range(count)]
    return points + [(generator.randint(-10, 10), generator.randint(1, 10), single(either_sign(x))) for (x,) in drawn(count, (0.1, 2000))]


def gauss(count):
    points = [(a, b, c, single(generator.uniform(-3, 0.97))) for a, b, c in drawn(count, (0.2, 4), (0.2, 4), (0.5, 8))]
    points += [(single(either_sign(a)), single(either_sign(b)), single(either_sign(c)), single(-x)) for a, b, c, x in drawn(count, (0.05, 12), (0.05, 12), (0.05, 12), (0.1, 1000))]
    points += [(single(near_whole(-8, 8)), b, single(near_whole(-4, 8)), single(1 - 2 ** -generator.uniform(0, 20))) for (b,) in drawn(count, (0.1, 8))]
    return points + [(generator.randint(-8, 8), generator.randint(1, 8), generator.randint(1, 10), single(generator.uniform(-5, 0.99))) for _ in range(count)]


LARGE = [(x,) for x in (88.5, 91.5, 700.5, 711, 713)]
# name, by which argument it is derived or -1, points
TABLE = [
    ("betaln", -1, BETA), ("betaln", 0, BETA), ("betaln", 1, BETA), ("beta", -1, BETA), ("beta", 0, BETA[5:18]), ("beta", 1, BETA[5:18]),
    ("poch", -1, POCH), ("poch", 0, POCH), ("poch", 1, POCH), ("comb", -1, COMB), ("comb", 0, COMB), ("comb", 1, COMB),
    ("betainc", -1, BETAINC), ("betainc", 2, BETAINC[3:18]), ("betainc", 0, WHOLE + BETAINC[4:18]), ("betainc", 1, WHOLE + BETAINC[4:18]),
    ("gammainc", -1, GAMMAINC), ("gammaincc", -1, GAMMAINC), ("gammaincc", 0, GAMMAINC[6:]), ("gammainc", 1, GAMMAINC),
    ("i0e", -1, BOTH), ("i0e", 0, BOTH), ("i1e", -1, BOTH), ("i1e", 0, BOTH), ("i0", -1, BOTH[:12]), ("i1", -1, BOTH[:12]),
    ("log_ndtr", -1, BELOW), ("log_ndtr", 0, BELOW), ("erfcx", -1, BOTH[:15]), ("erfcx", 0, BOTH[:15]),
    ("i0", 0, BOTH[:12] + NEAR), ("i1", 0, BOTH[:12] + NEAR),
    ("gammainc", 0, SMALL + MEAN), ("gammaincc", 0, SMALL), ("betainc", 0, SMALL_BETA + MEAN_BETA), ("betainc", 1, SMALL_BETA + MEAN_BETA),
    ("betainc", 1, [(x[1], x[0], x[2]) for x in SMALL_BETA]), ("polygamma", -1, POLYGAMMA), ("polygamma", 1, POLYGAMMA[:10]),
    ("i0", -1, LARGE), ("i0", 0, LARGE), ("i1", -1, LARGE), ("i1", 0, LARGE),
    ("hyp1f1", -1, kummer(18)), ("hyp2f1", -1, gauss(18)),
]


def derived(f, i):
    if i < 0:
        return f
    return lambda *p: mp.diff(lambda t: f(*p[:i], t, *p[i + 1:]), p[i])


def condition(f, p, value):
    h, total = mp.mpf(10) ** -12, mp.mpf(0)
    for i, x in enumerate(p):
        moved = f(*p[:i], x * (1 + h), *p[i + 1:])
        total += abs((moved - value) / h / value)
    return max(1, total)


print("// SPDX-License-Identifier: Apache-2.0")
print("// Made by tests/golden/make_special_accuracy.py.")
print("//")
print("//     name, the argument of the derivative or -1, operands, value, condition")
for name, argument, points in TABLE:
    f = derived(FUNCTIONS[name], argument)
    for point in points:
        p = [mp.mpf(x) for x in point]
        value = mp.re(f(*p))
        if not mp.mpf(10) ** -300 < abs(value) < mp.mpf(10) ** 308:
            continue
        padded = [repr(float(x)) for x in point] + ["0"] * (4 - len(point))
        size = mp.nstr(mp.mpf(math.ceil(10 * condition(f, p, value))) / 10, 17, strip_zeros=True)
        print("POINT(%s, %d, %s, %s, %s)" % (name, argument, ", ".join(padded), mp.nstr(value, 17), size))
