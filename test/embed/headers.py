"""headers.py ROOT COMPILER...: every public header stands alone in C99 and, by the compilers whose
name has ++, in C++11, without a warning. None of these: 77, which is a skip."""
import os
import subprocess
import sys

root, compilers = sys.argv[1], sys.argv[2:]
USE = """
int main() {
  kiln_op_spec spec = kiln_op_spec();
  spec.flags = KILN_OP_SPEC_PURE;
  return kiln_op_register(0, &spec) == 0;
}
"""
failed = 0
for name in sorted(os.listdir(os.path.join(root, 'include/kiln'))):
    for language, standard in (('c', 'c99'), ('c++', 'c++11')):
        use = USE if name == 'kiln_op.h' and language == 'c++' else ''
        for compiler in compilers:
            if language == 'c++' and '++' not in compiler:
                continue
            done = subprocess.run(
                [compiler, '-x', language, '-std=' + standard, '-Wall', '-Wextra', '-pedantic',
                 '-Werror', '-fsyntax-only', '-I' + os.path.join(root, 'include'), '-'],
                input='#include "kiln/%s"\n%s' % (name, use), capture_output=True, text=True)
            if done.returncode != 0:
                failed = 1
                print('%s with %s -std=%s:\n%s' % (name, compiler, standard, done.stderr))
if not failed and not any('++' in compiler for compiler in compilers):
    print('there is no C++ compiler')
    sys.exit(77)
sys.exit(failed)
