#!/usr/bin/env python3
"""ptx.py --build build [--random N] [--corpus DIR...] | --cases DIR: PTX is assembled, and run on this machine.

Units write kernels with arguments and what must come of them (write_gpu_case): every opcode and kind of kernel, and N
of the random ones. ptxas takes each for sm_80 and sm_90. The text is also made C (ptx_c.py), which runs as a
launch of some blocks and threads and must give the evaluator's bits; where the machine has a GPU, there too
(ptx_gpu.py). Of the corpus every compiled group's kernel is assembled. Without ptxas, and without a GPU, that part is
skipped. --cases runs what units wrote elsewhere on the GPU, which must be there, and needs no build. The last line
counts."""
import argparse
import concurrent.futures
import ctypes
import glob
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from ptx_c import HEAD, as_c, entry_of
from ptx_gpu import Gpu, GpuError, check_cases

GPUS = ['sm_80', 'sm_90']
BLOCKS, THREADS = 3, 5 # of the launch, which few numbers of iterations fit
UNITS = ['ptx', 'kernel', 'reduce', 'gather']
JOBS = os.cpu_count()
CC = os.environ.get('CC', 'cc').split()[-1]

def run(*command, **env):
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **env})


# -- Cases --

SIZES = {'f32': 4, 'f64': 8, 'f16': 2, 'bf16': 2, 'bool': 1, 'u8': 1, 'i8': 1, 'i16': 2, 'i32': 4, 'i64': 8}
UNPACK = {'f32': 'f', 'f64': 'd', 'f16': 'H', 'bf16': 'H'}


class Case:
    def __init__(self, path):
        self.name, self.path = os.path.basename(path)[:-4], path
        with open(path) as f:
            self.ptx = f.read()
        with open(path[:-4] + '.case', 'rb') as f:
            head, _, data = f.read().partition(b'\n\n')
        self.tensors, self.numbers, self.fault, self.scratch, at = [], [], None, 0, 0
        for line in head.decode().splitlines():
            kind, dtype, value = line.split()
            if kind in ('in', 'out'):
                size = int(value) * SIZES[dtype]
                self.tensors.append((kind, dtype, data[at:at + size]))
                at += size
            elif kind in ('scratch', 'fault'):
                setattr(self, kind, int(value))
            else:
                self.numbers.append(int(value) & (1 << 64) - 1)
        assert at == len(data), path


def same(dtype, a, b):
    if a == b or dtype not in UNPACK:
        return a == b
    def is_nan(x):
        if dtype in ('f16', 'bf16'):
            return x & 0x7fff > (0x7c00 if dtype == 'f16' else 0x7f80)
        return math.isnan(x)
    code, size = UNPACK[dtype], SIZES[dtype]
    pairs = zip(struct.iter_unpack('<' + code, a), struct.iter_unpack('<' + code, b))
    return all(a[i * size:(i + 1) * size] == b[i * size:(i + 1) * size] or (is_nan(x) and is_nan(y))
               for i, ((x,), (y,)) in enumerate(pairs))


def run_case(library, case, parameters):
    """NULL, or what is wrong."""
    buffers = [ctypes.create_string_buffer(data if kind == 'in' else b'\xa5' * len(data), len(data))
               for kind, _, data in case.tensors]
    scratch = ctypes.create_string_buffer(case.scratch * BLOCKS * THREADS + 64)
    fault, faults = ctypes.c_uint32(0), case.fault is not None
    words = [ctypes.addressof(b) for b in buffers] + case.numbers
    if len(words) + faults < parameters:
        words.append(ctypes.addressof(scratch) + 63 & ~63)
    if faults:
        words.append(ctypes.addressof(fault))
    if len(words) != parameters:
        return '%d parameters, not %d' % (parameters, len(words))
    args = (ctypes.c_uint64 * len(words))(*words)
    getattr(library, 'launch_' + case.name)(args, ctypes.c_uint32(BLOCKS), ctypes.c_uint32(THREADS))
    for i, (kind, dtype, data) in enumerate(case.tensors):
        if kind == 'out' and not same(dtype, buffers[i].raw, data):
            return 'b%d differs' % i
    return 'the fault word is %d' % fault.value if faults and fault.value != case.fault else None


def run_all(folder, cases, number):
    """(name, what is wrong or None) of each."""
    source, results, ready = [HEAD], [], []
    for case in cases:
        try:
            text, parameters = as_c(case.ptx, case.name)
        except (ValueError, KeyError, AttributeError) as error:
            results.append((case.name, repr(error)))
            continue
        source.append(text)
        ready.append((case, parameters))
    c, so = os.path.join(folder, 'run%d.c' % number), os.path.join(folder, 'run%d.so' % number)
    with open(c, 'w') as f:
        f.write('\n'.join(source))
    made = run(CC, '-O0', '-w', '-mavx2', '-mfma', '-ffp-contract=off', '-fno-strict-aliasing', '-fwrapv', '-shared',
               '-fPIC', c, '-o', so, '-lm')
    if made.returncode:
        return results + [(case.name, made.stderr[:1000]) for case, _ in ready]
    library = ctypes.CDLL(so)
    return results + [(case.name, run_case(library, case, parameters)) for case, parameters in ready]


def target_of(ptx):
    return re.search(r'sm_\d+', ptx).group()


# -- ptxas --

def find_ptxas():
    usual = [p for p in glob.glob('/usr/local/cuda*/bin/ptxas') if os.access(p, os.X_OK)]
    return shutil.which('ptxas') or next(iter(usual), None)


def assemble(ptxas, folder, name, text, gpu):
    """What is wrong, or None."""
    path = os.path.join(folder, '%s.%s.ptx' % (name, gpu))
    with open(path, 'w') as f:
        f.write(text)
    made = run(ptxas, '-O1', '-arch=' + gpu, path, '-o', path + '.cubin')
    return made.stdout + made.stderr if made.returncode else None


# -- Models --

def show(kiln, case, *options):
    return run(kiln, 'graph', os.path.join(case, 'model.pt'), '--inputs', os.path.join(case, 'inputs_0.pt'), '--all',
               '--stage', 'ptx', *options)


def corpus_kernels(kiln, case):
    """The modules of a model's groups, for its shapes and for all, or what is wrong."""
    modules = []
    for strategy in 'STATIC,2', 'DYNAMIC,2':
        text = show(kiln, case, '--set', 'fusion_strategy=' + strategy).stdout
        found = ['.version' + part for part in text.split('\n.version')[1:]]
        if len(found) != len(re.findall(r'^// \S+ [0-9a-f]{32}$', text, re.M)):
            return 'not every group has PTX'
        modules += [x for x in found if x not in modules]
    return modules


def without_target(kiln, folder):
    """What is wrong where libLLVM has no such target: one whose first function does nothing stands for it."""
    llvm = glob.glob('/usr/lib/llvm-19/lib/libLLVM*.so*') + glob.glob('/usr/lib/*/libLLVM*19*')
    c, so = os.path.join(folder, 'none.c'), os.path.join(folder, 'none.so')
    with open(c, 'w') as f:
        f.write('void LLVMInitializeNVPTXTargetInfo(void) {}\n')
    made = run(CC, '-shared', '-fPIC', c, '-o', so, '-Wl,--no-as-needed', llvm[0])
    if made.returncode:
        return made.stderr
    shown = show(kiln, 'test/data/own/relu_linear', '--set', 'llvm=' + so)
    told = 'no code for a GPU can be made' in shown.stdout and '.entry' not in shown.stdout
    return None if told and shown.returncode == 0 else shown.stdout + shown.stderr


class Count:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def note(self, name, wrong):
        self.passed += wrong is None
        self.failed += wrong is not None
        if wrong is not None:
            print('FAIL %s: %s' % (name, wrong))

    def end(self):
        print('%d passed, %d failed, %d skipped' % (self.passed, self.failed, self.skipped))
        return 1 if self.failed else 0


def on_gpu(gpu, cases, count):
    able = [case for case in cases if target_of(case.ptx) <= gpu.version]
    for name, wrong in check_cases(gpu, able, same, entry_of):
        count.note(name, wrong)
    print('%d of %d cases on %s' % (len(able), len(cases), gpu.name))


def check(options, folder, pool, count):
    kiln, ptxas = os.path.join(options.build, 'kiln'), find_ptxas()

    def produce(unit):
        out = os.path.join(folder, unit)
        os.mkdir(out)
        made = run(os.path.join(options.build, 'test', 'codegen_%s_test' % unit), GPU_CASES=out,
                   GPU_CASES_COUNT=str(options.random // 3)) # of reduce each is two
        count.note('codegen_%s_test' % unit, made.stderr if made.returncode else None)
        return sorted(glob.glob(os.path.join(out, '*.ptx')))
    cases = [Case(path) for paths in pool.map(produce, UNITS) for path in paths]
    count.note('cases', None if len(cases) > 60 else 'only %d' % len(cases))
    chunks = [cases[i::2 * JOBS] for i in range(2 * JOBS)]
    for results in pool.map(lambda i: run_all(folder, chunks[i], i), range(len(chunks))):
        for name, wrong in results:
            count.note(name, wrong)
    try:
        on_gpu(Gpu(), cases, count)
    except GpuError as error:
        print('SKIP no GPU is on this machine: %s' % error)
        count.skipped += len(cases)
    modules = [(case.name, case.ptx) for case in cases]
    for case, found in zip(options.corpus, pool.map(lambda c: corpus_kernels(kiln, c), options.corpus)):
        if isinstance(found, str):
            count.note(case, found)
        else:
            modules += [('%s.%d' % (case.replace('/', '_'), i), text) for i, text in enumerate(found)]
    kernels = len(modules) - len(cases)
    count.note('corpus', None if kernels >= len(options.corpus) // 4 else 'only %d kernels' % kernels)
    count.note('without the target', without_target(kiln, folder))
    todo = [(name, text, gpu) for name, text in modules for gpu in GPUS if gpu >= target_of(text)]
    if ptxas:
        for (name, _, gpu), wrong in zip(todo, pool.map(lambda x: assemble(ptxas, folder, *x), todo)):
            count.note('%s for %s' % (name, gpu), wrong)
    else:
        print('SKIP ptxas is not on this machine')
        count.skipped += len(todo)
    print('%d kernels, %d of the corpus' % (len(modules), kernels))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('--random', type=int, default=36)
    parser.add_argument('--corpus', nargs='*', default=[])
    parser.add_argument('--cases')
    options, count = parser.parse_args(), Count()
    if options.cases:
        on_gpu(Gpu(), [Case(path) for path in sorted(glob.glob(os.path.join(options.cases, '*.ptx')))], count)
        return count.end()
    with open('/proc/cpuinfo') as f:
        has_avx2 = 'avx2' in f.read()
    if has_avx2:
        with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            check(options, folder, pool, count)
    else:
        print('SKIP a GPU has the bits of AVX2, which this machine has not')
        count.skipped = 1
    return count.end()


sys.exit(main())
