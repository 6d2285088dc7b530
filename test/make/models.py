#!/usr/bin/env python3
"""Makes test/data/kernels/models.txt: operators of torchvision, torchaudio, oneDNN and mixtures of
experts, by PyTorch.

Usage: models.py OUTPUT      (with torch 2.15, torchvision and torchaudio; ops.py tells the format)
"""
import glob
import importlib.util
import os
import sys

import torch
import torchvision  # noqa: F401

from ops import BF16, F32, F64, I32, case, lines, text, values, write


# Its operators alone: the package asks for the CUDA version it was built with.
for library in glob.glob(os.path.join(
        importlib.util.find_spec("torchaudio").submodule_search_locations[0], "lib", "libtorchaudio.*")):
    torch.ops.load_library(library)


def regions():
    for dtype in (F32, F64):
        t = values(dtype, (2, 4, 7, 9))
        rois = torch.tensor([[0, 1, 1, 6, 5], [1, 2.3, 0.4, 2.4, 6.9], [0, -3, -2, 30, 20.5],
                             [1, 5, 5, 4, 3], [0, 2.5, 2.5, 2.5, 2.5]], dtype=dtype)
        for scale in (1.0, 0.5):
            case("torchvision::roi_pool", t, rois, scale, 3, 2)
            for name in ("ps_roi_pool", "ps_roi_align"):
                more = [2] if name.endswith("align") else []
                case("torchvision::" + name, t, rois, scale, 2, 2, *more)
                if more:
                    case("torchvision::" + name, t, rois[:3], scale, 1, 2, -1)
        for name in ("roi_pool", "ps_roi_pool"):
            case("torchvision::" + name, t, rois[:0], 1.0, 2, 2)
    case("torchvision::ps_roi_pool", t, rois, 1.0, 3, 1, says="input channels must be a multiple")
    case("torchvision::roi_pool", t, rois[:, :4], 1.0, 3, 1, says="should have shape as Tensor[K, 5]")
    case("torchvision::roi_pool", t, rois.float(), 1.0, 3, 1, says="input should have the same type as rois")


def deformed():
    for groups, parts, mask, dtype in ((1, 1, True, F32), (2, 1, False, F32), (2, 4, True, F64)):
        t, w = values(dtype, (2, 4, 6, 5)), values(dtype, (6, 4 // groups, 3, 2)) / 4
        for stride, pad, dilation in (((1, 1), (0, 0), (1, 1)), ((2, 1), (1, 2), (2, 1))):
            size = [(n + 2 * p - (d * (k - 1) + 1)) // s + 1
                    for n, p, d, k, s in zip((6, 5), pad, dilation, (3, 2), stride)]
            case("torchvision::deform_conv2d", t, w, values(dtype, (2, parts * 12, *size)) / 2,
                 values(dtype, (2, parts * 6, *size)) if mask else values(dtype, (1,)).new_zeros(2, 1),
                 values(dtype, (6,)), *stride, *pad, *dilation, groups, parts, mask)
    case("torchvision::deform_conv2d", t, w, values(F64, (2, 24, 2, 9)), values(F64, (2, 24, 2, 9)),
         values(F64, (6,)), 1, 1, 0, 0, 1, 1, 2, 4, True, says="offset.shape[1] is not valid")


def rotated():
    a = torch.tensor([[5, 5, 4, 2, 0], [5, 5, 4, 2, 30], [1, 1, 2, 2, 45], [0, 0, 8, 1, -80.]])
    b = torch.tensor([[5, 5, 4, 2, 0], [5, 5, 4, 2, 210], [6, 5, 4, 2, 0], [0.5, 1, 3, 1, 10],
                      [40, 40, 1, 1, 0], [1, 1, 0, 2, 3.], [1, 1, 2, 2, 0]])
    for dtype in (F32, F64):
        case("torchvision::box_iou_rotated", a.to(dtype), b.to(dtype))
    case("torchvision::box_iou_rotated", a[:0], b)


def filters():
    for dtype in (F32, F64):
        for order in (1, 3):
            x, a = values(dtype, (2, 2, 6)), values(dtype, (2, order)) / 8
            y = torch.zeros(2, 2, 6 + order - 1, dtype=dtype)
            y[:, :, :order - 1] = 0.5
            case("torchaudio::_lfilter_core_loop", x, a, y)
    wave, temp = values(F32, (2, 5)), values(F32, (2, 5))
    case("torchaudio::_overdrive_core_loop", wave, temp, values(F32, (2,)), values(F32, (2,)),
         torch.zeros(2, 5))
    # Of other versions: the filter's definition, a[0] y[i] = sum of b[k] x[i-k] - a[k] y[i-k].
    wave, a, b = values(F32, (2, 2, 7)), values(F32, (2, 3)) / 4, values(F32, (2, 3)) / 4
    a[:, 0] = torch.tensor([1.0, 2.0])
    y = torch.zeros(2, 2, 7, dtype=F64)
    for i in range(7):
        for k in range(min(i, 2) + 1):
            y[:, :, i] += (b[:, k] * wave[:, :, i - k] - (a[:, k] * y[:, :, i - k] if k else 0)) / a[:, 0]
    lines.append("\t".join(["torchaudio::_lfilter", text(wave), text(a), text(b), "=",
                            text(y.float(), False)]))


def pictures():
    t = values(F32, (2, 2, 9, 10))
    for size in ([12, 13], [4, 3], [9, 10], [1, 1]):
        for align in (True, False):
            case("aten::_upsample_lanczos2d_aa", t, size, align, None, None)
    case("aten::_upsample_lanczos2d_aa.vec", t.double(), None, False, [0.4, 1.6])
    case("aten::_upsample_lanczos2d_aa", (t.abs() * 60).to(torch.uint8), [5, 14], False, None, None)


def experts():
    for dtype in (F32, BF16):
        a, b = values(dtype, (7, 8)), values(dtype, (3, 8, 8))
        ends = torch.tensor([2, 2, 7], dtype=I32)
        case("aten::_grouped_mm", a, b, ends, None, None)
        case("aten::_grouped_mm", values(dtype, (3, 4, 8)), values(dtype, (3, 8, 8)), None, None, None)
        case("aten::_grouped_mm", values(dtype, (3, 4, 8)), values(dtype, (8, 16)),
             torch.tensor([8, 8, 16], dtype=I32), None, None)
        case("aten::_grouped_mm", values(dtype, (8, 16)), values(dtype, (16, 8)),
             torch.tensor([8, 8, 16], dtype=I32), None, None)
    case("aten::_grouped_mm", a, b, ends[:2], None, None, says="matrix batch sizes have to match")
    case("aten::_grouped_mm", a, b, None, None, None, says="Have to provide offsets")


def plain():
    """oneDNN's, by the same layers on plain tensors."""
    def known(name, *args, by):
        lines.append("\t".join([name] + [text(a) for a in args] + ["=", text(by, False)]))
    t, w = values(F32, (1, 4, 6, 6)), values(F32, (4, 2, 3, 3))
    known("aten::to_mkldnn", t.transpose(1, 2), None, by=t.transpose(1, 2))
    known("aten::to_mkldnn", t, BF16, by=t.bfloat16())
    known("aten::to_dense", t.bfloat16(), F32, None, by=t)
    known("aten::_to_dense", t, None, None, by=t)
    known("aten::mkldnn_reorder_conv2d_weight", w, [1, 1], [1, 1], [1, 1], 2, None, by=w)
    known("aten::mkldnn_reorder_conv3d_weight", w[None], [1, 1, 1], [1, 1, 1], [1, 1, 1], 1, None,
          by=w[None])
    out = torch.conv2d(t, w, None, [2, 1], [1, 0], [1, 2], 2)
    known("aten::mkldnn_convolution", t, w, None, [1, 0], [2, 1], [1, 2], 2, by=out)
    known("prim::mkldnn_convolution", t, w, None, [2, 1], [1, 0], [1, 2], 2, by=out)
    x, f, b = values(F32, (2, 3, 4)), values(F32, (5, 4)), values(F32, (5,))
    known("aten::mkldnn_linear", x, f, b, by=torch.nn.functional.linear(x, f, b))
    known("aten::mkldnn_max_pool2d", t, [2, 3], [], [0, 1], [1, 1], True,
          by=torch.max_pool2d(t, [2, 3], [], [0, 1], [1, 1], True))
    known("aten::mkldnn_max_pool3d", t, [2, 2, 2], [], [0, 0, 0], [1, 1, 1], False,
          by=torch.max_pool3d(t, [2, 2, 2]))
    known("aten::mkldnn_adaptive_avg_pool2d", t, [3, 2],
          by=torch.nn.functional.adaptive_avg_pool2d(t, [3, 2]))


def checked():
    """Indices that do not fit: PyTorch says so where it is told to look."""
    where = torch.tensor([[2, 0], [1, 3]])
    for i, v, size in ((where, values(F32, (2,)), [3, 3]), (where - 1, values(F32, (2,)), [3, 4]),
                       (where, values(F32, (3,)), [3, 4]), (where[0], values(F32, (2,)), [3, 4]),
                       (where, values(F32, (2,)), [3]), (where, values(F32, (2, 2)), [3, 4, 3])):
        try:
            torch.sparse_coo_tensor(i, v, size, check_invariants=True)
        except RuntimeError as e:
            print(str(e).split("\n")[0])
            lines.append("\t".join(["aten::sparse_coo_tensor.indices_size", text(i), text(v), text(size),
                                    "N", "N", "N", "N", "N", "!", str(e).split("\n")[0][:60]]))


def others():
    t, source = values(F32, (3, 4)), values(F32, (2, 5))
    case("aten::set_", t.clone())
    case("aten::set_.source_Tensor", t.clone(), source.t(), strides=True)
    case("aten::set_.source_Tensor_storage_offset", t.clone(), source, 1, [2, 3], [1, 2], strides=True)
    case("aten::set_.source_Tensor_storage_offset", t.clone(), source, 0, [2, 2], [2, 1], strides=True)
    lines.append("\t".join(["prim::itemsize", text(t.double()), "=", "i8"]))


if __name__ == "__main__":
    write(sys.argv[1], "models.py", (regions, deformed, rotated, filters, pictures, experts, plain,
                                     checked, others))
