#!/usr/bin/env python3
"""Makes test/data/kernels/rare.txt: ties, packed sequences, factorisations, windows, by PyTorch.

Usage: rare.py OUTPUT      (with torch 1.13; ops.py tells the format)
"""
import sys

import torch

from ops import B8, BF16, C64, C128, F16, F32, F64, I32, I64, INF, NAN, U8, case, rng, values, write


def ties():
    for n in (1, 2, 4, 5, 9, 17, 40):
        t = torch.tensor([float(rng.randrange(4)) for _ in range(n)])
        gaps = t.clone()
        gaps[n // 2] = NAN
        for u in (t, gaps, t.long(), t.double(), t.half()):
            case("aten::median.dim", u, 0, False)
            case("aten::nanmedian.dim", u, 0, True)
        case("aten::mode", t, 0, False)
    t = torch.tensor([[float(rng.randrange(3)) for _ in range(5)] for _ in range(4)])
    for d in (0, 1):
        case("aten::median.dim", t.t(), d, False, strides=True)
        case("aten::mode", t.t(), d, True, strides=True)


def masked():
    mask = values(B8, (4, 3))
    for base in (values(F32, (4, 3)), values(F32, (3, 4)).t(), values(I64, (8, 6))[::2, ::2]):
        case("aten::masked_scatter", base, mask, values(base.dtype, (12,)), strides=True)
    case("aten::masked_scatter_", values(F32, (4, 3)), mask, values(F32, (12,)), strides=True)
    case("aten::masked_scatter_", values(F32, (3,)), values(B8, (2, 3)), values(F32, (6,)),
         says="must be greater or equal to the number of dimensions")
    case("aten::masked_scatter", values(F32, (3,)), torch.tensor(True), values(I64, (3,)))


def products():
    a, b = values(F32, (3, 2)), values(F32, (2, 4))
    for size in ((3, 4), (4,), (2, 4)):
        case("aten::addmm", values(F32, size), a, b, 0, 1)
        case("aten::baddbmm", values(F32, size), a.expand(2, 3, 2), b.expand(2, 2, 4), 0, 1)
        case("aten::addbmm", values(F32, size), a.expand(2, 3, 2), b.expand(2, 2, 4), 0, 2)
        case("aten::addr", values(F32, size), values(F32, (3,)), values(F32, (4,)), 0, 1)


def weights(gates, layers, sides, inputs, hidden, biases, projection=0, dtype=F32):
    found = []
    for layer in range(layers):
        wide = inputs if layer == 0 else (projection or hidden) * sides
        for _ in range(sides):
            found += [values(dtype, (gates * hidden, wide)) / 4,
                      values(dtype, (gates * hidden, projection or hidden)) / 4]
            if biases:
                found += [values(dtype, (gates * hidden,)) / 4, values(dtype, (gates * hidden,)) / 4]
            if projection:
                found += [values(dtype, (projection, hidden)) / 4]
    return found


def recurrent():
    lengths = torch.tensor([4, 2, 1])
    padded = values(F32, (4, 3, 2))
    data, sizes = torch.ops.aten._pack_padded_sequence(padded, lengths, False)
    for first in (False, True):
        t = padded.transpose(0, 1) if first else padded
        case("aten::_pack_padded_sequence", t, lengths, first, strides=True)
        for total in (-1, 4, 6, 2):
            case("aten::_pad_packed_sequence", data, sizes, first, 0.5, total, strides=True)
    case("aten::_pack_padded_sequence", values(I64, (2, 3)), torch.tensor([2, 2, 1]), False)
    case("aten::_pack_padded_sequence", values(F64, (2, 2, 3, 2)), torch.tensor([2, 1]), False)
    case("aten::_pack_padded_sequence", padded, torch.tensor([1, 2, 1]), False)
    case("aten::_pack_padded_sequence", padded, torch.tensor([2, 1, 0]), False)
    case("aten::_pack_padded_sequence", padded, torch.tensor([2, 1]), False)
    case("aten::_pad_packed_sequence", values(I64, (3,)), torch.tensor([2, 1]), True, -1, -1)
    for name, gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
        for layers, sides, biases in ((1, 1, True), (2, 2, True), (1, 2, False)):
            h = values(F32, (layers * sides, 3, 2))
            hx = [h, values(F32, (layers * sides, 3, 2))] if name == "lstm" else h
            params = weights(gates, layers, sides, 2, 2, biases)
            case("aten::%s.data" % name, data, sizes, hx, params, biases, layers, 0.0, False,
                 sides == 2)
            case("aten::%s.input" % name, padded, hx, params, biases, layers, 0.0, False, sides == 2,
                 False)
    for layers, sides, biases in ((1, 1, True), (2, 2, False)):
        hx = [values(F32, (layers * sides, 3, 2)), values(F32, (layers * sides, 3, 4))]
        params = weights(4, layers, sides, 2, 4, biases, 2)
        case("aten::lstm.data", data, sizes, hx, params, biases, layers, 0.0, False, sides == 2)
        case("aten::lstm.input", padded.transpose(0, 1), hx, params, biases, layers, 0.0, False,
             sides == 2, True)


def windows():
    tail = [None, None, None]
    for name, more in (("bartlett", [[], [False]]), ("blackman", [[], [False]]),
                       ("hann", [[], [False]]),
                       ("hamming", [[], [False], [True, 0.6], [False, 0.3, 0.7]]),
                       ("kaiser", [[], [False], [True, 5.5]])):
        for args in more:
            kind = ("", ".periodic", ".beta" if name == "kaiser" else ".periodic_alpha",
                    ".periodic_alpha_beta")[len(args)]
            for length, dtype in ((0, None), (1, None), (2, F32), (7, F64), (8, None), (-1, None)):
                case("aten::%s_window%s" % (name, kind), length, *args, dtype, *tail)
            case("aten::%s_window%s" % (name, kind), 5, *args, I64, *tail,
                 says="expects floating point dtypes, got: ")
    for ends in ((0, 3), (1, 2.5), (5, 1), (0, 0)):
        case("aten::range", *ends, None, *tail)
        case("aten::range.step", *ends, 0.5, None, *tail)
    case("aten::range.step", 5, 1, -2, I64, *tail)
    case("aten::range.step", 5, 1, 0, None, *tail)
    case("aten::full.out", [2, 3], 1.5, torch.zeros(2, 3))
    case("aten::full.out", [2], 7, torch.zeros(2, dtype=I64))
    case("aten::linspace.out", 0, 1, 5, torch.zeros(5, dtype=F64))
    case("aten::linspace.out", 3, -4, 4, torch.zeros(0, dtype=I64))
    case("aten::logspace.out", 0, 3, 4, 2.0, torch.zeros(4))


def seldom_layers():
    x = values(F32, (2, 3))
    for dtype in (F32, F64):
        case("aten::rrelu", values(dtype, (2, 5)), 0.125, 0.5, False, None)
        case("aten::rrelu_", values(dtype, (3, 2)).t(), 0.125, 1 / 3, False, None)
    case("aten::rrelu", x, 0.5, 0.25, False, None)
    case("aten::rrelu", values(I64, (3,)), 0.125, 0.5, False, None, says="not implemented for")
    case("aten::rrelu_with_noise", x, torch.zeros(2, 3), 0.125, 0.5, False, None)
    for op in ("alpha_dropout", "feature_alpha_dropout"):
        case("aten::" + op, x, 0.5, False)
        case("aten::" + op, x, 0.0, True)
        case("aten::" + op, x, 1.0, True)
        case("aten::" + op, x, 1.5, True)
    case("aten::native_dropout", x, 0.5, False)
    case("aten::native_dropout", values(F64, (2,)), 0.0, True)
    for dtype in (F32, F64):
        for shape in ((2, 3, 7, 6), (3, 5, 5)):
            planes = shape[0] if len(shape) == 4 else 1
            u = torch.tensor([rng.random() for _ in range(planes * 6)], dtype=dtype)
            t = values(dtype, shape)
            t.view(-1)[3] = NAN
            case("aten::fractional_max_pool2d", t, [2, 3], [3, 2], u.view(planes, 3, 2))
    u = torch.tensor([rng.random() for _ in range(6)])
    case("aten::fractional_max_pool2d", values(F32, (3, 4, 4)), [2, 2], [1, 3], u.view(1, 3, 2))
    case("aten::fractional_max_pool2d", values(F32, (3, 4, 4)), [2, 2], [4, 3], u.view(1, 3, 2),
         says="too large relative to input")
    case("aten::fractional_max_pool3d", values(F32, (1, 2, 5, 4, 6)), [2, 2, 3], [3, 2, 3],
         u.view(1, 2, 3))
    for corners in (False, True):
        case("aten::affine_grid_generator", values(F32, (2, 2, 3)), [2, 1, 3, 2], corners)
        case("aten::affine_grid_generator", values(F64, (1, 3, 4)), [1, 2, 2, 1, 3], corners)
    image, kernel = values(F32, (1, 2, 5, 4)), values(F32, (3, 2, 2, 3))
    case("aten::thnn_conv2d", image, kernel, [2, 3], values(F32, (3,)), [1, 2], [0, 1])
    case("aten::slow_conv_dilated2d", image, kernel, [2, 3], None, [1, 1], [1, 1], [2, 1])
    case("aten::slow_conv_transpose2d", image, values(F32, (2, 3, 2, 2)), [2, 2], values(F32, (3,)),
         [2, 1], [0, 1], [1, 0], [1, 1])
    volume = values(F32, (1, 2, 3, 4, 3))
    case("aten::slow_conv3d", volume, values(F32, (2, 2, 2, 2, 2)), [2, 2, 2], None, [1, 1, 1],
         [0, 1, 0])
    case("aten::slow_conv_dilated3d", volume, values(F32, (2, 2, 2, 2, 2)), [2, 2, 2],
         values(F32, (2,)), [1, 1, 1], [0, 0, 0], [1, 2, 1])
    case("aten::slow_conv_transpose3d", volume, values(F32, (2, 1, 2, 2, 2)), [2, 2, 2], None,
         [1, 2, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1])
    case("aten::conv_tbc", values(F32, (4, 2, 3)), values(F32, (2, 3, 2)), values(F32, (2,)), 1)
    case("aten::conv_tbc", values(F32, (4, 2)), values(F32, (2, 3, 2)), values(F32, (2,)), 1)
    case("aten::reflection_pad3d", volume, [1, 2, 0, 1, 2, 1])


def interpolated():
    boxes = {3: values(F32, (1, 2, 5)), 4: values(F32, (1, 2, 4, 3)), 5: values(F32, (1, 1, 2, 3, 2))}
    modes = {3: ("nearest", "linear", "area"), 4: ("nearest", "bilinear", "bicubic", "area"),
             5: ("nearest", "trilinear", "area")}
    for rank, t in boxes.items():
        n = rank - 2
        for mode in modes[rank]:
            plain = mode in ("nearest", "area")
            for corners in ((None,) if plain else (None, True)):
                case("aten::__interpolate", t, 6, None, mode, corners, None, False)
                case("aten::__interpolate", t, None, 1.7, mode, corners, None, False)
                case("aten::__interpolate", t, None, 1.7, mode, corners, False, False)
                case("aten::__interpolate.size_list", t, [5, 7, 4][:n], None, mode, corners, True, False)
                case("aten::__interpolate.scale_list", t, None, [1.5, 2.3, 1.2][:n], mode, corners,
                     None, False)
                case("aten::__interpolate.size_list_scale_list", t, None, [0.7, 2.0, 1.0][:n], mode,
                     corners, True, False)
                case("aten::__upsample", t, None, 2, mode, corners)
                case("aten::__upsample.size_list", t, [3, 4, 5][:n], None, mode, corners)
        case("aten::__upsample_nearest", t, None, 2)
        case("aten::__upsample_nearest.size_list", t, [3, 4, 5][:n], None)
    case("aten::__upsample_bilinear", boxes[4], 5, None)
    case("aten::__upsample_bilinear.size_list", boxes[4], [5, 2], None)
    case("aten::__upsample_bilinear.scale_list", boxes[4], None, [2, 3])
    case("aten::__upsample_bilinear.size_list_scale_list", boxes[4], [6, 5], None)
    case("aten::__interpolate", boxes[4], 6, None, "nearest", True, None, False)


if __name__ == "__main__":
    write(sys.argv[1], "rare.py", (ties, masked, products, recurrent, windows, seldom_layers,
                                   interpolated))
