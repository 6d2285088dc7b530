"""Makes samples of kiln::to_float32, with numpy's float32. Its lines stand in ops.txt.

Usage: float32.py >> test/data/kernels/ops.txt
"""
import numpy

from ops import text

for number in (0.0, -0.0, 1.0, 0.1, 1 / 3, -2.5e-8, 16777217.0, 16777219.0, 2.0**40 + 1, 1e-46, -1e-45, 3.4028235677973366e38,
               1e39, -1e300, float("inf"), float("nan")):
    with numpy.errstate(over="ignore"):
        print("\t".join(["kiln::to_float32", text(number), "=", text(float(numpy.float32(number)))]))
