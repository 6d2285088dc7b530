"""runner.py: the test runners themselves must see failures."""
import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile

from tree import ROOT

GOOD = '; run: sed s/a/b/\nxax\n; expect:\nxbx\n'
BAD = '; run: sed s/a/b/\nxax\n; expect:\nxax\n'


def run_text(folder, **env):
    done = subprocess.run([sys.executable, 'test/run_text.py', folder], capture_output=True,
                          text=True, env={**os.environ, **env})
    return done.returncode, done.stdout


def check_run_text(tree):
    """test/run_text.py tells right from wrong, and rewrites only when asked"""
    cases = [
        (GOOD, 1, 0),
        (BAD, 0, 1),
        (GOOD + '; run: sed s/x/y/\n; expect:\nyax\n', 2, 0),  # shares the input
        ('; run: false\n; status: 1\n', 1, 0),
        ('; run: false\n; expect:\n', 0, 1),
        ('; run: true\n', 0, 1),  # expects nothing
        ('; run: sh -c "echo no such file >&2; exit 2"\n; status: 2\n; error: no such\n', 1, 0),
        ('; run: sh -c "echo other >&2; exit 2"\n; status: 2\n; error: no such\n', 0, 1),
        ('; run: sh -c "echo $A"\n; env: A=7\n; expect:\n7\n', 1, 0),
        ('; run: cat %s\nin\n; expect:\nin\n', 1, 0),
        ('no command\n', 0, 1),
    ]
    for text, passed, failed in cases:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'case.ir')
            with open(path, 'w') as f:
                f.write(text)
            status, out = run_text(folder)
            if '%d passed, %d failed' % (passed, failed) not in out or (status == 0) != (not failed):
                yield '%r gave %r' % (text, out)
            with open(path) as f:
                if f.read() != text:
                    yield '%r was rewritten' % text
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'case.ir')
        with open(path, 'w') as f:
            f.write(BAD)
        run_text(folder, KILN_BLESS='1')
        with open(path) as f:
            if f.read() != GOOD:
                yield 'KILN_BLESS=1 did not rewrite %r' % BAD


def check_count_units(tree):
    """test/count_units.py counts crashes, empty programs and failures as failures"""
    ok = '[==========] Running 3 test(s).\n[  PASSED  ] 3 test(s).\n'
    bad = '[==========] Running 3 test(s).\n[  PASSED  ] 1 test(s).\n[  FAILED  ] 2 test(s), x\n'
    skipping = '[==========] x\n[  PASSED  ] 2 test(s).\n[  SKIPPED ] 1 test(s), listed below:\n'
    none = '[==========] Running 0 test(s).\n[  PASSED  ] 0 test(s).\n'
    cases = [
        ([('OK', ok)], '3 passed, 0 failed, 0 skipped'),
        ([('OK', ok), ('FAIL', bad)], '4 passed, 2 failed, 0 skipped'),
        ([('FAIL', '[==========] Running 3 test(s).\n')], '0 passed, 1 failed, 0 skipped'),
        ([('TIMEOUT', '')], '0 passed, 1 failed, 0 skipped'),
        ([('OK', skipping)], '2 passed, 0 failed, 1 skipped'),
        ([('OK', none)], '0 passed, 1 failed, 0 skipped'),
        ([('OK', '')], '1 passed, 0 failed, 0 skipped'),  # a script, not cmocka
        ([], '0 passed, 1 failed, 0 skipped'),
    ]
    for tests, wanted in cases:
        with tempfile.NamedTemporaryFile('w', suffix='.json') as log:
            for result, output in tests:
                log.write(json.dumps({'name': 't', 'result': result, 'stdout': output}) + '\n')
            log.flush()
            out = subprocess.run([sys.executable, 'test/count_units.py', log.name],
                                 capture_output=True, text=True).stdout
            if not out.endswith(wanted + '\n'):
                yield '%r gave %r' % (tests, out)


def check_run_added(tree):
    """test/run_added.py refuses pages whose places are not in the tree"""
    cases = ['```c base/status.c: before nothing begins so\nint x;\n```\n',
             '```c base/status.c: new\nint x;\n```\n',
             '```c base/status.c: instead of }\nint x;\n```\n',  # many
             '```c ir/pass/lost.c: new\nint x;\n```\n']  # in no meson.build
    for text in cases:
        with tempfile.NamedTemporaryFile('w', suffix='.md') as page:
            page.write(text)
            page.flush()
            done = subprocess.run([sys.executable, 'test/run_added.py', '--build', tree.build, page.name],
                                  capture_output=True, text=True)
        if not done.stdout.endswith('0 passed, 1 failed\n') or done.returncode != 1:
            yield '%r gave %r' % (text, done.stdout + done.stderr)


class Planted:
    """A tree of these files alone."""

    def __init__(self, content):
        self.content = content
        self.files = sorted(content)

    def find(self, *endings, under=()):
        return [f for f in self.files if f.endswith(endings)
                and (not under or f.startswith(tuple(under)))]

    def text(self, path):
        return self.content.get(path, '')

    def lines(self, path):
        return self.text(path).split('\n')


def check_meta_sees_faults(tree):
    """the checks of layers and style find what is planted"""
    import layers
    import style

    planted = Planted({
        'base/a.c': '#include "ir/ir.h"\n#include <llvm-c/Core.h>\n#include "b.h"\n'
                    '#include "ir/internal.h"\n#include <nobody.h>\n' + 'int x;  \n'
                    + 'x' * 101 + '\nvoid f(void) {\n' + '  g();\n' * 90 + '}\n'
                    + '/* TO' 'DO later */\n',
        'ir/run.c': '/* x */\nreturn kiln__kernel_add(call, own, outs);\nc->call->kernel = k;\n'
                    's = op->kernel.body(call, args, outs);\n'
                    'KILN_PROTECT(f(x, g(y)));\n  h();\nif (setjmp(jump)) h();\n',
        'ir/internal.h': '/* x */\n', 'base/b.h': '/* x */\n\n#pragma once\n',
        'include/kiln/x.h': '/* x */\n#pragma once\n'})
    for check, least in [(layers.check_layers, 3), (layers.check_third_parties, 2),
                         (layers.check_internal_headers, 1), (layers.check_includes_exist, 1),
                         (style.check_columns, 1), (style.check_function_length, 1),
                         (style.check_opening_comment, 1), (style.check_todo, 1),
                         (style.check_tabs_and_ends, 1), (style.check_include_guards, 3),
                         (style.check_kernels_are_run_one_way, 3),
                         (style.check_scopes, 2)]:
        count = len(list(check(planted)))
        if count < least:
            yield '%s found %d of %d' % (check.__name__, count, least)


def check_meta_sees_table_faults(tree):
    """the checks of tables, rules and symbols find what is planted"""
    import rules
    import symbols
    import tables

    columns = '#define KERNEL(fn)\n#define LOST(fn)\n#define DEAF(fn)\n#define DUMB(fn)\n'
    planted = Planted({
        'ir/ops_columns.h': columns, 'ir/op.h': columns, 'docs/ADD_AN_OP.md': columns[:-17],
        'ir/ops.def': 'KILN_OP(a, "a", KERNEL(a) LOST(a) DEAF(a) NEW(a))',
        'ir/registry.c': '#define KERNEL(fn) .body = fn,\n#define DEAF(fn) .deaf = fn,\n'
                         'op->body = e->body;\nop->deaf = e->deaf;\ncall(op->body);\n',
        'test/a.c': 'call(op->deaf);\n'})
    found = list(tables.check_op_columns(planted))
    for fault in ['docs/ADD_AN_OP.md does not explain DUMB', 'no operator has DUMB',
                  'ir/ops_columns.h does not define NEW', 'no layer reads LOST',
                  'no layer reads DUMB', 'DEAF: nobody asks for deaf']:
        if fault not in found:
            yield 'missed: %s' % fault
    if len(found) != 6:
        yield 'too many: %s' % found
    planted = Planted({'ir/reasons.def': 'KILN_REASON(used, "a")\nKILN_REASON(lost, "b")\n',
                       'base/flags.def': 'KILN_FLAG(on, BOOL)\nKILN_FLAG(deaf, BOOL)\n',
                       'jit/passes.def': 'KILN_PASS(dce, "a")\n',
                       'jit/pipelines.def': 'KILN_PIPELINE(a, "b",\n    STEP(dce)\n    STEP(cse)\n)\n',
                       'jit/a.c': 'tell(KILN_REASON_used); /* KILN_REASON_lost */ ask(env->flags.on);'})
    for check, wanted in [(tables.check_reasons_are_used, ['lost']),
                          (tables.check_flags_are_used, ['deaf']),
                          (tables.check_pass_names, ['jit/pipelines.def names cse'])]:
        if list(check(planted)) != wanted:
            yield '%s: %s' % (check.__name__, list(check(planted)))
    planted = Planted({'jit/a.c': '/* "aten::mm" */\nreturn kiln_str_is(name, "aten::add.Tensor");\n'
                                  'fail("prim::If takes a bool");\nstarts(name, "aten::");\n',
                       'frontend/a.c': 'strcmp(name, "aten::mm")'})
    found = list(tables.check_operators_by_id(planted))
    if len(found) != 1 or not found[0].startswith('jit/a.c:2'):
        yield 'operators by name: %s' % found
    rows = ['add_int, a, "x: int | int aten::add(x, 0) => x"',
            'add_int, b, "x: int | int aten::add(x, 1) => x"',  # not so
            'add_int, c, "x: int | int aten::sub(x, 0) => x"',  # another's
            'add_int, d, "x: int | int aten::add(x, 1) => int aten::add(x, 1)"',  # nothing
            'add_int, e, ""']
    found = list(rules.faults(tree.artefact('kiln'),
                              ''.join('    RULE(%s),\n' % row for row in rows), 'peephole',
                              {'add_int': 'aten::add'}))
    for fault in ['(x, 1) => x" becomes', 'does not show it', 'needs no rule', 'has no example']:
        if not any(fault in f for f in found):
            yield 'missed: %s' % fault
    if len(found) != 4:
        yield 'too many: %s' % found
    planted = Planted({'ir/a.c': 'void kiln_a(void) { kiln_own(); }\nvoid kiln_own(void) {}\n'
                                 'void kiln_lost(void) {} /* kiln_lost() */\n',
                       'test/a.c': 'kiln_lost();'})
    objects = {'a.o': ({'kiln_a', 'kiln_own', 'kiln_lost', 'kiln_hook'}, set()),
               'b.o': (set(), {'kiln_a'})}
    found = list(symbols.unused(planted, objects, {'kiln_hook'}))
    if found != ['kiln_lost']:
        yield 'functions without a user: %s' % found


def check_meta_sees_glossary_faults(tree):
    """the checks of the glossary find what is planted"""
    import glossary

    planted = Planted({
        glossary.PAGE: '| word | meaning | names | where |\n| --- | --- | --- | --- |\n'
                       '| unit | a | `kiln_unit*` | `ir/` |\n| lane | b | `kiln_lane` | `ir/` |\n'
                       '| lane | c | | `ir/` |\n',
        'ir/a.c': '/* kiln_pool_unit */ kiln_unit_create(kiln_pool_unit, recipe_of, kiln_units);\n'})
    names = list(glossary.check_glossary_names(planted))
    for fault in ['lane: there is no kiln_lane', 'lane has no name', 'lane stands twice',
                  'guard is missing']:
        if not any(n.startswith(fault) for n in names):
            yield 'missed: %s' % fault
    found = list(glossary.check_words_have_one_meaning(planted))
    if len(found) != 1 or 'kiln_pool_unit' not in found[0]:
        yield 'meanings: %s' % found
    found = list(glossary.check_words_are_gone(planted))
    if len(found) != 1 or 'recipe_of' not in found[0]:
        yield 'gone: %s' % found


FAULTY = '''int small(int x) {
  while (x > 2) x -= 2;
  return x;
}
int five(int x) {
  if (x == 5) return 1;
  return 0;
}
int main(void) { return small(9) == 1 && five(5) == 1 && five(4) == 0 ? 0 : 1; }
'''


MUTATE = os.path.join(ROOT, 'test', 'mutate')


def load_mutate():
    """test/mutate/run.py; its folder is where it finds plant.py"""
    if MUTATE not in sys.path:
        sys.path.append(MUTATE)
    spec = importlib.util.spec_from_file_location('mutate', os.path.join(MUTATE, 'run.py'))
    mutate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(mutate)
    return mutate


def check_survivors(tree):
    """test/mutate/survivors.txt names faults that are planted: after a change to their lines they may be others"""
    mutate = load_mutate()
    planted = {fault.key() for fault in mutate.make_faults().values()}
    for key in mutate.read_reasons().keys() - planted:
        yield 'not planted: ' + key


def check_mutate(tree):
    """test/mutate sees which faults a test sees, and fails for one that none sees and that has no reason"""
    mutate = load_mutate()
    import plant
    chosen = dict(enumerate(plant.choose('a.c', FAULTY, 10)))
    border = [fault.key() for fault in chosen.values() if fault.rule == 'border']
    if border != ['a.c: border: x >= 2 for x > 2']:
        yield 'borders planted: %s' % border
        return
    with tempfile.TemporaryDirectory() as built:
        with open(os.path.join(built, 'a.c'), 'w') as f:
            f.write(plant.planted(FAULTY, list(chosen.items())))
        program = os.path.join(built, 'a')
        subprocess.run(['cc', '-I', MUTATE, '-o', program, f.name], check=True)
        test = mutate.Test('a', [program], built)
        if not test.measure() or test.faults != set(chosen):
            yield 'passed: %s of %s' % (test.faults, set(chosen))
        found = {n: (mutate.killer(n, [test]), True) for n in chosen}
    seen = len(chosen) - 1
    other = next(fault.key() for fault in chosen.values() if fault.rule != 'border')
    for reasons, expected in [({}, (seen, 1, 0, 0)), ({border[0]: 'open: why'}, (seen, 0, 1, 0)),
                              ({border[0]: 'equal: why'}, (seen, 0, 1, 1)), ({border[0]: ''}, (seen, 1, 0, 0)),
                              ({border[0]: 'time: why', other: 'open: why'}, (seen - 1, 1, 1, 0)),
                              ({border[0]: 'open: why', other: 'race: why'}, (seen - 1, 0, 2, 0))]:
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            got = mutate.judge(chosen, found, reasons)
        if got != expected or ('FAIL' in told.getvalue()) != bool(expected[1]):
            yield '%s gave %s, not %s: %s' % (reasons, got, expected, told.getvalue())
