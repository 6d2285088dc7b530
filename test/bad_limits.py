"""bad_limits.py: malformed archives must be refused quickly and cheaply.

Each case runs by itself: within a second of processor time (ten of the clock, since others may use
the machine) and 200 MB of memory. AddressSanitizer's checks, red zones and the 256 MB of freed blocks
that it may hold back are no part of the program: with them (dev sets ASAN_OPTIONS) a case has four
seconds and 500 MB. The corpus is used where it lies beside the tree.

    bad_limits.py build/kiln [-v]
"""
import os
import subprocess
import sys
import time

SECONDS, CLOCK, MEGABYTES = (4.0, 10.0, 500) if "ASAN_OPTIONS" in os.environ else (1.0, 10.0, 200)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def folders():
    found = []
    for base in (os.path.join(ROOT, "test", "data", "bad"), os.path.join(ROOT, "test", "data", "lies"),
                 os.environ.get("KILN_CORPUS_BAD") or os.path.join(ROOT, "..", "shared", "corpus", "bad")):
        for name in sorted(os.listdir(base)) if os.path.isdir(base) else []:
            if os.path.exists(os.path.join(base, name, "case.json")):
                found.append(os.path.join(base, name))
    return found


def measure(kiln, folder):
    start = time.monotonic()
    child = subprocess.Popen([kiln, "check", folder, "--repeat", "1"], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
    output = child.stdout.read().decode(errors="replace")
    child.stdout.close()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return (child.returncode, output, usage.ru_utime + usage.ru_stime,
            time.monotonic() - start, usage.ru_maxrss / 1000.0)


def main(kiln, verbose):
    failures, most_seconds, most_memory = [], 0.0, 0.0
    cases = folders()
    for folder in cases:
        status, output, seconds, clock, memory = measure(kiln, folder)
        name = os.path.basename(folder)
        most_seconds, most_memory = max(most_seconds, seconds), max(most_memory, memory)
        if verbose:
            print("%-28s %6.3f s %6.1f MB" % (name, seconds, memory))
        if status != 0:
            failures.append("%s: exit status %d: %s" % (name, status, output.strip()))
        if seconds > SECONDS or clock > CLOCK:
            failures.append("%s: %.2f s of processor time, %.2f s" % (name, seconds, clock))
        if memory > MEGABYTES:
            failures.append("%s: %.0f MB" % (name, memory))
    for failure in failures:
        print("FAIL " + failure)
    print("%d archives, at most %.3f s and %.1f MB; %d failed" %
          (len(cases), most_seconds, most_memory, len(failures)))
    return 1 if failures or not cases else 0


sys.exit(main(sys.argv[1], "-v" in sys.argv))
