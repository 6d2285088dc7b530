"""first_calls.py BUILD [--models a,b] [--rounds R] [--write]

What a user waits for: loading and the first ten calls, in Kiln, PyTorch eager, torch.compile, ONNX
Runtime and OpenVINO, each in a process of its own that is started anew for each round; the runtimes
take turns. Imports do not count. A cell is the time from the begin of loading to the end of that
call: the median of the rounds. The models are the suite's, the Python is compare.py's; pinned, say by `taskset -c 1`. --write puts the table into
docs/performance.md and draws plot.py's pictures anew.
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
import plot

CALLS = 10
RUNTIMES = ["Kiln", "PyTorch", "torch.compile", "ONNX Runtime", "OpenVINO"]


def load_peer(runtime, name, path):
    """A function that loads, and gives the call."""
    import torch
    torch.set_num_threads(1)
    inputs = torch.load(path + "_inputs.pt", weights_only=True)
    arrays = [t.numpy() for t in inputs]
    if runtime == "ONNX Runtime":
        import onnxruntime  # noqa: F401
        return lambda: compare.Ort(path + ".onnx", arrays, 1)
    if runtime == "OpenVINO":
        import openvino  # noqa: F401
        return lambda: compare.OpenVino(path + ".onnx", arrays, 1)
    module = compare.suite_module(torch, name)
    if runtime == "torch.compile":
        return lambda: compare.Compiled(torch, module, inputs)
    return lambda: compare.Torch(torch, module, inputs)


def child(runtime, name, path):
    load, ends = load_peer(runtime, name, path), []
    begin = time.perf_counter()
    call = load()
    ends.append(time.perf_counter() - begin)
    for _ in range(CALLS):
        call()
        ends.append(time.perf_counter() - begin)
    print(json.dumps([e * 1e3 for e in ends]))


def run(build, runtime, name, path):
    """Milliseconds from the begin of loading to its end and to that of each call."""
    if runtime == "Kiln":
        ours = compare.Kiln(build, path, 1, 0.01).figures()
        ends = [ours["load_ms"]]
        for ms in ours["calls_ms"][:CALLS]:
            ends.append(ends[-1] + ms)
        return ends
    out = subprocess.check_output([sys.executable, __file__, "--child", runtime, name, path],
                                  stderr=subprocess.DEVNULL, text=True)
    return json.loads(out.strip().split("\n")[-1])


def main():
    if sys.argv[1] == "--child":
        return child(*sys.argv[2:])
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--models", default="mobilenet_v3_large,bertmini,mlp")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    paths = {name: compare.suite_files(args.build, name) for name in args.models.split(",")}
    found = {}
    for _ in range(args.rounds):
        for name, path in paths.items():
            for runtime in RUNTIMES:
                found.setdefault((name, runtime), []).append(run(args.build, runtime, name, path))
    lines = ["Milliseconds from the begin of loading to its end and to that of each call, one thread: "
             "medians of %d processes each." % args.rounds, "",
             "| model | runtime | loaded | %s |" % " | ".join(map(str, range(1, CALLS + 1))),
             "|---" * (CALLS + 3) + "|"]
    for (name, runtime), rounds in found.items():
        lines.append("| %s | %s | %s |" % (name, runtime, " | ".join(
            "%.3g" % statistics.median(ends) for ends in zip(*rounds))))
    text = "\n".join(lines)
    print(text)
    if args.write:
        page.write("<!-- figures of first_calls.py -->", "<!-- end of first_calls.py -->", text)
        plot.draw()


if __name__ == "__main__":
    main()
