"""corpus.py BUILD [--corpus FOLDER] [--models a,b] [--threads N] [--seconds S] [--rounds R] [--write]

The models of the corpus in Kiln, ONNX Runtime and OpenVINO, with their first inputs, in one run. Each archive is
exported to ONNX as it is, by torch.onnx of TorchScript; what that or a peer refuses is told below the table. The
runtimes take turns as in compare.py, whose Python this needs; pinned, say by `taskset -c 1`. --write puts the table
into docs/performance.md.
"""
import argparse
import os
import statistics
import subprocess
import sys
import warnings

import compare
import page

ROOT = compare.ROOT


def unpack(corpus, folder):
    """The corpus' folder of models; its own script unpacks them, once."""
    path = os.path.join(corpus, "models")
    if os.path.isdir(path):
        return path
    subprocess.check_call([os.path.join(corpus, "unpack"), folder], stdout=subprocess.DEVNULL)
    return os.path.join(folder, "models")


def tensors_of(value):
    if hasattr(value, "numpy"):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [t for item in items for t in tensors_of(item)]


def prepare(torch, source, path):
    """Links the archive and its inputs, and exports it; gives the inputs."""
    for name, suffix in (("model.pt", ".pt"), ("inputs_0.pt", "_inputs.pt")):
        if not os.path.exists(path + suffix):
            os.symlink(os.path.join(os.path.abspath(source), name), path + suffix)
    inputs = torch.load(path + "_inputs.pt", weights_only=False)
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if not os.path.exists(path + ".onnx"):
        model = torch.jit.load(path + ".pt").eval()
        torch.onnx.export(model, inputs, path + ".new", dynamo=False, opset_version=17,
                          input_names=["x%d" % i for i in range(len(tensors_of(inputs)))])
        os.rename(path + ".new", path + ".onnx")
    return inputs


class Ort(compare.Ort):
    def __init__(self, path, inputs, threads):
        super().__init__(path, [], threads)
        self.feed = {i.name: inputs[i.name] for i in self.session.get_inputs()}


class OpenVino(compare.OpenVino):
    def __init__(self, path, inputs, threads):
        super().__init__(path, None, threads)
        model = self.request.get_compiled_model()
        self.arrays = {i.get_any_name(): inputs[i.get_any_name()] for i in model.inputs}


def refusal(error):
    text = " ".join(str(error).split())
    return "%s: %s" % (type(error).__name__, text[:120])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--corpus", default=os.path.join(ROOT, "..", "shared", "corpus"))
    parser.add_argument("--models", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    import torch
    torch.set_num_threads(args.threads)
    warnings.filterwarnings("ignore")
    folder = os.path.join(args.build, "bench-models", "corpus")
    os.makedirs(folder, exist_ok=True)
    models = unpack(args.corpus, folder)
    runners, refused = {}, {}
    for name in args.models.split(",") if args.models else sorted(os.listdir(models)):
        path = os.path.join(folder, name)
        try:
            inputs = prepare(torch, os.path.join(models, name), path)
        except Exception as error:  # the exporter's many kinds
            refused[name] = refusal(error)
            continue
        arrays = {"x%d" % i: t.numpy() for i, t in enumerate(tensors_of(inputs))}
        peers = {}
        with torch.inference_mode():
            want = tensors_of(torch.jit.load(path + ".pt").eval()(*inputs))[0].numpy()
        for peer, make in (("ONNX Runtime", Ort), ("OpenVINO", OpenVino)):
            try:
                call = make(path + ".onnx", arrays, args.threads)
                compare.check(name, peer, call(), want)
                peers[peer] = call
            except (Exception, SystemExit) as error:
                refused[name + " in " + peer] = refusal(error)
        if peers:
            sizes = "x".join(str(n) for n in next(iter(arrays.values())).shape)
            runners[name] = (sizes, compare.Kiln(args.build, path, args.threads, args.seconds), peers)
    figures = {name: {"Kiln": [], "ONNX Runtime": [], "OpenVINO": []} for name in runners}
    for _ in range(args.rounds):
        for name, (_, kiln, peers) in runners.items():
            figures[name]["Kiln"].append(kiln.figures()["steady"]["median_ms"])
            for peer, call in peers.items():
                figures[name][peer].append(page.median(call, args.seconds) * 1e3)
    ratios = {name: statistics.median(f["Kiln"]) /
              min(statistics.median(f[p]) for p in f if p != "Kiln" and f[p]) for name, f in figures.items()}
    lines = ["%d thread%s, milliseconds: the median of %d rounds, and the rounds' range. Kiln to the best: %.2f in "
             "the geometric mean." % (args.threads, "s" if args.threads > 1 else "", args.rounds,
                                      page.geometric_mean(ratios.values())), "",
             "| model | first input | Kiln | ONNX Runtime | OpenVINO | Kiln to the best |", "|---|---|---|---|---|---|"]
    for name, f in figures.items():
        cells = [page.cell(f[c]) if f[c] else "-" for c in ("Kiln", "ONNX Runtime", "OpenVINO")]
        lines.append("| %s | %s | %s | %.2f |" % (name, runners[name][0], " | ".join(cells), ratios[name]))
    lines += ["", "Not compared: " + ", ".join(sorted(refused)) + "."] if refused else []
    text = "\n".join(lines)
    print(text)
    for name, why in sorted(refused.items()):
        print("%s: %s" % (name, why), file=sys.stderr)
    if args.write:
        page.write("<!-- figures of corpus.py, threads %d -->" % args.threads,
                   "<!-- end of corpus.py, threads %d -->" % args.threads, text)


if __name__ == "__main__":
    main()
