"""run.py: plants single faults into the central sources and asks whether the tests see them.

    test/mutate/run.py [--build DIR] [--jobs N] [--slice K/N] [--only PATTERN] [--list] [--keep]
    (the stage: `./dev test mutate` runs all, `--full` and CI one of SLICES, by the hash of the commit)

The faults of a slice are built at once, each behind MUTANT=number (mutant.h), in build-mutants: a copy of the
sources and of the objects in DIR, of which only what has a fault is compiled again. First the tests run without a
fault, and tell which faults they pass; then each fault runs those tests that pass it, the cheapest first, until one
fails. A fault that none sees is a survivor: survivors.txt gives the reason, else the run fails. It fails too if
survivors.txt names a fault that is seen (test/meta looks whether all are planted), and a run of all faults if fewer
than 95 of 100 are seen. Those 100 are faults that can be observed: no test can see one that is `equal`, which
changes nothing that anybody could tell, so these count neither as seen nor as missed. Whoever claims it has to argue
it in one line; what takes longer, needs two threads to meet or would be hard to test counts as missed.
The last line counts: passed are the faults that are seen, skipped the survivors with a reason."""
import argparse
import concurrent.futures
import filecmp
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import plant

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TREE = os.path.join(ROOT, 'build-mutants')
BUILD = os.path.join(TREE, 'build')
MOST = 4096    # KILN_MUTANT_MOST of mutant.h
LEAST = 0.95   # of the faults that can be observed
KINDS = ('equal', 'time', 'race', 'open')  # of survivors.txt
SOMETIMES = ('time: ', 'race: ')  # that a busy machine may show
PATIENCE = 5   # seconds, and ten times what the test takes without a fault
# Units that take long and have a subject of their own: they see nothing that quicker ones do not.
APART = {'altered', 'fuzz_replay', 'kernel', 'looks', 'math', 'process', 'unload',
         'workers_threads'}
MEMORY = 8 << 30  # bytes: a fault may ask for memory for ever
SLICES = 12    # a slice takes two cores some 2 minutes, most of them to link and to run the tests once

# Where a fault is planted, and how many: files whose mistakes are wrong results or crashes, not slow calls.
SUBJECTS = {
    'guards/*.c': 9,
    'profiler/*.c': 4,
    'runtime/cycles.c': 6,
    'runtime/dim.c': 8,
    'runtime/record.c': 6,
    'runtime/interp*.c': 10,
    'ir/alias.c': 5,
    'ir/alias_access.c': 5,
    'ir/alias_build.c': 5,
    'ir/alias_schema.c': 5,
    'ir/alias_solve.c': 5,
    'ir/verify*.c': 12,
    'ir/shape*.c': 3,
    'jit/fusion*.c': 7,
    'jit/executor.c': 10,
    'jit/compile.c': 6,
    'jit/forks.c': 6,
    'jit/frozen.c': 4,
    'base/epoch.c': 5,
    'jit/bytecode*.c': 5,
    'codegen/loop/verify.c': 13,
    'codegen/loop/loop.c': 4,
    'codegen/loop/pass*.c': 3,
    'codegen/object*.c': 6,
    'base/budget.c': 9,
    'base/map.c': 6,
}


# -- The faults and their build --

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


def sliced(faults, part, parts):
    """The faults of a slice: whole files, that few are compiled; the fullest file to the emptiest slice."""
    paths = [fault.path for fault in faults.values()]
    sums, chosen = [0] * parts, set()
    for path in sorted(set(paths), key=lambda path: (-paths.count(path), path)):
        k = sums.index(min(sums))
        sums[k] += paths.count(path)
        if k == part:
            chosen.add(path)
    return {n: fault for n, fault in faults.items() if fault.path in chosen}


def put(path, data):
    """Writes what is new, that nothing is built twice."""
    if os.path.exists(path):
        with open(path, 'rb') as f:
            if f.read() == data:
                return
    with open(path, 'wb') as f:
        f.write(data)


def copy_new(pairs):
    for source, target in pairs:
        if not os.path.isfile(source):
            continue
        if os.path.exists(target) and os.stat(target).st_mtime_ns >= os.stat(source).st_mtime_ns:
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(source, target)


def copy_tree(build):
    """Sources and objects with their times, by which ninja knows what is built. Programs are linked anew anyway. What
    a run before has kept (--keep) is built on, if it was made of the same build."""
    rules = [os.path.join(folder, 'build.ninja') for folder in (build, BUILD)]
    if not os.path.exists(rules[1]) or not filecmp.cmp(*rules, shallow=False):
        shutil.rmtree(TREE, ignore_errors=True)
        copy_new((os.path.join(folder, name), os.path.join(BUILD, os.path.relpath(folder, build), name))
                 for folder, _, names in os.walk(build) for name in names
                 if not os.access(os.path.join(folder, name), os.X_OK))
        os.symlink(os.path.join(ROOT, 'build-deps'), os.path.join(TREE, 'build-deps'))
    listed = subprocess.run(['git', 'ls-files', '-z', '-co', '--exclude-standard'], cwd=ROOT, capture_output=True,
                            check=True).stdout.decode().split('\0')
    copy_new((os.path.join(ROOT, name), os.path.join(TREE, name)) for name in listed if name)
    with open(os.path.join(HERE, 'mutant.h'), 'rb') as f:
        put(os.path.join(TREE, 'mutant.h'), f.read())


def compile_faults(faults, targets):
    """Builds; faults that are no C are left out, by the lines of the compiler's errors."""
    sources = {}
    for path in {fault.path for fault in faults.values()}:
        with open(os.path.join(ROOT, path)) as f:
            sources[path] = f.read()
    for _ in range(5):
        for path, source in sources.items():
            chosen = [(n, fault) for n, fault in faults.items() if fault.path == path]
            put(os.path.join(TREE, path), plant.planted(source, chosen).encode() if chosen else source.encode())
        done = subprocess.run(['ninja', '-k', '0', '-C', BUILD] + targets, capture_output=True, text=True,
                              check=False)
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
            lines = [line for line in done.stdout.split('\n') if not line.startswith('[')]
            sys.exit('mutate: the build failed\n' + '\n'.join(lines[:40]))
        faults = {n: fault for n, fault in faults.items() if n not in wrong}
    sys.exit('mutate: the build failed five times')


# -- The tests --

class Test:
    def __init__(self, name, command, cwd=TREE):
        self.name, self.command, self.cwd = name, command, cwd
        self.seconds, self.faults = 0, set()

    def passes(self, timeout, **more):
        """Whether the test ends well in time. What it has started ends with it. As in test/meson.build, what a call
        finds does not depend on time."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(('KILN_', 'MUTANT'))}
        run = subprocess.Popen(self.command, cwd=self.cwd, env={**kept, 'KILN_COMPILE': 'sync', **more},
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
        try:
            return run.wait(timeout) == 0
        except subprocess.TimeoutExpired:
            return False
        finally:
            try:
                os.killpg(run.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            run.wait()

    def measure(self):
        with tempfile.NamedTemporaryFile() as hits:
            hits.write(bytes(MOST))
            hits.flush()
            start = time.monotonic()
            good = self.passes(300, MUTANT_HITS=hits.name)
            self.seconds = time.monotonic() - start
            with open(hits.name, 'rb') as f:
                self.faults = {n for n, hit in enumerate(f.read()) if hit}
        return good


def units(build):
    """The programs that are tests of their own, as DIR names them."""
    listed = json.loads(subprocess.run(['meson', 'introspect', '--tests', build], capture_output=True, text=True,
                                       check=True).stdout)
    for test in listed:
        if test['cmd'][0].endswith('_test') and '/differential/' not in test['cmd'][0] and test['name'] not in APART:
            command = [word.replace(build + '/', BUILD + '/') for word in test['cmd']]
            yield Test('unit ' + test['name'], command, test['workdir'] or BUILD)


def texts():
    for path in sorted(path for folder in ('passes', 'guards', 'cli')
                       for path in glob.glob('test/%s/*' % folder, root_dir=TREE)):
        yield Test('text ' + path, [sys.executable, 'test/run_text.py', '--kiln', os.path.join(BUILD, 'kiln'), path])


def checks():
    cases = sorted(os.path.dirname(path) for path in glob.glob('test/data/**/case.json', root_dir=TREE, recursive=True))
    for k in range(0, len(cases), 12):
        yield Test('check %s' % cases[k], [os.path.join(BUILD, 'kiln'), 'check', '--repeat', '5', '--require-compiled',
                                           '--skips', 'test/SKIPPED.md'] + cases[k:k + 12])


def killer(number, tests):
    """The name of the test that sees the fault; '' none."""
    for test in tests:
        if number in test.faults and not test.passes(PATIENCE + 10 * test.seconds, MUTANT=str(number)):
            return test.name
    return ''


def search(pool, tests, numbers):
    """(killer, whether a test passes it) by number, or None where a test fails without a fault."""
    for test, good in zip(tests, pool.map(Test.measure, tests)):
        if not good:
            print('FAIL %s: fails without a fault' % test.name)
            return None
    tests = sorted(tests, key=lambda test: test.seconds)
    names = pool.map(lambda n: killer(n, tests), numbers)
    return {n: (name, any(n in test.faults for test in tests)) for n, name in zip(numbers, names)}


def read_reasons():
    """survivors.txt: a line for the fault's key, below it indented lines with the reason, of what is `equal` one."""
    reasons, key = {}, None
    with open(os.path.join(HERE, 'survivors.txt')) as f:
        for line in f:
            if line.startswith('#') or not line.strip():
                continue
            if line[0] != ' ':
                key = line.strip()
                reasons[key] = ''
                continue
            kind = (reasons[key] or line).strip().partition(': ')[0]
            if kind not in KINDS or (kind == 'equal' and reasons[key]):
                sys.exit('mutate: survivors.txt: no word for the reason, or more than a line for `equal`: ' + key)
            reasons[key] += line.strip() + ' '
    return reasons


def judge(faults, found, reasons):
    """Prints a line for each fault, and returns (passed, failed, skipped, how many of these are equal)."""
    passed = failed = skipped = equal = 0
    for n, (name, reached) in sorted(found.items()):
        key = faults[n].key()
        if name and key in reasons and not reasons[key].startswith(SOMETIMES):
            failed += 1
            print('FAIL %d %s: survivors.txt names it, but %s sees it' % (n, key, name))
        elif name and key not in reasons:
            passed += 1
            print('PASS %d %s: by %s' % (n, key, name))
        elif reasons.get(key):
            skipped += 1
            equal += reasons[key].startswith('equal: ')
            print('SKIP %d %s: %s' % (n, key, reasons[key]))
        else:
            failed += 1
            print('FAIL %d %s: %s' % (n, key, 'no test sees it' if reached else 'no test passes it'))
    return passed, failed, skipped, equal


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default=os.path.join(ROOT, 'build'))
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--slice', default='0/1', help='K/N, or a number: that one of SLICES')
    parser.add_argument('--only', default='', help='faults whose line of --list matches this regular expression')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--keep', action='store_true', help='build-mutants stays')
    args = parser.parse_args()
    every = make_faults()
    part, _, parts = args.slice.partition('/')
    parts = int(parts) if parts else SLICES
    faults = {n: fault for n, fault in sliced(every, int(part) % parts, parts).items()
              if re.search(args.only, '%d %s' % (n, fault.key()))}
    is_whole = len(faults) == len(every)
    if args.list:
        for n, fault in faults.items():
            print('%d %s' % (n, fault.key()))
        return 0
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    build = os.path.abspath(args.build)
    copy_tree(build)
    tests = list(units(build)) + list(texts()) + list(checks())
    targets = {os.path.relpath(test.command[0], BUILD) for test in tests if test.command[0].startswith(BUILD)}
    faults = compile_faults(faults, ['kiln'] + sorted(targets))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        found = search(pool, tests, sorted(faults))
    if found is None:
        print('0 passed, 1 failed, 0 skipped')
        return 1
    if not args.keep:
        shutil.rmtree(TREE)
    reasons = read_reasons()
    passed, failed, skipped, equal = judge(faults, found, reasons)
    observable = len(found) - equal
    is_short = is_whole and passed < LEAST * observable
    failed += is_short
    print('%s %d of %d faults that can be observed are seen' % ('FAIL' if is_short else 'NOTE', passed, observable))
    print('%d passed, %d failed, %d skipped' % (passed, failed, skipped))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
