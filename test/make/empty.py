#!/usr/bin/env python3
"""Makes test/data/kernels/empty.txt: products, reductions and windows over nothing, by PyTorch.

Usage: empty.py OUTPUT      (with torch 2.15; ops.py tells the format)

Of what PyTorch refuses only that it is refused is recorded. What later versions changed is told by
the versions' own tables.
"""
import sys

import torch

import ops
from ops import B8, C64, F32, I64, values

LEFT, RIGHT = (2, 0), (0, 3)


def implemented(name, args):
    """Whether the operator takes the dtype of its first argument: of nothing, PyTorch does not ask."""
    op, _ = ops.call(name, args)
    full = values(args[0].dtype, [n or 2 for n in args[0].shape])
    try:
        op(full, *(a for a, formal in zip(args[1:], op._schema.arguments[1:]) if not formal.kwarg_only))
    except (RuntimeError, TypeError, ValueError):
        return False
    return True


def fold(name, *args):
    if implemented(name, args):
        case(name, *args)


def case(name, *args):
    """As ops.case, without the words of a refusal."""
    count = len(ops.lines)
    try:
        ops.case(name, *args)
    except (TypeError, ValueError) as e:
        if "aten::" in str(e):
            raise  # not these arguments
        ops.lines.append("\t".join([name] + [ops.text(a) for a in args] + ["!", ""]))
    if len(ops.lines) > count and "\t!\t" in ops.lines[-1]:
        ops.lines[-1] = ops.lines[-1].split("\t!\t")[0] + "\t!\t"


def products():
    for dtype in (F32, I64, C64):
        def t(*sizes):
            return values(dtype, sizes)

        for x in ((0,), (2, 0), (3, 2, 0), (0, 3, 0), (2, 1, 3, 0)):
            for bias in (None, t(4)):
                case("aten::linear", t(*x), t(4, 0), bias)
            case("aten::linear", t(*x), t(0, 0), None)
            case("aten::linear", t(*x), t(0), None)
        for x in ((0, 3), (2, 0, 3), (0, 2, 3)):
            case("aten::linear", t(*x), t(4, 3), t(4))
            case("aten::linear", t(*x), t(0, 3), None)
        case("aten::linear", t(3), t(0, 3), t(0))
        case("aten::linear", t(2, 3), t(4, 0), None)
        for m, k, n in ((2, 0, 3), (0, 2, 3), (2, 3, 0), (0, 0, 0), (2, 0, 0)):
            case("aten::mm", t(m, k), t(k, n))
            case("aten::matmul", t(m, k), t(k, n))
            case("aten::matmul", t(2, m, k), t(k, n))
            case("aten::matmul", t(0, m, k), t(1, k, n))
            case("aten::matmul", t(m, k), t(3, k, n))
            case("aten::bmm", t(2, m, k), t(2, k, n))
            case("aten::bmm", t(0, m, k), t(0, k, n))
            case("aten::addmm", t(n), t(m, k), t(k, n), 2, 3)
            case("aten::addmm", t(m, n), t(m, k), t(k, n), 1, 1)
            case("aten::addmm", t(m, n), t(m, k), t(k, n), 0, 1)
            case("aten::baddbmm", t(2, m, n), t(2, m, k), t(2, k, n), 2, 1)
            case("aten::addbmm", t(m, n), t(2, m, k), t(2, k, n), 1, 1)
            case("aten::addbmm", t(m, n), t(0, m, k), t(0, k, n), 2, 1)
            case("aten::mv", t(m, k), t(k))
            case("aten::addmv", t(m), t(m, k), t(k), 2, 1)
            case("aten::einsum", "ij,jk->ik", [t(m, k), t(k, n)])
            case("aten::einsum", "bij,bjk->b", [t(2, m, k), t(2, k, n)])
            case("aten::tensordot", t(m, k), t(k, n), [1], [0])
            case("aten::outer", t(m), t(n))
            case("aten::addr", t(m, n), t(m), t(n), 2, 1)
            case("aten::kron", t(m, k), t(k, n))
            if dtype == F32:
                case("aten::cdist", t(m, k), t(n, k), 2.0, None)
                case("aten::cdist", t(2, m, k), t(2, n, k), 1.0, None)
        case("aten::dot", t(0), t(0))
        case("aten::vdot", t(0), t(0))
        case("aten::matmul", t(0), t(0))
        case("aten::matmul", t(0), t(0, 3))
        case("aten::einsum", "i,i->", [t(0), t(0)])
        case("aten::einsum", "ii", [t(0, 0)])
        case("aten::trace", t(0, 3))


def folds():
    for dtype in (F32, I64, B8, C64):
        for size in ((0,), LEFT, RIGHT, (2, 0, 3)):
            t = values(dtype, size)
            for name in ("sum", "mean", "prod"):
                fold("aten::" + name, t, None)
            for name in ("max", "min", "any", "all", "median", "nanmedian", "count_nonzero"):
                fold("aten::" + name, *((t, None) if name == "count_nonzero" else (t,)))
            for name in ("std", "var"):
                fold("aten::" + name, t, True)
            fold("aten::argmax", t, None, False)
            fold("aten::unique_dim", t, 0, True, True, True)
            for dim in range(len(size)):
                for keep in (False, True):
                    for name in ("sum.dim_IntList", "mean.dim"):
                        fold("aten::" + name, t, [dim], keep, None)
                    fold("aten::prod.dim_int", t, dim, keep, None)
                    for name in ("amax", "amin", "logsumexp"):
                        fold("aten::" + name, t, [dim], keep)
                    for name in ("max.dim", "min.dim", "any.dim", "all.dim", "median.dim", "nanmedian.dim", "mode"):
                        fold("aten::" + name, t, dim, keep)
                    fold("aten::argmin", t, dim, keep)
                    fold("aten::var.correction", t, [dim], 1, keep)
                    fold("aten::std.dim", t, [dim], False, keep)
                    fold("aten::kthvalue", t, 1, dim, keep)
                    fold("aten::nansum", t, [dim], keep, None)
                    fold("aten::linalg_vector_norm", t, 2, [dim], keep, None)
                    fold("aten::linalg_vector_norm", t, float("inf"), [dim], keep, None)
                    fold("aten::norm.ScalarOpt_dim", t, 2, [dim], keep)
                fold("aten::cumsum", t, dim, None)
                fold("aten::cumprod", t, dim, None)
                fold("aten::cummax", t, dim)
                fold("aten::logcumsumexp", t, dim)
                fold("aten::sort", t, dim, False)
                fold("aten::topk", t, 0, dim, True, True)
                fold("aten::topk", t, 1, dim, True, True)
                fold("aten::softmax.int", t, dim, None)
                fold("aten::log_softmax.int", t, dim, None)
                fold("aten::flip", t, [dim])
                fold("aten::diff", t, 1, dim, None, None)
                fold("aten::unbind.int", t, dim)
                fold("aten::chunk", t, 2, dim)
                fold("aten::select.int", t, dim, 0)
            fold("aten::aminmax", t, None, False)
            fold("aten::norm.Scalar", t, 2)
            fold("aten::std_mean", t, True)
    for size in ((0,), LEFT, RIGHT):
        fold("aten::quantile.scalar", values(F32, size), 0.5, 0, False, "linear")
        fold("aten::histc", values(F32, size), 3, 0, 1)
        fold("aten::var.correction", values(F32, size), [0], -3, False)
        for dtype in (F32, I64):
            fold("aten::trapz.dx", values(dtype, size), 0.5, 0)
            fold("aten::trapz.x", values(dtype, size), values(dtype, (3,)), 0)
    for weights in (None, values(F32, (0,)), values(I64, (2,))):
        fold("aten::bincount", torch.zeros(0, dtype=I64), weights, 3)
    for name in ("index_copy", "index_add"):
        for size, count in (((3, 4), 2), ((0, 4), 2), ((3, 4), 0)):
            case("aten::" + name, values(F32, size), 0, torch.zeros(0, dtype=I64),
                 values(F32, (count, 4)), *[1] * (name == "index_add"))


def windows():
    for dtype in (F32,):
        def t(*sizes):
            return values(dtype, sizes)

        for x, w, groups in (((0, 2, 5, 5), (3, 2, 3, 3), 1), ((1, 0, 5, 5), (3, 0, 3, 3), 1),
                             ((1, 2, 0, 5), (3, 2, 1, 1), 1), ((1, 2, 5, 5), (0, 2, 3, 3), 1),
                             ((1, 2, 5, 5), (3, 2, 0, 3), 1), ((1, 2, 2, 2), (3, 2, 3, 3), 1),
                             ((2, 0, 4, 4), (0, 0, 3, 3), 1)):
            for bias in (None, t(w[0])):
                case("aten::conv2d", t(*x), t(*w), bias, [1, 1], [0, 0], [1, 1], groups)
                case("aten::conv1d", t(*x[:3]), t(*w[:3]), bias, [1], [0], [1], groups)
                case("aten::conv3d", t(*x, 5), t(*w, 2), bias, [1] * 3, [0] * 3, [1] * 3, groups)
            case("aten::conv_transpose2d.input", t(*x), t(x[1], w[0], *w[2:]), None, [1, 1], [0, 0],
                 [0, 0], 1, [1, 1])
        for x in ((0, 2, 4, 4), (2, 0, 4, 4), (1, 2, 0, 4), (0, 4, 4), (2, 0, 4)):
            case("aten::max_pool2d", t(*x), [2, 2], [], [0, 0], [1, 1], False)
            case("aten::avg_pool2d", t(*x), [2, 2], [], [0, 0], False, True, None)
            for to in ([2, 2], [0, 2], [1, 1]):
                case("aten::adaptive_avg_pool2d", t(*x), to)
                case("aten::adaptive_max_pool2d", t(*x), to)
            for name in ("reflection", "replication"):
                case("aten::%s_pad2d" % name, t(*x), [1, 1, 1, 1])
                if len(x) == 3:
                    case("aten::%s_pad1d" % name, t(*x), [1, 1])
                else:
                    case("aten::%s_pad3d" % name, t(*x, 3), [1] * 6)
            case("aten::pad", t(*x), [1, 1, 1, 1], "circular", None)
            if len(x) == 3:
                case("aten::adaptive_avg_pool1d", t(*x), [2])
                case("aten::adaptive_avg_pool1d", t(*x), [1])
                case("aten::adaptive_max_pool1d", t(*x), [2])
            else:
                case("aten::adaptive_avg_pool3d", t(*x, 3), [2, 2, 2])
                case("aten::adaptive_avg_pool3d", t(*x, 3), [1, 1, 1])
                case("aten::adaptive_max_pool3d", t(*x, 3), [1, 1, 1])
            case("aten::upsample_nearest2d", t(*x), [3, 3], None, None)
            case("aten::upsample_bilinear2d", t(*x), [3, 3], False, None, None)
            case("aten::constant_pad_nd", t(*x), [1, 1], 1.5)
            case("aten::im2col", t(*x), [2, 2], [1, 1], [0, 0], [1, 1])
            case("aten::pixel_shuffle", t(*x), 2)
            case("aten::pixel_unshuffle", t(*x), 2)
        for x in ((0, 3, 4), (2, 0, 4), (2, 3, 0)):
            c = x[1]
            for training in (False, True):
                case("aten::batch_norm", t(*x), t(c), t(c), t(c), t(c).abs() + 1, training, 0.1, 1e-5, False)
                case("aten::native_batch_norm", t(*x), None, None, t(c), t(c).abs() + 1, training, 0.1, 1e-5)
            case("aten::batch_norm", t(*x), None, None, t(9), None, True, 0.1, 1e-5, False)
            case("aten::group_norm", t(*x), 1, t(c), t(c), 1e-5, False)
            case("aten::batch_norm", t(*x), None, None, None, None, True, 0.1, 1e-5, False)
            case("aten::layer_norm", t(*x), [x[2]], t(x[2]), t(x[2]), 1e-5, False)
            case("aten::layer_norm", t(*x), list(x[1:]), None, None, 1e-5, False)
            case("aten::native_layer_norm", t(*x), [x[2]], None, None, 1e-5)
            case("aten::native_layer_norm", t(*x), list(x[1:]), None, t(*x[1:]), 1e-5)
            case("aten::instance_norm", t(*x), None, None, None, None, True, 0.1, 1e-5, False)
            case("aten::rms_norm", t(*x), [x[2]], None, 1e-5)
            case("aten::glu", t(*x[:2], 2 * x[2]), -1)


def states():
    for dtype in (F32,):
        def t(*sizes):
            return values(dtype, sizes)

        for b, l, s, e, v in ((0, 2, 3, 4, 5), (2, 0, 3, 4, 5), (2, 2, 0, 4, 5), (2, 2, 3, 0, 5),
                              (2, 2, 3, 4, 0), (2, 2, 0, 0, 5)):
            for causal in (False, True):
                case("aten::scaled_dot_product_attention", t(b, l, e), t(b, s, e), t(b, s, v), None,
                     0.0, causal, None, False)
            case("aten::scaled_dot_product_attention", t(1, b, l, e), t(1, b, s, e), t(1, b, s, v),
                 t(l, s), 0.0, False, 0.5, False)
        for steps, batch, n, h in ((3, 2, 0, 4), (3, 0, 2, 4), (0, 2, 2, 4), (2, 2, 2, 0), (2, 2, 3, 2)):
            for gates, name in ((3, "gru"), (1, "rnn_tanh"), (4, "lstm")):
                w = [t(gates * h, n), t(gates * h, h), t(gates * h), t(gates * h)]
                state = [t(1, batch, h), t(1, batch, h)] if gates == 4 else t(1, batch, h)
                case("aten::%s.input" % name, t(steps, batch, n), state, w, True, 1, 0.0, False, False,
                     False)
                for i in range(4):  # weights that do not fit
                    bad = [t(0, *u.shape[1:]) if k == i else u for k, u in enumerate(w)]
                    if min(steps, batch, n, h):
                        case("aten::%s.input" % name, t(steps, batch, n), state, bad, True, 1, 0.0, False,
                             False, False)
            case("aten::gru_cell", t(batch, n), t(batch, h), t(3 * h, n), t(3 * h, h), t(3 * h), t(3 * h))
            case("aten::lstm_cell", t(batch, n), [t(batch, h), t(batch, h)], t(4 * h, n), t(4 * h, h),
                 t(4 * h), None)
            case("aten::rnn_relu_cell", t(batch, n), t(batch, h), t(h, n), t(h, h), None, None)
        for projection in (t(2, 4), t(2, 3), t(0, 4)):
            case("aten::lstm.input", t(2, 2, 3), [t(1, 2, 2), t(1, 2, 4)],
                 [t(16, 3), t(16, 2), projection], False, 1, 0.0, False, False, False)
        for size in ((0,), LEFT, RIGHT):
            for how in (0, 1, 2):
                for name in ("mse_loss", "l1_loss", "binary_cross_entropy_with_logits"):
                    more = (None, None) if "binary" in name else ()
                    case("aten::" + name, t(*size), t(*size), *more, how)
        for how in (0, 1, 2):
            for n in (0, 3):
                case("aten::nll_loss", t(0, n), torch.zeros(0, dtype=I64), None, how, -100)
                case("aten::cross_entropy_loss", t(0, n), torch.zeros(0, dtype=I64), None, how, -100, 0.0)
        case("aten::cosine_similarity", t(2, 0), t(2, 0), 1, 1e-8)
        case("aten::cosine_similarity", t(0, 2), t(0, 2), 1, 1e-8)
        case("aten::pairwise_distance", t(2, 0), t(2, 0), 2, 1e-6, False)
        case("aten::embedding", t(3, 0), torch.tensor([1, 2]), -1, False, False)
        case("aten::embedding", t(3, 2), torch.zeros(0, dtype=I64), -1, False, False)
        for size in ((0, 0), (2, 0, 0), (0, 2, 2)):
            for name in ("linalg_det", "linalg_inv", "linalg_slogdet"):
                case("aten::" + name, t(*size))
            case("aten::linalg_cholesky", t(*size), False)
            case("aten::linalg_solve", t(*size), t(*size), True)
            case("aten::matrix_exp", t(*size))
            case("aten::tril", t(*size), 0)
            case("aten::diagonal", t(*size), 0, -2, -1)


if __name__ == "__main__":
    ops.write(sys.argv[1], "empty.py", (products, folds, windows, states))
