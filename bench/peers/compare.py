"""compare.py BUILD [--suite suite.py] [--models a,b] [--threads N] [--seconds S] [--rounds R] [--write]
[--table WORD]

Whole networks in Kiln, PyTorch eager, torch.compile (inductor with freezing, warm), ONNX Runtime and
OpenVINO, on the same weights and inputs, in one run. The runtimes take turns: in each round every
one of them runs every model for S seconds; a figure is the median over the rounds of each round's
median, beside it the lowest and highest of them. Answers are compared before anything is timed. Run
it with a Python that has torch, torchvision, onnxruntime, onnxscript and openvino and a C++ compiler
(`--install FOLDER` makes one); pinned, say by `taskset -c 1`. --write puts the table into
docs/performance.md, with --table into that of another machine, and draws plot.py's picture anew.
"""
import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys

os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no workers beside what is timed
os.environ["TORCHINDUCTOR_FREEZING"] = "1"  # weights are constants, as for the others
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import page  # noqa: E402
import plot  # noqa: E402
PACKAGES = ["torch==2.15.*", "torchvision", "onnxruntime", "onnxscript", "openvino"]
SUITE = os.path.join(ROOT, "..", "shared", "reference", "suite.py")
TOLERANCE = 2e-3  # of the largest element: the runtimes fold and reorder, this only finds mistakes


def install(folder):
    subprocess.check_call([sys.executable, "-m", "venv", folder])
    python = os.path.join(folder, "bin", "python")
    subprocess.check_call([python, "-m", "pip", "install", "-q", *PACKAGES])
    print(python)


def load_module(path):
    spec = importlib.util.spec_from_file_location("loaded", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_suite(path):
    return load_module(path).S


def suite_module(torch, name):
    """The module of the suite beside the project, as make() has made it."""
    suite = load_suite(SUITE)
    torch.manual_seed(0)
    module, _ = suite[name]()
    return module.eval()


def make(torch, name, maker, folder):
    """NAME.pt, NAME_inputs.pt and NAME.onnx, made once; gives the module and its inputs."""
    torch.manual_seed(0)
    module, inputs = maker()
    module.eval()
    path = os.path.join(folder, name)
    with torch.no_grad():
        if not os.path.exists(path + ".pt"):
            torch.save(inputs, path + "_inputs.pt")
            torch.jit.script(module).save(path + ".pt")
        if not os.path.exists(path + ".onnx"):
            torch.onnx.export(module, inputs, path + ".onnx", dynamo=True, external_data=False,
                              verbose=False)
    return module, inputs


def suite_files(build, name):
    """The path of the suite's model without its ending, with make()'s files."""
    import torch
    folder = os.path.join(build, "bench-models")
    os.makedirs(folder, exist_ok=True)
    make(torch, name, load_suite(SUITE)[name], folder)
    return os.path.abspath(os.path.join(folder, name))


class Torch:
    def __init__(self, torch, module, inputs):
        self.torch, self.module, self.inputs = torch, module, inputs

    def __call__(self):
        with self.torch.inference_mode():
            return self.module(*self.inputs).numpy()


class Compiled(Torch):
    def __init__(self, torch, module, inputs):
        super().__init__(torch, torch.compile(module), inputs)


class Ort:
    def __init__(self, path, arrays, threads):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self.session = onnxruntime.InferenceSession(path, options,
                                                    providers=["CPUExecutionProvider"])
        names = [i.name for i in self.session.get_inputs()]
        self.feed = dict(zip(names, arrays))

    def __call__(self):
        return self.session.run(None, self.feed)[0]


class OpenVino:
    def __init__(self, path, arrays, threads):
        import openvino
        config = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                  "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
        compiled = openvino.Core().compile_model(path, "CPU", config)
        self.request = compiled.create_infer_request()
        self.arrays = arrays

    def __call__(self):
        return self.request.infer(self.arrays)[0]


class Kiln:
    def __init__(self, build, path, threads, seconds):
        self.args = [os.path.join(build, "kiln"), "bench", path + ".pt", "--inputs",
                     path + "_inputs.pt", "--threads", str(threads), "--duration", str(seconds),
                     "--json", "-"]
        self.run_args = [os.path.join(build, "kiln"), "run", path + ".pt", "--inputs",
                         path + "_inputs.pt", "--threads", str(threads), "--repeat", "3", "--out"]
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}

    def answer(self, torch, path):
        subprocess.check_call(self.run_args + [path], env=self.env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
        return torch.load(path)

    def figures(self):
        return json.loads(subprocess.check_output(self.args, env=self.env))


def check(name, peer, got, want):
    error = abs(got - want).max() / abs(want).max()
    if not error < TOLERANCE:
        sys.exit("compare: %s of %s differs by %g of the largest element" % (name, peer, error))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?")
    parser.add_argument("--install", metavar="FOLDER")
    parser.add_argument("--suite", default=SUITE)
    parser.add_argument("--models", default="resnet18,resnet50,mobilenet_v3_large,shufflenet,bertbase,"
                                            "bertmini,mlp,pw64k,lstm")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--table", default="", help="of which machine: avx2")
    args = parser.parse_args()
    if args.install:
        return install(args.install)
    import torch
    torch.set_num_threads(args.threads)
    folder = os.path.join(args.build, "bench-models")
    os.makedirs(folder, exist_ok=True)
    suite = load_suite(args.suite)
    runners, figures = {}, {}
    for name in args.models.split(","):
        module, inputs = make(torch, name, suite[name], folder)
        path = os.path.join(folder, name)
        arrays = [t.numpy() for t in inputs]
        peers = {"PyTorch": Torch(torch, module, inputs),
                 "torch.compile": Compiled(torch, module, inputs),
                 "ONNX Runtime": Ort(path + ".onnx", arrays, args.threads),
                 "OpenVINO": OpenVino(path + ".onnx", arrays, args.threads)}
        kiln = Kiln(args.build, path, args.threads, args.seconds)
        want = peers["PyTorch"]()
        for peer, call in peers.items():
            check(name, peer, call(), want)
        check(name, "Kiln", kiln.answer(torch, path + "_answer.pt").numpy(), want)
        runners[name] = (kiln, peers)
        figures[name] = {"Kiln": [], "first": [], **{peer: [] for peer in peers}}
    for _ in range(args.rounds):
        for name, (kiln, peers) in runners.items():
            ours = kiln.figures()
            figures[name]["Kiln"].append(ours["steady"]["median_ms"])
            figures[name]["first"].append(ours["load_ms"] + ours["first_ms"])
            for peer, call in peers.items():
                figures[name][peer].append(page.median(call, args.seconds) * 1e3)
    columns = ["Kiln", *peers]
    ratios = {name: statistics.median(f["Kiln"]) / min(statistics.median(f[p]) for p in peers)
              for name, f in figures.items()}
    lines = ["%d thread%s, batch 1, milliseconds: the median of %d rounds, and the rounds' range. "
             "Kiln to the best: %.2f in the geometric mean. torch %s."
             % (args.threads, "s" if args.threads > 1 else "", args.rounds,
                page.geometric_mean(ratios.values()),
                torch.__version__), "",
             "| model | %s | Kiln to the best | Kiln: load and first call |" % " | ".join(columns),
             "|---" * (len(columns) + 3) + "|"]
    for name, f in figures.items():
        lines.append("| %s | %s | %.2f | %s |" % (name, " | ".join(page.cell(f[c]) for c in columns),
                                                  ratios[name], page.cell(f["first"])))
    text = "\n".join(lines)
    print(text)
    if args.write:
        which = "threads %d%s" % (args.threads, args.table and ", " + args.table)
        page.write("<!-- figures of compare.py, %s -->" % which,
                   "<!-- end of compare.py, %s -->" % which, text)
        plot.draw()


if __name__ == "__main__":
    main()
