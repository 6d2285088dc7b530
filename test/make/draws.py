#!/usr/bin/env python3
"""Makes test/data/kernels/draws_*.txt: the numbers that operators draw after a seed, by PyTorch.

Usage: draws.py OUTPUT     (with torch 2.15 and with 1.13; ops.py tells the format)

Each case is followed by a normal and a uniform number, which show where the generator stands.
"""
import sys

import torch

from ops import B8, BF16, C64, C128, F16, F32, F64, I32, I64, INF, U8, case, lines, text, write

FLOATS = (F32, F64, F16, BF16)
COMPLEX = (C64, C128)
INTS = (I64, I32, torch.int16, torch.int8, U8)
NEW = int(torch.__version__.split(".")[0]) >= 2


def seed(n):
    torch.manual_seed(n)
    lines.append("\t".join(["aten::manual_seed", "i%d" % n, "="]))


def after():
    case("aten::rand", [1], F32, None, None, None)
    case("aten::randn", [1], F64, None, None, None)


def draws(name, *args, start=0, **more):
    seed(start)
    before = len(lines)
    try:
        case(name, *args, **more)
    except RuntimeError:
        del lines[before - 1:]
        return
    if len(lines) == before:  # a dtype that this version refuses
        del lines[before - 1:]
        return
    if "\t!\t" in lines[-1]:
        del lines[before - 1]
        return
    after()


def empty(dtype, *shape):
    return torch.zeros(shape, dtype=dtype)


def layouts(dtype):
    """Tensors whose memory is not in row-major order."""
    yield empty(dtype, 5, 4).t()
    yield empty(dtype, 2, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    yield empty(dtype, 6, 8)[::2, 1::2]
    yield empty(dtype, 3, 4, 2).permute(2, 0, 1)[:, 1:]
    yield empty(dtype, 4, 1, 5).transpose(0, 2)


OPTIONS = (None, None, None)


def uniform():
    for n in (0, 1, 5, 700):
        draws("aten::rand", [n], F32, *OPTIONS, start=n)
    for start in (1, -1, 2 ** 31, 2 ** 32 + 7, 2 ** 62):
        draws("aten::rand", [3], F32, *OPTIONS, start=start)
    draws("aten::rand", [330], F64, *OPTIONS)
    for dtype in FLOATS + COMPLEX:
        draws("aten::rand", [3, 4], dtype, *OPTIONS, start=3)
        draws("aten::uniform_", empty(dtype, 7), -2.0, 3.5)
        for t in layouts(dtype if dtype != BF16 else F32):
            draws("aten::rand_like", t, None, None, None, None, None)
            draws("aten::uniform_", t, 0.0, 1.0, strides=False)
    draws("aten::rand_like", empty(F32, 3, 2), F64, None, None, None, 0)
    draws("aten::uniform_", empty(F32, 2), 1.0, 0.0)
    draws("aten::uniform_", empty(F16, 2), 0.0, 1e5)
    draws("aten::uniform_", empty(F32, 2), -3e38, 3e38)


def normal():
    for dtype in FLOATS + COMPLEX:
        for n in (0, 1, 2, 5, 7, 8, 15, 16, 17, 31, 32, 40):
            draws("aten::randn", [n], dtype, *OPTIONS, start=n)
        draws("aten::normal_", empty(dtype, 3), 1.5, 2.0)
        draws("aten::normal_", empty(dtype, 20), 1.5, 0.25)
        for t in layouts(dtype):
            draws("aten::randn_like", t, None, None, None, None, None)
            draws("aten::normal_", t, 0.0, 1.0)
    draws("aten::randn", [700], F32, *OPTIONS)
    draws("aten::randn", [330], F64, *OPTIONS)
    draws("aten::normal_", empty(F32, 2), 0.0, -1.0)
    for n in (3, 16):
        for dtype in FLOATS:
            mean = torch.arange(n).to(dtype)
            std = torch.arange(n).to(dtype) / 4
            draws("aten::normal.Tensor_float", mean, 0.5)
            draws("aten::normal.float_Tensor", 2.0, std)
            draws("aten::normal.Tensor_Tensor", mean, std)
            draws("aten::normal.Tensor_Tensor", mean.unsqueeze(1)[:3], std[:2])
            draws("aten::normal.float_float", 3.0, 2.0, [n], None, dtype, *OPTIONS)
    draws("aten::normal.Tensor_Tensor", torch.zeros(2, 3).t(), torch.ones(3, 2))
    for n in (5, 16):
        draws("aten::log_normal_", empty(F32, n), 1.0, 0.5)


def whole():
    for dtype in INTS + FLOATS + (B8,):
        draws("aten::random_", empty(dtype, 6))
        draws("aten::random_.to", empty(dtype, 6), 2)
        if dtype != B8:
            draws("aten::random_.to", empty(dtype, 6), 100)
            draws("aten::random_.from", empty(dtype, 6), 3, 77)
            draws("aten::random_.from", empty(dtype, 6), 3, None)
            draws("aten::random_.from", empty(dtype, 6), 9, 4)
            draws("aten::randint.low", 2, 50, [4], dtype, *OPTIONS)
    for end in (2 ** 28, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 62):
        draws("aten::random_.to", empty(I64, 4), end)
        draws("aten::randint", end, [3], I64, *OPTIONS)
    for dtype in (F64, F32, F16, BF16):
        draws("aten::random_.from", empty(dtype, 4), -2000, 2001)
    draws("aten::random_.from", empty(F64, 4), 0, 2 ** 40)
    draws("aten::random_.from", empty(I64, 4), -2 ** 63, None)
    draws("aten::random_.from", empty(I64, 4), -2 ** 62, 2 ** 62)
    draws("aten::random_.to", empty(U8, 2), 300)
    draws("aten::randint", 0, [2], I64, *OPTIONS)
    draws("aten::randint", 10, [2, 3], I64, *OPTIONS)
    draws("aten::randint_like", empty(F32, 4, 3).t(), 9, None, None, None, None, None)
    draws("aten::randint_like.low_dtype", empty(F32, 3), -4, 9, I64, None, None, None, None)
    for n in (0, 1, 2, 10, 100):
        draws("aten::randperm", n, I64, *OPTIONS)
    for dtype in (I32, U8, F32, F64, F16):
        draws("aten::randperm", 12, dtype, *OPTIONS)


def chance():
    for dtype in FLOATS + INTS + (B8,):
        draws("aten::bernoulli_.float", empty(dtype, 12), 0.3)
    for p in (0.0, 1.0, 1.5):
        draws("aten::bernoulli_.float", empty(F32, 4), p)
    draws("aten::bernoulli_.float", empty(F32, 700), 0.5)
    for dtype in FLOATS:
        p = (torch.arange(8) / 8).to(dtype)
        draws("aten::bernoulli", p)
        draws("aten::bernoulli.p", p, 0.25)
        draws("aten::bernoulli_.Tensor", empty(I64, 8), p)
        draws("aten::bernoulli_.Tensor", empty(dtype, 3, 8), p)
    draws("aten::bernoulli", (torch.arange(6) / 8).reshape(2, 3).t())
    draws("aten::bernoulli_.Tensor", empty(F32, 2, 3).t(), torch.tensor([0.25, 0.5]))
    draws("aten::bernoulli", torch.tensor([0.5, 2.0]), None, says="Expected p_in >= 0 && p_in <= 1")
    for t in layouts(F32):
        draws("aten::bernoulli_.float", t, 0.5)
        draws("aten::bernoulli.p", t, 0.5)


def continuous():
    for dtype in FLOATS:
        for name, args in (("exponential_", (1.5,)), ("cauchy_", (1.0, 2.0)),
                           ("log_normal_", (0.5, 0.75)), ("geometric_", (0.3,))):
            draws("aten::" + name, empty(dtype, 9), *args)
            draws("aten::" + name, empty(dtype, 3, 3).t(), *args)
    for dtype in INTS:
        draws("aten::geometric_", empty(dtype, 9), 0.4)
    draws("aten::exponential_", empty(F32, 350), 1.0)
    for name, args in (("exponential_", (-1.0,)), ("cauchy_", (0.0, 0.0)), ("log_normal_", (0.0, 0.0)),
                       ("geometric_", (1.0,)), ("exponential_", (0.0,))):
        draws("aten::" + name, empty(F32, 2), *args)


def drawn_by_parameter():
    for dtype in FLOATS:
        rate = torch.tensor([0, 0.5, 3, 9.5, 10, 11, 25, 200, 3000]).to(dtype)
        draws("aten::poisson", rate, None)
        draws("aten::poisson", rate.reshape(3, 3).t(), None)
        count = torch.tensor([0, 1, 9, 20, 30, 100, 1000, 50, 2000, 7, 12]).to(dtype)
        p = torch.tensor([0.5, 0.5, 0.3, 0.9, 0.5, 0.2, 0.01, 0.75, 0.6, 0, 1]).to(dtype)
        draws("aten::binomial", count, p, None)
        alpha = torch.tensor([0.1, 0.5, 0.9, 1, 1.5, 2, 8, 50, 0.01]).to(dtype)
        draws("aten::_standard_gamma", alpha, None)
        draws("aten::_standard_gamma", alpha.reshape(3, 3).t(), None)
        draws("aten::_sample_dirichlet", alpha.reshape(3, 3), None)
    draws("aten::poisson", torch.tensor([-1.0]), None)
    for dtype in FLOATS:
        weights = torch.tensor([[1, 2, 3, 4, 0, 5, 2], [0, 0, 0.5, 0, 0.25, 0.25, 8]]).to(dtype)
        for t in (weights, weights[0], weights.t().contiguous().t()):
            for count in (1, 3):
                for again in (True, False):
                    draws("aten::multinomial", t, count, again, None)
        draws("aten::multinomial", weights, 20, True, None)
        draws("aten::multinomial", weights[0], 6, False, None)
    for bad in (torch.tensor([0.5, -1]), torch.tensor([0.0, 0.0]), torch.tensor([0.5, INF])):
        draws("aten::multinomial", bad, 1, True, None)
        draws("aten::multinomial", bad, 2, True, None)


def layers():
    for dtype in FLOATS:
        t = (torch.arange(24) - 8).to(dtype).reshape(2, 3, 4)
        for p in (0.25, 0.5, 1.0, 0.0):
            draws("aten::dropout", t, p, True)
            draws("aten::feature_dropout", t, p, True)
            draws("aten::alpha_dropout", t, p, True)
            draws("aten::feature_alpha_dropout", t, p, True)
        draws("aten::native_dropout", t, 0.4, True)
        draws("aten::dropout_", t.clone(), 0.5, True)
        draws("aten::rrelu", t, 0.125, 0.375, True, None)
        draws("aten::rrelu_with_noise", t, torch.zeros_like(t), 0.125, 0.375, True, None)
    t = torch.arange(24).to(F32).reshape(2, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    draws("aten::dropout", t, 0.5, True)
    draws("aten::feature_dropout", t, 0.5, True)
    draws("aten::dropout", t.permute(3, 1, 0, 2), 0.5, True)
    draws("aten::rrelu", t - 9, 0.125, 0.375, True, None)
    draws("aten::dropout", t.to(C64), 0.5, True)
    q = (torch.arange(24).to(F32) / 16).reshape(1, 2, 3, 4)
    k = (torch.arange(40).to(F32) / 32).reshape(1, 2, 5, 4)
    if NEW:
        draws("aten::scaled_dot_product_attention", q, k, k + 1, None, 0.5, False, None, False)
        draws("aten::scaled_dot_product_attention", q, k, k + 1, None, 0.25, True, None, False)
    x = (torch.arange(30).to(F32) / 16).reshape(5, 2, 3)
    h = torch.zeros(3, 2, 4)
    gates = {"gru": 3, "rnn_tanh": 1, "lstm": 4}
    for name, n in gates.items():
        w = []
        for layer in range(3):
            size = 3 if layer == 0 else 4
            w += [(torch.arange(n * 4 * size).to(F32) / 64).reshape(n * 4, size),
                  (torch.arange(n * 16).to(F32) / 128).reshape(n * 4, 4)]
        states = [h, h] if name == "lstm" else h
        draws("aten::%s.input" % name, x, states, w, False, 3, 0.5, True, False, False)


def sequences():
    """Several operators after one seed: what one leaves, the next one finds."""
    seed(11)
    case("aten::randn", [3], F32, None, None, None)
    case("aten::randn", [3], F64, None, None, None)
    case("aten::randn", [16], F32, None, None, None)
    case("aten::rand", [1], F64, None, None, None)
    case("aten::log_normal_", empty(F64, 3), 0.0, 1.0)
    case("aten::randn", [1], F32, None, None, None)
    case("aten::_standard_gamma", torch.tensor([2.0]), None)
    case("aten::randperm", 5, I64, None, None, None)
    case("aten::randn", [2, 3], C64, None, None, None)
    seed(11)
    case("aten::randn", [1], F32, None, None, None)
    seed(11)
    case("aten::randn", [1], F32, None, None, None)
    case("aten::uniform_", empty(F32, 620), 0.0, 1.0)
    case("aten::rand", [9], F64, None, None, None)


if __name__ == "__main__":
    write(sys.argv[1], "draws.py", (uniform, normal, whole, chance, continuous, drawn_by_parameter,
                                    layers, sequences))
