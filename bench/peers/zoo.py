"""zoo.py BUILD NAME... [--other BUILD] [--threads N] [--seconds S] [--rounds R] [--folder FOLDER]

Networks of other people's packages, with random weights, in Kiln, ONNX Runtime and OpenVINO, in one run: what was
never tuned for. A NAME is `timm:swin_tiny_patch4_window7_224` (or without `timm:`), `tv:resnet34` of torchvision,
`hf:bert` of transformers, a kind of model with four layers and 128 tokens, or `FILE.py:function`, which gives a module
and its input. The runtimes take turns as in compare.py; a figure is the median over the rounds. Answers are compared
with PyTorch's first. --other has a second build of Kiln take turns too. It needs compare.py's Python, with timm and
transformers where they are named; files stay in FOLDER (BUILD/bench-models/zoo).
"""
import argparse
import os
import statistics
import sys
import warnings

import compare
import corpus
import page

sys.path.remove(os.path.dirname(os.path.abspath(__file__)))  # kernels.py is no package that transformers looks for
LAYERS = {"num_hidden_layers": 4, "n_layer": 4, "n_layers": 4, "num_layers": 4, "encoder_layers": 4,
          "decoder_layers": 4}


def from_timm(torch, name):
    import timm
    module = timm.create_model(name)
    _, height, width = module.default_cfg["input_size"]
    return module, torch.randn(1, 3, height, width)


def from_torchvision(torch, name):
    import torchvision
    return torchvision.models.get_model(name, weights=None), torch.randn(1, 3, 224, 224)


def from_transformers(torch, name):
    import transformers
    config = transformers.AutoConfig.for_model(name)
    for key in LAYERS.keys() & config.to_dict().keys():
        setattr(config, key, LAYERS[key])
    config.return_dict = False
    config._attn_implementation = "sdpa"
    module = transformers.AutoModel.from_config(config)

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, x):
            found = self.module(x)
            return found[0] if isinstance(found, tuple) else found.to_tuple()[0]

    if module.main_input_name == "pixel_values":
        size = getattr(config, "image_size", 224)
        return First(), torch.randn(1, 3, size, size)
    if module.main_input_name == "input_values":
        return First(), torch.randn(1, 16000)
    return First(), torch.randint(3, 1000, (1, 128))


PACKAGES = {"": from_timm, "timm": from_timm, "tv": from_torchvision, "hf": from_transformers}


def make(torch, name):
    """The module and its input."""
    package, _, kind = name.rpartition(":")
    torch.manual_seed(0)
    if package.endswith(".py"):
        module, x = vars(compare.load_module(package))[kind]()
    else:
        module, x = PACKAGES[package](torch, kind)
    for p in module.parameters():
        if p.is_floating_point() and not p.any():
            torch.nn.init.normal_(p, std=0.02)  # answers of zeros could not be compared
    return module.eval(), x


def prepare(torch, name, folder):
    """NAME.pt, NAME_inputs.pt and NAME.onnx, made once; gives (path, input, PyTorch's answer)."""
    path = os.path.join(folder, os.path.basename(name).replace(":", "_"))
    if not os.path.exists(path + ".pt"):
        module, x = make(torch, name)
        torch.save((x,), path + "_inputs.pt")
        torch.jit.trace(module, x, check_trace=False).save(path + ".pt")
    if not os.path.exists(path + ".onnx"):
        module, _ = make(torch, name)
        loaded = torch.jit.load(path + ".pt")
        module.load_state_dict(loaded.state_dict(), strict=False)
        x = torch.load(path + "_inputs.pt")
        try:
            torch.onnx.export(module, x, path + ".onnx", dynamo=True, external_data=False, verbose=False,
                              input_names=["x0"])
        except Exception:  # the exporter's many kinds: then the other exporter
            torch.onnx.export(loaded, x, path + ".onnx", dynamo=False, opset_version=17, input_names=["x0"])
    x, = torch.load(path + "_inputs.pt")
    want = corpus.tensors_of(torch.jit.load(path + ".pt")(x))[0].numpy()
    return path, x, want


def make_peers(name, path, x, want, threads):
    peers = {}
    for peer, make in (("ONNX Runtime", corpus.Ort), ("OpenVINO", corpus.OpenVino)):
        try:
            call = make(path + ".onnx", {"x0": x.numpy()}, threads)
            compare.check(name, peer, call(), want)
            peers[peer] = call
        except (Exception, SystemExit) as error:
            print("%s: %s" % (name, corpus.refusal(error)), file=sys.stderr)
    return peers


def measure(torch, name, args):
    """A row of the table."""
    with torch.inference_mode():
        path, x, want = prepare(torch, name, args.folder)
    builds = [compare.Kiln(build, path, args.threads, args.seconds) for build in args.builds]
    answer = corpus.tensors_of(builds[0].answer(torch, path + "_answer.pt"))[0].numpy()
    compare.check(name, "Kiln", answer, want)
    peers = make_peers(name, path, x, want, args.threads)
    ours, figures = [[] for _ in builds], {peer: [] for peer in peers}
    for _ in range(args.rounds):
        for build, found in zip(builds, ours):
            found.append(build.figures()["steady"]["median_ms"])
        for peer, call in peers.items():
            figures[peer].append(page.median(call, args.seconds) * 1e3)
    best = min((statistics.median(found) for found in figures.values()), default=float("nan"))
    cells = [page.cell(found) for found in ours]
    cells += [page.cell(figures[peer]) if peer in figures else "-" for peer in ("ONNX Runtime", "OpenVINO")]
    return "| %s | %s | %.2f |" % (name, " | ".join(cells), statistics.median(ours[0]) / best)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("names", nargs="+")
    parser.add_argument("--other", metavar="BUILD")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder")
    args = parser.parse_args()
    import torch
    torch.set_num_threads(args.threads)
    warnings.filterwarnings("ignore")
    args.builds = [args.build] + ([args.other] if args.other else [])
    args.folder = args.folder or os.path.join(args.build, "bench-models", "zoo")
    os.makedirs(args.folder, exist_ok=True)
    columns = ["model", *args.builds, "ONNX Runtime", "OpenVINO", "Kiln to the best"]
    print("| %s |\n%s|" % (" | ".join(columns), "|---" * len(columns)))
    for name in args.names:
        try:
            print(measure(torch, name, args), flush=True)
        except (Exception, SystemExit) as error:
            print("%s: %s" % (name, corpus.refusal(error)), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
