"""run_added.py: what the pages docs/ADD_*.md tell a newcomer to do works.

A fenced block of a page whose opening line goes on with a path and what to do there is an edit:

    ```c ir/ops/pointwise.def: before UNARY(isnan,        above the one line that begins so
    ```c base/env.c: instead of return KILN_ISA_AVX512;   that line goes
    ```c jit/passes.def: end
    ```c ir/pass/relu_once.c: new

All edits of all pages are applied to a copy of the tree, made of links but for what is changed. What
depends on that is compiled without optimisation, with the commands of the build folder, and linked
with its other objects. Then the blocks that begin with "$" are run in the copy:

    $ kiln ...                     its output must be the rest of the block, as for run_docs.py
    $ meson test -C build NAME     the unit test
    $ ./dev test text              text tests that the pages made
    $ ./dev test meta              the checks of tables, layers and style

    run_added.py --build build [PAGE...]
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap

import run_docs

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EDIT = re.compile(r'^( *)```\w+ (\S+): (new|end|before|instead of)(?: (.*))?\n((?:.*\n)*?)\1```$', re.M)
COMMANDS = re.compile(r'^( *)```\n((?:\1\$ .*\n)+)((?:(?!\1```).*\n)*)\1```$', re.M)
META = ['layers', 'style', 'tables', 'ops']


class Fault(Exception):
    """A page is wrong."""


# -- The copy --

def tracked():
    try:
        return subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], check=True, cwd=ROOT,
                              capture_output=True, text=True).stdout.split('\n')
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive
        return [os.path.relpath(os.path.join(d, f), ROOT) for d, dirs, files in os.walk(ROOT)
                for f in files if not re.match(r'(build(?!-aux)|\.git)', os.path.relpath(d, ROOT))]


def link_tree(copy):
    for name in tracked():
        if name and os.path.isfile(os.path.join(ROOT, name)):
            os.makedirs(os.path.dirname(os.path.join(copy, name)), exist_ok=True)
            os.symlink(os.path.join(ROOT, name), os.path.join(copy, name))
    os.makedirs(copy + '/build')
    if os.path.isdir(ROOT + '/build-deps'):
        os.symlink(ROOT + '/build-deps', copy + '/build-deps')


def edit(copy, name, how, anchor, text):
    """Returns whether the file is new."""
    path = os.path.join(copy, name)
    if how == 'new':
        if os.path.exists(path):
            raise Fault('%s is there already' % name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        lines = []
    else:
        with open(path, encoding='utf-8') as f:
            lines = f.read().split('\n')
        os.unlink(path)
    if how in ('new', 'end'):
        lines = ('\n'.join(lines).rstrip('\n') + '\n' + text).lstrip('\n').split('\n')
    else:
        at = [i for i, line in enumerate(lines) if line.strip().startswith(anchor)]
        if len(at) != 1:
            raise Fault('%s: %d lines begin with "%s"' % (name, len(at), anchor))
        lines[at[0]:at[0] + (how == 'instead of')] = text.rstrip('\n').split('\n')
    with open(path, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines))
    return how == 'new'


def apply_page(copy, text):
    """(changed files, new files)"""
    changed, new = set(), set()
    for indent, name, how, anchor, body in EDIT.findall(text):
        body = textwrap.dedent(''.join(re.sub('^' + indent, '', line, 1) for line in body.splitlines(True))) \
            if how == 'new' else ''.join(re.sub('^' + indent, '', line, 1) for line in body.splitlines(True))
        (new if edit(copy, name, how, anchor, body) else changed).add(name)
    return changed, new


# -- The build --

class Build:
    def __init__(self, folder, copy, changed, new):
        self.folder, self.copy = os.path.abspath(folder), copy
        self.made = {}  # object of the build folder -> ours
        with open(folder + '/compile_commands.json', encoding='utf-8') as f:
            self.commands = {c['output']: c for c in json.load(f)}
        self.originals = set(self.commands)
        self.stale = self.objects_of(changed)
        for name in sorted(n for n in new if n.endswith('.c')):
            self.stale.append(self.add_source(name))

    def ninja(self, *args):
        return subprocess.run(['ninja', '-C', self.folder, '-t', *args], capture_output=True,
                              text=True, check=True).stdout.split('\n')

    def objects_of(self, changed):
        """Objects that depend on the files, but for those of tests."""
        stale, current = set(), None
        wanted = {os.path.relpath(os.path.join(ROOT, n), self.folder) for n in changed}
        for line in self.ninja('deps'):
            if not line.startswith(' '):
                current = line.split(':')[0]
            elif line.strip() in wanted:
                stale.add(current)
        return sorted(o for o in stale if o in self.commands and not re.match(r'(test|bench|examples)/', o))

    def add_source(self, name):
        """A new file is compiled like one of its folder, whose list must have it."""
        top, rest = name.split('/', 1)
        with open(os.path.join(self.copy, top, 'meson.build'), encoding='utf-8') as f:
            if "'%s'" % rest not in f.read():
                raise Fault('%s/meson.build does not list %s' % (top, rest))
        for other, command in self.commands.items():
            if other.startswith('libkiln_%s.a.p/' % top):
                made = 'libkiln_%s.a.p/%s.o' % (top, name.replace('/', '_'))
                self.commands[made] = {**command, 'command': command['command'].replace(
                    command['file'], '../' + name).replace(other, made)}
                return made
        raise Fault('no file of %s is compiled' % top)

    def compile(self, name):
        words, command = [], shlex.split(self.commands[name]['command'])
        command = command[1:] if 'ccache' in command[0] else command
        while command:
            word = command.pop(0)
            if word in ('-MQ', '-MF', '-o'):
                command.pop(0)
            elif word != '-MD' and not re.match(r'-(O|g)', word):
                words.append(word.replace(ROOT, self.copy))
        made = os.path.join(self.copy, 'build', name.replace('/', '@'))
        # GCC 12 without optimisation crashes where it looks at what a format writes.
        words += ['-O0', '-Wno-format-truncation', '-Wno-format-overflow',
                  '-fdiagnostics-color=never', '-o', made]
        done = subprocess.run(words, cwd=self.copy + '/build', capture_output=True, text=True)
        if done.returncode:
            raise Fault('%s:\n%s' % (name, done.stderr[:4000]))
        self.made[name] = made

    def compile_stale(self, names):
        jobs = len(os.sched_getaffinity(0))
        with concurrent.futures.ThreadPoolExecutor(jobs) as workers:
            list(workers.map(self.compile, [n for n in names if n not in self.made]))

    def archive(self, name):
        """The archive with our objects in the place of the old ones."""
        members = subprocess.run(['ar', 't', name], cwd=self.folder, capture_output=True, text=True,
                                 check=True).stdout.split()
        folders = {m.split('/')[0] for m in members}
        added = [n for n in self.made if n not in self.originals and n.split('/')[0] in folders]
        if not any(m in self.made for m in members) and not added:
            return name
        made = os.path.join(self.copy, 'build', name.replace('/', '@'))
        if not os.path.exists(made):
            subprocess.run(['ar', 'qcsT', made, *(self.made.get(m, os.path.join(self.folder, m)) for m in members + added)],
                           cwd=self.folder, capture_output=True, check=True)
        return made

    def link(self, target, out):
        words = [w for w in shlex.split(self.ninja('commands', target)[-2]) if w]
        own = [w for w in words if w.endswith('.o')]
        self.compile_stale([o for o in own if o in self.stale or target.startswith('test/')])
        words = [self.archive(w) if re.match(r'[^/].*\.a$', w) else self.made.get(w, w) for w in words]
        words[words.index('-o') + 1] = out
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise Fault('%s:\n%s' % (target, done.stderr[:4000]))


# -- What stands behind "$" --

class Runner:
    def __init__(self, build, new):
        self.build, self.copy, self.done = build, build.copy, {}
        self.texts = sorted(n for n in new if n.endswith(('.ir', '.text')))
        self.kiln = self.copy + '/build/kiln'

    def once(self, command):
        """What is wrong with what a command does, or None; each is run once."""
        if command not in self.done:
            self.done[command] = self.run(command)
        return self.done[command]

    def run(self, command):
        unit = re.fullmatch(r'meson test -C build (\w+)', command)
        if unit:
            tests = json.loads(subprocess.run(['meson', 'introspect', '--tests', self.build.folder],
                                              capture_output=True, text=True, check=True).stdout)
            found = [t for t in tests if t['name'] == unit.group(1)]
            if len(found) != 1:
                return 'there is no such test'
            target = os.path.relpath(found[0]['cmd'][0], self.build.folder)
            self.build.link(target, self.copy + '/build/' + unit.group(1))
            words = [self.copy + '/build/' + unit.group(1)]
        elif command == './dev test text':
            words = [sys.executable, 'test/run_text.py', '--kiln', self.kiln, *self.texts]
        elif command == './dev test meta':
            words = [sys.executable, 'test/meta/run.py', '--build', 'build', *META]
        else:
            return 'this command is not known here'
        done = subprocess.run(words, cwd=self.copy, capture_output=True, text=True, timeout=300)
        return (done.stdout + done.stderr)[-4000:] if done.returncode else None

    def block(self, commands, want):
        if not commands[0].startswith('kiln '):
            return [(c, self.once(c)) for c in commands]
        got, error = run_docs.run(self.kiln, commands[0])
        if error is None and not run_docs.fits(want, got):
            error = 'prints\n' + got[-3000:]
        return [(commands[0], error)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('pages', nargs='*')
    options = parser.parse_args()
    build_folder = os.path.abspath(options.build)
    os.chdir(ROOT)
    pages = [os.path.relpath(p) for p in options.pages or sorted(glob.glob('docs/ADD_*.md'))]
    passed = failed = 0
    changed, new, texts = set(), set(), {}
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.realpath(folder)
        link_tree(copy)
        try:
            for page in pages:
                with open(page, encoding='utf-8') as f:
                    texts[page] = f.read()
                try:
                    edits = apply_page(copy, texts[page])
                except Fault as fault:
                    raise Fault('%s: %s' % (page, fault))
                changed, new = changed | edits[0], new | edits[1]
            build = Build(build_folder, copy, changed, new)
            build.compile_stale(build.stale)
            build.link('kiln', copy + '/build/kiln')
            os.chdir(copy)
            runner = Runner(build, new)
            for page in pages:
                ran = 0
                for indent, commands, want in COMMANDS.findall(texts[page]):
                    lines = [c.strip()[2:] for c in commands.splitlines()]
                    for command, error in runner.block(lines, want.replace('\n' + indent, '\n')):
                        ran, passed, failed = ran + 1, passed + (not error), failed + bool(error)
                        if error:
                            print('FAIL %s: $ %s\n%s' % (page, command, error))
                if not ran:
                    failed += 1
                    print('FAIL %s shows nothing of what it adds' % page)
        except Fault as fault:
            failed += 1
            print('FAIL %s' % fault)
        os.chdir(ROOT)
    print('%d passed, %d failed' % (passed, failed))
    return 1 if failed else 0


sys.exit(main())
