"""run_text.py: the text tests.

A file is one or more sections:

    ; run: kiln opt -p dce
    graph(%x : Tensor): ...
    ; expect:
    graph(%x : Tensor): ...

The input goes to the command's standard input, named "-" at its end, or to a file whose path
replaces %s in the command; %S is the folder of the test, also in what is expected. A section without input uses the one
before. Lines that start with ";" are not part of the input. After `; run:` may stand

    ; status: 2        the exit status, 0 if not said
    ; error: words     the error output holds these words
    ; holds: words     the output holds them: for one that is not always the same
    ; env: NAME=value  set for the command
    ; once: why        the output is not a fixed point

The output must be the expected one but for blanks at line ends and empty lines around it. Unless
`once` is said, `kiln opt` run on its own output must give it again, with the passes and without.
KILN_BLESS=1 rewrites the expectations.

    run_text.py --kiln build/kiln [--third] [--keep-env NAME] [FILE or FOLDER]...
"""
import argparse
import concurrent.futures
import difflib
import os
import shlex
import subprocess
import sys
import tempfile
import zlib

DIRECTIVES = ('status', 'error', 'holds', 'env', 'once')


class Section:
    def __init__(self, command, line):
        self.command, self.line = command, line
        self.status, self.error, self.holds, self.env, self.once = 0, [], [], {}, False
        self.input, self.expect, self.has_expect = [], [], False

    def directive(self, key, value):
        if key == 'status':
            self.status = int(value)
        elif key == 'error':
            self.error.append(value)
        elif key == 'holds':
            self.holds.append(value)
        elif key == 'env':
            name, _, text = value.partition('=')
            self.env[name] = text
        else:
            self.once = True


def tidy(lines):
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


def parse(path):
    """Sections, or raises ValueError."""
    sections = []
    with open(path, encoding='utf-8') as f:
        lines = f.read().split('\n')
    if not lines[0].startswith('; run:'):
        raise ValueError('the first line is not "; run: ..."')
    for number, line in enumerate(lines, 1):
        if line.startswith('; run:'):
            sections.append(Section(line[6:].strip(), number))
            continue
        section = sections[-1]
        if line.strip() == '; expect:' and not section.has_expect:
            section.has_expect = True
        elif section.has_expect:
            section.expect.append(line)
        elif line.startswith(';'):
            key, colon, value = line[1:].strip().partition(':')
            if colon and key in DIRECTIVES:
                section.directive(key, value.strip())
        else:
            section.input.append(line)
    for before, section in zip(sections, sections[1:]):
        if not tidy(section.input):
            section.input = before.input
    return sections


def bless(path, outputs):
    """Writes the outputs, by line of their section, as expectations."""
    with open(path, encoding='utf-8') as f:
        lines = f.read().split('\n')
    result, skipping, current = [], False, None
    for number, line in enumerate(lines, 1):
        if line.startswith('; run:'):
            if current is not None and not skipping and outputs.get(current):
                result += ['; expect:'] + outputs[current]
            if result and skipping:
                result.append('')
            current, skipping = number, False
        if skipping:
            continue
        result.append(line)
        if line.strip() == '; expect:':
            result += outputs[current]
            skipping = True
    if not skipping and outputs.get(current):
        result = tidy(result) + ['; expect:'] + outputs[current]
    with open(path, 'w', encoding='utf-8') as f:
        f.write('\n'.join(result).rstrip('\n') + '\n')


class Runner:
    def __init__(self, kiln, keep_env):
        self.kiln = os.path.abspath(kiln)
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith('KILN_') or k in keep_env}
        self.env['KILN_COMPILE'] = 'sync'  # what a call finds does not depend on time
        self.env['PATH'] = os.path.dirname(self.kiln) + ':' + self.env.get('PATH', '')  # for a shell's kiln
        self.blessing = os.environ.get('KILN_BLESS') == '1'

    def execute(self, words, text, folder, env):
        """(status, output lines, error text)"""
        words = [self.kiln if i == 0 and w == 'kiln' else w for i, w in enumerate(words)]
        temporary = None
        if any('%s' in word for word in words):
            temporary = tempfile.NamedTemporaryFile('w', suffix='.ir', encoding='utf-8')
            temporary.write(text)
            temporary.flush()
            words = [w.replace('%s', temporary.name) for w in words]
        elif text.strip():
            words = words + ['-']
        words = [w.replace('%S', folder) for w in words]
        try:
            done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=120,
                                  env={**self.env, **env}, errors='backslashreplace')
        except subprocess.TimeoutExpired:
            return -1, [], 'no answer within 120 s'
        finally:
            if temporary:
                temporary.close()
        return done.returncode, tidy(done.stdout.split('\n')), done.stderr

    def stable(self, section, output, folder):
        """What is wrong when `kiln opt` meets its own output, or None."""
        words = shlex.split(section.command)
        if words[:2] != ['kiln', 'opt'] or section.once or section.status or not output:
            return None
        text = '\n'.join(output) + '\n'
        bare = [w for w in words[:2] if w != '-'] + (['%s'] if '%s' in section.command else [])
        for what, again in (('printed and parsed', bare), ('run a second time', words)):
            status, second, error = self.execute(again, text, folder, section.env)
            if status != 0:
                return '%s: exit status %d\n%s' % (what, status, error)
            graph = [line for line in output if not line.startswith('# ')]  # an analysis printed
            if second != (graph if again is bare else output):
                return '%s: another graph\n%s' % (what, diff(output, second))
        return None

    def run_file(self, path):
        """A list of (name, complaint or None)."""
        results, outputs = [], {}
        try:
            sections = parse(path)
        except ValueError as problem:
            return [(path, str(problem))]
        folder = os.path.dirname(os.path.abspath(path))
        for section in sections:
            name = '%s:%d' % (path, section.line)
            text = '\n'.join(tidy(section.input)) + '\n'
            status, output, error = self.execute(shlex.split(section.command), text, folder,
                                                 section.env)
            output = [line.replace(folder, '%S') for line in output]
            if section.has_expect or not (section.status or section.error or section.holds):
                outputs[section.line] = output
            results.append((name, self.judge(section, status, output, error, folder)))
        if self.blessing:
            bless(path, outputs)
        return results

    def judge(self, section, status, output, error, folder):
        if status != section.status:
            return 'exit status %d, not %d\n%s' % (status, section.status, error)
        for words in section.error:
            if words not in error:
                return 'the error output lacks "%s"\n%s' % (words, error)
        for words in section.holds:
            if words not in '\n'.join(output):
                return 'the output lacks "%s"\n%s' % (words, '\n'.join(output))
        if not self.blessing:
            if not section.has_expect and not (section.status or section.error or section.holds):
                return 'there is no "; expect:"'
            if section.has_expect and output != tidy(section.expect):
                return 'another output\n' + diff(tidy(section.expect), output)
        return self.stable(section, output, folder)


def diff(expected, got):
    return '\n'.join(difflib.unified_diff(expected, got, 'expected', 'got', lineterm=''))


def find(paths):
    files = []
    for path in paths:
        if os.path.isfile(path):
            files.append(path)
        for folder, _, names in os.walk(path):
            files += [os.path.join(folder, n) for n in names if n.endswith(('.ir', '.text'))]
    return sorted(f for f in files if '/data/' not in f)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--kiln', default='build/kiln')
    parser.add_argument('--third', action='store_true', help='a third that is always the same')
    parser.add_argument('--keep-env', action='append', default=[])
    parser.add_argument('paths', nargs='*')
    args = parser.parse_args()
    files = find(args.paths or [os.path.dirname(os.path.relpath(__file__)) or '.'])
    if args.third:
        files = [f for f in files if zlib.crc32(os.path.basename(f).encode()) % 3 == 0]
    runner = Runner(args.kiln, args.keep_env)
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for results in pool.map(runner.run_file, files):
            for name, complaint in results:
                if complaint is None:
                    passed += 1
                else:
                    failed += 1
                    print('FAIL %s: %s' % (name, complaint.rstrip()))
    print('%d passed, %d failed' % (passed, failed))
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
