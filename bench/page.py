"""docs/performance.md: figures between two marks of it, and how a cell of its tables reads."""
import os
import statistics
import time

PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs",
                    "performance.md")


def cell(values):
    return "%.3g (%.3g to %.3g)" % (statistics.median(values), min(values), max(values))


def median(call, seconds):
    """Of the seconds that calls take, of which there are so many seconds, behind three others."""
    for _ in range(3):
        call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
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
