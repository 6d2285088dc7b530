"""tree.py: the files of the checkout, read once."""
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Skip(Exception):
    """A check has nothing to look at yet."""


def operator_rows(text):
    """The table of operators with its macros expanded, a KILN_OP at the beginning of a line; `text`
    gives the text of a file."""
    table = re.sub(r'^#include "(.*)"$', lambda m: text(m.group(1)), text('ir/ops.def'), flags=re.M)
    shown = subprocess.run(['cc', '-E', '-P', '-x', 'c', '-'], input=table, check=True,
                           capture_output=True, text=True).stdout
    return re.sub(r'\s*(?=\bKILN_OP\()', '\n', re.sub(r'"\s*"', '', shown))


class Tree:
    def __init__(self, build):
        os.chdir(ROOT)
        self.build = build
        try:
            names = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], check=True,
                                   capture_output=True, text=True).stdout.split('\n')
        except (OSError, subprocess.CalledProcessError):  # no git, or an unpacked archive
            names = [os.path.relpath(os.path.join(d, f)) for d, dirs, files in os.walk('.')
                     for f in files if not re.match(r'\./(build(?!-aux)|\.git|.*__pycache__)', d)]
        self.files = sorted(n for n in names if n and os.path.isfile(n))
        self._text = {}

    def find(self, *endings, under=()):
        return [f for f in self.files if f.endswith(endings)
                and (not under or f.startswith(tuple(under)))]

    def text(self, path):
        if path not in self._text:
            with open(path, encoding='utf-8', errors='replace') as f:
                self._text[path] = f.read()
        return self._text[path]

    def lines(self, path):
        return self.text(path).split('\n')

    def artefact(self, name):
        path = os.path.join(self.build, name)
        if not os.path.exists(path):
            raise Skip('%s is not built' % path)
        return path
