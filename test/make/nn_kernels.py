#!/usr/bin/env python3
"""Makes test/data/kernels/nn.txt: arguments and results of neural network operators, by PyTorch.

Usage: nn_kernels.py OUTPUT      (with torch 1.13)

A case is `case KERNEL`, its `arg` lines, then `out` lines with a tolerance, or `error WORDS`;
`after I` lines tell what argument I holds then.
  T DTYPE SIZES STRIDES : the storage's elements     a tensor
  I n, F x, B 0|1, N, S text                         a number, bool, None, string
  L n...                                             int[]
  TL k                                               Tensor[]: the k tensors that follow
"""
import sys

import torch

DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.int64: "i64",
          torch.int32: "i32", torch.bool: "b8"}
# Absolute and relative.
TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-13, torch.bfloat16: 1.6e-2}
lines = []
torch.manual_seed(20)


def tensor_text(t):
    span = 0 if t.numel() == 0 else 1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))
    flat = torch.as_strided(t, (span,), (1,), t.storage_offset())
    wide = flat.double() if t.is_floating_point() else flat
    sizes = ",".join(map(str, t.shape)) or "-"
    strides = ",".join(map(str, t.stride())) or "-"
    values = " ".join("%.9g" % v if t.dtype != torch.float64 and t.is_floating_point() else
                      repr(v) if t.is_floating_point() else str(int(v)) for v in wide.tolist())
    return "T %s %s %s : %s" % (DTYPES[t.dtype], sizes, strides, values)


def put_args(args):
    for a in args:
        if isinstance(a, torch.Tensor):
            lines.append("arg " + tensor_text(a))
        elif isinstance(a, torch.dtype):
            lines.append("arg I %d" % SCALAR_TYPES[a])
        elif isinstance(a, bool):
            lines.append("arg B %d" % a)
        elif isinstance(a, int):
            lines.append("arg I %d" % a)
        elif isinstance(a, float):
            lines.append("arg F %r" % a)
        elif isinstance(a, str):
            lines.append("arg S " + a)
        elif a is None:
            lines.append("arg N")
        elif a and isinstance(a[0], torch.Tensor):
            lines.append("arg TL %d" % len(a))
            put_args(a)
        else:
            lines.append("arg L " + " ".join(map(str, a)))


def case(kernel, args, op=None, tolerance=1.0, after=False):
    """Runs torch.ops.aten.<op>; tolerance multiplies the dtype's."""
    call = getattr(torch.ops.aten, op or kernel)
    lines.append("case " + kernel)
    put_args(args)
    outs = call(*args)
    for o in outs if isinstance(outs, (tuple, list)) else [outs]:
        t = TOLERANCE.get(o.dtype, 0) * tolerance
        lines.append("out %g %s" % (t, tensor_text(o.contiguous())))
    for i in (3, 4) if after else ():
        t = TOLERANCE[args[i].dtype] * tolerance
        lines.append("after %d %g %s" % (i, t, tensor_text(args[i])))


def error(kernel, args, words, op=None):
    lines.append("case " + kernel)
    put_args(args)
    try:
        getattr(torch.ops.aten, op or kernel)(*args)
    except (RuntimeError, IndexError, ValueError) as e:
        assert words in str(e), str(e)
    else:
        raise SystemExit("%s does not fail" % kernel)
    lines.append("error " + words)


def r(*sizes, dtype=torch.float32):
    return torch.randn(*sizes, dtype=torch.float64).to(dtype)


def strided(*sizes, dtype=torch.float32):
    """The same shape in the memory order of its transposed."""
    return r(*reversed(sizes), dtype=dtype).permute(*reversed(range(len(sizes))))


def cells():
    for kernel, gates in (("gru_cell", 3), ("lstm_cell", 4), ("rnn_tanh_cell", 1),
                          ("rnn_relu_cell", 1)):
        def args(b, i, h, make, dtype, bias):
            hx = make(b, h, dtype=dtype)
            if kernel == "lstm_cell":
                hx = [hx, make(b, h, dtype=dtype)]
            n = gates * h
            return [make(b, i, dtype=dtype), hx, make(n, i, dtype=dtype), make(n, h, dtype=dtype)] \
                + ([r(n, dtype=dtype), r(n, dtype=dtype)] if bias else [None, None])
        case(kernel, args(2, 3, 5, r, torch.float32, True), tolerance=4)
        case(kernel, args(6, 4, 3, strided, torch.float64, False), tolerance=4)
        case(kernel, args(2, 2, 2, r, torch.bfloat16, True), tolerance=4)
        case(kernel, args(0, 3, 2, r, torch.float32, True))
        case(kernel, args(2, 0, 3, r, torch.float32, True), tolerance=4)
    error("gru_cell", [r(2, 3), r(2, 2), r(6, 4), r(6, 2), None, None],
          "input has inconsistent input_size: got 3 expected 4")
    error("gru_cell", [r(2, 3), r(3, 2), r(6, 3), r(6, 2), None, None],
          "Input batch size 2 doesn't match hidden0 batch size 3")
    error("lstm_cell", [r(2, 3), [r(2, 2), r(2, 3)], r(8, 3), r(8, 2), None, None],
          "hidden0 has inconsistent hidden_size: got 3, expected 2")
    error("lstm_cell", [r(2, 3), [r(2, 2)], r(8, 3), r(8, 2), None, None],
          "lstm_cell expects two hidden states")


def norms():
    case("layer_norm", [r(3, 7), [7], r(7), r(7), 1e-5, True])
    case("layer_norm", [strided(3, 2, 5), [2, 5], r(2, 5), None, 1e-3, True])
    case("layer_norm", [r(2, 70, dtype=torch.float64), [70], None, r(70, dtype=torch.float64), 1e-5,
                        True])
    case("layer_norm", [r(2, 4, dtype=torch.bfloat16), [4], None, None, 1e-5, True])
    case("layer_norm", [r(0, 4), [4], r(4), r(4), 1e-5, True])
    case("native_layer_norm", [strided(3, 4), [4], strided(4), r(4), 1e-5])
    case("native_layer_norm", [r(2, 1, 3, dtype=torch.float64), [1, 3], None, None, 0.1])
    error("layer_norm", [r(2, 3), [4], None, None, 1e-5, True],
          "Given normalized_shape=[4], expected input with shape [*, 4], but got input of size[2, 3]")
    error("layer_norm", [r(2, 3), [], None, None, 1e-5, True],
          "Expected normalized_shape to be at least 1-dimensional")
    error("layer_norm", [r(2, 3), [3], r(2), None, 1e-5, True],
          "Expected weight to be of same shape as normalized_shape, but got weight of shape [2]")
    error("layer_norm", [torch.ones(2, 3, dtype=torch.int64), [3], None, None, 1e-5, True],
          "not implemented for 'Long'")


def softmaxes():
    inf = torch.tensor([[1.0, float("inf"), 0.0], [-float("inf"), 2.0, 3.0]])
    for kernel in ("softmax", "log_softmax"):
        case(kernel, [r(3, 5), 1, None])
        case(kernel, [strided(2, 3, 4), 1, None])
        case(kernel, [r(2, 3, 2, dtype=torch.float64), 0, None])
        case(kernel, [r(2, 67) * 40, -1, None], tolerance=4)
        case(kernel, [r(3, 3, dtype=torch.bfloat16), 0, None])
        case(kernel, [torch.tensor(3.0), 0, None])
        case(kernel, [r(0, 3), 1, None])
        case(kernel, [r(3, 0), 1, None])
        case(kernel, [torch.tensor([[1, 2], [5, 3]]), 1, torch.float64], tolerance=1)
        case(kernel, [inf, 1, None])
        error(kernel, [r(2, 2), 2, None],
              "Dimension out of range (expected to be in range of [-2, 1], but got 2)")
        error(kernel, [torch.ones(2, dtype=torch.int64), 0, None], "not implemented for 'Long'")
        case("_" + kernel, [r(2, 3), 0, False])


def others():
    i = torch.tensor
    case("dropout", [r(2, 3), 0.5, False])
    case("dropout", [strided(2, 3), 0.0, True])
    case("dropout", [r(2, 3), 1.0, True])
    case("dropout_", [r(2, 3), 1.0, True])
    error("dropout", [r(2), 1.5, False],
          "dropout probability has to be between 0 and 1, but got 1.5")
    case("embedding", [r(4, 3), i([[0, 3], [2, 2]]), -1, False, False])
    case("embedding", [strided(4, 3, dtype=torch.float64), i([1, 3, 0], dtype=torch.int32), -1,
                       False, False])
    case("embedding", [r(4, 3), i(2), -1, False, False])
    case("embedding", [r(4, 3), i([], dtype=torch.int64), -1, False, False])
    case("embedding", [torch.arange(6).view(3, 2), i([[0, 1], [2, 1]]).t(), -1, False, False])
    error("embedding", [r(4, 3), i([4]), -1, False, False], "index out of range in self")
    error("embedding", [r(4), i([0]), -1, False, False], "'weight' must be 2-D")
    error("embedding", [r(4, 3), r(2), -1, False, False],
          "to have one of the following scalar types: Long, Int; but got")
    case("one_hot", [i([[0, 2], [1, 1]]).t(), -1])
    case("one_hot", [i([1, 3]), 5])
    case("one_hot", [i(1), -1])
    case("one_hot", [torch.zeros(0, 2, dtype=torch.int64), 3])
    error("one_hot", [i([-1]), -1], "Class values must be non-negative.")
    error("one_hot", [i([3]), 2], "Class values must be smaller than num_classes.")
    error("one_hot", [i([1.0]), 2], "one_hot is only applicable to index tensor")


def batch_norms():
    def stats(n, dtype=torch.float32):
        return [r(n, dtype=dtype), r(n, dtype=dtype), r(n, dtype=dtype), r(n, dtype=dtype).abs()]
    def none(n, dtype=None):
        return [None] * 4
    for make, dtype, s in ((r, torch.float32, stats), (strided, torch.float64, stats),
                           (r, torch.float32, none)):
        for shape in ((3, 4), (2, 3, 5), (2, 2, 2, 3)):
            for training in (False, True):
                if s is none and not training:
                    continue
                # Updates of the running statistics are seen as `after` lines.
                args = [make(*shape, dtype=dtype)] + s(shape[1], dtype) + [training, 0.3, 1e-4]
                case("batch_norm", args + [False], tolerance=4, after=s is stats)
                if len(shape) == 3:
                    case("native_batch_norm", args, tolerance=4)
                    case("instance_norm", args + [False], tolerance=4, after=s is stats)
    case("batch_norm", [r(0, 3, 2)] + stats(3) + [False, 0.1, 1e-5, False])
    error("batch_norm", [r(2, 3), None, None, None, None, False, 0.1, 1e-5, False],
          "running_mean must be defined in evaluation mode")
    error("batch_norm", [r(2, 3)] + stats(4) + [True, 0.1, 1e-5, False],
          "running_mean should contain 3 elements not 4")
    case("group_norm", [r(2, 4, 3), 2, r(4), r(4), 1e-5, False], tolerance=4)
    case("group_norm", [strided(2, 6, 2, 2, dtype=torch.float64), 3, None, None, 1e-2, False],
         tolerance=4)
    case("group_norm", [r(3, 4), 2, r(4), r(4), 1e-5, False], tolerance=4)
    case("group_norm", [r(0, 4, 3), 2, r(4), r(4), 1e-5, False])
    error("group_norm", [r(2, 4), 3, None, None, 1e-5, False],
          "Expected number of channels in input to be divisible by num_groups, but got input of "
          "shape [2, 4] and num_groups=3")
    error("group_norm", [r(2, 4), 2, r(3), None, 1e-5, False],
          "Expected weight to be a vector of size equal to the number of channels in input, but got "
          "weight of shape [3] and input of shape [2, 4]")


def losses():
    i = torch.tensor
    for reduction in (0, 1, 2):
        a, b = strided(3, 4) * 2, r(3, 4)
        case("mse_loss", [a, b, reduction], tolerance=4)
        case("l1_loss", [a, b, reduction], tolerance=4)
        case("smooth_l1_loss", [a, b, reduction, 0.7], tolerance=4)
        case("huber_loss", [a, b, reduction, 1.3], tolerance=4)
        p, y = torch.rand(3, 4, dtype=torch.float64), torch.rand(3, 4, dtype=torch.float64)
        case("binary_cross_entropy", [p, y, None, reduction], tolerance=4)
        case("binary_cross_entropy", [torch.tensor([0.0, 1.0, 0.5]), torch.tensor([1.0, 1.0, 0.0]),
                                      torch.tensor([1.0, 2.0, 3.0]), reduction], tolerance=4)
        case("binary_cross_entropy_with_logits", [a * 5, y.float(), r(4).abs(), r(4).abs(),
                                                  reduction], tolerance=4)
        for w in (None, r(4).abs()):
            t = i([1, 3, -100])
            case("nll_loss", [strided(3, 4), t, w, reduction, -100], "nll_loss_nd", tolerance=4)
            case("nll_loss_forward", [r(3, 4), t.clamp(min=0), w, reduction, 0], tolerance=4)
            case("cross_entropy_loss", [r(3, 4), t, w, reduction, -100, 0.0], tolerance=4)
            case("cross_entropy_loss", [r(3, 4), t, w, reduction, -100, 0.2], tolerance=8)
            case("cross_entropy_loss", [r(3, 4), torch.rand(3, 4), w, reduction, -100, 0.1],
                 tolerance=8)
            case("cross_entropy_loss", [strided(2, 4, 3), i([[0, 1, 2], [3, 3, 1]]), w, reduction, -100,
                                        0.0], tolerance=4)
    case("mse_loss", [r(0), r(0), 1])
    case("nll_loss", [r(4), i(2), None, 1, -100], "nll_loss_nd")
    error("nll_loss", [r(2, 3), i([0, 3]), None, 1, -100], "Target 3 is out of bounds.")
    error("cross_entropy_loss", [r(2, 3), i([0, 3, 1]), None, 1, -100, 0.0],
          "Expected input batch_size (2) to match target batch_size (3).", "cross_entropy_loss")
    error("binary_cross_entropy", [r(3) + 9, torch.rand(3), None, 1],
          "all elements of input should be between 0 and 1")


def convolutions():
    f64 = torch.float64
    case("conv1d", [r(2, 3, 7), r(4, 3, 3), r(4), [2], [1], [1], 1], tolerance=8)
    case("conv1d", [r(3, 7), r(4, 3, 3), None, [1], [0], [2], 1], tolerance=8)
    case("conv1d", [r(1, 2, 6, dtype=f64), r(2, 2, 4, dtype=f64), None, [1], "same", [1], 1],
         tolerance=8)
    case("conv1d", [r(1, 2, 6), r(2, 2, 3), None, [1], "valid", [1], 1], tolerance=8)
    case("conv2d", [strided(2, 4, 5, 4), strided(6, 2, 3, 2), r(6), [1, 2], [1, 0], [1, 1], 2],
         tolerance=8)
    case("conv2d", [r(1, 3, 4, 4, dtype=f64), r(3, 1, 2, 2, dtype=f64), None, [1, 1], [2, 1], [2, 1],
                    3], tolerance=8)
    case("conv2d", [r(0, 2, 4, 4), r(3, 2, 3, 3), r(3), [1, 1], [1, 1], [1, 1], 1])
    case("conv3d", [r(1, 2, 3, 3, 3), r(2, 2, 2, 2, 2), r(2), [1, 1, 1], [1, 0, 1], [1, 1, 1], 1],
         tolerance=8)
    case("conv_transpose1d", [r(2, 4, 3), r(4, 2, 3), r(4), [2], [1], [1], 2, [1]], tolerance=8)
    case("conv_transpose2d", [strided(1, 2, 3, 2), r(2, 3, 2, 3), None, [2, 1], [0, 1], [1, 0], 1,
                              [1, 2]], tolerance=8)
    case("convolution", [r(1, 2, 4, 4), r(3, 2, 3, 3), r(3), [1, 1], [1, 1], [1, 1], False, [0, 0], 1],
         tolerance=8)
    case("convolution", [r(1, 2, 4), r(2, 3, 3), r(3), [2], [1], [1], True, [1], 1], tolerance=8)
    error("conv2d", [r(1, 3, 4, 4), r(2, 2, 3, 3), None, [1, 1], [0, 0], [1, 1], 1],
          "Given groups=1, weight of size [2, 2, 3, 3], expected input[1, 3, 4, 4] to have 2 "
          "channels, but got 3 channels instead")
    error("conv2d", [r(1, 2, 2, 4), r(2, 2, 3, 3), None, [1, 1], [0, 0], [1, 1], 1],
          "Kernel size can't be greater than actual input size")
    error("conv2d", [r(4, 4), r(2, 2, 3, 3), None, [1, 1], [0, 0], [1, 1], 1],
          "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [4, 4]")


def pools():
    for args in ([[2, 2], [], [0, 0], [1, 1], False], [[3, 2], [2, 1], [1, 0], [1, 2], True],
                 [[3], [2], [1], [1], False]):
        case("max_pool2d", [strided(2, 2, 5, 6)] + args)
        case("max_pool2d_with_indices", [r(2, 5, 5, dtype=torch.float64)] + args)
    nan = r(1, 3, 3)
    nan[0, 1, 1] = float("nan")
    case("max_pool2d", [nan, [2, 2], [1, 1], [0, 0], [1, 1], False])
    for ceil in (False, True):
        for count in (False, True):
            case("avg_pool2d", [strided(2, 2, 5, 6), [3, 2], [2, 2], [1, 1], ceil, count, None])
    case("avg_pool2d", [r(2, 5, 4, dtype=torch.float64), [2, 2], [], [0, 0], False, True, 3])
    case("avg_pool2d", [r(0, 2, 4, 4), [2, 2], [], [0, 0], False, True, None])
    case("adaptive_avg_pool2d", [strided(2, 3, 5, 7), [2, 3]])
    case("adaptive_avg_pool2d", [r(3, 2, 2, dtype=torch.float64), [3, 1]])
    error("max_pool2d", [r(1, 3, 3), [2, 2], [], [2, 2], [1, 1], False],
          "pad should be at most half of kernel size")
    error("avg_pool2d", [r(1, 3, 3), [2, 2], [], [0, 0], False, True, 0], "divisor must be not zero")


SCALAR_TYPES = {torch.float64: 7}


def main():
    cells()
    norms()
    softmaxes()
    others()
    batch_norms()
    losses()
    convolutions()
    pools()
    with open(sys.argv[1], "w", encoding="ascii") as f:
        f.write("# Made by test/make/nn_kernels.py with PyTorch %s.\n" % torch.__version__.split("+")[0])
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
