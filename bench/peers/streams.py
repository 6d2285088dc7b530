"""streams.py BUILD [--rounds R] [--passes P] [--write]

A stream of 60 random shapes, P times in the same order, through models that were loaded a moment ago: Kiln, its
interpreter, PyTorch eager, torch.compile, ONNX Runtime and OpenVINO, each in a process of its own that is started anew for
each round; the runtimes take turns. A cell is the sum of the calls of a pass: the median of the rounds. The shapes, and the
elements, are bench_streams'; the peers' files have sizes that vary. The Python is compare.py's; pinned, say by
`taskset -c 0,1`: one thread calls, and what compiles beside it has the other processor. --write puts the table into
docs/performance.md.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import compare
import page

RUNTIMES = ["Kiln", "interpreter", "PyTorch", "torch.compile", "ONNX Runtime", "OpenVINO"]
SHAPES, LEAST, MOST, MASK = 60, 2, 128, (1 << 64) - 1
# The inputs as bench_streams takes them, and which of their dimensions are which letter.
MODELS = {
    "bertmini": (["i64[1,n]"], [{1: "n"}]),
    "pw64k": (["f32[n,m]"] * 3, [{0: "n", 1: "m"}] * 3),
}


def random(state):
    """bench_streams' generator: SplitMix64."""
    while True:
        state = (state + 0x9e3779b97f4a7c15) & MASK
        x = ((state ^ state >> 30) * 0xbf58476d1ce4e5b9) & MASK
        x = ((x ^ x >> 27) * 0x94d049bb133111eb) & MASK
        yield x ^ x >> 31


def make_inputs(name, index):
    import numpy
    numbers = random(1000003 + index)
    letters = [LEAST + next(numbers) % (MOST - LEAST + 1) for _ in range(26)]
    arrays = []
    for spec in MODELS[name][0]:
        sizes = [int(s) if s.isdigit() else letters[ord(s) - ord("a")] for s in spec[4:-1].split(",")]
        count = int(numpy.prod(sizes))
        drawn = [next(numbers) for _ in range(count)]
        flat = (numpy.array([n % 100 for n in drawn], dtype=numpy.int64) if spec.startswith("i64")
                else numpy.array([(n >> 40) * 2.0 ** -23 - 1 for n in drawn], dtype=numpy.float32))
        arrays.append(flat.reshape(sizes))
    return arrays


def export(name, path):
    """The peers' file, whose sizes vary."""
    import torch
    target = path + "_any.onnx"
    if os.path.exists(target):
        return
    dims = {letter: torch.export.Dim(letter, min=LEAST, max=MOST) for letter in "nm"}
    shapes = tuple({d: dims[letter] for d, letter in axes.items()} for axes in MODELS[name][1])
    example = tuple(torch.from_numpy(a) for a in make_inputs(name, 0))
    with torch.no_grad():
        torch.onnx.export(compare.suite_module(torch, name), example, target, dynamo=True, external_data=False, verbose=False,
                          dynamic_shapes=shapes)


def load_peer(runtime, name, path):
    """What calls it with arrays."""
    if runtime == "ONNX Runtime":
        peer = compare.Ort(path + "_any.onnx", [], 1)
        names = [i.name for i in peer.session.get_inputs()]
        return lambda arrays: peer.session.run(None, dict(zip(names, arrays)))[0]
    if runtime == "OpenVINO":
        peer = compare.OpenVino(path + "_any.onnx", [], 1)
        return lambda arrays: peer.request.infer(arrays)[0]
    import torch
    torch.set_num_threads(1)
    module = compare.suite_module(torch, name)
    if runtime == "torch.compile":
        module = torch.compile(module)

    def call(arrays):
        with torch.inference_mode():
            return module(*(torch.from_numpy(a) for a in arrays)).numpy()
    return call


def child(runtime, name, path, passes):
    arrays = [make_inputs(name, i) for i in range(SHAPES)]
    call, sums = load_peer(runtime, name, path), []
    for _ in range(int(passes)):
        total = 0
        for a in arrays:
            begin = time.perf_counter()
            call(a)
            total += time.perf_counter() - begin
        sums.append(total * 1e3)
    print(json.dumps(sums))


def run(build, runtime, name, path, passes):
    """Milliseconds of each pass."""
    if runtime in ("Kiln", "interpreter"):
        env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        out = subprocess.check_output([os.path.join(build, "bench", "bench_streams"), path + ".pt", *MODELS[name][0],
                                       "--passes", str(passes), "--side", "on" if runtime == "Kiln" else "off"],
                                      text=True, env=env)
        column = 1 if runtime == "Kiln" else 2
        return [float(line.split()[column]) for line in out.split("\n")[1:passes + 1]]
    out = subprocess.check_output([sys.executable, __file__, "--child", runtime, name, path, str(passes)],
                                  stderr=subprocess.DEVNULL, text=True)
    return json.loads(out.strip().split("\n")[-1])


def main():
    if sys.argv[1] == "--child":
        return child(*sys.argv[2:])
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    lines = ["| model | pass | %s |" % " | ".join(RUNTIMES), "|---|---|%s" % ("---|" * len(RUNTIMES))]
    for name in MODELS:
        path = compare.suite_files(args.build, name)
        export(name, path)
        found = {runtime: [] for runtime in RUNTIMES}
        for _ in range(args.rounds):
            for runtime in RUNTIMES:
                found[runtime].append(run(args.build, runtime, name, path, args.passes))
        for i in range(args.passes):
            cells = ["%.3g" % statistics.median(sums[i] for sums in found[runtime]) for runtime in RUNTIMES]
            lines.append("| %s | %d | %s |" % (name if i == 0 else "", i + 1, " | ".join(cells)))
    text = "\n".join(lines)
    print(text)
    if args.write:
        page.write("<!-- figures of streams.py -->", "<!-- end of streams.py -->", text)


if __name__ == "__main__":
    main()
