"""plot.py [--check]: draws the pictures of docs/performance.md from its tables, which the scripts of
bench have put there. --check only tells whether the pictures are those of the tables, by its exit
status.

    performance-peers.svg        compare.py's: how many times as long as Kiln each runtime takes
    performance-first-calls.svg  first_calls.py's: when the first ten calls of a process have ended
    performance-roofline.svg     bench/roofline's: FLOPs a second of each step by FLOPs a byte
"""
import math
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "performance.md")
TABLES = [("threads 1", "one thread"), ("threads 2", "two threads")]
COLOURS = {"OpenVINO": "#7b3fb5", "ONNX Runtime": "#1f6fd0", "torch.compile": "#e08a00",
           "PyTorch": "#c0392b"}
LEFT, RIGHT, ROW, WIDTH, TOP = 150, 20, 22, 760, 66
LEAST, MOST, TICKS = 0.8, 16.0, [1, 1.5, 2, 3, 4, 6, 8, 12, 16]


def rows_of(text, name):
    """The cells of a table of the page, its head first."""
    begin, end = "<!-- figures of %s -->" % name, "<!-- end of %s -->" % name
    return [[c.strip() for c in line.strip("|").split("|")]
            for line in text[text.index(begin):text.index(end)].split("\n")
            if line.startswith("| ")]


def table(text, name):
    """{model: {runtime: milliseconds}} of a table of compare.py."""
    rows = rows_of(text, "compare.py, " + name)
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


def svg(height, body):
    return ('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
            'font-family="sans-serif">\n<rect width="100%%" height="100%%" fill="white"/>\n%s\n'
            '</svg>\n' % (WIDTH, height, "\n".join(body)))


def peers(page):
    body, top = legend(), TOP + 24
    for name, words in TABLES:
        part, bottom = panel(top, words, table(page, name))
        body += part
        top = bottom + 46
    head = [text_at(LEFT, 20, "Time of a call, as a multiple of Kiln's (further right is slower)",
                    size=15, weight="bold")]
    return svg(top - 26, head + body)


class Log:
    """A logarithmic axis: the place of a value between two, in pixels."""

    def __init__(self, least, most, begin, end):
        self.least, self.most, self.begin, self.end = least, most, begin, end

    def __call__(self, value):
        share = math.log(max(value, self.least) / self.least) / math.log(self.most / self.least)
        return self.begin + share * (self.end - self.begin)

    def ticks(self):
        at = 10.0 ** math.ceil(math.log10(self.least) - 1e-9)
        while at <= self.most * 1.001:
            yield at
            at *= 10


def first_calls(page):
    """A line for each runtime: loaded at its ring, then a dot at the end of each call."""
    rows = rows_of(page, "first_calls.py")[1:]
    ends = [float(c) for row in rows for c in row[2:]]
    x = Log(0.3, max(ends) * 1.2, LEFT, WIDTH - RIGHT)  # PyTorch's modules are there at once
    colours, out, y, last = {"Kiln": "#222", **COLOURS}, [], TOP - 16, None
    bottom = y + ROW * len(rows) + 34 * len({row[0] for row in rows})
    for tick in x.ticks():
        out.append('<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>'
                   % (x(tick), y, x(tick), bottom - 8))
        out.append(text_at(x(tick), y - 4, "%g ms" % tick, "middle", 12, "#777"))
    for model, runtime, *times in rows:
        if model != last:
            y, last = y + 34, model
            out.append(text_at(LEFT - 12, y - 8, model, "end", 12, weight="bold"))
        places = [x(float(t)) for t in times]
        middle = y + ROW / 2 - 4
        out.append(text_at(LEFT - 12, middle + 4, runtime, "end"))
        out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2"/>'
                   % (places[0], middle, places[-1], middle, colours[runtime]))
        out.append('<circle cx="%.1f" cy="%.1f" r="4.5" fill="white" stroke="%s" stroke-width="2"/>'
                   % (places[0], middle, colours[runtime]))
        for i, at in enumerate(places[1:], 1):
            out.append('<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"><title>call %d: %s ms</title>'
                       '</circle>' % (at, middle, colours[runtime], i, times[i]))
        y += ROW
    head = [text_at(LEFT, 20, "A process's first ten calls: loaded (ring), and the end of each call",
                    size=15, weight="bold")]
    return svg(bottom + 8, head + out)


SHADES = ["#c0392b", "#e08a00", "#9a8f00", "#2e8b57", "#1f6fd0", "#17a2b8", "#7b3fb5", "#d0419a",
          "#555"]


def roofline(page):
    begin = page.index("<!-- figures of bench/roofline -->")
    peak = float(re.search(r"FMA ([\d.]+) GFLOP/s", page[begin:]).group(1))
    line = page[begin:].split("\n")[1]
    bandwidths = [(name, float(gbs)) for name, gbs in re.findall(r"(\w+) ([\d.]+) GB/s", line)]
    rows = rows_of(page, "bench/roofline")[1:]
    points = [(row[0], row[1], float(row[2]), float(row[3]), float(row[4])) for row in rows]
    height, left = 520, 60
    x = Log(min(p[3] for p in points) * 0.7, max(p[3] for p in points) * 1.4, left, WIDTH - RIGHT)
    y = Log(min(p[4] for p in points) * 0.7, max(p[4] for p in points) * 1.3, height - 70, 60)
    out = [text_at(left, 20, "Steps of the networks: GFLOP/s by FLOPs a byte", size=15,
                   weight="bold"),
           text_at(left, 40, "the larger a dot, the more of its call it takes", size=12)]
    for tick in x.ticks():
        out.append('<line x1="%.1f" y1="60" x2="%.1f" y2="%d" stroke="#eee"/>'
                   % (x(tick), x(tick), height - 70))
        out.append(text_at(x(tick), height - 52, "%g" % tick, "middle", 12, "#777"))
    for tick in y.ticks():
        out.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#eee"/>'
                   % (left, y(tick), WIDTH - RIGHT, y(tick)))
        out.append(text_at(left - 6, y(tick) + 4, "%g" % tick, "end", 12, "#777"))
    for i, (name, gbs) in enumerate(bandwidths):
        ridge = peak / gbs
        begins = max(x.least, y.least / gbs)
        if ridge > begins:
            out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#999"/>'
                       % (x(begins), y(begins * gbs), x(ridge), y(peak)))
            out.append(text_at(x(begins) + 4, y(begins * gbs) + (14 if i % 2 else -10),
                               "%s %g GB/s" % (name, gbs), size=11, colour="#777"))
    out.append('<line x1="%.1f" y1="%.1f" x2="%d" y2="%.1f" stroke="#222" stroke-width="1.5"/>'
               % (x(max(x.least, peak / max(b for _, b in bandwidths))), y(peak), WIDTH - RIGHT,
                  y(peak)))
    out.append(text_at(WIDTH - RIGHT, y(peak) - 6, "fused products %g GFLOP/s" % peak, "end", 12))
    models = list(dict.fromkeys(p[0] for p in points))
    for model, step, share, intensity, gflops in points:
        out.append('<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s" fill-opacity="0.6"><title>%s: %s, '
                   '%g %%</title></circle>'
                   % (x(intensity), y(gflops), 2 + math.sqrt(share), SHADES[models.index(model) % 9],
                      model, step, share))
    at = left
    for i, model in enumerate(models):
        out.append('<circle cx="%d" cy="%d" r="5" fill="%s"/>' % (at + 5, height - 24, SHADES[i % 9]))
        out.append(text_at(at + 14, height - 20, model, size=11))
        at += 22 + 6 * len(model)
    return svg(height, out)


PICTURES = {"performance-peers.svg": peers, "performance-first-calls.svg": first_calls,
            "performance-roofline.svg": roofline}


def drawn():
    """{path: picture}"""
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    return {os.path.join(ROOT, "docs", name): make(page) for name, make in PICTURES.items()}


def draw():
    for path, picture in drawn().items():
        with open(path, "w", encoding="utf-8") as f:
            f.write(picture)


def main():
    if "--check" not in sys.argv:
        return draw()
    for path, picture in drawn().items():
        with open(path, encoding="utf-8") as f:
            if f.read() != picture:
                return "plot.py: %s is not that of the tables" % os.path.basename(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
