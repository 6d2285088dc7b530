#!/usr/bin/env python3
"""Makes test/data/kernels/ops.txt: operators, arguments and results, by PyTorch.

Usage: ops.py OUTPUT      (with torch 1.13)

A line is a case: the operator's full name, its arguments (all of the schema), then `=` and the
results or `!` and words of the error, separated by tabs. Values:
  N, i5, f0.5, c1;2, b0, sTEXT (with %20 for odd characters), [v v], (v v), {k v k v}
  T:DTYPE:SIZES:STRIDES:VALUES   a tensor, values in the order of its storage; strides `?` in a
                                 result: any
"""
import math
import random
import sys

import torch

DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16",
          torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8",
          torch.uint8: "u8", torch.bool: "b8", torch.complex64: "c64", torch.complex128: "c128"}
F32, F64, F16, BF16 = torch.float32, torch.float64, torch.float16, torch.bfloat16
I64, I32, U8, B8, C64 = torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64
C128 = torch.complex128
NAN, INF = math.nan, math.inf
CODES = {d: i for i, d in enumerate([U8, torch.int8, torch.int16, I32, I64, F16, F32, F64, None,
                                     C64, torch.complex128, B8])}
CODES[BF16] = 15
rng = random.Random(11)
lines = []


def number(x):
    if isinstance(x, complex):
        return "%.8g;%.8g" % (x.real, x.imag)
    return "%.9g" % x if isinstance(x, float) else str(int(x))


def text(v, strides=True):
    if v is None:
        return "N"
    if isinstance(v, torch.Tensor):
        span = 0 if v.numel() == 0 else 1 + sum((n - 1) * s for n, s in zip(v.shape, v.stride()))
        flat = torch.as_strided(v, (span,), (1,), v.storage_offset())
        wide = flat.double() if v.is_floating_point() else flat
        dims = ",".join(map(str, v.shape)) or "-"
        steps = (",".join(map(str, v.stride())) or "-") if strides else "?"
        if not strides:
            wide = (v.double() if v.is_floating_point() else v).reshape(-1)
        return "T:%s:%s:%s:%s" % (DTYPES[v.dtype], dims, steps,
                                  ",".join(number(x) for x in wide.tolist()))
    if isinstance(v, bool):
        return "b%d" % v
    if isinstance(v, torch.dtype):
        return "i%d" % CODES[v]
    if isinstance(v, int):
        return "i%d" % v
    if isinstance(v, float):
        return "f%r" % v
    if isinstance(v, complex):
        return "c%r;%r" % (v.real, v.imag)
    if isinstance(v, str):
        return "s" + "".join(c if c.isalnum() or c in "_.-" else "%%%02x" % ord(c) for c in v)
    if isinstance(v, list):
        return "[" + " ".join(text(x, strides) for x in v) + "]"
    if isinstance(v, tuple):
        return "(" + " ".join(text(x, strides) for x in v) + ")"
    if isinstance(v, dict):
        return "{" + " ".join(text(k) + " " + text(x, strides) for k, x in v.items()) + "}"
    raise TypeError(type(v))


def call(name, args):
    space, rest = name.split("::")
    base, _, overload = rest.partition(".")
    packet = getattr(getattr(torch.ops, space), base)
    return getattr(packet, overload or "default"), base


def case(name, *args, strides=False, says=None):
    """Runs one operator; keyword-only arguments are given by position."""
    before = [text(a) for a in args]
    op, _ = call(name, args)
    schema = op._schema
    positional, keywords = [], {}
    for a, formal in zip(args, schema.arguments):
        if formal.kwarg_only:
            keywords[formal.name] = a
        else:
            positional.append(a)
    for formal in schema.arguments[len(args):]:
        before.append(text(formal.default_value))
    try:
        got = op(*positional, **keywords)
    except (RuntimeError, IndexError) as e:
        if "not implemented for" in str(e) and any(
                isinstance(a, torch.Tensor) and a.dtype in (F16, BF16) for a in args):
            return  # later versions have it
        words = says or str(e).split("\n")[0][:60]
        assert words in str(e), e
        if "not implemented for" in words:
            words = words[words.index("not implemented for"):]
        lines.append("\t".join([name] + before + ["!", words]))
        return
    outs = got if isinstance(got, tuple) and len(schema.returns) > 1 else (got,)
    if got is None and not schema.returns:
        outs = ()
    lines.append("\t".join([name] + before + ["="] + [text(o, strides) for o in outs]))


def values(dtype, shape, odd=False):
    n = math.prod(shape)
    if dtype == B8:
        flat = [rng.random() < 0.5 for _ in range(n)]
    elif dtype == U8:
        flat = [rng.randrange(0, 9) for _ in range(n)]
    elif dtype.is_floating_point:
        flat = [rng.randrange(-24, 25) / 8 for _ in range(n)]
        if odd and n > 3:
            flat[:4] = [NAN, INF, -INF, -0.0]
    elif dtype.is_complex:
        flat = [complex(rng.randrange(-8, 9) / 4, rng.randrange(-8, 9) / 4) for _ in range(n)]
    else:
        flat = [rng.randrange(-7, 8) for _ in range(n)]
    return torch.tensor(flat, dtype=dtype).reshape(shape)


def shapes():
    """Pairs of tensors that broadcast, in odd layouts; of one dtype, made by `make`."""
    yield lambda m, n: (m((2, 3)), n((2, 3)))
    yield lambda m, n: (m((17,)), n((17,)))
    yield lambda m, n: (m((2, 3)), n((3,)))
    yield lambda m, n: (m((2, 1, 3)), n((4, 1)))
    yield lambda m, n: (m((3, 2)).t(), n((2, 3)))
    yield lambda m, n: (m((3, 2)).t(), n((3, 2)).t())
    yield lambda m, n: (m((4, 6))[::2, 1::2], n((2, 1)).expand(2, 3))
    yield lambda m, n: (m(()), n((2, 2)))
    yield lambda m, n: (m(()), n(()))
    yield lambda m, n: (m((0, 3)), n((1, 3)))
    yield lambda m, n: (m((2, 0)), n((2, 1)))
    yield lambda m, n: (m((1, 2, 2, 3)).contiguous(memory_format=torch.channels_last),
                        n((1, 2, 2, 3)).contiguous(memory_format=torch.channels_last))
    yield lambda m, n: (m((2, 3)), n((2, 4)))  # does not broadcast


def binary():
    for make in shapes():
        a, b = make(lambda s: values(F32, s), lambda s: values(F32, s))
        case("aten::add.Tensor", a, b, 1, strides=True)
        case("aten::mul.Tensor", a, b, strides=True)
        case("aten::lt.Tensor", a, b, strides=True)
    mixed = [(F32, F64), (F32, I64), (I32, U8), (B8, I64), (F16, F32), (BF16, BF16), (C64, F32),
             (U8, torch.int8), (I64, F16), (B8, B8), (F64, C64)]
    for x, y in mixed:
        for first, second in (((2, 2), (2, 2)), ((), (3,)), ((3,), ())):
            a, b = values(x, first), values(y, second)
            for op in ("add.Tensor", "mul.Tensor", "eq.Tensor"):
                case("aten::" + op, a, b, *([1] if op[0] == "a" else []))
        case("aten::sub.Tensor", values(x, (3,)), values(y, (3,)), 1)
        case("aten::div.Tensor", values(x, (3,)), values(y, (3,)))
        case("aten::where.self", values(B8, (3,)), values(x, (3,)), values(y, (3,)))
    numbers = [(F32, 2), (F32, 0.5), (I64, 2), (I64, 0.5), (U8, 3), (U8, 300), (B8, 2), (B8, 0.5),
               (F16, 0.1), (I32, True), (F32, 1 + 2j), (F64, 1e300), (C64, 2)]
    for dtype, n in numbers:
        for op in ("add.Scalar", "mul.Scalar", "sub.Scalar", "div.Scalar", "gt.Scalar", "eq.Scalar"):
            if isinstance(n, complex) and op[0] == "g":
                continue
            case("aten::" + op, values(dtype, (4,)), n, *([1] if op[:3] in ("add", "sub") else []))
    for alpha in (2, -1, 0.5):
        case("aten::add.Tensor", values(F32, (5,)), values(F32, (5,)), alpha)
        case("aten::sub.Tensor", values(I64, (5,)), values(I64, (5,)), alpha)
        case("aten::rsub.Scalar", values(F32, (5,)), 3, alpha)
    odd = values(F32, (6,), True)
    other = torch.tensor([1.0, NAN, INF, 0.0, -2.0, 0.5])
    for op in ("maximum", "minimum", "fmax", "fmin", "atan2", "remainder.Tensor", "fmod.Tensor",
               "floor_divide", "div.Tensor", "ge.Tensor", "ne.Tensor", "logical_and", "logical_xor",
               "copysign.Tensor", "hypot", "heaviside", "nextafter", "logaddexp", "xlogy.Tensor"):
        case("aten::" + op, odd, other)
        case("aten::" + op, other, odd)
    for op in ("remainder.Tensor", "fmod.Tensor", "floor_divide", "maximum", "bitwise_and.Tensor",
               "bitwise_or.Tensor", "bitwise_xor.Tensor", "gcd", "lcm", "__and__.Tensor"):
        for dtype in (I64, I32, U8):
            b = values(dtype, (7,))
            case("aten::" + op, values(dtype, (7,)), torch.where(b == 0, torch.ones_like(b), b))
    for op in ("bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor", "logical_or"):
        case("aten::" + op, values(B8, (5,)), values(B8, (5,)))
    case("aten::remainder.Scalar", values(I64, (4,)), 0)
    case("aten::bitwise_and.Tensor", values(F32, (2,)), values(F32, (2,)))
    case("aten::sub.Tensor", values(B8, (2,)), values(B8, (2,)), 1)
    case("aten::neg", values(B8, (2,)))
    for op in ("__lshift__.Scalar", "__rshift__.Scalar"):
        for dtype, n in ((I64, 3), (I32, 1), (U8, 2)):
            case("aten::" + op, values(dtype, (5,)), n)
    for mode in ("trunc", "floor", None):
        for dtype in (F32, I64):
            b = values(dtype, (6,))
            case("aten::div.Tensor_mode", values(dtype, (6,)),
                 torch.where(b == 0, torch.ones_like(b), b), mode)
    case("aten::div.Tensor_mode", values(F32, (2,)), values(F32, (2,)), "up")
    for e in (0, 1, 2, 3, 0.5, -1, -2, -0.5, 2.5):
        case("aten::pow.Tensor_Scalar", values(F32, (5,)), e)
    for e in (0, 2, 3, 5, -1, 0.5):
        case("aten::pow.Tensor_Scalar", values(I64, (5,)), e)
    case("aten::pow.Tensor_Tensor", values(I64, (9,)), torch.arange(9) - 4)
    case("aten::pow.Scalar", 2, values(F32, (4,)))
    case("aten::pow.Scalar", 2, torch.arange(5))


def in_place():
    for op in ("add_.Tensor", "mul_.Tensor", "sub_.Tensor", "div_.Tensor"):
        tail = [1] if op[:3] in ("add", "sub") else []
        case("aten::" + op, values(F32, (2, 3)), values(F32, (3,)), *tail, strides=True)
        case("aten::" + op, values(F32, (3, 2)).t(), values(F32, (2, 3)), *tail, strides=True)
        case("aten::" + op, values(F32, (3,)), values(F32, (2, 3)), *tail)
        case("aten::" + op, values(I64, (3,)), values(F32, (3,)), *tail)
        case("aten::" + op, values(F32, (3,)), values(I64, (3,)), *tail)
        case("aten::" + op, values(F16, (3,)), values(F32, (3,)), *tail)
    case("aten::add_.Tensor", torch.ones(3).expand(2, 3), values(F32, (3,)), 1)
    case("aten::add_.Scalar", values(U8, (3,)), 255, 1)
    case("aten::eq_.Tensor", values(F32, (3,)), values(F32, (3,)))
    case("aten::lt_.Scalar", values(I64, (3,)), 1)
    for op in ("relu_", "tanh_", "sigmoid_", "exp_", "neg_", "abs_", "floor_"):
        case("aten::" + op, values(F32, (2, 5)))
    case("aten::exp_", values(I64, (2,)))
    case("aten::clamp_", values(F32, (9,)), -1, 1)
    case("aten::pow_.Scalar", values(F32, (4,)), 2)
    case("aten::masked_fill_.Scalar", values(F32, (2, 3)), values(B8, (3,)), 9)
    case("aten::copy_", values(F32, (2, 3)), values(I64, (3,)), False)
    case("aten::copy_", values(I64, (3, 2)).t(), torch.tensor([[1.5, -2.5, 3.0], [0, 9, -7.25]]), False)
    case("aten::copy_", values(U8, (2,)), torch.tensor([257, -1]), False)
    case("aten::copy_", values(F32, (3,)), values(F32, (2,)), False)
    case("aten::fill_.Scalar", values(F32, (4, 3))[::2], 1.5)
    case("aten::fill_.Scalar", values(I64, (4,)), 2)
    case("aten::zero_", values(F16, (4,)))
    case("aten::transpose_", values(F32, (2, 3)), 0, 1, strides=True)
    case("aten::unsqueeze_", values(F32, (2,)), 0, strides=True)


def unary():
    functions = ("neg abs sign exp log log2 log10 log1p expm1 sqrt rsqrt reciprocal sin cos tan asin"
                 " acos atan sinh cosh tanh asinh acosh atanh erf erfc erfinv square floor ceil round"
                 " trunc sigmoid relu silu mish hardsigmoid hardswish frac isnan isinf isfinite"
                 " signbit logical_not lgamma digamma exp2 relu6 selu nan_to_num sinc").split()
    points = torch.tensor([NAN, INF, -INF, -0.0, 0.5, -0.75, 1.0, 2.5, -2.5, 0.001, 20.0, -90.0])
    small = torch.tensor([0.25, -0.5, 0.875])
    for f in functions:
        tail = [None, None, None] if f == "nan_to_num" else []
        case("aten::" + f, points, *tail)
        case("aten::" + f, small.double(), *tail)
        case("aten::" + f, torch.tensor([-2, 0, 3]), *tail)
        case("aten::" + f, torch.tensor(0.5), *tail)
    for f in ("neg", "exp", "tanh", "abs", "sqrt", "sigmoid", "reciprocal", "square", "sin"):
        case("aten::" + f, values(C64, (3,)))
        case("aten::" + f, small.half())
        case("aten::" + f, small.bfloat16())
    for f in ("neg", "tanh", "abs"):
        case("aten::" + f, values(F32, (3, 4)).t(), strides=True)
        case("aten::" + f, values(F32, (4, 6))[::2, ::3], strides=True)
        case("aten::" + f, values(F32, (0, 2)), strides=True)
    case("aten::tanh", values(F32, (37,)))
    case("aten::exp", values(F64, (37,)))
    for low, high in ((-1, 1), (None, 0.5), (0, None), (2, -2), (NAN, 1.0), (None, None)):
        case("aten::clamp", points, low, high)
        case("aten::clamp", values(I64, (5,)), low, high)
    case("aten::clamp.Tensor", values(F32, (5,)), values(F32, (5,)), values(F32, ()))
    case("aten::leaky_relu", points, 0.1)
    case("aten::elu", points, 1.5, 1, 1)
    case("aten::softplus", points, 2, 20)
    case("aten::gelu", points, "none")
    case("aten::gelu", points, "tanh")
    case("aten::hardtanh", points, -1, 2)
    case("aten::threshold", points, 0.5, 9)
    case("aten::log_sigmoid", points)
    case("aten::round.decimals", points * 1.37, 1)
    case("aten::addcmul", values(F32, (2, 3)), values(F32, (3,)), values(F32, (2, 1)), 0.5)
    case("aten::addcdiv", values(F32, (3,)), values(F32, (3,)), torch.tensor([1.0, 2.0, 4.0]), 2)
    case("aten::lerp.Scalar", values(F32, (3,)), values(F32, (3,)), 0.25)
    case("aten::lerp.Tensor", values(F32, (3,)), values(F32, (3,)), values(F32, (3,)))


def reductions():
    tensors = [values(F32, (2, 3)), values(F32, (3, 4)).t(), values(F32, (2, 3, 4)),
               values(I64, (2, 3)), values(B8, (2, 3)), values(F16, (3, 5)), values(F32, ()),
               values(F32, (0, 3)), values(U8, (4, 2)), values(F64, (130,))]
    for t in tensors:
        case("aten::sum", t, None)
        case("aten::prod", t, None)
        case("aten::any", t)
        case("aten::all", t)
        case("aten::max", t)
        case("aten::min", t)
        if t.is_floating_point():
            case("aten::mean", t, None)
            case("aten::var", t, True)
        for dim in ([0], [-1], [0, 1], [], [3]):
            if t.dim() == 0 and len(dim) > 1:
                continue
            case("aten::sum.dim_IntList", t, dim, len(dim) == 1, None)
            if t.is_floating_point():
                case("aten::mean.dim", t, dim, False, None)
                case("aten::amax", t, dim, True)
            if t.is_floating_point() and t.numel():
                case("aten::std.dim", t, dim, True, False)
                case("aten::logsumexp", t, dim or [0], False)
        for dim in (0, -1, 2):
            case("aten::max.dim", t, dim, False)
            case("aten::min.dim", t, dim, True)
            case("aten::cumsum", t, dim, None)
            case("aten::any.dim", t, dim, False)
            case("aten::argmax", t, dim, False)
    odd = values(F32, (2, 6), True)
    for op in ("max", "min", "argmax", "argmin"):
        case("aten::" + op, odd, *([None, False] if op[:3] == "arg" else []))
    case("aten::max.dim", odd, 1, False)
    case("aten::min.dim", odd, 0, False)
    case("aten::sum", odd, F64)
    case("aten::sum.dim_IntList", values(I64, (2, 3)), [1], False, F32)
    case("aten::mean", values(I64, (3,)), None)
    case("aten::mean", values(I64, (3,)), F32)
    case("aten::sum.dim_IntList", values(F32, (2, 3, 4)), [0, 2], False, None)
    case("aten::sum.dim_IntList", values(F32, (2, 3)), [1, -1], False, None)
    for p in (2, 1, 0, 3, INF, -INF):
        case("aten::linalg_vector_norm", values(F32, (3, 4)), p, [1], False, None)
    t = torch.tensor([[3.0, 1.0, 2.0, 1.0], [NAN, 0.5, -1.0, 0.5]])
    for descending in (False, True):
        case("aten::sort.stable", t, True, 1, descending)
    case("aten::topk", torch.tensor([[3.0, 1.0, 2.0], [7.0, 9.0, 8.0]]), 2, 1, True, True)
    case("aten::topk", values(F32, (3,)), 4, 0, True, True)
    case("aten::cumprod", values(I64, (2, 3)), 1, None)


def views():
    t, u = values(F32, (2, 3, 4)), values(F32, (3, 4)).t()
    for sizes in ([6, 4], [-1], [2, -1, 2], [24, 1, 1], [5, -1], [-1, -1], [0, 24]):
        case("aten::view", t, sizes, strides=True)
        case("aten::view", u, sizes, strides=True)
        case("aten::reshape", u, sizes, strides=True)
    for a, b in ((0, -1), (1, 2), (0, 1), (2, 0), (-2, -1)):
        case("aten::flatten.using_ints", t, a, b, strides=True)
    case("aten::flatten.using_ints", torch.tensor(2.0), 0, -1, strides=True)
    for a, b in ((0, 1), (-1, 0), (1, 1), (3, 0)):
        case("aten::transpose.int", t, a, b, strides=True)
    for x in (u, values(F32, (3,)), values(F32, ()), t):
        case("aten::t", x, strides=True)
    for dims in ([2, 0, 1], [0, -1, 1], [0, 1], [0, 0, 1]):
        case("aten::permute", t, dims, strides=True)
    for sizes in ([2, 3], [4, 2, 3], [-1, 3], [2, -1, 3], [3], [2, 4]):
        case("aten::expand", values(F32, (2, 1)), sizes, False, strides=True)
    for d in (0, 1, -1, 3, -5):
        case("aten::unsqueeze", u, d, strides=True)
        case("aten::squeeze.dim", values(F32, (1, 3, 1)), d, strides=True)
    case("aten::squeeze", values(F32, (1, 3, 1)), strides=True)
    for d, i in ((0, 1), (1, -1), (-1, 3), (0, 2), (3, 0)):
        case("aten::select.int", t, d, i, strides=True)
    for d, a, b, s in ((0, None, None, 1), (1, 1, None, 1), (2, -2, 100, 1), (2, 0, 4, 3), (1, 2, 1, 1),
                       (0, 0, 1, 0)):
        case("aten::slice.Tensor", t, d, a, b, s, strides=True)
    for n, d in ((2, 0), (3, 2), (5, 1), (0, 0)):
        case("aten::chunk", t, n, d, strides=True)
        case("aten::split.Tensor", t, n, d, strides=True)
    case("aten::split_with_sizes", t, [1, 3], 2, strides=True)
    case("aten::split_with_sizes", t, [1, 2], 2, strides=True)
    case("aten::unbind.int", t, 1, strides=True)
    case("aten::diagonal", u, 1, 0, 1, strides=True)
    case("aten::unfold", values(F32, (7,)), 0, 3, 2, strides=True)
    case("aten::narrow", t, 2, -3, 2, strides=True)
    case("aten::numpy_T", t, strides=True)
    case("aten::movedim.intlist", t, [0], [-1], strides=True)
    for d in (0, 1, -1):
        case("aten::cat", [values(F32, (2, 3)), values(F32, (2, 3)), values(F32, (0,))], d)
        case("aten::stack", [values(F32, (3, 2)).t(), values(F32, (2, 3))], d)
    case("aten::cat", [values(F32, (2,)), values(I64, (3,))], 0)
    case("aten::cat", [values(F32, (2, 2)), values(F32, (3, 3))], 0)
    case("aten::cat", [torch.tensor(1.0)], 0)
    case("aten::stack", [values(F32, (2,)), values(F32, (3,))], 0)


def factories():
    for args in ((5,), (2.5,), (0,)):
        case("aten::arange", *args, None, None, None, None)
    case("aten::arange.start", 2, 5, F32, None, None, None)
    case("aten::arange.start_step", 1, 2, 0.25, None, None, None, None)
    case("aten::arange.start_step", 5, 0, -2, None, None, None, None)
    case("aten::arange.start_step", 0, 5, -2, None, None, None, None)
    case("aten::linspace", 0, 1, 5, None, None, None, None)
    case("aten::linspace", -3, 7, 4, F64, None, None, None)
    case("aten::zeros", [2, 3], None, None, None, None)
    case("aten::ones", [2], I64, None, None, None)
    case("aten::full", [2, 2], 1.5, None, None, None, None)
    case("aten::full", [0], 7, None, None, None, None)
    case("aten::zeros", [-1], None, None, None, None)
    case("aten::zeros_like", values(F32, (2, 3)).t(), None, None, None, None, None, strides=True)
    case("aten::full_like", values(I64, (2,)), 3, None, None, None, None, None)
    case("aten::new_ones", values(F64, (2,)), [3], None, None, None, None)
    case("aten::eye", 3, None, None, None, None)
    case("aten::eye.m", 2, 3, I64, None, None, None)
    for k in (-1, 0, 1):
        case("aten::tril", values(F32, (3, 4)), k)
        case("aten::triu", values(I64, (2, 2, 3)), k)
    for dtype in (F32, I64, B8, F16, U8):
        case("aten::to.dtype", torch.tensor([1.75, -2.5, 0.0, 3.0]), dtype, False, False, None)
    case("aten::to.dtype", values(F32, (3, 2)).t(), F64, False, True, None, strides=True)
    case("aten::contiguous", values(F32, (3, 2)).t(), 0, strides=True)
    case("aten::clone", values(F32, (3, 2)).t(), None, strides=True)
    case("aten::clone", values(F32, (1, 2, 2, 2)), 2, strides=True)
    case("aten::type_as", values(F32, (2,)), values(I64, (2,)))
    case("aten::size", values(F32, (2, 3)))
    case("aten::size.int", values(F32, (2, 3)), -1)
    case("aten::size.int", values(F32, (2, 3)), 2)
    case("aten::item", torch.tensor([2.5]))
    case("aten::item", values(F32, (2,)))


def indexing():
    t = values(F32, (3, 4))
    case("aten::index_select", t, 1, torch.tensor([3, 0, 0]))
    case("aten::gather", t, 1, torch.tensor([[0, 3], [1, 1], [2, 0]]), False)
    case("aten::gather", t, 0, torch.tensor([[5]]), False)
    case("aten::scatter.src", t.clone(), 0, torch.tensor([[0, 2]]), values(F32, (1, 2)))
    case("aten::scatter.value", t.clone(), 1, torch.tensor([[3], [0]]), 9)
    case("aten::scatter_add", t.clone(), 1, torch.tensor([[1, 1], [0, 0]]), values(F32, (2, 2)))
    i, j = torch.tensor([0, -1]), torch.tensor([[1], [2]])
    for index in ([i], [None, i], [i, torch.tensor([1, 2])], [j, i], [values(B8, (3,))],
                  [values(B8, (3, 4))], [torch.tensor([3])]):
        case("aten::index.Tensor", t, index)
    cube = values(F32, (2, 3, 4))
    case("aten::index.Tensor", cube, [i, None, i])
    case("aten::index.Tensor", cube, [None, i, i])
    case("aten::index.Tensor", cube, [None, values(B8, (3,))])
    case("aten::index_put_", t.clone(), [torch.tensor([0, 0])], values(F32, (4,)), False)
    case("aten::index_put_", t.clone(), [torch.tensor([0, 0]), i], values(F32, (2,)), True)
    case("aten::index_put_", t.clone(), [torch.tensor([1])], torch.ones(3), False)
    case("aten::masked_select", t, values(B8, (3, 4)))
    case("aten::nonzero", values(I64, (2, 3)))
    case("aten::index_add", t, 0, torch.tensor([1, 1]), values(F32, (2, 4)), 2)
    case("aten::repeat", values(F32, (2, 1)), [2, 1, 3])
    case("aten::repeat", values(F32, (2,)), [])
    case("aten::flip", cube, [0, 2])
    case("aten::roll", t, [1], [1])
    case("aten::roll", t, [-2], [])
    case("aten::constant_pad_nd", t, [1, 2, -1, 0], 5)
    case("aten::pad", values(F32, (1, 2, 4)), [2, 1], "reflect", None)
    case("aten::repeat_interleave.self_int", t, 2, 1, None)
    case("aten::glu", t, 1)
    case("aten::take_along_dim", t, torch.tensor([[1], [0], [3]]), 1)


def scalars():
    ints = (7, -7, 2, -3, 2**62, -2**63)
    for op in ("add.int", "sub.int", "mul.int", "floordiv.int", "remainder.int", "div.int", "lt.int",
               "ge.int", "eq.int", "__and__.int", "__xor__.int", "pow.int"):
        for a in ints[:4]:
            case("aten::" + op, a, 2)
            case("aten::" + op, a, -3)
    for op in ("add.int", "mul.int", "sub.int"):
        case("aten::" + op, 2**62, 2**62)
        case("aten::" + op, -2**63, 2)
    for op in ("add.float", "sub.float", "mul.float", "div.float", "floordiv.float",
               "remainder.float", "lt.float", "eq.float", "pow.float", "fmod.float"):
        for a, b in ((1.5, 2.0), (-7.25, 2.0), (7.25, -2.0), (NAN, 1.0), (1.0, 0.0), (INF, 2.0)):
            case("aten::" + op, a, b)
    case("aten::add.int_float", 1, 0.5)
    case("aten::mul.float_int", 0.5, 3)
    case("aten::__round_to_zero_floordiv.int", -7, 2)
    case("aten::floordiv.int", 1, 0)
    case("aten::neg.int", 5)
    case("prim::abs.int", -5)
    case("prim::max.int", 2, 3)
    case("prim::min.float", 2.5, -1.0)
    case("prim::max.self_int", [3, 9, 2])
    case("prim::min.self_float", [3.0, -9.0])
    case("aten::add.complex", 1 + 2j, 3 - 1j)
    case("aten::mul.complex", 1 + 2j, 3 - 1j)
    case("aten::div.complex", 1 + 2j, 3 - 1j)
    for f in ("floor", "ceil", "round", "sqrt", "exp", "log", "sin", "atan", "tanh", "expm1",
              "log1p", "gamma", "lgamma", "erf", "degrees", "fabs", "asinh"):
        for x in (0.5, 2.5, 3.0):
            case("aten::%s.float" % f, x)
    case("aten::round.float", -2.5)
    case("aten::floor.float", -0.5)
    case("aten::atan2.float", 1.0, -2.0)
    case("aten::factorial.int", 5)
    case("aten::factorial.int", -1)
    case("aten::gcd.int", 12, -18)
    case("aten::divmod.int", -7, 2)
    case("aten::divmod.float", -7.5, 2.0)
    for a, b, s in ((0, 10, 3), (10, 0, -3), (0, 0, 1), (5, 1, 2), (0, 1, 0)):
        case("aten::__range_length", a, b, s)
    case("aten::__derive_index", 3, 10, -2)
    case("aten::Int.float", -2.75)
    case("aten::Int.str", "-42")
    case("aten::Float.str", "1e-3")
    case("aten::Float.int", 3)
    case("aten::Bool.float", 0.0)
    case("aten::__not__", True)


def script(name, signature, body, *args):
    """Operators on lists of any type: their results in a script function."""
    function = torch.jit.CompilationUnit("def f(%s):\n    return %s\n" % (signature, body)).f
    before = [text(a) for a in args]
    try:
        got = function(*[list(a) if isinstance(a, list) else a for a in args])
    except RuntimeError as e:
        words = str(e).strip().split("\n")[-1].replace("RuntimeError: ", "")[:60]
        lines.append("\t".join([name] + before + ["!", words]))
        return
    lines.append("\t".join([name] + before + ["=", text(got)]))


def lists():
    a = [3, 1, 2]
    for i in (0, -1, 3, -4):
        script("aten::__getitem__.t", "a: List[int], i: int", "a[i]", a, i)
        script("aten::pop.t", "a: List[int], i: int", "a.pop(i)", a, i)
    script("aten::pop.t", "a: List[int], i: int", "a.pop(i)", [], -1)
    script("aten::add.t", "a: List[int], b: List[int]", "a + b", a, [9])
    script("aten::mul.left_t", "a: List[int], n: int", "a * n", a, 2)
    script("aten::len.t", "a: List[int]", "len(a)", a)
    script("aten::copy.t", "a: List[int]", "a.copy()", a)
    slices = ((None, None, 1), (1, None, 1), (None, -1, 1), (None, None, -1), (5, 0, -2), (-2, 9, 1),
              (0, 3, 2), (None, None, 0))
    for s in slices:
        body = "x[%s:%s:%d]" % ("" if s[0] is None else s[0], "" if s[1] is None else s[1], s[2])
        for name, kind, v in (("t", "List[int]", a), ("str", "str", "hello")):
            before = len(lines)
            script("aten::slice." + name, "x: " + kind, body, v)
            parts = lines[before].split("\t")
            lines[before] = "\t".join(parts[:2] + [text(x) for x in s] + parts[2:])
    case("aten::index.list_int", a, 2)
    case("aten::index.list_int", a, 8)
    case("aten::count.int", [1, 2, 1], 1)
    case("aten::__contains__.int_list", a, 1)
    case("aten::__contains__.str_list", ["a", "b"], "c")
    case("aten::eq.int_list", a, [3, 1, 2])
    case("aten::ne.str_list", ["a"], ["b"])
    case("aten::sorted.int", a)
    case("aten::sorted.float", [2.0, -1.0, 0.5])
    case("aten::sorted.str", ["b", "a", "aa"])
    case("aten::sum.int", a)
    case("aten::sum.float", [0.5, 0.25])
    case("aten::any.int", [0, 2])
    case("aten::all.int", [0, 2])
    case("aten::_infer_size", [2, 1, 3], [4, 1])
    d, kind = {"b": 1, "a": 2}, "d: Dict[str, int], k: str"
    for k in ("a", "z"):
        script("aten::__getitem__.Dict_str", kind, "d[k]", d, k)
        script("aten::__contains__.str", kind, "k in d", d, k)
        script("aten::pop.Dict_str", kind, "d.pop(k)", dict(d), k)
        script("aten::get.default_str", kind + ", v: int", "d.get(k, v)", d, k, 5)
        script("aten::setdefault.str", kind + ", v: int", "d.setdefault(k, v)", d, k, 5)
    for name, body in (("keys.str", "list(d.keys())"), ("values.str", "list(d.values())"),
                       ("len.Dict_str", "len(d)"), ("copy.Dict_str", "d.copy()"),
                       ("items.str", "list(d.items())")):
        script("aten::" + name, "d: Dict[str, int]", body, d)


def strings():
    for f in ("upper", "lower", "capitalize", "swapcase", "title", "isalpha", "isdigit", "isupper",
              "isspace", "isalnum", "istitle", "isidentifier"):
        for s in ("Hello World", "abc", "123", " \t", "", "ABC", "a1_b"):
            if f == "capitalize" and not s:
                continue
            case("aten::" + f, s)
    case("aten::split.str", "a,b,,c", ",", -1)
    case("aten::split.str", "a,b,,c", ",", 1)
    case("aten::split.str", " a  b ", None, -1)
    case("aten::rsplit", "a,b,c", ",", 1)
    case("aten::join", ",", ["x", "y"])
    case("aten::strip", "  x ", " ")
    case("aten::lstrip", "xxay", "x")
    case("aten::rstrip", "ayxx", "xy")
    case("aten::replace", "banana", "an", "X", -1)
    case("aten::replace", "banana", "a", "", 2)
    case("aten::find", "abcb", "b", 0, -1)
    case("aten::find", "abcb", "b", 2, -1)
    case("aten::rfind", "abcb", "b", 0, -1)
    case("aten::find", "abc", "z", 0, -1)
    case("aten::count", "banana", "an", 0, -1)
    case("aten::startswith", "hello", "he", 0, -1)
    case("aten::endswith", "hello", "lo", 0, -1)
    case("aten::center", "ab", 7, "*")
    case("aten::center", "abc", 6, "*")
    case("aten::ljust", "ab", 4, "-")
    case("aten::rjust", "ab", 4, "-")
    case("aten::zfill", "-12", 6)
    case("aten::splitlines", "a\nb\r\nc", False)
    case("aten::partition", "a=b=c", "=")
    case("aten::rpartition", "a=b=c", "=")
    case("aten::partition", "abc", "=")
    case("aten::expandtabs", "a\tb", 4)
    case("aten::ord", "A")
    case("aten::ord", "AB")
    case("aten::chr", 65)
    case("aten::hex", 255)
    case("aten::oct", 8)
    case("aten::bin", 5)
    case("aten::__getitem__.str", "abc", -1)
    case("aten::len.str", "abc")
    case("aten::add.str", "ab", "cd")
    case("aten::lt.str", "ab", "b")


def write(path, script, groups):
    for group in groups:
        group()
    with open(path, "w", encoding="ascii") as f:
        f.write("# Made by test/make/%s with PyTorch %s.\n" % (script, torch.__version__))
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(sys.argv[1], "ops.py", (binary, in_place, unary, reductions, views, factories, indexing,
                                  scalars, lists, strings))
