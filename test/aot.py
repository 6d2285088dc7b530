"""aot.py: programs that `kiln compile` makes of recorded cases give the bits of `kiln run`.

Each case is compiled with its first arguments, linked with test/aot/runner.c, and called three times beside the
library (state included); every fourth is made twice, and must come out the same. What is refused is refused with one of the sentences below; any other one fails.

    aot.py --build build [--eighth] [--set NAME=VALUE] [--symbolic] [--general] [CASE...]
"""
import argparse
import concurrent.futures
import filecmp
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What has no place in a program: as docs/aot.md tells.
REFUSED = [
    (r'quantised, sparse (and|or) nested tensors', 'tensors with a structure beside their elements'),
    (r'the result holds a (str|complex|Device|Enum|dict|list|\w+Object)', 'a result that is no tensor or number'),
    (r'a value that is no tensor, number, text or container of such', 'a generator or the like among attributes'),
    (r'type \S+ has no place in a program', 'an interface'),
]


def environment(settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith('KILN_')}
    env['KILN_COMPILE_TIME'] = '0'  # what is compiled does not depend on what else the machine does
    return dict(env, **{'KILN_' + s.split('=')[0].upper(): s.split('=')[1] for s in settings})


class Builder:
    def __init__(self, build, settings, options):
        self.build, self.settings, self.options = os.path.abspath(build), settings, options
        archive = os.path.join(self.build, 'libkiln-aot.a')
        names = subprocess.run(['nm', archive], capture_output=True, text=True).stdout
        self.flags = ['-O1', '-std=gnu17', '-Wall', '-Werror', '-I' + os.path.join(ROOT, 'include')]
        self.flags += ['-fsanitize=address,undefined'] if '__asan' in names else []
        self.archive = archive

    def compile(self, model, inputs, folder, fresh=0):
        """An error text, or None. Memory that was never set holds what `fresh` says."""
        made = subprocess.run(
            [os.path.join(self.build, 'kiln'), 'compile', model, '--inputs', inputs, '-o', folder, '--name', 'model',
             *self.options], env=dict(environment(self.settings), MALLOC_PERTURB_=str(fresh)), capture_output=True, text=True, timeout=300)
        return made.stderr if made.returncode else None

    def differs(self, model, inputs, folder):
        """The ending of a file that is not the same when it is made again; None: all are."""
        again = os.path.join(folder, 'again')
        error = self.compile(model, inputs, again, fresh=85)
        same = [not error and filecmp.cmp(*(os.path.join(f, 'model.' + e) for f in (folder, again)), shallow=False)
                for e in ('h', 'o', 'weights')]
        return next((e for e, s in zip(('h', 'o', 'weights'), same) if not s), None)

    def link(self, folder, source, *libraries):
        program = os.path.join(folder, 'runner')
        subprocess.run(['cc', *self.flags, '-I' + folder, source, os.path.join(folder, 'model.o'), self.archive,
                        *libraries, '-Wl,--gc-sections', '-lm', '-lpthread', '-o', program], check=True)
        return program

    def run(self, program, folder, model, inputs):
        settings = ['compile=sync'] + self.settings
        settings += ['fusion_strategy=DYNAMIC,1'] if '--symbolic' in self.options else []
        done = subprocess.run([program, model, os.path.join(folder, 'model.weights'), '3', *settings, '--', inputs],
                              env=environment([]), capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr


def try_case(builder, case):
    """('ok' or 'skip' or 'fail', words)"""
    model, inputs = os.path.join(case, 'model.pt'), os.path.join(case, 'inputs_0.pt')
    folder = tempfile.mkdtemp(prefix='kiln-aot-')
    try:
        error = builder.compile(model, inputs, folder)
        if error:
            reasons = [reason for pattern, reason in REFUSED if re.search(pattern, error)]
            return ('skip', reasons[0]) if reasons else ('fail', error)
        other = builder.differs(model, inputs, folder) if zlib.crc32(case.encode()) % 4 == 0 else None
        if other:
            return 'fail', 'made twice, model.%s is another' % other
        program = builder.link(folder, os.path.join(ROOT, 'test/aot/runner.c'), '-L' + builder.build, '-lkiln',
                               '-Wl,-rpath,' + builder.build)
        code, output = builder.run(program, folder, model, inputs)
        if code == 3 and re.search(r'^call [1-9]\d*: \d+ inputs and \d+ outputs', output):
            return 'skip', 'a result that grows from call to call'
        return ('fail', output) if code else ('ok', '')
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        return 'fail', str(error)
    finally:
        shutil.rmtree(folder)


def answers(case):
    """The method is forward, has recorded arguments, and does not raise on them."""
    with open(os.path.join(case, 'case.json')) as f:
        about = json.load(f)
    return (about.get('method', 'forward') == 'forward' and os.path.exists(os.path.join(case, 'model.pt'))
            and os.path.exists(os.path.join(case, 'inputs_0.pt')) and os.path.exists(os.path.join(case, 'expected_0.pt')))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', required=True)
    parser.add_argument('--set', action='append', default=[])
    for option in ('--eighth', '--symbolic', '--general', '-v'):
        parser.add_argument(option, action='store_true')
    parser.add_argument('cases', nargs='*')
    args = parser.parse_args()
    cases = args.cases or sorted(os.path.dirname(p) for p in glob.glob(os.path.join(ROOT, 'test/data/*/*/case.json')))
    cases = [c for c in cases if answers(c)]
    if args.eighth:
        cases = [c for c in cases if zlib.crc32(os.path.basename(c).encode()) % 8 == 0]
    options = [o for o in ('--symbolic', '--general') if getattr(args, o[2:])]
    settings = [part for s in args.set for part in ('--set', s)]
    builder = Builder(args.build, args.set, options + settings)
    passed = failed = skipped = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, (what, words) in zip(cases, pool.map(lambda c: try_case(builder, c), cases)):
            passed, failed, skipped = passed + (what == 'ok'), failed + (what == 'fail'), skipped + (what == 'skip')
            if what == 'fail' or args.v:
                print('%s %s: %s' % (what.upper(), os.path.basename(case), words.strip()))
    print('%d passed, %d failed, %d skipped' % (passed, failed, skipped))
    return failed > 0 or passed == 0


if __name__ == '__main__':
    raise SystemExit(main())
