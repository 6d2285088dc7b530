"""style.py: sizes, opening comments, loose ends."""
import re

MOST_LINES = 800
MOST_LINES_OF_C = 700
MOST_COLUMNS = 100
MOST_FUNCTION_LINES = 80  # about 60 is the aim


def c_files(tree):
    return tree.find('.c', '.h')


def check_file_length(tree):
    """a file has at most 800 lines, one of C 700"""
    for path in tree.find('.c', '.h', '.def', '.inc', '.py', '.build') + ['dev']:
        count = tree.text(path).count('\n')
        if count > (MOST_LINES_OF_C if path.endswith(('.c', '.h')) else MOST_LINES):
            yield '%s has %d lines' % (path, count)


def check_columns(tree):
    """a line of C has at most 100 columns"""
    for path in c_files(tree):
        for number, line in enumerate(tree.lines(path), 1):
            if len(line) > MOST_COLUMNS:
                yield '%s:%d has %d columns' % (path, number, len(line))


def check_function_length(tree):
    """a function fits a screen: about 60 lines, 80 at most"""
    for path in c_files(tree):
        start = None
        for number, line in enumerate(tree.lines(path), 1):
            if re.match(r'[A-Za-z_].*\)\s*\{$|\s+.*\)\s*\{$', line) and start is None \
                    and (not line[0].isspace()):
                start = number
            elif start is None and line == '{':
                start = number
            elif line.startswith('}'):
                if start is not None and line == '}' and number - start > MOST_FUNCTION_LINES:
                    yield '%s:%d: a function of %d lines' % (path, start, number - start + 1)
                start = None


PROTECTED = re.compile(r'^[^#\n*]*\b(?:KILN_PROTECT|KILN__BUILDER_STEP)\(', re.M)
MAKES_SCOPES = ['base/scope.h', 'api/builder.h', 'codegen/llvm/llvm.c']


def check_scopes(tree):
    """setjmp stands in KILN_PROTECT, which ends its function: so no local is read after a jump"""
    for path in c_files(tree):
        if path in MAKES_SCOPES:
            continue
        text = tree.text(path)
        if re.search(r'\bsetjmp\(', text):
            yield '%s calls setjmp' % path
        for start in PROTECTED.finditer(text):
            end, depth = start.end(), 1
            while depth > 0 and end < len(text):
                depth += {'(': 1, ')': -1}.get(text[end], 0)
                end += 1
            if not re.match(r';\s*\}', text[end:]):
                yield '%s:%d: a statement follows' % (path, text.count('\n', 0, start.end()) + 1)


def check_opening_comment(tree):
    """a file opens with a comment that says what it is for"""
    for path in c_files(tree):
        if not tree.text(path).startswith('/* '):
            yield path
    for path in tree.find('.py'):
        if not re.match(r'(#!.*\n)?"""', tree.text(path)):
            yield path


def check_todo(tree):
    """a TODO names its issue"""
    pattern = re.compile(r'\b(TO' r'DO|FIX' r'ME|XX' r'X)\b')
    for path in tree.find('.c', '.h', '.def', '.py', '.md', '.build') + ['dev']:
        for number, line in enumerate(tree.lines(path), 1):
            if pattern.search(line) and not re.search(r'#\d+|\bissue\b', line):
                yield '%s:%d: %s' % (path, number, line.strip())


def check_machine_paths(tree):
    """no path of a machine stands in the tree"""
    pattern = re.compile(r'(^|[^A-Za-z_.])/(work|root|home)/')
    for path in tree.files:
        if path.startswith('test/data/') or path.endswith(('.pt', '.bin', '.npy')):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            if pattern.search(line) and 'pattern = re.compile' not in line:
                yield '%s:%d: %s' % (path, number, line.strip())


def check_tabs_and_ends(tree):
    """no tabs in C, no blanks at line ends, a newline at the end of a file"""
    for path in tree.find('.c', '.h', '.def', '.py', '.build', '.map') + ['dev', '.ci/run']:
        text = tree.text(path)
        if text and not text.endswith('\n'):
            yield '%s does not end with a newline' % path
        for number, line in enumerate(text.split('\n'), 1):
            if line != line.rstrip() or '\t' in line:
                yield '%s:%d' % (path, number)


def check_include_guards(tree):
    """a header says #pragma once behind its head, or its comment says that it is included more than
    once; a public one, of which an embedder may have copies, has a guard KILN_..._H"""
    for path in tree.find('.h'):
        if path.startswith(('test/', 'bench/')):
            continue
        text = tree.text(path)
        if path.startswith('include/'):
            m = re.search(r'^#ifndef (KILN_\w+_H)\n#define (\w+)$', text, re.M)
            if not m or m.group(1) != m.group(2):
                yield '%s: %s' % (path, m.group(0) if m else 'no guard')
            continue
        head = text[:text.find('*/')]
        if (not text.startswith('*/\n#pragma once\n', len(head))
                and not re.search(r'[Ii]nclude[ds]?\b|part of', head)):
            yield '%s: no #pragma once behind its head' % path


def check_units_are_registered(tree):
    """every *_test.c stands in its folder's meson.build"""
    for path in tree.find('_test.c', under=['test/unit/']):
        folder, name = path.rsplit('/', 1)
        build = folder + '/meson.build'
        if build not in tree.files or not re.search(
                r"['/ ]%s(_test\.c)?'" % re.escape(name[:-len('_test.c')]), tree.text(build)):
            yield path


def check_kernels_are_run_one_way(tree):
    """only runtime/kernel.h runs a kernel; a body hands at most its own arguments on to another"""
    for path in c_files(tree):
        if path.startswith('test/') or path == 'runtime/kernel.h':
            continue
        for number, line in enumerate(tree.lines(path), 1):
            run = re.search(r'\bkiln__kernel_\w+\((?!call, args, outs\)|(const )?(struct )?kiln_call \*)', line)
            if run or re.search(r'\bcall->(kernel|arg_count) = |kernel(->|\.)body\(', line):
                yield '%s:%d: %s' % (path, number, line.strip())
