"""run_bench.py: every program of bench/ runs, on the least that it measures, and prints figures.

    run_bench.py --build build

A program that stands in the build's bench/ and not here is a failure.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

CPUS = sorted(os.sched_getaffinity(0))
MODEL = 'test/data/bad/good/model.pt'
CONV = 'resnet 1x1 s2 256'

# What each is given; FOLDER stands for an empty folder.
PROGRAMS = {
    'bench_attention': ['1', '16', '16'],
    'bench_compile': ['add f32'],
    'bench_contract': ['4', '16', '16'],
    'bench_conv_kernels': [CONV],
    'bench_cores': [str(CPUS[0]), str(CPUS[-1])],
    'bench_eval': ['add f32'],
    'bench_grouped': ['13 of 8'],
    'bench_load': [MODEL, '1'],
    'bench_peak': ['a=4096'],
    'bench_pool': ['2'],
    'bench_streams': [MODEL, 'f32[n,2,3]', '--sizes', '2,8', '--shapes', '4', '--passes', '1'],
    'bench_tune': ['--autotune', 'FOLDER', 'softmax'],
    'bench_winograd': ['16->16 @56'],
    'conv': [CONV],
    'gemm': ['4', '16', '16'],
}


def failure_of(build, name):
    if name not in PROGRAMS:
        return 'has no line in test/run_bench.py'
    with tempfile.TemporaryDirectory() as folder:
        command = [os.path.join(build, 'bench', name)]
        command += [folder if arg == 'FOLDER' else arg for arg in PROGRAMS[name]]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                              check=False)
    text = done.stdout.decode()
    if done.returncode:
        return f'exit status {done.returncode}: {text}'
    if not re.search(r'\d', text):
        return f'no figure: {text}'
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', required=True)
    build = parser.parse_args().build
    folder = os.path.join(build, 'bench')
    here = {name for name in os.listdir(folder)
            if os.path.isfile(os.path.join(folder, name)) and
            os.access(os.path.join(folder, name), os.X_OK)}
    passed = failed = 0
    for name in sorted(here | set(PROGRAMS)):
        error = failure_of(build, name) if name in here else 'is not built'
        if error is None:
            passed += 1
        else:
            failed += 1
            print(f'FAIL bench/{name}: {error}')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
