"""aot_example.py PROGRAM WEIGHTS PICTURE: the example of docs/aot.md reads a four."""
import subprocess
import sys

with open(sys.argv[3]) as picture:
    done = subprocess.run(sys.argv[1:3], stdin=picture, capture_output=True, text=True, timeout=60)
print(done.stdout, done.stderr)
sys.exit(not done.stdout.startswith('4, '))
