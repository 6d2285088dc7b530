"""plot.py [--check]: draws docs/performance-peers.svg from the tables that compare.py has put into
docs/performance.md: how many times as long as Kiln each runtime takes, model by model. --check only
tells whether the picture is that of the tables, by its exit status."""
import math
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "performance.md")
PICTURE = os.path.join(ROOT, "docs", "performance-peers.svg")
TABLES = [("threads 1", "one thread"), ("threads 2", "two threads")]
COLOURS = {"OpenVINO": "#7b3fb5", "ONNX Runtime": "#1f6fd0", "torch.compile": "#e08a00",
           "PyTorch": "#c0392b"}
LEFT, RIGHT, ROW, WIDTH, TOP = 150, 20, 22, 760, 66
LEAST, MOST, TICKS = 0.8, 16.0, [1, 1.5, 2, 3, 4, 6, 8, 12, 16]


def table(text, name):
    """{model: {runtime: milliseconds}} of a table of the page."""
    begin = "<!-- figures of compare.py, %s -->" % name
    part = text[text.index(begin):text.index("<!-- end of compare.py, %s -->" % name)]
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in part.split("\n")
            if line.startswith("| ")]
    runtimes = rows[0][1:-2]
    return {row[0]: {r: float(re.match(r"[\d.]+", c).group()) for r, c in zip(runtimes, row[1:])}
            for row in rows[1:]}


def place(ratio):
    share = math.log(min(max(ratio, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def text_at(x, y, words, anchor="start", size=13, colour="#222", weight="normal"):
    return ('<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" fill="%s" font-weight="%s">'
            '%s</text>' % (x, y, anchor, size, colour, weight, words))


def legend():
    out, x = [], LEFT
    for peer, colour in COLOURS.items():
        out.append('<circle cx="%d" cy="44" r="5" fill="%s"/>' % (x + 5, colour))
        out.append(text_at(x + 16, 48, peer))
        x += 34 + 8 * len(peer)
    return out


def panel(top, words, models):
    out, bottom = [text_at(LEFT - 12, top - 8, words, "end", weight="bold")], top + ROW * len(models)
    for tick in TICKS:
        x, heavy = place(tick), tick == 1
        out.append('<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-width="%s"/>'
                   % (x, top, x, bottom, "#222" if heavy else "#ddd", 1.5 if heavy else 1))
        out.append(text_at(x, top - 8, "Kiln" if heavy else "%g" % tick, "middle", 12,
                           "#222" if heavy else "#777"))
    for i, (model, times) in enumerate(models.items()):
        y = top + ROW * i + ROW / 2
        ratios = {p: t / times["Kiln"] for p, t in times.items() if p in COLOURS}
        out.append(text_at(LEFT - 12, y + 4, model, "end"))
        out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#bbb"/>'
                   % (place(1), y, place(max(ratios.values())), y))
        for peer, ratio in ratios.items():
            out.append('<circle cx="%.1f" cy="%.1f" r="5" fill="%s"><title>%s: %.2f</title></circle>'
                       % (place(ratio), y, COLOURS[peer], peer, ratio))
    return out, bottom


def picture(page):
    body, top = legend(), TOP + 24
    for name, words in TABLES:
        part, bottom = panel(top, words, table(page, name))
        body += part
        top = bottom + 46
    head = [text_at(LEFT, 20, "Time of a call, as a multiple of Kiln's (further right is slower)",
                    size=15, weight="bold")]
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
            'font-family="sans-serif">\n<rect width="100%%" height="100%%" fill="white"/>\n%s\n'
            '</svg>\n' % (WIDTH, top - 26, "\n".join(head + body)))


def drawn():
    with open(PAGE, encoding="utf-8") as f:
        return picture(f.read())


def draw():
    with open(PICTURE, "w", encoding="utf-8") as f:
        f.write(drawn())


def main():
    if "--check" in sys.argv:
        with open(PICTURE, encoding="utf-8") as f:
            return 0 if f.read() == drawn() else "plot.py: the picture is not that of the tables"
    return draw()


if __name__ == "__main__":
    sys.exit(main())
