"""run.py: checks of the tree itself, so that no reviewer has to remember the house rules.

    run.py [--build DIR] [CHECK]...

A check is a function `check_NAME(tree)` of the modules below, which yields complaints; one that has
nothing to look at yet raises Skip. Ends with "N passed, N failed, N skipped"."""
import argparse
import sys

import docs
import glossary
import layers
import ops
import rules
import runner
import style
import symbols
import tables
from tree import Skip, Tree

MODULES = [layers, style, symbols, tables, ops, rules, docs, glossary, runner]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build')
    parser.add_argument('names', nargs='*')
    args = parser.parse_args()
    tree = Tree(args.build)
    passed = failed = skipped = 0
    for module in MODULES:
        for name, check in sorted(vars(module).items()):
            if not name.startswith('check_'):
                continue
            if args.names and name[6:] not in args.names and module.__name__ not in args.names:
                continue
            try:
                complaints = list(check(tree))
            except Skip as reason:
                skipped += 1
                print('SKIP %s: %s' % (name[6:], reason))
                continue
            if complaints:
                failed += 1
                print('FAIL %s: %s' % (name[6:], (check.__doc__ or '').strip()))
                print('\n'.join('    ' + c for c in complaints[:40]))
                if len(complaints) > 40:
                    print('    and %d more' % (len(complaints) - 40))
            else:
                passed += 1
    print('%d passed, %d failed, %d skipped' % (passed, failed, skipped))
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
