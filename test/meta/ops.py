"""ops.py: that operators have samples with results that somebody else has computed.

A sample is a line of the FILES in test/data/kernels (by the operator's full name), a case of the
other files there (by its kernel), RUN(kernel) in a unit test of test/unit/runtime, where results are
checked by what they must be, or a use in a model of test/data, whose recorded results `kiln check`
compares. The operators without one stand in test/untested_ops.txt: a list that may only shrink."""
import os
import re
import subprocess

from tree import Skip, operator_rows

LIST = 'test/untested_ops.txt'
FILES = ('ops.txt', 'compose.txt', 'library.txt', 'families.txt', 'inner.txt', 'models.txt',
         'draws.txt', 'torch2.txt')


def entries(tree):
    """Full name -> kernel, of every operator that has a kernel. Variants go with their operator."""
    found = {}
    for entry in re.split(r'^(?=KILN_OP\()', operator_rows(tree.text), flags=re.M):
        name = re.match(r'KILN_OP\(\s*\w+,\s*"([^"(]+)', entry)
        kernel = re.search(r'\bKERNEL\((\w+)\)', entry)
        if name and kernel:
            found[name.group(1).strip()] = kernel.group(1)
    return found


def plain(name):
    """The operator whose variant this is: aten::add_.Tensor is aten::add.Tensor's."""
    base, dot, overload = name.partition('.')
    return base[:-1] + dot + overload if base.endswith('_') and base[-2] != '_' else name


def sampled(tree, ops):
    """The operators that have a sample."""
    names = set()
    for file in FILES:
        with open('test/data/kernels/' + file, encoding='utf-8') as f:
            names |= {line.split('\t')[0].strip() for line in f if '\t' in line}
    kernels = set()
    for path in tree.find('.txt', under=['test/data/kernels/']):
        kernels |= set(re.findall(r'^case (\w+)$', tree.text(path), re.M))
    for path in tree.find('_test.c', under=['test/unit/runtime/']):
        kernels |= set(re.findall(r'\b(?:RUN|run\(f, KILN_BODY_OF)\((\w+)', tree.text(path)))
    names |= {name for name, kernel in ops.items() if kernel in kernels}
    kiln = tree.artefact('kiln')
    for path in tree.find('/case.json', under=['test/data/']):
        shown = subprocess.run([kiln, 'inspect', os.path.dirname(path) + '/model.pt', '--ops'],
                               capture_output=True, text=True)
        names |= set(re.findall(r'^(\w+::\S+)', shown.stdout, re.M))
    return names | {plain(name) for name in names}


def untested(tree):
    ops = entries(tree)
    return ops, sorted(set(ops) - sampled(tree, ops))


def check_op_tests(tree):
    """each operator has a sample, or stands in test/untested_ops.txt; none stands there in vain"""
    if 'test/data/kernels/ops.txt' not in tree.files:
        raise Skip('there is no test/data/kernels/ops.txt yet')
    ops, without = untested(tree)
    listed = [line for line in tree.lines(LIST) if line and not line.startswith('#')]
    for name in sorted(set(without) - set(listed)):
        yield '%s has no sample: add one to test/make/ops.py, or a recorded case to test/data' % name
    for name in sorted(set(listed) - set(without)):
        yield '%s: %s, so strike it from %s' % (
            name, 'it has a sample' if name in ops else 'there is no such operator', LIST)
    print('op_tests: %d of %d operators with a kernel have no sample of their own (%s)'
          % (len(without), len(ops), LIST))
