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


def faddeeva(x, y):
    z = mp.mpc(x, y)
    with mp.workdps(400):
        return mp.exp(-z * z) * mp.erfc(-1j * z)


def owens_t(h, a):
    h, a = mp.mpf(h), mp.mpf(a)
    density = lambda x: mp.exp(-h * h * x * x / 2) / (1 + x * x)
    return mp.exp(-h * h / 2) / (2 * mp.pi) * mp.quad(density, mp.linspace(0, a, 33))


def harmonic(n, m, t):
    size = mp.sqrt((2 * n + 1) / (4 * mp.pi) * mp.factorial(n - abs(m)) / mp.factorial(n + abs(m)))
    sign = (-1) ** m if m < 0 else 1
    return sign * size * mp.re(mp.legenp(n, abs(m), mp.cos(t), type=2)) * mp.cos(m / 2)


# The last is below the axis.
PLANE = [(0, 0), (0.5, 0.25), (-0.5, 0.25), (2, 2.0 ** -20), (3.5, 0.5), (0.5, 8), (12, 9), (6, 7), (1000, 0.5), (0.75, -1.25)]
GAMMA = [(0.125, 0.0625), (0.125, 3), (0.5, 0.25), (0.5, 4.5), (1, 1), (2.5, 2), (2.5, 10), (9.75, 4),
         (10.5, 12), (40, 30), (40, 55), (150, 152.5), (201, 190), (201, 290), (500, 520), (5000, 4900)]
# The fraction's numerator a - i is 0 at i = a.
WHOLE = [(a, x) for a in (1, 2, 3, 10, 0.5) for x in (a / 2, 1.125 * a, a + 2.5, 4 * a + 8)]
BESSEL = [0, 2.0 ** -33, -0.001953125, 0.25, -0.5, 1, 2, -3.5, 5, 7.75, 8, 8.25, -11.5, 20, 50, -85, 1000]
# name, function, arguments, tolerance in units of 2^-52 (2^-23)
TABLE = [
    ("erf", mp.erf, [-2.5, -0.5, 0.125, 1, 3], 4),
    ("erfc", mp.erfc, [-2.5, -0.5, 0.125, 1, 3, 8], 4),
    ("lgamma", lambda x: mp.log(abs(mp.gamma(x))), [-20.5, -1.25, -0.5, 0.0625, 0.75, 1.25, 2.5, 6.5, 9, 1e6], 4),
    ("gamma", mp.gamma, [-20.5, -1.25, -0.5, 0.0625, 0.75, 1.25, 2.5, 6.5, 9, 33.5], 8),
    ("digamma", mp.digamma, [-20.25, -1.25, -0.75, 0.0625, 0.75, 1.25, 2.5, 6.5, 9, 1e6], 8),
    ("zeta", mp.zeta, [(1.5, 0.25), (2, 1), (2, 7.5), (3, 0.125), (5.5, 2.5), (30, 1.5), (4, 100)], 8),
    ("gammasgn", lambda x: mp.sign(mp.gamma(x)), [-20.5, -1.25, -0.5, 3], 0),
    ("factorial", lambda x: mp.factorial(x) if x >= 0 else mp.mpf(0), [-0.5, 0, 0.5, 5, 12], 8),
    ("polygamma", mp.polygamma, [(0, 2.5), (1, 0.5), (1, 7.25), (2, 1.5), (3, 4), (2, -4.625), (1, -0.75), (3, -20.25), (2, -17.75)], 16),
    ("poch", mp.rf, [(2.5, 0), (2.5, 3), (0.5, 1.5), (2.5, 40), (12.5, -0.25), (-2.5, 1.5)], 16),
    ("beta", mp.beta, [(0.5, 0.5), (2, 3.5), (-0.5, 1.25), (0.5, 1e6), (40, 0.75)], 16),
    ("betaln", lambda a, b: mp.log(abs(mp.beta(a, b))), [(0.5, 0.25), (2, 3.5), (0.5, 1e6), (2, 1e6), (40, 25.5)], 4),
    ("betainc", lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
     [(0.5, 0.5, 0.25), (2, 3, 0.125), (2, 3, 0.875), (10, 4, 0.75), (40, 60, 0.375), (0.125, 8, 0.0625), (200, 100, 0.6875)], 64),
    ("i0", lambda x: mp.besseli(0, x), BESSEL[:-1], 6),
    ("i1", lambda x: mp.besseli(1, x), BESSEL[:-1], 6),
    ("i0e", lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), BESSEL, 4),
    ("i1e", lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), BESSEL, 4),
    ("xlogy", lambda x, y: x * mp.log(y) if x else mp.mpf(0), [(0, 0), (0, 2), (1.5, 0.25)], 4),
    ("xlog1py", lambda x, y: x * mp.log1p(y) if x else mp.mpf(0), [(0, -1), (0, 2), (1.5, 0.25)], 4),
    ("entr", lambda x: -x * mp.log(x) if x > 0 else mp.mpf(0) if x == 0 else -inf, [0, 0.25, 3, -1], 4),
    ("rel_entr", lambda p, q: p * mp.log(p / q) if p and q else mp.mpf(0) if q else inf, [(0, 2), (0, 0), (1, 0), (0.5, 2)], 4),
    ("kl_div", lambda p, q: p * mp.log(p / q) - p + q if p else q, [(0, 2), (0.5, 2), (3, 1), (0.5, 0.501953125), (2.0 ** -60, 2.0 ** -60 * (1 - 2.0 ** -12)), (3, 3 + 2.0 ** -22), (0.25, 0.3125)], 16),
    ("logit", lambda x: mp.log(x / (1 - x)), [0.125, 0.25, 0.875], 8),
    ("ndtr", mp.ncdf, [-5, -0.5, 0, 1.5, 4], 16),
    ("log_ndtr", lambda x: mp.log(mp.ncdf(x)) if x > -40 else mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), [-100, -25, -15, -5, -0.5, 0, 1.5, 4], 64),
    ("ndtri", lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), [2.0 ** -30, 2.0 ** -60, 0.0625, 0.25, 0.5, 0.75, 0.9375], 16),
    ("gammainc", lambda a, x: incomplete(a, x, False), GAMMA, 128),
    ("gammaincc", lambda a, x: incomplete(a, x, True), GAMMA, 128),
    ("gammainc_grad_a", gammainc_grad_a, GAMMA + WHOLE, 256),
    ("random_gamma_grad", random_gamma_grad, GAMMA + WHOLE, 256),
    ("exp1", mp.e1, [2.0 ** -40, 0.125, 0.5, 0.984375, 1, 1.5, 3.875, 4, 9.5, 16, 60, 80], 4),
    ("expi", mp.ei, [-20, -4.5, -0.75, 2.0 ** -40, 0.125, 0.25, 0.375, 1, 3, 5.75, 6, 11.5, 12, 20, 24, 50, 60, 80], 6),
    ("expn", lambda n, x: mp.expint(n, x),
     [(0, 0.5), (0, 3), (1, 0.125), (1, 1), (1, 2), (2, 0.5), (2, 1.125), (3, 0.75), (3, 40), (10, 0.25), (10, 5), (60, 0.5), (60, 30)], 8),
    ("si", mp.si, [-0.5, 2.0 ** -40, 1, 3.875, 4, -7.5, 8, 25, 100.5], 4),
    ("ci", lambda x: mp.re(mp.ci(x)), [2.0 ** -40, 0.25, 1, 2.5, 4, 7.5, 8, 25, 100.5], 8),
    ("spence", lambda x: mp.re(mp.polylog(2, 1 - x)), [2.0 ** -40, 0.125, 0.46875, 0.5, 0.75, 0.9990234375, 1.0009765625, 1.5, 2, 2.125, 10, 1e6], 4),
    ("dawsn", lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), [2.0 ** -40, -0.5, 1.9375, 2, -3.5, 5, 8, 1000], 4),
    ("erfcx", lambda x: mp.exp(x * x) * mp.erfc(x) if x < 100 else mp.exp(-x * x + x * x) * mp.hyp2f0(0.5, 1, -1 / x ** 2) / x / mp.sqrt(mp.pi),
     [-9, -3.3125, -0.5, 0.125, 1, 1.9375, 2, 5.5, 6, 20, 1000], 6),
    ("fresnel_s", mp.fresnels, [2.0 ** -10, 0.5, -1.5, 1.625, 2.9375, 3, -5.25, 9], 8),
    ("fresnel_c", mp.fresnelc, [2.0 ** -10, 0.5, -1.5, 1.625, 2.9375, 3, -5.25, 9], 8),
    ("bessel_jn", mp.besselj, [(0, 0.5), (0, 5), (1, 2.0 ** -20), (1, -3), (2, 1e-6), (3, 8), (10, 2), (10, 30), (40, 20), (0, 200)], 32),
    ("hyp1f1", mp.hyp1f1, [(0.5, 1.5, 0.25), (1.25, 2.5, 8), (0.5, 1.5, -3), (2, 3.5, -40), (3, 0.5, 30), (1, 1, 1), (0.25, 4, 60)], 32),
    ("hyp2f1_c", lambda a, b, x: mp.hyp2f1(a, b, 1.75, x),
     [(0.5, 1.5, 0), (0.5, 1.5, 0.25), (0.5, 0.25, 0.5), (0.5, 0.25, 0.875), (0.5, 0.25, 1 - 2.0 ** -20), (0.5, 0.25, 1), (1, 0.75, 0.75),
      (2, 1.5, 0.9375), (-3, 2.5, 0.75), (-3, 2.5, 4), (0.5, 1.25, -0.5), (0.5, 1.25, -20), (2.5, 0.5, -1e6)], 32),
    ("owens_t", owens_t, [(0, 0.5), (1, 0), (0.5, 0.25), (-0.5, 0.25), (1.5, -1), (1.5, 3), (4, 0.5), (0.125, 20)], 8),
    ("wofz_re", lambda x, y: mp.re(faddeeva(x, y)), PLANE, 16),
    ("wofz_im", lambda x, y: mp.im(faddeeva(x, y)), PLANE, 16),
    ("harmonic", harmonic, [(0, 0, 0.5), (1, 1, 0.5), (3, -2, 1.25), (5, 0, 0), (6, -3, 2), (20, 7, 1)], 64),
    ("comb", mp.binomial, [(5, 2), (10.5, 3.25), (20, 10), (1e6, 2)], 16),
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
