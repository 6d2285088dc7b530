"""headers.py ROOT COMPILER...: every public header stands alone in C++11 and in C99, without a
warning. No compiler: 77, which is a skip."""
import os
import subprocess
import sys

root, compilers = sys.argv[1], sys.argv[2:]
if not compilers:
    print("there is no C++ compiler")
    sys.exit(77)
USE = """
int main() {
  kiln_op_spec spec = kiln_op_spec();
  spec.flags = KILN_OP_SPEC_PURE;
  return kiln_op_register(0, &spec) == 0;
}
"""
failed = 0
for name in sorted(os.listdir(os.path.join(root, 'include/kiln'))):
    for language, standard in (('c++', 'c++11'), ('c', 'c99')):
        use = USE if name == 'kiln_op.h' and language == 'c++' else ''
        for compiler in compilers:
            done = subprocess.run(
                [compiler, '-x', language, '-std=' + standard, '-Wall', '-Wextra', '-pedantic',
                 '-Werror', '-fsyntax-only', '-I' + os.path.join(root, 'include'), '-'],
                input='#include "kiln/%s"\n%s' % (name, use), capture_output=True, text=True)
            if done.returncode != 0:
                failed = 1
                print('%s with %s -std=%s:\n%s' % (name, compiler, standard, done.stderr))
sys.exit(failed)
