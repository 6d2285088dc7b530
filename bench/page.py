"""docs/performance*.md: figures between two marks of one, and how a cell of their tables reads."""
import glob
import math
import os
import statistics
import time

DOCS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs")


def cell(values):
    return "%.3g (%.3g to %.3g)" % (statistics.median(values), min(values), max(values))


def geometric_mean(ratios):
    return math.exp(statistics.fmean(math.log(r) for r in ratios))


def median(call, seconds, before=3, least=5):
    """Of the seconds that calls take: `least` of them, or so many seconds, behind some others."""
    for _ in range(before):
        call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def write(begin, end, text):
    for name in glob.glob(os.path.join(DOCS, "performance*.md")):
        with open(name, encoding="utf-8") as f:
            page = f.read()
        if begin not in page:
            continue
        head, tail = page[:page.index(begin) + len(begin)], page[page.index(end):]
        with open(name, "w", encoding="utf-8") as f:
            f.write(head + "\n" + text + "\n" + tail)
        return
    raise SystemExit("no page of docs has the mark %s" % begin)
