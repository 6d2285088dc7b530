"""count_units.py LOG: counts the cmocka cases of meson's testlog.json, prints what failed, and
ends with "N passed, N failed, N skipped". A program that crashed, timed out or counted nothing is
one failure."""
import json
import re
import sys

passed = failed = skipped = 0
try:
    lines = open(sys.argv[1]).read().splitlines()
except FileNotFoundError:
    lines = []
for line in lines:
    test = json.loads(line)
    output = test.get('stdout', '') + test.get('stderr', '')
    sums = {word: sum(map(int, re.findall(r'\[  %s +\] (\d+) test\(s\)' % word, output)))
            for word in ('PASSED', 'FAILED', 'SKIPPED')}
    if test['result'] == 'SKIP':
        skipped += 1
        continue
    passed += sums['PASSED']
    skipped += sums['SKIPPED']
    good = test['result'] == 'OK'
    if not re.search(r'\[==========\]', output):
        passed += good
    elif good and sums['PASSED'] + sums['SKIPPED'] == 0:
        good = False
        output += '\n(no test ran)'
    if not good:
        failed += max(1, sums['FAILED'])
        print('FAIL %s (%s)' % (test['name'], test['result']))
        shown = [l for l in output.splitlines() if not re.match(r'\[ +(OK|RUN) +\]', l)]
        print('\n'.join('    ' + l for l in shown[-60:]))
if not lines:
    failed = 1
    print('FAIL: meson wrote no log of its tests')
print('%d passed, %d failed, %d skipped' % (passed, failed, skipped))
