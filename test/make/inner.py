#!/usr/bin/env python3
"""Makes test/data/kernels/inner.txt: ties, packed sequences, factorisations, windows, by PyTorch.

Usage: inner.py OUTPUT      (with torch 1.13; ops.py tells the format)
"""
import sys

import torch

from ops import B8, C64, C128, F32, F64, I32, I64, INF, NAN, case, lines, rng, script, text, values, write


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
        batches = values(F32, (2, 3, 2)), values(F32, (2, 2, 4))
        case("aten::addbmm", values(F32, size), *batches, 0, 2)
        case("aten::addr", values(F32, size), values(F32, (3,)), values(F32, (4,)), 0, 1)
    case("aten::baddbmm", values(F32, (2, 4)), *batches, 0, 1)


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
    case("aten::_slow_conv2d_forward", image, kernel, [2, 3], None, [1, 1], [1, 0])
    case("aten::_pad_circular", values(F32, (1, 2, 4)), [2, 1])
    # These two have no kernel on the CPU there: what they are for.
    for name, t, w, n in (("_conv_depthwise2d", image, values(F32, (2, 1, 2, 2)), 2),
                          ("conv_depthwise3d", volume, values(F32, (2, 1, 2, 1, 2)), 3)):
        conv = torch.conv2d if n == 2 else torch.conv3d
        more = [[2] * n, [1] * n, [1] * n]
        got = conv(t, w, None, *more, groups=2)
        args = [t, w, list(w.shape[2:]), None] + more
        lines.append("\t".join(["aten::" + name] + [text(x) for x in args] + ["=", text(got)]))
    case("aten::conv_tbc", values(F32, (4, 2, 3)), values(F32, (2, 3, 2)), values(F32, (2,)), 1)
    case("aten::conv_tbc", values(F32, (4, 2)), values(F32, (2, 3, 2)), values(F32, (2,)), 1)
    case("aten::reflection_pad3d", volume, [1, 2, 0, 1, 2, 1])


def numbers():
    """Ends that are tensors came after this version: the result is that of their numbers."""
    for name, more in (("linspace", []), ("logspace", [2.0])):
        for form, ends in (("Tensor_Tensor", (torch.tensor(1.5), torch.tensor(-2))),
                           ("Tensor_Scalar", (torch.tensor(3), 0.5)),
                           ("Scalar_Tensor", (-1, torch.tensor(2.5)))):
            got = getattr(torch, name)(*[float(x) for x in ends], 5, *more)
            lines.append("\t".join(["aten::%s.%s" % (name, form)] + [text(x) for x in ends] + ["i5"] +
                                   [text(x) for x in more] + ["N"] * 4 + ["=", text(got)]))
    for size, stride in (([2, 3], [1, 2]), ([2, 0], [3, 1]), ([], []), ([4], [3])):
        for name, first in (("empty_strided", []), ("new_empty_strided", [values(F64, (2,))])):
            got = torch.zeros(20, dtype=F64 if first else F32).as_strided(size, stride)
            lines.append("\t".join(["aten::" + name] + [text(x) for x in first] +
                                   [text(size), text(stride)] + ["N"] * 4 + ["=", text(got)]))


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


def odds():
    t, u = values(F32, (2, 3)), values(F32, (3, 2)).t()
    case("aten::_reshape_alias", t, [3, 2], [2, 1], strides=True)
    case("aten::as_tensor", t, None, None)
    case("aten::as_tensor", t, F64, None)
    for kind, x in (("float", 2.5), ("int", 7), ("bool", True), ("complex", 1 - 2j)):
        for dtype in (None, C64):
            case("aten::as_tensor." + kind, x, dtype, None)
    case("aten::data", u, strides=True)
    one, two = torch.tensor([1.0]), torch.tensor(2)
    for a, b in (([one, two], [one, two]), ([one, two], [two, two]), ([one], [torch.tensor(1)])):
        case("aten::eq.Tensor_list", a, b)
        case("aten::ne.Tensor_list", a, b)
    case("aten::index.list_Tensor", [one, two], torch.tensor([2.0]))
    case("aten::count.Tensor", [one, two, two], torch.tensor(2))
    for op in ("eq", "ne"):
        case("aten::%s.Tensor_list" % op, [t, u], [t, u])
        case("aten::%s.Tensor_list" % op, [t, u], [t])
        case("aten::%s.Tensor_list" % op, [t, u], [u, t])
    case("aten::index.list_Tensor", [t, u], u)
    case("aten::count.Tensor", [t, u, t], t)
    case("aten::index_put_.hacked_twin", t.clone(), [torch.tensor([1, 0])], values(F32, (3,)), False)
    case("aten::index_put_.hacked_twin", t.clone(), [torch.tensor([1, 1])], values(F32, (3,)), True)
    for x in (t, u, values(F32, (1, 2, 2, 2)).contiguous(memory_format=torch.channels_last)):
        for form in (0, 2):
            case("aten::is_contiguous.memory_format", x, form)
    case("aten::is_autocast_enabled")
    case("aten::is_autocast_cpu_enabled")
    case("aten::is_vulkan_available")
    case("aten::is_inference", t)
    case("aten::is_leaf", t)
    case("aten::get_device", t)
    case("aten::empty.memory_format", [2, 0], None, None, None, None, None, strides=True)
    case("aten::empty_like", values(I64, (0, 2)), None, None, None, None, None)
    case("aten::new_empty", t, [0, 3], F64, None, None, None)
    case("aten::polar.Scalar_Scalar", 2.0, 0.5)
    for a, b in ((1 + 2j, 3 - 1j), (-1 + 0.5j, 2j)):
        case("aten::log.complex_complex", a, b)
        case("aten::log.complex_int", a, 3)
        case("aten::log.complex_float", a, 0.5)
        case("aten::log.float_complex", 2.5, b)
        case("aten::log.int_complex", 3, b)
    for op in ("cpu", "ipu", "meta", "mkldnn", "mps", "ort", "vulkan", "xpu"):
        case("prim::is_" + op, t)
    case("prim::StringIndex", "hello", -2)
    case("prim::StringIndex", "abc", 5)
    script("aten::select.t", "a: List[int], i: int", "torch.select(a, i)", [5, 6], 1)
    case("aten::len.any", [1, 2])
    box = values(F32, (1, 3, 1, 2))
    for dims in ([0], [0, 2], [1, 2], [-1, -2]):
        got = box
        for d in sorted((d % 4 for d in dims), reverse=True):
            got = got.squeeze(d)
        lines.append("\t".join(["aten::squeeze.dims", text(box), text(dims), "=", text(got)]))
        flags = box > 0
        got = flags.amin(dims)
        lines.append("\t".join(["aten::all.dims", text(flags), text(dims), "b0", "=", text(got)]))


def older():
    for dtype in (F32, I64, F64):
        t, u = values(dtype, (2, 3)), values(dtype, (3, 2)).t()
        for op in ("arcsinh", "arccosh", "arctanh"):
            case("aten::" + op, t.double() / 4 + (1 if op == "arccosh" else 0))
            case("aten::" + op, u, strides=True)
        for x in (t, u):
            case("aten::fill.Scalar", x, 2, strides=True)
            case("aten::fill.Tensor", x, torch.tensor(2.5), strides=True)
            case("aten::zero", x, strides=True)
            case("aten::vander", x.reshape(-1)[:3], None, False)
            case("aten::vander", x.reshape(-1)[:3], 2, True)
            case("aten::vander", x.reshape(-1)[:3], 0, True)
            for kind in ("Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double"):
                case("aten::_cast_" + kind, x.abs(), False)
            case("aten::_shape_as_tensor", x)
            case("aten::_reshape_from_tensor", x, torch.tensor([3, 2]))
            case("aten::_unsafe_view", x, [6] if x is t else [2, 3], strides=True)
            index = torch.tensor([2, 0])
            lines.append("\t".join(["aten::_unsafe_index.Tensor", text(x), text([None, index]), "=",
                                   text(x[:, index], False)]))
            put = x.index_put([index[:1] - 1], x[0])
            lines.append("\t".join(["aten::_unsafe_index_put", text(x), text([index[:1] - 1]),
                                   text(x[0]), "b0", "=", text(put, False)]))
            case("aten::_stack", [x, x], 1)
            case("aten::_unique", x, True, True)
        case("aten::fill.Tensor", t, t)
        case("aten::divide.Tensor_mode", t, torch.full((3,), 2).to(dtype), "floor")
        case("aten::divide.Scalar_mode", t, 2, "trunc")
        case("aten::clip.Tensor", t, values(dtype, (3,)), None)
        case("aten::cumsum_", t.clone(), 1, None)
        case("aten::cumprod_", u.clone(), 0, None, strides=True)
        for shape in ((3, 3), (7, 2), (2, 5), (3, 3, 3)):
            for wrap in (False, True):
                case("aten::fill_diagonal_", values(dtype, shape), 9, wrap)
        case("aten::fill_diagonal_", values(dtype, (3, 4)).t(), 9, True, strides=True)
        case("aten::fill_diagonal_", values(dtype, (3, 4, 3)), 9, False)
        case("aten::fill_diagonal_", values(dtype, (3,)), 9, False)
        case("aten::resize_", values(dtype, (2, 3)), [3, 2], None)
        case("aten::resize_", values(dtype, (2, 3)), [2], None)
        case("aten::resize_as_", values(dtype, (2, 3)), values(dtype, (4,)), None)
    x, y = values(F32, (2, 3)).abs() + 0.5, values(F32, (3,)).abs() + 0.5
    case("aten::lerp_.Scalar", x.clone(), y, 0.25)
    case("aten::lerp_.Tensor", x.clone(), y, y)
    case("aten::xlogy_.Tensor", x.clone(), y)
    case("aten::xlogy_.Scalar_Other", x.clone(), 2)
    case("aten::float_power_.Scalar", x.double(), 2)
    case("aten::float_power_.Tensor", x.double(), y)
    for dtype in (I64, I32, B8):
        a, b = values(dtype, (2, 3)).abs() if dtype != B8 else values(B8, (2, 3)), values(dtype, (3,))
        for op in ("iand", "ior", "ixor"):
            case("aten::__%s__.Tensor" % op, a.clone(), b)
        if dtype != B8:
            for op in ("and", "or", "xor"):
                case("aten::__i%s__.Scalar" % op, a.clone(), 5)
                case("aten::bitwise_%s.Scalar_Tensor" % op, 5, b)
            for op in ("left", "right"):
                case("aten::bitwise_%s_shift_.Tensor" % op, a.clone(), b.abs())
                case("aten::bitwise_%s_shift_.Tensor_Scalar" % op, a.clone(), 2)
                case("aten::bitwise_%s_shift.Scalar_Tensor" % op, 9, b.abs())
                case("aten::__i%sshift__.Scalar" % op[0], a.clone(), 2)
                case("aten::__i%sshift__.Tensor" % op[0], a.clone(), b.abs())
    for op in ("lift", "lift_fresh", "detach_"):
        case("aten::" + op, values(F32, (2, 3)).clone())
    lines.append("\t".join(["aten::pin_memory", text(y), "N", "=", text(y)]))  # needs a GPU there
    case("aten::is_pinned", x, None)
    case("aten::is_distributed", x)
    case("aten::retains_grad", x)
    for t in (torch.tensor([0.0]), torch.tensor(3), torch.tensor([[2j]]), torch.tensor([1, 2]),
              torch.zeros(0)):
        case("aten::is_nonzero", t)
    for flags in ([True, True], [True, False], []):
        t = torch.tensor(flags, dtype=torch.bool)
        for op, got in (("all", t.all()), ("any", t.any())):
            lines.append("\t".join(["aten::_is_%s_true" % op, text(t), "=", text(got)]))
    t = values(F32, (4, 3))[1:, ::2]
    for name, args, got in (("size", [], list(t.shape)), ("size.int", [-1], t.shape[-1]),
                            ("stride", [], list(t.stride())), ("stride.int", [0], t.stride(0)),
                            ("numel", [], t.numel())):
        lines.append("\t".join(["aten::sym_" + name, text(t)] + [text(a) for a in args] +
                               ["=", text(got)]))
    lines.append("\t".join(["aten::sym_storage_offset", text(x), "=", "i0"]))
    lines.append("\t".join(["aten::concatenate", text([x, x]), "i1", "=", text(torch.cat([x, x], 1))]))
    rows = [values(F32, (n, 2)) for n in (3, 1, 2)]
    for first in (False, True):
        case("aten::pad_sequence", rows, first, -1.0)
    got = torch.nn.utils.rnn.pad_sequence([t.flip(0) for t in rows]).flip(0)
    lines.append("\t".join(["aten::pad_sequence", text(rows), "b0", "f0.0", "sleft", "=", text(got)]))
    wave, window = values(F32, (20,)), torch.hann_window(4)
    got = torch.view_as_real(torch.stft(torch.constant_pad_nd(wave, [2, 2]), 8, 3, 4, window,
                                        center=False, return_complex=True))
    lines.append("\t".join(["aten::stft"] + [text(x) for x in (wave, 8, 3, 4, window, False, None, False,
                                                               True)] + ["=", text(got, False)]))
    box = values(F32, (2, 1, 3, 1))
    lines.append("\t".join(["aten::squeeze_.dims", text(box), "[i1 i3]", "=", text(box[:, 0, :, 0])]))
    case("aten::swapaxes_", values(F32, (2, 3)), 0, 1, strides=True)
    case("aten::swapdims_", values(F32, (2, 3, 2)), 0, -1, strides=True)
    case("aten::as_strided_", values(F32, (2, 3)), [3], [2], 0, strides=True)
    case("aten::pad_sequence", [values(I64, (2,)), values(I64, (4,))], True, 0.0)
    case("aten::flatten_dense_tensors", rows)
    case("aten::chain_matmul", [values(F32, (2, 3)), values(F32, (3, 4)), values(F32, (4, 1))])
    case("aten::chain_matmul", [values(F32, (2, 3)), values(F32, (3,))])
    case("aten::linalg_matmul", values(F32, (2, 3)), values(F32, (3, 2)))
    for dim in (-1, 0, 1, 2, 3):
        case("aten::norm_except_dim", values(F32, (3, 2, 4)), 2, dim)
    for dim in (0, 2):
        v = values(F32, (3, 2, 4))
        case("aten::_weight_norm_interface", v, values(F32, tuple(n if d == dim else 1 for d, n in
                                                                 enumerate(v.shape))), dim)
    case("aten::nuclear_norm", values(F32, (3, 2)), True)
    case("aten::nuclear_norm.dim", values(F32, (2, 3, 4)), [0, 2], False)
    case("aten::linalg_tensorinv", torch.eye(6).reshape(2, 3, 6) + values(F32, (2, 3, 6)) / 8, 2)
    case("aten::linalg_tensorinv", values(F32, (2, 3)), 1)
    case("aten::linalg_tensorsolve", torch.eye(6).reshape(2, 3, 6) + values(F32, (2, 3, 6)) / 8,
         values(F32, (2, 3)), None)
    case("aten::linalg_tensorsolve", (torch.eye(6).reshape(6, 2, 3) + values(F32, (6, 2, 3)) / 8),
         values(F32, (2, 3)), [0])
    case("aten::linalg_tensorsolve", values(F32, (2, 3, 4)), values(F32, (2, 3)), None)


def inner_layers():
    x = values(F32, (2, 3, 4))
    case("aten::log_sigmoid_forward", x)
    case("aten::native_channel_shuffle", values(F32, (1, 4, 2, 2)), 2)
    case("aten::_adaptive_avg_pool2d", values(F32, (1, 2, 5, 4)), [3, 2])
    case("aten::_adaptive_avg_pool3d", values(F32, (1, 2, 3, 4, 3)), [2, 2, 1])
    weight = torch.tensor([0.25])
    lines.append("\t".join(["aten::_prelu_kernel", text(x), text(weight), "=",
                            text(torch.where(x > 0, x, weight * x))]))
    rows = x.clone()
    rows[0, 1] = -INF
    got = rows.softmax(-1).nan_to_num(0)
    lines.append("\t".join(["aten::_safe_softmax", text(rows), "i-1", "N", "=", text(got)]))
    mask = values(B8, (2, 3, 4))
    mask[0, 0] = True
    got = torch._masked_softmax(x, mask, -1, 2)
    lines.append("\t".join(["aten::_masked_softmax", text(x), text(mask), "i-1", "i2", "=", text(got)]))
    scores, mask = values(F32, (2, 2, 3, 3)), torch.tensor([[False, True, False], [True, False, True]])
    got = scores.masked_fill(mask.view(2, 1, 1, 3), -INF).softmax(-1)
    lines.append("\t".join(["aten::_masked_softmax", text(scores), text(mask), "i-1", "i1", "=",
                            text(got)]))
    mean, var = values(F32, (3,)), values(F32, (3,)).abs() + 0.5
    w, b = values(F32, (3,)), values(F32, (3,))
    for training in (False, True):
        case("aten::_batch_norm_impl_index", x, w, b, mean.clone(), var.clone(), training, 0.1, 1e-5,
             False)
        out = torch.native_batch_norm(x, w, b, mean.clone(), var.clone(), training, 0.1, 1e-5)
        args = [x, w, b, mean, var, training, 0.1, 1e-5]
        lines.append("\t".join(["aten::_native_batch_norm_legit"] + [text(a) for a in args] + ["="] +
                               [text(o) for o in out]))
    out = torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5)
    lines.append("\t".join(["aten::_native_batch_norm_legit.no_stats"] +
                           [text(a) for a in (x, w, b, True, 0.1, 1e-5)] + ["="] +
                           [text(o) for o in out]))
    out = torch.native_batch_norm(x, w, b, mean, var, False, 0.1, 1e-5)
    lines.append("\t".join(["aten::_native_batch_norm_legit_no_training"] +
                           [text(a) for a in (x, w, b, mean, var, 0.1, 1e-5)] + ["="] +
                           [text(o) for o in out]))
    q, k, v = (values(F32, (2, 3, 4)) for _ in range(3))
    case("aten::_scaled_dot_product_attention", q, k, v, None, 0.0, True, False)
    case("aten::_scaled_dot_product_attention", q, k, v, None, 0.0, True, True)
    case("aten::_scaled_dot_product_attention", q, k, v, values(F32, (3, 3)), 0.0, True, False)
    case("aten::_scaled_dot_product_attention", q, k, v, values(B8, (3, 3)) | torch.eye(3).bool(), 0.0,
         True, False)
    data = values(F32, (6, 2))
    for how in ("sum", "mean", "max", "min"):
        for initial in (None, 1.5):
            case("aten::segment_reduce", data, how, torch.tensor([2, 0, 4]), None, None, 0, False,
                 initial)
        case("aten::segment_reduce", values(F64, (5,)), how, torch.tensor([1, 4]), None, None, 0, True,
             None)
    case("aten::segment_reduce", data, "sum", torch.tensor([2, 1]), None, None, 0, False, None,
         says="Expected all rows of lengths along axis to sum to data.size(")


def mathematics():
    places = torch.tensor([0.0, 0.25, 1.0, 2.5, 7.0, 30.0, -1.0, INF, NAN])
    for dtype in (F32, F64):
        a, x = places.to(dtype).unsqueeze(1), places.to(dtype)
        for op in ("igamma", "igammac", "special_gammainc", "special_gammaincc"):
            case("aten::" + op, a, x)
        case("aten::igamma_", x[1:4].clone(), x[2:5])
        for op in ("j0", "j1", "y0", "y1"):
            case("aten::special_bessel_" + op, places[1:].to(dtype) if op[0] == "y" else places.to(dtype))
        case("aten::special_spherical_bessel_j0", places.to(dtype))
    case("aten::igamma", torch.tensor([2]), torch.tensor([1]), says="not implemented for")
    case("aten::special_bessel_j0", torch.tensor([0, 1, 5]))
    for t in (values(F32, (4, 5)), values(F64, (3, 4, 3)), values(F32, (5,)), values(F32, (5, 4)).t()):
        n = t.dim()
        for order in (1, 2):
            case("aten::gradient.scalarint", t, None, None, order)
            case("aten::gradient.scalarint", t, 0.5, -1, order)
            case("aten::gradient.scalararray", t, 2.0, list(range(n)), order)
            case("aten::gradient.array", t, [0], order)
            case("aten::gradient.scalarrayint", t, [0.5] * n, None, order)
            case("aten::gradient.scalarrayarray", t, [0.5] * n, list(range(n)), order)
            axes = [torch.arange(k, dtype=t.dtype) ** 2 / 2 + 1 for k in t.shape]
            case("aten::gradient.tensorarray", t, axes, list(range(n)), order)
            case("aten::gradient.tensorarrayint", t, axes[:1], 0, order)
    case("aten::gradient.scalarint", values(F32, (2,)), None, None, 2,
         says="torch.gradient expected each dimension size to be at least edge_order+1")
    case("aten::gradient.scalarint", values(F32, (4,)), None, None, 3)


def square(dtype, *shape):
    """Well away from singular."""
    return values(dtype, shape) + 4 * torch.eye(shape[-1], dtype=dtype)


def positive(dtype, *shape):
    t = values(dtype, shape)
    return t @ t.mT.conj() + torch.eye(shape[-1], dtype=dtype)


def factors():
    for dtype in (F32, F64, C64, C128):
        for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1), (0, 2), (2, 0)):
            t = values(dtype, shape)
            for mode in ("reduced", "complete", "r"):
                case("aten::linalg_qr", t, mode)
            case("aten::qr", t, True)
            case("aten::geqrf", t)
        case("aten::qr", values(dtype, (3, 2)), False)
        a = values(dtype, (4, 3))
        reflectors, tau = torch.geqrf(a)
        case("aten::linalg_householder_product", reflectors, tau)
        case("aten::orgqr", reflectors[:, :2], tau[:1])
        for left in (True, False) if dtype != C128 else ():  # too few digits are written
            for turn in (True, False):
                case("aten::ormqr", reflectors, tau, values(dtype, (4, 4)), left, turn)
        for shape in ((3, 3), (2, 4), (4, 2), (2, 3, 3)):
            t = values(dtype, shape) + torch.arange(shape[-1])
            if dtype.is_complex:
                t = t.real.to(dtype) + 0.25j  # the pivots of both kinds of length agree
            case("aten::linalg_lu", t, True)
            case("aten::linalg_lu_factor_ex", t, True, False)
            case("aten::_lu_with_info", t, True, False)
            data, pivots, _ = torch.linalg.lu_factor_ex(t)
            for what in ((True, True), (True, False), (False, True)):
                case("aten::lu_unpack", data, pivots, *what)
        t = square(dtype, 3, 3)
        data, pivots = torch.linalg.lu_factor(t)
        case("aten::linalg_lu_factor", t, True)
        for adjoint in (False, True):
            case("aten::linalg_lu_solve", data, pivots, values(dtype, (3, 2)), True, adjoint)
            case("aten::linalg_lu_solve", data, pivots, values(dtype, (2, 3)), False, adjoint)
        case("aten::lu_solve", values(dtype, (3, 2)), data, pivots)
        p = positive(dtype, 2, 3, 3)
        low = torch.linalg.cholesky(p)
        for upper in (False, True):
            factor = low.mT.conj() if upper else low
            case("aten::linalg_cholesky_ex", p, upper, False)
            case("aten::cholesky_solve", values(dtype, (2, 3, 2)), factor, upper)
            case("aten::cholesky_inverse", factor, upper)
            for turn in (False, True):
                case("aten::triangular_solve", values(dtype, (3, 2)), t, upper, turn, turn)
        case("aten::linalg_inv_ex", t, False)
        case("aten::linalg_solve_ex", t, values(dtype, (3, 2)), True, False)
        case("aten::linalg_solve_ex", t, values(dtype, (2, 3)), False, False)
        case("aten::linalg_solve_ex", t, values(dtype, (3,)), True, True)
    singular = torch.tensor([[1.0, 2.0], [2.0, 4.0]])
    case("aten::linalg_lu_factor_ex", singular, True, False)
    case("aten::linalg_cholesky_ex", -torch.eye(2), False, False)
    case("aten::linalg_cholesky_ex", -torch.eye(2), False, True)
    case("aten::linalg_inv_ex", singular, True, says="singular")
    case("aten::linalg_qr", values(F32, (2, 2)), "full")
    case("aten::linalg_qr", values(F32, (2,)), "r")
    case("aten::linalg_qr", values(I64, (2, 2)), "r", says="Expected a floating point or complex tensor")
    case("aten::linalg_lu", values(F32, (2, 2)), False, says="pivoting is not implemented on the CPU")


def spectra():
    for dtype in (F32, F64, C64, C128):
        p = positive(dtype, 2, 3, 3)
        for side in ("L", "U") if dtype in (F64, C128) else ():
            case("aten::linalg_eigvalsh", p, side)
            case("aten::linalg_eigvalsh", square(dtype, 4, 4), side)
        case("aten::linalg_eigvals", torch.diag(torch.arange(3)).to(dtype))
        for shape in ((3, 3), (2, 4, 2), (2, 4)):
            t = values(dtype, shape)
            case("aten::linalg_matrix_rank", t, 0.5, False)
            case("aten::linalg_matrix_rank.atol_rtol_float", t, None, None, False)
            case("aten::linalg_matrix_rank.atol_rtol_float", t, 1.0, 0.25, False)
            case("aten::linalg_matrix_rank.atol_rtol_float", t, None, 0.5, False)
            case("aten::linalg_pinv.atol_rtol_float", t, None, None, False)
            case("aten::linalg_pinv.atol_rtol_float", t, 1.0, None, False)
            case("aten::linalg_pinv", t, 1e-3, False)
            case("aten::pinverse", t, 1e-6)
            case("aten::linalg_cond", t, None)
            case("aten::linalg_cond", t, -2)
        low = values(dtype, (4, 1)) @ values(dtype, (1, 4))
        case("aten::linalg_matrix_rank.atol_rtol_float", low, None, None, False)
        case("aten::linalg_matrix_rank.atol_rtol_float", p, None, None, True)
        case("aten::linalg_pinv.atol_rtol_float", p, None, None, True)
        real = torch.zeros(0, dtype=dtype).real.dtype
        bounds = torch.tensor([0.5, 9.0]).to(real)
        case("aten::linalg_matrix_rank.atol_rtol_tensor", p, bounds, None, False)
        case("aten::linalg_matrix_rank.atol_rtol_tensor", p, None, bounds / 16, True)
        case("aten::linalg_pinv.atol_rtol_tensor", p, bounds, bounds / 64, False)
        case("aten::linalg_pinv.rcond_tensor", p, bounds / 16, False)
        case("aten::linalg_matrix_rank.tol_tensor", p, bounds, False)
        t = square(dtype, 3, 3)
        for order in (1, -1, INF, -INF):
            case("aten::linalg_cond", t, order)
        for order in ("fro", "nuc"):
            case("aten::linalg_cond.p_str", t, order)
        for shape in ((4, 2), (2, 4), (3, 3), (2, 4, 3)):
            a = values(dtype, shape) / 4 + torch.eye(*shape[-2:], dtype=dtype)
            for driver in ("gels", "gelsy", "gelsd", "gelss", None):
                case("aten::linalg_lstsq", a, values(dtype, shape[:-1] + (2,)), None, driver)
        case("aten::linalg_lstsq", values(dtype, (2, 4, 3)), values(dtype, (2, 4)), None, None)
        for shape in ((3, 3), (2, 2, 2), (1, 1), (0, 0)):
            case("aten::matrix_exp", values(dtype, shape))
            case("aten::linalg_matrix_exp", values(dtype, shape) / 16)
    for t in (torch.eye(3), values(F32, (4, 1)) @ values(F32, (1, 4))):
        # Removed before this version: as the newer name says.
        got = torch.linalg.matrix_rank(t)
        lines.append("\t".join(["aten::matrix_rank", text(t), "b0", "=", text(got)]))
        got = torch.linalg.matrix_rank(t, 1.5)
        lines.append("\t".join(["aten::matrix_rank.tol", text(t), "f1.5", "b0", "=", text(got)]))
    case("aten::linalg_eigvalsh", torch.eye(2), "X", says="Expected UPLO argument to be 'L' or 'U'")
    case("aten::linalg_cond", values(F32, (2, 3)), 1)
    case("aten::linalg_lstsq", values(F32, (2, 3)), values(F32, (3, 1)), None, None)


if __name__ == "__main__":
    write(sys.argv[1], "inner.py", (ties, masked, products, recurrent, windows, numbers, seldom_layers,
                                   interpolated, odds, older, inner_layers, mathematics, factors,
                                   spectra))
