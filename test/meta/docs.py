"""docs.py: that the written pages speak of what exists."""
import os
import re
import subprocess
import sys

FOLDERS = ('api', 'base', 'bench', 'build-aux', 'codegen', 'docs', 'examples', 'frontend', 'guards',
           'include', 'ir', 'jit', 'profiler', 'runtime', 'test', 'tools')
FILES = {'', '.clang-format', '.clang-tidy', '.gitignore', 'LICENSE', 'README.md', 'dev', 'meson.build',
         'meson_options.txt'}  # at the top


def pages(tree):
    return [p for p in tree.find('.md') if not p.startswith('test/data/')]


def check_links(tree):
    """a link to a file of the tree leads somewhere"""
    for path in pages(tree):
        prose = re.sub(r'^```.*?^```', '', tree.text(path), flags=re.M | re.S)
        for target in re.findall(r'\]\(([^)#]+)(?:#[^)]*)?\)', prose):
            if '://' in target:
                continue
            if not os.path.exists(os.path.join(os.path.dirname(path), target)):
                yield '%s: %s' % (path, target)


def check_paths(tree):
    """a path in backticks that begins with a folder of ours exists"""
    for path in pages(tree):
        for name in re.findall(r'`([\w.-]+/[\w./-]*)`', tree.text(path)):
            if name.split('/')[0] in FOLDERS and not os.path.exists(name):
                yield '%s: %s' % (path, name)


def check_names_exist(tree):
    """a function of ours in backticks stands in the sources, or in a block of the page, which adds it"""
    sources = '\n'.join(tree.text(p) for p in tree.find('.h', '.c', '.def', '.py', '.build'))
    named = set(re.findall(r'\bkiln_\w+', sources))
    for path in pages(tree):
        blocks = '\n'.join(re.findall(r'^```.*?^```|^    .*?$', tree.text(path), flags=re.M | re.S))
        for name in re.findall(r'`(kiln_\w+)(?:\(\))?`', tree.text(path)):
            if name not in named and name not in blocks and not name.startswith('kiln__kernel_'):  # of macros
                yield '%s: %s' % (path, name)


def check_map(tree):
    """each folder at the top of the tree has a row in the map"""
    rows = re.findall(r'^\| `(?:include/)?([\w-]+)/', tree.text('docs/ARCHITECTURE.md'), re.M)
    others = {'docs', 'include'}
    listed = subprocess.run(['git', 'ls-files'], capture_output=True, text=True).stdout.split('\n')
    tops = {name.split('/')[0] for name in listed if '/' in name and not name.startswith('.')}
    for name in sorted(tops - set(rows) - others):
        yield name
    for name in listed:
        if '/' not in name and os.path.exists(name) and name not in FILES:
            yield name


def check_picture(tree):
    """the pictures are those of the page's tables"""
    done = subprocess.run([sys.executable, 'bench/peers/plot.py', '--check'], capture_output=True,
                          text=True)
    if done.returncode:
        yield done.stderr.strip()


def check_flags_exist(tree):
    """a KILN_X=... in a page is a flag of base/flags.def, or one that the page adds"""
    row = r'^ *KILN_FLAG\((\w+)'
    listed = re.findall(row, tree.text('base/flags.def'), re.M) + ['bless']  # of test/run_text.py
    for path in pages(tree):
        known = {n.upper() for n in listed + re.findall(row, tree.text(path), re.M)}
        for name in re.findall(r'\bKILN_([A-Z_]+)=', tree.text(path)):
            if name not in known:
                yield '%s: KILN_%s' % (path, name)
