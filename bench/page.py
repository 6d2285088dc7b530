"""docs/performance.md: figures between two marks of it, and how a cell of its tables reads."""
import os
import statistics
import time

PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs",
                    "performance.md")


def cell(values):
    return "%.3g (%.3g to %.3g)" % (statistics.median(values), min(values), max(values))


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
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    head, tail = page[:page.index(begin) + len(begin)], page[page.index(end):]
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(head + "\n" + text + "\n" + tail)
