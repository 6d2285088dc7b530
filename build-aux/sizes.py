"""sizes.py [BUILD]: what each part takes of libkiln.so, from the object files of a release build: kilobytes of code,
tables and unwind information, as Markdown."""
import collections
import pathlib
import re
import subprocess
import sys

FAMILIES = [  # the path of an object file, its family; the first that fits
    (r"kiln_runtime_(?:cold_)?(v2|avx2|avx512)\.", r"kernels for \1"),
    (r"kiln_codegen_eval_(v2|avx2|avx512)\.", r"functions of the evaluator for \1"),
    (r"math_bitcode", "bitcode of `runtime/math`, for LLVM"),
    (r"ir_registry", "the table of operators"),
    (r"runtime_kernels_", "kernels for any x86-64"),
    (r"kiln_([a-z]+)", r"`\1/`"),
]


def family_of(path):
    for pattern, family in FAMILIES:
        found = re.search(pattern, path)
        if found:
            return found.expand(family)
    return path


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    takes = collections.Counter()
    for path in sorted(p for p in build.glob("**/libkiln_*.a.p/*.o") if "libkiln_aot." not in str(p)):
        out = subprocess.run(["size", path], check=True, capture_output=True, text=True).stdout
        text, data = out.splitlines()[1].split()[:2]
        takes[family_of(str(path.relative_to(build)))] += int(text) + int(data)
    print("| part | KB |\n|---|---|")
    for family, taken in takes.most_common():
        print("| %s | %d |" % (family, round(taken / 1000)))
    print("| together | %d |" % round(sum(takes.values()) / 1000))


main()
