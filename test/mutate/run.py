"""run.py: plants single faults into the central sources and asks whether the tests see them.

    test/mutate/run.py [--jobs N] [--slice K/N] [--only FILE] [--list] [--keep]

All faults are built at once into build-mutants/tree (a copy of this tree), each behind KILN_MUTANT=number
(mutant.h). First every test runs without a fault, and tells which faults it passes; then each fault runs those
tests that pass it, fastest first, until one fails. A fault that none sees is a survivor: survivors.txt gives the
reason, else the run fails. It fails too if fewer than 95 of 100 are seen, or if survivors.txt names a fault that is seen.
The last line counts: passed are the faults that are seen, skipped the survivors with a reason.

No stage of ./dev test yet: survivors.txt has no reasons so far."""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

import plant

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TREE = os.path.join(ROOT, 'build-mutants', 'tree')
BUILD = os.path.join(TREE, 'build')
LEAST = 0.95
PATIENCE = 20  # seconds, and ten times what the test takes without a fault
SLOWEST = 12   # seconds: tests that take longer have a subject of their own (scaling, a differential run)

# Where a fault is planted, and how many: files whose mistakes are wrong results or crashes, not slow calls.
SUBJECTS = {
    'guards/*.c': 14,
    'profiler/*.c': 6,
    'runtime/cycles.c': 8,
    'runtime/dim.c': 10,
    'runtime/record.c': 8,
    'runtime/interp*.c': 14,
    'runtime/tensor.c': 6,
    'ir/alias*.c': 8,
    'ir/verify*.c': 10,
    'ir/shape*.c': 5,
    'jit/fusion*.c': 10,
    'jit/executor.c': 14,
    'jit/compile.c': 8,
    'jit/forks.c': 8,
    'jit/frozen.c': 6,
    'jit/epoch.c': 6,
    'jit/bytecode*.c': 6,
    'ir/pass/*.c': 3,
    'codegen/loop/verify.c': 12,
    'codegen/loop/loop.c': 6,
    'codegen/loop/pass*.c': 5,
    'codegen/object*.c': 8,
    'base/budget.c': 10,
    'base/pool.c': 8,
    'base/map.c': 4,
    'runtime/kernels/**/conv_plan.c': 8,
    'runtime/kernels/**/reduction.c': 8,
}


def copy_tree():
    names = subprocess.run(['git', 'ls-files', '-z', '-co', '--exclude-standard'], cwd=ROOT, capture_output=True,
                           check=True).stdout.decode().split('\0')
    wanted = {name for name in names if name and os.path.isfile(os.path.join(ROOT, name))}
    for name in wanted:
        target = os.path.join(TREE, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(os.path.join(ROOT, name), 'rb') as f:
            data = f.read()
        put(target, data, os.stat(os.path.join(ROOT, name)).st_mode)
    shutil.copy(os.path.join(HERE, 'mutant.h'), os.path.join(TREE, 'mutant.h'))
    deps = os.path.join(TREE, 'build-deps')
    if not os.path.exists(deps):
        os.symlink(os.path.join(ROOT, 'build-deps'), deps)


def put(path, data, mode=0o644):
    """Writes what is new, that nothing is built twice."""
    if os.path.exists(path):
        with open(path, 'rb') as f:
            if f.read() == data:
                return
    with open(path, 'wb') as f:
        f.write(data)
    os.chmod(path, mode)


def make_faults():
    found = []
    for pattern, count in SUBJECTS.items():
        paths = sorted(glob.glob(pattern, root_dir=ROOT, recursive=True))
        if not paths:
            sys.exit('mutate: no file is named %s' % pattern)
        for path in paths:
            with open(os.path.join(ROOT, path)) as f:
                found += plant.choose(path, f.read(), count)
    return dict(enumerate(found))


def build(faults):
    """Builds; faults that are no C are left out, by the lines of the compiler's errors."""
    if not os.path.exists(os.path.join(BUILD, 'build.ninja')):
        subprocess.run(['meson', 'setup', 'build', '-Dwerror=false', '-Dc_args=-w', '-Dallocator=jemalloc'], cwd=TREE,
                       check=True, stdout=subprocess.DEVNULL)
    sources = {}
    for fault in faults.values():
        with open(os.path.join(ROOT, fault.path)) as f:
            sources[fault.path] = f.read()
    for _ in range(5):
        for path, source in sources.items():
            chosen = [(n, fault) for n, fault in faults.items() if fault.path == path]
            put(os.path.join(TREE, path), plant.planted(source, chosen).encode())
        done = subprocess.run(['nice', 'ninja', '-k', '0', '-C', BUILD], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return faults
        wrong = set()
        for path, line in re.findall(r'^(?:\.\./)*([\w/]+\.c):(\d+):\d+: error', done.stdout, re.M):
            source = sources.get(path, '')
            for n, fault in faults.items():
                first = source.count('\n', 0, fault.start) + 1
                if fault.path == path and first <= int(line) <= source.count('\n', 0, fault.end) + 1:
                    wrong.add(n)
        if not wrong:
            sys.exit('mutate: the build failed\n' + done.stdout[-3000:])
        faults = {n: fault for n, fault in faults.items() if n not in wrong}
    sys.exit('mutate: the build failed five times')


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith('KILN_')}
    return {**kept, **more}


class Test:
    def __init__(self, name, command, cwd=TREE):
        self.name, self.command, self.cwd = name, command, cwd
        self.seconds, self.faults = 0, set()

    def passes(self, timeout, **env):
        try:
            done = subprocess.run(self.command, cwd=self.cwd, env=environment(**env), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def measure(self):
        hits = os.path.join(BUILD, 'hits-%s' % re.sub(r'\W', '_', self.name))
        if os.path.exists(hits):
            os.remove(hits)
        start = time.monotonic()
        good = self.passes(300, KILN_MUTANT_HITS=hits)
        self.seconds = time.monotonic() - start
        if os.path.exists(hits):
            with open(hits) as f:
                self.faults = set(map(int, f.read().split()))
        return good


def all_tests():
    listed = json.loads(subprocess.run(['meson', 'introspect', '--tests', BUILD], capture_output=True, text=True,
                                       check=True).stdout)
    for test in listed:
        if test['cmd'][0].endswith('_test') and '/differential/' not in test['cmd'][0]:
            yield Test('unit ' + test['name'], test['cmd'], test['workdir'] or BUILD)
    kiln = os.path.join(BUILD, 'kiln')
    for path in sorted(glob.glob('test/passes/*', root_dir=TREE) + glob.glob('test/guards/*', root_dir=TREE)):
        yield Test('text ' + path, [sys.executable, 'test/run_text.py', '--kiln', kiln, path])
    cases = sorted(os.path.dirname(path) for path in glob.glob('test/data/**/case.json', root_dir=TREE, recursive=True))
    for k in range(0, len(cases), 12):
        yield Test('check %d' % k, [kiln, 'check', '--repeat', '5', '--require-compiled', '--skips', 'test/SKIPPED.md'] +
                   cases[k:k + 12])


def killer(number, tests):
    """The name of the test that sees the fault; '' none."""
    for test in tests:
        if number in test.faults and not test.passes(PATIENCE + 10 * test.seconds, KILN_MUTANT=str(number)):
            return test.name
    return ''


def read_reasons():
    """survivors.txt: a line for the fault's key, below it indented lines with the reason."""
    reasons, key = {}, None
    with open(os.path.join(HERE, 'survivors.txt')) as f:
        for line in f:
            if line.startswith('#') or not line.strip():
                continue
            if line[0] == ' ':
                reasons[key] += line.strip() + ' '
            else:
                key = line.strip()
                reasons[key] = ''
    return reasons


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--slice', default='0/1')
    parser.add_argument('--only', default='')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--keep', action='store_true', help='build-mutants stays')
    args = parser.parse_args()
    faults = make_faults()
    part, parts = map(int, args.slice.split('/'))
    faults = {n: fault for n, fault in faults.items()
              if args.only in fault.path and int(fault.rank()[:8], 16) % parts == part}
    if args.list:
        for n, fault in faults.items():
            print('%3d %s' % (n, fault.key()))
        return 0
    os.makedirs(TREE, exist_ok=True)
    copy_tree()
    faults = build(faults)
    tests = list(all_tests())
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for test, good in zip(tests, pool.map(Test.measure, tests)):
            if not good:
                print('FAIL %s: fails without a fault' % test.name)
                print('0 passed, 1 failed')
                return 1
        tests = sorted((t for t in tests if t.seconds < SLOWEST), key=lambda test: test.seconds)
        numbers = sorted(faults)
        killers = dict(zip(numbers, pool.map(lambda n: killer(n, tests), numbers)))
    reasons = read_reasons()
    passed = failed = skipped = 0
    for n, name in killers.items():
        key = faults[n].key()
        if name:
            passed += 1
            print('PASS %d %s: by %s' % (n, key, name))
        elif key in reasons:
            skipped += 1
            print('SKIP %d %s: %s' % (n, key, reasons[key]))
        else:
            failed += 1
            reached = any(n in test.faults for test in tests)
            print('FAIL %d %s: %s' % (n, key, 'no test sees it' if reached else 'no test passes it'))
        if name and key in reasons:
            failed += 1
            print('FAIL survivors.txt names what is seen: ' + key)
    if passed < LEAST * len(killers):
        failed += 1
        print('FAIL %d of %d faults are seen' % (passed, len(killers)))
    if not args.keep:
        shutil.rmtree(os.path.join(ROOT, 'build-mutants'))
    print('%d passed, %d failed, %d skipped' % (passed, failed, skipped))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
