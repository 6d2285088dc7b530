#!/usr/bin/env python3
"""Makes test/data/kernels/library.txt: searches, counts, pools, transforms, by PyTorch.

Usage: library.py OUTPUT      (with torch 1.13; ops.py tells the format)
"""
import sys

import torch

from ops import B8, BF16, C64, C128, F16, F32, F64, I32, I64, INF, NAN, U8, case, lines, values, write


def places():
    for dtype in (F32, F64, I64, U8, F16, B8, C64):
        t = values(dtype, (3, 4))
        case("aten::take", t, torch.tensor([[0, -1], [5, 11]]))
        case("aten::put", t, torch.tensor([0, -1, 5]), values(dtype, (3,)), False)
    case("aten::take", values(F32, (4, 3)).t(), torch.tensor(7))
    case("aten::take", values(F32, (4,)), torch.tensor([4]))
    case("aten::take", values(F32, (4,)), torch.tensor([1], dtype=I32))
    case("aten::take", values(F32, (4,)), torch.zeros(0, 2, dtype=I64))
    case("aten::put", values(F32, (2, 3)), torch.tensor([[1, 1], [0, -1]]), values(F32, (2, 2)), True)
    case("aten::put_", values(I64, (2, 3)), torch.tensor([1, 2]), values(I64, (2,)), True)
    case("aten::put", values(F32, (3,)), torch.tensor([1]), values(F32, (2,)), False)
    mask = torch.tensor([True, False, True])
    for dtype in (F32, I64, B8):
        case("aten::masked_scatter", values(dtype, (2, 3)), mask, values(dtype, (5,)))
    case("aten::masked_scatter_", values(F32, (2, 3)), mask, values(F32, (2, 2)))
    case("aten::masked_scatter", values(F32, (2, 3)), mask, values(F32, (3,)))
    index = torch.tensor([[0, 1, 2, 0], [2, 0, 0, 1]])
    for how in ("sum", "prod", "mean", "amax", "amin"):
        for include in (True, False):
            for dtype in (F32, I64, I32):
                case("aten::scatter_reduce.two", values(dtype, (3, 5)), 0, index,
                     values(dtype, (2, 5)), how, include)
            if how != "sum":
                case("aten::index_reduce", values(F32, (3, 4)), 1, torch.tensor([0, 3, 0]),
                     values(F32, (3, 3)), how, include)
    case("aten::scatter_reduce.two", values(F32, (3,)), 0, torch.tensor([3]), values(F32, (1,)), "sum", True)
    case("aten::scatter_reduce.two", values(F32, ()), 0, torch.tensor(0), values(F32, ()), "amax", True)
    case("aten::index_reduce_", values(I64, (4,)), 0, torch.tensor([1, 1]), values(I64, (2,)), "amax", True)



def searches():
    for dtype in (F32, I64, F64, F16, U8):
        row = values(dtype, (6,)).sort().values
        for right in (False, True):
            for narrow in (False, True):
                case("aten::searchsorted.Tensor", row, values(dtype, (2, 3)), narrow, right, None, None)
                case("aten::bucketize.Tensor", values(dtype, (2, 3)), row, narrow, right)
            case("aten::searchsorted.Scalar", row, 2, False, right, None, None)
            case("aten::bucketize.Scalar", 1, row, False, right)
    rows, order = values(F32, (2, 5)).sort()
    case("aten::searchsorted.Tensor", rows, values(F32, (2, 3)), False, False, "right", None)
    shuffled = values(F32, (2, 5))
    case("aten::searchsorted.Tensor", shuffled, values(F32, (2, 3)), False, True, None,
         shuffled.argsort())
    case("aten::searchsorted.Tensor", rows, values(F32, (3, 3)), False, False, None, None)
    case("aten::searchsorted.Tensor", rows, values(F32, (2, 3)), False, True, "left", None)
    case("aten::searchsorted.Tensor", torch.tensor([1.0, 2.0, NAN]), torch.tensor([NAN, INF, -INF]),
         False, False, None, None)
    case("aten::bucketize.Tensor", values(F32, (2,)), values(F32, (2, 2)), False, False)
    case("aten::bucketize.Tensor", values(F32, (0, 2)), values(F32, (3,)), False, False)
    for dtype in (F32, I64, U8):
        for invert in (False, True):
            case("aten::isin.Tensor_Tensor", values(dtype, (3, 4)), values(dtype, (5,)), False, invert)
            case("aten::isin.Tensor_Scalar", values(dtype, (3, 4)), 2, False, invert)
            case("aten::isin.Scalar_Tensor", 1, values(dtype, (3, 4)), False, invert)
    case("aten::isin.Tensor_Tensor", values(F32, (3,)), values(F32, (0,)), False, False)


def counts():
    for dtype in (I64, U8, I32):
        t = torch.tensor([3, 0, 1, 3, 5], dtype=dtype)
        case("aten::bincount", t, None, 0)
        case("aten::bincount", t, None, 8)
        case("aten::bincount", t, values(F32, (5,)), 0)
        case("aten::bincount", t, values(I64, (5,)), 0)
    case("aten::bincount", torch.zeros(0, dtype=I64), None, 3)
    case("aten::bincount", torch.tensor([-1]), None, 0)
    case("aten::bincount", values(F32, (3,)), None, 0)
    case("aten::bincount", torch.tensor([1, 2]), values(F32, (3,)), 0)
    for dtype in (F32, F64):
        t = values(dtype, (4, 5))
        case("aten::histc", t, 4, 0, 0)
        case("aten::histc", t, 5, -2, 1.5)
    case("aten::histc", torch.ones(3), 4, 0, 0)
    case("aten::histc", values(I64, (3,)), 4, 0, 0)
    case("aten::histc", values(F32, (3,)), 4, 2, 1)
    case("aten::histc", values(F32, (3,)), 0, 0, 1)
    q = torch.tensor([0.0, 0.3, 0.5, 1.0])
    for how in ("linear", "lower", "higher", "midpoint", "nearest"):
        t = values(F32, (3, 7))
        t[1, 2] = NAN
        for kind in ("quantile", "nanquantile"):
            case("aten::" + kind, t, q, 1, False, how)
            case("aten::" + kind, t, q, 0, True, how)
            case("aten::" + kind + ".scalar", t, 0.4, None, False, how)
            case("aten::" + kind + ".scalar", t, 0.7, -1, True, how)
    case("aten::quantile", values(F64, (2, 3, 4)), q.double(), 1, False, "linear")
    case("aten::quantile.scalar", values(F32, (3,)), 1.5, None, False, "linear")
    case("aten::quantile.scalar", values(I64, (3,)), 0.5, None, False, "linear")


def pools():
    for dims in (1, 3):
        for batch in ((), (2,)):
            t = values(F32, batch + (2 - len(batch),) + (7, 4, 4)[:dims][::-1])
            for k, s, p, d, ceil in ((2, [], 0, 1, False), (3, 2, 1, 1, True), (2, 1, 0, 2, False)):
                args = [[k] * dims, [s] * dims if s else [], [p] * dims, [d] * dims, ceil]
                case("aten::max_pool%dd" % dims, t, *args)
                case("aten::max_pool%dd_with_indices" % dims, t, *args)
                if d == 1:
                    more = [] if dims == 1 else [None]
                    for pad in (True, False):
                        case("aten::avg_pool%dd" % dims, t, *args[:3], ceil, pad, *more)
            for size in (1, 3):
                case("aten::adaptive_avg_pool%dd" % dims, t, [size] * dims)
                case("aten::adaptive_max_pool%dd" % dims, t, [size] * dims)
    case("aten::avg_pool3d", values(F64, (1, 1, 2, 2, 2)), [2], [], [0], False, True, 3)
    case("aten::adaptive_max_pool2d", values(F64, (2, 5, 4)), [3, 2])
    case("aten::max_pool1d", values(F32, (2, 3)), [2], [], [2], [1], False)
    for rank in (1, 2, 3):
        for padding in ("same", "valid"):
            case("aten::_convolution_mode", values(F32, (1, 2) + (5,) * rank),
                 values(F32, (2, 1) + (3,) * rank), values(F32, (2,)), [1] * rank, padding,
                 [1] * rank, 2)


def transforms():
    """Of lengths with small factors, large ones and none."""
    for n in (1, 2, 6, 8, 15, 49, 61, 67, 134):
        for kind in ("fft", "ifft"):
            case("aten::fft_" + kind, values(C128, (n,)), None, -1, None)
        case("aten::fft_rfft", values(F64, (n,)), None, -1, None)
        case("aten::fft_irfft", values(C64, (n // 2 + 1,)), n, -1, None)
    for norm in (None, "forward", "backward", "ortho"):
        for kind in ("fft", "ifft", "irfft", "hfft"):
            case("aten::fft_" + kind, values(C64, (3, 5)), 6, 0, norm)
            case("aten::fft_%sn" % kind, values(C64, (2, 3, 4)), None, [0, 2], norm)
            case("aten::fft_%s2" % kind, values(C64, (2, 3, 4)), [4, -1], [-2, -1], norm)
        for kind in ("rfft", "ihfft", "fft"):
            case("aten::fft_" + kind, values(F32, (3, 5)), 4, 0, norm)
            case("aten::fft_%sn" % kind, values(F64, (2, 3, 4)), None, [0, 2], norm)
            case("aten::fft_%s2" % kind, values(I64, (2, 3, 4)), [4, 5], [-2, -1], norm)
    for kind in ("fft", "ifft", "irfft", "hfft"):
        case("aten::fft_%sn" % kind, values(C64, (3, 4)), None, None, None)
    case("aten::fft_fft", values(F16, (4,)), None, -1, None)
    case("aten::fft_fft", values(F32, (4,)), 0, -1, None)
    case("aten::fft_fft", values(F32, (4,)), None, 2, None)
    case("aten::fft_fft", values(F32, (4,)), None, 0, "x")
    case("aten::fft_rfft", values(C64, (4,)), None, -1, None)
    case("aten::fft_fftn", values(F32, (4, 4)), None, [0, -2], None)
    case("aten::fft_fftn", values(F32, (4, 4)), [2], [0, 1], None)
    case("aten::fft_ifft", values(C128, (0, 4)), None, -1, None)
    case("aten::_fft_c2c", values(C64, (3, 4)), [0, 1], 1, False)
    case("aten::_fft_r2c", values(F32, (3, 4)), [1], 2, True)
    case("aten::_fft_r2c", values(F32, (3, 4)), [0, 1], 0, False)
    case("aten::_fft_c2r", values(C64, (3, 4)), [0, 1], 2, 7)
    for dim in (None, [0], [0, -1]):
        case("aten::fft_fftshift", values(F32, (3, 4)), dim)
        case("aten::fft_ifftshift", values(F32, (3, 4)), dim)
    for n in (5, 6):
        case("aten::fft_fftfreq", n, 0.5, None, None, None, None)
        case("aten::fft_rfftfreq", n, 2.0, F64, None, None, None)


def frames():
    for shape, dtype in (((24,), F32), ((2, 17), F64)):
        window = torch.hann_window(8).to(dtype)
        t = values(dtype, shape)
        for args in ((8, None, None, None, False, None, True), (8, 3, 8, window, True, None, False),
                     (12, 5, 8, window, False, False, True), (9, 4, 7, None, True, True, True)):
            case("aten::stft", t, *args)
            case("aten::stft.center", t, *args[:4], True, "reflect", *args[4:])
        case("aten::stft.center", t, 6, 4, None, None, True, "constant", False, None, True)
        case("aten::stft.center", t, 6, 4, None, None, False, "constant", False, None, True)
        for normalized in (False, True):
            s = torch.stft(t, 8, 3, 8, window, normalized=normalized, return_complex=True)
            for length in (None, 15, 31):
                case("aten::istft", s, 8, 3, 8, window, True, normalized, None, length, False)
            s = torch.stft(t, 8, 2, 6, None, onesided=False, normalized=normalized, return_complex=True)
            case("aten::istft", s, 8, 2, 6, None, True, normalized, False, None, True)
    case("aten::stft", values(C64, (20,)), 8, 4, None, None, False, None, None)
    case("aten::stft", values(F32, (20,)), 30, 4, None, None, False, None, True,
         says="expected 0 < n_fft < 20, but got n_fft=")
    case("aten::stft", values(F32, (20,)), 8, 0, None, None, False, None, True,
         says="expected hop_length > 0, but got hop_length=0")
    case("aten::stft", values(F32, (20,)), 8, 2, None, torch.ones(5), False, None, True,
         says="expected a 1D window tensor of size equal to win_length=8, but got window with ")
    case("aten::stft", values(I64, (20,)), 8, 2, None, None, False, None, True,
         says="expected a tensor of floating point or complex values")
    case("aten::istft", values(C64, (5, 4)), 8, 2, 8, torch.hann_window(8), False, False, None, None, False,
         says="window overlap add min")


def specials():
    odd = torch.tensor([0.0, 0.5, -0.5, 1.0, -3.25, 8.0, 24.5, 30.0, -60.0, INF, -INF, NAN])
    for kind in ("i0e", "i1", "i1e", "erfcx", "log_ndtr", "i0", "modified_bessel_i0", "modified_bessel_i1"):
        for dtype in (F64, I64, BF16):
            t = odd.nan_to_num(1, 2, -3) if dtype == I64 else odd.clamp(-20, 20) if dtype == BF16 else odd
            case("aten::special_" + kind, t.to(dtype))
    case("aten::i0", odd.double())
    case("aten::i0_", values(F32, (3,)))
    case("aten::special_ndtri", torch.tensor([0, 1e-300, 1e-9, 0.01, 0.3, 0.5, 0.9, 1, 1.5, NAN], dtype=F64))
    case("aten::special_ndtri", torch.tensor([True, False]))
    x = torch.tensor([1.0, 0.5, 2.0, 3.5, 30.0, 2.0, 2.0, 2.5, NAN], dtype=F64)
    q = torch.tensor([2.0, 2.0, 0.25, 7.0, 1.5, -1.5, -2.0, -1.5, 1.0], dtype=F64)
    case("aten::special_zeta", x, q)
    case("aten::special_zeta", x.reshape(9, 1), torch.tensor([1, 2]))
    case("aten::special_zeta.self_scalar", 2, q)
    case("aten::special_zeta.other_scalar", x, 1.5)
    for n in (0, 1, 2, 5):
        t = torch.tensor([0.5, 1.0, 2.5, 20.0, -0.5, -2.25], dtype=F64)
        case("aten::polygamma", n, t)
        case("aten::special_polygamma", n, t.float().abs())
        case("aten::polygamma_", t.abs(), n)
    case("aten::polygamma", -1, values(F32, (2,)))
    case("aten::frexp.Tensor", torch.tensor([0.0, 1.0, -0.3, 1000.0]))
    case("aten::frexp.Tensor", values(I64, (2,)))
    t = torch.tensor([0.25, 0.5, 0.875])
    for kind in ("expit", "erf", "erfc", "erfinv", "exp2", "expm1", "log1p", "digamma", "psi", "gammaln", "sinc"):
        case("aten::special_" + kind, t)
        case("aten::special_" + kind, torch.tensor([0, 1]))
    case("aten::special_round", values(F32, (4,)), 1)
    case("aten::special_logit", t, None)
    case("aten::special_logit", torch.tensor([0.0, 1.0, 0.5]), 0.1)
    case("aten::special_logsumexp", values(F32, (2, 3)), [1], True)
    case("aten::special_multigammaln", t + 3, 2)
    case("aten::special_xlogy", values(F32, (3,)), t)
    case("aten::special_xlogy.other_scalar", values(F32, (3,)), 2)
    case("aten::special_xlogy.self_scalar", 2, t)
    case("aten::special_softmax", values(F32, (2, 3)), 0, None)
    case("aten::special_log_softmax", values(F32, (2, 3)), 1, F64)


def complexes():
    a, b, c = (values(C64, s) for s in ((2, 3), (3, 4), (2, 4)))
    case("aten::addmm", c, a, b, 1 + 2j, 0.5j)
    case("aten::addmm", c * NAN, a, b, 0, 0.5j)
    case("aten::baddbmm", c[None], a[None], b[None], 1j, 2)
    case("aten::addmv", c[0], b.t(), a[0], 1j, 1 - 1j)
    case("aten::addmm", c.real, a.real, b.real, 1, 0.5j)
    case("aten::addmm_", values(F32, (3,)), values(F32, (2, 3)), values(F32, (3, 3)), 1, 1)
    case("aten::addmv_", values(F32, ()), values(F32, (2, 3)), values(F32, (3,)), 1, 1)
    case("aten::baddbmm_", values(F32, (3, 3)), values(F32, (2, 3, 3)), values(F32, (2, 3, 3)), 1, 1)
    case("aten::l1_loss", a, a.flip(0), 1)
    case("aten::l1_loss", a, a.flip(0), 0)


def scans():
    for dtype in (F32, I64, B8, F16, U8):
        for dim in (0, -1):
            t = values(dtype, (4, 5))
            case("aten::cummax", t, dim)
            case("aten::cummin", t.t(), dim)
    odd = torch.tensor([1.0, NAN, 3.0, -INF, INF, NAN])
    for kind in ("cummax", "cummin", "logcumsumexp"):
        case("aten::" + kind, odd, 0)
        case("aten::" + kind, torch.tensor(2.0), 0)
        case("aten::" + kind, torch.zeros(0, 2), 0)
        case("aten::" + kind, values(C64, (2,)) if kind[0] == "c" else values(I64, (2,)), 0)
    case("aten::logcumsumexp", values(F64, (3, 4)), 0)
    case("aten::logcumsumexp", torch.tensor([-INF, -INF, 2.0, INF, 1.0]), 0)
    for r in (0, 1, 2, 3):
        for again in (False, True):
            case("aten::combinations", values(F32, (4,)), r, again)
    case("aten::combinations", values(I64, (2,)), 3, False)
    case("aten::combinations", values(I64, (2, 2)), 2, False)


def rare():
    g = torch.Generator().manual_seed(3)
    for spatial in (2, 3):
        t = values(F32, (2, 2) + (3, 4, 2)[:spatial])
        grid = torch.rand((2,) + (2, 3, 2)[:spatial] + (spatial,), generator=g) * 3 - 1.5
        grid.view(-1)[:2] = torch.tensor([1.0, -1.0])
        for mode in (0, 1, 2)[: 5 - spatial]:
            for padding in (0, 1, 2):
                for align in (False, True):
                    case("aten::grid_sampler", t.double(), grid.double(), mode, padding, align)
        case("aten::grid_sampler_%dd" % spatial, t, grid, 0, 2, True)
    case("aten::grid_sampler", t, grid[:1], 0, 0, True)
    case("aten::grid_sampler", t, grid[..., :2], 0, 0, True)
    case("aten::grid_sampler", t, grid.double(), 0, 0, True)
    t, at = torch.nn.functional.max_pool2d_with_indices(values(F32, (2, 4, 6)), 2)
    case("aten::max_unpool2d", t, at, [4, 6])
    case("aten::max_unpool2d", t.double()[None], at[None], [5, 6])
    t, at = torch.nn.functional.max_pool3d_with_indices(values(F32, (1, 2, 2, 4, 4)), 2)
    case("aten::max_unpool3d", t, at, [2, 4, 4], [2, 2, 2], [0, 0, 0])
    t, target, w = values(F32, (3, 4)), torch.tensor([1, 0, 3]), values(F32, (4,)).abs()
    for how in (0, 1, 2):
        case("aten::multi_margin_loss", t, target, 1, 1, None, how)
        case("aten::multi_margin_loss", t, target, 2, 0.5, w, how)
        case("aten::multi_margin_loss", t[0], target[0], 1, 1, None, how)
        labels = torch.tensor([[3, 0, -1, 1], [-1, 0, 0, 0], [2, 1, 0, 3]])
        case("aten::multilabel_margin_loss", t, labels, how)
        case("aten::multilabel_margin_loss_forward", t[0], labels[0], how)
    case("aten::multi_margin_loss", t, target + 2, 1, 1, None, 1)
    log_probs = values(F32, (5, 2, 4)).log_softmax(-1)
    targets = torch.tensor([[1, 1, 3], [2, 3, 1]])
    for how in (0, 1, 2):
        for zero in (False, True):
            case("aten::ctc_loss.IntList", log_probs, targets, [5, 4], [3, 2], 0, how, zero)
            case("aten::ctc_loss.IntList", log_probs, targets, [3, 2], [3, 0], 0, how, zero)
        case("aten::ctc_loss.Tensor", log_probs.double(), torch.tensor([0, 2, 2]), torch.tensor([5, 5]),
             torch.tensor([1, 2]), 3, how, False)
        case("aten::ctc_loss.IntList", log_probs[:, 0], targets[0], [5], [3], 0, how, False)
    case("aten::ctc_loss.IntList", log_probs, targets, [6, 4], [3, 2], 0, 0, False)
    for power in (2.0, 1.0, INF):
        case("aten::embedding_renorm_", values(F32, (4, 3)), torch.tensor([1, 3, 1]), 1.0, power)
    table = values(F32, (5, 3))
    index, offsets = torch.tensor([1, 4, 0, 1, 2, 2]), torch.tensor([0, 2, 2, 6])
    for mode in (0, 1, 2):
        for last in (False, True):
            first("aten::embedding_bag", table, index, offsets, False, mode, False, None, last)
        first("aten::embedding_bag.padding_idx", table, index, offsets, False, mode, False, None, False, 2)
        first("aten::embedding_bag.padding_idx", table, index, offsets, False, mode, False, None, False, -1)
        first("aten::_embedding_bag", table, index, offsets, False, mode, False, None, False, 1)
    first("aten::embedding_bag", table, index, offsets, False, 0, False, values(F32, (6,)), False)
    t = values(F32, (2, 4, 3))
    for weight, bias in ((None, None), (w, values(F32, (4,)))):
        case("aten::native_group_norm", t, weight, bias, 2, 4, 3, 2, 1e-5)


def matrices():
    g = torch.Generator().manual_seed(4)
    for dtype in (F64, F32, C64, C128):
        a = torch.randint(0, 32, (2, 3, 3), generator=g).to(dtype) / 32 + torch.eye(3)
        if dtype.is_complex:
            a = a + 1j / 64 * torch.randint(0, 32, (2, 3, 3), generator=g)
        b, good = values(dtype, (2, 3, 2)), a @ a.mH + torch.eye(3)
        for kind in ("det", "slogdet", "inv", "svdvals"):
            case("aten::linalg_" + kind, a)
            case("aten::linalg_" + kind, a[0].t() * 0.5)
        case("aten::logdet", good)
        for upper in (False, True):
            case("aten::linalg_cholesky", good, upper)
            case("aten::linalg_solve_triangular", a, b, upper, True, False)
            case("aten::linalg_solve_triangular", a[0], b.mT, upper, False, True)
        case("aten::linalg_solve", a, b, True)
        case("aten::linalg_solve", a[0], b, True)
        case("aten::linalg_solve", a, b[..., 0], True)
        case("aten::linalg_solve", a[0], b[0, :, 0], True)
        case("aten::linalg_solve", a, b.mT, False)
        for n in (-2, 0, 1, 5):
            case("aten::linalg_matrix_power", a, n)
        t = values(dtype, (2, 3, 4))
        for keep in (False, True):
            for order in (1, -1, 2, -2, INF, -INF):
                case("aten::linalg_matrix_norm", t, order, [-2, -1], keep, None)
                case("aten::linalg_norm", t, order, [2, 0], keep, None)
            for order in ("fro", "nuc"):
                case("aten::linalg_matrix_norm.str_ord", t, order, [0, 2], keep, None)
                case("aten::linalg_norm.ord_str", t[0], order, None, keep, None)
            case("aten::linalg_norm", t, None, None, keep, None)
            case("aten::linalg_norm", t[0, 0], 3, None, keep, None)
        case("aten::linalg_vander", t[0], None)
        case("aten::linalg_vander", t[0, 0], 3)
        case("aten::linalg_svdvals", t[:, :, :2])
    for name in ("det", "slogdet", "inverse", "logdet"):
        case("aten::" + name, -a.real)
    case("aten::cholesky", good, False)
    case("aten::matrix_power", a, 3)
    case("aten::linalg_vander", values(I64, (3,)), None)
    case("aten::linalg_det", torch.zeros(2, 2))
    case("aten::linalg_slogdet", torch.zeros(2, 2))
    case("aten::linalg_inv", torch.zeros(2, 2), says="The diagonal element 1 is zero, the inversion")
    case("aten::linalg_inv", torch.zeros(1, 2, 2), says="(Batch element 0): The diagonal element 1 is zero")
    case("aten::linalg_solve", torch.zeros(2, 2), torch.ones(2, 2), True, says="because the input matrix is singular")
    case("aten::linalg_cholesky", -torch.eye(2), False, says="(the leading minor of order 1 is not positive-definite)")
    case("aten::linalg_inv", values(F32, (2, 3)), says="A must be batches of square matrices, but they are 2 by 3")
    case("aten::linalg_inv", values(I64, (2, 2)), says="Expected a floating point or complex tensor as input. Got Long")
    case("aten::linalg_det", values(F16, (2, 2)), says="Low precision dtypes not supported. Got Half")
    case("aten::linalg_det", values(F32, (2,)), says="must have at least 2 dimensions")
    for dtype in (F32, F64):
        t, w = values(dtype, (3, 4)), values(dtype, (3, 4)).abs()
        for density in (False, True):
            case("aten::histogram.bin_ct", t, 4, None, None, density)
            case("aten::histogram.bin_ct", t, 3, [-1.0, 2.0], w, density)
            case("aten::histogram.bins_tensor", t, torch.tensor([-2.0, 0.5, 1, 4], dtype=dtype), w, density)
    case("aten::histogram.bin_ct", torch.ones(3), 2, None, None, False)
    case("aten::histogram.bin_ct", values(F32, (3,)), 0, None, None, False)


def layouts_and_ties():
    a, b = values(F32, (2, 3, 4)).permute(2, 0, 1), values(I64, (4, 2, 3))
    case("aten::ldexp.Tensor", a, b, strides=True)
    case("aten::ldexp.Tensor", a.contiguous(), b.permute(0, 2, 1).contiguous().permute(0, 2, 1), strides=True)
    case("aten::ldexp.Tensor", a, values(I64, (4, 1, 1)), strides=True)
    case("aten::ldexp.Tensor", values(I64, (2, 2)), values(F64, (2,)))
    for row in ([3.0, 1, 2, 1, 1, 2, 3, 3], [1.0, 1, 1, 1], [2.0, 1, 2, 1, 2, NAN, NAN]):
        for dtype in (F32, I64):
            t = torch.tensor(row).nan_to_num(9).to(dtype) if dtype == I64 else torch.tensor(row)
            for k in range(1, len(row) + 1):
                case("aten::kthvalue", t, k, 0, False)
            case("aten::mode", t, 0, False)
    case("aten::kthvalue", values(F32, (3, 4)), 2, 0, True)
    for end in (5, 5.0, True):
        for dtype in (None, F64, I32, U8, F16):
            case("aten::arange", end, dtype, None, None, None)
            case("aten::arange.start", 1, end, dtype, None, None, None)
            if dtype not in (I32, U8):  # a step of 0 is no error in later versions
                case("aten::arange.start_step", 0, end, 0.5, dtype, None, None, None)
            case("aten::arange.start_step", end, -2, -1, dtype, None, None, None)
    for train, p in ((False, 0.5), (True, 0.0)):
        case("aten::dropout", values(F32, (3, 2)).t(), p, train, strides=True)


def first(*args):
    """Only the first result: what the others hold depends on the way that is taken."""
    case(*args)
    head, sign, results = lines[-1].partition("\t=\t")
    lines[-1] = head + sign + results.split("\t")[0]


if __name__ == "__main__":
    write(sys.argv[1], "library.py", (places, searches, counts, pools, transforms, frames, specials, complexes, scans, rare, matrices,
                                        layouts_and_ties))
