"""run.py PROGRAM...: an example host must print what the good archive gives for an input of 0.5."""
import subprocess
import sys

# 1 to 6, and 0.5 more: what test/make/bad.py says of the archive.
WANT = "tensor([[1.5, 2.5, 3.5],\n        [4.5, 5.5, 6.5]], dtype=float32)\n"
done = subprocess.run(sys.argv[1:], capture_output=True, text=True, timeout=120)
if done.returncode != 0 or not done.stdout.startswith(WANT):
    print("exit status %d, printed:\n%s%s" % (done.returncode, done.stdout, done.stderr))
    sys.exit(1)
