#!/usr/bin/env python3
"""Makes test/data/kernels/compose.txt: operators made of others, by PyTorch.

Usage: compose.py OUTPUT      (with torch 1.13; ops.py tells the format)

Attention, which this version lacks, is computed in double by its formula.
"""
import math
import sys

import torch

from ops import B8, C64, F32, F64, I64, INF, NAN, U8, case, lines, text, values, write


def known(name, args, results):
    """A case with results from elsewhere."""
    lines.append("\t".join([name] + [text(a) for a in args] + ["="] +
                           [text(r, False) for r in results]))


def attention():
    for q, k, v in (((2, 3, 4), (2, 5, 4), (2, 5, 6)), ((1, 2, 17, 8), (1, 2, 33, 8), (1, 2, 33, 8)),
                    ((3, 4), (3, 4), (3, 4)), ((2, 1, 3, 4), (1, 2, 5, 4), (2, 2, 5, 4))):
        for kind in ("plain", "causal", "bool", "float", "scale"):
            a, b, c = values(F32, q), values(F32, k), values(F32, v)
            mask, scale = None, 1 / math.sqrt(q[-1])
            score = a.double() @ b.double().transpose(-1, -2)
            if kind == "scale":
                scale = 0.3
            score = score * scale
            if kind == "causal":
                score = score.masked_fill(~torch.ones(q[-2], k[-2], dtype=B8).tril(), -INF)
            if kind == "bool":
                mask = values(B8, (q[-2], k[-2]))
                score = score.masked_fill(~mask, -INF)
            if kind == "float":
                mask = values(F32, (q[-2], k[-2]))
                score = score + mask
            # A row without any key is 0.
            p = torch.softmax(score, -1).nan_to_num(0)
            known("aten::scaled_dot_product_attention",
                  [a, b, c, mask, 0.0, kind == "causal", scale if kind == "scale" else None, False],
                  [(p @ c.double()).float()])
    a, b = values(F32, (1, 4, 3, 4)), values(F32, (1, 2, 5, 4))
    wide = b.double().repeat_interleave(2, 1)
    p = torch.softmax(a.double() @ wide.transpose(-1, -2) / 2, -1)
    known("aten::scaled_dot_product_attention", [a, b, b, None, 0.0, False, None, True],
          [(p @ wide).float()])
    x, other = values(F32, (2, 5, 8)), values(F32, (2, 3, 8))
    w, b, pw, pb = values(F32, (24, 8)), values(F32, (24,)), values(F32, (8, 8)), values(F32, (8,))
    mask = torch.zeros(2, 5, dtype=B8)
    mask[:, 3:] = True
    for q, k in ((x, x), (x, other)):
        for m, kind in ((None, None), (mask, 1)):
            if m is not None and k is not x:
                continue
            for average in (True, False):
                case("aten::_native_multi_head_attention", q, k, k, 8, 2, w, b, pw, pb, m, True,
                     average, kind)
    w, pw = w / 8, pw / 8
    norms = [values(F32, (8,)) / 4 for _ in range(4)]
    ffn = [values(F32, (6, 8)) / 8, values(F32, (6,)), values(F32, (8, 6)) / 8, values(F32, (8,))]
    for gelu in (True, False):
        for first in (True, False):
            case("aten::_transformer_encoder_layer_fwd", x, 8, 2, w, b, pw, pb, gelu, first, 1e-5,
                 *norms, *ffn, None, None)


def products():
    a, b, c = values(F32, (3, 4)), values(F32, (4, 5)), values(F32, (2, 3, 4))
    for equation, operands in (
            ("ij,jk->ik", [a, b]), ("ij,jk", [a, b]), ("ij->ji", [a]), ("ij->", [a]), ("ii->i", [a[:, :3]]),
            ("ii", [a[:, :3]]), ("bij,jk->bik", [c, b]), ("...ij,jk->...ik", [c, b]),
            ("ij,kl->ijkl", [a, b]), ("ij,ij->i", [a, a]), ("bij,bkj->bik", [c, c]),
            ("i...->...", [a]), ("ij,jk,kl->il", [a, b, values(F32, (5, 2))]), ("ij , jk -> k", [a, b]),
            ("bij,b->ij", [c, values(F32, (2,))]), ("aab,b->a", [values(F32, (3, 3, 2)), values(F32, (2,))]),
            ("ij,jk->ik", [a, values(F32, (3, 5))]), ("ij,jk->iz", [a, b]), ("ij,jk->ik", [a]),
            ("i,j->ij", [values(I64, (3,)), values(I64, (2,))]), ("ij,jk->ik", [a[:0], b])):
        case("aten::einsum", equation, operands, None)
    case("aten::tensordot", c, values(F32, (4, 3, 5)), [1, 2], [1, 0])
    case("aten::tensordot", a, b, [], [])
    case("aten::tensordot", a, b, [0], [0])
    for x, y in ((a, values(F32, (2, 4))), (c, values(F32, (4,))), (a, torch.tensor(2.0)), (a, b)):
        case("aten::inner", x, y)
    case("aten::kron", a, b)
    case("aten::kron", values(I64, (2,)), values(I64, (2, 3)))
    for dtype in (F32, I64):
        v, w = values(dtype, (3,)), values(dtype, (4,))
        case("aten::addr", values(dtype, (3, 4)), v, w, 2, 3)
        case("aten::addr", values(dtype, (4,)), v, w, 0, 1)
        case("aten::addbmm", values(dtype, (3, 5)), values(dtype, (2, 3, 4)), values(dtype, (2, 4, 5)),
             2, 3)
    case("aten::vdot", values(F32, (5,)), values(F32, (5,)))
    case("aten::linalg_vecdot", values(C64, (2, 5)), values(C64, (2, 5)), -1)
    case("aten::linalg_multi_dot", [a, b, values(F32, (5, 2))])
    case("aten::linalg_cross", values(F32, (2, 3)), values(F32, (1, 3)), -1)
    case("aten::cross", values(F32, (3, 3)), values(F32, (3, 3)), None)
    case("aten::bilinear", values(F32, (2, 3)), values(F32, (2, 4)), values(F32, (5, 3, 4)),
         values(F32, (5,)))
    case("aten::_weight_norm", values(F32, (3, 4)), values(F32, (3, 1)), 0)
    case("aten::addmm_", values(F32, (2,)), values(F32, (2, 3)), values(F32, (3, 2)), 1, 1)
    case("aten::addmm_", values(F32, (1, 2)), values(F32, (2, 3)), values(F32, (3, 2)), 1, 1)
    case("aten::baddbmm_", values(F32, (1, 1, 2)), values(F32, (1, 2, 3)), values(F32, (1, 3, 2)), 1, 1)
    case("aten::addmv_", values(F32, (1,)), values(F32, (2, 3)), values(F32, (3,)), 1, 1)


def pictures():
    line, plane, block = values(F32, (1, 2, 5)), values(F32, (2, 2, 4, 5)), values(F32, (1, 1, 3, 4, 2))
    for t, name, sizes in ((line, "upsample_linear1d", ([8], [3], [1])),
                           (plane, "upsample_bilinear2d", ([8, 7], [2, 3], [1, 1], [4, 5])),
                           (plane, "upsample_bicubic2d", ([8, 7], [2, 3])),
                           (plane, "_upsample_bilinear2d_aa", ([8, 7], [2, 3])),
                           (plane, "_upsample_bicubic2d_aa", ([8, 7], [2, 3])),
                           (block, "upsample_trilinear3d", ([5, 6, 3], [2, 2, 2]))):
        n = len(sizes[0])
        for size in sizes:
            for align in (True, False):
                case("aten::" + name, t, size, align, *[None] * n)
        if not name.endswith("aa"):
            case("aten::" + name, t.double(), sizes[0], False, *[1.7] * n)
            case("aten::%s.vec" % name, t, None, False, [1.5] * n)
            case("aten::%s.vec" % name, t.transpose(-1, -2) if n > 1 else t, sizes[0], True, None)
    for t, name, sizes in ((line, "nearest%s1d", ([8], [3])), (plane, "nearest%s2d", ([8, 7], [3, 9])),
                           (block, "nearest%s3d", ([5, 6, 3], [2, 2, 2]))):
        n = len(sizes[0])
        for full in ("upsample_" + name % "", "_upsample_" + name % "_exact"):
            for size in sizes:
                case("aten::" + full, t, size, *[None] * n)
            case("aten::%s.vec" % full, t, None, [1.9] * n)
    case("aten::upsample_nearest2d", values(U8, (1, 1, 2, 2)), [3, 5], None, None)
    case("aten::upsample_nearest2d", plane, [0, 5], None, None)
    case("aten::upsample_bilinear2d", line, [2, 5], True, None, None)
    for t in (plane, plane[0], plane[:0]):
        case("aten::im2col", t, [2, 3], [1, 1], [1, 0], [2, 1])
    case("aten::im2col", plane, [3, 2], [2, 1], [1, 1], [1, 1])
    case("aten::im2col", plane[..., :4], [9, 9], [1, 1], [0, 0], [1, 1])
    columns = values(F32, (2, 12, 8))
    case("aten::col2im", columns, [4, 5], [2, 3], [1, 1], [0, 1], [2, 1])
    case("aten::col2im", values(F32, (2, 12, 10)), [4, 5], [2, 3], [1, 1], [0, 1], [2, 1])
    case("aten::col2im", values(F32, (12, 10)), [4, 5], [2, 3], [1, 1], [0, 1], [2, 1])


def order():
    for t in (values(I64, (4, 3)), torch.tensor([2.0, 1.0, 2.0, 2.0, 1.0]), values(B8, (5,)),
              values(F32, (0,))):
        case("aten::_unique2", t, True, True, True)
        case("aten::_unique2", t, True, False, False)
        case("aten::unique_consecutive", t, True, True, None)
    rows = torch.tensor([[1, 2], [0, 5], [1, 2], [1, 0]])
    for dim in (0, 1):
        case("aten::unique_dim", rows, dim, True, True, True)
        case("aten::unique_consecutive", rows, True, True, dim)
    ties = torch.tensor([1.0, 0, 1, 0, 0, 1, 2, 2, NAN, 0])
    for k in (1, 2, 5, 6, 9, 10, 11):
        case("aten::kthvalue", ties, k, 0, False)
    case("aten::kthvalue", values(I64, (3, 7)), 4, 1, True)
    case("aten::kthvalue", values(F32, (7, 3)), 4, 0, False)
    for op in ("median", "nanmedian"):
        for t in (ties, ties[:8], values(I64, (6,)), values(F32, (3, 5)), torch.tensor([NAN, NAN]),
                  torch.tensor(3.0)):
            case("aten::" + op, t)
        case("aten::%s.dim" % op, values(F32, (3, 5)), 1, True)
        case("aten::%s.dim" % op, values(I64, (4, 3)), 0, False)
    case("aten::mode", torch.tensor([[1, 3, 3, 1], [2, 2, 5, 0]]), 1, False)
    case("aten::msort", values(F32, (4, 2)))
    for n in (0, 1, 2, 9):
        case("aten::diff", values(F32, (3, 4)), n, -1, None, None)
        case("aten::diff", values(I64, (3, 4)), n, 0, values(I64, (1, 4)), None)
    case("aten::diff", values(B8, (6,)), 1, 0, None, values(B8, (1,)))
    case("aten::diff", torch.tensor(1.0), 1, 0, None, None)


def rearranged():
    t = values(F32, (2, 3))
    for op in ("atleast_1d", "atleast_2d", "atleast_3d", "ravel", "positive"):
        for x in (torch.tensor(2.0), values(F32, (3,)), t.t(), values(F32, (2, 1, 2))):
            case("aten::" + op, x)
    for op in ("hstack", "vstack", "dstack", "column_stack"):
        case("aten::" + op, [values(F32, (3,)), values(F32, (3,))])
        case("aten::" + op, [t, t + 1])
    case("aten::block_diag", [t, torch.tensor(1), values(F32, (2,))])
    case("aten::cartesian_prod", [values(I64, (2,)), values(I64, (3,))])
    case("aten::hsplit.int", values(F32, (4, 6)), 3)
    case("aten::hsplit.array", values(F32, (6,)), [2, 4])
    case("aten::vsplit.int", values(F32, (4, 6)), 3)
    case("aten::dsplit.int", values(F32, (1, 2, 4)), 2)
    case("aten::tensor_split.tensor_indices_or_sections", values(F32, (7,)), torch.tensor(3), 0)
    case("aten::tensor_split.tensor_indices_or_sections", values(F32, (7,)), torch.tensor([2, 3]), 0)
    case("aten::trace", values(F32, (3, 4)))
    case("aten::trace", values(I64, (3, 2)))
    for offset in (0, 1, -2):
        case("aten::diag", values(F32, (3,)), offset)
        case("aten::diag", values(F32, (3, 4)), offset)
        case("aten::diagflat", values(F32, (2, 2)), offset)
        case("aten::diag_embed", values(F32, (2, 3)), offset, 0, -1)
    case("aten::select_scatter", values(F32, (3, 4)).t(), values(F32, (3,)), 0, 1)
    case("aten::slice_scatter", values(F32, (5, 2)), values(F32, (2, 2)), 0, 1, 5, 2)
    case("aten::diagonal_scatter", values(F32, (3, 3)), values(F32, (2,)), 1, 0, 1)
    case("aten::slice_scatter", values(F32, (5, 2)), values(F32, (3, 2)), 0, 1, 5, 2)
    for op in ("fliplr", "flipud"):
        case("aten::" + op, t)
    for k in (-1, 0, 1, 2, 3):
        case("aten::rot90", t, k, [0, 1])
    case("aten::pixel_unshuffle", values(F32, (1, 2, 4, 6)), 2)
    case("aten::channel_shuffle", values(F32, (1, 6, 2, 2)), 3)
    case("aten::argwhere", values(B8, (3, 2)))
    case("aten::repeat_interleave.self_Tensor", t, torch.tensor([2, 0]), 0, None)
    case("aten::repeat_interleave.self_Tensor", t, torch.tensor([2]), None, None)
    case("aten::repeat_interleave.Tensor", torch.tensor([1, 0, 3]), None)
    case("aten::masked_fill.Scalar", values(F32, (2, 3, 4)).permute(2, 0, 1), values(B8, (4, 2, 3)), 7,
         strides=True)
    case("aten::ldexp.Tensor", values(F32, (2, 3, 4)).permute(2, 0, 1), values(F32, (4, 2, 3)),
         strides=True)


def more():
    """Overloads, and what this version lacks: with results by definition."""
    t, plane = values(F32, (4, 6)), values(F32, (2, 2, 4, 5))
    for kind in ("bilinear", "bicubic"):
        case("aten::_upsample_%s2d_aa.vec" % kind, plane, None, False, [0.5, 1.5])
    case("aten::as_strided_scatter", t, values(F32, (2, 2)), [2, 2], [7, 2], 1)
    for n in (1, 2, 3):
        case("aten::atleast_%dd.Sequence" % n, [torch.tensor(2.0), t])
    case("aten::dsplit.array", values(F32, (1, 2, 5)), [1, 3])
    case("aten::vsplit.array", t, [1, 3])
    case("aten::vsplit.int", t, 3)
    case("aten::row_stack", [values(F32, (3,)), values(F32, (3,))])
    case("aten::float_power.Tensor_Tensor", values(I64, (4,)), values(F32, (4,)))
    case("aten::linalg_diagonal", values(F32, (2, 3, 4)), 1, -2, -1)
    x = values(F32, (3, 4))
    case("aten::special_xlog1py.other_scalar", x, 0.5)
    case("aten::special_xlog1py.self_scalar", 0, x)
    case("aten::trapz.dx", x, 0.5, -1)
    case("aten::trapz.x", x, x, -1)
    for k in (0, 1, -2):
        known("aten::tril_indices", [3, 4, k, I64, None, None, None], [torch.tril_indices(3, 4, k)])
        known("aten::triu_indices", [3, 4, k, I64, None, None, None], [torch.triu_indices(3, 4, k)])
    flags = values(B8, (3, 4))
    places = flags.nonzero()
    known("aten::nonzero_static", [flags, 2, -1], [places[:2]])
    known("aten::nonzero_static", [flags, len(places) + 2, 9],
          [torch.cat([places, torch.full((2, 2), 9)])])
    weight, wide = values(F32, (4,)), x.double()
    root = (wide.square().mean(-1, True) + 1e-3).sqrt()
    known("aten::rms_norm", [x, [4], weight, 1e-3], [(wide / root * weight).float()])
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 9],
                          [21, 20, 30, 31]])
    scores = torch.tensor([0.5, 0.9, 0.3, 0.9, 0.4])
    # Overlaps: 0 and 1: 81/119, 0 and 3: 90/100, 1 and 3: 72/118, 2 and 4: 90/109; 1 is before 3.
    for threshold, kept in ((0.3, [1, 4]), (0.65, [1, 3, 4]), (0.85, [1, 3, 4, 2]),
                            (0.95, [1, 3, 0, 4, 2])):
        known("torchvision::nms", [boxes, scores, threshold], [torch.tensor(kept)])
    known("torchvision::nms", [boxes[:0], scores[:0], 0.5], [torch.zeros(0, dtype=I64)])
    # On a plane y + 10 x every mean is the value at the middle of its bin.
    ramp = (torch.arange(9.0)[:, None] + 10 * torch.arange(9.0)).expand(2, 1, 9, 9)
    rois = torch.tensor([[0.0, 2, 1, 8, 5], [1, 4, 4, 10, 12]])
    for aligned in (True, False):
        for ratio in (2, -1, 3):
            want = torch.empty(2, 1, 2, 3)
            for n, roi in enumerate(rois.tolist()):
                left, top, right, bottom = [v * 0.5 - 0.5 * aligned for v in roi[1:]]
                for i in range(2):
                    for j in range(3):
                        want[n, 0, i, j] = (top + (bottom - top) * (i + 0.5) / 2 +
                                            10 * (left + (right - left) * (j + 0.5) / 3))
            known("torchvision::roi_align", [ramp.contiguous(), rois, 0.5, 2, 3, ratio, aligned], [want])


def sums():
    odd = torch.tensor([[1.0, NAN, 3.0], [NAN, NAN, 2.0]])
    for op in ("nansum", "nanmean"):
        for dim in (None, [0], [1], []):
            case("aten::" + op, odd, dim, dim == [1], None)
    case("aten::nansum", values(I64, (2, 3)), None, False, None)
    case("aten::sum_to_size", values(F32, (2, 3, 4)), [3, 1])
    y, x = values(F32, (2, 5)), torch.tensor([0.0, 1.0, 3.0, 3.5, 7.0])
    for op in ("trapezoid", "cumulative_trapezoid"):
        case("aten::%s.dx" % op, y, 0.5, -1)
        case("aten::%s.x" % op, y, x, -1)
        case("aten::%s.dx" % op, y, 2, 0)
    case("aten::cov", y, 1, None, None)
    case("aten::cov", y, 0, torch.tensor([1, 2, 1, 3, 1]), torch.rand(5, generator=torch.Generator()
                                                                     .manual_seed(1)))
    case("aten::corrcoef", y)
    for z in (values(C64, (3, 4)), values(F32, (3, 4))):
        case("aten::var", z, True)
        case("aten::std.dim", z, [0], False, True)
        case("aten::var_mean.dim", z, [1], True, False)
    a, b = values(F32, (3, 4)), values(F32, (3, 4))
    for p in (0.5, 1.0, 2.0, INF):
        case("aten::dist", a, b, p)
        case("aten::pairwise_distance", a, b, p, 1e-6, True)
        case("aten::cdist", a, values(F32, (5, 4)), p, None)
        case("aten::pdist", a, p)
    case("aten::cosine_similarity", a, values(F32, (4,)), 1, 1e-8)
    case("aten::renorm", a, 2, 0, 1.5)
    p, q = torch.rand(3, 4, generator=torch.Generator().manual_seed(2)), torch.tensor([1, -1, 1])
    odd = torch.tensor([NAN, INF, -INF, 2.0])
    for how in (0, 1, 2):
        case("aten::kl_div", p.log(), p.flip(0), how, False)
        case("aten::kl_div", p.log(), p.log().flip(0), how, True)
        case("aten::margin_ranking_loss", a[:, 0], b[:, 0], q, 0.5, how)
        case("aten::hinge_embedding_loss", a[:, 0], q, 1.0, how)
        case("aten::hinge_embedding_loss", odd, torch.tensor([-1, -1, 1, 1]), 1.0, how)
        case("aten::cosine_embedding_loss", torch.stack([odd] * 2, 1), torch.ones(4, 2), torch.tensor([3, 1, 2, 5]), 0.1, how)
        case("aten::soft_margin_loss", a[:, 0], q, how)
        case("aten::poisson_nll_loss", a, p * 4, True, True, 1e-8, how)
        case("aten::poisson_nll_loss", p, p * 4, False, False, 1e-8, how)
        case("aten::triplet_margin_loss", a, b, a.flip(0), 1.0, 2.0, 1e-6, how == 1, how)
        case("aten::cosine_embedding_loss", a, b, q, 0.1, how)
    case("aten::float_power.Tensor_Scalar", values(I64, (4,)), 2)
    case("aten::float_power.Scalar", 2, values(F32, (4,)))
    case("aten::logaddexp2", torch.tensor([1.0, INF, -INF, 3.0]), torch.tensor([2.0, INF, -INF, -INF]))
    case("aten::logaddexp2", torch.tensor(0, dtype=U8), torch.tensor(4, dtype=U8))
    case("aten::logaddexp2", torch.tensor(0, dtype=U8), torch.tensor(4.0))
    case("aten::logaddexp2", torch.tensor(1j, dtype=C64), torch.tensor(4.0))
    case("aten::special_xlog1py", torch.tensor([0.0, 0.0, 2.0]), torch.tensor([-1.0, NAN, 0.5]))
    case("aten::special_entr", torch.tensor([0.0, 0.5, 1.0, -1.0, NAN]))
    case("aten::special_ndtr", values(F64, (5,)))
    case("aten::mvlgamma", torch.tensor([3.0, 4.5]), 3)
    case("aten::hardtanh", torch.tensor([-3, 0, 3]), -1.5, 1.5)
    case("aten::avg_pool2d", values(I64, (1, 4, 4)), [2, 2], [2, 2], [0, 0], False, True, None)


if __name__ == "__main__":
    write(sys.argv[1], "compose.py", (attention, products, pictures, order, rearranged, sums, more))
