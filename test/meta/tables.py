"""tables.py: that each entry of a table has its tests."""
import os
import re

from tree import Skip, operator_rows


def entries(tree, path, macro):
    """Names of the entries of a table."""
    text = re.sub(r'/\*.*?\*/', '', tree.text(path), flags=re.S)
    return re.findall(r'^\s*%s\(\s*(\w+)' % macro, text, re.M)


def check_pass_tests(tree):
    """each pass has at least three text tests: it works, it must not act, the odd case"""
    if 'jit/passes.def' not in tree.files:
        raise Skip('there is no jit/passes.def yet')
    passes = entries(tree, 'jit/passes.def', 'KILN_PASS')
    if not passes:
        yield 'no KILN_PASS in jit/passes.def'
    for name in passes:
        count = len(tree.find('.ir', under=['test/passes/%s/' % name]))
        if count < 3:
            yield '%s has %d' % (name, count)
    for folder in sorted({f.split('/')[2] for f in tree.find('.ir', under=['test/passes/'])}):
        if folder not in passes:
            yield 'test/passes/%s tests no pass' % folder


def check_pass_names(tree):
    """a pass is listed once, and pipelines name only passes"""
    if 'jit/passes.def' not in tree.files:
        raise Skip('there is no jit/passes.def yet')
    passes = entries(tree, 'jit/passes.def', 'KILN_PASS')
    for name in sorted({n for n in passes if passes.count(n) > 1}):
        yield '%s stands twice in jit/passes.def' % name
    if 'jit/pipelines.def' in tree.files:
        for name in entries(tree, 'jit/pipelines.def', 'STEP'):
            if name not in passes:
                yield 'jit/pipelines.def names %s' % name


def check_reasons_are_used(tree):
    """each reason is given somewhere, by code or by an operator's entry"""
    if 'ir/reasons.def' not in tree.files:
        raise Skip('there is no ir/reasons.def yet')
    code = '\n'.join(re.sub(r'/\*.*?\*/', '', tree.text(f), flags=re.S)
                     for f in tree.find('.c', '.h') if not f.startswith('test/'))
    lacks = {name for f in tree.find('.def') if f.startswith('ir/ops/')
             for name in re.findall(r'\bLACKS\((\w+)\)', tree.text(f))}
    for name in entries(tree, 'ir/reasons.def', 'KILN_REASON'):
        if name not in lacks and not re.search(r'\bKILN_REASON_%s\b' % name, code):
            yield name


def check_flags_are_used(tree):
    """each flag is read by code that is no test"""
    code = '\n'.join(re.sub(r'/\*.*?\*/', '', tree.text(f), flags=re.S)
                     for f in tree.find('.c', '.h') if not f.startswith('test/'))
    for name in entries(tree, 'base/flags.def', 'KILN_FLAG'):
        if not re.search(r'\bflags(\.|->)%s\b' % name, code):
            yield name


def check_text_tests_begin_with_a_command(tree):
    """a text test opens with "; run:" and states what must come out"""
    for path in tree.find('.ir', under=['test/']):
        if path.startswith('test/data/'):
            continue
        text = tree.text(path)
        if not text.startswith('; run: '):
            yield '%s does not open with "; run: "' % path
        elif not re.search(r'^; (expect:|status:|error:)', text, re.M):
            yield '%s expects nothing' % path


def check_recorded_cases(tree):
    """each folder of test/data is a whole case, and the skips give a reason and an issue"""
    cases = tree.find('case.json', under=['test/data/'])
    if not cases:
        raise Skip('there are no cases in test/data yet')
    for path in cases:
        folder = os.path.dirname(path)
        if folder + '/model.pt' not in tree.files:
            yield '%s has no model.pt' % folder
    for line in tree.lines('test/SKIPPED.md'):
        cells = [c.strip() for c in line.strip('|').split('|')]
        if line.startswith('|') and (len(cells) != 3 or not all(cells)):
            yield 'test/SKIPPED.md: %s' % line


def check_op_columns(tree):
    """each column of the operators' tables is explained, filled, and read by code that is no test"""
    declared = re.findall(r'^#define (\w+)\(', tree.text('ir/ops_columns.h'), re.M)
    tables = operator_rows(tree.text)
    code = '\n'.join(tree.text(f) for f in tree.find('.c', '.h')
                     if not f.startswith('test/') and f != 'ir/ops_columns.h')
    code = re.sub(r'\S+ = e->\w+;', '', code)  # the registry hands it on
    for path, text in [('ir/op.h', tree.text('ir/op.h')),
                       ('docs/ADD_AN_OP.md', tree.text('docs/ADD_AN_OP.md'))]:
        for name in declared:
            if not re.search(r'\b%s\b' % name, text):
                yield '%s does not explain %s' % (path, name)
    used = set(re.findall(r'\b([A-Z_]+)\(', tables)) - {'KILN_OP'}
    for name in sorted(set(declared) - used):
        yield 'no operator has %s' % name
    for name in sorted(used - set(declared)):
        yield 'ir/ops_columns.h does not define %s' % name
    for name in declared:
        field = re.search(r'#define %s\([^)]*\)[ \\\n]+\.(\w+) =' % name, code)
        if not field:
            yield 'no layer reads %s' % name
        elif not re.search(r'(\b(op|kernel|inner|e)->|(kernel|\])\.)%s\b(?! =[^=])' % field.group(1),
                           code):
            yield '%s: nobody asks for %s' % (name, field.group(1))


# Who may know operators by their names: what reads text, and what asks overload resolution.
READS_NAMES = ('ir/parse.c', 'ir/graph.c', 'ir/match.c', 'api/builder_block.c',
               'api/builder_model.c')


def check_operators_by_id(tree):
    """behind the frontend an operator is its id: no code has its name as a string"""
    for path in tree.find('.c', '.h', '.inc'):
        if path.startswith(('frontend/', 'test/', 'bench/', 'examples/', 'tools/')) \
                or path in READS_NAMES:
            continue
        code = re.sub(r'/\*.*?\*/', lambda m: '\n' * m.group().count('\n'), tree.text(path),
                      flags=re.S)
        for number, line in enumerate(code.split('\n'), 1):
            for name in re.findall(r'"((?!c10)[a-z]\w*::\w+(?:\.\w+)?)"', line):
                yield '%s:%d has "%s": use its KILN_OP_ id, or a column of the table' % (
                    path, number, name)
