"""Makes random networks of convolutions with PyTorch 2.x, and what it answers: FOLDER/N for `kiln check`.

    python3 test/make/random_networks.py FOLDER [--seed N] [--count N]
    build/kiln check FOLDER --require-compiled --repeat 4

Windows of pixels and of 3 x 3, dense, dilated, strided, of narrow groups and of single channels, with and without
padding, bias and norm; activations, residuals, concatenations, half of the channels and pixels in another order behind
them; images of four sizes, so that the third level has symbols. Nothing of it is kept in the repository."""
import argparse
import json
import os
import random
import warnings

import torch

EACH = ("nothing", "relu", "relu", "silu", "gelu", "residual", "residual", "join", "half", "turn")


class Network(torch.nn.Module):
    def __init__(self, layers, behind):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)
        self.behind = behind

    def forward(self, x):
        for layer, what in zip(self.layers, self.behind):
            y = layer(x)
            if what in ("relu", "silu", "gelu"):
                y = getattr(torch.nn.functional, what)(y)
            elif what == "residual" and y.shape == x.shape:
                y = torch.relu(y + x)
            elif what == "join":
                y = torch.cat([y, torch.relu(y)], 1)
            elif what == "half":
                y = y.chunk(2, 1)[1]
            elif what == "turn" and y.shape[2] % 2 == 0 and y.shape[3] % 2 == 0:
                n, c, h, w = y.shape
                y = y.reshape(n, c, h // 2, 2, w // 2, 2).permute(0, 1, 3, 2, 5, 4).reshape(n, c, h, w)
            x = y
        return x


def draw_convolution(channels):
    """(outputs, window, step, padding, dilation, groups)"""
    outputs, kind = random.choice([16, 24, 32, 40, 64, 96]), random.random()
    if kind < 0.25:
        return outputs, 1, 1, 0, 1, 1
    if kind < 0.5:
        dilation = random.choice([1, 1, 2, 3, 4])
        return outputs, 3, random.choice([1, 1, 2]) if dilation == 1 else 1, random.choice([dilation, 1, 0]), dilation, 1
    if kind < 0.8:
        each = random.choice([each for each in (2, 4, 8, 16, channels) if channels % each == 0])
        groups = channels // each
        return channels if groups > 1 else outputs, 3, random.choice([1, 1, 2]), random.choice([1, 1, 0, 2]), 1, groups
    window = random.choice([3, 5])
    return channels, window, random.choice([1, 2]), window // 2, 1, channels


def draw_network():
    """The network and its first number of channels."""
    first = channels = random.choice([3, 16, 32, 48, 64])
    layers, behind, size = [], [], 14  # the smallest image
    for _ in range(random.randint(3, 7)):
        outputs, window, step, padding, dilation, groups = draw_convolution(channels)
        what = random.choice(EACH)
        left = (size + 2 * padding - dilation * (window - 1) - 1) // step + 1
        if left < 1 or (what == "join" and outputs > 200) or (what == "half" and outputs % 2):
            continue
        layer = torch.nn.Conv2d(channels, outputs, window, step, padding, dilation, groups, bias=random.random() < 0.6)
        torch.nn.init.kaiming_normal_(layer.weight)
        if random.random() < 0.4:
            norm = torch.nn.BatchNorm2d(outputs)
            norm.running_mean.normal_(0, 0.2), norm.running_var.uniform_(0.5, 2)
            layer = torch.nn.Sequential(layer, norm)
        layers.append(layer), behind.append(what)
        channels, size = {"join": 2 * outputs, "half": outputs // 2}.get(what, outputs), left
    return (Network(layers, behind).eval(), first) if layers else draw_network()


def make(folder):
    network, channels = draw_network()
    sizes = [(random.choice([1, 1, 2]), random.randint(14, 44), random.randint(14, 44))]
    if "turn" not in network.behind:  # a trace has its sizes as numbers
        sizes += [(random.choice([1, 3]), random.randint(14, 52), random.randint(14, 52)) for _ in range(3)]
    inputs = [torch.randn(n, channels, h, w) for n, h, w in sizes]
    with torch.no_grad():
        expected = [network(x) for x in inputs]
    os.makedirs(folder, exist_ok=True)
    torch.jit.trace(network, inputs[0], check_trace=False).save(os.path.join(folder, "model.pt"))
    for i, (x, y) in enumerate(zip(inputs, expected)):
        torch.save((x,), os.path.join(folder, "inputs_%d.pt" % i))
        torch.save(y, os.path.join(folder, "expected_%d.pt" % i))
    largest = max(1.0, *(y.abs().max().item() for y in expected))
    case = {"name": os.path.basename(folder), "category": "random", "producer": "torch " + torch.__version__,
            "method": "forward", "n_cases": len(inputs), "rtol": 1e-4, "atol": 2e-5 * largest, "kind": "trace",
            "stateful": False}
    with open(os.path.join(folder, "case.json"), "w") as file:
        json.dump(case, file)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    random.seed(args.seed), torch.manual_seed(args.seed)
    for i in range(args.count):
        make(os.path.join(args.folder, "%d_%d" % (args.seed, i)))


if __name__ == "__main__":
    main()
