"""aot.py: programs of `kiln compile` beside `kiln run`: process start to first answer, steady calls, sizes.

    aot.py [--build build] [--runs 15] MODEL.pt INPUTS.pt [MODEL.pt INPUTS.pt]...

Each model is compiled and linked with bench/aot.c. Starts are of whole processes, in turns, pinned to one processor:
the program, and the command with nothing kept. Medians, as a table in Markdown.
"""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def environment(**flags):
    env = {k: v for k, v in os.environ.items() if not k.startswith('KILN_')}
    return dict(env, **flags)


def start_ms(command, env):
    begin = time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - begin) * 1e3


def make_program(build, model, inputs, folder):
    """(program, its arguments for the inputs)"""
    subprocess.run([os.path.join(build, 'kiln'), 'compile', model, '--inputs', inputs, '-o', folder, '--name', 'model'],
                   env=environment(), check=True)
    with open(os.path.join(folder, 'model.h')) as f:
        header = f.read()
    words = []
    for dtype, sizes in re.findall(r'inputs\[\d+\]\s+\S+: (Float|Long)\(([\d, ]*)\)', header):
        words += ['f32' if dtype == 'Float' else 'i64'] + sizes.replace(',', ' ').split()
    sizes = ','.join(re.findall(r'MODEL_OUTPUT_\d+_BYTES = (\d+)', header))
    program = os.path.join(folder, 'aot')
    subprocess.run(['cc', '-O2', '-std=gnu17', '-I' + os.path.join(ROOT, 'include'), '-I' + folder,
                    '-DMODEL_OUTPUT_BYTES=' + sizes, os.path.join(ROOT, 'bench/aot.c'), os.path.join(folder, 'model.o'),
                    os.path.join(build, 'libkiln-aot.a'), '-Wl,--gc-sections', '-s', '-lm', '-lpthread', '-o', program],
                   check=True)
    return program, words


def row(build, model, inputs, runs, pin):
    folder = tempfile.mkdtemp(prefix='kiln-aot-')
    try:
        program, words = make_program(build, model, inputs, folder)
        weights = os.path.join(folder, 'model.weights')
        command = pin + [os.path.join(build, 'kiln'), 'run', model, '--inputs', inputs, '--elements', '0']
        times = {'program': [], 'cold': []}
        for _ in range(runs):
            times['program'].append(start_ms(pin + [program, weights, '1'] + words, environment()))
            times['cold'].append(start_ms(command, environment()))
        steady = subprocess.run(pin + [program, weights, '300'] + words, capture_output=True, text=True, check=True)
        opened, first, median, peak = steady.stdout.split()
        size = os.path.getsize
        print('| %s | %s | %.0f | %.1f | %.1f | %.2f | %.2f | %.3f | %.1f |' % (
            os.path.basename(model)[:-3] if os.path.basename(model) != 'model.pt' else
            os.path.basename(os.path.dirname(model)),
            ' / '.join('%.1f' % statistics.median(times[k]) for k in ('program', 'cold')),
            size(os.path.join(folder, 'model.o')) / 1e3, size(weights) / 1e6, size(program) / 1e6,
            float(opened) / 1e3, float(first) / 1e3, float(median) / 1e3, int(peak) / 1e3), flush=True)
    finally:
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('--runs', type=int, default=15)
    parser.add_argument('models', nargs='+')
    args = parser.parse_args()
    pin = ['taskset', '-c', str(max(os.sched_getaffinity(0)))] if shutil.which('taskset') else []
    print('| model | start to answer: program / kiln run, ms | object, KB | weights, MB | program, MB | '
          'open, ms | first call, ms | call, ms | peak, MB |')
    print('| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |')
    for model, inputs in zip(args.models[::2], args.models[1::2]):
        row(os.path.abspath(args.build), model, inputs, args.runs, pin)


if __name__ == '__main__':
    main()
