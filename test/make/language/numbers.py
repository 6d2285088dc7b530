"""Cases of test/make/language.py: ints, floats, bools and complex numbers."""
from typing import Any, Dict, List, Optional, Tuple, Union
import cmath
import math
import torch

INTS = ((7, 2), (-7, 2), (7, -2), (-7, -2), (0, 5), (9223372036854775807, 2), (-9223372036854775808, 3), (5, 0))


@case(*INTS)
def int_ops(a: int, b: int):
    return a + b, a - b, a * b, a // b, a % b, -a, a & b, a | b, a ^ b, abs(a)


@case(*INTS)
def int_div(a: int, b: int):
    return a / b


@case((1, 3), (-1, 3), (1, 63), (1, 62), (-5, 1), (12345, 0))
def int_shift(a: int, b: int):
    return a << b, a >> b


@case((2, 10), (2, -1), (-2, 3), (0, 0), (10, 18), (10, 20), (0, -1))
def int_pow(a: int, b: int):
    return a ** b


@case(*INTS)
def int_divmod(a: int, b: int):
    return divmod(a, b)


@case(*INTS)
def int_compare(a: int, b: int):
    return a < b, a <= b, a > b, a >= b, a == b, a != b, a is None


@case((7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (0.0, 3.0), (-0.0, 1.0), (1e300, 1e-300), (float("inf"), 2.0), (5.0, 0.0), (float("nan"), 1.0))
def float_ops(a: float, b: float):
    return a + b, a - b, a * b, a // b, a % b, -a, a < b, a <= b, a > b, a >= b, a == b, a != b, abs(a)


@case((7.5, 2.0), (-7.5, 2.0), (7.5, 0.0), (0.0, 0.0))
def float_div(a: float, b: float):
    return a / b


@case((2.0, 0.5), (-2.0, 3.0), (-8.0, 0.333), (0.0, 0.0), (0.0, -1.0), (10.0, 400.0))
def float_pow(a: float, b: float):
    return a ** b


@case((7.5, 2.0), (-7.5, 2.0), (7.5, 0.0))
def float_divmod(a: float, b: float):
    return divmod(a, b)


@case((3, 0.5), (-3, 2.0), (2, -0.5))
def mixed_ops(a: int, b: float):
    return a + b, b + a, a - b, b - a, a * b, b * a, a / b, b / a, a // b, b // a, a % b, b % a, a ** b, b ** a


@case((3, 0.5), (-3, 2.0), (0, 0.0))
def mixed_compare(a: int, b: float):
    return a < b, b < a, a <= b, b <= a, a == b, b == a, a != b, a > b, a >= b, b > a, b >= a, min(a, b), max(a, b), min(b, a), max(b, a)


@case((True, False), (True, True), (False, False))
def bool_ops(a: bool, b: bool):
    return a and b, a or b, not a, a == b, a != b, a & b, a | b, a ^ b, int(a), float(a), int(a) + int(b)


@case((2.5,), (3.5,), (-2.5,), (0.5,), (-0.5,), (1e20,), (2.4999,), (float("inf"),))
def rounding(x: float):
    return round(x), math.floor(x), math.ceil(x)


@case((2.5,), (0.1,), (-1.9,), (1e17,), (9.99e18,), (float("nan"),))
def float_to_int(x: float):
    return int(x)


@case((3,), (-3,), (0,), (255,), (-255,), (9223372036854775807,), (-9223372036854775808,))
def int_bases(x: int):
    return hex(x), oct(x), bin(x), str(x)


@case(("12",), ("-7",), ("  9 ",), ("+3",), ("0x1f",), ("1.5",), ("",), ("99999999999999999999",), ("12abc",), ("1_000",))
def str_to_int(s: str):
    return int(s)


@case(("12",), ("-7.25",), (" 1e5 ",), ("inf",), ("-inf",), ("nan",), ("abc",), ("",), ("1e999",), ("1.5x",), ("infinity",), ("5 ",), ("0x10",), ("5e-324",), (".",), ("1.",))
def str_to_float(s: str):
    return float(s)


@case((0,), (5,), (-1,))
def int_conversions(x: int):
    return bool(x), float(x), str(x), complex(x), x == 0


@case((0.0,), (5.5,), (float("nan"),), (-0.0,))
def float_conversions(x: float):
    return bool(x), str(x), complex(x)


@case((0.1,), (1.0,), (1e16,), (1e22,), (1.5e300,), (1e-5,), (0.0001,), (123456789.125,), (-0.0,), (1 / 3,), (float("inf"),), (float("nan"),), (1e15,), (123456789012345678.0,), (5e-324,), (100000.0,), (1e6,), (12345678.9,))
def float_text(x: float):
    print(x)
    return str(x), "{}".format(x), f"{x}", "%f" % x, "%g" % x, "%e" % x, "%s" % x, str([x]), str((x,)), str({"a": x})


@case((1 + 2j, 3 - 1j), (0j, 1j), (-1.5 + 0j, 2 + 2j))
def complex_ops(a: complex, b: complex):
    return a + b, a - b, a * b, a / b, -a, a == b, a != b, abs(a), str(a), a ** b


MIXED = ((1 + 2j, 3, 0.5), (0j, -1, 2.0))


@case(*MIXED)
def complex_mixed_add(a: complex, i: int, f: float):
    return a + i, i + a, a - f, f - a, a + f, i - a


@case(*MIXED)
def complex_mixed_mul(a: complex, i: int, f: float):
    return a * i, f * a, a ** f, f ** a


@case(*MIXED)
def complex_made(a: complex, i: int, f: float):
    return complex(i, f), complex(f), complex(i, i), complex(f, f), complex(f, i), complex(i)


@case(*MIXED)
def complex_compare(a: complex, i: int, f: float):
    return a == f, a != f, f == a, f != a


@case((0.5 + 0.25j,), (-1 + 1j,))
def complex_math(z: complex):
    return cmath.sqrt(z), cmath.exp(z), cmath.log(z), cmath.sin(z), cmath.cos(z), cmath.tan(z), cmath.sinh(z), cmath.cosh(z), cmath.tanh(z), cmath.asin(z), cmath.acos(z), cmath.atan(z), cmath.phase(z), cmath.isinf(z), cmath.isnan(z), cmath.isfinite(z), cmath.log10(z)


@case((0.5,), (-0.25,), (0.999,))
def math_floats(x: float):
    return math.sqrt(abs(x)), math.exp(x), math.log(abs(x)), math.sin(x), math.cos(x), math.tan(x), math.asin(x), math.acos(x), math.atan(x), math.sinh(x), math.cosh(x), math.tanh(x), math.asinh(x), math.acosh(x + 2), math.atanh(x), math.log10(abs(x)), math.log1p(x), math.expm1(x), math.fabs(x), math.erf(x), math.erfc(x), math.gamma(x), math.lgamma(x), math.degrees(x), math.radians(x), math.isnan(x), math.isinf(x), math.isfinite(x), math.modf(x), math.frexp(x), math.pi, math.e, math.inf


@case((-1.0,), (0.0,))
def math_sqrt_log(x: float):
    return math.sqrt(x), math.log(x)


@case((12, 18), (-12, 18), (0, 5), (7, 0))
def math_ints(a: int, b: int):
    return math.gcd(a, b), math.sqrt(abs(a)), math.exp(b), math.pow(a, b), math.copysign(a, b), math.atan2(a, b), math.fmod(a, b + 1), math.floor(a), math.ceil(a)


@case((5.5, 2.5), (-5.5, 2.5), (5.5, -2.5))
def math_pairs(a: float, b: float):
    return math.fmod(a, b), math.remainder(a, b), math.pow(abs(a), b), math.copysign(a, b), math.atan2(a, b), math.ldexp(a, 3)


@case((5,), (0,), (20,), (21,), (-1,))
def math_factorial(n: int):
    return math.factorial(n)


@case((3.7, 2), (-3.7, 5))
def math_mixed(f: float, i: int):
    return math.pow(f, i), math.pow(i, f), math.fmod(f, i), math.fmod(i, f), math.atan2(f, i), math.copysign(i, f), math.copysign(f, i)


@case((9223372036854775807,), (-9223372036854775808,))
def wrap(x: int):
    return x + 1, x - 1, x * 2, -x, abs(x), x << 1


@case((10, 3), (10, -3))
def augmented(a: int, b: int):
    x = a
    x += b
    x -= 1
    x *= 3
    x %= 7
    y = float(a)
    y /= b
    y += 1
    y **= 2
    z = a
    z |= 1
    z &= 13
    z ^= 5
    return x, y, z


@case((5, 3), (3, 5), (4, 4))
def chained(a: int, b: int):
    return 1 < a < b, a == b == 4, a < b <= 5 < 10, min(a, b, 1), max(a, b, 9), min([a, b]), max([a, b])


@case((5,), (-5,), (0,))
def ternaries(a: int):
    s = "pos" if a > 0 else "neg" if a < 0 else "zero"
    x = a if a else 100
    return s, x, not a, bool(a) and a > 2, (a > 0) or (a < -10)


@case((1.0, 1), (2.5, 3))
def scalars(f: float, i: int):
    t = torch.tensor([f, float(i)])
    return t + f, t * i, f / t, i - t, t // i, t % 2, t ** i, i ** t, t > f, f < t, t == i, -t, f + t, i * t, t / i, 2 // t


@case((2, 3), (-2, 3))
def tensor_of_int(a: int, b: int):
    t = torch.tensor(a)
    return t + b, t / b, t // b, t % b, int(t), float(t), bool(t), t.item(), a / t, str(int(t))


@case((3, 4.5, True),)
def sums(i: int, f: float, b: bool):
    return sum([i, i]), sum([f, f]), sum([b, b]), any([b]), all([i, 0]), any([0.0, f]), min([f, 1.0]), max([i, 7])


@case((1.5, 2), )
def hashes(f: float, i: int):
    return hash(i) == hash(i), hash("a") == hash("a"), hash(f) == hash(f)


@case((5,),)
def int_consts(x: int):
    return x + 9223372036854775807, -9223372036854775807, 0xFF, 1_000, 0b101, 0o17, 1e3, .5, 5., 1e-3, 1j, 2.5j


@case((True,),)
def bool_text(b: bool):
    return str(b), f"{b}", str([b]), str((b, None)), str(None)


@case((3,), (300,), (-129,))
def number_any(x: int):
    n = torch.tensor([x]).item()
    return n, int(n), float(n)


@case((5, 2), )
def scalar_number(a: int, b: int):
    x = torch.tensor(a).item()
    y = torch.tensor(b + 0.5).item()
    return x + y, x - y, x * y, x / y, x // y, x % y, x < y, x == y, float(x) ** 2, abs(x), -y, min(x, y), max(x, y), int(x), float(y)
