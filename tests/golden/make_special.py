# SPDX-License-Identifier: Apache-2.0
"""Values of special functions by mpmath, for tests/trace/test_special.c:

    python3 make_special.py > ../trace/special_values.def

Arguments are numbers of single precision, so that both widths have the same values.
"""
import mpmath as mp

mp.mp.dps = 50
inf, nan = mp.inf, mp.nan


def incomplete(a, x, upper):
    a, x = mp.mpf(a), mp.mpf(x)
    return mp.gammainc(a, x, inf, regularized=True) if upper else mp.gammainc(a, 0, x, regularized=True)


def gammainc_grad_a(a, x):
    return mp.diff(lambda b: mp.gammainc(b, 0, x, regularized=True), mp.mpf(a), h=mp.mpf(10) ** -15)


def random_gamma_grad(a, x):
    a, x = mp.mpf(a), mp.mpf(x)
    return -gammainc_grad_a(a, x) / mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))


GAMMA = [(0.125, 0.0625), (0.125, 3), (0.5, 0.25), (0.5, 4.5), (1, 1), (2.5, 2), (2.5, 10), (9.75, 4),
         (10.5, 12), (40, 30), (40, 55), (150, 152.5), (201, 190), (201, 290), (500, 520), (5000, 4900)]
# name, function, arguments, tolerance in units of 2^-52 (2^-23)
TABLE = [
    ("erf", mp.erf, [-2.5, -0.5, 0.125, 1, 3], 4),
    ("erfc", mp.erfc, [-2.5, -0.5, 0.125, 1, 3, 8], 4),
    ("lgamma", lambda x: mp.log(abs(mp.gamma(x))), [-20.5, -1.25, -0.5, 0.0625, 0.75, 1.25, 2.5, 6.5, 9, 1e6], 4),
    ("gamma", mp.gamma, [-20.5, -1.25, -0.5, 0.0625, 0.75, 1.25, 2.5, 6.5, 9, 33.5], 8),
    ("digamma", mp.digamma, [-20.25, -1.25, -0.75, 0.0625, 0.75, 1.25, 2.5, 6.5, 9, 1e6], 8),
    ("zeta", mp.zeta, [(1.5, 0.25), (2, 1), (2, 7.5), (3, 0.125), (5.5, 2.5), (30, 1.5), (4, 100)], 8),
    ("gammainc", lambda a, x: incomplete(a, x, False), GAMMA, 128),
    ("gammaincc", lambda a, x: incomplete(a, x, True), GAMMA, 128),
    ("gammainc_grad_a", gammainc_grad_a, GAMMA, 256),
    ("random_gamma_grad", random_gamma_grad, GAMMA, 256),
]


def text(x):
    if isinstance(x, (int, float)):
        return repr(x)
    return "NAN" if mp.isnan(x) else ("-" if x < 0 else "") + "INFINITY" if mp.isinf(x) else mp.nstr(x, 17)


print("// SPDX-License-Identifier: Apache-2.0")
print("// Made by tests/golden/make_special.py.")
print("//")
print("//     name, operands, value, tolerance")
for name, f, points, tolerance in TABLE:
    for p in points:
        p = p if isinstance(p, tuple) else (p,)
        padded = [text(float(x)) for x in p] + ["0"] * (3 - len(p))
        value = f(*[mp.mpf(x) for x in p])
        print("VALUE(%s, %s, %s, %g)" % (name, ", ".join(padded), text(mp.re(value)), tolerance))
