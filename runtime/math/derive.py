#!/usr/bin/env python3
"""Derives the polynomials of coefficients.h (needs mpmath). Not part of the build.

Each is the interpolation of the named function at Chebyshev nodes of its range, in 120 digits:
within a factor of two of the minimax polynomial, which one more coefficient pays for. Prints
coefficients.h; the second number of each comment is the largest relative contribution of the
approximation error to the result, in bits.
"""
from mpmath import mp, mpf
import mpmath as m

mp.dps = 60


def interpolate(fn, lo, hi, count, power=1):
    """Coefficients, lowest first, of the polynomial of `count` terms through Chebyshev nodes, which a power above 1
    moves towards the lower end, where errors weigh more."""
    lo, hi = mpf(lo), mpf(hi)
    nodes = [lo + (hi - lo) * ((1 + m.cos(m.pi * (2 * i + 1) / (2 * count))) / 2) ** mpf(power)
             for i in range(count)]
    matrix = m.matrix(count, count)
    right = m.matrix(count, 1)
    for i, x in enumerate(nodes):
        for j in range(count):
            matrix[i, j] = x ** j
        right[i] = fn(x)
    return list(m.lu_solve(matrix, right))


def value(coefs, x):
    r = mpf(0)
    for c in reversed(coefs):
        r = r * x + c
    return r


def exp_q(r):
    if abs(r) < mpf(10) ** -20:
        return mpf(1) / 2 + r / 6
    return (m.expm1(r) - r) / r ** 2


def log_r(z):  # log(1+f) = 2s + s*z*R(z), s = f/(2+f), z = s*s
    s = m.sqrt(z)
    return (2 * m.atanh(s) / s - 2) / z


def pow_r(z):  # log(1+f) = 2s + (2/3)s*z + s*z*z*P(z)
    s = m.sqrt(z)
    return ((2 * m.atanh(s) / s - 2) / z - mpf(2) / 3) / z


def odd(fn):  # fn(x) = x + x*z*P(z)
    def p(z):
        x = m.sqrt(z)
        return (fn(x) / x - 1) / z
    return p


def erf_p(z):  # erf(x) = x + x*P(z)
    x = m.sqrt(z)
    return m.erf(x) / x - 1


def cos_q(z):  # cos(x) = 1 - z/2 + z*z*Q(z)
    return (m.cos(m.sqrt(z)) - 1 + z / 2) / z ** 2


K = mpf(4)


def erfcx(x):  # exp(x*x) erfc(x)
    if x > 25:
        s = m.nsum(lambda k: (-1) ** int(k) * m.fac2(2 * int(k) - 1) / (2 * x * x) ** int(k), [0, 14])
        return s / (x * m.sqrt(m.pi))
    return m.exp(x * x) * m.erfc(x)


def erfcx_p(t):  # (1+2x) exp(x*x) erfc(x), t = (x-4)/(x+4)
    x = K * (1 + t) / (1 - t)
    return 2 / m.sqrt(m.pi) if x > 10**6 else (1 + 2 * x) * erfcx(x)


def ndtr_p(t):  # (x+4) exp(x*x/2) ndtr(-x), t = (x-4)/(x+4)
    x = K * (1 + t) / (1 - t)
    return (x + K) * erfcx(x / m.sqrt(2)) / 2


GELU_HALF = mpf('2.8')


def tail(t):  # exp(x*x/2) ndtr(-x), x = 2.8 (1+t)
    return erfcx(GELU_HALF * (1 + t) / m.sqrt(2)) / 2


def log_erfc(x):  # erf(x) = 1 - exp(-g(x))
    return -m.log(m.erfc(x))


LN2 = m.log(2)
S = (m.sqrt(2) - 1) / (m.sqrt(2) + 1)
TABLE = [
    # name, function, range, terms f32, terms f64, share of the result (for the comment)
    ('EXP', exp_q, -LN2 / 2, LN2 / 2, 5, 11, lambda x, e: e * x * x / abs(m.expm1(x))),
    ('LOG', log_r, 0, S * S * mpf('1.01'), 3, 7, lambda z, e: e * z / 2),
    ('POW', pow_r, 0, S * S * mpf('1.01'), 0, 8, lambda z, e: e * z * z / 2),
    ('TANH', odd(m.tanh), 0, mpf('0.390625'), 6, 12, lambda z, e: e * z),
    ('SINH', odd(m.sinh), 0, 1, 4, 7, lambda z, e: e * z),
    ('ERF', erf_p, 0, 1, 7, 12, lambda z, e: e),
    ('SIN', odd(m.sin), 0, (m.pi / 4) ** 2 * mpf('1.001'), 3, 6, lambda z, e: e * z),
    ('COS', cos_q, 0, (m.pi / 4) ** 2 * mpf('1.001'), 3, 6, lambda z, e: e * z * z),
    ('ATAN', odd(m.atan), 0, (m.sqrt(2) - 1) ** 2 * mpf('1.001'), 5, 11, lambda z, e: e * z),
    ('ASIN', odd(m.asin), 0, mpf('0.25'), 6, 13, lambda z, e: e * z),
    ('ERFCX', erfcx_p, (mpf('0.45') - K) / (mpf('0.45') + K), (mpf('10.6') - K) / (mpf('10.6') + K),
     11, 0, lambda t, e: e),
    ('ERFCX', erfcx_p, (mpf('0.45') - K) / (mpf('0.45') + K), (28 - K) / (28 + K), 0, 23,
     lambda t, e: e),
    ('NDTR', ndtr_p, -1, (mpf('14.6') - K) / (mpf('14.6') + K), 11, 0, lambda t, e: e),
    ('NDTR', ndtr_p, -1, (39 - K) / (39 + K), 0, 24, lambda t, e: e),
    ('GELU', tail, -1, 1, 16, 0, lambda t, e: e * m.exp(-(GELU_HALF * (1 + t)) ** 2 / 2), 1.25),
    ('ERFLOG', log_erfc, mpf('0.99'), mpf('4.01'), 9, 0, lambda x, e: e * m.erfc(x)),
]


def main():
    import struct
    print('/* coefficients.h: polynomials of the vector math library, lowest power first. derive.py '
          'made them\n * and says of what; the number is the approximation\'s error, in bits of the '
          'result. */')
    print('#ifndef KILN_RUNTIME_MATH_COEFFICIENTS_H\n#define KILN_RUNTIME_MATH_COEFFICIENTS_H\n')
    for name, fn, lo, hi, n32, n64, share, *power in TABLE:
        for kind, n in (('F32', n32), ('F64', n64)):
            if not n:
                continue
            coefs = interpolate(fn, lo, hi, n, *power)
            if kind == 'F32':
                rounded = [mpf(struct.unpack('f', struct.pack('f', float(c)))[0]) for c in coefs]
            else:
                rounded = [mpf(float(c)) for c in coefs]
            worst = mpf(0)
            for i in range(1, 400):
                x = lo + (hi - lo) * mpf(i) / 400
                if x == 0:
                    continue
                worst = max(worst, abs(share(x, value(coefs, x) - fn(x))))
            bits = float(-m.log(worst, 2)) if worst else 999
            text = ', '.join(float(c).hex() + ('f' if kind == 'F32' else '') for c in rounded)
            lines, line = [], ''
            for part in text.split(', '):
                if len(line) + len(part) + 2 > 92:
                    lines.append(line)
                    line = ''
                line += part + ', '
            lines.append(line.rstrip(', '))
            print(f'#define KILN_COEF_{name}_{kind} /* {bits:.1f} */ \\')
            print(' \\\n'.join('  ' + l.rstrip() for l in lines))
            print()
    print('#endif')


main()
