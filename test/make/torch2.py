#!/usr/bin/env python3
"""Makes test/data/kernels/torch2.txt: operators of later versions, and corner cases, by PyTorch.

Usage: torch2.py OUTPUT      (with torch 2.15; ops.py tells the format)
"""
import sys

import torch

from ops import (B8, BF16, C64, C128, CODES, F16, F32, F64, I64, INF, NAN, U8, case, lines, rng, text,
                 values, write)


def ties():
    """Where equal elements end, below and above the lengths at which algorithms change."""
    for n in (5, 16, 17, 40, 300):
        for t in (torch.tensor([float(rng.randrange(6)) for _ in range(n)]),
                  torch.tensor([rng.randrange(3) for _ in range(n)]), values(B8, (n,))):
            for down in (False, True):
                case("aten::sort", t, 0, down)
                case("aten::argsort", t, 0, down)
                case("aten::sort.stable", t, None, 0, down)
                case("aten::sort.stable", t, True, 0, down)
            if t.dtype != B8:
                for k in (1, n // 64, n // 3, n):
                    case("aten::topk", t, k, 0, True, True)
                    case("aten::topk", t, k, 0, False, False)
    gaps = torch.tensor([float(rng.randrange(4)) for _ in range(40)])
    gaps[::7] = NAN
    case("aten::topk", gaps, 9, 0, True, True)
    case("aten::topk", gaps, 9, 0, False, True)
    case("aten::sort", gaps, 0, True)
    case("aten::sort", torch.tensor([[2.0], [1.0]]).expand(2, 20), 1, False)
    order = torch.arange(200)
    for t in (order, 199 - order, order % 2, (order - 100).abs(), (order * 77) % 200):
        case("aten::topk", t, 50, 0, False, True)
    cube = torch.tensor([[[float(rng.randrange(2)) for _ in range(4)] for _ in range(3)] for _ in range(2)])
    for dim in (0, 1, 2, -1):
        case("aten::unique_dim", cube, dim, True, True, True)


def corners():
    x, y = values(B8, (2,)), values(B8, (3,))
    for base in (values(B8, (2, 3)), values(B8, (3,)), torch.tensor(True)):
        for beta, alpha in ((3, 2), (0, 1), (1, 0)):
            case("aten::addr", base, x, y, beta, alpha)
    for weight in (torch.tensor([0.5]), torch.tensor(0.5)):
        case("aten::prelu", torch.tensor(-3.0), weight)
    none = torch.zeros(0)
    for training in (False, True):
        case("aten::batch_norm", none, None, None, none, none, training, 0.1, 1e-5, False)
    tail = [None, None, None]
    for ends in ((4.3, 0, 3), (0, 4.9, 4), (-2.7, 7.2, 5), (0.5, 9.9, 7)):
        for dtype in (I64, torch.int32, BF16, F16, F32):
            case("aten::linspace", *ends, dtype, *tail)
            case("aten::logspace", *ends, 2.0, dtype, *tail)
    case("aten::logspace", 4.3, 0, 2, 5.0, I64, *tail)
    for code, dtype in (23, torch.float8_e5m2), (24, torch.float8_e4m3fn):
        CODES[dtype] = code
        case("aten::arange", 3, dtype, *tail)
        case("aten::arange.start_step", 3, 0, -1.5, dtype, *tail)
        case("aten::range", 0, 3, dtype, *tail)
        case("aten::linspace", 0, 3, 4, dtype, *tail)
        case("aten::linspace.Tensor_Scalar", torch.tensor(1), 3, 4, dtype, *tail)
        case("aten::logspace", 0, 3, 4, 2.0, dtype, *tail)
    case("aten::arange.start_step", 5, 0, -0.5, I64, *tail)
    case("aten::arange.start_step", 5, 0, 0, I64, *tail)
    t = torch.tensor([[1.0, NAN, 0.0], [0.0, -0.0, 5.0]])
    for u in (t, t.half(), t.to(BF16), t.double(), t.to(C64)):
        case("aten::linalg_vector_norm", u, 0, None, False, None)
        case("aten::norm.ScalarOpt_dim", u, 0, [1], True)
    for a, b in ((torch.zeros(0, 5), 2), (torch.zeros(5, 0), 2), (torch.zeros(2, 0, 3), 2)):
        case("aten::linalg_norm", a, b, [-2, -1], True, None)
        case("aten::linalg_norm", a, -b, [-2, -1], False, None, says="to have non-zero size.")
    t = values(F32, (2, 3))
    for dim, index in ((1, [[-1, 0], [2, 5]]), (0, [[-3, 1, 0]]), (None, [0, 5])):
        case("aten::take_along_dim", t, torch.tensor(index), dim)
    case("aten::take_along_dim", t, torch.tensor([-1]), None)
    for dtype in (F16, BF16, F32, I64):
        t = values(dtype, (5, 4))
        case("aten::gradient.array", t, [0, 1], 1)
        case("aten::gradient.scalarint", t, None, 0, 2)
    for z in (torch.tensor([1 + 2j, -3 + 0.5j, 0j, 20 - 1j]), torch.tensor(2j, dtype=C128)):
        case("aten::silu", z)
    for size, left in (((2, 5), False), ((4, 2), True), ((2, 4, 3), True), ((3, 3), False)):
        a, tau = torch.geqrf(values(F64, size))
        other = values(F64, size[:-2] + ((size[-2], 2) if left else (2, size[-2])))
        for transpose in (False, True):
            case("aten::ormqr", a, tau, other, left, transpose)
    case("aten::ormqr", torch.zeros(0, 2), torch.zeros(0), torch.zeros(2, 0), False, True)


def copies():
    t, cube = values(F32, (3, 4)).t(), values(I64, (2, 1, 3))
    for u in (t, values(C64, (3, 4))):
        for name, *args in (("alias_copy",), ("detach_copy",), ("t_copy",), ("_reshape_copy", [2, -1]),
                            ("as_strided_copy", [2, 2], [1, 2], 1),
                            ("diagonal_copy", 1), ("diagonal_copy", 0, 1, 0), ("narrow_copy", 0, 1, 2),
                            ("permute_copy", [1, 0]), ("select_copy.int", 1, -1),
                            ("slice_copy.Tensor", 0, 1, None, 2), ("transpose_copy.int", 0, 1),
                            ("unfold_copy", 0, 2, 1), ("unsqueeze_copy", 1),
                            ("split_copy.Tensor", 2, 0), ("split_with_sizes_copy", [1, 2], 1),
                            ("unbind_copy.int", 1)):
            if name.startswith("split_with") and u.shape[1] != 3:
                args = [[1, 3], 1]
            case("aten::" + name, u.clone() if u is not t else u, *args, strides=True)
    wide, two = torch.arange(24.0).reshape(4, 6), -torch.arange(1.0, 5).reshape(2, 2)
    for own in (wide[:, ::2], wide[:2].t(), wide[0].expand(3, 6)):  # places are the storage's
        for offset in (None, 0, 2):
            case("aten::as_strided_scatter", own, two, [2, 2], [1, 2], offset)
    for name, *args in (("squeeze_copy",), ("squeeze_copy.dim", 1), ("squeeze_copy.dims", [0, 1]),
                        ("expand_copy", [2, 4, 3]), ("view_copy", [3, 2])):
        case("aten::" + name, cube, *args, strides=True)
    case("aten::_conj_copy", values(C64, (2, 2)).t(), strides=True)
    case("aten::view_as_real_copy", values(C64, (2, 2)), strides=True)
    case("aten::view_as_complex_copy", values(F32, (3, 2)), strides=True)
    case("aten::view_copy", t, [12], strides=True)
    for layout in ([0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 0, 1]):
        size = [2, 3, 4]
        if sorted(layout) == [0, 1, 2]:
            zeros = torch.empty_permuted(size, layout).zero_()
            lines.append("\t".join(["aten::empty_permuted"] + [text(v) for v in (size, layout)] +
                                   ["N"] * 4 + ["=", text(zeros)]))
        else:
            case("aten::empty_permuted", size, layout, None, None, None, None, says="Duplicate dim not allowed")


def functions():
    """Bessel's, Airy's and polynomials, at their borders."""
    x = torch.tensor([-30.0, -9.0, -7.5, -3.0, -1.0, -0.25, 0, 0.25, 1.0, 1.9, 2.0, 2.1, 3.5, 8.0, 40.0,
                      104.0, INF, -INF, NAN])
    for name in ("airy_ai", "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0",
                 "scaled_modified_bessel_k1"):
        for t in (x, x.double(), torch.tensor([0, 1, 5]), torch.tensor([True, False]),
                  torch.zeros(0, 2), torch.tensor([0.5], dtype=BF16)):
            case("aten::special_" + name, t)
    degrees = torch.tensor([-1.0, 0, 1, 2, 3.7, 7, 10])
    places = torch.tensor([-1.5, -1.0, -0.3, 0, 0.5, 1.0, 2.25])[:, None]
    for name in ["chebyshev_polynomial_" + k for k in "tuvw"] + [
            "shifted_chebyshev_polynomial_" + k for k in "tuvw"] + [
                "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
                "legendre_polynomial_p"]:
        name = "aten::special_" + name
        case(name, places, degrees)
        case(name, places.double(), degrees.long())
        case(name, torch.tensor([2, 3]), torch.tensor([4, 5]))
        case(name + ".x_scalar", 0.75, degrees)
        case(name + ".n_scalar", places, 4)
        case(name, places.half(), degrees.half())
    for name in ("hermite_polynomial_h", "hermite_polynomial_he"):
        case("aten::special_%s.n_scalar" % name, torch.tensor([0.5, 2]), 129)


def gradients():
    for dtype in (F32, F64):
        grad, t = values(dtype, (2, 3)), torch.softmax(values(dtype, (2, 3)), 1)
        for dim in (0, 1, -1):
            case("aten::_softmax_backward_data", grad, t, dim, dtype)
            case("aten::_log_softmax_backward_data", grad, t.log(), dim, dtype)
        case("aten::native_dropout_backward", grad, values(B8, (2, 3)), 2.0)
        for size in ((2, 5, 4), (1, 2, 4, 6)):
            x = values(dtype, size)
            for args in (([2, 2], [2, 2], [0, 0], [1, 1], False), ([3, 2], [1, 2], [1, 0], [1, 1], True)):
                y, places = torch.ops.aten.max_pool2d_with_indices(x, *args)
                case("aten::max_pool2d_with_indices_backward", values(dtype, y.shape), x, *args, places)
        x = values(dtype, (3, 2, 2))
        for name in ("_batch_norm_with_update", "_batch_norm_no_update"):
            case("aten::" + name, x, values(dtype, (2,)), None, values(dtype, (2,)),
                 values(dtype, (2,)).abs() + 1, 0.1, 1e-5)
        q, k, v = (values(dtype, (1, 2, n, 4)) for n in (3, 5, 5))
        for causal, mask, scale in ((False, None, None), (True, None, 0.5), (False, values(dtype, (3, 5)), None)):
            case("aten::_scaled_dot_product_flash_attention_for_cpu", q, k, v, 0.0, causal, mask, scale)


def masked():
    x, mask = values(F32, (3, 4)), torch.tensor([True, False, True])
    rows, columns = torch.tensor([0, 9, 2]), torch.tensor([1, 1, -7])
    for indices, hidden in (([rows, columns], mask), ([None, rows], mask), ([rows], mask[:, None])):
        case("aten::_unsafe_masked_index", x, hidden, indices, 7)
    for indices, added in (([rows, columns], values(F32, (3,))), ([rows], values(F32, (3, 4)))):
        hidden = mask if added.dim() == 1 else mask[:, None]
        case("aten::_unsafe_masked_index_put_accumulate", x, hidden, indices, added)
    for tensors, dim, chunks in (([values(F32, (3, 2)), values(F32, (4,))], 0, 2),
                                 ([values(I64, (2, 5)), values(I64, (2, 2, 2))], 1, 3)):
        case("aten::_chunk_cat", tensors, dim, chunks)
    case("aten::_chunk_cat", [], 0, 2, says="_chunk_cat expects a non-empty input tensor list")
    for t in (values(F32, (2, 3)), values(I64, (2, 3)), values(B8, (2, 3)), values(BF16, (2, 3))):
        for dim, keep in (([], False), ([1], True), ([0], False)):
            got = torch.hash_tensor(t, dim, keepdim=keep)
            row = ["aten::hash_tensor", text(t), text(dim), "b%d" % keep, "i0", "="]
            sizes = ",".join(map(str, got.shape)) or "-"
            row += ["T:u64:%s:?:%s" % (sizes, ",".join(map(str, got.view(torch.int64).reshape(-1).tolist())))]
            lines.append("\t".join(row))


def boxes():
    x = values(F32, (6, 2))
    for bins in ([2, 3], [1, 1]):
        for density in (False, True):
            case("aten::histogramdd", x, bins, None, None, density)
            case("aten::histogramdd", x.double(), bins, [-2.0, 2.0, -1.0, 1.5], values(F64, (6,)), density)
    case("aten::histogramdd.int_bins", x.reshape(2, 3, 2), 2)
    case("aten::histogramdd.TensorList_bins", x, [torch.tensor([-3.0, 0, 1]), torch.tensor([-2.0, 2])], None,
         values(F32, (6,)))
    case("aten::histogramdd", x, [2], says="he size of bins must be equal to the innermost")
    case("aten::histogramdd.int_bins", torch.zeros(0, 2), 2)


def factors():
    for dtype in (F64, C128):
        for size in ((1, 1), (3, 3), (2, 5, 5), (0, 0)):
            a = values(dtype, size)
            for hermitian in (False, True):
                b = (a + a.mH) if hermitian else (a + a.mT)
                b = b - torch.diag_embed(torch.diagonal(b, dim1=-2, dim2=-1)) if size[-1] == 3 else b
                case("aten::linalg_ldl_factor_ex", b, hermitian, False)
                case("aten::linalg_ldl_factor", b, hermitian)
                case("aten::linalg_ldl_solve", *torch.linalg.ldl_factor(b, hermitian=hermitian),
                     values(dtype, size[:-1] + (2,)), hermitian)
            h = a @ a.mH
            case("aten::linalg_matrix_sqrth", h)
            tall = torch.cat([a + 3 * torch.eye(size[-1], dtype=dtype), values(dtype, size)], -2)
            case("aten::linalg_polar", tall)
    case("aten::linalg_ldl_factor_ex", torch.zeros(2, 2), False, False)
    case("aten::linalg_matrix_sqrth", torch.tensor([[2.0, 9], [1, -2]]))
    case("aten::linalg_polar", values(F32, (2, 3)))


def sums():
    """Whole numbers that are summed without a product, and poles."""
    for dtype in (U8, I64, F32):
        a, b = values(dtype, (2, 3)), values(dtype, (3,))
        for equation, operands in (("ij->i", [a]), ("ij->ji", [a]), ("ij,j->i", [a, b]), ("ij,k->k", [a, b]),
                                   ("j,j->", [b, b]), ("i,j->", [b, b])):
            case("aten::einsum", equation, operands, None)
        for size in ([], [1, 3], [3]):
            case("aten::sum_to_size", a, size)
        case("aten::sum_to_size", values(dtype, ()), [])
        for ends in ((-1.5, 2), (-0.5, 0.5), (1, 3)):
            case("aten::hardtanh", a, *ends)
    for dtype in (I64, F32, F64, F16):
        case("aten::polygamma", 1, torch.tensor([-7, -1, 0, 1, 3, 40]).to(dtype))
        case("aten::polygamma", 1, torch.tensor([-7.3, -0.5, 0.25, 0.5, 3.75]).to(dtype))


def signs():
    """Vectors as LAPACK turns them."""
    for dtype, sizes in ((F64, (1, 2, 3, 5, 8)), (C128, (2, 4)), (F32, (3, 5))):
        for n in sizes:
            a = values(dtype, (n, n)) + torch.diag(torch.arange(n) / 3).to(dtype)
            for side in "LU":
                case("aten::linalg_eigh", a + a.mH, side)
    for dtype in (F64, F32, C128, C64):
        for size in ((1, 1), (3, 3), (4, 3), (5, 4), (6, 2), (1, 3), (3, 4), (2, 5), (7, 7)):
            a = values(dtype, size)
            for full in (False, True) if size[0] != size[1] else (True,):
                case("aten::linalg_svd", a, full, None)
        a = torch.stack([values(dtype, (3, 2)), torch.ones(3, 2, dtype=dtype)])
        case("aten::linalg_svdvals", a, None)
        case("aten::svd", a[0].mT, True, True)
    for dtype, sizes in ((F64, (1, 2, 3, 4, 6, 9)), (F32, (2, 3, 5))):
        for n in sizes:
            for thin in (False, True):  # the second has values that stand alone, and needs balancing
                a = values(dtype, (n, n))
                if thin:
                    a = torch.triu(a, -1) * (4.0 ** torch.arange(n)).to(dtype) + torch.diag(torch.arange(n)).to(dtype)
                    a[n // 2, :n // 2] = 0
                case("aten::linalg_eig", a)
                case("aten::linalg_eigvals", a)
    case("aten::linalg_svd", torch.tensor([[1.0, NAN], [0, 1]]), True, None, says="linalg.svd: ")


def bytes_resampled():
    """Taps that meet in one place at an edge are one weight before it is rounded."""
    for size, out in (((2, 9), [6, 7]), ((5, 5), [7, 9]), ((7, 2), [8, 7])):
        for align in (False, True):
            case("aten::upsample_bicubic2d", values(U8, (1, 4, *size)) * 31, out, align, None, None)
            case("aten::upsample_bilinear2d", values(U8, (1, 4, *size)) * 31, out, align, None, None)


def labels():
    """Products of two in any order of labels, and of sizes of 1: their strides too."""
    for equation, *sizes in (
            ("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)), ("bhqk,bkhd->bqhd", (2, 2, 3, 5), (2, 5, 2, 4)),
            ("bhqk,bkhd->bqhd", (1, 2, 3, 1), (1, 1, 2, 4)), ("abc,dbc->da", (2, 3, 4), (1, 3, 4)),
            ("abc,dbc->ad", (2, 1, 4), (3, 1, 4)), ("abc,dbc->acd", (2, 3, 1), (4, 3, 2)),
            ("abc,cb->a", (3, 2, 4), (4, 2)), ("dcc,qc->qd", (2, 3, 3), (4, 3)),
            ("...cb,...ac->...ab", (2, 1, 3, 2), (4, 2, 3)), ("b...a,ca->c...b", (2, 3, 4), (2, 4)),
            ("ab,ac->cb", (0, 2), (0, 3)), ("ab,cb->ca", (0, 2), (3, 2)), ("ba,ca->cb", (1, 1), (1, 1)),
            ("ab,bc,cd->da", (2, 3), (3, 4), (4, 2)), ("ab,bc,bd->dca", (2, 3), (1, 4), (3, 2)),
            ("ab,cd->ca", (2, 3), (4, 2)), ("aab,ab->b", (2, 2, 3), (2, 1))):
        case("aten::einsum", equation, [values(F32, size) for size in sizes], None)


def edges():
    """Squares that no float holds, numbers that round to 0, integrals of no samples."""
    huge = torch.tensor(2.0**64)
    for p in (0, 1, 2, 3, INF):
        case("aten::linalg_vector_norm", huge, p, None, False, None)
        case("aten::linalg_vector_norm", huge.expand(2), p, None, False, None)
    case("aten::norm.Scalar", huge, 2)
    t = torch.tensor([0.0, 0.625, -0.75, -2.75])
    for number in (5e-324, 0, 0.5, NAN):
        case("aten::special_xlog1py.self_scalar", number, t)
        case("aten::special_xlog1py.other_scalar", t, number)
    for size in (0, 1, 2):
        y, x = values(F64, (2, 3, size)), values(C128, (2, 3, size))
        case("aten::trapezoid.x", y, x, -1)
        case("aten::cumulative_trapezoid.x", y, x, -1)


if __name__ == "__main__":
    write(sys.argv[1], "torch2.py", (ties, corners, copies, functions, gradients, masked, boxes,
                                    factors, sums, signs, bytes_resampled, labels, edges))
