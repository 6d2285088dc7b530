"""docs/performance.md: figures between two marks of it."""
import os

PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs",
                    "performance.md")


def write(begin, end, text):
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    head, tail = page[:page.index(begin) + len(begin)], page[page.index(end):]
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(head + "\n" + text + "\n" + tail)
